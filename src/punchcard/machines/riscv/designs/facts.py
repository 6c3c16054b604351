"""Facts of the RISC-V cards: the columns' addresses, x0, and what was decoded of the instruction in the scratchpad."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from punchcard.card.facts import AnyFact, Below, Bits, Condition, Equals, Fact, Holds, Not, Same, Sum, both, either, implies
from punchcard.machines.riscv import isa
from punchcard.machines.riscv.designs.base import HALF, NOTHING, OTHER_SINK, REGISTER_COUNT, SINK, RiscvSizes
from punchcard.machines.riscv.designs.decode import immediate_sources
from punchcard.machines.riscv.designs.pending import PENDING
from punchcard.machines.riscv.isa import FIELDS, WORD_BITS, WORD_BYTES, Instruction

Sources: TypeAlias = tuple[tuple[tuple[int, Mapping[int, int]], ...], ...]
FAULT = Equals("event.fault", 1)
"""A card after which no loop follows: the host ends the run."""
OPCODE_BITS = 7


def address_facts(sizes: RiscvSizes) -> list[AnyFact]:
    """Every column has an address of its own, and x0 is 0."""
    first, count = sizes.base // WORD_BYTES, 1 << sizes.pointer_bits
    numbers = {"memory": range(first, first + sizes.memory), "spare": range(first + sizes.memory, first + count),
               "registers": range(REGISTER_COUNT), "sink": sizes.sinks, "nothing": (NOTHING,)}
    found: list[AnyFact] = []
    for region in (*sizes.cells, "nothing"):
        space = int(region not in ("memory", "spare"))
        found += [Holds("address.position", region, numbers[region]),
                  Fact(region, Equals("address.space", space),
                       f"{region} is in the space of {'registers' if space else 'memory'}")]
    return [*found, Fact("registers", implies(Equals("address.position", 0), Equals("memory", 0)), "x0 is 0")]


def goes_to_a_cell(sizes: RiscvSizes, rows: str) -> Condition:
    """An address where a result may go: a word of the memory, a register but x0, or the sink."""
    sinks = [Equals(f"{rows}.position", OTHER_SINK)] if sizes.multiply else []
    register = both(Not(Equals(f"{rows}.position", 0)), Below(f"{rows}.position", SINK + 1))
    return either(Equals(f"{rows}.space", 0), register, *sinks)


def lost_fact(sizes: RiscvSizes, rows: str) -> Fact:
    """A refused instruction changes nothing: its result goes to the sink."""
    sink = both(Equals(f"{rows}.space", 1), either(*(Equals(f"{rows}.position", place) for place in sizes.sinks)))
    return Fact("scratchpad", implies(FAULT, sink), "the result of a refused instruction goes to the sink")


def pending_fact(sizes: RiscvSizes) -> Fact:
    """What is pending goes somewhere."""
    return Fact("scratchpad", goes_to_a_cell(sizes, PENDING),
                "what is pending goes to a word, to a register but x0, or to the sink")


def whole_facts() -> list[Fact]:
    """pc + 4, and pc + immediate for jumps and branches."""
    target = Sum("target", ("counter", "immediate"), WORD_BITS)
    return [Fact("scratchpad", Same("following", "counter", WORD_BYTES), "following is pc + 4", unless=FAULT),
            Fact("scratchpad", implies(_jumps(), target), "target is pc + immediate", unless=FAULT)]


def _jumps() -> Condition:
    """Whether the word is a jump or a branch that goes to pc + immediate."""
    return either(*(Equals("word", opcode, OPCODE_BITS) for opcode in (isa.JAL, isa.BRANCH)))


def aligned_fact(rows: str = "counter", *others: Condition) -> Fact:
    """An address of an instruction is a multiple of four."""
    condition = Equals(rows, 0, 2)
    return Fact("scratchpad", either(*others, condition) if others else condition, f"{rows} is a multiple of 4")


def kind_fact(sizes: RiscvSizes) -> Fact:
    """The kind is that of the word."""
    return Fact("scratchpad", Bits("kind", "word", sizes.decoder.kind_bits), "kind is the kind of the instruction")


def immediate_facts(sizes: RiscvSizes) -> list[Fact]:
    """The immediate is the word's, for every opcode with one."""
    found = {}
    for one in sizes.decoder.instructions:
        if one.format in isa.IMMEDIATES:
            sources: Sources = tuple(() if source is None else ((source, {}),) for source in immediate_sources(one.format))
            found[one.opcode] = Fact("scratchpad", _of(one, Bits("immediate", "word", sources)),
                                     f"immediate is that of the instruction, opcode {one.opcode:#04x}")
    return list(found.values())


def _of(one: Instruction, then: Condition) -> Condition:
    return implies(Equals("word", one.opcode, OPCODE_BITS), then)


def operand_facts(sizes: RiscvSizes) -> list[Fact]:
    """The pointers to the operands: a register of the word, or with the bit above it the scratchpad's own rows."""
    own = 1 << 5
    found = [Fact("scratchpad", Below(rows, own + 1), f"{rows} names a register, or the scratchpad itself")
             for rows in ("first", "second")]
    given: dict[tuple[str, int], Condition] = {}
    for one in sizes.decoder.instructions:
        for rows, field in (("first", "rs1"), ("second", "rs2")):
            if field in one.uses:
                sources: Sources = tuple(((FIELDS[field] + i, {}),) for i in range(5))
                given[rows, one.opcode] = _of(one, Bits(rows, "word", (*sources, ())))
        if one.opcode in (isa.LUI, isa.AUIPC):
            given["first", one.opcode] = _of(one, Equals("first", own if one.opcode == isa.AUIPC else 0))
        if one.opcode in (isa.LUI, isa.AUIPC, isa.OP_IMM):
            given["second", one.opcode] = _of(one, Equals("second", own))
    return found + [Fact("scratchpad", condition, f"{rows} names the operand of the instruction, opcode {opcode:#04x}")
                    for (rows, opcode), condition in given.items()]


def half_facts() -> list[Fact]:
    """The low half of pc + 4 and its carry, and the carry of pc + immediate, for jumps and branches."""
    carried = Sum("carried", ("counter", "immediate"), HALF, shift=HALF)
    following = Sum("following", ("counter",), HALF, WORD_BYTES)
    return [Fact("scratchpad", following, "following is pc + 4, its low half and carry", unless=FAULT),
            Fact("scratchpad", implies(_jumps(), carried), "carried is the carry of pc + immediate", unless=FAULT)]
