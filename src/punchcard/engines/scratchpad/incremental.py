"""One loop of a model, computed only in the columns where something can have changed since the loop before.

The *active* columns (the scratchpad) are computed in every loop, and their queries attend to all n keys. Of the *passive*
rest a column is computed again at a layer only if it could come out otherwise than in the loop before:

    it came in changed;
    a key that it takes from belongs to a column that came in changed;
    an active key has, or had in the loop before, a softmax weight in it that is not 0;
    its query has no few winners, and the full softmax of that query gives something else than before.

All other columns keep what the layer gave last time. That is exact: a layer is a function of what comes in. What a passive
column takes from, its winners, is found once (see `winners`) and holds as long as the keys and queries of the passive
columns stay the same. They are compared whenever a column changes; if they differ, the search is made again, and given
up when that happens too often. A loop costs O(n) for the scores of the active columns, and the layers' work for few.

In the first loop all columns are computed. Most rows are for the computation, and hold 0 in all passive columns: a row
that does is left out where many columns are computed, with its weights (`restriction`).

Shapes are as in `winners`: P cards of n columns, N columns in all.
"""

from __future__ import annotations

import mmap
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from punchcard.engines.scratchpad.restriction import Restriction, key_query_matrix, restrict
from punchcard.engines.scratchpad.winners import BatchColumns, HeadMatches, give_up, search
from punchcard.transformer.model import LoopedTransformer, TransformerLayer

MANY_COLUMNS = 512
"""Up to so many passive columns are computed together with the active ones, in all rows."""
COLUMNS_AT_ONCE = 8192
WEIGHTS_AT_ONCE = 1 << 23
AS_WRITTEN = 1 << 16
"""Up to so many weights the softmax runs down columns, as in the equation, and is the same to the last bit. Beyond, it runs
along rows, which is faster for many columns; then the sum of weights of a soft head may be rounded otherwise."""
MOST_SEARCHES = 3
"""Winners are looked for this often; keys that still change outside the active columns get the full softmax."""


MANY_ENTRIES, FULL = 1 << 12, 1 / 8
"""A matrix with so many entries, of which no larger part is not 0, is multiplied entry by entry, without the zeros."""


class TooLarge(Exception):
    """An entry is so large, or not a number, that 0 times a value might not be 0: only the full equation will do."""


@dataclass
class HeadState:
    """One head: its weights without the rows of zeros, the keys and queries of all columns, (size, N), and their matches.

    In each loop: `taken` is what the active columns took (rows, active), `scores` are those of the active keys (active, N).
    """

    name: tuple[int, int]
    temperature: Tensor
    value: Tensor
    source: Tensor
    into: Tensor
    keys: Tensor
    queries: Tensor
    searches: int = 0
    note: str = ""
    found: HeadMatches = field(init=False)
    taken: Tensor = field(init=False)
    scores: Tensor = field(init=False)


@dataclass
class LayerState:
    """One layer: where its input is in the store, which rows it writes and where to, and its weights.

    `restriction` is the last one that was made of it, for many columns at once.
    """

    whole: TransformerLayer
    heads: list[HeadState]
    ask: Tensor
    asked: Tensor
    input: Tensor
    written: Tensor
    output: Tensor
    w1: Tensor
    b1: Tensor
    w2: Tensor
    b2: Tensor
    restriction: Restriction | None = None

    def restricted(self, rows: Tensor) -> Restriction:
        if self.restriction is None or not torch.equal(self.restriction.rows, rows):
            self.restriction = restrict(self.whole, self.written, rows)
        return self.restriction


