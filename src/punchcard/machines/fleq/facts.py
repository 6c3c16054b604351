"""What stands on every card of a FLEQ machine when a loop begins: addresses, constants, instructions that lead somewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from punchcard.card.contents import Constants, Contents, CopiesContents, Uniform
from punchcard.card.facts import (
    AnyFact,
    Below,
    Both,
    Each,
    Equals,
    Fact,
    Holds,
    Indicates,
    Names,
    Own,
    Same,
    Spans,
    both,
    either,
)
from punchcard.machines.fleq.blocks.block import Block
from punchcard.machines.fleq.blocks.workspace import ScratchColumn
from punchcard.machines.fleq.designs.base import WIDTHS, FleqSizes
from punchcard.transformer.expression import Array

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

    Where a design is `merged`, what was written stands in `data` when a loop ends, and `incoming` is 0. Some need that
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
        Fact("scratchpad", Names("program_counter", ("instructions",)), "the program counter names an instruction"),
    ]
    calls = {case: _calls(bits) for case, bits in cases(blocks).items()}
    nothing = both(calls["nothing"], *(Equals(field(f"{x}_width"), 0) for x in "abc"))
    kinds = {block.name: both(calls[block.name], _operands(block.reads_instructions, in_place)) for block in blocks}
    found += [
        Fact("instructions", either(nothing, *kinds.values()),
             "an instruction calls one function or none, and its operands are cells", promised=pointed),
        Fact("instructions", both(Names(field("p"), ("instructions",)), Names(field("flag"), ("zero", "unit", "memory"))),
             "an instruction's flag is a cell, and it branches to an instruction", promised=pointed),
        Fact("instructions", both(*(Below(field(width), sizes.size + 1) for width in WIDTHS)),
             "widths and heights are at most the machine's size", promised=pointed),
        Fact("instructions", both(calls["nothing"], Equals(field("flag"), sizes.zero_column), Own(field("p"))),
             "the last instruction calls nothing and jumps to itself", last=True, promised=pointed),
    ]
    return found


def register_facts(
    sizes: FleqSizes, columns: Sequence[ScratchColumn], users: Mapping[str, Sequence[str]],
) -> list[AnyFact]:
    """What a design knows when a loop begins that fetches ahead: the instruction, and all that follows from its bits."""
    last = max(sizes.size, *(column.lane + 1 for column in columns))
    below = {name: [Below(f"current.{name}", n + 1) for n in range(last)] for name in WIDTHS}
    lanes = {name: tuple(below[name][column.lane] for column in columns) for name in WIDTHS}
    operands = tuple(lanes[f"{column.operand}_width"][place] for place, column in enumerate(columns))
    calls = [(both(*(Equals(f"current.call_{user}", 0) for user in some)),) for some in users.values()]
    pointers = tuple(Same("read_pointer", f"current.{column.operand}", column.lane) for column in columns)
    return [
        CopiesContents("current", "scratchpad", INSTRUCTION, "program_counter"),
        Each("scratchpad", pointers, "read_pointer is a + i, or b + i, in the column for lane i"),
        Indicates("read_idle", "scratchpad", (operands,)),
        Indicates("write_idle", "scratchpad", (lanes["c_width"],)),
        Indicates("deep", "scratchpad", tuple((below["a_height"][row],) for row in range(sizes.size))),
        Indicates("over", "scratchpad", tuple((below["c_height"][row],) for row in range(sizes.size))),
        Indicates("off", "scratchpad", tuple(calls)),
    ]


def field(name: str) -> str:
    """A field of an instruction, as facts know it."""
    return f"{INSTRUCTION}.{name}"


def _calls(bits: Mapping[str, int]) -> Both:
    return Both(tuple(Equals(field(name), bit) for name, bit in bits.items()))


def _operands(pointer_function: bool, in_place: bool) -> Both:
    """A function takes and makes cells. A pointer function takes an instruction and a cell, and makes an instruction."""
    own = ("instructions",) if pointer_function else ("memory",)
    spans = both(Spans(field("a"), field("a_width"), own), Spans(field("b"), field("b_width"), ("memory",)),
                 Spans(field("c"), field("c_width"), own))
    widths = [Equals(field(f"{x}_width"), 1) for x in "abc"] if pointer_function else []
    same = [Same(field("c"), field("a"))] if pointer_function and in_place else []
    return both(*widths, *same, spans)
