"""What the designs of the SUBLEQ machine share: its sizes, its address map, and how it halts.

A card has the scratchpad at column 0, then two constant cells that only the EOF instruction uses (0 and -1), the
memory, and the instructions. A design turns sizes into a layout and layers; it never sees a program.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from punchcard.card.encoding import Numbers, pointer_bits
from punchcard.card.facts import AnyFact, ColumnWords, Fact, Holds
from punchcard.card.layout import Card, Cards, Layout, Pattern, Region, RowBlock, holding, persistent_bits
from punchcard.errors import SizeError
from punchcard.machines.design import Design
from punchcard.machines.display_values import DisplayValue, Pending
from punchcard.machines.meaning import Meaning
from punchcard.machines.story import Condition, Quote, ValuePlace
from punchcard.words.word import Word

EVERY_CELL = ("constants", "memory")
OUTSIDE = ("constants", "memory", "instructions")
EVERYWHERE = ("scratchpad", *OUTSIDE)
CONSTANTS = (0, -1)
CONSTANT_NAMES = tuple(f"constant {number}" for number in CONSTANTS)
MIN_WORD_BITS = 2
MAX_WORD_BITS = 50  # no number format holds more, and up to here all formulas' constants are exact in float64
MAX_COLUMNS = 1 << 24


@dataclass(frozen=True)
class SubleqSizes:
    """The sizes of a machine, and which column holds what."""

    word_bits: int
    memory: int
    instructions: int

    def __post_init__(self) -> None:
        for name in ("word_bits", "memory", "instructions"):
            if not isinstance(getattr(self, name), int):
                raise SizeError(f"{name}={getattr(self, name)!r}: it must be an integer")
        if not MIN_WORD_BITS <= self.word_bits <= MAX_WORD_BITS:
            raise SizeError(f"word_bits={self.word_bits}: a word has {MIN_WORD_BITS} to {MAX_WORD_BITS} bits")
        if self.memory < 1:
            raise SizeError(f"memory={self.memory}: a machine has at least one cell")
        if self.instructions < 1:
            raise SizeError(f"instructions={self.instructions}: a machine has room for at least one instruction")
        if self.columns > MAX_COLUMNS:
            raise SizeError(f"memory={self.memory} and instructions={self.instructions} make a card of {self.columns} "
                            f"columns: the most is {MAX_COLUMNS}")

    @property
    def regions(self) -> tuple[Region, ...]:
        return (
            Region("scratchpad", 1, "where the computation happens"),
            Region("constants", 2, "the cells 0 and -1 of the EOF instruction"),
            Region("memory", self.memory, "the program's cells"),
            Region("instructions", self.instructions, "the program"),
        )

    @property
    def columns(self) -> int:
        return sum(region.size for region in self.regions)

    @property
    def pointer_bits(self) -> int:
        """L = log n."""
        return pointer_bits(self.columns)

    zero_column: ClassVar[int] = 1
    minus_one_column: ClassVar[int] = 2
    memory_column: ClassVar[int] = 3

    @property
    def instruction_column(self) -> int:
        return self.memory_column + self.memory


@dataclass(frozen=True)
class SubleqContent:
    """What is punched: the words of a program's cells, all others being 0, and the pointers a, b, c of all instructions.

    The instructions are a matrix, a row for each that there is room for.
    """

    words: Sequence[int]
    commands: Numbers


@dataclass(frozen=True)
class Reading:
    """What a card holds, or each card of a batch: the program's cells, and the next instruction's column."""

    words: Numbers
    program_counter: Numbers


class SubleqDesign(Design[SubleqSizes]):
    """What the three designs have in common: how they halt, and what the paper says of them."""

    column_pointers: ClassVar[tuple[str, ...]] = (
        "command.a", "command.b", "command.c", "position", "pointer.a", "pointer.b", "pointer.c", "program_counter")
    idle: ClassVar[int] = 1
    """The loop that reads EOF, or the warm-up loop before the first instruction, executes nothing."""
    halting_register: ClassVar[str]
    """The rows that hold pointer b of the last instruction read. Only EOF's b names the cell -1."""
    command_rows: ClassVar[tuple[str, str, str]] = ("command.a", "command.b", "command.c")
    """The rows that hold an instruction's pointers."""
    word_rows: ClassVar[tuple[str, ...]] = ("memory",)
    """The rows that hold a cell's word."""
    words_alone: ClassVar[bool] = True
    """Whether the words of a program are in those rows of the memory and nowhere else on its card."""
    paper: ClassVar[Mapping[str, str | int]] = {
        "layers": 9, "heads": "at most 2", "width": "O(log n + N); the proof's matrix has 8 log n + 3 N + 1 rows",
        "temperature": "above log(G d n^3 / eps)", "statement": "Lemma (SUBLEQ), section 5.1",
    }

    def layout(self, sizes: SubleqSizes) -> Layout:
        return Layout(self.blocks(sizes), sizes.regions, lambda: self.facts(sizes))

    @abstractmethod
    def blocks(self, sizes: SubleqSizes) -> list[RowBlock]:
        """The blocks of rows."""

    @abstractmethod
    def facts(self, sizes: SubleqSizes) -> list[AnyFact]:
        """What is true of every card when a loop begins."""

    def punch(self, sizes: SubleqSizes, layout: Layout, content: SubleqContent, card: Card) -> None:
        """Write what all designs have on a blank card: numbers of columns, words, pointers, the scratchpad's indicator."""
        for region in layout.place("memory").block.holds:
            if region not in EVERY_CELL:
                layout.put(card, "memory", region, -1.0)
        for region in OUTSIDE:
            layout.put_numbers(card, region, {"position": own_numbers(layout, region)})
        for rows in self.word_rows:
            layout.put_numbers(card, "constants", {rows: CONSTANTS}, signed=True)
            layout.put_numbers(card, "memory", {rows: content.words}, rest=0, signed=True)
        layout.put_numbers(card, "instructions", dict(zip(self.command_rows, content.commands.T, strict=True)))
        layout.put(card, "inside", "scratchpad", 1.0)

    def read(self, sizes: SubleqSizes, layout: Layout, card: Cards, cells: int | None = None) -> Reading:
        """Read the cells, or the first so many, and the program counter off a card, or a batch of them."""
        counter = layout.numbers(card, self.counter_register, "scratchpad")[..., 0]
        return Reading(layout.numbers(card, "memory", "memory", slice(cells), signed=True),
                       (counter - self.counter_offset) % (1 << sizes.pointer_bits))

    @abstractmethod
    def meaning(self, sizes: SubleqSizes, card: Meaning) -> None:
        """Say what a loop does, for a proof (see `Machine.meaning`)."""

    counter_register: ClassVar[str] = "program_counter"
    """The rows that hold the next instruction's column, or `counter_offset` columns after it."""
    counter_offset: ClassVar[int] = 0

    def display_values(self, sizes: SubleqSizes, layout: Layout, cells: Sequence[str]) -> list[DisplayValue]:
        """The program counter, as an instruction's number; the pointers, as names of columns; the named cells."""
        found = [DisplayValue("program counter", "machine", self.counter_register, 0, kind="unsigned",
                       offset=-sizes.instruction_column - self.counter_offset)]
        names = ("", *CONSTANT_NAMES, *cells)  # by the number of the column
        if len(cells) == sizes.memory:
            names += tuple(f"instruction {i}" for i in range(sizes.instructions))
        for name in ("pointer.a", "pointer.b", "pointer.c", "store_address", "store"):
            if name.split(".")[0] in {block.name for block in layout.blocks}:
                labels = names if name in self.column_pointers else ()
                found.append(DisplayValue(name, "machine", name, 0, kind="signed" if name == "store" else "unsigned",
                                          labels=labels))
        return found + [DisplayValue(name, "memory", "memory", sizes.memory_column + i, pending=self.pending)
                        for i, name in enumerate(cells)]

    pending: ClassVar[Pending | None] = None
    """Where a word waits that has not reached its cell."""

    def halting(self, sizes: SubleqSizes) -> tuple[Pattern, ...]:
        """The pattern that is on the card once the EOF instruction has been read."""
        bits = tuple(1 if sizes.minus_one_column >> i & 1 else -1 for i in range(sizes.pointer_bits))
        return (Pattern(self.halting_register, "scratchpad", bits),)


