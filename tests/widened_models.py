"""A tokenizer with a token for each byte, small Llamas with random weights, and what widened ones say: for their tests."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import torch

import punchcard
from tests.fused_models import byte_tokenizer

BATCH = 500


@cache
def tokenizer() -> Any:
    return byte_tokenizer((), "<s>", "</s>")


def base(**sizes: Any) -> Any:
    """A small Llama with random weights; its logits are far apart, so that a small change would be seen."""
    import transformers

    torch.manual_seed(7)
    tokens = len(tokenizer())
    config = transformers.LlamaConfig(**{
        "vocab_size": tokens + 3, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
        "num_key_value_heads": 2, "head_dim": 32, "intermediate_size": 64, "max_position_embeddings": 512,
        "bos_token_id": tokens - 2, "eos_token_id": tokens - 1, "pad_token_id": tokens - 1, "initializer_range": 0.4,
        **sizes})
    return transformers.LlamaForCausalLM(config).eval()


@cache
def widened(digits: int = 8) -> Any:
    return punchcard.widen(base(), tokenizer(), digits=digits)


def texts(numbers: Iterable[tuple[str, str]], before: str = "") -> list[str]:
    """Sums with their answers."""
    return [f"{before}{a}+{b}={int(a) + int(b)}" for a, b in numbers]


@torch.no_grad()
def wrong_answers(model: Any, given: list[str]) -> list[str]:
    """The texts whose digits, or the end after them, a model would not write one by one."""
    found = []
    for first in range(0, len(given), BATCH):
        some = given[first : first + BATCH]
        tokens = tokenizer()(some, return_tensors="pt", padding=True)
        for text, row in zip(some, model(**tokens).logits.argmax(-1).tolist(), strict=True):
            answer = [*tokenizer().encode(text.rpartition("=")[2]), tokenizer().eos_token_id]
            if row[-len(answer):] != answer:
                found.append(text)
    return found


@torch.no_grad()
def logits(model: Any, text: str) -> torch.Tensor:
    found: torch.Tensor = model(**tokenizer()(text, return_tensors="pt")).logits[0]
    return found


@torch.no_grad()
def continued(model: Any, given: list[str], **options: Any) -> list[str]:
    """What a model writes after texts, in one batch."""
    tokens = tokenizer()(given, return_tensors="pt", padding=True)
    found = model.generate(**tokens, **{"max_new_tokens": 11, "do_sample": False, **options})
    return list(tokenizer().batch_decode(found[:, tokens["input_ids"].shape[1]:], skip_special_tokens=True))
