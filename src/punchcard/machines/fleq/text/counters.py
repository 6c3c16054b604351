"""Counters of FLEQ text: loops of any number of rounds, within a small range.

    t   counter 1000             under .data: 1000 rounds. Its digits are the scalars t0, t1, ...
    count t goto loop            under .code: a round is made; back to `loop` until all are
    restart t                    after the last round: all rounds once more, for a loop inside a loop

Each statement is assembled to the instructions that `fleq/counter.py` writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from punchcard.machines.fleq.counter import Counter, radix_within
from punchcard.machines.fleq.functions import Shape
from punchcard.machines.fleq.isa import Branch, Call, Step
from punchcard.machines.fleq.text.code import Code, take_label
from punchcard.machines.fleq.text.source import COUNTER_WORDS, take_integer
from punchcard.machines.fleq.text.values import COUNTER, Declaration, take_variable_name
from punchcard.machines.source import Line, Token, unknown

_COUNT = "a round of a counter is counted by `count name goto label`"
SCALAR = Shape(1, 1)


class CounterDeclaration(NamedTuple):
    """A counter as declared: where its name is, and its rounds."""

    name: Token
    rounds: int


class CounterStatement(NamedTuple):
    """`count name goto label`, or without a label `restart name`."""

    word: Token
    counter: Token
    label: Token | None


class _Addition(NamedTuple):
    """One instruction of a statement, `into = add(left, right)`; `goes_back`: with the branch to its label."""

    left: str
    right: str
    into: str
    goes_back: bool


def declares_counter(line: Line) -> bool:
    """Whether a line of `.data` does."""
    return line.second_is(COUNTER)


def take_counter(line: Line) -> CounterDeclaration:
    """The counter that a line declares."""
    name = take_variable_name(line)
    line.take()
    rounds = take_integer(line, f"the number of rounds of {name.text!r}")
    if int(rounds.text) < 1:
        raise rounds.error(f"{rounds.text} rounds: a loop makes at least one")
    line.finish(f"the rounds of {name.text!r}")
    return CounterDeclaration(name, int(rounds.text))


def is_counter_statement(line: Line) -> bool:
    """Whether a line of `.code` is one. A variable may have the name `count`: then a `=` or a `[` follows."""
    return line.at(*COUNTER_WORDS) and not any(line.second_is(mark) for mark in ("=", "["))


def take_counter_statement(line: Line) -> CounterStatement:
    """The statement on the rest of a line."""
    word = line.take()
    counter = line.take_name(f"after {word.text!r} comes a counter, which")
    label = None
    if word.text == "count":
        line.take_mark("goto", _COUNT)
        label = take_label(line)
    line.finish(f"`{word.text} {counter.text}`")
    return CounterStatement(word, counter, label)


class Counters:
    """The counters of one text, and the scalars that they need. It is what a `Counter` is written with."""

    def __init__(self, declared: Iterable[CounterDeclaration], limit: float, taken: Iterable[str]) -> None:
        self.values: dict[str, float] = {}
        self._written: list[_Addition] = []
        self._taken = set(taken)
        self._constants: dict[str, str] = {}
        self._tokens = {each.name.text: each.name for each in declared}
        self._counters: dict[str, Counter[str]] = {}
        for each in declared:
            if limit < 1:
                raise each.name.error(f"the counter {each.name.text!r} needs a range of 1 or more, and .range is {limit!r}")
            self._counters[each.name.text] = Counter(self, each.name.text, each.rounds, radix_within(limit))
        for each in declared:
            self._check_digits(each.name)

    def _check_digits(self, name: Token) -> None:
        for digit in self._counters[name.text].places:
            if digit in self._taken:
                raise name.error(f"the counter {name.text!r} has the digits {name.text}0, {name.text}1 and so on, and there "
                                 f"is a variable {digit!r}: rename one of them")
            self._taken.add(digit)

    @property
    def names(self) -> Iterable[str]:
        return self._counters

    # Writing, as a counter does

    def scalar(self, name: str, value: float) -> str:
        self.values[name] = value
        return name

    def label(self, name: str) -> str:
        return name

    def call(self, function: str, *operands: str, into: str, goto: str | None = None, if_leq: str | None = None) -> None:
        self._written.append(_Addition(operands[0], operands[1], into, goto is not None))

    # Assembling

    def digits(self, name: str) -> list[Declaration]:
        """The scalars of a counter."""
        return [self._scalar(place, self._tokens[name], place) for place in self._counters[name].places]

    def constants(self, statements: Iterable[CounterStatement]) -> Iterator[Declaration]:
        """The scalars that the statements need beside the digits, under names that nothing else has."""
        digits = {place for counter in self._counters.values() for place in counter.places}
        for statement in statements:
            for addition in self.additions(statement):
                for needed in (addition.left, addition.right):
                    if needed not in digits and needed not in self._constants:
                        name = needed
                        while name in self._taken:
                            name += "_"
                        self._taken.add(name)
                        self._constants[needed] = name
                        yield self._scalar(name, statement.word, needed)

    def _scalar(self, name: str, at: Token, value_of: str) -> Declaration:
        return Declaration(at._replace(kind="name", text=name), SCALAR, np.array([[self.values[value_of]]]))

    def additions(self, statement: CounterStatement) -> list[_Addition]:
        """The instructions of a statement."""
        if statement.counter.text not in self._counters:
            raise unknown("counter", statement.counter, self._counters,
                          f"declare it under .data, as `{statement.counter.text} counter ROUNDS`")
        counter, self._written = self._counters[statement.counter.text], []
        if statement.label is None:
            counter.restart()
        else:
            counter.again(statement.label.text)
        return self._written

    def steps(self, statement: CounterStatement, code: Code) -> Iterator[Step]:
        """The same, once variables and labels have numbers."""
        for left, right, into, goes_back in self.additions(statement):
            places = [(code.variables[self._constants.get(name, name)].address, SCALAR) for name in (left, right, into)]
            branch = None
            if goes_back and statement.label is not None:
                branch = Branch(places[-1][0], code.target(statement.label))
            yield Step(Call.of("add", places[:2], places[2]), branch)
