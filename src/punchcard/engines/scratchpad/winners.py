"""Which keys answer a query, when neither changes: the few whose softmax weight is not exactly 0.

A key whose score is below the best by the lead of `transformer.softmax` has a weight of exactly 0. What is left of a hard
head's softmax is then a softmax over a few keys, whatever the number of columns, and it comes out the same bit for bit. The
search is made once, so it may take longer than a loop, but not n^2: where the keys are codes it looks the wanted code up.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from punchcard.card.formats import name_of
from punchcard.transformer.grids import grid_of
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


def none(queries: Tensor) -> Winners:
    """Every query keeps the full softmax, equal ones together."""
    return Winners(torch.empty(0, queries.shape[1], dtype=torch.long, device=queries.device), distinct(queries)[1])


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
    grids = [grid_of(values.double().cpu().numpy()) for values in (keys, queries)]
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
    """Winners among keys whose every row has but two values: the key that a query wants can be written down and looked up.

    A key that departs from it in row i scores less by |query_i| times the difference of the two values. Rows that are 0 in
    all queries, or the same in all keys, do not matter. -1 where a query is not decided in this way.
    """
    found = torch.full((MOST_WINNERS, queries.shape[1]), -1, dtype=torch.long, device=keys.device)
    low, high = keys.amin(1, keepdim=True), keys.amax(1, keepdim=True)
    rows = ((queries != 0).any(1) & (low < high).squeeze(1)).nonzero().squeeze(1)
    keys, queries, low, high = keys[rows], queries[rows], low[rows], high[rows]
    if not 0 < len(rows) <= CODE_BITS or not bool(((keys == low) | (keys == high)).all()):
        return found
    place = (2 ** torch.arange(len(rows), device=keys.device)).unsqueeze(1)
    codes, order = torch.sort(((keys == high) * place).sum(0), stable=True)
    wanted = ((queries > 0) * place).sum(0)
    first, end = torch.searchsorted(codes, wanted), torch.searchsorted(codes, wanted, right=True)
    sure = (queries.abs() * (high - low)).amin(0) > reach
    sure &= (first < end) & (end - first <= MOST_WINNERS)
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
        found.append(torch.nn.functional.pad(number.T, (0, 0, 0, MOST_WINNERS - len(number.T)), value=-1))
        many.append(near > MOST_WINNERS)
    return torch.cat(found, 1), torch.cat(many)
