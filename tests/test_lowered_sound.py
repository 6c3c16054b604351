"""What the lowered engine takes for granted is proven or checked: small machines in which it would be false."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
import torch
from torch import Tensor

from punchcard.card.encoding import encode_bits
from punchcard.card.layout import Content, Layout, Pattern, Region, RowBlock, as_tensor, holding
from punchcard.engines import Controls, prepare
from punchcard.engines.lowered.analysis.tables import FEW_OTHERS, DirectLookup, longest_run
from punchcard.engines.lowered.bits.builder import WordBuilder
from punchcard.engines.lowered.bits.functions import BitFunctions
from punchcard.engines.lowered.graph import operations as op
from punchcard.engines.lowered.graph.builder import Graph
from punchcard.engines.lowered.graph.nodes import Linear
from punchcard.errors import LoweringError
from punchcard.machines.fleq.machine import FleqMachine
from punchcard.machines.fleq.text.assembler import assemble
from punchcard.primitives.bits import increment_bits, number, sum_bits
from punchcard.primitives.memory import ADDRESS_GAP, clip_where, store_factor, store_gap
from punchcard.transformer.build import Part, assign, attend, build, clear
from punchcard.transformer.expression import Expression, gated, relu, rows, stack
from punchcard.transformer.model import LoopedTransformer
from punchcard.transformer.precision import Precision
from tests.engine_runs import card_with, compiled_model_of
from tests.lowered_cases import Machine, assert_the_equation, operations

pytestmark = pytest.mark.usefixtures("shared_code")

BITS = 4


def sizes_on_a_tape(values: list[float], content: Content, gap: int) -> Machine:
    """The head goes along the tape and notes the size of each value. The last columns hold none.

    The size of a bit is 1, whatever the bit: so nothing depends on the bit, but all of it on its being one.
    """
    layout = Layout(
        [RowBlock("value", 1, holds=holding(content, "tape"), limit=2.0),
         RowBlock("position", BITS, holds=holding("bits", "tape", "gap")),
         RowBlock("place", BITS, holds=holding("bits", "head"), changes=("head",)),
         RowBlock("inside", 1, holds=holding("one", "head")),
         RowBlock("mark", 1, holds=holding("real", "head"), changes=("head",), limit=4.0),
         RowBlock("seen", 1, within="bits" if content == "real" else None)],
        [Region("head", 1), Region("tape", len(values)), Region("gap", gap)],
    )
    value, position, place, one, mark, seen = (rows(layout, block.name) for block in layout.blocks)
    parts = [
        attend(query=place + position, key=position, value=value, into=seen, gap=ADDRESS_GAP),
        assign(mark, gated(relu(seen) + relu(-seen), 1 - one, 8.0)) + clear(seen)
        + assign(place, increment_bits(place, one)),
    ]
    numbers = list(range(len(values) + gap))
    card = card_with(layout, {
        ("value", "tape"): torch.tensor([values]), ("position", "tape"): numbers[: len(values)],
        ("position", "gap"): numbers[len(values) :], ("place", "head"): 0, ("inside", "head"): 1.0})
    return Machine(layout, build(parts, layout.width, Precision()), card)


def test_a_bit_that_does_not_matter_is_checked() -> None:
    """The layout declares bits in the middle of a loop; one of them is 1/2."""
    machine = sizes_on_a_tape([1.0, -1.0, 1.0, 0.5, *[-1.0] * 10], "real", 2)
    ran = assert_the_equation(machine.model, machine.card, machine.layout, 12, notes=None)
    assert ran.made == {"lowered": 11, "dense": 1}


def test_a_column_that_holds_no_bit() -> None:
    """The head comes to columns where the row is 0."""
    machine = sizes_on_a_tape([1.0, -1.0] * 5, "bits", 6)
    ran = assert_the_equation(machine.model, machine.card, machine.layout, 40, notes=None)
    assert ran.made["lowered"] >= 20


def meeting_heads(places: tuple[int, int], look: int) -> Machine:
    """Two heads look at one place, and see the tape there, or the colour of a head that is there.

    What they look at moves on, and so does the first head; the second stays.
    """
    layout = Layout(
        [RowBlock("colour", 1, holds=holding("fixed", "heads") | holding("bits", "tape"), limit=1.0),
         RowBlock("position", BITS, holds=holding("bits", "tape")),
         RowBlock("look", BITS, holds=holding("bits", "heads"), changes=("heads",)),
         RowBlock("place", BITS, holds=holding("bits", "heads"), changes=("heads",)),
         RowBlock("inside", 1, holds=holding("one", "heads")),
         RowBlock("mark", 1, holds=holding("real", "heads"), changes=("heads",), limit=8.0),
         RowBlock("moves", 1, holds=holding("fixed", "heads"), limit=1.0),
         RowBlock("seen", 1)],
        [Region("heads", 2, groups=(2,)), Region("tape", 16)],
    )
    colour, position, look_row, place, one, mark, going, seen = (rows(layout, block.name) for block in layout.blocks)
    parts = [
        attend(query=stack(look_row, position), key=stack(store_factor(BITS) * position + place, position), value=colour,
               into=seen, gap=store_gap(BITS)),  # a cell of the tape sees itself
        assign(mark, gated(seen, 1 - one, 16.0)) + clear(seen) + assign(look_row, increment_bits(look_row, one))
        + assign(place, sum_bits(place, stack(2 * going - one, *[-1 * one] * (BITS - 1)), one)),
    ]
    card = card_with(layout, {
        ("colour", "heads"): torch.tensor([[1.0, -0.5]]), ("colour", "tape"): torch.tensor([[1.0, -1.0] * 8]),
        ("position", "tape"): list(range(16)), ("look", "heads"): [look, look], ("place", "heads"): list(places),
        ("inside", "heads"): 1.0, ("moves", "heads"): torch.tensor([[1.0, 0.0]])})
    return Machine(layout, build(parts, layout.width, Precision()), card)


@pytest.mark.parametrize(("places", "meet"), [((2, 13), 0), ((1, 14), 1)])
def test_two_active_columns_that_are_found_at_once(places: tuple[int, int], meet: int) -> None:
    """Where both heads are at the place that is looked at, each gives a half."""
    machine = meeting_heads(places, 1)
    ran = assert_the_equation(machine.model, machine.card, machine.layout, 14, notes=None)
    assert ran.made["lowered"] == 14 - meet


def test_a_selector_that_changes_again_in_the_loop() -> None:
    """What it decided, it decided when it was read; later it is a row like others."""
    layout = operations([0] * 16, 4).layout
    operation, position, counter, number, one, current = (rows(layout, block.name) for block in layout.blocks)
    parts = [
        attend(query=counter + position, key=position, value=operation, into=current, gap=ADDRESS_GAP),
        assign(current[:1], gated(counter[:1], 1 - one, 8.0)) + assign(counter, increment_bits(counter, one)),
        assign(number, stack(current[:1], number[:3])) + clear(current),
    ]
    model = build(parts, layout.width, Precision())
    card = operations([0, 1, 2, 3, 1, 0, 2, 3, 3, 1, 1, 2, 0, 0, 1, 3], 4).card
    assert_the_equation(model, card, layout, 32)


def test_selectors_that_nobody_can_work_out_are_refused() -> None:
    """Without its keys a head takes from all columns at once."""
    machine = operations([0, 1, 2, 3] * 4, 4)
    machine.model.layers[0].key.data[:] = 0.0  # type: ignore[operator]
    with pytest.raises(LoweringError, match="decides what a loop does, takes from many passive columns at once"):
        compiled_model_of(machine.model, machine.card, machine.layout)


def test_numbers_that_leave_their_limit_when_they_settle() -> None:
    """Each is within its limit, but not their sum, which the next loop makes."""
    machine = FleqMachine(functions=["add"], size=1, memory=6, instructions=4)
    layout = machine.layout
    card = machine.punch(assemble(".data\nx scalar 1\ny scalar -1\n.code\nx = add(y, y); if y <= 0 goto 0\nhalt"))
    limit = next(block.limit for block in layout.blocks if block.name == "incoming")
    assert limit is not None
    for name in ("data", "incoming"):
        layout.get(card, name, "memory")[0, 5] = 0.75 * limit
    compiled_model_of(machine.model, machine.punch(assemble(".data\nx scalar 1\n.code\nx = add(x, x)\nhalt")), layout)
    ran = assert_the_equation(machine.model, card, layout, 6, notes=None)
    assert "dense" in ran.made


# Values that are known only in part


def test_values_at_the_ends_of_a_range_that_are_not_on_the_grid() -> None:
    """Between 0.75 and 1.25 lies one integer, and the function's value there is the only one."""
    graph = Graph()
    integer = graph.node(op.LOAD, (), 0, ends=(0.0, 4.0), domain=(0.0, 1.0, 2.0, 3.0, 4.0))
    base = graph.node(op.SAME, (integer,), (None, 0.75, 1.25))
    assert base.grid == 1.0
    form = Linear({base: 2.0, graph.node(op.RELU, (base,), (1.0, np.array([-3.0]))): 1.0})
    narrowed = graph.narrowed(form)
    ((node, _),) = narrowed.terms.items()
    assert node.domain is None or 2.0 in node.domain


