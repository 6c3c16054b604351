"""Arguments of RISC-V programs, and where memory and stack are: null pointers, full stacks, the ends of the address space.

Nothing here needs a compiler for RISC-V, but for the tests that say so.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest

import punchcard
from punchcard.errors import ProgramError, PunchcardError
from punchcard.machines.riscv.argument_vector import block_at
from punchcard.machines.riscv.languages import c, elf
from punchcard.machines.riscv.languages.assembly.assembler import assemble
from punchcard.machines.riscv.machine import RiscvMachine
from punchcard.machines.riscv.oracle import RiscvInterpreter
from punchcard.machines.riscv.program import RiscvProgram, Segment
from tests.cases import EXAMPLES, soaked
from tests.command_line import assert_refused, invoke
from tests.riscv_runs import COMPILERS, interpret

ECHO = """
.base 0x1000
        lw s0, 0(sp)        # argc, as Linux has it
        addi s1, sp, 4      # argv
        bne s1, a1, wrong
next:   addi s1, s1, 4
        addi s0, s0, -1
        lw a1, 0(s1)
        beqz a1, done
        li a2, -1
count:  addi a2, a2, 1
        add t0, a1, a2
        lbu t0, 0(t0)
        bnez t0, count
        li a0, 1
        li a7, 64
        ecall
        j next
done:   lw t0, 4(s1)        # the environment is empty
        add a0, s0, t0
        li a7, 93
        ecall
wrong:  ebreak
"""
NULL = ".base 0x1000\nli a0, 1\nlw a1, {}(zero)\n"
FULL = ".base 0x1000\nagain: addi sp, sp, -16\nsw ra, 12(sp)\njal again\n"


@cache
def machine(design: str = "three-layer") -> RiscvMachine:
    return RiscvMachine(memory=64, base=0x1000, design=design)


def program(text: str = ECHO) -> RiscvProgram:
    return assemble(text, "folder/echo.s")


def test_the_block_on_the_stack() -> None:
    """By hand: argc, two addresses, three ends, the texts."""
    words = [2, 0x11C, 0x11F, 0, 0, 0, 0]
    assert block_at(0x100, ["ab", "ü"]) == b"".join(word.to_bytes(4, "little") for word in words) + b"ab\0\xc3\xbc\0"
    called = program().with_arguments(["one", "", "two words"])
    assert called.arguments == ("echo.s", "one", "", "two words")
    assert program().arguments == ()
    assert program().registers(64)[2] == 0x1100, "without arguments the stack begins at the end"
    assert program().registers(64)[11] == 0
    assert called.registers(64)[11] == called.registers(64)[2] + 4
    assert called.registers(64)[2] % 16 == 0


@pytest.mark.parametrize("design", ["three-layer", soaked("two-layer")])
def test_a_program_on_the_transformer_sees_its_arguments(design: str) -> None:
    called = program().with_arguments(["one", "", "two"])
    report = punchcard.run(called, machine(design), engine="scratchpad", check="lockstep")
    assert report.ok, report.why
    assert (report.result.output, report.result.status) == (b"onetwo", 0)


def test_arguments_on_the_command_line(tmp_path: Path) -> None:
    """Of a run, a trace, a check, a checkpoint, and its rest, which has them from the file."""
    file, saved = tmp_path / "echo.s", tmp_path / "run.checkpoint"
    file.write_text(ECHO)
    sizes = ["--memory", "64", "--engine", "scratchpad"]
    for words in (["--", "one", "-x"], ["--argument", "one", "--", "-x"]):
        ran = invoke("run", file, *sizes, *words)
        assert (ran.stdout, ran.exit_code) == ("one-x", 0)
    ran = invoke("run", *sizes, "--check", "--trace", "--", file, "one")
    assert (ran.stdout, ran.exit_code) == ("one", 0)
    assert "[next]" in ran.stderr
    ran = invoke("run", file, *sizes, "--max-steps", "25", "--checkpoint", saved, "--", "one", "two", status=1)
    assert_refused("--argument cannot be used with --resume", "run", "--resume", saved, "--argument", "x")
    assert_refused("FILE cannot be used with --resume", "run", "--resume", saved, "--", "x")
    ran = invoke("run", "--resume", saved, "--max-steps", "1000", "--json")
    assert json.loads(ran.stdout)["output"] == "onetwo"
    assert_refused("--argument 'x': subleq programs take no arguments", "run", EXAMPLES / "multiply.subleq", "--", "x")
    assert_refused("a second FILE is not for .s programs", "run", file, file)
    assert_refused("--argument 'x': it needs a program as FILE", "export", "--to", "safetensors", "-o",
                   tmp_path / "out", "--argument", "x")


def test_arguments_that_are_refused() -> None:
    for argument, message in (("a\0b", "has a character 0"), ("\ud800", "is not text")):
        with pytest.raises(ProgramError, match=f"echo.s: the argument .* {message}"):
            program().with_arguments([argument])
    with pytest.raises(PunchcardError, match="arguments='one two': it must be a list, each item a text"):
        program().with_arguments("one two")
    message = r"and 416 bytes of arguments\), the memory has 64: use a memory of 1\d\d or more"
    with pytest.raises(ProgramError, match=message):
        machine().pack(program().with_arguments(["x" * 380]))


def test_bytes_of_a_name_that_is_not_utf_8() -> None:
    called = program().with_arguments([b"\xff".decode("utf-8", "surrogateescape")])
    assert interpret(called, memory=64).output == b"\xff"
    assert machine().restore(machine().store(called)) == called


def test_a_compiled_program_has_a_name_and_takes_arguments() -> None:
    """A prebuilt binary."""
    rpn = punchcard.load(EXAMPLES / "riscv" / "bin" / "rpn.elf", RiscvProgram)
    assert rpn.arguments == ("rpn.elf",)
    assert interpret(rpn.with_arguments(["6", "7", "x"])).output == b"6 7 x = 42\n"
    ran = interpret(rpn.with_arguments(["6", "+"]))
    assert (ran.output, ran.errors, ran.status) == (b"6 + ", b"a number is missing\n", 2)


@pytest.mark.parametrize("cc", COMPILERS)
@pytest.mark.parametrize("libc", ["own", soaked(None)])
def test_the_heap_leaves_the_arguments_alone(cc: str, libc: str | None) -> None:
    text = """#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static void *volatile block;
