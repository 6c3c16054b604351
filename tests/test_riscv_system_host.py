"""A machine with traps beside its host: devices, waiting, ends, input that comes later, and runs that go on from a mark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import punchcard
from punchcard.engines import Controls
from punchcard.errors import ProgramError, PunchcardError
from punchcard.machines.riscv import system_host
from punchcard.machines.riscv.machine import RiscvMachine
from punchcard.machines.riscv.program import RiscvProgram
from punchcard.machines.riscv.system.platform import RAM, TIMER_HERTZ
from punchcard.machines.running import Mark
from punchcard.machines.streams import END_OF_INPUT, NOT_YET, LiveInput, Traffic
from tests.riscv_privileged_runs import machine_of

ENGINE = "lowered"
OFF = """
off: li t0, 0x11100000
 li t1, 0x5555
 sw t1, 0(t0)
"""
ECHO = """
 li s0, 0x10000000
poll: lbu t1, 5(s0)
 andi t1, t1, 1
 beqz t1, count
 lbu t2, 0(s0)
 addi t2, t2, 1
 sb t2, 0(s0)
count: addi s1, s1, 1
 addi t3, s1, -3
 bnez t3, poll
""" + OFF
WAIT = """
 li t0, 0x11004000
 li t1, 40
 sw t1, 0(t0)
 sw zero, 4(t0)
 li t1, 0x80
 csrw mie, t1
 wfi
""" + OFF


def program_of(text: str, **changes: Any) -> RiscvProgram:
    return replace(punchcard.assemble(text, "riscv", base=RAM), **changes)


@pytest.fixture(scope="module")
def machine(shared_code: None) -> RiscvMachine:
    return machine_of()


class Later(LiveInput):
    """Bytes that come after some looks; it notes how long it was to wait."""

    def __init__(self, given: Sequence[int]) -> None:
        self._given, self.waited = list(given), list[float]()

    def __call__(self) -> int:
        return self._given.pop(0) if self._given else END_OF_INPUT

    def wait(self, seconds: float) -> None:
        self.waited.append(seconds)


def test_bytes_come_and_go_and_the_machine_is_switched_off(machine: RiscvMachine) -> None:
    report = punchcard.run(program_of(ECHO), machine, engine=ENGINE, input=b"HA", check="lockstep")
    result = report.result
    assert report.agrees, report.why
    assert (result.reason, result.status, result.output, result.read) == ("halted", 0, b"IB", b"HA")
    assert (result.memory["s1"], result.memory["mode"], result.memory["mcause"]) == (3, "machine", "misaligned fetch")
    again = machine.run(program_of(ECHO), engine=ENGINE, begin=Mark(
        result.raw_card, result.loops, ENGINE, ended=True, traffic=result.traffic))
    assert (again.reason, again.status, again.loops) == ("halted", 0, result.loops), "it stays off"


def test_input_that_comes_later_is_the_same_for_the_interpreter(machine: RiscvMachine) -> None:
    """Which look has found a byte is remembered, so a run can be made again."""
    for check in ("lockstep", "end"):
        live = Later([NOT_YET, ord("x"), NOT_YET])
        report = punchcard.run(program_of(ECHO), machine, engine=ENGINE, input=live, check=check)
        assert report.agrees, report.why
        assert report.result.output == b"y"
        assert list(machine.replayed(report.result.traffic)) == [NOT_YET, ord("x"), NOT_YET]


def test_an_input_that_gives_no_bytes(machine: RiscvMachine) -> None:
    with pytest.raises(PunchcardError, match="the input gives 256: it must be a byte"):
        machine.run(program_of(ECHO), engine=ENGINE, input=lambda: 256)


REFUSED = """
 la t0, handler
 csrw mtvec, t0
 la t0, numbers
 {access}
 li s1, 5
""" + OFF + """
handler: csrr s2, mcause
 csrr s3, mtval
 j off
 .align 2
