"""Sums of sigmoids of a vector, and several functions chosen by an indicator in the data (section 6.1 of the paper)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from punchcard.api import run
from punchcard.errors import ArgumentError, FitError, ProgramError, SizeError, SourceError
from punchcard.learning import by_indicator, learn, plan
from punchcard.learning.programs.network import Network
from punchcard.learning.programs.reference import descend
from punchcard.learning.programs.rules import LOSSES
from punchcard.learning.session import machine_for as machine_for_network
from punchcard.machines.fleq.blocks.block import Block, FittedFunction
from punchcard.machines.fleq.blocks.chosen import ChosenFunction
from punchcard.machines.fleq.blocks.fit import fit
from punchcard.machines.fleq.blocks.sigmoids import SigmoidSum, VectorSum
from punchcard.machines.fleq.blocks.vector_fit import fit_vector, ridges
from punchcard.machines.fleq.functions import (
    LOSS_SLOPE,
    LOSS_SLOPES,
    Array,
    Function,
    chosen_function,
    scalar_only,
    sigmoid,
    vector_function,
)
from punchcard.machines.fleq.machine import FleqMachine
from punchcard.machines.fleq.text.assembler import assemble
from tests.fleq_cases import DESIGNS, one_call, results

VARIANTS = [("compact", False), ("three-layer", False), ("paper", False), ("paper", True)]
"""One head with the terms in the dimension, in every design, and the paper's head for each term."""
DEPTHS = {"compact": 4, "three-layer": 3, "paper": 12}


def bell(x: Array) -> Array:
    return np.asarray(np.exp(-np.sum(x**2, axis=1)))


def saddle(x: Array) -> Array:
    return np.asarray(0.5 * x[:, 0] * x[:, 1] - x[:, 2])


def wave(x: Array) -> Array:
    return np.asarray(np.sin(x @ np.array([1.0, 2.0, -1.0])))


@cache
def fitted(function: Callable[[Array], Array], terms: int = 24) -> VectorSum:
    return fit_vector(function, 3, -1.0, 1.0, terms)


BELL = vector_function("bell", bell, 3, (-1.0, 1.0))
ONE_OF = chosen_function("one_of", (bell, saddle, wave), 3, (-1.0, 1.0))


def machine_for(block: Block, design: str, **options: object) -> FleqMachine:
    return FleqMachine(functions=[block, "add"], size=4, memory=8, instructions=2, design=design, range=2.0,
                       **options)  # type: ignore[arg-type]


def values(machine: FleqMachine, function: Function, *operands: list[Array]) -> Array:
    programs = [one_call(function, *case, limit=2.0) for case in zip(*operands, strict=True)]
    return np.array([c.item() for c in results(machine, programs)])


def points(count: int, entries: int = 3, seed: int = 0) -> list[Array]:
    return list(np.random.default_rng(seed).uniform(-1, 1, (count, entries, 1)))


@pytest.mark.parametrize(("design", "head_each"), VARIANTS)
def test_a_sum_of_sigmoids_of_a_vector(design: str, head_each: bool) -> None:
    """The layers compute the sum itself to rounding, so the function is off by the fit alone."""
    total = fitted(bell)
    machine = machine_for(FittedFunction(BELL, total, head_each=head_each), design)
    x = points(20)
    found = values(machine, BELL, x)
    plain = np.array([total.constant + sum(c * sigmoid(a @ p[:, 0] + b) for a, b, c in
                                           zip(total.directions, total.biases, total.coefficients, strict=True)) for p in x])
    assert np.abs(found - plain).max() <= 2.0**-53 * total.rounding()
    assert np.abs(found - bell(np.array(x)[:, :, 0])).max() <= machine.bound("bell")
    most = max(shape.heads for shape in machine.model.shapes)
    assert len(machine.model.shapes) == DEPTHS[design]
    assert most == (25 if head_each else {"compact": 1, "three-layer": 3, "paper": 2}[design])


@pytest.mark.parametrize(("design", "head_each"), VARIANTS)
def test_several_functions_chosen_by_an_indicator(design: str, head_each: bool) -> None:
    """One set of heads, and the data choose: f_j(x) for every j, on one model."""
    fits = [fitted(f) for f in (bell, saddle, wave)]
    machine = machine_for(ChosenFunction(ONE_OF, fits, head_each=head_each), design)
    x = points(8)
    for j, (f, total) in enumerate(zip((bell, saddle, wave), fits, strict=True)):
        found = values(machine, ONE_OF, x, [np.eye(3, 1, -j)] * len(x))
        assert np.abs(found - total(np.array(x)[:, :, 0])).max() <= 2 * 2.0**-53 * total.rounding(), f"choice {j}"
        assert np.abs(found - f(np.array(x)[:, :, 0])).max() <= machine.bound("one_of"), f"choice {j}"
    heads = max(shape.heads for shape in machine.model.shapes)
    assert heads == (26 if head_each else {"compact": 1, "three-layer": 3, "paper": 2}[design]), "as for one function"