def test_values_that_are_too_fine_stay_numbers() -> None:
    graph = Graph()
    node = graph.node(op.LOAD, (), 0, ends=(0.0, 1e-30), domain=(0.0, 1e-30))
    assert BitFunctions(WordBuilder(), lambda _: None).table(node) is None


def thresholds() -> Machine:
    """The head counts, and notes from which number on the count is large. A row holds the count and 3 more.

    The row's next value is the row itself and ReLUs of it, and the row has a constant of its own.
    """
    bits = 6
    layout = Layout(
        [RowBlock("value", 1, holds=holding("bits", "tape")), RowBlock("position", bits, holds=holding("bits", "tape")),
         RowBlock("place", bits, holds=holding("bits", "head"), changes=("head",)),
         RowBlock("inside", 1, holds=holding("one", "head")),
         RowBlock("mark", 1, holds=holding("bits", "head"), changes=("head",)),
         RowBlock("count", 1), RowBlock("seen", 1)],
        [Region("head", 1), Region("tape", 1 << bits)],
    )
    value, position, place, one, mark, count, seen = (rows(layout, block.name) for block in layout.blocks)
    number = relu(0.5 * place[0:1] + 3.5 * one)
    for i in range(1, bits):
        number = number + relu(0.5 * 2**i * place[i : i + 1] + 0.5 * 2**i * one)
    steps = relu(count - 23) - relu(count - 24) + relu(count - 39) - relu(count - 40)
    parts = [
        attend(query=place + position, key=position, value=value, into=seen, gap=ADDRESS_GAP) + assign(count, number),
        assign(count, count - relu(count - 4) + steps),
        assign(mark, 2 * relu(count - 4) - 2 * relu(count - 5) - relu(one)) + clear(count) + clear(seen)
        + assign(place, increment_bits(place, one)),
    ]
    card = card_with(layout, {("value", "tape"): 1.0, ("position", "tape"): list(range(1 << bits)), ("place", "head"): 0,
                              ("inside", "head"): 1.0, ("mark", "head"): -1.0})
    return Machine(layout, build(parts, layout.width, Precision()), card)


