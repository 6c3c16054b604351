"""Cards on which all facts hold: made by the solver, complete, so that a model can run them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping

import numpy as np
import z3

from punchcard.card.facts import Copies, Fact, Holds
from punchcard.card.formats import AnyArray
from punchcard.card.layout import Layout
from punchcard.machines.meaning import Case
from punchcard.proof.columns import Columns
from punchcard.proof.forms import Bits, Term
from punchcard.proof.solver import Solver, Undecided

Chosen = Mapping[tuple[str, int], Mapping[str, int]]
"""Numbers that must be on a card: by region and column, for each block."""


def has_parts(layout: Layout, name: str) -> bool:
    """Whether it is a block whose parts have numbers of their own."""
    return any(block.name == name and block.parts for block in layout.blocks)


def make_card(
    layout: Layout, chosen: Chosen, case: Case | None = None, *, liked: tuple[Layout, AnyArray] | None = None,
    tries: random.Random | None = None,
) -> AnyArray:
    """A card on which all facts hold, with these numbers on it; 0 where nothing else is said.

    It is a card of the case; with `liked`, its numbers are those of another card where they can be, and with `tries` any.
    """
    card = np.zeros((layout.width, layout.columns))
    solver = Solver(seconds=60)
    columns = Columns(layout, Bits(), solver, case)
    asked = {fact.region for fact in layout.facts_of(Fact)}
    for copies in layout.facts_of(Copies):  # what is copied must be the same as what a pointer finds
        asked |= {copies.region, *layout.place(copies.of).block.holds}
    for block in layout.blocks:
        for region, content in block.holds.items():
            if content == "one":
                layout.put(card, block.name, region, 1.0)
            elif content == "bits":
                layout.put(card, block.name, region, -1.0)
    for held in layout.facts_of(Holds):
        size = 1 << layout.place(held.rows).size
        layout.put_numbers(card, held.region, {held.rows: [n % size for n in held.numbers]})
    for region in asked:
        span = layout.region(region)
        for number in range(span.start, span.stop):
            columns.at(region, columns.constant(number))
    for (region, number), words in chosen.items():
        column = columns.at(region, columns.constant(number))
        solver.suppose(*(column.words[name] == word for name, word in words.items()))
    model = solver.refutes()
    if model is None:
        raise Undecided("no card has all of these numbers")
    if tries is not None:
        model = solver.case([], list(_wishes(columns, case, liked, tries)))
    for found in columns.found.values():
        for column in found:
            if not z3.is_bv_value(column.place):
                continue  # one that a pointer names: it is among the others, too
            for name, word in column.words.items():
                if not has_parts(layout, name):
                    value = model.eval(word, model_completion=True).as_long()
                    layout.put_number_at(card, name, column.place.as_long(), value)
    return card


def _wishes(
    columns: Columns, case: Case | None, liked: tuple[Layout, AnyArray] | None, tries: random.Random,
) -> Iterator[Term]:
    """What the numbers of columns might be: those of another card, and any."""
    known = set[str]() if liked is None else {block.name for block in liked[0].blocks}
    for found in columns.found.values():
        for column in found:
            for name, word in column.words.items():
                free = case is not None and name == case.rows
                if liked is not None and name in known and not free and z3.is_bv_value(column.place):
                    other, like = liked
                    block = other.place(name).block
                    if block.holds.get(column.region) == "bits":
                        yield word == z3.BitVecVal(other.number_at(like, name, column.place.as_long()), word.size())
                yield word == z3.BitVecVal(tries.getrandbits(word.size()), word.size())
