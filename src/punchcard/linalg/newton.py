"""Newton's iterations as programs: functions in Python, each with the least range that holds its values.

Errors of the machine are relative to its range, so it should be small. The host scales a matrix before, so that values stay
far below what a Python function may reach.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from punchcard.linalg.programs.inverse import newton, safe_step
from punchcard.linalg.programs.least_squares import pseudo_inverse
from punchcard.machines.fleq.dry_run import MARGIN, range_above
from punchcard.machines.fleq.isa import Array, FleqProgram
from punchcard.python.arrays.program import ArrayProgram
from punchcard.python.source import FunctionSource

LEAST = 2.0
"""Loops count from -2 to 1."""


def first_step(matrix: Array) -> Array:
    """eps I, where the iterations begin."""
    return safe_step(matrix) * np.eye(matrix.shape[1])


def inverse_program(matrix: Array, iterations: int) -> FleqProgram:
    """The inverse of a square matrix: the one result is X."""
    return _fitting(newton, matrix, first_step(matrix), iterations)


def least_squares_program(matrix: Array, right: Array, iterations: int) -> FleqProgram:
    """The results are x, and Z, the transposed pseudo-inverse, for at least as many rows as columns."""
    return _fitting(pseudo_inverse, matrix, first_step(matrix), right, iterations)


@cache
def _compiled(function: Callable[..., Any]) -> ArrayProgram:
    return ArrayProgram(FunctionSource.of(function), function)


def _fitting(function: Callable[..., Any], *given: Any) -> FleqProgram:
    """The program of a function for these arguments; what is computed may be a little larger on the machine."""
    there = max(LEAST, *(float(np.abs(each).max()) for each in given if isinstance(each, np.ndarray)))
    largest = _compiled(function).largest(*given)
    limit = range_above(largest * (1 + MARGIN) if largest > there else there)
    return _compiled(function).with_options(range=limit).program_with_lines(*given)
