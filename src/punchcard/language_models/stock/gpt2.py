"""The form of GPT-2: learned positions, LayerNorm, ReLU (`activation_function`), and nothing but what transformers has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from punchcard.errors import WeightsError
from punchcard.language_models.stock.positions import LearnedPositions
from punchcard.language_models.stock.weights import StockLayer, StockWeights, as_pairs, padded, reading, unread, unwritten
from punchcard.transformer.expression import Array

NAME = "gpt2"
HEAD = 64


def positions(count: int, most_back: int) -> LearnedPositions:
    """How positions are found."""
    return LearnedPositions(count, most_back, HEAD)


def config(weights: StockWeights) -> dict[str, Any]:
    """What `config.json` has."""
    width = 2 * weights.bits
    return {
        "architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "vocab_size": len(weights.embedding),
        "n_positions": weights.positions, "n_embd": width, "n_layer": len(weights.layers), "n_head": width // HEAD,
        "n_inner": max(len(layer.w1) for layer in weights.layers), "activation_function": "relu", "layer_norm_epsilon": 0.0,
        "attn_pdrop": 0.0, "embd_pdrop": 0.0, "resid_pdrop": 0.0, "tie_word_embeddings": False, "scale_attn_weights": True,
        "bos_token_id": None, "eos_token_id": weights.end, "pad_token_id": weights.end, "dtype": weights.dtype,
    }


def tensors(weights: StockWeights) -> dict[str, Array]:
    """The parameters by transformers' names."""
    assert weights.table is not None
    width = 2 * weights.bits
    heads = width // HEAD
    found = {"transformer.wte.weight": as_pairs(weights.embedding), "transformer.wpe.weight": as_pairs(weights.table),
             "lm_head.weight": reading(weights.readout)}
    inner = padded([layer.w1 for layer in weights.layers], 0)
    outer = padded([layer.w2 for layer in weights.layers], 1)
    for i, layer in enumerate(weights.layers):
        at = f"transformer.h.{i}."
        projections = [_joined(reading(part), heads) for part in (layer.query, layer.key, layer.value)]
        back = _joined(as_pairs(np.swapaxes(layer.output, 1, 2)), heads)
        found |= {
            at + "attn.c_attn.weight": np.concatenate(projections).T, at + "attn.c_attn.bias": np.zeros(3 * width),
            at + "attn.c_proj.weight": back, at + "attn.c_proj.bias": np.zeros(width),
            at + "mlp.c_fc.weight": reading(inner[i]).T, at + "mlp.c_fc.bias": np.zeros(len(inner[i])),
            at + "mlp.c_proj.weight": as_pairs(outer[i].T), at + "mlp.c_proj.bias": np.zeros(width),
        }
    for norm in (*(f"h.{i}.ln_{k}" for i in range(len(weights.layers)) for k in (1, 2)), "ln_f"):
        found |= {f"transformer.{norm}.weight": np.ones(width), f"transformer.{norm}.bias": np.zeros(width)}
    return found


def weights(tensors: Mapping[str, Array], config: Mapping[str, Any]) -> StockWeights:
    """The weights over bits, from a checkpoint; one that is not of this form is refused."""
    take = tensors.__getitem__
    for name, wanted in (("activation_function", "relu"), ("layer_norm_epsilon", 0.0), ("tie_word_embeddings", False),
                        ("scale_attn_by_inverse_layer_idx", False)):
        if config.get(name, wanted) != wanted:
            raise WeightsError(f"config.json has {name} = {config[name]!r}: a stock checkpoint has {wanted!r}")
    layers = []
    for i in range(config["n_layer"]):
        at = f"transformer.h.{i}."
        for k in (1, 2):
            _check_norm(take(f"{at}ln_{k}.weight"), take(f"{at}ln_{k}.bias"), f"{at}ln_{k}")
        for name in ("attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj"):
            if take(f"{at}{name}.bias").any():
                raise WeightsError(f"{at}{name}.bias is not 0")
        query, key, value = (_apart(unread(part, at + "attn.c_attn"))
                             for part in np.split(take(at + "attn.c_attn.weight").T, 3))
        output = np.swapaxes(_apart(unwritten(take(at + "attn.c_proj.weight"), at + "attn.c_proj")), 1, 2)
        layers.append(StockLayer(query, key, value, output, unread(take(at + "mlp.c_fc.weight").T, at + "mlp.c_fc"),
                                 unwritten(take(at + "mlp.c_proj.weight"), at + "mlp.c_proj").T))
    _check_norm(take("transformer.ln_f.weight"), take("transformer.ln_f.bias"), "transformer.ln_f")
    table = unwritten(take("transformer.wpe.weight"), "transformer.wpe")
    embedding = unwritten(take("transformer.wte.weight"), "transformer.wte")
    return StockWeights(str(config["dtype"]), embedding, table, len(table), tuple(layers),
                        unread(take("lm_head.weight"), "lm_head"), int(config["eos_token_id"]))


def _check_norm(weight: Array, bias: Array, name: str) -> None:
    if (weight != 1).any() or bias.any():
        raise WeightsError(f"{name} has a weight other than 1 or a bias: it is not the identity")


def _joined(parts: Array, heads: int) -> Array:
    """Heads one below the other, with idle ones up to so many."""
    idle = np.zeros((heads - len(parts), *parts.shape[1:]))
    return np.concatenate([*parts, *idle])


def _apart(joined: Array) -> Array:
    return joined.reshape(-1, HEAD, joined.shape[1])
