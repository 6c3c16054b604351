"""Whatever Punchcard reads: no exception but its own, no time-out, no crash, no growth."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from punchcard.errors import PunchcardError
from tests.fuzzing import samples, workers
from tests.fuzzing.targets import inputs, targets
from tests.fuzzing.workers import Attempt, explore, input_of

INPUTS = 2_000
SOAK_INPUTS = 200_000
GROWTH = 5_000
"""Bytes that a worker may grow by with each input. Measured are 3,300 at most. safetensors 0.8 loses 64 bytes with every
tensor that it reads, and a machine of FLEQ has 32; llvmlite 0.50 loses 1,600 with every module that it compiles."""
SETTLED = 1_000
"""Inputs after which what is made once is no longer most of the growth."""


@pytest.fixture(scope="module", autouse=True)
def _prepared(shared_code: None) -> None:
    """What every worker would make anew is made before they are forked."""
    samples.texts()
    samples.command_line()
    for kind in samples.registry():
        samples.machine(kind.name)


def check(name: str, total: int, folder: Path) -> None:
    """A target's share of the inputs."""
    count, first = inputs(total)[name], 0 if total == INPUTS else 1_000_000  # the soak's inputs are others
    outcome = explore(name, targets()[name][1], range(first, first + count), folder)
    print(f"{name}: {outcome}")  # noqa: T201  # `make soak` shows it
    assert not outcome.findings, "\n".join(map(str, outcome.different()))
    assert outcome.inputs == count
    if count >= SETTLED:
        assert outcome.grown < GROWTH


def test_every_input_has_a_share() -> None:
    """Every language, every kind of machine and every subject of weights is a target; the shares are all inputs."""
    found = targets()
    assert {*samples.extensions()} < set(found)
    assert all(samples.texts()[extension] for extension in samples.extensions())
    assert [sum(inputs(total).values()) for total in (INPUTS, SOAK_INPUTS)] == [INPUTS, SOAK_INPUTS]
    assert min(inputs(SOAK_INPUTS).values()) > 0


@pytest.mark.parametrize("name", [name for name, count in inputs(INPUTS).items() if count])
def test_some_inputs(name: str, tmp_path: Path) -> None:
    check(name, INPUTS, tmp_path)


@pytest.mark.soak
@pytest.mark.parametrize("name", targets())
def test_many_inputs(name: str, tmp_path: Path) -> None:
    check(name, SOAK_INPUTS, tmp_path)


def _faulty(folder: Path) -> Attempt:
    """Something that does everything wrong, at known seeds."""
    kept: list[bytes] = []
    seeds = {input_of("faulty", seed).random(): seed for seed in range(300)}

    def attempt(rng: random.Random) -> None:
        seed = seeds[rng.random()]
        kept.append(bytes(10_000))
        if seed == 3:
            raise ValueError("a bug")
        if seed == 4:
            raise Talkative
        if seed == 5:
            raise PunchcardError("a bad input")
        if seed == 6:
            bytearray(1 << 40)
        while seed == 7:
            pass

    return attempt


class Talkative(PunchcardError):
    """An error that does not keep to one line."""

    def __str__(self) -> str:
        return "two\nlines"


def test_the_fuzzer_finds_faults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "SECONDS", 0.2)
    outcome = explore("faulty", _faulty, range(300), tmp_path)
    assert [(finding.seed, finding.what.split(" at ")[0].split(":")[0]) for finding in outcome.findings] == [
        (3, "ValueError"), (4, "an error of several lines"), (6, "MemoryError"), (7, "Timeout")]
    assert (outcome.inputs, outcome.refused) == (300, 2)
    assert outcome.grown > GROWTH
