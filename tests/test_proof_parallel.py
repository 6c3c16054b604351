"""A proof on workers: the certificate of one process, but for times; a false claim with its counterexample."""

from __future__ import annotations

from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

import punchcard
from punchcard.machines.meaning import Meaning
from punchcard.machines.subleq.machine import SubleqMachine
from punchcard.proof.certificate import Certificate
from punchcard.transformer.weights import Weights
from punchcard.workers.lanes import LaneExecutor, ProcessLane
from tests.cases import EXAMPLES, soaked

pytest.importorskip("z3", reason="z3 is not installed: proofs are not tested")


def without_times(certificate: Certificate) -> Any:
    def plain(data: Any) -> Any:
        if isinstance(data, dict):
            return {name: plain(value) for name, value in data.items() if name != "seconds"}
        return [plain(each) for each in data] if isinstance(data, list | tuple) else data

    return plain(certificate.describe())


@pytest.mark.parametrize("design", ["two-layer", soaked("one-layer")])
def test_the_certificate_is_the_same(design: str) -> None:
    machine = SubleqMachine(memory=4, instructions=4, word_bits=4, design=design)
    with ThreadPoolExecutor(1) as executor:
        assert without_times(punchcard.prove(machine, executor=executor)) == without_times(punchcard.prove(machine))


@pytest.mark.soak
def test_a_false_claim_has_its_counterexample() -> None:
    machine = SubleqMachine(memory=4, instructions=4, word_bits=4, design="two-layer")
    first, *rest = machine.weights.layers
    wrong = Weights(machine.weights.width, machine.weights.dtype, [replace(first, w2=-first.w2), *rest])
    with ThreadPoolExecutor(1) as executor:
        found = punchcard.prove(machine, weights=wrong, executor=executor)
    alone = punchcard.prove(machine, weights=wrong)
    assert not found.proven
    assert (found.failed, len(found.claims)) == (alone.failed, len(alone.claims))
    assert found.counterexample is not None


@pytest.mark.soak
class Idle(SubleqMachine):
    """A machine that says of itself that nothing changes."""

    def meaning(self, card: Meaning) -> None:
        pass


def test_a_worker_keeps_no_proof_of_another_class() -> None:
    """The weights are the same, and what is to be shown of them is not."""
    sizes: dict[str, Any] = {"word_bits": 4, "memory": 4, "instructions": 4, "design": "two-layer"}
    with ThreadPoolExecutor(1) as executor:
        assert punchcard.prove(SubleqMachine(**sizes), executor=executor).proven
        assert not punchcard.prove(Idle(**sizes), executor=executor).proven


def test_a_machine_with_cases_on_processes() -> None:
    program = punchcard.load(EXAMPLES / "riscv" / "hi.s")
    machine = punchcard.build(program, memory=64)
    executor: Executor
    with LaneExecutor(2, ProcessLane) as executor:
        assert without_times(punchcard.prove(machine, executor=executor)) == without_times(punchcard.prove(machine))
