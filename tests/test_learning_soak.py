"""The long checks of learning, `make soak`: whole training runs, epoch by epoch beside PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from punchcard.learning import Learned, learn
from tests.learning_cases import distance, spiral, torch_descend, xor
from tests.test_learning import ENGINE, task

DIABETES_EPOCHS = 20


def diabetes() -> tuple[np.ndarray, np.ndarray]:
    """scikit-learn's diabetes data, ten features of 442 patients, as it comes with the package."""
    from sklearn.datasets import load_diabetes

    found = load_diabetes(scaled=False)
    return np.asarray(found.data, dtype=np.float64), np.asarray(found.target, dtype=np.float64)


def as_torch(learned: Learned, x: np.ndarray, y: np.ndarray, first: dict[str, Any], **how: Any) -> tuple[float, float]:
    """The largest difference of the losses, and of the weights relative to the largest, from torch's after any epoch."""
    history, losses = torch_descend(first, x, y, epochs=learned.epochs, **how)
    return (float(np.abs(learned.losses - losses).max()),
            max(distance(found, wanted) for found, wanted in zip(learned.history, history, strict=True)))


def check_curve(x: np.ndarray, y: np.ndarray, *, epochs: int, seed: int = 0, **how: Any) -> Learned:
    """A network whose loss is PyTorch's within 1e-9 after every epoch."""
    from punchcard.learning import plan

    engine = how.pop("engine", None)
    first = plan(x, y, epochs=1, seed=seed, **how).first
    learned = learn(x, y, epochs=epochs, seed=seed, engine=engine, **how)
    rules = {name: value for name, value in how.items() if name in ("loss", "activation", "rate")}
    loss_error, weight_error = as_torch(learned, x, y, first, **rules)
    print(f"{epochs} epochs, {learned.loops:,} loops, loss {learned.initial_loss:.4g} to {learned.losses[-1]:.4g}: "  # noqa: T201
          f"losses within {loss_error:.1e} of torch, weights {weight_error:.1e}, of NumPy {learned.error:.1e}, range "
          f"{learned.machine.range:.3g}")
    assert loss_error <= 1e-9
    return learned


XOR: dict[str, Any] = {"hidden": 4, "rate": 1.0}
SPIRAL: dict[str, Any] = {"hidden": 8, "rate": 0.3, "activation": "tanh", "loss": "logistic"}


def test_xor_begins_as_in_torch() -> None:
    check_curve(*xor(), epochs=1, engine=ENGINE, **XOR)


def test_diabetes_begins_as_in_numpy() -> None:
    x, y = diabetes()
    learned = learn(x[:6], y[:6], epochs=1, rate=0.01, standardize=True, engine=ENGINE)
    assert learned.machine.sizes.size == 11
    assert learned.error <= 5e-12


@pytest.mark.soak
def test_a_network_learns_xor() -> None:
    learned = check_curve(*xor(), epochs=400, **XOR)
    assert learned.losses[-1] < 1e-3


@pytest.mark.soak
def test_a_network_learns_the_spiral() -> None:
    x, y = spiral()
    learned = check_curve(x, y, epochs=300, **SPIRAL)
    assert learned.losses[-1] < 1e-2
    outputs = learned.model.network.outputs_of(learned.weights, x)[:, 0]
    assert np.array_equal(outputs > 0, y > 0)


@pytest.mark.soak
def test_diabetes() -> None:
    """The loss is that of the same descent in NumPy within 1e-9 after every epoch, and near the least squares."""
    x, y = diabetes()
    learned = learn(x, y, epochs=DIABETES_EPOCHS, rate=0.002, standardize=True)
    network = learned.model.network
    assert learned.model.inputs is not None
    assert learned.model.outputs is not None
    scaled = learned.model.inputs.apply(x), learned.model.outputs.apply(y[:, None])
    wanted = [network.mean_loss(weights, *scaled) for weights in learned.reference]
    difference = np.abs(learned.losses - wanted).max()
    matrix = np.column_stack([np.ones(len(x)), scaled[0]])
    least = np.mean((matrix @ np.linalg.lstsq(matrix, scaled[1], rcond=None)[0] - scaled[1]) ** 2) / 2
    print(f"{learned.loops:,} loops, losses within {difference:.1e} of NumPy, weights {learned.error:.1e}; loss "  # noqa: T201
          f"{learned.losses[-1]:.6f}, least squares {least:.6f}")
    assert difference <= 1e-9
    assert least <= learned.losses[-1] <= 1.03 * least


@pytest.mark.soak
@pytest.mark.parametrize(("d", "hidden"), [(4, ()), (8, ()), (4, (4,)), (8, (8,)), (8, (8, 8))])
def test_sixty_epochs_without_growth(d: int, hidden: tuple[int, ...]) -> None:
    learned = learn(**task(d - 1, points=8, hidden=hidden), epochs=60, rate=0.2 if hidden else 0.1)
    print(f"d = {d}, hidden {hidden}: {learned.loops:,} loops, error {learned.errors[0]:.1e} after the first epoch, "  # noqa: T201
          f"{learned.errors[-1]:.1e} after the last, {learned.error:.1e} at most")
    assert learned.errors[-1] <= 10 * learned.errors[0]
    assert learned.error <= 5e-12
