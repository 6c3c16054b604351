"""Function blocks: a declaration joined with the weights that compute it. The machine plugs them in by name.

A block has two plans. In the compact machine, and in that of three layers, a transport brings its operands together in
the soft layer, and `finish` is the formula of the feed-forward after it. In the paper's machine, a lemma has layers of
its own. A block of your own is most often an `Elementwise` one, a formula over the entries of a and b, which has both.

    MAXIMUM = Function("maximum", 2, same_shape, np.maximum)
    block = Elementwise(MAXIMUM, lambda a, b, one: b + relu(a - b))
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from punchcard.machines.fleq.blocks.enclosure import REFERENCE_UNIT, Enclosure, round_up, within
from punchcard.machines.fleq.blocks.lemmas import ElementwiseLemma, Lemma, TransposeLemma
from punchcard.machines.fleq.blocks.product import (
    AnchoredProduct,
    AnchoredProductLemma,
    DiagonalProduct,
    DiagonalProductLemma,
    LaneProductLemma,
    Lanes,
    MirrorProductLemma,
    Product,
    Scaled,
    ScaledProductLemma,
    anchor_scales,
    best_c,
    worst_rounding,
)
from punchcard.machines.fleq.blocks.series import remainder, tail
from punchcard.machines.fleq.blocks.sigmoids import HeadsLemma, SigmoidSum, Terms, TermsLemma
from punchcard.machines.fleq.blocks.transport import Beside, Transport, Turn
from punchcard.machines.fleq.blocks.workspace import Workspace
from punchcard.machines.fleq.functions import POINTERS, Function
from punchcard.machines.meaning import Entry, RealMeaning
from punchcard.primitives.bits import successor_bits
from punchcard.transformer.expression import Expression, Rows, gated, relu, stack
from punchcard.words.word import TRUE, Word

Formula = Callable[[Expression, Expression, Expression], Expression]


@dataclass(frozen=True)
class Scale:
    """What an error bound depends on.

    d, the range of values, and the unit roundoff of the number format.
    """

    size: int
    range: float
    unit: float

    @property
    def reach(self) -> float:
        """The largest entry of a product that the constants are chosen for.

        Entries of a^T b stay within the range R like all values; root d times as much room is left, but never more than
        d R^2, which no product exceeds.
        """
        return min(self.size * self.range**2, math.sqrt(self.size) * self.range)

    @property
    def averaging(self) -> float:
        """Rounding of a mean of d columns: none where d is a power of two."""
        return 0.0 if self.size & (self.size - 1) == 0 else 4 * self.unit * self.range

    @property
    def dot_product(self) -> float:
        """Rounding of the dot products themselves, in the machine and in the reference: d units of d R^2 at most."""
        return self.size * self.unit * self.size * self.range**2 + self.size * REFERENCE_UNIT * self.size * self.range**2


@dataclass(frozen=True)
class Operands:
    """The operands of a call as a proof knows them: the entries of each of their columns, whatever they are.

    over     for each of the d rows, whether it is beyond the result's height
    fields   of an instruction that is an operand: the rows of each field
    """

    card: RealMeaning
    a: Sequence[Sequence[Entry]]
    b: Sequence[Sequence[Entry]]
    over: Sequence[Word]
    fields: Mapping[str, slice]


class Block(ABC):
    """A function's weights."""

    function: Function
    transport: Transport
    lemma: Lemma
    reads_instructions: bool = False
    """Whether operands may be instructions, whose columns are longer than d."""

    @property
    def name(self) -> str:
        return self.function.name

    def finish(self, work: Workspace, off: Expression) -> Expression | None:
        """What is added to the first rows of the result after the soft layer, or None; 0 where `off` is not 0."""
        return self.transport.finish(work, off)

    @abstractmethod
    def enclosure(self, scale: Scale) -> Enclosure:
        """The error of an entry of the result, over all operands within the range and products within `scale.reach`."""

    def bound(self, scale: Scale) -> float:
        """The largest error of an entry of the result."""
        return self.enclosure(scale).error

    def exact(self, of: Operands) -> Sequence[Sequence[Entry]] | None:
        """The columns of the result, where the block computes the function itself, but for rounding; else None."""
        return None


