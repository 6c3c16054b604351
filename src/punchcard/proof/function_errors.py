"""The error of a function, by the weights that compute it, in the case in which it is called.

    exact   the function is sums and ReLUs of its operands: the weights' result is compared with that formula, symbolically.
            Weights that differ from the design's may round more; `real_rounding` bounds this
    own     any other function: the error bound belongs to the design's formula, so the weights must equal the design's
    moves   real numbers are copied and cleared without rounding, because these weights equal the design's

Which weights compute a result is found backwards from its rows, by the places of weights that are not 0. Some of them may
be others: one that meets zeros alone in this case, one of a unit that is always closed, and a gate that closes as well. They
add nothing, in any number format.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NoReturn

import numpy as np
import z3

from punchcard.card.formats import AnyArray
from punchcard.machines.meaning import ErrorClaim
from punchcard.proof.column import Column
from punchcard.proof.forms import Form, Term
from punchcard.proof.meaning import Before, forms
from punchcard.proof.obligation import Obligation
from punchcard.proof.real_rounding import RealRounding
from punchcard.proof.rounding import GATE, BitSums
from punchcard.proof.solver import Failed
from punchcard.transformer.grids import Flags
from punchcard.transformer.weights import NAMES, LayerArrays, Weights

Found = tuple[float | None, bool]
"""How far a result is rounded, None for the design's own weights; and whether it is the exact one but for that."""


