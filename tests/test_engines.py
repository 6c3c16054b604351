"""Engines run any model on any card: here a machine that the package does not contain, written in the test."""

from __future__ import annotations

import random

import pytest
import torch

import punchcard
from punchcard.card.encoding import decode_bits, encode_bits
from punchcard.card.layout import Layout, Pattern, Region, RowBlock
from punchcard.engines import ENGINES, Controls, EngineCache, prepare
from punchcard.engines.dense import Stepping, threads
from punchcard.engines.lowered import Lowered
from punchcard.engines.lowered.card_state import CardState
from punchcard.engines.lowered.compiled_model import CompiledModel
from punchcard.engines.scratchpad.incremental import Incremental
from punchcard.errors import LayoutError, LoweringError, PunchcardError
from punchcard.machines.subleq.machine import SubleqMachine
from punchcard.primitives.bits import increment_bits
from punchcard.primitives.memory import read
from punchcard.transformer.build import assign, build
from punchcard.transformer.expression import rows
from punchcard.transformer.model import LoopedTransformer, TransformerLayer
from punchcard.transformer.precision import Precision
from tests.engine_runs import card_with, run_dense, run_on
from tests.random_programs import random_program

BITS = 3
CELLS = 7


def counter_machine() -> tuple[Layout, LoopedTransformer, torch.Tensor]:
    """A card reader: each loop reads the column that the counter names, and counts on."""
    layout = Layout(
        [RowBlock("data", 2, holds={"tape": "bits"}),
         RowBlock("seen", 2, changes=("head",), holds={"head": "bits"}),
         RowBlock("counter", BITS, changes=("head",), holds={"head": "bits"}),
         RowBlock("position", BITS, holds={"tape": "bits"}),
         RowBlock("inside", 1, holds={"head": "one"}),
         RowBlock("v_new", 2)],
        [Region("head", 1), Region("tape", CELLS)],
    )
    data, seen, counter, position, one, v_new = (rows(layout, block.name) for block in layout.blocks)
    parts = [
        read(pointer=counter, position=position, source=data, into=seen, via=v_new, inside=one, gate=8.0),
        assign(counter, increment_bits(counter, one)),
    ]
    card = card_with(layout, {
        ("data", "tape"): [i % 4 for i in range(CELLS)], ("position", "tape"): list(range(1, CELLS + 1)),
        ("seen", "head"): -1.0, ("counter", "head"): 1, ("inside", "head"): 1.0})
    return layout, build(parts, layout.width, Precision()), card


@pytest.mark.parametrize("name", ENGINES)
def test_a_machine_from_elsewhere(name: str) -> None:
    layout, model, card = counter_machine()
    for loops in range(1, CELLS + 1):
        ran = run_on(name, model, card, loops, facts=layout)
        assert (ran.loops, ran.reason, ran.made) == (loops, "loops", {ran.engine: loops})
        assert ran.engine == ("dense" if name == "auto" else name)
        assert decode_bits(layout.get(ran.card, "seen", "head")).item() == (loops - 1) % 4
        assert decode_bits(layout.get(ran.card, "counter", "head")).item() == (loops + 1) % 8


@pytest.mark.parametrize("name", ENGINES)
def test_until_a_pattern_stands_on_every_card(name: str) -> None:
    layout, model, card = counter_machine()
    pattern = Pattern("counter", "head", (1, -1, 1))  # 5
    ran = run_on(name, model, card, 100, facts=layout, until=pattern)
    assert (ran.loops, ran.reason) == (4, "matched")
    later = card.clone()
    layout.put(later, "counter", "head", encode_bits(2, BITS))
    both = run_on(name, model, torch.stack([card, later]), 20, facts=layout, until=pattern)
    assert (both.loops, both.reason) == (20, "loops"), "the two counters never show it together"


@pytest.mark.parametrize("name", ENGINES)
def test_without_facts_every_engine_still_runs(name: str) -> None:
    _, model, card = counter_machine()
    assert run_on(name, model, card, 3).loops == 3
    with pytest.raises(LayoutError, match="`until` and `ports` name rows of the card"):
        run_on(name, model, card, 3, until=Pattern("counter", "head", (1, 1, 1)))


@pytest.mark.parametrize("name", ENGINES)
def test_watch_and_interruption(name: str) -> None:
    _, model, card = counter_machine()
    seen: list[int] = []
    ran = run_on(name, model, card, 50, watch=lambda loop, _: seen.append(loop),
                            interrupted=lambda: len(seen) == 6)
    assert (ran.loops, ran.reason, seen) == (6, "interrupted", [1, 2, 3, 4, 5, 6])


