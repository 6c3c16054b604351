"""Facts of every FLEQ card when a loop begins: addresses, constants, instructions that lead somewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

import numpy as np

from punchcard.card.facts import AnyFact, ColumnWords, Constants, Contents, CopiesContents, Fact, Holds, Indicates, Uniform
from punchcard.machines.fleq.blocks.block import Block
from punchcard.machines.fleq.blocks.workspace import ScratchColumn
from punchcard.machines.fleq.designs.base import WIDTHS, FleqSizes
from punchcard.transformer.expression import Array
from punchcard.words.word import Word, all_of, any_of

INSTRUCTION, CELL = "instruction", "cell"


def cases(blocks: Sequence[Block]) -> dict[str, dict[str, int]]:
    """The calls that an instruction may make: for each name of a case, the bits of all functions."""
    names = [block.name for block in blocks]
    return {called: {f"call_{name}": int(name == called) for name in names} for called in (*names, "nothing")}


def card_facts(
    sizes: FleqSizes, blocks: Sequence[Block], constants: Mapping[tuple[str, str], Array], *, merged: bool = False,
    in_place: bool = False,
) -> list[AnyFact]:
    """The facts of a design; `constants` are what never changes, by block and region: rows by columns, or one for all.

    Where a design is `merged`, what was written is in `data` when a loop ends, and `incoming` is 0. Some need that
    pointer functions work `in_place`: what they change is what they have read.
    """
    pointed = any(block.reads_instructions for block in blocks)
    outside = FleqSizes.OUTSIDE
    starts = sizes.zero_column, sizes.unit_column, sizes.memory_column, sizes.instruction_column
    ends = (*starts[1:], sizes.columns)
    unit = np.zeros((sizes.data_rows, 1))
    unit[0] = 1.0
    blocks_of = ("data",) if merged else ("data", "incoming")
    empty = np.zeros((sizes.data_rows, 1))
    found: list[AnyFact] = [
        *(Constants("incoming", region, empty) for region in ("memory", "instructions") if merged),
        *(Holds("position", region, range(start, end)) for region, start, end in zip(outside, starts, ends, strict=True)),
        *(Constants(rows, region, values) for (rows, region), values in constants.items()),
        Constants("data", "unit", unit),
        Uniform("program_counter", "scratchpad"),
        Uniform("halted", "scratchpad"),
        Contents(INSTRUCTION, "instructions", blocks_of, sizes.instruction_parts()),
        Contents(CELL, "memory", blocks_of),
        Fact("scratchpad", lambda column: column.names(column["program_counter"], "instructions"),
             "the program counter names an instruction"),
    ]
    calls = cases(blocks)

    def is_lawful(column: ColumnWords) -> Word:
        nothing = _calls(column, calls["nothing"]) & all_of(*(column[field(f"{x}_width")].equals(0) for x in "abc"))
        return any_of(nothing, *(_calls(column, calls[block.name]) & _operands(column, block.reads_instructions, in_place)
                                 for block in blocks))

    found += [
        Fact("instructions", is_lawful, "an instruction calls one function or none, and its operands are cells",
             promised=pointed),
        Fact("instructions", lambda column: (column.names(column[field("p")], "instructions")
                                             & column.names(column[field("flag")], "zero", "unit", "memory")),
             "an instruction's flag is a cell, and it branches to an instruction", promised=pointed),
        Fact("instructions", lambda column: all_of(*(column[field(width)].less(sizes.size + 1) for width in WIDTHS)),
             "widths and heights are at most the machine's size", promised=pointed),
        Fact("instructions", lambda column: (_calls(column, calls["nothing"])
                                             & column[field("flag")].equals(sizes.zero_column)
                                             & column[field("p")].equals(column.own_number(column[field("p")].size))),
             "the last instruction calls nothing and jumps to itself", last=True, promised=pointed),
    ]
    return found


REGISTERS = {
    "read_idle": "1 beyond the operand's width, else 0",
    "write_idle": "1 beyond the result's width, else 0",
    "deep": "1 in the rows beyond a_height, else 0",
    "over": "1 in the rows beyond c_height, else 0",
    "off": "0 for the function that is called and its transport, else 1",
}
"""What follows from an instruction's bits, 0 or 1, in each column of the scratchpad: what its rows indicate."""


def indicated(
    rows: str, of: Callable[[str], Word], size: int, column: tuple[str, int], users: Iterable[Sequence[str]],
) -> list[Word]:
    """The conditions that a register's rows indicate, `of` an instruction's fields, in the column for an operand's lane.

    `users` are the functions that open each row of `off`.
    """
    operand, lane = column
    if rows == "off":
        return [~any_of(*(of(f"call_{user}") for user in some)) for some in users]
    if rows in ("deep", "over"):
        height = of("a_height" if rows == "deep" else "c_height")
        return [height.less(row + 1) for row in range(size)]
    return [of(f"{operand}_width" if rows == "read_idle" else "c_width").less(lane + 1)]


def register_facts(
    sizes: FleqSizes, columns: Sequence[ScratchColumn], users: Mapping[str, Sequence[str]],
) -> list[AnyFact]:
    """What a design knows when a loop begins that fetches ahead: the instruction, and all that follows from its bits."""
    def reads(column: ColumnWords) -> Word:
        kind = columns[column.offset]
        return column["read_pointer"].equals(column[f"current.{kind.operand}"] + kind.lane)

    def conditions(rows: str, column: ColumnWords) -> list[Word]:
        kind = columns[column.offset]
        return indicated(rows, lambda name: column[f"current.{name}"], sizes.size, (kind.operand, kind.lane), users.values())

    return [
        CopiesContents("current", "scratchpad", INSTRUCTION, "program_counter"),
        Fact("scratchpad", reads, "read_pointer is a + i, or b + i, in the column for lane i", each=True),
        *(Indicates(rows, "scratchpad", partial(conditions, rows)) for rows in REGISTERS),
    ]


def field(name: str) -> str:
    """A field of an instruction, as facts know it."""
    return f"{INSTRUCTION}.{name}"


def _calls(column: ColumnWords, bits: Mapping[str, int]) -> Word:
    return all_of(*(column[field(name)].equals(bit) for name, bit in bits.items()))


def _operands(column: ColumnWords, pointer_function: bool, in_place: bool) -> Word:
    """A function takes and makes cells. A pointer function takes an instruction and a cell, and makes an instruction."""
    own = "instructions" if pointer_function else "memory"
    a, b, c = (column[field(x)] for x in "abc")
    widths = [column[field(f"{x}_width")] for x in "abc"]
    spans = [column.spans(pointer, width, region)
             for pointer, width, region in zip((a, b, c), widths, (own, "memory", own), strict=True)]
    if pointer_function:
        spans += [width.equals(1) for width in widths]
    return all_of(*spans, *([c.equals(a)] if pointer_function and in_place else []))
