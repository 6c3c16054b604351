"""Compiled code is kept on disk: found again, shared between processes, compiled anew when it is damaged, trimmed."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from punchcard.card.encoding import encode_unsigned
from punchcard.engines.lowered.codegen import objects as code
from punchcard.engines.lowered.computer import Computer
from punchcard.machines.fleq.machine import FleqMachine
from punchcard.machines.fleq.text.assembler import assemble
from tests.cases import ROOT
from tests.engine_runs import computer_of, run_dense, run_lowered
from tests.lowered_cases import Machine, code_kept_in, operations, random_rules, turing_machine

OPERATIONS = [0, 1, 3, 1, 2, 2, 0, 1, 1, 3, 2, 0, 0, 1, 2, 3]
PROCESS = f"""
from tests.engine_runs import computer_of, run_lowered
from tests.lowered_cases import operations
machine = operations({OPERATIONS}, 4)
ran = run_lowered(machine.model, machine.card, 500, facts=machine.layout)
computer = computer_of(machine.model, machine.card, machine.layout)
print(ran.engine, computer.fresh, float(ran.card.double().mul(3.7).cumsum(0).sin().sum()))
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Iterator[Path]:
    with code_kept_in(tmp_path / "code"):
        yield tmp_path / "code"


def fresh_machine() -> Machine:
    """A new model every time, of the same weights: nothing is known of it but what is on disk."""
    return operations(OPERATIONS, 4)


def prepared(machine: Machine) -> Computer:
    """The machine's code with all cases that 40 loops meet; the loops agree with the equation."""
    ran = run_lowered(machine.model, machine.card, 40, facts=machine.layout)
    assert (ran.engine, ran.notes) == ("lowered", ())
    assert torch.equal(ran.card, run_dense(machine.model, machine.card, 40).card)
    return computer_of(machine.model, machine.card, machine.layout)


def kept(where: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(where.iterdir())}


def test_code_is_compiled_once(folder: Path) -> None:
    first = prepared(fresh_machine())
    assert first.fresh == 5, "the driver and four operations"
    assert len(kept(folder)) == 5
    assert all(name.endswith(".code") for name in kept(folder))
    second = prepared(fresh_machine())
    assert second is not first
    assert second.fresh == 0
    again = prepared(fresh_machine())
    assert again.name == first.name


def start() -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    return subprocess.Popen([sys.executable, "-c", PROCESS], cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE)


def result(process: subprocess.Popen[str]) -> list[str]:
    output = process.communicate(timeout=300)[0].split()
    assert process.returncode == 0
    return output


def test_two_processes_compile_at_once_and_a_third_finds_the_code(folder: Path) -> None:
    pair = [start(), start()]
    (first, fresh, value), (second, more, other) = map(result, pair)
    assert (first, second, value) == ("lowered", "lowered", other)
    assert int(fresh) + int(more) >= 5
    assert len(kept(folder)) == 5, "no file that was being written is left"
    assert all(code._read(folder / name) is not None for name in kept(folder))
    assert result(start()) == ["lowered", "0", value]
    assert prepared(fresh_machine()).fresh == 0


