"""Programs and language models: any program inside a pretrained model, stock checkpoints whose prompt is a program,
and a pretrained model made wider so that it adds.

    fused = punchcard.fuse(model, tokenizer, "sums")

Modules are imported on first use; they need the extra `punchcard[hf]`.
"""

from __future__ import annotations

from punchcard.lazy import lazy_names

MOST_LOOPS = 2_000_000
"""Loops for a token after which a program inside a language model has no opinion, unless its maker says another number."""

__getattr__, __dir__, _HOMES = lazy_names("punchcard.language_models", (
    "punchcard.language_models.fusion",
    "punchcard.language_models.fusion.composition:fuse open_fused",
    "punchcard.language_models.stock",
    "punchcard.language_models.tokens",
    "punchcard.language_models.widened",
))
