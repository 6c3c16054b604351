"""RV32IMA as a table: each instruction is declared once, by the bits that tell it from the others and by what it does.

    format   bits 31 to 25   24 to 20    19 to 15   14 to 12   11 to 7      6 to 0
    R        funct7          rs2         rs1        funct3     rd           opcode
    I        imm[11:0]                   rs1        funct3     rd           opcode
    shift    funct7          amount      rs1        funct3     rd           opcode
    S        imm[11:5]       rs2         rs1        funct3     imm[4:0]     opcode
    B        imm[12,10:5]    rs2         rs1        funct3     imm[4:1,11]  opcode
    U        imm[31:12]                                        rd           opcode
    J        imm[20,10:1,11,19:12]                             rd           opcode
    fence    ignored                                funct3     ignored      opcode
    system   imm[11:0], a number of its own     0   funct3     0            opcode
    atomic   funct5, aq, rl  rs2         rs1        funct3     rd           opcode
    reserve  funct5, aq, rl  0           rs1        funct3     rd           opcode
    csr      number of a register        rs1        funct3     rd           opcode
    csr immediate  number                imm[4:0]   funct3     rd           opcode

aq and rl are ignored: there is one hart. Instructions of the extensions in `PRIVILEGED` exist on a privileged machine alone.
Interpreters, assembler, disassembler, proofs, the layers' decode literals and the docs read this table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

from punchcard.errors import ProgramError
from punchcard.machines.riscv import csrs
from punchcard.machines.riscv.semantics import WORD_BITS as WORD_BITS
from punchcard.machines.riscv.semantics import WORD_BYTES as WORD_BYTES
from punchcard.machines.riscv.semantics import (
    Operation,
    Semantics,
    atomic,
    branch,
    combine,
    combine_immediate,
    compute,
    high_product,
    jump,
    load,
    nothing,
    store,
    store_conditional,
    truth,
    write_csr,
)
from punchcard.words.word import as_signed

Format: TypeAlias = Literal["R", "I", "shift", "S", "B", "U", "J", "fence", "system", "atomic", "reserve", "csr",
                            "csr immediate"]
Extension: TypeAlias = Literal["I", "M", "Zifencei", "A", "Zicsr", "privileged"]
PRIVILEGED: tuple[Extension, ...] = ("A", "Zicsr", "privileged")
"""The extensions of a machine with traps."""

MASK = 0xFFFFFFFF

LOAD, MISC_MEM, OP_IMM, AUIPC, STORE, OP = 0x03, 0x0F, 0x13, 0x17, 0x23, 0x33
LUI, BRANCH, JALR, JAL, SYSTEM, AMO = 0x37, 0x63, 0x67, 0x6F, 0x73, 0x2F
WIDTHS = {"b": 1, "h": 2, "w": 4}
"""The bytes of a load or store, by a letter of its name."""


class Piece(NamedTuple):
    """Bits of an immediate that are together: `width` bits of the word from `at` on, the immediate's from `low` on."""

    at: int
    width: int
    low: int


IMMEDIATES: Mapping[Format, tuple[Piece, ...]] = {
    "I": (Piece(20, 12, 0),),
    "shift": (Piece(20, 5, 0),),
    "S": (Piece(7, 5, 0), Piece(25, 7, 5)),
    "B": (Piece(8, 4, 1), Piece(25, 6, 5), Piece(7, 1, 11), Piece(31, 1, 12)),
    "U": (Piece(12, 20, 12),),
    "J": (Piece(21, 10, 1), Piece(20, 1, 11), Piece(12, 8, 12), Piece(31, 1, 20)),
    "atomic": (),
    "reserve": (),
    "csr immediate": (Piece(15, 5, 0),),
}
"""Where the immediate of a format is in the word. That of an atomic instruction, which has an address, is 0."""
UNSIGNED: tuple[Format, ...] = ("shift", "csr immediate")
"""Formats whose immediate has no sign."""
FIELDS: Mapping[str, int] = {"rd": 7, "rs1": 15, "rs2": 20}
"""The first bit of a register's number, which has five."""
USES: Mapping[Format, tuple[str, ...]] = {
    "R": ("rd", "rs1", "rs2"), "I": ("rd", "rs1"), "shift": ("rd", "rs1"), "S": ("rs1", "rs2"), "B": ("rs1", "rs2"),
    "U": ("rd",), "J": ("rd",), "fence": (), "system": (),
    "atomic": ("rd", "rs1", "rs2"), "reserve": ("rd", "rs1"), "csr": ("rd", "rs1"), "csr immediate": ("rd",),
}
"""The registers of a format."""
CSR_AT, CSR_BITS = 20, 12
"""The bits of the number of a control register."""


