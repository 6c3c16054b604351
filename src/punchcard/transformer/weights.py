"""The weights of a looped transformer: arrays first, and a module on demand.

The equation itself is `model.py`, which needs torch. To describe, save or compile a model, its numbers are enough.
"""

from __future__ import annotations

import hashlib
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from punchcard.card.formats import FORMATS, AnyArray, NumberFormat, as_array, name_of
from punchcard.card.layout import Layout
from punchcard.formatting import plural

if TYPE_CHECKING:
    from torch import Tensor

    from punchcard.transformer.model import LoopedTransformer

Model: TypeAlias = "LoopedTransformer | Weights"
"""What an engine runs."""


@dataclass(frozen=True)
class LayerArrays:
    """The matrices of one layer in the model's number format, with the names and shapes of the module's parameters."""

    key: AnyArray
    query: AnyArray
    value: AnyArray
    temperature: AnyArray
    w1: AnyArray
    b1: AnyArray
    w2: AnyArray
    b2: AnyArray

    @property
    def heads(self) -> int:
        return len(self.key)

    @property
    def key_size(self) -> int:
        return int(self.key.shape[1])

    @property
    def hidden(self) -> int:
        return len(self.w1)


NAMES = tuple(each.name for each in fields(LayerArrays))


MOST_COMPARED = 1 << 24
"""Bytes of weights of which a copy is kept, to see whether somebody has changed them."""


