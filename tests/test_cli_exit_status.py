"""However a command ends, it ends with one line and an exit status: errors, bugs, closed streams, requests to stop."""

from __future__ import annotations

import errno
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from punchcard import cli
from punchcard.cli.display import Progress, RunProgress
from punchcard.cli.exit_status import ending
from punchcard.cli.terminal import PATIENCE, interruptible
from punchcard.errors import LONGEST, PunchcardError, one_line
from punchcard.learning.planning import plan
from punchcard.machines.checkpoint import load
from tests.cases import EXAMPLES, ROOT
from tests.command_line import assert_refused, invoke, started

MULTIPLY = str(EXAMPLES / "multiply.subleq")
HELLO = str(EXAMPLES / "von_neumann" / "hello.asq")
CALCULATE = "punchcard.calculator.calculation.run_calculation"


def raising(error: BaseException) -> Callable[..., Any]:
    def fail(*arguments: object, **options: object) -> None:
        raise error

    return fail


@pytest.mark.parametrize(("error", "message", "status"), [
    (PunchcardError("size=0: it must be 1 or more"), "size=0: it must be 1 or more", 2),
    (KeyboardInterrupt(), "interrupted", 1),
    (BrokenPipeError(), None, 141),
    (MemoryError(), "not enough memory (MemoryError): ask for less, such as a smaller machine", 2),
    (MemoryError("Unable to allocate 7 TiB"), "not enough memory (Unable to allocate 7 TiB): ask for less, such as a "
     "smaller machine", 2),
    (RuntimeError("DefaultCPUAllocator: can't allocate memory"), "not enough memory (DefaultCPUAllocator: can't allocate "
     "memory): ask for less, such as a smaller machine", 2),
    (OSError(errno.ENOMEM, "Cannot allocate memory"), "not enough memory ([Errno 12] Cannot allocate memory): ask for less, "
     "such as a smaller machine", 2),
    (RecursionError("maximum recursion depth exceeded"), "the input is nested too deeply: --debug shows where", 2),
    (OSError(errno.ENOSPC, "No space left on device"), "cannot write to standard output: No space left on device", 1),
    (FileNotFoundError(errno.ENOENT, "No such file", "x"), "this is a bug in punchcard: FileNotFoundError: [Errno 2] No "
     "such file: 'x' (punchcard --debug ... shows the traceback)", 70),
    (OSError(errno.EMFILE, "why"), "this is a bug in punchcard: OSError: [Errno 24] why (punchcard --debug ... shows the "
     "traceback)", 70),
    (RuntimeError("odd"), "this is a bug in punchcard: RuntimeError: odd (punchcard --debug ... shows the traceback)", 70),
])
def test_every_exception_is_a_line_and_a_status(error: BaseException, message: str | None, status: int) -> None:
    assert ending(error) == (message, status)


def test_a_bug_is_one_line_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """With its own status; the traceback is there for who asks."""
    monkeypatch.setattr(CALCULATE, raising(IndexError("list index\nout of range")))
    result = invoke("calc", "1+1")
    assert (result.exit_code, result.stdout) == (70, "")
    assert result.stderr == ("punchcard: this is a bug in punchcard: IndexError: list index out of range "
                             "(punchcard --debug ... shows the traceback)\n")
    for shown in (invoke("--debug", "calc", "1+1"), invoke("calc", "1+1", PUNCHCARD_DEBUG="1")):
        assert shown.exit_code == 70
        assert "Traceback" in shown.stderr
        assert shown.stderr.endswith(result.stderr)
    assert "Traceback" not in invoke("calc", "1+1", PUNCHCARD_DEBUG="0").stderr, "and not the next time"


@pytest.mark.parametrize("error", [MemoryError(), RecursionError(), EOFError("odd"), OSError(28, "No space left on device")])
def test_no_exception_passes(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CALCULATE, raising(error))
    result = invoke("calc", "1+1")
    assert result.exit_code == ending(error).status
    assert result.stderr == f"punchcard: {ending(error).message}\n"
    assert "Traceback" in invoke("--debug", "calc", "1+1").stderr


def test_a_message_is_one_line_of_sensible_length() -> None:
    assert one_line("a\nb\r\nc\x1b[2J \ud800 ü") == "a b c\\x1b[2J \\ud800 ü"
    assert len(one_line("1" * 5000)) < LONGEST + 10
    result = invoke("run", f"{'x' * 5000}\x1b.subleq")
    assert (result.exit_code, len(result.stderr.splitlines())) == (2, 1)
    assert len(result.stderr) < LONGEST + 30
    assert "\x1b" not in result.stderr


