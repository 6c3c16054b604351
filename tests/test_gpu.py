"""Batches on a GPU, without one: the PTX as LLVM writes it, and the code of its threads run on this processor."""

from __future__ import annotations

import gc
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llvmlite import ir

import punchcard
from punchcard.card.packed import PackedCard
from punchcard.engines import Controls
from punchcard.engines.lowered.analysis.plan import LoopPlan
from punchcard.engines.lowered.card_state import CardState
from punchcard.engines.lowered.compiled_model import CompiledModel
from punchcard.engines.lowered.gpu import batch, cuda
from punchcard.engines.lowered.gpu.batch import BatchProgress, GpuBatch
from punchcard.engines.lowered.gpu.cuda import ptx
from punchcard.engines.lowered.gpu.device import AGAIN, WORTH_SECONDS, Autotuner, KernelVariant, LaunchShape
from punchcard.engines.lowered.gpu.kernel import emit_kernel, emit_machine
from punchcard.engines.lowered.gpu.memory_layout import MemoryLayout, MemoryStrip, memory_layout
from punchcard.engines.lowered.pattern_table import pattern_terms
from punchcard.errors import LoweringError, PunchcardError
from punchcard.machines.riscv.languages.assembly.assembler import assemble
from punchcard.machines.riscv.machine import RiscvMachine
from punchcard.machines.subleq.isa import Halt, Program, Subleq
from punchcard.machines.subleq.machine import SubleqMachine
from punchcard.transformer.weights import Weights
from tests.cases import soaked
from tests.host_device import HostDevice
from tests.lowered_cases import operations, painters, random_rules, turing_machine
from tests.random_programs import random_program
from tests.riscv_cases import endless
from tests.test_riscv_host import ECHO

WORD_BITS, CELLS, INSTRUCTIONS = 8, 9, 12
MACHINES = {design: SubleqMachine(word_bits=WORD_BITS, memory=CELLS, instructions=INSTRUCTIONS, design=design)
            for design in ("two-layer", "paper")}


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Iterator[HostDevice]:
    """What `device="cuda"` takes; it gets all of its memory back."""
    host = HostDevice()
    monkeypatch.setattr(batch, "Cuda", lambda: host)
    yield host
    for generation in range(3):  # a cycle may hold some: its objects are young, and to look through all takes long
        if host.held:
            gc.collect(generation)
    assert host.held == 0


def programs(count: int, seed: int = 1) -> list[Program]:
    rng = random.Random(seed)
    return [random_program(rng, WORD_BITS, CELLS, INSTRUCTIONS) for _ in range(count)]


def batch_of(machine: SubleqMachine, given: Sequence[Program], device: HostDevice,
             shape: LaunchShape | None = None) -> GpuBatch:
    cards = [machine.pack(program) for program in given]
    compiled_model = CompiledModel(machine.weights, machine.layout, cards[0])
    assert all(compiled_model.fits(machine.layout, card) for card in cards)
    return GpuBatch(compiled_model, cards, device, shape)


def assert_the_interpreter(machine: SubleqMachine, given: Sequence[Program], batch: GpuBatch, ends: BatchProgress) -> None:
    for i, (program, loops, matched) in enumerate(zip(given, ends.loops, ends.matched, strict=True)):
        interpreter = machine.quickest(program)
        interpreter.run(machine.steps(int(loops), ended=bool(matched >= 0)))
        assert machine.read(batch.card(i)) == interpreter.state, f"machine {i} after {loops} loops"


def text_of(machine: SubleqMachine, shape: LaunchShape) -> str:
    compiled_model = CompiledModel(machine.weights, machine.layout, machine.pack(programs(1)[0]))
    parts, module = compiled_model.parts(), ir.Module("machines")
    strips = memory_layout(parts.all, compiled_model.places, [(0, 1)], ())
    kind, patterns = compiled_model.kind_of_code(parts), [
        pattern_terms(compiled_model, pattern) for pattern in machine.halting]
    machine_code = emit_machine(module, parts, kind, strips, shape, patterns)
    emit_kernel(module, machine_code)
    return ptx(module)


