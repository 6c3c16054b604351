"""Running a card in parts. Between two parts the host may look at the card, keep it in a file, or stop.

An engine enters Python after every loop only when it is watched. What is not needed after every loop is done at marks:
the run is cut into parts, each a call of one prepared runner. A loop depends on nothing but the card, so a run in parts
ends with the card of a run in one.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeVar

from punchcard.arguments import without_checks
from punchcard.card.layout import Card, CardHolder, Layout, as_tensor
from punchcard.card.packed import PackedCard
from punchcard.engines import OBSERVED, Controls, NoCopyWatch, Port, Run, Runner, Watch, prepare
from punchcard.engines.base import TraceReport
from punchcard.errors import LoweringError, PunchcardError
from punchcard.formatting import plural
from punchcard.machines.ports import Host
from punchcard.machines.result import Readout, Reason, Result
from punchcard.machines.streams import NO_TRAFFIC, Input, Output, TimedInput, Traffic, reader, writer

if TYPE_CHECKING:
    from punchcard.machines.base import AnyMachine, Machine

Program = TypeVar("Program")
State = TypeVar("State")

DEFAULT_ENGINE = "auto"
MOST_NOTES = 16


@dataclass(frozen=True)
class Mark(CardHolder):
    """A point of a run, from which it can continue: the card, the loops made, and the engine that made most of them.

    `ended`: the program has halted or stopped with a fault, so that no loop is left to make. `traffic`: what was read and
    written.
    """

    raw_card: Card = field(repr=False)
    loops: int = 0
    engine: str = ""
    ended: bool = False
    traffic: Traffic = NO_TRAFFIC

    def __repr__(self) -> str:
        read, written = len(self.traffic.read), len(self.traffic.written)
        moved = f", {plural(read, 'byte')} read, {written:,} written" if read or written else ""
        return f"<Mark after {plural(self.loops, 'loop')}{', ended' * self.ended}{moved}>"


@dataclass(frozen=True)
class PeriodicAction:
    """Something to do with the mark whenever the loops made are a multiple of `every`, and at the end of the run."""

    every: int
    act: Callable[[Mark], None]

    def __post_init__(self) -> None:
        if self.every < 1:
            raise PunchcardError(f"every={self.every}: it must be 1 or more loops")


@dataclass(frozen=True)
class RunOutcome:
    """A run in parts: the mark where it ended and why, what ran it, and the seconds spent running and compiling."""

    mark: Mark
    reason: Literal["matched", "loops", "interrupted", "stopped"]
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    compile_seconds: float = 0.0
    traces: TraceReport | None = None


def run_parts(
    runner: Runner, begin: Mark, loops: int, controls: Controls, *, host: Host | None = None,
    marks: Sequence[PeriodicAction] = (),
) -> RunOutcome:
    """Continue from a mark until a card shows `controls.until` or `loops` loops have been made, those before it included."""
    mark, made, seconds, traces = begin, Counter[str](), 0.0, None
    while True:
        before, started, compiled = mark.loops, time.perf_counter(), runner.compile_seconds
        ran = runner.run(part_of(before, loops, marks, [host]), controls.after(before))
        seconds += time.perf_counter() - started - (runner.compile_seconds - compiled)
        made.update(ran.made)
        traces = TraceReport.total(traces, ran.traces)
        if ran.reason == "declined":
            raise declined_error(mark, ran)
        mark, reason = mark_after(mark, ran, made, host), ran.reason
        if reason == "loops" and mark.ended:
            reason = "stopped"
        elif reason == "loops" and mark.loops < loops and controls.is_interrupted():
            reason = "interrupted"
        last = reason != "loops" or mark.loops >= loops
        for at in marks:
            if last or mark.loops % at.every == 0:
                at.act(mark)
        if last:
            notes = tuple(dict.fromkeys(runner.notes))[:MOST_NOTES]
            return RunOutcome(mark, reason, notes, max(0.0, seconds), runner.compile_seconds, traces)


def mark_after(mark: Mark, ran: Run, made: Mapping[str, int], host: Host | None) -> Mark:
    """The mark at the end of a part of a run; `made` counts the loops of each engine so far. Its host may end it here."""
    if host is not None and host.looks_every is not None and ran.reason == "loops":
        host.look(ran.raw_card)
    ended = ran.reason == "matched" or (host is not None and host.ended in ("halted", "reboot", "fault"))
    return Mark(ran.raw_card, mark.loops + ran.loops, max(made, key=made.__getitem__, default=ran.engine), ended,
                NO_TRAFFIC if host is None else host.traffic)


def declined_error(mark: Mark, ran: Run) -> LoweringError:
    """The error of a run whose engine declined a loop after a mark."""
    return LoweringError(f"loop {mark.loops + ran.loops + 1}: {'; '.join(ran.notes)}; the engine 'auto' continues with a "
                         "slower one")


def in_turn(*watchers: Watch) -> Watch:
    """Several watchers as one."""
    def look(loop: int, card: Card) -> None:
        for watcher in watchers:
            watcher(loop, card)

    return NoCopyWatch.like(look, *watchers)


def part_of(done: int, loops: int, marks: Sequence[PeriodicAction], hosts: Sequence[Host | None]) -> int:
    """How many loops until the next mark, a look of a host, or the end."""
    looks = [host.looks_every for host in hosts if host is not None and host.looks_every is not None]
    return max(0, min([loops - done, *(every - done % every for every in (*looks, *(at.every for at in marks)))]))


def run_program(
    machine: Machine[Program, State], program: Program, *, engine: str, max_steps: int | None, input: Input,
    output: Output | None, controls: Controls, guarded: bool, begin: Mark | None, keep: PeriodicAction | None,
) -> Result[State]:
    """See `Machine.run`."""
    machine.check_type(program)
    if controls.until:
        raise PunchcardError("until is for an engine's run: a program ends where it halts, or at a port that returns False")
    loops = machine.last_loop(max_steps)
    machine.check_room(engine)
    if begin is None:
        begin = Mark(machine.pack(program))
    else:
        machine.check_fits(program)
    out = writer(output)
    timed = TimedInput(reader(input, len(begin.traffic.read)), before=out.flush)
    host = machine.host(begin, timed, out, loops, program)
    card = begin.raw_card if host is None else host.begin(begin.raw_card)
    if begin.ended or (host is not None and host.ended is not None):
        return result_of(machine, program, RunOutcome(begin, "matched"), begin, host)
    expected = None if keep or begin.loops else loops  # a run that is kept, or continues, counts as a long one
    try:
        runner = prepare(engine, machine.weights, machine.layout, card, loops=expected, cache=machine.engine_cache)
    except LoweringError as why:
        raise LoweringError(f"the engine {engine!r} declines: {why}; 'auto' takes a slower one") from None
    watches = [] if controls.watch is None else [_on_tensors(controls.watch)]
    marks = [] if keep is None else [PeriodicAction(keep.every, lambda mark: out.flush()), keep]
    if guarded:
        observed = engine == OBSERVED or (engine == DEFAULT_ENGINE and machine.weights.is_observed)
        guard, looks = machine.guard(program, begin, partial(repeat, machine, runner.engine),
                                     every_loop=controls.watch is not None or observed)
        watches = watches if guard is None else [guard, *watches]
        marks = [*looks, *(PeriodicAction(keep.every, look.act) for look in looks if keep is not None), *marks]

    def asked() -> bool:
        out.flush_if_due()
        return controls.is_interrupted()

    served = {**({} if host is None else host.ports),
              **{pattern: _port_on_tensors(machine.layout, port) for pattern, port in controls.ports.items()}}
    waited = timed.seconds
    try:
        outcome = run_parts(
            runner, begin, loops, host=host, marks=marks,
            controls=Controls(machine.halting, served, in_turn(*watches) if watches else None, asked, controls.progress,
                              controls.traces))
    finally:
        out.flush()
    unseen = machine.unchecked(program, outcome.mark.loops - begin.loops) if guarded and guard is None else ()
    outcome = replace(outcome, seconds=max(0.0, outcome.seconds - (timed.seconds - waited)),
                      notes=(*outcome.notes, *unseen))
    return result_of(machine, program, outcome, begin, host)


def result_of(
    machine: Machine[Program, State], program: Program | None, outcome: RunOutcome, begin: Mark, host: Host | None,
    seen: Readout | None = None,
) -> Result[State]:
    """The `Result` of a run. `program` is None if the run was given a card. `seen`: what it reports, if known."""
    mark = outcome.mark
    if seen is None:
        seen = Readout({}) if program is None else machine.readout(program, mark.raw_card)
    reason: Reason = outcome.reason if outcome.reason in ("interrupted", "stopped") else "steps"
    if mark.ended or seen.at_halt:
        reason = "halted"
    if host is not None and host.ended is not None:
        reason = host.ended
    reading = partial(machine.read, mark.raw_card) if program is None else partial(machine.read_own, program, mark.raw_card)
    made = without_checks(machine.steps)(mark.loops, ended=mark.ended)
    return Result(
        reading=reading, memory=seen.values, reason=reason,
        steps=max(0, made - without_checks(machine.refused)(mark.raw_card)),
        loops=mark.loops, engine=mark.engine or DEFAULT_ENGINE, raw_card=mark.raw_card, notes=outcome.notes,
        seconds=outcome.seconds, compile_seconds=outcome.compile_seconds, begun=begin.loops, traces=outcome.traces,
        output=mark.traffic.written, read=mark.traffic.read, traffic=mark.traffic,
        fault=None if host is None else host.fault,
        program_counter=seen.program_counter, status=None if host is None else host.status,
        errors=b"" if host is None else host.errors, layout=machine.layout,
        names=lambda column: machine.column_name(column, program))


def repeat(machine: AnyMachine, engine: str, mark: Mark, loops: int, watch: Watch | None) -> Mark:
    """Make the loops after a mark again, up to loop number `loops`; a slower engine takes over where this one declines."""
    runner = prepare(engine, machine.weights, machine.layout, mark.raw_card, fall_back=True, cache=machine.engine_cache)
    return run_parts(runner, mark, loops, Controls(machine.halting, watch=watch)).mark


def _on_tensors(watch: Watch) -> Watch:
    """A watch of the caller's, which sees tensors, also of a packed card; one without copies sees the engine's own."""
    return watch if isinstance(watch, NoCopyWatch) else lambda loop, card: watch(loop, as_tensor(card))


def _port_on_tensors(layout: Layout, port: Port) -> Port:
    """A port of the caller's, which works on a tensor, also where the engine has the card packed."""
    def call(loop: int, card: Card) -> bool:
        if not isinstance(card, PackedCard):
            return bool(port(loop, card))
        before, tensor = card.tensor(), card.tensor()
        goes_on = bool(port(loop, tensor))
        if not bool((tensor == before).all()):
            PackedCard.of(layout, tensor).copy(into=card)
        return goes_on

    return call