numbers: .word 0x04030201, 0x08070605
"""


@pytest.mark.parametrize(("access", "misaligned", "mcause", "value"), [
    ("li t0, 0x40000000; lw a0, 0(t0)", "complete", 5, 0x40000000),
    ("li t0, 0x40000000; sb a0, 0(t0)", "complete", 7, 0x40000000),
    ("lw a0, 1(t0)", "complete", None, 0x05040302), ("lw a0, 1(t0)", "trap", 4, None), ("sh a0, 3(t0)", "trap", 6, None),
    ("lb a0, 0(zero)", "trap", 5, 0),
])
def test_what_is_refused_is_a_trap(machine: RiscvMachine, access: str, misaligned: Any, mcause: int | None,
                                   value: int | None) -> None:
    program = program_of(REFUSED.format(access=access.replace("; ", "\n ")), misaligned=misaligned)
    report = punchcard.run(program, machine, engine=ENGINE, check="lockstep")
    assert report.agrees, report.why
    found = report.result.memory
    if mcause is None:
        assert (found["s1"], found["a0"]) == (5, value)
    else:
        assert (found["s1"], found["s2"]) == (0, mcause)
        assert value is None or found["s3"] == value


# Waiting


def test_loops_that_wait_are_counted_and_not_made(machine: RiscvMachine) -> None:
    """The card is that of a run in which every loop is made, loop by loop beside the interpreter."""
    program, made = program_of(WAIT), list[int]()
    skipped = machine.run(program, engine=ENGINE, controls=Controls(progress=made.append))
    report = punchcard.run(program, machine, engine=ENGINE, check="lockstep")
    assert report.agrees, report.why
    assert (skipped.reason, skipped.loops) == ("halted", report.result.loops)
    assert len(made) < 25 < 45 < skipped.loops
    assert torch.equal(skipped.card, report.result.card)


@pytest.mark.parametrize("limit", [12, 39])
def test_a_run_that_stops_while_it_waits_goes_on(machine: RiscvMachine, tmp_path: Path, limit: int) -> None:
    path, program = tmp_path / "run", program_of(WAIT)
    whole = machine.run(program, engine=ENGINE)
    part = punchcard.run(program, machine, engine=ENGINE, max_steps=limit, checkpoint=path)
    assert (part.result.reason, part.result.steps) == ("steps", limit)
    rest = punchcard.resume(path, machine, max_steps=1000).result
    assert (rest.reason, rest.loops) == ("halted", whole.loops)
    assert torch.equal(rest.card, whole.card)


def test_a_wait_that_nothing_ends(machine: RiscvMachine) -> None:
    forever = program_of("wait: wfi\n j wait\n")
    found = machine.run(forever, engine=ENGINE)
    assert (found.reason, str(found.fault)[:34]) == ("fault", "the processor waits (wfi), and no ")
    limited = machine.run(forever, engine=ENGINE, max_steps=10**9)
    assert (limited.reason, limited.steps, limited.memory["mtime"]) == ("steps", 10**9, 10**9)


@pytest.mark.parametrize(("text", "message"), [
    (" csrw mtvec, zero\n ebreak\n", "traps for ever: mtvec is 0x0, outside the memory"),
    (" la t0, handler\n csrw mtvec, t0\n ecall\nhandler: .word 0\n", "traps for ever: mtvec is 0x80000010, at .word 0x0"),
    ("spin: j spin\n", "jumps to itself for ever at 0x80000000, and no interrupt can come"),
])
def test_what_lasts_for_ever_ends_a_run_without_a_limit(
    machine: RiscvMachine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str, message: str,
) -> None:
    monkeypatch.setattr(system_host, "LOOKS_EVERY", 64)
    program, path = program_of(text), tmp_path / "run"
    found = punchcard.run(program, machine, engine=ENGINE, checkpoint=path).result
    assert (found.reason, message in str(found.fault), found.loops) == ("fault", True, 64), found.fault
    assert str(punchcard.resume(path, machine).result.fault) == str(found.fault)
    assert machine.run_batch([program], engine=ENGINE)[0].reason == "fault"
    limited = machine.run(program, engine=ENGINE, max_steps=1000)
    assert (limited.reason, limited.steps) == ("steps", 1000)


@pytest.mark.parametrize("change", ["", " csrsi mstatus, 8\n"])
def test_a_jump_to_itself_that_an_interrupt_ends(
    machine: RiscvMachine, monkeypatch: pytest.MonkeyPatch, change: str,
) -> None:
    """In machine mode by mstatus.MIE; in user mode an interrupt comes without it."""
    monkeypatch.setattr(system_host, "LOOKS_EVERY", 16)
    leave = "" if change else " la t0, spin\n csrw mepc, t0\n mret\n"
    spin = f" la t0, off\n csrw mtvec, t0\n{change}{leave}spin: j spin\n"
    found = machine.run(program_of(WAIT.replace(" wfi\n", spin).replace("li t1, 40", "li t1, 200")), engine=ENGINE)
    assert (found.reason, found.status) == ("halted", 0), found.fault
    assert found.loops > 200


def test_at_a_terminal_time_passes_while_the_machine_waits(machine: RiscvMachine) -> None:
    live = Later([])
    found = machine.run(program_of(WAIT), engine=ENGINE, input=live)
    assert found.reason == "halted"
    assert len(live.waited) == 1
    assert 20 < live.waited[0] * TIMER_HERTZ < 40


def test_a_machine_whose_input_has_ended_is_left_alone(machine: RiscvMachine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system_host, "LEFT_ALONE", 5000)
    text = """
 li s0, 0x10000000
 lbu t1, 5(s0)
