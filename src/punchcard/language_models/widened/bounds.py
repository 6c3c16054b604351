"""How large a base's columns and logits can get, whatever the text is: so that what the front layers say wins.

A norm gives a vector n of length sqrt(d) at most, times its weights w. So a row r of a matrix gives |r w| sqrt(d) at most, a
head an average of such values, a hidden unit |silu(g) u| <= |g u|; and every layer adds that much at most. What is said
is in the last column as a number, is divided by its root mean square, and gets `height` in the logits.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor, nn
    from transformers import LlamaForCausalLM

MARGIN = 64.0
"""By how much the answer's token leads all others at least."""


def column_bound(model: LlamaForCausalLM, front: int = 0, base: int | None = None) -> float:
    """No column has a larger root mean square before the last norm. Of a widened model: behind the front layers, in the
    coordinates of the base."""
    import torch

    root = math.sqrt(model.config.hidden_size)
    with torch.no_grad():
        total = model.model.embed_tokens.weight.double().abs().amax(0)
        total[base or len(total) :] = 0.0
        for layer in model.model.layers[front:]:
            attention, mlp = layer.self_attn, layer.mlp
            value = _outputs(attention.v_proj, layer.input_layernorm.weight, root)
            value = value.reshape(-1, attention.head_dim).repeat_interleave(attention.num_key_value_groups, 0).reshape(-1)
            total += _passed(attention.o_proj, value)
            gate, up = (_outputs(part, layer.post_attention_layernorm.weight, root) for part in (mlp.gate_proj, mlp.up_proj))
            total += _passed(mlp.down_proj, gate * up)
        return float(total.pow(2).mean().sqrt())


def logit_bound(model: LlamaForCausalLM, base: int | None = None) -> float:
    """No logit is larger in size. Of a widened model: by the coordinates of the base."""
    root, weight = math.sqrt(model.config.hidden_size), model.model.norm.weight.detach().clone()
    weight[base or len(weight) :] = 0.0
    return float(_outputs(model.get_output_embeddings(), weight, root).max())


def height(model: LlamaForCausalLM) -> float:
    """What the logit of an answer's token gets, times the root mean square of the last column: a power of two."""
    needed = (2 * logit_bound(model) + MARGIN) * math.sqrt(column_bound(model) ** 2 + model.config.rms_norm_eps)
    return 2.0 ** math.ceil(math.log2(needed))


def _outputs(linear: nn.Linear, weight: Tensor, root: float) -> Tensor:
    """The largest sizes of what a matrix gives after a norm with these weights."""
    found: Tensor = (linear.weight.detach().double() * weight.detach().double()).norm(dim=1) * root
    return found if linear.bias is None else found + linear.bias.detach().double().abs()


def _passed(linear: nn.Linear, sizes: Tensor) -> Tensor:
    """The largest sizes of what a matrix gives for entries of these sizes."""
    found: Tensor = linear.weight.detach().double().abs() @ sizes
    return found if linear.bias is None else found + linear.bias.detach().double().abs()
