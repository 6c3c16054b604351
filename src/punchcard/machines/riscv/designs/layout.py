"""Blocks of rows and facts of the RISC-V cards: the columns' addresses, x0, and what was decoded of the instruction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from punchcard.card.facts import AnyFact, ColumnWords, Fact, Holds, Predicate
from punchcard.card.layout import RowBlock, holding, persistent_bits
from punchcard.machines.riscv import isa
from punchcard.machines.riscv.designs.base import (
    HALF,
    NOTHING,
    PENDING,
    REGISTER_COUNT,
    SINK,
    RiscvSizes,
)
from punchcard.machines.riscv.designs.decode import immediate_sources, source_of
from punchcard.machines.riscv.isa import FIELDS, WORD_BITS, WORD_BYTES
from punchcard.primitives.literals import Cube
from punchcard.words.word import Word, all_of, any_of, constant, join

OPCODE_BITS = 7


def passing(name: str, size: int, about: str, parts: Mapping[str, int] | None = None) -> RowBlock:
    """Bits that are there within a loop alone."""
    return RowBlock(name, size, about, parts or {}, within="bits")


def places(sizes: RiscvSizes) -> dict[str, int]:
    """The parts of a column's address."""
    return {"position": sizes.pointer_bits, "space": 1}


def column_blocks(sizes: RiscvSizes) -> list[RowBlock]:
    """Words and addresses of the columns, and the instruction."""
    cells, kind = sizes.cells, sizes.decoder.parts
    return [
        RowBlock("memory", WORD_BITS, "the words", holds=holding("bits", *cells), changes=cells),
        RowBlock("address", sizes.pointer_bits + 1, "each column's own", places(sizes), holding("bits", *cells, "nothing")),
        RowBlock("inside", 1, "indicator of the scratchpad", holds=holding("one", "scratchpad")),
        RowBlock("outside", 1, "indicator of all other columns", holds=holding("one", *cells, "nothing")),
        persistent_bits("kind", sum(kind.values()), "what the instruction does", kind, tuple(kind)),
        persistent_bits("word", WORD_BITS, "the instruction"),
        persistent_bits("immediate", WORD_BITS, "its immediate"),
        persistent_bits("counter", WORD_BITS, "its address"),
    ]


def operand_blocks(sizes: RiscvSizes) -> list[RowBlock]:
    """What the host looks at, and the operands."""
    return [
        persistent_bits("event", len(sizes.events), "what the host must look at", dict.fromkeys(sizes.events, 1)),
        passing("x", WORD_BITS, "the first operand"),
        passing("y", WORD_BITS, "the second operand"),
    ]


def is_within(sizes: RiscvSizes, address: Word) -> Word:
    """Whether an address is in the memory."""
    return address.at_least(sizes.base) & address.less(sizes.end)


def is_fault(column: ColumnWords) -> Word:
    """A card after which no loop follows: the host ends the run."""
    return column["event.fault"].equals(1)


def address_facts(sizes: RiscvSizes) -> list[AnyFact]:
    """Every column has an address of its own, and x0 is 0."""
    first, count = sizes.base // WORD_BYTES, 1 << sizes.pointer_bits
    numbers = {"memory": range(first, first + sizes.memory), "spare": range(first + sizes.memory, first + count),
               "registers": range(REGISTER_COUNT), "sink": (SINK,), "nothing": (NOTHING,)}

    def is_in_space(space: int, column: ColumnWords) -> Word:
        return column["address.space"].equals(space)

    found: list[AnyFact] = []
    for region in (*sizes.cells, "nothing"):
        space = int(region not in ("memory", "spare"))
        found += [Holds("address.position", region, numbers[region]),
                  Fact(region, partial(is_in_space, space),
                       f"{region} is in the space of {'registers' if space else 'memory'}")]
    return [*found, Fact("registers", lambda column: column["address.position"].differs(0) | column["memory"].equals(0),
                         "x0 is 0")]


def goes_to_a_cell(rows: str, column: ColumnWords) -> Word:
    """An address where a result may go: a word of the memory, a register but x0, or the sink."""
    position = column[f"{rows}.position"]
    return column[f"{rows}.space"].equals(0) | position.differs(0) & position.less(SINK + 1)


def result_fact() -> Fact:
    """The result of an instruction goes somewhere."""
    return _goes_fact("goal", "the result")


def lost_fact(rows: str) -> Fact:
    """A refused instruction changes nothing: its result goes to the sink."""
    def is_lost(column: ColumnWords) -> Word:
        is_sink = column[f"{rows}.space"].equals(1) & column[f"{rows}.position"].equals(SINK)
        return ~is_fault(column) | is_sink

    return Fact("scratchpad", is_lost, "the result of a refused instruction goes to the sink")


def pending_fact() -> Fact:
    """What is pending goes somewhere."""
    return _goes_fact(PENDING, "what is pending")


def _goes_fact(rows: str, what: str) -> Fact:
    return Fact("scratchpad", partial(goes_to_a_cell, rows), f"{what} goes to a word, to a register but x0, or to the sink")


