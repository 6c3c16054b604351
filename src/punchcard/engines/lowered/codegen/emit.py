"""Nodes as LLVM code, each once: as words where they are functions of bits, else as numbers.

Where the card's fields and the active columns' states lie is the memory's matter (see `memory`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from llvmlite import ir

from punchcard.engines.lowered.analysis.buffer_layout import BufferLayout, Field, StateWord
from punchcard.engines.lowered.analysis.tables import DirectLookup
from punchcard.engines.lowered.bits.builder import WordBuilder
from punchcard.engines.lowered.bits.functions import Above, BitFunctions
from punchcard.engines.lowered.bits.packing import pack_any
from punchcard.engines.lowered.bits.table import ONE, SCALE, BitTable, SplitTable, bit_table, combine, scaled
from punchcard.engines.lowered.codegen.floats import I1, I32, I64, FloatCode, i32, i64, resized, width_of
from punchcard.engines.lowered.codegen.gather import Gathers
from punchcard.engines.lowered.codegen.memory import Agreement, FieldBits, FieldPresence, FormSign, Memory, StateBits
from punchcard.engines.lowered.graph.nodes import Array, Linear, Node, arguments_first, reachable
from punchcard.engines.lowered.graph.operations import CODE, CODES, GIVEN, INDEX, LOAD, STATE
from punchcard.words.llvm import llvm_code
from punchcard.words.word import Word, logic

REPORT_CODES = 4
"""Where a report's codes begin; before them are status, pattern or case, and spare places."""
MOST_CODES = 1 << 12
"""How often a loop may ask for a passive column, to read or to store."""
CHECK_WIDTH = 16
FEW_CHOICES = 2
"""A number of more bits than that is computed, not chosen."""


@dataclass(frozen=True)
class CodeKind:
    """What code is made for: numbers and the layout of a buffer. And what it takes for granted, and checks.

    direct   the tables that it does without;  empty  whether a column that it reads may be empty
    """

    real: ir.Type
    places: BufferLayout
    direct: Sequence[DirectLookup | None]
    empty: bool


