"""The session behind every view: what a machine does with a program, moment by moment, computed when it is asked for.

    session = Session(machine, program)
    session.state(0)                    the punched card
    session.state(2 * layers)           after one loop
    session.attention(0, 1, 0)          who took from whom, in head 0 of layer 1 in loop 0

The replies are those of `protocol.py`. Cards between loops come from `timeline.py`, and what happens inside a loop is
computed by `stages.py` and, for large cards, by `column_subset.py`.
"""

from __future__ import annotations

import base64
import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import cached_property, wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from punchcard.arguments import checked
from punchcard.card.formats import AnyArray
from punchcard.card.layout import Card
from punchcard.card.packed import PackedCard
from punchcard.errors import PunchcardError
from punchcard.machines.base import Machine
from punchcard.machines.display_values import UNREADABLE, DisplayValue
from punchcard.machines.listing import ListedInstruction, Listing
from punchcard.machines.running import Mark
from punchcard.view import about, search
from punchcard.view.column_subset import ColumnSubset, NeedsAllColumns, differing, in_all_columns
from punchcard.view.formulas import Formulas
from punchcard.view.protocol import (
    AboutReply,
    AttentionReply,
    ExplainReply,
    ExploreReply,
    FormulasReply,
    StateReply,
    WeightsReply,
)
from punchcard.view.stages import SMALL, Columns, LoopStages, entries_of, softmax, whole
from punchcard.view.timeline import PATIENCE, Timeline

COUNTER = "program counter"
LEAST_WEIGHT = 1 / 64
MATRIX_COLUMNS = 128
"""Cards of so many columns show attention as a matrix."""
MOST_SHOWN = 192
"""Columns of a large card that are always shown."""
MOST_WANTED = 64
"""Columns that a view may ask for beside them."""
MOST_IN_FULL = 1 << 13
"""Columns of a card whose inside is computed in all of them where some are not enough: it takes seconds."""
LOOPS_KEPT = 6
LOOKED_BACK = 64
"""Timeline in which the line is looked for that uses a routine of no line."""
Given = ParamSpec("Given")
Reply = TypeVar("Reply")


def _one_at_a_time(
    call: Callable[Concatenate[Session, Given], Reply]
) -> Callable[Concatenate[Session, Given], Reply]:
    """A server answers in several threads; a session computes for one after the other."""
    @wraps(call)
    def locked(self: Session, /, *given: Given.args, **named: Given.kwargs) -> Reply:
        with self._lock:
            return call(self, *given, **named)

    return locked


def in_base64(entries: AnyArray) -> str:
    """Columns one after the other, as little-endian float64."""
    return base64.b64encode(np.ascontiguousarray(entries.T, dtype="<f8").tobytes()).decode("ascii")


