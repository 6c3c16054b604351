"""An engine for long traces: the tokens that a stock decoder writes, by tables instead of attention over the whole context.

It knows nothing of programs. From the weights it reads (`structure`) which column each head finds: the one so many places
back, or the latest whose bits agree; then a table of the latest column by its bits is as good as a softmax whose other
weights are exactly 0. Units are computed as they are, in integers; the largest logit is found by the signs of the column.
Weights that are not of this shape, and columns in which the largest logit is not certain, are declined (`WeightsError`).

Most of what a layer computes is for its own column alone. The columns of a prompt are computed up to the last layer that
writes something which a later head may read in another column; the rest only where a token is to be written.
"""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from llvmlite import ir
from numpy.typing import NDArray

from punchcard.card.formats import AnyArray
from punchcard.engines.lowered.codegen.objects import load_or_compile, name_of
from punchcard.errors import SizeError, WeightsError
from punchcard.language_models.stock.structure import GRID, HeadPlan, LayerPlan, ReadoutGroup, Structure, changed_rows

MOST_KEY_BITS = 22
"""Of a table that is found by the bits of a column."""
NO_TOKEN, NO_BIT, NO_COLUMN = -1, -2, -3
"""What the code gives instead of a token. NO_COLUMN - h: no column agrees with what head h asks for."""
I8, I32, I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
Columns: TypeAlias = NDArray[np.int8]
Call: TypeAlias = Callable[..., int]


class TraceEngine:
    """Writes the tokens that a decoder writes.

        engine = TraceEngine(structure)
        engine.generate(prompt, most=10_000)
    """

    def __init__(self, structure: Structure) -> None:
        self.structure, weights = structure, structure.weights
        self._heads = latest_heads(structure)
        for bits in (*(len(head.gap.entries) for head in self._heads), *(len(group.rows) for group in structure.groups)):
            if bits > MOST_KEY_BITS:
                raise WeightsError(f"a table by {bits} bits is too large: the most is {MOST_KEY_BITS}")
        self._embedding = np.ascontiguousarray(np.where(weights.embedding == 0, 1, weights.embedding), dtype=np.int8)
        self._readout = [_token_table(group) for group in structure.groups]
        self._idle = idle_heads(structure)
        module = kernel(structure)
        name = name_of(b"stock", hashlib.sha256(str(module).encode()).digest())
        code = self._code = load_or_compile(name, lambda: (module, {}), vectorize=False)
        kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, *[ctypes.c_void_p] * 4)
        self._whole, self._part = (kind(code.address(each)) for each in ("whole", "part"))

    def generate(self, prompt: Sequence[int], most: int | None = None) -> list[int]:
        """The tokens after a prompt, up to the end of the text, of the context, or `most`."""
        weights = self.structure.weights
        count, end = weights.positions, weights.end
        if not 0 < len(prompt) <= count:
            raise SizeError(f"a prompt of {len(prompt)} tokens: the context has 1 to {count} positions")
        limit = count - len(prompt) if most is None else min(most, count - len(prompt))
        columns = np.zeros((len(prompt) + limit, weights.bits), dtype=np.int8)
        tables: list[AnyArray] = [np.full(1 << len(head.gap.entries), -1, dtype=np.int32) for head in self._heads]
        pointers = np.array([table.ctypes.data for table in [*tables, *self._readout, self._idle]], dtype=np.int64)
        hints = np.full(max(1, len(tables)), -1, dtype=np.int64)
        given = hints.ctypes.data, columns.ctypes.data, self._embedding.ctypes.data, pointers.ctypes.data
        for position, token in enumerate(prompt[:-1]):
            if self._part(position, token, *given) < 0:
                self._searched(self._part, position, token, columns, hints, given)
        written: list[int] = []
        token, whole = prompt[-1], self._whole
        for position in range(len(prompt) - 1, len(prompt) - 1 + limit):
            found = whole(position, token, *given)
            if found < 0:
                found = self._searched(whole, position, token, columns, hints, given)
            token = found
            written.append(token)
            if token == end:
                break
        return written

    def _searched(self, call: Call, position: int, token: int, columns: Columns, hints: NDArray[np.int64],
                  given: tuple[int, ...]) -> int:
        """A column in which a head finds none that agrees in all entries: the best is searched for, and the column made
        again."""
        hints[:] = -1
        while (found := call(position, token, *given)) <= NO_COLUMN:
            head = NO_COLUMN - found
            hints[head] = _nearest(self._heads[head], position, columns)
        hints[:] = -1
        if found < 0:
            why = "no token has the signs of its column" if found == NO_TOKEN else "an entry of its column is not ±1"
            raise WeightsError(f"position {position}: {why}")
        return found


