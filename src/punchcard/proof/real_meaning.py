"""What a loop of a machine with real numbers should do: more words for a machine's `meaning`.

    card.split(...)        the cases that are looked at one after the other, such as the function that an instruction calls
    card.whole(...)        a promise: a number is an integer
    card.midway(...)       what stands at some rows after a layer, in the middle of a loop
    card.holds(...)        what a column of a region holds after the loop, real numbers included
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import z3

from punchcard.proof.column import Column
from punchcard.proof.columns import KnownContents
from punchcard.proof.forms import NOTHING, Form, Term, choose, number, signed
from punchcard.proof.loop import Loop, PromisedInteger
from punchcard.proof.meaning import Before, Meaning
from punchcard.proof.steps import at_least, equal

Entries = Callable[["RealBefore"], list[Form]]


class RealBefore(Before):
    """A column as it was when the loop began."""

    card: RealMeaning

    def constants(self, rows: str) -> list[float]:
        """What stands at rows that never change."""
        return self.card.loop.columns.constants(self.column, rows)

    @property
    def held(self) -> list[Form]:
        """What the column holds."""
        return self.card.loop.columns.held[self.column]


@dataclass(frozen=True)
class Midway:
    """What is expected at some rows of a region, after a layer or after its heads alone."""

    layer: int
    rows: str
    region: str
    about: str
    entries: Entries
    heads_only: bool


@dataclass(frozen=True)
class Kept:
    """What is expected of a region's contents: they stay, or where a condition holds they are replaced."""

    region: str
    replaced: Callable[[RealBefore], Term]
    by: Entries
    about: str


class RealMeaning(Meaning):
    """A card before a loop, and what is expected in its middle and after it, in one case."""

    loop: Loop

    def __init__(self, loop: Loop, case: str | None = None) -> None:
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

    def split(self, region: str, place: Term, cases: Mapping[str, Mapping[str, int]]) -> None:
        """Look at the cases one by one: in each, parts of what a column holds are known."""
        self.cases = tuple(cases)
        if self.case is not None:
            self.loop.columns.known_contents = KnownContents(region, self.columns.as_place(place), cases[self.case])
            return
        name, words = self.loop.columns.contents[region].name, self.at(region, place)
        self.excluded = [z3.Not(z3.And(*(words[f"{name}.{part}"] == value for part, value in parts.items())))
                         for parts in cases.values()]

    def promise(self, region: str, place: Term, entries: Sequence[tuple[str, Sequence[float]]], about: str) -> None:
        """What a column holds is made of few numbers: of each entry its group, and one of these. A group is 0 as a whole."""
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
        where = z3.simplify(self.columns.as_place(place))
        self.loop.columns.promised.append((region, where, found))
        self.at(region, where)

    def as_word(self, entries: Sequence[Form]) -> Term:
        """±1 entries as a word. That they are is claimed apart; where one is not, its bit is 0."""
        bits = self.loop.bits
        return bits.word([bits.form(equal(entry - number(1), bits)) if not self.loop.relus.is_real(entry) else NOTHING
                          for entry in entries])

    def claim(self, name: str, about: Callable[[], str]) -> None:
        """A claim that the machine shows by itself, such as an error over a whole range."""
        self.claims[name] = about

    def shared(self, region: str, rows: str) -> Term:
        """The number at rows that are the same in all columns of a region."""
        return self.loop.columns.shared(region, rows)

    def every(self, region: str) -> RealBefore:
        """Any column of a region whose columns hold the same in the rows that are asked for."""
        return RealBefore(self, self.loop.columns.pool(region)[0])

    def all(self, region: str) -> list[Column]:
        """The columns of a region that are looked at one by one."""
        return self.loop.columns.pool(region)

    def before(self, column: Column) -> RealBefore:
        """A column as it was when the loop began."""
        return RealBefore(self, column)

    @property
    def yes(self) -> Term:
        """A condition that always holds."""
        return z3.BoolVal(True)

    def at(self, region: str, number: Term) -> RealBefore:
        return RealBefore(self, self.columns.at(region, self.columns.as_place(number)))

    def whole(
        self, layer: int, rows: str, region: str, tolerance: float, limit: float, shift: float = 0.0, grid: float = 0.0,
    ) -> None:
        """The number that a layer's heads bring to a row is an integer, up to a tolerance and within a limit: a promise.

        With a `shift` it is read with that added to it, which rounds it to a multiple of `grid`.
        """
        self.promised[rows] = Fraction(tolerance)
        place = layer - 1, self.loop.layout.rows(rows).start, region
        self.loop.integers[place] = PromisedInteger(Fraction(tolerance), Fraction(limit), Fraction(shift), Fraction(grid))

    def is_at_most_zero(self, rows: str, column: Column, layer: int) -> Term:
        """Whether the number that heads have brought to a row is 0 or less; the promise says that it is clear."""
        place = self.loop.layout.rows(rows).start
        form = self.loop.attended(column, layer - 1)[place] - Form(self.loop.integers[layer - 1, place, column.region].shift)
        self.loop.after(column, layer)
        known = self.loop.relus.at_most_zero.get(form.key)
        return at_least(-form, Fraction(0), self.loop.bits) if known is None else known

    def midway(self, layer: int, rows: str, region: str, about: str, entries: Entries, *, heads_only: bool = False) -> None:
        """What stands at some rows of every column of a region after a layer, counted from 1."""
        self.loop.layout.rows(rows)
        self.expected_midway.append(Midway(layer, rows, region, about, entries, heads_only))

    def holds(self, region: str, about: str, replaced: Callable[[RealBefore], Term], by: Entries) -> None:
        """A column of a region holds what it held, or what replaces it."""
        self.kept.append(Kept(region, replaced, by, about))

    # Entries, as forms

    def signs(self, word: Term) -> list[Form]:
        """A word as ±1 bits."""
        return [signed(bit) for bit in self.loop.bits.of_word(z3.simplify(word))]

    def truth(self, condition: Term) -> Form:
        """1 where a condition holds, else 0."""
        return self.loop.bits.form(condition)

    def constant(self, value: float) -> Form:
        """A number."""
        return number(value)

    def pick(self, cases: Sequence[tuple[Term, list[Form]]], size: int) -> list[Form]:
        """The entries of the case that holds; 0 where none does."""
        found = [NOTHING] * size
        for condition, entries in cases:
            found = [choose(condition, yes, no, self.loop.bits) for yes, no in zip(entries[:size], found, strict=True)]
        return found

    def held_at(self, regions: Sequence[str], place: Term, size: int) -> list[Form]:
        """What the column with this number holds, of these regions; 0 where it is of none."""
        inside = [(region, z3.simplify(self.columns.within(self.columns.as_place(place), region))) for region in regions]
        return self.pick([(where, self.at(region, place).held) for region, where in inside
                          if self.loop.solver.possible(where)], size)

    def mean(self, columns: Sequence[Column], layer: int, rows: str) -> list[Form]:
        """The mean of what stands at some rows of several columns after a layer."""
        place = self.loop.layout.rows(rows)
        found = [NOTHING] * (place.stop - place.start)
        for column in columns:
            found = [one + other for one, other in zip(found, self.loop.after(column, layer)[place], strict=True)]
        return [form * Fraction(1, max(1, len(columns))) for form in found]
