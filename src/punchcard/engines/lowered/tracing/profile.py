"""What comes back on a card: hot states, what differs from visit to visit, and which state follows which.

A sample is what active columns carried before each of many loops, the codes that the loop looked for, and what they carried
after it. One word of what they carry, the anchor, tells hot states apart. It is found by looking: with the right one,
the fewest bits of the other words change from visit to visit; among equals, it is the word in which the fewest bits change
at all: others have more values that were not met yet. Nothing here knows what a word means.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]
Flags = npt.NDArray[np.bool_]
Changed = Callable[[Words], Flags]
MOST_ARMS = 6
"""Ways through a hot state."""
MOST_VALUES = 3
"""A code that has more values in a hot state is computed there."""
MOST_SUCCESSORS = 8
MOST_SAMPLES = 1 << 16
LEAST_SHARE, LEAST_SHARE_OUTSIDE = 0.6, 0.5
"""How much of a sample hot states must cover; and of one outside of the traces that there are."""


@dataclass(frozen=True)
class Arm:
    """A way through a hot state: codes and words that are as they were each time (None: not taken for known), and the hot
    states that followed.
    """

    codes: tuple[int | None, ...]
    reads: tuple[int | None, ...]
    successors: tuple[int, ...]


@dataclass(frozen=True)
class HotState:
    """What active columns carry when it is reached: in the bits of `masks` the `values`, anything in others."""

    masks: tuple[int, ...]
    values: tuple[int, ...]
    arms: tuple[Arm, ...]


@dataclass(frozen=True)
class HotGraph:
    """Hot states, and which word tells them apart. `entries`: those that were reached from others than hot states.

    `counters`: words that were 1 more after each loop.
    """

    anchor: int
    states: tuple[HotState, ...]
    entries: tuple[int, ...]
    counters: tuple[int, ...]


@dataclass(frozen=True)
class Sample:
    """Loops, one a row: the states before, the codes, the words that were read and where, the states after, and whether a
    trace was left just before.
    """

    before: Words
    codes: Words
    reads: Words
    places: Words
    after: Words
    left: Flags

    @property
    def loops(self) -> int:
        return len(self.before)

    @classmethod
    def none(cls) -> Sample:
        """No loops yet."""
        none = np.zeros((0, 0), dtype=np.uint64)
        return cls(none, none, none, none, none, np.zeros(0, dtype=np.bool_))

    def joined(self, more: Sample) -> Sample:
        """Both, the newest last; the oldest go when there are too many."""
        if not self.loops:
            return more
        parts = ((getattr(self, part.name), getattr(more, part.name)) for part in fields(Sample))
        return Sample(*(np.concatenate(pair)[-MOST_SAMPLES:] for pair in parts))


def hot_graph(sample: Sample, groups: Sequence[Sequence[int]], least_visits: int, most: int,
              changed: Changed, anchor: int | None = None) -> HotGraph | None:
    """The hot states of a sample; None if little of it comes back. The anchor is given where there are traces already.

    `changed` says of places in the buffer whether what is there has changed since the run began: words from there
    are not taken for constants. At most so many hot states are taken.

    `groups` has, for each word, masks of bits that belong together: when one of them changes, all may.
    """
    if sample.loops == 0:
        return None
    best: tuple[float, int, int] | None = None
    spread = np.bitwise_count(np.bitwise_or.reduce(sample.before ^ sample.before[0], axis=0))
    all_changing = int(spread.sum())
    least = sample.loops * (LEAST_SHARE if anchor is None else LEAST_SHARE_OUTSIDE)
    for word in range(sample.before.shape[1]) if anchor is None else [anchor]:
        found = _visits(sample.before[:, word])
        hot = found.counts[found.counts >= least_visits]
        if np.sort(hot)[::-1][:most].sum() >= least:
            changing = _changing(sample.before, found)
            bits = np.where(found.counts > 1, np.bitwise_count(changing).sum(axis=1), all_changing)  # once says nothing
            cost = float((bits * found.counts).sum()) / sample.loops
            this = cost, int(spread[word]), word
            best = this if best is None else min(best, this)
    return None if best is None else _graph(sample, best[-1], groups, least_visits, most, changed)


@dataclass(frozen=True)
class _Visits:
    """The different values of a word: `of` gives the number of each loop's value; `order` has the loops value by value."""

    of: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]
    order: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]


