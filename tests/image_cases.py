"""Images with a known end: one table for the interpreter, the machine on every engine, and the host."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from punchcard.machines.von_neumann.isa import Fault, Image
from punchcard.machines.von_neumann.machine import VonNeumannMachine

machine_of = cache(VonNeumannMachine)
"""Machines by their options, each built once. No test changes their weights."""


@dataclass(frozen=True)
class ImageCase:
    """Words, sizes and input; and how the run must end."""

    name: str
    words: tuple[int, ...]
    steps: int
    output: bytes = b""
    input: bytes = b""
    fault: Fault | None = None
    halted: bool = True
    dialect: str = "standard"
    word_bits: int = 8
    memory: int = 16
    max_steps: int | None = None

    @property
    def image(self) -> Image:
        return Image(self.words, self.name)

    @property
    def machine(self) -> VonNeumannMachine:
        return machine_of(word_bits=self.word_bits, memory=self.memory, dialect=self.dialect)

    def __str__(self) -> str:
        return self.name


def faulty(name: str, words: tuple[int, ...], steps: int, fault: Fault, **options: int) -> ImageCase:
    return ImageCase(name, words, steps, fault=fault, halted=False, **options)  # type: ignore[arg-type]


ECHO = (-1, 13, 3, 12, 13, -1, 13, -1, 9, 12, 12, 0, 0, 0)  # until a character is 0 or the input ends
SIC1_NEGATE = (254, 253, 3, 255, 255, 255)

CASES = (
    ImageCase("hi", (9, -1, 3, 10, -1, 6, 0, 0, -1, 72, 105), 3, b"Hi"),
    ImageCase("halt at once", (0, 0, -1), 1),
    ImageCase("halt at the most negative address", (0, 0, -128), 1),
    ImageCase("echo", ECHO, 14, b"abc", b"abc"),
    ImageCase("echo of nothing", ECHO, 2),
    ImageCase("echo of high bytes", ECHO, 10, b"\xfe\x80", b"\xfe\x80", word_bits=16),
    ImageCase("end of input again and again", (-1, 12, 3, -1, 12, 6, 12, -1, 9, 0, 0, -1), 4, b"\xff", b"x"),
    ImageCase("input never branches", (-1, 9, -1, 9, -1, -1, 0, 0, -1, 7), 3, b"\x00", b"\x00"),
    ImageCase("output never branches", (9, -1, 0, 10, -1, 0, 0, 0, -1, 0, -1), 3, b"\x00\xff"),
    ImageCase("input to output", (-1, -1, 0, -1, -1, 0, 0, 0, -1), 3, b"A\xff", b"A"),
    ImageCase("input sets", (-1, 9, 3, 9, -1, 6, 0, 0, -1, 70), 3, b"A", b"A"),
    ImageCase("input adds", (-1, 9, 3, 9, -1, 6, 0, 0, -1, 1), 3, b"B", b"A", dialect="adds"),
    ImageCase("input subtracts", (-1, 9, 3, 9, -1, 6, 0, 0, -1, -126), 3, b"A", b"A", dialect="subtracts"),
    ImageCase("the low byte is written", (9, -1, 3, 0, 0, -1, 0, 0, 0, 0x1F41), 2, b"A", word_bits=16),
    ImageCase("a program writes its next operand", (9, 4, 3, 9, 11, -1, 0, 0, -1, 1, 5, 6), 3),
    ImageCase("a program turns its next operand into the port", (9, 4, 3, 10, 0, 6, 0, 0, -1, 1, 66), 3, b"B"),
    ImageCase("a program writes its own words after they were fetched", (9, 2, -1, 10, -1, 6, 0, 0, -1, 2, 66), 1),
    ImageCase("an instruction across the sign", (9, 9, 6, 8, 9, 10, 5, 12, 2, 0, 0, 0, 1, 0, 0, 0), 2, word_bits=4),
    ImageCase("cell -2 of a full memory", (14, 9, 3, 0, 0, -1, 0, 0, 0, 3, 0, 0, 0, 0, 1, 0), 2, word_bits=4),
    ImageCase("stopped by the limit", (0, 0, 0), 5, halted=False, max_steps=5),
    ImageCase("stopped before it starts", (9, -1, 3), 0, halted=False, max_steps=0),
    ImageCase("no input is read at the limit", (0, 0, 3, -1, 9, 6), 1, b"", b"x", halted=False, max_steps=1),
    faulty("a beyond", (100, 0, 0), 0, Fault(0, "a", 100)),
    faulty("b beyond", (0, 16, 0), 0, Fault(0, "b", 16)),
    faulty("b beyond with an input", (-1, 200, 0), 0, Fault(0, "b", 200)),
    faulty("a beyond with an output", (254, -1, 0), 0, Fault(0, "a", 254)),
    faulty("a and b beyond", (99, 98, 0), 0, Fault(0, "a", 99)),
    faulty("a beyond, later", (9, 9, 3, 100, 0, 0), 1, Fault(3, "a", 100)),
    faulty("jump beyond", (0, 0, 20), 1, Fault(20, "instruction", 20)),
    faulty("jump to the last cell", (0, 0, 15), 1, Fault(15, "instruction", 16)),
    faulty("jump to the last cell but one", (0, 0, 14), 1, Fault(14, "instruction", 16)),
    faulty("run off the end", (3, 4, 0, 1, 5), 1, Fault(3, "instruction", 5), memory=5),
    faulty("one below the port is not a port", (65534, 0, 0), 0, Fault(0, "a", 65534), word_bits=16),
    *(ImageCase(name, words, steps, output, given, dialect="sic1", memory=256) for name, words, steps, output, given in (
        ("SIC-1 negates", SIC1_NEGATE, 1, b"\xfb", b"\x05"),
        ("SIC-1 at the end of input", SIC1_NEGATE, 1, b"\x01", b""),
        ("SIC-1 branches on a port", (254, 253, 6, 255, 0, 0, 254, 9, 255, 7), 2, b"\xfb\xf9", b"\x05"),
        ("SIC-1 goes on after a port", (254, 253, 6, 255, 0, 0, 254, 9, 255, 7), 1, b"\x05", b"\xfb"),
        ("SIC-1 reads the output as zero", (9, 254, 3, 254, 9, 6, 255, 0, 0, 7), 2, b"\xf9", b""),
        ("SIC-1 loses a store to the input", (253, 9, 3, 253, 253, 6, 254, 253, 9, 255, 0, 0), 3, b"\xfd", b"\x01\x02\x03"),
        ("SIC-1 subtracts from an input", (253, 9, 6, 254, 9, 255, 255, 0, 0, 4), 2, b"\xfc", b"\x05"),
        ("SIC-1 branches by a lost store", (253, 253, 6, 255, 0, 0, 254, 9, 255, 4), 2, b"\xfc", b"\x01"),
        ("SIC-1 halts from 253 on", (9, 9, 253), 1, b"", b""),
        ("SIC-1 destination first", (9, 10, 3, 254, 9, 6, 255, 0, 0, 50, 20), 2, b"\xe2", b""),
    )),
)
