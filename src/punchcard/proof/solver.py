"""The solver: what is taken for granted, and what is asked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import z3

from punchcard.proof.forms import Term

QUICK = 0.1
"""So many seconds has the solver that knows everything."""


INTERRUPTED = "interrupted from keyboard"
"""What z3 says where it was stopped by Ctrl-C. Nobody else hears of that."""


def check(solver: Term) -> Term:
    """The answer of a solver of z3. Ctrl-C ends the work, and not just this question."""
    answer = solver.check()
    if answer == z3.unknown and solver.reason_unknown() == INTERRUPTED:
        raise KeyboardInterrupt
    return answer


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
        self._about: list[frozenset[int]] = []
        self._names = Unknowns()
        self.questions = 0
        self._limit = seconds
        self._solver = self._fresh(QUICK)

    def _fresh(self, seconds: float | None) -> Term:
        solver = z3.SolverFor("QF_BV")
        if seconds is not None:
            solver.set("timeout", max(1, int(1000 * seconds)))
        return solver

    def suppose(self, *terms: Term) -> None:
        """From now on these hold."""
        for term in terms:
            term = z3.simplify(term)
            if not z3.is_true(term):
                self.suppositions.append(term)
                self._about.append(self._names.of(term))
                self._solver.add(term)

    def refutes(self, *terms: Term) -> z3.ModelRef | None:
        """None where these cannot hold together; else a case in which they do, with all that is supposed."""
        if not self.possible(*terms):
            return None
        whole = self._fresh(self._limit)
        whole.add(*self.suppositions, *terms)
        return whole.model() if self._check(whole) == z3.sat else None

    def possible(self, *terms: Term) -> bool:
        """Whether these can hold together.

        One solver that knows all suppositions answers most questions at once. For others a new one is made, without the
        suppositions about other words: these decide nothing.
        """
        terms = tuple(z3.simplify(term) for term in terms)
        if any(z3.is_false(term) for term in terms):
            return False
        self.questions += 1
        self._solver.push()
        self._solver.add(*terms)
        answer = check(self._solver)
        self._solver.pop()
        if answer == z3.unknown:
            # An interrupted solver may forget some of what it was told, and then finds more possible than is.
            self._solver = self._fresh(QUICK)
            self._solver.add(*self.suppositions)
            alone = self._fresh(self._limit)
            alone.add(*terms, *self._related(terms))
            answer = self._check(alone)
        return bool(answer == z3.sat)

    def never(self, claim: str, *terms: Term) -> None:
        """Prove a claim: that these do not hold together."""
        model = self.refutes(*terms)
        if model is not None:
            raise Failed(claim, model, *terms)

    def case(self, terms: Sequence[Term], wishes: Sequence[Term]) -> z3.ModelRef:
        """A case in which all terms hold, and as many wishes as can be granted in their order."""
        solver = self._fresh(self._limit)
        solver.add(*self.suppositions, *terms)
        self._check(solver)
        for wish in wishes:
            solver.push()
            solver.add(wish)
            if check(solver) != z3.sat:
                solver.pop()
        self._check(solver)
        return solver.model()

    def _check(self, solver: Term) -> Term:
        answer = check(solver)
        if answer == z3.unknown:
            raise Undecided(solver.reason_unknown())
        return answer

    def _related(self, terms: Iterable[Term]) -> list[Term]:
        """The suppositions that share words with these, or with one that does."""
        names: set[int] = set().union(*(self._names.of(term) for term in terms))
        found = list[Term]()
        left = list(zip(self.suppositions, self._about, strict=True))
        while True:
            near = [term for term, about in left if not names.isdisjoint(about)]
            if not near:
                return found
            found += near
            names.update(*(about for _, about in left if not names.isdisjoint(about)))
            chosen = {term.get_id() for term in near}
            left = [pair for pair in left if pair[0].get_id() not in chosen]

    def holds(self, *terms: Term) -> bool:
        """Whether all of these follow."""
        return not self.possible(z3.Not(z3.And(*terms)))


class Unknowns:
    """The unknowns in terms."""

    def __init__(self) -> None:
        self._found: dict[int, frozenset[int]] = {}
        self._kept: list[Term] = []

    def of(self, term: Term) -> frozenset[int]:
        """The numbers of the unknowns in a term."""
        found = self._found.get(term.get_id())
        if found is None:
            names, seen, pending = set[int](), set[int](), [term]
            while pending:
                each = pending.pop()
                known = self._found.get(each.get_id())
                if known is not None:
                    names |= known
                elif each.get_id() not in seen:
                    seen.add(each.get_id())
                    if z3.is_const(each) and each.decl().kind() == z3.Z3_OP_UNINTERPRETED:
                        names.add(each.get_id())
                    pending += each.children()
            found = frozenset(names)
            self._found[term.get_id()] = found
            self._kept.append(term)  # so that its number stays its own
        return found