def test_a_sum_of_a_row_and_of_relus_of_it() -> None:
    machine = thresholds()
    assert_the_equation(machine.model, machine.card, machine.layout, 40)


def judge(numbers: dict[str, int], *more: str) -> Layout:
    """A head with numbers of so many bits, rows of real numbers, and a bit to note what is found; and a tape."""
    given = [RowBlock(name, bits, holds=holding("bits", "head"), changes=("head",)) for name, bits in numbers.items()]
    return Layout(
        [*given, RowBlock("out", 1, holds=holding("bits", "head"), changes=("head",)),
         RowBlock("one", 1, holds=holding("one", "head")), *(RowBlock(name, 1) for name in more),
         RowBlock("position", 3, holds=holding("bits", "tape")), RowBlock("symbol", 1, holds=holding("bits", "tape")),
         RowBlock("seen", 1)],
        [Region("head", 1), Region("tape", 8)])


def judged(layout: Layout, first: Part, *then: Part) -> LoopedTransformer:
    """The first layer also looks at the tape."""
    d, position, symbol, seen = (rows(layout, name) for name in ("d", "position", "symbol", "seen"))
    looks = attend(query=d[:3] + position, key=position, value=symbol, into=seen, gap=ADDRESS_GAP) + clear(seen)
    return build([looks + first, *then], layout.width, Precision(torch.float64))


