"""Loss curves of whole training runs on the transformer, beside PyTorch's: `python -m benchmarks.loss_curves`.

Writes the figures to docs/loss-curves.csv, which `make pictures` draws, and prints a summary. Needs the dev extra
(scikit-learn).
"""

from __future__ import annotations

import csv
import time
from pathlib import Path
from typing import Any

import numpy as np
from tests.learning_cases import spiral, torch_descend, xor
from tests.test_learning_soak import DIABETES_EPOCHS, SPIRAL, XOR, diabetes

from punchcard.learning import learn, plan

DOCS = Path(__file__).parent.parent / "docs"


def curves() -> dict[str, tuple[np.ndarray, np.ndarray, dict[str, Any]]]:
    """Name, points, labels, and what is learned."""
    return {
        "diabetes": (*diabetes(), {"epochs": DIABETES_EPOCHS, "rate": 0.002, "standardize": True}),
        "xor": (*xor(), {"epochs": 400, **XOR}),
        "spiral": (*spiral(), {"epochs": 300, **SPIRAL}),
    }


def torch_losses(x: np.ndarray, y: np.ndarray, task: dict[str, Any]) -> list[float]:
    """PyTorch's loss after each epoch from the same first weights."""
    planned = plan(x, y, **{**task, "epochs": 1})
    rules = {name: task[name] for name in ("loss", "activation", "rate", "epochs") if name in task}
    return torch_descend(planned.first, planned.x, planned.y, **rules)[1]


def main() -> None:
    rows: list[list[object]] = []
    print("| data | network | epochs | loops | loss before | after | difference from PyTorch | error of the weights | range "
          "| seconds |")
    print("|---" * 10 + "|")
    for name, (x, y, task) in curves().items():
        begin = time.perf_counter()
        learned = learn(x, y, **task)
        seconds = time.perf_counter() - begin
        losses = torch_losses(x, y, task)
        rows += [[name, epoch, repr(float(ours)), repr(theirs), f"{error:.3e}"] for epoch, (ours, theirs, error)
                 in enumerate(zip(learned.losses, losses, learned.errors, strict=True), start=1)]
        sizes = " - ".join(map(str, (learned.model.network.features, *learned.model.network.hidden, 1)))
        print(f"| {name} | {sizes} | {learned.epochs} | {learned.loops:,} | {learned.initial_loss:.4g} | "
              f"{learned.losses[-1]:.4g} | {np.abs(learned.losses - losses).max():.1e} | {learned.error:.1e} | "
              f"{learned.machine.range:.3g} | {seconds:.0f} |", flush=True)
    with (DOCS / "loss-curves.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["data", "epoch", "transformer", "pytorch", "weight_error"], *rows])


if __name__ == "__main__":
    main()
