"""loss-*.svg: loss curves of whole training runs on the transformer, beside PyTorch's.

The figures are in docs/loss-curves.csv, which `python -m benchmarks.loss_curves` measures (some minutes).
"""

from __future__ import annotations

import csv
import math

from docs.draw.chart import COLOURS, Axis, Chart, Curve, heading, powers
from docs.draw.svg import ROOT, sheet

FILE = ROOT / "docs" / "loss-curves.csv"
TITLES = {"diabetes": "Diabetes: least squares, 10 features", "xor": "XOR: a network 2 - 4 - 1",
          "spiral": "Two spirals: a network 2 - 8 - 1"}
Points = list[tuple[float, float]]


def figures(data: str) -> tuple[Points, Points]:
    """By epoch: the loss on the transformer, and PyTorch's."""
    with FILE.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["data"] == data]
    epochs = [float(row["epoch"]) for row in rows]
    return tuple(list(zip(epochs, (float(row[name]) for row in rows), strict=True))  # type: ignore[return-value]
                 for name in ("transformer", "pytorch"))


def decades(values: list[float]) -> Axis:
    """A logarithmic axis around values."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return Axis("", 10.0**low, 10.0**high, powers(low, high, max(1, (high - low) // 4)), log=True)


def picture(data: str) -> str:
    ours, theirs = figures(data)
    apart = [(epoch, max(abs(a - b), 1e-30)) for (epoch, a), (_, b) in zip(ours, theirs, strict=True)]
    last = ours[-1][0]
    x = Axis("epoch", 0, last, [round(last * i / 4) for i in range(5)])
    losses = [y for _, y in ours + theirs]
    near = abs(math.log10(ours[-1][1] / theirs[-1][1])) < 1
    loss = decades(losses) if max(losses) > 30 * min(losses) else Axis("", 0.24, 0.265, [0.24, 0.25, 0.26])
    curves = [Curve("PyTorch", theirs, COLOURS[1], up=-9 if near else 0, width=7, pale=True),
              Curve("transformer", ours, COLOURS[0], up=9 if near else 0)]
    above = Chart(TITLES[data], x, loss, curves, "mean loss")
    below = Chart("How far they are apart", x, decades([y for _, y in apart]), [Curve("", apart, COLOURS[5])],
                  "difference of the losses")
    parts = [*heading("Learning inside a transformer"), *above.draw(96, 126, 340, 250), *below.draw(640, 126, 340, 250)]
    return sheet(1030, 446, f"Loss curve: {TITLES[data]}",
                 f"The loss of {last:g} epochs on the transformer and in PyTorch, and their difference", parts)
