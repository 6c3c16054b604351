"""The error of a FLEQ function is about the weights that run: if it is proven, then they keep to it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import cache

import numpy as np
import pytest

from punchcard.machines.fleq.machine import FleqMachine
from punchcard.transformer.weights import LayerArrays, Weights

pytest.importorskip("z3", reason="proofs need z3")
pytest.importorskip("flint", reason="error bounds need python-flint")

from punchcard.proof.proof import Proof
from punchcard.proof.solver import Failed
from tests.cases import soaked
from tests.fleq_operands import largest_errors, stated_errors
from tests.perturbed import mutations, perturbed

Change = Callable[[LayerArrays], None]


@cache
def machine(design: str, *functions: str, size: int = 1, precision: str = "float64") -> FleqMachine:
    return FleqMachine(functions=functions, size=size, memory=max(4, 3 * size), instructions=2, design=design,
                       precision=precision)


def with_layer(it: FleqMachine, number: int, change: Change) -> Weights:
    """The machine's weights with a change in one layer, counted from 1."""
    layers = list(it.weights.layers)
    layers[number - 1] = LayerArrays(*(array.copy() for array in vars(layers[number - 1]).values()))
    change(layers[number - 1])
    return Weights(it.weights.width, it.weights.dtype, layers)


def outcome(it: FleqMachine, weights: Weights, *cases: str) -> tuple[str | None, dict[str, float]]:
    """The claim that fails in some cases, and the errors that are stated."""
    proof = Proof(it, weights, only=cases or None)
    try:
        proof.run()
    except Failed as failed:
        return failed.claim, {}
    return None, stated_errors(proof.claims.proven)


# One weight, which decides no bit


def test_a_weight_of_a_transposition_that_is_0() -> None:
    it = FleqMachine(functions=("add", "transpose"), size=2, memory=8, instructions=4, range=16)

    def zero(layer: LayerArrays) -> None:
        assert layer.value[0, 139, 182] == 2.0
        layer.value[0, 139, 182] = 0.0

    weights = with_layer(it, 3, zero)
    errors = largest_errors(it, weights)
    assert errors["add"] == 0.0
    assert errors["transpose"] > 1.0
    proof = Proof(it, weights, only=("transpose",))
    with pytest.raises(Failed, match="error of transpose: by the weights, the result is the block's formula") as failed:
        proof.run()
    example = proof.counterexample(failed.value)
    assert example is not None
    assert any(difference.rows == "cell" for difference in example.differences), str(example)


def test_a_weight_of_a_product_that_is_doubled() -> None:
    """In place: the machine's weights are those of its module, which anybody may change."""
    it = FleqMachine(functions=("mul",), size=1, memory=4, instructions=2)
    before = it.weights.digest()
    it.model.state_dict()["layers.2.value"][0, it.layout.rows("product1_product")] *= 2
    assert it.weights.digest() != before
    assert it.designed_weights().digest() == before
    assert largest_errors(it, it.weights)["mul"] > 1.0
    claim, _ = outcome(it, it.weights, "mul")
    assert claim is not None
    assert claim.startswith("error of mul: the error bound holds only for the design's own weights; value[0, ")


def test_a_tie_that_is_none_in_floating_point() -> None:
    """1 + 2^-53 + 2^-53 and 1 + 2^-52 are one number, and two as they are computed: a high temperature tells them apart."""
    it = FleqMachine(functions=("add", "transpose"), size=2, memory=8, instructions=4, range=16)

    def uneven(layer: LayerArrays) -> None:
        layer.key[0, 3, [165, 174, 166]] = 2.0**-53, 2.0**-53, 2.0**-52
        layer.temperature[0] = 2.0**38

    weights = with_layer(it, 3, uneven)
    assert largest_errors(it, weights)["transpose"] > 0.1
    claim, _ = outcome(it, weights, "transpose")
    assert claim == "transpose: bits: a score that columns share in head 1 of layer 3 is exact, with 53 significand bits"


def test_a_total_that_is_a_little_too_large() -> None:
    """y - relu(y + 2^53) + 2^53 clears a bit over the real numbers, and rounds it in float64."""
    it = FleqMachine(functions=("add",), size=1, memory=4, instructions=4, range=8)

    def large(layer: LayerArrays) -> None:
        for row in range(*it.layout.rows("current").indices(it.layout.width)[:2]):
            first, second = np.flatnonzero(layer.w2[row])[:2]
            layer.w1[[first, second]], layer.w2[:, [first, second]] = 0, 0
            layer.w1[first, row], layer.b1[first], layer.w2[row, first], layer.b2[row] = 1, 2.0**53, -1, 2.0**53

    claim, _ = outcome(it, with_layer(it, 4, large), "add")
    assert claim == "add: bits: a unit of layer 4 is exact, with 53 significand bits"


# Other weights that compute the same function


def halved(layer: LayerArrays) -> None:
    """Every hidden unit twice as large, and half of it taken."""
    for array, factor in ((layer.w1, 2.0), (layer.b1, 2.0), (layer.w2, 0.5)):
        array *= factor


