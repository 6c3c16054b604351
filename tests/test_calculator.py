"""The calculator: the paper's program, several hundred random expressions against their bounds, ranges, and refusals."""

from __future__ import annotations

import ast
import math
import re
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import punchcard
from punchcard.calculator import exact
from punchcard.calculator.blocks import Blocks, fitted
from punchcard.calculator.calculation import calculator_machine, compile_calculation, program_text
from punchcard.calculator.expression import parse
from punchcard.calculator.functions import DOMAINS, SHIFT, STANDARD, banded, wide
from punchcard.errors import ProgramError, PunchcardError, SourceError
from punchcard.machines.fleq.functions import ADD, INVERSE, SQRT
from punchcard.python.intervals import Interval
from tests.calculator_cases import Expressions
from tests.cases import soaked
from tests.pages import page

PAPER = "sqrt(1/((a+b-c)*d))/100"
OPERANDS = {"a": 3, "b": 2, "c": 1, "d": 0.5}
STANDARD_BLOCKS = Blocks(53, 3, 64)
# The paper's calculator, below, and one set of random expressions run on the dense engine, the equation itself.
calc = partial(punchcard.calc, engine="scratchpad")


def lines(text: str) -> list[str]:
    """The lines of code of a program."""
    return [line.strip() for line in text.split(".code\n")[1].splitlines() if line.strip() != "halt"]


def compiled(expression: str, *, newton: int | None = None, **values: float) -> list[str]:
    """The lines of code of an expression, which is not run."""
    return lines(program_text(expression, compile_calculation(expression, values, newton=newton)[0].program))


# The paper's calculator

@pytest.mark.parametrize("design", ["compact", "three-layer", "paper"])
def test_the_sample_program_of_the_paper(design: str) -> None:
    result = punchcard.calc(PAPER, OPERANDS, design=design)
    assert lines(result.text) == ["t = add(a, b)", "t = sub(t, c)", "t = mul(t, d)", "t = inverse(t)", "t = sqrt(t)",
                                    "t = percentage(t)"]
    assert result.steps == 6
    assert result.exact == math.sqrt(1 / 2) / 100
    assert abs(result.value - result.exact) <= result.error * 1.01 + 1e-18
    assert result.error <= result.bound < 1e-11 * result.exact
    assert result.ok
    layers = {"compact": 4, "three-layer": 3, "paper": 12}  # 12 is the theorem's figure
    assert len(result.machine.model.shapes) == layers[design]


@pytest.mark.parametrize("engine", ["scratchpad", soaked("auto")])
def test_the_text_runs_on_a_plain_machine(engine: str) -> None:
    """With the paper's six functions alone, the text is FLEQ as anybody would write it."""
    text = punchcard.calc(PAPER, OPERANDS).text
    report = punchcard.run(punchcard.assemble(text, "fleq"), heads=3, engine=engine)
    assert report.ok
    assert abs(report.result.memory["t"].item() - math.sqrt(1 / 2) / 100) < 1e-11


def test_the_text_assembles_to_the_program() -> None:
    result = punchcard.calc("exp(x) / (halted - scalar) + t", {"x": 1.5, "halted": 4000, "scalar": 1e-3, "t": 2})
    own = {name: f for name, f in result.program.functions.items() if name in result.program.used_functions()}
    extra = {name: f for name, f in own.items() if f not in (ADD, INVERSE, SQRT) and name not in ("sub", "mul")}
    again = punchcard.assemble(result.text, "fleq", functions=extra)
    assert again.instructions == result.program.instructions
    assert again.variables == result.program.variables


def test_the_page_on_the_calculator() -> None:
    text = page("calculator.md")
    for function in STANDARD:
        assert f"`{function.name}`" in text
    result = punchcard.calc("a", a=1, design="paper")
    heads = ", ".join(str(shape.heads) for shape in result.machine.model.shapes)
    assert f"12 layers, as the theorem says, with {heads} heads" in text


# The machine

