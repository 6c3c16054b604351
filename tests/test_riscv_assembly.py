"""Assembly text for RISC-V: what the GNU assembler gives for each line, and what is wrong with others."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from punchcard.errors import ProgramError, SourceError
from punchcard.machines.riscv.csrs import CSRS
from punchcard.machines.riscv.isa import INSTRUCTIONS, MASK, decode, encode, immediate_range
from punchcard.machines.riscv.languages import elf
from punchcard.machines.riscv.languages.assembly.assembler import _Assembly, assemble
from punchcard.machines.riscv.languages.assembly.directives import IGNORED, Directives
from punchcard.machines.riscv.languages.assembly.instructions import MNEMONICS
from punchcard.machines.riscv.languages.disassembler import disassemble
from punchcard.machines.riscv.oracle import RiscvInterpreter
from punchcard.machines.riscv.program import RiscvProgram, Segment
from punchcard.machines.riscv.syntax import text_of
from tests.riscv_cases import program_of, random_words

GIVEN = r"""
lui a0, 0xfffff                                     fffff537
auipc t0, 0x12                                      00012297
jal . + 2048                                        001000ef
jal t1, . - 1048576                                 8000036f
jalr a0                                             000500e7
jalr ra, 4(a0)                                      004500e7
jalr s0, a1, -4                                     ffc58467
jalr t0, (a2)                                       000602e7
jr a3                                               00068067
jr 8(a3)                                            00868067
beq a0, a1, . + 4094                                7eb50fe3
bne a0, a1, . - 4096                                80b51063
blt s0, fp, . + 8                                   00844463
bge x5, x6, . - 8                                   fe62dce3
bltu t3, t4, . + 16                                 01de6863
bgeu t5, t6, . - 16                                 ffff78e3
lb a0, -1(sp)                                       fff10503
lh a0, 12(sp)                                       00c11503
lw a0, (sp)                                         00012503
lbu a0, 2047(sp)                                    7ff14503
lhu a0, -2048(sp)                                   80015503
sb a0, -1(sp)                                       fea10fa3
sh a0, 'a'(gp)                                      06a190a3
sw s11, 2047(tp)                                    7fb22fa3
addi a0, a0, -2048                                  80050513
slti s2, s3, 5                                      0059a913
sltiu a0, a0, -1                                    fff53513
xori a0, a0, 0x7ff                                  7ff54513
ori a0, a0, 1<<5|3                                  02356513
andi a0, a0, 26                                     01a57513
slli a0, a0, 31                                     01f51513
srli a0, a0, 0                                      00055513
srai a0, a0, 0x1f                                   41f55513
add a0, a1, a2                                      00c58533
sub a0, a1, a2                                      40c58533
sll a0, a1, a2                                      00c59533
slt a0, a1, a2                                      00c5a533
sltu a0, a1, a2                                     00c5b533
xor a0, a1, a2                                      00c5c533
srl a0, a1, a2                                      00c5d533
sra a0, a1, a2                                      40c5d533
or a0, a1, a2                                       00c5e533
and x31, x30, x29                                   01df7fb3
add a0, a1, 5                                       00558513
sll a0, a1, 3                                       00359513
sra a0, a1, 3                                       4035d513
and a0, a1, -1                                      fff5f513
sltu a0, a1, 9                                      0095b513
mul a0, a1, a2                                      02c58533
mulh a0, a1, a2                                     02c59533
mulhsu a0, a1, a2                                   02c5a533
mulhu a0, a1, a2                                    02c5b533
div a0, a1, a2                                      02c5c533
divu a0, a1, a2                                     02c5d533
rem a0, a1, a2                                      02c5e533
remu a0, a1, a2                                     02c5f533
fence                                               0ff0000f
fence rw, w                                         0310000f
fence iorw, o                                       0f40000f
fence.tso                                           8330000f
fence.i                                             0000100f
ecall                                               00000073
ebreak                                              00100073
unimp                                               c0001073
lr.w a0, (a1)                                       1005a52f
lr.w.aq t6, (s0)                                    14042faf
lr.w.aqrl zero, 0(ra)                               1600a02f
sc.w a0, a2, (a1)                                   18c5a52f
sc.w.rl t0, t1, (t2)                                1a63a2af
amoswap.w a0, a2, (a1)                              08c5a52f
amoswap.w.aq a0, a2, (a1)                           0cc5a52f
amoadd.w a0, a2, (a1)                               00c5a52f
amoadd.w.aqrl a0, a2, 0(a1)                         06c5a52f
amoxor.w a0, a2, (a1)                               20c5a52f
amoand.w a0, a2, (a1)                               60c5a52f
amoor.w a0, a2, (a1)                                40c5a52f
amomin.w a0, a2, (a1)                               80c5a52f
amomax.w a0, a2, (a1)                               a0c5a52f
amominu.w a0, a2, (a1)                              c0c5a52f
amomaxu.w a0, a2, (a1)                              e0c5a52f
amomaxu.w.rl a0, a2, (a1)                           e2c5a52f
csrrw a0, mstatus, a1                               30059573
csrrw a0, mtvec, 5                                  3052d573
csrrs t0, mie, t1                                   304322f3
csrrc t0, 0x344, t1                                 344332f3
csrrwi a0, mscratch, 31                             340fd573
csrrsi zero, mstatus, 8                             30046073
csrrci a5, mepc, 0                                  341077f3
csrr a0, mcause                                     34202573
csrr a0, mhartid                                    f1402573
csrw mtval, a0                                      34351073
csrw mstatus, 9                                     3004d073
csrs mie, a0                                        30452073
csrc mstatus, s11                                   300db073
csrwi mscratch, 3                                   3401d073
csrsi mstatus, 8                                    30046073
csrci mstatus, 8                                    30047073
rdcycle a0                                          c0002573
rdcycleh a1                                         c80025f3
rdtime a0                                           c0102573
rdtimeh a0                                          c8102573
rdinstret a0                                        c0202573
rdinstreth a0                                       c8202573
csrr t0, pmpaddr63                                  3ef022f3
csrw pmpcfg0, t0                                    3a029073
csrr t0, tdata3                                     7a3022f3
csrr t0, mconfigptr                                 f15022f3
csrr t0, mcycleh                                    b80022f3
csrr t0, minstret                                   b02022f3
csrr t0, mcounteren                                 306022f3
csrr t0, mstatush                                   310022f3
mret                                                30200073
wfi                                                 10500073
nop                                                 00000013
mv a0, s11                                          000d8513
not t6, t5                                          ffff4f93
neg a0, a1                                          40b00533
seqz a0, a1                                         0015b513
snez a0, a1                                         00b03533
sltz a0, a1                                         0005a533
sgtz a0, a1                                         00b02533
sgt a0, a1, a2                                      00b62533
sgtu a0, a1, a2                                     00b63533
zext.b a0, a1                                       0ff5f513
beqz a0, . + 32                                     02050063
bnez a0, . + 32                                     02051063
blez a0, . + 32                                     02a05063
bgez a0, . + 32                                     02055063
bltz a0, . + 32                                     02054063
bgtz a0, . + 32                                     02a04063
bgt a0, a1, . + 32                                  02a5c063
ble a0, a1, . + 32                                  02a5d063
bgtu a0, a1, . + 32                                 02a5e063
bleu a0, a1, . + 32                                 02a5f063
j . - 32                                            fe1ff06f
ret                                                 00008067
li a0, 0                                            00000513
li a0, -1                                           fff00513
li a0, 2047                                         7ff00513
li a0, 2048                                         00001537 80050513
li a0, -2048                                        80000513
li a0, -2049                                        fffff537 7ff50513
li a0, 0x12345678                                   12345537 67850513
li a0, 0xffffffff                                   fff00513
li a0, 0x80000000                                   80000537
li a0, 0x7ffff800                                   80000537 80050513
li a0, 0xfffff000                                   fffff537
li a0, 'A'                                          04100513
.word 0x12345678, -1, (2+3)*4 % 7, ~5, -(3), 10/3   12345678 ffffffff 00000006 fffffffa fffffffd 00000003
.word 1 + 2 << 3, 6 | 1 + 8, -7 / 2, -7 % 2         00000011 0000000f fffffffd ffffffff
.half 0xffff, -1                                    ffffffff
.byte 1, 2, 255, -128                               80ff0201
.ascii "a\n\t\"\\\0\033\0"                          22090a61 001b005c
"""
"""Lines, and the words that the GNU assembler and linker give for them at address 0x100000."""
COLUMN = 52


def words(text: str, base: int = 0) -> list[int]:
    program = assemble(text, base=base)
    return program.words(program.needed_words)


@pytest.mark.parametrize("line", GIVEN.strip().splitlines(), ids=lambda line: line[:COLUMN].strip())
def test_each_line_gives_what_the_gnu_assembler_gives(line: str) -> None:
    assert words(line[:COLUMN], base=0x100000) == [int(word, 16) for word in line[COLUMN:].split()]


def test_every_instruction_is_among_the_lines() -> None:
    names = {line.split()[0] for line in GIVEN.strip().splitlines()}
    assert {one.name for one in INSTRUCTIONS} <= names


def test_labels_sections_and_addresses() -> None:
    program = assemble("""
        .equ SIZE, 4 * 3
        .data
        value: .word 1, table   // a remark
        .text
        .globl _start
        nop                     /* one
                                   of two lines */
        _start: la a0, value
        1: lw a1, value         # 1f is the next label 1
        bnez a1, 1f
        j 1b
        1: call twice
        sw a1, value, t0
        lui a2, %hi(value + SIZE)
        addi a2, a2, %lo(value + SIZE)
        hi: auipc a3, %pcrel_hi(table)
        lw a3, %pcrel_lo(hi)(a3)
        ebreak
        twice: slli a1, a1, 1   ; doubles it
        ret
        .rodata
        table: .byte 'x', 2
        .align 2
        .half 3
        .bss
        room: .space 100
    """, "some.s")
    symbols = program.symbols
    assert (program.entry, symbols["twice"], symbols["table"], symbols["room"] % 4) == (4, 64, 72, 0)
    assert symbols["value"] > symbols["table"]
    assert program.end == symbols["room"] + 100
    run = RiscvInterpreter(program, 64)
    run.run()
    assert run.fault is not None
    assert run.fault.kind == "breakpoint"
    found = {number: run.registers[number] for number in (10, 11, 12, 13)}
    assert found == {10: symbols["value"], 11: 2, 12: symbols["value"] + 12, 13: 0x0278}
    assert list(run.memory[symbols["value"] // 4 : symbols["value"] // 4 + 2]) == [2, symbols["table"]]
    assert str(program.lines[4]) == "some.s:9"
    assert program.lines[4].text == "_start: la a0, value"


def test_names_that_are_set_again_mean_what_they_were() -> None:
    assert words(".set n, 1\n.word n\n.set n, n + 1\n.word n\nlater = end + 4\n.word later\nend:") == [1, 2, 16]
    assert words(".equ there, after\n.word there\nafter: .word 5") == [4, 5]
    assert words("start: .word 0\n.set here, . + 4\n.word here\n.data\n.word here, here - start") == [0, 8, 8, 8]


def test_space_alignment_and_origin() -> None:
    assert words(".byte 1\n.balign 4, 0xff\n.byte 2\n.p2align 2,,1\n.byte 3\n.fill 2, 1, 9") == [0xFFFFFF01, 0x09090302]
    assert words(".word 1\n.org 12\n.word 2\n.org 16, 7") == [1, 0, 0, 2]
    assert words("nop\n.align 3\n.word 5") == [0x13, 0x13, 5]
    assert words(".word 1\n.space 4, 0x11\n.zero 4\n.skip 4\n.word 2") == [1, 0x11111111, 0, 0, 2]
    assert words(".comm shared, 8, 8\n.word shared\n.lcomm other, 4\n.word other") == [8, 16, 0, 0, 0]
    sparse = assemble("nop\n.org 0x7ffffffc\n.word 1")
    assert [(segment.address, segment.size) for segment in sparse.segments] == [(0, 4), (0x7FFFFFFC, 4)]


def test_entry_and_base() -> None:
    program = assemble(".base 0x80000000\n.entry main\nnop\nmain: j main")
    assert (program.base, program.entry, program.needed_words) == (0x80000000, 0x80000004, 2)
    assert assemble(".data\n.word 5\n.text\nnop").entry == 0
    assert assemble("nop", base=0x400).entry == 0x400


def test_directives_of_compilers_are_passed_over() -> None:
    assert words("""
        .file "x.c"
        .option nopic
        .attribute arch, "rv32i2p1_m2p0"
        .section .text.startup,"ax",@progbits
        .type main, @function
        .cfi_startproc
        main: ret
        .size main, .-main
        .section .debug_info,"",@progbits
        .4byte 0x1234
        .uleb128 5
        .section .note.GNU-stack,"",@progbits
        .section .rodata.str1.4,"aMS",@progbits,1
        .string "ab"
        .ident "a compiler"
    """) == [0x8067, 0x6261]


WRONG = [
    ("addd a0, a1, a2", 1, 1,
     "unknown instruction 'addd' (did you mean 'add'?): RV32I, M, A, Zicsr and the usual pseudo-instructions are known"),
    ("nop\n  add a0, a9, a2", 2, 11, "unknown register 'a9': there are x0 to x31, zero, ra, sp, gp, tp, t0 to t6, "
     "s0 to s11 and a0 to a7"),
    ("loop: j lop", 1, 9, "unknown name 'lop' (did you mean 'loop'?): it must be a label, or be set by .equ"),
    (".wrod 5", 1, 1,
     "unknown directive '.wrod' (did you mean '.word'?): there are .word, .half, .byte, .asciz, .space, .align, .equ, "
     ".text, .data, .section and others"),
    ("addi a0, a0, 2048", 1, 14, "addi with the immediate 2048: it must be -2048 to 2047; li takes any number"),
    ("csrr a0, mstats", 1, 10,
     "unknown control register 'mstats' (did you mean 'mstatus'?): write its name, such as mstatus, or its number"),
    ("csrw 4096, a0", 1, 6, "4096 is not the number of a control register: it must be 0 to 0xfff"),
    ("csrwi mtvec, 32", 1, 14, "csrrwi with the immediate 32: it must be 0 to 31"),
    ("lr.w a0, 4(a1)", 1, 10, "an atomic instruction has no offset: write (a0)"),
    ("amoadd.w a0, a1, a2", 1, 18, "an atomic instruction has no offset: write (a0)"),
    ("add.aq a0, a1, a2", 1, 1,
     "unknown instruction 'add.aq' (did you mean 'add'?): RV32I, M, A, Zicsr and the usual pseudo-instructions are known"),
    ("slli a0, a0, 32", 1, 14, "slli with the immediate 32: it must be 0 to 31"),
    ("lui a0, 0x100000", 1, 1, "lui with 1048576: it must be -524288 to 1048575, the upper 20 bits"),
    ("beq a0, a1, far\n.space 5000\nfar:", 1, 13,
     "beq to an address 5004 bytes away: it must be -4096 to 4094, a multiple of 2"),
    ("li a0, 0x100000000", 1, 8, "4294967296 does not fit a register: the range is -2147483648 to 4294967295"),
    ("x: nop\nx: nop", 2, 1, "the label 'x' is defined twice"),
    (".byte 256", 1, 7, "256 does not fit 1 bytes: the range is -128 to 255"),
    ("lw a0, 4", 1, 9, "the line ends here: a register in parentheses must follow the offset, as in 8(sp)"),
    ("sw a0, x\nx: .word 0", 1, 9,
     "the line ends here: a store at a name needs a register for the address: write sw a0, name, t0"),
    ("add a0 a1", 1, 8, "found 'a1': a ',' must separate operands"),
    ("add a0, a1, a2, a3", 1, 15, "unexpected ',' after the instruction add"),
    ("mul a0, a1, 5", 1, 13, "found '5': the last operand of mul must be a register"),
    ("j 1b", 1, 3, "no label '1' is above: 1f is the next one"),
    ("j 1f", 1, 3, "no label '1' is below: 1f is the next one"),
    (".byte 1\nnop", 2, 1,
     "the instruction would be at an address that is not a multiple of 4: write .align 2 before it"),
    (".word 1 / 0", 1, 9, "division by zero"),
    (".word 1 << 64", 1, 9, "a shift by 64: the amount must be 0 to 63"),
    (".word (1", 1, 7, "this '(' is not closed: write ')'"),
    (".word 09", 1, 7, "'09' is not a number: write decimal (12), hexadecimal (0x0c), binary (0b1100) or octal (014)"),
    ("li a0, 1; li a1, 2", 1, 9,
     "';' begins a remark, but 'li a1, 2' looks like code: give it a line of its own, or begin the remark "
     "with '#'"),
    ("nop /* open", 1, 5, "this remark is not closed: write '*/'"),
    (".space later\n.equ later, 5", 1, 8, "the size must be known here: use numbers, and names that are set above"),
    (".align 40", 1, 8, "the power of two is 40: it must be 0 to 16"),
    (".asciz 5", 1, 8, "found '5': a text in quotes must be here: \"...\""),
    (".ascii \"\\q\"", 1, 8,
     "unknown escape \\q in '\"\\\\q\"': there are \\n, \\t, \\r, \\b, \\f, \\v, \\a, \\e, \\\\, \\', \\\", \\x41 "
     "and \\101"),
    (".space 8000000, 1\n.fill 9000000, 1, 2", 2, 1, ".fill of 9000000 bytes: a text may fill 16777216 with what is not 0"),
    (".space 0xffffffff\n.space 2", 2, 1, ".space of 2 bytes ends beyond the last address, 0xffffffff"),
    ("fence wr, w", 1, 7, "'wr' is not a set for a fence: write letters of iorw in this order"),
    ("addi a0, a0, %hi(x)", 1, 14, "unknown part '%hi': this operand takes %lo and %pcrel_lo"),
    (".equ a, b\n.equ b, a\n.word a", 2, 9, "'a' is defined by itself"),
    ("\n".join(f".equ n{i}, n{i + 1}" for i in range(200)) + "\n.word n0", 100, 11,
     "'n100' is set by names below it, more than 100 deep"),
    ("lw a0, %pcrel_lo(x)(a0)\nx: nop", 1, 18, "%pcrel_lo must name the label of an instruction with %pcrel_hi"),
    (".org 8\n.org 4", 2, 6,
     ".org must be an offset from the start of the section, known here and not below 0x8, where the section is"),
]


@pytest.mark.parametrize(("text", "line", "column", "message"), WRONG, ids=[case[3][:40] for case in WRONG])
def test_what_is_wrong_is_told_with_its_place(text: str, line: int, column: int, message: str) -> None:
    with pytest.raises(SourceError) as caught:
        assemble(text, "wrong.s")
    assert (caught.value.line, caught.value.column, caught.value.message) == (line, column, message)


@pytest.mark.parametrize("text", ["", "# nothing\n", ".data\n"])
def test_an_empty_text(text: str) -> None:
    with pytest.raises(ProgramError, match="the program is empty: it needs at least one instruction"):
        assemble(text, "empty.s")


def test_remarks_of_any_kind() -> None:
    text = "nop ; add the two numbers\n; ret to the caller\n# 'quote\nnop // not \"closed\n.ascii \"#;/\" /* x */"
    assert words(text) == [0x13, 0x13, 0x2F3B23]


def test_deep_and_long_expressions() -> None:
    assert words(f".word {'(' * 3000}1{')' * 3000}, {'1+' * 5000}1, {'-' * 2001}1") == [1, 5001, MASK]


# There and back


def test_every_instruction_is_written_as_text_that_gives_it_again() -> None:
    """All registers, and all immediates where there are few, at once in one program for each instruction."""
    numbers = random.Random(3)
    for one in INSTRUCTIONS:
        allowed = immediate_range(one.format)
        some = [*allowed] if len(allowed) <= 256 else [allowed[0], allowed[-1], *numbers.sample(allowed, 100)]
        made = [encode(one, immediate=immediate) for immediate in some]
        made += [encode(one, **{name: number}) for name in one.uses for number in range(32)]
        text = "\n".join(map(text_of, made))
        assert words(text, base=0x40000000) == made, one.name


def test_random_words_are_written_as_text_that_gives_them_again() -> None:
    numbers = random.Random(4)
    made = [numbers.getrandbits(32) & ~0x7F | numbers.choice(INSTRUCTIONS).opcode for _ in range(3000)]
    made += [0x0100000F, 0x8330000F, 0x0000000F, 0xFFF0000F, 0x0FF00F8F, 0x0330000F, 0x0030000F]
    assert words("\n".join(map(text_of, made)), base=0x40000000) == made
    assert sum(decode(word) is not None for word in made) > 1000


@pytest.mark.parametrize("seed", range(6))
def test_programs_are_disassembled_to_text_that_gives_them_again(seed: int) -> None:
    program = program_of(random_words(seed, 200), 0x80000000 * (seed % 2))
    again = assemble(disassemble(program))
    assert again == program
    assert disassemble(again) == disassemble(program)


CONTENT = st.binary(max_size=40) | st.integers(0, 90).map(bytes)
SEGMENTS = st.lists(st.tuples(st.integers(0, 40), CONTENT, st.integers(0, 90)), min_size=1, max_size=4)


@settings(max_examples=100, deadline=None)
@given(SEGMENTS, st.data())
def test_any_program_is_disassembled_to_text_that_gives_it_again(
    parts: list[tuple[int, bytes, int]], data: st.DataObject
) -> None:
    base = data.draw(st.sampled_from([0, 0x100, 0xFFFF0000]))
    segments, place = [], base
    for gap, content, zeros in parts:
        segments.append(Segment(place + gap, content, len(content) + zeros))
        place = segments[-1].end
    inside = [at for one in segments for at in range(one.address, one.end)]
    entries = [at for at in inside if at % 4 == 0]
    if not entries:
        return
    symbols = data.draw(st.dictionaries(st.sampled_from(["a0", "_start", "main", "L100", ".x", "f.1", "é", "sp"]),
                                        st.sampled_from(inside), max_size=4))
    program = RiscvProgram(tuple(segments), data.draw(st.sampled_from(entries)), base, symbols)
    again = assemble(disassemble(program))
    count = program.needed_words
    assert again.words(count) == program.words(count)
    assert (again.entry, again.base, again.needed_words) == (program.entry, program.base, count)
    assert disassemble(again) == disassemble(program)
    assert {name: at for name, at in symbols.items() if name.isascii()}.items() <= again.symbols.items()


def test_a_listing() -> None:
    text = disassemble(assemble("_start: li a0, 5\nloop: addi a0, a0, -1\nbnez a0, loop\n.word 0\nmsg: .ascii \"abc\""))
    assert text.splitlines() == [
        "_start:",
        "    addi a0, zero, 5                    # 0x0000  00500513",
        "loop:",
        "    addi a0, a0, -1                     # 0x0004  fff50513",
        "    bne a0, zero, loop                  # 0x0008  fe051ee3",
        "    .word 0x00000000                    # 0x000c  00000000",
        "msg:",
        "    .byte 0x61                          # 0x0010",
        "    .byte 0x62                          # 0x0011",
        "    .byte 0x63                          # 0x0012",
    ]


COMPILERS = {"gcc": ("riscv64-unknown-elf-gcc", "-march=rv32im", "-mabi=ilp32", "-Wl,--no-relax"),
             "clang": ("clang", "--target=riscv32", "-march=rv32im", "-fuse-ld=lld")}
SOURCE = """
static const char *names[] = {"one", "two\\n", "three"};
int start = 5; static int seen[10]; long long wide = 0x123456789abcdefLL;
static int pick(int x) {
    switch (x) { case 0: return 3; case 1: return 7; case 2: return 11; case 3: return 13; case 4: return 19; }
    return names[x % 3][0];
}
void _start(void) {
    for (int i = 0; i < 10; i++) seen[i] = pick(i) * start / (i + 1);
    register int a0 asm("a0") = (seen[3] + seen[7] + (int)wide) & 0xff;
    register int a7 asm("a7") = 93;
    asm volatile("ecall" :: "r"(a0), "r"(a7));
    for (;;) {}
}
"""


@pytest.mark.parametrize("name", COMPILERS)
def test_what_compilers_write_runs_as_what_they_link(name: str, tmp_path: Path) -> None:
    if not shutil.which(COMPILERS[name][0]) or (name == "clang" and not shutil.which("ld.lld")):
        pytest.skip(f"there is no {name} for RISC-V")
    (tmp_path / "x.c").write_text(SOURCE)
    command = [*COMPILERS[name], "-O2", "-g", "-ffreestanding", "-nostdlib", "-w", "x.c", "-o"]
    for more in (["x.elf"], ["x.s", "-S"]):
        ran = subprocess.run([*command, *more], cwd=tmp_path, capture_output=True, text=True, check=False)
        if ran.returncode:
            pytest.skip(f"{name} does not compile for RISC-V: {ran.stderr[:200]}")
    linked = elf.load((tmp_path / "x.elf").read_bytes(), "x.elf")
    written = assemble((tmp_path / "x.s").read_text(), "x.s")
    runs = [RiscvInterpreter(program, program.needed_words + 64) for program in (linked, written)]
    for run in runs:
        run.run(1000)
        assert (run.calls.status, run.fault) == ((13 * 5 // 4 + ord("t") * 5 // 8 + 0xEF) & 0xFF, None)
    assert runs[0].steps == runs[1].steps
    assert linked.lines[linked.entry].file.endswith("x.c")
    assert linked.lines[linked.entry].line in (8, 9)
    assert written.lines[written.entry].file == "x.s"
    assert linked.name_of(linked.entry) == "_start"


# The page

PAGE = (Path(__file__).parent.parent / "docs" / "riscv-assembly.md").read_text()


def test_the_page_has_every_instruction_as_it_is_encoded() -> None:
    table = PAGE.split("## Instructions")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines() if line.startswith("| `")]
    found = set()
    for names, format, opcode, funct7, extension, _ in rows:
        for name, funct3 in re.findall(r"`([a-z.]+)`(?: ([0-7]))?", names):
            found.add((name, format, int(opcode, 16), int(funct3) if funct3 else None, int(funct7, 16) if funct7 else None,
                       extension))
    assert found == {(one.name, one.format, one.opcode, one.funct3, one.funct7, one.extension) for one in INSTRUCTIONS}


def test_the_page_has_every_control_register() -> None:
    pattern = r"\| `([a-z]+)(\d*)(h?)`(?: to `[a-z]+(\d+)h?`)? \| (0x\w+) \| (0x\w+) \|"
    found = set()
    for name, first, half, last, number, mask in re.findall(pattern, PAGE.split("## Control registers")[1]):
        for i in range(int(last or first or 0) - int(first or 0) + 1):
            digits = str(int(first) + i) if first else ""
            found.add((name + digits + half, int(number, 16) + i, int(mask, 16)))
    assert found == {(csr.name, csr.number, csr.writable) for csr in CSRS}


def test_the_page_names_what_there_is() -> None:
    directives = Directives(_Assembly("", 0))
    named = set(re.findall(r"[`,; ](\.[a-z0-9]+)[`, ]", PAGE)) - {".s", ".elf", ".hex", ".ihex", ".bin"}
    assert all(directives.knows(name) or name in IGNORED for name in named)
    assert set(directives.names) <= named
    assert all(f"`{name}" in PAGE for name in MNEMONICS)


def test_the_program_on_the_page_runs() -> None:
    text = re.search(r"(?:^    .*\n)+", PAGE.split("## Assembly")[1], re.MULTILINE)
    assert text is not None
    run = RiscvInterpreter(assemble(text.group()), 64)
    run.run(1000)
    assert (run.output, run.calls.status) == (b"hello\n", 0)
