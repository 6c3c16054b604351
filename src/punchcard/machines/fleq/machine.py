"""The FLEQ machine: function blocks, sizes and a precision become a layout and a model; programs come later."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from punchcard.card.encoding import encode_unsigned
from punchcard.card.layout import Pattern
from punchcard.engines import Port, Watch
from punchcard.errors import PrecisionError, ProgramError, PunchcardError, did_you_mean
from punchcard.machines import storage
from punchcard.machines.fleq.blocks.block import Block, Scale, product_reach
from punchcard.machines.fleq.blocks.catalogue import built_in
from punchcard.machines.fleq.blocks.pointers import IncrPointer, ResetPointer
from punchcard.machines.fleq.blocks.sigmoids import Terms
from punchcard.machines.fleq.designs.base import POINTERS, FleqDesign, Scales
from punchcard.machines.fleq.designs.compact import CompactDesign
from punchcard.machines.fleq.designs.paper import PaperFleqDesign
from punchcard.machines.fleq.guard import Guard, PartGuard
from punchcard.machines.fleq.isa import Call, FleqProgram, FleqState, Instruction, PointerUpdate, Step
from punchcard.machines.fleq.reader import FleqReader
from punchcard.machines.running import DEFAULT_ENGINE, OBSERVED, At, Mark, loops_a_second, run_parts
from punchcard.transformer.build import build
from punchcard.transformer.precision import Precision, as_precision, hard_product

GATE = 2.0**60
LEAST_RANGE = 2.0**-20
DESIGNS: Mapping[str, Callable[[int, int, int, Sequence[Block]], FleqDesign]] = {
    "paper": PaperFleqDesign, "compact": CompactDesign,
}
DEFAULT_MAX_STEPS = 100_000
LOOK_EVERY = 1_000_000
"""Loops between two looks at the card of a guarded run that nobody watches: about a second of a compiled engine."""


@dataclass(frozen=True)
class FleqResult:
    """The end of a run: memory by name, whether it halted, instructions executed, loops made, and the card.

    The other fields are those of the SUBLEQ machine's `Result`.
    """

    memory: dict[str, np.ndarray]
    state: FleqState
    halted: bool
    steps: int
    loops: int
    interrupted: bool
    engine: str
    card: Tensor = field(repr=False)
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    compile_seconds: float = 0.0
    begun: int = 0

    @property
    def steps_per_second(self) -> float | None:
        return loops_a_second(self.loops - self.begun, self.seconds)


class FleqMachine:
    """A looped transformer that executes FLEQ programs over a set of function blocks, one instruction a loop.

    functions      names of built-in functions, or blocks of your own
    size           d: operands and results have at most d rows and d columns
    memory         columns for variables and pointer constants;  instructions  room for instructions, the halt included
    range          R: every value stays within ±R; a size of the machine, like d
    heads          1, 2 or 3 heads for the soft products: more heads, smaller error
    anchors        the paper's own matrix product, with anchors: larger error
    """

    def __init__(
        self,
        *,
        functions: Sequence[str | Block],
        size: int = 4,
        memory: int = 32,
        instructions: int = 32,
        design: str = "compact",
        precision: Precision | torch.dtype | str = "float64",
        range: float = 16.0,
        heads: int = 1,
        anchors: bool = False,
    ) -> None:
        if design not in DESIGNS:
            raise PunchcardError(f"unknown design {design!r}{did_you_mean(design, DESIGNS)}: there are {', '.join(DESIGNS)}")
        if isinstance(functions, str):
            raise PunchcardError(f"functions={functions!r}: give a list of names or blocks")
        if not functions:
            raise PunchcardError("functions=[]: a FLEQ machine needs at least one function")
        if heads not in (1, 2, 3):
            raise PunchcardError(f"heads={heads}: a soft product takes 1, 2 or 3 heads")
        if not isinstance(range, int | float) or not 0 < range < math.inf:
            raise PunchcardError(f"range={range}: it must be a positive number")
        self.precision = as_precision(precision)
        if self.precision.significand < 24:
            raise PrecisionError(f"{self.precision.name} has {self.precision.significand} significand bits: real numbers "
                                 "need float32 or float64")
        largest = 2.0 ** (self.precision.significand - 6)
        if not LEAST_RANGE <= range <= largest:
            raise PrecisionError(f"range={range:g}: it must be {LEAST_RANGE:g} or more, and {self.precision.name} keeps "
                                 f"flags exact up to {largest:g}")
        self.range, self.heads, self.anchors = float(range), heads, anchors
        self.unit = torch.finfo(self.precision.dtype).eps / 2
        blocks = [self._block(f) for f in functions]
        names = [b.name for b in blocks]
        if duplicate := next((name for name in names if names.count(name) > 1), None):
            raise PunchcardError(f"function {duplicate!r} is plugged in twice")
        make = DESIGNS[design]
        sizes = make(size, memory, instructions, blocks).sizes
        fields = [sizes.field_rows(name) for name in POINTERS]
        # incr_pointer must know where an instruction's fields are
        blocks = [IncrPointer(fields) if isinstance(b, IncrPointer) else b for b in blocks]
        self.design = make(size, memory, instructions, blocks)
        most = 2 * max(self.range, 1.0)
        self.design.layout = self.design.layout.limited({"data": most, "incoming": most})
        self.sizes, self.layout = self.design.sizes, self.design.layout
        self.reader = FleqReader(self.sizes, self.layout)
        self.blocks = {b.name: b for b in self.design.blocks}
        unit = self.unit
        reach = product_reach(size, self.range)
        self.scale = Scale(size, self.range, unit)
        scales = Scales(gate=GATE, big=self._big(), reach=reach, unit=unit,
                        flag_bound=2.0 ** math.ceil(math.log2(self.range + 2)))
        self.model = build(self.design.layers(scales), self.layout.width, self.precision)
        self.halting = Pattern("halted", "scratchpad", (1,))

    def _block(self, function: str | Block) -> Block:
        if isinstance(function, Block):
            return function
        if not isinstance(function, str):
            raise PunchcardError(f"{function!r} is no function block: plug in a name or a Block")
        if function == "reset_pointer":
            return ResetPointer()
        if function == "incr_pointer":
            return IncrPointer([])
        return built_in(function, self.heads, anchors=self.anchors, unit=self.unit)

    def _big(self) -> float:
        """Decides every match beside the largest score of a soft one, also of values up to twice the range."""
        largest = self.range
        for block in self.design.blocks:
            if isinstance(block.transport, Terms):
                fit = block.transport.fit
                largest = max(largest, float(np.max(np.abs(fit.weights) * self.range + np.abs(fit.biases))))
        return 2.0 ** math.ceil(math.log2(hard_product(self.precision.dtype) + 4 * largest))

    def guard(self, program: FleqProgram, card: Tensor) -> Guard:
        """Checks a run of a program loop by loop; results may overshoot the range by their own error."""
        return Guard(self.reader, program, card, limit=self.range,
                     slack=4 * self.unit * self.range + max(self.bound(name) for name in self.blocks))

    def bound(self, function: str) -> float:
        """The largest error of an entry of a function's result, for operands and results within the range."""
        return self.blocks[function].bound(self.scale)

    # Punching and reading

    def __repr__(self) -> str:
        return (f"<FleqMachine, design {self.design.name!r}: {len(self.model.shapes)} layers, {self.layout.width} rows, "
                f"{self.layout.columns} columns, {self.precision.name}>")

    def punch(self, program: FleqProgram) -> Tensor:
        """The card of a program."""
        self._check_fits(program)
        sizes, layout = self.sizes, self.layout
        card = layout.blank()
        self.design.punch_constants(card)
        memory = layout.get(card, "data", "memory")
        values = program.initial_memory(sizes.size)[:, : program.columns]
        memory[: sizes.size, : program.columns] = torch.from_numpy(values + 0.0)  # a column of -0.0 would become 0.0
        constants = pointer_constants(program)
        for update, column in constants.items():
            memory[:, program.columns + column] = self._pointer_constant(update)
        code = layout.get(card, "data", "instructions")
        padded = [*program.instructions, *[None] * (sizes.instructions - len(program.instructions))]
        for number, instruction in enumerate(padded):
            code[:, number] = self._encode(instruction, number, program, constants)
        return card.to(self.precision.dtype)

    def _pointer_constant(self, update: PointerUpdate) -> Tensor:
        """A column that names a field: ones for an increment, the new pointer's bits for a reset."""
        column = torch.zeros(self.sizes.data_rows, dtype=torch.float64)
        rows = self.sizes.field_rows(update.field)
        if update.value is None:
            column[rows] = 1.0
        else:
            base = self.sizes.instruction_column if update.field == "p" else self.sizes.memory_column
            column[rows] = encode_unsigned(base + update.value, self.sizes.pointer_bits)[:, 0]
        return column

    def _encode(
        self, instruction: Instruction | None, number: int, program: FleqProgram, constants: dict[PointerUpdate, int]
    ) -> Tensor:
        """The ±1 bits of an instruction. A halt, and the room after the program, jumps to itself and calls nothing."""
        sizes = self.sizes
        memory, code = sizes.memory_column, sizes.instruction_column
        values: dict[str, int] = {"a": sizes.zero_column, "b": sizes.zero_column, "c": sizes.zero_column,
                                  "flag": sizes.unit_column, "p": code + number, "a_height": sizes.size,
                                  "c_height": sizes.size}
        if not isinstance(instruction, Step):
            values |= {"flag": sizes.zero_column, "halt": 1}
        else:
            action, branch = instruction.action, instruction.branch
            if isinstance(action, Call):
                values |= {"a": memory + action.a, "c": memory + action.c, f"call_{action.function}": 1,
                           "a_width": action.a_shape.columns, "c_width": action.c_shape.columns,
                           "a_height": action.a_shape.rows, "c_height": action.c_shape.rows}
                if action.b is not None and action.b_shape is not None:
                    values |= {"b": memory + action.b, "b_width": action.b_shape.columns}
            elif isinstance(action, PointerUpdate):
                values |= {"a": code + action.instruction, "c": code + action.instruction,
                           "b": memory + program.columns + constants[PointerUpdate(0, action.field, action.value)],
                           f"call_{action.function}": 1, "a_width": 1, "b_width": 1, "c_width": 1}
            if branch is not None:
                values |= {"flag": sizes.zero_column if branch.flag is None else memory + branch.flag,
                           "p": code + branch.target}
        parts = [encode_unsigned(values.get(name, 0), bits)[:, 0] for name, bits in sizes.instruction_parts().items()]
        column = torch.zeros(sizes.data_rows, dtype=torch.float64)
        column[: sizes.instruction_rows] = torch.cat(parts)
        return column

    def read(self, card: Tensor) -> FleqState:
        """The memory columns (rows by columns) and the program counter on a card."""
        return self.reader.read(card)

    def pointers(self, card: Tensor, instruction: int) -> dict[str, int]:
        """The pointers of an instruction on a card, as memory columns and (p) as an instruction's number."""
        return self.reader.pointers(card, instruction)

    def run(
        self,
        program: FleqProgram,
        *,
        engine: str = DEFAULT_ENGINE,
        max_steps: int = DEFAULT_MAX_STEPS,
        watch: Watch | None = None,
        interrupted: Callable[[], bool] | None = None,
        progress: Callable[[int], None] | None = None,
        guarded: bool = True,
        ports: Mapping[Pattern, Port] | None = None,
        begin: Mark | None = None,
        keep: At | None = None,
    ) -> FleqResult:
        """Run a program until it halts or has executed `max_steps` instructions, those before `begin` included.

        With `guarded`, the run stops with an error when a value leaves the range, a flag is no integer, or a pointer leaves
        the memory. A run that is watched, or on the dense engine, is looked at after every loop; any other between parts
        of `LOOK_EVERY` loops, so that what a program mends within a part goes unnoticed (see `PartGuard`).
        `ports` maps patterns, such as `reader.next_is(instruction)`, to what is called when one stands on the card.
        `begin` is the mark to go on from, by default the program's punched card. `keep` is given marks of the run.
        """
        if max_steps < 0:
            raise PunchcardError(f"max_steps={max_steps}: it must be 0 or more")
        punched = self.punch(program)
        begin = begin or Mark(punched)
        how: dict[str, Any] = {"engine": engine, "facts": self.layout, "until": self.halting}
        watchers, marks = [watch] if watch is not None else [], [keep] if keep is not None else []
        if guarded and (watchers or engine == OBSERVED):
            watchers.insert(0, self.guard(program, begin.card).watch)
        elif guarded:
            def again(mark: Mark, loops: int, *, guarded: bool) -> Mark:
                watch = self.guard(program, mark.card).watch if guarded else None
                ran = run_parts(self.model, mark, loops, watch=watch, **how | {"engine": mark.engine}).run
                return Mark(ran.card, ran.loops, ran.engine)

            look_at = PartGuard(self.guard(program, punched), begin, again).look
            marks = [At(LOOK_EVERY, look_at), *(At(mark.every, look_at) for mark in marks), *marks]  # no bad card is kept

        def look(loop: int, card: Tensor) -> None:
            for watcher in watchers:
                watcher(loop, card)

        course = run_parts(self.model, begin, max_steps, watch=look if watchers else None, marks=marks, ports=ports,
                           kept=keep is not None, interrupted=interrupted, progress=progress, **how)
        ran = course.run
        state = self.read(ran.card)
        matched = ran.reason == "matched"
        inside = 0 <= state.program_counter < len(program.instructions)
        halted = matched or (inside and not isinstance(program.instructions[state.program_counter], Step))
        memory = state.memory[:, : program.columns]
        return FleqResult(
            memory=program.named(memory), state=FleqState(memory, state.program_counter), halted=halted,
            steps=ran.loops - matched, loops=ran.loops, interrupted=ran.reason == "interrupted", engine=ran.engine,
            card=ran.card, notes=ran.notes, seconds=course.seconds, compile_seconds=ran.compile_seconds, begun=course.begun,
        )

    def describe(self) -> dict[str, Any]:
        """Sizes, functions, design, precision and layout as plain data."""
        return {
            "machine": "fleq",
            "sizes": {"size": self.sizes.size, "memory": self.sizes.memory, "instructions": self.sizes.instructions,
                      "range": self.range, "heads": self.heads, "anchors": self.anchors},
            "functions": list(self.blocks),
            "design": self.design.name,
            "precision": self.precision.describe(),
            "layout": self.layout.describe(),
        }

    def save(self, path: str | Path) -> None:
        """Write the machine to one safetensors file."""
        storage.save(path, self.model, self.describe())

    @classmethod
    def load(cls, path: str | Path, blocks: Sequence[Block] = ()) -> FleqMachine:
        """A machine from its file; blocks of your own are code, which no file holds, so they are given again."""
        return storage.restore(path, "fleq", cls._builder(blocks))

    @classmethod
    def from_description(
        cls, description: Mapping[str, Any], blocks: Sequence[Block] = (), source: str = "the description"
    ) -> FleqMachine:
        """A machine from what `describe` gave; `source` is named in errors."""
        return storage.rebuild(description, "fleq", cls._builder(blocks), source)

    @classmethod
    def _builder(cls, blocks: Sequence[Block]) -> Callable[[dict[str, Any], Precision], FleqMachine]:
        own = {block.name: block for block in blocks}

        def build_from(description: dict[str, Any], precision: Precision) -> FleqMachine:
            functions = [own.get(name, name) for name in description["functions"]]
            return cls(functions=functions, **description["sizes"], design=description["design"], precision=precision)

        return build_from

    def _check_fits(self, program: FleqProgram) -> None:
        sizes = self.sizes
        if program.size > sizes.size:
            raise ProgramError(f"the program's largest operand has {program.size} rows or columns, the machine's size is "
                               f"{sizes.size}: build it with size={program.size} or more")
        memory = program.columns + len(pointer_constants(program))
        for what, has, room in (("instructions", len(program.instructions), sizes.instructions),
                                ("memory columns", memory, sizes.memory)):
            if has > room:
                option = "instructions" if what == "instructions" else "memory"
                raise ProgramError(f"the program has {has} {what}, the machine has room for {room}: "
                                   f"build it with {option}={has} or more")
        for name in program.used_functions():
            if name not in self.blocks:
                raise ProgramError(f"the program calls {name!r}, which the machine does not have: it has "
                                   f"{', '.join(self.blocks)}")
        if program.range > self.range:
            raise ProgramError(f"the program declares the range {program.range:g}, the machine is built for {self.range:g}")


def pointer_constants(program: FleqProgram) -> dict[PointerUpdate, int]:
    """The constant columns that a program's pointer functions need, numbered from 0."""
    found: dict[PointerUpdate, int] = {}
    for instruction in program.instructions:
        if isinstance(instruction, Step) and isinstance(instruction.action, PointerUpdate):
            found.setdefault(PointerUpdate(0, instruction.action.field, instruction.action.value), len(found))
    return found
