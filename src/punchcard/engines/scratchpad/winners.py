"""Which keys answer a query, when neither changes: the few whose softmax weight is not exactly 0.

A key whose score is below the best by the lead of `transformer.softmax` has a weight of exactly 0. What is left of a hard
head's softmax is then a softmax over a few keys, whatever the number of columns, and it comes out the same bit for bit. The
search is made once, so it may take longer than a loop, but not n^2: where the keys are codes it looks the wanted code up.

Columns are numbered through a batch of P cards of n columns: column j of card p is p n + j. N = P n.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn.functional import pad

from punchcard.card.formats import name_of
from punchcard.transformer.grids import grids_of
from punchcard.transformer.softmax import Scores, hard_lead

MOST_WINNERS = 4
"""A query that more keys answer keeps the full softmax."""
CODE_BITS = 62
SCORES_AT_ONCE = 1 << 22


@dataclass(frozen=True)
class Winners:
    """For each query the keys that have a weight; queries that too many keys answer form classes of equal ones.

    keys       (w, queries): numbers of keys, -1 where a query has fewer than w
    shared     (queries): the number of the query's class, -1 for one that has its keys
    """

    keys: Tensor
    shared: Tensor


def find(keys: Tensor, queries: Tensor, reach: float) -> Winners:
    """The keys (size, m) within `reach` of the best score, for every one of the queries (size, c)."""
    keys, queries = keys.double(), queries.double()
    by_code = _by_code(keys, queries, reach)
    shared = torch.full_like(by_code[0], -1)
    left = (by_code[0] < 0).nonzero().squeeze(1)
    if len(left):
        first, member = distinct(queries[:, left])
        found, many = _by_score(keys, queries[:, left[first]], reach)
        by_code[:, left] = found[:, member]
        classes = torch.where(many, many.cumsum(0) - 1, -1)
        shared[left] = classes[member]
    most = int((by_code >= 0).sum(0).max()) if by_code.numel() else 0
    return Winners(by_code[:most], shared)


def reach_of(keys: Tensor, queries: Tensor, temperature: float, width: int) -> float:
    """How far below the best a score must be for a weight of exactly 0, rounding errors of the scores included."""
    largest = float((keys.double().abs().amax(1) * queries.double().abs().amax(1)).sum())
    grids = [float(grids_of(values.double().cpu().numpy()).min(initial=math.inf)) for values in (keys, queries)]
    return hard_lead(name_of(keys.dtype), temperature, Scores(largest, width + len(keys), grids[0] * grids[1]))


def distinct(columns: Tensor) -> tuple[Tensor, Tensor]:
    """The first of every set of equal columns, and the set that each column belongs to."""
    count = columns.shape[1]
    member = torch.zeros(count, dtype=torch.long, device=columns.device)
    for row in columns:
        values, rank = torch.unique(row, return_inverse=True)
        if len(values) > 1:
            member = torch.unique(member * len(values) + rank, return_inverse=True)[1]
    number = torch.arange(count, device=columns.device)
    first = torch.full((int(member.max()) + 1,), count, device=columns.device)
    return first.scatter_reduce_(0, member, number, "amin"), member


def _by_code(keys: Tensor, queries: Tensor, reach: float) -> Tensor:
    """Winners among keys whose every row has two values, or two groups: the key that a query wants is looked up by its code.

    A key that departs from it in row i scores less by |query_i| times the gap between the groups; in the other rows it may
    score more, by |query_i| times the width of a group. Rows that are 0 in all queries, or the same in all keys, do not
    matter. -1 where a query is not decided in this way.
    """
    found = torch.full((MOST_WINNERS, queries.shape[1]), -1, dtype=torch.long, device=keys.device)
    low, high = keys.amin(1, keepdim=True), keys.amax(1, keepdim=True)
    rows = ((queries != 0).any(1) & (low < high).squeeze(1)).nonzero().squeeze(1)
    if not 0 < len(rows) <= CODE_BITS:
        return found
    keys, queries, low, high = keys[rows], queries[rows], low[rows], high[rows]
    upper = keys > (low + high) / 2
    below = torch.where(upper, low, keys).amax(1, keepdim=True)
    above = torch.where(upper, keys, high).amin(1, keepdim=True)
    width = (queries.abs() * torch.maximum(below - low, high - above)).sum(0)
    place = (2 ** torch.arange(len(rows), device=keys.device)).unsqueeze(1)
    codes, order = torch.sort((upper * place).sum(0), stable=True)
    wanted = ((queries > 0) * place).sum(0)
    first, end = torch.searchsorted(codes, wanted), torch.searchsorted(codes, wanted, right=True)
    sure = (queries.abs() * (above - below)).amin(0) - width > reach
    sure &= (first < end) & (end - first <= torch.where(width > 0, 1, MOST_WINNERS))
    for i in range(MOST_WINNERS):
        there = sure & (first + i < end)
        found[i, there] = order[(first + i)[there]]
    return found


def _by_score(keys: Tensor, queries: Tensor, reach: float) -> tuple[Tensor, Tensor]:
    """Winners by computing all scores, and which queries have too many."""
    found, many = [], []
    for part in torch.split(queries, max(1, SCORES_AT_ONCE // keys.shape[1]), dim=1):
        scores = part.T @ keys
        best, number = scores.topk(min(MOST_WINNERS, keys.shape[1]), dim=1)
        least = best[:, :1] - reach
        near = (scores >= least).sum(1)
        number = torch.where((best >= least) & (near <= MOST_WINNERS).unsqueeze(1), number, -1)
        found.append(pad(number.T, (0, 0, 0, MOST_WINNERS - len(number.T)), value=-1))
        many.append(near > MOST_WINNERS)
    return torch.cat(found, 1), torch.cat(many)


@dataclass(frozen=True)
class BatchColumns:
    """Active and passive columns. `active` and `first` (of each card) count through the batch, `passive` on a card."""

    cards: int
    count: int
    active: Tensor
    passive: Tensor
    is_passive: Tensor
    first: Tensor = field(repr=False)

    @classmethod
    def of(cls, cards: int, count: int, active: Tensor) -> BatchColumns:
        every = torch.arange(count, device=active.device)
        first = torch.arange(cards, device=active.device).unsqueeze(1) * count
        rest = ~torch.isin(every, active)
        return cls(cards, count, (first + active).flatten(), every[rest], rest.repeat(cards), first)

    @property
    def active_a_card(self) -> int:
        return self.active.shape[0] // self.cards

    def by_card(self, rows: Tensor) -> Tensor:
        """(..., N) as (..., P, n)."""
        return rows.view(*rows.shape[:-1], self.cards, self.count)

    def spread(self, entries: Tensor, active: float | Tensor) -> Tensor:
        """Entries of the passive columns, (..., P q), among those of all columns, (..., N)."""
        every = entries.new_empty(*entries.shape[:-1], len(self.is_passive))
        every[...] = active
        every[..., self.is_passive] = entries
        return every


@dataclass
class HeadMatches:
    """What is known about the passive columns in one head.

    winners    columns, (w, N); a column with fewer than w names itself, which `absent` marks
    floor      the least score with which an active key may have a weight, (N): the best itself, where the lead is too small
               to be seen beside it
    questions  the queries that keep the full softmax, (size, P, C); `sharing` are the columns that have them, and
               `shared` says which (N). `answers` is what they took in the last loop, (rows, P, C)
    touched    the columns in which an active key had a weight in the last loop, (N)
    """

    winners: Tensor
    absent: Tensor | None
    floor: Tensor
    questions: Tensor
    sharing: Tensor
    shared: Tensor
    answers: Tensor
    touched: Tensor

    def winning(self, keys: Tensor, queries: Tensor, columns: Tensor) -> Tensor:
        """The scores of some columns' winners, -inf where there is none: (w, columns)."""
        who = self.winners.index_select(1, columns)
        scores = (keys[:, who] * queries.index_select(1, columns).unsqueeze(1)).sum(0)
        return scores if self.absent is None else scores.masked_fill(self.absent.index_select(1, columns), -math.inf)


