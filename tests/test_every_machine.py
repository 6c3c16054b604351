"""What every kind of machine has: the same calls, the same commands, the same files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner, Result
from torch import Tensor

import punchcard
from punchcard import cli
from punchcard.card.layout import Layout, Region, RowBlock
from punchcard.engines import ENGINES, Run, Runner
from punchcard.errors import PunchcardError
from punchcard.machines.checkpoint import load as load_checkpoint
from punchcard.machines.kind import Kind
from punchcard.machines.registry import Registry, built_in
from punchcard.machines.running import MOST_NOTES, At, Mark, run_parts
from tests.cases import EXAMPLES

FILES = {"subleq": "multiply.subleq", "fleq": "newton.fleq", "von-neumann": "von_neumann/hello.asq"}
SIZES: dict[str, dict[str, Any]] = {"von-neumann": {"memory": 256}}
FLAGS = {"von-neumann": ("--memory", "256")}
KINDS = [kind.name for kind in built_in()]

everywhere = pytest.mark.parametrize("name", KINDS)


def file_of(name: str) -> str:
    return str(EXAMPLES / FILES[name])


def build(name: str, **options: Any) -> tuple[Any, Any]:
    program = punchcard.load(file_of(name))
    return program, punchcard.build(program, **{**SIZES.get(name, {}), **options})


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(cli.main, list(arguments))


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


@everywhere
@pytest.mark.parametrize("engine", ENGINES)
def test_in_lockstep_on_every_engine(name: str, engine: str) -> None:
    program, machine = build(name)
    report = punchcard.check(program, machine, engine=engine, max_steps=40)
    assert report.agrees, report.differences
    assert report.result.steps == 40 or report.result.halted


@everywhere
def test_json_trace_and_check_on_the_command_line(name: str, tmp_path: Path) -> None:
    flags = (*FLAGS.get(name, ()), "--json", "--check", "--trace", "--stats", str(tmp_path / "stats"))
    result = invoke("run", file_of(name), *flags)
    assert result.exit_code == 0, result.stderr
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
    assert facts == json.loads(json.dumps(machine.facts()))
    assert facts["layers"] == len(facts["heads"]) == len(facts["hidden"])
    usual = invoke("info", "--machine", name, *FLAGS.get(name, ()))
    assert usual.exit_code == 0
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
        same = again.words == program.words if name == "von-neumann" else again == program
        assert same, command


@everywhere
def test_saved_and_loaded(name: str, tmp_path: Path) -> None:
    _, machine = build(name)
    machine.save(tmp_path / "m.safetensors")
    again = type(machine).load(tmp_path / "m.safetensors")
    assert again.describe() == machine.describe()
    assert all(torch.equal(a, b) for a, b in zip(machine.model.state_dict().values(), again.model.state_dict().values(),
                                                 strict=True))


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


@everywhere
def test_values_are_set_by_name(name: str) -> None:
    """Cells, variables and labels: the values are there at the beginning."""
    file, setting, label = {
        "subleq": (file_of(name), "a=5", "a"), "fleq": (file_of(name), "t=-3", "t"),
        "von-neumann": (str(EXAMPLES / "von_neumann" / "primes.asq"), "limit=7", "limit"),
    }[name]
    facts = json.loads(invoke("run", file, "--json", *FLAGS.get(name, ()), "--max-steps", "0", "--set", setting).stdout)
    assert facts["memory"][label] == int(setting.split("=")[1])


@everywhere
def test_another_kind_of_program_is_refused(name: str) -> None:
    _, machine = build(name)
    other = punchcard.load(file_of(KINDS[KINDS.index(name) - 1]))
    with pytest.raises(PunchcardError, match=rf"a \w+ does not run on a {type(machine).__name__}"):
        punchcard.run(other, machine)


def test_a_program_of_no_machine() -> None:
    with pytest.raises(PunchcardError, match="a str is not a program of any machine here: there are subleq, fleq"):
        punchcard.run("halt")


def test_a_wrong_machine_is_told_by_every_comparison() -> None:
    """With a weight changed, the comparison at the end and the one after every loop both say so."""
    for name in KINDS:
        program, machine = build(name)
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


# What a run says of itself


def test_the_engine_that_made_the_loops_is_named() -> None:
    """Loops of the paper's FLEQ design are declined by the compiled code: no run of it says that it made them."""
    program, machine = build("fleq", design="paper")
    result = machine.run(program, max_steps=1000)
    assert result.engine != "lowered"
    assert any(f"made by the {result.engine} engine" in note for note in result.notes)


class Talking(Runner):
    """Makes no card, and a note a call."""

    engine = "talking"

    def __init__(self) -> None:
        self.calls = 0

    @property
    def card(self) -> Tensor:
        return torch.zeros(1, 1)

    def take(self, card: Tensor) -> None:
        raise AssertionError

    def run(self, loops: int, **how: Any) -> Run:
        self.calls += 1
        return Run(self.card, loops, "loops", "talking", notes=(f"note {self.calls}", "again"), made={"talking": loops})


def test_notes_are_kept_up_to_a_number() -> None:
    """Also when there are more, each is said once and the first ones stay."""
    course = run_parts(Talking(), Mark(torch.zeros(1, 1)), 60, until=(), marks=[At(1, lambda mark: None)])
    assert len(course.notes) == MOST_NOTES
    assert course.notes[:3] == ("note 1", "again", "note 2")
    assert course.mark.loops == 60


def test_one_instruction_is_not_plural(tmp_path: Path) -> None:
    path = tmp_path / "one.fleq"
    path.write_text(".data\na scalar 1\n.code\na = add(a, a)\n")
    assert "halted after 1 instruction in 2 loops of" in invoke("run", str(path)).stdout


@pytest.mark.parametrize("change", [{"limit": 3.0}, {"within": "bits"}, {"selects": ("x",)}])
def test_a_saved_layout_has_every_fact(change: dict[str, Any]) -> None:
    block = RowBlock("a", 2, parts={"x": 1, "y": 1})
    region = Region("r", 4)
    plain = Layout([block], [region]).describe()
    assert Layout([replace(block, **change)], [region]).describe() != plain
    assert Layout([block], [replace(region, groups=(2, 2))]).describe() != plain
    assert json.loads(json.dumps(plain)) == plain