@dataclass(frozen=True)
class Instruction:
    """An instruction by its fixed bits; None if a format has no such field. `number` is that of a system instruction.

    The two lowest bits of an atomic instruction's funct7 may be any.
    `semantics` gives what it does, as words of its operands.
    """

    name: str
    format: Format
    opcode: int
    funct3: int | None = None
    funct7: int | None = None
    extension: Extension = "I"
    number: int | None = None
    semantics: Semantics = field(default=nothing, compare=False)

    @property
    def mask(self) -> int:
        """The bits of the word that are fixed."""
        if self.format == "system":
            return MASK
        high = {"atomic": 0xF8000000, "reserve": 0xF9F00000}.get(self.format, 0xFE000000)
        return 0x7F | (0 if self.funct3 is None else 0x7000) | (0 if self.funct7 is None else high)

    @property
    def match(self) -> int:
        """The value of the fixed bits."""
        return self.opcode | (self.funct3 or 0) << 12 | (self.funct7 or 0) << 25 | (self.number or 0) << 20

    @property
    def uses(self) -> tuple[str, ...]:
        """Which of rd, rs1 and rs2 it has."""
        return USES[self.format]

    @property
    def privileged(self) -> bool:
        """Whether only a privileged machine has it."""
        return self.extension in PRIVILEGED

    @property
    def reads_memory(self) -> bool:
        """Whether it is a load, or lr.w: what is refused is a load."""
        return self.opcode == LOAD or self.format == "reserve"

    @property
    def writes_memory(self) -> bool:
        """Whether it is a store, sc.w or an amo: what is refused is a store."""
        return self.opcode == STORE or self.format == "atomic"

    @property
    def has_two_results(self) -> bool:
        """Whether it changes both the memory and rd."""
        return self.format == "atomic"

    @property
    def uses_csr(self) -> bool:
        return self.format in ("csr", "csr immediate")

    @property
    def access_bytes(self) -> int:
        """Bytes that a load, a store or an atomic instruction moves; 0 for any other."""
        return 1 << ((self.funct3 or 0) & 3) if self.opcode in (LOAD, STORE, AMO) else 0


OPERATIONS: Mapping[str, Operation] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "sll": lambda x, y: x << (y & 31),
    "slt": truth(lambda x, y: x.less(y, signed=True)),
    "sltu": truth(lambda x, y: x.less(y)),
    "xor": lambda x, y: x ^ y,
    "srl": lambda x, y: x >> (y & 31),
    "sra": lambda x, y: x.signed_shift(y & 31),
    "or": lambda x, y: x | y,
    "and": lambda x, y: x & y,
    "mul": lambda x, y: x * y,
    "mulh": high_product(True, True),
    "mulhsu": high_product(True, False),
    "mulhu": high_product(False, False),
    "div": lambda x, y: x.divide(y, signed=True),
    "divu": lambda x, y: x.divide(y),
    "rem": lambda x, y: x.remainder(y, signed=True),
    "remu": lambda x, y: x.remainder(y),
}
"""What the arithmetic unit computes."""
CONDITIONS: Mapping[str, Operation] = {
    "beq": lambda x, y: x.equals(y),
    "bne": lambda x, y: x.differs(y),
    "blt": lambda x, y: x.less(y, signed=True),
    "bge": lambda x, y: x.at_least(y, signed=True),
    "bltu": lambda x, y: x.less(y),
    "bgeu": lambda x, y: x.at_least(y),
}
"""When a branch is taken."""

