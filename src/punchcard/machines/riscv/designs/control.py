"""The rows of a privileged machine: its control registers, what a loop finds out about traps, and the facts about them.

`csrs` has the table. What a trap changes at once is in rows of the scratchpad, where one feed-forward writes all of it.
Some rows follow from others, so that a loop begins with them: `mip.timer`, `awake` and `astray`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import NamedTuple

from punchcard.card.facts import Fact
from punchcard.card.layout import Card, Layout, RowBlock, persistent_bits
from punchcard.machines.riscv import csrs, traps
from punchcard.machines.riscv.csrs import CLINT, CSRS, ROWS, Csr
from punchcard.machines.riscv.designs.base import RiscvSizes
from punchcard.machines.riscv.designs.layout import is_within, passing
from punchcard.machines.riscv.isa import BY_NAME, CSR_BITS, WORD_BITS
from punchcard.primitives.literals import Code, Cube, decide

ABOUT: Mapping[str, str] = {
    "mode": "machine mode, or user mode",
    "mstatus": "whether interrupts are enabled, now and before the last trap; and the mode before it",
    "mie": "which interrupts are enabled", "mip": "which interrupts are pending",
    "mtvec": "where traps go", "mscratch": "a word of the handler's own", "mepc": "where the last trap was",
    "mcause": "why", "mtval": "and with what",
    "mtime": "loops, the low half", "mtimeh": "the high half",
    "mtimecmp": "when the timer interrupts, the low half", "mtimecmph": "the high half",
    "mcycle": "loops, the low half", "mcycleh": "the high half",
    "reservation": "the word that lr.w has reserved, and whether it has",
    "port": "what the host gives for an access, or the result of an atomic instruction that has stored",
}
COURSE: Mapping[str, str] = {
    "odd": "anything of this; else the instruction is one of a machine without traps",
    "trap": "a trap is taken",
    "asks": "an access is not in the memory, and the host has not answered",
    "known": "it is a word of the CLINT",
    "answered": "the result is the word of the port",
    "begins": "an atomic instruction stores, and leaves its result to the next loop",
    "tries": "it is sc.w",
    "lost": "there is no result",
    "returns": "mret",
    "reserves": "lr.w reserves a word",
    "releases": "a store, an atomic instruction or mret: no word is reserved any more",
}
"""What becomes of the instruction: layer B says so, and layer T does it."""
CLINT_PARTS: Mapping[int, str] = {address: rows.split(".")[-1] for address, rows in CLINT.items()}
"""The words of the CLINT, as parts of `writes`."""
WRITABLE: Mapping[str, tuple[Csr, ...]] = {
    first.name: tuple(csr for csr in CSRS if csr.writable and csr.fields == first.fields)
    for first in {csr.fields: csr for csr in reversed(CSRS) if csr.writable}.values()}
"""Control registers that may be written: those that are the same rows are one."""
WRITES: tuple[str, ...] = (*WRITABLE, *CLINT_PARTS.values())
"""What one instruction may write: a control register, or a word of the CLINT."""
DUE = ("now", "mtime", "mtimecmp", "mtimeh")
"""As they become if nothing is stored to them, and if a word is stored to one of these."""
COUNTING: tuple[str, ...] = tuple(low for low, _ in csrs.COUNTERS)
Contents = tuple[int, tuple[csrs.Field, ...]]
"""What a control register shows: fixed bits, and rows."""


def contents_of(csr: Csr, multiply: bool) -> Contents:
    """What a control register shows, whether it may be written or not."""
    return csrs.fixed_bits(csr, multiply), tuple(field._replace(writable=True) for field in csr.fields)


def all_contents(multiply: bool) -> list[Contents]:
    """All that control registers show, by a number of few bits; number 0 is a register that is 0."""
    return list(dict.fromkeys([(0, ()), *(contents_of(csr, multiply) for csr in CSRS)]))


def state_blocks() -> list[RowBlock]:
    """The machine's own state, which is kept from loop to loop. Layer T changes it, and layer C looks at it once more."""
    parts: dict[str, dict[str, int]] = {}
    for name, size in ROWS.items():
        block, _, part = name.partition(".")
        parts.setdefault(block, {})[part] = size
    found = [replace(persistent_bits(name, sum(each.values()), ABOUT[name], {} if "" in each else each), within="bits")
             for name, each in parts.items()]
    return [*found, persistent_bits("astray", 1, "the program counter is outside the memory"),
            persistent_bits("awake", 1, "an interrupt is pending that mie has")]


