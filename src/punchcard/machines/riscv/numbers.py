"""What the layers of the M extension make on the way to a product or a quotient, for a proof.

Nothing depends on it: what does not hold is not used. A proof needs it to see that sums of hundreds of bits are the products
and quotients that an instruction means (`stages.py`). Rows hold the numbers of `designs/extension.py`, so
many layers after layer A as it says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from punchcard.machines.meaning import Addend, Case, Meaning
from punchcard.machines.riscv.designs import extension
from punchcard.machines.riscv.designs.base import HALF, RiscvSizes
from punchcard.machines.riscv.designs.decode import Class
from punchcard.machines.riscv.designs.extension import DIGITS, QUOTIENTS, SIZE
from punchcard.machines.riscv.isa import BY_NAME, WORD_BITS, Instruction
from punchcard.words.word import Word, constant

ELSE = "anything else"
"""The case of a word that is not an instruction."""
FIRST, STEPS = 1, 2
"""How many layers are done after layer A, and after the first step, which is in layer B."""
FUNCTION, OPCODE_BIT, ALTERNATIVE = (12, 13, 14), 6, 30
"""More bits of the word, which tell its instructions apart, or from others."""
OFFSET = 2 << WORD_BITS
"""What is added to the high sum, so that it is not negative."""


def alike(sizes: RiscvSizes) -> list[Case]:
    """Words that are not instructions, but look like products and quotients to the layers.

    All of their bits that count are known, so that a proof can tell what becomes of them.
    """
    known = tuple((one.mask, one.match) for one in sizes.decoder.instructions)
    seen = sizes.decoder.extension_bits

    def case(name: str, bits: Mapping[int, int]) -> Case:
        mask, match = (sum(value << place for place, value in pairs) for pairs in
                       (((place, 1) for place in bits), bits.items()))
        return Case(f"{ELSE}, like {name}", "scratchpad", "word", mask, match, known)

    found = []
    for name in (*extension.PRODUCTS, *QUOTIENTS):
        bits = {**seen, **{place: BY_NAME[name].match >> place & 1 for place in FUNCTION}}
        if name in QUOTIENTS:
            found.append(case(name, bits))
        else:
            found += [case(f"{name}{', with bit 30' * bit}", bits | {OPCODE_BIT: 0, ALTERNATIVE: bit}) for bit in (0, 1)]
    if OPCODE_BIT not in seen:
        found.append(case("a product, with bit 6", {**seen, FUNCTION[-1]: 0, OPCODE_BIT: 1}))
    return found


def tell_numbers(card: Meaning, sizes: RiscvSizes, case: Case, x: Word | None, y: Word | None) -> None:
    """Hints of what the layers make of two operands, in a case: that of a word without known bits is neither.

    None: the operands are not words.
    """
    if x is None or y is None:
        return
    tree = SeenClasses(sizes, case.match) if case.mask else None
    sort = tree.among(extension.family) if tree is not None else "other"
    if tree is not None and sort == "product":
        signed = [tree.is_one_of(names) for names in extension.SIGNED_FACTORS]
        _products(card, x, y, signed, tree.is_one_of(extension.PRODUCTS))
    else:
        for rows in extension.SUMS:
            card.hint_sum(FIRST, f"sum.{rows}", "scratchpad")
    if tree is not None and sort == "quotient":
        signed_quotient, remainder = (
            tree.is_one_of(names, QUOTIENTS) for names in (extension.SIGNED_QUOTIENTS, extension.REMAINDERS))
        _quotients(card, x, y, signed_quotient, remainder)
    else:
        card.hint_sum(FIRST, "divisor", "scratchpad")
        for row in range(DIGITS):
            card.hint_sum(FIRST, "dividend", "scratchpad", row=row)
    if sort == "other":
        card.hint(FIRST, "doing", "scratchpad", constant(0, len(extension.DOING)))


class SeenClasses:
    """The classes that the layers see in a word, by their decision trees."""

    def __init__(self, sizes: RiscvSizes, word: int) -> None:
        self.decoder, self.kind = sizes.decoder, sizes.decoder.kind(word)

    def among(self, sort: Callable[[Instruction], Class | None]) -> Class:
        """The class, of those that instructions are sorted into."""
        return next(name for name, cubes in self.decoder.classes(sort).items()
                    if any(all(self.kind[place] == value for place, value in cube.items()) for cube in cubes))

    def is_one_of(self, names: Sequence[str], among: Sequence[str] | None = None) -> bool:
        """Whether it is seen as one of these instructions, among all or some of them."""
        return bool(self.among(lambda one: one.name in names if among is None or one.name in among else None))


def _products(card: Meaning, x: Word, y: Word, signed: list[bool], wanted: bool) -> None:
    """The sums of products of halves, and their digits."""
    low, middle, high = card.halves(x, y)
    carry, more = low[HALF : 2 * HALF], middle[HALF:extension.SUM_BITS]
    taken = [Addend(-1, second, first.is_negative)
             for first, second, negative in zip((x, y), (y, x), signed, strict=True) if negative]
    top = card.total("high", extension.SUM_BITS, Addend(1, high), Addend(1, more), *taken, constant=OFFSET)
    card.hint_sum(FIRST, "sum.low", "scratchpad", Addend(1, low))
    card.hint_sum(FIRST, "sum.middle", "scratchpad", Addend(1, middle), Addend(-1, carry))
    card.hint_sum(FIRST, "sum.high", "scratchpad", Addend(1, top), Addend(-1, more), constant=-OFFSET)
    for (name, begin), word in zip(extension.SCHEDULE.items(), (low, middle, top), strict=True):
        for step, first in enumerate(range(extension.SUMS[name] - SIZE, -1, -SIZE)):
            digit = word[first : first + SIZE] if wanted else constant(0, SIZE)
            card.hint(STEPS + begin + step, f"digits.{name}", "scratchpad", digit, first=first)


def _quotients(card: Meaning, x: Word, y: Word, signed: bool, remainder: bool) -> None:
    """The numbers without signs, the digits of the quotient, what is left after each, and the digits of the remainder."""
    found = card.division(*((x.absolute(), y.absolute()) if signed else (x, y)))
    card.hint_sum(FIRST, "divisor", "scratchpad", Addend(1, found.divisor))
    for place in range(DIGITS):
        low, first = SIZE * place, WORD_BITS - SIZE * (place + 1)
        card.hint_sum(FIRST, "dividend", "scratchpad", Addend(1, found.dividend[low : low + SIZE]), row=place)
        card.hint(STEPS + 2 * place, "quotient", "scratchpad", found.quotient[first : first + SIZE], first=first)
        card.hint_sum(STEPS + 2 * place + 1, "rest", "scratchpad", Addend(1, found.rests[place + 1]))
        if remainder:
            card.hint(STEPS + 2 * DIGITS + place, "quotient", "scratchpad", found.remainder[first : first + SIZE],
                        first=first)
