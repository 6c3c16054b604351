"""The host of the RISC-V machine: system calls on the card, ends, faults, marks anywhere. All on small cards."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from torch import Tensor

import punchcard
from punchcard import api
from punchcard.card.layout import Card
from punchcard.engines.controls import Skip
from punchcard.errors import PunchcardError
from punchcard.machines import checkpoint
from punchcard.machines.result import Report
from punchcard.machines.riscv.host import CardGuest, RiscvHost
from punchcard.machines.riscv.languages.assembly.assembler import assemble
from punchcard.machines.riscv.machine import RiscvMachine
from punchcard.machines.riscv.program import RiscvProgram
from punchcard.machines.running import Mark
from punchcard.machines.streams import END_OF_INPUT, writer
from tests.cases import EXAMPLES, file_with, touched
from tests.command_line import invoke as command

MEMORY = 48
ECHO = """
again:  li a0, 0            # read up to 20 bytes to where the stack begins
        addi a1, sp, -32
        li a2, 20
        li a7, 63
        ecall
        mv a2, a0
        beqz a2, done
        li a0, 1            # and write them
        li a7, 64
        ecall
        j again
done:   li a0, 42
        li a7, 93
        ecall
"""
HEAP = """
        li sp, 0            # no stack, so that all memory is the heap's
        li a7, 214
        ecall               # brk(0): where the heap ends
        addi a0, a0, 16
        mv s0, a0
        ecall
        sub a0, a0, s0      # 0: it has moved
        li a7, 93
        ecall
"""
FAULTS = {
    "illegal instruction": "li a0, 1\n.word 0",
    "breakpoint": "li a0, 1\nebreak",
    "fetch out of range": "li a0, 1\nj . + 4096",
    "misaligned fetch": "li a0, 2\njr 0(a0)",
    "load out of range": "li a0, -4\nlw a0, 0(a0)",
    "misaligned load": "li a0, 1\nlw a0, 1(a0)",
    "store out of range": "sw a0, 0(sp)",
    "misaligned store": "li a0, 1\nsh a0, 0(a0)",
}


@cache
def machine() -> RiscvMachine:
    return RiscvMachine(memory=MEMORY)


@cache
def program(text: str) -> RiscvProgram:
    return assemble(text, "test.s")


def run(text: str, **how: Any) -> Report[Any]:
    return punchcard.run(program(text), machine(), **{"engine": "scratchpad", "check": "end", **how})


@pytest.mark.parametrize(("check", "engine"), [("lockstep", "dense"), ("end", "scratchpad")])
def test_what_is_read_is_written(check: str, engine: str) -> None:
    report = run(ECHO, input=b"ab\nc", check=check, engine=engine)
    result = report.result
    assert report.ok, report.why
    assert (result.output, result.read, result.status, result.reason) == (b"ab\nc", b"ab\nc", 42, "halted")
    assert (result.steps, result.loops) == (31, 32), "the call that ends the program is not executed"


def test_input_ahead_is_read_as_byte_by_byte(tmp_path: Path) -> None:
    """Of bytes, and of a file with a small buffer, a read takes what there is of a line at once; a function gives bytes."""
    given = b"short\n\n" + b"longer than a read, and longer than the buffer" * 2 + b"\nlast"
    (tmp_path / "input").write_bytes(given)
    with (tmp_path / "input").open("rb", buffering=8) as file:
        by_file = machine().run(program(ECHO), input=file, max_steps=10**6)
    some = iter([*given, END_OF_INPUT])
    by_byte = machine().run(program(ECHO), input=lambda: next(some), max_steps=10**6)
    for result in (by_file, machine().run(program(ECHO), input=given, max_steps=10**6)):
        assert result.output == given
        assert (result.traffic, result.steps, result.state) == (by_byte.traffic, by_byte.steps, by_byte.state)


COMPLAINT = """
        addi a1, sp, -16
        li t0, 0x0a6f6e     # "no" and a newline
        sw t0, 0(a1)
        li a2, 3
        li a0, 2
        li a7, 64
        ecall
        li a7, 94
        ecall
