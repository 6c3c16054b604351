"""An exported folder opened by somebody who does not have Punchcard: run as a program of its own, by the folder's page.

    python tests/fresh_export.py FORMAT FOLDER REFERENCE [FORMAT FOLDER REFERENCE ...]

The program of the page is run as it is. Then its model is compared with the reference, the cards before and after every
loop of a run. For each folder a line of JSON says how many loops were compared, the CPU seconds that they took, and
the largest difference.
"""

from __future__ import annotations

import io
import json
import os
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Any

import numpy as np


class NoPunchcard:
    """What finds modules finds none of Punchcard."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name.split(".")[0] == "punchcard":
            raise ImportError("this process has no Punchcard")


def one_loop(kind: str, names: dict[str, Any]) -> Callable[[Any], Any]:
    """The model of a page as a function from card to card, as arrays."""
    if kind == "onnx":
        options = names["onnxruntime"].SessionOptions()
        options.intra_op_num_threads = 1
        session = names["onnxruntime"].InferenceSession("loop.onnx", options, providers=["CPUExecutionProvider"])
        return lambda card: session.run(None, {"card": card[None]})[0][0]
    import torch

    if kind == "safetensors":
        return lambda card: names["loop"](torch.from_numpy(card)).numpy()

    def on_its_side(card: Any) -> Any:
        stream = torch.from_numpy(card).T[None]
        with torch.no_grad():
            after = names["bridge"](stream) if kind == "transformer-lens" else names["model"](stream).last_hidden_state
        return after[0].T.numpy()

    return on_its_side


def compare(kind: str, folder: str, reference: str) -> dict[str, Any]:
    os.chdir(folder)
    sys.path.insert(0, folder)  # as Python does for a program of this folder
    with open("README.md") as page:
        code = page.read().split("```python\n")[1].split("```")[0]
    names: dict[str, Any] = {"__name__": "__page__"}
    with redirect_stdout(io.StringIO()) as told:
        exec(compile(code, "README.md", "exec"), names)
    with np.load(reference) as cards:
        before, after = cards["before"], cards["after"]
    model = one_loop(kind, names)
    given = [np.ascontiguousarray(card) for card in before]
    model(given[0])  # what is prepared in a first call is not timed
    started = time.process_time()
    found = [model(card) for card in given]
    seconds = time.process_time() - started
    differences = [float(np.abs(one.astype(np.float64) - two).max()) for one, two in zip(found, after, strict=True)]
    return {"kind": kind, "loops": len(before), "difference": max(differences), "told": told.getvalue(),
            "torch": "torch" in sys.modules, "seconds": seconds}


if __name__ == "__main__":
    sys.meta_path.insert(0, NoPunchcard())
    given = sys.argv[1:]
    for at in range(0, len(given), 3):
        sys.stdout.write(json.dumps(compare(*given[at : at + 3])) + "\n")