def control_blocks(sizes: RiscvSizes) -> list[RowBlock]:
    """All rows that a privileged machine has beyond those of any other."""
    if not sizes.privileged:
        return []
    return [
        *state_blocks(),
        passing("contents", content_bits(sizes.multiply), "what the control register shows, by number"),
        *(passing(f"{name}_rolls", 1, f"the low half of {name} is at its end") for name in COUNTING),
        passing("new", WORD_BITS, "what is written to a control register, to the CLINT or to the port"),
        passing("writes", len(WRITES), "to which", dict.fromkeys(WRITES, 1)),
        replace(passing("course", len(COURSE), "what becomes of the instruction", dict.fromkeys(COURSE, 1)),
                selects=("odd",)),
        passing("cause", ROWS["mcause.code"], "why the instruction itself would trap"),
        passing("detail", WORD_BITS, "and with what"),
        passing("stops", len(COUNTING), "whether a half of a counter is written", dict.fromkeys(COUNTING, 1)),
        passing("due", len(DUE), "the low half of mtime is not below that of mtimecmp", dict.fromkeys(DUE, 1)),
        passing("called", 1, "a software interrupt is pending that mie has"),
    ]


def content_bits(multiply: bool) -> int:
    return (len(all_contents(multiply)) - 1).bit_length()


# The numbers of control registers, as conjunctions over the bits 20 to 31 of the word


@cache
def content_cubes(multiply: bool) -> tuple[tuple[Cube, ...], ...]:
    """For each bit of the number of what is shown: the conjunctions that set it. Unknown registers may show anything."""
    known = all_contents(multiply)
    codes = {csr.number: known.index(contents_of(csr, multiply)) for csr in CSRS}
    found = []
    for bit in range(content_bits(multiply)):
        classes: dict[Code, bool] = {code_of(number): bool(code >> bit & 1) for number, code in codes.items()}
        found.append(tuple(decide(classes)[True]))
    return tuple(found)


def code_of(number: int) -> Code:
    return tuple(number >> place & 1 for place in range(CSR_BITS))


@cache
def cubes_of(numbers: frozenset[int], bits: int = CSR_BITS) -> tuple[Cube, ...]:
    """Conjunctions of which just one holds for each of some numbers, and none for any other; the highest bit first."""
    if not numbers:
        return ()
    if len(numbers) == 1 << bits:
        return ({},)
    half = 1 << bits - 1
    low, high = (frozenset(number % half for number in numbers if number // half == value) for value in (0, 1))
    if low == high:
        return cubes_of(low, bits - 1)
    return tuple({**cube, bits - 1: value} for value, part in enumerate((low, high)) for cube in cubes_of(part, bits - 1))


class Permission(NamedTuple):
    """Control registers that may be used in a mode: to read alone, or to write as well."""

    mode: int
    reads_only: bool
    numbers: tuple[Cube, ...]


@cache
def permissions() -> tuple[Permission, ...]:
    """Which registers an instruction may use; no register is in two of these for one mode."""
    found = []
    for mode in (csrs.USER, csrs.MACHINE):
        lawful = {writes: frozenset(csr.number for csr in CSRS if csrs.is_lawful(csr.number, mode, writes))
                  for writes in (True, False)}
        found += [Permission(mode, False, cubes_of(lawful[True])),
                  Permission(mode, True, cubes_of(lawful[False] - lawful[True]))]
    return tuple(found)


# Facts


def reset_rows(sizes: RiscvSizes, entry: int) -> dict[str, int]:
    """The rows that are not 0 before the first loop, which only jumps to the entry: when it has ended, time is 0."""
    counters = {rows: (1 << WORD_BITS) - 1 for pair in csrs.COUNTERS for rows in pair}
    return {**csrs.RESET, **counters, "mip.timer": 1, "astray": int(not sizes.base <= entry < sizes.end)}


def read_control(layout: Layout, card: Card) -> dict[str, int]:
    """The machine's own state on a card, by the names in `csrs.ROWS`."""
    scratch = layout.region("scratchpad").start
    return {name: layout.number_at(card, name, scratch) for name in ROWS}


def control_facts(sizes: RiscvSizes) -> list[Fact]:
    """The rows that follow from others."""
    if not sizes.privileged:
        return []
    return [
        Fact("scratchpad", lambda column: column["astray"].equals(~is_within(sizes, column["counter"])),
             "astray: the program counter is outside the memory"),
        Fact("scratchpad", lambda column: column["mip.timer"].equals(traps.is_due(column.__getitem__)),
             "mip.timer: mtime >= mtimecmp"),
        Fact("scratchpad", lambda column: column["awake"].equals(traps.is_awake(column.__getitem__)),
             "awake: an interrupt is pending that mie has"),
        Fact("scratchpad",
             lambda column: column["event.wait"].equals(column["word"].equals(BY_NAME["wfi"].match) & ~column["astray"]),
             "event.wait: the instruction is wfi"),
    ]
