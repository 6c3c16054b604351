"""From a plan to LLVM functions: one that makes one loop, and the driver that makes many and looks for patterns.

    loop(buffer, tables, visits, report) -> 0, or 1 if a check failed; then nothing was stored

The driver of a card is `run`. `run_many` calls it for some of the cards that lie one after the other.

All values are computed before anything is stored, so a loop that fails has not happened.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from llvmlite import ir

from punchcard.engines.lowered.analysis.buffer_layout import BufferLayout, Field, StateWord
from punchcard.engines.lowered.analysis.columns import StateSlot
from punchcard.engines.lowered.analysis.plan import LoopPlan, Store
from punchcard.engines.lowered.bits.table import BitTable, SplitTable, bit_table
from punchcard.engines.lowered.codegen.emit import I8, I32, I64, MOST_CODES, REPORT_CODES, USUAL, CodeKind, LoopEmitter
from punchcard.engines.lowered.codegen.leaves import FieldBits
from punchcard.engines.lowered.codegen.memory import Flat
from punchcard.engines.lowered.graph.nodes import Linear
from punchcard.errors import LoweringError


def emit_loop(module: ir.Module, name: str, plan: LoopPlan, real: ir.Type, places: BufferLayout,
              code: CodeKind) -> ir.Function:
    """The function of a plan."""
    kind = ir.FunctionType(I32, [I8.as_pointer(), I32.as_pointer().as_pointer(), I32.as_pointer(), I64.as_pointer()])
    function = ir.Function(module, kind, name)
    buffer, tables, visits, report = function.args
    for argument in function.args:
        argument.add_attribute("noalias")
    block = function.append_basic_block("compute")
    b = ir.IRBuilder(block)
    emitter = LoopEmitter(b, real, Flat(buffer, places), tables, places, code)
    new = compute(emitter, plan)
    done, failed = function.append_basic_block("store"), function.append_basic_block("failed")
    b.cbranch(new.ok, done, failed).set_weights([10_000, 1])
    b.position_at_end(failed)
    _report(b, report, emitter.codes)
    b.ret(ir.Constant(I32, 1))
    b.position_at_end(done)
    if plan.settles:
        _settle(emitter, plan, visits)
    count: ir.Value = ir.Constant(I32, 0)
    for column, at, content in new.stored:
        _put(emitter, at, content)
        if plan.settles:
            b.store(column, b.gep(visits, [b.zext(b.add(count, ir.Constant(I32, 1)), I64)]))
            count = b.add(count, b.zext(b.icmp_signed(">=", column, ir.Constant(I32, 0)), I32))
    if plan.settles:
        b.store(count, visits)
    new.put_states(emitter)
    b.ret(ir.Constant(I32, 0))
    return function


Content = list[tuple[Field, int, ir.Value]]
"""New numbers of a column, row by row, and new words."""


@dataclass(frozen=True)
class NewValues:
    """What a loop computes before it stores anything: whether all checks hold, what goes to passive columns, new states."""

    ok: ir.Value
    stored: list[tuple[ir.Value, ir.Value, Content]]
    numbers: list[tuple[StateSlot, ir.Value]]
    words: list[tuple[StateWord, ir.Value]]

    def put(self, emitter: LoopEmitter) -> None:
        """Store all of it, where columns that were stored to need nothing more."""
        for _, at, content in self.stored:
            _put(emitter, at, content)
        self.put_states(emitter)

    def put_states(self, emitter: LoopEmitter) -> None:
        for slot, value in self.numbers:
            emitter.store(value, emitter.memory.numbers(emitter.b, slot, value.type))
        for word, value in self.words:
            emitter.memory.put_state(emitter.b, word, value)


def compute(emitter: LoopEmitter, plan: LoopPlan) -> NewValues:
    """The code of a plan, up to the first store."""
    emitter.functions.families = plan.families
    emitter.lift(plan.forms())
    for check in plan.checks:
        emitter.check_form(check.value, check.kind, check.limit)
    lanes = [emitter.lane(emitter.node(code), i) for code, mask in plan.distinct for i in range(code.width) if mask[i]]
    if len(lanes) > 1:
        emitter.check_distinct(lanes)
    places, numbers = emitter.places, []
    bits: dict[StateWord, dict[int, BitTable | SplitTable]] = {}
    for slot, linear in plan.states.items():
        found = places.word_of(slot)
        if found is None:
            numbers.append((slot, emitter.linear(linear, slot.width)))
        else:
            bits.setdefault(found[0], {})[found[1]] = emitter.bit(linear)
    words = [(word, emitter.packed_bits(of)) for word, of in bits.items()]
    stored = [item for store in plan.stores for item in _lanes(emitter, store, plan.settles)]
    return NewValues(emitter.all_ok(), stored, numbers, words)


def _content(one: LoopEmitter, rows: dict[int, Linear], kinds: dict[int, tuple[str, float]]) -> Content:
    """What a passive column's rows become. Numbers are checked where a kind is given, and so is what goes into words."""
    result: Content = []
    bits: dict[Field, dict[int, BitTable | SplitTable]] = {}
    for row, linear in rows.items():
        field, i = one.places.fields.of_row[row]
        if field.bits:
            bits.setdefault(field, {})[i] = one.bit(linear)
            continue
        value = one.linear(linear)
        if row in kinds:
            one.check(value, *kinds[row])
        result.append((field, i, value))
    for field, places in bits.items():
        own = one.words.leaf(FieldBits(None, field), field.rows)
        kept = {i: bit_table(one.words.bit(own, i), 0, 1) for i in range(field.rows) if i not in places}
        result.append((field, 0, one.packed_bits({**places, **kept})))
    return result


