"""The kernel of the examples: traps, the timer, two tasks, locks and the power switch, on a transformer."""

from __future__ import annotations

import runpy
import shutil
from pathlib import Path
from typing import Literal

import pytest

import punchcard
from tests.cases import ROOT, soaked

FOLDER = ROOT / "examples" / "riscv" / "kernel"
KERNEL, SESSION = FOLDER / "kernel.elf", (FOLDER / "session.txt").read_bytes()
MEMORY = "16K"
pytestmark = pytest.mark.usefixtures("shared_code")


@pytest.mark.parametrize("check", [None, soaked("end")])
def test_a_session(check: Literal["end"] | None) -> None:
    """Every command once: the console shows what each is for. Compared, the card is the interpreter's at the end."""
    report = punchcard.boot(KERNEL, memory=MEMORY, input=SESSION, check=check)
    console = report.result.output.decode().replace("\r\n", "\n")
    assert report.agrees is (None if check is None else True)
    assert (report.result.reason, report.result.status) == ("halted", 0)
    for shown in ("A kernel on a transformer. Type help.\n> help\nprimes N", "worker: primes found: 62\n",
                  "> add\nwith a lock: 1000\nwith lr and sc: 1000\n", "shell: illegal instruction at 0x80000",
                  ", value 0xffffffff; it begins again\n", "no memory to load from", "misaligned jump", "breakpoint at",
                  "> nonsense\nwhat? Type help.\n> off\n"):
        assert shown in console
    ticks = [int(line.split()[1]) for line in console.splitlines() if line.startswith(("shell ", "worker "))]
    assert len(ticks) == 4
    assert all(ticks[2:])


def test_a_part_of_it_after_every_loop() -> None:
    report = punchcard.boot(KERNEL, memory=MEMORY, max_steps=600, check="lockstep")
    assert report.agrees
    assert report.result.output.startswith(b"A kernel on")


@pytest.mark.skipif(shutil.which("riscv64-unknown-elf-gcc") is None, reason="there is no gcc for RISC-V")
def test_the_binary_is_that_of_the_sources(tmp_path: Path) -> None:
    shutil.copytree(FOLDER, tmp_path, dirs_exist_ok=True)
    (tmp_path / KERNEL.name).unlink()
    runpy.run_path(str(FOLDER.parent / "build.py"))["build_kernel"](tmp_path)
    assert (tmp_path / KERNEL.name).read_bytes() == KERNEL.read_bytes()
