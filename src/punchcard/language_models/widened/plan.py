"""All that the weights in front of a base depend on: sizes, the tokenizer, and two numbers of the base. Never on a sum."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from punchcard.card.layout import Layout
from punchcard.language_models.widened.compiler import HeadShape
from punchcard.language_models.widened.coordinates import coordinates
from punchcard.language_models.widened.distances import Distances, distances
from punchcard.language_models.widened.front import FrontLayer, front_layers
from punchcard.language_models.widened.norms import WidenedNorm
from punchcard.language_models.widened.vocabulary import SumVocabulary

HEADS = 5
"""Heads that the front layers need."""


@dataclass(frozen=True)
class BaseSizes:
    """The sizes of a base, by the names of its configuration."""

    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    max_position_embeddings: int
    rms_norm_eps: float

    @classmethod
    def of(cls, config: Any) -> BaseSizes:
        return cls(**{field.name: getattr(config, field.name) for field in fields(cls)})


@dataclass(frozen=True)
class Front:
    """What is in front of a base."""

    layout: Layout
    layers: list[FrontLayer]
    shape: HeadShape
    distances: Distances
    norm: WidenedNorm
    words: SumVocabulary
    height: float

    def sizes(self, base: BaseSizes) -> dict[str, Any]:
        """The sizes of the widened model, as far as they are not the base's."""
        units = max(base.intermediate_size, *(len(layer.units) + 1 for layer in self.layers))  # one takes the ballast away
        return {"hidden_size": self.norm.width, "intermediate_size": units, "num_attention_heads": self.shape.count,
                "num_key_value_heads": self.shape.keys, "num_hidden_layers": base.num_hidden_layers + len(self.layers),
                "rms_norm_eps": self.norm.widened_epsilon}


def planned_front(
    base: BaseSizes, rotary: Any, digits: int, largest: float, words: SumVocabulary, height: float,
) -> Front:
    """The front for a base: `rotary` are its positions, `largest` is the largest square sum of an embedding, and `height`
    what the logit of an answer's token gets."""
    layout = coordinates(digits)
    group = base.num_attention_heads // base.num_key_value_heads
    count = max(base.num_attention_heads, group * -(-HEADS // group))
    width = base.hidden_size + layout.width
    width += -width % count  # a configuration is refused whose heads do not divide its width
    found = distances(rotary.inv_freq.double().tolist(), base.max_position_embeddings, digits + 1)
    return Front(layout, front_layers(layout, digits), HeadShape(base.head_dim, count, group,
                 float(rotary.attention_scaling)), found, WidenedNorm(base.hidden_size, width, base.rms_norm_eps, largest),
                 words, height)
