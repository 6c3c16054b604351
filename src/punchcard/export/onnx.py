"""The export to ONNX: one loop, and a run of many loops that ends by itself.

    loop.onnx    card -> next                 one loop
    run.onnx     card, loops -> last, made    at most so many loops, for each card until it has halted

Cards are (batch, rows, columns), and batch and columns may be any number. The loop is written by
`torch.onnx.export(dynamo=True)` from the equation; the run is the same nodes in the body of a Loop (`onnx_run.py`).
"""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from punchcard.arguments import checked
from punchcard.errors import PrecisionError
from punchcard.export.folder import stops, write_folder
from punchcard.export.targets import require
from punchcard.files import write_atomic
from punchcard.machines.base import Machine
from punchcard.transformer.torch_settings import equation_settings

if TYPE_CHECKING:
    from onnx import ModelProto
    from torch import Tensor, nn

LOOP, RUN = "loop.onnx", "run.onnx"
DTYPES = ("float64", "float32", "float16")
"""Number formats that onnxruntime computes the equation in on a CPU."""

OPEN = '''
It needs `onnxruntime` and `safetensors`, and no Punchcard:

```python
import json
import numpy as np
import onnxruntime
from safetensors.numpy import load_file
'''
ABOUT = '''```

`loop.onnx` makes one loop: `card` in, `next` out. Both take any number of cards, and of columns. In `run.onnx` a card
that has halted stays as it is, and `made` says how many loops each card took.
'''
HOW = OPEN + '''
from card_values import decode

machine = json.load(open("machine.json"))
card = load_file("card.safetensors")["card"][None]
run = onnxruntime.InferenceSession("run.onnx", providers=["CPUExecutionProvider"])
last, made = run.run(None, {"card": card, "loops": np.array(10_000)})
print("loops", made[0], decode(last[0], machine["values"]))
''' + ABOUT
ALONE = OPEN + '''
card = np.zeros((1, ROWS, COLUMNS), dtype=np.DTYPE)     # one card, empty
loop = onnxruntime.InferenceSession("loop.onnx", providers=["CPUExecutionProvider"])
print(loop.run(None, {"card": card})[0].shape)
''' + ABOUT


@checked
def model(machine: Machine[Any, Any]) -> ModelProto:
    """The machine as an ONNX model: one loop. It has passed the checker of the package onnx."""
    require("onnx")
    if machine.precision.name not in DTYPES:
        raise PrecisionError(f"onnxruntime does not compute all of the equation in {machine.precision.name}: build the "
                             f"machine in {' or '.join(DTYPES)}")
    import onnx
    import torch

    rows, columns = machine.layout.width, machine.layout.columns
    cards = torch.zeros(2, rows, max(2, columns), dtype=machine.precision.dtype, device="cpu")  # 1 would be a constant
    sizes = {0: torch.export.Dim("batch"), 2: torch.export.Dim("columns", min=2)}
    with _quietly(), torch.no_grad(), equation_settings(cards.device), torch.device("cpu"):
        program = torch.onnx.export(_loop(machine).eval(), (cards,), dynamo=True, dynamic_shapes=(sizes,), verbose=False,
                                    input_names=["card"], output_names=["next"])
    if program is None:
        raise AssertionError("torch.onnx.export gave nothing")
    made = program.model_proto
    for node in made.graph.node:  # the exporter's notes name the files that it was called from
        del node.metadata_props[:]
    onnx.checker.check_model(made, full_check=True)
    return made


@checked
def run_model(machine: Machine[Any, Any], loop: ModelProto | None = None) -> ModelProto:
    """The machine as an ONNX model that makes a run. `loop`: what `model` gave; default: made here."""
    from punchcard.export.onnx_run import run_of

    ends = stops(machine)
    return run_of(model(machine) if loop is None else loop, ends["halting"] + ends["events"])


def _loop(machine: Machine[Any, Any]) -> nn.Module:
    """The equation, without the products of matrices that have no entries."""
    import torch

    class Loop(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = machine.model

        def forward(self, card: Tensor) -> Tensor:
            for layer in self.model.layers:
                card = layer.attend(card)  # type: ignore[operator]
                card = layer.feed_forward(card) if layer.shape.hidden else card + layer.b2  # type: ignore
            return card

    return Loop()


@contextmanager
def _quietly() -> Iterator[None]:
    """The exporter tells of itself, and warns of what is not installed and not needed."""
    logger = logging.getLogger("torch.onnx")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(before)


def write(machine: Machine[Any, Any], program: object, folder: Path) -> None:
    """The files of the folder."""
    loop = model(machine)
    for name, made in ((LOOP, loop), (RUN, run_model(machine, loop))):
        write_atomic(folder / name, made.SerializeToString())
    files = {LOOP: "one loop: `card` in, `next` out", RUN: "a run: `card` and `loops` in, `last` and `made` out"}
    write_folder(machine, program, folder, title="A computer in ONNX", files=files, how=HOW, alone=ALONE, decodes=True)