@checked
class Session:
    """A run of a program on a machine, to be looked at.

    input       the bytes that the program reads
    max_steps   instructions after which the run ends; by default as the machine has it
    source      the text of the program's file, to be shown; by default a listing of the program
    name        what the program is called
    """

    def __init__(self, machine: Machine[Any, Any], program: Any, *, input: bytes = b"", max_steps: int | None = None,
                 source: str | None = None, name: str = "") -> None:
        self.machine, self.program, self.layout = machine, program, machine.layout
        named = name or str(getattr(program, "source", "") or machine.kind.name)
        self.name = named.encode("utf-8", "replace").decode("utf-8")  # a file's name may be any bytes
        self.layers = len(machine.weights.layers)
        self.per_loop = 2 * self.layers
        self.exact = (machine.needed_bits > 0 and machine.precision.temperature is None
                      and machine.precision.name in ("float64", "float32"))
        self.small = self.layout.columns <= SMALL
        self.timeline = Timeline(machine, program, bytes(input), max_steps,
                           near="dense" if self.small and not self.exact else "auto")
        self._source, self._input = source, bytes(input)
        self._inside: OrderedDict[int, LoopStages] = OrderedDict()
        self._wanted: set[int] = set()
        self._lines: dict[int, int | None] = {}
        self._lock = threading.RLock()
        self.searched = 0

    def __repr__(self) -> str:
        return f"<Session of {self.name} on {self.machine!r}>"

    # What does not change

    @cached_property
    def shown(self) -> list[DisplayValue]:
        return self.machine.display_values(self.program)

    @cached_property
    def counter(self) -> DisplayValue | None:
        return next((shown for shown in self.shown if shown.name == COUNTER), None)

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
        return Formulas(self.machine)

    @cached_property
    def columns_shown(self) -> Columns:
        """The columns that are always shown: of a small card all."""
        if self.small:
            return np.arange(self.layout.columns)
        named = {column for shown in self.shown for column in range(shown.column, shown.column + shown.columns)}
        named |= {shown.pending.column for shown in self.shown if shown.pending is not None}
        return np.unique(np.array([*self._active[:MOST_SHOWN], *sorted(named)], np.intp))

    @cached_property
    def _active(self) -> Columns:
        """Where the computation happens: always computed, since any other column may take from there."""
        return np.array(about.active_columns(self.machine), np.intp)

    @cached_property
    def _subset(self) -> ColumnSubset:
        return ColumnSubset(self.machine.weights, self.layout)

    @_one_at_a_time
    def about(self) -> AboutReply:
        """The machine, the program, and what there is to see."""
        machine, names = self.machine, {}
        for column in self.columns_shown.tolist():
            name = machine.column_name(column, self.program)
            if name != self.layout.column_name(column):
                names[column] = name
        end, layers = self.timeline.end, about.layers_reply(machine)
        if not machine.keeps_weights:  # else the formulas take long to work out, and are told when somebody asks
            for number, layer in enumerate(layers):
                found = self.formula_texts.layer(number)
                layer["heads"], layer["formulas"] = found["heads"], found["formulas"]
        return {
            "title": machine.title(), "machine": machine.kind.name, "design": machine.design.name,
            "dtype": machine.precision.name, "facts": _plain(machine.summary()),
            "layout": about.layout_reply(self.layout), "layers": layers,
            "program": about.program_reply(self.name, self.listing),
            "shown": [about.shown_reply(self.layout, shown) for shown in self.shown],
            "counter": None if self.counter is None else about.shown_reply(self.layout, self.counter),
            "columns_shown": self.columns_shown.tolist(), "column_names": names,
            "loops": None if end is None else end.loops, "ended": None if end is None else end.reason,
            "known_loops": self.timeline.known, "ports": machine.has_ports,
            "input": self._input.decode("utf-8", "replace"),
        }

    # Moments

    def place(self, moment: int) -> tuple[int, int]:
        """The loop that a moment belongs to and the stage in it; one beyond the end of the run is the last."""
        if moment < 0:
            raise PunchcardError(f"moment {moment}: moments are counted from 0")
        loop, stage = divmod(moment, self.per_loop)
        reached = self.timeline.mark(min(loop, self.timeline.last)).loops
        if reached < loop or (self.timeline.end is not None and loop >= self.timeline.end.loops):
            return reached, 0
        return loop, stage

    @_one_at_a_time
    def state(self, moment: int, columns: Sequence[int] = ()) -> StateReply:
        """The card at a moment, in the columns that are shown and those that are asked for."""
        self._want(columns)
        loop, stage = self.place(moment)
        moment = loop * self.per_loop + stage
        shown, entries, changed = self._card(loop, stage)
        end, served = self.timeline.end, self.timeline.served(loop)
        at_end = end is not None and loop >= end.loops
        number = self._counter(loop)
        listed = None if number is None else self.instructions.get(number)
        return {
            "moment": moment, "loop": loop, "layer": stage // 2, "stage": stage % 2,
            "columns": shown.tolist(), "entries": in_base64(entries), "changed": changed,
            "values": self._values(shown, entries),
            "program_counter": number, "instruction": None if listed is None else listed.text,
            "line": listed.line if listed is not None else None if number is None or at_end else self._line_before(loop),
            "output": served.traffic.written.decode("utf-8", "replace"), "read": len(served.traffic.read),
            "ended": end.reason if end is not None and at_end else None,
            "message": end.message if end is not None and at_end else None,
            "loops": None if end is None else end.loops, "known_loops": self.timeline.known,
        }

    def card(self, moment: int) -> tuple[Columns, AnyArray]:
        """The columns that are shown at a moment, and all their rows."""
        with self._lock:
            columns, entries, _ = self._card(*self.place(moment))
            return columns, entries

    def _want(self, columns: Sequence[int]) -> None:
        for column in columns:
            if column not in range(self.layout.columns):
                raise PunchcardError(f"column {column}: the card has {self.layout.columns}, counted from 0")
        new = set(columns) - self._wanted - set(self.columns_shown.tolist())
        if new and not self.small:
            if len(self._wanted) + len(new) > MOST_WANTED:
                self._wanted.clear()
            if len(new) > MOST_WANTED:
                raise PunchcardError(f"{len(new)} columns: at most {MOST_WANTED} can be shown beside those that always are")
            self._wanted |= new
            self._inside.clear()

    def _card(self, loop: int, stage: int) -> tuple[Columns, AnyArray, list[tuple[int, int]]]:
        """Columns, their entries, and what has changed since the moment before."""
        before: tuple[Columns, AnyArray] | None = None
        if stage:
            inside = self.inside(loop)
            columns, entries = inside.columns, inside.stages[stage]
            before = columns, inside.stages[stage - 1]
        else:
            columns = self._columns_at(loop)
            entries = entries_of(self.timeline.served(loop).card, None if self.small else columns)
            if loop and (last := self._inside_if_possible(loop - 1)) is not None:
                before = last.columns, last.stages[-2]
        if before is None:
            return columns, entries, []
        both, here, there = np.intersect1d(columns, before[0], assume_unique=True, return_indices=True)
        rows, places = np.nonzero(_differ(entries[:, here], before[1][:, there]))
        return columns, entries, list(zip(rows.tolist(), both[places].tolist(), strict=True))

    def _columns_at(self, loop: int) -> Columns:
        """The columns that are shown between two loops: what the one before changed, and what the next one needs."""
        if self.small:
            return self.columns_shown
        found = [self.columns_shown, np.array(sorted(self._wanted), np.intp)]
        around = [loop - 1] * (loop > 0) + [loop] * (not self._over(loop))
        for inside in map(self._inside_if_possible, around):
            if inside is not None:
                found.append(inside.columns)
        return np.unique(np.concatenate(found))

    def _inside_if_possible(self, loop: int) -> LoopStages | None:
        """A card between two loops can be shown whether the loops can or not."""
        try:
            return self.inside(loop)
        except PunchcardError:
            return None

    def _over(self, loop: int) -> bool:
        return self.timeline.end is not None and loop >= self.timeline.end.loops

    def inside(self, loop: int) -> LoopStages:
        """What happens in a loop."""
        found = self._inside.get(loop)
        if found is None:
            found = self._small_loop(loop) if self.small else self._large_loop(loop)
            self._inside[loop] = found
            if len(self._inside) > LOOPS_KEPT:
                self._inside.popitem(last=False)
        return found

    def _small_loop(self, loop: int) -> LoopStages:
        """The equation in all columns. Where a host has no part in it, that is the next card, too."""
        found = whole(self.machine.weights, entries_of(self.timeline.served(loop).card), exact=self.exact)
        if self.exact and not self.machine.has_ports and loop + 1 < self.timeline.last and loop >= self.timeline.known:
            try:
                card = PackedCard.of(self.layout, found.stages[-1], self.machine.precision.name)
            except PunchcardError:
                return found  # not a card that the layout declares: an engine has to say what comes of it
            ended = any(bool(self.layout.matches(card, pattern)) for pattern in self.machine.halting)
            self.timeline.put(Mark(card, loop + 1, "dense", ended))
        return found

    def _large_loop(self, loop: int) -> LoopStages:
        """Some columns: those that the loop changes, those that are shown, and those that they need."""
        card, after = self.timeline.served(loop).card, self.timeline.mark(loop + 1)
        changed = differing(card, after.raw_card)
        asked = np.array(sorted(self._wanted), np.intp)
        wanted = np.unique(np.concatenate([self.columns_shown, self._active, changed, asked]))
        try:
            found = self._subset.loop(card, wanted)
            if not self._by_host(found, after) and not np.allclose(
                    found.stages[-1], entries_of(after.raw_card, found.columns), rtol=1e-6, atol=1e-6):
                raise NeedsAllColumns("the end of the loop is not what the engine has")
        except NeedsAllColumns as why:
            if self.layout.columns > MOST_IN_FULL:
                raise PunchcardError(f"loop {loop} of a card of {self.layout.columns} columns cannot be shown layer by "
                                     f"layer: {why}") from None
            return in_all_columns(self.machine.weights, self.layout, card, wanted)
        kept = np.setdiff1d(found.columns, np.setdiff1d(self._subset.witnesses, wanted))
        return LoopStages(kept, [stage[:, np.searchsorted(found.columns, kept)] for stage in found.stages])

    def _by_host(self, found: LoopStages, after: Mark) -> bool:
        """Whether a host may have changed the card after a loop."""
        if not self.machine.has_ports:
            return False
        for pattern in self.machine.design.events(self.machine.sizes):
            column = np.searchsorted(found.columns, self.layout.region(pattern.region).start)
            bits = found.stages[-1][self.layout.rows(pattern.rows), column]
            if all(want == 0 or abs(bit - want) < 0.5 for want, bit in zip(pattern.bits, bits.tolist(), strict=True)):
                return True
        return False

    # Values

    def _values(self, columns: Columns, entries: AnyArray) -> list[str]:
        place = {column: i for i, column in enumerate(columns.tolist())}
        kept: dict[int, list[float]] = {}

        def at(column: int) -> list[float]:
            if column not in kept:
                kept[column] = entries[:, place[column]].tolist()
            return kept[column]

        return [shown.text(self.layout, at) for shown in self.shown]

    def _counter(self, loop: int) -> int | None:
        """The program counter when a loop begins."""
        if self.counter is None:
            return None
        card = self.timeline.served(loop).card
        text = self.counter.text(self.layout, lambda column: entries_of(card, np.array([column]))[:, 0].tolist())
        return None if text == UNREADABLE else int(text)

    def _line_before(self, loop: int) -> int | None:
        """The line of the last instruction before a loop that is listed: it uses what is not, such as a shared routine."""
        if loop not in self._lines:
            found: list[int | None] = [None]

            def look(at: int, card: Card) -> bool:
                number = search.counter_of(self, card) if at < loop else None
                if number is not None and number in self.instructions:
                    found.append(self.instructions[number].line)
                return at >= loop

            self.timeline.watch(max(0, loop - LOOKED_BACK), loop, look, PATIENCE)
            self._lines[loop] = found[-1]
        return self._lines[loop]

    # Heads and formulas

    @_one_at_a_time
    def attention(self, loop: int, layer: int, head: int, columns: Sequence[int] = ()) -> AttentionReply:
        """Who takes from whom in a head."""
        self._want(columns)
        loop = self._loop(loop, layer)
        weights = self.machine.weights.layers[layer]
        if head not in range(weights.heads):
            raise PunchcardError(f"head {head}: layer {layer} has {weights.heads}, counted from 0")
        inside = self.inside(loop)
        card, asking = inside.stages[2 * layer], inside.columns
        moves: list[tuple[int, int, float, float, float | None]] = []
        matrix = None
        if self.small:
            scores = (weights.key[head] @ card).T @ (weights.query[head] @ card)
            found = softmax(weights.temperature[head] * scores)
            sources = np.arange(len(found))
            matrix = in_base64(found) if len(found) <= MATRIX_COLUMNS else None
        else:
            self._subset.take(self.timeline.served(loop).card)
            sources, found, scores = self._subset.weights_of(layer, head, card, asking, slice(None))
        for j, target in enumerate(asking.tolist()):
            column = scores[:, j]
            for i in np.flatnonzero(found[:, j] >= LEAST_WEIGHT).tolist():
                source = int(sources[i])
                lower = column[column < column[source]]
                gap = float(column[source] - lower.max()) if len(lower) else None
                moves.append((source, target, float(found[i, j]), float(column[source]), gap))
        return {"loop": loop, "layer": layer, "head": head, "temperature": float(weights.temperature[head]),
                "columns": asking.tolist(), "moves": moves, "matrix": matrix}

    def _loop(self, loop: int, layer: int) -> int:
        if layer not in range(self.layers):
            raise PunchcardError(f"layer {layer}: the model has {self.layers}, counted from 0")
        if loop < 0:
            raise PunchcardError(f"loop {loop}: loops are counted from 0")
        reached = self.place(loop * self.per_loop)[0]
        if self._over(reached):
            if reached == 0:
                raise PunchcardError("the run has no loop to show: it ends before the first")
            return reached - 1
        return reached

    @_one_at_a_time
    def explain(self, moment: int, column: int) -> ExplainReply:
        """What the step that ends at a moment did to a column, formula by formula."""
        self._want([column])
        loop, stage = self.place(moment)
        moment = loop * self.per_loop + stage
        if moment == 0:
            raise PunchcardError("moment 0 is the punched card: no step has been made yet")
        step = self.inside(loop - (stage == 0))
        number = stage or self.per_loop
        place = int(np.searchsorted(step.columns, column))
        before, after = (step.stages[at][:, place] for at in (number - 1, number))
        layer, attends = (number - 1) // 2, number % 2 == 1
        if attends:
            formulas = self.formula_texts.heads(layer, before, self._taken(loop, layer, step, place))
        else:
            formulas = self.formula_texts.assignments(layer, before, after)
        host = False
        if stage == 0:
            now = entries_of(self.timeline.served(loop).card, np.array([column]))[:, 0]
            host, after = bool(_differ(now, after).any()), now
        return {"moment": moment, "column": column, "name": self.machine.column_name(column, self.program),
                "before": in_base64(before[:, None]), "after": in_base64(after[:, None]), "formulas": formulas, "host": host}

    def _taken(self, loop: int, layer: int, step: LoopStages, place: int) -> list[AnyArray]:
        """What each head adds to a column."""
        weights, card = self.machine.weights.layers[layer], step.stages[2 * layer]
        if not self.small:
            self._subset.take(self.timeline.served(loop).card)
        added = []
        for head in range(weights.heads):
            if self.small:
                scores = (weights.key[head] @ card).T @ (weights.query[head] @ card[:, place])
                taken = card @ softmax(weights.temperature[head] * scores[:, None])
            else:
                part = slice(place, place + 1)
                sources, found, _ = self._subset.weights_of(layer, head, card, step.columns, part)
                taken = card[:, np.searchsorted(step.columns, sources)] @ found
            added.append((weights.value[head] @ taken)[:, 0])
        return added

    @_one_at_a_time
    def formulas(self, layer: int) -> FormulasReply:
        """The formulas of a layer."""
        self._loop(0, layer)
        return self.formula_texts.layer(layer)

    @_one_at_a_time
    def weights(self, layer: int, head: int | None = None, unit: int | None = None) -> WeightsReply:
        """The weights of a head or a hidden unit that are not 0, by the names of rows."""
        self._loop(0, layer)
        return self.formula_texts.weights(layer, head, unit)

    # Where the run goes

    @_one_at_a_time
    def explore(self, seconds: float = 0.2) -> ExploreReply:
        """Run ahead for some time at most, to learn where the run ends."""
        if not 0 <= seconds <= 60:
            raise PunchcardError(f"seconds={seconds:g}: it must be 0 to 60")
        self.timeline.explore(seconds)
        end = self.timeline.end
        return {"known_loops": self.timeline.known, "loops": None if end is None else end.loops,
                "ended": None if end is None else end.reason, "message": None if end is None else end.message}

    @_one_at_a_time
    def find(self, what: str, moment: int, forward: bool = True, *, instructions: Sequence[int] = (), rows: str = "",
             column: int = 0, seconds: float = 5.0) -> int | None:
        """The next moment, or the last one before, at which something happens; None: it does not, or not soon.

        what   "halt", "port", "branch", "breakpoint" (one of `instructions`), "change" (of `rows` in a `column`)
        """
        return search.find(self, what, moment, forward=forward, instructions=instructions, rows=rows, column=column,
                            seconds=seconds)


def _differ(one: AnyArray, other: AnyArray) -> Any:
    return (one != other) & ~(np.isnan(one) & np.isnan(other))


def _plain(value: Any) -> Any:
    """What JSON can hold."""
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)


def session_of(machine: Machine[Any, Any], program: Any, file: Path | None = None, **options: Any) -> Session:
    """A session for a program from a file, whose text is shown where it is text."""
    return Session(machine, program, source=source_text(file), name=file.name if file is not None else "", **options)


def source_text(file: Path | None) -> str | None:
    """The text of a program's file; None where it is not text."""
    from punchcard.files import read_whole

    if file is None:
        return None
    try:
        return read_whole(file, "program").decode("utf-8")
    except (UnicodeDecodeError, PunchcardError):
        return None