LONG = "1" * 5000  # Python converts 4,300 digits


@pytest.mark.parametrize(("arguments", "message"), [
    (["calc", LONG], "has 5000 characters: the most is 1000"),
    (["calc", f"0.{LONG}"], "has 5002 characters: the most is 1000"),
    (["calc", f"2^{LONG}"], "has 5000 characters: the most is 1000"),
    (["calc", "x", f"x={LONG}"], "has 5000 characters: the most is 1000"),
    (["calc", "x", "x=1", "--range", f"x=0:-{LONG}"], "has 5001 characters: the most is 1000"),
    (["bench", "--columns", f"20,{LONG}"], "write positive integers separated by commas, of at most 18 digits"),
    (["bench", "--columns", "٣"], "write positive integers separated by commas"),
    (["bench", "--seconds", LONG], "--seconds"),
    (["learn", str(EXAMPLES / "data.csv"), "--target", "y", "--hidden", LONG], "18 digits are the most"),
    (["learn", str(EXAMPLES / "data.csv"), "--target", "y", "--epochs", LONG], "Invalid value for '--epochs'"),
    (["run", MULTIPLY, "--set", f"a={LONG}"], "has 5000 digits: the most is 40"),
    (["run", MULTIPLY, "--bits", LONG], "Invalid value for '--bits'"),
    (["run", str(EXAMPLES / "newton.fleq"), "--set", f"A={LONG}"], "is beyond the floating-point numbers"),
    (["info", "--machine", "fleq", "--range", LONG], "range=inf"),
])
def test_numbers_of_thousands_of_digits(arguments: list[str], message: str) -> None:
    assert_refused(message, *arguments)


@pytest.mark.parametrize(("name", "text"), [
    ("a.subleq", ".data\nx LONG\n.code\nhalt\n"), ("b.subleq", ".data\nx[LONG] 1\n.code\nhalt\n"),
    ("c.asq", "LONG\n"), ("d.dec", "LONG\n"), ("e.minsky", "inc LONG\n"),
    ("f.fleq", ".data\nx vector LONG\n.code\nhalt\n"), ("g.fleq", ".data\nx matrix LONGxLONG\n.code\nhalt\n"),
    ("h.fleq", ".data\nx scalar random(LONG)\n.code\nhalt\n"), ("i.fleq", ".code\ngoto LONG\n"),
    ("j.fleq", ".data\nx vector 2\n.code\nx[LONG] = add(x[0], x[0])\nhalt\n"),
    ("k.json", '{"isa": "subleq", "instructions": [], "memory": [LONG], "symbols": [], "labels": []}'),
])
def test_texts_with_thousands_of_digits(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text.replace("LONG", LONG))
    assert_refused("", "asm", tmp_path / name)


# Standard streams


TOO_LONG = "x" * 300


@pytest.mark.parametrize(("message", "arguments"), [
    ("File name too long", ["fuse", "sums", "--base", str(EXAMPLES), "-o", TOO_LONG]),
    ("give a folder with a model", ["fuse", "sums", "--base", TOO_LONG, "-o", "fused"]),
    ("there is no such folder", ["run", TOO_LONG, "--on", "stock"]),
    ("there is no such folder", ["prove", TOO_LONG, "--on", "stock"]),
    ("File name too long", ["ground-truth", "make", "--set", "small", TOO_LONG]),
    ("File name too long", ["sweep", str(EXAMPLES / "sweeps" / "first.toml"), "-o", TOO_LONG]),
    ("File name too long", ["export", MULTIPLY, "--to", "gpt2", "-o", TOO_LONG]),
])
def test_folders_with_a_name_that_no_file_can_have(message: str, arguments: list[str]) -> None:
    assert_refused(message, *arguments)


def status_without(stream: str, *arguments: str) -> Any:
    """The exit status when a standard stream is closed, as Python finds it then."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, stream, None)
        with pytest.raises(SystemExit) as ended:
            cli.main(list(arguments), prog_name="punchcard")
    return ended.value.code


def test_results_that_cannot_be_written(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Standard output is closed, as by `>&-`: status 1 in one line, whatever the command; a file is written as ever."""
    table, weights, image = tmp_path / "t.csv", str(tmp_path / "w.npz"), str(tmp_path / "image.dec")
    table.write_text("x,y\n1,2\n2,3\n")
    fit = ("--engine", "scratchpad")
    assert invoke("learn", str(table), "--target", "y", "--epochs", "1", "--save", weights, *fit).exit_code == 0
    bench = ("--quick", "--machine", "subleq", "--columns", "20", "--engine", "scratchpad")
    for arguments in (
        ("info", MULTIPLY), ("run", MULTIPLY, "--engine", "dense"),
        ("run", HELLO, "--engine", "scratchpad", "--memory", "256"),
        ("calc", "1+1"), ("predict", weights, str(table), *fit), ("asm", MULTIPLY), ("disasm", MULTIPLY), ("asm", HELLO),
        ("bench", *bench), ("--help",), (),
    ):
        assert status_without("stdout", *arguments) == 1
        assert capfd.readouterr().err == "punchcard: cannot write to standard output: Bad file descriptor\n", arguments
    for name in ("stdout", "stdin", "stderr"):
        assert status_without(name, "asm", HELLO, "-o", image) == 0
    assert Path(image).read_text() == invoke("asm", HELLO).stdout


