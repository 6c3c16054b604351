"""The model of a machine: equation (TF) under torch's settings for it, whatever torch is set to. See `torch_settings`."""

from __future__ import annotations

from punchcard.transformer.model import LoopedTransformer, TransformerLayer
from punchcard.transformer.torch_settings import as_the_equation


class GuardedLayer(TransformerLayer):
    """A layer that computes outside autocast, with full products. Prints as TransformerLayer, its base class."""

    attention = as_the_equation(TransformerLayer.attention)
    attend = as_the_equation(TransformerLayer.attend)
    feed_forward = as_the_equation(TransformerLayer.feed_forward)

    def _get_name(self) -> str:
        return TransformerLayer.__name__


class GuardedTransformer(LoopedTransformer):
    """A model that computes outside autocast, with full products. Prints as LoopedTransformer, its base class."""

    layer_class = GuardedLayer
    forward = as_the_equation(LoopedTransformer.forward)
    stages = as_the_equation(LoopedTransformer.stages)

    def _get_name(self) -> str:
        return LoopedTransformer.__name__
