"""Proofs of machines of a few bits, with random weights or wrong on purpose: what is shown must be so on all their cards."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, cast

import numpy as np
import pytest

from punchcard.card.facts import AnyFact, Constants, Contents, Copies, CopiesContents, Fact, Holds, Uniform
from punchcard.card.layout import Layout, Region, RowBlock, holding
from punchcard.errors import LayoutError, ProofError
from punchcard.machines.meaning import Stage
from punchcard.transformer.weights import LayerArrays, Weights
from punchcard.words.word import FALSE, TRUE, Word, constant
from tests.cases import soaked

pytest.importorskip("z3", reason="proofs need z3")

from tests.random_machines import TinyMachine, Unit, layer_arrays, places, prove_tiny, random_machine, told

# Random weights


def judged(machine: Any, right: bool) -> str:
    """How a proof ends, of a machine whose model does what it means on every card, or does not."""
    try:
        found = prove_tiny(machine, seconds=30)
    except ProofError as error:
        return f"refused: {str(error).partition(';')[0]}"
    if found.proven:
        assert right
        return "proven"
    example = found.counterexample
    if example is not None:
        assert machine.layout.violations(example.card) == []
        assert not (right and example.differences)
    return "a margin is missed" if right else "refuted" if example is not None and example.differences else "not shown"


def altered(rng: random.Random, machine: TinyMachine, pairs: list[Any]) -> list[Any]:
    """The table with one bit of one card turned."""
    number = rng.randrange(len(pairs))
    before, after = pairs[number]
    block, _, column = rng.choice(places(machine.layout))
    rows, other = machine.layout.rows(block), after.copy()
    other[rng.randrange(rows.start, rows.stop), column] *= -1
    return [*pairs[:number], (before, other), *pairs[number + 1 :]]


@pytest.mark.parametrize("count", [6, soaked(400)])
def test_what_is_shown_is_so_on_every_card(count: int) -> None:
    """A machine that is right is proven, or misses a margin; one that is wrong on a card, or by its meaning, is not."""
    rng, ends, tried = random.Random(count), Counter[str](), 0
    while tried < count:
        made = random_machine(rng)
        if made is None:
            continue
        tried += 1
        machine, before, after = made
        fine = [not machine.layout.violations(card) for card in after]
        pairs = [(old, new if good else old) for old, new, good in zip(before, after, fine, strict=True)]
        machine.meaning = told(machine.layout, pairs)
        ends[judged(machine, all(fine))] += 1
        if all(fine):
            assert np.isin(after, (-1, 0, 1)).all()
            machine.meaning = told(machine.layout, altered(rng, machine, pairs))
            ends[f"one bit of the meaning turned: {judged(machine, False)}"] += 1
    print(ends)  # noqa: T201
    assert ends["proven"] > 0
    assert ends["refuted"] + ends["one bit of the meaning turned: refuted"] > 0


# Wrong on purpose


def layer(width: int, *units: Unit, value: Mapping[tuple[int, int], float] | None = None) -> LayerArrays:
    """A layer; with a value, by rows that take and rows that give, a head gives every column the mean of all."""
    return layer_arrays(width, [] if value is None else [([], [], value, 1.0)], units, {})


def flipped(row: int) -> Sequence[Unit]:
    """Units that turn a bit around."""
    return ({row: 1.0}, 0.0, {row: -2.0}), ({row: -1.0}, 0.0, {row: 2.0})


def machine(layout: Layout, layers: list[LayerArrays], meaning: Any) -> Any:
    return TinyMachine(layout, Weights(layout.width, "float64", layers), meaning)


PAIR = RowBlock("pair", 2, parts={"one": 1, "other": 1}, holds=holding("bits", "cells"))


def test_a_part_that_nobody_mentions_stays_as_it_is_beside_one_that_is_left() -> None:
    layout = Layout([PAIR], [Region("cells", 2)])
    it = machine(layout, [layer(2, *flipped(0))], lambda card: card.leave("pair.other", "cells"))
    assert prove_tiny(it).failed == "step: pair in cells is what the step says, row 1"
    it = machine(layout, [layer(2, *flipped(1))], lambda card: card.leave("pair.other", "cells"))
    assert prove_tiny(it).proven


def test_a_copy_of_a_block_of_which_a_part_is_left() -> None:
    blocks = [PAIR, *(RowBlock(name, 2, holds=holding("bits", "head")) for name in ("copy", "by"))]
    layout = Layout(blocks, [Region("cells", 2), Region("head", 1)], [Copies("copy", "head", "pair", "by")])
    it = machine(layout, [layer(layout.width, *flipped(0))], lambda card: card.leave("pair.one", "cells"))
    with pytest.raises(ProofError, match="the step leaves 'pair' in 'cells' open, so nothing is a copy of it"):
        prove_tiny(it)


def test_the_rows_that_a_fact_is_about() -> None:
    """Of a fact about rows of which some depend on the case, and others do not, a proof says so."""
    blocks = [RowBlock(name, 2, holds=holding("bits", "cells")) for name in ("first", "count")]
    it_spans = Fact("cells", lambda column: column.spans(column["first"], column["count"], "cells"), "it spans cells")
    assert it_spans.mentions(Layout(blocks, [Region("cells", 2)])) == {"first", "count"}


def test_a_card_with_more_rows_in_the_middle_of_a_loop() -> None:
    regions, bit = [Region("cells", 2)], RowBlock("bit", 1, holds=holding("bits", "cells"))
    narrow, wide = Layout([bit], regions), Layout([bit, RowBlock("more", 1)], regions)

    class Staged(TinyMachine):
        def stages(self) -> Sequence[Stage]:
            return (Stage("first", (0, 1), narrow, wide, lambda card: None),
                    Stage("second", (1, 2), wide, narrow, lambda card: None))

    with pytest.raises(ProofError, match="the stage 'second' does not begin where 'first' ends"):
        prove_tiny(cast(Any, Staged(narrow, Weights(1, "float64", [layer(1), layer(1)]))))


# Real numbers

REAL = 16.0


def real_layout(*rows: str, size: int = 1) -> Layout:
    """An instruction of one bit, a cell with real numbers, and rows that are 0 between loops."""
    blocks = [RowBlock("data", 1, holds=holding("real", "instruction")),
              RowBlock("x", size, holds=holding("real", "cell"), limit=REAL),
              *(RowBlock(name, 1, limit=REAL) for name in rows)]
    facts: list[AnyFact] = [Contents("told", "instruction", ("data",), {"bit": 1}), Contents("number", "cell", ("x",))]
    return Layout(blocks, [Region("instruction", 1), Region("cell", 1)], facts)


def split(card: Any, region: str = "instruction", place: Word | None = None) -> None:
    card.split(region, place or constant(0, card.place_bits), {"zero": {"bit": 0}, "one": {"bit": 1}})


def nothing_changes(card: Any) -> None:
    split(card)
    for region in card.columns.contents:
        card.expect_contents(region, "stays", lambda column: FALSE, lambda column: column.contents)


class RealMachine(TinyMachine):
    design = None

    def designed_weights(self) -> Weights:
        return self.weights


def real_machine(layout: Layout, *layers: LayerArrays, meaning: Any = nothing_changes) -> Any:
    return RealMachine(layout, Weights(layout.width, "float64", list(layers)), meaning)


def leftover(it: Any, value: float) -> float:
    """What a loop leaves in the last row, where the cell holds a number in all its rows."""
    card = np.zeros((it.layout.width, it.layout.columns))
    card[0, 0], card[it.layout.rows("x"), 1] = 1.0, value
    assert it.layout.violations(card) == []
    return float(np.abs(it.looped(card)[-1]).max())


def copied(row: int, *to: int, sign: float = 1.0) -> list[Unit]:
    """Units that add a row to others."""
    return [({row: side}, 0.0, dict.fromkeys(to, side * sign)) for side in (1.0, -1.0)]


def cleared(*rows: int) -> list[Unit]:
    return [unit for row in rows for unit in copied(row, row, sign=-1.0)]


def test_real_numbers_that_cancel_in_a_value_of_a_head() -> None:
    """3 x - x - 2 x is 0, but for rounding."""
    layout = real_layout("y", "z", "out")
    it = real_machine(layout, layer(5, *copied(1, 2, 3)),
                      layer(5, *cleared(2, 3), value={(4, 1): 3.0, (4, 2): -1.0, (4, 3): -2.0}))
    assert leftover(it, 11.3) > 0
    assert "a value of head 1 in layer 2, in which real numbers cancel, is exact" in str(prove_tiny(it).failed)


def test_real_numbers_that_cancel_in_a_mean() -> None:
    """The cell gives 3 x, another column -x, and a third -2 x: their mean is 0, but for rounding."""
    regions, own, y, out = ("cell", "b", "c"), 2, 5, 9
    layout = Layout(
        [RowBlock("data", 1, holds=holding("real", "instruction")),
         RowBlock("x", 1, holds=holding("real", "cell"), limit=REAL),
         RowBlock("own", 3, holds=holding("fixed", *regions)), RowBlock("y", 1), RowBlock("parts", 3), RowBlock("out", 1)],
        [Region(name, 1) for name in ("instruction", *regions)],
        [Contents("told", "instruction", ("data",), {"bit": 1}), Contents("number", "cell", ("x",)),
         *(Constants("own", name, np.eye(3)[:, [place]]) for place, name in enumerate(regions))])
    apart = [({y: side} | {own + i: -1024.0 for i in range(3) if i != place}, 0.0, {y + 1 + place: side})
             for place in range(3) for side in (1.0, -1.0)]
    value = {(out, y + 1): 3.0, (out, y + 2): -1.0, (out, y + 3): -2.0}
    it = real_machine(layout, layer(10, value={(y, 1): 4.0}), layer(10, *apart, *cleared(y)),
                      layer(10, *cleared(y + 1, y + 2, y + 3), value=value))
    assert prove_tiny(it).failed == "zero: step: out in instruction is 0"


def test_a_unit_that_is_open_by_rounding_alone() -> None:
    """In exact arithmetic it is never above 0."""
    count = 24
    weights = np.random.default_rng(5).uniform(0.01, 1, count)
    exact = sum(Fraction(float(weight)) * int(REAL) for weight in weights)
    bias = float(exact) if Fraction(float(exact)) >= exact else math.nextafter(float(exact), math.inf)
    layout = real_layout("out", size=count)
    it = real_machine(layout, layer(layout.width, (dict(enumerate(map(float, weights), start=1)), -bias, {count + 1: 1.0})))
    assert "makes of bits beside a real number in out of cell is exact" in str(prove_tiny(it).failed)


def test_a_product_that_a_library_may_not_round() -> None:
    """3 x - 3 x is 0 where both products are rounded, and not where one of them is added in one operation."""
    layout = real_layout("out")
    for weight, proven in ((2.0, True), (3.0, False)):
        it = real_machine(layout, layer(3, ({1: 1.0}, 0.0, {2: weight}), ({1: 1.0}, 0.0, {2: -weight})))
        assert prove_tiny(it).proven is proven


@pytest.mark.parametrize("names", [("b", "c"), ("any a", "other a")])
def test_regions_that_are_called_as_columns_are(names: tuple[str, str]) -> None:
    """Every column finds those of a, and takes a 1 from them, whatever other regions are called."""
    everywhere = "instruction", "a", *names
    layout = Layout(
        [RowBlock("data", 1, holds=holding("real", "instruction")), RowBlock("one", 1, holds=holding("one", *everywhere)),
         RowBlock("key", 1, holds=holding("bits", "a", *names)), RowBlock("more", 1, holds=holding("one", "instruction")),
         RowBlock("given", 1, holds=holding("one", "a")), RowBlock("out", 1)],
        [Region("instruction", 1), Region("a", 2), *(Region(name, 1) for name in names)],
        [Contents("told", "instruction", ("data",), {"bit": 1}), Holds("key", "a", [1, 1]),
         *(Holds("key", name, [0]) for name in names)])
    key, query = np.array([[[0.0, 0.0, 8.0, 4.0, 0.0, 0.0]]]), np.array([[[0.0, 8.0, 0.0, 0.0, 0.0, 0.0]]])
    it = real_machine(layout, replace(layer(6, value={(5, 4): 1.0}), key=key, query=query, temperature=np.array([4096.0])))
    assert prove_tiny(it).failed == "zero: step: out in instruction is 0"


def showing(parts: Mapping[str, int]) -> Layout:
    """Two instructions of a bit, and a column that shows one of them."""
    return Layout([RowBlock("data", 1, holds=holding("real", "instructions")),
                   RowBlock("current", sum(parts.values()), parts=parts, holds=holding("bits", "head")),
                   RowBlock("by", 2, holds=holding("bits", "head"))],
                  [Region("instructions", 2), Region("head", 1)],
                  [Contents("told", "instructions", ("data",), {"bit": 1}), Uniform("by", "head"),
                   CopiesContents("current", "head", "told", "by")])


def test_what_shows_nothing_once_the_loop_has_ended() -> None:
    """All instructions become 1, and so does what shows one of them. But the pointer leaves the instructions."""
    layout = showing({"bit": 1})
    becomes_one = [({row: -1.0}, 0.0, {row: 2.0}) for row in (0, 1)]

    def meaning(card: Any) -> None:
        split(card, "instructions", card.shared("head", "by"))
        card.expect_contents("instructions", "becomes 1", lambda column: TRUE, lambda column: [card.constant(1.0)])
        card.expect("current", "head", constant(1, 1))
        card.expect("by", "head", lambda column: column["by"] ^ 2)

    found = prove_tiny(real_machine(layout, layer(4, *becomes_one, *flipped(3)), meaning=meaning))
    assert found.failed == "zero: again: current in head is the told that by names"


def test_what_shows_other_parts() -> None:
    with pytest.raises(LayoutError, match="'current' must have the parts of 'told', in their order: bit 1"):
        assert showing({"bit": 1, "more": 1}).facts


@pytest.mark.parametrize("factor", [-1, Fraction(1, 2)])
def test_bits_that_are_replaced_are_bits_again(factor: Fraction) -> None:
    layout = Layout([RowBlock("data", 1, holds=holding("real", "instructions"))], [Region("instructions", 2)],
                    [Contents("told", "instructions", ("data",), {"bit": 1})])
    more = float(factor - 1)

    def meaning(card: Any) -> None:
        split(card, "instructions")
        card.expect_contents("instructions", "is multiplied", lambda column: TRUE,
                   lambda column: [form * Fraction(factor) for form in column.contents])

    found = prove_tiny(real_machine(layout, layer(1, *copied(0, 0, sign=more)), meaning=meaning))
    assert found.failed == (None if factor == -1 else "zero: again: data in instructions holds bits")


@pytest.mark.parametrize("turned", [True, False])
def test_a_step_that_says_what_a_part_holds_beside_real_numbers(turned: bool) -> None:
    blocks = [RowBlock("data", 1, holds=holding("real", "instruction")), replace(PAIR, holds=holding("bits", "head"))]
    layout = Layout(blocks, [Region("instruction", 1), Region("head", 1)],
                    [Contents("told", "instruction", ("data",), {"bit": 1})])

    def meaning(card: Any) -> None:
        nothing_changes(card)
        card.expect("pair.other", "head", lambda column: ~column["pair.other"])

    it = real_machine(layout, layer(3, *(flipped(2) if turned else ())), meaning=meaning)
    assert prove_tiny(it).failed == (None if turned else "zero: step: pair in head is what the step says")


def test_a_block_and_its_part_are_not_both_said() -> None:
    def meaning(card: Any) -> None:
        card.expect("pair", "cells", constant(0, 2))
        card.expect("pair.one", "cells", constant(1, 1))

    with pytest.raises(ProofError, match=r"'pair' and 'pair.one' in 'cells': say what the block holds, or its parts"):
        prove_tiny(machine(Layout([PAIR], [Region("cells", 2)]), [layer(2)], meaning))
