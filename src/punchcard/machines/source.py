"""Source text as lines of tokens that know their places, so that every error can name one.

Tokens are made as they are taken, so that a text is refused where it first goes wrong, however long it is. Two limits keep
work and messages small for any text: how many tokens there are, and how long a name is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from punchcard.errors import LONGEST_NAME, ProgramError, SourceError, did_you_mean, shortened
from punchcard.files import read_limited

_TOKEN = re.compile(r"""
    (?P<space>\s+)
  | (?P<comment>[;\#].*)
  | (?P<character>'(?:\\.|[^\\'])')
  | (?P<directive>\.[A-Za-z_]+)
  | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<number>[0-9][0-9A-Za-z_]*)
  | (?P<mark>[,:+\-])
""", re.VERBOSE)
_STRETCH = re.compile(r"[^\n]+")
MAX_DIGITS = 40  # no word is that long
MAX_TOKENS = 1 << 21
"""The most words, numbers and marks of a text; a line counts as one more. Numbers that are taken as a run do not count."""
_SKIPPED = ("space", "comment")
_OF_ANY_LENGTH = ("string", "unclosed", "number")  # whoever takes one of these cuts it in messages
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "\\": "\\", "'": "'", '"': '"'}


class Token(NamedTuple):
    """A piece of a line: its kind, its text, where it begins (both counted from 1), and the name of the whole text."""

    kind: str
    text: str
    line: int
    column: int
    source: str = ""

    @property
    def end(self) -> int:
        """The column after it."""
        return self.column + len(self.text)

    def error(self, message: str, source: str = "") -> SourceError:
        """An error at its place, in its own text or in another."""
        return SourceError(message, line=self.line, column=self.column, text=self.text, source=source or self.source)


class Line:
    """The tokens of one line, taken from left to right; `ahead` is the next one, an empty one at the end of the line.

    A line may hold the line ends of a string.
    """

    def __init__(self, content: str, number: int, scanner: _Scanner) -> None:
        self._content, self._number, self._scanner = content, number, scanner
        last = content.rstrip()
        self._end = Token("end", "", number + last.count("\n"), len(last) - last.rfind("\n"), scanner.source)
        self._tokens = scanner.tokens(content, number)
        self._second: Token | None = None
        self.ahead = next(self._tokens, self._end)
        self.source = scanner.source

    def at(self, *texts: str) -> bool:
        return self.ahead.text in texts

    def second_is(self, text: str) -> bool:
        if self._second is None:
            self._second = next(self._tokens, self._end)
        return self._second.text == text

    def take(self) -> Token:
        token = self.ahead
        self.ahead = next(self._tokens, self._end) if self._second is None else self._second
        self._second = None
        return token

    def take_mark(self, mark: str, rule: str) -> None:
        """Take a mark that must be next: the rule says so."""
        if not self.take_if(mark):
            raise self.wrong(rule)

    def take_if(self, mark: str) -> bool:
        """Take a mark if it is next; whether it was."""
        found = self.at(mark)
        if found:
            self.take()
        return found

    def take_run(self, pattern: re.Pattern[str]) -> str:
        """What a pattern finds from the next token on, all at once; it ends where a token does."""
        start = self.ahead.column - 1  # no string is before it
        end = match.end() if (match := pattern.match(self._content, start)) else start
        if end > start:
            self._tokens = self._scanner.tokens(self._content, self._number, end)
            self.ahead, self._second = next(self._tokens, self._end), None
        return self._content[start:end]

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
            return sign * ord(unescape(token)), first
        if token.kind != "number":
            raise self.wrong(f"{what} must be a decimal (12), hexadecimal (0x0c) or character ('a') constant")
        self.take()
        if len(token.text) > MAX_DIGITS:
            raise token.error(f"{shortened(token.text)} has {len(token.text)} digits: the most is {MAX_DIGITS}")
        try:
            if "_" in token.text:  # a number to Python only
                raise ValueError
            return sign * int(token.text, 16 if token.text[:2].lower() == "0x" else 10), first
        except ValueError:
            raise token.error(f"{token.text!r} is not a number: write decimal (12) or hexadecimal (0x0c)") from None

    def finish(self, what: str) -> None:
        """Refuse anything that is left on the line."""
        if self.ahead.kind != "end":
            raise self.ahead.error(f"unexpected {shortened(self.ahead.text)} after {what}")

    def wrong(self, rule: str) -> SourceError:
        found = "the line ends here" if self.ahead.kind == "end" else f"found {shortened(self.ahead.text)}"
        return self.ahead.error(f"{found}: {rule}")


def lines(
    text: str, source: str = "", pattern: re.Pattern[str] = _TOKEN, stretch: re.Pattern[str] = _STRETCH
) -> Iterator[Line]:
    """The lines that hold more than blanks and comments; the groups of `pattern` are the kinds of tokens.

    `stretch` finds how far a line goes, where that is not the next line end.
    """
    scanner = _Scanner(source, pattern)
    for number, content in numbered_lines(text, stretch):
        line = Line(content, number, scanner)
        if line.ahead.kind != "end":
            yield line


def numbered_lines(text: str, stretch: re.Pattern[str] = _STRETCH) -> Iterator[tuple[int, str]]:
    """The lines of a text that are not empty, with their numbers, counted from 1. A line ends with CR, LF or both."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    number, place = 1, 0
    for match in stretch.finditer(text):
        number += text.count("\n", place, match.start())
        place = match.start()
        yield number, match.group()


