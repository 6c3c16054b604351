"""Hot states as LLVM code: a block for each, with its constants, and a jump to the one that follows.

A block is the loop of its state (`step`), inlined. Guards compare: the codes that the loop looks for with those that it was
recorded with, before it is made; and what active columns carry afterwards with the hot states that followed. Whoever
fails leaves, with the card as it is after the last loop that was made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import NamedTuple

from llvmlite import ir

from punchcard.engines.lowered.analysis.buffer_layout import BufferLayout, StateWord
from punchcard.engines.lowered.codegen.driver import LOOPS, RUN, look_for_patterns, run_arguments
from punchcard.engines.lowered.codegen.floats import I1, I8, I32, I64, i64, is_near, resized
from punchcard.engines.lowered.codegen.step import LoopPart, StepCall
from punchcard.engines.lowered.tracing.profile import Arm, HotGraph, HotState
from punchcard.words.llvm import number

TRACE = ir.FunctionType(I64, [I8.as_pointer(), I32.as_pointer().as_pointer(), I64, I64.as_pointer(), I64.as_pointer()])
SAMPLE, TRACED = "sample", "run_traced"
LIKELY = (1 << 16, 1)
MARK = ir.FunctionType(ir.VoidType(), [I64])


class PatternPart(NamedTuple):
    """A part of a pattern: bits of a word at an offset, or (without a mask) the sign of a number there."""

    offset: int
    mask: int
    wanted: int


PartsOf = Callable[[ir.IRBuilder, HotState, ir.Value, ir.Value], Sequence[LoopPart]]
"""The parts of the loop of a hot state, with the driver's tables and those of cases; none if it cannot be traced."""


class TraceEmitter:
    """Writes `trace(buffer, tables, loops, look, extra) -> loops made`.

    States are in variables, and go to the buffer at the end. `look` is set to 1 if a pattern may be on the card.
    `extra` has counters, and the tables of the cases.
    """

    def __init__(self, module: ir.Module, graph: HotGraph, parts_of: PartsOf, places: BufferLayout, real: ir.Type,
                 patterns: Sequence[Sequence[PatternPart]]) -> None:
        self.graph, self.parts_of, self.places, self.real, self.patterns = graph, parts_of, places, real, patterns
        self.function = ir.Function(module, TRACE, "trace")
        self.function.linkage = "internal"
        self.function.attributes.add("noinline")
        self.buffer, self.tables, self.loops, self.look, self.extra = self.function.args
        for argument in (self.buffer, self.tables, self.look, self.extra):
            argument.add_attribute("noalias")
        self.exits = count()
        self.b = ir.IRBuilder(self.function.append_basic_block("begin"))
        self.variables = [self.b.alloca(I64) for _ in places.words]
        self.left = self.b.alloca(I64)
        self.blocks = [self.function.append_basic_block(f"state{i}") for i in range(len(graph.states))]

    def emit(self) -> ir.Function:
        b, nowhere = self.b, self.function.append_basic_block("nowhere")
        words = [resized(b, b.load(self._place(word)), I64) for word in self.places.words]
        inside = self.function.append_basic_block("begin_inside")
        self._branch(b.icmp_signed(">=", self.loops, i64(len(self.blocks))), inside, nowhere)
        b.position_at_end(inside)
        begin = b.switch(words[self.graph.anchor], nowhere)
        heads = _heads(self.graph)
        for i, (state, block) in enumerate(zip(self.graph.states, self.blocks, strict=True)):
            if i not in heads and i not in self.graph.entries:
                continue
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
        for i, (state, block) in enumerate(zip(self.graph.states, self.blocks, strict=True)):
            b.position_at_end(block)
            self._block(state, is_head=i in heads)
        return self.function

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

    def _block(self, state: HotState, *, is_head: bool) -> None:
        b, full = self.b, (1 << 64) - 1
        words = [i64(value) if mask == full else b.or_(b.and_(b.load(variable), i64(full ^ mask)), i64(value))
                 for variable, mask, value in zip(self.variables, state.masks, state.values, strict=True)]
        out = self.function.append_basic_block("before")
        if is_head:
            inside = self.function.append_basic_block("room")
            self._branch(b.icmp_signed(">=", b.load(self.left), i64(len(self.blocks))), inside, out)
            b.position_at_end(inside)
        parts = self.parts_of(b, state, self.tables, self.extra)
        call = StepCall(b, parts, self.buffer, words) if parts else None
        codes, columns = call.codes() if call is not None else ([], [])
        for arm in state.arms if call is not None else ():
            own, other = (self.function.append_basic_block(name) for name in ("arm", "other"))
            b.cbranch(_all(b, [self._same(code, known) for code, known in zip(codes, arm.codes, strict=True)]), own, other)
            b.position_at_end(own)
            assert call is not None
            self._arm(arm, call, codes, columns, out)
            b.position_at_end(other)
        b.branch(out)
        b.position_at_end(out)
        self._leave(words)

    def _same(self, value: ir.Value, known: int | None) -> ir.Value:
        """The guard of a value that is taken for known."""
        return ir.Constant(I1, 1) if known is None else self.b.icmp_unsigned("==", value, number(known, value.type.width))

    def _arm(self, arm: Arm, call: StepCall, codes: Sequence[ir.Value], columns: Sequence[ir.Value], out: ir.Block) -> None:
        """A way through a hot state. Guards and checks that fail before the loop is made go `out`."""
        b = self.b
        codes, columns = _known(codes, arm.codes), call.known_columns(arm.codes, columns)
        reads, _ = call.reads(codes, columns, arm.reads)
        guarded = self.function.append_basic_block("guarded")
        self._branch(_all(b, [self._same(read, known) for read, known in zip(reads, arm.reads, strict=True)]), guarded, out)
        b.position_at_end(guarded)
        new = call.loop(codes, columns, _known(reads, arm.reads), out)
        for variable, word in zip(self.variables, new, strict=True):
            b.store(word, variable)
        b.store(b.sub(b.load(self.left), i64(1)), self.left)
        for terms in self.patterns:
            with b.if_then(_all(b, [self._is_there(term, new) for term in terms]), likely=False):
                b.store(i64(1), self.look)
                self._leave(new)
        for following in arm.successors:
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


