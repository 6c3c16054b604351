"""What every kind of machine has: the same calls, the same commands, the same files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import astuple, replace
from functools import cache
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import punchcard
from punchcard.card.layout import Layout, Region, RowBlock
from punchcard.card.packed import PackedCard
from punchcard.engines import ENGINES, NO_CONTROLS, Controls, Run, Runner
from punchcard.errors import PunchcardError
from punchcard.machines.checkpoint import load as load_checkpoint
from punchcard.machines.kind import Kind, Option
from punchcard.machines.registry import Registry, built_in
from punchcard.machines.running import MOST_NOTES, Mark, PeriodicAction, run_parts
from tests.cases import EXAMPLES, file_with
from tests.command_line import assert_refused, invoke

FILES = {"subleq": "multiply.subleq", "fleq": "newton.fleq", "von-neumann": "von_neumann/hello.asq",
         "riscv": "riscv/hi.s"}
SIZES: dict[str, dict[str, Any]] = {"von-neumann": {"memory": 256}, "riscv": {"memory": 64}}
FLAGS = {"von-neumann": ("--memory", "256"), "riscv": ("--memory", "64")}
KINDS = [kind.name for kind in built_in()]

everywhere = pytest.mark.parametrize("name", KINDS)


def file_of(name: str) -> str:
    return str(EXAMPLES / FILES[name])


def build(name: str, *, fresh: bool = False, **options: Any) -> tuple[Any, Any]:
    """A program and a machine for it; a `fresh` one may be changed."""
    if not fresh and not options:
        return built(name)
    program = punchcard.load(file_of(name))
    return program, punchcard.build(program, **{**SIZES.get(name, {}), **options})


@cache
def built(name: str) -> tuple[Any, Any]:
    return build(name, fresh=True)


def test_every_kind_is_here() -> None:
    assert FILES.keys() == set(KINDS), "a new machine is tested like the others: name one of its programs"


@everywhere
def test_a_loaded_program_runs(name: str) -> None:
    """`punchcard.run(punchcard.load(file))`, whatever the file."""
    report = punchcard.run(punchcard.load(file_of(name)), check=True, **SIZES.get(name, {}))
    assert report.agrees
    assert report.ok
    assert report.result.reason == "halted"
    assert report.result.engine in ENGINES


@pytest.mark.parametrize(("name", "design"), [
    (kind.name, design) for kind in built_in() for design in kind.designs])
def test_weights_never_depend_on_a_program(name: str, design: str) -> None:
    """A run changes no tensor and puts no other in its place; another machine of these sizes has the same weights."""
    program, machine = build(name, design=design)
    before = {weight: (tensor, tensor.clone()) for weight, tensor in machine.model.state_dict(keep_vars=True).items()}
    card, digest = machine.punch(program), machine.weights.digest()
    result = machine.run(program, max_steps=6, engine="scratchpad")
    assert not torch.equal(card, result.card)
    after = machine.model.state_dict(keep_vars=True)
    assert after.keys() == before.keys()
    assert all(after[weight] is tensor and torch.equal(tensor, copy) for weight, (tensor, copy) in before.items())
    assert type(machine)(**machine.options, design=design, precision=machine.precision).weights.digest() == digest


@everywhere
@pytest.mark.parametrize("engine", ENGINES)
def test_in_lockstep_on_every_engine(name: str, engine: str) -> None:
    program, machine = build(name)
    report = punchcard.check(program, machine, engine=engine, max_steps=40)
    assert report.agrees, report.differences
    assert report.result.steps == 40 or report.result.halted


@everywhere
def test_side_by_side_as_alone(name: str) -> None:
    program, machine = build(name)
    alone = machine.run(program)
    for result in machine.run_batch([program, machine.pack(program), program]):
        assert torch.equal(result.card, alone.card)
        assert (result.reason, result.steps, result.output) == (alone.reason, alone.steps, alone.output)


@everywhere
def test_a_design_reads_a_card_and_a_batch(name: str) -> None:
    program, machine = build(name)

    def read(card: Any) -> tuple[Any, ...]:
        found = machine.design.read(machine.sizes, machine.layout, card)
        return found if isinstance(found, tuple) else astuple(found)

    packed = [PackedCard.of(machine.layout, machine.run(program, max_steps=steps).card) for steps in (0, 2)]
    for batch in (packed, torch.stack([card.tensor() for card in packed])):
        together = read(batch)
        for number, card in enumerate(batch):
            for each, of_batch in zip(read(card), together, strict=True):
                assert np.array_equal(each, of_batch[number])


@everywhere
def test_json_trace_and_check_on_the_command_line(name: str, tmp_path: Path) -> None:
    flags = (*FLAGS.get(name, ()), "--json", "--check", "--trace", "--stats", str(tmp_path / "stats"))
    result = invoke("run", file_of(name), *flags, status=0)
    facts = json.loads(result.stdout)
    assert facts.keys() >= {"machine", "sizes", "halted", "reason", "steps", "agrees", "memory", "loops", "program_counter",
                            "design", "dtype", "columns", "engine", "notes", "differences", "checkpoint"}
    assert (facts["machine"], facts["halted"], facts["agrees"], facts["differences"]) == (name, True, True, [])
    assert len(result.stderr.splitlines()) == facts["loops"], "a line for each loop"
    assert json.loads((tmp_path / "stats").read_text()) == facts


@everywhere
def test_info(name: str) -> None:
    facts = json.loads(invoke("info", file_of(name), *FLAGS.get(name, ()), "--json").stdout)
    _, machine = build(name)
    assert facts == json.loads(json.dumps(machine.summary()))
    assert facts["layers"] == len(facts["heads"]) == len(facts["hidden"])
    usual = invoke("info", "--machine", name, *FLAGS.get(name, ()), status=0)
    for word in ("layers", "heads per layer", "parameters", "temperature", "number format"):
        assert word in usual.stdout


@everywhere
def test_assembled_and_disassembled_it_is_the_same_program(name: str, tmp_path: Path) -> None:
    program = punchcard.load(file_of(name))
    kind = built_in().kind(name)
    written = {"subleq": ".json", "von-neumann": ".dec"}.get(name, kind.languages[0].extensions[0])
    for command, suffix in (("asm", written), ("disasm", kind.languages[0].extensions[0])):
        path = tmp_path / f"{command}{suffix}"
        assert invoke(command, file_of(name), "-o", str(path)).exit_code == 0
        again = punchcard.load(path)
        again = replace(again, source=program.source) if name == "riscv" else again
        same = again.words == program.words if name == "von-neumann" else again == program
        assert same, command


@everywhere
def test_saved_and_loaded(name: str, tmp_path: Path) -> None:
    _, machine = build(name)
    machine.save(tmp_path / "m.safetensors")
    for kind in (type(machine), punchcard.Machine):  # any kind of machine
        again: Any = kind.load(tmp_path / "m.safetensors")
        assert again.describe() == machine.describe()
        assert again.weights.digest() == machine.weights.digest()


@everywhere
def test_a_checkpoint_goes_on_to_the_same_card(name: str, tmp_path: Path) -> None:
    program, machine = build(name)
    whole = machine.run(program)
    path = tmp_path / "run"
    punchcard.run(program, machine, max_steps=7, checkpoint=path)
    saved = load_checkpoint(path)
    assert saved.machine.describe() == machine.describe()
    resumed = punchcard.resume(path, max_steps=10_000, check="end")
    assert torch.equal(resumed.result.card, whole.card)
    assert (resumed.result.output, resumed.agrees) == (whole.output, True)
    assert resumed.result.memory.keys() == whole.memory.keys(), "names are kept"
    for limit in (None, 5, 100_000):
        again = punchcard.resume(path, max_steps=limit, check="end").result
        assert torch.equal(again.card, whole.card), "a run that has ended makes no more loops"
        assert (again.reason, again.steps, again.loops) == ("halted", whole.steps, whole.loops)


@everywhere
def test_a_resumed_run_takes_the_engine_it_took(name: str, tmp_path: Path) -> None:
    """Also when few loops are left, and when nobody keeps it any more: real numbers stay the same to the last bit."""
    program, machine = build(name)
    path = tmp_path / "run"
    whole = machine.run(program, max_steps=10_000)
    first = punchcard.run(program, machine, max_steps=30, checkpoint=path, check=False, every=11)
    last = punchcard.resume(load_checkpoint(path), max_steps=10_000)
    assert last.result.engine == first.result.engine == whole.engine
    assert torch.equal(last.result.card, whole.card)


@everywhere
def test_what_is_refused_leaves_the_checkpoint_alone(name: str, tmp_path: Path) -> None:
    path = tmp_path / "run"
    program, machine = build(name)
    punchcard.run(program, machine, max_steps=3, checkpoint=path)
    before = path.read_bytes()
    with pytest.raises(PunchcardError, match="unknown engine 'dence'"):
        punchcard.resume(path, engine="dence")
    with pytest.raises(PunchcardError, match="blocks: a loaded checkpoint already has its machine"):
        punchcard.resume(load_checkpoint(path), blocks=())
    assert path.read_bytes() == before
    traced = invoke("run", "--resume", str(path), "--max-steps", "5", "--trace")
    assert "loop" in traced.stderr
    assert load_checkpoint(path).plan.engine == "auto", "a trace does not choose the engine for good"


def test_a_run_that_a_judge_or_a_port_stops_is_not_interrupted() -> None:
    program, machine = build("subleq", fresh=True)
    ports = {machine.halting[0]: lambda loop, card: False}
    machine_without_end = machine.run(program, controls=Controls(ports=ports), max_steps=10_000)
    assert machine_without_end.reason == "halted"
    counter = replace(machine.halting[0], rows="program_counter", bits=(0,) * len(machine.halting[0].bits))
    assert machine.run(program, controls=Controls(ports={counter: lambda loop, card: loop < 3})).reason == "stopped"
    with torch.no_grad():
        machine.model.layers[-1].w2[:] *= 1.5
    try:
        report = punchcard.check(program, machine, engine="dense")
    except PunchcardError:
        return
    assert (report.result.reason, report.agrees) == ("stopped", False)


@everywhere
def test_values_are_set_by_name(name: str) -> None:
    """Cells, variables and labels: the values are there at the beginning."""
    file, setting, label = {
        "subleq": (file_of(name), "a=5", "a"), "fleq": (file_of(name), "t=-3", "t"),
        "von-neumann": (str(EXAMPLES / "von_neumann" / "primes.asq"), "limit=7", "limit"),
        "riscv": (file_of(name), "length=2", ""),
    }[name]
    if name == "riscv":  # what a run shows by name is registers
        assert built_in().load(file).with_values({"length": 2}).words(16)[10] == 2
        return
    facts = json.loads(invoke("run", file, "--json", *FLAGS.get(name, ()), "--max-steps", "0", "--set", setting).stdout)
    assert facts["memory"][label] == int(setting.split("=")[1])


@everywhere
def test_another_kind_of_program_is_refused(name: str) -> None:
    _, machine = build(name)
    other = punchcard.load(file_of(KINDS[KINDS.index(name) - 1]))
    with pytest.raises(PunchcardError, match=rf"a program of class \w+ does not run on a {type(machine).__name__}"):
        punchcard.run(other, machine)
    with pytest.raises(PunchcardError, match=rf"{type(machine).__name__}\.run: program=.*: it must be a "):
        machine.run(other)
    own = machine.kind.program_class()
    with pytest.raises(PunchcardError, match=rf"of class {type(other).__name__}, not {own.__name__}"):
        punchcard.load(file_of(KINDS[KINDS.index(name) - 1]), own)
    with pytest.raises(PunchcardError, match="an object of type str is not a program of a known machine: there are"):
        punchcard.run("halt")


def test_a_cell_that_no_program_names_is_compared_too() -> None:
    program, machine = build("subleq", memory=9)
    card = machine.punch(program)
    machine.layout.get(card, "memory", "memory")[0, 8] *= -1
    oracle = machine.oracle(program, lambda: -1, lambda byte: None)
    assert machine.differences(program, machine.punch(program), oracle) == []
    assert machine.differences(program, card, oracle)[0].startswith("the state is State(memory=(7, 9, 0, 0, 1, 0, 0, 0, 1)")


def test_a_wrong_machine_is_told_by_every_comparison() -> None:
    """With a weight changed, the comparison at the end and the one after every loop both say so."""
    for name in KINDS:
        program, machine = build(name, fresh=True)
        with torch.no_grad():
            machine.model.layers[-1].w2[:] *= 1.5
        for check in ("end", "lockstep"):
            try:
                report = punchcard.run(program, machine, check=check, max_steps=20, engine="dense")
            except PunchcardError:
                continue  # the card became unreadable
            assert report.agrees is False, (name, check)
            assert report.differences


# Registries


def test_kinds_that_clash_are_refused() -> None:
    kinds: Sequence[Kind] = list(built_in())
    with pytest.raises(PunchcardError, match="there are two kinds of machines called 'subleq'"):
        Registry([*kinds, kinds[0]])
    with pytest.raises(PunchcardError, match=r"the extension '\.subleq' is claimed by 'subleq' and by 'other'"):
        Registry([*kinds, replace(kinds[0], name="other")])
    with pytest.raises(PunchcardError, match=r"unknown machine 'subleqq' \(did you mean 'subleq'\?\)"):
        built_in().kind("subleqq")
    with pytest.raises(PunchcardError, match=r"<class 'str'> is not a machine class: it has no `kind`"):
        built_in().including(str)  # type: ignore[arg-type]
    capital = replace(kinds[0], name="other", languages=[replace(kinds[0].languages[0], extensions=(".OTH",))])
    assert Registry([capital]).language_of("x.oth")[0].name == "other"


@pytest.mark.parametrize("option", [Option("bits", "of something"), Option("trace", "a size"), Option("design", "a size")])
def test_a_flag_has_one_meaning(option: Option) -> None:
    """A flag of another kind or of the command itself: one line and status 2, not a flag that is lost."""
    class Other(type(build("subleq")[1])):  # type: ignore[misc]
        kind = replace(built_in().kind("subleq"), name="other", options=(option,), languages=(
            replace(built_in().kind("subleq").languages[0], extensions=(".oth",)),))

    assert_refused(f"the option --{option.name} of `run` has two meanings", "info", of=punchcard.command_line(Other))


def test_a_package_that_is_broken_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("punchcard.machines.registry.entry_points", lambda group: [EntryPoint("x", "nowhere:M", group)])
    monkeypatch.syspath_prepend(str(tmp_path))  # packages are looked for once on a path
    assert_refused("cannot load the machine 'x' of an installed package, 'nowhere:M': ModuleNotFoundError: No module named "
                   "'nowhere'", "info", of=punchcard.command_line())


def test_without_a_command_there_is_the_help(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the process was started with is not looked at where arguments are given, though there are none."""
    monkeypatch.setattr("sys.argv", ["pytest", "-n0"])
    result = invoke(status=0)
    assert len(result.stdout.splitlines()) > 10


