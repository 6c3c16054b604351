"""A machine's meaning on a card that one can see: the card after a loop, by words alone and without the model."""

from __future__ import annotations

from typing import Any

import numpy as np
import z3

from punchcard.card.formats import AnyArray, as_array
from punchcard.card.layout import Card, Layout
from punchcard.errors import ProofError
from punchcard.machines.base import Machine
from punchcard.machines.meaning import Stage
from punchcard.proof.column import Column
from punchcard.proof.columns import Columns
from punchcard.proof.forms import Bits, Term
from punchcard.proof.meaning import ProofMeaning, expected_words, open_declarations
from punchcard.proof.solver import Solver
from punchcard.transformer.weights import Weights


class SeenColumns(Columns):
    """Columns whose words are on a card."""

    def __init__(self, layout: Layout, card: AnyArray) -> None:
        super().__init__(layout, Bits(), Solver())
        self._card = card

    def at(self, region: str, place: Term, name: str | None = None) -> Column:
        place = z3.simplify(place)
        span, number = self.layout.region(region), place.as_long()
        is_there = span.start <= number < span.stop  # else somebody asks for a column, and takes nothing from it
        words: dict[str, Term] = {}
        for block in self.layout.blocks:
            if not is_there or block.holds.get(region) == "bits":
                for rows in block.names:
                    value = self.layout.number_at(self._card, rows, number) if is_there else 0
                    words[rows] = z3.BitVecVal(value, self.layout.place(rows).size)
        return Column(region, place, words, [], f"{region}[{number - span.start}]")


def step(machine: Machine[Any, Any], card: Card, found: Card | None = None) -> AnyArray:
    """The card after a loop, by the machine's meaning: blocks of bits as it says, all others as the layout does.

    Rows that the meaning leaves open are taken from the card that was found.
    """
    if not says_what_it_means(machine):
        raise ProofError(f"{machine.title()} declares the meaning of its stages only, which cannot be run on a card")
    before = np.array(as_array(card), dtype=np.float64)
    whole = whole_loop(machine, machine.weights)
    return stage_step(whole, before, before if found is None else np.array(as_array(found), dtype=np.float64))


def whole_loop(machine: Machine[Any, Any], weights: Weights) -> Stage:
    """All layers as one stage, without cases."""
    return Stage("", (0, len(weights.layers)), machine.layout, machine.layout, machine.meaning)


def stage_step(stage: Stage, card: AnyArray, found: AnyArray) -> AnyArray:
    """The card after a stage, by its meaning, from the card on which it begins. What is left open is as it was found."""
    columns = SeenColumns(stage.begin, card)
    meaning = ProofMeaning(columns, case=case_of(stage, card))
    stage.meaning(meaning)
    layout, after = stage.end, np.zeros_like(card)
    for block in layout.blocks:
        for region, content in block.holds.items():
            place = layout.rows(block.name), layout.region(region)
            if content != "bits":
                after[place] = 1.0
                continue
            is_open = meaning.leaves_open(block, region)
            after[place] = found[place] if is_open else card[place]
            if is_open or meaning.says(block, region):
                for number in range(*place[1].indices(layout.columns)):
                    column = columns.at(region, columns.constant(number))
                    said = (open_declarations(meaning, block, column) if is_open
                            else [(block.name, expected_words(meaning, block, column)[block.name], z3.BoolVal(True))])
                    for name, word, where in said:
                        if z3.is_true(z3.simplify(where)):
                            layout.put_number_at(after, name, number, z3.simplify(word).as_long())
    return after


def case_of(stage: Stage, card: AnyArray) -> str | None:
    """The case of a stage that a card is of."""
    for case in stage.cases:
        number = stage.begin.number_at(card, case.rows, stage.begin.region(case.region).start)
        if number & case.mask == case.match and all(number & mask != match for mask, match in case.but):
            return case.name
    return None


def says_what_it_means(machine: Machine[Any, Any]) -> bool:
    """Whether a machine says it of the whole loop, and not of stages alone."""
    return not machine.stages() or type(machine).meaning is not Machine.meaning
