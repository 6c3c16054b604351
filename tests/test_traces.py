"""Traces: hot paths of a card as native code. Cards are the equation's after every loop, for any weights."""

from __future__ import annotations

import gc
import json
import random
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from llvmlite import ir

import punchcard as pc
from punchcard.card.layout import Card, Pattern, as_tensor
from punchcard.card.packed import PackedCard
from punchcard.engines import Controls, EngineCache, prepare
from punchcard.engines.base import TraceReport
from punchcard.engines.lowered.codegen.objects import LoadedCode
from punchcard.engines.lowered.codegen.trace_driver import Observe, TracePlace, emit_trace_driver
from punchcard.engines.lowered.compiled_model import MOST_TIERS
from punchcard.engines.lowered.engine import as_packed
from punchcard.engines.lowered.tracing import profile, tier
from punchcard.engines.lowered.tracing.compiler import CompiledTrace, FoundSample, TraceCompiler
from punchcard.engines.lowered.tracing.tier import TraceTier
from punchcard.errors import PunchcardError
from punchcard.machines.result import Result
from punchcard.machines.subleq.isa import Program
from tests.cases import file_with, soaked
from tests.command_line import invoke
from tests.perturbed import SUBJECTS, Subject, distance, judge, perturbed

pytestmark = pytest.mark.usefixtures("shared_code")

AT_ONCE = Controls(traces=0)
TRACED = ("two-layer", "two-layer, float32", "paper", "von Neumann", "Turing", "RISC-V")
"""Machines whose loops can be traced."""
LOOPS = 40


def compare(subject: Subject, seed: str, loops: int) -> tuple[str, TraceReport]:
    """Runs of every length from one card, with one weight changed: how the last fared, and what traces did."""
    rng = random.Random(seed)
    what, weights = perturbed(rng, subject.weights)
    card, cache, total = subject.card(rng), EngineCache(), TraceReport()
    if weights.flaw() is not None:
        return "refused", total
    runner = prepare("lowered", weights, subject.layout, card, fall_back=True, cache=cache)
    if any(note.startswith("not lowered") for note in runner.notes):
        return "refused", total
    expected, model = [card], weights.module
    with torch.no_grad():
        for _ in range(loops):
            expected.append(model(expected[-1]))
    for count in rng.sample(range(loops + 1), loops + 1):
        runner.take(card)
        ran = runner.run(count, AT_ONCE)
        found = as_tensor(ran.card)
        total = TraceReport.total(total, ran.traces) or total
        if not torch.equal(found, expected[count]):
            apart = distance(found, expected[count])
            kinds = {judge(subject, weights, before, apart) for before in expected[:count]}
            assert kinds != {"different"}, f"{seed}, {what}: loop {count} of {count} differs by {apart}"
            return "declined", total
    return "lowered", total


