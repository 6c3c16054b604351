"""What the designs of the FLEQ machine share: sizes, the address map, the instruction's rows, pointers and branches."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from punchcard.budget import PACKED, building, require
from punchcard.card.encoding import Numbers, decode_bits, encode_bits, pointer_bits
from punchcard.card.layout import Card, Cards, Layout, Pattern, Region, RowBlock, holding
from punchcard.errors import SizeError
from punchcard.machines.design import Design
from punchcard.machines.fleq.blocks.block import Block, Scale
from punchcard.machines.fleq.blocks.curves import Curve, Entries
from punchcard.machines.fleq.blocks.workspace import Workspace
from punchcard.machines.fleq.functions import POINTERS
from punchcard.machines.fleq.step_mismatch import Mismatch, step_mismatches
from punchcard.primitives.bits import bit_of, number, step
from punchcard.primitives.memory import ADDRESS_GAP, store_factor, store_gap
from punchcard.transformer.build import Part, assign, attend, clear
from punchcard.transformer.expression import Array, Expression, Rows, gated, rows, stack
from punchcard.transformer.precision import Precision
from punchcard.transformer.softmax import hard_product

MAX_COLUMNS = 1 << 20
TALL = 7
"""Blocks of d rows that every design has: data, incoming, deep, over, result, and two for operands."""
STORED = 8
"""Bytes that a packed card has for every row of a memory column: `data` and `incoming`, of float32 at least."""
LEAST_WEIGHTS = 10
"""No design has fewer weights than this times the square of its rows."""
GATE = 2.0**60
WIDTHS = ("a_width", "b_width", "c_width", "a_height", "c_height")


@dataclass(frozen=True)
class FleqSizes:
    """The sizes of a machine: d, memory columns, instructions, the functions' names, and the scratchpad's columns.

    `groups` are the sizes of runs of scratchpad columns that compute alike.
    """

    size: int
    memory: int
    instructions: int
    functions: tuple[str, ...]
    scratchpad: int
    groups: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.columns > MAX_COLUMNS:
            raise SizeError(f"memory={self.memory}, instructions={self.instructions} and a scratchpad of {self.scratchpad} "
                            f"columns for size={self.size} make a card of {self.columns} columns: the most is {MAX_COLUMNS}")

    @property
    def regions(self) -> tuple[Region, ...]:
        return (
            Region("scratchpad", self.scratchpad, "where functions are computed", groups=self.groups),
            Region("zero", 1, "a column of zeros: the sink, and the flag of an unconditional jump"),
            Region("unit", 1, "a column that holds 1: the flag of an instruction that does not branch"),
            Region("memory", self.memory, "the program's variables and pointer constants"),
            Region("instructions", self.instructions, "the program"),
        )

    OUTSIDE: ClassVar[tuple[str, ...]] = ("zero", "unit", "memory", "instructions")

    @property
    def columns(self) -> int:
        return sum(region.size for region in self.regions)

    @property
    def zero_column(self) -> int:
        return self.scratchpad

    @property
    def unit_column(self) -> int:
        return self.scratchpad + 1

    @property
    def memory_column(self) -> int:
        return self.scratchpad + 2

    @property
    def instruction_column(self) -> int:
        return self.memory_column + self.memory

    @property
    def pointer_bits(self) -> int:
        """L = log n."""
        return pointer_bits(self.columns)

    @property
    def width_bits(self) -> int:
        """Bits of a number from 0 to d."""
        return self.size.bit_length()

    def instruction_parts(self) -> dict[str, int]:
        """The rows of an instruction, all ±1 bits: pointers, widths, a bit for each function, and the halt bit."""
        return {
            **dict.fromkeys(POINTERS, self.pointer_bits),
            **dict.fromkeys(WIDTHS, self.width_bits),
            **{f"call_{name}": 1 for name in self.functions},
            "halt": 1,
        }

    @property
    def instruction_rows(self) -> int:
        return sum(self.instruction_parts().values())

    @property
    def data_rows(self) -> int:
        """A column holds data or an instruction."""
        return max(self.size, self.instruction_rows)

    def field_rows(self, field: str) -> slice:
        """The rows of a field within an instruction."""
        start = 0
        for name, size in self.instruction_parts().items():
            if name == field:
                return slice(start, start + size)
            start += size
        raise SizeError(f"an instruction has no field {field!r}")


def check_room(size: int, memory: int = 0) -> None:
    """Refuse sizes that no design can be built for within the budget, before anything of them is listed."""
    require(building(LEAST_WEIGHTS * (TALL * size) ** 2) + PACKED * STORED * size * memory,
            f"a fleq machine with size={size}" + f" and memory={memory}" * bool(memory), least=True)


@dataclass(frozen=True)
class FleqContent:
    """What is punched: the columns of the memory that a program uses, and a column for each instruction."""

    memory: Array
    code: Array


def flag_shift(bound: float, unit: float) -> float:
    """A number so large that v + shift is on a grid, in a number format: all sums that decide a branch are then exact.

    The step at 0 is a difference of two ReLUs. Of a flag that is an integer but for an error each of the two is rounded for
    itself, and the difference is not 0 or 1. With v + shift from 2^m to 2^(m+1) the head that reads the flag rounds it to
    a multiple of 2^m times 2 u, and so much is left of the format that later sums of it are not rounded. 0 where a format is
    too short for a grid that is finer than the errors that a flag may have.
    """
    power = 32.0 * bound
    return 1.5 * power if flag_grid(bound, unit) <= 1 / 64 else 0.0


def flag_grid(bound: float, unit: float) -> float:
    """The grid that a flag is rounded to."""
    return 32.0 * bound * 2 * unit


class FleqDesign(Design[FleqSizes]):
    """Layout and layers for a set of blocks: what the designs have in common.

    Writing is the same in all: a memory column that the result names takes it, by a store key, into rows `incoming`,
    and erases what it held; a later layer adds the two, one of which is 0. So an overwrite is exact, where old + (new
    - old) would round.
    """

    idle: ClassVar[int] = 1  # the loop that reads a halt
    exact: ClassVar[bool] = False
    column_pointers: ClassVar[tuple[str, ...]] = ("position", "program_counter", "read_pointer", "write_pointer",
                                                  *(f"current.{pointer}" for pointer in POINTERS))
    blocks: tuple[Block, ...]
    range: float
    sizes: FleqSizes
    card: Layout
    height: int
    scale: Scale
    """What the blocks' error bounds depend on, once it is known in which number format the layers are."""
    flag_bound: float
    flag_shift: float
    """A flag is read with this added to it: see `flag_shift`."""

    def with_blocks(
        self, size: int, memory: int, instructions: int, blocks: Sequence[Block], range: float = 16.0
    ) -> Self:
        """The design for a set of blocks and a range. How many columns and rows it has follows from them."""
        design = copy(self)
        design.blocks, design.range = tuple(blocks), range
        design.arrange(size, memory, instructions)
        design.height = design.sizes.data_rows if any(b.reads_instructions for b in blocks) else size
        design.card = design._limited(design._layout())
        return design

    @abstractmethod
    def arrange(self, size: int, memory: int, instructions: int) -> None:
        """Set `sizes`: the columns that the blocks need."""

    @abstractmethod
    def _layout(self) -> Layout:
        """The rows and regions of the card."""

    @abstractmethod
    def formulas(self, work: Workspace) -> list[Part]:
        """The layers, first to last."""

    @abstractmethod
    def _standing(self) -> dict[tuple[str, str], Array]:
        """What never changes, by block and region: rows by columns, or one column for all."""

    @cached_property
    def standing(self) -> Mapping[tuple[str, str], Array]:
        """The same, worked out once: every card that is punched has it."""
        return self._standing()

    def step_mismatches(self, card: Card, after: Card) -> Iterator[Mismatch]:
        """Where a card after a loop is not what the step makes of the card before."""
        return step_mismatches(self, card, after)

    def layout(self, sizes: FleqSizes) -> Layout:
        return self.card

    def layers(self, sizes: FleqSizes, layout: Layout, precision: Precision) -> list[Part]:
        self.scale = Scale(sizes.size, self.range, precision.unit)
        self.flag_bound = 2.0 ** math.ceil(math.log2(self.range + 2))
        self.flag_shift = flag_shift(self.flag_bound, precision.unit)
        return self.formulas(Workspace(layout, sizes.size, GATE, self._big(precision), self.scale.reach, precision.unit))

    def punch(self, sizes: FleqSizes, layout: Layout, content: FleqContent, card: Card) -> None:
        self.punch_constants(card)
        memory = np.zeros((sizes.data_rows, sizes.memory))
        memory[:, : content.memory.shape[1]] = content.memory
        layout.put(card, "data", "memory", memory)
        layout.put(card, "data", "instructions", content.code)

    def read(self, sizes: FleqSizes, layout: Layout, card: Cards) -> tuple[Array, Numbers]:
        """The memory, rows by columns, and the number of the next instruction, of a card or of each card of a batch."""
        return self.memory(card), self._counters(card)

    def memory(self, card: Cards) -> Array:
        """A column's content is `data` + `incoming`, one of which is 0 where a column has just been written."""
        return self.contents(card, "memory")[..., : self.sizes.size, :].astype(np.float64)

    def counter(self, card: Card) -> int:
        """The number of the next instruction."""
        return int(self._counters(card))

    def _counters(self, card: Cards) -> Numbers:
        column = self.card.numbers(card, "program_counter", "scratchpad", slice(1))[..., 0]
        return np.asarray(column - self.sizes.instruction_column)

    def contents(self, card: Cards, region: str) -> Array:
        """The columns of a region, whole: data, and what has just been written."""
        return self.card.array(card, "data", region) + self.card.array(card, "incoming", region)

    def instruction(self, card: Card, number: int) -> Array:
        """The column of an instruction, as an array of its own."""
        return self.contents(card, "instructions")[:, number].copy()

    def fields(self, instruction: Array, names: Iterable[str] | None = None) -> dict[str, int]:
        """The fields in an instruction's column, or some of them, as numbers."""
        return {name: int(decode_bits(instruction[self.sizes.field_rows(name), None])[0])
                for name in names or self.sizes.instruction_parts()}

    def pointers(self, instruction: Array) -> dict[str, int]:
        """The pointers in an instruction's column, as memory columns and (p) as an instruction's number."""
        memory, code = self.sizes.memory_column, self.sizes.instruction_column
        return {name: address - (code if name == "p" else memory)
                for name, address in self.fields(instruction, POINTERS).items()}

    def next_is(self, instruction: int) -> Pattern:
        """What is on the card when an instruction is next."""
        bits = encode_bits(self.sizes.instruction_column + instruction, self.sizes.pointer_bits)[:, 0]
        return Pattern("program_counter", "scratchpad", tuple(int(bit) for bit in bits))

    def halting(self, sizes: FleqSizes) -> tuple[Pattern, ...]:
        return (Pattern("halted", "scratchpad", (1,)),)

    def _limited(self, layout: Layout) -> Layout:
        """How large entries may get: results may overshoot the range by their errors, and no more."""
        limits = dict.fromkeys(("data", "incoming"), 2 * max(self.range, 1.0))
        tables = {f"{curve.name}_{row}": values for curve in self._curves() for row, values in curve.constants.items()}
        for block in layout.blocks:  # the rows of a curve's table carry its name, in some form
            values = tables.get(block.name.removeprefix("curve_"))
            if values is not None:
                limits[block.name] = float(np.max(np.abs(values)))
        return layout.limited(limits)

    def _curves(self) -> list[Curve]:
        return [block.transport.curve for block in self.blocks if isinstance(block.transport, Entries)]

    def _big(self, precision: Precision) -> float:
        """Decides every match beside the largest score of a soft one, also of values up to twice the range."""
        scores = [block.transport.largest_score(self.range) for block in self.blocks]
        # The best score of a curve is 0 or more within its domain. An engine that knows no domain must see it above -B too:
        # for it an operand is a sum over all columns.
        scores += [-curve.best_score(2 * self.range * self.sizes.columns) for curve in self._curves()]
        return 2.0 ** math.ceil(math.log2(hard_product(precision.name) + 4 * max(self.range, *scores, 0.0)))

    def shared_rows(self) -> list[RowBlock]:
        """Rows that all designs have."""
        sizes, length = self.sizes, self.sizes.pointer_bits
        outside, pad, stored = FleqSizes.OUTSIDE, "scratchpad", ("memory", "instructions")
        return [
            RowBlock("data", sizes.data_rows, "memory and instructions", holds=holding("real", "unit", *stored),
                     changes=stored),
            RowBlock("incoming", sizes.data_rows, "a column that has just been written", holds=holding("real", *stored),
                     changes=stored),
            RowBlock("position", length, "each column's own number", holds=holding("bits", *outside)),
            RowBlock("outside", 1, "indicator of all but the scratchpad", holds=holding("one", *outside)),
            RowBlock("sink", 1, "indicator of the column of zeros", holds=holding("one", "zero")),
            RowBlock("unit", 1, "indicator of the column that holds 1", holds=holding("one", "unit")),
            RowBlock("scratch", 1, "indicator of the scratchpad", holds=holding("one", pad)),
            RowBlock("program_counter", length, "the next instruction's column", holds=holding("bits", pad), changes=(pad,)),
            RowBlock("halted", 1, "+1 once a halt has been read", holds=holding("bits", pad), changes=(pad,)),
            RowBlock("current", sizes.instruction_rows, "the instruction", parts=sizes.instruction_parts(), within="bits",
                     selects=tuple(part for part in sizes.instruction_parts() if part not in POINTERS)),
            RowBlock("write_pointer", length, "the column to write to"),
            RowBlock("deep", sizes.size, "1: beyond the height of operand a"),
            RowBlock("over", sizes.size, "1: beyond the result's height"),
            RowBlock("result", self.height, "what is written"),
            RowBlock("writes", 1, "1: the result here is to be written"),
            RowBlock("stale", 1, "1: the column was not written"),
            RowBlock("flag", 1, "mem[flag]"),
        ]

    # Rows that are 0 between loops, whatever a design adds.
    SHARED_TEMPORARIES: ClassVar[tuple[str, ...]] = (
        "current", "write_pointer", "deep", "over", "result", "writes", "stale", "flag")

    def rows(self, *names: str) -> list[Rows]:
        return [rows(self.card, name) for name in names]

    def row(self, name: str) -> Rows:
        return rows(self.card, name)

    def field(self, name: str, of: str = "current") -> Rows:
        """A field of the instruction that has been read, or that is in other rows."""
        return self.row(f"{of}.{name}")

    def lane(self, bits: int) -> Expression:
        """The lowest bits of a column's lane, as a number."""
        lane = self.row("lane")[:bits]
        return lane.total([2.0**k for k in range(lane.size)])

    def read_instruction(self) -> Part:
        """Every scratchpad column reads the instruction."""
        data, incoming, pc, current = self.rows("data", "incoming", "program_counter", "current")
        return self.look_up(pc, data[: current.size] + incoming[: current.size], current)

    def look_up(self, pointer: Rows, value: Expression, into: Rows) -> Part:
        """Every scratchpad column reads where its pointer leads; all others find the column of zeros."""
        position, outside, sink = self.rows("position", "outside", "sink")
        return attend(query=stack(pointer, outside), key=stack(position, 2 * sink), value=value, into=into, gap=ADDRESS_GAP)

    def pointer(self, fields: Mapping[str, Expression | None], of: str = "current") -> Expression:
        """±1 bits of field + lane, modulo 2^L. Of several fields, the one whose gate is 0 in the column."""
        one = self.row("scratch")
        closed = {name: None if gate is None else (8.0, gate) for name, gate in fields.items()}
        return 2 * self.lane_bits({name: self.field(name, of) for name in fields}, closed) - one

    def lane_bits(self, numbers: Mapping[str, Rows], closed: Mapping[str, tuple[float, Expression] | None]) -> Expression:
        """0 or 1: the bits of a number + lane, modulo 2^L. A number whose gate (times 2^i) is closed counts as 0."""
        one, bits = self.row("scratch"), []
        for i in range(self.sizes.pointer_bits):
            total: Expression = 0 * one
            for name, word in numbers.items():
                s = number(word[: i + 1], one) + self.lane(i + 1)
                gate = closed[name]
                if gate is not None:
                    s = s - gate[0] * 2.0**i * gate[1]
                total = total + bit_of(s, i, 0, (4 << i) - 1, one)
            bits.append(total)
        return stack(*bits)

    def beyond(self, width: str, of: str = "current") -> Expression:
        """1 in the columns whose lane is not below the instruction's `width`."""
        one = self.row("scratch")
        return step(self.lane(self.sizes.width_bits) - number(self.field(width, of), one), one)

    def below(self, field: str, of: str = "current") -> Expression:
        """1 in the rows beyond a height of the instruction: that of operand a, or of the result."""
        one = self.row("scratch")
        height = number(self.field(field, of), one)
        return stack(*(step(r * one - height, one) for r in range(self.sizes.size)))

    def heights(self, of: str = "current", prefix: str = "") -> Part:
        """`deep` and `over`: 1 in the rows beyond the height of operand a, and of the result."""
        return (assign(self.row(f"{prefix}deep"), self.below("a_height", of))
                + assign(self.row(f"{prefix}over"), self.below("c_height", of)))

    def off_rows(self, of: str = "current", prefix: str = "") -> Part:
        """Exactly 0 where one of its users is called, else 1. A row, so that a gate of any size is exact."""
        part, one, off = Part(), self.row("scratch"), self.row(f"{prefix}off")
        for place, users in enumerate(self.users().values()):
            calls = stack(*(0.5 * (self.field(f"call_{user}", of) + one) for user in users)).total()
            part += assign(off[place], one - calls)
        return part

    def users(self) -> dict[str, list[str]]:
        """For each row of `off` the functions that open it."""
        return {block.name: [block.name] for block in self.blocks}

    def store(self, flag_query: Expression | None, flag_result: Expression | None = None, shift: float = 0.0) -> Part:
        """The head that writes: memory columns find the result that names them, or themselves.

        The scratchpad finds the flag's cell, or the result when it is written there, so that flag = c sees the new
        value: the result's first row, unless `flag_result` is another one. It is read with `shift` added to it.
        """
        data, incoming, position, outside, one, pointer, writes, result = self.rows(
            "data", "incoming", "position", "outside", "scratch", "write_pointer", "writes", "result")
        stale, flag = self.rows("stale", "flag")
        length = self.sizes.pointer_bits
        far = 4.0 * length
        query = position if flag_query is None else position + flag_query
        read = data[0] + (result[0] if flag_result is None else flag_result)
        into = np.concatenate([incoming.numbers[: self.height], stale.numbers, flag.numbers])
        return attend(
            query=stack(query, outside + one),
            key=stack(store_factor(length) * position + pointer, far * writes - far * one),
            value=stack(result, outside, read + shift * (outside + one)),
            into=Rows("incoming, stale and flag", into, self.card.width),
            gap=store_gap(length),
        )

    def erase(self) -> Part:
        """Erase what a written column held; nothing arrives in the scratchpad itself."""
        data, incoming, outside, stale = self.rows("data", "incoming", "outside", "stale")
        return (assign(data, data - gated(data, stale, GATE))
                + assign(incoming, incoming - gated(incoming, outside, GATE)))

    def merge(self) -> Part:
        """Add what was written to what was erased; one of the two is 0."""
        data, incoming = self.rows("data", "incoming")
        return assign(data, data + incoming) + clear(incoming)

    def clear_all(self, names: Sequence[str]) -> Part:
        return sum((clear(row) for row in self.rows(*names)), start=Part())

    def punch_constants(self, card: Card) -> None:
        """All that does not depend on the program: positions, indicators, constants and the initial program counter."""
        sizes, layout = self.sizes, self.card
        for region in FleqSizes.OUTSIDE:
            place = layout.region(region)
            layout.put_numbers(card, region, {"position": np.arange(place.start, place.stop)})
            layout.put(card, "outside", region, 1.0)
        layout.put(card, "sink", "zero", 1.0)
        layout.put(card, "unit", "unit", 1.0)
        layout.put(card, "data", "unit", np.eye(sizes.data_rows, 1))
        layout.put(card, "scratch", "scratchpad", 1.0)
        layout.put_numbers(card, "scratchpad", {"program_counter": [sizes.instruction_column] * sizes.scratchpad})
        layout.put(card, "halted", "scratchpad", -1.0)
        for (name, region), values in self.standing.items():
            layout.put(card, name, region, values if region == "scratchpad" else float(values[0, 0]))
