"""Random programs for machines with traps, and a bus for them.

A program sets its registers and control registers up, runs through random instructions again and again, and handles its
traps by itself. It has nested traps, interrupts at any instruction, fields of control registers with reserved bits,
reservations that stores break, misaligned accesses, and accesses outside the memory.
"""

from __future__ import annotations

import random
from typing import Any

from punchcard.machines.riscv import csrs, isa
from punchcard.machines.riscv.isa import INSTRUCTIONS, MASK, Instruction, decode, encode, signed
from punchcard.machines.riscv.languages.assembly.assembler import assemble
from punchcard.machines.riscv.program import RiscvProgram
from tests.riscv_cases import PLAIN, any_instruction, extreme, illegal_word, program_of, random_word

DATA, OTHER_DATA, ODD, CLINT, OUTSIDE, HANDLER, END, BODY = 8, 9, 18, 19, 20, 21, 22, 23
"""Registers that most instructions leave alone: two addresses of data, one that is misaligned, the CLINT, a device, the
handler, the end of the memory, and the first random instruction."""
KEPT = (DATA, OTHER_DATA, ODD, CLINT, OUTSIDE, HANDLER, END, BODY)
SOFTWARE, COMPARE, TIME, DEVICES, NO_DEVICE = 0x11000000, 0x11004000, 0x1100BFF8, 0x10000000, 0x20000000
CLINT_WORDS = (SOFTWARE, SOFTWARE, COMPARE, TIME)
USUAL = ("mstatus", "mie", "mip", "mscratch", "mepc", "mcause", "mtval", "mcycle", "mcycleh", "cycle", "time", "misa")
USER = tuple(csr.name for csr in csrs.CSRS if csr.user)
LEAST_WORDS, DATA_WORDS = 112, 12
"""Of a memory, and of its end, which is data."""
TEMPORARY, OTHER_TEMPORARY = 5, 6
SYSTEM = {name: encode(name) for name in ("ecall", "ebreak", "mret", "wfi")}


class DevicesOfATest:
    """A bus whose answers depend on the access and on how many there were before: the same for all who ask the same.

    Of addresses from `DEVICES` on, some are refused; all others are. What is misaligned in the memory is completed where
    `completes`.
    """

    power = "on"

    def __init__(self, memory: range, completes: bool = True) -> None:
        self.memory, self.completes, self.count = memory, completes, 0
        self.stored: list[tuple[int, int]] = []

    def serve(self, word: int, guest: Any) -> int | None:
        found = decode(word)
        assert found is not None
        instruction, size = found.instruction, found.instruction.access_bytes
        address = (guest.register(found.rs1) + found.immediate) & MASK
        self.count += 1
        if instruction.opcode == isa.AMO:
            return None
        if address % size:
            inside = address in self.memory and address + size - 1 in self.memory
            return self._complete(instruction, address, guest, found.rs2) if self.completes and inside else None
        if address not in range(DEVICES, DEVICES + 64) or address % 16 == 8:
            return None
        if instruction.writes_memory:
            self.stored.append((address, guest.register(found.rs2)))
            return 0
        return _extended(instruction, (address * 0x9E3779B1 ^ self.count * 0x85EBCA6B) & MASK)

    def switches(self, word: int, guest: Any) -> bool:
        return False

    def _complete(self, instruction: Instruction, address: int, guest: Any, source: int) -> int:
        size = instruction.access_bytes
        if instruction.writes_memory:
            guest.store(address, guest.register(source).to_bytes(4, "little")[:size])
            return 0
        return _extended(instruction, int.from_bytes(guest.load(address, size), "little"))


def _extended(instruction: Instruction, number: int) -> int:
    """What a load makes of a number."""
    bits = 8 * instruction.access_bytes
    number &= (1 << bits) - 1
    return signed(number, bits) & MASK if instruction.name in ("lb", "lh") else number


def constant_words(register: int, value: int) -> list[int]:
    """Two instructions that set a register."""
    return [encode("lui", register, immediate=signed(value + 0x800 & 0xFFFFF000)),
            encode("addi", register, register, immediate=signed(value, 12))]


