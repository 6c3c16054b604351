"""Images as one batch of cards beside the interpreter: all cells, the program counter and the events after every loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from punchcard.engines import Controls, prepare
from punchcard.machines.von_neumann.isa import Image
from punchcard.machines.von_neumann.machine import VonNeumannMachine
from punchcard.machines.von_neumann.oracle import ImageInterpreter


@dataclass(frozen=True)
class ImageComparison:
    """How many instructions were compared, how many stored into the very next one, and what went wrong."""

    steps: int
    stores_ahead: int
    mismatches: tuple[str, ...]


def compare(
    machine: VonNeumannMachine, images: Sequence[Image], max_steps: int, engine: str = "dense",
) -> ImageComparison:
    """A batch has no host, so an image is compared until it stops or comes to a port."""
    sizes, layout = machine.sizes, machine.layout
    live = {number: ImageInterpreter(image, sizes.word_bits, sizes.memory, dialect=machine.dialect)
            for number, image in enumerate(images)}
    wrong: list[str] = []
    steps = ahead = 0

    def look(loop: int, cards: Tensor) -> None:
        nonlocal steps, ahead
        if loop > machine.design.warm_up:
            for interpreter in live.values():
                _, destination = interpreter.operands()
                interpreter.step()
                steps += 1
                ahead += 0 <= destination - interpreter.program_counter < 3
        if not live:
            return
        chosen = cards[list(live)]
        cells, counters = machine.design.read(sizes, layout, chosen)
        expected = torch.tensor([interpreter.cells for interpreter in live.values()])
        same = (cells == expected).all(dim=-1)
        events = (layout.get(chosen, "event", "scratchpad")[..., :3, 0] > 0).any(dim=-1).tolist()
        for row, (number, interpreter) in enumerate(list(live.items())):
            stops, at_port = interpreter.stop is not None, interpreter.waits
            if not same[row]:
                wrong.append(f"image {number}, loop {loop}: the memory is {cells[row].tolist()}, not {interpreter.cells}")
            elif counters[row] != interpreter.program_counter:
                wrong.append(f"image {number}, loop {loop}: the program counter is {int(counters[row])}, "
                             f"not {interpreter.program_counter}")
            elif events[row] != stops and not at_port:
                wrong.append(f"image {number}, loop {loop}: event is {events[row]}, not {stops}")
            elif not (stops or at_port):
                continue
            del live[number]

    cards = torch.stack([machine.punch(image) for image in images])
    loops = machine.design.warm_up + max_steps
    runner = prepare(engine, machine.model, layout, cards, loops=loops, fall_back=True, cache=machine.engine_cache)
    runner.run(loops, Controls(watch=look))
    return ImageComparison(steps, ahead, tuple(wrong))
