"""The .asq examples: their output, words and steps on the interpreter, and the table of them in the docs."""

from __future__ import annotations

import re

import pytest

from punchcard.api import load
from punchcard.machines.von_neumann.isa import Image
from punchcard.machines.von_neumann.languages import brainfuck, images
from punchcard.machines.von_neumann.languages.asq import assembler as asq
from punchcard.machines.von_neumann.machine import VonNeumannMachine
from punchcard.machines.von_neumann.oracle import ImageInterpreter, run
from tests.cases import EXAMPLES, ROOT

FOLDER = EXAMPLES / "von_neumann"
DOCS = (ROOT / "docs" / "asq-language.md").read_text()
ASK, GO = b"A secret word: ", b"Guess a number from 0 to 99.\n"

# file -> (input, output)
EXPECTED: dict[str, tuple[bytes, bytes]] = {
    "hello.asq": (b"", b"Hello from a transformer.\n"),
    "echo.asq": (b"abc", b"abc"),
    "primes.asq": (b"", b"2\n3\n5\n7\n11\n13\n17\n19\n23\n29\n"),
    "sort.asq": (b"5 3 -7 30000 0 5", b"-7\n0\n3\n5\n5\n30000\n"),
    "factorial.asq": (b"", b"1\n2\n6\n24\n120\n720\n5040\n"),
    "guess.asq": (b"me\n50\n10\n20\n19\n", ASK + GO + b"Lower.\nHigher.\nLower.\nRight! Guesses: 4\n"),
    "self.asq": (b"", b"Hi"),
    "quine.asq": (b"", (FOLDER / "quine.asq").read_bytes()),
}


def example(name: str) -> Image:
    return load(FOLDER / name, Image)


def ran(image: Image, input: bytes = b"", memory: int | None = None, max_steps: int = 10_000_000) -> ImageInterpreter:
    done = run(image, input=input, memory=memory or len(image), max_steps=max_steps)
    assert done.stop == "halted", done.fault
    return done


def test_every_example_is_listed() -> None:
    assert {path.name for path in FOLDER.glob("*.asq")} == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_output_and_the_figures_in_the_docs(name: str) -> None:
    image = example(name)
    input, output = EXPECTED[name]
    done = ran(image, input)
    assert done.output == output
    row = re.search(rf"^\| `{name}` \|.*\| (\d+) \| (\d+) \|$", DOCS, re.MULTILINE)
    assert row is not None
    assert tuple(map(int, row.groups())) == (len(image), done.steps)


@pytest.mark.parametrize(("image", "input"), [
    (example("hello.asq"), b""),
    (example("echo.asq"), b"abc"),
    (brainfuck.assemble(",[+.,]", tape=1), b"abc"),
    (asq.assemble("@load p x; @call f; @store x p; @out x; @jlt x p f; @halt; . f:0; @inc x; @return f; . x:0 p:p"), b""),
], ids=["hello.asq", "echo.asq", "brainfuck", "macros"])
def test_on_the_transformer(image: Image, input: bytes) -> None:
    """In a memory of just their size, with the same output, steps and memory as the interpreter."""
    expected = ran(image, input)
    machine = VonNeumannMachine(memory=len(image))
    result = machine.run(image, input=input, max_steps=1_000)
    assert (result.halted, result.output, result.steps) == (True, expected.output, expected.steps)
    assert list(machine.read(result.card).memory) == expected.cells


def test_every_example_says_what_it_does() -> None:
    for path in FOLDER.glob("*.asq"):
        assert path.read_text().startswith("# "), path


def test_echo_of_all_bytes() -> None:
    data = bytes(range(256))
    assert ran(example("echo.asq"), data).output == data


@pytest.mark.parametrize("numbers", [
    [], [7], [3, 2, 1], [-1, -2, 0, 5, 5, -1], list(range(16, 0, -1)), [i * 7 % 40 for i in range(20)]])
def test_sort(numbers: list[int]) -> None:
    done = ran(example("sort.asq"), "\n".join(map(str, numbers)).encode())
    assert done.output == "".join(f"{n}\n" for n in sorted(numbers[:16])).encode()


def test_primes_up_to_another_limit() -> None:
    text = (FOLDER / "primes.asq").read_text()
    assert text.count("limit:30") == 1
    assert ran(asq.assemble(text.replace("limit:30", "limit:2"))).output == b"2\n"
    primes = [n for n in range(2, 61) if all(n % d for d in range(2, n))]
    assert ran(asq.assemble(text.replace("limit:30", "limit:60"))).output.split() == [b"%d" % n for n in primes]


@pytest.mark.parametrize("word", ["a", "transformer", "", "zzzzzzzzzzzz"])
def test_guess(word: str) -> None:
    """Every word hides a number; its direction is told, and the guesses are counted."""
    secret = 0
    for character in word.encode():
        secret = (2 * secret + character) % 100
    guesses = [g for g in (0, 99, 50, secret - 1, secret + 1) if g != secret] + [secret]
    input = f"{word}\n" + "".join(f"{g}\n" for g in guesses)
    answers = "".join("Higher.\n" if g < secret else "Lower.\n" for g in guesses[:-1])
    done = ran(example("guess.asq"), input.encode())
    assert done.output == ASK + GO + f"{answers}Right! Guesses: {len(guesses)}\n".encode()


def test_guess_ends_with_its_input() -> None:
    assert ran(example("guess.asq"), b"abc").output == ASK
    assert ran(example("guess.asq"), b"abc\n").output == ASK + GO


def hosted(guest: Image) -> Image:
    """The interpreter with another image behind it."""
    host = asq.listing((FOLDER / "self.asq").read_text())
    return Image(host.words[: host.labels["guest"]] + guest.words)


@pytest.mark.parametrize("name", ["hello.asq", "echo.asq", "factorial.asq", "sort.asq", "reverse.bf"])
def test_the_interpreter_runs_the_others(name: str) -> None:
    input = EXPECTED[name][0] if name in EXPECTED else b"abc"
    guest = example(name)
    assert ran(hosted(guest), input).output == ran(guest, input).output


def test_the_interpreter_runs_itself() -> None:
    assert ran(hosted(example("self.asq"))).output == b"Hi"
    assert ran(hosted(hosted(example("echo.asq"))), b"ab").output == b"ab"


def test_the_interpreter_fetches_an_instruction_whole() -> None:
    """An instruction that changes its own jump still takes the old one; the new one would halt."""
    guest = asq.assemble("large here here:good; @halt; good: G (-1); @halt; . large:100 G:'G'")
    assert ran(guest).output == b"G"
    assert ran(hosted(guest)).output == b"G"


@pytest.mark.parametrize("text", re.findall(r"(?:^    .*\n)+", DOCS, re.MULTILINE))
def test_the_texts_in_the_docs_are_understood(text: str) -> None:
    if text.lstrip().startswith("# prints Hi"):
        assert ran(images.parse(text)).output == b"Hi"
    elif "statement" not in text:  # the grammar
        asq.assemble(text)
