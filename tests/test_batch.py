"""Machines side by side: each run is what it would be alone, ends by itself, and leaves the others alone."""

from __future__ import annotations

import random
import threading
from typing import Any

import pytest
import torch

import punchcard
from punchcard.card.packed import PackedCard
from punchcard.engines import BatchRunner, Controls, prepare_batch
from punchcard.engines.lowered import batch_runner
from punchcard.engines.lowered.batch_runner import LoweredBatchRunner
from punchcard.errors import LoweringError, ProgramError, PunchcardError
from punchcard.machines.fleq import machine as fleq
from punchcard.machines.fleq.text.assembler import assemble
from punchcard.machines.result import Result
from punchcard.machines.subleq.machine import SubleqMachine
from punchcard.machines.subleq.workloads import multiply
from punchcard.machines.von_neumann.isa import Image
from punchcard.machines.von_neumann.machine import VonNeumannMachine
from tests.random_programs import random_image, random_program

pytestmark = pytest.mark.usefixtures("shared_code")
COUNTDOWN = ".data\nleft {}\none 1\nzero 0\n.code\nagain: subleq one, left, done\nsubleq zero, zero, again\ndone: halt"


@pytest.fixture(scope="module")
def machine() -> SubleqMachine:
    return SubleqMachine(word_bits=16, memory=12, instructions=20, design="two-layer", precision="float32")


def countdown(left: int) -> Any:
    """A program of 2 `left` - 1 instructions."""
    return punchcard.assemble(COUNTDOWN.format(left))


def same(found: Result[Any], alone: Result[Any]) -> bool:
    """All but the time that it took."""
    assert torch.equal(found.card, alone.card)
    names = ("reason", "steps", "loops", "memory", "program_counter", "output", "read", "fault", "state")
    return all(getattr(found, name) == getattr(alone, name) for name in names)


# Every run is what it would be alone


@pytest.mark.parametrize("engine", ["auto", "lowered", "scratchpad"])
def test_random_programs_are_what_they_are_alone(machine: SubleqMachine, engine: str) -> None:
    rng = random.Random(engine)
    programs = [random_program(rng, 16, 12, 20) for _ in range(3 if engine == "scratchpad" else 60)]
    batch = machine.run_batch(programs, engine=engine, max_steps=80)
    for program, result in zip(programs, batch, strict=True):
        assert same(result, machine.run(program, engine=engine, max_steps=80))
        oracle = machine.oracle(program, lambda: -1, lambda byte: None)
        oracle.run(80)
        assert (machine.read(result.raw_card), result.steps) == (oracle.state, oracle.steps)
    assert {"halted", "steps"} == {result.reason for result in batch} or engine == "scratchpad"
    assert (len(batch), batch.steps) == (len(programs), sum(result.steps for result in batch))


@pytest.mark.parametrize("design", ["two-layer", "paper", "one-layer"])
def test_programs_with_the_same_instructions(design: str) -> None:
    """They are packed together; their cards, values and errors are those that each has alone."""
    machine = SubleqMachine(word_bits=8, memory=6, instructions=5, design=design)
    rng, shared = random.Random(design), countdown(3)
    programs = [shared.with_values({"left": rng.randrange(1, 12), "zero": rng.randrange(-128, 1)}) for _ in range(6)]
    programs += [random_program(rng, 8, 6, 5) for _ in range(2)] + [shared] * 2
    for program, card in zip(programs, machine.pack_all(programs), strict=True):
        assert card.equals(machine.pack(program))
    engine = "auto" if design == "one-layer" else "lowered"
    for program, result in zip(programs, machine.run_batch(programs, engine=engine, max_steps=30), strict=True):
        assert same(result, machine.run(program, engine=engine, max_steps=30))
    with pytest.raises(ProgramError, match="7 of the batch: cell 'left' is 128, which does not fit a word of 8 bits"):
        machine.run_batch([*programs[:7], shared.with_values({"left": 128})])


def test_cards_of_a_batch_are_apart(machine: SubleqMachine) -> None:
    """What they share, because no loop changes it, belongs to each of them as soon as one is written to."""
    programs = [countdown(3).with_values({"left": left}) for left in (3, 4)]
    one, other = machine.pack_all(programs)
    machine.layout.put_number_at(one, "command.c", machine.sizes.instruction_column, 1)
    assert other.equals(machine.pack(programs[1]))
    first, second = (result.raw_card for result in machine.run_batch(programs, engine="lowered"))
    kept = machine.read(second)
    machine.layout.put_number_at(first, "memory", machine.sizes.memory_column, 77)
    machine.layout.put_number_at(first, "command.c", machine.sizes.instruction_column, 1)
    assert machine.read(second) == kept
    assert machine.layout.number_at(second, "command.c", machine.sizes.instruction_column) != 1


