"""Hot states as LLVM code: a block for each, with its constants, and a jump to the one that follows.

A block is the loop of its state (`step`), inlined. Guards compare: the codes that the loop looks for with those that it was
recorded with, before it is made; and what active columns carry afterwards with the hot states that followed. Whoever
fails leaves, with the card as it is after the last loop that was made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from llvmlite import ir

from punchcard.engines.lowered.analysis.buffer_layout import BufferLayout
from punchcard.engines.lowered.codegen.driver import LOOPS, RUN, look_for_patterns, run_arguments
from punchcard.engines.lowered.codegen.floats import I1, I8, I32, I64, i64, is_near, resized
from punchcard.engines.lowered.codegen.step import LoopPart, StepCall
from punchcard.engines.lowered.tracing.profile import Arm, HotGraph, HotState
from punchcard.words.llvm import number

TRACE = ir.FunctionType(I64, [I8.as_pointer(), I32.as_pointer().as_pointer(), I64, I64.as_pointer(), I64.as_pointer()])
SAMPLE, TRACED = "sample", "run_traced"
LIKELY = (1 << 16, 1)


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
        self.b = ir.IRBuilder(self.function.append_basic_block("begin"))
        self.variables = [self.b.alloca(I64) for _ in places.words]
        self.left = self.b.alloca(I64)
        self.blocks = [self.function.append_basic_block(f"state{i}") for i in range(len(graph.states))]
        self.out = self.function.append_basic_block("out")

    def emit(self) -> ir.Function:
        b = self.b
        for variable, word in zip(self.variables, self.places.words, strict=True):
            b.store(resized(b, b.load(self._place(word)), I64), variable)
        b.store(self.loops, self.left)
        self._leave_without_room()
        begin = b.switch(b.load(self.variables[self.graph.anchor]), self.out)
        for state, block in zip(self.graph.states, self.blocks, strict=True):
            enter = self.function.append_basic_block("enter")
            begin.add_case(i64(state.values[self.graph.anchor]), enter)
            b.position_at_end(enter)
            self._branch(self._is_at(state, [b.load(variable) for variable in self.variables]), block, self.out)
        heads = _heads(self.graph)
        for i, (state, block) in enumerate(zip(self.graph.states, self.blocks, strict=True)):
            b.position_at_end(block)
            self._block(state, is_head=i in heads)
        b.position_at_end(self.out)
        for variable, word in zip(self.variables, self.places.words, strict=True):
            place = self._place(word)
            b.store(resized(b, b.load(variable), place.type.pointee), place)
        b.ret(b.sub(self.loops, b.load(self.left)))
        return self.function

    def _place(self, word: object) -> ir.Value:
        at, item = self.places.words[word], self.places.item(word)  # type: ignore[index,arg-type]
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
        b = self.b
        if is_head:
            self._leave_without_room()
        full = (1 << 64) - 1
        words = [i64(value) if mask == full else b.or_(b.and_(b.load(variable), i64(full ^ mask)), i64(value))
                 for variable, mask, value in zip(self.variables, state.masks, state.values, strict=True)]
        parts = self.parts_of(b, state, self.tables, self.extra)
        call = StepCall(b, parts, self.buffer, words) if parts else None
        codes, columns = call.codes() if call is not None else ([], [])
        for arm in state.arms if call is not None else ():
            own, other = (self.function.append_basic_block(name) for name in ("arm", "other"))
            b.cbranch(_all(b, [self._same(code, known) for code, known in zip(codes, arm.codes, strict=True)]), own, other)
            b.position_at_end(own)
            assert call is not None
            self._arm(arm, call, codes, columns)
            b.position_at_end(other)
        b.branch(self.out)

    def _same(self, value: ir.Value, known: int | None) -> ir.Value:
        """The guard of a value that is taken for known."""
        return ir.Constant(I1, 1) if known is None else self.b.icmp_unsigned("==", value, number(known, value.type.width))

    def _leave_without_room(self) -> None:
        """Go on only if the longest way to the next head can be made: no state is on it twice."""
        inside = self.function.append_basic_block("room")
        self._branch(self.b.icmp_signed(">=", self.b.load(self.left), i64(len(self.blocks))), inside, self.out)
        self.b.position_at_end(inside)

    def _arm(self, arm: Arm, call: StepCall, codes: Sequence[ir.Value], columns: Sequence[ir.Value]) -> None:
        b = self.b
        codes, columns = _known(codes, arm.codes), call.known_columns(arm.codes, columns)
        reads, _ = call.reads(codes, columns)
        guarded = self.function.append_basic_block("guarded")
        self._branch(_all(b, [self._same(read, known) for read, known in zip(reads, arm.reads, strict=True)]), guarded,
                     self.out)
        b.position_at_end(guarded)
        new = call.loop(codes, columns, _known(reads, arm.reads), self.out)
        for variable, word in zip(self.variables, new, strict=True):
            b.store(word, variable)
        b.store(b.sub(b.load(self.left), i64(1)), self.left)
        for terms in self.patterns:
            with b.if_then(_all(b, [self._is_there(term, new) for term in terms]), likely=False):
                b.store(i64(1), self.look)
                b.branch(self.out)
        for following in arm.successors:
            other = self.function.append_basic_block("other")
            self._branch(self._is_at(self.graph.states[following], new), self.blocks[following], other)
            b.position_at_end(other)
        b.branch(self.out)

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


def emit_traced(module: ir.Module, trace: ir.Function, real: ir.Type) -> None:
    """run_traced(arguments, loops) -> loops made. As `run_card`; what no trace makes, `run` makes.

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
    place, look, made, pause = (b.alloca(I64) for _ in range(4))
    b.store(i64(0), made)
    b.store(i64(1), pause)
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
    b.store(i64(1), pause)
    with b.if_then(b.icmp_unsigned("!=", b.load(look), i64(0)), likely=False):
        now = b.load(made)
        look_for_patterns(b, real, buffer, report, patterns, now, place, b.icmp_signed("<", now, loops))
    b.branch(generic)
    b.position_at_end(generic)
    room = b.sub(loops, b.load(made))
    with b.if_then(b.icmp_signed("<=", room, i64(0)), likely=False):
        b.store(i64(0), report)
        b.ret(b.load(made))
    count = b.load(pause)
    count = b.select(b.icmp_signed("<", count, room), count, room)
    done = b.call(run, [*values[:LOOPS], count, *values[LOOPS:]])
    b.store(b.add(b.load(made), done), made)
    twice = b.shl(b.load(pause), i64(1))
    b.store(b.select(b.icmp_signed("<", twice, i64(MOST_PAUSE)), twice, i64(MOST_PAUSE)), pause)
    b.cbranch(b.icmp_unsigned("!=", b.load(report), i64(0)), end, head)
    b.position_at_end(end)
    b.ret(b.load(made))


MOST_PAUSE = 16
"""Loops that are made by `run` before a trace is tried again, at most."""


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
