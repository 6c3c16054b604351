"""What the programs share: one set of functions, so that one machine runs them all, and counters.

Errors of a product grow with the machine's range, and every value stays within it, a counter's too. A counter that
starts at -T + 1 would make the range T for data that need 2. So rounds are counted as an odometer counts, digit by
digit, each from -2 to 1, or where the range is below 2 from -1 to 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from punchcard.errors import ProgramError
from punchcard.machines.fleq.isa import FleqProgram
from punchcard.machines.fleq.text.assembler import assemble

STANDARD_FUNCTIONS = ("add", "sub", "mul", "transpose", "sigmoid", "hadamard", "incr_pointer", "reset_pointer")
"""The functions of a machine on which the linear algebra and the learning programs run without a change to its weights."""

RADIX = 3
UNBOUNDED = 1e300
"""The range of a program whose values are not known yet."""
COUNTING = ("one scalar 1", "zero scalar 0", "minus_one scalar -1", "minus_two scalar -2")
"""The constants of every counter, declared once in a program that has some."""
_STARTS = ("zero", "minus_one", "minus_two")


@dataclass(frozen=True)
class Counter:
    """Makes a number of rounds: T - 1 in base 3 (or 2), digit i in the scalar `name` i with a minus.

    A digit that comes to 1 is set back to -2 (or -1), and the next one moves on.
    """

    name: str
    rounds: int
    radix: int = RADIX

    def __post_init__(self) -> None:
        if self.rounds < 1:
            raise ProgramError(f"{self.rounds} rounds: a loop makes at least one")

    @property
    def digits(self) -> list[int]:
        """The rounds that are left after the first, least digit first."""
        found: list[int] = []
        left = self.rounds - 1
        while left or not found:
            left, digit = divmod(left, self.radix)
            found.append(digit)
        return found

    @property
    def data(self) -> list[str]:
        """The digits' declarations."""
        return [f"{self.name}{i} scalar {-digit}" for i, digit in enumerate(self.digits)]

    def again(self, target: str) -> list[str]:
        """Go back to `target` until all rounds are made."""
        lines = []
        for i in range(len(self.digits)):
            lines += [f"{self.name}{i} = add({self.name}{i}, one); if {self.name}{i} <= 0 goto {target}"]
            if i + 1 < len(self.digits):
                lines += [f"{self.name}{i} = add({_STARTS[self.radix - 1]}, zero)"]
        return lines

    @property
    def steps(self) -> int:
        """Instructions that `again` executes in all rounds: a digit counts once for each carry of the one below it."""
        made, counts = 0, self.rounds
        for i, digit in enumerate(self.digits):
            made += counts
            counts = 0 if counts < digit + 1 else 1 + (counts - digit - 1) // self.radix
            made += counts if i + 1 < len(self.digits) else 0
        return made

    def restart(self) -> list[str]:
        """After the last round, set the digits back, for a loop inside a loop; the lower ones stand there already."""
        last = len(self.digits) - 1
        return [f"{self.name}{i} = add({_STARTS[digit]}, zero)" for i, digit in enumerate(self.digits)
                if i == last or digit != self.radix - 1]


def program_of(
    data: Sequence[str], code: Sequence[str], values: Mapping[str, ArrayLike], limit: float = UNBOUNDED
) -> FleqProgram:
    """The program of some declarations and instructions, with values for some of its variables, and its range."""
    text = "\n".join([f".range {limit!r}", ".data", *data, ".code", *code])
    program = assemble(text)
    shaped = {v.name: np.array(program.values[v.name]) for v in program.variables}
    for name, value in values.items():
        shaped[name] = np.array(value, dtype=np.float64).reshape(shaped[name].shape)
    return replace(program, values=shaped)
