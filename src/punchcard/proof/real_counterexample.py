"""A card on which a claim about a machine with real numbers fails: bits as the solver says, real numbers as one likes."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np
import z3

from punchcard.card.formats import AnyArray
from punchcard.card.layout import Layout
from punchcard.proof.column import Column
from punchcard.proof.columns import Columns
from punchcard.proof.counterexample import Counterexample, Difference, run_layers
from punchcard.proof.forms import Bits, Real, Term
from punchcard.proof.solver import Failed, Solver, Undecided

if TYPE_CHECKING:
    from punchcard.proof.obligation import Obligation
    from punchcard.proof.proof import Proof

TRIES = 24
"""How many cards of a failed claim are run, to find one on which it matters."""
MOST_WISHES = 12
"""So many other words of a card are chosen at random."""
LARGEST = 4
"""Real numbers are integers up to this in size, so that a cell is fit for a flag."""


class Broken(Difference):
    """A fact that does not hold after the loop."""

    def __str__(self) -> str:
        return f"a card that the next loop can't begin with, {self.found}"


def real_counterexample(proof: Proof, failed: Failed) -> Counterexample | None:
    """A card for a failed claim, run by the model; None where there is none to show, as for the bits of sums."""
    case = proof.obligation
    if failed.model is None or case.name is None:
        return None
    model, tries, kept = failed.model, random.Random(0), None
    for number in range(TRIES):
        try:
            card = make_card(case, model, tries)
        except Undecided:
            card = None
        if card is not None and not proof.layout.violations(card):
            after = run_layers(proof.weights, card)
            differences = tuple(_differences(proof, card, after))
            if kept is None or differences:
                kept = Counterexample(failed.claim, card, after, differences, tuple(_told(case, model)))
            if differences:
                break
        if number % 4 == 1 and failed.why:
            model = _another(case, failed.why, tries)
    return kept


def _another(case: Obligation, why: tuple[object, ...], tries: random.Random) -> z3.ModelRef:
    """Another case of the same failure: short words are 1, if they can be, so that something is read and written."""
    short, long = list[Term](), list[Term]()
    for columns in case.loop.columns.found.values():
        for column in columns:
            for word in (column.place, *column.words.values()):
                if z3.is_const(word) and not z3.is_bv_value(word):
                    few = word.size() < case.loop.columns.place_bits
                    value = 1 if few else tries.getrandbits(word.size())
                    (short if few else long).append(word == z3.BitVecVal(value, word.size()))
    tries.shuffle(long)
    return case.solver.case(why, [*short, *long[:MOST_WISHES]])


def make_card(case: Obligation, model: z3.ModelRef, tries: random.Random) -> AnyArray:
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
    _fill_up(layout, card, done, tries)
    return card


def _fill_up(layout: Layout, card: AnyArray, done: set[int], tries: random.Random) -> None:
    """Columns of which nothing is said: any that the facts allow."""
    solver, bits = Solver(seconds=60), Bits()
    columns = Columns(layout, bits, solver)
    for region in layout.regions:
        if columns.is_listed(region.name):
            continue
        column, span = columns.fresh(region.name, f"any {region.name}"), layout.region(region.name)
        for number in range(span.start, span.stop):
            if number not in done:
                model = solver.refutes(column.place == columns.constant(number))
                if model is None:
                    raise Undecided("no card has all of these numbers")
                card[:, number] = _entries(column, bits, model, {}, tries)


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
                total += float(factor) * (1.0 if real is None else _chosen(real, reals, tries))
        found.append(total)
    return found


def _chosen(real: Real, reals: dict[Real, float], tries: random.Random) -> float:
    if real not in reals:
        low, high = max(int(real.low), -LARGEST), min(int(real.high), LARGEST)
        reals[real] = float(tries.randint(low, high))
    return reals[real]


def _differences(proof: Proof, card: AnyArray, after: AnyArray) -> list[Difference]:
    """Where the model's card departs from the step, or from what the layout says of every card."""
    said = getattr(proof.machine.design, "step_mismatches", None)
    found = [Difference(*each) for each in said(card, after)] if said is not None else []
    return found + [Broken("facts", "", "", wrong) for wrong in proof.layout.violations(after)]


def _told(case: Obligation, model: z3.ModelRef) -> list[str]:
    """The numbers of the columns that the answer names; of columns that are alike, those of the first."""
    found: dict[int, str] = {}
    for region, columns in case.loop.columns.found.items():
        span, contents = case.begin.region(region), case.loop.columns.contents.get(region)
        for column in columns:
            number = model.eval(column.place, model_completion=True).as_long()
            words = {name: word for name, word in column.words.items() if name not in ("written", "position")
                     and not any(other.startswith(f"{name}.") for other in column.words)}
            if span.start <= number < span.stop and number not in found and words and (contents is not None or not found):
                found[number] = f"{case.begin.column_name(number)}: " + ", ".join(
                    f"{name.rpartition('.')[2]} {model.eval(word, model_completion=True)}" for name, word in words.items())
    return [line for _, line in sorted(found.items())]
