"""The FLEQ machine: function blocks, sizes and a precision become a layout and a model; programs come later."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from punchcard.arguments import checked
from punchcard.card.encoding import encode_bits
from punchcard.card.formats import FormatName
from punchcard.card.layout import Card, Cards
from punchcard.engines import NoCopyWatch, Watch
from punchcard.errors import PrecisionError, ProgramError, PunchcardError, did_you_mean
from punchcard.machines.base import AsPrecision, Machine
from punchcard.machines.comparison import Check
from punchcard.machines.design import by_name
from punchcard.machines.display_values import DisplayValue, ListedInstruction, Listing, RealVariable, lines_of
from punchcard.machines.fleq.blocks.block import Block, PointerFunction
from punchcard.machines.fleq.blocks.catalogue import built_in
from punchcard.machines.fleq.designs.base import FleqContent, FleqDesign, FleqSizes, check_room
from punchcard.machines.fleq.designs.compact import CompactDesign
from punchcard.machines.fleq.designs.paper import PaperFleqDesign
from punchcard.machines.fleq.designs.three_layer import ThreeLayerFleqDesign
from punchcard.machines.fleq.fast import DecodedFleq
from punchcard.machines.fleq.functions import BUILT_IN, POINTER_FUNCTIONS
from punchcard.machines.fleq.guard import Guard, PartGuard, unchecked
from punchcard.machines.fleq.isa import Array, Call, FleqProgram, FleqState, Instruction, PointerUpdate, Step
from punchcard.machines.fleq.kind import FLEQ
from punchcard.machines.fleq.oracle import FleqInterpreter
from punchcard.machines.fleq.step_errors import Audit, StepErrors
from punchcard.machines.fleq.text.assembler import assemble
from punchcard.machines.kind import Kind
from punchcard.machines.meaning import Meaning
from punchcard.machines.result import Result
from punchcard.machines.running import Mark, PeriodicAction
from punchcard.machines.streams import Read, Write
from punchcard.transformer.precision import as_precision

LEAST_RANGE = 2.0**-20
DEFAULT_FUNCTIONS = ("add", "sub", "mul", "transpose", "sigmoid", "incr_pointer", "reset_pointer")
NEAR = 1e-6
"""Relative to the range, what a long run may be off from the interpreter's."""
MOST_SHOWN, MOST_COLUMNS = 64, 16
"""Variables that a view shows, and rows and columns of each."""
LOOK_EVERY = 1_000_000
"""Loops between two looks at the card of a guarded run that nobody watches: about a second of a compiled engine."""


