"""Sums of sigmoids of a number or a vector: two live keys with scores x and 0 have the weights sigmoid(x) and the rest."""

from __future__ import annotations

from punchcard.errors import SizeError
from punchcard.machines.fleq.blocks.fit import SigmoidTerms, largest_score
from punchcard.machines.fleq.blocks.transport import Share, Transport, outputs
from punchcard.machines.fleq.blocks.workspace import Constant, ScratchColumn, Workspace, all_but
from punchcard.transformer.build import Part, assign
from punchcard.transformer.expression import Expression, gated, relu


def scores(fit: SigmoidTerms, x: Expression, one: Expression) -> Expression:
    """x . a_k + b_k for every term, one below the other."""
    return x.through(fit.directions) + one.through(fit.biases[:, None])


def score_gate(gate: float, big: float) -> float:
    """Closes a score, which may be larger than any value: B exceeds all of them, by its choice."""
    return max(gate * 2.0**20, big)


def fitting(name: str, entries: int, d: int) -> None:
    """Refuse an operand that is longer than a column of the machine."""
    if entries > d:
        raise SizeError(f"{name!r} takes a vector of {entries} entries, a machine with size={d} has columns of {d}: "
                        f"build it with size={entries} or more")


class Terms(Transport):
    """A sum of m sigmoids: term column k computes sigmoid(x . a_k + b_k), by the same two live keys.

    Column 0 of a is x: a number, or a vector.
    """

    soft = True
    live_constants = True

    def __init__(self, name: str, fit: SigmoidTerms) -> None:
        self.name = f"terms_{name}"
        self.fit = fit
        self.terms, self.entries = (int(size) for size in fit.directions.shape)

    def largest_score(self, limit: float) -> float:
        return largest_score(self.fit, limit)

    def units(self, d: int) -> int:
        return 2 * self.terms

    def columns(self, d: int) -> tuple[ScratchColumn, ...]:
        fitting(self.name, self.entries, d)
        return tuple(ScratchColumn("term", k, 0) for k in range(self.terms)) + outputs(d)

    def asks(self, column: ScratchColumn, d: int) -> bool:
        return column.kind == "term" and column.index < self.terms

    def gives(self, column: ScratchColumn, d: int) -> bool:
        return self.asks(column, d)

    def constants(self, d: int) -> tuple[Constant, ...]:
        return (Constant(self._mask, self.terms, lambda c: all_but(self.terms, c.index if c.kind == "term" else None)),)

    @property
    def _mask(self) -> str:
        return f"not_term_of_{self.terms}"

    def scratch_rows(self, d: int) -> tuple[tuple[str, int], ...]:
        return ((f"{self.name}_score", 1), (f"{self.name}_weight", 1))

    def prepare(self, work: Workspace) -> Part:
        """The score x . a_k + b_k in term column k."""
        forms = scores(self.fit, work.operand[: self.entries], work.one)
        closed = work.off(self.name) + work.rows(self._mask)
        return assign(work.rows(f"{self.name}_score"), gated(forms, closed, score_gate(work.gate, work.big)).total())

    def shares(self, work: Workspace) -> list[Share]:
        unit = work.rows("unit")
        return [Share(work.rows(f"{self.name}_score"), unit, unit, work.rows(f"{self.name}_weight"))]

    def finish(self, work: Workspace, off: Expression) -> Expression:
        """m c_k sigmoid(x . a_k + b_k) + constant in term column k; the m columns are averaged when they are written."""
        closed = off + work.rows(self._mask)
        weight = work.rows(f"{self.name}_weight").repeat(self.terms)
        terms = relu(weight - work.gate * closed).total(self.terms * self.fit.coefficients)
        return terms + self.fit.constant * relu(work.one.repeat(self.terms) - work.gate * closed).total()