SCRATCHPAD = ValuePlace(0)


def pointer_to(rows: str, *, before: bool = False) -> Quote:
    """The name of the column that rows of the scratchpad point to."""
    return Quote(SCRATCHPAD, rows, names=True, before=before)


def halts(rows: str) -> Quote:
    """Pointer b of the instruction in the scratchpad: only EOF's is the column -1."""
    return Quote(SCRATCHPAD, rows, "unsigned")


def is_halt(name: str) -> Condition:
    """Whether what `halts` quotes is EOF's."""
    return Condition(name, "==", SubleqSizes.minus_one_column)


def common_blocks(sizes: SubleqSizes) -> dict[str, RowBlock]:
    """Blocks of rows that two designs or all of them have, by name."""
    length = sizes.pointer_bits
    pointers = dict.fromkeys("abc", length)
    found = [
        RowBlock("memory", sizes.word_bits, "the program's words, -1 in columns that are not cells",
                 holds=holding("bits", *EVERYWHERE), changes=("memory",)),
        RowBlock("command", 3 * length, "the program's instructions", pointers, holding("bits", "instructions")),
        RowBlock("position", length, "each column's own number", holds=holding("bits", *OUTSIDE)),
        RowBlock("inside", 1, "indicator of the scratchpad", holds=holding("one", "scratchpad")),
        persistent_bits("pointer", 3 * length, "the current instruction", pointers),
        persistent_bits("program_counter", length, "the next instruction's column"),
    ]
    return {block.name: block for block in found}


