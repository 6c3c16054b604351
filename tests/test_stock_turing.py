"""A machine of one's own as a stock checkpoint: the Turing machine of the examples, by `generate`."""

from __future__ import annotations

import importlib
import json
import random
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

import punchcard
from punchcard.errors import ProgramError
from punchcard.language_models.stock.language import split_words
from tests.cases import EXAMPLES
from tests.command_line import invoke
from tests.random_programs import random_turing_text
from tests.test_stock import engine, every_form, tokens_of

transformers = pytest.importorskip("transformers")
torch = pytest.importorskip("torch")

FOLDER = EXAMPLES / "turing"


@pytest.fixture(autouse=True)
def examples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))


def example(name: str) -> Any:
    return importlib.import_module(name)


def command(*args: object, status: int | None = None) -> Result:
    return invoke(*args, status=status, of=punchcard.command_line(example("turing").TuringMachine))


@every_form
def test_random_machines(form: str) -> None:
    """The engine's tokens, from the weights, against the plain interpreter: all moves, both edges, missing rules."""
    text, rng = example("turing_stock").TuringText(3, 3, 6), random.Random(1)
    ends = set[str]()
    for _ in range(12):
        program = example("turing").assemble(random_turing_text(rng, 3, 3, 6))
        prompt = text.prompt(program)
        assert text.program(prompt).rules == program.rules
        expected = list(islice(text.expected(program), 120))
        tokens = engine(form, text, 256).generate(tokens_of(text, split_words(prompt)), 120)
        assert [text.vocabulary()[token] for token in tokens] == expected
        if expected[-1] == "halt":
            ends.add(expected[-2] if len(expected) > 1 else split_words(prompt)[-1])
            assert text.decoded(program, expected).halted
    assert ends >= {"@-1", "@6"}
    assert len(ends) > 2


@every_form
def test_a_palindrome_by_generate(form: str, tmp_path: Path) -> None:
    place = tmp_path / form
    command("export", FOLDER / "palindrome.tm", "--to", form, "--positions", "400", "-o", place, status=0)
    told = json.loads(command("run", place, "--on", "stock", "--json").stdout)
    assert (told["agrees"], told["halted"], told["steps"], told["program_counter"]) == (True, True, 36, 4)
    prompt = (place / "prompt.txt").read_text()
    assert "; states 0 first, 1 seek_a" in prompt
    assert prompt.strip().endswith("0: @1")
    write = transformers.pipeline("text-generation", model=str(place))
    words = write(prompt, return_full_text=False, max_new_tokens=9, max_length=None)[0]["generated_text"].split()
    assert words == told["trace"].split()[:9]
    given = write.tokenizer(prompt + told["trace"], return_tensors="pt").input_ids
    with torch.no_grad():                                                  # the others in one pass
        best = write.model(given).logits[0].argmax(-1)
    assert best[-len(told["trace"].split()) - 1 : -1].tolist() == given[0, -len(told["trace"].split()):].tolist()
    proven = command("prove", place, "--on", "stock", status=0)
    assert "layer 3, head 1  attends to the latest column with the 8 bits that it asks for" in proven.stdout
    unknown = invoke("run", place, "--on", "stock").stderr
    assert "unknown machine 'turing'" in unknown
    assert "one of your own is known to the file that defines it" in unknown


def test_a_prompt_that_is_wrong() -> None:
    text = example("turing_stock").TuringText(2, 2, 2)
    good = text.prompt(example("turing").assemble("tape [1]_\na 1 -> _ R b\n"))
    for wrong, message in ((good.replace("@1 0", "@0 0"), "the prompt has no square @1"),
                           (good.rsplit("\n", 1)[0], "where a label is expected"),
                           (good.replace(">1", "7"), "'7 0:' where a goal is expected, such as >0")):
        with pytest.raises(ProgramError, match=message):
            text.program(wrong)
