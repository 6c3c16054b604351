"""Random RISC-V programs: single instructions with extreme operands, and programs that go on without end."""

from __future__ import annotations

import random
from collections.abc import Sequence

from punchcard.machines.riscv import isa
from punchcard.machines.riscv.isa import Instruction
from punchcard.machines.riscv.program import RiscvProgram, Segment

EXTREMES = (0, 1, 2, 3, 4, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x55555555, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF)
BASE_REGISTER = 8
"""s0: no instruction of a program without end writes to it."""
INSTRUCTIONS = [i for i in isa.INSTRUCTIONS if i.extension != "M" and i.format != "system"]


def program_of(words: Sequence[int], entry: int = 0, base: int = 0) -> RiscvProgram:
    return RiscvProgram((Segment(base, b"".join(word.to_bytes(4, "little") for word in words)),), entry, base)


def extreme(rng: random.Random) -> int:
    return rng.choice((rng.choice(EXTREMES), rng.getrandbits(32), rng.getrandbits(8)))


def any_instruction(rng: random.Random, instruction: Instruction) -> int:
    """A word with random registers, x0 among them, and an immediate that is often extreme."""
    registers = {name: rng.choice((0, rng.randrange(32), rng.randrange(32))) for name in instruction.uses}
    allowed = isa.immediate_range(instruction.format)
    immediate = rng.choice((allowed[0], allowed[-1], allowed[rng.randrange(len(allowed))], allowed[len(allowed) // 2]))
    return isa.encode(instruction, **registers, immediate=immediate if len(allowed) > 1 else 0)


def endless(rng: random.Random, memory: int, length: int) -> RiscvProgram:
    """A program that never faults: s0 is where the data are, behind the code, and loads and stores count from there."""
    data = 4 * (length + 3)
    code = [isa.encode("lui", rd=BASE_REGISTER, immediate=data + 0x800 & 0xFFFFF000),
            isa.encode("addi", rd=BASE_REGISTER, rs1=BASE_REGISTER, immediate=isa.signed(data, 12))]
    length += len(code)
    room = min(4 * memory - data, 2000)
    while len(code) < length:
        instruction = rng.choice(INSTRUCTIONS)
        registers = {name: rng.choice([0, *(n for n in range(32) if name != "rd" or n != BASE_REGISTER)])
                     for name in instruction.uses}
        allowed, left = isa.immediate_range(instruction.format), length - len(code)
        immediate = allowed[rng.randrange(len(allowed))] if len(allowed) > 1 else 0
        if instruction.access_bytes:
            size = instruction.access_bytes
            registers["rs1"] = BASE_REGISTER
            immediate = rng.randrange(0, room // size) * size
        elif instruction.format in ("B", "J"):
            immediate = 4 * rng.randrange(1, min(left, 6) + 1)
        elif instruction.opcode == isa.JALR:
            continue
        code.append(isa.encode(instruction, **registers, immediate=immediate))
    code.append(isa.encode("jal", immediate=-4 * length))
    assert 4 * len(code) == data
    words = code + [extreme(rng) for _ in range(room // 4)]
    return program_of(words)


def overwriting(rng: random.Random, memory: int, rounds: int) -> RiscvProgram:
    """A program that stores instructions in front of itself: each is executed as stored, in the very next loop."""
    code: list[int] = [isa.encode("addi", rd=BASE_REGISTER, immediate=0)]
    for number in range(rounds):
        operation = rng.choice([i for i in INSTRUCTIONS if i.opcode == isa.OP])
        stored = isa.encode(operation, rd=1 + number % 4, rs1=1 + rng.randrange(8), rs2=1 + rng.randrange(8))
        at = 4 * (len(code) + 3)
        high, low = (stored + 0x800 & 0xFFFFF000), isa.signed(stored, 12)
        code += [isa.encode("lui", rd=9, immediate=isa.signed(high)), isa.encode("addi", rd=9, rs1=9, immediate=low),
                 isa.encode("sw", rs1=BASE_REGISTER, rs2=9, immediate=at), 0]
    code.append(isa.encode("jal", immediate=-4 * (len(code) - 1)))
    return program_of(code)
