"""The interpreters that speed is measured against do what the plain ones do."""

from __future__ import annotations

import random

import numpy as np
import pytest

from punchcard.api import load
from punchcard.machines.fleq import oracle as fleq_oracle
from punchcard.machines.fleq.fast import DecodedFleq
from punchcard.machines.fleq.isa import FleqProgram
from punchcard.machines.fleq.text.assembler import assemble
from punchcard.machines.subleq import fast, oracle
from punchcard.machines.subleq.isa import Halt, Program, Subleq
from punchcard.machines.subleq.semantics import difference_of, jumps_at
from punchcard.machines.von_neumann import oracle as image_oracle
from punchcard.machines.von_neumann.isa import Image
from punchcard.words.text import python_function
from punchcard.words.word import variable
from tests.cases import EXAMPLES, EXPECTED, load_subleq
from tests.random_programs import random_program


@pytest.mark.parametrize("name", EXPECTED)
def test_examples(name: str) -> None:
    program = load_subleq(name)
    for steps in (0, 1, 17, 10_000):
        memory = list(program.memory)
        counter = fast.run(fast.decode(program), memory, 16, steps)
        expected = oracle.run(program, 16, steps)
        assert (tuple(memory), counter) == (expected.state.memory, expected.state.program_counter)


@pytest.mark.parametrize("bits", [2, 4, 16])
def test_random_programs(bits: int) -> None:
    """Values at both extremes, so that differences wrap on both sides."""
    rng = random.Random(bits)
    for _ in range(200):
        program = random_program(rng, bits, 4, 6)
        memory = list(program.memory)
        counter = fast.run(fast.decode(program), memory, bits, 60)
        expected = oracle.run(program, bits, 60)
        assert (tuple(memory), counter) == (expected.state.memory, expected.state.program_counter)


def test_the_oracles_do_what_the_words_say() -> None:
    """Every pair of words of four bits, on both interpreters that are written by hand."""
    bits = 4
    a, b = variable("a", bits), variable("b", bits)
    says = python_function(["a", "b"], [difference_of(a, b), jumps_at(difference_of(a, b))])
    for x in range(1 << bits):
        for y in range(1 << bits):
            word, jumps = says(x, y)
            half = 1 << bits - 1
            code = Program.create((Subleq(0, 1, 2), Halt(), Halt()), ((x + half) % 16 - half, (y + half) % 16 - half))
            run = oracle.run(code, bits, 1)
            assert (run.memory[1] % 16, run.program_counter == 2) == (word, jumps)
            one_memory = image_oracle.ImageInterpreter(Image((3, 4, 6, x, y, 0, 0)), bits, 12)
            one_memory.run(1)
            assert (one_memory.cells[4], one_memory.program_counter == 6) == (word, jumps)


def test_a_broken_instruction_is_no_halt() -> None:
    with pytest.raises(ValueError, match="unpack"):
        fast.run([(1, 2)], [0, 0, 0], 8, 1)


FLEQ = {
    **{path.name: load(path) for path in sorted(EXAMPLES.glob("*.fleq"))},
    **{f"pointers, flag {flag}": assemble(
        ".data\nv vector 3 1 2 3\nw vector 2 4 5\ns scalar -1\nm scalar 1\nz scalar\nu vector 3 7 8 9\n.code\n"
        "x: s = sub(s, m); if z <= 0 goto 2\nhalt\nincr_pointer(x.c)\nreset_pointer(x.a, w)\n"
        f"reset_pointer(x.flag, {flag})\nincr_pointer(x.p)\nreset_pointer(x.c, u)\ngoto x") for flag in "mz"},
    "shapes": assemble(
        ".data\na matrix 3x2 1 2 ; 3 4 ; 5 6\nb matrix 2x3\nc matrix 2x2\nd matrix 3x3\nv vector 3 1 0 -1\nr matrix 1x3\n"
        "q scalar\np scalar\n.range 4096\n.code\nb = transpose(a)\nc = mul(a, a)\nd = mul(b, b)\nr = transpose(v)\n"
        "q = mul(v, v)\nv = mul(d, v)\nv = percentage(v)\np = mul(q, q)\nv = sigmoid(v)\nd = mul(r, r)\nhalt"),
}


@pytest.mark.parametrize("name", FLEQ)
def test_decoded_fleq(name: str) -> None:
    program = FLEQ[name]
    assert isinstance(program, FleqProgram)
    for steps in (*range(12), 1000):
        decoded = DecodedFleq(program)
        decoded.run(steps)
        expected = fleq_oracle.run(program, steps)
        assert decoded.counter == expected.state.program_counter
        assert decoded.memory == pytest.approx(expected.state.memory, rel=1e-12, abs=1e-12)
        assert decoded.memory.dtype == np.float64
