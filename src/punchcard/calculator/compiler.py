"""The calculator's compiler, as a list of its passes, of which the array front end has the first and the last.

    parse(expression)              a function of Python
    lower(source, ...)             its operations
    ExpressionScaling(...).run()   the same, scaled: with shifts, bands and steps of Newton's iteration, and their errors
    generate(code, ...)            the FLEQ program

The paper's sample program, for sqrt(1 / ((a + b - c) d)) / 100, is what comes out for its expression:

    t = add(a, b);  t = sub(t, c);  t = mul(t, d);  t = inverse(t);  t = sqrt(t);  t = percentage(t)

Parts that are numbers alone are folded, and dividing by a number is multiplying by its reciprocal. But in an
expression without variables every number is data, so that the machine has something to compute. The program depends on
the ranges of the variables, by default the numbers themselves, only in which shifts and which fitted functions it calls.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from punchcard.calculator.blocks import Blocks
from punchcard.calculator.code import ScaledCode, ScaledTerm
from punchcard.calculator.exact import CONSTANTS, Exact, text
from punchcard.calculator.expression import ParsedExpression, parse
from punchcard.calculator.functions import FUNCTIONS, STANDARD
from punchcard.calculator.operations import ExpressionScaling
from punchcard.errors import ProgramError, did_you_mean
from punchcard.machines.fleq.functions import Function
from punchcard.machines.fleq.isa import FleqProgram
from punchcard.machines.fleq.text.source import KEYWORDS
from punchcard.python.arrays.code_generation import generate
from punchcard.python.arrays.compiler import lower
from punchcard.python.arrays.ir import Const, Op, Ref
from punchcard.python.arrays.values import REAL
from punchcard.python.intervals import Interval


@dataclass(frozen=True)
class CompiledExpression:
    """A program, the variable that holds its result, the exact value, and how far from it the result may be."""

    program: FleqProgram
    result: str
    exact: Fraction
    bound: float

    @property
    def extra_functions(self) -> tuple[Function, ...]:
        """The functions that the standard calculator machine has not."""
        standard = {function.name for function in STANDARD}
        return tuple(self.program.functions[name] for name in self.program.used_functions() if name not in standard)


def compile_expression(
    text: str,
    values: Mapping[str, Fraction],
    blocks: Blocks,
    *,
    ranges: Mapping[str, Exact] | None = None,
    newton: int | None = None,
) -> CompiledExpression:
    """Compile for the ranges of the variables; the bound is for the given values.

    `newton` is how many steps refine each 1/x and sqrt x; default: as many as their error needs.
    """
    expression = parse(text, values)
    ranges = ranges or {}
    _check_names(expression, values, ranges)
    parameters = [argument.arg for argument in expression.source.node.args.args]
    lowered = lower(expression.source, dict.fromkeys(parameters, ()), dict.fromkeys(parameters, REAL), {})
    code = ScaledCode(blocks, newton)
    result = ExpressionScaling(expression, lowered, values, ranges, code).run()
    if ranges:
        code = ScaledCode(blocks, newton, code.decisions)
        result = ExpressionScaling(expression, lowered, values, {}, code).run()
    program, variable = _generate(code, result)
    return CompiledExpression(program, variable, result.exact.low, result.error)


def _check_names(expression: ParsedExpression, values: Mapping[str, Fraction], ranges: Mapping[str, Exact]) -> None:
    """Every variable has a value, every value a variable, every range a value inside it."""
    variables = {token.text: token for token in expression.variables.values()}
    for name, token in variables.items():
        if name in KEYWORDS:
            raise expression.error(f"{name!r} is a word of FLEQ: name the variable otherwise", token.start + 1, name)
        if name not in values:
            near = did_you_mean(name, [*values, *FUNCTIONS, *CONSTANTS])
            raise expression.error(f"variable {name!r} has no value{near}: give it one, {name}=NUMBER", token.start + 1,
                                   name)
    for name in values:
        if name not in variables:
            has = f"it has {', '.join(variables)}" if variables else "it has none"
            raise ProgramError(f"{name!r} is not a variable of the expression{did_you_mean(name, variables)}: {has}")
    for name, interval in ranges.items():
        if name not in variables:
            raise ProgramError(f"a range for {name!r}, which is not a variable of the expression"
                               f"{did_you_mean(name, variables)}")
        if values[name] not in interval:
            raise ProgramError(f"{name} is {text(Interval.point(values[name]))}, outside its range, {text(interval)}")


def _generate(code: ScaledCode, result: ScaledTerm) -> tuple[FleqProgram, str]:
    """The program, and the variable that holds the result. Variables and data keep their places to the end."""
    data = {register.name: register for register in code.data}
    assert isinstance(result.operand, Ref)
    constants = [float(np.abs(operand.value).max()) for op in code.builder.code if isinstance(op, Op)
                 for operand in op.operands if isinstance(operand, Const)]
    largest = max(code.largest, *constants, FleqProgram.range)
    made = generate(code.builder.code, data, [result.operand.register, *data.values()], code.functions,
                    2.0 ** math.ceil(math.log2(largest)))
    punched = {made.parameters[name].variable: np.array([[code.data[register]]]) for name, register in data.items()}
    return made.program.with_values(punched), made.results[0].variable
