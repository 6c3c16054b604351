"""A card without a dense matrix: a word for a block of ±1 bits in a column, and numbers only where the layout has numbers.

A block that holds ±1 bits, the number 1 or nothing in every region is a field of words: bit i of a column's word is row i
of the block, 1 for +1 and 0 for -1. Where the block holds nothing the word is 0, for the number 0. A block that
holds real or fixed numbers in some region is a field of numbers, a row for each column. A block that holds nothing
when a loop begins has no field. So a packed card can only be what its layout declares.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from punchcard.budget import require
from punchcard.card.encoding import Numbers, Words, as_binary, as_integer, as_numbers, pack_bits, unpack_bits
from punchcard.card.formats import FORMATS, AnyArray, FormatName, as_array, name_of
from punchcard.errors import EncodingError, LayoutError, PrecisionError, SizeError

if TYPE_CHECKING:
    from torch import Tensor

    from punchcard.card.blocks import Place, RowBlock
    from punchcard.card.layout import Layout

PART = 1 << 15
"""Columns that are written at a time."""
CHUNK = 64
"""Bits of the widest word; a block with more rows has several for each column."""


class PackedCard:
    """The card of a layout: `fields` by the names of its row blocks, over all columns."""

    ndim = 2

    def __init__(self, layout: Layout, dtype: FormatName, fields: dict[str, AnyArray]) -> None:
        self.layout, self.dtype, self.fields = layout, name_of(dtype), fields
        self.shape = layout.width, layout.columns  # as of the dense card

    @classmethod
    def blank(cls, layout: Layout, dtype: FormatName = "float64") -> Self:
        """A card on which all bits are -1, and all numbers 0, or 1 where the layout says so."""
        if name_of(dtype) not in FORMATS:
            raise PrecisionError(f"{name_of(dtype)} is not a number format for a card: use {', '.join(FORMATS)}")
        require(packed_bytes(layout, dtype), f"a packed card of {layout.width} rows and {layout.columns} columns")
        card = cls(layout, dtype, {})
        for block in layout.blocks:
            if not block.holds:
                continue
            card.fields[block.name] = np.zeros(_shape(layout, block), _field_type(block, card.dtype))
            for region, content in block.holds.items():
                if content == "one":
                    card._fill(layout.place(block.name), layout.region(region), 1.0)
        return card

    @classmethod
    def of(cls, layout: Layout, card: Tensor | AnyArray, dtype: FormatName | None = None) -> Self:
        """A dense card, packed; one that is not exactly what the layout declares is refused."""
        entries = as_array(card)
        if entries.shape != (layout.width, layout.columns):
            raise SizeError(f"a card of shape {entries.shape} does not fit the layout, which has {layout.width} rows and "
                            f"{layout.columns} columns")
        packed = cls.blank(layout, name_of(card.dtype) if dtype is None else dtype)
        left = np.ones(entries.shape, dtype=bool)
        for block in layout.blocks:
            for region in layout.regions:
                place, columns = layout.place(block.name), layout.region(region.name)
                packed.put(block.name, region.name, entries[place.rows, columns])
                left[place.rows, columns] = False
        if (entries[left] != 0).any():
            row, column = np.argwhere(left & (entries != 0))[0]
            raise LayoutError(f"row {row}, column {column} holds {entries[row, column]}: the layout declares nothing there")
        return packed

    @property
    def nbytes(self) -> int:
        """Bytes of all fields; pages that were never written take no memory."""
        return sum(field.nbytes for field in self.fields.values())

    def __repr__(self) -> str:
        fields = ", ".join(f"{name} {field.dtype}" + (f" x {field.shape[1]}" if field.ndim > 1 else "")
                           for name, field in self.fields.items())
        return f"<packed card of {self.shape[0]} rows and {self.shape[1]} columns, {self.dtype}: {fields}>"

    def copy(self, into: PackedCard | None = None) -> PackedCard:
        """A copy of the card, in new arrays or in those of another card of this layout.

        Where a block holds nothing all is 0 already, and no page is touched.
        """
        made = into
        if made is None:
            made = PackedCard(self.layout, self.dtype, {n: np.zeros(f.shape, f.dtype) for n, f in self.fields.items()})
        for name, field in list(made.fields.items()):
            if field.flags.writeable or not np.array_equal(field, self.fields[name]):
                self._take_field(name, made._to_write(name), self.fields[name])
        return made

    def _take_field(self, name: str, field: AnyArray, other: AnyArray) -> None:
        for region in self.layout.place(name).block.holds:
            columns = self.layout.region(region)
            field[columns] = other[columns]

    def _copied(self, name: str) -> AnyArray:
        """A copy of a field. Where its block holds nothing, no page is touched."""
        field = self.fields[name]
        made = np.zeros(field.shape, field.dtype)
        self._take_field(name, made, field)
        return made

    def snapshot(self) -> PackedCard:
        """The card as it is now, to keep. What no loop changes is shared, until one of the two is written to there."""
        kept = {}
        for block in self.layout.blocks:
            field = self.fields.get(block.name)
            if field is not None and block.changes:
                kept[block.name] = self._copied(block.name)
            elif field is not None:
                field.flags.writeable = False
                kept[block.name] = field
        return PackedCard(self.layout, self.dtype, kept)

    def _to_write(self, name: str) -> AnyArray:
        """A field that is this card's own."""
        field = self.fields[name]
        if not field.flags.writeable:
            field = self.fields[name] = self._copied(name)
        return field

    def parts(self) -> dict[str, AnyArray]:
        """What a file must hold of the card: each field in the columns where its block holds anything but the number 1."""
        return {name: np.concatenate([field[columns] for columns in self._kept(name)])
                for name, field in self.fields.items() if self._kept(name)}

    def put_part(self, name: str, part: AnyArray) -> None:
        """Write one of these parts to its columns."""
        done = 0
        for columns in self._kept(name):
            size = columns.stop - columns.start
            self._to_write(name)[columns] = part[done : done + size]
            done += size

    def _kept(self, name: str) -> list[slice]:
        held = self.layout.place(name).block.holds
        return [self.layout.region(region) for region, content in held.items() if content != "one"]

    def equals(self, other: PackedCard) -> bool:
        """Whether the other card has the same fields, entry by entry, in the same number format."""
        return (self.dtype == other.dtype and self.fields.keys() == other.fields.keys()
                and all(np.array_equal(field, other.fields[name]) for name, field in self.fields.items()))

    def dense(self) -> AnyArray:
        """The card as a matrix, rows by columns."""
        kept = FORMATS[self.dtype].array
        require(self.layout.width * self.layout.columns * kept.itemsize,
                f"a packed card of {self.layout.width} rows and {self.layout.columns} columns as a matrix")
        entries = np.zeros(self.shape, dtype=kept)
        for block in self.layout.blocks:
            for region in block.holds:
                columns = self.layout.region(region)
                entries[self.layout.rows(block.name), columns] = self.entries(block.name, region)
        return entries

    def tensor(self) -> Tensor:
        """The card as a tensor of its number format."""
        import torch

        found: Tensor = torch.from_numpy(self.dense()).to(getattr(torch, self.dtype))
        return found

    # Entries, as `Layout.get` and `Layout.put` have them

    def entries(self, rows: str, region: str, columns: slice | None = None) -> AnyArray:
        """The entries of a block or a part in a region, or in some columns of the card that lie in it: rows by columns."""
        place, columns = self.layout.place(rows), columns or self.layout.region(region)
        field, kept = self.fields.get(place.block.name), FORMATS[self.dtype].array
        if field is None or region not in place.block.holds:
            return np.zeros((place.size, columns.stop - columns.start), dtype=kept)
        return _unpacked(field[columns], place, kept)

    def columns(self, numbers: npt.ArrayLike) -> AnyArray:
        """All rows of some columns, in the order in which these are named."""
        wanted = np.asarray(numbers, dtype=np.intp)
        kept = FORMATS[self.dtype].array
        found = np.zeros((self.layout.width, len(wanted)), dtype=kept)
        for block in self.layout.blocks:
            for region in block.holds:
                span, place = self.layout.region(region), self.layout.place(block.name)
                there = np.flatnonzero((span.start <= wanted) & (wanted < span.stop))
                found[place.rows, there] = _unpacked(self.fields[block.name][wanted[there]], place, kept)
        return found

    def put(self, rows: str, region: str, values: AnyArray | float) -> None:
        """Write entries, which must be what the layout declares there."""
        place, columns = self.layout.place(rows), self.layout.region(region)
        given = np.asarray(values)
        self.layout.check_shape(rows, region, given.shape)
        content = place.block.holds.get(region)
        wrong = first_mismatch(given, content)
        if wrong is not None:
            raise LayoutError(f"{wrong} does not go to {rows!r} in {region!r}: the layout declares "
                              f"{content or 'nothing'} there")
        if content in (None, "one"):
            return  # it is there already
        field = self._to_write(place.block.name)
        if not given.ndim:
            self._fill(place, columns, float(given))
        elif field.dtype.kind == "f":
            field[columns, place.part] = given.T
        else:
            for piece in pieces_of(place):
                _insert(field, columns, piece, pack_bits(given[piece[2] : piece[2] + piece[3]] > 0))

    # Words, as `Layout.numbers` and `Layout.put_numbers` have them

    def words(self, place: Place, columns: slice, *, signed: bool = False) -> Numbers:
        """The numbers of a part that holds bits in these columns."""
        field = self.fields[place.block.name]
        if field.dtype.kind == "f":
            return as_numbers(pack_bits(as_binary(field[columns, place.part].T)), place.size, signed=signed)
        found = np.uint64(0)
        for chunk, shift, first, count in pieces_of(place):
            word = _word(field, chunk)[columns].astype(np.uint64) >> np.uint64(shift) & word_mask(count)
            found = found | word << np.uint64(first)
        return as_numbers(np.asarray(found), place.size, signed=signed)

    def put_words(self, place: Place, columns: slice, words: Words | np.uint64) -> None:
        """Write numbers at a part that holds bits in these columns."""
        field = self._to_write(place.block.name)
        if field.dtype.kind == "f":
            bits = unpack_bits(np.atleast_1d(words), place.size)
            field[columns, place.part] = 2.0 * bits.T - 1
            return
        for piece in pieces_of(place):
            for some in _in_turn(columns):
                part = slice(some.start - columns.start, some.stop - columns.start)
                chosen = words[part] if isinstance(words, np.ndarray) else words
                _insert(field, some, piece, chosen >> np.uint64(piece[2]) & word_mask(piece[3]))

    def word(self, place: Place, column: int) -> int:
        """The number of a part in one column, as a Python integer of any size: in half a microsecond."""
        field = self.fields.get(place.field)
        if field is None:
            raise self._holds_nothing(place, column)
        for start, stop in place.empty:
            if start <= column < stop:
                raise self._holds_nothing(place, column)
        if place.one_word:
            word: int = field.item(column) >> place.first & place.mask
            return word
        if place.real:
            return as_integer(field[column, place.part])
        return int.from_bytes(field[column].tobytes(), "little") >> place.first & place.mask

    def _holds_nothing(self, place: Place, column: int) -> EncodingError:
        return EncodingError(f"{place.name!r} holds nothing in {self.layout.column_name(column)!r}: not a number")

    def put_word(self, place: Place, column: int, word: int) -> None:
        """Write the number of a part in one column."""
        field, ones = self.fields.get(place.field), place.mask
        if field is None or _inside(place.empty, column) or (place.ones and word != ones and _inside(place.ones, column)):
            raise LayoutError(f"{word} does not go to {place.name!r} in {self.layout.column_name(column)!r}: "
                              "the layout declares no bits there")
        if not field.flags.writeable:
            field = self._to_write(place.field)
        if place.one_word:
            field[column] = field.item(column) & ~(ones << place.first) | word << place.first
        elif place.real:
            field[column, place.part] = [1.0 if word >> i & 1 else -1.0 for i in range(place.size)]
        else:
            whole = int.from_bytes(field[column].tobytes(), "little") & ~(ones << place.first) | word << place.first
            field[column] = [whole >> CHUNK * k & (1 << CHUNK) - 1 for k in range(field.shape[1])]

    def cell(self, place: Place, column: int) -> WordCell:
        """The number of a part in one column, to read and write many times: in a tenth of a microsecond."""
        return WordCell(self, place, column)

    def mismatch(self, block: RowBlock, region: str) -> float | str | None:
        """What a field, which an engine or a port may have written to, holds that the layout does not declare, or None."""
        field, content, columns = self.fields.get(block.name), block.holds.get(region), self.layout.region(region)
        if field is None or content in ("real", "fixed"):
            return None
        if field.dtype.kind == "f":
            return first_mismatch(field[columns].T, content)
        for chunk, _, _, count in pieces_of(self.layout.place(block.name)):
            words, most = _word(field, chunk)[columns], int(word_mask(count))
            least = most if content == "one" else 0
            most = 0 if content is None else most
            if int(words.min()) < least or int(words.max()) > most:
                return f"the word {int(words.max()) if int(words.max()) > most else int(words.min()):#x}"
        return None

    def _fill(self, place: Place, columns: slice, value: float) -> None:
        """The same entry in every row and column."""
        field = self._to_write(place.block.name)
        if field.dtype.kind == "f":
            field[columns, place.part] = value
            return
        for piece in pieces_of(place):
            _insert(field, columns, piece, word_mask(piece[3]) if value > 0 else np.uint64(0))


