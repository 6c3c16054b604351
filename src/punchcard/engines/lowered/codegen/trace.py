"""Hot states as LLVM code: a block for each, with its constants, and a jump to the one that follows.

A block is the loop of its state (`step`), inlined. Guards compare: the codes that the loop looks for with those that it was
recorded with, before it is made; and what active columns carry afterwards with the hot states that followed. Whoever
fails leaves, with the card as it is after the last loop that was made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from typing import NamedTuple

from llvmlite import ir

from punchcard.engines.lowered.analysis.buffer_layout import BufferLayout, StateWord
from punchcard.engines.lowered.codegen.floats import I1, I32, I64, i64, is_near, resized
from punchcard.engines.lowered.codegen.step import LoopPart, StepCall
from punchcard.engines.lowered.codegen.trace_driver import TRACE
from punchcard.engines.lowered.tracing.profile import Arm, HotGraph, HotState
from punchcard.words.llvm import number

LIKELY = (1 << 16, 1)
MARK = ir.FunctionType(ir.VoidType(), [I64])
TRACED = "trace"


class PatternPart(NamedTuple):
    """A part of a pattern: bits of a word at an offset, or (without a mask) the sign of a number there."""

    offset: int
    mask: int
    wanted: int


PartsOf = Callable[[ir.IRBuilder, HotState, ir.Value, ir.Value], Sequence[LoopPart]]
"""The parts of the loop of a hot state, with the driver's tables and those of cases; none if it cannot be traced."""


class TraceEmitter:
    """Writes `trace(buffer, tables, loops, look, memory) -> loops made`.

    States are in variables, and go to the buffer at the end. `look` is set to 1 if a pattern may be on the card.
    `memory` has the tables of the cases (`trace_driver`).
    """

    def __init__(self, module: ir.Module, graph: HotGraph, parts_of: PartsOf, places: BufferLayout, real: ir.Type,
                 patterns: Sequence[Sequence[PatternPart]]) -> None:
        self.graph, self.parts_of, self.places, self.real, self.patterns = graph, parts_of, places, real, patterns
        self.function = ir.Function(module, TRACE, TRACED)
        self.buffer, self.tables, self.loops, self.look, self.memory = self.function.args
        for argument in (self.buffer, self.tables, self.look, self.memory):
            argument.add_attribute("noalias")
        self.exits = count()
        self.b = ir.IRBuilder(self.function.append_basic_block("begin"))
        self.variables = [self.b.alloca(I64) for _ in places.words]
        self.left = self.b.alloca(I64)
        self.blocks = [self.function.append_basic_block(f"state{i}") for i in range(len(graph.states))]

    def emit(self) -> None:
        b, nowhere = self.b, self.function.append_basic_block("nowhere")
        words = [resized(b, b.load(self._place(word)), I64) for word in self.places.words]
        inside = self.function.append_basic_block("begin_inside")
        self._branch(self._has_room(self.loops, words), inside, nowhere)
        b.position_at_end(inside)
        begin = b.switch(words[self.graph.anchor], nowhere)
        for i in entries_of(self.graph):
            state, block = self.graph.states[i], self.blocks[i]
            enter, there = (self.function.append_basic_block(name) for name in ("enter", "there"))
            begin.add_case(i64(state.values[self.graph.anchor]), enter)
            b.position_at_end(enter)
            self._branch(self._is_at(state, words), there, nowhere)
            b.position_at_end(there)
            for variable, word in zip(self.variables, words, strict=True):
                b.store(word, variable)
            b.store(self.loops, self.left)
            b.branch(block)
        b.position_at_end(nowhere)
        b.ret(i64(0))
        heads = _heads(self.graph)
        for i, (state, block) in enumerate(zip(self.graph.states, self.blocks, strict=True)):
            b.position_at_end(block)
            self._block(state, is_head=i in heads)

    def _leave(self, words: Sequence[ir.Value]) -> None:
        """Return, with these states.

        Each way out ends with an assembly of no instruction and a number of its own, which may use all memory. LLVM cannot
        join two of them. So what one way out puts into the buffer is not worked out on the way there.
        """
        b = self.b
        for value, word in zip(words, self.places.words, strict=True):
            place = self._place(word)
            b.store(resized(b, value, place.type.pointee), place)
        b.asm(MARK, "", "i,~{memory}", [i64(next(self.exits))], side_effect=True)
        b.ret(b.sub(self.loops, b.load(self.left)))

    def _place(self, word: StateWord) -> ir.Value:
        at, item = self.places.words[word], self.places.item(word)
        return self.b.bitcast(self.b.gep(self.buffer, [i64(at)]), ir.IntType(8 * item).as_pointer())

    def _branch(self, condition: ir.Value, yes: ir.Block, no: ir.Block) -> None:
        self.b.cbranch(condition, yes, no).set_weights(LIKELY)

    def _is_at(self, state: HotState, words: Sequence[ir.Value]) -> ir.Value:
        """Whether these words are what a hot state has."""
        b = self.b
        same = [b.icmp_unsigned("==", b.and_(word, i64(mask)), i64(value))
                for word, mask, value in zip(words, state.masks, state.values, strict=True) if mask]
        return _all(b, same)

    def _has_room(self, left: ir.Value, words: Sequence[ir.Value]) -> ir.Value:
        """Whether so many loops may be made as there are hot states, and no counter comes to its end in them.

        What is done at its end is then not asked for in each loop: LLVM knows from here that it is not there.
        """
        b, count, sizes = self.b, len(self.blocks), [field.rows for field, _ in self.places.words]
        return _all(b, [b.icmp_signed(">=", left, i64(count)), *(
            b.icmp_unsigned("<", words[i], number((1 << sizes[i]) - count, 64)) for i in self.graph.counters)])

    def _block(self, state: HotState, *, is_head: bool) -> None:
        b, full = self.b, (1 << 64) - 1
        words = [i64(value) if mask == full else b.or_(b.and_(b.load(variable), i64(full ^ mask)), i64(value))
                 for variable, mask, value in zip(self.variables, state.masks, state.values, strict=True)]
        out = self.function.append_basic_block("before")
        if is_head:
            inside = self.function.append_basic_block("room")
            self._branch(self._has_room(b.load(self.left), words), inside, out)
            b.position_at_end(inside)
        parts = self.parts_of(b, state, self.tables, self.memory)
        for arm in state.arms if parts else ():
            other = self.function.append_basic_block("other")
            self._arm(arm, StepCall(b, parts, self.buffer, words), other, out)
            b.position_at_end(other)
        b.branch(out)
        b.position_at_end(out)
        self._leave(words)

    def _arm(self, arm: Arm, call: StepCall, other: ir.Block, out: ir.Block) -> None:
        """A way through a hot state, or to an `other` one where codes and words are not what was recorded.

        Each is compared as it is if the others are: so a code may seem right where a word is wrong. Checks that fail before
        the loop go `out`.
        """
        b = self.b
        codes, reads = _numbers(arm.codes, I32), _numbers(arm.reads, I64)
        columns = call.known_columns(arm.codes)
        found = call.look(codes, columns, reads)
        for recorded, its in ((codes, found.codes), (reads, found.reads)):
            guarded = self.function.append_basic_block("guarded")
            pairs = [(value, one) for value, one in zip(its, recorded, strict=True) if one is not None]
            self._branch(_all(b, [b.icmp_unsigned("==", value, one) for value, one in pairs]), guarded, other)
            b.position_at_end(guarded)
        known = _filled(codes, found.codes), _filled(columns, found.columns), _filled(reads, found.reads)
        make = partial(call.loop, *known, out)
        for following in arm.successors:
            there, other = (self.function.append_basic_block(name) for name in ("there", "other"))
            value = i64(self.graph.states[following].values[self.graph.anchor])
            self._branch(b.icmp_unsigned("==", found.states[self.graph.anchor], value), there, other)
            b.position_at_end(there)
            self._loop(make, following)
            b.position_at_end(other)
        b.asm(MARK, "", "i,~{memory}", [i64(next(self.exits))], side_effect=True)
        self._loop(make, None)

    def _loop(self, make: Callable[[], Sequence[ir.Value]], following: int | None) -> None:
        """Make the loop; then comes a hot state, or the trace is left.

        It is written for each hot state that may follow, where its anchor is known: what else follows from that is constant.
        """
        b = self.b
        new = make()
        for variable, word in zip(self.variables, new, strict=True):
            b.store(word, variable)
        b.store(b.sub(b.load(self.left), i64(1)), self.left)
        for terms in self.patterns:
            with b.if_then(_all(b, [self._is_there(term, new) for term in terms]), likely=False):
                b.store(i64(1), self.look)
                self._leave(new)
        if following is not None:
            other = self.function.append_basic_block("other")
            self._branch(self._is_at(self.graph.states[following], new), self.blocks[following], other)
            b.position_at_end(other)
        self._leave(new)

    def _is_there(self, term: PatternPart, new: Sequence[ir.Value]) -> ir.Value:
        """Whether a part of a pattern is on the card, after a loop."""
        b, offsets = self.b, list(self.places.words.values())
        if term.mask and term.offset in offsets:
            word = new[offsets.index(term.offset)]
        else:
            kind = I64 if term.mask else self.real
            word = b.load(b.bitcast(b.gep(self.buffer, [i64(term.offset)]), kind.as_pointer()))
            word.align = 1
        if not term.mask:
            return is_near(b, word, ir.Constant(self.real, float(term.wanted)))
        return b.icmp_unsigned("==", b.and_(word, i64(term.mask)), i64(term.wanted))


