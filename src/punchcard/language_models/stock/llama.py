"""The form of Llama: rotary positions, RMSNorm, a gated feed-forward layer with SiLU, no biases.

A ReLU of an integer z is silu(s z) (1 / s), for a power of two s that is large enough: silu(x) = x / (1 + exp(-x)) is x
where exp(-x) is below the last bit of 1, and 0 where exp(-x) is infinite. The second factor is the row `one`, which is 1.
RMSNorm of ±1 entries is exactly the identity: their mean square is 1, and 1 / sqrt(1 + 0) is 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from punchcard.errors import WeightsError
from punchcard.language_models.stock.positions import RotaryPositions
from punchcard.language_models.stock.weights import (
    StockLayer,
    StockWeights,
    as_pairs,
    margin_of,
    padded,
    reading,
    unread,
    unwritten,
)
from punchcard.transformer.expression import Array

NAME = "llama"
HEAD = 128
ONE_ROW = 0
"""The row `one` is the first."""


def positions(count: int, most_back: int) -> RotaryPositions:
    """How positions are found."""
    return RotaryPositions(count, most_back, HEAD)


def sharpness(dtype: str) -> float:
    """The factor s: exp(s) is infinite, and exp(-s) is 0."""
    return margin_of(dtype)


def config(weights: StockWeights) -> dict[str, Any]:
    """What `config.json` has."""
    turning = positions(weights.positions, 0)
    heads = len(weights.layers[0].query)
    return {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": len(weights.embedding),
        "hidden_size": 2 * weights.bits, "intermediate_size": max(len(layer.w1) for layer in weights.layers),
        "num_hidden_layers": len(weights.layers), "num_attention_heads": heads, "num_key_value_heads": heads,
        "head_dim": HEAD, "hidden_act": "silu", "max_position_embeddings": weights.positions, "rms_norm_eps": 0.0,
        "rope_parameters": {"rope_type": "default", "rope_theta": turning.theta}, "attention_bias": False, "mlp_bias": False,
        "tie_word_embeddings": False, "bos_token_id": None, "eos_token_id": weights.end, "pad_token_id": weights.end,
        "dtype": weights.dtype,
    }


def tensors(weights: StockWeights) -> dict[str, Array]:
    """The parameters by transformers' names."""
    width, sharp = 2 * weights.bits, sharpness(weights.dtype)
    found = {"model.embed_tokens.weight": as_pairs(weights.embedding), "lm_head.weight": reading(weights.readout),
             "model.norm.weight": np.ones(width)}
    inner = padded([layer.w1 for layer in weights.layers], 0)
    outer = padded([layer.w2 for layer in weights.layers], 1)
    up = np.zeros((len(inner[0]), weights.bits))
    up[:, ONE_ROW] = 1 / sharp
    for i, layer in enumerate(weights.layers):
        at = f"model.layers.{i}."
        for name, part in (("q", layer.query), ("k", layer.key), ("v", layer.value)):
            found[f"{at}self_attn.{name}_proj.weight"] = np.concatenate(reading(part))
        found |= {
            at + "self_attn.o_proj.weight": np.concatenate(as_pairs(np.swapaxes(layer.output, 1, 2))).T,
            at + "mlp.gate_proj.weight": sharp * reading(inner[i]), at + "mlp.up_proj.weight": reading(up),
            at + "mlp.down_proj.weight": as_pairs(outer[i].T).T,
            at + "input_layernorm.weight": np.ones(width), at + "post_attention_layernorm.weight": np.ones(width),
        }
    return found


def weights(tensors: Mapping[str, Array], config: Mapping[str, Any]) -> StockWeights:
    """The weights over bits, from a checkpoint; one that is not of this form is refused."""
    count = int(config["max_position_embeddings"])
    rope = config.get("rope_parameters") or {}
    for name, found, wanted in (("rope_theta", rope.get("rope_theta"), positions(count, 0).theta),
                                ("rope_type", rope.get("rope_type"), "default"), ("head_dim", config.get("head_dim"), HEAD),
                                ("hidden_act", config.get("hidden_act"), "silu"),
                                ("rms_norm_eps", config.get("rms_norm_eps"), 0.0)):
        if found != wanted:
            raise WeightsError(f"config.json has {name} = {found!r}: a stock checkpoint has {wanted!r}")
    sharp, layers, take = sharpness(str(config["dtype"])), list[StockLayer](), tensors.__getitem__
    for i in range(config["num_hidden_layers"]):
        at = f"model.layers.{i}."
        for norm in ("input_layernorm", "post_attention_layernorm"):
            _check_norm(take(f"{at}{norm}.weight"), at + norm)
        query, key, value = (unread(take(f"{at}self_attn.{part}_proj.weight"), f"{at}{part}_proj").reshape(
            -1, HEAD, take(f"{at}self_attn.{part}_proj.weight").shape[1] // 2) for part in "qkv")
        output = unwritten(take(at + "self_attn.o_proj.weight").T, at + "o_proj")
        up = unread(take(at + "mlp.up_proj.weight"), at + "up_proj")
        if (up[:, ONE_ROW] != 1 / sharp).any() or np.delete(up, ONE_ROW, axis=1).any():
            raise WeightsError(f"{at}mlp.up_proj is not the constant 1 / {sharp:g}: the layer is not a ReLU")
        layers.append(StockLayer(
            query, key, value, np.swapaxes(output.reshape(-1, HEAD, output.shape[1]), 1, 2),
            unread(take(at + "mlp.gate_proj.weight"), at + "gate_proj") / sharp,
            unwritten(take(at + "mlp.down_proj.weight").T, at + "down_proj").T))
    _check_norm(take("model.norm.weight"), "model.norm")
    embedding = unwritten(take("model.embed_tokens.weight"), "model.embed_tokens")
    return StockWeights(str(config["dtype"]), embedding, None, count, tuple(layers),
                        unread(take("lm_head.weight"), "lm_head"), int(config["eos_token_id"]))


def _check_norm(weight: Array, name: str) -> None:
    if (weight != 1).any():
        raise WeightsError(f"{name} has a weight other than 1: it is not the identity")
