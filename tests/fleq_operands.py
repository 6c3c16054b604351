"""Calls of each function of a FLEQ machine with random and extreme operands: how far weights are off; what is stated."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from punchcard.machines.fleq.designs.base import FleqContent
from punchcard.machines.fleq.designs.three_layer import ThreeLayerFleqDesign
from punchcard.machines.fleq.functions import Shape, fitting_shapes
from punchcard.machines.fleq.machine import FleqMachine
from punchcard.proof.certificate import Claim
from punchcard.proof.counterexample import run_layers
from punchcard.transformer.weights import Weights

CALLS = 24
"""Calls of each function; the first few have operands at the ends of the domain."""


def stated_errors(claims: Sequence[Claim]) -> dict[str, float]:
    """The error that is stated of each function."""
    told = {claim.name.removeprefix("error of "): re.search(r"at most (\S+) over", claim.about)
            for claim in claims if claim.name.startswith("error of ")}
    return {name: float(found[1]) for name, found in told.items() if found is not None}


def largest_errors(machine: FleqMachine, weights: Weights, seed: int = 0, calls: int = CALLS) -> dict[str, float]:
    """The largest error of any cell after calls of each function, by the equation with these weights."""
    rng, found = np.random.default_rng(seed), {}
    for name, block in machine.blocks.items():
        if block.reads_instructions:
            continue
        cards, wanted = zip(*(_call(machine, name, rng, edge=number < calls // 3) for number in range(calls)), strict=True)
        after = machine.design.memory(run_layers(weights, np.stack(cards)))
        with np.errstate(invalid="ignore"):
            errors = np.abs(after - np.stack(wanted))
        found[name] = float(np.inf if np.isnan(errors).any() else errors.max())
    return found


def _call(machine: FleqMachine, name: str, rng: np.random.Generator, *, edge: bool) -> tuple[np.ndarray, np.ndarray]:
    """A card whose next instruction calls the function, and the memory that it should leave."""
    sizes, function = machine.sizes, machine.blocks[name].function
    d, arity = sizes.size, function.arity
    shapes = fitting_shapes(function, d)
    *operands, result = shapes[rng.integers(len(shapes))]
    memory = np.zeros((sizes.data_rows, sizes.memory))
    values, at = [], 0
    for shape in operands:
        value = _operand(machine, name, rng, shape, edge=edge)
        memory[: shape.rows, at : at + shape.columns] = value
        values.append((at, shape, value))
        at += shape.columns
    _shrink(machine, name, values, memory)
    target = int(rng.integers(sizes.memory - result.columns + 1))
    fields = {"flag": sizes.unit_column, "p": sizes.columns - 1, f"call_{name}": 1, "a_height": operands[0].rows,
              "c_height": result.rows, "c": sizes.memory_column + target, "c_width": result.columns,
              "a": sizes.zero_column, "b": sizes.zero_column}
    for x, (place, shape, _) in zip("ab"[:arity], values, strict=True):
        fields |= {x: sizes.memory_column + place, f"{x}_width": shape.columns}
    last = {"flag": sizes.zero_column, "p": sizes.columns - 1, "halt": 1, "a": sizes.zero_column, "b": sizes.zero_column,
            "c": sizes.zero_column}
    code = np.zeros((sizes.data_rows, sizes.instructions))
    for number in range(sizes.instructions):
        code[: sizes.instruction_rows, number] = [
            2.0 * ((fields if number == 0 else last).get(part, 0) >> i & 1) - 1
            for part, size in sizes.instruction_parts().items() for i in range(size)]
    card = machine.layout.blank().numpy()
    machine.design.punch(sizes, machine.layout, FleqContent(memory, code), card)
    if isinstance(machine.design, ThreeLayerFleqDesign):
        machine.design.begin(card, code[: sizes.instruction_rows, 0])
    assert machine.layout.violations(card) == []
    wanted = memory[:d].copy()
    wanted[:, target : target + result.columns] = 0.0
    wanted[: result.rows, target : target + result.columns] = function.reference(*(value for _, _, value in values))
    return card, wanted


def _operand(machine: FleqMachine, name: str, rng: np.random.Generator, shape: Shape, *, edge: bool) -> np.ndarray:
    function = machine.blocks[name].function
    low, high = function.domain or (-machine.range, machine.range)
    size = shape.rows, shape.columns
    if edge:
        return rng.choice([low, high, max(low, 0.0), (low + high) / 2], size)
    return rng.uniform(low, high, size) * rng.choice([1.0, 1.0, 0.01]) if function.domain is None else rng.uniform(
        low, high, size)


def _shrink(machine: FleqMachine, name: str, values: list[tuple[int, Shape, np.ndarray]], memory: np.ndarray) -> None:
    """Keep the entries of the result within what products are stated for."""
    function = machine.blocks[name].function
    largest = np.abs(function.reference(*(value for _, _, value in values))).max()
    limit = min(machine.range, machine.scale.reach)
    if function.domain is None and largest > limit:
        for at, shape, value in values:
            value *= limit / largest
            memory[: shape.rows, at : at + shape.columns] = value
