"""Runs whose card stays packed: machines, hosts, guards, judges and checkpoints take it as they take a tensor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

import punchcard
from punchcard.card.layout import Layout, Pattern
from punchcard.card.packed import PackedCard
from punchcard.engines import ENGINES, Controls, Run, prepare
from punchcard.engines.base import LoopRunner, Reason, Stops
from punchcard.errors import LayoutError, StorageError
from punchcard.machines import checkpoint
from punchcard.machines.checkpoint import begin
from punchcard.machines.running import Mark, PeriodicAction
from punchcard.machines.von_neumann.isa import Image
from punchcard.machines.von_neumann.machine import VonNeumannMachine
from punchcard.transformer.weights import as_module

SUBTRACT = punchcard.assemble(".data\na 5\nb 9\nunused 7\n.code\nsubleq a, b, end\nsubleq a, b, end\nend: halt\n")
ECHO = Image((-1, 12, 3, 12, -1, 6, 15, 15, 0, 0, 0, 0, 0, 0, 0, 0), labels={"byte": 12})


class PackedDense(LoopRunner):
    """An engine that keeps its card packed between loops, and shows it so; the loops are the equation's."""

    takes_packed = True

    def __init__(self, model: Any, layout: Layout, card: Any, *, loops: int | None = None, cache: object = None) -> None:
        self.engine, self.layout, self.shape, self._model = "packed", layout, tuple(card.shape), as_module(model)
        self._layout = layout
        self.take(card)

    @property
    def card(self) -> torch.Tensor:
        return self._card.tensor()

    @property
    def raw_card(self) -> PackedCard:
        return self._card.snapshot()

    def take(self, card: Any) -> None:
        self._card = card.copy() if isinstance(card, PackedCard) else PackedCard.of(self._layout, card)

    def make_loops(self, loops: int, controls: Controls, stops: Stops) -> Run:
        for loop in range(1, loops + 1):
            with torch.no_grad():
                self._card = PackedCard.of(self._layout, self._model(self._card.tensor()))
            if controls.watch is not None:
                controls.watch(loop, self._card)
            matched = stops.matched(self._card)
            if matched is not None:
                return self._end(loop, "matched", matched)
            stopped = stops.serve(loop, self._card)
            if stopped is not None:
                return self._end(loop, "stopped", stopped)
            if controls.is_interrupted():
                return self._end(loop, "interrupted")
        return self._end(loops, "loops")

    def _end(self, loops: int, reason: Reason, matched: Pattern | None = None) -> Run:
        return Run(self.raw_card, loops, reason, self.engine, matched, made={self.engine: loops})


@pytest.fixture(autouse=True)
def packed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ENGINES, "packed", PackedDense)