def _known(values: Sequence[ir.Value], known: Sequence[int | None]) -> list[ir.Value]:
    """Values, those that were compared as constants."""
    return [value if one is None else number(one, value.type.width) for value, one in zip(values, known, strict=True)]


def _heads(graph: HotGraph) -> set[int]:
    """Hot states of which there is one on every way that comes back to where it began."""
    heads, done, on_way = set[int](), set[int](), dict[int, None]()
    following = [[next_ for arm in state.arms for next_ in arm.successors] for state in graph.states]
    for first in range(len(graph.states)):
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


def emit_traced(module: ir.Module, trace: ir.Function, real: ir.Type, states: int) -> None:
    """run_traced(arguments, loops) -> loops made. As `run_card`; what no trace makes, `run` makes.

    A trace is tried after every loop, as often as it has `states`: a cycle through one of its entries comes by. Then it is
    tried as often after several loops, and so on.

    Behind the arguments of `run_card` are the address of `run`, and that of an array: it counts loops made in traces, and
    times one was left. Then it has the tables of cases.
    """
    function = ir.Function(module, ir.FunctionType(I64, [I64.as_pointer(), I64]), TRACED)
    given, loops = function.args
    b = ir.IRBuilder(function.append_basic_block("begin"))
    values = run_arguments(b, given)
    buffer, tables, _, report, patterns, *_ = values
    run = b.inttoptr(b.load(b.gep(given, [i64(len(values))])), RUN.as_pointer())
    extra = _extra(b, given, len(values))
    place, look, made, missed = (b.alloca(I64) for _ in range(4))
    b.store(i64(0), made)
    b.store(i64(0), missed)
    head, traced, generic, end = (function.append_basic_block(name) for name in ("head", "traced", "generic", "end"))
    b.branch(head)
    b.position_at_end(head)
    b.store(i64(0), look)
    inside = b.call(trace, [buffer, tables, b.sub(loops, b.load(made)), look, extra])
    b.store(b.add(b.load(made), inside), made)
    b.cbranch(b.icmp_unsigned("!=", inside, i64(0)), traced, generic)
    b.position_at_end(traced)
    for place_of, more in enumerate((inside, i64(1))):
        counter = b.gep(extra, [i64(place_of)])
        b.store(b.add(b.load(counter), more), counter)
    b.store(i64(0), missed)
    with b.if_then(b.icmp_unsigned("!=", b.load(look), i64(0)), likely=False):
        now = b.load(made)
        look_for_patterns(b, real, buffer, report, patterns, now, place, b.icmp_signed("<", now, loops))
    b.branch(generic)
    b.position_at_end(generic)
    room = b.sub(loops, b.load(made))
    with b.if_then(b.icmp_signed("<=", room, i64(0)), likely=False):
        b.store(i64(0), report)
        b.ret(b.load(made))
    times = b.load(missed)
    count = b.select(b.icmp_signed("<", times, i64(states)), i64(1), i64(PAUSE))
    count = b.select(b.icmp_signed("<", count, room), count, room)
    done = b.call(run, [*values[:LOOPS], count, *values[LOOPS:]])
    b.store(b.add(b.load(made), done), made)
    b.store(b.select(b.icmp_signed("<", times, i64(2 * states)), b.add(times, i64(1)), i64(0)), missed)
    b.cbranch(b.icmp_unsigned("!=", b.load(report), i64(0)), end, head)
    b.position_at_end(end)
    b.ret(b.load(made))


