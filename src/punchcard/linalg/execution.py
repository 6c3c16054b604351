"""What every call of the linear algebra shares: options, a run on the machine, and the result with its errors."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from punchcard.errors import ConvergenceError, MatrixError, ProgramError, PunchcardError
from punchcard.machines.checkpoint import begin, resume
from punchcard.machines.fleq.blocks.block import MatrixProduct
from punchcard.machines.fleq.designs.base import check_room
from punchcard.machines.fleq.functions import MUL
from punchcard.machines.fleq.isa import Array, FleqProgram, FleqState
from punchcard.machines.fleq.machine import FleqMachine
from punchcard.machines.fleq.oracle import dry_run
from punchcard.machines.fleq.run_options import DEFAULT_HEADS, FleqRunOptions
from punchcard.machines.fleq.text.writer import disassemble
from punchcard.machines.kind import refuse_options
from punchcard.machines.result import Report
from punchcard.machines.running import DEFAULT_ENGINE

MOST_HEADS = 3
MOST_ENTRY = 1e60


class AlgebraOptions(FleqRunOptions, total=False):
    """How a program is run: see `FleqRunOptions`.

    check          whether each instruction is compared with the exact function, as `punchcard.run` does
    """

    check: bool


@dataclass(frozen=True)
class Execution:
    """A run on the machine, and the interpreter's of the same program: NumPy in float64."""

    program: FleqProgram
    machine: FleqMachine = field(repr=False)
    report: Report[FleqState] = field(repr=False)
    reference: dict[str, Array] = field(repr=False)
    largest: float
    """The largest value on the interpreter, which ran first."""
    condition: float | None = field(default=None, repr=False)
    """That of the matrix, for errors."""

    @property
    def memory(self) -> dict[str, Array]:
        return self.report.result.memory

    @property
    def tolerance(self) -> float:
        """A residual below the square root of the unit roundoff counts as convergence."""
        return math.sqrt(self.machine.unit)

    def returned(self, number: int = 0) -> Array:
        """A value that the program returns."""
        return np.asarray(self.program.results[number].of(self.memory))

    @property
    def machine_error(self) -> float:
        """The largest distance of the first value returned from the interpreter's, over its largest."""
        name = self.program.results[0].variable
        return distance(self.memory[name], self.reference[name])


def execute(
    program: FleqProgram, *, machine: FleqMachine | None = None, engine: str | None = None, check: bool = True,
    condition: float | None = None, **sizes: Any,
) -> Execution:
    """Run a program. `condition` is the matrix's, for errors.

    A machine that is built here has a product for results up to the range and no further: these programs keep that
    promise, and the room of sqrt d that products have otherwise would cost as much in accuracy.
    """
    ran = dry_run(program)
    sizes = {name: value for name, value in sizes.items() if value is not None}
    if machine is None:
        sizes.setdefault("heads", DEFAULT_HEADS)
        machine = FleqMachine.for_program(program, blocks=[MatrixProduct(MUL, sizes["heads"], program.range)], **sizes)
    else:
        refuse_options(sizes)
    machine.punch(program)  # refuses a program that does not fit, before the run
    try:
        report = resume(begin(program, machine, engine=engine or DEFAULT_ENGINE, check=check, max_steps=ran.steps + 1))
    except ProgramError as error:
        raise ConvergenceError(f"{error}: on the interpreter, which rounds less, values stay within {ran.largest:g}; "
                               f"{advice(machine, condition)}") from None
    return Execution(program, machine, report, ran.memory, ran.largest, condition)


@dataclass(frozen=True)
class Computed:
    """The result of a linear algebra program, and its errors. Errors are relative to the largest entry.

    value           the result, computed on the transformer
    error           distance from LAPACK's result in float64
    machine_error   distance from the same algorithm in NumPy, in float64
    residual        how well the value solves the problem; each function says what it measures
    converged       whether the residual is below the square root of the unit roundoff
    """

    value: Array
    error: float
    machine_error: float
    residual: float
    execution: Execution = field(repr=False)

    @property
    def converged(self) -> bool:
        """Whether the residual is below the square root of the unit roundoff."""
        return self.residual <= self.execution.tolerance

    @property
    def loops(self) -> int:
        """How often the model was applied: once for each instruction, and once for the halt."""
        return self.execution.report.result.loops

    @property
    def bound(self) -> float:
        """The error bound of one product, relative to the range. The bounds of sums and transposes are smaller."""
        return self.machine.bound("mul") / self.machine.range

    @property
    def machine(self) -> FleqMachine:
        return self.execution.machine

    @property
    def program(self) -> FleqProgram:
        return self.execution.program

    @property
    def host(self) -> str:
        """What the host did before the transformer ran."""
        done = self.execution
        return (f"NumPy ran the same program first: {done.report.result.steps} instructions, values up to "
                f"{done.largest:.4g}, range {done.program.range:g}")

    @property
    def text(self) -> str:
        """The program that was run, as `.fleq` text."""
        return disassemble(self.program)


