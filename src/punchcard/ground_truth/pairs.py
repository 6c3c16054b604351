"""Clean and corrupt cards of a machine: two valid cards between two loops, which differ in one way.

    data           another value in a cell that is not part of an instruction
    pointer        another address in the instruction that is executed
    instruction    another target of its branch, or another instruction in its place
    position       the same program after another number of loops

Programs are random. Each card comes from a run that agrees with the interpreter after every loop, and so does the card after
the next loop, which a method looks at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from punchcard.card.formats import AnyArray, as_array
from punchcard.errors import PunchcardError
from punchcard.export.lockstep import HasValues, require_values
from punchcard.machines.base import AnyMachine
from punchcard.machines.streams import reader
from punchcard.machines.subleq.isa import Halt, Program, Subleq
from punchcard.machines.von_neumann.isa import Image

if TYPE_CHECKING:
    from torch import Tensor

KINDS = ("data", "pointer", "instruction", "position")
MOST_LOOPS = 6
"""How far into a run a card is taken."""
TRIES = 40


@dataclass(frozen=True)
class CardPair:
    """Two cards and their ends after one more loop."""

    kind: str
    clean: AnyArray
    corrupt: AnyArray
    clean_end: AnyArray
    corrupt_end: AnyArray


class LockstepRun:
    """A run, loop by loop beside the interpreter, until it ends or is wrong."""

    def __init__(self, machine: AnyMachine, program: object, loops: int) -> None:
        self.cards: list[AnyArray] = []
        """After the loops that fetch the first instruction, and after each one more."""
        self.counters: list[int] = []
        import torch

        oracle = machine.oracle(program, reader(b""), lambda byte: None)
        card = machine.punch(program)
        with torch.no_grad():
            for _ in range(machine.design.warm_up):
                card = machine.model(card)
            self._keep(card, oracle.state)
            for _ in range(loops):
                if oracle.halted or oracle.fault is not None or oracle.waits:
                    return
                oracle.step()
                card = machine.model(card)
                if not machine.near(program, machine.read(card), oracle.state):
                    raise PunchcardError(f"{machine.title()}: a random program differs from the interpreter")
                self._keep(card, oracle.state)

    def _keep(self, card: Tensor, state: object) -> None:
        self.cards.append(as_array(card).astype(np.float64))
        self.counters.append(int(getattr(state, "program_counter", 0)))


class PairSource:
    """Makes pairs for a machine. `base`: the program where programs are not made at random, `cells`: its words of data."""

    def __init__(self, machine: AnyMachine, seed: int, base: object = None, cells: Sequence[str] = ()) -> None:
        self.machine, self.base, self.cells, self.generator = machine, base, cells, np.random.default_rng(seed)
        name = machine.kind.name
        self.kinds = KINDS if name in ("subleq", "von-neumann") else ("data", "position")
        made: dict[str, Callable[[], Any]] = {"subleq": self._subleq, "von-neumann": self._image}
        changed: dict[str, Callable[[Any, str, int], Any]] = {
            "subleq": self._change_subleq, "von-neumann": self._change_image}
        self._program, self._change = made.get(name, self._given), changed.get(name, self._change_values)

    def pairs(self, count: int) -> list[CardPair]:
        """So many pairs, as many of each kind."""
        found: list[CardPair] = []
        for number in range(count):
            found.append(self._pair(self.kinds[number % len(self.kinds)]))
        return found

    def _pair(self, kind: str) -> CardPair:
        for _ in range(TRIES):
            program = self._program()
            clean = LockstepRun(self.machine, program, MOST_LOOPS + 1)
            places = len(clean.cards) - 1
            if places < 2:
                continue
            at = int(self.generator.integers(places))
            corrupt, place = clean, at
            if kind == "position":
                place = int((at + 1 + self.generator.integers(places - 1)) % places)
            else:
                try:
                    other = self._change(program, kind, clean.counters[at])
                    self.machine.check_fits(other)
                    corrupt = LockstepRun(self.machine, other, at + 1)
                except PunchcardError:
                    continue
            if place + 1 >= len(corrupt.cards) or np.array_equal(clean.cards[at], corrupt.cards[place]):
                continue
            return CardPair(kind, clean.cards[at], corrupt.cards[place], clean.cards[at + 1], corrupt.cards[place + 1])
        raise PunchcardError(f"{self.machine.title()}: no pair of the kind {kind!r} was found in {TRIES} tries")

    def _choice(self, high: int) -> int:
        return int(self.generator.integers(high))

    # SUBLEQ

    def _subleq(self) -> Program:
        options = self.machine.options
        cells, count, bits = options["memory"], options["instructions"], options["word_bits"]
        memory = [self._choice(1 << bits) - (1 << bits - 1) for _ in range(cells)]
        code = [Subleq(self._choice(cells), self._choice(cells), self._choice(count - 1)) for _ in range(count - 1)]
        return Program.create([*code, Halt()], memory)

    def _change_subleq(self, program: Program, kind: str, counter: int) -> Program:
        code, memory, bits = list(program.instructions), list(program.memory), self.machine.options["word_bits"]
        now = code[counter]
        if not isinstance(now, Subleq):
            raise PunchcardError("a halt")
        if kind == "data":
            memory[now.a if self._choice(2) else now.b] = self._choice(1 << bits) - (1 << bits - 1)
        elif kind == "pointer":
            name = "ab"[self._choice(2)]
            code[counter] = replace(now, **{name: self._choice(len(memory))})
        else:
            code[counter] = replace(now, c=self._choice(len(code)))
        return replace(program, instructions=tuple(code), memory=tuple(memory))

    # Images

    def _image(self) -> Image:
        size, memory = 1 << self.machine.options["word_bits"], self.machine.options["memory"]
        instructions = max(1, min(memory // 3 - 2, size // 2 // 3))
        data = range(3 * instructions, memory)
        words = [word for i in range(instructions) for word in (
            int(self.generator.choice(data)), int(self.generator.choice(data)),
            3 * i + 3 if i + 1 < instructions and self._choice(2) else 3 * self._choice(instructions))]
        return Image((*words, *(self._choice(size) for _ in data)))

    def _change_image(self, image: Image, kind: str, counter: int) -> Image:
        words, size, memory = list(image.words), 1 << self.machine.options["word_bits"], self.machine.options["memory"]
        if kind == "data":
            words[words[counter + self._choice(2)]] = self._choice(size)
        elif kind == "pointer":
            words[counter + self._choice(2)] = memory - 1 - self._choice(memory // 3)
        else:
            words[counter + 2] = 3 * self._choice(max(1, memory // 3 - 2))
        return replace(image, words=tuple(words))

    # Any other: a given program, with other first values

    def _given(self) -> object:
        return self._change_values(require_values(self.base, "pairs"), "data", 0)

    def _change_values(self, program: HasValues, kind: str, counter: int) -> object:
        if self.cells:
            return program.with_values({self.cells[self._choice(len(self.cells))]: self._choice(1 << 16) + 2})
        values = dict(self.machine.readout(program, self.machine.pack(program)).values)
        names = [name for name, value in values.items()
                 if isinstance(value, int | np.integer) or np.size(value) > 1]  # a real number alone may be a flag
        if not names:
            raise PunchcardError("no named values")
        name = names[self._choice(len(names))]
        value = values[name]
        if isinstance(value, int | np.integer):
            return program.with_values({name: int(value) + int(self.generator.choice([-3, -2, -1, 1, 2, 3]))})
        entries = np.array(value, dtype=np.float64)
        return program.with_values({name: entries + self.generator.uniform(-0.25, 0.25, entries.shape)})


def kinds_of(pairs: list[CardPair]) -> Iterator[tuple[str, AnyArray]]:
    """The tasks of pairs: each kind, and all of them; with the places of their pairs."""
    names = [pair.kind for pair in pairs]
    for kind in dict.fromkeys(names):
        yield kind, np.array([place for place, name in enumerate(names) if name == kind])
    yield "all", np.arange(len(names))
