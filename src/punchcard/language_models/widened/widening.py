"""`widen`: a pretrained Llama becomes a wider one that adds numbers exactly, and is a stock Llama still."""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from punchcard.arguments import checked
from punchcard.errors import FusionError
from punchcard.export.targets import require
from punchcard.language_models.fusion.composition import check_base, check_tokenizer
from punchcard.language_models.stock.checkpoint import CONFIG
from punchcard.language_models.widened.bounds import height
from punchcard.language_models.widened.coordinates import MOST_DIGITS
from punchcard.language_models.widened.plan import BaseSizes, planned_front
from punchcard.language_models.widened.vocabulary import sum_vocabulary
from punchcard.language_models.widened.weights import put_base, put_front

if TYPE_CHECKING:
    from transformers import LlamaForCausalLM, PreTrainedModel

    from punchcard.language_models.tokens import Tokenizer

ROPES = ("default", "linear", "llama3", "yarn")
"""Kinds of rotary positions whose frequencies do not change with the length of a text."""
ABOUT = "punchcard"
"""Where the configuration of a widened model says what it was made of; transformers does not read it."""


def is_widened(folder: str | Path) -> bool:
    """Whether a folder has a widened model."""
    try:
        return ABOUT in json.loads((Path(folder) / CONFIG).read_text())
    except (OSError, ValueError):
        return False


@checked
def widen(
    model: PreTrainedModel, tokenizer: Tokenizer, *, digits: int = MOST_DIGITS, end: str | None = None,
) -> LlamaForCausalLM:
    """Put layers that add numbers in front of a pretrained Llama. Nothing is trained, and no code is added.

        widened = punchcard.widen(model, tokenizer)
        widened.generate(**tokenizer("12345678+99999999=", return_tensors="pt"))

    model       a `LlamaForCausalLM`
    tokenizer   its tokenizer, with one token for each digit
    digits      digits of a number at most, 1 to 8
    end         the text of the token that ends an answer; default: the model's end of text

    Returns a `LlamaForCausalLM` in float32: `save_pretrained` writes a folder that opens without Punchcard.
    """
    require("hf", "a language model")
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    check_base(model)
    _check_llama(model)
    config = model.config
    check_tokenizer(tokenizer, config.vocab_size)
    if not 1 <= digits <= MOST_DIGITS:
        raise FusionError(f"digits={digits}: numbers have 1 to {MOST_DIGITS} digits")
    words = sum_vocabulary(tokenizer, config.vocab_size, _end_token(model, tokenizer, end))
    sizes = BaseSizes.of(config)
    squares = model.model.embed_tokens.weight.detach().double().pow(2).sum(1)
    front = planned_front(sizes, model.model.rotary_emb, digits, float(squares.max()), words, height(model))
    kept = {name: value for name, value in config.to_dict().items() if name not in ("quantization_config", "dtype")}
    widened = LlamaForCausalLM(LlamaConfig(**(kept | front.sizes(sizes) | {
        "architectures": ["LlamaForCausalLM"], "tie_word_embeddings": False, "dtype": "float32",
        ABOUT: {"digits": digits, "end": words.end, "base": asdict(sizes)}}))).to(torch.float32)
    with torch.no_grad():
        for parameter in widened.parameters():
            parameter.zero_()
        put_base(widened.state_dict(), model, front)
        put_front(widened.state_dict(), front, squares)
    widened.generation_config = deepcopy(model.generation_config)
    widened.eval()
    return widened


def _check_llama(model: PreTrainedModel) -> None:
    """Refuse a base whose layers are not those of the lemma."""
    kind, config = type(model).__name__, model.config
    if config.model_type != "llama" or kind != "LlamaForCausalLM":
        raise FusionError(f"model is a {kind}: a stock model can be made of a LlamaForCausalLM; `punchcard.fuse(model, "
                          "tokenizer, \"sums\")` takes any decoder")
    if config.hidden_act != "silu":
        raise FusionError(f"the base has hidden_act={config.hidden_act!r}: the front layers need 'silu'")
    if not config.rms_norm_eps > 0:
        raise FusionError(f"the base has rms_norm_eps={config.rms_norm_eps!r}: added coordinates need one above 0 to hide "
                          "under")
    if model.model.rotary_emb.rope_type not in ROPES:
        raise FusionError(f"the base has rotary positions of type {model.model.rotary_emb.rope_type!r}, which change with "
                          f"the length of a text: there are {', '.join(ROPES)}")


def _end_token(model: PreTrainedModel, tokenizer: Tokenizer, end: str | None) -> int:
    """The token that ends an answer."""
    if end is None:
        found = model.generation_config.eos_token_id
        found = found[0] if isinstance(found, list) else found
        found = tokenizer.eos_token_id if found is None else found
        if found is None:
            raise FusionError("the base has no token that ends a text: give end='\\n', or another text of one token")
        return int(found)
    tokens = tokenizer.encode(end, add_special_tokens=False)
    if len(tokens) != 1:
        raise FusionError(f"end={end!r} has {len(tokens)} tokens: give a text of one token, such as '\\n'")
    return int(tokens[0])