@pytest.mark.parametrize("design", MACHINES)
def test_the_ptx(design: str) -> None:
    """Whatever the version of LLVM: one kernel of integers in registers, whose arrays are in shared or global memory."""
    shared, apart = (text_of(MACHINES[design], LaunchShape(64, place)) for place in (True, False))
    for text in (shared, apart):
        assert ".target sm_90" in text
        assert len(re.findall(r"\.entry\s+run\(", text)) == 1
        assert text.count(".param .") == 9
        assert "tid.x" in text
        assert "call" not in text.replace("// ", ""), "everything is in one function"
        assert ".local" not in text, "states are in registers"
        assert not re.search(r"\.f(16|32|64)\b", text), "all of the arithmetic is of integers, by proof"
    assert ".extern .shared" in shared
    assert "ld.shared.b16" in shared or "ld.shared.u16" in shared or "ld.shared.u8" in shared or "ld.shared.b8" in shared
    assert "ld.shared" not in apart


@pytest.mark.parametrize("design", MACHINES)
@pytest.mark.parametrize("shape", [None, LaunchShape(32, True), LaunchShape(32, False)])
def test_every_machine_is_the_interpreters(design: str, shape: LaunchShape | None, device: HostDevice) -> None:
    machine, given = MACHINES[design], programs(70)
    batch = batch_of(machine, given, device, shape)
    ends = batch.run(300, Controls(machine.halting))
    assert_the_interpreter(machine, given, batch, ends)
    assert not ends.declined.any()
    assert 0 < (ends.matched == 0).sum() < 70
    assert all(ends.loops[ends.matched < 0] == 300)
    more = batch.run(50, Controls(machine.halting))
    assert all(more.loops[ends.matched < 0] <= 50)