def _visits(word: Words) -> _Visits:
    _, of, counts = np.unique(word, return_inverse=True, return_counts=True)
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    return _Visits(of, counts, np.argsort(of, kind="stable"), starts)


def _changing(states: Words, visits: _Visits) -> Words:
    """For each value of the anchor, the bits of every word that were not always the same."""
    ordered = states[visits.order]
    first = np.repeat(ordered[visits.starts], visits.counts, axis=0)
    changing: Words = np.bitwise_or.reduceat(ordered ^ first, visits.starts, axis=0)
    return changing


def _graph(sample: Sample, anchor: int, groups: Sequence[Sequence[int]], least_visits: int, most: int,
           changed: Changed) -> HotGraph:
    visits = _visits(sample.before[:, anchor])
    by_visits = np.argsort(-visits.counts, kind="stable")
    chosen = [int(v) for v in by_visits[:most] if visits.counts[v] >= least_visits]
    masks, values = {}, {}
    changing = _changing(sample.before, visits)
    for v in chosen:
        first = sample.before[visits.order[visits.starts[v]]]
        masks[v] = tuple(_fixed(int(bits), own) for bits, own in zip(changing[v], groups, strict=True))
        values[v] = tuple(int(word) & mask for word, mask in zip(first, masks[v], strict=True))
    loose = changed(sample.places)
    by_anchor = {values[v][anchor]: number for number, v in enumerate(chosen)}
    states = []
    for v in chosen:
        loops = visits.order[visits.starts[v] : visits.starts[v] + visits.counts[v]]
        arms = _arms(sample.codes[loops], sample.reads[loops], loose[loops], sample.after[loops, anchor], by_anchor)
        states.append(HotState(masks[v], values[v], arms))
    entries = _entries(sample, anchor, states, by_anchor, everything=least_visits == 1)
    return HotGraph(anchor, tuple(states), entries, _counters(sample, states))


def _entries(sample: Sample, anchor: int, states: Sequence[HotState], by_anchor: dict[int, int], *,
             everything: bool) -> tuple[int, ...]:
    """Hot states that were reached from others than hot states or from another trace, or that no hot state leads to."""
    if everything:
        return tuple(range(len(states)))
    outside = np.isin(sample.before[:, anchor], list(by_anchor), invert=True)
    entered = {by_anchor[then] for then in np.unique(np.concatenate(
        [sample.after[outside, anchor], sample.before[sample.left, anchor]])).tolist() if then in by_anchor}
    followed = {then for state in states for arm in state.arms for then in arm.successors}
    return tuple(sorted(entered | (set(range(len(states))) - followed)))


def _counters(sample: Sample, states: Sequence[HotState]) -> tuple[int, ...]:
    """Words that were 1 more after each loop, and are a constant of no hot state."""
    counts = (sample.after - sample.before == 1).all(axis=0)
    return tuple(i for i, each in enumerate(counts.tolist()) if each and not any(state.masks[i] & 1 for state in states))


def _fixed(changing: int, groups: Sequence[int]) -> int:
    """The bits of a word that are taken for constant."""
    return sum(group for group in groups if not group & changing)


def _arms(codes: Words, reads: Words, loose: Flags, after: Words, by_anchor: dict[int, int]) -> tuple[Arm, ...]:
    """The ways through a hot state. Codes with many values are left open, until there are few ways."""
    distinct = [len(np.unique(column)) for column in codes.T]
    forced = [j for j, count in enumerate(distinct) if count <= MOST_VALUES]
    while True:
        ways, of, counts = np.unique(codes[:, forced], axis=0, return_inverse=True, return_counts=True)
        if len(ways) <= MOST_ARMS:
            break
        forced.remove(max(forced, key=lambda j: distinct[j]))
    arms = []
    for way in np.argsort(-counts, kind="stable"):
        loops = np.flatnonzero(of.reshape(-1) == way)
        known = dict(zip(forced, ways[way].tolist(), strict=True))
        read, doubtful = reads[loops], loose[loops]
        same = [int(read[0, j]) if not doubtful[:, j].any() and (read[:, j] == read[0, j]).all() else None
                for j in range(reads.shape[1])]
        followed = Counter(after[loops].tolist()).most_common()
        successors = [by_anchor[then] for then, _ in followed if then in by_anchor][:MOST_SUCCESSORS]
        arms.append(Arm(tuple(known.get(j) for j in range(codes.shape[1])), tuple(same), tuple(successors)))
    return tuple(arms)