def privileged_program(seed: int, words: int = LEAST_WORDS, base: int = 0, *, multiply: bool = True) -> RiscvProgram:
    """A random program in a memory of so many words."""
    assert words >= LEAST_WORDS
    rng = random.Random(f"privileged {seed}")
    handler = _handler(rng)
    end, data = base + 4 * words, words - DATA_WORDS
    first_of_handler = data - len(handler)
    numbers = {DATA: base + 4 * rng.randrange(data, words), OTHER_DATA: base + 4 * rng.randrange(data, words),
               ODD: base + 4 * rng.randrange(data, words - 1) + rng.randrange(1, 4), CLINT: rng.choice(CLINT_WORDS),
               OUTSIDE: rng.choice((DEVICES, DEVICES, NO_DEVICE, end, base - 4 & MASK)),
               HANDLER: base + 4 * first_of_handler, END: end & MASK}
    numbers |= {register: extreme(rng) for register in rng.sample([r for r in range(10, 32) if r not in KEPT], 3)}
    begin = [word for register, value in numbers.items() for word in constant_words(register, value)]
    start = _start(rng)
    begin += [*constant_words(BODY, base + 4 * (len(begin) + 2 + len(start))), *start]
    body = [_any_word(rng, 4 * (len(begin) + i), 4 * first_of_handler, base, multiply)
            for i in range(first_of_handler - len(begin) - 1)]
    back = encode("jal", immediate=-4 * len(body))
    content = [*begin, *body, back, *handler]
    return program_of([*content, *(extreme(rng) for _ in range(words - len(content)))], base)


def _start(rng: random.Random) -> list[int]:
    """The handler, a timer that is near, and a mode."""
    found = [encode("csrrw", rs1=HANDLER, csr=csrs.BY_NAME["mtvec"].number)]
    found += _timer(rng, rng.randrange(4, 60))
    if rng.random() < 0.3:
        found += [encode("addi", TEMPORARY, immediate=rng.choice((1, -1))),
                  encode("lui", OTHER_TEMPORARY, immediate=SOFTWARE), encode("sw", rs1=OTHER_TEMPORARY, rs2=TEMPORARY)]
    found += [encode("addi", TEMPORARY, immediate=rng.choice((-1, 0x88, 0x88, 0x80, 0x8))),
              encode("csrrw", rs1=TEMPORARY, csr=csrs.BY_NAME["mie"].number),
              encode(rng.choice(("csrrsi", "csrrci")), immediate=8, csr=csrs.BY_NAME["mstatus"].number)]
    if rng.random() < 0.5:  # user mode begins with the next instruction but one
        found += [encode("auipc", TEMPORARY), encode("addi", TEMPORARY, TEMPORARY, immediate=16),
                  encode("csrrw", rs1=TEMPORARY, csr=csrs.BY_NAME["mepc"].number), SYSTEM["mret"]]
    return found


def _timer(rng: random.Random, distance: int) -> list[int]:
    """The next timer interrupt, so many loops away."""
    upper = encode("lui", OTHER_TEMPORARY, immediate=COMPARE)
    time = encode("csrrs", TEMPORARY, csr=csrs.BY_NAME["time"].number)
    return [upper, time, encode("addi", TEMPORARY, TEMPORARY, immediate=distance),
            encode("sw", rs1=OTHER_TEMPORARY, rs2=0, immediate=4), encode("sw", rs1=OTHER_TEMPORARY, rs2=TEMPORARY)]