def test_functions_of_a_number_can_be_chosen_too() -> None:
    """Sums of different lengths, with constants, one of them exact."""
    one = np.ones(1)
    fits = [SigmoidSum(2 * one, 0 * one, 2 * one, -1.0, -2.0, 2.0, error=0.0), fit(np.exp, -2, 2, 16)]
    function = chosen_function("curve", (lambda v: np.tanh(v[:, 0]), lambda v: np.exp(v[:, 0])), 1, (-2.0, 2.0))
    machine = FleqMachine(functions=[ChosenFunction(function, fits)], size=2, memory=8, instructions=2, range=8.0)
    x = [np.array([[value]]) for value in np.linspace(-2, 2, 9)]
    for j, f in enumerate((np.tanh, np.exp)):
        found = values(machine, function, x, [np.eye(2, 1, -j)] * 9)
        assert np.abs(found - f(np.array(x).ravel())).max() <= machine.bound("curve")
        assert np.abs(found - f(np.array(x).ravel())).max() <= (1e-14, 1e-8)[j]


def test_the_choice_is_data() -> None:
    """One program on one machine; only a value of the memory differs. The weights are the same object."""
    block = ChosenFunction(ONE_OF, [fitted(f) for f in (bell, saddle, wave)])
    program = assemble(".data\nx vector 3 0.5 -0.25 0.75\nchoice vector 3 1 0 0\ny scalar\n"
                       ".code\ny = one_of(x, choice)\nhalt", functions={"one_of": ONE_OF})
    machine = FleqMachine.for_program(program, blocks=[block])
    for j, f in enumerate((bell, saddle, wave)):
        report = run(program.with_values({"choice": np.eye(3, 1, -j)}), machine, engine="dense")
        assert report.agrees
        assert abs(report.result.memory["y"].item() - f(np.array([[0.5, -0.25, 0.75]])).item()) <= machine.bound("one_of")


@pytest.mark.parametrize("choice", ["1 1 0", "0 0 0", "0.5 0.5 0"])
def test_what_is_not_an_indicator_is_refused(choice: str) -> None:
    program = assemble(f".data\nx vector 3\nchoice vector 3 {choice}\ny scalar\n.code\ny = one_of(x, choice)\nhalt",
                       functions={"one_of": ONE_OF})
    machine = FleqMachine.for_program(program, blocks=[ChosenFunction(ONE_OF, [fitted(f) for f in (bell, saddle, wave)])])
    with pytest.raises(ProgramError, match=f"one_of: the indicator is {choice}: one of its entries must be 1, the others 0"):
        machine.run(program, engine="dense")


# The loss indicator of section 9


def test_the_slopes_are_those_of_the_losses() -> None:
    o, y = np.random.default_rng(1).uniform(-4, 4, (2, 50))
    for name, slope in LOSS_SLOPES.items():
        assert np.allclose(slope(np.stack([o, y], axis=1)), LOSSES[name].slope(o, y), rtol=0, atol=1e-15), name


@pytest.mark.parametrize("design", DESIGNS)
def test_the_loss_is_chosen_by_an_indicator(design: str) -> None:
    machine = FleqMachine(functions=["loss_slope"], size=4, memory=8, instructions=2, design=design)
    v = [8 * point for point in points(4, entries=2)]
    programs = [one_call(LOSS_SLOPE, p, np.eye(4, 1, -j), limit=16.0) for j in range(4) for p in v]
    found = np.array([c.item() for c in results(machine, programs)]).reshape(4, 4)
    for got, (name, slope) in zip(found, LOSS_SLOPES.items(), strict=True):
        assert np.abs(got - slope(np.array(v)[:, :, 0])).max() <= machine.bound("loss_slope"), name
    assert machine.bound("loss_slope") < 2.1e-7


