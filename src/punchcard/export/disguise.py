"""Models that compute the same and hide how: a rotated residual stream, idle rows and heads, noise on the weights.

With an orthogonal R, rows x become x' = R x, and the same equation holds for them with other weights:

    K' = K R^T    Q' = Q R^T    V' = R V R^T    W1' = W1 R^T    b1' = b1    W2' = R W2    b2' = R b2

Scores, hidden units and all that the model computes stay as they were: only the basis of the rows is another. A card goes
in by `readin` (R, without the columns of idle rows, which begin as 0) and comes out by `readout`, its transpose.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from punchcard.arguments import checked
from punchcard.errors import DisguiseError
from punchcard.export.agreement import Agreement, Disagreement, compare_loops
from punchcard.export.idle_parts import widened
from punchcard.export.orthogonal import Rotation, rotation
from punchcard.machines.base import Machine
from punchcard.transformer.expression import Array
from punchcard.transformer.weights import NAMES, LayerArrays, Weights

if TYPE_CHECKING:
    from torch import Tensor

    from punchcard.transformer.model import LoopedTransformer

DTYPE = "float64"
MOST_IDLE = 1 << 12


@checked
@dataclass(frozen=True)
class Disguise:
    """What hides a model's basis.

    rotation     "none", "permuted", "exact" or "random": see `orthogonal.py`
    idle_rows    rows that the machine does not use, beside its own
    idle_heads   heads in each layer that has heads, which write idle rows only
    noise        the standard deviation of what is added to each weight w, times the larger of 1 and |w|
    seed         of everything random here
    """

    rotation: Rotation = "none"
    idle_rows: int = 0
    idle_heads: int = 0
    noise: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("idle_rows", "idle_heads"):
            if not 0 <= getattr(self, name) <= MOST_IDLE:
                raise DisguiseError(f"{name}={getattr(self, name)}: it must be 0 to {MOST_IDLE}")
        if self.idle_heads and not self.idle_rows:
            raise DisguiseError(f"idle_heads={self.idle_heads} have no rows to write to: ask for idle_rows as well")
        if not 0 <= self.noise < float("inf"):
            raise DisguiseError(f"noise={self.noise}: it must be 0 or more")
        if self.seed < 0:
            raise DisguiseError(f"seed={self.seed}: it must be 0 or more")

    @property
    def is_none(self) -> bool:
        """Whether nothing is hidden."""
        return self.rotation == "none" and not self.idle_rows and not self.noise


@dataclass(frozen=True)
class Order:
    """Where the heads and hidden units of a layer went: place i holds the one that had the number `heads[i]`.

    Idle ones have the last numbers.
    """

    heads: tuple[int, ...]
    units: tuple[int, ...]


class Disguised:
    """A disguised model, in float64, and the key to it."""

    def __init__(self, machine: Machine[Any, Any], disguise: Disguise) -> None:
        self.machine, self.disguise = machine, disguise
        generator = np.random.default_rng(disguise.seed)
        width = machine.layout.width + disguise.idle_rows
        self.rotation = rotation(disguise.rotation, width, generator)
        self.readin: Array = np.ascontiguousarray(self.rotation[:, : machine.layout.width])
        self.readout: Array = np.ascontiguousarray(self.readin.T)
        self.orders: list[Order] = []
        layers = [self._layer(layer, width, generator) for layer in machine.weights.layers]
        self.weights = Weights(width, DTYPE, layers)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name} {value}" for name, value in asdict(self.disguise).items())
        return f"<Disguised {self.machine.kind.name} machine: {shown}>"

    def _layer(self, layer: LayerArrays, width: int, generator: np.random.Generator) -> LayerArrays:
        plain, turn = widened(layer, width, self.disguise.idle_heads, generator), self.rotation
        order = Order(tuple(range(plain.heads)), tuple(range(plain.hidden)))
        if not self.disguise.is_none:
            order = Order(*(tuple(generator.permutation(count).tolist()) for count in (plain.heads, plain.hidden)))
        self.orders.append(order)
        heads, units = np.array(order.heads, dtype=np.intp), np.array(order.units, dtype=np.intp)
        turned = LayerArrays(
            key=(plain.key @ turn.T)[heads], query=(plain.query @ turn.T)[heads],
            value=(turn @ plain.value @ turn.T)[heads], temperature=plain.temperature[heads],
            w1=(plain.w1 @ turn.T)[units], b1=plain.b1[units], w2=(turn @ plain.w2)[:, units], b2=turn @ plain.b2)
        if not self.disguise.noise:
            return turned
        return LayerArrays(*(_noisy(getattr(turned, name), self.disguise.noise, generator) for name in NAMES))

    @property
    def model(self) -> LoopedTransformer:
        """The disguised model, the same equation."""
        return self.weights.module

    @cached_property
    def _ways(self) -> tuple[Tensor, Tensor]:
        import torch

        return torch.from_numpy(self.readin), torch.from_numpy(self.readout)

    def enter(self, card: Tensor) -> Tensor:
        """A card of the machine as the disguised model takes it."""
        return self._ways[0] @ card.to(self._ways[0].dtype)

    def leave(self, card: Tensor) -> Tensor:
        """The machine's card from the disguised model's."""
        return self._ways[1] @ card

    def check(self, programs: Sequence[Any], loops: int) -> Agreement:
        """Run programs beside the interpreter; a disguise that breaks one is refused."""
        try:
            return compare_loops(self.machine, programs, self.model, self.enter, self.leave, loops)
        except Disagreement as disagreement:
            raise DisguiseError(f"{_shown(self.disguise)}: {disagreement}: {_advice(self.disguise)}") from None


@checked
def disguised(machine: Machine[Any, Any], program: object, disguise: Disguise, *, loops: int = 100) -> Disguised:
    """A disguised model of a machine that still runs a program as the interpreter does, for so many loops or to its halt."""
    machine.check_type(program)
    found = Disguised(machine, disguise)
    found.check([program], loops)
    return found


def _noisy(array: Array, size: float, generator: np.random.Generator) -> Array:
    found: Array = array + size * np.maximum(1.0, np.abs(array)) * generator.standard_normal(array.shape)
    return found


def _shown(disguise: Disguise) -> str:
    changed: dict[str, Callable[[Any], str]] = {
        "rotation": repr, "idle_rows": str, "idle_heads": str, "noise": "{:g}".format}
    return ", ".join(f"{name}={show(getattr(disguise, name))}" for name, show in changed.items()
                     if getattr(disguise, name) not in (0, "none")) or "no disguise"


def _advice(disguise: Disguise) -> str:
    if disguise.noise:
        return f"use less noise, such as {disguise.noise / 10:g}, or fewer loops"
    return "use another rotation, or fewer loops"
