"""Writing FLEQ programs from Python: variables, calls, labels and branches, put together as they are said.

    p = Builder()
    a = p.matrix("A", [[4, 1], [2, 3]])
    x = p.mul(a, p.matrix("E", 0.03 * np.eye(2)), into="X")     # X gets its shape from the rule of mul
    loop = p.label("loop")
    ...
    p.add(t, one, into=t, goto=loop, if_leq=t)                  # one instruction: add, then branch on what it wrote
    program = p.program(range=4.0)

A function is called by its name, `p.mul(...)`, or as `p.call(function, ...)`. An operand is a variable, one column of it,
`a[2]`, or a variable's name. A result without `into` goes to a temporary. Labels may be used before they are placed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from punchcard.errors import ProgramError, did_you_mean
from punchcard.machines.fleq.functions import ARRAY_FUNCTIONS, KNOWN, Function, Shape, ShapeMismatch, known_function
from punchcard.machines.fleq.isa import (
    Array,
    Branch,
    Call,
    Field,
    FleqProgram,
    Halt,
    PointerUpdate,
    Step,
    pointers,
    variables_in_order,
)
from punchcard.machines.fleq.text.source import KEYWORDS
from punchcard.machines.subleq.isa import NAME

SCALAR = Shape(1, 1)


@dataclass(frozen=True)
class Place:
    """A variable, or with `column` one of its columns."""

    name: str
    shape: Shape
    column: int | None = None

    def __getitem__(self, column: int) -> Place:
        if self.column is not None or not 0 <= column < self.shape.columns:
            raise ProgramError(f"'{self}[{column}]' is beyond {str(self)!r}, which has {self.shape.columns} "
                               f"column{'s' * (self.shape.columns != 1)}, counted from 0")
        return Place(self.name, Shape(self.shape.rows, 1), column)

    def __str__(self) -> str:
        return self.name if self.column is None else f"{self.name}[{self.column}]"


Operand: TypeAlias = Place | str
"""A place, or the name of a variable."""


@dataclass(frozen=True)
class _Addresses:
    """The addresses of variables and the numbers of labelled instructions."""

    addresses: dict[str, int]
    labels: dict[str, int]

    def column(self, place: Place) -> int:
        return self.addresses[place.name] + (place.column or 0)

    def target(self, label: str) -> int:
        if label not in self.labels:
            raise ProgramError(f"unknown label {label!r}{did_you_mean(label, self.labels)}: place it with `label`")
        return self.labels[label]


Action: TypeAlias = Callable[[_Addresses], Call | PointerUpdate | None]
"""What an instruction computes, once its variables and labels have numbers."""


@dataclass(frozen=True)
class _Step:
    """An instruction whose variables and labels have no numbers yet, and the places that it names."""

    action: Action
    places: tuple[Place, ...]
    flag: Place | None
    target: str | None

    def numbered(self, numbers: _Addresses) -> Step:
        branch = None
        if self.target is not None:
            branch = Branch(None if self.flag is None else numbers.column(self.flag), numbers.target(self.target))
        return Step(self.action(numbers), branch)


class Builder:
    """A program that is being written. Variables come first in its memory, then constants, then temporaries.

    note     goes with every instruction that is written while it is here, such as a line of a source
    notes    the notes, by the number of the instruction
    """

    def __init__(self, functions: Iterable[Function] = ()) -> None:
        self.functions = {**KNOWN, **{function.name: function for function in functions}}
        self.note: str | None = None
        self.notes: dict[int, str] = {}
        self.values: dict[str, Array] = {}
        self._constants: dict[float, Place] = {}
        self._temporaries: list[Place] = []
        self._free: list[Place] = []
        self._steps: list[_Step | Halt] = []
        self._labels: dict[str, int] = {}
        self._taken: set[str] = set()

    # Variables

    def matrix(self, name: str, value: ArrayLike | None = None, shape: tuple[int, int] | None = None) -> Place:
        """A new variable: a value, rows of numbers; or a shape, filled with zeros or with the numbers of the value."""
        array = np.zeros(shape or (1, 1)) if value is None else np.array(value, dtype=np.float64)
        if shape is not None and array.size == shape[0] * shape[1]:
            array = array.reshape(shape)
        if array.ndim != 2 or (shape is not None and array.shape != shape):
            raise ProgramError(f"variable {name!r}: a value of the shape {array.shape}, where it must be "
                               f"{shape or 'a matrix'}")
        if not NAME.fullmatch(name) or name in KEYWORDS:
            raise ProgramError(f"variable {name!r}: a name is letters, digits and _, starts with no digit, and is not "
                               f"{', '.join(KEYWORDS)}")
        if name in self.values:
            raise ProgramError(f"variable {name!r} is declared twice")
        self._taken.add(name)
        self.values[name] = array
        return Place(name, Shape(*array.shape))

    def vector(self, name: str, rows: int, value: ArrayLike | None = None) -> Place:
        """A new column, of zeros without a value."""
        return self.matrix(name, value, (rows, 1))

    def scalar(self, name: str, value: float = 0.0) -> Place:
        """A new variable of one number."""
        return self.matrix(name, [[value]])

    def constant(self, value: float) -> Place:
        """The variable that holds a number which nothing changes; equal ones are one."""
        if value not in self._constants:
            name = {0.0: "zero", 1.0: "one"}.get(value) or f"k{len(self._constants) + 1}"
            self._constants[value] = self.scalar(self.unused(name), value)
        return self._constants[value]

    def temporary(self, shape: Shape = SCALAR) -> Place:
        """A variable for a while: the first that was released, or a new one."""
        fitting = [place for place in self._temporaries if place in self._free and place.shape == shape]
        if fitting:
            self._free.remove(fitting[0])
            return fitting[0]
        count = len(self._temporaries) + 1
        name = self.unused("t" if count == 1 else f"t{count}")
        self._temporaries.append(self.matrix(name, shape=(shape.rows, shape.columns)))
        return self._temporaries[-1]

    def release(self, place: Place) -> None:
        """A temporary that is needed no more."""
        if place not in self._temporaries or place in self._free:
            raise ProgramError(f"'{place}' is not a temporary that is in use")
        self._free.append(place)

    def reserve(self, names: Iterable[str]) -> None:
        """Names that constants and temporaries shall not take."""
        self._taken.update(names)

    def unused(self, name: str) -> str:
        """This name for a variable, or one like it that nothing has yet."""
        while name in self._taken:
            name += "_"
        return name

    def __getitem__(self, name: str) -> Place:
        """The variable of this name."""
        if name not in self.values:
            raise ProgramError(f"unknown variable {name!r}{did_you_mean(name, self.values)}: declare it first")
        return Place(name, Shape(*self.values[name].shape))

    def _place(self, operand: Operand) -> Place:
        if isinstance(operand, str):
            return self[operand]
        if not isinstance(operand, Place) or operand.name not in self.values:
            raise ProgramError(f"{operand!r} is not a variable of this program: give its name, or what declared it")
        return operand

    # Instructions

    def __getattr__(self, name: str) -> Callable[..., Place]:
        if name not in self.__dict__.get("functions", ()):
            raise AttributeError(f"Builder has neither a method nor a function {name!r}")
        return partial(self.call, name)

    def call(
        self, function: str | Function, *operands: Operand, into: Operand | None = None, goto: str | None = None,
        if_leq: Operand | None = None,
    ) -> Place:
        """Write into = function(operands), with a branch if `goto` says where; the place of the result.

        The name of a new variable in `into` declares it. None takes a temporary.
        """
        rule = self._function(function)
        places = tuple(map(self._place, operands))
        if len(places) != rule.arity:
            raise ProgramError(f"{rule.name} takes {rule.arity} operand{'s' * (rule.arity != 1)}: {len(places)} given")
        try:
            shape = rule.shape(*(place.shape for place in places))
        except ShapeMismatch as error:
            raise ProgramError(f"shapes of {rule.name}: {error}") from None
        if into is None:
            target = self.temporary(shape)
        elif isinstance(into, str) and into not in self.values:
            target = self.matrix(into, shape=(shape.rows, shape.columns))
        else:
            target = self._place(into)
        if target.shape != shape:
            given = " and ".join(str(place.shape) for place in places)
            raise ProgramError(f"{rule.name} of {given} is {shape}, but '{target}' is {target.shape}")
        self._step(lambda numbers: Call.of(rule.name, [(numbers.column(place), place.shape) for place in places],
                                           (numbers.column(target), target.shape)), (*places, target), goto, if_leq)
        return target

    def incr_pointer(self, label: str, field: Field, *, goto: str | None = None, if_leq: Operand | None = None) -> None:
        """The pointer in a field of the labelled instruction moves on by one."""
        self._step(lambda numbers: PointerUpdate(numbers.target(label), field), (), goto, if_leq)

    def reset_pointer(
        self, label: str, field: Field, to: Operand, *, goto: str | None = None, if_leq: Operand | None = None
    ) -> None:
        """The pointer leads to a place; the pointer p to a label."""
        if field == "p" and not isinstance(to, str):
            raise ProgramError(f"the pointer p leads to a label, not to '{to}'")
        place = None if field == "p" else self._place(to)

        def action(numbers: _Addresses) -> PointerUpdate:
            value = numbers.target(str(to)) if place is None else numbers.column(place)
            return PointerUpdate(numbers.target(label), field, value)

        self._step(action, () if place is None else (place,), goto, if_leq)

    def goto(self, label: str, *, if_leq: Operand | None = None) -> None:
        """Branch: always, or where the first entry of a place, an integer, is at most 0."""
        self._step(lambda numbers: None, (), label, if_leq)

    def halt(self) -> None:
        self._add(Halt())

    def label(self, name: str) -> str:
        """The next instruction is called so."""
        if not NAME.fullmatch(name):
            raise ProgramError(f"label {name!r}: a name is letters, digits and _, and starts with no digit")
        if name in KEYWORDS:
            raise ProgramError(f"label {name!r} begins an instruction: it needs another name")
        if name in self._labels:
            raise ProgramError(f"label {name!r} is placed twice")
        self._labels[name] = len(self._steps)
        return name

    @property
    def here(self) -> int:
        """The number of the next instruction."""
        return len(self._steps)

    def _function(self, function: str | Function) -> Function:
        if isinstance(function, Function):
            if self.functions.get(function.name) is ARRAY_FUNCTIONS.get(function.name):
                self.functions[function.name] = function
            return self.functions[function.name]
        if function not in self.functions and (known := known_function(function)) is not None:
            self.functions[function] = known
        if function not in self.functions:
            raise ProgramError(f"unknown function {function!r}{did_you_mean(function, self.functions)}: there are "
                               f"{', '.join(self.functions)}")
        return self.functions[function]

    def _step(self, action: Action, places: tuple[Place, ...], goto: str | None, if_leq: Operand | None) -> None:
        if if_leq is not None and goto is None:
            raise ProgramError(f"if_leq={str(if_leq)!r}: goto, where to jump, is missing")
        flag = None if if_leq is None else self._place(if_leq)
        self._add(_Step(action, places if flag is None else (*places, flag), flag, goto))

    def _add(self, step: _Step | Halt) -> None:
        if self.note is not None:
            self.notes[len(self._steps)] = self.note
        self._steps.append(step)

    # The program

    def program(self, range: float = FleqProgram.range, *, only_used: bool = False) -> FleqProgram:
        """The program so far, with a halt at its end. `only_used` leaves out variables that no instruction names."""
        steps = list(self._steps)
        if not steps or not isinstance(steps[-1], Halt) or len(steps) in self._labels.values():
            steps.append(Halt())
        last = {place.name: 1 for place in self._constants.values()} | {place.name: 2 for place in self._temporaries}
        names = sorted(self.values, key=lambda name: last.get(name, 0))
        if only_used:
            used = {place.name for step in steps if isinstance(step, _Step) for place in step.places}
            names = [name for name in names if name in used]
        values = {name: self.values[name] for name in names}
        variables = variables_in_order([(name, Shape(*value.shape)) for name, value in values.items()])
        numbered = _Addresses({v.name: v.address for v in variables}, self._labels)
        instructions = tuple(step.numbered(numbered) if isinstance(step, _Step) else step for step in steps)
        program = FleqProgram(instructions, variables, values, self.functions, tuple(self._labels.items()), float(range))
        for changed in program.pointer_updates():
            if changed.field not in pointers(instructions[changed.instruction]):
                raise ProgramError(f"instruction {changed.instruction} has no pointer {changed.field!r}")
        return program
