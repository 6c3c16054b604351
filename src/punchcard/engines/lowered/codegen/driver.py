"""The driver of a card as an LLVM function: it makes many loops, looks for patterns, and finds the code of a case.

The driver of a card is `run`. `run_many` calls it for some of the cards that lie one after the other.
"""

from __future__ import annotations

from llvmlite import ir

from punchcard.engines.lowered.analysis.buffer_layout import BufferLayout
from punchcard.engines.lowered.analysis.plan import LoopPlan
from punchcard.engines.lowered.codegen.emit import I8, I32, I64, USUAL, CodeKind, LoopEmitter
from punchcard.engines.lowered.codegen.loop import counted_loop, report_codes
from punchcard.engines.lowered.codegen.memory import Flat


def emit_driver(module: ir.Module, plan: LoopPlan | None, real: ir.Type, places: BufferLayout, loop: ir.Function | None,
                kind_of_code: CodeKind = USUAL, first: ir.Function | None = None,
                rest: ir.Function | None = None) -> None:
    """run(buffer, tables, visits, report, loops, patterns, cases, size) -> loops made.

    Makes loops until one fails, a pattern is on the card, or a case has no code. `patterns` holds their number, the log
    of output buffers, a place and bits (no pattern is on the card while all of them are 0), and for each pattern how many
    words and numbers it looks at, an output buffer, a place, a mask and the bits for each word, and a place and ±1 for each
    number. An output buffer is a place, a mask and what to put there: the bits go to the log, as long as it has room, and
    the loops go on.
    `cases` is a hash table of `size` entries: case, function, tables. The report begins with the status: 0 done, 1
    failed, 2 a pattern, 3 an unknown case; then the pattern or the case, and whether it was the driver's own tables that
    were asked. `first` and `rest` are the parts of a loop that all cases share.
    """
    tables_kind = I32.as_pointer().as_pointer()
    kind = ir.FunctionType(I64, [I8.as_pointer(), tables_kind, I32.as_pointer(), I64.as_pointer(), I64, I64.as_pointer(),
                                 I64.as_pointer(), I64])
    function = ir.Function(module, kind, "run")
    function.attributes.add("noinline")  # into `run_many`: it would be compiled twice
    buffer, tables, visits, report, loops, patterns, cases, size = function.args
    blocks = {name: function.append_basic_block(name) for name in (
        "begin", "head", "body", "made", "pattern_head", "pattern", "word_head", "word", "number_head", "number",
        "next_pattern", "matched", "output", "note", "stop", "again", "failed", "done")}
    b = ir.IRBuilder(blocks["begin"])
    b.branch(blocks["head"])
    b.position_at_end(blocks["head"])
    made = b.phi(I64)
    made.add_incoming(ir.Constant(I64, 0), blocks["begin"])
    b.cbranch(b.icmp_signed("<", made, loops), blocks["body"], blocks["done"])
    b.position_at_end(blocks["body"])
    if loop is not None:
        failed = b.call(loop, [buffer, tables, visits, report])
    else:
        assert plan is not None
        emitter = LoopEmitter(b, real, Flat(buffer, places), tables, places, kind_of_code)
        emitter.lift(plan.forms())
        key = emitter.packed_bits({i: emitter.bit(linear) for i, linear in enumerate(plan.selectors)})
        ok = emitter.all_ok()
        known = function.append_basic_block("known")
        bad = function.append_basic_block("bad_selectors")
        b.cbranch(ok, known, bad)
        b.position_at_end(bad)
        report_codes(b, report, emitter.codes)
        b.store(ir.Constant(I64, 1), b.gep(report, [ir.Constant(I64, 2)]))
        b.branch(blocks["failed"])
        b.position_at_end(known)
        mask = b.sub(size, ir.Constant(I64, 1))
        start_at = b.and_(b.lshr(b.mul(key, ir.Constant(I64, 0x9E3779B97F4A7C15 - (1 << 64))), ir.Constant(I64, 40)), mask)
        probe, check, hit, unknown = (function.append_basic_block(n) for n in ("probe", "check_case", "hit", "unknown"))
        b.branch(probe)
        b.position_at_end(probe)
        at = b.phi(I64)
        at.add_incoming(start_at, known)
        entry = b.gep(cases, [b.mul(at, ir.Constant(I64, 3))])
        code = b.load(b.gep(entry, [ir.Constant(I64, 1)]))
        b.cbranch(b.icmp_unsigned("==", code, ir.Constant(I64, 0)), unknown, check)
        b.position_at_end(check)
        at.add_incoming(b.and_(b.add(at, ir.Constant(I64, 1)), mask), check)
        b.cbranch(b.icmp_unsigned("==", b.load(entry), key), hit, probe)
        b.position_at_end(unknown)
        b.store(ir.Constant(I64, 3), report)
        b.store(key, b.gep(report, [ir.Constant(I64, 1)]))
        b.ret(made)
        b.position_at_end(hit)
        if first is not None:
            begun = function.append_basic_block("begun")
            b.store(ir.Constant(I64, 1), b.gep(report, [ir.Constant(I64, 2)]))
            failed = b.call(first, [buffer, tables, visits, report])
            b.cbranch(b.icmp_unsigned("==", failed, ir.Constant(I32, 0)), begun, blocks["failed"])
            b.position_at_end(begun)
        target = b.inttoptr(code, ir.FunctionType(I32, [I8.as_pointer(), tables_kind, I32.as_pointer(),
                                                        I64.as_pointer()]).as_pointer())
        own = b.inttoptr(b.load(b.gep(entry, [ir.Constant(I64, 2)])), tables_kind)
        b.store(key, b.gep(report, [ir.Constant(I64, 1)]))
        b.store(ir.Constant(I64, 0), b.gep(report, [ir.Constant(I64, 2)]))
        failed = b.call(target, [buffer, own, visits, report])
        if rest is not None:
            shared = function.append_basic_block("shared")
            b.cbranch(b.icmp_unsigned("==", failed, ir.Constant(I32, 0)), shared, blocks["failed"])
            b.position_at_end(shared)
            b.store(ir.Constant(I64, 1), b.gep(report, [ir.Constant(I64, 2)]))
            failed = b.call(rest, [buffer, tables, visits, report])
    b.cbranch(b.icmp_unsigned("==", failed, ir.Constant(I32, 0)), blocks["made"], blocks["failed"])
    b.position_at_end(blocks["failed"])
    b.store(ir.Constant(I64, 1), report)
    b.ret(made)
    b.position_at_end(blocks["made"])
    count = b.load(patterns)
    total = b.add(made, ir.Constant(I64, 1))
    _patterns(b, blocks, real, buffer, report, patterns, count, total)
    b.position_at_end(blocks["again"])
    made.add_incoming(total, blocks["again"])
    b.branch(blocks["head"])
    b.position_at_end(blocks["done"])
    b.store(ir.Constant(I64, 0), report)
    b.ret(made)
    _emit_many(module, function)


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
    strides = [b.load(b.gep(sizes, [ir.Constant(I64, i)])) for i in range(3)]
    with counted_loop(b, count) as job:
        entry = b.gep(jobs, [b.mul(job, ir.Constant(I64, 2))])
        loops = b.gep(entry, [ir.Constant(I64, 1)])
        card = b.load(entry)
        buffer, visited, report = (b.gep(of, [b.mul(card, stride)])
                                   for of, stride in zip((buffers, visits, reports), strides, strict=True))
        made = b.call(run, [buffer, tables, b.bitcast(visited, run.args[2].type), b.bitcast(report, words), b.load(loops),
                            patterns, cases, size])
        b.store(made, loops)
    b.ret_void()


