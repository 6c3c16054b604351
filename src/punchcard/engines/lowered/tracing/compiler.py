"""From hot states to functions that can be called: modules are put together, compiled, and kept on disk like other code."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from llvmlite import ir

from punchcard.code_cache import Notes
from punchcard.engines.lowered.analysis.buffer_layout import StateWord
from punchcard.engines.lowered.analysis.plan import Lookup, LoopPlan
from punchcard.engines.lowered.codegen import objects as code
from punchcard.engines.lowered.codegen.floats import I64, i64, resized
from punchcard.engines.lowered.codegen.step import LoopPart, PartShape, StepCall, emit_part
from punchcard.engines.lowered.codegen.trace import TRACED, PatternPart, TraceEmitter, entries_of
from punchcard.engines.lowered.codegen.trace_driver import MOST_CASES, RUN_TRACED, Observe, case_tables, emit_trace_driver
from punchcard.engines.lowered.graph.nodes import reachable
from punchcard.engines.lowered.graph.operations import CODE, STATE
from punchcard.engines.lowered.tracing.profile import HotGraph, HotState, Sample
from punchcard.errors import LoweringError

if TYPE_CHECKING:
    from punchcard.engines.lowered.compiled_model import CompiledModel

_AT, _COUNT = ctypes.c_void_p, ctypes.c_int64
CALL = ctypes.CFUNCTYPE(_COUNT, _AT, _COUNT)
CALL_WITH_LOG = ctypes.CFUNCTYPE(_COUNT, _AT, _COUNT, _AT, _COUNT)
WORD = 64
CASE_CODES = CASE_READS = 8
"""The room that a sample has for what a case looks for and reads."""
WHOLE, FIRST, REST = "whole", "first", "rest"
"""The parts that all loops have; a case has one of its own."""


class FoundSample(NamedTuple):
    """A sample, and how many loops were made for it."""

    sample: Sample
    made: int


@dataclass(frozen=True)
class PartCode:
    """A part of a loop, optimised by itself: its module, the bits of each state that it looks for together, and its tables.

    A code that is looked for without a table has none.
    """

    shape: PartShape
    module: bytes
    groups: list[list[int]]
    tables: list[Lookup | None]


@dataclass(frozen=True)
class LoadedFunction:
    """A function that ctypes calls, and its code, which stays loaded as long as the function is kept."""

    call: Any
    code: code.LoadedCode


@dataclass(frozen=True)
class CompiledTrace:
    """A trace, and its code, which stays loaded as long as the trace is kept."""

    graph: HotGraph
    code: code.LoadedCode
    place: tuple[int, int]
    """Where the anchor is in a buffer, and its bits there."""

    @property
    def anchors(self) -> list[int]:
        """The value of the anchor in each hot state."""
        return [state.values[self.graph.anchor] for state in self.graph.states]

    @property
    def entries(self) -> list[tuple[int, int]]:
        """For each value of the anchor at which it is entered: that value, and the address of its function."""
        address, anchors = self.code.address(TRACED), self.anchors
        return [(anchors[i], address) for i in entries_of(self.graph)]


class TraceCompiler:
    """Compiles traces for one model: its driver, as it is now, makes the loops that no trace makes.

    It keeps the driver, the last sampler, and the parts of loops before they are linked. Traces are kept by the caller.
    """

    def __init__(self, model: CompiledModel) -> None:
        if model.places.slots or model.passive.settles:
            raise LoweringError("active columns carry numbers that are not bits" if model.places.slots else
                                "a column that was stored to changes once more in the next loop")
        self._model = model
        self._cases: dict[int, PartCode] = {}
        self._last_sampler: tuple[tuple[int, ...], LoadedFunction] | None = None
        self._selectors = self._places_of_selectors() if model.selectors else []

    def _places_of_selectors(self) -> list[tuple[int, int]]:
        """For each row that decides on the case: the number of the state that has it, and the bit there."""
        model, found = self._model, list[tuple[int, int]]()
        order = list(model.places.words)
        for linear in self._deciding.selectors:
            single = linear.single
            place = (model.places.word_of(single[0].data) if single is not None and single[1] == 1.0
                     and single[0].op is STATE else None)
            if place is None:
                raise LoweringError(f"{len(model.selectors)} rows decide what a loop does, and are met in the middle of it")
            found.append((order.index(place[0]), place[1]))
        return found

    @cached_property
    def _deciding(self) -> LoopPlan:
        return self._model.deciding_plan()

    # Parts

    @cached_property
    def _shared(self) -> dict[str, PartCode]:
        """The parts that are the same in all cases, in their order."""
        model = self._model
        if not model.selectors:
            return {WHOLE: self._part(WHOLE, lambda: model.parts().cases[0])}
        found: dict[str, PartCode] = {}
        if model.shared.cut < len(model.layers):
            if model.shared.taken:
                found[FIRST] = self._part(FIRST, lambda: self._shared_plan(FIRST))
            found[REST] = self._part(REST, lambda: self._shared_plan(REST))
        return found

    @cached_property
    def _shared_plans(self) -> tuple[LoopPlan | None, list[LoopPlan]]:
        return self._model.shared_plans(self._deciding)

    def _shared_plan(self, name: str) -> LoopPlan:
        """Of several versions of the rest, the usual one: a guard says whether it is that (`_is_usual`)."""
        first, rest = self._shared_plans
        assert first is not None or name == REST
        return first if name == FIRST and first is not None else rest[0]

    @cached_property
    def _is_usual(self) -> dict[int, int]:
        """Bits that are 0 when the usual version of the rest is to be made: masks, by the numbers of words within a loop."""
        model, found = self._model, dict[int, int]()
        order = [*model.places.words, *model.places.passing]
        for slot in model.shared.passing:
            place = model.places.word_of(slot) if slot.row in model.shared.late else None
            if place is not None:
                number = order.index(place[0])
                found[number] = found.get(number, 0) | 1 << place[1]
        return found

    def _case(self, key: int) -> PartCode:
        """The part of a case that the driver has code for."""
        if key not in self._cases:
            if len(self._cases) == MOST_CASES:
                raise LoweringError(f"a run has more than {MOST_CASES} cases")
            case = self._part(_case_name(key), lambda: self._model.plan_case(key, {}, self._model.driver.notes.get("read")))
            if case.shape.codes > CASE_CODES or case.shape.reads > CASE_READS:
                raise LoweringError(f"a case looks for {case.shape.codes} columns and reads {case.shape.reads} words: "
                                    f"the most is {CASE_CODES} and {CASE_READS}")
            self._cases[key] = case
        return self._cases[key]

    @property
    def cases_to_prepare(self) -> int:
        """How many cases the driver has code for, and traces do not yet."""
        return sum(key not in self._cases for key in self._known_cases())

    def tables_of_cases(self) -> list[int]:
        """Where the tables of cases are, by the numbers that cases have for traces."""
        for key in self._known_cases():
            self._case(key)
        found = [int(self._model.known[key][2].ctypes.data) for key in self._cases]
        return [*found, *[0] * (MOST_CASES - len(found))]

    def _part(self, name: str, plan_of: Callable[[], LoopPlan]) -> PartCode:
        model = self._model

        def make() -> tuple[Notes, bytes]:
            module, plan = ir.Module(name), plan_of()
            kind = model.kind_of_code(plan)
            shape, asked = emit_part(module, name, plan, kind)
            groups = [[str(mask) for mask in masks] for masks in _groups(list(model.places.words), model, plan)]
            tables = [None if kind.direct[table] is not None else asdict(plan.tables[table]) for table in asked]
            return {"codes": shape.codes, "reads": shape.reads, "groups": groups, "tables": tables}, code.optimised(module)

        notes, module, *_ = code.load_or_make(code.name_of(b"part", name.encode(), *model.names), make)
        shape = PartShape(len(model.places.words) + len(model.places.passing), notes["codes"], notes["reads"])
        return PartCode(shape, module, [[int(mask) for mask in masks] for masks in notes["groups"]],
                        [None if table is None else Lookup.restore(table) for table in notes["tables"]])

    def _known_cases(self) -> tuple[int, ...]:
        """Those that the driver has code for now, in order."""
        return tuple(sorted(self._model.known)) if self._selectors else ()

    def _parts(self, module: ir.Module, b: ir.IRBuilder, key: int, tables: ir.Value, memory: ir.Value) -> list[LoopPart]:
        """The parts of a loop of a case, in their order."""
        def part(name: str, own: PartCode, codes: int, reads: int, its_tables: ir.Value) -> LoopPart:
            known = module.globals.get(name)
            function = known if known is not None else ir.Function(module, own.shape.kind, name)
            return LoopPart(function, own.shape, its_tables, codes, reads, partial(self._column, own),
                            self._is_usual if name == REST else {})

        found = []
        for name, own in self._names_in_order(key):
            is_case = name not in self._shared
            its = case_tables(b, memory, list(self._cases).index(key)) if is_case else tables
            room = (CASE_CODES, CASE_READS) if is_case else (own.shape.codes, own.shape.reads)
            found.append(part(name, own, *room, its))
        return found

    def _names_in_order(self, key: int) -> list[tuple[str, PartCode]]:
        """The parts of a loop of a case by name, in their order."""
        shared = self._shared
        if not self._selectors:
            return list(shared.items())
        case = (_case_name(key), self._case(key))
        return [*((name, shared[name]) for name in (FIRST,) if name in shared), case,
                *((name, shared[name]) for name in (REST,) if name in shared)]

    def _column(self, part: PartCode, number: int, asked: int) -> int | None:
        """What the table of a code has for it: that never changes, but where a column is still to be found."""
        table = part.tables[number]
        column = None if table is None else self._model.entry(table, asked)
        return None if table is None or (column == -1 and table.kind == "find") else column

    @property
    def groups(self) -> list[list[int]]:
        """For each state, masks of the bits that are looked for together, and the others."""
        model = self._model
        if self._selectors:  # any part may look for any of them
            return [_with_rest(word, []) for word in model.places.words]
        return self._shared[WHOLE].groups

    @property
    def parts(self) -> int:
        """How many parts a loop has."""
        return len(self._shared) + bool(self._selectors)

    # Samples

    @cached_property
    def driver(self) -> LoadedFunction:
        """The function that makes loops, in traces where there are any."""
        compiled = self._compiled_driver(b"traces", None, ())
        return LoadedFunction(CALL(compiled.address(RUN_TRACED)), compiled)

    def _compiled_driver(self, about: bytes, observe: Callable[[ir.Module], Observe] | None,
                         cases: Sequence[int]) -> code.LoadedCode:
        def emit(module: ir.Module) -> None:
            emit_trace_driver(module, self._model.places, self._model.real, observe and observe(module))

        return self._compiled(about, emit, cases, inline=False)

    def _sampler(self, cases: tuple[int, ...]) -> tuple[Any, list[int]]:
        """The function that records loops, and how many codes and reads a row has."""
        shared = [own.shape for own in self._shared.values()]
        room = (CASE_CODES, CASE_READS) if self._selectors else (0, 0)
        count = [sum(shape.codes for shape in shared) + room[0], sum(shape.reads for shape in shared) + room[1]]
        if self._last_sampler is None or self._last_sampler[0] != cases:
            compiled = self._compiled_driver(f"sample {cases} {list(self._cases)}".encode(),
                                             lambda module: partial(self._observe, module, cases), cases)
            self._last_sampler = cases, LoadedFunction(CALL_WITH_LOG(compiled.address(RUN_TRACED)), compiled)
        return self._last_sampler[1].call, count

    def _observe(self, module: ir.Module, cases: Sequence[int], b: ir.IRBuilder, buffer: ir.Value, tables: ir.Value,
                 memory: ir.Value, words: Sequence[ir.Value]) -> list[ir.Value]:
        """Code that works out codes and reads of a loop, in whatever case it is. 0 for a case that is not known."""
        def row(key: int) -> list[ir.Value]:
            found = StepCall(b, self._parts(module, b, key, tables, memory), buffer, words).look()
            return [resized(b, value, I64) for value in (*found.codes, *found.reads, *found.places)]

        if not self._selectors:
            return row(0)
        key: ir.Value = i64(0)
        for i, (word, place) in enumerate(self._selectors):
            bit = b.and_(b.lshr(words[word], i64(place)), i64(1))
            key = b.or_(key, b.shl(bit, i64(i)))
        end = b.function.append_basic_block("observed")
        default = b.function.append_basic_block("unknown")
        switch, rows = b.switch(key, default), list[tuple[ir.Block, list[ir.Value]]]()
        for case in cases:
            block = b.function.append_basic_block("case")
            switch.add_case(i64(case), block)
            b.position_at_end(block)
            values = row(case)
            rows.append((b.block, values))
            b.branch(end)
        b.position_at_end(default)
        b.branch(end)
        b.position_at_end(end)
        found = []
        for j in range(len(rows[0][1])):
            value = b.phi(I64)
            value.add_incoming(i64(0), default)
            for block, values in rows:
                value.add_incoming(values[j], block)
            found.append(value)
        return found

    def prepare_sampler(self) -> None:
        """Compile what records loops, for the cases that are known."""
        if (cases := self._known_cases()) or not self._selectors:
            self._sampler(cases)

    def sample(self, arguments: int, loops: int, rows: int) -> FoundSample:
        """Make up to so many loops, and record up to so many of those outside of traces.

        Without a known case none are made.
        """
        cases = self._known_cases()
        if self._selectors and not cases:
            return FoundSample(Sample.none(), 0)
        sampler, (codes, reads) = self._sampler(cases)
        states = len(self._model.places.words)
        count = [1, states, codes, reads, reads, states]
        log = np.zeros(1 + rows * sum(count), dtype=np.uint64)
        made = int(sampler(arguments, loops, log.ctypes.data, rows))
        found = np.split(log[1:].reshape(rows, -1)[: int(log[0])], np.cumsum(count)[:-1], axis=1)
        left, before, asked, read, places, after = found
        return FoundSample(Sample(before, asked, read, places, after, left[:, 0] != 0), made)

    # Traces

    def key_of(self, state: HotState) -> int | None:
        """The case of a hot state; None if that is not decided by what is constant there."""
        key = 0
        for i, (word, place) in enumerate(self._selectors):
            if not state.masks[word] >> place & 1:
                return None
            key |= (state.values[word] >> place & 1) << i
        return key

    def compile(self, graph: HotGraph, patterns: Sequence[Sequence[PatternPart]]) -> CompiledTrace:
        """A trace of what is hot."""
        model, cases = self._model, self._known_cases()
        keys = {key for state in graph.states if (key := self.key_of(state)) is not None and (not cases or key in cases)}

        def emit(module: ir.Module) -> None:
            def parts_of(b: ir.IRBuilder, state: HotState, tables: ir.Value, memory: ir.Value) -> list[LoopPart]:
                key = self.key_of(state)
                return [] if key is None or key not in keys else self._parts(module, b, key, tables, memory)

            TraceEmitter(module, graph, parts_of, model.places, model.real, patterns).emit()

        about = repr((graph, patterns, list(self._cases), self._columns_of(graph))).encode()
        anchor, at = list(model.places.words.items())[graph.anchor]
        place = at, -1 if model.places.item(anchor) == 8 else (1 << 8 * model.places.item(anchor)) - 1
        return CompiledTrace(graph, self._compiled(about, emit, sorted(keys) if cases else ()), place)

    def _columns_of(self, graph: HotGraph) -> list[int | None]:
        """The columns that the code of a graph has as constants."""
        found = []
        for state in graph.states:
            key = self.key_of(state)
            parts = [] if key is None or (self._selectors and key not in self._cases) else self._names_in_order(key)
            for arm in state.arms:
                first = 0
                for name, part in parts:
                    asked = enumerate(arm.codes[first : first + part.shape.codes])
                    found += [self._column(part, i, one) for i, one in asked if one is not None]
                    first += part.shape.codes if name in self._shared else CASE_CODES
        return found

    def _compiled(self, about: bytes, emit: Callable[[ir.Module], None], cases: Sequence[int], *,
                  inline: bool = True) -> code.LoadedCode:
        def build() -> tuple[ir.Module, Notes]:
            module = ir.Module("trace")
            emit(module)
            return module, {}

        library: Mapping[str, bytes] = {**{name: own.module for name, own in self._shared.items()},
                                        **{_case_name(key): self._case(key).module for key in cases}}
        name = code.name_of(b"trace", about, *self._model.names)
        return code.load_or_compile(name, build, vectorize=False, library=library, inline=inline)


def _case_name(key: int) -> str:
    return f"case_{key}"


def _groups(words: Sequence[StateWord], model: CompiledModel, plan: LoopPlan) -> list[list[int]]:
    """The bits of each state that make a code together, and the rest."""
    together: dict[StateWord, list[int]] = {word: [] for word in words}
    for node in reachable(plan.forms()):
        if node.op is CODE:
            masks: dict[StateWord, int] = {}
            for argument in node.args:
                found = model.places.word_of(argument.data) if argument.op is STATE else None
                if found is not None and found[0] in together:
                    masks[found[0]] = masks.get(found[0], 0) | 1 << found[1]
            for word, mask in masks.items():
                apart = [other for other in together[word] if not other & mask]
                together[word] = [*apart, mask | sum(other for other in together[word] if other & mask)]
    return [_with_rest(word, own) for word, own in together.items()]


def _with_rest(word: StateWord, masks: Sequence[int]) -> list[int]:
    """Masks, the bits of a state that are in none, and those above its rows, which are 0."""
    whole = (1 << word[0].rows) - 1
    return [mask for mask in (*masks, whole & ~sum(masks), (1 << WORD) - 1 ^ whole) if mask]
