"""Parts of a loop as functions of values: what active columns carry, where they look and what they find are arguments.

A part is written from its plan by the same rules as the loop itself: all of a loop, or what all cases share of it, or what
one case has. Whoever calls it may already know the codes that it looks for, the columns that tables have for them, and the
words that it reads there: then it takes those that it is given. If a check fails, nothing was stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import accumulate, pairwise
from typing import NamedTuple

from llvmlite import ir

from punchcard.engines.lowered.analysis.buffer_layout import BufferLayout, Field, StateWord
from punchcard.engines.lowered.analysis.plan import LoopPlan
from punchcard.engines.lowered.codegen.emit import CodeKind, LoopEmitter
from punchcard.engines.lowered.codegen.floats import I1, I8, I32, I64, i32, i64, resized
from punchcard.engines.lowered.codegen.loop import compute, put_stores
from punchcard.engines.lowered.codegen.memory import Agreement, Flat
from punchcard.errors import LoweringError
from punchcard.words.word import Word

MOST_CODES = MOST_READS = 32
"""What a part may look for and read; a loop with more is not traced."""


ARGUMENTS = 7
"""The arguments of a part before its words."""
SECTIONS, READS = 4, 2
"""Of what a part has looked for: the sections of its results behind its words, and the first one of what it has read."""
NO_PLACE = 0
"""A place where no array is: that of what is not read from the buffer."""


class StepRegisters(Flat):
    """A buffer whose states are values, also those within a loop: what a function was called with, and new ones."""

    def __init__(self, buffer: ir.Value, places: BufferLayout, words: Sequence[ir.Value]) -> None:
        super().__init__(buffer, places)
        self._words: dict[StateWord, ir.Value] = dict(zip((*places.words, *places.passing), words, strict=True))
        self.new = dict(self._words)

    def state(self, b: ir.IRBuilder, word: StateWord) -> ir.Value:
        return self._words[word]

    def put_state(self, b: ir.IRBuilder, word: StateWord, value: ir.Value) -> None:
        kept = ir.IntType(8 * self._places.item(word))
        self.new[word] = resized(b, resized(b, value, kept), I64)


@dataclass(frozen=True)
class PartShape:
    """How many words, codes and reads a part has."""

    words: int
    codes: int
    reads: int

    @property
    def kind(self) -> ir.FunctionType:
        """part(buffer, tables, codes known, columns known, reads known, stores, results, words, codes, columns, reads) ->
        failed

        Which are known are masks of bits. Results are words, codes and so on, each in its section (see `_section`).
        """
        numbers = [*[I64] * self.words, *[I32] * (2 * self.codes), *[I64] * self.reads]
        return ir.FunctionType(I1, [I8.as_pointer(), I32.as_pointer().as_pointer(), *[I64] * 3, I1, I64.as_pointer(),
                                    *numbers])


@dataclass(frozen=True)
class LoopPart:
    """A part that can be called. `codes` and `reads`: the room that a loop has for those of this part.

    `column_of` gives what the table of a code, by its number, has for it; None if there is no table. `zeros`: masks of bits
    that must be 0 when it is called, by the numbers of their words.
    """

    function: ir.Function
    shape: PartShape
    tables: ir.Value
    codes: int
    reads: int
    column_of: Callable[[int, int], int | None]
    zeros: Mapping[int, int] = field(default_factory=dict)


class Found(NamedTuple):
    """What the parts of a loop look for and read: codes, the columns that tables have for them, words, and their places; and
    the states after it.
    """

    codes: list[ir.Value]
    columns: list[ir.Value]
    reads: list[ir.Value]
    places: list[ir.Value]
    states: list[ir.Value]


Known = Sequence[ir.Value | None]
"""Values that are given, each or not."""


class StepCall:
    """Calls of the parts of a loop: for the codes that it looks for and the words that it reads, then for the loop itself.

    In the order of the parts, what is known counts where the next is worked out: each is found for the case that the known
    ones before it are what is known.
    """

    def __init__(self, b: ir.IRBuilder, parts: Sequence[LoopPart], buffer: ir.Value, states: Sequence[ir.Value]) -> None:
        self._b, self._parts, self._buffer, self._states = b, parts, buffer, list(states)

    def known_columns(self, codes: Sequence[int | None]) -> list[ir.Value | None]:
        """The columns of known codes: a table has the same one for a code as long as there is one."""
        result: list[ir.Value | None] = [None] * len(codes)
        first = 0
        for part in self._parts:
            for i in range(part.shape.codes):
                code = codes[first + i]
                column = None if code is None else part.column_of(i, code)
                result[first + i] = None if column is None else i32(column)
            first += part.codes
        return result

    def look(self, codes: Known = (), columns: Known = (), reads: Known = ()) -> Found:
        """What the loop looks for and reads, for what is known."""
        chain = self._chain((codes, columns, reads), None)
        asked, at, read, places = ([value for part, results in chain for value in self._found(part, results, section)]
                                   for section in range(SECTIONS))
        return Found(asked, at, read, places, self._states_after(chain))

    def loop(self, codes: Known, columns: Known, reads: Known, failed: ir.Block) -> list[ir.Value]:
        """The new states. Where a check fails, it goes to another block."""
        return self._states_after(self._chain((codes, columns, reads), failed))

    def _states_after(self, chain: Sequence[tuple[LoopPart, ir.Value]]) -> list[ir.Value]:
        return self._words(chain[-1][1])[: len(self._states)]

    def _chain(self, known: tuple[Known, Known, Known], failed: ir.Block | None) -> list[tuple[LoopPart, ir.Value]]:
        """Every part with what the one before has left."""
        b, found, asked, read = self._b, list[tuple[LoopPart, ir.Value]](), 0, 0
        words = [*self._states, *[i64(0)] * (self._parts[0].shape.words - len(self._states))]
        for part in self._parts:
            shape = part.shape
            sections = [_given(known[0], asked, shape.codes, I32), _given(known[1], asked, shape.codes, I32),
                        _given(known[2], read, shape.reads, I64)]
            if found:
                words = self._words(found[-1][1])
            if failed is not None and part.zeros:
                going_on = b.function.append_basic_block("as_usual")
                other = reduce(b.or_, [b.and_(words[number], i64(mask)) for number, mask in part.zeros.items()])
                b.cbranch(b.icmp_unsigned("==", other, i64(0)), going_on, failed).set_weights((1 << 16, 1))
                b.position_at_end(going_on)
            with b.goto_entry_block():
                results = b.gep(b.alloca(ir.ArrayType(I64, _section(shape.words, SECTIONS))), [i32(0), i32(0)])
            stops = b.call(part.function, [self._buffer, part.tables, *(mask for mask, _ in sections),
                                           ir.Constant(I1, int(failed is not None)), results, *words,
                                           *(value for _, values in sections for value in values)])
            if failed is not None:
                going_on = b.function.append_basic_block("goes_on")
                b.cbranch(stops, failed, going_on).set_weights((1, 1 << 16))
                b.position_at_end(going_on)
            asked, read = asked + part.codes, read + part.reads
            found.append((part, results))
        return found

    def _words(self, results: ir.Value) -> list[ir.Value]:
        return [self._load(results, i) for i in range(self._parts[0].shape.words)]

    def _found(self, part: LoopPart, results: ir.Value, which: int) -> list[ir.Value]:
        """The codes (0) of a part, columns (1), the words that it reads (2) or their places (3), and 0 up to its room."""
        shape, first = part.shape, _section(part.shape.words, which)
        count, room, kind = (shape.codes, part.codes, I32) if which < READS else (shape.reads, part.reads, I64)
        return [*(resized(self._b, self._load(results, first + i), kind) for i in range(count)),
                *[ir.Constant(kind, 0)] * (room - count)]

    def _load(self, results: ir.Value, place: int) -> ir.Value:
        return self._b.load(self._b.gep(results, [i32(place)]))


def _section(words: int, which: int) -> int:
    """Where a section begins: there is room for the most that a part may look for and read."""
    return words + sum((MOST_CODES, MOST_CODES, MOST_READS, MOST_READS)[:which])


def _given(known: Known, first: int, count: int, kind: ir.Type) -> tuple[ir.Value, list[ir.Value]]:
    """Which of some values are known, as a mask, and the values."""
    values = [*known[first : first + count], *[None] * count][:count]
    mask = sum(1 << i for i, value in enumerate(values) if value is not None)
    return i64(mask), [ir.Constant(kind, ir.Undefined) if value is None else value for value in values]


def emit_part(module: ir.Module, name: str, plan: LoopPlan, code: CodeKind) -> tuple[PartShape, list[int]]:
    """The function of a part, and the table of each code that it looks for.

    How much it looks for is known when it is written: so it is written with room for more, and called by one that has as
    much as there is.
    """
    wide = PartShape(len(code.places.words) + len(code.places.passing), MOST_CODES, MOST_READS)
    function = ir.Function(module, wide.kind, f"wide_{name}")
    function.linkage = "internal"
    function.attributes.add("alwaysinline")
    buffer, tables, *known, stores, results = function.args[:ARGUMENTS]
    for argument in (buffer, tables, results):
        argument.add_attribute("noalias")
    words, *given = _split(function.args[ARGUMENTS:], wide)
    b = ir.IRBuilder(function.append_basic_block("compute"))
    memory = StepRegisters(buffer, code.places, words)
    emitter = TracedEmitter(b, code, memory, tables, known, given)
    new = compute(emitter, plan)
    new.put_states(emitter)

    def put(first: int, values: Iterable[ir.Value]) -> None:
        for place, value in enumerate(values, first):
            b.store(resized(b, value, I64), b.gep(results, [i32(place)]))

    put(0, memory.new.values())
    with b.if_then(b.not_(stores)):
        for which, values in enumerate((emitter.looked_for, emitter.found, emitter.read, emitter.read_at)):
            put(_section(wide.words, which), values)
        b.ret(ir.Constant(I1, 0))
    with b.if_then(b.not_(new.ok), likely=False):
        b.ret(ir.Constant(I1, 1))
    put_stores(emitter, new)
    b.ret(ir.Constant(I1, 0))
    shape = PartShape(wide.words, len(emitter.looked_for), len(emitter.read))
    _emit_narrow(module, name, function, wide, shape)
    return shape, [table for _, table in emitter.codes]


def _emit_narrow(module: ir.Module, name: str, wide: ir.Function, room: PartShape, shape: PartShape) -> None:
    function = ir.Function(module, shape.kind, name)
    words, codes, columns, reads = _split(function.args[ARGUMENTS:], shape)
    more = [ir.Constant(I32, ir.Undefined)] * (room.codes - shape.codes)
    b = ir.IRBuilder(function.append_basic_block("call"))
    b.ret(b.call(wide, [*function.args[:ARGUMENTS], *words, *codes, *more, *columns, *more, *reads,
                        *[ir.Constant(I64, ir.Undefined)] * (room.reads - shape.reads)]))


def _split(numbers: Sequence[ir.Value], shape: PartShape) -> list[Sequence[ir.Value]]:
    """Words, codes, columns and reads."""
    ends = list(accumulate((shape.words, shape.codes, shape.codes, shape.reads)))
    return [numbers[first:last] for first, last in pairwise((0, *ends))]


class TracedEmitter(LoopEmitter):
    """Writes a loop that may be given its codes and the words that it reads: a flag says whether it is, then come values."""

    def __init__(self, builder: ir.IRBuilder, code: CodeKind, memory: StepRegisters, tables: ir.Value,
                 known: Sequence[ir.Value], given: Sequence[Sequence[ir.Value]]) -> None:
        super().__init__(builder, code, memory, tables)
        self._registers = memory
        self._codes, self._columns, self._reads = zip(known, given, strict=True)
        self.looked_for: list[ir.Value] = []
        self.found: list[ir.Value] = []
        self.read: list[ir.Value] = []
        self.read_at: list[ir.Value] = []

    def known_code(self, code: ir.Value) -> ir.Value:
        self.looked_for.append(code)
        self.found.append(i32(0))
        return self._known(code, self._codes, len(self.looked_for) - 1)

    def known_column(self, column: ir.Value) -> ir.Value:
        self.found[-1] = column
        return self._known(column, self._columns, len(self.found) - 1)

    def known_read(self, word: ir.Value, field: Field, column: ir.Value) -> ir.Value:
        self.read_at.append(self._registers.offset(self.b, field, column))
        return self._known_word(word)

    def agreement(self, flag: Word) -> Word:
        return self.words.flag(Agreement(flag))

    def known_agreement(self, flag: ir.Value) -> ir.Value:
        """As a word that is read: what was stored in this loop and is looked for in it decides as much."""
        self.read_at.append(i64(NO_PLACE))
        return self.b.trunc(self._known_word(self.b.zext(flag, I64)), I1)

    def _known_word(self, word: ir.Value) -> ir.Value:
        self.read.append(word)
        return self._known(word, self._reads, len(self.read) - 1)

    def _known(self, value: ir.Value, section: tuple[ir.Value, Sequence[ir.Value]], number: int) -> ir.Value:
        mask, given = section
        if number == len(given):
            raise LoweringError(f"a loop looks for or reads more than {number} columns")
        return self.b.select(self.b.trunc(self.b.lshr(mask, i64(number)), I1), given[number], value)
