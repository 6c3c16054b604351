"""The proof of a RISC-V loop: an instruction is executed, case by case, and the next one is fetched and decoded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

from punchcard.card.column import ColumnWords
from punchcard.card.facts import Fact
from punchcard.card.layout import Layout, RowBlock, holding
from punchcard.machines.meaning import Meaning
from punchcard.machines.riscv import isa
from punchcard.machines.riscv.designs.base import OTHER_SINK, PENDING, SINK, RiscvSizes
from punchcard.machines.riscv.designs.decode import source_of
from punchcard.machines.riscv.designs.layout import (
    address_facts,
    aligned_fact,
    following_fact,
    goes_to_a_cell,
    immediate_facts,
    is_fault,
    kind_fact,
    lost_fact,
    pending_fact,
)
from punchcard.machines.riscv.isa import FIELDS, WORD_BITS, WORD_BYTES, Instruction
from punchcard.machines.riscv.meaning import (
    ELSE,
    execute,
    immediate_of,
    is_call,
    is_within,
    misaligned,
    register,
)
from punchcard.machines.riscv.numbers import alike, tell_numbers
from punchcard.machines.riscv.semantics import Operands
from punchcard.machines.stages import Case, Stage
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


def middle(layout: Layout, sizes: RiscvSizes, empty: Sequence[str], facts: Sequence[Fact]) -> Layout:
    """A layout in the middle of a loop: rows of bits that are passing hold them in the scratchpad, but for the `empty`."""
    def passing(block: RowBlock) -> RowBlock:
        holds = holding("bits", "scratchpad") if block.within == "bits" and block.name not in empty else block.holds
        return replace(block, holds=holds)

    return Layout([passing(block) for block in layout.blocks], layout.regions, [*address_facts(sizes), *facts])


class ThreeLayerStages:
    """Layers A and B execute an instruction; layer C stores its result, and fetches and decodes the next one.

    With the M extension its layers are between B and C.
    """

    def __init__(self, sizes: RiscvSizes, layout: Layout, layers: int) -> None:
        self.sizes, self.layout, self.layers = sizes, layout, layers
        self._cases = instruction_cases(sizes)
        self.middle = middle(layout, sizes, ("fetched",), [
            aligned_fact(), aligned_fact("next", is_fault),
            Fact("scratchpad", partial(goes_to_a_cell, sizes, "goal"),
                 "the result goes to a word, to a register but x0, or to the sink"),
            lost_fact(sizes, "goal")])

    @property
    def stages(self) -> tuple[Stage, ...]:
        last = self.layers - 1
        return (Stage("execute", (0, last), self.layout, self.middle, self._execute, self._cases),
                Stage("fetch", (last, self.layers), self.middle, self.layout, self._fetch))

    def _execute(self, card: Meaning) -> None:
        leave_passing(card, self.middle)
        if card.case is None:
            return
        scratchpad = card.only("scratchpad")
        word, counter = scratchpad["word"], scratchpad["counter"]
        if card.case.startswith(ELSE):
            card.expect("event.fault", "scratchpad", TRUE)
            if self.sizes.multiply:
                self._tell_numbers(card, *(card.after_heads(0, rows, "scratchpad") for rows in ("x", "y")))
            return
        one = isa.BY_NAME[card.case]
        given = operands(card, self.sizes, one, word, counter)
        if one.extension == "M":
            self._tell_numbers(card, given.x, given.y)
        found = execute(self.sizes, one, given)
        refused = found.refused
        card.expect("event.fault", "scratchpad", refused)
        card.expect("next", "scratchpad", found.next, where=~refused)
        goal, lost = goes(self.sizes, one, word, given.address, refused)
        card.expect("goal", "scratchpad", goal)
        if found.result is not None:
            card.expect("value", "scratchpad", found.result, where=~lost)

    def _tell_numbers(self, card: Meaning, x: Word | None, y: Word | None) -> None:
        """What the layers of the M extension make of two operands."""
        case = next(case for case in self._cases if case.name == card.case)
        if x is not None and y is not None:
            tell_numbers(card, self.sizes, case.match if case.mask else None, x, y)

    def _fetch(self, card: Meaning) -> None:
        scratchpad = card.only("scratchpad")
        self._fetched(card, *(scratchpad[rows] for rows in ("goal", "value", "next", "event.fault")))

    def _fetched(self, card: Meaning, goal: Word, value: Word, following: Word, fault: Word) -> None:
        fetched(card, self.sizes, goal, value, following)
        card.expect("counter", "scratchpad", fault.choose(card.only("scratchpad")["counter"], following))
        for rows in ("kind", "immediate", "first", "second", "following", "carried"):
            card.leave(rows, "scratchpad")

    def whole(self, card: Meaning) -> None:
        """Both stages at once, for a card that one can see."""
        scratchpad = card.only("scratchpad")
        word, counter = scratchpad["word"], scratchpad["counter"]
        done = by_instruction(card, self.sizes, word, counter)
        self._fetched(card, done.goal, done.value, done.next, done.refused)
        card.expect("event.fault", "scratchpad", done.refused)
        for rows in ("word", "event.call", "event.fetch"):  # where a program counter that was refused would have led
            card.only_where(rows, "scratchpad", ~done.refused)
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
            aligned_fact(), aligned_fact("next", refused), kind_fact(sizes), *immediate_facts(sizes),
            following_fact(), pending_fact(sizes)])

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
        scratchpad, one = card.only("scratchpad"), isa.BY_NAME[card.case]
        word, counter = scratchpad["word"], scratchpad["counter"]
        pending = scratchpad[PENDING], scratchpad["value"]
        given = operands(card, self.sizes, one, word, counter, pending)
        found = execute(self.sizes, one, given)
        stored, ahead = (address[2 : 2 + self.sizes.pointer_bits] for address in (given.address, counter + WORD_BYTES))
        flags = {"lawful": TRUE, "aligned": ~found.misaligned, "reached": ~found.outside,
                 "stalls": stored.equals(ahead) if one.writes_memory else FALSE}
        for name, holds in flags.items():
            card.expect(f"flag.{name}", "scratchpad", holds)
        card.expect("next", "scratchpad", found.next, where=~found.refused)
        x, y = arithmetic_operands(one, given)
        if x is not None:
            card.expect("x", "scratchpad", x)
        if y is not None:
            card.expect("y", "scratchpad", y)
        if one.access_bytes:
            card.expect("reference", "scratchpad", given.address[: self.sizes.pointer_bits + 2])

    def _complete(self, card: Meaning) -> None:
        scratchpad = card.only("scratchpad")
        pending, value, following = (scratchpad[rows] for rows in (PENDING, "value", "next"))
        refused, stalls = any_of(*(~scratchpad[f"flag.{name}"] for name in GOOD)), scratchpad["flag.stalls"]
        fetched(card, self.sizes, pending, value, following, stalls)
        card.expect("counter", "scratchpad", refused.choose(scratchpad["counter"], following))
        card.expect("event.fault", "scratchpad", refused)
        for rows in ("kind", "immediate", "following", "target", "value", PENDING):
            card.leave(rows, "scratchpad")
        if card.case is not None:
            self._result(card, card.case, refused)

    def whole(self, card: Meaning) -> None:
        """Both stages at once, for a card that one can see."""
        scratchpad = card.only("scratchpad")
        word, counter, pending = scratchpad["word"], scratchpad["counter"], (scratchpad[PENDING], scratchpad["value"])
        done = by_instruction(card, self.sizes, word, counter, pending)
        length, goes_on = self.sizes.pointer_bits, ~done.refused
        ahead = join((counter + WORD_BYTES)[2 : 2 + length], FALSE)
        fetched(card, self.sizes, *pending, done.next, goes_on & done.goal.equals(ahead))
        card.expect("counter", "scratchpad", done.refused.choose(counter, done.next))
        card.expect("event.fault", "scratchpad", done.refused)
        card.expect(PENDING, "scratchpad", done.goal)
        lost = done.goal[:length].equals(SINK)
        card.expect("value", "scratchpad", done.value, where=~lost)
        for rows in ("kind", "immediate", "following", "target"):
            card.leave(rows, "scratchpad")
        for rows in ("word", "event.call", "event.fetch"):
            card.only_where(rows, "scratchpad", goes_on)

    def _result(self, card: Meaning, case: str, refused: Word) -> None:
        """The result of an instruction, from the operands that layer A has left, and where it goes."""
        scratchpad = card.only("scratchpad")
        word = scratchpad["word"]
        if case == ELSE:
            card.expect(PENDING, "scratchpad", nowhere(self.sizes, word), where=refused)
            return
        one = isa.BY_NAME[case]
        address = scratchpad["reference"].extend(WORD_BITS)
        goal, lost = goes(self.sizes, one, word, address, refused)
        card.expect(PENDING, "scratchpad", goal)
        given = Operands(scratchpad["counter"], scratchpad["x"], scratchpad["y"], scratchpad["y"], address, word)
        if one.access_bytes:
            position = address[2 : 2 + self.sizes.pointer_bits]
            given = replace(given, loaded=read_word(card, self.sizes, position, (scratchpad[PENDING], scratchpad["value"])))
            result = execute(self.sizes, one, given).result
            lost |= misaligned(address, one.access_bytes)  # which the flag says, see `_choose`
        elif one.opcode in (isa.JAL, isa.JALR):
            result = scratchpad["following"]
        else:
            result = scratchpad["x"] + scratchpad["y"] if one.opcode in (isa.LUI, isa.AUIPC) else one.semantics(given).result
        if result is not None:
            card.expect("value", "scratchpad", result, where=~lost)


@dataclass(frozen=True)
class Done:
    """What an instruction has done, whichever it is: where its result goes and what it is, and where to go on."""

    refused: Word
    goal: Word
    value: Word
    next: Word


def by_instruction(card: Meaning, sizes: RiscvSizes, word: Word, counter: Word, pending: Pending = None) -> Done:
    """The instruction that a word is: one choice for each that there is. A word that is none is refused."""
    refused, goal, value, following = TRUE, nowhere(sizes, word), constant(0, WORD_BITS), counter
    for one in sizes.decoder.instructions:
        given = operands(card, sizes, one, word, counter, pending)
        found = execute(sizes, one, given)
        this = (word & one.mask).equals(one.match)
        refused = this.choose(found.refused, refused)
        goal = this.choose(goes(sizes, one, word, given.address, found.refused)[0], goal)
        value = value if found.result is None else this.choose(found.result, value)
        following = this.choose(found.next, following)
    return Done(*(card.simplified(each) for each in (refused, goal, value, following)))


def leave_passing(card: Meaning, layout: Layout) -> None:
    """Rows that hold bits in the middle of a loop may hold any."""
    for block in layout.blocks:
        if block.within == "bits" and block.holds:
            card.leave(block.name, "scratchpad")


def arithmetic_operands(one: Instruction, given: Operands) -> tuple[Word | None, Word | None]:
    """What the arithmetic unit works on: registers, 0 or the program counter, the immediate. None: any word will do."""
    x = {"register": given.x, "own": given.counter, "zero": constant(0, WORD_BITS), None: None}[source_of(one, "x")]
    return x, {"register": given.y, "own": given.immediate}.get(source_of(one, "y") or "")


def goes(sizes: RiscvSizes, one: Instruction, word: Word, address: Word, refused: Word) -> tuple[Word, Word]:
    """The address where a result goes, and whether it is lost."""
    length = sizes.pointer_bits
    if one.writes_memory:
        place, lost, space = address[2 : 2 + length], refused, FALSE
    elif "rd" in one.uses:
        rd = register(word, "rd")
        place, lost, space = rd.extend(length), refused | rd.equals(0), TRUE
    else:
        return nowhere(sizes, word, one), TRUE
    return lost.choose(nowhere(sizes, word, one), join(place, space)), lost


def nowhere(sizes: RiscvSizes, word: Word, one: Instruction | None = None) -> Word:
    """The address of the sink; of two, an instruction without a result takes one by a bit of its own."""
    place = constant(SINK, sizes.pointer_bits)
    if sizes.multiply and one is not None and not one.writes_memory and "rd" not in one.uses:
        place = word[FIELDS["rd"]].choose(constant(OTHER_SINK, sizes.pointer_bits), place)
    return join(place, TRUE)


def operands(
    card: Meaning, sizes: RiscvSizes, one: Instruction, word: Word, counter: Word, pending: Pending = None,
) -> Operands:
    """What an instruction reads: registers by their numbers, and the word of the memory at its address."""
    def read(field: str) -> Word:
        if field not in one.uses:
            return constant(0, WORD_BITS)
        number = register(word, field).extend(sizes.pointer_bits)
        held = card.named("registers", "address.position", number)["memory"]
        return as_if_stored(pending, join(number, TRUE), held)

    x, y, immediate = read("rs1"), read("rs2"), immediate_of(one.format, word)
    address = x + immediate
    loaded = x if not one.access_bytes else read_word(
        card, sizes, address[2 : 2 + sizes.pointer_bits], pending)
    return Operands(counter, x, y, immediate, address, loaded)


def read_word(card: Meaning, sizes: RiscvSizes, position: Word, pending: Pending = None) -> Word:
    """The word at a position of the memory."""
    regions = [region for region in sizes.cells if region in ("memory", "spare")]
    held = card.read_named("memory", regions, "address.position", position)
    return as_if_stored(pending, join(position, FALSE), held)


def as_if_stored(pending: Pending, address: Word, held: Word) -> Word:
    """The word at an address once the pending word is stored."""
    return held if pending is None else pending[0].equals(address).choose(pending[1], held)


def fetched(card: Meaning, sizes: RiscvSizes, goal: Word, value: Word, following: Word, stalls: Word | None = None) -> None:
    """A value is stored at a column's address, and the word at the next program counter is read as it is then.

    Where the machine stalls, it is a jump to itself.
    """
    for region in sizes.cells:
        card.expect("memory", region, lambda cell: cell["address"].equals(goal).choose(value, cell["memory"]))
    word = read_word(card, sizes, following[2 : 2 + sizes.pointer_bits], (goal, value))
    if stalls is not None:
        word = stalls.choose(constant(isa.STALL, WORD_BITS), word)
    card.expect("word", "scratchpad", word)
    card.expect("event.call", "scratchpad", is_call(word))
    card.expect("event.fetch", "scratchpad", ~is_within(sizes, following) | misaligned(following, WORD_BYTES))


def stages_of(sizes: RiscvSizes, layout: Layout, lags: bool, layers: int) -> ThreeLayerStages | TwoLayerStages:
    """The stages of a design, in which results lag or not."""
    return TwoLayerStages(sizes, layout) if lags else ThreeLayerStages(sizes, layout, layers)
