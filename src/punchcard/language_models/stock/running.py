"""Running a stock checkpoint: its prompt, the tokens that follow, what they say, and whether the interpreter agrees."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from punchcard.arguments import checked
from punchcard.errors import PunchcardError, StorageError, did_you_mean
from punchcard.files import read_limited
from punchcard.folders import opening
from punchcard.language_models.stock.checkpoint import PROMPT, StockCheckpoint, open_checkpoint, structure_in
from punchcard.language_models.stock.engine import TraceEngine
from punchcard.language_models.stock.language import first_difference, split_words
from punchcard.machines.registry import Registry

ENGINES = ("tables", "transformers")


@dataclass(frozen=True)
class StockRun:
    """What a checkpoint wrote after a prompt.

    words        the words of the trace, without the prompt
    trace        what they say
    difference   the place of the first word that is not the interpreter's, or None if there is none, or nothing was compared
    """

    prompt: str
    words: tuple[str, ...]
    trace: Any
    engine: str
    seconds: float
    compared: bool
    difference: int | None = None
    expected: str = ""

    @property
    def text(self) -> str:
        """The trace as lines, from the label with which the prompt ends."""
        words = split_words(self.prompt)
        first = max((at for at, word in enumerate(words) if word.endswith(":")), default=0)
        return "".join(f"\n{word}" if word.endswith(":") else f" {word}" for word in (*words[first:], *self.words)).strip()

    @property
    def agrees(self) -> bool | None:
        """Whether the interpreter writes the same words, or None if they were not compared."""
        return self.difference is None if self.compared else None


@checked
def run_checkpoint(
    folder: str | Path, prompt: str | None = None, *, engine: str = "tables", max_steps: int | None = None,
    check: bool = True, machines: Registry | None = None,
) -> StockRun:
    """Let the checkpoint in a folder continue with a prompt, by default the folder's own, and compare with the interpreter.

    engine      "tables": our own, which reads the weights in the folder; "transformers": `generate`
    max_steps   instructions to stop after, default: at the end of the program or of the context
    machines    a registry with machines of your own, default: the installed ones
    """
    if engine not in ENGINES:
        raise PunchcardError(f"unknown engine {engine!r}{did_you_mean(engine, ENGINES)}: a stock checkpoint runs on "
                             f"{' or '.join(ENGINES)}")
    made = open_checkpoint(folder, machines)
    text = prompt if prompt is not None else own_prompt(folder)
    program = made.text.program(text)
    vocabulary = made.text.vocabulary()
    numbers = {word: token for token, word in enumerate(vocabulary)}
    tokens = [numbers[word] for word in split_words(text)]
    most = None if max_steps is None else max_steps * made.text.tokens_a_step
    written, seconds = (_tables if engine == "tables" else _transformers)(Path(folder), tokens, most, made)
    words = tuple(vocabulary[token] for token in written)
    at = first_difference(words, made.text.expected(program)) if check else None
    wanted = "" if at is None else next(word for i, word in enumerate(made.text.expected(program)) if i == at)
    return StockRun(text, words, made.text.decoded(program, words), engine, seconds, check, at, wanted)


def own_prompt(folder: str | Path) -> str:
    """The prompt that a folder was written with."""
    if not os.path.isfile(Path(folder) / PROMPT):
        raise StorageError(f"{str(folder)!r} has no {PROMPT}: export a program, or give a prompt")
    return read_limited(Path(folder) / PROMPT, "prompt").decode(errors="replace")


def _tables(folder: Path, tokens: list[int], most: int | None, made: StockCheckpoint) -> tuple[list[int], float]:
    engine = TraceEngine(structure_in(folder, made))
    begin = time.perf_counter()
    written = engine.generate(tokens, most)
    return written, time.perf_counter() - begin


def _transformers(folder: Path, tokens: list[int], most: int | None, made: StockCheckpoint) -> tuple[list[int], float]:
    import torch
    from transformers import AutoModelForCausalLM

    with opening(folder, "cannot be opened by transformers"):
        model = AutoModelForCausalLM.from_pretrained(str(folder))
    prompt = torch.tensor([tokens])
    room = made.positions - len(tokens)
    begin = time.perf_counter()
    found = model.generate(prompt, attention_mask=torch.ones_like(prompt), do_sample=False, max_length=None,
                           max_new_tokens=room if most is None else min(most, room))
    return found[0, len(tokens):].tolist(), time.perf_counter() - begin