@pytest.mark.parametrize("name", ENGINES)
def test_every_loop_is_the_model_applied_to_the_card(name: str) -> None:
    """Alone and in a batch; the cards that are watched stay as they were, and so does the one that was given."""
    layout, model, card = counter_machine()
    later = card.clone()
    layout.put(later, "counter", "head", encode_bits(5, BITS))
    for start in (card, torch.stack([card, later]), torch.stack([card, later, later, card]).view(2, 2, *card.shape)):
        given = start.clone()
        seen: list[torch.Tensor] = []

        def look(_: int, now: torch.Tensor, seen: list[torch.Tensor] = seen) -> None:
            seen.append(now)

        ran = run_on(name, model, given, 11, facts=layout, watch=look)
        assert torch.equal(given, start)
        expected = start
        for found in seen:
            expected = model(expected)
            assert torch.equal(found, expected)
        assert len(seen) == 11
        assert torch.equal(ran.card, expected)
        assert ran.card.shape == start.shape


@pytest.mark.parametrize("name", ENGINES)
def test_several_patterns_and_bits_that_may_be_either(name: str) -> None:
    layout, model, card = counter_machine()
    six, odd_above_four = Pattern("counter", "head", (-1, 1, 1)), Pattern("counter", "head", (1, 0, 1))
    ran = run_on(name, model, card, 100, facts=layout, until=(six, odd_above_four))
    assert (ran.loops, ran.reason, ran.matched) == (4, "matched", odd_above_four)
    later = card.clone()
    layout.put(later, "counter", "head", encode_bits(2, BITS))
    both = run_on(name, model, torch.stack([card, later]), 20, facts=layout, until=[odd_above_four, six])
    assert (both.loops, both.reason, both.matched) == (4, "matched", six), "one card shows 5, the other 6"


@pytest.mark.parametrize("name", ENGINES)
def test_a_port_changes_the_card_and_the_run_goes_on(name: str) -> None:
    layout, model, card = counter_machine()
    called = []

    def leap(loop: int, now: torch.Tensor) -> bool:
        called.append(loop)
        layout.put(now, "counter", "head", encode_bits(6, BITS))
        return True

    ran = run_on(name, model, card, 4, facts=layout, ports={Pattern("counter", "head", (1, 1, -1)): leap})
    assert called == [2]
    assert (ran.loops, ran.reason) == (4, "loops")
    assert decode_bits(layout.get(ran.card, "counter", "head")).item() == (6 + 2) % 8
    assert decode_bits(layout.get(ran.card, "seen", "head")).item() == (7 - 1) % 4, "the data at position 7"
    assert torch.equal(layout.get(ran.card, "data", "tape"), layout.get(card, "data", "tape"))


@pytest.mark.parametrize("name", ENGINES)
def test_a_port_stops_the_run(name: str) -> None:
    layout, model, card = counter_machine()
    heard: list[int] = []

    def listen(loop: int, _: torch.Tensor) -> bool:
        heard.append(loop)
        return True

    three, five = Pattern("counter", "head", (1, 1, -1)), Pattern("counter", "head", (1, -1, 1))
    ran = run_on(name, model, card, 50, facts=layout, ports={three: listen, five: lambda *_: False})
    assert (ran.loops, ran.reason, ran.matched, heard) == (4, "stopped", five, [2])
    stopped = run_on(name, model, card, 50, facts=layout, until=five, ports={five: lambda *_: False})
    assert stopped.reason == "matched", "`until` is looked for first"
    with pytest.raises(PunchcardError, match="ports serve one card, not a batch"):
        run_on(name, model, card.unsqueeze(0), 5, facts=layout, ports={five: lambda *_: False})


def test_an_unknown_engine_is_refused_with_all_names() -> None:
    with pytest.raises(PunchcardError, match=r"unknown engine 'scratchpat' \(did you mean 'scratchpad'\?\)") as info:
        run_on("scratchpat", *counter_machine()[1:], 1)
    assert all(name in str(info.value) for name in ENGINES)


# What is prepared


