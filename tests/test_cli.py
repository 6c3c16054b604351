"""The command line from end to end: what it prints where, and its exit status."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from punchcard.cli.options import DTYPES as OFFERED
from punchcard.engines import ENGINES, NO_CONTROLS, Controls, Run
from punchcard.engines.dense import Dense
from punchcard.machines.registry import built_in
from punchcard.transformer.precision import DTYPES
from tests.cases import DESIGNS, EXAMPLES, EXPECTED, file_with
from tests.command_line import assert_refused, invoke, started

MULTIPLY = str(EXAMPLES / "multiply.subleq")


def test_choices_are_what_is_built() -> None:
    for kind in built_in():
        assert sorted(kind.machine_class().designs) == sorted(kind.designs)
    assert tuple(DTYPES) == OFFERED


@pytest.mark.parametrize("design", DESIGNS)
def test_run(design: str) -> None:
    result = invoke("run", MULTIPLY, "--design", design, status=0)
    assert "product  63" in result.stdout
    assert "halted after 27 instructions" in result.stdout
    assert "the transformer agrees with the interpreter" in result.stdout
    assert result.stderr == ""
    data = json.loads(invoke("run", MULTIPLY, "--json", "--design", design).stdout)
    assert (data["halted"], data["steps"], data["agrees"]) == (True, 27, True)
    assert data["memory"] == EXPECTED["multiply.subleq"][0]


def test_run_options() -> None:
    result = invoke("run", MULTIPLY, "--json", "--bits", "9", "--memory", "20", "--instructions", "30", "--dtype",
                    "float32", "--set", "a=0x0b", "--set", "b=-3", "--set", "product='A'")
    data = json.loads(result.stdout)
    assert (data["word_bits"], data["columns"], data["dtype"]) == (9, 53, "float32")
    assert data["memory"]["product"] == 65 + 11, "b is not positive, so a is added once"


def test_help_is_in_the_order_of_use() -> None:
    """Commands with their whole summaries; options in groups, and those of a machine or a language if they are asked for."""
    text = " ".join(invoke("--help").stdout.split())
    assert "run Run a program on a looped transformer, and compare it with an interpreter." in text
    assert text.index(" run Run") < text.index(" view Step") < text.index(" calc Compute") < text.index(" asm Assemble")
    general, of_c, every = (" ".join(invoke("run", *words, "--help").stdout.split()) for words in ((), ("x.c",), ("--all",)))
    assert all(title in general for title in ("The program:", "The machine:", "The run:", "Output:"))
    assert "--cflags" not in general
    assert all(name in general for name in ENGINES)
    assert "--cflags" in of_c
    assert "--tape" not in of_c
    assert "--tape" in every
    assert "--design [paper|two-layer|one-layer|compact|three-layer]" in general
    assert "--design [three-layer|two-layer]" in of_c
    assert general.index("Output:") < general.index("-h, --help Show")


def test_the_help_of_a_view_says_what_a_view_opens() -> None:
    for command, design in (("run", "paper"), ("view", "two-layer"), ("debug", "two-layer")):
        of_file, of_all = (" ".join(invoke(command, *words, "--help").stdout.split()) for words in ((MULTIPLY,), ()))
        assert f"design. [default: {design}]" in of_file
        assert f"design. [default: subleq {design}, fleq compact" in of_all.replace("two- layer", "two-layer")


def test_a_rate_is_shown_where_it_means_something() -> None:
    long = ("run", EXAMPLES / "primes.subleq", "--design", "two-layer", "--set", "n=30")
    assert " steps a second" in invoke(*long).stdout
    assert " steps a second" not in invoke(*long, "--max-steps", "1500").stdout
    assert " steps a second" not in invoke(*long, "--check").stdout


@pytest.mark.parametrize("engine", ENGINES)
def test_engines(engine: str) -> None:
    result = invoke("run", MULTIPLY, "--engine", engine, "--design", "two-layer")
    assert (result.exit_code, result.stderr) == (0, "")
    data = json.loads(invoke("run", MULTIPLY, "--engine", engine, "--design", "two-layer", "--json").stdout)
    assert (data["memory"]["product"], data["agrees"]) == (63, True)
    assert f"engine {data['engine']}" in result.stdout
    assert " steps a second" not in result.stdout, "28 loops are the time of starting"
    assert data["engine"] == engine or engine == "auto"
    assert data["steps_per_second"] == pytest.approx(data["loops"] / data["seconds"])
    assert (data["compile_seconds"] > 0) == (data["engine"] == "lowered") == ("compiled in " in result.stdout)
    assert [line for line in result.stdout.splitlines() if line.startswith("note: ")] == [
        f"note: {note}" for note in data["notes"]]
    assert (data["begun"], data["checkpoint"]) == (0, None)


def test_an_unchecked_run_is_not_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fast engine enters Python after a loop only when something must see it."""
    watched: list[bool] = []

    class Spy(Dense):
        def run(self, loops: int, controls: Controls = NO_CONTROLS) -> Run:
            watched.append(controls.watch is not None)
            return super().run(loops, controls)

    monkeypatch.setitem(ENGINES, "auto", Spy)
    for arguments, expected in (
        ([MULTIPLY], False), ([MULTIPLY, "--no-check"], False), ([str(EXAMPLES / "newton.fleq"), "--no-check"], False),
        ([str(EXAMPLES / "newton.fleq")], True), ([MULTIPLY, "--trace", "--engine", "auto"], True),
    ):
        watched.clear()
        assert invoke("run", *arguments).exit_code == 0
        assert watched == [expected], arguments
    assert json.loads(invoke("run", MULTIPLY, "--json", "--no-check").stdout)["agrees"] is None


