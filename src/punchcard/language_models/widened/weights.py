"""Weights of a widened model: the base's, one part of each tensor, and those of the front layers by formula."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from punchcard.language_models.widened.compiler import matrices
from punchcard.language_models.widened.gates import SHARPNESS
from punchcard.language_models.widened.plan import Front
from punchcard.transformer.expression import Array

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import LlamaForCausalLM

NORMS = ("input_layernorm", "post_attention_layernorm")


def put_base(targets: Mapping[str, Tensor], base: LlamaForCausalLM, front: Front) -> None:
    """The base's weights, behind the front layers. Norms are scaled, the rest is as it was; other entries stay 0."""
    for name, tensor in base.state_dict().items():
        parts = name.split(".")
        if parts[:2] == ["model", "layers"]:
            parts[2] = str(int(parts[2]) + len(front.layers))
        scale = front.norm.shrink if "norm" in parts[-2] else 1.0
        _put(targets[".".join(parts)], tensor.double() * scale)
    _put(targets["lm_head.weight"], base.get_output_embeddings().weight.double())


def _put(target: Tensor, source: Tensor) -> None:
    target[tuple(slice(0, size) for size in source.shape)] = source.to(target.dtype)


def put_front(targets: Mapping[str, Tensor], front: Front, squares: Tensor) -> None:
    """The front layers, the coordinates that tokens set, and the logits of the answer.

    `squares` are the square sums of the base's embeddings.
    """
    import torch

    d, layout, norm = front.norm.base, front.layout, front.norm
    added = slice(d, d + layout.width)
    columns = torch.from_numpy(token_columns(front))
    columns *= norm.amplitude
    columns[:, layout.rows("ballast").start] = (norm.largest - squares).clamp(min=0).sqrt()
    targets["model.embed_tokens.weight"][:, added] = columns.float()
    said = slice(d + layout.rows("said").start, d + layout.rows("ended").stop)
    targets["model.norm.weight"][said] = 1 / norm.amplitude
    tokens = [*front.words.digits, front.words.end]
    targets["lm_head.weight"][tokens, range(said.start, said.stop)] = front.height
    for i, layer in enumerate(front.layers):
        at = f"model.layers.{i}."
        for name in NORMS:
            targets[f"{at}{name}.weight"][added] = norm.reading
        for name, matrix in matrices(layer, layout, front.shape, front.distances).items():
            target, held = targets[f"{at}{name}.weight"], torch.from_numpy(matrix)
            if name in ("self_attn.o_proj", "mlp.down_proj"):
                target[added, : matrix.shape[1]] = (held * norm.amplitude).float()
            else:
                target[: matrix.shape[0], added] = held.float()
    _drop_ballast(targets, front, len(front.layers) - 1)


def front_tensors(tensors: Mapping[str, Tensor], front: Front, squares: Tensor) -> dict[str, Tensor]:
    """What the formula gives for all tensors that the front has a part in; 0 in the base's part."""
    import torch

    names = [name for name in tensors if name.split(".")[1] != "layers" or int(name.split(".")[2]) < len(front.layers)]
    found = {name: torch.zeros_like(tensors[name]) for name in names}
    put_front(found, front, squares)
    return found


def token_columns(front: Front) -> Array:
    """The numbers that a token sets, for all tokens."""
    words, layout = front.words, front.layout
    found = np.zeros((len(words.opens), layout.width))

    def at(name: str) -> int:
        return int(layout.rows(name).start)

    found[:, at("one")] = 1.0
    for digit, token in enumerate(words.digits):
        found[token, at("digit")], found[token, at("is_digit")] = digit, 1.0
    found[words.plus, at("plus")] = found[words.equals, at("equals")] = 1.0
    for name, kind in (("open", words.opens), ("blank", words.blank), ("leads", words.leads)):
        found[:, at(name)] = kind
    return found


def _drop_ballast(targets: Mapping[str, Tensor], front: Front, layer: int) -> None:
    """One unit of a layer takes the ballast away: its gate is open, and its factor is the ballast."""
    d, layout, norm = front.norm.base, front.layout, front.norm
    one, ballast = (d + layout.rows(name).start for name in ("one", "ballast"))
    unit = len(front.layers[layer].units)
    at = f"model.layers.{layer}.mlp."
    targets[f"{at}gate_proj.weight"][unit, one] = SHARPNESS
    targets[f"{at}up_proj.weight"][unit, ballast] = 1.0
    targets[f"{at}down_proj.weight"][ballast, unit] = -norm.amplitude / SHARPNESS
