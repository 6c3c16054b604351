"""engines.svg: instructions a second of each engine, drawn from the tables in docs/engines.md."""

from __future__ import annotations

import re
from collections import defaultdict

from docs.draw.chart import COLOURS, MARKS, Axis, Chart, Curve, heading, powers
from docs.draw.svg import ROOT, sheet

PAGE = ROOT / "docs" / "engines.md"
LOOKS = {"dense": 4, "scratchpad": 0, "lowered": 1, "python": 5, "numpy": 5, "csr": 3, "c": 2}
NAMES = {"c": "C interpreter", "python": "Python interpreter", "numpy": "NumPy interpreter", "csr": "sparse matrices"}


def figures(kind: str) -> dict[str, list[tuple[float, float]]]:
    """Columns and instructions a second by engine, from the rows of the table that begin so."""
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    row = rf"^\| {re.escape(kind)} \| ([\d,]+) \| (\w+) \| ([\d,.]+) \|"
    for columns, engine, speed in re.findall(row, PAGE.read_text(), re.MULTILINE):
        found[engine].append((float(columns.replace(",", "")), float(speed.replace(",", ""))))
    return found


def chart(title: str, kind: str, ends: tuple[int, int], ticks: list[float]) -> Chart:
    speeds = Axis("", 1, 1e9, powers(0, 9, 3), log=True)
    curves = []
    for engine, points in figures(kind).items():
        colour, mark = COLOURS[LOOKS[engine]], MARKS[LOOKS[engine]]
        curves.append(Curve(NAMES.get(engine, engine), points, colour, mark, dashed=not mark))
    return Chart(title, Axis("columns of the card", *ends, ticks, log=True), speeds, curves,
                 "instructions a second, one thread")


def picture() -> str:
    parts = [*heading("How fast the engines are", "All of them run the same weights on the same card."),
             *chart("SUBLEQ, two-layer, float32", "multiply | two-layer", (40, 90_000),
                    [64, 1024, 16384, 65536]).draw(104, 156, 400, 330),
             *chart("FLEQ, d = 4, float64", "newton | 4 | compact", (120, 1200),
                    [150, 1000]).draw(760, 156, 260, 330)]
    return sheet(1210, 566, "Instructions a second by engine",
                 "SUBLEQ from 64 to 65,536 columns, and FLEQ at 150 and 1,000 columns", parts)
