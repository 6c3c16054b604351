"""From a plan to LLVM functions: one that makes one loop, and the driver that makes many and looks for patterns.

    loop(buffer, tables, visits, report) -> 0, or 1 if a check failed; then nothing was stored

All values are computed before anything is stored, so a loop that fails has not happened.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from punchcard.engines.lowered.analysis.plan import LoopPlan, Store
from punchcard.engines.lowered.codegen.emit import CHECK_WIDTH, I32, I64, MOST_CODES, REPORT_CODES, Emitter, Places
from punchcard.engines.lowered.graph.nodes import Node
from punchcard.errors import LoweringError


def emit_loop(module: ir.Module, name: str, plan: LoopPlan, real: ir.Type, places: Places) -> ir.Function:
    """The function of a plan."""
    kind = ir.FunctionType(I32, [real.as_pointer(), I32.as_pointer().as_pointer(), I32.as_pointer(), I64.as_pointer()])
    function = ir.Function(module, kind, name)
    buffer, tables, visits, report = function.args
    for argument in function.args:
        argument.add_attribute("noalias")
    block = function.append_basic_block("compute")
    b = ir.IRBuilder(block)
    emitter = Emitter(b, real, buffer, tables, places)
    for check in plan.checks:
        emitter.check(emitter.linear(check.value), check.kind, check.limit)
    lanes = [emitter.lane(emitter.node(code), i) for code, mask in plan.distinct for i in range(code.width) if mask[i]]
    if len(lanes) > 1:
        emitter.check_distinct(lanes)
    states = [(slot, emitter.linear(linear, slot.width)) for slot, linear in plan.states.items()]
    stored = [item for store in plan.stores for item in _lanes(emitter, store)]
    ok = emitter.all_ok()
    done, failed = function.append_basic_block("store"), function.append_basic_block("failed")
    b.cbranch(ok, done, failed).set_weights([10_000, 1])
    b.position_at_end(failed)
    _report(b, report, emitter.codes)
    b.ret(ir.Constant(I32, 1))
    b.position_at_end(done)
    if plan.settles:
        _settle(emitter, plan, visits)
    count: ir.Value = ir.Constant(I32, 0)
    for column, base, rows in stored:
        for row, value in rows.items():
            emitter.store(value, emitter.row(base, row))
        if plan.settles:
            b.store(column, b.gep(visits, [b.zext(b.add(count, ir.Constant(I32, 1)), I64)]))
            count = b.add(count, b.zext(b.icmp_signed(">=", column, ir.Constant(I32, 0)), I32))
    if plan.settles:
        b.store(count, visits)
    for slot, value in states:
        emitter.store(value, emitter.place(places.slots[slot]))
    b.ret(ir.Constant(I32, 0))
    return function


def _lanes(emitter: Emitter, store: Store) -> list[tuple[ir.Value, ir.Value, dict[int, ir.Value]]]:
    """For every busy column that may store: the quiet column (-1: none; less: not allowed), its place, and its new rows."""
    b, result = emitter.b, []
    index = emitter.node(store.index)
    given = {node: emitter.linear(linear) for node, linear in store.given.items()}
    checked: set[Node] = set()
    for row, linear in store.rows.items():
        single = linear.single
        if single is not None and single[0] in given and single[1] == 1.0:  # what is handed over is stored as it is
            emitter.check(given[single[0]], *store.kinds[row])
            checked.add(single[0])
    for lane in range(store.index.width):
        if not store.mask[lane]:
            continue
        column = emitter.lane(index, lane)
        found = b.icmp_signed(">=", column, ir.Constant(I32, 0))
        emitter.ok.append(b.icmp_signed(">=", column, ir.Constant(I32, -1)))
        base = emitter.column(b.select(found, column, ir.Constant(I32, emitter.places.nowhere)))
        one = emitter.at(base, {node: emitter.lane(value, lane) for node, value in given.items()})
        rows = {}
        for row, linear in store.rows.items():
            rows[row] = one.linear(linear)
            single = linear.single
            if not linear.is_constant and not (single is not None and single[0] in checked):
                emitter.check(rows[row], *store.kinds[row])
        result.append((column, base, rows))
    return result


def _report(b: ir.IRBuilder, report: ir.Value, codes: list[tuple[ir.Value, int]]) -> None:
    """The tables that were asked, and the codes: how many, then pairs."""
    if len(codes) > MOST_CODES:
        raise LoweringError(f"a loop asks {len(codes)} times for a column: the most is {MOST_CODES}")
    b.store(ir.Constant(I64, len(codes)), b.gep(report, [ir.Constant(I64, REPORT_CODES)]))
    for i, (code, table) in enumerate(codes):
        at = REPORT_CODES + 1 + 2 * i
        b.store(ir.Constant(I64, table), b.gep(report, [ir.Constant(I64, at)]))
        b.store(b.zext(code, I64), b.gep(report, [ir.Constant(I64, at + 1)]))


def _settle(emitter: Emitter, plan: LoopPlan, visits: ir.Value) -> None:
    """Columns that were stored to in the loop before go through a loop of their own."""
    b = emitter.b
    function = b.function
    count = b.load(visits)
    head, body, end = (function.append_basic_block(f"settle_{part}") for part in ("head", "body", "end"))
    before = b.block
    b.branch(head)
    b.position_at_end(head)
    i = b.phi(I32)
    i.add_incoming(ir.Constant(I32, 0), before)
    b.cbranch(b.icmp_signed("<", i, count), body, end)
    b.position_at_end(body)
    following = b.add(i, ir.Constant(I32, 1))
    column = b.load(b.gep(visits, [b.zext(following, I64)]))
    base = emitter.column(column)
    one = emitter.at(base, {})
    rows = {row: one.linear(linear) for row, linear in plan.settles.items()}
    for row, value in rows.items():
        one.store(value, one.row(base, row))
    i.add_incoming(following, b.block)
    b.branch(head)
    b.position_at_end(end)


def emit_driver(module: ir.Module, plan: LoopPlan | None, real: ir.Type, places: Places, loop: ir.Function | None) -> None:
    """run(buffer, tables, visits, report, loops, patterns, signs, cases, size) -> loops made.

    Makes loops until one fails, a pattern stands on the card, or a case has no code. `patterns` holds their number, and for
    each the number of its entries and their places in the buffer; `signs` the ±1 that must stand there. `cases` is a
    hash table of `size` entries: case, function, tables. The report begins with the status: 0 done, 1 failed,
    2 a pattern, 3 an unknown case; then the pattern or the case.
    """
    tables_kind = I32.as_pointer().as_pointer()
    kind = ir.FunctionType(I64, [real.as_pointer(), tables_kind, I32.as_pointer(), I64.as_pointer(), I64, I64.as_pointer(),
                                 real.as_pointer(), I64.as_pointer(), I64])
    function = ir.Function(module, kind, "run")
    buffer, tables, visits, report, loops, patterns, signs, cases, size = function.args
    blocks: dict[str, Any] = {name: function.append_basic_block(name) for name in (
        "begin", "head", "body", "made", "pattern_head", "pattern", "entry_head", "entry", "next_pattern", "matched",
        "again", "failed", "done")}
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
        emitter = Emitter(b, real, buffer, tables, places)
        key: ir.Value = ir.Constant(I64, 0)
        for start in range(0, len(plan.selectors), CHECK_WIDTH):
            values = [emitter.linear(x) for x in plan.selectors[start : start + CHECK_WIDTH]]
            for value in values:
                emitter.check_bits(value)
            part = emitter.packed(values)
            zero = ir.Constant(part.type, [ir.Constant(real, 0.0)] * len(values))
            number = b.zext(b.bitcast(b.fcmp_ordered(">", part, zero), ir.IntType(len(values))), I64)
            key = b.or_(key, b.shl(number, ir.Constant(I64, start)))
        ok = emitter.all_ok()
        known = function.append_basic_block("known")
        bad = function.append_basic_block("bad_selectors")
        b.cbranch(ok, known, bad)
        b.position_at_end(bad)
        _report(b, report, emitter.codes)
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
        target = b.inttoptr(code, ir.FunctionType(I32, [real.as_pointer(), tables_kind, I32.as_pointer(),
                                                        I64.as_pointer()]).as_pointer())
        own = b.inttoptr(b.load(b.gep(entry, [ir.Constant(I64, 2)])), tables_kind)
        b.store(key, b.gep(report, [ir.Constant(I64, 1)]))
        b.store(ir.Constant(I64, 0), b.gep(report, [ir.Constant(I64, 2)]))
        failed = b.call(target, [buffer, own, visits, report])
    b.cbranch(b.icmp_unsigned("==", failed, ir.Constant(I32, 0)), blocks["made"], blocks["failed"])
    b.position_at_end(blocks["failed"])
    b.store(ir.Constant(I64, 1), report)
    b.ret(made)
    b.position_at_end(blocks["made"])
    count = b.load(patterns)
    total = b.add(made, ir.Constant(I64, 1))
    b.branch(blocks["pattern_head"])
    _patterns(b, blocks, buffer, report, patterns, signs, count, total)
    b.position_at_end(blocks["again"])
    made.add_incoming(total, blocks["again"])
    b.branch(blocks["head"])
    b.position_at_end(blocks["done"])
    b.store(ir.Constant(I64, 0), report)
    b.ret(made)


def _patterns(b: ir.IRBuilder, blocks: dict[str, Any], buffer: ir.Value, report: ir.Value, patterns: ir.Value,
              signs: ir.Value, count: ir.Value, total: ir.Value) -> None:
    """Look for each pattern; the first entry that differs settles most of them."""
    one = ir.Constant(I64, 1)
    b.position_at_end(blocks["pattern_head"])
    number, place = b.phi(I64), b.phi(I64)
    number.add_incoming(ir.Constant(I64, 0), blocks["made"])
    place.add_incoming(one, blocks["made"])
    b.cbranch(b.icmp_signed("<", number, count), blocks["pattern"], blocks["again"])
    b.position_at_end(blocks["pattern"])
    entries = b.load(b.gep(patterns, [place]))
    first = b.add(place, one)
    end = b.add(first, entries)
    b.branch(blocks["entry_head"])
    b.position_at_end(blocks["entry_head"])
    at = b.phi(I64)
    at.add_incoming(first, blocks["pattern"])
    b.cbranch(b.icmp_signed("<", at, end), blocks["entry"], blocks["matched"])
    b.position_at_end(blocks["entry"])
    value = b.load(b.gep(buffer, [b.load(b.gep(patterns, [at]))]))
    apart = b.fsub(value, b.load(b.gep(signs, [at])))
    half = ir.Constant(value.type, 0.5)
    same = b.and_(b.fcmp_ordered("<", apart, half), b.fcmp_ordered(">", apart, b.fneg(half)))
    at.add_incoming(b.add(at, one), blocks["entry"])
    b.cbranch(same, blocks["entry_head"], blocks["next_pattern"])
    b.position_at_end(blocks["next_pattern"])
    number.add_incoming(b.add(number, one), blocks["next_pattern"])
    place.add_incoming(end, blocks["next_pattern"])
    b.branch(blocks["pattern_head"])
    b.position_at_end(blocks["matched"])
    b.store(ir.Constant(I64, 2), report)
    b.store(number, b.gep(report, [one]))
    b.ret(total)
