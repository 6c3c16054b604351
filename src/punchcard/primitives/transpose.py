"""Section 8: a matrix that is given entry by entry, an entry a column, is transposed by one layer with one head.

Column (r, c) holds entry a_rc, the encoding of (r, c) and that of (c, r): for 30 x 30 two sets of 5 + 5 bits and the
entry, the paper's 2 * 10 + 1 = 21 rows. The head finds the column that the second set names and takes its entry. The print
stops there, and its residual leaves a_rc + a_cr. There is no empty row to take it into, but the second set repeats the
first, only in another order: a_cr is taken into the row of its first bit, and that bit is known from the first set.

    head           target[0] = bit + a_cr
    feed-forward   entry     = target[0] - bit,     target[0] = bit,     with bit = position[half]

The paper's width of 168 is 8 hidden units a row, which adding encodings would take (lemma of addition). A transpose adds
none: 4 units are enough. Numbers whose sums with 1 and with each other are exact, such as integers, are moved exactly.
"""

from __future__ import annotations

from punchcard.primitives.read import ADDRESS_GAP
from punchcard.transformer.build import Part, assign, attend
from punchcard.transformer.expression import Rows

PAPER_UNITS = 8
"""Hidden units for each row of the input, by the paper's count."""


def transpose(*, entry: Rows, position: Rows, target: Rows) -> Part:
    """Every column's `entry` becomes that of the column whose `position` is its `target`.

    `position` is the encoding of row and column, and `target` that of column and row.
    """
    half = position.size // 2
    first, bit = target[:1], position[half : half + 1]
    return (
        attend(query=target, key=position, value=entry, into=first, gap=ADDRESS_GAP)
        + assign(entry, first - bit)
        + assign(first, bit)
    )