@pytest.mark.parametrize("design", ["paper", "two-layer", "one-layer"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_every_design_punches_reads_and_runs_packed(design: str, dtype: str) -> None:
    machine = punchcard.build(SUBTRACT, design=design, word_bits=8, precision=dtype, memory=5, instructions=6)
    card = machine.pack(SUBTRACT)
    assert card.dtype == dtype
    assert torch.equal(card.tensor(), machine.punch(SUBTRACT))
    assert machine.layout.violations(card.tensor()) == []
    blank = machine.layout.blank(dtype)
    machine.design.punch(machine.sizes, machine.layout, machine.content(SUBTRACT), blank)
    assert torch.equal(blank, card.tensor()), "a design punches tensors by the same calls"
    assert machine.read(card) == machine.read(card.tensor()) == machine.read_all([card, card])[1]
    assert machine.read_own(SUBTRACT, card) == machine.own(SUBTRACT, machine.read(card))
    report = punchcard.run(SUBTRACT, machine, engine="packed", check="lockstep")
    assert (report.ok, report.result.memory["b"]) == (True, -1)
    assert report.result.packed is not None
    assert torch.equal(report.result.card, machine.run(SUBTRACT, engine="dense").card)


@pytest.mark.parametrize("dialect", ["standard", "adds", "subtracts"])
def test_a_host_serves_packed_cards(dialect: str) -> None:
    machine = VonNeumannMachine(word_bits=8, memory=16, dialect=dialect)
    ran = [machine.run(ECHO, engine=engine, input=b"ab", max_steps=9) for engine in ("packed", "dense")]
    assert ran[0].output == ran[1].output != b""
    assert (ran[0].read, ran[0].reason, ran[0].memory, ran[0].program_counter) == (
        ran[1].read, ran[1].reason, ran[1].memory, ran[1].program_counter)
    assert ran[0].packed is not None
    assert ran[1].packed is None
    assert torch.equal(ran[0].card, ran[1].card)
    assert ran[0].state == ran[1].state
    assert ran[0].program_counter == ran[0].state.program_counter


def test_fleq_runs_packed() -> None:
    program = punchcard.load("examples/newton.fleq")
    machine = punchcard.build(program)
    report = punchcard.run(program, machine, engine="packed", max_steps=9)
    assert report.agrees
    guarded, dense = (machine.run(program, engine=engine, max_steps=9) for engine in ("packed", "dense"))
    assert np.array_equal(guarded.state.memory, report.result.state.memory)
    assert torch.equal(guarded.card, dense.card)


def test_a_checkpoint_keeps_the_fields_of_a_packed_card(tmp_path: Path) -> None:
    machine = VonNeumannMachine(word_bits=8, memory=16)
    path = tmp_path / "run"
    whole = machine.run(ECHO, engine="packed", input=b"abc", max_steps=12)
    punchcard.run(ECHO, machine, engine="packed", input=b"abc", max_steps=5, checkpoint=path)
    tensors = load_file(path)
    assert {"card.memory", "card.position", "card.event"} <= tensors.keys()
    assert tensors["card.memory"].dtype == np.uint8
    saved = checkpoint.load(path)
    assert isinstance(saved.mark.raw_card, PackedCard)
    resumed = punchcard.resume(path, input=b"abc", max_steps=12)
    assert torch.equal(resumed.result.card, whole.card)
    assert resumed.result.output == whole.output


def test_a_checkpoint_with_a_wrong_field_is_refused(tmp_path: Path) -> None:
    machine, path = VonNeumannMachine(word_bits=8, memory=16), tmp_path / "run"
    start = begin(ECHO, machine)
    for field, value, why in (("event", np.full(19, 99, np.uint8), "event in scratchpad holds the word 0x63, not bits"),
                              ("memory", np.zeros(9, np.uint8), r"memory is \(8,\) of uint8, the machine's is \(18"),
                              ("memory", np.zeros(19, np.int8), r"the card's memory is \(18,\) of int8")):
        card = machine.pack(ECHO)
        assert card.fields["memory"].shape == (19,)
        card.fields[field] = value
        checkpoint.CheckpointFile(path, machine, ECHO, start.plan).write(Mark(card))
        with pytest.raises(StorageError, match=why):
            checkpoint.load(path)


def test_ports_and_watchers_of_the_caller_see_tensors() -> None:
    """Those of `machine.run` do; a runner itself shows the card as it has it."""
    machine = punchcard.build(SUBTRACT, design="two-layer", word_bits=8)
    kinds: list[type] = []
    pattern = Pattern("inside", "scratchpad", (1,))

    def port(loop: int, card: Any) -> bool:
        kinds.append(type(card))
        if loop == 1:
            machine.layout.get(card, "memory", "memory")[0, 2] *= -1
        return loop < 2

    def spoil(loop: int, card: Any) -> bool:
        machine.layout.get(card, "memory", "memory")[0, 0] = 0.5
        return True

    controls = Controls(ports={pattern: port}, watch=lambda loop, card: kinds.append(type(card)))
    result = machine.run(SUBTRACT, engine="packed", controls=controls)
    assert set(kinds) == {torch.Tensor}
    assert (result.reason, machine.read(result.raw_card).memory[2]) == ("stopped", 6)
    assert torch.equal(result.card, machine.run(SUBTRACT, engine="dense", controls=Controls(ports={pattern: port})).card)
    with pytest.raises(LayoutError, match=r"0\.5 does not go to 'memory' in 'memory'"):
        machine.run(SUBTRACT, engine="packed", controls=Controls(ports={pattern: spoil}))
    kinds.clear()
    runner = prepare("packed", machine.weights, machine.layout, machine.pack(SUBTRACT))
    runner.run(2, Controls(watch=lambda loop, card: kinds.append(type(card))))
    assert kinds == [PackedCard] * 2


def test_marks_keep_cards_as_they_are() -> None:
    machine = punchcard.build(SUBTRACT, design="two-layer", word_bits=8)
    marks: list[Mark] = []
    machine.run(SUBTRACT, engine="packed", keep=PeriodicAction(1, marks.append))
    assert all(mark.packed is not None for mark in marks)
    for mark in marks:
        again = machine.run(SUBTRACT, engine="dense", begin=mark)
        assert torch.equal(again.card, machine.run(SUBTRACT, engine="packed", begin=mark).card)


def test_weights_of_a_module_that_was_changed_are_the_ones_that_run() -> None:
    machine = punchcard.build(SUBTRACT, design="two-layer", word_bits=8)
    before = machine.weights.digest()
    assert not machine.weights.has_module
    with torch.no_grad():
        machine.model.layers[0].get_parameter("value").neg_()
    assert machine.weights.digest() != before
    assert np.array_equal(machine.weights.layers[0].value, machine.model.layers[0].get_parameter("value").numpy())
    assert not punchcard.run(SUBTRACT, machine, engine="packed").ok


def test_a_large_memory_is_not_read_for_a_few_values(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = VonNeumannMachine(word_bits=16, memory=1 << 16)
    card = machine.pack(Image((5, 6, -7), labels={"x": 2}))
    with monkeypatch.context() as patch:
        patch.setattr(machine.design, "read", None)
        seen = machine.readout(Image((5, 6, -7), labels={"x": 2}), card)
    assert seen == ({"x": -7}, 0x10000 - 3, False), "before the warm-up loop"
