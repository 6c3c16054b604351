"""A part of a proof: the layers of one stage, for all cards or for one case of them.

Columns of a region are alike: one of them, with an unknown number, represents all. Where a stage has cases, what depends on
them is proven for each, and all else once: see `punchcard.machines.meaning`.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import z3

from punchcard.card.facts import Copies, Fact, Holds
from punchcard.card.layout import RowBlock
from punchcard.errors import ProofError
from punchcard.machines.meaning import Case, Stage
from punchcard.proof.certificate import Claims
from punchcard.proof.column import Column, has_bits, with_parts
from punchcard.proof.columns import Columns
from punchcard.proof.forms import NOTHING, Bits, Form, Term, number, signed
from punchcard.proof.loop import Layer, SymbolicLoop
from punchcard.proof.meaning import ProofMeaning, expected_words, open_declarations
from punchcard.proof.real_claims import RealClaims
from punchcard.proof.solver import Failed, Solver
from punchcard.proof.steps import equal


class Obligation:
    """What is proven of a stage without its cases, or of one case."""

    def __init__(self, stage: Stage, layers: Sequence[Layer], claims: Claims, seconds: float | None = None,
                 case: Case | str | None = None) -> None:
        self.stage, self.claims, self.begin, self.end = stage, claims, stage.begin, stage.end
        self.case = case if isinstance(case, Case) else None
        self.name = case.name if isinstance(case, Case) else case
        """The case: one of the stage, or of those that the meaning of a machine with real numbers splits a loop into."""
        self.solver = claims.solver = Solver(seconds)
        self._own = {each.region for each in stage.cases}
        names = [region.name for region in stage.begin.regions]
        self.regions = [name for name in names if self.case is None or name in self._own]
        self.columns = Columns(stage.begin, Bits(), self.solver, self.case)
        self.loop = SymbolicLoop(layers, self.columns, () if self.case is None else set(names) - self._own)
        self.meaning = ProofMeaning(self.columns, self.loop, self.name)
        self.reals = RealClaims(self) if self.loop.has_reals else None
        self._after: dict[Column, dict[str, Term]] = {}
        self._misplaced: Failed | None = None
        """An entry that is not as it should be when a layer begins. What follows may show a card where this matters."""

    def _begin(self) -> None:
        """Columns that a head might find, and any of each region, once it is known which case is looked at."""
        listed, fresh = self.columns.is_listed, self.columns.fresh
        names = [region.name for region in self.begin.regions]
        self.loop.heads.others |= {name: fresh(name, f"other {name}") for name in names if not listed(name)}
        self.any = {name: self.columns.pool(name) if listed(name) else [fresh(name, f"any {name}")] for name in names}

    def run(self) -> None:
        """Prove all claims of this part."""
        if self.reals is None:
            self._begin()
        self.stage.meaning(self.meaning)
        if self.reals is not None:
            if self.name is None and self.meaning.cases:
                self.reals.split()
                return
            self._begin()
        self._show_lemmas()
        if self.case is None and self.stage.cases:
            self._stand_alone()
            self._cover()
        try:
            for layer in range(len(self.loop.layers)):
                self._layer(layer)
            self._step()
            self._facts()
            self._show_lemmas()  # also those of words that were asked for on the way
        except Failed as failed:
            raise Failed((self._misplaced or failed).claim, failed.model, *failed.why) from None
        if self._misplaced is not None:
            raise self._misplaced
        if not self.solver.possible():
            raise ProofError(f"{self.claim_name('')}the facts contradict each other: no card has them all")

    def _show_lemmas(self) -> None:
        for lemma in self.meaning.products.lemmas:
            self.claims.lemma(lemma)

    def claim_name(self, text: str) -> str:
        """A claim's name: with the stage, where there are several, and the case."""
        return ": ".join([*filter(None, (self.stage.name, self.name)), text])

    def _cover(self) -> None:
        with self.claims.claim(self.claim_name("cases"), f"the {len(self.stage.cases)} cases are all"):
            held = []
            for case in self.stage.cases:
                word = self.any[case.region][0].words[case.rows]
                held.append(z3.And(has_bits(word, case.mask, case.match),
                                   *(z3.Not(has_bits(word, mask, match)) for mask, match in case.but)))
            self.solver.never(self.claim_name("the cases are all"), z3.Not(z3.Or(*held)))

    def _stand_alone(self) -> None:
        """A case is about one column: what is proven of a region with several would be about one of them alone."""
        for name in self._own:
            span = self.begin.region(name)
            if span.stop != span.start + 1:
                raise ProofError(f"a case about {name!r}: it has {span.stop - span.start} columns, a case is about one")

    # Layers

    def _layer(self, layer: int) -> None:
        first = self.stage.layers[0]

        columns = [column for name in self.regions if self.case is not None or name not in self._own
                   for column in self.any[name]]
        if self.loop.layers[layer].heads or self.reals is not None:
            with self.claims.claim(self.claim_name(f"heads of layer {first + layer + 1}"), lambda: self._finds(layer)):
                for column in columns:
                    for head in range(len(self.loop.layers[layer].heads)):
                        self.loop.taken(layer, head, column)
        if self.reals is not None:
            self.reals.layer(layer + 1)
            return
        try:
            about = "integers within their limits"
            with self.claims.claim(self.claim_name(f"entries after layer {first + layer + 1}"), about):
                for column in columns:
                    self._check_entries(column, layer)
        except Failed as failed:
            if self.meaning.products.lemmas:
                raise  # products and quotients that are not what they should be are too much for the solver
            self._misplaced = self._misplaced or failed
        if self.stage.cases and self.case is None and layer + 1 < len(self.loop.layers):
            about = "columns without cases are as they were"
            with self.claims.claim(self.claim_name(f"still after layer {first + layer + 1}"), about):
                for column in columns:
                    self._compare(None, column, self.loop.after(column, layer + 1)[:], column.rows, z3.BoolVal(True))

    def _finds(self, layer: int) -> str:
        """What the columns of each region find, head by head."""
        found = []
        for (place, head), finds in sorted(self.loop.heads.finds.items()):
            if place == layer:
                soft = self.loop.heads.soft.get((layer, head), set())
                found.append(f"head {head + 1}: " + ", ".join(
                    f"{region} finds {' or '.join([*columns, *(['a mean'] if region in soft else [])])}"
                    for region, columns in finds.items()))
        return "; ".join(found) or "no heads"

    def _check_entries(self, column: Column, layer: int) -> None:
        rows = self.loop.after(column, layer + 1)
        for block in self.begin.blocks:
            if layer + 1 < len(self.loop.layers) or self._is_here(block, column.region):
                for form in rows[self.begin.rows(block.name)]:
                    self._check_entry(form, block, column, self.stage.layers[0] + layer)

    def _is_here(self, block: RowBlock, region: str) -> bool:
        """Whether a block after the last layer is proven in this part."""
        by_case = region in self._own and (not self.stage.by_case or block.name in self.stage.by_case)
        return by_case == (self.case is not None)

    def _check_entry(self, form: Form, block: RowBlock, column: Column, layer: int) -> None:
        limit = Fraction(block.limit) if block.within == "real" and block.limit is not None else Fraction(1)
        if form.is_integer and -limit <= form.low and form.high <= limit:
            return  # whatever its bits are: most rows hold one bit
        where = self.claim_name(f"{block.name} in {column.region} after layer {layer + 1}")
        for about, term in ((f"is at most {limit} in size", self.loop.relus.between(form, -limit, limit)),
                            ("is an integer", self.loop.relus.is_integer(form))):
            self.solver.never(f"{where} {about}", z3.Not(term))

    # The step

    def _step(self) -> None:
        if self.reals is not None:
            for column in (column for columns in self.any.values() for column in columns):
                self._after[column] = dict(column.words)
                for block in self.end.blocks:
                    if self.meaning.says(block, column.region):
                        self._after[column] |= expected_words(self.meaning, block, column)
        for name in self.regions:
            for block in self.end.blocks:
                if self._is_here(block, name):
                    self._show(block, name)

    def _show(self, block: RowBlock, region: str) -> None:
        """Prove what a block holds in the columns of a region, and keep its words."""
        place, content = self.end.rows(block.name), block.holds.get(region)
        columns = [(column, self.loop.after(column, len(self.loop.layers))[place]) for column in self.any[region]]
        claim = self.claim_name(f"step: {block.name} in {region}")
        follows = self.columns.indicates.get((region, block.name))
        contents = self.columns.contents.get(region)
        if contents is not None and block.name in contents.blocks:
            return  # see `RealClaims.contents`
        if content == "bits" and self.meaning.leaves_open(block, region):
            with self.claims.claim(claim, "is bits, and where the step says what, that"):
                for column, found in columns:
                    self._show_open(block, column, found)
            return
        meant = self.meaning.says(block, region)
        expected = [(column, found, self._wanted(block, column, meant)) for column, found in columns]
        about = ("follows from the step" if follows else "is what the step says" if meant
                 else f"is {1 if content == 'one' else 0}" if content in (None, "one") else "is as it was")
        differs = any(list(found) != wanted for _, found, wanted in expected)
        changes = any(column.rows[place] != wanted for column, _, wanted in expected)
        if differs or follows or (meant if self.reals is not None else changes):
            with self.claims.claim(claim, about):
                if self.reals is not None:
                    self.reals.show_equal(f"{claim} {about}", [each[1:] for each in expected])
                else:
                    for column, found, wanted in expected:
                        self._compare(block, column, found, wanted, z3.BoolVal(True))

    def _wanted(self, block: RowBlock, column: Column, meant: bool) -> list[Form]:
        """What a block of a column should hold after the loop."""
        content, follows = block.holds.get(column.region), self.columns.indicates.get((column.region, block.name))
        if follows is not None:
            return self.columns.indicated(follows, column, self._after[column])
        if content == "bits" and (meant or self.reals is None):
            words = expected_words(self.meaning, block, column)
            self._after.setdefault(column, {}).update(words)
            return [signed(bit) for bit in self.loop.bits.of_word(words[block.name])]
        if content is None or content == "one":
            return [number(1) if content == "one" else NOTHING] * block.size
        return column.rows[self.end.rows(block.name)]

    def _show_open(self, block: RowBlock, column: Column, found: Sequence[Form]) -> None:
        """A block of which the step leaves something open: it holds bits, and where the step says what, that."""
        self._after.setdefault(column, {}).update(self._as_found(block, column, found))
        first = self.end.rows(block.name).start
        for name, meant, where in open_declarations(self.meaning, block, column):
            place = self.end.rows(name)
            bits = [signed(bit) for bit in self.loop.bits.of_word(meant)]
            self._compare(block, column, found[place.start - first : place.stop - first], bits, where)

    def _compare(
        self, block: RowBlock | None, column: Column, found: Sequence[Form], wanted: Sequence[Form], where: Term,
    ) -> None:
        about = (f"step: {block.name} in {column.region} is what the step says" if block is not None
                 else f"still: {column.region} is as it was")
        for place, (form, meant) in enumerate(zip(found, wanted, strict=True)):
            if form.key != meant.key:
                self.solver.never(self.claim_name(f"{about}, row {place + 1}"), where,
                                  z3.Not(equal(form - meant, self.loop.bits)))

    def _as_found(self, block: RowBlock, column: Column, found: Sequence[Form]) -> dict[str, Term]:
        """The words of a block that holds any bits."""
        bits = []
        for form in found:
            is_on = equal(form - number(1), self.loop.bits)
            if len(form.terms) != 1 or form.low != -1 or form.high != 1:
                self.solver.never(self.claim_name(f"step: {block.name} in {column.region} is bits"),
                                  z3.Not(z3.Or(is_on, equal(form + number(1), self.loop.bits))))
            bits.append(self.loop.bits.form(is_on))
        return with_parts(block.name, block.parts, self.loop.bits.word(bits))

    # The facts

    def _facts(self) -> None:
        columns = self.columns
        if self.reals is not None:
            self.reals.contents()
            self.reals.facts(self._after)
            return
        for fact in self.end.facts:
            if not isinstance(fact, Fact | Copies | Holds):
                raise ProofError(f"the fact {fact.about!r} is about real numbers, and the layout has none")
            if fact.region not in self.regions:
                continue
            here = {self._is_here(self.end.place(rows).block, fact.region) for rows in fact.mentions(self.end)}
            if len(here) > 1:
                raise ProofError(f"the fact {fact.about!r} is about rows that depend on the case, and others: "
                                 "let all of them depend on it, or none")
            if here == {False}:
                continue
            with self.claims.claim(self.claim_name(f"again: {fact.about}"), "holds after the loop"):
                for column in self.any[fact.region]:
                    words = self._after.get(column, {})
                    if (isinstance(fact, Holds) and fact in self.begin.facts
                            and words[fact.rows].eq(column.words.get(fact.rows))):
                        continue
                    terms = (self._copied_again(fact, words) if isinstance(fact, Copies)
                             else columns.terms(fact, column.place, words, after=self.end))
                    self.solver.never(self.claim_name(f"again: {fact.about}"), z3.Not(z3.And(*terms)))

    def _copied_again(self, fact: Copies, words: dict[str, Term]) -> list[Term]:
        columns = self.loop.columns
        named, block = columns.as_place(words[fact.by]), self.end.place(fact.of).block
        regions = fact.sources(self.end)
        found = [columns.names_one(words[fact.by], regions)]
        for region in regions:
            names = block.names if fact.of == block.name else (block.name, fact.of)
            if any((name, region) in self.meaning.where for name in names):
                raise ProofError(f"{fact.about}: the step leaves {fact.of!r} in {region!r} open, so nothing is a copy of it")
            within = z3.simplify(columns.within(named, region))
            if self.solver.possible(within):
                word = expected_words(self.meaning, block, columns.at(region, named))[fact.of]
                found.append(z3.Implies(within, words[fact.rows] == word))
        return found
