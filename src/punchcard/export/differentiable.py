"""The loops of a machine as a function with derivatives: of any order, forward and reverse, with little memory.

Three things differ from `model(model(...))`, and none of them changes a value. Derivatives too are computed under the
settings of the equation, whatever torch is set to when they are asked for (see `transformer/torch_settings.py`).

relu'(0) = 1/2. Weights set by formula pass a number on as relu(x) - relu(-x), and clear a row by x - relu(x) + relu(-x).
With torch's relu'(0) = 0 the first has the derivative 0 at x = 0, where it is 1, and the second 1, where it is 0. So a
matrix with a zero in it would get a wrong gradient. `torch.maximum` shares the derivative between two equal arguments.

Bits are constants. Program counter, pointers and instructions have no derivative. Between two loops only the places of real
numbers pass one on.

Cards are made again. Reverse mode needs what every layer of every loop computed. Here it keeps the first card of each of
about sqrt(T) segments of T loops, makes the cards of one segment again when it comes to it, and then what one loop computed.
Long runs have segments within segments, so that memory grows with the cube root. `torch.utils.checkpoint` does the same, but
not within `torch.func`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx

from punchcard.errors import PunchcardError
from punchcard.transformer.guarded_model import GuardedLayer
from punchcard.transformer.model import LoopedTransformer, TransformerLayer
from punchcard.transformer.torch_settings import computes_equation, equation_settings

Cards = Callable[[Tensor], Tensor]
"""A function from cards to cards."""
SHORT = 256
"""Up to so many loops there is one level of segments, of which there are 16 at most."""


class FrozenLayer(GuardedLayer):
    """A layer whose weights are buffers, so that no optimiser can change them. They are the model's own tensors."""

    def __init__(self, layer: TransformerLayer) -> None:
        nn.Module.__init__(self)
        self.shape = layer.shape
        for name, weight in layer.named_parameters():
            self.register_buffer(name, weight.detach())

    def activation(self, hidden: Tensor) -> Tensor:
        """relu, with the derivative 1/2 at 0."""
        return torch.maximum(hidden, hidden.new_zeros(()))


class DifferentiableLoops(nn.Module):
    """The loops of a model. `real` marks the entries of the card that have derivatives."""

    real: Tensor

    def __init__(self, model: LoopedTransformer, real: Tensor) -> None:
        super().__init__()
        self.layers = nn.ModuleList(FrozenLayer(layer) for layer in model.layers if isinstance(layer, TransformerLayer))
        self.register_buffer("real", real, persistent=False)

    def loop(self, card: Tensor) -> Tensor:
        """One loop: equation (TF)."""
        card = torch.where(self.real, card, card.detach())
        for layer in self.layers:
            card = layer(card)
        return card

    def forward(self, card: Tensor, loops: int, *, checkpoint: bool = True) -> Tensor:
        """The card after so many loops; with `checkpoint`, for the derivative most cards are made again."""
        if not checkpoint and computes_equation(card.device):
            return plainly_differentiated(self._in_turn(self.loop, loops, card))
        if not checkpoint:
            return self._in_turn(partial(recomputed, self.loop), loops, card)
        return self._in_segments(loops, 1 if loops <= SHORT else 2, card)

    def _in_segments(self, loops: int, levels: int, card: Tensor) -> Tensor:
        """So many loops, in segments that are made again; each in segments of its own, down to single loops."""
        if levels == 0:
            return self._in_turn(partial(recomputed, self.loop), loops, card)
        size = max(1, round(loops ** (levels / (levels + 1))))
        for start in range(0, loops, size):
            card = recomputed(partial(self._in_segments, min(size, loops - start), levels - 1), card)
        return card

    @staticmethod
    def _in_turn(loop: Cards, loops: int, card: Tensor) -> Tensor:
        for _ in range(loops):
            card = loop(card)
        return card


class KeptCard(FunctionCtx):
    """What is kept between a function of a card and its derivative."""

    function: Cards
    saved_tensors: tuple[Tensor, ...]


class Recomputed(torch.autograd.Function):
    """A function of a card of which nothing but the card is kept; what its derivative needs is computed again."""

    generate_vmap_rule = True

    @staticmethod
    def forward(function: Cards, card: Tensor) -> Tensor:
        return function(card)

    @staticmethod
    def setup_context(ctx: KeptCard, inputs: tuple[Cards, Tensor], output: Tensor) -> None:
        ctx.function, card = inputs
        ctx.save_for_backward(card)
        ctx.save_for_forward(card)

    @staticmethod
    def backward(ctx: KeptCard, *cotangents: Tensor) -> tuple[None, Tensor]:
        given = outside_transforms(ctx.saved_tensors)
        with equation_settings(given[0].device):
            pull_back = torch.func.vjp(ctx.function, *given)[1]
            return None, pull_back(*cotangents)[0]

    @staticmethod
    def jvp(ctx: KeptCard, _: None, tangent: Tensor) -> Tensor:
        with equation_settings(tangent.device):
            pushed: Tensor = torch.func.jvp(ctx.function, ctx.saved_tensors, (tangent,))[1]
            return pushed


def recomputed(function: Cards, card: Tensor) -> Tensor:
    """What a function makes of a card, and for the derivative makes again."""
    made: Tensor = Recomputed.apply(function, card)  # type: ignore[no-untyped-call]
    return made


class PlainlyDifferentiated(torch.autograd.Function):
    """A card as it is. Torch computes its derivative by itself, under the settings of whoever asks for it."""

    generate_vmap_rule = True

    @staticmethod
    def forward(card: Tensor) -> Tensor:
        return card.view_as(card)

    @staticmethod
    def setup_context(ctx: object, inputs: tuple[Tensor], output: Tensor) -> None:
        pass

    @staticmethod
    def backward(ctx: object, cotangent: Tensor) -> Tensor:
        if not computes_equation(cotangent.device):
            raise PunchcardError("the gradient is asked for under autocast or with narrower float32 products, and the "
                                 "loops were made without: call backward as forward was called, or use checkpoint=True")
        return cotangent

    @staticmethod
    def jvp(ctx: object, tangent: Tensor) -> Tensor:
        return tangent.view_as(tangent)


def plainly_differentiated(card: Tensor) -> Tensor:
    """A card whose derivative is refused under settings that are not the equation's."""
    checked: Tensor = PlainlyDifferentiated.apply(card)  # type: ignore[no-untyped-call]
    return checked


def outside_transforms(saved: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Tensors that were kept, for use in a new transform of `torch.func`: any operation rids them of one that has ended."""
    return tuple(tensor.view_as(tensor) for tensor in saved)
