"""RV32IM in plain C, written from the table of instructions.

What goes wrong, and system calls, are left to the Python interpreter: the loop in C stops before them.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from punchcard.machines.in_c import CFunction
from punchcard.machines.riscv import isa
from punchcard.machines.riscv.calls import Calls
from punchcard.machines.riscv.isa import IMMEDIATES, INSTRUCTIONS, Format, Instruction
from punchcard.machines.riscv.oracle import RiscvInterpreter
from punchcard.machines.riscv.program import RiscvProgram
from punchcard.machines.riscv.semantics import AT_BYTES, OPERANDS
from punchcard.words.text import c_text
from punchcard.words.word import FALSE

LEAVES = {"counter": "counter", "x": "a", "y": "b", "immediate": "immediate", "address": "(a + immediate)",
          "loaded": "value"}
"""The operands of an instruction in C."""
MANY = 1 << 62


class Ways(NamedTuple):
    """Where C continues with what a plain interpreter does not do, and what it does after accesses of the memory."""

    illegal: str = "goto stop;"
    misaligned_jump: str = "goto stop;"
    outside: Callable[[Instruction], str] = lambda instruction: "goto stop;"
    special: Callable[[Instruction], str] = lambda instruction: "goto stop;"
    """System instructions, and those with two results."""
    accessed: Callable[[Instruction], str] = lambda instruction: ""


def immediate_text(format: Format) -> str:
    """The immediate of a format, in C."""
    pieces = [f"(word >> {at} & {(1 << width) - 1:#x}u) << {low}" for at, width, low in IMMEDIATES[format]]
    unused = 0 if format in isa.UNSIGNED or not pieces else 32 - isa.immediate_bits(format)
    value = " | ".join(pieces) or "0"
    return f"(uint32_t)((int32_t)(({value}) << {unused}) >> {unused})" if unused else value


def _body(instruction: Instruction, ways: Ways) -> str:
    """What an instruction does."""
    text, size = c_text(lambda word: LEAVES[str(word.data)]), instruction.access_bytes
    outcome = instruction.semantics(AT_BYTES if size else OPERANDS)
    body = f"const uint32_t immediate = {immediate_text(instruction.format)}; " if instruction.format in IMMEDIATES else ""
    body += f"if (!multiply) {{ {ways.illegal} }} " if instruction.extension == "M" else ""
    if size:
        body += ("const uint32_t at = a + immediate - base; "
                 f"if (at % {size} || at >= bytes || bytes - at < {size}) {{ {ways.outside(instruction)} }} "
                 f"uint{8 * size}_t value; void *place = (char *)memory + at; memcpy(&value, place, {size}); ")
    if instruction.format == "system" or outcome.update is not None:
        return body + ways.special(instruction)
    if outcome.taken is not FALSE:
        jump = f"next = {text(outcome.target)}; if (next & 3) {{ {ways.misaligned_jump} }}"
        body += f"if ({text(outcome.taken)}) {{ {jump} }} "
    if outcome.result is not None:
        body += f"{'value' if instruction.writes_memory else 'x[rd]'} = {text(outcome.result)}; "
    body += f"memcpy(place, &value, {size}); " if instruction.writes_memory else ""
    return body + ways.accessed(instruction) if size else body


def cases(instructions: Sequence[Instruction], ways: Ways) -> Iterator[str]:
    """A case for each opcode, and in it one for each funct3; the rest of the fixed bits is compared."""
    for opcode in dict.fromkeys(instruction.opcode for instruction in instructions):
        own = [instruction for instruction in instructions if instruction.opcode == opcode]
        yield f"case {opcode:#x}: switch (word >> 12 & 7) {{"
        for number in range(8):
            tests = [f"if ((word & {one.mask:#x}u) == {one.match:#x}u) {{ {_body(one, ways)} break; }}"
                     for one in own if one.funct3 in (None, number)]
            yield f"case {number}: {' '.join(tests)} {ways.illegal}"
        yield "} break;"
    yield f"default: {ways.illegal}"


def source() -> str:
    """The interpreter in C."""
    text = "\n            ".join(cases([one for one in INSTRUCTIONS if not one.privileged], Ways()))
    return f"""
#include <stdint.h>
#include <string.h>

/* Executes up to `steps` instructions from `*place` on, until one that Python must do; how many it has executed. */
int64_t run(uint32_t *memory, uint32_t *x, uint32_t *place, int64_t steps, int64_t start, uint64_t bytes, int64_t multiply)
{{
    const uint32_t base = start;
    uint32_t counter = *place;
    int64_t left = steps;

    for (; left > 0; left--) {{
        const uint32_t from = counter - base;
        if (from >= bytes)
            break;
        const uint32_t word = memory[from / 4], rd = word >> 7 & 31, a = x[word >> 15 & 31], b = x[word >> 20 & 31];
        uint32_t next = counter + 4;
        switch (word & 0x7f) {{
            {text}
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
        self, program: RiscvProgram, memory: int, calls: Calls | None = None, *, multiply: bool = True
    ) -> None:
        super().__init__(program, memory, calls, multiply=multiply)
        self._words, self._numbers = array("I", self.memory), array("I", self.registers)
        self.memory, self.registers = self._words, self._numbers
        self._multiply = multiply
        self._run = CFunction(source())

    def run(self, max_steps: int | None = None) -> None:
        """Continue until it halts, or until `max_steps` instructions have been executed in all."""
        limit = MANY if max_steps is None else max_steps
        while self.steps < limit:
            place = array("I", [self.program_counter])
            self.steps += self._run(self._words, self._numbers, place, limit - self.steps, self._addresses.start,
                                    len(self._addresses), int(self._multiply))
            self.program_counter = place[0]
            before = self.steps
            if before < limit:
                self.step()
            if self.steps == before:
                return
