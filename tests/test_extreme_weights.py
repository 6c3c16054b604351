"""Weights at the edge of a number format: no certificate for sums that overflow, and no engine that does not see it.

A hidden unit that is scaled up, and its weights behind the ReLU down, is the same function of real numbers. In a number
format it is not: sums overflow, and the card is not a number. Proofs must fail then, and fast engines refuse, decline, or
give the same card.
"""

from __future__ import annotations

import random
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from punchcard.card.formats import FORMATS
from punchcard.card.layout import as_tensor
from punchcard.engines import ENGINES, prepare, prepare_batch
from punchcard.errors import LoweringError, PrecisionError, ProofError, WeightsError
from punchcard.machines.base import Machine
from punchcard.machines.fleq.machine import FleqMachine
from punchcard.machines.fleq.text.assembler import assemble
from punchcard.machines.riscv.machine import RiscvMachine
from punchcard.machines.subleq.machine import SubleqMachine
from punchcard.machines.von_neumann.machine import VonNeumannMachine
from punchcard.transformer.exactness import loop_sums
from punchcard.transformer.model import TransformerLayer
from punchcard.transformer.precision import Precision
from punchcard.transformer.sums import Bounds, LayerSums, largest_entry, violation
from punchcard.transformer.weights import NAMES, LayerArrays, Weights
from punchcard.viewer.inspector import LoopInspector
from tests.cases import soaked
from tests.perturbed import EXTREMES, SUBJECTS, compare
from tests.random_programs import random_program
from tests.riscv_cases import endless

pytestmark = pytest.mark.usefixtures("shared_code")

SMALL: dict[str, Any] = {"word_bits": 3, "memory": 3, "instructions": 4}


def scaled(weights: Weights, layer: int, unit: int, by: int) -> Weights:
    """The same function of real numbers, with one hidden unit 2^by times as large."""
    layers, old = list(weights.layers), weights.layers[layer]
    w1, b1, w2 = old.w1.copy(), old.b1.copy(), old.w2.copy()
    w1[unit], b1[unit], w2[:, unit] = np.ldexp(w1[unit], by), np.ldexp(b1[unit], by), np.ldexp(w2[:, unit], -by)
    layers[layer] = replace(old, w1=w1, b1=b1, w2=w2)
    return Weights(weights.width, weights.dtype, layers)


def overflowing(weights: Weights, card: torch.Tensor) -> tuple[int, int, Weights]:
    """A unit that is scaled up so that the equation's card is not a number, though all weights are."""
    stages = [stage.double().numpy() for stage in weights.module.stages(card)]
    for number, layer in enumerate(weights.layers):
        w1, b1 = layer.w1.astype(np.float64), layer.b1.astype(np.float64)
        largest = np.maximum(np.abs(w1).max(axis=1, initial=0.0), np.abs(b1[:, 0]))
        for unit in np.flatnonzero((w1 @ stages[2 * number + 1] + b1).max(axis=1) >= 2 * largest).tolist():
            found = scaled(weights, number, unit, int(np.finfo(layer.w1.dtype).maxexp - np.frexp(largest[unit])[1]))
            if not bool(found.module(card).isfinite().all()):
                assert found.flaw() is None
                return number, unit, found
    raise AssertionError("no unit overflows")


def subleq(design: str, precision: str, **sizes: int) -> tuple[SubleqMachine, torch.Tensor]:
    machine = SubleqMachine(**{**SMALL, **sizes}, design=design, precision=precision)
    card = machine.punch(random_program(random.Random(1), machine.sizes.word_bits, machine.sizes.memory,
                                        machine.sizes.instructions))
    return machine, card


# The one rule


def random_layer(rng: np.random.Generator, rows: int = 5, hidden: int = 4) -> LayerArrays:
    def some(*shape: int) -> Any:
        return rng.integers(-4, 5, shape) * np.ldexp(1.0, rng.integers(-3, 3, shape)) * (rng.random(shape) < 0.7)

    return LayerArrays(some(2, 3, rows), some(2, 3, rows), some(2, rows, rows), np.abs(some(2)) + 1, some(hidden, rows),
                       some(hidden, 1), some(rows, hidden), some(rows, 1))