def search(keys: Tensor, queries: Tensor, temperature: float, columns: BatchColumns, *, width: int,
           rows: int) -> HeadMatches:
    """The winners of the passive columns among the passive keys; keys and queries are (size, N)."""
    own_keys, own_queries = (columns.by_card(x)[..., columns.passive] for x in (keys, queries))
    reach = reach_of(own_keys.flatten(1), own_queries.flatten(1), temperature, width)
    found = _known(_find_by_card(own_keys, own_queries, reach), own_queries, columns, rows)
    if len(found.winners):
        # Rounding a score by less than this changes no weight that is not as good as 0.
        margin = reach + 1 / max(1.0, temperature)
        wide = torch.promote_types(keys.dtype, torch.float32)
        best = found.winning(keys, queries, torch.arange(keys.shape[1], device=keys.device)).to(wide).amax(0)
        found.floor = torch.where(columns.is_passive & (found.shared < 0), best - margin, math.inf)
    return found


def give_up(queries: Tensor, columns: BatchColumns, rows: int) -> HeadMatches:
    """No winners: the full softmax for every query, equal ones together."""
    own = columns.by_card(queries)[..., columns.passive]
    every = own.flatten(1)
    none = Winners(torch.empty(0, every.shape[1], dtype=torch.long, device=every.device), distinct(every)[1])
    return _known(none, own, columns, rows)


