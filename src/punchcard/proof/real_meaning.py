"""What the `meaning` of a machine with real numbers says (`punchcard.machines.meaning.RealMeaning`), as a proof needs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import cast

import z3

from punchcard.machines.meaning import ColumnBefore, Entries, Entry
from punchcard.proof.column import Column
from punchcard.proof.columns import KnownContents
from punchcard.proof.forms import NOTHING, Form, Term, choose, number, signed
from punchcard.proof.loop import PromisedInteger, SymbolicLoop
from punchcard.proof.meaning import Before, ProofMeaning
from punchcard.proof.steps import at_least, equal
from punchcard.words.word import Word

Forms = Callable[["RealBefore"], list[Form]]


class RealBefore(Before):
    """A column as it was when the loop began."""

    card: RealProofMeaning

    def constants(self, rows: str) -> list[float]:
        return self.card.loop.columns.constants(self.column, rows)

    @property
    def held(self) -> list[Form]:
        return self.card.loop.columns.held[self.column]


@dataclass(frozen=True)
class Midway:
    """What is expected at some rows of a region, after a layer or after its heads alone."""

    layer: int
    rows: str
    region: str
    about: str
    entries: Forms
    heads_only: bool


@dataclass(frozen=True)
class Kept:
    """What is expected of a region's contents: they stay, or where a condition holds they are replaced."""

    region: str
    replaced: Callable[[RealBefore], Term]
    by: Forms
    about: str


def _forms(entries: Sequence[Entry]) -> list[Form]:
    """Entries as what a proof knows them to be: it has made all of them."""
    return cast(list[Form], list(entries))


