"""How a batch of machines lies in the memory of a GPU: in groups, the bytes of a group's machines side by side.

A machine has the arrays that its code reads or stores to. Columns at both ends that are active, or where a block holds
nothing, are left out, and there is one more column for what has no place. The bytes of a machine are cut into granules.
First comes granule 0 of all machines of a group, then granule 1, and so on: threads that read the same place read
neighbours. In shared memory, with granules of 4 bytes, two threads never ask one bank.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from punchcard.card.formats import AnyArray
from punchcard.engines.lowered.analysis.buffer_layout import BufferLayout, Field
from punchcard.engines.lowered.analysis.plan import LoopPlan
from punchcard.engines.lowered.graph.nodes import reachable
from punchcard.engines.lowered.graph.operations import GATHER, LOAD

BANK = 4
"""Bytes of a bank of shared memory: the smallest granule."""
Granules = AnyArray


@dataclass(frozen=True)
class MemoryStrip:
    """The array of a block in a machine: `count` columns from `first` on and one more, in `size` bytes from `at` on."""

    block: str
    at: int
    first: int
    count: int
    stride: int
    size: int


@dataclass(frozen=True)
class MemoryLayout:
    """The arrays of a machine; those that a loop stores to come first, in `cache` of its `size` bytes."""

    all: tuple[MemoryStrip, ...]
    kept: int
    size: int
    granule: int

    @cached_property
    def by_block(self) -> dict[str, MemoryStrip]:
        return {strip.block: strip for strip in self.all}

    def put(self, groups: Granules, strip: MemoryStrip, values: AnyArray) -> None:
        """Write a block of all machines; `groups` is groups x granules x machines."""
        machines, threads = len(values), groups.shape[2]
        used = np.ascontiguousarray(values[:, strip.first : strip.first + strip.count]).reshape(machines, -1)
        rows = np.zeros((len(groups) * threads, strip.size), dtype=np.uint8)
        rows[:machines, : strip.count * strip.stride] = used.view(np.uint8)
        self._part(groups, strip)[:] = rows.view(groups.dtype).reshape(len(groups), threads, -1).swapaxes(1, 2)

    def get(self, groups: Granules, strip: MemoryStrip, values: AnyArray) -> None:
        """Read a block of all machines into an array of machines x columns."""
        machines, columns = len(values), values[:, strip.first : strip.first + strip.count]
        rows = np.ascontiguousarray(self._part(groups, strip).swapaxes(1, 2)).view(np.uint8).reshape(-1, strip.size)
        used = np.ascontiguousarray(rows[:machines, : strip.count * strip.stride])
        columns[:] = used.view(values.dtype).reshape(columns.shape)

    def empty(self, groups: int, threads: int) -> Granules:
        """Room for so many groups."""
        return np.zeros((groups, self.size // self.granule, threads), dtype=f"u{self.granule}")

    def _part(self, groups: Granules, strip: MemoryStrip) -> Granules:
        return groups[:, strip.at // self.granule : (strip.at + strip.size) // self.granule]


def memory_layout(plans: Sequence[LoopPlan], places: BufferLayout, active: Iterable[tuple[int, int]],
                  looked_at: Iterable[Field]) -> MemoryLayout:
    """The arrays that plans need, and those that patterns look at; a plan reads no active columns there."""
    of_row = places.of_row
    stores = [store for plan in plans for store in plan.stores]
    stored = {of_row[row][0].block for store in stores for row in store.rows}
    forms = [*(form for plan in plans for form in plan.forms()),
             *(linear for store in stores for linear in store.rows.values())]
    read = {of_row[node.data][0].block for node in reachable(forms) if node.op in (GATHER, LOAD)}
    seen = {field.block for field in looked_at}
    read |= seen
    fields = {field.block: field for field in places.fields if field.block in read | stored}
    granule = max([BANK, *(field.item for field in fields.values())])
    made: list[MemoryStrip] = []
    at = kept = 0
    for name in sorted(fields, key=lambda name: (name not in stored, name)):
        first, count = _held([*fields[name].missing, *(() if name in seen else active)], places.nowhere)
        field = fields[name]
        stride = field.stride if field.bits else field.rows * field.item  # a thread has no lines of its own
        length = -(-(count + 1) * stride // granule) * granule
        made.append(MemoryStrip(name, at, first, count, stride, length))
        at += length
        kept = at if name in stored else kept
    return MemoryLayout(tuple(made), kept, at, granule)


def _held(missing: Iterable[tuple[int, int]], columns: int) -> tuple[int, int]:
    """The first of the columns that are not missing, and how many there are from there to the last one."""
    held = np.ones(columns, dtype=bool)
    for start, stop in missing:
        held[start:stop] = False
    found = np.flatnonzero(held)
    return (int(found[0]), int(found[-1] - found[0]) + 1) if len(found) else (0, columns)