AMOS: Mapping[str, Operation] = {
    "amoswap.w": lambda x, y: y,
    "amoadd.w": OPERATIONS["add"],
    "amoxor.w": OPERATIONS["xor"],
    "amoand.w": OPERATIONS["and"],
    "amoor.w": OPERATIONS["or"],
    "amomin.w": lambda x, y: y.less(x, signed=True).choose(y, x),
    "amomax.w": lambda x, y: x.less(y, signed=True).choose(y, x),
    "amominu.w": lambda x, y: y.less(x).choose(y, x),
    "amomaxu.w": lambda x, y: x.less(y).choose(y, x),
}
"""What the word of the memory becomes, by itself and a register."""
AMO_FUNCT5: Mapping[str, int] = {
    "amoswap.w": 0x01, "amoadd.w": 0x00, "amoxor.w": 0x04, "amoand.w": 0x0C, "amoor.w": 0x08, "amomin.w": 0x10,
    "amomax.w": 0x14, "amominu.w": 0x18, "amomaxu.w": 0x1C,
}
CSR_WRITES: Mapping[str, Operation] = {
    "csrrw": lambda old, x: x,
    "csrrs": lambda old, x: old | x,
    "csrrc": lambda old, x: old & ~x,
}
"""What a control register becomes, by itself and a register or an immediate."""


def _family(format: Format, opcode: int, funct7: int | None, names: str, semantics: Callable[[str], Semantics],
            extension: Extension = "I") -> list[Instruction]:
    """Instructions that differ in funct3 alone, from 0 on; `-` leaves a number out. `semantics` says what each does."""
    return [Instruction(name, format, opcode, number, funct7, extension, semantics=semantics(name))
            for number, name in enumerate(names.split()) if name != "-"]


def _by_registers(name: str) -> Semantics:
    return combine(OPERATIONS[name])


def _by_immediate(name: str) -> Semantics:
    return combine_immediate(OPERATIONS[_without_immediate(name)])


def _without_immediate(name: str) -> str:
    """The operation of an instruction with an immediate has its name without the i."""
    return name.replace("i", "")


INSTRUCTIONS: tuple[Instruction, ...] = (
    Instruction("lui", "U", LUI, semantics=compute(lambda given: given.immediate)),
    Instruction("auipc", "U", AUIPC, semantics=compute(lambda given: given.counter + given.immediate)),
    Instruction("jal", "J", JAL, semantics=jump(lambda given: given.counter + given.immediate)),
    Instruction("jalr", "I", JALR, 0, semantics=jump(lambda given: given.address & ~1)),
    *_family("B", BRANCH, None, "beq bne - - blt bge bltu bgeu", lambda name: branch(CONDITIONS[name])),
    *_family("I", LOAD, None, "lb lh lw", lambda name: load(WIDTHS[name[1]], signed=True)),
    *_family("I", LOAD, None, "- - - - lbu lhu", lambda name: load(WIDTHS[name[1]])),
    *_family("S", STORE, None, "sb sh sw", lambda name: store(WIDTHS[name[1]])),
    *_family("I", OP_IMM, None, "addi - slti sltiu xori - ori andi", _by_immediate),
    *_family("shift", OP_IMM, 0x00, "- slli - - - srli", _by_immediate),
    *_family("shift", OP_IMM, 0x20, "- - - - - srai", _by_immediate),
    *_family("R", OP, 0x00, "add sll slt sltu xor srl or and", _by_registers),
    *_family("R", OP, 0x20, "sub - - - - sra", _by_registers),
    Instruction("fence", "fence", MISC_MEM, 0),
    Instruction("fence.i", "fence", MISC_MEM, 1, extension="Zifencei"),
    Instruction("ecall", "system", SYSTEM, 0, number=0),
    Instruction("ebreak", "system", SYSTEM, 0, number=1),
    *_family("R", OP, 0x01, "mul mulh mulhsu mulhu div divu rem remu", _by_registers, "M"),
    Instruction("lr.w", "reserve", AMO, 2, 0x02 << 2, "A", semantics=load(WORD_BYTES)),
    Instruction("sc.w", "atomic", AMO, 2, 0x03 << 2, "A", semantics=store_conditional),
    *(Instruction(name, "atomic", AMO, 2, AMO_FUNCT5[name] << 2, "A", semantics=atomic(AMOS[name])) for name in AMOS),
    *_family("csr", SYSTEM, None, "- csrrw csrrs csrrc", lambda name: write_csr(CSR_WRITES[name]), "Zicsr"),
    *_family("csr immediate", SYSTEM, None, "- - - - - csrrwi csrrsi csrrci",
             lambda name: write_csr(CSR_WRITES[_without_immediate(name)], immediate=True), "Zicsr"),
    Instruction("mret", "system", SYSTEM, 0, number=0x302, extension="privileged"),
    Instruction("wfi", "system", SYSTEM, 0, number=0x105, extension="privileged"),
)
BY_NAME: Mapping[str, Instruction] = {instruction.name: instruction for instruction in INSTRUCTIONS}


