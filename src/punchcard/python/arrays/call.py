"""One call of a function of arrays: its arguments, the run in NumPy, the range and the program.

Python's int, bool, str, None and tuples of them are constants: they are known when the function is compiled. Floats and
arrays are data: they are punched on the card, so other values run on the same machine.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from punchcard.arguments import real_array
from punchcard.errors import ProgramError, shortened
from punchcard.machines.fleq.blocks.block import EntrywiseProduct, LaneProduct, MatrixProduct, ScaledProduct
from punchcard.machines.fleq.functions import ENTRYWISE, HADAMARD, MUL, SCALE, fitted_function
from punchcard.machines.fleq.isa import FleqProgram, Returned
from punchcard.machines.fleq.machine import FleqMachine
from punchcard.machines.fleq.oracle import FleqInterpreter
from punchcard.machines.fleq.text.writer import disassemble
from punchcard.python.arrays.code_generation import generate
from punchcard.python.arrays.compiler import lower
from punchcard.python.arrays.dry_run import NumpyRun
from punchcard.python.arrays.ir import SourcePlace
from punchcard.python.arrays.values import REAL, kinds_of, matrix_shape
from punchcard.python.front_end import snapshot
from punchcard.python.limits import Limits

if TYPE_CHECKING:
    from punchcard.python.arrays.program import ArrayProgram

Key: TypeAlias = tuple[object, ...]
"""What a compiled function depends on."""
LOOKED_AT = 5_000
"""A run of at most so many operations is compared after every loop, unless `check` says otherwise."""
HEAD_ROOM = 1.5
LEAST_RANGE = 2.0
"""Loops count from -1 or less to 1, and a product should not be below what it is compared with."""
MARGIN, SINGLE_MARGIN = 2.0**-36, 2.0**-12
"""Numbers that differ by less than this part of the range may be compared wrongly: the errors of both may be as large."""
ROOM = 8
"""Memory and instructions of a machine are multiples of this, so that programs of about one size share it."""


class ArrayCall:
    """A function compiled for the arguments of one call."""

    def __init__(self, owner: ArrayProgram, given: tuple[object, ...], named: dict[str, object]) -> None:
        self.owner = owner
        arguments = owner.bind(given, named)
        limits = Limits()
        with owner.source.refusing(owner.source.node):
            for name, value in arguments.items():
                limits.known(value, f"{owner.source.name}(): {name}={shortened(value)}")
        constants = {name: value for name, value in arguments.items() if is_constant(value)}
        data = {name: as_data(name, value) for name, value in arguments.items() if not is_constant(value)}
        self.shapes = shapes = {name: array.shape for name, array in data.items()}
        kinds = {name: kinds_of(typed(name, arguments[name])) or REAL for name in data}
        key = (tuple(shapes.items()), tuple(kinds.values()), snapshot(owner.source),
               tuple((name, repr(value)) for name, value in constants.items()))  # 1 and True are equal
        if key not in owner.lowered:
            owner.lowered[key] = lower(owner.source, shapes, kinds, constants)
        self.code = owner.lowered[key]
        values = {self.code.parameters[name]: _stored(array) for name, array in data.items()}
        self.ran = NumpyRun(self.code.code, values)
        largest = self.ran.largest
        limit = owner.options.range
        self.range_from = "given" if limit is not None else "found by a run in NumPy, with head room"
        self.limit = range_for(largest) if limit is None else float(limit)
        self._check_size(data, largest)
        self._check_comparisons()
        functions = {name: fitted_function(name, *extent.domain(name)) for name, extent in self.ran.domains.items()}
        full = (key, self.limit, tuple(sorted(function.name for function in functions.values())))
        if full not in owner.generated:
            owner.generated[full] = generate(self.code.code, self.code.parameters, self.code.results, functions, self.limit)
        self.written = owner.generated[full]
        punched = {stored.variable: _stored(data[name]).T if stored.turned else _stored(data[name])
                   for name, stored in self.written.parameters.items()}
        self.program = self.written.program.with_values(punched)

    @property
    def listing(self) -> str:
        return listing(self.program, self.written.lines)

    def _check_size(self, data: Mapping[str, np.ndarray], largest: float) -> None:
        if largest <= self.limit:
            return
        need = f"give range={range_for(largest):g} or more"
        for name, array in data.items():
            if np.abs(array).max() > self.limit:
                raise ProgramError(f"{self.owner.source.name}: {name} holds {np.abs(array).max():g}, beyond the range "
                                   f"±{self.limit:g}; {need}")
        if self.ran.where is not None:
            self.ran.where.fail(f"a value of {largest:g} leaves the range ±{self.limit:g}", need)

    def _check_comparisons(self) -> None:
        """Numbers that the machine's errors could turn must not be compared; those that it has to the last bit may be."""
        single = self.owner.options.precision != "float64"
        closest = self.ran.closest_of_all if single else self.ran.closest
        zone = (SINGLE_MARGIN if single else MARGIN) * self.limit
        if closest is not None and closest[0] < zone:
            difference, line = closest
            line.fail(f"a comparison of numbers that differ by {difference:.1e}: the machine tells apart what differs by "
                      f"{zone:.1e}, at the range ±{self.limit:g}", "leave a larger margin")

    def machine(self) -> FleqMachine:
        options = self.owner.options
        sizes = FleqMachine.sizes_for(self.program)
        names = tuple(sorted(sizes["functions"]))
        return _machine(names, sizes["size"], _rounded(sizes["memory"]), _rounded(sizes["instructions"]), self.limit,
                        options.heads, options.precision, options.design)

    @property
    def steps(self) -> int:
        """Instructions that the run makes: counted by the interpreter for a short one, for a long one a limit."""
        if self.ran.operations > LOOKED_AT:
            return 40 * self.ran.operations
        interpreter = FleqInterpreter(self.program, check_range=False)
        interpreter.run(40 * self.ran.operations + 1000)
        return interpreter.steps + 1

    def results(self, memory: Mapping[str, np.ndarray]) -> Any:
        """What the function returns, as NumPy has it."""
        found = [each.of(memory) for each in self.returned]
        return found[0] if self.code.one else tuple(found)

    @property
    def returned(self) -> list[Returned]:
        """Where the values are that the function returns."""
        return [Returned(stored.variable, shape, stored.turned, self.ran.values[register])
                for stored, shape, register in zip(self.written.results, self.code.shapes, self.code.results, strict=True)]

    def at_its_line(self, error: ProgramError) -> ProgramError:
        """An error of the machine, at the line of the source that its instruction is for."""
        found = re.search(r"instruction (\d+)", str(error))
        line = self.written.lines.get(int(found[1])) if found is not None else None
        if line is None:
            return error
        message = str(error).replace("declare a larger one with .range", "give a larger range=")
        return line.source.error(line.node, message)