def test_closed_streams_stay_closed_to_files(tmp_path: Path) -> None:
    """A file that is opened next would get a closed stream's number, and what is printed to that stream."""
    code = f"exec {sys.executable} -m punchcard asm {MULTIPLY} -o {tmp_path}/made <&- >&- 2>&-"
    assert subprocess.run(["sh", "-c", code], check=False).returncode == 0
    assert (tmp_path / "made").read_text() == invoke("asm", MULTIPLY).stdout
    code = f"exec {sys.executable} -m punchcard asm nowhere.subleq >&- 2>/dev/full"
    assert subprocess.run(["sh", "-c", code], check=False).returncode == 2, "nobody hears why, but the status is right"


def test_remarks_never_land_in_the_result(capfd: pytest.CaptureFixture[str]) -> None:
    assert status_without("stderr", "run", MULTIPLY, "--engine", "dense", "--max-steps", "3", "--json") == 1
    assert len(capfd.readouterr().out.splitlines()) == 1, "the object alone"


def test_input_that_cannot_be_read(tmp_path: Path) -> None:
    for name, why in (("/proc/self/mem", "Input/output error"), (str(tmp_path), "Is a directory"),
                      ("a\0b", "embedded null byte")):
        result = invoke("run", str(EXAMPLES / "von_neumann" / "echo.asq"), "--input", name, "--engine", "scratchpad",
                        "--memory", "256")
        assert (result.exit_code, result.stderr) == (2, f"punchcard: {one_line(f'cannot read {name!r}: {why}')}\n")


# Requests to stop


def asked_to_stop(*arguments: object, **options: object) -> None:
    signal.raise_signal(signal.SIGTERM)


@pytest.mark.parametrize(("inside", "arguments"), [
    (CALCULATE, ["calc", "1+1"]),
    ("punchcard.benchmark.measurements.measure", ["bench", "--quick"]),
    ("punchcard.cli.display.show_info", ["info"]),
    ("punchcard.machines.registry.Registry.load", ["disasm", MULTIPLY]),
])
def test_sigterm_is_ctrl_c(monkeypatch: pytest.MonkeyPatch, inside: str, arguments: list[str]) -> None:
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(inside, asked_to_stop)
    result = invoke(*arguments)
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", "punchcard: interrupted\n")
    assert signal.getsignal(signal.SIGTERM) == before


def test_sigterm_keeps_the_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "run.checkpoint"
    monkeypatch.setattr(RunProgress, "made", asked_to_stop)
    result = invoke("run", MULTIPLY, "--engine", "dense", "--checkpoint", str(path), status=1)
    assert result.stderr == ("punchcard: interrupted: instruction 1 would have been next\n"
                             f"punchcard: the run is saved: continue with punchcard run --resume {path}\n")
    assert load(path).mark.loops == 1
    monkeypatch.undo()
    assert "product  63" in invoke("run", "--resume", str(path)).stdout


def test_sigterm_keeps_what_was_learned(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    table, weights = tmp_path / "t.csv", tmp_path / "w.npz"
    table.write_text("x,y\n1,2\n2,3\n")
    seen: list[str] = []

    def show(progress: object, text: str, *more: object, **named: object) -> None:
        seen.append(text.partition(",")[0])
        if seen.count("epoch 2 of 5") == 1:
            signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(Progress, "show", show)
    result = invoke("learn", str(table), "--target", "y", "--epochs", "5", "--rate", "0.01", "--engine", "scratchpad",
                    "--save", str(weights))
    assert (result.exit_code, weights.exists()) == (1, True)
    assert result.stderr == "punchcard: interrupted in epoch 3 of 5: the weights are those after epoch 2\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_process_ends_on_the_spot_before_it_has_begun(number: signal.Signals) -> None:
    """While modules are imported, an exception could abort a library, or be lost in it."""
    code = ("import signal, sys; from punchcard import __main__ as command\n"
            f"class Imported:\n  def find_spec(self, *_): signal.raise_signal({int(number)})\n"
            "sys.meta_path.insert(0, Imported())\ncommand.start()")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "punchcard: interrupted\n")


