"""The playground's other languages: their words, errors and cards are Python's, bit by bit."""

from __future__ import annotations

import itertools
import json
import random
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from docs.draw.gallery import machines, turing

import punchcard
from punchcard.card.formats import as_array
from punchcard.errors import ProgramError, SourceError
from punchcard.machines.von_neumann.isa import Image
from punchcard.machines.von_neumann.languages import brainfuck
from punchcard.machines.von_neumann.languages.asq import assembler as asq
from punchcard.machines.von_neumann.machine import VonNeumannMachine
from punchcard.viewer.playground import gallery_file, write_playground
from tests.browsing import Watched, browser
from tests.image_cases import CASES
from tests.playgrounds import entries, read, run, to_the_end
from tests.test_asq import PIECES

EXAMPLES = Path(__file__).parent.parent / "examples"
ASQ = sorted((EXAMPLES / "von_neumann").glob("*.asq"))
BRAINFUCK = sorted((EXAMPLES / "von_neumann").glob("*.bf"))
TURING = sorted((EXAMPLES / "turing").glob("*.tm"))
WRONG_ASQ = [
    "1 2 3\nx lop y\nloop: . 1\nx:y:0", "x: 1; x: 2", ". [0]", ". [x]", ". [5", "1 (2+3", "1 2) 3", "1 + ; 2", "1 * 2",
    '. "Hi', '. "a\nb" 1 )', '. "a\n\nb" x', ". 'ab'", '. "\\q"', ". 'é'", ". 12ab", "1 2 x:", "1 2 x:; 3", "1 2 x:\n@pool",
    "5: 1", "1 =?", "x =5", "=5", "@pool; @pool", "@pool 1", "@mo a b", "@mov a", "@def f a\n@f a\n@end\n@f 1", "@def f\n",
    "@end", "@def mov\n1\n@end", ". 70000", ". 1\n. 65535+1", "", "# nothing"]
WRONG_BRAINFUCK = ["+[\n>.", "+\n]", "[[]", "é]\r\n["]
WRONG_TURING = ["a 0 -> 1 R", "a 0 -> 1 X b", "tape 01\na 0 -> 0 S a", "a 0 -> 0 S a\na 0 -> 1 S b", "tape _[]_", "x",
                "; nothing", "a [ -> 0 S a", "a 10 -> 1 R b"]


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    file = tmp_path_factory.mktemp("playground") / "playground.html"
    write_playground(file)
    with browser() as found:
        page = Watched(found)
        page.page.goto(file.as_uri())
        page.page.wait_for_selector(".stage [data-moment]")
        yield page


def compare(found: Any, text: str, assemble: Callable[[str], Image]) -> None:
    """Equal words and lines, or equal words about what is wrong."""
    if "problem" not in found:
        image = assemble(text)
        assert found["words"] == list(image.words), text
        assert found["lines"] == list(image.lines), text
        assert dict(found["labels"]) == dict(image.labels), text
        return
    with pytest.raises(ProgramError) as refused:
        assemble(text)
    assert found["problem"] == str(refused.value).split("; use words of")[0], text  # the page has no options
    if isinstance(refused.value, SourceError):
        *_, line, caret = found["shown"].split("\n")
        rows = text.replace("\r\n", "\n").split("\n")
        assert (caret.index("^"), line) == (refused.value.column - 1, rows[refused.value.line - 1]), text


def test_asq_words_are_pythons(watched: Watched) -> None:
    drawn = random.Random(7)
    scraps = ["".join(drawn.choices([*PIECES, " ", " "], k=drawn.randrange(1, 14))) for _ in range(400)]
    texts = [*(path.read_text() for path in ASQ), *WRONG_ASQ, *scraps]
    for text, found in zip(texts, read(watched, "asq", texts), strict=True):
        compare(found, text, lambda text: asq.assemble(text, word_bits=16))


def test_brainfuck_words_are_pythons(watched: Watched) -> None:
    drawn = random.Random(8)
    scraps = ["".join(drawn.choices("+-<>.,[]  \nx", k=drawn.randrange(1, 30))) for _ in range(150)]
    texts = [*(path.read_text() for path in BRAINFUCK), *WRONG_BRAINFUCK, *scraps, "", "+++[->++>+<<]>[-<+>]"]
    for text, found in zip(texts, read(watched, "brainfuck", texts), strict=True):
        compare(found, text, brainfuck.assemble)


def test_errors_of_brainfuck_are_at_their_place(watched: Watched) -> None:
    """Not in the assembly that it is translated to."""
    text = "+.\n" * 2000
    problem = read(watched, "brainfuck", [text])[0]
    line = int(problem["problem"].removeprefix("line ").split(",")[0])
    assert problem["problem"].endswith(": the program has more than 16384 cells")
    assert 1 < line <= 2000
    assert problem["shown"].splitlines()[0] == "+."


