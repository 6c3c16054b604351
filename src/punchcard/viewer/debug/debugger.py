"""A debugger without a screen: a place in a run, breakpoints, watched values, and how to move.

    debugger = Debugger(Session(machine, program))
    debugger.step()                  one loop;  back(), half(), layer() and go(moment) as well
    debugger.toggle(line=9)          a breakpoint
    debugger.seek("breakpoint")      on to the next one, or to the end

All that it knows it asks of a session, so it works for every machine.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeAlias

from punchcard.card.formats import AnyArray
from punchcard.errors import PunchcardError, did_you_mean
from punchcard.viewer.protocol import decoded
from punchcard.viewer.session import Session

Aim: TypeAlias = Literal["halt", "port", "branch", "breakpoint", "change"]
FIRST_PART, LONGEST_PART, MOST_IDLE = 0.5, 4.0, 20
"""Seconds of a part of a search, which doubles its steps on its way; and parts in which it may come no further."""
STAGES = ("before attention", "before feed-forward")


class ListedValue(NamedTuple):
    """A value as the debugger lists it, with its place in `about`. `changed`: it is not what it was before the last move."""

    number: int
    name: str
    group: str
    text: str
    changed: bool
    watched: bool


class NamedMove(NamedTuple):
    """A column that takes from another in a head, by what both are called. `gap` is None if every key has the same score."""

    target: str
    source: str
    weight: float
    score: float
    gap: float | None


class Debugger:
    """A place in a run, and the ways to continue from there."""

    def __init__(self, session: Session) -> None:
        self.session, self.about = session, session.about()
        self.breakpoints: set[int] = set()
        """Numbers of instructions."""
        self.watched: list[int] = []
        """Numbers of values, as `about` lists them."""
        self.layer_chosen, self.head = 0, 0
        self._values: list[str] = []
        self.state = session.state(0)
        self.go(0)

    # Moving

    @property
    def moment(self) -> int:
        return int(self.state["moment"])

    @property
    def loop(self) -> int:
        return self.moment // self.session.per_loop

    @property
    def ended(self) -> bool:
        """Whether this is the last moment of the run."""
        return self.state["ended"] is not None

    def go(self, moment: int) -> None:
        """To a moment; one beyond the end is the last."""
        self._values = list(self.state["values"])
        self.state = self.session.state(max(0, moment))
        self.layer_chosen = self.moment // 2 % self.session.layers
        self.head = min(self.head, max(0, self.heads - 1))

    def step(self) -> None:
        """To the beginning of the next loop."""
        self.go((self.loop + 1) * self.session.per_loop)

    def back(self) -> None:
        """To the beginning of this loop, or of the one before."""
        self.go((self.moment - 1) // self.session.per_loop * self.session.per_loop)

    def half(self, forward: bool = True) -> None:
        """One attention or one feed-forward on, or back."""
        self.go(self.moment + (1 if forward else -1))

    def next_layer(self) -> None:
        """To the beginning of the next layer."""
        self.go(self.moment // 2 * 2 + 2)

    def go_to_loop(self, text: str) -> None:
        """To the beginning of a loop, counted from 0."""
        if not text.strip().isdecimal() or len(text.strip()) > 18:
            raise PunchcardError(f"loop {text!r}: write a whole number, 0 or more")
        self.go(int(text) * self.session.per_loop)

    def seek(self, what: Aim, *, stop: Callable[[], bool] = lambda: False) -> bool:
        """On to the next of something; False if there is none, and then the place stays.

        A session looks at a part of a long run at a time; between two parts `stop` is asked.
        """
        moment = self._changed(stop) if what == "change" else self._look(what, self.moment, self._wanted(what)[0], stop)
        if moment is not None:
            self.go(moment)
        return moment is not None

    def _changed(self, stop: Callable[[], bool]) -> int | None:
        """The beginning of the loop at which a watched value is another.

        In the middle of a loop a value may not be readable yet, or come back: what counts is how a loop leaves it.
        """
        per_loop, moment, was = self.session.per_loop, self.moment, self.state["values"]
        while True:
            found = [self._look("change", moment, given, stop) for given in self._wanted("change")]
            if all(moment is None for moment in found):
                return None
            moment = -(-min(moment for moment in found if moment is not None) // per_loop) * per_loop
            state = self.session.state(moment)
            if any(state["values"][number] != was[number] for number in self.watched):
                return moment
            if state["ended"] is not None:
                return None

    def _wanted(self, what: Aim) -> list[dict[str, Any]]:
        """What is looked for, beside its kind."""
        if what == "breakpoint":
            if not self.breakpoints:
                raise PunchcardError("there is no breakpoint: set one on a line with t")
            return [{"instructions": sorted(self.breakpoints)}]
        if what != "change":
            return [{}]
        if not self.watched:
            raise PunchcardError("nothing is watched: choose a value with w")
        shown = [self.session.shown[number] for number in self.watched]
        return [{"rows": value.rows, "column": column} for value in shown
                for column in range(value.column, value.column + value.columns)]

    def _look(self, what: Aim, moment: int, given: dict[str, Any], stop: Callable[[], bool]) -> int | None:
        idle, seconds = 0, FIRST_PART
        while not stop() and idle < MOST_IDLE:
            found = self.session.find(what, moment, seconds=seconds, **given)
            if found is not None:
                return found
            end, reached = self.session.explore(0.0)["loops"], self.session.searched
            if end is not None and reached >= end:
                return None
            idle = idle + 1 if reached * self.session.per_loop <= moment else 0
            moment, seconds = max(moment, reached * self.session.per_loop), min(LONGEST_PART, 2 * seconds)
        return None

    # Breakpoints and watched values

    def toggle(self, line: int) -> bool:
        """Set or take away the breakpoint on a line of the source, from 1; False if no instruction is there."""
        here = {listed.number for listed in self.session.listing.instructions if listed.line == line}
        if not here:
            return False
        self.breakpoints = self.breakpoints - here if here & self.breakpoints else self.breakpoints | here
        return True

    def lines_with_breakpoints(self) -> set[int]:
        return {listed.line for listed in self.session.listing.instructions
                if listed.line is not None and listed.number in self.breakpoints}

    def watch(self, name: str) -> None:
        """Watch a value by its name, or no longer. Of several of one name the group is given too: `tape[2] square`."""
        names = [value.name for value in self.session.shown]
        full = [f"{value.group} {value.name}" for value in self.session.shown]
        if name not in names and name not in full:
            raise PunchcardError(f"no value {name!r}{did_you_mean(name, [*names, *full])}: see the list of values")
        self.watch_number(full.index(name) if name in full else names.index(name))

    def watch_number(self, number: int) -> None:
        """The same by its number in `about`."""
        self.watched = [n for n in self.watched if n != number] if number in self.watched else [*self.watched, number]

    # What one sees

    def place(self) -> str:
        """The place in the run, in words."""
        state = self.state
        ends = f" of {state['loops']:,}" if state["loops"] is not None else ""
        name = self.about["layers"][state["layer"]]["name"]
        where = f"loop {state['loop']:,}{ends}, {name}, {STAGES[state['stage']]}"
        return f"{where}; the run has ended: {state['ended']}" if self.ended else where

    def values(self) -> list[ListedValue]:
        """All values, those that are watched first."""
        found = [ListedValue(number, shown.name, shown.group, text, text != old, number in self.watched)
                 for number, (shown, text, old) in enumerate(zip(
                     self.session.shown, self.state["values"], self._values, strict=True))]
        return [value for value in found if value.watched] + [value for value in found if not value.watched]

    def column_name(self, column: int) -> str:
        """What a column is called."""
        return self.session.column_name(column)

    def card(self) -> tuple[list[int], AnyArray]:
        """The columns that are shown, and their entries: columns by rows."""
        return list(self.state["columns"]), decoded(self.state["entries"], self.about["layout"]["width"]).T

    @property
    def heads(self) -> int:
        """How many heads the chosen layer has."""
        return len(self.about["layers"][self.layer_chosen]["heads"])

    def next_head(self) -> None:
        """Choose the next head of the layer, round and round."""
        self.head = (self.head + 1) % max(1, self.heads)

    def choose_next_layer(self) -> None:
        """Choose the next layer for its attention, without moving."""
        self.layer_chosen = (self.layer_chosen + 1) % self.session.layers
        self.head = min(self.head, max(0, self.heads - 1))

    def moves(self) -> list[NamedMove]:
        """Who takes from whom in the chosen head of this loop, without columns that take from themselves."""
        if not self.heads or self.ended:
            return []
        reply = self.session.attention(self.loop, self.layer_chosen, self.head)
        return [NamedMove(self.column_name(target), self.column_name(source), weight, score, gap)
                for source, target, weight, score, gap in reply["moves"] if source != target]


def require_textual() -> None:
    """Refuse before anything is computed."""
    try:
        import textual  # noqa: F401
    except ImportError:
        raise PunchcardError("the debugger needs textual, which is not installed: pip install 'punchcard[debug]'") from None


def require_terminal() -> None:
    """Refuse a pipe: it has no keys to press."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise PunchcardError("the debugger needs a terminal, and here standard input or output is a file or a pipe: use "
                             "`punchcard run --trace`, or `punchcard view --html FILE`")


def debug(session: Session) -> None:
    """Take over the terminal until the person quits."""
    require_textual()
    require_terminal()
    from punchcard.viewer.debug.app import DebugApp

    DebugApp(Debugger(session)).run()
