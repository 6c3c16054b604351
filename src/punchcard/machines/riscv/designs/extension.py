"""The M extension: products and quotients in the same loop, by 24 layers between B and C. All of it is exact in float64.

    layer       product                                quotient and remainder
    A           products of halves, as numbers         |x| by its digits, |y|, and the sign of the result
    B           the first of 17 steps: digits          digit 1
    1           ..                                     the rest after digit 1
    2 to 15     ..                                     digits 2 to 8, each followed by the rest
    16 to 23    the last one is 17                     of a remainder: the rest becomes bits, digit after digit
    24          the word that is wanted                the sign
    C           is as it was, and clears these rows too

No head is needed in layers 1 to 24. Rows that hold numbers, not bits, say how large they become (`limit`).

A product is four products of halves as numbers, whose sums become bits digit after digit. With x = 2^16 X + x' and
y = 2^16 Y + y',

    low      x' y'                                    below 2^32
    middle   X y' + x' Y + (low / 2^16)               below 2^34
    high     X Y + (middle / 2^16) - what is signed   0 to 2^34, with 2^33 added to it

The low word of the product is 16 bits of low and 16 of middle, the high word 32 bits of high. A signed word is its unsigned
number less 2^32 where its highest bit is 1, so the other word is taken away from high.

Quotients and remainders are made by long division, in digits of four bits: for each digit a layer, and one for what is left.
"""

from __future__ import annotations

from punchcard.card.layout import Layout, RowBlock
from punchcard.machines.riscv.designs.base import HALF, RiscvSizes
from punchcard.machines.riscv.designs.formulas import LayerFormulas, appear, replace_where, vanish
from punchcard.machines.riscv.designs.layout import passing
from punchcard.machines.riscv.isa import WORD_BITS, Instruction
from punchcard.primitives.bits import number
from punchcard.primitives.literals import absent, bits_where, conjunction
from punchcard.primitives.quotient import digit_of, digit_where, negative_where, size_where, times
from punchcard.transformer.build import Part, assign, clear
from punchcard.transformer.expression import Expression, relu, stack

PRODUCTS = ("mul", "mulh", "mulhsu", "mulhu")
SIGNED_FACTORS = (("mulh", "mulhsu"), ("mulh",))
"""Where the first word is signed, and where the second."""
QUOTIENTS = ("div", "divu", "rem", "remu")
SIGNED_QUOTIENTS, REMAINDERS = ("div", "rem"), ("rem", "remu")
SIZE = 4
"""Bits of a digit."""
DIGITS = WORD_BITS // SIZE
MOST = (1 << WORD_BITS) - 1
SUM_BITS = 36
"""Of middle and high: nine digits."""
SUMS = {"low": WORD_BITS, "middle": SUM_BITS, "high": SUM_BITS}
SCHEDULE = {"low": 0, "middle": 4, "high": 9}
"""The step in which each sum has its first digit: then what it is made of is known."""
DOING = ("multiply", "high", "divide", "remain", "negative")
DIVIDE, REMAIN, NEGATIVE = range(3)
"""Flags of a quotient."""


def family(instruction: Instruction) -> str:
    """What an instruction of the extension needs."""
    return "product" if instruction.name in PRODUCTS else "quotient" if instruction.name in QUOTIENTS else "other"


def extension_blocks(sizes: RiscvSizes) -> list[RowBlock]:
    """The rows that a machine has for it."""
    if not sizes.multiply:
        return []
    word = float(1 << WORD_BITS)

    def numbers(name: str, size: int, limit: float, about: str, parts: dict[str, int] | None = None) -> RowBlock:
        return RowBlock(name, size, about, parts or {}, within="real", limit=limit)

    return [
        passing("doing", len(DOING), "which result is wanted", dict.fromkeys(DOING, 1)),
        passing("quotient", WORD_BITS, "its bits; of a remainder those of the rest"),
        passing("digits", sum(SUMS.values()), "of the sums of a product", SUMS),
        numbers("sum", len(SUMS), 4 * word, "of products of halves", dict.fromkeys(SUMS, 1)),
        numbers("dividend", DIGITS, float(1 << SIZE), "|x| by its digits, the lowest first"),
        numbers("divisor", 1, word, "|y|"),
        numbers("rest", 1, word, "what is left of the dividend"),
    ]


