"""A small tokenizer, small decoders with random weights, and what fused ones say: for the tests of fused models."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import torch

import punchcard
from punchcard.language_models.fusion.fused_model import CardStream, FusedForCausalLM, Opinion
from punchcard.language_models.tokens import byte_characters

MERGED = ("12", " 4", " Yes", " No", "straw", "berry", " Wed", "nes", "day")
LONG = "a token that has more than sixteen bytes"
TEMPLATE = ("{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
            "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")


def byte_tokenizer(words: Sequence[str], begin: str, end: str, **options: Any) -> Any:
    """A byte-level tokenizer without merges: every byte, these words, and two special tokens."""
    import transformers
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    made = Tokenizer(models.BPE(vocab={character: i for i, character in enumerate(byte_characters())}, merges=[]))
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    made.add_tokens([AddedToken(word, normalized=False) for word in words])
    found = transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, bos_token=begin, eos_token=end, pad_token=end, **options)
    found.padding_side = "left"
    return found


@cache
def tokenizer() -> Any:
    """A few words among them, and one token that is too long."""
    return byte_tokenizer((*MERGED, LONG), "<|im_start|>", "<|im_end|>", chat_template=TEMPLATE)


def base(kind: str = "llama") -> Any:
    """A small decoder with random weights."""
    import transformers

    torch.manual_seed(7)
    tokens = len(tokenizer())
    ends = {"bos_token_id": tokens - 2, "eos_token_id": tokens - 1, "pad_token_id": tokens - 1}
    sizes = {"vocab_size": tokens + 3, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, **ends}
    classes = {"llama": "Llama", "gpt2": "GPT2", "qwen2": "Qwen2", "phi": "Phi"}
    name = classes[kind]
    if kind == "gpt2":
        sizes = {"vocab_size": tokens + 3, "n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 512, **ends}
    else:
        sizes["intermediate_size"] = 64
        if kind != "phi":
            sizes["num_key_value_heads"] = 2
    return getattr(transformers, f"{name}{'LMHeadModel' if kind == 'gpt2' else 'ForCausalLM'}")(
        getattr(transformers, f"{name}Config")(**sizes)).eval()


@cache
def fused(*skills: str) -> FusedForCausalLM:
    return punchcard.fuse(base(), tokenizer(), list(skills or ("sums",)))


def written(model: Any, text: str, most: int = 12, **options: Any) -> str:
    """What a model writes after a text."""
    given = tokenizer()(text, return_tensors="pt")
    with torch.no_grad():
        tokens = model.generate(**given, max_new_tokens=most, do_sample=False, **options)
    return str(tokenizer().decode(tokens[0, given["input_ids"].shape[1]:]))


def opinion(text: str, *skills: str, stream: CardStream | None = None) -> Opinion:
    """What the programs of a fused model, or of a stream, say of a text's end."""
    stream = stream or fused(*skills).card
    tokens = torch.tensor([tokenizer().encode(text)])
    keys, values = stream.offered(tokens, 0, None)
    return stream.opinions(keys, values, torch.tensor([tokens.shape[1] - 1]))[0]


def said(text: str, *skills: str) -> str | None:
    """The text that comes next, "" where digits or letters are forbidden, None without an opinion."""
    heard = opinion(text, *skills)
    return text_of(heard) if heard.kind == 1 else "" if heard.kind else None


def text_of(heard: Opinion) -> str:
    """The bytes that a program says come next."""
    bits = (heard.said.reshape(-1, 8) > 0).long()
    return bytes((bits << torch.arange(8)).sum(1).tolist()).rstrip(b"\0").decode(errors="replace")
