"""`learn` and `predict`: gradient descent on the transformer, and the outputs of a learned model, compared with NumPy's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Unpack, cast

import numpy as np
from numpy.typing import ArrayLike

from punchcard.arguments import checked
from punchcard.errors import PunchcardError
from punchcard.formatting import plural
from punchcard.learning.model import Model, check_names
from punchcard.learning.planning import LearningPlan, Task, plan
from punchcard.learning.programs.network import Weights
from punchcard.learning.programs.reference import outputs
from punchcard.learning.programs.sgd import prediction_program
from punchcard.learning.session import RunOptions, machine_for, range_for, run_complete
from punchcard.machines.fleq.designs.base import check_room
from punchcard.machines.fleq.isa import Array, FleqProgram, FleqState
from punchcard.machines.fleq.machine import FleqMachine
from punchcard.machines.fleq.text.writer import disassemble
from punchcard.machines.result import Result


@dataclass(frozen=True)
class Stage:
    """The progress of a run: loops made and in all, epochs finished and in all, and the loss after the last epoch."""

    loops: int
    all_loops: int
    epoch: int
    epochs: int
    loss: float


@dataclass(frozen=True)
class Learned:
    """What a run learned.

    model          the network with the last weights; `predict` takes it
    history        the weights after each epoch, by name: W1, b1, W2, b2, ...
    losses         the mean loss over all points after each epoch, `initial_loss` before the first; evaluated in NumPy
                   from the weights that the transformer computed
    errors         after each epoch, the largest difference from the same algorithm in NumPy, over the largest weight
    reference      NumPy's weights after each epoch
    loops          passes of the transformer, each executing one instruction; `loops_per_point` of them for a point
    largest        the largest value in NumPy's run, by which the host chose the range
    """

    model: Model
    history: list[Weights] = field(repr=False)
    losses: Array
    initial_loss: float
    errors: Array
    reference: list[Weights] = field(repr=False)
    loops: int
    loops_per_point: int
    program: FleqProgram = field(repr=False)
    machine: FleqMachine = field(repr=False)
    engine: str
    interrupted: bool
    largest: float

    def __repr__(self) -> str:
        last = self.losses[-1] if len(self.losses) else self.initial_loss
        return (f"<Learned in {plural(self.epochs, 'epoch')}, {plural(self.loops, 'loop')} on the {self.engine} engine"
                f"{', interrupted' * self.interrupted}: loss {self.initial_loss:.4g} to {last:.4g}, error {self.error:.2g}; "
                f"{self.model!r}>")

    @property
    def weights(self) -> Weights:
        return self.model.weights

    @property
    def epochs(self) -> int:
        """Epochs that were finished."""
        return len(self.history)

    @property
    def error(self) -> float:
        """The largest error after any epoch."""
        return float(self.errors.max(initial=0.0))

    @property
    def host(self) -> str:
        """What the host did before the transformer ran."""
        return (f"NumPy ran the same algorithm first: values up to {self.largest:.4g}, range "
                f"{self.program.range:g}")

    @property
    def text(self) -> str:
        """The program as `.fleq` text, data included. Functions beyond the built-in ones must be declared to assemble it."""
        return disassemble(self.program)


class LearnOptions(Task, RunOptions, total=False):
    """All options of `learn`: what is learned (`Task`), and how the program is run (`RunOptions`)."""


@checked
def learn(
    features: ArrayLike,
    labels: ArrayLike,
    *,
    feature_names: Sequence[str] = (),
    target_names: Sequence[str] = (),
    progress: Callable[[Stage], None] | None = None,
    rehearsing: Callable[[int], None] | None = None,
    **options: Unpack[LearnOptions],
) -> Learned:
    """Train a linear model, or a network with hidden layers, by gradient descent that runs on the transformer.

        learned = punchcard.learn(x, y, hidden=4, epochs=20)
        punchcard.predict(learned, x).values

    features        an array with a row for each point. Values should be about 1: scale them, or use `standardize=True`
    labels          a number for each point, or a row for each
    feature_names, target_names
                    column names to save with the model
    progress        called with a `Stage` during the run on the transformer
    rehearsing      called with the number of finished epochs while the same algorithm runs in NumPy, which happens first
    options         what to learn: `hidden`, `epochs`, `rate`, `loss`, `activation`, `bias`, `batch`, `standardize`,
                    `weights`, `seed`, `range` (see `Task`); and how to run it: `machine`, `heads`, `precision`, `design`,
                    `size`, `engine`, `terms`, `interrupted` (see `RunOptions`)

    Returns a `Learned`, with the model, the losses, and the errors against NumPy.
    """
    how = cast(RunOptions, options)
    check_room(how.get("size") or 1)  # before NumPy runs
    task = cast(Task, {name: value for name, value in options.items() if name in Task.__annotations__})
    planned = plan(features, labels, rehearsing=rehearsing, **task)
    check_names(planned.network, feature_names, target_names)  # before the work whose result would not take them
    machine = machine_for(planned.program, planned.network, how)
    history, losses, ran = _train(machine, planned, how, progress)
    model = Model(planned.network, history[-1] if history else planned.first, tuple(feature_names), tuple(target_names),
                  planned.inputs, planned.outputs)
    return Learned(
        model, history, np.array(losses[1:]), losses[0], np.array(list(map(_error, history, planned.reference.history))),
        planned.reference.history, ran.loops, planned.written.loops_per_point, planned.program, machine, ran.engine,
        ran.interrupted, planned.reference.largest,
    )


def _train(
    machine: FleqMachine, planned: LearningPlan, how: RunOptions, progress: Callable[[Stage], None] | None
) -> tuple[list[Weights], list[float], Result[FleqState]]:
    """Run the program, which counts its epochs itself; the card is looked at when one ends."""
    network = planned.network
    history: list[Weights] = []
    losses = [network.mean_loss(planned.first, planned.x, planned.y)]

    def tell(loops: int) -> None:
        if progress is not None:
            progress(Stage(loops, planned.written.loops, len(history), planned.epochs, losses[-1]))

    def epoch_ends(loops: int, memory: dict[str, Array]) -> None:
        history.append(network.from_memory(memory))
        losses.append(network.mean_loss(history[-1], planned.x, planned.y))
        tell(loops)

    ran = run_complete(machine, planned.written, how, look=epoch_ends, label="epoch", progress=tell)
    tell(ran.loops)
    return history, losses, ran


def _error(found: Weights, wanted: Weights) -> float:
    """The largest difference, over the largest weight."""
    largest = max(float(np.abs(value).max()) for value in wanted.values())
    return max(float(np.abs(found[name] - value).max()) for name, value in wanted.items()) / (largest or 1.0)


@dataclass(frozen=True)
class Prediction:
    """What `predict` returns.

    values   a number for each point, or a row if the model has several outputs. For the logistic loss: probabilities
    error    the largest difference from NumPy's outputs, divided by the largest output; measured on scaled data
    loops    how often the model was applied
    """

    values: Array
    error: float
    loops: int
    program: FleqProgram = field(repr=False)
    machine: FleqMachine = field(repr=False)
    engine: str


@checked
def predict(model: Model | Learned | str | Path, features: ArrayLike, **options: Unpack[RunOptions]) -> Prediction:
    """Predict labels with a learned model. The prediction is computed on the transformer.

    model      what `learn` returned, its `model`, or the path of a saved model
    features   an array with a row for each point
    options    how to run it: `machine`, `heads`, `precision`, `engine`, ... (see `RunOptions`)

    Returns a `Prediction`: `values` has a number for each point, or a row if the model has several outputs.
    """
    known = Model.load(model) if isinstance(model, str | Path) else model.model if isinstance(model, Learned) else model
    network, x = known.network, known.features(features)
    check_room(options.get("size") or 1)
    check_room(network.size, len(x) + sum(network.sizes))
    expected, largest = outputs(network, known.weights, x)
    limit = range_for(largest, options.get("range"))
    written = prediction_program(network, network.to_memory(known.weights), network.inputs(x), limit=limit)
    machine = machine_for(written.program, network, options)
    ran = run_complete(machine, written, options)
    if ran.interrupted:
        raise PunchcardError(f"interrupted after {ran.loops:,} of {written.loops:,} loops")
    values = ran.memory["P"].T
    error = float(np.abs(values - expected).max() / (np.abs(expected).max() or 1.0))
    if known.outputs is not None:
        values = known.outputs.undo(values)
    return Prediction(values[:, 0] if network.outputs == 1 else values, error, ran.loops, written.program, machine,
                      ran.engine)
