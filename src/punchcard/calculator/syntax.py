"""The calculator's language: an expression becomes postfix code, whose every step knows the text that it stands for.

    expression = term { (+ | -) term }
    term       = factor { (* | /) factor }
    factor     = (- | +) factor | postfix
    postfix    = atom { % | ^ exponent }
    exponent   = [- | +] atom
    atom       = number | variable | constant | function ( expression { , expression } ) | ( expression )

`pi` and `e` are constants where no value is given to a variable of the name.

Postfix code, operands before their operator, is compiled by one loop with a stack; so a sum may have any number of terms.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from punchcard.errors import ProgramError, SourceError, did_you_mean

CHOICES = ("min", "max")
"""Functions of two operands or more."""
FUNCTIONS = ("sqrt", "inverse", "exp", "log", "sin", "cos", "tanh", "abs", *CHOICES)
CONSTANTS = ("pi", "e")
MOST_NESTED = 50
MOST_CHARACTERS = 10_000
MOST_EXPONENT = 64
MOST_DIGITS = 1000
"""Of a number: more than any float64 has, and fewer than Python converts."""
LARGEST_POWER_OF_TEN = 400
"""Beyond the exponents of float64; a larger one would only make large integers."""

_TOKEN = re.compile(r"""
    (?P<space>\s+)
  | (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
  | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<mark>\*\*|[-+*/%^(),])
