"""The standard macros of .asq against what they say, their sizes in the docs, and macros of one's own."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from punchcard.errors import SourceError
from punchcard.machines.von_neumann.isa import Image
from punchcard.machines.von_neumann.languages.asq import parser as asq_source
from punchcard.machines.von_neumann.languages.asq.assembler import Expander, assemble, listing, standard_macros
from punchcard.machines.von_neumann.languages.asq.items import Cell
from punchcard.machines.von_neumann.oracle import ImageInterpreter, run
from tests.cases import ROOT, assert_error_at, wrap

DOCS = (ROOT / "docs" / "asq-language.md").read_text()
BITS = 16
LEAST, GREATEST = -(2 ** (BITS - 1)), 2 ** (BITS - 1) - 1
EDGES = (0, 1, -1, 2, -2, LEAST, LEAST + 1, GREATEST, GREATEST - 1, 255, 256, -300)
words = st.one_of(st.sampled_from(EDGES), st.integers(LEAST, GREATEST))


class Ran:
    """A piece of program between its start and a halt, with named cells behind it."""

    def __init__(self, body: str, cells: Mapping[str, int], input: bytes = b"", bits: int = BITS) -> None:
        data = " ".join(f"{name}:({value})" for name, value in cells.items())
        self.listing = listing(f"{body}\n@halt\n. {data}")
        done: ImageInterpreter = run(Image(self.listing.words), input=input, word_bits=bits, max_steps=100_000,
                                memory=len(self.listing.words))
        assert done.stop == "halted", done.fault
        self.cells = {name: wrap(done.cells[self.listing.labels[name]], bits) for name in cells}
        self.scratch = done.cells[self.listing.labels["$z"]]
        self.output = done.output
        self.steps = done.steps - 1


def test_there_is_a_test_for_every_macro() -> None:
    others = "jsign load store call return in out puts outdec indec jump halt".split()
    assert set(standard_macros()) == {*ARITHMETIC, *BRANCHES, *COMPARISONS, *others}


ARITHMETIC: dict[str, Callable[[int, int], tuple[int, int]]] = {
    "clear": lambda x, y: (0, y),
    "neg": lambda x, y: (-x, y),
    "inc": lambda x, y: (x + 1, y),
    "dec": lambda x, y: (x - 1, y),
    "mov": lambda x, y: (x, x),
    "add": lambda x, y: (x, y + x),
    "sub": lambda x, y: (x, y - x),
    "mul": lambda x, y: (x, y * x),
}


@pytest.mark.parametrize("name", ARITHMETIC)
@given(x=words, y=words)
def test_arithmetic(name: str, x: int, y: int) -> None:
    operands = "x y" if len(standard_macros()[name].parameters) == 2 else "x"
    ran = Ran(f"@{name} {operands}", {"x": x, "y": y})
    expected_x, expected_y = ARITHMETIC[name](x, y)
    assert ran.cells == {"x": wrap(expected_x, BITS), "y": wrap(expected_y, BITS)}
    assert ran.scratch == 0
    if operands == "x y":
        same = Ran(f"@{name} x x", {"x": x})
        assert same.cells["x"] == wrap(ARITHMETIC[name](x, x)[1], BITS)


@pytest.mark.parametrize("bits", [10, 12, 20, 32])
@given(x=st.integers(-511, 511), y=st.integers(-511, 511))
@settings(max_examples=20)
def test_mul_needs_no_word_size(bits: int, x: int, y: int) -> None:
    assert Ran("@mul x y", {"x": x, "y": y}, bits=bits).cells["y"] == wrap(x * y, bits)


BRANCHES: dict[str, Callable[[int], bool]] = {
    "jlez": lambda x: x <= 0, "jgtz": lambda x: x > 0, "jz": lambda x: x == 0,
    "jnz": lambda x: x != 0, "jltz": lambda x: x < 0, "jgez": lambda x: x >= 0,
}
COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "jeq": operator.eq, "jne": operator.ne, "jle": operator.le, "jlt": operator.lt, "jge": operator.ge, "jgt": operator.gt,
}
OUTCOME = "; @inc no; @jump end; yes: @inc taken; end:"


@pytest.mark.parametrize("name", BRANCHES)
@given(x=words)
def test_branches_are_right_for_every_word(name: str, x: int) -> None:
    ran = Ran(f"@{name} x yes{OUTCOME}", {"x": x, "no": 0, "taken": 0})
    taken = BRANCHES[name](x)
    assert ran.cells == {"x": x, "no": not taken, "taken": taken}
    assert ran.scratch == 0


@pytest.mark.parametrize("name", COMPARISONS)
@given(x=words, y=words)
def test_comparisons(name: str, x: int, y: int) -> None:
    """Equality is exact; an order is that of the difference, which is right when the difference fits the word."""
    ran = Ran(f"@{name} x y yes{OUTCOME}", {"x": x, "y": y, "no": 0, "taken": 0})
    assert {name: ran.cells[name] for name in ("x", "y")} == {"x": x, "y": y}
    assert ran.cells["no"] == 1 - ran.cells["taken"]
    assert ran.scratch == 0
    if name in ("jeq", "jne") or LEAST < x - y <= GREATEST:
        assert ran.cells["taken"] == COMPARISONS[name](x, y)


def test_comparisons_with_constants() -> None:
    assert Ran(f"@jeq x ='a' yes{OUTCOME}", {"x": 97, "no": 0, "taken": 0}).cells["taken"] == 1
    assert Ran(f"@jlt =-5 x yes{OUTCOME}", {"x": -5, "no": 0, "taken": 0}).cells["taken"] == 0


@pytest.mark.parametrize("x", [0, 7, LEAST])
def test_pointers(x: int) -> None:
    ran = Ran("@mov =second p; @load p y; @mov =third p; @store y p; @inc p; @store x p",
              {"x": 3, "first": 1, "second": x, "third": 9, "fourth": 5, "p": 0, "y": 4})
    assert {k: v for k, v in ran.cells.items() if k != "p"} == {
        "x": 3, "first": 1, "second": x, "third": x, "fourth": 3, "y": x}


def test_a_pointer_to_itself() -> None:
    ran = Ran("@mov =p p; @load p p", {"p": 3})
    assert ran.cells["p"] == ran.listing.labels["p"]


def test_routines_within_routines() -> None:
    ran = Ran("""
        @call twice; @call twice; @jump end
        . twice:0; @call once; @call once; @return twice
        . once:0; @inc x; @return once
        end:
    """, {"x": 0})
    assert ran.cells == {"x": 4}


def test_input_and_output() -> None:
    ran = Ran("@in a; @in b; @in c; @out b; @out a; @puts text; @jump end; . text:\"Hi\\n\" 0; end:",
              {"a": 9, "b": 9, "c": 9}, b"xy")
    assert ran.cells == {"a": ord("x"), "b": ord("y"), "c": -1}
    assert ran.output == b"yxHi\n"


@pytest.mark.parametrize("x", [*EDGES, 9, 10, 99, 100, 101, 9999, 10000, 20304, -10, -29999])
def test_outdec(x: int) -> None:
    ran = Ran("@outdec x; @outdec x", {"x": x})
    assert ran.output.decode() == f"{x}{x}"
    assert ran.cells == {"x": x}


def test_outdec_on_wider_words() -> None:
    for x in (99999, -99999):
        assert Ran("@outdec x", {"x": x}, bits=20).output.decode() == str(x)


@pytest.mark.parametrize(("text", "numbers"), [
    ("12 34", [12, 34]), ("-5", [-5]), ("a-7b8", [-7, 8]), ("\n\n0\n", [0]), ("32767 -32768", [GREATEST, LEAST]),
    ("3-4", [3, 4]), ("", []), ("- ", []), ("/:", []),
])
def test_indec(text: str, numbers: list[int]) -> None:
    cells = {"x": 99, "count": 0, "a": 0, "b": 0}
    ran = Ran("@indec x end; @inc count; @mov x a; @indec x end; @inc count; @mov x b; end:", cells, text.encode())
    assert ran.cells["count"] == len(numbers)
    assert [ran.cells["a"], ran.cells["b"]][: len(numbers)] == numbers


# Sizes: the table in the docs is what is measured here. Every entry: the use, then cells and input of the runs.

START = {"x": 0, "y": 5, "p": 0, "q": 0}
SIGNS = [{"x": 0}, {"x": 5}, {"x": -5}]
PAIRS = [{"x": 3, "y": 3}, {"x": 3, "y": 4}, {"x": 4, "y": 3}]
MEASURED: dict[str, tuple[str, list[dict[str, int]], list[bytes]]] = {
    **{name: (f"@{name} x", [{}], [b"a"]) for name in ("clear", "neg", "inc", "dec", "in", "out")},
    **{name: (f"@{name} x y", [{}], [b""]) for name in ("mov", "add", "sub")},
    **{name: (f"@{name} x e; e:", SIGNS, [b""]) for name in BRANCHES},
    **{name: (f"@{name} x y e; e:", PAIRS, [b""]) for name in COMPARISONS},
    "jsign": ("@jsign x e e e; e:", SIGNS, [b""]),
    "jump": ("@jump e; e:", [{}], [b""]),
    "halt": ("@halt", [{}], [b""]),
    "mul": ("@mul x y", [{"x": x} for x in (0, 1, 7, -1, LEAST, GREATEST)], [b""]),
    "load": ("@load p x", [{}], [b""]),
    "store": ("@store x q", [{}], [b""]),
    "call": ("@call f; @jump e; . f:0; @return f; e:", [{}], [b""]),
    "puts": ("@puts text; @jump e; . text:\"Hi\" 0; e:", [{}], [b""]),
    "outdec": ("@outdec x", [{"x": x} for x in (0, 1, 9, -29999)], [b""]),
    "indec": ("@indec x e; e:", [{}], [b"0", b"-29999"]),
}


def measured(name: str) -> tuple[int, int, int]:
    """Words of a use without the pool; fewest and most instructions of the runs."""
    use, cells, inputs = MEASURED[name]
    parsed = asq_source.parse(use)
    items = Expander(parsed, standard_macros()).expand(parsed.items)
    size = len([item for item in items if isinstance(item, Cell)])
    runs = [Ran(f"@mov =y q; {use}", {**START, **given}, input) for given in cells for input in inputs]
    steps = sorted(ran.steps - 4 for ran in runs)
    return size, steps[0], steps[-1]


def rows() -> dict[str, tuple[str, str]]:
    """Words and steps of each macro in the docs' table."""
    found = re.findall(r"^\| `@(\w+)[^`]*` \|.*\| (\d+) \| ([\d to]+) \|$", DOCS, re.MULTILINE)
    return {name: (size, steps) for name, size, steps in found}