def _handler(rng: random.Random) -> list[int]:
    """It takes the cause away: it sets the timer anew, or goes on after the instruction, or with the first one."""
    causes, after = csrs.BY_NAME["mcause"].number, csrs.BY_NAME["mepc"].number
    timer = [*_timer(rng, rng.choice((3, 5, 11, 17, 29, 47, 100))),
             encode("lui", OTHER_TEMPORARY, immediate=SOFTWARE), encode("sw", rs1=OTHER_TEMPORARY, rs2=0),
             encode("lui", OTHER_TEMPORARY, immediate=TIME + 8), encode("sw", rs1=OTHER_TEMPORARY, rs2=0, immediate=-4)]
    if rng.random() < 0.3:  # an exception while an interrupt is handled
        timer.append(rng.choice((SYSTEM["ecall"], SYSTEM["ebreak"], 0, encode("lw", rs1=OUTSIDE, immediate=8))))
    again = [encode("csrrs", TEMPORARY, csr=after), encode("addi", TEMPORARY, TEMPORARY, immediate=4),
             encode("bgeu", rs1=TEMPORARY, rs2=END, immediate=8), encode("bgeu", rs1=TEMPORARY, rs2=BODY, immediate=8),
             encode("addi", TEMPORARY, BODY), encode("csrrw", rs1=TEMPORARY, csr=after)]
    found = [encode("csrrs", TEMPORARY, csr=causes),
             encode("bge", rs1=TEMPORARY, rs2=0, immediate=4 * (len(timer) + 2)), *timer,
             encode("jal", immediate=4 * (len(again) + 1)), *again]
    if rng.random() < 0.5:  # another mode and enable for what follows
        found += [encode("addi", TEMPORARY, immediate=signed(rng.getrandbits(12), 12)),
                  encode(rng.choice(("csrrw", "csrrs", "csrrc")), rs1=TEMPORARY, csr=csrs.BY_NAME["mstatus"].number)]
    return [*found, SYSTEM["mret"]]


def _any_word(rng: random.Random, at: int, end: int, base: int, multiply: bool) -> int:
    """An instruction of any sort."""
    sort = rng.random()
    if sort < 0.35:
        chosen = [*PLAIN, *(one for one in INSTRUCTIONS if multiply and one.extension == "M")]
        word = random_word(rng, rng.choice(chosen), at, end, base)
        found = decode(word)
        assert found is not None
        return word if found.rd not in KEPT or rng.random() < 0.02 else encode("addi", found.rd % 8, 10, immediate=1)
    if sort < 0.55:
        return _atomic(rng)
    if sort < 0.7:
        return _control(rng)
    if sort < 0.94:
        return _access(rng)
    if sort < 0.98:
        return rng.choices([*SYSTEM.values()], (5, 2, 2, 3))[0]
    known = [one for one in INSTRUCTIONS if multiply or one.extension != "M"]
    return rng.choice((illegal_word(rng, known), any_instruction(rng, rng.choice(known))))


def _register(rng: random.Random) -> int:
    """One that may be written."""
    return rng.choice([0, 1, 5, 6, 7, 10, 11, 12, 13, 28, 31])


def _atomic(rng: random.Random) -> int:
    """Often lr.w or sc.w, mostly of the two words of data, with any order."""
    atomics = [one for one in INSTRUCTIONS if one.extension == "A"]
    one = rng.choice((isa.BY_NAME["lr.w"], isa.BY_NAME["sc.w"], *atomics))
    place = rng.choice((*4 * [DATA], *4 * [OTHER_DATA], ODD, CLINT, OUTSIDE))
    operands = {"rd": _register(rng), "rs1": place, "rs2": rng.randrange(32)}
    return encode(one, **{name: operands[name] for name in one.uses}) | rng.randrange(4) << 25


def _control(rng: random.Random) -> int:
    """A control register, often a usual one; what is written is any number, or of few bits."""
    one = rng.choice([each for each in INSTRUCTIONS if each.uses_csr])
    number = rng.choice((*(csrs.BY_NAME[rng.choice(names)].number for names in (USUAL, USUAL, USUAL, USER)),
                         rng.choice(csrs.CSRS).number, rng.getrandbits(12)))
    if number == csrs.BY_NAME["mtvec"].number:  # a handler that is nowhere is the end of everything else
        number = csrs.BY_NAME["mscratch"].number if rng.random() < 0.95 else number
    operands = {"rd": _register(rng), "rs1": rng.choice((0, rng.randrange(32), rng.randrange(32)))}
    immediate = rng.choice((0, rng.randrange(32))) if one.format == "csr immediate" else 0
    return encode(one, **{name: operands[name] for name in one.uses}, immediate=immediate, csr=number)


