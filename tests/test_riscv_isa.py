"""RV32IMA as a table: encodings from the specification, and every immediate there and back."""

from __future__ import annotations

import random
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from punchcard.errors import ProgramError
from punchcard.machines.riscv.isa import (
    BY_NAME,
    INSTRUCTIONS,
    MASK,
    REGISTER_NUMBERS,
    REGISTERS,
    Decoded,
    Instruction,
    decode,
    encode,
    find,
    immediate_range,
    signed,
)

BY_HAND = {
    # opcode, funct3 and funct7 as the specification lists them, put together by hand
    0b0000000_00011_00010_000_00001_0110011: Decoded(BY_NAME["add"], 1, 2, 3),
    0b0100000_00011_00010_000_00001_0110011: Decoded(BY_NAME["sub"], 1, 2, 3),
    0b0100000_11111_00010_101_00001_0010011: Decoded(BY_NAME["srai"], 1, 2, 0, 31),
    0b111111111111_00010_000_00001_0010011: Decoded(BY_NAME["addi"], 1, 2, 0, -1),
    0b100000000000_00010_010_00001_0000011: Decoded(BY_NAME["lw"], 1, 2, 0, -2048),
    0b0111111_00011_00010_010_11111_0100011: Decoded(BY_NAME["sw"], 0, 2, 3, 2047),
    0b1_111111_00011_00010_001_1110_1_1100011: Decoded(BY_NAME["bne"], 0, 2, 3, -4),
    0b0_000000_00011_00010_001_0000_1_1100011: Decoded(BY_NAME["bne"], 0, 2, 3, 2048),
    0b10000000000000000001_00001_0110111: Decoded(BY_NAME["lui"], 1, 0, 0, -(1 << 31) + (1 << 12)),
    0b0_0000000001_0_00000000_00001_1101111: Decoded(BY_NAME["jal"], 1, 0, 0, 2),
    0b0_0000000000_1_00000000_00001_1101111: Decoded(BY_NAME["jal"], 1, 0, 0, 2048),
    0b0_0000000000_0_00000001_00001_1101111: Decoded(BY_NAME["jal"], 1, 0, 0, 4096),
    0b1_0000000000_0_00000000_00001_1101111: Decoded(BY_NAME["jal"], 1, 0, 0, -(1 << 20)),
    0b0000001_00011_00010_111_00001_0110011: Decoded(BY_NAME["remu"], 1, 2, 3),
    0x0FF0000F: Decoded(BY_NAME["fence"]),
    0x0000100F: Decoded(BY_NAME["fence.i"]),
    0x00000073: Decoded(BY_NAME["ecall"]),
    0x00100073: Decoded(BY_NAME["ebreak"]),
    0x30200073: Decoded(BY_NAME["mret"]),
    0x10500073: Decoded(BY_NAME["wfi"]),
    0b00010_1_1_00000_00010_010_00001_0101111: Decoded(BY_NAME["lr.w"], 1, 2),
    0b00011_0_1_00011_00010_010_00001_0101111: Decoded(BY_NAME["sc.w"], 1, 2, 3),
    0b00001_1_0_00011_00010_010_00001_0101111: Decoded(BY_NAME["amoswap.w"], 1, 2, 3),
    0b11100_0_0_00011_00010_010_00001_0101111: Decoded(BY_NAME["amomaxu.w"], 1, 2, 3),
    0b001100000000_00010_001_00001_1110011: Decoded(BY_NAME["csrrw"], 1, 2, csr=0x300),
    0b110000000000_00000_010_00001_1110011: Decoded(BY_NAME["csrrs"], 1, csr=0xC00),
    0b001101000001_11111_111_00001_1110011: Decoded(BY_NAME["csrrci"], 1, immediate=31, csr=0x341),
    0xC0001073: Decoded(BY_NAME["csrrw"], csr=0xC00),
}
ILLEGAL = (0, MASK, 0x00200073, 0x00004073, 0x10200073, 0x00003003, 0x00003023, 0x00002063, 0x40001033, 0x04000033,
           0x02001013, 0x00001067, 0x0000200F, 0x0000002F, 0x0000302F, 0x1010202F, 0x2800202F, 0x00000007, 0x00000001)
"""Nothing, uret, sret, 64-bit loads and stores, free numbers, atomics of other sizes, of 64 bits and unknown ones, lr.w with
rs2, floats, a compressed word."""


