"""One loop of a machine with real numbers, for every card on which its facts hold: the parts that are bits, claim by claim.

    cases    an instruction is one of the cases, which are looked at one after the other
    midway   what stands on the card in the middle of a loop: addresses, masks, operands
    step     blocks of bits hold what the machine's meaning says, and rows that are 0 between loops are 0
    holds    contents stay as they were, or are replaced, real numbers included
    facts    the facts hold again, but for what a program promises
    bits     no sum of bits is rounded

A real number is followed as in `real_relus`: none of these claims depends on what a soft head makes of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import z3

from punchcard.card.contents import Constants, Contents, CopiesContents, Uniform
from punchcard.card.facts import Fact, Holds, Indicates
from punchcard.card.layout import Layout, RowBlock
from punchcard.errors import ProofError
from punchcard.machines.base import Machine
from punchcard.proof.claims import Claims, Progress
from punchcard.proof.column import Column
from punchcard.proof.columns import Columns
from punchcard.proof.counterexample import Counterexample
from punchcard.proof.forms import NOTHING, Bits, Form, Term, number, signed
from punchcard.proof.layer_weights import Layer
from punchcard.proof.loop import Loop
from punchcard.proof.meaning import expected_words
from punchcard.proof.proof import check_whole
from punchcard.proof.real_example import real_counterexample
from punchcard.proof.real_meaning import Kept, Midway, RealBefore, RealProofMeaning
from punchcard.proof.rounding import MARGIN, BitSums
from punchcard.proof.solver import Failed, Solver
from punchcard.proof.steps import equal
from punchcard.transformer.expression import Array
from punchcard.transformer.precision import significand
from punchcard.transformer.weights import Weights


class RealProof:
    """The claims about one machine, case by case. `run` raises `Failed` at the first that does not hold."""

    def __init__(self, machine: Machine[Any, Any], weights: Weights | None = None, *, seconds: float | None = None,
                 progress: Progress | None = None, cases: tuple[str, ...] | None = None) -> None:
        self.machine, self.layout = machine, machine.layout
        self.weights = weights if weights is not None else machine.weights
        check_whole(self.layout)
        self.layers = [Layer(arrays, self.weights.dtype, _limits(self.layout)) for arrays in self.weights.layers]
        for layer in self.layers:
            layer.heads = [replace(head, gap=head.gap * (1 + Fraction(MARGIN))) for head in layer.heads]
        self.promises = [fact.about for fact in self.layout.facts_of(Fact) if fact.promised]
        self.promises += [f"what {fact.region} holds is within the limit of its blocks" for fact in self.layout.contents
                          if not fact.parts]
        self._seconds, self._progress, self._cases = seconds, progress, cases
        self.claims = Claims(Solver(seconds), progress)
        self.solver = Solver(seconds)
        self.loops: dict[str, Loop] = {}
        self.case: RealCase | None = None
        """The case that is looked at."""

    def run(self) -> None:
        """Show all claims."""
        names = self._split()
        for name in self._cases or names:
            case = RealCase(self.machine, self.layers, name, self._seconds, self._progress, self.weights)
            self.loops[name], self.solver, self.case = case.loop, case.solver, case
            try:
                case.run()
            finally:
                self.claims.shown += case.claims.shown

    def counterexample(self, failed: Failed) -> Counterexample | None:
        """A card for a failed claim; None where there is none to show, as for the bits of sums."""
        return real_counterexample(self, failed)

    def _split(self) -> tuple[str, ...]:
        """The names of the cases; any instruction is one of them."""
        solver = Solver(self._seconds)
        loop = Loop(self.layers, Columns(self.layout, Bits(), solver))
        card = RealProofMeaning(loop)
        claims = Claims(solver, self._progress)
        self.machine.meaning(card)
        self.promises += card.promises
        self.promises += [f"{rows} is an integer, up to {float(tolerance):g}" for rows, tolerance in card.promised.items()]
        with claims.claim("cases", f"an instruction is one of {len(card.cases)} cases: {', '.join(card.cases)}"):
            model = solver.refutes(*card.excluded)
            if model is not None:
                raise Failed("cases: an instruction is one of the cases", model)
        for name, about in card.claims.items():
            with claims.claim(name, about):
                pass
        self.claims.shown += claims.shown
        return card.cases


def _limits(layout: Layout) -> Array:
    """How large the entries of each row may be."""
    found = np.ones(layout.width)
    for block in layout.blocks:
        if block.limit is not None and block.real:
            found[layout.rows(block.name)] = max(1.0, block.limit)
    return found


class RealCase:
    """One case of a proof."""

    def __init__(self, machine: Machine[Any, Any], layers: Sequence[Layer], name: str, seconds: float | None,
                 progress: Progress | None, weights: Weights) -> None:
        self.machine, self.layout, self.name, self.weights = machine, machine.layout, name, weights
        self.solver = Solver(seconds)
        self.claims = Claims(self.solver, progress)
        self.loop = Loop(layers, Columns(self.layout, Bits(), self.solver))
        self.card = RealProofMeaning(self.loop, name)

    def run(self) -> None:
        """Show all claims of the case."""
        self.machine.meaning(self.card)
        self.loop.begin()
        columns = self.loop.columns
        self.any = {region.name: columns.pool(region.name) if columns.is_listed(region.name)
                    else [columns.fresh(region.name, f"any {region.name}")] for region in self.layout.regions}
        for layer in range(1, len(self.loop.layers) + 1):
            self._layer(layer)
        self._step()
        for kept in self.card.kept:
            self._kept(kept)
        self._facts()
        self._bits()
        if not self.solver.possible():
            raise ProofError(f"{self.name}: the facts contradict each other: no card has them all")

    def _bits(self) -> None:
        bits = significand(self.weights.dtype)
        sums = BitSums(self.loop, self.weights.layers, bits, self.name)
        about = "no sum of bits is rounded, beside real numbers: they need {} bits, {} has {}"
        with self.claims.claim(f"{self.name}: bits", lambda: about.format(sums.needed, self.weights.dtype, bits)):
            sums.check()

    def _layer(self, layer: int) -> None:
        with self.claims.claim(f"{self.name}: heads of layer {layer}", lambda: self._told(layer - 1)):
            for column in self._all():
                for head in range(len(self.loop.layers[layer - 1].heads)):
                    self.loop.taken(layer - 1, head, column)
        with self.claims.claim(f"{self.name}: range of layer {layer}", lambda: self._ranges(layer)):
            for column in self._all():
                self.loop.after(column, layer)
        for midway in self.card.expected_midway:
            if midway.layer == layer:
                self._midway(midway)

    def _all(self) -> list[Column]:
        return [column for columns in self.any.values() for column in columns]

    def _told(self, layer: int) -> str:
        told = []
        for (number_, head), finds in sorted(self.loop.heads.finds.items()):
            if number_ == layer:
                soft = self.loop.heads.soft.get((layer, head), set())
                told.append(f"head {head + 1}: " + ", ".join(
                    f"{region} finds {' or '.join([*found, *(['a mean'] if region in soft else [])])}"
                    for region, found in finds.items()))
        return "; ".join(told) or "no heads"

    def _ranges(self, layer: int) -> str:
        """The largest entry of each block with real numbers."""
        found = []
        for block in self.layout.blocks:
            rows = self.layout.rows(block.name)
            largest = max((max(-low, high) for column in self._all() for form in self.loop.after(column, layer)[rows]
                           if self.loop.relus.is_real(form) for low, high in [self.loop.relus.span(form)]), default=None)
            if largest is not None:
                found.append(f"{block.name} ±{float(largest):.3g}")
        return "real numbers: " + ", ".join(found) if found else "bits alone"

    def _midway(self, midway: Midway) -> None:
        rows = self.layout.rows(midway.rows)
        with self.claims.claim(f"{self.name}: {midway.rows} in {midway.region}", midway.about):
            wrong: list[Term] = []
            for column in self.any[midway.region]:
                found = (self.loop.attended(column, midway.layer - 1) if midway.heads_only
                         else self.loop.after(column, midway.layer))[rows]
                wrong += self._differ(found, midway.entries(RealBefore(self.card, column)))
            self._refute(wrong, f"{self.name}: {midway.rows} in {midway.region}: {midway.about}")

    def _differ(self, found: Sequence[Form], wanted: Sequence[Form]) -> list[Term]:
        return [z3.Not(term) for one, other in zip(found, wanted, strict=True) if one.key != other.key
                for term in self.loop.relus.same(one, other)]

    def _refute(self, wrong: list[Term], claim: str) -> None:
        different = {term.get_id(): term for term in (z3.simplify(term) for term in wrong) if not z3.is_false(term)}
        if different:
            self.solver.never(claim, z3.Or(*different.values()))

    # The step

    def _step(self) -> None:
        contents = self.loop.columns.contents
        for block in self.layout.blocks:
            for region in self.layout.regions:
                held = contents.get(region.name)
                if held is None or block.name not in held.blocks:
                    self._block(block, region.name)

    def _block(self, block: RowBlock, region: str) -> None:
        content, rows, wrong = block.holds.get(region), self.layout.rows(block.name), list[Term]()
        meant = self._is_meant(block, region)
        columns, indicates = self.loop.columns, self.loop.columns.indicates
        for column in self.any[region]:
            found = self.loop.after(column, len(self.loop.layers))[rows]
            if (region, block.name) in indicates:
                wanted = columns.indicated(indicates[region, block.name], column, self._words(column))
            elif content == "bits" and meant:
                word = expected_words(self.card, block, column)[block.name]
                wanted = [signed(bit) for bit in self.loop.bits.of_word(word)]
            elif content is None or content == "one":
                wanted = [number(1) if content == "one" else NOTHING] * block.size
            else:
                wanted = column.rows[rows]
            wrong += self._differ(found, wanted)
        follows = (region, block.name) in indicates
        about = ("is what the step says" if meant else "follows from the step" if follows
                 else "is as it was" if content else "is 0")
        if wrong or meant or follows:
            with self.claims.claim(f"{self.name}: step: {block.name} in {region}", about):
                self._refute(wrong, f"{self.name}: step: {block.name} in {region} {about}")

    def _kept(self, kept: Kept) -> None:
        contents = self.loop.columns.contents[kept.region]
        with self.claims.claim(f"{self.name}: {contents.name} in {kept.region}", kept.about):
            wrong: list[Term] = []
            for column in self.any[kept.region]:
                before = RealBefore(self.card, column)
                replaced = kept.replaced(before)
                rows = self.loop.after(column, len(self.loop.layers))
                blocks = [rows[self.layout.rows(block)] for block in contents.blocks]
                first, last = blocks[0], blocks[-1]
                size = len(first)
                new = self.card.choose([(z3.BoolVal(True), before.held), (replaced, kept.by(before))], size)
                total = [sum(forms, start=NOTHING) for forms in zip(*blocks, strict=True)]
                wrong += self._differ(total, new)
                if len(blocks) > 1:
                    # what was written stands in the last block, what was not in the first
                    wrong += [z3.And(replaced, term) for term in self._differ(first, [NOTHING] * size)]
                    wrong += [z3.And(z3.Not(replaced), term) for term in self._differ(last, [NOTHING] * size)]
            self._refute(wrong, f"{self.name}: {contents.name} in {kept.region}: {kept.about}")

    # The facts

    def _facts(self) -> None:
        columns, changed = self.loop.columns, {kept.region: kept for kept in self.card.kept}
        for fact in self.layout.facts:
            if isinstance(fact, Fact) and not fact.promised:
                with self.claims.claim(f"{self.name}: again: {fact.about}", "holds after the loop"):
                    for column in self.any[fact.region]:
                        if fact.region in changed and self._may_change(changed[fact.region], column):
                            raise Failed(f"{self.name}: again: {fact.about}", None)
                        terms = columns.terms(fact, column.place, self._words(column), after=self.layout)
                        self._refute([z3.Not(term) for term in terms], f"{self.name}: again: {fact.about}")
            elif isinstance(fact, Uniform):
                with self.claims.claim(f"{self.name}: again: {fact.about}", "holds after the loop"):
                    words = [self._words(column)[fact.rows] for column in self.any[fact.region]]
                    self._refute([word != words[0] for word in words[1:]], f"{self.name}: again: {fact.about}")
            elif isinstance(fact, CopiesContents):
                with self.claims.claim(f"{self.name}: again: {fact.about}", "holds after the loop"):
                    self._shows(fact, changed)
            elif isinstance(fact, Holds) and self._is_meant(self.layout.place(fact.rows).block, fact.region):
                raise Failed(f"{self.name}: again: {fact.about}, which the step changes", None)
            elif isinstance(fact, Contents):
                if fact.region not in changed:
                    raise Failed(f"{self.name}: again: {fact.about}, of which the step says nothing", None)
                if fact.parts:
                    with self.claims.claim(f"{self.name}: again: {fact.about}", "also where a result is written"):
                        self._bits_again(fact, changed[fact.region])
            elif not isinstance(fact, Fact | Holds | Constants | Uniform | Contents | Indicates):
                raise Failed(f"{self.name}: again: {fact.about} is a fact that a proof with real numbers can't show", None)

    def _shows(self, fact: CopiesContents, changed: dict[str, Kept]) -> None:
        """A block shows what a column holds once the loop has ended: what it held, or what replaced that."""
        of, wrong = fact.of(self.layout), list[Term]()
        for column in self.any[fact.region]:
            words = self._words(column)
            wrong.append(z3.Not(self.loop.columns.names_one(words[fact.by], (of.region,))))
            held = self.card.before(self.loop.columns.at(of.region, self.loop.columns.as_place(words[fact.by])))
            kept = changed[of.region]
            new = self.card.choose([(z3.BoolVal(True), held.held), (kept.replaced(held), kept.by(held))], of.size)
            wrong += self._differ([signed(bit) for bit in self.loop.bits.of_word(words[fact.rows])], new)
        self._refute(wrong, f"{self.name}: again: {fact.about}")

    def _bits_again(self, fact: Contents, kept: Kept) -> None:
        """What replaces contents of bits is bits."""
        claim = f"{self.name}: again: {fact.about}"
        for column in self.any[fact.region]:
            if not self._may_change(kept, column):
                continue
            before = RealBefore(self.card, column)
            replaced, wrong = kept.replaced(before), list[Term]()
            for place, form in enumerate(kept.by(before)):
                values = (1, -1) if place < fact.size else (0,)
                if self.loop.relus.is_real(form):
                    raise Failed(f"{claim}, and not numbers of which only the limits are known", None)
                is_one = z3.Or(*(equal(form - number(value), self.loop.bits) for value in values))
                wrong.append(z3.And(replaced, z3.Not(is_one)))
            self._refute(wrong, claim)

    def _may_change(self, kept: Kept, column: Column) -> bool:
        return self.solver.possible(kept.replaced(RealBefore(self.card, column)))

    def _words(self, column: Column) -> dict[str, Term]:
        """The words of a column after the loop, as the machine means them."""
        found = dict(column.words)
        for block in self.layout.blocks:
            if self._is_meant(block, column.region):
                found |= expected_words(self.card, block, column)
        return found

    def _is_meant(self, block: RowBlock, region: str) -> bool:
        """Whether the step says what a block or a part of it holds."""
        names = (block.name, *(f"{block.name}.{part}" for part in block.parts))
        return any((name, region) in self.card.expected for name in names)