@pytest.mark.parametrize("part", [8, soaked(1)])
@pytest.mark.parametrize("name", [soaked(name) if name == "RISC-V" else name for name in TRACED])
def test_one_weight_changed(name: str, part: int) -> None:
    found, traced = Counter[str](), 0
    subject = SUBJECTS[name]()
    for seed in range(16 // part):
        kind, report = compare(subject, f"{name} {seed}", LOOPS)
        found[kind] += 1
        traced += report.loops
    assert found["lowered"], found
    assert traced > LOOPS, "some loops were made in traces"


def same(one: Card, other: Card) -> bool:
    assert isinstance(one, PackedCard)
    assert isinstance(other, PackedCard)
    return all(bool((field == other.fields[name]).all()) for name, field in one.fields.items())


def _is_over(calls: Iterator[int]) -> bool:
    return next(calls, None) is None


@pytest.mark.parametrize("loops", [600, soaked(60_000)])
@pytest.mark.parametrize("name", ["two-layer", "paper", "von Neumann", soaked("RISC-V")])
def test_random_programs(name: str, loops: int) -> None:
    """Runs of random lengths, in random parts, and as they were interrupted: each against code without traces."""
    subject, rng, traced = SUBJECTS[name](), random.Random(name), TraceReport()
    machine = subject.machine
    assert machine is not None
    assert subject.program is not None
    for _ in range(1 if name == "RISC-V" else 3):
        card = machine.pack(subject.program(rng))
        fast, slow = (prepare("lowered", machine.weights, machine.layout, card, cache=EngineCache(), fall_back=True)
                      for _ in range(2))
        made = 0
        while made < loops:
            calls = iter(range(rng.randrange(1, 4)))
            ran = fast.run(rng.randrange(1, loops), Controls(traces=0, interrupted=partial(_is_over, calls)))
            assert slow.run(ran.loops, Controls(traces=None)).loops == ran.loops
            assert same(fast.raw_card, slow.raw_card), f"{made} loops, then {ran.loops}"
            made += ran.loops
            traced = TraceReport.total(traced, ran.traces) or traced
    assert traced.compiled
    assert traced.loops > loops // 2 or name == "RISC-V", "random instructions seldom come back"


@pytest.mark.parametrize("name", ["two-layer", soaked("von Neumann")])
def test_random_programs_with_few_entries(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where everything is hot, each hot state is an entry. Usually few are, and most loops begin inside a trace."""
    entries = profile._entries
    monkeypatch.setattr(profile, "_entries", lambda *given, everything: entries(*given, everything=False))
    test_random_programs(name, 600)


@pytest.mark.parametrize("name", ["two-layer", "von Neumann"])
def test_random_programs_with_several_traces(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is made outside of a trace becomes another one of the same card."""
    counts, use = list[int](), TraceTier._use

    def counted(self: TraceTier, traces: list[CompiledTrace]) -> None:
        counts.append(len(traces))
        use(self, traces)

    monkeypatch.setattr(TraceTier, "_use", counted)
    test_random_programs(name, 600)
    assert max(counts) > 1


def long_cycle() -> Program:
    """40 instructions that never end."""
    cells = [f"c{i} 0" for i in range(40)]
    code = [f"a{i}: subleq c{i}, c{i}, a{(i + 1) % 40}" for i in range(40)]
    return pc.assemble("\n".join([".data", *cells, ".code", *code, "halt"]))


def run_in_short_traces(monkeypatch: pytest.MonkeyPatch, loops: int, hot: float) -> Result[Any]:
    """The long cycle, where a trace has 16 hot states at most."""
    for module, name, value in ((tier, "MOST_STATES", 16), (tier, "FEW_SAMPLED", 100), (tier, "SECONDS_OF_A_STATE", 1e-5),
                                (profile, "LEAST_SHARE", 0.2)):
        monkeypatch.setattr(module, name, value)
    program = long_cycle()
    machine = pc.build(program, design="two-layer")
    return machine.run(program, engine="lowered", max_steps=loops, controls=Controls(traces=hot))


def test_one_trace_follows_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """No loop is made between two traces."""
    run = run_in_short_traces(monkeypatch, 20_000, 0)
    assert run.traces is not None
    assert run.traces.compiled > 1
    assert run.loops - run.traces.loops < 600, "samples, and what comes before them"


def test_samples_beside_traces(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part of a sample has all loops, the next one those outside: what is hot in all is not known from these."""
    look, sample, tiers = TraceTier._look, TraceCompiler.sample, list[TraceTier]()
    states = dict[bool, set[int]]()

    def looked(self: TraceTier, *given: Any) -> tuple[int, float]:
        tiers.append(self)
        return look(self, *given)

    def sampled(self: TraceCompiler, *given: Any) -> FoundSample:
        found, ours = sample(self, *given), tiers[-1]
        if len(ours._traces) == 1:
            anchor = ours._traces[0].graph.anchor
            uses = bool(ours.memory[TracePlace.TABLE :].any())
            states.setdefault(uses, set()).update(found.sample.before[:, anchor].tolist())
        return found

    monkeypatch.setattr(TraceTier, "_look", looked)
    monkeypatch.setattr(TraceCompiler, "sample", sampled)
    monkeypatch.setattr(TraceTier, "_is_good", lambda self: False)
    monkeypatch.setattr(tier, "PATIENCE", 0.0)  # as often as can be, however busy the computer is
    monkeypatch.setattr(tier, "LONGEST", 0.001)
    run_in_short_traces(monkeypatch, 50_000_000, 0.001)
    assert len(states[False]) == 40
    assert len(states[True]) < 40


@pytest.mark.parametrize(("name", "given"), [
    ("echo.asq", b"hot ports" * 60), soaked("sort.asq", b"5 3 9 1 1 7"), soaked("reverse.bf", b"turn around"),
    soaked("primes.asq", b"")])
def test_ports_inside_hot_loops(name: str, given: bytes) -> None:
    """Bytes in and out, self-modifying code, and the end: all at the same loop."""
    program = pc.load(f"examples/von_neumann/{name}")
    machine = pc.build(program)
    runs = [machine.run(program, engine="lowered", input=given, max_steps=300_000, controls=Controls(traces=seconds))
            for seconds in (None, 0.0, 0.0)]
    for run in runs[1:]:
        assert (run.loops, run.reason, run.output, run.read) == (runs[0].loops, runs[0].reason, runs[0].output, runs[0].read)
        assert same(run.raw_card, runs[0].raw_card)
        assert run.traces is not None
        assert run.traces.loops


HOT_LOOP = """
        .text
        .globl _start
_start: li   a0, 7
        li   a1, {rounds}
        la   a2, cells
again:  addi a0, a0, 37
        andi a4, a0, 12
        add  a4, a4, a2
        sw   a0, 0(a4)
        lw   a5, 4(a2)
        addi a1, a1, -1
        bnez a4, odd
        add  a0, a0, a5
odd:    bnez a1, again
        andi a0, a0, 63
        li   a7, 93
        ecall
        .data
cells:  .word 1, 2, 3, 4
"""
"""Stores to addresses that change, loads from them, and a branch that goes both ways."""


@pytest.mark.parametrize("rounds", [200, soaked(100_000)])
def test_a_machine_with_cases(tmp_path: Path, rounds: int) -> None:
    file = file_with(tmp_path / "hot.s", HOT_LOOP.format(rounds=rounds))
    program = pc.load(str(file))
    machine = pc.build(program, memory=1024)
    plain = [machine.run(program, engine="lowered", max_steps=steps, controls=Controls(traces=None))
             for steps in (5 * rounds, None)]
    for before in plain:
        steps = None if before.halted else before.steps
        run = machine.run(program, engine="lowered", max_steps=steps, controls=Controls(traces=0))
        assert (run.loops, run.status) == (before.loops, before.status)
        assert same(run.raw_card, before.raw_card)
    assert run.traces is not None
    assert run.traces.loops > run.loops // 2
    assert pc.check(program).agrees


PHASE_OF_SUMS = """
    li t0, 8
{first}: addi t1, t1, 1
    addi t0, t0, -1
    bne t0, zero, {first}
"""
PHASE_OF_LOGIC = """
    li t0, 8
{second}: xor t1, t1, t0
    sw t1, -4(sp)
    addi t0, t0, -1
    bne t0, zero, {second}
"""


@pytest.mark.soak
def test_samplers_with_one_name_are_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs that meet the same cases in another order: what is kept on disk for one must not be taken for the other."""
    found, compile_ = dict[tuple[bytes, ...], set[str]](), TraceCompiler._compiled_driver

    def noted(self: TraceCompiler, about: bytes, observe: Callable[[ir.Module], Observe] | None,
              cases: Sequence[int]) -> LoadedCode:
        module = ir.Module("noted")
        emit_trace_driver(module, self._model.places, self._model.real, observe and observe(module))
        found.setdefault((about, *self._model.names), set()).add(str(module))
        return compile_(self, about, observe, cases)

    monkeypatch.setattr(TraceCompiler, "_compiled_driver", noted)
    both = PHASE_OF_SUMS.format(first="a"), PHASE_OF_LOGIC.format(second="b")
    for number, parts in enumerate((both, both[::-1])):
        file = file_with(tmp_path / f"{number}.s", ".globl _start\n_start:\n" + "".join(parts) + "li a7, 93\necall\n")
        program = pc.load(str(file))
        assert pc.build(program, memory=64).run(program, engine="lowered", controls=AT_ONCE).halted
    assert len(found) > 4
    assert {len(texts) for texts in found.values()} == {1}


def test_a_watched_run_has_no_traces() -> None:
    program = pc.load("examples/multiply.subleq")
    seen: list[int] = []
    result = pc.build(program).run(program, controls=Controls(watch=lambda loop, card: seen.append(loop), traces=0))
    assert seen == list(range(1, result.loops + 1))
    assert result.traces is None


def test_what_cannot_be_traced_says_why() -> None:
    program = pc.load("examples/rotation.fleq")
    result = pc.build(program).run(program, engine="lowered", controls=Controls(traces=0))
    assert result.traces is not None
    assert "changes once more in the next loop" in result.traces.off


@pytest.mark.parametrize("engine", ["lowered", "batch"])
def test_threads_that_run_one_machine(engine: str) -> None:
    """Their code is shared, and what one compiles or drops is never what another is in."""
    subject, rng = SUBJECTS["two-layer"](), random.Random("threads")
    machine = subject.machine
    assert machine is not None
    assert subject.program is not None
    programs = [subject.program(rng) for _ in range(6)]
    expected = [machine.run(one, engine="lowered", max_steps=3000, controls=Controls(traces=None)) for one in programs]

    def run(number: int) -> bool:
        i = number % len(programs)
        if engine == "batch" and number % 2:
            found = machine.run_batch([programs[i], programs[i - 1]], engine="lowered", max_steps=3000)[0]
        else:
            found = machine.run(programs[i], engine="lowered", max_steps=3000, controls=AT_ONCE)
        return same(as_packed(machine.layout, found.raw_card), expected[i].raw_card)

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(run, range(24)))


@pytest.mark.soak
def test_old_traces_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """One machine, many programs and patterns: only the code of the last few stays loaded."""
    compiled, compile_ = list[tuple[Pattern, "weakref.ref[CompiledTrace]"]](), TraceCompiler.compile

    def noted(self: TraceCompiler, *given: Any) -> CompiledTrace:
        trace = compile_(self, *given)
        compiled.append((until, weakref.ref(trace)))
        return trace

    monkeypatch.setattr(TraceCompiler, "compile", noted)
    subject, rng = SUBJECTS["two-layer"](), random.Random("forgotten")
    machine = subject.machine
    assert machine is not None
    assert subject.program is not None
    cache, halting = EngineCache(), machine.halting[0]
    for _ in range(2 * MOST_TIERS):
        until = replace(halting, bits=tuple(rng.choice((-1, 1)) for _ in halting.bits))
        card = machine.pack(subject.program(rng))
        prepare("lowered", machine.weights, machine.layout, card, cache=cache).run(200, Controls(traces=0, until=until))
    gc.collect()
    assert len({until for until, _ in compiled}) > MOST_TIERS
    assert len({until for until, trace in compiled if trace() is not None}) <= MOST_TIERS


def test_hot_after_less_than_nothing() -> None:
    with pytest.raises(PunchcardError, match=r"traces=-1: it must be 0 seconds or more"):
        Controls(traces=-1)


def test_the_command_line_says_what_traces_did() -> None:
    fields = [json.loads(invoke("run", "examples/multiply.subleq", "--engine", "lowered", "--json", *more).stdout)["traces"]
              for more in ((), ("--no-traces",))]
    assert fields == [asdict(TraceReport()), None], "a short run is not worth a trace"


BILLION = 10**9
ENDLESS = """
.data
one 1
left 0
product 0
step -7
zero 0
.code
again:  subleq one, left, other
        subleq step, product, again
        subleq zero, zero, again
other:  subleq product, product
        subleq step, left
        subleq left, product, again
        subleq zero, zero, again
        halt
"""


@pytest.mark.soak
@pytest.mark.parametrize(("name", "text", "design"), [
    ("endless.subleq", ENDLESS, "two-layer"), ("endless.subleq", ENDLESS, "paper"),
    ("endless.s", HOT_LOOP.format(rounds=1 << 30), "three-layer")])
def test_a_billion_loops(tmp_path: Path, name: str, text: str, design: str) -> None:
    """Against the interpreter in C."""
    file = file_with(tmp_path / name, text)
    program = pc.load(str(file))
    machine = pc.build(program, design=design)
    interpreter = machine.in_c(program)
    if interpreter is None:
        pytest.skip("there is no interpreter in C")
    result = machine.run(program, engine="lowered", max_steps=BILLION)
    interpreter.run(result.steps)
    assert result.traces is not None
    assert result.traces.loops > 0.9 * result.loops
    assert machine.near(program, result.state, interpreter.state)