class Elementwise(Block):
    """A formula over the entries of a and b (and `one`, for constants): affine forms and relu.

    `error` is the rounding of the formula in units of the range's last place. 0 is for a formula that is rounded once,
    as its float64 reference is: exact in float64, off by one unit in float32.
    """

    def __init__(self, function: Function, formula: Formula, *, error: float = 4.0) -> None:
        self.function = function
        self.formula = formula
        self.transport = Beside()
        self.lemma = ElementwiseLemma(lambda work, a, b: gated(
            formula(a[: work.size], b[: work.size], work.one), work.over, work.gate), function.arity)
        self._error = error

    def finish(self, work: Workspace, off: Expression) -> Expression:
        a, b = work.left[: work.size], work.operand[: work.size]
        return gated(self.formula(a, b, work.one), off + work.over, work.gate)

    def exact(self, of: Operands) -> Sequence[Sequence[Entry]]:
        """The formula of the operands' entries; 0 beyond the result's height."""
        d, card = len(of.over), of.card
        a, b, one = (Rows(name, np.arange(start, stop), 2 * d + 1)
                     for name, start, stop in (("a", 0, d), ("b", d, 2 * d), ("one", 2 * d, 2 * d + 1)))
        formula, found = self.formula(a, b, one).repeat(d), []
        for left, right in zip(of.a, of.b, strict=True):
            made = card.computed(formula, [*left[:d], *right[:d], card.constant(1.0)])
            found.append([card.pick([(~over, [entry])], 1)[0] for over, entry in zip(of.over, made, strict=True)])
        return found

    def enclosure(self, scale: Scale) -> Enclosure:
        units = self._error or float(scale.unit > REFERENCE_UNIT)
        return Enclosure(0.0, units * scale.range * scale.unit, within(scale.range))


class MatrixProduct(Block):
    """a^T b with keys A and -A: the soft product itself.

    Its error is relative to `reach`, the largest product that c is chosen for. By default that is the machine's, which
    grows with its range. A program that keeps its products small can have a wide range and exact products at once.
    """

    plans: tuple[type[Product], type[MirrorProductLemma]] = Product, MirrorProductLemma

    def __init__(self, function: Function, heads: int = 1, reach: float | None = None) -> None:
        self.function, self.heads, self.reach = function, heads, reach
        self.transport, self.lemma = self.plans[0](heads, reach), self.plans[1](heads, reach)

    def enclosure(self, scale: Scale) -> Enclosure:
        """The powers that are left (`series`), and rounding: once for two scalars, for others `Scale.dot_product`."""
        reach, heads = self.reach or scale.reach, self.heads
        c = best_c(reach, heads, scale.unit)
        x = c * reach
        truncation = reach * (remainder(heads) * x ** (2 * heads) + tail(heads, x))
        rounding = worst_rounding(reach, c, heads, scale.unit, scale.size)
        rounding += 2 * scale.unit * reach if self.reach and scale.size == 1 else scale.dot_product
        return Enclosure(round_up(truncation), round_up(rounding), f"products within {within(reach)}")


class EntrywiseProduct(MatrixProduct):
    """The product of vectors entry by entry; with a matrix b, its rows are scaled by the entries of a."""

    plans = DiagonalProduct, DiagonalProductLemma


class ScaledProduct(MatrixProduct):
    """A scalar times a matrix."""

    plans = Scaled, ScaledProductLemma


class LaneProduct(MatrixProduct):
    """The product of matrices entry by entry."""

    plans = Lanes, LaneProductLemma


class AnchoredMatrixProduct(Block):
    """a^T b as the paper has it, with anchors."""

    def __init__(self, function: Function) -> None:
        self.function, self.transport, self.lemma = function, AnchoredProduct(), AnchoredProductLemma()

    def enclosure(self, scale: Scale) -> Enclosure:
        """(D w - 1) / c = (e^x / (1 + v / (E + 1)) - 1) / c with |x| <= c reach, E = e^C, and v = mean of e^x - 1."""
        u, reach, d = scale.unit, scale.reach, scale.size
        at = anchor_scales(d, reach, u)
        x = at.c * reach
        mean = math.expm1(x) / (math.exp(at.anchor) + 1)
        truncation = (x * x / 2 * math.exp(x) + math.exp(x) * mean / (1 - mean)) / at.c
        # The score c z - C is rounded to C units; then exp, division and product, and the sum of 2 d weights.
        rounding = (at.anchor + 5 + 2 * d) * u / at.c * math.exp(2 * x) + scale.dot_product
        return Enclosure(round_up(truncation), round_up(rounding), f"products within {within(reach)}")


