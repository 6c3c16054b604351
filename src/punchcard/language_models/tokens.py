"""The bytes of tokens: what each row of a vocabulary is in a text.

Three schemes are in use. Byte-level vocabularies write every byte as one printable character. SentencePiece writes a space
as ▁ and a byte as <0x0A>. Others have plain text. Which one it is, a round trip shows: the bytes of the tokens of some
sample texts must be those texts.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Protocol, TypeAlias, overload

from punchcard.errors import FusionError

SAMPLES = ("12 + 30 = 42", "What is 7 times 8?\nAnswer: 56.", "(a-b) / c, x^2; \"q\" 100%", "naïve façade × 3 €")
Scheme: TypeAlias = Callable[[str], bytes]
_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")


class AddedToken(Protocol):
    """A token that was added to a vocabulary."""

    @property
    def content(self) -> str: ...

    @property
    def special(self) -> bool: ...


class Tokenizer(Protocol):
    """What is used of a tokenizer of `transformers`."""

    @property
    def added_tokens_decoder(self) -> Mapping[int, AddedToken]: ...

    @property
    def all_special_ids(self) -> Sequence[int]: ...

    @property
    def chat_template(self) -> str | None: ...

    @property
    def eos_token_id(self) -> int | None: ...

    def __len__(self) -> int: ...

    @overload
    def convert_ids_to_tokens(self, ids: int) -> str | None: ...
    @overload
    def convert_ids_to_tokens(self, ids: Sequence[int]) -> list[str]: ...

    def encode(self, text: str, *, add_special_tokens: bool = True) -> list[int]: ...

    def decode(self, token_ids: Sequence[int]) -> str: ...

    def apply_chat_template(
        self, conversation: Sequence[Mapping[str, str]], *, tokenize: bool, add_generation_prompt: bool
    ) -> str: ...

    def save_pretrained(self, save_directory: str | os.PathLike[str]) -> object: ...


@cache
def byte_characters() -> Mapping[str, int]:
    """The characters of byte-level vocabularies: printable ones of Latin-1 are themselves, others come after U+0100."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + i): byte for i, byte in enumerate(others)}


def _byte_level(piece: str) -> bytes:
    return bytes(byte_characters()[character] for character in piece)


def _sentence_piece(piece: str) -> bytes:
    found = _BYTE.fullmatch(piece)
    return bytes([int(found[1], 16)]) if found else piece.replace("▁", " ").encode()


def _plain(piece: str) -> bytes:
    return piece.encode()


SCHEMES: tuple[Scheme, ...] = (_byte_level, _sentence_piece, _plain)


def special_tokens(tokenizer: Tokenizer) -> dict[int, str]:
    """The special tokens by number, with their names."""
    found = {number: str(token.content) for number, token in tokenizer.added_tokens_decoder.items() if token.special}
    names = tokenizer.convert_ids_to_tokens(tokenizer.all_special_ids)
    return found | dict(zip(tokenizer.all_special_ids, map(str, names), strict=True))


def text_tokens(tokenizer: Tokenizer, size: int) -> list[bytes | None]:
    """The bytes of each of the first `size` tokens; None for special ones, and for rows that no token has.

    Raises a `FusionError` for a vocabulary whose tokens do not spell out the text.
    """
    special, added = special_tokens(tokenizer), tokenizer.added_tokens_decoder
    scheme = _scheme(tokenizer, set(special))
    count = min(size, len(tokenizer))
    numbers = [None if number in special else number for number in range(count)]
    found = [None if number is None else _bytes(scheme, tokenizer, number, added) for number in numbers]
    return found + [None] * (size - count)


def _bytes(scheme: Scheme, tokenizer: Tokenizer, number: int, tokens_added: Mapping[int, AddedToken]) -> bytes | None:
    """A token that was added to a vocabulary is its text; all others are written by the scheme."""
    added = tokens_added.get(number)
    piece = tokenizer.convert_ids_to_tokens(number)
    try:
        return None if piece is None else str(added.content).encode() if added is not None else scheme(piece)
    except (KeyError, UnicodeEncodeError):
        return None


def _encoded(tokenizer: Tokenizer, text: str, special: set[int]) -> list[int]:
    """The tokens of a text, without special ones."""
    try:
        found = tokenizer.encode(text, add_special_tokens=False)
    except Exception as error:  # whatever a tokenizer says of a text that it cannot take
        raise FusionError(f"{type(tokenizer).__name__} does not take the text {text!r}: {error}; use a base that takes any "
                          "text") from None
    return [number for number in found if number not in special]


def _scheme(tokenizer: Tokenizer, special: set[int]) -> Scheme:
    """The scheme in which the tokens of every sample are the sample; a space at its beginning may be added."""
    seen, added = "", tokenizer.added_tokens_decoder
    for scheme in SCHEMES:
        for sample in SAMPLES:
            numbers = _encoded(tokenizer, sample, special)
            spelt = [_bytes(scheme, tokenizer, number, added) for number in numbers]
            if None in spelt or b"".join(filter(None, spelt)) not in (sample.encode(), b" " + sample.encode()):
                seen = seen or f"{sample!r} becomes {tokenizer.convert_ids_to_tokens(numbers)[:8]!r}"
                break
        else:
            return scheme
    raise FusionError(f"the tokens of {type(tokenizer).__name__} have no bytes: {seen}, which do not spell it; use a "
                      "tokenizer that keeps the text as it is (byte-level, or SentencePiece with bytes)")
