"""The command `boot`: a small kernel with this process as its terminal, runs without a person, and bad input."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from functools import partial
from pathlib import Path

import pytest

import punchcard
from tests.command_line import invoke as command

ECHO = """
 li s0, 0x10000000
poll: lbu t1, 5(s0)
 andi t1, t1, 1
 beqz t1, poll
 lbu t2, 0(s0)
 sb t2, 0(s0)
 addi t2, t2, -'q'
 bnez t2, poll
 li t0, 0x11100000
 li t1, 0x5555
 sw t1, 0(t0)
"""
"""Writes what it reads, and is off after a q."""
pytestmark = pytest.mark.usefixtures("shared_code")


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("boot") / "echo.bin"
    path.write_bytes(punchcard.assemble(ECHO, "riscv").segments[0].data)
    return path


invoke = partial(command, "boot")


def test_a_run_without_a_person_stops_and_goes_on(kernel: Path, tmp_path: Path) -> None:
    """A script is typed; the run is kept half-way, and its rest comes from another script."""
    script, kept = tmp_path / "script", tmp_path / "kept"
    script.write_bytes(b"hi\n")
    first = invoke(kernel, "--memory", "16K", "--input", script, "--max-steps", 400_000, "--checkpoint", kept, "--json")
    found = json.loads(first.stdout)
    assert (found["reason"], found["output"], found["memory"]["mode"], first.exit_code) == ("steps", "hi\n", "machine", 1)
    script.write_bytes(b"q")
    second = invoke("--resume", kept, "--input", script, "--max-steps", 900_000)
    assert (second.exit_code, second.stdout) == (0, "q"), second.stderr


class Terminal:
    """A process with a terminal of its own, and this test at the other end."""

    def __init__(self, *words: object) -> None:
        self.master, terminal = pty.openpty()
        self.before = termios.tcgetattr(terminal)
        self.process = subprocess.Popen([sys.executable, "-m", "punchcard", "boot", *map(str, words)], stdin=terminal,
                                        stdout=terminal, stderr=terminal, start_new_session=True)
        self.terminal, self.seen = terminal, b""

    def until(self, text: bytes, seconds: float = 90.0) -> None:
        end = time.monotonic() + seconds
        while text not in self.seen:
            if time.monotonic() > end:
                self.process.kill()
                pytest.fail(f"{text!r} is not in {self.seen!r}")
            if select.select([self.master], [], [], 0.2)[0]:
                self.seen += os.read(self.master, 4096)

    def keys(self, data: bytes) -> None:
        os.write(self.master, data)

    @property
    def is_raw(self) -> bool:
        return not termios.tcgetattr(self.terminal)[3] & termios.ICANON

    @property
    def is_restored(self) -> bool:
        return termios.tcgetattr(self.terminal) == self.before

    def close(self) -> None:
        for descriptor in (self.master, self.terminal):
            os.close(descriptor)


def test_a_terminal_is_restored(kernel: Path) -> None:
    """By the key to leave, and by a signal. Ctrl-C is a key like any other."""
    screen = Terminal(kernel, "--memory", "16K")
    screen.until(b"Ctrl-A x leaves")
    screen.keys(b"a\x03\x01ab")
    screen.until(b"a\x03\x01b")
    assert screen.is_raw
    screen.keys(b"\x01x")
    assert screen.process.wait(30) == 0
    assert screen.is_restored
    screen.close()
    screen = Terminal(kernel, "--memory", "16K")
    screen.until(b"Ctrl-A x leaves")
    screen.keys(b"a")
    screen.until(b"\na")
    screen.process.send_signal(signal.SIGTERM)
    assert screen.process.wait(30) == 1
    assert screen.is_restored
    screen.close()


def test_a_terminal_that_goes_away(kernel: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    screen = Terminal(kernel, "--memory", "16K", "--checkpoint", kept, "--every", 10**12)
    screen.until(b"Ctrl-A x leaves")
    screen.keys(b"ab")
    screen.until(b"\nab")
    screen.close()
    assert screen.process.wait(30) == 1
    assert punchcard.machines.checkpoint.load(kept).mark.traffic.written == b"ab"


@pytest.mark.parametrize(("words", "message"), [
    ([], "Missing argument 'IMAGE'"), (["nothing"], "no such file: 'nothing'"),
    (["nothing", "--every", "7"], "--every needs --checkpoint FILE"),
    (["nothing", "--resume", "x"], "IMAGE cannot be used with --resume"),
    (["--resume", "x", "--memory", "16M"], "--memory cannot be used with --resume"),
    (["--resume", "x"], "no such file: 'x'"), (["nothing", "--memory", "17M"], "it must be a power of two"),
    (["nothing", "--misaligned", "maybe"], "'maybe' is not one of"),
])
def test_bad_input(words: list[str], message: str) -> None:
    found = invoke(*words)
    assert (found.exit_code, message in found.stderr) == (2, True), found.stderr


def test_files_that_cannot_be_written_are_refused_before_the_machine_is_built(kernel: Path, tmp_path: Path) -> None:
    """Nothing is said of a machine yet, and none is begun."""
    os.mkfifo(tmp_path / "pipe")
    for option, name, message in (("--checkpoint", "pipe", "a pipe or a device, not a checkpoint"),
                                  ("--checkpoint", "none/x", "No such file"), ("--stats", "none/x", "No such file")):
        found = invoke("nothing", option, tmp_path / name)
        assert (found.exit_code, message in found.stderr) == (2, True), found.stderr
    found = invoke(kernel, "--checkpoint", tmp_path / "new", "--stats", tmp_path / "new")
    assert "--stats and --checkpoint are both" in found.stderr
    assert not (tmp_path / "new").exists()


def test_without_standard_input(kernel: Path) -> None:
    """A closed one is an input that has ended: the kernel polls for ever, and the run ends where it is told to."""
    words = [sys.executable, "-m", "punchcard", "boot", kernel, "--memory", "16K", "--max-steps", "5000"]
    found = subprocess.run(["/bin/sh", "-c", 'exec "$@" <&-', "sh", *map(str, words)], capture_output=True, text=True,
                           check=False)
    assert (found.returncode, "stopped after 5,000 instructions, at 0x800" in found.stderr) == (1, True), found.stderr


def test_a_run_of_another_program_is_not_a_kernel(tmp_path: Path) -> None:
    path = tmp_path / "run"
    punchcard.run(punchcard.assemble(".data\na 1\n.code\nsubleq a, a, end\nend: halt\n"), checkpoint=path)
    found = invoke("--resume", path)
    assert (found.exit_code, "not of a kernel: use punchcard run --resume" in found.stderr) == (2, True)
