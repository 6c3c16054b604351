"""Bits of many kinds, put into the places of one word.

Bits that are the same function of words in step (the i-th of one with the i-th of another) and of flags are one bitwise
operation for all places. A function that is the lowest bits of a sum joins the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product

from punchcard.engines.lowered.bits.table import MOST_BITS, BitTable, SplitTable, restrict
from punchcard.engines.lowered.bits.word import Bit, Input, Word, Words

IDENTITY, NEGATION = (0, 1), (1, 0)


def family(words: Words, table: BitTable, place: int) -> Word:
    """A word whose bit at `place` is a two-valued function; its other bits are the same function of other places.

    A flag counts in all places; all other words go in step.
    """
    inputs = [Input(bit.word, 0 if bit.word.is_flag else bit.place - place, bit.word.is_flag) for bit in table.bits]
    return _bitwise(words, table.truth, inputs)


def _bitwise(words: Words, table: tuple[int, ...], inputs: list[Input]) -> Word:
    if table == IDENTITY and not inputs[0].everywhere:
        return words.shifted(inputs[0].word, inputs[0].shift)
    return words.logic(table, inputs)


def pack_any(words: Words, bits: Mapping[int, BitTable | SplitTable], homes: dict[BitTable, Bit]) -> Word:
    """The same where some of the functions are split by a few bits: a word for each setting, and one of them is chosen."""
    splits = {place: table for place, table in bits.items() if isinstance(table, SplitTable)}
    plain = {place: table for place, table in bits.items() if isinstance(table, BitTable)}
    if not splits:
        return pack(words, plain, homes)
    parts = []
    for chosen in dict.fromkeys(split.bits for split in splits.values()):
        places = [place for place, split in splits.items() if split.bits == chosen]
        joined = [place for place, table in plain.items() if set(chosen) <= set(table.bits)]
        index = pack(words, {j: BitTable((bit,), IDENTITY) for j, bit in enumerate(chosen)}, {})
        settings = []
        for setting in range(1 << len(chosen)):
            here = {place: splits[place].parts[setting] for place in places}
            here |= {place: restrict(plain[place], chosen, setting) for place in joined}
            settings.append(pack(words, _signed(here), {}))
        parts.append(words.chosen(index, settings))
        for place in joined:
            del plain[place]
    if plain:
        parts.append(pack(words, plain, homes))
    return words.union(parts)


def _signed(bits: Mapping[int, BitTable]) -> dict[int, BitTable]:
    """Functions with values above 0 for 1, and others for 0: a constant alone does not show which of two it is."""
    return {place: table.each(lambda value: int(value > 0)) for place, table in bits.items()}


def pack(words: Words, bits: Mapping[int, BitTable], homes: dict[BitTable, Bit]) -> Word:
    """The word with a two-valued function in each of some places: 1 for the greater value.

    Functions that are put into one word together have their home there, for whoever wants them again.
    """
    alike: dict[tuple[tuple[int, ...], tuple[int, ...]], list[int]] = {}
    ones = 0
    for place, table in _as_sums(bits).items():
        if table.bits:
            alike.setdefault((table.truth, tuple(bit.word.number for bit in table.bits)), []).append(place)
            bits = {**bits, place: table}
        elif table.values[0] > 0:
            ones |= 1 << place
    parts = [words.constant(ones)] if ones else []
    for places in alike.values():
        for group, inputs in _in_step(bits, places):
            word = _bitwise(words, bits[group[0]].truth, inputs)
            parts.append(words.masked(word, sum(1 << place for place in group)))
            if len(group) > 1:
                homes.update({BitTable(bits[place].bits, bits[place].truth): Bit(word, place) for place in group})
    return words.union(parts)


def _in_step(bits: Mapping[int, BitTable], places: list[int]) -> Iterable[tuple[list[int], list[Input]]]:
    """Groups of places in which every word goes in step, or stays."""
    left = list(places)
    while left:
        first = bits[left[0]].bits
        second = bits[left[1]].bits if len(left) > 1 else first
        inputs = []
        for j, bit in enumerate(first):
            stays = bit.word.is_flag or (len(left) > 1 and second[j].place == bit.place)
            inputs.append(Input(bit.word, bit.place if stays else bit.place - left[0], stays))
        group = [place for place in left if all(bit.place == (i.shift if i.everywhere else i.shift + place)
                                                for bit, i in zip(bits[place].bits, inputs, strict=True))]
        yield group, inputs
        left = [place for place in left if place not in group]


def _as_sums(bits: Mapping[int, BitTable]) -> dict[int, BitTable]:
    """Functions at low places in the form that those at higher places have, where that is the same function."""
    result = dict(bits)
    forms: dict[tuple[tuple[int, ...], tuple[tuple[Word, int], ...]], int] = {}
    for place in sorted(bits, reverse=True):
        table = bits[place]
        form = table.values, tuple((bit.word, 0 if bit.word.is_flag else bit.place - place) for bit in table.bits)
        if form in forms:
            continue
        for values, inputs in forms:
            other = BitTable(tuple(Bit(word, shift if word.is_flag else shift + place) for word, shift in inputs), values)
            if all(bit.place >= 0 for bit in other.bits) and alike(table, other):
                result[place] = other
                break
        else:
            forms[form] = place
    return result


def alike(a: BitTable, b: BitTable) -> bool:
    """Whether two functions are the same, tried for all settings of the bits that they come from."""
    if set(a.values) != set(b.values):
        return False
    for deep in (False, True):
        sources: set[Bit] = set()
        if all(_sources(bit, sources, deep) for bit in {*a.bits, *b.bits}) and _agree(a, b, sorted(sources), deep):
            return True
    return False


def _agree(a: BitTable, b: BitTable, sources: list[Bit], deep: bool) -> bool:
    for setting in product((0, 1), repeat=len(sources)):
        known = dict(zip(sources, setting, strict=True))
        found = (table.values[sum(_value(bit, known, deep) << j for j, bit in enumerate(table.bits))] for table in (a, b))
        if next(found) != next(found):
            return False
    return True


def _sources(bit: Bit, into: set[Bit], deep: bool) -> bool:
    """The bits that a bit comes from; false where they are many."""
    word, place = bit
    if place >= 0:
        if word.op == "sum":
            if place * len(word.args) > MOST_BITS:
                return False
            return all(_sources(Bit(arg, i), into, deep) for arg in word.args for i in range(place + 1))
        if word.op == "shift":
            return _sources(Bit(word.args[0], place + word.data), into, deep)
        if word.op == "logic" and deep:
            return all(_sources(Bit(arg, shift if everywhere else place + shift), into, deep)
                       for arg, (shift, everywhere) in zip(word.args, word.data[1], strict=True))
        if place < word.width:
            into.add(bit)
    return len(into) <= MOST_BITS


def _value(bit: Bit, known: Mapping[Bit, int], deep: bool) -> int:
    word, place = bit
    if place < 0:
        return 0
    if word.op == "sum":
        coefficients, constant = word.data
        total = constant + sum(c * sum(_value(Bit(arg, i), known, deep) << i for i in range(place + 1))
                               for c, arg in zip(coefficients, word.args, strict=True))
        return int(total >> place & 1)
    if word.op == "shift":
        return _value(Bit(word.args[0], place + word.data), known, deep)
    if word.op == "logic" and deep:
        at = sum(_value(Bit(arg, shift if everywhere else place + shift), known, deep) << j
                 for j, (arg, (shift, everywhere)) in enumerate(zip(word.args, word.data[1], strict=True)))
        return int(word.data[0][at])
    return known.get(bit, 0)
