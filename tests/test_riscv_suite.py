"""The self-checking programs on every interpreter."""

from __future__ import annotations

from functools import cache

import pytest

from punchcard.machines.in_c import compiler
from punchcard.machines.riscv.fast import QuickRiscv
from punchcard.machines.riscv.in_c import RiscvInC
from punchcard.machines.riscv.isa import INSTRUCTIONS
from punchcard.machines.riscv.languages.assembly.assembler import assemble
from punchcard.machines.riscv.oracle import RiscvInterpreter
from punchcard.machines.riscv.program import RiscvProgram
from tests.riscv_suite import suite

INTERPRETERS = [RiscvInterpreter, QuickRiscv,
                pytest.param(RiscvInC, marks=pytest.mark.skipif(compiler() is None, reason="there is no C compiler"))]


@cache
def assembled(text: str, base: int) -> RiscvProgram:
    return assemble(text, base=base)


def status(make: type[RiscvInterpreter], text: str, base: int = 0) -> int | None:
    run = make(assembled(text, base), 1 << 10)
    run.run(10_000)
    assert run.fault is None
    return run.calls.status


def test_every_instruction_has_a_program() -> None:
    assert {*suite()} == {one.name for one in INSTRUCTIONS} - {"ebreak"}
    assert {*suite(multiply=False)} == {one.name for one in INSTRUCTIONS if one.extension != "M"} - {"ebreak"}


@pytest.mark.parametrize("make", INTERPRETERS)
def test_the_suite(make: type[RiscvInterpreter]) -> None:
    for base in (0, 0x80000000):
        assert {name: status(make, text, base) for name, text in suite().items()} == dict.fromkeys(suite(), 0)


@pytest.mark.parametrize("make", INTERPRETERS)
def test_a_wrong_interpreter_fails(make: type[RiscvInterpreter]) -> None:
    """The same programs with another instruction in each one's place are noticed."""
    for name, other in (("add", "sub"), ("sra", "srl"), ("blt", "bltu"), ("lb", "lbu"), ("sh", "sb"), ("mulh", "mulhu")):
        assert status(make, suite()[name].replace(f" {name} ", f" {other} ")), (name, other)
