"""What a loop of a privileged machine does to a card, in the stages of its proof: by the tables, and not by the layers.

The tables are `isa`, `csrs` and `traps`. All decisions are by the rows with which the loop begins. What an instruction would
do is an `Effect`; that a trap comes first, that time counts, and that an answer of the port lasts one loop is written once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

from punchcard.card.facts import ColumnWords, Fact
from punchcard.card.layout import Layout
from punchcard.machines.meaning import Meaning
from punchcard.machines.riscv import csrs, isa, traps
from punchcard.machines.riscv.csrs import CLINT, COUNTERS, CSRS, ROWS
from punchcard.machines.riscv.designs import layout as facts
from punchcard.machines.riscv.designs.base import RiscvSizes
from punchcard.machines.riscv.isa import CSR_AT, WORD_BITS, WORD_BYTES, Instruction
from punchcard.machines.riscv.numbers import ELSE
from punchcard.machines.riscv.semantics import Operands
from punchcard.machines.riscv.stages import (
    RiscvLoop,
    ThreeLayerStages,
    TwoLayerStages,
    hint_numbers,
    instruction_cases,
    leave,
    middle,
    misaligned,
    register,
)
from punchcard.words.word import FALSE, TRUE, Word, any_of, constant, join

ZERO = constant(0, WORD_BITS)
AFTERWARDS = ("mip.timer",)
"""Rows that follow from the others once those are as they will be."""

A, B = 1, 2
"""How many layers are done after layer A, and after layer B."""


@dataclass(frozen=True)
class Trap:
    """Where an instruction traps, why, and what mtval becomes."""

    where: Word
    cause: Word
    value: Word = ZERO


@dataclass(frozen=True)
class Effect:
    """What an instruction does where no trap is taken.

    traps    those of the instruction itself, the first that holds counts
    next     the next program counter
    goal     where a result goes, or it is `lost`
    writes   rows that become others where a condition holds; of two that hold the later counts
    asks     whether the host must serve an access
    """

    next: Word
    goal: Word
    lost: Word = TRUE
    result: Word = ZERO
    traps: tuple[Trap, ...] = ()
    writes: tuple[tuple[Word, Mapping[str, Word]], ...] = ()
    asks: Word = FALSE


@dataclass(frozen=True)
class Outcome:
    """What a loop comes to, before the next instruction is fetched: `rows` are those of `csrs.ROWS` but for `AFTERWARDS`."""

    next: Word
    goal: Word
    lost: Word
    value: Word
    asks: Word
    rows: Mapping[str, Word] = field(default_factory=dict)

    def unless(self, where: Word, other: Outcome) -> Outcome:
        """The other one where a condition holds."""
        return Outcome(
            where.choose(other.next, self.next), where.choose(other.goal, self.goal), where.choose(other.lost, self.lost),
            where.choose(other.value, self.value), where.choose(other.asks, self.asks),
            {name: where.choose(other.rows[name], word) for name, word in self.rows.items()})


class PrivilegedLoop(RiscvLoop):
    """A loop of a privileged machine."""

    def rows(self, name: str) -> Word:
        """Rows of the machine's own state when the loop begins."""
        return self.card.only("scratchpad")[name]

    def _named(self, layers: int, rows: str, word: Word) -> Word:
        """A word, by a name for what rows of the scratchpad should hold after so many layers: a hint."""
        return self.card.lemma(layers, rows, "scratchpad", word)

    @property
    def following(self) -> Word:
        return self.counter + WORD_BYTES

    @property
    def _answered(self) -> Word:
        return self.rows("port.ready") | self.rows("port.refused")

    def outcome(self, one: Instruction | None) -> Outcome:
        """What becomes of an instruction, or of a word that is none."""
        rows, astray = self.rows, ~facts.is_within(self.sizes, self.counter)
        comes = traps.is_interrupted(rows) & ~self._answered
        if one is not None and one.name == "wfi":
            comes &= astray
        comes = ~self._named(A, "flag.quiet", ~comes)
        effect = self._effect(one)
        taken = (Trap(comes, traps.interrupt(rows)), Trap(astray, constant(csrs.FETCH_FAULT, WORD_BITS), self.counter),
                 *effect.traps)
        trap = self._named(B, "course.trap", any_of(*(each.where for each in taken)))
        cause, value = ZERO, ZERO
        for each in reversed(taken):
            cause, value = each.where.choose(each.cause, cause), each.where.choose(each.value, value)
        handler = traps.entry(rows, self.counter, cause, value)
        writes = [(where & ~trap, words) for where, words in effect.writes]
        found = self._begun(writes)
        for where, words in writes:
            found |= {name: where.choose(word, found[name]) for name, word in words.items()}
        found |= {name: trap.choose(word, found[name]) for name, word in handler.items()}
        lost = trap | effect.lost
        return Outcome(trap.choose(traps.address(rows, "mtvec"), effect.next), lost.choose(self.nowhere, effect.goal), lost,
                       effect.result, effect.asks & ~trap, found)

    def _begun(self, writes: Sequence[tuple[Word, Mapping[str, Word]]]) -> dict[str, Word]:
        """The rows before anything is written: time counts, unless a half of it is written; the port's answer has passed."""
        found = {name: self.rows(name) for name in ROWS if name not in AFTERWARDS}
        for pair in COUNTERS:
            stops = any_of(FALSE, *(where for where, words in writes if not words.keys().isdisjoint(pair)))
            found |= {name: stops.choose(found[name], word) for name, word in traps.counted(self.rows, *pair).items()}
        return found | {"port.ready": FALSE, "port.refused": FALSE}

    # What an instruction does

    def _effect(self, one: Instruction | None) -> Effect:
        nothing = Effect(self.following, self.nowhere)
        if one is None:
            return replace(nothing, traps=(self._illegal(TRUE),))
        if one.uses_csr:
            return self._control(one)
        if one.format == "system":
            return self._system(one.name, nothing)
        given = self.operands(one)
        if one.access_bytes:
            return self._access(one, given)
        found = one.semantics(given)
        goal, lost = self.goes(one, given.address, FALSE)
        wrong = Trap(found.taken & misaligned(found.target, WORD_BYTES), constant(csrs.MISALIGNED_FETCH, WORD_BITS),
                     found.target)
        following = self._named(B, "next", found.next(given.counter))
        return Effect(following, goal, lost, ZERO if found.result is None else found.result, (wrong,))

    def _illegal(self, where: Word) -> Trap:
        return Trap(where, constant(csrs.ILLEGAL, WORD_BITS), self.word)

    def _system(self, name: str, nothing: Effect) -> Effect:
        mode = self.rows("mode")
        if name == "ecall":
            cause = mode.choose(constant(csrs.MACHINE_CALL, WORD_BITS), csrs.USER_CALL)
            return replace(nothing, traps=(Trap(TRUE, cause),))
        if name == "ebreak":
            return replace(nothing, traps=(Trap(TRUE, constant(csrs.BREAKPOINT, WORD_BITS), self.counter),))
        if name == "wfi":
            return replace(nothing, next=traps.is_awake(self.rows).choose(self.following, self.counter))
        return replace(nothing, next=traps.address(self.rows, "mepc"), traps=(self._illegal(~mode),),
                       writes=((TRUE, traps.exit(self.rows)),))

    def _control(self, one: Instruction) -> Effect:
        """A csr instruction: which register it is, the word says."""
        number, given = self.word[CSR_AT:], self.operands(one)
        replaces = (one.funct3 or 0) & 3 == 1
        writes = TRUE if replaces else register(self.word, "rs1").differs(0)
        lawful, old = FALSE, ZERO
        for csr in CSRS:
            here = number.equals(csr.number)
            lawful |= here & (TRUE if csr.user else self.rows("mode")) & (~writes if csr.read_only else TRUE)
            shown = csr.read(self.rows, constant(csrs.fixed_bits(csr, self.sizes.multiply), WORD_BITS))
            old = old if shown.value == 0 else here.choose(shown, old)
        found = one.semantics(replace(given, loaded=old))
        assert found.update is not None
        lawful = self._named(A, "flag.lawful", lawful)
        changes = [(number.equals(csr.number) & writes, csr.written(found.update)) for csr in CSRS if csr.writable]
        goal, lost = self.goes(one, given.address, FALSE)
        return Effect(self.following, goal, lost, old, (self._illegal(~lawful),), tuple(changes))

    def _access(self, one: Instruction, given: Operands) -> Effect:
        """A load, a store or an atomic instruction: in the memory, by the port, in the CLINT, or the host is asked."""
        address = self._named(A, "reference", given.address)
        given, rows, two = replace(given, address=address), self.rows, one.has_two_results
        wrong = ~self._named(A, "flag.aligned", ~misaligned(address, one.access_bytes))
        ready, refused = rows("port.ready"), rows("port.refused")
        inner = ~wrong & self._named(A, "flag.reached", facts.is_within(self.sizes, address))
        by_port = ready if two else ready & ~inner
        here = inner & ~ready if two else inner
        away = ~inner & ~ready
        device = {name: away & ~refused & address.equals(at) for at, name in CLINT.items() if one.name in ("lw", "sw")}
        known = any_of(FALSE, *device.values())
        asks = away & ~refused & ~known
        causes = (csrs.MISALIGNED_LOAD, csrs.LOAD_FAULT)
        if one.writes_memory:
            causes = (csrs.MISALIGNED_STORE, csrs.STORE_FAULT)
        trap = Trap(away & refused, wrong.choose(constant(causes[0], WORD_BITS), causes[1]), address)
        found = one.semantics(given)
        assert found.result is not None
        writes: list[tuple[Word, Mapping[str, Word]]] = []
        if one.writes_memory:
            writes.append((here | by_port | known, {"reservation.valid": FALSE}))
        if one.format == "reserve":
            writes.append((here, {"reservation.valid": TRUE, "reservation.address": address[2:]}))
        in_memory, in_register = join(self.position(address), FALSE), self.goes(_LOAD, address, FALSE)
        if two:
            assert found.update is not None
            tries = one.name == "sc.w"
            reserved = rows("reservation.valid") & address[2:].equals(rows("reservation.address")) if tries else TRUE
            kept = reserved.choose(found.result, 1)
            writes.append((here, {"port.word": kept, "port.ready": TRUE}))
            return Effect((here | asks).choose(self.counter, self.following), here.choose(in_memory, in_register[0]),
                          here.choose(~reserved, asks | in_register[1]), here.choose(found.update, rows("port.word")),
                          (trap,), tuple(writes), asks)
        following = asks.choose(self.counter, self.following)
        if one.writes_memory:
            writes += [(where, {name: given.y[: ROWS[name]]}) for name, where in device.items()]
            return Effect(following, in_memory, ~here, found.result, (trap,), tuple(writes), asks)
        result = here.choose(found.result, rows("port.word"))
        for name, where in device.items():
            result = where.choose(rows(name).extend(WORD_BITS), result)
        return Effect(following, in_register[0], asks | in_register[1], result, (trap,), tuple(writes), asks)

    # The next instruction

    def fetch_next(self, goal: Word, value: Word, following: Word, rows: Mapping[str, Word]) -> None:
        """The result is stored, the next instruction fetched; and the rows that follow from others."""
        card, word, inside = self.card, self.stored(goal, value, following), facts.is_within(self.sizes, following)
        due = traps.is_due(rows.__getitem__)
        for name, found in {
            "word": word, "counter": following, "astray": ~inside, "mip.timer": due,
            "event.wait": word.equals(isa.BY_NAME["wfi"].match) & inside,
            "awake": traps.is_awake({**rows, "mip.timer": due}.__getitem__),
        }.items():
            card.expect(name, "scratchpad", found)
        leave(card, "kind", "immediate", "first", "second", "following", "carried")