class Pseudo(NamedTuple):
    """A pseudo-instruction that is one instruction: its operands in the order in which they are written.

    A register that is not written is x0, or `rs1`; a control register that is not written is `csr`.
    """

    name: str
    operands: str
    immediate: int | None = None
    rs1: int = 0
    csr: int = 0


PSEUDO: Mapping[str, Pseudo] = {
    "nop": Pseudo("addi", "", 0),
    "mv": Pseudo("addi", "rd rs1", 0),
    "not": Pseudo("xori", "rd rs1", -1),
    "neg": Pseudo("sub", "rd rs2"),
    "zext.b": Pseudo("andi", "rd rs1", 255),
    "seqz": Pseudo("sltiu", "rd rs1", 1),
    "snez": Pseudo("sltu", "rd rs2"),
    "sltz": Pseudo("slt", "rd rs1"),
    "sgtz": Pseudo("slt", "rd rs2"),
    "sgt": Pseudo("slt", "rd rs2 rs1"),
    "sgtu": Pseudo("sltu", "rd rs2 rs1"),
    "beqz": Pseudo("beq", "rs1 target"),
    "bnez": Pseudo("bne", "rs1 target"),
    "blez": Pseudo("bge", "rs2 target"),
    "bgez": Pseudo("bge", "rs1 target"),
    "bltz": Pseudo("blt", "rs1 target"),
    "bgtz": Pseudo("blt", "rs2 target"),
    "bgt": Pseudo("blt", "rs2 rs1 target"),
    "ble": Pseudo("bge", "rs2 rs1 target"),
    "bgtu": Pseudo("bltu", "rs2 rs1 target"),
    "bleu": Pseudo("bgeu", "rs2 rs1 target"),
    "j": Pseudo("jal", "target"),
    "ret": Pseudo("jalr", "", 0, rs1=1),
    "csrr": Pseudo("csrrs", "rd csr"),
    "csrw": Pseudo("csrrw", "csr rs1"),
    "csrs": Pseudo("csrrs", "csr rs1"),
    "csrc": Pseudo("csrrc", "csr rs1"),
    "csrwi": Pseudo("csrrwi", "csr immediate"),
    "csrsi": Pseudo("csrrsi", "csr immediate"),
    "csrci": Pseudo("csrrci", "csr immediate"),
    **{f"rd{name}": Pseudo("csrrs", "rd", csr=csrs.BY_NAME[name].number)
       for name in ("cycle", "cycleh", "time", "timeh", "instret", "instreth")},
}
REGISTERS: tuple[str, ...] = tuple(
    "zero ra sp gp tp t0 t1 t2 s0 s1 a0 a1 a2 a3 a4 a5 a6 a7 s2 s3 s4 s5 s6 s7 s8 s9 s10 s11 t3 t4 t5 t6".split())
"""The registers' names in the calling convention, x0 first."""
REGISTER_NUMBERS: Mapping[str, int] = {
    **{name: number for number, name in enumerate(REGISTERS)}, **{f"x{number}": number for number in range(32)}, "fp": 8}
"""All names of the registers."""


class Decoded(NamedTuple):
    """An instruction and its operands; a field that its format lacks is 0.

    `immediate` is the number that is meant: signed, and for lui and auipc with its twelve zeros. `csr` is the number of a
    control register.
    """

    instruction: Instruction
    rd: int = 0
    rs1: int = 0
    rs2: int = 0
    immediate: int = 0
    csr: int = 0

    @property
    def writes_csr(self) -> bool:
        """Whether it writes a control register: setting and clearing bits by x0 or by 0 only reads."""
        replaces = (self.instruction.funct3 or 0) & 3 == 1
        return self.instruction.uses_csr and bool(replaces or self.rs1 or self.immediate)


