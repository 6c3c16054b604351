"""RISC-V programs side by side, whose calls are served for many cards at once: each run is what it would be alone."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

from punchcard.card.layout import Card
from punchcard.card.packed import PackedCard
from punchcard.card.packed_stack import StackedCards
from punchcard.engines import Controls
from punchcard.engines.lowered import batch_runner
from punchcard.errors import LayoutError
from punchcard.machines.ports import Answer, Host, StreamHost
from punchcard.machines.result import Result
from punchcard.machines.riscv.host import CardGuest, RiscvHost, StackGuest
from punchcard.machines.riscv.languages.assembly.assembler import assemble
from punchcard.machines.riscv.machine import RiscvMachine
from punchcard.machines.riscv.program import RiscvProgram
from punchcard.machines.streams import reader
from tests.cases import soaked
from tests.test_riscv_host import COMPLAINT, ECHO, FAULTS, HEAP

pytestmark = pytest.mark.usefixtures("shared_code")
DESIGNS = ["three-layer", "two-layer"]
VECTORS = """
        addi s0, sp, -32
        sw a0, 0(s0)        # writev of two places: the second begins within a word
        addi t0, s0, 16
        sw t0, 0(s0)
        li t1, 3
        sw t1, 4(s0)
        addi t0, s0, 21
        sw t0, 8(s0)
        sw t1, 12(s0)
        li t0, 0x64636261
        sw t0, 16(s0)
        sw t0, 20(s0)
        li a0, {file}
        mv a1, s0
        li a2, 2
        li a7, 66
        ecall
        mv s1, a0
        li a0, 0            # readv to the same places
        mv a1, s0
        li a2, 2
        li a7, 65
        ecall
        add a0, a0, s1
        lw t0, 20(s0)
        li a7, 93
        ecall
"""
CALL = """
        li a0, {}
        li a1, {}
        li a2, {}
        li a7, {}
        ecall
        mv s0, a0
        li a7, 172
        ecall
        add a0, a0, s0
        li a7, 94
        ecall
"""
COUNTING = """
        li s0, {}
again:  addi s0, s0, -1
        bnez s0, again
        li a7, 178
        ecall
        li s0, {}
more:   addi s0, s0, -1
        bnez s0, more
        j . + {}