def test_all_arithmetic_runs_on_the_same_weights() -> None:
    first = calc("a + b * 3", a=1, b=2)
    second = calc("sqrt(x) / (x - 1e5)^2", x=7)
    assert first.machine is second.machine
    assert list(first.machine.blocks) == [function.name for function in STANDARD]
    other = calculator_machine.__wrapped__(STANDARD_BLOCKS)
    state, expected = other.model.state_dict(), first.machine.model.state_dict()
    assert state.keys() == expected.keys()
    assert all(torch.equal(state[name], expected[name]) for name in state)


def test_a_band_is_made_to_a_range_and_never_to_a_value() -> None:
    for name in DOMAINS:
        assert banded(name, 1.25, 1.25) is banded(name, 3.5, 3.5)
        low, high = banded(name, 1.25, 1.25).domain or (0, 0)
        assert low <= 1.25 <= high
        assert (math.log2(high / low) if name == "log" else high - low) >= 4
    result = calc("exp(x) + sin(x) * log(x)", x=2.5)
    again = calc("log(y) - exp(y + 1) / sin(y)", y=1.5)
    assert list(result.machine.blocks)[len(STANDARD):] == ["exp_0_4", "sin_0_4", "log_2p0_2p4"]
    assert sorted(result.machine.blocks) == sorted(again.machine.blocks)


def test_more_room_for_a_long_expression() -> None:
    result = calc("+".join(f"x * {n}.125" for n in range(33)), x=2)
    assert result.machine.sizes.instructions == 128
    assert result.steps == 92
    assert result.ok
    assert result.exact == 2 * (33 * 16 + 33 * 0.125)


def test_equal_parts_are_computed_once() -> None:
    assert compiled("(x + y) * z - 1 / (x + y)", x=1, y=2, z=3)[0] == "t = add(x, y)"
    assert len(compiled("(x + y) * z - 1 / (x + y)", x=1, y=2, z=3)) == 4
    assert len(compiled("+".join(["x * y"] * 33), x=1.5, y=2)) == 33


# Random expressions

def check_random(seed: int, count: int, **options: Any) -> float:
    """Every value is within its bound, and the exact value in the case's interval; gives the largest relative error."""
    expressions = Expressions(seed, functions=options.pop("functions", False), decades=options.pop("decades", 1.5))
    worst = 0.0
    for _ in range(count):
        case = expressions.next()
        names = {token.text for token in parse(case.text).variables.values()}
        used = {name: value for name, value in expressions.values.items() if name in names}
        result = calc(case.text, used, **options)
        where = f"{case.text} with {used}"
        rounding = 2.0**-52 * abs(result.exact)
        assert case.low - rounding <= result.exact <= case.high + rounding, where
        assert result.ok, f"{where}: error {result.error}, bound {result.bound}, {result.report.why}"
        assert abs(result.value - result.exact) <= result.bound, where
        worst = max(worst, result.error / abs(result.exact))
    return worst


@pytest.mark.parametrize(("seed", "count"), [(0, 10), *(soaked(seed, 30) for seed in range(5))])
def test_random_arithmetic(seed: int, count: int) -> None:
    assert check_random(seed, count) < 1e-8


@pytest.mark.parametrize(("seed", "count"), [(10, 6), soaked(10, 14), soaked(11, 14)])
def test_random_expressions_with_fitted_functions(seed: int, count: int) -> None:
    assert check_random(seed, count, functions=True) < 1e-8


@pytest.mark.parametrize("count", [4, soaked(12)])
def test_random_expressions_over_many_decades(count: int) -> None:
    assert check_random(20, count, decades=4.0, engine="dense") < 1e-8


@pytest.mark.parametrize("count", [2, soaked(6)])
@pytest.mark.parametrize(("options", "relative"), [
    ({"design": "paper"}, 1e-8), ({"heads": 1}, 1e-7), ({"terms": 16}, 1e-8),
    ({"precision": "float32", "decades": 0.3}, 1e-2),
])
def test_random_expressions_on_other_machines(options: dict[str, Any], relative: float, count: int) -> None:
    assert check_random(30, count, **options) < relative


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 110))
def test_random_soak(seed: int) -> None:
    assert check_random(seed, 100, functions=seed % 2 == 1, decades=1.0 + seed % 4) < 1e-8