def _all(b: ir.IRBuilder, conditions: Sequence[ir.Value]) -> ir.Value:
    result: ir.Value = ir.Constant(I1, 1)
    for condition in conditions:
        result = b.and_(result, condition)
    return result


def _numbers(known: Sequence[int | None], kind: ir.IntType) -> list[ir.Value | None]:
    return [None if one is None else number(one, kind.width) for one in known]


def _filled(known: Sequence[ir.Value | None], found: Sequence[ir.Value]) -> list[ir.Value]:
    """What is known, and else what was found."""
    return [value if one is None else one for one, value in zip(known, found, strict=True)]


def entries_of(graph: HotGraph) -> list[int]:
    """Hot states at which a trace is entered."""
    return sorted({*_heads(graph), *graph.entries})


def _heads(graph: HotGraph) -> set[int]:
    """Hot states of which there is one on every way that comes back to where it began: if it can be, those with the most
    constants. What is variable at a head is not known any more, also where it was worked out in the block before.
    """
    heads, done, on_way = set[int](), set[int](), dict[int, None]()
    following = [[next_ for arm in state.arms for next_ in arm.successors] for state in graph.states]
    for first in sorted(range(len(graph.states)), key=lambda i: -sum(mask.bit_count() for mask in graph.states[i].masks)):
        pending = [(first, iter(following[first]))] if first not in done else []
        if pending:
            done.add(first)
            on_way[first] = None
        while pending:
            number, rest = pending[-1]
            then = next(rest, None)
            if then is None:
                pending.pop()
                on_way.pop(number)
            elif then in on_way:
                heads.add(then)
            elif then not in done:
                done.add(then)
                on_way[then] = None
                pending.append((then, iter(following[then])))
    return heads
