"""Integers, pointers and two's complement as ±1 bits, both ways.

The paper writes a bit 0 as -1 and a bit 1 as +1. A word lies in a column of the card, one bit a row, the least
significant bit first; a pointer is the unsigned number of a column, written the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np
import numpy.typing as npt

from punchcard.card.formats import AnyArray, as_array
from punchcard.errors import EncodingError

if TYPE_CHECKING:
    from torch import Tensor

Words = npt.NDArray[np.uint64]
Numbers = npt.NDArray[np.int64]
Either = TypeVar("Either", bound="AnyArray | Tensor")
MOST_BITS = 63
"""Of a number that is read: it is given as an int64."""


def pointer_bits(columns: int) -> int:
    """log n: how many bits name each of n columns (at least one)."""
    return max(1, (columns - 1).bit_length())


def signed_range(bits: int) -> tuple[int, int]:
    """The least and the greatest integer of a two's-complement word."""
    return -(1 << (bits - 1)), (1 << (bits - 1)) - 1


@overload
def encode_bits(values: AnyArray | Sequence[int] | int, bits: int, *, signed: bool = False) -> AnyArray: ...
@overload
def encode_bits(values: Tensor, bits: int, *, signed: bool = False) -> Tensor: ...
def encode_bits(
    values: AnyArray | Tensor | Sequence[int] | int, bits: int, *, signed: bool = False
) -> AnyArray | Tensor:
    """±1 bits of integers: shape (..., k) becomes (..., bits, k); a single integer gives (bits, 1).

    `signed`: two's complement. Otherwise none may be below 0. Of a tensor a tensor, else an array.
    """
    found: AnyArray | Tensor = _like(values, 2.0 * unpack_bits(checked_words(values, bits, signed=signed), bits) - 1)
    return found


def decode_bits(card: Either, *, signed: bool = False) -> Either:
    """The inverse of `encode_bits`: (..., bits, k) becomes (..., k) of int64."""
    entries = as_array(card)
    bits = entries.shape[-2]
    if bits > MOST_BITS:
        raise EncodingError(f"{bits} rows: a number that is read has at most {MOST_BITS} bits")
    found: Either = _like(card, as_numbers(pack_bits(as_binary(entries)), bits, signed=signed))
    return found


def _like(given: Any, found: AnyArray) -> Any:
    """An array, or a tensor where a tensor was given."""
    if not hasattr(given, "detach"):
        return found
    import torch

    return torch.from_numpy(found).to(given.device)


def checked_words(values: Any, bits: int, *, signed: bool) -> Words:
    """Integers as words of so many bits, those below 0 in two's complement; one that does not fit is refused."""
    least, greatest = signed_range(bits) if signed else (0, (1 << bits) - 1)
    if not hasattr(values, "shape"):
        values = [values] if isinstance(values, int) else list(values)
        for value in values:
            if not least <= value <= greatest:
                raise EncodingError(f"{value} does not fit {bits} bits: the range is {least} to {greatest}")
        values = np.array(values, dtype=np.int64 if bits <= MOST_BITS or signed else np.uint64)
    found = as_array(values)
    if found.size and not (least <= int(found.min()) and int(found.max()) <= greatest):
        raise EncodingError(f"values from {int(found.min())} to {int(found.max())} do not fit {bits} bits: "
                            f"the range is {least} to {greatest}")
    words = found.astype(np.int64, copy=False).view(np.uint64) if found.dtype != np.uint64 else found
    return words & np.uint64((1 << bits) - 1) if signed else words


def as_numbers(words: Words, bits: int, *, signed: bool = False) -> Numbers:
    """Words of so many bits as integers."""
    numbers = words.astype(np.int64)
    return numbers - (numbers >> (bits - 1) << bits) if signed else numbers


def as_binary(card: AnyArray) -> npt.NDArray[np.bool_]:
    """Bits of entries within 1/4 of -1 or +1, the tolerance of the error correction; anything else is not a bit."""
    is_bit = np.abs(np.abs(card) - 1) < 0.25
    if not is_bit.all():
        raise EncodingError(f"an entry of the card is {float(card[~is_bit][0])}, not a ±1 bit")
    return np.asarray(card > 0)


def as_integer(entries: AnyArray) -> int:
    """The unsigned number of ±1 bits in one column, of any size."""
    return sum(1 << i for i, bit in enumerate(as_binary(entries).tolist()) if bit)


def pack_bits(bits: npt.NDArray[np.bool_]) -> Words:
    """Up to 64 rows of bits as a word for each column: (..., rows, k) becomes (..., k)."""
    found = np.packbits(bits, axis=-2, bitorder="little").swapaxes(-1, -2)
    whole = np.zeros((*found.shape[:-1], 8), dtype=np.uint8)
    whole[..., : found.shape[-1]] = found
    return whole.view("<u8")[..., 0]


def unpack_bits(words: Words, size: int) -> npt.NDArray[np.uint8]:
    """The inverse: (..., k) becomes (..., rows, k) of 0 and 1."""
    whole = np.ascontiguousarray(words, dtype="<u8")[..., None].view(np.uint8)
    return np.unpackbits(whole, axis=-1, count=size, bitorder="little").swapaxes(-1, -2)
