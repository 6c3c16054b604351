"""The page of a fused folder: what it is, with which skills, and how to open it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from punchcard import __version__
from punchcard.folders import MARK

PAGE = """---
library_name: transformers
pipeline_tag: text-generation
tags: [punchcard, interpretability]
---

# A language model with a computer inside

{base} with {skills}. No weight of the base was changed, and none was trained: a second residual stream beside the base's
holds a machine whose weights are set by formula. Before every token the last {tokens} tokens are brought onto its card, the
programs below run, and what they say is added to the logits. Where they have no opinion, the logits are the base's, bit by
bit.

| skill | position in the order |
|---|---|
{rows}

| | |
|---|---|
| base | `{architecture}`, {vocabulary:,} tokens |
| memory of the machine | {memory:,} words of 32 bits |
| layers of the machine | {layers} |
| loops per token at most | {most_loops:,} |

## Open it

With Punchcard:

    punchcard chat FOLDER

or in Python:

```python
import punchcard

model, tokenizer = punchcard.language_models.open_fused(".")
prompt = tokenizer({example!r}, return_tensors="pt")
print(tokenizer.decode(model.generate(**prompt, max_new_tokens=16)[0]))
```

Without Punchcard, with torch and transformers alone; then a loop takes milliseconds instead of nanoseconds:

```python
from transformers import AutoModelForCausalLM, AutoTokenizer

model = AutoModelForCausalLM.from_pretrained(".", trust_remote_code=True)   # executes fused_model.py of this folder
tokenizer = AutoTokenizer.from_pretrained(".", trust_remote_code=True)      # it reads the configuration there
prompt = tokenizer({example!r}, return_tensors="pt")
print(tokenizer.decode(model.generate(**prompt, max_new_tokens=16)[0]))
```

The license of the base applies to its weights.

{mark} {version}.
"""
EXAMPLES = {
    "sums": "12 + 30 =", "letters": "How many r's are in strawberry?\nAnswer:", "computer": "The capital of France is",
    "dates": "What day of the week is 2026-11-18?\nAnswer:",
}
"""A prompt for each shipped skill."""


def model_card(sizes: Mapping[str, Any], base: Any) -> str:
    """The page for a stream of these sizes beside this base."""
    names = [skill["name"] for skill in sizes["skills"]]
    architecture = type(base).__name__
    name = str(getattr(base.config, "_name_or_path", "") or "").rstrip("/").rpartition("/")[2] or architecture
    return PAGE.format(
        base=name, skills=", ".join(f"`{each}`" for each in names), tokens=sizes["tokens"], architecture=architecture,
        rows="\n".join(f"| `{each}` | {place} |" for place, each in enumerate(names, start=1)),
        vocabulary=sizes["vocabulary"], memory=sizes["machine"]["memory"], layers=len(sizes["shapes"]),
        most_loops=sizes["most_loops"], example=EXAMPLES.get(names[0], "12 + 30 ="), mark=MARK, version=__version__)
