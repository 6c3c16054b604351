"""A card on which a claim fails: made from the solver's answer, complete, and run by the model itself."""

from __future__ import annotations

import random
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import z3

from punchcard.card.formats import AnyArray
from punchcard.card.layout import Layout
from punchcard.proof.cards import Chosen, has_parts, make_card
from punchcard.proof.concrete import says_what_it_means, step
from punchcard.proof.solver import Failed
from punchcard.transformer.weights import Weights

if TYPE_CHECKING:
    from punchcard.proof.proof import Proof

TRIES = 12
"""How many cards of a failed claim are run, to find one on which it matters."""

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
class Counterexample:
    """A claim that fails, a card on which it does, and what a loop of the model makes of that card.

    card          the entries when the loop begins; the facts hold on it
    after         the entries when it has ended, by the equation
    differences   where that is not what the machine's step says; none where only a margin is missed
    layers        of a card in the middle of a loop: the layers that were run, from and to, counted from 0; else None
    """

    claim: str
    card: AnyArray
    after: AnyArray
    differences: tuple[Difference, ...]
    told: tuple[str, ...]
    compared: bool = True
    """Whether the result was compared with the step; it is not where a machine says the step in stages."""
    broken: tuple[str, ...] = ()
    """Facts that do not hold afterwards."""
    layers: tuple[int, int] | None = None

    def __str__(self) -> str:
        where, run = ("", "one loop") if self.layers is None else self._in_the_middle(*self.layers)
        lines = [f"violated: {self.claim}", f"for example, on a card{where} with",
                 *(f"  {line}" for line in self.told)]
        if self.differences:
            lines += [f"{run} gives", *(f"  {difference}" for difference in self.differences[:8])]
            if len(self.differences) > 8:
                lines.append(f"  and {len(self.differences) - 8} more")
        if self.broken:
            lines += ["and then" if self.differences else f"after {run}", *(f"  {line}" for line in self.broken[:8])]
        elif self.compared and not self.differences:
            lines.append(f"{run} of this card still gives what it should: the margin is missed, not the result")
        return "\n".join(lines)

    @staticmethod
    def _in_the_middle(first: int, stop: int) -> tuple[str, str]:
        """Where a card stands that is not the beginning of a loop, and what was run."""
        run = f"layer {stop}" if stop == first + 1 else f"the run of layers {first + 1} to {stop}"
        return f" in the middle of a loop, before layer {first + 1},", run

    def describe(self) -> dict[str, Any]:
        """As plain data; the card's rows as numbers."""
        return {"claim": self.claim, "card": self.card.tolist(), "told": list(self.told),
                "differences": [str(difference) for difference in self.differences], "broken": list(self.broken),
                "layers": None if self.layers is None else list(self.layers)}


def counterexample(proof: Proof, failed: Failed) -> Counterexample:
    """A card for a failed claim of a stage that begins with the loop."""
    model, tries = failed.model, random.Random(0)
    for _ in range(TRIES):
        chosen = chosen_numbers(proof.layout, proof, model)
        card = make_card(proof.layout, chosen)
        after = run_layers(proof.weights, card)
        differences = _differences(proof, card, after)
        broken = proof.layout.violations(after)
        if differences or broken or not failed.why or not says_what_it_means(proof.machine):
            break
        model = another(proof, failed.why, tries)
    return Counterexample(failed.claim, card, after, tuple(differences), tuple(told_numbers(proof.layout, chosen)),
                          says_what_it_means(proof.machine), tuple(broken))


def told_numbers(layout: Layout, chosen: Chosen) -> list[str]:
    """A line for each column, with its numbers."""
    return [f"{layout.column_name(number)}: " + ", ".join(f"{rows} {word}" for rows, word in words.items())
            for (_, number), words in sorted(chosen.items(), key=lambda item: item[0][1])]


def another(proof: Proof, why: tuple[Any, ...], tries: random.Random) -> z3.ModelRef:
    """Another case of the same failure, with words taken at random as far as they can be."""
    wanted = []
    for columns in proof.obligation.loop.columns.found.values():
        for column in columns:
            for word in (column.place, *column.words.values()):
                if z3.is_const(word) and not z3.is_bv_value(word):
                    wanted.append(word == z3.BitVecVal(tries.getrandbits(word.size()), word.size()))
    tries.shuffle(wanted)
    return proof.solver.case(why, wanted)


def run_layers(weights: Weights, card: AnyArray, layers: tuple[int, int] | None = None) -> AnyArray:
    """The card after a loop of the equation, or after its layers from one to another, in the model's own number format."""
    import torch

    model = Weights(weights.width, weights.dtype, weights.layers[slice(*layers or (None,))]).module
    with torch.no_grad():
        return np.asarray(model(torch.from_numpy(card).to(model.dtype)).to(torch.float64).numpy())


def chosen_numbers(layout: Layout, proof: Proof, model: z3.ModelRef) -> Chosen:
    """What the solver's answer says of the card."""
    found: dict[tuple[str, int], dict[str, int]] = {}
    for region, columns in proof.obligation.loop.columns.found.items():
        span = layout.region(region)
        for column in columns:
            number = model.eval(column.place, model_completion=True).as_long()
            if span.start <= number < span.stop:
                words = {name: model.eval(word, model_completion=True).as_long()
                         for name, word in column.words.items() if not has_parts(layout, name)}
                found.setdefault((region, number), words)
    return found


def _differences(proof: Proof, card: AnyArray, after: AnyArray) -> list[Difference]:
    """Where the model's card departs from the step's."""
    if not says_what_it_means(proof.machine):
        return []
    open_ = set(proof.obligation.meaning.where) if len(proof.stages) == 1 else set()
    return differences_of(proof.layout, after, step(proof.machine, card, after), open_)


def differences_of(
    layout: Layout, after: AnyArray, expected: AnyArray, open_: Collection[tuple[str, str]] = (),
) -> list[Difference]:
    """Where a card departs from what it should be. Blocks and regions that are open may hold any bits."""
    found = []
    for block, region in ((block, region.name) for block in layout.blocks for region in layout.regions):
        rows, span, content = layout.rows(block.name), layout.region(region), block.holds.get(region)
        wrong = np.abs(after[rows, span] - expected[rows, span]).max(axis=0) > 1e-9
        if (block.name, region) in open_:
            wrong = np.abs(np.abs(after[rows, span]) - 1).max(axis=0) > 1e-9
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
