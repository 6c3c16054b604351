"""A run kept in a file goes on to the same last card, bit for bit: stopped, interrupted, killed."""

from __future__ import annotations

import io
import json
import os
import random
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

import punchcard
from punchcard.engines import ENGINES, Controls
from punchcard.errors import ProgramError, PunchcardError, StorageError
from punchcard.machines import storage
from punchcard.machines.checkpoint import KEY, CheckpointFile, begin, load, resume
from punchcard.machines.fleq.blocks.block import Elementwise
from punchcard.machines.fleq.functions import Function, same_shape
from punchcard.machines.fleq.isa import FleqProgram
from punchcard.machines.fleq.text.assembler import assemble
from punchcard.machines.running import Mark
from punchcard.machines.subleq.isa import Program
from punchcard.machines.von_neumann.isa import Image
from punchcard.machines.von_neumann.languages.asq.assembler import assemble as assemble_image
from tests.cases import DESIGNS, EXAMPLES, file_with, load_subleq, soaked
from tests.command_line import assert_refused, invoke, started

CASES: list[tuple[str, dict[str, Any]]] = [
    *(("multiply.subleq", {"design": design}) for design in DESIGNS),
    *(("newton.fleq", {"design": design, "heads": 2}) for design in ("compact", "three-layer", "paper")),
    ("columns.fleq", {"design": "compact"}),  # changes its own pointers
    ("columns.fleq", {"design": "three-layer"}),
    ("columns.fleq", {"design": "paper", "precision": "float32"}),
]
BY_ENGINE: list[tuple[str, dict[str, Any]]] = [
    *((name, {**options, "engine": "dense"}) for name, options in CASES),
    *((name, {"engine": engine}) for name in ("multiply.subleq", "newton.fleq", "columns.fleq")
      for engine in ENGINES if engine not in ("dense", "auto")),  # auto is one of the others
]


def stopped(name: str, options: dict[str, Any], check: bool) -> Any:
    """FLEQ takes long, stopped again and again: in one design, on engines of its own. Without a comparison: on one."""
    engine = options["engine"]
    if name == "multiply.subleq":
        kept = check or engine == "lowered"
    else:
        kept = check and (engine == "scratchpad" or (name, engine) == ("newton.fleq", "lowered"))
        kept = kept or (name, engine) == ("columns.fleq", "scratchpad")
    return (pytest.param if kept else soaked)(name, options, check)


