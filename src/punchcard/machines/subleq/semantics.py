"""What `subleq` does, as expressions of words: mem[b] = mem[b] - mem[a]; if mem[b] <= 0 goto c. For one memory or two."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from punchcard.words.renderer import Renderer
from punchcard.words.word import Word, variable


def difference_of(a: Word, b: Word) -> Word:
    """What the cell b becomes."""
    return b - a


def jumps_at(difference: Word) -> Word:
    """Whether the jump is taken."""
    return difference.less(1, signed=True)


Language: TypeAlias = Callable[[Callable[[Word], str]], Renderer[str]]


def text_of(language: Language, bits: int, a: str, b: str, word: str) -> dict[str, str]:
    """Both as text: of words with so many bits, which are these expressions there. `word` is the one that b has become."""
    text, old, new = language(lambda leaf: str(leaf.data)), (variable(a, bits), variable(b, bits)), variable(word, bits)
    return {"difference": text(difference_of(*old)), "jumps": text(jumps_at(new))}