@dataclass(eq=False, repr=False)
class Weights:
    """The weights of a model. Once there is a module, its parameters are the weights, and may be changed in place."""

    width: int
    dtype: str
    _layers: Sequence[LayerArrays]
    names: dict[str, str] = field(default_factory=dict)
    """Names for the numbers, such as digests, by who made them."""
    _named: list[AnyArray] = field(default_factory=list)
    """What these numbers were, for arrays that may be changed."""

    @classmethod
    def of(cls, model: Model) -> Weights:
        """Those of a module, which stays the one that holds them."""
        if isinstance(model, Weights):
            return model
        found = cls(model.width, name_of(model.dtype), ())
        found.__dict__["module"] = model
        return found

    @property
    def format(self) -> NumberFormat:
        """The number format."""
        return FORMATS[self.dtype]

    @property
    def has_module(self) -> bool:
        """Whether the module was made."""
        return "module" in self.__dict__

    @property
    def is_observed(self) -> bool:
        """Whether forward hooks listen at a layer (see `punchcard.trace`)."""
        return self.has_module and any(layer._forward_hooks for layer in self.module.layers)

    @property
    def layers(self) -> tuple[LayerArrays, ...]:
        """The layers as they are now."""
        if not self.has_module:
            return tuple(self._layers)
        return tuple(LayerArrays(*(as_array(layer.get_parameter(name)) for name in NAMES)) for layer in self.module.layers)

    @cached_property
    def module(self) -> LoopedTransformer:
        """The model as an `nn.Module`; from now on it holds the weights."""
        import torch

        from punchcard.transformer.guarded_model import GuardedTransformer
        from punchcard.transformer.model import LayerShape

        shapes = [LayerShape(layer.heads, layer.key_size, layer.hidden) for layer in self._layers]
        with torch.device("cpu"):  # whatever torch's default is
            model = GuardedTransformer(self.width, shapes, getattr(torch, self.dtype))
        model.load_state_dict({name: shared_tensor(array) for name, array in self.state()})
        return model

    def state(self) -> Iterator[tuple[str, AnyArray]]:
        """All arrays, by the names and in the order of the module's parameters."""
        for number, layer in enumerate(self.layers):
            for name in NAMES:
                yield f"layers.{number}.{name}", getattr(layer, name)

    def __repr__(self) -> str:
        total, nonzero = self.parameter_count()
        layers = f"{plural(len(self.layers), 'layer')} for {plural(self.width, 'row')}"
        return f"<Weights of {layers}, {self.dtype}: {total:,} parameters, {nonzero:,} not zero>"

    def parameter_count(self) -> tuple[int, int]:
        """How many parameters there are, and how many are not zero."""
        arrays = [array for _, array in self.state()]
        return sum(a.size for a in arrays), sum(int(np.count_nonzero(a)) for a in arrays)

    def flaw(self) -> str | None:
        """The first weight that is not finite, of a shape that does not fit, or of a module that was cast to another number
        format, in words; or None.
        """
        layers: Iterable[Any] = self.module.layers if self.has_module else self._layers
        for number, layer in enumerate(layers):
            heads, size, hidden = len(layer.key), layer.key.shape[1], len(layer.w1)
            shapes = {"key": (heads, size, self.width), "query": (heads, size, self.width),
                      "value": (heads, self.width, self.width), "temperature": (heads,), "w1": (hidden, self.width),
                      "b1": (hidden, 1), "w2": (self.width, hidden), "b2": (self.width, 1)}
            for name, shape in shapes.items():
                found = tuple(getattr(layer, name).shape)
                if found != shape:
                    return f"layers.{number}.{name} has the shape {found}, not {shape}"
        held = self.module.state_dict().items() if self.has_module else self.state()
        with np.errstate(all="ignore"):
            for name, values in held:
                if self.has_module and name_of(values.dtype) != self.dtype:
                    return f"{name} is in {name_of(values.dtype)}, and the model in {self.dtype}"
                # a sum is quicker, and may overflow; a tensor on the device "meta" has no numbers
                if getattr(values, "is_meta", False) or math.isfinite(float(values.sum())):
                    continue
                array = as_array(values)
                for place in np.argwhere(~np.isfinite(array))[:1].tolist():
                    return f"{name}{place} is {array[tuple(place)]}"
        return None

    def freeze(self) -> None:
        """Make the arrays read-only. A module that is made of them may be changed."""
        for layer in self._layers:
            for name in NAMES:
                getattr(layer, name).setflags(write=False)

    @property
    def is_frozen(self) -> bool:
        """Whether the weights cannot have been changed since they were made."""
        arrays = (getattr(layer, name) for layer in self._layers for name in NAMES)
        return not self.has_module and not any(array.flags.writeable for array in arrays)

    def name(self, by: str, make: Callable[[], str]) -> str:
        """A name for the numbers as they are now, as `make` gives it; as long as nobody changes them, it is made once."""
        if not (self.is_frozen or self._is_as_named()):
            return make()
        if by not in self.names:
            self.names[by] = make()
        return self.names[by]

    def _is_as_named(self) -> bool:
        """Whether the arrays are, bit by bit, what all names are of. Comparing them is quicker than a digest."""
        arrays = [] if self.has_module else [array for _, array in self.state()]
        if not 0 < sum(array.nbytes for array in arrays) <= MOST_COMPARED:
            return False
        bits = [array.view(f"u{array.itemsize}") for array in arrays]
        if len(bits) != len(self._named) or not all(map(np.array_equal, bits, self._named)):
            self._named = [each.copy(order="K") for each in bits]
            self.names.clear()
        return True

    def digest(self) -> bytes:
        """A name for the weights as they are now."""
        return bytes.fromhex(self.name("digest", self._digest))

    def _digest(self) -> str:
        found = hashlib.sha256()
        for _, array in self.state():
            found.update(repr(array.shape).encode())
            found.update(raw_bytes(array, self.dtype))
        return found.hexdigest()


def active_columns(model: Model, layout: Layout) -> NDArray[np.intp]:
    """The columns of the regions in which a row that some head matches by may change: where the computation happens."""
    matched = np.zeros(layout.width, dtype=bool)
    for layer in Weights.of(model).layers:
        matched |= layer.key.any(axis=(0, 1)) | layer.query.any(axis=(0, 1))
    regions = {region for block in layout.blocks if matched[layout.rows(block.name)].any() for region in block.changes}
    busy = np.zeros(layout.columns, dtype=bool)
    for region in regions:
        busy[layout.region(region)] = True
    return np.flatnonzero(busy)


def raw_bytes(array: AnyArray, dtype: str) -> bytes:
    """The numbers as they lie in memory; of bfloat16, which is stored as float32, the half that counts."""
    if dtype == "bfloat16":
        array = (np.ascontiguousarray(array, dtype=np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return np.ascontiguousarray(array).tobytes()


def shared_tensor(array: AnyArray) -> Tensor:
    """An array as a tensor in the same memory, for who only reads it: torch warns of arrays that are frozen."""
    import torch

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given NumPy array is not writable")
        return torch.as_tensor(array, device="cpu")


def as_module(model: Model) -> LoopedTransformer:
    """The module of any kind of model."""
    return model.module if isinstance(model, Weights) else model