class RealProofMeaning(ProofMeaning):
    """A card before a loop, and what is expected in its middle and after it, in one case."""

    loop: SymbolicLoop

    def __init__(self, loop: SymbolicLoop, case: str | None = None) -> None:
        super().__init__(loop.columns, loop, case)
        self.cases: tuple[str, ...] = ()
        self.excluded: list[Term] = []
        """That none of the cases is so."""
        self.expected_midway: list[Midway] = []
        self.kept: list[Kept] = []
        self.promised: dict[str, Fraction] = {}
        """Rows that hold integers by promise, with the tolerance."""
        self.promises: list[str] = []
        """What is promised of columns, in words."""
        self.claims: dict[str, Callable[[], str]] = {}
        """Claims that a machine shows by itself: what each is about, once it is worked out."""

    @property
    def reals(self) -> RealProofMeaning:
        return self

    def split(self, region: str, place: Word, cases: Mapping[str, Mapping[str, int]]) -> None:
        self.cases = tuple(cases)
        if self.case is not None:
            self.loop.columns.known_contents = KnownContents(region, self.place(place), cases[self.case])
            return
        name, words = self.loop.columns.contents[region].name, self.at(region, place)
        self.excluded = [z3.Not(z3.And(*(self.condition(words[f"{name}.{part}"].equals(value))
                                         for part, value in parts.items()))) for parts in cases.values()]

    def promise(self, region: str, place: Word, entries: Sequence[tuple[str, Sequence[float]]], about: str) -> None:
        self.promises.append(about)
        if self.case is None:
            return
        bits, used, found = self.loop.bits, dict[str, Term](), list[Form]()
        for group, values in entries:
            if not values:
                found.append(NOTHING)
                continue
            stands = used.setdefault(group, z3.FreshBool(f"names {group}"))
            high = z3.And(stands, z3.FreshBool("is the first")) if len(values) > 1 else stands
            form = bits.form(high) * Fraction(values[0])
            if len(values) > 1:
                form += bits.form(z3.And(stands, z3.Not(high))) * Fraction(values[1])
            found.append(form)
        where = z3.simplify(self.place(place))
        self.loop.columns.promised.append((region, where, found))
        self.columns.at(region, where)

    def promise_integer(
        self, layer: int, rows: str, region: str, tolerance: float, limit: float, shift: float = 0.0, grid: float = 0.0,
    ) -> None:
        self.promised[rows] = Fraction(tolerance)
        place = layer - 1, self.loop.layout.rows(rows).start, region
        self.loop.integers[place] = PromisedInteger(Fraction(tolerance), Fraction(limit), Fraction(shift), Fraction(grid))

    def claim(self, name: str, about: Callable[[], str]) -> None:
        self.claims[name] = about

    def expect_after(
        self, layer: int, rows: str, region: str, about: str, entries: Entries, *, heads_only: bool = False,
    ) -> None:
        self.loop.layout.rows(rows)
        self.expected_midway.append(
            Midway(layer, rows, region, about, lambda column: _forms(entries(column)), heads_only))

    def expect_contents(self, region: str, about: str, replaced: Callable[[ColumnBefore], Word], by: Entries) -> None:
        self.kept.append(Kept(region, lambda column: self.condition(replaced(column)),
                              lambda column: _forms(by(column)), about))

    # Columns and words

    def before(self, column: Column) -> RealBefore:
        return RealBefore(self, column)

    def at(self, region: str, number: Word) -> RealBefore:
        return self.before(self.columns.at(region, self.place(number)))

    def shared(self, region: str, rows: str) -> Word:
        return self.word(self.loop.columns.shared(region, rows), rows)

    def all(self, region: str) -> list[RealBefore]:
        return [self.before(column) for column in self.loop.columns.pool(region)]

    def as_word(self, entries: Sequence[Entry]) -> Word:
        bits, is_real = self.loop.bits, self.loop.relus.is_real
        return self.word(bits.word([NOTHING if is_real(entry) else bits.form(equal(entry - number(1), bits))
                                    for entry in _forms(entries)]))

    def is_at_most_zero(self, rows: str, column: ColumnBefore, layer: int) -> Word:
        assert isinstance(column, Before)
        place, of = self.loop.layout.rows(rows).start, column.column
        form = self.loop.attended(of, layer - 1)[place] - Form(self.loop.integers[layer - 1, place, of.region].shift)
        self.loop.read(of, layer - 1)[place]
        known = self.loop.relus.at_most_zero.get(form.key)
        return self.word(at_least(-form, Fraction(0), self.loop.bits) if known is None else known)

    # Entries, as forms

    def signs(self, word: Word) -> list[Form]:
        return [signed(bit) for bit in self.loop.bits.of_word(self.term(word))]

    def truth(self, condition: Word) -> Form:
        return self.loop.bits.form(self.condition(condition))

    def constant(self, value: float) -> Form:
        return number(value)

    def pick(self, cases: Sequence[tuple[Word, Sequence[Entry]]], size: int) -> list[Form]:
        return self.choose([(self.condition(condition), _forms(entries)) for condition, entries in cases], size)

    def choose(self, cases: Sequence[tuple[Term, list[Form]]], size: int) -> list[Form]:
        """The entries of the last case that holds; 0 where none does."""
        found = [NOTHING] * size
        for condition, entries in cases:
            found = [choose(condition, yes, no, self.loop.bits) for yes, no in zip(entries[:size], found, strict=True)]
        return found

    def held_at(self, regions: Sequence[str], place: Word, size: int) -> list[Form]:
        number = self.place(place)
        inside = [(region, z3.simplify(self.columns.within(number, region))) for region in regions]
        return self.choose([(where, self.at(region, place).held) for region, where in inside
                            if self.loop.solver.possible(where)], size)

    def mean(self, columns: Sequence[ColumnBefore], layer: int, rows: str) -> list[Form]:
        place = self.loop.layout.rows(rows)
        found = [NOTHING] * (place.stop - place.start)
        for column in columns:
            assert isinstance(column, Before)
            found = [one + other for one, other in zip(found, self.loop.after(column.column, layer)[place], strict=True)]
        return [form * Fraction(1, max(1, len(columns))) for form in found]
