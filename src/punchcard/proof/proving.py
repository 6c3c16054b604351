"""One loop of a machine, for every card on which its facts hold: the proof, claim by claim.

    heads    every column finds one column, or shares two, and all others lose by so much that nothing is left of them
    entries  when a later layer begins, every entry is an integer within its limit
    step     after the loop every block holds what the machine's meaning says, or is as it was, or 0
    facts    the facts hold again
    bits     no sum is ever rounded: the number format has the bits that the sums need

So the claims hold after every loop, by induction, for every program and any number of loops. Columns of a region are alike:
one of them, with an unknown number, stands for all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import z3

from punchcard.card.facts import Copies, Holds
from punchcard.card.layout import Layout, RowBlock
from punchcard.machines.base import Machine
from punchcard.proof.claims import Claims, Progress
from punchcard.proof.columns import Column
from punchcard.proof.forms import NOTHING, Form, Term, number, signed
from punchcard.proof.layers import Loop, equal
from punchcard.proof.meaning import Meaning, expected_words
from punchcard.proof.solver import Failed, Solver
from punchcard.transformer.build import LayerWeights
from punchcard.transformer.exactness import needed_bits
from punchcard.transformer.weights import LayerArrays, Weights


class Proof:
    """The claims about one machine. `run` raises `Failed` at the first that does not hold."""

    def __init__(self, machine: Machine[Any, Any], weights: Weights | None = None, *, seconds: float | None = None,
                 progress: Progress | None = None) -> None:
        self.machine, self.layout = machine, machine.layout
        self.weights = weights if weights is not None else machine.weights
        self.solver = Solver(seconds)
        self.claims = Claims(self.solver, progress)
        self.loop = Loop(self.weights, self.layout, self.solver)
        self.meaning = Meaning(self.loop.columns, self.loop)
        self.any = {region.name: self.loop.columns.fresh(region.name, f"any {region.name}") for region in self.layout.regions}
        self.needed = 0
        self._spoilt: Failed | None = None
        """An entry that is not as it should be when a layer begins. What follows may show a card where this matters."""
        self._after: dict[str, dict[str, Term]] = {}

    def run(self) -> None:
        """Show all claims."""
        self.machine.meaning(self.meaning)
        try:
            for layer in range(len(self.loop.layers)):
                self._layer(layer)
            self._step()
            self._facts()
            self._bits()
        except Failed as failed:
            raise Failed((self._spoilt or failed).claim, failed.model, *failed.why) from None
        if self._spoilt is not None:
            raise self._spoilt

    def _layer(self, layer: int) -> None:
        def found() -> str:
            heads = [finds for (number, _), finds in sorted(self.loop.finds.items()) if number == layer]
            return "; ".join(f"head {i + 1}: " + ", ".join(f"{region} finds {' or '.join(dict.fromkeys(columns))}"
                             for region, columns in finds.items()) for i, finds in enumerate(heads)) or "no heads"

        with self.claims.claim(f"heads of layer {layer + 1}", found):
            for column in self.any.values():
                self.loop.attended(column, layer)
        try:
            with self.claims.claim(f"entries after layer {layer + 1}", "integers within their limits"):
                for column in self.any.values():
                    rows = self.loop.after(column, layer + 1)
                    for block in self.layout.blocks:
                        for form in rows[self.layout.rows(block.name)]:
                            self._check_entry(form, block, column, layer)
        except Failed as failed:
            self._spoilt = self._spoilt or failed

    def _check_entry(self, form: Form, block: RowBlock, column: Column, layer: int) -> None:
        limit = Fraction(block.limit) if block.within == "real" and block.limit is not None else Fraction(1)
        where = f"{block.name} in {column.region} after layer {layer + 1}"
        for about, term in ((f"is at most {limit} in size", self.loop.between(form, -limit, limit)),
                            ("is an integer", self.loop.is_integer(form))):
            self.solver.never(f"{where} {about}", z3.Not(term))

    # The step

    def _step(self) -> None:
        for region in self.layout.regions:
            column = self.any[region.name]
            rows = self.loop.after(column, len(self.loop.layers))
            words: dict[str, Term] = {}
            for block in self.layout.blocks:
                content = block.holds.get(region.name)
                if content == "bits":
                    words |= expected_words(self.meaning, block, column)
                    wanted = [signed(bit) for bit in self.loop.bits.of_word(words[block.name])]
                else:
                    wanted = [number(1) if content == "one" else NOTHING] * block.size
                found = rows[self.layout.rows(block.name)]
                if found == column.rows[self.layout.rows(block.name)] == wanted:
                    continue
                about = self._told(block, region.name) if content == "bits" else f"is {1 if content == 'one' else 0}"
                with self.claims.claim(f"step: {block.name} in {region.name}", about):
                    differs = [equal(f - w, self.loop.bits) for f, w in zip(found, wanted, strict=True) if f.key != w.key]
                    if differs:
                        self.solver.never(f"step: {block.name} in {region.name} {about}", z3.Not(z3.And(*differs)))
            self._after[region.name] = words

    def _told(self, block: RowBlock, region: str) -> str:
        parts = [block.name, *(f"{block.name}.{part}" for part in block.parts)]
        return "is what the step says" if any((name, region) in self.meaning.expected for name in parts) else "is as it was"

    # The facts

    def _facts(self) -> None:
        columns = self.loop.columns
        for fact in self.layout.facts:
            column, words = self.any[fact.region], self._after[fact.region]
            with self.claims.claim(f"again: {fact.about}", "holds after the loop"):
                terms = (self._copied_again(fact, words) if isinstance(fact, Copies)
                         else columns.meaning(fact, column.place, words, after=True))
                if isinstance(fact, Holds) and words[fact.rows].eq(column.words[fact.rows]):
                    continue
                self.solver.never(f"again: {fact.about}", z3.Not(z3.And(*terms)))

    def _copied_again(self, fact: Copies, words: dict[str, Term]) -> list[Term]:
        columns = self.loop.columns
        named = columns.as_place(words[fact.by])
        block = self.layout.place(fact.of).block
        found = []
        for region, content in block.holds.items():
            within = z3.simplify(columns.within(named, region))
            if content == "bits" and self.solver.possible(within):
                word = expected_words(self.meaning, block, columns.at(region, named))[fact.of]
                found.append(z3.Implies(within, words[fact.rows] == word))
        return found

    # The sums

    def _bits(self) -> None:
        significand = self.machine.precision.significand
        layers = [_with_winners(arrays, shares) for arrays, shares in zip(self.weights.layers, self.loop.shares, strict=True)]
        self.needed = needed_bits(layers, self.layout)
        with self.claims.claim("bits", f"sums need {self.needed} bits, {self.weights.dtype} has {significand}"):
            if self.needed > significand:
                raise Failed(f"bits: sums need {self.needed} bits, {self.weights.dtype} has {significand}", None)


def _with_winners(arrays: LayerArrays, shares: list[int]) -> LayerWeights:
    """A layer's arrays with what was shown of its heads."""
    wide = [np.asarray(getattr(arrays, name), dtype=np.float64) for name in ("key", "query", "value")]
    w1, b1, w2, b2 = (np.asarray(getattr(arrays, name), dtype=np.float64) for name in ("w1", "b1", "w2", "b2"))
    return LayerWeights(*wide, np.ones(len(shares)), np.array(shares, dtype=np.float64), (None,) * len(shares),
                        w1, b1.ravel(), w2, b2.ravel())
