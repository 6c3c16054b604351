"""The instruction set of the FLEQ computer, and its programs.

    mem[c] = f(mem[a], mem[b]); if mem[flag] <= 0 goto instruction p

A memory cell is a column of real numbers. A variable is one or more consecutive columns: a scalar or a vector is one,
a matrix one for each of its columns. Columns are read and written whole: rows beyond a variable's own are 0, so an
operand of fewer rows than the machine's is padded with zeros. The width of each operand says how many columns are
read or written.

Instructions are data too. A pointer function reads an instruction, changes one of its pointers and writes it back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from punchcard.arguments import checked
from punchcard.budget import require
from punchcard.errors import ProgramError, did_you_mean
from punchcard.formatting import join_some, plural
from punchcard.machines.fleq.functions import Array as Array
from punchcard.machines.fleq.functions import Field as Field
from punchcard.machines.fleq.functions import Function, Shape
from punchcard.machines.subleq.isa import Halt as Halt

FLAG_TOLERANCE = 1e-6
"""A flag within this of an integer counts as one: counters of tenths are never exact."""


@dataclass(frozen=True)
class Variable:
    """A named matrix, which may be a vector (one column) or a scalar, and its first memory column."""

    name: str
    shape: Shape
    address: int

    @property
    def columns(self) -> range:
        return range(self.address, self.address + self.shape.columns)


@dataclass(frozen=True)
class Call:
    """mem[c] = function(mem[a], mem[b]): memory columns where operands and result begin, and their shapes."""

    function: str
    a: int
    b: int | None
    c: int
    a_shape: Shape
    b_shape: Shape | None
    c_shape: Shape

    @classmethod
    def of(cls, function: str, operands: Sequence[tuple[int, Shape]], result: tuple[int, Shape]) -> Call:
        """A call of one or two operands, each a memory column and a shape."""
        (a, a_shape), *second = operands
        b, b_shape = second[0] if second else (None, None)
        return cls(function, a, b, result[0], a_shape, b_shape, result[1])

    @property
    def operand_shapes(self) -> dict[Field, Shape]:
        """The shapes of its operands, by field."""
        return {"a": self.a_shape} if self.b_shape is None else {"a": self.a_shape, "b": self.b_shape}

    @property
    def shapes(self) -> dict[Field, Shape]:
        """The same, and that of its result."""
        return {**self.operand_shapes, "c": self.c_shape}


@dataclass(frozen=True)
class PointerUpdate:
    """A change to one pointer of an instruction: `incr_pointer(l.field)` adds 1, `reset_pointer(l.field, x)` sets it.

    `value` is None for an increment; for a reset it is a memory column, or an instruction's number when the field is p.
    """

    instruction: int
    field: Field
    value: int | None = None

    @property
    def function(self) -> str:
        return "incr_pointer" if self.value is None else "reset_pointer"


@dataclass(frozen=True)
class Branch:
    """if mem[flag] <= 0 goto target.

    `flag` is a memory column, whose first entry is an integer; None is an unconditional goto.
    """

    flag: int | None
    target: int


@dataclass(frozen=True)
class Step:
    """One FLEQ instruction: what it computes, if anything, and where it branches, if it does."""

    action: Call | PointerUpdate | None = None
    branch: Branch | None = None


Instruction: TypeAlias = Step | Halt


@dataclass(frozen=True)
class FleqState:
    """What a run is judged by: all memory columns side by side (rows by columns), and the next instruction."""

    memory: Array = field(repr=False)
    program_counter: int


@dataclass(frozen=True)
class Returned:
    """A value that a program is run for: the variable that holds it, its shape, and whether it is stored transposed.

    expected    what NumPy computes, where it was asked
    """

    variable: str
    shape: tuple[int, ...]
    turned: bool = False
    expected: Array | None = field(default=None, repr=False, compare=False)

    def of(self, memory: Mapping[str, Array]) -> Array | float:
        """The value in a memory by name."""
        stored = memory[self.variable]
        value = (stored.T if self.turned else stored).reshape(self.shape)
        return value.copy() if self.shape else float(value)

    def difference(self, memory: Mapping[str, Array]) -> float | None:
        """How far the value is from what NumPy computes, at most; None where it was not asked."""
        if self.expected is None:
            return None
        return float(np.max(np.abs(self.of(memory) - self.expected.reshape(self.shape)), initial=0.0))


@checked
@dataclass(frozen=True, eq=False)
class FleqProgram:
    """A FLEQ program: instructions, variables with initial values, labels, and the range R: values stay within ±R."""

    instructions: tuple[Instruction, ...]
    variables: tuple[Variable, ...]
    values: Mapping[str, Array]
    functions: Mapping[str, Function]
    labels: tuple[tuple[str, int], ...] = ()
    range: float = 16.0
    lines: tuple[int, ...] = field(default=(), repr=False)
    """The line of each instruction in the text that it comes from, counted from 1."""
    results: tuple[Returned, ...] = field(default=(), repr=False)
    """The results, if they are declared: a run prints these instead of every variable."""
    preferred: Mapping[str, object] = field(default_factory=dict, repr=False)
    """Default options of its machine: `heads`, `precision`, `design`."""
    listing: str = field(default="", repr=False)
    """Its text with comments, where it has one."""

    def __post_init__(self) -> None:
        if not self.instructions or not isinstance(self.instructions[-1], Halt):
            raise ProgramError("a program ends with a halt")
        for variable in self.variables:
            if variable.name not in self.values:
                raise ProgramError(f"variable {variable.name!r} has no value")
            value = self.values[variable.name]
            if value.shape != (variable.shape.rows, variable.shape.columns):
                raise ProgramError(f"variable {variable.name!r} is {variable.shape}, its value is {Shape(*value.shape)}")
            if not np.all(np.abs(value) <= self.range):
                raise ProgramError(f"variable {variable.name!r} holds a value that is not within ±{self.range:g}, the "
                                   "declared range")

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, FleqProgram)
            and (self.instructions, self.variables, self.labels, self.range)
            == (other.instructions, other.variables, other.labels, other.range)
            and self.functions.keys() == other.functions.keys()
            and all(np.array_equal(value, other.values[name]) for name, value in self.values.items())
        )

    def __repr__(self) -> str:
        variables = join_some([f"{variable.name} {variable.shape}" for variable in self.variables])
        size = f"{plural(len(self.instructions), 'instruction')}, {plural(len(self.variables), 'variable')}"
        return f"<FleqProgram: {size}: {variables}; range ±{self.range:g}>"

    @property
    def columns(self) -> int:
        """The number of memory columns that the variables need."""
        return sum(v.shape.columns for v in self.variables)

    @property
    def rows(self) -> int:
        """The largest number of rows of a variable."""
        return max((v.shape.rows for v in self.variables), default=1)

    @property
    def size(self) -> int:
        """The least d of a machine for this program: no column, operand or result has more than d rows or columns.

        A variable may have more than d columns if they are used one by one, such as the points of a data set.
        """
        shapes = [shape for action in self.actions() if isinstance(action, Call) for shape in action.shapes.values()]
        return max([self.rows, *(max(shape.rows, shape.columns) for shape in shapes)])

    def actions(self) -> list[Call | PointerUpdate]:
        """What the instructions compute."""
        return [i.action for i in self.instructions if isinstance(i, Step) and i.action is not None]

    def pointer_updates(self) -> list[PointerUpdate]:
        """What they change of each other."""
        return [action for action in self.actions() if isinstance(action, PointerUpdate)]

    def used_functions(self) -> tuple[str, ...]:
        """The functions that the program calls, in the order of first use."""
        return tuple(dict.fromkeys(action.function for action in self.actions()))

    def initial_memory(self, rows: int | None = None) -> Array:
        """All variables side by side, padded with zeros to `rows` rows."""
        shape = rows or self.rows, max(1, self.columns)
        require(8 * shape[0] * shape[1], f"a memory of {shape[0]} rows and {shape[1]} columns for all variables")
        memory = np.zeros(shape)
        for variable in self.variables:
            memory[: variable.shape.rows, variable.address : variable.columns.stop] = self.values[variable.name]
        return memory

    def with_values(self, values: Mapping[str, ArrayLike]) -> FleqProgram:
        """A copy of the program with other initial values, by name. A vector may be given as a row."""
        shapes = {v.name: v.shape for v in self.variables}
        changed = dict(self.values)
        for name, value in values.items():
            if name not in shapes:
                raise ProgramError(f"unknown variable {name!r}{did_you_mean(name, shapes)}; the program has "
                                   f"{', '.join(shapes)}")
            shape, given = shapes[name], np.array(value, dtype=np.float64)
            if given.size == shape.rows and shape.columns == 1:
                given = given.reshape(shape.rows, 1)
            if given.shape != (shape.rows, shape.columns):
                raise ProgramError(f"variable {name!r} is {shape}, and {' x '.join(map(str, given.shape)) or 'one number'} "
                                   "is given")
            changed[name] = given
        unknown = tuple(replace(each, expected=None) for each in self.results)
        return replace(self, values=changed, listing="", results=unknown)

    def column_name(self, column: int) -> str:
        """The variable that a memory column belongs to: `t`, or `A[2]` for a column of a matrix."""
        for variable in self.variables:
            if column in variable.columns:
                one = variable.shape.columns == 1
                return variable.name if one else f"{variable.name}[{column - variable.address}]"
        return str(column)

    def describe(self, number: int, pointers: Mapping[str, int], result: str = "") -> str:
        """An instruction as text, with the current values of its pointers and the result of its call."""
        instruction = self.instructions[number]
        if isinstance(instruction, Halt):
            return "halt"
        parts = [] if instruction.action is None else [self._describe_action(instruction.action, pointers) + result]
        if instruction.branch is not None:
            test = "" if instruction.branch.flag is None else f"if {self._place(pointers['flag'])} <= 0 "
            parts.append(f"{test}goto {pointers['p']}")
        return "; ".join(parts)

    def _describe_action(self, action: Call | PointerUpdate, pointers: Mapping[str, int]) -> str:
        if isinstance(action, PointerUpdate):
            value = "" if action.value is None else f", {action.value}"
            return f"{action.function}({action.instruction}.{action.field}{value})"
        operands = [f"{self._place(pointers[x])} {shape}" for x, shape in action.operand_shapes.items()]
        return f"{self._place(pointers['c'])} {action.c_shape} = {action.function}({', '.join(operands)})"

    def _place(self, address: int) -> str:
        """A whole variable by its name, a column of one as `A[2]`."""
        return next((v.name for v in self.variables if v.address == address), self.column_name(address))

    def named(self, memory: Array) -> dict[str, Array]:
        """The values of a memory, by the names of the variables."""
        return {v.name: np.array(memory[: v.shape.rows, v.address : v.columns.stop]) for v in self.variables}


def variables_in_order(shapes: Sequence[tuple[str, Shape]]) -> tuple[Variable, ...]:
    """Variables one after the other from memory column 0."""
    placed, end = [], 0
    for name, shape in shapes:
        placed.append(Variable(name, shape, end))
        end += shape.columns
    return tuple(placed)


def pointers(instruction: Instruction) -> dict[Field, int]:
    """The pointers that an instruction has, by field: what pointer functions can change."""
    if isinstance(instruction, Halt):
        return {}
    found: dict[Field, int] = {}
    if isinstance(instruction.action, Call):
        found |= {name: getattr(instruction.action, name) for name in instruction.action.shapes}
    if instruction.branch is not None:
        if instruction.branch.flag is not None:
            found["flag"] = instruction.branch.flag
        found["p"] = instruction.branch.target
    return found


def with_pointer(step: Step, field: Field, value: int) -> Step:
    """A copy of an instruction with another value of one of its pointers."""
    if step.branch is not None and field in ("flag", "p"):
        return replace(step, branch=replace(step.branch, **{"target" if field == "p" else "flag": value}))
    return replace(step, action=replace(step.action, **{field: value}))  # type: ignore[type-var]