@pytest.mark.parametrize("seed", range(40))
def test_no_partial_sum_is_beyond_its_total_and_all_terms_are_on_the_grid(seed: int) -> None:
    """Every sum of the equation, term by term, of columns of integers within their bounds."""
    rng = np.random.default_rng(seed)
    layer, low = random_layer(rng), rng.integers(-3, 2, (5, 2))
    high = low + rng.integers(0, 4, (5, 2))
    bounds = Bounds(low.astype(np.float64), high.astype(np.float64), np.ones(5), np.zeros(5, np.bool_))
    sums = LayerSums(layer, 1)
    columns = [rng.integers(low[:, kind], high[:, kind] + 1).astype(np.float64) for kind in (0, 1, 0, 1)]
    found = {each.where: each for each in sums.all(bounds)}

    def check(where: str, terms: Any) -> None:
        each = found[f"layer 1, {where}"]
        for place, row in enumerate(np.atleast_2d(terms)):
            assert np.abs(row).sum() <= each.totals[place], where
            assert np.isinf(each.grids[place]) or not np.any(row / each.grids[place] % 1), where

    taken = rng.integers(0, 4, (2, 4))
    for column, x in enumerate(columns):
        attended = [x]
        for head in range(2):
            for name, matrix in (("key", layer.key[head]), ("query", layer.query[head])):
                check(f"head {head + 1}, {name} {{}}", matrix * x)
            for other in columns:
                score = (layer.key[head] @ other) * (layer.query[head] @ x)
                check(f"head {head + 1}, a score", score)
                check(f"head {head + 1}, a score times the temperature", score.sum() * layer.temperature[head])
            value = layer.value[head] @ columns[taken[head, column]]
            check(f"head {head + 1}, row {{}} of a value", layer.value[head] * columns[taken[head, column]])
            attended.append(value)
        check("row {} after the attention", np.array(attended).T)
        y = np.sum(attended, axis=0)
        check("hidden unit {}", np.hstack([layer.w1 * y, layer.b1]))
        hidden = np.maximum(layer.w1 @ y + layer.b1[:, 0], 0)
        check("row {} of the output", np.hstack([layer.w2 * hidden, layer.b2, y[:, None]]))


def test_a_sum_that_leaves_the_format_is_named() -> None:
    layer = random_layer(np.random.default_rng(3))
    card = Bounds.of_size(1.0, 5, FORMATS["float32"].eps)
    assert violation(LayerSums(layer, 2).all(card), FORMATS["float32"]) is None
    large, small = layer.w1.copy(), layer.key.copy()
    large[2, 1], small[1, 0, 3] = 2.0**130, 2.0**-140
    assert violation(LayerSums(replace(layer, w1=large, value=0 * layer.value), 2).all(card), FORMATS["float32"]) == (
        "layer 2, hidden unit 2 may reach 1.36e+39, float32 holds 3.4e+38")
    assert violation(LayerSums(replace(layer, key=small), 2).all(card), FORMATS["float32"]) == (
        "layer 2, head 2, key 0 has terms as small as 8.55e-50, the smallest positive number of float32 is 1.4e-45")
    hot = replace(layer, temperature=np.array([2.0, 2.0**127]))
    assert "layer 2, head 2, a score times the temperature may reach" in str(
        violation(LayerSums(hot, 2).all(card), FORMATS["float32"]))
    assert largest_entry([LayerSums(layer)], 5, FORMATS["float32"]) == 2.0**32
    assert largest_entry([LayerSums(hot)], 5, FORMATS["float32"]) == -np.inf


def test_scores_that_overflow_are_refused_when_a_machine_is_built() -> None:
    with pytest.raises(PrecisionError, match=r"layer 1, .* float32 holds 3\.4e\+38: use .* gate than .*temperature=1e\+38"):
        SubleqMachine(**SMALL, precision=Precision("float32", temperature=1e38))


