"""A card for a claim about a stage that begins in the middle of a loop.

A card on which a loop begins is looked for first: it has the numbers of the solver's answer, as far as they can be there,
and is shown where the loop departs from the machine's step. Where none is found, it is a card of the stage's own layout, run
by the layers of that stage.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from punchcard.card.formats import AnyArray
from punchcard.machines.meaning import Case, Stage
from punchcard.proof.cards import make_card
from punchcard.proof.concrete import says_what_it_means, stage_step, step
from punchcard.proof.counterexample import (
    TRIES,
    Counterexample,
    another,
    chosen_numbers,
    differences_of,
    run_layers,
    told_numbers,
)
from punchcard.proof.solver import Failed, Undecided

if TYPE_CHECKING:
    from punchcard.proof.proof import Proof

FROM_THE_START = 4
"""How many cards on which a loop begins are run."""


def middle_counterexample(proof: Proof, failed: Failed) -> Counterexample:
    """A card for a claim of a stage that does not begin with the loop."""
    stage, tries = proof.obligation.stage, random.Random(0)
    model = failed.model
    for _ in range(TRIES):
        chosen = chosen_numbers(stage.begin, proof, model)
        card = make_card(stage.begin, chosen)
        after = run_layers(proof.weights, card, stage.layers)
        differences = differences_of(stage.end, after, stage_step(stage, card, after))
        broken = stage.end.violations(after)
        if differences or broken or not failed.why:
            break
        model = another(proof, failed.why, tries)
    if differences or broken:
        found = _from_the_start(proof, failed, card, tries)
        if found is not None:
            return found
    return Counterexample(failed.claim, card, after, tuple(differences), tuple(told_numbers(stage.begin, chosen)),
                          broken=tuple(broken), layers=stage.layers)


def _from_the_start(proof: Proof, failed: Failed, middle: AnyArray, tries: random.Random) -> Counterexample | None:
    """A card on which a loop begins and then departs from the step; None where none of a few does."""
    if not says_what_it_means(proof.machine):
        return None
    first, layout = proof.stages[0], proof.layout
    for turn in range(FROM_THE_START):
        case = _case(first, proof.obligation.case, tries)
        try:
            liked = (proof.obligation.begin, middle) if turn % 2 else None
            card = make_card(layout, {}, case, liked=liked, tries=tries)
        except Undecided:
            continue
        after = run_layers(proof.weights, card, (0, len(proof.layers)))
        differences = differences_of(layout, after, step(proof.machine, card, after))
        broken = layout.violations(after)
        if differences or broken:
            return Counterexample(failed.claim, card, after, tuple(differences), tuple(_told(first, card)),
                                  broken=tuple(broken))
    return None


def _case(stage: Stage, wanted: Case | None, tries: random.Random) -> Case | None:
    """The case of the first stage that is called as the one that failed, or any."""
    same = [case for case in stage.cases if wanted is not None and case.name == wanted.name]
    return tries.choice(same or stage.cases) if stage.cases else None


def _told(stage: Stage, card: AnyArray) -> list[str]:
    """The numbers of columns that stand alone, and of others that are not 0."""
    layout, found = stage.begin, {}
    for region in layout.regions:
        span = layout.region(region.name)
        blocks = [block for block in layout.blocks if block.holds.get(region.name) == "bits"]
        kept = [block for block in blocks if block.changes]
        for number in range(span.start, span.stop) if kept else ():
            words = {block.name: layout.number_at(card, block.name, number) for block in kept}
            if region.size == 1 or any(words.values()):
                found[region.name, number] = words
    return told_numbers(layout, found)

