"""From a plan to LLVM code: one function that makes one loop.

    loop(buffer, tables, visits, report) -> 0, or 1 if a check failed; then nothing was stored

The buffer holds the card's columns one after the other, then a column that nobody reads, where stores without a place
go, then the busy columns' states. All values are computed before anything is stored, so a loop that fails has not happened.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from llvmlite import ir

from punchcard.engines.lowered.columns import Slot
from punchcard.engines.lowered.nodes import Array, Linear, Node
from punchcard.engines.lowered.plan import Plan, Store
from punchcard.errors import LoweringError

I1, I32, I64 = ir.IntType(1), ir.IntType(32), ir.IntType(64)
REPORT_CODES = 4
"""Where a report's codes begin; before them are status, pattern or case, and spare places."""
MOST_CODES = 1 << 12
"""How often a loop may ask for a quiet column, to read or to store."""
CHECK_WIDTH = 16
EXP = {"double": (13, 6.93147180369123816490e-01, 1.90821492927058770002e-10, 708.0, 1023, 52, ir.IntType(64)),
       "float": (7, 0.693359375, -2.12194440e-4, 87.0, 127, 23, ir.IntType(32))}
"""Terms of the series, ln 2 in two parts, the largest argument, and how a power of two is written."""


@dataclass(frozen=True)
class Places:
    """Where things are in the buffer."""

    width: int
    columns: int
    slots: dict[Slot, int]

    @property
    def nowhere(self) -> int:
        """The column that nobody reads."""
        return self.columns

    def at(self, column: int, row: int) -> int:
        return column * self.width + row


