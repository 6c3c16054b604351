"""Traces and the usual code by turns, as an LLVM function: which trace is entered, and what is made outside.

A card may have several traces. A hash table says which of them are entered at a value of the anchor: the word of what
active columns carry that tells hot states apart. It lies in an array, with counters and the tables of cases.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum

from llvmlite import ir

from punchcard.engines.lowered.analysis.buffer_layout import BufferLayout
from punchcard.engines.lowered.codegen.driver import (
    LOOPS,
    RUN,
    find_entry,
    first_place,
    look_for_patterns,
    run_arguments,
)
from punchcard.engines.lowered.codegen.floats import I8, I32, I64, i64, resized

TRACE = ir.FunctionType(I64, [I8.as_pointer(), I32.as_pointer().as_pointer(), I64, I64.as_pointer(), I64.as_pointer()])
"""trace(buffer, tables, loops, look, memory) -> loops made."""
RUN_TRACED = "run_traced"
MOST_CASES = 256
TABLE_SIZE = 1 << 13
"""The entries of the hash table."""
PAUSE = 16
"""Loops that are made by `run` before a trace is tried again, when it was tried after each for a while."""


class TracePlace(IntEnum):
    """What the array has where: loops made in traces, how often one was left, how often one is tried after every loop, where
    the anchor is and its bits, the tables of cases, and the hash table.
    """

    INSIDE, LEFT, TRIES, ANCHOR, BITS, CASES = range(6)
    TABLE = CASES + MOST_CASES
    END = TABLE + 2 * TABLE_SIZE


Observe = Callable[[ir.IRBuilder, ir.Value, ir.Value, ir.Value, Sequence[ir.Value]], Sequence[ir.Value]]
"""Given a builder, the buffer, the tables of the driver, the array, and the states: what to record of the next loop."""


def emit_trace_driver(module: ir.Module, places: BufferLayout, real: ir.Type, observe: Observe | None = None) -> None:
    """run_traced(arguments, loops) -> loops made. As `run_card`; what no trace makes, `run` makes.

    Traces are tried after every loop, as often as the array says: a cycle through one of their entries comes by. Then they
    are tried as often after several loops, and so on. Behind the arguments of `run_card` are the address of `run`, and that
    of the array.

    With `observe`, there are two arguments more: a log, and for how many loops it has room. It ends when the log is full.
    Each loop that is made outside is a row: whether a trace was left before it, the states, what is observed, and the
    states after it. Before the first row is the number of rows.
    """
    pointer = I64.as_pointer()
    function = ir.Function(module, ir.FunctionType(I64, [pointer, I64, *([pointer, I64] if observe else [])]), RUN_TRACED)
    given, loops, *logged = function.args
    b = ir.IRBuilder(function.append_basic_block("begin"))
    values = run_arguments(b, given)
    buffer, tables, _, report, patterns, *_ = values
    run = b.inttoptr(b.load(b.gep(given, [i64(len(values))])), RUN.as_pointer())
    memory = b.inttoptr(b.load(b.gep(given, [i64(len(values) + 1)])), pointer)
    place, look, made, missed, left = (b.alloca(I64) for _ in range(5))
    for variable in (made, missed, left):
        b.store(i64(0), variable)
    if logged:
        b.store(i64(0), logged[0])
    head, traced, generic, end = (function.append_basic_block(name) for name in ("head", "traced", "generic", "end"))
    b.branch(head)
    b.position_at_end(head)
    b.store(i64(0), look)
    inside = _traced(b, memory, [buffer, tables, b.sub(loops, b.load(made)), look, memory], traced, generic)
    b.position_at_end(traced)
    b.store(b.add(b.load(made), inside), made)
    for counter, more in ((TracePlace.INSIDE, inside), (TracePlace.LEFT, i64(1))):
        b.store(b.add(_load(b, memory, counter), more), b.gep(memory, [i64(counter)]))
    b.store(i64(0), missed)
    b.store(i64(1), left)
    with b.if_then(b.icmp_unsigned("!=", b.load(look), i64(0)), likely=False):
        now = b.load(made)
        look_for_patterns(b, real, buffer, report, patterns, now, place, b.icmp_signed("<", now, loops))
    b.branch(head)
    b.position_at_end(generic)
    room = b.sub(loops, b.load(made))
    with b.if_then(b.icmp_signed("<=", room, i64(0)), likely=False):
        b.store(i64(0), report)
        b.ret(b.load(made))
    times, tries = b.load(missed), _load(b, memory, TracePlace.TRIES)
    count = b.select(b.icmp_signed("<", times, tries), i64(1), i64(PAUSE))
    count = b.select(b.icmp_signed("<", count, room), count, room)
    if observe:
        count = i64(1)
        words = _states(b, buffer, places)
        row = [b.load(left), *words, *observe(b, buffer, tables, memory, words)]
        at = b.add(b.mul(b.load(logged[0]), i64(len(row) + len(words))), i64(1))
        _put(b, logged[0], at, row)
    done = b.call(run, [*values[:LOOPS], count, *values[LOOPS:]])
    b.store(b.add(b.load(made), done), made)
    b.store(b.select(b.icmp_signed("<", times, b.mul(tries, i64(2))), b.add(times, i64(1)), i64(0)), missed)
    stops = b.icmp_unsigned("!=", b.load(report), i64(0))
    if observe:
        _put(b, logged[0], b.add(at, i64(len(row))), _states(b, buffer, places))
        rows = b.add(b.load(logged[0]), done)
        b.store(rows, logged[0])
        b.store(i64(0), left)
        stops = b.or_(stops, b.icmp_signed(">=", rows, logged[1]))
    b.cbranch(stops, end, head)
    b.position_at_end(end)
    b.ret(b.load(made))


def _traced(b: ir.IRBuilder, memory: ir.Value, arguments: Sequence[ir.Value], traced: ir.Block, none: ir.Block) -> ir.Value:
    """The loops made by the first trace that makes any: then it goes to `traced`, else to `none`."""
    anchor = b.load(b.bitcast(b.gep(arguments[0], [_load(b, memory, TracePlace.ANCHOR)]), I64.as_pointer()))
    anchor.align = 1
    key = b.and_(anchor, _load(b, memory, TracePlace.BITS))
    table, start, before = b.gep(memory, [i64(TracePlace.TABLE)]), first_place(b, key), b.block
    search, enter = (b.function.append_basic_block(name) for name in ("search", "enter"))
    b.branch(search)
    b.position_at_end(search)
    first = b.phi(I64)
    first.add_incoming(start, before)
    at, entry = find_entry(b, table, i64(TABLE_SIZE), 2, key, first)
    address = b.load(b.gep(entry, [i64(1)]))
    b.cbranch(b.icmp_unsigned("!=", address, i64(0)), enter, none)
    b.position_at_end(enter)
    made = b.call(b.inttoptr(address, TRACE.as_pointer()), arguments)
    first.add_incoming(b.add(at, i64(1)), b.block)
    b.cbranch(b.icmp_unsigned("!=", made, i64(0)), traced, search)
    return made


def _load(b: ir.IRBuilder, memory: ir.Value, place: int) -> ir.Value:
    return b.load(b.gep(memory, [i64(place)]))


def case_tables(b: ir.IRBuilder, memory: ir.Value, number: int) -> ir.Value:
    """The tables of a case, by the number that it has for traces."""
    return b.inttoptr(_load(b, memory, TracePlace.CASES + number), TRACE.args[1])


def _states(b: ir.IRBuilder, buffer: ir.Value, places: BufferLayout) -> list[ir.Value]:
    return [resized(b, b.load(b.bitcast(b.gep(buffer, [i64(at)]), ir.IntType(8 * places.item(word)).as_pointer())), I64)
            for word, at in places.words.items()]


def _put(b: ir.IRBuilder, log: ir.Value, at: ir.Value, values: Sequence[ir.Value]) -> None:
    for i, value in enumerate(values):
        b.store(resized(b, value, I64), b.gep(log, [b.add(at, i64(i))]))
