"""Design "compact": one FLEQ instruction in four layers.

    1  fetch     every scratchpad column reads the instruction; it works out what it is to read and where to write
    2  read      every scratchpad column reads its column of its operand
    3  function  the blocks' transports, soft and hard, in one head; then their formulas
    4  write     a memory column takes the result that names it; the scratchpad reads the flag and branches

Columns that have nothing to read find the column of zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import ClassVar

import numpy as np

from punchcard.card.layout import Layout, RowBlock, holding
from punchcard.errors import SizeError
from punchcard.machines.fleq.blocks.block import Block
from punchcard.machines.fleq.blocks.transport import Share, Transport
from punchcard.machines.fleq.blocks.workspace import Constant, ScratchColumn, Workspace
from punchcard.machines.fleq.designs.base import FleqDesign, FleqSizes
from punchcard.machines.fleq.facts import card_facts
from punchcard.machines.story import HeadMoves, Quote, Sentence, Story, ValuePlace
from punchcard.primitives.bits import increment_bits, step_and
from punchcard.primitives.memory import ADDRESS_GAP
from punchcard.transformer.build import Part, assign, attend
from punchcard.transformer.expression import Array, Expression, Rows, gated, rows, stack


class CompactDesign(FleqDesign):
    """Four layers; one head a layer, unless a soft product has more."""

    name: ClassVar[str] = "compact"
    operand_rows: ClassVar[tuple[str, ...]] = ("data",)
    """What is read of an operand; the rows are added up."""

    def arrange(self, size: int, memory: int, instructions: int) -> None:
        self.transports = _transports(self.blocks)
        columns: dict[ScratchColumn, None] = {}
        for transport in self.transports:
            columns.update(dict.fromkeys(transport.columns(size)))
        self.columns = tuple(columns)
        alike = groupby(self.columns, key=lambda c: (c.kind, c.kind == "copy" and c.index))
        runs = [sum(1 for _ in run) for _, run in alike]
        self.sizes = FleqSizes(size, memory, instructions, tuple(b.name for b in self.blocks), len(self.columns),
                               tuple(runs))

    def _constants(self) -> list[Constant]:
        """Rows that never change, in the scratchpad: lane, side, and what the transports ask for."""
        d = self.sizes.size
        bits = max(1, (d - 1).bit_length())
        found = {
            c.name: c for c in (
                Constant("lane", bits, lambda c: [float(c.lane >> k & 1) for k in range(bits)]),
                Constant("not_a", 1, lambda c: [float(c.operand != "a")]),
                Constant("not_b", 1, lambda c: [float(c.operand != "b")]),
            )
        }
        for t in self.transports:
            found.update({c.name: c for c in t.constants(d)})
            for name, test in (("asks", t.asks), ("gives", t.gives)):
                found[f"{name}_{t.name}"] = Constant(f"{name}_{t.name}", 1, _indicator(test, d))
        return list(found.values())

    def _layout(self) -> Layout:
        d, length, users = self.sizes.size, self.sizes.pointer_bits, self.users()
        moves = [t.name for t in self.transports]
        blocks = self.shared_rows()
        blocks += [
            RowBlock("read_pointer", length, "the column to read"),
            RowBlock("read_idle", 1, "1: there is nothing to read"),
            RowBlock("write_idle", 1, "1: beyond the result's width"),
            RowBlock("off", len(users), "0 for the function that is called, and its transport",
                     parts=dict.fromkeys(users, 1)),
            RowBlock("operand", self.height, "what was read"),
            RowBlock("left", self.height, "the column of a beside it"),
            RowBlock("active", len(moves), "1: the column asks", parts=dict.fromkeys(moves, 1)),
        ]
        blocks += [RowBlock(c.name, c.size, holds=holding("fixed", "scratchpad")) for c in self._constants()]
        blocks += [RowBlock(f"shut_{t.name}", 1, "1: not live", holds=holding("fixed", "scratchpad", *FleqSizes.OUTSIDE))
                   for t in self.transports if t.soft]
        blocks += [RowBlock(name, size) for t in self.transports for name, size in t.scratch_rows(d)]
        return Layout(blocks, self.sizes.regions, lambda: card_facts(self.sizes, self.blocks, self.standing))

    def _standing(self) -> dict[tuple[str, str], Array]:
        found = {(constant.name, "scratchpad"): np.array([constant.of(column) for column in self.columns]).T
                 for constant in self._constants()}
        for t in self.transports:
            if t.soft:
                found[f"shut_{t.name}", "scratchpad"] = np.array([[float(not t.live(column)) for column in self.columns]])
                for region in FleqSizes.OUTSIDE:
                    live = t.live_constants and region in ("zero", "unit")
                    found[f"shut_{t.name}", region] = np.array([[float(not live)]])
        return found

    def weights(self, sizes: FleqSizes, layout: Layout) -> int:
        """Four layers of one head, further heads of soft products, hidden units as many as rows, and those of transports."""
        heads = 3 + max((getattr(t, "heads", 1) for t in self.transports), default=1)
        return layout.width * ((8 + heads) * layout.width + 2 * sum(t.units(sizes.size) for t in self.transports))

    def formulas(self, work: Workspace) -> list[Part]:
        return [self._fetch(), self._read(work), self._function(work), self._write(work)]

    def story(self, sizes: FleqSizes, layout: Layout) -> Story:
        fetched, height = {"place": Quote(ValuePlace(0, head=0))}, sizes.size
        return (
            (Sentence("The head fetches {place}: {instruction}", fetched),
             Sentence("The ReLU layer decodes it: every scratchpad column knows what to read, and where its result goes.")),
            (Sentence("Every scratchpad column reads its column of an operand: {moves}.",
                      {"moves": HeadMoves(0, ("zero",), "scratchpad", self.operand_rows, height)}),
             Sentence("The ReLU layer sets to 0 what was read beyond an operand's height.")),
            (Sentence("The head brings together what the function needs: {moves}.",
                      {"moves": HeadMoves(0, ("zero",), "scratchpad", ("operand",), height)}),
             Sentence("The ReLU layer computes the function: {instruction}")),
            (Sentence("The head writes the result: {moves}.",
                      {"moves": HeadMoves(0, ("zero", "unit"), rows=("result",), height=height)}),
             Sentence("The ReLU layer erases what was there before, and tests the flag. Next is {next}.",
                      {"next": Quote(ValuePlace(0), "program_counter", names=True)})),
        )

    def _fetch(self) -> Part:
        """Read the instruction and work out what it asks for; merge what was written before."""
        one, pc, halted = self.rows("scratch", "program_counter", "halted")
        return (
            self.read_instruction()
            + self.merge()
            + assign(self.row("read_pointer"), self._read_pointer())
            + assign(self.row("write_pointer"), self.pointer({"c": None}))
            + self._registers()
            + assign(halted, self.field("halt"))
            + assign(pc, increment_bits(pc, one))
        )

    def users(self) -> dict[str, list[str]]:
        return super().users() | {
            t.name: [b.name for b in self.blocks if b.transport.name == t.name] for t in self.transports}

    def _registers(self, of: str = "current", prefix: str = "") -> Part:
        """What follows from an instruction's bits, in rows of 0 and 1 (`facts.REGISTERS`)."""
        return (assign(self.row(f"{prefix}read_idle"), self._nothing_to_read(of))
                + assign(self.row(f"{prefix}write_idle"), self.beyond("c_width", of))
                + self.heights(of, prefix)
                + self.off_rows(of, prefix))

    def _read_pointer(self, of: str = "current") -> Expression:
        """a + i, or b + i."""
        return self.pointer({"a": self.row("not_a"), "b": self.row("not_b")}, of)

    def _nothing_to_read(self, of: str) -> Expression:
        """1 in the columns whose lane is beyond the width of their operand."""
        idle = [gated(self.beyond(f"{x}_width", of), self.row(f"not_{x}"), 4.0 * (self.sizes.size + 1)) for x in "ab"]
        return idle[0] + idle[1]

    def _read(self, work: Workspace) -> Part:
        """Read the operands; prepare them for the transports."""
        return self._operands(work, self.row("data")) + self._prepare(work)

    def _operands(self, work: Workspace, content: Expression) -> Part:
        """Every column reads its column of its operand, or finds the column of zeros."""
        position, outside, sink, pointer, idle = self.rows("position", "outside", "sink", "read_pointer", "read_idle")
        far = 4.0 * self.sizes.pointer_bits
        return attend(query=stack(pointer, outside + idle), key=stack(position, far * sink), value=content[: self.height],
                      into=work.operand, gap=ADDRESS_GAP)

    def _prepare(self, work: Workspace) -> Part:
        part = Part()
        for t in self.transports:
            part += t.prepare(work)
            part += assign(self.row(f"active.{t.name}"), gated(self.row(f"asks_{t.name}"), work.off(t.name), work.gate))
        return part

    def _function(self, work: Workspace) -> Part:
        """The transports' heads, and the blocks' formulas."""
        part = Part()
        shares = {t.name: t.shares(work) for t in self.transports}
        for head in range(max(len(s) for s in shares.values())):
            part += self._head(work, [(t, shares[t.name][head]) for t in self.transports if head < len(shares[t.name])])
        writes: Expression = 0 * work.one
        for t in self.transports:
            closed = work.off(t.name) + self.row("write_idle")
            writes = writes + gated(self.row(f"gives_{t.name}"), closed, work.gate)
        return part + assign(work.result, self._results(work, self.blocks)) + assign(self.row("writes"), writes)

    def _results(self, work: Workspace, blocks: Sequence[Block]) -> Expression:
        """What the transports have brought into `result`, and what these blocks make: only the called one's is not 0."""
        total: Expression = work.result
        for block in blocks:
            value = block.finish(work, work.off(block.name))
            if value is not None:
                rest = work.result[value.size :]
                total = total + (stack(value, 0 * rest) if rest.size else value)
        return total

    def _head(self, work: Workspace, shares: list[tuple[Transport, Share]]) -> Part:
        """One head for several transports: their keys and queries below each other, their values added up.

        A column that asks for nothing here finds the sink. Columns that are not live are kept out of soft matches.
        """
        outside, sink = self.rows("outside", "sink")
        active = [self.row(f"active.{t.name}") for t, _ in shares]
        queries: list[Expression] = [work.big * (outside + work.one - stack(*active).total())]
        keys: list[Expression] = [sink]
        value = np.zeros((self.card.width, self.card.width))
        for (t, share), asks in zip(shares, active, strict=True):
            queries.append(share.query)
            keys.append(share.key)
            if t.soft:
                queries.append(-work.big * asks)
                keys.append(self.row(f"shut_{t.name}"))
            value[share.into.numbers] += share.value.linear
        everything = rows(self.card, *(block.name for block in self.card.blocks))
        written = np.flatnonzero(value.any(axis=1))
        into = Rows("what the transports move", everything.numbers[written], self.card.width)
        moved = Expression(value[written], np.zeros(len(written)), np.zeros((len(written), 0)), value[:0], np.zeros(0))
        return attend(query=stack(*queries), key=stack(*keys), value=moved, into=into, gap=1.0, temperature=1.0)

    def _write(self, work: Workspace) -> Part:
        """Store the result, read the flag, branch, and leave the scratchpad clean."""
        one, pc, flag, p = work.one, self.row("program_counter"), self.row("flag"), self.field("p")
        # flag <= 0 chooses p: pc + 2 [leq and p] - 2 [leq and pc]
        value = flag - self.flag_shift * one
        leq_p, leq_pc = (step_and(-value, bits, one, self.flag_bound) for bits in (p, pc))
        return (
            self.store(self.field("flag"), shift=self.flag_shift)
            + self.erase()
            + assign(pc, pc + 2 * leq_p - 2 * leq_pc)
            + self.clear_all([*self.SHARED_TEMPORARIES, "read_pointer", "read_idle", "write_idle", "off", "operand", "left",
                              "active", *self._own_rows()])
        )

    def _own_rows(self) -> list[str]:
        """The transports' rows, which are 0 between loops."""
        return [name for t in self.transports for name, _ in t.scratch_rows(self.sizes.size)]


def _transports(blocks: Sequence[Block]) -> tuple[Transport, ...]:
    """The blocks' transports; those with the same name are the same, and compute by the same constants."""
    found: dict[str, tuple[Block, Transport]] = {}
    for block in blocks:
        first, transport = found.setdefault(block.transport.name, (block, block.transport))
        if transport.reach != block.transport.reach:
            raise SizeError(f"products {first.name!r} and {block.name!r} have the same heads and another reach: build them "
                            "with one reach, or with different heads")
    return tuple(transport for _, transport in found.values())


def _indicator(test: Callable[[ScratchColumn, int], bool], d: int) -> Callable[[ScratchColumn], list[float]]:
    return lambda column: [float(test(column, d))]
