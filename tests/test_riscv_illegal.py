"""Words that are not instructions, on every RISC-V machine: a fault at once, and never a slow loop.

Random programs with such words in them are compared with `riscv_reference.py`, which shares no code with the package.
"""

from __future__ import annotations

import random
from collections import Counter
from functools import cache

import pytest

from punchcard.machines.riscv import isa
from punchcard.machines.riscv.isa import MASK, encode
from punchcard.machines.riscv.machine import RiscvMachine
from tests.riscv_cases import illegal_word, is_instruction, program_of, wild_words
from tests.riscv_reference import Reference

MEMORY = 64
MACHINES = [("three-layer", True), ("three-layer", False), ("two-layer", False)]
ODD_PRODUCT = encode("mul", rd=11, rs1=10, rs2=10) | 1 << 26
"""The layers see a product, but funct7 is 3."""


@cache
def machine(design: str = "three-layer", multiply: bool = True) -> RiscvMachine:
    return RiscvMachine(memory=MEMORY, design=design, multiply=multiply)


def check_faults_at_once(subject: RiscvMachine, word: int) -> None:
    """Nothing of the word is done, and no loop is left to a slower engine."""
    result = subject.run(program_of([encode("addi", rd=10, immediate=5), word]), engine="auto")
    assert (result.reason, result.steps, result.engine, result.notes) == ("fault", 1, "lowered", ()), hex(word)
    assert str(result.fault) == f"illegal instruction {word:#010x} at 0x4"
    assert [number for number, value in enumerate(result.state.registers) if value] == [2, 10]
    sink = subject.layout.region("sink").start
    if not subject.design.lags:
        assert subject.layout.number_at(result.raw_card, "memory", sink) == 0


@pytest.mark.parametrize("word", [0x40CF14A5, ODD_PRODUCT, 0])
def test_an_illegal_word_is_a_fault_at_once(word: int) -> None:
    check_faults_at_once(machine(), word)


@pytest.mark.soak
@pytest.mark.parametrize(("design", "multiply"), MACHINES)
def test_every_kind_of_illegal_word_is_a_fault_at_once(design: str, multiply: bool) -> None:
    """The layers see no more of a word than its kind, until they ask whether it is an instruction."""
    subject, rng = machine(design, multiply), random.Random(7)
    decoder = subject.sizes.decoder
    kinds = {decoder.kind(word): word for word in (rng.getrandbits(32) for _ in range(200_000))
             if not is_instruction(word, decoder.instructions)}
    assert len(kinds) == (200 if multiply else 136)
    for word in kinds.values():
        check_faults_at_once(subject, word)


def compare(subject: RiscvMachine, seeds: range, steps: int, engine: str, wild: float) -> Counter[str]:
    """Programs side by side, each until it ends; how they ended."""
    known, found = subject.sizes.decoder.instructions, Counter[str]()
    memories = [wild_words(seed, MEMORY, known, wild) for seed in seeds]
    programs = [program_of(words) for words in memories]
    results = subject.run_batch(programs, engine=engine, max_steps=steps)
    for seed, words, program, result in zip(seeds, memories, programs, results, strict=True):
        content = b"".join(word.to_bytes(4, "little") for word in words)
        reference = Reference(content, list(program.registers(MEMORY)), 0, multiply=subject.sizes.multiply)
        made = 0
        while made < steps and reference.run(1):
            made += 1 + (subject.design.lags and reference.stored_ahead)  # which takes the two-layer design a loop more
        assert min(made, steps) == result.steps, (seed, result.reason, result.fault)
        held = list(result.state.registers), result.state.program_counter
        assert held == (reference.x, reference.counter), seed
        assert b"".join(int(word).to_bytes(4, "little") for word in result.state.memory) == reference.memory, seed
        assert (result.steps < steps) == (result.reason == "fault"), seed
        assert engine != "auto" or result.notes == (), seed
        found[str(result.fault).split(" at ")[0].split(" 0x")[0]] += 1
    return found


def test_random_programs_beside_a_second_interpreter() -> None:
    found = compare(machine(), range(40), 14, "scratchpad", wild=0.2)
    assert found["illegal instruction"] > 20


@pytest.mark.soak
@pytest.mark.parametrize(("design", "multiply"), MACHINES)
def test_many_random_programs_beside_a_second_interpreter(design: str, multiply: bool) -> None:
    """In code of the lowered engine, without a single loop of a slower one."""
    found = compare(machine(design, multiply), range(1000, 4000), 400, "auto", wild=0.05)
    assert found["illegal instruction"] > 1000


def test_illegal_words_are_of_many_kinds() -> None:
    """Words of 16 bits, of all zeros and ones, and neighbours of the M extension are among them."""
    rng, known = random.Random(3), machine().sizes.decoder.instructions
    words = [illegal_word(rng, known) for _ in range(300)]
    assert {0, MASK} < set(words)
    assert {word & 3 for word in words} == {0, 1, 2, 3}
    assert sum(word & 0x7F == isa.OP and word >> 25 & 1 for word in words) > 5
    assert not any(is_instruction(word, known) for word in words)
