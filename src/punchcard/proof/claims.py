"""Claims: what was to be shown, whether it was, and how long it took."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from punchcard.proof.arithmetic import LEMMAS, show_lemma
from punchcard.proof.solver import Solver

Progress = Callable[[str, int], None]
"""Called with each claim as it begins, and the number of questions so far."""


@dataclass(frozen=True)
class Claim:
    """Something that holds for every card on which the facts hold."""

    name: str
    about: str
    questions: int
    seconds: float

    def describe(self) -> dict[str, Any]:
        """As plain data."""
        return {"name": self.name, "about": self.about, "questions": self.questions, "seconds": round(self.seconds, 3)}


class Claims:
    """The claims shown so far."""

    def __init__(self, solver: Solver, progress: Progress | None = None) -> None:
        self.shown: list[Claim] = []
        self.solver, self._progress = solver, progress

    def lemma(self, name: str) -> None:
        """Show a lemma on integers, where it was not shown before."""
        if all(claim.name != f"lemma: {name}" for claim in self.shown):
            with self.claim(f"lemma: {name}", LEMMAS[name].about):
                self.solver.questions += show_lemma(name)

    @contextmanager
    def claim(self, name: str, about: str | Callable[[], str]) -> Iterator[None]:
        """What is done within shows the claim, or raises `Failed`."""
        if self._progress is not None:
            self._progress(name, self.solver.questions)
        begin, asked = time.perf_counter(), self.solver.questions
        yield
        told = about() if callable(about) else about
        self.shown.append(Claim(name, told, self.solver.questions - asked, time.perf_counter() - begin))
