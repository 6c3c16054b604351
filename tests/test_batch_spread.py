"""A batch on workers: each result is that of the same batch in this process."""

from __future__ import annotations

import os
import random
from importlib.util import find_spec
from typing import Any

import pytest
import torch

from punchcard.engines import Controls
from punchcard.errors import ProgramError, PunchcardError, WorkerError
from punchcard.machines.fleq.machine import FleqMachine
from punchcard.machines.fleq.text.assembler import assemble
from punchcard.machines.spread_batch import EntryEnd, SentMachine, received_machine, run_part
from punchcard.machines.subleq.machine import SubleqMachine
from punchcard.machines.von_neumann.isa import Image
from punchcard.machines.von_neumann.machine import VonNeumannMachine
from punchcard.workers import executor
from punchcard.workers.lanes import LaneExecutor, WorkerDied
from tests.random_programs import random_image, random_program
from tests.test_batch import same

needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed")
ECHO = Image((-1, 6, 3, 6, -1, 0, 0))
FLEQ = """.data
A    matrix 2x2   1 0.25 ; 0.5 0.75
B    matrix 2x2
t    scalar -3
one  scalar 1
.code
loop:   B = mul(A, A)
        A = transpose(B)
        t = add(t, one); if t <= 0 goto loop
        halt
"""


@pytest.fixture(scope="module")
def machine() -> SubleqMachine:
    return SubleqMachine(word_bits=8, memory=12, instructions=20, design="two-layer", precision="float32")


def programs(count: int) -> list[Any]:
    rng = random.Random(3)
    return [random_program(rng, 8, 12, 20) for _ in range(count)]


def assert_same(found: Any, wanted: Any) -> None:
    assert len(found) == len(wanted)
    for one, two in zip(found, wanted, strict=True):
        assert same(one, two)
        assert (one.output, one.status, one.errors) == (two.output, two.status, two.errors)


def test_a_batch_on_processes_is_that_of_one(machine: SubleqMachine) -> None:
    given = [*programs(9), machine.pack(programs(1)[0]), machine.punch(programs(1)[0])]
    given.append(given[0])
    found = machine.run_batch(given, max_steps=80, workers=2)
    assert_same(found, machine.run_batch(given, max_steps=80))
    assert found.threads == 2
    assert found.engine == "lowered"


def test_inputs_and_faults_come_back() -> None:
    machine = VonNeumannMachine(word_bits=16, memory=64)
    rng = random.Random(4)
    given = [ECHO, Image((0, 70, 3)), *(random_image(rng, 16, 64) for _ in range(4))]
    inputs = [b"xy", *[b""] * 5]
    found, wanted = (machine.run_batch(given, inputs=inputs, max_steps=200, workers=workers) for workers in (1, None))
    assert_same(found, wanted)
    assert found[0].output == b"x"
    assert found[1].reason == "fault"


def test_what_a_worker_sends(machine: SubleqMachine, monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process: the machine is built once from its file, and its weights are the sender's, changed ones too."""
    sent = SentMachine.of(machine)
    made = received_machine(sent)
    assert received_machine(SentMachine.of(machine)) is made
    assert [array.tolist() for _, array in made.weights.state()] == [array.tolist() for _, array in machine.weights.state()]
    calls = list[int]()

    class Failing:
        """A worker that dies twice."""

        def __init__(self, memory: int | None = None, budget: int | None = None) -> None: ...

        def call(self, function: Any, arguments: Any, seconds: float | None) -> Any:
            calls.append(len(arguments))
            if len(calls) < 3:
                raise WorkerDied("killed")
            assert function is run_part
            return function(*arguments)

        def close(self) -> None: ...

    monkeypatch.setattr(executor, "ProcessLane", Failing)
    given = programs(3)
    assert_same(machine.run_batch(given, max_steps=40, workers=1), machine.run_batch(given, max_steps=40))
    assert len(calls) == 3
    ends, _ = run_part(sent, [machine.store(given[0])], [b""], machine_options())
    assert isinstance(ends[0], EntryEnd)
    assert ends[0].host is None


def machine_options() -> Any:
    from punchcard.machines.batch import BatchOptions

    return BatchOptions("auto", 10, True, 1, None)


def test_what_workers_do_not_take(machine: SubleqMachine) -> None:
    given = programs(2)
    with pytest.raises(PunchcardError, match="input 1 of the batch is a function: on workers inputs are bytes"):
        machine.run_batch(given, inputs=[b"", lambda: 3], workers=2)
    with pytest.raises(PunchcardError, match="a batch on workers takes no controls"):
        machine.run_batch(given, controls=Controls(interrupted=lambda: False), workers=2)
    with pytest.raises(WorkerError, match="workers=0: there must be 1 or more"):
        machine.run_batch(given, workers=0)
    with pytest.raises(ProgramError, match="1 of the batch"):
        machine.run_batch([given[0], random_program(random.Random(1), 8, 99, 20)], workers=2)


@needs_ray
@pytest.mark.soak
def test_a_batch_on_ray_is_that_of_one(machine: SubleqMachine) -> None:
    given = programs(30)
    assert_same(machine.run_batch(given, max_steps=80, ray=True, workers=2), machine.run_batch(given, max_steps=80))
    program = assemble(FLEQ)
    other = program.with_values({"A": [[0.5, 0.25], [0.25, 0.5]]})
    fleq = FleqMachine.for_program(program)
    found, wanted = fleq.run_batch([program, other], ray=True, workers=2), fleq.run_batch([program, other])
    assert [result.reason for result in wanted] == ["fault", "halted"], "the first leaves its range"
    for one, two in zip(found, wanted, strict=True):
        assert torch.equal(one.card, two.card)
        assert (one.reason, one.steps, str(one.fault)) == (two.reason, two.steps, str(two.fault))


def visible() -> str:
    return os.environ.get("CUDA_VISIBLE_DEVICES", "")


@needs_ray
@pytest.mark.soak
def test_one_actor_a_gpu(machine: SubleqMachine) -> None:
    """Ray is told of two GPUs, which it does not look for: each call sees one of them."""
    import ray

    with pytest.raises(WorkerError, match="has 0 GPUs, 1 or more are wanted"):
        machine.run_batch(programs(2), ray=True, device="cuda")
    ray.init(num_cpus=2, num_gpus=2, include_dashboard=False, log_to_driver=False)
    try:
        with executor.workers_of(None, True, gpu=True) as workers:
            assert isinstance(workers, LaneExecutor)
            assert workers.lanes == 2
            found = [workers.submit(visible) for _ in range(2)]
            assert {each.result() for each in found} <= {"0", "1"}
    finally:
        ray.shutdown()
