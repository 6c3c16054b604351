"""Tests for bare machines, which end by a number in `tohost`: on the interpreters, on the weights, and by command."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import punchcard
from punchcard.budget import HELD
from punchcard.card.layout import Pattern
from punchcard.card.packed import least_bytes, packed_bytes
from punchcard.errors import SizeError
from punchcard.machines.in_c import compiler
from punchcard.machines.riscv.languages import elf
from punchcard.machines.riscv.privileged import PrivilegedInterpreter
from punchcard.machines.riscv.privileged_in_c import PrivilegedInC
from punchcard.machines.riscv.program import RiscvProgram
from tests.cases import soaked
from tests.command_line import invoke
from tests.riscv_bare_cases import BARE_TESTS, bare, case
from tests.riscv_privileged_runs import USUAL, machine_of

pytestmark = pytest.mark.usefixtures("shared_code")
FAILS = bare(case(3, 5, "li a0, 4"))


def number_of(program: RiscvProgram, by: type[PrivilegedInterpreter]) -> int:
    """What a program leaves in `tohost`."""
    ran = by(program, USUAL)
    ran.run(5000)
    assert ran.halted
    assert program.tohost_word is not None
    return int(ran.memory[program.tohost_word])


@pytest.mark.parametrize("name", BARE_TESTS)
def test_on_the_interpreters(name: str) -> None:
    assert number_of(BARE_TESTS[name], PrivilegedInterpreter) == 1
    if compiler() is not None:
        assert number_of(BARE_TESTS[name], PrivilegedInC) == 1


def test_a_case_that_fails() -> None:
    assert number_of(FAILS, PrivilegedInterpreter) == 7


@pytest.mark.parametrize("name", [soaked(name) if name == "control registers" else name for name in BARE_TESTS])
def test_on_the_weights(name: str) -> None:
    found = punchcard.run(BARE_TESTS[name], machine_of(), engine="lowered", max_steps=5000, check="end")
    assert found.agrees, found.why
    assert (found.result.reason, found.result.status) == ("halted", 0)


def test_the_number_is_the_status_and_a_run_that_has_ended_stays_so(tmp_path: Path) -> None:
    path = tmp_path / "run"
    found = punchcard.run(FAILS, machine_of(), engine="lowered", checkpoint=path, max_steps=5000).result
    again = punchcard.resume(path, machine_of(), max_steps=6000).result
    for each in (found, again):
        assert (each.reason, each.status, each.loops) == ("halted", 3, found.loops)


def test_by_command(tmp_path: Path) -> None:
    """Extensions that the machine lacks are no reason to refuse such a file: their instructions trap."""
    path = tmp_path / "test.elf"
    words = ["boot", str(path), "--memory", "16K", "--max-steps", "5000"]
    for program, status in ((BARE_TESTS["illegal words"], 0), (FAILS, 3)):
        path.write_bytes(elf.write(program))
        found = invoke(*words)
        assert found.exit_code == status, found.output


@pytest.mark.parametrize("address", [None, 0x80000002, 0x90000000])
def test_only_a_word_of_the_program_is_told(address: int | None) -> None:
    symbols = {name: at for name, at in FAILS.symbols.items() if name != "tohost"}
    given = symbols if address is None else {**symbols, "tohost": address}
    assert replace(FAILS, symbols=given).tohost_word is None


def test_the_memory_of_a_run_counts_what_is_held() -> None:
    """Of the fields of a machine with traps, few have more than one column."""
    machine = machine_of()
    held, whole = (of(machine.layout, "float64") for of in (least_bytes, packed_bytes))
    assert 4 * USUAL < held < whole / 5
    assert machine.memory_to_run() == machine.memory_to_build() + HELD * held
    assert machine.memory_to_run("dense") > machine.memory_to_run()


def test_a_pattern_of_another_column() -> None:
    layout = machine_of().layout
    with pytest.raises(SizeError, match="'memory' has columns 0 to 4095"):
        layout.pattern_column(Pattern("memory", "memory", (1,) * 32, 4096))
