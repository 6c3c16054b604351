"""Transports: how operands get to where a formula needs them, in the one soft layer of the compact machine.

All transports share one head (or a few). Each adds its own rows to keys, queries and values; these are exactly 0
unless a function that uses the transport is called, so that the others don't notice. A column that asks for nothing
finds the sink, which holds zeros.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from punchcard.machines.fleq.blocks.workspace import Constant, ScratchColumn, Workspace, all_but, one_hot
from punchcard.transformer.build import Part, assign
from punchcard.transformer.expression import Expression, Rows, gated, relu, stack


@dataclass(frozen=True)
class Share:
    """A transport's share of a head: what its columns ask, what is matched, what is moved and where to."""

    query: Expression
    key: Expression
    value: Expression
    into: Rows


class Transport(ABC):
    """One way of moving operands. Transports with the same name are the same."""

    name: str

    @abstractmethod
    def columns(self, d: int) -> tuple[ScratchColumn, ...]:
        """The scratchpad columns it needs."""

    def asks(self, column: ScratchColumn, d: int) -> bool:
        """Whether the column asks when a function that uses this transport is called."""
        return column.kind == "output"

    def gives(self, column: ScratchColumn, d: int) -> bool:
        """Whether the column holds (a share of) the result: by default those that ask do."""
        return self.asks(column, d)

    def live(self, column: ScratchColumn) -> bool:
        """Whether the column may be found by a soft match; only asked for when `soft`."""
        return False

    soft: bool = False
    """Whether columns that are not live must be kept out by a large negative score."""
    live_constants: bool = False
    """Whether the cells 0 and 1 are live."""
    reach: float | None = None
    """The largest product that its constants are chosen for, where it is a product and that is not the machine's."""

    def constants(self, d: int) -> tuple[Constant, ...]:
        return ()

    def scratch_rows(self, d: int) -> tuple[tuple[str, int], ...]:
        """Rows that are 0 between loops: names and sizes."""
        return ()

    def units(self, d: int) -> int:
        """Hidden units of `prepare`, where they are more than its rows: what building is refused by."""
        return 0

    def largest_score(self, limit: float) -> float:
        """The largest score of a soft match, for operands within ±limit, where it is larger than the range."""
        return 0.0

    @abstractmethod
    def prepare(self, work: Workspace) -> Part:
        """Formulas right after the operands were read."""

    @abstractmethod
    def shares(self, work: Workspace) -> list[Share]:
        """Its share of the first head, and of further heads where it has any."""

    def finish(self, work: Workspace, off: Expression) -> Expression | None:
        """What is added to the first rows of the result after the soft layer, or None; 0 where `off` is not 0."""
        return None


def output_lanes(d: int) -> Constant:
    """One-hot of the lane in output columns."""
    return Constant("output_lane", d, lambda c: one_hot(d, c.lane if c.kind == "output" else None))


def copies_of(count: int, d: int) -> tuple[ScratchColumn, ...]:
    """`count` copies of the columns of a."""
    return tuple(ScratchColumn("copy", g, i) for g in range(count) for i in range(d))


def outputs(d: int) -> tuple[ScratchColumn, ...]:
    """The columns of b, which hold results."""
    return tuple(ScratchColumn("output", i, i) for i in range(d))


class Beside(Transport):
    """Column i of a comes beside column i of b: output column i finds copy (0, i), a hard match of lanes."""

    name = "beside"

    def columns(self, d: int) -> tuple[ScratchColumn, ...]:
        return copies_of(1, d) + outputs(d)

    def constants(self, d: int) -> tuple[Constant, ...]:
        first = Constant("first_lane", d, lambda c: one_hot(d, c.lane if c.kind == "copy" and c.index == 0 else None))
        return output_lanes(d), first

    def scratch_rows(self, d: int) -> tuple[tuple[str, int], ...]:
        return (("beside_query", d),)

    def prepare(self, work: Workspace) -> Part:
        return assign(work.rows("beside_query"), relu(work.rows("output_lane") - work.off(self.name)))

    def shares(self, work: Workspace) -> list[Share]:
        return [Share(work.big * work.rows("beside_query"), work.rows("first_lane"), work.operand, work.left)]


class Turn(Transport):
    """Row i of a comes to output column i, for transposition.

    Copy (g, j) holds column j of a; it keeps entry g of it, in row j. Output column i finds the d copies (i, 0), ...,
    (i, d - 1), with weight 1 / d each; V multiplies by d. Row j of the result is then entry i of column j.
    """

    name = "turn"

    def columns(self, d: int) -> tuple[ScratchColumn, ...]:
        return copies_of(d, d) + outputs(d)

    def constants(self, d: int) -> tuple[Constant, ...]:
        return (output_lanes(d), Constant("copy_number", d, lambda c: one_hot(d, c.index if c.kind == "copy" else None)),
                not_copy(d), Constant("not_lane", d, lambda c: all_but(d, c.lane if c.kind == "copy" else None)))

    def scratch_rows(self, d: int) -> tuple[tuple[str, int], ...]:
        return (("turn_query", d), ("turned", d))

    def units(self, d: int) -> int:
        return 2 * d * d

    def prepare(self, work: Workspace) -> Part:
        d, off = work.size, work.off(self.name)
        entries = []
        for j in range(d):
            here = off + work.rows("not_lane")[j]
            parts = [gated(work.operand[g], here + work.rows("not_copy")[g], work.gate) for g in range(d)]
            entries.append(sum(parts[1:], start=parts[0]))
        return (assign(work.rows("turned"), stack(*entries))
                + assign(work.rows("turn_query"), relu(work.rows("output_lane") - off)))

    def shares(self, work: Workspace) -> list[Share]:
        d = work.size
        return [Share(work.big * work.rows("turn_query"), work.rows("copy_number"), d * work.rows("turned"),
                      work.result[:d])]


def not_copy(d: int) -> Constant:
    return Constant("not_copy", d, lambda c: all_but(d, c.index if c.kind == "copy" else None))
