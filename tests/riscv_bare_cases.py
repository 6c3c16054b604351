"""Tests that a bare machine makes of itself, in the manner of the public suites: each ends by a number in `tohost`.

A case sets its number in gp, leaves what it found in a0, and goes on if that is what is expected.
"""

from __future__ import annotations

from pathlib import Path

from punchcard.machines.riscv.languages.assembly.assembler import assemble
from punchcard.machines.riscv.program import RiscvProgram
from punchcard.machines.riscv.system.platform import RAM

FRAME = (Path(__file__).parent / "riscv_programs" / "bare.s").read_text()
MACHINE, USER = "0x1800", "0"
NO_HANDLER = "handler:\n li a0, 1337\n or gp, gp, a0\n j write\n"
SKIP = """
    csrr t0, mepc
    addi t0, t0, {bytes}
    csrw mepc, t0
    mret
"""


def case(number: int, expected: int, *code: str) -> str:
    """What a case does: the last instruction leaves a number in a0."""
    lines = "\n ".join(code)
    return f" li gp, {number}\n {lines}\n li t6, {expected:#x}\n bne a0, t6, wrong\n"


def bare(cases: str, handler: str = NO_HANDLER, mode: str = MACHINE) -> RiscvProgram:
    """A program for a bare machine."""
    text = f"    .base {RAM:#x}\n{FRAME.replace('MODE', mode)}{cases}\n j right\n .align 2\n{handler}"
    return assemble(text, "bare.s")


def trapping(cause: int, skipped: int = 4) -> str:
    """A handler that wants a cause, and goes on so many bytes later with a0 = 77."""
    return f"handler:\n csrr t0, mcause\n li t1, {cause}\n bne t0, t1, wrong\n li a0, 77\n{SKIP.format(bytes=skipped)}"


def _misaligned(cause: int, *accesses: str) -> str:
    return "".join(f" li gp, {number}\n li s1, {cause}\n li a0, 0\n {access}\n li t6, 77\n bne a0, t6, wrong\n"
                   for number, access in enumerate(accesses, start=10 * cause))


BARE_TESTS = {
    "control registers": bare("".join((
        " csrwi mscratch, 3\n", case(2, 3, "csrr a0, mscratch"), case(3, 3, "csrrci a0, mscratch, 1"),
        case(4, 2, "csrrsi a0, mscratch, 4"), case(5, 6, "csrrwi a0, mscratch, 2"),
        case(6, 2, "li t1, 0x12345678", "csrrw a0, mscratch, t1"),
        case(7, 0x12345678, "li a0, 0x5678", "csrrc a0, mscratch, a0"),
        case(8, 0x12340000, "li a0, 0xbeef", "csrrs a0, mscratch, a0"), case(9, 0x1234BEEF, "csrr a0, mscratch"),
        case(10, 0x40101101, "csrr a0, misa"), case(11, 0, "csrr a0, mvendorid"), case(12, 0, "csrr a0, mimpid"),
        " csrs mtvec, zero\n csrs mepc, zero\n"))),
    "user mode": bare("".join((
        case(2, 77, "li a0, 5", "csrrw a0, cycle, zero"), case(3, 77, "csrr a0, mstatus"),
        case(4, 77, "mret"), case(5, 77, "csrwi mscratch, 1"),
        case(6, 77, "csrr a0, mhpmcounter3"), case(7, 77, "csrr a0, menvcfg"), case(8, 77, "csrr a0, 0xc03"),
        " csrr a1, cycle\n csrr a1, time\n csrr a1, instret\n")),
        trapping(2), USER),
    "calls": bare(" li gp, 1\n ecall\n j wrong\n", mode=USER),
    "breakpoints and triggers": bare("".join((
        case(2, 77, "ebreak"), " li gp, 3\n csrw tselect, zero\n csrr a1, tselect\n bnez a1, right\n",
        case(4, 0, "csrr a0, tdata1", "srli a0, a0, 28"))), trapping(3)),
    "illegal words": bare("".join((
        case(2, 77, ".word 0"), case(3, 77, ".word 0xffffffff"), case(4, 77, ".word 0x02051513"),  # a shift by 32
        case(5, 77, ".word 0x10200073"), case(6, 77, "csrr a0, 0x180"), case(7, 77, ".word 0xa209ea21"),
        case(8, 77, "csrr a0, 0x321"), case(9, 77, "csrwi 0xb01, 0"), case(10, 77, "csrr a0, 0x302"))), trapping(2)),
    "misaligned fetches": bare("".join((
        case(2, 77, "la t2, there2", "jalr t1, 2(t2)", "there2:"), case(3, 77, "la t2, there3", "jalr t1, 3(t2)", "there3:"),
        case(4, 5, "li a0, 5", "la t2, there4", "jalr t1, 1(t2)", "there4:"), case(5, 77, ".word 0x0020006f"),  # j .+2
        case(6, 77, ".word 0x00000163"))),  # beq zero, zero, .+2
        trapping(0)),
    "misaligned accesses": bare(
        " la s0, tohost\n" + _misaligned(4, "lh a1, 1(s0)", "lhu a1, 1(s0)", "lw a1, 1(s0)", "lw a1, 2(s0)", "lw a1, 3(s0)")
        + _misaligned(6, "sh a1, 1(s0)", "sw a1, 1(s0)", "sw a1, 2(s0)", "sw a1, 3(s0)", "amoadd.w a1, a1, (s0)")
        .replace("amoadd.w a1, a1, (s0)", "addi t3, s0, 2\n amoadd.w a1, a1, (t3)"),
        f"handler:\n csrr t0, mcause\n bne t0, s1, wrong\n li a0, 77\n{SKIP.format(bytes=4)}"),
    "counters": bare("".join((
        case(2, 0, "csrwi minstret, 0", "csrr a0, minstret"),
        case(3, 0, "li t0, -1", "csrw minstret, t0", "csrw minstreth, t0", "nop", "csrr a0, minstret"),
        case(4, 0, "csrr a0, minstreth"),
        case(5, 1, "csrwi mcycle, 0", "nop", "csrr a0, mcycle"),
        case(6, 3, "csrr a1, instret", "nop", "nop", "csrr a0, instret", "sub a0, a0, a1")))),
    "registers that are always 0": bare("".join(
        case(number, 0, "li a0, -1", f"csrw {name}, a0", f"csrrs a0, {name}, a0", f"csrrc a1, {name}, a0", "or a0, a0, a1")
        for number, name in enumerate(("menvcfg", "menvcfgh", "mcountinhibit", "mhpmevent3", "mhpmevent31", "mhpmcounter3",
                                       "mhpmcounter31", "mhpmcounter3h", "mhpmcounter31h", "mstatush"), 2))
        + case(12, 1, "csrr a1, mcycle", "csrr a0, mcycle", "sub a0, a0, a1")),  # nothing has stopped it
    "protection of memory": bare("".join((
        " csrw pmpcfg0, zero\n li t0, -1\n csrw pmpaddr0, t0\n csrr t0, pmpaddr0\n",
        case(2, 1, "neg t1, t0", "and a0, t0, t1")))),  # every bit is there: the grain is four bytes
    "reservations": bare("".join((
        " la s0, tohost\n", case(2, 1, "sc.w a0, zero, (s0)"),
        case(3, 1, "addi t3, s0, 4", "lr.w a1, (t3)", "sc.w a0, a1, (s0)"),
        case(4, 0, "lr.w a1, (s0)", "sc.w a0, zero, (s0)"), case(5, 1, "sc.w a0, zero, (s0)"))), mode=USER),
}
"""Programs for a machine with the M extension, by what they test. Each ends with success."""
