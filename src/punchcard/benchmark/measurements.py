"""What is measured: every engine on the programs that a kind of machine has for it, or on the caller's program.

Every group of figures is measured in turn on one card: the engines, the dense one among them, and interpreters that
execute the same program without a transformer, one of them in C where the machine brings it and there is a compiler. An
engine whose result is not the interpreter's is refused.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import islice
from typing import Any

import torch

from punchcard.benchmark.sparse import SparseModel
from punchcard.benchmark.timing import Contender, Program, State, interpreter_seconds, interpreters, rates
from punchcard.budget import attending, require
from punchcard.engines import ENGINES, BatchRunner, Controls, Run, Runner, check_engine, prepare, prepare_batch
from punchcard.engines.controls import HOT_SECONDS
from punchcard.engines.dense import threads
from punchcard.errors import LoweringError, PunchcardError, SizeError
from punchcard.formatting import plural
from punchcard.machines.base import Machine
from punchcard.machines.kind import Kind, Timing, Workload
from punchcard.machines.registry import Registry, built_in
from punchcard.machines.result import Batch, Result
from punchcard.transformer.equation import one_thread

BATCHED = "lowered"
"""The engine that runs machines side by side; others run them one after the other."""
Record = dict[str, Any]
Say = Callable[[str], None]


@dataclass(frozen=True)
class BenchOptions:
    """What to measure and for how long. Default: everything.

    `seconds` is the length of a timed run, `repeats` how many there are of each. The dense engine is measured up to
    `dense_columns` columns, on larger cards than `few_columns` for a single loop. `batch` machines are run side by side on
    the lowered engine, with all cores, if it is given. `traces`: whether an engine may compile hot paths.
    """

    machine: str | None = None
    columns: tuple[int, ...] | None = None
    designs: tuple[str, ...] | None = None
    engines: tuple[str, ...] | None = None
    seconds: float = 0.1
    repeats: int = 3
    dense_columns: int = 2048
    few_columns: int = 2048
    quick: bool = False
    batch: int | None = None
    traces: bool = True

    def __post_init__(self) -> None:
        for name in self.engines or ():
            check_engine(name)
        if self.batch is not None and self.batch < 1:
            raise PunchcardError(f"batch={self.batch}: it must be 1 or more machines")
        if not self.seconds > 0:
            raise PunchcardError(f"seconds={self.seconds}: it must be more than 0")
        for n in self.columns or ():
            if n < 1:
                raise PunchcardError(f"columns={n}: a card has at least one")

    @property
    def tried(self) -> tuple[str, ...]:
        """The engines beside the dense one; `auto` is one of them under another name."""
        return tuple(name for name in self.engines or ENGINES if name != "dense" and (self.engines or name != "auto"))


class TimedProgram:
    """One card, and what runs its program: a machine for the engines, and an interpreter."""

    def __init__(self, kind: Kind, workload: Workload, rival: str) -> None:
        self.workload, self.rival = workload, rival
        self.machine: Machine[Any, Any] = kind.machine_class().for_program(workload.program, **workload.options)
        self.card = self.machine.pack(workload.program)
        self.about: Record = {
            "machine": kind.name, "program": workload.name, **workload.about, "design": self.machine.design.name,
            "dtype": self.machine.precision.name, "columns": self.machine.layout.columns}

    @property
    def title(self) -> str:
        return ", ".join(f"{value} {name}" if name == "columns" else str(value) for name, value in self.about.items())

    def sparse(self) -> Contender:
        """The equation with sparse weights, and with all scores of a head at once."""
        columns = self.machine.layout.columns
        require(attending(columns, self.machine.weights.format.array.itemsize), f"attention over {columns:,} columns")
        model, begin = SparseModel(self.machine.model), self.card.tensor()

        def make(steps: int) -> float:
            card = begin
            started = time.perf_counter()
            for _ in range(steps):
                card = model(card)
            return time.perf_counter() - started

        return Contender("csr", make)


class EngineRuns:
    """An engine as a contender: the seconds of its runs without preparing, which is counted apart.

    With a `batch`, so many machines run side by side, and steps are those of all together.
    """

    def __init__(self, engine: str, bench: TimedProgram, batch: int | None = None, *, traces: bool = True) -> None:
        self.bench, self._engine, self.batch = bench, engine, batch
        self._traces = HOT_SECONDS if traces else None
        first = self._prepare()
        self.name, self.threads = first.engine, 1
        if isinstance(first, BatchRunner):
            self.name, self.threads = batch_name(batch or 1), min(first.threads, batch or 1)
        self.notes, self.compile_seconds = list(first.notes), first.compile_seconds
        self.last: list[Run] = []

    def _prepare(self) -> Runner | BatchRunner:
        machine, card = self.bench.machine, self.bench.card
        if self.batch is None:
            return prepare(self._engine, machine.weights, machine.layout, card, cache=machine.engine_cache)
        cards = [card] * self.batch
        return prepare_batch(self._engine, machine.weights, machine.layout, cards, cache=machine.engine_cache)

    @property
    def _title(self) -> str:
        return f"{self.bench.title}: {'engine ' if self.batch is None else ''}{self.name}"

    def make(self, steps: int) -> float:
        """The seconds of so many steps."""
        runner, loops = self._prepare(), -(-steps // (self.batch or 1))
        compiled, started = runner.compile_seconds, time.perf_counter()
        found = runner.run(loops, Controls(until=self.bench.machine.halting, traces=self._traces))
        again = runner.compile_seconds - compiled
        took = time.perf_counter() - started - again
        self.compile_seconds += again
        runs = found if isinstance(found, list) else [found]
        short = next((ran for ran in runs if (ran.loops, ran.reason) != (loops, "loops")), None)
        if short is not None:
            raise PunchcardError(f"{self._title} ended after {short.loops} of {loops} loops"
                                 f"{''.join(f': {note}' for note in short.notes)}")
        if not self.last or loops >= self.last[0].loops:
            self.last = runs
        return took * steps / (loops * len(runs))

    @property
    def traced(self) -> float | None:
        """The share of the loops of the longest run that was made in traces; None of an engine without any."""
        report = self.last[0].traces if self.last and self.batch is None else None
        return None if report is None else report.loops / max(1, self.last[0].loops)

    def check(self) -> None:
        """Compare the end of the longest run with the interpreter."""
        machine, program = self.bench.machine, self.bench.workload.program
        for loops in {ran.loops for ran in self.last}:
            interpreter = machine.quickest(program)
            interpreter.run(machine.steps(loops, ended=False))
            if not all(machine.near(program, machine.read(ran.raw_card), interpreter.state) for ran in self.last):
                raise PunchcardError(f"{self._title} does not give what {self.bench.rival} gives after {loops} loops")


def traced_share(runs: Sequence[Result[State] | Batch[State]]) -> float | None:
    """The share of loops made in traces, in the last of some runs; None of an engine without any."""
    last = runs[-1]
    return None if isinstance(last, Batch) or last.traces is None else last.traces.loops / max(1, last.loops)


def batch_name(machines: int) -> str:
    """What the engine for batches is called with so many machines."""
    return f"{BATCHED} x {machines:,}"


def measure(
    options: BenchOptions, say: Say = lambda text: None, remark: Say = lambda text: None, registry: Registry | None = None,
) -> Iterator[list[Record]]:
    """The records, a group at a time; `say` hears what is being measured, `remark` what is left out."""
    remark = cache(remark)  # each remark is shown once
    with one_thread(), threads(1), torch.no_grad():
        for kind, timing in timed_kinds(registry or built_in(), options):
            for workload in _workloads(kind, timing, options):
                if isinstance(workload, str):
                    remark(workload)
                    continue
                try:
                    bench = TimedProgram(kind, workload, timing.rival)
                except SizeError as why:
                    remark(f"{kind.name}, {workload.name}: left out, {why}")
                    continue
                say(bench.title)
                yield _measured(bench, options, remark)


def timed_kinds(registry: Registry, options: BenchOptions) -> list[tuple[Kind, Timing]]:
    """The kinds that have something to time by themselves."""
    kinds = registry if options.machine is None else [registry.kind(options.machine)]
    return [(kind, kind.timing) for kind in kinds if kind.timing is not None]


def _workloads(kind: Kind, timing: Timing, options: BenchOptions) -> Iterator[Workload | str]:
    usual = (timing.quick,) if options.quick else timing.designs
    for design in usual if options.designs is None else [name for name in options.designs if name in kind.designs]:
        for n in options.columns or (timing.columns[:1] if options.quick else timing.columns):
            yield from islice(timing.each(design, n), 1 if options.quick else None)


def _measured(bench: TimedProgram, options: BenchOptions, remark: Say) -> list[Record]:
    """The group's records: engines first, then the baselines."""
    columns = bench.machine.layout.columns
    contenders: list[Contender] = []
    engines: dict[str, EngineRuns] = {}
    if columns <= options.dense_columns:
        engines["dense"] = EngineRuns("dense", bench, traces=options.traces)
        contenders.append(Contender("dense", engines["dense"].make, once=columns > options.few_columns))
        if contenders[0].once:
            engines["dense"].notes.append("a single loop was timed")
    for name in options.tried:
        try:
            engine = EngineRuns(name, bench, traces=options.traces)
        except (LoweringError, SizeError) as why:
            if isinstance(why, SizeError) and options.engines == (name,) and len(options.columns or ()) == 1:
                raise  # nothing that was asked for fits the memory budget
            remark(f"{bench.title}: {name} declines: {why}")
            continue
        if engine.name in engines:
            remark(f"{bench.title}: {name} is {engine.name} here: {'; '.join(engine.notes)}")
        else:
            contenders.append(Contender(engine.name, engine.make, prepares=True))
            engines[engine.name] = engine
    if options.batch is not None and BATCHED in engines:
        batch = EngineRuns(BATCHED, bench, options.batch)
        contenders.append(Contender(batch.name, batch.make, prepares=True))
        engines[batch.name] = batch
    try:
        contenders += [bench.sparse()] if bench.workload.sparse else []
    except SizeError as why:
        remark(f"{bench.title}: csr is left out: {why}")
    rivals = [Contender(name, partial(interpreter_seconds, make)) for name, make in interpreters(
        bench.machine, bench.workload.program, bench.rival, remark).items()]
    found = rates([*contenders, *rivals], options.seconds, options.repeats)
    for runs in engines.values():
        runs.check()
        if runs.batch is not None:  # how much of the threads is used
            used = found[runs.name] / found[BATCHED] / runs.threads
            runs.notes.append(f"{used:.2f} times ({plural(runs.threads, 'thread')} x one machine alone)")
    records = [{"engine": name, "steps_per_second": rate,
                "compile_seconds": engines[name].compile_seconds or None if name in engines else None,
                "traced": engines[name].traced if name in engines else None,
                "notes": engines[name].notes if name in engines else []} for name, rate in found.items()]
    return _with_ratios(bench.about, records, [rival.name for rival in rivals])


