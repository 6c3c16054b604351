"""Quotients and remainders by long division, in digits of four bits: for each digit a layer, and one for what is left."""

from __future__ import annotations

from punchcard.card.layout import Layout
from punchcard.machines.riscv.designs.base import RiscvSizes
from punchcard.machines.riscv.designs.multiply import QUOTIENTS, SIZE, family
from punchcard.machines.riscv.designs.writing import Gates, appear, replace_where, vanish
from punchcard.machines.riscv.isa import WORD_BITS
from punchcard.primitives.literals import absent, bits_where, conjunction
from punchcard.primitives.quotient import digit_of, digit_where, negative_where, size_where, times
from punchcard.transformer.build import Part, assign, clear
from punchcard.transformer.expression import Expression, relu, rows, stack

DIGITS = WORD_BITS // SIZE
MOST = (1 << WORD_BITS) - 1
SIGNED, REMAINDERS = ("div", "rem"), ("rem", "remu")


class Divide:
    """The formulas of quotients and remainders, over the rows of a layout. Digit 0 is the highest."""

    def __init__(self, sizes: RiscvSizes, layout: Layout) -> None:
        self.layout, self.gates, self.one = layout, Gates(sizes, layout), rows(layout, "inside")
        self.x, self.y, self.value, self.quotient = (rows(layout, name) for name in ("x", "y", "value", "quotient"))
        self.dividend, self.divisor, self.left = (rows(layout, name) for name in ("dividend", "divisor", "rest"))
        self.doing = {name: rows(layout, f"doing.{name}") for name in ("divide", "remain", "negative")}

    # Layer A

    @property
    def operands(self) -> Part:
        """|x| by its digits, |y|, and what is wanted."""
        one = self.one
        divisor, bits = 0.0 * one, 0.0 * self.x
        for signed, closed in self._wanted(SIGNED, QUOTIENTS):
            minus = [0.5 * (one + word[-1]) if signed else 0.0 * one for word in (self.x, self.y)]
            divisor = divisor + size_where(self.y, minus[1], closed, one)
            bits = bits + bits_where(self.x, closed + minus[0], one)
            if signed:
                bits = bits + negative_where(self.x, closed + one - minus[0], one)
        powers = [2.0**j for j in range(SIZE)]
        digits = stack(*(bits[SIZE * k : SIZE * (k + 1)].total(powers) for k in range(DIGITS)))
        flags = [self._any(QUOTIENTS), self._any(REMAINDERS), self._negative()]
        return (assign(self.dividend, digits) + assign(self.divisor, divisor)
                + appear(rows(self.layout, *(f"doing.{name}" for name in self.doing)), stack(*flags), one))

    def _wanted(self, names: tuple[str, ...], among: tuple[str, ...]) -> list[tuple[bool, Expression]]:
        """Whether an instruction is one of these, with what is absent for it to be so, and to be a quotient."""
        quotient = [closed for name, closed in self.gates.each(family) if name == "quotient"]
        return [(wanted, closed + other) for other in quotient
                for wanted, closed in self.gates.each(lambda i: i.name in names if i.name in among else None)]

    def _any(self, names: tuple[str, ...]) -> Expression:
        """1 where the instruction is one of these quotients, else 0."""
        return stack(*(conjunction(closed, self.one) for wanted, closed in self._wanted(names, QUOTIENTS) if wanted)).total()

    def _negative(self) -> Expression:
        """1 where the result is negative or 0: a remainder as x is, a quotient where the signs differ and y is not 0."""
        one, total = self.one, 0.0 * self.one
        x, y = self.x[-1], self.y[-1]
        zero = absent(self.y, dict.fromkeys(range(WORD_BITS), 0), one)
        for name in SIGNED:
            for wanted, closed in self._wanted((name,), QUOTIENTS):
                if not wanted:
                    continue
                below = closed + absent(x, {0: 1}, one)
                if name in REMAINDERS:
                    total = total + conjunction(below, one)
                    continue
                below = below + absent(y, {0: 0}, one)
                total = total + conjunction(below, one) - conjunction(below + zero, one)
                total = total + conjunction(closed + absent(x, {0: 0}, one) + absent(y, {0: 1}, one), one)
        return total

    # The digits

    def _so_far(self, place: int) -> Expression:
        """The rest, with the next digit of the dividend."""
        return 2.0**SIZE * self.left + self.dividend[DIGITS - 1 - place]

    def _closed(self, name: str) -> Expression:
        return absent(self.doing[name], {0: 1}, self.one)

    def digit(self, place: int) -> Part:
        """A digit of the quotient. The rest, which is 0 to 2^32 - 1, says so: it keeps the bounds on later sums small."""
        closed, most = self._closed("divide"), (1 << WORD_BITS + SIZE) - 1
        found = digit_where(self._so_far(place), self.divisor, SIZE, most, closed, self.one)
        part = appear(self.quotient[digit_of(WORD_BITS, SIZE, place).slice], found, self.one)
        return part + assign(self.left, relu(self.left) - relu(self.left - MOST * self.one)) if place else part

    def rest(self, place: int) -> Part:
        """What is left after a digit; after the last one nothing else is needed any more."""
        bits = self.quotient[digit_of(WORD_BITS, SIZE, place).slice]
        part = assign(self.left, self._so_far(place) - times(bits, self.divisor, 1 << WORD_BITS, self.one))
        return part + clear(self.divisor) + clear(self.dividend) if place == DIGITS - 1 else part

    # The result

    def peeled(self, place: int) -> Part:
        """A digit of the rest takes the quotient's place, where a remainder is wanted."""
        digit, closed = digit_of(WORD_BITS, SIZE, place), self._closed("remain")
        found = digit.where(self.left, self.quotient, MOST, closed, self.one)
        part = replace_where(self.quotient[digit.slice], found, [closed], self.one)
        return part + clear(self.left) if place == DIGITS - 1 else part

    @property
    def result(self) -> tuple[Expression, list[Expression]]:
        """The quotient, or the rest, with its sign, 0 or 1; and the gate that lets it through."""
        one, minus = self.one, 0.5 * (self.one + self.doing["negative"])
        closed = self._closed("divide")
        return (bits_where(self.quotient, closed + minus, one)
                + negative_where(self.quotient, closed + one - minus, one), [closed])

    @property
    def cleared(self) -> Part:
        return vanish(self.quotient, self.one) + vanish(
            rows(self.layout, *(f"doing.{name}" for name in self.doing)), self.one)
