"""Single weights of a FLEQ machine that decide bits, changed: what a proof must refute."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import torch

from punchcard.machines.fleq.designs.base import FleqContent
from punchcard.machines.fleq.designs.three_layer import ThreeLayerFleqDesign
from punchcard.machines.fleq.machine import FleqMachine
from punchcard.proof.proof import Proof
from punchcard.proof.solver import Failed
from punchcard.transformer.weights import Weights

BITS = ("program_counter", "halted", "write_pointer", "read_pointer", "read_idle", "write_idle", "deep", "over", "off",
        "writes", "a_pointer", "b_pointer", "shut_a", "shut_b", "shut_c", "current", "following", "kept", "jump_pointer",
        "jump_read_idle", "jump_write_idle", "jump_deep", "jump_over", "jump_off")
"""Blocks of bits that a feed-forward works out."""
HEADS = {"compact": (0, 1, 3), "paper": (0, 1, -5, -4), "three-layer": (0, 2)}
"""Layers whose heads find columns by addresses alone."""
FACTORS = (0.0, -1.0, 0.5, 2.0)


def mutated(machine: FleqMachine, seed: int) -> tuple[Weights, str]:
    """The machine's weights but for one, and which."""
    tries = random.Random(seed)
    rows = [row for name in BITS if any(block.name == name for block in machine.layout.blocks)
            for row in range(*machine.layout.rows(name).indices(machine.layout.width))]
    while True:
        number = tries.randrange(len(machine.weights.layers))
        layer = machine.weights.layers[number]
        name = tries.choice(("w1", "w2", "key", "query", "value"))
        array = np.array(getattr(layer, name))
        if name == "w2":
            places = [(row, unit) for row in rows for unit in array[row].nonzero()[0]]
        elif name == "w1":
            units = sorted({unit for row in rows for unit in layer.w2[row].nonzero()[0]})
            places = [(unit, row) for unit in units for row in array[unit].nonzero()[0]]
        else:
            found = number in {place % len(machine.weights.layers) for place in HEADS[machine.design.name]}
            places = list(zip(*array.nonzero(), strict=True)) if found else []
        if places:
            place = tuple(int(i) for i in tries.choice(places))
            before = float(array[place])
            array[place] = before * tries.choice(FACTORS)
            layers = list(machine.weights.layers)
            layers[number] = replace(layer, **{name: array})
            told = f"{name}{place} of layer {number + 1}: {before} to {array[place]}"
            return Weights(machine.weights.width, machine.weights.dtype, layers), told


def refuted(machine: FleqMachine, weights: Weights, *cases: str) -> str | None:
    """The claim that fails with these weights."""
    try:
        Proof(machine, weights, only=cases or None).run()
    except Failed as failed:
        return failed.claim
    return None


def random_card(machine: FleqMachine, seed: int) -> np.ndarray:
    """A card on which the machine's facts hold: any cells, any instructions that call a function of it or none."""
    random_ = np.random.default_rng(seed)
    sizes, design = machine.sizes, machine.design
    memory = random_.integers(-3, 4, (sizes.data_rows, sizes.memory)).astype(np.float64)
    memory[sizes.size :] = 0.0
    code = np.zeros((sizes.data_rows, sizes.instructions))
    for number in range(sizes.instructions):
        values = {"flag": int(random_.integers(sizes.zero_column, sizes.instruction_column)),
                  "p": int(random_.integers(sizes.instruction_column, sizes.columns)), "halt": int(random_.integers(2)),
                  "a_height": int(random_.integers(sizes.size + 1)), "c_height": int(random_.integers(sizes.size + 1))}
        called = random_.choice([*sizes.functions, "nothing"])
        if number == sizes.instructions - 1:
            called, values["flag"], values["p"] = "nothing", sizes.zero_column, sizes.columns - 1
        if called != "nothing":
            values[f"call_{called}"] = 1
            for x in "abc":
                width = int(random_.integers(min(sizes.size, sizes.memory) + 1))
                values |= {f"{x}_width": width, x: sizes.memory_column + int(random_.integers(sizes.memory - width + 1))}
        bits = [2.0 * (values.get(part, 0) >> i & 1) - 1
                for part, size in sizes.instruction_parts().items() for i in range(size)]
        code[: len(bits), number] = bits
    card = machine.layout.blank().numpy()
    design.punch(sizes, machine.layout, FleqContent(memory, code), card)
    counter = int(random_.integers(sizes.instruction_column, sizes.columns))
    machine.layout.put_numbers(card, "scratchpad", {"program_counter": [counter] * sizes.scratchpad})
    if isinstance(design, ThreeLayerFleqDesign):
        design.begin(card, code[: sizes.instruction_rows, counter - sizes.instruction_column])
    return card


def looped(weights: Weights, card: np.ndarray) -> np.ndarray:
    """The card after one loop, by the equation."""
    found: np.ndarray = weights.module(torch.from_numpy(card)).detach().numpy()
    return found