# Accuracy

@pytest.mark.parametrize(("text", "values"), [
    ("a * b", {"a": 1e-20, "b": 1e-15}),
    ("a * b", {"a": 3.3e11, "b": 3.1e-9}),
    ("a / b", {"a": 1e6, "b": -3e-4}),
    ("1 / x", {"x": 0.1}),
    ("1 / x", {"x": 9.5e11}),
    ("sqrt(x)", {"x": 1e-9}),
    ("sqrt(x)", {"x": 1e12}),
    ("x^20", {"x": -1.9}),
    ("x^-7", {"x": 31}),
    ("x%", {"x": 12345.678}),
    ("exp(x)", {"x": -40}),
    ("exp(x)", {"x": 27}),
    ("log(x)", {"x": 1e-12}),
    ("tanh(x)", {"x": 900}),
    ("cos(x)", {"x": -900}),
])
def test_relative_accuracy_at_all_magnitudes(text: str, values: dict[str, float]) -> None:
    result = calc(text, values)
    assert result.ok
    assert result.bound < 1e-9 * abs(result.exact)


def test_the_value_of_decimals_as_they_are_written() -> None:
    result = calc("x + 0.2", x="0.1")
    assert result.exact == 0.3
    assert 0 < result.error <= result.bound < 1e-15
    assert calc("x + 0", x=0.1).error == 0
    assert calc("x + y + z", x=Fraction(1, 4), y=Decimal("0.5"), z=np.float32(2)).value == 2.75


def test_few_terms_are_made_up_for_by_newton_steps() -> None:
    for terms, steps in ((6, 0), (8, 0), (16, None), (8, None)):
        result = calc("1/x + sqrt(y)", x=3, y=2, terms=terms, newton=steps)
        assert result.ok
        if steps is None:
            assert result.bound < 1e-9
        else:
            assert result.bound > 1e-6
    assert len(compiled("1/x", x=3, newton=2)) > len(compiled("1/x", x=3))
    with pytest.raises(ProgramError, match="too much for Newton's iteration"):
        calc("1/x", x=3, terms=1, newton=1)


@pytest.mark.parametrize("text", ["sqrt(x)", "x * 3", "x * x + 1", "1 + x / 7"])
def test_numbers_below_the_least(text: str) -> None:
    assert calc(text, x="1e-320").ok
    assert calc(text, x="1e-60", precision="float32").ok


def test_the_root_of_zero() -> None:
    result = calc("sqrt(a - b)", a=0.1, b=0.1)
    assert result.exact == 0
    assert result.error <= result.bound < 1e-11
    product = calc("sqrt(a * b - c)", a=3, b=7, c=21)
    assert product.error <= product.bound < 1e-4


# Ranges

@pytest.mark.parametrize(("text", "interval", "values"), [
    soaked("1/x + sqrt(x)", (0.001, 1000), (0.001, 47, 1000)),
    ("1/x", (-5e3, -0.01), (-0.01, -3, -5e3)),
    ("x * x - x", (-100, 100), (-100, 0.25, 99)),
    soaked("x / (x + 1)", (0.5, 2), (0.5, 1, 2)),
    ("exp(x) + log(x + 5)", (-4, 4), (-4, 0, 4)),
    ("sqrt(x)", (0, 16), (0.001, 16)),
    soaked("sin(x) * cos(x) + tanh(x)", (-3, 30), (-3, 1, 30)),
])
def test_one_program_for_a_range(text: str, interval: tuple[float, float], values: tuple[float, ...]) -> None:
    found = set()
    for value in values:
        result = calc(text, {"x": value}, ranges={"x": interval})
        assert result.ok
        assert result.error < 1e-8 * abs(result.exact)
        found.add(result.text.split(".code")[1])
    assert len(found) == 1


def test_the_bound_is_for_the_value_and_the_program_for_the_range() -> None:
    narrow = calc("sqrt(x)", x=4, ranges={"x": (1, 16)})
    broad = calc("sqrt(x)", x=4, ranges={"x": (0, 16)})
    zero = calc("sqrt(x)", x=0, ranges={"x": (0, 16)})
    assert narrow.bound < broad.bound < 1e-9 < zero.bound
    assert zero.error <= zero.bound < 1e-3