def test_the_table_is_complete() -> None:
    assert set(rows()) == set(standard_macros())


@pytest.mark.parametrize("name", sorted(MEASURED.keys() - {"halt", "call", "puts"}))
def test_sizes_in_the_docs(name: str) -> None:
    size, fewest, most = measured(name)
    assert rows()[name] == (str(size), str(fewest) if fewest == most else f"{fewest} to {most}")


def test_sizes_of_macros_that_come_together() -> None:
    """@call with @return and one @jump around the routine; @puts of two characters, likewise."""
    table = {name: tuple(map(int, rows()[name])) for name in ("call", "return")}
    size, steps, _ = measured("call")
    assert (size, steps) == (table["call"][0] + table["return"][0] + 4, table["call"][1] + table["return"][1] + 1)
    size, steps, _ = measured("puts")
    assert (str(size - 3 - 3), str(steps - 1)) == rows()["puts"]
    assert rows()["halt"] == ("3", "1")


# Macros of one's own.

def test_a_macro() -> None:
    ran = Ran("""
        @def maximum a b c          # c = the larger one
            @mov a c
            @jge a b done
            @mov b c
        done:
        @end
        @maximum x y m; @maximum m z m
    """, {"x": 3, "y": 8, "z": 5, "m": 0})
    assert ran.cells["m"] == 8


