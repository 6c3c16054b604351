"""The interpreters of RV32IM: each instruction by hand, faults, and random programs on all of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from punchcard.errors import PunchcardError
from punchcard.machines.in_c import compiler
from punchcard.machines.riscv.fast import QuickRiscv
from punchcard.machines.riscv.in_c import RiscvInC
from punchcard.machines.riscv.isa import INSTRUCTIONS, MASK, encode
from punchcard.machines.riscv.languages.assembly.assembler import assemble
from punchcard.machines.riscv.oracle import RiscvFault, RiscvInterpreter, functions_of
from tests.cases import soaked
from tests.riscv_cases import CORNERS, RESULTS, TAKEN, program_of, random_registers, random_words
from tests.riscv_reference import OPERATIONS, Reference

Make = Callable[..., RiscvInterpreter]
needs_c = pytest.mark.skipif(compiler() is None, reason="there is no C compiler")
EACH = [RiscvInterpreter, QuickRiscv, pytest.param(RiscvInC, marks=needs_c)]
A, B, C = 10, 11, 12


def after(make: Make, words: list[int], registers: dict[int, int], steps: int = 1, **options: object) -> RiscvInterpreter:
    """An interpreter that has made some steps. Three steps that do nothing let the quick ones use their own way."""
    run = make(program_of(words), 64, **options)
    for number, value in registers.items():
        run.registers[number] = value
    run.run(steps)
    return run


@pytest.mark.parametrize("make", EACH)
def test_results_and_branches_by_hand(make: Make) -> None:
    for name, cases in RESULTS.items():
        for a, b, result in cases:
            for rd in (C, A, 0):
                found = after(make, [encode(name, rd, A, B)], {A: a, B: b}).registers[rd]
                assert found == (result if rd else 0), (name, a, b)
    for name, decided in TAKEN.items():
        for a, b, taken in decided:
            run = after(make, [encode(name, rs1=A, rs2=B, immediate=16)], {A: a, B: b})
            assert run.program_counter == (16 if taken else 4), (name, a, b)


@pytest.mark.parametrize("make", EACH)
def test_jumps_and_upper_immediates(make: Make) -> None:
    run = after(make, [encode("jal", 1, immediate=8), 0, encode("jalr", 5, A, immediate=-3)], {A: 44}, 2)
    assert (run.registers[1], run.registers[5], run.program_counter) == (4, 12, 40)
    run = after(make, [encode("jalr", A, A)], {A: 20})
    assert (run.registers[A], run.program_counter) == (4, 20)
    run = after(make, [encode("lui", A, immediate=-4096), encode("auipc", B, immediate=-(1 << 31))], {}, 2)
    assert (run.registers[A], run.registers[B]) == (0xFFFFF000, 0x80000004)


@pytest.mark.parametrize("make", EACH)
def test_lanes_of_loads_and_stores(make: Make) -> None:
    word = 0x80F17F02
    expected = {"lb": (2, 0x7F, 0xFFFFFFF1, 0xFFFFFF80), "lbu": (2, 0x7F, 0xF1, 0x80), "lw": (word,),
                "lh": (0x7F02, 0xFFFF80F1), "lhu": (0x7F02, 0x80F1)}
    for name, values in expected.items():
        for lane, value in enumerate(values):
            run = after(make, [encode(name, C, A, immediate=lane * 4 // len(values) - 4)], {A: 24})
            assert run.registers[C] == 0
            run = after(make, [encode(name, C, A, immediate=lane * 4 // len(values)), word], {A: 4})
            assert run.registers[C] == value, (name, lane)
            run = after(make, [encode(name, A, A, immediate=lane * 4 // len(values)), word], {A: 4})
            assert run.registers[A] == value, "the address is taken before the result is written"
    for name, lane, stored in (("sb", 0, 0x80F17FAA), ("sb", 1, 0x80F1AA02), ("sb", 2, 0x80AA7F02), ("sb", 3, 0xAAF17F02),
                               ("sh", 0, 0x80F199AA), ("sh", 2, 0x99AA7F02), ("sw", 0, 0x778899AA)):
        run = after(make, [encode(name, rs1=A, rs2=B, immediate=lane), word], {A: 4, B: 0x778899AA})
        assert run.memory[1] == stored


FAULTS = [
    ([0x0], {}, RiscvFault("illegal instruction", 0, 0, 0), "illegal instruction 0x00000000 at 0x0"),
    ([encode("ebreak")], {}, RiscvFault("breakpoint", 0, 0, encode("ebreak")), "breakpoint (ebreak) at 0x0"),
    ([encode("lw", A, A)], {A: 2}, RiscvFault("misaligned load", 2, 0, encode("lw", A, A)),
     "misaligned load at 0x0: lw a0, 0(a0) uses address 0x2"),
    ([encode("sh", rs1=A, rs2=A)], {A: 3}, RiscvFault("misaligned store", 3, 0, encode("sh", rs1=A, rs2=A)),
     "misaligned store at 0x0: sh a0, 0(a0) uses address 0x3"),
    ([encode("lb", 0, A)], {A: 256}, RiscvFault("load out of range", 256, 0, encode("lb", 0, A)),
     "load out of range at 0x0: lb zero, 0(a0) uses address 0x100"),
    ([encode("sw", rs1=A, immediate=-4)], {A: 0},
     RiscvFault("store out of range", MASK - 3, 0, encode("sw", rs1=A, immediate=-4)),
     "store out of range at 0x0: sw zero, -4(a0) uses address 0xfffffffc"),
    ([encode("jal", 1, immediate=6)], {}, RiscvFault("misaligned fetch", 6, 0, encode("jal", 1, immediate=6)),
     "misaligned fetch at 0x0: jal ra, . + 6 uses address 0x6"),
    ([encode("jalr", 1, A)], {A: 7}, RiscvFault("misaligned fetch", 6, 0, encode("jalr", 1, A)),
     "misaligned fetch at 0x0: jalr ra, 0(a0) uses address 0x6"),
    ([encode("beq", immediate=2)], {}, RiscvFault("misaligned fetch", 2, 0, encode("beq", immediate=2)),
     "misaligned fetch at 0x0: beq zero, zero, . + 2 uses address 0x2"),
]


@pytest.mark.parametrize("make", EACH)
@pytest.mark.parametrize(("words", "registers", "fault", "text"), FAULTS, ids=[case[3][:30] for case in FAULTS])
def test_faults_stop_before_anything_is_done(
    make: Make, words: list[int], registers: dict[int, int], fault: RiscvFault, text: str
) -> None:
    before = after(make, words, registers, 0)
    run = after(make, words, registers, 10)
    assert run.state == before.state
    assert (run.fault, str(run.fault), run.halted, run.steps) == (fault, text, True, 0)
    # the same behind instructions that are executed, with the address from there
    nops = [encode("addi")] * 3
    run = after(make, [*nops, *words], registers, 10)
    assert run.fault is not None
    assert (run.fault.kind, run.fault.program_counter, run.steps) == (fault.kind, 12, 3)


@pytest.mark.parametrize("make", EACH)
def test_a_fetch_beyond_the_memory(make: Make) -> None:
    run = after(make, [encode("jalr", 1, A)], {A: 0x1000}, 10)
    assert run.fault == RiscvFault("fetch out of range", 0x1000, 0x1000, None)
    assert str(run.fault) == "fetch out of range at 0x1000: there is no memory at address 0x1000"
    assert (run.steps, run.registers[1]) == (1, 4)
    run = make(program_of([encode("addi")] * 4), 4)
    run.run()
    assert (run.fault, run.steps) == (RiscvFault("fetch out of range", 16, 16, None), 4)


def test_a_branch_that_is_not_taken_may_lead_anywhere() -> None:
    run = after(RiscvInterpreter, [encode("bne", immediate=2)], {})
    assert (run.program_counter, run.steps) == (4, 1)


@pytest.mark.parametrize("make", EACH)
def test_multiplication_can_be_left_out(make: Make) -> None:
    run = after(make, [encode("mul", A, A, A)], {A: 3}, 5, multiply=False)
    assert (run.fault and run.fault.kind, run.registers[A]) == ("illegal instruction", 3)


@pytest.mark.parametrize("make", EACH)
def test_a_program_writes_and_ends(make: Make) -> None:
    program = assemble("""
        la a1, text
        li a0, 1
        li a2, 3
        li a7, 64
        ecall
        addi a0, a0, 4
        li a7, 93
    end: ecall
        .data
    text: .ascii "hi\\n"
    """)
    run = make(program, 64)
    run.run()
    assert (run.output, run.calls.status, run.halted, run.fault) == (b"hi\n", 7, True, None)
    assert (run.program_counter, run.steps) == (program.symbols["end"], 8)
    run.step()
    assert run.steps == 8
    short = make(program, 64)
    short.run(8)
    assert short.halted
    assert short.calls.status == 7
    before = make(program, 64)
    before.run(5)
    assert before.waits
    assert not before.halted


@pytest.mark.parametrize("make", EACH)
@pytest.mark.parametrize("base", [0, 0x80000000])
def test_code_that_changes_itself(make: Make, base: int) -> None:
    """An instruction is changed in every round of a loop, also just before it is executed."""
    program = assemble(f"""
        .base {base}
        li t0, 20
        la t1, change
        li a0, 0
    loop:
        lw t2, 0(t1)
        li t3, 0x100000
        add t2, t2, t3
        sw t2, 0(t1)
    change:
        addi a0, a0, 0
        addi t0, t0, -1
        bnez t0, loop
        sh zero, 0(t1)
        j change
    """)
    run = make(program, 64)
    run.run(500)
    assert run.registers[A] == sum(range(1, 21))
    assert run.fault is not None
    assert run.fault.kind == "illegal instruction"


def test_a_fault_names_symbol_and_line() -> None:
    run = RiscvInterpreter(assemble("main: nop\n  lw a0, 1(zero)  # wrong\n", "wrong.s"), 8)
    run.run()
    assert str(run.fault) == "misaligned load at main+4 (0x4, wrong.s:2): lw a0, 1(zero) uses address 0x1"


def test_a_memory_beyond_the_last_address() -> None:
    with pytest.raises(PunchcardError, match="ends beyond the last address"):
        RiscvInterpreter(program_of([0], 0xFFFFFFF0), 8)


def compared(make: Make, seed: int, words: int, steps: int, base: int = 0) -> int:
    """Run a random program beside the plain interpreter, and compare at random steps; how many steps were made."""
    program = program_of(random_words(seed, words, base), base)
    plain, quick = (one(program, words) for one in (RiscvInterpreter, make))
    for run in (plain, quick):
        for number, value in enumerate(random_registers(seed, words, base)):
            run.registers[number] = value
    limit = 0
    while limit < steps and not plain.halted:
        limit += 1 + (seed + limit) * 7919 % 97
        plain.run(limit)
        quick.run(limit)
        assert (quick.steps, quick.state, quick.fault) == (plain.steps, plain.state, plain.fault), f"seed {seed}, {limit}"
    return plain.steps


def test_random_programs_as_the_manual_says() -> None:
    """The interpreter, which executes the table, against one that shares nothing with it, up to the first fault."""
    made = 0
    for seed in range(400):
        size, base = 32 + seed % 64, (0, 0x80000000, 0x1000)[seed % 3]
        words, registers = random_words(seed, size, base), random_registers(seed, size, base)
        plain = RiscvInterpreter(program_of(words, base), size)
        plain.registers[:] = registers
        reference = Reference(b"".join(word.to_bytes(4, "little") for word in words), registers, base)
        plain.run(300)
        assert reference.run(300) == plain.steps, f"seed {seed}"
        held = bytes(reference.memory), reference.x, reference.counter
        assert (plain.load(base, 4 * size), list(plain.registers), plain.program_counter) == held, f"seed {seed}"
        made += plain.steps
    assert made > 10_000


@pytest.mark.parametrize("name", OPERATIONS)
def test_the_table_is_the_manual(name: str) -> None:
    for a in CORNERS:
        for b in CORNERS:
            found, = functions_of(name).result(0, a, b, 0, 0, 0)
            assert found == OPERATIONS[name](a, b) % (1 << 32), (a, b)


@pytest.mark.parametrize("make", EACH[1:])
@pytest.mark.parametrize(("seeds", "sizes", "steps"), [(range(90), 64, 600), soaked(range(1000, 6000), 200, 5000)])
def test_random_programs_on_all_interpreters(make: Make, seeds: range, sizes: int, steps: int) -> None:
    made = [compared(make, seed, 32 + seed % sizes, steps, base=(0, 0x80000000, 0x1000)[seed % 3]) for seed in seeds]
    assert sum(made) > 10_000


@pytest.mark.parametrize("make", EACH[1:])
def test_corner_operands_of_every_operation(make: Make) -> None:
    """All pairs of corners, in one program for each instruction with two registers."""
    for one in INSTRUCTIONS:
        if one.format == "R":
            words = [encode(one, C, A, B), encode("jal", immediate=-4)]
            plain, quick = RiscvInterpreter(program_of(words), 8), make(program_of(words), 8)
            for a in CORNERS:
                for b in CORNERS[:: 1 if make is RiscvInC else 3]:
                    for run in (plain, quick):
                        run.registers[A], run.registers[B] = a, b
                        run.program_counter = 0
                        run.run(run.steps + 2)
                    assert plain.registers[C] == quick.registers[C], (one.name, a, b)


@pytest.mark.parametrize("make", EACH[1:])
def test_one_operand_is_known_before(make: Make) -> None:
    for one in INSTRUCTIONS:
        if one.format == "R":
            for known, other in ((A, B), (B, A)):
                words = [encode("addi", known, immediate=-7), encode(one, C, A, B)]
                plain, quick = (after(each, words, {other: 1000}, 2) for each in (RiscvInterpreter, make))
                assert plain.registers[C] == quick.registers[C], (one.name, known)