# Folding

@pytest.mark.parametrize(("text", "expected"), [
    ("a * ((2 + 3) / 10 * 4)", ["t = add(a, a)"]),
    ("a * 2", ["t = add(a, a)"]),
    ("a / 2", ["t = over2(a)"]),
    ("a / 3", ["t = mul(k, a)"]),
    ("2 / 10 * a + 0", ["t = mul(k, a)"]),
    ("a * 1%", ["t = percentage(a)"]),
    ("a / 1", ["t = add(a, zero)"]),
    ("a * 0 + a^0", ["t = add(one, zero)"]),
    ("-a", ["t = sub(zero, a)"]),
    ("a^4", ["t = mul(a, a)", "t = mul(t, t)"]),
    ("a^3 - a", ["t = mul(a, a)", "t = mul(t, a)", "t = sub(t, a)"]),
    ("(a - 1) * (a + 1)", ["t = sub(a, one)", "t2 = add(a, one)", "t = mul(t, t2)"]),
    ("sqrt(16) * a", ["t = add(a, a)", "t = add(t, t)"]),
])
def test_constants_are_folded(text: str, expected: list[str]) -> None:
    assert compiled(text, a=1.75) == expected


def test_numbers_are_data_where_there_is_no_variable() -> None:
    assert compiled("2 + 3 * 4") == ["t = mul(k2, k3)", "t = add(k1, t)"]
    assert compiled("1/3") == ["t = inverse(k2)"]
    assert compiled("7/100") == ["t = percentage(k1)"]
    assert calc("sqrt(2)").machine is calc("5").machine


def test_names_of_variables_are_kept_apart() -> None:
    result = calc("(t - one) * (t2 + one) / k1 - zero * 3", t=5, one=2, t2=1, k1=4, zero=1)
    assert result.exact == -0.75
    assert result.ok
    program = result.program
    assert len({variable.name for variable in program.variables}) == len(program.variables)


# Constants, choices and real powers

@pytest.mark.parametrize(("expression", "values", "wanted", "instructions"), [
    ("2 * pi * r", {"r": 3}, 6 * math.pi, ["mul", "times16"]),
    ("e^x", {"x": 1.5}, math.exp(1.5), ["exp_0_4"]),
    ("e + 1", {"e": 3}, 4.0, ["add"]),
    ("abs(x) - abs(y)", {"x": -3, "y": 0.5}, 2.5, ["abs", "abs", "sub"]),
    ("min(x, y)", {"x": 1e12, "y": 1e-3}, 1e-3, ["min"]),
    ("max(x, y)", {"x": -1e12, "y": -1e-3}, -1e-3, ["max"]),
    ("min(x, 4, y, 2 * y)", {"x": 9, "y": 3}, 3.0, ["add", "min", "min", "min"]),
    ("x ** 0.5", {"x": 2}, math.sqrt(2), ["sqrt"]),
    ("x^-1.5", {"x": 4}, 0.125, ["sqrt", "mul", "mul", "inverse"]),
    ("2**x", {"x": 0.3}, 2**0.3, ["mul", "exp_0_4"]),
    ("x^y", {"x": 3, "y": -2.7}, 3**-2.7, ["log_2p0_2p4", "mul", "exp_m4_0"]),
    ("x^(1/3)", {"x": 8}, 2.0, ["log_2p0_2p4", "mul", "exp_0_4"]),
    ("x", {"x": "-1/3"}, -1 / 3, ["add"]),
])
def test_what_a_calculator_has(expression: str, values: dict[str, Any], wanted: float, instructions: list[str]) -> None:
    result = calc(expression, values)
    assert [line.split(" = ")[1].split("(")[0] for line in lines(result.text)] == instructions
    assert result.ok
    assert result.exact == pytest.approx(wanted, rel=1e-15)
    assert result.error <= result.bound <= 1e-10 * abs(wanted)


