"""Targets that are tensors in a file: saved machines, checkpoints and learned models."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as tensors_of
from safetensors.torch import save as to_bytes
from torch import Tensor

import punchcard
from punchcard.machines import checkpoint, storage
from tests.fuzzing import samples
from tests.fuzzing.judging import command
from tests.fuzzing.mutations import encoded, forged, mutated
from tests.fuzzing.workers import Attempt

GOES_ON = 0.3
"""The share of checkpoints that also run on."""
PREDICTS = 0.05
"""The share of models that also predict."""
DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int8, torch.uint8, torch.bool,
          torch.complex64)


def machines(kind: str) -> object:
    """Saved machines of a kind."""
    def begin(folder: Path) -> Attempt:
        path = folder / "input.machine"
        samples.machine(kind).save(path)

        def attempt(rng: random.Random) -> None:
            path.write_bytes(damaged(rng, data))
            punchcard.Machine.load(path, machines=samples.registry())

        data = path.read_bytes()
        return attempt
    return begin


def checkpoints(kind: str) -> object:
    """Runs of a machine of a kind, kept after some steps."""
    def begin(folder: Path) -> Attempt:
        path = folder / "input.checkpoint"
        program, machine = samples.small_program(kind), samples.machine(kind)
        kept = []
        for engine in ("auto", "dense"):  # a packed card, and a tensor
            punchcard.run(program, machine, max_steps=2, checkpoint=path, input=b"hello", engine=engine)
            kept.append(path.read_bytes())

        def attempt(rng: random.Random) -> None:
            path.write_bytes(damaged(rng, rng.choice(kept)))
            saved = checkpoint.load(path, machines=samples.registry())
            if rng.random() < GOES_ON:
                punchcard.resume(saved, max_steps=saved.mark.loops + 3, engine="dense")

        return attempt
    return begin


def models(folder: Path) -> Attempt:
    """Models as `learn --save` writes them."""
    samples.shared_folder(folder)
    path = folder / "input.model"
    samples.write_model(path, hidden=(1,), scaled=True)
    data = path.read_bytes()

    def attempt(rng: random.Random) -> None:
        path.write_bytes(damaged(rng, data))
        table = "table.csv" if rng.random() < PREDICTS else "/dev/null"  # an empty one is refused after the model is read
        command(samples.command_line(), ["predict", str(path), table, "--engine", "dense"])

    return attempt


def damaged(rng: random.Random, data: bytes) -> bytes:
    """A file with a few bytes changed, or one that was written anew with another description or another tensor."""
    try:
        tensors = tensors_of(data)
    except SafetensorError:
        return mutated(rng, data, [data])
    head = 8 + int.from_bytes(data[:8], "little")
    if rng.random() < 0.3:
        part = mutated(rng, data[:head], [data[:head]])
        return part + data[head:] if rng.random() < 0.5 else len(part[8:]).to_bytes(8, "little") + part[8:] + data[head:]
    if rng.random() < 0.15:
        return data[:head] + mutated(rng, data[head:], [data[head:]])
    return _written_anew(rng, json.loads(data[8:head])["__metadata__"], tensors)


def _written_anew(rng: random.Random, metadata: dict[str, str], tensors: dict[str, Tensor]) -> bytes:
    """Its seal is mostly right: only the content can be refused."""
    another = rng.random() < 0.5
    if another:
        name = rng.choice(sorted(tensors))
        tensors[name] = _tensor(rng, tensors[name])
    key = rng.choice(sorted(metadata))
    description = json.loads(metadata[key])
    if not another or rng.random() < 0.2:
        description = forged(rng, description)
    if isinstance(description, dict) and rng.random() < 0.95:
        description = _sealed(description, tensors)
    text = json.dumps(description)
    if rng.random() < 0.02:
        text = rng.choice(("[" * 100_000, text[:-5], "{}", '{"format": 1e999}', "9" * 5000))
    return to_bytes({name: tensor.contiguous() for name, tensor in tensors.items()},
                    metadata={key: encoded(text).decode("utf-8", "replace")})


def _tensor(rng: random.Random, tensor: Tensor) -> Tensor:
    """Another tensor in the place of one."""
    choice = rng.randrange(6)
    if choice == 0:
        return tensor.to(rng.choice(DTYPES))
    if choice == 1:
        return torch.zeros(rng.choice(((), (0,), (1,), (3, 3), (2, 2, 2))), dtype=tensor.dtype)
    if choice == 2:
        return torch.full_like(tensor, rng.choice((-1, 0, 1, 2)))
    if not tensor.numel():
        return torch.ones(3, dtype=tensor.dtype)
    flat = tensor.clone().reshape(-1)
    values = torch.tensor((float("nan"), float("inf"), -1e30, 1e308, 0.5, -1.0, 1.0, 0.0)
                          if tensor.is_floating_point() else (0, 1, 255), dtype=torch.float64).to(tensor.dtype)
    for _ in range(rng.choice((1, 1, 10))):
        flat[rng.randrange(len(flat))] = values[rng.randrange(len(values))]
    return flat.reshape(tensor.shape)


def _sealed(description: dict[str, Any], tensors: dict[str, Tensor]) -> dict[str, Any]:
    plain = {name: value for name, value in description.items() if name != "seal"}
    return {**plain, "seal": storage.seal(plain, tensors)}
