"""Where a card after a loop departs from one FLEQ step, by a plain reading of the card before: for counterexamples.

    mem[c] = f(mem[a], mem[b]); if mem[flag] <= 0 goto p
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from punchcard.card.layout import Card
from punchcard.errors import PunchcardError
from punchcard.machines.fleq.functions import Shape, ShapeMismatch
from punchcard.transformer.expression import Array

if TYPE_CHECKING:
    from punchcard.machines.fleq.blocks.block import Block
    from punchcard.machines.fleq.designs.base import FleqDesign

Known = npt.NDArray[np.bool_]
Mismatch = tuple[str, str, str, str]
"""Rows, the column, what should be there, what does."""


def step_mismatches(design: FleqDesign, card: Card, after: Card) -> Iterator[Mismatch]:
    """What a loop made of a card that one step does not; results are compared up to the error that their block states."""
    layout, sizes = design.card, design.sizes
    at = int(design.counter(card))
    name = layout.column_name(layout.region("scratchpad").start)
    has = design.fields(design.instruction(card, at))
    before, new = design.memory(card), design.memory(after)
    called = next((block for block in design.blocks if has[f"call_{block.name}"]), None)
    expected, known = _written(design, before, has, called)
    for column in range(sizes.memory):
        wrong = np.abs(new[:, column] - expected[:, column]).max() > _tolerance(design, called, column, has)
        if known[column] and wrong:
            yield "cell", layout.column_name(sizes.memory_column + column), _told(expected[:, column]), _told(new[:, column])
    changed = called is not None and called.reads_instructions
    for number in range(sizes.instructions):
        old, now = (design.instruction(each, number) for each in (card, after))
        if not changed and not np.array_equal(old, now):
            yield "instruction", layout.column_name(sizes.instruction_column + number), _told(old), _told(now)
    flag = _flag(design, np.where(known, expected, new), has["flag"])
    target = has["p"] if flag <= 0 else sizes.instruction_column + min(at + 1, sizes.instructions - 1)
    for rows, wanted in (("program_counter", target), ("halted", has["halt"])):
        entries = layout.array(after, rows, "scratchpad")
        bits = np.array([2.0 * (wanted >> i & 1) - 1 for i in range(len(entries))])
        if not (entries == bits[:, None]).all():
            yield rows, name, str(wanted), _told(entries[:, 0])


def _written(design: FleqDesign, before: Array, has: dict[str, int], called: Block | None) -> tuple[Array, Known]:
    """The memory after the write, and which columns of it are known: all but a result of operands that do not fit."""
    expected = before.copy()
    known: Known = np.ones(before.shape[1], dtype=np.bool_)
    first = design.sizes.memory_column
    if called is None or called.reads_instructions:
        return expected, known
    target = slice(has["c"] - first, has["c"] - first + has["c_width"])
    function, a, b = called.function, *(Shape(has["a_height"], has[f"{x}_width"]) for x in "ab")
    operands = [before[: has["a_height"], has[x] - first : has[x] - first + has[f"{x}_width"]]
                for x in "ab"[: function.arity]]
    shapes = (a, b)[: function.arity]
    try:
        fits = function.shape(*shapes) == Shape(has["c_height"], has["c_width"]) and all(part.size for part in operands)
    except (ShapeMismatch, PunchcardError):
        fits = False
    low, high = function.domain or (-design.range, design.range)
    if not fits or any((part < low).any() or (part > high).any() for part in operands):
        known[target] = False
        return expected, known
    expected[:, target] = 0.0
    expected[: has["c_height"], target] = function.reference(*operands)
    return expected, known


def _tolerance(design: FleqDesign, called: Block | None, column: int, has: dict[str, int]) -> float:
    """0 for a cell that is not written."""
    first = has["c"] - design.sizes.memory_column
    written = called is not None and first <= column < first + has["c_width"]
    return called.bound(design.scale) if written and called is not None else 0.0


def _flag(design: FleqDesign, memory: Array, column: int) -> float:
    sizes = design.sizes
    if column in (sizes.zero_column, sizes.unit_column):
        return float(column == sizes.unit_column)
    return float(np.round(memory[0, column - sizes.memory_column]))


def _told(entries: Array) -> str:
    if len(entries) and (np.abs(entries) == 1).all():
        return str(sum(int(entry > 0) << i for i, entry in enumerate(entries)))
    return f"[{', '.join(f'{entry:.6g}' for entry in entries)}]"
