"""Learning on the transformer: against NumPy and torch.autograd, with the figures that the docs promise."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import punchcard
from punchcard import learning
from punchcard.api import disassemble
from punchcard.errors import ProgramError, PunchcardError, StorageError
from punchcard.learning import Learned, Model, Stage, huber
from punchcard.machines.fleq.blocks.block import EntrywiseProduct, MatrixProduct
from punchcard.machines.fleq.functions import HADAMARD, MUL, STANDARD_FUNCTIONS
from punchcard.machines.fleq.isa import FleqProgram
from punchcard.machines.fleq.machine import FleqMachine
from punchcard.machines.fleq.oracle import dry_run
from tests.cases import soaked
from tests.learning_cases import distance, outputs, torch_descend, xor
from tests.pages import page

PRECISE = {"float64": 5e-12, "float32": 2e-5}
# Runs of a few hundred loops, each on a machine of its own: compiling for them would take longer, and the dense engine does.
ENGINE = "scratchpad"
learn = partial(learning.learn, engine=ENGINE)
predict = partial(learning.predict, engine=ENGINE)
PAGE = page("learning.md")


def task(features: int, points: int, hidden: tuple[int, ...] = (), seed: int = 0) -> dict[str, Any]:
    """Points and labels in [-1, 1], and first weights as large."""
    generator = np.random.default_rng(seed)
    widths = (features, *hidden, 1)
    weights = {}
    for k in range(1, len(widths)):
        weights[f"W{k}"] = generator.uniform(-1, 1, (widths[k - 1], widths[k]))
        weights[f"b{k}"] = generator.uniform(-1, 1, widths[k])
    return {"features": generator.uniform(-1, 1, (points, features)), "labels": generator.uniform(-1, 1, points),
            "weights": weights, "hidden": hidden}


def against_torch(learned: Learned, given: dict[str, Any], **how: Any) -> float:
    """The largest distance from autograd's weights after any epoch."""
    wanted, _ = torch_descend(given["weights"], given["features"], given["labels"], epochs=learned.epochs, **how)
    return max(distance(found, right) for found, right in zip(learned.history, wanted, strict=True))


# Figures


@pytest.mark.parametrize(("d", "heads", "precision"), [
    soaked(4, 2, "float64"), (4, 3, "float64"), (4, 3, "float32"), soaked(8, 3, "float64"), soaked(8, 2, "float64"),
    soaked(8, 3, "float32")])
