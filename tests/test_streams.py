"""Bytes in and out of a run: a person sees them at once, many together cost little, and waiting is not counted as work."""

from __future__ import annotations

import io
import time
from pathlib import Path
from typing import Any

import pytest
import torch

import punchcard
from punchcard.engines import ENGINES, Controls, NoCopyWatch, prepare
from punchcard.errors import PunchcardError, SizeError
from punchcard.machines import streams
from punchcard.machines.checkpoint import CheckpointFile
from punchcard.machines.streams import Writer, writer
from punchcard.machines.von_neumann.languages.asq.assembler import assemble
from punchcard.machines.von_neumann.machine import VonNeumannMachine
from tests.command_line import invoke

WRITE = "loop: c (-1); one n end; zero zero loop\nend: zero zero (-1)\n. c:65 one:1 zero:0 n:40"
"""Writes 40 times the letter A."""
ECHO = "loop: (-1) c; c (-1); one n end; zero zero loop\nend: zero zero (-1)\n. c:0 one:1 zero:0 n:3"


class Tape(io.BytesIO):
    """A file that keeps what it held at every flush."""

    def __init__(self) -> None:
        super().__init__()
        self.flushed: list[bytes] = []

    def flush(self) -> None:
        self.flushed.append(self.getvalue())


@pytest.fixture(scope="module")
def machine() -> VonNeumannMachine:
    return VonNeumannMachine(word_bits=8, memory=32)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Time as the streams see it, which passes only when a test says so."""
    now = [100.0]
    monkeypatch.setattr("punchcard.machines.streams.time.monotonic", lambda: now[0])
    return now


@pytest.mark.parametrize("check", [False, "end", "lockstep"])
def test_bytes_go_to_a_file_together(machine: VonNeumannMachine, clock: list[float], check: Any) -> None:
    """The first at once, the rest at the end, since no time passes here."""
    tape = Tape()
    report = punchcard.run(assemble(WRITE), machine, output=tape, engine="dense", check=check)
    assert report.result.output == tape.getvalue() == b"A" * 40
    assert tape.flushed == [b"A", b"A" * 40]


def test_bytes_do_not_wait_long(machine: VonNeumannMachine, clock: list[float]) -> None:
    """Also where the program goes on without writing: the run looks at the clock between loops."""
    tape = Tape()

    def pass_time(loops: int) -> None:
        clock[0] += 0.001

    result = machine.run(assemble(WRITE), output=tape, engine="dense", controls=Controls(progress=pass_time))
    assert result.output == b"A" * 40
    assert 2 <= len(tape.flushed) <= 2 + result.loops * 0.001 / streams.HOLD_SECONDS


def test_a_held_byte_goes_when_it_is_due(clock: list[float]) -> None:
    tape = Tape()
    out = writer(tape)
    out(1)
    out(2)
    out.flush_if_due()
    assert tape.flushed == [b"\1"]
    clock[0] += streams.HOLD_SECONDS
    out.flush_if_due()
    out.flush_if_due()
    assert tape.flushed == [b"\1", b"\1\2"]
    for _ in range(streams.HOLD_BYTES):
        out(3)
    assert len(tape.flushed) == 3, "many bytes do not wait for the clock"


def test_output_is_seen_before_input_is_waited_for(machine: VonNeumannMachine, clock: list[float]) -> None:
    tape, given = Tape(), iter(b"abc")

    def ask() -> int:
        byte = next(given)
        assert (tape.flushed or [b""])[-1] == b"abc"[: byte - ord("a")]
        return byte

    assert machine.run(assemble(ECHO), input=ask, output=tape, engine="dense").output == b"abc"
    assert tape.flushed[-1] == b"abc"


def test_output_is_handed_on_when_a_run_fails(machine: VonNeumannMachine, clock: list[float]) -> None:
    tape, given = Tape(), iter((97, 98, 300))
    with pytest.raises(PunchcardError, match="the input gives 300"):
        machine.run(assemble(ECHO), input=lambda: next(given), output=tape, engine="dense")
    assert tape.flushed[-1] == b"ab"


def test_output_is_handed_on_before_a_run_is_kept(
    machine: VonNeumannMachine, clock: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that is killed after a checkpoint goes on behind what that says was written: nothing may be lost."""
    tape, kept = Tape(), list[tuple[bytes, bytes]]()
    monkeypatch.setattr(CheckpointFile, "write", lambda self, mark, found=None: kept.append(
        (mark.traffic.written, (tape.flushed or [b""])[-1])))
    punchcard.run(assemble(WRITE), machine, output=tape, engine="dense", checkpoint=tmp_path / "run", every=7)
    assert len(kept) > 10
    assert all(written == flushed for written, flushed in kept)