def card_of(layout: Layout, **numbers: int) -> Tensor:
    return card_with(layout, {**{(name, "head"): value for name, value in numbers.items()}, ("out", "head"): 0,
                              ("one", "head"): 1.0, ("position", "tape"): list(range(8)), ("symbol", "tape"): [1, 0] * 4}
                     ).double()


def at_least(total: Expression, least: int, one: Expression) -> Expression:
    """A bit, ±1: whether an integer is so much."""
    return 2 * (relu(total - (least - 1) * one) - relu(total - least * one)) - one


@pytest.mark.parametrize(("least", "of_both"), [(10, (1, 1)), (24, (16, -16))])
def test_a_bit_of_two_names(least: int, of_both: tuple[int, int]) -> None:
    """`h`: all bits of `a` are 1; `g` the same, found from `h`. Both count; and never is one of them 1 and the other 0."""
    layout = judge({"a": 6, "d": 8, "e": 4}, "h", "g", "far")
    a, d, e, out, one, h, g, far = (rows(layout, block.name) for block in layout.blocks[:8])
    distance, total = number(d, one) - 100 * one, of_both[0] * h + of_both[1] * g + far + number(e, one)
    model = judged(
        layout, assign(h, relu(0.5 * (a.total() - 4 * one))) + assign(far, relu(distance + one) - relu(distance)),
        assign(g, 2 * (relu(h - 0.25 * one) - relu(h - 0.75 * one))),
        assign(out, at_least(total, least, one)) + clear(h) + clear(g) + clear(far))
    for of_a, of_d, of_e in ((63, 200, 7), (63, 200, 8), (63, 50, 7), (63, 50, 8), (30, 200, 7), (0, 0, 15)):
        assert_the_equation(model, card_of(layout, a=of_a, d=of_d, e=of_e), layout, 1)


def test_a_word_is_never_two_numbers() -> None:
    """A ReLU that is open only where `a` is 5 and 7."""
    layout = judge({"a": 8, "d": 8, "e": 4}, "h", "g", "never")
    a, d, e, out, one, h, g, never = (rows(layout, block.name) for block in layout.blocks[:8])
    is_5, is_7 = (relu(0.5 * (a.total([1.0 if n >> i & 1 else -1.0 for i in range(8)]) - 6 * one)) for n in (5, 7))
    model = judged(
        layout, assign(h, is_5) + assign(g, is_7), assign(never, relu(number(d, one) + 256 * g + 256 * h - 512 * one)),
        assign(out, at_least(never + number(e, one), 10, one)) + clear(h) + clear(g) + clear(never))
    for of_a, of_d, of_e in ((5, 200, 7), (5, 200, 12), (7, 3, 7), (63, 200, 8)):
        assert_the_equation(model, card_of(layout, a=of_a, d=of_d, e=of_e), layout, 1)


