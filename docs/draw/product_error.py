"""product-error.svg: the error of one matrix product on FLEQ against the temperature and the constants.

The figures are in product-error.csv, which `python -m benchmarks.product_error` measures.
"""

from __future__ import annotations

import csv
from collections import defaultdict

from docs.draw.chart import COLOURS, MARKS, Axis, Chart, Curve, heading, powers
from docs.draw.svg import PICTURES, sheet

FILE = PICTURES / "product-error.csv"
NAMED = {"1 head": (6e-4, 1e-6), "2 heads": (3.5e-3, 6e-11), "3 heads": (1.5e-3, 1.2e-14),
         "anchors, C = 18": (1e-6, 2e-5), "anchors, C = 8": (5e-7, 2.5e-3)}
"""Where the name of a curve stands: c, and the error."""
Points = dict[str, list[tuple[float, float]]]


def figures() -> dict[str, Points]:
    """By what the error is measured against, and by product."""
    found: dict[str, Points] = defaultdict(lambda: defaultdict(list))
    with FILE.open(newline="") as file:
        for row in csv.DictReader(file):
            found[row["against"]][row["product"]].append((float(row["value"]), float(row["error"])))
    return found


def picture() -> str:
    found = figures()
    looks = {name: (COLOURS[i], MARKS[i]) for i, name in enumerate(found["c"])}
    errors = Axis("largest error of an entry", 1e-15, 10, powers(-15, 0, 3), log=True)
    constant = Axis("c: scores are c times the product", 1, 2.0**-44, powers(-12, 0, 3), log=True)
    against_c = Chart("The constant c of the soft product", constant, errors,
                      [Curve(name, points, *looks[name], place=NAMED[name]) for name, points in found["c"].items()])
    against_temperature = Chart("The temperature of the hard heads", Axis("temperature", 8, 40, range(8, 41, 8)), errors,
                                [Curve(name, points, looks[name][0]) for name, points in found["temperature"].items()])
    parts = [*heading("How exact is a matrix product made of softmax?",
                      "One FLEQ instruction, 4 × 4 matrices, float64. Large c: softmax is not linear. Small c: rounding."),
             *against_c.draw(96, 156, 470, 330), *against_temperature.draw(680, 156, 330, 330)]
    return sheet(1110, 566, "The error of the matrix product",
                 "Against the constant c, for one, two and three heads and for anchors; and against the temperature", parts)
