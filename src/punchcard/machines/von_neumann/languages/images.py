"""Memory images as text: decimal words, loaded from address 0 on.

    # prints H
    6 -1 3
    0 0 -1
    72

Words are separated by blanks, commas or line ends; `#` begins a comment. How many there are is free: an image need not end
with a whole instruction.
"""

from __future__ import annotations

import re
from array import array

from punchcard.errors import ProgramError, SourceError, shortened
from punchcard.machines.source import MAX_DIGITS, Token, numbered_lines, where
from punchcard.machines.von_neumann.isa import MAX_MEMORY, STANDARD, Dialect, Image, find_dialect, misfit

WORDS_ON_A_LINE = 3  # an instruction

_PIECE = re.compile(r"#.*|,|[^\s,#]+")
_WORD = re.compile(r"[+-]?[0-9]+")
_SHORT = re.compile(r"[+-]?[0-9]{1,18}")
_FORM = "an image is decimal words separated by blanks or commas, and # begins a comment"


def parse(text: str, source: str = "", *, word_bits: int | None = None, memory: int | None = None,
          dialect: str | Dialect = STANDARD) -> Image:
    """The image in a text. Where the machine's sizes are given, what does not fit them is refused at its place."""
    dialect = find_dialect(dialect)
    words: list[int] = []
    lines = array("I")
    comma = False
    first_beyond: Token | None = None

    def token(line: int, match: re.Match[str]) -> Token:
        """Made for an error alone: an image has millions of words."""
        return Token("word", match.group(), line, match.start() + 1, source)

    for line, content in numbered_lines(text):
        for match in _PIECE.finditer(content):
            piece = match.group()
            if piece[0] == "#":
                continue
            if piece == ",":
                if comma or not words:
                    raise token(line, match).error(f"there is no word before this ',': {_FORM}")
                comma = True
                continue
            comma = False
            word = int(piece) if _SHORT.fullmatch(piece) else _word(token(line, match))
            if word_bits is not None:
                check_word(word, token(line, match), word_bits, dialect)
            if len(words) == memory:
                first_beyond = token(line, match)
            if len(words) == MAX_MEMORY:
                raise _too_long(first_beyond or token(line, match), MAX_MEMORY if memory is None else memory,
                                f"a memory has at most {MAX_MEMORY} cells")
            lines.append(line)
            words.append(word)
    if first_beyond is not None and memory is not None:
        raise _too_long(first_beyond, memory, dialect.larger(len(words), word_bits or len(words).bit_length()))
    if not words:
        raise ProgramError(f"{where(source)}the image is empty: {_FORM}")
    return Image(tuple(words), source, lines=lines)


def _too_long(token: Token, memory: int, advice: str) -> SourceError:
    return token.error(f"word {memory} ({token.text}) is beyond the memory, which has {memory} cells: {advice}")


def write(image: Image) -> str:
    """The image as text, an instruction a line; `parse` gives the same words."""
    starts = range(0, len(image.words), WORDS_ON_A_LINE)
    return "".join(" ".join(map(str, image.words[i : i + WORDS_ON_A_LINE])) + "\n" for i in starts)


def check_word(word: int, token: Token, word_bits: int | None, dialect: Dialect = STANDARD, source: str = "") -> None:
    """Refuse a word that is neither a signed nor an unsigned number of so many bits."""
    if word_bits is not None and (why := misfit(word, word_bits, dialect)):
        raise token.error(f"{word} {why}", source)


def _word(token: Token) -> int:
    if not _WORD.fullmatch(token.text):
        raise token.error(f"{shortened(token.text)} is not a decimal word: {_FORM}; assembly has the extension .asq")
    if len(token.text) > MAX_DIGITS:
        raise token.error(f"{shortened(token.text)} has {len(token.text)} digits: the most is {MAX_DIGITS}")
    return int(token.text)
