"""How an input buffer lies in memory, for the code that takes numbers from it (`input_table` makes it).

A stream is an array: the next of its numbers, how many there are, whether the input ends behind them, what stands for the
end, how often that was taken, then the numbers. A buffer is an array too: its stream, the sign, the place of the number (an
offset in the card's buffer, a mask, a shift), how many others are put, and for each an offset, a mask and its bits.
"""

from __future__ import annotations

from enum import IntEnum


class StreamPlace(IntEnum):
    """What a stream has where."""

    NEXT, COUNT, HAS_END, AT_END, ENDS, NUMBERS = range(6)


class TablePlace(IntEnum):
    """What a buffer has where; others from FIRST on."""

    STREAM, SIGN, PLACE, MASK, SHIFT, OTHERS, FIRST = range(7)
