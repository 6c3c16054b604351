"""What a layout is made of: blocks of rows, regions of columns, what each holds, and patterns of bits in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

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

    Four more facts help a compiler and are checked when they are used. `limit`: no entry exceeds it in size.
    `within`: what the block holds in the middle of a loop where it is not 0, though it may be 0 when a loop begins.
    `selects`: parts of it that take few different values, which decide what the rest of the loop does.
    `follows`: its entries when a loop begins are the same whenever those of all selecting parts are.
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
    follows: bool = False

    def __post_init__(self) -> None:
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

    @property
    def real(self) -> bool:
        """Whether it holds numbers that are not bits, in some region."""
        return bool({"real", "fixed"} & set(self.holds.values()))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its rows: its own, and those of its parts."""
        return self.name, *(f"{self.name}.{part}" for part in self.parts)


def persistent_bits(
    name: str, size: int, about: str, parts: Mapping[str, int] | None = None, selects: tuple[str, ...] = (),
) -> RowBlock:
    """Bits in the scratchpad that a loop leaves to the next one."""
    return RowBlock(name, size, about, parts or {}, holding("bits", "scratchpad"), ("scratchpad",), selects=selects)


@dataclass(frozen=True)
class Region:
    """A named range of columns. `groups` are the sizes of consecutive runs of columns that compute alike."""

    name: str
    size: int
    about: str = ""
    start: int | None = None
    groups: tuple[int, ...] = ()


@dataclass(frozen=True)
class Pattern:
    """Fixed ±1 bits at a row block of one column of a region: how a machine declares, say, that it has halted.

    A 0 is for either bit. `column` counts from the region's first.
    """

    rows: str
    region: str
    bits: tuple[int, ...]
    column: int = 0


@dataclass(frozen=True)
class Place:
    """The rows of a block, or of a part of it, by name."""

    name: str
    block: RowBlock
    first: int
    size: int
    rows: slice
    empty: tuple[tuple[int, int], ...]
    """Columns, from and to, where the block holds nothing."""
    ones: tuple[tuple[int, int], ...]
    """Columns where it holds the number 1."""
    real: bool
    part: slice
    """The rows, counted from the block's first."""
    mask: int
    """A word with all bits of the part."""
    field: str
    """The field of a packed card: the block's name."""
    one_word: bool
    """Whether that field is a word for each column."""


def place_all(items: tuple[RowBlock, ...] | tuple[Region, ...], kind: str, unit: str) -> dict[str, slice]:
    """Where blocks or regions are, by name: one after the other unless one says where it starts."""
    placed: dict[str, slice] = {}
    end = 0
    for item in items:
        if item.name in placed:
            raise OverlapError(f"{kind} {item.name!r} is declared twice")
        if "." in item.name or not item.name:
            raise LayoutError(f"{kind} name {item.name!r}: a name is not empty and has no dot")
        if item.size < 1:
            raise SizeError(f"{kind} {item.name!r} has {item.size} {unit}: it needs at least one")
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


def find_place(name: str, places: Mapping[str, slice], kind: str) -> slice:
    """The place of a name; one that is not there is refused with those that are."""
    try:
        return places[name]
    except KeyError:
        raise UnknownNameError(f"no {kind} {name!r}{did_you_mean(name, places)}; "
                               f"there are {', '.join(places)}") from None
