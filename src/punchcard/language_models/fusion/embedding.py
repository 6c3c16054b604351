"""E, the embedding of the card's stream, which is also its unembedding: a token is the bits of its bytes.

A row has ±1 for each bit of the token's bytes, and 0 behind its last byte. So E o = 8 L for a text o exactly at the tokens
of L bytes with which o begins: relu(E o - (8 L - 1)) is 1 there, and 0 at all others, which miss 2 or more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from punchcard.language_models.tokens import Tokenizer, special_tokens, text_tokens

if TYPE_CHECKING:
    from torch import Tensor

BYTES = 16
SPECIAL, UNKNOWN = b"\1", b"\2"
"""What a special token is put between; a token that cannot be read. `skill.h` has the same."""
NEVER = 1e6
"""A threshold that no sum of bits reaches."""
HEIGHT, STEP = 1e4, 256.0
"""What an opinion adds to a logit, and how much more for each byte: of the tokens that begin a text the longest wins."""


class Embedding(NamedTuple):
    """E, and of each token the threshold of its relu and what is added at it."""

    tokens: Tensor
    threshold: Tensor
    reward: Tensor


def card_bytes(tokenizer: Tokenizer, size: int) -> list[bytes]:
    """What each token is on the card."""
    special = special_tokens(tokenizer)
    return [_marked(special[number]) if number in special else _readable(text)
            for number, text in enumerate(text_tokens(tokenizer, size))]


def _marked(name: str) -> bytes:
    return SPECIAL + name.encode()[: BYTES - 2] + SPECIAL


def _readable(text: bytes | None) -> bytes:
    """A text, where it fits and has none of the bytes that mean something else."""
    return UNKNOWN if not text or len(text) > BYTES or min(text) <= UNKNOWN[0] else text


def embedding(shown: Sequence[bytes]) -> Embedding:
    """The embedding of tokens with these bytes. Of several with the same bytes only the last is ever an answer."""
    import torch

    raw = np.frombuffer(b"".join(each.ljust(BYTES, b"\0") for each in shown), np.uint8).reshape(len(shown), BYTES)
    lengths = np.array([len(each) for each in shown])
    bits = np.unpackbits(raw, axis=1, bitorder="little").astype(np.float32) * 2 - 1
    bits[np.arange(8 * BYTES) >= 8 * lengths[:, None]] = 0
    last = {each: number for number, each in enumerate(shown)}
    sayable = np.array([last[each] == number and each != UNKNOWN for number, each in enumerate(shown)])
    threshold = np.where(sayable, 8 * lengths - 1, NEVER).astype(np.float32)
    reward = np.where(sayable, HEIGHT + STEP * lengths, 0).astype(np.float32)
    return Embedding(*(torch.from_numpy(each) for each in (bits, threshold, reward)))
