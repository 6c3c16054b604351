"""Proofs of the FLEQ machine: its bits for every card, and the errors of its functions over their whole range."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

from punchcard.machines.fleq.blocks.block import FittedFunction, Scale
from punchcard.machines.fleq.blocks.catalogue import built_in
from punchcard.machines.fleq.blocks.fit import fit
from punchcard.machines.fleq.blocks.product import EXTRAPOLATION, REMAINDER, best_c
from punchcard.machines.fleq.blocks.series import coefficient, largest_coefficient, power, tail
from punchcard.machines.fleq.blocks.sigmoids import FIT_MARGIN
from punchcard.machines.fleq.functions import INVERSE
from punchcard.machines.fleq.machine import FleqMachine

pytest.importorskip("z3", reason="proofs need z3")
flint = pytest.importorskip("flint", reason="error bounds need python-flint")

from punchcard.machines.fleq import meaning  # noqa: E402
from punchcard.machines.fleq.blocks.enclosure import largest  # noqa: E402
from punchcard.machines.fleq.designs import base  # noqa: E402
from punchcard.proof.proof import Proof  # noqa: E402
from punchcard.proof.prover import prove  # noqa: E402
from tests.cases import soaked  # noqa: E402
from tests.fleq_mutations import looped, mutated, random_card, refuted  # noqa: E402

DESIGNS = ("compact", "paper", "three-layer")


@cache
def machine(design: str, *functions: str, size: int = 1, memory: int = 2, instructions: int = 2) -> FleqMachine:
    return FleqMachine(functions=functions or ("add",), size=size, memory=memory, instructions=instructions, design=design)


@pytest.mark.parametrize("design", DESIGNS)
def test_facts_hold_on_any_card_that_is_punched_and_after_a_loop(design: str) -> None:
    it = machine(design, "add", "mul", size=2, memory=4, instructions=4)
    for seed in range(6):
        card = random_card(it, seed)
        assert it.layout.violations(card) == []
        assert it.layout.violations(looped(it.weights, card)) == []


def test_a_fact_that_does_not_hold_is_named() -> None:
    it = machine("compact")
    for rows, region, column, value, told in (
        ("lane", "scratchpad", 0, 1.0, "lane in scratchpad holds its constants"),
        ("program_counter", "scratchpad", 1, None, "program_counter is the same in all columns of scratchpad"),
        ("incoming", "memory", 0, 5.0, "data or incoming in memory holds numbers, and the other is 0"),
        ("data", "instructions", 0, 0.0, "data or incoming in instructions holds bits, and the other is 0"),
    ):
        card = random_card(it, 1)
        card[it.layout.rows("data"), it.layout.region("memory")] = 1.0
        place = it.layout.rows(rows).start, it.layout.region(region).start + column
        card[place] = -card[place] if value is None else value
        assert any(told in wrong for wrong in it.layout.violations(card)), told


def test_a_loop_does_what_the_machine_means() -> None:
    """The meaning that a proof compares with, itself compared with a plain reading of the card before and after a loop."""
    it = machine("compact", "add", "mul", size=2, memory=4, instructions=4)
    layout, sizes = it.layout, it.sizes
    for seed in range(20):
        card = random_card(it, seed)
        after = looped(it.weights, card)
        counter = int(layout.numbers(card, "program_counter", "scratchpad")[0])
        column = card[layout.rows("data"), counter]
        field = {part: sum(int(column[row] > 0) << i for i, row in enumerate(range(*sizes.field_rows(part).indices(99))))
                 for part in sizes.instruction_parts()}
        held, new = (layout.array(c, "data", "memory") + layout.array(c, "incoming", "memory") for c in (card, after))
        called = any(field[f"call_{name}"] for name in sizes.functions)
        written = range(field["c"], field["c"] + field["c_width"]) if called else range(0)
        kept = [i for i in range(sizes.memory) if sizes.memory_column + i not in written]
        assert np.array_equal(held[:, kept], new[:, kept])
        value = {sizes.zero_column: 0.0, sizes.unit_column: 1.0}.get(field["flag"])
        value = new[0, field["flag"] - sizes.memory_column] if value is None else value
        if abs(value - round(value)) < meaning.TOLERANCE and abs(value) <= it.range:
            wanted = field["p"] if round(value) <= 0 else counter + 1
            assert layout.numbers(after, "program_counter", "scratchpad")[0] == wanted
        assert layout.numbers(after, "halted", "scratchpad")[0] == field["halt"]


@pytest.mark.parametrize("design", [soaked(design) if design == "paper" else design for design in DESIGNS])
def test_the_bits_of_a_loop_are_proven(design: str) -> None:
    proof = Proof(machine(design))
    proof.run()
    shown = {claim.name: claim.about for claim in proof.claims.proven}
    for name in ("current in scratchpad", "write_pointer in scratchpad", "operand in scratchpad", "flag in scratchpad",
                 "step: program_counter in scratchpad", "step: halted in scratchpad", "cell in memory",
                 "instruction in instructions", "again: the program counter names an instruction", "range of layer 3",
                 "bits"):
        assert f"add: {name}" in shown, name
        assert f"nothing: {name}" in shown, name
    assert shown["error of add"].startswith("at most 0 over [-16, 16]")


@pytest.mark.parametrize(("where", "name", "wrong"), [
    (base, "flag_shift", lambda bound, unit: 0.0),
    (meaning, "flag_grid", lambda bound, unit: 2 * base.flag_grid(bound, unit))])
def test_bits_are_rounded_where_a_flag_is_read_as_it_is(
    monkeypatch: pytest.MonkeyPatch, where: Any, name: str, wrong: Any,
) -> None:
    """Without the grid that flags are rounded to, or with one that is too coarse, a branch leaves bits that are off."""
    monkeypatch.setattr(where, name, wrong)
    it = FleqMachine(functions=("add",), size=1, memory=2, instructions=2)
    assert "bits: what layer" in (refuted(it, it.weights, "nothing") or "")


def test_a_flag_that_is_too_far_from_an_integer_is_not_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    """The compact design forgives 1/4, and not more."""
    it = machine("compact")
    monkeypatch.setattr(meaning, "TOLERANCE", 0.2499)
    assert refuted(it, it.weights, "nothing") is None
    monkeypatch.setattr(meaning, "TOLERANCE", 0.2501)
    assert refuted(it, it.weights, "nothing") == "nothing: step: program_counter in scratchpad is what the step says"


def check_mutations(it: FleqMachine, seeds: range, cards: int = 12) -> int:
    """How many are refuted. With each of the others all claims are shown; it makes the same of some cards, too."""
    refuted_, some = 0, np.stack([random_card(it, number) for number in range(cards)])
    right = looped(it.weights, some)
    for seed in seeds:
        weights, told = mutated(it, seed)
        if refuted(it, weights) is not None:
            refuted_ += 1
        else:
            assert np.array_equal(looped(weights, some), right), f"{told} was not noticed"
    return refuted_


def test_a_wrong_weight_is_refuted() -> None:
    assert check_mutations(machine("compact"), range(4)) >= 3


@pytest.mark.parametrize(("design", "seed"), [("compact", 1), ("compact", 5), ("three-layer", 1)])
def test_a_claim_that_fails_comes_with_a_card(design: str, seed: int) -> None:
    """The facts hold on it, the model runs it, and what comes out is not the step."""
    it = machine(design)
    weights, _ = mutated(it, seed)
    found = prove(it, weights=weights)
    example = found.counterexample
    assert not found.proven
    assert example is not None
    assert it.layout.violations(example.card) == []
    assert np.array_equal(looped(weights, example.card), example.after)
    assert example.differences, str(example)
    assert str(example.differences[0]) in str(example)
    right = looped(it.weights, example.card)
    assert list(it.design.step_mismatches(example.card, right)) == []
    assert it.layout.violations(right) == []


def test_what_a_pointer_function_writes_is_bits() -> None:
    """Also where the three-layer design has fetched the instruction already that is changed."""
    it = machine("three-layer", "incr_pointer", size=1)
    proof = Proof(it, only=("incr_pointer",))
    proof.run()
    shown = {claim.name for claim in proof.claims.proven}
    assert "incr_pointer: again: data or incoming in instructions holds bits, and the other is 0" in shown
    assert "incr_pointer: again: current in scratchpad is the instruction that program_counter names" in shown
    assert any("names pointers" in promise for promise in proof.promises)


@pytest.mark.soak
@pytest.mark.parametrize("design", DESIGNS)
def test_many_wrong_weights_are_refuted(design: str) -> None:
    # In the paper's design more weights decide nothing: half of each relu(x) - relu(-x), and a flag that is cleared at once.
    assert check_mutations(machine(design), range(60), 60) >= {"compact": 36, "paper": 32, "three-layer": 40}[design]


@pytest.mark.soak
@pytest.mark.parametrize(("functions", "size", "cells"), [
    (("add", "reset_pointer", "incr_pointer"), 1, 2), (("add", "mul", "transpose", "sigmoid"), 2, 9)])
@pytest.mark.parametrize("design", DESIGNS)
def test_larger_machines_are_proven(design: str, functions: tuple[str, ...], size: int, cells: int) -> None:
    proof = Proof(machine(design, *functions, size=size, memory=cells, instructions=cells))
    proof.run()
    assert {claim.name.split(":")[0] for claim in proof.claims.proven} >= {*functions, "nothing"}


# Errors over the whole range


def test_the_powers_that_heads_leave() -> None:
    for heads in (1, 2, 3):
        assert abs(power(heads, 0) - 1) < 2**-50
        assert all(abs(power(heads, n)) < 2**-46 for n in range(1, heads))
        assert REMAINDER[heads] / abs(float(power(heads, heads))) <= largest_coefficient(heads) * 1.000001
        assert largest_coefficient(heads) <= 1.03 * REMAINDER[heads] / abs(float(power(heads, heads)))
    assert coefficient(1) == {(1,): Fraction(1, 6), (0, 1): Fraction(-1, 2)}
    assert tail(1, 1e-5) < 1e-19


@pytest.mark.parametrize("heads", [1, 2, 3])
def test_the_error_of_a_product_is_below_its_enclosure_and_near_it(heads: int) -> None:
    scale = Scale(4, 16.0, 2.0**-53)
    found = built_in("mul", heads).enclosure(scale)
    c, before = best_c(scale.reach, heads, scale.unit), flint.ctx.prec
    flint.ctx.prec = 300
    try:
        worst = 0.0
        for z in ([0.1, 32.0, 32.0, 32.0], [32.0] * 4, [5.0, -32.0, 32.0, 32.0], [20.0, 32.0, -32.0, 32.0]):
            total = flint.arb(0)
            for h, w in enumerate(EXTRAPOLATION[heads]):
                x = [flint.arb((h + 1) * c * each) for each in z]
                total += flint.arb(w) / ((h + 1) * c) * x[0].sinh() / (sum((each.cosh() for each in x), flint.arb(0)) / 4)
            worst = max(worst, abs(float((total - z[0]).mid())))
    finally:
        flint.ctx.prec = before
    assert found.truncation / 8 < worst <= found.truncation


def test_the_error_of_a_fit_is_enclosed_over_its_whole_range() -> None:
    """Few terms, so that the error is far above rounding and can be measured with floats."""
    sum_of_sigmoids = fit(INVERSE.reference, 0.1, 10.0, 12)
    found = FittedFunction(INVERSE, sum_of_sigmoids).enclosure(Scale(4, 16.0, 2.0**-53))
    assert found.proven
    x = np.linspace(0.1, 10.0, 100_001)
    measured = float(np.abs(sum_of_sigmoids(x) - 1 / x).max())
    assert measured <= found.truncation <= 1.06 * measured
    assert found.truncation <= FIT_MARGIN * sum_of_sigmoids.error
    assert found.rounding == pytest.approx(2.0**-53 * sum_of_sigmoids.rounding())


def test_a_bound_holds_between_the_points_that_were_looked_at() -> None:
    """A spike that a thousand samples miss."""
    spike = lambda x: 1 / (1 + 1e8 * (x - 0.123456789) ** 2)  # noqa: E731
    bound, pieces = largest(lambda a, b: (spike, 0.0), 0.0, 1.0)
    assert 1.0 <= bound <= 1.06
    assert pieces > 10


@pytest.mark.soak
@pytest.mark.parametrize("name", ["inverse", "sqrt", "log_0d0625_16", "sin_m16_16", "sqrt_0d25_16", "inverse_0d0625_16"])
def test_fits_are_within_their_margin_everywhere(name: str) -> None:
    it = FleqMachine(functions=[name], size=2, memory=2, instructions=2)
    block = it.blocks[name]
    found = block.enclosure(it.scale)
    error = block.fit.error if isinstance(block, FittedFunction) else block.curve.table.error  # type: ignore[attr-defined]
    assert found.proven
    assert found.truncation <= FIT_MARGIN * error
