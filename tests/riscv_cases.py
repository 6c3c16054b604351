"""Cases for every level of the RISC-V machine: what each instruction gives, random programs, and ones without end."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from punchcard.machines.riscv import isa
from punchcard.machines.riscv.designs.base import REGISTER_COUNT, SINK
from punchcard.machines.riscv.isa import INSTRUCTIONS, MASK, Instruction, encode, immediate_range, signed
from punchcard.machines.riscv.machine import RiscvMachine
from punchcard.machines.riscv.numbers import ELSE
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


def program_of(words: Sequence[int], base: int = 0, entry: int | None = None) -> RiscvProgram:
    """A program of these words, which begins with the first."""
    content = b"".join(word.to_bytes(4, "little") for word in words)
    return RiscvProgram((Segment(base, content),), base if entry is None else entry, base)


def random_words(seed: int, words: int, base: int = 0, *, multiply: bool = True) -> list[int]:
    """A memory full of random instructions: most accesses and jumps stay in it, and many stores change instructions."""
    numbers = random.Random(seed)
    chosen = [*PLAIN, *(one for one in INSTRUCTIONS if multiply and one.extension == "M")]
    found = [random_word(numbers, numbers.choice(chosen), 4 * index, 4 * words, base) for index in range(words)]
    found[-1] = encode("jal", immediate=-4 * (words - 1))
    return found


def is_instruction(word: int, known: Sequence[Instruction]) -> bool:
    return any(word & one.mask == one.match for one in known)


def illegal_word(rng: random.Random, known: Sequence[Instruction]) -> int:
    """A word that is not an instruction: nearly one, one of 16 bits, all zeros or ones, near the M extension, or any."""
    while True:
        nearly = any_instruction(rng, rng.choice(known)) ^ 1 << rng.choice((*range(7), *range(12, 15), *range(25, 32)))
        near_m = rng.getrandbits(18) << 7 | isa.OP | rng.randrange(128) << 25
        word = rng.choice((nearly, nearly, near_m, rng.getrandbits(32), rng.getrandbits(32) & ~3 | rng.randrange(3),
                           rng.getrandbits(16), 0, MASK))
        if not is_instruction(word, known):
            return word


def wild_words(seed: int, words: int, known: Sequence[Instruction], wild: float = 0.1) -> list[int]:
    """A memory full of random instructions, with words among them that are not: a run ends at the first that it meets.

    It begins with registers that are addresses in the memory, and one with an extreme number.
    """
    rng = random.Random(f"wild {seed}")
    found = random_words(seed, words, multiply=any(one.extension == "M" for one in known))
    begin = [encode("addi", rd=register, immediate=4 * rng.randrange(words)) for register in (8, 9, 18, 19)]
    begin += [encode("lui", rd=11, immediate=signed(extreme(rng) & ~0xFFF)),
              encode("addi", rd=12, immediate=rng.randrange(-9, 9))]
    for place in range(len(begin), words - 1):
        if rng.random() < wild:
            found[place] = illegal_word(rng, known)
    return [*begin, *found[len(begin) :]]


def random_registers(seed: int, words: int, base: int = 0) -> list[int]:
    """Registers with extreme numbers; s0 to s3 are addresses in the memory."""
    numbers = random.Random(-seed)
    found = [numbers.choice((*CORNERS, numbers.getrandbits(32))) for _ in range(32)]
    found[0] = 0
    for register in (8, 9, 18, 19):
        found[register] = base + 4 * numbers.randrange(words)
    return found


def random_word(numbers: random.Random, one: Instruction, at: int, end: int, base: int) -> int:
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


EXTREMES = (0, 1, 2, 3, 4, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x55555555, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF)
BASE_REGISTER = 8
"""s0: no instruction of a program without end writes to it."""
PLAIN = [i for i in isa.INSTRUCTIONS if i.extension != "M" and i.format != "system" and not i.privileged]


def extreme(rng: random.Random) -> int:
    return rng.choice((rng.choice(EXTREMES), rng.getrandbits(32), rng.getrandbits(8)))


def any_instruction(rng: random.Random, instruction: Instruction) -> int:
    """A word with random registers, x0 among them, and an immediate that is often extreme."""
    registers = {name: rng.choice((0, rng.randrange(32), rng.randrange(32))) for name in instruction.uses}
    allowed = immediate_range(instruction.format)
    immediate = rng.choice((allowed[0], allowed[-1], allowed[rng.randrange(len(allowed))], allowed[len(allowed) // 2]))
    return encode(instruction, **registers, immediate=immediate if len(allowed) > 1 else 0)


def endless(rng: random.Random, memory: int, length: int) -> RiscvProgram:
    """A program that never faults: s0 is where the data are, behind the code, and loads and stores count from there."""
    data = 4 * (length + 3)
    code = [encode("lui", rd=BASE_REGISTER, immediate=data + 0x800 & 0xFFFFF000),
            encode("addi", rd=BASE_REGISTER, rs1=BASE_REGISTER, immediate=signed(data, 12))]
    length += len(code)
    room = min(4 * memory - data, 2000)
    while len(code) < length:
        instruction = rng.choice(PLAIN)
        registers = {name: rng.choice([0, *(n for n in range(32) if name != "rd" or n != BASE_REGISTER)])
                     for name in instruction.uses}
        allowed, left = immediate_range(instruction.format), length - len(code)
        immediate = allowed[rng.randrange(len(allowed))] if len(allowed) > 1 else 0
        if instruction.access_bytes:
            size = instruction.access_bytes
            registers["rs1"] = BASE_REGISTER
            immediate = rng.randrange(0, room // size) * size
        elif instruction.format in ("B", "J"):
            immediate = 4 * rng.randrange(1, min(left, 6) + 1)
        elif instruction.opcode == isa.JALR:
            continue
        code.append(encode(instruction, **registers, immediate=immediate))
    code.append(encode("jal", immediate=-4 * length))
    assert 4 * len(code) == data
    words = code + [extreme(rng) for _ in range(room // 4)]
    return program_of(words)


def overwriting(rng: random.Random, memory: int, rounds: int) -> RiscvProgram:
    """A program that stores instructions in front of itself: each is executed as stored, in the very next loop."""
    code: list[int] = [encode("addi", rd=BASE_REGISTER, immediate=0)]
    for number in range(rounds):
        operation = rng.choice([i for i in PLAIN if i.opcode == isa.OP])
        stored = encode(operation, rd=1 + number % 4, rs1=1 + rng.randrange(8), rs2=1 + rng.randrange(8))
        at = 4 * (len(code) + 3)
        high, low = (stored + 0x800 & 0xFFFFF000), signed(stored, 12)
        code += [encode("lui", rd=9, immediate=signed(high)), encode("addi", rd=9, rs1=9, immediate=low),
                 encode("sw", rs1=BASE_REGISTER, rs2=9, immediate=at), 0]
    code.append(encode("jal", immediate=-4 * (len(code) - 1)))
    return program_of(code)


# Cards in the middle of programs that nobody wrote: any instruction, any words, and all facts


def cards_of_cases(machine: RiscvMachine, count: int, seed: int = 0) -> tuple[list[str], Tensor]:
    """So many cards of each case, with the names of their cases.

    A loop of the right model fetches and decodes the instruction: so all facts hold.
    """
    rng = random.Random(seed)
    known = machine.sizes.decoder.instructions
    cases = [case for case in (*(one.name for one in known), ELSE) for _ in range(count)]
    before = torch.stack([_card(machine, rng, _word(machine, rng, case)) for case in cases])
    after = torch.cat([machine.model(some) for some in torch.split(before, 24)])
    if machine.design.lags:
        for card in after:
            _let_something_be_pending(machine, rng, card)
    return cases, after


def card_of_case(machine: RiscvMachine, rng: random.Random, case: str) -> Tensor:
    """A card of a case, on which all facts hold."""
    found: Tensor = machine.model(_card(machine, rng, _word(machine, rng, case)))
    return found


def _word(machine: RiscvMachine, rng: random.Random, case: str) -> int:
    """A word of a case."""
    return illegal_word(rng, machine.sizes.decoder.instructions) if case == ELSE else any_instruction(rng, isa.BY_NAME[case])


def _card(machine: RiscvMachine, rng: random.Random, word: int) -> Tensor:
    """A jump to a word, which may be behind the memory's end: then it is found by the low bits of the address."""
    sizes, layout = machine.sizes, machine.layout
    card = machine.punch(program_of([rng.getrandbits(32) for _ in range(sizes.memory)], sizes.base, sizes.base))
    place = rng.randrange(sizes.memory)
    first, pages = sizes.base // 4, 1 << 30 - sizes.pointer_bits
    page = rng.choice((0, 0, rng.randrange(pages)))
    entry = 4 * ((first + place + (page << sizes.pointer_bits)) % (1 << 30))
    machine.design.reset(sizes, layout, entry, card)
    layout.put_number_at(card, "memory", layout.region("memory").start + place, word)
    near = [extreme(rng), 4 * rng.randrange(sizes.memory) + sizes.base, rng.randrange(sizes.base, sizes.end)]
    registers = [0, *(rng.choice((*near, extreme(rng))) for _ in range(REGISTER_COUNT - 1))]
    layout.put_numbers(card, "registers", {"memory": registers})
    return card


def _let_something_be_pending(machine: RiscvMachine, rng: random.Random, card: Tensor) -> None:
    space = rng.getrandbits(1)
    position = rng.choice((SINK, *range(1, REGISTER_COUNT))) if space else rng.randrange(1 << machine.sizes.pointer_bits)
    machine.layout.put_numbers(card, "scratchpad", {
        "pending.position": [position], "pending.space": [space], "value": [extreme(rng)]})
