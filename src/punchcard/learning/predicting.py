"""`predict`: the outputs of a learned model, computed on the transformer."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from punchcard.arguments import checked
from punchcard.errors import PunchcardError
from punchcard.learning.model import Model
from punchcard.learning.programs.reference import outputs
from punchcard.learning.programs.sgd import prediction_program
from punchcard.learning.session import RunOptions, check_size, machine_for, range_for, run_whole
from punchcard.learning.training import Learned
from punchcard.machines.fleq.designs.base import check_room
from punchcard.machines.fleq.isa import Array, FleqProgram
from punchcard.machines.fleq.machine import FleqMachine


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
    check_size(options)
    check_room(network.size, len(x) + sum(network.sizes))
    expected, largest = outputs(network, known.weights, x)
    limit = range_for(largest, options.get("range"))
    written = prediction_program(network, network.to_memory(known.weights), network.inputs(x), limit=limit)
    machine = machine_for(written.program, network, options)
    ran = run_whole(machine, written, options)
    if ran.interrupted:
        raise PunchcardError(f"interrupted after {ran.loops:,} of {written.loops:,} loops")
    values = ran.memory["P"].T
    error = float(np.abs(values - expected).max() / (np.abs(expected).max() or 1.0))
    if known.outputs is not None:
        values = known.outputs.undo(values)
    return Prediction(values[:, 0] if network.outputs == 1 else values, error, ran.loops, written.program, machine,
                      ran.engine)
