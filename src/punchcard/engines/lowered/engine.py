"""The lowered engine: a model and its layout become machine code, and a loop costs about a hundred nanoseconds.

It applies to cards that keep what their layout declares. A loop in which a check fails (a bit that is not ±1, a number
beyond its limit, a pointer that matches nothing) is not made by this engine but by a slower one, and the run says so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Literal
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from punchcard.card.layout import Layout, Pattern
from punchcard.engines.base import Port, Run, Stops, Watch
from punchcard.engines.lowered.analysis.columns import limit_of
from punchcard.engines.lowered.analysis.tables import CLOSED
from punchcard.engines.lowered.codegen.emit import MOST_CODES, REPORT_CODES
from punchcard.engines.lowered.computer import CASES, LINE, REALS, Computer
from punchcard.engines.lowered.graph.plan import Table
from punchcard.engines.scratchpad import engine as scratchpad
from punchcard.errors import LoweringError, PunchcardError
from punchcard.transformer.model import LoopedTransformer

SLICE_SECONDS = 0.05
"""Between two questions whether the run is interrupted."""
SMALL_CARD = 1 << 16
LOOK_SHARE = 20
"""A look at the whole of a card with more entries may take, after a port, one part in so many of the time."""
MOST_FAILURES = 16
"""Loops in a row that a slower engine makes before it is given the rest."""
DONE, FAILED, MATCHED, UNKNOWN = range(4)

_computers: WeakKeyDictionary[LoopedTransformer, list[Computer]] = WeakKeyDictionary()


def run(
    model: LoopedTransformer,
    card: Tensor,
    loops: int,
    *,
    facts: Layout | None = None,
    until: Pattern | Sequence[Pattern] = (),
    ports: Mapping[Pattern, Port] | None = None,
    watch: Watch | None = None,
    interrupted: Callable[[], bool] | None = None,
    progress: Callable[[int], None] | None = None,
) -> Run:
    """See `Engine`. What can't be lowered runs on the scratchpad engine, with a note."""
    stops = Stops.of(card, facts, until, ports)
    try:
        cards = card.reshape(-1, *card.shape[-2:])
        if not len(cards):
            raise LoweringError("the batch is empty")
        lives = [LiveCard(model, *_computer(model, facts, one), stops) for one in cards]
    except LoweringError as why:
        ran = scratchpad.run(model, card, loops, facts=facts, until=until, ports=ports, watch=watch,
                             interrupted=interrupted, progress=progress)
        return _noted(ran, (f"not lowered: {why}",))
    host = Host(stops, watch, interrupted, progress, card.shape)
    return host.run(lives, loops)


def lower(model: LoopedTransformer, card: Tensor, facts: Layout | None) -> Computer:
    """The code for a model and cards like this one, or a `LoweringError` that says what is in the way."""
    return _computer(model, facts, card)[0]


def _computer(model: LoopedTransformer, facts: Layout | None, card: Tensor) -> tuple[Computer, Tensor, float]:
    """Code for a card, new or known; the card; and the seconds that it took to prepare."""
    if facts is None:
        raise LoweringError("it needs `facts`, the card's layout")
    if model.dtype not in REALS or card.dtype != model.dtype:
        raise LoweringError(f"there is no code for {str(card.dtype).removeprefix('torch.')}, only for float32 and float64")
    if card.device.type != "cpu":
        raise LoweringError(f"the card is on {card.device.type}, the code runs on the cpu")
    wrong = facts.violations(card)
    if wrong:
        raise LoweringError(f"the card is not what its layout declares: {wrong[0]}")
    started = time.perf_counter()
    numbers = card.detach().numpy().astype(np.float64)
    for block in facts.blocks:
        most, limit = float(np.max(np.abs(numbers[facts.rows(block.name)]))), limit_of(block, "real")
        if not most <= limit:
            raise LoweringError(f"{block.name} holds {most:g}, more than its limit {limit:g}")
    known = [computer for computer in _computers.get(model, ()) if computer.is_of(model)]
    _computers[model] = known
    for computer in known:
        if computer.fits(facts, numbers):
            return computer, card, time.perf_counter() - started
    computer = Computer(model, facts, numbers)
    known.append(computer)
    return computer, card, time.perf_counter() - started


