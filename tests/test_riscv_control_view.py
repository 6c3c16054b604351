"""What people see of a machine with traps: traces with modes and traps, values of views, results."""

from __future__ import annotations

import pytest

import punchcard
from punchcard.card.packed import PackedCard
from punchcard.engines import Controls, NoCopyWatch
from punchcard.machines.riscv.control_view import cause_text, trap_between
from punchcard.machines.riscv.csrs import MACHINE_CALL, RESET, ROWS, TIMER_INTERRUPT
from punchcard.machines.riscv.machine import RiscvMachine
from punchcard.machines.riscv.privileged import entry
from punchcard.machines.riscv.system.platform import RAM
from tests.riscv_privileged_runs import machine_of

PROGRAM = """
start: la t0, trap
 csrw mtvec, t0
 la t0, user
 csrw mepc, t0
 mret
user: ecall
trap: li t0, 0x11100000
 li t1, 0x5555
 sw t1, 0(t0)
"""


@pytest.fixture(scope="module")
def machine(shared_code: None) -> RiscvMachine:
    return machine_of()


def test_a_trace_has_modes_and_traps(machine: RiscvMachine) -> None:
    program, lines = punchcard.assemble(PROGRAM, "riscv", base=RAM), list[str]()
    before = machine.pack(program)

    def watch(loop: int, card: PackedCard) -> None:
        nonlocal before
        lines.append(machine.trace_line(program, before, card))
        before = card.copy()

    result = machine.run(program, engine="lowered", controls=Controls(watch=NoCopyWatch(watch)))
    text = [" ".join(line.split()) for line in lines]
    assert "M [start+8] csrrw zero, mtvec, t0 mtvec = 0x80000020" in text[3]
    assert text[7].startswith("M [start+24] mret mode = 0x0, mstatus.mpie = 0x1")
    assert text[8].startswith("U [user] ecall trap: call from user mode, goto trap")
    assert text[9].startswith("M [trap] lui t0")
    assert "asks the host" in text[-1]
    found = result.memory
    assert (found["mode"], found["mcause"], found["mepc"]) == ("machine", "call from user mode", RAM + 28)
    assert {"mstatus", "mie", "mip", "mtime", "mtimecmp"} <= found.keys()


def test_values_of_a_view(machine: RiscvMachine) -> None:
    program = punchcard.assemble(PROGRAM, "riscv", base=RAM)
    card = machine.run(program, engine="lowered").card.numpy()
    values = machine.display_values(program)
    shown = {value.name: value.text(machine.layout, lambda column: card[:, column].tolist()) for value in values}
    assert (shown["mode"], shown["mcause"], shown["mepc"], shown["mtvec"]) == (
        "machine", "call from user mode", str(RAM + 28), str(RAM + 32))
    assert (shown["interrupts enabled (mie)"], shown["interrupts pending (mip)"]) == ("none", "none")
    assert shown["mstatus.mpp"] == "user"
    assert values[0].plain(machine.layout)["scale"] == 1


def test_what_is_a_trap() -> None:
    before = {**dict.fromkeys(ROWS, 0), **RESET, "mtvec": 64}
    after = {**before, **entry(before, 40, MACHINE_CALL, 0)}
    assert trap_between(before, 40, after, 256) == MACHINE_CALL
    assert trap_between(before, 40, after, 44) is None
    assert trap_between(before, 40, {**after, "mode": 0}, 256) is None
    assert trap_between(before, 40, {**before, **entry(before, 40, TIMER_INTERRUPT, 0)}, 256) == TIMER_INTERRUPT
    assert (cause_text(TIMER_INTERRUPT), cause_text(0x1F)) == ("timer interrupt", "0x1f")
