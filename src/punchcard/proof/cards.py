"""Cards on which all facts hold: made by the solver, complete, so that a model can run them.

On a card with real numbers these are integers at random, and the bits are as the solver says.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
import z3

from punchcard.card.facts import Copies, Fact, Holds
from punchcard.card.formats import AnyArray
from punchcard.card.layout import Layout
from punchcard.machines.meaning import Case
from punchcard.proof.column import Column
from punchcard.proof.columns import Columns
from punchcard.proof.forms import Bits, Real, Term
from punchcard.proof.solver import Solver, Undecided

if TYPE_CHECKING:
    from punchcard.proof.obligation import Obligation

LARGEST = 4
"""Real numbers are integers up to this in size, so that a cell is fit for a flag."""
Chosen = Mapping[tuple[str, int], Mapping[str, int]]
"""Numbers that must be on a card: by region and column, for each block."""


def smallest_words(column: Column, model: z3.ModelRef) -> dict[str, int]:
    """The numbers of a column by the solver's answer: of parts where a block has some, else of the block."""
    return {name: model.eval(word, model_completion=True).as_long() for name, word in column.words.items()
            if not any(other.startswith(f"{name}.") for other in column.words)}


def make_card(
    layout: Layout, chosen: Chosen, case: Case | None = None, *, liked: tuple[Layout, AnyArray] | None = None,
    tries: random.Random | None = None,
) -> AnyArray:
    """A card on which all facts are true, with these numbers on it; 0 elsewhere.

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
            for name, value in smallest_words(column, model).items():
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


def make_real_card(case: Obligation, model: z3.ModelRef, tries: random.Random) -> AnyArray:
    """A card with the columns that the solver's answer names; all others are any on which the facts hold."""
    layout, loop = case.begin, case.loop
    card, done = np.zeros((layout.width, layout.columns)), set[int]()
    reals: dict[Real, float] = {}
    for region, columns in loop.columns.found.items():
        span = layout.region(region)
        for column in columns:
            number = model.eval(column.place, model_completion=True).as_long()
            if span.start <= number < span.stop and number not in done:
                done.add(number)
                card[:, number] = _entries(column, loop.bits, model, reals, tries)
    solver, bits = Solver(seconds=60), Bits()
    others = Columns(layout, bits, solver)
    for region in (each.name for each in layout.regions if not others.is_listed(each.name)):
        column, span = others.fresh(region, f"any {region}"), layout.region(region)
        for number in range(span.start, span.stop):
            if number not in done:
                answer = solver.refutes(column.place == others.constant(number))
                if answer is None:
                    raise Undecided("no card has all of these numbers")
                card[:, number] = _entries(column, bits, answer, {}, tries)
    return card


def _entries(
    column: Column, bits: Bits, model: z3.ModelRef, reals: dict[Real, float], tries: random.Random,
) -> list[float]:
    """The rows of a column when a loop begins: bits by the model, real numbers at random."""
    found = []
    for form in column.rows:
        total = float(form.constant)
        for atom, factor in form.terms.items():
            if z3.is_true(model.eval(bits.terms[atom], model_completion=True)):
                real = bits.reals.get(atom)
                if real is not None and real not in reals:
                    reals[real] = float(tries.randint(max(int(real.low), -LARGEST), min(int(real.high), LARGEST)))
                total += float(factor) * (1.0 if real is None else reals[real])
        found.append(total)
    return found
