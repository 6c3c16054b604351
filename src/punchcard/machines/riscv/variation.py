"""RISC-V programs in which the next instruction finds something else."""

from __future__ import annotations

from dataclasses import replace

from punchcard.machines.riscv.isa import FIELDS, INSTRUCTIONS, MASK, OP_IMM, REGISTERS, WORD_BYTES, Decoded, decode
from punchcard.machines.riscv.oracle import RiscvState
from punchcard.machines.riscv.program import RiscvProgram
from punchcard.machines.riscv.syntax import text_of
from punchcard.machines.variation import DATA, INSTRUCTION, POINTER, ChangedProgram, Variation

MOST = 1 << 16


class RiscvVariation(Variation):
    """A word that it loads, a register that it reads or its constant; one of its registers; another of the same format."""

    def changed(self, program: RiscvProgram, kind: str, state: RiscvState) -> ChangedProgram | None:
        word = self._word(program, state.program_counter)
        now = None if word is None else decode(word)
        if word is None or now is None or now.instruction.format == "system":
            return None
        if kind == DATA:
            return self._data(program, state, word, now)
        if kind == POINTER:
            return self._register(program, state.program_counter, word, now)
        return self._instruction(program, state.program_counter, word, now)

    def _data(self, program: RiscvProgram, state: RiscvState, word: int, now: Decoded) -> ChangedProgram | None:
        value = self.below(MOST)
        if now.instruction.opcode == OP_IMM and now.instruction.format == "I" and (not now.rs1 or self.below(2)):
            return self._stored(program, state.program_counter, word, (word & (1 << 20) - 1) | (value & 0xFFF) << 20, DATA)
        if now.instruction.reads_memory:
            address = (state.registers[now.rs1] + now.immediate & MASK) // WORD_BYTES * WORD_BYTES
            before = self._word(program, address)
            if before is not None:
                return ChangedProgram(program.with_word(address, value), DATA,
                                      f"{program.name_of(address)}: {before} -> {value}")
        read = [register for register in (now.rs1, now.rs2) if register]
        if not read:
            return None
        register = self.pick(read)
        start = dict(program.start) | {register: value}
        return ChangedProgram(replace(program, start=tuple(sorted(start.items()))), DATA,
                              f"{REGISTERS[register]} begins with {value}")

    def _register(self, program: RiscvProgram, place: int, word: int, now: Decoded) -> ChangedProgram | None:
        if not now.instruction.uses:
            return None
        at = FIELDS[self.pick(now.instruction.uses)]
        return self._stored(program, place, word, word & ~(31 << at) | self.below(32) << at, POINTER)

    def _instruction(self, program: RiscvProgram, place: int, word: int, now: Decoded) -> ChangedProgram | None:
        mine = now.instruction
        same = [each for each in INSTRUCTIONS if each != mine and each.mask == mine.mask
                and (each.format, each.extension, each.opcode) == (mine.format, mine.extension, mine.opcode)]
        if not same:
            return None
        return self._stored(program, place, word, word & ~mine.mask | self.pick(same).match, INSTRUCTION)

    @staticmethod
    def _stored(program: RiscvProgram, place: int, before: int, after: int, kind: str) -> ChangedProgram:
        return ChangedProgram(program.with_word(place, after), kind,
                              f"{program.name_of(place)}: {text_of(before)} -> {text_of(after)}")

    @staticmethod
    def _word(program: RiscvProgram, address: int) -> int | None:
        """The word at an address before the run, if the program has one there."""
        for segment in program.segments:
            if segment.address <= address and address + WORD_BYTES <= segment.end:
                place = address - segment.address
                return int.from_bytes(segment.data[place : place + WORD_BYTES].ljust(WORD_BYTES, b"\0"), "little")
        return None
