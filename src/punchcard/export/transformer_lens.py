"""The export to TransformerLens 4: a `TransformerBridge` around its own native model, with the machine's weights.

A card with rows and columns is a residual stream with positions: `stream = card.T[None]`, and one loop is
`stream = bridge(stream)`. The native model has one shape for all layers, so

- every layer has as many heads as the largest; the others match nothing, take the mean of zeros, and add 0
- a head has as many dimensions as the largest key, or the most rows that a head moves: V is written as the rows that it
  moves (W_V) and a matrix of zeros and ones that puts them in their place (W_O)
- every layer has as many hidden units as the largest; the others are relu(0)
- the temperature is in the query. It is a power of two in hard heads, and 1 in soft ones, so nothing is rounded
- embeddings are 0 and the unembedding is 1: what the bridge calls logits is the next card
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from punchcard.arguments import checked
from punchcard.budget import require as require_memory
from punchcard.export.folder import description, write_folder
from punchcard.export.targets import require
from punchcard.files import write_atomic
from punchcard.machines.base import Machine
from punchcard.transformer.weights import Weights

if TYPE_CHECKING:
    from torch import Tensor
    from transformer_lens.model_bridge import TransformerBridge

    from punchcard.transformer.model import TransformerLayer

CONFIG, MODEL = "config.json", "model.safetensors"
SCALE = 0.5
"""What scores are divided by. TransformerLens refuses 1; a half is exact, and no score grows on the way."""

OPEN = '''
It needs `transformer-lens>=4` and no Punchcard. A residual stream is the card on its side, and one loop is one call:

```python
import json
import torch
from safetensors.torch import load_file
from transformer_lens.model_bridge import TransformerBridge

config = json.load(open("config.json"))
dtype = getattr(torch, config.pop("dtype"))
bridge = TransformerBridge.boot_native(config, dtype=dtype, device="cpu")
bridge.load_state_dict(load_file("model.safetensors"))
'''
LOOP = '''stream, cache = bridge.run_with_cache(stream)      # one loop
print(cache["blocks.0.attn.hook_pattern"].shape)   # batch, head, position that takes, position that it takes from
```

Position j is column j, and dimension i is row i. `machine.json` has their names, and what each head, formula and hidden
unit does. Heads and hidden units beyond those that are named there are idle.
'''
HOW = OPEN + '''
stream = load_file("card.safetensors")["card"].T[None]
''' + LOOP
ALONE = OPEN + '''
stream = torch.zeros(1, COLUMNS, ROWS, dtype=dtype)        # empty
''' + LOOP


def config(weights: Weights, columns: int) -> dict[str, Any]:
    """The configuration of `TransformerBridge.boot_native`, as plain data."""
    layers = weights.layers
    moved = (int(value.any(axis=1).sum()) for layer in layers for value in layer.value)
    head_size = max(1, *(layer.key_size for layer in layers), *moved)
    return {
        "d_model": weights.width, "n_ctx": columns, "n_layers": len(layers), "d_vocab": 1, "d_vocab_out": weights.width,
        "n_heads": max(1, *(layer.heads for layer in layers)), "d_head": head_size,
        "d_mlp": max(1, *(layer.hidden for layer in layers)), "act_fn": "relu", "normalization_type": None,
        "attention_dir": "bidirectional", "positional_embedding_type": "standard", "use_attn_scale": True,
        "attn_scale": SCALE, "init_weights": False, "default_prepend_bos": False, "dtype": weights.dtype,
    }


def state(weights: Weights, columns: int) -> dict[str, Tensor]:
    """The weights by the names that a bridge of TransformerLens gives them."""
    import torch

    from punchcard.transformer.model import TransformerLayer

    sizes, dtype = config(weights, columns), getattr(torch, weights.dtype)

    def zeros(*shape: int) -> Tensor:
        return torch.zeros(*shape, dtype=dtype, device="cpu")

    found = {"embed.weight": zeros(1, weights.width), "pos_embed.weight": zeros(columns, weights.width),
             "unembed.weight": torch.eye(weights.width, dtype=dtype, device="cpu"),
             "unembed.bias": zeros(weights.width)}
    for number, module in enumerate(weights.module.layers):
        assert isinstance(module, TransformerLayer)
        found |= {f"blocks.{number}.{name}": tensor for name, tensor in _layer(module, sizes, zeros).items()}
    return {name: tensor.detach().contiguous() for name, tensor in found.items()}


def _layer(layer: TransformerLayer, sizes: Mapping[str, Any], zeros: Callable[..., Tensor]) -> dict[str, Tensor]:
    """The weights of a layer, padded to the sizes that all layers share."""
    import torch

    width, size, hidden, units = sizes["d_model"], sizes["d_head"], layer.shape.hidden, sizes["d_mlp"]
    joined = sizes["n_heads"] * size
    attention = {name: zeros(joined, width) for name in "qkv"} | {"o": zeros(width, joined)}
    for head in range(layer.shape.heads):
        start = head * size
        keys = slice(start, start + layer.shape.key_size)
        attention["k"][keys] = layer.key[head]
        attention["q"][keys] = layer.temperature[head] * SCALE * layer.query[head]
        moved = layer.value[head].any(dim=1).nonzero()[:, 0]
        places = torch.arange(start, start + len(moved), device="cpu")
        attention["v"][places] = layer.value[head][moved]
        attention["o"][moved, places] = 1.0
    w1, b1, w2 = zeros(units, width), zeros(units), zeros(width, units)
    w1[:hidden], b1[:hidden], w2[:, :hidden] = layer.w1, layer.b1[:, 0], layer.w2
    found = {"mlp.in.weight": w1, "mlp.in.bias": b1, "mlp.out.weight": w2, "mlp.out.bias": layer.b2[:, 0].clone()}
    for name, matrix in attention.items():
        found |= {f"attn.{name}.weight": matrix, f"attn.{name}.bias": zeros(len(matrix))}
    return found


def check_room(weights: Weights, columns: int) -> None:
    """Refuse what would not fit the memory: every layer has the largest one's sizes and a mask of columns by columns."""
    sizes = config(weights, columns)
    layer = weights.width * (4 * sizes["n_heads"] * sizes["d_head"] + 2 * sizes["d_mlp"])
    needed = sizes["n_layers"] * (24 * layer + columns**2) + 32 * sizes["n_heads"] * columns**2
    require_memory(needed, f"a TransformerLens model of {sizes['n_layers']} layers with {sizes['n_heads']} heads of "
                           f"{sizes['d_head']} for {weights.width} rows and {columns} columns")