def test_the_table_has_the_whole_instruction_set() -> None:
    names = [instruction.name for instruction in INSTRUCTIONS if instruction.extension == "I"]
    assert (len(names), sum(not instruction.privileged for instruction in INSTRUCTIONS), len(INSTRUCTIONS)) == (40, 49, 68)
    assert len({instruction.name for instruction in INSTRUCTIONS}) == 68


def test_no_word_is_two_instructions() -> None:
    for one, other in combinations(INSTRUCTIONS, 2):
        both = one.mask & other.mask
        assert one.match & both != other.match & both, (one.name, other.name)


@pytest.mark.parametrize("word", BY_HAND)
def test_encodings_of_the_specification(word: int) -> None:
    assert decode(word) == BY_HAND[word]


@pytest.mark.parametrize("word", ILLEGAL)
def test_words_that_are_not_instructions(word: int) -> None:
    assert decode(word) is None


@pytest.mark.parametrize("instruction", INSTRUCTIONS, ids=lambda instruction: instruction.name)
def test_every_immediate_and_every_register_there_and_back(instruction: Instruction) -> None:
    allowed = immediate_range(instruction.format)
    some = allowed if len(allowed) <= 4096 else [*allowed[:64], *allowed[-64:], *allowed[:: len(allowed) // 500]]
    for immediate in some:
        assert decode(encode(instruction, immediate=immediate)) == Decoded(instruction, immediate=immediate)
    for name in instruction.uses:
        for number in range(32):
            found = decode(encode(instruction, **{name: number}))
            assert found is not None
            assert found._asdict() == {**Decoded(instruction)._asdict(), name: number}
    for number in range(1 << 12) if instruction.uses_csr else ():
        assert decode(encode(instruction, csr=number)) == Decoded(instruction, csr=number)


def test_random_words_are_what_encodes_to_them() -> None:
    numbers = random.Random(1)
    found = 0
    for _ in range(5000):
        word = numbers.getrandbits(32) & ~0x7F | numbers.choice(INSTRUCTIONS).opcode
        decoded = decode(word)
        assert (decoded is None) == (find(word) is None)
        if decoded is not None and decoded.instruction.format != "fence":
            ignored = 3 << 25 if decoded.instruction.extension == "A" else 0
            assert encode(decoded.instruction, *decoded[1:]) == word & ~ignored
            found += 1
    assert found > 1000


@given(st.integers(-(1 << 40), 1 << 40), st.integers(1, 33))
def test_signed_numbers(value: int, bits: int) -> None:
    found = signed(value, bits)
    assert -(1 << bits - 1) <= found < 1 << bits - 1
    assert (found - value) % (1 << bits) == 0


@pytest.mark.parametrize(("call", "message"), [
    (lambda: encode("addi", immediate=2048), "addi with the immediate 2048: it must be -2048 to 2047"),
    (lambda: encode("beq", immediate=3), "beq with the immediate 3: it must be -4096 to 4094, a multiple of 2"),
    (lambda: encode("lui", immediate=4095),
     "lui with the immediate 4095: it must be -2147483648 to 2147479552, a multiple of 4096"),
    (lambda: encode("slli", immediate=32), "slli with the immediate 32: it must be 0 to 31"),
    (lambda: encode("add", 32), "add with rd=32: a register is 0 to 31"),
    (lambda: encode("sw", rd=1), "sw with rd=1: it has no rd"),
    (lambda: encode("add", immediate=1), "add with the immediate 1: it has no immediate"),
    (lambda: encode("lr.w", rs2=1), "lr.w with rs2=1: it has no rs2"),
    (lambda: encode("amoor.w", immediate=4), "amoor.w with the immediate 4: it has no immediate"),
    (lambda: encode("csrrwi", immediate=32), "csrrwi with the immediate 32: it must be 0 to 31"),
    (lambda: encode("csrrw", csr=4096), "csrrw with csr=0x1000: a control register is 0 to 0xfff"),
    (lambda: encode("add", csr=1), "add with csr=0x1: it has no control register"),
])
def test_what_cannot_be_encoded(call: object, message: str) -> None:
    with pytest.raises(ProgramError) as caught:
        call()  # type: ignore[operator]
    assert str(caught.value) == message


def test_names_of_registers() -> None:
    assert len(REGISTERS) == 32
    assert [REGISTER_NUMBERS[name] for name in ("zero", "ra", "sp", "fp", "s0", "a0", "a7", "s11", "t6", "x31")] == [
        0, 1, 2, 8, 8, 10, 17, 27, 31, 31]
