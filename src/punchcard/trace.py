"""Recording a model: the card after each layer, by row and region name, and what attention moved where.

    with observe(machine.model, machine.layout) as seen:
        machine.run(program)
    seen[0]["pointer.a", "scratchpad"]     the instruction that the first layer of the first loop read
    seen[0].attention(0)                   that layer's attention matrix: column j takes from column i
    seen[0].moves(0)                       who took from whom in that head, by name, without the columns that read themselves

Observation uses torch's forward hooks. Models and engines know nothing of it, and run the same with or without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn

from punchcard.arguments import checked
from punchcard.card.layout import Layout
from punchcard.errors import PunchcardError, printable
from punchcard.formatting import join_some
from punchcard.transformer.model import LoopedTransformer, TransformerLayer

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Move(NamedTuple):
    """A column that takes from another in one head: what both are called, the weight, and their numbers."""

    source: str
    target: str
    weight: float
    source_column: int
    target_column: int

    def __repr__(self) -> str:
        return printable(f"<{self.target} takes {self.weight:.3g} of {self.source}>")


@checked
@dataclass(frozen=True)
class Snapshot:
    """One layer of one loop (both counted from 0): the card before it and after it."""

    loop: int
    layer: int
    before: Tensor
    after: Tensor
    layout: Layout
    module: TransformerLayer
    names: Callable[[int], str]

    def __getitem__(self, place: tuple[str, str]) -> Tensor:
        """The entries after the layer at a row block and a region."""
        rows, region = place
        return self.layout.get(self.after, rows, region)

    def changed(self) -> list[tuple[str, str]]:
        """The (row block, region) pairs in which the layer changed an entry."""
        return [
            (block.name, region.name)
            for block in self.layout.blocks
            for region in self.layout.regions
            if not torch.equal(self[block.name, region.name],
                               self.layout.get(self.before, block.name, region.name))
        ]

    def attention(self, head: int) -> Tensor:
        """The attention matrix of a head (of a layer's snapshot, not a loop's)."""
        heads = self.module.shape.heads
        if head not in range(heads):
            raise PunchcardError(f"head {head}: layer {self.layer} has {heads}, counted from 0")
        with torch.no_grad():
            return self.module.attention(self.before, head)

    def moves(self, head: int, threshold: float = 0.25) -> list[Move]:
        """Wherever a column of one card takes from another: `Move(source="memory[3]", target="scratchpad", ...)`."""
        weights = self.attention(head)
        return [Move(self.names(i), self.names(j), float(weights[i, j]), i, j)
                for i, j in (weights > threshold).nonzero().tolist() if i != j]

    def plot(self, *, title: str = "", columns: int = 48, rows: Sequence[str] | None = None) -> Figure:
        """A picture of the card after the layer, with what the layer changed in another colour (see `Machine.plot`)."""
        from punchcard.viewer.pictures import card_figure

        return card_figure(self.layout, self.after, before=self.before, names=self.names, columns=columns, rows=rows,
                           title=title or f"after {self.place}")

    def plot_attention(self, head: int, *, title: str = "", threshold: float = 0.25) -> Figure:
        """A picture of who takes from whom in a head: arrows, and for a small card the matrix."""
        from punchcard.viewer.pictures import attention_figure

        return attention_figure(
            self.moves(head, threshold), self.attention(head).numpy(), names=self.names,
            title=title or f"{self.place}, head {head + 1}: who takes from whom")

    @property
    def place(self) -> str:
        """Where it is, as the page and the story count: from 1."""
        return f"loop {self.loop + 1}, layer {self.layer + 1}"

    def __repr__(self) -> str:
        places = join_some([f"{rows} in {region}" for rows, region in self.changed()], most=4)
        return (f"<Snapshot: loop {self.loop}, layer {self.layer}, card of {self.layout.width} rows and "
                f"{self.layout.columns} columns; changed {places or 'nothing'}>")


class Observed(list[Snapshot]):
    """What was seen, in order."""

    def at(self, loop: int, layer: int) -> Snapshot:
        """The snapshot of a layer in a loop, both counted from 0."""
        for snapshot in self:
            if (snapshot.loop, snapshot.layer) == (loop, layer):
                return snapshot
        raise PunchcardError(f"loop {loop}, layer {layer} was not observed: there are {self._summary()}")

    def _summary(self) -> str:
        if not self:
            return "no snapshots"
        return f"{len(self):,} snapshots, loops {self[0].loop} to {self[-1].loop}, layers 0 to {max(s.layer for s in self)}"

    def plot_attention(self, layer: int, head: int, *, loop: int = 0, title: str = "", threshold: float = 0.25) -> Figure:
        """A picture of who takes from whom in a head of a layer, in a loop (see `Snapshot.plot_attention`)."""
        return self.at(loop, layer).plot_attention(head, title=title, threshold=threshold)

    def __repr__(self) -> str:
        return f"<Observed: {self._summary()}>"


@checked
@contextmanager
def observe(
    model: LoopedTransformer,
    layout: Layout,
    callback: Callable[[Snapshot], None] | None = None,
    *,
    layers: bool = True,
    names: Callable[[int], str] | None = None,
) -> Iterator[Observed]:
    """A context manager that records a `Snapshot` of every layer in every loop, with forward hooks.

        with punchcard.observe(machine.model, machine.layout) as seen:
            machine.run(program, max_steps=1)
        seen.at(loop=0, layer=1).changed()

    layout     the names of the card's rows and columns: `machine.layout`
    callback   called with each snapshot; the snapshots are then not collected
    layers     False: one snapshot for each loop instead of one for each layer
    names      function from a column's number to its name, default: region and number. `machine.observe(program)` uses the
               names in the program

    The value of the `with` statement is `Observed`, a list of snapshots.
    """
    seen = Observed()
    begin: list[Tensor] = []
    loops = [0] * len(model.layers)
    last = len(model.layers) - 1

    def hook(number: int) -> Callable[[nn.Module, tuple[Any, ...], Tensor], None]:
        def record(module: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> None:
            loop, loops[number] = loops[number], loops[number] + 1
            if number == 0:
                begin[:] = [inputs[0]]
            if (layers or number == last) and isinstance(module, TransformerLayer):
                before = inputs[0] if layers else begin[0]
                snapshot = Snapshot(loop, number, before, output, layout, module, names or layout.column_name)
                (callback or seen.append)(snapshot)

        return record

    handles = [layer.register_forward_hook(hook(number)) for number, layer in enumerate(model.layers)]
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()
