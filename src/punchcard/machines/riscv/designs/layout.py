"""What the layouts of both designs have in common: rows that stay and rows that pass, and the blocks and facts of both."""

from __future__ import annotations

from collections.abc import Mapping

from punchcard.card.facts import AnyFact
from punchcard.card.layout import RowBlock, holding
from punchcard.machines.riscv.designs.base import EVENTS, SCRATCH, RiscvSizes
from punchcard.machines.riscv.designs.facts import address_facts, aligned_fact, immediate_facts, kind_fact
from punchcard.machines.riscv.isa import WORD_BITS


def kept(
    name: str, size: int, about: str, parts: Mapping[str, int] | None = None, selects: tuple[str, ...] = (),
) -> RowBlock:
    """Bits in the scratchpad that a loop leaves to the next one."""
    return RowBlock(name, size, about, parts or {}, holding("bits", "scratchpad"), SCRATCH, selects=selects)


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
        kept("kind", sum(kind.values()), "what the instruction does", kind, tuple(kind)),
        kept("word", WORD_BITS, "the instruction"),
        kept("immediate", WORD_BITS, "its immediate"),
        kept("counter", WORD_BITS, "its address"),
    ]


def operand_blocks() -> list[RowBlock]:
    """What the host looks at, and the operands."""
    return [
        kept("event", len(EVENTS), "what the host must look at", dict.fromkeys(EVENTS, 1)),
        passing("x", WORD_BITS, "the first operand"),
        passing("y", WORD_BITS, "the second operand"),
    ]


def instruction_facts(sizes: RiscvSizes) -> list[AnyFact]:
    """The columns' addresses, and what was decoded of the instruction."""
    return [*address_facts(sizes), aligned_fact(), kind_fact(sizes), *immediate_facts(sizes)]
