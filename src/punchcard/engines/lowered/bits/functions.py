"""Which nodes of a loop are functions of a few bits: found from the weights and the ranges alone, and proven for each.

A node is lifted when it is

    a bit that the card holds, or a constant
    a sum, a product or a ReLU of what depends on a few bits together: by trying all their settings
    a sum of ReLUs of one linear form over bits, flat but for steps: see `steps`

What cannot be proven stays a number; where such a number is known to have two values, its test is a bit.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from punchcard.engines.lowered.bits.builder import Bit, WordBuilder
from punchcard.engines.lowered.bits.divisions import LARGEST, Divisions, Quantity, comparison
from punchcard.engines.lowered.bits.node_rules import NODES
from punchcard.engines.lowered.bits.packing import family, pack, pack_any, same_bit
from punchcard.engines.lowered.bits.steps import (
    MOST_STEPS,
    Sum,
    Total,
    Units,
    aligned,
    carry_splits,
    multiple,
    needed_terms,
    odd_and_power,
    table_of_steps,
    without_gates,
)
from punchcard.engines.lowered.bits.table import (
    MOST_BITS,
    ONE,
    BitTable,
    Inexact,
    SplitTable,
    bit_table,
    combine,
    constant_table,
    exact,
    scaled,
    split_sum,
    without_idle_bits,
)
from punchcard.engines.lowered.bits.word_rules import WRITTEN
from punchcard.engines.lowered.graph import operations as op
from punchcard.engines.lowered.graph.nodes import Linear, Node, arguments_first
from punchcard.transformer.relu_steps import steps_of
from punchcard.words.word import Word

FEW_BITS = 3
"""A table of so many bits is as good as a bit of a sum."""
FEW_FLAGS = 2
"""With so many flags a conjunction is not looked at in another way."""
MOST_GATES = 4
Terms = dict[Node, int]


class WholeSum(NamedTuple):
    """What a word is the sum of, in units of so much: a number, and bits with what they count. `flag` is the highest bit."""

    word: Word
    terms: Sum
    unit: int
    number: int
    bits: Mapping[Bit, int]
    flag: tuple[Bit, Bit]

    def name(self, bit: Bit) -> Bit | None:
        """A bit as one of those that are counted."""
        name = self.flag[1] if bit == self.flag[0] else bit
        return name if name in self.bits else None


@dataclass(frozen=True)
class Above:
    """The name of a flag: whether a number that has two values is the greater one."""

    node: Node
    middle: float


def is_bit(function: BitTable | SplitTable | None) -> bool:
    """Whether a function is known, and -1 or 1."""
    return function is not None and set(function.values) <= {-ONE, ONE}


class BitFunctions:
    """The nodes of one place, where a loop is computed, as functions of bits.

    `leaf` gives a row of the card as a function of bits, or None; `given` has the functions behind given nodes.
    `agreement` gives the flag whether two codes agree, which is worked out from them, as it is to be used.
    """

    def __init__(self, words: WordBuilder, leaf: Callable[[Node], BitTable | None],
                 given: Mapping[Node, BitTable | None] | None = None,
                 agreement: Callable[[Word], Word] | None = None) -> None:
        self.words, self.leaf, self.given = words, leaf, given or {}
        self.agreement = agreement or (lambda flag: flag)
        self._tables: dict[Node, BitTable | None] = {}
        self._flat: dict[Node, tuple[Terms, int]] = {}
        self._sums: dict[Node, tuple[Sum, int] | None] = {}
        self._codes: dict[Node, Word] = {}
        self._packed: dict[Node, BitTable | None] = {}
        self._known_steps: dict[Hashable, BitTable | None] = {}
        self._known_functions: dict[Hashable, BitTable | None] = {}
        self._known_tables: dict[Hashable, BitTable | None] = {}
        self._known_splits: dict[Hashable, SplitTable | None] = {}
        self.families: Mapping[Hashable, Mapping[int, Node]] = {}
        """Rows of one block, by name and place, each a checked bit: they are packed into one word."""
        self.homes: dict[BitTable, Bit] = {}
        self._wholes: dict[Word, WholeSum] = {}
        self._divisions = Divisions(self.words, self.homes, self._total)

    def table(self, node: Node) -> BitTable | None:
        """A node as a function of few bits."""
        for part in arguments_first(node, self._tables, self._made_of):
            self._tables[part] = self._lifted(part)
        return self._tables[node]

    def _made_of(self, node: Node) -> Iterable[Node]:
        """What must be known of other nodes first: of a sum, what is summed up; of a ReLU, what it is a function of."""
        if node.op in (op.FMA, op.SAME, op.RELU) and node.width == 1:
            with suppress(Inexact):
                terms, _ = self._flattened(node)
                return [term.args[0] if term.op is op.RELU and term.width == 1 else term for term in terms]
        return node.args

    def table_of(self, linear: Linear) -> BitTable | None:
        """A linear form as a function of few bits."""
        if len(linear.constant) > 1 or any(node.width > 1 for node in linear.terms):
            return None
        for node in linear.terms:
            for part in self._made_of(node):
                self.table(part)
        try:
            return self._sum(*self._flat_form(linear))
        except Inexact:
            return None

    def bit(self, linear: Linear) -> BitTable | SplitTable | None:
        """A linear form that is proven to be -1 or 1."""
        return self._proven_bit(self.table_of(linear), linear)

    def _proven_bit(self, table: BitTable | None, linear: Linear) -> BitTable | SplitTable | None:
        """A linear form that is -1 or 1, by its table, or split by a few bits.

        A table by flags knows nothing of how they exclude each other: then its parts may.
        """
        if table is not None and is_bit(table) and sum(bit.word.op == "equal" for bit in table.bits) < FEW_BITS:
            return table
        return next((found for found in (self._split(linear), table) if is_bit(found)), None)

    def code(self, node: Node) -> Word:
        """The word whose bits are the signs of the arguments of a code."""
        if node not in self._codes:
            bits = {}
            for place, (arg, sign) in enumerate(zip(node.args, node.data, strict=True)):
                table = self.table(arg) or self._tested(arg, -1.0, 1.0)
                bits[place] = table.each(lambda value, sign=sign: int((value > 0) == (sign > 0)))  # type: ignore[misc]
            self._codes[node] = pack(self.words, bits, self.homes)
        return self._codes[node]

    def written(self, word: Word) -> Word | None:
        """A word in another form that is better to compile."""
        return self._divisions.written(word) or WRITTEN.first(word)

    # One node

    def _lifted(self, node: Node) -> BitTable | None:
        if node.width > 1:
            return None
        table: BitTable | None = None
        with suppress(Inexact):
            table = NODES.first(self, node)
        if table is None and node.domain is not None and len(node.domain) == 2:
            with suppress(Inexact):
                table = self._tested(node, *node.domain)
        return table

    def _tested(self, node: Node, low: float, high: float) -> BitTable:
        """A number with two values, by a comparison."""
        return bit_table(self.words.bit(self.words.flag(Above(node, (low + high) / 2))), exact(low), exact(high))

    def checked_bit(self, node: Node) -> BitTable | None:
        """A row that is checked to be ±1: a bit of the word of its block, or what it is a function of."""
        if node.data is not None and node not in self._packed:
            self._put_together(self.families.get(node.data[0], {node.data[1]: node}))
        if node in self._packed:
            return self._packed[node]
        table = self.table(node.args[0])
        return table if is_bit(table) else None

    def _put_together(self, family: Mapping[int, Node]) -> None:
        """Pack the rows of one block into a word: later nodes depend on one bit for each of them."""
        several: dict[int, BitTable | SplitTable] = {}
        for place, node in family.items():
            table = self._proven_bit(self.table(node.args[0]), Linear({node.args[0]: 1.0}))
            if table is None:
                self._packed[node] = None
            elif isinstance(table, BitTable) and len(table.bits) < 2:
                self._packed[node] = table
            else:
                several[place] = table
        choices = {table.bits for table in several.values() if isinstance(table, SplitTable)}
        for place, table in several.items():  # those that could go with others that a few bits choose between
            if isinstance(table, BitTable) and not any(set(bits) <= set(table.bits) for bits in choices):
                other = self._split(Linear({family[place].args[0]: 1.0})) if choices else None
                several[place] = other if other is not None and other.bits in choices else table
        if several:
            renamed = {place: self._divisions.renamed(table) if isinstance(table, BitTable) else table
                       for place, table in several.items()}
            word = pack_any(self.words, renamed, self.homes)
            self._packed.update({family[place]: bit_table(self.words.bit(word, place), -ONE, ONE) for place in several})

    def _split(self, linear: Linear) -> SplitTable | None:
        """A linear form as a function that is split by a few bits."""
        if len(linear.constant) > 1 or any(node.width > 1 for node in linear.terms):
            return None
        name = tuple(linear.terms.items()), linear.constant.item(), len(self.homes)
        if name not in self._known_splits:
            self._known_splits[name] = None
            with suppress(Inexact):
                self._known_splits[name] = self._split_form(*self._flat_form(linear))
        return self._known_splits[name]

    def _split_form(self, terms: Terms, constant: int) -> SplitTable | None:
        parts = list(self._parts(terms))
        found = [part for part in parts if part is not None]
        return split_sum([constant_table(constant), *found]) if len(found) == len(parts) else None

    # Sums

    def _flat_form(self, linear: Linear) -> tuple[Terms, int]:
        """A form as what its sums are made of, and the constant."""
        terms: Terms = {}
        constant = exact(linear.constant.item())
        for node, c in linear.terms.items():
            constant += self._add_flat(terms, node, exact(c))
        return terms, constant

    def _add_flat(self, into: Terms, node: Node, factor: int) -> int:
        """Add a node as what its sums are made of; returns the constant."""
        terms, constant = self._flattened(node)
        if factor == ONE and not into:
            into.update(terms)
            return constant
        for leaf, c in terms.items():
            into[leaf] = into.get(leaf, 0) + scaled(c, factor)
            if not into[leaf]:
                del into[leaf]
        return scaled(constant, factor)

    def _flattened(self, node: Node) -> tuple[Terms, int]:
        if node not in self._flat:
            terms: Terms = {}
            if node.op is op.CONSTANT:
                self._flat[node] = terms, exact(node.data[0].item())
            elif node.op is op.SAME:
                self._flat[node] = self._flattened(node.args[0])
            elif node.op is op.FMA and node.width == 1:
                constant = self._add_flat(terms, node.args[0], exact(node.data))
                if len(node.args) > 1:
                    constant += self._add_flat(terms, node.args[1], ONE)
                self._flat[node] = terms, constant
            else:
                self._flat[node] = {node: ONE}, 0
        return self._flat[node]

    def sum_of(self, node: Node) -> BitTable | None:
        """A sum or a ReLU as a function of few bits."""
        return self._sum(*self._flat_form(Linear({node: 1.0})))

    def _sum(self, terms: Terms, constant: int) -> BitTable | None:
        """A sum of leaves and ReLUs."""
        counted = self._counted(terms, constant)
        if counted is not None:
            return counted
        ways = (False, True) if len(terms) > 1 and any(node.op is op.RELU for node in terms) else (False,)
        for as_flags in ways:  # conjunctions bit by bit, or each by one flag: then there may be few enough
            parts = self._few_parts(terms, as_flags)
            total: BitTable | None = None if parts is None else constant_table(constant)
            for table in parts or ():
                total = None if total is None else combine(int.__add__, total, table)
            if total is not None:
                return total
        return None

    def _counted(self, terms: Terms, constant: int) -> BitTable | None:
        """A sum of comparisons that count how often a number is in another."""
        relus, linear = self._by_base(terms)
        if linear or not self._divisions.may_count(relus.values()):
            return None
        found = []
        with suppress(Inexact):
            for base, units in relus.items():
                summed = self._by_arguments(base) if self.table(base) is None else None
                compared = None if summed is None else comparison(Quantity(*summed), units)
                if compared is None:
                    return None
                found.append(compared)
            return self._divisions.count(found, constant)
        return None

    def _few_parts(self, terms: Terms, as_flags: bool) -> list[BitTable] | None:
        """The parts of a sum, where all of them together depend on few bits."""
        parts, bits = [], set[Bit]()
        for table in self._parts(terms, as_flags):
            if table is None:
                return None
            parts.append(table)
            bits.update(table.bits)
            if len(bits) > MOST_BITS:
                return None
        return parts

    def _parts(self, terms: Terms, as_flags: bool = False) -> Iterator[BitTable | None]:
        """The parts of a sum: all ReLUs of one node together, and everything else by itself."""
        relus, linear = self._by_base(terms)
        for base, units in relus.items():
            share, less = self._share(linear, base)
            if less:
                yield constant_table(-less)
            yield self._function(base, units, share, as_flags)
        for node, c in linear.items():
            table = self.table(node)
            yield table if table is None or c == ONE else table.each(
                lambda value, c=c: scaled(value, c))  # type: ignore[misc]

    def _by_base(self, terms: Terms) -> tuple[dict[Node, Units], Terms]:
        """The ReLUs of a sum by what they are ReLUs of, and everything else."""
        relus: dict[Node, Units] = {}
        linear: Terms = {}
        for node, c in terms.items():
            if node.op is op.RELU and node.width == 1:
                factor, bias = node.data
                relus.setdefault(node.args[0], []).append((c, exact(factor), exact(bias.item())))
            else:
                linear[node] = c
        return relus, linear

    def _share(self, linear: Terms, base: Node) -> tuple[int, int]:
        """How often a sum holds the base of its ReLUs as well, and the constant in that; both are to be taken out."""
        parts, own = self._flattened(base)
        if len(parts) < 2 or not parts.keys() <= linear.keys():
            return 0, 0
        leaf, c = next(iter(parts.items()))
        times, rest = divmod(linear[leaf] * ONE, c)
        if rest or any(scaled(times, part) != linear[node] for node, part in parts.items()):
            return 0, 0
        for node in parts:
            del linear[node]
        return times, scaled(times, own)

    def _function(self, base: Node, units: Units, share: int, as_flags: bool = False) -> BitTable | None:
        """A sum of ReLUs of one node, and the node itself `share` times."""
        def value(at: int) -> int:
            total = scaled(share, at) if share else 0
            for c, factor, bias in units:
                opened = (at if factor == ONE else scaled(factor, at)) + bias
                if opened > 0:
                    total += scaled(c, opened)
            return total

        name = base, tuple(units), share
        if name not in self._known_tables:
            table = self.table(base)
            self._known_tables[name] = None if table is None else table.each(value)
        tried = self._known_tables[name]
        if tried is not None and (len(tried.bits) <= FEW_BITS or (len(units) == 1 and not as_flags)):
            return tried
        stepped = self._stepped(base, units, share, value)
        if stepped is None or (tried is not None and len(tried.bits) <= len(stepped.bits)):
            return tried
        return stepped

    def _stepped(self, base: Node, units: Units, share: int, value: Callable[[int], int]) -> BitTable | None:
        """A function of a sum, by steps. A form may be looked at in several ways, and has the same parts in each.

        What was packed since may have better homes for what it is made of.
        """
        name = base, tuple(units), share, len(self.homes)
        if name not in self._known_functions:
            self._known_functions[name] = None
            with suppress(Inexact):
                self._known_functions[name] = self._by_steps(base, units, share, value)
        return self._known_functions[name]

    def _by_steps(self, base: Node, units: Units, share: int, value: Callable[[int], int]) -> BitTable | None:
        """A function of a sum: bits that are alone in it are gates, and the rest is an integer with steps.

        Where all ReLUs are closed it is flat, unless it has a share of the sum itself.
        """
        summed = self._affine(base)
        if summed is None:
            return None
        gates = without_gates(summed[0])[1]
        needed = {} if share else needed_terms(*summed, summed[0], units)
        if len(needed) < len(summed[0]):  # else all of it is one comparison
            needed = {function: c for function, c in needed.items() if function in (gates or summed[0])}
        found = self._where_all(needed, summed, units, value) if len(needed) > 1 or (needed and not gates) else None
        if found is not None and len(found.bits) <= FEW_FLAGS:
            return found
        return _least_bits(found, self._gated_steps(*summed, units, value))

    def _where_all(self, needed: Sum, summed: tuple[Sum, int], units: Units, value: Callable[[int], int]) -> BitTable | None:
        """A function that is flat unless certain bits are as they must be: one flag says whether all are."""
        upwards = units[0][1] > 0
        on = {function: int((c > 0) == upwards) for function, c in needed.items()}
        rest = {function: c for function, c in summed[0].items() if function not in needed}
        opened = summed[1] + sum(c for function, c in needed.items() if on[function])
        closed = summed[1] + sum(c for c in summed[0].values() if (c < 0) == upwards)
        inner = self._gated_steps(rest, opened, units, value) if rest else constant_table(value(opened))
        flag = self._all_of(on)
        if inner is None or flag is None:
            return None
        outside = value(closed)
        return combine(lambda x, on: x if on else outside, inner, flag)

    def _all_of(self, literals: Mapping[BitTable, int]) -> BitTable | None:
        """1 where functions of bits, each 0 or 1, are all as given, else 0."""
        masks: dict[Word, tuple[int, int]] = {}
        flags: BitTable | None = constant_table(1)
        for function, wanted in literals.items():
            bit, on = self._bit_of(function), function.values[wanted] if len(function.bits) == 1 else wanted
            mask, pattern = masks.get(bit.word, (0, 0))
            if mask >> bit.place & 1 and pattern >> bit.place & 1 != on:
                return constant_table(0)  # two functions are one bit
            masks[bit.word] = mask | 1 << bit.place, pattern | on << bit.place
        for word, (mask, pattern) in masks.items():
            if mask & (mask - 1):
                literal = bit_table(self.words.bit(self.words.matches(word, mask, pattern)), 0, 1)
            else:
                literal = bit_table(self.words.bit(word, mask.bit_length() - 1), *((0, 1) if pattern else (1, 0)))
            flags = None if flags is None else combine(int.__mul__, flags, literal)
        return flags

    def _gated_steps(self, terms: Sum, constant: int, units: Units, value: Callable[[int], int]) -> BitTable | None:
        """A function of a sum. Bits that are alone in the sum are gates: all their settings are tried.

        Many sums that differ in the bits that close them have the same function.
        """
        name = tuple(terms.items()), constant, tuple(units), value(0), value(ONE)  # which tell the rest of the function
        if name not in self._known_steps:
            self._known_steps[name] = _least_bits(
                *(self._all_settings(*split, constant, units, value) for split in carry_splits(terms)))
        return self._known_steps[name]

    def _all_settings(self, total: Sum, gates: Sum, constant: int, units: Units,
                      value: Callable[[int], int]) -> BitTable | None:
        whole = self._total(total) if len(gates) <= MOST_GATES else None
        if whole is None:
            return None
        found: BitTable | None = None
        for setting in range(1 << len(gates)):
            opened = sum(c for j, c in enumerate(gates.values()) if setting >> j & 1)
            table = self._steps(*whole, constant + opened, units, value)
            self._note_whole(total, *whole, table)
            for j, gate in enumerate(gates):
                here = gate.each(lambda bit, on=setting >> j & 1: int(bit == on))  # type: ignore[misc]
                table = None if table is None else combine(int.__mul__, table, here)
            found = table if found is None or table is None else combine(int.__add__, found, table)
            if found is None:
                return None
        return found

    def _steps(self, total: Total, unit: int, start: int, units: Units, value: Callable[[int], int]) -> BitTable | None:
        """A function of unit T + start, for an integer T."""
        kinks = [(-(scaled(factor, start) + bias), scaled(factor, unit)) for _, factor, bias in units]
        steps = steps_of(total.low, total.high, kinks, lambda at: value(unit * at + start), MOST_STEPS)
        return None if steps is None else table_of_steps(self.words, total, steps)

    def _note_whole(self, terms: Sum, total: Total, unit: int, table: BitTable | None) -> None:
        """Note what the word of a sum is the sum of, where a function of the sum is one of its bits.

        A sum T of n bits is these. With a sign, the highest is a flag: T is -2^(n - 1), and 2^(n - 1) where it is not
        negative, and the lower bits; and it is -2^(n - 1) where -T is at least 1, and these.
        """
        if table is None or len(table.bits) != 1 or total.plain is not None:
            return
        signed, own = total.low < 0, total.word(self.words)
        highest = max(total.high, -total.low - 1).bit_length() - (not signed)
        ways = [(total, unit, 0, 1, -1 << highest), (total.negative, -unit, 1, -1, 0)] if signed else [
            (total, unit, 1 << highest, 1, 0)]
        for way, its_unit, least, sign, number in ways:
            word, flag = way.word(self.words), self.words.at_least(own, least)
            if table.bits[0].word in (word, flag) and (not signed or way.high < 1 << highest):
                bits = [self.words.bit(word, place) for place in range(highest + (not signed))]
                bits += [self.words.bit(flag)] if signed else []
                counts = {bit: (sign if place == highest else 1) << place for place, bit in enumerate(bits)}
                whole = WholeSum(word, terms, its_unit, number, counts, (self.words.bit(flag), bits[-1]))
                self._wholes[word] = self._wholes[flag] = whole

    def _affine(self, node: Node) -> tuple[Sum, int] | None:
        """A node as a sum of functions that are 0 or 1 (0 where all their bits are 0), and a constant."""
        if node not in self._sums:
            self._sums[node] = self._summed(node)
        return self._sums[node]

    def _by_arguments(self, node: Node) -> tuple[Sum, int] | None:
        """The same; of a sum, what is known of its arguments comes first, as what a division has left."""
        if node not in self._sums and node.op is op.FMA:
            found = self._added(_arguments(node), 0)
            if found is not None:
                self._sums[node] = found
        return self._affine(node)

    def _summed(self, node: Node) -> tuple[Sum, int] | None:
        table = self.table(node)
        if table is not None and not table.bits:
            return {}, table.values[0]
        if table is not None and len(table.ends) == 2:
            return _two_valued(table)
        if node.op is op.RELU and node.width == 1:
            return self._gated(node) if table is None else None
        if node.op is op.MUL and node.width == 1:
            return self._product(*node.args) or self._product(*node.args[::-1])
        if node.op not in (op.FMA, op.SAME) or node.width > 1:
            return None
        terms, constant = self._flattened(node)
        if node in terms:
            return None
        return (self._added(terms.items(), constant) or self._added(_arguments(node), 0)
                or self._added_by_bases(terms, constant))

    def _gated(self, node: Node) -> tuple[Sum, int] | None:
        """A ReLU that is closed unless certain bits are as they must be, and else never: the parts of its sum, each with
        these bits.
        """
        summed = self._affine(node.args[0])
        if summed is None:
            return None
        factor, bias = exact(node.data[0]), exact(node.data[1].item())
        needed = needed_terms(*summed, summed[0], [(ONE, factor, bias)])
        flag = self._all_of({function: int((c > 0) == (factor > 0)) for function, c in needed.items()}) if needed else None
        if flag is None:
            return None
        if not flag.bits:
            return {}, 0  # no setting opens it
        rest = {function: scaled(c, factor) for function, c in summed[0].items() if function not in needed}
        opened = bias + scaled(factor, summed[1] + sum(c for c in needed.values() if (c > 0) == (factor > 0)))
        if opened + sum(c for c in rest.values() if c < 0) < 0:
            return None
        one = BitTable((self.words.bit(self.words.truth(flag.truth, flag.bits)),), (0, 1))
        parts = {one: opened} if opened else {}
        for function, c in rest.items():
            both = combine(int.__mul__, function, one)
            if both is None:
                return None
            if both.bits:  # else it never goes with these bits; and two may be the same where they do
                parts[both] = parts.get(both, 0) + c
        return {function: c for function, c in parts.items() if c}, 0

    def _product(self, one: Node, other: Node) -> tuple[Sum, int] | None:
        """A number v, or v + w where a bit of a quotient is 1, times a sum: v times it, and w times its parts with the bit.

        Only there: elsewhere products are the better code.
        """
        gate = self._affine(one)
        if gate is None or len(gate[0]) != 1 or not self._divisions.has_digit(next(iter(gate[0]))):
            return None
        summed = self._affine(other)
        if summed is None:
            return None
        ((bit, w),), v = gate[0].items(), gate[1]
        total = {function: scaled(c, v) for function, c in summed[0].items()}
        total[bit] = total.get(bit, 0) + scaled(summed[1], w)
        for function, c in summed[0].items():
            both = combine(int.__mul__, function, bit)
            if both is None:
                return None
            if both.bits:
                total[both] = total.get(both, 0) + scaled(c, w)
        return {function: c for function, c in total.items() if c}, scaled(summed[1], v)

    def _added_by_bases(self, terms: Terms, constant: int) -> tuple[Sum, int] | None:
        """A sum of ReLUs, where those of one number together have two values."""
        relus, left = self._by_base(terms)
        found: list[tuple[tuple[Sum, int] | None, int]] = []
        for base, units in relus.items():
            table = self._function(base, units, 0) if len(units) > 1 else None
            if table is not None and len(table.ends) == 2:
                found.append((_two_valued(table), ONE))
            else:
                left.update((node, terms[node]) for node in terms if node.op is op.RELU and node.args[0] is base)
        if not found:
            return None
        return self._total_of([*found, *((self._affine(node), c) for node, c in left.items())], constant)

    def _added(self, parts: Iterable[tuple[Node, int]], constant: int) -> tuple[Sum, int] | None:
        """A sum of nodes with factors; None where one of them is not a sum of functions."""
        return self._total_of(((self._affine(node), factor) for node, factor in parts), constant)

    def _total_of(self, parts: Iterable[tuple[tuple[Sum, int] | None, int]], constant: int) -> tuple[Sum, int] | None:
        """A sum of sums of functions, with factors; None where one of them is not known."""
        total: Sum = {}
        for part, factor in parts:
            if part is None:
                return None
            constant += scaled(part[1], factor)
            for function, c in part[0].items():
                total[function] = total.get(function, 0) + scaled(c, factor)
        rests = self._divisions.with_rests(Quantity({function: c for function, c in total.items() if c}, constant))
        return self._as_bits_of_wholes(*aligned(self.words, *self._divisions.with_quotients(rests)))

    def _as_bits_of_wholes(self, terms: Sum, constant: int) -> tuple[Sum, int]:
        """The same sum, with what a word is the sum of replaced by the bits of the word, where one of these is there."""
        known: dict[Word, dict[BitTable, Bit]] = {}
        for function in terms if self._wholes else ():
            origin = same_bit(function.bits[0].word, function.bits[0].place) if len(function.bits) == 1 else None
            whole = None if origin is None else self._wholes.get(origin[0])
            name = None if origin is None or whole is None else whole.name(self.words.bit(*origin))
            if whole is not None and name is not None:
                known.setdefault(whole.word, {})[function] = name
        for names in known.values():
            if len(names) > 1:
                terms = _added_up(terms.items(), names)
        for word, names in known.items():
            whole = self._wholes[word]
            times = (multiple(terms, whole.terms) or 0) * whole.unit
            if times and times.denominator == 1:
                left = [(function, c) for function, c in terms.items() if function not in whole.terms]
                bits = [(bit_table(bit, 0, 1), int(times) * counts) for bit, counts in whole.bits.items()]
                terms, constant = _added_up([*left, *bits], names), constant + int(times) * whole.number
        return terms, constant

    def _total(self, terms: Sum) -> tuple[Total, int] | None:
        """An integer T and a unit: the sum is unit T."""
        if not terms:
            return None
        unit = min(c & -c for c in terms.values() if c)
        if terms[min(terms, key=lambda function: function.bits)] < 0:  # T and -T are one integer: the first word adds
            unit = -unit
        self._settle_in(terms, unit)
        counts: dict[Bit, int] = {}
        for function, c in terms.items():
            if c:
                bit = self._bit_of(function, odd_and_power(c // unit)[1])
                counts[bit] = counts.get(bit, 0) + c // unit  # two functions may be one bit
        groups: dict[tuple[Word, int, int], int] = {}
        low = high = 0
        for bit, count in counts.items():
            if count:
                low, high = low + min(count, 0), high + max(count, 0)
                odd, at = odd_and_power(count)
                name = (bit.word, odd, bit.place - at)
                groups[name] = groups.get(name, 0) | 1 << bit.place
        if not groups or max(-low, high) >= LARGEST:
            return None
        parts = [(odd << max(-shift, 0), word, mask, max(shift, 0)) for (word, odd, shift), mask in groups.items()]
        return Total(tuple(parts), low, high), unit

    def _bit_of(self, function: BitTable, place: int = 0) -> Bit:
        """The bit that a function is: its own, where it is packed, or, if it is nowhere yet, one at this place."""
        if len(function.bits) == 1:
            return function.bits[0]
        return self.homes.get(function) or self.words.bit(family(self.words, function, place), place)

    def _settle_in(self, terms: Sum, unit: int) -> None:
        """Find a home for functions of several bits that are the same one at several places of a sum."""
        same: dict[object, dict[int, BitTable]] = {}
        for function, c in terms.items():
            if c and len(function.bits) > 1:
                name = function.values, tuple(bit.word for bit in function.bits)
                same.setdefault(name, {}).setdefault(odd_and_power(c // unit)[1], function)
        for places in same.values():
            if len(places) > 1 and any(function not in self.homes for function in places.values()):
                pack(self.words, places, self.homes)


def _arguments(node: Node) -> Iterable[tuple[Node, int]]:
    """What a sum is the sum of, with factors."""
    return zip(node.args, (exact(node.data) if node.op is op.FMA else ONE, ONE), strict=False)


def _two_valued(table: BitTable) -> tuple[Sum, int]:
    """A number with two values as a function that is 0 or 1 (0 where all bits are 0), so often, and a constant."""
    first = table.values[0]
    other = next(value for value in table.values if value != first)
    return {without_idle_bits(table.bits, [int(value != first) for value in table.values]): other - first}, first


def _added_up(terms: Iterable[tuple[BitTable, int]], names: Mapping[BitTable, Bit]) -> Sum:
    """A sum in which some functions have another bit as a name."""
    total: Sum = {}
    for function, c in terms:
        name = bit_table(names[function], 0, 1) if function in names else function
        total[name] = total.get(name, 0) + c
    return {function: c for function, c in total.items() if c}


def _least_bits(*tables: BitTable | None) -> BitTable | None:
    """The first of those that depend on the fewest bits."""
    return min((table for table in tables if table is not None), key=lambda table: len(table.bits), default=None)
