"""A machine and the plain interpreter side by side, compared after every loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from punchcard.engines import find_engine
from punchcard.machines.subleq.isa import Program, State
from punchcard.machines.subleq.machine import SubleqMachine
from punchcard.machines.subleq.oracle import Interpreter


@dataclass(frozen=True)
class Mismatch:
    """The first loop after which a card and the interpreter disagree."""

    program: int
    loop: int
    expected: State
    found: State


@dataclass(frozen=True)
class Comparison:
    """How many executed instructions were compared, and the programs that went wrong."""

    steps: int
    mismatches: tuple[Mismatch, ...]

    @property
    def agrees(self) -> bool:
        return not self.mismatches


def compare(machine: SubleqMachine, programs: Sequence[Program], max_steps: int, engine: str = "dense") -> Comparison:
    """Run programs as one batch of cards; after every loop compare all memory cells and program counters.

    A step counts once for each program that has not halted. Programs that have halted are still compared, so the fixed
    point is checked too. Cells that a program does not name must stay 0.
    """
    interpreters = [Interpreter(program, machine.sizes.word_bits) for program in programs]
    wrong: dict[int, Mismatch] = {}
    steps = 0

    def look(loop: int, cards: Tensor) -> None:
        nonlocal steps
        found = machine.read_all(cards)
        for i, interpreter in enumerate(interpreters):
            if loop > machine.design.warm_up:
                steps += not interpreter.halted
                interpreter.step()
            memory = tuple(interpreter.memory) + (0,) * (machine.sizes.memory - len(interpreter.memory))
            expected = State(memory, interpreter.program_counter)
            if found[i] != expected and i not in wrong:
                wrong[i] = Mismatch(i, loop, expected, found[i])

    cards = torch.stack([machine.punch(program) for program in programs])
    find_engine(engine)(machine.model, cards, machine.design.warm_up + max_steps, facts=machine.layout,
                        until=machine.halting, watch=look)
    return Comparison(steps, tuple(wrong.values()))
