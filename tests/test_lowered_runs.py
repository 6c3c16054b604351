"""Runs of the lowered engine end as those of the dense one: patterns, ports, watchers, interrupts and batches."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from punchcard.card.encoding import encode_bits
from punchcard.card.layout import Pattern
from punchcard.engines.base import Run
from punchcard.engines.controls import Port
from punchcard.machines.fleq.machine import FleqMachine
from punchcard.machines.fleq.text.assembler import assemble
from punchcard.machines.subleq.isa import Halt, Instruction, Program, Subleq
from punchcard.machines.subleq.machine import SubleqMachine
from tests.engine_runs import run_dense, run_lowered
from tests.lowered_cases import Machine, random_rules, turing_machine

pytestmark = pytest.mark.usefixtures("shared_code")

BITS = 4
CELLS = 16


def machine_of(seed: int) -> Machine:
    rng = random.Random(seed)
    return turing_machine(random_rules(rng), [rng.randrange(2) for _ in range(CELLS)], rng.randrange(CELLS), BITS)


MACHINE = machine_of(4)
OTHERS = [machine_of(seed).card for seed in (5, 6)]
"""Other tapes and places for the same rules."""


def same(ran: Run, expected: Run) -> bool:
    return ((ran.loops, ran.reason, ran.matched) == (expected.loops, expected.reason, expected.matched)
            and torch.equal(ran.card, expected.card))


PATTERNS = st.builds(
    lambda rows, bits: Pattern(rows[0], rows[1], tuple(bits[: rows[2]])),
    st.sampled_from([("place", "head", BITS), ("state", "head", 2), ("symbol", "head", 1), ("symbol", "tape", 1)]),
    st.lists(st.sampled_from([-1, 1, 0]), min_size=BITS, max_size=BITS),
)


@settings(max_examples=60)
@given(st.lists(PATTERNS, max_size=3), st.integers(0, 70))
def test_runs_end_at_the_same_pattern(until: list[Pattern], loops: int) -> None:
    """Bits that may be either, patterns of such bits only, on the tape, none, and several that are at once."""
    how = {"facts": MACHINE.layout, "until": until}
    ran = run_lowered(MACHINE.model, MACHINE.card, loops, **how)  # type: ignore[arg-type]
    assert same(ran, run_dense(MACHINE.model, MACHINE.card, loops, **how))  # type: ignore[arg-type]
    assert (ran.engine, ran.notes) == ("lowered", ())


@settings(max_examples=40)
@given(st.lists(PATTERNS, min_size=1, max_size=3), st.integers(0, 60), st.integers(1, 3))
@example([Pattern("place", "head", (1, -1, 1, -1)), Pattern("state", "head", (1, 1))], 2, 2)  # in the last loop of all
def test_batches_end_when_every_card_shows_a_pattern(until: list[Pattern], loops: int, cards: int) -> None:
    batch = torch.stack([MACHINE.card, *OTHERS][:cards])
    how = {"facts": MACHINE.layout, "until": until}
    ran = run_lowered(MACHINE.model, batch, loops, **how)  # type: ignore[arg-type]
    assert same(ran, run_dense(MACHINE.model, batch, loops, **how))  # type: ignore[arg-type]


@settings(max_examples=40)
@given(st.lists(PATTERNS, min_size=1, max_size=3, unique=True), st.lists(PATTERNS, max_size=1), st.integers(0, 2**30))
def test_ports_change_the_same_cards(wanted: list[Pattern], until: list[Pattern], seed: int) -> None:
    """A port writes the place, the state and a cell at random; a pattern may come to stand, or go, by another's port."""
    outcomes = []
    for run in (run_dense, run_lowered):
        calls: list[tuple[int, int]] = []
        rng = random.Random(seed)

        def port_of(number: int, rng: random.Random = rng, calls: list[tuple[int, int]] = calls) -> Port:
            def port(loop: int, card: Tensor) -> bool:
                calls.append((number, loop))
                MACHINE.layout.put(card, "place", "head", encode_bits(rng.randrange(CELLS), BITS))
                MACHINE.layout.put(card, "state", "head", encode_bits(rng.randrange(4), 2))
                MACHINE.layout.get(card, "symbol", "tape")[0, rng.randrange(CELLS)] *= -1
                return len(calls) < 12

            return port

        ports = {pattern: port_of(number) for number, pattern in enumerate(wanted)}
        ran = run(MACHINE.model, MACHINE.card, 50, facts=MACHINE.layout, until=until, ports=ports)
        outcomes.append((ran, calls))
    (expected, called), (ran, calls) = outcomes
    assert calls == called
    assert same(ran, expected)
    assert ran.notes == ()


