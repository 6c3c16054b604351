"""The command `calc`: arguments in, a calculation out. What is computed is in `calculator`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from punchcard.cli.options import json_option, memory_option
from punchcard.cli.terminal import out, print_json, write_output
from punchcard.errors import ProgramError
from punchcard.machines.fleq.kind import DESIGNS

if TYPE_CHECKING:
    from punchcard.calculator.calculation import Calculation

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


# An expression may begin with a minus, which is not an option.
@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("expression")
@click.argument("values", nargs=-1, metavar="[NAME=VALUE]...")
@click.option("--range", "ranges", multiple=True, metavar="NAME=LOW:HIGH",
              help="Compile for all values of a variable in a range; may be repeated.")
@click.option("--heads", type=click.IntRange(1, 3), default=3, show_default=True,
              help="Heads of a product: more heads, smaller error.")
@click.option("--terms", type=click.IntRange(1, 512), default=64, show_default=True,
              help="Sigmoids in the sum that approximates a function.")
@click.option("--newton", type=click.IntRange(0, 8),
              help="Newton steps after each inverse and root.  [default: as many as needed]")
@click.option("--dtype", type=click.Choice(["float64", "float32"]), default="float64", show_default=True,
              help="Number format.")
@click.option("--design", type=click.Choice(DESIGNS), default="compact", show_default=True,
              help="The machine's design.")
@memory_option
@click.option("--program", "show_program", is_flag=True,
              help="Print the program as .fleq text and do not run it; with --json, do both.")
@json_option
def calc(
    expression: str, values: tuple[str, ...], ranges: tuple[str, ...], heads: int, terms: int, newton: int | None,
    dtype: str, design: str, show_program: bool, as_json: bool,
) -> int:
    """Compute an expression on a looped transformer.

    There are + - * / ^ %, sqrt, inverse, exp, log, sin, cos, tanh, abs, min, max, pi and e.

    For example: punchcard calc "sqrt(1/((a+b-c)*d))/100" a=3 b=2 c=1 d=0.5
    """
    for argument in (expression, *values):
        if re.match(r"--[A-Za-z][A-Za-z-]+(=|$)", argument):
            raise click.UsageError(f"no such option: {argument.split('=')[0]}")
    bound = dict(_assignment(text, "NAME=VALUE") for text in values)
    if len(bound) < len(values):
        raise ProgramError(f"{' '.join(values)}: a variable is given twice")
    intervals = dict(_assignment(text, "--range NAME=LOW:HIGH") for text in ranges)
    if len(intervals) < len(ranges):
        raise ProgramError(f"--range {' --range '.join(ranges)}: a variable has two ranges")
    declared = {name: _ends(name, text) for name, text in intervals.items()}

    from punchcard.calculator.calculation import compile_calculation, program_text, run_calculation
    from punchcard.cli.display import PATIENCE, Progress
    from punchcard.engines import Controls

    compiled, blocks = compile_calculation(expression, bound, ranges=declared, heads=heads, terms=terms, precision=dtype,
                                           newton=newton)
    if show_program and not as_json:
        write_output(program_text(expression, compiled.program), None)
        return 0
    count = len(compiled.program.instructions) - 1
    with Progress(PATIENCE) as line:
        def made(loops: int) -> None:  # an instruction a loop, and then a loop to halt
            line.show(f"{min(loops, count)} of {count} instructions", done=loops, total=count)

        result = run_calculation(expression, compiled, blocks, design=design, controls=Controls(progress=made))
    _show(result, terms=terms, as_json=as_json, with_program=show_program)
    return 0 if result.ok else 1


def _assignment(text: str, rule: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not _NAME.fullmatch(name.strip()) or not value.strip():
        raise ProgramError(f"{text!r}: write {rule}")
    return name.strip(), value.strip()


def _ends(name: str, text: str) -> tuple[str, str]:
    low, colon, high = text.partition(":")
    if not colon:
        raise ProgramError(f"--range {name}={text}: write --range NAME=LOW:HIGH")
    return low, high


def _show(result: Calculation, *, terms: int, as_json: bool, with_program: bool) -> None:
    machine = result.machine
    if as_json:
        facts = {
            "value": result.value, "exact": result.exact, "error": result.error, "bound": result.bound,
            "steps": result.steps, "agrees": result.ok, "expression": result.expression, "loops": result.report.result.loops,
            "design": machine.design.name, "heads": machine.heads, "terms": terms, "dtype": machine.precision.name,
            "range": machine.range, "functions": list(machine.blocks), "columns": machine.layout.columns,
        }
        print_json(facts | ({"program": result.text} if with_program else {}))
        return
    out(f"value  {result.value!r}")
    out(f"exact  {result.exact!r}")
    for name, size in (("error", result.error), ("bound", result.bound)):
        out(f"{name}  {size:.1e}" + (f", {size / abs(result.exact):.1e} of the exact value" if result.exact else ""))
    out(f"{result.steps} instruction{'s' * (result.steps != 1)} in {result.report.result.loops} loops of a transformer with "
        f"{len(machine.weights.layers)} layers, {machine.layout.width} rows and {machine.layout.columns} columns")
    if not result.ok:
        out(f"DISAGREES: {result.report.why or 'the error is beyond its bound'}")