def test_choices_are_exact() -> None:
    """The operand that is the result stands first, where nothing is rounded; in a range either order is right."""
    for x, y in ((1e-9, 1e9), (1e9, 1e-9), (-1e9, 1e-9), (5.0, 5.0)):
        assert calc("min(x, y)", x=x, y=y).value == min(x, y)
        assert calc("max(x, y)", x=x, y=y).value == max(x, y)
        assert calc("abs(x)", x=-x).value == abs(x)
    for x in (-1.0, 0.3, 2.0):
        result = calc("min(x, 1) * max(x, 0)", x=x, ranges={"x": (-1, 2)})
        assert result.ok
        assert abs(result.value - min(x, 1) * max(x, 0)) <= result.bound


@pytest.mark.parametrize(("expression", "values", "says"), [
    ("x^0.3", {"x": 0}, "the power 0.3 of a number that is not positive, x is 0: its exponent must be a whole number"),
    ("x^y", {"x": -2, "y": 2}, "the power y of a number that is not positive, x is -2"),
    ("x^0.5", {"x": -2}, "square root of a negative number, x is -2"),
    ("x^-0.5", {"x": 0}, "division by zero, x is 0"),
    ("2^x", {"x": 50}, r"x \* log\(2\) is 34.6574, outside the range of exp, -64 to 32"),
    ("min(x)", {"x": 1}, "min of one number: it takes two or more, separated by commas"),
    ("min(x, )", {"x": 1}, r"found '\)': expected a number"),
    ("abs(x, x)", {"x": 1}, "found ',': expected an operator, or the"),
    ("x^", {"x": 1}, "the expression ends here: expected a number"),
    ("x", {"x": "1/0"}, "x='1/0': a value is a decimal number such as 3, -0.5 or 1e-3, or a quotient of two such as 1/3"),
    ("x", {"x": "1/2/3"}, "or a quotient of two"),
    (3, {}, "an expression is a text"),
    ("(x - x)% + log(x - x)", {"x": 1}, "division by zero, or the logarithm of zero"),
])
def test_what_a_calculator_has_not(expression: Any, values: dict[str, Any], says: str) -> None:
    with pytest.raises(ProgramError, match=says):
        compile_calculation(expression, values)


# The language

def evaluate(text: str) -> Fraction:
    """The value of an expression without variables: its translation, run by Python."""
    found = parse(text)
    names: dict[str, Any] = {"power": pow}
    exec(compile(ast.fix_missing_locations(ast.Module([found.source.node], [])), "expression", "exec"), names)
    return Fraction(names["calculation"](**{name: value for name, (value, _) in found.numbers.items()}))


OPERAND = st.integers(1, 9).map(str) | st.sampled_from(["-3", "(2 + 5)", "2 ** 3", "-2 ** 2", "(7 - 3 * 2)"])


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_precedence_is_that_of_arithmetic(data: st.DataObject) -> None:
    text = data.draw(st.integers(1, 9).map(str))
    for _ in range(data.draw(st.integers(0, 6))):
        operand = data.draw(OPERAND)
        text += f" {data.draw(st.sampled_from('+-*/'))} {operand}"
        if data.draw(st.booleans()):
            text = f"({text})"
    numbers = re.sub(r"(?<!\*\* )\b\d+", lambda m: f"Fraction({m.group()})", text)
    assert evaluate(text) == eval(numbers, {"Fraction": Fraction})
    assert evaluate(text.replace("**", "^").replace(" ", "")) == evaluate(text)


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="ab12.e+-*/^%() sqrtlogx", max_size=30))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    refused = None
    try:
        found = parse(text)
    except SourceError as error:
        refused = error
    if refused is not None:
        assert 1 <= refused.column <= len(text) + 1
        assert "\n" not in str(refused)
    else:
        assert found.numbers or found.variables
        assert all(text[token.start : token.end] == token.text for token in found.variables.values())


def test_postfix_operators_go_from_left_to_right() -> None:
    assert evaluate("200%^2") == 4
    assert evaluate("20^2%") == 4
    assert evaluate("50%%") == Fraction(1, 200)
    assert evaluate("-2^2") == -4
    assert evaluate("2^-2") == Fraction(1, 4)
    assert evaluate(".5e1 - - 3.") == 8


