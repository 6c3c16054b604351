"""Many programs on one machine at once, each beside the plain interpreter, compared after every loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from punchcard.engines import Controls, prepare
from punchcard.machines.base import AnyMachine
from punchcard.machines.streams import reader


@dataclass(frozen=True)
class Mismatch:
    """The first loop after which a card and the interpreter disagree."""

    program: int
    loop: int
    expected: Any
    found: Any


@dataclass(frozen=True)
class LockstepReport:
    """How many executed instructions were compared, and the programs that went wrong."""

    steps: int
    mismatches: tuple[Mismatch, ...]

    @property
    def agrees(self) -> bool:
        return not self.mismatches


def compare(machine: AnyMachine, programs: Sequence[Any], max_steps: int, engine: str = "dense") -> LockstepReport:
    """Run programs as one batch of cards; after every loop compare the whole states.

    A step counts once for each program that has not halted. Programs that have halted are still compared, so the fixed
    point is checked too. A batch has no host, so a program is compared until it comes to a port or to a fault.
    """
    live = {i: machine.oracle(program, reader(b""), lambda byte: None) for i, program in enumerate(programs)}
    wrong: list[Mismatch] = []
    steps = 0

    def look(loop: int, cards: Tensor) -> None:
        nonlocal steps
        for i in [i for i, oracle in live.items() if loop > machine.design.warm_up and (oracle.waits or oracle.fault)]:
            del live[i]
        found = machine.read_all(cards[list(live)])
        for (i, oracle), state in zip(list(live.items()), found, strict=True):
            if loop > machine.design.warm_up:
                steps += not oracle.halted
                oracle.step()
            if not machine.near(programs[i], state, oracle.state):
                wrong.append(Mismatch(i, loop, oracle.state, state))
                del live[i]

    cards = torch.stack([machine.punch(program) for program in programs])
    loops = machine.design.warm_up + max_steps
    runner = prepare(engine, machine.weights, machine.layout, cards, loops=loops, fall_back=True, cache=machine.engine_cache)
    runner.run(loops, Controls(until=machine.halting, watch=look))
    return LockstepReport(steps, tuple(wrong))
