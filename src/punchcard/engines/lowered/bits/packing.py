"""Bits of many kinds, put into the places of one word.

Bits that are the same function of words in step (the i-th of one with the i-th of another) and of flags are one bitwise
operation for all places. A function that is the lowest bits of a sum joins the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeAlias, cast

from punchcard.engines.lowered.bits.builder import FULL, Bit, WordBuilder, is_flag
from punchcard.engines.lowered.bits.table import MOST_BITS, BitTable, SplitTable, restrict
from punchcard.words.word import Word, constant

IDENTITY = (0, 1)
Place: TypeAlias = tuple[Word, int]
"""A bit: a place in a word."""


def family(words: WordBuilder, table: BitTable, place: int) -> Word:
    """A word whose bit at `place` is a two-valued function; its other bits are the same function of other places.

    A flag counts in all places; all other words go in step.
    """
    inputs = [Input(bit.word, 0, True) if is_flag(bit.word) else Input(bit.word, bit.place - place, False)
              for bit in table.bits]
    return _bitwise(words, table.truth, inputs)


class Input(NamedTuple):
    """A word that a bitwise function takes: shifted right by so many places, or one bit of it in all places."""

    word: Word
    shift: int
    everywhere: bool


def _bitwise(words: WordBuilder, table: tuple[int, ...], inputs: list[Input]) -> Word:
    placed = [words.everywhere(word, shift) if everywhere else words.shifted(word, shift)
              for word, shift, everywhere in inputs]
    return placed[0] if table == IDENTITY and not inputs[0].everywhere else words.logic(table, placed)


def pack_any(words: WordBuilder, bits: Mapping[int, BitTable | SplitTable], homes: dict[BitTable, Bit]) -> Word:
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


def pack(words: WordBuilder, bits: Mapping[int, BitTable], homes: dict[BitTable, Bit]) -> Word:
    """The word with a two-valued function in each of some places: 1 for the greater value.

    `homes` notes the bit of each function that was packed with others, so that it is not computed again.
    """
    alike: dict[tuple[tuple[int, ...], tuple[int, ...]], list[int]] = {}
    ones = 0
    for place, table in _as_sums(words, bits).items():
        if table.bits:
            alike.setdefault((table.truth, tuple(bit.number for bit in table.bits)), []).append(place)
            bits = {**bits, place: table}
        elif table.values[0] > 0:
            ones |= 1 << place
    parts = [constant(ones, FULL)] if ones else []
    for places in alike.values():
        for group, inputs in _in_step(bits, places):
            word = _bitwise(words, bits[group[0]].truth, inputs)
            parts.append(words.masked(word, sum(1 << place for place in group)))
            if len(group) > 1:
                homes.update({BitTable(bits[place].bits, bits[place].truth): words.bit(word, place) for place in group})
    return words.union(parts)


def _in_step(bits: Mapping[int, BitTable], places: list[int]) -> Iterable[tuple[list[int], list[Input]]]:
    """Groups of places in which every word goes in step, or stays."""
    left = list(places)
    while left:
        first = bits[left[0]].bits
        second = bits[left[1]].bits if len(left) > 1 else first
        inputs = []
        for j, bit in enumerate(first):
            stays = is_flag(bit.word) or (len(left) > 1 and second[j].place == bit.place)
            inputs.append(Input(bit.word, bit.place if stays else bit.place - left[0], stays))
        group = [place for place in left if all(bit.place == (i.shift if i.everywhere else i.shift + place)
                                                for bit, i in zip(bits[place].bits, inputs, strict=True))]
        yield group, inputs
        left = [place for place in left if place not in group]


def _as_sums(words: WordBuilder, bits: Mapping[int, BitTable]) -> dict[int, BitTable]:
    """Functions at low places in the form that those at higher places have, where that is the same function."""
    result = dict(bits)
    forms: dict[Form, int] = {}
    for place in sorted(bits, reverse=True):
        form = _form(bits, place)
        if form in forms:
            continue
        for values, inputs in forms:
            places = [at if stays else at + place for _, at, stays in inputs]
            other = BitTable(tuple(words.bit(word, at) for (word, _, _), at in zip(inputs, places, strict=True)), values)
            if min(places, default=0) >= 0 and alike(bits[place], other):
                result[place] = other
                break
        else:
            forms[form] = place
    return result


Form: TypeAlias = tuple[tuple[int, ...], tuple[tuple[Word, int, bool], ...]]
"""The values of a function, and its words: each with a place, or with how far it is from the function's own place."""