@pytest.mark.parametrize("name", ENGINES)
def test_a_runner_goes_on_from_the_card_that_it_left(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    layout, model, card = counter_machine()
    runner = prepare(name, model, layout, card)
    assert torch.equal(runner.card, card)

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("prepared again")

    monkeypatch.setattr(CompiledModel, "__init__", refuse)
    monkeypatch.setattr(Incremental, "__init__", refuse)
    expected = card
    for loops in (1, 0, 2, 9):
        ran = runner.run(loops)
        for _ in range(loops):
            expected = model(expected)
        assert torch.equal(ran.card, expected)
        assert torch.equal(runner.card, expected)
        assert (ran.loops, ran.reason, ran.made, ran.engine) == (loops, "loops", {runner.engine: loops}, runner.engine)
        ran.card.zero_()
    ran = runner.run(100, Controls(until=Pattern("counter", "head", (1, 1, -1))))
    assert (ran.loops, ran.reason) == (6, "matched"), "from 5 on to 3, and patterns may be others in every call"
    runner.take(card)
    assert torch.equal(runner.run(3).card, model(model(model(card))))


@pytest.mark.parametrize("name", ENGINES)
def test_preparing_makes_no_loop_and_says_what_will(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    layout, model, card = counter_machine()
    with monkeypatch.context() as patched:
        for kind, method in ((Stepping, "run"), (CardState, "advance"), (LoopedTransformer, "forward")):
            patched.setattr(kind, method, lambda *_: pytest.fail("a loop was made"))
        runner = prepare(name, model, layout, card)
    assert runner.engine == ("lowered" if name == "auto" else name)
    assert (runner.compile_seconds > 0) == (runner.engine == "lowered")
    assert runner.run(4).engine == runner.engine


def test_prepared_code_is_kept_by_whoever_wants_it() -> None:
    """One prepares anew, two share, and weights that changed without a trace are other weights."""
    layout, model, card = counter_machine()
    kept = EngineCache()
    first, second = (Lowered(model, layout, card, cache=kept) for _ in range(2))
    assert first.states[0].compiled_model is second.states[0].compiled_model
    assert Lowered(model, layout, card).states[0].compiled_model is not first.states[0].compiled_model
    layer = model.layers[1]
    assert isinstance(layer, TransformerLayer)
    layer.w2.data.neg_()
    ran = prepare("lowered", model, layout, card, fall_back=True, cache=kept).run(5)
    assert torch.equal(ran.card, run_dense(model, card, 5).card)
    layer.w2.data.neg_()
    again = Lowered(model, layout, card, cache=kept)
    assert again.states[0].compiled_model is not first.states[0].compiled_model, "only the last are kept"


# The choice


def tape_of(cells: int) -> tuple[Layout, LoopedTransformer, torch.Tensor]:
    """A card that cannot be lowered: passive columns take from several others."""
    machine = SubleqMachine(word_bits=4, memory=cells, instructions=6, design="two-layer",
                            precision=Precision(temperature=6.0))
    return machine.layout, machine.model, machine.punch(random_program(random.Random(5), 4, 5, 6))


def test_auto_takes_the_fastest_that_applies() -> None:
    layout, model, card = counter_machine()
    runner = prepare("auto", model, layout, card)
    assert (runner.engine, runner.notes) == ("lowered", ())
    assert prepare("auto", model, layout, card, loops=65).engine == "lowered"
    few = prepare("auto", model, layout, card, loops=64)
    assert (few.engine, few.notes) == ("dense", ("lowered: compiling takes longer than 64 loops",))
    program = punchcard.assemble(".data\nx scalar 1\n.code\n  x = add(x, x)\n  halt\n", "fleq")
    real = punchcard.build(program)
    short, long = (prepare("auto", real.model, real.layout, real.punch(program), loops=loops) for loops in (256, 257))
    assert (short.engine, short.notes) == ("dense", ("lowered: compiling takes longer than 256 loops",)), "real numbers"
    assert long.engine == "lowered"
    batch = prepare("auto", model, layout, card.expand(1000, *card.shape), loops=2)
    assert batch.engine == "scratchpad", "a batch is large, too"
    elsewhere = prepare("auto", model.to("meta"), layout, card.to("meta"))
    assert (elsewhere.engine, elsewhere.notes) == (
        "dense", ("lowered: the card is on meta, generated code runs on the CPU",))


@pytest.mark.parametrize(("cells", "engine"), [(5, "dense"), (200, "scratchpad")])
def test_what_cannot_be_lowered_runs_on_the_fastest_engine_for_its_size(cells: int, engine: str) -> None:
    layout, model, card = tape_of(cells)
    with pytest.raises(LoweringError) as info:
        prepare("lowered", model, layout, card)
    for name in ("auto", "lowered"):
        runner = prepare(name, model, layout, card, fall_back=True)
        assert (runner.engine, runner.notes) == (engine, (f"not lowered: {info.value}",))
        ran = runner.run(3)
        assert (ran.engine, ran.made, ran.notes[0]) == (engine, {engine: 3}, runner.notes[0])
    assert prepare("auto", model, layout, card).engine == engine, "`auto` needs no leave"


@pytest.mark.parametrize("name", ENGINES)
def test_progress_is_told_and_threads_are_left_as_they_were(name: str) -> None:
    layout, model, card = counter_machine()
    told: list[int] = []
    with threads(2):
        run_on(name, model, card, 40, facts=layout, progress=told.append)
        assert torch.get_num_threads() == 2
    assert told == sorted(set(told))
    assert 1 <= told[0] <= told[-1] == 40
