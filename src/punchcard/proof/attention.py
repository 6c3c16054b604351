"""What a head gives to a column of unknown bits: which columns win, by how much, and what they hold.

A head's losers have the weight exactly 0 once they lose by its lead (`transformer.softmax`). So a column takes the mean of
those columns that lead all others by that much, case by case. Where none does, or real numbers decide, it takes something
between the least and the greatest that any column gives; a card of bits has no room for that, so there it is proven that
some column always leads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import z3

from punchcard.proof.column import Column, ColumnCode
from punchcard.proof.forms import NOTHING, ZERO, Form, Real, Term, choose, gated, weighted
from punchcard.proof.steps import above, at_least, equal

if TYPE_CHECKING:
    from punchcard.proof.loop import HeadWeights, SymbolicLoop

ROUNDED = Fraction(1, 1 << 8)
"""More than roundings make of a mean, in any number format."""


@dataclass(frozen=True)
class ColumnGroup:
    """Columns with one score: they share what a head gives. `when` the number that names them is that of a column."""

    columns: tuple[Column, ...]
    when: Term
    score: Form


Win = tuple[ColumnGroup, Term]
"""Columns that win, and when."""
RegionScores = dict[str, Form]
"""The score of any column of a region."""
Taken = tuple[list[Form], list[tuple[Column, ...]] | None]
"""What a head gives to a column, and the columns that may win together; None where it is not known of all."""


class LayerHead(NamedTuple):
    """A head: its layer and its number there, counted from 0."""

    layer: int
    number: int
    weights: HeadWeights


class Attention:
    """The heads of a loop."""

    def __init__(self, loop: SymbolicLoop) -> None:
        self._loop, self.columns = loop, loop.columns
        self.bits, self.solver, self.layout, self.relus = loop.bits, loop.solver, loop.layout, loop.relus
        self.others: dict[str, Column] = {}
        """Any column of each region whose columns are not looked at one by one, as one that a head might find."""
        self.shares = [[1] * len(layer.heads) for layer in loop.layers]
        """How many columns may share a head's best score."""
        self.finds: dict[tuple[int, int], dict[str, list[str]]] = {}
        """For each layer and head: what a column of each region finds."""
        self.soft: dict[tuple[int, int], set[str]] = {}
        """For each layer and head: the regions whose columns may take a mean that is not known exactly."""
        self._taken: dict[object, Taken] = {}
        self._keys: dict[object, dict[int, Form]] = {}

    def take(self, head: LayerHead, column: Column) -> list[Form]:
        """What a head gives to a column."""
        return self._asked(head, column)[0]

    def winners(self, head: LayerHead, column: Column) -> list[tuple[Column, ...]] | None:
        """The columns that may win together; None where it is not known of all."""
        return self._asked(head, column)[1]

    def _asked(self, head: LayerHead, column: Column) -> Taken:
        query = [weighted(row, self._loop.after(column, head.layer)) for row in head.weights.query]
        own = None if self.columns.is_listed(column.region) else column
        key = head.layer, head.number, column.region, own, tuple(entry.key for entry in query)
        if key not in self._taken:
            self._taken[key] = self._look(head, column, query)
        return self._taken[key]

    def _look(self, head: LayerHead, column: Column, query: Sequence[Form]) -> Taken:
        """What a column with this query takes: of the groups that surely win, their mean; else something between all."""
        groups = self._groups(head, column, query)
        far = {region: self._score(head, other, query) for region, other in self.others.items()}
        groups, far = self._near(groups, far, head.weights.gap)
        if not self._loop.has_reals:  # the order in which a claim names them; with real numbers the fixed ones are first
            order = [region.name for region in self.layout.regions]
            groups.sort(key=lambda group: -1 if column in group.columns else order.index(group.columns[0].region))
        if not far and len(groups) == 1 and z3.is_true(groups[0].when):
            wins: list[Win] = [(groups[0], z3.BoolVal(True))] if self._may_share(groups[0]) else []
        elif any(self.relus.is_real(score) for score in (*far.values(), *(group.score for group in groups))):
            wins = []
        else:
            groups = self._hopeful(groups, head.weights.gap)
            wins = self._wins(head.weights.gap, groups, far)
        rest = z3.simplify(z3.Not(z3.Or(*(condition for _, condition in wins))))
        unsure = not z3.is_false(rest) and (not wins or self.solver.possible(rest))
        if unsure and not self._loop.has_reals:
            where = f"layer {head.layer + 1}, head {head.number + 1}"
            self.solver.never(f"{where}: {column.name} finds one column, or shares two, and no other comes near", rest)
        self._note(head, column, [group for group, _ in wins], unsure)
        winners = None if unsure else [group.columns for group, _ in wins]
        return self._given(head, groups, far, wins, rest if unsure else None), winners

    def _near(self, groups: list[ColumnGroup], far: RegionScores,
              gap: Fraction | None) -> tuple[list[ColumnGroup], RegionScores]:
        """Groups of one score each, and other columns, without those that lose whatever the bits are."""
        best = max((self.relus.span(group.score)[0] for group in groups if z3.is_true(group.when)), default=None)
        if best is not None and gap is not None:
            groups = [group for group in groups if self.relus.span(group.score)[1] > best - gap]
            far = {region: score for region, score in far.items() if self.relus.span(score)[1] > best - gap}
        found: dict[object, ColumnGroup] = {}
        for group in groups:
            key = group.score.key, 0 if z3.is_true(group.when) else len(found) + 1
            before = found.get(key)
            found[key] = group if before is None else ColumnGroup((*before.columns, *group.columns), group.when, group.score)
        return list(found.values()), far

    # Whom a column might find

    def _groups(self, head: LayerHead, column: Column, query: Sequence[Form]) -> list[ColumnGroup]:
        """Columns that might win: listed ones by their keys, the column itself, and those that the query names.

        A query names a column where its entries are the bits of a code, and a region's keys are the codes of its columns.
        """
        found: list[ColumnGroup] = []
        by_key: dict[object, list[Column]] = {}
        for region in self.layout.regions:
            if self.columns.is_listed(region.name):
                for each in self.columns.pool(region.name):
                    keys = self._key(head, each)
                    by_key.setdefault(tuple((place, form.key) for place, form in keys.items()), []).append(each)
        for columns in by_key.values():
            score = self._score(head, columns[0], query)
            found.append(ColumnGroup(tuple(columns), z3.BoolVal(True), score))
        own = [] if self.columns.is_listed(column.region) else [(column.region, column.place)]
        named = [(name, place) for name in self.others for place in self._named(head, name, query)]
        places: list[tuple[str, Term]] = []
        for name, place in (*own, *named):
            place = z3.simplify(place)
            if any(name == other and place.eq(there) for other, there in places):
                continue
            when = self._when(name, place, [there for other, there in places if other == name])
            if when is not None:
                places.append((name, place))
                target = self.columns.at(name, place)
                found.append(ColumnGroup((target,), when, self._score(head, target, query)))
        return found

    def _when(self, region: str, place: Term, others: Sequence[Term]) -> Term | None:
        """When a number is that of a column of a region, and of none of the others; None where it never is."""
        when = z3.simplify(self.columns.within(place, region))
        if not z3.is_true(when):
            if not self.solver.possible(when):
                return None
            when = z3.BoolVal(True) if self.solver.holds(when) else when
        same = [z3.And(self.columns.within(there, region), place == there) for there in others]
        if same and not self.solver.holds(z3.Not(z3.Or(*same))):
            when = z3.simplify(z3.And(when, z3.Not(z3.Or(*same))))
            if not self.solver.possible(when):
                return None
        return when

    def _key(self, head: LayerHead, column: Column) -> dict[int, Form]:
        found = self._keys.get((head.layer, head.number, column))
        if found is None:
            rows = self._loop.after(column, head.layer)
            forms = ((place, weighted(row, rows)) for place, row in enumerate(head.weights.key) if row)
            found = {place: form for place, form in forms if form.terms or form.constant}
            self._keys[head.layer, head.number, column] = found
        return found

    def _score(self, head: LayerHead, target: Column, query: Sequence[Form]) -> Form:
        score = NOTHING
        for place, key in self._key(head, target).items():
            if query[place].terms or query[place].constant:
                score += self.relus.product(key, query[place])
        return score

    def _named(self, head: LayerHead, region: str, query: Sequence[Form]) -> list[Term]:
        """The numbers of columns that a query names in a region."""
        other = self.others[region]
        keys = [weighted(row, self._loop.after(other, head.layer)) for row in head.weights.key]
        return [place for code in self.columns.codes(other) for place in self._decoded(code, keys, query)]

    def _decoded(self, code: ColumnCode, keys: Sequence[Form], query: Sequence[Form]) -> list[Term]:
        """The columns whose code is in the query, where the keys are such codes."""
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

    # Who wins

    def _leads(self, one: Form, other: Form, by: Fraction | None) -> Term:
        return z3.BoolVal(False) if by is None else at_least(one - other, by, self.bits)

    def _hopeful(self, groups: list[ColumnGroup], gap: Fraction | None) -> list[ColumnGroup]:
        """The groups without those that always lose to another by the gap."""
        left = list(groups)
        for each in groups:
            rivals = [other for other in left if other is not each]
            near = [z3.Not(z3.And(other.when, self._leads(other.score, each.score, gap))) for other in rivals]
            if rivals and not self.solver.possible(each.when, *near):
                left = rivals
        return left

    def _wins(self, gap: Fraction | None, groups: list[ColumnGroup], far: RegionScores) -> list[Win]:
        """Groups that surely win, alone or with another, and when: they lead all other groups, and all other columns."""
        wins: list[Win] = []
        matches = [self._match(group) for group in groups]
        for i, group in enumerate(groups):
            others = [matches[j] for j in range(len(groups)) if j != i]
            wins += self._win(gap, group, [group], groups, far,
                              [matches[i], z3.And(group.when, *(z3.Not(match) for match in others))])
        for i, one in enumerate(groups):
            for j in range(i):
                both = ColumnGroup((*groups[j].columns, *one.columns), z3.And(one.when, groups[j].when), one.score)
                if len(both.columns) == 2:
                    wins += self._win(gap, both, [one, groups[j]], groups, far,
                                      [matches[i], matches[j], z3.And(matches[i], matches[j])])
        return wins

    def _win(self, gap: Fraction | None, group: ColumnGroup, members: list[ColumnGroup], groups: list[ColumnGroup],
             far: RegionScores, simpler: list[Term]) -> list[Win]:
        """A win, if it can occur, by the simplest condition that says when."""
        if not self._may_share(group):
            return []
        tied = [equal(member.score - group.score, self.bits) for member in members[1:]]
        leads = [z3.Or(z3.Not(other.when), self._leads(group.score, other.score, gap))
                 for other in groups if all(other is not member for member in members)]
        condition = z3.simplify(z3.And(group.when, *tied, *leads))
        if z3.is_false(condition) or not self.solver.possible(condition):
            return []
        for region, score in far.items():  # does it lead any column of the region, too?
            other = self.others[region]
            distinct = [z3.Not(z3.And(each.when, other.place == column.place)) for each in groups for column in each.columns
                        if column.region == region]
            if self.solver.possible(condition, *distinct, z3.Not(self._leads(group.score, score, gap))):
                return []
        for term in simpler if len(groups) > 1 else ():
            if self.solver.holds(condition == term):
                return [(group, z3.simplify(term))]
        return [(group, condition)]

    def _may_share(self, group: ColumnGroup) -> bool:
        """Whether what so many columns share is followed: on a card of bits it is one column, or two."""
        return self._loop.has_reals or len(group.columns) <= 2

    def _match(self, group: ColumnGroup) -> Term:
        """Whether a score is as high as its bits allow: where they are two codes, whether these are one."""
        agree = [self.bits.literal(bit, weight > 0) for bit, weight in group.score.terms.items()]
        return z3.simplify(z3.And(group.when, *agree))

    # What it takes

    def _given(
        self, head: LayerHead, groups: list[ColumnGroup], far: RegionScores, wins: list[Win], rest: Term | None,
    ) -> list[Form]:
        """The value of those who win; where no column surely does, something between the values of all."""
        # where none is left over, the first is taken unless another wins
        first = wins[0][0] if wins and rest is None else None
        wins = [(group, self.relus.named(condition)) for group, condition in (wins if first is None else wins[1:])]
        rest = None if rest is None else self.relus.named(rest)
        hull = [each for group in groups for each in group.columns] + [self.others[region] for region in far]
        taken = [NOTHING] * self.layout.width
        for place, row in enumerate(head.weights.value):
            if row:
                total = self._mean(head.layer, row, first) if first is not None else NOTHING
                means = [(self._mean(head.layer, row, group), condition) for group, condition in wins]
                total = (self._gated_sum if self._loop.has_reals else self._chosen)(total, means)
                if rest is not None:
                    total += self._between(head.layer, place, row, hull, rest)
                taken[place] = total
        return taken

    def _chosen(self, base: Form, means: list[tuple[Form, Term]]) -> Form:
        """The base, or that of which the condition holds: bits stay single bits."""
        for mean, condition in means:
            base = choose(condition, mean, base, self.bits)
        return base

    def _gated_sum(self, base: Form, means: list[tuple[Form, Term]]) -> Form:
        """The same as a sum of gated numbers, of which never two count at once: gates of real numbers stay few."""
        total, given = base, dict[object, tuple[Form, list[Term]]]()
        for mean, condition in means:
            more = mean - base
            given.setdefault(more.key, (more, []))[1].append(condition)
        for more, conditions in given.values():
            total += gated(conditions[0] if len(conditions) == 1 else z3.Or(*conditions), more, self.bits)
        return total

    def _mean(self, number: int, row: list[tuple[int, Fraction]], group: ColumnGroup) -> Form:
        values = [weighted(row, self._loop.after(column, number)) for column in group.columns]
        total, count = sum(values, start=NOTHING), len(group.columns)
        cancels = not self.relus.is_real(total) and any(self.relus.is_real(value) for value in values)
        if cancels or (count & count - 1 and (total.terms or total.constant)):
            # a third, say, is rounded, and so is a sum of real numbers: the mean is what the columns give, up to that
            low, high = self.relus.span(total * Fraction(1, count))
            more = max(abs(end) for value in values for end in self.relus.span(value)) * ROUNDED
            return self.bits.real(Real(f"a mean of {count} in layer {number + 1}", low - more, high + more))
        return total * Fraction(1, count)

    def _between(self, number: int, place: int, row: list[tuple[int, Fraction]], columns: list[Column], where: Term) -> Form:
        """A number between the least and the greatest that these columns give, up to roundings: weights that are not known
        add up to 1 only nearly. It is 0 where all give 0.
        """
        values = [weighted(row, self._loop.after(column, number)) for column in columns]
        spans = [self.relus.span(value) for value in values]
        low, high = min(span[0] for span in spans), max(span[1] for span in spans)
        if low == high == 0:
            return NOTHING
        more = max(abs(low), abs(high)) * ROUNDED
        return self.bits.real(Real(f"row {place} of a mean in layer {number + 1}", low - more, high + more), where)

    def _note(self, head: LayerHead, column: Column, groups: list[ColumnGroup], unsure: bool) -> None:
        """Keep what a column finds, for the claim that says so."""
        shares, place = self.shares[head.layer], (head.layer, head.number)
        shares[head.number] = max(shares[head.number], *(len(group.columns) for group in groups), 1)
        found = self.finds.setdefault(place, {}).setdefault(column.region, [])
        for group in groups:
            text = " and ".join(dict.fromkeys("itself" if each is column else each.region for each in group.columns))
            if text not in found:
                found.append(text)
        if unsure:
            self.soft.setdefault(place, set()).add(column.region)
