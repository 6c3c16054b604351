"""A film in an SVG: what an element looks like in each frame, as CSS animations that run for ever.

An element's look in each frame is a piece of CSS. Elements that look the same at all times share a class. Readers who ask
for less motion see one frame, the poster.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

CALM = "@media (prefers-reduced-motion: reduce){*{animation:none!important}}"


class Film:
    """Frames with their seconds; `poster` is the number of the one that stands for all."""

    def __init__(self, seconds: Sequence[float], poster: int) -> None:
        self.seconds, self.poster = list(seconds), poster
        self.whole = sum(self.seconds)
        self.starts = [0.0, *accumulate(self.seconds)]
        self.classes: dict[tuple[str, ...], str] = {}
        self.rules: list[str] = []

    def looks(self, frames: Sequence[str]) -> str:
        """The class of elements that look so, a piece of CSS for each frame."""
        key = tuple(frames)
        if key not in self.classes:
            name = self.classes[key] = f"l{len(self.classes)}"
            changes = [i for i in range(len(key)) if i == 0 or key[i] != key[i - 1]]
            steps = "".join(f"{self.percent(self.starts[i])}{{{key[i]}}}" for i in changes)
            self.rules += [f"@keyframes {name}{{{steps}}}",
                           f".{name}{{{key[self.poster]};animation:{name} {self.whole:g}s step-end infinite}}"]
        return self.classes[key]

    def shown(self, frames: Sequence[bool]) -> str:
        """The class of elements that are there in some frames."""
        return self.looks([f"opacity:{int(there)}" for there in frames])

    def travels(self, frames: Sequence[bool]) -> str:
        """The class of elements that go along their `offset-path` in these frames, and are not there in others."""
        key = ("travels", *map(str, frames))
        if key not in self.classes:
            name = self.classes[key] = f"t{len(self.classes)}"
            steps = ["0%{offset-distance:0%;opacity:0}"]
            for start, seconds, there in zip(self.starts, self.seconds, frames, strict=False):
                if there:
                    arrives = start + 0.75 * seconds
                    steps += [f"{self.percent(start)}{{offset-distance:0%;opacity:0}}",
                              f"{self.percent(start + 0.01)}{{offset-distance:0%;opacity:1}}",
                              f"{self.percent(arrives)}{{offset-distance:100%;opacity:1}}",
                              f"{self.percent(arrives + 0.01)}{{offset-distance:100%;opacity:0}}"]
            self.rules += [f"@keyframes {name}{{{''.join(steps)}}}",
                           f".{name}{{opacity:0;animation:{name} {self.whole:g}s linear infinite}}"]
        return self.classes[key]

    def percent(self, seconds: float) -> str:
        return f"{100 * seconds / self.whole:.4g}%"

    @property
    def style(self) -> str:
        return "\n".join([*self.rules, CALM])
