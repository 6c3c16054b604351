"""The learning programs on the plain interpreter: against torch.autograd, for every rule, shape and way of counting."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from punchcard.api import disassemble
from punchcard.errors import ProgramError
from punchcard.learning.programs.network import Network
from punchcard.learning.programs.reference import descend
from punchcard.learning.programs.rules import ACTIVATIONS, LOSSES, huber, named
from punchcard.learning.programs.sgd import learning_program, prediction_program
from punchcard.machines.fleq.functions import BUILT_IN, POINTER_FUNCTIONS, STANDARD_FUNCTIONS
from punchcard.machines.fleq.isa import FleqProgram
from punchcard.machines.fleq.text.assembler import assemble
from tests.learning_cases import distance, interpreted, outputs, torch_descend


def data(network: Network, points: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    x, y = (generator.uniform(-1, 1, (points, columns)) for columns in (network.features, network.outputs))
    return x, (y > 0).astype(float) if network.loss.labels else y


def check(network: Network, points: int, epochs: int, rate: float = 0.3, *, at_once: bool = False, seed: int = 0) -> None:
    """Interpreter, NumPy and torch agree on the weights; the loops are as many as stated."""
    x, y = data(network, points, seed)
    generator = np.random.default_rng(seed + 1)
    first = {name: generator.uniform(-1, 1, shape) for name, shape in network.shapes().items()}
    plain = descend(network, first, x, y, epochs=epochs, rate=rate, at_once=at_once)
    wanted, _ = torch_descend(first, x, y, epochs=epochs, rate=rate, activation=network.activation.name,
                              loss=network.loss.name, at_once=at_once)
    for ours, theirs in zip(plain.history, wanted, strict=True):
        assert distance(ours, theirs) < 1e-12
    written = learning_program(network, network.to_memory(first), network.inputs(x), y.T, epochs=epochs, rate=rate,
                               limit=plain.largest * (1 + 1e-9), at_once=at_once)
    memory, steps = interpreted(written.program)
    assert distance(network.from_memory(memory), wanted[-1]) < 1e-12
    assert steps + 1 == written.loops


@pytest.mark.parametrize(("activation", "loss", "hidden"), [
    *product(ACTIVATIONS, ["squared"], [(3,), (4, 2)]), *product(["sigmoid"], LOSSES, [(), (3,)]),
])
def test_every_rule_against_autograd(activation: str, loss: str, hidden: tuple[int, ...]) -> None:
    """Values stay within the range that NumPy's run gives: the interpreter refuses others."""
    check(Network(3, hidden, 1, ACTIVATIONS[activation], LOSSES[loss]), points=5, epochs=3)


@given(features=st.integers(1, 4), hidden=st.lists(st.integers(1, 4), max_size=4), outputs=st.integers(1, 3),
       bias=st.booleans(), at_once=st.booleans(), points=st.integers(1, 4), epochs=st.integers(1, 3),
       activation=st.sampled_from(sorted(ACTIVATIONS)), loss=st.sampled_from(sorted(LOSSES)), seed=st.integers(0, 99))
def test_every_shape_against_autograd(
    features: int, hidden: list[int], outputs: int, bias: bool, at_once: bool, points: int, epochs: int, activation: str,
    loss: str, seed: int,
) -> None:
    network = Network(features, tuple(hidden), outputs, ACTIVATIONS[activation], LOSSES[loss], bias)
    check(network, points, epochs, rate=0.1, at_once=at_once, seed=seed)


@pytest.mark.parametrize("epochs", [1, 2, 3, 4, 7, 8, 9, 30])
@pytest.mark.parametrize("limit", [1.0, 1.9, 2.0, 8.0])
def test_epochs_are_counted_within_the_range(epochs: int, limit: float) -> None:
    network, x, y = Network(1), np.array([[0.5]]), np.array([[0.25]])
    first = network.initial(0)
    written = learning_program(network, network.to_memory(first), network.inputs(x), y, epochs=epochs, rate=0.5, limit=limit)
    memory, steps = interpreted(written.program)
    assert steps + 1 == written.loops
    plain = descend(network, first, x, y, epochs=epochs, rate=0.5)
    assert distance(network.from_memory(memory), plain.history[-1]) < 1e-13


def program_for(network: Network, points: int, epochs: int = 2, limit: float = 8.0) -> FleqProgram:
    x, y = data(network, points)
    return learning_program(network, network.to_memory(network.initial(0)), network.inputs(x), y.T, epochs=epochs, rate=0.1,
                            limit=limit).program