def _patterns(b: ir.IRBuilder, blocks: dict[str, ir.Block], real: ir.Type, buffer: ir.Value, report: ir.Value,
              patterns: ir.Value, count: ir.Value, total: ir.Value) -> None:
    """Look for each pattern; the first word that differs settles most of them."""
    one, two, three = (ir.Constant(I64, n) for n in (1, 2, 3))

    def entry(at: ir.Value, more: int = 0) -> ir.Value:
        return b.load(b.gep(patterns, [b.add(at, ir.Constant(I64, more)) if more else at]))

    def there(offset: ir.Value, kind: ir.Type) -> ir.Value:
        loaded = b.load(b.bitcast(b.gep(buffer, [offset]), kind.as_pointer()))
        loaded.align = 1
        return loaded

    common = entry(three)
    idle = b.icmp_unsigned("==", b.and_(there(entry(two), I64), common), ir.Constant(I64, 0))
    used = b.icmp_unsigned("!=", common, ir.Constant(I64, 0))
    b.cbranch(b.and_(used, idle), blocks["again"], blocks["pattern_head"])
    b.position_at_end(blocks["pattern_head"])
    number, place = b.phi(I64), b.phi(I64)
    number.add_incoming(ir.Constant(I64, 0), blocks["made"])
    place.add_incoming(ir.Constant(I64, 4), blocks["made"])
    b.cbranch(b.icmp_signed("<", number, count), blocks["pattern"], blocks["again"])
    b.position_at_end(blocks["pattern"])
    first = b.add(place, ir.Constant(I64, 5))
    words_end = b.add(first, b.mul(entry(place), three))
    end = b.add(words_end, b.mul(entry(place, 1), two))
    b.branch(blocks["word_head"])
    b.position_at_end(blocks["word_head"])
    at = b.phi(I64)
    at.add_incoming(first, blocks["pattern"])
    b.cbranch(b.icmp_signed("<", at, words_end), blocks["word"], blocks["number_head"])
    b.position_at_end(blocks["word"])
    same = b.icmp_unsigned("==", b.and_(there(entry(at), I64), entry(at, 1)), entry(at, 2))
    at.add_incoming(b.add(at, three), blocks["word"])
    b.cbranch(same, blocks["word_head"], blocks["next_pattern"])
    b.position_at_end(blocks["number_head"])
    at_number = b.phi(I64)
    at_number.add_incoming(words_end, blocks["word_head"])
    b.cbranch(b.icmp_signed("<", at_number, end), blocks["number"], blocks["matched"])
    b.position_at_end(blocks["number"])
    apart = b.fsub(there(entry(at_number), real), b.sitofp(entry(at_number, 1), real))
    half = ir.Constant(real, 0.5)
    near = b.and_(b.fcmp_ordered("<", apart, half), b.fcmp_ordered(">", apart, b.fneg(half)))
    at_number.add_incoming(b.add(at_number, two), blocks["number"])
    b.cbranch(near, blocks["number_head"], blocks["next_pattern"])
    b.position_at_end(blocks["next_pattern"])
    number.add_incoming(b.add(number, one), blocks["next_pattern"])
    place.add_incoming(end, blocks["next_pattern"])
    b.branch(blocks["pattern_head"])
    b.position_at_end(blocks["matched"])
    mask = entry(place, 3)
    b.cbranch(b.icmp_unsigned("==", mask, ir.Constant(I64, 0)), blocks["stop"], blocks["output"])
    b.position_at_end(blocks["output"])
    log = b.inttoptr(entry(one), I64.as_pointer())
    noted = b.load(log)
    b.cbranch(b.icmp_signed("<", noted, b.load(b.gep(log, [one]))), blocks["note"], blocks["stop"])
    b.position_at_end(blocks["note"])
    word, pair = there(entry(place, 2), I64), b.gep(log, [b.add(b.mul(noted, two), two)])
    b.store(number, pair)
    b.store(b.and_(word, mask), b.gep(pair, [one]))
    b.store(b.add(noted, one), log)
    b.store(b.or_(b.and_(word, b.not_(mask)), entry(place, 4)),
            b.bitcast(b.gep(buffer, [entry(place, 2)]), I64.as_pointer())).align = 1
    b.branch(blocks["next_pattern"])
    b.position_at_end(blocks["stop"])
    b.store(ir.Constant(I64, 2), report)
    b.store(number, b.gep(report, [one]))
    b.ret(total)
