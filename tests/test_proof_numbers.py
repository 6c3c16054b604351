"""What proofs know of products and quotients: the lemmas hold, and what is told of words is so for all small ones."""

from __future__ import annotations

import random
from fractions import Fraction
from functools import cache
from typing import Any

import pytest

pytest.importorskip("z3")

import z3

from punchcard.errors import ProofError
from punchcard.machines.meaning import Addend
from punchcard.machines.riscv import isa
from punchcard.machines.riscv.machine import RiscvMachine
from punchcard.proof import arithmetic
from punchcard.proof.arithmetic import LEMMAS, Lemma, show_lemma
from punchcard.proof.concrete import SeenColumns
from punchcard.proof.forms import Bits, Form
from punchcard.proof.meaning import ProofMeaning
from punchcard.proof.products import ProductWords
from punchcard.proof.solver import Failed, Solver
from tests.riscv_cases import EXTREMES
from tests.riscv_reference import OPERATIONS

WIDE = ("mul", "mulh", "mulhsu", "mulhu", "div", "divu", "rem", "remu")


@pytest.mark.parametrize("name", LEMMAS)
def test_lemmas_hold(name: str) -> None:
    assert show_lemma(name) >= 1


def test_a_lemma_that_does_not_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = z3.Ints("x y")
    wrong = Lemma("it is not so", lambda: iter([("a sum is a product", [x > 2, y > 2], x + y == x * y)]))
    monkeypatch.setitem(arithmetic.LEMMAS, "wrong", wrong)
    with pytest.raises(Failed, match="lemma, wrong: a sum is a product"):
        show_lemma("wrong")


class Known:
    """ProductWords over words of given values."""

    def __init__(self) -> None:
        self.bits, self.values = Bits(), dict[str, int]()
        self.products = ProductWords(self.bits, Solver())

    def word(self, name: str, size: int) -> Any:
        return z3.BitVec(name, size)

    def value(self, form: Form, given: list[tuple[Any, int]]) -> Fraction:
        """The value of a form, where words have these values."""
        pairs = [(word, z3.BitVecVal(value, word.size())) for word, value in given]
        held = {bit: int(z3.is_true(z3.simplify(z3.substitute(self.bits.terms[bit], *pairs)))) for bit in form.terms}
        return form.value(held)


def test_a_product_is_its_expansion() -> None:
    it = Known()
    x, y = it.word("x", 3), it.word("y", 4)
    form = it.products.expanded(it.products.product(x, y))
    for a in range(8):
        for b in range(16):
            assert it.value(form, [(x, a), (y, b)]) == a * b
    assert it.products.lemmas == ["products by bits"]
    assert it.products.product(x, y) is it.products.product(x, y)


def test_a_division_is_what_is_told_of_it() -> None:
    """Rests by their expansions, and comparisons, against Python's numbers; by 0 as well."""
    it, rng = Known(), random.Random(1)
    x, y = it.word("x", 8), it.word("y", 8)
    found = it.products.division(x, y)
    names = {str(found.dividend): 8, str(found.divisor): 8, str(found.quotient): 8}
    assert len(names) == 3
    for a, b in [(200, 0), (255, 1), (7, 9), *((rng.randrange(256), rng.randrange(1, 256)) for _ in range(12))]:
        quotient, remainder = divmod(a, b) if b else (255, a)
        rests = [0, (a >> 4) % b if b else a >> 4, remainder]
        given = [(found.dividend, a), (found.divisor, b), (found.quotient, quotient),
                 *((rest, value) for rest, value in zip(found.rests[1:], rests[1:], strict=True))]
        for place in (1, 2):
            assert it.value(it.products.expanded(found.rests[place]), given) == rests[place]
            so_far = it.products.sum([Addend(16, found.rests[place - 1]),
                                    Addend(1, z3.Extract(11 - 4 * place, 8 - 4 * place, found.dividend))])
            for times in (1, 2, 9, 15):
                form = so_far - it.products.plain(found.divisor) * Fraction(times)
                told = z3.substitute(it.bits.compared(form), (found.quotient, z3.BitVecVal(quotient, 8)))
                assert z3.is_true(z3.simplify(told)) == (it.value(form, given) >= 0)


def test_a_sum_that_is_too_long_is_refused() -> None:
    it = Known()
    x = it.word("x", 4)
    with pytest.raises(ProofError, match="middle: a sum from 0 to 30 is not a word of 4 bits"):
        it.products.total("middle", 4, [Addend(2, x)])
    with pytest.raises(ProofError, match="a sum from -15 to 0"):
        it.products.total("middle", 4, [Addend(-1, x)])


@cache
def riscv_card() -> ProofMeaning:
    layout = RiscvMachine(memory=64).layout
    return ProofMeaning(SeenColumns(layout, layout.blank().numpy()))


@pytest.mark.parametrize("name", WIDE)
def test_products_and_quotients_of_the_table_are_those_that_proofs_know(name: str) -> None:
    card = riscv_card()
    x, y = z3.BitVecs("x y", 32)
    first, second = card.word(x), card.word(y)
    found = card.term(isa.OPERATIONS[name](first, second))
    signed = name in ("div", "rem")
    made = card.products.division(*(card.term(word.absolute() if signed else word) for word in (first, second)))
    for a in EXTREMES:
        for b in EXTREMES[::2]:
            sizes = [abs(isa.signed(number)) if signed else number for number in (a, b)]
            known = {x: a, y: b, card.products.product(x, y): a * b, made.quotient: OPERATIONS["divu"](*sizes),
                     made.remainder: OPERATIONS["remu"](*sizes)}
            value = z3.substitute(found, *((term, z3.BitVecVal(number, term.size())) for term, number in known.items()))
            assert z3.simplify(value).as_long() == OPERATIONS[name](a, b) % (1 << 32)
