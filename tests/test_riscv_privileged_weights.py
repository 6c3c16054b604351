"""Random programs with traps on the weights: all state after every loop is that of a second, independent interpreter."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from punchcard.machines.riscv import csrs
from punchcard.machines.riscv.isa import REGISTER_NUMBERS
from punchcard.machines.riscv.languages.assembly.assembler import assemble
from tests.riscv_privileged_cases import changing_program, interrupted_program
from tests.riscv_privileged_runs import SMALL, USUAL, compare_loops, compare_random, machine_of

pytestmark = pytest.mark.usefixtures("shared_code")
TINY = 64
"""Words of a memory, where a loop by the equation takes a fifth of a second."""


def test_random_programs_after_every_loop() -> None:
    found = sum((compare_random(machine_of(), seed, 220) for seed in (0, 26, 29, 38)), Counter[str]())
    causes = {name.rpartition(" in ")[0] for name in found}
    assert {csrs.CAUSES[cause] for cause in (csrs.ILLEGAL, csrs.BREAKPOINT, csrs.LOAD_FAULT, csrs.MISALIGNED_STORE,
                                             csrs.TIMER_INTERRUPT)} < causes
    assert min(found[name] for name in ("sc.w", "mret", "csrrs", "lw", "mul")) > 0


def compare_changing(seed: int, loops: int) -> Counter[str]:
    """A program that changes itself; misaligned accesses are completed for some, refused for others."""
    machine = machine_of(multiply=bool(seed % 3))
    return compare_loops(machine, changing_program(seed, machine.sizes.base), loops, completes=bool(seed % 2))


def test_programs_that_change_themselves() -> None:
    found = sum((compare_changing(seed, 200) for seed in (2, 10)), Counter[str]())
    assert min(found[name] for name in ("fence.i", "mret", "csrrw", "timer interrupt in user mode")) > 0, found


@pytest.mark.soak
def test_many_programs_that_change_themselves() -> None:
    for seed in range(100, 1600):
        compare_changing(seed, 300)


def test_an_interrupt_at_every_instruction() -> None:
    found = Counter[str]()
    for distance in range(16, 46, 3):  # the soak has all of them
        found += compare_loops(machine_of(), interrupted_program(distance, 19, machine_of().sizes.base), distance + 12)
    assert found["timer interrupt in machine mode"] >= 10


SHORT = """
 csrw mtvec, t0
 csrw mie, t1
 sw zero, 4(s1)
 sw zero, 0(s1)
 csrsi mstatus, 8
 nop
handler: lr.w a1, (s0)
 sc.w a2, t0, (s0)
 amoadd.w a3, t0, (s0)
 lw a4, 0(s2)
 csrrc a5, mcause, t1
 ebreak
"""
"""The timer interrupts at once. Its handler has reserved and atomic accesses, one of a device, and ends in a trap."""


@pytest.mark.soak
@pytest.mark.parametrize("multiply", [False, True])
def test_loops_by_the_equation(multiply: bool) -> None:
    machine = machine_of(TINY, multiply=multiply, base=0)
    program = assemble(SHORT, "short.s")
    given = {"t0": program.symbols["handler"], "t1": 0x80, "s0": 4 * TINY - 4, "s1": 0x11004000, "s2": 0x10000000}
    start = tuple((REGISTER_NUMBERS[name], value) for name, value in given.items())
    found = compare_loops(machine, replace(program, start=start), 15, engine="dense")
    assert (found["timer interrupt in machine mode"], found["breakpoint in machine mode"]) == (1, 1)
    assert min(found[name] for name in ("sc.w", "amoadd.w", "lw")) == 2, "each takes two loops"


@pytest.mark.soak
@pytest.mark.parametrize("multiply", [False, True])
@pytest.mark.parametrize("words", [SMALL, USUAL])
def test_many_random_programs_after_every_loop(words: int, multiply: bool) -> None:
    for seed in range(10_000, 12_500):
        compare_random(machine_of(words, multiply=multiply), seed, 200)


@pytest.mark.soak
@pytest.mark.parametrize("multiply", [False, True])
def test_random_programs_by_the_equation(multiply: bool) -> None:
    for seed in range(20, 24 if multiply else 36):
        compare_random(machine_of(SMALL, multiply=multiply), seed, 25, engine="dense", after=120)


@pytest.mark.soak
def test_interrupts_at_every_instruction_at_any_distance() -> None:
    machine = machine_of()
    for distance in range(12, 60):
        for period in range(5, 60, 6):
            compare_loops(machine, interrupted_program(distance, period, machine.sizes.base), 200)