def test_operands_are_expressions_of_the_caller() -> None:
    """A label of the macro does not catch a name of its operands."""
    text = "@def put x; here: x here x+1; @end\nhere: @put here+2; @put (-1)"
    assert assemble(text).words == (2, 0, 3, -1, 3, 0)


def test_a_negated_parameter_and_a_constant() -> None:
    assert assemble("@def f a; . 5-a =a-1 =-(a+1); @end; @f x+3; x: . 7").words == (-1, 4, 5, 7, 5, -7)


def test_a_macro_may_be_used_before_its_definition() -> None:
    assert assemble("@twice 4\n@def twice x; @once x; @once x; @end\n@def once x; . x; @end").words == (4, 4)


@pytest.mark.parametrize(("text", "line", "column", "message"), [
    ("@mvo a b", 1, 1, r"unknown macro '@mvo' \(did you mean '@mov'\?\)"),
    ("1 2\n@mov a", 2, 1, "@mov has 1 operands here, and takes 2: write @mov a b"),
    ("@mov x =5; x: . 1", 1, 8, "a constant would be changed here"),
    ("@jz =5 x; x: . 1", 1, 5, "a constant would be changed here"),
    ("@def mov a b; . 1; @end", 1, 6, "macro 'mov' is one of the standard macros"),
    ("@def f; . 1; @end\n@def f; . 1; @end", 2, 6, "macro 'f' is defined twice"),
    ("@def f; @g; @end; @def g; @f; @end; @f", 1, 27, "macro 'f' uses itself"),
    ("@def f x x; @end", 1, 10, "parameter 'x' occurs twice"),
    ("@def f x; x: . 1; @end", 1, 11, "label 'x' is a parameter of the macro"),
    ("@def f; x: . 1; x: . 2; @end", 1, 17, "label 'x' is declared twice in macro 'f'"),
    ("@def f; @def g; @end; @end", 1, 9, "a macro within macro 'f'"),
    ("@def f; @pool; @end", 1, 9, "@pool cannot be in a macro"),
    ("1 2 3\n@def f\n1", 2, 6, "macro 'f' has no end: close it with @end"),
    ("@end", 1, 1, "@end closes a macro, and none is open"),
    ("@def pool; @end", 1, 6, "@pool is a word of the language"),
    ("@def; 1; @end", 1, 5, "the name of a macro must be a name"),
    ("@jump ?+3", 1, 1, r"'\?' is not an operand of @jump"),
    ("@jump x:5", 1, 7, "an operand of a macro has no label"),
    ("@out x", 1, 6, "unknown label 'x'"),
    ("@def f; @out y; @end\n@f", 1, 14, "unknown label 'y'"),
])
def test_errors(text: str, line: int, column: int, message: str) -> None:
    assert_error_at(line, column, message, assemble, text)


@pytest.mark.parametrize(("text", "place"), [
    ("\n\n@jump 300", "line 3, column 1: 300"), ("\n  @add 9999 3", "line 2, column 3: 9999"),
    ("f: 0\n[300]\n@call f", "line 3, column 1: 30"),                              # the address of the way back, a constant
    ("@def twice x\n @add x x\n@end\n@twice 300", "line 2, column 2: 300"),         # within a macro of the text
    ("@def far x\n x+300\n@end\n@far 100", "line 2, column 2: 400"),
])
def test_an_error_inside_a_standard_macro_is_at_its_use(text: str, place: str) -> None:
    """The library is not the user's file, and its lines are not those of the file."""
    with pytest.raises(SourceError, match=re.escape(f"prog.asq: {place}")):
        assemble(text, "prog.asq", word_bits=8)