@checked
class FleqMachine(Machine[FleqProgram, FleqState]):
    """A looped transformer that executes FLEQ programs, one instruction per loop: real matrices, and a set of functions.

    functions      names of built-in functions such as "mul", or your own function blocks
    size           d: operands and results have at most d rows and d columns
    memory         number of columns for variables and pointer constants
    instructions   number of instructions that a program may have, with the halt
    range          R: every value must stay within ±R
    heads          heads of a matrix product, 1 to 3: more heads, smaller error
    anchors        True: the paper's own matrix product, which has a larger error
    design         "compact", "three-layer" or "paper"
    precision      "float64", "float32" or a `Precision`
    """

    kind: ClassVar[Kind] = FLEQ
    designs: ClassVar[Mapping[str, FleqDesign]] = by_name(CompactDesign(), ThreeLayerFleqDesign(), PaperFleqDesign())
    compared: ClassVar[Check | None] = "lockstep"
    design: FleqDesign
    sizes: FleqSizes

    def __init__(
        self,
        *,
        functions: Sequence[str | Block] = DEFAULT_FUNCTIONS,
        size: int = 4,
        memory: int = 32,
        instructions: int = 32,
        design: str = "compact",
        precision: AsPrecision = "float64",
        range: float = 16.0,
        heads: int = 1,
        anchors: bool = False,
    ) -> None:
        self.check_options(design, {"size": size, "memory": memory, "instructions": instructions, "range": range,
                                    "heads": heads, "anchors": anchors})
        if not functions:
            raise PunchcardError("functions=[]: a FLEQ machine needs at least one function")
        if not 0 < range < math.inf:
            raise PunchcardError(f"range={range}: it must be a positive number")
        wanted = as_precision(precision)
        if wanted.significand < 24:
            raise PrecisionError(f"{wanted.name} has {wanted.significand} significand bits: real numbers "
                                 "need float32 or float64")
        largest = 2.0 ** (wanted.significand - 6)
        if not LEAST_RANGE <= range <= largest:
            raise PrecisionError(f"range={range:g}: it must be {LEAST_RANGE:g} or more, and {wanted.name} keeps "
                                 f"flags exact up to {largest:g}")
        self.range, self.heads, self.anchors, self._functions = float(range), heads, anchors, tuple(functions)
        self.unit = wanted.unit
        blocks = [self._block(f) for f in functions]
        names = [b.name for b in blocks]
        if duplicate := next((name for name in names if names.count(name) > 1), None):
            raise PunchcardError(f"function {duplicate!r} is plugged in twice")
        check_room(size)
        self.blocks = {b.name: b for b in blocks}
        plugged = self.designs[design].with_blocks(size, memory, instructions, blocks, self.range)
        self.build(plugged.sizes, plugged, wanted, {
            "functions": names, "size": size, "memory": memory, "instructions": instructions, "range": self.range,
            "heads": heads, "anchors": anchors})
        self.scale = plugged.scale

    @classmethod
    def sizes_for(cls, program: FleqProgram) -> dict[str, Any]:
        """The program's largest operand, memory columns, instructions and range, and the functions that it calls."""
        return {"functions": program.used_functions() or ("add",), "size": program.size, "range": program.range,
                "memory": max(1, program.columns + len(pointer_constants(program))),
                "instructions": len(program.instructions)}

    @classmethod
    def for_program(
        cls, program: FleqProgram, *, functions: Sequence[str | Block] | None = None, blocks: Sequence[Block] | None = None,
        **options: Any,
    ) -> FleqMachine:
        """As `Machine.for_program`. `blocks` are your own function blocks, for functions that the program calls."""
        options |= {name: value for name, value in program.preferred.items() if options.get(name) is None}
        own = {block.name: block for block in blocks or ()}
        names = functions or cls.sizes_for(program)["functions"]
        plugged = [own.get(name, name) if isinstance(name, str) else name for name in names]
        return super().for_program(program, functions=plugged, **options)

    @classmethod
    def builder(cls, *, blocks: Sequence[Block] = (), **objects: Any) -> Callable[..., FleqMachine]:
        """As `Machine.builder`. A file cannot hold your own function blocks, so give them again as `blocks`."""
        own = {block.name: block for block in blocks}
        make = super().builder(**objects)
        return lambda functions, **options: make(functions=[own.get(name, name) for name in functions], **options)

    def in_format(self, dtype: FormatName) -> FleqMachine:
        options = {**self.options, "functions": self._functions}
        return type(self)(**options, design=self.design.name, precision=self._precision_in(dtype))

    def _block(self, function: str | Block) -> Block:
        if isinstance(function, Block):
            return function
        if function in POINTER_FUNCTIONS:
            return PointerFunction(function)
        return built_in(function, self.heads, anchors=self.anchors, unit=self.unit, limit=self.range)

    def meaning(self, card: Meaning) -> None:
        from punchcard.machines.fleq.meaning import tell

        tell(self.design, card.reals)

    def bound(self, function: str) -> float:
        """The error bound of a function, for each entry of its result, if the result is within the range.

        It is for operands as `bound_over` says: within the range, or the domain of the function.
        """
        return float(self._known_block(function).bound(self.scale))

    def bound_over(self, function: str) -> str:
        """The operands that the error bound of a function is for, such as `[-16, 16]`.

        `positive` has no bound for operands in its dead zone, where its result is anything from 0 to 1.
        """
        return self._known_block(function).enclosure(self.scale).over

    def _known_block(self, function: str) -> Block:
        if function not in self.blocks:
            raise PunchcardError(f"the machine has no function {function!r}{did_you_mean(function, self.blocks)}: it has "
                                 f"{', '.join(self.blocks)}")
        return self.blocks[function]

    def check_mark(self, program: FleqProgram, mark: Mark) -> None:
        """As `Machine.check_mark`: the next instruction must be one of the program, with valid pointers."""
        super().check_mark(program, mark)
        Guard(self.design, program, mark.raw_card)

    def guard(
        self, program: FleqProgram, begin: Mark, again: Callable[[Mark, int, Watch | None], Mark], *, every_loop: bool,
    ) -> tuple[Watch | None, Sequence[PeriodicAction]]:
        """Check that values stay within the range, flags are integers, and pointers stay inside the memory.

        If the run is not watched after every loop, it is checked every `LOOK_EVERY` loops. A violation that the program
        undoes between two checks is not noticed (see `PartGuard`).
        """
        if every_loop:
            return self._watching(program, begin), ()

        def made_again(mark: Mark, loops: int, guarded: bool) -> Mark:
            return again(mark, loops, self._watching(program, mark) if guarded else None)

        punched = self.pack(program) if begin.loops else begin.raw_card
        return None, [PeriodicAction(LOOK_EVERY, PartGuard(Guard(self.design, program, punched), begin, made_again).look)]

    def _watching(self, program: FleqProgram, mark: Mark) -> Watch:
        """A guard from a mark on. It keeps nothing of the card, so an engine need not copy it."""
        return NoCopyWatch(Guard(self.design, program, mark.raw_card).watch)

    def unchecked(self, program: FleqProgram, loops: int) -> tuple[str, ...]:
        return unchecked(program, loops)

    # Punching and reading

    def content(self, program: FleqProgram) -> FleqContent:
        """The columns of variables and of pointer constants, and a column for each instruction that there is room for."""
        sizes, constants = self.sizes, pointer_constants(program)
        memory = np.zeros((sizes.data_rows, program.columns + len(constants)))
        values = program.initial_memory(sizes.size)[:, : program.columns]
        memory[: sizes.size, : program.columns] = values + 0.0  # a column of -0.0 would become 0.0
        for update, column in constants.items():
            memory[:, program.columns + column] = self._pointer_constant(update)
        padded = [*program.instructions, *[None] * (sizes.instructions - len(program.instructions))]
        fields = [self._fields(instruction, number, program, constants) for number, instruction in enumerate(padded)]
        parts = [encode_bits([of_one.get(name, 0) for of_one in fields], bits)
                 for name, bits in sizes.instruction_parts().items()]
        code = np.zeros((sizes.data_rows, sizes.instructions))
        code[: sizes.instruction_rows] = np.concatenate(parts)
        return FleqContent(memory, code)

    def _pointer_constant(self, update: PointerUpdate) -> Array:
        """A column that names a field: ones for an increment, the new pointer's bits for a reset."""
        column = np.zeros(self.sizes.data_rows)
        rows = self.sizes.field_rows(update.field)
        if update.value is None:
            column[rows] = 1.0
        else:
            base = self.sizes.instruction_column if update.field == "p" else self.sizes.memory_column
            column[rows] = encode_bits(base + update.value, self.sizes.pointer_bits)[:, 0]
        return column

    def _fields(
        self, instruction: Instruction | None, number: int, program: FleqProgram, constants: dict[PointerUpdate, int]
    ) -> dict[str, int]:
        """The fields that are not 0. A halt, and the room after the program, jumps to itself and calls nothing."""
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
                for name, shape in action.shapes.items():
                    values |= {name: memory + getattr(action, name), f"{name}_width": shape.columns}
                values |= {f"call_{action.function}": 1, "a_height": action.a_shape.rows, "c_height": action.c_shape.rows}
            elif isinstance(action, PointerUpdate):
                values |= {"a": code + action.instruction, "c": code + action.instruction,
                           "b": memory + program.columns + constants[PointerUpdate(0, action.field, action.value)],
                           f"call_{action.function}": 1, "a_width": 1, "b_width": 1, "c_width": 1}
            if branch is not None:
                values |= {"flag": sizes.zero_column if branch.flag is None else memory + branch.flag,
                           "p": code + branch.target}
        return values

    def states(self, cards: Cards) -> list[FleqState]:
        memories, counters = self.design.read(self.sizes, self.layout, cards)
        return [FleqState(memory, counter) for memory, counter in zip(memories, counters.tolist(), strict=True)]

    def own(self, program: FleqProgram, state: FleqState) -> FleqState:
        return FleqState(state.memory[:, : program.columns], state.program_counter)

    def values(self, program: FleqProgram, state: FleqState) -> dict[str, Any]:
        return dict(program.named(state.memory))

    def at_halt(self, program: FleqProgram, state: FleqState) -> bool:
        inside = 0 <= state.program_counter < len(program.instructions)
        return inside and not isinstance(program.instructions[state.program_counter], Step)

    def real_variables(self, program: FleqProgram) -> dict[str, RealVariable]:
        first, starts = self.sizes.memory_column, [self.layout.rows(name).start for name in ("data", "incoming")]
        return {v.name: RealVariable(slice(first + v.address, first + v.columns.stop),
                                  tuple(slice(start, start + v.shape.rows) for start in starts)) for v in program.variables}

    def column_name(self, column: int, program: FleqProgram | None = None) -> str:
        name = self.layout.column_name(column)
        if program is None:
            return name
        cell, number = column - self.sizes.memory_column, column - self.sizes.instruction_column
        if 0 <= cell < program.columns:
            return program.column_name(cell)
        return f"instruction {number}" if number >= 0 else name

    # Comparing

    def oracle(self, program: FleqProgram, read: Read, write: Write) -> FleqInterpreter:
        return FleqInterpreter(program, check_range=False)

    def comparison(
        self, program: FleqProgram, begin: Mark, check: Check, kept: Mapping[str, Any] | None = None
    ) -> StepErrors:
        """Each instruction is compared with the exact function of its operands on the card."""
        return StepErrors(self, program, begin.raw_card, Audit.of(kept) if kept else Audit())

    def near(self, program: FleqProgram, found: FleqState, expected: FleqState) -> bool:
        memory = found.memory[: program.rows, : program.columns] - expected.memory[:, : program.columns]
        return found.program_counter == expected.program_counter and bool(np.abs(memory).max() < NEAR * self.range)

    def quickest(self, program: FleqProgram) -> DecodedFleq:
        return DecodedFleq(program)

    # Showing

    def title(self) -> str:
        return (f"fleq, design {self.design.name!r}: size {self.sizes.size}, range {self.range:g}, "
                f"functions {', '.join(self.blocks)}")

    def summary(self) -> dict[str, Any]:
        found = super().summary()
        deepest = max(block.lemma.depth for block in self.blocks.values())
        heads = sum(block.lemma.heads for block in self.blocks.values())
        paper = {
            "layers": 9 + deepest, "heads": f"theorem: {heads}, the sum over the blocks; table: 1; step 2: 3",
            "width": "O(M d + log n)", "temperature": "above log(G d n^3 / eps)",
            "statement": "Theorem (unified), section 5.2: 9 + max l_i layers",
        }
        return found | {"scratchpad": self.sizes.scratchpad, "paper": paper,
                        "bounds": {name: self.bound(name) for name in self.blocks},
                        "bounds_over": {name: self.bound_over(name) for name in self.blocks}}

    def trace_line(self, program: FleqProgram, before: Card, after: Card) -> str:
        number, following = self.design.counter(before), self.design.counter(after)
        pointers = self.design.pointers(self.design.instruction(before, number))
        action, result = getattr(program.instructions[number], "action", None), ""
        if isinstance(action, Call) and (action.c_shape.rows, action.c_shape.columns) == (1, 1):
            result = f" = {self.design.memory(after)[0, pointers['c']]:.6g}"
        return f"[{number}] {program.describe(number, pointers, result):<52} goto {following}"

    def format_result(self, program: FleqProgram, result: Result[FleqState]) -> str:
        """The variables or, if the program is a function that has halted, its returned values."""
        values: Mapping[str, Any] = result.memory
        if result.halted and (wanted := program.results):
            names = ["result"] if len(wanted) == 1 else [f"result[{i}]" for i in range(len(wanted))]
            values = {name: each.of(result.memory) for name, each in zip(names, wanted, strict=True)}
        lines = [f"{name} = {_format_value(value, indent=len(name) + 3)}" for name, value in values.items()]
        away, against = self.returned(program, result).get("numpy_difference"), f"relative to the range {self.range:g}"
        return "\n".join([*lines, f"difference from NumPy {away:.1e}, {against}"] if away is not None else lines)

    def returned(self, program: FleqProgram, result: Result[FleqState]) -> dict[str, Any]:
        """The returned values of a function, and their distance from NumPy's, relative to the range."""
        wanted = program.results
        if not result.halted or not wanted:
            return {}
        found = [value.tolist() if isinstance(value, np.ndarray) else value for value in (
            each.of(result.memory) for each in wanted)]
        distances = [distance for each in wanted if (distance := each.difference(result.memory)) is not None]
        return {"result": found[0] if len(found) == 1 else found,
                "numpy_difference": max(distances) / self.range if distances else None}

    def display_values(self, program: FleqProgram) -> list[DisplayValue]:
        """The program counter, and the variables: of a long one the first columns."""
        sizes, found = self.sizes, [DisplayValue("program counter", "machine", "program_counter", 0, kind="unsigned",
                                          offset=-self.sizes.instruction_column)]
        for variable in program.variables[:MOST_SHOWN]:
            found.append(DisplayValue(variable.name, "variables", "data", sizes.memory_column + variable.address,
                               min(variable.shape.columns, MOST_COLUMNS), "numbers",
                               height=min(variable.shape.rows, MOST_COLUMNS), plus="incoming"))
        return found

    def listing(self, program: FleqProgram, source: str | None = None) -> Listing:
        """An instruction is a line; of a program without lines, a line of its disassembled text."""
        if source is None or len(program.lines) < len(program.instructions) - 1:
            source = self.kind.disassemble(program)
            program = self.restore(source)
        lines, found = lines_of(source), list[ListedInstruction]()
        for number, line in enumerate(program.lines):
            text = lines[line - 1].split("#")[0].strip() if line <= len(lines) else ""
            found.append(ListedInstruction(number, line, text))
        if len(found) < len(program.instructions):
            found.append(ListedInstruction(len(found), None, "halt"))
        return Listing(lines, found)

    def plain(self, value: np.ndarray) -> Any:
        return float(value[0, 0]) if value.shape == (1, 1) else value.tolist()

    def restore(self, text: str) -> FleqProgram:
        own = {name: block.function for name, block in self.blocks.items() if name not in (*BUILT_IN, *POINTER_FUNCTIONS)}
        return assemble(text, functions=own)

    def check_fits(self, program: FleqProgram) -> None:
        sizes = self.sizes
        if program.size > sizes.size:
            raise ProgramError(f"the program's largest operand has {program.size} rows or columns, the machine's size is "
                               f"{sizes.size}: build it with size={program.size} or more")
        memory = program.columns + len(pointer_constants(program))
        for option, what, has, room in (("instructions", "instructions", len(program.instructions), sizes.instructions),
                                        ("memory", "memory columns", memory, sizes.memory)):
            if has > room:
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
    wanted = dict.fromkeys(PointerUpdate(0, update.field, update.value) for update in program.pointer_updates())
    return {constant: number for number, constant in enumerate(wanted)}


def _format_value(value: np.ndarray | float, indent: int) -> str:
    if np.size(value) == 1 and np.ndim(value) != 1:
        return f"{np.ravel(value)[0]:.10g}"
    with np.printoptions(precision=8, suppress=True, linewidth=110):
        return str(value).replace("\n", "\n" + " " * indent)
