"""The dialect `sic1` against the manual of SIC-1: the reference is in sic1_reference.py."""

from __future__ import annotations

import random

import pytest

from punchcard.machines.streams import reader
from punchcard.machines.von_neumann.isa import SIC1, Image
from punchcard.machines.von_neumann.machine import VonNeumannMachine
from punchcard.machines.von_neumann.oracle import ImageInterpreter
from tests.sic1_reference import Sic1Run, random_sic1, run_sic1

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