def same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Equal bit by bit: a -0.0 is not 0.0 here."""
    return one.dtype == other.dtype and one.shape == other.shape and one.numpy().tobytes() == other.numpy().tobytes()


@pytest.mark.parametrize(("name", "options", "check"), [
    stopped(name, options, check) for check in (True, False) for name, options in BY_ENGINE])
def test_stopped_anywhere_a_run_ends_with_the_same_card(
    tmp_path: Path, name: str, options: dict[str, Any], check: bool
) -> None:
    program, path = punchcard.load(EXAMPLES / name), tmp_path / "run.checkpoint"
    how = {"check": check, "engine": options["engine"]}
    machine = punchcard.build(program, **{key: value for key, value in options.items() if key not in how})
    whole = punchcard.run(program, machine, **how)
    for stop in (0, 1, 9, 26) if isinstance(program, Program) else (1, 23):
        begun = punchcard.run(program, machine, max_steps=stop, checkpoint=path, every=4, **how)
        assert not begun.result.halted
        resumed = punchcard.resume(path, max_steps=1000)
        assert resumed.result.begun == begun.result.loops
        assert same_bits(resumed.result.card, whole.result.card)
        assert (resumed.result.steps, resumed.result.loops) == (whole.result.steps, whole.result.loops)
        assert resumed.ok
        assert resumed.agrees == whole.agrees
        if isinstance(program, FleqProgram):
            assert (resumed.max_step_error, resumed.bound, resumed.worst, resumed.max_error) == \
                   (whole.max_step_error, whole.bound, whole.worst, whole.max_error), "the audit goes on as well"
        again = punchcard.resume(path, machine)
        assert again.result.loops == whole.result.loops, "a run that has ended makes no more loops"
        assert again.result.halted
        assert same_bits(again.result.card, whole.result.card)
    assert [p.name for p in tmp_path.iterdir()] == ["run.checkpoint"]


@pytest.mark.parametrize(("name", "options"), [
    (soaked if name.endswith(".fleq") and options["design"] != "compact" else pytest.param)(name, options)
    for name, options in CASES])
def test_every_checkpoint_is_a_card_of_the_run(
    tmp_path: Path, name: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    program, path = punchcard.load(EXAMPLES / name), tmp_path / "run.checkpoint"
    start = begin(program, punchcard.build(program, **options))
    cards = [start.mark.card]
    kept: list[tuple[int, bool]] = []
    real = CheckpointFile.write

    def write(self: Any, *arguments: Any) -> None:
        real(self, *arguments)
        saved = load(path)
        while len(cards) <= saved.mark.loops:
            cards.append(start.machine.model(cards[-1]))
        assert same_bits(saved.mark.card, cards[saved.mark.loops])
        assert saved.program == program
        kept.append((saved.mark.loops, saved.mark.ended))

    monkeypatch.setattr("punchcard.machines.checkpoint.CheckpointFile.write", write)
    result = punchcard.resume(start, engine="dense", checkpoint=path, every=7).result
    assert kept == [*((loops, False) for loops in range(0, result.loops, 7)), (result.loops, True)]


def test_an_interrupted_run_is_kept(tmp_path: Path) -> None:
    program, path = load_subleq("primes.subleq"), tmp_path / "run.checkpoint"
    whole = punchcard.run(program, design="two-layer")
    loops = 0

    def count(made: int) -> None:
        nonlocal loops
        loops = made

    stopped = punchcard.run(program, design="two-layer", checkpoint=path, engine="dense",
                            controls=Controls(progress=count, interrupted=lambda: loops >= 100)).result
    assert (stopped.interrupted, stopped.loops) == (True, 100)
    assert load(path).mark.loops == 100
    assert same_bits(punchcard.resume(path).result.card, whole.result.card)


def test_options_can_be_changed(tmp_path: Path) -> None:
    program, path, other = load_subleq("multiply.subleq"), tmp_path / "one", tmp_path / "two"
    punchcard.run(program, max_steps=3, checkpoint=path, every=2, check=False)
    before = path.read_bytes()
    report = punchcard.resume(path, engine="dense", max_steps=6, check=True, checkpoint=other, every=5)
    assert (report.result.engine, report.result.steps, report.agrees) == ("dense", 6, True)
    assert path.read_bytes() == before
    saved = load(other)
    assert (saved.plan.max_steps, saved.plan.every, saved.plan.check) == (6, 5, "end")
    assert saved.mark.engine == "dense"
    for options, message in (({"max_steps": -1}, "max_steps=-1"), ({"every": 0}, "every=0"), ({"engine": "dence"}, "dence")):
        with pytest.raises(PunchcardError, match=message):
            punchcard.resume(path, **options)
    with pytest.raises(PunchcardError, match="every=3: checkpoint, the file to write, is missing"):
        punchcard.run(program, every=3)


def test_blocks_and_weights_of_one_s_own(tmp_path: Path) -> None:
    """Blocks are given again; of other weights the file has a digest, so the machine is given again."""
    twice = Elementwise(Function("twice", 1, same_shape, lambda a: 2 * a), lambda a, b, one: 2 * a)
    path = tmp_path / "run.checkpoint"
    program = assemble(".range 64\n.data\nx scalar 1\nt scalar -3\none scalar 1\n.code\n"
                       "loop: x = twice(x)\nt = add(t, one); if t <= 0 goto loop", functions={"twice": twice.function})
    punchcard.run(program, blocks=[twice], max_steps=3, checkpoint=path)
    with pytest.raises(StorageError, match="cannot be built: unknown function 'twice'"):
        punchcard.resume(path)
    report = punchcard.resume(path, blocks=[twice], max_steps=100)
    assert report.ok
    assert report.result.memory["x"] == 16.0
    machine = punchcard.build(load_subleq("multiply.subleq"))
    machine.weights.layers[0].temperature[0] *= 2
    punchcard.run(load_subleq("multiply.subleq"), machine, max_steps=3, checkpoint=path)
    with pytest.raises(StorageError, match="was made with other weights than"):
        punchcard.resume(path)
    assert punchcard.resume(path, machine, max_steps=100).ok
    with pytest.raises(StorageError, match="is a checkpoint of another machine than the one given"):
        punchcard.resume(path, punchcard.SubleqMachine())


# Programs that read and write


ASK = """
loop:   (-1) a; a (-1); (-1) b; b (-1); one left end; zero zero loop
end:    zero zero (-1)
. a:0 b:0 zero:0 one:1 left:4
"""
"""Copies four pairs of bytes."""


@pytest.mark.parametrize(("engine", "check"), [
    ("dense", False), ("dense", "end"), ("dense", "lockstep"), ("scratchpad", "lockstep"), ("lowered", "lockstep"),
    ("auto", False)])
def test_input_and_output_go_on(tmp_path: Path, engine: str, check: Any) -> None:
    """Stopped before, at and after an input or an output: nothing is read twice, nothing written twice, nothing lost."""
    image, given = assemble_image(ASK), b"abcdefgh"
    machine = punchcard.VonNeumannMachine(word_bits=8, memory=64)
    path = tmp_path / "run.checkpoint"
    whole = punchcard.run(image, machine, input=given, engine=engine, check=check)
    assert (whole.result.output, whole.result.halted, whole.agrees) == (given, True, True if check else None)
    for stop in range(14 if engine == "auto" else 7):  # two rounds and two steps, or one round
        written = bytearray()
        begun = punchcard.run(image, machine, input=given, max_steps=stop, output=written.append, checkpoint=path,
                              engine=engine, check=check)
        assert begun.agrees in (True, None)
        assert begun.result.output == bytes(written)
        resumed = punchcard.resume(path, input=given, max_steps=1000, output=written.append)
        assert (bytes(written), resumed.result.output) == (given, given)
        assert same_bits(resumed.result.card, whole.result.card)
        assert (resumed.result.steps, resumed.agrees) == (whole.result.steps, whole.agrees)


def test_an_image_on_the_command_line_goes_on(tmp_path: Path) -> None:
    """The file of --input is read on from where the run was; standard output carries only what is new."""
    source, path, given = tmp_path / "ask.asq", tmp_path / "run.checkpoint", tmp_path / "given"
    source.write_text(ASK)
    given.write_bytes(b"abcdefgh")
    sizes = ("--bits", "8", "--memory", "64")
    first = invoke("run", str(source), *sizes, "--input", str(given), "--max-steps", "7", "--checkpoint", str(path))
    assert (first.exit_code, first.stdout) == (1, "ab")
    assert f"continue with punchcard run --resume {path} --max-steps N" in first.stderr
    second = invoke("run", "--resume", str(path), "--input", str(given), "--max-steps", "1000", "--check")
    assert (second.exit_code, second.stdout) == (0, "cdefgh")


@pytest.mark.parametrize(("words", "reason"), [((9, 10, 3, 290, 1, 6), "fault"), ((0, 0, -1), "halted")])
def test_a_run_of_an_image_that_has_ended_stays_ended(tmp_path: Path, words: tuple[int, ...], reason: str) -> None:
    machine = punchcard.VonNeumannMachine(word_bits=10, memory=64)
    path = tmp_path / "run"
    first = punchcard.run(Image(words), machine, checkpoint=path, check="end").result
    for check in ("end", "lockstep", False):
        report = punchcard.resume(path, check=check, max_steps=50)
        again = report.result
        assert (again.reason, again.fault, again.steps) == (reason, first.fault, first.steps)
        assert report.agrees in (True, None), report.differences
        assert same_bits(again.card, first.card)


@pytest.mark.parametrize("check", ["end", "lockstep"])
def test_the_end_of_the_input_is_kept(tmp_path: Path, check: Any) -> None:
    """What comes after the end is not seen, also when a run goes on with another file, or a function."""
    image = Image((-1, -1, 3, -1, -1, 6, -1, -1, 9, 0, 0, -1))
    machine = punchcard.VonNeumannMachine(word_bits=8, memory=16)
    values = iter((97, -1, 98))
    report = punchcard.run(image, machine, input=lambda: next(values), check=check)
    assert (report.result.output, report.agrees) == (b"a\xff\xff", True)
    path = tmp_path / "run"
    punchcard.run(image, machine, input=io.BytesIO(b"a"), max_steps=2, checkpoint=path, check=check)
    resumed = punchcard.resume(path, input=io.BytesIO(b"b"), max_steps=100)
    assert (resumed.result.output, resumed.agrees) == (b"a\xff\xff", True)
    with pytest.raises(PunchcardError, match="the input gives 300: it must be a byte"):
        machine.run(image, input=lambda: 300)


# Files


def test_places_that_cannot_be_written_to(tmp_path: Path) -> None:
    program = Program.create(load_subleq("multiply.subleq").instructions, [1] * 6)
    for path, message in ((tmp_path / "no" / "folder", "cannot write"), (tmp_path, "Is a directory")):
        with pytest.raises(StorageError, match=message):
            punchcard.run(program, checkpoint=path)


def test_a_checkpoint_is_a_regular_file(tmp_path: Path) -> None:
    """It is written again and again: a pipe would wait for its reader each time, and a device keeps nothing."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    for path in (tmp_path / "pipe", tmp_path / "link", Path("/dev/null")):
        assert_refused(f"{str(path)!r} is a pipe or a device, not a checkpoint: it must be a regular file",
                       "run", EXAMPLES / "multiply.subleq", "--checkpoint", path)
        with pytest.raises(StorageError, match="not a checkpoint: it must be a regular file"):
            punchcard.run(load_subleq("multiply.subleq"), checkpoint=path)


