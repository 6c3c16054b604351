"""Products and quotients as words, and numbers of many bits that are in one row.

A product or a quotient is a word of which the solver knows nothing. What is known of it are the lemmas of `arithmetic`, told
in the two ways in which layers make numbers:

    expansion     the word as a sum of other bits: a product is the sum of 2^(i + j) over bits i and j that are both 1
    comparison    whether a sum of bits is 0 or more, by bits that are known: how often a divisor is in a number

So a row that holds such a sum is seen to hold the word, without a question to the solver.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import z3

from punchcard.errors import ProofError
from punchcard.machines.meaning import Addend, Division, Halves
from punchcard.proof.arithmetic import BASE
from punchcard.proof.column import extended, unknown
from punchcard.proof.forms import NOTHING, Bits, Form, Term, gated, number, times
from punchcard.proof.solver import Solver

DIGIT = BASE.bit_length() - 1


class ProductWords:
    """The words that a part of a proof knows by lemmas."""

    def __init__(self, bits: Bits, solver: Solver) -> None:
        self._bits, self._solver = bits, solver
        self._expansions: dict[int, Form] = {}
        self._found: dict[tuple[object, ...], Term | Division[Term]] = {}
        self._kept: list[Term] = []
        self.lemmas: list[str] = []
        """Which lemmas were used."""

    def _use(self, lemma: str) -> None:
        if lemma not in self.lemmas:
            self.lemmas.append(lemma)

    def plain(self, word: Term) -> Form:
        """A word as a number, by its bits."""
        total = NOTHING
        for place, bit in enumerate(self._bits.of_word(word)):
            total += bit * Fraction(1 << place)
        return total

    def expanded(self, word: Term) -> Form:
        """A word as a number, by the bits that it is a sum of."""
        found = self._expansions.get(word.get_id())
        return self.plain(word) if found is None else found

    def sum(self, addends: Sequence[Addend[Term]], constant: int = 0, expanded: bool = False) -> Form:
        """A sum of words."""
        total = number(constant)
        for factor, word, where in addends:
            form = self.expanded(word) if expanded else self.plain(word)
            total += (form if where is None else gated(where, form, self._bits)) * Fraction(factor)
        return total

    def _name(self, about: str, size: int, expansion: Form) -> Term:
        """A new word, with the sum that it is."""
        word = unknown(about, size)
        self._expansions[word.get_id()] = expansion
        self._kept.append(word)
        return word

    # Products

    def product(self, x: Term, y: Term) -> Term:
        """x y, of as many bits as both have."""
        x, y = z3.simplify(x), z3.simplify(y)
        size = x.size() + y.size()
        if z3.is_bv_value(x) and z3.is_bv_value(y):
            return z3.BitVecVal(x.as_long() * y.as_long(), size)
        self._use("products by bits")
        key = ("product", x.get_id(), y.get_id())
        if key not in self._found:
            self._kept += [x, y]
            self._found[key] = self._name("product", size, times(self.plain(x), self.plain(y), self._bits))
        return self._found[key]

    def signed_product(self, x: Term, y: Term, x_signed: bool, y_signed: bool) -> Term:
        """As `product`, of numbers in two's complement where they have signs."""
        size = x.size() + y.size()
        if z3.is_bv_value(x) and z3.is_bv_value(y):
            wide = [word.as_signed_long() if signed else word.as_long() for word, signed in ((x, x_signed), (y, y_signed))]
            return z3.BitVecVal(wide[0] * wide[1], size)
        found = self.product(x, y)
        for word, signed, other in ((x, x_signed, y), (y, y_signed, x)):
            if signed:
                self._use("signs of products")
                above, below = z3.Extract(size - 1, word.size(), found), z3.Extract(word.size() - 1, 0, found)
                negative = z3.Extract(word.size() - 1, word.size() - 1, word) == 1
                found = z3.Concat(z3.If(negative, above - other, above), below)
        return found

    def halves(self, x: Term, y: Term) -> Halves[Term]:
        """What x y is made of, with the carries between its parts."""
        half = x.size() // 2
        low, one, other, high = (self.product(z3.Extract(i + half - 1, i, x), z3.Extract(j + half - 1, j, y))
                                 for i in (0, half) for j in (0, half))
        carry = z3.Extract(2 * half - 1, half, low)
        middle = self.total("middle", 2 * half + DIGIT, [Addend(1, one), Addend(1, other), Addend(1, carry)])
        more = z3.Extract(middle.size() - 1, half, middle)
        self._use("products by halves")
        above = z3.Extract(2 * half - 1, 0, extended(high, middle.size()) + extended(more, middle.size()))
        self._solver.suppose(self.product(x, y) == z3.Concat(above, *(z3.Extract(half - 1, 0, word)
                                                                      for word in (middle, low))))
        return Halves(low, middle, high)

    def total(self, about: str, size: int, addends: Sequence[Addend[Term]], constant: int = 0) -> Term:
        """A sum of words as a word of its own, which must be long enough for it whatever they are."""
        ends = [(factor * ((1 << word.size()) - 1), 0) for factor, word, _ in addends]
        low, high = (constant + sum(pick(pair) for pair in ends) for pick in (min, max))
        if low < 0 or high >= 1 << size:
            raise ProofError(f"{about}: a sum from {low} to {high} is not a word of {size} bits")
        word = self._name(about, size, self.sum(addends, constant, expanded=True))
        term = z3.BitVecVal(constant, size)
        for factor, each, where in addends:
            more = term + extended(each, size) if factor == 1 else term - extended(each, size) * -factor
            term = more if where is None else z3.If(where, more, term)
        self._solver.suppose(word == term)
        return word

    # Quotients

    def division(self, x: Term, y: Term) -> Division[Term]:
        """x by y, without signs. By 0 the quotient is all ones, and the remainder is x."""
        x, y = z3.simplify(x), z3.simplify(y)
        size = x.size()
        if z3.is_bv_value(x) and z3.is_bv_value(y):
            quotient, remainder = divmod(x.as_long(), y.as_long()) if y.as_long() else (-1, x.as_long())
            return Division(x, y, z3.BitVecVal(quotient, size), z3.BitVecVal(remainder, size), ())
        key = ("division", x.get_id(), y.get_id())
        if key not in self._found:
            self._kept += [x, y]
            self._found[key] = self._divided(*(self._named(word) for word in (x, y)))
        found = self._found[key]
        assert isinstance(found, Division)
        return found

    def _divided(self, x: Term, y: Term) -> Division[Term]:
        self._use("long division")
        size, count = x.size(), x.size() // DIGIT
        quotient, rests = unknown("quotient", size), [z3.BitVecVal(0, size)]
        for place in range(count):
            low = size - DIGIT * (place + 1)
            digit, following = (z3.Extract(low + DIGIT - 1, low, word) for word in (quotient, x))
            so_far = self.sum([Addend(BASE, rests[-1]), Addend(1, following)])
            for multiple in range(1, BASE):
                self._bits.compare(so_far - self.plain(y) * Fraction(multiple), z3.UGE(digit, multiple))
            taken = self.product(digit, y)
            rests.append(self._name(f"rest after {place + 1}", size, so_far - self.expanded(taken)))
        self._kept.append(quotient)
        self._solver.suppose(z3.Implies(y == 0, z3.And(quotient == -1, rests[-1] == x)))
        return Division(x, y, quotient, rests[-1], tuple(rests))

    def _named(self, word: Term) -> Term:
        """A word by a name of its own."""
        name = unknown("word", word.size())
        self._kept.append(name)
        self._solver.suppose(name == word)
        return name
