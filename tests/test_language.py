"""Assembler, disassembler and their errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from punchcard.api import load
from punchcard.errors import ProgramError
from punchcard.machines.assembler import Symbol
from punchcard.machines.subleq.isa import Halt, Program, Subleq
from punchcard.machines.subleq.text import assemble, disassemble
from tests.cases import EXAMPLES, EXPECTED, assert_error_at, load_subleq, programs

MULTIPLY = (EXAMPLES / "multiply.subleq").read_text()


def test_the_form() -> None:
    program = assemble(MULTIPLY)
    assert program.instructions == (Subleq(0, 3, 1), Subleq(3, 2, 2), Subleq(4, 1, 4), Subleq(5, 5, 1), Halt())
    assert program.named(program.memory) == {"a": 7, "b": 9, "product": 0, "minus_a": 0, "one": 1, "zero": 0}
    assert dict(program.labels) == {"loop": 1, "done": 4}


@pytest.mark.parametrize("name", EXPECTED)
def test_examples_round_trip(name: str) -> None:
    program = load_subleq(name)
    assert assemble(disassemble(program)) == program
    assert Program.from_json(program.to_json()) == program


@given(programs())
def test_any_program_round_trips(program: Program) -> None:
    assert assemble(disassemble(program)) == program
    assert disassemble(assemble(disassemble(program))) == disassemble(program)
    assert Program.from_json(program.to_json()) == program


def test_constants_arrays_and_comments() -> None:
    program = assemble("""
        .data              # two kinds of comments
        numbers  1 -2 +3 0x10 -0xff, 7   ; commas are allowed
        text     'a' '\\n' ';' '#' '\\'' '\\\\'
        empty
        .code
        first:
        second: SUBLEQ numbers+1, text+3
                subleq empty, empty, first
    """)
    assert program.memory == (1, -2, 3, 16, -255, 7, 97, 10, 59, 35, 39, 92, 0)
    assert program.symbols == (Symbol("numbers", 0, 6), Symbol("text", 6, 6), Symbol("empty", 12, 1))
    assert program.instructions == (Subleq(1, 9, 1), Subleq(12, 12, 0), Halt()), "a missing halt is added"
    assert dict(program.labels) == {"first": 0, "second": 0}


def test_a_label_at_the_end_names_a_halt_of_its_own() -> None:
    for halt, expected in (("", (Subleq(0, 0, 1), Halt())), ("halt\n", (Subleq(0, 0, 2), Halt(), Halt()))):
        assert assemble(f".data\nx 1\n.code\nsubleq x, x, end\n{halt}end:").instructions == expected


def test_only_line_ends_end_a_line() -> None:
    """A comment reaches to the end of its line, whatever odd separators it holds."""
    assert len(assemble(".data\nx 1 ; note\u2028here 2\x0cthere 3\r\ny 2\r.code\nhalt").symbols) == 2


def test_a_program_without_data() -> None:
    assert assemble(".code\nhalt").instructions == (Halt(),)


@pytest.mark.parametrize(("text", "line", "column", "message"), [
    (".data\nx 1\n.code\nl: subleq x, y", 4, 14, "unknown memory cell 'y': declare it under .data"),
    (".data\ncount 1\n.code\nsubleq count, cuont", 4, 15, r"unknown memory cell 'cuont' \(did you mean 'count'\?\)"),
    (".data\nx 1\n.code\nloop: subleq x, x, lop", 4, 20, r"unknown label 'lop' \(did you mean 'loop'\?\)"),
    (".data\nx 1\ny 2\nx 3", 4, 1, "memory cell 'x' is declared twice"),
    (".data\nx 1\n.code\na: halt\na: halt", 5, 1, "label 'a' is declared twice"),
    (".data\nx 1\n.code\nsublq x, x", 4, 1, r"unknown instruction 'sublq' \(did you mean 'subleq'\?\): there are"),
    (".data\nx 1\n.code\nsubleq x", 4, 9, "the line ends here: operands of subleq are separated by commas, and "
                                             "there are 2 or 3"),
    (".data\nx 1\n.code\nsubleq x x", 4, 10, "found 'x': operands of subleq are separated by commas"),
    (".data\nx 1\n.code\nsubleq x, x, 0, x", 4, 15, "unexpected ',' after the 2 or 3 operands of subleq"),
    (".data\nx 1\n.code\nhalt now", 4, 6, "unexpected 'now' after halt"),
    (".data\nx 1\n.code\nsubleq 1, x", 4, 8, "found '1': an operand is the name of a memory cell"),
    (".data\nx 1\n.code\nsubleq x, x, 7", 4, 14, "no instruction 7: there are 1, counted from 0"),
    (".data\nx 1\n.code\nsubleq x, x, 2\nhalt", 4, 14, "no instruction 2: there are 2, counted from 0"),
    (".data\nx 1\n.code\nsubleq x, x, -1", 4, 14, "a target is a label, or an instruction's number counted from 0"),
    (".data\nx " + "9" * 5000, 2, 3, "has 5000 digits: the most is 40"),
    (".data\nx 1 2\n.code\nsubleq x+2, x", 4, 8, r"'x\+2' is beyond 'x', which has 2 cells"),
    (".data\nx 1\n.code\nsubleq x+1, x", 4, 8, r"'x\+1' is beyond 'x', which has 1 cell,"),
    (".data\nx 12z", 2, 3, "'12z' is not a number"),
    (".data\nx 0xg1", 2, 3, "'0xg1' is not a number"),
    (".data\nx -", 2, 4, "the line ends here: a value must be a decimal"),
    (".data\nx: 3", 2, 2, "a memory cell is declared as `name value`, without a colon"),
    (".data\nx '\\q'", 2, 3, "unknown escape"),
    (".data\n7 x", 2, 1, "found '7': a memory cell must be a name"),
    (".dat\n", 1, 1, r"unknown section '.dat' \(did you mean '.data'\?\)"),
    ("halt", 1, 1, "found 'halt': a program begins with .data or .code"),
    (".code\nhalt @", 2, 6, "unexpected character '@'"),
    (".code extra", 1, 7, "unexpected 'extra' after .code"),
])
def test_errors_say_where_and_what(text: str, line: int, column: int, message: str) -> None:
    assert_error_at(line, column, message, assemble, text)


@pytest.mark.parametrize("text", ["", "; nothing\n", ".data\nx 1\n", ".data\nx 1\n.code\n"])
def test_an_empty_program_is_refused(text: str) -> None:
    with pytest.raises(ProgramError, match=r"p.subleq: the program is empty: .code needs at least one instruction"):
        assemble(text, "p.subleq")


@pytest.mark.parametrize(("name", "content", "message"), [
    ("missing.subleq", None, "no such file"),
    ("null.subleq", b".code\nhalt\0", "it holds a null byte"),
    ("bytes.subleq", b"\xff\xfe\x00", "byte 0 is not UTF-8"),
    ("program.txt", b".code\nhalt", "'.txt', which is not a known language"),
    ("broken.json", b"{", "not a program as `punchcard asm` writes it"),
    ("other.json", b'{"isa": "z80"}', "a program for 'z80'"),
    ("list.json", b"[1]", "it is not a JSON object"),
    ("null.json", b"null", "it is not a JSON object"),
    ("empty.json", b"{}", "it has no 'isa'"),
    ("deep.json", b"[" * 100_000, "not a program"),
    ("short.json", b'{"isa": "subleq", "instructions": [[0, 0], null], "memory": [0], "symbols": [], "labels": []}',
     r"\[0, 0\] is not an instruction: it has three operands"),
    ("size.json", b'{"isa": "subleq", "instructions": [null], "memory": [0], "symbols": [["x", 0, 2], ["y", 2, -1]], '
                  b'"labels": []}', "do not cover the memory cells"),
    ("none.json", b'{"isa": "subleq", "instructions": [null], "memory": [], "symbols": [], "labels": []}',
     "at least one memory cell"),
    ("wrong.json", b'{"isa": "subleq", "instructions": [[1.5, 0, 0]], "memory": [], "symbols": [], "labels": []}',
     "1.5 is not an integer"),
])
def test_files_that_are_no_programs(tmp_path: Path, name: str, content: bytes | None, message: str) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ProgramError, match=message):
        load(path)
    with pytest.raises(ProgramError, match="is a folder"):
        load(tmp_path)


@pytest.mark.parametrize(("parts", "message"), [
    (([],), "the program is empty"),
    (([Subleq(0, 3, 1)], [1, 2]), "instruction 0 uses memory cell 3: there are 2"),
    (([Subleq(0, 0, 9)], [1, 2]), "instruction 0 jumps to instruction 9"),
    (([Halt()], [1, 2], [Symbol("x", 0), Symbol("x", 1)]), "'x' is declared twice"),
    (([Halt()], [1], [Symbol("a b", 0)]), "'a b': a name is letters"),
    (([Halt()], [1, 2], [Symbol("x", 0)]), "do not cover"),
    (([Halt()], [1], None, {"l": 5}), "label 'l' names instruction 5"),
])
def test_programs_are_checked(parts: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        Program.create(*parts)


def test_a_program_ends_with_a_halt() -> None:
    with pytest.raises(ProgramError, match="a program ends with a halt"):
        Program((Subleq(0, 0, 0),), (0,), (Symbol("x", 0),))


def test_setting_values() -> None:
    program = assemble(".data\nx 1\nlist 1 2 3\n.code\nhalt").with_values({"x": 9, "list+2": -4, "list+0": 8})
    assert program.memory == (9, 8, 2, -4)
    with pytest.raises(ProgramError, match=r"unknown memory cell 'lst' \(did you mean 'list'\?\)"):
        program.with_values({"lst": 1})