def test_machines_halt_at_different_times_and_then_cost_nothing(machine: SubleqMachine) -> None:
    """Also more machines than one job takes, and more threads than cores."""
    lengths = [(37 * i) % 900 + 1 for i in range(300)]
    told: list[int] = []
    batch = machine.run_batch([countdown(n) for n in lengths], max_steps=10**6, threads=3,
                              controls=Controls(progress=told.append))
    assert batch.halted
    assert [result.steps for result in batch] == [2 * n - 1 for n in lengths]
    assert {result.memory["left"] for result in batch} == {0}
    assert told == sorted(told)
    assert told[-1] == sum(result.loops for result in batch), "no loop is made after a halt"
    assert batch.threads == 3


def test_jobs_take_some_at_a_time(machine: SubleqMachine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_runner, "MOST_CARDS", 2)
    lengths = [5, 3000, 1, 70, 3000, 9, 12]
    for threads in (1, 2):
        batch = machine.run_batch([countdown(n) for n in lengths], max_steps=10**6, threads=threads)
        assert [result.steps for result in batch] == [2 * n - 1 for n in lengths]


def test_images_with_input_and_output() -> None:
    """Every machine has its own input, output and end; one that stops with a fault stops alone."""
    rng = random.Random(5)
    machine = VonNeumannMachine(word_bits=8, memory=64)
    echo = punchcard.load("examples/von_neumann/echo.asq")
    images = [echo, Image((100, 0, 3)), Image((30, 30, 0)), *(random_image(rng, 8, 64) for _ in range(20)), echo]
    inputs = [b"one", *[b"abc"] * 22, b"another one"]
    batch = machine.run_batch(images, inputs=inputs, max_steps=400)
    for image, given, result in zip(images, inputs, batch, strict=True):
        assert same(result, machine.run(image, input=given, max_steps=400))
    assert (batch[0].output, batch[-1].output) == (b"one", b"another one")
    assert (batch[1].reason, batch[1].fault.address, batch[2].reason) == ("fault", 100, "steps")


@pytest.mark.parametrize("look_every", [7, 1_000_000])
def test_real_numbers(look_every: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """FLEQ: many cases to compile while threads wait; also in parts."""
    monkeypatch.setattr(fleq, "LOOK_EVERY", look_every)
    program = punchcard.load("examples/newton.fleq")
    machine = punchcard.build(program)
    alone = machine.run(program, engine="lowered")
    fresh = punchcard.build(program)
    batch = fresh.run_batch([program] * 5, engine="lowered")
    for result in batch:
        assert torch.equal(result.card, alone.card)
        assert (result.reason, result.steps, result.engine) == ("halted", alone.steps, "lowered")


def test_numbers_that_active_columns_carry() -> None:
    """FLEQ in three layers carries registers from loop to loop, beside the card: they are on the cards at the end."""
    program = punchcard.load("examples/newton.fleq")
    machine = punchcard.build(program, design="three-layer")
    alone = machine.run(program, engine="lowered", max_steps=7, guarded=False)
    for result in machine.run_batch([program] * 2, engine="lowered", max_steps=7):
        assert torch.equal(result.card, alone.card)


def test_a_broken_promise_is_the_fault_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleq, "LOOK_EVERY", 16)
    text = ".range 8\n.data\nx scalar {}\n.code\nagain: x = add(x, x)\ngoto again"
    good, bad = (assemble(text.format(x)) for x in (0.0, 1.0))
    machine = punchcard.build(good)
    batch = machine.run_batch([good, bad, good], max_steps=100)
    assert [result.reason for result in batch] == ["steps", "fault", "steps"]
    assert [result.steps for result in batch] == [100, 16, 100]
    with pytest.raises(ProgramError) as error:
        machine.run(bad, max_steps=100)
    assert str(batch[1].fault) == str(error.value)
    assert machine.run_batch([bad], max_steps=20, guarded=False)[0].reason == "steps"


def test_an_input_that_is_not_a_byte_is_the_fault_of_one() -> None:
    machine = VonNeumannMachine(word_bits=8, memory=64)
    echo = punchcard.load("examples/von_neumann/echo.asq")
    batch = machine.run_batch([echo] * 3, inputs=[b"x", lambda: 300, b"y"])
    assert [result.output for result in batch] == [b"x", b"", b"y"]
    assert [result.reason for result in batch] == ["halted", "fault", "halted"]
    assert "it must be a byte" in str(batch[1].fault)


# Cards


def test_cards_in_place_of_programs(machine: SubleqMachine) -> None:
    programs = [countdown(n) for n in (3, 1, 8)]
    stacked = torch.stack([machine.punch(program) for program in programs])
    for cards in (stacked, [machine.pack(program) for program in programs], [programs[0], stacked[1], stacked[2]]):
        batch = machine.run_batch(cards)
        assert [(result.steps, result.reason) for result in batch] == [(5, "halted"), (1, "halted"), (15, "halted")]
        assert [result.state.memory[0] for result in batch] == [0, 0, 0]
        assert batch[1].memory == {}


