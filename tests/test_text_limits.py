"""Texts that are long, deep or made to grow: each is refused soon, in one short line, or read.

Megabytes take so little time here because tokens are made as they are taken, and because names, tokens, cells, uses,
depth and terms have limits. Some limits are lowered so that the tests are quick; the real ones are in the soak.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from punchcard.errors import ProgramError, SourceError, did_you_mean, shortened
from punchcard.machines.fleq.text.assembler import assemble as assemble_fleq
from punchcard.machines.registry import built_in
from punchcard.machines.subleq.text import assemble as assemble_subleq
from punchcard.machines.von_neumann.isa import DIALECTS, MAX_MEMORY, Image
from punchcard.machines.von_neumann.languages import brainfuck, images
from punchcard.machines.von_neumann.languages.asq.assembler import assemble
from tests.cases import file_with, soaked
from tests.command_line import assert_refused, invoke

LONG = 10_000_000
SECONDS = 5.0  # of this process, and far more than any of these takes
ASQ = "punchcard.machines.von_neumann.languages.asq"


def refused(tmp_path: Path, extension: str, text: str) -> str:
    """The message for a text: one short line, soon."""
    path = file_with(tmp_path / f"x{extension}", text)
    start = time.process_time()
    with pytest.raises(ProgramError) as caught:
        built_in().load(path)
    assert time.process_time() - start < SECONDS
    message = str(caught.value).replace(str(path), f"x{extension}")
    assert len(message) < 400
    assert "\n" not in message
    return message


@pytest.mark.parametrize(("extension", "before", "piece", "after", "expected"), [
    (".asq", ". ", "a", "", "line 1, column 3: 'a{40}...' has LONG characters: the most is 255"),
    (".asq", ". ", "1", "", "line 1, column 3: '1{40}...' has LONG digits: the most is 40"),
    (".asq", '. "', "a", '"', "line 1, column 3: the program has more than 262,144 cells"),
    (".asq", '. "', "a", "", 'line 1, column 3: "a{39}... is not closed'),
    (".asq", '. "', "\\", "", "is not closed"),
    (".asq", ". ", "(", "", "parentheses are at most 100 deep"),
    (".asq", ". 1", " ", "*", "line 1, column LONG+4: unexpected character"),
    (".asq", "@", "a", "", "'@a{39}...' has LONG+1 characters"),
    (".asq", "", "#", "", "the program is empty"),
    (".subleq", ".data\n", "x", " 1", "'x{40}...' has LONG characters"),
    (".subleq", ".data\nx ", "1", "", "has LONG digits"),
    (".subleq", ".data\nx ", "-", "", "found '-': a value must be"),
    (".subleq", ".code\n", "a: ", "halt", "label 'a' is declared twice"),
    (".minsky", "add ", "y", "", "has LONG characters"),
    (".fleq", ".data\n", "x", " scalar 1", "has LONG characters"),
    (".fleq", ".data\nx scalar ", "1", "", "'1{40}...' is beyond the floating-point numbers"),
    (".fleq", ".data\nx scalar ", "1e+", "", "'.*...' is not a number"),
    (".fleq", ".data\nx scalar ", "file(", "", "found 'file'"),
    (".fleq", ".data\nx scalar file(", "a", ".npy)", "has LONG+10 characters"),
    (".fleq", ".data\nx matrix 1x1 ", ";", "", "row 1 of 'x' has 0 values"),
    (".dec", "", "a", "", "'a{40}...' is not a decimal word"),
    (".dec", "1", ",", "", "there is no word before this ','"),
    (".bf", "", "[", "", "line 1, column 262145: the program has more than 262,144 commands"),
    (".bf", "", "]", "", "line 1, column 1: no '\\[' opens"),
    (".json", "", "[", "", "not a program as `punchcard asm` writes it"),
    (".json", '{"isa":"', "a", '"}', "a program for 'a{40}...', not for 'subleq'"),
])
@pytest.mark.parametrize("length", [LONG // 10, soaked(LONG)])
def test_megabytes(
    tmp_path: Path, extension: str, before: str, piece: str, after: str, expected: str, length: int,
) -> None:
    """One here, and ten in `make soak`."""
    message = refused(tmp_path, extension, before + piece * (length // len(piece)) + after)
    numbered = re.sub(r"LONG(\+\d+)?", lambda found: str(length + int(found[1] or 0)), expected)
    assert re.search(numbered, message), message


@pytest.mark.parametrize(("extension", "text"), [
    (".asq", ". " + "1 " * 2000), (".asq", "1\n" * 2000), (".asq", "#\n" * 2000), (".asq", ";" * 2000),
    (".asq", ". " + "-" * 2000),
    (".subleq", ".data\nx " + "0x1 " * 2000), (".subleq", ".data\nx 1\n.code\n" + "subleq x, x\n" * 400),
    (".minsky", "add x\n" * 2000), (".fleq", ".data\nx vector 2000 " + "- 1 " * 2000),
    (".fleq", ".data\nx scalar 1\n.code\nx = add(" + "x, " * 2000 + ")"),
])
def test_a_text_has_so_many_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, extension: str, text: str) -> None:
    monkeypatch.setattr("punchcard.machines.source.MAX_TOKENS", 1000)
    assert "the text has more than 1,000 words, numbers and marks" in refused(tmp_path, extension, text)


def test_long_rows_of_numbers_are_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where some of them have to be looked at one by one; and they mean what they mean as tokens."""
    monkeypatch.setattr("punchcard.machines.source.MAX_TOKENS", 1000)
    values = assemble_fleq(".data\nx vector 200000 " + "1 -2.5 .5e-3 7. " * 50_000 + "\n.code\nhalt").values["x"]
    assert values.ravel().tolist() == [1, -2.5, 0.0005, 7] * 50_000
    text = ".range 1e200\n.data\nx matrix 2x4 1e-300 - 2 3 +4;5 1e99 1e100 6# end\n.code\nhalt"
    assert assemble_fleq(text).values["x"].tolist() == [[1e-300, -2, 3, 4], [5, 1e99, 1e100, 6]]
    with pytest.raises(SourceError, match=r"line 2, column 16: '1e999' is beyond the floating-point numbers"):
        assemble_fleq(".data\nx vector 3 1 2 1e999\n.code\nhalt")
    program = assemble_subleq(".data\nx " + "1, -2 ,+3 4 " * 50_000 + "0x10 'a', 5,;6\n.code\nhalt")
    assert program.memory == (1, -2, 3, 4) * 50_000 + (16, 97, 5)
    with pytest.raises(SourceError, match=r"line 2, column 5: found ',': a value must be"):
        assemble_subleq(".data\nx 1,,2\n.code\nhalt")


