"""Integers as ±1 bits and back, exhaustively for small widths."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from punchcard.card.encoding import (
    decode_signed,
    decode_unsigned,
    encode_signed,
    encode_unsigned,
    pointer_bits,
    signed_range,
)
from punchcard.errors import EncodingError
from tests.cases import wrap


@pytest.mark.parametrize("bits", range(2, 9))
def test_every_value_round_trips(bits: int) -> None:
    unsigned = list(range(1 << bits))
    assert decode_unsigned(encode_unsigned(unsigned, bits)).tolist() == unsigned
    least, greatest = signed_range(bits)
    signed = list(range(least, greatest + 1))
    encoded = encode_signed(signed, bits)
    assert set(encoded.flatten().tolist()) == {-1.0, 1.0}
    assert decode_signed(encoded).tolist() == signed


@given(st.integers(2, 50), st.data())
def test_wide_words_round_trip(bits: int, data: st.DataObject) -> None:
    least, greatest = signed_range(bits)
    value = data.draw(st.integers(least, greatest))
    assert decode_signed(encode_signed(value, bits)).tolist() == [value]
    assert wrap(value + (1 << bits), bits) == value


def test_two_is_least_significant_bit_first() -> None:
    assert encode_unsigned(2, 3).flatten().tolist() == [-1, 1, -1]
    assert encode_signed(-4, 3).flatten().tolist() == [-1, -1, 1]


def test_batches() -> None:
    values = torch.tensor([[1, 2, 3], [4, 5, 6]])
    assert encode_unsigned(values, 4).shape == (2, 4, 3)
    assert torch.equal(decode_unsigned(encode_unsigned(values, 4)), values)


def test_misfits_are_refused() -> None:
    with pytest.raises(EncodingError, match="8 does not fit 4 bits: the range is -8 to 7"):
        encode_signed(8, 4)
    with pytest.raises(EncodingError, match="-1 does not fit 4 bits: the range is 0 to 15"):
        encode_unsigned([3, -1], 4)
    with pytest.raises(EncodingError, match="values from 1 to 99 do not fit"):
        encode_unsigned(torch.tensor([1, 99]), 4)
    with pytest.raises(EncodingError, match=r"an entry of the card is 0.5, not a ±1 bit"):
        decode_signed(torch.tensor([[1.0], [0.5]]))


def test_pointer_bits() -> None:
    assert [pointer_bits(n) for n in (1, 2, 3, 4, 5, 8, 9, 256, 257)] == [1, 1, 2, 2, 3, 3, 4, 8, 9]
