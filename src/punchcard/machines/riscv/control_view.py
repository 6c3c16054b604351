"""What people see of a machine with traps besides its registers: mode, control registers, pending interrupts, traps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from punchcard.card.layout import Layout
from punchcard.machines.display_values import DisplayValue
from punchcard.machines.riscv import csrs
from punchcard.machines.riscv.csrs import BY_NAME, CAUSES, COUNTERS, INTERRUPT, MACHINE, ROWS
from punchcard.machines.riscv.isa import WORD_BITS, WORD_BYTES
from punchcard.machines.riscv.privileged import csr_functions, entry, mtvec
from punchcard.machines.riscv.program import RiscvProgram

SHOWN = ("mstatus", "misa", "mie", "mip", "mtvec", "mscratch", "mepc", "mcause", "mtval")
"""The control registers that a result shows, by their own numbers."""
MODES = {csrs.USER: "user", MACHINE: "machine"}
INTERRUPTS = ("software", "timer", "external")
COUNTED = frozenset(name for pair in COUNTERS for name in pair)
"""Rows that change in every loop."""
GROUP = "control"
CODE_BITS = ROWS["mcause.code"]


def control_values(rows: Mapping[str, int], *, multiply: bool) -> dict[str, int | str]:
    """The mode, the control registers and the clock, by name; the timer is when it interrupts."""
    found: dict[str, int | str] = {"mode": MODES[rows["mode"]]}
    found |= {name: csr_functions(BY_NAME[name].number, multiply)[0](rows) for name in SHOWN}
    found["mcause"] = cause_text(int(found["mcause"]))
    return found | {name: rows[name] | rows[f"{name}h"] << WORD_BITS for name in ("mtime", "mtimecmp")}


def cause_text(cause: int) -> str:
    """What mcause says; a number that no trap of the machine has is one that the program has written."""
    return CAUSES.get(cause, f"{cause:#x}")


def control_displays(layout: Layout) -> list[DisplayValue]:
    """The rows as a view shows them."""
    scratch = layout.region("scratchpad").start
    labels: dict[str, tuple[str, ...]] = {
        "mode": tuple(MODES[mode] for mode in sorted(MODES)),
        "mstatus.mpp": tuple(MODES[mode] for mode in sorted(MODES)),
        "mcause": tuple(_cause_label(number) for number in range(2 << CODE_BITS)),
        **{name: tuple(_names(number) for number in range(1 << layout.place(name).size)) for name in ("mie", "mip")},
    }
    names = ("mode", "mie", "mip", "mcause", "mepc", "mtval", "mtvec", "mscratch", "mstatus.mie", "mstatus.mpie",
             "mstatus.mpp", "mtime", "mtimecmp", "mtimeh", "mtimecmph", "reservation.valid", "port.word", "port.ready",
             "port.refused")
    return [DisplayValue(_title(name), GROUP, name, scratch, kind="unsigned", labels=labels.get(name, ()),
                         scale=1 << WORD_BITS - ROWS[name] if name in ("mtvec", "mepc") else 1) for name in names]


def _title(name: str) -> str:
    return {"mie": "interrupts enabled (mie)", "mip": "interrupts pending (mip)"}.get(name, name)


def _names(number: int) -> str:
    return ", ".join(name for i, name in enumerate(INTERRUPTS) if number >> i & 1) or "none"


def _cause_label(number: int) -> str:
    """The cause as the rows have it: the code, and above it the bit of an interrupt."""
    code, is_interrupt = number % (1 << CODE_BITS), number >> CODE_BITS
    return CAUSES.get(code | INTERRUPT * is_interrupt, "")


def trap_between(before: Mapping[str, int], counter: int, after: Mapping[str, int], following: int) -> int | None:
    """The cause of the trap that a loop has taken, from the rows before and after it, and the program counters."""
    cause = after["mcause.code"] | INTERRUPT * after["mcause.interrupt"]
    taken = entry(before, counter, cause, after["mtval"])
    return cause if following == mtvec(before) and all(after[name] == number for name, number in taken.items()) else None


def control_changes(before: Mapping[str, int], after: Mapping[str, int]) -> Iterator[str]:
    """The rows that a loop has changed, but those that count loops, in words."""
    for name, number in after.items():
        if number != before[name] and name not in COUNTED and not name.startswith("port."):
            yield f"{name} = {number << WORD_BITS - ROWS[name] if name in ('mtvec', 'mepc') else number:#x}"


def with_line(program: RiscvProgram, code: str, changes: list[str], counter: int) -> str:
    """A line of a trace: the instruction, what it changed, and where it comes from."""
    line = program.lines.get(counter)
    return f"{code:<44} {', '.join(changes)}{f'  ({line})' if line else ''}".rstrip()


def traced(program: RiscvProgram, code: str, changes: list[str], counters: tuple[int, int],
           control: tuple[Mapping[str, int], Mapping[str, int]], *, asks: bool) -> str:
    """The same of a machine with traps: the mode first, and a trap with its cause, or control registers that changed.

    `counters` and `control` are those before and after the loop; `asks`: it asks the host for an access.
    """
    (counter, following), (before, after) = counters, control
    code, cause = f"{MODES[before['mode']][0].upper()} {code}", trap_between(before, counter, after, following)
    if cause is not None:
        what = f"trap: {cause_text(cause)}" + f", mtval {after['mtval']:#x}" * bool(after["mtval"])
        return with_line(program, code, [what, f"goto {program.name_of(following)}"], counter)
    changes = [*changes, *control_changes(before, after)]
    if asks:
        changes.append("asks the host")
    elif following == counter and after["port.ready"]:
        changes.append("stored, and its result comes next")
    elif following == counter:
        changes.append("waits")
    elif following != counter + WORD_BYTES:
        changes.append(f"goto {program.name_of(following)}")
    return with_line(program, code, changes, counter)