@pytest.mark.soak
@pytest.mark.parametrize("arguments", [["calc", "sqrt(2)*exp(1)"], ["info"], ["bench", "--quick", "--machine", "subleq"],
                                       ["run", MULTIPLY], ["run", str(EXAMPLES / "von_neumann" / "primes.asq")]])
def test_a_request_to_stop_at_any_moment(arguments: list[str]) -> None:
    """Also while libraries are imported, and while Python ends."""
    rng = random.Random(0)
    for _ in range(12):
        process = started(*arguments, text=True)
        time.sleep(0.3 + 2.5 * rng.random())  # Python itself needs a moment before any line of ours runs
        process.send_signal(rng.choice([signal.SIGINT, signal.SIGTERM]))
        _, said = process.communicate(timeout=60)
        assert process.returncode in (0, 1)
        assert "Traceback" not in said
        assert process.returncode == 0 or "interrupted" in said


@pytest.mark.parametrize("arguments", [
    ["run", "p.subleq", "--checkpoint", "p.subleq"], ["run", "p.subleq", "--stats", "p.subleq"],
    ["asm", "p.subleq", "-o", "link"], ["learn", "t.csv", "--target", "y", "--save", "t.csv"]])
def test_a_command_does_not_write_over_its_own_input(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.subleq").write_text(".data\nx 1\n.code\nhalt\n")
    (tmp_path / "t.csv").write_text("x,y\n1,2\n")
    (tmp_path / "link").symlink_to("p.subleq")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert_refused("which this command uses: choose another file", *arguments)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_debug_may_stand_anywhere(tmp_path: Path) -> None:
    ran = invoke("run", str(tmp_path / "none.subleq"), "--debug", status=2)
    assert "Traceback" in ran.stderr
    assert "no such file" in ran.stderr


# Ctrl-C ends a command within half a second, also where no run asks whether to stop


@contextmanager
def stopping(*, keeps: bool = False) -> Iterator[Callable[[], bool]]:
    """A block in which Ctrl-C is pressed at once."""
    with interruptible(keeps=keeps) as (interrupted, _):
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
        yield interrupted


def busy(seconds: float) -> None:
    """Work in Python and NumPy, in which nobody asks anything."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        np.ones(100).sum()


def test_work_that_never_asks_ends_at_once() -> None:
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt), stopping(keeps=True):
        busy(20)
    assert time.monotonic() - begun < 5  # 0.5 s where nothing else runs


def test_numpy_is_interrupted_before_the_transformer_runs() -> None:
    x = np.linspace(-1, 1, 10)[:, None]
    with pytest.raises(KeyboardInterrupt), stopping(keeps=True):
        plan(x, x, epochs=300_000, rate=1e-6)


def test_a_run_that_asks_ends_by_itself() -> None:
    with stopping() as interrupted:
        while not interrupted():
            busy(0.01)
        busy(3 * PATIENCE)  # what it does to end is not disturbed


def test_a_slow_loop_is_waited_for_where_something_is_kept() -> None:
    with stopping(keeps=True) as interrupted:
        assert not interrupted()
        busy(3 * PATIENCE)
        assert interrupted()


def test_a_slow_loop_is_not_waited_for_where_nothing_is_kept() -> None:
    def run() -> None:
        with stopping() as interrupted:
            assert not interrupted()
            busy(20)

    with pytest.raises(KeyboardInterrupt):
        run()


def test_nothing_is_left_behind() -> None:
    before = threading.active_count()
    with interruptible(keeps=False) as (interrupted, _):
        assert not interrupted()
    assert threading.active_count() == before
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_folder_is_named_where_z3_is_missing(tmp_path: Path) -> None:
    """What says that a folder is no program, or what a proof needs, must not need z3 itself."""
    commands = ["run", str(tmp_path)], ["prove", str(tmp_path), "--on", "stock"]
    script = ("import sys; sys.modules['z3'] = None\nfrom tests.command_line import invoke\n"
              f"for command in {commands!r}:\n    print(invoke(*command, status=2).stderr)\n")
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=ROOT)
    assert ran.returncode == 0, ran.stderr
    run, on_stock = ran.stdout.split("\n\n")[:2]
    assert run.endswith("is a folder, not a program")
    assert "needs the solver z3, which is not installed" in on_stock


def test_choices_are_listed_in_one_line() -> None:
    assert_refused("Choose from: transformer-lens, onnx, hf", "export", EXAMPLES / "multiply.subleq")
