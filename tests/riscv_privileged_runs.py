"""Loops of a machine with traps beside the second interpreter: all of its state is compared after each of them."""

from __future__ import annotations

import random
from collections import Counter
from functools import cache

import numpy as np

from punchcard.card.layout import Card, Pattern
from punchcard.engines import Controls, prepare
from punchcard.engines.controls import NoCopyWatch
from punchcard.machines.riscv import csrs
from punchcard.machines.riscv.designs.control import read_control
from punchcard.machines.riscv.host import CardGuest
from punchcard.machines.riscv.isa import decode
from punchcard.machines.riscv.machine import RiscvMachine
from punchcard.machines.riscv.program import RiscvProgram
from punchcard.machines.riscv.system.platform import RAM
from punchcard.machines.running import Mark, run_parts
from tests.riscv_privileged_cases import LEAST_WORDS, DevicesOfATest, privileged_program
from tests.riscv_privileged_reference import PrivilegedReference

SMALL, USUAL = LEAST_WORDS, 1 << 12
"""Words of memory: the least that a random program takes, and what tests with compiled code share (16K)."""
ASKS = Pattern("event.bus", "scratchpad", (1,))


@cache
def machine_of(words: int = USUAL, *, multiply: bool = True, base: int = RAM) -> RiscvMachine:
    """A machine with traps. Tests share it, for compiled code belongs to a size."""
    return RiscvMachine(memory=words, base=base, multiply=multiply, privileged=True)


class Beside:
    """A program on a card and on the second interpreter, each with a bus of its own."""

    def __init__(self, machine: RiscvMachine, program: RiscvProgram, *, completes: bool) -> None:
        sizes, self.machine, self.layout = machine.sizes, machine, machine.layout
        self._bus, own = (DevicesOfATest(range(sizes.base, sizes.end), completes) for _ in range(2))
        self.reference = PrivilegedReference(program.image(sizes.memory), list(program.registers(sizes.memory)), sizes.base,
                                             own, multiply=sizes.multiply)
        self._scratch, self.found = machine.layout.region("scratchpad").start, Counter[str]()
        self.buses = self._bus, own

    def look(self, loop: int, card: Card) -> None:
        """Compare a card. The first loop only jumps to the entry."""
        layout, other = self.layout, self.reference
        word, mode, cause = other.fetched, other.machine, other.trapped
        if loop > 1:
            other.step()
            self._note(word, mode, cause)
        assert self.machine.counter(card) == other.counter, loop
        assert layout.numbers(card, "memory", "registers").tolist() == other.x, loop
        assert read_control(layout, card) == other.rows(), loop
        assert bool(layout.number_at(card, "event.bus", self._scratch)) == other.asks, loop
        assert np.array_equal(layout.numbers(card, "memory", "memory"), np.frombuffer(other.memory, "<u4")), loop

    def _note(self, word: int | None, mode: bool, before: int) -> None:
        """Count what a loop was."""
        other = self.reference
        if other.trapped > before:
            cause = csrs.CAUSES[other.csr[csrs.BY_NAME["mcause"].number]]
            self.found[f"{cause} in {'machine' if mode else 'user'} mode"] += 1
        elif word is not None and (decoded := decode(word)) is not None:
            self.found[decoded.instruction.name] += 1

    def serve(self, loop: int, card: Card) -> bool:
        """Answer an access on the card, as the host does."""
        layout, scratch = self.layout, self._scratch
        found = self._bus.serve(layout.number_at(card, "word", scratch), CardGuest(layout, self.machine.sizes, card))
        answer = {"port.refused": 1} if found is None else {"port.word": found, "port.ready": 1}
        for rows, number in {**answer, "event.bus": 0}.items():
            layout.put_number_at(card, rows, scratch, number)
        return True


def compare_loops(machine: RiscvMachine, program: RiscvProgram, loops: int, *, engine: str = "lowered", after: int = 0,
                  completes: bool = True) -> Counter[str]:
    """Make loops of a program, each beside the interpreter; what happened in them. Compiled code makes those before."""
    beside, mark = Beside(machine, program, completes=completes), Mark(machine.pack(program))
    for name, until in (("lowered", after and after + 1), (engine, after + 1 + loops)):
        if until == 0:
            continue
        runner = prepare(name, machine.weights, machine.layout, mark.raw_card, cache=machine.engine_cache)
        beside.found.clear()
        controls = Controls(ports={ASKS: beside.serve}, watch=NoCopyWatch(beside.look))
        ran = run_parts(runner, mark, until, controls)
        mark = ran.mark
        assert (mark.loops, ran.reason, mark.engine) == (until, "loops", name), ran
    first, second = (bus.stored for bus in beside.buses)
    assert first[: len(second)] == second, "the interpreter asks a loop later"
    return beside.found


def compare_random(machine: RiscvMachine, seed: int, loops: int, *, engine: str = "lowered", after: int = 0) -> Counter[str]:
    """A random program; misaligned accesses are completed for some, refused for others."""
    sizes, completes = machine.sizes, random.Random(f"weights {seed}").random() < 0.5
    program = privileged_program(seed, sizes.memory, sizes.base, multiply=sizes.multiply)
    try:
        return compare_loops(machine, program, loops, engine=engine, after=after, completes=completes)
    except AssertionError as error:
        raise AssertionError(f"seed {seed}, {sizes}: {error}") from error