@lru_cache(maxsize=32)
def _machine(names: tuple[str, ...], size: int, memory: int, instructions: int, limit: float, heads: int, precision: str,
             design: str) -> FleqMachine:
    """Machines that are there already are used again: they depend on sizes alone."""
    products = (MatrixProduct(MUL, heads, limit), EntrywiseProduct(HADAMARD, heads, limit),
                ScaledProduct(SCALE, heads, limit), LaneProduct(ENTRYWISE, heads, limit))  # within the range, no further
    own = {block.name: block for block in products}
    return FleqMachine(functions=[own.get(name, name) for name in names], size=size, memory=memory,
                       instructions=instructions, range=limit, heads=heads, precision=precision, design=design)


def range_for(largest: float) -> float:
    """The least power of two that leaves head room above the largest value."""
    return max(LEAST_RANGE, 2.0 ** math.ceil(math.log2(max(largest * HEAD_ROOM, 1e-6))))


def _rounded(count: int) -> int:
    return ROOM * math.ceil(count / ROOM)


def _stored(array: np.ndarray) -> np.ndarray:
    """As a matrix: a vector is a column."""
    return array.reshape(matrix_shape(array.shape))


def is_constant(value: object) -> bool:
    """Whether an argument is a constant of the program."""
    if isinstance(value, tuple):
        return all(is_constant(item) for item in value)
    return value is None or isinstance(value, bool | str | int | np.integer)


def typed(name: str, value: object) -> np.ndarray:
    """An argument that is data as NumPy takes it: float64, int64 or bool. Less precise numbers become float64."""
    array = np.array(value)
    if array.dtype.kind in "iu" and array.dtype != np.int64:
        raise ProgramError(f"{name} holds {array.dtype}, which NumPy wraps around: give {name}.astype(float), or "
                           "astype(int)")
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def as_data(name: str, value: object) -> np.ndarray:
    """An argument that is punched: real numbers, finite, in at most two dimensions."""
    try:
        array: np.ndarray = real_array(value)
    except ValueError as error:
        raise ProgramError(f"{name}={shortened(value)}: {error}") from None
    if array.ndim > 2 or array.size == 0:
        raise ProgramError(f"{name} has the shape {array.shape}: scalars, vectors and matrices with entries are wanted")
    if not np.isfinite(array).all():
        raise ProgramError(f"{name} holds NaN or infinity: its entries must be finite")
    return array


def listing(program: FleqProgram, lines: Mapping[int, SourcePlace]) -> str:
    """The text of a program, each instruction with a comment that names its line; the text assembles to the program."""
    head, code = disassemble(program).split(".code\n")
    found, number, last = [head + ".code"], 0, ""
    for text in code.splitlines():
        if text.strip():
            note = str(lines[number]) if number in lines else ""
            if note and note != last:
                found.append(f"# {note}")
                last = note
            found.append(text)
            if not text.rstrip().endswith(":"):
                number += 1
    return "\n".join(found) + "\n"
