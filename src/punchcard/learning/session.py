"""What learning and predicting share: options, a machine with the blocks of a network, and a run of a program to its end."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from punchcard.card.layout import Card, Pattern
from punchcard.engines import Controls, Port
from punchcard.errors import PrecisionError, PunchcardError
from punchcard.learning.programs.network import Network
from punchcard.learning.programs.rules import STEP, STEP_SLOPE, Entrywise
from punchcard.learning.programs.sgd import Written
from punchcard.machines.fleq.blocks.block import Block, Elementwise, EntrywiseProduct, FittedFunction, MatrixProduct
from punchcard.machines.fleq.blocks.fit import fit, fit_with_kinks
from punchcard.machines.fleq.blocks.sigmoids import SigmoidSum
from punchcard.machines.fleq.functions import HADAMARD, MUL, RELU, Function
from punchcard.machines.fleq.guard import unexplained_error
from punchcard.machines.fleq.isa import Array, FleqProgram, FleqState
from punchcard.machines.fleq.machine import FleqMachine
from punchcard.machines.fleq.oracle import range_above
from punchcard.machines.fleq.run_options import DEFAULT_HEADS, FleqRunOptions
from punchcard.machines.kind import refuse_options
from punchcard.machines.result import Result
from punchcard.transformer.expression import relu
from punchcard.transformer.precision import as_precision

MARGIN = 1.01
"""The range is at least so much of the largest value of the same algorithm in NumPy: the machine's own errors must fit in
between."""
TERMS = (64, 128, 256)
"""How many sigmoids are tried, until the sum is near enough."""
NEAR_ENOUGH = 1e-10
"""A sum that is off by less than this, or by a few units of roundoff, needs no more terms."""


class RunOptions(FleqRunOptions, total=False):
    """How a program is run: see `FleqRunOptions`.

    size           d of the machine, default: the least that is large enough for the network
    range          every value must stay within ±range. Default: the power of two above all values that occur in NumPy
    terms          sigmoids in a sum that approximates a function, default: as few as are accurate enough
    interrupted    called from time to time; the run stops when it returns True
    """

    size: int | None
    range: float | None
    terms: int | None
    interrupted: Callable[[], bool] | None


def range_for(largest: float, declared: float | None) -> float:
    """The declared range, if it holds what occurs; else the least power of two that does, with a margin."""
    if declared is None:
        return max(1.0, range_above(MARGIN * largest))
    if not (isinstance(declared, int | float) and math.isfinite(declared) and declared >= largest):
        raise PunchcardError(f"range={declared}: values up to {largest:.6g} occur; declare {MARGIN * largest:.6g} or more, "
                             "or leave it out")
    return float(declared)


def machine_for(program: FleqProgram, network: Network, options: RunOptions) -> FleqMachine:
    """The given machine, or one built to the program's sizes."""
    sizes: dict[str, Any] = {name: options.get(name) for name in ("heads", "precision", "design", "size")}
    machine = options.get("machine")
    if machine is not None:
        refuse_options(name for name, value in sizes.items() if value is not None)
        return machine
    size, needed = options.get("size"), network.size
    if size is not None and size < needed:
        raise PunchcardError(f"size={size}: the network needs {needed}: {_widest(network)}")
    heads = options.get("heads") or DEFAULT_HEADS
    unit = as_precision(options.get("precision") or "float64").unit
    blocks = blocks_of(network, program.range, unit=unit, heads=heads, terms=options.get("terms"))
    return FleqMachine.for_program(program, blocks=blocks, **{**sizes, "heads": heads})


def blocks_of(network: Network, limit: float, *, unit: float, heads: int, terms: int | None = None) -> list[Block]:
    """Blocks for values within ±limit. `unit` is the roundoff of the machine's number format.

    A machine leaves room for products up to root d times its range. Here it is known that they stay within it, so c is
    chosen for that, and their error is root d times smaller.
    """
    blocks: list[Block] = [MatrixProduct(MUL, heads, limit), EntrywiseProduct(HADAMARD, heads, limit)]
    activation = network.activation if network.hidden else None
    if activation is not None:
        blocks += [_formula_block(function, limit, unit) for function in activation.formulas]
    for rule in (activation, network.loss):
        if rule is not None and rule.entrywise is not None:
            blocks.append(FittedFunction(rule.entrywise.function(limit), fit_sum(rule.entrywise, limit, unit, terms)))
    return blocks


def _formula_block(function: Function, limit: float, unit: float) -> Block:
    """relu and its slope: what feed-forward layers are made of, so exact."""
    if function is RELU:
        return Elementwise(RELU, lambda a, b, one: relu(a), error=0.0)
    if function is not STEP:
        raise PrecisionError(f"{function.name}: no formula is known for it")
    # G a and G a - 1 are multiples of one unit in the last place, and so is their difference, while G a has digits left
    if STEP_SLOPE * limit * 2 * unit > 1:
        raise PrecisionError(f"step, the slope of relu, within ±{limit:g}: this number format holds it up to "
                             f"±{1 / (2 * unit * STEP_SLOPE):g}; use float64 or scaled data")
    return Elementwise(STEP, lambda a, b, one: relu(STEP_SLOPE * a) - relu(STEP_SLOPE * a - one), error=0.0)


@lru_cache(maxsize=64)
def fit_sum(rule: Entrywise, limit: float, unit: float, terms: int | None = None) -> SigmoidSum:
    """A scalar function as a sum of sigmoids on ±limit: of `terms`, or of as few as are near enough."""
    result = None
    for count in TERMS if terms is None else (terms,):
        inside = [k for k in rule.kinks if -limit < k < limit]
        if inside:
            result = fit_with_kinks(rule.value, -limit, limit, inside, count, rounding=2 * unit)
        else:
            result = fit(rule.value, -limit, limit, count, rounding=2 * unit)
        if result.error <= max(NEAR_ENOUGH, 16 * unit):
            break
    assert result is not None
    return result


def _widest(network: Network) -> str:
    if network.size == network.sizes[0]:
        return f"{network.features} features{' and the constant' * network.bias}"
    return f"its layers have {', '.join(map(str, network.sizes[1:]))} units"


def run_complete(
    machine: FleqMachine, written: Written, options: RunOptions, *,
    look: Callable[[int, dict[str, Array]], None] | None = None, label: str = "",
    progress: Callable[[int], None] | None = None,
) -> Result[FleqState]:
    """Run a program until it halts. Each time the labelled instruction is next, `look` is given the loops and the memory."""
    program = written.program
    how: dict[str, Any] = {"max_steps": written.loops}
    if options.get("engine") is not None:
        how["engine"] = options.get("engine")
    ports: dict[Pattern, Port] = {}
    if look is not None:
        def port(loop: int, card: Card) -> bool:
            look(loop, program.named(machine.read(card).memory))
            return True

        ports[machine.design.next_is(dict(program.labels)[label])] = port
    controls = Controls(ports=ports, interrupted=options.get("interrupted"), progress=progress)
    result = machine.run(program, controls=controls, **how)
    if not result.interrupted and result.loops != written.loops:
        # A turn that no look between the parts of the run has seen: loop by loop the guard names the instruction.
        machine.run(program, controls=Controls(watch=lambda loop, card: None), **how | {"engine": result.engine})
        raise unexplained_error(f"the program ended after {result.loops:,} loops in place of {written.loops:,}",
                                result.engine)
    return result
