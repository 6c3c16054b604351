"""What a model does with programs, loop by loop, beside the interpreter: whether a disguise changes anything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from punchcard.errors import PunchcardError
from punchcard.machines.base import Machine
from punchcard.machines.interpreter import Interpreter
from punchcard.machines.streams import reader

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Agreement:
    """A run that agreed with the interpreter after every loop.

    loops    made with each program, until it halted, came to a port, or had made as many as were wanted
    drifts   after each loop the largest difference from the machine's own card: 0 where both are the same numbers
    """

    loops: int
    drifts: tuple[float, ...]

    @property
    def drift(self) -> float:
        """The largest difference of all."""
        return max(self.drifts, default=0.0)


class Disagreement(PunchcardError):
    """The first loop after which a card is not what the interpreter says."""


def compare_loops(machine: Machine[Any, Any], programs: Sequence[Any], loop: Callable[[Tensor], Tensor],
              enter: Callable[[Tensor], Tensor], leave: Callable[[Tensor], Tensor], loops: int) -> Agreement:
    """Run programs by `loop`, on cards that `enter` makes of the machine's and `leave` turns back; compare every loop."""
    import torch

    from punchcard.engines.dense import threads

    made, drifts = 0, [0.0] * loops
    with torch.no_grad(), threads(1):  # cards are small: more threads wait for each other
        for program in programs:
            oracle = machine.oracle(program, reader(b""), lambda byte: None)
            own = machine.punch(program).to(torch.float64)
            card = enter(own)
            own = own.to(machine.model.dtype)
            for number in range(1, loops + 1):
                if number > machine.design.warm_up:
                    if oracle.waits or oracle.fault is not None or oracle.halted:
                        break
                    oracle.step()
                card, own = loop(card), machine.model(own)
                back = leave(card)
                drifts[number - 1] = max(drifts[number - 1], float((back - own).abs().max()))
                wrong = _wrong(machine, program, back, oracle)
                if wrong:
                    raise Disagreement(f"after loop {number} {wrong}")
                made = max(made, number)
    return Agreement(made, tuple(drifts[:made]))


def _wrong(machine: Machine[Any, Any], program: object, card: Tensor, oracle: Interpreter[Any]) -> str:
    """What is wrong with a card, or nothing."""
    try:
        if machine.near(program, machine.read(card), oracle.state):
            return ""
    except PunchcardError as error:
        return str(error)
    found, expected = machine.readout(program, card), machine.own(program, oracle.state)
    wanted = machine.values(program, expected)
    worst = max(wanted, key=lambda name: _distance(found.values[name], wanted[name]), default="")
    if worst and _distance(found.values[worst], wanted[worst]):
        return f"{worst} is {found.values[worst]}, the interpreter has {wanted[worst]}"
    counter = getattr(expected, "program_counter", None)
    return f"the program counter is {found.program_counter}, or something beside the program; the interpreter has {counter}"


def _distance(found: object, expected: object) -> float:
    """How far two values are from each other; for values that are not numbers: 1 if they differ."""
    try:
        return float(np.max(np.abs(np.array(found, dtype=np.float64) - np.array(expected, dtype=np.float64))))
    except (TypeError, ValueError):
        return float(found != expected)
