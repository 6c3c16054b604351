"""`machine.as_layer(program, inputs, outputs)`: a program that runs on a machine, as a layer of another network.

Without gradients the fastest engine runs the program. With gradients a fast run counts the loops until the program halts,
and then the dense equation makes them, in reach of autograd. Items of a batch may halt at different loops: a halted card is
a fixed point of the machine, so all of them make as many loops as the longest.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch._compile import _disable_dynamo
from torch.autograd.function import FunctionCtx

from punchcard.arguments import checked
from punchcard.card.formats import AnyArray, name_of
from punchcard.errors import ArgumentError, ProgramError, PunchcardError, did_you_mean
from punchcard.export.differentiable import DifferentiableLoops, outside_transforms
from punchcard.machines.base import Machine
from punchcard.machines.display_values import RealVariable
from punchcard.machines.result import Result
from punchcard.machines.running import DEFAULT_ENGINE
from punchcard.machines.variation import require_values
from punchcard.transformer.torch_settings import equation_settings


@checked
def as_layer(
    machine: Machine[Any, Any], program: object, inputs: Sequence[str], outputs: Sequence[str], *,
    engine: str = DEFAULT_ENGINE, max_steps: int | None = None, checkpoint: bool = True,
) -> ProgramLayer:
    """Turn a program into an `nn.Module` with gradients, for use as a layer of another network.

        layer = punchcard.as_layer(machine, program, inputs=["A"], outputs=["X"])
        X = layer(torch.tensor([[4.0, 1.0], [2.0, 3.0]]))

    inputs       names of variables that are arguments of the layer; others keep the program's initial values
    outputs      names of variables that the layer returns: one tensor, or a tuple if there are several names
    engine       the engine for calls without gradients. In calls with gradients it counts the loops, and torch applies the
                 model
    max_steps    if the program has not halted after so many instructions, an error is raised. Default: set by the machine
    checkpoint   True: gradient checkpointing, so that memory grows with the square root of the loops

    See docs/gradients.md.
    """
    return ProgramLayer(machine, program, inputs, outputs, engine=engine, max_steps=max_steps, checkpoint=checkpoint)


class ProgramLayer(nn.Module):
    """A program as a layer: a tensor for each name in `inputs`; a tensor, or a tuple where `outputs` has several names.

    A tensor has the shape of its variable, with any leading dimensions before it: a batch. A variable of one column is a
    vector, one of a single number has no dimension. The weights are buffers, so no optimiser sees them.
    """

    card: Tensor

    def __init__(
        self, machine: Machine[Any, Any], program: object, inputs: Sequence[str], outputs: Sequence[str], *,
        engine: str = DEFAULT_ENGINE, max_steps: int | None = None, checkpoint: bool = True,
    ) -> None:
        super().__init__()
        machine.check_type(program)
        self.program = require_values(program, "as_layer")
        self.inputs, self.outputs = tuple(inputs), tuple(outputs)
        self.engine, self.max_steps, self.checkpoint = engine, max_steps, checkpoint
        self._check_names(machine)
        self._take(machine)

    def _take(self, machine: Machine[Any, Any]) -> None:
        """Run on this machine from now on."""
        self.machine = machine
        self.places: Mapping[str, RealVariable] = machine.real_variables(self.program)
        if not self.places:  # bits alone: nothing has a derivative, so no card is needed
            self.register_buffer("card", torch.zeros((), dtype=machine.precision.dtype, device="cpu"), persistent=False)
            return
        self.register_buffer("card", machine.punch(self.program), persistent=False)
        real = torch.zeros_like(self.card, dtype=torch.bool)
        for place in self.places.values():
            for rows in place.rows:
                real[rows, place.columns] = True
        self.loops = DifferentiableLoops(machine.model, real)

    def _check_names(self, machine: Machine[Any, Any]) -> None:
        for what, names in (("inputs", self.inputs), ("outputs", self.outputs)):
            if not names:
                raise ArgumentError(f"as_layer: {what}=[]: give one name or more")
            if twice := next((name for name in names if names.count(name) > 1), None):
                raise ArgumentError(f"as_layer: {what} has {twice!r} twice")
        known = machine.readout(self.program, machine.pack(self.program)).values
        for name in self.inputs:
            self.program.with_values({name: known.get(name, 0)})
        for name in self.outputs:
            if name not in known:
                raise ProgramError(f"as_layer: unknown output {name!r}{did_you_mean(name, known)}; the program has "
                                   f"{', '.join(list(known)[:20]) or 'no names'}")

    def __deepcopy__(self, memo: dict[int, Any]) -> ProgramLayer:
        """A copy on the same machine, which holds compiled code and is never changed from here."""
        memo |= {id(shared): shared for shared in (self.machine, self.program, self.places)}
        copied = memo[id(self)] = type(self).__new__(type(self))
        copied.__dict__ = copy.deepcopy(self.__dict__, memo)
        return copied

    def extra_repr(self) -> str:
        return f"{', '.join(self.inputs)} -> {', '.join(self.outputs)}, on {self.machine!r}"

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> ProgramLayer:
        """`.to(...)` and the like. Another number format is another machine, with constants chosen for that format."""
        before, found = self.card.dtype, fn(self.card)
        if found.dtype != before:
            self._take(self.machine.in_format(name_of(found.dtype)))
        super()._apply(lambda tensor: fn(tensor).to(found.device), recurse)  # type: ignore[no-untyped-call]
        return self

    # Running

    @_disable_dynamo  # a compiled network has a break here; torch.compiler.disable would import the compiler at once
    def forward(self, *given: Tensor) -> Tensor | tuple[Tensor, ...]:
        self._check(given)
        wanted = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in given)
        if wanted and self.places:
            counted = LoopCount()
            fast_run(self, counted, *(tensor.detach() for tensor in given))
            found = self.unrolled(counted.loops, *given)
        else:
            found = fast_run(self, LoopCount(), *given)
        return found[0] if len(self.outputs) == 1 else found

    def _check(self, given: Sequence[Tensor]) -> None:
        if len(given) != len(self.inputs):
            raise ArgumentError(f"the layer takes {len(self.inputs)} tensors, for {', '.join(self.inputs)}, and is given "
                                f"{len(given)}")
        for name, tensor in zip(self.inputs, given, strict=True):
            if not isinstance(tensor, Tensor):
                raise ArgumentError(f"{name}: a tensor is wanted, not a {type(tensor).__name__}")
            if tensor.device != self.card.device:
                raise ArgumentError(f"{name} is on {tensor.device}, the layer on {self.card.device}: move one with .to()")
            if self.places and tensor.dtype != self.card.dtype:
                own, other = name_of(self.card.dtype), name_of(tensor.dtype)
                raise ArgumentError(f"{name} holds {other}, the layer {own}: use layer.to(torch.{other}) or "
                                    f"{name}.to(torch.{own})")
            shape = self.shape(name)
            if tuple(tensor.shape)[tensor.ndim - len(shape):] != shape or tensor.ndim < len(shape):
                raise ArgumentError(f"{name} has the shape {tuple(tensor.shape)}: it must be {shape}, after any leading "
                                    "dimensions of a batch")

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a variable, without those of a batch."""
        return self.places[name].shape if self.places else ()

    def leading(self, given: Sequence[Tensor]) -> tuple[int, ...]:
        """The leading dimensions of a batch."""
        each = [tuple(tensor.shape)[: tensor.ndim - len(self.shape(name))]
                for name, tensor in zip(self.inputs, given, strict=True)]
        try:
            return tuple(torch.broadcast_shapes(*each))  # type: ignore[no-untyped-call]
        except RuntimeError:
            shown = ", ".join(f"{name} {shape}" for name, shape in zip(self.inputs, each, strict=True))
            raise ArgumentError(f"the leading dimensions do not fit each other: {shown}") from None

    def unrolled(self, loops: int, *given: Tensor, checkpoint: bool | None = None) -> tuple[Tensor, ...]:
        """The outputs after so many loops of the dense equation, with derivatives. Forward mode keeps no card anyway."""
        checkpoint = self.checkpoint if checkpoint is None else checkpoint
        leading = self.leading(given)
        card = self.card
        for name, tensor in zip(self.inputs, given, strict=True):
            place = self.places[name]
            rows, columns = place.rows[0], place.columns
            value = tensor.reshape((*tensor.shape[: tensor.ndim - len(place.shape)], rows.stop - rows.start, -1))
            around = (columns.start, card.shape[-1] - columns.stop, rows.start, card.shape[-2] - rows.stop)
            inside = nn.functional.pad(torch.ones_like(value, dtype=torch.bool), around)
            card = torch.where(inside, nn.functional.pad(value, around), card)
        card = self.loops(card.expand(*leading, *card.shape[-2:]), loops, checkpoint=checkpoint)
        return tuple(self._read(card, self.places[name], leading) for name in self.outputs)

    @staticmethod
    def _read(card: Tensor, place: RealVariable, leading: tuple[int, ...]) -> Tensor:
        parts = [card[..., rows, place.columns] for rows in place.rows]
        return torch.stack(parts).sum(0).reshape((*leading, *place.shape))

    def fast(self, given: Sequence[Tensor]) -> tuple[tuple[Tensor, ...], int]:
        """The outputs by the fastest engine, and the loops of the longest run."""
        leading = self.leading(given)
        flat = [tensor.detach().cpu().expand((*leading, *self.shape(name))).reshape((-1, *self.shape(name)))
                for name, tensor in zip(self.inputs, given, strict=True)]
        items = range(flat[0].shape[0])
        programs = [self.program.with_values({name: self._value(name, values[i])
                                              for name, values in zip(self.inputs, flat, strict=True)}) for i in items]
        results = self._run(programs) if programs else ()
        for i, result in enumerate(results):
            if result.fault is not None:
                raise result.fault if len(results) == 1 else PunchcardError(f"item {i} of the batch: {result.fault}")
            if not result.halted:
                where = f"item {i} of the batch" if len(results) > 1 else "the program"
                raise ProgramError(f"{where} has not halted after {result.steps:,} instructions; give as_layer a larger "
                                   "max_steps= if it needs more")
        kind = next((t.dtype for t in given if t.is_floating_point()), torch.int64)
        outputs = tuple(
            torch.from_numpy(np.array([result.memory[name] for result in results], dtype=np.float64))
            .reshape((*leading, *self.shape(name))).to(self.card.device, kind) for name in self.outputs)
        return outputs, max((result.loops for result in results), default=0)

    def _run(self, programs: Sequence[Any]) -> Sequence[Result[Any]]:
        return self.machine.run_batch(programs, engine=self.engine, max_steps=self.max_steps).results

    def _value(self, name: str, value: Tensor) -> AnyArray | int:
        """What a program is given: of real numbers an array, else an integer."""
        if self.places:
            array: AnyArray = value.numpy()
            return array
        number = value.item()
        if number != int(number):
            raise ArgumentError(f"{name} holds {number}: a {self.machine.kind.name} machine computes with integers")
        return int(number)


