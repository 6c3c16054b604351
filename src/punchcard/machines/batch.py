"""Many runs side by side on one machine. Each is a run as `Machine.run` makes it, and ends by itself.

All runs begin together, so those that have not ended have made the same loops, and are cut into the same parts.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

from punchcard.arguments import without_checks
from punchcard.card.layout import Card, Pattern
from punchcard.card.packed_stack import StackedCards
from punchcard.engines import NO_CONTROLS, BatchRunner, Controls, Port, Run, Skip, prepare_batch
from punchcard.engines.batch import BatchPorts
from punchcard.engines.controls import InputBuffer
from punchcard.errors import LoweringError, PunchcardError
from punchcard.garbage import no_garbage_collection
from punchcard.machines.base import AnyMachine, Machine
from punchcard.machines.ports import Host
from punchcard.machines.result import Batch, Readout, Result
from punchcard.machines.running import (
    Mark,
    PeriodicAction,
    RunOutcome,
    declined_error,
    mark_after,
    part_of,
    repeat,
    result_of,
)
from punchcard.machines.streams import Input, reader, writer


@dataclass
class BatchEntry:
    """One run of a batch: its mark, its host and the actions at marks, why it ended, and its error."""

    program: object
    begin: Mark
    host: Host | None
    mark: Mark
    looks: Sequence[PeriodicAction] = ()
    reason: Literal["matched", "interrupted", "stopped"] | None = None
    error: PunchcardError | None = None
    made: dict[str, int] = field(default_factory=dict)

    @property
    def ports(self) -> Mapping[Pattern, Port]:
        """Without input buffers, which no batch looks ahead for: the host serves these too."""
        return {} if self.host is None else {pattern: self._minding(port) for pattern, port in self.host.ports.items()
                                             if not isinstance(port, InputBuffer)}

    def _minding(self, port: Port) -> Port:
        """A port whose error stops this run and no other."""
        def call(loop: int, card: Card) -> bool | Skip:
            try:
                return port(self.mark.loops + loop, card)
            except PunchcardError as error:
                self.error = error
                return False

        return call

    def advance(self, ran: Run) -> None:
        """Note a part of the run."""
        for engine, loops in ran.made.items():
            self.made[engine] = self.made.get(engine, 0) + loops
        if ran.reason == "declined":
            self.error = declined_error(self.mark, ran)
        self.mark = mark_after(self.mark, ran, self.made, self.host)
        if ran.reason == "loops":
            self.reason = "stopped" if self.mark.ended else None
        else:
            self.reason = "stopped" if ran.reason == "declined" else ran.reason

    def look(self, *, last: bool) -> None:
        """What looks at marks may find that the program breaks a promise, or has broken it."""
        try:
            for at in self.looks:
                if last or self.mark.loops % at.every == 0:
                    at.act(self.mark)
        except PunchcardError as error:
            self.error = error


class HostPorts(BatchPorts):
    """The ports of hosts. An error of one ends its run and no other."""

    def __init__(self, entries: Sequence[BatchEntry]) -> None:
        self._entries, self._hosts = entries, [entry.host for entry in entries if entry.host is not None]
        self._kind = type(self._hosts[0])
        if self._kind.serve_many is Host.serve_many:
            super().__init__([entry.ports for entry in entries])

    def of(self, number: int) -> Mapping[Pattern, Port]:
        return self._entries[number].ports

    def serve(self, numbers: Sequence[int], loops: Sequence[int], cards: StackedCards,
              rows: Sequence[int]) -> Sequence[bool | None]:
        entries = [self._entries[number] for number in numbers]
        before = [entry.mark.loops + made for entry, made in zip(entries, loops, strict=True)]
        found: list[bool | None] = []
        for entry, answer in zip(entries, self._kind.serve_many([self._hosts[i] for i in numbers], before, cards, rows),
                                 strict=True):
            if isinstance(answer, PunchcardError):
                entry.error, answer = answer, False
            found.append(answer)
        return found


class ProgramBatch:
    """The runs of a batch, from the first loop to the last."""

    def __init__(self, machine: AnyMachine, given: Sequence[Any], inputs: Sequence[Input], loops: int) -> None:
        self.machine, self.loops = machine, loops
        programs = [number for number, one in enumerate(given) if machine.kind.is_for(one)]
        cards: dict[int, Card] = dict(zip(programs, self._packed([given[number] for number in programs]), strict=True))
        self.entries, host_of = [], None if type(machine).host is Machine.host else without_checks(machine.host)
        nowhere = writer(None)
        for number, (one, source) in enumerate(zip(given, inputs, strict=True)):
            program = one if number in cards else None
            card = cards[number] if number in cards else self._card(number, one)
            begin = Mark(card)
            host = None if host_of is None else host_of(begin, reader(source), nowhere, loops, program)
            if host is not None and (begun := host.begin(card)) is not card:
                begin = replace(begin, raw_card=begun)
            self.entries.append(BatchEntry(program, begin, host, begin))

    def _packed(self, programs: Sequence[Any]) -> Sequence[Card]:
        """The cards of all programs. An error names the first program that does not fit."""
        try:
            return self.machine.pack_all(programs)
        except PunchcardError:
            for number, one in enumerate(programs):
                try:
                    self.machine.pack(one)
                except PunchcardError as error:
                    raise type(error)(f"{number} of the batch: {error}") from None
            raise

    def _card(self, number: int, one: Any) -> Card:
        """A card of this machine."""
        try:
            if not hasattr(one, "ndim"):
                self.machine.check_type(one)
            self.machine.layout.check(one)
            if one.ndim != 2:
                raise PunchcardError(f"a card of shape {tuple(one.shape)}: give cards one by one, or as one tensor of them")
        except PunchcardError as error:
            raise type(error)(f"{number} of the batch: {error}") from None
        card: Card = one
        return card

    def guard(self, engine: str) -> None:
        """Look whether programs keep their promises, at marks."""
        for entry in self.entries if type(self.machine).guard is not Machine.guard else ():
            if entry.program is not None:
                watch, looks = self.machine.guard(
                    entry.program, entry.begin, partial(repeat, self.machine, engine), every_loop=False)
                if watch is not None:
                    looks = [*looks, PeriodicAction(1, partial(lambda see, mark: see(mark.loops, mark.raw_card), watch))]
                entry.looks = looks

    def run(self, runner: BatchRunner, controls: Controls) -> None:
        """In parts, each of all runs that have not ended."""
        entries, done, before = self.entries, 0, 0
        controls = replace(controls, until=self.machine.halting)
        ports = HostPorts(entries) if entries[0].host is not None else None
        going = list(range(len(entries)))
        while True:
            part = part_of(done, self.loops, [at for i in going for at in entries[i].looks],
                           [entries[i].host for i in going])
            done += part
            runs = runner.run(part, controls.of_card(None, before), ports=ports, among=going, last=done >= self.loops)
            before += sum(ran.loops for ran in runs)
            for i, ran in zip(going, runs, strict=True):
                entries[i].advance(ran)
                entries[i].look(last=bool(entries[i].reason) or done >= self.loops)
            going = [i for i in going if not entries[i].reason and entries[i].error is None]
            if not going or done >= self.loops:
                return

    def results(self) -> tuple[Result[Any], ...]:
        """The ends of all runs."""
        good = [i for i, entry in enumerate(self.entries) if entry.error is None and entry.program is not None]
        seen = self.machine.readouts([self.entries[i].program for i in good],
                                     [self.entries[i].mark.raw_card for i in good]) if good else []
        known = dict(zip(good, seen, strict=True))
        return tuple(self._result(entry, known.get(i)) for i, entry in enumerate(self.entries))

    def _result(self, entry: BatchEntry, seen: Readout | None) -> Result[Any]:
        """The end of one run. One that went wrong has left a card that may not mean anything to its program."""
        outcome = RunOutcome(entry.mark, entry.reason or "loops")
        if entry.error is None:
            return result_of(self.machine, entry.program, outcome, entry.begin, entry.host, seen)
        found = result_of(self.machine, None, outcome, entry.begin, entry.host)
        return replace(found, reason="fault", fault=entry.error)


@dataclass(frozen=True)
class BatchOptions:
    """How the runs of a batch are made. `loops` is the last loop of each."""

    engine: str
    loops: int
    guarded: bool
    threads: int | None
    device: str | None


@dataclass(frozen=True)
class BatchOutcome:
    """What ran a batch, and for how long: as `Batch` has it."""

    engine: str
    seconds: float
    compile_seconds: float
    threads: int
    notes: tuple[str, ...]


@no_garbage_collection()  # thousands of objects are made that stay: looking through them took half of the time
def run_batch(
    machine: AnyMachine, given: Iterable[Any], *, max_steps: int | None, inputs: Sequence[Input] | None, controls: Controls,
    engine: str, guarded: bool, threads: int | None, device: str | None, workers: int | None, ray: str | bool | None,
) -> Batch[Any]:
    """See `Machine.run_batch`."""
    wanted, loops = list(given), machine.last_loop(max_steps)
    if not wanted:
        raise PunchcardError("the batch is empty: give one program or more")
    if controls.until or controls.ports or controls.watch is not None:
        raise PunchcardError("a batch takes `interrupted` and `progress` of its controls: watch single programs with run")
    if inputs is not None and len(inputs) != len(wanted):
        raise PunchcardError(f"{len(inputs)} inputs for a batch of {len(wanted)}: give one for each")
    sources = inputs or [b""] * len(wanted)
    runs, options = ProgramBatch(machine, wanted, sources, loops), BatchOptions(engine, loops, guarded, threads, device)
    if workers is None and not ray:
        outcome = run_entries(machine, runs, options, controls)
    else:
        from punchcard.machines.spread_batch import run_spread

        if controls != NO_CONTROLS:
            raise PunchcardError("a batch on workers takes no controls: leave out `workers` and `ray`")
        outcome = run_spread(machine, runs, wanted, sources, options, workers=workers, ray=ray)
    return Batch(runs.results(), **vars(outcome))


def run_entries(machine: AnyMachine, runs: ProgramBatch, options: BatchOptions, controls: Controls) -> BatchOutcome:
    """Run all entries of a batch in this process."""
    engine, device = options.engine, options.device
    cards = [entry.begin.raw_card for entry in runs.entries]
    try:
        runner = prepare_batch(engine, machine.weights, machine.layout, cards, loops=options.loops,
                               cache=machine.engine_cache, threads=options.threads, device=device)
    except LoweringError as why:
        advice = "'auto' takes a slower one" if device != "cuda" else "without device='cuda' the CPU runs it"
        raise LoweringError(f"the engine {engine!r} declines: {why}; {advice}") from None
    if options.guarded:
        runs.guard(runner.engine)
    started, compiled = time.perf_counter(), runner.compile_seconds
    runs.run(runner, controls)
    seconds = time.perf_counter() - started - (runner.compile_seconds - compiled)
    return BatchOutcome(runner.engine, max(0.0, seconds), runner.compile_seconds, runner.threads, runner.notes)