PAUSE = 16
"""Loops that are made by `run` before a trace is tried again, when it was tried after each for a while."""


COUNTERS = 2


def _extra(b: ir.IRBuilder, given: ir.Value, arguments: int) -> ir.Value:
    return b.inttoptr(b.load(b.gep(given, [i64(arguments + 1)])), I64.as_pointer())


def case_tables(b: ir.IRBuilder, extra: ir.Value, number: int) -> ir.Value:
    """The tables of a case, by the number that it has for traces."""
    return b.inttoptr(b.load(b.gep(extra, [i64(COUNTERS + number)])), TRACE.args[1])


Observe = Callable[[ir.IRBuilder, ir.Value, ir.Value, ir.Value, Sequence[ir.Value]], Sequence[ir.Value]]
"""Given a builder, the buffer, the tables of the driver and of cases, and the states: what to record of the next loop."""


def emit_sample(module: ir.Module, places: BufferLayout, observe: Observe) -> None:
    """sample(arguments, loops, log) -> loops made. As `run_card`; before each loop, the log takes the states and more."""
    function = ir.Function(module, ir.FunctionType(I64, [I64.as_pointer(), I64, I64.as_pointer()]), SAMPLE)
    given, loops, log = function.args
    b = ir.IRBuilder(function.append_basic_block("begin"))
    values = run_arguments(b, given)
    buffer, tables, _, report, *_ = values
    run = b.inttoptr(b.load(b.gep(given, [i64(len(values))])), RUN.as_pointer())
    extra = _extra(b, given, len(values))
    head, body, more, end = (function.append_basic_block(name) for name in ("head", "body", "more", "end"))
    before = b.block
    b.branch(head)
    b.position_at_end(head)
    made = b.phi(I64)
    made.add_incoming(i64(0), before)
    b.store(i64(0), report)
    b.cbranch(b.icmp_signed("<", made, loops), body, end)
    b.position_at_end(body)
    words = [resized(b, b.load(b.bitcast(b.gep(buffer, [i64(at)]), ir.IntType(8 * places.item(word)).as_pointer())), I64)
             for word, at in places.words.items()]
    row = [*words, *observe(b, buffer, tables, extra, words)]
    for i, value in enumerate(row):
        b.store(resized(b, value, I64), b.gep(log, [b.add(b.mul(made, i64(len(row))), i64(i))]))
    done = b.call(run, [*values[:LOOPS], i64(1), *values[LOOPS:]])
    total = b.add(made, done)
    b.cbranch(b.icmp_unsigned("!=", b.load(report), i64(0)), more, head)
    made.add_incoming(total, b.block)
    b.position_at_end(more)
    b.ret(total)
    b.position_at_end(end)
    b.ret(made)