def test_checkpoints(tmp_path: Path) -> None:
    """Where a run is kept, what is said of it, and that a resumed trace goes on where the first ended."""
    path = str(tmp_path / "a run")
    first = invoke("run", MULTIPLY, "--checkpoint", path, "--every", "4", "--max-steps", "10", "--trace", status=1)
    assert first.stderr.splitlines()[-1] == (
        f"punchcard: the run is saved: continue with punchcard run --resume '{path}' --max-steps N, with a larger N")
    second = invoke("run", "--resume", path, "--max-steps", "1000", "--trace", status=0)
    assert "resumed after 10 loops" in second.stdout
    whole = invoke("run", MULTIPLY, "--trace")
    assert first.stderr.splitlines()[:10] + second.stderr.splitlines() == whole.stderr.splitlines()
    data = json.loads(invoke("run", "--resume", path, "--json").stdout)
    assert (data["halted"], data["steps"], data["begun"], data["checkpoint"]) == (True, 27, 28, path)


def test_a_trace_is_of_the_equation_itself_and_goes_to_standard_error() -> None:
    for chosen, engine in (((), "dense"), (("--engine", "scratchpad"), "scratchpad")):
        result = invoke("run", MULTIPLY, "--trace", "--json", *chosen)
        data, lines = json.loads(result.stdout), result.stderr.splitlines()
        assert (data["steps"], data["engine"], len(lines)) == (27, engine, 28)
    assert lines[1].split() == "loop 2 [1] subleq minus_a, product, 2 product = 0 - -7 = 7, goto 2".split()
    assert lines[-1].split() == "loop 28 [4] halt".split()
    assert invoke("run", MULTIPLY, "--trace", "--design", "two-layer").stderr.startswith("loop     1  warm-up")


def test_not_halting_is_status_1() -> None:
    result = invoke("run", MULTIPLY, "--max-steps", "10", "--json")
    data = json.loads(result.stdout)
    assert result.exit_code == 1
    assert (data["halted"], data["steps"], data["agrees"]) == (False, 10, True)
    assert "the limit of --max-steps was reached: instruction 1 would have been next" in result.stderr


