"""Words as LLVM code: 64-bit integers, and flags of one bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from llvmlite import ir

from punchcard.engines.lowered.bits.table import BitTable
from punchcard.engines.lowered.bits.word import FULL, Bit, Word

I1, I64 = ir.IntType(1), ir.IntType(64)
Value = TypeVar("Value")


class WordEmitter:
    """Writes words into a basic block, each once. `leaf` writes those that come from elsewhere: an integer, or a flag."""

    def __init__(self, builder: ir.IRBuilder, leaf: Callable[[Word], ir.Value]) -> None:
        self.b: ir.IRBuilder = builder
        self._leaf = leaf
        self._values: dict[Word, ir.Value] = {}

    def word(self, word: Word) -> ir.Value:
        """As 64 bits."""
        value = self._value(word)
        return self.b.zext(value, I64) if value.type == I1 else value

    def flag(self, bit: Bit) -> ir.Value:
        """As one bit."""
        value = self._value(bit.word)
        return value if value.type == I1 else self.b.trunc(self._shifted(value, bit.place), I1)

    def truth(self, table: BitTable) -> ir.Value:
        """Whether a function has its greater value."""
        return self._decided(table.truth, [self.flag(bit) for bit in table.bits], I1)

    def _value(self, word: Word) -> ir.Value:
        if word not in self._values:
            pending = [word]
            while pending:
                top = pending[-1]
                missing = [arg for arg in top.args if arg not in self._values]
                if missing:
                    pending += missing
                    continue
                pending.pop()
                if top not in self._values:
                    self._values[top] = self._made(top)
        return self._values[word]

    def _made(self, word: Word) -> ir.Value:
        b = self.b
        if word.op == "constant":
            return ir.Constant(I64, word.data)
        if word.op == "shift":
            return self._shifted(self.word(word.args[0]), word.data)
        if word.op == "mask":
            return b.and_(self.word(word.args[0]), _number(word.data))
        if word.op == "sum":
            coefficients, constant = word.data
            return self._sum(coefficients, constant, [self.word(arg) for arg in word.args])
        if word.op == "at least":
            return b.icmp_signed(">=", self.word(word.args[0]), _number(word.data))
        if word.op == "below":
            bits, limit = word.data
            low = b.and_(self.word(word.args[0]), _number((1 << bits) - 1))
            return b.icmp_unsigned("<", low, _number(limit))
        if word.op == "equal":
            return b.icmp_unsigned("==", *(self.word(arg) for arg in word.args))
        if word.op == "matches":
            mask, pattern = word.data
            return b.icmp_unsigned("==", b.and_(self.word(word.args[0]), _number(mask)), _number(pattern))
        if word.op == "shift by":
            by = b.lshr if word.data > 0 else b.shl
            return by(*map(self.word, word.args))
        if word.op == "chosen":
            return self._one_of(self.word(word.args[0]), [self.word(part) for part in word.args[1:]])
        if word.op == "logic":
            table, places = word.data
            inputs = [self._everywhere(Bit(arg, shift)) if everywhere else self._shifted(self.word(arg), shift)
                      for arg, (shift, everywhere) in zip(word.args, places, strict=True)]
            return self._decided(table, inputs, I64)
        if word.op == "union":
            total = self.word(word.args[0])
            for arg in word.args[1:]:
                total = b.or_(total, self.word(arg))
            return total
        return self._leaf(word)

    def _one_of(self, index: ir.Value, parts: list[ir.Value]) -> ir.Value:
        """A part by its number: the lowest bit of the number first."""
        while len(parts) > 1:
            odd = self.b.trunc(index, I1)
            parts = [self.b.select(odd, parts[i + 1], parts[i]) for i in range(0, len(parts), 2)]
            index = self.b.lshr(index, _number(1))
        return parts[0]

    def _everywhere(self, bit: Bit) -> ir.Value:
        """A bit in all places."""
        return self.b.sext(self.flag(bit), I64)

    def _shifted(self, value: ir.Value, places: int) -> ir.Value:
        if abs(places) >= FULL:
            return _number(0)
        if places > 0:
            return self.b.lshr(value, _number(places))
        return self.b.shl(value, _number(-places)) if places else value

    def _sum(self, coefficients: tuple[int, ...], constant: int, values: list[ir.Value]) -> ir.Value:
        b = self.b
        total: ir.Value | None = _number(constant) if constant else None
        for c, value in sorted(zip(coefficients, values, strict=True), key=lambda term: term[0] < 0):
            part = value if abs(c) == 1 else b.mul(value, _number(abs(c)))
            if total is None:
                total = part if c > 0 else b.neg(part)
            else:
                total = b.add(total, part) if c > 0 else b.sub(total, part)
        return _number(0) if total is None else total

    def _decided(self, table: tuple[int, ...], inputs: list[ir.Value], kind: ir.Type) -> ir.Value:
        """A function by its table, bit by bit: the last input decides between two smaller functions."""
        if not any(table):
            return ir.Constant(kind, 0)
        if all(table):
            return ir.Constant(kind, -1)
        half = len(table) // 2
        low, high, last = table[:half], table[half:], inputs[-1]
        if low == high:
            return self._decided(low, inputs[:-1], kind)
        b, rest = self.b, inputs[:-1]
        if not any(low):
            return b.and_(last, self._decided(high, rest, kind)) if not all(high) else last
        if not any(high):
            return b.and_(b.not_(last), self._decided(low, rest, kind)) if not all(low) else b.not_(last)
        if all(high):
            return b.or_(last, self._decided(low, rest, kind))
        if all(low):
            return b.or_(b.not_(last), self._decided(high, rest, kind))
        if all(x != y for x, y in zip(low, high, strict=True)):
            return b.xor(last, self._decided(low, rest, kind))
        one, other = self._decided(high, rest, kind), self._decided(low, rest, kind)
        return b.xor(other, b.and_(last, b.xor(one, other)))


def _number(value: int) -> ir.Constant:
    return ir.Constant(I64, value if value < 1 << 63 else value - (1 << 64))