@pytest.mark.parametrize(("function", "precision"), [("maximum", "float64"), soaked("add", "float32")])
def test_other_weights_that_compute_the_same(function: str, precision: str) -> None:
    it = machine("compact", function, precision=precision)
    weights = with_layer(it, 3, halved)
    claim, stated = outcome(it, weights, function)
    assert claim is None
    found = largest_errors(it, weights)[function]
    assert found <= stated[function] <= 2**14 * it.unit * it.range
    assert stated[function] > it.bound(function), "it is not the design's own rounding"


def test_rounding_is_that_of_the_weights() -> None:
    """The result beside a large number that is taken away again: right in exact arithmetic, and far off in float64."""
    it = machine("compact", "add")
    result = it.layout.rows("result").start

    def beside(layer: LayerArrays) -> None:
        unit = int(np.flatnonzero(layer.w2[result])[0])
        layer.b1[unit] += 2.0**45
        layer.b2[result] -= 2.0**45 * layer.w2[result, unit]

    weights = with_layer(it, 3, beside)
    found = largest_errors(it, weights)["add"]
    claim, stated = outcome(it, weights, "add")
    assert found > 1e-4
    assert claim is not None or stated["add"] >= found


# Any weight


def changes(it: FleqMachine, count: int, seed: int) -> Iterator[tuple[str, Weights]]:
    """Weights that are zeroed, doubled, moved a little or far, or swapped; of some models two of them."""
    rng = random.Random(seed)
    for number, (told, weights) in enumerate(mutations(it.weights, count, seed)):
        if number % 3:
            told, weights = perturbed(rng, it.weights)
        if number % 6 == 5:
            more, weights = perturbed(rng, weights)
            told += f"; {more}"
        yield told, weights


def check(it: FleqMachine, count: int, seed: int) -> dict[str, int]:
    """What became of changed weights. For each that function is looked at whose results have changed."""
    rng, found = random.Random(seed), {"refuted": 0, "wrong and refuted": 0, "proven": 0}
    right = largest_errors(it, it.weights)
    for told, weights in changes(it, count, seed):
        errors = largest_errors(it, weights)
        function = rng.choice([name for name in errors if errors[name] != right[name]] or list(errors))
        claim, stated = outcome(it, weights, function)
        if claim is None:
            assert errors[function] <= stated[function], f"{told}: {function} is off by {errors[function]}"
            found["proven"] += 1
        else:
            found["wrong and refuted" if errors[function] > it.bound(function) else "refuted"] += 1
    return found


@pytest.mark.soak
def test_a_few_weights_changed() -> None:
    assert check(machine("compact", "add", "sigmoid"), 2, 4) == {"refuted": 0, "wrong and refuted": 1, "proven": 1}


@pytest.mark.soak
@pytest.mark.parametrize(("functions", "size", "count"), [
    (("add", "mul", "transpose"), 2, 18), (("sub", "percentage", "relu", "abs"), 1, 18),
    (("maximum", "minimum", "sigmoid"), 2, 12), (("tanh", "hadamard", "scale"), 2, 12), (("inverse",), 1, 5)])
@pytest.mark.parametrize("design", ["compact", "three-layer", "paper"])
def test_many_weights_changed(design: str, functions: tuple[str, ...], size: int, count: int) -> None:
    found = check(machine(design, *functions, size=size), count, 100)
    assert found["wrong and refuted"], found


@pytest.mark.parametrize("power", [50, soaked(52)])
def test_a_soft_mean_of_equal_numbers_is_rounded(power: int) -> None:
    """A head brings 2^50 from every column, and a bias takes it away: the weights of a softmax add up to 1 only nearly."""
    it = FleqMachine(functions=("mul",), size=2, memory=5, instructions=4, design="compact")
    place, scratch, outside = (it.layout.rows(name).start for name in ("halted", "scratch", "outside"))

    def brings(layer: LayerArrays) -> None:
        layer.value[0, place, [scratch, outside]] += 2.0**power
        layer.b2[place] -= 2.0**power

    claim, _ = outcome(it, with_layer(it, 3, brings), "mul")
    assert claim is not None
    assert claim.startswith("mul: step: halted in scratchpad")


@pytest.mark.parametrize(("precision", "places"), [("float64", 1022), ("float32", 126)])
def test_a_row_is_not_cleared_by_units_that_underflow(precision: str, places: int) -> None:
    """x - 2^k relu(2^-k x) + 2^k relu(-2^-k x): over the real numbers 0, but the lowest bits of 2^-k x are lost."""
    it = FleqMachine(functions=("add",), size=1, memory=4, instructions=4, design="compact", precision=precision)

    def scaled(layer: LayerArrays) -> None:
        for name in ("operand", "left"):
            for row in range(*it.layout.rows(name).indices(it.layout.width)):
                for unit in np.flatnonzero(layer.w1[:, row]):
                    if np.count_nonzero(layer.w1[unit]) == 1 and not layer.b1[unit] and (
                            np.flatnonzero(layer.w2[:, unit]).tolist() == [row]):
                        layer.w1[unit] = np.ldexp(layer.w1[unit], -places)
                        layer.w2[:, unit] = np.ldexp(layer.w2[:, unit], places)

    claim, _ = outcome(it, with_layer(it, 4, scaled), "add")
    assert claim is not None
    assert claim.startswith("add: bits: what layer 4 makes of bits beside a real number in operand of scratchpad")
