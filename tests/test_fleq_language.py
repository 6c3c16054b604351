"""The FLEQ assembler and disassembler, and their errors."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from punchcard.errors import ProgramError, SourceError
from punchcard.machines.fleq.functions import ALIASES, KNOWN, Function, Shape, ShapeMismatch, same_shape
from punchcard.machines.fleq.isa import (
    Branch,
    Call,
    FleqProgram,
    Halt,
    Instruction,
    PointerUpdate,
    Step,
    Variable,
    pointers,
    variables_in_order,
)
from punchcard.machines.fleq.text.assembler import assemble, disassemble
from tests.cases import EXAMPLES, ROOT

NEWTON = (EXAMPLES / "newton.fleq").read_text()
SQUARE, SCALAR = Shape(2, 2), Shape(1, 1)
MAXIMUM = Function("maximum", 2, same_shape, np.maximum)


def code(*instructions: str, data: str = "x scalar 1\nv vector 2\nM matrix 2x3\nN matrix 3x2") -> str:
    """A text with the code beginning at line 7, when the data is not changed."""
    return "\n".join([".data", data, ".code", *instructions])


def test_the_form() -> None:
    program = assemble(NEWTON)
    assert program.instructions == (
        Step(Call("mul", 0, 2, 6, SQUARE, SQUARE, SQUARE)),
        Step(Call("transpose", 0, None, 8, SQUARE, None, SQUARE)),
        Step(Call("mul", 8, 6, 12, SQUARE, SQUARE, SQUARE)),
        Step(Call("sub", 4, 12, 12, SQUARE, SQUARE, SQUARE)),
        Step(Call("transpose", 6, None, 10, SQUARE, None, SQUARE)),
        Step(Call("mul", 10, 12, 6, SQUARE, SQUARE, SQUARE)),
        Step(Call("add", 14, 15, 14, SCALAR, SCALAR, SCALAR), Branch(14, 2)),
        Halt(),
    )
    assert [v.name for v in program.variables] == "A E two X At Xt Y t one".split()
    assert program.variables[-2] == Variable("t", SCALAR, 14)
    assert program.values["A"].tolist() == [[4, 1], [2, 3]]
    assert program.values["X"].tolist() == [[0, 0], [0, 0]]
    assert program.values["t"].tolist() == [[-11]]
    assert program.labels == (("loop", 2),)
    assert program.range == 16
    assert assemble(disassemble(program)) == program


def test_values_and_range() -> None:
    program = assemble("""
        .code
        halt
        .RANGE 1e3   # anywhere, once
        .data
        v vector 4  -1.5 +2e2 .5 3.
        s scalar    1e-3
        zero scalar
        m matrix 1x3 1 -2 3
    """)
    assert program.range == 1000
    assert program.values["v"].tolist() == [[-1.5], [200], [0.5], [3]]
    assert program.values["m"].tolist() == [[1, -2, 3]]
    assert (program.values["s"].item(), program.values["zero"].item()) == (0.001, 0)


def test_code_before_data_branches_and_columns() -> None:
    program = assemble("""
        .code
        first:
        second: M[1] = add(M[2], v)   # columns of a matrix are vectors
        third:  if M[1] <= 0 goto first
                goto 1
                x = add(x, x); goto end
        end:
        .data
        x scalar
        v vector 2
        M matrix 2x3
    """)
    vector = Shape(2, 1)
    assert program.instructions == (
        Step(Call("add", 4, 1, 3, vector, vector, vector)),
        Step(None, Branch(3, 0)),
        Step(None, Branch(None, 1)),
        Step(Call("add", 0, 0, 0, SCALAR, SCALAR, SCALAR), Branch(None, 4)),
        Halt(),
    ), "a missing halt is added"
    assert program.labels == (("first", 0), ("second", 0), ("third", 1), ("end", 4))


def test_a_label_after_the_last_halt_names_a_halt_of_its_own() -> None:
    assert assemble(".code\ngoto end\nhalt\nend:").instructions == (Step(None, Branch(None, 2)), Halt(), Halt())


def test_a_program_without_data() -> None:
    assert assemble(".code\nhalt").instructions == (Halt(),)


def test_pointer_functions() -> None:
    program = assemble(code(
        "        incr_pointer(step.a)", "        incr_pointer(3.b); if x <= 0 goto step",
        "        reset_pointer(step.c, M[2]); goto step", "step:   v = add(v, v); if x <= 0 goto step",
        "        reset_pointer(step.flag, x)", "        reset_pointer(step.p, done)", "        reset_pointer(step.p, 1)",
        "done:   halt"))
    assert program.pointer_updates() == [
        PointerUpdate(3, "a"), PointerUpdate(3, "b"), PointerUpdate(3, "c", 4), PointerUpdate(3, "flag", 0),
        PointerUpdate(3, "p", 7), PointerUpdate(3, "p", 1)]
    assert [i.branch for i in program.instructions[:3] if isinstance(i, Step)] == [None, Branch(0, 3), Branch(None, 3)]
    assert assemble(disassemble(program)) == program


@pytest.mark.parametrize(("call", "operands"), [
    ("mul_ba(M, v)", (1, 2)), ("mul_aa(M)", (2, 2)), ("mul_aa(M, v)", (2, 2)), ("mul_bb(v, M)", (2, 2)),
])
def test_aliases_of_mul(call: str, operands: tuple[int, int]) -> None:
    target = {"mul_ba": "R"}.get(call[:6], "S")
    program = assemble(f".data\nx scalar\nv vector 2\nM matrix 2x3\nR matrix 1x3\nS matrix 3x3\n.code\n{target} = {call}")
    first = program.instructions[0]
    assert isinstance(first, Step)
    assert isinstance(first.action, Call)
    assert (first.action.function, first.action.a, first.action.b) == ("mul", *operands)
    assert call[:6] in ALIASES
    assert assemble(disassemble(program)) == program


def test_functions_of_the_user() -> None:
    extra = {"maximum": MAXIMUM}
    program = assemble(code("v = maximum(v, v)"), functions=extra)
    assert program.functions["maximum"] is MAXIMUM
    assert set(program.functions) == {*KNOWN, "maximum"}
    assert assemble(disassemble(program), functions=extra) == program
    assert assemble(disassemble(program), functions=program.functions) == program
    with pytest.raises(SourceError, match=r"unknown function 'maximun' \(did you mean 'maximum'\?\)"):
        assemble(code("v = maximun(v, v)"), functions=extra)


@pytest.mark.parametrize(("name", "function", "message"), [
    ("add", Function("add", 2, same_shape, np.add), "'add': the language has one of this name already"),
    ("mul_aa", Function("mul_aa", 1, same_shape, np.abs), "'mul_aa': the language has one of this name already"),
    ("file", Function("file", 1, same_shape, np.abs), "'file': the language has one"),
    ("incr_pointer", Function("incr_pointer", 1, same_shape, np.abs), "the language has one"),
    ("three", Function("three", 3, same_shape, np.abs), "'three' takes 3 operands: an instruction has one or two"),
    ("a b", Function("a b", 1, same_shape, np.abs), "letters, digits and _"),
    ("one", Function("two", 1, same_shape, np.abs), "function 'one', declared as 'two': both names are the same"),
])
def test_functions_that_cannot_be_added(name: str, function: Function, message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        assemble(NEWTON, functions={name: function})


@st.composite
def programs(draw: st.DrawFn) -> FleqProgram:
    """Programs with labels, branches, pointer updates, columns of matrices and any finite values."""
    names = draw(st.lists(st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,5}", fullmatch=True).filter(
        lambda name: name not in ("if", "goto", "halt")), min_size=1, max_size=4, unique=True))
    size = st.integers(1, 3)
    variables = variables_in_order([(name, Shape(draw(size), draw(size))) for name in names])
    entry = st.floats(-1e300, 1e300)
    values = {v.name: np.array([[draw(entry) for _ in v.columns] for _ in range(v.shape.rows)]) for v in variables}
    columns = sum(v.shape.columns for v in variables)
    count = draw(st.integers(1, 7))
    column, target = st.integers(0, columns - 1), st.integers(0, count)
    branch = st.builds(Branch, st.none() | column, target)
    call = st.sampled_from(calls(variables))
    step = st.one_of(st.builds(Step, call, st.none() | branch), st.builds(Step, st.none(), branch), st.just(Halt()))
    instructions: list[Instruction] = [*draw(st.lists(step, min_size=count, max_size=count)), Halt()]
    fields = [(number, name) for number, instruction in enumerate(instructions) for name in pointers(instruction)]
    # a pointer function replaces a halt, or joins a branch, so that every field that is named stays
    for place, instruction in enumerate(instructions[:-1]):
        if fields and (isinstance(instruction, Halt) or instruction.action is None) and draw(st.booleans()):
            number, name = draw(st.sampled_from(fields))
            value = draw(st.none() | (target if name == "p" else column))
            instructions[place] = Step(PointerUpdate(number, name, value), getattr(instruction, "branch", None))
    labels = draw(st.dictionaries(st.from_regex(r"[a-z_]{1,6}", fullmatch=True), target, max_size=4))
    in_order = tuple(sorted(labels.items(), key=lambda label: label[1]))
    return FleqProgram(tuple(instructions), variables, values, KNOWN, in_order, draw(st.floats(1e300, 1e308)))


def calls(variables: tuple[Variable, ...]) -> list[Call]:
    """Every call whose shapes fit, of variables and their columns."""
    places = {(v.address, v.shape) for v in variables}
    places |= {(column, Shape(v.shape.rows, 1)) for v in variables for column in v.columns}
    ordered = sorted(places, key=lambda place: (place[0], place[1].rows, place[1].columns))
    found = []
    for function in KNOWN.values():
        for operands in itertools.product(ordered, repeat=function.arity):
            try:
                result = function.shape(*(shape for _, shape in operands))
            except ShapeMismatch:
                continue
            found += [Call.of(function.name, operands, place) for place in ordered if place[1] == result]
    return found


@given(programs())
def test_any_program_round_trips(program: FleqProgram) -> None:
    text = disassemble(program)
    again = assemble(text)
    assert again == program
    assert disassemble(again) == text
    for name, value in program.values.items():
        assert again.values[name].tobytes() == value.tobytes(), "bit for bit"


def test_what_cannot_be_disassembled() -> None:
    variables = variables_in_order([("x", SCALAR), ("y", SCALAR)])
    values = {"x": np.zeros((1, 1)), "y": np.zeros((1, 1))}
    across = Step(Call("transpose", 0, None, 0, Shape(1, 2), None, Shape(1, 2)))
    for step, message in ((Step(), "instruction 0 does nothing"),
                          (across, "instruction 0 uses memory where no variable begins"),
                          (Step(None, Branch(5, 0)), "instruction 0 uses memory where no variable begins: 5")):
        with pytest.raises(ProgramError, match=message):
            disassemble(FleqProgram((step, Halt()), variables, values, KNOWN))


def test_random_values() -> None:
    program = assemble(".data\nU matrix 3x2 random(7)\nv vector 4 random(8)\n.code\nhalt")
    assert np.array_equal(program.values["U"], np.random.default_rng(7).uniform(-1, 1, (3, 2)))
    assert np.array_equal(program.values["v"], np.random.default_rng(8).uniform(-1, 1, (4, 1)))
    assert assemble(disassemble(program)) == program, "the text has the values themselves"


def test_the_programs_in_the_docs_assemble() -> None:
    blocks = re.findall(r"(?:^    .*\n)+", (ROOT / "docs" / "fleq-language.md").read_text(), re.MULTILINE)
    whole = [block for block in blocks if ".code" in block]
    assert len(whole) == 3
    for block in whole:
        program = assemble(block)
        assert assemble(disassemble(program)) == program
    assert assemble(whole[0]) == assemble(NEWTON)
