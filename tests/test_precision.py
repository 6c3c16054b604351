"""The bound: hard heads, exact sums, and the largest word of every design and number format."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import numpy as np
import pytest
import torch

from punchcard.card.layout import Layout, Region, RowBlock, holding
from punchcard.errors import EncodingError, PrecisionError, SizeError
from punchcard.machines.lockstep import compare
from punchcard.machines.subleq.machine import SubleqMachine
from punchcard.trace import observe
from punchcard.transformer.build import Part, assign, attend, compile_layer
from punchcard.transformer.exactness import needed_bits
from punchcard.transformer.expression import relu, rows, stack
from punchcard.transformer.precision import DTYPES, Precision, as_precision
from punchcard.transformer.softmax import hard_product
from punchcard.transformer.summation import are_exact, bits_for
from tests.cases import DESIGNS, soaked
from tests.random_programs import random_program

# The largest word for which every sum is exact, by design and number format.
LARGEST = {
    ("paper", "float64"): 49, ("two-layer", "float64"): 47, ("one-layer", "float64"): 45,
    ("paper", "float32"): 20, ("two-layer", "float32"): 18, ("one-layer", "float32"): 16,
    ("paper", "float16"): 7, ("two-layer", "float16"): 5, ("one-layer", "float16"): 3,
    ("paper", "bfloat16"): 4, ("two-layer", "bfloat16"): 2,
}


@pytest.mark.parametrize("name", DTYPES)
def test_hard_temperature_leaves_no_tail(name: str) -> None:
    """At lambda * gap above the bound the softmax weight of a loser is exactly 0, and winners share equally."""
    precision = as_precision(name)
    for gap in (2 / 3, 0.75, 1.0, 2.0):
        product = precision.temperature_for(gap) * gap
        assert product >= hard_product(precision.name)
        scores = torch.tensor([0.0, -product, 0.0, -2 * product], dtype=precision.dtype)
        assert torch.softmax(scores, 0).tolist() == [0.5, 0, 0.5, 0]
        assert math.log2(precision.temperature_for(gap)).is_integer(), "a power of two keeps the scores exact"


def test_hard_product_is_tight() -> None:
    """A little below the bound the tail is no longer 0."""
    scores = torch.tensor([0.0, -hard_product("float64") + 1.5], dtype=torch.float64)
    assert float(torch.softmax(scores, 0)[1]) > 0


@pytest.mark.parametrize(("count", "steps"), [(8, 96), soaked(24, 300)])
@pytest.mark.parametrize(("design", "dtype"), [
    soaked(*each) if each == ("paper", "float64") else each for each in LARGEST])
def test_exact_up_to_the_bound_and_refused_beyond(design: str, dtype: str, count: int, steps: int) -> None:
    bits = LARGEST[design, dtype]
    machine = SubleqMachine(word_bits=bits, memory=6, instructions=9, design=design, precision=dtype)
    assert machine.needed_bits <= machine.precision.significand
    rng = random.Random(bits)
    comparison = compare(machine, [random_program(rng, bits, 6, 9) for _ in range(count)], 25)
    assert comparison.agrees, comparison.mismatches[0]
    assert comparison.steps > steps
    with pytest.raises(PrecisionError, match=f"word_bits={bits + 1}, .* needs sums of {machine.needed_bits + 1} significand "
                                             f"bits, {dtype} has .* at most {bits} bits"):
        SubleqMachine(word_bits=bits + 1, memory=6, instructions=9, design=design, precision=dtype)


@pytest.mark.parametrize("design", DESIGNS)
def test_the_suppositions_of_the_bound_hold(design: str) -> None:
    """Entries are -1, 0 or 1 whenever a layer begins; the declared facts hold whenever a loop begins; weights are hard."""
    machine = SubleqMachine(word_bits=5, memory=7, instructions=10, design=design)
    rng = random.Random(5)
    for _ in range(5):
        program = random_program(rng, 5, 7, 10)
        with observe(machine.model, machine.layout) as seen:
            machine.run(program, max_steps=30)
        for snapshot in seen:
            assert set(snapshot.after.flatten().tolist()) <= {-1.0, 0.0, 1.0}
            if snapshot.layer == 0:
                assert machine.layout.violations(snapshot.before) == []
            for head in range(snapshot.module.shape.heads):
                assert set(snapshot.attention(head).flatten().tolist()) <= {0.0, 0.5, 1.0}


@pytest.mark.parametrize("design", DESIGNS)
def test_only_declared_places_change(design: str) -> None:
    machine = SubleqMachine(word_bits=5, memory=7, instructions=10, design=design)
    changed: set[tuple[str, str]] = set()
    rng = random.Random(6)
    for _ in range(5):
        program = random_program(rng, 5, 7, 10)
        before = machine.punch(program)
        for _ in range(30):
            after = machine.model(before)
            for block in machine.layout.blocks:
                for region in machine.layout.regions:
                    if not torch.equal(machine.layout.get(before, block.name, region.name),
                                       machine.layout.get(after, block.name, region.name)):
                        changed.add((block.name, region.name))
            before = after
    declared = {(b.name, region) for b in machine.layout.blocks for region in b.changes}
    assert changed == declared, "what changes is declared, and what is declared does change"


@pytest.mark.parametrize(("design", "temperature"), [("paper", 12.0), ("two-layer", 10.0), ("one-layer", 20.0)])
@pytest.mark.parametrize("count", [5, soaked(40)])
def test_a_soft_temperature_works_by_error_correction(design: str, temperature: float, count: int) -> None:
    """Set by hand, the temperature leaves a tail in every read; the flat steps of the designs remove it."""
    machine = SubleqMachine(word_bits=8, memory=20, instructions=41, design=design,
                            precision=Precision(torch.float64, temperature=temperature))
    rng = random.Random(8)
    programs = [random_program(rng, 8, 20, 41) for _ in range(count)]
    tail = machine.model.layers[0].attention(machine.punch(programs[0]), 0)  # type: ignore[operator]
    assert 0 < float(tail.min()) < 1e-6
    comparison = compare(machine, programs, 50)
    assert comparison.agrees, comparison.mismatches[0]
    assert comparison.steps > 25 * count


LAYOUT = Layout([RowBlock("x", 1, holds=holding("bits", "all")), RowBlock("y", 1, holds=holding("bits", "all")),
                 RowBlock("one", 1, holds=holding("one", "all")), RowBlock("out", 1)], [Region("all", 2)])
X, Y, ONE, OUT = (rows(LAYOUT, block.name) for block in LAYOUT.blocks)


@pytest.mark.parametrize(("part", "bits"), [
    (assign(OUT, X + Y), 2),  # relu(x + y) - relu(-x - y): two terms of size up to 2 each
    # +2^40 and -2^40 arrive one after the other: in between the sum is large
    (attend(query=X, key=X, value=2.0**40 * ONE, into=X, gap=2)
     + attend(query=X, key=X, value=-(2.0**40) * ONE, into=X, gap=2), 42),
    # scores: of the first, all are multiples of 2^30
    (attend(query=2.0**20 * X, key=2.0**10 * X, value=Y, into=OUT, gap=1), 1),
    (attend(query=2.0**20 * X + Y, key=X, value=Y, into=OUT, gap=1), 21),
    (attend(query=stack(2.0**20 * X, ONE), key=stack(X, 0.5 * Y), value=Y, into=OUT, gap=1), 22),
    # values, whole and by quarters
    (attend(query=X, key=X, value=2.0**20 * X + Y, into=OUT, gap=1), 21),
    (attend(query=X, key=X, value=2.0**20 * X + Y, into=OUT, gap=1, winners=4), 23),
    # a unit that is always closed: its own sum must be exact
    (assign(OUT, OUT + relu(2.0**20 * X + Y - 2.0**22 * ONE)), 23),
    # the edge of float64
    (assign(OUT, OUT + relu(2.0**52 * X + Y)), 53), (assign(OUT, OUT + relu(2.0**53 * X + Y)), 54),
])
def test_every_kind_of_sum_needs_bits(part: Part, bits: int) -> None:
    assert needed_bits([compile_layer(part, LAYOUT.width)], LAYOUT) == bits


def test_a_little_more_than_a_power_of_two_needs_a_bit_more() -> None:
    for total, bits in ((2.0**24, 24), (2.0**24 + 1, 25), (2.0**53 + 4000, 54), (np.inf, 1 << 20)):
        assert bits_for(np.array([total]), np.ones(1)) == bits
        for each in (bits - 1, bits) if bits < 64 else (53, 64):
            assert are_exact(total, 1.0, each) == (each >= bits)


@pytest.mark.parametrize(("design", "bits"), [("paper", 11), ("two-layer", 11), ("one-layer", 9)])
def test_long_cards_need_bits_too(design: str, bits: int) -> None:
    """L + 3 in the designs that count with pointers, where the pointers are longer than the words."""
    assert SubleqMachine(word_bits=2, memory=100, instructions=150, design=design).needed_bits == bits


def test_too_soft_a_temperature_fails() -> None:
    machine = SubleqMachine(word_bits=8, memory=20, instructions=41, precision=Precision(temperature=1.0))
    program = random_program(random.Random(1), 8, 20, 41)
    with pytest.raises(EncodingError, match="not a ±1 bit"):
        compare(machine, [program], 50)


@pytest.mark.parametrize(("make", "message"), [
    (lambda: as_precision("flaot32"), r"unknown number format 'flaot32' \(did you mean 'float32'\?\)"),
    (lambda: Precision(torch.int64), r"torch.int64 is not a number format"),
    (lambda: Precision(temperature=-1), "temperature -1"),
    *((lambda gate=gate: Precision(gate=gate), f"gate {gate}: it must be a power of two, 8 or more")
      for gate in (0.0, 1.0, -4.0, 9.0, 2.0**53 + 2)),
    (lambda: SubleqMachine(word_bits=3, memory=2, instructions=2, precision=Precision(torch.float16, temperature=1e6)),
     r"layer 1, head 1, a score times the temperature may reach .*, float16 holds 6.55e\+04: .* lower temperature .*1e.06"),
    (lambda: SubleqMachine(word_bits=4, precision="bfloat16"),
     r"'paper' design with word_bits=4, .* needs .* or fewer columns than 64"),
    (lambda: SubleqMachine(word_bits=2, design="one-layer", precision="bfloat16"),
     r"'one-layer' design with word_bits=2, .* bfloat16 has 8"),
    (lambda: SubleqMachine(word_bits=51), "word_bits=51"),
])
def test_bad_precision_is_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises((PrecisionError, SizeError), match=message):
        make()


def test_a_format_by_its_name_or_type() -> None:
    assert {Precision(dtype).name for dtype in ("float32", "torch.float32", torch.float32)} == {"float32"}
