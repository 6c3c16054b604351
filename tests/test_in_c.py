"""The interpreters in C are the interpreters; without a compiler there are none, and nothing else is missing."""

from __future__ import annotations

import json
import random
import stat
from pathlib import Path

import pytest

import punchcard
from punchcard.errors import CompilerError
from punchcard.machines import in_c
from punchcard.machines.subleq.machine import SubleqMachine
from punchcard.machines.subleq.workloads import multiply
from punchcard.machines.von_neumann.in_c import ImageInC
from punchcard.machines.von_neumann.isa import DIALECTS
from punchcard.machines.von_neumann.oracle import ImageInterpreter
from tests.cases import EXAMPLES, file_with
from tests.command_line import invoke
from tests.random_programs import random_image, random_program

with_compiler = pytest.mark.skipif(in_c.compiler() is None, reason="there is no C compiler here")


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    in_c.compile_library.cache_clear()
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CC", raising=False)


@with_compiler
@pytest.mark.parametrize("word_bits", [2, 8, 16, 40])
def test_subleq_is_the_interpreter(word_bits: int) -> None:
    rng = random.Random(word_bits)
    machine = SubleqMachine(word_bits=word_bits, memory=9, instructions=16)
    for _ in range(30):
        program = random_program(rng, word_bits, 9, 16)
        quick, oracle = machine.in_c(program), machine.oracle(program, lambda: -1, lambda byte: None)
        for steps in (1, 7, 300):
            quick.run(steps)
            oracle.run(oracle.steps + steps)
            assert quick.state == oracle.state


@with_compiler
@pytest.mark.parametrize("dialect", DIALECTS)
def test_images_are_the_interpreter(dialect: str) -> None:
    rng = random.Random(dialect)
    word_bits, memory = DIALECTS[dialect].sizes(8, DIALECTS[dialect].memory or 64)
    for _ in range(30):
        image = random_image(rng, word_bits, 64)
        quick, oracle = (kind(image, word_bits, memory, dialect=DIALECTS[dialect]) for kind in (ImageInC, ImageInterpreter))
        for steps in (1, 7, 300):
            quick.run(steps)
            oracle.run(steps)
            assert quick.state == oracle.state
        for name in ("stop", "fault", "steps", "output"):
            assert getattr(quick, name) == getattr(oracle, name)


def test_without_a_compiler(no_compiler: None) -> None:
    with pytest.raises(CompilerError, match="there is no C compiler: install one of cc, gcc, clang, or name one in CC"):
        SubleqMachine().in_c(multiply())
    result = invoke("bench", "--quick", "--json", "--machine", "subleq", "--engine", "lowered", "--seconds", "0.002")
    assert result.exit_code == 0
    assert [record["engine"] for record in json.loads(result.stdout)] == ["dense", "lowered", "python"]
    assert result.stderr.count("c is left out: there is no C compiler") == 1


def test_a_compiler_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_c.compile_library.cache_clear()
    broken = file_with(tmp_path / "broken", "#!/bin/sh\necho 'out of order' >&2\nexit 1\n")
    broken.chmod(broken.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("CC", f"{broken} -m64")
    with pytest.raises(CompilerError, match="broken -m64 does not compile the interpreter: out of order"):
        SubleqMachine().in_c(multiply())


def test_a_compiler_that_no_shell_could_call(monkeypatch: pytest.MonkeyPatch) -> None:
    in_c.compile_library.cache_clear()
    monkeypatch.setenv("CC", "'x")
    with pytest.raises(CompilerError, match=r"CC=\"'x\": No closing quotation: write a command as a shell takes it"):
        SubleqMachine().in_c(multiply())


@with_compiler
def test_bench_measures_it() -> None:
    result = invoke("bench", "--quick", "--json", "--machine", "von-neumann", "--engine", "lowered", "--seconds", "0.002")
    records = {record["engine"]: record for record in json.loads(result.stdout)}
    assert records.keys() == {"dense", "lowered", "python", "c"}
    for record in records.values():
        assert record["ratio_to_c"] == pytest.approx(record["steps_per_second"] / records["c"]["steps_per_second"])
    table = invoke("bench", str(EXAMPLES / "primes.subleq"), "--quick", "--engine", "lowered", "--design", "two-layer")
    assert "times c" in table.stdout


def test_a_machine_without_one() -> None:
    program = punchcard.load(EXAMPLES / "newton.fleq")
    assert punchcard.build(program).in_c(program) is None
