"""The calculator: an expression, computed by a looped transformer that has the paper's six functions.

    import punchcard

    result = punchcard.calc("sqrt(1/((a+b-c)*d))/100", a=3, b=2, c=1, d=0.5)
    result.value, result.exact, result.error, result.bound

The machine is built from a list of functions and from sizes, never from an expression: all arithmetic runs on the same
weights. Fitted functions, abs, min, max, real powers, and wide declared ranges add functions to the list.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from punchcard.arguments import checked
from punchcard.calculator.blocks import RANGES, Blocks
from punchcard.calculator.compiler import CompiledExpression, compile_expression
from punchcard.calculator.exact import Exact
from punchcard.calculator.expression import quotient
from punchcard.calculator.functions import STANDARD, base_name
from punchcard.engines import NO_CONTROLS, Controls
from punchcard.errors import ProgramError, PunchcardError
from punchcard.machines.checkpoint import begin, resume
from punchcard.machines.fleq.blocks.catalogue import TERMS
from punchcard.machines.fleq.functions import Function
from punchcard.machines.fleq.isa import FleqProgram, FleqState
from punchcard.machines.fleq.machine import FleqMachine
from punchcard.machines.fleq.text.assembler import disassemble
from punchcard.machines.result import Report
from punchcard.python.intervals import Interval
from punchcard.transformer.precision import as_precision

__all__ = ["Calculation", "Number", "calc", "calculator_machine", "compile_calculation"]

Number: TypeAlias = int | float | str | Fraction | Decimal | np.floating[Any]
MEMORY, INSTRUCTIONS = 32, 64
ENGINE = "scratchpad"
"""The fastest engine for the few loops of a calculation: on 165 columns in half of the dense engine's time."""
HEADS = 3
MOST_TERMS = 512


@dataclass(frozen=True)
class Calculation:
    """What `calc` returns.

    value       the value that the transformer computed
    exact       the exact value
    error       |value - exact|
    bound       the error bound: `error` should not exceed it
    steps       how many instructions were executed
    program     the FLEQ program;  machine   the machine that ran it
    report      the whole run; each instruction was compared with the exact function
    """

    expression: str
    value: float
    exact: float
    error: float
    bound: float
    steps: int
    program: FleqProgram = field(repr=False)
    machine: FleqMachine = field(repr=False)
    report: Report[FleqState] = field(repr=False)

    @property
    def ok(self) -> bool:
        """Whether the error is within the bound, for the result and for each instruction."""
        return self.report.ok and self.error <= self.bound

    @property
    def text(self) -> str:
        """The program as `.fleq` text."""
        return program_text(self.expression, self.program)


@checked
def calc(
    expression: str,
    variables: Mapping[str, Number] | None = None,
    /,
    *,
    ranges: Mapping[str, Sequence[Number]] | None = None,
    heads: int = HEADS,
    terms: int = TERMS,
    precision: str = "float64",
    design: str = "compact",
    newton: int | None = None,
    engine: str = ENGINE,
    controls: Controls = NO_CONTROLS,
    **named: Number,
) -> Calculation:
    """Compute an expression on a looped transformer: compile it to a FLEQ program, and run the program.

        punchcard.calc("sqrt(x^2 + y^2)", x=3, y=4).value

    variables     values of variables in a mapping, needed if a variable has the name of an option. Otherwise use keywords
    ranges        a mapping from variables to (low, high): the program is compiled for all values in these ranges
    heads         heads of a product, 1 to 3: more heads, smaller error
    terms         sigmoids in the sum that approximates a function
    precision     "float64" or "float32";  design   a design of the FLEQ machine
    newton        Newton steps that refine 1/x and sqrt(x), default: as many as needed
    engine        the engine that applies the model, default: "scratchpad"
    controls      functions to call between loops: see `Controls`

    Returns a `Calculation`. Raises `ProgramError` for a wrong expression.
    """
    compiled, blocks = compile_calculation(expression, {**(variables or {}), **named}, ranges=ranges, heads=heads,
                                           terms=terms, precision=precision, newton=newton)
    return run_calculation(expression, compiled, blocks, design=design, engine=engine, controls=controls)


