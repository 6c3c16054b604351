"""What the FLEQ assembler refuses, by text and position."""

from __future__ import annotations

import pytest

from punchcard.errors import ProgramError
from punchcard.machines.fleq.text.assembler import assemble
from tests.cases import assert_error_at
from tests.test_fleq_language import code


@pytest.mark.parametrize(("text", "line", "column", "message"), [
    (".data\nx 3", 2, 3, "found '3': after 'x' comes its kind, which is matrix, vector, scalar or counter"),
    (".data\nx matrx 2x2", 2, 3, r"unknown kind 'matrx' \(did you mean 'matrix'\?\): a variable is a matrix, a vector,"),
    (".data\nx: scalar", 2, 2, "a variable is declared as `name kind values`, without a colon"),
    (".data\nif scalar", 2, 1, "'if' begins an instruction: a variable needs another name"),
    (".data\n7 scalar", 2, 1, "found '7': a variable must be a name"),
    (".data\nx scalar\nx scalar", 3, 1, "variable 'x' is declared twice"),
    (".data\nx matrix 2", 2, 10, "found '2': the size of a matrix is written as rows x columns without blanks, such as 2x3"),
    (".data\nx matrix 2 x 2", 2, 10, "the size of a matrix is written as rows x columns"),
    (".data\nx matrix", 2, 9, "the line ends here: the size of a matrix"),
    (".data\nx matrix 0x2", 2, 10, "size 0x2: a matrix has at least one row and one column"),
    (".data\nx vector 0", 2, 10, "size 0: a vector has at least one row"),
    (".data\nx vector -1", 2, 10, "found '-': the length of a vector must be a whole number"),
    (".data\nx vector 99999999", 2, 10, "size 99999999: a variable holds at most 16777216 values"),
    (".data\nx matrix 2x2 1 2 ; 3", 2, 20, "row 2 of 'x' has 1 value: 2 are wanted, and rows are separated by `;`"),
    (".data\nx matrix 2x2 1 2 3 4", 2, 14, "row 1 of 'x' has 4 values: 2 are wanted"),
    (".data\nx matrix 2x2 1 2 ; 3 4 ;", 2, 25, "row 3 of 'x' has 0 values: 2 are wanted"),
    (".data\nx matrix 2x2 1 2", 2, 14, "'x' has 1 row of values: 2 are wanted, separated by `;`"),
    (".data\nx matrix 1x2 1 2 ; 3 4", 2, 14, "'x' has 2 rows of values: 1 is wanted"),
    (".data\nx vector 3 1 2", 2, 12, "'x' has 2 values: 3 are wanted"),
    (".data\nx vector 2 1 ; 2", 2, 14, "found ';': only the rows of a matrix are separated by `;`"),
    (".data\nx scalar 1 2", 2, 10, "'x' has 2 values: 1 is wanted"),
    (".data\nx scalar 1z", 2, 10, "'1z' is not a number: a value of 'x' is written as 3, -0.5 or 1e-3"),
    (".data\nx scalar 1.2.3", 2, 10, "'1.2.3' is not a number"),
    (".data\nx scalar -", 2, 11, "the line ends here: a value of 'x' must be a number"),
    (".data\nx scalar 1, 2", 2, 11, "found ',': a value of 'x' must be a number"),
    (".data\nx scalar nan", 2, 10, "'nan': a value of 'x' must be finite"),
    (".data\nx scalar -Inf", 2, 11, "'Inf': a value of 'x' must be finite"),
    (".data\nx scalar 1e999", 2, 10, "'1e999' is beyond the floating-point numbers: a value of 'x' must be finite"),
    (".data\nx scalar random", 2, 16, r"random values are written as random\(seed\)"),
    (".data\nx scalar random(-1)", 2, 17, "found '-': a seed must be a whole number"),
    (".data\nx scalar random(1) 2", 2, 20, "unexpected '2' after the values of 'x'"),
    (".data\nx scalar 17\n.code\nhalt", 2, 1, "17.0 of 'x' is beyond the range, 16.0: declare a larger one with `.range`"),
    (".range 2\n.data\nx vector 2 1 -3\n.code\nhalt", 3, 1, "-3.0 of 'x' is beyond the range, 2.0"),
    (".range 0", 1, 8, "range 0.0: the range must be positive"),
    (".range -1", 1, 8, "range -1.0: the range must be positive"),
    (".range inf", 1, 8, "'inf': the range must be finite"),
    (".range", 1, 7, "the line ends here: the range must be a number"),
    (".range 1 2", 1, 10, "unexpected '2' after the range"),
    (".range 1\n.range 1", 2, 1, "the range is declared twice"),
    (".rnge 1", 1, 1, r"unknown section '.rnge' \(did you mean '.range'\?\): there are .data and .code and .range"),
    (".code extra", 1, 7, "unexpected 'extra' after .code"),
    ("halt", 1, 1, "found 'halt': a program begins with .data or .code"),
    (".code\nhalt @", 2, 6, "unexpected character '@'"),
])
def test_errors_in_data(text: str, line: int, column: int, message: str) -> None:
    assert_error_at(line, column, message, assemble, text)


