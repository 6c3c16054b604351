"""A card on which a claim fails, made from the solver's answer, complete, and run by the model itself.

Of a few such cards, one is chosen on which the claim matters. For a stage that begins in the middle of a loop, a card on
which a loop begins is looked for as well: it has the numbers of the solver's answer, as far as they can be there, and is
compared where the loop departs from the machine's step. Where none is found, it is a card of the stage's own layout.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import z3

from punchcard.card.formats import AnyArray
from punchcard.card.layout import Layout
from punchcard.machines.meaning import Stage
from punchcard.proof.cards import Chosen, make_card, make_real_card, smallest_words
from punchcard.proof.concrete import says_what_it_means, stage_step, whole_loop
from punchcard.proof.solver import Failed, Undecided
from punchcard.transformer.weights import Weights

if TYPE_CHECKING:
    from punchcard.proof.proof import Proof

TRIES = 12
"""How many cards of a failed claim are run, to find one on which it matters; with real numbers, twice as many."""
FROM_THE_START = 4
"""How many cards on which a loop begins are run."""
MOST_WISHES = 12
"""So many long words of a card with real numbers are chosen at random."""


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

    @property
    def matters(self) -> bool:
        """Whether the card after the loop is not what it should be."""
        return bool(self.differences or self.broken)

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
        """The place of a card that is not the beginning of a loop, and what was run."""
        run = f"layer {stop}" if stop == first + 1 else f"the run of layers {first + 1} to {stop}"
        return f" in the middle of a loop, before layer {first + 1},", run

    def describe(self) -> dict[str, Any]:
        """As plain data; the card's rows as numbers."""
        return {"claim": self.claim, "card": self.card.tolist(), "told": list(self.told),
                "differences": [str(difference) for difference in self.differences], "broken": list(self.broken),
                "layers": None if self.layers is None else list(self.layers)}


def counterexample(proof: Proof, failed: Failed) -> Counterexample | None:
    """A card for a failed claim; None where there is none to show, as for numbers of bits."""
    if failed.model is None or (proof.has_reals and proof.obligation.name is None):
        return None
    in_middle = proof.obligation.begin is not proof.layout
    stage = proof.obligation.stage if in_middle else whole_loop(proof.machine, proof.weights)
    found, tries = None, random.Random(0)
    for card, told in (_real_cards if proof.has_reals else _bit_cards)(proof, failed, tries):
        example = _run(proof, failed, stage, card, told)
        found = example if found is None or example.matters else found
        if example.matters or not example.compared:
            break
    if found is not None and in_middle and found.matters and says_what_it_means(proof.machine):
        return _from_the_start(proof, failed, found.card, tries) or found
    return found


def _run(proof: Proof, failed: Failed, stage: Stage, card: AnyArray, told: list[str]) -> Counterexample:
    """What the layers of a stage make of a card, compared with its meaning."""
    in_middle = stage.begin is not proof.layout
    after, compared = run_layers(proof.weights, card, stage.layers), in_middle or says_what_it_means(proof.machine)
    differences = []
    if proof.has_reals:
        said = getattr(proof.machine.design, "step_mismatches", None)
        differences = [Difference(*each) for each in said(card, after)] if said is not None else []
    elif compared:
        differences = _differences(stage.end, after, stage_step(stage, card, after))
    return Counterexample(failed.claim, card, after, tuple(differences), tuple(told), compared,
                          tuple(stage.end.violations(after)), stage.layers if in_middle else None)


def run_layers(weights: Weights, card: AnyArray, layers: tuple[int, int] | None = None) -> AnyArray:
    """The card after a loop of the equation, or after its layers from one to another, in the model's own number format."""
    import torch

    model = Weights(weights.width, weights.dtype, weights.layers[slice(*layers or (None,))]).module
    with torch.no_grad():
        return np.asarray(model(torch.from_numpy(card).to(model.dtype)).to(torch.float64).numpy())


# Cards to run, with their descriptions


def _bit_cards(proof: Proof, failed: Failed, tries: random.Random) -> Iterator[tuple[AnyArray, list[str]]]:
    layout, model = proof.obligation.begin, failed.model
    for turn in range(TRIES if failed.why else 1):
        if turn:
            model = _another(proof, failed.why, tries)
        chosen = _chosen_numbers(proof, model)
        yield make_card(layout, chosen), _format_card(layout, chosen)