class FunctionErrors:
    """The error claims of one case. All its other claims were proven before, that no sum of bits is rounded among them."""

    def __init__(self, obligation: Obligation, sums: BitSums, weights: Weights, own: Weights) -> None:
        assert obligation.reals is not None
        self._of, self._reals, self._loop, self._sums = obligation, obligation.reals, obligation.loop, sums
        self._now, self._own, self._formats = weights.layers, own.layers, (weights.dtype, own.dtype)
        self._is_own = weights.dtype == own.dtype and _is_same(self._now, self._own)
        self._columns = [column for each in obligation.any.values() for column in each]

    def show(self) -> None:
        """Prove the claims, or raise `Failed`."""
        name, about = self._of.claim_name("moves"), "real numbers are moved by the design's own weights, bit for bit"
        with self._of.claims.claim(name, about):
            changed = next(self._other_moves(), None)
            if changed is not None:
                raise Failed(f"{name}: {about}, and {changed}", self._of.solver.refutes())
        for claim in self._of.meaning.errors:
            found = list[Found]()
            with self._of.claims.claim(claim.name, partial(_about, claim, found)):
                found.append(self._found(claim))

    def _found(self, claim: ErrorClaim) -> Found:
        rows, wanted = self._of.begin.rows(claim.rows), claim.exact()
        wrong = []
        for column, where, entries in wanted:
            found = self._loop.after(_column(column), claim.last)[rows]
            wrong += [z3.And(self._of.meaning.condition(where), term) for term in self._reals.differ(found, forms(entries))]
        is_exact = bool(wanted) and (not wrong or self._of.solver.holds(z3.Not(z3.Or(*wrong))))
        changed = next(self._changed(claim), None)
        if changed is None:
            return None, is_exact
        rounding = math.inf
        if is_exact:
            columns = [_column(column) for column in claim.columns]
            rounding = RealRounding(self._sums).largest(columns, claim.last, rows)
        elif wanted:
            self._fail(claim, "by the weights, the result is the block's formula of the operands", z3.Or(*wrong))
        if not math.isfinite(rounding):
            self._fail(claim, f"the error bound holds only for the design's own weights; {changed}", z3.BoolVal(True))
        return rounding, True

    def _fail(self, claim: ErrorClaim, about: str, where: Term) -> NoReturn:
        """Raise `Failed`, with a call that fits the function where there is one."""
        solver, fits = self._of.solver, self._of.meaning.condition(claim.fits())
        why = [fits, where] if solver.possible(fits, where) else [where]
        raise Failed(f"{claim.name}: {about}", solver.refutes(*why), *why)

    # The weights that compute a result

    def _changed(self, claim: ErrorClaim) -> Iterator[str]:
        """Where the weights that compute a result are not the design's own, or begin with something else, in words."""
        if self._is_own:
            return
        yield from self._misshapen()
        rows = self._rows(claim.rows)
        for number in reversed(range(claim.first - 1, claim.last)):
            yield from self._feed_forward(number, rows)
            if number >= claim.first:
                yield from self._values(number, rows)
                yield from self._scores(number, rows)
        yield from self._begins(claim, rows)

    def _other_moves(self) -> Iterator[str]:
        """Where weights that move real numbers, and do not compute a result, are not the design's own, in words."""
        if self._is_own:
            return
        yield from self._misshapen()
        contents = self._rows(*(block for fact in self._loop.columns.contents.values() for block in fact.blocks))
        for number in range(len(self._now)):
            brought, made = (self._real(number, heads=True), self._real(number + 1))
            for claim in self._of.meaning.errors:
                if claim.first <= number < claim.last:
                    brought &= contents
                if claim.first - 1 <= number < claim.last:
                    made &= contents
            yield from self._values(number, brought)
            yield from self._feed_forward(number, made)

    def _misshapen(self) -> Iterator[str]:
        """What cannot be compared weight by weight."""
        if self._formats[0] != self._formats[1]:
            yield f"they are in {self._formats[0]}, where the design has {self._formats[1]}"
        if len(self._now) != len(self._own):
            yield f"there are {len(self._now)} layers, where the design has {len(self._own)}"
        for number, (now, own) in enumerate(zip(self._now, self._own, strict=False), start=1):
            for name in NAMES:
                if getattr(now, name).shape != getattr(own, name).shape:
                    yield f"{name} of layer {number} has another shape"

    def _rows(self, *blocks: str) -> Flags:
        rows: Flags = np.zeros(self._of.begin.width, dtype=np.bool_)
        for block in blocks:
            rows[self._of.begin.rows(block)] = True
        return rows

    def _real(self, layer: int, *, heads: bool = False) -> Flags:
        """The rows that hold a real number in some column."""
        found: Flags = np.any([self._sums.entries(column, layer, heads=heads).real for column in self._columns], axis=0)
        return found

    def _used(self, layer: int, *, heads: bool = False) -> Flags:
        """The rows that are not 0 in some column."""
        found: Flags = np.any([self._sums.entries(column, layer, heads=heads).used for column in self._columns], axis=0)
        return found

    def _feed_forward(self, number: int, rows: Flags) -> Iterator[str]:
        """Differences in a feed-forward that change some rows. To these are added the rows that it computes them from."""
        now, own = self._now[number], self._own[number]
        reach = np.array([self._sums.reach(layer, self._sums.entries(column, number, heads=True), column, number)
                          for column in self._columns for layer in (now, own)]).max(axis=0)
        units: Flags = np.any(_places(now.w2, own.w2) & rows[:, None], axis=0)
        opens: Flags = reach > 0
        gates = (np.minimum(np.abs(now.w1), np.abs(own.w1)) >= GATE) & (reach < GATE)[:, None]
        used: Flags = units & opens
        meets = np.outer(used, self._used(number, heads=True)) & ~gates
        for name, where in (("w2", np.outer(rows, opens)), ("b2", rows[:, None]), ("w1", meets), ("b1", used[:, None])):
            yield from _differences(number, name, now, own, where)
        rows |= (_places(now.w1, own.w1) & units[:, None]).any(axis=0)

    def _values(self, number: int, rows: Flags) -> Iterator[str]:
        """Differences in what the heads of a layer bring to some rows."""
        used = self._used(number)
        for head in range(self._now[number].heads):
            yield from _differences(number, "value", self._now[number], self._own[number], np.outer(rows, used), head)

    def _scores(self, number: int, rows: Flags) -> Iterator[str]:
        """Differences in who is found by the heads that bring something. All rows that decide it are added to these."""
        now, own, used, brought = self._now[number], self._own[number], self._used(number), rows.copy()
        for head in range(now.heads):
            keys, queries, values = (_places(getattr(now, name)[head], getattr(own, name)[head])
                                     for name in ("key", "query", "value"))
            moved = values & rows[:, None]
            if moved.any():
                scored = (keys & used).any(axis=1) & (queries & used).any(axis=1)
                for name, where in (("key", np.outer(scored, used)), ("query", np.outer(scored, used)),
                                    ("temperature", np.ones((), dtype=np.bool_))):
                    yield from _differences(number, name, now, own, where, head)
                for places in (moved, keys, queries):
                    brought |= places.any(axis=0)
        rows |= brought

    def _begins(self, claim: ErrorClaim, rows: Flags) -> Iterator[str]:
        """What is not as it should be in these rows when the first feed-forward begins: what was claimed, or as before."""
        for block in self._of.begin.blocks:
            place = self._of.begin.rows(block.name)
            for column in self._columns if rows[place].any() else ():
                found = self._loop.attended(column, claim.first - 1)[place]
                wrong = self._reals.differ(found, self._should_be(claim, block.name, column))
                if wrong and not self._of.solver.holds(z3.Not(z3.Or(*wrong))):
                    yield f"{block.name} in {column.region} may differ from its value under the design's weights"

    def _should_be(self, claim: ErrorClaim, rows: str, column: Column) -> list[Form]:
        """The entries of a block that the latest claim has proven; where there is none, those when the loop begins."""
        place, found = self._of.begin.rows(rows), None
        for midway in self._of.meaning.expected_midway:
            if (midway.rows, midway.region) == (rows, column.region) and (
                    midway.layer < claim.first or (midway.layer == claim.first and self._is_kept(column, claim, place))):
                found = midway.entries(self._of.meaning.before(column))
        return column.rows[place] if found is None else found

    def _is_kept(self, column: Column, claim: ErrorClaim, place: slice) -> bool:
        """Whether the first feed-forward leaves some rows as they are."""
        before, after = self._loop.attended(column, claim.first - 1)[place], self._loop.after(column, claim.first)[place]
        return [form.key for form in before] == [form.key for form in after]


def _about(claim: ErrorClaim, found: list[Found]) -> str:
    return claim.about(*found[0])


def _is_same(now: Sequence[LayerArrays], own: Sequence[LayerArrays]) -> bool:
    """Whether two models have the same weights."""
    return len(now) == len(own) and all(np.array_equal(getattr(one, name), getattr(other, name))
                                        for one, other in zip(now, own, strict=True) for name in NAMES)


def _column(before: object) -> Column:
    assert isinstance(before, Before)
    return before.column


def _places(now: AnyArray, own: AnyArray) -> Flags:
    """Where one of two matrices is not 0."""
    found: Flags = (now != 0) | (own != 0)
    return found


def _differences(
    number: int, name: str, now: LayerArrays, own: LayerArrays, where: Flags, head: int | None = None,
) -> Iterator[str]:
    """The weights in some places that differ, in words."""
    one, other = (getattr(layer, name) if head is None else getattr(layer, name)[head] for layer in (now, own))
    for place in np.argwhere((one != other) & where):
        full = [*([] if head is None else [head]), *map(int, place)]
        yield (f"{name}{full} of layer {number + 1} is {float(one[tuple(place)]):g}, where the design has "
               f"{float(other[tuple(place)]):g}")
