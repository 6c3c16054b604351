"""One loop of a machine, for every card on which its facts hold: the proof, claim by claim.

    cases    the cases of a stage are all that there are
    heads    every column finds one column, or shares two, and all others lose by so much that nothing is left of them
    entries  when a later layer begins, every entry is an integer within its limit
    step     after the loop every block holds what the machine's meaning says, or is as it was, or 0
    facts    the facts hold again
    overflow no sum is beyond the largest number of the format, and none has terms below its smallest one
    bits     no sum is ever rounded: the number format has the bits that the sums need

So the claims hold after every loop, by induction, for every program and any number of loops.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from concurrent.futures import Executor
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from punchcard.card.facts import Contents, Fact
from punchcard.card.layout import Layout
from punchcard.errors import ProofError
from punchcard.machines.base import Machine
from punchcard.machines.meaning import Case, Stage
from punchcard.proof.certificate import Claims, Progress
from punchcard.proof.concrete import whole_loop
from punchcard.proof.counterexample import Counterexample, counterexample
from punchcard.proof.function_errors import FunctionErrors
from punchcard.proof.loop import Layer
from punchcard.proof.obligation import Obligation
from punchcard.proof.parallel import ParallelProof
from punchcard.proof.rounding import MARGIN, BitSums
from punchcard.proof.solver import Failed, Solver
from punchcard.transformer.exactness import bits_of, entry_sizes, loop_sums
from punchcard.transformer.expression import Array
from punchcard.transformer.sums import LayerSums, Sums
from punchcard.transformer.weights import Weights


class Proof:
    """The claims about one machine. `run` raises `Failed` at the first that does not hold; `part` says how far it is.

    `only` names cases: then the others are left out, and what is proven holds for cards of these cases.
    """

    def __init__(self, machine: Machine[Any, Any], weights: Weights | None = None, *, seconds: float | None = None,
                 progress: Progress | None = None, only: Collection[str] | None = None) -> None:
        self.machine, self.layout = machine, machine.layout
        self.weights = weights if weights is not None else machine.weights
        self.claims = Claims(Solver(seconds), progress)
        self.stages = tuple(machine.stages()) or (whole_loop(machine, self.weights),)
        if self.weights.width != self.layout.width:
            raise ProofError(f"weights for {self.weights.width} rows, the layout has {self.layout.width}: they do not fit")
        check_complete(self.layout)
        if (wrong := self.weights.flaw()) is not None:
            raise ProofError(f"{wrong}: there is nothing to prove of such weights")
        if not self.weights.layers:
            raise ProofError("a model without layers: there is nothing to prove")
        self._check_stages()
        self.has_reals = any(block.real for block in self.layout.blocks)
        sizes = np.max([entry_sizes(stage.begin) for stage in self.stages], axis=0)
        self.layers = [Layer(arrays, self.weights.dtype, real_sizes(self.layout) if self.has_reals else sizes)
                       for arrays in self.weights.layers]
        if self.has_reals:  # roundings may move a score, up to the margin
            for layer in self.layers:
                layer.heads = [replace(head, gap=head.gap and head.gap * (1 + Fraction(MARGIN))) for head in layer.heads]
        self.shares = [[1] * len(layer.heads) for layer in self.layers]
        self.promises = [fact.about for fact in self.layout.facts_of(Fact) if fact.promised]
        self.promises += [f"what {fact.region} holds is within the limit of its blocks"
                          for fact in self.layout.facts_of(Contents) if not fact.parts]
        self.seconds, self._only = seconds, only
        self.obligation = self._obligation(self.stages[0])

    def counterexample(self, failed: Failed) -> Counterexample | None:
        """A card for a failed claim; None where there is none to show, as for numbers of bits."""
        return counterexample(self, failed)

    def _check_stages(self) -> None:
        """Each stage begins where the one before ends. A host acts between loops only, so `unless` has no place within."""
        for before, after in pairwise(self.stages):
            same = before.begin.width == before.end.width and before.begin.regions == before.end.regions
            if before.end is not after.begin or before.layers[1] != after.layers[0] or not same:
                raise ProofError(f"the stage {after.name!r} does not begin where {before.name!r} ends")
            for fact in after.begin.facts_of(Fact):
                if fact.unless is not None:
                    raise ProofError(f"the fact {fact.about!r} has `unless` in the middle of a loop: say it with `|`")
        first, last = self.stages[0], self.stages[-1]
        if len(self.stages) > 1 and any(block.real for block in self.layout.blocks):
            raise ProofError("real numbers are not followed from one stage to the next: let the loop be one stage")
        whole = first.begin is self.layout is last.end and (first.layers[0], last.layers[1]) == (0, len(self.weights.layers))
        if not whole:
            raise ProofError("the stages are not the whole loop, from the machine's layout to its layout")

    def _obligation(self, stage: Stage, case: Case | str | None = None) -> Obligation:
        return Obligation(stage, self.layers[slice(*stage.layers)], self.claims, self.seconds, case)

    def show(self, stage: str, case: str | None = None) -> None:
        """Prove the claims of one part: a stage without its cases, or one case of it."""
        for each in self.stages:
            for one in (None, *each.cases):
                if each.name == stage and (one.name if one is not None else None) == case:
                    self.show_part(each, one)
                    return
        raise ProofError(f"there is no stage {stage!r}" + (f" with a case {case!r}" if case else ""))

    def wants(self, case: str) -> bool:
        """Whether a case is to be proven."""
        return self._only is None or case in self._only

    def run(self, executor: Executor | None = None) -> None:
        """Prove all claims; with an executor its workers show the parts, unless there are real numbers."""
        if executor is not None and not self.has_reals:
            ParallelProof(self, executor).run()
        else:
            for stage in self.stages:
                self.show_part(stage)
                meaning = self.obligation.meaning
                cases: list[Case | str] = [*stage.cases, *meaning.cases]
                for case in cases:
                    if self.wants(case if isinstance(case, str) else case.name):
                        self.show_part(stage, case)
        if not self.has_reals:
            self.check_sums()

    def show_part(self, stage: Stage, case: Case | str | None = None) -> None:
        """Prove the claims of a stage without its cases, or of one case."""
        self.obligation = self._obligation(stage, case)
        self.obligation.run()
        for layer, shares in enumerate(self.obligation.loop.heads.shares, start=stage.layers[0]):
            self.shares[layer] = [max(pair) for pair in zip(self.shares[layer], shares, strict=True)]
        meaning = self.obligation.meaning
        if self.has_reals:
            if case is None:
                self.promises += meaning.promises
                self.promises += [f"{rows} is an integer, up to {float(tolerance):g}"
                                  for rows, tolerance in meaning.promised.items()]
            if case is not None or not meaning.cases:
                self._check_sums_beside_reals()

    # The sums

    def _layer_sums(self) -> list[LayerSums]:
        """The sums of all layers, by what was proven of the heads so far."""
        return [LayerSums(arrays, number, shares)
                for number, (arrays, shares) in enumerate(zip(self.weights.layers, self.shares, strict=True), start=1)]

    def _check_sums_beside_reals(self) -> None:
        limits, claim_name = self.weights.format, self.obligation.claim_name
        where = claim_name("bits").removesuffix(": bits")
        sums = BitSums(self.obligation.loop, self.weights.layers, self._layer_sums(), limits, where)
        self._check_range(claim_name("overflow"), sums.all())
        about = "no sum of bits is rounded, beside real numbers: they need {} bits, {} has {}"
        with self.claims.claim(claim_name("bits"), lambda: about.format(sums.needed, limits.name, limits.significand)):
            sums.check()
        FunctionErrors(self.obligation, sums, self.weights, self._own).show()

    @cached_property
    def _own(self) -> Weights:
        """The weights as the design has them, which may be others than those that are looked at."""
        return self.machine.designed_weights()

    def check_sums(self) -> None:
        """Prove that no sum leaves the number format, and that none is rounded, by what was proven of the heads."""
        limits, layers = self.weights.format, self._layer_sums()
        sums = [each for stage in self.stages for each in loop_sums(layers[slice(*stage.layers)], stage.begin)]
        self._check_range("overflow", sums)
        needed = bits_of(sums)
        about = f"sums need {needed} bits, {limits.name} has {limits.significand}"
        with self.claims.claim("bits", about):
            if needed > limits.significand:
                raise Failed(f"bits: {about}", None)

    def _check_range(self, name: str, sums: Iterable[Sums]) -> None:
        """Prove that nothing overflows or underflows."""
        limits, reach, finest = self.weights.format, 0.0, math.inf

        def about() -> str:
            return (f"sums are {reach:.3g} at most, {limits.name} holds {limits.max:.3g}; their terms are multiples of "
                    f"{finest:.3g}, its smallest number is {limits.least:.3g}")

        with self.claims.claim(name, about):
            for each in sums:
                found = each.violation(limits)
                if found is not None:
                    raise Failed(f"{name}: no sum leaves the number format, and {found}", None)
                reach = max(reach, float(each.totals.max(initial=0.0)))
                finest = min(finest, float(each.grids.min(initial=math.inf)))


def check_complete(layout: Layout) -> None:
    """Refuse a layout with rows or columns that it does not name: nothing could be proven of them."""
    for what, places, size in (("rows", [layout.rows(block.name) for block in layout.blocks], layout.width),
                               ("columns", [layout.region(region.name) for region in layout.regions], layout.columns)):
        if sum(place.stop - place.start for place in places) != size:
            raise ProofError(f"{layout!r} has {what} without a name: a proof is about named ones")


def real_sizes(layout: Layout) -> Array:
    """How large the entries of each row may be, where some are real numbers."""
    found = np.ones(layout.width)
    for block in layout.blocks:
        if block.limit is not None and block.real:
            found[layout.rows(block.name)] = max(1.0, block.limit)
    return found