again: li t0, 0x1100bff8
 lw t1, 0(t0)
 addi t1, t1, 1000
 li t0, 0x11004000
 sw t1, 0(t0)
 sw zero, 4(t0)
 li t1, 0x80
 csrw mie, t1
 wfi
 j again
"""
    found = machine.run(program_of(text), engine=ENGINE)
    assert (found.reason, found.loops > 5000) == ("interrupted", True)
    assert "the input has ended" in str(found.fault)


# Ends and marks


def test_a_request_for_a_new_start(machine: RiscvMachine) -> None:
    report = punchcard.run(program_of(OFF.replace("0x5555", "0x7777")), machine, engine=ENGINE, check="end")
    assert report.ok
    assert (report.result.reason, report.result.halted) == ("reboot", True)
    assert "asked for a new start" in report.result.summary()


@pytest.mark.parametrize("limit", [3, 4, 9, 15])
def test_a_run_goes_on_from_any_mark(machine: RiscvMachine, tmp_path: Path, limit: int) -> None:
    """Also before and after an access, with a byte in the UART that nobody has read yet."""
    path, program = tmp_path / "run", program_of(ECHO)
    whole = machine.run(program, engine=ENGINE, input=b"HA")
    punchcard.run(program, machine, engine=ENGINE, input=b"HA", max_steps=limit, checkpoint=path)
    rest = punchcard.resume(path, machine, input=b"HA", max_steps=1000, check="lockstep")
    assert rest.agrees, rest.why
    assert (rest.result.output, rest.result.loops) == (whole.output, whole.loops)
    assert torch.equal(rest.result.card, whole.card)


@pytest.mark.parametrize("kept", [(3,), (0,), (0, 0), (1, 2, 0, 0), (-1, 0, 0, 0), (0, 0, 0, -1)])
def test_what_a_mark_cannot_have_kept(machine: RiscvMachine, kept: tuple[int, ...]) -> None:
    program = program_of(ECHO)
    mark = Mark(machine.pack(program), traffic=Traffic(kept=kept))
    with pytest.raises(PunchcardError, match="saved as"):
        machine.run(program, engine=ENGINE, begin=mark)


def test_registers_at_the_start(machine: RiscvMachine) -> None:
    program = program_of(OFF, start=((10, 7), (11, 0xFFFFFFFF)))
    found = punchcard.run(program, machine, engine=ENGINE, check="end")
    assert found.agrees
    assert (found.result.memory["a0"], found.result.memory["a1"]) == (7, -1)
    assert machine.restore(machine.store(program)) == program
    for wrong in (((0, 1),), ((32, 1),), ((1, 1 << 32),)):
        with pytest.raises(ProgramError, match=f"register x{wrong[0][0]} cannot begin with {wrong[0][1]}"):
            program_of(OFF, start=wrong)


# On other engines


def test_a_slower_engine_serves_the_same(machine: RiscvMachine) -> None:
    text = """
 li s0, 0x10000000
 lbu a0, 0(s0)
 sb a0, 0(s0)
 lbu a0, 5(s0)
wait: wfi
 beqz zero, wait
"""
    fast, slow = (machine.run(program_of(text), engine=engine, input=b"A", max_steps=5000)
                  for engine in (ENGINE, "scratchpad"))
    assert (fast.reason, fast.output, fast.loops) == (slow.reason, slow.output, slow.loops) == ("steps", b"A", 5001)
    assert torch.equal(fast.card, slow.card)
    assert fast.traffic == slow.traffic
