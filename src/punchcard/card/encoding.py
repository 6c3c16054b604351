"""Integers, pointers and two's complement as ±1 bits, both ways.

The paper writes a bit 0 as -1 and a bit 1 as +1. A word lies in a column of the card, one bit a row, the least
significant bit first; a pointer is the unsigned number of a column, written the same way.
"""

from __future__ import annotations

import torch
from torch import Tensor

from punchcard.errors import EncodingError


def pointer_bits(columns: int) -> int:
    """log n: how many bits name each of n columns (at least one)."""
    return max(1, (columns - 1).bit_length())


def signed_range(bits: int) -> tuple[int, int]:
    """The least and the greatest integer of a two's-complement word."""
    return -(1 << (bits - 1)), (1 << (bits - 1)) - 1


def encode_unsigned(values: Tensor | list[int] | int, bits: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """±1 bits of non-negative integers: shape (..., k) becomes (..., bits, k); a single integer gives (bits, 1)."""
    return _encode(values, bits, 0, (1 << bits) - 1, dtype)


def encode_signed(values: Tensor | list[int] | int, bits: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """±1 bits of integers in two's complement: shape (..., k) becomes (..., bits, k)."""
    least, greatest = signed_range(bits)
    return _encode(values, bits, least, greatest, dtype)


def decode_unsigned(card: Tensor) -> Tensor:
    """The inverse of `encode_unsigned`: (..., bits, k) becomes (..., k) of int64."""
    return (_as_binary(card) << _weights(card)).sum(dim=-2)


def decode_signed(card: Tensor) -> Tensor:
    """The inverse of `encode_signed`: the most significant bit counts -2^(bits - 1)."""
    binary = _as_binary(card)
    magnitude = (binary[..., :-1, :] << _weights(card)[:-1]).sum(dim=-2)
    return magnitude - (binary[..., -1, :] << (card.shape[-2] - 1))


def _encode(
    values: Tensor | list[int] | int, bits: int, least: int, greatest: int, dtype: torch.dtype
) -> Tensor:
    if isinstance(values, int) and least <= values <= greatest:  # instructions are punched number by number
        return torch.tensor([[1.0 if values >> k & 1 else -1.0] for k in range(bits)], dtype=dtype)
    if isinstance(values, int):
        values = [values]
    if isinstance(values, list):
        for value in values:
            if not least <= value <= greatest:
                raise EncodingError(f"{value} does not fit {bits} bits: the range is {least} to {greatest}")
        values = torch.tensor(values, dtype=torch.int64)
    elif values.numel() and not (least <= int(values.min()) and int(values.max()) <= greatest):
        raise EncodingError(
            f"values from {int(values.min())} to {int(values.max())} do not fit {bits} bits: "
            f"the range is {least} to {greatest}"
        )
    shifts = torch.arange(bits).unsqueeze(-1)
    binary = (values.unsqueeze(-2) >> shifts) & 1
    return (2 * binary - 1).to(dtype)


def _as_binary(card: Tensor) -> Tensor:
    """0 or 1 for entries within 1/4 of -1 or +1, the tolerance of the error correction; anything else is not a bit."""
    is_bit = (card.abs() - 1).abs() < 0.25
    if not bool(is_bit.all()):
        culprit = float(card[~is_bit][0])
        raise EncodingError(f"an entry of the card is {culprit}, not a ±1 bit")
    return (card > 0).to(torch.int64)


def _weights(card: Tensor) -> Tensor:
    return torch.arange(card.shape[-2], device=card.device).unsqueeze(-1)