class LoopEmitter:
    """Writes the nodes of a plan into a basic block, each once.

    With an `own` column it writes what a passive column computes, with what active columns hand to it (`bound`).
    """

    def __init__(self, builder: ir.IRBuilder, code: CodeKind, memory: Memory, tables: ir.Value,
                 above: LoopEmitter | None = None, own: ir.Value | None = None,
                 bound: Mapping[Node, ir.Value] | None = None, given: Mapping[Node, BitTable | None] | None = None) -> None:
        self.b: ir.IRBuilder = builder
        self.code_kind, self.real, self.places = code, code.real, code.places
        self.memory, self.tables, self.above = memory, tables, above
        self.floats: FloatCode = FloatCode(builder, self.real)
        self.words: WordBuilder = WordBuilder() if above is None else above.words
        self.functions = BitFunctions(self.words, self._bits_of, given, self.agreement)
        self.integers = llvm_code(builder, self._leaf, self.functions.written)
        self.own: ir.Value | None = own
        self.bound: Mapping[Node, ir.Value] = bound or {}
        self.values: dict[Node, ir.Value] = {}
        self.bits: list[ir.Value] = []
        self.ok: list[ir.Value] = []
        self.codes: list[tuple[ir.Value, int]] = []
        self.columns: dict[Node, list[ir.Value]] = {}
        self.seen: dict[tuple[Node | None, Field], None] = {}
        """Fields, and the index of a column or None for the own one, that are taken to hold bits: see `check_held`."""
        self.forms: dict[Hashable, Linear] = {}
        self._proven: dict[Node, bool] = {}
        self._gathers = Gathers(self)

    def at(self, column: ir.Value, bound: Mapping[Node, ir.Value], given: Mapping[Node, BitTable | None]) -> LoopEmitter:
        """An emitter for a passive column, with what active columns hand to it."""
        return LoopEmitter(self.b, self.code_kind, self.memory, self.tables, self, column, bound, given)

    def lift(self, forms: Iterable[Linear]) -> None:
        """Codes first: what is packed into a word together has its home there."""
        for node in sorted(reachable(forms), key=lambda node: node.rank):
            if node.op is CODE and node.width == 1:
                self.functions.code(node)
            self._gathers.want(node)

    # Bits

    def agreement(self, flag: Word) -> Word:
        """The flag whether two codes agree, as what depends on it is to see it."""
        return flag

    def _bits_of(self, node: Node) -> BitTable | None:
        """A row of the card as a bit of a word, where it is one."""
        if node.op is STATE:
            found = self.places.word_of(node.data)
            return None if found is None else self._state_bit(*found)
        field, i = self.places.of_row[node.data]
        if not field.bits or node.domain is None or min(node.domain) >= 0:
            return None
        where = None if node.op is LOAD else node.args[0]
        table = bit_table(self.words.bit(self.words.leaf(FieldBits(where, field), field.rows), i), -ONE, ONE)
        if not field.missing:
            return table
        if not self.code_kind.empty:
            self.seen[where, field] = None
            return table
        present = self.words.flag(FieldPresence(where, field))
        return combine(scaled, table, bit_table(self.words.bit(present), 0, ONE))

    def _state_bit(self, state: StateWord, place: int) -> BitTable:
        return bit_table(self.words.bit(self.words.leaf(StateBits(state), state[0].rows), place), -ONE, ONE)

    def _leaf(self, word: Word) -> ir.Value:
        """A word from elsewhere; what does not depend on the current column is computed once, by the emitter above."""
        if self.above is not None and not _of_column(word.data):
            return self.above.integers(word)
        match word.data:
            case StateBits(state):
                return self.memory.state(self.b, state)
            case FieldBits(index, field):
                column = self._column_at(index)
                word = resized(self.b, self._word(field, column), I64)
                return word if index is None else self.known_read(word, field, column)
            case FieldPresence(index, field):
                return self.held(field, self._column_at(index))
            case Agreement(flag):
                return self.known_agreement(self.integers(flag))
            case FormSign(key):
                return self.b.fcmp_ordered(">", self.linear(self.forms[key]), self.floats.number(0.0))
            case Above(node, middle):
                return self.b.fcmp_ordered(">", self.node(node), self.floats.number(middle))
        raise TypeError(f"{word.data} is not a word of a loop")

    def _column_at(self, index: Node | None) -> ir.Value:
        """The column of an index; without one, the current column."""
        return self.own if index is None else self.column_of(index)[0]

    def _word(self, field: Field, column: ir.Value) -> ir.Value:
        """The word of a column."""
        return self.b.load(self.memory.entry(self.b, field, column, 0, ir.IntType(8 * field.item)))

    def truth(self, table: BitTable) -> ir.Value:
        """Whether a function of bits has its greater value."""
        return self.integers(logic(table.truth, [bit.flag for bit in table.bits]))

    def put_word(self, field: Field, column: ir.Value, word: ir.Value) -> None:
        """Store a word of a column."""
        kind = ir.IntType(8 * field.item)
        self.b.store(resized(self.b, word, kind), self.memory.entry(self.b, field, column, 0, kind))

    def held(self, field: Field, column: ir.Value | None) -> ir.Value | None:
        """Whether a column holds something in a field; None if all columns do."""
        result: ir.Value | None = None
        for start, stop in field.missing:
            beyond = self.b.icmp_unsigned(">=", self.b.sub(column, i64(start)), i64(stop - start))
            result = beyond if result is None else self.b.and_(result, beyond)
        return result

    def check_held(self) -> None:
        """Every column whose bits were followed must hold bits there, also where these bits turned out not to matter."""
        for where, field in self.seen:
            inside = self.held(field, self._column_at(where))
            assert inside is not None
            self.ok.append(inside)

    def bit(self, linear: Linear) -> BitTable | SplitTable:
        """A form that is ±1: by proof, or by a check in the loop."""
        table = self.functions.bit(linear)
        if table is None:
            self.check_bits(self.linear(linear))
            self.forms[linear.key()] = linear
            table = bit_table(self.words.bit(self.words.flag(FormSign(linear.key()))), -ONE, ONE)
        return table

    def packed_bits(self, bits: Mapping[int, BitTable | SplitTable]) -> ir.Value:
        """Bits by their places, as a word."""
        return self.integers(pack_any(self.words, bits, self.functions.homes))

    def chosen(self, table: BitTable) -> ir.Value:
        """A number that depends on bits."""
        ends = table.ends
        if len(ends) == 1:
            return self.floats.number(_float(ends[0]))
        if len(ends) == 2:
            return self.b.select(self.truth(table), self.floats.number(_float(ends[1])), self.floats.number(_float(ends[0])))
        half = len(table.values) // 2
        low, high = (self.chosen(BitTable(table.bits[:-1], part)) for part in (table.values[:half], table.values[half:]))
        return self.b.select(self.integers(table.bits[-1].flag), high, low)

    # Linear forms and nodes

    def linear(self, form: Linear, width: int = 1) -> ir.Value:
        """The value of a form, at least `width` wide."""
        width = max([width, len(form.constant), *(n.width for n in form.terms)])
        total: ir.Value | None = self.floats.vector(form.constant, width) if form.constant.any() or not form.terms else None
        for node, c in form.terms.items():
            total = self.floats.scaled(c, self.floats.wide(self.node(node), width), total)
        assert total is not None
        return total

    def node(self, node: Node) -> ir.Value:
        """The value of a node; what it is made of comes first."""
        for part in arguments_first(node, self.values, self._made_of):
            table, source = self._choice(part), self._gathers.source(part)
            if table is not None:
                self.values[part] = self.chosen(table)
            else:
                self.values[part] = part.op.emit(self, part) if source is None else self._gathers.value(source)
        return self.values[node]

    def _made_of(self, node: Node) -> tuple[Node, ...]:
        """The nodes that the code of a node uses."""
        if self._choice(node) is not None:
            return ()
        if node.op is CODES:
            return node.args[1:] if self._are_words(node) else node.args[:1]
        source = self._gathers.source(node)
        return node.args if source is None else source[:1]

    def _choice(self, node: Node) -> BitTable | None:
        """A number that is better chosen by bits than computed."""
        table = self.functions.table(node) if node.width == 1 else None
        if table is None or any(isinstance(bit.word.data, Above) and bit.word.data.node is node for bit in table.bits):
            return None
        return table if len(table.ends) <= 2 or len(table.bits) <= FEW_CHOICES else None

    def args(self, node: Node) -> list[ir.Value]:
        return [self.floats.wide(self.values[a], node.width) for a in node.args]

    def affine(self, node: Node) -> ir.Value:
        """s x + b, for a node with these data."""
        factor, bias, *_ = node.data
        return self.floats.scaled(factor, self.args(node)[0], self.floats.vector(bias, node.width) if bias.any() else None)

    # Matching

    def code(self, node: Node) -> ir.Value:
        """The signs of the arguments as the bits of an integer."""
        width, flip = node.width, sum(1 << i for i, sign in enumerate(node.data) if sign < 0)
        if width == 1:
            return self.b.trunc(self.integers(self.functions.code(node)), I32)
        kind = ir.VectorType(I32, width)
        total: ir.Value = ir.Constant(kind, [i32(flip)] * width)
        for i, value in enumerate(self.args(node)):
            positive = self.b.fcmp_ordered(">", value, self.floats.number(0.0, width))
            bit = self.b.select(positive, ir.Constant(kind, [i32(1 << i)] * width),
                                ir.Constant(kind, [i32(0)] * width))
            total = self.b.xor(total, bit)
        return total

    def entry_codes(self, node: Node) -> ir.Value:
        """Codes of several columns, each by itself where all are proven."""
        if not self._are_words(node):
            return self.values[node.args[0]]
        return self.floats.packed([self.values[entry] for entry in node.args[1:]])

    def _are_words(self, node: Node) -> bool:
        """Whether each of the codes of several columns is made of bits that are proven."""
        if node not in self._proven:
            bits = dict.fromkeys(bit for entry in node.args[1:] for bit in entry.args)
            self._proven[node] = all(self.functions.bit(Linear({bit: 1.0})) is not None for bit in bits)
        return self._proven[node]

    def match(self, codes: list[ir.Value], mask: Array) -> ir.Value:
        """The mask where two codes agree, else 0."""
        width = width_of(codes[0])
        same = self.b.icmp_unsigned("==", *codes)
        return self.b.select(same, self.floats.vector(mask, width), self.floats.number(0.0, width))

    def excuse(self, node: Node) -> ir.Value | None:
        """Whether the column of an index need not exist: an active column has the code, and what is taken is its."""
        if len(node.args) == 1:
            return None
        table = self.functions.table(node.args[1])
        if table is None:
            return self.b.fcmp_ordered(">", self.values[node.args[1]], self.floats.number(0.5))
        return self.truth(table)

    def look_up(self, code: ir.Value, tables: tuple[int, ...], width: int, excuse: ir.Value | None = None) -> ir.Value:
        """Columns, one a lane; a missing one is -1. Where the code is the column but for a constant, no table is read.

        Where there is an excuse, the column is one that exists, whatever the code is.
        """
        found = []
        nowhere = i32(self.places.nowhere)
        for lane in range(width):
            table = tables[lane if len(tables) > 1 else 0]
            one = self.floats.lane(code, lane)
            if table < 0:
                found.append(i32(-1))
                continue
            one = self.known_code(one)
            self.codes.append((one, table))
            direct = self.code_kind.direct[table]
            if direct is not None:
                place = self.b.sub(one, i32(direct.first))
                inside = self.b.icmp_unsigned("<", place, i32(direct.count))
                column = self.b.add(place, i32(direct.column))
                for other, its in direct.others:
                    same = self.b.icmp_unsigned("==", one, i32(other))
                    inside, column = self.b.or_(inside, same), self.b.select(same, i32(its), column)
                if excuse is not None:
                    inside, column = self.b.or_(inside, excuse), self.b.select(excuse, nowhere, column)
                self.ok.append(inside)  # but what is read there may be read before this is known
                found.append(column if direct.inside else self.b.select(inside, column, i32(-1)))
                continue
            pointer = self.b.load(self.b.gep(self.tables, [i64(table)]))
            column = self.known_column(self.b.load(self.b.gep(pointer, [self.b.zext(one, I64)])))
            found.append(column if excuse is None else self.b.select(excuse, nowhere, column))
        return found[0] if len(found) == 1 else self.floats.packed(found)

    def known_code(self, code: ir.Value) -> ir.Value:
        """A code that is looked for, as far as it is known beforehand."""
        return code

    def known_column(self, column: ir.Value) -> ir.Value:
        """The column that a table has for the last code, as far as it is known beforehand."""
        return column

    def known_read(self, word: ir.Value, field: Field, column: ir.Value) -> ir.Value:
        """A word of another column, as far as it is known beforehand."""
        return word

    def known_agreement(self, flag: ir.Value) -> ir.Value:
        """Whether two codes agree, as far as it is known beforehand."""
        return flag

    def column_of(self, index: Node) -> list[ir.Value]:
        """The columns of an index, one a lane; each must exist."""
        if index not in self.columns:
            value = self.node(index)
            lanes = [self.floats.lane(value, lane) for lane in range(index.width)]
            if index.op is INDEX:
                for one in dict.fromkeys(lanes):
                    self.ok.append(self.b.icmp_signed(">=", one, i32(0)))
            self.columns[index] = [self.b.sext(one, I64) for one in lanes]
        return self.columns[index]

    def integer(self, number: int) -> ir.Value:
        return i32(number)

    def gather(self, index: Node, row: int) -> ir.Value:
        """A row of the columns of an index."""
        found = [self.row(column, row) for column in self.column_of(index)]
        return found[0] if len(found) == 1 else self.floats.packed(found)

    def row(self, column: ir.Value, row: int) -> ir.Value:
        """One entry of a passive column, as a number."""
        field, i = self.places.of_row[row]
        if not field.bits:
            return self.floats.load(self.memory.entry(self.b, field, column, i, self.real))
        word = self._word(field, column)
        bit = self.b.trunc(self.b.lshr(word, ir.Constant(word.type, i)), I1)
        value = self.b.select(bit, self.floats.number(1.0), self.floats.number(-1.0))
        held = self.held(field, column)
        return value if held is None else self.b.select(held, value, self.floats.number(0.0))

    def state(self, node: Node) -> ir.Value:
        """A row that active columns carry from loop to loop, as numbers."""
        found = self.places.word_of(node.data)
        if found is None:
            kind = ir.VectorType(self.real, node.width) if node.width > 1 else self.real
            return self.floats.load(self.memory.numbers(self.b, node.data, kind))
        return self.chosen(self._state_bit(*found))

    def given(self, node: Node) -> ir.Value:
        """What an active column passes to a passive one, as a number."""
        if node in self.bound:
            return self.bound[node]
        table = self.functions.table(node)
        assert table is not None
        return self.chosen(table)

    # Checks

    def check(self, value: ir.Value, kind: str, limit: float) -> None:
        """±1 in every lane ("bits"), or at most `limit` in size and a number."""
        if kind == "bits":
            self.check_bits(value)
        else:
            self._all(self.b.fcmp_ordered("<=", self.floats.call("fabs", value), self.floats.number(limit, width_of(value))))

    def check_bits(self, value: ir.Value) -> ir.Value:
        """The value, which must be ±1 in every lane."""
        if isinstance(value.type, ir.VectorType):
            self._all(self.b.fcmp_ordered("==", self.floats.call("fabs", value), self.floats.number(1.0, value.type.count)))
        elif not any(value is known for known in self.bits):
            self.bits.append(value)
        return value

    def _all(self, flags: ir.Value) -> None:
        if isinstance(flags.type, ir.VectorType):
            whole = ir.IntType(flags.type.count)
            flags = self.b.icmp_unsigned("==", self.b.bitcast(flags, whole), ir.Constant(whole, -1))
        self.ok.append(flags)

    def all_ok(self) -> ir.Value:
        """Whether every check holds."""
        self.check_held()
        for start in range(0, len(self.bits), CHECK_WIDTH):
            part = self.floats.packed(self.bits[start : start + CHECK_WIDTH])
            width = part.type.count
            size = self.floats.call("fabs", part)
            ones = ir.Constant(part.type, [ir.Constant(self.real, 1.0)] * width)
            self._all(self.b.fcmp_ordered("==", size, ones))
        flags = list(self.ok) or [ir.Constant(I1, 1)]
        while len(flags) > 1:  # as a tree: LLVM follows a chain by recursion
            pairs = zip(flags[::2], flags[1::2], strict=False)
            flags = [*(self.b.and_(one, other) for one, other in pairs), *flags[len(flags) & ~1 :]]
        return flags[0]


def _of_column(name: object) -> bool:
    """Whether a leaf depends on the current column."""
    if isinstance(name, Above):
        return any(part.op in (LOAD, GIVEN) for part in reachable([Linear({name.node: 1.0})]))
    return isinstance(name, FormSign) or (isinstance(name, FieldBits | FieldPresence) and name.index is None)


def _float(value: int) -> float:
    return value / (1 << SCALE)
