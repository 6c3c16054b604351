"""What a RISC-V loop does to a card, by the table of instructions and not by the layers, in the stages of its proof.

An instruction is executed, case by case, and the next one is fetched and decoded. All of it is words of 32 bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from punchcard.card.facts import ColumnWords, Fact
from punchcard.card.layout import Layout, RowBlock, holding
from punchcard.machines.meaning import Case, Meaning, Stage
from punchcard.machines.riscv import isa
from punchcard.machines.riscv.designs import layout as facts
from punchcard.machines.riscv.designs.base import PENDING, SINK, RiscvSizes
from punchcard.machines.riscv.designs.decode import source_of
from punchcard.machines.riscv.isa import FIELDS, IMMEDIATES, UNSIGNED, WORD_BITS, WORD_BYTES, Format, Instruction
from punchcard.machines.riscv.numbers import ELSE, alike, tell_numbers
from punchcard.machines.riscv.semantics import Operands
from punchcard.words.word import FALSE, TRUE, Word, any_of, constant, join

Pending: TypeAlias = tuple[Word, Word] | None
"""A word that is not stored yet: its address, and what it is."""
GOOD = ("lawful", "aligned", "reached")
"""The flags of an instruction that is not refused."""


def instruction_cases(sizes: RiscvSizes) -> tuple[Case, ...]:
    """A case for each instruction, by its fixed bits, and one for words that are none."""
    known = [Case(one.name, "scratchpad", "word", one.mask, one.match) for one in sizes.decoder.instructions]
    known += alike(sizes) if sizes.multiply else []
    return (*known, Case(ELSE, "scratchpad", "word", 0, 0, tuple((case.mask, case.match) for case in known)))


def middle(layout: Layout, sizes: RiscvSizes, empty: Sequence[str], more: Sequence[Fact]) -> Layout:
    """A layout in the middle of a loop: rows of bits that are passing hold them in the scratchpad, but for the `empty`."""
    def passing(block: RowBlock) -> RowBlock:
        holds = holding("bits", "scratchpad") if block.within == "bits" and block.name not in empty else block.holds
        return replace(block, holds=holds)

    return Layout([passing(block) for block in layout.blocks], layout.regions, [*facts.address_facts(sizes), *more])


class ThreeLayerStages:
    """Layers A and B execute an instruction; layer C stores its result, and fetches and decodes the next one.

    With the M extension its layers are between B and C.
    """

    def __init__(self, sizes: RiscvSizes, layout: Layout, layers: int) -> None:
        self.sizes, self.layout, self.layers = sizes, layout, layers
        self._cases = instruction_cases(sizes)
        self.middle = middle(layout, sizes, ("fetched",), [
            facts.aligned_fact(), facts.aligned_fact("next", facts.is_fault), facts.result_fact(), facts.lost_fact("goal")])

    @property
    def stages(self) -> tuple[Stage, ...]:
        last = self.layers - 1
        return (Stage("execute", (0, last), self.layout, self.middle, self._execute, self._cases),
                Stage("fetch", (last, self.layers), self.middle, self.layout, self._fetch))

    def _execute(self, card: Meaning) -> None:
        leave_passing(card, self.middle)
        if card.case is None:
            return
        if card.case.startswith(ELSE):
            card.expect("event.fault", "scratchpad", TRUE)
            hint_numbers(RiscvLoop(card, self.sizes), self._cases)
            return
        loop, one = RiscvLoop(card, self.sizes), isa.BY_NAME[card.case]
        given = loop.operands(one)
        hint_numbers(loop, self._cases)
        found = loop.execute(one, given)
        card.expect("event.fault", "scratchpad", found.refused)
        card.expect("next", "scratchpad", found.next, where=~found.refused)
        card.expect("goal", "scratchpad", found.goal)
        if found.result is not None:
            card.expect("value", "scratchpad", found.result, where=~found.lost)

    def _fetch(self, card: Meaning) -> None:
        scratchpad = card.only("scratchpad")
        self._fetched(card, *(scratchpad[rows] for rows in ("goal", "value", "next", "event.fault")))

    def _fetched(self, card: Meaning, goal: Word, value: Word, following: Word, fault: Word) -> None:
        RiscvLoop(card, self.sizes).fetch(goal, value, following, fault)
        leave(card, "kind", "immediate", "first", "second", "following", "carried")

    def whole(self, card: Meaning) -> None:
        """Both stages at once, for a card that one can see."""
        done = RiscvLoop(card, self.sizes).execute_any()
        self._fetched(card, done.goal, done.value, done.next, done.refused)
        card.expect("event.fault", "scratchpad", done.refused)
        only_where_executed(card, done.refused)
        card.only_where("memory", "sink", FALSE)


class TwoLayerStages:
    """Layer A reads the operands and chooses the next program counter.

    Layer B stores what is pending, makes the result, which is pending from then on, and fetches and decodes.
    """

    def __init__(self, sizes: RiscvSizes, layout: Layout) -> None:
        self.sizes, self.layout = sizes, layout

        def refused(column: ColumnWords) -> Word:
            return any_of(*(column[f"flag.{name}"].equals(0) for name in GOOD))

        self.middle = middle(layout, sizes, ("brought", "fetched"), [
            facts.aligned_fact(), facts.aligned_fact("next", refused), facts.kind_fact(sizes), *facts.immediate_facts(sizes),
            facts.following_fact(), facts.pending_fact()])

    @property
    def stages(self) -> tuple[Stage, ...]:
        cases = instruction_cases(self.sizes)
        return (Stage("choose", (0, 1), self.layout, self.middle, self._choose, cases),
                Stage("complete", (1, 2), self.middle, self.layout, self._complete, cases, ("value", PENDING)))

    def _choose(self, card: Meaning) -> None:
        leave_passing(card, self.middle)
        if card.case is None:
            return
        if card.case == ELSE:
            card.expect("flag.lawful", "scratchpad", FALSE)
            return
        loop, one = RiscvLoop(card, self.sizes, lags=True), isa.BY_NAME[card.case]
        given = loop.operands(one)
        found = loop.execute(one, given)
        stored, ahead = (loop.position(address) for address in (given.address, loop.counter + WORD_BYTES))
        flags = {"lawful": TRUE, "aligned": ~found.misaligned, "reached": ~found.outside,
                 "stalls": stored.equals(ahead) if one.writes_memory else FALSE}
        for name, holds in flags.items():
            card.expect(f"flag.{name}", "scratchpad", holds)
        card.expect("next", "scratchpad", found.next, where=~found.refused)
        x = {"register": given.x, "own": given.counter, "zero": constant(0, WORD_BITS), None: None}[source_of(one, "x")]
        # of a shift, the rows have all twelve bits, and its semantics takes the lowest five
        immediate = immediate_of("I" if one.format == "shift" else one.format, loop.word)
        y = {"register": given.y, "own": immediate}.get(source_of(one, "y") or "")
        for rows, operand in (("x", x), ("y", y)):
            if operand is not None:
                card.expect(rows, "scratchpad", operand)
        if one.access_bytes:
            card.expect("reference", "scratchpad", given.address[: self.sizes.pointer_bits + 2])

    def _complete(self, card: Meaning) -> None:
        scratchpad = card.only("scratchpad")
        refused = any_of(*(~scratchpad[f"flag.{name}"] for name in GOOD))
        self._fetched(card, scratchpad["next"], refused, scratchpad["flag.stalls"])
        leave(card, "value", PENDING)
        if card.case is not None:
            self._result(card, card.case, refused)

    def _fetched(self, card: Meaning, following: Word, refused: Word, stalls: Word) -> None:
        """What is pending is stored, and the next instruction fetched."""
        scratchpad = card.only("scratchpad")
        RiscvLoop(card, self.sizes).fetch(scratchpad[PENDING], scratchpad["value"], following, refused, stalls)
        card.expect("event.fault", "scratchpad", refused)
        leave(card, "kind", "immediate", "following", "target")

    def whole(self, card: Meaning) -> None:
        """Both stages at once, for a card that one can see."""
        loop = RiscvLoop(card, self.sizes, lags=True)
        done = loop.execute_any()
        ahead = join(loop.position(loop.counter + WORD_BYTES), FALSE)
        self._fetched(card, done.next, done.refused, ~done.refused & done.goal.equals(ahead))
        card.expect(PENDING, "scratchpad", done.goal)
        lost = done.goal[: self.sizes.pointer_bits].equals(SINK)
        card.expect("value", "scratchpad", done.value, where=~lost)
        only_where_executed(card, done.refused)

    def _result(self, card: Meaning, case: str, refused: Word) -> None:
        """The result of an instruction, from the operands that layer A has left, and where it goes."""
        loop, scratchpad = RiscvLoop(card, self.sizes, lags=True), card.only("scratchpad")
        if case == ELSE:
            card.expect(PENDING, "scratchpad", loop.nowhere, where=refused)
            return
        one, address = isa.BY_NAME[case], scratchpad["reference"].extend(WORD_BITS)
        goal, lost = loop.goes(one, address, refused)
        card.expect(PENDING, "scratchpad", goal)
        given = Operands(loop.counter, scratchpad["x"], scratchpad["y"], scratchpad["y"], address, loop.word)
        if one.access_bytes:
            given = replace(given, loaded=loop.read_word(loop.position(address)))
            lost |= misaligned(address, one.access_bytes)  # which the flag says, see `_choose`
        if one.opcode in (isa.JAL, isa.JALR):
            result: Word | None = scratchpad["following"]
        else:
            result = scratchpad["x"] + scratchpad["y"] if one.opcode in (isa.LUI, isa.AUIPC) else one.semantics(given).result
        if result is not None:
            card.expect("value", "scratchpad", result, where=~lost)


def hint_numbers(loop: RiscvLoop, cases: Sequence[Case]) -> None:
    """What the layers of the M extension make of the operands: of its instructions, and of words that are none."""
    card, sizes = loop.card, loop.sizes
    one = isa.BY_NAME.get(card.case or "")
    if not sizes.multiply or (one is not None and one.extension != "M"):
        return
    case = next(case for case in cases if case.name == card.case)
    if one is not None:
        given = loop.operands(one)
        tell_numbers(card, sizes, case, given.x, given.y)
    else:
        tell_numbers(card, sizes, case, *(card.after_heads(0, rows, "scratchpad") for rows in ("x", "y")))


def leave(card: Meaning, *names: str) -> None:
    """Rows of the scratchpad about which nothing is claimed."""
    for name in names:
        card.leave(name, "scratchpad")


def leave_passing(card: Meaning, layout: Layout) -> None:
    """Rows that hold bits in the middle of a loop may hold any."""
    leave(card, *(block.name for block in layout.blocks if block.within == "bits" and block.holds))


def only_where_executed(card: Meaning, refused: Word) -> None:
    """Rows that say where a program counter that was refused would have led."""
    for rows in ("word", "event.call", "event.fetch"):
        card.only_where(rows, "scratchpad", ~refused)


@dataclass(frozen=True)
class RiscvExecution:
    """What an instruction comes to on a machine.

    `result` goes to the column `goal`, or it is `lost`. The instruction is refused, and nothing of it is done, if an address
    that it uses is misaligned, or outside the memory.
    """

    next: Word
    result: Word | None
    misaligned: Word
    outside: Word
    goal: Word
    lost: Word

    @property
    def refused(self) -> Word:
        return self.misaligned | self.outside


@dataclass(frozen=True)
class AnyExecution:
    """What an instruction has done, whichever it is: where its result goes and what it is, and where to continue."""

    refused: Word
    goal: Word
    value: Word
    next: Word


class RiscvLoop:
    """A loop from a card on: the instruction in the scratchpad, what it reads, and what it does."""

    def __init__(self, card: Meaning, sizes: RiscvSizes, lags: bool = False) -> None:
        scratchpad = card.only("scratchpad")
        self.card, self.sizes, self.word, self.counter = card, sizes, scratchpad["word"], scratchpad["counter"]
        self.pending: Pending = (scratchpad[PENDING], scratchpad["value"]) if lags else None

    def position(self, address: Word) -> Word:
        """The position of the word that an address is in."""
        return address[2 : 2 + self.sizes.pointer_bits]

    def operands(self, one: Instruction) -> Operands:
        """What an instruction reads: registers by their numbers, and the word of the memory at its address."""
        def read(field: str) -> Word:
            if field not in one.uses:
                return constant(0, WORD_BITS)
            number = register(self.word, field).extend(self.sizes.pointer_bits)
            held = self.card.named("registers", "address.position", number)["memory"]
            return as_if_stored(self.pending, join(number, TRUE), held)

        x, y, immediate = read("rs1"), read("rs2"), immediate_of(one.format, self.word)
        address = x + immediate
        loaded = self.read_word(self.position(address)) if one.access_bytes else x
        return Operands(self.counter, x, y, immediate, address, loaded)

    def read_word(self, position: Word) -> Word:
        """The word at a position of the memory."""
        regions = [region for region in self.sizes.cells if region in ("memory", "spare")]
        held = self.card.read_named("memory", regions, "address.position", position)
        return as_if_stored(self.pending, join(position, FALSE), held)

    def execute(self, one: Instruction, given: Operands) -> RiscvExecution:
        """An instruction of the table, and whether it is refused."""
        outcome, outside = one.semantics(given), FALSE
        wrong = outcome.taken & misaligned(outcome.target, WORD_BYTES)
        if one.access_bytes:
            wrong, outside = misaligned(given.address, one.access_bytes), ~facts.is_within(self.sizes, given.address)
        return RiscvExecution(outcome.next(given.counter), outcome.result, wrong, outside,
                              *self.goes(one, given.address, wrong | outside))

    def execute_any(self) -> AnyExecution:
        """The instruction that a word is: one choice for each that there is. A word that is none is refused."""
        refused, goal, value, following = TRUE, self.nowhere, constant(0, WORD_BITS), self.counter
        for one in self.sizes.decoder.instructions:
            found = self.execute(one, self.operands(one))
            this = (self.word & one.mask).equals(one.match)
            refused = this.choose(found.refused, refused)
            goal = this.choose(found.goal, goal)
            value = value if found.result is None else this.choose(found.result, value)
            following = this.choose(found.next, following)
        return AnyExecution(*map(self.card.simplified, (refused, goal, value, following)))

    def goes(self, one: Instruction, address: Word, refused: Word) -> tuple[Word, Word]:
        """The address where a result goes, and whether it is lost."""
        if one.writes_memory:
            place, lost, space = self.position(address), refused, FALSE
        elif "rd" in one.uses:
            rd = register(self.word, "rd")
            place, lost, space = rd.extend(self.sizes.pointer_bits), refused | rd.equals(0), TRUE
        else:
            return self.nowhere, TRUE
        return lost.choose(self.nowhere, join(place, space)), lost

    @property
    def nowhere(self) -> Word:
        """The address of the sink."""
        return join(constant(SINK, self.sizes.pointer_bits), TRUE)

    def stored(self, goal: Word, value: Word, following: Word) -> Word:
        """A value is stored at a column's address. The word at the next program counter as it is then."""
        for region in self.sizes.cells:
            self.card.expect("memory", region, lambda cell: cell["address"].equals(goal).choose(value, cell["memory"]))
        position = self.position(following)
        # `read_word` applies what is pending: nothing, or this same store.
        return as_if_stored((goal, value), join(position, FALSE), self.read_word(position))

    def fetch(self, goal: Word, value: Word, following: Word, refused: Word, stalls: Word | None = None) -> None:
        """A value is stored at a column's address, and the word at the next program counter is read as it is then.

        Where the machine stalls, it is a jump to itself. A refused instruction leaves the program counter.
        """
        card, word = self.card, self.stored(goal, value, following)
        if stalls is not None:
            word = stalls.choose(constant(isa.STALL, WORD_BITS), word)
        card.expect("word", "scratchpad", word)
        calls = (isa.BY_NAME[name].match for name in ("ecall", "ebreak"))
        card.expect("event.call", "scratchpad", any_of(*map(word.equals, calls)))
        card.expect("event.fetch", "scratchpad", ~facts.is_within(self.sizes, following) | misaligned(following, WORD_BYTES))
        card.expect("counter", "scratchpad", refused.choose(self.counter, following))


def as_if_stored(pending: Pending, address: Word, held: Word) -> Word:
    """The word at an address once the pending word is stored."""
    return held if pending is None else pending[0].equals(address).choose(pending[1], held)


def immediate_of(format: Format, word: Word) -> Word:
    """The immediate of a word, with its sign; 0 where the format has none."""
    if not IMMEDIATES.get(format):
        return constant(0, WORD_BITS)
    pieces = sorted(IMMEDIATES[format], key=lambda piece: piece.low)
    parts = [constant(0, pieces[0].low)] if pieces[0].low else []
    parts += [word[piece.at : piece.at + piece.width] for piece in pieces]
    return join(*parts).extend(WORD_BITS, signed=format not in UNSIGNED)


def misaligned(address: Word, size: int) -> Word:
    """Whether an address is not a multiple of a size."""
    return (address & size - 1).differs(0)


def register(word: Word, field: str) -> Word:
    """The number of a register that a word names."""
    return word[FIELDS[field] : FIELDS[field] + 5]