def latest_heads(structure: Structure) -> list[HeadPlan]:
    """The heads that find the latest column that agrees, in the order of their tables."""
    return [head for layer in structure.layers for head in layer.heads if head.gap.back is None]


def _nearest(head: HeadPlan, position: int, columns: Columns) -> int:
    """The latest of the columns that agree in most entries: an entry that differs costs more than all positions."""
    asking, answering = (list(rows) for rows in zip(*head.gap.entries, strict=True))
    agree = (columns[: position + 1, answering] == columns[position, asking]).sum(axis=1)
    return int(position - agree[::-1].argmax())


def _token_table(group: ReadoutGroup) -> NDArray[np.int32]:
    found = np.full(1 << len(group.rows), -1, dtype=np.int32)
    found[list(group.tokens)] = list(group.tokens.values())
    return found


def shared_layers(layers: Sequence[LayerPlan]) -> int:
    """How many layers every column needs: up to the last that writes what a later head reads in another column."""
    found = 0
    for number, layer in enumerate(layers, start=1):
        writes = changed_rows([layer])
        if any(writes & later.sources for later in layers[number:]):
            found = number
        if any(writes & earlier.sources for earlier in layers[:number]):
            raise WeightsError(f"layer {number} changes rows that heads read in other columns: a column would have to "
                               "be kept as it was before each layer")
    return found


def idle_heads(structure: Structure) -> NDArray[np.int64]:
    """For each token the heads, as bits of a number in the order of their tables, of which nothing in its column depends.

    What such a head brings is read by units alone, and all of them are closed in the token's column: with the rows that
    nothing writes to as they are, and whatever the others are, no sum is above 0.
    """
    embedding = np.where(structure.weights.embedding == 0, 1, structure.weights.embedding)
    layers = structure.layers
    changed = sorted(changed_rows(layers))
    found = np.zeros(len(embedding), dtype=np.int64)
    for at, head in enumerate(latest_heads(structure)):
        rows = {target for _, target in head.moves}
        first = next(number for number, layer in enumerate(layers) if head in layer.heads)
        if rows & {row for layer in layers[first + 1 :] for row in (*layer.sources, *(
                a for other in layer.heads for a, _ in other.gap.entries))} or rows & {
                row for group in structure.groups for row in group.rows} or rows & {
                row for layer in layers[first:] for row in layer.written}:
            continue
        idle = np.ones(len(embedding), dtype=bool)
        for layer in layers[first:]:
            units = layer.w1[layer.w1[:, sorted(rows)].any(axis=1)]
            fixed = np.delete(embedding, changed, axis=1) @ np.delete(units, changed, axis=1).T
            idle &= (fixed + np.abs(units[:, changed]).sum(axis=1) <= 0).all(axis=1)
        found |= idle.astype(np.int64) << at
    return found


# The code of a column


def kernel(structure: Structure) -> ir.Module:
    """Two functions: `whole` computes a column and gives the next token, `part` what later columns may read of it."""
    module = ir.Module("stock")
    for name in ("whole", "part"):
        _ColumnCode(structure, module, name).emit(whole=name == "whole")
    return module