"""


@cache
def machine(design: str) -> RiscvMachine:
    return RiscvMachine(memory=64, design=design)


@cache
def programs() -> list[RiscvProgram]:
    """Calls of every kind, with good arguments and bad ones, faults, ends by signals, programs without end."""
    rng = random.Random(7)
    numbers = [29, 57, 62, 63, 64, 80, 94, 96, 129, 131, 172, 177, 214, 400]
    addresses = [0, 100, 128, 129, 250, 254, 256, -4]
    texts = [ECHO, COMPLAINT, HEAP, *FAULTS.values(), "j .", *(VECTORS.format(file=file) for file in (1, 2, 7))]
    texts += [CALL.format(rng.choice([0, 1, 2, 3, 129]), rng.choice(addresses), rng.choice([0, 1, 3, 6, 130]), number)
              for number in numbers for _ in range(3)]
    texts += [COUNTING.format(rng.randrange(1, 90), rng.randrange(1, 90), rng.choice([0, 4096])) for _ in range(12)]
    return [assemble(text, "test.s") for text in texts]


def same(found: Result[Any], alone: Result[Any]) -> None:
    assert isinstance(found.raw_card, PackedCard)
    assert isinstance(alone.raw_card, PackedCard)
    assert found.raw_card.equals(alone.raw_card)
    assert str(found.fault) == str(alone.fault)
    for name in ("reason", "steps", "loops", "memory", "program_counter", "output", "errors", "read", "traffic", "status",
                 "state"):
        assert getattr(found, name) == getattr(alone, name), name


class Count:
    """How many cards were served at once, and how many alone."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.together = self.alone = 0
        many, one = RiscvHost.serve_many.__func__, StreamHost.__call__  # type: ignore[attr-defined]

        def serve_many(cls: type[RiscvHost], hosts: Sequence[Host], loops: Sequence[int], cards: StackedCards,
                       rows: Sequence[int]) -> list[Answer]:
            found: list[Answer] = many(cls, hosts, loops, cards, rows)
            self.together += sum(answer is not None for answer in found)
            return found

        def call(host: StreamHost, loop: int, card: Card) -> Any:
            self.alone += 1
            return one(host, loop, card)

        monkeypatch.setattr(RiscvHost, "serve_many", classmethod(serve_many))
        monkeypatch.setattr(StreamHost, "__call__", call)


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("steps", [0, soaked(13), 200])
def test_runs_are_what_they_are_alone(design: str, steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the last loop of a run is one before a call, or behind it."""
    rng = random.Random(steps)
    inputs = [bytes(rng.choices(b"ab\n", k=rng.randrange(30))) for _ in programs()]
    alone = [machine(design).run(program, engine="lowered", max_steps=steps, input=given)
             for program, given in zip(programs(), inputs, strict=True)]
    count = Count(monkeypatch)
    batch = machine(design).run_batch(programs(), engine="lowered", max_steps=steps, inputs=inputs)
    for found, wanted in zip(batch, alone, strict=True):
        same(found, wanted)
    if steps == 200:
        for program, given, result in zip(programs(), inputs, batch, strict=True):
            if result.reason == "halted":
                output = bytearray()
                oracle = machine(design).oracle(program, reader(given), output.append)
                oracle.run(steps)
                assert (result.state, result.output, result.steps) == (oracle.state, bytes(output), oracle.steps)
        assert {result.reason for result in batch} == {"halted", "fault", "steps"}
        assert count.together > 2 * len(programs()) > count.alone > 0, "faults are served alone"


def test_some_cards_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_runner, "MOST_CARDS", 3)
    inputs = [b"some lines\nof input\n"] * len(programs())
    batch = machine("three-layer").run_batch(programs(), engine="lowered", max_steps=200, inputs=inputs, threads=2)
    for program, found in zip(programs(), batch, strict=True):
        same(found, machine("three-layer").run(program, engine="lowered", max_steps=200, input=inputs[0]))


def test_an_error_ends_one_run() -> None:
    echo = assemble(ECHO, "test.s")
    batch = machine("three-layer").run_batch([echo] * 3, engine="lowered", inputs=[b"x", lambda: 300, b"y"])
    assert [result.output for result in batch] == [b"x", b"", b"y"]
    assert [result.reason for result in batch] == ["halted", "fault", "halted"]
    assert "it must be a byte" in str(batch[1].fault)


def test_an_interrupt() -> None:
    texts = ["j .", ECHO, COUNTING.format(3, 2, 4096)]
    batch = machine("three-layer").run_batch([assemble(text, "test.s") for text in texts], engine="lowered",
                                             max_steps=10**12, controls=Controls(interrupted=lambda: True))
    assert {result.reason for result in batch} <= {"interrupted", "halted", "fault"}
    assert batch[0].interrupted


def test_results_are_apart() -> None:
    """They lie in one piece of memory, and each can be changed; another batch leaves them alone."""
    own, echo = machine("three-layer"), assemble(ECHO, "test.s")
    batch = own.run_batch([echo] * 3, engine="lowered", inputs=[b"x", b"y", b"z"])
    kept = [result.state for result in batch]
    column = own.layout.region("memory").start
    own.layout.put_number_at(batch[1].raw_card, "memory", column, 5)
    own.layout.put_number_at(batch[1].raw_card, "address.position", column, 5)
    own.run_batch([echo] * 3, engine="lowered", inputs=[b"1", b"2", b"3"])
    assert [own.read(batch[i].raw_card) for i in (0, 2)] == [kept[0], kept[2]]
    assert own.layout.number_at(batch[0].raw_card, "address.position", column) == 0


@pytest.mark.parametrize("design", DESIGNS)
def test_a_guest_among_others_sees_what_one_alone_sees(design: str) -> None:
    """Random loads, stores and registers, with a word pending or not."""
    own, rng = machine(design), random.Random(design)
    cards = [own.pack(assemble(HEAP, "test.s")) for _ in range(4)]
    if design == "two-layer":
        scratch = own.layout.region("scratchpad").start
        for card, (position, space) in zip(cards, ((10, 1), (3, 0), (32, 1), (17, 1)), strict=True):
            for rows, number in (("pending.position", position), ("pending.space", space), ("value", 0x1234567)):
                own.layout.put_number_at(card, rows, scratch, number)
    stack = StackedCards(cards[0], {name: np.stack([card.fields[name] for card in cards]) for name in cards[0].fields})
    together = StackGuest(own.layout, own.sizes, stack, 0)
    for number, card in enumerate(cards):
        together.turn_to(number)
        alone = CardGuest(own.layout, own.sizes, card)
        for _ in range(30):
            register, address, size = rng.randrange(32), rng.randrange(200), rng.randrange(20)
            assert together.register(register) == alone.register(register)
            assert together.load(address, size) == alone.load(address, size)
            assert together.word(address // 4) == alone.word(address // 4)
            data, value = rng.randbytes(size), rng.getrandbits(32)
            for guest in (together, alone):
                guest.store(address, data)
                guest.set_register(register, value)
        assert stack.card(number).equals(card)


def test_words_that_a_stack_does_not_have() -> None:
    own = machine("three-layer")
    card = own.pack(assemble(HEAP, "test.s"))
    stack = StackedCards(card, {name: field[None] for name, field in card.fields.items()})
    for name in ("outside", "event.call"):
        with pytest.raises(LayoutError, match=f"'{name}' is not a block of bits that loops may change"):
            stack.words(name)