def _find_by_card(keys: Tensor, queries: Tensor, reach: float) -> Winners:
    """The winners in every card of a batch, (size, P, q); cards with the same keys are searched together."""
    if bool((keys == keys[:, :1]).all()):
        return find(keys[:, 0], queries.flatten(1), reach)
    found = [find(keys[:, card], queries[:, card], reach) for card in range(keys.shape[1])]
    most = max(len(f.keys) for f in found)
    return Winners(torch.cat([pad(f.keys, (0, 0, 0, most - len(f.keys)), value=-1) for f in found], 1),
                   torch.cat([f.shared for f in found]))


def _known(found: Winners, queries: Tensor, columns: BatchColumns, rows: int) -> HeadMatches:
    """The winners as columns of the batch."""
    own = torch.arange(len(columns.is_passive), device=queries.device)
    first = columns.first.expand(-1, len(columns.passive)).flatten()
    won = torch.where(found.keys >= 0, columns.passive[found.keys.clamp(min=0)] + first, own[columns.is_passive])
    shared, questions = _questions(found.shared.view(columns.cards, -1), queries)
    few = shared.flatten() < 0
    absent = found.keys < 0
    return HeadMatches(
        winners=columns.spread(won, own), absent=columns.spread(absent, True) if bool((absent & few).any()) else None,
        floor=torch.full(own.shape, math.inf, device=own.device), questions=questions,
        sharing=columns.spread(~few, False).nonzero().squeeze(1), shared=columns.spread(shared.flatten(), -1),
        answers=queries.new_full((rows, *questions.shape[1:]), math.nan), touched=torch.zeros_like(columns.is_passive),
    )


def _questions(shared: Tensor, queries: Tensor) -> tuple[Tensor, Tensor]:
    """The classes of every card, numbered from 0, and their queries; a card with fewer has zeros at the end."""
    shared, asked = shared.clone(), []
    for card in range(len(shared)):
        sharing = (shared[card] >= 0).nonzero().squeeze(1)
        classes, member = torch.unique(shared[card, sharing], return_inverse=True)
        shared[card, sharing] = member
        one = torch.zeros_like(classes)
        one[member] = sharing
        asked.append(queries[:, card, one])
    most = max(x.shape[1] for x in asked)
    return shared, torch.stack([pad(x, (0, most - x.shape[1])) for x in asked], 1)