class WordCell:
    """One number on a packed card: a part of a block in one column.

    Where a loop may change the block, the card's own memory is read and written. Any other block may be shared with other
    cards, or read-only: then the card is asked every time.

    get   the number
    put   writes a number, which has as many bits as the part at most
    """

    __slots__ = ("get", "put")

    def __init__(self, card: PackedCard, place: Place, column: int) -> None:
        self.get: Callable[[], int] = partial(card.word, place, column)
        self.put: Callable[[int], None] = partial(card.layout.put_number_at, card, place.name, column)
        self.get()  # there is one
        field, changes = card.fields[place.field], bool(place.block.changes) and not _inside(place.ones, column)
        if not (place.one_word and changes and field.flags.writeable):
            return
        words, put, first, mask = field.data, self.put, place.first, place.mask
        kept = ~(mask << first)

        def put_bits(word: int) -> None:
            if word & ~mask:
                put(word)  # which refuses it, or it is negative
            else:
                words[column] = words[column] & kept | word << first

        if mask == (1 << 8 * field.itemsize) - 1:
            self.get = partial(words.__getitem__, column)
        else:
            self.get = lambda: words[column] >> first & mask
        self.put = put_bits


def packed_bytes(layout: Layout, dtype: FormatName) -> int:
    """Bytes of all fields of a packed card, by its layout alone."""
    return sum(layout.columns * _cell_bytes(layout, block, dtype) for block in layout.blocks if block.holds)


