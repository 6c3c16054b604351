"""Packed cards: the same card in words, read and written by the same calls."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from punchcard.card.layout import Card, Content, Layout, Pattern, Region, RowBlock, as_tensor, holding
from punchcard.card.packed import PackedCard
from punchcard.errors import EncodingError, LayoutError, PunchcardError, SizeError

REGIONS = ("pad", "cells", "code")
KINDS: tuple[Callable[[Layout], Card], ...] = (
    lambda it: it.blank(), lambda it: it.blank().numpy(), lambda it: PackedCard.blank(it))


def layout() -> Layout:
    """A word, a block of three parts across the end of a word of 64 bits, an indicator, numbers, and nothing."""
    return Layout(
        [RowBlock("word", 5, holds=holding("bits", "cells", "code"), changes=("cells",)),
         RowBlock("command", 72, parts={"a": 24, "b": 24, "c": 24}, holds=holding("bits", "code")),
         RowBlock("inside", 1, holds=holding("one", "pad")),
         RowBlock("value", 3, holds={"cells": "real", "code": "bits"}),
         RowBlock("spare", 4)],
        [Region("pad", 1), Region("cells", 6), Region("code", 3)])


def filled(card: Card, seed: int = 0) -> Card:
    """A card with something everywhere, by calls that every kind of card takes."""
    rng, it = np.random.default_rng(seed), layout()
    it.put_numbers(card, "cells", {"word": rng.integers(0, 32, 6)})
    it.put_numbers(card, "code", {"word": [1, 2, 3], **{f"command.{x}": rng.integers(0, 1 << 24, 3) for x in "abc"},
                                  "value": [5, 0, 7]})
    it.put(card, "inside", "pad", 1.0)
    it.put(card, "value", "cells", rng.normal(size=(3, 6)))
    return card


def test_the_format_is_words_over_all_columns() -> None:
    card = filled(PackedCard.blank(layout(), "float32"))
    assert isinstance(card, PackedCard)
    assert {name: (str(field.dtype), field.shape) for name, field in card.fields.items()} == {
        "word": ("uint8", (10,)), "command": ("uint64", (10, 2)), "inside": ("uint8", (10,)), "value": ("float32", (10, 3))}
    assert card.fields["word"][0] == 0, "it holds nothing in pad"
    assert card.fields["word"][7:].tolist() == [1, 2, 3]
    assert card.fields["inside"].tolist() == [1] + [0] * 9
    assert card.shape == (85, 10)
    assert "value float32 x 3" in repr(card)
    sizes = {8: "uint8", 9: "uint16", 17: "uint32", 33: "uint64", 64: "uint64"}
    for bits, name in sizes.items():
        one = Layout([RowBlock("x", bits, holds={"all": "bits"})], [Region("all", 2)])
        assert PackedCard.blank(one).fields["x"].dtype == name


@given(st.integers(0, 1 << 30))
def test_a_card_packs_and_unpacks(seed: int) -> None:
    dense = filled(layout().blank(), seed)
    packed = PackedCard.of(layout(), as_tensor(dense))
    assert torch.equal(packed.tensor(), as_tensor(dense))
    assert packed.equals(filled(PackedCard.blank(layout()), seed))  # type: ignore[arg-type]
    assert layout().violations(packed) == []


@pytest.mark.parametrize("make", KINDS)
def test_every_kind_of_card_is_read_and_written_alike(make: Callable[[Layout], Card]) -> None:
    it, expected = layout(), as_tensor(filled(layout().blank(), 3))
    card = filled(make(it), 3)
    for block in it.blocks:
        for region in REGIONS:
            assert np.array_equal(it.array(card, block.name, region), it.get(expected, block.name, region).numpy())
    for part in ("command", "command.a", "command.c", "word", "inside", "value"):
        for region in REGIONS:
            if it.rows(part).stop - it.rows(part).start > 63:
                continue
            if not (np.abs(it.array(expected, part, region)) == 1).all():
                for other in (card, expected):
                    with pytest.raises(EncodingError, match="not a ±1 bit"):
                        it.numbers(other, part, region)
                continue
            numbers = it.numbers(expected, part, region).tolist()
            assert it.numbers(card, part, region).tolist() == numbers
            start = it.region(region).start
            assert [it.number_at(card, part, start + i) for i in range(len(numbers))] == numbers
            assert it.numbers(card, part, region, slice(1, None)).tolist() == numbers[1:]
    assert it.numbers(card, "word", "code", signed=True).tolist() == [1, 2, 3]
    it.put_number_at(card, "command.c", 8, 0xABCDEF)
    it.put_number_at(card, "word", 2, -3)
    it.put_number_at(card, "value", 9, 2)
    assert [it.number_at(card, *at) for at in (("command.c", 8), ("word", 2), ("value", 9))] == [0xABCDEF, 29, 2]
    assert it.numbers(card, "word", "cells", signed=True)[1] == -3
    assert it.numbers(card, "command.b", "code").tolist() == it.numbers(expected, "command.b", "code").tolist()


@pytest.mark.parametrize("make", KINDS)
def test_the_rest_of_a_region_is_filled(make: Callable[[Layout], Card]) -> None:
    it = layout()
    card = filled(make(it))
    it.put_numbers(card, "cells", {"word": [7, -1]}, rest=0, signed=True)
    assert it.numbers(card, "word", "cells", signed=True).tolist() == [7, -1, 0, 0, 0, 0]
    it.put_numbers(card, "code", {"command.b": [1]}, rest=9)
    assert it.numbers(card, "command.b", "code").tolist() == [1, 9, 9]
    with pytest.raises(SizeError, match=r"\(5, 2\) values do not fit 'word' in 'cells', which is \(5, 6\)"):
        it.put_numbers(card, "cells", {"word": [0, 1]})
    with pytest.raises(EncodingError, match="32 does not fit 5 bits"):
        it.put_numbers(card, "cells", {"word": [0, 32]}, rest=0)
    with pytest.raises(EncodingError, match="32 does not fit 'word', which has 5 bits"):
        it.put_number_at(card, "word", 1, 32)


@pytest.mark.parametrize("make", KINDS)
def test_patterns(make: Callable[[Layout], Card]) -> None:
    it = layout()
    card = filled(make(it))
    assert bool(it.matches(card, Pattern("word", "code", (1, -1, -1, -1, -1))))
    assert bool(it.matches(card, Pattern("word", "code", (1, 0, 0, 0, -1))))
    assert not bool(it.matches(card, Pattern("word", "code", (1, 1, -1, -1, -1))))
    assert not bool(it.matches(card, Pattern("word", "pad", (-1, -1, -1, -1, -1)))), "0 is not -1"
    assert bool(it.matches(card, Pattern("inside", "pad", (1,))))


def test_a_card_that_its_layout_does_not_declare_is_refused() -> None:
    it, good = layout(), as_tensor(filled(layout().blank()))
    PackedCard.of(it, good)
    for rows, region, value, why in (
        ("word", "cells", 0.5, r"0.5 does not go to 'word' in 'cells': the layout declares bits there"),
        ("word", "pad", -1.0, r"-1.0 does not go to 'word' in 'pad': the layout declares nothing there"),
        ("inside", "pad", -1.0, r"-1.0 does not go to 'inside' in 'pad': the layout declares one there"),
        ("value", "code", 2.0, r"2.0 does not go to 'value' in 'code': the layout declares bits there"),
        ("spare", "cells", 1.0, r"1.0 does not go to 'spare' in 'cells': the layout declares nothing there"),
    ):
        card = good.clone()
        it.put(card, rows, region, value)
        with pytest.raises(LayoutError, match=why):
            PackedCard.of(it, card)
        with pytest.raises(LayoutError, match=why):
            it.put(PackedCard.of(it, good), rows, region, value)
    with pytest.raises(SizeError, match=r"a card of shape \(3, 3\) does not fit the layout"):
        PackedCard.of(it, torch.zeros(3, 3))
    gap = Layout([RowBlock("a", 1, holds={"all": "bits"}), RowBlock("b", 1, start=3)], [Region("all", 2)])
    with pytest.raises(LayoutError, match=r"row 2, column 1 holds 5.0: the layout declares nothing there"):
        PackedCard.of(gap, np.array([[1.0, 1.0], [0, 0], [0, 5.0], [0, 0]]))


@pytest.mark.parametrize("shape", [(5, 1), (1, 6), (5,), (6, 5), (4, 6)])
def test_entries_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    """Also where NumPy would repeat them, and by both ways to write on a packed card."""
    it = layout()
    card = PackedCard.blank(it)
    why = re.escape(f"{shape} values do not fit 'word' in 'cells', which is (5, 6)")
    with pytest.raises(SizeError, match=why):
        card.put("word", "cells", -np.ones(shape))
    for make in KINDS:
        with pytest.raises(SizeError, match=why):
            it.put(make(it), "word", "cells", -np.ones(shape))


def test_words_go_only_where_bits_are() -> None:
    it = layout()
    card = PackedCard.blank(it)
    with pytest.raises(LayoutError, match="3 does not go to 'word' in 'pad': the layout declares no bits there"):
        it.put_number_at(card, "word", 0, 3)
    with pytest.raises(LayoutError, match="0 does not go to 'inside' in 'pad'"):
        it.put_number_at(card, "inside", 0, 0)
    with pytest.raises(EncodingError, match="'word' holds nothing in 'pad'"):
        it.number_at(card, "word", 0)
    with pytest.raises(EncodingError, match="'spare' holds nothing"):
        it.number_at(card, "spare", 1)
    it.put_number_at(card, "inside", 0, 1)


def test_a_field_that_was_written_to_by_others_is_looked_at() -> None:
    it = layout()
    for name, column, word, why in (("word", 3, 32, "word in cells holds the word 0x20, not bits"),
                                    ("word", 0, 1, "word in pad holds the word 0x1, not zero"),
                                    ("inside", 0, 0, "inside in pad holds the word 0x0, not one"),
                                    ("value", 8, 3.0, "value in code holds 3.0, not bits")):
        card = filled(PackedCard.blank(it))
        assert isinstance(card, PackedCard)
        card.fields[name][column] = word
        assert it.violations(card) == [why]


def test_another_layout_is_refused_and_an_equal_one_is_not() -> None:
    card, other = PackedCard.blank(layout()), Layout([RowBlock("a", 85)], [Region("all", 10)])
    layout().check(card)
    with pytest.raises(LayoutError, match="a packed card of another layout"):
        other.check(card)
    with pytest.raises(PunchcardError, match="int8 is not a number format for a card"):
        PackedCard.blank(layout(), "int8")


def test_a_snapshot_shares_what_no_loop_changes() -> None:
    it = layout()
    card = filled(PackedCard.blank(it))
    assert isinstance(card, PackedCard)
    before, kept = card.copy(), card.snapshot()
    assert kept.fields["command"] is card.fields["command"]
    it.put_number_at(card, "word", 1, 31)
    it.put_number_at(card, "command.a", 8, 5)
    it.put_numbers(card, "code", {"value": [1, 1, 1]})
    assert kept.equals(before), "neither sees what is written to the other"
    it.put(kept, "command", "code", -1.0)
    assert it.number_at(card, "command.a", 8) == 5
    assert it.number_at(kept, "command.a", 8) == 0


def test_copies_and_batches() -> None:
    it = layout()
    first = filled(PackedCard.blank(it))
    assert isinstance(first, PackedCard)
    second = first.copy()
    it.put_number_at(second, "word", 1, 30)
    assert not first.equals(second)
    assert it.numbers([first, second], "word", "cells")[:, 0].tolist() == [it.number_at(first, "word", 1), 30]
    assert it.get([first, second], "word", "cells").shape == (2, 5, 6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_formats(dtype: str) -> None:
    it = Layout([RowBlock("x", 3, holds={"all": "bits"})], [Region("all", 2)])
    tensor = torch.tensor([[1, -1], [1, 1], [-1, -1]], dtype=getattr(torch, dtype))
    packed = PackedCard.of(it, tensor)
    assert packed.dtype == dtype
    assert torch.equal(packed.tensor(), tensor)
    assert packed.tensor().dtype == tensor.dtype


def test_a_huge_card_is_quick_and_small() -> None:
    """2^24 columns: what is not written takes no time, and the dense matrix is refused in words."""
    cells: dict[str, Content] = {"cells": "bits"}
    it = Layout([RowBlock("word", 16, holds=cells), RowBlock("wide", 200, holds=cells)], [Region("cells", 1 << 24)])
    started = time.process_time()
    card = PackedCard.blank(it)
    it.put_numbers(card, "cells", {"word": [1, 2, 3]}, rest=0)
    assert it.numbers(card, "word", "cells", slice(0, 4)).tolist() == [1, 2, 3, 0]
    assert time.process_time() - started < 1.0
    with pytest.raises(SizeError, match="as a matrix needs about 27 GiB of memory, the budget is 4 GiB"):
        card.dense()


def test_a_word_costs_about_a_microsecond() -> None:
    it = layout()
    card = PackedCard.blank(it)
    best = float("inf")
    for _ in range(5):
        started = time.perf_counter()
        for _ in range(1000):
            it.put_number_at(card, "word", 3, 9)
            it.number_at(card, "word", 3)
        best = min(best, (time.perf_counter() - started) / 2000)
    assert best < 20e-6, "about 1e-6 on an idle core"