def _access(rng: random.Random) -> int:
    """A load or store of data, of the CLINT, of a device, or misaligned."""
    one = rng.choice([each for each in INSTRUCTIONS if each.opcode in (isa.LOAD, isa.STORE)])
    place = rng.choice((DATA, OTHER_DATA, ODD, CLINT, CLINT, OUTSIDE))
    operands = {"rd": _register(rng), "rs1": place, "rs2": rng.randrange(32)}
    immediate = {CLINT: rng.choice((0, 0, 4)), OUTSIDE: rng.randrange(-4, 40)}.get(place, 4 * rng.randrange(-2, 3))
    if place == CLINT:
        one, operands["rs2"] = rng.choice((one, isa.BY_NAME["lw"], isa.BY_NAME["sw"])), rng.choice((ODD, operands["rs2"]))
    return encode(one, **{name: operands[name] for name in one.uses}, immediate=immediate)


INTERRUPTED = """
    .base {base:#x}
    la t0, handler
    csrw mtvec, t0
    la s0, data
    lui s1, 0x11004
    lui s2, 0x10000
    sw zero, 4(s1)
    li t1, {distance}
    sw t1, 0(s1)
    li t1, 0x80
    csrw mie, t1
    csrsi mstatus, 8
    li a0, 5
loop:
    lr.w a1, (s0)
    add a1, a1, a0
    sc.w a2, a1, (s0)
    bnez a2, loop
    amoadd.w a3, a0, (s0)
    lw a4, 0(s2)
    sb a4, 1(s2)
    lh a5, 1(s0)
    sw a5, 5(s0)
    lw t2, -8(s1)
    csrrw t3, mscratch, a4
    ecall
    wfi
    jal t4, next
    .word 0
next:
    csrr t5, mcycle
    amoswap.w.aq zero, t5, (s0)
    j loop
handler:
    csrr t0, mcause
    bltz t0, timer
    csrr t0, mepc
    addi t0, t0, 4
    csrw mepc, t0
    mret
timer:
    csrr t0, time
    addi t0, t0, {period}
    sw t0, 0(s1)
    mret
data:
    .word 7, 0x89abcdef, 0
"""


def interrupted_program(distance: int, period: int, base: int = 0) -> RiscvProgram:
    """A loop with instructions of all sorts, and a timer: its first interrupt after so many loops, then every period."""
    return assemble(INTERRUPTED.format(distance=distance, period=period, base=base), "interrupted.s")


CHANGING = """
    .base {base:#x}
    la s0, data
    la s2, first
    la s3, second
    lui s1, 0x11004
    la t0, handler
    csrw mtvec, t0
    csrr t0, time
    addi t0, t0, {distance}
    li t1, -1
    sw t1, 0(s1)
    sw zero, 4(s1)
    sw t0, 0(s1)
    li t1, {enabled}
    csrw mie, t1
    csrsi mstatus, 8
    li a0, {number}
    li a1, {other}
    la t0, loop
    csrw mepc, t0
    li t1, {mode}
    csrw mstatus, t1
    mret
loop:
{body}
    j loop
handler:
    csrrw s11, mscratch, s11
    csrr s10, mcause
    bltz s10, timer
    csrr s10, mepc
    addi s10, s10, 4
    csrw mepc, s10
{mended}
    csrrw s11, mscratch, s11
    mret
timer:
    la s10, inner
    csrrw s11, mtvec, s10
    {nested}
    csrw mtvec, s11
    lui s10, 0x11000
    sw zero, 0(s10)
    csrr s10, time
    addi s10, s10, {period}
    sw s10, 0(s1)
    csrr s10, mepc
    csrci mstatus, 8
    la s9, loop
    csrw mepc, s9
    csrrw s11, mscratch, s11
    mret
inner:
    csrr s10, mepc
    addi s10, s10, 4
    csrw mepc, s10
    mret
    .align 4
data:
    .word {number}, {other}, 0, 0x80000000
first: addi a0, a0, 1
    xori a0, a0, 0x55
    ecall
    csrrs a2, mscratch, zero
second: sltu a2, a0, a1
    amoor.w a2, a0, (s0)
    .word 0
    lw a2, 1(s0)
"""
"""A program that changes its own instructions, also in its handlers, which are interrupted themselves."""
_CHANGES = (
    "lw t0, {word}(s2)\n la t1, {place}\n sw t0, 0(t1)\n{fence}",
    "lw t0, {word}(s3)\n la t1, {place}\n sw t0, 0(t1)\n fence.i",
    "lhu t0, {half}(s2)\n la t1, {place}\n sh t0, 2(t1)\n fence.i")
