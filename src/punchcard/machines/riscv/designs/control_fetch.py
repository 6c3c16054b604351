"""Layer C of a privileged machine: what it adds to that of any other.

The program counter is known, for layer T has chosen between the handler and all else. What follows from the new state, so
that the next loop begins with it: whether the program counter is astray, whether the timer is due, and whether an interrupt
comes.
"""

from __future__ import annotations

from typing import ClassVar

from punchcard.machines.riscv import isa
from punchcard.machines.riscv.designs.control import COUNTING
from punchcard.machines.riscv.designs.decode import OPCODE, fixed_bits, immediate_sources
from punchcard.machines.riscv.designs.fetch import PASSING, Fetch
from punchcard.machines.riscv.designs.formulas import rewrite
from punchcard.machines.riscv.isa import BY_NAME, WORD_BITS
from punchcard.primitives.bits import number
from punchcard.primitives.literals import absent, as_numbers, bits_where, step_where
from punchcard.transformer.build import Part
from punchcard.transformer.expression import Expression, stack


class ControlFetch(Fetch):
    """The formulas of layer C."""

    passing: ClassVar[tuple[str, ...]] = (
        *PASSING, "contents", *(f"{name}_rolls" for name in COUNTING), "new", "writes", "course", "cause", "detail", "stops",
        "due", "called")

    def _counter(self) -> Expression:
        return bits_where(self.next, 0.0 * self.one, self.one)

    def _immediate(self) -> Expression:
        """As in any machine, with all bits of the opcode in each term: so a compiler sees one choice for all bits."""
        formats = {i.opcode: i.format for i in self.sizes.decoder.instructions if i.format in isa.IMMEDIATES}
        total = 0.0 * self.word
        for opcode, format in formats.items():
            sources, cube = immediate_sources(format), {place: opcode >> place & 1 for place in OPCODE}
            total = total + stack(*(0.0 * self.one if source is None else self._copied(self.fetched[source], cube)
                                    for source in sources))
        return total

    def _events(self) -> Part:
        one = self.one
        wait = self._inside(self._closed(fixed_bits(BY_NAME["wfi"])))
        return (rewrite(self.rows("event.wait"), wait) + rewrite(self.rows("astray"), self._astray())
                + rewrite(self.rows("mip.timer"), self._timer(0.0 * one)) + rewrite(self.rows("awake"), self._awake()))

    def _timer(self, missing: Expression) -> Expression:
        """1 where mtime is not below mtimecmp and nothing is absent: the high halves, and what is known of the low ones."""
        one = self.one
        apart = number(self.rows("mtimeh"), one) - number(self.rows("mtimecmph"), one)
        return step_where(apart + as_numbers(self.rows("due.now"), one) - one, missing, one, 1 << WORD_BITS)

    def _awake(self) -> Expression:
        """1 where an interrupt is pending that mie has: the software's, or the timer's."""
        one, called = self.one, self.rows("called")
        timer = absent(self.rows("mie.timer"), {0: 1}, one) + absent(called, {0: 0}, one)
        return as_numbers(called, one) + self._timer(timer)
