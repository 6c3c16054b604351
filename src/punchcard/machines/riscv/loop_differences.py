"""A card beside the interpreter after every loop, where the memory is too large to be compared every time.

After a loop the registers, the program counter and the words that the interpreter has stored to since are compared. The
whole memory is compared now and then, and when the run ends: so a word that the machine alone has changed is found as well,
but some loops later.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from punchcard.card.layout import Card
from punchcard.machines.comparison import LoopDifferences
from punchcard.machines.riscv.designs.control import read_control
from punchcard.machines.riscv.host import CardGuest, is_served
from punchcard.machines.riscv.isa import REGISTERS, WORD_BYTES
from punchcard.machines.riscv.oracle import RiscvInterpreter
from punchcard.machines.riscv.privileged import PrivilegedInterpreter
from punchcard.machines.riscv.program import RiscvProgram

if TYPE_CHECKING:
    from punchcard.machines.riscv.machine import RiscvMachine

FEW_WORDS = 1 << 16
"""A memory of so many words is compared after every loop."""
WHOLE_SHARE = 4
"""Comparing the whole of a larger one may take one part in so many of the time."""


class RiscvLoopDifferences(LoopDifferences):
    """See `LoopDifferences`."""

    machine: RiscvMachine
    program: RiscvProgram
    oracle: RiscvInterpreter

    def __init__(self, machine: RiscvMachine, program: RiscvProgram, oracle: RiscvInterpreter) -> None:
        super().__init__(machine, program, oracle)
        self._large = machine.sizes.memory > FEW_WORDS
        self._due = 0.0
        """When the whole memory is compared again."""

    def after_loop(self, card: Card) -> list[str]:
        started = time.perf_counter()
        if self._large and started < self._due:
            return self._nearby(card)
        found = self.everywhere(card)
        now = time.perf_counter()
        self._due = now + WHOLE_SHARE * (now - started)
        self.oracle.stored.clear()
        return found

    def at_end(self, card: Card) -> list[str]:
        return self.everywhere(card) if self._large else []

    def _nearby(self, card: Card) -> list[str]:
        """Differences in what an instruction may change."""
        machine, oracle = self.machine, self.oracle
        serve_too(machine, card, oracle)
        guest = CardGuest(machine.layout, machine.sizes, card)
        found = [differing(name, guest.register(i), oracle.registers[i]) for i, name in enumerate(REGISTERS)
                 if guest.register(i) != oracle.registers[i]]
        for index in sorted(oracle.stored):
            if guest.word(index) != oracle.memory[index]:
                name = self.program.name_of(machine.sizes.base + WORD_BYTES * index)
                found.append(differing(f"the word at {name}", guest.word(index), oracle.memory[index]))
        oracle.stored.clear()
        found += control_differences(machine, card, oracle)
        counter = machine.counter(card)
        return found if counter == oracle.program_counter else [*found, differing_counter(counter, oracle)]


def serve_too(machine: RiscvMachine, card: Card, oracle: RiscvInterpreter) -> None:
    """Let the interpreter be answered, where the host of the card has done so ahead of the next loop."""
    scratch = machine.layout.region("scratchpad").start
    if not isinstance(oracle, PrivilegedInterpreter):
        served = is_served(machine.layout, card)
    else:
        served = oracle.requested and not machine.layout.number_at(card, "event.bus", scratch)
    if served:
        oracle.serve()


def control_differences(machine: RiscvMachine, card: Card, oracle: RiscvInterpreter) -> list[str]:
    """Rows of a machine with traps that are not as the interpreter has them."""
    if not isinstance(oracle, PrivilegedInterpreter):
        return []
    return [differing(name, number, oracle.rows[name]) for name, number in read_control(machine.layout, card).items()
            if number != oracle.rows[name]]


def differing(name: str, value: int, expected: int) -> str:
    """A register or a word that is not as the interpreter has it."""
    return f"{name} is {value:#x}, the interpreter has {expected:#x}"


def differing_counter(counter: int, oracle: RiscvInterpreter) -> str:
    """A program counter that is not the interpreter's."""
    return f"the program counter is {counter:#x}, the interpreter's {oracle.program_counter:#x}"
