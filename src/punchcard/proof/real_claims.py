"""The claims about real numbers on a card: what they are in the middle of a loop, where contents go, and which facts stay.

    cases    an instruction is one of the cases, which are looked at one after the other
    range    the largest real number of each block after a layer
    midway   what is expected in the middle of a loop: addresses, masks, operands
    holds    contents stay as they were, or are replaced, real numbers included
    facts    the facts hold again, but for what a program promises

A real number is followed as in `relus`: none of these claims depends on what a soft head makes of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import z3

from punchcard.card.facts import Constants, Contents, CopiesContents, Fact, Holds, Indicates, Uniform
from punchcard.proof.column import Column
from punchcard.proof.forms import NOTHING, Form, Term, number, signed
from punchcard.proof.meaning import Kept, Midway
from punchcard.proof.solver import Failed
from punchcard.proof.steps import equal

if TYPE_CHECKING:
    from punchcard.proof.obligation import Obligation

Words = Mapping[Column, Mapping[str, Term]]
"""The words of columns after the loop."""


class RealClaims:
    """What an obligation shows of real numbers."""

    def __init__(self, obligation: Obligation) -> None:
        self._of, self.meaning, self._loop, self._layout = obligation, obligation.meaning, obligation.loop, obligation.begin
        self._claims, self._solver, self._named = obligation.claims, obligation.solver, obligation.claim_name

    def split(self) -> None:
        """Prove that an instruction is one of the cases."""
        cases = self.meaning.cases
        with self._claims.claim("cases", f"an instruction is one of {len(cases)} cases: {', '.join(cases)}"):
            model = self._solver.refutes(*self.meaning.excluded)
            if model is not None:
                raise Failed("cases: an instruction is one of the cases", model)

    # Two entries are the same

    def differ(self, found: Sequence[Form], wanted: Sequence[Form]) -> list[Term]:
        """Conditions of which one holds where entries are not what is wanted."""
        return [z3.Not(term) for one, other in zip(found, wanted, strict=True) if one.key != other.key
                for term in self._loop.relus.same(one, other)]

    def refute(self, claim: str, wrong: Sequence[Term]) -> None:
        """Prove that none of these holds."""
        different = {term.get_id(): term for term in (z3.simplify(term) for term in wrong) if not z3.is_false(term)}
        if different:
            self._solver.never(claim, z3.Or(*different.values()))

    def show_equal(self, claim: str, pairs: Sequence[tuple[Sequence[Form], Sequence[Form]]]) -> None:
        """Prove that entries are what is wanted, in all columns at once."""
        self.refute(claim, [term for found, wanted in pairs for term in self.differ(found, wanted)])

    # The middle of a loop

    def layer(self, layer: int) -> None:
        """Prove what is declared of the card after a layer, counted from 1."""
        with self._claims.claim(self._named(f"range of layer {layer}"), lambda: self._ranges(layer)):
            pass
        for midway in self.meaning.expected_midway:
            if midway.layer == layer:
                self._midway(midway)

    def _ranges(self, layer: int) -> str:
        """The largest entry of each block with real numbers."""
        found, relus = [], self._loop.relus
        columns = [column for each in self._of.any.values() for column in each]
        for block in self._layout.blocks:
            rows = self._layout.rows(block.name)
            largest = max((max(-low, high) for column in columns for form in self._loop.after(column, layer)[rows]
                           if relus.is_real(form) for low, high in [relus.span(form)]), default=None)
            if largest is not None:
                found.append(f"{block.name} ±{float(largest):.3g}")
        return "real numbers: " + ", ".join(found) if found else "bits alone"

    def _midway(self, midway: Midway) -> None:
        rows, name = self._layout.rows(midway.rows), self._named(f"{midway.rows} in {midway.region}")
        with self._claims.claim(name, midway.about):
            pairs = []
            for column in self._of.any[midway.region]:
                found = (self._loop.attended(column, midway.layer - 1) if midway.heads_only
                         else self._loop.after(column, midway.layer))[rows]
                pairs.append((found, midway.entries(self.meaning.before(column))))
            self.show_equal(f"{name}: {midway.about}", pairs)

    # Contents

    def contents(self) -> None:
        """Prove that contents stay, or are replaced."""
        for kept in self.meaning.kept:
            self._kept(kept)

    def _kept(self, kept: Kept) -> None:
        contents = self._loop.columns.contents[kept.region]
        name = self._named(f"{contents.name} in {kept.region}")
        with self._claims.claim(name, kept.about):
            wrong: list[Term] = []
            for column in self._of.any[kept.region]:
                before = self.meaning.before(column)
                replaced = kept.replaced(before)
                rows = self._loop.after(column, len(self._loop.layers))
                blocks = [rows[self._layout.rows(block)] for block in contents.blocks]
                first, last = blocks[0], blocks[-1]
                size = len(first)
                new = self.meaning.choose([(z3.BoolVal(True), before.contents), (replaced, kept.by(before))], size)
                wrong += self.differ([sum(forms, start=NOTHING) for forms in zip(*blocks, strict=True)], new)
                if len(blocks) > 1:
                    # what was written is in the last block, what was not is in the first
                    wrong += [z3.And(replaced, term) for term in self.differ(first, [NOTHING] * size)]
                    wrong += [z3.And(z3.Not(replaced), term) for term in self.differ(last, [NOTHING] * size)]
            self.refute(f"{name}: {kept.about}", wrong)

    # The facts

    def facts(self, after: Words) -> None:
        """Prove that the facts hold again, but for what a program promises."""
        changed = {kept.region: kept for kept in self.meaning.kept}
        for fact in self._layout.facts:
            name, columns = self._named(f"again: {fact.about}"), self._of.any[fact.region]
            match fact:
                case Holds():
                    if self.meaning.says(self._layout.place(fact.rows).block, fact.region):
                        raise Failed(f"{name}, which the step changes", None)
                case Contents():
                    if fact.region not in changed:
                        raise Failed(f"{name}, of which the step says nothing", None)
                    if fact.parts:
                        with self._claims.claim(name, "also where a result is written"):
                            self._bits_again(name, fact, changed[fact.region])
                case Constants() | Indicates() | Fact(promised=True):
                    pass
                case Fact() | Uniform() | CopiesContents():
                    with self._claims.claim(name, "holds after the loop"):
                        self.refute(name, self._violated(name, fact, columns, after, changed))
                case _:
                    raise Failed(f"{name} is a fact that a proof with real numbers can't show", None)

    def _violated(
        self, name: str, fact: Fact | Uniform | CopiesContents, columns: Sequence[Column], after: Words,
        changed: Mapping[str, Kept],
    ) -> list[Term]:
        """Conditions of which one holds where a fact does not hold after the loop."""
        match fact:
            case Uniform():
                words = [after[column][fact.rows] for column in columns]
                return [word != words[0] for word in words[1:]]
            case CopiesContents():
                return self._not_copied(fact, columns, after, changed[fact.of(self._layout).region])
        found: list[Term] = []
        for column in columns:
            if fact.region in changed and self._may_change(changed[fact.region], column):
                raise Failed(name, None)
            terms = self._loop.columns.terms(fact, column.place, after[column], after=self._layout)
            found += [z3.Not(term) for term in terms]
        return found

    def _not_copied(self, fact: CopiesContents, columns: Sequence[Column], after: Words, kept: Kept) -> list[Term]:
        """Prove what a column holds at the end of a loop: what it held before, or what replaced that."""
        of, wrong, all_ = fact.of(self._layout), list[Term](), self._loop.columns
        for column in columns:
            words = after[column]
            wrong.append(z3.Not(all_.names_one(words[fact.by], (of.region,))))
            held = self.meaning.before(all_.at(of.region, all_.as_place(words[fact.by])))
            new = self.meaning.choose([(z3.BoolVal(True), held.contents), (kept.replaced(held), kept.by(held))], of.size)
            wrong += self.differ([signed(bit) for bit in self._loop.bits.of_word(words[fact.rows])], new)
        return wrong

    def _bits_again(self, name: str, fact: Contents, kept: Kept) -> None:
        """What replaces contents of bits is bits."""
        for column in self._of.any[fact.region]:
            if not self._may_change(kept, column):
                continue
            before = self.meaning.before(column)
            replaced, wrong = kept.replaced(before), list[Term]()
            for place, form in enumerate(kept.by(before)):
                values = (1, -1) if place < fact.size else (0,)
                if self._loop.relus.is_real(form):
                    raise Failed(f"{name}, and not numbers of which only the limits are known", None)
                is_one = z3.Or(*(equal(form - number(value), self._loop.bits) for value in values))
                wrong.append(z3.And(replaced, z3.Not(is_one)))
            self.refute(name, wrong)

    def _may_change(self, kept: Kept, column: Column) -> bool:
        return self._solver.possible(kept.replaced(self.meaning.before(column)))
