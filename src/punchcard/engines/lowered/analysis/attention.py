"""A head as active columns see it: whom they find, what they take, and which passive columns take from them.

A weight of the softmax is exactly 0 when its score is below the best by the head's lead. Scores are bounded by the ranges
of keys and queries; what can't have a weight is left out, and three cases remain:

    settled   all scores that are left are constants: so are the weights
    coded     many passive keys, all ±1 codes: the signs of the query name the key with the best score, by a table;
              an active key with just these signs has a known, larger (or the same) score
    soft      anything else: a softmax over what is left
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from punchcard.engines.lowered.analysis.columns import UNBOUNDED
from punchcard.engines.lowered.analysis.exact_sums import Dimensions, Rows, Sparse, combine
from punchcard.engines.lowered.analysis.passive import DistinctKey, Passive
from punchcard.engines.lowered.analysis.plan import Check, Lookup
from punchcard.engines.lowered.analysis.vectors import VectorRanges, Vectors
from punchcard.engines.lowered.graph.nodes import BIT, Array, Linear, Node, constant, leaves, trim
from punchcard.engines.lowered.graph.operations import COLUMN, GATHER, INDEX, LEAST, LOAD, MATCH, RECIP
from punchcard.errors import LoweringError

MOST_WITHOUT_SHIFT = 30.0
"""Up to this size, scores are exponentiated as they are."""
ONE: Array = np.ones(1)
NOTHING = -1e300
"""Below every score."""


@dataclass(frozen=True)
class Offer:
    """Active columns that passive ones may take from: where to (an index), which columns, what, and if by half only."""

    index: Node
    mask: Array
    values: Rows
    tie: bool


@dataclass(frozen=True)
class KeyCandidate:
    """A key that may have a weight: column `lane` of an active group, or a passive key; its score, and where it counts."""

    group: int
    lane: int
    passive: DistinctKey | None
    score: Linear
    mask: Array


@dataclass(frozen=True)
class SignedCode:
    """A vector for each column, split: ±sizes in some dimensions, constants in the others."""

    dims: tuple[int, ...]
    bits: list[tuple[Node, float]]
    constants: Array

    @property
    def sizes(self) -> Array:
        return np.array([abs(c) for _, c in self.bits])


class ActiveHead:
    """One head of one layer, for active columns with certain rows. `number_of` gives the number of a table in a plan.

    taken, offers       what each group takes, and what passive columns may
    checks, distinct    what a plan must check for that;  asked  the tables that it must have, and their numbers
    reads               whether active columns take from passive ones
    """

    def __init__(self, passive: Passive, layer: int, head: int, groups: Sequence[Rows], number_of: Callable[[Lookup], int],
                 ) -> None:
        self.graph, self.columns, self.groups = passive.graph, passive.columns, groups
        self.passive = found = passive.layers[layer].heads[head]
        self.layer, self.head, self._number_of = layer, head, number_of
        self.asked: dict[Lookup, int] = {}
        self.distinct: list[tuple[Node, Array]] = []
        self._checks: dict[Node | Linear, Check] = {}
        self.weights = found.weights
        self.where = f"layer {layer + 1}, head {head + 1}"
        self.widths = [g.width for g in self.columns.groups]
        self.queries = [self.weights.apply(self.weights.query, rows) for rows in self.groups]
        self.keys = [self.weights.apply(self.weights.key, rows) for rows in self.groups]
        self.moved = [self.weights.moved(rows) for rows in self.groups]
        self.query_ends = [_ends(forms, width) for forms, width in zip(self.queries, self.widths, strict=True)]
        self.key_ends = [_ends(forms, width) for forms, width in zip(self.keys, self.widths, strict=True)]
        scores = self.weights.scores_of(_dimensions(self.queries, self.query_ends, found.queries),
                                        _dimensions(self.keys, self.key_ends, found.keys))
        self.lead, self.exact = self.weights.lead(scores), self.weights.are_exact(scores)
        self.reads = False
        self.has_unknown = found.loose
        asking = [(width, *map(rows.get, self.weights.asking)) for width, rows in zip(self.widths, groups, strict=True)]
        found_by = {name: self._take(group) for group, name in enumerate(asking) if asking.index(name) == group}
        self.taken = [found_by[name] for name in asking]
        self.offers = list(self._offers())
        del self._number_of  # which has a whole plan

    @property
    def checks(self) -> Iterable[Check]:
        return self._checks.values()

    def _table(self, table: Lookup) -> int:
        number = self.asked[table] = self._number_of(table)
        return number

    def _take(self, group: int) -> Rows:
        """What the columns of a group take."""
        if self.passive.few is not None:
            return self._few(group, self.passive.few)
        return self._coded(group)

    # Few passive keys: settled or soft

    def _few(self, group: int, few: list[DistinctKey]) -> Rows:
        candidates = self._candidates(group, few)
        if any(c.passive is not None and c.passive.count > 1 for c in candidates):
            return self._unknown(group)
        if all(bool(np.all((c.score.high - c.score.low) * c.mask == 0)) for c in candidates):
            return self._settled(group, candidates)
        return self._soft(candidates)

    def _candidates(self, group: int, few: list[DistinctKey]) -> list[KeyCandidate]:
        """All keys, less those whose scores are too low."""
        width = self.widths[group]
        query = self.queries[group]
        ranges: list[tuple[int, int, DistinctKey | None, Array, Array]] = []
        for other, width_other in enumerate(self.widths):
            low, high = _scores(self.query_ends[group], self.key_ends[other])
            ranges += [(other, lane, None, low[:, lane], high[:, lane]) for lane in range(width_other)]
        for key in few:
            score = self._passive_score(query, key)
            ranges.append((-1, 0, key, np.broadcast_to(score.low, (width,)), np.broadcast_to(score.high, (width,))))
        best = np.max([low for *_, low, _ in ranges], axis=0)
        found = []
        for other, lane, passive_key, _, high in ranges:
            mask = (high >= best - self.lead).astype(np.float64)
            if not mask.any():
                continue
            score = (self._active_score(query, other, lane) if passive_key is None
                     else self._passive_score(query, passive_key))
            found.append(KeyCandidate(other, lane, passive_key, score, mask))
        return found

    def _passive_score(self, query: list[Linear], key: DistinctKey) -> Linear:
        score = Linear()
        for q, k in zip(query, key.vector, strict=True):
            if k:
                score.add(q, float(k))
        return score

    def _active_score(self, query: list[Linear], other: int, lane: int) -> Linear:
        score = Linear()
        for q, k in zip(query, self.keys[other], strict=True):
            if not (q.is_zero or k.is_zero):
                score.add(self.graph.product(q, self._lane(k, other, lane)))
        return score

    def _lane(self, linear: Linear, group: int, lane: int) -> Linear:
        """One column of a group's value."""
        return self.graph.lane(linear, self.widths[group], lane)

    def _settled(self, group: int, candidates: list[KeyCandidate]) -> Rows:
        width = self.widths[group]
        scores = np.array([np.where(c.mask > 0, np.broadcast_to(c.score.low, (width,)), -np.inf) for c in candidates])
        if bool((np.isfinite(scores).sum(axis=0) > 1).any()):
            self._check_tie()
        weights = np.exp(self.weights.temperature * (scores - scores.max(axis=0)))
        weights /= weights.sum(axis=0)
        taken: list[Rows] = []
        for other, width_other in enumerate(self.widths):
            matrix = np.zeros((width, width_other))
            for c, weight in zip(candidates, weights, strict=True):
                if c.passive is None and c.group == other:
                    matrix[:, c.lane] = weight
            if matrix.any():
                taken.append({row: self._mixed(linear, matrix, row) for row, linear in self.moved[other].items()})
        for c, weight in zip(candidates, weights, strict=True):
            if c.passive is not None and weight.any():
                taken.append({row: self.graph.product(constant(weight), linear)
                              for row, linear in self._passive_values(c.passive).items()})
        return self.weights.sums.add(self.where, {}, taken)

    def _soft(self, candidates: list[KeyCandidate]) -> Rows:
        """A softmax. Where bits come of it, the largest weight is 1 before the division: two that share get 1/2, exactly."""
        graph, temperature = self.graph, self.weights.temperature
        scores = [c.score.times(temperature) for c in candidates]
        largest = max(float(np.max(np.abs([s.low, s.high]))) for s in scores)
        shifted = largest > MOST_WITHOUT_SHIFT or not self.weights.sums.numbers[list(self.weights.value)].all()
        if shifted:
            top = Linear({graph.largest(scores): -1.0})
            for score in scores:
                score.add(top)
        total = Linear()
        sums: Rows = {}
        for c, score in zip(candidates, scores, strict=True):
            weight = Linear({graph.exp(graph.gathered(score), 1.0 if shifted else np.inf): 1.0})
            if not bool(np.all(c.mask == 1)):
                weight = graph.product(weight, constant(c.mask))
            total.add(weight)
            values = self._passive_values(c.passive) if c.passive is not None else {
                row: self._lane(linear, c.group, c.lane) for row, linear in self.moved[c.group].items()}
            for row, linear in values.items():
                sums.setdefault(row, Linear()).add(graph.product(weight, linear))
        if shifted:
            total = Linear({graph.node(LEAST, (graph.as_node(total),), 0.5): 1.0})  # the largest weight is 1
        share = Linear({graph.node(RECIP, (graph.as_node(total),)): 1.0})
        return {row: graph.product(graph.gathered(linear), share) for row, linear in sums.items() if not linear.is_zero}

    def _unknown(self, group: int) -> Rows:
        """A mixture of many columns, which should turn out not to matter."""
        self.has_unknown = True
        return {row: self.graph.unknown((self.where, group, row), -UNBOUNDED, UNBOUNDED) for row in self.weights.value}

    def check_unknown(self) -> None:
        """What is not worked out is taken to lie between -UNBOUNDED and UNBOUNDED."""
        for linear in (linear for rows in (*self.moved, self.passive.moved) for linear in rows.values()):
            if self.has_unknown and max(float(np.max(np.abs(end))) for end in linear.ends) > UNBOUNDED:
                raise LoweringError(f"{self.where}: columns take from many others what may be beyond {UNBOUNDED:g}")

    def _passive_values(self, key: DistinctKey) -> Rows:
        """V x of the one passive column with this key."""
        graph = self.graph
        at = graph.node(COLUMN, (), key.column)
        known = self.columns.contents_at(key.column)
        found = {}
        for row, linear in self.passive.moved.items():
            into = {}
            for node in leaves(linear, LOAD):
                into[node] = constant(known[node.data]) if node.data in known else self._gather(at, node)
            value = graph.gathered(graph.substitute(linear, into))
            if not value.is_zero:
                found[row] = value
                self.reads = self.reads or not value.is_constant
        return found

    # Many passive keys: coded

    def _coded(self, group: int) -> Rows:
        """Find by a table; then see whether an active key has the same signs."""
        graph, spread = self.graph, self.passive.key_range
        query = self._split(self.weights.query, group, spread)
        sizes = query.sizes * spread.size[list(query.dims)]
        if not query.dims and not query.constants.any():
            return self._unknown(group)
        if bool(np.any(sizes == 0)):
            raise LoweringError(f"{self.where}: passive keys are not ±1 codes")
        plain = float(sizes.sum())
        # a passive key with the right signs scores at least that
        ends = [spread.product(lane) for lane in query.constants.T]
        bounds, have_one_score = np.array([plain + low for low, _ in ends]), all(low == high for low, high in ends)
        least, rivals = self._rivals(group, bounds)
        code = graph.code(query.bits)
        exact = None
        if rivals:
            exact = float(bounds[0])
            if bool(np.any(bounds != exact)):
                raise LoweringError(f"{self.where}: active keys rival passive ones of different scores")
        numbers = tuple(self._table(Lookup(
            "find", self.layer, self.head, query.dims, tuple(query.sizes.tolist()), tuple(rest), float(least[lane]), exact,
        )) for lane, rest in enumerate(query.constants.T.tolist()))
        if len(set(numbers)) == 1 and code.width == 1:
            numbers = numbers[:1]
        excuse = self._excuse(group, query, code, exact, rivals) if have_one_score else ()
        index = graph.node(INDEX, (code, *excuse), numbers)
        found: Rows = {}
        for row, linear in self.passive.moved.items():
            into = {node: self._gather(index, node) for node in leaves(linear, LOAD)}
            found[row] = graph.gathered(graph.substitute(linear, into))
            self.reads = True
        return self._outbid(group, query, code, exact, rivals, found) if rivals and exact is not None else found

    def _split(self, side: list[Sparse], group: int, spread: VectorRanges, *, known: bool = False) -> SignedCode:
        """Constants and multiples of ±1 values, by dimension.

        Beside such values, or where the whole code may be `known`, a constant that meets both signs of one size is a known
        bit of the code.
        """
        bits, where = [], []
        constants = np.zeros((len(side), self.widths[group]))
        forms = {int(dim): combine(side[dim], self.groups[group]) for dim in np.flatnonzero(spread.used)}
        coded = self.widths[group] == 1 and (known or not all(form.is_constant for form in forms.values()))
        for dim, form in forms.items():
            meets_both = spread.size[dim] > 0 and spread.low[dim] < 0 < spread.high[dim]
            if form.is_constant and (form.is_zero or not (coded and meets_both)):
                constants[dim] = form.constant
            else:
                bits.append(self._bit(side[dim], group, dim))
                where.append(dim)
        return SignedCode(tuple(where), bits, constants)

    def _bit(self, entries: Sparse, group: int, dim: int) -> tuple[Node, float]:
        """A dimension that is a multiple of one row, which must be ±1: checked in the loop unless it is known."""
        rows = self.groups[group]
        form = combine(entries, rows)
        if form.is_constant and not form.is_zero and len(trim(form.constant)) == 1:
            return self.graph.as_node(constant(1.0)), float(form.constant[0])
        present = [(row, c) for row, c in entries if row in rows]
        if len(present) != 1:
            raise LoweringError(f"{self.where}: dimension {dim} of an active column is not a multiple of a bit")
        node = self.graph.as_node(rows[present[0][0]])
        if node.domain != BIT and node not in self._checks:
            each = tuple(self.graph.entry(node, i) for i in range(node.width))
            self._checks[node] = Check(Linear({node: 1.0}), "bits", entries=each)
        return node, present[0][1]

    def _rivals(self, group: int, bounds: Array) -> tuple[Array, list[tuple[int, Array]]]:
        """Active keys that may beat a passive one, by group, and what a passive key must score to beat all the others."""
        width = self.widths[group]
        least: Array = np.full(width, NOTHING)
        rivals: list[tuple[int, Array]] = []
        for other in range(len(self.widths)):
            _, high = _scores(self.query_ends[group], self.key_ends[other])
            strong = high >= bounds[:, None] - self.lead  # a lead may vanish beside a score: equal ones share
            least = np.maximum(least, np.where(strong, NOTHING, high + self.lead).max(axis=1))
            if strong.any():
                mask: Array = np.where(strong.any(axis=0), 1.0, 0.0)
                rivals.append((other, mask))
        return least, rivals

    def _excuse(self, group: int, query: SignedCode, code: Node, exact: float | None, rivals: list[tuple[int, Array]],
                ) -> tuple[Node, ...]:
        """An active key that has all the weight where it has the query's signs: then no passive column need have them."""
        if exact is None or len(rivals) != 1 or code.width > 1:
            return ()
        key, leads = self._rival_code(query, group, *rivals[0], exact)
        if key.width > 1 or 0.0 in leads or key is code:
            return ()
        return (self.graph.node(MATCH, (code, key), ONE),)

    def _outbid(self, group: int, query: SignedCode, code: Node, exact: float, rivals: list[tuple[int, Array]],
                found: Rows) -> Rows:
        """Columns that find an active key with their own signs take from there, or half from there when scores tie."""
        graph = self.graph
        if code.width > 1:
            raise LoweringError(f"{self.where}: active columns that ask for different things have active rivals")
        together: dict[Node, list[tuple[int, Array]]] = {}
        leads: dict[Node, set[float]] = {}
        for other, mask in rivals:
            key, lead = self._rival_code(query, group, other, mask, exact)
            together.setdefault(key, []).append((other, mask))
            leads.setdefault(key, set()).update(lead)
        tie = any(0.0 in lead for lead in leads.values())
        for key, groups in together.items():
            if (tie and leads[key] != {0.0}) or (key.width == 1 and len(leads[key]) > 1):
                raise LoweringError(f"{self.where}: active keys of the same signs have different scores")
            self._check_shares(key, groups, tie)
        taken = Linear()  # how much comes from active columns
        result: Rows = {}
        for key, groups in together.items():
            width = key.width
            if width > 1 and any(bool(np.any(mask != groups[0][1])) for _, mask in groups):
                raise LoweringError(f"{self.where}: active keys of the same signs are in different columns")
            match = constant(1.0)
            if key is not code:
                match = Linear({graph.node(MATCH, (code, key), groups[0][1] if width > 1 else ONE): 1.0})
            weight = graph.product(constant(0.5 if tie else 1.0), match)
            taken.add(graph.mix(weight, np.ones((1, width))))
            for row, linear in self._shared(key, groups).items():
                result.setdefault(row, Linear()).add(graph.mix(graph.product(weight, linear), np.ones((1, width))))
        if len(together) > 1 or any(key.width > 1 for key in together):  # no two of them at once
            self._checks[taken] = Check(taken, "real", 0.5 if tie else 1.0)
        rest = constant(1.0)
        rest.add(taken, -1.0)
        for row, linear in found.items():
            result.setdefault(row, Linear()).add(graph.product(graph.gathered(rest), linear))
        return result

    def _check_shares(self, key: Node, groups: list[tuple[int, Array]], tie: bool) -> None:
        """One active column may tie with a passive one, each for a half; several would leave it a smaller part."""
        if tie and (len(groups) > 1 or (key.width == 1 and float(groups[0][1].sum()) > 1)):
            raise LoweringError(f"{self.where}: several active keys equal a passive one")

    def _shared(self, key: Node, groups: list[tuple[int, Array]]) -> Rows:
        """V x of active columns whose keys are the same, in equal shares: one value, or one for each column of a key."""
        taken: list[Rows] = []
        for group, mask in groups:
            shares = mask[None, :] / sum(float(m.sum()) for _, m in groups)
            taken.append({row: linear.times(1.0 / len(groups)) if key.width > 1 else self._mixed(linear, shares, row)
                          for row, linear in self.moved[group].items()})
        values = self.weights.sums.add(self.where, {}, taken)
        return {row: self.graph.gathered(linear) for row, linear in values.items() if not linear.is_zero}

    def _mixed(self, linear: Linear, matrix: Array, into: int) -> Linear:
        """A sum over columns, by constant weights."""
        return self.weights.sums.mix(self.graph, self.where, linear, matrix, into)

    def _rival_code(self, query: SignedCode, group: int, other: int, mask: Array, exact: float) -> tuple[Node, set[float]]:
        """The code of a group's keys, and by how much equal signs beat a passive key, 0 for a tie; all else must lose."""
        bits, fixed = [], np.zeros(self.widths[other])
        for dim, (form, asked) in enumerate(zip(self.keys[other], self.queries[group], strict=True)):
            if dim in query.dims:
                bits.append(self._bit(self.weights.key[dim], other, dim))
            elif not (form.is_zero or asked.is_zero):
                if not (form.is_constant and asked.is_constant and len(trim(asked.constant)) == 1):
                    raise LoweringError(f"{self.where}: dimension {dim} of an active key is not constant")
                fixed = fixed + form.constant * asked.constant[0]
        sizes = query.sizes * np.array([abs(c) for _, c in bits])
        lead = (float(sizes.sum()) + fixed[mask > 0]) - exact
        self._check_lead(lead, sizes)
        return self.graph.code(bits), set(lead.tolist())

    def _check_lead(self, lead: Array, sizes: Array) -> bool:
        """Where all signs agree, active keys must equal passive ones or beat them; with another sign they must lose.

        A code of no signs has no other. Gives whether they are equal: a tie.
        """
        tie = bool(np.all(lead == 0))
        if not (tie or bool(np.all(lead >= self.lead))) or bool(np.any(lead - 2 * sizes.min(initial=np.inf) > -self.lead)):
            raise LoweringError(f"{self.where}: an active key neither beats nor equals passive ones clearly")
        if tie:
            self._check_tie()
        return tie

    def _check_tie(self) -> None:
        """Keys share a query by their scores, which must be what they are over the real numbers."""
        if not self.exact:
            raise LoweringError(f"{self.where}: several keys have a weight, and their scores may be rounded")

    def _gather(self, index: Node, load: Node) -> Linear:
        ends = load.low * np.ones(index.width), load.high * np.ones(index.width)
        return Linear({self.graph.node(GATHER, (index,), load.data, ends=ends, domain=load.domain): 1.0})

    # Passive columns that take from active ones

    def _offers(self) -> Iterator[Offer]:
        """Active keys that passive queries may prefer to whom they found, keys of the same signs together."""
        if self.passive.loose:
            return
        together: dict[tuple[Node, bytes], list[tuple[int, Array]]] = {}
        found: dict[tuple[Node, bytes], tuple[bool, tuple[int, ...]]] = {}
        for group, width in enumerate(self.widths):
            offer = self._offer(group, width)
            if offer is not None:
                code, mask, tie, tables = offer
                name = (code, mask.tobytes() if code.width > 1 else b"")
                if code.width == 1:  # all columns that may store do so to the same place
                    tables = tuple(dict.fromkeys(t for t in tables if t >= 0))
                if len(tables) != code.width or found.setdefault(name, (tie, tables)) != (tie, tables):
                    raise LoweringError(f"{self.where}: active keys of the same signs have different scores")
                together.setdefault(name, []).append((group, mask))
        for (code, _), groups in together.items():
            tie, tables = found[code, groups[0][1].tobytes() if code.width > 1 else b""]
            self._check_shares(code, groups, tie)
            mask = groups[0][1] if code.width > 1 else ONE
            if mask.sum() > 1 or len(together) > 1:
                self.distinct.append((code, mask))
            yield Offer(self.graph.node(INDEX, (code,), tables), mask, self._shared(code, groups), tie)

    def _offer(self, group: int, width: int) -> tuple[Node, Array, bool, tuple[int, ...]] | None:
        spread, least = self.passive.query_range, self.passive.least_score
        used = np.flatnonzero(spread.used)
        corners = [ends[used] * asked[used, None] for ends in self.key_ends[group] for asked in (spread.low, spread.high)]
        high = np.max(corners, axis=0).sum(axis=0) if len(used) else np.zeros(width)
        mask = (high >= least - self.lead).astype(np.float64)
        if not mask.any():
            return None
        key = self._split(self.weights.key, group, spread, known=True)
        sizes = key.sizes * spread.size[list(key.dims)]
        if not key.dims or bool(np.any(sizes == 0)) or least != self.passive.greatest_score:
            raise LoweringError(f"{self.where}: passive columns that may find an active one are not ±1 codes")
        both = np.array([spread.product(lane) for lane in key.constants.T])
        lead = float(sizes.sum()) + both - least
        if bool(np.any(both[:, 0] != both[:, 1])):
            raise LoweringError(f"{self.where}: passive columns may find an active one with different scores")
        tie = self._check_lead(lead[mask > 0, 0], sizes)
        tables = tuple(self._table(Lookup(
            "store", self.layer, self.head, key.dims, tuple(key.sizes.tolist()), tuple(rest), least,
        )) if mask[lane] else -1 for lane, rest in enumerate(key.constants.T.tolist()))
        return self.graph.code(key.bits), mask, tie, tables


