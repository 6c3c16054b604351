"""The layers in front of a base: what their heads fetch and what their units compute, for sums of up to `digits` digits.

1  heads fetch the tokens 1, 2 and 3 back; whether all tokens so far are digits; the share of tokens that are not. Units:
   whether a sum may begin here; how many digits before this token such a share would mean
2  heads fetch the same from the columns 4 and 8 back, and so the tokens 4 to 9 back; and whether the text had digits alone
   so far. Units: the number before this column, its length, and which digit of an answer this is
3  a head fetches, from the column before that number, the number before that column. Units: of every two digits, whether
   they make 10, 9, or 1; at `+`, whether it follows the first number of a sum
4  a head fetches that, from the same column. Units: all carries, the sum and its length; whether this is the `=` of a sum
5  a head fetches the sum from `=`. Units: the next digit; whether what is written is the beginning of the sum
6  units: the answer

At the beginning of a text nothing tells apart "3" and "33", since all columns are the same there. But at `+` the share of
tokens that are not digits is 1 / (n + 1), which gives n.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from punchcard.card.layout import Layout
from punchcard.language_models.widened.gates import HALF, Gates, Unit
from punchcard.transformer.expression import Expression, Rows, rows

BLOCK = 4
"""Layer 1 gathers so many tokens, its own included; layer 2 gathers blocks of them."""
END = 11.0
"""The next digit and 1, after the last."""
WRONG = 16.0
"""What is taken off the next digit for a difference of 1 in what is written: more than any digit."""


@dataclass(frozen=True)
class FrontHead:
    """A head of a front layer: which columns it attends to, and what it fetches.

    asks       pairs of a distance and of a formula that is 1 where that distance is meant; none: all columns alike
    others     it attends to all columns that are not digits, if there are any
    fetches    pairs of what is fetched, and where to
    """

    fetches: tuple[tuple[Expression, Rows], ...]
    asks: tuple[tuple[int, Expression], ...] = ()
    others: bool = False


@dataclass(frozen=True)
class FrontLayer:
    """Heads, then units."""

    heads: tuple[FrontHead, ...] = ()
    units: list[Unit] = field(default_factory=list)


def front_layers(layout: Layout, digits: int) -> list[FrontLayer]:
    """The six layers."""
    made = _Front(layout, digits)
    return [made.tokens(), made.numbers(), made.pairs(), made.sums(), made.answers(), made.says()]


class _Front:
    """The layers, over the rows of one layout."""

    def __init__(self, layout: Layout, digits: int) -> None:
        self.layout, self.n = layout, digits
        self.one = self("one")
        self.gates = Gates(self.one)

    def __call__(self, name: str) -> Rows:
        return rows(self.layout, name)

    # 1

    def tokens(self) -> FrontLayer:
        n, one, digit, is_digit, gates = self.n, self.one, self("digit"), self("is_digit"), self.gates
        heads = [FrontHead(tuple(self._block_fetches(k, [digit], [is_digit]))
                           + (((self("leads"), self("led")),) if k == 1 else ()), ((k, one),))
                 for k in range(1, min(BLOCK - 1, n + 1) + 1)]
        heads.append(FrontHead(((is_digit, self("only_digits")),), others=True))
        heads.append(FrontHead(((one - is_digit, self("others")),)))
        units = [*gates.where([self("blank"), self("led")], one, (self("open"), 1.0)),
                 *gates.where([is_digit, self("only_digits")], one, (self("open"), 1.0))]
        for k in range(1, n + 2):  # a share below 1 / k, of 1 / (k + 1) or less
            limit, gap = (1 / k + 1 / (k + 1)) / 2, (1 / k - 1 / (k + 1)) / 2
            units += gates.step(-1.0 * self("others"), -limit, gap, one, (self("may_have")[k - 1], 1.0))
        return FrontLayer(tuple(heads), units)

    # 2

    def numbers(self) -> FrontLayer:
        n, one, back, is_back = self.n, self.one, self("back"), self("is_back")
        digit = [self("digit"), *(back[k] for k in range(min(n, BLOCK - 1)))]
        is_digit = [self("is_digit"), *(is_back[k] for k in range(min(n + 1, BLOCK - 1)))]
        heads = [FrontHead(tuple(self._block_fetches(k, digit, is_digit)), ((k, one),)) for k in range(BLOCK, n + 2, BLOCK)]
        heads.append(FrontHead(((self("only_digits"), self("began")),), ((1, one),)))
        units = self._counted(one, [(self("length")[k], k + 1) for k in range(n)])
        for k in range(n):
            units += self._counted(back[k], [(self("number")[k], k + 1)])
        for k in range(n + 1):
            before = [is_back[i] for i in range(k)]
            units += self.gates.where([self("is_digit"), *before, one - is_back[k]], one, (self("written")[k], 1.0))
        return FrontLayer(tuple(heads), units)

    def _block_fetches(self, back: int, digit: list[Rows], is_digit: list[Rows]) -> list[tuple[Expression, Rows]]:
        """What is fetched from `back` places back, where the lists have what is there, and 1, 2, ... before."""
        digits, flags = self("back"), self("is_back")
        found: list[tuple[Expression, Rows]] = [(each, digits[back + i - 1]) for i, each in enumerate(digit)
                                                if back + i <= self.n]
        return found + [(each, flags[back + i - 1]) for i, each in enumerate(is_digit) if back + i <= self.n + 1]

    def _counted(self, value: Expression, targets: list[tuple[Rows, int]]) -> list[Unit]:
        """Adds a value to each target where the number before this column has so many digits at least, and n at most.

        Where all n + 1 tokens before are digits, there are too many; or these are the first tokens of the text, and those
        before do not exist: then the share of other tokens, 1 / (length + 1), is what counts.
        """
        is_back, may_have = self("is_back"), self("may_have")
        everywhere = [is_back[i] for i in range(self.n + 1)]
        first = [*everywhere, self("began")]
        off = tuple((to, -1.0) for to, _ in targets)
        units = [*self.gates.where(everywhere, value, *off), *self.gates.where([*first, may_have[self.n]], value, *off)]
        for to, k in targets:
            units += self.gates.where(everywhere[:k], value, (to, 1.0))
            units += self.gates.where([*first, may_have[k - 1]], value, (to, 1.0))
        return units

    # 3

    def _before_number(self) -> tuple[tuple[int, Expression], ...]:
        """The distance of the column before the number that ends before this column."""
        lengths = [self.one, *self("length")]
        return tuple((k + 1, lengths[k] - (lengths[k + 1] if k < self.n else 0.0)) for k in range(self.n + 1))

    def pairs(self) -> FrontLayer:
        n, one, number, other, written = self.n, self.one, self("number"), self("other"), self("written")
        head = FrontHead(((self("open"), self("opened")), *((number[k], other[k]) for k in range(n))), self._before_number())
        units = self.gates.where([self("plus"), self("opened"), self("length")[0]], one, (self("is_first"), 1.0))
        for name, least in (("makes_ten", 10), ("makes_nine", 9), ("makes_one", 1)):
            for k in range(n):
                units += self.gates.step(number[k] + other[k], least - HALF, HALF, one, (self(name)[k], 1.0))
        answer = self("answer")
        for last in range(n + 1):  # this column is digit `last` of an answer, counted from 0
            for i in range(last + 1):
                value = number[last - i - 1] if i < last else self("digit")
                units += self.gates.where([written[last]], value, (answer[i], 1.0))
        return FrontLayer((head,), units)

    # 4

    def sums(self) -> FrontLayer:
        n, one, total, reaches, gates = self.n, self.one, self("sum"), self("reaches"), self.gates
        ten, nine, some = self("makes_ten"), self("makes_nine"), self("makes_one")
        pair, units = self("number") + self("other"), list[Unit]()
        for k in range(n):
            units += gates.where([one - ten[k]], pair[k], (total[k], 1.0))
            units += gates.where([ten[k]], pair[k] - 10 * one, (total[k], 1.0))
        for k in range(n):  # a carry from place k goes through places of 9 to place i
            for i in range(k + 1, n + 1):
                carried = [ten[k], *(nine[j] - ten[j] for j in range(k + 1, i))]
                rolled = [(total[i - 1], -10.0)] if i - 1 > k else []
                units += gates.where(carried, one, (total[i], 1.0), *rolled)
                units += gates.where([*carried, *(one - some[j] for j in range(i, n))], one, (reaches[i - 1], 1.0))
        for i in range(1, n):
            units.append(gates.always(one, (reaches[i - 1], 1.0)))
            units += gates.where([one - some[j] for j in range(i, n)], one, (reaches[i - 1], -1.0))
        units += gates.where([self("equals"), self("first"), self("length")[0]], one, (self("is_sum"), 1.0))
        return FrontLayer((FrontHead(((self("is_first"), self("first")),), self._before_number()),), units)

    # 5

    def answers(self) -> FrontLayer:
        n, one, written, due, answer = self.n, self.one, self("written"), self("due"), self("answer")
        moved = [("sum", "due", n + 1), ("reaches", "due_reaches", n), ("is_sum", "is_due", 1)]
        fetches = [(self(name)[i], self(to)[i]) for name, to, size in moved for i in range(size)]
        head = FrontHead(tuple(fetches), ((0, self("equals")), *((j + 1, written[j]) for j in range(n + 1))))
        reaches = [one, *self("due_reaches")]
        units = list[Unit]()
        for top in range(n + 1):  # the sum's first digit is at this place
            is_top = reaches[top] - (reaches[top + 1] if top < n else 0.0)
            for count in range(top + 2):  # so many digits are written
                there = [is_top, written[count - 1] if count else self("equals")]
                value = due[top - count] + one if count <= top else END * one
                units += self.gates.where(there, value, (self("next"), 1.0))
            for i in range(top + 1):
                are_written, apart = written[i : n + 1].total(), answer[i] - due[top - i]
                units += [self.gates.excess(sign * apart, HALF, [is_top, are_written], 9.0, (self("wrong"), 2.0))
                          for sign in (1.0, -1.0)]
        return FrontLayer((head,), units)

    # 6

    def says(self) -> FrontLayer:
        said = [*(self("said")[digit] for digit in range(10)), self("ended")]
        following, units = self("next") - WRONG * self("wrong"), list[Unit]()
        for i, token in enumerate(said):
            into = [(token, 1.0), *([(said[i - 1], -1.0)] if i else [])]
            units += self.gates.step(following, i + HALF, HALF, self("is_due"), *into)
        return FrontLayer((), units)