int main(int argc, char **argv, char **environment)
{
    for (int size = 4096; size > 8; size /= 2)
        while ((block = malloc(size)) != NULL)
            memset(block, 0xFF, size);
    printf("%d %s %s %d %d\\n", argc, argv[0], argv[argc - 1], argv[argc] == NULL, environment[0] == NULL);
    return getenv("PATH") != NULL;
}"""
    made = c.assemble(text, "x/heap.c", cc=cc, libc=libc, memory=1 << 13)
    ran = interpret(made.with_arguments(["one", "two"]), memory=1 << 13)
    assert (ran.output, ran.status) == (b"3 heap.c two 1 1\n", 0)


# Null pointers and stacks


@pytest.mark.parametrize(("text", "message"), [
    (NULL.format(0), "load out of range at 0x1004 (folder/echo.s:3): lw a1, 0(zero) uses address 0x0 (a null pointer)"),
    (NULL.format(2044), "load out of range at 0x1004 (folder/echo.s:3): lw a1, 2044(zero) uses address 0x7fc "
                        "(a null pointer)"),
    (".base 0x1000\nnop\njr zero\n", "fetch out of range at 0x0: there is no memory at address 0x0 (a null pointer)"),
    (".base 0x1000\nnop\nlui a0, 8\nsw a0, 0(a0)\n", "store out of range at 0x1008 (folder/echo.s:4): sw a0, 0(a0) uses "
                                                     "address 0x8000"),
    (FULL, "store out of range at again+4 (0x1004, folder/echo.s:3): sw ra, 12(sp) uses address 0xffc (the stack is full: "
           "sp is 0xff0, and the memory is 0x1000 to 0x10ff)"),
])
def test_faults_that_have_a_cause(text: str, message: str) -> None:
    """On the interpreter and on the card."""
    plain = RiscvInterpreter(program(text), 64)
    plain.run(100)
    assert str(plain.fault) == message
    report = punchcard.run(program(text), machine(), engine="scratchpad", max_steps=100)
    assert str(report.result.fault) == message


@pytest.mark.parametrize("cc", COMPILERS)
@pytest.mark.parametrize("libc", ["own", soaked(None)])
def test_a_null_pointer_and_a_full_stack_in_c(cc: str, libc: str | None) -> None:
    """The stack is found at the very store that does not fit: variables, heap and code are as they were."""
    text = """#include <stdlib.h>
