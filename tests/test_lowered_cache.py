"""Compiled code is kept on disk: found again, shared between processes, compiled anew when in doubt, trimmed."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import pwd
import random
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
import torch
from llvmlite import ir

from punchcard import code_cache
from punchcard.card.encoding import encode_bits
from punchcard.engines.lowered.codegen.objects import load_or_compile
from punchcard.engines.lowered.compiled_model import CompiledModel
from punchcard.machines.fleq.machine import FleqMachine
from punchcard.machines.fleq.text.assembler import assemble
from tests.cases import ROOT
from tests.engine_runs import compiled_model_of, run_dense, run_lowered
from tests.fuzzing.workers import memory_held
from tests.lowered_cases import Machine, code_kept_in, operations, random_rules, turing_machine

OPERATIONS, PIECES = [0, 2, 2, 0] * 4, 3
"""Two operations: so the code is in three pieces, with the driver."""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Iterator[Path]:
    with code_kept_in(tmp_path / "code"):
        yield tmp_path / "code"


def fresh_machine() -> Machine:
    """A new model every time, of the same weights: nothing is known of it but what is on disk."""
    return operations(OPERATIONS, 4)


def prepared(machine: Machine, *notes: str) -> CompiledModel:
    """The machine's code with all cases that 40 loops meet; the loops agree with the equation, and there are these notes."""
    ran = run_lowered(machine.model, machine.card, 40, facts=machine.layout)
    assert (ran.engine, ran.notes) == ("lowered", notes)
    assert torch.equal(ran.card, run_dense(machine.model, machine.card, 40).card)
    return compiled_model_of(machine.model, machine.card, machine.layout)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of the machine's code."""
    with code_kept_in(tmp_path_factory.mktemp("compiled")):
        assert prepared(fresh_machine()).fresh == PIECES
        return kept(code_cache.folder())


@pytest.fixture
def filled(folder: Path, compiled: dict[str, bytes]) -> Path:
    """A folder that holds the code already."""
    folder.mkdir(mode=0o700)
    for name, data in compiled.items():
        (folder / name).write_bytes(data)
        (folder / name).chmod(0o600)
    return folder


def kept(where: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(where.iterdir())}


def test_code_is_compiled_once(folder: Path) -> None:
    first = prepared(fresh_machine())
    assert first.fresh == PIECES
    assert len(kept(folder)) == PIECES
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
    compiled_model = compiled_model_of(machine.model, machine.card, machine.layout)
    return ran.engine, compiled_model.fresh, float(ran.card.double().mul(3.7).cumsum(0).sin().sum())


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
    assert fresh + more >= PIECES
    assert len(kept(folder)) == PIECES, "no file that was being written is left"
    assert all(isinstance(code_cache.find(name.removesuffix(".code")), tuple) for name in kept(folder))
    assert fresh_process() == ("lowered", 0, value)
    assert prepared(fresh_machine()).fresh == 0


@pytest.mark.parametrize("damage", [
    lambda data: b"", lambda data: data[: len(data) // 2], lambda data: b"\0" * len(data), lambda data: data + b"more",
    lambda data: data[:-9] + bytes([data[-9] ^ 1]) + data[-8:], lambda data: b"no code at all",
])
def test_damaged_files_are_compiled_anew(filled: Path, compiled: dict[str, bytes], damage: object) -> None:
    for name, data in compiled.items():
        (filled / name).write_bytes(damage(data))  # type: ignore[operator]
    note = f"cached code is not used: a file in '{filled}' is not as it was written"
    assert prepared(fresh_machine(), note).fresh == PIECES
    assert kept(filled) == compiled, "and what is compiled anew is the same"
    assert prepared(fresh_machine()).fresh == 0


def test_a_folder_that_cannot_be_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with code_kept_in(tmp_path / "file" / "code"):
        assert prepared(fresh_machine()).fresh == PIECES
        assert prepared(fresh_machine()).fresh == PIECES
    assert (tmp_path / "file").read_text() == "not a folder"


# Code is executed as it is found: only the user's own is looked at


NOT_USED = "cached code is not used: "
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of other users")


def test_nobody_else_can_write_to_the_folder(tmp_path: Path) -> None:
    """Whatever the process masks; folders on the way are made so too."""
    before = os.umask(0)
    try:
        with code_kept_in(tmp_path / "on the way" / "code"):
            assert prepared(fresh_machine()).fresh == PIECES
            assert prepared(fresh_machine()).fresh == 0
    finally:
        os.umask(before)
    made = [tmp_path / "on the way", tmp_path / "on the way" / "code", *(tmp_path / "on the way" / "code").iterdir()]
    assert [stat.S_IMODE(path.stat().st_mode) for path in made] == [0o700] * 2 + [0o600] * PIECES


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o1777])
def test_a_folder_that_others_can_write_to(filled: Path, compiled: dict[str, bytes], mode: int) -> None:
    filled.chmod(mode)
    (filled / next(iter(compiled))).write_bytes(b"planted")
    before = kept(filled)
    assert prepared(fresh_machine(), f"{NOT_USED}others can write to '{filled}': chmod go-w forbids it").fresh == PIECES
    assert kept(filled) == before, "and nothing is kept there"


