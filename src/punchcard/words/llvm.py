"""Words as LLVM code: integers of as many bits as the words have."""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from punchcard.words.renderer import Renderer
from punchcard.words.word import Word, as_signed


def llvm_code(builder: ir.IRBuilder, leaf: Callable[[Word], ir.Value],
              rewrite: Callable[[Word], Word | None] = lambda word: None) -> Renderer[ir.Value]:
    """Writes words into a basic block, each once. `leaf` writes a variable, as an integer of its size.

    `rewrite` gives another form of a word that is better to compile, or None.
    """
    b = builder

    def divide(w: Word, x: ir.Value, y: ir.Value) -> ir.Value:
        """LLVM does not say what a division by 0 gives."""
        is_zero = b.icmp_unsigned("==", y, number(0, w.size))
        safe = b.select(is_zero, number(1, w.size), y)
        return b.select(is_zero, number(-1, w.size), b.udiv(x, safe)) if w.op == "quotient" else (
            b.select(is_zero, x, b.urem(x, safe)))

    def bits(w: Word, x: ir.Value) -> ir.Value:
        moved = b.lshr(x, number(w.data, w.arguments[0].size)) if w.data else x  # type: ignore[arg-type]
        return b.trunc(moved, ir.IntType(w.size))

    def join(w: Word, low: ir.Value, high: ir.Value) -> ir.Value:
        kind = ir.IntType(w.size)
        return b.or_(b.zext(low, kind), b.shl(b.zext(high, kind), number(w.arguments[0].size, w.size)))

    return Renderer({
        "constant": lambda w: number(w.data, w.size),
        "add": lambda w, x, y: b.add(x, y),
        "subtract": lambda w, x, y: b.sub(x, y),
        "multiply": lambda w, x, y: b.mul(x, y),
        "quotient": divide,
        "remainder": divide,
        "and_": lambda w, x, y: b.and_(x, y),
        "or_": lambda w, x, y: b.or_(x, y),
        "xor": lambda w, x, y: b.xor(x, y),
        "not_": lambda w, x: b.not_(x),
        "shift_left": lambda w, x, by: b.shl(x, by),
        "shift_right": lambda w, x, by: b.ashr(x, by) if w.data else b.lshr(x, by),
        "equal": lambda w, x, y: b.icmp_unsigned("==", x, y),
        "less": lambda w, x, y: b.icmp_signed("<", x, y) if w.data else b.icmp_unsigned("<", x, y),
        "choose": lambda w, condition, yes, no: b.select(condition, yes, no),
        "bits": bits,
        "join": join,
        "extend": lambda w, x: (b.sext if w.data else b.zext)(x, ir.IntType(w.size)),
    }, leaf, rewrite)


def number(value: int, size: int) -> ir.Constant:
    """A constant, as LLVM writes it: with a sign."""
    return ir.Constant(ir.IntType(size), as_signed(value, size))
