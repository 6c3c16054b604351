"""Claims, what was proven of a machine and how long it took; and all of them as a file that can be checked again."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from punchcard.errors import ProofError
from punchcard.files import read_limited, write_atomic
from punchcard.proof.arithmetic import LEMMAS, show_lemma
from punchcard.proof.counterexample import Counterexample
from punchcard.proof.solver import Solver

FORMAT = "punchcard proof"
VERSION = 1
FIELDS = ("format", "version", "machine", "title", "weights", "solver", "facts", "promises", "claims", "seconds", "proven",
          "failed", "counter_example")
CLAIM_FIELDS = "name", "about", "questions", "seconds"
EXAMPLE_FIELDS = "claim", "card", "told", "differences", "broken", "layers"
"""What a file has, and nothing else."""
AGAIN = "make the certificate again with `punchcard prove -o FILE`"
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
    """The claims proven so far."""

    def __init__(self, solver: Solver, progress: Progress | None = None) -> None:
        self.proven: list[Claim] = []
        self.solver, self._progress = solver, progress

    def lemma(self, name: str) -> None:
        """Prove a lemma on integers, where it was not proven before."""
        if all(claim.name != f"lemma: {name}" for claim in self.proven):
            with self.claim(f"lemma: {name}", LEMMAS[name].about):
                self.solver.questions += show_lemma(name)

    def add(self, claims: Iterable[Claim], questions: int) -> None:
        """Note claims that were proven elsewhere, by so many questions."""
        self.solver.questions += questions
        for claim in claims:
            if self._progress is not None:
                self._progress(claim.name, self.solver.questions)
            self.proven.append(claim)

    @contextmanager
    def claim(self, name: str, about: str | Callable[[], str]) -> Iterator[None]:
        """What is done within shows the claim, or raises `Failed`."""
        if self._progress is not None:
            self._progress(name, self.solver.questions)
        begin, asked = time.perf_counter(), self.solver.questions
        yield
        told = about() if callable(about) else about
        self.proven.append(Claim(name, told, self.solver.questions - asked, time.perf_counter() - begin))


@dataclass(frozen=True)
class Certificate:
    """All claims about one machine, or the first that failed.

    machine   which machine: what `machine.describe()` says
    digest    SHA-256 of its weights
    facts     what is taken for granted when a loop begins, and proven again when it ends
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
        """Whether every claim was proven."""
        return self.failed is None

    def __repr__(self) -> str:
        state = f"{len(self.claims)} claims proven" if self.proven else f"failed: {self.failed}"
        return f"<Certificate of {self.title}: {state}, {self.seconds:.1f} s>"

    def __str__(self) -> str:
        lines = [self.title, ""]
        lines += [f"{claim.seconds:8.2f} s  {claim.name}: {claim.about}" for claim in self.claims]
        lines += ["", f"{len(self.claims)} claims proven in {self.seconds:.1f} s, for every card on which the facts hold"]
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
        write_atomic(path, json.dumps(self.describe(), indent=1) + "\n")


def load_certificate(path: str | Path) -> dict[str, Any]:
    """A certificate's plain data, from a file. Fields that are unknown, missing or given twice are refused by name."""
    source = repr(str(path))
    text = read_limited(path, "certificate", error=ProofError)
    try:
        found = json.loads(text, object_pairs_hook=partial(_unique, source))
    except (ValueError, RecursionError) as error:
        raise ProofError(f"{source} is not a certificate: it is not JSON ({error})") from None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise ProofError(f"{source} is not a certificate: its format is not {FORMAT!r}")
    if not _same(found.get("version"), VERSION):
        raise ProofError(f"{source} is a certificate of version {found.get('version')!r}: this is version {VERSION}")
    check_fields(found, source)
    return found


