"""The dialect `sic1` against the manual of SIC-1, as plainly as it can be written, which shares no code with the package.

256 bytes, signed. `subleq A B C`: mem[A] -= mem[B]; at 0 or less goto C. Address 253 is @IN, 254 @OUT, 255 @HALT. The
manual's errata: an instruction takes one input if A or B is @IN, and both read that one; a store to @IN is lost; a jump to
anything beyond 252 halts; the instruction at 251 or 252 finds zeros beyond 252. The manual says that the program
terminates when @HALT is accessed. (Its emulator lets such an instruction pass; see docs/von-neumann.md.)
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest

from punchcard.machines.streams import reader
from punchcard.machines.von_neumann.isa import SIC1, Image
from punchcard.machines.von_neumann.machine import VonNeumannMachine
from punchcard.machines.von_neumann.oracle import ImageInterpreter

IN, OUT, HALT = 253, 254, 255


@dataclass(frozen=True)
class Sic1Run:
    """Where a run ended: the user's memory, the next instruction, steps, output, and how many inputs it took."""

    memory: tuple[int, ...]
    counter: int
    steps: int
    output: bytes
    taken: int


def run_sic1(program: tuple[int, ...], given: bytes, max_steps: int) -> Sic1Run:
    """Run a program of at most 253 bytes; after its end an input is -1."""
    memory = [byte % 256 for byte in program] + [0] * (256 - len(program))
    counter = steps = taken = 0
    output = bytearray()
    while counter <= 252 and steps < max_steps:
        a, b, c = memory[counter : counter + 3]
        if HALT in (a, b):
            break
        value = 0
        if IN in (a, b):
            value = given[taken] if taken < len(given) else -1
            taken += 1
        left = value if a == IN else memory[a]
        right = value if b == IN else memory[b]
        result = (left - right) % 256
        if a == OUT:
            output.append(result)
        elif a != IN:
            memory[a] = result
        counter = c if result == 0 or result > 127 else counter + 3
        steps += 1
    return Sic1Run(tuple(memory[:253]), counter, steps, bytes(output), min(taken, len(given)))


def random_sic1(rng: random.Random, *, input_as_destination: bool) -> tuple[int, ...]:
    """Up to twelve instructions, one that halts, and some data; many operands are ports."""
    count = rng.randint(2, 12)
    data = range(3 * count + 3, 3 * count + 11)
    destinations = [OUT, OUT, *([IN] * 5 if input_as_destination else []), *data]
    words: list[int] = []
    for _ in range(count):
        source = rng.choice([IN] * 4 + [OUT, *data, *data])
        words += [rng.choice(destinations), source, rng.choice([*range(0, 3 * count, 3), HALT])]
    values = [rng.randint(-9, 9) if rng.random() < 0.7 else rng.randrange(256) for _ in data]
    return (*words, data[0], data[0], HALT, *values)


STEPS = 60
YES_OR_NO = (253, 15, 9, 254, 16, 9, 15, 15, 255, 254, 17, 9, 15, 15, 255, 0, -89, -78)


def interpreted(program: tuple[int, ...], given: bytes) -> Sic1Run:
    taken = 0

    def read() -> int:
        nonlocal taken
        value = rest()
        taken += value >= 0
        return value

    rest = reader(given)
    oracle = ImageInterpreter(Image(program), 8, 256, dialect=SIC1, read=read)
    oracle.run(STEPS)
    return Sic1Run(tuple(oracle.cells[:253]), oracle.program_counter, oracle.steps, oracle.output, taken)


@pytest.fixture(scope="module")
def machine() -> VonNeumannMachine:
    return VonNeumannMachine(dialect="sic1")


def on_the_machine(machine: VonNeumannMachine, program: tuple[int, ...], given: bytes) -> Sic1Run:
    result = machine.run(Image(program), input=given, max_steps=STEPS)
    state = machine.read(result.card)
    return Sic1Run(state.memory[:253], state.program_counter, result.steps, result.output, len(result.read))


@pytest.mark.parametrize(("first", "given", "answer"), [
    ((253, 15, 9), b"\x05", b"Y"),       # 5 - 0 is positive
    ((253, 15, 9), b"\xfb", b"N"),       # -5 - 0 is not
    ((253, 253, 9), b"\xfb", b"N"),      # one input, and so 0
    ((253, 253, 9), b"\x05\x01", b"N"),
    ((253, 254, 9), b"\x05", b"Y"),      # the output reads as 0
])
def test_the_input_as_destination_is_read(machine: VonNeumannMachine, first: tuple[int, ...], given: bytes,
                                          answer: bytes) -> None:
    program = (*first, *YES_OR_NO[3:])
    assert run_sic1(program, given, STEPS).output == answer
    assert interpreted(program, given).output == answer
    assert machine.run(Image(program), input=given).output == answer


@pytest.mark.parametrize("input_as_destination", [False, True])
def test_random_programs(machine: VonNeumannMachine, input_as_destination: bool) -> None:
    """400 of each kind on the interpreter, and some of them on the machine."""
    rng = random.Random(29)
    steps = taken = 0
    for number in range(400):
        program = random_sic1(rng, input_as_destination=input_as_destination)
        given = rng.randbytes(rng.randint(0, 20))
        expected = run_sic1(program, given, STEPS)
        assert interpreted(program, given) == expected, (program, given)
        if number % 40 == 0:
            assert on_the_machine(machine, program, given) == expected, (program, given)
        steps, taken = steps + expected.steps, taken + expected.taken
    assert steps > 4000
    assert taken > 700