@pytest.mark.parametrize("hidden", [(), (4,), (4, 4, 4)])
@pytest.mark.parametrize("bias", [True, False])
def test_the_length_does_not_grow_with_the_data(hidden: tuple[int, ...], bias: bool) -> None:
    network = Network(3, hidden, bias=bias)
    few, many = program_for(network, 2), program_for(network, 1000)
    assert few.labels == many.labels
    assert len(few.instructions) == len(many.instructions)
    # memory grows by a column for each point and its label, and for its flag where no constant feature serves
    assert many.columns - few.columns == 998 * (2 if bias else 3)


def test_the_length_grows_with_depth_by_a_constant() -> None:
    lengths = [len(program_for(Network(3, (4,) * depth), 3).instructions) for depth in range(1, 6)]
    assert set(np.diff(lengths)) == {13}


def test_the_length_grows_with_the_logarithm_of_the_epochs() -> None:
    lengths = [len(program_for(Network(3), 3, epochs=epochs, limit=1.0).instructions) for epochs in (2, 4, 8, 1024)]
    assert np.diff(lengths).tolist() == [2, 2, 14]


@pytest.mark.parametrize("network", [Network(3), Network(3, (4,)), Network(3, (4, 4), activation=ACTIVATIONS["tanh"])])
def test_the_standard_functions_are_enough(network: Network) -> None:
    assert set(program_for(network, 2).used_functions()) <= set(STANDARD_FUNCTIONS)


@pytest.mark.parametrize("network", [Network(3), Network(2, (3,), 2, ACTIVATIONS["softplus"], huber(0.5)),
                                     Network(2, (3,), 1, ACTIVATIONS["relu"], bias=False)])
def test_a_program_is_text(network: Network) -> None:
    program = program_for(network, 3)
    own = {name: program.functions[name] for name in program.used_functions()
           if name not in BUILT_IN and name not in POINTER_FUNCTIONS}
    assert assemble(disassemble(program), functions=own) == program


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("hidden", [(), (3,), (3, 2)])
@pytest.mark.parametrize("bias", [True, False])
def test_predictions(hidden: tuple[int, ...], loss: str, bias: bool) -> None:
    import torch

    network = Network(2, hidden, 2, ACTIVATIONS["tanh"], LOSSES[loss], bias)
    x, _ = data(network, 6)
    generator = np.random.default_rng(5)
    weights = {name: generator.uniform(-1, 1, shape) for name, shape in network.shapes().items()}
    written = prediction_program(network, network.to_memory(weights), network.inputs(x), limit=8.0)
    memory, steps = interpreted(written.program)
    wanted = outputs({k: torch.tensor(v) for k, v in weights.items()}, torch.tensor(x), "tanh")
    wanted = torch.sigmoid(wanted) if loss == "logistic" else wanted
    assert np.abs(memory["P"].T - wanted.numpy()).max() < 1e-14
    assert steps + 1 == written.loops


GOOD = Network(2, (3,)).initial(1)


@pytest.mark.parametrize(("call", "message"), [
    (lambda: Network(0), "features: 0: a layer needs at least 1 unit"),
    (lambda: Network(2, (3, 0)), "hidden: 0"),
    (lambda: named("loss", "hubert", LOSSES), r"unknown loss 'hubert' \(did you mean 'huber'\?\)"),
    (lambda: huber(-1.0), "huber limit -1: it must be positive"),
    (lambda: program_for(Network(1), 2, epochs=0), "0 rounds"),
    (lambda: program_for(Network(1), 2, limit=0.5), r"range 0\.5: it must be 1 or more"),
    (lambda: descend(Network(1), Network(1).initial(0), np.array([[3.0]]), np.array([[1.0]]), epochs=200, rate=2.0),
     r"learning diverges: .* use a lower rate"),
    (lambda: Network(2, (3,)).checked({**GOOD, "W3": 1.0}), "weights 'W3': the network has W1, b1, W2, b2"),
    (lambda: Network(2, (3,)).checked({name: GOOD[name] for name in ("W1", "b1", "W2")}), "weights without 'b2'"),
    (lambda: Network(2, (3,)).checked({**GOOD, "W1": np.ones((3, 2))}),
     r"weights 'W1' have the shape \(3, 2\): the network needs \(2, 3\)"),
    (lambda: Network(2, (3,)).checked({**GOOD, "b1": [np.nan] * 3}), "weights 'b1' hold NaN or infinity"),
])
def test_refusals(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        call()
