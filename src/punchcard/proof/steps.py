"""Sums of ReLUs that are flat but for steps, as gated conditions.

Where the steps are, `transformer/relu_steps.py` says. A step often has a gate, bits without which it cannot hold:

    [f >= least]  =  [all literals hold]  and  [the rest of f >= least]

Steps of one row whose literals contradict each other never hold together, so that their sum is one bit: the alternatives of
a design. That is seen without a solver.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import z3

from punchcard.proof.forms import ZERO, Bits, Form, Term, unit, vector, width
from punchcard.transformer.relu_steps import period_of, steps_of


@dataclass(frozen=True)
class GatedStep:
    """A weight where all literals (bits by their numbers) and the condition hold, else 0."""

    weight: Fraction
    literals: Mapping[int, int]
    condition: Term

    def excludes(self, other: GatedStep) -> bool:
        """Whether the two never hold together, by their literals alone."""
        few, many = sorted((self.literals, other.literals), key=len)
        return any(many.get(bit, value) != value for bit, value in few.items())

    def term(self, bits: Bits) -> Term:
        """Where it holds."""
        return z3.And(*(bits.literal(bit, value) for bit, value in self.literals.items()), self.condition)


def gated_steps(base: Form, jumps: Sequence[tuple[Fraction, Fraction]], bits: Bits) -> list[GatedStep]:
    """A function of a form by its jumps, each at a least value, as steps. It is 0 below the first."""
    told = [bits.compared(base - Form(at)) for at, _ in jumps]
    if None not in told:
        return [GatedStep(jump, {}, term) for (_, jump), term in zip(jumps, told, strict=True)]
    first = jumps[0][0]
    literals = {bit: int(c > 0) for bit, c in base.terms.items() if base.high - abs(c) < first}
    rest = base.given(literals)
    alternate = all(jump == jumps[0][1] * (-1) ** i for i, (_, jump) in enumerate(jumps))
    if alternate and jumps[0][1] > 0:
        return [GatedStep(jumps[0][1], literals, _alternating(rest, [at for at, _ in jumps], bits))]
    return [GatedStep(jump, literals, at_least(rest, at, bits)) for at, jump in jumps]


def _alternating(form: Form, places: Sequence[Fraction], bits: Bits) -> Term:
    """Whether a form is from one place to the next, from the third to the fourth, and so on: a bit, if they are regular."""
    scale = unit([form])
    counts = [place / scale for place in places]
    if len(places) > 2 and all(count.denominator == 1 for count in counts):
        found = period_of(int(form.low / scale), int(form.high / scale), [int(count) for count in counts])
        if found is not None and 2 * found.length == 1 << found.bits:
            moved = form - Form(places[0] - found.length * scale)
            size = max(width(moved.low, moved.high, scale), found.bits + 1)
            return z3.Extract(found.bits - 1, found.bits - 1, vector(moved, scale, size, bits)) == 1
    reached = [at_least(form, place, bits) for place in places]
    spans = [z3.And(start, z3.Not(stop)) for start, stop in zip(reached[::2], reached[1::2], strict=False)]
    if len(places) % 2:
        spans.append(reached[-1])
    return z3.simplify(z3.Or(*spans))


def merged_steps(steps: Sequence[GatedStep], bits: Bits) -> list[tuple[Fraction, Term]]:
    """A sum of steps as few conditions with weights: those that exclude each other are one."""
    left = _taken_away([step for step in steps if step.weight > 0], [step for step in steps if step.weight < 0], bits)
    found = []
    groups: dict[Fraction, list[GatedStep]] = {}
    for step in left:
        groups.setdefault(step.weight, []).append(step)
    for weight, group in groups.items():
        pools: list[list[GatedStep]] = []
        for step in group:
            for pool in pools:
                if all(step.excludes(other) for other in pool):
                    pool.append(step)
                    break
            else:
                pools.append([step])
        found += [(weight, z3.simplify(z3.Or(*(step.term(bits) for step in pool)))) for pool in pools]
    return found


def _taken_away(more: list[GatedStep], less: list[GatedStep], bits: Bits) -> list[GatedStep]:
    """A gate less a step that has the gate's literals and more is the gate without that step."""
    left = []
    for step in less:
        for i, gate in enumerate(more):
            is_gate = z3.is_true(gate.condition)  # the literals are all there is
            if is_gate and gate.weight == -step.weight and gate.literals.items() <= step.literals.items():
                more[i] = GatedStep(gate.weight, gate.literals, z3.Not(step.term(bits)))
                break
        else:
            left.append(step)
    return more + left


def jumps_of(
    base: Form, units: Sequence[tuple[Fraction, Fraction, Fraction]],
) -> tuple[Fraction, list[tuple[Fraction, Fraction]]] | None:
    """sum of weight * relu(slope * base + bias) as a start and jumps, each at a least value; None where it is not flat.

    The base is a multiple of its unit, so the sum is a function of an integer.
    """
    scale = unit([base])
    scaled = [(weight, slope * scale, bias) for weight, slope, bias in units]

    def value(at: int) -> Fraction:
        return sum((weight * max(slope * at + bias, ZERO) for weight, slope, bias in scaled), ZERO)

    steps = steps_of(int(base.low / scale), int(base.high / scale), [(-bias, slope) for _, slope, bias in scaled], value)
    if steps is None:
        return None
    return steps[0][1], [(at * scale, after - before) for (_, before), (at, after) in pairwise(steps)]


def above(form: Form, limit: Fraction, bits: Bits) -> Term:
    """form > limit."""
    if len(form.terms) == 1:
        (bit, coefficient), = form.terms.items()
        values = form.constant > limit, form.constant + coefficient > limit
        if values[0] != values[1]:
            return bits.literal(bit, values[1])
    return z3.Not(at_least(-form, -limit, bits))


def at_least(form: Form, limit: Fraction, bits: Bits) -> Term:
    """form >= limit. The form is a multiple of its unit, so the limit may be raised to one."""
    if form.low >= limit:
        return z3.BoolVal(True)
    if form.high < limit:
        return z3.BoolVal(False)
    scale = unit([form])
    needed = form - Form(-(-limit // scale) * scale)
    return vector(needed, scale, width(needed.low, needed.high, scale), bits) >= 0


def equal(form: Form, bits: Bits) -> Term:
    """form = 0."""
    if form.is_constant:
        return z3.BoolVal(form.constant == 0)
    scale = unit([form])
    return vector(form, scale, width(form.low, form.high, scale), bits) == 0