static int *volatile nothing;
static volatile unsigned kept = 0x12345678;
static int sink(int n) { volatile char room[64]; room[0] = (char)n; return n == 0 ? 0 : sink(n - 1) + room[0]; }
int main(int argc, char **argv)
{
    if (argc == 1)
        return *nothing;
    return sink(atoi(argv[1])) & (int)kept & 1;
}"""
    program = c.assemble(text, "bad.c", cc=cc, libc=libc, stack=4096)
    assert interpret(program.with_arguments(["20"])).status == 0
    plain = RiscvInterpreter(program, 1 << 16)
    plain.run(100_000)
    assert plain.fault is not None
    assert "load out of range at main" in str(plain.fault)
    assert "bad.c:8): lw a0, 0(" in str(plain.fault)
    assert str(plain.fault).endswith("uses address 0x0 (a null pointer)")
    deep = program.with_arguments(["1000"])
    plain = RiscvInterpreter(deep, 1 << 16)
    plain.run(100_000)
    assert "store out of range at sink" in str(plain.fault)
    assert "(the stack is full: sp is 0xff" in str(plain.fault)
    before = deep.words(1 << 16)
    end = (program.symbols["__stack_top"] - program.base) // 4
    code = program.segments[1]
    assert list(plain.memory[end : end + len(code.data) // 4]) == before[end : end + len(code.data) // 4]
    assert plain.memory[(program.symbols["kept"] - program.base) // 4] == 0x12345678


@pytest.mark.parametrize("cc", COMPILERS)
def test_a_frame_larger_than_the_stack_writes_to_no_other_memory(cc: str) -> None:
    text = """static volatile int kept[4096];
int main(int argc, char **argv)
{
    volatile int room[1 << 20];
    for (int i = (1 << 20) - 1; i >= 0; i--)
        room[i] = -1;
    return kept[argc];
}"""
    program = c.assemble(text, "large.c", cc=cc)
    plain = RiscvInterpreter(program, 1 << 16)
    plain.run(200_000)
    assert "(the stack is full: sp is 0xffc" in str(plain.fault)
    first = (program.symbols["__stack_top"] - program.base) // 4
    assert list(plain.memory[first:]) == program.words(1 << 16)[first:]


def test_a_program_that_is_linked_at_0_has_address_0() -> None:
    """Raw programs stay as they are: no arguments, the stack at the end, and memory at 0."""
    raw = elf.load(elf.write(assemble("li a0, 7\nsw a0, 0(zero)\nlw a0, 0(zero)\nli a7, 93\necall\n")), "raw.elf")
    assert (raw.base, raw.arguments, raw.registers(16)[2]) == (0, (), 64)
    assert interpret(raw, memory=16).status == 7


TOP = """
.base 0xffffff00
        .zero 0xa0
_start: addi sp, sp, -16
        sw a0, 12(sp)
        lw a0, 12(sp)
        addi a0, a0, 9
        li a7, 93
        ecall
        .zero 0x48
"""


def test_a_program_at_the_end_of_the_address_space() -> None:
    """The memory ends with the addresses, and the stack is below the program."""
    far = assemble(TOP, "top.s")
    assert far.end == 1 << 32
    linked = elf.load(elf.write(RiscvProgram((Segment(0xFFFFFFA0, far.image(64)[0xA0:]),), 0xFFFFFFA0, 0xFFFFFF00)),
                      "top.elf")
    assert (linked.base, RiscvMachine.sizes_for(linked)["memory"]) == (0xFFFC0000, 1 << 16)
    assert linked.registers(1 << 16)[2] == 0xFFFFFF80, "the arguments are there, and the stack below them"
    assert interpret(linked).status == 9
    small = elf.load(elf.write(linked), "top.elf", base=0xFFFFFF00)
    report = punchcard.run(small, RiscvMachine(memory=64, base=0xFFFFFF00), engine="scratchpad", check="lockstep")
    assert report.ok, report.why
    assert report.result.status == 9


def test_too_much_memory_names_file_and_segment(tmp_path: Path) -> None:
    large = RiscvProgram((Segment(0x10000, b"\x73\0\0\0"), Segment(0x20000, b"", 1 << 29)), 0x10000, 0x10000)
    (tmp_path / "large.elf").write_bytes(elf.write(large))
    assert_refused("large.elf: the program needs 134234124 words from 0x10000 on (its segment at 0x20000 has 536,870,912 "
                   "bytes, up to 0x20020000, and 48 bytes of arguments), and a machine has 16777216 at most",
                   "run", tmp_path / "large.elf")
    assert_refused("large.elf: the program needs", "info", tmp_path / "large.elf", "--memory", "1000")
