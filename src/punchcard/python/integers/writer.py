"""`.asq` text in the making: instructions, labels, and the sums of cells that most of a program consists of.

`$z` is 0 before and after everything that is written here, as in the standard macros.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from punchcard.python.integers.forms import Form, constant

MOST_REPEATED = 3
"""A cell is added so often at most; more often it is doubled first."""


@dataclass(frozen=True)
class Line:
    """A line of the text: an instruction, a label or a comment. After `leaves` nothing goes on to the next line."""

    text: str
    label: str = ""
    leaves: str = ""
    comment: bool = False


class Writer:
    """Instructions in order. Cells of its own are numbered: `$gcd_1`."""

    def __init__(self, word_bits: int) -> None:
        self.word_bits = word_bits
        self.lines: list[Line] = []
        self._labels = 0
        self.prefix = "main"
        self.temporaries = 0
        self.most_temporaries: dict[str, int] = {}

    # Lines

    def put(self, text: str, leaves: str = "") -> None:
        self.lines.append(Line(text, leaves=leaves))

    def comment(self, text: str) -> None:
        self.lines.append(Line(f"# {text}", comment=True))

    def label(self, name: str) -> None:
        self.lines.append(Line("", label=name))

    def fresh(self, what: str = "L") -> str:
        self._labels += 1
        return f"{what}_{self._labels}"

    def temporary(self) -> str:
        self.temporaries += 1
        return f"${self.prefix}_{self.temporaries}"

    # Instructions

    def sub(self, source: str, target: str, then: str = "") -> None:
        self.put(f"{source} {target} {then}".rstrip())

    def clear(self, target: str) -> None:
        self.put(target)

    def jump(self, target: str) -> None:
        self.put(f"@jump {target}", leaves=target)

    def call(self, routine: str) -> None:
        """Go to a routine, which ends with a jump to what its cell `_back` holds."""
        self.put(f"@go {routine} {routine}_back")

    def wrapped(self, value: int) -> int:
        """A number as a signed word."""
        half = 1 << (self.word_bits - 1)
        return (value + half) % (2 * half) - half

    def assign(self, target: str, form: Form) -> None:
        """target = form."""
        form = self._reduced(form)
        own = form.terms.get(target, 0)
        if own < 0:
            copy = self.temporary()
            self.assign(copy, form)
            self.put(f"@mov {copy} {target}")
            return
        rest = form.plus(Form({target: -1})) if own else form
        added, taken = rest.lists()
        if not own and form.cell is not None:
            self.put(f"@mov {form.cell} {target}")
            return
        if own and len(added) == 1 and not taken and not rest.has_constant:
            self.put(f"@add {added[0]} {target}")
            return
        for name in added:
            self.sub(name, "$z")
        if not own:
            self.clear(target)
        if added:
            self.sub("$z", target)
            self.clear("$z")
        for name in taken:
            self.sub(name, target)
        if rest.has_constant:
            self.sub(rest.constant(-1), target)

    def _reduced(self, form: Form) -> Form:
        """The same sum with no cell more than a few times: multiples of it are computed first."""
        form = Form(form.terms, self.wrapped(form.number), form.addresses)
        for name, count in list(form.terms.items()):
            if abs(count) > MOST_REPEATED:
                multiple = self._multiple(name, abs(count))
                form = form.plus(Form({name: -count})).plus(Form({multiple: 1 if count > 0 else -1}))
        return form

    def _multiple(self, name: str, count: int) -> str:
        """A cell that holds so many times another: doubled, and added where the factor has a 1."""
        made = self.temporary()
        self.put(f"@mov {name} {made}")
        for bit in bin(count)[3:]:
            self.sub(made, "$z")
            if bit == "1":
                self.sub(name, "$z")
            self.sub("$z", made)
            self.clear("$z")
        return made

    def held(self, form: Form) -> str:
        """A cell that holds a sum, only to be read."""
        if form.is_constant:
            return Form({}, self.wrapped(form.number), form.addresses).constant()
        if form.cell is not None:
            return form.cell
        made = self.temporary()
        self.assign(made, form)
        return made

    def tested(self, form: Form) -> str:
        """A cell that holds a sum, which a jump may test in place."""
        return self.own(form) if form.is_constant else self.held(form)

    def negative(self, form: Form) -> str:
        """A cell that holds minus a sum, only to be read."""
        return self.held(form.times(-1))

    def own(self, form: Form) -> str:
        """A cell that holds a sum and that nobody else uses."""
        made = self.temporary()
        self.assign(made, form)
        return made

    # Jumps

    def cost(self, form: Form) -> int:
        added, taken = form.lists()
        rest = len(taken) + form.has_constant
        return 1 + rest if not added else len(added) + 3 + (rest or 1)

    def _computed(self, form: Form, then: str) -> str:
        """A cell of its own that holds a sum; the instruction that completes it jumps where it is 0 or less."""
        form = self._reduced(form)
        made = self.temporary()
        added, taken = form.lists()
        for name in added:
            self.sub(name, "$z")
        self.clear(made)
        if added:
            self.sub("$z", made)
            self.clear("$z")
        last = [*taken, *([form.constant(-1)] if form.has_constant else [])] or ["$z"]
        for name in last[:-1]:
            self.sub(name, made)
        self.sub(last[-1], made, then)
        return made

    def jump_if_low(self, form: Form, target: str, low: int) -> None:
        """Jump where a sum is 0 or less; `low` is the least that it can be."""
        if form.known is not None:
            if form.known <= 0:
                self.jump(target)
            return
        if form.cell is not None:
            self.sub("$z", form.cell, target)
            return
        opposite = constant(1).plus(form, -1)
        if low > 1 - (1 << (self.word_bits - 1)) and self.cost(opposite) + 1 < self.cost(form):
            skip = self.fresh("high")
            self._computed(opposite, skip)
            self.jump(target)
            self.label(skip)
        else:
            self._computed(form, target)

    def jump_by_zero(self, form: Form, zero: str, other: str, following: str, low: int, high: int) -> None:
        """Jump to `zero` where a sum is 0 and to `other` where not; `following` is the one of them that comes next."""
        if form.known is not None:
            target = other if form.known else zero
            if target != following:
                self.jump(target)
            return
        least = -(1 << (self.word_bits - 1))
        if low < 0 and high <= 0 and low > least:
            form, low, high = form.times(-1), -high, -low
        if low >= 0:
            if following == zero and high < -least - 1:
                self.jump_if_low(constant(1).plus(form, -1), other, 1 - high)
            else:
                self.jump_if_low(form, zero, low)
                if following != other:
                    self.jump(other)
            return
        if form.cell is not None:
            self.put(f"@jnz {form.cell} {other}" if following == zero else f"@jz {form.cell} {zero}")
            if following not in (zero, other):
                self.jump(zero if following == zero else other)
            return
        if self.cost(form.times(-1)) < self.cost(form):
            form = form.times(-1)
        below = self.fresh("low")
        made = self._computed(form, below)
        self.jump(other)
        self.label(below)
        self.sub("=-1", made, other)
        if following != zero:
            self.jump(zero)

    # The end

    def text(self) -> str:
        """The lines, without jumps to the next one and without what nothing leads to."""
        kept: list[Line] = []
        dead = False
        for line in self.lines:
            if line.label:
                dead = False
                before = next((at for at in range(len(kept) - 1, -1, -1) if not kept[at].label and not kept[at].comment), -1)
                if before >= 0 and kept[before].leaves == line.label:
                    kept.pop(before)
            if dead and not line.comment:
                continue
            kept.append(line)
            if line.leaves:
                dead = True
        used = {word for line in kept if not line.comment for word in re.findall(r"\w+", line.text)}
        return "\n".join(self._shown([line for line in kept if not line.label or line.label in used])) + "\n"

    def _shown(self, lines: list[Line]) -> list[str]:
        shown: list[str] = []
        labels: list[str] = []
        for line in lines:
            if line.comment:
                shown.append(f"        {line.text}")
            elif line.label:
                labels.append(line.label + ":")
            else:
                shown += labels[:-1]
                front = labels[-1] if labels else ""
                shown.append(f"{front:<8}{line.text}" if len(front) < 8 else f"{front} {line.text}")
                labels = []
        return shown + labels
