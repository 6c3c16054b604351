"""Many runs side by side on one machine. Each is a run as `Machine.run` makes it, and ends by itself.

All runs begin together, so those that have not ended have made the same loops, and are cut into the same parts.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from punchcard.card.layout import Card, Pattern
from punchcard.engines import BatchRunner, Port, Run, Watch, prepare, prepare_batch
from punchcard.engines.base import count_from
from punchcard.errors import LoweringError, PunchcardError
from punchcard.machines.ports import Host
from punchcard.machines.result import Batch, Result
from punchcard.machines.running import Mark, PeriodicAction, RunOutcome, part_of, run_parts
from punchcard.machines.streams import Input, Traffic, reader, writer

if TYPE_CHECKING:
    from punchcard.machines.base import Machine


@dataclass
class Entrant:
    """One of the runs: where it stands, who serves and who looks at it, why it ended, and what went wrong."""

    program: Any
    begin: Mark
    host: Host | None
    mark: Mark
    looks: Sequence[PeriodicAction] = ()
    reason: Literal["matched", "interrupted", "stopped"] | None = None
    error: PunchcardError | None = None
    made: Counter[str] = field(default_factory=Counter)

    @property
    def ports(self) -> Mapping[Pattern, Port]:
        return {} if self.host is None else {pattern: self._minding(port) for pattern, port in self.host.ports.items()}

    def _minding(self, port: Port) -> Port:
        """A port whose error stops this run and no other."""
        def call(loop: int, card: Any) -> bool:
            try:
                return port(self.mark.loops + loop, card)
            except PunchcardError as error:
                self.error = error
                return False

        return call

    def advance(self, ran: Run) -> None:
        """Note a part of the run."""
        self.made.update(ran.made)
        if ran.reason == "declined":
            self.error = LoweringError(f"loop {self.mark.loops + ran.loops + 1}: {'; '.join(ran.notes)}; the engine 'auto' "
                                       "goes on with a slower one")
        ended = ran.reason == "matched" or (self.host is not None and self.host.ended in ("halted", "fault"))
        engine = max(self.made, key=self.made.__getitem__, default=ran.engine)
        self.mark = Mark(ran.raw_card, self.mark.loops + ran.loops, engine, ended,
                         Traffic() if self.host is None else self.host.traffic)
        self.reason = None if ran.reason == "loops" else "stopped" if ran.reason == "declined" else ran.reason

    def look(self, *, last: bool) -> None:
        """What looks at marks may find that the program breaks a promise, or has broken it."""
        try:
            for at in self.looks:
                if last or self.mark.loops % at.every == 0:
                    at.act(self.mark)
        except PunchcardError as error:
            self.error = error


class Runs:
    """The runs of a batch, from the first loop to the last."""

    def __init__(self, machine: Machine[Any, Any], given: Sequence[Any], inputs: Sequence[Input], loops: int) -> None:
        self.machine, self.loops = machine, loops
        packed: dict[int, Card] = {}  # a program that is given often is packed once
        self.entrants = []
        for number, (one, source) in enumerate(zip(given, inputs, strict=True)):
            program = one if machine.kind.is_for(one) else None
            try:
                card = self._card(one) if program is None else packed.get(id(one)) or machine.pack(one)
            except PunchcardError as error:
                raise type(error)(f"{number} of the batch: {error}") from None
            packed[id(one)] = card
            begin = Mark(card)
            host = machine.host(begin, reader(source), writer(None), loops, program)
            if host is not None:
                begin = replace(begin, raw_card=host.begin(card))
            self.entrants.append(Entrant(program, begin, host, begin))

    def _card(self, one: Any) -> Card:
        """A card of this machine."""
        if not hasattr(one, "ndim"):
            self.machine.check_type(one)
        self.machine.layout.check(one)
        if one.ndim != 2:
            raise PunchcardError(f"a card of shape {tuple(one.shape)}: give cards one by one, or as one tensor of them")
        card: Card = one
        return card

    def guard(self, engine: str) -> None:
        """Look whether programs keep their promises, at marks."""
        for entrant in self.entrants:
            if entrant.program is not None:
                watch, looks = self.machine.guard(
                    entrant.program, entrant.begin.raw_card, entrant.begin, partial(self._again, engine), every_loop=False)
                entrant.looks = [*looks, *(() if watch is None else [PeriodicAction(1, partial(_see, watch))])]

    def _again(self, engine: str, mark: Mark, until: int, watch: Watch | None) -> Mark:
        machine = self.machine
        anew = prepare(engine, machine.weights, machine.layout, mark.raw_card, fall_back=True, cache=machine.engine_cache)
        return run_parts(anew, mark, until, until=machine.halting, watch=watch).mark

    def run(self, runner: BatchRunner, interrupted: Callable[[], bool] | None,
            progress: Callable[[int], None] | None) -> None:
        """In parts, each of all runs that have not ended."""
        entrants, done, before = self.entrants, 0, 0
        ports = [entrant.ports for entrant in entrants]
        going = list(range(len(entrants)))
        while True:
            part = part_of(done, self.loops, [at for i in going for at in entrants[i].looks])
            runs = runner.run(part, until=self.machine.halting, ports=ports if any(ports) else None, among=going,
                             interrupted=interrupted, progress=progress and count_from(before, progress))
            done, before = done + part, before + sum(ran.loops for ran in runs)
            for i, ran in zip(going, runs, strict=True):
                entrants[i].advance(ran)
                entrants[i].look(last=bool(entrants[i].reason) or done >= self.loops)
            going = [i for i in going if not entrants[i].reason and entrants[i].error is None]
            if not going or done >= self.loops:
                return

    def result(self, entrant: Entrant) -> Result[Any]:
        """The end of one run. One that went wrong has left a card that may not mean anything to its program."""
        course = RunOutcome(entrant.mark, entrant.reason or "loops")
        if entrant.error is None:
            return self.machine.result(entrant.program, course, entrant.begin, entrant.host)
        found = self.machine.result(None, course, entrant.begin, entrant.host)
        return replace(found, reason="fault", fault=entrant.error)


def _see(watch: Watch, mark: Mark) -> None:
    watch(mark.loops, mark.raw_card)


def run_batch(
    machine: Machine[Any, Any], given: Iterable[Any], *, engine: str, max_steps: int | None,
    inputs: Sequence[Input] | None, interrupted: Callable[[], bool] | None, progress: Callable[[int], None] | None,
    guarded: bool, threads: int | None, device: str | None,
) -> Batch[Any]:
    """See `Machine.run_batch`."""
    wanted, loops, name = list(given), machine.last_loop(max_steps), machine.engine_for(engine)
    if not wanted:
        raise PunchcardError("the batch is empty: give one program or more")
    if inputs is not None and len(inputs) != len(wanted):
        raise PunchcardError(f"{len(inputs)} inputs for a batch of {len(wanted)}: give one for each")
    runs = Runs(machine, wanted, inputs or [b""] * len(wanted), loops)
    cards = [entrant.begin.raw_card for entrant in runs.entrants]
    try:
        runner = prepare_batch(name, machine.weights, machine.layout, cards, loops=loops, cache=machine.engine_cache,
                              threads=threads, device=device)
    except LoweringError as why:
        advice = "'auto' takes a slower one" if device != "cuda" else "without device='cuda' the CPU runs it"
        raise LoweringError(f"the engine {name!r} declines: {why}; {advice}") from None
    if guarded:
        runs.guard(runner.engine)
    started, compiled = time.perf_counter(), runner.compile_seconds
    runs.run(runner, interrupted, progress)
    seconds = time.perf_counter() - started - (runner.compile_seconds - compiled)
    return Batch(tuple(map(runs.result, runs.entrants)), runner.engine, max(0.0, seconds), runner.compile_seconds,
                 runner.threads, runner.notes)