def _form(bits: Mapping[int, BitTable], place: int) -> Form:
    """A function without its place. A flag stays in its place, and so does a bit that a neighbour looks at too."""
    table = bits[place]
    named = [tuple(bit.word for bit in table.bits), table.values]
    others = [bits[other] for other in (place + 1, place - 1) if other in bits]
    near = next((other for other in others if [tuple(bit.word for bit in other.bits), other.values] == named), None)
    inputs = []
    for j, bit in enumerate(table.bits):
        stays = is_flag(bit.word) or (near is not None and near.bits[j].place == bit.place)
        inputs.append((bit.word, bit.place if stays else bit.place - place, stays))
    return table.values, tuple(inputs)


def alike(a: BitTable, b: BitTable) -> bool:
    """Whether two functions are the same, tried for all settings of the bits that they come from."""
    if set(a.values) != set(b.values):
        return False
    for deep in (False, True):
        sources: dict[Place, None] = {}
        if all(_sources(bit.word, bit.place, sources, deep) for bit in {*a.bits, *b.bits}) and _agree(a, b, sources, deep):
            return True
    return False


Settings = int
"""A set of settings of some bits, as the bits of a number: bit s is 1 where setting s is in it."""


def _agree(a: BitTable, b: BitTable, sources: Iterable[Place], deep: bool) -> bool:
    """All settings of the sources are tried at once."""
    places = list(sources)
    every = (1 << (1 << len(places))) - 1
    known = {place: every // ((1 << (2 << j)) - 1) * ((1 << (1 << j)) - 1 << (1 << j)) for j, place in enumerate(places)}
    one, other = ({value: sum(part for its, part in zip(table.values, parts, strict=True) if its == value)
                   for value in set(table.values)}
                  for table in (a, b)
                  for parts in [_parts(every, [_ones(bit.word, bit.place, known, every, deep) for bit in table.bits])])
    return one == other


def _parts(every: Settings, ones: Iterable[Settings]) -> list[Settings]:
    """For each setting of some bits, where they have it, by where each of them is 1."""
    parts = [every]
    for own in ones:
        parts = [part & ~own for part in parts] + [part & own for part in parts]
    return parts


def same_bit(word: Word, place: int) -> Place | None:
    """The bit of another word that a bit is, where a word only moves bits or leaves some out; None where it is 0."""
    by = word.arguments[1].value if len(word.arguments) > 1 else None
    while place >= 0 and (word.op in ("extend", "bits") or (
            word.op in ("shift_left", "shift_right", "and_") and by is not None)):
        inner = word.arguments[0]
        if word.op == "extend":
            place = min(place, inner.size - 1) if word.data else place if place < inner.size else -1
        elif word.op == "and_":
            assert by is not None
            place = place if by >> place & 1 else -1
        elif word.op == "bits":
            assert isinstance(word.data, int)
            place += word.data
        else:
            assert by is not None
            place += by if word.op == "shift_right" else -by
        word = inner
        by = word.arguments[1].value if len(word.arguments) > 1 else None
    if word.op == "or_" and place >= 0:  # mostly words without common bits
        parts = [found for part in word.arguments if (found := same_bit(part, place)) is not None]
        if len(parts) < 2:
            return parts[0] if parts else None
    return (word, place) if 0 <= place < word.width else None


def _sources(word: Word, place: int, into: dict[Place, None], deep: bool) -> bool:
    """The bits that a bit comes from; false where they are many."""
    bit = same_bit(word, place)
    if bit is not None:
        word, place = bit
        if word.op == "sum":
            if place * len(word.arguments) > MOST_BITS:
                return False
            return all(_sources(arg, i, into, deep) for arg in word.arguments for i in range(place + 1))
        if word.op == "logic" and deep:
            return all(_sources(arg, place, into, deep) for arg in word.arguments)
        into[bit] = None
    return len(into) <= MOST_BITS


def _ones(word: Word, place: int, known: Mapping[Place, Settings], every: Settings, deep: bool) -> Settings:
    """Where a bit is 1."""
    bit = same_bit(word, place)
    if bit is None:
        return 0
    word, place = bit
    if word.op == "sum":
        coefficients, constant = cast(tuple[tuple[int, ...], int], word.data)
        total = [every if constant >> i & 1 else 0 for i in range(place + 1)]
        for c, arg in zip(coefficients, word.arguments, strict=True):
            for i in range(place + 1):
                own = _ones(arg, i, known, every, deep)
                for j in (j for j in range(i, place + 1) if own and c >> j - i & 1):
                    _add(total, own, j)
        return total[place]
    if word.op == "logic" and deep:
        parts = _parts(every, [_ones(arg, place, known, every, deep) for arg in word.arguments])
        return sum(part for part, value in zip(parts, cast(tuple[int, ...], word.data), strict=True) if value)
    return known[bit]


def _add(total: list[Settings], own: Settings, place: int) -> None:
    """Add 2^place to sums, bit by bit, in some settings."""
    while own and place < len(total):
        total[place], own = total[place] ^ own, total[place] & own
        place += 1