def levels(count: int, body: str, operand: str = "") -> str:
    """Macros m0, m1, ..., each of which uses the one before it."""
    parameter = " x" if operand else ""
    first = f"@def m0{parameter}; {'x 1' if operand else '1 2 3'}; @end\n"
    return first + "".join(f"@def m{i}{parameter}; {body.format(i - 1)} {operand}; @end\n" for i in range(1, count))


def test_macros_that_use_each_other_deeply() -> None:
    with pytest.raises(SourceError, match="macros use each other at most 100 deep"):
        assemble(levels(2001, "@m{0}") + "@m2000")
    with pytest.raises(SourceError, match="macros use each other at most 100 deep"):
        assemble(levels(2001, "@m{0}", "=x") + "@m2000 y; . y:1")
    assert len(assemble(levels(100, "@m{0}") + "@m99")) == 3


def test_sums_that_double_stay_small() -> None:
    """Like terms are one term, and a constant within a constant is a number in a table."""
    text = levels(25, "@m{0}", "x+x") + "@m24 y; . y:1"
    assert assemble(text).words == (3 << 24, 1, 3, 1)
    nested = assemble(levels(25, "@m{0}", "=x+x") + "@m24 y; . y:1").words
    assert nested[:4] == (27, 1, 3, 1)
    assert nested[4:] == (6, *(2 * cell for cell in range(4, 27))), "each holds twice the address of the one before"
    both = "@def m0 x y; x 1; y 1; @end\n"
    both += "".join(f"@def m{i} x y; @m{i - 1} =x+y =x-y; @end\n" for i in range(1, 60))
    assert len(assemble(both + "@m59 a b; . a:1 b:2")) == 6 + 2 + 2 * 59


