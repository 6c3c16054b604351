"""Self-checking programs, one for each instruction: the exit status is 0, or the number of the check that failed.

Whatever executes RISC-V can run them: interpreters, engines, designs. What is expected was worked out by hand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tests.riscv_cases import RESULTS, TAKEN

FRAME = """
_start:
{body}
    li a0, 0
    j leave
fail:
    mv a0, gp
leave:
    li a7, 93
    ecall
.data
.balign 4
word:  .word 0x80f17f02
       .word 0x0ff0f00f
space: .word 0, 0, 0
"""
IMMEDIATES: Mapping[str, tuple[tuple[int, int, int], ...]] = {
    "addi": ((1, 2047, 2048), (0, -2048, -2048), (0x7FFFFFFF, 1, 0x80000000), (-1, 1, 0)),
    "slti": ((-1, 0, 1), (0, -1, 0), (-2048, -2047, 1), (5, 5, 0)),
    "sltiu": ((-1, 0, 0), (0, -1, 1), (5, -2048, 1), (5, 5, 0)),
    "xori": ((0x0F0F, -1, 0xFFFFF0F0), (0xFF, 0x0F, 0xF0)),
    "ori": ((0x0F00, 0x0F, 0x0F0F), (0, -2048, 0xFFFFF800)),
    "andi": ((-1, 0x7FF, 0x7FF), (0x12345678, -16, 0x12345670)),
    "slli": ((1, 31, 0x80000000), (0x12345678, 4, 0x23456780), (7, 0, 7)),
    "srli": ((0x80000000, 31, 1), (0x87654321, 4, 0x08765432), (7, 0, 7)),
    "srai": ((0x80000000, 31, -1), (0x87654321, 4, 0xF8765432), (0x7FFFFFFF, 31, 0)),
}
LOADS: Mapping[str, tuple[tuple[int, int], ...]] = {
    "lb": ((0, 2), (1, 0x7F), (2, -15), (3, -128)), "lbu": ((0, 2), (1, 0x7F), (2, 0xF1), (3, 0x80)),
    "lh": ((0, 0x7F02), (2, -32527)), "lhu": ((0, 0x7F02), (2, 0x80F1)), "lw": ((0, 0x80F17F02), (4, 0x0FF0F00F)),
}
STORES: Mapping[str, tuple[tuple[int, int], ...]] = {
    "sb": ((0, 0x111111DD), (1, 0x1111DD11), (2, 0x11DD1111), (3, 0xDD111111)), "sh": ((0, 0x1111CCDD), (2, 0xCCDD1111)),
    "sw": ((0, 0xAABBCCDD),),
}


def program(checks: Iterator[str]) -> str:
    """The text of a program that makes these checks, each of which goes to `fail` where it is not met."""
    return FRAME.format(body="\n".join(f"    li gp, {number}\n{check}" for number, check in enumerate(checks, 1)))


def expect(register: str, value: int) -> str:
    return f"    li t6, {value}\n    bne {register}, t6, fail"


def operations(name: str) -> Iterator[str]:
    """Two registers: all different, the result in the first or the second, both the same, and into x0."""
    for a, b, result in RESULTS[name]:
        begin = f"    li t1, {a}\n    li t2, {b}\n"
        yield f"{begin}    {name} t3, t1, t2\n{expect('t3', result)}"
        yield f"{begin}    {name} t1, t1, t2\n{expect('t1', result)}"
        yield f"{begin}    {name} t2, t1, t2\n{expect('t2', result)}"
        yield f"{begin}    {name} zero, t1, t2\n{expect('zero', 0)}"
        if a == b:
            yield f"{begin}    {name} t1, t1, t1\n{expect('t1', result)}"


def immediates(name: str) -> Iterator[str]:
    for a, b, result in IMMEDIATES[name]:
        yield f"    li t1, {a}\n    {name} t3, t1, {b}\n{expect('t3', result)}"
        yield f"    li t1, {a}\n    {name} t1, t1, {b}\n{expect('t1', result)}"
        yield f"    li t1, {a}\n    {name} zero, t1, {b}\n{expect('zero', 0)}"


def branches(name: str) -> Iterator[str]:
    """Forwards, and backwards over the check before."""
    for a, b, taken in TAKEN[name]:
        begin = f"    li t1, {a}\n    li t2, {b}\n"
        right, wrong = ("1f", "fail") if taken else ("fail", "1f")
        yield f"{begin}    {name} t1, t2, {right}\n    j {wrong}\n1:"
        back, on = ("3f", "fail") if taken else ("fail", "3f")
        yield f"{begin}    j 2f\n1:  j {back}\n2:  {name} t1, t2, 1b\n    j {on}\n3:"


def loads(name: str) -> Iterator[str]:
    for offset, value in LOADS[name]:
        yield f"    la t1, word\n    {name} t3, {offset}(t1)\n{expect('t3', value)}"
        yield f"    la t1, word + 16\n    {name} t1, {offset - 16}(t1)\n{expect('t1', value)}"
        yield f"    la t1, word\n    {name} zero, {offset}(t1)\n{expect('zero', 0)}"


def stores(name: str) -> Iterator[str]:
    """A lane changes and the others stay; what is loaded right after is what was stored."""
    for offset, value in STORES[name]:
        begin = "    la t1, space\n    li t2, 0x11111111\n    sw t2, 4(t1)\n    li t2, 0xaabbccdd\n"
        yield f"{begin}    {name} t2, {offset + 4}(t1)\n    lw t3, 4(t1)\n{expect('t3', value)}"
        yield f"{begin}    addi t1, t1, 100\n    {name} t2, {offset - 96}(t1)\n    lw t3, -96(t1)\n{expect('t3', value)}"
        yield f"    lw t3, 0(t1)\n    la t1, space\n    lw t3, 8(t1)\n{expect('t3', 0)}"


def others() -> Mapping[str, Iterator[str]]:
    """Instructions that are unlike any other."""
    return {
        "lui": iter([f"    lui t1, {value:#x}\n{expect('t1', value << 12)}" for value in (0, 1, 0x7FFFF, 0x80000, 0xFFFFF)]
                    + [f"    lui zero, 5\n{expect('zero', 0)}"]),
        "auipc": iter([f"1:  auipc t1, {value:#x}\n    la t2, 1b\n    sub t1, t1, t2\n{expect('t1', value << 12)}"
                       for value in (0, 1, 0x80000, 0xFFFFF)]),
        "jal": iter(["    jal t1, 1f\n0:  j fail\n1:  la t2, 0b\n    bne t1, t2, fail", "    jal zero, 1f\n    j fail\n1:",
                     "    j 2f\n1:  j 3f\n2:  jal t1, 1b\n    j fail\n3:"]),
        "jalr": iter(["    la t1, 1f\n    jalr t2, 0(t1)\n0:  j fail\n1:  la t3, 0b\n    bne t2, t3, fail",
                      "    la t1, 1f\n    jalr t1, t1, 0\n0:  j fail\n1:  la t3, 0b\n    bne t1, t3, fail",
                      "    la t1, 1f + 5\n    jalr zero, -4(t1)\n    j fail\n1:"]),
        "fence": iter(["    li t1, 5\n    fence\n    fence rw, w\n    fence.tso\n    pause\n" + expect("t1", 5)]),
        "fence.i": iter([  # 0x00700293 is li t0, 7
            "    la t1, 1f\n    li t2, 0x00700293\n    sw t2, 0(t1)\n    fence.i\n1:  li t0, 3\n" + expect("t0", 7),
            "    la t1, 1f\n    li t2, 0x00900293\n    sw t2, 0(t1)\n1:  li t0, 3\n" + expect("t0", 9)]),
        "ecall": iter(["    li a7, 1234\n    ecall\n" + expect("a0", -38)]),
    }


def suite(*, multiply: bool = True) -> Mapping[str, str]:
    """Programs by the name of the instruction; ebreak, which stops a run, is not among them."""
    found = {name: program(operations(name)) for name in RESULTS if multiply or not name.startswith(("mul", "div", "rem"))}
    for names, checks in ((IMMEDIATES, immediates), (TAKEN, branches), (LOADS, loads), (STORES, stores)):
        found |= {name: program(checks(name)) for name in names}
    return found | {name: program(checks) for name, checks in others().items()}
