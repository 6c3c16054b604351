"""Cases for every level of the RISC-V machine: what each instruction gives, and random programs."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from punchcard.machines.riscv.isa import INSTRUCTIONS, MASK, Instruction, encode, immediate_range
from punchcard.machines.riscv.program import RiscvProgram, Segment

MOST, LEAST = 0x7FFFFFFF, 0x80000000
CORNERS: Sequence[int] = (0, 1, 2, 3, 31, 32, 0x7FF, 0x800, 0xFFF, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x55555555, 0xAAAAAAAA,
                          MOST - 1, MOST, LEAST, LEAST + 1, 0xFFFF8000, 0xFFFFF800, MASK - 1, MASK)

RESULTS: Mapping[str, Sequence[tuple[int, int, int]]] = {
    # first operand, second operand, result; worked out by hand
    "add": ((1, 2, 3), (MASK, 1, 0), (MOST, 1, LEAST), (LEAST, LEAST, 0)),
    "sub": ((1, 2, MASK), (0, LEAST, LEAST), (5, 5, 0)),
    "sll": ((1, 31, LEAST), (1, 32, 1), (0xFFFF0001, 16, 0x10000), (3, 0xFFFFFFE1, 6)),
    "slt": ((MASK, 0, 1), (0, MASK, 0), (LEAST, MOST, 1), (MOST, LEAST, 0), (7, 7, 0)),
    "sltu": ((MASK, 0, 0), (0, MASK, 1), (LEAST, MOST, 0), (7, 7, 0)),
    "xor": ((0b1100, 0b1010, 0b0110), (MASK, 1, MASK - 1)),
    "srl": ((LEAST, 31, 1), (LEAST, 32, LEAST), (MASK, 4, 0x0FFFFFFF)),
    "sra": ((LEAST, 31, MASK), (LEAST, 1, 0xC0000000), (MOST, 30, 1), (MASK, 63, MASK)),
    "or": ((0b1100, 0b1010, 0b1110),),
    "and": ((0b1100, 0b1010, 0b1000),),
    "mul": ((7, 6, 42), (MASK, MASK, 1), (LEAST, 2, 0), (0x10001, 0x10001, 0x20001)),
    "mulh": ((MASK, MASK, 0), (LEAST, LEAST, 0x40000000), (LEAST, MOST, 0xC0000000), (MASK, 1, MASK), (MASK, 0, 0)),
    "mulhsu": ((MASK, MASK, MASK), (LEAST, LEAST, 0xC0000000), (MOST, MASK, MOST - 1), (MASK, 0, 0)),
    "mulhu": ((MASK, MASK, MASK - 1), (LEAST, LEAST, 0x40000000), (MASK, 1, 0)),
    "div": ((20, 6, 3), (-20 & MASK, 6, -3 & MASK), (20, -6 & MASK, -3 & MASK), (-20 & MASK, -6 & MASK, 3),
            (LEAST, MASK, LEAST), (5, 0, MASK), (0, 0, MASK)),
    "divu": ((20, 6, 3), (-20 & MASK, 6, 0x2AAAAAA7), (LEAST, MASK, 0), (5, 0, MASK)),
    "rem": ((20, 6, 2), (-20 & MASK, 6, -2 & MASK), (20, -6 & MASK, 2), (-20 & MASK, -6 & MASK, -2 & MASK),
            (LEAST, MASK, 0), (5, 0, 5), (LEAST, 0, LEAST)),
    "remu": ((20, 6, 2), (-20 & MASK, 6, 2), (LEAST, MASK, LEAST), (5, 0, 5)),
}
TAKEN: Mapping[str, Sequence[tuple[int, int, bool]]] = {
    "beq": ((1, 1, True), (1, 2, False), (MASK, MASK, True)),
    "bne": ((1, 1, False), (1, 2, True)),
    "blt": ((MASK, 0, True), (0, MASK, False), (LEAST, MOST, True), (3, 3, False)),
    "bge": ((MASK, 0, False), (0, MASK, True), (LEAST, MOST, False), (3, 3, True)),
    "bltu": ((MASK, 0, False), (0, MASK, True), (3, 3, False)),
    "bgeu": ((MASK, 0, True), (0, MASK, False), (3, 3, True)),
}


def program_of(words: Sequence[int], base: int = 0) -> RiscvProgram:
    """A program of these words, which begins with the first."""
    return RiscvProgram((Segment(base, b"".join(word.to_bytes(4, "little") for word in words)),), base, base)


def random_words(seed: int, words: int, base: int = 0, *, multiply: bool = True) -> list[int]:
    """A memory full of random instructions: most accesses and jumps stay in it, and many stores change instructions."""
    numbers = random.Random(seed)
    chosen = [one for one in INSTRUCTIONS if one.format != "system" and (multiply or one.extension != "M")]
    found = [_random_word(numbers, numbers.choice(chosen), 4 * index, 4 * words, base) for index in range(words)]
    found[-1] = encode("jal", immediate=-4 * (words - 1))
    return found


def random_registers(seed: int, words: int, base: int = 0) -> list[int]:
    """Registers with extreme numbers; s0 to s3 are addresses in the memory."""
    numbers = random.Random(-seed)
    found = [numbers.choice((*CORNERS, numbers.getrandbits(32))) for _ in range(32)]
    found[0] = 0
    for register in (8, 9, 18, 19):
        found[register] = base + 4 * numbers.randrange(words)
    return found


def _random_word(numbers: random.Random, one: Instruction, at: int, end: int, base: int) -> int:
    """An instruction with random operands; where a wild one would only stop the run, most often a tame one."""
    operands = {name: numbers.choice((0, 1, 5, 6, 7, 10, 11, 12, 28, numbers.randrange(32))) for name in one.uses}
    allowed = immediate_range(one.format)
    immediate = numbers.choice((numbers.choice(allowed), allowed[0], allowed[-1], 0))
    tame = numbers.random() < 0.97
    if operands.get("rd") in (8, 9, 18, 19) and tame:
        operands["rd"] = 5
    if tame and (one.access_bytes or one.name == "jalr"):
        operands["rs1"] = numbers.choice((8, 9, 18, 19))
        immediate = 4 * numbers.randrange(-8, 8)
        if one.access_bytes and one.access_bytes < 4:
            immediate += numbers.randrange(0, 4, one.access_bytes)
    elif tame and one.format in ("B", "J"):
        immediate = 4 * numbers.randrange(end // 4) - at
        immediate = immediate if immediate in allowed else 8
    return encode(one, **operands, immediate=immediate)
