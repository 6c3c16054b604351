"""Names to slices, integers to bits; overlap, unknown names, wrong sizes and misfits are refused by name."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from punchcard.card.encoding import (
    decode_bits,
    encode_bits,
    pointer_bits,
    signed_range,
)
from punchcard.card.layout import Layout, Pattern, Region, RowBlock
from punchcard.errors import EncodingError, LayoutError, OverlapError, SizeError, UnknownNameError
from tests.cases import wrap


def layout() -> Layout:
    return Layout(
        [RowBlock("word", 4, holds={"memory": "bits"}, changes=("memory",)),
         RowBlock("pointer", 6, parts={"a": 2, "b": 4}, holds={"scratchpad": "bits"}),
         RowBlock("inside", 1, holds={"scratchpad": "one"})],
        [Region("scratchpad", 1), Region("memory", 3)],
    )


def test_blocks_follow_each_other() -> None:
    it = layout()
    assert (it.width, it.columns) == (11, 4)
    assert it.rows("word") == slice(0, 4)
    assert it.rows("pointer.b") == slice(6, 10)
    assert it.region("memory") == slice(1, 4)


def test_put_and_get() -> None:
    it = layout()
    card = it.blank()
    it.put(card, "pointer.a", "scratchpad", torch.tensor([[1.0], [-1.0]]))
    assert card[4:6, 0].tolist() == [1.0, -1.0]
    assert it.get(card.expand(5, -1, -1), "pointer.a", "scratchpad").shape == (5, 2, 1)


def test_numbers_are_put_as_bits_and_read_again() -> None:
    it = layout()
    card = it.blank()
    it.put_numbers(card, "memory", {"word": range(5, 8)})
    it.put_numbers(card, "scratchpad", {"pointer.a": [2], "pointer.b": [9]})
    assert card[4:10, 0].tolist() == [-1, 1, 1, -1, -1, 1]
    assert it.numbers(card.expand(2, -1, -1), "word", "memory").tolist() == [[5, 6, 7]] * 2
    assert it.numbers(card, "pointer.b", "scratchpad").tolist() == [9]
    with pytest.raises(EncodingError, match=r"16 does not fit 4 bits"):
        it.put_numbers(card, "memory", {"word": [0, 1, 16]})
    with pytest.raises(SizeError, match=r"\(4, 2\) values do not fit 'word' in 'memory'"):
        it.put_numbers(card, "memory", {"word": [0, 1]})


def test_overlap_is_refused() -> None:
    with pytest.raises(OverlapError, match=r"row block 'b' at 1 to 2 overlaps 'a' at 0 to 1"):
        Layout([RowBlock("a", 2), RowBlock("b", 2, start=1)], [Region("all", 1)])
    with pytest.raises(OverlapError, match=r"region 'x' is declared twice"):
        Layout([RowBlock("a", 2)], [Region("x", 1), Region("x", 1)])


def test_unknown_names_are_refused_with_a_suggestion() -> None:
    it = layout()
    with pytest.raises(UnknownNameError, match=r"no row block 'pointr' \(did you mean 'pointer'\?\)"):
        it.rows("pointr")
    with pytest.raises(UnknownNameError, match=r"no region 'memroy' \(did you mean 'memory'\?\)"):
        it.region("memroy")
    with pytest.raises(UnknownNameError, match="no region 'nowhere'"):
        Layout([RowBlock("a", 1, holds={"nowhere": "bits"})], [Region("all", 1)])


def test_wrong_sizes_are_refused() -> None:
    it = layout()
    with pytest.raises(SizeError, match=r"\(3, 3\) values do not fit 'word' in 'memory', which is \(4, 3\)"):
        it.put(it.blank(), "word", "memory", torch.ones(3, 3))
    with pytest.raises(SizeError, match=r"a card of shape \(3, 3\) does not fit the layout, which has 11 rows"):
        it.get(torch.ones(3, 3), "word", "memory")
    with pytest.raises(SizeError, match="parts of row block 'p' have 3 rows, the block has 4"):
        RowBlock("p", 4, parts={"a": 1, "b": 2})
    with pytest.raises(SizeError, match="region 'r' has 0 columns: it needs at least one"):
        Layout([RowBlock("a", 1)], [Region("r", 0)])
    with pytest.raises(SizeError, match="row block 'a' has 0 rows: it needs at least one"):
        Layout([RowBlock("a", 0)], [Region("r", 1)])
    with pytest.raises(SizeError, match="the groups of region 'r' have 3 columns, the region has 4"):
        Layout([RowBlock("a", 1)], [Region("r", 4, groups=(1, 2))])
    with pytest.raises(LayoutError, match="no dot"):
        Layout([RowBlock("a.b", 1)], [Region("all", 1)])


def test_facts_are_checked() -> None:
    it = layout()
    card = it.blank()
    it.put(card, "word", "memory", 1.0)
    it.put(card, "pointer", "scratchpad", -1.0)
    it.put(card, "inside", "scratchpad", 1.0)
    assert it.violations(card) == []
    it.put(card, "inside", "memory", 0.5)
    it.put(card, "word", "memory", 0.0)
    assert it.violations(card) == ["word in memory holds 0.0, not bits", "inside in memory holds 0.5, not zero"]


def test_patterns_match_card_by_card() -> None:
    it = layout()
    cards = it.blank().repeat(2, 1, 1)
    it.put(cards[1], "pointer.a", "scratchpad", torch.tensor([[1.0], [-1.0]]))
    assert it.matches(cards, Pattern("pointer.a", "scratchpad", (1, -1))).tolist() == [False, True]


# Integers as ±1 bits and back, exhaustively for small widths


@pytest.mark.parametrize("bits", range(2, 9))
def test_every_value_round_trips(bits: int) -> None:
    unsigned = list(range(1 << bits))
    assert decode_bits(encode_bits(unsigned, bits)).tolist() == unsigned
    least, greatest = signed_range(bits)
    signed = list(range(least, greatest + 1))
    encoded = encode_bits(signed, bits, signed=True)
    assert set(encoded.flatten().tolist()) == {-1.0, 1.0}
    assert decode_bits(encoded, signed=True).tolist() == signed


@given(st.integers(2, 50), st.data())
def test_wide_words_round_trip(bits: int, data: st.DataObject) -> None:
    least, greatest = signed_range(bits)
    value = data.draw(st.integers(least, greatest))
    assert decode_bits(encode_bits(value, bits, signed=True), signed=True).tolist() == [value]
    assert wrap(value + (1 << bits), bits) == value


def test_two_is_least_significant_bit_first() -> None:
    assert encode_bits(2, 3).flatten().tolist() == [-1, 1, -1]
    assert encode_bits(-4, 3, signed=True).flatten().tolist() == [-1, -1, 1]


def test_batches() -> None:
    values = torch.tensor([[1, 2, 3], [4, 5, 6]])
    assert encode_bits(values, 4).shape == (2, 4, 3)
    assert torch.equal(decode_bits(encode_bits(values, 4)), values)


def test_misfits_are_refused() -> None:
    with pytest.raises(EncodingError, match="8 does not fit 4 bits: the range is -8 to 7"):
        encode_bits(8, 4, signed=True)
    with pytest.raises(EncodingError, match="-1 does not fit 4 bits: the range is 0 to 15"):
        encode_bits([3, -1], 4)
    with pytest.raises(EncodingError, match="values from 1 to 99 do not fit"):
        encode_bits(torch.tensor([1, 99]), 4)
    with pytest.raises(EncodingError, match=r"an entry of the card is 0.5, not a ±1 bit"):
        decode_bits(torch.tensor([[1.0], [0.5]]), signed=True)


def test_pointer_bits() -> None:
    assert [pointer_bits(n) for n in (1, 2, 3, 4, 5, 8, 9, 256, 257)] == [1, 1, 2, 2, 3, 3, 4, 8, 9]
