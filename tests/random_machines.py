"""Machines of a few bits with weights at random: small enough that all cards on which their facts hold can be tried.

A machine of this kind means what its model does, as a table of all cards. So a proof of it must end well where every card
is one of bits after the loop; and with one entry of the table changed it must not.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import unwrap
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from punchcard.card.facts import AnyFact, ColumnWords, Copies, Fact, Holds, Predicate
from punchcard.card.formats import AnyArray
from punchcard.card.layout import Layout, Region, RowBlock, holding
from punchcard.machines.meaning import ColumnBefore, Meaning
from punchcard.transformer.precision import Precision
from punchcard.transformer.weights import LayerArrays, Weights
from punchcard.words.word import Word, all_of, constant

if TYPE_CHECKING:
    from punchcard.proof.certificate import Certificate

MOST_FREE, MOST_CARDS = 9, 96
Sum = Mapping[int, float]
"""A linear form: rows, with their weights."""
Unit = tuple[Sum, float, Sum]
"""A hidden unit: the rows that it takes, its bias, and the rows that it is added to."""


@dataclass
class TinyMachine:
    """What a proof needs of a machine."""

    layout: Layout
    weights: Weights
    meaning: Callable[[Meaning], None] = lambda card: None

    precision = Precision("float64")

    def stages(self) -> Sequence[Any]:
        return ()

    def title(self) -> str:
        return "a random machine"

    def describe(self) -> dict[str, Any]:
        return {"machine": "random"}

    def looped(self, cards: AnyArray) -> AnyArray:
        """The cards after a loop of the equation."""
        found = self.weights.module(torch.from_numpy(cards)).numpy()
        return np.asarray(found)


def random_layout(rng: random.Random) -> Layout:
    """One or two regions, each column with its number; a pointer, a word or two, and facts about them."""
    regions = [Region("cells", rng.choice([2, 2, 3]))]
    if rng.random() < 0.7:
        regions.insert(rng.randrange(2), Region("head", 1))
    names = [region.name for region in regions]
    length = max(1, (sum(region.size for region in regions) - 1).bit_length())

    def some() -> list[str]:
        return [name for name in names if rng.random() < 0.6] or [rng.choice(names)]

    pointing = rng.choice(names)
    blocks = [
        RowBlock("number", length, holds=holding("bits", *names)),
        RowBlock("pointer", length, holds=holding("bits", pointing)),
        RowBlock("word", rng.choice([1, 1, 2]), holds=holding("bits", *some())),
        RowBlock("one", 1, holds=holding("one", *some())),
        RowBlock("work", 2),
    ]
    if rng.random() < 0.4:
        blocks.insert(2, RowBlock("other", 1, holds=holding("bits", *some())))
    plain, offset = Layout(blocks, regions), rng.choice([0, 0, 1])
    facts: list[AnyFact] = []
    for name in names:
        numbers = range(plain.region(name).start + offset, plain.region(name).stop + offset)
        facts.append(Holds("number", name, numbers if rng.random() < 0.8 else list(numbers)))
    if rng.random() < 0.2:
        facts.pop(rng.randrange(len(facts)))
    if rng.random() < 0.8:
        some_names = tuple(rng.sample(names, rng.randint(1, len(names))))
        facts.append(Fact(pointing, lambda column: column.names(column["pointer"], *some_names),
                          "the pointer names a column"))
    for block in blocks[1:]:
        for region, content in block.holds.items():
            if content == "bits" and rng.random() < 0.35:
                facts.append(Fact(region, random_condition(rng, block, length), f"fact {len(facts)}",
                                  last=rng.random() < 0.2))
    named = {block.name: block for block in blocks}
    if "other" in named and pointing in named["other"].holds and named["word"].size == 1:
        facts.append(Copies("other", pointing, "word", "pointer"))
    return Layout(blocks, regions, facts)


def random_condition(rng: random.Random, block: RowBlock, length: int) -> Predicate:
    """A condition on a block of a column."""
    size, name = 1 << block.size, block.name
    some, most, number = rng.randrange(size), rng.randint(1, size), rng.randrange(1 << length)
    offset = rng.randrange(3) if name == "pointer" else 0

    def is_some(column: ColumnWords) -> Word:
        return column[name].equals(some)

    found: list[Predicate] = [
        is_some, lambda column: ~is_some(column), lambda column: column[name].less(most),
        lambda column: is_some(column) | column["number"].equals(number)]
    if name == "pointer":
        found += [lambda column: column[name].equals(column.own_number(block.size)),
                  lambda column: column[name].equals(column["number"] + offset)]
    return rng.choice(found)


def random_layer(rng: random.Random, layout: Layout) -> LayerArrays:
    """Heads that look up a pointer or anything, and units that flip, set or change bits."""
    rows = {block.name: list(range(layout.rows(block.name).start, layout.rows(block.name).stop)) for block in layout.blocks}
    work, one = rows["work"], rows["one"][0]
    sources = [row for name, own in rows.items() if name != "work" for row in own]
    heads = [_random_head(rng, rows, sources) for _ in range(rng.choice([0, 1, 1, 1, 2]))]
    units: list[Unit] = []
    for row in work:
        units += [({row: 1.0}, 0.0, {row: -1.0}), ({row: -1.0}, 0.0, {row: 1.0})]
    bits = [row for name in ("word", "other", "pointer") for row in rows.get(name, [])]
    for row in rng.sample(bits, min(len(bits), rng.choice([1, 1, 2]))):
        scale, style = rng.choice([1.0, 1.0, 2.0, 0.5]), rng.random()
        if style < 0.5:  # flip the bit where some others are as they should be
            chosen = rng.sample([each for each in sources + work if each != row], rng.randint(1, 3))
            gate = {each: 2 * scale * rng.choice([-1, 1]) for each in chosen}
            units += [({**gate, row: sign * scale}, -2 * scale * len(gate), {row: -sign * 2 / scale}) for sign in (1, -1)]
        elif style < 0.8:  # set it by a step
            form = {each: scale * rng.choice([-2, -1, 1, 2]) for each in rng.sample(sources + work, rng.randint(1, 4))}
            start = rng.choice([-2, -1, 0, 1, 2])
            units += [({row: 1.0}, 0.0, {row: -1.0}), ({row: -1.0}, 0.0, {row: 1.0}),
                      (form, (start + 1) * scale, {row: 2 / scale}), (form, start * scale, {row: -2 / scale})]
            units += [({one: 1.0}, 0.0, {row: -1.0})] * (rng.random() < 0.5)
        else:  # anything
            for _ in range(rng.choice([1, 2, 3, 8])):
                form = {each: float(rng.choice([-2, -1, 1, 2])) for each in rng.sample(sources + work, rng.randint(1, 4))}
                units.append((form, rng.choice([-2, -1, 0, 1]), {row: rng.choice([-2, -1, 1, 2])}))
    bias = {rng.choice(bits): float(rng.choice([-1, 1]))} if rng.random() < 0.35 else {}
    return layer_arrays(layout.width, heads, units, bias)


def _random_head(
    rng: random.Random, rows: dict[str, list[int]], sources: list[int],
) -> tuple[Sequence[Sum], Sequence[Sum], dict[tuple[int, int], float], float]:
    if rng.random() < 0.6:
        scale = rng.choice([1.0, 1.0, 2.0, 0.5])
        keys = [{row: scale} for row in rows["number"]]
        queries = [{row: 1.0} for row in rows[rng.choice(["pointer", "number"])]]
    else:
        keys, queries = ([{row: float(rng.choice([-2, -1, 1, 2])) for row in rng.sample(sources, rng.randint(1, 2))}
                          for _ in range(2)] for _ in range(2))
    if rng.random() < 0.6:
        keys.append({rows["one"][0]: float(rng.choice([-3, -1, 1, 2, 4]))})
        queries.append({rng.choice(sources): float(rng.choice([-1, 1, 2]))})
    value = {(rng.choice(rows["work"]), rng.choice(sources)): float(rng.choice([1, 1, -1]))
             for _ in range(rng.choice([1, 2]))}
    return keys, queries, value, rng.choice([1024.0, 1024.0, 512.0, 400.0, 380.0])


def layer_arrays(width: int, heads: list[Any], units: Sequence[Unit], bias: Sum) -> LayerArrays:
    depth = max((len(keys) for keys, *_ in heads), default=1) or 1
    key, query = np.zeros((len(heads), depth, width)), np.zeros((len(heads), depth, width))
    value = np.zeros((len(heads), width, width))
    for number, (keys, queries, taken, _) in enumerate(heads):
        for array, forms in ((key, keys), (query, queries)):
            for place, form in enumerate(forms):
                array[number, place, list(form)] = list(form.values())
        for (into, source), weight in taken.items():
            value[number, into, source] = weight
    w1, w2 = np.zeros((len(units), width)), np.zeros((width, len(units)))
    for number, (form, _, given) in enumerate(units):
        w1[number, list(form)] = list(form.values())
        w2[list(given), number] = list(given.values())
    b1, b2 = np.array([start for _, start, _ in units], dtype=np.float64).reshape(-1, 1), np.zeros((width, 1))
    b2[list(bias), 0] = list(bias.values())
    return LayerArrays(key, query, value, np.array([head[3] for head in heads], dtype=np.float64), w1, b1, w2, b2)


def all_cards(layout: Layout) -> list[AnyArray]:
    """Every card on which the facts hold; none where they would be too many to try."""
    held = {(fact.rows, fact.region) for fact in layout.facts_of(Holds)}
    card, free = np.zeros((layout.width, layout.columns)), list[tuple[int, int]]()
    for block, region, content in ((b, region, content) for b in layout.blocks for region, content in b.holds.items()):
        rows, span = layout.rows(block.name), layout.region(region)
        card[rows, span] = 1.0
        if content == "bits" and (block.name, region) not in held:
            free += itertools.product(range(rows.start, rows.stop), range(span.start, span.stop))
    for fact in layout.facts_of(Holds):
        size = 1 << layout.place(fact.rows).size
        layout.put_numbers(card, fact.region, {fact.rows: [number % size for number in fact.numbers]})
    found = []
    for entries in itertools.product((-1.0, 1.0), repeat=len(free)) if len(free) <= MOST_FREE else ():
        other = card.copy()
        for place, entry in zip(free, entries, strict=True):
            other[place] = entry
        if not layout.violations(other):
            found.append(other)
    return found


def places(layout: Layout) -> list[tuple[str, str, int]]:
    """Every block that holds bits, in every column."""
    return [(block.name, region, column) for block in layout.blocks for region, content in block.holds.items()
            if content == "bits" for column in range(layout.region(region).start, layout.region(region).stop)]


def told(layout: Layout, pairs: Sequence[tuple[AnyArray, AnyArray]]) -> Callable[[Meaning], None]:
    """A meaning that is a table: each card, and what it becomes."""
    where = places(layout)
    table = [tuple({place: layout.number_at(card, place[0], place[2]) for place in where} for card in pair)
             for pair in pairs]

    def meaning(card: Meaning) -> None:
        now = {place: card.at(place[1], constant(place[2], card.place_bits))[place[0]] for place in where}
        for block, region in dict.fromkeys((block, region) for block, region, _ in where):
            mine = [place for place in where if place[:2] == (block, region)]
            if all(before[place] == after[place] for before, after in table for place in mine):
                continue

            def becomes(column: ColumnBefore, block: str = block, mine: list[tuple[str, str, int]] = mine) -> Word:
                found = column[block]
                for before, after in table:
                    for place in (each for each in mine if before[each] != after[each]):
                        here = all_of(column.number.equals(place[2]), *(now[each].equals(before[each]) for each in where))
                        found = here.choose(constant(after[place], found.size), found)
                return found

            card.expect(block, region, becomes)

    return meaning


def prove_tiny(machine: Any, seconds: float | None = None) -> Certificate:
    """`prove`, which takes machines alone, for one that has no more than a proof needs."""
    from punchcard.proof.prover import prove

    found: Certificate = unwrap(prove)(machine, seconds=seconds)
    return found


def random_machine(rng: random.Random) -> tuple[TinyMachine, AnyArray, AnyArray] | None:
    """A machine that changes something, all its cards, and what they become; None where none was found soon."""
    layout = random_layout(rng)
    cards = all_cards(layout)
    if not 0 < len(cards) <= MOST_CARDS:
        return None
    before = np.stack(cards)
    for _ in range(60):
        layers = [random_layer(rng, layout) for _ in range(rng.choice([1, 1, 2]))]
        machine = TinyMachine(layout, Weights(layout.width, "float64", layers))
        after = machine.looped(before)
        good = sum(not layout.violations(card) for card in after)
        if np.abs(after - before).max() > 1e-9 and good > 0.6 * len(cards):
            return machine, before, after
    return None