# Proofs


@pytest.mark.parametrize("precision", ["float32", "float16"])
@pytest.mark.parametrize("design", SubleqMachine.designs)
def test_the_claim_on_overflow_fails(design: str, precision: str) -> None:
    """And names the unit."""
    pytest.importorskip("z3")
    from punchcard.proof.proof import Proof
    from punchcard.proof.solver import Failed

    machine, card = subleq(design, precision)
    proof = Proof(machine)
    proof.check_sums()
    assert [claim.name for claim in proof.claims.proven] == ["overflow", "bits"]
    number, unit, weights = overflowing(machine.weights, card)
    with pytest.raises(Failed) as failed:
        Proof(machine, weights).check_sums()
    assert failed.value.claim.startswith(
        f"overflow: no sum leaves the number format, and layer {number + 1}, hidden unit {unit} may reach")
    layers, down = list(machine.weights.layers), -int(np.finfo(precision).maxexp) + 2
    layers[0] = replace(layers[0], key=np.ldexp(layers[0].key, down), query=np.ldexp(layers[0].query, down))
    with pytest.raises(Failed, match=r"overflow: .* layer 1, head 1, a score has terms as small as"):
        Proof(machine, Weights(machine.weights.width, precision, layers)).check_sums()


def test_a_certificate_of_weights_that_overflow_is_not_proven() -> None:
    pytest.importorskip("z3")
    from punchcard.proof.prover import prove

    machine, card = subleq("two-layer", "float32")
    number, unit, weights = overflowing(machine.weights, card)
    found = prove(machine, weights=weights)
    assert not found.proven
    assert found.counterexample is None
    assert f"layer {number + 1}, hidden unit {unit} may reach" in str(found.failed)
    assert "violated: overflow" in str(found)


def test_fleq_is_proven_to_stay_within_its_format_and_not_with_scaled_units() -> None:
    pytest.importorskip("z3")
    from punchcard.proof.proof import Proof
    from punchcard.proof.solver import Failed

    machine = FleqMachine(functions=("add",), size=1, memory=2, instructions=2, precision="float32")
    proof = Proof(machine, only=("add",))
    proof.run()
    claims = {claim.name: claim.about for claim in proof.claims.proven}
    assert claims["add: overflow"].startswith("sums are ")
    program = assemble(".data\nx scalar 1\ny scalar 2\n.code\nx = add(x, y)")
    number, unit, weights = overflowing(machine.weights, machine.punch(program))
    with pytest.raises(Failed, match=rf"add: overflow: .*, and layer {number + 1}, hidden unit {unit} may reach"):
        Proof(machine, weights, only=("add",)).run()


# Weights that are not numbers


def test_a_model_that_was_cast_is_refused_by_name() -> None:
    """A machine has one number format: engines and proofs rely on its largest number."""
    machine, card = subleq("two-layer", "float32")
    machine.model.half()
    told = r"layers\.0\.key is in float16, and the model in float32"
    for engine in ENGINES:
        with pytest.raises(WeightsError, match=told):
            prepare(engine, machine.model, machine.layout, card)
    with pytest.raises(ProofError, match=told):
        machine.prove()


