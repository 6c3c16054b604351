"""The privileged machine's own state as a table: rows, control and status registers (CSRs), words of the CLINT, and traps.

A CSR is declared once, by its number and by its fields. A field is some bits of the register, and the rows that hold them;
all other bits are fixed. Interpreters, layers, assembler, disassembler, views and docs read this table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from punchcard.machines.riscv.semantics import WORD_BITS
from punchcard.words.word import Word, all_of, constant

USER, MACHINE = 0, 1
"""The modes, as the row `mode` has them."""
ROWS: Mapping[str, int] = {
    "mode": 1,
    "mstatus.mie": 1, "mstatus.mpie": 1, "mstatus.mpp": 1,
    "mie.software": 1, "mie.timer": 1, "mie.external": 1,
    "mip.software": 1, "mip.timer": 1,
    "mtvec": 30, "mscratch": 32, "mepc": 30,
    "mcause.code": 5, "mcause.interrupt": 1,
    "mtval": 32,
    "mtime": 32, "mtimeh": 32, "mtimecmp": 32, "mtimecmph": 32, "mcycle": 32, "mcycleh": 32,
    "reservation.address": 30, "reservation.valid": 1,
    "port.word": 32, "port.ready": 1, "port.refused": 1,
}
"""All that a privileged machine has besides registers, memory and program counter, and the bits of each.

