"""Sums of sigmoids of a scalar: two live keys with scores x and 0 have the weights sigmoid(x) and the rest."""

from __future__ import annotations

from punchcard.machines.fleq.blocks.bench import Bench, Constant, ScratchColumn, all_but
from punchcard.machines.fleq.blocks.fit import SigmoidSum
from punchcard.machines.fleq.blocks.transport import Share, Transport, outputs
from punchcard.transformer.build import Part, assign
from punchcard.transformer.expression import Expression, relu, stack
from punchcard.transformer.gate import gated


class Terms(Transport):
    """A sum of m sigmoids of a scalar: term column k computes sigmoid(w_k x + b_k), by the same two live keys."""

    soft = True
    live_constants = True

    def __init__(self, name: str, fit: SigmoidSum) -> None:
        self.name = f"terms_{name}"
        self.fit = fit
        self.terms = len(fit.weights)

    def columns(self, d: int) -> tuple[ScratchColumn, ...]:
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

    def prepare(self, bench: Bench) -> Part:
        """The score w_k x + b_k in term column k."""
        x, one = bench.operand[0], bench.one
        forms = stack(*(float(w) * x + float(b) * one for w, b in zip(self.fit.weights, self.fit.biases, strict=True)))
        closed = bench.off(self.name) + bench.rows(self._mask)
        return assign(bench.rows(f"{self.name}_score"), gated(forms, closed, bench.gate * 2.0**20).total())

    def shares(self, bench: Bench) -> list[Share]:
        unit = bench.rows("unit")
        return [Share(bench.rows(f"{self.name}_score"), unit, unit, bench.rows(f"{self.name}_weight"))]

    def finish(self, bench: Bench, off: Expression) -> Expression:
        """m c_k sigmoid(w_k x + b_k) + constant in term column k; the m columns are averaged when they are written."""
        closed = off + bench.rows(self._mask)
        weight = bench.rows(f"{self.name}_weight").repeat(self.terms)
        terms = relu(weight - bench.gate * closed).total(self.terms * self.fit.coefficients)
        return terms + self.fit.constant * relu(bench.one.repeat(self.terms) - bench.gate * closed).total()