def test_a_sum_of_thousands_of_relus_is_declined() -> None:
    """Each term is added to the sum of those before it: too deep to be followed."""
    layout = judge({"d": 13}, "sum")
    d, out, one, total = (rows(layout, block.name) for block in layout.blocks[:4])
    relus = stack(*(relu(number(d, one) - 3 * i * one) for i in range(2200)))
    model = judged(layout, assign(total, relus.total()), assign(out, at_least(total, 100, one)) + clear(total))
    with pytest.raises(LoweringError, match="more steps, each from the one before"):
        prepare("lowered", model, layout, card_of(layout, d=100)).run(1)


def test_a_folded_relu_keeps_its_slope() -> None:
    """`x` is -1 or 4, and `y = 3 relu(x) - 4 relu(x - 1)` is 0 at both: their slopes are fifths, which no float is."""
    layout = judge({"a": 2, "d": 4}, "x", "y")
    a, d, out, one, x, y = (rows(layout, block.name) for block in layout.blocks[:6])
    total = 2.0**52 * y + d[3:4]
    model = judged(
        layout, assign(x, relu(a[:1] + a[1:] - one) + 2 * relu(a[:1] + a[1:]) - relu(one)),
        assign(y, 3 * relu(x) - 4 * relu(x - one)),
        assign(out, relu(total - one) - relu(total - 3 * one) - relu(one)) + clear(x) + clear(y))
    for of_a, of_d in product(range(4), (0, 8)):
        assert_the_equation(model, card_of(layout, a=of_a, d=of_d), layout, 1)


@pytest.mark.parametrize("scale", [3.75, 5.0, 6.5])
def test_two_keys_that_share_softly(scale: float) -> None:
    """Both get 1/2 exactly, whatever the scores are: a later layer makes a bit of what is left."""
    layout = Layout(
        [RowBlock("key", 1, holds=holding("bits", "tape")), RowBlock("there", 1, holds=holding("one", "tape")),
         RowBlock("a", 2, holds=holding("bits", "head"), changes=("head",)),
         RowBlock("d", 1, holds=holding("bits", "head"), changes=("head",)),
         RowBlock("out", 1, holds=holding("bits", "head"), changes=("head",)),
         RowBlock("one", 1, holds=holding("one", "head")), RowBlock("seen", 1)],
        [Region("head", 1), Region("tape", 2)])
    key, there, a, d, out, one, seen = (rows(layout, block.name) for block in layout.blocks)
    model = build([
        attend(query=stack(a[:1] + a[1:] + 1000 * key, scale * d, one), key=stack(key, there, -1000.0 * one),
               value=0.5 * key + 0.5 * there, into=seen, gap=1.0, temperature=0.75) + assign(seen, 0.5 * one - seen),
        assign(out, 2 * relu(2.0**54 * seen) - 2 * relu(2.0**54 * seen - one) - relu(one)) + clear(seen),
    ], layout.width, Precision(torch.float64))
    card = card_with(layout, {("key", "tape"): [0, 1], ("there", "tape"): 1.0, ("a", "head"): 1, ("d", "head"): 1,
                              ("out", "head"): 0, ("one", "head"): 1.0}).double()
    assert_the_equation(model, card, layout, 1)