class _ColumnCode:
    """One function: (position, token, hints, columns, embedding, tables) -> the next token, or why there is none."""

    def __init__(self, structure: Structure, module: ir.Module, name: str) -> None:
        self._layers, self._groups = structure.layers, structure.groups
        self._width = structure.weights.bits
        self._tables = {id(head): i for i, head in enumerate(latest_heads(structure))}
        self._function = ir.Function(module, ir.FunctionType(I64, [I64] * 6), name)
        self._position, token, self._hints, self._columns, embedding, self._pointers = self._function.args
        self._builder = builder = ir.IRBuilder(self._function.append_basic_block())
        self._own = self._column(self._position)
        row = ir.VectorType(I8, self._width).as_pointer()
        source = builder.inttoptr(builder.add(embedding, builder.mul(token, I64(self._width))), row)
        builder.store(builder.load(source, align=1), builder.bitcast(self._own, row), align=1)
        pointers = builder.inttoptr(self._pointers, I64.as_pointer())
        idle = builder.load(builder.gep(pointers, [I64(len(self._tables) + len(self._groups))]))
        self._idle = builder.load(builder.gep(builder.inttoptr(idle, I64.as_pointer()), [token]))
        self._bits: dict[int, ir.Value] = {}
        self._bad = ir.Constant(ir.IntType(1), 0)

    def emit(self, *, whole: bool) -> None:
        """All layers, or those that other columns need, and the keys of the rest."""
        builder = self._builder
        needed = len(self._layers) if whole else shared_layers(self._layers)
        for number, layer in enumerate(self._layers):
            self._remember(layer)
            if number < needed:
                self._attend(layer)
                self._units(layer)
        result: ir.Value = I64(0)
        if whole:
            result = I64(NO_TOKEN)
            for i, group in reversed(list(enumerate(self._groups))):
                found = builder.sext(self._entry(len(self._tables) + i, self._code(group.rows)), I64)
                result = builder.select(builder.icmp_signed("<", found, I64(0)), result, found)
        builder.ret(builder.select(self._bad, I64(NO_BIT), result))

    def _remember(self, layer: LayerPlan) -> None:
        """The column is the latest with its bits."""
        for head in layer.heads:
            if head.gap.back is None:
                place = self._place(self._tables[id(head)], self._code([b for _, b in head.gap.entries]))
                self._builder.store(self._builder.trunc(self._position, I32), place)

    def _attend(self, layer: LayerPlan) -> None:
        builder = self._builder
        brought = []
        for head in layer.heads:
            column = self._column(self._found(head))
            brought += [(target, builder.load(builder.gep(column, [I64(source)]))) for source, target in head.moves]
        for target, bit in brought:
            self._set(target, bit)

    def _found(self, head: HeadPlan) -> ir.Value:
        """The position of the column that a head finds."""
        builder, position = self._builder, self._position
        if head.gap.back is not None:
            back: ir.Value = I64(head.gap.back)
            for p, early in enumerate(head.gap.early):
                back = builder.select(builder.icmp_signed("==", position, I64(p)), I64(early), back)
            return builder.sub(position, back)
        at = self._tables[id(head)]
        found = builder.sext(self._entry(at, self._code([a for a, _ in head.gap.entries])), I64)
        hint = builder.load(builder.gep(builder.inttoptr(self._hints, I64.as_pointer()), [I64(at)]))
        found = builder.select(builder.icmp_signed("<", found, I64(0)), hint, found)
        idle = builder.trunc(builder.lshr(self._idle, I64(at)), ir.IntType(1))
        found = builder.select(builder.and_(idle, builder.icmp_signed("<", found, I64(0))), position, found)
        with builder.if_then(builder.icmp_signed("<", found, I64(0)), likely=False):
            builder.ret(I64(NO_COLUMN - at))
        return found

    def _units(self, layer: LayerPlan) -> None:
        """relu(w1 x) of every unit, and what it adds to rows: GRID^2 times the bit must be ±GRID^2 again."""
        builder, unit = self._builder, GRID * GRID
        values = []
        for weights in layer.w1.tolist():
            total = self._total([(weight, self._wide(row)) for row, weight in enumerate(weights) if weight])
            values.append(builder.select(builder.icmp_signed(">", total, I64(0)), total, I64(0)))
        changed = []
        for row in layer.written:
            terms = [(int(weight), value) for weight, value in zip(layer.w2[row].tolist(), values, strict=True) if weight]
            total = self._total([(unit, self._wide(row)), *terms])
            high = builder.icmp_signed("==", total, I64(unit))
            wrong = builder.and_(builder.not_(high), builder.icmp_signed("!=", total, I64(-unit)))
            self._bad = builder.or_(self._bad, wrong)
            changed.append((row, builder.select(high, I8(1), I8(-1))))
        for row, bit in changed:
            self._set(row, bit)

    def _total(self, terms: list[tuple[int, ir.Value]]) -> ir.Value:
        total: ir.Value = I64(0)
        for weight, value in terms:
            total = self._builder.add(total, self._builder.mul(value, I64(weight)))
        return total

    def _code(self, rows: Sequence[int]) -> ir.Value:
        """The bits of some rows as a number, the first lowest."""
        builder, code = self._builder, I64(0)
        for i, row in enumerate(rows):
            bit = builder.zext(builder.icmp_signed(">", self._bit(row), I8(0)), I64)
            code = builder.or_(code, builder.shl(bit, I64(i)))
        return code

    def _entry(self, table: int, code: ir.Value) -> ir.Value:
        return self._builder.load(self._place(table, code))

    def _place(self, table: int, code: ir.Value) -> ir.Value:
        builder = self._builder
        pointers = builder.inttoptr(self._pointers, I64.as_pointer())
        start = builder.inttoptr(builder.load(builder.gep(pointers, [I64(table)])), I32.as_pointer())
        return builder.gep(start, [code])

    def _column(self, position: ir.Value) -> ir.Value:
        builder = self._builder
        return builder.inttoptr(builder.add(self._columns, builder.mul(position, I64(self._width))), I8.as_pointer())

    def _bit(self, row: int) -> ir.Value:
        if row not in self._bits:
            self._bits[row] = self._builder.load(self._builder.gep(self._own, [I64(row)]))
        return self._bits[row]

    def _wide(self, row: int) -> ir.Value:
        return self._builder.sext(self._bit(row), I64)

    def _set(self, row: int, bit: ir.Value) -> None:
        self._bits[row] = bit
        self._builder.store(bit, self._builder.gep(self._own, [I64(row)]))