def test_a_card_that_is_not_what_its_layout_declares(machine: SubleqMachine) -> None:
    """It goes on with a slower engine; the lowered one declines it, and it alone."""
    cards = torch.stack([machine.punch(countdown(n)) for n in (40, 50, 60)])
    cards[1, machine.layout.rows("memory").start, machine.layout.region("memory").start + 5] = 0.25
    batch = machine.run_batch(cards)
    assert [result.engine for result in batch] == ["lowered", "dense", "lowered"]
    expected = machine.run_batch(cards, engine="dense")
    for result, dense in zip(batch, expected, strict=True):
        assert torch.equal(result.card, dense.card)
    declined = machine.run_batch(cards, engine="lowered")
    assert [result.reason for result in declined] == ["halted", "fault", "halted"]
    assert isinstance(declined[1].fault, LoweringError)
    with pytest.raises(LoweringError, match=r"the engine 'lowered' declines: .*'auto' takes a slower one"):
        machine.run_batch(cards[1:2], engine="lowered")


# Stopping


class Patience:
    """Says stop when it has been asked often enough."""

    def __init__(self, questions: int) -> None:
        self.left = questions

    def __call__(self) -> bool:
        self.left -= 1
        return self.left < 0


@pytest.mark.parametrize("engine", ["lowered", "dense"])
def test_an_interrupt_stops_those_that_have_not_ended(machine: SubleqMachine, engine: str) -> None:
    programs = [countdown(1), multiply(), countdown(2), multiply()][: 4 if engine == "lowered" else 2]
    batch = machine.run_batch(programs, engine=engine, max_steps=10**12, controls=Controls(interrupted=Patience(20)))
    assert [result.reason for result in batch] == ["halted", "interrupted", "halted", "interrupted"][: len(batch)]
    for program, result in zip(programs, batch, strict=True):
        assert machine.run(program, max_steps=result.steps).state == result.state, "a whole number of loops was made"


def test_ctrl_c_leaves_no_thread_behind(machine: SubleqMachine) -> None:
    before = threading.active_count()

    def give_up(loops: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        machine.run_batch([multiply()] * 4, max_steps=10**12, controls=Controls(progress=give_up))
    assert threading.active_count() == before


# The runner


@pytest.mark.parametrize("engine", ["auto", "lowered", "scratchpad"])
def test_a_second_call_goes_on(machine: SubleqMachine, engine: str) -> None:
    cards = [machine.pack(multiply()) for _ in range(3)]
    runner: BatchRunner = prepare_batch(engine, machine.weights, machine.layout, cards)
    runner.run(30)
    runner.run(20, among=[2])
    runs = runner.run(5, among=[2, 0])
    assert [ran.loops for ran in runs] == [5, 5]
    for ran, loops in zip(runs, (55, 35), strict=True):
        alone = machine.run(multiply(), max_steps=loops - machine.design.warm_up, engine="dense")
        assert torch.equal(ran.card, alone.card)


def test_cards_lie_one_after_the_other(machine: SubleqMachine) -> None:
    """What a GPU, or anybody else, needs to know: machine i is at i times the size of one."""
    cards = [machine.pack(countdown(n)) for n in (1, 2, 3)]
    runner = LoweredBatchRunner(machine.weights, machine.layout, cards)
    (together,) = runner.groups
    size = together.compiled_model.places.size
    for i, live in enumerate(map(together.rows.state, range(len(cards)))):
        assert live.buffer.ctypes.data == together.memory.buffers.ctypes.data + i * size
        assert live.buffer.ctypes.data % 64 == 0
    assert isinstance(runner.run(1)[0].raw_card, PackedCard)


# What is refused


@pytest.mark.parametrize(("how", "message"), [
    ({"given": []}, "the batch is empty: give one program or more"),
    ({"given": [1]}, "given=[1]: it must be a list, each item a Program"),
    ({"given": [countdown(1)], "inputs": []}, "0 inputs for a batch of 1: give one for each"),
    ({"given": [countdown(1)], "threads": 0}, "threads=0: it must be 1 or more"),
    ({"given": [countdown(1)], "max_steps": -1}, "max_steps=-1: it must be 0 or more"),
    ({"given": [countdown(1)], "engine": "lowerd"}, "unknown engine 'lowerd' (did you mean 'lowered'?)"),
    ({"given": [countdown(1), countdown(1 << 20)]}, "1 of the batch: cell 'left' is 1048576, which does not fit a word"),
    ({"given": torch.zeros(2, 3, 4, 5)}, "0 of the batch: "),
    ({"given": torch.zeros(2, 3, 4)}, "0 of the batch: "),
])
def test_bad_arguments(machine: SubleqMachine, how: dict[str, Any], message: str) -> None:
    with pytest.raises(PunchcardError) as error:
        machine.run_batch(how.pop("given"), **how)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