@pytest.mark.parametrize("hidden", [False, True])
def test_models_are_near_numpy_and_autograd(d: int, heads: int, precision: str, hidden: bool) -> None:
    """Linear models, and networks with as many hidden units."""
    given = task(d - 1, points=2, hidden=(d,) if hidden else ())
    learned = learn(**given, epochs=8 // d, rate=0.2, heads=heads, precision=precision)
    assert learned.machine.sizes.size == d
    assert learned.error <= PRECISE[precision]
    assert against_torch(learned, given, rate=0.2) <= PRECISE[precision]
    assert learned.loops_per_point == (22 if hidden else 9)
    # the least power of two above what occurs, with a margin of 1 %
    assert learned.largest == pytest.approx(dry_run(learned.program).largest, rel=1e-5)
    assert learned.machine.range == 2.0 ** np.ceil(np.log2(1.01 * learned.largest))
    assert f"values up to {learned.largest:.4g}, range {learned.machine.range:g}" in learned.host


@pytest.mark.parametrize(("hidden", "how", "limit"), [
    ((), {"loss": "logistic"}, 1e-11),
    ((), {"loss": "logcosh"}, 1e-11),
    ((), {"loss": "huber", "terms": 64}, 1e-4),
    ((2,), {"activation": "tanh"}, 1e-11),
    ((2,), {"activation": "silu"}, 1e-11),
    ((2,), {"activation": "relu"}, 1e-11),
    ((2,), {"activation": "softplus", "terms": 32}, 1e-9),
    ((2, 2), {}, 1e-11),
    ((2,), {"batch": "all"}, 1e-11),
    ((), {"batch": "all"}, 1e-11),
])
def test_other_losses_activations_and_depths(hidden: tuple[int, ...], how: dict[str, Any], limit: float) -> None:
    given = task(2, points=2, hidden=hidden, seed=3)
    if how.get("loss") == "logistic":
        given["labels"] = np.array([0.0, 1.0])
    if how.get("loss") == "huber":
        given["labels"] = np.array([3.0, -0.5])
    learned = learn(**given, epochs=1, rate=0.3, **how)
    assert learned.error <= limit
    rules = {name: value for name, value in how.items() if name in ("loss", "activation")}
    assert against_torch(learned, given, rate=0.3, at_once=how.get("batch") == "all", **rules) <= limit


def test_the_paper_design() -> None:
    given = task(1, points=1, hidden=(2,))
    learned = learn(**given, epochs=1, rate=0.5, design="paper")
    assert len(learned.machine.model.shapes) == 13
    assert learned.error <= 5e-12
    assert predict(learned, given["features"], design="paper").error <= 5e-12


def test_errors_do_not_grow_over_twenty_epochs() -> None:
    """The short version; sixty epochs are in test_learning_soak.py."""
    given = task(1, points=1)
    learned = learn(**given, epochs=20, rate=0.02)
    assert learned.epochs == 20
    # the first error alone may be small by chance
    assert learned.errors[-5:].mean() <= 10 * learned.errors[:5].mean()
    assert learned.error <= 5e-12


def test_one_standard_machine_learns_any_model_of_its_size() -> None:
    """A linear model, then a network: the same weights, which no program has touched."""
    machine = FleqMachine(functions=STANDARD_FUNCTIONS, size=4, memory=80, instructions=40, range=4.0, heads=3)
    before = machine.weights.digest()
    linear, network = task(3, points=2), task(2, points=2, hidden=(3,))
    assert learn(**linear, epochs=1, machine=machine).error <= 1e-11
    learned = learn(**network, epochs=1, machine=machine)
    assert learned.error <= 1e-11
    assert predict(learned, network["features"], machine=machine).error <= 1e-11
    assert machine.weights.digest() == before


def test_the_default_engine() -> None:
    given = task(1, points=2)
    default, dense = learning.learn(**given, epochs=1), learn(**given, epochs=1)
    assert distance(default.weights, dense.weights) <= 1e-12
    assert default.loops == dense.loops


@pytest.mark.parametrize("design", ["compact", soaked("three-layer"), soaked("paper")])
def test_products_with_the_reach_of_the_range(design: str) -> None:
    """Within their bound, which is below that of a machine's own products by nearly root d."""
    d, generator = 4, np.random.default_rng(0)
    text = f".range 1\n.data\na matrix {d}x{d}\nb matrix {d}x{d}\nc matrix {d}x{d}\nv vector {d}\n.code\n"
    program = punchcard.assemble(text + "c = mul(a, b)\nv = hadamard(a[0], b[0])\nhalt\n", "fleq")
    blocks = [MatrixProduct(MUL, 3, 1.0), EntrywiseProduct(HADAMARD, 3, 1.0)]
    machine = punchcard.build(program, blocks=blocks, heads=3, design=design)
    own = punchcard.build(program, heads=3, design=design)
    for name in ("mul", "hadamard"):
        assert machine.bound(name) < 0.75 * own.bound(name)
    for _ in range(5):
        a = generator.uniform(-1, 1, (d, d)) / 2
        b = generator.uniform(-1, 1, (d, d)) / 2
        filled = replace(program, values={**program.values, "a": a, "b": b})
        assert punchcard.run(filled, machine).agrees


# What a run gives


@pytest.fixture(scope="module")
def learned() -> Learned:
    given = task(2, points=3, seed=1)
    return learn(**given, epochs=3, rate=0.2, feature_names=("p", "q"), target_names=("y",))


def test_history_and_losses(learned: Learned) -> None:
    given = task(2, points=3, seed=1)
    assert learned.epochs == len(learned.history) == len(learned.losses) == len(learned.errors) == 3
    assert not learned.interrupted
    assert learned.weights is learned.history[-1]
    _, losses = torch_descend(given["weights"], given["features"], given["labels"], epochs=3, rate=0.2)
    assert np.abs(learned.losses - losses).max() < 1e-11
    x, y = given["features"], given["labels"]
    initial = np.mean((x @ given["weights"]["W1"][:, 0] + given["weights"]["b1"] - y) ** 2) / 2
    assert abs(learned.initial_loss - initial) < 1e-15
    one = learn(**given, epochs=1, rate=0.2, range=learned.machine.range)  # ends with the weights of the first epoch
    assert all(np.array_equal(one.weights[name], value) for name, value in learned.history[0].items())


def test_the_program_runs_by_itself(learned: Learned) -> None:
    """Its text, assembled and run with every instruction audited, gives the same weights in as many loops."""
    program = punchcard.assemble(learned.text, "fleq")
    assert program == learned.program
    report = punchcard.run(program, learned.machine, engine=ENGINE)
    assert report.agrees
    assert report.result.loops == learned.loops
    first = learned.model.network.from_memory(report.result.memory)
    assert all(np.array_equal(first[name], value) for name, value in learned.weights.items())


def test_progress_and_interruption() -> None:
    stages: list[Stage] = []
    given = task(1, points=2)
    whole = learn(**given, epochs=2, progress=stages.append)
    assert stages[-1].loops == stages[-1].all_loops == whole.loops
    assert [stage.loops for stage in stages] == sorted(stage.loops for stage in stages)
    assert {stage.epoch for stage in stages} == {0, 1, 2}
    asked = iter([False] * 30 + [True])
    part = learn(**given, epochs=2, interrupted=lambda: next(asked))
    assert part.interrupted
    assert part.epochs == 1
    assert part.loops == 31
    assert distance(part.weights, whole.history[0]) == 0


def test_predictions_are_computed_on_the_transformer(learned: Learned) -> None:
    points = np.random.default_rng(7).uniform(-1, 1, (4, 2))
    found = predict(learned, points)
    wanted = outputs({k: torch.tensor(v) for k, v in learned.weights.items()}, torch.tensor(points), "sigmoid")
    assert found.values.shape == (4,)
    assert np.abs(found.values - wanted.numpy()[:, 0]).max() < 1e-11
    assert found.error < 1e-11
    assert found.loops == 4 * 4 + 2
    with pytest.raises(PunchcardError, match="points with 3 features: the model has 2"):
        predict(learned, np.ones((2, 3)))


def test_data_of_one_size_share_a_machine() -> None:
    """The range is a power of two, so the weights do not tell one data set from another."""
    generator = np.random.default_rng(5)
    machines = [learn(generator.uniform(-1, 1, (2, 1)), generator.uniform(-1, 1, 2), hidden=2, epochs=1).machine
                for _ in range(2)]
    assert machines[0].range == machines[1].range == 2.0
    assert machines[0].weights.digest() == machines[1].weights.digest()


def test_several_outputs() -> None:
    generator = np.random.default_rng(2)
    x, y = generator.uniform(-1, 1, (2, 2)), generator.uniform(-1, 1, (2, 2))
    learned = learn(x, y, hidden=2, epochs=1)
    assert learned.error < 1e-11
    assert learned.weights["W2"].shape == (2, 2)
    assert predict(learned, x).values.shape == (2, 2)


def test_standardised_data() -> None:
    """Features and labels far from 1 are scaled on the way in and out; the slope is that of the raw data."""
    x = np.array([[100.0], [200.0], [300.0], [400.0]])
    learned = learn(x, 5 * x[:, 0] + 1000, epochs=4, rate=0.3, standardize=True)
    assert learned.machine.range < 4
    found = predict(learned, x).values
    assert np.abs(found - (5 * x[:, 0] + 1000)).max() < 50
    labels = np.array([0.0, 0.0, 1.0, 1.0])
    logistic = learn(x, labels, epochs=2, rate=1.0, loss="logistic", standardize=True)
    assert logistic.model.outputs is None
    assert np.array_equal(predict(logistic, x).values > 0.5, labels > 0)


# Files


@pytest.mark.parametrize("how", [{"loss": huber(0.5), "terms": 32, "standardize": True}, {"bias": False, "hidden": 2}])
def test_a_model_is_saved_whole(how: dict[str, Any], tmp_path: Path) -> None:
    given = task(2, points=2)
    del given["weights"], given["hidden"]
    learned = learn(**given, epochs=1, feature_names=("p", "q"), target_names=("y",), **how)
    learned.model.save(tmp_path / "model.safetensors")
    again = Model.load(tmp_path / "model.safetensors")
    assert [p.name for p in tmp_path.iterdir()] == ["model.safetensors"]
    assert again.feature_names == ("p", "q")
    assert again.network.hidden == learned.model.network.hidden
    assert again.network.loss.limit == learned.model.network.loss.limit
    points = given["features"]
    assert np.array_equal(predict(tmp_path / "model.safetensors", points).values, predict(learned, points).values)


def test_code_of_one_s_own_is_not_saved(tmp_path: Path, learned: Learned) -> None:
    with pytest.raises(StorageError, match=r"cannot write .*: Is a directory"):
        learned.model.save(tmp_path)
    own = learning.Loss("own", lambda o, y: o - y, lambda o, y: np.ones_like(o))
    network = learning.plan([[1.0]], [1.0], epochs=1, loss=own).network
    with pytest.raises(StorageError, match="loss 'own' is code of your own"):
        Model(network, network.initial(0)).save(tmp_path / "own.safetensors")


# Refusals


@pytest.mark.parametrize(("change", "message"), [
    ({"labels": [1.0]}, "4 points and 1 labels: there must be a label for each point"),
    ({"features": [[1.0, np.nan]] * 4}, "features: row 0, column 1 is nan: all must be finite"),
    ({"features": "abc"}, "features=.*: it must be an array of real numbers, in rows of equal length"),
    ({"features": np.zeros((2, 2, 2))}, r"features of the shape \(2, 2, 2\): give a matrix with a row for each point"),
    ({"epochs": 0}, "epochs=0: it must be 1 or more"),
    ({"batch": 4}, "learn: batch=4: it must be 'point' or 'all'"),
    ({"loss": "hinge"}, "unknown loss 'hinge': there are squared, huber, logcosh, logistic"),
    ({"activation": "sigmod"}, r"unknown activation 'sigmod' \(did you mean 'sigmoid'\?\)"),
    ({"loss": "logistic", "labels": [0, 1, 2, 1]}, "label 2: the logistic loss takes labels 0 and 1"),
    ({"rate": 40.0, "epochs": 60}, "learning diverges"),
    ({"range": 0.5}, r"range=0\.5: values up to 1 occur; declare 1\.01 or more"),
    ({"size": 2}, "size=2: the network needs 3: 2 features and the constant"),
    ({"hidden": 9, "size": 8}, "size=8: the network needs 9: its layers have 9, 1 units"),
    ({"machine": "standard", "heads": 2}, "heads: options are for building a machine, but a machine is given"),
    ({"machine": "standard", "activation": "relu", "hidden": 2}, "calls 'relu', which the machine does not have"),
    ({"activation": "relu", "hidden": 2, "precision": "float32", "range": 64.0},
     "step, the slope of relu, within ±64: this number format holds it up to ±8"),
])
def test_refusals(change: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"features": xor()[0], "labels": xor()[1], "epochs": 1} | change
    if given.get("machine") == "standard":
        given["machine"] = FleqMachine(functions=STANDARD_FUNCTIONS, size=4, memory=64, instructions=32)
    with pytest.raises(PunchcardError, match=message):
        learn(**given)


@pytest.mark.parametrize("engine", ["dense", soaked("lowered")])
def test_a_value_that_leaves_the_range_is_named(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program is planned for ±1, and its weight grows to 1.5: the run says which instruction did it, and when."""
    monkeypatch.setattr("punchcard.learning.planning.range_for", lambda largest, declared: 1.0)
    with pytest.raises(ProgramError, match=r"instruction 6 in loop \d+: 'V1' became 1\.\d+, beyond the declared range ±1"):
        learning.learn([[1.0]], [0.9], weights={"W1": [[0.95]], "b1": [-0.9]}, epochs=12, rate=0.5, engine=engine)


def test_a_run_of_another_length_is_made_again_loop_by_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A counter that is not an integer ends the program early; only a look at every loop sees it."""
    real = FleqMachine.punch

    def punch(machine: FleqMachine, program: FleqProgram) -> torch.Tensor:
        card = real(machine, program)
        counter = next(v.address for v in program.variables if v.name == "n0")
        machine.layout.get(card, "data", "memory")[0, counter] += 1.2
        return card

    monkeypatch.setattr(FleqMachine, "punch", punch)
    with pytest.raises(ProgramError, match=r"instruction 11 \(epoch\) in loop 13: the flag 'n0' is 1\.2: a flag must be an"):
        learning.learn([[0.5]], [0.5], epochs=2, range=4.0, engine="scratchpad")


# The page


@pytest.mark.parametrize(("hidden", "heading"), [((), "## Linear SGD"), ((4,), "## Backpropagation")])
def test_the_programs_of_the_page_are_the_ones_that_run(hidden: tuple[int, ...], heading: str) -> None:
    """Every line of the listing is a line of the program, in its order."""
    listing = PAGE[PAGE.index(heading):].split("\n    load:")[1].split("\n\n")[0]
    shown = [" ".join(line.split("#")[0].split()) for line in f"load:{listing}".splitlines()]
    text = disassemble(learning.plan([[1.0, 2.0], [0.5, 1.0]], [1.0, 0.0], hidden=hidden, epochs=2).program)
    lines = [" ".join(line.split()) for line in text.split(".code")[1].splitlines()]
    places = [lines.index(line) for line in shown if line and line != "..."]
    assert places == sorted(places)
    assert lines[places[0]:places[0] + 9] == shown[:9]


def test_the_page_names_real_tests() -> None:
    tests = "".join(path.read_text() for path in Path(__file__).parent.glob("*.py"))
    names = re.findall(r"`(test_\w+)`", PAGE)
    assert names
    for name in names:
        assert f"def {name}(" in tests, name