@checked
def bridge(machine: Machine[Any, Any], program: object = None) -> TransformerBridge:
    """The machine as a `TransformerBridge`, with all its hooks. `bridge.machine` has the names of rows, heads and values."""
    require("transformer-lens")
    columns = machine.layout.columns
    check_room(machine.weights, columns)
    import torch
    from transformer_lens.model_bridge import TransformerBridge

    sizes = config(machine.weights, columns)
    dtype = getattr(torch, sizes.pop("dtype"))
    made = TransformerBridge.boot_native(sizes, dtype=dtype, device="cpu", model_name=f"punchcard-{machine.kind.name}")
    made.load_state_dict(state(machine.weights, columns))
    made.machine = description(machine, program)
    return made


def write(machine: Machine[Any, Any], program: object, folder: Path) -> None:
    """The files of the folder."""
    from safetensors.torch import save

    columns = machine.layout.columns
    check_room(machine.weights, columns)
    write_atomic(folder / CONFIG, json.dumps(config(machine.weights, columns), indent=1) + "\n")
    write_atomic(folder / MODEL, save(state(machine.weights, columns)))
    files = {CONFIG: "what `TransformerBridge.boot_native` takes", MODEL: "the weights by the names of its `state_dict`"}
    write_folder(machine, program, folder, title="A computer in TransformerLens", files=files, how=HOW, alone=ALONE)
