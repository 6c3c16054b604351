"""The SUBLEQ machine: sizes, a design and a precision become a layout and a model; programs come later.

Building a machine never receives a program. `punch` writes a program on a card, the model runs on the card, `read` reads
the card. Two programs run on one unchanged model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from punchcard.card.encoding import signed_range
from punchcard.card.layout import Layout
from punchcard.engines import Watch
from punchcard.errors import PrecisionError, ProgramError, PunchcardError, did_you_mean
from punchcard.machines import storage
from punchcard.machines.running import DEFAULT_ENGINE, At, Mark, loops_a_second, run_parts
from punchcard.machines.subleq.designs.base import MIN_WORD_BITS, Image, SubleqDesign, SubleqSizes
from punchcard.machines.subleq.designs.one_layer import OneLayerDesign
from punchcard.machines.subleq.designs.paper import PaperDesign
from punchcard.machines.subleq.designs.two_layer import TwoLayerDesign
from punchcard.machines.subleq.isa import Instruction, Program, State, Subleq
from punchcard.transformer.build import LayerWeights, compile_layer, to_model
from punchcard.transformer.exactness import needed_bits
from punchcard.transformer.precision import Precision, as_precision

DESIGNS: Mapping[str, SubleqDesign] = {d.name: d for d in (PaperDesign(), TwoLayerDesign(), OneLayerDesign())}
DEFAULT_MAX_STEPS = 100_000


@dataclass(frozen=True)
class Result:
    """The end of a run: memory by name, whether it halted, instructions executed, loops made, and the card.

    `engine` is the one that made the loops, `notes` say what kept it from a faster way. `seconds` is the time that the
    loops took, `compile_seconds` what it took to compile the weights; `begun` are the loops that a resumed run had made.
    """

    memory: dict[str, int]
    state: State
    halted: bool
    steps: int
    loops: int
    interrupted: bool
    engine: str
    card: Tensor = field(repr=False)
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    compile_seconds: float = 0.0
    begun: int = 0

    @property
    def steps_per_second(self) -> float | None:
        return loops_a_second(self.loops - self.begun, self.seconds)


class SubleqMachine:
    """A looped transformer that executes SUBLEQ programs, one instruction a loop.

    word_bits      N, the bits of a word; words wrap modulo 2^N
    memory         how many cells a program may have
    instructions   how many instructions, the final halt included
    design         "paper" (nine layers), "two-layer" or "one-layer"
    precision      a number format ("float64", "float32", ...) or a `Precision`
    """

    def __init__(
        self,
        *,
        word_bits: int = 16,
        memory: int = 29,
        instructions: int = 32,
        design: str = "paper",
        precision: Precision | torch.dtype | str = "float64",
    ) -> None:
        if design not in DESIGNS:
            raise PunchcardError(f"unknown design {design!r}{did_you_mean(design, DESIGNS)}: "
                                 f"there are {', '.join(DESIGNS)}")
        self.sizes = SubleqSizes(word_bits, memory, instructions)
        self.design = DESIGNS[design]
        self.precision = as_precision(precision)
        self.layout, layers = self._compile(self.sizes)
        self.needed_bits = needed_bits(layers, self.layout)
        if self.needed_bits > self.precision.significand:
            raise PrecisionError(self._refusal())
        self.model = to_model(layers, self.layout.width, self.precision)
        self.halting = self.design.halted(self.sizes)

    def _compile(self, sizes: SubleqSizes) -> tuple[Layout, list[LayerWeights]]:
        layout = self.design.layout(sizes)
        parts = self.design.layers(sizes, layout, self.precision)
        return layout, [compile_layer(part, layout.width) for part in parts]

    def _refusal(self) -> str:
        """Why the number format is too narrow, and the widest word that it could hold."""
        bits, significand = self.sizes.word_bits, self.precision.significand
        why = (f"the {self.design.name!r} design with word_bits={bits} needs sums of {self.needed_bits} significand bits, "
               f"{self.precision.name} has {significand}")
        shorter = bits - (self.needed_bits - significand)
        if shorter >= MIN_WORD_BITS:
            layout, layers = self._compile(replace(self.sizes, word_bits=shorter))
            if needed_bits(layers, layout) <= significand:
                return f"{why}: use words of at most {shorter} bits or a wider number format"
        return f"{why}: use a wider number format, or fewer columns than {self.layout.columns}"

    def __repr__(self) -> str:
        return (f"<SubleqMachine, design {self.design.name!r}: {len(self.model.shapes)} layers, {self.layout.width} rows, "
                f"{self.layout.columns} columns, {self.precision.name}>")

    def punch(self, program: Program) -> Tensor:
        """The card of a program: a matrix of `layout.width` rows and `layout.columns` columns."""
        self._check_fits(program)
        sizes = self.sizes
        code = [*program.instructions, *[None] * (sizes.instructions - len(program.instructions))]
        commands = [self._command(instruction, number) for number, instruction in enumerate(code)]
        words = [0, -1, *program.memory, *[0] * (sizes.memory - len(program.memory))]
        card = self.layout.blank()
        self.design.punch(sizes, self.layout, Image(words, commands), card)
        return card.to(self.precision.dtype)

    def _command(self, instruction: Instruction | None, number: int) -> tuple[int, int, int]:
        """Columns a, b, c. A halt, and the room after the program, is EOF: -1 - 0 is not positive, so jump to itself."""
        sizes = self.sizes
        if isinstance(instruction, Subleq):
            return (sizes.memory_column + instruction.a, sizes.memory_column + instruction.b,
                    sizes.instruction_column + instruction.c)
        return sizes.zero_column, sizes.minus_one_column, sizes.instruction_column + number

    def read(self, card: Tensor) -> State:
        """The memory cells and the program counter on a card."""
        self.layout.check(card)
        if card.ndim != 2:
            raise PunchcardError(f"read takes one card, not a batch of shape {tuple(card.shape)}: use read_all")
        return self.read_all(card.unsqueeze(0))[0]

    def read_all(self, cards: Tensor) -> list[State]:
        """The states on a batch of cards."""
        reading = self.design.read(self.layout, cards)
        counters = (reading.program_counter - self.sizes.instruction_column).tolist()
        return [State(tuple(words), counter) for words, counter in zip(reading.words.tolist(), counters, strict=True)]

    def run(
        self,
        program: Program,
        *,
        engine: str = DEFAULT_ENGINE,
        max_steps: int = DEFAULT_MAX_STEPS,
        watch: Watch | None = None,
        interrupted: Callable[[], bool] | None = None,
        progress: Callable[[int], None] | None = None,
        begin: Mark | None = None,
        keep: At | None = None,
    ) -> Result:
        """Run a program until it halts or has executed `max_steps` instructions, those before `begin` included.

        `begin` is the mark to go on from, by default the program's punched card. `keep` is given marks of the run.
        """
        if max_steps < 0:
            raise PunchcardError(f"max_steps={max_steps}: it must be 0 or more")
        course = run_parts(
            self.model, begin or Mark(self.punch(program)), self.design.warm_up + max_steps, engine=engine,
            facts=self.layout, until=self.halting, marks=[keep] if keep else [], kept=keep is not None, watch=watch,
            interrupted=interrupted, progress=progress,
        )
        ran = course.run
        state = self.read(ran.card)
        # The loop that reads EOF, or the warm-up loop before the first instruction, executes nothing.
        matched = ran.reason == "matched"
        steps = ran.loops - (1 if matched else min(self.design.warm_up, ran.loops))
        inside = 0 <= state.program_counter < len(program.instructions)
        halted = matched or (inside and not isinstance(program.instructions[state.program_counter], Subleq))
        memory = state.memory[: len(program.memory)]
        return Result(
            memory=program.named(memory), state=State(memory, state.program_counter), halted=halted, steps=steps,
            loops=ran.loops, interrupted=ran.reason == "interrupted", engine=ran.engine, card=ran.card, notes=ran.notes,
            seconds=course.seconds, compile_seconds=ran.compile_seconds, begun=course.begun,
        )

    def describe(self) -> dict[str, Any]:
        """Sizes, design, precision and layout as plain data."""
        return {
            "machine": "subleq",
            "sizes": {"word_bits": self.sizes.word_bits, "memory": self.sizes.memory,
                      "instructions": self.sizes.instructions},
            "design": self.design.name,
            "precision": self.precision.describe(),
            "layout": self.layout.describe(),
        }

    def save(self, path: str | Path) -> None:
        """Write the machine to one safetensors file."""
        storage.save(path, self.model, self.describe())

    @classmethod
    def load(cls, path: str | Path) -> SubleqMachine:
        """A machine from its file: description and weights must fit each other and this version's layout."""
        return storage.restore(path, "subleq", cls._build)

    @classmethod
    def from_description(cls, description: Mapping[str, Any], source: str = "the description") -> SubleqMachine:
        """A machine from what `describe` gave; `source` is named in errors."""
        return storage.rebuild(description, "subleq", cls._build, source)

    @classmethod
    def _build(cls, description: dict[str, Any], precision: Precision) -> SubleqMachine:
        return cls(**description["sizes"], design=description["design"], precision=precision)

    def _check_fits(self, program: Program) -> None:
        sizes = self.sizes
        for what, has, room, option in (
            ("instructions", len(program.instructions), sizes.instructions, "instructions"),
            ("memory cells", len(program.memory), sizes.memory, "memory"),
        ):
            if has > room:
                raise ProgramError(f"the program has {has} {what}, the machine has room for {room}: "
                                   f"build it with {option}={has} or more")
        least, greatest = signed_range(sizes.word_bits)
        for name, value in zip(program.cell_names(), program.memory, strict=True):
            if not least <= value <= greatest:
                raise ProgramError(f"cell {name!r} is {value}, which does not fit a word of {sizes.word_bits} bits: "
                                   f"the range is {least} to {greatest}")