def _ends(forms: list[Linear], width: int) -> tuple[Array, Array]:
    """Least and greatest value of every dimension in every column."""
    low, high = np.zeros((len(forms), width)), np.zeros((len(forms), width))
    for dim, form in enumerate(forms):
        if not form.is_zero:
            low[dim], high[dim] = form.ends
    return low, high


def _dimensions(forms: Sequence[list[Linear]], ends: Sequence[tuple[Array, Array]], passive: Vectors) -> Dimensions:
    """Of active columns and of passive ones."""
    largest, grid = passive.dimensions
    sizes = [np.maximum(np.abs(low), np.abs(high)).max(axis=1, initial=0.0) for low, high in ends]
    grids = [np.array([form.grids.min() for form in of]) for of in forms]
    return Dimensions(np.max([largest, *sizes], axis=0), np.min([grid, *grids], axis=0))


def _scores(queries: tuple[Array, Array], keys: tuple[Array, Array]) -> tuple[Array, Array]:
    """Least and greatest score of every query column with every key column."""
    used = np.flatnonzero((queries[0].any(axis=1) | queries[1].any(axis=1)) & (keys[0].any(axis=1) | keys[1].any(axis=1)))
    if not len(used):
        nothing = np.zeros((queries[0].shape[1], keys[0].shape[1]))
        return nothing, nothing
    corners = [q[used][:, :, None] * k[used][:, None, :] for q in queries for k in keys]
    return np.min(corners, axis=0).sum(axis=0), np.max(corners, axis=0).sum(axis=0)
