"""Runs in parts: marks where they were asked for, one engine for all parts, and FLEQ's promises kept between them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch

import punchcard
from punchcard.engines import ENGINES, NO_CONTROLS, Controls, Run
from punchcard.engines.dense import Dense
from punchcard.errors import LoweringError, ProgramError, PunchcardError
from punchcard.machines.fleq import guard as fleq_guard
from punchcard.machines.fleq import machine as fleq
from punchcard.machines.fleq.isa import FleqProgram
from punchcard.machines.fleq.text.assembler import assemble
from punchcard.machines.running import Mark, PeriodicAction
from tests.cases import DESIGNS, load_subleq, soaked
from tests.fleq_cases import MANY
from tests.opened import built

PROGRAM = load_subleq("multiply.subleq")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("design", DESIGNS)
def test_marks_stand_where_they_were_asked_for(design: str, engine: str) -> None:
    machine = punchcard.build(PROGRAM, design=design)
    marks: list[Mark] = []
    if (design, engine) == ("one-layer", "lowered"):
        with pytest.raises(LoweringError, match="passive columns find other passive columns"):
            machine.run(PROGRAM, engine=engine)
        return
    whole = machine.run(PROGRAM, engine="dense")
    result = machine.run(PROGRAM, engine=engine, keep=PeriodicAction(10, marks.append))
    assert torch.equal(result.card, whole.card)
    assert [(m.loops, m.ended) for m in marks] == [(10, False), (20, False), (28, True)]
    assert {m.engine for m in marks} == {result.engine}
    for mark in marks:
        resumed = machine.run(PROGRAM, engine=engine, begin=mark)
        assert torch.equal(resumed.card, whole.card)
        assert (resumed.loops, resumed.begun, resumed.halted) == (28, mark.loops, True)


def test_loops_are_counted_from_the_beginning_of_the_run() -> None:
    machine = punchcard.build(PROGRAM)
    seen: list[int] = []
    told: list[int] = []
    machine.run(PROGRAM, engine="dense", keep=PeriodicAction(5, lambda mark: None),
                controls=Controls(watch=lambda loop, card: seen.append(loop), progress=told.append))
    assert seen == list(range(1, 29))
    assert told == list(range(1, 28)), "after the last loop the run has ended"


def test_an_interrupt_is_seen_between_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also with an engine that asks less often than parts are short."""
    machine = punchcard.build(PROGRAM)
    marks: list[Mark] = []

    class Deaf(Dense):
        def run(self, loops: int, controls: Controls = NO_CONTROLS) -> Run:
            return super().run(loops, replace(controls, interrupted=None))

    monkeypatch.setitem(ENGINES, "deaf", Deaf)
    result = machine.run(PROGRAM, engine="deaf", keep=PeriodicAction(5, marks.append),
                         controls=Controls(interrupted=lambda: len(marks) >= 1))
    assert (result.interrupted, result.loops, [m.loops for m in marks]) == (True, 10, [5, 10])


def test_one_engine_makes_all_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """`auto` chooses by the number of loops: by that of the whole run, not of a part."""
    asked: list[int | None] = []

    class Chosen(Dense):
        def __init__(self, *given: Any, loops: int | None, **options: Any) -> None:
            super().__init__(*given, loops=loops, **options)
            asked.append(loops)
            self.engine, self.compile_seconds = "one" if loops is None or loops > 20 else "other", 0.25
            self.noting("why")

        def run(self, loops: int, controls: Controls = NO_CONTROLS) -> Run:
            ran = super().run(loops, controls)
            return replace(ran, engine=self.engine, made={self.engine: ran.loops})

    monkeypatch.setitem(ENGINES, "auto", Chosen)
    machine = punchcard.build(PROGRAM)
    marks: list[Mark] = []
    result = machine.run(PROGRAM, max_steps=1000, keep=PeriodicAction(10, marks.append))
    assert {m.engine for m in marks} == {result.engine} == {"one"}
    assert (len(marks), asked) == (3, [None])
    assert (result.notes, result.compile_seconds) == (("why",), 0.25)
    assert machine.run(PROGRAM, max_steps=10, keep=PeriodicAction(10, marks.append)).engine == "one", "it may go on"
    assert machine.run(PROGRAM, max_steps=10).engine == "other"


def test_a_watched_model_runs_on_the_dense_engine() -> None:
    """Hooks listen in the model's layers, which other engines do not pass through."""
    machine = punchcard.build(PROGRAM, design="two-layer")
    with punchcard.observe(machine.model, machine.layout) as seen:
        result = machine.run(PROGRAM)
    assert (result.engine, len(seen)) == ("dense", 2 * result.loops)


def test_marks_need_a_distance() -> None:
    with pytest.raises(PunchcardError, match="every=0: it must be 1 or more loops"):
        PeriodicAction(0, lambda mark: None)


