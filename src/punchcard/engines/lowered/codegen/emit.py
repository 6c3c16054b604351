"""Nodes as LLVM code, each once.

The buffer holds the card's columns one after the other, then a column that nobody reads, where stores without a place
go, then the busy columns' states.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from llvmlite import ir

from punchcard.engines.lowered.analysis.columns import Slot
from punchcard.engines.lowered.graph.nodes import Array, Linear, Node
from punchcard.engines.lowered.graph.operations import INDEX

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
        self.b: ir.IRBuilder = builder
        self.places: Places = places
        self.real, self.buffer, self.tables = real, buffer, tables
        self.values: dict[Node, ir.Value] = {}
        self.bits: list[ir.Value] = []
        self.ok: list[ir.Value] = []
        self.codes: list[tuple[ir.Value, int]] = []
        self.bases: dict[Node, list[ir.Value]] = {}
        self.load_at: ir.Value | None = None
        self.bound: dict[Node, ir.Value] = {}

    def at(self, column: ir.Value, bound: dict[Node, ir.Value]) -> Emitter:
        """An emitter for the quiet column at this place, with what busy columns hand to it."""
        one = Emitter(self.b, self.real, self.buffer, self.tables, self.places)
        one.load_at, one.bound = column, bound
        return one

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
            total = self.scaled(c, self.wide(self.node(node), width), total)
        assert total is not None
        return total

    def scaled(self, c: float, x: ir.Value, y: ir.Value | None = None) -> ir.Value:
        """c x + y."""
        width = _width(x)
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
                self.values[top] = top.op.emit(self, top)
        return self.values[node]

    def args(self, node: Node) -> list[ir.Value]:
        return [self.wide(self.values[a], node.width) for a in node.args]

    def affine(self, node: Node) -> ir.Value:
        """s x + b, for a node with these data."""
        factor, bias, *_ = node.data
        return self.scaled(factor, self.args(node)[0], self.vector(bias, node.width) if bias.any() else None)

    def most(self, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.b.select(self.b.fcmp_ordered(">", a, b), a, b)

    def exponential(self, x: ir.Value, width: int) -> ir.Value:
        """e^x = 2^n e^r with n the integer nearest to x / ln 2, and the series of e^r for |r| <= ln 2 / 2."""
        terms, high, low, most, bias, shift, integer = EXP[str(self.real)]
        tiny = self.b.fcmp_ordered("<", x, self.number(-most, width))
        x = self.most(x, self.number(-most, width))
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

    def mixture(self, x: ir.Value, matrix: Array) -> ir.Value:
        """A matrix times the entries of a value."""
        outs = []
        if matrix.shape[0] > 1 and bool(np.all((matrix == 0) | (matrix == 1))) and bool(np.all(matrix.sum(axis=1) <= 1)):
            zero = self.number(0.0, matrix.shape[1])
            picks = [int(row.argmax()) if row.any() else matrix.shape[1] for row in matrix]
            return self.b.shuffle_vector(self.wide(x, matrix.shape[1]), zero,
                                         ir.Constant(ir.VectorType(I32, len(picks)), picks))
        for row in matrix:
            total: ir.Value | None = None
            for lane in np.flatnonzero(row):
                total = self.scaled(float(row[lane]), self.lane(x, int(lane)), total)
            outs.append(total if total is not None else self.number(0.0))
        return outs[0] if len(outs) == 1 else self.packed(outs)

    # Matching

    def code(self, node: Node) -> ir.Value:
        """The signs of the arguments as the bits of an integer."""
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

    def match(self, codes: list[ir.Value], mask: Array) -> ir.Value:
        """The mask where two codes agree, else 0."""
        width = _width(codes[0])
        return self.b.select(self.b.icmp_unsigned("==", *codes), self.vector(mask, width), self.number(0.0, width))

    def look_up(self, code: ir.Value, tables: tuple[int, ...], width: int) -> ir.Value:
        """Columns, one a lane; a missing one is -1."""
        found = []
        for lane in range(width):
            table = tables[lane if len(tables) > 1 else 0]
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
            if index.op is INDEX:
                for one in dict.fromkeys(lanes):
                    self.ok.append(self.b.icmp_signed(">=", one, ir.Constant(I32, 0)))
            self.bases[index] = [self.column(one) for one in lanes]
        return self.bases[index]

    def integer(self, number: int) -> ir.Value:
        return ir.Constant(I32, number)

    def row(self, column: ir.Value | None, row: int) -> ir.Value:
        """The place of a row, given that of its column."""
        return self.b.gep(column, [ir.Constant(I64, row)])

    def column(self, number: ir.Value) -> ir.Value:
        wide = self.b.sext(number, I64)
        return self.b.gep(self.buffer, [self.b.mul(wide, ir.Constant(I64, self.places.width))])

    def gather(self, columns: list[ir.Value], row: int) -> ir.Value:
        found = [self.load(self.row(column, row)) for column in columns]
        return found[0] if len(found) == 1 else self.packed(found)

    # Checks

    def check(self, value: ir.Value, kind: str, limit: float) -> None:
        """±1 in every lane ("bits"), or at most `limit` in size and a number."""
        if kind == "bits":
            self.check_bits(value)
        else:
            self._all(self.b.fcmp_ordered("<=", self.call("fabs", value), self.number(limit, _width(value))))

    def check_bits(self, value: ir.Value) -> ir.Value:
        """The value, which must be ±1 in every lane."""
        if isinstance(value.type, ir.VectorType):
            self._all(self.b.fcmp_ordered("==", self.call("fabs", value), self.number(1.0, value.type.count)))
        else:
            self.bits.append(value)
        return value

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


def _width(value: ir.Value) -> int:
    return value.type.count if isinstance(value.type, ir.VectorType) else 1


def _bits(real: ir.Type) -> int:
    return 64 if isinstance(real, ir.DoubleType) else 32
