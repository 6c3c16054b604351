"""A model lowered for the cards of one machine: its code, its tables, and the cases met so far."""

from __future__ import annotations

import ctypes
import hashlib
import json
import math
import time
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from llvmlite import ir

from punchcard.card.layout import Layout
from punchcard.engines.lowered.analysis import tables
from punchcard.engines.lowered.analysis.columns import Columns, Slot
from punchcard.engines.lowered.analysis.facts import Facts
from punchcard.engines.lowered.analysis.plan import Lookup, LoopPlan
from punchcard.engines.lowered.analysis.quiet import Quiet
from punchcard.engines.lowered.analysis.symbolic import NotUniform, Trace
from punchcard.engines.lowered.analysis.weights import layer_lists
from punchcard.engines.lowered.codegen import objects as code
from punchcard.engines.lowered.codegen.emit import Places
from punchcard.engines.lowered.codegen.functions import emit_driver, emit_loop
from punchcard.engines.lowered.graph.builder import Graph
from punchcard.engines.lowered.graph.nodes import Array
from punchcard.errors import LoweringError
from punchcard.transformer.model import LoopedTransformer

REALS: dict[torch.dtype, tuple[ir.Type, type, Any]] = {
    torch.float32: (ir.FloatType(), ctypes.c_float, np.float32),
    torch.float64: (ir.DoubleType(), ctypes.c_double, np.float64),
}
CASES = 1 << 12
LINE = 16
"""States begin at a multiple of this, and so on a cache line of their own."""
KEY_BITS = 64
Pointers = npt.NDArray[np.int64]