_BY_OPCODE: Mapping[int, tuple[Instruction, ...]] = {
    opcode: tuple(i for i in INSTRUCTIONS if i.opcode == opcode) for opcode in {i.opcode for i in INSTRUCTIONS}}


def find(word: int) -> Instruction | None:
    """The instruction that a word is, or None."""
    for instruction in _BY_OPCODE.get(word & 0x7F, ()):
        if word & instruction.mask == instruction.match:
            return instruction
    return None


def operation_of(instruction: Instruction) -> str:
    """The operation of an instruction of two registers, or of a register and an immediate."""
    return _without_immediate(instruction.name) if instruction.opcode == OP_IMM else instruction.name


@lru_cache(maxsize=1 << 16)
def decode(word: int) -> Decoded | None:
    """The instruction and operands of a word, or None if it is not an instruction."""
    instruction = find(word)
    if instruction is None:
        return None
    rd, rs1, rs2 = (word >> FIELDS[name] & 31 if name in instruction.uses else 0 for name in FIELDS)
    csr = word >> CSR_AT if instruction.uses_csr else 0
    return Decoded(instruction, rd, rs1, rs2, immediate_of(instruction.format, word), csr)


def immediate_of(format: Format, word: int) -> int:
    """The immediate in a word of this format; 0 where the format has none."""
    pieces = IMMEDIATES.get(format, ())
    value = sum((word >> at & (1 << width) - 1) << low for at, width, low in pieces)
    return value if format in UNSIGNED or not pieces else signed(value, immediate_bits(format))


def immediate_bits(format: Format) -> int:
    """Bits of a format's immediate, those below its first piece included."""
    return max((low + width for _, width, low in IMMEDIATES.get(format, ())), default=0)


def immediate_range(format: Format) -> range:
    """The immediates that a format can hold."""
    if not IMMEDIATES.get(format):
        return range(1)
    bits, step = immediate_bits(format), 1 << min(low for _, _, low in IMMEDIATES[format])
    return range(1 << bits) if format in UNSIGNED else range(-(1 << bits - 1), 1 << bits - 1, step)


def encode(
    instruction: Instruction | str, rd: int = 0, rs1: int = 0, rs2: int = 0, immediate: int = 0, csr: int = 0
) -> int:
    """The word of an instruction; an operand that it lacks must be 0."""
    one = BY_NAME[instruction] if isinstance(instruction, str) else instruction
    word = one.match
    for name, number in (("rd", rd), ("rs1", rs1), ("rs2", rs2)):
        if number not in (range(32) if name in one.uses else range(1)):
            rule = "a register is 0 to 31" if name in one.uses else f"it has no {name}"
            raise ProgramError(f"{one.name} with {name}={number}: {rule}")
        word |= number << FIELDS[name]
    if immediate not in immediate_range(one.format):
        raise ProgramError(f"{one.name} with the immediate {immediate}: {immediate_rule(one.format)}")
    for at, width, low in IMMEDIATES.get(one.format, ()):
        word |= (immediate >> low & (1 << width) - 1) << at
    if csr not in (range(1 << CSR_BITS) if one.uses_csr else range(1)):
        rule = f"a control register is 0 to {(1 << CSR_BITS) - 1:#x}" if one.uses_csr else "it has no control register"
        raise ProgramError(f"{one.name} with csr={csr:#x}: {rule}")
    return word | csr << CSR_AT


def immediate_rule(format: Format) -> str:
    """What an immediate of a format must be, in words."""
    allowed = immediate_range(format)
    if len(allowed) == 1:
        return "it has no immediate"
    step = f", a multiple of {allowed.step}" if allowed.step > 1 else ""
    return f"it must be {allowed[0]} to {allowed[-1]}{step}"


def signed(value: int, bits: int = WORD_BITS) -> int:
    """A number of so many bits, as a signed one."""
    return as_signed(value, bits)


STALL = encode("jal")
"""A jump to itself: it does nothing."""
