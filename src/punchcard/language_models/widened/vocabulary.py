"""Which tokens of a base make up a sum, and after which tokens a sum may begin.

A sum is `a+b=`, and each of its characters must be one token. It may begin where the text begins, after a token that ends
in a newline, after a special token, or after a blank that follows a word or the end of a clause: `What is 12+30=`. So
`x12+30=`, `5*12+30=` and `1.5+2=` are left to the base.
"""

from __future__ import annotations

import string
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from punchcard.errors import FusionError
from punchcard.language_models.tokens import Tokenizer, special_tokens, text_tokens

CHARACTERS = "0123456789+="
SIGNS = frozenset("+=")
SAMPLES = ("100+200=300", "1234567890", "2026+1999=4025", "99999999+10000000=109999999", "000+0=0", "3141+5926=9067")
"""Some sums, for tokenizers that have tokens for longer numbers but none for two digits."""
CLAUSE_ENDS = (string.ascii_letters + ",:;?!.").encode()
Kind = NDArray[np.bool_]


@dataclass(frozen=True)
class SumVocabulary:
    """Tokens by their part in a sum.

    digits, plus, equals   the token of each character
    end                    the token that ends an answer
    opens                  for each token, whether a sum may begin right after it
    blank, leads           whether it is white space; whether a blank and a sum may follow it
    """

    digits: tuple[int, ...]
    plus: int
    equals: int
    end: int
    opens: Kind
    blank: Kind
    leads: Kind


def sum_vocabulary(tokenizer: Tokenizer, size: int, end: int) -> SumVocabulary:
    """The vocabulary of sums, for a model with `size` tokens. A tokenizer that joins characters of a sum is refused."""
    special, texts = special_tokens(tokenizer), text_tokens(tokenizer, size)
    single = _single_tokens(tokenizer, texts)
    found = {name: np.zeros(size, dtype=bool) for name in ("opens", "blank", "leads")}
    for token, text in enumerate(texts):
        if text is None:
            found["opens"][token] = found["leads"][token] = token in special
            continue
        found["opens"][token] = text.endswith(b"\n")
        found["blank"][token] = bool(text) and not text.strip() and not found["opens"][token]
        found["leads"][token] = not text.strip() or text[-1] in CLAUSE_ENDS
    return SumVocabulary(tuple(single[:10]), single[10], single[11], end, **found)


def _single_tokens(tokenizer: Tokenizer, texts: list[bytes | None]) -> list[int]:
    """The token of each character, which must be the same beside every other character."""
    found: dict[str, int] = {}
    pairs = ["".join(each) for each in product(CHARACTERS, repeat=2) if not SIGNS.issuperset(each)]
    for text in (*pairs, *SAMPLES):
        tokens = [token for token in tokenizer.encode(text, add_special_tokens=False) if texts[token] not in (b"", b" ")]
        spelt = [texts[token] for token in tokens]
        if spelt != [character.encode() for character in text]:
            raise FusionError(f"{type(tokenizer).__name__} makes {tokenizer.convert_ids_to_tokens(tokens)!r} of {text!r}: a "
                              f"stock model adds digit by digit; use a base whose tokenizer has one token for each digit")
        for character, token in zip(text, tokens, strict=True):
            if found.setdefault(character, token) != token:
                raise FusionError(f"{type(tokenizer).__name__} has two tokens for {character!r}, {found[character]} and "
                                  f"{token}: use a base whose tokenizer has one token for each digit")
    return [found[character] for character in CHARACTERS]