def test_result_says_how_fast_it_was() -> None:
    result = punchcard.build(PROGRAM).run(PROGRAM, engine="dense")
    assert result.seconds > 0
    assert result.steps_per_second == pytest.approx(28 / result.seconds)
    assert punchcard.build(PROGRAM).run(PROGRAM, max_steps=0).steps_per_second is None


# Promises


@pytest.fixture(params=[4, 1000])
def look_every(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Parts of this length, and searches by halving down to two loops."""
    monkeypatch.setattr(fleq, "LOOK_EVERY", request.param)
    monkeypatch.setattr(fleq_guard, "FEW_LOOPS", 2)
    return int(request.param)


COUNT = ".data\none scalar 1\nhalf scalar 0.5\nzero scalar\nlast scalar\nt scalar -9\n.code\n" \
        "count: t = add(t, one); if t <= 0 goto count\n"


@cache
def counting(code: str, design: str) -> tuple[FleqProgram, Any]:
    program = assemble(COUNT + code)
    return program, punchcard.build(program, design=design)


LASTING = [
    ("loop: one = add(one, one)\ngoto loop", r"instruction 1 \(loop\) in loop 19: 'one' became 32, beyond"),
    ("reset_pointer(3.c, t)\nincr_pointer(3.c)\nlast = add(one, one)\ngoto 0",
     "instruction 3 in loop 13: pointer c is 5, outside"),
]
PASSING = [
    ("if half <= 0 goto 0", "instruction 1 in loop 11: the flag 'half' is 0.5"),
    ("reset_pointer(3.p, 4)\nincr_pointer(3.p)\nif zero <= 0 goto 0",
     r"instruction 3 in loop 13: jumps to instruction -?\d+, the program has 5"),
]


@pytest.mark.parametrize(("engine", "design"), [
    ("scratchpad", "compact"), ("auto", "compact"),
    *(soaked(engine, design) for engine in ("scratchpad", "auto") for design in ("three-layer", "paper"))])
@pytest.mark.parametrize(("code", "message"), LASTING)
def test_what_lasts_is_found_after_any_part(look_every: int, design: str, engine: str, code: str, message: str) -> None:
    program, machine = counting(code, design)
    with pytest.raises(ProgramError, match=message):
        machine.run(program, engine=engine, max_steps=40)


@pytest.mark.parametrize("design", MANY)
@pytest.mark.parametrize(("code", "message"), PASSING)
def test_what_passes_is_found_right_after_it(
    design: str, code: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong turn from which the program counter comes back is seen in a part of one loop."""
    monkeypatch.setattr(fleq, "LOOK_EVERY", 1)
    program, machine = counting(code, design)
    with pytest.raises(ProgramError, match=message):
        machine.run(program, engine="scratchpad", max_steps=40)


@pytest.mark.parametrize("name", ["newton.fleq", "columns.fleq", "functions.fleq"])
def test_kept_promises_raise_nothing(look_every: int, name: str) -> None:
    program, machine = built(name)
    result = machine.run(program, engine="scratchpad")
    assert result.halted
    assert torch.equal(result.card, machine.run(program, engine="scratchpad", guarded=False).card)


def test_what_is_mended_within_a_part_is_not_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the docs say: only a watched run, or one on the dense engine, is looked at after every loop."""
    program = assemble(".data\nx scalar 12\ny scalar\n.code\ny = add(x, x)\ny = sub(y, x)")
    machine = punchcard.build(program)
    assert machine.run(program, engine="scratchpad").memory["y"] == 12
    for options in ({"engine": "dense"}, {"engine": "scratchpad", "controls": Controls(watch=lambda loop, card: None)}):
        with pytest.raises(ProgramError, match="'y' became 24"):
            machine.run(program, **options)
    monkeypatch.setattr(fleq, "LOOK_EVERY", 1)
    with pytest.raises(ProgramError, match="instruction 0 in loop 1: 'y' became 24"):
        machine.run(program, engine="scratchpad")


def test_an_engine_that_differs_when_watched_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    program, machine = built("columns.fleq")

    class Wrong(Dense):
        engine = "wrong"

        def run(self, loops: int, controls: Controls = NO_CONTROLS) -> Run:
            ran = super().run(loops, controls)
            if controls.watch is None:
                machine.layout.put(ran.card, "data", "zero", 1.0)
            return replace(ran, engine="wrong", made={"wrong": ran.loops})

    monkeypatch.setitem(ENGINES, "wrong", Wrong)
    with pytest.raises(PunchcardError, match=r"in loops 1 to 31 a column that the program may not change was changed, but "
                                             "loop by loop no .* engine 'wrong' gives another card when it is watched"):
        machine.run(program, engine="wrong")