class Transposition(Block):
    """The transpose: a hard average of d columns, exact when d is a power of two."""

    def __init__(self, function: Function) -> None:
        self.function, self.transport, self.lemma = function, Turn(), TransposeLemma()

    def exact(self, of: Operands) -> Sequence[Sequence[Entry]] | None:
        """Column i is row i of the operand. A mean of three columns, say, is not exact: of a third there is no float."""
        d = len(of.a)
        return None if d & (d - 1) else [[column[i] for column in of.a] for i in range(d)]

    def enclosure(self, scale: Scale) -> Enclosure:
        return Enclosure(0.0, scale.averaging, within(scale.range))


class FittedFunction(Block):
    """A function of a number, or of a vector, as a sum of sigmoids."""

    def __init__(self, function: Function, fit: SigmoidSum, *, head_each: bool = False) -> None:
        self.function, self.fit, self.transport = function, fit, Terms(function.name, fit)
        self.lemma = HeadsLemma(fit) if head_each else TermsLemma(fit)

    def enclosure(self, scale: Scale) -> Enclosure:
        """The fit's own, proven where the function is known on intervals."""
        return self.fit.enclosure(self.function.smooth, scale.unit)


class PointerFunction(Block):
    """Instructions read as data, changed and written back.

    Operand a is an instruction. Operand b is a constant column that names the field: for `incr_pointer` it holds 1 in the
    rows of the field, for `reset_pointer` the new pointer's ±1 bits there; elsewhere it is 0.
    """

    reads_instructions = True

    def __init__(self, name: str) -> None:
        self.formula = self.increment if name == "incr_pointer" else self.reset
        self.function = Function(name, 2, lambda a, b=None: a, lambda a, b: a)
        self.transport, self.lemma = Beside(), ElementwiseLemma(self.formula)

    def reset(self, work: Workspace, a: Expression, b: Expression) -> Expression:
        """The field named by b takes b's bits: a + 2 b clipped to ±1 is b where b is a bit, and a where b is 0.

        Rows beyond the instruction's own stay 0: x = 0 gives 2 * 0.5 - 1 = 0.
        """
        x, one = a + 2 * b, work.one
        return 2 * relu(x + 0.5 * one) - 2 * relu(x - 0.5 * one) - one

    def increment(self, work: Workspace, a: Expression, b: Expression) -> Expression:
        """The field named by b counts on by one, modulo 2^L."""
        one, length, changes = work.one, work.rows("program_counter").size, list[Expression]()
        for field in range(len(POINTERS)):
            bits, chosen = (x[field * length : (field + 1) * length] for x in (a, b))
            following = successor_bits(bits, one)
            # b is 1 in the field that counts on. The terms are integers below 2^(L+3), so this small gate is exact.
            changes += [gated(following[i] - bits[i], one - chosen[i], 2.0 ** (length + 3)) for i in range(length)]
        return a + stack(*changes, 0 * a[len(changes) :])

    def finish(self, work: Workspace, off: Expression) -> Expression:
        return gated(self.formula(work, work.left, work.operand), off, work.gate)

    def exact(self, of: Operands) -> Sequence[Sequence[Entry]]:
        """The instruction, with another pointer in the fields that b names."""
        (a, *_), (b, *_), card = of.a, of.b, of.card
        found = list(a)
        for rows in (of.fields[name] for name in POINTERS):
            if self.formula == self.increment:
                named, field = card.as_word(b[rows][:1]), card.as_word(a[rows])
                found[rows] = card.pick([(TRUE, a[rows]), (named, card.signs(field + 1))], len(a[rows]))
                continue
            for row in range(rows.start, rows.stop):
                cases = [(card.is_number(b[row], sign), [card.constant(sign)]) for sign in (1.0, -1.0)]
                found[row] = card.pick([(TRUE, [a[row]]), *cases], 1)[0]
        return [found]

    def enclosure(self, scale: Scale) -> Enclosure:
        return Enclosure(0.0, 0.0, "all bits")
