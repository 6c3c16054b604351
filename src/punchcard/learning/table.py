"""Tables of numbers from CSV files: a header line with the columns' names, then a line for each point."""

from __future__ import annotations

import csv
import io
import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from punchcard.errors import TableError, did_you_mean
from punchcard.files import read_limited
from punchcard.machines.fleq.isa import Array


@dataclass(frozen=True)
class DataTable:
    """Columns of numbers by name; `source` is the file, for messages."""

    names: tuple[str, ...]
    values: Array = field(repr=False)
    source: str

    def columns(self, names: Sequence[str]) -> Array:
        """Some columns, in this order."""
        return self.values[:, [self._index(name) for name in names]]

    def others(self, name: str) -> tuple[str, ...]:
        """All columns but one, which must be there."""
        self._index(name)
        if len(self.names) == 1:
            raise TableError(f"{self.source}: the only column is {name!r}: there must be a feature beside the target")
        return tuple(n for n in self.names if n != name)

    def _index(self, name: str) -> int:
        if name not in self.names:
            raise TableError(f"{self.source}: no column {name!r}{did_you_mean(name, self.names)}: there are "
                             f"{', '.join(self.names)}")
        return self.names.index(name)


def read_table(path: str | Path) -> DataTable:
    """The table of a CSV file, values separated by commas; blank lines do not count."""
    source = str(path)
    try:
        text = read_limited(path, "table", error=TableError).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TableError(f"{source}: byte {error.start} is not UTF-8 text: a table is a CSV file") from None
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    names: tuple[str, ...] = ()
    values = array("d")  # row by row: as lists of texts, a table takes a hundred times its size
    try:
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            if not names:
                names = _names(cells, source)
            else:
                values.extend(_row(cells, names, reader.line_num, source))
    except csv.Error as error:
        raise TableError(f"{source}: line {reader.line_num}: {error}") from None
    if not names:
        raise TableError(f"{source}: the file is empty: the first line names the columns, each further line is a point")
    if not values:
        raise TableError(f"{source}: no points: there is nothing after the header line")
    return DataTable(names, np.array(values).reshape(-1, len(names)), source)


def _names(cells: list[str], source: str) -> tuple[str, ...]:
    names = tuple(cell.strip() for cell in cells)
    if all(_number(name) is not None for name in names):
        raise TableError(f"{source}: line 1 holds numbers: the first line must name the columns")
    for column, name in enumerate(names, start=1):
        if not name:
            raise TableError(f"{source}: line 1, column {column} has no name")
        if name in names[: column - 1]:
            raise TableError(f"{source}: line 1, column {column}: {name!r} is there twice")
    return names


def _row(cells: list[str], names: tuple[str, ...], line: int, source: str) -> list[float]:
    if len(cells) != len(names):
        raise TableError(f"{source}: line {line} has {len(cells)} value{'s' * (len(cells) != 1)}, the header names "
                         f"{len(names)}")
    row = []
    for column, (cell, name) in enumerate(zip(cells, names, strict=True), start=1):
        value = _number(cell)
        if value is None or not math.isfinite(value):
            raise TableError(f"{source}: line {line}, column {column} ({name}): {cell.strip()!r} is not a finite number")
        row.append(value)
    return row


def _number(text: str) -> float | None:
    if "_" in text:  # Python reads 1_0 as 10, no other reader of tables does
        return None
    try:
        return float(text)
    except ValueError:
        return None
