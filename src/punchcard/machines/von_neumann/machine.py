"""The von Neumann machine: real SUBLEQ, one memory, self-modifying code, and a host that serves its ports.

Building a machine takes sizes and a dialect, never an image. `punch` loads an image on a card, the model runs on the card,
one instruction a loop, and the host is asked between loops only when the card says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeAlias

import torch
from torch import Tensor

from punchcard.engines import ENGINES, Watch, find_engine
from punchcard.errors import PrecisionError, PunchcardError, SizeError
from punchcard.machines import storage
from punchcard.machines.von_neumann.design import AddressMap, VonNeumannDesign
from punchcard.machines.von_neumann.host import Host
from punchcard.machines.von_neumann.isa import END_OF_INPUT, Dialect, Fault, Image, Read, Write, find_dialect, reader
from punchcard.transformer.build import LayerWeights, compile_layer, to_model
from punchcard.transformer.exactness import needed_bits
from punchcard.transformer.precision import Precision, as_precision

DEFAULT_WORD_BITS = 16
MOST_DEFAULT_MEMORY = 1 << 16
NO_LIMIT = 1 << 62
Input: TypeAlias = bytes | BinaryIO | Read
Output: TypeAlias = BinaryIO | Write
Reason: TypeAlias = Literal["halted", "fault", "steps", "interrupted"]


@dataclass(frozen=True)
class State:
    """The memory, as unsigned numbers, and the program counter."""

    memory: tuple[int, ...]
    program_counter: int


@dataclass(frozen=True)
class Result:
    """The end of a run: why it ended, instructions executed, the output where nobody else took it, and the card.

    reason   "halted"; "fault", an access beyond the memory, described by `fault`; "steps", the limit; "interrupted"
    """

    halted: bool
    reason: Reason
    steps: int
    loops: int
    program_counter: int
    fault: Fault | None
    output: bytes
    engine: str
    compile_seconds: float
    notes: tuple[str, ...]
    card: Tensor = field(repr=False)


class VonNeumannMachine:
    """A looped transformer that executes SUBLEQ images, one instruction a loop.

    word_bits   N, the bits of a word; words wrap modulo 2^N
    memory      how many cells there are, 2^min(N, 16) by default; at most 2^N
    precision   a number format or a `Precision`; by default the narrower of float32 and float64 that is exact
    dialect     "standard", "adds", "subtracts" or "sic1" (see `isa`)
    """

    def __init__(
        self,
        *,
        word_bits: int | None = None,
        memory: int | None = None,
        precision: Precision | torch.dtype | str | None = None,
        dialect: Dialect | str = "standard",
    ) -> None:
        self.dialect = find_dialect(dialect)
        self.sizes = _address_map(self.dialect, word_bits, memory)
        self.design = VonNeumannDesign()
        self.layout = self.design.layout(self.sizes)
        self.precision, layers, self.needed_bits = self._compile(precision)
        self.model = to_model(layers, self.layout.width, self.precision)
        self.events = self.design.patterns()

    def _compile(self, wanted: Precision | torch.dtype | str | None) -> tuple[Precision, list[LayerWeights], int]:
        """The layers, and a number format in which no sum of theirs is rounded."""
        for precision in map(as_precision, ("float32", "float64") if wanted is None else (wanted,)):
            parts = self.design.layers(self.sizes, self.layout, precision)
            layers = [compile_layer(part, self.layout.width) for part in parts]
            needed = needed_bits(layers, self.layout)
            if needed <= precision.significand:
                return precision, layers, needed
        raise PrecisionError(f"word_bits={self.sizes.word_bits} and memory={self.sizes.memory} need sums of {needed} "
                             f"significand bits, {precision.name} has {precision.significand}: use shorter words or a wider "
                             "number format")

    def __repr__(self) -> str:
        return (f"<VonNeumannMachine, {self.dialect.name}: {self.sizes.memory} words of {self.sizes.word_bits} bits, "
                f"{len(self.model.shapes)} layers, {self.layout.width} rows, {self.precision.name}>")

    def punch(self, image: Image) -> Tensor:
        """The card of an image: a matrix of `layout.width` rows and `layout.columns` columns."""
        cells = image.loaded(self.sizes.word_bits, self.sizes.memory)
        card = self.layout.blank(self.precision.dtype)
        self.design.punch(self.sizes, self.layout, cells, card)
        return card

    def read(self, card: Tensor) -> State:
        """The memory and the program counter on a card."""
        self.layout.check(card)
        if card.ndim != 2:
            raise PunchcardError(f"read takes one card, not a batch of shape {tuple(card.shape)}: use read_all")
        return self.read_all(card.unsqueeze(0))[0]

    def read_all(self, cards: Tensor) -> list[State]:
        """The states on a batch of cards."""
        words, counters = self.design.read(self.sizes, self.layout, cards)
        return [State(tuple(memory), counter) for memory, counter in zip(words.tolist(), counters.tolist(), strict=True)]

    def run(
        self,
        image: Image,
        *,
        input: Input = b"",
        output: Output | None = None,
        engine: str | None = None,
        max_steps: int | None = None,
        watch: Watch | None = None,
        interrupted: Callable[[], bool] | None = None,
    ) -> Result:
        """Run an image until it halts, faults, or has executed `max_steps` instructions.

        `input` is bytes, a binary file, or a function that gives the next byte (-1 at the end). `output` is a binary file,
        which is flushed after every byte, or a function that takes a byte; without it the bytes are in the result.
        """
        if max_steps is not None and max_steps < 0:
            raise PunchcardError(f"max_steps={max_steps}: it must be 0 or more")
        loops = NO_LIMIT if max_steps is None else self.design.warm_up + max_steps
        written = bytearray()
        host = Host(self.layout, self.sizes, self.dialect, _reader(input), _writer(output, written), loops)
        ran = find_engine(engine or default_engine())(
            self.model, self.punch(image), loops, facts=self.layout, ports=dict.fromkeys(self.events, host), watch=watch,
            interrupted=interrupted,
        )
        _, counter = self.design.read(self.sizes, self.layout, ran.card)
        reason: Reason = "interrupted" if host.interrupted or ran.reason == "interrupted" else "steps"
        if host.halted or host.fault:
            reason = "halted" if host.halted else "fault"
        return Result(
            halted=host.halted, reason=reason, steps=max(0, ran.loops - self.design.warm_up), loops=ran.loops,
            program_counter=int(counter), fault=host.fault, output=bytes(written), engine=ran.engine,
            compile_seconds=ran.compile_seconds, notes=ran.notes, card=ran.card,
        )

    def describe(self) -> dict[str, Any]:
        """Sizes, dialect, precision and layout as plain data."""
        return {
            "machine": "von-neumann",
            "sizes": {"word_bits": self.sizes.word_bits, "memory": self.sizes.memory},
            "dialect": self.dialect.name,
            "precision": self.precision.describe(),
            "layout": self.layout.describe(),
        }

    def save(self, path: str | Path) -> None:
        """Write the machine to one safetensors file."""
        storage.save(path, self.model, self.describe())

    @classmethod
    def load(cls, path: str | Path) -> VonNeumannMachine:
        """A machine from its file: description and weights must fit each other and this version's layout."""
        def build_from(description: dict[str, Any], precision: Precision) -> VonNeumannMachine:
            return cls(**description["sizes"], dialect=description["dialect"], precision=precision)

        return storage.restore(path, "von-neumann", build_from)