def test_machines_that_have_ended_cost_nothing(device: HostDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups in which all have ended are not launched, and an interrupted run goes on where it was."""
    monkeypatch.setattr("punchcard.engines.lowered.gpu.device.FIRST_PIECE", 4)
    stops, goes_on = Program.create([Halt()], [0]), Program.create([Subleq(0, 0, 0), Halt()], [0])
    machine, given = MACHINES["two-layer"], [stops] * 40 + [goes_on] + [stops] * 40
    batch = batch_of(machine, given, device, LaunchShape(32, True))
    asked = iter([False, False, True])
    ends = batch.run(10_000, Controls(machine.halting, interrupted=lambda: next(asked)))
    assert device.launches[0] == [0, 1, 2]
    assert device.launches[1:] == [[1], [1]]
    assert 4 < ends.loops[40] < 10_000
    batch.run(10_000, Controls(machine.halting), begin=ends)
    assert ends.loops[40] == 10_000
    assert list(ends.loops[:2]) == [1, 1]


def test_a_batch_call_with_a_device(device: HostDevice) -> None:
    machine, given = MACHINES["two-layer"], programs(40)
    on_gpu, on_cpu = (machine.run_batch(given, max_steps=200, device=where) for where in ("cuda", "cpu"))
    assert (on_gpu.engine, on_cpu.engine) == ("gpu", "lowered")
    for found, wanted in zip(on_gpu.results, on_cpu.results, strict=True):
        assert (found.state, found.steps, found.reason, found.fault) == (wanted.state, wanted.steps, wanted.reason, None)
    assert on_gpu.notes == ()


def test_ports_are_served(device: HostDevice) -> None:
    image = punchcard.load("examples/von_neumann/hello.asq")
    machine = punchcard.build(image, memory=64, word_bits=8)
    found = machine.run_batch([image] * 3, device="cuda")
    assert found.engine == "gpu"
    assert [result.output for result in found.results] == [machine.run(image).output] * 3
    assert len(found.results[0].output) > 5
    assert {result.reason for result in found.results} == {"halted"}


def strayed(machine: SubleqMachine, target: int) -> PackedCard:
    """A card whose first instruction, after some loops, leads to a column that is none."""
    card = machine.pack(Program.create([Subleq(0, 0, 1), Subleq(1, 1, 2), Subleq(0, 0, 0), Halt()], [5, 7]))
    for part, number in (("a", 3), ("b", 3), ("c", target)):
        numbers = machine.layout.numbers(card, f"command.{part}", "instructions").copy()
        numbers[1] = number
        machine.layout.put_numbers(card, "instructions", {f"command.{part}": numbers})
    return card


@pytest.mark.parametrize("target", [0, 4])
def test_what_the_gpu_declines_the_cpu_finishes(target: int, device: HostDevice) -> None:
    """A jump to the scratchpad, or to a cell: every machine of the batch ends as the model says, and a note tells of it."""
    machine = MACHINES["two-layer"]
    cards = [machine.pack(program) for program in programs(5)]
    cards.insert(2, strayed(machine, target))
    found = machine.run_batch(cards, max_steps=60, device="cuda")
    wanted = machine.run_batch(cards, max_steps=60, engine="dense")
    assert [(r.loops, r.state) for r in found.results] == [(r.loops, r.state) for r in wanted.results]
    assert any(note.startswith("gpu: ") for note in found.notes)


def test_a_strict_engine_says_which_cards_it_declined(device: HostDevice) -> None:
    machine = MACHINES["two-layer"]
    cards = [machine.pack(programs(1)[0]), strayed(machine, 0)]
    found = machine.run_batch(cards, max_steps=60, device="cuda", engine="lowered")
    assert found.results[0].fault is None
    assert "the checks of a loop fail on the GPU" in str(found.results[1].fault)


@pytest.mark.parametrize("by_table", [False, True])
def test_numbers_and_tables(by_table: bool, device: HostDevice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Models that are not of this package: states that are numbers, and columns that are found by table."""
    rng = random.Random(4)
    monkeypatch.setenv("PUNCHCARD_CACHE", str(tmp_path))
    if by_table:
        monkeypatch.setattr("punchcard.engines.lowered.analysis.tables.direct", lambda *_: None)
    for case in (painters(13, 4), turing_machine(random_rules(rng), [0, 1, 1, 0, 1, 0, 0, 1], 3, 3)):
        card = PackedCard.of(case.layout, case.card)
        compiled_model = CompiledModel(Weights.of(case.model), case.layout, card)
        batch = GpuBatch(compiled_model, [card] * 3, device)
        ends = batch.run(6)
        live = CardState(compiled_model, card)
        made, _ = live.advance(6)
        assert ends.loops.tolist() == [made] * 3
        assert all(batch.card(i).equals(live.show()) for i in range(3))


def test_cases_become_one_kernel(device: HostDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cards that meet different cases: those that the CPU has not seen coming are learned when a machine waits for one."""
    monkeypatch.setattr(batch, "SCOUTED_LOOPS", 2)
    rng = random.Random(6)
    given = [operations([0, 0, *(rng.randrange(4) for _ in range(6))], 3) for _ in range(5)]
    cards = [PackedCard.of(case.layout, case.card) for case in given]
    compiled_model = CompiledModel(Weights.of(given[0].model), given[0].layout, cards[0])
    assert compiled_model.selectors
    batched = GpuBatch(compiled_model, cards, device)
    ends = batched.run(20)
    assert ends.loops.tolist() == [20] * 5
    assert ends.recovered == 0, "no loop was made by the CPU"
    for i, card in enumerate(cards):
        live = CardState(compiled_model, card)
        assert live.advance(20)[0] == 20
        assert batched.card(i).equals(live.show())


def test_a_case_without_code_is_declined(device: HostDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    case = operations([0, 1, 2, 3], 2)
    card = PackedCard.of(case.layout, case.card)
    compiled_model = CompiledModel(Weights.of(case.model), case.layout, card)
    plan_case = CompiledModel.plan_case

    def refuse(self: CompiledModel, key: int, *given: Any) -> LoopPlan:
        if key == 2:
            raise LoweringError("not this one")
        return plan_case(self, key, *given)

    monkeypatch.setattr(CompiledModel, "plan_case", refuse)
    batched = GpuBatch(compiled_model, [card] * 2, device)
    ends = batched.run(20)
    assert ends.declined.all()
    assert ends.loops.tolist() == [2, 2], "the loops before that case are made"


@pytest.mark.parametrize(("memory", "loops", "count"), [
    (64, 30, 2),
    *(soaked(*sizes) for sizes in ((64, 60, 2), (64, 200, 12), (64, 2000, 200), (4096, 20_000, 20)))])
def test_risc_v_programs(memory: int, loops: int, count: int, device: HostDevice) -> None:
    """Random programs, each with its own path through the cases, and every machine is the interpreter's."""
    rng, machine = random.Random(9), RiscvMachine(memory=memory)
    longest = min(3 * count, memory - 16)
    given = [endless(rng, memory, rng.randrange(6, longest + 4)) for _ in range(count)]
    found = machine.run_batch(given, max_steps=loops, device="cuda")
    assert (found.engine, found.notes) == ("gpu", ())
    for program, result in zip(given, found.results, strict=True):
        interpreter = machine.quickest(program)
        interpreter.run(loops)
        assert (result.steps, result.reason, result.state) == (loops, "steps", interpreter.state)


def test_system_calls_are_served(device: HostDevice) -> None:
    """Programs that read and write, each as much as its input says: the cards come back for each call."""
    machine, echo = RiscvMachine(memory=64), assemble(ECHO, "echo.s")
    inputs = [b"", b"one line\n", b"two\nlines"]
    found = machine.run_batch([echo] * 3, inputs=inputs, device="cuda")
    assert found.engine == "gpu"
    for given, result in zip(inputs, found, strict=True):
        alone = machine.run(echo, input=given)
        assert (result.output, result.status, result.steps, result.state) == (given, 42, alone.steps, alone.state)


def test_what_cannot_run_on_a_gpu(device: HostDevice) -> None:
    program = punchcard.load("examples/newton.fleq")
    with pytest.raises(LoweringError, match=r"change once more in the next loop, .*without device='cuda' the CPU runs it"):
        punchcard.build(program).run_batch([program], device="cuda")
    machine, given = MACHINES["two-layer"], programs(2)
    with pytest.raises(PunchcardError, match=r"unknown device 'cud' \(did you mean 'cuda'\?\): there are cpu, cuda"):
        machine.run_batch(given, device="cud")
    with pytest.raises(PunchcardError, match="the engine 'dense' has no batches for device='cuda': use 'lowered' or 'auto'"):
        machine.run_batch(given, device="cuda", engine="dense")


def test_there_is_no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "LIBRARIES", ("libnone.so.1",))
    with pytest.raises(LoweringError, match=r"there is no NVIDIA driver on this machine \(libnone.so.1 was not found\)"):
        MACHINES["two-layer"].run_batch(programs(2), device="cuda")


def test_what_the_driver_says(monkeypatch: pytest.MonkeyPatch) -> None:
    class Driver:
        """A driver without a device."""

        def cuInit(self, flags: int) -> int:
            return 100

        def cuGetErrorString(self, code: int, text: Any) -> None:
            text._obj.value = b"no CUDA-capable device is detected"

    monkeypatch.setattr(cuda, "_library", Driver)
    with pytest.raises(LoweringError, match="the GPU's driver reports an error at cuInit: no CUDA-capable device"):
        cuda.Cuda()


@pytest.mark.parametrize(("machines", "threads"), [(1, 32), (70, 32), (64, 64)])
def test_arrays_come_back_as_they_went(machines: int, threads: int) -> None:
    strips = MemoryLayout((MemoryStrip("words", 0, 2, 7, 2, 16), MemoryStrip("numbers", 16, 0, 3, 16, 64)), 80, 80, 8)
    rng = np.random.default_rng(1)
    fields: list[Any] = [rng.integers(0, 1 << 16, (machines, 10)).astype(np.uint16), rng.random((machines, 3, 2))]
    for strip, kept in zip(strips.all, fields, strict=True):
        data = strips.empty(-(-machines // threads), threads)
        strips.put(data, strip, kept)
        found = kept.copy()
        found[:, strip.first : strip.first + strip.count] = 0
        strips.get(data, strip, found)
        assert np.array_equal(found, kept)


def test_the_faster_code_is_taken() -> None:
    """The second code is not even compiled before it can be worth that; then the faster one has all but short trials."""
    rates, compiled, taken = {"slow": 1e4, "fast": 1e6}, [], []

    def code(name: str) -> KernelVariant:
        def compile_it() -> str:
            compiled.append(name)
            return name

        return KernelVariant(compile_it, 0)

    choice, seconds = Autotuner([code("slow"), code("fast")]), 0.0
    for _ in range(2 * AGAIN):
        now, piece = choice.next()
        took = piece / rates[str(now.compiled)]
        assert ("fast" in compiled) == (seconds >= WORTH_SECONDS)
        assert took <= 1
        choice.took(took, piece)
        seconds += took
        taken.append(now.compiled)
    assert compiled == ["slow", "fast"]
    first = taken.index("fast")
    assert taken[first:].count("slow") == 2
