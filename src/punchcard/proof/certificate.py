"""Claims, what was shown of a machine and how long it took; and all of them as a file that anybody can check again."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from punchcard.errors import ProofError
from punchcard.files import read_whole, write_whole
from punchcard.proof.arithmetic import LEMMAS, show_lemma
from punchcard.proof.counterexample import Counterexample
from punchcard.proof.solver import Solver

FORMAT = "punchcard proof"
VERSION = 1
COMPARED = "weights", "machine", "title", "facts", "promises", "failed"
"""What must be the same when a certificate is checked, beside its claims."""
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


@dataclass(frozen=True)
class Certificate:
    """All claims about one machine, or the first that failed.

    machine   which machine: what `machine.describe()` says
    digest    SHA-256 of its weights
    facts     what is taken for granted when a loop begins, and shown again when it ends
    promises  what is taken for granted in every loop, since a program promises it; a run checks it
    failed    the claim that did not hold, with a card on which it does not, or None
    """

    machine: Mapping[str, Any]
    title: str
    digest: str
    solver: str
    facts: tuple[str, ...]
    promises: tuple[str, ...]
    claims: tuple[Claim, ...]
    seconds: float
    failed: str | None = None
    counterexample: Counterexample | None = None

    @property
    def proven(self) -> bool:
        """Whether every claim was shown."""
        return self.failed is None

    def __repr__(self) -> str:
        state = f"{len(self.claims)} claims shown" if self.proven else f"failed: {self.failed}"
        return f"<Certificate of {self.title}: {state}, {self.seconds:.1f} s>"

    def __str__(self) -> str:
        lines = [self.title, ""]
        lines += [f"{claim.seconds:8.2f} s  {claim.name}: {claim.about}" for claim in self.claims]
        lines += ["", f"{len(self.claims)} claims shown in {self.seconds:.1f} s, for every card on which the facts hold"]
        lines += [f"given that {promise}" for promise in self.promises]
        if self.counterexample is not None:
            lines.append(str(self.counterexample))
        elif self.failed is not None:
            lines.append(f"violated: {self.failed}")
        return "\n".join(lines)

    def describe(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "format": FORMAT, "version": VERSION, "machine": dict(self.machine), "title": self.title, "weights": self.digest,
            "solver": self.solver, "facts": list(self.facts), "promises": list(self.promises),
            "claims": [claim.describe() for claim in self.claims],
            "seconds": round(self.seconds, 3), "proven": self.proven, "failed": self.failed,
            "counter_example": None if self.counterexample is None else self.counterexample.describe(),
        }

    def save(self, path: str | Path) -> None:
        """Write it as JSON."""
        write_whole(path, json.dumps(self.describe(), indent=1) + "\n")


def load_certificate(path: str | Path) -> dict[str, Any]:
    """A certificate's plain data, from a file."""
    try:
        found = json.loads(read_whole(path, "certificate", error=ProofError))
    except (ValueError, RecursionError) as error:
        raise ProofError(f"{str(path)!r} is not a certificate: it is not JSON ({error})") from None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise ProofError(f"{str(path)!r} is not a certificate: it does not say {FORMAT!r}")
    if found.get("version") != VERSION:
        raise ProofError(f"{str(path)!r} is a certificate of version {found.get('version')!r}: this is version {VERSION}")
    claims = found.get("claims")
    if not isinstance(claims, list) or not all(isinstance(claim, dict) for claim in claims):
        raise ProofError(f"{str(path)!r} is not a certificate: its claims are not a list of objects")
    return found


def disagreements(kept: Mapping[str, Any], now: Certificate) -> list[str]:
    """Where a certificate that was kept says something else than one that was made just now."""
    fresh = now.describe()
    found = [f"{name} differ" for name in COMPARED if name not in kept or kept[name] != fresh[name]]
    said = [[(str(claim.get("name")), str(claim.get("about"))) for claim in each]
            for each in (kept["claims"], fresh["claims"])]
    found += [f"the claim {name!r} is not proven" for name, about in said[0] if (name, about) not in said[1]]
    found += [f"the claim {name!r} is not in the file" for name, about in said[1] if (name, about) not in said[0]]
    if not found and said[0] != said[1]:
        found.append("the claims are in another order, or some of them twice")
    if (kept.get("counter_example") is None) is not (fresh["counter_example"] is None):
        found.append("counterexample differ")
    if kept.get("proven") is not fresh["proven"]:
        found.append(f"the file says that it is {'' if kept.get('proven') else 'not '}proven")
    return found
