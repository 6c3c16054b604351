"""An observer sees every layer by name, and the model runs the same with or without it."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import punchcard
from punchcard.card.encoding import decode_bits
from punchcard.errors import UnknownNameError
from punchcard.machines.subleq.machine import SubleqMachine
from punchcard.trace import Snapshot, observe
from tests.cases import EXAMPLES, load_subleq

PROGRAM = load_subleq("multiply.subleq")


def test_the_steps_of_the_proof_can_be_watched() -> None:
    machine = SubleqMachine(word_bits=8, memory=6, instructions=5)
    sizes = machine.sizes
    with observe(machine.model, machine.layout) as seen:
        machine.run(PROGRAM, max_steps=2)
    assert [(s.loop, s.layer) for s in seen] == [(loop, layer) for loop in (0, 1) for layer in range(9)]
    read_instruction, read_data, flip, add_one, add, write, flag, select, _ = seen[9:]  # subleq minus_a, product
    assert decode_bits(read_instruction["pointer.a", "scratchpad"]).item() == sizes.memory_column + 3
    assert decode_bits(read_data["read_a", "scratchpad"], signed=True).item() == -7
    assert decode_bits(flip["read_a", "scratchpad"], signed=True).item() == 6
    assert decode_bits(add_one["read_a", "scratchpad"], signed=True).item() == 7
    assert decode_bits(add["read_b", "scratchpad"], signed=True).item() == 7
    assert decode_bits(write["memory", "memory"], signed=True)[2].item() == 7
    assert flag["read_b", "scratchpad"][0].item() == 0
    assert decode_bits(select["program_counter", "scratchpad"]).item() == sizes.instruction_column + 2
    assert read_instruction.changed() == [("pointer", "scratchpad")]
    assert write.changed() == [("memory", "memory")]


def test_what_attention_moved() -> None:
    machine = SubleqMachine(word_bits=8, memory=6, instructions=5)
    with observe(machine.model, machine.layout) as seen:
        machine.run(PROGRAM, max_steps=1)
    first = machine.sizes.instruction_column
    assert seen[0].moves(0) == [("scratchpad", "instructions[0]", 0.5, 0, first),
                                ("instructions[0]", "scratchpad", 0.5, first, 0)]
    assert [(move.source, move.target) for move in seen[1].moves(0)] == [("scratchpad", "memory[0]"),
                                                                         ("memory[0]", "scratchpad")]
    assert seen[0].attention(0).shape == (14, 14)


@pytest.mark.parametrize(("file", "names"), [
    ("multiply.subleq", {"instruction 0", "a", "scratchpad"}),
    ("newton.fleq", {"instruction 0", "A", "scratchpad"}),
    ("von_neumann/hello.asq", {"scratchpad"}),
])
def test_columns_have_the_names_of_the_program(file: str, names: set[str]) -> None:
    """Every machine knows what its columns are called, with a program and without."""
    program = punchcard.load(EXAMPLES / file)
    sizes: dict[str, Any] = {"memory": 256, "word_bits": 16} if file.endswith(".asq") else {}
    machine = punchcard.build(program, **sizes)
    with machine.observe(program) as seen:
        machine.run(program, max_steps=2)
    moves = [move for snapshot in seen for head in range(snapshot.module.shape.heads) for move in snapshot.moves(head)]
    found = {name for move in moves for name in (move.source, move.target)}
    assert names <= {name.split("[")[0] for name in found}
    for move in moves:
        assert machine.column_name(move.source_column, program) == move.source
    everything = [machine.column_name(column) for column in range(machine.layout.columns)]
    assert len(set(everything)) == len(everything)
    with pytest.raises(UnknownNameError, match=f"no column {machine.layout.columns}"):
        machine.column_name(machine.layout.columns)


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
