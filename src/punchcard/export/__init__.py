"""Export to other tools: a program as a layer of a network, models for other libraries, circuits.

    import punchcard

    punchcard.export.write("onnx", machine, "folder", program)     # what `punchcard export` does
    bridge = punchcard.export.transformer_lens.bridge(machine)     # a TransformerLens object

Modules are imported on first use. The packages that they need are optional extras: see docs/interop.md.
"""

from __future__ import annotations

from punchcard.lazy import lazy_names

__getattr__, __dir__, _HOMES = lazy_names("punchcard.export", (
    "punchcard.export.circuit",
    "punchcard.export.disguise",
    "punchcard.export.evaluator",
    "punchcard.export.folder:write",
    "punchcard.export.hugging_face",
    "punchcard.export.layer",
    "punchcard.export.names",
    "punchcard.export.onnx",
    "punchcard.export.safetensors",
    "punchcard.export.targets",
    "punchcard.export.targets:TARGETS",
    "punchcard.export.targets:Target",
    "punchcard.export.transformer_lens",
))
