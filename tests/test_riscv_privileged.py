"""The interpreters with traps: instructions, control registers, traps, interrupts and the bus, by hand."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from punchcard.machines.in_c import compiler
from punchcard.machines.riscv import csrs
from punchcard.machines.riscv.csrs import CSRS, ROWS
from punchcard.machines.riscv.isa import MASK, decode, encode
from punchcard.machines.riscv.languages.assembly.assembler import assemble
from punchcard.machines.riscv.machine import RiscvMachine
from punchcard.machines.riscv.privileged import PrivilegedInterpreter
from punchcard.machines.riscv.privileged_in_c import PrivilegedInC
from punchcard.machines.streams import reader
from tests.riscv_cases import CORNERS, program_of
from tests.riscv_privileged_cases import DevicesOfATest, interrupted_program
from tests.riscv_privileged_reference import PrivilegedReference

Make = Callable[..., PrivilegedInterpreter]
needs_c = pytest.mark.skipif(compiler() is None, reason="there is no C compiler")
EACH = [PrivilegedInterpreter, pytest.param(PrivilegedInC, marks=needs_c)]
MEMORY = 64
A0, A1, A2, A3 = 10, 11, 12, 13


def after(
    make: Make, text: str, steps: int, registers: dict[int, int] | None = None, **options: Any
) -> PrivilegedInterpreter:
    """An interpreter that has made some steps, from these registers on."""
    run = make(assemble(text, "test.s"), MEMORY, **options)
    for number, value in (registers or {}).items():
        run.registers[number] = value
    run.run(steps)
    assert run.steps == steps
    return run


@needs_c
def test_the_interpreters_of_bench_know_control_registers() -> None:
    program = assemble("csrr a0, misa\ncsrw mscratch, a0\nloop: j loop", "test.s")
    machine = RiscvMachine(memory=MEMORY, privileged=True)
    runs = machine.oracle(program, reader(b""), lambda byte: None), machine.quickest(program), machine.in_c(program)
    for run in runs:
        run.run(10)
        assert run.registers[A0]
        assert run.state == runs[0].state


# Control registers

WHOLE = MASK
MASKS = {
    # what a register holds of all ones, from the privileged specification and the fields that this machine has
    "mstatus": 0x1888, "mie": 0x888, "mtvec": 0xFFFFFFFC, "mscratch": WHOLE, "mepc": 0xFFFFFFFC, "mcause": 0x8000001F,
    "mtval": WHOLE, "mcycle": WHOLE, "mcycleh": WHOLE, "minstret": WHOLE, "minstreth": WHOLE,
}
FIXED = {"misa": 0x40101101, "mcounteren": 7, "pmpaddr0": WHOLE}
COUNTING = ("mcycle", "minstret", "cycle", "time", "instret")


def test_numbers_of_control_registers() -> None:
    numbers = {"mstatus": 0x300, "misa": 0x301, "mie": 0x304, "mtvec": 0x305, "mcounteren": 0x306, "mstatush": 0x310,
               "menvcfg": 0x30A, "menvcfgh": 0x31A, "mcountinhibit": 0x320, "mhpmevent3": 0x323, "mhpmevent31": 0x33F,
               "mhpmcounter3": 0xB03, "mhpmcounter31": 0xB1F, "mhpmcounter3h": 0xB83, "mhpmcounter31h": 0xB9F,
               "mscratch": 0x340, "mepc": 0x341, "mcause": 0x342, "mtval": 0x343, "mip": 0x344, "pmpcfg0": 0x3A0,
               "pmpcfg15": 0x3AF, "pmpaddr0": 0x3B0, "pmpaddr63": 0x3EF, "tselect": 0x7A0, "tdata3": 0x7A3, "mcycle": 0xB00,
               "minstret": 0xB02, "mcycleh": 0xB80, "minstreth": 0xB82, "cycle": 0xC00, "time": 0xC01, "instret": 0xC02,
               "cycleh": 0xC80, "timeh": 0xC81, "instreth": 0xC82, "mvendorid": 0xF11, "marchid": 0xF12, "mimpid": 0xF13,
               "mhartid": 0xF14, "mconfigptr": 0xF15}
    assert {name: csrs.BY_NAME[name].number for name in numbers} == numbers
    assert len(CSRS) == len({csr.number for csr in CSRS}) == len(numbers) - 4 - 2 - 6 + 16 + 64 + 4 + 3 * 29
    held = {field.rows for csr in CSRS for field in csr.fields}
    others = {name for name in ROWS if name.startswith(("reservation", "port"))} | {"mode", "mtimecmp", "mtimecmph"}
    assert held == set(ROWS) - others


@pytest.mark.parametrize("make", EACH)
def test_what_control_registers_hold(make: Make) -> None:
    for csr in (each for each in CSRS if not each.read_only):
        run = after(make, f"csrr a1, {csr.name}\ncsrw {csr.name}, a0\ncsrr a2, {csr.name}", 3, {A0: MASK})
        before, held = run.registers[A1], run.registers[A2]
        if csr.name in MASKS:
            assert held == MASKS[csr.name], csr.name
            assert (csr.writable, before) == (MASKS[csr.name], 0), csr.name
        else:
            count = 2 if csr.name in COUNTING else 0
            assert (before, held) == (FIXED.get(csr.name, 0), FIXED.get(csr.name, 0) + count), csr.name
        assert run.rows["mcause.code"] == (0x1F if csr.name == "mcause" else 0)


@pytest.mark.parametrize("make", EACH)
def test_the_instructions_of_control_registers(make: Make) -> None:
    for name, new in (("csrrw", 0b1010), ("csrrs", 0b1110), ("csrrc", 0b0100)):
        run = after(make, f"{name} a1, mscratch, a2", 1, {A2: 0b1010})
        assert run.rows["mscratch"] == (0b1010 if name != "csrrc" else 0)
        for text in (f"csrwi mscratch, 12\n{name} a1, mscratch, a2", f"csrwi mscratch, 12\n{name}i a1, mscratch, 10"):
            run = after(make, text, 2, {A2: 0b1010})
            assert (run.registers[A1], run.rows["mscratch"]) == (12, new), text
        run = after(make, f"csrwi mscratch, 12\n{name} a2, mscratch, a2", 2, {A2: 0b1010})
        assert (run.registers[A2], run.rows["mscratch"]) == (12, new)
    for text in ("csrrs a1, cycle, zero", "csrrci a1, cycle, 0", "csrr a1, mvendorid"):
        assert after(make, text, 1).rows["mcause.code"] == 0, "only reading is lawful"
    run = after(make, "csrw mcycle, a0\ncsrrs a1, mcycle, zero\ncsrr a2, mcycle", 3, {A0: 100})
    assert (run.registers[A1], run.registers[A2]) == (100, 101), "reading does not stop the count"


@pytest.mark.parametrize("make", EACH)
def test_reserved_bits_and_modes(make: Make) -> None:
    for written, read in ((0x800, 0), (0x1000, 0), (0x1800, 0x1800), (0xFFFFE777, 0), (0x1008, 8)):
        run = after(make, "csrw mstatus, a0\ncsrr a1, mstatus", 2, {A0: written})
        assert run.registers[A1] == read
    run = after(make, "csrw mstatus, a0\ncsrw mstatus, a1", 2, {A0: 0x1800, A1: 0x800})
    assert run.rows["mstatus.mpp"] == 0


def test_each_number_in_each_mode() -> None:
    """Unknown numbers, machine registers in user mode, and writes of registers that are only read, are illegal."""
    reference = PrivilegedReference(bytes(64), [0] * 32, 0, None)
    for number in range(1 << 12):
        known = reference._read(number) is not None
        for mode in (csrs.USER, csrs.MACHINE):
            allowed = known and (mode == csrs.MACHINE or number >> 8 & 3 == 0)
            assert csrs.is_lawful(number, mode, False) == allowed
            assert csrs.is_lawful(number, mode, True) == (allowed and number < 0xC00)


@pytest.mark.parametrize("make", EACH)
def test_counters_count_loops_and_a_write_wins(make: Make) -> None:
    text = "csrr a1, mcycle\ncsrw mcycleh, a0\ncsrw mcycle, a0\nnop\ncsrr a2, mcycle\ncsrr a3, mcycleh"
    run = after(make, text, 6, {A0: MASK})
    assert [run.registers[i] for i in (A1, A2, A3)] == [0, 0, 0], "2^64 is 0"
    text = "lui s0, 0x1100c\nsw a0, -8(s0)\nlw a1, -8(s0)\nlw a2, -4(s0)\nsw a3, -4(s0)\nlw a4, -4(s0)"
    run = after(make, f"{text}\nrdtimeh a5\nrdtime a6", 8, {A0: MASK, A3: 7})
    assert [run.registers[i] for i in (A1, A2, 14, 15, 16)] == [MASK, 1, 7, 7, 3]
    run = after(make, "lui s0, 0x1100c\nsw a0, -8(s0)\nsw a1, -8(s0)\nlw a2, -4(s0)", 4, {A0: MASK, A1: 9})
    assert (run.registers[A2], run.rows["mtime"]) == (0, 10), "a write of one half stops the count of both"
    text = "csrw minstret, a0\ncsrw minstreth, a0\nnop\ncsrr a1, minstret\ncsrr a2, minstreth"
    run = after(make, text, 5, {A0: MASK, A1: 1, A2: 1})
    assert (run.registers[A1], run.registers[A2]) == (0, 0)


def test_misa_and_products() -> None:
    for multiply, misa in ((True, 0x40101101), (False, 0x40100101)):
        run = after(PrivilegedInterpreter, "csrr a1, misa\nmul a2, a1, a1", 2, multiply=multiply)
        assert (run.registers[A1], run.trapped) == (misa, None if multiply else csrs.ILLEGAL)


# Atomic instructions

SIGNED = {value: value - (1 << 32) if value >> 31 else value for value in CORNERS}
AMOS: dict[str, Callable[[int, int], int]] = {
    "amoswap.w": lambda m, y: y, "amoadd.w": lambda m, y: (m + y) & MASK, "amoxor.w": lambda m, y: m ^ y,
    "amoand.w": lambda m, y: m & y, "amoor.w": lambda m, y: m | y, "amominu.w": min, "amomaxu.w": max,
    "amomin.w": lambda m, y: min(m, y, key=SIGNED.__getitem__), "amomax.w": lambda m, y: max(m, y, key=SIGNED.__getitem__)}


@pytest.mark.parametrize("make", EACH)
def test_atomic_instructions_take_two_loops(make: Make) -> None:
    numbers = random.Random(5)
    for name, function in AMOS.items():
        for held, given in [(numbers.choice(CORNERS), numbers.choice(CORNERS)) for _ in range(12)]:
            text = f"{name} a0, a1, (a2)\n.word {held}"
            run = after(make, text, 1, {A1: given, A2: 4})
            assert (run.memory[1], run.rows["port.word"], run.rows["port.ready"]) == (function(held, given), held, 1)
            assert (run.registers[A0], run.program_counter, run.rows["mcycle"]) == (0, 0, 1)
            run.run(2)
            assert (run.registers[A0], run.memory[1], run.program_counter) == (held, function(held, given), 4), name
            assert (run.rows["port.ready"], run.rows["mtime"]) == (0, 2)
    run = after(make, "amoadd.w.aqrl a2, a2, (a2)\n.word 3", 2, {A2: 4})
    assert (run.registers[A2], run.memory[1]) == (3, 7), "the register of the address may be rd and the operand"


SEQUENCES = {
    # what follows lr.w a0, (s0), and whether sc.w a1, a2, (s0) succeeds
    "": True, "lw a3, (s0)": True, "lw a3, 4(s0)": True, "lr.w a3, (s0)": True, "csrw mscratch, a0": True,
    "sw a3, (s0)": False, "sw a3, 4(s0)": False, "sb a3, 1(s0)": False, "lr.w a3, (s1)": False,
    "amoor.w a3, a3, (s1)": False, "sc.w a3, a3, (s0)": False, "sc.w a3, a3, (s1)": False,
    "ecall": False, "sw zero, 0(s2)": False,
}


@pytest.mark.parametrize("make", EACH)
@pytest.mark.parametrize("between", SEQUENCES)
def test_a_reservation(make: Make, between: str) -> None:
    """A store anywhere, an sc.w, an amo and a trap break it; loads and control registers do not."""
    text = f"""
        la t0, handler
        csrw mtvec, t0
        la s0, data
        addi s1, s0, 4
        lui s2, 0x11000
        lr.w a0, (s0)
        {between}
        sc.w a1, a2, (s0)
    end:
        j end
    handler:
        csrr t0, mepc
        addi t0, t0, 4
        csrw mepc, t0
        mret
    data: .word 5, 6
    """
    run = after(make, text, 24, {A1: 99, A2: 77})
    succeeds = SEQUENCES[between]
    held = {"sw a3, (s0)": 0, "sb a3, 1(s0)": 5, "sc.w a3, a3, (s0)": 0}.get(between, 5)
    assert (run.registers[A1], run.memory[len(run.program.segments[0].data) // 4 - 2]) == (
        (0, 77) if succeeds else (1, held))
    assert run.rows["reservation.valid"] == 0


def test_a_reservation_without_lr() -> None:
    run = after(PrivilegedInterpreter, "sc.w a0, a1, (zero)", 2, {A1: 5})
    assert (run.registers[A0], run.memory[0]) == (1, encode("sc.w", A0, 0, A1))


# Traps

TRAPS = [
    # text at 0x28, cause, mtval; a0 is 0x81, a1 0x20000000, in machine mode
    (".word 0", 2, 0), (".word 0xffffffff", 2, MASK), ("csrw cycle, zero", 2, 0xC0001073), ("csrr a2, 0x180", 2, 0x18002673),
    ("sret: .word 0x10200073", 2, 0x10200073), ("ecall", 11, 0), ("ebreak", 3, 0x28), ("jr 1(a0)", 0, 0x82),
    ("jalr a0, 2(a1)", 0, 0x20000002), ("j . + 6", 0, 0x2E), ("beq a1, a1, . - 2", 0, 0x26), ("jr (a1)", 1, 0x20000000),
    ("lw a2, (a1)", 5, 0x20000000), ("lb a2, 3(a1)", 5, 0x20000003), ("sw a2, (a1)", 7, 0x20000000),
    ("lw a2, (a0)", 4, 0x81), ("lhu a2, 2(a0)", 4, 0x83), ("sh a2, (a0)", 6, 0x81), ("sw a2, 1(a1)", 6, 0x20000001),
    ("lw a2, 3(a1)", 4, 0x20000003), ("lr.w a2, (a0)", 4, 0x81), ("sc.w a2, a2, (a0)", 6, 0x81),
    ("amoadd.w a2, a2, (a0)", 6, 0x81), ("lr.w a2, (a1)", 5, 0x20000000), ("sc.w a2, a2, (a1)", 7, 0x20000000),
    ("amoswap.w zero, a2, (a1)", 7, 0x20000000), ("lb a2, (s0)", 5, 0x11000000), ("sh a2, (s0)", 7, 0x11000000),
    ("lw a2, 4(s0)", 5, 0x11000004), ("amoor.w a2, a2, (s0)", 7, 0x11000000), ("lw a2, 1(s0)", 4, 0x11000001),
    ("lw a2, -1(zero)", 4, MASK), ("lw a2, 253(zero)", 4, 253), ("sw a2, 256(zero)", 7, 256),
]
AT = 0x28
USER_TRAPS = [("ecall", 8, 0), ("mret", 2, 0x30200073), ("csrr a2, mstatus", 2, 0x30002673),
              ("csrw mscratch, a2", 2, 0x34061073), ("csrr a2, mcycle", 2, 0xB0002673),
              ("csrr a2, pmpcfg0", 2, 0x3A002673), ("ebreak", 3, AT), ("lw a2, (a1)", 5, 0x20000000)]
FORM = """
    la t0, handler
    csrw mtvec, t0
    lui s0, 0x11000
    csrw mstatus, a3
    auipc t0, 0
    addi t0, t0, 16
    csrw mepc, t0
    {enter}
    .align 3