"""


def test_the_second_stream() -> None:
    out, errors = io.BytesIO(), io.BytesIO()
    report = run(COMPLAINT, output=writer(out, errors), check="lockstep")
    assert report.ok, report.why
    assert (report.result.output, report.result.errors, report.result.status) == (b"", b"no\n", 3)
    assert (out.getvalue(), errors.getvalue()) == (b"", b"no\n")


def test_the_heap_grows() -> None:
    report = run(HEAP, check="lockstep")
    assert report.ok, report.why
    assert report.result.status == 0


def test_what_the_host_touches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Registers and memory of a call, and the event; and only when an event is on the card."""
    events, seen = machine().design.events(machine().sizes), set[tuple[str, str]]()
    serve = RiscvHost.__call__

    def watched(self: RiscvHost, loop: int, card: Card) -> bool | Skip:
        assert any(bool(machine().layout.matches(card, event)) for event in events)
        before: Any = card.clone() if isinstance(card, Tensor) else card.copy()
        goes_on = serve(self, loop, card)
        seen.update(touched(machine().layout, before, card))
        assert machine().layout.violations(card) == []
        return goes_on

    monkeypatch.setattr(RiscvHost, "__call__", watched)
    assert run(ECHO, input=b"x").ok
    assert seen == {("memory", "registers"), ("memory", "memory"), ("event.call", "scratchpad")}


@pytest.mark.parametrize("kind", FAULTS)
def test_a_fault_stops_before_anything_is_done(kind: str) -> None:
    report = run(FAULTS[kind], check="lockstep", max_steps=10)
    result = report.result
    assert report.agrees, report.why
    assert (result.reason, result.fault.kind, result.status) == ("fault", kind, None)
    assert not report.ok
    line = "" if kind in ("fetch out of range", "illegal instruction") else "test.s:"
    assert line in str(result.fault)
    again = run(FAULTS[kind], check="end", max_steps=10)
    assert again.agrees, again.why
    assert again.result.steps == result.steps
    for check in ("end", "lockstep"):  # the loop that finds the fault is not made; the interpreter knows it already
        before = run(FAULTS[kind], check=check, max_steps=result.steps)
        assert before.agrees, before.why


def test_no_call_is_served_that_is_not_executed() -> None:
    """A run that stops at a call has read nothing for it; it goes on there."""
    asked: list[int] = []

    def read() -> int:
        asked.append(1)
        return -1

    report = run(ECHO, input=read, max_steps=4)
    assert report.agrees, report.why
    assert (report.result.reason, report.result.steps, asked) == ("steps", 4, [])


@cache
def marks() -> tuple[Mark, ...]:
    """A run after each of its loops, as a killed run would have left it in a file."""
    kept: list[Mark] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoint, "CheckpointFile",
                      lambda *of: SimpleNamespace(path=of[0], write=lambda mark, found: kept.append(mark)))
        run(ECHO, input=b"a", checkpoint="nowhere", every=1, check=False)
    assert [mark.loops for mark in kept] == [*range(22)]
    return tuple(kept)


@pytest.mark.parametrize("check", ["lockstep", "end"])
@pytest.mark.parametrize("loops", [4, 5, 6, 10, 11, 21])
def test_a_run_goes_on_from_any_mark(loops: int, check: Any) -> None:
    """Before a call, where it is served and not yet executed (5 and 10), and after it; and from the end."""
    plan = checkpoint.Plan(None, check=check, engine="scratchpad")
    rest = api.resume(checkpoint.Checkpoint(machine(), program(ECHO), marks()[loops], plan), input=b"a")
    assert rest.ok, rest.why
    assert (rest.result.output, rest.result.status, rest.result.steps) == (b"a", 42, 20)
    assert bool((rest.result.card == marks()[-1].card).all())


def test_a_call_that_waits_is_kept_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "run.checkpoint"
    first = run(ECHO, input=b"a", max_steps=4, checkpoint=path)
    assert first.agrees, first.why
    saved = checkpoint.load(path, machine())
    assert saved.mark.traffic.waiting
    rest = api.resume(saved, input=b"a", max_steps=100)
    assert rest.ok, rest.why
    assert bool((rest.result.card == marks()[-1].card).all())


def test_the_heap_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "heap.checkpoint"
    run(HEAP, max_steps=6, checkpoint=path)
    saved = checkpoint.load(path, machine())
    assert saved.mark.traffic.kept == (program(HEAP).heap_start + 16,)
    assert api.resume(saved, max_steps=100).result.status == 0


