"""Compiled code is kept on disk: found again, shared between processes, compiled anew when it is damaged, trimmed."""

from __future__ import annotations

import multiprocessing
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
import torch

from punchcard.card.encoding import encode_unsigned
from punchcard.engines.lowered.codegen import objects
from punchcard.engines.lowered.computer import Computer
from punchcard.machines.fleq.machine import FleqMachine
from punchcard.machines.fleq.text.assembler import assemble
from tests.cases import ROOT
from tests.engine_runs import computer_of, run_dense, run_lowered
from tests.lowered_cases import Machine, code_kept_in, operations, random_rules, turing_machine

OPERATIONS = [0, 1, 3, 1, 2, 2, 0, 1, 1, 3, 2, 0, 0, 1, 2, 3]


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


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of the machine's code."""
    with code_kept_in(tmp_path_factory.mktemp("compiled")):
        assert prepared(fresh_machine()).fresh == 5
        return kept(objects.folder())


@pytest.fixture
def filled(folder: Path, compiled: dict[str, bytes]) -> Path:
    """A folder that holds the code already."""
    folder.mkdir()
    for name, data in compiled.items():
        (folder / name).write_bytes(data)
    return folder


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


def report() -> tuple[str, int, float]:
    """A run of 500 loops: its engine, how much had to be compiled, and a number that depends on every entry of the card."""
    machine = fresh_machine()
    ran = run_lowered(machine.model, machine.card, 500, facts=machine.layout)
    computer = computer_of(machine.model, machine.card, machine.layout)
    return ran.engine, computer.fresh, float(ran.card.double().mul(3.7).cumsum(0).sin().sum())


def fresh_process() -> tuple[str, int, float]:
    """The same in a new interpreter, where nothing hashes as it does here."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    script = "from tests.test_lowered_cache import report; print(*report())"
    output = subprocess.run([sys.executable, "-c", script], cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE,
                            check=True, timeout=300).stdout
    engine, fresh, value = output.split()
    return engine, int(fresh), float(value)


def test_two_processes_compile_at_once_and_a_third_finds_the_code(folder: Path) -> None:
    with ProcessPoolExecutor(2, multiprocessing.get_context("fork")) as pool:
        pair = [pool.submit(report) for _ in range(2)]
        (first, fresh, value), (second, more, other) = (one.result(timeout=300) for one in pair)
    assert (first, second, value) == ("lowered", "lowered", other)
    assert fresh + more >= 5
    assert len(kept(folder)) == 5, "no file that was being written is left"
    assert all(objects._read(folder / name) is not None for name in kept(folder))
    assert fresh_process() == ("lowered", 0, value)
    assert prepared(fresh_machine()).fresh == 0


@pytest.mark.parametrize("damage", [
    lambda data: b"", lambda data: data[: len(data) // 2], lambda data: b"\0" * len(data), lambda data: data + b"more",
    lambda data: data[:-9] + bytes([data[-9] ^ 1]) + data[-8:], lambda data: b"no code at all",
])
def test_damaged_files_are_compiled_anew(filled: Path, compiled: dict[str, bytes], damage: object) -> None:
    for name, data in compiled.items():
        (filled / name).write_bytes(damage(data))  # type: ignore[operator]
    assert prepared(fresh_machine()).fresh == 5
    assert kept(filled) == compiled, "and what is compiled anew is the same"


def test_a_folder_that_cannot_be_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with code_kept_in(tmp_path / "file" / "code"):
        assert prepared(fresh_machine()).fresh == 5
        assert prepared(fresh_machine()).fresh == 5
    assert (tmp_path / "file").read_text() == "not a folder"


@pytest.mark.usefixtures("filled")
def test_files_that_may_only_be_read_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_the_least_recently_used_files_go_first(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {name: len(data) for name, data in kept(filled).items()}
    old, now = next(iter(sizes)), time.time()
    for age, name in enumerate(sizes):
        os.utime(filled / name, (now - 1000 + age, now - 1000 + age))
    other = turing_machine(random_rules(random.Random(2)), [0] * 16, 3, 4)
    monkeypatch.setattr(objects, "MOST_BYTES", sum(sizes.values()) + 1)
    computer_of(other.model, other.card, other.layout)
    left = kept(filled)
    assert old not in left
    assert sum(map(len, left.values())) <= objects.MOST_BYTES
    assert set(left) - set(sizes), "the newest stays"
    monkeypatch.setattr(objects, "MOST_BYTES", 1)
    assert prepared(fresh_machine()).fresh > 0, "a limit that nothing fits under is no error"


def test_a_file_that_is_used_is_young_again(filled: Path) -> None:
    for name in kept(filled):
        os.utime(filled / name, (1000.0, 1000.0))
    assert prepared(fresh_machine()).fresh == 0
    assert all((filled / name).stat().st_mtime > 10_000 for name in kept(filled))


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
    calls = ["c = add(a, b)", "c = mul(a, b)", "c = mul(b, b)"]
    data = ".data\na matrix 2x2 1 2 ; 3 4\nb matrix 2x2 0.3 0.7 ; 0.1 -0.2\nc matrix 2x2\n.code\n"
    found = []
    for number, order in enumerate((calls, calls[::-1])):
        with code_kept_in(tmp_path / str(number)):
            machine = FleqMachine(functions=("add", "mul"), size=2, memory=8, instructions=6, heads=2)
            card = machine.punch(assemble(data + "\n".join([*order, "halt"])))
            run_lowered(machine.model, card, 6, facts=machine.layout)
            found.append(kept(tmp_path / str(number)))
    assert len(found[0]) == 4, "the driver, two calls and the halt"
    assert found[0] == found[1]
