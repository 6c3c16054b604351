"""RV32IM in plain C, written from the table of instructions.

What goes wrong, and system calls, are left to the Python interpreter: the loop in C stops before them.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Iterator

from punchcard.machines.in_c import compiled
from punchcard.machines.riscv import isa
from punchcard.machines.riscv.calls import Calls
from punchcard.machines.riscv.isa import IMMEDIATES, INSTRUCTIONS, Format, Instruction, operation_of
from punchcard.machines.riscv.oracle import Misaligned, RiscvInterpreter
from punchcard.machines.riscv.program import RiscvProgram

OPERATIONS = {
    "add": "a + b", "sub": "a - b", "xor": "a ^ b", "or": "a | b", "and": "a & b", "sll": "a << (b & 31)",
    "srl": "a >> (b & 31)", "sra": "(int32_t)a >> (b & 31)", "slt": "(int32_t)a < (int32_t)b", "sltu": "a < b",
    "mul": "a * b", "mulh": "(int64_t)(int32_t)a * (int32_t)b >> 32", "mulhu": "(uint64_t)a * b >> 32",
    "mulhsu": "(int64_t)(int32_t)a * (int64_t)b >> 32", "divu": "b ? a / b : ~0u", "remu": "b ? a % b : a",
    "div": "b == 0 ? ~0u : b == ~0u ? 0 - a : (uint32_t)((int32_t)a / (int32_t)b)",
    "rem": "b == 0 ? a : b == ~0u ? 0 : (uint32_t)((int32_t)a % (int32_t)b)",
}
"""What rd becomes; dividing by -1 is done apart, since C does not say what the least number divided by it is."""
CONDITIONS = {"beq": "a == b", "bne": "a != b", "blt": "(int32_t)a < (int32_t)b", "bge": "(int32_t)a >= (int32_t)b",
              "bltu": "a < b", "bgeu": "a >= b"}
TYPES = {"lb": "int8_t", "lh": "int16_t", "lw": "uint32_t", "lbu": "uint8_t", "lhu": "uint16_t", "sb": "uint8_t",
         "sh": "uint16_t", "sw": "uint32_t"}
MANY = 1 << 62


def _immediate(format: Format) -> str:
    """The immediate of a format, in C."""
    pieces = [f"(word >> {at} & {(1 << width) - 1:#x}u) << {low}" for at, width, low in IMMEDIATES[format]]
    unused = 32 - isa.immediate_bits(format)
    value = " | ".join(pieces)
    return value if format == "shift" or not unused else f"(uint32_t)((int32_t)(({value}) << {unused}) >> {unused})"


def _body(instruction: Instruction) -> str:
    """What an instruction does; `stop` leaves it to Python."""
    size = instruction.access_bytes
    place = (f"const uint32_t at = a + immediate - base; if (at % {size} || at >= bytes || bytes - at < {size}) goto stop;"
             if size else "")
    name = instruction.name
    match instruction.opcode:
        case isa.LUI:
            return "x[rd] = immediate;"
        case isa.AUIPC:
            return "x[rd] = counter + immediate;"
        case isa.JAL:
            return "next = counter + immediate; if (next & 3) goto stop; x[rd] = counter + 4;"
        case isa.JALR:
            return "next = (a + immediate) & ~1u; if (next & 3) goto stop; x[rd] = counter + 4;"
        case isa.BRANCH:
            return f"if ({CONDITIONS[name]}) {{ next = counter + immediate; if (next & 3) goto stop; }}"
        case isa.LOAD:
            return f"{place} {TYPES[name]} value; memcpy(&value, (const char *)memory + at, {size}); x[rd] = value;"
        case isa.STORE:
            return f"{place} const {TYPES[name]} value = b; memcpy((char *)memory + at, &value, {size});"
        case isa.OP_IMM:
            return f"{{ const uint32_t b = immediate; x[rd] = {OPERATIONS[operation_of(instruction)]}; }}"
        case isa.OP:
            return f"{'if (!multiply) goto stop; ' if instruction.extension == 'M' else ''}x[rd] = {OPERATIONS[name]};"
        case isa.MISC_MEM:
            return ";"
        case _:
            return "goto stop;"


def _cases() -> Iterator[str]:
    """A case for each opcode, and in it one for each funct3; the rest of the fixed bits is compared."""
    for opcode in dict.fromkeys(instruction.opcode for instruction in INSTRUCTIONS):
        own = [instruction for instruction in INSTRUCTIONS if instruction.opcode == opcode]
        yield f"case {opcode:#x}: switch (word >> 12 & 7) {{"
        for number in range(8):
            tests = [f"if ((word & {one.mask:#x}u) == {one.match:#x}u) {{ {_declared(one)} {_body(one)} break; }}"
                     for one in own if one.funct3 in (None, number)]
            yield f"case {number}: {' '.join(tests)} goto stop;"
        yield "} break;"


def _declared(instruction: Instruction) -> str:
    return f"const uint32_t immediate = {_immediate(instruction.format)};" if instruction.format in IMMEDIATES else ""


def source() -> str:
    """The interpreter in C."""
    cases = "\n            ".join(_cases())
    return f"""
#include <stdint.h>
#include <string.h>

/* Executes up to `steps` instructions from `*place` on, until one that Python must do; how many it has executed. */
int64_t run(uint32_t *memory, uint32_t *x, uint32_t *place, int64_t steps, uint32_t base, uint64_t bytes, int multiply)
{{
    uint32_t counter = *place;
    int64_t left = steps;

    for (; left > 0; left--) {{
        const uint32_t from = counter - base;
        if (from >= bytes)
            break;
        const uint32_t word = memory[from / 4], rd = word >> 7 & 31, a = x[word >> 15 & 31], b = x[word >> 20 & 31];
        uint32_t next = counter + 4;
        switch (word & 0x7f) {{
            {cases}
            default: goto stop;
        }}
        x[0] = 0;
        counter = next;
    }}
stop:
    *place = counter;
    return steps - left;
}}
"""


class RiscvInC(RiscvInterpreter):
    """The interpreter with its inner loop in C."""

    def __init__(
        self, program: RiscvProgram, memory: int, calls: Calls | None = None, *, multiply: bool = True,
        misaligned: Misaligned = "fault",
    ) -> None:
        super().__init__(program, memory, calls, multiply=multiply, misaligned=misaligned)
        self._words, self._numbers = array("I", self.memory), array("I", self.registers)
        self.memory, self.registers = self._words, self._numbers
        self._multiply = multiply
        self._run = compiled(source()).run
        self._run.restype = ctypes.c_int64

    def run(self, max_steps: int | None = None) -> None:
        """Go on until it halts, or until `max_steps` instructions have been executed in all."""
        limit = MANY if max_steps is None else max_steps
        while self.steps < limit:
            place = ctypes.c_uint32(self.program_counter)
            self.steps += self._run(
                ctypes.c_void_p(self._words.buffer_info()[0]), ctypes.c_void_p(self._numbers.buffer_info()[0]),
                ctypes.byref(place), ctypes.c_int64(limit - self.steps), ctypes.c_uint32(self._addresses.start),
                ctypes.c_uint64(len(self._addresses)), ctypes.c_int(self._multiply))
            self.program_counter = place.value
            before = self.steps
            if before < limit:
                self.step()
            if self.steps == before:
                return