def test_a_folder_that_others_can_exchange(tmp_path: Path, compiled: dict[str, bytes]) -> None:
    """Where others can write, they can rename what is there, unless the sticky bit is set."""
    shared = tmp_path / "shared"
    for mode, notes in ((0o1777, ()), (0o777, (f"{NOT_USED}others can write to '{shared}': chmod go-w forbids it",))):
        shared.mkdir(exist_ok=True)
        shared.chmod(mode)
        with code_kept_in(shared / "code"):
            assert prepared(fresh_machine(), *notes).fresh == PIECES
    assert kept(shared / "code") == compiled, "the first one kept it"


@as_root
def test_a_folder_and_a_link_of_another_user(tmp_path: Path, filled: Path) -> None:
    """As root in a home folder of somebody else, or by way of a link that somebody else made."""
    link, theirs = tmp_path / "link", tmp_path / "theirs"
    link.symlink_to(filled.parent)
    with code_kept_in(link / "code"):
        assert prepared(fresh_machine()).fresh == 0, "one's own link is followed"
        os.chown(link, 1, 1, follow_symlinks=False)
        assert prepared(fresh_machine(), f"{NOT_USED}'{link}' is another user's folder").fresh == PIECES
    theirs.mkdir()
    os.chown(theirs, 1, 1)
    with code_kept_in(theirs / "code"):
        assert prepared(fresh_machine(), f"{NOT_USED}'{theirs}' is another user's folder").fresh == PIECES
    assert kept(theirs) == {}, "and nothing is made there"


@pytest.mark.parametrize("plant", [
    lambda path: path.chmod(0o602), lambda path: path.chmod(0o620),
    pytest.param(lambda path: os.chown(path, 1, 1), marks=as_root),
])
def test_files_that_others_can_write(filled: Path, compiled: dict[str, bytes], plant: Callable[[Path], None]) -> None:
    for name in compiled:
        plant(filled / name)
    note = f"{NOT_USED}a file in '{filled}' is another user's, or others can write to it"
    assert prepared(fresh_machine(), note).fresh == PIECES
    assert prepared(fresh_machine()).fresh == 0, "what was written anew is one's own"


def test_files_that_are_not_files(filled: Path, compiled: dict[str, bytes], tmp_path: Path) -> None:
    """A link is not followed, neither for reading nor for writing; a pipe is not waited for; a folder stays."""
    for name, (link, pipe, below) in zip(["linked", "piped", "folded"], [(1, 0, 0), (0, 1, 0), (0, 0, 1)], strict=True):
        path = filled / f"{name}.code"
        (tmp_path / "elsewhere").write_bytes(next(iter(compiled.values())))
        if link:
            path.symlink_to(tmp_path / "elsewhere")
        if pipe:
            os.mkfifo(path, 0o600)
        if below:
            path.mkdir(mode=0o700)
        assert not isinstance(code_cache.find(name), tuple), name
        code_cache.keep(name, {}, b"code")
        assert isinstance(code_cache.find(name), tuple) != below, name
    assert (tmp_path / "elsewhere").read_bytes() == next(iter(compiled.values()))


def test_a_file_belongs_to_its_key(filled: Path, compiled: dict[str, bytes]) -> None:
    """Whole files under each other's names: each has its checksum, and none is executed."""
    names = list(compiled)
    for name, other in zip(names, names[1:] + names[:1], strict=True):
        (filled / name).write_bytes(compiled[other])
    assert prepared(fresh_machine(), f"{NOT_USED}a file in '{filled}' is not as it was written").fresh == PIECES
    assert kept(filled) == compiled


