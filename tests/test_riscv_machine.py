"""The RISC-V machine beside the plain interpreter: every instruction, every loop, every engine."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import torch

from punchcard.card.layout import Card
from punchcard.engines import Controls, prepare
from punchcard.errors import ProgramError, SizeError
from punchcard.machines.riscv import isa
from punchcard.machines.riscv.designs.decode import Decoder
from punchcard.machines.riscv.fast import QuickRiscv
from punchcard.machines.riscv.languages.assembly.assembler import assemble
from punchcard.machines.riscv.machine import RiscvMachine
from punchcard.machines.riscv.oracle import RiscvInterpreter
from punchcard.machines.riscv.program import RiscvProgram
from tests.cases import soaked
from tests.riscv_cases import (
    EXTREMES,
    PLAIN,
    any_instruction,
    endless,
    extreme,
    overwriting,
    program_of,
)

SMALL = 64


@pytest.fixture(scope="module")
def small() -> RiscvMachine:
    return RiscvMachine(memory=SMALL)


def oracle_of(machine: RiscvMachine, program: RiscvProgram) -> RiscvInterpreter:
    return machine.oracle(program, lambda: -1, lambda byte: None)


def put_registers(machine: RiscvMachine, card: Card, oracle: RiscvInterpreter, values: list[int]) -> None:
    first = machine.layout.region("registers").start
    for i, value in enumerate(values[1:], start=1):
        oracle.registers[i] = value
        machine.layout.put_number_at(card, "memory", first + i, value)


def event(machine: RiscvMachine, card: Card) -> int:
    return machine.layout.number_at(card, "event", 0)


def single_instructions(machine: RiscvMachine, seed: int, each: int) -> None:
    """One loop of the equation for each instruction, with registers that make it work, overflow or fail."""
    rng, base, size = random.Random(seed), machine.sizes.base, 4 * machine.sizes.memory
    words = [any_instruction(rng, i) for i in PLAIN for _ in range(each)] + [rng.getrandbits(32) for _ in range(each)]
    cards, oracles, programs = [], [], []
    for word in words:
        index = rng.randrange(machine.sizes.memory)
        content = [extreme(rng) for _ in range(machine.sizes.memory)]
        content[index] = word
        program = program_of(content, base, base + 4 * index)
        oracle, card = oracle_of(machine, program), machine.punch(program)
        near = (base + rng.randrange(size), base + 4 * rng.randrange(size // 4), base - rng.randrange(2048),
                base + size + rng.randrange(2048))
        put_registers(machine, card, oracle, [rng.choice((extreme(rng), rng.choice(near) & isa.MASK)) for _ in range(32)])
        cards.append(card)
        oracles.append(oracle)
        programs.append(program)
    batches = torch.split(torch.stack(cards), 16)  # hidden units of all cards at once take gigabytes
    after = [card for batch in batches for card in machine.model(machine.model(batch))]
    for card, oracle, program in zip(after, oracles, programs, strict=True):
        fault = oracle.fault
        oracle.step()
        assert machine.differences(program, card, oracle) == []
        assert not machine.layout.violations(card)
        assert bool(event(machine, card) & 4) == (fault is not None), fault
        if fault is None:
            following = oracle.fault
            assert bool(event(machine, card) & 2) == (following is not None and following.kind == "fetch out of range")


def test_single_instructions_by_the_equation(small: RiscvMachine) -> None:
    single_instructions(small, 1, 1)


@pytest.mark.soak
@pytest.mark.parametrize(("memory", "base"), [
    (64, 0), (64, 0x80000000), (100, 0x7FFF8F00), (1000, 0x1234), (300, 0xFFFFFB50)])
def test_many_instructions_by_the_equation(memory: int, base: int) -> None:
    machine = RiscvMachine(memory=memory, base=base)
    for seed in range(4):
        single_instructions(machine, seed, 6 if memory < 200 else 1)


def follow(machine: RiscvMachine, program: RiscvProgram, loops: int, engine: str) -> None:
    """Compare registers, memory and program counter after every loop."""
    oracle, seen = oracle_of(machine, program), []

    def watch(loop: int, card: Card) -> None:
        if loop > 1:
            assert oracle.fault is None
            oracle.step()
        seen.extend(machine.differences(program, card, oracle))

    runner = prepare(engine, machine.weights, machine.layout, machine.pack(program))
    run = runner.run(loops, Controls(watch=watch))
    assert seen == []
    assert run.loops == loops


@pytest.fixture(scope="module")
def middle() -> RiscvMachine:
    return RiscvMachine(memory=512)


def test_random_programs_lowered_after_every_loop(middle: RiscvMachine) -> None:
    follow(middle, endless(random.Random(0), 512, 120), 800, "lowered")


def test_stored_instructions_are_executed_as_stored(middle: RiscvMachine) -> None:
    follow(middle, overwriting(random.Random(5), 512, 40), 600, "lowered")


DENSE_LOOPS = 20_000


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(20))
def test_random_programs_by_the_equation_after_every_loop(seed: int, small: RiscvMachine) -> None:
    """Programs that fill the memory with code and data; the last ones store instructions in front of themselves."""
    rng = random.Random(f"dense {seed}")
    program = overwriting(rng, SMALL, 14) if seed >= 17 else endless(rng, SMALL, 45)
    follow(small, program, DENSE_LOOPS // 20, "dense")


def lowered_to(machine: RiscvMachine, program: RiscvProgram, loops: int) -> None:
    """The end of a long run, as the quick interpreter has it."""
    runner = prepare("lowered", machine.weights, machine.layout, machine.pack(program))
    assert runner.run(loops).loops == loops
    quick = QuickRiscv(program, machine.sizes.memory)
    quick.run(loops - 1)
    state = machine.read(runner.raw_card)
    assert state == quick.state


@pytest.mark.parametrize("design", ["three-layer", soaked("two-layer")])
def test_a_million_loops_lowered(design: str) -> None:
    lowered_to(RiscvMachine(memory=512, design=design), endless(random.Random(11), 512, 200), 1_000_000)


@pytest.mark.soak
def test_a_hundred_million_loops_lowered() -> None:
    machine = RiscvMachine(memory=4096)
    for seed in range(10):
        lowered_to(machine, endless(random.Random(seed), 4096, 1500), 10_000_000)


def all_pairs(values: tuple[int, ...]) -> RiscvProgram:
    """Every instruction of two registers on every pair of values; s7 turns, and takes in each result."""
    operations = [i.name for i in PLAIN if i.opcode == isa.OP]
    taken = "".join(f"""
        {name} t0, s4, s6
        slli t1, s7, 1
        srli t2, s7, 31
        or   s7, t1, t2
        xor  s7, s7, t0""" for name in operations)
    return assemble(f"""
