"""Products, of matrices and entry by entry, up to a reach of their own, whatever the machine's range.

The soft product's error is relative to the largest product that c is chosen for. A machine's own reach grows with its
range; a program that keeps its products small, by shifts, can have a wide range and exact products at once.
"""

from __future__ import annotations

from dataclasses import replace

from punchcard.machines.fleq.blocks.bench import Bench
from punchcard.machines.fleq.blocks.block import MatrixProduct, Scale
from punchcard.machines.fleq.blocks.lemmas import DiagonalProductLemma, LemmaBench, MirrorProductLemma
from punchcard.machines.fleq.blocks.product import DiagonalProduct, Product, best_c, rounding, truncation
from punchcard.machines.fleq.blocks.transport import Share
from punchcard.machines.fleq.functions import Function
from punchcard.transformer.build import Part


class ReachedProduct(MatrixProduct):
    """a^T b with c chosen for products up to `reach`."""

    def __init__(self, function: Function, heads: int, reach: float) -> None:
        super().__init__(function, heads)
        self.reach = reach
        self.transport = _Transport(heads, reach)
        self.lemma = _Lemma(heads, reach)

    def bound(self, scale: Scale) -> float:
        """For products within the reach. Of scalars the product is rounded once; of others, see `Scale.dot_product`."""
        c = best_c(self.reach, self.heads, scale.unit)
        soft = truncation(self.reach, c, self.heads) + rounding(c, self.heads, scale.unit)
        return soft + (2 * scale.unit * self.reach if scale.size == 1 else scale.dot_product)


class ReachedEntrywise(ReachedProduct):
    """The product of vectors entry by entry, with c chosen for products up to `reach`."""

    def __init__(self, function: Function, heads: int, reach: float) -> None:
        super().__init__(function, heads, reach)
        self.transport = _DiagonalTransport(heads, reach)
        self.lemma = _DiagonalLemma(heads, reach)


class _Transport(Product):
    def __init__(self, heads: int, reach: float) -> None:
        super().__init__(heads)
        self.reach = reach

    def shares(self, bench: Bench) -> list[Share]:
        return super().shares(replace(bench, reach=self.reach))


class _Lemma(MirrorProductLemma):
    def __init__(self, heads: int, reach: float) -> None:
        super().__init__(heads)
        self.reach = reach

    def layers(self, bench: LemmaBench) -> list[Part]:
        return super().layers(replace(bench, reach=self.reach))


class _DiagonalTransport(DiagonalProduct, _Transport):
    """Keys and values of the one, the reach of the other."""


class _DiagonalLemma(DiagonalProductLemma, _Lemma):
    """Layers of the one, the reach of the other."""