def _unique(source: str, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ProofError(f"{source} has the field {next(n for n in names if names.count(n) > 1)!r} twice: {AGAIN}")
    return found


def check_fields(kept: Mapping[str, Any], source: str) -> None:
    """Refuse plain data that has other fields than a certificate, or costs that are not numbers."""
    _check_names(kept, FIELDS, source)
    claims, example = kept["claims"], kept["counter_example"]
    if not isinstance(claims, list) or not all(isinstance(claim, dict) for claim in claims):
        raise ProofError(f"{source} is not a certificate: its claims are not a list of objects")
    if example is not None and not isinstance(example, dict):
        raise ProofError(f"{source} is not a certificate: its counter_example is neither an object nor null")
    for number, claim in enumerate(claims, start=1):
        _check_names(claim, CLAIM_FIELDS, f"claim {number} of {source}")
        _check_cost(claim, "questions", f"claim {number} of {source}", int)
        _check_cost(claim, "seconds", f"claim {number} of {source}", int, float)
    if example is not None:
        _check_names(example, EXAMPLE_FIELDS, f"the counter_example of {source}")
    _check_cost(kept, "seconds", source, int, float)


def _check_names(kept: Mapping[str, Any], names: Sequence[str], source: str) -> None:
    if unknown := [name for name in kept if name not in names]:
        raise ProofError(f"{source} has the field {unknown[0]!r}, which this version does not know: {AGAIN}")
    if missing := [name for name in names if name not in kept]:
        raise ProofError(f"{source} lacks the field {missing[0]!r}: {AGAIN}")


def _check_cost(kept: Mapping[str, Any], name: str, source: str, *types: type) -> None:
    value = kept[name]
    if type(value) not in types or not 0 <= value < math.inf:
        raise ProofError(f"{source}: {name} is {json.dumps(value)[:60]}: it must be a number, 0 or more")


@dataclass(frozen=True)
class Verification:
    """What became of a certificate when its proof was repeated.

    certificate    the proof as it came out now
    disagreements  where the one that was kept says something else; empty: it is confirmed
    notes          what differs and decides nothing: another solver, another number of queries, another counterexample
    """

    certificate: Certificate
    disagreements: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def confirmed(self) -> bool:
        """Whether the kept certificate says what the proof said now."""
        return not self.disagreements

    def describe(self) -> dict[str, list[str]]:
        """As plain data, beside the certificate."""
        return {"disagreements": list(self.disagreements), "notes": list(self.notes)}

    def __str__(self) -> str:
        state = "confirmed" if self.confirmed else f"not confirmed: {'; '.join(self.disagreements)}"
        return "".join([state, *(f" ({note})" for note in self.notes)])


def compare(kept: Mapping[str, Any], now: Certificate) -> Verification:
    """Compare a certificate that was kept, as plain data, with one that was made just now, field by field.

    All that is claimed must be the same. What is not claimed is a note: another solver, another number of queries, and
    another counterexample, since a solver finds any of many. Times differ from run to run.
    """
    fresh = json.loads(json.dumps(now.describe()))
    compared = [name for name in FIELDS if name not in ("claims", "seconds", "solver", "counter_example", "proven")]
    found = [_differ(name) for name in compared if not _same(kept[name], fresh[name])]
    said = [[(_text(claim["name"]), _text(claim["about"])) for claim in each] for each in (kept["claims"], fresh["claims"])]
    found += [f"the claim {name} is not proven" for name, about in said[0] if (name, about) not in said[1]]
    found += [f"the claim {name} is not in the file" for name, about in said[1] if (name, about) not in said[0]]
    if not found and said[0] != said[1]:
        found.append("the claims are in another order, or some of them twice")
    examples = [each["counter_example"] for each in (kept, fresh)]
    if not _same(*(None if example is None else [example["claim"]] for example in examples)):
        found.append(_differ("counter_example"))
    if kept["proven"] is not fresh["proven"]:
        found.append(f"the file says that it is {'' if kept['proven'] else 'not '}proven")
    notes = []
    if not _same(kept["solver"], fresh["solver"]):
        notes.append(f"the file names the solver {_text(kept['solver'])}, this is {_text(fresh['solver'])}")
    asked = [sum(claim["questions"] for claim in each["claims"]) for each in (kept, fresh)]
    if asked[0] != asked[1]:
        notes.append(f"the file counts {asked[0]} queries, this proof took {asked[1]}")
    if not found and not _same(*examples):
        notes.append("the file has another counterexample")
    return Verification(now, tuple(found), tuple(notes))


def _differ(name: str) -> str:
    return f"{name}: the file and this proof differ"


def _same(one: object, other: object) -> bool:
    """Whether two values are the same JSON: True is not 1 there, and 1 is not 1.0."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _text(value: object) -> str:
    return repr(value) if isinstance(value, str) else json.dumps(value)
