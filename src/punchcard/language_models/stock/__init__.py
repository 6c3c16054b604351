"""Stock checkpoints that execute programs: folders that `transformers` opens with no code of ours.

    punchcard export examples/multiply.subleq --bits 8 --dtype float32 --to gpt2 -o folder

The prompt is the program, `generate` writes the trace, and the end of the program is the end of the text. The weights depend
on sizes alone. See docs/stock-checkpoints.md.
"""

from __future__ import annotations

from punchcard.lazy import lazy_names

__getattr__, __dir__, _HOMES = lazy_names("punchcard.language_models.stock", (
    "punchcard.language_models.stock.checkpoint:StockCheckpoint",
    "punchcard.language_models.stock.claims:prove_checkpoint",
    "punchcard.language_models.stock.engine:TraceEngine",
    "punchcard.language_models.stock.image_language:VonNeumannText",
    "punchcard.language_models.stock.language:SubleqText",
    "punchcard.language_models.stock.running:StockRun run_checkpoint",
))
