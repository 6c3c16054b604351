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
"""

from __future__ import annotations

from punchcard.card.layout import Layout, RowBlock
from punchcard.machines.riscv.designs.base import OTHER_SINK, SINK, RiscvSizes
from punchcard.machines.riscv.designs.divide import DIGITS, Divide
from punchcard.machines.riscv.designs.multiply import SUM_BITS, Multiply
from punchcard.machines.riscv.designs.writing import Gates, replace_where
from punchcard.machines.riscv.isa import FIELDS, WORD_BITS
from punchcard.primitives.literals import bits_where
from punchcard.transformer.build import Part, assign
from punchcard.transformer.expression import rows

DOING = ("multiply", "high", "divide", "remain", "negative")
SUMS = {"low": WORD_BITS, "middle": SUM_BITS, "high": SUM_BITS}


def extension_blocks(sizes: RiscvSizes) -> list[RowBlock]:
    """The rows that a machine has for it."""
    if not sizes.multiply:
        return []
    word = float(1 << WORD_BITS)

    def numbers(name: str, size: int, limit: float, about: str, parts: dict[str, int] | None = None) -> RowBlock:
        return RowBlock(name, size, about, parts or {}, within="real", limit=limit)

    return [
        RowBlock("doing", len(DOING), "which result is wanted", dict.fromkeys(DOING, 1), within="bits"),
        RowBlock("quotient", WORD_BITS, "its bits; of a remainder those of the rest", within="bits"),
        RowBlock("digits", sum(SUMS.values()), "of the sums of a product", SUMS, within="bits"),
        numbers("sum", len(SUMS), 4 * word, "of products of halves", dict.fromkeys(SUMS, 1)),
        numbers("dividend", DIGITS, float(1 << WORD_BITS // DIGITS), "|x| by its digits, the lowest first"),
        numbers("divisor", 1, word, "|y|"),
        numbers("rest", 1, word, "what is left of the dividend"),
    ]


def extended(sizes: RiscvSizes, layout: Layout, layers: list[Part]) -> list[Part]:
    """The layers A, B and C with what the extension adds to them, and its own between them."""
    if not sizes.multiply:
        return layers
    first, second, last = layers
    product, quotient = Multiply(sizes, layout), Divide(sizes, layout)
    (word, open_), (other, also) = product.result, quotient.result
    middle = [part for place in range(DIGITS) for part in (quotient.digit(place), quotient.rest(place))]
    steps = [*middle, *(quotient.peeled(place) for place in range(DIGITS))]
    steps = [part + product.step(number) for number, part in enumerate(steps)]
    return [
        first + product.products + quotient.operands,
        second + steps[0],
        steps[1] + _sunk(sizes, layout),
        *steps[2:],
        replace_where(rows(layout, "value"), word + other, [*open_, *also], rows(layout, "inside")),
        last + product.cleared + quotient.cleared,
    ]


def _sunk(sizes: RiscvSizes, layout: Layout) -> Part:
    """What goes to nobody goes to one of two sinks, by a bit of the instruction.

    All that the kind decides is constant for an engine that works out each kind by itself. The lowered engine has no code
    for a store whose whole pointer is constant. In the design without these layers it works out the last layer for all.
    """
    one, word, goal = rows(layout, "inside"), rows(layout, "word"), rows(layout, "goal.position")
    place = (OTHER_SINK - SINK).bit_length() - 1
    bit = 0.0 * one
    for nobody, closed in Gates(sizes, layout).each(lambda i: not i.writes_memory and "rd" not in i.uses):
        if nobody:
            bit = bit + bits_where(word[FIELDS["rd"]], closed, one)
    return assign(goal[place], goal[place] + 2 * bit)
