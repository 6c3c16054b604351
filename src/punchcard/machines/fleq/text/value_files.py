"""Values of FLEQ variables from .npy and .csv files, which may come from others.

A file lies in the folder of the source or below it, also after links are followed, and is an ordinary file: a pipe or a
device is not read. Its shape is known, and compared with the variable's, before a value is taken. Nothing in a
file is evaluated: the header of a .npy file is matched, not parsed as Python.
"""

from __future__ import annotations

import codecs
import io
import math
import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePath

import numpy as np

from punchcard.errors import ProgramError
from punchcard.files import read_limited
from punchcard.machines.fleq.functions import Array, Shape

MOST_VALUES = 1 << 24
"""The most values of a variable."""
BYTES_LIMIT = 16 * MOST_VALUES
"""The most bytes of a .npy file: so many of the longest numbers."""
MOST_HEADER = 1 << 16
MOST_DIGITS = 18
_MAGIC = b"\x93NUMPY"
_HEADER = re.compile(rb"\{\s*'descr':\s*'([<>=|]?[A-Za-z?][0-9]{0,9})',\s*'fortran_order':\s*(True|False),"
                     rb"\s*'shape':\s*\(([0-9, ]*)\),?\s*\}\s*")


def read_values(file: str, folder: Path, name: str, shape: Shape) -> Array:
    """The value of a variable from a file of the folder: finite numbers of its shape. A list of numbers is a column."""
    path = PurePath(file)
    suffix = path.suffix.lower()
    if suffix not in READERS:
        raise ProgramError(f"values are read from {' and '.join(READERS)} files")
    if path.is_absolute() or ".." in path.parts:
        raise ProgramError("a file of values lies in the folder of the source or below it")
    place = Path(os.path.realpath(folder / path))
    if not place.is_relative_to(os.path.realpath(folder)):
        raise ProgramError("a link leads out of the folder of the source, where files of values lie")
    if place.exists() and not (place.is_file() or place.is_dir()):
        raise ProgramError("a pipe or a device: a file of values is an ordinary file")
    value = READERS[suffix](place, name, shape)
    if not np.isfinite(value).all():
        raise ProgramError(f"it holds NaN or infinity: a value of {name!r} must be finite")
    return value


def _read_npy(path: Path, name: str, shape: Shape) -> Array:
    data = read_limited(path, "file of values", limit=BYTES_LIMIT + MOST_HEADER, error=ProgramError)
    wide = data[6:7] > b"\x01"  # from format 2 on the header's length has four bytes
    start = 12 if wide else 10
    end = start + int.from_bytes(data[8:start], "little")
    header = _HEADER.fullmatch(data[start:end]) if data.startswith(_MAGIC) and end <= start + MOST_HEADER else None
    sizes = [] if header is None else header[3].replace(b",", b" ").split()
    if header is None or max(map(len, sizes), default=0) > MOST_DIGITS:
        raise ProgramError("it is not a .npy file with an array of numbers")
    found = tuple(map(int, sizes))
    try:
        number = np.dtype(header[1].decode())
    except TypeError:
        raise ProgramError(f"it holds {header[1].decode()!r}, which is not a number format") from None
    if number.kind not in "iufb":
        raise ProgramError(f"it holds {number} values: {name!r} needs real numbers")
    _check_shape(found, name, shape, is_list=len(found) == 1)
    if len(data) - end != math.prod(found) * number.itemsize:
        raise ProgramError(f"it has {len(data) - end} bytes of values: {shape} of {number} are "
                           f"{math.prod(found) * number.itemsize}")
    with np.errstate(over="ignore"):  # what is beyond float64 is infinite, and refused as such
        array = np.frombuffer(data, number, offset=end).astype(np.float64)
    return array.reshape((shape.rows, shape.columns), order="F" if header[2] == b"True" else "C")


def _read_csv(path: Path, name: str, shape: Shape) -> Array:
    """Numbers separated by commas, a row a line; blank lines do not count."""
    data = read_limited(path, "file of values", error=ProgramError).removeprefix(codecs.BOM_UTF8)
    rows = columns = 0
    for number, line in _lines(data):
        found = line.count(b",") + 1
        columns = columns or found
        if found != columns:
            raise ProgramError(f"line {number} has {found} value{'s' * (found != 1)}, the first has {columns}")
        rows += 1
    if not rows:
        raise ProgramError("it holds no values")
    _check_shape((rows, columns), name, shape, is_list=rows == 1)
    value = np.empty((rows, columns))
    for row, (number, line) in zip(value, _lines(data), strict=True):
        try:
            if b"_" in line:  # 1_0 is a number to Python only
                raise ValueError
            row[:] = [float(entry) for entry in line.split(b",")]
        except ValueError:
            raise ProgramError(f"line {number} is not a list of numbers separated by commas") from None
    return value.reshape(shape.rows, shape.columns)


def _lines(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, with their numbers."""
    return ((number, line) for number, line in enumerate(io.BytesIO(data), start=1) if line.strip())


def _check_shape(found: tuple[int, ...], name: str, shape: Shape, *, is_list: bool) -> None:
    """Refuse another shape than the variable's; a list has as many values as a column, a single number is 1x1."""
    alone = found == () and (shape.rows, shape.columns) == (1, 1)
    fits = found == (shape.rows, shape.columns) or alone
    if not fits and not (is_list and shape.columns == 1 and math.prod(found) == shape.rows):
        shown = "x".join(map(str, found[:4])) + "x..." * (len(found) > 4) or "a single number"
        raise ProgramError(f"it is {shown}: {name!r} is {shape}")


READERS = {".npy": _read_npy, ".csv": _read_csv}