""", re.VERBOSE)
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_BINARY = {"+": "add", "-": "sub", "*": "mul", "/": "div"}


@dataclass(frozen=True)
class Item:
    """One step of postfix code: a `number`, a `variable`, or an operator over what came before it.

    `column` is where the operator stands, and `text` the part of the expression that has been computed after the step.
    `value` is a number's, and the exponent of a `power`; that of a `raise` is an operand.
    """

    kind: str
    column: int
    text: str
    value: Fraction = Fraction(0)
    name: str = ""


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    start: int
    end: int


def parse(expression: str) -> list[Item]:
    """The postfix code of an expression."""
    return _Parser(expression).parse()


def place_error(message: str, expression: str, column: int, text: str = "") -> SourceError:
    """An error at a column of an expression, which is repeated; a long one is cut."""
    shown = expression if len(expression) <= 60 else expression[:57] + "..."
    return SourceError(message, line=1, column=column, text=text, source=repr(shown))


def number(text: str) -> Fraction | None:
    """A decimal number, exactly; None when the text is none."""
    if not _NUMBER.fullmatch(text.strip()):
        return None
    exponent = re.search(r"[eE]([+-]?[0-9]+)", text)
    if exponent is not None and (len(exponent.group(1)) > 5 or abs(int(exponent.group(1))) > LARGEST_POWER_OF_TEN):
        return None
    if len(text) > MOST_DIGITS:
        raise ProgramError(f"{text[:40]}... has {len(text)} characters: the most is {MOST_DIGITS}")
    return Fraction(text.strip())


def quotient(text: str) -> Fraction | None:
    """A decimal number, or one over another, exactly; None when the text is neither."""
    parts = [number(part) for part in text.split("/")]
    if None in parts or len(parts) > 2 or (len(parts) == 2 and parts[1] == 0):
        return None
    top, bottom = parts[0], parts[-1] if len(parts) == 2 else Fraction(1)
    return None if top is None or bottom is None else top / bottom


class _Parser:
    def __init__(self, expression: str) -> None:
        self.expression = expression
        if len(expression) > MOST_CHARACTERS:
            raise self._error(f"the expression has {len(expression)} characters: the most is {MOST_CHARACTERS}", 0)
        self.tokens = self._tokens()
        self.next = 0
        self.items: list[Item] = []
        self.depth = 0

    def parse(self) -> list[Item]:
        self._expression()
        if self.ahead.kind != "end":
            raise self._wrong("an operator, such as + - * / ^ %, or the end")
        return self.items

    # Tokens

    def _tokens(self) -> list[_Token]:
        tokens, place = [], 0
        while place < len(self.expression):
            match = _TOKEN.match(self.expression, place)
            if match is None:
                raise self._error(f"unexpected character {self.expression[place]!r}", place, self.expression[place])
            if match.lastgroup != "space":
                tokens.append(_Token(match.lastgroup or "", match.group(), place, match.end()))
            place = match.end()
        end = len(self.expression.rstrip())
        return [*tokens, _Token("end", "", end, end)]

    @property
    def ahead(self) -> _Token:
        return self.tokens[self.next]

    def _take(self) -> _Token:
        token = self.ahead
        self.next += token.kind != "end"
        return token

    def _error(self, message: str, place: int, text: str = "") -> SourceError:
        return place_error(message, self.expression, place + 1, text)

    def _wrong(self, wanted: str) -> SourceError:
        found = "the expression ends here" if self.ahead.kind == "end" else f"found {self.ahead.text!r}"
        return self._error(f"{found}: what can stand here is {wanted}", self.ahead.start, self.ahead.text)

    def _nested(self, parse: Callable[[], int], token: _Token) -> int:
        """One level deeper: what `parse` gives."""
        self.depth += 1
        if self.depth > MOST_NESTED:
            raise self._error(f"nested more than {MOST_NESTED} deep", token.start, token.text)
        start = parse()
        self.depth -= 1
        return start

    # Grammar: each rule emits its items and gives the place where its text begins

    def _emit(self, kind: str, token: _Token, start: int, *, name: str = "", value: Fraction = Fraction(0)) -> None:
        text = self.expression[start : self.tokens[self.next - 1].end]
        self.items.append(Item(kind, token.start + 1, text, value, name))

    def _expression(self) -> int:
        return self._chain(("+", "-"), self._term)

    def _term(self) -> int:
        return self._chain(("*", "/"), self._factor)

    def _chain(self, operators: tuple[str, ...], operand: Callable[[], int]) -> int:
        """Operators of one precedence, from left to right."""
        start = operand()
        while self.ahead.text in operators:
            token = self._take()
            operand()
            self._emit(_BINARY[token.text], token, start)
        return start

    def _factor(self) -> int:
        if self.ahead.text not in ("-", "+"):
            return self._postfix()
        token = self._take()
        self._nested(self._factor, token)
        if token.text == "-":
            self._emit("neg", token, token.start)
        return token.start

    def _postfix(self) -> int:
        start = self._atom()
        powers = 0
        while self.ahead.text in ("%", "^", "**"):
            token = self._take()
            if token.text == "%":
                self._emit("percentage", token, start)
                continue
            powers += 1
            if powers > 1:
                raise self._error("two powers in a row: write (x^2)^3 or x^8", token.start, token.text)
            exponent = self._exponent()
            if exponent is None:
                self._emit("raise", token, start)
            else:
                self._emit("power", token, start, value=exponent)
        return start

    def _exponent(self) -> Fraction | None:
        """The number that an exponent is written as; None, when it is an expression, whose items are emitted."""
        sign = self._take() if self.ahead.text in ("-", "+") else None
        token = self.ahead
        value = number(token.text) if token.kind == "number" else None
        if value is None:
            self._atom()
            if sign is not None and sign.text == "-":
                self._emit("neg", sign, sign.start)
            return None
        if value.denominator == 1 and value > MOST_EXPONENT:
            raise self._error(f"exponent {token.text}: the largest is {MOST_EXPONENT}", token.start, token.text)
        self._take()
        return -value if sign is not None and sign.text == "-" else value

    def _atom(self) -> int:
        token = self.ahead
        if token.kind == "number":
            value = number(token.text)
            if value is None:
                raise self._error(f"{token.text!r} is beyond the floating-point numbers", token.start, token.text)
            self._take()
            self._emit("number", token, token.start, value=value)
        elif token.text == "(":
            self._parenthesis()
        elif token.kind == "name":
            self._name()
        else:
            raise self._wrong("a number, a variable, a function or a parenthesis")
        return token.start

    def _name(self) -> None:
        token = self._take()
        if self.ahead.text != "(":
            if token.text in FUNCTIONS:
                raise self._error(f"{token.text} is a function: write {token.text}(...)", token.start, token.text)
            self._emit("variable", token, token.start, name=token.text)
            return
        if token.text not in FUNCTIONS:
            raise self._error(f"unknown function {token.text!r}{did_you_mean(token.text, FUNCTIONS)}: there are "
                              f"{', '.join(FUNCTIONS)}; a product is written with *", token.start, token.text)
        choice = token.text in CHOICES
        operands = self._parenthesis(several=choice)
        if choice and operands < 2:
            raise self._error(f"{token.text} of one number: it takes two or more, separated by commas", token.start,
                              token.text)
        for _ in range(operands - choice):  # min(a, b, c) is min(a, min(b, c))
            self._emit(token.text, token, token.start)

    def _parenthesis(self, *, several: bool = False) -> int:
        """An expression, or several with commas between them; how many."""
        opening, operands = self._take(), 1
        self._nested(self._expression, opening)
        while several and self.ahead.text == ",":
            self._nested(self._expression, self._take())
            operands += 1
        if self.ahead.text != ")":
            raise self._wrong(f"an operator{', a comma' * several}, or the ) of the ( at column {opening.start + 1}")
        self._take()
        return operands
