"""The folder of a widened model: plain files of transformers, and a page about them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from punchcard import __version__
from punchcard.arguments import checked
from punchcard.errors import FusionError
from punchcard.folders import MARK
from punchcard.language_models.fusion.composition import save_with_page
from punchcard.language_models.widened.widening import ABOUT

if TYPE_CHECKING:
    from transformers import LlamaForCausalLM

    from punchcard.language_models.tokens import Tokenizer

PAGE = """---
library_name: transformers
pipeline_tag: text-generation
tags: [punchcard, interpretability]
---

# A Llama that adds

A pretrained Llama with {front} layers in front of it, whose weights are set by formula. It answers `a+b=`, numbers of up to
{digits} digits, exactly. Elsewhere its logits are the base's, up to rounding. Nothing was trained.

| | base | here |
|---|---|---|
| layers | {base_layers} | {layers} |
| width | {base_width} | {width} |

```python
from transformers import AutoModelForCausalLM, AutoTokenizer

model, tokenizer = AutoModelForCausalLM.from_pretrained("."), AutoTokenizer.from_pretrained(".")
prompt = tokenizer("12+30=", return_tensors="pt")
print(tokenizer.decode(model.generate(**prompt, max_new_tokens=12, do_sample=False)[0]))
```

`punchcard prove FOLDER --on stock` shows from the weights that every sum is right. The license of the base applies to its
weights.

{mark} {version}.
"""


@checked
def save_widened(
    model: LlamaForCausalLM, tokenizer: Tokenizer, folder: str | Path, *, overwrite: bool = False,
) -> list[str]:
    """Write a widened model to a folder, with its tokenizer and a page."""
    about, sizes = getattr(model.config, ABOUT, None), model.config
    if about is None:
        raise FusionError(f"model is a {type(model).__name__} that was not widened: `punchcard.widen` makes one")
    if str(model.dtype) == "torch.float16":
        raise FusionError("model is in float16, whose range is too small for the added numbers: its logits are not numbers; "
                          "save it in float32 or bfloat16")
    layers = about["base"]["num_hidden_layers"]
    page = PAGE.format(front=sizes.num_hidden_layers - layers, digits=about["digits"], base_layers=layers,
                       layers=sizes.num_hidden_layers, base_width=about["base"]["hidden_size"], width=sizes.hidden_size,
                       mark=MARK, version=__version__)
    return save_with_page(model, tokenizer, page, folder, overwrite=overwrite)
