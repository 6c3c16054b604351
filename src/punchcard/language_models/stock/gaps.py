"""By how much the column that a head should find leads all others, for every text, from the weights.

A score is x B y, with x the bits of the column that asks and y those of the column that answers. Read off B, and off the
positions:

    entries      terms w x_a y_b with w > 0 over rows that no position sets: they agree or not. The constant of B is minus
                 their sum, so that a column that agrees in all of them scores 0, and any other at most -2 w
    places       what is left depends on the two positions alone

A head without entries finds a place; one with entries finds the latest column that agrees. Anything else is refused.

What is computed differs from that. Let entry i of a column be off by d_i, S be the sum of the absolute values of all terms,
n their number, u the rounding unit, and c the factor by which a norm may be off: it is common to a column, so it leaves a
match at 0, and moves what the places score by 2 c at most.

    |computed - exact| <= (n + 8) u S + sum of terms (d_a + d_b) + 2 c (what places score), and for turning pairs 4 eps of
    float32 times what they score: sin and cos are float32

A head holds where lead - 2 error >= ln(2 / eta): then all other weights are exactly 0 (`transformer.softmax`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from punchcard.card.formats import FORMATS, AnyArray
from punchcard.errors import WeightsError
from punchcard.language_models.stock.positions import SPACING, Positions, RotaryPositions
from punchcard.transformer.expression import Array
from punchcard.transformer.softmax import hard_product

ONE_ROW = 0
"""The row `one` is the first."""


@dataclass(frozen=True)
class NormTolerance:
    """How far a norm of ±1 entries may be from the identity: a factor common to a column, and each entry for itself.

    RMSNorm is exact: it adds ones. LayerNorm rounds a mean and a variance; twice what torch makes of it is allowed, and that
    entries of the same size differ by their last bit.
    """

    common: float
    single: float

    def scaled(self, dtype: str) -> NormTolerance:
        """The same for another number format than float32."""
        factor = FORMATS[dtype].eps / FORMATS["float32"].eps
        return NormTolerance(self.common * factor, self.single * factor)


NORMS = {"gpt2": NormTolerance(2.0**-22, 2.0**-23), "llama": NormTolerance(0.0, 0.0)}
"""By the form of a checkpoint, in float32."""


@dataclass(frozen=True)
class HeadGap:
    """What a head finds, and how safely.

    back       so many places back, or None: the latest column that agrees
    entries    pairs of rows that must agree: (of the column that asks, of the one that answers)
    lead       by how much the right column leads, in exact numbers
    error      how far a computed score may be off
    early      how far back the first columns find theirs: those before which there is no column so many places back
    """

    back: int | None
    entries: tuple[tuple[int, int], ...]
    lead: float
    error: float
    early: tuple[int, ...] = ()

    def left(self, dtype: str) -> float:
        """What is left of the lead beyond what makes all other weights exactly 0. Negative: the head does not hold."""
        return self.lead - 2 * self.error - hard_product(dtype)


def head_gap(query: Array, key: Array, positions: Positions, table: Array | None, dtype: str, off: Array, common: float
             ) -> HeadGap:
    """What a head finds, from its query and key over bits. Entries may be `off` by so much, columns by a `common` factor."""
    scale, limits = 1 / math.sqrt(positions.head_size), FORMATS[dtype]
    sizes = np.abs(query).sum(axis=1) * np.abs(key).sum(axis=1) * scale
    single = (np.abs(query) @ off * np.abs(key).sum(axis=1) + np.abs(query).sum(axis=1) * (np.abs(key) @ off)) * scale
    error = (np.count_nonzero(sizes) + 8) * limits.eps / 2 * float(sizes.sum()) + float(single.sum())
    if isinstance(positions, RotaryPositions):
        entries, worth, places, turning = _rotary(query, key, positions, scale)
        error += 4 * FORMATS["float32"].eps * turning + 2 * common * turning
        back, lead = _by_distance(places, bool(entries), worth)
        early = tuple(int(places[: p + 1].argmax()) for p in range(back or 0))
    else:
        assert table is not None
        entries, worth, back, lead = _learned(query, key, table, scale)
        error += 2 * common * float(sizes.max())
        early = (0,) * (back or 0)
    return HeadGap(back, entries, lead, error, early)


def _entries(form: Array) -> tuple[tuple[tuple[int, int], ...], float]:
    """The entries of a bilinear form over bits, and the least of their weights; its constant must be minus their sum."""
    rest = form.copy()
    constant, rest[ONE_ROW, ONE_ROW] = rest[ONE_ROW, ONE_ROW], 0.0
    asking, answering = np.nonzero(rest)
    weights = rest[asking, answering]
    if len(weights) == 0:
        return (), 0.0
    if (weights <= 0).any() or len(set(answering.tolist())) < len(answering):
        raise WeightsError("a head compares a row twice, or with a negative weight: it does not compare bits")
    if weights.max() - weights.min() > 1e-9 * weights.max():
        raise WeightsError("a head's entries have different weights: it does not compare bits")
    if abs(constant + weights.sum()) > 1e-6 * weights.sum():
        raise WeightsError("a head's constant is not minus the sum of its entries: a match does not score 0")
    return tuple(zip(asking.tolist(), answering.tolist(), strict=True)), float(weights.min())


def _rotary(query: Array, key: Array, positions: RotaryPositions, scale: float
            ) -> tuple[tuple[tuple[int, int], ...], float, Array, float]:
    """Entries, the least weight of one, what a distance scores, and the total of the turning pairs."""
    half = positions.head_size // 2
    still = positions.still
    for part in (query, key):
        if part[still + half :].any() or np.delete(part[: still], ONE_ROW, axis=1).any() or np.delete(
                part[half : still + half], ONE_ROW, axis=1).any():
            raise WeightsError("a head compares bits in dimensions that turn with the position")
    entries, worth = _entries(query[still:half].T @ key[still:half] * scale)
    q, k = query[:, ONE_ROW], key[:, ONE_ROW]
    pairs = [j for j in range(still) if (q[j] or q[j + half]) and (k[j] or k[j + half])]
    angles = np.outer(positions.frequencies[pairs], np.arange(positions.count))
    q = q[pairs] + 1j * q[np.add(pairs, half).astype(int)]
    k = k[pairs] + 1j * k[np.add(pairs, half).astype(int)]
    places = scale * np.real((np.conj(q) * k)[:, None] * np.exp(-1j * angles)).sum(axis=0)
    return entries, worth, places, float(scale * (np.abs(q) * np.abs(k)).sum())


def _by_distance(places: Array, matches: bool, worth: float) -> tuple[int | None, float]:
    """The distance that is found, or None for the latest, and its lead: `places` is what each distance scores."""
    if matches:
        falls = places[:-1] - places[1:]
        apart = places[:-SPACING] - places[SPACING:]
        if (falls <= 0).any():
            raise WeightsError("a head does not prefer the later of two columns")
        return None, float(min(apart.min(), 2 * worth - (places.max() - places.min())))
    best = int(places.argmax())
    leads = [_first_two(places[: p + 1]) for p in range(1, best + 1)]  # of the first columns, which have no such place
    return best, min([_first_two(places), *leads])


def _first_two(scores: Array) -> float:
    highest = np.partition(scores, len(scores) - 2)[-2:]
    return float(highest[1] - highest[0])


def _learned(query: Array, key: Array, table: Array, scale: float
             ) -> tuple[tuple[tuple[int, int], ...], float, int | None, float]:
    form = query.T @ key * scale
    placed = np.asarray(table.any(axis=0))
    if form[placed][:, ~placed].any() and np.delete(form[placed][:, ~placed], ONE_ROW, axis=1).any():
        raise WeightsError("a head compares what a position sets with what a token sets")
    here = form[np.ix_(placed, placed)]
    if here.any():
        return _by_place(form, table, placed)
    entries, worth = _entries(np.where(placed[None], 0.0, form))
    latest = table[:, placed] @ form[ONE_ROW, placed]
    rest = form[:, placed].copy()
    rest[ONE_ROW] = 0.0
    if rest.any() or not entries:
        raise WeightsError("a head finds neither a place nor the latest column that agrees")
    if (np.diff(latest) < 0).any():
        raise WeightsError("a head does not prefer the later of two columns")
    lead = min((latest[SPACING:] - latest[:-SPACING]).min(), 2 * worth - (latest.max() - latest.min()))
    return entries, worth, None, float(lead)


def _by_place(form: Array, table: Array, placed: AnyArray) -> tuple[tuple[tuple[int, int], ...], float, int | None, float]:
    """A head that compares bits of positions: the code that each position asks for is that of just one before it."""
    inner = np.where(placed[:, None] & placed[None], form, 0.0)
    rest = np.where(inner != 0, 0.0, form)
    rest[ONE_ROW, ONE_ROW] = 0.0
    if rest.any():
        raise WeightsError("a head finds a place, and compares bits of tokens too")
    inner[ONE_ROW, ONE_ROW] = form[ONE_ROW, ONE_ROW]
    entries, worth = _entries(inner)
    asking, answering = (list(each) for each in zip(*entries, strict=True))
    home = {code.tobytes(): p for p, code in enumerate(table[:, answering])}
    found = np.array([home.get(code.tobytes(), -1) for code in table[:, asking]])
    own = np.arange(len(table))
    if len(home) < len(table) or (found < 0).any() or (found > own).any():
        raise WeightsError("a head asks for a position that is not there")
    back = int((own - found).max())
    if (found != np.where(own >= back, own - back, own)).any():
        raise WeightsError("a head looks back by different distances")
    return (), worth, back, 2 * worth