def run_calculation(
    expression: str, compiled: CompiledExpression, blocks: Blocks, *, design: str = "compact", engine: str = ENGINE,
    controls: Controls = NO_CONTROLS,
) -> Calculation:
    """Run the program of an expression on a machine with the function blocks that it was compiled for."""
    program = compiled.program
    machine = calculator_machine(
        blocks, compiled.extra_functions, design,
        memory=_room(program.columns, MEMORY), instructions=_room(len(program.instructions), INSTRUCTIONS))
    report = resume(begin(program, machine, engine=engine), controls=controls)
    if report.result.interrupted:
        raise PunchcardError(f"interrupted after {report.result.loops} of {len(program.instructions)} loops")
    value = float(report.result.memory[compiled.result][0, 0])
    error = float(abs(Fraction(value) - compiled.exact)) if math.isfinite(value) else math.inf
    # one rounding more, for those who compare with `exact`, which is a float64 too
    bound = compiled.bound + 2.0**-53 * abs(float(compiled.exact))
    return Calculation(expression, value, float(compiled.exact), error, bound, report.result.steps, program, machine, report)


def compile_calculation(
    expression: str, variables: Mapping[str, Number], *, ranges: Mapping[str, Sequence[Number]] | None = None,
    heads: int = HEADS, terms: int = TERMS, precision: str = "float64", newton: int | None = None,
) -> tuple[CompiledExpression, Blocks]:
    """The program of an expression, and the function blocks that it was compiled for."""
    if not isinstance(expression, str):
        raise ProgramError(f"{expression!r}: an expression is a text")
    if heads not in (1, 2, 3):
        raise PunchcardError(f"heads={heads}: a soft product takes 1, 2 or 3 heads")
    if not 1 <= terms <= MOST_TERMS:
        raise PunchcardError(f"terms={terms}: a sum of sigmoids has 1 to {MOST_TERMS} terms")
    if newton is not None and not 0 <= newton <= 8:
        raise PunchcardError(f"newton={newton}: 0 to 8 steps refine an inverse or a root")
    significand = as_precision(precision).significand
    if significand not in RANGES:
        raise PunchcardError(f"precision {precision!r}: the calculator's numbers are float64 or float32")
    blocks = Blocks(significand, heads, terms)
    values = {name: _exact(name, value) for name, value in variables.items()}
    intervals = {name: _interval(name, ends) for name, ends in (ranges or {}).items()}
    return compile_expression(expression, values, blocks, ranges=intervals, newton=newton), blocks


@lru_cache(maxsize=16)
def calculator_machine(
    blocks: Blocks, extra: tuple[Function, ...] = (), design: str = "compact", memory: int = MEMORY,
    instructions: int = INSTRUCTIONS,
) -> FleqMachine:
    """The standard calculator machine, or one with functions beyond the standard ones."""
    precision = {53: "float64", 24: "float32"}[blocks.significand]
    return FleqMachine(functions=[blocks.block(function) for function in (*STANDARD, *extra)], size=1, memory=memory,
                       instructions=instructions, range=blocks.range, heads=blocks.heads, design=design, precision=precision)


def program_text(expression: str, program: FleqProgram) -> str:
    """A program as `.fleq` text, with what its functions approximate."""
    notes = [f"# {' '.join(expression.split())}"]
    for name in program.used_functions():
        function = program.functions[name]
        if function.domain is not None:
            low, high = function.domain
            notes.append(f"# {name}: {base_name(function)} of {low:g} to {high:g} as a sum of sigmoids")
    return "\n".join([*notes, disassemble(program)])


def _room(needed: int, least: int) -> int:
    """Room for a program: the least that is usual, or the next power of two."""
    return max(least, 1 << (needed - 1).bit_length())


def _exact(name: str, value: Number) -> Fraction:
    """A number as it was given: a text and a decimal exactly, a float as the binary fraction that it is."""
    if isinstance(value, str):
        found = quotient(value)
        if found is None:
            raise ProgramError(f"{name}={value!r}: a value is a decimal number such as 3, -0.5 or 1e-3, or a quotient of "
                               "two such as 1/3")
        return found
    try:
        return Fraction(float(value)) if isinstance(value, np.floating) else Fraction(value)
    except (TypeError, ValueError, OverflowError):
        raise ProgramError(f"{name}={value!r}: a value is a finite number") from None


def _interval(name: str, ends: Sequence[Number]) -> Exact:
    if isinstance(ends, str) or len(ends) != 2:
        raise ProgramError(f"range {name}={ends!r}: give its two ends, low and high")
    low, high = _exact(name, ends[0]), _exact(name, ends[1])
    if low > high:
        raise ProgramError(f"range {name}={ends[0]}:{ends[1]}: low must not be above high")
    return Interval(low, high)
