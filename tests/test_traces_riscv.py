"""Traces of all kinds of RISC-V machines, everything hot from the first loop. Most are for the soak: cases take long."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import pytest

from punchcard.card.packed import PackedCard
from punchcard.engines import Controls
from punchcard.engines.base import TraceReport
from punchcard.engines.lowered.tracing import tier
from punchcard.machines.result import Result
from punchcard.machines.riscv.languages.assembly.assembler import assemble
from punchcard.machines.riscv.machine import RiscvMachine
from punchcard.machines.riscv.privileged_in_c import PrivilegedInC
from punchcard.machines.riscv.program import RiscvProgram
from punchcard.machines.riscv.workloads import SIEVE
from punchcard.machines.running import Mark, PeriodicAction
from tests.cases import soaked
from tests.riscv_cases import endless, overwriting
from tests.riscv_privileged_cases import changing_program, interrupted_program, privileged_program
from tests.riscv_privileged_runs import USUAL, machine_of

pytestmark = pytest.mark.usefixtures("shared_code")
KINDS: dict[str, Callable[[], RiscvMachine]] = {
    "three-layer": partial(RiscvMachine, memory=1024),
    "two-layer": partial(RiscvMachine, memory=1024, design="two-layer"),
    "products": partial(RiscvMachine, memory=1024, multiply=True),
    "traps": partial(machine_of, multiply=False),
    "traps and products": partial(machine_of, multiply=True),
}


@cache
def machine_for(kind: str) -> RiscvMachine:
    """One for all tests of a kind: it keeps its code."""
    return KINDS[kind]()


def program_for(kind: str, rng: random.Random) -> RiscvProgram:
    """A random program; some of them change themselves, those with traps are interrupted."""
    if kind.startswith("traps"):
        sizes = machine_for(kind).sizes
        return rng.choice((
            lambda: interrupted_program(rng.randrange(16, 60), rng.randrange(17, 90), sizes.base),
            lambda: changing_program(rng.randrange(1 << 20), sizes.base),
            lambda: privileged_program(rng.randrange(1 << 20), USUAL, sizes.base, multiply=sizes.multiply)))()
    if kind == "products":
        return assemble(PRODUCTS.format(*(rng.randrange(1 << 32) for _ in range(3)), 1 << 20), "products.s")
    return overwriting(rng, 1024, 20) if rng.random() < 0.4 else endless(rng, 1024, rng.randrange(8, 200))


PRODUCTS = """
 li a0, {}
 li a1, {}
 li a2, {}
 li a3, {}
again: mul a4, a0, a1
 mulhu a5, a4, a2
 div a6, a4, a2
 rem a7, a5, a1
 mulhsu s1, a6, a7
 xor a0, a0, s1
 add a1, a1, a5
 divu s2, a1, a6
 remu s3, a0, s2
 add a2, a2, s3
 mulh s4, a1, a2
 addi a3, a3, -1
 bnez a3, again
 li a7, 93
 ecall