@pytest.mark.parametrize(("limit", "text", "message"), [
    ("assembler.MAX_TERMS", ". a:0 b:0 c:0\n@def m x; " + "x 1; " * 200 + "@end\n@m a+b+c", "make more than 300 labels"),
    ("assembler.MAX_TERMS", "@def m; " + "".join(f"l{i}: " for i in range(50)) + "@end\n" + "@m\n" * 50, "300 labels"),
    ("assembler.MAX_USES", "@def e; @end\n" + levels(40, "@m{0}; @m{0}").replace("1 2 3", "@e") + "@m39", "more than 300 t"),
    ("assembler.MAX_CELLS", levels(40, "@m{0}; @m{0}") + "@m39", "line 41, column 1: the program has more than 300 cells"),
    ("assembler.MAX_CELLS", ". [301]", "the program has more than 300 cells"),
    ("assembler.MAX_CELLS", ". [999999999999]", "the program has more than 300 cells"),
    ("parser.MAX_CELLS", "1\n" * 200, "line 101, column 1: the program has more than 300 cells"),
])
def test_what_macros_make_is_limited(monkeypatch: pytest.MonkeyPatch, limit: str, text: str, message: str) -> None:
    monkeypatch.setattr(f"{ASQ}.{limit}", 300)
    with pytest.raises(SourceError, match=message):
        assemble(text)


def test_a_tape_that_no_image_holds(tmp_path: Path) -> None:
    path = file_with(tmp_path / "x.bf", "+.")
    assert_refused("1000000000 is not in the range 1<=x<=262144", "asm", path, "--tape", 10**9)
    with pytest.raises(ProgramError, match=r"tape=1000000000: a tape has at least one cell, and an image at most 262,144"):
        brainfuck.assemble("+.", tape=10**9)
    with pytest.raises(SourceError, match=r"line 1, column 2: the program has more than 262,144 cells, 262,140 of"):
        brainfuck.assemble("+.", tape=262_140)