@pytest.mark.parametrize(("design", "counter"), [("two-layer", "following"), ("paper", "program_counter")])
def test_ports_of_a_machine_change_cells_and_the_program_counter(design: str, counter: str) -> None:
    """A port changes a cell that the next instruction reads, and sends the program back."""
    code: list[Instruction] = [Subleq(0, 1, 1), Subleq(2, 1, 2), Subleq(0, 1, 3), Halt()]
    machine = SubleqMachine(word_bits=8, memory=9, instructions=4, design=design)
    layout, length, first = machine.layout, machine.sizes.pointer_bits, machine.sizes.instruction_column
    pattern = Pattern(counter, "scratchpad", tuple(int(b) for b in encode_bits(first + 2, length)[:, 0]))
    ends = []
    for run in (run_dense, run_lowered):
        called: list[int] = []

        def back(loop: int, card: Tensor, called: list[int] = called) -> bool:
            called.append(loop)
            layout.put(card, counter, "scratchpad", encode_bits(first + 1, length))
            layout.get(card, "memory", "memory")[1:3, 2] *= -1
            return len(called) < 5

        ends.append((run(machine.model, machine.punch(Program.create(code, [5, 90, -7])), 60, facts=layout,
                         ports={pattern: back}), called))
    assert same(ends[1][0], ends[0][0])
    assert ends[1][1] == ends[0][1]
    assert len(called) > 1
    assert ends[1][0].notes == ()


def test_patterns_on_numbers_that_are_no_bits() -> None:
    """A row that holds 5 does not show the bit 1, though it has its sign; one that holds 1.25 does."""
    machine = FleqMachine(functions=["add"], size=1, memory=8, instructions=4, range=64.0)
    card = machine.punch(assemble(".range 64\n.data\nx scalar 8.25\ny scalar -1\nz scalar 0\n.code\n"
                                  "x = add(x, y)\nif z <= 0 goto 0\nhalt"))
    rows = machine.sizes.data_rows
    one, minus = (Pattern("data", "memory", (bit, *[0] * (rows - 1))) for bit in (1, -1))
    runs = [run(machine.model, card, 40, facts=machine.layout, until=(one, minus)) for run in (run_dense, run_lowered)]
    assert same(runs[1], runs[0])
    assert runs[1].matched == one
    served: dict[Callable[..., Run], list[int]] = {run_dense: [], run_lowered: []}
    anything = Pattern("halted", "scratchpad", (0,))
    for run, loops in served.items():
        ports: dict[Pattern, Port] = {
            anything: lambda loop, card: True,
            one: lambda loop, card, loops=loops: bool(loops.append(loop)) or True,  # type: ignore[misc]
        }
        run(machine.model, card, 24, facts=machine.layout, ports=ports)
    assert served[run_lowered] == served[run_dense] != []


def test_a_long_run_is_interrupted_soon() -> None:
    told: list[int] = []
    started = time.perf_counter()
    ran = run_lowered(MACHINE.model, MACHINE.card, 10**15, facts=MACHINE.layout, progress=told.append,
                     interrupted=lambda: time.perf_counter() - started > 0.3)
    assert ran.reason == "interrupted"
    assert told == sorted(set(told))
    assert told[-1] == ran.loops
    assert len(told) > 3
    assert time.perf_counter() - started < 10
    assert torch.equal(run_lowered(MACHINE.model, MACHINE.card, ran.loops, facts=MACHINE.layout).card, ran.card)


def test_batches_of_any_shape() -> None:
    """Also of cards with other static rows, for which there is other code."""
    strange = MACHINE.card.clone()
    order = list(range(CELLS))
    random.Random(1).shuffle(order)
    MACHINE.layout.put(strange, "position", "tape", encode_bits(order, BITS))
    batch = torch.stack([MACHINE.card, strange, *OTHERS]).view(2, 2, *strange.shape)
    seen: list[Tensor] = []
    ran = run_lowered(MACHINE.model, batch, 25, facts=MACHINE.layout, watch=lambda _, now: seen.append(now))
    for found in seen:
        batch = MACHINE.model(batch)
        assert torch.equal(found, batch)
    assert (ran.engine, ran.notes, ran.card.shape) == ("lowered", (), batch.shape)
    for make in (run_dense, run_lowered):
        assert make(MACHINE.model, batch[:1, :1], 3, facts=MACHINE.layout).card.shape == (1, 1, *strange.shape)
