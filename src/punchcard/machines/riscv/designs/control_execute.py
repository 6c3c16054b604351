"""Layers A and B of a privileged machine: what they add to those of any other.

A. The whole address, whether an interrupt comes first, whether the instruction is allowed in this mode, and what the control
   register shows.
B. What becomes of the instruction (`course`), why there would be a trap and with what, and what is written to control
   registers and to the CLINT. Layer T does it, and asks for no kind of instruction any more.

An instruction is *sound* where no interrupt comes first, it is in the memory, and it is allowed. An access is *inner* where
its address is aligned and in the memory.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

from punchcard.card.layout import Layout
from punchcard.machines.riscv import csrs, isa
from punchcard.machines.riscv.csrs import CLINT, COUNTERS, CSRS, ROWS
from punchcard.machines.riscv.designs.base import RiscvSizes
from punchcard.machines.riscv.designs.control import (
    CLINT_PARTS,
    COUNTING,
    COURSE,
    DUE,
    WRITABLE,
    WRITES,
    Contents,
    all_contents,
    content_cubes,
    contents_of,
    cubes_of,
    permissions,
)
from punchcard.machines.riscv.designs.execute import BITWISE, Execute, Finish, as_compared
from punchcard.machines.riscv.designs.formulas import BranchFormula, appear
from punchcard.machines.riscv.isa import CSR_AT, FIELDS, WORD_BITS, Instruction
from punchcard.primitives.bits import number
from punchcard.primitives.gated_words import less_where, sum_where
from punchcard.primitives.literals import Cube, absent, as_numbers, bits_where, conjunction, decide, step_where, zero_where
from punchcard.transformer.build import Part
from punchcard.transformer.expression import Expression, stack

DEVICE_BITS = 16
"""Low bits of an address, by which the words of the CLINT differ."""
RS1 = slice(FIELDS["rs1"], FIELDS["rs1"] + 5)


def csr_word(shown: Contents, rows: Callable[[str], Expression], one: Expression) -> Expression:
    """What a control register shows, as ±1 bits."""
    fixed, fields = shown
    bits = [one if fixed >> place & 1 else -one for place in range(WORD_BITS)]
    for field in fields:
        held = rows(field.rows)
        for i in range(field.size):
            bits[field.low + i] = held[0 if field.is_repeated else i]
    return stack(*bits)


def is_plain(instruction: Instruction) -> bool:
    """Whether it is a load or a store of a word, as the CLINT takes them."""
    return instruction.name in ("lw", "sw")


ACCESS_CAUSES = {"load": (csrs.MISALIGNED_LOAD, csrs.LOAD_FAULT), "store": (csrs.MISALIGNED_STORE, csrs.STORE_FAULT)}
"""Why an access is refused: it is misaligned, or nothing is there."""


def _trap_sort(instruction: Instruction) -> str:
    """Why an instruction that is allowed may trap, but for jumps, whose cause is 0."""
    if instruction.access_bytes:
        return "store" if instruction.writes_memory else "load"
    return instruction.name if instruction.name in ("ecall", "ebreak") else "none"


class ControlExecute(Execute):
    """The formulas of layer A."""

    @property
    def part(self) -> Part:
        one = self.one
        rolls = [conjunction(absent(self.rows(low), dict.fromkeys(range(WORD_BITS), 1), one), one) for low in COUNTING]
        return (super().part + appear(self.rows("contents"), self._contents(), one)
                + appear(self.rows(*(f"{name}_rolls" for name in COUNTING)), stack(*rolls), one))

    def _address(self) -> Part:
        """The whole address: a sum of 32 bits fits a float64."""
        open_ = 0.0 * self.one
        return appear(self.rows("reference"), sum_where(self.x, self.immediate, open_, open_, self.one), self.one)

    def _flags(self) -> dict[str, Expression]:
        one = self.one
        silent = absent(self.rows("port.ready", "port.refused"), {0: 0, 1: 0}, one)
        free = absent(self.rows("awake", "event.wait"), {0: 1, 1: 0}, one) + silent
        enabled = [absent(self.rows("mode", "mstatus.mie"), cube, one) for cube in ({0: csrs.USER}, {0: csrs.MACHINE, 1: 1})]
        interrupt = sum((conjunction(free + each, one) for each in enabled), 0.0 * one)
        return {**super()._flags(), "quiet": one - interrupt, "silent": conjunction(silent, one)}

    def _permitted(self, instruction: Instruction, missing: Expression) -> list[Expression]:
        one, mode = self.one, self.rows("mode")
        if instruction.name == "mret":
            return [missing + absent(mode, {0: csrs.MACHINE}, one)]
        if not instruction.uses_csr:
            return [missing]
        reads = absent(self.word[RS1], dict.fromkeys(range(5), 0), one)
        found = []
        for one_mode, reads_only, numbers in permissions():
            if not reads_only or may_only_read(instruction):
                here = missing + absent(mode, {0: one_mode}, one) + (reads if reads_only else 0.0 * one)
                found += [here + absent(self.word[CSR_AT:], cube, one) for cube in numbers]
        return found

    def _contents(self) -> Expression:
        """What the control register shows, by number."""
        def count(cubes: Sequence[Cube]) -> Expression:
            return sum((conjunction(closed + absent(self.word[CSR_AT:], cube, self.one), self.one)
                        for closed in self.open_for(lambda i: i.uses_csr) for cube in cubes), 0.0 * self.one)

        return stack(*map(count, content_cubes(self.sizes.multiply)))


def may_only_read(instruction: Instruction) -> bool:
    """Whether a csr instruction only reads where its register or immediate is x0 or 0."""
    return (instruction.funct3 or 0) & 3 != 1


class ControlFinish(Finish):
    """The formulas of layer B."""

    def __init__(self, sizes: RiscvSizes, layout: Layout) -> None:
        super().__init__(sizes, layout)
        self.whole, self.port = self.rows("reference"), self.rows("port.word")
        self.sound = absent(self.rows("flag.quiet", "flag.lawful", "astray"), {0: 1, 1: 1, 2: 0}, self.one)
        self.inner = absent(self.rows("flag.reached", "flag.aligned"), {0: 1, 1: 1}, self.one)
        self.ready, self.waiting, self.refused = (
            absent(self.rows("port.ready", "port.refused"), cube, self.one) for cube in ({0: 1}, {0: 0}, {0: 0, 1: 1}))
        self.silent = absent(self.rows("flag.silent"), {0: 1}, self.one)
        self.shown = all_contents(sizes.multiply)

    @property
    def part(self) -> Part:
        one, course, writes = self.one, self._course(), self._all_writes()
        return (
            self._results
            + appear(self.rows("course"), stack(*(course[name] for name in COURSE)), one)
            + appear(self.rows("cause"), self._cause(), one)
            + appear(self.rows("detail"), self._detail(), one)
            + appear(self.rows("new"), self._new(), one)
            + appear(self.rows("writes"), stack(*(writes[name] for name in WRITES)), one)
            + appear(self.rows("stops"), stack(*self._stops()), one)
            + appear(self.rows("due"), self._due(), one)
        )

    def _count(self, is_wanted: Callable[[Instruction], bool], *missing: Expression) -> Expression:
        """1 where the instruction is a wanted one and nothing is absent, else 0."""
        more = sum(missing, 0.0 * self.one)
        return sum((conjunction(closed + more, self.one) for closed in self.open_for(is_wanted)), 0.0 * self.one)

    # What becomes of the instruction

    def _course(self) -> dict[str, Expression]:
        count, sound, inner, silent = self._count, self.sound, self.inner, self.silent

        def accesses(i: Instruction) -> bool:
            return i.access_bytes > 0

        def two(i: Instruction) -> bool:
            return i.has_two_results

        def tries(i: Instruction) -> bool:
            return i.name == "sc.w"

        def loads(i: Instruction) -> bool:
            return i.reads_memory

        return {
            "odd": self._odd(),
            "trap": self._trap(),
            "asks": count(accesses, sound, silent) - count(accesses, sound, silent, inner),
            "known": sum((count(is_plain, self._is_at(address)) for address in CLINT), 0.0 * self.one),
            "answered": (count(loads, sound, self.ready) - count(loads, sound, self.ready, inner)
                         + count(two, sound, self.ready)),
            "begins": count(two, sound, inner, self.waiting),
            "tries": count(tries),
            "lost": self._lost(),
            "returns": count(lambda i: i.name == "mret", sound),
            "reserves": count(lambda i: i.format == "reserve", sound, inner),
            "releases": count(lambda i: i.writes_memory or i.name == "mret"),
        }

    def _lost(self) -> Expression:
        """1 where a store or sc.w has no result. A word that is not an instruction is one of them at most."""
        def sort(instruction: Instruction) -> str:
            return "store" if instruction.opcode == isa.STORE else instruction.name if instruction.name == "sc.w" else "none"

        found = 0.0 * self.one
        for name, closed in self.gates(sort):
            if name == "store":
                found = found + conjunction(closed, self.one) - conjunction(closed + self.inner, self.one)
            elif name == "sc.w":
                found = (found + conjunction(closed + self.waiting, self.one)
                         - self._is_reserved(closed + self.inner + self.waiting))
        return found

    def _odd(self) -> Expression:
        """0 where the instruction is done in this loop and changes a register, the memory and the program counter alone."""
        def sort(instruction: Instruction) -> str:
            if instruction.privileged or instruction.format == "system":
                return "odd"
            if instruction.access_bytes:
                return "store" if instruction.writes_memory else "load"
            return "jump" if instruction.opcode in (isa.JAL, isa.JALR) else "plain"

        plain = self.sound + self.silent
        free = absent(self.rows("reservation.valid"), {0: 0}, self.one)
        needed = {"plain": plain, "jump": plain + absent(self.rows("flag.aligned"), {0: 1}, self.one),
                  "load": plain + self.inner, "store": plain + self.inner + free}
        usual = self.total(sort, lambda name, closed: (
            conjunction(closed + needed[name], self.one) if name in needed else None))
        return self.one - usual + self._misses(self._way, plain)

    def _trap(self) -> Expression:
        """1 where nothing of the instruction is done."""
        one, sound = self.one, self.sound
        turned = 0.5 * (one + self.rows("flag.aligned"))
        trap = one - conjunction(sound, one) + self._count(lambda i: i.name in ("ecall", "ebreak"), sound)
        trap = trap + self._count(lambda i: i.opcode in (isa.JAL, isa.JALR), sound, turned) + self._misses(self._way, sound)
        refused = [self._count(lambda i: i.access_bytes > 0, sound, self.refused, *more) for more in ((), (self.inner,))]
        return trap + refused[0] - refused[1]

    def _is_at(self, address: int) -> Expression:
        """What is absent for the address to be this one."""
        return absent(self.whole, {place: address >> place & 1 for place in range(WORD_BITS)}, self.one)

    def _is_reserved(self, closed: Expression) -> Expression:
        """1 where the word at the address is reserved and nothing is absent."""
        one, size = self.one, ROWS["reservation.address"]
        valid = absent(self.rows("reservation.valid"), {0: 1}, one)
        apart = number(self.whole[2:], one) - number(self.rows("reservation.address"), one)
        return zero_where(apart, closed + valid, one, 1 << size)

    # Why there would be a trap of the instruction's own, and with what

    def _cause(self) -> Expression:
        """The bits of the cause. A word that is not an instruction has one at most, whatever its kind."""
        one = self.one
        causes = dict.fromkeys(csrs.CAUSES, 0.0 * one)

        def add(cause: int, *missing: Expression) -> None:
            causes[cause] = causes[cause] + conjunction(sum(missing, 0.0 * one), one)

        for sort, closed in self.gates(_trap_sort):
            if sort == "ebreak":
                add(csrs.BREAKPOINT, closed)
            elif sort == "ecall":
                for mode, cause in ((csrs.USER, csrs.USER_CALL), (csrs.MACHINE, csrs.MACHINE_CALL)):
                    add(cause, closed, absent(self.rows("mode"), {0: mode}, one))
            elif sort in ACCESS_CAUSES:
                for is_aligned, cause in enumerate(ACCESS_CAUSES[sort]):
                    add(cause, closed, absent(self.rows("flag.aligned"), {0: is_aligned}, one))
        return stack(*(sum((found for cause, found in causes.items() if cause >> place & 1), 0.0 * one)
                       for place in range(ROWS["mcause.code"])))

    def _detail(self) -> Expression:
        """What mtval becomes: the program counter, where a jump leads, or the address of an access."""
        def sort(instruction: Instruction) -> str | None:
            way = self._way(instruction)
            if instruction.name == "ebreak" or instruction.access_bytes or way == "register jump":
                return "ebreak" if instruction.name == "ebreak" else "access" if instruction.access_bytes else str(way)
            return "jump" if way == "jump" or isinstance(way, BranchFormula) else "none"

        def word(name: str, closed: Expression) -> Expression | None:
            if name == "register jump":
                return self._reference(closed)
            sources = {"ebreak": self.counter, "access": self.whole, "jump": self.target}
            return bits_where(sources[name], closed, self.one) if name in sources else None

        return self.total(sort, word)

    # What is written to control registers and to the CLINT

    def _new(self) -> Expression:
        """csrrw writes a word, csrrs sets its bits, csrrc clears them; a store of a word writes what it stores.

        Of an instruction amo it is the word of the memory, which the port keeps.
        """
        def sort(instruction: Instruction) -> str:
            if instruction.name in isa.AMOS:
                return "amo"
            return instruction.name if instruction.uses_csr or instruction.name == "sw" else "none"

        def word(name: str, closed: Expression) -> Expression | None:
            if name in ("none", "sw", "amo"):
                sources = {"sw": self.y, "amo": self.rows("brought")}
                return bits_where(sources[name], closed, self.one) if name in sources else None
            given = self.immediate if name.endswith("i") else self.x
            new = 0.0 * given if name.startswith("csrrc") else bits_where(given, closed, self.one)
            if name.startswith("csrrw"):
                return new
            writable = [contents_of(csr, self.sizes.multiply) for csr in CSRS if csr.writable]
            return new + self._shown(closed + as_numbers(given, self.one), writable)

        return self.total(sort, word)

    def _shown(self, closed: Expression, contents: Sequence[Contents]) -> Expression:
        """What the control register shows, 0 or 1, where it is one of these and nothing is absent."""
        one, numbered = self.one, self.rows("contents")
        total = 0.0 * stack(*[one] * WORD_BITS)
        for shown in dict.fromkeys(contents):
            code = self.shown.index(shown)
            if code:
                here = closed + absent(numbered, {j: code >> j & 1 for j in range(numbered.size)}, one)
                total = total + bits_where(csr_word(shown, self.rows, one), here, one)
        return total

    def _writes(self, csr_numbers: Iterable[int], addresses: Iterable[int]) -> Expression:
        """1 where one of these control registers is written, or one of these words of the CLINT."""
        one, found = self.one, 0.0 * self.one
        zero = absent(self.word[RS1], dict.fromkeys(range(5), 0), one)
        for cube in cubes_of(frozenset(csr_numbers)):
            named = self.sound + absent(self.word[CSR_AT:], cube, one)
            found = (found + self._count(lambda i: i.uses_csr, named)
                     - self._count(lambda i: i.uses_csr and may_only_read(i), named, zero))
        outside = absent(self.rows("flag.reached"), {0: 0}, one)
        for cube in cubes_of(frozenset(addresses), WORD_BITS):
            place = absent(self.whole, cube, one)
            found = found + self._count(lambda i: i.name == "sw", self.sound, self.silent, outside, place)
        return found

    def _all_writes(self) -> dict[str, Expression]:
        """What is written, by name."""
        return ({name: self._writes((csr.number for csr in registers), ()) for name, registers in WRITABLE.items()}
                | {name: self._writes((), (address,)) for address, name in CLINT_PARTS.items()})

    def _stops(self) -> Iterator[Expression]:
        """For each counter, whether a half of it is written."""
        for pair in COUNTERS:
            yield self._writes((csr.number for name in pair for csr in WRITABLE.get(name, ())),
                               (address for address, name in CLINT_PARTS.items() if name in pair))

    def _due(self) -> Expression:
        """1 where the low half of mtime, one more, is not below that of mtimecmp: now, and with a word that is stored.

        At its end the low half becomes 0. Where mtimeh is stored, it stays.
        """
        one, size, time, limit = self.one, 1 << WORD_BITS, self.rows("mtime"), self.rows("mtimecmp")

        def reaches(other: Expression, closed: Expression) -> Expression:
            rolls = [closed + absent(self.rows("mtime_rolls"), {0: bit}, one) for bit in (0, 1)]
            zero = absent(other, dict.fromkeys(range(WORD_BITS), 0), one)
            return (step_where(number(time, one) + one - number(other, one), rolls[0], one, size)
                    + conjunction(rolls[1] + zero, one))

        found = dict.fromkeys(DUE, 0.0 * one) | {"now": reaches(limit, 0.0 * one)}
        for closed in self.open_for(lambda i: i.name == "sw"):
            for name, first in (("mtime", self.y), ("mtimeh", time)):
                found[name] = found[name] + step_where(number(first, one) - number(limit, one), closed, one, size)
            found["mtimecmp"] = found["mtimecmp"] + reaches(self.y, closed)
        return stack(*(found[name] for name in DUE))

    # The result, where it goes, and the next program counter

    def _result_sort(self, instruction: Instruction) -> str | None:
        if instruction.uses_csr:
            return "control"
        return "lw" if instruction.format == "reserve" else super()._result_sort(instruction)

    def _result_of(self, name: str, closed: Expression) -> Expression:
        one, brought = self.one, self.rows("brought")
        if name == "control":
            return self._shown(closed, self.shown)
        if name == "lw":
            return self._loaded(closed)
        if name not in isa.AMOS:
            return super()._result_of(name, closed)
        operation = name.removeprefix("amo").removesuffix(".w")
        if operation == "swap":
            return bits_where(self.y, closed, one)
        if operation == "add":
            return sum_where(brought, self.y, 0.0 * one, closed, one)
        return BITWISE[operation](brought, self.y, closed, one) if operation in BITWISE else self._extreme(operation, closed)

    def _extreme(self, operation: str, closed: Expression) -> Expression:
        """The lesser or the greater of two words: where the first is less one of them, else the other."""
        one, words = self.one, (self.rows("brought"), self.y)
        turned = [as_compared(word, signed=not operation.endswith("u")) for word in words]
        less, other = words if operation.startswith("min") else reversed(words)

        def bits(word: Expression) -> Expression:
            return less_where(turned[0], turned[1], one, closed + one - as_numbers(word, one), one)

        return bits(less) + bits_where(other, closed, one) - bits(other)

    def _loaded(self, closed: Expression) -> Expression:
        """The word at the address, or that of the CLINT: which one, its low bits tell.

        The bit by which the words of the CLINT part first is named for the compiler: then few bits are left for each.
        """
        one, reached, size = self.one, self.rows("flag.reached"), DEVICE_BITS
        classes = decide({tuple(address >> place & 1 for place in range(size)): name for address, name in CLINT.items()})
        first = min(set.intersection(*(set(cube) for cubes in classes.values() for cube in cubes)))
        inside = closed + absent(reached, {0: 1}, one)
        total = sum((bits_where(self.rows("brought"), inside + absent(self.whole, {first: bit}, one), one)
                     for bit in (0, 1)), 0.0 * self.x)
        for name, cubes in classes.items():
            held = self.rows(name)
            for cube in cubes:
                here = closed + absent(reached, {0: 0}, one) + absent(self.whole, cube, one)
                total = total + self._wide(bits_where(held, here, one), 0)
        return total

    def _goals(self) -> Iterator[tuple[str, Expression]]:
        """An atomic instruction stores first, and has its result in the next loop. Layer T sends the lost to the sink."""
        def sort(instruction: Instruction) -> str:
            if instruction.has_two_results:
                return "both"
            return "memory" if instruction.writes_memory else "register" if "rd" in instruction.uses else "nobody"

        for name, closed in self.gates(sort):
            if name == "both":
                yield "register", closed + self.ready
                yield "memory", closed + self.waiting
            else:
                yield name, closed

    def _way(self, instruction: Instruction) -> BranchFormula | str:
        return instruction.name if instruction.name in ("mret", "wfi") else super()._way(instruction)

    def _goes_on(self, way: Hashable, closed: Expression) -> Expression:
        one = self.one
        if way == "mret":
            return stack(*[0.0 * one] * 2, bits_where(self.rows("mepc"), closed, one))
        if way == "wfi":
            awake = [absent(self.rows("awake"), {0: bit}, one) for bit in (1, 0)]
            return bits_where(self.following, closed + awake[0], one) + bits_where(self.counter, closed + awake[1], one)
        return super()._goes_on(way, closed)

    def _reference(self, closed: Expression) -> Expression:
        return stack(0.0 * self.one, bits_where(self.whole[1:], closed, self.one))