_start: la   s2, values
        la   s3, end
outer:  lw   s4, 0(s2)
        la   s5, values
inner:  lw   s6, 0(s5){taken}
        addi s5, s5, 4
        bltu s5, s3, inner
        addi s2, s2, 4
        bltu s2, s3, outer
stop:   j    stop
values: .word {", ".join(map(str, values))}
end:
""", "pairs.s")


@pytest.mark.parametrize("values", [tuple(range(16)), EXTREMES], ids=["four bits", "corners"])
def test_every_operation_on_all_pairs(middle: RiscvMachine, values: tuple[int, ...]) -> None:
    lowered_to(middle, all_pairs(values), len(values) ** 2 * 54 + 200)


def test_kinds_follow_from_the_instruction_set() -> None:
    """Instructions of one kind compute alike; whatever else is in the word, the kind is the same."""
    rng, decoder = random.Random(1), Decoder()
    kinds: dict[Any, set[str]] = {}
    for instruction in decoder.instructions:
        kind = decoder.kind(instruction.match)
        for _ in range(20):
            assert decoder.kind(instruction.match | rng.getrandbits(32) & ~instruction.mask) == kind
        kinds.setdefault(kind, set()).add(instruction.name)
    alike = {frozenset(names) for names in kinds.values() if len(names) > 1}
    assert {"add", "addi", "lui", "auipc"} in alike
    assert {"ecall", "ebreak"} in alike
    assert len(kinds) == 28


@pytest.mark.soak
def test_sizes() -> None:
    machine = RiscvMachine(memory=1 << 16)
    facts = machine.summary()
    assert facts["layers"] == 3
    assert facts["heads"] == [2, 1, 1]
    assert (facts["dtype"], facts["needed_bits"]) == ("float32", 24)


def test_bad_sizes_are_refused() -> None:
    with pytest.raises(SizeError, match="base=0x2: with a memory of 64 words it must be a multiple of 4, 0 to 0xffffff00"):
        RiscvMachine(memory=64, base=2)
    with pytest.raises(SizeError, match="memory"):
        RiscvMachine(memory=0)


def test_a_program_of_another_base_is_refused(small: RiscvMachine) -> None:
    with pytest.raises(ProgramError, match="build it with base=0x100"):
        small.pack(program_of([isa.encode("jal")], 0x100, 0x100))


def test_a_trace_shows_the_instruction_and_what_changed(small: RiscvMachine) -> None:
    program = program_of([isa.encode("addi", rd=10, immediate=-5), isa.encode("jal")])
    begin = small.model(small.punch(program))
    line = small.trace_line(program, begin, small.model(begin))
    assert "addi a0, zero, -5" in line
    assert "a0 = -5" in line


def test_one_column_is_stored_to_in_a_loop(small: RiscvMachine) -> None:
    program = program_of([isa.encode("addi", rd=5, immediate=7), isa.encode("jal")])
    before = small.model(small.punch(program))
    after = small.model(before)
    changed = np.flatnonzero((before != after).any(dim=0).numpy()).tolist()
    assert [small.column_name(column) for column in changed] == ["scratchpad", "t0"]


@pytest.mark.parametrize("low", [12, *(soaked(low) for low in range(32) if low != 12)])
def test_any_word_leaves_bits_on_the_card(low: int, small: RiscvMachine) -> None:
    """Bits 2 to 6, funct3 and bit 30 of a word, whatever they mean, with one operand all ones and the other 0."""
    words = [low << 2 | 3 | 1 << 7 | high << 12 | 3 << 15 | top << 30 for high in range(8) for top in range(2)]
    cards = []
    for word in words:
        card = small.pack(program_of([word]))
        small.layout.put_number_at(card, "memory", small.layout.region("registers").start + 3, 0xFFFFFFFF)
        cards.append(card.tensor())
    batch = torch.stack(cards)
    with torch.no_grad():
        for _ in range(2):
            batch = small.model(batch)
    for word, card in zip(words, batch, strict=True):
        assert small.layout.violations(card) == [], hex(word)
