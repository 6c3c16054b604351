"""The parts of a proof on many workers: a stage, or a case of one, is proven without the others.

A worker builds the machine again from its description and proves a part. What it has proven is put together in the order of
the proof, so the certificate is that of one process, but for times. A part that fails is proven again here, for its
counterexample.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from punchcard.errors import ProofError
from punchcard.machines.meaning import Case, Stage
from punchcard.proof.certificate import Claim
from punchcard.proof.solver import Failed, Undecided
from punchcard.transformer.weights import Weights

if TYPE_CHECKING:
    from punchcard.machines.base import AnyMachine
    from punchcard.proof.proof import Proof

LEMMA = "lemma: "
_lock = threading.Lock()
"""Threads of one process share a proof, and a solver."""


@dataclass(frozen=True, eq=False)
class Subject:
    """What is proven, for a worker. `weights`: None if they are those of the design; `digest` is theirs in any case."""

    machine_class: type[AnyMachine]
    description: dict[str, Any]
    digest: str
    weights: Weights | None
    seconds: float | None

    @cached_property
    def _key(self) -> tuple[object, ...]:
        return self.machine_class, repr(self.description), self.digest, self.seconds

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Subject) and other._key == self._key

    def __hash__(self) -> int:
        return hash(self._key)


@dataclass(frozen=True)
class PartResult:
    """What a worker has proven of a part. `failed`, `undecided`: why it stopped; `more`: cases that the part has found."""

    claims: tuple[Claim, ...]
    questions: int
    shares: list[list[int]]
    more: tuple[str, ...] = ()
    failed: bool = False
    undecided: str = ""


@lru_cache(maxsize=1)
def _proof(subject: Subject) -> Proof:
    from punchcard.proof.proof import Proof

    machine = subject.machine_class.from_description(subject.description)
    found = Proof(machine, subject.weights, seconds=subject.seconds)
    if found.weights.digest().hex() != subject.digest:
        raise ProofError(f"{machine.title()}: a worker builds other weights than the ones to prove: it has another version")
    return found


def show_part(subject: Subject, stage: int, case: str | None, stated: bool) -> PartResult:
    """Prove a part in a worker. `stated`: the case is one that the stage states, and not one that its meaning found."""
    with _lock:
        return _show_part(_proof(subject), stage, case, stated)


def _show_part(proof: Proof, stage: int, case: str | None, stated: bool) -> PartResult:
    before, asked = len(proof.claims.proven), proof.claims.solver.questions
    failed, undecided, more = False, "", tuple[str, ...]()
    part = proof.stages[stage]
    try:
        proof.show_part(part, next(each for each in part.cases if each.name == case) if stated else case)
        more = tuple(proof.obligation.meaning.cases) if case is None else ()
    except Failed:
        failed = True
    except Undecided as reason:
        undecided = str(reason) or "no answer"
    claims = proof.claims.proven[before:]
    del proof.claims.proven[before:]  # so that a lemma is proven in each part that uses it
    return PartResult(tuple(claims), proof.claims.solver.questions - asked, [list(each) for each in proof.shares], more,
                      failed, undecided)


class ParallelProof:
    """All parts of a proof, given to an executor."""

    def __init__(self, proof: Proof, executor: Executor) -> None:
        machine, weights = proof.machine, proof.weights
        digest = weights.digest().hex()
        own = machine.designed_weights().digest().hex() == digest
        sent = None if own else Weights(weights.width, weights.dtype, weights.layers)
        self.proof, self.executor = proof, executor
        self.subject = Subject(type(machine), machine.describe(), digest, sent, proof.seconds)

    def run(self) -> None:
        """Prove all parts; they are noted in the order of the proof."""
        proof = self.proof
        stages = [(number, stage) for number, stage in enumerate(proof.stages)]
        first = [self._submit(number, None) for number, _ in stages]
        stated = [[self._submit(number, case) for case in stage.cases if proof.wants(case.name)] for number, stage in stages]
        try:
            for (number, stage), beginning, cases in zip(stages, first, stated, strict=True):
                more = self._note(beginning, stage, None)
                found = [(name, self._submit(number, name)) for name in more if proof.wants(name)]
                for case, future in zip((each for each in stage.cases if proof.wants(each.name)), cases, strict=True):
                    self._note(future, stage, case)
                for name, future in found:
                    self._note(future, stage, name)
        finally:
            for future in [*first, *(each for some in stated for each in some)]:
                future.cancel()

    def _submit(self, stage: int, case: Case | str | None) -> Future[PartResult]:
        name = case.name if isinstance(case, Case) else case
        return self.executor.submit(show_part, self.subject, stage, name, isinstance(case, Case))

    def _note(self, future: Future[PartResult], stage: Stage, case: Case | str | None) -> Sequence[str]:
        part, proof = future.result(), self.proof
        if part.failed:
            proof.show_part(stage, case)
            raise ProofError(f"{proof.machine.title()}: a worker refutes a claim that holds here")
        known = {claim.name for claim in proof.claims.proven if claim.name.startswith(LEMMA)}
        proof.claims.add([claim for claim in part.claims if claim.name not in known], part.questions)
        if part.undecided:
            raise Undecided(part.undecided)
        proof.shares = [[max(pair) for pair in zip(*both, strict=True)]
                        for both in zip(proof.shares, part.shares, strict=True)]
        return part.more
