"""Source text as lines of tokens that know where they stand, so that every error can say so."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from punchcard.errors import ProgramError, SourceError, did_you_mean
from punchcard.files import read_whole

_TOKEN = re.compile(r"""
    (?P<space>\s+)
  | (?P<comment>[;\#].*)
  | (?P<character>'(?:\\.|[^\\'])')
  | (?P<directive>\.[A-Za-z_]+)
  | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<number>[0-9][0-9A-Za-z_]*)
  | (?P<mark>[,:+\-])
""", re.VERBOSE)
MAX_DIGITS = 40  # no word is that long
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "\\": "\\", "'": "'", '"': '"'}


@dataclass(frozen=True)
class Token:
    """A piece of a line: its kind, its text, and where it begins (both counted from 1)."""

    kind: str
    text: str
    line: int
    column: int

    @property
    def end(self) -> int:
        """The column after it."""
        return self.column + len(self.text)

    def error(self, message: str, source: str = "") -> SourceError:
        return SourceError(message, line=self.line, column=self.column, text=self.text, source=source)


class Line:
    """The tokens of one line, taken from left to right."""

    def __init__(self, tokens: list[Token], end: Token, source: str) -> None:
        self._tokens = tokens
        self._end = end
        self._next = 0
        self.source = source

    @property
    def ahead(self) -> Token:
        """The next token; an empty one at the end of the line."""
        return self._at(self._next)

    def at(self, *texts: str) -> bool:
        return self.ahead.text in texts

    def second_is(self, text: str) -> bool:
        return self._next + 1 < len(self._tokens) and self._tokens[self._next + 1].text == text

    def around(self) -> tuple[Token, Token, Token]:
        """The token before the next one, the next one, and the one after it; empty ones where the line ends."""
        return self._at(self._next - 1), self._at(self._next), self._at(self._next + 1)

    def _at(self, place: int) -> Token:
        return self._tokens[place] if 0 <= place < len(self._tokens) else self._end

    def take(self) -> Token:
        token = self.ahead
        self._next += 1
        return token

    def take_name(self, what: str) -> Token:
        if self.ahead.kind != "name":
            raise self.wrong(f"{what} must be a name")
        return self.take()

    def take_integer(self, what: str) -> tuple[int, Token]:
        """A decimal, hexadecimal or character constant, with an optional sign."""
        first = self.ahead
        sign = -1 if self.at("-") else 1
        if self.at("+", "-"):
            self.take()
        token = self.ahead
        if token.kind == "character":
            self.take()
            return sign * ord(unescape(token, self.source)), first
        if token.kind != "number":
            raise self.wrong(f"{what} must be a decimal (12), hexadecimal (0x0c) or character ('a') constant")
        self.take()
        if len(token.text) > MAX_DIGITS:
            raise token.error(f"{token.text[:MAX_DIGITS]!r}... has {len(token.text)} digits: the most is {MAX_DIGITS}",
                              self.source)
        try:
            return sign * int(token.text, 16 if token.text[:2].lower() == "0x" else 10), first
        except ValueError:
            raise token.error(f"{token.text!r} is not a number: write decimal (12) or hexadecimal (0x0c)",
                              self.source) from None

    def finish(self, what: str) -> None:
        """Refuse anything that is left on the line."""
        if self.ahead.kind != "end":
            raise self.ahead.error(f"unexpected {self.ahead.text!r} after {what}", self.source)

    def wrong(self, rule: str) -> SourceError:
        found = "the line ends here" if self.ahead.kind == "end" else f"found {self.ahead.text!r}"
        return self.ahead.error(f"{found}: {rule}", self.source)


def lines(text: str, source: str = "", pattern: re.Pattern[str] = _TOKEN) -> Iterator[Line]:
    """The lines that hold more than blanks and comments; the groups of `pattern` are the kinds of tokens."""
    for number, content in enumerate(re.split(r"\r\n|\n|\r", text), start=1):
        tokens = list(_tokens(content, number, source, pattern))
        if tokens:
            yield Line(tokens, Token("end", "", number, len(content.rstrip()) + 1), source)


def unescape(token: Token, source: str = "") -> str:
    """The characters that a token in quotes stands for."""
    def character(match: re.Match[str]) -> str:
        if match[1] not in _ESCAPES:
            known = ", ".join("\\" + letter for letter in _ESCAPES)
            raise token.error(f"unknown escape {match[0]} in {token.text}: there are {known}", source)
        return _ESCAPES[match[1]]

    return re.sub(r"\\(.)", character, token.text[1:-1], flags=re.DOTALL)


def unknown(kind: str, token: Token, known: Iterable[str], rule: str, source: str) -> SourceError:
    """`unknown label 'lop' (did you mean 'loop'?): ...`."""
    return token.error(f"unknown {kind} {token.text!r}{did_you_mean(token.text, known)}: {rule}", source)


def parse_integer(text: str) -> int:
    """An integer that stands alone: decimal, hexadecimal or a character, as in a program."""
    bare = re.sub(r"'(?:\\.|[^\\'])'", "", text)
    line = None if ";" in bare or "#" in bare else next(lines(text), None)
    if line is None:
        raise ProgramError("write NAME=VALUE")
    try:
        number, _ = line.take_integer("a value")
        line.finish("the value")
    except SourceError as error:
        raise ProgramError(error.message) from None
    return number


def read_text(path: str | Path) -> str:
    """The text of a file; anything that is not a readable text file is refused with its name."""
    data = read_whole(path, "program", error=ProgramError)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ProgramError(f"{str(path)!r} is not a text file: byte {error.start} is not UTF-8") from None
    if "\0" in text:
        raise ProgramError(f"{str(path)!r} is not a text file: it holds a null byte")
    return text


def _tokens(content: str, number: int, source: str, pattern: re.Pattern[str]) -> Iterator[Token]:
    place = 0
    while place < len(content):
        match = pattern.match(content, place)
        if match is None:
            text = content[place]
            raise SourceError(f"unexpected character {text!r}", line=number, column=place + 1, text=text, source=source)
        kind = match.lastgroup or ""
        if kind not in ("space", "comment"):
            yield Token(kind, match.group(), number, place + 1)
        place = match.end()
