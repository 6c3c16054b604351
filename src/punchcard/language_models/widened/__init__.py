"""A stock Llama that keeps a pretrained one and adds: hard-wired layers in front of it, in coordinates of their own.

    widened = punchcard.widen(model, tokenizer)

The folder that it is saved to holds a plain `LlamaForCausalLM`. See docs/widened.md.
"""

from __future__ import annotations

from punchcard.lazy import lazy_names

__getattr__, __dir__, _HOMES = lazy_names("punchcard.language_models.widened", (
    "punchcard.language_models.widened.claims:prove_widened",
    "punchcard.language_models.widened.widening:widen",
))
