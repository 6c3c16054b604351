"""Loops of a network in which one part is changed, without computing again what stays the same.

What nothing reads on the way to the output has no effect there, and is left out. Of a part's weights only those of rows that
it reads or writes are used: about a tenth in models of FLEQ and RISC-V, which are not rotated. A feed-forward layer acts
on each column by itself, so it is computed only where a column has changed. None of it changes the output.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from punchcard.ground_truth.score import Array, Hook, ScoredNetwork
from punchcard.ground_truth.truth import part_of

SMALL = 1e-9
"""A product of weights below this is 0: they are multiples of 1/64, or real numbers of FLEQ."""


class PartRows(NamedTuple):
    """The rows that a part reads and writes, and its weights from and to these: W1 and W2 of a group, V of a head."""

    read: Array
    written: Array
    weights: tuple[Array, ...]

    @classmethod
    def of(cls, first: Array, *more: Array) -> PartRows:
        read = np.flatnonzero(first.any(axis=0))
        written = np.flatnonzero((more or (first,))[-1].any(axis=1))
        if more:
            return cls(read, written, (np.ascontiguousarray(first[:, read]), np.ascontiguousarray(more[0][written])))
        return cls(read, written, (first[np.ix_(written, read)],))

    def taken(self, cards: Array) -> Array:
        """The rows that it reads."""
        return cards if len(self.read) == cards.shape[-2] else cards[..., self.read, :]

    def given(self, rows: Array, width: int) -> Array:
        """Cards in which it writes its rows."""
        if len(self.written) == width:
            return rows
        cards = np.zeros((*rows.shape[:-2], width, rows.shape[-1]))
        cards[..., self.written, :] = rows
        return cards


class WiredNetwork(ScoredNetwork):
    """A network that knows who reads what whom writes, and has no other parts than those that come to the output."""

    def __init__(self, whole: ScoredNetwork) -> None:
        super().__init__(whole.weights, whole.groups, whole.output)
        self.kept_heads = [list(whole.heads(n)) for n in range(whole.layers)]
        self.kept_groups = [list(whole.groups_of(n)) for n in range(whole.layers)]
        writes, reads = {"I": np.eye(len(whole.output))}, {"O": whole.output}
        for n in range(whole.layers):
            for h in whole.heads(n):
                writes[f"L{n}.H{h}"] = whole[n, "value"][h]
                reads |= {f"L{n}.H{h}.{part}": whole[n, name][h] for part, name in zip("qkv", ("query", "key", "value"),
                                                                                    strict=True)}
            for g, units in enumerate(whole.groups[n]):
                writes[f"L{n}.G{g}"], reads[f"L{n}.G{g}"] = whole[n, "w2"][:, units], whole[n, "w1"][units]
        self.useful, self.joined = {"O"}, set[str]()
        for writer in reversed(whole.writers()):
            for reader in whole.readers():
                if (whole.moment(reader) > whole.moment(writer) and part_of(reader) in self.useful
                        and bool((np.abs(reads[reader] @ writes[writer]) > SMALL).any())):
                    self.joined.add(f"{writer}->{reader}")
                    self.useful.add(writer)
        for n in range(whole.layers):
            self.kept_heads[n] = [h for h in self.kept_heads[n] if f"L{n}.H{h}" in self.useful]
            self.kept_groups[n] = [g for g in self.kept_groups[n] if f"L{n}.G{g}" in self.useful]
        self.rows = {(n, "H", h): PartRows.of(self[n, "value"][h]) for n in range(self.layers) for h in self.kept_heads[n]}
        self.rows |= {(n, "G", g): PartRows.of(self[n, "w1"][self.groups[n][g]], self[n, "w2"][:, self.groups[n][g]])
                      for n in range(self.layers) for g in self.kept_groups[n]}
        self.kept_units = [sorted(unit for g in self.kept_groups[n] for unit in self.groups[n][g])
                           for n in range(self.layers)]

    def joins(self, name: str) -> bool:
        """Whether a node or an edge can have an effect on the output."""
        return name in self.joined if "->" in name else name in self.useful

    def heads(self, layer: int) -> Sequence[int]:
        return self.kept_heads[layer]

    def groups_of(self, layer: int) -> Sequence[int]:
        return self.kept_groups[layer]

    def head(self, n: int, h: int, x: Array, take: Hook) -> Array:
        q, k, v = (take(f"L{n}.H{h}.{part}", x) for part in "qkv")
        rows = self.rows[n, "H", h]
        return rows.given(rows.weights[0] @ rows.taken(v) @ self.attention(n, h, q, k), x.shape[-2])

    def group(self, n: int, g: int, x: Array) -> Array:
        rows = self.rows[n, "G", g]
        first, second = rows.weights
        return rows.given(second @ np.maximum(first @ rows.taken(x) + self[n, "b1"][self.groups[n][g]], 0), x.shape[-2])


class RestOfLoop:
    """The rest of a loop in which something is added to the card at a moment, beside the run of which `stages` are known."""

    def __init__(self, network: WiredNetwork, stages: Mapping[int, Array]) -> None:
        self.network, self.stages = network, stages

    def end(self, moment: int, places: Array, more: Array) -> Array:
        """How much the output of some pairs is another."""
        network, off = self.network, np.array(more)
        with np.errstate(over="ignore", invalid="ignore"):
            for now in range(moment, 2 * network.layers):
                pairs = np.flatnonzero(off.any(axis=(1, 2)))
                if not len(pairs):
                    break
                before, after = self.stages[now][places[pairs]], self.stages[now + 1][places[pairs]]
                card, n = before + off[pairs], now // 2
                if now % 2:
                    at = np.nonzero(off[pairs].any(axis=1))
                    columns = card[at[0], :, at[1]].T
                    columns = columns + sum((network.group(n, g, columns) for g in network.kept_groups[n]), network[n, "b2"])
                    found = after.copy()
                    found[at[0], :, at[1]] = columns.T
                else:
                    found = card + sum((network.head(n, h, card, _same) for h in network.kept_heads[n]), 0.0)
                off[pairs] = found - after
        return network.output @ off


def _same(name: str, card: Array) -> Array:
    return card


def exchange_of(moved: Any, columns: list[int], basis: Any) -> Any:
    """What is added to cards when a subspace in some columns is exchanged, of what two runs differ in."""
    found = np.zeros_like(moved)
    found[..., columns] = basis.T @ np.linalg.pinv(basis.T) @ moved[..., columns]
    return found