@dataclass(frozen=True)
class LeadingEigenpair(Computed):
    """The result of `power_iteration`. `value` is the eigenvector, with norm 1; `eigenvalue` is its eigenvalue."""

    eigenvalue: float


@dataclass(frozen=True)
class QRDecomposition(Computed):
    """The result of `qr`. `value` is Q, with orthonormal columns; `r` is upper triangular up to rounding."""

    r: Array


@dataclass(frozen=True)
class Krylov(Computed):
    """The result of `arnoldi` and `lanczos`. `value` is Q, whose columns are an orthonormal basis; `h` is Q^T A Q.

    Up to rounding, `h` is upper Hessenberg, and tridiagonal for a symmetric matrix.
    """

    h: Array


def advice(machine: FleqMachine, condition: float | None) -> str:
    """What would make a run more accurate; where nothing would, that the matrix is too badly conditioned."""
    better = ["float64"] * (machine.precision.significand < 53) + ["more heads"] * (machine.heads < MOST_HEADS)
    if better:
        about = "" if condition is None else f"the matrix has the condition {condition:.1e}: "
        return f"{about}take {' or '.join(better)}"
    about = "this" if condition is None else f"the matrix, of the condition {condition:.1e}, is too badly conditioned: that"
    return f"{about} is beyond the most exact machine, float64 with three heads"


C = TypeVar("C", bound=Computed)


def require_convergence(computed: C, call: str, *, asked: int | None) -> C:
    """A result that has not converged is refused, unless a number of iterations was asked for."""
    done = computed.execution
    if not computed.converged and asked is None:
        raise ConvergenceError(f"{call}: the residual is {computed.residual:.1e} on the machine, the limit is "
                               f"{done.tolerance:.1e}: {advice(done.machine, done.condition)}")
    return computed


def distance(found: ArrayLike, expected: ArrayLike) -> float:
    """The largest difference, over the largest entry of what is expected."""
    return float(np.abs(np.subtract(found, expected)).max() / np.abs(expected).max())


def power_of_two(x: float) -> float:
    """The nearest power of two: scaling by it rounds nothing."""
    return 2.0 ** round(math.log2(x))


def as_matrix(given: ArrayLike, call: str, *, square: bool = False) -> Array:
    """A matrix of finite numbers that is not 0; `call` names the caller."""
    matrix = np.array(given, dtype=np.float64)
    shape = "x".join(map(str, matrix.shape))
    if matrix.ndim != 2 or not matrix.size:
        raise MatrixError(f"{call}: a matrix has two dimensions and at least one entry, this has the shape ({shape})")
    if square and matrix.shape[0] != matrix.shape[1]:
        raise MatrixError(f"{call}: the matrix is {shape}, and must be square")
    if not square and matrix.shape[0] < matrix.shape[1]:
        raise MatrixError(f"{call}: the matrix is {shape}, and must have at least as many rows as columns")
    check_room(max(matrix.shape))  # before anything is computed on the host
    _check_entries(matrix, f"{call}: the matrix")
    return matrix


def as_vector(given: ArrayLike, rows: int, call: str, what: str) -> Array:
    """A vector of finite numbers with as many entries as the matrix has rows."""
    vector = np.array(given, dtype=np.float64)
    if vector.shape not in ((rows,), (rows, 1)):
        raise MatrixError(f"{call}: {what} has the shape {vector.shape}: it must have {rows} entries, one a row")
    _check_entries(vector, f"{call}: {what}")
    return vector.reshape(rows)


def _check_entries(given: Array, what: str) -> None:
    """Finite, not all 0, and not so large or small that a square of an entry overflows or vanishes."""
    if not np.isfinite(given).all():
        raise MatrixError(f"{what} holds {float(given[~np.isfinite(given)][0])}, and must be finite")
    largest = float(np.abs(given).max())
    if largest == 0:
        raise MatrixError(f"{what} is 0")
    if not 1 / MOST_ENTRY <= largest <= MOST_ENTRY:
        raise MatrixError(f"{what} has the largest entry {largest:g}: it must be between {1 / MOST_ENTRY:g} and "
                          f"{MOST_ENTRY:g}, so scale it")


def at_least_one(number: int | None, call: str, what: str) -> None:
    """Counts of rounds are 1 or more."""
    if number is not None and number < 1:
        raise PunchcardError(f"{call}: {what}={number}: it must be 1 or more")
