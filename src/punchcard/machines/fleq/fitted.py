"""Functions that hold over a domain, declared: their names tell the domain, as in exp_m16_4 for -16 to 4.

    fitted_function("inverse", 2**-4, 16)      1 / x for 1/16 <= |x| <= 16, named inverse_0d0625_16

A name is enough to find the declaration, and the block of weights (`blocks.catalogue`). So a text that calls such a
function needs nothing else, and a machine that has it can be saved and loaded.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from punchcard.errors import ProgramError, did_you_mean
from punchcard.machines.fleq.functions import KNOWN, SIGMOID, TANH, Array, Function, Smooth, same_shape, square_root

NUMBER = r"(?:m?\d+(?:d\d+)?(?:e[mp]?\d+)?)"
NAMED = re.compile(rf"([a-z]+)_({NUMBER})_({NUMBER})")


@dataclass(frozen=True)
class Fitted:
    """A function of one number: its reference in NumPy and on intervals, and the least operand of all.

    `both`: it holds for negative operands too, of which `low` and `high` limit the size.
    """

    reference: Callable[[Array], Array]
    smooth: Smooth
    least: float = -math.inf
    both: bool = False


FITTED: dict[str, Fitted] = {
    "exp": Fitted(np.exp, lambda x: x.exp()),
    "log": Fitted(np.log, lambda x: x.log(), least=np.nextafter(0.0, 1.0)),
    "sqrt": Fitted(np.sqrt, square_root, least=0.0),
    "inverse": Fitted(np.reciprocal, lambda x: 1 / x, least=np.nextafter(0.0, 1.0), both=True),
    "sin": Fitted(np.sin, lambda x: x.sin()),
    "cos": Fitted(np.cos, lambda x: x.cos()),
}
UNLIMITED = {function.name: function for function in (TANH, SIGMOID)}
"""Functions that a softmax computes for any operand."""


@cache
def fitted_function(name: str, low: float, high: float) -> Function:
    """The function of this name for operands from low to high, entry by entry; inverse for sizes from low to high."""
    if name in UNLIMITED:
        return UNLIMITED[name]
    if name not in FITTED:
        known = (*FITTED, *UNLIMITED)
        raise ProgramError(f"unknown function {name!r}{did_you_mean(name, known)}: there are {', '.join(known)}")
    rule = FITTED[name]
    if not (math.isfinite(low) and math.isfinite(high) and rule.least <= low < high):
        least = "" if rule.least == -math.inf else f", and low is {'positive' if rule.least else 'not negative'}"
        raise ProgramError(f"{name} from {low:g} to {high:g}: low must be less than high, both finite{least}")
    full = f"{name}_{_written(low)}_{_written(high)}"
    if fitted_domain(full) != (name, low, high):
        raise ProgramError(f"{name} from {low!r} to {high!r}: the ends are in its name: they have at most 6 digits")
    domain = (-high, high) if rule.both else (low, high)
    return Function(full, 1, same_shape, rule.reference, domain=domain, least=low if rule.both else 0.0,
                    smooth=rule.smooth)


def fitted_domain(name: str) -> tuple[str, float, float] | None:
    """What a name like exp_m16_4 says: the function, low and high."""
    found = NAMED.fullmatch(name)
    if found is None or found[1] not in FITTED:
        return None
    low, high = (float(end.replace("m", "-").replace("d", ".").replace("p", "+")) for end in found.groups()[1:])
    return found[1], low, high


def known_function(name: str) -> Function | None:
    """A function that the language has without a declaration, by its name."""
    domain = fitted_domain(name)
    return KNOWN.get(name) if domain is None else fitted_function(*domain)


def _written(x: float) -> str:
    """A number as a part of a name: letters, digits and no sign."""
    return f"{x:g}".replace("-", "m").replace("+", "p").replace(".", "d")
