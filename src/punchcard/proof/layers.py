"""A layer of equation (TF) over columns of unknown bits: what a column holds after it, for every card at once.

    attention      which columns win, by how much, and what they give: here
    feed-forward   sums of ReLUs of linear forms over bits: see `relus`

Sums are exact (see `forms`). A head's losers have the weight exactly 0 once they lose by ln(2 / eta) / temperature, so what
is shown of a head is that all columns but the winners lose by that much.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import overload

import z3

from punchcard.proof.columns import Code, Column, Columns
from punchcard.proof.forms import NOTHING, ZERO, Form, Term, choose, signed, times, weighted
from punchcard.proof.layer_weights import HeadWeights, Layer
from punchcard.proof.relus import Relus
from punchcard.proof.steps import above, at_least, equal


@dataclass(frozen=True)
class Candidate:
    """A column that a head may find: `when` its number is that of a column, with its score."""

    column: Column
    when: Term
    score: Form


class Rows(Sequence[Form]):
    """The rows of a column, each worked out when it is first asked for."""

    def __init__(self, make: Callable[[int], Form], size: int) -> None:
        self._make, self._found = make, list[Form | None]([None] * size)

    def __len__(self) -> int:
        return len(self._found)

    @overload
    def __getitem__(self, place: int) -> Form: ...

    @overload
    def __getitem__(self, place: slice) -> list[Form]: ...

    def __getitem__(self, place: int | slice) -> Form | list[Form]:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        found = self._found[place]
        if found is None:
            found = self._found[place] = self._make(place)
        return found


class Loop(Relus):
    """Layers of a loop, on columns of unknown bits, followed as far as anybody asks.

    It was shown before that columns of the regions `still` stay as they are.
    """

    def __init__(self, layers: Sequence[Layer], columns: Columns, still: Collection[str] = ()) -> None:
        self.layers, self.columns, self._still = layers, columns, still
        self.bits, self.solver, self.layout = columns.bits, columns.solver, columns.layout
        self.others: dict[str, Column] = {}
        """Any column of each region, as one that a head might find."""
        self.shares = [[1] * len(layer.heads) for layer in self.layers]
        """How many columns may share a head's best score."""
        self.lemmas: dict[tuple[int, str, int, int], Term] = {}
        """By layer, region and rows, from and to: the word that should stand there once so many layers are done."""
        self.wholes: dict[tuple[int, str, int], tuple[Form, Form]] = {}
        """By layer, region and row: the number that should stand there, and the same number as a sum of other bits."""
        self.differences: dict[tuple[int, str, int, int], tuple[Term, Term]] = {}
        """The same of two words, whose difference bit by bit should stand there between attention and feed-forward."""
        self.finds: dict[tuple[int, int], dict[str, list[str]]] = {}
        """For each layer and head: what a column of each region finds."""

    def begin(self) -> None:
        """Columns that a head might find, once it is known which case is looked at."""
        for region in self.layout.regions:
            self.others[region.name] = self.columns.fresh(region.name, f"other {region.name}")

    def after(self, column: Column, layer: int) -> Sequence[Form]:
        """The rows of a column after so many layers."""
        if layer == 0 or column.region in self._still:
            return column.rows
        while len(column.later) < layer:
            number = len(column.later)
            column.later.append(Rows(partial(self._after_units, number, column), self.layout.width))
        return column.later[layer - 1]

    def _by_lemma(self, layer: int, column: Column, place: int, found: Form) -> Form:
        """A row, with the bit of a lemma in place of what was computed, once the two are shown to be the same.

        A lemma that does not hold is not used: it is there to make later questions shorter, and nothing depends on it.
        """
        for (number, region, start, stop), word in self.lemmas.items():
            if number == layer and region == column.region and start <= place < stop:
                found = self._if_equal(found, signed(self.bits.of_word(word)[place - start]))
        if (layer, column.region, place) in self.wholes:
            wanted, expanded = self.wholes[layer, column.region, place]
            return wanted if found.key == expanded.key else self._if_equal(found, wanted)
        return found

    def _by_difference(self, layer: int, column: Column, place: int, found: Form) -> Form:
        """The same of a row behind the attention, with the difference of two bits."""
        for (number, region, start, stop), words in self.differences.items():
            if number == layer and region == column.region and start <= place < stop:
                more, less = (signed(self.bits.of_word(word)[place - start]) for word in words)
                found = self._if_equal(found, more - less)
        return found

    def _if_equal(self, found: Form, wanted: Form) -> Form:
        """Another form for what was found, once the two are shown to be the same."""
        same = found.key == wanted.key or self.solver.holds(equal(found - wanted, self.bits))
        return wanted if same else found

    # Attention

    def attended(self, column: Column, number: int) -> Sequence[Form]:
        """The rows of a column between the attention of a layer, counted from 0, and its feed-forward."""
        while len(column.attended) <= number:
            layer = len(column.attended)
            column.attended.append(Rows(partial(self._after_heads, layer, column), self.layout.width))
        return column.attended[number]

    def _after_heads(self, number: int, column: Column, place: int) -> Form:
        """A row after the attention of a layer."""
        total = self.after(column, number)[place]
        for head, weights in enumerate(self.layers[number].heads):
            if weights.value[place]:
                total = total + self.taken(number, head, column)[place]
        return self._by_difference(number + 1, column, place, total)

    def taken(self, number: int, head: int, column: Column) -> list[Form]:
        """What a head gives to a column."""
        key = number, head
        if key not in column.taken:
            column.taken[key] = self._take(number, head, self.layers[number].heads[head], column)
        return column.taken[key]

    def _take(self, number: int, head: int, weights: HeadWeights, column: Column) -> list[Form]:
        """What a head gives to a column: the value of the one that it finds, or the mean of two."""
        query = [weighted(row, self.after(column, number)) for row in weights.query]
        candidates = self._hopeful(self._candidates(number, weights, column, query), weights.gap)
        self._others_lose(number, head, weights, column, query, candidates)
        wins = self._wins(number, head, weights, column, candidates)
        self.shares[number][head] = max(self.shares[number][head], *(len(shares) for shares, _ in wins))
        self.finds.setdefault((number, head), {}).setdefault(column.region, [
            " and ".join(_told(candidates[share].column, column) for share in shares) for shares, _ in wins])
        taken = [NOTHING] * self.layout.width
        used = [place for place, row in enumerate(weights.value) if row]
        for place in used:
            values = [weighted(weights.value[place], self.after(each.column, number)) for each in candidates]
            total: Form | None = None
            for shares, condition in wins:
                form = NOTHING
                for share in shares:
                    form += values[share] * Fraction(1, len(shares))
                total = form if total is None else choose(condition, form, total, self.bits)
            assert total is not None
            taken[place] = total
        return taken

    def _candidates(self, number: int, weights: HeadWeights, column: Column, query: Sequence[Form]) -> list[Candidate]:
        """Columns that might win: those of a region of one column, the column itself, and those that the query names.

        A query names a column where its entries are the bits of a code, and a region's keys are the codes of its columns.
        """
        found: list[Candidate] = []

        def add(region: str, place: Term) -> None:
            place = z3.simplify(place)
            if any(each.column.region == region and each.column.place.eq(place) for each in found):
                return
            when = z3.simplify(self.columns.within(place, region))
            if not z3.is_true(when):
                if not self.solver.possible(when):
                    return
                if self.solver.holds(when):
                    when = z3.BoolVal(True)
            same = [z3.And(each.when, place == each.column.place) for each in found if each.column.region == region]
            if same and not self.solver.holds(z3.Not(z3.Or(*same))):
                when = z3.And(when, z3.Not(z3.Or(*same)))
                if not self.solver.possible(when):
                    return
            target = self.columns.at(region, place)
            found.append(Candidate(target, when, self._score(number, weights, target, query)))

        add(column.region, column.place)
        for region in self.layout.regions:
            if not self.columns.codes(self.others[region.name]):
                for place in range(*self.layout.region(region.name).indices(self.layout.columns)):
                    add(region.name, self.columns.constant(place))
            else:
                for place in self._named(number, weights, region.name, query):
                    add(region.name, place)
        return found

    def _hopeful(self, candidates: list[Candidate], gap: Fraction) -> list[Candidate]:
        """The candidates without those that always lose to another by the gap."""
        left = list(candidates)
        for each in candidates:
            rivals = [other for other in left if other is not each]
            near = [z3.Not(z3.And(other.when, at_least(other.score - each.score, gap, self.bits))) for other in rivals]
            if rivals and self.solver.refutes(each.when, *near) is None:
                left = rivals
        return left

    def _score(self, number: int, weights: HeadWeights, target: Column, query: Sequence[Form]) -> Form:
        rows, score = self.after(target, number), NOTHING
        for row, entry in zip(weights.key, query, strict=True):
            if row and (entry.terms or entry.constant):
                score += times(weighted(row, rows), entry, self.bits)
        return score

    def _named(self, number: int, weights: HeadWeights, region: str, query: Sequence[Form]) -> list[Term]:
        """The numbers of columns that a query names in a region."""
        other = self.others[region]
        keys = [weighted(row, self.after(other, number)) for row in weights.key]
        return [place for code in self.columns.codes(other) for place in self._decoded(other, code, keys, query)]

    def _decoded(self, other: Column, code: Code, keys: Sequence[Form], query: Sequence[Form]) -> list[Term]:
        """The columns whose code stands in the query, where the keys are such codes."""
        runs: list[dict[int, int]] = []
        for place, key in enumerate(keys):
            if len(key.terms) == 1:
                bit = code.places.get(next(iter(key.terms)))
                if bit is not None:
                    for run in runs:
                        if bit not in run:
                            run[bit] = place
                            break
                    else:
                        runs.append({bit: place})
        found = []
        for run in runs:
            entries = [query[run[bit]] if bit in run else None for bit in range(code.size)]
            if all(entry is not None and len(entry.terms) + bool(entry.constant) for entry in entries):
                signs = [self.bits.form(above(entry, ZERO, self.bits)) for entry in entries if entry is not None]
                found.append(code.place(self.bits.word(signs)))
        return found

    def _others_lose(
        self, number: int, head: int, weights: HeadWeights, column: Column, query: Sequence[Form],
        candidates: list[Candidate],
    ) -> None:
        """Every column that is not a candidate loses to one of them by the gap."""
        near = []
        for region in self.layout.regions:
            other = self.others[region.name]
            if region.size == 1:
                continue  # a candidate
            distinct = [z3.Not(z3.And(each.when, other.place == each.column.place)) for each in candidates
                        if each.column.region == region.name]
            score = self._score(number, weights, other, query)
            close = [z3.Not(z3.And(each.when, at_least(each.score - score, weights.gap, self.bits))) for each in candidates]
            near.append(z3.And(*distinct, *close))
        self.solver.never(f"layer {number + 1}, head {head + 1}: {column.name} finds one column, or shares two, and no "
                          "other comes near", z3.Or(*near))

    def _wins(
        self, number: int, head: int, weights: HeadWeights, column: Column, candidates: list[Candidate],
    ) -> list[tuple[tuple[int, ...], Term]]:
        """Who wins when: the shares, and the condition; the first is taken where none of the later conditions holds."""
        if len(candidates) == 1:
            return [((0,), z3.BoolVal(True))]
        beats = {(i, j): z3.Or(z3.Not(b.when), above(a.score - b.score, ZERO, self.bits))
                 for i, a in enumerate(candidates) for j, b in enumerate(candidates) if i != j}
        for best in candidates:
            leads = [z3.Or(z3.Not(each.when), at_least(best.score - each.score, ZERO, self.bits))
                     for each in candidates if each is not best]
            for each in candidates:
                if each is not best:
                    lead = best.score - each.score
                    near = z3.And(each.when, above(lead, ZERO, self.bits), z3.Not(at_least(lead, weights.gap, self.bits)))
                    self.solver.never(f"layer {number + 1}, head {head + 1}: {column.name} finds {best.column.name}, and "
                                      f"{each.column.name} loses by enough", best.when, *leads, near)
        wins: list[tuple[tuple[int, ...], Term]] = []
        matches = [self._match(each) for each in candidates]
        for i, best in enumerate(candidates):
            condition = z3.simplify(z3.And(best.when, *(beats[i, j] for j in range(len(candidates)) if i != j)))
            self._case(wins, (i,), condition, [
                matches[i], z3.And(best.when, *(z3.Not(match) for j, match in enumerate(matches) if j != i))])
        for i, one in enumerate(candidates):
            for j in range(i):
                other = candidates[j]
                tie = z3.And(one.when, other.when, equal(one.score - other.score, self.bits),
                             *(beats[i, k] for k in range(len(candidates)) if k not in (i, j)))
                self._case(wins, (j, i), z3.simplify(tie), [matches[i], matches[j], z3.And(matches[i], matches[j])])
        self.solver.never(f"layer {number + 1}, head {head + 1}: {column.name} finds one column, or shares two",
                          *(z3.Not(condition) for _, condition in wins))
        return wins

    def _match(self, candidate: Candidate) -> Term:
        """Whether a candidate's score is as high as its bits allow: where they are two codes, whether these are one."""
        agree = [self.bits.terms[bit] if weight > 0 else z3.Not(self.bits.terms[bit])
                 for bit, weight in candidate.score.terms.items()]
        return z3.simplify(z3.And(candidate.when, *agree))

    def _case(
        self, wins: list[tuple[tuple[int, ...], Term]], shares: tuple[int, ...], condition: Term, simpler: list[Term],
    ) -> None:
        """Keep a case that can occur, by the simplest condition that says when."""
        if z3.is_false(condition) or not self.solver.possible(condition):
            return
        for term in simpler:
            if self.solver.holds(condition == term):
                condition = z3.simplify(term)
                break
        form = self._named_bit(condition)
        if form.is_constant:
            wins.append((shares, z3.BoolVal(bool(form.constant))))
        else:
            (bit, sign), = form.terms.items()
            wins.append((shares, self.bits.terms[bit] if sign > 0 else z3.Not(self.bits.terms[bit])))

    # Feed-forward

    def _after_units(self, number: int, column: Column, place: int) -> Form:
        """A row after the feed-forward of a layer."""
        layer, rows = self.layers[number], self.attended(column, number)
        if not layer.w2[place]:
            return rows[place] + Form(layer.b2[place])
        units = column.units.setdefault(number, {})
        found = []
        for hidden, weight in layer.w2[place]:
            if hidden not in units:
                units[hidden] = weighted(layer.w1[hidden], rows) + Form(layer.b1[hidden])
            found.append((weight, units[hidden]))
        return self._by_lemma(number + 1, column, place, self._summed(rows[place], layer.b2[place], found))


def _told(found: Column, by: Column) -> str:
    """A column that was found, as it is told."""
    return "itself" if found is by else found.region