class Computer:
    """Code and tables for a model and all cards with the same static rows."""

    def __init__(self, model: LoopedTransformer, layout: Layout, card: Array) -> None:
        self.real, self.scalar, self.number = REALS[model.dtype]
        self.weights = digest_of(model)
        self.layout, self.card = layout, card
        self.layers = layer_lists(model)
        self.significand = 1 - round(math.log2(torch.finfo(model.dtype).eps))
        self.compile_seconds = 0.0
        self.fresh = 0
        self.doubts: dict[str, None] = {}
        self.filled: dict[Lookup, tables.Entries] = {}
        self.cases = np.zeros((CASES, 3), dtype=np.int64)
        self.refused: dict[int, str] = {}
        self.known: dict[int, tuple[code.LoadedCode, list[Lookup], Pointers]] = {}
        started = time.perf_counter()
        try:
            self._prepare(uniform=True)
        except NotUniform:
            self._prepare(uniform=False)
        self.compile_seconds = time.perf_counter() - started

    def _prepare(self, *, uniform: bool) -> None:
        """Sort the columns, and get the driver: with the loop itself where there are no cases to tell apart."""
        self.graph = Graph()
        self.columns = Columns(self.layout, self.layers, self.card, uniform)
        self.columns.busy_rows(self.graph)
        self.quiet = Quiet(self.columns, self.layers, self.graph)
        self.selectors = self.columns.selectors()
        if len(self.selectors) > KEY_BITS:
            raise LoweringError(f"{len(self.selectors)} rows decide what a loop does: the most is {KEY_BITS}")
        slots: dict[Slot, int] = {}
        at = -(-(self.layout.columns + 1) * self.layout.width // LINE) * LINE
        for slot in self.columns.slots:
            slots[slot] = at
            at += slot.width
        self.places = Places(self.layout.width, self.layout.columns, slots)
        self.zero = at
        self.size = at + 1
        self.facts = Facts(self.columns, self.quiet.read, self.card)
        described = json.dumps([self.layout.describe(), [[s.row, s.group, s.width] for s in slots]])
        self.name = [self.weights, described.encode(), str(self.real).encode(), *self.columns.assumed]
        self.driver = self._obtain(code.name_of(b"driver", *self.name), self._driver)
        self.driver_tables = [Lookup.restore(t) for t in self.driver.notes["tables"]]
        self.driver_pointers = self._pointers(self.driver_tables)
        self.real_pointer: Any = ctypes.POINTER(self.scalar)
        self.call = ctypes.CFUNCTYPE(
            ctypes.c_int64, self.real_pointer, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64,
            ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64,
        )(self.driver.address("run"))

    def _trace(self, case: dict[int, float] | None) -> LoopPlan:
        size = self.graph.size
        try:
            return Trace(self.columns, self.layers, self.quiet, self.graph, case, self.significand).run()
        finally:
            self.graph.forget(size)

    def _driver(self) -> tuple[ir.Module, dict[str, Any]]:
        module = ir.Module("driver")
        if self.selectors:
            plan = self._trace(None)
            emit_driver(module, plan, self.real, self.places, None)
        else:
            plan = self._trace({})
            loop = emit_loop(module, "loop", plan, self.real, self.places)
            loop.linkage = "internal"
            loop.attributes.add("alwaysinline")
            emit_driver(module, None, self.real, self.places, loop)
        return module, {"tables": [t.describe() for t in plan.tables]}

    def add_case(self, key: int) -> bool:
        """Compile the loop for one setting of the selectors, if it can be lowered."""
        if key in self.refused:
            return False
        started = time.perf_counter()
        try:
            if len(self.known) >= CASES // 2:
                raise LoweringError(f"a run has more than {CASES // 2} different cases")
            self._add_case(key)
        except LoweringError as why:
            self.refused[key] = str(why)
        self.compile_seconds += time.perf_counter() - started
        return key not in self.refused

    def _add_case(self, key: int) -> None:
        bits = {row: 1.0 if key >> i & 1 else -1.0 for i, row in enumerate(self.selectors)}

        def build() -> tuple[ir.Module, dict[str, Any]]:
            plan = self._trace(bits)
            module = ir.Module("case")
            emit_loop(module, "loop", plan, self.real, self.places)
            return module, {"tables": [t.describe() for t in plan.tables]}

        compiled = self._obtain(code.name_of(b"case", str(key).encode(), *self.name), build)
        asked = [Lookup.restore(t) for t in compiled.notes["tables"]]
        pointers = self._pointers(asked)
        self.known[key] = (compiled, asked, pointers)
        place = (key * 0x9E3779B97F4A7C15 % (1 << 64) >> 40) % CASES
        while self.cases[place, 1]:
            place = (place + 1) % CASES
        self.cases[place] = (key, compiled.address("loop"), pointers.ctypes.data)

    def _obtain(self, name: str, build: Callable[[], tuple[ir.Module, dict[str, Any]]]) -> code.LoadedCode:
        loaded = code.obtain(name, build)
        self.fresh += loaded.fresh
        if loaded.doubt is not None:
            self.doubts[loaded.doubt] = None
        return loaded

    def _pointers(self, wanted: list[Lookup]) -> Pointers:
        for table in wanted:
            if table not in self.filled:
                self.filled[table] = tables.fill(table, self.quiet)
        return np.array([self.filled[table].ctypes.data for table in wanted] or [0], dtype=np.int64)

    def fits(self, layout: Layout, card: Array) -> bool:
        """Whether another card has the same static rows, so that code and tables are good for it too."""
        return (layout is self.layout or layout.describe() == self.layout.describe()) and self.facts.hold(card)

    def place(self, row: int, column: int) -> int:
        """Where an entry of the card is while a run goes on."""
        place, (inside, states) = self.places.at(column, row), self.state_places
        found = np.flatnonzero(inside == place)
        return int(states[found[0]]) if len(found) else place

    def begin(self, buffer: npt.NDArray[Any]) -> None:
        """States from the busy columns of the buffer."""
        inside, states = self.state_places
        buffer[states[::-1]] = buffer[inside[::-1]]  # of a state that several columns share, the first one counts

    def finish(self, buffer: npt.NDArray[Any]) -> None:
        """States back to the busy columns."""
        inside, states = self.state_places
        buffer[inside] = buffer[states]

    @cached_property
    def state_places(self) -> tuple[Pointers, Pointers]:
        """Places of the states' rows in busy columns, and of the states."""
        inside, states = [], []
        for slot, at in self.places.slots.items():
            groups = self.columns.groups if slot.group is None else [self.columns.groups[slot.group]]
            for group in groups:
                for lane in range(group.width):
                    inside.append(self.places.at(group.start + lane, slot.row))
                    states.append(at + (lane if slot.group is not None else 0))
        return np.array(inside, dtype=np.int64), np.array(states, dtype=np.int64)

    def look_up(self, asked: list[Lookup], report: list[tuple[int, int]]) -> bool:
        """Fill the entries that a loop missed; whether there were any that could be filled."""
        found = False
        for number, place in report:
            table = asked[number]
            if table.kind == "find" and self.filled[table][place] == -1:
                column = tables.find(table, self.quiet, place)
                if column < 0:
                    return False
                self.filled[table][place] = column
                found = True
        return found


def digest_of(model: LoopedTransformer) -> bytes:
    """A name for the weights as they are now; tensors may have been changed in place without a trace."""
    digest = hashlib.sha256()
    for tensor in model.parameters():
        digest.update(repr(tuple(tensor.shape)).encode())
        digest.update(tensor.detach().cpu().contiguous().view(torch.uint8).numpy().data)
    return digest.digest()

