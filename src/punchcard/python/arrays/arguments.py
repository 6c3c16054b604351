"""Arguments of functions of arrays: constants of the program, and data.

Python's int, bool, str, None and tuples of them are constants: they are known when the function is compiled. Floats and
arrays are data: they are punched on the card, so other values run on the same machine.
"""

from __future__ import annotations

import numpy as np

from punchcard.arguments import real_array
from punchcard.errors import ProgramError, shortened


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