class LoopCount:
    """How many loops a run took. A field and not a tensor, so that no transform of torch sees it."""

    loops: int = 0


class KeptRun(FunctionCtx):
    """What is kept between a run and its derivative: `like` has shape, format and device of each output."""

    layer: ProgramLayer
    loops: int
    like: list[tuple[torch.Size, torch.dtype, torch.device]]
    saved_tensors: tuple[Tensor, ...]


class FastRun(torch.autograd.Function):
    """A run on the fastest engine. Its derivative is that of the same loops on the dense equation."""

    @staticmethod
    def forward(layer: ProgramLayer, counted: LoopCount, *given: Tensor) -> tuple[Tensor, ...]:
        outputs, counted.loops = layer.fast(given)
        return outputs

    @staticmethod
    def setup_context(ctx: KeptRun, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.layer, counted, *given = inputs
        ctx.loops, ctx.like = counted.loops, [(tensor.shape, tensor.dtype, tensor.device) for tensor in output]
        ctx.save_for_backward(*given)
        ctx.save_for_forward(*given)

    @staticmethod
    def backward(ctx: KeptRun, *cotangents: Tensor) -> tuple[Any, ...]:
        given = outside_transforms(ctx.saved_tensors)
        if not ctx.layer.places:  # of bits: a step function of the inputs, flat between its jumps
            return (None, None, *(torch.zeros_like(tensor) if tensor.is_floating_point() else None for tensor in given))
        with equation_settings(ctx.layer.card.device):
            pull_back = torch.func.vjp(lambda *tensors: ctx.layer.unrolled(ctx.loops, *tensors), *given)[1]
            return (None, None, *pull_back(cotangents))

    @staticmethod
    def jvp(ctx: KeptRun, *tangents: Any) -> tuple[Tensor, ...]:
        given = ctx.saved_tensors
        moved = tuple(torch.zeros_like(tensor) if tangent is None else tangent
                      for tensor, tangent in zip(given, tangents[2:], strict=True))
        if not ctx.layer.places:
            return tuple(torch.zeros(shape, dtype=dtype, device=device) for shape, dtype, device in ctx.like)
        with equation_settings(ctx.layer.card.device):
            pushed: tuple[Tensor, ...] = torch.func.jvp(
                lambda *tensors: ctx.layer.unrolled(ctx.loops, *tensors, checkpoint=False), given, moved)[1]
            return pushed

    @staticmethod
    def vmap(info: object, dims: tuple[int | None, ...], layer: ProgramLayer, counted: LoopCount,
             *given: Tensor) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
        """The mapped dimension becomes the first of the leading ones, of all inputs."""
        fronted = [tensor.unsqueeze(0) if dim is None else tensor.movedim(dim, 0)
                   for tensor, dim in zip(given, dims[2:], strict=True)]
        ranks = [tensor.ndim - len(layer.shape(name)) for name, tensor in zip(layer.inputs, fronted, strict=True)]
        most = max(ranks)
        aligned = [tensor.reshape(tensor.shape[0], *[1] * (most - rank), *tensor.shape[1:])
                   for tensor, rank in zip(fronted, ranks, strict=True)]
        outputs = fast_run(layer, counted, *aligned)
        return outputs, (0,) * len(outputs)


def fast_run(layer: ProgramLayer, counted: LoopCount, *given: Tensor) -> tuple[Tensor, ...]:
    """The outputs of a run on the fastest engine; `counted` gets its loops."""
    outputs: tuple[Tensor, ...] = FastRun.apply(layer, counted, *given)  # type: ignore[no-untyped-call]
    return outputs