class LiveCard:
    """One card being run: the buffer that the code works on, and what it reported."""

    def __init__(self, model: LoopedTransformer, computer: Computer, card: Tensor, seconds: float, stops: Stops) -> None:
        self.model, self.computer, self.seconds = model, computer, seconds
        layout = computer.layout
        self.columns, self.width = layout.columns, layout.width
        # A missing column has the number -1: it may be read, before a check sees it, in the space that stands in front.
        whole = np.zeros(self.width + computer.size + 2 * LINE, dtype=computer.number)
        first = self.width + -(whole.ctypes.data // whole.itemsize + self.width) % LINE
        self.buffer = whole[first : first + computer.size]
        self.card = torch.from_numpy(self.buffer[: self.columns * self.width].reshape(self.columns, self.width)).T
        self.visits = np.zeros(len(computer.columns.quiet) + 1 + MOST_CODES, dtype=np.int32)
        self.report = np.zeros(REPORT_CODES + 1 + 2 * MOST_CODES, dtype=np.int64)
        self.wanted: list[tuple[list[int], list[int]]] = []
        """Where on the card the bits of each pattern are, and what they should be."""
        places, signs = [len(stops.until) + len(stops.ports)], [0.0]
        for pattern in (*stops.until, *stops.ports):
            first, column = layout.rows(pattern.rows).start, layout.region(pattern.region).start
            rows = [first + i for i, bit in enumerate(pattern.bits) if bit]
            bits = [bit for bit in pattern.bits if bit]
            self.wanted.append(([computer.places.at(column, row) for row in rows], bits))
            places += [len(rows), *(computer.place(row, column) for row in rows)]
            signs += [0.0, *bits]
        self.patterns, self.signs = np.array(places, dtype=np.int64), np.array(signs, dtype=computer.number)
        self.nothing = np.zeros(1, dtype=np.int64)
        self.looked_at = self.look_seconds = 0.0
        self.take(card)

    def take(self, card: Tensor) -> None:
        """Begin with this card. What does not keep the facts is left to a slower engine, loop by loop."""
        if card is not self.card:
            self.card.copy_(card)
        self._look()
        self._begin()

    def stands(self, number: int) -> bool:
        """Whether a pattern stands on the card that is shown, which a port may have changed."""
        places, bits = self.wanted[number]
        return bool(np.all(np.abs(self.buffer[places] - bits) < 0.5))

    def take_back(self) -> None:
        """Go on after a port, which may have changed the card.

        The whole card is looked at, unless it is so large that this takes long: then its busy columns every time, and all
        of it now and then and at the end.
        """
        if self.card.numel() <= SMALL_CARD or time.perf_counter() - self.looked_at > LOOK_SHARE * self.look_seconds:
            self._look()
        else:
            self.unseen = True
            self.fits = self.computer.facts.hold(self.card.numpy(), everywhere=False)
        self._begin()

    def seen(self) -> None:
        """The last look at a card that ports have changed."""
        if self.unseen:
            self._look()
            if not self.fits:
                raise PunchcardError("a port left something on the card that its layout does not declare: "
                                     "what came after is not what the model computes")

    def _look(self) -> None:
        started = time.perf_counter()
        self.fits, self.unseen = self.computer.facts.hold(self.card.numpy()), False
        self.looked_at = time.perf_counter()
        self.look_seconds = self.looked_at - started

    def _begin(self) -> None:
        self.computer.begin(self.buffer)
        if self.computer.quiet.settles:
            quiet = self.computer.columns.quiet
            self.visits[0], self.visits[1 : len(quiet) + 1] = len(quiet), quiet

    def show(self) -> Tensor:
        """The card as it is now; a view that the next loop changes."""
        self.computer.finish(self.buffer)
        return self.card

    def advance(self, loops: int, *, stop: bool = True) -> tuple[int, int | None]:
        """Make up to `loops` loops; how many were made, and the number of the pattern that then stands on the card."""
        computer, made = self.computer, 0
        if not self.fits:
            return 0, None
        patterns = self.patterns if stop else self.nothing
        while made < loops:
            made += computer.call(
                self.buffer.ctypes.data_as(computer.real_pointer), computer.driver_pointers.ctypes.data,
                self.visits.ctypes.data, self.report.ctypes.data, loops - made, patterns.ctypes.data,
                self.signs.ctypes.data, computer.cases.ctypes.data, CASES,
            )
            status = int(self.report[0])
            if status == MATCHED:
                return made, int(self.report[1])
            if status == UNKNOWN:
                before = computer.compile_seconds
                added = computer.add_case(int(self.report[1]))
                self.seconds += computer.compile_seconds - before
                if not added:
                    return made, None
            elif status == FAILED and not self._mended():
                return made, None
        return made, None

    def why(self) -> str:
        """Why the last loop failed, as far as the report tells."""
        if not self.fits:
            return "the card held something that its layout does not declare, or what never changes had changed"
        if self.report[0] == UNKNOWN:
            return self.computer.refused[int(self.report[1])]
        asked, pairs = self._asked()
        for number, code in pairs:
            table = asked[number]
            if table.kind == "find" and self.computer.filled[table][code] < 0:
                return f"a pointer matched no column (layer {table.layer + 1}, head {table.head + 1})"
            if table.kind == "store" and self.computer.filled[table][code] == CLOSED:
                return f"a pointer led to a column that should not change (layer {table.layer + 1}, head {table.head + 1})"
        return "a bit was not ±1, a number was beyond its limit, or two columns stored to one"

    def _asked(self) -> tuple[list[Table], list[tuple[int, int]]]:
        """The tables of the loop that failed, and which of them was asked for which code."""
        asked = self.computer.driver_tables
        if self.computer.selectors and not self.report[2]:
            asked = self.computer.known[int(self.report[1])][1]
        count = int(self.report[REPORT_CODES])
        pairs = self.report[REPORT_CODES + 1 : REPORT_CODES + 1 + 2 * count].reshape(-1, 2)
        return asked, [(int(table), int(code)) for table, code in pairs]

    def _mended(self) -> bool:
        """Whether a loop failed only because a table had not been asked before."""
        return self.computer.look_up(*self._asked())


class Host:
    """Runs one card, or a batch of them in step, and serves patterns, watchers and interrupts."""

    def __init__(self, stops: Stops, watch: Watch | None, interrupted: Callable[[], bool] | None,
                 progress: Callable[[int], None] | None, shape: torch.Size) -> None:
        self.stops, self.watch, self.interrupted, self.progress, self.shape = stops, watch, interrupted, progress, shape
        self.slow: dict[str, int] = {}

    def run(self, lives: list[LiveCard], loops: int) -> Run:
        made, piece = 0, 1 << 10
        while made < loops:
            count = 1 if self.watch is not None else min(piece, loops - made)
            started = time.perf_counter()
            done, matched = self._advance(lives, count)
            made += done
            spent = time.perf_counter() - started
            piece = max(64, min(piece * 4, int(done * SLICE_SECONDS / max(spent, 1e-6)))) if done == count else piece
            if self.watch is not None:
                self.watch(made, self._card(lives).clone())
            if matched is not None and matched < len(self.stops.until):
                return self._end(lives, made, "matched", self.stops.until[matched])
            if matched is not None:
                stopped = self._serve(lives[0], made)
                if stopped is not None:
                    return self._end(lives, made, "stopped", stopped)
            if self.progress is not None:
                self.progress(made)
            if self.interrupted is not None and self.interrupted():
                return self._end(lives, made, "interrupted")
        return self._end(lives, made, "loops")

    def _serve(self, live: LiveCard, made: int) -> Pattern | None:
        card = live.show()
        stopped = None
        for number, (pattern, port) in enumerate(self.stops.ports.items(), start=len(self.stops.until)):
            if live.stands(number) and not port(made, card):
                stopped = pattern
                break
        live.take_back()
        return stopped

    def _advance(self, lives: list[LiveCard], count: int) -> tuple[int, int | None]:
        """All cards by the same number of loops, at most `count`; a pattern only when each shows one."""
        if len(lives) == 1:
            return self._one(lives[0], count, stop=True)
        made = [0] * len(lives)
        matched: list[int | None] = [None] * len(lives)
        target = 0  # no card stops before this loop, and none goes beyond the largest one
        while True:
            for i, live in enumerate(lives):
                while made[i] < target and made[i] < count:
                    made[i] += self._one(live, target - made[i], stop=False)[0]
                    matched[i] = None
                if matched[i] is None and self.stops.until and made[i] < count:
                    if not (made[i] and made[i] == target and self._shows(live, i, matched)):
                        done, matched[i] = self._one(live, count - made[i], stop=True)
                        made[i] += done
                elif not self.stops.until:
                    made[i] += self._one(live, count - made[i], stop=False)[0]
            if len(set(made)) == 1:
                every = all(m is not None for m in matched)
                return made[0], (matched[-1] if every else None)
            target = max(made)

    def _shows(self, live: LiveCard, number: int, matched: list[int | None]) -> bool:
        found = self.stops.matched(live.show())
        matched[number] = None if found is None else self.stops.until.index(found)
        return found is not None

    def _one(self, live: LiveCard, count: int, *, stop: bool) -> tuple[int, int | None]:
        """One card; loops that fail are made by the scratchpad engine."""
        made, failures = 0, 0
        while made < count:
            done, matched = live.advance(count - made, stop=stop)
            made += done
            if matched is not None:
                return made, matched
            if made == count:
                break
            failures = failures + 1 if done == 0 else 1
            loops = 1 if failures <= MOST_FAILURES else count - made
            ran = scratchpad.run(live.model, live.show().clone(), loops, facts=self.stops.facts,
                                 until=self.stops.until if stop else (),
                                 ports={pattern: lambda *_: False for pattern in self.stops.ports} if stop else None)
            made += ran.loops
            self.slow[live.why()] = self.slow.get(live.why(), 0) + ran.loops
            live.take(ran.card)
            if stop and self.stops.facts is not None:
                for number, pattern in enumerate((*self.stops.until, *self.stops.ports)):
                    if bool(self.stops.facts.matches(live.card, pattern)):
                        return made, number
        return made, None

    def _card(self, lives: list[LiveCard]) -> Tensor:
        if len(self.shape) == 2:
            return lives[0].show()
        return torch.stack([live.show() for live in lives]).reshape(self.shape)

    def _end(self, lives: list[LiveCard], made: int,
             reason: Literal["matched", "loops", "interrupted", "stopped"], matched: Pattern | None = None) -> Run:
        card = self._card(lives).contiguous().clone()
        for live in lives:
            live.seen()
        notes = tuple(f"{count} loops were made by the scratchpad engine: {why}" for why, count in self.slow.items())
        return Run(card, made, reason, "lowered", matched, notes, sum(live.seconds for live in lives))


def _noted(ran: Run, notes: tuple[str, ...]) -> Run:
    return replace(ran, notes=(*notes, *ran.notes))
