"""Instructions as they are written: operands, pseudo-instructions, and what each becomes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from punchcard.errors import SourceError
from punchcard.machines.riscv import csrs, isa
from punchcard.machines.riscv.isa import BY_NAME, MASK, PSEUDO, REGISTER_NUMBERS, Instruction, signed
from punchcard.machines.riscv.languages.assembly.expressions import Expression, Term
from punchcard.machines.riscv.syntax import (
    FENCE,
    FENCE_I,
    FENCE_SETS,
    FENCE_TSO,
    ORDERINGS,
    PAUSE,
    UNIMPLEMENTED,
    operands_of,
)
from punchcard.machines.source import Line, Token, unknown

Part: TypeAlias = Literal["whole", "upper", "target", "hi", "lo", "pcrel_hi", "pcrel_lo", "pair_lo"]
"""What of an expression an instruction holds.

whole      the number itself                        upper      the number, shifted to the upper 20 bits
target     its distance from the instruction        hi, lo     the upper 20 bits of an address, the lower 12
pcrel_hi   the upper bits of the distance           pair_lo    the lower bits of that of the instruction before
pcrel_lo   the lower bits of the distance that the instruction at the address holds the upper bits of
"""
ZERO, RETURN, SCRATCH = 0, 1, 6
WORDS: Mapping[str, int] = {"fence.i": FENCE_I, "fence.tso": FENCE_TSO, "pause": PAUSE, "unimp": UNIMPLEMENTED}
"""Instructions without operands that are always the same word."""


@dataclass(frozen=True)
class Code:
    """One instruction before its expression has a value; a `word` needs none. `ordering` are more bits, of an atomic one."""

    token: Token
    instruction: Instruction | None
    rd: int = 0
    rs1: int = 0
    rs2: int = 0
    expression: Expression = ()
    part: Part = "whole"
    word: int = 0
    csr: int = 0
    ordering: int = 0


class Reader:
    """Reads the instructions of one text.

    `expression` parses one; `known` gives its number, where that is known already.
    """

    def __init__(self, expression: Callable[[Line], Expression], known: Callable[[Expression], int | None]) -> None:
        self._expression, self._known = expression, known

    def read(self, line: Line) -> list[Code]:
        """The instructions of a line."""
        name = line.take_name("an instruction")
        mnemonic = name.text.lower()
        if not is_known(mnemonic):
            raise unknown("instruction", name, MNEMONICS, "RV32I, M, A, Zicsr and the usual pseudo-instructions are known")
        found = READERS.get(mnemonic, Reader._plain)(self, name, mnemonic, line)
        line.finish(f"the instruction {name.text}")
        return found

    # Operands

    def _register(self, line: Line) -> int:
        token = line.take_name("a register, such as a0 or x10,")
        if token.text.lower() not in REGISTER_NUMBERS:
            raise unknown("register", token, REGISTER_NUMBERS, "there are x0 to x31, zero, ra, sp, gp, tp, t0 to t6, s0 to "
                          "s11 and a0 to a7")
        return REGISTER_NUMBERS[token.text.lower()]

    @staticmethod
    def _at_register(line: Line) -> bool:
        return line.ahead.kind == "name" and line.ahead.text.lower() in REGISTER_NUMBERS

    @staticmethod
    def _comma(line: Line) -> None:
        line.take_mark(",", "a ',' must separate operands")

    def _immediate(self, line: Line, part: Part, allowed: tuple[Part, ...]) -> tuple[Expression, Part]:
        """An expression, or a part of one, as in %lo(name)."""
        if line.ahead.kind != "part":
            return self._expression(line), part
        token = line.take()
        found = next((each for each in allowed if f"%{each}" == token.text), None)
        if found is None:
            raise unknown("part", token, [f"%{each}" for each in allowed],
                          f"this operand takes {' and '.join(f'%{each}' for each in allowed)}")
        line.take()
        expression = self._expression(line)
        line.take_mark(")", "a ')' must close this")
        return expression, found

    def _address(self, line: Line) -> tuple[Expression, Part, int | None]:
        """Offset and register, as in 8(sp); without a register it is a name alone."""
        expression: Expression = (Term("number", line.ahead),)
        part: Part = "whole"
        if not (line.at("(") and any(line.second_is(name) for name in REGISTER_NUMBERS)):
            expression, part = self._immediate(line, "whole", ("lo", "pcrel_lo"))
        if not line.take_if("("):
            return expression, part, None
        register = self._register(line)
        line.take_mark(")", "a ')' must close the register")
        return expression, part, register

    def _place(self, line: Line) -> int:
        """The register of an address without an offset, as in (a0), or 0(a0)."""
        if not line.at("("):
            start = line.ahead
            offset = self._known(self._expression(line))
            if offset != 0:
                raise start.error("an atomic instruction has no offset: write (a0)")
        line.take_mark("(", "a register in parentheses must be here, as in (a0)")
        register = self._register(line)
        line.take_mark(")", "a ')' must close the register")
        return register

    def _csr(self, line: Line) -> int:
        """A control register, by its name or its number."""
        token = line.ahead
        if token.kind == "name" and token.text.lower() in csrs.BY_NAME:
            return csrs.BY_NAME[line.take().text.lower()].number
        number = self._known(self._expression(line))
        if number is None:
            raise unknown("control register", token, csrs.BY_NAME, "write its name, such as mstatus, or its number")
        if number not in range(1 << isa.CSR_BITS):
            raise token.error(f"{number} is not the number of a control register: it must be 0 to "
                              f"{(1 << isa.CSR_BITS) - 1:#x}")
        return number

    # Instructions

    def _plain(self, name: Token, mnemonic: str, line: Line) -> list[Code]:
        """An instruction of the table, or a pseudo-instruction that is one."""
        pseudo = PSEUDO.get(mnemonic)
        plain, ordering = without_ordering(mnemonic)
        instruction = BY_NAME[plain if pseudo is None else pseudo.name]
        csr = 0 if pseudo is None else pseudo.csr
        operands: Sequence[str] = operands_of(instruction) if pseudo is None else pseudo.operands.split()
        registers = {} if pseudo is None else {"rs1": pseudo.rs1}
        expression: Expression = ()
        part: Part = "whole"
        if pseudo is not None and pseudo.immediate is not None:
            expression = (Term("number", name, number=pseudo.immediate),)
        if mnemonic == "jal" and not (self._at_register(line) and line.second_is(",")):
            operands, registers = ("target",), {"rd": RETURN}
        for index, operand in enumerate(operands):
            if index:
                self._comma(line)
            if operand == "rs2" and instruction.format == "R" and pseudo is None and not self._at_register(line):
                instruction, operand = with_immediate(instruction, line), "immediate"
            if operand == "rs1" and instruction.format == "csr" and not self._at_register(line):
                instruction, operand = BY_NAME[f"{instruction.name}i"], "immediate"
            if operand in ("rd", "rs1", "rs2"):
                registers[operand] = self._register(line)
            elif operand == "address":
                expression, part, base = self._address(line)
                if base is None:
                    return self._at_name(name, instruction, registers, expression, part, line)
                registers["rs1"] = base
            elif operand == "place":
                registers["rs1"] = self._place(line)
            elif operand == "csr":
                csr = self._csr(line)
            elif operand == "upper":
                expression, part = self._immediate(line, "upper", ("hi", "pcrel_hi"))
            elif operand == "target":
                expression, part = self._expression(line), "target"
            else:
                expression, part = self._immediate(line, "whole", ("lo", "pcrel_lo"))
        return [Code(name, instruction, **registers, expression=expression, part=part, csr=csr, ordering=ordering)]

    def _at_name(self, name: Token, instruction: Instruction, registers: dict[str, int], expression: Expression, part: Part,
                 line: Line) -> list[Code]:
        """A load or store at a name: its address is made in a register first, rd or one that is named last."""
        if part != "whole" or all(term.kind == "number" for term in expression):
            raise line.wrong("a register in parentheses must follow the offset, as in 8(sp)")
        if instruction.reads_memory:
            return self._relative(name, instruction, registers["rd"], registers["rd"], expression)
        line.take_mark(",", "a store at a name needs a register for the address: write sw a0, name, t0")
        scratch = self._register(line)
        upper, lower = self._relative(name, instruction, scratch, 0, expression)
        return [upper, Code(name, instruction, 0, lower.rs1, registers["rs2"], expression, "pair_lo")]

    def _word(self, name: Token, mnemonic: str, line: Line) -> list[Code]:
        return [Code(name, None, word=WORDS[mnemonic])]

    def _load_address(self, name: Token, mnemonic: str, line: Line) -> list[Code]:
        rd = self._register(line)
        self._comma(line)
        return self._relative(name, BY_NAME["addi"], rd, rd, self._expression(line))

    def _relative(self, name: Token, second: Instruction, register: int, rd: int, expression: Expression) -> list[Code]:
        """auipc, and an instruction that adds the rest of the distance."""
        return [Code(name, BY_NAME["auipc"], register, expression=expression, part="pcrel_hi"),
                Code(name, second, rd, register, expression=expression, part="pair_lo")]

    def _far(self, name: Token, mnemonic: str, line: Line) -> list[Code]:
        """A jump by two instructions; a register holds the upper part."""
        register, link = (RETURN, RETURN) if mnemonic == "call" else (SCRATCH, ZERO)
        if mnemonic == "call" and self._at_register(line) and line.second_is(","):
            register = link = self._register(line)
            self._comma(line)
        expression = self._expression(line)
        if mnemonic == "jump":
            self._comma(line)
            register = self._register(line)
        return self._relative(name, BY_NAME["jalr"], register, link, expression)

    def _jump_register(self, name: Token, mnemonic: str, line: Line) -> list[Code]:
        """jalr rs; jalr rd, rs; jalr rd, rs, 8; jalr rd, 8(rs); jr rs; jr 8(rs)."""
        rd = ZERO if mnemonic == "jr" else RETURN
        if mnemonic == "jalr" and self._at_register(line) and line.second_is(","):
            rd = self._register(line)
            self._comma(line)
        expression: Expression = ()
        part: Part = "whole"
        base: int | None
        if self._at_register(line):
            base = self._register(line)
            if line.take_if(","):
                expression, part = self._immediate(line, "whole", ("lo", "pcrel_lo"))
        else:
            expression, part, base = self._address(line)
        if base is None:
            raise line.wrong("a register in parentheses must follow the offset, as in 8(ra)")
        return [Code(name, BY_NAME["jalr"], rd, base, expression=expression, part=part)]

    def _constant(self, name: Token, mnemonic: str, line: Line) -> list[Code]:
        """li: addi where the number is small, lui where its lower bits are 0, or both; both where it is not known yet."""
        rd = self._register(line)
        self._comma(line)
        start = line.ahead
        expression = self._expression(line)
        number = self._known(expression)
        if number is not None and not -(1 << 31) <= number <= MASK:
            raise start.error(f"{number} does not fit a register: the range is {-(1 << 31)} to {MASK}")
        lower = Code(name, BY_NAME["addi"], rd, rd, expression=expression, part="lo")
        if number is not None and signed(number) in isa.immediate_range("I"):
            return [Code(name, BY_NAME["addi"], rd, ZERO, expression=expression, part="lo")]
        upper = Code(name, BY_NAME["lui"], rd, expression=expression, part="hi")
        return [upper] if number is not None and not number & 0xFFF else [upper, lower]

    def _fence(self, name: Token, mnemonic: str, line: Line) -> list[Code]:
        """fence, or fence with what comes before and after: fence rw, w."""
        if line.ahead.kind == "end":
            return [Code(name, None, word=FENCE)]
        sets = [self._fence_set(line)]
        self._comma(line)
        sets.append(self._fence_set(line))
        return [Code(name, None, word=BY_NAME["fence"].match | sets[0] << 24 | sets[1] << 20)]

    def _fence_set(self, line: Line) -> int:
        token = line.take_name(f"a set of the letters {FENCE_SETS}")
        letters = [letter for letter in FENCE_SETS if letter in token.text]
        if "".join(letters) != token.text:
            raise token.error(f"{token.text!r} is not a set for a fence: write letters of {FENCE_SETS} in this order")
        return sum(8 >> FENCE_SETS.index(letter) for letter in letters)


READERS: Mapping[str, Callable[[Reader, Token, str, Line], list[Code]]] = {
    "li": Reader._constant, **dict.fromkeys(("la", "lla"), Reader._load_address),
    **dict.fromkeys(("jalr", "jr"), Reader._jump_register), **dict.fromkeys(("call", "jump", "tail"), Reader._far),
    "fence": Reader._fence, **dict.fromkeys(WORDS, Reader._word),
}
"""What reads an instruction whose operands are not those of the table. All take the same arguments, needed or not."""
MNEMONICS: Mapping[str, None] = dict.fromkeys((*BY_NAME, *PSEUDO, *READERS))


def without_ordering(mnemonic: str) -> tuple[str, int]:
    """An atomic instruction without .aq, .rl or .aqrl, and their bits; any other as it is."""
    for suffix, bits in ORDERINGS.items():
        plain = BY_NAME.get(mnemonic.removesuffix(suffix))
        if mnemonic.endswith(suffix) and plain is not None and plain.opcode == isa.AMO:
            return plain.name, bits
    return mnemonic, 0


def is_known(mnemonic: str) -> bool:
    return without_ordering(mnemonic)[0] in MNEMONICS


def with_immediate(instruction: Instruction, line: Line) -> Instruction:
    """The relative of a register instruction that takes a number: addi for add."""
    for each in isa.INSTRUCTIONS:
        if each.opcode == isa.OP_IMM and each.funct3 == instruction.funct3 and (each.funct7 or 0) == instruction.funct7:
            return each
    raise line.wrong(f"the last operand of {instruction.name} must be a register")


def encoded(code: Code, number: int, address: int) -> int:
    """The word of an instruction whose expression has a value: for `pcrel_lo` and `pair_lo`, the distance."""
    if code.instruction is None:
        return code.word
    value = number
    if code.part in ("target", "pcrel_hi"):
        value = signed(number - address) if abs(number) <= MASK else number
    if code.part == "upper":
        if not -(1 << 19) <= value < 1 << 20:
            raise code.token.error(f"{code.instruction.name} with {value}: it must be {-(1 << 19)} to {(1 << 20) - 1}, the "
                                   "upper 20 bits")
        value = signed(value << 12)
    elif code.part in ("hi", "pcrel_hi"):
        value = signed(value + 0x800 & ~0xFFF)
    elif code.part in ("lo", "pcrel_lo", "pair_lo"):
        value = signed(value, 12)
    elif code.part == "whole" and code.instruction.format not in isa.UNSIGNED and value > MASK // 2:
        value = signed(value) if value <= MASK else value  # 0xffffffff is -1
    allowed = isa.immediate_range(code.instruction.format)
    if value not in allowed:
        raise _out_of_range(code, value)
    return isa.encode(code.instruction, code.rd, code.rs1, code.rs2, value, code.csr) | code.ordering


def _out_of_range(code: Code, value: int) -> SourceError:
    assert code.instruction is not None
    name, rule = code.instruction.name, isa.immediate_rule(code.instruction.format)
    token = code.expression[0].token if code.expression else code.token
    if code.part == "target":
        return token.error(f"{name} to an address {value} bytes away: {rule}")
    advice = "; li takes any number" if name == "addi" else ""
    return token.error(f"{name} with the immediate {value}: {rule}{advice}")
