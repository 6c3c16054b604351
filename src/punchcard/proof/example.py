"""A card on which a claim fails: made from the solver's answer, complete, and run by the model itself."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import z3

from punchcard.card.facts import Copies, Holds
from punchcard.card.formats import AnyArray
from punchcard.card.layout import Layout
from punchcard.proof.columns import Columns
from punchcard.proof.forms import Bits
from punchcard.proof.solver import Failed, Solver, Undecided
from punchcard.proof.stepping import says_what_it_means, step
from punchcard.transformer.weights import Weights

if TYPE_CHECKING:
    from punchcard.proof.proving import Proof

TRIES = 12
"""How many cards of a failed claim are run, to find one on which it matters."""

Chosen = Mapping[tuple[str, int], Mapping[str, int]]
"""Numbers that must stand on a card: by region and column, for each block."""


@dataclass(frozen=True)
class Difference:
    """Rows of a column that hold another number after the loop than they should."""

    rows: str
    column: str
    expected: str
    found: str

    def __str__(self) -> str:
        return f"{self.rows} in {self.column} should be {self.expected}, and is {self.found}"


@dataclass(frozen=True)
class CounterExample:
    """A claim that fails, a card on which it does, and what a loop of the model makes of that card.

    card          the entries when the loop begins; the facts hold on it
    after         the entries when it has ended, by the equation
    differences   where that is not what the machine's step says; none where only a margin is missed
    """

    claim: str
    card: AnyArray
    after: AnyArray
    differences: tuple[Difference, ...]
    told: tuple[str, ...]
    compared: bool = True
    """Whether the result was compared with the step; it is not where a machine says the step in stages."""

    def __str__(self) -> str:
        lines = [f"it is not so that {self.claim}", "for example, on a card with", *(f"  {line}" for line in self.told)]
        if self.differences:
            lines += ["one loop gives", *(f"  {difference}" for difference in self.differences[:8])]
            if len(self.differences) > 8:
                lines.append(f"  and {len(self.differences) - 8} more")
        elif self.compared:
            lines.append("one loop of this card still gives what it should: the margin is missed, not the result")
        return "\n".join(lines)

    def describe(self) -> dict[str, Any]:
        """As plain data; the card's rows as numbers."""
        return {"claim": self.claim, "card": self.card.tolist(), "told": list(self.told),
                "differences": [str(difference) for difference in self.differences]}


def counter_example(proof: Proof, failed: Failed) -> CounterExample | None:
    """A card for a failed claim; None where there is none to show, as for numbers of bits, or in the middle of a loop."""
    if failed.model is None or proof.part.begin is not proof.layout:
        return None
    model, tries = failed.model, random.Random(0)
    for _ in range(TRIES):
        chosen = _chosen(proof, model)
        card = make_card(proof.layout, chosen)
        after = looped(proof.weights, card)
        differences = _differences(proof, card, after)
        if differences or not failed.why or not says_what_it_means(proof.machine):
            break
        model = _another(proof, failed.why, tries)
    told = [f"{proof.layout.column_name(number)}: " + ", ".join(f"{rows} {word}" for rows, word in words.items())
            for (_, number), words in sorted(chosen.items(), key=lambda item: item[0][1])]
    return CounterExample(failed.claim, card, after, tuple(differences), tuple(told),
                          says_what_it_means(proof.machine))


def _another(proof: Proof, why: tuple[Any, ...], tries: random.Random) -> z3.ModelRef:
    """Another case of the same failure, with words taken at random as far as they can be."""
    wanted = []
    for columns in proof.part.loop.columns.found.values():
        for column in columns:
            for word in (column.place, *column.words.values()):
                if z3.is_const(word) and not z3.is_bv_value(word):
                    wanted.append(word == z3.BitVecVal(tries.getrandbits(word.size()), word.size()))
    tries.shuffle(wanted)
    return proof.solver.case(why, wanted)


def looped(weights: Weights, card: AnyArray) -> AnyArray:
    """The card after a loop of the equation, in the model's own number format."""
    import torch

    model = Weights(weights.width, weights.dtype, weights.layers).module
    with torch.no_grad():
        return np.asarray(model(torch.from_numpy(card).to(model.dtype)).to(torch.float64).numpy())


def _chosen(proof: Proof, model: z3.ModelRef) -> Chosen:
    """What the solver's answer says of the card."""
    found: dict[tuple[str, int], dict[str, int]] = {}
    for region, columns in proof.part.loop.columns.found.items():
        span = proof.layout.region(region)
        for column in columns:
            number = model.eval(column.place, model_completion=True).as_long()
            if span.start <= number < span.stop:
                words = {name: model.eval(word, model_completion=True).as_long()
                         for name, word in column.words.items() if not _has_parts(proof.layout, name)}
                found.setdefault((region, number), words)
    return found


def _has_parts(layout: Layout, name: str) -> bool:
    return any(block.name == name and block.parts for block in layout.blocks)


def make_card(layout: Layout, chosen: Chosen) -> AnyArray:
    """A card on which all facts hold, with these numbers on it; 0 where nothing else is said."""
    card = np.zeros((layout.width, layout.columns))
    solver = Solver(seconds=60)
    columns = Columns(layout, Bits(), solver)
    asked = {fact.region for fact in layout.facts if not isinstance(fact, Holds)}
    for fact in layout.facts:
        if isinstance(fact, Copies):  # what is copied must be the same as what a pointer finds
            asked |= set(layout.place(fact.of).block.holds)
    for block in layout.blocks:
        for region, content in block.holds.items():
            if content == "one":
                layout.put(card, block.name, region, 1.0)
            elif content == "bits":
                layout.put(card, block.name, region, -1.0)
    for fact in layout.facts:
        if isinstance(fact, Holds):
            size = 1 << layout.place(fact.rows).size
            layout.put_numbers(card, fact.region, {fact.rows: [n % size for n in fact.numbers]})
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
    for found in columns.found.values():
        for column in found:
            if not z3.is_bv_value(column.place):
                continue  # one that a pointer names: it is among the others, too
            for name, word in column.words.items():
                if not _has_parts(layout, name):
                    value = model.eval(word, model_completion=True).as_long()
                    layout.put_number_at(card, name, column.place.as_long(), value)
    return card


def _differences(proof: Proof, card: AnyArray, after: AnyArray) -> list[Difference]:
    """Where the model's card departs from the step's."""
    if not says_what_it_means(proof.machine):
        return []
    layout, expected = proof.layout, step(proof.machine, card, after)
    found = []
    for block, region in ((block, region.name) for block in layout.blocks for region in layout.regions):
        rows, span, content = layout.rows(block.name), layout.region(region), block.holds.get(region)
        wrong = np.abs(after[rows, span] - expected[rows, span]).max(axis=0) > 1e-9
        if len(proof.stages) == 1 and (block.name, region) in proof.part.meaning.where:
            wrong = np.abs(np.abs(after[rows, span]) - 1).max(axis=0) > 1e-9  # any bits will do
        for number in np.flatnonzero(wrong) + span.start:
            wanted = (str(layout.number_at(expected, block.name, int(number))) if content == "bits"
                      else "1" if content == "one" else "0")
            found.append(Difference(block.name, layout.column_name(int(number)), wanted, _number(after[rows, number])))
    return found


def _number(entries: AnyArray) -> str:
    """Entries as a number where they are bits, else as they are."""
    if np.abs(np.abs(entries) - 1).max() < 1e-9:
        return str(sum(1 << place for place, entry in enumerate(entries) if entry > 0))
    return f"[{', '.join(f'{entry:.6g}' for entry in entries)}]"
