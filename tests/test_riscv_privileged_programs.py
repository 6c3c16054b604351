"""Random programs with traps on the interpreters, beside a second one that shares nothing with the package."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import pytest

from punchcard.machines.in_c import compiler
from punchcard.machines.riscv import csrs
from punchcard.machines.riscv.isa import decode
from punchcard.machines.riscv.privileged import PrivilegedInterpreter
from punchcard.machines.riscv.privileged_in_c import PrivilegedInC
from punchcard.machines.riscv.program import RiscvProgram
from tests.riscv_privileged_cases import LEAST_WORDS, DevicesOfATest, interrupted_program, privileged_program
from tests.riscv_privileged_reference import PrivilegedReference

Make = Callable[..., PrivilegedInterpreter]
needs_c = pytest.mark.skipif(compiler() is None, reason="there is no C compiler")
EACH = [PrivilegedInterpreter, pytest.param(PrivilegedInC, marks=needs_c)]
MEMORY = 64


def compare(make: Make, program: RiscvProgram, words: int, steps: int, *, multiply: bool, completes: bool) -> Counter[str]:
    """A program on an interpreter and on the reference, after every loop; what happened in it."""
    buses = [DevicesOfATest(range(program.base, program.base + 4 * words), completes) for _ in range(2)]
    one = make(program, words, buses[0], multiply=multiply)
    other = PrivilegedReference(program.image(words), list(program.registers(words)), program.base, buses[1],
                                multiply=multiply)
    found = Counter[str]()
    for step in range(1, steps + 1):
        before, mode = one.word, one.rows["mode"]
        one.run(step)
        other.step()
        assert (one.program_counter, list(one.registers)) == (other.counter, other.x), step
        assert one.rows == other.rows(), step
        assert one.requested == other.asks, step
        decoded = None if before is None or one.trapped is not None else decode(before)
        if one.trapped is not None:
            found[f"{csrs.CAUSES[one.trapped]} in {'machine' if mode else 'user'} mode"] += 1
        elif decoded is not None:
            found[decoded.instruction.name] += 1
    assert b"".join(word.to_bytes(4, "little") for word in one.memory) == other.memory
    assert buses[0].stored == buses[1].stored
    return found


def compare_random(make: Make, seed: int, steps: int) -> Counter[str]:
    rng = random.Random(f"sizes {seed}")
    words, multiply = LEAST_WORDS + 4 * rng.randrange(8), rng.random() < 0.7
    program = privileged_program(seed, words, rng.choice((0, 0x400, 0x80000000)), multiply=multiply)
    try:
        return compare(make, program, words, steps, multiply=multiply, completes=rng.random() < 0.5)
    except AssertionError as error:
        raise AssertionError(f"seed {seed}: {error}") from error


def test_random_programs_beside_a_second_interpreter() -> None:
    found = sum((compare_random(PrivilegedInterpreter, seed, 250) for seed in range(100)), Counter[str]())
    causes = {f"{cause} in {mode} mode" for cause in csrs.CAUSES.values() for mode in ("user", "machine")}
    assert causes - set(found) == {"call from user mode in machine mode", "call from machine mode in user mode"}
    assert min(found[name] for name in ("lr.w", "sc.w", "mret", "wfi", "csrrc", "amomaxu.w", "lw")) > 20


@needs_c
def test_random_programs_in_c() -> None:
    for seed in range(1000, 1030):
        compare_random(PrivilegedInC, seed, 250)


@pytest.mark.soak
@pytest.mark.parametrize("make", EACH)
def test_many_random_programs_beside_a_second_interpreter(make: Make) -> None:
    for seed in range(10_000, 20_000):
        compare_random(make, seed, 300)


def test_an_interrupt_at_every_instruction() -> None:
    """The first interrupt comes at each instruction of the loop, and the others at any."""
    found = Counter[str]()
    for distance in range(12, 60):
        program = interrupted_program(distance, 17 + distance % 5, 0x80000000 * (distance % 2))
        found += compare(PrivilegedInterpreter, program, MEMORY, 120, multiply=True, completes=True)
    assert found["timer interrupt in machine mode"] > 100


@pytest.mark.soak
def test_interrupts_at_every_instruction_at_any_distance() -> None:
    for distance in range(12, 60):
        for period in range(5, 60):
            compare(PrivilegedInterpreter, interrupted_program(distance, period), MEMORY, 300, multiply=True, completes=True)