def test_errors_of_brainfuck_have_its_own_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the assembler of the translation refuses is reported at the command."""
    monkeypatch.setattr(f"{ASQ}.assembler.MAX_CELLS", 150)
    with pytest.raises(SourceError, match=r"x.bf: line 3, column \d+: the program has more than 150 cells") as caught:
        brainfuck.assemble("a comment\r\n\r\n" + "," * 30, "x.bf", tape=1)
    assert 10 < caught.value.column <= 30
    with pytest.raises(SourceError, match="line 4, column 2: no ']' closes"):
        brainfuck.assemble("+\r+\n\r\n+[", "x.bf")


SIZES = re.compile(r"--memory (\d+)(?: --bits (\d+))?|--bits (\d+)")


@pytest.mark.parametrize(("text", "bits", "memory"), [
    ("+>" * 500, 12, 4096), ("+>" * 300, 12, 4096), ("+.", 8, 256), ("+>" * 100, 16, 500), ("+>" * 100, 10, 500),
])
def test_what_is_suggested_for_brainfuck_is_accepted(text: str, bits: int, memory: int) -> None:
    with pytest.raises(ProgramError) as caught:
        brainfuck.assemble(text, word_bits=bits, memory=memory).loaded(bits, memory)
    found = SIZES.search(str(caught.value))
    assert found is not None, caught.value
    wanted_bits = int(found[2] or found[3] or bits)
    wanted_memory = int(found[1] or min(1 << wanted_bits, 1 << 16))
    DIALECTS["standard"].sizes(wanted_bits, wanted_memory)
    assert brainfuck.assemble(text, word_bits=wanted_bits, memory=wanted_memory).loaded(wanted_bits, wanted_memory)


@pytest.mark.parametrize(("words", "bits", "memory", "advice"), [
    ([0] * 300, 16, 100, "use a memory of 300 or more (--memory 300)"),
    ([0] * 300, 8, 256, "use a memory of 300 or more and words of 9 bits or more (--memory 300 --bits 9)"),
    ([70000], 16, 100, "use words of 17 bits or more (--bits 17)"),
    ([-70000], 16, 100, "use words of 18 bits or more (--bits 18)"),
    ([1 << 50], 16, 100, "a word has at most 50 bits"),
])
def test_what_is_suggested_for_images_is_accepted(words: list[int], bits: int, memory: int, advice: str) -> None:
    text = " ".join(map(str, words))
    with pytest.raises(ProgramError, match=re.escape(advice) + "$"):
        Image(tuple(words)).loaded(bits, memory)
    with pytest.raises(ProgramError, match=re.escape(advice) + "$"):
        images.parse(text, word_bits=bits, memory=memory)
    found = SIZES.search(advice)
    if found is not None:
        bits, memory = int(found[2] or found[3] or bits), int(found[1] or memory)
        DIALECTS["standard"].sizes(bits, memory)
        assert images.parse(text, word_bits=bits, memory=memory).loaded(bits, memory)


def test_no_size_is_suggested_that_no_machine_has(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SourceError, match=r"the dialect 'sic1' has a memory of 256$"):
        images.parse("0 " * 300, word_bits=8, memory=256, dialect="sic1")
    with pytest.raises(SourceError, match=r"the dialect 'sic1' has words of 8 bits$"):
        images.parse("300", word_bits=8, memory=256, dialect="sic1")
    monkeypatch.setattr(images, "MAX_MEMORY", 1000)
    with pytest.raises(SourceError, match=r"word 500 \(0\) is beyond the memory.*: a memory has at most 1000 cells$"):
        images.parse("0 " * 5000, word_bits=16, memory=500)


def test_options_of_brainfuck_on_run(tmp_path: Path) -> None:
    path = file_with(tmp_path / "x.bf", ",.")
    result = invoke("run", path, "--cells", "word", "--eof", "-1", "--tape", "5", "--memory", "256")
    assert (result.exit_code, result.stdout_bytes) == (0, b"\xff")


def test_messages_cut_what_is_long() -> None:
    assert shortened("a" * 40) == repr("a" * 40)
    assert shortened("a" * 41) == repr("a" * 40 + "...")
    assert shortened([1] * 50) == "[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, ..."
    assert did_you_mean("lop", ["loop"]) == " (did you mean 'loop'?)"
    assert did_you_mean("a" * LONG, ("b" * 100 for _ in range(LONG))) == ""


HUGE: dict[str, Callable[[], str]] = {
    "words.asq": lambda: ". " + "1 " * (LONG // 2),
    "lines.asq": lambda: "1\n" * (LONG // 2),
    "sum.asq": lambda: ". " + "1+" * (LONG // 2),
    "ends.asq": lambda: ";" * LONG,
    "doubling.asq": lambda: levels(40, "@m{0}; @m{0}") + "@m39",
    "wide.asq": lambda: ("".join(f". n{i}:0\n" for i in range(30_000)) + "@def m x; " + "x 1; " * 30_000 + "@end\n@m "
                         + "+".join(f"n{i}" for i in range(30_000))),
    "values.subleq": lambda: ".data\nx " + "1 " * (LONG // 2) + "y",
    "lines.minsky": lambda: "add x\n" * (LONG // 6),
    "values.fleq": lambda: ".data\nx vector 5000000 " + "1 " * (LONG // 2) + "1",
    "words.dec": lambda: "1 " * (MAX_MEMORY + 1),
    "writes.bf": lambda: "." * LONG,
    "loops.bf": lambda: "[" * 200_000 + "]" * 200_000,
    "moves.bf": lambda: "+>" * 30_000,
}


@pytest.mark.soak
@pytest.mark.parametrize("name", HUGE)
def test_the_real_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr("tests.test_text_limits.SECONDS", 20.0)
    refused(tmp_path, Path(name).suffix, HUGE[name]())
