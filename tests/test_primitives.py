"""Each lemma on its own: the claim on layers, heads, width and hidden units, and every small case.

A primitive is built into a model of one layer and run on cards that hold all cases at once, one a column or one a card.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor

from punchcard.card.encoding import (
    decode_bits,
    encode_bits,
    pointer_bits,
    signed_range,
)
from punchcard.card.layout import Layout, Region, RowBlock
from punchcard.primitives.bits import (
    TOLERANCE,
    at_least,
    branch,
    correct,
    difference_bits,
    flip_bits,
    increment_bits,
    integer_flag,
    offset_bits,
    select,
    step,
    step_and,
    successor_bits,
    sum_bits,
    word_flag,
)
from punchcard.primitives.memory import clip, clip_where, read, store_factor, store_gap, write
from punchcard.transformer.build import Part, assign, build
from punchcard.transformer.expression import Rows, relu, rows, stack
from punchcard.transformer.model import LayerShape, LoopedTransformer
from punchcard.transformer.precision import Precision
from tests.cases import wrap

F64 = torch.float64


def word_card(columns: int, **sizes: int) -> tuple[Layout, Tensor, dict[str, Rows]]:
    """A card with the given row blocks and an indicator `one`, set in all columns but the last, which stays 0."""
    layout = Layout([RowBlock(name, size) for name, size in {**sizes, "one": 1}.items()],
                    [Region("cases", columns), Region("outside", 1)])
    card = layout.blank()
    layout.put(card, "one", "cases", 1.0)
    return layout, card, {name: rows(layout, name) for name in (*sizes, "one")}


def one_layer(part: Part, layout: Layout) -> LoopedTransformer:
    return build([part], layout.width, Precision())


def pairs(bits: int) -> tuple[list[int], list[int]]:
    every = range(1 << bits)
    return [a for a in every for _ in every], [b for _ in every for b in every]


def check_words(
    formulas: Callable[[dict[str, Rows]], Part], hidden: int, expected: dict[str, list[int]],
    *empty: str, decode: Callable[[Tensor], Tensor] = decode_bits, **inputs: Tensor,
) -> None:
    """A layer of so many hidden units makes these words, a case a column; a column without the indicator stays 0."""
    layout, card, r = word_card(next(iter(inputs.values())).shape[1], **{name: len(word) for name, word in inputs.items()},
                                **dict.fromkeys(empty, 1))
    for name, words in inputs.items():
        layout.put(card, name, "cases", words)
    model = one_layer(formulas(r), layout)
    assert model.shapes == (LayerShape(heads=0, key_size=0, hidden=hidden),)
    after = model(card)
    for name, wanted in expected.items():
        found = layout.get(after, name, "cases")
        assert (found.flatten() if name in empty else decode(found)).tolist() == wanted
    assert not after[:, -1].any()


def unsigned(numbers: list[int], bits: int) -> Tensor:
    return torch.as_tensor(encode_bits(numbers, bits))


def every_signed(n: int) -> list[int]:
    least, greatest = signed_range(n)
    return list(range(least, greatest + 1))


@pytest.mark.parametrize("d", [1, 2, 3, 4, 5])
def test_binary_addition(d: int) -> None:
    """Lemma (addition of pointers): 8 d hidden units, every pair of numbers, modulo 2^d."""
    left, right = pairs(d)
    check_words(lambda r: assign(r["a"], sum_bits(r["a"], r["b"], r["one"])), 8 * d,
                {"a": [(a + b) % (1 << d) for a, b in zip(left, right, strict=True)]},
                a=unsigned(left, d), b=unsigned(right, d))


def test_binary_addition_with_constants_as_in_the_lemma() -> None:
    """The lemma's network has biases: with the number 1 in place of an indicator it has 8 d units too."""
    layout, _, r = word_card(1, a=6, b=6)
    assert one_layer(assign(r["a"], sum_bits(r["a"], r["b"], 1.0)), layout).shapes[0].hidden == 48


