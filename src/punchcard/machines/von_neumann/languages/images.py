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

from punchcard.errors import ProgramError
from punchcard.machines.source import MAX_DIGITS, Token
from punchcard.machines.von_neumann.isa import Image

EXTENSIONS = (".dec", ".sq", ".slq")
WORDS_ON_A_LINE = 3  # an instruction

_PIECE = re.compile(r"#.*|,|[^\s,#]+")
_WORD = re.compile(r"[+-]?[0-9]+")
_FORM = "an image is decimal words separated by blanks or commas, and # begins a comment"


def parse(text: str, source: str = "", *, word_bits: int | None = None, memory: int | None = None) -> Image:
    """The image in a text. Where the machine's sizes are given, what does not fit them is refused at its place."""
    words: list[int] = []
    comma: Token | None = None
    for number, content in enumerate(re.split(r"\r\n|\n|\r", text), start=1):
        for match in _PIECE.finditer(content):
            token = Token("word", match.group(), number, match.start() + 1)
            if token.text.startswith("#"):
                continue
            if token.text == ",":
                if comma is not None or not words:
                    raise token.error(f"no word stands before this ',': {_FORM}", source)
                comma = token
                continue
            comma = None
            word = _word(token, source)
            check_word(word, token, word_bits, source)
            if memory is not None and len(words) >= memory:
                raise token.error(f"word {len(words)} ({token.text}) is beyond the memory, which has {memory} cells: "
                                  "use a larger memory", source)
            words.append(word)
    if not words:
        where = f"{source}: " if source else ""
        raise ProgramError(f"{where}the image is empty: {_FORM}")
    return Image(tuple(words), source)


def write(image: Image) -> str:
    """The image as text, an instruction a line; `parse` gives the same words."""
    starts = range(0, len(image.words), WORDS_ON_A_LINE)
    return "".join(" ".join(map(str, image.words[i : i + WORDS_ON_A_LINE])) + "\n" for i in starts)


def check_word(word: int, token: Token, word_bits: int | None, source: str) -> None:
    """Refuse a word that is neither a signed nor an unsigned number of so many bits."""
    if word_bits is not None and not -(1 << (word_bits - 1)) <= word < 1 << word_bits:
        raise token.error(f"{word} does not fit a word of {word_bits} bits: the range is {-(1 << (word_bits - 1))} to "
                          f"{(1 << word_bits) - 1}", source)


def _word(token: Token, source: str) -> int:
    if not _WORD.fullmatch(token.text):
        raise token.error(f"{_shown(token)!r} is not a decimal word: {_FORM}; assembly has the extension .asq", source)
    if len(token.text) > MAX_DIGITS:
        raise token.error(f"{_shown(token)!r} has {len(token.text)} digits: the most is {MAX_DIGITS}", source)
    return int(token.text)


def _shown(token: Token) -> str:
    return token.text if len(token.text) <= MAX_DIGITS else token.text[:MAX_DIGITS] + "..."