def test_a_run_that_goes_wrong_leaves_the_last_good_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "run.checkpoint"
    program = assemble(".data\nx scalar 1\n.code\nloop: x = add(x, x)\ngoto loop")
    for check in (True, False):
        with pytest.raises(ProgramError, match=r"instruction 0 \(loop\) in loop 9: 'x' became 32, beyond the declared"):
            punchcard.run(program, checkpoint=path, every=2, check=check, engine="scratchpad")
        assert load(path).mark.loops == 8, "loop 9 leaves the range"


def test_what_a_killed_writer_left_is_swept(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    path = tmp_path / "run.checkpoint"
    left, other, mine = (tmp_path / name for name in (f".run.checkpoint.{ended.pid}.part", f".other.{ended.pid}.part",
                                                      ".run.checkpoint.1.part"))
    for part in (left, other, mine):
        part.write_text("half")
    punchcard.run(load_subleq("multiply.subleq"), checkpoint=path)
    assert (left.exists(), other.exists(), mine.exists()) == (False, True, True), "process 1 is alive"


# Processes


start = partial(started, "run", text=True)


def wait_for(path: Path, loops: int, process: subprocess.Popen[str]) -> None:
    """Until the file holds a run of more than so many loops."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        if path.exists() and storage.read(path, KEY, "checkpoint")[0]["loops"] > loops:
            return
        time.sleep(0.05)
    raise AssertionError(f"no checkpoint: {process.communicate()}")


@pytest.mark.parametrize(("name", "kills"), [("primes.subleq", 1), soaked("primes.subleq", 2), soaked("columns.fleq", 2)])
def test_a_killed_run_goes_on(tmp_path: Path, name: str, kills: int) -> None:
    """SIGKILL at random moments, again and again; the file is whole every time, and the end is the same."""
    source, path = EXAMPLES / name, tmp_path / "run.checkpoint"
    if name.endswith(".subleq"):
        options = ["--design", "one-layer"]
        program: Program | FleqProgram = load_subleq(name)
        whole = punchcard.run(program, design="one-layer", max_steps=10**6, engine="dense")
    else:
        text = source.read_text().replace("pass   scalar -1", "pass   scalar -12").replace(".range 64", ".range 10000")
        source = file_with(tmp_path / name, text)
        options, program = [], assemble(text)
        whole = punchcard.run(program, max_steps=10**6, engine="dense")
    rng = random.Random(name)
    command, reached = [str(source), *options, "--engine", "dense", "--max-steps", "1000000", "--checkpoint", str(path),
                        "--every", "7"], 0
    for _ in range(kills):
        process = start(*command)
        wait_for(path, reached, process)
        time.sleep(rng.random() / 10)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        kept = load(path)
        assert reached < kept.mark.loops < whole.result.loops, "killed in the middle of the run"
        command, reached = ["--resume", str(path)], kept.mark.loops
    last = start(*command, "--json")
    out, err = last.communicate(timeout=120)
    data = json.loads(out)
    assert (last.returncode, "Traceback" in err, data["agrees"], data["begun"]) == (0, False, True, reached)
    assert data["steps"] == whole.result.steps
    assert same_bits(load(path).mark.card, whole.result.card)
    assert [p.name for p in tmp_path.iterdir() if p.name.endswith(".part")] == []


def test_ctrl_c_keeps_the_run_and_says_how_to_go_on(tmp_path: Path) -> None:
    path = tmp_path / "run.checkpoint"
    process = start(str(EXAMPLES / "primes.subleq"), "--engine", "dense", "--checkpoint", str(path), "--every", "20")
    wait_for(path, 0, process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, "Traceback" in err) == (1, False)
    assert "interrupted after" in out
    assert f"punchcard: the run is saved: continue with punchcard run --resume {path}\n" in err
    loops = load(path).mark.loops
    data = json.loads(invoke("run", "--resume", str(path), "--json").stdout)
    assert (data["halted"], data["agrees"], data["begun"]) == (True, True, loops)
    assert data["memory"]["prime"] == 13, "the 6th prime"


def counted_writes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The loops of each checkpoint that is written from now on."""
    write, found = CheckpointFile.write, list[int]()

    def counted(file: CheckpointFile, mark: Mark, *more: Any) -> None:
        found.append(mark.loops)
        write(file, mark, *more)

    monkeypatch.setattr(CheckpointFile, "write", counted)
    return found


@pytest.mark.parametrize(("plan", "writes"), [({}, 1), ({"max_steps": 10**6}, 2)])
def test_a_run_that_goes_on_as_planned_is_not_written_before_its_first_loop(
    plan: dict[str, Any], writes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "run"
    punchcard.run(load_subleq("multiply.subleq"), checkpoint=path, max_steps=3)
    found = counted_writes(monkeypatch)
    punchcard.resume(path, **plan)
    assert len(found) == writes
    path.chmod(0o400)
    if not os.access(path, os.W_OK):  # a superuser may write everywhere
        with pytest.raises(PunchcardError, match="Permission denied"):
            punchcard.resume(path)


def test_a_run_is_written_at_once_where_its_file_is_another_by_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a run that is killed soon would leave the other one, or no file."""
    path = tmp_path / "run"
    punchcard.run(load_subleq("multiply.subleq"), checkpoint=path, max_steps=3)
    saved = load(path)
    punchcard.run(load_subleq("add.subleq"), checkpoint=path)
    found = counted_writes(monkeypatch)
    resume(saved, path)
    path.unlink()
    resume(saved, path)
    assert found[::2] == [3, 3]