@pytest.mark.parametrize("header", [b"", b"[", b"[]", b'{"key": 1}', b'{"key": "KEY"}', b'{"key": "KEY", "notes": 7}',
                                    b"[" * 100_000, b'{"key": "other", "notes": {}}', b'{"key": ' + b"1" * 5000 + b"}"])
def test_a_header_that_makes_no_sense(folder: Path, header: bytes) -> None:
    """With a checksum that is right."""
    folder.mkdir(mode=0o700)
    rest = len(header).to_bytes(8, "little") + header + b"no code at all"
    (folder / "KEY.code").write_bytes(hashlib.sha256(rest).digest() + rest)
    (folder / "KEY.code").chmod(0o600)
    assert code_cache.find("KEY") == f"{NOT_USED}a file in '{folder}' is not as it was written"


def test_without_a_home_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PUNCHCARD_CACHE", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", {}.__getitem__)  # a user that no list names
    note = f"{NOT_USED}there is no home folder: PUNCHCARD_CACHE can name a folder"
    assert prepared(fresh_machine(), note).fresh == PIECES
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert code_cache.find("KEY") == note, "as the rules of XDG have it"
    monkeypatch.setenv("PUNCHCARD_CACHE", "relative")
    assert code_cache.folder() == Path.cwd() / "relative"


def test_compiling_leaves_nothing_behind(folder: Path) -> None:
    """llvmlite loses its passes, over 20 KB for the least module, unless they are disposed of for it."""
    def compile_some(count: int) -> int:
        for _ in range(count):
            load_or_compile("none", lambda: (ir.Module(), {}))
            (folder / "none.code").unlink()
        return memory_held()

    before = compile_some(10)
    assert compile_some(40) - before < 40 * 10_000


def test_what_was_never_finished_goes(filled: Path) -> None:
    old, new = filled / ".x.code.1-1.part", filled / ".y.code.1-1.part"
    for part in (old, new):
        part.write_bytes(b"half")
    os.utime(old, (1000.0, 1000.0))
    code_cache.keep("z", {}, b"code")
    assert (old.exists(), new.exists()) == (False, True)


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
    assert prepared(fresh_machine()).fresh == PIECES
    assert kept(folder) == {}


def test_the_least_recently_used_files_go_first(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {name: len(data) for name, data in kept(filled).items()}
    old, now = next(iter(sizes)), time.time()
    for age, name in enumerate(sizes):
        os.utime(filled / name, (now - 1000 + age, now - 1000 + age))
    other = turing_machine(random_rules(random.Random(2)), [0] * 16, 3, 4)
    monkeypatch.setattr(code_cache, "MOST_BYTES", sum(sizes.values()) + 1)
    compiled_model_of(other.model, other.card, other.layout)
    left = kept(filled)
    assert old not in left
    assert sum(map(len, left.values())) <= code_cache.MOST_BYTES
    assert set(left) - set(sizes), "the newest stays"
    monkeypatch.setattr(code_cache, "MOST_BYTES", 1)
    assert prepared(fresh_machine()).fresh > 0, "a limit that nothing fits under is not an error"


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
    base.layout.put(moved, "position", "tape", encode_bits(list(range(15, -1, -1)), 4))
    names = [compiled_model_of(m.model, m.card, m.layout).name for m in (
        base, turing_machine(rules, tape, 3, 4, torch.float32), turing_machine(random_rules(random.Random(4)), tape, 3, 4),
        turing_machine(rules, tape[:12], 3, 4),
    )]
    names.append(compiled_model_of(base.model, base.card, base.layout.limited({"symbol": 8.0})).name)
    assert len({tuple(name) for name in names}) == len(names)
    same = [compiled_model_of(base.model, card, base.layout) for card in (base.card, moved)]
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
            machine = FleqMachine(functions=("add", "mul"), size=2, memory=8, instructions=6, heads=1)
            card = machine.punch(assemble(data + "\n".join([*order, "halt"])))
            run_lowered(machine.model, card, 6, facts=machine.layout)
            found.append(kept(tmp_path / str(number)))
    assert len(found[0]) == 4, "the driver, two calls and the halt"
    assert found[0] == found[1]
