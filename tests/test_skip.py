"""Ports that know the next loops: the card and the count are those of a run in which every loop is made."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import punchcard
from punchcard.card.layout import Card, Pattern, as_tensor
from punchcard.card.packed import PackedCard
from punchcard.engines import Controls, Skip, prepare

PROGRAM = punchcard.assemble(".data\na 1\nb 99\nz 0\n.code\nloop: subleq a, b, next\nnext: subleq z, z, loop\nhalt\n")


class Knowing:
    """A port that is called after every loop, and knows `known` loops more: it has the model."""

    def __init__(self, machine: Any, known: int) -> None:
        self._machine, self._known = machine, known
        self.called: list[int] = []
        rows = machine.layout.blocks[0]
        self.pattern = Pattern(rows.name, machine.layout.regions[0].name, (0,) * rows.size)

    def __call__(self, loop: int, card: Card) -> bool | Skip:
        self.called.append(loop)
        return Skip(self._known, self.advance)

    def advance(self, card: Card, count: int) -> None:
        after = as_tensor(card)
        with torch.no_grad():
            for _ in range(count):
                after = self._machine.model(after)
        if isinstance(card, PackedCard):
            for name, field in PackedCard.of(self._machine.layout, after).fields.items():
                if card.fields[name].flags.writeable:  # others no loop changes
                    card.fields[name][...] = field
        else:
            card[...] = after


@pytest.fixture(scope="module")
def machine() -> Any:
    return punchcard.build(PROGRAM, word_bits=8, design="two-layer")


@pytest.mark.parametrize("engine", ["dense", "scratchpad", "lowered", "auto"])
@pytest.mark.parametrize("packed", [True, False])
def test_loops_that_a_port_knows_are_not_made(machine: Any, engine: str, packed: bool) -> None:
    card = machine.pack(PROGRAM) if packed else machine.punch(PROGRAM)
    whole = prepare(engine, machine.weights, machine.layout, card).run(20)
    port, progress = Knowing(machine, 3), list[int]()
    runner = prepare(engine, machine.weights, machine.layout, card)
    ran = runner.run(14, Controls(ports={port.pattern: port}, progress=progress.append))
    assert (port.called, ran.loops, ran.reason) == ([1, 5, 9, 13], 14, "loops"), "the last skip has room for one loop"
    assert ran.made == {ran.engine: 14}
    assert not torch.equal(ran.card, whole.card)
    again = runner.run(6, Controls(ports={port.pattern: port}))
    assert (port.called[4:], again.loops) == ([1, 5], 6)
    assert torch.equal(again.card, whole.card)


@pytest.mark.parametrize("engine", ["dense", "lowered"])
def test_a_run_that_is_watched_makes_every_loop(machine: Any, engine: str) -> None:
    port, seen = Knowing(machine, 3), list[int]()
    prepare(engine, machine.weights, machine.layout, machine.pack(PROGRAM)).run(
        5, Controls(ports={port.pattern: port}, watch=lambda loop, card: seen.append(loop)))
    assert seen == port.called == [1, 2, 3, 4, 5]


def test_two_ports_do_not_know_what_the_other_does(machine: Any) -> None:
    first, second = Knowing(machine, 3), Knowing(machine, 3)
    other = Pattern(machine.layout.blocks[1].name, machine.layout.regions[0].name, (0,) * machine.layout.blocks[1].size)
    ran = prepare("lowered", machine.weights, machine.layout, machine.pack(PROGRAM)).run(
        4, Controls(ports={first.pattern: first, other: second}))
    assert first.called == second.called == [1, 2, 3, 4]
    assert ran.loops == 4


def test_a_batch_makes_every_loop(machine: Any) -> None:
    """A skip is an offer: it need not be taken."""
    port = Knowing(machine, 3)
    from punchcard.engines import prepare_batch
    from punchcard.engines.batch import BatchPorts

    runs = prepare_batch("lowered", machine.weights, machine.layout, [machine.pack(PROGRAM)]).run(
        4, ports=BatchPorts([{port.pattern: port}]))
    assert port.called == [1, 2, 3, 4]
    assert runs[0].loops == 4
