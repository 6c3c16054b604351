"""Cards of a privileged machine in any state; what the interpreter makes of one loop; and weights that do something else."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from punchcard.errors import EncodingError
from punchcard.machines.riscv import csrs, isa
from punchcard.machines.riscv.csrs import CLINT, ROWS
from punchcard.machines.riscv.designs.control import read_control
from punchcard.machines.riscv.machine import RiscvMachine
from punchcard.machines.riscv.numbers import ELSE
from punchcard.machines.riscv.privileged import PrivilegedInterpreter, is_awake, is_due
from punchcard.transformer import equation
from punchcard.transformer.weights import LayerArrays, Weights
from tests.riscv_cases import card_of_case, program_of

Array = npt.NDArray[np.float64]


def scratchpad(subject: RiscvMachine) -> int:
    return int(subject.layout.region("scratchpad").start)


def card_in_any_state(subject: RiscvMachine, rng: random.Random, case: str) -> Array:
    """A card on which all facts hold: an instruction, any state, and often an address where something is.

    A word outside the memory is not fetched: the loop that should do it traps. Then another card is made.
    """
    while True:
        card = np.array(card_of_case(subject, rng, case).double().numpy())
        word = subject.layout.number_at(card, "word", scratchpad(subject))
        known = [one.name for one in subject.sizes.decoder.instructions if word & one.mask == one.match]
        if (known or [ELSE]) == [case]:
            give_state(subject, rng, card)
            return card


def give_state(subject: RiscvMachine, rng: random.Random, card: Any) -> None:
    """Any numbers for the machine's own state, and the rows that follow from them."""
    layout, scratch = subject.layout, scratchpad(subject)
    rows = {name: rng.choice((0, (1 << size) - 1, rng.getrandbits(size))) for name, size in ROWS.items()}
    if rng.getrandbits(1):  # the timer is nearly due, or just so
        rows["mtimecmph"], rows["mtimecmp"] = rows["mtimeh"], (rows["mtime"] + rng.randrange(-1, 3)) % (1 << 32)
    if rng.getrandbits(1):  # no interrupt, and no answer
        rows |= dict.fromkeys(("mstatus.mie", "port.ready", "port.refused"), 0) | {"mode": csrs.MACHINE}
    decoded = isa.decode(layout.number_at(card, "word", scratch))
    if decoded is not None and decoded.instruction.access_bytes and decoded.rs1:
        address = rng.choice((4 * rng.randrange(subject.sizes.memory), rng.choice(list(CLINT)), rng.getrandbits(32)))
        rows["reservation.address"] = address // 4
        layout.put_number_at(card, "memory", layout.region("registers").start + decoded.rs1,
                             address - decoded.immediate & isa.MASK)
    rows["mip.timer"] = is_due(rows)
    for name, number in (*rows.items(), ("awake", is_awake(rows))):
        layout.put_number_at(card, name, scratch, number)


def departures(subject: RiscvMachine, before: Array, after: Array) -> list[str]:
    """Where a card after one loop is not what the interpreter makes of the one before, or breaks a fact."""
    layout, sizes, scratch = subject.layout, subject.sizes, scratchpad(subject)
    if broken := layout.violations(after):
        return broken
    registers, words, counter = (np.asarray(part).tolist() for part in subject.design.read(sizes, layout, before))
    oracle = PrivilegedInterpreter(program_of(words, sizes.base), sizes.memory, multiply=sizes.multiply)
    oracle.registers[:], oracle.rows, oracle.program_counter = registers, read_control(layout, before), counter
    oracle.word = layout.number_at(before, "word", scratch) if sizes.base <= counter < sizes.end else None
    oracle.step()
    found = (*(np.asarray(part).tolist() for part in subject.design.read(sizes, layout, after)), read_control(layout, after),
             bool(layout.number_at(after, "event.bus", scratch)))
    meant = (list(oracle.registers), list(oracle.memory), oracle.program_counter, oracle.rows, oracle.requested)
    names = ("registers", "memory", "counter", "control", "event.bus")
    return [name for name, one, other in zip(names, found, meant, strict=True) if one != other]


@dataclass(frozen=True)
class ChangedWeight:
    """Weights with one entry changed, and a card on which a loop then departs from the interpreter."""

    about: str
    weights: Weights
    departs: list[str]


def departing_changes(
    subject: RiscvMachine, rng: random.Random, number: int, rows: str, case: str, cards: int = 8,
) -> Iterator[ChangedWeight]:
    """Changes of weights that some rows of a layer are made with in a case: those after which a card departs."""
    layers = list(subject.weights.layers)
    span, layer = subject.layout.rows(rows), layers[number]
    for _ in range(cards):
        card = card_in_any_state(subject, rng, case)
        begun = equation.stages(layers[:number], card)[-1]
        attended = equation.attend(layer, begun)
        is_on = layer.w1 @ attended[:, scratchpad(subject)] + np.ravel(layer.b1) > 0
        used, right = np.argwhere(layer.w2[span] * is_on), equation.feed_forward(layer, attended)
        for about, changed in _changes(rng, layer, used, span.start):
            after = equation.stages([changed], begun)[-1]
            if np.array_equal(after, right):
                continue
            after = equation.stages(layers[number + 1 :], after)[-1]
            try:
                departs = departures(subject, card, after)
            except EncodingError as error:
                departs = [str(error)]
            if departs:
                others = [*layers[:number], changed, *layers[number + 1 :]]
                yield ChangedWeight(f"layer {number + 1}, {rows}, {about}", Weights(
                    subject.weights.width, subject.weights.dtype, others), departs)
                break


def _changes(rng: random.Random, layer: LayerArrays, used: Any, first: int) -> Iterator[tuple[str, LayerArrays]]:
    """A few changes: of the units that are on, and of the heads."""
    def changed(name: str, at: tuple[int, ...]) -> tuple[str, LayerArrays]:
        array = getattr(layer, name).copy()
        old = float(array[at])
        array[at] = rng.choice([new for new in (-old, 0.0, 2 * old, old + 1, old - 0.5) if new != old])
        return f"{name}{list(at)}: {old} becomes {array[at]}", replace(layer, **{name: array})

    for row, unit in rng.sample(used.tolist(), min(4, len(used))):
        yield changed("w2", (first + row, unit))
        yield changed("w1", (unit, int(rng.choice(np.flatnonzero(layer.w1[unit]).tolist()))))
        yield changed("b1", (unit, *(0,) * (layer.b1.ndim - 1)))
    for name in ("key", "query", "value"):
        places = np.argwhere(getattr(layer, name))
        if len(places):
            yield changed(name, tuple(map(int, rng.choice(places.tolist()))))
