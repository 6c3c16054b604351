"""Heads that move vectors by address: read, write, a store that needs no average, and a transpose.

Encodings of L bits score L with themselves and at most L - 2 with each other. A *store key* lets one head do two things
at once: with a factor 1/2 <= f < 1, the key f * position + pointer scores

    L          in the scratchpad, for the column that its pointer names,
    f L        in the column itself,
    L - 2      at most, in the scratchpad for any other column,
    f (L - 2)  at most, in any other column,

as long as the scratchpad's own position rows are 0. So the column that the pointer names takes from the scratchpad, and
every other column from itself. f = (L - 1) / L makes the first two gaps 1; a power of two near it, f = 1 - 2^-k, makes all
scores exact, at a gap of at least 2/3.

*Overwriting* without averaging: attention adds twice the new bits, and a clip makes the old ones irrelevant. With x the old
bit, or 0, and y the new one, x + 2 y has the sign of y and a size of at least 1. A clip of slope 2 that is flat beyond ±1/2
gives y, and removes noise up to 1/2. A bit that gets nothing, y = 0, keeps its value.
"""

from __future__ import annotations

from punchcard.transformer.build import Part, assign, attend, clear
from punchcard.transformer.expression import Expression, Rows, gated, relu

ADDRESS_GAP = 2.0
"""Two different ±1 encodings of log n bits differ in at least one bit, so their product is at most log n - 2."""


def read(*, pointer: Rows, position: Rows, source: Rows, into: Rows, via: Rows, inside: Rows, gate: float) -> Part:
    """Lemma (read): `into` := the `source` rows of the column named by `pointer`, in the scratchpad's columns. One layer.

    K = Q = pointer + position: the scratchpad's column holds a pointer and no position, every other column its position
    and no pointer. So the scratchpad finds itself and the column i that it points at, with weight 1/2 each, and any
    other column finds itself (column i also finds the scratchpad). V moves source + into to `via`:

        scratchpad         via = (v_old + v_i) / 2    into += 2 via - 2 v_old = v_i - v_old, so into = v_i
        any other column   via = something            the gate is closed: into stays

    Then `via` is cleared. Hidden units: 4 for each row read.
    """
    return _averaged(pointer, position, source, into, via, inside, gate, opens_inside=True)


def write(*, pointer: Rows, position: Rows, source: Rows, into: Rows, via: Rows, inside: Rows, gate: float) -> Part:
    """Lemma (write): `into` of the column named by `pointer` := `source` of the scratchpad. One layer.

    The attention is that of `read`. The gate is open outside the scratchpad:

        column i           via = (v_i + v_new) / 2    into += 2 via - 2 v_i = v_new - v_i, so into = v_new
        any other column   via = v_j, its own         into += 2 v_j - 2 v_j = 0
        scratchpad         the gate is closed         into stays

    The print has a plus before the second ReLU; with 3 stored and -2 to write it gives 8. It is a minus:
    v += relu(-C b + 2 via - 2 v) - relu(-C b - 2 via + 2 v). Hidden units: 4 for each row written.
    """
    return _averaged(pointer, position, source, into, via, inside, gate, opens_inside=False)


def _averaged(pointer: Rows, position: Rows, source: Rows, into: Rows, via: Rows, inside: Rows, gate: float, *,
              opens_inside: bool) -> Part:
    """The mean of two columns goes to `via`, and from there into `into` where the gate is open."""
    address = pointer + position
    return (
        attend(query=address, key=address, value=source + into, into=via, gap=ADDRESS_GAP, winners=2)
        + assign(into, into + gated(2 * via - 2 * into, 1 - inside if opens_inside else inside, gate))
        + clear(via)
    )


def store_factor(length: int) -> float:
    """f = 1 - 2^-k with the largest gap for encodings of `length` bits."""
    return max((1 - 2.0**-k for k in range(1, 8)), key=lambda factor: _gap(factor, length))


def store_gap(length: int) -> float:
    """The least difference between the best score of a store key and any other."""
    return _gap(store_factor(length), length)


def _gap(factor: float, length: int) -> float:
    own = factor * length
    return min(length - own, own - (length - 2), own - factor * (length - 2))


def clip(bits: Rows) -> Part:
    """Clip to ±1 in every column: x + relu(-x - 1/2) + relu(x + 1/2) - 2 relu(x - 1/2) - 1/2. Three units a bit.

    x >= 1/2: x + (x + 1/2) - (2 x - 1) - 1/2 = 1.    x <= -1/2: x + (-x - 1/2) - 1/2 = -1.
    """
    return assign(bits, bits + relu(-bits - 0.5) + relu(bits + 0.5) - 2 * relu(bits - 0.5) - 0.5)


def clipped_where(condition: Expression, bits: Expression, gate: float) -> Expression:
    """The bits, clipped to ±1 where `condition` is 1, and 0 where it is 0, for |x| < gate. Two units a bit."""
    above, below = (gated(relu(bits + half), 1 - condition, gate) for half in (0.5, -0.5))
    return 2 * above - 2 * below - condition


def clip_where(condition: Expression, bits: Rows, gate: float) -> Part:
    """Clip to ±1 in the columns where `condition` is 1, and set 0 where it is 0. Four units a bit."""
    return assign(bits, clipped_where(condition, bits, gate))


PAPER_UNITS = 8
"""Hidden units for each row of the input, by the paper's count."""


def transpose(*, entry: Rows, position: Rows, target: Rows) -> Part:
    """Section 8: a matrix that is given entry by entry, an entry a column, is transposed by one layer with one head.

    Every column's `entry` becomes that of the column whose `position`, the encoding of row and column, is its `target`, that
    of column and row: for 30 x 30 two sets of 5 + 5 bits and the entry, the paper's 2 * 10 + 1 = 21 rows. The print stops
    there, and its residual leaves a_rc + a_cr. There is no empty row to take it into, but the second set repeats the first,
    only in another order: a_cr is taken into the row of its first bit, and that bit is known from the first set.

        head           target[0] = bit + a_cr
        feed-forward   entry     = target[0] - bit,     target[0] = bit,     with bit = position[half]

    The paper's width of 168 is 8 hidden units a row, which adding encodings would take (lemma of addition). A transpose adds
    none: 4 units are enough. Numbers whose sums with 1 and with each other are exact, such as integers, are moved exactly.
    """
    half = position.size // 2
    first, bit = target[:1], position[half : half + 1]
    return (
        attend(query=target, key=position, value=entry, into=first, gap=ADDRESS_GAP)
        + assign(entry, first - bit)
        + assign(first, bit)
    )
