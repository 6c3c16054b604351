"""A chart on the paper of all pictures: axes with few ticks, curves with their names beside them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from docs.draw.svg import BOLD, FAINT, GRID, INK, NAME, PAPER, SMALL, line, text

COLOURS = ("#1d5fa8", "#c2410c", "#2b7a3d", "#7a3b8f", "#6d6552", "#2a2733")
"""Blue, orange, green, violet, brown, ink: each of another lightness, or with a mark of its own."""
MARKS = ("circle", "square", "diamond", "up", "down", "")


@dataclass(frozen=True)
class Axis:
    """From the low end to the high one, with ticks; `log` for powers."""

    label: str
    low: float
    high: float
    ticks: Sequence[float]
    log: bool = False

    def place(self, value: float) -> float:
        """Between 0 and 1."""
        low, high, at = (math.log(x) if self.log else x for x in (self.low, self.high, value))
        return (at - low) / (high - low)

    def name(self, tick: float) -> str:
        power = math.log10(tick) if self.log else 0.5
        if self.log and round(power, 9).is_integer() and not -2 < power < 5:
            return "10" + "".join("⁻" if c == "-" else "⁰¹²³⁴⁵⁶⁷⁸⁹"[int(c)] for c in str(round(power)))
        return f"{tick:,g}"


@dataclass(frozen=True)
class Curve:
    """Points and their name, which is at the right end, or right of a place of its own; `up` lifts it a little."""

    name: str
    points: Sequence[tuple[float, float]]
    colour: str
    mark: str = ""
    dashed: bool = False
    up: float = 0.0
    place: tuple[float, float] | None = None
    width: float = 2.0
    pale: bool = False


@dataclass(frozen=True)
class Chart:
    """Curves over two axes, in a box."""

    title: str
    x: Axis
    y: Axis
    curves: Sequence[Curve]
    about: str = ""

    def draw(self, left: float, top: float, width: float, height: float) -> Iterator[str]:
        def at(x: float, y: float) -> tuple[float, float]:
            return left + width * self.x.place(x), top + height * (1 - self.y.place(y))

        yield text(left, top - 36, self.title, size=18, more=BOLD)
        yield text(left, top - 14, self.about or self.y.label, size=SMALL, colour=FAINT)
        for tick in self.y.ticks:
            _, y = at(self.x.low, tick)
            yield line(left, y, left + width, y, GRID)
            yield text(left - 8, y + 5, self.y.name(tick), size=SMALL, colour=FAINT, anchor="end")
        yield line(left, top + height, left + width, top + height, FAINT)
        for tick in self.x.ticks:
            x, _ = at(tick, self.y.low)
            yield line(x, top + height, x, top + height + 5, FAINT)
            yield text(x, top + height + 21, self.x.name(tick), size=SMALL, colour=FAINT, anchor="middle")
        yield text(left + width / 2, top + height + 44, self.x.label, size=SMALL, colour=INK, anchor="middle")
        for curve in self.curves:
            places = [at(x, min(max(y, self.y.low), self.y.high)) for x, y in curve.points]
            way = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
            dashes = "stroke-dasharray='2 5' stroke-linecap='round'" if curve.dashed else ""
            yield (f"<path d='{way}' fill='none' stroke='{curve.colour}' stroke-width='{curve.width:g}' "
                   f"stroke-linejoin='round' {dashes} opacity='{0.4 if curve.pale else 1:g}'/>")
            for x, y in places if curve.mark else ():
                yield mark(curve.mark, x, y, curve.colour)
            if curve.name:
                x, y = at(*curve.place) if curve.place else places[-1]
                yield text(x + 10, y + 5 - curve.up, curve.name, size=SMALL, colour=curve.colour, more=BOLD)


def mark(kind: str, x: float, y: float, colour: str) -> str:
    """A point: a shape for each curve, so that nobody needs its colour."""
    ways = {"square": "M-4-4H4V4H-4z", "diamond": "M0-5.5L5.5 0L0 5.5L-5.5 0z", "up": "M0-5L5 4H-5z", "down": "M0 5L5-4H-5z",
            "circle": "M-4.5 0A4.5 4.5 0 1 0 4.5 0A4.5 4.5 0 1 0 -4.5 0z"}
    return f"<path d='{ways[kind]}' transform='translate({x:.1f} {y:.1f})' fill='{colour}' stroke='{PAPER}'/>"


def heading(words: str, about: str = "") -> list[str]:
    """What a sheet of charts begins with."""
    return [text(52, 48, words, size=26, more=BOLD), *([text(52, 76, about, size=NAME, colour=FAINT)] if about else [])]


def powers(low: int, high: int, step: int = 1) -> list[float]:
    return [10.0**k for k in range(low, high + 1, step)]
