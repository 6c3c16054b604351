"""From a plan to the LLVM function that makes one loop.

    loop(buffer, tables, visits, report) -> 0, or 1 if a check failed; then nothing was stored

Columns that were stored to in the loop before go through a loop of their own. That is the same for all cases, and is a
function of the driver's: code of another module finds its address behind its tables.

All values are computed before anything is stored, so a loop that fails has not happened.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import combinations

from llvmlite import ir

from punchcard.engines.lowered.analysis.buffer_layout import Field, StateWord
from punchcard.engines.lowered.analysis.columns import StateSlot
from punchcard.engines.lowered.analysis.plan import LoopPlan, Store
from punchcard.engines.lowered.bits.table import BitTable, SplitTable, bit_table
from punchcard.engines.lowered.codegen.emit import MOST_CODES, REPORT_CODES, CodeKind, LoopEmitter
from punchcard.engines.lowered.codegen.floats import I8, I32, I64, i32, i64
from punchcard.engines.lowered.codegen.memory import FieldBits, Flat
from punchcard.engines.lowered.graph.nodes import Linear
from punchcard.engines.lowered.graph.operations import STATE
from punchcard.errors import LoweringError

SETTLE, SETTLING = "settle", ir.FunctionType(ir.VoidType(), [I8.as_pointer(), I32.as_pointer()])
KEEPS_REGISTERS = "preserve_allcc"
"""How it is called: what waits to be stored stays where it is."""
MOST_STORES = 96
"""Active columns that store in a loop: every two of them are compared, and code for 128 took a minute to compile."""
LOOP = ir.FunctionType(I32, [I8.as_pointer(), I32.as_pointer().as_pointer(), I32.as_pointer(), I64.as_pointer()])


def emit_loop(module: ir.Module, name: str, plan: LoopPlan, code: CodeKind) -> ir.Function:
    """The function of a plan."""
    function = ir.Function(module, LOOP, name)
    buffer, tables, visits, report = function.args
    for argument in function.args:
        argument.add_attribute("noalias")
    b = ir.IRBuilder(function.append_basic_block("compute"))
    emitter = LoopEmitter(b, code, Flat(buffer, code.places), tables)
    new = compute(emitter, plan)
    with b.if_then(b.not_(new.ok), likely=False):
        report_codes(b, report, emitter.codes)
        b.ret(i32(1))
    if plan.settles:
        settle = module.globals.get(SETTLE)
        if settle is None:
            settle = b.bitcast(b.load(b.gep(tables, [i64(len(code.direct))])), SETTLING.as_pointer())
        b.call(settle, [buffer, visits], cconv=KEEPS_REGISTERS)
    count: ir.Value = i32(0)
    put_stores(emitter, new)
    if plan.settles:
        for column, _, _ in new.stored:
            b.store(column, b.gep(visits, [b.zext(b.add(count, i32(1)), I64)]))
            count = b.add(count, b.zext(b.icmp_signed(">=", column, i32(0)), I32))
        b.store(count, visits)
    new.put_states(emitter)
    b.ret(i32(0))
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
            emitter.floats.store(value, emitter.memory.numbers(emitter.b, slot, value.type))
        for word, value in self.words:
            emitter.memory.put_state(emitter.b, word, value)


def compute(emitter: LoopEmitter, plan: LoopPlan) -> NewValues:
    """The code of a plan, up to the first store."""
    emitter.functions.families = plan.families
    emitter.lift(plan.forms())
    for check in plan.checks:
        entries = check.entries or (check.value,)
        if check.kind != "bits" or any(emitter.functions.bit(entry) is None for entry in entries):  # else it is proven
            emitter.check(emitter.linear(check.value), check.kind, check.limit)
    lanes = [emitter.floats.lane(emitter.node(code), i)
             for code, mask in plan.distinct for i in range(code.width) if mask[i]]
    if len(lanes) > MOST_STORES:
        raise LoweringError(f"{len(lanes)} active columns store: the most is {MOST_STORES}")
    emitter.ok += [emitter.b.icmp_unsigned("!=", one, other) for one, other in combinations(lanes, 2)]  # no two store to one
    places, numbers = emitter.places, []
    bits: dict[StateWord, dict[int, BitTable | SplitTable]] = {}
    changed = (places.word_of(slot) for slot, linear in plan.states.items() if not _stays(slot, linear))
    changing = {found and found[0] for found in changed}
    for slot, linear in plan.states.items():
        found = places.word_of(slot)
        if found is not None and found[0] not in changing:  # no bit of the word changes
            continue
        if found is None:
            numbers.append((slot, emitter.linear(linear, slot.width)))
        else:
            bits.setdefault(found[0], {})[found[1]] = emitter.bit(linear)
    words = [(word, emitter.packed_bits(of)) for word, of in bits.items()]
    stored = [item for store in plan.stores for item in _lanes(emitter, store, plan.settles)]
    return NewValues(emitter.all_ok(), stored, numbers, words)


def _stays(slot: StateSlot, linear: Linear) -> bool:
    """Whether a state is after a loop what it was before."""
    single = linear.single
    return single is not None and single[1] == 1.0 and single[0].op is STATE and single[0].data == slot


def _content(one: LoopEmitter, rows: dict[int, Linear], kinds: dict[int, tuple[str, float]]) -> Content:
    """What a passive column's rows become. Numbers are checked where a kind is given, and so is what goes into words."""
    result: Content = []
    bits: dict[Field, dict[int, BitTable | SplitTable]] = {}
    for row, linear in rows.items():
        field, i = one.places.of_row[row]
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