def _put(emitter: LoopEmitter, column: ir.Value, content: Content) -> None:
    for field, i, value in content:
        if field.bits:
            emitter.put_word(field, column, value)
        else:
            emitter.store(value, emitter.memory.entry(emitter.b, field, column, i, value.type))


def _lanes(emitter: LoopEmitter, store: Store, settles: dict[int, Linear]) -> list[tuple[ir.Value, ir.Value, Content]]:
    """For every active column that may store: the passive column (-1: none; less: not allowed), its place, its new content.

    A word is stored whole: so what settles in it goes there with the rest.
    """
    b, result, fields = emitter.b, [], emitter.places.fields.of_row
    words = {fields[row][0] for row in store.rows if fields[row][0].bits}
    rows = {**{row: linear for row, linear in settles.items() if fields[row][0] in words}, **store.rows}
    index = emitter.node(store.index)
    lanes = [lane for lane in range(store.index.width) if store.mask[lane]]
    given = {node: emitter.functions.table_of(linear) for node, linear in store.given.items()}
    numbers = {node: emitter.linear(linear) for node, linear in store.given.items() if given[node] is None}
    kinds = dict(store.kinds)
    for row, linear in store.rows.items():
        single, field = linear.single, emitter.places.fields.of_row[row][0]
        if single is not None and single[0] in numbers and single[1] == 1.0 and not field.bits:
            emitter.check(numbers[single[0]], *kinds.pop(row))  # what is handed over is stored as it is
    for lane in lanes:
        column = emitter.lane(index, lane)
        found = b.icmp_signed(">=", column, ir.Constant(I32, 0))
        emitter.ok.append(b.icmp_signed(">=", column, ir.Constant(I32, -1)))
        at = b.sext(b.select(found, column, ir.Constant(I32, emitter.places.nowhere)), I64)
        one = emitter.at(at, {node: emitter.lane(value, lane) for node, value in numbers.items()}, given)
        result.append((column, at, _content(one, rows, kinds)))
        for row, linear in store.later.items():
            one.check(one.linear(linear), *store.kinds[row])
        emitter.take_checks(one)
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


def _settle(emitter: LoopEmitter, plan: LoopPlan, visits: ir.Value) -> None:
    """Columns that were stored to in the loop before go through a loop of their own."""
    b = emitter.b
    with counted_loop(b, b.load(visits)) as i:
        column = b.load(b.gep(visits, [b.zext(b.add(i, ir.Constant(I32, 1)), I64)]))
        at = b.sext(column, I64)
        one = emitter.at(at, {}, {})
        content = _content(one, plan.settles, {})
        if one.bits:
            raise LoweringError("what a column that was stored to becomes in the next loop is not proven to be ±1")
        for _, source in one.seen:
            if any(not set(source.missing) <= set(field.missing) for field, _, _ in content):
                raise LoweringError("what a column that was stored to becomes in the next loop depends on "
                                    f"{source.block!r}, which not every such column holds")
        _put(one, at, content)


@contextmanager
def counted_loop(b: ir.IRBuilder, count: ir.Value) -> Iterator[ir.Value]:
    """A loop in LLVM: the block writes its body, for the numbers from 0 to below the count, which are signed."""
    head, body, end = (b.function.append_basic_block(name) for name in ("loop", "body", "loop_end"))
    before = b.block
    b.branch(head)
    b.position_at_end(head)
    number = b.phi(count.type)
    number.add_incoming(ir.Constant(count.type, 0), before)
    b.cbranch(b.icmp_signed("<", number, count), body, end)
    b.position_at_end(body)
    yield number
    number.add_incoming(b.add(number, ir.Constant(count.type, 1)), b.block)
    b.branch(head)
    b.position_at_end(end)


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
