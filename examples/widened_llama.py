"""Make a Llama that adds: wider, with six layers in front, and still a stock model.

    python examples/widened_llama.py                       with a small random base, made here
    python examples/widened_llama.py --base FOLDER         with a pretrained one

It needs `pip install 'punchcard[hf]'`.
"""

from __future__ import annotations

import argparse
from typing import Any

import torch

import punchcard
from punchcard.language_models.fusion.composition import load_base

PROMPTS = ("3+4=", "99999999+1=", "What is 12345678+87654321=", "5+7=1", "The answer to 5*5+7=")


def small_base() -> tuple[Any, Any]:
    """A Llama with random weights, and a tokenizer that has a token for each character."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    characters = [chr(code) for code in range(32, 127)] + ["\n", *"ïçé×€"]
    made = Tokenizer(models.WordLevel({character: i for i, character in enumerate(characters)}))
    made.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
    made.decoder = decoders.Fuse()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=made, eos_token="</s>", pad_token="</s>")
    torch.manual_seed(0)
    config = LlamaConfig(vocab_size=len(tokenizer), hidden_size=64, num_hidden_layers=2, num_attention_heads=2,
                         num_key_value_heads=2, intermediate_size=128, max_position_embeddings=512,
                         eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id, bos_token_id=None)
    return LlamaForCausalLM(config).eval(), tokenizer


@torch.no_grad()
def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--base")
    options = parser.parse_args()
    model, tokenizer = load_base(options.base) if options.base else small_base()
    widened = punchcard.widen(model, tokenizer)
    print(f"{type(widened).__name__}: {model.config.num_hidden_layers} layers of width {model.config.hidden_size} became "
          f"{widened.config.num_hidden_layers} of width {widened.config.hidden_size}")
    for prompt in PROMPTS:
        given = tokenizer(prompt, return_tensors="pt", return_token_type_ids=False)
        size = given["input_ids"].shape[1]
        texts = [tokenizer.decode(each.generate(**given, max_new_tokens=10, do_sample=False)[0, size:],
                                  skip_special_tokens=True) for each in (model, widened)]
        print(f"{prompt!r:32} base {texts[0]!r:32} widened {texts[1]!r}")
    apart = (model(**given).logits - widened(**given).logits).abs().max()
    print(f"largest difference of a logit on {prompt!r}: {apart:.1e}")


if __name__ == "__main__":
    main()
