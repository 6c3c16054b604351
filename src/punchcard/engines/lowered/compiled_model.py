"""A model lowered for the cards of one machine: its code, its tables, and the cases met so far."""

from __future__ import annotations

import ctypes
import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir

from punchcard.card.formats import AnyArray
from punchcard.card.layout import Layout
from punchcard.card.packed import PackedCard
from punchcard.code_cache import Notes
from punchcard.engines.base import CompileCount
from punchcard.engines.lowered.analysis import tables
from punchcard.engines.lowered.analysis.buffer_layout import BufferLayout, Field, StateWord
from punchcard.engines.lowered.analysis.columns import CardColumns, SharedLayers, StateSlot, row_of
from punchcard.engines.lowered.analysis.passive import CardRequirements, Passive
from punchcard.engines.lowered.analysis.plan import Lookup, LoopParts, LoopPlan
from punchcard.engines.lowered.analysis.symbolic import NotUniform, Trace
from punchcard.engines.lowered.analysis.weights import layer_lists
from punchcard.engines.lowered.codegen import objects as code
from punchcard.engines.lowered.codegen.driver import emit_driver, put_entry
from punchcard.engines.lowered.codegen.emit import CodeKind
from punchcard.engines.lowered.codegen.loop import SETTLE, emit_loop, emit_settling
from punchcard.engines.lowered.codegen.trace import PatternPart
from punchcard.engines.lowered.graph.builder import Graph
from punchcard.engines.lowered.tracing.compiler import TraceCompiler
from punchcard.engines.lowered.tracing.tier import TraceTier
from punchcard.errors import LoweringError
from punchcard.transformer.weights import Weights

REALS: dict[str, tuple[ir.Type, Any]] = {"float32": (ir.FloatType(), np.float32), "float64": (ir.DoubleType(), np.float64)}
CASES = 1 << 12
Buffer = npt.NDArray[np.uint8]
KEY_BITS = 64
MOST_NODES = 1 << 16
"""Nodes that are kept from case to case: some 1.5 KB each, with what is known of them."""
MOST_TIERS = 4
"""Sets of patterns whose traces are kept loaded; older ones are found on disk."""
Pointers = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.float64]
_AT, _COUNT = ctypes.c_void_p, ctypes.c_int64
ONE = ctypes.CFUNCTYPE(_COUNT, _AT, _COUNT)
MANY = ctypes.CFUNCTYPE(None, _AT, _AT, _AT, _AT, _AT, _AT, _COUNT, _AT, _AT, _COUNT)
"""The drivers, as ctypes calls them: Python continues in other threads meanwhile."""


@contextmanager
def depth_is_bounded() -> Iterator[None]:
    """Weights that make sums of thousands of ReLUs, each from the one before, are too deep for some steps: declined."""
    try:
        yield
    except RecursionError:
        raise LoweringError("a value is made in more steps, each from the one before, than can be followed") from None