def test_a_passive_key_that_beats_an_active_one_of_the_same_code() -> None:
    """Passive keys have one number more: with 20 there, a column beats the active key that has the query's signs."""
    layout = Layout(
        [RowBlock("colour", 1, holds=holding("one", "head") | holding("bits", "tape")),
         RowBlock("position", BITS, holds=holding("bits", "tape")), RowBlock("extra", 1, holds=holding("fixed", "tape")),
         RowBlock("look", BITS, holds=holding("bits", "head"), changes=("head",)),
         RowBlock("place", BITS, holds=holding("bits", "head")), RowBlock("inside", 1, holds=holding("one", "head")),
         RowBlock("mark", 1, holds=holding("bits", "head"), changes=("head",)), RowBlock("seen", 1)],
        [Region("head", 1), Region("tape", 16)])
    colour, position, extra, look, place, one, mark, seen = (rows(layout, block.name) for block in layout.blocks)
    model = build([
        attend(query=stack(look + position, one), key=stack(position + 1.25 * place, extra), value=colour, into=seen,
               gap=1.0, temperature=1000.0)
        + assign(mark, gated(seen, 1 - one, 16.0)) + clear(seen) + assign(look, increment_bits(look, one))], layout.width,
        Precision(torch.float64))
    for more in (0.0, 20.0):
        card = card_with(layout, {
            ("colour", "head"): 1.0, ("colour", "tape"): [0] * 16, ("position", "tape"): list(range(16)),
            ("extra", "tape"): torch.tensor([[0.0] * 15 + [more]]), ("look", "head"): 5, ("place", "head"): 5,
            ("inside", "head"): 1.0, ("mark", "head"): 0}).double()
        ran = prepare("lowered", model, layout, card).run(1)
        assert (ran.loops, ran.reason) == ((1, "loops") if more == 0 else (0, "declined"))
        assert torch.equal(as_tensor(prepare("auto", model, layout, card, loops=1000).run(1).card), model(card))


@pytest.mark.parametrize(("content", "gap", "change"), [
    ("fixed", 0, lambda value, one: 3 * relu(one)), ("one", 0, lambda value, one: -relu(one)),
    ("real", 4, lambda value, one: 5 * relu(one))])
def test_what_a_block_holds_is_not_changed(content: Content, gap: int,
                                           change: Callable[[Expression, Expression], Expression]) -> None:
    """A block that may change, of which more is relied on than its kind: of "fixed", of "one", and of nothing in a gap."""
    held = ("tape", "gap") if gap else ("tape",)
    layout = Layout(
        [RowBlock("value", 1, holds=holding(content, "tape"), changes=held, limit=64.0),
         RowBlock("position", BITS, holds=holding("bits", *held)), RowBlock("outside", 1, holds=holding("one", *held)),
         RowBlock("place", BITS, holds=holding("bits", "head"), changes=("head",)),
         RowBlock("inside", 1, holds=holding("one", "head")),
         RowBlock("mark", 1, holds=holding("real", "head"), changes=("head",), limit=64.0), RowBlock("seen", 1)],
        [Region("head", 1), Region("tape", 12), *([Region("gap", gap)] if gap else [])])
    value, position, outside, place, one, mark, seen = (rows(layout, block.name) for block in layout.blocks)
    model = build([
        attend(query=place + position, key=position, value=value, into=seen, gap=ADDRESS_GAP),
        assign(mark, gated(seen, 1 - one, 128.0)) + clear(seen) + assign(place, increment_bits(place, one))
        + assign(value, change(value, outside))], layout.width, Precision())
    card = card_with(layout, {
        ("position", "tape"): list(range(12)), ("outside", "tape"): 1.0, ("place", "head"): 0, ("inside", "head"): 1.0,
        ("value", "tape"): torch.tensor([[1.0 if content == "one" else float(i % 2) for i in range(12)]]),
        **({("position", "gap"): list(range(12, 12 + gap)), ("outside", "gap"): 1.0} if gap else {})})
    with pytest.raises(LoweringError, match="row 0 changes in"):
        prepare("lowered", model, layout, card).run(1)


def test_no_pattern_is_looked_for_before_the_first_loop() -> None:
    """A batch whose cards show the pattern when it begins, and whose first loop is declined."""
    machine = sizes_on_a_tape([1.0, 1.0, 1.0, 0.5] + [1.0] * 8, "real", 4)
    layout = machine.layout
    card = machine.card.clone()
    layout.put(card, "place", "head", encode_bits(3, BITS))
    until, runs = Pattern("place", "head", (1, 1, -1, -1)), dict[str, tuple[int, str]]()
    for engine in ("dense", "lowered"):
        runner = prepare(engine, machine.model, layout, torch.stack([card, card]), fall_back=True)
        ran = runner.run(100, Controls(until=until))
        runs[engine] = ran.loops, ran.reason
    assert runs["dense"] == runs["lowered"] == (16, "matched")