mip.timer     mtime >= mtimecmp; mip.software is the CLINT's msip
mtvec, mepc   without their two lowest bits, which are 0; so is the address of the reserved word
port          what the host gives for an access that it serves, or the second result of an atomic instruction
"""
RESET: Mapping[str, int] = {"mode": MACHINE, "mtimecmp": (1 << WORD_BITS) - 1, "mtimecmph": (1 << WORD_BITS) - 1}
"""The rows before the first instruction that are not 0: machine mode, and no timer is set."""
COUNTERS: tuple[tuple[str, str], ...] = (("mtime", "mtimeh"), ("mcycle", "mcycleh"))
"""Numbers of 64 bits, low and high, that count loops, but for those in which a half is written: then the other stays."""


class Field(NamedTuple):
    """Bits of a CSR from `low` on, and the rows that hold them.

    Where the rows are fewer bits than the field, it reads all zeros or all ones; what is neither is written as zeros.
    """

    rows: str
    low: int
    size: int
    writable: bool = True

    @property
    def is_repeated(self) -> bool:
        """Whether one bit is stored for all bits of the field."""
        return self.size != ROWS[self.rows]


@dataclass(frozen=True)
class Csr:
    """A control and status register. Bits outside its fields read as `fixed`, and what is written to them is ignored."""

    name: str
    number: int
    fields: tuple[Field, ...] = ()
    fixed: int = 0

    @property
    def user(self) -> bool:
        """Whether user mode may read it: its number says so."""
        return self.number >> 8 & 3 == 0

    @property
    def read_only(self) -> bool:
        """Whether a write is illegal: its number says so."""
        return self.number >> 10 & 3 == 3

    @property
    def writable(self) -> int:
        """The bits that a write may change."""
        return sum((1 << field.size) - 1 << field.low for field in self.fields if field.writable)

    def read(self, rows: Callable[[str], Word], fixed: Word | None = None) -> Word:
        """Its value, by the rows, and by its fixed bits where those depend on the machine."""
        value = constant(self.fixed, WORD_BITS) if fixed is None else fixed
        for field in self.fields:
            bits = rows(field.rows)
            bits = bits.extend(field.size, signed=True) if field.is_repeated else bits
            value = value | bits.extend(WORD_BITS) << field.low
        return value

    def written(self, value: Word) -> dict[str, Word]:
        """The rows that a write of this value sets."""
        found = {}
        for field in (each for each in self.fields if each.writable):
            bits = value[field.low : field.low + field.size]
            found[field.rows] = all_of(*(bits[i] for i in range(field.size))) if field.is_repeated else bits
        return found


def _whole(name: str, number: int, rows: str = "", *, writable: bool = True) -> Csr:
    """A register of one field: all 32 bits, or without the two lowest."""
    rows = rows or name
    return Csr(name, number, (Field(rows, WORD_BITS - ROWS[rows], ROWS[rows], writable),))


MISA, MISA_MULTIPLY = 0x40101101, 1 << 12
"""RV32IMAU; the bit of M is 0 on a machine without it."""
EVENT_COUNTERS = range(3, 32)
"""The numbers of the counters of events. The specification asks for them and for their selectors; both may always be 0."""
CSRS: tuple[Csr, ...] = (
    Csr("mstatus", 0x300, (Field("mstatus.mie", 3, 1), Field("mstatus.mpie", 7, 1), Field("mstatus.mpp", 11, 2))),
    Csr("misa", 0x301, fixed=MISA),
    Csr("mie", 0x304, (Field("mie.software", 3, 1), Field("mie.timer", 7, 1), Field("mie.external", 11, 1))),
    _whole("mtvec", 0x305),
    Csr("mcounteren", 0x306, fixed=7),
    Csr("menvcfg", 0x30A),
    Csr("mstatush", 0x310),
    Csr("menvcfgh", 0x31A),
    Csr("mcountinhibit", 0x320),
    *(Csr(f"mhpmevent{i}", 0x320 + i) for i in EVENT_COUNTERS),
    _whole("mscratch", 0x340),
    _whole("mepc", 0x341),
    Csr("mcause", 0x342, (Field("mcause.code", 0, 5), Field("mcause.interrupt", 31, 1))),
    _whole("mtval", 0x343),
    Csr("mip", 0x344, (Field("mip.software", 3, 1, False), Field("mip.timer", 7, 1, False))),
    *(Csr(f"pmpcfg{i}", 0x3A0 + i) for i in range(16)),
    Csr("pmpaddr0", 0x3B0, fixed=(1 << WORD_BITS) - 1),
    *(Csr(f"pmpaddr{i}", 0x3B0 + i) for i in range(1, 64)),
    *(Csr(name, 0x7A0 + i) for i, name in enumerate(("tselect", "tdata1", "tdata2", "tdata3"))),
    _whole("mcycle", 0xB00),
    _whole("minstret", 0xB02, "mcycle"),
    *(Csr(f"mhpmcounter{i}", 0xB00 + i) for i in EVENT_COUNTERS),
    _whole("mcycleh", 0xB80),
    _whole("minstreth", 0xB82, "mcycleh"),
    *(Csr(f"mhpmcounter{i}h", 0xB80 + i) for i in EVENT_COUNTERS),
    _whole("cycle", 0xC00, "mcycle", writable=False),
    _whole("time", 0xC01, "mtime", writable=False),
    _whole("instret", 0xC02, "mcycle", writable=False),
    _whole("cycleh", 0xC80, "mcycleh", writable=False),
    _whole("timeh", 0xC81, "mtimeh", writable=False),
    _whole("instreth", 0xC82, "mcycleh", writable=False),
    *(Csr(name, 0xF11 + i) for i, name in enumerate(("mvendorid", "marchid", "mimpid", "mhartid", "mconfigptr"))),
)
BY_NUMBER: Mapping[int, Csr] = {csr.number: csr for csr in CSRS}
BY_NAME: Mapping[str, Csr] = {csr.name: csr for csr in CSRS}


def fixed_bits(csr: Csr, multiply: bool) -> int:
    """The bits of a CSR that no row holds, on a machine with the M extension or without."""
    return csr.fixed & ~MISA_MULTIPLY if csr.name == "misa" and not multiply else csr.fixed


def is_lawful(number: int, mode: int, writes: bool) -> bool:
    """Whether an instruction may use the CSR with this number."""
    csr = BY_NUMBER.get(number)
    return csr is not None and (mode == MACHINE or csr.user) and not (writes and csr.read_only)


CLINT: Mapping[int, str] = {
    0x11000000: "mip.software", 0x11004000: "mtimecmp", 0x11004004: "mtimecmph", 0x1100BFF8: "mtime", 0x1100BFFC: "mtimeh"}
"""The words of the CLINT, which the layers serve, and the rows that each is: all of its bits, or the lowest."""

INTERRUPT = 1 << 31
"""The bit of mcause that tells an interrupt from an exception."""
SOFTWARE_INTERRUPT, TIMER_INTERRUPT = INTERRUPT | 3, INTERRUPT | 7
MISALIGNED_FETCH, FETCH_FAULT, ILLEGAL, BREAKPOINT, MISALIGNED_LOAD, LOAD_FAULT, MISALIGNED_STORE, STORE_FAULT = range(8)
USER_CALL, MACHINE_CALL = 8, 11
CAUSES: Mapping[int, str] = {
    MISALIGNED_FETCH: "misaligned fetch", FETCH_FAULT: "fetch out of range", ILLEGAL: "illegal instruction",
    BREAKPOINT: "breakpoint", MISALIGNED_LOAD: "misaligned load", LOAD_FAULT: "load out of range",
    MISALIGNED_STORE: "misaligned store", STORE_FAULT: "store out of range", USER_CALL: "call from user mode",
    MACHINE_CALL: "call from machine mode", SOFTWARE_INTERRUPT: "software interrupt", TIMER_INTERRUPT: "timer interrupt",
}
"""What mcause says of each trap; the names of faults are those of the machine without traps."""
