"""Brainfuck on the one-memory machine, compared with a plain interpreter of Brainfuck."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from punchcard.api import load
from punchcard.errors import ProgramError
from punchcard.machines.von_neumann.isa import Image
from punchcard.machines.von_neumann.languages import brainfuck
from punchcard.machines.von_neumann.languages.asq import assembler as asq
from punchcard.machines.von_neumann.languages.options import Cells, EndOfInput
from punchcard.machines.von_neumann.oracle import ImageInterpreter, run
from tests.cases import EXAMPLES, ROOT, assert_error_at
from tests.command_line import assert_refused, invoke


@dataclass(frozen=True)
class BrainfuckOutcome:
    """What was written, the tape, and whether the program came to its end."""

    output: bytes
    tape: tuple[int, ...]
    halted: bool


def run_plainly(text: str, *, input: bytes = b"", tape: int = 100, modulus: int = 256, end_of_input: int | None = 0,
                max_steps: int = 100_000) -> BrainfuckOutcome:
    """Without SUBLEQ; at the end of the input a cell becomes `end_of_input`, or stays as it is (None)."""
    program = [command for command in text if command in "+-<>.,[]"]
    partner: dict[int, int] = {}
    open_loops: list[int] = []
    for place, command in enumerate(program):
        if command == "[":
            open_loops.append(place)
        elif command == "]":
            start = open_loops.pop()
            partner[start], partner[place] = place, start
    cells, pointer, place, steps = [0] * tape, 0, 0, 0
    written, rest = bytearray(), list(reversed(input))
    while place < len(program) and steps < max_steps:
        command = program[place]
        if command in "+-":
            cells[pointer] = (cells[pointer] + (1 if command == "+" else -1)) % modulus
        elif command in "<>":
            pointer += 1 if command == ">" else -1
            if not 0 <= pointer < tape:
                raise ProgramError(f"the pointer is at {pointer}, and the tape has the cells 0 to {tape - 1}")
        elif command == ".":
            written.append(cells[pointer] & 0xFF)
        elif command == ",":
            if rest:
                cells[pointer] = rest.pop()
            elif end_of_input is not None:
                cells[pointer] = end_of_input % modulus
        elif (command == "[") == (cells[pointer] == 0):
            place = partner[place]
        place, steps = place + 1, steps + 1
    return BrainfuckOutcome(bytes(written), tuple(cells), place >= len(program))


TAPE = 12
END: dict[EndOfInput, int | None] = {"0": 0, "-1": -1, "unchanged": None}


def ran(text: str, input: bytes = b"", *, max_steps: int = 200_000, bits: int = 16, cells: Cells = "byte",
        eof: EndOfInput = "0", tape: int = TAPE) -> ImageInterpreter:
    """A run in a memory that ends with the tape."""
    image = brainfuck.assemble(text, cells=cells, eof=eof, tape=tape)
    return run(image, input=input, word_bits=bits, memory=len(image), max_steps=max_steps)


@st.composite
def programs(draw: st.DrawFn, depth: int = 3) -> str:
    """Programs that stay on the tape: every piece ends where it began, and what is between moves back."""
    piece = st.one_of(st.text("+-", max_size=6), st.sampled_from(
        [".", ",", "[-]", "[+]", "-" * 300 + ".", "+" * 260, "[->+>-<<]", "[>++<+]"]))
    parts = []
    for _ in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(["plain", "plain", "away", "loop"])) if depth else "plain"
        if kind == "plain":
            parts.append(draw(piece))
        elif kind == "away":
            distance = draw(st.integers(1, 2))
            parts.append(">" * distance + draw(programs(depth=depth - 1)) + "<" * distance)
        else:
            parts.append("[" + draw(programs(depth=depth - 1)) + draw(st.sampled_from("+-")) + "]")
    return "".join(parts)


@given(programs(), st.binary(max_size=8), st.sampled_from(["byte", "word"]), st.sampled_from(["0", "-1", "unchanged"]))
def test_agrees_with_the_interpreter(text: str, input: bytes, cells: Cells, eof: EndOfInput) -> None:
    """Output and tape. The last move makes the machine store the current cell."""
    text += ">.<"
    modulus = 256 if cells == "byte" else 1 << 16
    expected = run_plainly(text, input=input, tape=TAPE, modulus=modulus, end_of_input=END[eof], max_steps=3_000)
    done = ran(text, input, cells=cells, eof=eof)
    if expected.halted:
        assert done.stop == "halted"
        assert done.output == expected.output
        assert tuple(cell % modulus for cell in done.cells[-TAPE:]) == expected.tape
    else:  # loops for ever, or for long: what was written so far is the beginning
        shorter = min(len(done.output), len(expected.output))
        assert done.output[:shorter] == expected.output[:shorter]


@pytest.mark.parametrize("bits", [10, 12, 16, 24])
def test_cells_are_bytes_on_any_word(bits: int) -> None:
    """255 + 1 and 0 - 1, seen by a loop, which is entered or not, and by the output."""
    wraps = "-.+" + "[>+<[-]]" + ">" + "+" * 65 + "."        # 255 written; back at 0 the loop is not entered: 'A'
    assert ran(wraps, bits=bits).output == b"\xffA"
    counts = "-[>+<-]>" + "."                                 # 0 - 1 counts down from 255
    assert ran(counts, bits=bits).output == b"\xff"
    beyond = "+" * 600 + "[->+<]>."
    assert ran(beyond, bits=bits).output == bytes([600 % 256])


def test_cells_as_words() -> None:
    """256 is not 0 there: the loop is entered."""
    text = "+" * 256 + "[>" + "+" * 65 + ".<[-]]"
    assert ran(text, cells="word").output == b"A"
    assert ran(text, cells="byte").output == b""


@pytest.mark.parametrize(("eof", "output"), [("0", b"ab\0"), ("-1", b"ab\xff"), ("unchanged", b"abb")])
def test_the_end_of_the_input(eof: EndOfInput, output: bytes) -> None:
    assert ran(",.,.,.", b"ab", eof=eof).output == output


def test_before_the_tape() -> None:
    """The machine reports an address that it does not have, and nothing was changed."""
    image = brainfuck.assemble("+<+", tape=3)
    below = run(image, memory=len(image))
    assert below.stop == "fault"
    assert below.fault is not None
    assert below.fault.address == (1 << 16) - 2
    code = [word % (1 << 16) for word in image.words[:9]]
    assert below.cells[:9] == code
    full = run(image)
    assert (full.stop, full.program_counter, full.output) == ("halted", (1 << 16) - 2, b"\npointer off the tape\n")
    assert full.cells[:9] == code


def test_beyond_the_tape() -> None:
    text = "+>+>+>+."
    image = brainfuck.assemble(text, tape=3)
    beyond = run(image, memory=len(image))
    assert beyond.stop == "fault"
    assert beyond.fault is not None
    assert beyond.fault.address == len(image)
    assert run(image).output == b"\1", "all memory that is left is tape"


@pytest.mark.parametrize("bits", [10, 12])
def test_a_tape_longer_than_a_positive_word(bits: int) -> None:
    """The run ends before the pointer reaches the port at the end of the memory."""
    done = run(brainfuck.assemble("+[>+]", tape=1), word_bits=bits, memory=1 << bits)
    assert done.output == b"\npointer off the tape\n"
    tape = asq.listing(brainfuck.translate("+[>+]", tape=1)).labels["tape"]
    assert [cell % 256 for cell in done.cells[tape : tape + (1 << bits - 1) - 1]] == [1] * ((1 << bits - 1) - 1)


def test_every_first_cell_is_reached_from_the_right() -> None:
    assert ran(">>><<<+++.").output == b"\3"
    assert ran(">>><<<<.").stop == "fault"


@pytest.mark.parametrize(("text", "line", "column", "message"), [
    ("+++\n++[>+", 2, 3, r"no '\]' closes this '\['"),
    ("[[]", 1, 1, r"no '\]' closes this '\['"),
    ("[]]", 1, 3, r"no '\[' opens the loop that this '\]' closes"),
    ("text ] [", 1, 6, r"no '\[' opens the loop"),
])
def test_brackets_match(text: str, line: int, column: int, message: str) -> None:
    assert_error_at(line, column, message, brainfuck.assemble, text)


@pytest.mark.parametrize(("options", "message"), [
    ({"cells": "bit"}, "cells='bit': cells are 'byte' or 'word'"),
    ({"eof": "none"}, "eof='none': the end of the input is read as '0', '-1', 'unchanged'"),
    ({"tape": 0}, "tape=0: a tape has at least one cell"),
])
def test_options(options: dict[str, object], message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        brainfuck.assemble("+", **options)  # type: ignore[arg-type]


def test_a_program_without_commands_halts() -> None:
    assert ran("nothing").stop == "halted"


def test_runs_are_merged_and_simple_loops_are_one_step() -> None:
    steps = brainfuck.multiplied(brainfuck.parse("+++-->><<<[-]+-[->++>-<<][>[-]<]"))
    assert [(s.command, s.count, s.adds) for s in steps] == [
        ("+", 1, ()), (">", -1, ()), ("*", 0, ()), ("*", 0, ((1, 2), (2, -1))),
        ("[", 0, ()), (">", 1, ()), ("*", 0, ()), (">", -1, ()), ("]", 0, ())]
    assert ran("+" * 9 + "[-]", max_steps=10).stop == "halted"


def test_deep_nesting() -> None:
    assert ran("[" * 3000 + "]" * 3000).stop == "halted"


def test_options_on_the_command_line(tmp_path: Path) -> None:
    source, image = tmp_path / "x.bf", tmp_path / "x.dec"
    source.write_text(",.")
    assert invoke("asm", source, "-o", image, "--eof", "-1", "--tape", "5").exit_code == 0
    program = load(image, Image)
    assert program == Image(brainfuck.assemble(",.", eof="-1", tape=5).words, str(image))
    assert run(program).output == b"\xff"
    (tmp_path / "y.asq").write_text("1 2 3")
    assert_refused("--eof is not for .asq programs", "asm", tmp_path / "y.asq", "--eof", "0")


DOCS = (ROOT / "docs" / "brainfuck.md").read_text()


@pytest.mark.parametrize(("name", "input", "output"), [
    ("hello.bf", b"", b"Hi there!\n"),
    ("reverse.bf", b"abcdef", b"fedcba"),
])
def test_examples(name: str, input: bytes, output: bytes) -> None:
    path = EXAMPLES / "von_neumann" / name
    image = load(path, Image)
    done = run(image, input=input, memory=len(image))
    assert (done.output, done.stop) == (output, "halted")
    assert run_plainly(path.read_text(), input=input).output == output
    assert re.search(rf"^\| `{name}` \|.*\| {len(image)} \| {done.steps} \|$", DOCS, re.MULTILINE)


@pytest.mark.parametrize(("row", "without", "more"), [
    ("a run of `+` and `-`", "+.", "+.+++--"),
    ("a run of `>` that ends to the right", ">>.<.", ">>.<.>>"),
    ("a run of `<` that ends to the left", ">>.<.", ">>.<.<"),
    ("`.`", ".", ".."),
    ("`,`", ",", ",,"),
    ("`[-]`", "+.", "+.[-]"),
])
def test_sizes_in_the_docs(row: str, without: str, more: str) -> None:
    """Words and steps that a command adds to a program which has its constants already."""
    words = len(brainfuck.assemble(more)) - len(brainfuck.assemble(without))
    steps = ran(more, b"abc").steps - ran(without, b"abc").steps
    assert f"| {row} | {words} | {steps} |\n" in DOCS


def test_sizes_of_loops_in_the_docs() -> None:
    """A loop of one round, `[.[-]]`, has two tests and one way back."""
    one, two = brainfuck.assemble("+[.[-]]"), brainfuck.assemble("+[.[-]][.[-]]")
    assert len(two) - len(one) == 18 + 3 + 9 + 3
    assert ran("+[.[-]]").steps - ran("+.[-]").steps == 3 + 1 + 3
    labels = asq.listing(brainfuck.translate(">")).labels
    assert f"and the routine {labels['room'] + 1 - labels['move']}." in DOCS
    assert "| `[` | 18 | 3 |\n| `]` | 3 | 1 |\n" in DOCS