_LOAD = isa.BY_NAME["lw"]
"""An instruction whose result goes to rd."""


class PrivilegedStages(ThreeLayerStages):
    """Layers A, B and T execute an instruction or take a trap; layer C stores the result, and fetches the next one."""

    def __init__(self, sizes: RiscvSizes, layout: Layout, layers: int) -> None:
        self.sizes, self.layout, self.layers = sizes, layout, layers
        self._cases = instruction_cases(sizes)
        self.passing = tuple(block.name for block in layout.blocks if block.within == "bits" and not block.holds
                             and block.name != "fetched")

        def is_due(column: ColumnWords) -> Word:
            return column["due.now"].equals(column["mtime"].at_least(column["mtimecmp"]))

        def is_called(column: ColumnWords) -> Word:
            return column["called"].equals(column["mie.software"] & column["mip.software"])

        self.middle = middle(layout, sizes, ("fetched",), [
            facts.aligned_fact(), facts.aligned_fact("next"), facts.result_fact(),
            Fact("scratchpad", is_due, "due.now: the low half of mtime is not below that of mtimecmp"),
            Fact("scratchpad", is_called, "called: a software interrupt is pending that mie has")])

    def _execute(self, card: Meaning) -> None:
        leave(card, *self.passing)
        if card.case is None:
            return
        loop = PrivilegedLoop(card, self.sizes)
        hint_numbers(loop, self._cases)
        found = loop.outcome(None if card.case.startswith(ELSE) else isa.BY_NAME[card.case])
        card.expect("next", "scratchpad", found.next)
        card.expect("goal", "scratchpad", found.goal)
        card.expect("value", "scratchpad", found.value, where=~found.lost)
        self._state(card, found)

    def _state(self, card: Meaning, found: Outcome) -> None:
        card.expect("event.bus", "scratchpad", found.asks)
        for name, word in found.rows.items():
            card.expect(name, "scratchpad", word)

    def _fetch(self, card: Meaning) -> None:
        scratchpad = card.only("scratchpad")
        rows = {name: scratchpad[name] for name in ROWS}
        PrivilegedLoop(card, self.sizes).fetch_next(scratchpad["goal"], scratchpad["value"], scratchpad["next"], rows)

    def whole(self, card: Meaning) -> None:
        """Both stages at once, for a card that one can see."""
        loop = PrivilegedLoop(card, self.sizes)

        def chosen(found: Outcome, one: Instruction) -> Outcome:
            here = card.simplified((loop.word & one.mask).equals(one.match))
            return found if here.value == 0 else found.unless(here, loop.outcome(one))

        found = reduce(chosen, self.sizes.decoder.instructions, loop.outcome(None))
        self._state(card, found)
        loop.fetch_next(found.goal, found.value, found.next, found.rows)
        card.only_where("memory", "sink", FALSE)


def stages_of(sizes: RiscvSizes, layout: Layout, lags: bool, layers: int) -> ThreeLayerStages | TwoLayerStages:
    """The stages of a design, in which results lag or not."""
    if sizes.privileged:
        return PrivilegedStages(sizes, layout, layers)
    return TwoLayerStages(sizes, layout) if lags else ThreeLayerStages(sizes, layout, layers)
