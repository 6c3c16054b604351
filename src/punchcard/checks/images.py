"""The von Neumann machine and the plain interpreter side by side, compared after every loop."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from punchcard.card.encoding import encode_unsigned
from punchcard.engines import find_engine
from punchcard.machines.von_neumann.isa import Image, Read, Write
from punchcard.machines.von_neumann.machine import Result, VonNeumannMachine
from punchcard.machines.von_neumann.oracle import Interpreter

TOLERANCE = 0.25
"""How far from ±1 a bit may be, as everywhere (see `card.encoding`)."""


@dataclass(frozen=True)
class ImageComparison:
    """How many instructions were compared, how many stored into the very next one, and what went wrong."""

    steps: int
    stores_ahead: int
    mismatches: tuple[str, ...]

    @property
    def agrees(self) -> bool:
        return not self.mismatches


def compare(
    machine: VonNeumannMachine, images: Sequence[Image], max_steps: int, engine: str = "dense",
) -> ImageComparison:
    """Run images as one batch of cards: all cells, the program counter and the events after every loop.

    A batch has no host, so an image is compared until it stops or comes to a port.
    """
    sizes, layout = machine.sizes, machine.layout
    interpreters = [Interpreter(image, sizes.word_bits, sizes.memory, dialect=machine.dialect) for image in images]
    live = dict(enumerate(interpreters))
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
            stops, at_port = interpreter.stop is not None, interpreter.at_port
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
    find_engine(engine)(machine.model, cards, machine.design.warm_up + max_steps, facts=layout, watch=look)
    return ImageComparison(steps, ahead, tuple(wrong))


@dataclass(frozen=True)
class CheckedRun:
    """A run, and the first thing in which it departed from the interpreter ("" where it never did)."""

    result: Result
    difference: str

    @property
    def agrees(self) -> bool:
        return not self.difference


def checked_run(
    machine: VonNeumannMachine, image: Image, *, read: Read, write: Write, max_steps: int | None = None,
    interrupted: Callable[[], bool] | None = None, **options: Any,
) -> CheckedRun:
    """Run an image with its ports, and the interpreter with the same input: compared after every loop, and at the end.

    The run stops at the first difference.
    """
    checker = _Checker(machine, image, read, write)
    result = machine.run(
        image, input=checker.read, output=checker.write, max_steps=max_steps, watch=checker.watch,
        interrupted=lambda: bool(checker.difference) or (interrupted is not None and interrupted()), **options,
    )
    checker.finish(result)
    return CheckedRun(result, checker.difference)


class _Checker:
    """Follows a run loop by loop. What the machine reads is kept for the interpreter, which executes it a loop later."""

    def __init__(self, machine: VonNeumannMachine, image: Image, read: Read, write: Write) -> None:
        self.difference = ""
        self._machine = machine
        self._from, self._to = read, write
        self._inputs: deque[int] = deque()
        self._outputs: deque[int] = deque()
        sizes = machine.sizes
        self._interpreter = Interpreter(image, sizes.word_bits, sizes.memory, dialect=machine.dialect,
                                        read=self._inputs.popleft, write=self._outputs.append)
        self._cells = encode_unsigned(torch.tensor(self._interpreter.cells), sizes.word_bits, machine.precision.dtype)

    def read(self) -> int:
        value = self._from()
        self._inputs.append(value)
        return value

    def write(self, byte: int) -> None:
        expected = self._outputs.popleft() if self._outputs else None
        if byte != expected and not self.difference:
            self.difference = f"the machine writes {byte}, the interpreter {'nothing' if expected is None else expected}"
        self._to(byte)

    def watch(self, loop: int, card: Tensor) -> None:
        if self.difference or (loop > self._machine.design.warm_up and not self._step(loop)):
            return
        layout, interpreter = self._machine.layout, self._interpreter
        bits = layout.get(card, "memory", "memory")
        off = (bits - self._cells).abs() > TOLERANCE
        if bool(off.any()):
            address = int(off.any(dim=0).nonzero()[0])
            self.difference = f"loop {loop}: cell {address} is not {interpreter.cells[address]}, as the interpreter has it"
            return
        _, counter = self._machine.design.read(self._machine.sizes, layout, card)
        if int(counter) != interpreter.program_counter:
            self.difference = (f"loop {loop}: the program counter is {int(counter)}, the interpreter's "
                               f"{interpreter.program_counter}")

    def _step(self, loop: int) -> bool:
        interpreter = self._interpreter
        if interpreter.stop is not None:
            self.difference = f"loop {loop}: the machine goes on, the interpreter has stopped ({interpreter.stop})"
            return False
        _, destination = interpreter.operands()
        interpreter.step()
        if destination < len(interpreter.cells):
            word = interpreter.cells[destination]
            self._cells[:, destination] = encode_unsigned(word, self._machine.sizes.word_bits, self._cells.dtype)[:, 0]
        return True

    def finish(self, result: Result) -> None:
        interpreter = self._interpreter
        ends = result.reason if result.reason in ("halted", "fault") else None
        found = (ends, result.fault, result.steps, len(self._outputs))
        expected = (interpreter.stop, interpreter.fault, interpreter.steps, 0)
        if found != expected and not self.difference:
            self.difference = f"the run ends with {found}, the interpreter with {expected} (stop, fault, steps, unwritten)"