"""


def compare(kind: str, seed: int, loops: int) -> TraceReport:
    """Runs in parts of random lengths: what traces did in them."""
    machine, rng, total = machine_for(kind), random.Random(f"{kind} {seed}"), TraceReport()
    program = program_for(kind, rng)
    for turn in range(3):
        steps, every = rng.randrange(loops // 2, loops), rng.randrange(40, loops // 2)
        order = (0.0, None) if turn == 0 else (None, 0.0)
        traced = compare_runs(machine, program, steps, every, f"{kind} {seed}", order)
        total = TraceReport.total(total, traced.traces) or total
    return total


def compare_runs(machine: RiscvMachine, program: RiscvProgram, steps: int, every: int, where: str,
                 order: tuple[float | None, ...]) -> Result[Any]:
    """Two runs, with traces and without: the cards between two parts and at the end. The run with traces.

    Traces have more to do in the second one, when no case is new.
    """
    marks: dict[float | None, list[Mark]] = {traces: [] for traces in order}
    runs = {traces: machine.run(program, engine="lowered", max_steps=steps, keep=PeriodicAction(every, own.append),
                                controls=Controls(traces=traces)) for traces, own in marks.items()}
    traced, plain = runs[0.0], runs[None]
    where += f", {steps} steps, {every}"
    for found, expected in zip(marks[0.0], marks[None], strict=True):
        assert (found.ended, found.traffic) == (expected.ended, expected.traffic), where
        agree(found, expected, where)
    assert (traced.reason, traced.status, traced.output) == (plain.reason, plain.status, plain.output), where
    agree(traced, plain, where)
    return traced


def agree(found: Mark | Result[Any], expected: Mark | Result[Any], where: str) -> None:
    assert isinstance(found.raw_card, PackedCard)
    assert isinstance(expected.raw_card, PackedCard)
    assert found.loops == expected.loops, where
    others = expected.raw_card.fields
    different = [name for name, field in found.raw_card.fields.items() if (field != others[name]).any()]
    assert not different, f"{where}, loop {found.loops}: {different}"


TIMER = """
    .base {base:#x}
    la t0, handler
    csrw mtvec, t0
    la s0, cell
    lui s1, 0x11004
    sw zero, 4(s1)
    li t1, {first}
    sw t1, 0(s1)
    li t0, 0x80
    csrw mie, t0
    csrsi mstatus, 8
loop:
    lr.w a1, (s0)
    addi a1, a1, 3
    sc.w a2, a1, (s0)
    bnez a2, loop
    {wait}
    j loop
handler:
    lw t1, 0(s1)
    addi t1, t1, {period}
    sw t1, 0(s1)
    mret
cell:
    .word 5
"""
"""Interrupts in a hot loop, also between lr.w and sc.w."""


@pytest.mark.parametrize(("wait", "sampled", "builds"), [
    soaked("addi a1, a1, 1", tier.FEW_SAMPLED, 3),
    *(soaked(wait, sampled, tier.FEW_BUILDS) for wait in ("addi a1, a1, 1", "wfi") for sampled in (tier.FEW_SAMPLED, 64))])
def test_interrupts_in_hot_loops(wait: str, sampled: int, builds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tier, "FEW_SAMPLED", sampled)
    monkeypatch.setattr(tier, "FEW_BUILDS", builds)
    machine = machine_for("traps")
    program = assemble(TIMER.format(base=machine.sizes.base, first=30, period=23, wait=wait), "timer.s")
    run = compare_runs(machine, program, 900, 113, wait, (None, 0.0))
    assert run.state.registers[6] > 30 + 5 * 23, "there were interrupts"
    assert run.traces is not None
    assert run.traces.loops > 50 or wait == "wfi", "most loops wait"


PROGRAMS = 8
"""Random programs of a kind of machine."""


@pytest.mark.parametrize("kind", [soaked(kind) for kind in KINDS])
def test_random_programs(kind: str) -> None:
    """With everything hot, compiling takes most of the time: 40 to 45 CPU s a program of these."""
    total = TraceReport()
    for seed in range(PROGRAMS):
        total += compare(kind, seed, 4_000)
    assert total.compiled > PROGRAMS
    assert total.loops > 150 * PROGRAMS, total


HOT = """
 li a0, 7
 la a2, cells
again: addi a0, a0, 37
 andi a4, a0, 12
 add a4, a4, a2
 sw a0, 0(a4)
 lw a5, 4(a2)
 bnez a4, odd
 add a0, a0, a5
odd: {}
 j again
.data
cells: .word 1, 2, 3, 4
"""
MORE = {"three-layer": "", "two-layer": "", "products": "mul a0, a0, a5", "traps": "amoadd.w a6, a0, (a2)",
        "traps and products": "amoxor.w a6, a0, (a2)\n mulhu a5, a0, a6"}


@pytest.mark.parametrize("loops", [soaked(10**6), soaked(3 * 10**8)])
@pytest.mark.parametrize("kind", [soaked(kind) for kind in KINDS])
def test_long_runs_against_the_interpreter_in_c(kind: str, loops: int) -> None:
    machine = machine_for(kind)
    program = assemble(HOT.format(MORE[kind]), "hot.s", base=machine.sizes.base)
    result = machine.run(program, engine="lowered", max_steps=loops, controls=Controls(traces=0.01))
    if machine.sizes.privileged:
        oracle: Any = PrivilegedInC(program, machine.sizes.memory, multiply=machine.sizes.multiply)
    else:
        oracle = machine.in_c(program)
    oracle.run(result.steps)
    state = oracle.state
    assert (result.state.registers, result.state.memory, result.state.program_counter) == (
        state.registers, state.memory, state.program_counter)
    assert result.traces is not None
    assert result.traces.loops > 0.5 * result.loops or loops < 10**7, result.traces


COUNTED = """
    .base {base:#x}
    li t0, {first}
    li t1, {high}
    csrw mcycle, t0
    csrw mcycleh, t1
loop:
    addi a0, a0, 1
    j loop
"""


def sample_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever time it takes: so traces are soon as good as they can be."""
    for name, seconds in {"SECONDS_OF_A_CASE": 0.0, "SECONDS_OF_A_STATE": 0.0, "PATIENCE": 0.0, "LONGEST": 0.001}.items():
        monkeypatch.setattr(tier, name, seconds)


def test_a_branch_that_seldom_goes_the_other_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every way of a branch is part of a trace, also where what tells them apart is compared as if it were the first one."""
    sample_often(monkeypatch)
    machine = RiscvMachine(memory=1120)  # no other test has traces of its weights
    result = machine.run(assemble(SIEVE, "sieve.s"), engine="lowered", max_steps=6_000_000, controls=Controls(traces=1e-4))
    assert result.traces is not None
    assert result.traces.loops > 0.9 * result.loops, result.traces
    assert result.traces.exits < result.loops / 400, result.traces


@pytest.mark.soak
def test_a_counter_at_its_end_in_a_hot_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A trace is left before a counter comes to its end, and compiled anew for all that its upper half may be."""
    sample_often(monkeypatch)
    machine, steps = RiscvMachine(memory=96, privileged=True), 4_000_000  # no other test has traces of its weights
    for high in (0, 5):
        program = assemble(COUNTED.format(base=machine.sizes.base, first=-steps // 2, high=high), "counted.s",
                           base=machine.sizes.base)
        result = machine.run(program, engine="lowered", max_steps=steps, controls=Controls(traces=1e-4))
        oracle = PrivilegedInC(program, machine.sizes.memory)
        oracle.run(result.steps)
        assert result.state == oracle.state
        assert result.traces is not None
        assert result.traces.loops > 0.6 * result.loops, result.traces