# What a run says of itself


class Talking(Runner):
    """Makes no card, and a note a call."""

    notes: tuple[str, ...] = ()

    engine = "talking"

    def __init__(self) -> None:
        self.calls = 0

    @property
    def card(self) -> Tensor:
        return torch.zeros(1, 1)

    def take(self, card: object) -> None:
        raise AssertionError

    def run(self, loops: int, controls: Controls = NO_CONTROLS) -> Run:
        self.calls += 1
        self.notes = (*self.notes, f"note {self.calls}", "again")
        return Run(self.card, loops, "loops", "talking", made={"talking": loops})


def test_notes_are_kept_up_to_a_number() -> None:
    """Also when there are more, each is said once and the first ones stay."""
    course = run_parts(Talking(), Mark(torch.zeros(1, 1)), 60, NO_CONTROLS, marks=[PeriodicAction(1, lambda mark: None)])
    assert len(course.notes) == MOST_NOTES
    assert course.notes[:3] == ("note 1", "again", "note 2")
    assert course.mark.loops == 60


def test_one_instruction_is_not_plural(tmp_path: Path) -> None:
    path = file_with(tmp_path / "one.fleq", ".data\na scalar 1\n.code\na = add(a, a)\n")
    assert "halted after 1 instruction in 2 loops of" in invoke("run", str(path)).stdout


@pytest.mark.parametrize("change", [{"limit": 3.0}, {"within": "bits"}, {"selects": ("x",)}])
def test_a_saved_layout_has_every_fact(change: dict[str, Any]) -> None:
    block = RowBlock("a", 2, parts={"x": 1, "y": 1})
    region = Region("r", 4)
    plain = Layout([block], [region]).describe()
    assert Layout([replace(block, **change)], [region]).describe() != plain
    assert Layout([block], [replace(region, groups=(2, 2))]).describe() != plain
    assert json.loads(json.dumps(plain)) == plain
