"""Timing things that do the same work, in turn, so that a ratio does not depend on what else the machine was doing.

Among them is what executes a program without a transformer.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from punchcard.errors import CompilerError, PunchcardError
from punchcard.machines.base import Machine
from punchcard.machines.interpreter import Quick

Program = TypeVar("Program")
State = TypeVar("State")
FEW_STEPS = 1000
GROWTH = 16
MOST = 10**8
LEAST = 1e-9


@dataclass(frozen=True)
class Contender:
    """Something that makes steps: `make(steps)` gives the seconds that they took.

    `prepares`: a run, or its first step, begins with work that does not depend on its length; it is taken off, as timed
    in a run of one step. `once`: a single step is timed, once.
    """

    name: str
    make: Callable[[int], float]
    prepares: bool = False
    once: bool = False

    @property
    def least(self) -> int:
        """The fewest steps that are timed: more than one where the first is taken off."""
        return 8 if self.prepares else 1

    def before(self) -> float:
        """What a run costs before the steps that are timed."""
        return self.make(1) if self.prepares else 0.0

    def whole(self, steps: int) -> float:
        """A run of so many steps that are timed."""
        return self.make(steps + self.prepares)


def rates(contenders: Sequence[Contender], seconds: float, repeats: int) -> dict[str, float]:
    """Steps a second of each, in a long run.

    Runs are of about `seconds`, one of each contender in turn, and of `repeats` turns the quickest counts.
    """
    lengths = {c.name: 1 if c.once else length(c, seconds) for c in contenders}
    before = dict.fromkeys(lengths, math.inf)
    whole = dict.fromkeys(lengths, math.inf)
    for turn in range(repeats):
        for c in contenders:
            if turn == 0 or not c.once:
                before[c.name] = min(before[c.name], c.before())
                whole[c.name] = min(whole[c.name], c.whole(lengths[c.name]))
    # Where the steps were less than half of the whole after all, only half is taken off: a rate is never too high by noise.
    return {name: steps / max(whole[name] - before[name], whole[name] / 2, LEAST) for name, steps in lengths.items()}


def length(contender: Contender, seconds: float) -> int:
    """How many steps take about so long, and no less than what comes before them.

    The first call is not judged: it may compile.
    """
    contender.make(1)
    steps = contender.least
    while True:
        before = contender.before()
        took = max(contender.whole(steps) - before, LEAST)
        seconds = max(seconds, 2 * before)
        if took >= seconds / 2 or steps >= MOST:
            return max(contender.least, min(MOST, math.floor(steps * seconds / took)))
        steps = max(steps + 1, math.floor(steps * min(GROWTH, seconds / took)))


def interpreters(machine: Machine[Program, State], program: Program, rival: str,
                 remark: Callable[[str], None]) -> dict[str, Callable[[], Quick[State]]]:
    """What executes a program without a transformer, by name: the machine's own interpreter, and C where it can be had."""
    found: dict[str, Callable[[], Quick[State]]] = {rival: lambda: machine.quickest(program)}
    try:
        in_c, own = machine.in_c(program), machine.quickest(program)
        if in_c is not None:
            for one in (in_c, own):
                one.run(FEW_STEPS)
            if not machine.near(program, in_c.state, own.state):
                raise PunchcardError(f"{machine.kind.name}: c does not give what {rival} gives after {FEW_STEPS} steps")
            found["c"] = lambda: machine.in_c(program) or own
    except CompilerError as why:
        remark(f"c is left out: {why}")
    return found


def interpreter_seconds(make: Callable[[], Quick[State]], steps: int) -> float:
    """The seconds that an interpreter takes."""
    interpreter = make()
    started = time.perf_counter()
    interpreter.run(steps)
    return time.perf_counter() - started