def _real_cards(proof: Proof, failed: Failed, tries: random.Random) -> Iterator[tuple[AnyArray, list[str]]]:
    model = failed.model
    for turn in range(2 * TRIES):
        if turn % 4 == 2 and failed.why:
            model = _another(proof, failed.why, tries)
        try:
            card = make_real_card(proof.obligation, model, tries)
        except Undecided:
            continue
        if not proof.layout.violations(card):
            told: dict[tuple[str, int], dict[str, int]] = {}
            for (region, number), words in _chosen_numbers(proof, model).items():
                own = {name.rpartition(".")[2]: word for name, word in words.items() if name not in ("written", "position")}
                if own and (region in proof.obligation.columns.contents or not told):  # columns without contents are alike
                    told[region, number] = own
            yield card, _format_card(proof.layout, told)


def _from_the_start(proof: Proof, failed: Failed, middle: AnyArray, tries: random.Random) -> Counterexample | None:
    """A card on which a loop begins and then departs from the step; None where none of a few does."""
    layout, wanted, cases = proof.layout, proof.obligation.case, proof.stages[0].cases
    whole = whole_loop(proof.machine, proof.weights)
    same = [case for case in cases if wanted is not None and case.name == wanted.name]
    for turn in range(FROM_THE_START):
        case = tries.choice(same or cases) if cases else None
        try:
            card = make_card(layout, {}, case, liked=(proof.obligation.begin, middle) if turn % 2 else None, tries=tries)
        except Undecided:
            continue
        example = _run(proof, failed, whole, card, _format_card(layout, _numbers_on(layout, card)))
        if example.matters:
            return example
    return None


def _another(proof: Proof, why: tuple[Any, ...], tries: random.Random) -> z3.ModelRef:
    """Another case of the same failure, with words taken at random as far as they can be.

    Beside real numbers, short words are 1, so that something is read and written.
    """
    short, long = list[Any](), list[Any]()
    columns = proof.obligation.columns
    for column in (each for found in columns.found.values() for each in found):
        for word in (column.place, *column.words.values()):
            if z3.is_const(word) and not z3.is_bv_value(word):
                few = proof.has_reals and word.size() < columns.place_bits
                value = 1 if few else tries.getrandbits(word.size())
                (short if few else long).append(word == z3.BitVecVal(value, word.size()))
    tries.shuffle(long)
    return proof.obligation.solver.case(why, [*short, *(long[:MOST_WISHES] if proof.has_reals else long)])


def _chosen_numbers(proof: Proof, model: z3.ModelRef) -> Chosen:
    """What the solver's answer says of the card."""
    found: dict[tuple[str, int], dict[str, int]] = {}
    for region, columns in proof.obligation.columns.found.items():
        span = proof.obligation.begin.region(region)
        for column in columns:
            number = model.eval(column.place, model_completion=True).as_long()
            if span.start <= number < span.stop and (region, number) not in found:
                found[region, number] = smallest_words(column, model)
    return found


def _numbers_on(layout: Layout, card: AnyArray) -> Chosen:
    """The numbers of single columns, and of others that are not 0."""
    found = {}
    for region in layout.regions:
        span = layout.region(region.name)
        kept = [block.name for block in layout.blocks if block.holds.get(region.name) == "bits" and block.changes]
        for number in range(span.start, span.stop) if kept else ():
            words = {name: layout.number_at(card, name, number) for name in kept}
            if region.size == 1 or any(words.values()):
                found[region.name, number] = words
    return found


def _format_card(layout: Layout, chosen: Chosen) -> list[str]:
    """A line for each column, with its numbers."""
    return [f"{layout.column_name(number)}: " + ", ".join(f"{rows} {word}" for rows, word in words.items())
            for (_, number), words in sorted(chosen.items(), key=lambda item: item[0][1])]


def _differences(layout: Layout, after: AnyArray, expected: AnyArray) -> list[Difference]:
    """Where a card departs from what it should be. What is left open may be any bits, and is expected as it was found."""
    found = []
    for block, region in ((block, region.name) for block in layout.blocks for region in layout.regions):
        rows, span, content = layout.rows(block.name), layout.region(region), block.holds.get(region)
        wrong = np.abs(after[rows, span] - expected[rows, span]).max(axis=0) > 1e-9
        if content == "bits":
            wrong |= np.abs(np.abs(after[rows, span]) - 1).max(axis=0) > 1e-9
        for number in np.flatnonzero(wrong) + span.start:
            bits = _number(expected[rows, number]) if _are_bits(expected[rows, number]) else "bits"
            wanted = {"bits": bits, "one": "1"}.get(content or "", "0")
            found.append(Difference(block.name, layout.column_name(int(number)), wanted, _number(after[rows, number])))
    return found


def _number(entries: AnyArray) -> str:
    """Entries as a number where they are bits, else as they are."""
    if _are_bits(entries):
        return str(sum(1 << place for place, entry in enumerate(entries) if entry > 0))
    return f"[{', '.join(f'{entry:.6g}' for entry in entries)}]"


def _are_bits(entries: AnyArray) -> bool:
    return bool(np.abs(np.abs(entries) - 1).max() < 1e-9)
