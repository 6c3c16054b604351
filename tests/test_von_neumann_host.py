"""The host may touch the port cells and, for an input instruction, the fetched operands, and nothing else."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import pytest
from torch import Tensor

from punchcard.card.layout import Card
from punchcard.engines import ENGINES, Controls, prepare
from punchcard.engines.controls import OutputBuffer, Skip
from punchcard.machines.running import Mark
from punchcard.machines.streams import END_OF_INPUT, reader
from punchcard.machines.von_neumann.host import VonNeumannHost
from punchcard.machines.von_neumann.isa import Image
from tests.cases import touched
from tests.image_cases import CASES, ECHO, ImageCase, machine_of

WITH_PORTS = [case for case in CASES if case.output or case.input]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", WITH_PORTS, ids=str)
def test_what_the_host_touches(case: ImageCase, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = case.machine
    sizes, layout, events = machine.sizes, machine.layout, machine.design.events(machine.sizes)
    inputs, seen = 0, set[tuple[str, str]]()

    def read() -> int:
        nonlocal inputs
        inputs += 1
        return rest()

    rest = reader(case.input)
    def watching(serve: Callable[[Any, int, Card], bool | Skip]) -> Callable[[Any, int, Card], bool | Skip]:
        return lambda self, loop, card: watched(partial(serve, self), loop, card)

    def watched(serve: Callable[[int, Card], bool | Skip], loop: int, card: Card) -> bool | Skip:
        assert any(bool(layout.matches(card, event)) for event in events), "the host is asked for a reason"
        before, read_before = card.clone() if isinstance(card, Tensor) else card.copy(), inputs
        goes_on = serve(loop, card)
        found = touched(layout, before, card)
        allowed = {("memory", "ports")}
        if inputs > read_before:
            allowed |= {(f"word.{sizes.source}", "scratchpad"), (f"word.{sizes.destination}", "scratchpad"),
                        (f"away.{sizes.destination}", "scratchpad")}
        assert found <= allowed
        assert layout.violations(card) == []
        seen.update(found)
        return goes_on

    for served in (VonNeumannHost, OutputBuffer):
        monkeypatch.setattr(served, "__call__", watching(served.__call__))
    result = machine.run(case.image, input=read, max_steps=case.max_steps, engine=engine)
    assert result.output == case.output
    if any(case.output) and engine in ("dense", "scratchpad"):  # others serve an output buffer; a byte 0 leaves it empty
        assert ("memory", "ports") in seen


def test_the_host_reads_no_memory() -> None:
    """With every cell of the memory set to no bit at all, the host does what it does otherwise."""
    machine = machine_of(word_bits=8, memory=16)
    layout = machine.layout
    written: list[bytes] = []
    for blank in (False, True):
        output = bytearray()

        def hide(loop: int, card: Tensor, host: VonNeumannHost, blank: bool = blank) -> bool | Skip:
            if not blank:
                return host(loop, card)
            memory = layout.get(card, "memory", "memory")
            kept = memory.clone()
            memory.fill_(float("nan"))
            try:
                return host(loop, card)
            finally:
                memory.copy_(kept)

        card = machine.punch(Image(ECHO))
        host = machine.host(Mark(card), reader(b"abc"), output.append, 1000)
        ports = {event: lambda loop, card, host=host: hide(loop, card, host) for event in host.ports}
        prepare("dense", machine.model, layout, card).run(1000, Controls(ports=ports))
        assert host.ended == "halted"
        written.append(bytes(output))
    assert written == [b"abc", b"abc"]


def test_the_host_is_asked_once_an_input_and_once_an_output() -> None:
    """Python is entered only on an event: here for three inputs, three outputs, the end of input and the halt."""
    machine = machine_of(word_bits=8, memory=16)
    asked: list[int] = []
    card = machine.punch(Image(ECHO))
    given = iter(b"abc")
    host = machine.host(Mark(card), lambda: next(given, END_OF_INPUT), bytearray().append, 1000)  # nothing to read ahead

    def serve(loop: int, card: Tensor) -> bool | Skip:
        asked.append(loop)
        return host(loop, card)

    ran = prepare("dense", machine.model, machine.layout, card).run(1000, Controls(ports=dict.fromkeys(host.ports, serve)))
    assert (ran.loops, len(asked), len(set(asked))) == (15, 8, 8)


class Slow(io.RawIOBase):
    """A binary file that notes what was written before each read."""

    def __init__(self, data: Iterable[int], output: io.BytesIO) -> None:
        self.rest = reader(bytes(data))
        self.output = output
        self.seen: list[bytes] = []

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        assert size == 1, "an interactive program must not wait for more than it asked for"
        self.seen.append(self.output.getvalue())
        byte = self.rest()
        return bytes((byte,)) if byte >= 0 else b""


def test_files_as_input_and_output() -> None:
    """Output is written before the next input is asked for, and the end of input is asked for once."""
    output = io.BytesIO()
    source = Slow(b"ab", output)
    twice = Image((-1, 15, 3, 15, -1, 6, -1, 15, 9, 15, -1, 12, 0, 0, -1))
    machine = machine_of(word_bits=8, memory=16)
    result = machine.run(twice, input=source, output=output, max_steps=4)  # type: ignore[arg-type]
    assert output.getvalue() == b"ab"
    assert source.seen == [b"", b"a"]
    assert (result.output, result.reason) == (b"ab", "steps")
    ended = Slow(b"", output)
    read = reader(ended)  # type: ignore[arg-type]
    assert [read(), read(), read()] == [-1, -1, -1]
    assert len(ended.seen) == 1