def test_a_function_takes_each_byte_at_once() -> None:
    found: list[int] = []
    out = writer(found.append)
    out(5)
    assert found == [5]
    assert isinstance(writer(out), Writer)
    assert writer(out) is out


def test_waiting_for_input_is_not_counted(machine: VonNeumannMachine) -> None:
    given = iter(b"abc")

    def slowly() -> int:
        time.sleep(0.1)
        return next(given)

    machine.run(assemble(ECHO), input=b"abc", engine="dense")
    started = time.perf_counter()
    result = machine.run(assemble(ECHO), input=slowly, engine="dense")
    assert result.output == b"abc"
    assert result.seconds < time.perf_counter() - started - 0.3 + 1e-3


@pytest.mark.parametrize("engine", [name for name in ENGINES if name != "dense"])
def test_a_glance_sees_the_same_cards_without_a_copy(machine: VonNeumannMachine, engine: str) -> None:
    """Any other watch may keep what it is given."""
    image, places, seen, kept = assemble(WRITE), set[int](), list[torch.Tensor](), list[torch.Tensor]()

    def look(loop: int, card: torch.Tensor) -> None:
        places.add(card.data_ptr())
        seen.append(card.clone())

    for watch in (NoCopyWatch(look), lambda loop, card: kept.append(card)):
        prepare(engine, machine.model, machine.layout, machine.punch(image), loops=10**6).run(6, Controls(watch=watch))
    assert len(places) == 1
    assert len({card.data_ptr() for card in kept}) == 6
    assert all(torch.equal(one, other) for one, other in zip(seen, kept, strict=True))


def test_every_cell_is_compared_after_every_loop(machine: VonNeumannMachine) -> None:
    """A wrong bit is found in any cell, in the destination, and in the counter."""
    image = assemble("one n; one n; one n; zero zero (-1)\n. one:1 zero:0 n:9")
    oracle, stale = (machine.oracle(image, lambda: -1, lambda byte: None) for _ in range(2))
    card = machine.model(machine.punch(image))
    for loop in range(4):
        if loop:
            card = machine.model(card)
            oracle.step()
        assert machine.differences(image, card, oracle) == []
        for cell in range(32):
            wrong = card.clone()
            machine.layout.get(wrong, "memory", "memory")[3, cell] *= -1
            assert f"cell {image.name_of(cell)} is" in machine.differences(image, wrong, oracle)[0]
        wrong = card.clone()
        machine.layout.get(wrong, "counter", "scratchpad")[0] *= -1
        assert machine.differences(image, wrong, oracle)
    assert machine.differences(image, card, stale), "an interpreter that is elsewhere differs"


ENDLESS = "loop: c (-1); zero zero loop\n. c:65 zero:0"


def test_a_program_that_writes_for_ever_is_stopped_by_the_budget(
    machine: VonNeumannMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "KEPT", 1 << 20)
    with pytest.raises(SizeError, match=r"keeping the [0-9,]+ bytes that the program has written .* --max-memory"):
        punchcard.run(assemble(ENDLESS), machine, check=False, max_steps=100_000)


def test_a_run_that_is_only_printed_keeps_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """--no-check without a checkpoint or JSON: the output goes on as long as the program does."""
    monkeypatch.setattr(streams, "KEPT", 1 << 20)
    path = tmp_path / "endless.asq"
    path.write_text(ENDLESS)
    run = ("run", path, "--bits", 8, "--memory", 32, "--max-steps", 40_000)
    said = invoke(*run, "--no-check")
    assert (said.exit_code, said.stdout) == (1, "A" * 20_000)
    for more in (("--no-check", "--json"), ("--no-check", "--stats", tmp_path / "s"),
                 ("--no-check", "--checkpoint", tmp_path / "c")):
        said = invoke(*run, *more, status=2)
        assert "bytes that the program has written needs about" in said.stderr


def test_what_is_read_is_bounded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "KEPT", 1 << 20)
    kept = streams.KeptBytes(b"ab", "read")
    kept.add(bytes(4000))
    with pytest.raises(SizeError, match="bytes that the program has read"):
        kept.add(bytes(1000))
    none = streams.KeptBytes(b"ab", "read", forgets=True)
    none.add(bytes(1 << 20))
    assert bytes(none) == b"ab"


def test_python_is_not_asked_where_the_program_has_not_ended() -> None:
    program = punchcard.program(forever, memory=4096)
    with pytest.raises(PunchcardError, match="it has not ended after 2,000 instructions"):
        program.run(max_steps=2000)


def forever() -> None:
    while True:
        print(1)  # noqa: T201
