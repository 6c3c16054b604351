"""Where a card after a loop departs from one FLEQ step, by a plain reading of the card before: for counterexamples.

    mem[c] = f(mem[a], mem[b]); if mem[flag] <= 0 goto p
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from punchcard.card.encoding import encode_bits
from punchcard.card.layout import Card
from punchcard.errors import PunchcardError
from punchcard.machines.fleq.functions import Shape, ShapeMismatch
from punchcard.transformer.expression import Array

if TYPE_CHECKING:
    from punchcard.machines.fleq.blocks.block import Block
    from punchcard.machines.fleq.designs.base import FleqDesign

Mismatch = tuple[str, str, str, str]
"""Rows, the column, what should be there, what does."""


def step_mismatches(design: FleqDesign, card: Card, after: Card) -> Iterator[Mismatch]:
    """What a loop made of a card that one step does not; results are compared up to the error that their block states."""
    layout, sizes = design.card, design.sizes
    at = design.counter(card)
    name = layout.column_name(layout.region("scratchpad").start)
    has = design.fields(design.instruction(card, at))
    before, new = design.memory(card), design.memory(after)
    called = next((block for block in design.blocks if has[f"call_{block.name}"]), None)
    writes = called is not None and not called.reads_instructions
    first = has["c"] - sizes.memory_column
    target = range(first, first + has["c_width"]) if writes else range(0)
    expected = before.copy()
    known = called is None or not writes or _write(design, expected, has, called)
    for column in range(sizes.memory):
        tolerance = called.bound(design.scale) if called is not None and column in target else 0.0
        wrong = np.abs(new[:, column] - expected[:, column]).max() > tolerance
        if wrong and (known or column not in target):
            yield "cell", layout.column_name(sizes.memory_column + column), _text(expected[:, column]), _text(new[:, column])
    old, now = (design.contents(each, "instructions") for each in (card, after))
    for number in np.flatnonzero((old != now).any(axis=0)) if called is None or writes else ():
        column = sizes.instruction_column + int(number)
        yield "instruction", layout.column_name(column), _text(old[:, number]), _text(now[:, number])
    if not known:
        expected[:, target.start : target.stop] = new[:, target.start : target.stop]
    constants = {sizes.zero_column: 0.0, sizes.unit_column: 1.0}
    flag = constants[has["flag"]] if has["flag"] in constants else np.round(expected[0, has["flag"] - sizes.memory_column])
    following = has["p"] if flag <= 0 else sizes.instruction_column + min(at + 1, sizes.instructions - 1)
    for rows, wanted in (("program_counter", following), ("halted", has["halt"])):
        entries = layout.array(after, rows, "scratchpad")
        if not (entries == encode_bits(wanted, len(entries))).all():
            yield rows, name, str(wanted), _text(entries[:, 0])


def _write(design: FleqDesign, memory: Array, has: dict[str, int], called: Block) -> bool:
    """Write the result of a call into the memory. False: the operands do not fit, so that it is not known."""
    first, function = design.sizes.memory_column, called.function
    shapes = [Shape(has["a_height"], has[f"{x}_width"]) for x in "ab"[: function.arity]]
    operands = [memory[: has["a_height"], has[x] - first : has[x] - first + has[f"{x}_width"]]
                for x in "ab"[: function.arity]]
    low, high = function.domain or (-design.range, design.range)
    try:
        fits = function.shape(*shapes) == Shape(has["c_height"], has["c_width"])
    except (ShapeMismatch, PunchcardError):
        fits = False
    if not fits or any(not part.size or (part < low).any() or (part > high).any() for part in operands):
        return False
    result = function.reference(*operands)
    target = slice(has["c"] - first, has["c"] - first + has["c_width"])
    memory[:, target] = 0.0
    memory[: has["c_height"], target] = result
    return True


def _text(entries: Array) -> str:
    if len(entries) and (np.abs(entries) == 1).all():
        return str(sum(int(entry > 0) << i for i, entry in enumerate(entries)))
    return f"[{', '.join(f'{entry:.6g}' for entry in entries)}]"
