"""Layer T of a privileged machine: it does what layer B has found, and needs no head.

A trap sends the program counter to mtvec, the result to the sink, and writes mepc, mcause, mtval, mstatus and the mode, all
at once. An access that the host must serve, and an atomic instruction that has stored, keep the program counter. Then what
is written to control registers and to the CLINT, and time, which counts every loop.

Everything here depends on flags, not on kinds of instructions. The first one is `odd`: without it nothing of this happens,
but that time counts. So a compiler has two versions of what follows layer B, and a usual loop takes the short one. Gates
exclude each other whatever the flags are: each has the literals that close those before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from itertools import product

from punchcard.card.layout import Layout
from punchcard.machines.riscv.csrs import (
    CLINT,
    COUNTERS,
    FETCH_FAULT,
    ILLEGAL,
    MACHINE,
    ROWS,
    SOFTWARE_INTERRUPT,
    TIMER_INTERRUPT,
    USER,
)
from punchcard.machines.riscv.designs.base import SINK, RiscvSizes
from punchcard.machines.riscv.designs.control import CLINT_PARTS, DUE, WRITABLE
from punchcard.machines.riscv.designs.formulas import LayerFormulas, appear, replace_where, rewrite
from punchcard.machines.riscv.isa import WORD_BITS
from punchcard.primitives.gated_words import offset_where
from punchcard.primitives.literals import absent, as_numbers, bits_where, conjunction
from punchcard.transformer.build import Part
from punchcard.transformer.expression import Expression, Rows, stack

Choice = tuple[Expression, Expression]
"""Bits, 0 or 1 where nothing is absent and else 0, and what is absent for them."""


class Traps(LayerFormulas):
    """The formulas of layer T."""

    def __init__(self, sizes: RiscvSizes, layout: Layout) -> None:
        super().__init__(sizes, layout)
        self.new, self.port = self.rows("new"), self.rows("port.word")

    @property
    def part(self) -> Part:
        return self._control + self._time + self._access + replace_where(self.rows("value"), *self.answer, self.one)

    def _where(self, **flags: int) -> Expression:
        """What is absent for flags of the course to be so, and for any of it to happen."""
        return sum((absent(self.rows(f"course.{name}"), {0: value}, self.one)
                    for name, value in {"odd": 1, **flags}.items()), 0.0 * self.one)

    def _choose(self, rows: Rows, *choices: Choice) -> Part:
        """The rows become the bits of the first choice whose gate is open; else they stay."""
        return replace_where(rows, sum((bits for bits, _ in choices), 0.0 * self.one), [closed for _, closed in choices],
                             self.one)

    def _word(self, bits: Expression, closed: Expression) -> Choice:
        return bits_where(bits, closed, self.one), closed

    def _constant(self, value: int, closed: Expression) -> Choice:
        return value * conjunction(closed, self.one), closed

    # Where to continue, and where the result goes

    @property
    def answer(self) -> tuple[Expression, list[Expression]]:
        """The word of the port as the result, 0 or 1, and the gate that lets it through."""
        closed = self._where(answered=1)
        return bits_where(self.port, closed, self.one), [closed]

    @property
    def _access(self) -> Part:
        """The next program counter and the result's place; the port, and the reservation."""
        one, trap = self.one, self._where(trap=1)
        holds = [self._where(trap=0, begins=1), self._where(trap=0, begins=0, asks=1, known=0)]
        handler = stack(*[-one] * 2, self.rows("mtvec"))
        asks = conjunction(self._where(asks=1, known=0), one)
        begins = conjunction(self._where(begins=1), one)
        silent = bits_where(self.rows("port.ready", "port.refused"), absent(self.rows("course.odd"), {0: 0}, one), one)
        return (
            self._choose(self.rows("next"), self._word(handler, trap), *(self._word(self.counter, gate) for gate in holds))
            + self._choose(self.rows("goal"), *(self._sink(gate) for gate in (
                self._where(lost=1), self._where(lost=0, trap=1), self._where(lost=0, trap=0, asks=1, known=0))))
            + rewrite(self.rows("event.bus"), asks)
            + self._choose(self.port, self._word(self.new, self._where(begins=1, tries=0)),
                           self._failure(self._where(begins=1, tries=1)))
            + rewrite(self.rows("port.ready", "port.refused"), stack(begins, 0.0 * one) + silent)
            + self._choose(self.rows("reservation.address"), self._word(self.rows("reference")[2:], self._where(reserves=1)))
            + self._choose(self.rows("reservation.valid"), self._constant(1, self._where(reserves=1)),
                           *(self._constant(0, gate) for gate in (
                               self._where(reserves=0, trap=1), self._where(reserves=0, trap=0, releases=1, asks=0),
                               self._where(reserves=0, trap=0, releases=1, asks=1, known=1))))
        )

    def _sink(self, closed: Expression) -> Choice:
        """The address of the sink."""
        one = self.one
        lost = conjunction(closed, one)
        position = [lost if SINK >> place & 1 else 0.0 * one for place in range(self.sizes.pointer_bits)]
        return stack(*position, lost), closed

    def _failure(self, closed: Expression) -> Choice:
        """1 where sc.w did not store, as a word."""
        lost = absent(self.rows("course.lost"), {0: 1}, self.one)
        return stack(conjunction(closed + lost, self.one), *[0.0 * self.one] * (WORD_BITS - 1)), closed

    # Control registers

    @property
    def _control(self) -> Part:
        """What a trap, mret or an instruction writes."""
        found, trap, back = Part(), self._where(trap=1), self._where(trap=0, returns=1)
        mode, enabled, before = (self.rows(name) for name in ("mode", "mstatus.mie", "mstatus.mpie"))
        entered: Mapping[str, list[Choice]] = {
            "mode": [self._constant(MACHINE, trap), self._word(self.rows("mstatus.mpp"), back)],
            "mstatus.mie": [self._constant(0, trap), self._word(before, back)],
            "mstatus.mpie": [self._word(enabled, trap), self._constant(1, back)],
            "mstatus.mpp": [self._word(mode, trap), self._constant(USER, back)],
            "mepc": [self._word(self.counter[2:], trap)],
            "mcause.interrupt": [(conjunction(self._comes(trap), self.one), trap)],
        }
        neither = [self._where(), self._where(trap=0), self._where(trap=0, returns=0)]
        others = {"mcause.code", "mtval", *(rows for pair in COUNTERS for rows in pair)}
        for rows in dict.fromkeys([*entered, *(rows for rows in self._writers if rows not in others)]):
            choices = entered.get(rows, [])
            more = [self._written(rows, neither[len(choices)])] if rows in self._writers else []
            found = found + self._choose(self.rows(rows), *choices, *more)
        return (found + appear(self.rows("called"), self._called(), self.one)
                + self._reason("mcause.code", self._cause(trap)) + self._reason("mtval", self._detail(trap)))

    # Why a trap is taken, and with what: an interrupt, a fetch, a word that is not allowed, or the instruction's own

    def _reason(self, rows: str, bits: Expression) -> Part:
        """Rows become these bits in a trap, else what an instruction writes, else they stay.

        Each case names the flag of a trap, so that a compiler sees few bits in each.
        """
        one, usual = self.one, absent(self.rows("course.odd"), {0: 0}, self.one)
        written, _ = self._written(rows, self._where(trap=0))
        stays = self._where(trap=0) + absent(self.rows(f"writes.{self._writers[rows][0]}"), {0: 0}, one)
        return rewrite(self.rows(rows), bits + written + bits_where(self.rows(rows), usual, one)
                       + bits_where(self.rows(rows), stays, one))

    def _comes(self, closed: Expression) -> Expression:
        return closed + absent(self.rows("flag.quiet"), {0: 0}, self.one)

    def _strays(self, closed: Expression) -> Expression:
        return closed + absent(self.rows("flag.quiet", "astray"), {0: 1, 1: 1}, self.one)

    def _forbidden(self, closed: Expression, lawful: int = 0) -> Expression:
        return closed + absent(self.rows("flag.quiet", "astray", "flag.lawful"), {0: 1, 1: 0, 2: lawful}, self.one)

    def _cause(self, closed: Expression) -> Expression:
        """The bits of the cause, where nothing is absent."""
        one, own = self.one, self._forbidden(closed, lawful=1)
        software = absent(self.rows("mie.software", "mip.software"), {0: 1, 1: 1}, one)
        interrupt, by_software = (conjunction(self._comes(each), one) for each in (closed, closed + software))
        causes = {SOFTWARE_INTERRUPT: by_software, TIMER_INTERRUPT: interrupt - by_software,
                  FETCH_FAULT: conjunction(self._strays(closed), one), ILLEGAL: conjunction(self._forbidden(closed), one)}
        bits = [sum((found for cause, found in causes.items() if cause >> place & 1), 0.0 * one)
                for place in range(ROWS["mcause.code"])]
        return stack(*bits) + bits_where(self.rows("cause"), own, one)

    def _detail(self, closed: Expression) -> Expression:
        """The bits of mtval, where nothing is absent."""
        return (bits_where(self.counter, self._strays(closed), self.one)
                + bits_where(self.word, self._forbidden(closed), self.one)
                + bits_where(self.rows("detail"), self._forbidden(closed, lawful=1), self.one))

    def _called(self) -> Expression:
        """1 where a software interrupt is pending that mie has, as both will be."""
        one, names = self.one, ("mie.software", "mip.software")
        usual = absent(self.rows("course.odd"), {0: 0}, one)
        total = conjunction(usual + absent(self.rows(*names), {0: 1, 1: 1}, one), one)
        for setting in product((0, 1), repeat=2):
            held = [self.rows(rows) if not value else self.new[self._writers[rows][1]]
                    for rows, value in zip(names, setting, strict=True)]
            closed = absent(self.rows("writes.mie", "writes.software"), dict(enumerate(setting)), one)
            total = total + conjunction(self._where() + closed + absent(stack(*held), {0: 1, 1: 1}, one), one)
        return total

    @cached_property
    def _writers(self) -> dict[str, tuple[str, int, int]]:
        """Rows that an instruction may write: the flag that says so, and which bits of `new` they become."""
        found = {field.rows: (name, field.low, field.size) for name, (csr, *_) in WRITABLE.items() for field in csr.fields}
        return found | {rows: (CLINT_PARTS[address], 0, ROWS[rows]) for address, rows in CLINT.items()}

    def _written(self, rows: str, missing: Expression) -> Choice:
        """What an instruction writes to rows, where it does and nothing is absent."""
        part, low, size = self._writers[rows]
        closed, bits = missing + absent(self.rows(f"writes.{part}"), {0: 1}, self.one), self.new[low : low + size]
        if size == ROWS[rows]:
            return self._word(bits, closed)
        return conjunction(closed + absent(bits, dict.fromkeys(range(size), 1), self.one), self.one), closed

    # Time

    @property
    def _time(self) -> Part:
        """Counters count, unless one of their halves is written."""
        one, found, usual = self.one, Part(), absent(self.rows("course.odd"), {0: 0}, self.one)
        for low, high in COUNTERS:
            rolls = as_numbers(self.rows(f"{low}_rolls"), one)
            stops = self.rows(f"stops.{low}")
            for rows, more in ((low, one), (high, rolls)):
                writes = stack(stops, self.rows(f"writes.{self._writers[rows][0]}"))
                new, old = (self._where() + absent(writes, {0: 1, 1: bit}, one) for bit in (1, 0))
                bits = bits_where(self.new, new, one) + bits_where(self.rows(rows), old, one)
                for closed in (usual, self._where() + absent(stops, {0: 0}, one)):
                    bits = bits + offset_where(self.rows(rows), more, 0, 1, closed, one)
                found = found + rewrite(self.rows(rows), bits)
        stored = self.rows(*(f"writes.{name}" for name in DUE[1:]))
        due = [(self.rows(f"due.{name}"), self._where() + absent(stored, {**dict.fromkeys(range(i), 0), i: 1}, one))
               for i, name in enumerate(DUE[1:])]
        return found + self._choose(self.rows("due.now"), *(self._word(*each) for each in due))