def following_fact(unless: Predicate | None = None) -> Fact:
    """pc + 4."""
    return Fact("scratchpad", lambda column: column["following"].equals(column["counter"] + WORD_BYTES),
                "following is pc + 4", unless=unless)


def counter_facts() -> list[Fact]:
    """pc + 4, and pc + immediate for jumps and branches."""
    return [following_fact(is_fault),
            Fact("scratchpad",
                 lambda column: ~_jumps(column) | column["target"].equals(column["counter"] + column["immediate"]),
                 "target is pc + immediate", unless=is_fault)]


def _has_opcode(column: ColumnWords, opcode: int) -> Word:
    return column["word"][:OPCODE_BITS].equals(opcode)


def _jumps(column: ColumnWords) -> Word:
    """Whether the word is a jump or a branch that goes to pc + immediate."""
    return any_of(*(_has_opcode(column, opcode) for opcode in (isa.JAL, isa.BRANCH)))


def aligned_fact(rows: str = "counter", *others: Predicate) -> Fact:
    """An address of an instruction is a multiple of four."""
    return Fact("scratchpad", lambda column: any_of(*(other(column) for other in others), column[rows][:2].equals(0)),
                f"{rows} is a multiple of 4")


def kind_fact(sizes: RiscvSizes) -> Fact:
    """The kind is that of the word."""
    return Fact("scratchpad", lambda column: column["kind"].equals(_decoded(column["word"], sizes.decoder.kind_bits)),
                "kind is the kind of the instruction")


def _decoded(word: Word, sources: Sequence[Sequence[tuple[int, Cube]]]) -> Word:
    """Bits of which each is 1 where one of its sources, a place in a word, is 1 and other places there hold their bits."""
    return join(*(any_of(*(all_of(word[place], *(word[other].equals(bit) for other, bit in cube.items()))
                           for place, cube in bit_sources)) for bit_sources in sources))


def immediate_facts(sizes: RiscvSizes) -> list[Fact]:
    """The immediate is the word's, for every opcode with one."""
    def is_right(opcode: int, sources: Sequence[int | None], column: ColumnWords) -> Word:
        picked = join(*(constant(0, 1) if place is None else column["word"][place] for place in sources))
        return ~_has_opcode(column, opcode) | column["immediate"].equals(picked)

    formats = {one.opcode: one.format for one in sizes.decoder.instructions if one.format in isa.IMMEDIATES}
    return [Fact("scratchpad", partial(is_right, opcode, immediate_sources(format)),
                 f"immediate is that of the instruction, opcode {opcode:#04x}") for opcode, format in formats.items()]


def operand_facts(sizes: RiscvSizes) -> list[Fact]:
    """The pointers to the operands: a register of the word, or with the bit above it the scratchpad's own rows."""
    own = 1 << 5
    given: dict[tuple[str, int], str | int] = {}
    for one in sizes.decoder.instructions:
        for rows, field, source in (("first", "rs1", source_of(one, "x")), ("second", "rs2", source_of(one, "y"))):
            if source is not None:
                given[rows, one.opcode] = field if source == "register" else own if source == "own" else 0

    def is_below(rows: str, column: ColumnWords) -> Word:
        return column[rows].less(own + 1)

    def is_right(rows: str, opcode: int, source: str | int, column: ColumnWords) -> Word:
        pointer = column[rows]
        named = constant(source, pointer.size) if isinstance(source, int) else (
            column["word"][FIELDS[source] : FIELDS[source] + 5].extend(pointer.size))
        return ~_has_opcode(column, opcode) | pointer.equals(named)

    return [*(Fact("scratchpad", partial(is_below, rows), f"{rows} names a register, or the scratchpad itself")
              for rows in ("first", "second")),
            *(Fact("scratchpad", partial(is_right, rows, opcode, source),
                   f"{rows} names the operand of the instruction, opcode {opcode:#04x}")
              for (rows, opcode), source in given.items())]


def half_facts(sizes: RiscvSizes) -> list[Fact]:
    """The low half of pc + 4 and its carry, and the carry of pc + immediate, for jumps and branches."""
    unless = None if sizes.privileged else is_fault

    def low(word: Word) -> Word:
        return word[:HALF].extend(HALF + 1)

    return [Fact("scratchpad", lambda column: column["following"].equals(low(column["counter"]) + WORD_BYTES),
                 "following is pc + 4, its low half and carry", unless=unless),
            Fact("scratchpad", lambda column: ~_jumps(column) | column["carried"].equals(
                (low(column["counter"]) + low(column["immediate"]))[HALF]),
                 "carried is the carry of pc + immediate", unless=unless)]


def instruction_facts(sizes: RiscvSizes) -> list[AnyFact]:
    """The columns' addresses, and what was decoded of the instruction."""
    return [*address_facts(sizes), aligned_fact(), kind_fact(sizes), *immediate_facts(sizes)]