def card_facts(sizes: SubleqSizes, rows: tuple[str, str, str]) -> tuple[AnyFact, ...]:
    """Facts of every card of these sizes: the columns' numbers, the constants, and pointers that lead somewhere.

    `rows` are those of an instruction's pointers. The last instruction is EOF, so no program runs past it.
    """
    a, b, c = rows

    def eof(column: ColumnWords) -> Word:
        return is_eof(sizes, column[a], column[b]) & column[c].equals(column.own_number(sizes.pointer_bits))

    starts = dict(zip(OUTSIDE, (sizes.zero_column, sizes.memory_column, sizes.instruction_column), strict=True))
    ends = (*list(starts.values())[1:], sizes.columns)
    return (
        *(Holds("position", region, range(start, end)) for (region, start), end in zip(starts.items(), ends, strict=True)),
        Holds("memory", "constants", CONSTANTS),
        Fact("instructions", lambda column: eof(column) | is_instruction(column, column[a], column[b], column[c]),
             "an instruction is EOF, or names two cells and an instruction"),
        Fact("instructions", eof, "the last instruction is EOF", last=True),
    )


COUNTER_FACT = Fact("scratchpad", lambda column: column.names(column["program_counter"], "instructions"),
                    "the program counter names an instruction")


def is_eof(sizes: SubleqSizes, a: Word, b: Word) -> Word:
    """The two pointers that subtract 0 from -1."""
    return a.equals(sizes.zero_column) & b.equals(sizes.minus_one_column)


def is_instruction(column: ColumnWords, a: Word, b: Word, c: Word) -> Word:
    """The three pointers of an instruction that may write: never to a constant."""
    return column.names(a, *EVERY_CELL) & column.names(b, "memory") & column.names(c, "instructions")


def filled(sizes: SubleqSizes, *regions: str) -> tuple[Holds, ...]:
    """Columns that are not cells hold bits that are off, the number 0."""
    counts = {region.name: region.size for region in sizes.regions}
    return tuple(Holds("memory", region, (0,) * counts[region]) for region in regions)


def own_numbers(layout: Layout, region: str) -> Numbers:
    """The columns of a region."""
    place = layout.region(region)
    return np.arange(place.start, place.stop)