def test_a_caret_stands_below_its_place(watched: Watched) -> None:
    """Where tabs are, the line below has tabs too."""
    shown = read(watched, "subleq", [".data\na\t1\n.code\n\tsubleq\ta,\tbb\n"])[0]["shown"]
    line, caret = shown.splitlines()
    assert line.index("bb") == caret.index("^")
    assert [i for i, letter in enumerate(caret) if letter == "\t"] == [i for i, letter in enumerate(line) if letter == "\t"]


def test_turing_programs_are_the_examples(watched: Watched) -> None:
    texts = [*(path.read_text() for path in TURING), *WRONG_TURING]
    for text, found in zip(texts, read(watched, "turing", texts), strict=True):
        if "problem" in found:
            with pytest.raises(ProgramError) as refused:
                machines().assemble(text, ".tm")
            assert found["problem"] == str(refused.value)
            continue
        program = machines().assemble(text, ".tm")
        rules = {tuple(map(int, key.split())): tuple(rule[name] for name in ("write", "move", "state"))
                 for key, rule in found["rules"]}
        assert (found["states"], found["symbols"], rules) == ([*program.states], [*program.symbols], program.rules)
        assert (found["tape"], found["head"]) == (program.begin.tape, program.begin.head)


def check_cards(found: Any, machine: Any, program: object) -> None:
    """The first card is Python's, and every loop is the dense engine's."""
    columns = machine.layout.columns
    assert np.array_equal(entries(found["cards"][0][0], columns), as_array(machine.punch(program)))
    for (before, _), (_, after) in itertools.pairwise(found["cards"]):
        card, made = entries(before, columns), entries(after, columns)
        assert np.array_equal(made, as_array(machine.model(torch.from_numpy(np.ascontiguousarray(card)))))


@pytest.mark.parametrize(("name", "memory", "loops", "input"), [
    ("hello.asq", 64, 12, ""), ("echo.asq", 64, 16, "hi\n"), ("primes.asq", 256, 5, "")])
def test_cards_of_images_are_the_dense_engines(watched: Watched, name: str, memory: int, loops: int, input: str) -> None:
    """Loops with input and output too; then the run ends as it does in Python."""
    text = (EXAMPLES / "von_neumann" / name).read_text()
    machine = VonNeumannMachine(word_bits=16, memory=memory, precision="float64")
    program = asq.assemble(text)
    found = run(watched, text, "asq", input=input, moments=range(0, 4 * (loops + 1), 4))
    assert len(found["cards"]) == loops + 1
    check_cards(found, machine, program)
    if memory == 64:
        report = punchcard.run(program, machine, input=input.encode())
        ended = to_the_end(watched)
        assert (ended["loops"], ended["ended"]) == (report.result.loops, "halted")
        assert ended["output"] == report.result.output.decode()
    assert not watched.problems


def test_images_end_as_in_python(watched: Watched) -> None:
    """Ports in every combination, faults and halts."""
    for case in CASES:
        if case.dialect != "standard" or case.max_steps is not None or b"\xff" in case.input or b"\x80" in case.input:
            continue
        text = "\n".join(f". ({word})" for word in case.words)
        machine = VonNeumannMachine(word_bits=16, memory=64, precision="float64")
        result = machine.run(asq.assemble(text), input=case.input, max_steps=2000)
        run(watched, text, "asq", input=case.input.decode())
        if not result.halted and result.fault is None:
            continue
        ended = to_the_end(watched)
        assert ended["loops"] == result.loops, case
        assert ended["ended"] == ("halted" if result.halted else "fault"), case
        assert (ended["message"] or None) == (str(result.fault) if result.fault else None), case


def test_cards_of_turing_machines_are_the_dense_engines(watched: Watched) -> None:
    for path in TURING:
        program = machines().assemble(path.read_text(), ".tm")
        machine = machines().build(program)
        found = run(watched, path.read_text(), "turing", moments=range(0, 2 * 9, 2))
        assert found["labels"] == {rows: list(names) for rows, names in machine.labels(program).items()}
        check_cards(found, machine, program)
        ended = to_the_end(watched)
        assert ended["loops"] == machine.run(program).loops
    assert not watched.problems


def test_the_recorded_run_ends_with_its_first_output() -> None:
    shipped = json.loads(zlib.decompress(gallery_file("hello_c.json.z")))
    *before, last = [state["output"] for state in shipped["states"]]
    assert last.startswith("H")
    assert not any(before)
    assert any(listed["word"] for listed in shipped["about"]["program"]["instructions"]), "a disassembly"


def test_shipped_machines_are_the_examples() -> None:
    """The gallery has the weights of a machine outside the package: they are what that file builds."""
    shipped = json.loads(zlib.decompress(gallery_file("turing.json.z")))
    assert shipped == json.loads(json.dumps(turing())), "run python -m docs.draw.gallery turing"
