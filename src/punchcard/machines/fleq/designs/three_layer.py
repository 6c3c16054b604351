"""Design "three-layer": one FLEQ instruction in three layers, the next one fetched while it computes.

    layer       heads          scratchpad                                              memory
    1 read      1              operand := mem[a + i] or mem[b + i]                     data := data + incoming
    2 function  soft + 2 or 3  current := mem[pc + 1], jump := mem[p]; the function    -
    3 write     1              v := mem[flag], or the result that goes there           incoming := result, data := 0

The four layers of the compact design are fetch, read, function, write. Each waits for the one before, and the next fetch
waits for the branch. So both instructions that may come next are fetched beside the function, in heads of their own, and
both are worked out, in the scratchpad's column for lane i:

    y.pointer = y.a + i or y.b + i,   y.idle, y.deep, y.over, y.off            for y = current, jump

The last layer then only chooses, for every bit r of these registers and of the instruction itself,

    r := current.r + 2 [v <= 0 and jump.r] - 2 [v <= 0 and current.r]

(for a register of 0 and 1, without the 2). A loop begins with the registers of its instruction. What the gates of reals ask
for are rows that are exactly 0, not ±1 bits: so these registers are 0 or 1, and the layout says that they follow from the
instruction's bits. `program_counter` names the instruction that the registers are of. From layer 2 on `current` is the
instruction after it: the pointers that are still asked for, flag, p and c, are kept apart in layer 1.

**An instruction that changes the next one** (a pointer function with c = pc + 1 or c = p). What was fetched is old. With
m_y = [c is the column of y], found in layer 1, and v' = mem[flag] read in layer 2 (a pointer function writes no memory, so
that v' = v):

    forward = [m_next and v' >= 1] + [m_jump and v' <= 0]            the next instruction is the one that was changed
    ask     = c if m_next or m_jump, else flag                       what the scratchpad asks for in layer 3

The scratchpad finds the changed instruction by the store key, in its own rows `incoming`, and v is set beforehand, to 0
or 1. Where `forward` is 1, the five pointers are taken from there, and a + i, b + i are worked out once more. Widths,
heights, calls and the halt bit are what they were: no function changes them.

After the last instruction comes itself, so that every fetch finds a column.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from punchcard.card.encoding import encode_bits
from punchcard.card.layout import Card, Layout, RowBlock, holding
from punchcard.machines.fleq.blocks.workspace import Workspace
from punchcard.machines.fleq.designs.base import GATE, FleqContent, FleqSizes
from punchcard.machines.fleq.designs.compact import CompactDesign
from punchcard.machines.fleq.facts import REGISTERS, card_facts, register_facts
from punchcard.machines.fleq.functions import POINTERS
from punchcard.machines.story import Sentence, Story
from punchcard.primitives.bits import increment_bits, number, step, step_and
from punchcard.transformer.build import Part, assign, clear
from punchcard.transformer.expression import Array, Expression, Rows, gated, relu, stack

REWRITES = "rewrites"
"""The row of `off` that is 0 when a pointer function is called."""


class ThreeLayerFleqDesign(CompactDesign):
    """Three layers; one head in the first and the last, two or three more than the soft product's in the second."""

    name: ClassVar[str] = "three-layer"
    operand_rows = ("data", "incoming")

    @property
    def pointer_functions(self) -> list[str]:
        return [block.name for block in self.blocks if block.reads_instructions]

    @property
    def kept(self) -> list[str]:
        """The pointers that are asked for once the next instruction is in the place of this one."""
        return ["flag", "p", *(["c"] if self.pointer_functions else [])]

    def users(self) -> dict[str, list[str]]:
        rewriting = {REWRITES: self.pointer_functions} if self.pointer_functions else {}
        return super().users() | rewriting

    def story(self, sizes: FleqSizes, layout: Layout) -> Story:
        _, read, function, write = super().story(sizes, layout)
        return (read, (Sentence("The heads bring together what the function needs, and fetch both instructions that may be "
                                "next."), function[1]), write)

    def _layout(self) -> Layout:
        sizes, pad, blocks = self.sizes, ("scratchpad",), []
        for block in super()._layout().blocks:
            if block.name in ("current", "read_pointer"):
                block = replace(block, holds=holding("bits", *pad), changes=pad)
            elif block.name in REGISTERS:
                block = replace(block, holds=holding("real", *pad), changes=pad, limit=1.0, follows=True)
            blocks.append(block)
        return Layout([*blocks, *self._ahead(blocks)], sizes.regions, lambda: [
            *card_facts(sizes, self.blocks, self.standing, in_place=True),
            *register_facts(sizes, self.columns, self.users())])

    def _ahead(self, others: Iterable[RowBlock]) -> list[RowBlock]:
        """Rows for the instructions that may come next, which the compact design has not. A loop leaves them clean."""
        sizes, length = self.sizes, self.sizes.pointer_bits
        sized = {block.name: block.size for block in others}
        blocks = [
            RowBlock("following", length, "pc + 1"),
            RowBlock("kept", len(self.kept) * length, "pointers of the instruction", dict.fromkeys(self.kept, length)),
            RowBlock("jump", sizes.instruction_rows, "the instruction that p names", sizes.instruction_parts(),
                     within="bits"),
            RowBlock("jump_pointer", length, "the column that it is to read"),
            *(RowBlock(f"jump_{name}", sized[name], "of the instruction that p names") for name in REGISTERS),
        ]
        if self.pointer_functions:
            blocks += [
                RowBlock("meets", 2, "1: the instruction is changed that comes next", {"next": 1, "jump": 1}),
                RowBlock("flag_before", 1, "mem[flag] before the write"),
                RowBlock("ask", length, "what the scratchpad asks for when the result is written"),
                RowBlock("forward", 1, "1: the next instruction is the one that was changed"),
                RowBlock("as_fetched", 1, "1: it is not"),
                RowBlock("plain", 1, "0: a pointer function is called"),
                RowBlock("flag_result", 1, "the result's first row, of functions that may write a flag"),
            ]
        return blocks

    def weights(self, sizes: FleqSizes, layout: Layout) -> int:
        """Three heads of the fetch more than the compact design, and hidden units for two instructions."""
        return super().weights(sizes, layout) + 4 * layout.width**2

    def formulas(self, work: Workspace) -> list[Part]:
        return [self._first(work), self._second(work), self._third()]

    def _first(self, work: Workspace) -> Part:
        """Read the operands, prepare them; where to write, and what follows; merge what was written before."""
        data, incoming, one, pc, halted = self.rows("data", "incoming", "scratch", "program_counter", "halted")
        last = self.sizes.columns - 1
        stays = encode_bits(last, pc.size)[:, 0] - encode_bits((last + 1) % (1 << pc.size), pc.size)[:, 0]
        at_end = step(number(pc, one) - last * one, one)
        part = (
            self._operands(work, data + incoming)
            + self.merge()
            + self._prepare(work)
            + assign(self.row("write_pointer"), self.pointer({"c": None}))
            + assign(self.row("following"), increment_bits(pc, one) + stack(*(float(bit) * at_end for bit in stays)))
            + assign(halted, self.field("halt"))
            + assign(self.row("kept"), stack(*(self.field(name) for name in self.kept)))
            + clear(self.row("current"))
        )
        if self.pointer_functions:
            shut = 4.0 * self.sizes.columns * self.row(f"off.{REWRITES}")
            c = number(self.field("c"), one)
            for name, column in (("next", number(pc, one) + one), ("jump", number(self.field("p"), one))):
                # [c >= y] + [c <= y] is 2 or 1; all three are 0 where no pointer function is called
                met = step(c - column - shut, one) + step(column - c - shut, one) - (one - self.row(f"off.{REWRITES}"))
                part += assign(self.row(f"meets.{name}"), met)
        return part

    def _second(self, work: Workspace) -> Part:
        """The function; beside it, both instructions that may come next, and what follows from them."""
        part = self._function(work)
        data, current, jump = self.rows("data", "current", "jump")
        part += self.look_up(self.row("following"), data[: current.size], current)
        part += self.look_up(self.row("kept.p"), data[: jump.size], jump)
        part += assign(self.row("read_pointer"), self._read_pointer("current"))
        part += assign(self.row("jump_pointer"), self._read_pointer("jump"))
        part += self._registers("current") + self._registers("jump", "jump_")
        return part + (self._foresee(work) if self.pointer_functions else Part())

    def _foresee(self, work: Workspace) -> Part:
        """Whether the instruction that comes next is being changed, and what the scratchpad asks for then."""
        data, outside, one, read = self.rows("data", "outside", "scratch", "flag_before")
        next_met, jump_met = self.rows("meets.next", "meets.jump")
        before = read - self.flag_shift * one
        flag, c, bound = self.row("kept.flag"), self.row("kept.c"), 2 * self.flag_bound

        def goes_on(met: Expression) -> Expression:
            return step(before - one - bound * (one - met), one)

        forward = goes_on(next_met) + step(-before - bound * (one - jump_met), one)
        met = 2 * (next_met + jump_met)
        # c where the sum of the two is 1 or 2, else the flag
        asks = relu(flag + one - met) - relu(c + one - met) + c
        others = [block for block in self.blocks if not block.reads_instructions]
        return (
            self.look_up(flag, data[0] + self.flag_shift * outside, read)
            + assign(self.row("forward"), forward)
            + assign(self.row("as_fetched"), one - forward)
            + assign(self.row("ask"), asks)
            # the flag as far as it is known: 1 where an instruction that is met continues, else 0
            + assign(self.row("flag"), goes_on(next_met) + goes_on(jump_met) - goes_on(next_met + jump_met - one))
            + assign(self.row("plain"), self.row(f"off.{REWRITES}"))
            + assign(self.row("flag_result"), self._results(work, others)[0])
        )

    def _third(self) -> Part:
        """Store the result, read the flag, choose the registers of the next instruction, leave the rest clean."""
        flag, one, pc, following = self.rows("flag", "scratch", "program_counter", "following")
        value = flag - self.flag_shift * one

        def chosen(go_on: Expression, jump: Expression, least: float) -> Expression:
            """The bit of the instruction that comes next: 1 or `least`, -1 or 0."""
            size = 1 - least
            up = [step_and(-value, 2 / size * (bits - one) + one, one, self.flag_bound) for bits in (jump, go_on)]
            return go_on + size * up[0] - size * up[1]

        current, pointer = self.row("current"), self.row("read_pointer")
        next_instruction = chosen(current, self.row("jump"), -1.0)
        next_pointer = chosen(pointer, self.row("jump_pointer"), -1.0)
        if self.pointer_functions:
            next_instruction, next_pointer = self._changed(next_instruction, next_pointer)
        part = (self.store(self.row("ask"), self.row("flag_result"), self.flag_shift) if self.pointer_functions
                else self.store(self.row("kept.flag"), shift=self.flag_shift))
        part += self.erase()
        part += assign(pc, chosen(following, self.row("kept.p"), -1.0))
        part += assign(current, next_instruction) + assign(pointer, next_pointer)
        for name in REGISTERS:
            part += assign(self.row(name), chosen(self.row(name), self.row(f"jump_{name}"), 0.0))
        ahead = [block.name for block in self._ahead(self.card.blocks)]
        shared = [name for name in self.SHARED_TEMPORARIES if name not in ("current", "deep", "over")]
        return part + self.clear_all([*ahead, *shared, "operand", "left", "active", *self._own_rows()])

    def _changed(self, fetched: Expression, pointer: Expression) -> tuple[Expression, Expression]:
        """The same, where the instruction has just been changed: its pointers are in `incoming`."""
        incoming, outside, forward, as_fetched, plain = self.rows("incoming", "outside", "forward", "as_fetched", "plain")
        closing = 16 * self.flag_bound  # more than the steps of a choice reach
        # Two gates: bits need a small one, which keeps the sums exact; real numbers, of other functions, a large one.
        small, large = 4.0, GATE
        shut = as_fetched * (small / large) + plain + outside
        fields: dict[str, Rows] = {name: incoming[self.sizes.field_rows(name)] for name in POINTERS}
        bits = stack(*(gated(fields[name], shut, large) for name in POINTERS))
        rest = fetched[bits.size :]
        instruction = stack(gated(fetched[: bits.size], forward, closing) + bits, rest)
        gates = {x: (8.0, self.row(f"not_{x}") + as_fetched + large / 8 * (plain + outside)) for x in "ab"}
        lanes = self.lane_bits({x: fields[x] for x in "ab"}, gates)
        return instruction, gated(pointer, forward, closing) + 2 * lanes - forward

    def punch(self, sizes: FleqSizes, layout: Layout, content: FleqContent, card: Card) -> None:
        super().punch(sizes, layout, content, card)
        self.begin(card, content.code[: sizes.instruction_rows, 0])

    def begin(self, card: Card, instruction: Array) -> None:
        """The registers of the instruction that a run begins with."""
        sizes, columns = self.sizes, self.columns
        has = self.fields(instruction)
        lanes = np.array([column.lane for column in columns])
        starts = np.array([has[column.operand] for column in columns])
        widths = np.array([has[f"{column.operand}_width"] for column in columns])
        self.card.put(card, "current", "scratchpad", np.repeat(instruction[:, None], len(columns), axis=1))
        self.card.put_numbers(card, "scratchpad", {"read_pointer": (starts + lanes) % (1 << sizes.pointer_bits)})
        rows = np.arange(sizes.size)
        called = [any(has[f"call_{user}"] for user in users) for users in self.users().values()]
        registers: Mapping[str, npt.NDArray[np.bool_]] = {
            "read_idle": lanes >= widths, "write_idle": lanes >= has["c_width"], "deep": rows >= has["a_height"],
            "over": rows >= has["c_height"], "off": ~np.array(called)}
        for name, values in registers.items():
            of_column = values[None, :] if name.endswith("idle") else np.repeat(values[:, None], len(columns), axis=1)
            self.card.put(card, name, "scratchpad", of_column.astype(np.float64))