def test_numbers_that_settle_through_many_layers() -> None:
    """Each layer has two ReLUs of the one before: 2^40 paths."""
    layout = Layout(
        [RowBlock("a", 1, holds=holding("real", "tape"), changes=("tape",), limit=4.0),
         RowBlock("b", 1, holds=holding("real", "tape"), changes=("tape",), limit=3.0),
         RowBlock("position", 3, holds=holding("bits", "tape")),
         RowBlock("place", 3, holds=holding("bits", "head"), changes=("head",)),
         RowBlock("inside", 1, holds=holding("one", "head")), RowBlock("t", 1), RowBlock("seen", 1)],
        [Region("head", 1), Region("tape", 8)])
    a, b, position, place, one, t, seen = (rows(layout, block.name) for block in layout.blocks)
    parts = [attend(query=place + position, key=position, value=a, into=seen, gap=ADDRESS_GAP) + assign(t, relu(a)),
             *(assign(t, relu(t - 0.125) + relu(t)) for _ in range(40)),
             assign(b, relu(t)) + clear(t) + clear(seen) + assign(place, increment_bits(place, one))]
    card = card_with(layout, {("position", "tape"): list(range(8)), ("place", "head"): 0, ("inside", "head"): 1.0,
                              ("a", "tape"): torch.zeros(1, 8)})
    assert_the_equation(build(parts, layout.width, Precision()), card, layout, 3, notes=None)