def extended(sizes: RiscvSizes, layout: Layout, layers: list[Part]) -> list[Part]:
    """The layers A, B and C with what the extension adds to them, and its own between them."""
    if not sizes.multiply:
        return layers
    first, second, *more, last = layers
    product, quotient = Multiply(sizes, layout), Divide(sizes, layout)
    (word, open_), (other, also) = product.result, quotient.result
    middle = [part for place in range(DIGITS) for part in (quotient.digit(place), quotient.rest(place))]
    steps = [*middle, *(quotient.peeled(place) for place in range(DIGITS))]
    steps = [part + product.step(number) for number, part in enumerate(steps)]
    return [
        first + product.products + quotient.operands,
        second + steps[0],
        *steps[1:],
        replace_where(product.rows("value"), word + other, [*open_, *also], product.one),
        *more,
        last + product.cleared + quotient.cleared,
    ]


class Multiply(LayerFormulas):
    """The formulas of products."""

    def __init__(self, sizes: RiscvSizes, layout: Layout) -> None:
        super().__init__(sizes, layout)
        self.sums = {name: self.rows(f"sum.{name}") for name in SCHEDULE}
        self.bits = {name: self.rows(f"digits.{name}") for name in SCHEDULE}
        self.flags = self.rows("doing.multiply", "doing.high")

    @property
    def products(self) -> Part:
        """Layer A: the products of halves, and which word is wanted."""
        one, x, y, size = self.one, self.x, self.y, 1 << HALF
        total: dict[str, Expression] = dict.fromkeys(SCHEDULE, 0.0 * one)
        for closed in (closed for name, closed in self.gates(family) if name == "product"):
            for first, second, into in ((0, 0, "low"), (0, HALF, "middle"), (HALF, 0, "middle"), (HALF, HALF, "high")):
                factor = number(x[first : first + HALF], one) - size * closed
                total[into] = total[into] + times(y[second : second + HALF], factor, size, one)
        for names, sign, other in zip(SIGNED_FACTORS, (x[-1], y[-1]), (y, x), strict=True):
            for closed in self._open(names):
                closed = closed + absent(sign, {0: 1}, one)
                total["high"] = total["high"] - relu(number(other, one) - (1 << WORD_BITS) * closed)
        wanted = [stack(*(conjunction(closed, one) for closed in self._open(names))).total()
                  for names in (PRODUCTS, PRODUCTS[1:])]
        return sum((assign(row, total[name]) for name, row in self.sums.items()), appear(self.flags, stack(*wanted), one))

    def _open(self, names: tuple[str, ...]) -> list[Expression]:
        return self.open_for(lambda i: i.name in names)

    def step(self, step: int) -> Part:
        """The digits of the sums that can be made in this step, 0 being layer B."""
        one, part, closed = self.one, Part(), absent(self.flags[0], {0: 1}, self.one)
        for name, begin in SCHEDULE.items():
            bits = self.bits[name]
            if 0 <= step - begin < bits.size // SIZE:
                place = digit_of(bits.size, SIZE, step - begin)
                found = place.where(self._sum(name), bits, (1 << SUM_BITS) - 1, closed, one)
                part = part + appear(bits[place.slice], found, one)
                if step - begin == bits.size // SIZE - 1:
                    part = part + clear(self.sums[name])
        return part

    def _sum(self, name: str) -> Expression:
        """The number whose bits are wanted; of the sums below it the bits above 16 are known."""
        form: Expression = self.sums[name]
        if name != "low":
            form = form + number(self.bits["low" if name == "middle" else "middle"][HALF:], self.one)
        return form + 2 * (1 << WORD_BITS) * self.one if name == "high" else form

    @property
    def result(self) -> tuple[Expression, list[Expression]]:
        """The word that is wanted, 0 or 1, and the gates that let it through."""
        low = stack(self.bits["low"][:HALF], self.bits["middle"][:HALF])
        gates = [absent(self.flags, {0: 1, 1: high}, self.one) + self._unlawful() for high in (0, 1)]
        return (bits_where(low, gates[0], self.one) + bits_where(self.bits["high"][:WORD_BITS], gates[1], self.one), gates)

    @property
    def cleared(self) -> Part:
        return sum((vanish(bits, self.one) for bits in self.bits.values()), vanish(self.flags, self.one))


