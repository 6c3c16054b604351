"""Input buffers: bytes that the generated code puts on the card. Cards, bytes and loops are those of the dense engine."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
import torch

import punchcard
from punchcard.card.layout import Card, Pattern
from punchcard.engines import Controls
from punchcard.engines.lowered import input_table
from punchcard.engines.lowered.engine import Lowered
from punchcard.machines.result import Result
from punchcard.machines.running import PeriodicAction
from punchcard.machines.streams import FileReader, reader
from punchcard.machines.von_neumann.isa import Image
from punchcard.machines.von_neumann.machine import VonNeumannMachine
from tests.cases import soaked

pytestmark = pytest.mark.usefixtures("shared_code")
PORT = -1
READS = Image((PORT, 18, 3, 18, PORT, 6, PORT, PORT, 9, 19, 18, 12, 20, 20, 0, 0, 0, 0, 5, 1, 0, 0))
"""To a cell, from there to the output, to the output at once, and a subtraction; for ever."""
POLLS = Image((PORT, 9, 3, 10, 10, 0, 0, 0, 0, 7, 0, 0))
GIVEN = b"punched\xff\x00\x80"


def runs(dialect: str, image: Image, engine: str, **how: Any) -> Result[Any]:
    return machine_of(dialect).run(image, engine=engine, **how)


MACHINES: dict[str, VonNeumannMachine] = {}


def machine_of(dialect: str) -> VonNeumannMachine:
    """One for all tests: it keeps its code."""
    if dialect not in MACHINES:
        MACHINES[dialect] = VonNeumannMachine(word_bits=8, memory=22, dialect=dialect)
    return MACHINES[dialect]


def same(found: Result[Any], expected: Result[Any]) -> bool:
    names = ("loops", "reason", "output", "read", "traffic", "fault")
    assert torch.equal(found.card, expected.card)
    return all(getattr(found, name) == getattr(expected, name) for name in names)


@pytest.mark.parametrize("dialect", ["standard", "adds", soaked("subtracts")])
@pytest.mark.parametrize("image", [READS, POLLS])
def test_runs_of_every_length(dialect: str, image: Image, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_table, "MOST_AHEAD", 3)
    for steps in (*range(14), 40, 41, 42, 90):
        expected = runs(dialect, image, "dense", input=GIVEN, max_steps=steps)
        for traces in (None, 0.0):
            found = runs(dialect, image, "lowered", input=GIVEN, max_steps=steps, controls=Controls(traces=traces))
            assert same(found, expected), steps
    assert expected.traffic.input_ended or image is READS
    assert len(expected.read) > 5


def test_sic1() -> None:
    """Ports are operands of subtractions there: the same byte as both, one that is lost, and a halt."""
    words = (20, 253, 3, 254, 20, 6, 20, 20, 9, 253, 253, 12, 253, 254, 15, 20, 20, 0, 0, 0, 0)
    image = Image(words)
    machine = VonNeumannMachine(dialect="sic1")
    for steps in (1, 2, 5, 17, 50):
        expected, found = (machine.run(image, engine=engine, input=b"abcdef", max_steps=steps)
                           for engine in ("scratchpad", "lowered"))
        assert same(found, expected)


def test_the_code_goes_on_after_an_input(monkeypatch: pytest.MonkeyPatch) -> None:
    calls, serve = 0, Lowered._serve

    def counted(self: Lowered, *given: Any) -> Any:
        nonlocal calls
        calls += 1
        return serve(self, *given)

    monkeypatch.setattr(Lowered, "_serve", counted)
    found = runs("standard", POLLS, "lowered", input=b"x" * 2_000, max_steps=9_000)
    assert found.read == b"x" * 2_000
    assert found.traffic.input_ended
    assert calls < 20


def test_parts_of_a_run_and_a_resumed_one() -> None:
    """Marks have what was read up to them; who goes on from one reads what follows."""
    marks, should = list[Any](), list[Any]()
    whole = runs("standard", READS, "lowered", input=GIVEN, max_steps=40, keep=PeriodicAction(7, marks.append))
    expected = runs("standard", READS, "dense", input=GIVEN, max_steps=40, keep=PeriodicAction(7, should.append))
    assert same(whole, expected)
    assert [(mark.loops, mark.traffic) for mark in marks] == [(mark.loops, mark.traffic) for mark in should]
    for mark in marks:
        assert same(runs("standard", READS, "lowered", input=GIVEN, max_steps=40, begin=mark), whole)


def test_ports_and_watches_beside_it() -> None:
    """Somebody else's port is asked about every loop, also one in which an input was served."""
    event = Pattern("event.source", "scratchpad", (1,))
    seen: dict[str, list[int]] = {"dense": [], "lowered": []}

    def port(engine: str) -> Any:
        def note(loop: int, card: Card) -> bool:
            seen[engine].append(loop)
            return True

        return note

    found = [runs("standard", READS, engine, input=GIVEN, max_steps=60, controls=Controls(ports={event: port(engine)}))
             for engine in seen]
    assert same(*found)
    assert seen["dense"] == seen["lowered"]
    assert seen["dense"]
    watched: list[int] = []
    result = runs("standard", READS, "lowered", input=GIVEN, max_steps=60,
                  controls=Controls(watch=lambda loop, card: watched.append(loop)))
    assert same(result, found[0])
    assert watched == list(range(1, result.loops + 1))


def test_files_are_read_as_far_as_the_program_reads(tmp_path: Path) -> None:
    path = tmp_path / "given"
    path.write_bytes(GIVEN)
    expected = runs("standard", READS, "dense", input=GIVEN, max_steps=9)
    with path.open("rb") as file:
        assert same(runs("standard", READS, "lowered", input=file, max_steps=9), expected)
        assert file.read() == GIVEN[len(expected.read) :]
    memory = io.BytesIO(GIVEN)
    assert same(runs("standard", READS, "lowered", input=memory, max_steps=9), expected)
    assert memory.read() == GIVEN[len(expected.read) :]


def test_nobody_reads_ahead_of_a_person() -> None:
    """A function, or a file that may have to wait, is asked for a byte when the program wants one."""
    asked = iter(GIVEN)
    found = runs("standard", READS, "lowered", input=lambda: next(asked), max_steps=9)
    assert bytes(asked) == GIVEN[len(found.read) :]

    class Slow(io.BytesIO):
        """Any file that is not the plain one."""

    assert FileReader(Slow(GIVEN)).ahead(3) is None
    ahead = reader(GIVEN, 2)
    assert isinstance(ahead, FileReader)
    assert ahead.ahead(3) == (b"nch", False)
    assert (ahead.take(1, 0), ahead(), ahead.position) == (b"n", ord("c"), 2)


def test_compared_with_the_interpreter() -> None:
    program = punchcard.load("examples/von_neumann/echo.asq")
    report = punchcard.run(program, input=b"back and forth" * 40, engine="lowered", check="end")
    assert report.agrees
    assert report.result.output == b"back and forth" * 40
