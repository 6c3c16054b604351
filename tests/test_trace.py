"""An observer sees every layer by name, and the model runs the same with or without it."""

from __future__ import annotations

import torch

from punchcard.card.encoding import decode_signed, decode_unsigned
from punchcard.machines.subleq.machine import SubleqMachine
from punchcard.trace import Snapshot, observe
from tests.cases import load_subleq

PROGRAM = load_subleq("multiply.subleq")


def test_the_steps_of_the_proof_can_be_watched() -> None:
    machine = SubleqMachine(word_bits=8, memory=6, instructions=5)
    sizes = machine.sizes
    with observe(machine.model, machine.layout) as seen:
        machine.run(PROGRAM, max_steps=2)
    assert [(s.loop, s.layer) for s in seen] == [(loop, layer) for loop in (0, 1) for layer in range(9)]
    read_instruction, read_data, flip, add_one, add, write, flag, select, _ = seen[9:]  # subleq minus_a, product
    assert decode_unsigned(read_instruction["pointer.a", "scratchpad"]).item() == sizes.memory_column + 3
    assert decode_signed(read_data["read_a", "scratchpad"]).item() == -7
    assert decode_signed(flip["read_a", "scratchpad"]).item() == 6
    assert decode_signed(add_one["read_a", "scratchpad"]).item() == 7
    assert decode_signed(add["read_b", "scratchpad"]).item() == 7
    assert decode_signed(write["memory", "memory"])[2].item() == 7
    assert flag["read_b", "scratchpad"][0].item() == 0
    assert decode_unsigned(select["program_counter", "scratchpad"]).item() == sizes.instruction_column + 2
    assert read_instruction.changed() == [("pointer", "scratchpad")]
    assert write.changed() == [("memory", "memory")]


def test_what_attention_moved() -> None:
    machine = SubleqMachine(word_bits=8, memory=6, instructions=5)
    with observe(machine.model, machine.layout) as seen:
        machine.run(PROGRAM, max_steps=1)
    first, second = machine.sizes.instruction_column, machine.sizes.memory_column
    assert seen[0].moves(0) == [(0, first, 0.5), (first, 0, 0.5)], "the scratchpad and instruction 0 share"
    assert seen[1].moves(0) == [(0, second, 0.5), (second, 0, 0.5)], "mem[a]"
    assert seen[0].attention(0).shape == (14, 14)


def test_loops_only_and_callbacks() -> None:
    machine = SubleqMachine(word_bits=8, memory=6, instructions=5, design="two-layer")
    with observe(machine.model, machine.layout, layers=False) as seen:
        machine.run(PROGRAM, max_steps=5)
    assert [(s.loop, s.layer) for s in seen] == [(loop, 1) for loop in range(6)]
    assert torch.equal(seen[0].before, machine.punch(PROGRAM))
    assert seen[1].changed() == [("memory", "memory"), ("pointer", "scratchpad"), ("following", "scratchpad")]
    called: list[Snapshot] = []
    with observe(machine.model, machine.layout, called.append) as collected:
        machine.run(PROGRAM, max_steps=1)
    assert (len(called), len(collected)) == (4, 0)


def test_the_model_runs_the_same() -> None:
    machine = SubleqMachine(word_bits=8, memory=6, instructions=5, design="one-layer")
    plain = machine.run(PROGRAM)
    with observe(machine.model, machine.layout):
        watched = machine.run(PROGRAM)
    assert torch.equal(plain.card, watched.card)
    assert not any(layer._forward_hooks for layer in machine.model.layers)
