"""`punchcard run` of images: bytes out as they come, bytes in as they are asked for, and an honest exit status."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cases import EXAMPLES, file_with
from tests.command_line import assert_refused, invoke, started
from tests.image_cases import CASES, ECHO, ImageCase

SMALL = ("--memory", "16", "--bits", "8")
PROMPT_AND_ECHO = "14 -1 3 -1 15 6 15 -1 9 13 15 -1 0 0 62 0"  # writes >, reads, writes what it read; 15 > 0 goes on to 12


@pytest.fixture
def image(tmp_path: Path) -> Path:
    return file_with(tmp_path / "image.dec", " ".join(map(str, ECHO)))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_cases(case: ImageCase, tmp_path: Path) -> None:
    path = file_with(tmp_path / "image.dec", " ".join(map(str, case.words)))
    limit = () if case.max_steps is None else ("--max-steps", case.max_steps)
    ran = invoke("run", path, "--bits", case.word_bits, "--memory", case.memory, "--dialect", case.dialect, *limit,
                 "--stats", tmp_path / "stats.json", "--check", given=case.input)
    assert ran.stdout_bytes == case.output
    assert ran.exit_code == (0 if case.halted else 1)
    assert ran.stderr.count("\n") == 1 + (not case.halted)
    assert "the transformer agrees with the interpreter" in ran.stderr
    if case.fault is not None:
        assert f"instruction at {case.fault.program_counter} " in ran.stderr
        assert f"address {case.fault.address}, and the memory has {case.memory} cells" in ran.stderr
    stats = json.loads((tmp_path / "stats.json").read_text())
    assert (stats["halted"], stats["steps"]) == (case.halted, case.steps)
    assert stats["engine"]
    assert stats["steps_per_second"] >= 0


def test_input_from_a_file(image: Path, tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"abc")
    assert invoke("run", image, *SMALL, "--input", tmp_path / "in", given=b"xyz").stdout_bytes == b"abc"
    assert invoke("run", image, *SMALL, "--input", "-", given=b"xyz").stdout_bytes == b"xyz"
    assert invoke("run", image, *SMALL, given=b"xyz").stdout_bytes == b"xyz"


@pytest.mark.parametrize(("args", "message"), [
    (("--memory", "2"), "memory=2: with words of 16 bits a memory has 3 to 65536 cells"),
    (("--memory", "9"), "word 9 (12) is beyond the memory, which has 9 cells"),
    (("--bits", "3", "--memory", "8"), "line 1, column 4: 13 does not fit a word of 3 bits"),
    (("--bits", "32", "--memory", "16", "--dtype", "float32"), "needs sums of 38 significand bits, float32 has 24"),
    (("--design", "paper"), "--design paper is not for von-neumann machines: choose two-layer"),
    (("--set", "x=1"), "unknown label 'x'; the image has no names"),
    (("--heads", "2"), "--heads is not for .dec programs"),
    (("--check", "--no-check"), "--check and --no-check: choose one"),
    (("--input", "nowhere/in"), "cannot read 'nowhere/in': No such file or directory"),
    (("--memory", "16", "--stats", "nowhere/stats"), "cannot write 'nowhere/stats': No such file or directory"),
])
def test_bad_input_is_one_line_and_status_2(image: Path, args: tuple[str, ...], message: str) -> None:
    assert_refused(message, "run", image, *args)


@pytest.mark.parametrize(("option", "message"), [
    (("--input", "i"), "--input is not for subleq programs: they read nothing"),
    (("--dialect", "adds"), "--dialect is not for .subleq programs"),
])
def test_options_that_are_only_for_images(option: tuple[str, ...], message: str) -> None:
    assert_refused(message, "run", EXAMPLES / "add.subleq", *option)


def test_json_trace_and_labels(tmp_path: Path) -> None:
    """What every machine has: a report as JSON, a line for each loop, and values by name."""
    path = file_with(tmp_path / "count.asq", "x y; z z (-1)\n. x:3 y:10 z:0")
    ran = invoke("run", path, "--memory", "16", "--bits", "8", "--set", "y=7", "--json", "--trace")
    facts = json.loads(ran.stdout)
    assert (ran.exit_code, facts["memory"], facts["halted"], facts["steps"]) == (0, {"x": 3, "y": 4, "z": 0}, True, 2)
    assert (facts["output"], facts["fault"], facts["reason"], facts["agrees"]) == ("", None, "halted", None)
    assert ran.stderr.splitlines()[0] == "loop     1  warm-up"
    assert "y = 7 - 3 = 4, goto 3" in ran.stderr
    assert "z = 0 - 0 = 0, goto" in ran.stderr


def test_a_conversation(tmp_path: Path) -> None:
    """Output arrives before input is given, through pipes and without an end of input."""
    path = file_with(tmp_path / "image.dec", PROMPT_AND_ECHO)
    with started("run", path, *SMALL, stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.read(1) == b">"
        process.stdin.write(b"!")
        process.stdin.flush()
        assert process.stdout.read(1) == b"!"
        process.kill()


@pytest.mark.parametrize("waiting", [True, False])
def test_ctrl_c(tmp_path: Path, waiting: bool) -> None:
    """While it waits for input, and while it computes."""
    path = file_with(tmp_path / "image.dec", PROMPT_AND_ECHO if waiting else "9 -1 3 8 8 3 0 0 0 62")
    with started("run", path, *SMALL, stdin=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.read(1) == b">"
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
    assert (process.returncode, output) == (1, b"")
    assert errors.startswith(f"punchcard: {path}: interrupted after ".encode())
    assert errors.count(b"\n") == 1


def test_nobody_reads_the_output(tmp_path: Path) -> None:
    path = file_with(tmp_path / "image.dec", "9 -1 3 8 8 0 0 0 0 62")
    with started("run", path, *SMALL, stdin=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.read(1) == b">"
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""
        assert process.wait(timeout=60) == 141