def put_stores(emitter: LoopEmitter, new: NewValues) -> None:
    """What passive columns take."""
    for _, at, content in new.stored:
        _put(emitter, at, content)


def _put(emitter: LoopEmitter, column: ir.Value, content: Content) -> None:
    for field, i, value in content:
        if field.bits:
            emitter.put_word(field, column, value)
        else:
            emitter.floats.store(value, emitter.memory.entry(emitter.b, field, column, i, value.type))


def _lanes(emitter: LoopEmitter, store: Store, settles: dict[int, Linear]) -> list[tuple[ir.Value, ir.Value, Content]]:
    """For every active column that may store: the passive column (-1: none; less: not allowed), its place, its new content.

    A word is stored whole: so what settles in it goes there with the rest.
    """
    b, result, fields = emitter.b, [], emitter.places.of_row
    words = {fields[row][0] for row in store.rows if fields[row][0].bits}
    rows = {**{row: linear for row, linear in settles.items() if fields[row][0] in words}, **store.rows}
    index = emitter.node(store.index)
    lanes = [lane for lane in range(store.index.width) if store.mask[lane]]
    given = {node: emitter.functions.table_of(linear) for node, linear in store.given.items()}
    numbers = {node: emitter.linear(linear) for node, linear in store.given.items() if given[node] is None}
    kinds = dict(store.kinds)
    for row, linear in store.rows.items():
        single, field = linear.single, emitter.places.of_row[row][0]
        if single is not None and single[0] in numbers and single[1] == 1.0 and not field.bits:
            emitter.check(numbers[single[0]], *kinds.pop(row))  # what is passed over is stored as it is
    for lane in lanes:
        column = emitter.floats.lane(index, lane)
        found = b.icmp_signed(">=", column, i32(0))
        emitter.ok.append(b.icmp_signed(">=", column, i32(-1)))
        at = b.sext(b.select(found, column, i32(emitter.places.nowhere)), I64)
        one = emitter.at(at, {node: emitter.floats.lane(value, lane) for node, value in numbers.items()}, given)
        result.append((column, at, _content(one, rows, kinds)))
        for row, linear in store.later.items():
            one.check(one.linear(linear), *store.kinds[row])
        one.check_held()
        emitter.ok += one.ok
        emitter.bits += one.bits
    return result


def report_codes(b: ir.IRBuilder, report: ir.Value, codes: list[tuple[ir.Value, int]]) -> None:
    """The tables that were asked, and the codes: how many, then pairs."""
    if len(codes) > MOST_CODES:
        raise LoweringError(f"a loop asks {len(codes)} times for a column: the most is {MOST_CODES}")
    b.store(i64(len(codes)), b.gep(report, [i64(REPORT_CODES)]))
    for i, (code, table) in enumerate(codes):
        at = REPORT_CODES + 1 + 2 * i
        b.store(i64(table), b.gep(report, [i64(at)]))
        b.store(b.zext(code, I64), b.gep(report, [i64(at + 1)]))


def emit_settling(module: ir.Module, settles: dict[int, Linear], code: CodeKind) -> None:
    """settle(buffer, visits): columns that were stored to in the loop before go through a loop of their own."""
    function = ir.Function(module, SETTLING, SETTLE)
    function.calling_convention = KEEPS_REGISTERS
    buffer, visits = function.args
    for argument in function.args:
        argument.add_attribute("noalias")
    b = ir.IRBuilder(function.append_basic_block("begin"))
    with counted_loop(b, b.load(visits)) as i:
        at = b.sext(b.load(b.gep(visits, [b.zext(b.add(i, i32(1)), I64)])), I64)
        one = LoopEmitter(b, code, Flat(buffer, code.places), ir.Constant(LOOP.args[1], None), own=at)
        content = _content(one, settles, {})
        if one.bits:
            raise LoweringError("what a column that was stored to becomes in the next loop is not proven to be ±1")
        for _, source in one.seen:
            if any(not set(source.missing) <= set(field.missing) for field, _, _ in content):
                raise LoweringError("what a column that was stored to becomes in the next loop depends on "
                                    f"{source.block!r}, which not every such column holds")
        _put(one, at, content)
    b.ret_void()


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
