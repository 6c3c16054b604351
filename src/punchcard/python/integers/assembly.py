"""Instructions in the making: items of `.asq`, labels, and the sums of cells that most of a program consists of.

A sum is what SUBLEQ computes best: every term costs one instruction. `$z` is 0 before and after everything that is written
here, as in the standard macros.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from punchcard.machines.source import Token
from punchcard.machines.von_neumann.languages.asq import items as asq
from punchcard.machines.von_neumann.languages.asq.items import Expression, Item
from punchcard.machines.von_neumann.languages.asq.writer import write_data, write_statement
from punchcard.words.word import as_signed

Z, P, Q, R, U, V, ERROR = map(asq.scratch, ("z", "p", "q", "r", "u", "v", "error"))
"""Scratch cells: `$z` is 0 between instructions, the others are operands and results of routines."""
PORT = asq.number(-1)
MOST_REPEATED = 3
"""A cell is added so often at most; more often it is doubled first."""


@dataclass(frozen=True)
class CellSum:
    """A sum: how often each cell counts, a number, and how often the address of each label counts.

    A cell is the expression of its address. `passing`: a cell in it may be changed by what is computed next, so that it has
    to be copied before.
    """

    terms: Mapping[Expression, int] = field(default_factory=dict)
    number: int = 0
    addresses: Mapping[str, int] = field(default_factory=dict)
    passing: bool = False

    @property
    def is_constant(self) -> bool:
        return not self.terms

    @property
    def known(self) -> int | None:
        return self.number if not self.terms and not self.addresses else None

    @property
    def cell(self) -> Expression | None:
        """The cell that the sum is, or None if it is more than one."""
        if len(self.terms) == 1 and not self.number and not self.addresses:
            (place, count), = self.terms.items()
            return place if count == 1 else None
        return None

    @property
    def has_constant(self) -> bool:
        return bool(self.number or self.addresses)

    def constant_operand(self, sign: int = 1) -> Expression:
        """The address of a cell that holds the constant part."""
        return asq.constant(self.constant_part(sign))

    def constant_part(self, sign: int = 1) -> Expression:
        parts = [part for label, count in self.addresses.items() for part in asq.name(label, count * sign)]
        return (*parts, *asq.number(self.number * sign)) if self.number or not parts else tuple(parts)

    def plus(self, other: CellSum, factor: int = 1) -> CellSum:
        terms, addresses = dict(self.terms), dict(self.addresses)
        for place, count in other.terms.items():
            terms[place] = terms.get(place, 0) + factor * count
        for label, count in other.addresses.items():
            addresses[label] = addresses.get(label, 0) + factor * count
        return CellSum({place: count for place, count in terms.items() if count}, self.number + factor * other.number,
                       {label: count for label, count in addresses.items() if count}, self.passing or other.passing)

    def times(self, factor: int) -> CellSum:
        return CellSum({}, passing=self.passing).plus(self, factor) if factor else CellSum()

    def lists(self) -> tuple[list[Expression], list[Expression]]:
        """The cells that are added and those that are subtracted, each as often as it counts."""
        added = [place for place, count in self.terms.items() for _ in range(count)]
        taken = [place for place, count in self.terms.items() for _ in range(-count)]
        return added, taken


def cell(place: Expression, *, passing: bool = False) -> CellSum:
    return CellSum({place: 1}, passing=passing)


def constant(value: int) -> CellSum:
    return CellSum({}, value)


def address(label: str) -> CellSum:
    return CellSum({}, 0, {label: 1})


def literal(value: int) -> Expression:
    """The address of a cell that holds a number."""
    return asq.constant(asq.number(value))


@dataclass(frozen=True)
class Patched:
    """An operand that other instructions write: its cell has a label, and is 0 at first."""

    label: str


Operand: TypeAlias = Expression | Patched


@dataclass(frozen=True)
class AssemblyEntry:
    """A label, a comment, data, or the items of an instruction. After `leaves` nothing continues to the next entry."""

    items: tuple[Item, ...] = ()
    is_data: bool = False
    label: str = ""
    comment: str | None = None
    leaves: str = ""


class Assembly:
    """Instructions in order. Temporary cells are numbered: `$gcd_1`."""

    def __init__(self, word_bits: int) -> None:
        self.word_bits = word_bits
        self.prefix = "main"
        self.temporaries = 0
        self.entries: list[AssemblyEntry] = []
        self._labels = 0
        self._token = asq.MADE

    # Entries

    def comment(self, text: str, line: int = 0) -> None:
        """A comment; what comes next belongs to a line of the source, or to none."""
        self.entries.append(AssemblyEntry(comment=text))
        self._token = Token("made", text, line, 1)

    def label(self, label: str) -> None:
        self.entries.append(AssemblyEntry(label=label))

    def data(self, items: Iterable[Item]) -> None:
        self.entries.append(AssemblyEntry(tuple(items), is_data=True))

    def pool(self) -> None:
        """The place of constants and scratch cells."""
        self.entries.append(AssemblyEntry((asq.Pool(asq.MADE),)))

    def fresh(self, what: str = "L") -> str:
        """A new label."""
        self._labels += 1
        return f"{what}_{self._labels}"

    def temporary(self) -> Expression:
        """A cell that the current statement may use."""
        self.temporaries += 1
        return asq.scratch(f"{self.prefix}_{self.temporaries}")

    # Instructions

    def macro(self, macro: str, *operands: Expression | str, leaves: str = "") -> None:
        """Use a macro; an operand that is a text is a label."""
        named = tuple(asq.name(operand) if isinstance(operand, str) else operand for operand in operands)
        self.entries.append(AssemblyEntry((asq.MacroCall(self._token, macro, named),), leaves=leaves))

    def sub(self, source: Operand, target: Operand, then: str | Patched | None = None, leaves: str = "") -> None:
        """The instruction: target -= source; if that is 0 or less, go to `then`."""
        ahead = (asq.Summand(1, "next", self._token),)
        last: Operand = ahead if then is None else asq.name(then) if isinstance(then, str) else then
        items: list[Item] = []
        for at, operand in enumerate((source, target, last)):
            if isinstance(operand, Patched):
                items.append(asq.Label(self._token, operand.label))
            items.append(asq.Cell(asq.number(0) if isinstance(operand, Patched) else operand, self._token, written=at == 1))
        self.entries.append(AssemblyEntry(tuple(items), leaves=leaves))

    def clear(self, target: Expression) -> None:
        self.sub(target, target)

    def jump(self, target: str) -> None:
        self.macro("jump", target, leaves=target)

    def go(self, target: str, following: str) -> None:
        """Jump to a label, unless it is the one that comes next."""
        if target != following:
            self.jump(target)

    def call(self, routine: str, entry: str = "") -> None:
        """Go to a routine, which ends with a jump to what its cell `_back` holds; `entry` is where it begins."""
        self.macro("go", entry or routine, f"{routine}_back")

    # Sums

    def wrapped(self, value: int) -> int:
        """A number as a signed word."""
        return as_signed(value, self.word_bits)

    def assign(self, target: Expression, form: CellSum) -> None:
        """target = form."""
        form = self._reduced(form)
        own = form.terms.get(target, 0)
        if own < 0:
            copy = self.temporary()
            self.assign(copy, form)
            self.macro("mov", copy, target)
            return
        rest = form.plus(CellSum({target: -1})) if own else form
        added, taken = rest.lists()
        if not own and form.cell is not None:
            self.macro("mov", form.cell, target)
            return
        if own and len(added) == 1 and not taken and not rest.has_constant:
            self.macro("add", added[0], target)
            return
        self._add_to(target, added, first=not own)
        for place in taken:
            self.sub(place, target)
        if rest.has_constant:
            self.sub(rest.constant_operand(-1), target)

    def _add_to(self, target: Expression, added: list[Expression], *, first: bool) -> None:
        """Add cells to a target, which is cleared before if that is the first thing that happens to it."""
        for place in added:
            self.sub(place, Z)
        if first:
            self.clear(target)
        if added:
            self.sub(Z, target)
            self.clear(Z)

    def _reduced(self, form: CellSum) -> CellSum:
        """The same sum with no cell more than a few times: multiples of it are computed first."""
        form = CellSum(form.terms, self.wrapped(form.number), form.addresses)
        for place, count in list(form.terms.items()):
            if abs(count) > MOST_REPEATED:
                multiple = self._multiple(place, abs(count))
                form = form.plus(CellSum({place: -count})).plus(CellSum({multiple: 1 if count > 0 else -1}))
        return form

    def _multiple(self, place: Expression, count: int) -> Expression:
        """A cell that holds so many times another: doubled, and added where the factor has a 1."""
        made = self.temporary()
        self.macro("mov", place, made)
        for bit in bin(count)[3:]:
            self._add_to(made, [made, place] if bit == "1" else [made], first=False)
        return made

    def held(self, form: CellSum) -> Expression:
        """A cell that holds a sum, only to be read."""
        if form.is_constant:
            return CellSum({}, self.wrapped(form.number), form.addresses).constant_operand()
        return form.cell if form.cell is not None else self.own(form)

    def tested(self, form: CellSum) -> Expression:
        """A cell that holds a sum, which a jump may test in place."""
        return self.own(form) if form.is_constant else self.held(form)

    def own(self, form: CellSum) -> Expression:
        """A cell that holds a sum and that nothing else uses."""
        made = self.temporary()
        self.assign(made, form)
        return made

    def as_word(self, form: CellSum) -> CellSum:
        """A constant sum as the word that it is."""
        return form if form.known is None else constant(self.wrapped(form.known))

    def kept(self, form: CellSum) -> CellSum:
        """The same value in a cell that nothing else uses."""
        return form if form.is_constant else cell(self.own(form))

    def steady(self, form: CellSum) -> CellSum:
        """The same value, which what is computed next does not change."""
        return self.kept(form) if form.passing else form

    # Jumps

    def _cost(self, form: CellSum) -> int:
        added, taken = form.lists()
        rest = len(taken) + form.has_constant
        return 1 + rest if not added else len(added) + 3 + (rest or 1)

    def _computed(self, form: CellSum, then: str) -> Expression:
        """A cell of its own that holds a sum; the instruction that completes it jumps where it is 0 or less."""
        form = self._reduced(form)
        made = self.temporary()
        added, taken = form.lists()
        self._add_to(made, added, first=True)
        last = [*taken, *([form.constant_operand(-1)] if form.has_constant else [])] or [Z]
        for place in last[:-1]:
            self.sub(place, made)
        self.sub(last[-1], made, then)
        return made

    def jump_if_low(self, form: CellSum, target: str, low: int) -> None:
        """Jump where a sum is 0 or less; `low` is the least that it can be."""
        if form.known is not None:
            if form.known <= 0:
                self.jump(target)
            return
        if form.cell is not None:
            self.sub(Z, form.cell, target)
            return
        opposite = constant(1).plus(form, -1)
        if low > 1 - (1 << (self.word_bits - 1)) and self._cost(opposite) + 1 < self._cost(form):
            skip = self.fresh("high")
            self._computed(opposite, skip)
            self.jump(target)
            self.label(skip)
        else:
            self._computed(form, target)

    def jump_by_zero(self, form: CellSum, zero: str, other: str, following: str, low: int, high: int) -> None:
        """Jump to `zero` where a sum is 0 and to `other` where not; `following` is the one of them that comes next."""
        if form.known is not None:
            self.go(other if form.known else zero, following)
            return
        least = -(1 << (self.word_bits - 1))
        if low < 0 and high <= 0 and low > least:
            form, low, high = form.times(-1), -high, -low
        if low >= 0:
            if following == zero and high < -least - 1:
                self.jump_if_low(constant(1).plus(form, -1), other, 1 - high)
            else:
                self.jump_if_low(form, zero, low)
                self.go(other, following)
            return
        if form.cell is not None:
            if following == zero:
                self.macro("jnz", form.cell, other)
            else:
                self.macro("jz", form.cell, zero)
                self.go(other, following)
            return
        if self._cost(form.times(-1)) < self._cost(form):
            form = form.times(-1)
        below = self.fresh("low")
        made = self._computed(form, below)
        self.jump(other)
        self.label(below)
        self.sub(literal(-1), made, other)
        self.go(zero, following)

    # The end

    def finish(self) -> list[AssemblyEntry]:
        """The entries, without jumps to the next one, what nothing leads to, and labels that nothing uses."""
        kept: list[AssemblyEntry] = []
        dead = False
        for entry in self.entries:
            if entry.label:
                dead = False
                before = next((at for at in range(len(kept) - 1, -1, -1) if kept[at].items), -1)
                if before >= 0 and kept[before].leaves == entry.label:
                    kept.pop(before)
            if dead and entry.comment is None:
                continue
            kept.append(entry)
            dead = dead or bool(entry.leaves)
        used = {label for entry in kept for item in entry.items for label in _names(item)}
        return [entry for entry in kept if not entry.label or entry.label in used]


def items_of(entries: Iterable[AssemblyEntry]) -> Iterator[Item]:
    for entry in entries:
        if entry.label:
            yield asq.Label(asq.MADE, entry.label)
        yield from entry.items


def text_of(entries: Iterable[AssemblyEntry]) -> str:
    """The entries as `.asq` text, with the comments."""
    lines: list[str] = []
    labels: list[str] = []
    for entry in entries:
        if entry.comment is not None:
            lines.append(f"        # {entry.comment}")
        elif entry.label:
            labels.append(entry.label + ":")
        else:
            lines += labels[:-1]
            front = labels[-1] if labels else ""
            text = (write_data if entry.is_data else write_statement)(entry.items)
            lines.append(f"{front:<8}{text}" if len(front) < 8 else f"{front} {text}")
            labels = []
    return "\n".join([*lines, *labels]) + "\n"


def _names(item: Item) -> Iterator[str]:
    """The labels that an item uses."""
    sums = [item.expression] if isinstance(item, asq.Cell) else item.operands if isinstance(item, asq.MacroCall) else ()
    ahead = [term for expression in sums for term in expression]
    while ahead:
        term = ahead.pop()
        ahead += term.constant
        if term.kind == "name":
            yield term.name
