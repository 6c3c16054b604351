"""Values on a card, by the places that `machine.json` lists. This file goes into folders as it is: it needs no Punchcard.

    decode(card, machine["values"])      {"memory": {"a": 12, ...}, ...}

A card is rows by columns: a tensor, an array, or a list of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any


def decode(card: Any, places: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """The values on a card by group and name: integers and matrices, or None where a card has neither."""
    found: dict[str, dict[str, Any]] = {}
    for place in places:
        found.setdefault(place["group"], {})[place["name"]] = read(card, place)
    return found


def read(card: Any, place: Mapping[str, Any]) -> Any:
    """A value of a card: ±1 bits with the lowest first, real numbers, or one of several."""
    start, rows, column = place["start"], place["rows"], place["column"]
    pending = place.get("pending")
    if pending is not None:  # a word on its way: the value is what is about to be stored
        wanted = _number(_entries(card, pending["address"], pending["column"]))
        if wanted is not None and wanted == _number(_entries(card, pending["own"], column)):
            (start, rows), column = pending["rows"], pending["column"]
    columns = [_entries(card, (start, rows), column + j) for j in range(place["columns"])]
    if place["plus"] is not None:
        more = [_entries(card, (place["plus"], rows), column + j) for j in range(place["columns"])]
        columns = [[a + b for a, b in zip(one, two, strict=True)] for one, two in zip(columns, more, strict=True)]
    if place["kind"] == "numbers":
        return [list(row) for row in zip(*columns, strict=True)]
    of_column: Callable[[Sequence[float], Mapping[str, Any]], Any] = _one_hot if place["kind"] == "one-hot" else _integer
    found = [of_column(entries, place) for entries in columns]
    return found[0] if len(found) == 1 else found


def _entries(card: Any, span: Sequence[int], column: int) -> list[float]:
    """Of so many rows from the first on, in a column."""
    start, rows = span
    return [float(card[row][column]) for row in range(start, start + rows)]


def _number(bits: Sequence[float]) -> int | None:
    if any(not abs(abs(bit) - 1) < 0.25 for bit in bits):
        return None
    return sum(1 << i for i, bit in enumerate(bits) if bit > 0)


def _integer(bits: Sequence[float], place: Mapping[str, Any]) -> int | None:
    number = _number(bits)
    if number is None:
        return None
    number = (number + int(place["offset"])) % (1 << len(bits))
    return number - (1 << len(bits)) if place["kind"] == "signed" and number >> (len(bits) - 1) else number


def _one_hot(entries: Sequence[float], place: Mapping[str, Any]) -> Any:
    found = [i for i, entry in enumerate(entries) if entry > 0.5]
    if len(found) != 1:
        return None
    return place["labels"][found[0]] if found[0] < len(place["labels"]) else found[0]
