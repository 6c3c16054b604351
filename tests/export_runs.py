"""Machines and programs to export, the cards of their whole runs, and what an exported model must give at every loop."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import punchcard
from punchcard.card.layout import as_tensor
from punchcard.viewer.timeline import Timeline
from tests.cases import EXAMPLES

PRODUCT = "multiply.subleq"
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "subleq paper": (PRODUCT, {"design": "paper", "word_bits": 8}),
    "subleq two-layer": (PRODUCT, {"design": "two-layer", "word_bits": 8}),
    "subleq one-layer": (PRODUCT, {"design": "one-layer", "word_bits": 8}),
    "fleq compact": ("newton.fleq", {"design": "compact"}),
    "fleq three-layer": ("newton.fleq", {"design": "three-layer"}),
    "fleq paper": ("newton.fleq", {"design": "paper"}),
    "von-neumann two-layer": ("von_neumann/hello.asq", {"memory": 64}),
    "riscv three-layer": ("riscv/hi.s", {"memory": 64}),
    "riscv two-layer": ("riscv/hi.s", {"memory": 64, "design": "two-layer"}),
}
"""Every machine and every design."""
LONG = ("fleq three-layer", "riscv two-layer")
"""Left to `make soak`."""
SCRIPT = Path(__file__).with_name("fresh_export.py")
EXACT = [name for name in CASES if not name.startswith("fleq")]
TOLERANCE = 1e-7
"""Of FLEQ, whose soft products turn another order of the same sums into about 1e-9; its bound is larger."""


@cache
def case(name: str) -> tuple[Any, Any]:
    """A machine and a program on it."""
    file, options = CASES[name]
    program = punchcard.load(EXAMPLES / file)
    if file == PRODUCT:
        program = program.with_values({"a": 6, "b": 3})
    return punchcard.build(program, **options), program


@cache
def loops(name: str, most: int = 1 << 20) -> tuple[Tensor, Tensor]:
    """The cards before and after every loop of a whole run: (loops, rows, columns) each.

    Before a loop a host may have served the card; after it the card is what the equation gives, literally.
    """
    machine, program = case(name)
    run, before = Timeline(machine, program, b"", None, near="dense"), list[Tensor]()
    while len(before) < most and run.mark(len(before) + 1).loops > len(before):
        before.append(as_tensor(run.served(len(before)).card))
    with torch.no_grad():
        return torch.stack(before), torch.stack([machine.model(card) for card in before])


def differs(found: Tensor, wanted: Tensor) -> float:
    return float((found - wanted).abs().max())


def opened_elsewhere(folders: dict[str, Path], name: str, python: str = sys.executable) -> dict[str, dict[str, Any]]:
    """What a fresh process without Punchcard says of folders that a case was exported to, by format."""
    given = []
    for kind, folder in folders.items():
        before, after = loops(name)
        np.savez(folder.parent / f"{folder.name}.npz", before=before.numpy(), after=after.numpy())
        given += [kind, str(folder), str(folder.parent / f"{folder.name}.npz")]
    place = next(iter(folders.values())).parent
    clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    # nothing is looked for on the network, and the folder's code is kept beside it
    clean |= {"HF_MODULES_CACHE": str(place / "modules"), "HF_HUB_OFFLINE": "1", "HF_HOME": str(place / "home"),
              "OMP_NUM_THREADS": "1"}
    command = [python, "-I", "-B", str(SCRIPT), *given]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, env=clean, cwd=place)
    assert ran.returncode == 0, ran.stderr
    told = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
    assert [each["kind"] for each in told] == list(folders)
    return {each["kind"]: each for each in told}
