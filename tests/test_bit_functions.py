"""Forms over bits that have several names: each function that is found is right for all settings, or it is not found."""

from __future__ import annotations

import random

import numpy as np
import pytest

from punchcard.engines.lowered.graph import operations as op
from punchcard.engines.lowered.graph.nodes import Linear
from tests.bit_rows import BitRows, number, sum_of

WIDTH = 4
"""Bits of each of two words: together too many for a table."""
FREE = 4
"""Bits that are in none."""


class NamedBits(BitRows):
    """`x_i and y_i`, and the same bits as those of the sum of all 2^i (x_i and y_i), of a word of checked rows, and both."""

    def __init__(self, free: int = FREE) -> None:
        super().__init__(2 * WIDTH + free)
        self.x, self.y, self.free = self.bits[:WIDTH], self.bits[WIDTH : 2 * WIDTH], self.bits[2 * WIDTH :]
        self.both = [self.graph.relu(sum_of((1.0, x), (1.0, y), constant=-1.0))
                     for x, y in zip(self.x, self.y, strict=True)]
        total = self.graph.narrowed(number(self.both))
        self.of_sum = [self.graph.narrowed(self.bit_of(total, place, (1 << WIDTH - place) - 1)) for place in range(WIDTH)]


@pytest.mark.parametrize("free", [1, 2, 4])
def test_a_bit_with_two_names_counts_twice(free: int) -> None:
    """Of a conjunction that has a home in a word, and the bit of a sum that is this bit: [F + G + free bits >= k]."""
    for least in range(1, free + 3):
        for weight in (1.0, 2.0, -1.0):
            bits = NamedBits(free)
            assert bits.table(bits.of_sum[2]) is not None
            form = sum_of((weight, bits.both[2]), (1.0, bits.of_sum[2]), *((1.0, bit) for bit in bits.free))
            bits.table(bits.step(sum_of((1.0, bits.graph.narrowed(form)), constant=-float(least))))


@pytest.mark.parametrize("free", [5, 6])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_bit_is_never_1_and_0(free: int, sign: float) -> None:
    """By one name it must be 1 and by the other 0, for the ReLU to be open: it never is."""
    bits = NamedBits(free)
    assert bits.table(bits.of_sum[2]) is not None
    form = sum_of((sign, bits.both[2]), (-sign, bits.of_sum[2]), *((1.0, bit) for bit in bits.free), constant=-float(free))
    closed = bits.graph.relu(form)
    bits.table(closed)
    bits.table(sum_of((2.0, bits.graph.relu(sum_of((1.0, closed), (1.0, bits.x[0]))))))


def test_a_word_is_never_two_numbers() -> None:
    """A ReLU that is open only where a word is 5 and 7 adds nothing to a sum."""
    bits = BitRows(17)
    word, x, e = bits.bits[:8], bits.bits[8:13], bits.bits[13:]

    def is_number(value: int) -> Linear:
        signs = [1.0 if value >> i & 1 else -1.0 for i in range(len(word))]
        return bits.graph.relu(sum_of(*zip(signs, word, strict=True), constant=1.0 - value.bit_count()))

    both = sum_of((1.0, number(x)), (32.0, is_number(5)), (32.0, is_number(7)), constant=-64.0)
    closed = bits.graph.relu(bits.graph.narrowed(both))
    total = bits.graph.narrowed(sum_of((1.0, closed), (1.0, number(e)), constant=-9.0))
    assert bits.table(bits.step(total)) is not None
    (node,) = closed.terms
    assert bits.functions._affine(node) == ({}, 0)


def random_forms(seed: int) -> int:
    """Sums of bits under any of their names, in ReLUs of sums: how many are found. Each new one is a name as well."""
    rng, bits, found = random.Random(seed), NamedBits(), 0
    pool = [*bits.bits, *bits.both, *bits.of_sum, *bits.checked(*bits.both), *bits.checked(*bits.of_sum)]
    for _ in range(6):
        same = rng.randrange(WIDTH)
        names = [bits.both[same], bits.of_sum[same], *rng.choices(pool, k=rng.randint(1, 6))]
        power = rng.random() < 0.5
        total = sum_of(*((float(rng.choice((1, 1, -1, 2, -2))) if not power else 2.0**i, name)
                         for i, name in enumerate(names)), constant=float(rng.randint(-3, 1)))
        if rng.random() < 0.7:
            total = bits.graph.narrowed(bits.graph.tidy(total))
        kind = rng.choice(("step", "bit", "relu", "gated", "share"))
        if kind == "step":
            new = bits.step(total)
        elif kind == "bit":
            new = bits.bit_of(total, rng.randint(0, 2), 12)
        elif kind == "gated":
            most = 2.0 ** rng.randint(1, 5)
            new = bits.graph.relu(sum_of((1.0, total), (most, rng.choice(pool)), (most, rng.choice(pool)),
                                         constant=-2 * most))
        else:
            new = bits.graph.relu(total.times(rng.choice((1.0, -1.0))))
            if kind == "share":
                new = sum_of((1.0, new), (rng.choice((1.0, -1.0, 2.0)), total))
        if rng.random() < 0.5:
            new = bits.graph.narrowed(bits.graph.tidy(new))
        table = bits.table(new)
        found += table is not None
        if table is not None and set(np.unique(bits.value(new))) <= {0.0, 1.0}:
            pool.append(bits.checked(new)[0] if rng.random() < 0.5 else new)
    return found


def test_random_forms_of_bits_with_several_names() -> None:
    """Whatever is found is right."""
    assert sum(random_forms(seed) for seed in range(60)) > 100


@pytest.mark.soak
def test_many_random_forms_of_bits_with_several_names() -> None:
    """The same, 3,000 times."""
    assert sum(random_forms(seed) for seed in range(1000, 4000)) > 5000


@pytest.mark.parametrize(("factor", "bias"), [(-1.0, 0.0), (-1.0, 1.0), (1.0, -510.0), (1.0, -511.0), (-1.0, -1.0)])
@pytest.mark.parametrize("share", [1.0, -1.0, 2.0])
def test_a_form_of_many_bits_with_a_closed_relu(factor: float, bias: float, share: float) -> None:
    """A ReLU that is open for one setting of the bits, or none, beside the form itself: the sum is not flat elsewhere."""
    bits = BitRows(9)
    base = bits.graph.as_node(number(bits.bits))
    relu = Linear({bits.graph.node(op.RELU, (base,), (factor, np.array([bias]))): 1.0})
    assert bits.table(sum_of((1.0, relu), (share, Linear({base: 1.0})))) is None, "it has 512 values"
    assert bits.table(relu) is not None, "alone it is a flag"
