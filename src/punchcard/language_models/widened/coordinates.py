"""The added coordinates of a widened model, by name. Each holds a number, times one amplitude.

A column is a token's place in the text. `=` is the column that computes a sum; answer digits fetch from there.
"""

from __future__ import annotations

from punchcard.card.layout import Layout, Region, RowBlock

MOST_DIGITS = 8


def coordinates(digits: int) -> Layout:
    """The coordinates for sums of so many digits."""
    n = digits
    return Layout([
        RowBlock("one", 1, "1"),
        # set by the token
        RowBlock("digit", 1, "the digit, 0 for other tokens"),
        RowBlock("is_digit", 1), RowBlock("plus", 1), RowBlock("equals", 1),
        RowBlock("blank", 1, "white space"), RowBlock("leads", 1, "a blank and a sum may follow"),
        RowBlock("open", 1, "a sum may begin after this column; a digit: no other token was before"),
        RowBlock("ballast", 1, "makes the square sum of every column the same, in front of the base"),
        # layer 1: the tokens before
        RowBlock("led", 1, "`leads`, one place back"),
        RowBlock("only_digits", 1, "1 where no token so far is other than a digit"),
        RowBlock("others", 1, "the share of tokens so far that are not digits"),
        RowBlock("may_have", n + 1, "whether that share is what 1, 2, ... digits before this token, or more, would leave"),
        # layer 1 and 2
        RowBlock("began", 1, "`only_digits`, one place back: before this token the text has digits alone"),
        RowBlock("back", n, "digits 1, 2, ... places back"),
        RowBlock("is_back", n + 1, "whether they are digits"),
        RowBlock("number", n, "the digits of the number before this column, the last first, 0 before its first"),
        RowBlock("length", n, "whether the number has 1, 2, ... digits at least"),
        RowBlock("written", n + 1, "this is digit 1, 2, ... of an answer, by what comes before it"),
        # layer 3: from the column before the number
        RowBlock("opened", 1, "`open`, before the number"),
        RowBlock("other", n, "`number`, there: of `=`, the first number"),
        RowBlock("makes_ten", n, "digits add up to 10 or more"),
        RowBlock("makes_nine", n, "to 9 or more"),
        RowBlock("makes_one", n, "to 1 or more"),
        RowBlock("is_first", 1, "a `+` after a number with which a sum may begin"),
        RowBlock("answer", n + 1, "the digits of this number as an answer, the first first"),
        # layer 4: the sum
        RowBlock("first", 1, "`is_first`, before the number"),
        RowBlock("sum", n + 1, "the digits of the sum, the last first"),
        RowBlock("reaches", n, "whether the sum has 2, 3, ... digits at least"),
        RowBlock("is_sum", 1, "an `=` after a sum"),
        # layer 5: from `=`
        RowBlock("due", n + 1, "`sum`, there"), RowBlock("due_reaches", n), RowBlock("is_due", 1, "`is_sum`, there"),
        RowBlock("next", 1, "1 more than the next digit of the answer; 11 after its last digit, 0 without an answer"),
        RowBlock("wrong", 1, "how much what is written differs from the answer"),
        # layer 6: what comes next
        RowBlock("said", 10, "1 at the next digit"),
        RowBlock("ended", 1, "1 where the text ends"),
    ], [Region("column", 1)])
