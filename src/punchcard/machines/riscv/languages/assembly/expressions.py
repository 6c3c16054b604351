"""Tokens of assembly text, and expressions: numbers, characters, names and `.`, with the operators of the GNU assembler.

An expression is kept in postfix order, so that neither reading nor computing one depends on how deep it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple, TypeAlias

from punchcard.errors import shortened
from punchcard.machines.source import MAX_DIGITS, Line, Token

PATTERN = re.compile(r"""
    (?P<space>\s+)
  | (?P<string>"[^\\"]*+(?:\\.[^\\"]*+)*+")
  | (?P<character>'(?:\\.|[^\\'])'?)
  | (?P<unclosed>["'].*)
  | (?P<part>%[a-z_]+(?=\())
  | (?P<name>[A-Za-z_.$][A-Za-z0-9_.$]*)
  | (?P<number>[0-9][0-9A-Za-z_]*)
  | (?P<mark><<|>>|[,:()+\-*/%&|^~=@])
""", re.VERBOSE)
LIMIT = 1 << 64
"""No number on the way to a result is larger: two words, and a sign."""
PRECEDENCE: Mapping[str, int] = {"+": 1, "-": 1, "|": 2, "&": 2, "^": 2, "*": 3, "/": 3, "%": 3, "<<": 3, ">>": 3}
UNARY: Mapping[str, str] = {"-": "negative", "+": "", "~": "not"}
_BASES: Mapping[str, int] = {"0x": 16, "0b": 2, "0o": 8}
_ESCAPES: Mapping[str, int] = {
    "n": 10, "t": 9, "r": 13, "b": 8, "f": 12, "v": 11, "a": 7, "e": 27, "\\": 92, "'": 39, '"': 34}
_ESCAPE = re.compile(r"\\(x[0-9A-Fa-f]+|[0-7]{1,3}|.)", re.DOTALL)
LOCAL = re.compile(r"[0-9]+[fb]")

Kind: TypeAlias = Literal["number", "name", "here", "unary", "binary"]


class Value(NamedTuple):
    """A number, or an offset from the start of a section."""

    number: int
    section: str | None = None


class Term(NamedTuple):
    """A step of an expression in postfix order."""

    kind: Kind
    token: Token
    text: str = ""
    number: int = 0


Expression: TypeAlias = tuple[Term, ...]
Lookup: TypeAlias = Callable[[Token, str], Value]
"""The value of a name; the token says where it was used."""


def parse(line: Line, local: Callable[[Token], str]) -> Expression:
    """The current expression; it ends where no operator follows. `local` gives the name of 1f or 1b."""
    found: list[Term] = []
    waiting: list[tuple[Token, bool]] = []  # operators and open parentheses; and whether an operator has one operand
    open_ones = 0

    def settle(least: int) -> None:
        """Apply the operators that bind at least as tightly."""
        while waiting and waiting[-1][0].text != "(":
            token, alone = waiting[-1]
            if not alone and PRECEDENCE[token.text] < least:
                break
            waiting.pop()
            if not alone:
                found.append(Term("binary", token, token.text))
            elif UNARY[token.text]:
                found.append(Term("unary", token, UNARY[token.text]))

    while True:
        while line.at("(", *UNARY):
            open_ones += line.at("(")
            waiting.append((line.take(), True))
        found.append(_operand(line, local))
        while open_ones and line.at(")"):
            settle(0)
            waiting.pop()
            line.take()
            open_ones -= 1
        if not line.at(*PRECEDENCE):
            break
        settle(PRECEDENCE[line.ahead.text])
        waiting.append((line.take(), False))
    settle(0)
    if waiting:
        raise waiting[-1][0].error("this '(' is not closed: write ')'")
    return tuple(found)


def _operand(line: Line, local: Callable[[Token], str]) -> Term:
    token = line.ahead
    if token.kind == "name":
        line.take()
        return Term("here", token) if token.text == "." else Term("name", token, token.text)
    if token.kind == "character":
        line.take()
        found = unescaped(token.text[1:].removesuffix("'"), token)
        return Term("number", token, number=found[0] if len(found) == 1 else ord(found.decode()))
    if token.kind == "number":
        line.take()
        if LOCAL.fullmatch(token.text):
            return Term("name", token, local(token))
        return Term("number", token, number=number_of(token))
    raise line.wrong("a number (12, 0x0c, 'a') or a name must be here")


def number_of(token: Token) -> int:
    """Decimal, 0x hexadecimal, 0b binary, or octal with a leading 0."""
    text = token.text.lower()
    if len(text) > MAX_DIGITS + 30:
        raise token.error(f"{shortened(token.text)} has {len(text)} digits: a word has 32 bits")
    base = _BASES.get(text[:2], 8 if text[0] == "0" and len(text) > 1 else 10)
    try:
        if "_" in text:  # a number to Python only
            raise ValueError
        return int(text, base)
    except ValueError:
        raise token.error(f"{token.text!r} is not a number: write decimal (12), hexadecimal (0x0c), binary (0b1100) or "
                          "octal (014)") from None


def unescaped(text: str, token: Token) -> bytes:
    """The bytes that are between quotes; what is not ASCII is UTF-8."""
    found, place = bytearray(), 0
    for match in _ESCAPE.finditer(text):
        found += text[place : match.start()].encode()
        found.append(_escaped(match[1], token))
        place = match.end()
    return bytes(found + text[place:].encode())


def _escaped(code: str, token: Token) -> int:
    if code[0] == "x" and len(code) > 1:
        return int(code[1:][-2:], 16)
    if code[0] in "01234567":
        return int(code, 8) & 0xFF
    if code not in _ESCAPES:
        raise token.error(f"unknown escape \\{code} in {shortened(token.text)}: there are "
                          f"{', '.join(chr(92) + letter for letter in _ESCAPES)}, \\x41 and \\101")
    return _ESCAPES[code]


def evaluate(expression: Expression, lookup: Lookup, here: Value) -> Value:
    """The value of an expression. An offset plus a number is an offset; the difference of two in a section is a number."""
    stack: list[Value] = []
    for term in expression:
        if term.kind == "number":
            stack.append(Value(term.number))
        elif term.kind == "name":
            stack.append(lookup(term.token, term.text))
        elif term.kind == "here":
            stack.append(here)
        elif term.kind == "unary":
            number = _plain(stack.pop(), term.token)
            stack.append(Value(-number if term.text == "negative" else ~number))
        else:
            right, left = stack.pop(), stack.pop()
            stack.append(_combined(left, right, term.token))
        if abs(stack[-1].number) > LIMIT:
            raise term.token.error("the result has more than 64 bits")
    return stack[0]


def _combined(left: Value, right: Value, token: Token) -> Value:
    if token.text == "+" and None in (left.section, right.section):
        return Value(left.number + right.number, left.section or right.section)
    if token.text == "-" and right.section is None:
        return Value(left.number - right.number, left.section)
    if token.text == "-" and left.section == right.section:
        return Value(left.number - right.number)
    a, b = _plain(left, token), _plain(right, token)
    if token.text in ("/", "%") and b == 0:
        raise token.error("division by zero")
    if token.text in ("<<", ">>") and not 0 <= b < 64:
        raise token.error(f"a shift by {b}: the amount must be 0 to 63")
    return Value(_OPERATORS[token.text](a, b))


def _quotient(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


_OPERATORS: Mapping[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": _quotient,
    "%": lambda a, b: a - b * _quotient(a, b), "<<": lambda a, b: a << b, ">>": lambda a, b: a >> b,
    "&": lambda a, b: a & b, "|": lambda a, b: a | b, "^": lambda a, b: a ^ b,
}


def _plain(value: Value, token: Token) -> int:
    if value.section is not None:
        raise token.error(f"an address of {value.section} has no number yet at {token.text!r}: only sums and differences "
                          "can be known here")
    return value.number
