"""What the passive columns of a batch of cards take from in one head, as long as their keys and queries stay the same.

Columns are numbered through a batch of P cards of n columns: column j of card p is p n + j. N = P n.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn.functional import pad

from punchcard.engines.scratchpad import winners
from punchcard.engines.scratchpad.winners import Winners


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
    floor      the score from which on an active key has a weight, (N)
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
    reach = winners.reach_of(own_keys.flatten(1), own_queries.flatten(1), temperature, width)
    found = _known(_find(own_keys, own_queries, reach), own_queries, columns, rows)
    if len(found.winners):
        # Rounding a score by less than this changes no weight that is not as good as 0.
        margin = reach + 1 / max(1.0, temperature)
        wide = torch.promote_types(keys.dtype, torch.float32)
        best = found.winning(keys, queries, torch.arange(keys.shape[1], device=keys.device)).to(wide).amax(0)
        found.floor = torch.where(columns.is_passive & (found.shared < 0), best - margin, math.inf)
    return found


def give_up(queries: Tensor, columns: BatchColumns, rows: int) -> HeadMatches:
    """No winners: the full softmax for every query."""
    own = columns.by_card(queries)[..., columns.passive]
    return _known(winners.none(own.flatten(1)), own, columns, rows)


def _find(keys: Tensor, queries: Tensor, reach: float) -> Winners:
    """The winners in every card of a batch, (size, P, q); cards with the same keys are searched together."""
    if bool((keys == keys[:, :1]).all()):
        return winners.find(keys[:, 0], queries.flatten(1), reach)
    found = [winners.find(keys[:, card], queries[:, card], reach) for card in range(keys.shape[1])]
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
