"""Design "paper": the layout and the seven steps of the paper's appendix, 9 + max l_i layers.

    step 1   layer 1         read the instruction into all s columns; pointers a + i, b + i, c + i; masks
    step 2   layer 2         read the operands, a head for each; mask them
    step 3   layer 3         move them to the rows of the function that is called
    step 4   l_i layers      the function blocks, side by side in rows and heads of their own
    step 5   next layer      move the result back
    step 6   next layer      write it
    step 7   four layers     read the flag; flag and program counter + 1; select; error correction of the program counter

Columns 0 .. d - 1 of the scratchpad are for operand a, d .. 2 d - 1 for b, 2 d .. 3 d - 1 for the result. Departures
from the print: the operands have widths of their own; masks and the function's gate are rows that are exactly 0 where
they are open; a column of the result is erased and then added, since an averaging write would round.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from punchcard.card.layout import Layout, RowBlock, holding
from punchcard.machines.fleq.blocks.block import Block
from punchcard.machines.fleq.blocks.lemmas import LemmaWorkspace
from punchcard.machines.fleq.blocks.workspace import Workspace, one_hot
from punchcard.machines.fleq.designs.base import GATE, FleqDesign, FleqSizes
from punchcard.machines.fleq.facts import card_facts
from punchcard.primitives.bits import correct, increment_bits, integer_flag, select
from punchcard.primitives.memory import ADDRESS_GAP
from punchcard.transformer.build import Part, assign, attend, clear
from punchcard.transformer.expression import Array, Expression, gated, stack


class PaperFleqDesign(FleqDesign):
    """9 + max l_i layers, with the heads of all blocks side by side."""

    name: ClassVar[str] = "paper"

    def arrange(self, size: int, memory: int, instructions: int) -> None:
        columns = max(b.lemma.columns(size) for b in self.blocks)
        self.sizes = FleqSizes(size, memory, instructions, tuple(b.name for b in self.blocks), columns)
        self.terms = max(b.lemma.terms for b in self.blocks)

    def _constants(self, q: int) -> dict[str, list[float]]:
        """Rows that never change: for each name, the values in column q of the scratchpad."""
        d, part, lane = self.sizes.size, q // self.sizes.size, q % self.sizes.size  # parts 0: a, 1: b, 2: c
        found: dict[str, list[float]] = {
            "lane": [float(lane >> k & 1) for k in range(max(1, (d - 1).bit_length()))],
            "grid_lane": one_hot(d, lane if q < d * d else None),
            "grid_group": one_hot(d, part if q < d * d else None),
            "first_group_lane": one_hot(d, lane if q < d else None),
            "term": one_hot(self.terms, q if q < self.terms else None),
        }
        for number, x in enumerate("abc"):
            found[f"{x}_lane"] = one_hot(d, lane if part == number else None)
            found[f"in_{x}"] = [float(part == number)]
            found[f"not_{x}"] = [float(part != number)]
        for name in ("a_lane", "b_lane", "grid_group", "term"):
            found[f"not_{name}"] = [1 - value for value in found[name]]
        for block in self.blocks:
            for name, values in block.lemma.constants.items():
                found[f"{block.name}_{name}"] = [float(values[q]) if q < len(values) else 0.0]
        return found

    def weights(self, sizes: FleqSizes, layout: Layout) -> int:
        """Heads of all blocks side by side, five more, and hidden units as many as four times the rows."""
        heads = 5 + sum(b.lemma.depth - 1 + b.lemma.heads for b in self.blocks)
        return (heads + 8) * layout.width**2

    def _layout(self) -> Layout:
        d, length = self.sizes.size, self.sizes.pointer_bits
        pad, outside = "scratchpad", FleqSizes.OUTSIDE
        blocks = self.shared_rows()
        blocks += [
            RowBlock("a_pointer", length, "a + i"),
            RowBlock("b_pointer", length, "b + i"),
            RowBlock("shut_a", 1, "0: column i of a is read here"),
            RowBlock("shut_b", 1, "0: column i of b is read here"),
            RowBlock("shut_c", 1, "0: column i of the result is here"),
            RowBlock("off", len(self.blocks), "0 for the function that is called",
                     parts=dict.fromkeys([b.name for b in self.blocks], 1)),
            RowBlock("read_a", self.height, "mem[a + i]"),
            RowBlock("read_b", self.height, "mem[b + i]"),
            RowBlock("operand", self.height, "the scratchpad's memory"),
        ]
        blocks += [RowBlock(name, len(values), holds=holding("fixed", pad)) for name, values in self._constants(0).items()]
        blocks += [RowBlock(name, 1, "1: not live in a soft match", holds=holding("fixed", pad, *outside))
                   for name in ("not_ab", "not_ac", "not_constant")]
        for block in self.blocks:
            height = self._height(block)
            blocks += [RowBlock(f"{block.name}_x", height), RowBlock(f"{block.name}_result", height)]
            blocks += [RowBlock(f"{block.name}_{name}", size) for name, size in block.lemma.rows(d, height).items()]
        return Layout(blocks, self.sizes.regions,
                      lambda: card_facts(self.sizes, self.blocks, self.standing, merged=True))

    def _standing(self) -> dict[tuple[str, str], Array]:
        d, s = self.sizes.size, self.sizes.scratchpad
        columns = [self._constants(q) for q in range(s)]
        found = {(name, "scratchpad"): np.array([column[name] for column in columns]).T for name in columns[0]}
        live = {"not_ab": range(2 * d), "not_ac": [*range(d), *range(2 * d, 3 * d)], "not_constant": range(0)}
        for name, open_ in live.items():
            found[name, "scratchpad"] = np.array([[float(q not in open_) for q in range(s)]])
            for region in FleqSizes.OUTSIDE:
                found[name, region] = np.array([[float(not (name == "not_constant" and region in ("zero", "unit")))]])
        return found

    def _height(self, block: Block) -> int:
        return self.height if block.reads_instructions else self.sizes.size

    def formulas(self, work: Workspace) -> list[Part]:
        lemmas = [block.lemma.layers(LemmaWorkspace(**vars(work), name=block.name, columns=self.sizes.columns))
                  for block in self.blocks]
        depth = max(len(layers) for layers in lemmas)
        return [
            self._step_1(),
            self._step_2(),
            self._step_3(),
            *(sum((layers[i] for layers in lemmas if i < len(layers)), start=Part()) for i in range(depth)),
            self._step_5(),
            self._step_6(),
            *self._step_7(),
        ]

    def _step_1(self) -> Part:
        halted = self.row("halted")
        part = self.read_instruction()
        for x in "ab":
            part += assign(self.row(f"{x}_pointer"), self.pointer({x: None}))
        part += assign(self.row("write_pointer"), self.pointer({"c": None}))
        for x in "abc":
            # in part x: 0 below the width, 1 beyond it; in the other parts: 1
            part += assign(self.row(f"shut_{x}"), self.row(f"not_{x}") + gated(
                self.beyond(f"{x}_width"), self.row(f"not_{x}"), 4.0 * (self.sizes.size + 1)))
        return part + self.off_rows() + self.heights() + assign(halted, self.field("halt"))

    def _step_2(self) -> Part:
        """Two heads read; the masks keep column i of a in part a and column i of b in part b."""
        data, position, outside = self.rows("data", "position", "outside")
        part = Part()
        total: Expression = 0 * self.row("operand")
        for x in "ab":
            read = self.row(f"read_{x}")
            part += attend(query=self.row(f"{x}_pointer"), key=position, value=data[: self.height], into=read,
                           gap=ADDRESS_GAP)
            part += clear(read)
            total = total + gated(read, self.row(f"shut_{x}") + outside, GATE)
        return part + assign(self.row("operand"), total)

    def _step_3(self) -> Part:
        part = clear(self.row("operand"))
        for block in self.blocks:
            x, off = self.row(f"{block.name}_x"), self.row(f"off.{block.name}")
            closed = off + self.row("deep") if block.lemma.masks_height else off
            part += assign(x, gated(self.row("operand")[: x.size], closed, GATE))
        return part

    def _step_5(self) -> Part:
        """Collect the result in part c; only the function that was called has one."""
        shut, outside, one = self.rows("shut_c", "outside", "scratch")
        result = self.row("result")
        total: Expression = 0 * result
        called: Expression = 0 * one
        for block in self.blocks:
            off, own = self.row(f"off.{block.name}"), self.row(f"{block.name}_result")
            value = gated(own, off + shut + outside, GATE)
            rest = result[own.size :]
            total = total + (stack(value, 0 * rest) if rest.size else value)
            called = called + gated(one, off + shut, GATE)
        return assign(result, total) + assign(self.row("writes"), called)

    def _step_6(self) -> Part:
        names = [f"{b.name}_{name}" for b in self.blocks
                 for name in ("x", "result", *b.lemma.rows(self.sizes.size, self._height(b)))]
        temporaries = [name for name in self.SHARED_TEMPORARIES if name != "current"]
        temporaries += ["a_pointer", "b_pointer", "shut_a", "shut_b", "shut_c", "off"]
        return self.store(None) + self.erase() + self.clear_all([*temporaries, *names])

    def _step_7(self) -> list[Part]:
        data, incoming, outside, one = self.rows("data", "incoming", "outside", "scratch")
        pc, flag, current = self.rows("program_counter", "flag", "current")
        return [
            self.look_up(self.field("flag"), data[0] + incoming[0] + self.flag_shift * outside, flag) + self.merge(),
            assign(flag, integer_flag(flag - self.flag_shift * one, one)) + assign(pc, increment_bits(pc, one)),
            assign(pc, select(flag, yes=self.field("p"), no=pc, one=one)) + clear(flag) + clear(current),
            assign(pc, correct(pc)),
        ]