@pytest.mark.parametrize(("text", "column", "message"), [
    ("", 1, "the expression ends here: expected a number"),
    ("a +", 4, "the expression ends here"),
    ("a b", 3, "found 'b'"),
    ("(a + b", 7, "the ) of the ( at column 1"),
    ("a + b)", 6, "found ')'"),
    ("a $ b", 3, "unexpected character '$'"),
    ("sqr(a)", 1, "unknown function 'sqr' (did you mean 'sqrt'?)"),
    ("a(b)", 1, "unknown function 'a'"),
    ("sqrt + a", 1, "sqrt is a function: write sqrt(...)"),
    ("a^*b", 3, "found '*': expected a number, a variable, a function or a parenthesis"),
    ("a^2^3", 4, "two powers in a row"),
    ("a^65", 3, "the largest is 64"),
    ("a + c", 5, "variable 'c' has no value"),
    ("a + halt", 5, "'halt' is a word of FLEQ"),
    ("1e999 * a", 1, "beyond the floating-point numbers"),
    ("1e300 * a", 1, "numbers stay within ±1.09951e+12"),
    ("(" * 200 + "a" + ")" * 200, 51, "nested more than 50 deep"),
    ("+".join(f"(a/{n}.5)^31" for n in range(1, 60)), 252, "more than 1000 instructions"),
    ("1 / (a - b)", 3, "division by zero, a - b is 0"),
    ("b + inverse(a - 3)", 5, "inverse(a - 3): division by zero, a - 3 is 0"),
    ("(a - b)^-1", 8, "division by zero, a - b is 0"),
    ("a / (1/3 * 3 - 1) * b", 3, "division by zero"),
    ("sqrt(a - 4)", 1, "square root of a negative number, a - 4 is -1"),
    ("log(a - b)", 1, "log of a number that is not positive, a - b is 0"),
    ("exp(20 * a)", 1, "20 * a is 60, outside the range of exp, -64 to 32"),
    ("sin(a * 1000)", 1, "a * 1000 is 3000, outside the range of sin"),
    ("a * 1e9 * 1000", 9, "a value of 3e+12: the calculator's numbers stay within"),
    ("1 / (a * b - 9)", 3, "division by zero"),
    ("a / 1e-310 + b", 3, "the number 1.00000e+310: the calculator's numbers stay within"),
    ("1 / (a * 1e-290)", 3, "1 / 3e-290: the calculator's numbers stay within"),
    ("1 / (a * b * b / b - 9 + 1e-15)", 3, "cannot be distinguished from 0"),
])
def test_refused_expressions(text: str, column: int, message: str) -> None:
    values = {name: 3 for name in "ab" if any(item == name for item in text)}
    with pytest.raises(SourceError) as caught:
        calc(text, values)
    assert caught.value.column == column
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("arguments", "message"), [
    ({"x": 1, "y": 2}, "'y' is not a variable of the expression"),
    ({"x": math.nan}, "a value is a finite number"),
    ({"x": "1/3/5"}, "a value is a decimal number"),
    ({"x": 1e13}, "x is 1e+13: the calculator's numbers stay within"),
    ({"x": 1, "ranges": {"x": (2, 3)}}, "x is 1, outside its range, 2 to 3"),
    ({"x": 1, "ranges": {"x": (3, 2)}}, "low must not be above high"),
    ({"x": 1, "ranges": {"x": (1,)}}, "give its two ends"),
    ({"x": 1, "ranges": {"y": (1, 2)}}, "a range for 'y'"),
    ({"x": 1, "ranges": {"x": (-1, 2)}}, "division by zero, x may be -1 to 2"),
    ({"x": 1, "ranges": {"x": (1e-6, 1e6)}}, "declare a narrower one"),
    ({"x": 1, "heads": 4}, "1, 2 or 3 heads"),
    ({"x": 1, "terms": 0}, "1 to 512 terms"),
    ({"x": 1, "newton": -1}, "0 to 8 steps"),
    ({"x": 1, "precision": "float16"}, "float64 or float32"),
    ({"x": 1, "precision": "double"}, "unknown number format 'double'"),
    ({"x": 1, "design": "one-layer"}, "unknown design 'one-layer'"),
])
def test_refused_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(PunchcardError) as caught:
        calc("1 / x", **arguments)
    assert message in str(caught.value)