def least_bytes(layout: Layout, dtype: FormatName) -> int:
    """Bytes of the fields in those columns alone where they hold something."""
    return sum(region.size * _cell_bytes(layout, block, dtype) for block in layout.blocks for region in layout.regions
               if region.name in block.holds)


def _cell_bytes(layout: Layout, block: RowBlock, dtype: FormatName) -> int:
    """Bytes of a field in one column."""
    return math.prod(_shape(layout, block)[1:]) * np.dtype(_field_type(block, name_of(dtype))).itemsize


def first_mismatch(entries: AnyArray, content: str | None) -> float | None:
    """The first entry that is not what a layout declares, or None."""
    if content in ("real", "fixed"):
        return None
    wrong = np.abs(entries) != 1 if content == "bits" else entries != (1 if content == "one" else 0)
    return float(entries[wrong][0]) if wrong.any() else None


def _shape(layout: Layout, block: RowBlock) -> tuple[int, ...]:
    if block.real:
        return layout.columns, block.size
    return (layout.columns,) if block.size <= CHUNK else (layout.columns, -(-block.size // CHUNK))


def _field_type(block: RowBlock, dtype: str) -> npt.DTypeLike:
    if block.real:
        return FORMATS[dtype].array
    return next((kind for kind in (np.uint8, np.uint16, np.uint32) if block.size <= 8 * kind().itemsize), np.uint64)


def pieces_of(place: Place) -> Iterator[tuple[int, int, int, int]]:
    """Where the bits of a part lie: the word's number, the first bit there, the first row of the part, how many."""
    done = 0
    while done < place.size:
        chunk, shift = divmod(place.first + done, CHUNK)
        count = min(CHUNK - shift, place.size - done)
        yield chunk, shift, done, count
        done += count


def _unpacked(field: AnyArray, place: Place, kept: np.dtype[Any]) -> AnyArray:
    """The entries of a part in the columns of a field, or in some of them: rows by columns."""
    if field.dtype.kind == "f":
        return np.ascontiguousarray(field[:, place.part].T)
    found = [unpack_bits(_word(field, chunk).astype(np.uint64) >> np.uint64(shift), count)
             for chunk, shift, _, count in pieces_of(place)]
    return 2 * np.concatenate(found).astype(kept) - 1


def _in_turn(columns: slice) -> Iterator[slice]:
    """Columns in parts that stay in the cache, and make no large arrays in between."""
    return (slice(at, min(at + PART, columns.stop)) for at in range(columns.start, columns.stop, PART))


def _word(field: AnyArray, chunk: int) -> AnyArray:
    return field if field.ndim == 1 else field[:, chunk]


def _inside(spans: tuple[tuple[int, int], ...], column: int) -> bool:
    for start, stop in spans:  # noqa: SIM110, a generator would take longer than all the rest of reading a word
        if start <= column < stop:
            return True
    return False


def word_mask(count: int) -> Any:
    """A word whose lowest bits, so many of them, are 1."""
    return np.uint64((1 << count) - 1)


def _insert(field: AnyArray, columns: slice, piece: tuple[int, int, int, int], words: Words | np.uint64) -> None:
    """Bits of words, among others that stay."""
    chunk, shift, _, count = piece
    insert_bits(_word(field, chunk)[columns], shift, count, words)


def insert_bits(there: AnyArray, shift: int, count: int, words: Words | np.uint64) -> None:
    """So many bits of words at a place in each word of an array; the other bits stay."""
    kept = ~(word_mask(count) << np.uint64(shift)) & word_mask(8 * there.itemsize)
    if np.ndim(words) == 0 and int(words) == 0 and not there.any():
        return  # pages that were never written stay so
    moved = (words << np.uint64(shift)).astype(there.dtype)
    there[...] = moved if int(kept) == 0 else there & there.dtype.type(kept) | moved