def test_many_columns_that_store_are_declined() -> None:
    """Every two of them would be compared."""
    heads, bits = 128, 8
    layout = Layout(
        [RowBlock("colour", 1, holds=holding("fixed", "heads") | holding("bits", "tape"), changes=("tape",)),
         RowBlock("position", bits, holds=holding("bits", "tape")), RowBlock("outside", 1, holds=holding("one", "tape")),
         RowBlock("place", bits, holds=holding("bits", "heads"), changes=("heads",)),
         RowBlock("inside", 1, holds=holding("one", "heads")), RowBlock("paint", 1)],
        [Region("heads", heads, groups=(heads,)), Region("tape", 1 << bits)])
    colour, position, outside, place, one, paint = (rows(layout, block.name) for block in layout.blocks)
    model = build([
        attend(query=position, key=store_factor(bits) * position + place, value=2 * colour, into=paint, gap=store_gap(bits))
        + clip_where(outside, paint, 8.0) + assign(place, increment_bits(place, one)),
        assign(colour, colour + gated(paint - colour, 1 - outside, 8.0)) + clear(paint)], layout.width, Precision())
    card = card_with(layout, {
        ("colour", "heads"): torch.tensor([[1.0, -1.0] * (heads // 2)]), ("colour", "tape"): -1.0,
        ("position", "tape"): list(range(1 << bits)), ("outside", "tape"): 1.0, ("place", "heads"): list(range(heads)),
        ("inside", "heads"): 1.0})
    with pytest.raises(LoweringError, match="128 active columns store"):
        prepare("lowered", model, layout, card)


def links(bits: int, first: int) -> Machine:
    """The head follows two links in each loop: what the first leads to says where the second is."""
    layout = Layout(
        [RowBlock("link", bits, holds=holding("bits", "tape")), RowBlock("position", bits, holds=holding("bits", "tape")),
         RowBlock("place", bits, holds=holding("bits", "head"), changes=("head",)),
         RowBlock("inside", 1, holds=holding("one", "head")), RowBlock("middle", bits), RowBlock("end", bits)],
        [Region("head", 1), Region("tape", 16)],
    )
    link, position, place, one, middle, end = (rows(layout, block.name) for block in layout.blocks)
    parts = [
        attend(query=place + position, key=position, value=link, into=middle, gap=ADDRESS_GAP)
        + assign(middle, relu(middle + 4 * one - 4) - relu(-middle + 4 * one - 4)),
        attend(query=middle + position, key=position, value=link, into=end, gap=ADDRESS_GAP),
        assign(place, relu(end + 4 * one - 4) - relu(-end + 4 * one - 4)) + clear(middle) + clear(end),
    ]
    card = card_with(layout, {("link", "tape"): [(5 * i + 1) % 16 for i in range(16)], ("position", "tape"): list(range(16)),
                              ("inside", "head"): 1.0, ("place", "head"): first})
    return Machine(layout, build(parts, layout.width, Precision()), card)


@pytest.mark.parametrize("bits", [4, 24])
def test_no_code_reads_beyond_the_card(bits: int) -> None:
    """Columns that follow each other need no table. A pointer that leads to none of them must not be followed."""
    machine = links(bits, 3)
    assert_the_equation(machine.model, machine.card, machine.layout, 9)
    assert all(compiled_model_of(machine.model, machine.card, machine.layout).driver.notes["direct"])
    if bits > 4:
        far = links(bits, (1 << bits) - 1)
        ran = prepare("lowered", far.model, far.layout, far.card).run(3)
        assert (ran.loops, ran.reason) == (0, "declined")


def test_what_holds_nothing_shows_no_pattern() -> None:
    """A word where a block holds nothing is 0, as if all its bits were -1: they are not."""
    machine = thresholds()
    for region, rows_of in (("tape", "place"), ("tape", "mark"), ("head", "position")):
        pattern = Pattern(rows_of, region, (-1,) * machine.layout.place(rows_of).size)
        for engine in ("lowered", "dense"):
            ran = prepare(engine, machine.model, machine.layout, machine.card).run(5, Controls(until=pattern))
            assert (ran.loops, ran.reason) == (5, "loops"), (engine, rows_of)


# Tables that the code does without: codes that follow each other as columns do, and a few others


def found(direct: DirectLookup, code: int) -> int:
    """What the code makes of a direct table."""
    place = code - direct.first
    return dict(direct.others).get(code, place + direct.column if 0 <= place < direct.count else -1)


@pytest.mark.parametrize(("codes", "columns", "direct"), [
    ([4, 5, 6], [1, 2, 3], DirectLookup(4, 3, 1)),
    ([0, 1, 2, 31, 30], [1, 2, 3, 4, 5], DirectLookup(0, 3, 1, ((31, 4), (30, 5)))),
    ([31, 0, 1, 2, 3], [1, 2, 3, 4, 5], DirectLookup(0, 4, 2, ((31, 1),))),
    ([0, 1, 2, 3], [1, 2, 9, 10], DirectLookup(0, 2, 1, ((2, 9), (3, 10)))),
    ([9], [3], DirectLookup(9, 1, 3)),
    (list(range(0, 20, 2)), list(range(10)), None),
    ([*range(10), 20, 22, 24, 26, 28], list(range(15)), None),
])
def test_runs(codes: list[int], columns: list[int], direct: DirectLookup | None) -> None:
    assert longest_run(np.array(codes), np.array(columns)) == direct


def test_random_runs_give_every_code_its_column() -> None:
    rng, many = random.Random(5), 0
    for _ in range(400):
        codes = list(range(rng.randrange(4), rng.randrange(5, 12)))
        for _ in range(rng.randrange(4)):
            codes.insert(rng.randrange(len(codes) + 1), rng.randrange(20, 60))
        codes = list(dict.fromkeys(codes))
        columns = sorted(rng.sample(range(100), len(codes))) if rng.random() < 0.2 else list(range(7, 7 + len(codes)))
        direct = longest_run(np.array(codes), np.array(columns))
        if direct is None:
            assert len(codes) > FEW_OTHERS
            continue
        many += 1
        table = dict(zip(codes, columns, strict=True))
        assert [found(direct, code) for code in range(64)] == [table.get(code, -1) for code in range(64)]
    assert many > 200