at: {text}
    nop
handler:
    csrr a4, mcause
"""


@pytest.mark.parametrize("make", EACH)
@pytest.mark.parametrize(("text", "cause", "value", "mode"), [
    *((*case, csrs.MACHINE) for case in TRAPS), *((*case, csrs.USER) for case in USER_TRAPS)],
    ids=lambda part: str(part)[:24])
def test_traps(make: Make, text: str, cause: int, value: int, mode: int) -> None:
    """Nothing of the instruction is done. The mode and the enable are kept, and interrupts are off in the handler."""
    program = assemble(FORM.format(text=text, enter="mret" if mode == csrs.USER else "nop"), "test.s")
    assert program.symbols["at"] == AT
    run = make(program, MEMORY)
    for number, number_value in ((A0, 0x81), (A1, 0x20000000), (A3, 8 if mode == csrs.MACHINE else 0x80)):
        run.registers[number] = number_value
    run.run(AT // 4)
    assert (run.program_counter, run.rows["mode"], run.rows["mstatus.mie"]) == (AT, mode, 1)
    registers, memory, handler = list(run.registers), list(run.memory), program.symbols["handler"]
    while run.program_counter != handler:
        run.run(run.steps + 1)
    taken = 0x20000000 if cause == csrs.FETCH_FAULT else AT
    assert [run.rows[name] for name in ("mcause.code", "mcause.interrupt", "mtval")] == [cause, 0, value]
    assert (run.rows["mepc"] * 4, list(run.memory)) == (taken, memory)
    assert list(run.registers) == registers
    assert [run.rows[name] for name in ("mode", "mstatus.mie", "mstatus.mpie", "mstatus.mpp")] == [1, 0, 1, mode]
    assert run.steps == AT // 4 + (2 if cause in (1, 4, 5, 6, 7) else 1), "the bus is asked, or the target is fetched, first"


@pytest.mark.parametrize("make", EACH)
def test_mret_gives_mode_and_enable_back(make: Make) -> None:
    for status, mode, new in ((0x1880, 1, 0x88), (0x1808, 1, 0x80), (0x80, 0, 0x88), (0, 0, 0x80)):
        run = after(make, "csrw mstatus, a0\ncsrw mepc, a1\nmret", 3, {A0: status, A1: 0x43})
        found = run.rows["mstatus.mie"] << 3 | run.rows["mstatus.mpie"] << 7 | run.rows["mstatus.mpp"] << 11
        assert (run.program_counter, run.rows["mode"], found) == (0x40, mode, new)


# Interrupts and the timer

INTERRUPTS = """
    la t0, handler
    csrw mtvec, t0
    csrw mie, a0
    lui s0, 0x11000
    lui s1, 0x11004
    sw a1, 0(s0)
    sw zero, 4(s1)
    sw a2, 0(s1)
    csrw mstatus, a3
    la t0, user
    csrw mepc, t0
    {enter}
