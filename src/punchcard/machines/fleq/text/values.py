"""The `.data` section of FLEQ: variables with their shapes and initial values.

    A   matrix 2x3   1 2 3 ; 4 5 6        rows are separated by `;`
    v   vector 3     1 -0.5 1e-3          a column
    t   scalar -11
    Z   matrix 4x4                        no values: zeros
    W   matrix 8x8   file(weights.npy)    a .npy or .csv file in the source's folder
    U   vector 8     random(7)            uniform in [-1, 1]; 7 is the seed
    k   counter 1000                      rounds of a loop: see `counters.py`
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from punchcard.errors import ProgramError, SourceError
from punchcard.formatting import plural
from punchcard.machines.fleq.functions import Array, Shape
from punchcard.machines.fleq.text.source import KEYWORDS, lines, quoted, take_integer, take_numbers
from punchcard.machines.fleq.text.value_files import MOST_VALUES, read_values
from punchcard.machines.source import Line, Token, unknown

KINDS = ("matrix", "vector", "scalar")
COUNTER = "counter"
"""The kind that is several scalars: see `counters.py`."""
_SIZE = re.compile(r"([0-9]{1,18})x([0-9]{1,18})")


@dataclass(frozen=True)
class Declaration:
    """A variable as declared: the place of its name, its shape and its initial value."""

    name: Token
    shape: Shape
    value: Array


def take_declaration(line: Line, folder: Path | None, room: int = MOST_VALUES) -> Declaration:
    """The variable that a line of `.data` declares, with at most `room` values; files are looked for in `folder`."""
    name = take_variable_name(line)
    if line.at(":"):
        raise line.wrong("a variable is declared as `name kind values`, without a colon")
    kind = line.take_name(f"after {name.text!r} comes its kind, which is matrix, vector, scalar or counter, and it")
    if kind.text not in KINDS:
        raise unknown("kind", kind, (*KINDS, COUNTER), "a variable is a matrix, a vector, a scalar or a counter")
    shape = _take_shape(line, kind.text, room)
    if line.ahead.kind == "end":
        value = np.zeros((shape.rows, shape.columns))
    elif line.ahead.kind == "file":
        value = _from_file(line.take(), name.text, shape, folder)
    elif line.at("random"):
        value = _random(line, shape)
    else:
        value = _take_rows(line, name.text, shape) if kind.text == "matrix" else _take_column(line, name.text, shape)
    line.finish(f"the values of {name.text!r}")
    return Declaration(name, shape, value)


def take_variable_name(line: Line) -> Token:
    """The name that a line of `.data` begins with."""
    name = line.take_name("a variable")
    if name.text in KEYWORDS:
        raise name.error(f"{name.text!r} begins an instruction: a variable needs another name")
    return name


def parse_value(text: str) -> Array:
    """A matrix: numbers, with rows separated by `;`, as in `.data`."""
    line = next(lines(text), None)
    if line is None:
        raise ProgramError("write NAME=VALUE")
    try:
        rows = [row for _, row in _rows(line, "the value")]
    except SourceError as error:
        raise ProgramError(error.message) from None
    if not rows[0] or any(len(row) != len(rows[0]) for row in rows):
        raise ProgramError("the rows of a matrix have equally many numbers, and are separated by `;`")
    return np.array(rows)


def _take_shape(line: Line, kind: str, room: int) -> Shape:
    if kind == "scalar":
        return Shape(1, 1)
    size = line.ahead
    if kind == "vector":
        shape = Shape(int(take_integer(line, "the length of a vector").text), 1)
    else:
        match = _SIZE.fullmatch(size.text)
        if match is None:
            raise line.wrong("the size of a matrix is written as rows x columns without blanks, such as 2x3")
        line.take()
        shape = Shape(int(match[1]), int(match[2]))
    if min(shape.rows, shape.columns) < 1:
        raise size.error(f"size {size.text}: a {kind} has at least one row and one column")
    if shape.rows * shape.columns > MOST_VALUES:
        raise size.error(f"size {size.text}: a variable holds at most {MOST_VALUES} values")
    if shape.rows * shape.columns > room:
        raise size.error(f"size {size.text}: the variables of a program hold at most {MOST_VALUES} values together, "
                         f"and {room} are left")
    return shape


def _rows(line: Line, name: str) -> Iterator[tuple[Token, list[float]]]:
    """The rows of numbers that `;` separates, each with the token that it begins with."""
    more = True
    while more:
        yield line.ahead, take_numbers(line, f"a value of {name!r}")
        more = line.take_if(";")


def _take_rows(line: Line, name: str, shape: Shape) -> Array:
    first, rows = line.ahead, list[list[float]]()
    for start, row in _rows(line, name):
        rows.append(row)
        if len(row) != shape.columns:
            raise start.error(f"row {len(rows)} of {name!r} has {plural(len(row), 'value')}: {shape.columns} "
                              f"{_are(shape.columns)} wanted, and rows are separated by `;`")
    if len(rows) != shape.rows:
        raise first.error(f"{name!r} has {plural(len(rows), 'row')} of values: {shape.rows} {_are(shape.rows)} wanted, "
                          "separated by `;`")
    return np.array(rows)


def _take_column(line: Line, name: str, shape: Shape) -> Array:
    first, row = line.ahead, take_numbers(line, f"a value of {name!r}")
    if line.at(";"):
        raise line.wrong("only the rows of a matrix are separated by `;`")
    if len(row) != shape.rows:
        raise first.error(f"{name!r} has {plural(len(row), 'value')}: {shape.rows} {_are(shape.rows)} wanted")
    return np.array(row).reshape(shape.rows, 1)


def _random(line: Line, shape: Shape) -> Array:
    line.take()
    rule = "random values are written as random(seed)"
    line.take_mark("(", rule)
    seed = int(take_integer(line, "a seed").text)
    line.take_mark(")", rule)
    return np.random.default_rng(seed).uniform(-1, 1, (shape.rows, shape.columns))


def _from_file(token: Token, name: str, shape: Shape, folder: Path | None) -> Array:
    """The value in `file(name)`; every failure is an error at the token."""
    if folder is None:
        raise token.error(f"{quoted(token)}: the text is not in a folder, so there are no files beside it")
    try:
        return read_values(token.text[token.text.index("(") + 1 : -1].strip(), folder, name, shape)
    except (ProgramError, OSError, ValueError) as error:
        raise token.error(f"{quoted(token)}: {' '.join(str(error).split())}") from None


def beyond(declaration: Declaration, limit: float) -> float | None:
    """The value of a variable that is furthest beyond the range, if one is."""
    furthest = float(declaration.value.flat[np.abs(declaration.value).argmax()])
    return furthest if abs(furthest) > limit else None


def _are(number: int) -> str:
    return "is" if number == 1 else "are"
