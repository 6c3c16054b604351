"""Layer C of a privileged machine: what it adds to that of any other.

The program counter is known, for layer T has chosen between the handler and all else. What follows from the new state, so that
the next loop begins with it: whether the program counter is astray, whether the timer is due, and whether an interrupt comes.
"""

from __future__ import annotations

from typing import ClassVar

from punchcard.machines.riscv.csrs import MACHINE, USER
from punchcard.machines.riscv.designs.decode import fixed_bits
from punchcard.machines.riscv.designs.fetch import PASSING, Fetch
from punchcard.machines.riscv.designs.formulas import rewrite
from punchcard.machines.riscv.isa import BY_NAME, WORD_BITS
from punchcard.primitives.bits import number
from punchcard.primitives.literals import absent, as_numbers, bits_where, conjunction, step_where
from punchcard.transformer.build import Part
from punchcard.transformer.expression import Expression


class ControlFetch(Fetch):
    """The formulas of layer C."""

    passing: ClassVar[tuple[str, ...]] = (*PASSING, "contents", "rolls", "new", "writes", "course", "cause", "detail", "due")

    def _counter(self) -> Expression:
        return bits_where(self.next, 0.0 * self.one, self.one)

    def _events(self) -> Part:
        one = self.one
        wait = self._inside(self._closed(fixed_bits(BY_NAME["wfi"])))
        return (rewrite(self.rows("event.wait"), wait) + rewrite(self.rows("astray"), self._astray())
                + rewrite(self.rows("mip.timer"), self._timer(0.0 * one)) + rewrite(self.rows("alert"), self._alert()))

    def _timer(self, missing: Expression) -> Expression:
        """1 where mtime is not below mtimecmp and nothing is absent: their high halves, and what is known of the low ones."""
        one = self.one
        apart = number(self.rows("mtimeh"), one) - number(self.rows("mtimecmph"), one)
        return step_where(apart + as_numbers(self.rows("due"), one) - one, missing, one, 1 << WORD_BITS)

    def _alert(self) -> Expression:
        """1 where an interrupt is pending and enabled: in user mode, or where mstatus says so."""
        one, found = self.one, 0.0 * self.one
        software = absent(self.rows("mie.software", "mip.software"), {0: 1, 1: 1}, one)
        timer = absent(self.rows("mie.timer"), {0: 1}, one)
        for cube in ({0: USER}, {0: MACHINE, 1: 1}):
            open_ = absent(self.rows("mode", "mstatus.mie"), cube, one)
            found = found + conjunction(open_ + software, one) + self._timer(open_ + timer)
            found = found - self._timer(open_ + timer + software)
        return found