@pytest.mark.parametrize("damage", [
    lambda data: b"", lambda data: data[: len(data) // 2], lambda data: b"\0" * len(data), lambda data: data + b"more",
    lambda data: data[:-9] + bytes([data[-9] ^ 1]) + data[-8:], lambda data: b"no code at all",
])
def test_damaged_files_are_compiled_anew(folder: Path, damage: object) -> None:
    prepared(fresh_machine())
    good = kept(folder)
    for name, data in good.items():
        (folder / name).write_bytes(damage(data))  # type: ignore[operator]
    assert prepared(fresh_machine()).fresh == 5
    assert kept(folder) == good, "and what is compiled anew is the same"


def test_a_folder_that_cannot_be_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with code_kept_in(tmp_path / "file" / "code"):
        assert prepared(fresh_machine()).fresh == 5
        assert prepared(fresh_machine()).fresh == 5
    assert (tmp_path / "file").read_text() == "not a folder"


def test_files_that_may_only_be_read_are_used(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared(fresh_machine())

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError("read-only")

    monkeypatch.setattr(os, "utime", refuse)
    assert prepared(fresh_machine()).fresh == 0


def test_a_file_that_cannot_be_finished_leaves_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, "replace", refuse)
    assert prepared(fresh_machine()).fresh == 5
    assert kept(folder) == {}


def test_the_least_recently_used_files_go_first(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared(fresh_machine())
    sizes = {name: len(data) for name, data in kept(folder).items()}
    old, now = next(iter(sizes)), time.time()
    for age, name in enumerate(sizes):
        os.utime(folder / name, (now - 1000 + age, now - 1000 + age))
    other = turing_machine(random_rules(random.Random(2)), [0] * 16, 3, 4)
    monkeypatch.setattr(code, "MOST_BYTES", sum(sizes.values()) + 1)
    computer_of(other.model, other.card, other.layout)
    left = kept(folder)
    assert old not in left
    assert sum(map(len, left.values())) <= code.MOST_BYTES
    assert set(left) - set(sizes), "the newest stays"
    monkeypatch.setattr(code, "MOST_BYTES", 1)
    assert prepared(fresh_machine()).fresh > 0, "a limit that nothing fits under is no error"


def test_a_file_that_is_used_is_young_again(folder: Path) -> None:
    prepared(fresh_machine())
    for name in kept(folder):
        os.utime(folder / name, (1000.0, 1000.0))
    prepared(fresh_machine())
    assert all((folder / name).stat().st_mtime > 10_000 for name in kept(folder))


def test_names_tell_apart_what_code_depends_on(folder: Path) -> None:
    """Weights, number format, limits, and the places of the static rows as far as the code knows them."""
    rules, tape = random_rules(random.Random(3)), [0] * 16
    base = turing_machine(rules, tape, 3, 4)
    moved = base.card.clone()
    base.layout.put(moved, "position", "tape", encode_unsigned(list(range(15, -1, -1)), 4))
    names = [computer_of(m.model, m.card, m.layout).name for m in (
        base, turing_machine(rules, tape, 3, 4, torch.float32), turing_machine(random_rules(random.Random(4)), tape, 3, 4),
        turing_machine(rules, tape[:12], 3, 4),
    )]
    names.append(computer_of(base.model, base.card, base.layout.limited({"symbol": 8.0})).name)
    assert len({tuple(name) for name in names}) == len(names)
    same = [computer_of(base.model, card, base.layout) for card in (base.card, moved)]
    assert same[0].name == same[1].name, "where a column stands is in the tables, not in the code"
    assert same[0] is not same[1]
    ran = run_lowered(base.model, moved, 50, facts=base.layout)
    assert torch.equal(ran.card, run_dense(base.model, moved, 50).card)


def test_code_does_not_depend_on_the_order_in_which_cases_are_met(tmp_path: Path) -> None:
    """So a run that another process takes up again computes as it did before, to the last bit."""
    calls = ["c = add(a, b)", "c = mul(a, b)", "c = transpose(a)", "c = mul(b, b)"]
    data = ".data\na matrix 2x2 1 2 ; 3 4\nb matrix 2x2 0.3 0.7 ; 0.1 -0.2\nc matrix 2x2\n.code\n"
    found = []
    for number, order in enumerate((calls, calls[::-1])):
        with code_kept_in(tmp_path / str(number)):
            machine = FleqMachine(functions=("add", "mul", "transpose"), size=2, memory=8, instructions=6, heads=2)
            card = machine.punch(assemble(data + "\n".join([*order, "halt"])))
            run_lowered(machine.model, card, 6, facts=machine.layout)
            found.append(kept(tmp_path / str(number)))
    assert len(found[0]) == 5, "the driver, three calls and the halt"
    assert found[0] == found[1]
