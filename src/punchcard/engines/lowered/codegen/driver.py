"""The driver of a card as an LLVM function: it makes many loops, looks for patterns, and finds the code of a case.

The driver of a card is `run`. `run_card` calls it with what lies in an array, since arguments take Python longer than few
loops. `run_many` calls it for some of the cards that lie one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
from llvmlite import ir

from punchcard.engines.lowered.analysis.plan import LoopPlan
from punchcard.engines.lowered.codegen.emit import CodeKind, LoopEmitter
from punchcard.engines.lowered.codegen.floats import I8, I64, i32, i64, is_near
from punchcard.engines.lowered.codegen.input_places import StreamPlace, TablePlace
from punchcard.engines.lowered.codegen.loop import LOOP, counted_loop, report_codes
from punchcard.engines.lowered.codegen.memory import Flat

HASH, HASH_SHIFT = 0x9E3779B97F4A7C15, 40
"""A case is looked for from place (case * HASH mod 2^64) >> HASH_SHIFT on."""
LOOPS = 4
"""The argument of `run` that says how many loops to make."""
RUN = ir.FunctionType(I64, [*LOOP.args, I64, I64.as_pointer(), I64.as_pointer(), I64])


def emit_driver(module: ir.Module, code: CodeKind, plan: LoopPlan | None = None, loop: ir.Function | None = None,
                first: ir.Function | None = None, rest: Sequence[ir.Function] = (), turn: LoopPlan | None = None) -> None:
    """run(buffer, tables, visits, report, loops, patterns, cases, size) -> loops made.

    Makes loops until one fails, a pattern is on the card, or a case has no code. `patterns` holds their number, the log
    of output buffers, a byte and bits of it (no pattern is on the card while all of them are 0), and for each pattern how
    many words and numbers it looks at, an output buffer, the address of an input buffer (see `input_places`), a place, a
    mask and the bits for each word, and a place and ±1 for each number. An output buffer is a place, a mask and what to put
    there: the bits go to the log, as long as it has room, and the loops continue.
    `cases` is a hash table of `size` entries: case, function, tables. The report begins with the status: 0 done, 1
    failed, 2 a pattern, 3 an unknown case; then the pattern or the case, and whether it was the driver's own tables that
    were asked. `first` and `rest` are the parts of a loop that all cases share; of several versions of the rest, the
    selectors of `turn` are the number of the one that is made.
    """
    function = ir.Function(module, RUN, "run")
    function.attributes.add("noinline")  # into `run_many`: it would be compiled twice
    buffer, tables, visits, report, loops, patterns, cases, size = function.args
    b = ir.IRBuilder(function.append_basic_block("begin"))
    place = b.alloca(I64)

    def note(at: int, value: ir.Value | int) -> None:
        b.store(i64(value) if isinstance(value, int) else value, b.gep(report, [i64(at)]))

    def make(part: ir.Function | ir.Value, its_tables: ir.Value = tables, *, own: bool = True) -> None:
        """Call a loop, or a part of one, and stop where it fails."""
        if plan is not None:
            note(2, int(own))
        failed = b.call(part, [buffer, its_tables, visits, report])
        with b.if_then(b.icmp_unsigned("!=", failed, i32(0))):
            note(0, 1)
            b.ret(made)

    with counted_loop(b, loops) as made:
        if loop is not None:
            make(loop)
        else:
            assert plan is not None
            emitter = LoopEmitter(b, code, Flat(buffer, code.places), tables)
            emitter.lift(plan.forms())
            key = emitter.packed_bits({i: emitter.bit(linear) for i, linear in enumerate(plan.selectors)})
            with b.if_then(b.not_(emitter.all_ok())):
                report_codes(b, report, emitter.codes)
                note(2, 1)
                note(0, 1)
                b.ret(made)
            _, entry = find_entry(b, cases, size, 3, key, first_place(b, key))
            address = b.load(b.gep(entry, [i64(1)]))
            note(1, key)
            with b.if_then(b.icmp_unsigned("==", address, i64(0))):
                note(0, 3)
                b.ret(made)
            if first is not None:
                make(first)
            own_tables = b.inttoptr(b.load(b.gep(entry, [i64(2)])), tables.type)
            make(b.inttoptr(address, LOOP.as_pointer()), own_tables, own=False)
            if len(rest) > 1:
                assert turn is not None
                emitter = LoopEmitter(b, code, Flat(buffer, code.places), tables)
                number = emitter.packed_bits({i: emitter.bit(linear) for i, linear in enumerate(turn.selectors)})
                _choose_part(b, number, rest, make)
            elif rest:
                make(rest[0])
        now = b.add(made, i64(1))
        look_for_patterns(b, code.real, buffer, report, patterns, now, place, b.icmp_signed("<", now, loops))
    note(0, 0)
    b.ret(loops)
    _emit_card(module, function)
    _emit_many(module, function)


def _choose_part(
    b: ir.IRBuilder, number: ir.Value, parts: Sequence[ir.Function], make: Callable[[ir.Function], None],
) -> None:
    """Make one of several parts, by a number. The first one is the usual."""
    with b.if_else(b.icmp_unsigned("==", number, i64(0)), likely=True) as (usual, other):
        with usual:
            make(parts[0])
        with other:
            if len(parts) > 2:
                _choose_part(b, b.sub(number, i64(1)), parts[1:], make)
            else:
                make(parts[1])


def first_place(b: ir.IRBuilder, key: ir.Value) -> ir.Value:
    """Where a key is looked for first in a hash table, modulo its size."""
    return b.lshr(b.mul(key, i64(HASH)), i64(HASH_SHIFT))


def find_entry(b: ir.IRBuilder, table: ir.Value, size: ir.Value, width: int, key: ir.Value,
               first: ir.Value) -> tuple[ir.Value, ir.Value]:
    """The number of the entry of a key in a hash table (`put_entry`), or of the empty one at which the search ends, and a
    pointer to it.

    An entry has so many words: the key, an address that is 0 where it is empty, and more. It is looked for from `first` on.
    """
    mask = b.sub(size, i64(1))
    start = b.and_(first, mask)
    before, probe, check, found = b.block, *(b.function.append_basic_block(name) for name in ("probe", "check", "found"))
    b.branch(probe)
    b.position_at_end(probe)
    at = b.phi(I64)
    at.add_incoming(start, before)
    entry = b.gep(table, [b.mul(at, i64(width))])
    b.cbranch(b.icmp_unsigned("==", b.load(b.gep(entry, [i64(1)])), i64(0)), found, check)
    b.position_at_end(check)
    at.add_incoming(b.and_(b.add(at, i64(1)), mask), check)
    b.cbranch(b.icmp_unsigned("==", b.load(entry), key), found, probe)
    b.position_at_end(found)
    return at, entry


def put_entry(table: npt.NDArray[np.int64], key: int, *values: int) -> None:
    """Put a key and its values into a hash table, behind those that have the same key. One entry at least stays empty."""
    place = (key * HASH % (1 << 64) >> HASH_SHIFT) % len(table)
    while table[place, 1]:
        place = (place + 1) % len(table)
    table[place] = (key - (key >> 63 << 64), *values)


def look_for_patterns(b: ir.IRBuilder, real: ir.Type, buffer: ir.Value, report: ir.Value, patterns: ir.Value,
                       made: ir.Value, place: ir.Value, goes_on: ir.Value) -> None:
    """Return if a pattern is on the card; the first word that differs settles most of them. `place` is a variable.

    `goes_on`: whether there is another loop to make.
    """
    done = b.function.append_basic_block("looked")

    def entry(at: ir.Value, more: int = 0) -> ir.Value:
        return b.load(b.gep(patterns, [b.add(at, i64(more)) if more else at]))

    def pointer(offset: ir.Value, kind: ir.Type) -> ir.Value:
        return b.bitcast(b.gep(buffer, [offset]), kind.as_pointer())

    def there(offset: ir.Value, kind: ir.Type) -> ir.Value:
        loaded = b.load(pointer(offset, kind))
        loaded.align = 1
        return loaded

    common = entry(i64(3))
    seen = b.zext(there(entry(i64(2)), I8), I64)  # no wider than what was stored there just now, or it has to wait
    idle = b.icmp_unsigned("==", b.and_(seen, common), i64(0))
    used = b.icmp_unsigned("!=", common, i64(0))
    with b.if_then(b.not_(b.and_(used, idle)), likely=False):
        b.store(i64(4), place)
        with counted_loop(b, entry(i64(0))) as number:
            own, following = b.load(place), b.function.append_basic_block("next_pattern")
            words, numbers, first = entry(own), entry(own, 1), b.add(own, i64(6))
            after = b.add(first, b.mul(words, i64(3)))
            b.store(b.add(after, b.mul(numbers, i64(2))), place)
            with counted_loop(b, words) as i:
                at = b.add(first, b.mul(i, i64(3)))
                with b.if_then(b.icmp_unsigned("!=", b.and_(there(entry(at), I64), entry(at, 1)), entry(at, 2))):
                    b.branch(following)
            with counted_loop(b, numbers) as i:
                at = b.add(after, b.mul(i, i64(2)))
                near = is_near(b, there(entry(at), real), b.sitofp(entry(at, 1), real))
                with b.if_then(b.not_(near)):
                    b.branch(following)
            mask = entry(own, 3)
            with b.if_then(b.icmp_unsigned("!=", mask, i64(0))):
                log = b.inttoptr(entry(i64(1)), I64.as_pointer())
                noted = b.load(log)
                with b.if_then(b.icmp_signed("<", noted, b.load(b.gep(log, [i64(1)])))):
                    word, pair = there(entry(own, 2), I64), b.gep(log, [b.add(b.mul(noted, i64(2)), i64(2))])
                    b.store(number, pair)
                    b.store(b.and_(word, mask), b.gep(pair, [i64(1)]))
                    b.store(b.add(noted, i64(1)), log)
                    b.store(b.or_(b.and_(word, b.not_(mask)), entry(own, 4)), pointer(entry(own, 2), I64)).align = 1
                    b.branch(following)
            inputs = entry(own, 5)
            with b.if_then(b.and_(b.icmp_unsigned("!=", inputs, i64(0)), goes_on)):
                _give_number(b, buffer, b.inttoptr(inputs, I64.as_pointer()), done)
            b.store(i64(2), report)
            b.store(number, b.gep(report, [i64(1)]))
            b.ret(made)
            b.position_at_end(following)
    b.branch(done)
    b.position_at_end(done)


def _give_number(b: ir.IRBuilder, buffer: ir.Value, table: ir.Value, done: ir.Block) -> None:
    """Put the next number of an input on the card, and continue; if there is none ready, do nothing."""
    def of(array: ir.Value, at: int | ir.Value) -> ir.Value:
        return b.load(b.gep(array, [i64(at) if isinstance(at, int) else at]))

    def put(at: ir.Value, mask: ir.Value, bits: ir.Value) -> None:
        pointer = b.bitcast(b.gep(buffer, [at]), I64.as_pointer())
        word = b.load(pointer)
        word.align = 1
        b.store(b.or_(b.and_(word, b.not_(mask)), b.and_(bits, mask)), pointer).align = 1

    stream = b.inttoptr(of(table, TablePlace.STREAM), I64.as_pointer())
    following = of(stream, StreamPlace.NEXT)
    ready = b.icmp_signed("<", following, of(stream, StreamPlace.COUNT))
    with b.if_then(b.or_(ready, b.icmp_unsigned("!=", of(stream, StreamPlace.HAS_END), i64(0)))):
        number = b.select(ready, of(stream, b.add(following, i64(StreamPlace.NUMBERS))), of(stream, StreamPlace.AT_END))
        signed = b.mul(number, of(table, TablePlace.SIGN))
        put(of(table, TablePlace.PLACE), of(table, TablePlace.MASK), b.shl(signed, of(table, TablePlace.SHIFT)))
        with counted_loop(b, of(table, TablePlace.OTHERS)) as i:
            other = b.add(b.mul(i, i64(3)), i64(TablePlace.FIRST))
            put(of(table, other), of(table, b.add(other, i64(1))), of(table, b.add(other, i64(2))))
        b.store(b.add(following, b.zext(ready, I64)), b.gep(stream, [i64(StreamPlace.NEXT)]))
        ends = b.gep(stream, [i64(StreamPlace.ENDS)])
        b.store(b.add(b.load(ends), b.zext(b.not_(ready), I64)), ends)
        b.branch(done)


def run_arguments(b: ir.IRBuilder, given: ir.Value) -> list[ir.Value]:
    """The arguments of `run` from an array, in its order, less the loops."""
    values = []
    for place, kind in enumerate((*RUN.args[:LOOPS], *RUN.args[LOOPS + 1 :])):
        word = b.load(b.gep(given, [i64(place)]))
        values.append(word if kind == I64 else b.inttoptr(word, kind))
    return values


def _emit_card(module: ir.Module, run: ir.Function) -> None:
    """run_card(arguments, loops) -> loops made."""
    function = ir.Function(module, ir.FunctionType(I64, [I64.as_pointer(), I64]), "run_card")
    given, loops = function.args
    b = ir.IRBuilder(function.append_basic_block("begin"))
    values = run_arguments(b, given)
    b.ret(b.call(run, [*values[:LOOPS], loops, *values[LOOPS:]]))


def _emit_many(module: ir.Module, run: ir.Function) -> None:
    """run_many(buffers, tables, visits, reports, sizes, jobs, count, patterns, cases, size).

    Runs `count` cards, one after the other. `jobs` has two words for each: its number, and the loops to make, in whose place
    the loops made are put. Card i has its buffer, visits and report at i times the three `sizes`, in bytes.
    """
    words, bytes_ = I64.as_pointer(), I8.as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [bytes_, run.args[1].type, bytes_, bytes_, words, words, I64, words, words, I64])
    function = ir.Function(module, kind, "run_many")
    buffers, tables, visits, reports, sizes, jobs, count, patterns, cases, size = function.args
    b = ir.IRBuilder(function.append_basic_block("begin"))
    strides = [b.load(b.gep(sizes, [i64(i)])) for i in range(3)]
    with counted_loop(b, count) as job:
        entry = b.gep(jobs, [b.mul(job, i64(2))])
        card, loops = b.load(entry), b.gep(entry, [i64(1)])
        buffer, visited, report = (b.gep(of, [b.mul(card, stride)])
                                   for of, stride in zip((buffers, visits, reports), strides, strict=True))
        made = b.call(run, [buffer, tables, b.bitcast(visited, run.args[2].type), b.bitcast(report, words), b.load(loops),
                            patterns, cases, size])
        b.store(made, loops)
    b.ret_void()
