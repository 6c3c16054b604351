"""Stock checkpoints with words of several bytes: a token for each byte, with carries between them."""

from __future__ import annotations

import json
import random
from itertools import islice
from pathlib import Path

import pytest

from punchcard.errors import ProgramError, SizeError
from punchcard.language_models.stock.byte_language import SubleqByteText
from punchcard.language_models.stock.checkpoint import open_checkpoint
from punchcard.language_models.stock.language import SubleqText
from punchcard.machines.subleq.isa import Halt, Program, Subleq
from tests.cases import EXAMPLES
from tests.command_line import invoke
from tests.random_programs import random_program
from tests.test_stock import engine, every_form, tokens_of

transformers = pytest.importorskip("transformers")
torch = pytest.importorskip("torch")

CORNERS = (0, 1, -1, 127, 128, 255, 256, -256, 65535, 65536, 1 << 23, -(1 << 31), (1 << 31) - 1)


def written(form: str, text: SubleqByteText, program: Program, most: int) -> list[str]:
    prompt = tokens_of(text, text.prompt(program).split())
    return [text.vocabulary()[token] for token in engine(form, text, 512).generate(prompt, most)]


@every_form
@pytest.mark.parametrize("bits", [24, 32])
def test_random_programs(form: str, bits: int) -> None:
    compare(form, bits, 2000)


@pytest.mark.soak
@every_form
@pytest.mark.parametrize("bits", [24, 32])
def test_many_random_programs(form: str, bits: int) -> None:
    compare(form, bits, 100_000)


def compare(form: str, bits: int, least: int) -> None:
    """The engine's tokens against the plain interpreter's, at least so many."""
    text, rng, tokens = SubleqByteText(bits, 8, 10), random.Random(5), 0
    while tokens < least:
        program = random_program(rng, bits, 8, 10)
        assert text.program(text.prompt(program)).memory == program.memory
        found = written(form, text, program, 400)
        assert found == list(islice(text.expected(program), len(found)))
        tokens += len(found)


def test_differences_at_the_corners() -> None:
    """Every carry between bytes, and every sign: all pairs of numbers at which a byte or the word turns over."""
    text = SubleqByteText(32, 8, 10)
    for a in CORNERS:
        for b in CORNERS:
            program = Program.create([Subleq(0, 1, 2), Halt(), Halt()], [a, b])
            found = written("llama", text, program, 99)
            assert found == list(text.expected(program)), (a, b)
            difference = (b - a + (1 << 31)) % (1 << 32) - (1 << 31)
            assert text.decoded(program, found).memory[1] == difference
            assert found[-2] == ("2:" if difference <= 0 else "1:")


def test_a_folder_with_words_of_32_bits(tmp_path: Path) -> None:
    place = tmp_path / "llama"
    invoke("export", EXAMPLES / "multiply.subleq", "--bits", "32", "--dtype", "float64", "--set", "a=123456",
           "--set", "b=3", "--positions", "256", "--to", "llama", "-o", place, status=0)
    assert open_checkpoint(place).text == SubleqByteText(32, 6, 5)
    told = json.loads(invoke("run", place, "--on", "stock", "--json").stdout)
    assert (told["agrees"], told["halted"], told["steps"], told["memory"][2]) == (True, True, 9, 370368)
    model = transformers.AutoModelForCausalLM.from_pretrained(place)
    tokenizer = transformers.AutoTokenizer.from_pretrained(place)
    given = tokenizer((place / "prompt.txt").read_text() + told["trace"], return_tensors="pt").input_ids
    size = len(told["trace"].split())
    with torch.no_grad():
        assert model(given).logits[0].argmax(-1)[-size - 1 : -1].tolist() == given[0, -size:].tolist()
    invoke("prove", place, "--on", "stock", status=0)


def test_what_is_refused() -> None:
    assert isinstance(SubleqText.of(SubleqByteText(24, 3, 3)), SubleqByteText)
    with pytest.raises(SizeError, match="words of 4 to 16 bits, or of 24 or 32, a token for each byte"):
        SubleqByteText(20, 4, 4)
    text = SubleqByteText(24, 2, 2)
    for prompt, message in (("0: halt @0 05 00 00+16 0:", r"'00' where byte 1 of a value is expected, such as 05\+8"),
                            ("0: #0 #1 @0 0:", "'@0' where an operand is expected: they are #0 to #1"),
                            ("0: halt @0 05 00+8 00+16", "where byte 1|a prompt ends with the label"),
                            ("0: halt @1 05 00+8 00+16 0:", "the prompt has no cell 0")):
        with pytest.raises(ProgramError, match=message):
            text.program(prompt)