@pytest.mark.parametrize(("instruction", "column", "message"), [
    ("x = add(x, y)", 12, "unknown variable 'y': declare it under .data"),
    ("v = add(M[3], v)", 11, r"'M\[3\]' is beyond 'M', which has 3 columns, counted from 0"),
    ("v[1] = add(v, v)", 3, r"'v\[1\]' is beyond 'v', which has 1 column, counted"),
    ("v = add(M[-1], v)", 11, "found '-': the number of a column must be a whole number of at most 18"),
    ("v = add(M[x], v)", 11, "found 'x': the number of a column must be a whole number"),
    ("v = add(M[1, v)", 12, r"found ',': a column is written as `M\[number\]`"),
    ("x = adt(x, x)", 5, r"unknown function 'adt' \(did you mean 'add'\?\): there are add, sub, mul"),
    ("x = add(x)", 5, "add takes 2 operands: 1 is given"),
    ("x = add()", 5, "add takes 2 operands: 0 are given"),
    ("v = transpose(v, v)", 5, "transpose takes 1 operand: 2 are given"),
    ("x = mul_aa(x, x, x)", 5, "mul_aa takes 1 or 2 operands: 3 are given"),
    ("x = mul_bb(x)", 5, "mul_bb takes 2 operands: 1 is given"),
    ("x = add(x x)", 11, r"found 'x': operands of add are separated by commas and end with `\)`"),
    ("x = add(x, )", 12, r"found '\)': operand 2 of add must be a name"),
    ("x = add(x, 1)", 12, "found '1': operand 2 of add is a variable; declare a constant under .data and name it"),
    ("x = add", 8, "the line ends here: the operands of add are in parentheses"),
    ("x add(x, x)", 1, "unknown instruction 'x': an instruction is `target = function"),
    ("hlat", 1, r"unknown instruction 'hlat' \(did you mean 'halt'\?\)"),
    ("halt now", 6, "unexpected 'now' after halt"),
    ("v[0] add(x, x)", 6, "found 'add': an instruction is `target = function"),
    ("x = add(x, x) x", 15, "unexpected 'x' after the instruction"),
    ("v = add(M, v)", 5, "shapes of add: 2x3 and 2x1: the operands must have the same shape"),
    ("M = mul(M, N)", 5, r"shapes of mul: 2x3 and 3x2: mul\(a, b\) is a\^T b, so the operands must have equally many rows"),
    ("v = mul(M, v)", 1, "mul of 2x3 and 2x1 is 3x1, but 'v' is 2x1"),
    ("M[1] = transpose(M)", 1, r"transpose of 2x3 is 3x2, but 'M\[1\]' is 2x1"),
    ("x = add(x, x); if y <= 0 goto l", 19, "unknown variable 'y'"),
    ("loop: x = add(x, x); if x <= 0 goto lop", 37, r"unknown label 'lop' \(did you mean 'loop'\?\): write it before"),
    ("goto 2", 6, "no instruction 2: there are 2, counted from 0"),
    ("goto", 5, "the line ends here: the label of an instruction must be a name"),
    ("goto 1.5", 6, "found '1.5': the number of an instruction must be a whole number"),
    ("if x < 0 goto 0", 6, "found '<': a branch is `if flag <= 0 goto label` or `goto label`"),
    ("if x <= 1 goto 0", 9, "found '1': a branch is"),
    ("if x <= 0 loop", 11, "found 'loop': a branch is"),
    ("if 0 <= 0 goto 0", 4, "found '0': a flag is a variable"),
    ("goto 0 x", 8, "unexpected 'x' after the branch"),
    ("x = add(x, x);", 15, "the line ends here: after `;` comes a branch of the same instruction"),
    ("x = add(x, x); old comment", 16, "found 'old': after `;` comes a branch .* comments begin with #"),
    ("x = incr_pointer(l.a)", 5, "incr_pointer has no result: write it without a target"),
    ("add(x, x)", 1, r"unknown pointer function 'add': .* any other function needs a target, as in `x = add\(...\)`"),
    ("incr_ponter(l.a)", 1, r"unknown pointer function 'incr_ponter' \(did you mean 'incr_pointer'\?\)"),
    ("l: incr_pointer(l.flg)", 19, r"unknown field 'flg' \(did you mean 'flag'\?\): there are a, b, c, flag, p"),
    ("l: incr_pointer(0.flg)", 19, r"unknown field 'flg' \(did you mean 'flag'\?\)"),
    ("incr_pointer(l.a)", 14, "unknown label 'l'"),
    ("incr_pointer(9.a)", 14, "no instruction 9: there are 2, counted from 0"),
    ("incr_pointer(l)", 15, r"found '\)': a pointer is written as `label.field`"),
    ("incr_pointer(3)", 14, "found '3': a pointer is written as `label.field`"),
    ("incr_pointer(0.a, x)", 17, r"found ',': incr_pointer takes 1 operand and ends with `\)`"),
    ("reset_pointer(0.a)", 18, r"found '\)': reset_pointer takes 2 operands, a pointer and where it shall point"),
    ("reset_pointer(0.a, x, x)", 21, r"found ',': reset_pointer takes 2 operands and ends with `\)`"),
    ("reset_pointer(0.a, y)", 20, "unknown variable 'y'"),
    ("reset_pointer(0.p, x)", 20, "unknown label 'x'"),
])
def test_errors_in_code(instruction: str, column: int, message: str) -> None:
    assert_error_at(7, column, message, assemble, code(instruction))


