"""The solver: what is taken for granted, what is asked, and how long it took."""

from __future__ import annotations

import time
from collections.abc import Sequence

import z3

from punchcard.proof.forms import Term


class Undecided(Exception):
    """The solver gave up, or ran out of the time that it was given."""


class Failed(Exception):
    """A claim that does not hold; `model` is a case, and `why` what holds in every such case."""

    def __init__(self, claim: str, model: z3.ModelRef | None, *why: Term) -> None:
        super().__init__(claim)
        self.claim, self.model, self.why = claim, model, why


class Solver:
    """Questions about words of bits, all under the same suppositions; a supposition holds for all later questions."""

    def __init__(self, seconds: float | None = None) -> None:
        self.suppositions: list[Term] = []
        self.questions = 0
        self.seconds = 0.0
        self._limit = seconds
        self._solver = self._fresh()

    def _fresh(self) -> Term:
        solver = z3.SolverFor("QF_BV")
        if self._limit is not None:
            solver.set("timeout", max(1, int(1000 * self._limit)))
        return solver

    def suppose(self, *terms: Term) -> None:
        """From now on these hold."""
        for term in terms:
            term = z3.simplify(term)
            if not z3.is_true(term):
                self.suppositions.append(term)
                self._solver.add(term)

    def refutes(self, *terms: Term) -> z3.ModelRef | None:
        """None where these cannot hold together; else a case in which they do."""
        terms = tuple(z3.simplify(term) for term in terms)
        if any(z3.is_false(term) for term in terms):
            return None
        self.questions += 1
        begin = time.perf_counter()
        self._solver.push()
        try:
            self._solver.add(*terms)
            answer = self._solver.check()
            if answer == z3.unknown:
                raise Undecided(self._solver.reason_unknown())
            return None if answer == z3.unsat else self._solver.model()
        finally:
            self._solver.pop()
            self.seconds += time.perf_counter() - begin

    def never(self, claim: str, *terms: Term) -> None:
        """Show a claim: that these do not hold together."""
        model = self.refutes(*terms)
        if model is not None:
            raise Failed(claim, model, *terms)

    def case(self, terms: tuple[Term, ...], wishes: Sequence[Term]) -> z3.ModelRef:
        """A case in which all terms hold, and as many wishes as can be granted in their order."""
        self._solver.push()
        try:
            self._solver.add(*terms)
            if self._solver.check() != z3.sat:
                raise Undecided(self._solver.reason_unknown())
            for wish in wishes:
                self._solver.push()
                self._solver.add(wish)
                if self._solver.check() != z3.sat:
                    self._solver.pop()
            self._solver.check()
            return self._solver.model()
        finally:
            self._solver.pop(self._solver.num_scopes())

    def holds(self, *terms: Term) -> bool:
        """Whether all of these follow."""
        return self.refutes(z3.Not(z3.And(*terms))) is None

    def possible(self, *terms: Term) -> bool:
        """Whether these can hold together."""
        return self.refutes(*terms) is not None