def test_somebody_gives_up_waiting(tmp_path: Path) -> None:
    """The card is as before the call, which waits."""
    given = iter(b"a\nb")

    def read() -> int:
        byte = next(given, None)
        if byte is None:
            raise KeyboardInterrupt
        return byte

    path = tmp_path / "run.checkpoint"
    first = run(ECHO, input=read, checkpoint=path)
    assert first.agrees, first.why
    assert (first.result.reason, first.result.read, first.result.output) == ("interrupted", b"a\n", b"a\n")
    rest = api.resume(path, machine(), input=b"a\nbc", check="lockstep", checkpoint=tmp_path / "other")
    assert rest.ok, rest.why
    assert rest.result.output == b"a\nbc"


def test_an_end_is_told_again(tmp_path: Path) -> None:
    """A run that has ended gives its status, or its fault, to whoever resumes it."""
    path = tmp_path / "run.checkpoint"
    run(HEAP, checkpoint=path)
    assert api.resume(path, machine()).result.status == 0
    text = FAULTS["misaligned load"]
    fault = run(text, checkpoint=path).result.fault
    again = api.resume(path, machine(), check="lockstep")
    assert again.agrees, again.why
    assert again.result.fault == fault


def test_input_that_is_not_bytes() -> None:
    with pytest.raises(PunchcardError, match="the input gives 300: it must be a byte, 0 to 255, or -1 at its end"):
        run(ECHO, input=lambda: 300)


def test_a_batch() -> None:
    """Of programs, and of a card that has none."""
    batch = machine().run_batch([program(HEAP), machine().pack(program(ECHO))], inputs=[b"", b"y"], engine="scratchpad")
    assert [(result.output, result.status) for result in batch] == [(b"", 0), (b"y", 42)]


@pytest.mark.parametrize(("address", "size"), [(a, s) for a in range(4) for s in range(10)])
def test_bytes_of_a_card(address: int, size: int) -> None:
    """Loads and stores at any address, beside the same on plain bytes."""
    card = machine().pack(program(HEAP))
    guest = CardGuest(machine().layout, machine().sizes, card)
    before = guest.load(0, 4 * MEMORY)
    data = bytes(range(200, 200 + size))
    guest.store(100 + address, data)
    assert guest.load(0, 4 * MEMORY) == before[: 100 + address] + data + before[100 + address + size :]
    assert guest.load(100 + address, size) == data


def test_x0_stays_zero() -> None:
    guest = CardGuest(machine().layout, machine().sizes, machine().pack(program(HEAP)))
    guest.set_register(0, 7)
    guest.set_register(5, -1)
    assert (guest.register(0), guest.register(5)) == (0, 0xFFFFFFFF)


# The command

Invoke = Callable[..., tuple[int, str, str]]


@pytest.fixture
def invoke(monkeypatch: pytest.MonkeyPatch) -> Invoke:
    """The command `run` on a small machine, which is built once."""
    monkeypatch.setattr(RiscvMachine, "for_program", lambda given, **options: machine())

    def call(*arguments: str | Path, input: bytes = b"") -> tuple[int, str, str]:
        found = command("run", *arguments, "--engine", "scratchpad", given=input)
        return found.exit_code, found.stdout, found.stderr

    return call


def test_the_exit_status_is_the_programs(invoke: Invoke, tmp_path: Path) -> None:
    path, stats = file_with(tmp_path / "program.s", ECHO), tmp_path / "stats.json"
    assert invoke(path, "--stats", stats, input=b"hi") == (42, "hi", "")
    facts = json.loads(stats.read_text())
    assert (facts["status"], facts["halted"], facts["output"], facts["fault"]) == (42, True, "hi", None)
    code, out, _ = invoke(path, "--json", "--check", input=b"hi")
    assert code == 42
    assert json.loads(out)["status"] == 42


def test_a_run_that_does_not_halt_has_no_status_of_its_own(invoke: Invoke, tmp_path: Path) -> None:
    path = file_with(tmp_path / "program.s", ECHO)
    code, out, err = invoke(path, "--max-steps", "3", input=b"hi")
    assert (code, out) == (1, "")
    assert "stopped after 3 instructions" in err
    code, out, err = invoke(file_with(tmp_path / "program.s", FAULTS["misaligned load"]), "--json")
    assert code == 1
    assert json.loads(out)["fault"].startswith("misaligned load at")
    assert "program.s:2" in err
    assert err.count("\n") == 1


def test_the_streams_of_other_machines_have_no_status() -> None:
    path = EXAMPLES / "von_neumann" / "hello.asq"
    limits = ["--memory", "128", "--engine", "dense", "--max-steps", "9"]
    found = command("run", path, *limits, "--json")
    assert json.loads(found.stdout)["status"] is None
    assert found.exit_code == 1, "it has not halted"

