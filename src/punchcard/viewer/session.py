"""The session behind every view: what a machine does with a program, moment by moment, computed when it is asked for.

    session = Session(machine, program)
    session.state(0)                    the punched card
    session.state(2 * layers)           after one loop
    session.attention(0, 1, 0)          who took from whom, in head 0 of layer 1 in loop 0

The replies are those of `protocol.py`. Cards between loops come from `timeline.py`, what happens inside a loop from
`inspector.py`, and formulas and weights by name from `formulas.py`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np

from punchcard.arguments import checked
from punchcard.card.formats import AnyArray
from punchcard.card.layout import Card
from punchcard.card.packed import PackedCard
from punchcard.errors import PunchcardError, printable
from punchcard.files import read_limited
from punchcard.formatting import plain_data
from punchcard.machines.base import Machine
from punchcard.machines.display_values import UNREADABLE, DisplayValue, ListedInstruction, Listing
from punchcard.viewer import search
from punchcard.viewer.formulas import Formulas
from punchcard.viewer.inspector import LoopInspector, differ
from punchcard.viewer.protocol import (
    AboutReply,
    AttentionReply,
    ChoiceReply,
    ExplainReply,
    ExploreReply,
    FormulasReply,
    LayerReply,
    ProgramReply,
    StateReply,
    WeightsReply,
    encoded,
    layout_reply,
)
from punchcard.viewer.stages import Columns, entries_of
from punchcard.viewer.story import PUNCHED, HalfLayer, Storyteller
from punchcard.viewer.timeline import PATIENCE
from punchcard.viewer.turns import Turns

COUNTER = "program counter"
LEAST_WEIGHT = 1 / 64
MATRIX_COLUMNS = 128
"""Cards of so many columns show attention as a matrix."""
MOST_LINES = MOST_INSTRUCTIONS = 20_000
LONGEST_ANSWER = 5.0
"""Seconds that a question of a page may look ahead."""
LOOKED_BACK = 64
"""Loops that are searched for the line that uses a routine without source lines."""
QUESTIONS = ("about", "formulas", "state", "attention", "explain", "weights", "explore", "find")
"""The methods of a session that a page asks, over HTTP (`server.py`) or as messages of a notebook (`notebook.py`)."""


@checked
class Session:
    """A run of a program on a machine, to be looked at.

    input       the bytes that the program reads
    max_steps   instructions after which the run ends; default: set by the machine
    source      the text of the program's file, to be shown; default: a listing of the program
    name        what the program is called
    """

    choices: Sequence[ChoiceReply] = ()
    """Other machines that the page may ask for, if the server can build them."""

    def __init__(self, machine: Machine[Any, Any], program: object, *, input: bytes = b"", max_steps: int | None = None,
                 source: str | None = None, name: str = "") -> None:
        self.machine, self.program, self.layout = machine, program, machine.layout
        named = name or str(getattr(program, "source", "") or machine.kind.name)
        self.name = printable(named)  # a file's name may be any bytes
        self.layers = len(machine.weights.layers)
        self.per_loop = 2 * self.layers
        self.input, self._source = bytes(input), source
        machine.check_type(program)
        self.shown: list[DisplayValue] = machine.display_values(program)
        self.counter = next((shown for shown in self.shown if shown.name == COUNTER), None)
        self.inspector = LoopInspector(machine, program, self.input, max_steps, self.shown)
        self.timeline = self.inspector.timeline
        self._lines: dict[int, int | None] = {}
        self._turns = Turns()
        self.searched = 0

    def __repr__(self) -> str:
        return f"<Session of {self.name} on {self.machine!r}>"

    def answer(self, name: str, given: Sequence[Any] = (), named: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
        """The reply to one of the `QUESTIONS`. A server asks in several threads: they are answered one after the other.

        The more wait, the less time each may take, so that none waits long.
        """
        ask = getattr(self, name)
        try:
            bound = inspect.signature(ask).bind(*given, **(named or {}))
        except TypeError as error:
            raise PunchcardError(f"{name}: {error}") from None
        bound.apply_defaults()
        with self._turns as waiting:
            self.timeline.patience = PATIENCE / (1 + waiting)
            if isinstance(bound.arguments.get("seconds"), int | float):
                bound.arguments["seconds"] = min(bound.arguments["seconds"], LONGEST_ANSWER / (1 + waiting))
            found = ask(*bound.args, **bound.kwargs)
            return {"moment": found, "searched": self.searched} if name == "find" else found

    # What does not change

    @cached_property
    def listing(self) -> Listing:
        found = self.machine.listing(self.program, self._source)
        most = len(found.lines)  # a file may have changed since it was read
        return Listing(found.lines, [each if each.line is None or each.line <= most else each._replace(line=None)
                                     for each in found.instructions])

    @cached_property
    def instructions(self) -> dict[int, ListedInstruction]:
        return {listed.number: listed for listed in self.listing.instructions}

    @cached_property
    def formula_texts(self) -> Formulas:
        return Formulas(self.machine, self.storyteller)

    @cached_property
    def labels(self) -> dict[str, list[str]]:
        """What numbers are called, by the rows that hold them."""
        return {rows: list(map(printable, names)) for rows, names in self.machine.labels(self.program).items()}

    @cached_property
    def storyteller(self) -> Storyteller:
        return Storyteller(self.machine, self.labels)

    def column_name(self, column: int) -> str:
        """What a column is called in this program."""
        return printable(self.machine.column_name(column, self.program))

    def about(self) -> AboutReply:
        """The machine, the program, and what there is to see."""
        machine, layout, shown = self.machine, self.layout, self.inspector.columns_shown.tolist()
        layers: list[LayerReply] = [
            {"name": f"layer {number + 1}", "formulas": None, "hidden": layer.hidden,
             "heads": [{"about": None, "temperature": float(t), "gap": None,
                        "carries": self.storyteller.carries(number, head)} for head, t in enumerate(layer.temperature)]}
            for number, layer in enumerate(machine.weights.layers)]
        if not machine.keeps_weights:  # else the formulas take long to work out: `formulas` gives them on demand
            for number, layer in enumerate(layers):
                found = self.formula_texts.layer(number)
                layer["heads"], layer["formulas"] = found["heads"], found["formulas"]
        return {
            "title": machine.title(), "machine": machine.kind.name, "design": machine.design.name,
            "dtype": machine.precision.name, "facts": plain_data(machine.summary()),
            "layout": layout_reply(layout), "layers": layers, "program": self._program(),
            "shown": [value.plain(layout) for value in self.shown],
            "counter": None if self.counter is None else self.counter.plain(layout),
            "columns_shown": shown, "column_names": self._names(shown), **self.end_reply(),
            "ports": machine.has_ports, "input": self.input.decode("utf-8", "replace"),
            "labels": self.labels, "counter_base": machine.counter_base, "choices": list(self.choices),
            "pointers": list(machine.design.column_pointers), "signed": sorted(self.storyteller.signed),
        }

    def _names(self, columns: Sequence[int]) -> dict[int, str]:
        """The names of columns that have one beyond their region and number."""
        return {column: name for column in columns if (name := self.column_name(column)) != self.layout.column_name(column)}

    def _program(self) -> ProgramReply:
        """The program's text and instructions; of very long ones the beginning."""
        lines, instructions = self.listing
        left_out = max(0, len(lines) - MOST_LINES) + max(0, len(instructions) - MOST_INSTRUCTIONS)
        return {"name": self.name, "lines": list(lines[:MOST_LINES]), "left_out": left_out,
                "instructions": [each._asdict() for each in instructions[:MOST_INSTRUCTIONS]]}

    # Moments

    def place(self, moment: int) -> tuple[int, int]:
        """The loop that a moment belongs to and the stage in it; one beyond the end of the run is the last."""
        if moment < 0:
            raise PunchcardError(f"moment {moment}: moments are counted from 0")
        loop, stage = divmod(moment, self.per_loop)
        reached = self.timeline.mark(min(loop, self.timeline.last)).loops
        if reached < loop or self.inspector.has_ended(loop):
            return reached, 0
        return loop, stage

    def state(self, moment: int, columns: Sequence[int] = ()) -> StateReply:
        """The card at a moment, in the columns that are shown and those that are asked for."""
        self.inspector.want(columns)
        loop, stage = self.place(moment)
        moment = loop * self.per_loop + stage
        shown, entries, changed = self.inspector.card(loop, stage)
        served, at_end, end = self.timeline.served(loop), self.inspector.has_ended(loop), self.end_reply()
        number, listed = self._executed(served.card)
        return {
            "moment": moment, "loop": loop, "layer": stage // 2, "stage": stage % 2,
            "columns": shown.tolist(), "entries": encoded(entries), "changed": changed,
            "names": self._names(np.setdiff1d(shown, self.inspector.columns_shown).tolist()),
            "values": self._values(shown, entries), "story": self.story(moment),
            "program_counter": number, "instruction": None if listed is None else listed.text,
            "line": listed.line if listed is not None else None if number is None or at_end else self._line_before(loop),
            "output": served.traffic.written.decode("utf-8", "replace"), "read": len(served.traffic.read),
            **end, "ended": end["ended"] if at_end else None, "message": end["message"] if at_end else None,
        }

    def story(self, moment: int) -> str:
        """What the half layer that led to a moment did, in a sentence."""
        return self.sentence_parts(moment)[0]

    def sentence_parts(self, moment: int) -> tuple[str, dict[str, str]]:
        """The sentence of the half layer that led to a moment, and the values in it by name."""
        loop, stage = self.place(moment)
        if loop == stage == 0:
            return PUNCHED, {}
        return self._half_layer(loop, stage) if stage else self._half_layer(loop - 1, self.per_loop)

    def loop_story(self, loop: int, before: Card, after: Card) -> Iterator[tuple[int, str, str]]:
        """The sentences of a loop of a run that the caller makes, by the cards before and after it.

        Each with its layer, from 1, and whether it is of the "attention" or of the "ReLU layer".
        """
        self.inspector.give(before, after)
        for number in range(1, self.per_loop + 1):
            layer = (number - 1) // 2
            if number % 2 == 0 or self.machine.weights.layers[layer].heads:
                yield layer + 1, "attention" if number % 2 else "ReLU layer", self._half_layer(loop, number)[0]

    def _half_layer(self, loop: int, number: int) -> tuple[str, dict[str, str]]:
        """The sentence of the half layer that leads to a stage of a loop."""
        try:
            inside = self.inspector.stages(loop)
        except PunchcardError as error:  # a loop between two cards that can be shown
            return printable(f"This step cannot be shown: {error}"), {}
        card, layer = self.inspector.card_at(loop), (number - 1) // 2
        half = HalfLayer(
            loop, self._text(self.counter_on(card)), None, inside.columns, inside.stages[number - 1],
            inside.stages[number], lambda column: entries_of(card, np.array([column]))[:, 0].tolist(),
            lambda head: self.inspector.attention(loop, layer, head), self.column_name)
        if number == self.per_loop:
            half.coming = self._text(self._counted(lambda column: half.at(column, before=False)))
        return self.storyteller.tell(layer, number % 2 == 1, half)

    def _executed(self, card: Card) -> tuple[int | None, ListedInstruction | None]:
        """The program counter on a card, and the instruction there."""
        number = self.counter_on(card)
        return number, None if number is None else self.instructions.get(number)

    def _text(self, number: int | None) -> str | None:
        """The instruction at a program counter, on one line."""
        listed = None if number is None else self.instructions.get(number)
        return None if listed is None else " ".join(listed.text.split())

    def card(self, moment: int) -> tuple[Columns, AnyArray]:
        """The columns that are shown at a moment, and all their rows."""
        columns, entries, _ = self.inspector.card(*self.place(moment))
        return columns, entries

    # Values

    def _values(self, columns: Columns, entries: AnyArray) -> list[str]:
        place = {column: i for i, column in enumerate(columns.tolist())}

        @cache
        def at(column: int) -> list[float]:
            found: list[float] = entries[:, place[column]].tolist()
            return found

        return [shown.text(self.layout, at) for shown in self.shown]

    def counter_on(self, card: Card) -> int | None:
        """The program counter on a card between two loops, or None if it cannot be read or the machine has none."""
        if self.counter is None:
            return None
        if isinstance(card, PackedCard):
            rows = self.layout.place(self.counter.rows)
            return self.counter.unsigned(card.word(rows, self.counter.column), rows.size)
        return self._counted(lambda column: entries_of(card, np.array([column]))[:, 0].tolist())

    def _counted(self, at: Callable[[int], Sequence[float]]) -> int | None:
        """The program counter by the entries of columns."""
        text = UNREADABLE if self.counter is None else self.counter.text(self.layout, at)
        return None if text == UNREADABLE else int(text)

    def _line_before(self, loop: int) -> int | None:
        """The line of the last instruction before a loop that is listed: it uses what is not, such as a shared routine."""
        if loop not in self._lines:
            found: list[int | None] = [None]

            def look(at: int, card: Card) -> bool:
                number = self.counter_on(card) if at < loop else None
                if number is not None and number in self.instructions:
                    found.append(self.instructions[number].line)
                return at >= loop

            self.timeline.watch(max(0, loop - LOOKED_BACK), loop, look, PATIENCE)
            self._lines[loop] = found[-1]
        return self._lines[loop]

    # Heads and formulas

    def attention(self, loop: int, layer: int, head: int, columns: Sequence[int] = ()) -> AttentionReply:
        """Who takes from whom in a head."""
        self.inspector.want(columns)
        loop = self._loop(loop, layer)
        weights = self.machine.weights.layers[layer]
        if head not in range(weights.heads):
            raise PunchcardError(f"head {head}: layer {layer} has {weights.heads}, counted from 0")
        taking, found = self.inspector.stages(loop).columns, self.inspector.attention(loop, layer, head)
        moves: list[tuple[int, int, float, float, float | None]] = []
        for j, target in enumerate(taking.tolist()):
            scores = found.scores[:, j]
            for i in np.flatnonzero(found.weights[:, j] >= LEAST_WEIGHT).tolist():
                source = int(found.sources[i])
                lower = scores[scores < scores[source]]
                gap = float(scores[source] - lower.max()) if len(lower) else None
                moves.append((source, target, float(found.weights[i, j]), float(scores[source]), gap))
        small = self.inspector.small and self.layout.columns <= MATRIX_COLUMNS
        return {"loop": loop, "layer": layer, "head": head, "temperature": float(weights.temperature[head]),
                "columns": taking.tolist(), "moves": moves, "matrix": encoded(found.weights) if small else None}

    def _loop(self, loop: int, layer: int) -> int:
        """The number of a loop that can be shown, for a layer that there is; of one beyond the end the last."""
        if layer not in range(self.layers):
            raise PunchcardError(f"layer {layer}: the model has {self.layers}, counted from 0")
        if loop < 0:
            raise PunchcardError(f"loop {loop}: loops are counted from 0")
        reached = self.place(loop * self.per_loop)[0]
        if self.inspector.has_ended(reached):
            if reached == 0:
                raise PunchcardError("the run has no loop to show: it ends before the first")
            return reached - 1
        return reached

    def explain(self, moment: int, column: int) -> ExplainReply:
        """What the step that ends at a moment did to a column, formula by formula."""
        self.inspector.want([column])
        loop, stage = self.place(moment)
        moment = loop * self.per_loop + stage
        if moment == 0:
            raise PunchcardError("moment 0 is the punched card: no step has been made yet")
        step = self.inspector.stages(loop - (stage == 0)).only(np.array([column]))
        number = stage or self.per_loop
        before, after = (step.stages[at][:, 0] for at in (number - 1, number))
        layer, attends = (number - 1) // 2, number % 2 == 1
        if attends:
            formulas = self.formula_texts.heads(layer, before, self.inspector.head_outputs(loop, layer, column))
        else:
            formulas = self.formula_texts.assignments(layer, before, after)
        host = False
        if stage == 0:
            now = entries_of(self.timeline.served(loop).card, np.array([column]))[:, 0]
            host, after = bool(differ(now, after).any()), now
        return {"moment": moment, "column": column, "name": self.column_name(column),
                "before": encoded(before[:, None]), "after": encoded(after[:, None]), "formulas": formulas, "host": host}

    def formulas(self, layer: int) -> FormulasReply:
        self._loop(0, layer)
        return self.formula_texts.layer(layer)

    def weights(self, layer: int, head: int | None = None, unit: int | None = None) -> WeightsReply:
        """The weights of a head or a hidden unit that are not 0, by the names of rows."""
        self._loop(0, layer)
        return self.formula_texts.weights(layer, head, unit)

    # Where the run goes

    def explore(self, seconds: float = 0.2) -> ExploreReply:
        """Run ahead for some time at most, to learn where the run ends."""
        if not 0 <= seconds <= 60:
            raise PunchcardError(f"seconds={seconds:g}: it must be 0 to 60")
        self.timeline.explore(seconds)
        return self.end_reply()

    def end_reply(self) -> ExploreReply:
        """How far the run is known, and where it ends."""
        end = self.timeline.end
        return {"known_loops": self.timeline.known, "loops": None if end is None else end.loops,
                "ended": None if end is None else end.reason, "message": None if end is None else end.message}

    def find(self, what: str, moment: int, forward: bool = True, *, instructions: Sequence[int] = (), rows: str = "",
             column: int = 0, seconds: float = 5.0) -> int | None:
        """The next moment, or the last one before, at which something happens; None if it does not, or not soon.

        what="halt"                               the end of the run
        what="port"                               the next loop that reads or writes
        what="branch"                             the next loop after which another instruction follows than the next one
        what="breakpoint", instructions=[numbers] the next loop that executes one of these
        what="change", rows=name, column=number   the next moment at which a block (or part) in a column is another
        """
        return search.find(self, what, moment, forward=forward, instructions=instructions, rows=rows, column=column,
                           seconds=seconds)


def session_of(machine: Machine[Any, Any], program: object, file: Path, **options: Any) -> Session:
    """A session for a program from a file. Its text is shown if it is text."""
    source = None
    with suppress(UnicodeDecodeError, PunchcardError):
        source = read_limited(file, "program").decode("utf-8")
    return Session(machine, program, source=source, name=file.name, **options)