_STEPS = (
    "{place}: addi a0, a0, 7", "{place}: add a1, a1, a0",
    "lr.w a2, (s0)\n addi a3, s0, 4\n sc.w a4, a2, (a3)\n sc.w a5, a0, (s0)",
    "lr.w a2, (s0)\n sb a0, 3(s0)\n sc.w a3, a1, (s0)", "lr.w a2, (s0)\n sc.w a2, a1, (s0)",
    "lr.w zero, (s0)\n lr.w a2, (s0)\n sc.w zero, a0, (s0)",
    "addi t2, s0, {odd}\n {atomic}.w a2, a0, (t2)", "{atomic}.w.aqrl a0, a1, (s0)", "{atomic}.w zero, a0, (s0)",
    "csrrs zero, {csr}, a0", "csrrc a2, {csr}, zero", "csrrw zero, {csr}, zero", "csrrwi a3, {csr}, {five}",
    "csrrsi a3, {csr}, 0", "csrrs a3, cycle, zero", "csrrs a3, instret, a0", "wfi", "ecall", "ebreak", "mret", "fence",
    "jalr a4, {odd}(s0)", "lw a5, {odd}(s0)", "sh a5, {odd}(s0)", "sw a0, -4(s1)", "sh a0, 0(s1)",
    "csrr t0, time\n addi t0, t0, {five}\n sw t0, 0(s1)", "lui t0, 0x11000\n li t1, {five}\n sw t1, 0(t0)",
    "sw a1, 8(s0)\n lw a2, 8(s0)\n lbu a3, 9(s0)")
_REGISTERS = ("mscratch", "mtval", "mcause", "mie", "mip", "mepc", "mcycle", "mcycleh", "minstret", "misa", "mcounteren")


def changing_program(seed: int, base: int = 0) -> RiscvProgram:
    """A loop of few instructions, some of which are written while it runs."""
    rng = random.Random(f"changing {seed}")
    count = rng.randrange(4, 12)
    places = [f"place{i}" for i in range(count)]
    steps = [rng.choice((*_STEPS[:2], *_STEPS)).format(**_operands(rng, f"place{i}")) for i in range(count)]
    places = [place for place in places if any(step.startswith(f"{place}:") for step in steps)] or ["loop"]

    def change() -> str:
        return rng.choice(_CHANGES).format(**_operands(rng, rng.choice(places)))

    steps += [change() for _ in range(rng.randrange(3))]
    rng.shuffle(steps)
    text = CHANGING.format(
        base=base, distance=rng.randrange(20, 90), period=rng.randrange(25, 200), number=extreme(rng), other=extreme(rng),
        enabled=rng.choice((0x80, 0x88, -1)), mode=rng.choice((0x1880, 0x80, 0x880, 0xFFFFE77F, 0x1800)),
        body="\n ".join(steps), mended=rng.choice(("", "", change())),
        nested=rng.choice(("", "ecall", "ebreak", ".word 0", "csrsi mstatus, 8\n nop\n nop")))
    return assemble(text, "changing.s")


def _operands(rng: random.Random, place: str) -> dict[str, object]:
    """What the steps of such a program leave open."""
    atomics = [one.name.removesuffix(".w") for one in INSTRUCTIONS if one.extension == "A" and one.name[1] == "m"]
    return {"place": place, "word": 4 * rng.randrange(4), "half": 2 * rng.randrange(8), "odd": rng.randrange(1, 4),
            "five": rng.randrange(32), "atomic": rng.choice(atomics), "fence": rng.choice(("fence.i", "")),
            "csr": rng.choice(_REGISTERS)}
