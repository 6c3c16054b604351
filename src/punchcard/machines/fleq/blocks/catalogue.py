"""The built-in function blocks, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

import numpy as np

from punchcard.errors import ProgramError, did_you_mean
from punchcard.machines.fleq.blocks.block import (
    AnchoredMatrixProduct,
    Block,
    Elementwise,
    EntrywiseProduct,
    FittedFunction,
    LaneProduct,
    MatrixProduct,
    ScaledProduct,
    Transposition,
)
from punchcard.machines.fleq.blocks.chosen import ChosenFunction
from punchcard.machines.fleq.blocks.curves import (
    SIGMOIDS,
    TANGENTS,
    EntriesFunction,
    exponential,
    positive,
    tabulated,
)
from punchcard.machines.fleq.blocks.fit import fit, fit_with_kinks
from punchcard.machines.fleq.blocks.sigmoids import SigmoidSum, VectorSum
from punchcard.machines.fleq.blocks.table import Table, tabulate
from punchcard.machines.fleq.blocks.vector_fit import ridges
from punchcard.machines.fleq.functions import (
    FITTED,
    KNOWN,
    LOSS_SLOPE,
    LOSS_SLOPES,
    Function,
    fitted_domain,
    fitted_function,
)
from punchcard.transformer.expression import relu

TERMS = 64
FEW_TERMS = 32
"""For a straight line."""
ROOT_TERMS = 96
"""A root has an infinite slope at 0: it takes more sigmoids than a function that is smooth to the end of its range."""


def built_in(name: str, heads: int = 1, *, anchors: bool = False, unit: float = 2.0**-53, limit: float = 16.0) -> Block:
    """The block of this name.

    `heads` is for the soft products, `anchors` for the paper's own matrix product, `unit` is the roundoff of the number
    format, for which sums of sigmoids are fitted, `limit` the range of values.
    """
    makers: Mapping[str, Callable[[Function], Block]] = {
        "add": lambda f: Elementwise(f, lambda a, b, one: a + b, error=0.0),
        "sub": lambda f: Elementwise(f, lambda a, b, one: a - b, error=0.0),
        "percentage": lambda f: Elementwise(f, lambda a, b, one: 0.01 * a, error=1.0),
        "mul": lambda f: AnchoredMatrixProduct(f) if anchors else MatrixProduct(f, heads),
        "hadamard": lambda f: EntrywiseProduct(f, heads),
        "entrywise": lambda f: LaneProduct(f, heads),
        "scale": lambda f: ScaledProduct(f, heads),
        "relu": lambda f: Elementwise(f, lambda a, b, one: relu(a), error=0.0),
        "abs": lambda f: Elementwise(f, lambda a, b, one: relu(a) + relu(-a), error=0.0),
        "maximum": lambda f: Elementwise(f, lambda a, b, one: b + relu(a - b), error=3.0),
        "minimum": lambda f: Elementwise(f, lambda a, b, one: b - relu(b - a), error=3.0),
        "transpose": Transposition,
        "sigmoid": lambda f: EntriesFunction(f, SIGMOIDS),
        "tanh": lambda f: EntriesFunction(f, TANGENTS),
        "positive": lambda f: EntriesFunction(f, positive(limit)),
        "inverse": lambda f: FittedFunction(f, _fitted(f, TERMS, 2 * unit)),
        "loss_slope": lambda f: ChosenFunction(f, _loss_slopes(2 * unit)),
        "sqrt": lambda f: FittedFunction(f, _fitted(f, ROOT_TERMS, 2 * unit)),
    }
    domain = fitted_domain(name)
    if domain is not None:
        return _over_a_domain(name, *domain, unit)
    if name not in makers:
        raise ProgramError(f"unknown function {name!r}{did_you_mean(name, makers)}: there are {', '.join(makers)}, "
                           "incr_pointer, reset_pointer; plug in a block of your own for another")
    return makers[name](KNOWN[name])


def _over_a_domain(name: str, base: str, low: float, high: float, unit: float) -> Block:
    """The block of a function whose name tells its domain, such as exp_m16_4 (see `machines.fleq.functions`)."""
    function, rule = fitted_function(base, low, high), FITTED[base]
    if base == "exp":
        return EntriesFunction(function, exponential(name, high, unit))
    table = _table(base, low, high, 2 * unit)
    return EntriesFunction(function, tabulated(name, table, rule.smooth, unit if rule.both else None))


@cache
def _table(base: str, low: float, high: float, rounding: float) -> Table:
    return tabulate(FITTED[base].reference, low, high, rounding=rounding)


@cache
def _loss_slopes(rounding: float) -> tuple[VectorSum, ...]:
    """The derivatives of the losses: sums of functions of o - y, of o and of y. Two of them are single sigmoids."""
    low, high = LOSS_SLOPE.domain or (-1.0, 1.0)
    wide = 2 * max(-low, high)
    error, output, label = (1.0, -1.0), (1.0, 0.0), (0.0, 1.0)
    one = np.ones(1)
    odd_sigmoid = SigmoidSum(2 * one, 0 * one, 2 * one, -1.0, -wide, wide, error=0.0)
    logistic = SigmoidSum(one, 0 * one, one, 0.0, low, high, error=0.0)
    found = {
        "squared": [(error, fit(lambda x: x, -wide, wide, FEW_TERMS, rounding=rounding))],
        "huber": [(error, fit_with_kinks(lambda x: np.clip(x, -1.0, 1.0), -wide, wide, (-1.0, 1.0), 2 * TERMS,
                                         rounding=rounding))],
        "logcosh": [(error, odd_sigmoid)],
        "logistic": [(output, logistic), (label, fit(lambda x: -x, low, high, FEW_TERMS, rounding=rounding))],
    }
    return tuple(ridges(found[name], low, high) for name in LOSS_SLOPES)


@cache
def _fitted(function: Function, terms: int, rounding: float) -> SigmoidSum:
    low, high = function.domain or (-1.0, 1.0)
    return fit(function.reference, low, high, terms, rounding=rounding)