def default_engine() -> str:
    """The engine that finds the fastest way by itself, where there is one."""
    return "auto" if "auto" in ENGINES else "dense"


def _address_map(dialect: Dialect, word_bits: int | None, memory: int | None) -> AddressMap:
    """What the addresses mean in a dialect; its own sizes are the only ones where it has some."""
    for name, given, fixed in (("word_bits", word_bits, dialect.word_bits), ("memory", memory, dialect.memory)):
        if fixed is not None and given not in (None, fixed):
            raise SizeError(f"{name}={given}: the dialect {dialect.name!r} has {fixed}")
    bits = dialect.word_bits or (DEFAULT_WORD_BITS if word_bits is None else word_bits)
    if not isinstance(bits, int) or bits < 1:
        raise SizeError(f"word_bits={bits!r}: it must be a positive integer")
    size = 1 << bits
    input_port, output_port = dialect.input_port % size, dialect.output_port % size
    # An input is handed over in a cell of its own: that of the port that only halts, or one next to the single port.
    input_cell = output_port - 1 if dialect.halt_port is None else dialect.halt_port
    return AddressMap(
        word_bits=bits,
        memory=dialect.memory or (min(size, MOST_DEFAULT_MEMORY) if memory is None else memory),
        first_port=dialect.first_port(bits),
        output_port=output_port,
        halts_from=dialect.halts_from(bits),
        port_cells=tuple(sorted({input_port, output_port, input_cell})),
        input_cell=input_cell,
        destination_first=dialect.destination_first,
        ports_branch=dialect.ports_branch,
    )


def _reader(source: Input) -> Read:
    if isinstance(source, (bytes, bytearray)):
        return reader(bytes(source))
    if callable(source):
        return source
    file, ended = source, False

    def read() -> int:
        nonlocal ended
        byte = b"" if ended else file.read(1)
        ended = not byte  # a terminal could go on after its end: the program must not see that
        return byte[0] if byte else END_OF_INPUT

    return read


def _writer(target: Output | None, written: bytearray) -> Write:
    if target is None:
        return written.append
    if callable(target):
        return target
    file = target

    def write(byte: int) -> None:
        file.write(bytes((byte,)))
        file.flush()

    return write
