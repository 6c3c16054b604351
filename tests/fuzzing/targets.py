"""All targets by name, and how many of a thousand inputs each gets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.fuzzing import caches, commands, names, samples, tensors, texts
from tests.fuzzing.workers import Begin

_PROGRAMS = {".subleq": 40, ".minsky": 40, ".json": 40, ".fleq": 60, ".asq": 60, ".bf": 40, ".dec": 40, ".sq": 10,
             ".slq": 10, ".tm": 40, ".s": 62, ".elf": 24, ".hex": 12, ".ihex": 2, ".bin": 6, ".c": 2, ".py": 20}
_KINDS = {"subleq": 20, "fleq": 20, "von-neumann": 20, "turing": 20, "riscv": 1}


def targets() -> Mapping[str, tuple[int, Begin]]:
    """Every language and every kind of machine is here, or a KeyError."""
    found: dict[str, tuple[int, Any]] = {
        "calc": (60, texts.expressions), "tables": (44, texts.tables), "arrays": (40, texts.arrays),
        "python": (60, texts.generated), "names": (15, names.lines),
        "models": (30, tensors.models), "code": (6, caches.code), "commands": (75, commands.lines),
    }
    for extension in samples.extensions():
        found[extension] = _PROGRAMS[extension], texts.programs(extension)
    for kind in samples.registry():
        found[f"machine-{kind.name}"] = _KINDS[kind.name], tensors.machines(kind.name)
        found[f"checkpoint-{kind.name}"] = _KINDS[kind.name], tensors.checkpoints(kind.name)
    return found