@pytest.mark.parametrize("d", [1, 2, 3, 6])
@pytest.mark.parametrize(("increment", "units"), [(increment_bits, 8), (successor_bits, 6)])
def test_increment(d: int, increment: Callable[..., Rows], units: int) -> None:
    every = list(range(1 << d))
    check_words(lambda r: assign(r["a"], increment(r["a"], r["one"])), units * d,
                {"a": [(x + 1) % (1 << d) for x in every]}, a=unsigned(every, d))


@pytest.mark.parametrize("n", [2, 4, 6])
def test_flip_and_increment_negate(n: int) -> None:
    numbers = every_signed(n)
    layout, card, r = word_card(len(numbers), a=n)
    layout.put(card, "a", "cases", encode_bits(numbers, n, signed=True))
    flip = assign(r["a"], flip_bits(r["a"]))
    model = build([flip, assign(r["a"], increment_bits(r["a"], r["one"]))], layout.width, Precision())
    assert model.shapes[0].hidden == 2 * n
    after = model(card)
    assert decode_bits(layout.get(after, "a", "cases"), signed=True).tolist() == [wrap(-x, n) for x in numbers]
    assert not after[:, -1].any()


@pytest.mark.parametrize("n", [2, 3, 4, 7])
def test_word_flag(n: int) -> None:
    numbers = every_signed(n)
    check_words(lambda r: assign(r["flag"], r["flag"] + word_flag(r["b"], r["one"])), 2,
                {"flag": [int(x <= 0) for x in numbers]}, "flag", b=torch.as_tensor(encode_bits(numbers, n, signed=True)))


def test_integer_flag() -> None:
    numbers = list(range(-50, 51))
    check_words(lambda r: assign(r["flag"], integer_flag(r["value"], r["one"])), 4,
                {"flag": [int(x <= 0) for x in numbers]}, "flag", value=torch.tensor([numbers], dtype=F64))


@pytest.mark.parametrize("d", [1, 3])
def test_select(d: int) -> None:
    left, right = pairs(d)
    flag = (torch.arange(2 * len(left)) < len(left)).to(F64).unsqueeze(0)
    check_words(lambda r: assign(r["no"], select(r["flag"], r["yes"], r["no"], r["one"])), 4 * d, {"no": left + right},
                yes=unsigned(left * 2, d), no=unsigned(right * 2, d), flag=flag)


def test_error_correction() -> None:
    """Noise up to the tolerance is removed from -1, 0 and 1, and not more; at most six units a row."""
    noise = torch.linspace(-TOLERANCE, TOLERANCE, 101, dtype=F64)
    layout, card, r = word_card(3 * 101, b=1)
    clean = torch.tensor([-1.0, 0.0, 1.0], dtype=F64).repeat_interleave(101)
    layout.put(card, "b", "cases", (clean + noise.repeat(3)).unsqueeze(0))
    model = one_layer(assign(r["b"], correct(r["b"])), layout)
    assert model.shapes[0].hidden == 6
    after = layout.get(model(card), "b", "cases").flatten()
    assert (after - clean).abs().max() < 1e-15
    layout.put(card, "b", "cases", clean.unsqueeze(0))
    assert torch.equal(model(card), card), "a clean card is a fixed point"
    layout.put(card, "b", "cases", 1 - 1.5 * TOLERANCE)
    assert float(layout.get(model(card), "b", "cases").max()) < 0.9


@pytest.mark.parametrize("n", [2, 3, 4])
def test_subtraction_in_one_layer(n: int) -> None:
    """Every pair of words: the difference's bits, and the branch on it, from S = b - a bit by bit."""
    words = every_signed(n)
    a, b = [x for x in words for _ in words], [y for _ in words for y in words]
    difference = [wrap(y - x, n) for x, y in zip(a, b, strict=True)]
    taken = torch.as_tensor(encode_bits(b, n, signed=True)) - torch.as_tensor(encode_bits(a, n, signed=True))
    check_words(lambda r: (assign(r["s"], difference_bits(r["s"], r["one"]))
                           + assign(r["no"], branch(r["s"], r["yes"], r["no"], r["one"]))), 8 * n + 12 * 2,
                {"s": difference, "no": [-2 if d <= 0 else 1 for d in difference]}, decode=partial(decode_bits, signed=True),
                s=taken, yes=unsigned([2] * len(a), 2), no=unsigned([1] * len(a), 2))


