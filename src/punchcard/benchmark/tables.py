"""What is measured: engine by design by columns for SUBLEQ, engine by program by size by columns for FLEQ.

Every group of figures is measured in turn on one card: the engines, the dense one among them, and an interpreter that
executes the same program without a transformer. An engine whose result is not the interpreter's is refused.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from punchcard.api import build
from punchcard.benchmark import programs
from punchcard.benchmark.sparse import SparseModel
from punchcard.benchmark.timing import Contender, one_thread, rates
from punchcard.engines import ENGINES, find_engine
from punchcard.errors import PunchcardError
from punchcard.machines.fleq.fast import DecodedFleq
from punchcard.machines.fleq.isa import FleqProgram
from punchcard.machines.fleq.machine import DESIGNS as FLEQ_DESIGNS
from punchcard.machines.fleq.machine import FleqMachine
from punchcard.machines.subleq import fast
from punchcard.machines.subleq.machine import DESIGNS as SUBLEQ_DESIGNS
from punchcard.machines.subleq.machine import SubleqMachine

Record = dict[str, Any]
WORD_BITS = 16
SUBLEQ_COLUMNS = (64, 1024, 16384, 65536)
FLEQ_COLUMNS = (150, 1000)
FLEQ_SIZES = (4, 8)
FLEQ_PROGRAMS = ("newton", "sgd")
LONG = 10**9
"""Loops of a run that is not short."""


@dataclass(frozen=True)
class Options:
    """What to measure and for how long. None: all there is.

    `seconds` is the length of a timed run, `repeats` how many there are of each. The dense engine is measured up to
    `dense_columns` columns, on larger cards than `few_columns` for a single loop.
    """

    machine: Literal["subleq", "fleq", "all"] = "all"
    columns: tuple[int, ...] | None = None
    designs: tuple[str, ...] | None = None
    engines: tuple[str, ...] | None = None
    sizes: tuple[int, ...] = FLEQ_SIZES
    programs: tuple[str, ...] = FLEQ_PROGRAMS
    seconds: float = 0.1
    repeats: int = 3
    dense_columns: int = 2048
    few_columns: int = 2048

    def __post_init__(self) -> None:
        for name in self.engines or ():
            find_engine(name)
        if not self.seconds > 0:
            raise PunchcardError(f"seconds={self.seconds}: it must be more than 0")
        for n in self.columns or ():
            if n < 1:
                raise PunchcardError(f"columns={n}: a card has at least one")

    @property
    def tried(self) -> tuple[str, ...]:
        """The engines beside the dense one; `auto` is one of them under another name."""
        return tuple(name for name in self.engines or ENGINES if name != "dense" and (self.engines or name != "auto"))


QUICK: dict[str, Any] = {"columns": (64,), "designs": ("two-layer", "compact"), "sizes": (4,), "seconds": 0.02, "repeats": 1}
"""Options for a look of some seconds."""


@dataclass
class Group:
    """One card, and what runs its program: a machine for the engines, and baselines without one."""

    about: Record
    machine: SubleqMachine | FleqMachine
    card: Tensor
    interpreter: Contender
    agrees: Callable[[Tensor, int], bool]
    """Whether a card after so many loops is what the interpreter has."""
    others: list[Contender] = field(default_factory=list)

    @property
    def title(self) -> str:
        return ", ".join(f"{value} {name}" if name in ("columns",) else str(value) for name, value in self.about.items())


Say = Callable[[str], None]


def measure(options: Options, say: Say = lambda text: None, remark: Say = lambda text: None) -> Iterator[list[Record]]:
    """The records, a group at a time; `say` hears what is being measured, `remark` what is left out."""
    with one_thread(), torch.no_grad():
        for group in _groups(options):
            if isinstance(group, str):
                remark(group)
            else:
                say(group.title)
                yield _measured(group, options, remark)


def _groups(options: Options) -> Iterator[Group | str]:
    """What is measured in turn, or why something is not."""
    if options.machine in ("subleq", "all"):
        for design in _chosen(options.designs, ("two-layer", "paper", "one-layer"), SUBLEQ_DESIGNS):
            for n in options.columns or SUBLEQ_COLUMNS:
                yield subleq_group(design, n)
    if options.machine in ("fleq", "all"):
        for design in _chosen(options.designs, ("compact",), FLEQ_DESIGNS):
            for program in options.programs:
                for d in options.sizes:
                    for n in options.columns or FLEQ_COLUMNS:
                        yield fleq_group(program, design, d, n)


def _chosen(wanted: Sequence[str] | None, usual: Sequence[str], built: Container[str]) -> Sequence[str]:
    return usual if wanted is None else [name for name in wanted if name in built]


def subleq_group(design: str, n: int) -> Group | str:
    """Multiplication on a card of n columns, float32; or why not."""
    program = programs.multiply()
    least = 3 + len(program.memory) + len(program.instructions)
    if n < least:
        return f"subleq, {n} columns: left out, the program needs {least}"
    memory = max(len(program.memory), min(n - 3 - len(program.instructions), (n - 3) * 2 // 5))
    machine = SubleqMachine(word_bits=WORD_BITS, memory=memory, instructions=n - 3 - memory, design=design,
                            precision="float32")
    code, data = fast.decode(program), list(program.memory)

    def interpret(steps: int) -> float:
        memory = list(data)
        started = time.perf_counter()
        fast.run(code, memory, WORD_BITS, steps)
        return time.perf_counter() - started

    def agrees(card: Tensor, loops: int) -> bool:
        expected = list(data)
        counter = fast.run(code, expected, WORD_BITS, loops - machine.design.warm_up)
        state = machine.read(card)
        return (state.memory[: len(expected)], state.program_counter) == (tuple(expected), counter)

    about = {"machine": "subleq", "program": "multiply", "design": design, "dtype": "float32",
             "columns": machine.layout.columns}
    return Group(about, machine, machine.punch(program), Contender("python", interpret), agrees)


def fleq_group(name: str, design: str, d: int, n: int) -> Group | str:
    """A program at size d on a card of n columns, float64; or why not."""
    small = programs.newton(d) if name == "newton" else programs.sgd(d, 2)
    least = build(small, design=design).layout.columns
    if n < least:
        return f"fleq, {name}, size {d}, {n} columns: left out, the program needs {least}"
    program: FleqProgram = small if name == "newton" else programs.sgd(d, 2 + (n - least) // 2)
    machine = build(program, design=design)
    machine = build(program, design=design, memory=machine.sizes.memory + n - machine.layout.columns)
    model = SparseModel(machine.model)
    card = machine.punch(program)

    def interpret(steps: int) -> float:
        decoded = DecodedFleq(program)
        started = time.perf_counter()
        decoded.run(steps)
        return time.perf_counter() - started

    def sparse(steps: int) -> float:
        now = card
        started = time.perf_counter()
        for _ in range(steps):
            now = model(now)
        return time.perf_counter() - started

    def agrees(found: Tensor, loops: int) -> bool:
        decoded = DecodedFleq(program)
        decoded.run(loops)
        state = machine.read(found)
        error = np.abs(state.memory[: program.rows, : program.columns] - decoded.memory).max() / machine.range
        return bool(error < 1e-6) and state.program_counter == decoded.counter

    about = {"machine": "fleq", "program": name, "size": d, "design": design, "dtype": "float64",
             "columns": machine.layout.columns}
    return Group(about, machine, card, Contender("numpy", interpret), agrees, [Contender("csr", sparse)])


class EngineRuns:
    """An engine as a contender: the seconds of its runs without compiling, which is counted apart."""

    def __init__(self, name: str, group: Group) -> None:
        """The engine that really runs: one may hand a run on to another, and says so at the first chance."""
        self.group = group
        machine = group.machine
        first = find_engine(name)(machine.model, group.card, LONG, facts=machine.layout, until=machine.halting,
                                  interrupted=lambda: True)
        self.name, self.notes, self.compiling = first.engine, list(first.notes), [first.compile_seconds]
        self.engine = find_engine(first.engine)
        self.last = first

    def make(self, steps: int) -> float:
        machine = self.group.machine
        started = time.perf_counter()
        ran = self.engine(machine.model, self.group.card, steps, facts=machine.layout, until=machine.halting)
        took = time.perf_counter() - started - ran.compile_seconds
        self.compiling.append(ran.compile_seconds)
        if (ran.loops, ran.reason) != (steps, "loops"):
            raise PunchcardError(f"{self.group.title}: engine {self.name} ended after {ran.loops} of {steps} loops")
        if ran.loops >= self.last.loops:
            self.last = ran
        return took

    @property
    def compile_seconds(self) -> float | None:
        """All of it, less what every run spends to see that nothing is left to compile; None: it does not compile."""
        return sum(self.compiling) - len(self.compiling) * min(self.compiling) if any(self.compiling) else None

    def check(self) -> None:
        """Compare the end of the longest run with the interpreter."""
        if not self.group.agrees(self.last.card, self.last.loops):
            raise PunchcardError(f"{self.group.title}: engine {self.name} does not give what "
                                 f"{self.group.interpreter.name} gives after {self.last.loops} loops")


def _measured(group: Group, options: Options, remark: Say) -> list[Record]:
    """The group's records: engines first, then the baselines."""
    columns = group.machine.layout.columns
    contenders: list[Contender] = []
    engines: dict[str, EngineRuns] = {}
    if columns <= options.dense_columns:
        engines["dense"] = EngineRuns("dense", group)
        contenders.append(Contender("dense", engines["dense"].make, once=columns > options.few_columns))
        if contenders[0].once:
            engines["dense"].notes.append("a single loop was timed")
    for name in options.tried:
        engine = EngineRuns(name, group)
        if engine.name in engines:
            remark(f"{group.title}: {name} hands on to {engine.name}: {'; '.join(engine.notes)}")
        else:
            contenders.append(Contender(engine.name, engine.make, prepares=True))
            engines[engine.name] = engine
    contenders += [*group.others, group.interpreter]
    found = rates(contenders, options.seconds, options.repeats)
    for engine in engines.values():
        engine.check()
    return [
        {
            **group.about, "engine": name, "steps_per_second": rate,
            "ratio_to_dense": rate / found["dense"] if "dense" in found else None,
            f"ratio_to_{group.interpreter.name}": rate / found[group.interpreter.name],
            "compile_seconds": engines[name].compile_seconds if name in engines else None,
            "notes": engines[name].notes if name in engines else [],
        }
        for name, rate in found.items()
    ]