@pytest.mark.parametrize("name", NAMES)
def test_weights_that_are_not_finite_are_refused_by_name(name: str) -> None:
    """By every engine, for cards and batches, by the view and by the prover; the model itself is still the equation."""
    machine, card = subleq("two-layer", "float32")
    array = getattr(machine.weights.layers[1], name).copy()
    place = tuple(size // 2 for size in array.shape)
    array[place] = {"w1": np.inf, "w2": -np.inf}.get(name, np.nan)
    layers = [machine.weights.layers[0], replace(machine.weights.layers[1], **{name: array})]
    machine.weights = Weights(machine.weights.width, "float32", layers)
    told = rf"layers\.1\.{name}\[{', '.join(map(str, place))}\] is (nan|-?inf): a run needs finite weights"
    for engine in ENGINES:
        for model in (machine.weights, machine.model):
            with pytest.raises(WeightsError, match=told):
                prepare(engine, model, machine.layout, card)
        with pytest.raises(WeightsError, match=told):
            prepare_batch(engine, machine.weights, machine.layout, [card, card])
    program = random_program(random.Random(1), 3, 3, 4)
    with pytest.raises(WeightsError, match=told):
        machine.run(program)
    with pytest.raises(WeightsError, match=told):
        LoopInspector(machine, program, b"", None, ())
    assert not bool(machine.model(card).isfinite().all()) or name in ("temperature", "query", "key")
    if name == "w1":
        pytest.importorskip("z3")
        with pytest.raises(ProofError, match=r"layers\.1\.w1\[.*\] is inf: there is nothing to prove"):
            machine.prove()


# Engines


def hot(weights: Weights, by: int) -> Weights:
    """A temperature of 2^by in the first head."""
    layers = list(weights.layers)
    temperature = layers[0].temperature.copy()
    temperature[0] = np.ldexp(np.ones((), temperature.dtype), by)
    layers[0] = replace(layers[0], temperature=temperature)
    return Weights(weights.width, weights.dtype, layers)


@pytest.mark.parametrize("change", ["unit", "temperature"])
@pytest.mark.parametrize(("design", "precision"), [
    ("two-layer", "float32"), ("two-layer", "float64"), ("paper", "float32"), ("one-layer", "float64")])
def test_sums_that_overflow_are_not_lowered(design: str, precision: str, change: str) -> None:
    """The engine "auto" then gives the equation's card, which is not a number; so does the scratchpad engine."""
    machine, card = subleq(design, precision, memory=9, instructions=10)
    by = {"float32": 126, "float64": 1022}[precision]
    weights = hot(machine.weights, by) if change == "temperature" else overflowing(machine.weights, card)[2]
    expected = weights.module(card)
    assert not bool(expected.isfinite().all())
    with pytest.raises(LoweringError) as refused:
        prepare("lowered", weights, machine.layout, card)
    assert design == "one-layer" or "may reach" in str(refused.value), refused.value
    for engine in ("auto", "scratchpad"):
        ran = prepare(engine, weights, machine.layout, card.clone()).run(1)
        assert torch.equal(ran.card.isnan(), expected.isnan()), engine
        assert torch.equal(ran.card.nan_to_num(), expected.nan_to_num()), engine
    assert design == "one-layer" or ran.notes == ("sums may leave the number format: full softmax in all heads",)


LOOPS = 4
TRIED = {"two-layer, float32": 8, "two-layer": 4, "paper": 3, "one-layer": 6, "von Neumann": 3, "Turing": 3, "operations": 4}
"""How many changes are tried of each in `make test`; of all subjects far more in `make soak`."""


def tried(name: str, seeds: range, engine: str) -> Counter[str]:
    subject, found = SUBJECTS[name](), Counter[str]()
    for seed in seeds:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # nobody is warned of an overflow: it is refused, or it is the equation's
            outcome = compare(subject, f"extreme {name} {seed}", LOOPS, EXTREMES, engine)
        found[outcome.kind] += 1
        assert outcome.kind != "different", f"{name} {seed}: {outcome.what}"
    return found


@pytest.mark.parametrize("engine", ["lowered", "scratchpad"])
@pytest.mark.parametrize("name", TRIED)
def test_extreme_weights_give_the_equation_or_are_refused(name: str, engine: str) -> None:
    assert tried(name, range(TRIED[name]), engine).total() == TRIED[name]


@pytest.mark.parametrize("engine", ["lowered", "scratchpad"])
@pytest.mark.parametrize("exponent", [40, 60, 117])
def test_equal_scores_share_where_the_lead_vanishes_beside_them(exponent: int, engine: str) -> None:
    """At so high a temperature the best score less the lead is the best score again, and an active key may equal it."""
    subject = SUBJECTS["Turing"]()
    layers = list(subject.weights.layers)
    key = layers[1].key.copy()
    key[0, 2, 7] = 0.0  # the active key has no sign there: it equals two passive ones
    layers[1] = replace(layers[1], key=key, temperature=np.array([2.0**exponent], np.float32))
    weights = Weights(subject.weights.width, subject.weights.dtype, layers)
    for seed in range(3):
        expected = card = subject.card(random.Random(seed))
        for _ in range(4):
            expected = weights.module(expected)
        ran = prepare(engine, weights, subject.layout, card, fall_back=True).run(4)
        assert torch.equal(as_tensor(ran.card), expected), seed


@pytest.mark.soak
@pytest.mark.parametrize("engine", ["lowered", "scratchpad", "auto"])
@pytest.mark.parametrize("name", SUBJECTS)
def test_many_extreme_weights(name: str, engine: str) -> None:
    tried(name, range(1000, 1020 if name.startswith(("FLEQ", "RISC-V")) else 1150), engine)


@pytest.mark.parametrize(("layer", "name"), [
    (1, "w1"), *(soaked(layer, name) for layer in range(3) for name in NAMES if (layer, name) != (1, "w1"))])
def test_a_matrix_of_zeros(layer: int, name: str) -> None:
    """RISC-V: refused, or declined, or the equation's card."""
    machine = RiscvMachine(memory=40)
    card = machine.punch(endless(random.Random(1), 40, 20))
    getattr(machine.model.layers[layer], name).zero_()
    ran = prepare("auto", machine.weights, machine.layout, card.clone(), loops=100).run(2)
    assert torch.equal(ran.card, machine.model(machine.model(card)))


# The view


def large() -> tuple[Machine[Any, Any], Any]:
    """So many columns that a view computes some of them only."""
    machine = SubleqMachine(word_bits=4, memory=300, instructions=300, design="two-layer", precision="float32")
    return machine, random_program(random.Random(2), 4, 300, 300)


def little() -> tuple[Machine[Any, Any], Any]:
    machine = SubleqMachine(**SMALL, design="paper", precision="float32")
    return machine, random_program(random.Random(2), 3, 3, 4)


@pytest.mark.parametrize("change", ["unit", "temperature"])
@pytest.mark.parametrize("make", [little, large])
def test_a_view_of_sums_that_overflow(make: Callable[[], tuple[Machine[Any, Any], Any]], change: str) -> None:
    """Each stage is what the equation makes of it, also what is not a number, and nobody is warned."""
    machine, program = make()
    card = machine.punch(program)
    machine.weights = hot(machine.weights, 126) if change == "temperature" else overflowing(machine.weights, card)[2]
    expected = [stage.numpy() for stage in machine.model.stages(card)]
    assert not np.isfinite(expected[-1]).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        inspector = LoopInspector(machine, program, b"", 5, ())
        inside = inspector.stages(0)
        for found, wanted in zip(inside.stages, expected, strict=True):
            assert np.array_equal(found, wanted[:, inside.columns], equal_nan=True)
        if len(inside.columns) == machine.layout.columns:
            attention, layer = inspector.attention(0, 0, 0), machine.model.layers[0]
            assert isinstance(layer, TransformerLayer)
            assert np.array_equal(attention.weights, layer.attention(card, 0).numpy()[attention.sources], equal_nan=True)


# The right weights


@pytest.mark.parametrize("make", [
    *(lambda design=design: SubleqMachine(design=design, precision="float32", word_bits=8)
      for design in SubleqMachine.designs), lambda: VonNeumannMachine(), lambda: RiscvMachine(memory=40)])
def test_no_machine_comes_near_the_edge(make: Callable[[], Machine[Any, Any]]) -> None:
    machine = make()
    layers = [LayerSums(layer, number) for number, layer in enumerate(machine.weights.layers, start=1)]
    assert violation(loop_sums(layers, machine.layout), machine.weights.format) is None
    assert largest_entry(layers, machine.layout.width, machine.weights.format) >= 2.0**8