class CompiledModel:
    """Code and tables for a model and all cards with the same static rows.

    `digest`: that of the weights, if it is known. `count` is called with what is compiled.
    """

    def __init__(self, weights: Weights, layout: Layout, card: PackedCard, digest: bytes | None = None,
                 count: CompileCount | None = None) -> None:
        self.lock = threading.RLock()
        """Of a thread while it is in the code, or makes more of it: code that another one runs is never replaced."""
        self._count = count or CompileCount()
        self.real, self.number = REALS[weights.dtype]
        self.layers = layer_lists(weights, layout)
        self.significand = weights.format.significand
        self.weights, self.described = digest or weights.digest(), layout.describe()
        self.layout, self.card = layout, card
        self.compile_seconds = 0.0
        self.fresh = 0
        self.doubts: dict[str, None] = {}
        self.filled: dict[Lookup, tables.Entries] = {}
        self.cases = np.zeros((CASES, 3), dtype=np.int64)
        self.refused: dict[int, str] = {}
        self._tiers: dict[tuple[object, float], TraceTier] = {}
        self.known: dict[int, tuple[code.LoadedCode, list[Lookup], Pointers]] = {}
        started = time.perf_counter()
        with depth_is_bounded():
            try:
                self._prepare(uniform=True)
            except NotUniform:
                self._prepare(uniform=False)
        self.compile_seconds = time.perf_counter() - started

    def _prepare(self, *, uniform: bool) -> None:
        """Sort the columns, and get the driver: with the loop itself where there are no cases to tell apart."""
        self.graph = Graph()
        self._known_direct: dict[Lookup, tables.DirectLookup | None] = {}
        self.columns = CardColumns(self.layout, self.layers, self.card, uniform)
        self.columns.active_rows(self.graph)
        self.passive = Passive(self.columns, self.graph)
        self._begun = self.graph.size
        self.selectors = self.columns.selectors
        if len(self.selectors) > KEY_BITS:
            raise LoweringError(f"{len(self.selectors)} rows decide what a loop does: the most is {KEY_BITS}")
        self.shared = SharedLayers(len(self.layers)) if self.passive.settles else self.columns.share_layers()
        self.places = BufferLayout(self.layout, self.columns.passive_places.values(), np.dtype(self.number).itemsize,
                                   self.columns.slots, self.shared.passing,
                                   self.columns.active_columns[0] if len(self.columns.active_columns) == 1 else None)
        # Pointers to columns of numbers sooner or later name one that lacks a field: code that supposes none is made twice.
        self.direct = all(field.bits for field in self.places.fields)
        self.empty = not self.direct
        self.requirements = CardRequirements(self.passive, self.card)
        described = json.dumps([self.described, [[s.row, s.group, s.width] for s in self.columns.slots]])
        self.name = [self.weights, described.encode(), str(self.real).encode(), *self.columns.assumed]
        self._get_driver()

    def _get_driver(self) -> None:
        """The driver, and no cases yet."""
        self.cases[:] = 0
        self.known.clear()
        self.__dict__.pop("trace_compiler", None)
        self.driver = self._obtain(code.name_of(b"driver", *self.names), self._driver)
        self.driver_tables = [Lookup.restore(t) for t in self.driver.notes["tables"]]
        self._settling = self.driver.address(SETTLE) if self.passive.settles else 0
        self.driver_pointers = self._pointers(self.driver_tables, self.driver.notes["direct"])
        self.call = ONE(self.driver.address("run_card"))
        self.call_many = MANY(self.driver.address("run_many"))

    @cached_property
    def trace_compiler(self) -> TraceCompiler:
        """What makes traces beside the driver that there is now. Raises a `LoweringError` where there can be none."""
        return TraceCompiler(self)

    def trace_tier(self, patterns: tuple[tuple[PatternPart, ...], ...], seconds: float) -> TraceTier:
        """The traces of cards that are run with these patterns. Those used last are kept, and samples of the last alone."""
        tier = self._tiers.pop((patterns, seconds), None) or TraceTier(self, patterns, seconds)
        for other in self._tiers.values():
            other.forget_samples()
        if len(self._tiers) == MOST_TIERS:
            self._tiers.pop(next(iter(self._tiers)))
        self._tiers[patterns, seconds] = tier
        return tier

    @property
    def names(self) -> list[bytes]:
        """All that the code depends on."""
        return [*self.name, self.requirements.digest if self.direct else b"by table", b"empty" if self.empty else b"held"]

    def parts(self) -> LoopParts:
        """The plans of a loop: with the only case, or with none yet where there are cases to tell apart (`plan_case`)."""
        if not self.selectors:
            return LoopParts({0: self._trace({})})
        choose = self.deciding_plan()
        if self.shared.cut == len(self.layers):
            return LoopParts({}, choose)
        first, rest = self.shared_plans(choose)
        return LoopParts({}, choose, first, tuple(rest), self._trace(None, "turn", choose.tables))

    def plan_case(self, key: int, follow: dict[StateSlot, Numbers], read: Iterable[int] | None,
                  tables: list[Lookup] | None = None) -> LoopPlan:
        """The plan of one setting of the selectors; of what it passes to the rest of a loop, the rows that are `read`."""
        bits = {row: 1.0 if key >> i & 1 else -1.0 for i, row in enumerate(self.selectors)}
        plan = self._trace(bits, tables=tables, follow=follow)
        if read is not None:  # leave nothing for the rest but what it looks at; that it is bits is a check of its own
            wanted = set(read)
            plan.states = {slot: linear for slot, linear in plan.states.items() if slot.row in wanted}
        return plan

    @property
    def follows(self) -> bool:
        """Whether the code of a case takes numbers for what they were on the card when the case first occurred."""
        return any(self.columns.block_of[slot.row].follows for slot in self.places.slots)

    def kind_of_code(self, plan: LoopPlan | LoopParts) -> CodeKind:
        """What the code of a plan assumes, until a loop shows that it is false."""
        return CodeKind(self.real, self.places, list(map(self._direct, plan.tables)), self.empty)

    def _direct(self, table: Lookup) -> tables.DirectLookup | None:
        """How the code does without a table, if it does. Cases ask for the same tables."""
        if not self.direct:
            return None
        if table not in self._known_direct:
            self._known_direct[table] = tables.direct(table, self.passive)
        return self._known_direct[table]

    def _notes(self, plan: LoopPlan) -> Notes:
        return {"tables": [asdict(t) for t in plan.tables],
                "direct": [self._direct(table) is not None for table in plan.tables]}

    def _trace(self, case: dict[int, float] | None, part: str = "run", tables: list[Lookup] | None = None,
               follow: dict[StateSlot, Numbers] | None = None) -> LoopPlan:
        """The plan of a case, of what decides on one, or of a part of the loop that all cases share."""
        if self.graph.size > MOST_NODES:
            self.graph.forget(self._begun)
        trace = Trace(self.passive, case, self.significand, self.shared, follow)
        trace.plan.tables = trace.plan.tables if tables is None else tables
        plan: LoopPlan = getattr(trace, part)()
        return plan

    def _driver(self) -> tuple[ir.Module, Notes]:
        module, parts = ir.Module("driver"), self.parts()
        if self.passive.settles:
            emit_settling(module, self.passive.settles, self.kind_of_code(parts))
        if parts.choose is None:
            (plan,) = parts.cases.values()
            emit_driver(module, self.kind_of_code(plan), loop=self._inlined(module, "loop", plan))
            return module, self._notes(plan)
        emit_driver(module, self.kind_of_code(parts), parts.choose,
                    first=parts.first and self._inlined(module, "first", parts.first),
                    rest=[self._inlined(module, f"rest{i}", each) for i, each in enumerate(parts.rest)], turn=parts.turn)
        read = parts.read()
        return module, self._notes(parts.choose) | ({} if read is None else {"read": sorted(read)})

    def shared_plans(self, plan: LoopPlan) -> tuple[LoopPlan | None, list[LoopPlan]]:
        """What all cases have in common: the first part, if there is one, and the versions of the rest.

        They share the tables of what decides on the case.
        """
        first = self._trace(None, "first", plan.tables) if self.shared.taken else None
        return first, [self._trace(setting, "rest", plan.tables) for setting in self._late_settings()]

    def deciding_plan(self) -> LoopPlan:
        """What decides on the case of a loop."""
        return self._trace(None)

    def _late_settings(self) -> list[dict[int, float]]:
        """The settings of the late selectors, in the order of the numbers that they are."""
        rows = [slot.row for slot in self.shared.passing if slot.row in self.shared.late]
        return [{row: 1.0 if number >> i & 1 else -1.0 for i, row in enumerate(rows)} for number in range(1 << len(rows))]

    def _inlined(self, module: ir.Module, name: str, plan: LoopPlan) -> ir.Function:
        """A part of a loop as a function of the driver's own."""
        part = emit_loop(module, name, plan, self.kind_of_code(plan))
        part.linkage = "internal"
        part.attributes.add("alwaysinline")
        return part

    def add_case(self, key: int, buffer: Buffer) -> bool:
        """Compile the loop for one setting of the selectors, if it can be lowered: that of a card in this buffer."""
        if key in self.refused:
            return False
        started = time.perf_counter()
        try:
            if len(self.known) >= CASES // 2:
                raise LoweringError(f"a run has more than {CASES // 2} different cases")
            with depth_is_bounded():
                self._add_case(key, self._follow(buffer))
        except LoweringError as why:
            self.refused[key] = str(why)
        self.compile_seconds += time.perf_counter() - started
        return key not in self.refused

    def _follow(self, buffer: Buffer) -> dict[StateSlot, Numbers]:
        """The numbers that follow from the selectors, as they are now."""
        return {slot: self._numbers(buffer, at, slot.width).astype(np.float64)
                for slot, at in self.places.slots.items() if self.columns.block_of[slot.row].follows}

    def _add_case(self, key: int, follow: dict[StateSlot, Numbers]) -> None:
        def build() -> tuple[ir.Module, Notes]:
            plan = self.plan_case(key, follow, self.driver.notes.get("read"))
            module = ir.Module("case")
            emit_loop(module, "loop", plan, self.kind_of_code(plan))
            return module, self._notes(plan)

        supposed = b"".join(values.tobytes() for values in follow.values())
        compiled = self._obtain(code.name_of(b"case", str(key).encode(), supposed, *self.names), build)
        asked = [Lookup.restore(t) for t in compiled.notes["tables"]]
        pointers = self._pointers(asked, compiled.notes["direct"])
        self.known[key] = (compiled, asked, pointers)
        put_entry(self.cases, key, compiled.address("loop"), pointers.ctypes.data)

    def _obtain(self, name: str, build: Callable[[], tuple[ir.Module, Notes]]) -> code.LoadedCode:
        several = any(group.width > 1 for group in self.columns.groups)  # one column has words, and words are wide already
        self._count.is_compiling = True
        try:
            loaded = code.load_or_compile(name, build, vectorize=several)
        finally:
            self._count.is_compiling = False
        self._count.pieces += loaded.fresh
        self.fresh += loaded.fresh
        if loaded.doubt is not None:
            self.doubts[loaded.doubt] = None
        return loaded

    def _pointers(self, wanted: list[Lookup], direct: list[bool]) -> Pointers:
        """Where the tables lie; those that the code does without are not made. Behind them, what settles columns."""
        for table, without in zip(wanted, direct, strict=True):
            if table not in self.filled and not without:
                self.filled[table] = tables.fill(table, self.passive)
        found = [self.filled[table].ctypes.data if table in self.filled else 0 for table in wanted]
        return np.array([*found, self._settling], dtype=np.int64)

    def entry(self, table: Lookup, code: int) -> int:
        """The column that a table has for a code; made now, where the code has done without it."""
        if table not in self.filled:
            self.filled[table] = tables.fill(table, self.passive)
        return int(self.filled[table][code])

    def is_of(self, weights: Weights, layout: Layout) -> bool:
        """Whether it was made from these weights, as they are now, and this layout."""
        return self.weights == weights.digest() and self._has(layout)

    def fits(self, layout: Layout, card: PackedCard) -> bool:
        """Whether another card has the same static rows, so that code and tables apply to it too."""
        return self._has(layout) and self.requirements.hold(card)

    def _has(self, layout: Layout) -> bool:
        return layout is self.layout or layout.describe() == self.described

    @cached_property
    def state_words(self) -> list[tuple[Field, list[int], StateWord]]:
        """States that are words: the field, and the columns that carry it."""
        return [(word[0], self.columns.of_group(word[1]), word) for word in self.places.words]

    @cached_property
    def apart(self) -> list[tuple[Field, list[int], StateWord]]:
        """Those that do not lie where the card has them."""
        return [state for state in self.state_words if state[2] not in self.places.in_card]

    def state_word(self, buffer: Buffer, word: StateWord) -> AnyArray:
        """The place of a state in a buffer, as an array with one entry."""
        at, item = self.places.words[word], self.places.item(word)
        return buffer[at : at + item].view(f"u{item}")

    def begin(self, buffer: Buffer, card: PackedCard, *, everything: bool = False) -> None:
        """States from the active columns of a card: of one that several columns share, the first one counts.

        With `everything`, also those that lie in the arrays of a card in this buffer.
        """
        for field, columns, word in self.state_words if everything else self.apart:
            self.state_word(buffer, word)[0] = _words(card, field)[columns[0]]
        for slot, place in self.places.slots.items():
            columns = self.columns.of_group(slot.group)[: slot.width]
            self._numbers(buffer, place, slot.width)[:] = row_of(card, slot.row, columns)

    def finish(self, buffer: Buffer, card: PackedCard, *, everything: bool = False) -> None:
        """States back to the active columns of a card."""
        for field, columns, name in self.state_words if everything else self.apart:
            words, mask = _words(card, field), self.places.masks[name]
            state = self.state_word(buffer, name).item() & mask
            for column in columns:
                words[column] = words.item(column) & ~mask | state
        for slot, place in self.places.slots.items():
            field, i = self.places.of_row[slot.row]
            _put_entries(card, field, i, self.columns.of_group(slot.group), self._numbers(buffer, place, slot.width))

    def _numbers(self, buffer: Buffer, at: int, width: int) -> AnyArray:
        return buffer[at : at + width * np.dtype(self.number).itemsize].view(self.number)

    def look_up(self, asked: list[Lookup], report: list[tuple[int, int]]) -> bool:
        """Whether a loop that failed is tried again, with more entries in a table or fewer assumptions."""
        filled = outside = empty = False
        for number, place in report:
            table = asked[number]
            column = self.entry(table, place)
            if table.kind == "find" and column == -1:
                column = tables.find(table, self.passive, place)
                if column < 0:
                    return False
                self.filled[table][place] = column
                filled = True
            outside |= self.direct and (column == -1 or filled)
            empty |= not self.empty and any(start <= column < stop for field in self.places.fields
                                            for start, stop in field.missing)
        if outside or empty:
            self.direct, self.empty = self.direct and not outside, self.empty or empty
            started = time.perf_counter()
            self._get_driver()
            self.compile_seconds += time.perf_counter() - started
        return filled or outside or empty


def _words(card: PackedCard, field: Field) -> AnyArray:
    """The words of a field, column by column."""
    array = card.fields[field.block]
    return array if array.ndim == 1 else array[:, field.offset // 8]


def _put_entries(card: PackedCard, field: Field, row: int, columns: list[int], values: AnyArray) -> None:
    if not field.bits:
        card.fields[field.block][columns, row] = values
        return
    words = _words(card, field)
    bit = words.dtype.type(1 << row)
    words[columns] = np.where(values > 0, words[columns] | bit, words[columns] & ~bit)