def test_learning_with_a_loss_in_the_data() -> None:
    """Four losses on one machine by one program: they differ in the indicator, and in nothing else on the card."""
    x, y = np.array([[-0.9], [1.0]]), np.array([0.0, 1.0])
    task = {"epochs": 1, "rate": 0.5, "range": 4.0}
    plans = {name: plan(x, y, loss=by_indicator(name), **task) for name in LOSSES}  # type: ignore[arg-type]
    assert len({p.program.instructions for p in plans.values()}) == 1
    assert {name: int(np.argmax(p.program.values["choice"])) for name, p in plans.items()} == {
        name: i for i, name in enumerate(LOSS_SLOPES)}
    machine = machine_for_network(plans["squared"].program, plans["squared"].network, {})
    for name in ("logistic", "squared"):
        learned = learn(x, y, loss=by_indicator(name), machine=machine, engine="scratchpad", **task)  # type: ignore[arg-type]
        plain = descend(Network(1, loss=LOSSES[name]), {"W1": np.zeros((1, 1)), "b1": np.zeros(1)}, x, y[:, None], epochs=1,
                        rate=0.5)
        assert abs(learned.weights["W1"] - plain.history[-1]["W1"]).max() < 1e-11, name


def test_an_indicator_of_losses_is_for_one_output() -> None:
    with pytest.raises(ProgramError, match="2 outputs and a loss that an indicator chooses: that is for one output"):
        learn([[0.5]], [[1.0, 2.0]], loss=by_indicator("huber"))
    with pytest.raises(ProgramError, match=r"unknown loss 'hubert' .did you mean 'huber'"):
        by_indicator("hubert")


# What is refused


def test_wrong_vectors_and_fits() -> None:
    with pytest.raises(SourceError, match="4x1: the operand must be a vector of 3 entries"):
        assemble(".data\nx vector 4\ny scalar\n.code\ny = bell(x)\nhalt", functions={"bell": BELL})
    with pytest.raises(SourceError, match="2x1: the indicator must be a vector of 3 entries"):
        assemble(".data\nx vector 3\ne vector 2\ny scalar\n.code\ny = one_of(x, e)\nhalt", functions={"one_of": ONE_OF})
    with pytest.raises(SizeError, match="takes a vector of 3 entries, a machine with size=2 has columns of 2"):
        FleqMachine(functions=[FittedFunction(BELL, fitted(bell))], size=2)
    with pytest.raises(FitError, match=r"functions of vectors of \[1, 3\] entries in one block"):
        ChosenFunction(ONE_OF, [fitted(bell), fit(np.exp, -1, 1, 8)])
    with pytest.raises(FitError, match="of no fits"):
        ChosenFunction(ONE_OF, [])


@pytest.mark.parametrize(("call", "message"), [
    (lambda: fit_vector(bell, 0, -1.0, 1.0), "0 entries: a vector has at least 1"),
    (lambda: fit_vector(bell, 2, 1.0, 1.0), "low must be less than high"),
    (lambda: fit_vector(bell, 2, -1.0, 1.0, 0), "0 terms"),
    (lambda: fit_vector(lambda x: x, 2, -1.0, 1.0, 8), "a number for each row"),
    (lambda: fit_vector(lambda x: 1 / (x[:, 0] - 1), 2, -1.0, 1.0, 8), "must be finite on the cube"),
    (lambda: ridges([], -1.0, 1.0), "ridges of nothing"),
    (lambda: ridges([((1.0, 1.0), fit(np.exp, -1, 1, 8))], -1.0, 1.0), r"reaches ±2 on \[-1, 1\], and its function is "),
])
def test_fits_that_are_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(FitError, match=message):
        call()


def test_arguments_are_checked() -> None:
    with pytest.raises(ArgumentError, match="entries"):
        fit_vector(bell, "3", -1.0, 1.0)  # type: ignore[arg-type]


def test_ridges_are_as_accurate_as_their_parts() -> None:
    total = ridges([((1.0, -1.0), fit(np.exp, -2, 2, 24)), ((0.0, 2.0), fit(np.sin, -2, 2, 24))], -1.0, 1.0)
    x = np.random.default_rng(2).uniform(-1, 1, (500, 2))
    error = np.abs(total(x) - np.exp(x[:, 0] - x[:, 1]) - np.sin(2 * x[:, 1])).max()
    assert error <= total.truncation < 1e-10


def test_a_vector_of_one_entry_is_a_number() -> None:
    total = fit_vector(lambda v: np.exp(v[:, 0]), 1, -1.0, 1.0, 24)
    assert total.error < 1e-6
    function = Function("exp1", 1, scalar_only, np.exp, (-1.0, 1.0))
    machine = FleqMachine(functions=[FittedFunction(function, total)], size=1, memory=4, instructions=2, range=4.0)
    assert abs(values(machine, function, [np.array([[0.5]])]).item() - np.exp(0.5)) <= machine.bound("exp1")