def unescape(token: Token) -> str:
    """The characters that a token in quotes means."""
    def character(match: re.Match[str]) -> str:
        if match[1] not in _ESCAPES:
            known = ", ".join("\\" + letter for letter in _ESCAPES)
            raise token.error(f"unknown escape {match[0]} in {shortened(token.text[1:-1])}: there are {known}")
        return _ESCAPES[match[1]]

    return re.sub(r"\\(.)", character, token.text[1:-1], flags=re.DOTALL)


def where(source: str) -> str:
    """The beginning of a message about a whole text: its name, if it has one."""
    return f"{source}: " if source else ""


def unknown(kind: str, token: Token, known: Iterable[str], rule: str, source: str = "") -> SourceError:
    """`unknown label 'lop' (did you mean 'loop'?): ...`."""
    return token.error(f"unknown {kind} {shortened(token.text)}{did_you_mean(token.text, known)}: {rule}", source)


def parse_integer(text: str) -> int:
    """An integer by itself: decimal, hexadecimal or a character, as in a program."""
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
    data = read_limited(path, "program", error=ProgramError)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ProgramError(f"{str(path)!r} is not a text file: byte {error.start} is not UTF-8") from None
    if "\0" in text:
        raise ProgramError(f"{str(path)!r} is not a text file: it holds a null byte")
    return text


class _Scanner:
    """Cuts the lines of one text into tokens, and counts them."""

    def __init__(self, source: str, pattern: re.Pattern[str]) -> None:
        self.source = source
        self._pattern = pattern
        self._count = 0

    def tokens(self, content: str, number: int, place: int = 0) -> Iterator[Token]:
        """The tokens from a place on, before which no line ends."""
        match_at, length = self._pattern.match, len(content)
        start = 0  # of the line; a string may have moved it
        self._checked(Token("", "", number, 1, self.source))
        while place < length:
            match = match_at(content, place)
            if match is None:
                unexpected = Token("", content[place], number, place - start + 1, self.source)
                raise unexpected.error(f"unexpected character {content[place]!r}")
            kind = match.lastgroup or ""
            if kind not in _SKIPPED:
                yield self._checked(Token(kind, match.group(), number, place - start + 1, self.source))
            place = match.end()
            if kind == "string" and "\n" in match.group():
                number, start = number + match.group().count("\n"), content.rfind("\n", 0, place) + 1

    def _checked(self, token: Token) -> Token:
        self._count += 1
        if self._count > MAX_TOKENS:
            raise token.error(f"the text has more than {MAX_TOKENS:,} words, numbers and marks, which is the most")
        if len(token.text) > LONGEST_NAME and token.kind not in _OF_ANY_LENGTH:
            raise token.error(f"{shortened(token.text)} has {len(token.text)} characters: the most is {LONGEST_NAME}")
        return token