class Emitter:
    """Writes the nodes of a plan into a basic block, each once."""

    def __init__(self, builder: ir.IRBuilder, real: ir.Type, buffer: ir.Value, tables: ir.Value, places: Places) -> None:
        self.b, self.real, self.buffer, self.tables, self.places = builder, real, buffer, tables, places
        self.values: dict[Node, ir.Value] = {}
        self.bits: list[ir.Value] = []
        self.ok: list[ir.Value] = []
        self.codes: list[tuple[ir.Value, int]] = []
        self.bases: dict[Node, list[ir.Value]] = {}
        self.load_at: ir.Value | None = None
        self.bound: dict[Node, ir.Value] = {}

    # Small things

    def number(self, value: float, width: int = 1) -> ir.Constant:
        one = ir.Constant(self.real, float(value))
        return one if width == 1 else ir.Constant(ir.VectorType(self.real, width), [one] * width)

    def vector(self, values: Array, width: int) -> ir.Constant:
        if len(values) == 1:
            return self.number(float(values[0]), width)
        return ir.Constant(ir.VectorType(self.real, width), [ir.Constant(self.real, float(v)) for v in values])

    def wide(self, value: ir.Value, width: int) -> ir.Value:
        """The same scalar in every lane, unless it is a vector already."""
        if width == 1 or isinstance(value.type, ir.VectorType):
            return value
        kind = ir.VectorType(value.type, width)
        first = self.b.insert_element(ir.Constant(kind, ir.Undefined), value, ir.Constant(I32, 0))
        zeros = ir.Constant(ir.VectorType(I32, width), [0] * width)
        return self.b.shuffle_vector(first, ir.Constant(kind, ir.Undefined), zeros)

    def lane(self, value: ir.Value, lane: int) -> ir.Value:
        return self.b.extract_element(value, ir.Constant(I32, lane)) if isinstance(value.type, ir.VectorType) else value

    def packed(self, values: list[ir.Value]) -> ir.Value:
        kind = ir.VectorType(values[0].type, len(values))
        result: ir.Value = ir.Constant(kind, ir.Undefined)
        for i, value in enumerate(values):
            result = self.b.insert_element(result, value, ir.Constant(I32, i))
        return result

    def call(self, name: str, *args: ir.Value) -> ir.Value:
        kind = args[0].type
        suffix = f"v{kind.count}f{_bits(self.real)}" if isinstance(kind, ir.VectorType) else f"f{_bits(self.real)}"
        module = self.b.module
        full = f"llvm.{name}.{suffix}"
        function = module.globals.get(full) or ir.Function(module, ir.FunctionType(kind, [a.type for a in args]), full)
        return self.b.call(function, args)

    def place(self, offset: int) -> ir.Value:
        return self.b.gep(self.buffer, [ir.Constant(I64, offset)])

    def load(self, pointer: ir.Value, width: int = 1) -> ir.Value:
        if width > 1:
            pointer = self.b.bitcast(pointer, ir.VectorType(self.real, width).as_pointer())
        loaded = self.b.load(pointer)
        loaded.align = _bits(self.real) // 8
        return loaded

    def store(self, value: ir.Value, pointer: ir.Value) -> None:
        if isinstance(value.type, ir.VectorType):
            pointer = self.b.bitcast(pointer, value.type.as_pointer())
        self.b.store(value, pointer).align = _bits(self.real) // 8

    # Linear forms and nodes

    def linear(self, form: Linear, width: int = 1) -> ir.Value:
        """The value of a form, at least `width` wide."""
        width = max([width, len(form.constant), *(n.width for n in form.terms)])
        total: ir.Value | None = self.vector(form.constant, width) if form.constant.any() or not form.terms else None
        for node, c in form.terms.items():
            total = self.scaled(c, self.wide(self.node(node), width), total, width)
        assert total is not None
        return total

    def scaled(self, c: float, x: ir.Value, y: ir.Value | None, width: int) -> ir.Value:
        """c x + y."""
        if y is None:
            return x if c == 1 else self.b.fneg(x) if c == -1 else self.b.fmul(x, self.number(c, width))
        if c == 1:
            return self.b.fadd(y, x)
        if c == -1:
            return self.b.fsub(y, x)
        return self.call("fmuladd", x, self.number(c, width), y)

    def node(self, node: Node) -> ir.Value:
        """The value of a node; what it is made of comes first."""
        if node in self.values:
            return self.values[node]
        pending = [node]
        while pending:
            top = pending[-1]
            missing = [a for a in top.args if a not in self.values]
            if missing:
                pending += missing
                continue
            pending.pop()
            if top not in self.values:
                self.values[top] = getattr(self, f"_{top.op}")(top)
        return self.values[node]

    def args(self, node: Node) -> list[ir.Value]:
        return [self.wide(self.values[a], node.width) for a in node.args]

    def _state(self, node: Node) -> ir.Value:
        return self.load(self.place(self.places.slots[node.data]), node.width)

    def _load(self, node: Node) -> ir.Value:
        assert self.load_at is not None
        return self.load(self.b.gep(self.load_at, [ir.Constant(I64, node.data)]))

    def _given(self, node: Node) -> ir.Value:
        return self.bound[node]

    def _constant(self, node: Node) -> ir.Value:
        return self.vector(node.data, node.width)

    def _column(self, node: Node) -> ir.Value:
        return ir.Constant(I32, node.data)

    def _same(self, node: Node) -> ir.Value:
        return self.args(node)[0]

    def _bit(self, node: Node) -> ir.Value:
        value = self.args(node)[0]
        self.check_bits(value)
        return value

    def _fma(self, node: Node) -> ir.Value:
        x, *y = self.args(node)
        return self.scaled(node.data, x, y[0] if y else None, node.width)

    def _relu(self, node: Node) -> ir.Value:
        return self._most(self._affine(node), self.number(0.0, node.width))

    def _affine(self, node: Node) -> ir.Value:
        factor, bias = node.data
        x = self.args(node)[0]
        return self.scaled(factor, x, self.vector(bias, node.width) if bias.any() else None, node.width)

    def _most(self, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.b.select(self.b.fcmp_ordered(">", a, b), a, b)

    def _mul(self, node: Node) -> ir.Value:
        return self.b.fmul(*self.args(node))

    def _max(self, node: Node) -> ir.Value:
        return self._most(*self.args(node))

    def _least(self, node: Node) -> ir.Value:
        return self._most(self.args(node)[0], self.number(node.data, node.width))

    def _recip(self, node: Node) -> ir.Value:
        return self.b.fdiv(self.number(1.0, node.width), self.args(node)[0])

    def _exp(self, node: Node) -> ir.Value:
        """e^x = 2^n e^r with n the integer nearest to x / ln 2, and the series of e^r for |r| <= ln 2 / 2."""
        terms, high, low, most, bias, shift, integer = EXP[str(self.real)]
        width = node.width
        x = self._affine(node)
        tiny = self.b.fcmp_ordered("<", x, self.number(-most, width))
        x = self._most(x, self.number(-most, width))
        n = self.call("floor", self.call("fmuladd", x, self.number(1 / math.log(2.0), width), self.number(0.5, width)))
        r = self.call("fmuladd", n, self.number(-high, width), x)
        r = self.call("fmuladd", n, self.number(-low, width), r)
        total: ir.Value = self.number(1 / math.factorial(terms), width)
        for k in range(terms - 1, -1, -1):
            total = self.call("fmuladd", total, r, self.number(1 / math.factorial(k), width))
        whole = ir.VectorType(integer, width) if width > 1 else integer

        def every(value: int) -> ir.Constant:
            one = ir.Constant(integer, value)
            return one if width == 1 else ir.Constant(whole, [one] * width)

        power = self.b.shl(self.b.add(self.b.fptosi(n, whole), every(bias)), every(shift))
        result = self.b.fmul(total, self.b.bitcast(power, x.type))
        return self.b.select(tiny, self.number(0.0, width), result)

    def _mix(self, node: Node) -> ir.Value:
        x, matrix = self.values[node.args[0]], node.data
        outs = []
        if matrix.shape[0] > 1 and bool(np.all((matrix == 0) | (matrix == 1))) and bool(np.all(matrix.sum(axis=1) <= 1)):
            zero = self.number(0.0, matrix.shape[1])
            picks = [int(row.argmax()) if row.any() else matrix.shape[1] for row in matrix]
            return self.b.shuffle_vector(self.wide(x, matrix.shape[1]), zero,
                                         ir.Constant(ir.VectorType(I32, len(picks)), picks))
        for row in matrix:
            total: ir.Value | None = None
            for lane in np.flatnonzero(row):
                total = self.scaled(float(row[lane]), self.lane(x, int(lane)), total, 1)
            outs.append(total if total is not None else self.number(0.0))
        return outs[0] if len(outs) == 1 else self.packed(outs)

    # Matching

    def _code(self, node: Node) -> ir.Value:
        if not node.args:
            return ir.Constant(I32, 0)
        width, flip = node.width, sum(1 << i for i, sign in enumerate(node.data) if sign < 0)
        if width == 1:
            values = self.packed([self.values[a] for a in node.args])
            positive = self.b.fcmp_ordered(">", values, self.number(0.0, len(node.args)) if len(node.args) > 1
                                           else self.packed([self.number(0.0)]))
            number = self.b.bitcast(positive, ir.IntType(len(node.args)))
            number = self.b.zext(number, I32) if len(node.args) < 32 else number
            return self.b.xor(number, ir.Constant(I32, flip)) if flip else number
        kind = ir.VectorType(I32, width)
        total: ir.Value = ir.Constant(kind, [ir.Constant(I32, flip)] * width)
        for i, value in enumerate(self.args(node)):
            positive = self.b.fcmp_ordered(">", value, self.number(0.0, width))
            bit = self.b.select(positive, ir.Constant(kind, [ir.Constant(I32, 1 << i)] * width),
                                ir.Constant(kind, [ir.Constant(I32, 0)] * width))
            total = self.b.xor(total, bit)
        return total

    def _match(self, node: Node) -> ir.Value:
        width = node.width
        a, b = (self.wide(self.values[x], width) for x in node.args)
        equal = self.b.icmp_unsigned("==", a, b)
        return self.b.select(equal, self.vector(node.data, width), self.number(0.0, width))

    def _index(self, node: Node) -> ir.Value:
        """A list of columns, one a lane, kept as scalars: see `base`. A missing one is -1."""
        code = self.values[node.args[0]]
        found = []
        for lane in range(node.width):
            table = node.data[lane if len(node.data) > 1 else 0]
            one = self.lane(code, lane)
            if table < 0:
                found.append(ir.Constant(I32, -1))
                continue
            self.codes.append((one, table))
            pointer = self.b.load(self.b.gep(self.tables, [ir.Constant(I64, table)]))
            found.append(self.b.load(self.b.gep(pointer, [self.b.zext(one, I64)])))
        return found[0] if len(found) == 1 else self.packed(found)

    def base(self, index: Node) -> list[ir.Value]:
        """Pointers to the columns of an index, one a lane; each must exist."""
        if index not in self.bases:
            value = self.node(index)
            lanes = [self.lane(value, lane) for lane in range(index.width)]
            if index.op == "index":
                for one in dict.fromkeys(lanes):
                    self.ok.append(self.b.icmp_signed(">=", one, ir.Constant(I32, 0)))
            self.bases[index] = [self.column(one) for one in lanes]
        return self.bases[index]

    def column(self, number: ir.Value) -> ir.Value:
        wide = self.b.sext(number, I64)
        return self.b.gep(self.buffer, [self.b.mul(wide, ir.Constant(I64, self.places.width))])

    def _gather(self, node: Node) -> ir.Value:
        found = [self.load(self.b.gep(base, [ir.Constant(I64, node.data)])) for base in self.base(node.args[0])]
        return found[0] if len(found) == 1 else self.packed(found)

    # Checks

    def check_bits(self, value: ir.Value) -> None:
        """±1 in every lane."""
        if isinstance(value.type, ir.VectorType):
            self._all(self.b.fcmp_ordered("==", self.call("fabs", value), self.number(1.0, value.type.count)))
        else:
            self.bits.append(value)

    def check_limit(self, value: ir.Value, limit: float) -> None:
        """At most `limit` in size, and a number."""
        width = value.type.count if isinstance(value.type, ir.VectorType) else 1
        self._all(self.b.fcmp_ordered("<=", self.call("fabs", value), self.number(limit, width)))

    def _all(self, flags: ir.Value) -> None:
        if isinstance(flags.type, ir.VectorType):
            whole = ir.IntType(flags.type.count)
            flags = self.b.icmp_unsigned("==", self.b.bitcast(flags, whole), ir.Constant(whole, -1))
        self.ok.append(flags)

    def check_distinct(self, lanes: Iterable[ir.Value]) -> None:
        """No two columns are stored to twice."""
        seen: list[ir.Value] = []
        for one in lanes:
            for other in seen:
                self.ok.append(self.b.icmp_unsigned("!=", one, other))
            seen.append(one)

    def all_ok(self) -> ir.Value:
        """Whether every check holds."""
        for start in range(0, len(self.bits), CHECK_WIDTH):
            part = self.packed(self.bits[start : start + CHECK_WIDTH])
            width = part.type.count
            size = self.call("fabs", part)
            ones = ir.Constant(part.type, [ir.Constant(self.real, 1.0)] * width)
            self._all(self.b.fcmp_ordered("==", size, ones))
        result: ir.Value = ir.Constant(I1, 1)
        for flag in self.ok:
            result = self.b.and_(result, flag)
        return result


def _bits(real: ir.Type) -> int:
    return 64 if isinstance(real, ir.DoubleType) else 32


def emit_loop(module: ir.Module, name: str, plan: Plan, real: ir.Type, places: Places) -> ir.Function:
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
        value = emitter.linear(check.value)
        emitter.check_bits(value) if check.kind == "bits" else emitter.check_limit(value, check.limit)
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
            emitter.store(value, b.gep(base, [ir.Constant(I64, row)]))
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
            _check(emitter, given[single[0]], store.kinds[row])
            checked.add(single[0])
    for lane in range(store.index.width):
        if not store.mask[lane]:
            continue
        column = emitter.lane(index, lane)
        found = b.icmp_signed(">=", column, ir.Constant(I32, 0))
        emitter.ok.append(b.icmp_signed(">=", column, ir.Constant(I32, -1)))
        base = emitter.column(b.select(found, column, ir.Constant(I32, emitter.places.nowhere)))
        one = Emitter(b, emitter.real, emitter.buffer, emitter.tables, emitter.places)
        one.load_at = base
        one.bound = {node: emitter.lane(value, lane) for node, value in given.items()}
        rows = {}
        for row, linear in store.rows.items():
            rows[row] = one.linear(linear)
            single = linear.single
            if not linear.is_constant and not (single is not None and single[0] in checked):
                flags = Emitter(b, emitter.real, emitter.buffer, emitter.tables, emitter.places)
                _check(flags, rows[row], store.kinds[row])
                emitter.bits += flags.bits
                emitter.ok += flags.ok
        result.append((column, base, rows))
    return result


def _check(emitter: Emitter, value: ir.Value, kind: tuple[str, float]) -> None:
    if kind[0] == "bits":
        emitter.check_bits(value)
    else:
        emitter.check_limit(value, kind[1])


def _report(b: ir.IRBuilder, report: ir.Value, codes: list[tuple[ir.Value, int]]) -> None:
    """The tables that were asked, and the codes: how many, then pairs."""
    if len(codes) > MOST_CODES:
        raise LoweringError(f"a loop asks {len(codes)} times for a column: the most is {MOST_CODES}")
    b.store(ir.Constant(I64, len(codes)), b.gep(report, [ir.Constant(I64, REPORT_CODES)]))
    for i, (code, table) in enumerate(codes):
        at = REPORT_CODES + 1 + 2 * i
        b.store(ir.Constant(I64, table), b.gep(report, [ir.Constant(I64, at)]))
        b.store(b.zext(code, I64), b.gep(report, [ir.Constant(I64, at + 1)]))


def _settle(emitter: Emitter, plan: Plan, visits: ir.Value) -> None:
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
    one = Emitter(b, emitter.real, emitter.buffer, emitter.tables, emitter.places)
    one.load_at = one.column(column)
    rows = {row: one.linear(linear) for row, linear in plan.settles.items()}
    for row, value in rows.items():
        one.store(value, b.gep(one.load_at, [ir.Constant(I64, row)]))
    i.add_incoming(following, b.block)
    b.branch(head)
    b.position_at_end(end)


def emit_driver(module: ir.Module, plan: Plan | None, real: ir.Type, places: Places, loop: ir.Function | None) -> None:
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
