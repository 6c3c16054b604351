"""Out into other people's tools: a program as a layer of a network, models for other libraries, circuits.

    import punchcard

    punchcard.export.write("onnx", machine, "folder", program)     # what `punchcard export` does
    bridge = punchcard.export.transformer_lens.bridge(machine)     # an object of that world

Modules are imported when they are first used, and what they need is an extra: see docs/interop.md.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {"TARGETS": "targets", "Target": "targets", "write": "targets"}
_MODULES = ("circuit", "counterfactual", "disguise", "evaluator", "ground_truth", "hugging_face", "layer", "names", "onnx",
            "safetensors", "targets", "transformer_lens")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"punchcard.export.{name}")
    if name in _HOMES:
        return getattr(import_module(f"punchcard.export.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'punchcard.export' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES, *_MODULES])
