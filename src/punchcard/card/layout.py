"""The layout: names for the rows and columns of a card, and facts about what stands where.

A card is a matrix X of `width` rows and `columns` columns. Everything else asks the layout for slices by name; no
other file writes a row or column number. The facts (which rows hold ±1 bits where, what a loop may change) are
statements about the card when a loop begins. Engines may rely on them, and tests check them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from punchcard.budget import require, running
from punchcard.card.encoding import decode_unsigned, encode_unsigned
from punchcard.errors import LayoutError, OverlapError, SizeError, UnknownNameError, did_you_mean

Content = Literal["bits", "one", "real", "fixed"]
"""What a row block holds in a region when a loop begins: ±1 bits, the number 1, any numbers, or numbers that never change.

In regions that are not named it holds 0.
"""


def holding(content: Content, *regions: str) -> dict[str, Content]:
    """The same content in several regions, for `RowBlock.holds`."""
    return dict.fromkeys(regions, content)


@dataclass(frozen=True)
class RowBlock:
    """A named block of rows.

    `parts` names consecutive sub-blocks, reached as `block.part`. `holds` maps a region to its content when a loop
    begins; regions not named hold 0. `changes` names the regions in which a loop may change the block.

    Three more facts help a compiler and are checked when they are used. `limit`: no entry exceeds it in size.
    `within`: what the block holds in the middle of a loop where it is not 0, though it is 0 when a loop begins.
    `selects`: parts of it that take few different values, which decide what the rest of the loop does.
    """

    name: str
    size: int
    about: str = ""
    parts: Mapping[str, int] = field(default_factory=dict)
    holds: Mapping[str, Content] = field(default_factory=dict)
    changes: tuple[str, ...] = ()
    start: int | None = None
    limit: float | None = None
    within: Content | None = None
    selects: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.size < 1:
            raise SizeError(f"row block {self.name!r} has {self.size} rows: it needs at least one")
        for part in self.selects:
            if part not in self.parts:
                raise LayoutError(f"row block {self.name!r} selects by {part!r}{did_you_mean(part, self.parts)}: "
                                  f"its parts are {', '.join(self.parts) or 'none'}")
        for region, content in self.holds.items():
            if content not in get_args(Content):
                raise LayoutError(f"row block {self.name!r} holds {content!r} in {region!r}: "
                                  f"there are {', '.join(get_args(Content))}")
        if self.parts and sum(self.parts.values()) != self.size:
            raise SizeError(f"the parts of row block {self.name!r} have {sum(self.parts.values())} rows, "
                            f"the block has {self.size}")


@dataclass(frozen=True)
class Region:
    """A named range of columns. `groups` are the sizes of consecutive runs of columns that compute alike."""

    name: str
    size: int
    about: str = ""
    start: int | None = None
    groups: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.size < 1:
            raise SizeError(f"region {self.name!r} has {self.size} columns: it needs at least one")
        if self.groups and sum(self.groups) != self.size:
            raise SizeError(f"the groups of region {self.name!r} have {sum(self.groups)} columns, "
                            f"the region has {self.size}")


@dataclass(frozen=True)
class Pattern:
    """Fixed ±1 bits at a row block of a region's first column: how a machine declares, say, that it has halted.

    A 0 stands for either bit.
    """

    rows: str
    region: str
    bits: tuple[int, ...]


class Layout:
    """Row blocks and column regions, packed one after the other unless a block says where it starts."""

    def __init__(self, rows: Iterable[RowBlock], regions: Iterable[Region]) -> None:
        self.blocks = tuple(rows)
        self.regions = tuple(regions)
        self._rows = _place(self.blocks, "row block")
        self._columns = _place(self.regions, "region")
        self.width = max((s.stop for s in self._rows.values()), default=0)
        self.columns = max((s.stop for s in self._columns.values()), default=0)
        for block in self.blocks:
            start = self._rows[block.name].start
            for part, size in block.parts.items():
                self._rows[f"{block.name}.{part}"] = slice(start, start + size)
                start += size
            for region in (*block.holds, *block.changes):
                self.region(region)

    def __repr__(self) -> str:
        rows = ", ".join(f"{b.name} {b.size}" for b in self.blocks)
        columns = ", ".join(f"{r.name} {r.size}" for r in self.regions)
        return f"<layout of {self.width} rows ({rows}) and {self.columns} columns ({columns})>"

    def limited(self, limits: Mapping[str, float]) -> Layout:
        """The same layout with limits declared for some blocks."""
        for name in limits:
            self.rows(name)
        return Layout([replace(b, limit=limits.get(b.name, b.limit)) for b in self.blocks], self.regions)

    def rows(self, name: str) -> slice:
        """The rows of a block, or of a part (`"command.a"`)."""
        return _find(name, self._rows, "row block")

    def region(self, name: str) -> slice:
        """The columns of a region."""
        return _find(name, self._columns, "region")

    def column_name(self, column: int) -> str:
        """A column by its region and its number there: `memory[3]`, or `scratchpad` where the region is one column."""
        for region in self.regions:
            place = self._columns[region.name]
            if place.start <= column < place.stop:
                return region.name if region.size == 1 else f"{region.name}[{column - place.start}]"
        raise UnknownNameError(f"no column {column}: the card has {self.columns}, counted from 0")

    def blank(self, dtype: torch.dtype = torch.float64) -> Tensor:
        """A card of zeros, of which every run begins; one that is too large to run is refused."""
        require(running(self.width, self.columns), f"a card of {self.width} rows and {self.columns} columns")
        return torch.zeros(self.width, self.columns, dtype=dtype)

    def get(self, card: Tensor, rows: str, region: str) -> Tensor:
        """The entries at a block's rows and a region's columns: a view, (..., rows, columns)."""
        self.check(card)
        return card[..., self.rows(rows), self.region(region)]

    def put(self, card: Tensor, rows: str, region: str, values: Tensor | float) -> None:
        """Write `values` at a block's rows and a region's columns; the sizes must agree."""
        place = self.get(card, rows, region)
        if isinstance(values, Tensor) and values.shape[-2:] != place.shape[-2:]:
            raise SizeError(f"{tuple(values.shape[-2:])} values do not fit {rows!r} in {region!r}, "
                            f"which is {tuple(place.shape[-2:])}")
        place[...] = values

    def put_numbers(self, card: Tensor, region: str, numbers: Mapping[str, Sequence[int]]) -> None:
        """Write unsigned numbers as ±1 bits: for each row block a number for each column of the region."""
        for name, values in numbers.items():
            place = self.rows(name)
            self.put(card, name, region, encode_unsigned(list(values), place.stop - place.start))

    def numbers(self, card: Tensor, rows: str, region: str) -> Tensor:
        """The unsigned numbers at a block's rows: (..., columns) of int64."""
        return decode_unsigned(self.get(card, rows, region))

    def check(self, card: Tensor) -> None:
        """Refuse a tensor that is not a card of this layout."""
        if card.ndim < 2 or tuple(card.shape[-2:]) != (self.width, self.columns):
            raise SizeError(f"a card of shape {tuple(card.shape)} does not fit the layout, "
                            f"which has {self.width} rows and {self.columns} columns")

    def violations(self, card: Tensor) -> list[str]:
        """Where a card at the beginning of a loop departs from the declared facts; empty when they hold."""
        self.check(card)
        found = []
        for block in self.blocks:
            for region in self.regions:
                entries = self.get(card, block.name, region.name)
                content = block.holds.get(region.name)
                if content in ("real", "fixed"):
                    continue
                expected = {"bits": entries.sign(), "one": torch.ones_like(entries)}.get(
                    content or "", torch.zeros_like(entries))
                wrong = (entries != expected) | ((entries == 0) & (content == "bits"))
                if bool(wrong.any()):
                    found.append(f"{block.name} in {region.name} holds {float(entries[wrong][0])}, "
                                 f"not {content or 'zero'}")
        return found

    def matches(self, card: Tensor, pattern: Pattern) -> Tensor:
        """Whether the pattern stands on the card: a boolean, one for each card of a batch."""
        self.check_pattern(pattern)
        column = self.get(card, pattern.rows, pattern.region)[..., 0]
        bits = torch.tensor(pattern.bits, dtype=card.dtype, device=card.device)
        return (((column - bits).abs() < 0.5) | (bits == 0)).all(dim=-1)

    def check_pattern(self, pattern: Pattern) -> None:
        """Refuse a pattern that names no rows or region of this layout, or has another number of bits."""
        place = self.rows(pattern.rows)
        self.region(pattern.region)
        if len(pattern.bits) != place.stop - place.start or not set(pattern.bits) <= {-1, 0, 1}:
            raise SizeError(f"pattern {pattern.bits} does not fit {pattern.rows!r}, which has "
                            f"{place.stop - place.start} rows: it has a -1, 1 or 0 (either) for each")

    def describe(self) -> dict[str, Any]:
        """The layout as plain data, for saving."""
        return {
            "rows": [
                {"name": b.name, "start": self.rows(b.name).start, "size": b.size, "parts": dict(b.parts),
                 "holds": dict(b.holds), "changes": list(b.changes), "limit": b.limit, "within": b.within,
                 "selects": list(b.selects)}
                for b in self.blocks
            ],
            "regions": [
                {"name": r.name, "start": self.region(r.name).start, "size": r.size, "groups": list(r.groups)}
                for r in self.regions
            ],
        }


def _place(items: tuple[RowBlock, ...] | tuple[Region, ...], kind: str) -> dict[str, slice]:
    placed: dict[str, slice] = {}
    end = 0
    for item in items:
        if item.name in placed:
            raise OverlapError(f"{kind} {item.name!r} is declared twice")
        if "." in item.name or not item.name:
            raise LayoutError(f"{kind} name {item.name!r}: a name is not empty and has no dot")
        start = end if item.start is None else item.start
        if start < 0:
            raise SizeError(f"{kind} {item.name!r} starts at {start}: the first place is 0")
        for other, there in placed.items():
            if start < there.stop and there.start < start + item.size:
                raise OverlapError(f"{kind} {item.name!r} at {start} to {start + item.size - 1} overlaps {other!r} "
                                   f"at {there.start} to {there.stop - 1}")
        placed[item.name] = slice(start, start + item.size)
        end = start + item.size
    return placed


def _find(name: str, places: Mapping[str, slice], kind: str) -> slice:
    try:
        return places[name]
    except KeyError:
        raise UnknownNameError(f"no {kind} {name!r}{did_you_mean(name, places)}; "
                               f"there are {', '.join(places)}") from None