def test_disagreeing_is_status_1(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broken oracle: the difference is shown and the status is 1."""
    from punchcard.machines.subleq.oracle import SubleqInterpreter

    def step(self: SubleqInterpreter) -> None:
        self.memory[0] += 1
        self.steps += 1

    monkeypatch.setattr(SubleqInterpreter, "step", step)
    result = invoke("run", MULTIPLY, status=1)
    assert "DISAGREES" in result.stdout
    assert "a is 7, the interpreter has 34" in result.stderr


def test_info_of_a_file() -> None:
    data = json.loads(invoke("info", MULTIPLY, "--json", "--bits", "8").stdout)
    assert (data["memory"], data["instructions"], data["word_bits"]) == (6, 5, 8)
    shown = invoke("info", MULTIPLY).stdout
    assert "heads per layer" in shown
    assert "1, 2, 0, 0, 0, 1, 0, 0, 0" in shown


def test_asm_and_disasm(tmp_path: Path) -> None:
    assembled = tmp_path / "multiply.json"
    assert invoke("asm", MULTIPLY, "-o", str(assembled)).exit_code == 0
    text = invoke("disasm", str(assembled)).stdout
    source = file_with(tmp_path / "again.subleq", text)
    assert invoke("asm", str(source)).stdout == assembled.read_text() == invoke("asm", MULTIPLY).stdout
    assert json.loads(invoke("run", str(assembled), "--json").stdout)["memory"]["product"] == 63
    assert "c_minus_one" in invoke("disasm", str(EXAMPLES / "multiply.minsky")).stdout


@pytest.mark.parametrize(("arguments", "message"), [
    (["run", "missing.subleq"], "no such file: 'missing.subleq'"),
    (["info", "missing.subleq"], "no such file"),
    (["asm", "missing.subleq"], "no such file"),
    (["disasm", "missing.subleq"], "no such file"),
    (["run", MULTIPLY, "--bits", "1"], "word_bits=1"),
    (["run", MULTIPLY, "--bits", "30", "--dtype", "float32"], "float32 has 24"),
    (["run", MULTIPLY, "--set", "x=1"], "unknown memory cell 'x'"),
    (["run", MULTIPLY, "--set", "a"], "--set 'a': write NAME=VALUE"),
    (["run", MULTIPLY, "--set", "a=1 2"], "unexpected '2' after the value"),
    (["run", MULTIPLY, "--set", "a=ten"], "a value must be a decimal"),
    (["run", MULTIPLY, "--set", "a=1", "--set", "a=2"], "--set 'a=2': a is set twice"),
    (["run", MULTIPLY, "--set", "a=0x" + "f" * 5000], "has 5002 digits"),
    (["run", str(EXAMPLES / "multiply.minsky"), "--set", "x=-1"], "a register holds an integer, 0 or more"),
    (["run", MULTIPLY, "--memory", "100000", "--engine", "dense"], "the dense engine needs"),
    (["run", MULTIPLY, "--engine", "dence"], "unknown engine 'dence' (did you mean 'dense'?)"),
    (["run", MULTIPLY, "--every", "5"], "--every needs --checkpoint FILE"),
    (["run", MULTIPLY, "--checkpoint", "no/such/folder/x"], "cannot write"),
    (["run", MULTIPLY, "--resume", "x"], "FILE cannot be used with --resume"),
    (["run", "--resume", "x", "--bits", "8"], "--bits cannot be used with --resume: the checkpoint has the program and"),
    (["run", "--resume", "x", "--dtype", "float64"], "--dtype cannot be used with --resume"),
    (["run", "--resume", "x", "--set", "a=1"], "--set cannot be used with --resume"),
    (["run", "--resume", "no/such/file"], "no such file: 'no/such/file'"),
    (["run", "--resume", MULTIPLY], "is not a safetensors file"),
    (["run", MULTIPLY, "--heads", "2"], "--heads is not for .subleq programs"),
    (["run", MULTIPLY, "--design", "compact"], "--design compact is not for subleq machines"),
    (["info", MULTIPLY, "--memory", "2"], "the program has 6 memory cells, the machine has room for 2"),
    (["info", MULTIPLY, "--machine", "fleq"], "is a subleq program"),
    (["info", str(EXAMPLES / "newton.fleq"), "--machine", "subleq", "--max-memory", "1M"], "is a fleq program"),
    (["info", "--functions", "add"], "--functions is not for subleq machines"),
    (["asm", MULTIPLY, "-o", "no/such/folder/x"], "cannot write"),
    (["asm", MULTIPLY, "-o", "."], "cannot write '.'"),
    (["run"], "Missing argument 'FILE'"),
    (["run", MULTIPLY, "--design", "huge"], "'huge' is not one of"),
    (["fly"], "No such command 'fly'"),
    (["run", MULTIPLY, "--max-steps", "-1"], "--max-steps"),
    (["run", MULTIPLY, "--bits", "abc"], "'abc' is not a valid integer"),
])
def test_bad_arguments(arguments: list[str], message: str) -> None:
    assert_refused(message, *arguments)


def test_output_files_are_replaced_whole(tmp_path: Path) -> None:
    """A link stays a link, the mode is kept, and nothing is left behind."""
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    real.write_text("old")
    real.chmod(0o600)
    link.symlink_to(real)
    assert invoke("asm", MULTIPLY, "-o", str(link)).exit_code == 0
    assert link.is_symlink()
    assert real.read_text() == invoke("asm", MULTIPLY).stdout == invoke("asm", MULTIPLY, "-o", "-").stdout
    assert real.stat().st_mode & 0o777 == 0o600
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link.json", "real.json"]


def test_a_reader_that_goes_away() -> None:
    """`punchcard ... | head` ends in silence with the status of a broken pipe, whoever prints; a full disk is told."""
    for arguments in (["info", MULTIPLY], ["run", MULTIPLY]):
        with started(*arguments) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.close()  # long before the first line is written
            assert (process.stderr.read(), process.wait(timeout=60)) == (b"", 141), arguments
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-m", "punchcard", "disasm", MULTIPLY], stdout=full, stderr=subprocess.PIPE,
                              text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "punchcard: cannot write to standard output: No space left on device\n")


def test_help_does_not_import_torch() -> None:
    code = ("import sys\nfrom punchcard.cli import main\n"
            "try: main(['--help'])\nexcept SystemExit: pass\n"
            "assert not {'torch', 'numpy', 'rich'} & {*sys.modules}")
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_interrupt_stops_cleanly(tmp_path: Path) -> None:
    """Ctrl-C in a run that never ends: where it was, status 1, no traceback."""
    path = tmp_path / "endless.subleq"
    path.write_text(".data\nx 1\none -1\n.code\nloop: subleq one, x\nsubleq one, x, loop\nsubleq x, x, loop\n")
    process = started("run", path, "--max-steps", 100_000_000, "--trace", text=True)
    assert process.stderr is not None
    assert process.stderr.readline().startswith("loop     1"), "the run has begun"
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "interrupted after" in out
    assert "the transformer agrees with the interpreter" in out
    assert "punchcard: interrupted: instruction" in err
    assert "Traceback" not in err