# Exact values

def test_exact_functions() -> None:
    for name in (*DOMAINS, "sqrt"):
        for x in (-7.25, -1.5, 0.0, 1e-9, 0.3, 3.14159, 12.0):
            if x > 0 or name not in ("log", "sqrt"):
                assert float(exact.value(name, Fraction(x))) == pytest.approx(getattr(math, name)(x), rel=1e-15)


def test_exact_roots() -> None:
    assert exact.sqrt(Fraction(9, 16)) == Fraction(3, 4)
    assert exact.sqrt(Fraction(0)) == 0
    root = exact.sqrt(Fraction(2))
    assert abs(root**2 - 2) < Fraction(1, 10**70)
    assert abs(exact.value("sin", exact.PI)) < Fraction(1, 10**70)
    assert float(exact.PI) == math.pi


@settings(max_examples=100, deadline=None)
@given(st.floats(-20, 20), st.floats(0, 15), st.floats(0, 1))
def test_intervals_hold_their_values(low: float, width: float, part: float) -> None:
    interval = Interval(Fraction(low), Fraction(low + width))
    x = min(low + part * width, low + width)
    for values, value in (
        (exact.image("sin", interval), math.sin(x)), (exact.image("cos", interval), math.cos(x)),
        (exact.image("exp", interval), math.exp(x)), (exact.power(interval, 2), x**2), (exact.power(interval, 3), x**3),
        (interval * interval, x * x), (interval - interval, 0.0),
    ):
        assert float(values.low) - 1e-9 * abs(value) - 1e-12 <= value <= float(values.high) + 1e-9 * abs(value) + 1e-12


def test_long_fractions_are_rounded() -> None:
    long = Fraction(10**2000 + 1, 3 * 10**1999)
    assert exact.short(long).denominator.bit_length() < 300
    assert abs(exact.short(long) - long) < Fraction(1, 10**70)
    assert exact.short(-long * 10**3000) < 0


# Blocks

def test_shifts_are_exact() -> None:
    for power, function in SHIFT.items():
        assert np.array_equal(function.reference(np.array([3.3])), np.array([3.3 * 2.0**power]))
        assert STANDARD_BLOCKS.error(function, 1e9) == 0


def test_tanh_is_one_sigmoid() -> None:
    tanh = fitted(banded("tanh", 0.0, 1.0), 64, 2.0**-52)
    assert tanh.terms == 1
    x = np.linspace(-1000, 1000, 4001)
    assert np.abs(tanh(x) - np.tanh(x)).max() < 1e-15


def test_wide_blocks_have_the_error_they_promise() -> None:
    for function in (INVERSE, SQRT):
        block = fitted(wide(function, 10), 64, 2.0**-52)
        x = np.exp(np.random.default_rng(0).uniform(np.log(block.low), np.log(block.high), 5000))
        assert np.abs(block(x) - function.reference(x)).max() <= STANDARD_BLOCKS.error(wide(function, 10), 1.0)


def test_a_long_calculation_takes_a_faster_engine_and_tells_how_far_it_is() -> None:
    told: list[int] = []
    result = punchcard.calc("+".join(f"1/{n}.01" for n in range(1, 34)), controls=punchcard.Controls(progress=told.append))
    assert result.ok
    assert result.report.result.engine == "scratchpad"
    assert told == sorted(told)
    assert told[-1] == result.steps == result.report.result.loops - 1


def test_an_interrupted_calculation() -> None:
    """What has not been computed to its end has no value."""
    with pytest.raises(punchcard.PunchcardError, match=r"interrupted after \d+ of 114 loops"):
        punchcard.calc("+".join(f"1/{n}.01" for n in range(1, 34)), controls=punchcard.Controls(interrupted=lambda: True))
