"""What a section of the report is made of: text, tables and pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

Figures = dict[str, Any]
"""What was measured: numbers, texts, lists and dictionaries, as JSON holds them."""
Say = Callable[[str], None]
"""Hears what is being measured."""


@dataclass
class Shown:
    """A section as it stands on the page. `finding` is its one sentence at the top of the page."""

    title: str
    finding: str
    parts: list[str] = field(default_factory=list)
    pictures: dict[str, str] = field(default_factory=dict)

    def say(self, text: str) -> None:
        """A paragraph; lines are joined."""
        self.parts.append(" ".join(text.split()))

    def heading(self, text: str) -> None:
        self.parts.append(f"### {text}")

    def table(self, headings: Sequence[str], rows: Iterable[Sequence[object]], *, numbers: int = 1) -> None:
        """A table whose columns from `numbers` on are set to the right."""
        marks = ["---" if i < numbers else "---:" for i in range(len(headings))]
        lines = [headings, marks, *rows]
        self.parts.append("\n".join(f"| {' | '.join(map(str, line))} |" for line in lines))

    def picture(self, name: str, about: str, svg: str) -> None:
        """A picture, which is kept as docs/pictures/report-NAME.svg."""
        self.pictures[name] = svg
        self.parts.append(f"![{about}](pictures/report-{name}.svg)")


class Section(Protocol):
    """A file of this folder."""

    def measured(self, quick: bool, say: Say) -> Figures:
        """The figures; `quick`: as few as show that everything runs."""

    def shown(self, figures: Figures) -> Shown:
        """Text and pictures, from the figures alone."""


def short(number: float) -> str:
    """An error or a bound: two digits, 0 as such."""
    return "0" if number == 0 else f"{number:.1e}".replace("e-0", "e-").replace("e+0", "e+")


def within(error: float, bound: float) -> str:
    """An error, in bold type if it is beyond its bound."""
    return short(error) if error <= bound else f"**{short(error)}**"
