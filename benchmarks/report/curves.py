"""Charts of the report: what was measured with a mark at each point, a bound dashed in the same colour."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from docs.draw.chart import COLOURS, MARKS, Axis, Chart, Curve, heading, powers
from docs.draw.svg import FAINT, SMALL, sheet, text

Points = Sequence[Sequence[float]]
WIDTH, HEIGHT = 360, 290
LEFT, TOP, NAMES = 96, 150, 150
"""Where a chart begins, and the room at its right for names of curves."""
ACROSS, BETWEEN = 2, 130
"""Charts in a row of a sheet, and the room between two rows."""


def decades(label: str, values: Sequence[float], ticks: int = 5) -> Axis:
    """A logarithmic axis around positive values."""
    found = [value for value in values if value > 0 and math.isfinite(value)]
    low, high = math.floor(math.log10(min(found))), math.ceil(math.log10(max(found)))
    high = max(high, low + 1)
    return Axis(label, 10.0**low, 10.0**high, powers(low, high, max(1, math.ceil((high - low) / ticks))), log=True)


def doublings(label: str, values: Sequence[float], most: int = 6) -> Axis:
    """A logarithmic axis with ticks at some of the values, which are powers of two or so."""
    ticks = sorted(set(values))
    step = math.ceil(len(ticks) / most)
    return Axis(label, ticks[0], ticks[-1], ticks[::step], log=True)


def even(label: str, low: float, high: float, ticks: Sequence[float]) -> Axis:
    return Axis(label, low, high, ticks)


def pair(number: int, name: str, found: Points, bound: Points = (), *, mark: bool = True) -> list[Curve]:
    """What was measured, and its bound: the curve with this number on a chart."""
    colour = COLOURS[number % len(COLOURS)]
    curves = [Curve(name, [(x, y) for x, y in found], colour, MARKS[number % len(MARKS)] if mark else "")]
    if bound:
        curves.insert(0, Curve("", [(x, y) for x, y in bound], colour, dashed=True))
    return curves


def spread(curves: Sequence[Curve], y: Axis, height: float = HEIGHT, least: float = 17) -> list[Curve]:
    """The curves with their names moved apart where these would stand on each other."""
    named = sorted((c for c in curves if c.name), key=lambda c: y.place(_end(c, y)))
    lifted: dict[int, float] = {}
    before = -math.inf
    for curve in named:
        at = height * y.place(_end(curve, y))
        put = max(at, before + least)
        lifted[id(curve)] = put - at
        before = put
    beyond = max(0.0, before - height)  # a stack that grew over the top goes down again
    return [replace(c, up=lifted[id(c)] - beyond if lifted[id(c)] > 0 or beyond else 0.0) if c.name else c for c in curves]


def _end(curve: Curve, y: Axis) -> float:
    return min(max(curve.points[-1][1], y.low), y.high)


def charts(title: str, about: str, shown: Sequence[Chart], *, names: float = NAMES, dashed: str = "") -> str:
    """A sheet with charts in rows of two; `dashed` says what dashed lines are."""
    right, down = LEFT + WIDTH + names, HEIGHT + BETWEEN
    parts = heading(title, about)
    for number, chart in enumerate(shown):
        row, place = divmod(number, ACROSS)
        curves = spread(chart.curves, chart.y)
        parts += Chart(chart.title, chart.x, chart.y, curves, chart.about).draw(
            LEFT + place * right, TOP + row * down, WIDTH, HEIGHT)
    bottom = TOP + math.ceil(len(shown) / ACROSS) * down - BETWEEN
    if dashed:
        parts.append(text(52, bottom + 80, f"Dashed: {dashed}", size=SMALL, colour=FAINT))
    return sheet(min(len(shown), ACROSS) * right + 10, bottom + (100 if dashed else 66), title,
                 f"{about} {'; '.join(chart.title for chart in shown)}", parts)