@pytest.mark.parametrize("d", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("offset", [-9, -3, -2, -1, 0, 1, 2, 3, 8])
def test_offset_of_every_value(d: int, offset: int) -> None:
    layout, card, row = word_card(2**d, a=d, b=d)
    every = list(range(2**d))
    layout.put(card, "a", "cases", encode_bits(every, d))
    layout.put(card, "a", "outside", -1.0)
    model = one_layer(assign(row["b"], offset_bits(row["a"], offset, row["one"])), layout)
    after = model(card)
    assert decode_bits(layout.get(after, "b", "cases")).tolist() == [(a + offset) % 2**d for a in every]
    assert not layout.get(after, "b", "outside").any()
    assert model.shapes[0].hidden <= 4 * d + 2 * d, "four units a bit, and two for the old value"


@pytest.mark.parametrize("d", [1, 2, 4])
def test_every_value_against_every_threshold(d: int) -> None:
    thresholds = range(2**d + 2)
    layout, card, row = word_card(2**d, a=d, b=len(thresholds))
    layout.put(card, "a", "cases", encode_bits(list(range(2**d)), d))
    layout.put(card, "a", "outside", 1.0)
    noisy = card.clone()
    noisy[layout.rows("a")] += 0.2 / 2**d
    model = one_layer(assign(row["b"], stack(*(at_least(row["a"], t, row["one"]) for t in thresholds))), layout)
    expected = torch.tensor([[float(a >= t) for a in range(2**d)] for t in thresholds], dtype=F64)
    for start in (card, noisy):
        after = model(start)
        torch.testing.assert_close(layout.get(after, "b", "cases"), expected)
        assert not layout.get(after, "b", "outside").any()


def test_flat_step_removes_noise() -> None:
    forms = [(f + noise, float(f >= 0)) for f in range(-5, 6) for noise in (-0.25, -0.1, 0.0, 0.1, 0.25)]
    layout, card, r = word_card(len(forms), f=1, bit=1, out=1, both=1)
    layout.put(card, "f", "cases", torch.tensor([[f for f, _ in forms]], dtype=F64))
    layout.put(card, "bit", "cases", -1.0)
    model = one_layer(assign(r["out"], step(r["f"], r["one"]))
                      + assign(r["both"], step_and(r["f"], r["bit"], r["one"], bound=8.0)), layout)
    after = model(card)
    assert layout.get(after, "out", "cases").flatten().tolist() == [bit for _, bit in forms]
    assert not layout.get(after, "both", "cases").any()


def test_overwriting() -> None:
    """x + 2 y clips to y for old bits x and new bits y; where nothing came, the old bit stays; elsewhere 0."""
    cases = [(x, y) for x in (-1, 1) for y in (-1, 0, 1)]
    layout, card, r = word_card(len(cases), x=1, gated=1)
    values = torch.tensor([[x + 2.0 * y for x, y in cases]], dtype=F64)
    layout.put(card, "x", "cases", values)
    layout.put(card, "gated", "cases", values)
    layout.put(card, "gated", "outside", 3.0)
    model = one_layer(clip(r["x"]) + clip_where(r["one"], r["gated"], gate=8.0), layout)
    assert model.shapes[0].hidden == 7
    after = model(card)
    expected = [float(y or x) for x, y in cases]
    assert layout.get(after, "x", "cases").flatten().tolist() == expected
    assert layout.get(after, "gated", "cases").flatten().tolist() == expected
    assert float(layout.get(after, "gated", "outside")) == 0


@pytest.mark.parametrize("length", range(2, 21))
def test_store_key(length: int) -> None:
    """The order of the four scores, and a gap of at least 2/3."""
    factor, gap = store_factor(length), store_gap(length)
    scores = [length, factor * length, length - 2]
    assert scores == sorted(scores, reverse=True)
    assert gap == min(scores[0] - scores[1], scores[1] - scores[2], 2 * factor)
    assert gap >= 2 / 3 - 1e-9


def memory_card(values: Tensor, scratchpad: Tensor, pointer: int) -> tuple[Layout, Tensor, dict[str, Rows]]:
    """The card of the read and write lemmas: v_0, v_1, pointer, positions, v_new and the indicator."""
    (d, cells), length = values.shape, pointer_bits(values.shape[1] + 1)
    sizes = {"v0": d, "v1": d, "pointer": length, "position": length, "v_new": d, "inside": 1}
    layout = Layout([RowBlock(name, size) for name, size in sizes.items()],
                    [Region("scratchpad", 1), Region("memory", cells)])
    card = layout.blank()
    layout.put(card, "v0", "memory", values)
    layout.put(card, "v1", "scratchpad", scratchpad)
    layout.put(card, "pointer", "scratchpad", encode_bits(pointer, length))
    layout.put(card, "position", "memory", encode_bits(list(range(1, cells + 1)), length))
    layout.put(card, "inside", "scratchpad", 1.0)
    return layout, card, {name: rows(layout, name) for name in sizes}


def memory_access(access: Callable[..., Part], r: dict[str, Rows], gate: float) -> Part:
    """A read of v_0 into v_1, or a write of v_1 into v_0."""
    source, into = ("v0", "v1") if access is read else ("v1", "v0")
    return access(pointer=r["pointer"], position=r["position"], source=r[source], into=r[into], via=r["v_new"],
                  inside=r["inside"], gate=gate)


@pytest.mark.parametrize("cells", [1, 2, 3, 7, 12])
@pytest.mark.parametrize("access", [read, write])
def test_read_and_write(access: Callable[..., Part], cells: int) -> None:
    """The lemmas: one layer, one head, width O(log n + d); every cell, over what was there before, and no other changes."""
    d, length = 3, pointer_bits(cells + 1)
    values = torch.arange(d * cells, dtype=F64).reshape(d, cells) - 7
    for pointer in range(1, cells + 1):
        layout, card, r = memory_card(values, torch.full((d, 1), -3.0, dtype=F64), pointer)
        model = one_layer(memory_access(access, r, 1000.0), layout)
        assert model.shapes == (LayerShape(heads=1, key_size=length, hidden=4 * d),)
        assert layout.width == 3 * d + 2 * length + 1
        expected = card.clone()
        if access is read:
            layout.put(expected, "v1", "scratchpad", values[:, pointer - 1 : pointer])
        else:
            layout.get(expected, "v0", "memory")[:, pointer - 1] = -3.0
        assert torch.equal(model(card), expected)


class TestThePrint:
    """What the paper prints, where it is wrong: the printed formula is built and shown to fail."""

    def test_write_with_a_plus(self) -> None:
        """With 3 stored and -2 to write, the printed second ReLU gives 8."""
        layout, card, r = word_card(1, v=1, new=1)
        layout.put(card, "v", "cases", 3.0)
        layout.put(card, "new", "cases", 0.5)  # (3 + -2) / 2, what attention brings
        v, new = r["v"], r["new"]
        printed = v + relu(2 * new - 2 * v) + relu(-2 * new + 2 * v)
        right = v + relu(2 * new - 2 * v) - relu(-2 * new + 2 * v)
        assert float(layout.get(one_layer(assign(v, printed), layout)(card), "v", "cases")) == 8
        assert float(layout.get(one_layer(assign(v, right), layout)(card), "v", "cases")) == -2

    def test_flag_with_one_plus_n(self) -> None:
        """Wrong for every word of four bits."""
        numbers = list(range(-8, 8))
        layout, card, r = word_card(16, b=4, flag=1)
        layout.put(card, "b", "cases", encode_bits(numbers, 4, signed=True))
        printed = relu(r["b"][-1]) + relu(5.0 - r["b"].total())
        after = layout.get(one_layer(assign(r["flag"], printed), layout)(card), "flag", "cases").flatten()
        assert not any(float(after[i]) == float(x <= 0) for i, x in enumerate(numbers))

    def test_flip_writes_into_empty_columns(self) -> None:
        layout, card, r = word_card(1, b=2)
        layout.put(card, "b", "cases", 1.0)
        after = one_layer(assign(r["b"], 2 * relu(-r["b"]) - 1), layout)(card)
        assert layout.get(after, "b", "cases").flatten().tolist() == [-1, -1]
        assert layout.get(after, "b", "outside").flatten().tolist() == [-1, -1], "the empty column is no longer 0"