class Divide(LayerFormulas):
    """The formulas of quotients and remainders. Digit 0 is the highest."""

    def __init__(self, sizes: RiscvSizes, layout: Layout) -> None:
        super().__init__(sizes, layout)
        self.quotient, self.dividend, self.divisor, self.left = map(
            self.rows, ("quotient", "dividend", "divisor", "rest"))
        self.flags = self.rows("doing.divide", "doing.remain", "doing.negative")

    # Layer A

    @property
    def operands(self) -> Part:
        """|x| by its digits, |y|, and what is wanted."""
        one = self.one
        divisor, bits = 0.0 * one, 0.0 * self.x
        for signed, closed in self._wanted(SIGNED_QUOTIENTS):
            minus = [0.5 * (one + word[-1]) if signed else 0.0 * one for word in (self.x, self.y)]
            divisor = divisor + size_where(self.y, minus[1], closed, one)
            bits = bits + bits_where(self.x, closed + minus[0], one)
            if signed:
                bits = bits + negative_where(self.x, closed + one - minus[0], one)
        powers = [2.0**j for j in range(SIZE)]
        digits = stack(*(bits[SIZE * k : SIZE * (k + 1)].total(powers) for k in range(DIGITS)))
        flags = [self._any(QUOTIENTS), self._any(REMAINDERS), self._negative()]
        return assign(self.dividend, digits) + assign(self.divisor, divisor) + appear(self.flags, stack(*flags), one)

    def _wanted(self, names: tuple[str, ...]) -> list[tuple[bool, Expression]]:
        """Whether an instruction is one of these, with what is absent for it to be so, and to be a quotient."""
        quotient = [closed for name, closed in self.gates(family) if name == "quotient"]
        return [(wanted, closed + other) for other in quotient
                for wanted, closed in self.gates(lambda i: i.name in names if i.name in QUOTIENTS else None)]

    def _any(self, names: tuple[str, ...]) -> Expression:
        """1 where the instruction is one of these quotients, else 0."""
        return stack(*(conjunction(closed, self.one) for wanted, closed in self._wanted(names) if wanted)).total()

    def _negative(self) -> Expression:
        """1 where the result is negative or 0: a remainder as x is, a quotient where the signs differ and y is not 0."""
        one, total = self.one, 0.0 * self.one
        x, y = self.x[-1], self.y[-1]
        zero = absent(self.y, dict.fromkeys(range(WORD_BITS), 0), one)
        for name in SIGNED_QUOTIENTS:
            for wanted, closed in self._wanted((name,)):
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

    def _closed(self, flag: int) -> Expression:
        return absent(self.flags[flag], {0: 1}, self.one)

    def digit(self, place: int) -> Part:
        """A digit of the quotient. The rest, which is 0 to 2^32 - 1, says so: it keeps the bounds on later sums small."""
        closed, most = self._closed(DIVIDE), (1 << WORD_BITS + SIZE) - 1
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
        digit, closed = digit_of(WORD_BITS, SIZE, place), self._closed(REMAIN)
        found = digit.where(self.left, self.quotient, MOST, closed, self.one)
        part = replace_where(self.quotient[digit.slice], found, [closed], self.one)
        return part + clear(self.left) if place == DIGITS - 1 else part

    @property
    def result(self) -> tuple[Expression, list[Expression]]:
        """The quotient, or the rest, with its sign, 0 or 1; and the gate that lets it through."""
        one, minus = self.one, 0.5 * (self.one + self.flags[NEGATIVE])
        closed = self._closed(DIVIDE) + self._unlawful()
        return (bits_where(self.quotient, closed + minus, one)
                + negative_where(self.quotient, closed + one - minus, one), [closed])

    @property
    def cleared(self) -> Part:
        return vanish(self.quotient, self.one) + vanish(self.flags, self.one)
