"""Float arithmetic as LLVM code: numbers, and vectors with a lane for each column of a group."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from llvmlite import ir

from punchcard.engines.lowered.graph.nodes import Array
from punchcard.words.llvm import number

I1, I8, I32, I64 = ir.IntType(1), ir.IntType(8), ir.IntType(32), ir.IntType(64)
EXP = {"double": (13, 6.93147180369123816490e-01, 1.90821492927058770002e-10, 708.0, 1023, 52, ir.IntType(64)),
       "float": (7, 0.693359375, -2.12194440e-4, 87.0, 127, 23, ir.IntType(32))}
"""Terms of the series, ln 2 in two parts, the largest argument, and how a power of two is written."""
HALF_LN2 = math.log(2.0) / 2


def i32(value: int) -> ir.Constant:
    return number(value, 32)


def i64(value: int) -> ir.Constant:
    return number(value, 64)


class FloatCode:
    """Writes float operations into the block of a builder."""

    def __init__(self, builder: ir.IRBuilder, real: ir.Type) -> None:
        self.b: ir.IRBuilder = builder
        self.real = real

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
        first = self.b.insert_element(ir.Constant(kind, ir.Undefined), value, i32(0))
        zeros = ir.Constant(ir.VectorType(I32, width), [0] * width)
        return self.b.shuffle_vector(first, ir.Constant(kind, ir.Undefined), zeros)

    def lane(self, value: ir.Value, lane: int) -> ir.Value:
        return self.b.extract_element(value, i32(lane)) if isinstance(value.type, ir.VectorType) else value

    def packed(self, values: list[ir.Value]) -> ir.Value:
        kind = ir.VectorType(values[0].type, len(values))
        result: ir.Value = ir.Constant(kind, ir.Undefined)
        for i, value in enumerate(values):
            result = self.b.insert_element(result, value, i32(i))
        return result

    def call(self, name: str, *args: ir.Value) -> ir.Value:
        kind = args[0].type
        suffix = f"v{kind.count}f{bits_of(self.real)}" if isinstance(kind, ir.VectorType) else f"f{bits_of(self.real)}"
        module = self.b.module
        full = f"llvm.{name}.{suffix}"
        function = module.globals.get(full) or ir.Function(module, ir.FunctionType(kind, [a.type for a in args]), full)
        return self.b.call(function, args)

    def load(self, pointer: ir.Value) -> ir.Value:
        """Numbers."""
        loaded = self.b.load(pointer)
        loaded.align = bits_of(self.real) // 8
        return loaded

    def store(self, value: ir.Value, pointer: ir.Value) -> None:
        """A number or several."""
        self.b.store(value, pointer).align = bits_of(self.real) // 8

    def scaled(self, c: float, x: ir.Value, y: ir.Value | None = None) -> ir.Value:
        """c x + y."""
        width = width_of(x)
        if y is None:
            return x if c == 1 else self.b.fneg(x) if c == -1 else self.b.fmul(x, self.number(c, width))
        if c == 1:
            return self.b.fadd(y, x)
        if c == -1:
            return self.b.fsub(y, x)
        return self.call("fmuladd", x, self.number(c, width), y)

    def most(self, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.b.select(self.b.fcmp_ordered(">", a, b), a, b)

    def exponential(self, x: ir.Value, width: int, largest: float) -> ir.Value:
        """e^x = 2^n e^r with n the integer nearest to x / ln 2, and the series of e^r for |r| <= ln 2 / 2.

        Where x is known to be at most `largest` in size, and that is no more, n is 0, and fewer terms leave as little.
        """
        terms, high, low, most, bias, shift, integer = EXP[str(self.real)]
        if largest <= HALF_LN2:
            return self._series(x, width, next(k for k in range(terms + 1) if _rest(largest, k) <= _rest(HALF_LN2, terms)))
        tiny = self.b.fcmp_ordered("<", x, self.number(-most, width))
        x = self.most(x, self.number(-most, width))
        n = self.call("floor", self.call("fmuladd", x, self.number(1 / math.log(2.0), width), self.number(0.5, width)))
        r = self.call("fmuladd", n, self.number(-high, width), x)
        r = self.call("fmuladd", n, self.number(-low, width), r)
        total = self._series(r, width, terms)
        whole = ir.VectorType(integer, width) if width > 1 else integer

        def every(value: int) -> ir.Constant:
            one = ir.Constant(integer, value)
            return one if width == 1 else ir.Constant(whole, [one] * width)

        power = self.b.shl(self.b.add(self.b.fptosi(n, whole), every(bias)), every(shift))
        result = self.b.fmul(total, self.b.bitcast(power, x.type))
        return self.b.select(tiny, self.number(0.0, width), result)

    def _series(self, x: ir.Value, width: int, terms: int) -> ir.Value:
        """The series of e^x up to x^terms."""
        total: ir.Value = self.number(1 / math.factorial(terms), width)
        for k in range(terms - 1, -1, -1):
            total = self.call("fmuladd", total, x, self.number(1 / math.factorial(k), width))
        return total

    def transposed(self, vectors: list[ir.Value]) -> list[ir.Value]:
        """Entry i of vector j as entry j of vector i: as many vectors as entries, a power of two.

        Of two vectors `step` apart, the entries whose places differ by `step` are exchanged, for each power of two.
        """
        vectors, step = list(vectors), 1
        while step < len(vectors):
            for i in (i for i in range(len(vectors)) if not i & step):
                one, other = vectors[i], vectors[i + step]
                entries = range(len(vectors))
                vectors[i] = self.picked(one, other, [len(vectors) + e - step if e & step else e for e in entries])
                vectors[i + step] = self.picked(one, other, [len(vectors) + e if e & step else e + step for e in entries])
            step *= 2
        return vectors

    def picked(self, one: ir.Value, other: ir.Value, entries: Sequence[int]) -> ir.Value:
        """Entries of two vectors, those of the other counted on."""
        return self.b.shuffle_vector(one, other, ir.Constant(ir.VectorType(I32, len(entries)), list(entries)))

    def joined(self, parts: list[ir.Value], width: int) -> ir.Value:
        """The first entries of vectors that are equally wide, one after the other."""
        while len(parts) > 1:
            one = parts[0]
            pairs = [(parts[i], parts[i + 1] if i + 1 < len(parts) else ir.Constant(one.type, ir.Undefined))
                     for i in range(0, len(parts), 2)]
            parts = [self.picked(first, second, range(2 * one.type.count)) for first, second in pairs]
        whole = parts[0]
        return whole if whole.type.count == width else self.picked(whole, whole, range(width))

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


def _rest(x: float, terms: int) -> float:
    """The first term that a series of e^x leaves out."""
    return x ** (terms + 1) / math.factorial(terms + 1)


def is_near(b: ir.IRBuilder, value: ir.Value, wanted: ir.Value) -> ir.Value:
    """Whether a number is less than 1/2 away from another."""
    apart, half = b.fsub(value, wanted), ir.Constant(value.type, 0.5)
    return b.and_(b.fcmp_ordered("<", apart, half), b.fcmp_ordered(">", apart, b.fneg(half)))


def resized(b: ir.IRBuilder, value: ir.Value, kind: ir.IntType) -> ir.Value:
    """An integer without sign in another number of bits."""
    if value.type == kind:
        return value
    return b.zext(value, kind) if value.type.width < kind.width else b.trunc(value, kind)


def width_of(value: ir.Value) -> int:
    return value.type.count if isinstance(value.type, ir.VectorType) else 1


def bits_of(real: ir.Type) -> int:
    return 64 if isinstance(real, ir.DoubleType) else 32
