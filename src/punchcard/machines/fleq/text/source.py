"""The tokens of FLEQ text, and the numbers in it. Only `#` begins a comment, since `;` separates rows and branches."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from punchcard.errors import shortened
from punchcard.machines import source as shared
from punchcard.machines.source import Line, Token

# A dot after a name leads to a field, as in `step.a`; elsewhere it begins a directive.
_TOKEN = re.compile(r"""
    (?P<space>\s+)
  | (?P<comment>\#.*)
  | (?P<directive>(?<![A-Za-z0-9_])\.[A-Za-z_]+)
  | (?P<file>file\s*\([^()\#]*\))
  | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<number>\.?[0-9](?:[eE][+-](?=[0-9])|[A-Za-z0-9_.])*+)
  | (?P<mark>[<>]=?|[,:;()\[\]=+\-.])
""", re.VERBOSE)
_DECIMAL = re.compile(r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
# Numbers in a row that are short enough to be finite. Any other is taken as a token, and refused at its place.
_RUN = re.compile(r"(?:[+-]?(?:[0-9]{1,40}(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]{1,2})?(?:\s++|(?=;)|$))*+")
_WHOLE = re.compile(r"[0-9]{1,18}")
_NOT_FINITE = ("nan", "inf", "infinity")

# Words that begin an instruction, so that no variable can have them as its name.
KEYWORDS = ("halt", "if", "goto")
COUNTER_WORDS = ("count", "restart")
"""Words that begin an instruction where neither `=` nor `[` follows; a variable may have them."""


def lines(text: str, source: str = "") -> Iterator[Line]:
    """The lines that hold more than blanks and comments."""
    return shared.lines(text, source, _TOKEN)


def take_number(line: Line, what: str) -> tuple[float, Token]:
    """A decimal number with an optional sign and exponent, finite; and its first token."""
    first = line.ahead
    negative = line.at("-")
    if line.at("+", "-"):
        line.take()
    token = line.ahead
    if token.kind == "name" and token.text.lower() in _NOT_FINITE:
        raise token.error(f"{token.text!r}: {what} must be finite")
    if token.kind != "number":
        raise line.wrong(f"{what} must be a number such as 3, -0.5 or 1e-3")
    line.take()
    if not _DECIMAL.fullmatch(token.text):
        raise token.error(f"{shortened(token.text)} is not a number: {what} is written as 3, -0.5 or 1e-3")
    value = float(token.text)
    if math.isinf(value):
        raise token.error(f"{shortened(token.text)} is beyond the floating-point numbers: {what} must be finite")
    return -value if negative else value, first


def take_numbers(line: Line, what: str) -> list[float]:
    """The numbers up to the end of the line or a `;`, as many at once as can be."""
    found: list[float] = []
    while line.ahead.kind != "end" and not line.at(";"):
        run = line.take_run(_RUN)
        found += map(float, run.split()) if run else [take_number(line, what)[0]]
    return found


def take_integer(line: Line, what: str) -> Token:
    """A number without sign, point and exponent."""
    if line.ahead.kind != "number" or not _WHOLE.fullmatch(line.ahead.text):
        raise line.wrong(f"{what} must be a whole number of at most 18 digits, without a sign")
    return line.take()


def quoted(token: Token) -> str:
    """A token's text without quotes, cut where it is long."""
    return shortened(token.text)[1:-1]
