"""A function of arrays as a layer of another network: tensors in the shapes that the function has them in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor, nn

from punchcard.errors import ArgumentError
from punchcard.export.layer import ProgramLayer
from punchcard.python.arrays.values import matrix_shape


@dataclass(frozen=True)
class Argument:
    """A parameter or a result: its shape in the function, and whether the program has it transposed."""

    name: str
    shape: tuple[int, ...]
    turned: bool

    def into(self, tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
        """A tensor of the function as the program's layer takes it, whose shape is given."""
        leading = tensor.shape[: tensor.ndim - len(self.shape)]
        if tuple(tensor.shape[tensor.ndim - len(self.shape):]) != self.shape or tensor.ndim < len(self.shape):
            raise ArgumentError(f"{self.name} has the shape {tuple(tensor.shape)}: it must be {self.shape}, after any "
                                "leading dimensions of a batch")
        stored = tensor.reshape((*leading, *matrix_shape(self.shape)))
        return (stored.mT if self.turned else stored).reshape((*leading, *shape))

    def out_of(self, tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
        """The other way."""
        leading = tensor.shape[: tensor.ndim - len(shape)]
        rows, columns = matrix_shape(self.shape)
        stored = tensor.reshape((*leading, columns, rows) if self.turned else (*leading, rows, columns))
        return (stored.mT if self.turned else stored).reshape((*leading, *self.shape))


class ArrayLayer(nn.Module):
    """A function of arrays. `program` is the layer of the FLEQ program that it was compiled to."""

    def __init__(
        self, program: ProgramLayer, arguments: Sequence[Argument], results: Sequence[Argument], *, one: bool
    ) -> None:
        super().__init__()
        self.program, self.arguments, self.results, self.one = program, tuple(arguments), tuple(results), one

    def forward(self, *given: Tensor) -> Tensor | tuple[Tensor, ...]:
        if len(given) != len(self.arguments):
            raise ArgumentError(f"the layer takes {len(self.arguments)} tensors, for "
                                f"{', '.join(argument.name for argument in self.arguments)}, and is given {len(given)}")
        shapes = [self.program.shape(name) for name in self.program.inputs]
        found = self.program(*(argument.into(tensor, shape) for argument, tensor, shape in
                               zip(self.arguments, given, shapes, strict=True)))
        outputs = found if isinstance(found, tuple) else (found,)
        by_name = dict(zip(self.program.outputs, outputs, strict=True))
        values = tuple(result.out_of(by_name[result.name], self.program.shape(result.name)) for result in self.results)
        return values[0] if self.one else values