@pytest.mark.parametrize(("instruction", "field", "message"), [
    ("N = transpose(M)", "b", "transpose takes one operand, without a branch; it has a, c"),
    ("x = add(x, x)", "flag", "add takes two operands, without a branch; it has a, b, c"),
    ("x = add(x, x)", "p", "add takes two operands, without a branch; it has a, b, c"),
    ("x = add(x, x); goto l", "flag", "add takes two operands, with a goto that has no flag; it has a, b, c, p"),
    ("if x <= 0 goto l", "c", "it is only a branch; it has flag, p"),
    ("goto l", "flag", "it is only a branch without a flag; it has p"),
    ("incr_pointer(l.p); goto l", "a", "it changes a pointer, with a goto that has no flag; it has p"),
    ("halt", "a", "it is a halt"),
])
def test_a_pointer_must_exist(instruction: str, field: str, message: str) -> None:
    assert_error_at(8, 16, f"instruction 'l' has no pointer '{field}': {message}", assemble,
                    code(f"l: {instruction}", f"incr_pointer(l.{field})"))


def test_labels_are_declared_once() -> None:
    assert_error_at(8, 1, "label 'a' is declared twice", assemble, code("a: halt", "a: halt"))


@pytest.mark.parametrize("text", ["", "# nothing\n", ".data\nx scalar\n", ".data\nx scalar 1\n.code\nlabel:\n"])
def test_an_empty_program_is_refused(text: str) -> None:
    with pytest.raises(ProgramError, match=r"p.fleq: the program is empty: .code needs at least one instruction"):
        assemble(text, "p.fleq")


def test_a_text_without_a_folder_has_no_files() -> None:
    assert_error_at(2, 12, r"file\(v.npy\): the text is not in a folder", assemble, ".data\nv vector 2 file(v.npy)")
