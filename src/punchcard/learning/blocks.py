"""The function blocks of a network: products, exact formulas, and sums of sigmoids."""

from __future__ import annotations

from functools import lru_cache

from punchcard.errors import PrecisionError
from punchcard.learning.programs.network import Network
from punchcard.learning.programs.rules import STEP, STEP_SLOPE, Entrywise
from punchcard.machines.fleq.blocks.block import Block, Elementwise, EntrywiseProduct, FittedFunction, MatrixProduct
from punchcard.machines.fleq.blocks.fit import fit, fit_with_kinks
from punchcard.machines.fleq.blocks.sigmoids import SigmoidSum
from punchcard.machines.fleq.functions import HADAMARD, MUL, RELU, Function
from punchcard.transformer.expression import relu

TERMS = (64, 128, 256)
"""How many sigmoids are tried, until the sum is near enough."""
NEAR_ENOUGH = 1e-10
"""A sum that is off by less than this, or by a few units of roundoff, needs no more terms."""


def blocks_of(network: Network, limit: float, *, unit: float, heads: int, terms: int | None = None) -> list[Block]:
    """Blocks for values within ±limit. `unit` is the roundoff of the machine's number format.

    A machine leaves room for products up to root d times its range. Here it is known that they stay within it, so c is
    chosen for that, and their error is root d times smaller.
    """
    blocks: list[Block] = [MatrixProduct(MUL, heads, limit), EntrywiseProduct(HADAMARD, heads, limit)]
    activation = network.activation if network.hidden else None
    if activation is not None:
        blocks += [formula_block(function, limit, unit) for function in activation.formulas]
    for rule in (activation, network.loss):
        if rule is not None and rule.entrywise is not None:
            blocks.append(FittedFunction(rule.entrywise.function(limit), fitted(rule.entrywise, limit, unit, terms)))
    return blocks


def formula_block(function: Function, limit: float, unit: float) -> Block:
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
def fitted(rule: Entrywise, limit: float, unit: float, terms: int | None = None) -> SigmoidSum:
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