user:
    nop
    nop
    nop
    j user
handler:
    j handler
"""


@pytest.mark.parametrize("make", EACH)
@pytest.mark.parametrize(("enabled", "software", "timer", "status", "user", "cause"), [
    (0x888, 1, 0, 8, False, 0x80000003), (0x880, 1, 0, 8, False, 0x80000007), (8, 1, 0, 8, False, 0x80000003),
    (0x80, 0, 0, 8, False, 0x80000007), (0x888, 1, 0, 0, False, None), (0x888, 1, 0, 0, True, 0x80000003),
    (0x80, 1, 0, 0, True, 0x80000007), (0x800, 1, 0, 8, False, None), (0x88, 0, 1000, 8, True, None),
    (0, 1, 0, 8, True, None),
    (0x80, 0, 20, 8, False, 0x80000007), (0x80, 0, 20, 0, True, 0x80000007), (0x88, 0xFFFFFFFE, 1000, 8, False, None)])
def test_which_interrupt_is_taken(
    make: Make, enabled: int, software: int, timer: int, status: int, user: bool, cause: int | None
) -> None:
    program = assemble(INTERRUPTS.format(enter="mret" if user else "nop"), "test.s")
    run = make(program, MEMORY)
    for number, value in ((A0, enabled), (A1, software), (A2, timer), (A3, status)):
        run.registers[number] = value
    while run.steps < 60 and run.program_counter != program.symbols["handler"]:
        run.run(run.steps + 1)
    assert (run.steps < 60) == (cause is not None)
    if cause is not None:
        assert run.rows["mcause.interrupt"] << 31 | run.rows["mcause.code"] == cause
        assert [run.rows[name] for name in ("mtval", "mode", "mstatus.mie", "mstatus.mpp")] == [0, 1, 0, int(not user)]
    if timer == 20:
        assert run.steps == 21, "mtime is 20 when the loop begins that is interrupted"


@pytest.mark.parametrize("make", EACH)
@pytest.mark.parametrize("enable", [0, 8])
def test_wfi_waits_for_an_interrupt_be_it_enabled_or_not(make: Make, enable: int) -> None:
    """An interrupt that ends the wait returns to the instruction after."""
    text = """
        la t0, handler
        csrw mtvec, t0
        lui s1, 0x11004
        sw a2, 0(s1)
        sw zero, 4(s1)
        csrw mie, a0
        csrw mstatus, a3
        wfi
        nop
    handler:
        j handler
    """
    run = after(make, text, 30, {A0: 0x80, A2: 30, A3: enable})
    assert (run.program_counter, run.rows["mcycle"], run.rows["mip.timer"]) == (0x20, 30, 1)
    run.run(31)
    assert run.program_counter == 0x24
    run.run(32)
    assert (run.program_counter, run.rows["mepc"] * 4) == (0x28, 0x24 if enable else 0)


@pytest.mark.parametrize("make", EACH)
def test_no_interrupt_between_the_halves_of_an_instruction(make: Make) -> None:
    for distance in range(10, 70):
        run = make(interrupted_program(distance, 1000), MEMORY, DevicesOfATest(range(4 * MEMORY)))
        while not run.rows["mcause.interrupt"]:
            before = run.rows
            run.run(run.steps + 1)
        assert not before["port.ready"]
        assert not before["port.refused"]


# The bus

class OneDevice:
    """It remembers what was asked, gives one number, and refuses from some number on."""

    def __init__(self, answers: int = MASK) -> None:
        self.asked: list[str] = []
        self.power, self._answers = "on", answers

    def serve(self, word: int, guest: Any) -> int | None:
        found = decode(word)
        assert found is not None
        address, given = guest.register(found.rs1) + found.immediate, guest.register(found.rs2)
        self.asked.append(f"{found.instruction.name} {address:#x} {given}")
        if self.switches(word, guest):
            self.power = "off"
        return None if len(self.asked) > self._answers else 0 if found.instruction.writes_memory else 0xABCD

    def switches(self, word: int, guest: Any) -> bool:
        found = decode(word)
        return found is not None and found.instruction.writes_memory and guest.register(found.rs2) == 0x5555


@pytest.mark.parametrize("make", EACH)
def test_the_bus_is_asked_once_and_answers_before_the_next_loop(make: Make) -> None:
    bus = OneDevice()
    run = after(make, "lw a0, 4(a1)\nsb a2, (a1)\nlr.w a3, (a1)\nnop", 1, {A1: 0x30000000, A2: 6}, bus=bus)
    assert (run.requested, run.waits, bus.asked, run.program_counter, run.registers[A0]) == (True, True, [], 0, 0)
    run.serve()
    run.serve()
    assert (run.requested, bus.asked) == (False, ["lw 0x30000004 0"])
    assert [run.rows[name] for name in ("port.word", "port.ready", "port.refused", "mtime")] == [0xABCD, 1, 0, 1]
    run.run(2)
    assert (run.registers[A0], run.program_counter, run.rows["port.ready"]) == (0xABCD, 4, 0)
    run.run(4)
    assert (bus.asked[1], run.program_counter, run.rows["port.word"]) == ("sb 0x30000000 6", 8, 0)
    run.run(6)
    assert (run.registers[A3], run.rows["reservation.valid"], len(bus.asked)) == (0xABCD, 0, 3)


@pytest.mark.parametrize("make", EACH)
def test_a_bus_that_switches_the_machine_off(make: Make) -> None:
    bus = OneDevice()
    run = make(assemble("li a1, 0x11100000\nli a2, 0x5555\nsw a2, (a1)\nnop", "off.s"), MEMORY, bus)
    run.run()
    assert (run.halted, bus.power, run.program_counter, run.steps, len(bus.asked)) == (True, "off", 12, 4, 1)
    run.step()
    assert (run.steps, run.rows["port.ready"], run.requested) == (4, 0, True)


@pytest.mark.parametrize("make", EACH)
def test_a_misaligned_store_over_the_instruction_itself(make: Make) -> None:
    """The loop that ends it still has the word that was fetched."""
    bus = DevicesOfATest(range(4 * MEMORY))
    run = after(make, "sw a0, 1(zero)\nnop", 2, {A0: 0x11223344}, bus=bus)
    assert (run.program_counter, run.memory[0] >> 8, run.trapped) == (4, 0x223344, None)
    run = after(make, "sw a0, 1(zero)\nnop", 2, {A0: 0x11223344}, bus=DevicesOfATest(range(4 * MEMORY), completes=False))
    assert (run.rows["mcause.code"], run.rows["mtval"], run.program_counter) == (csrs.MISALIGNED_STORE, 1, 0)


@pytest.mark.parametrize("make", EACH)
def test_an_atomic_instruction_over_itself(make: Make) -> None:
    """The second loop has the word that the first has stored."""
    run = after(make, "amoswap.w a0, a1, (zero)", 2, {A1: encode("addi", A2, A2, immediate=5)})
    assert (run.registers[A0], run.registers[A2], run.program_counter, run.rows["port.ready"]) == (0, 5, 4, 0)


def test_a_trap_without_a_handler_goes_on_trapping() -> None:
    run = after(PrivilegedInterpreter, "ecall", 5, {}, bus=None)
    assert (run.program_counter, run.trapped, run.halted, run.fault) == (0, csrs.MACHINE_CALL, False, None)
    run = PrivilegedInterpreter(program_of([0], 0x1000), MEMORY)
    run.run(5)
    assert (run.program_counter, run.trapped, run.word) == (0, csrs.FETCH_FAULT, None)