def _with_ratios(about: Record, records: Sequence[Record], rivals: Iterable[str]) -> list[Record]:
    """Records with what they are about, and with their ratios to the dense engine and to what runs without a transformer."""
    rate = {record["engine"]: record["steps_per_second"] for record in records}
    return [{**about, **record, "ratio_to_dense": record["steps_per_second"] / rate["dense"] if rate.get("dense") else None,
             **{f"ratio_to_{rival}": record["steps_per_second"] / rate[rival] for rival in rivals}} for record in records]


def measure_program(
    program: Program, machine: Machine[Program, State], name: str, options: BenchOptions, *, max_steps: int | None,
    remark: Say,
) -> list[Record]:
    """Whole runs of one program, on each engine and on the interpreter; of several runs the quickest counts."""
    records: list[Record] = []
    controls = Controls(traces=HOT_SECONDS if options.traces else None)

    def note(title: str, runs: Sequence[Result[State] | Batch[State]], first: Sequence[Result[State]]) -> int:
        """Compare results with the interpreter, and keep the figures of their runs; the steps of each result."""
        steps, interpreter = first[0].steps, machine.quickest(program)
        interpreter.run(steps)
        for result in first:
            if result.steps != steps or not machine.near(program, machine.read(result.raw_card), interpreter.state):
                raise PunchcardError(f"{name}: {title} does not give what the interpreter gives after {steps} steps")
        records.append({"engine": title.removeprefix("engine "), "notes": list(runs[0].notes),
                        "steps_per_second": max(run.steps_per_second or 0.0 for run in runs),
                        "compile_seconds": max(run.compile_seconds for run in runs) or None,
                        "traced": traced_share(runs)})
        return steps

    with one_thread(), threads(1), torch.no_grad():
        for engine in (*(["dense"] if machine.layout.columns <= options.dense_columns else []), *options.tried):
            try:
                runs = [machine.run(program, engine=engine, max_steps=max_steps, controls=controls)
                        for _ in range(options.repeats)]
            except (LoweringError, SizeError) as why:
                remark(f"{name}: {engine} declines: {why}")
            else:
                steps = note(f"engine {runs[0].engine}", runs, runs[:1])
        if options.batch is not None and any(record["engine"] == BATCHED for record in records):
            batches = [machine.run_batch([program] * options.batch, engine=BATCHED, max_steps=steps)
                       for _ in range(options.repeats)]
            note(batch_name(options.batch), batches, batches[0].results)
        if not records:
            raise PunchcardError(f"{name}: nothing to measure: no engine takes it")
        rival = machine.kind.timing.rival if machine.kind.timing is not None else "python"
        rivals = interpreters(machine, program, rival, remark)
        for other, make in rivals.items():
            seconds = min(interpreter_seconds(make, steps) for _ in range(options.repeats))
            records.append({"engine": other, "steps_per_second": steps / max(seconds, 1e-9), "notes": [],
                            "compile_seconds": None, "traced": None})
    about = {"machine": machine.kind.name, "program": name, "design": machine.design.name, "dtype": machine.precision.name,
             "columns": machine.layout.columns, "steps": steps}
    return _with_ratios(about, records, rivals)