class Incremental:
    """A batch of cards in the middle of a run, with the passive columns' state at every layer.

    The store holds the rows of the cards as the loop begins, and below them, for each layer, the rows that it writes; so
    rows that never change are stored once. Rows of the store that are not `held` are 0 in all passive columns: memory
    that was never written to. `limit`: entries up to here keep all sums within the number format.
    """

    def __init__(self, model: LoopedTransformer, card: Tensor, active: Tensor, limit: float) -> None:
        self.batch, self.limit = card.shape[:-2], limit
        self.height = card.shape[-2]
        cards = card.reshape(-1, *card.shape[-2:])
        self.columns = BatchColumns.of(len(cards), card.shape[-1], active)
        self.dirty = self.columns.is_passive.clone()
        layers = [layer for layer in model.layers if isinstance(layer, TransformerLayer)]
        written = [_written(layer) for layer in layers]
        self.store = _zeros(self.height + sum(map(len, written)), len(self.dirty), card)
        self.held = torch.zeros(len(self.store), dtype=torch.bool, device=card.device)
        self._load(cards.transpose(0, 1).reshape(self.height, -1))
        place, start = torch.arange(self.height, device=card.device), self.height
        self.layers: list[LayerState] = []
        for number, (layer, rows) in enumerate(zip(layers, written, strict=True), start=1):
            output = torch.arange(start, start + len(rows), device=card.device)
            self.layers.append(self._layer(number, layer, place.clone(), rows, output))
            place[rows], start = output, start + len(rows)
        self.changing = (place >= self.height).nonzero().squeeze(1)
        self.changed = place[self.changing]

    def _layer(self, number: int, layer: TransformerLayer, place: Tensor, written: Tensor, output: Tensor) -> LayerState:
        count, size = layer.shape.heads, layer.shape.key_size
        asked = self.store.new_zeros(count, 2, size, self.store.shape[1])
        heads = []
        for h, value in enumerate(layer.value):
            source, into = (value.any(side).nonzero().squeeze(1) for side in (0, 1))
            heads.append(HeadState((number, h + 1), layer.temperature[h], value[into][:, source], place[source], into,
                                   *asked[h]))
        return LayerState(
            layer, heads, _without_zeros(key_query_matrix(layer)),
            asked.view(2 * count * size, self.store.shape[1]), place, written, output,
            _without_zeros(layer.w1), layer.b1, _without_zeros(layer.w2[written]), layer.b2[written],
        )

    @property
    def card(self) -> Tensor:
        """The cards between loops: a view, which must not be changed."""
        cards = self.columns.by_card(self.store[: self.height]).transpose(0, 1)
        return cards.view(*self.batch, *cards.shape[1:])

    def replace(self, card: Tensor) -> None:
        """Put another card in the place of this one, between loops."""
        cards = card.reshape(-1, *card.shape[-2:]).transpose(0, 1).reshape(self.height, -1)
        self.dirty |= (cards != self.store[: self.height]).any(0) & self.columns.is_passive
        self._load(cards)

    def _load(self, cards: Tensor) -> None:
        """Cards (height, N) into the store, without the rows that are 0 there and here."""
        own, active = self.store[: self.height], self.columns.active
        own[:, active] = cards[:, active]
        held = self.held[: self.height]
        for part in torch.split(self.columns.is_passive.nonzero().squeeze(1), COLUMNS_AT_ONCE):
            held |= cards.index_select(1, part).any(1)
        rows = held.nonzero().squeeze(1)
        own[rows] = cards[rows]

    @property
    def notes(self) -> tuple[str, ...]:
        """Heads that were not computed in the fast way, and why."""
        named: dict[str, dict[int, list[int]]] = {}
        for head in (head for layer in self.layers for head in layer.heads if head.note):
            number, own = head.name
            named.setdefault(head.note, {}).setdefault(number, []).append(own)
        return tuple(
            f"layer {layer}, head{'s' * (len(heads) > 1)} {', '.join(map(str, heads))}: {note}"
            for note, layers in named.items() for layer, heads in layers.items()
        )

    def loop(self) -> None:
        """X <- TF(W; X). The card stays as it is when this raises `TooLarge`."""
        dirty = self.dirty
        for layer in self.layers:
            dirty = self._pass(layer, dirty)
        few, many = _parted(dirty.nonzero().squeeze(1))
        self.dirty = torch.zeros_like(dirty)
        self._take_over(self.changing, self.changed, torch.cat([self.columns.active, few]))
        held = self.held[self.changing] | self.held[self.changed]
        for part in many:
            self._take_over(self.changing[held], self.changed[held], part)
        self.held[self.changing] = held
        self.dirty[self.columns.active] = False

    def _take_over(self, changing: Tensor, changed: Tensor, columns: Tensor) -> None:
        """Rows as the last layer left them are what the next loop begins with."""
        old, new = self._entries(changing, columns), self._entries(changed, columns)
        self.dirty[columns] = (old != new).any(0)
        self._put(changing, columns, new)

    def _entries(self, rows: Tensor, columns: Tensor) -> Tensor:
        if self.store.shape[0] * columns.shape[0] < 4096:  # so few that two plain steps beat one that picks rows and columns
            return self.store.index_select(1, columns).index_select(0, rows)
        return torch.take(self.store, (rows * self.store.shape[1]).unsqueeze(1) + columns)

    def _put(self, rows: Tensor, columns: Tensor, entries: Tensor) -> None:
        self.store[rows.unsqueeze(1), columns] = entries

    def _pass(self, layer: LayerState, dirty: Tensor) -> Tensor:
        """One layer. `dirty` are the passive columns that came in changed; those that go out changed are returned."""
        again = dirty.clone()
        moved = dirty.nonzero().squeeze(1)
        for head, changed in zip(layer.heads, self._ask(layer, moved), strict=True):
            if not head.searches or changed:
                head.found = self._search(head)
                again |= self.columns.is_passive
            head.taken, head.scores = self._attend_fully(head, again), self._touch(head, again)
            if moved.shape[0]:
                for column in head.found.winners:
                    again |= dirty.index_select(0, column)
        again &= self.columns.is_passive
        few, many = _parted(again.nonzero().squeeze(1))
        out = dirty.clone()
        self._finish(layer, torch.cat([self.columns.active, few]), self.columns.active.shape[0], out)
        for part in many:
            self._finish_many(layer, part, out)
        return out

    def _ask(self, layer: LayerState, moved: Tensor) -> list[bool]:
        """Keys and queries of the active columns, and of those that came in changed: whether a head's are now others."""
        few, many = _parted(moved)
        stale = torch.zeros(len(layer.heads), dtype=torch.bool, device=moved.device)
        active = self.columns.active.shape[0]
        self._ask_for(layer, layer.input, layer.ask, torch.cat([self.columns.active, few]), active, stale)
        if many:
            rows = self.held[layer.input].nonzero().squeeze(1)
            ask = key_query_matrix(layer.whole)[:, rows]
            for part in many:
                self._ask_for(layer, layer.input[rows], ask, part, 0, stale)
        return list(stale.tolist())

    def _ask_for(self, layer: LayerState, rows: Tensor, ask: Tensor, columns: Tensor, active: int, stale: Tensor) -> None:
        """Keys and queries of some columns, the active ones first, from some rows of the store; marks heads that changed."""
        entries = self._entries(rows, columns)
        if not bool((entries.abs() <= self.limit).all()):
            raise TooLarge
        if layer.heads:
            new = ask @ entries
            if columns.shape[0] > active:
                other = new[:, active:] != layer.asked[:, columns[active:]]
                stale |= other.view(len(layer.heads), -1).any(1)
            layer.asked[:, columns] = new

    def _search(self, head: HeadState) -> HeadMatches:
        """Find out what the passive columns take from, and say where that is not a few columns."""
        head.searches += 1
        rows = len(head.into)
        if head.searches > MOST_SEARCHES:
            head.note = "keys or queries change outside the active columns; full softmax"
            return give_up(head.queries, self.columns, rows)
        found = search(head.keys, head.queries, float(head.temperature), self.columns, width=self.height, rows=rows)
        if len(found.sharing):
            head.note = "passive columns have queries without a clear winner; full softmax for these"
        elif head.searches > 1:
            head.note = "keys or queries changed outside the active columns; winners were looked for again"
        return found

    # Attention

    def _attend_fully(self, head: HeadState, again: Tensor) -> Tensor:
        """The softmax over all n keys, for the active columns and for the queries without a clear winner."""
        size, found = head.keys.shape[0], head.found
        active = head.queries.index_select(1, self.columns.active).view(size, self.columns.cards, self.columns.active_a_card)
        queries = torch.cat([active, found.questions], -1).transpose(0, 1)
        keys = self.columns.by_card(head.keys).transpose(0, 1)
        step = max(1, WEIGHTS_AT_ONCE // again.shape[0])
        parts = [self._take(head, self._weights(head, keys, part)) for part in _parts(queries, step, 2)]
        every = parts[0] if len(parts) == 1 else torch.cat(parts, -1)
        taken, answers = every[..., : active.shape[-1]], every[..., active.shape[-1] :]
        if answers.numel():
            other = (answers != found.answers).any(0)
            again[found.sharing] |= other[found.sharing // self.columns.count, found.shared[found.sharing]]
            found.answers = answers
        return taken.flatten(1)

    def _weights(self, head: HeadState, keys: Tensor, queries: Tensor) -> Tensor:
        """The softmax of the scores of all keys (P, size, n) for some queries (P, size, q): (P, n, q)."""
        if queries[:, 0].numel() * self.columns.count <= AS_WRITTEN:
            return torch.softmax(head.temperature * (keys.transpose(1, 2) @ queries), dim=-2)
        return torch.softmax(head.temperature * (queries.transpose(1, 2) @ keys), dim=-1).transpose(1, 2)

    def _take(self, head: HeadState, weights: Tensor) -> Tensor:
        """V X times weights (P, n, q), without the columns whose weights are all 0: (rows, P, q)."""
        used = weights.any(2).any(0).nonzero().squeeze(1)
        values = head.value @ self._entries(head.source, (self.columns.first + used).flatten())
        values = values.view(values.shape[0], self.columns.cards, used.shape[0]).transpose(0, 1)
        return (values @ weights.index_select(1, used)).transpose(0, 1)

    def _touch(self, head: HeadState, again: Tensor) -> Tensor:
        """The scores of the active keys; columns in which one has a weight, now or in the loop before, are done again."""
        size, active = head.keys.shape[0], self.columns.active_a_card
        if not active:
            return head.keys.new_empty(0, again.shape[0])
        keys = head.keys.index_select(1, self.columns.active).view(size, self.columns.cards, active).permute(1, 2, 0)
        scores = keys @ self.columns.by_card(head.queries).transpose(0, 1)
        scores = scores.transpose(0, 1).reshape(active, again.shape[0])
        touched = (scores.amax(0) if active > 1 else scores[0]) >= head.found.floor
        again |= touched | head.found.touched
        head.found.touched = touched
        return scores

    def _finish(self, layer: LayerState, columns: Tensor, active: int, changed: Tensor) -> None:
        """What the layer makes of some columns, the active ones first; marks those that come out changed."""
        entries, rest = self._entries(layer.input, columns), columns[active:]
        for head in layer.heads:
            taken = self._taken(head, rest)
            entries.index_add_(0, head.into, torch.cat([head.taken, taken], 1) if active else taken)
        hidden = torch.relu(layer.w1 @ entries + layer.b1)
        new = entries.index_select(0, layer.written) + layer.w2 @ hidden + layer.b2
        changed[rest] |= (new[:, active:] != self._entries(layer.output, rest)).any(0)
        self._put(layer.output, columns, new)
        if rest.shape[0]:
            self.held[layer.output] |= new[:, active:].any(1)

    def _finish_many(self, layer: LayerState, columns: Tensor, changed: Tensor) -> None:
        """The same for many passive columns, without the rows that are 0 in all of them."""
        here = self.held[layer.input]
        here[layer.written] |= self.held[layer.output]
        taken = [self._taken(head, columns) for head in layer.heads]
        for head, values in zip(layer.heads, taken, strict=True):
            here[head.into] |= values.any(1)
        few = layer.restricted(here.nonzero().squeeze(1))
        entries = self._entries(layer.input[few.rows], columns)
        for head, values in zip(layer.heads, taken, strict=True):
            there = here[head.into]
            entries.index_add_(0, few.place[head.into[there]], values[there])
        new, output = few.apply(entries), layer.output[few.written]
        changed[columns] |= (new != self._entries(output, columns)).any(0)
        self._put(output, columns, new)
        self.held[output] |= new.any(1)

    def _taken(self, head: HeadState, columns: Tensor) -> Tensor:
        """What passive columns take: (rows, columns)."""
        found = head.found
        if not found.sharing.shape[0]:
            return self._taken_from_few(head, columns)
        taken = self.store.new_empty(len(head.into), len(columns))
        shared = found.shared[columns]
        few, many = (shared < 0).nonzero().squeeze(1), (shared >= 0).nonzero().squeeze(1)
        taken[:, few] = self._taken_from_few(head, columns[few])
        taken[:, many] = found.answers[:, columns[many] // self.columns.count, shared[many]]
        return taken

    def _taken_from_few(self, head: HeadState, columns: Tensor) -> Tensor:
        """The softmax over the winners and the active keys."""
        who = head.found.winners.index_select(1, columns)
        scores = torch.cat([head.found.winning(head.keys, head.queries, columns), head.scores.index_select(1, columns)])
        weights = torch.softmax(head.temperature * scores, 0)
        own, others = weights[: who.shape[0]], weights[who.shape[0] :]
        values = head.value @ self._entries(head.source, who.flatten())
        taken = (values.view(values.shape[0], *who.shape) * own).sum(1)
        touched = others.any(0).nonzero().squeeze(1)
        if touched.shape[0]:
            values = head.value @ self._entries(head.source, self.columns.active)
            values = values.view(taken.shape[0], self.columns.cards, others.shape[0])
            values = values[:, columns[touched] // self.columns.count]
            taken[:, touched] += (values * others[:, touched].T).sum(-1)
        return taken


def _zeros(rows: int, columns: int, like: Tensor) -> Tensor:
    """Zeros that take no memory before something is written there. Those of torch and of NumPy do: by megabytes, or all."""
    size = rows * columns * like.element_size()
    if like.device.type != "cpu" or sys.platform == "win32" or not size:
        return like.new_zeros(rows, columns)
    pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        pages.madvise(mmap.MADV_NOHUGEPAGE)
    return torch.frombuffer(pages, dtype=like.dtype).view(rows, columns)


def _parted(columns: Tensor) -> tuple[Tensor, Sequence[Tensor]]:
    """Few columns, or none and many in parts."""
    if columns.shape[0] <= MANY_COLUMNS:
        return columns, ()
    return columns[:0], torch.split(columns, COLUMNS_AT_ONCE)


def _parts(whole: Tensor, size: int, axis: int = 0) -> Sequence[Tensor]:
    """At most `size` at once. Most often that is all of it, and `torch.split` takes longer than what is done with it."""
    return (whole,) if whole.shape[axis] <= size else torch.split(whole, size, axis)


def _written(layer: TransformerLayer) -> Tensor:
    """The rows that a layer can change."""
    return (layer.value.any(2).any(0) | layer.w2.any(1) | layer.b2.any(1)).nonzero().squeeze(1)


def _without_zeros(matrix: Tensor) -> Tensor:
    """A matrix as rows of entries that are not 0, where that is quicker."""
    matrix = matrix.detach()
    if (matrix.numel() < MANY_ENTRIES or matrix.device.type != "cpu" or matrix.dtype not in (torch.float32, torch.float64)
            or int(matrix.count_nonzero()) > FULL * matrix.numel()):
        return matrix
    with warnings.catch_warnings():  # torch calls its sparse matrices a beta
        warnings.simplefilter("ignore")
        return matrix.to_sparse_csr()

