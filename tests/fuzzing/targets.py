"""All targets by name, and what share of the inputs each gets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.fuzzing import caches, commands, names, samples, tensors, texts, weights
from tests.fuzzing.workers import Begin

_PROGRAMS = {".subleq": 40, ".minsky": 40, ".json": 40, ".fleq": 70, ".asq": 70, ".bf": 40, ".dec": 40, ".sq": 10,
             ".slq": 10, ".tm": 40, ".s": 62, ".elf": 24, ".hex": 12, ".ihex": 2, ".bin": 6, ".c": 2, ".py": 30}
_WEIGHTS = {"two-layer": 4, "two-layer, float32": 3, "two-layer, float16": 1, "two-layer, bfloat16": 1, "paper": 1,
            "one-layer": 2, "one-layer, float32": 1, "own": 3, "own, float32": 2, "operations": 2, "painters": 1,
            "Turing": 1, "von Neumann": 1, "many columns": 0.25, "FLEQ": 0.5, "FLEQ, three-layer": 0.1, "RISC-V": 0.25}
_PROVEN = {"two-layer": 0.5, "paper": 0.2, "one-layer": 0.2, "von Neumann": 0.2, "own": 0.5, "FLEQ": 0.2}
_KINDS = {"subleq": 20, "fleq": 20, "von-neumann": 20, "turing": 20, "riscv": 0.5}


def targets() -> Mapping[str, tuple[float, Begin]]:
    """Every language, every kind of machine and every subject of weights is here, or a KeyError."""
    found: dict[str, tuple[float, Any]] = {
        "calc": (70, texts.expressions), "tables": (54, texts.tables), "arrays": (50, texts.arrays),
        "models": (30, tensors.models), "code": (3, caches.code), "commands": (75, commands.lines),
        "python": (30, texts.generated), "names": (15, names.lines),
    }
    for extension in samples.extensions():
        found[extension] = _PROGRAMS[extension], texts.programs(extension)
    for kind in samples.registry():
        found[f"machine-{kind.name}"] = _KINDS[kind.name], tensors.machines(kind.name)
        found[f"checkpoint-{kind.name}"] = _KINDS[kind.name], tensors.checkpoints(kind.name)
    for name in weights.ENGINE_SUBJECTS:
        found[weights.target("weights", name)] = _WEIGHTS[name], weights.engines(name)
    for name in weights.PROVEN_SUBJECTS:
        found[weights.target("proof", name)] = _PROVEN[name], weights.proofs(name)
    return found


def inputs(total: int) -> Mapping[str, int]:
    """How many inputs of so many each target gets: its share, rounded down or up, which may be none if there are few."""
    shares = {name: share for name, (share, _) in targets().items()}
    exact = {name: total * share / sum(shares.values()) for name, share in shares.items()}
    found = {name: int(share) for name, share in exact.items()}
    for name in sorted(exact, key=lambda name: found[name] - exact[name])[:total - sum(found.values())]:
        found[name] += 1
    return found
