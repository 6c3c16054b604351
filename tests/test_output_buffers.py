"""Output buffers: ports that the generated code serves. Numbers, their order and cards are those of the dense engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import pytest
import torch

from punchcard.card.layout import Pattern
from punchcard.engines import Controls, Port, prepare
from punchcard.engines.controls import OutputBuffer
from punchcard.engines.lowered import pattern_table
from punchcard.engines.lowered.card_state import CardState
from punchcard.errors import EncodingError, LayoutError, PunchcardError
from punchcard.machines.von_neumann.isa import Image
from punchcard.machines.von_neumann.machine import VonNeumannMachine

MACHINE = VonNeumannMachine(word_bits=8, memory=16)
COUNT = Image((13, 12, 3, 15, 15, 0, 0, 0, 0, 0, 0, 0, 99, 1, 0, 0))
"""Counts cell 12 down, for ever; its two instructions begin at 0 and 3."""
PRINT = Image((12, -1, 3, 15, 15, 0, 0, 0, 0, 0, 0, 0, 65, 0, 0, 0))
CELL = MACHINE.layout.region("memory").start + 12


def at(address: int) -> Pattern:
    """The program counter of the next loop."""
    return Pattern("counter", "scratchpad", tuple(1 if address >> i & 1 else -1 for i in range(8)))


def served(engine: str, loops: int, ports: Sequence[tuple[Pattern, str, int, int]], *, watched: bool = False,
           others: Mapping[Pattern, Port] | None = None) -> tuple[Any, list[tuple[str, int]]]:
    """A run with output buffers (rows, column, what they put there) and ports: the card, and what each received."""
    given: list[tuple[str, int]] = []

    def note(name: str, numbers: Sequence[int]) -> None:
        given.extend((name, number) for number in numbers)

    buffers: dict[Pattern, Port] = {
        pattern: OutputBuffer(MACHINE.layout, rows, column, then, partial(note, f"buffer {i}"))
        for i, (pattern, rows, column, then) in enumerate(ports)}
    runner = prepare(engine, MACHINE.weights, MACHINE.layout, MACHINE.pack(COUNT))
    watch = (lambda loop, card: None) if watched else None
    ran = runner.run(loops, Controls(ports={**buffers, **(others or {})}, watch=watch))
    assert ran.loops == loops
    return ran.card, given


CASES = {
    "one": [(at(3), "memory", CELL, 77)],
    "two": [(at(3), "memory", CELL, 77), (at(6), "memory", CELL, 200)],
    "the same number": [(at(3), "memory", CELL, 98)],
    "both at once": [(at(3), "memory", CELL, 5), (Pattern("counter", "scratchpad", (1, 1, -1, 0, 0, 0, 0, 0)), "memory",
                                                  CELL - 1, 3)],
    "a word of the scratchpad": [(at(3), "word.a", 0, 13)],
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("room", [1, 8192])
def test_taps_are_ports(name: str, room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pattern_table, "MOST_NOTES", room)
    scratch = MACHINE.layout.region("scratchpad").start
    buffers = [(pattern, rows, scratch if rows == "word.a" else column, then) for pattern, rows, column, then in CASES[name]]
    for loops in (1, 2, 3, 7, 40):
        card, given = served("lowered", loops, buffers)
        expected, should = served("dense", loops, buffers)
        assert given == should
        assert torch.equal(card, expected), loops
    assert len(given) >= 13
    assert served("lowered", 40, buffers, watched=True)[1] == given


@pytest.mark.parametrize("engine", ["lowered", "dense"])
def test_numbers_arrive_before_another_port_is_called(engine: str) -> None:
    order: list[str] = []

    def take(numbers: Sequence[int]) -> None:
        order.extend("buffer" for _ in numbers)

    def look(loop: int, card: Any) -> bool:
        order.append("port")
        return True

    runner = prepare(engine, MACHINE.weights, MACHINE.layout, MACHINE.pack(COUNT))
    runner.run(12, Controls(ports={at(3): OutputBuffer(MACHINE.layout, "memory", CELL, 50, take), at(6): look}))
    assert order[:4] == ["buffer", "port", "buffer", "port"]


def test_a_tap_beside_a_port() -> None:
    buffers = [(at(3), "memory", CELL, 50)]
    assert served("lowered", 30, buffers, others={at(6): lambda loop, card: True})[1] == served("dense", 30, buffers)[1]


def test_the_code_goes_on_after_an_output(monkeypatch: pytest.MonkeyPatch) -> None:
    calls, advance = 0, CardState.advance

    def counted(self: CardState, loops: int, *, stop: bool = True) -> tuple[int, int | None]:
        nonlocal calls
        calls += 1
        return advance(self, loops, stop=stop)

    monkeypatch.setattr(CardState, "advance", counted)
    result = MACHINE.run(PRINT, engine="lowered", max_steps=20_000)
    assert result.output == b"A" * 10_000
    assert calls < 200


def test_a_tap_may_not_change_what_never_changes() -> None:
    with pytest.raises(PunchcardError, match="a port left something on the card that its layout does not declare"):
        served("lowered", 30, [(at(3), "position.here", CELL, 1)])


def test_what_a_tap_puts_must_fit() -> None:
    with pytest.raises(EncodingError, match="256 does not fit 'memory', which has 8 bits"):
        OutputBuffer(MACHINE.layout, "memory", CELL, 256, lambda numbers: None)
    with pytest.raises(LayoutError, match="0 does not go to 'outside' in 'memory\\[12\\]'"):
        served("lowered", 9, [(at(3), "outside", CELL, 0)])
