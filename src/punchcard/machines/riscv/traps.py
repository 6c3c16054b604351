"""Interrupts, traps and the timer, as expressions of the rows in `csrs`.

`rows` gives the word of rows by their name, as they are when a loop begins. What changes rows gives the words of those that
it changes. Interpreters and proofs read this file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from punchcard.machines.riscv.csrs import SOFTWARE_INTERRUPT, TIMER_INTERRUPT
from punchcard.machines.riscv.semantics import WORD_BITS
from punchcard.words.word import FALSE, TRUE, Word, any_of, constant, join

Rows: TypeAlias = Callable[[str], Word]


def is_awake(rows: Rows) -> Word:
    """Whether wfi continues: an interrupt is pending that mie has, be it enabled or not."""
    return any_of(*(rows(f"mie.{name}") & rows(f"mip.{name}") for name in ("software", "timer")))


def is_interrupted(rows: Rows) -> Word:
    """Whether an interrupt is to be taken: one is pending, and user mode, or mstatus.mie, enables all."""
    return is_awake(rows) & (~rows("mode") | rows("mstatus.mie"))


def interrupt(rows: Rows) -> Word:
    """The cause of the interrupt that is taken: the software's comes before the timer's."""
    software = rows("mie.software") & rows("mip.software")
    return software.choose(constant(SOFTWARE_INTERRUPT, WORD_BITS), TIMER_INTERRUPT)


def entry(rows: Rows, counter: Word, cause: Word, value: Word) -> dict[str, Word]:
    """A trap: the mode and the interrupt enable are kept, and machine mode begins, at mtvec, without interrupts."""
    return {
        "mode": TRUE, "mstatus.mie": FALSE, "mstatus.mpie": rows("mstatus.mie"), "mstatus.mpp": rows("mode"),
        "mepc": counter[2:], "mcause.code": cause[:5], "mcause.interrupt": cause.is_negative, "mtval": value,
        "reservation.valid": FALSE,
    }


def exit(rows: Rows) -> dict[str, Word]:
    """mret: what the trap has kept comes back, and the program continues at mepc."""
    return {
        "mode": rows("mstatus.mpp"), "mstatus.mie": rows("mstatus.mpie"), "mstatus.mpie": TRUE, "mstatus.mpp": FALSE,
        "reservation.valid": FALSE,
    }


def address(rows: Rows, name: str) -> Word:
    """mtvec or mepc with its two lowest bits."""
    return join(constant(0, 2), rows(name))


def counted(rows: Rows, low: str, high: str) -> dict[str, Word]:
    """A counter of two rows, one more."""
    total = join(rows(low), rows(high)) + 1
    return {low: total[:WORD_BITS], high: total[WORD_BITS:]}


def is_due(rows: Rows) -> Word:
    """mip.timer: the time has come that mtimecmp says."""
    return join(rows("mtime"), rows("mtimeh")).at_least(join(rows("mtimecmp"), rows("mtimecmph")))
