"""Pointer functions: instructions read as data, changed and written back.

Operand a is an instruction. Operand b is a constant column that names the field: for `incr_pointer` it holds 1 in the
rows of the field, for `reset_pointer` the new pointer's ±1 bits there; elsewhere it is 0.
"""

from __future__ import annotations

from collections.abc import Sequence

from punchcard.machines.fleq.blocks.block import Block, Scale
from punchcard.machines.fleq.blocks.enclosure import Enclosure
from punchcard.machines.fleq.blocks.lemmas import ElementwiseLemma
from punchcard.machines.fleq.blocks.transport import Beside
from punchcard.machines.fleq.blocks.workspace import Workspace
from punchcard.machines.fleq.functions import Function, Shape
from punchcard.primitives.bits import successor_bits
from punchcard.transformer.expression import Expression, gated, relu, stack


def _one_column(a: Shape, b: Shape | None = None) -> Shape:
    return a


class ResetPointer(Block):
    """The field named by b takes b's bits: a + 2 b clipped to ±1 is b where b is a bit, and a where b is 0."""

    reads_instructions = True

    def __init__(self) -> None:
        self.function = Function("reset_pointer", 2, _one_column, lambda a, b: a)
        self.transport = Beside()
        self.lemma = ElementwiseLemma(lambda work, a, b: self.formula(a, b, work.one))

    def formula(self, a: Expression, b: Expression, one: Expression) -> Expression:
        """Rows beyond the instruction's own stay 0: x = 0 gives 2 * 0.5 - 1 = 0."""
        x = a + 2 * b
        return 2 * relu(x + 0.5 * one) - 2 * relu(x - 0.5 * one) - one

    def finish(self, work: Workspace, off: Expression) -> Expression:
        return gated(self.formula(work.left, work.operand, work.one), off, work.gate)

    def enclosure(self, scale: Scale) -> Enclosure:
        return Enclosure(0.0, 0.0, "all bits")


class IncrPointer(Block):
    """The field named by b counts on by one, modulo 2^L."""

    reads_instructions = True

    def __init__(self, fields: Sequence[slice]) -> None:
        self.function = Function("incr_pointer", 2, _one_column, lambda a, b: a)
        self.transport = Beside()
        self.lemma = ElementwiseLemma(lambda work, a, b: self.formula(a, b, work.one))
        self.fields = fields

    def formula(self, a: Expression, b: Expression, one: Expression) -> Expression:
        changes: list[Expression] = []
        end = 0
        for field in self.fields:
            bits, chosen, following = a[field], b[field], successor_bits(a[field], one)
            if field.start > end:
                changes.append(0 * a[end : field.start])
            for i in range(bits.size):
                # b is 1 in the field that counts on. The terms are integers below 2^(L+3), so this small gate is exact.
                changes.append(gated(following[i] - bits[i], one - chosen[i], 2.0 ** (bits.size + 3)))
            end = field.stop
        rest = a[end:]
        return a + stack(*changes, *([0 * rest] if rest.size else []))

    def finish(self, work: Workspace, off: Expression) -> Expression:
        return gated(self.formula(work.left, work.operand, work.one), off, work.gate)

    def enclosure(self, scale: Scale) -> Enclosure:
        return Enclosure(0.0, 0.0, "all bits")
