"""RV32IM in plain Python, as fast as CPython goes: what the engines' speed is measured against.

Instructions that follow each other are translated to one Python function, once. Registers are local names in it, constants
are folded, and a branch back to its beginning is a loop. A translated path goes on after a branch that is not taken and
through jumps whose target is known. What goes wrong, system calls, and the last steps before a limit are left to the plain
interpreter, so both stop at the same instruction. A store to a word that was translated throws the translation away.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from punchcard.machines.riscv import isa
from punchcard.machines.riscv.calls import Calls
from punchcard.machines.riscv.isa import MASK, WORD_BYTES, Decoded, decode, operation_of, signed
from punchcard.machines.riscv.oracle import OPERATIONS, Misaligned, RiscvInterpreter
from punchcard.machines.riscv.program import RiscvProgram

Block: TypeAlias = Callable[[int], tuple[int, int]]
"""Executes at most so many instructions: the next program counter, and how many are left.

A program counter is given as its complement where the plain interpreter must execute the next instruction.
"""
LONGEST = 100
"""The most instructions of a path."""
MOST_CHANGES = 8
"""A word that changed more often while it was translated is left to the plain interpreter."""
NO_BLOCK: tuple[None, int] = (None, 0)

SIGNED = {"slt": "<", "blt": "<", "bge": ">="}
UNSIGNED = {"sltu": "<", "bltu": "<", "bgeu": ">=", "beq": "==", "bne": "!="}
EXPRESSIONS: Mapping[str, str] = {
    "add": "{a} + {b} & M", "sub": "{a} - {b} & M", "xor": "{a} ^ {b}", "or": "{a} | {b}", "and": "{a} & {b}",
    "sll": "{a} << ({b} & 31) & M", "srl": "{a} >> ({b} & 31)", "sra": "({a} ^ H) - H >> ({b} & 31) & M",
    "slt": "1 if {a} ^ H < {b} ^ H else 0", "sltu": "1 if {a} < {b} else 0", "mul": "{a} * {b} & M",
    "mulh": "(({a} ^ H) - H) * (({b} ^ H) - H) >> 32 & M", "mulhsu": "(({a} ^ H) - H) * {b} >> 32 & M",
    "mulhu": "{a} * {b} >> 32", "divu": "{a} // {b} if {b} else M", "remu": "{a} % {b} if {b} else {a}",
    "div": "div({a}, {b}) & M", "rem": "rem({a}, {b}) & M",
}
"""What rd becomes, from unsigned words. H is the sign bit: (x ^ H) - H is x as a signed number."""


def _constant(match: re.Match[str]) -> str:
    return str(MASK if match.group() == "M" else 1 << 31)


class Changed(Exception):
    """A store has changed a word that was translated."""


@dataclass
class _Path:
    """Instructions on their way to a function."""

    start: int
    counters: list[int] = field(default_factory=list)
    decoded: list[Decoded] = field(default_factory=list)
    end: int = 0
    """Where it goes on after the last one, unless that jumps."""

    def registers(self) -> list[int]:
        used = {number for one in self.decoded for number in (one.rd, one.rs1, one.rs2)}
        return sorted(used - {0})

    def changed(self) -> list[int]:
        return sorted({one.rd for one in self.decoded} - {0})

    @property
    def loops(self) -> bool:
        return any(one.instruction.format in ("B", "J") and (at + one.immediate) & MASK == self.start
                   for at, one in zip(self.counters, self.decoded, strict=True))


class QuickRiscv(RiscvInterpreter):
    """The interpreter with its instructions translated to Python; `longest` 1 translates each instruction by itself."""

    def __init__(
        self, program: RiscvProgram, memory: int, calls: Calls | None = None, *, multiply: bool = True,
        misaligned: Misaligned = "fault", longest: int = LONGEST,
    ) -> None:
        super().__init__(program, memory, calls, multiply=multiply, misaligned=misaligned)
        self._longest = longest
        self._blocks: dict[int, tuple[Block | None, int]] = {}
        self._translated = bytearray(memory)
        self._users: dict[int, set[int]] = {}
        self._changes = bytearray(memory)

    def run(self, max_steps: int | None = None) -> None:
        """Go on until it halts, or until `max_steps` instructions have been executed in all."""
        limit = 1 << 62 if max_steps is None else max(max_steps, self.steps)
        left, counter, get = limit - self.steps, self.program_counter, self._blocks.get
        while left > 0:
            block, length = get(counter) or self._translate(counter)
            if block is not None and left >= length:
                counter, left = block(left)
                if counter >= 0:
                    continue
                counter = ~counter
            self.program_counter, self.steps = counter, limit - left
            self.step()
            if self.steps == limit - left:
                break
            counter, left = self.program_counter, limit - self.steps
        self.program_counter, self.steps = counter, limit - left

    def store(self, address: int, data: bytes) -> None:
        super().store(address, data)
        first = address - self._addresses.start
        for word in range(first // WORD_BYTES, -(-(first + len(data)) // WORD_BYTES)):
            if self._translated[word]:
                self._drop(word)

    def _drop(self, word: int) -> None:
        """Throw away what was translated from a word."""
        self._translated[word] = 0
        self._changes[word] = min(self._changes[word] + 1, MOST_CHANGES)
        for start in self._users.pop(word, ()):
            self._blocks.pop(start, None)

    def _translate(self, start: int) -> tuple[Block | None, int]:
        """The function of the path from an address on, and its length."""
        path = self._path(start)
        found: tuple[Block | None, int] = NO_BLOCK
        if path.decoded:
            text, lines = _Writer(path, self._addresses.start).text()
            names: dict[str, object] = {
                "x": self.registers, "m": self.memory, "c": self._translated, "drop": self._drop, "Changed": Changed,
                "div": OPERATIONS["div"], "rem": OPERATIONS["rem"], "lines": lines, "counters": path.counters}
            exec(compile(text, f"<block {start:#x}>", "exec"), names)
            found = names["block"], len(path.decoded)  # type: ignore[assignment]
            for counter in path.counters:
                word = (counter - self._addresses.start) // WORD_BYTES
                self._translated[word] = 1
                self._users.setdefault(word, set()).add(start)
        self._blocks[start] = found
        if not path.decoded and start in self._addresses:  # another instruction may be stored there
            word = (start - self._addresses.start) // WORD_BYTES
            self._translated[word] = 1
            self._users.setdefault(word, set()).add(start)
        return found

    def _path(self, start: int) -> _Path:
        """The instructions from an address on, up to one that cannot be translated, or that leads elsewhere."""
        path, counter = _Path(start), start
        seen: set[int] = set()
        while len(path.decoded) < self._longest and counter in self._addresses and counter not in seen:
            word = (counter - self._addresses.start) // WORD_BYTES
            decoded = decode(self.memory[word])
            if decoded is None or decoded.instruction.format == "system" or self._changes[word] == MOST_CHANGES:
                break
            instruction, target = decoded.instruction, (counter + decoded.immediate) & MASK
            jumps = instruction.format in ("B", "J")
            if instruction.extension not in self._extensions or (jumps and target % WORD_BYTES):
                break
            seen.add(counter)
            path.counters.append(counter)
            path.decoded.append(decoded)
            counter = target if instruction.format == "J" else (counter + WORD_BYTES) & MASK
            if instruction.opcode == isa.JALR or (jumps and decoded.immediate <= 0 and target != start):
                break
        path.end = counter
        return path


class _Writer:
    """Writes a path as a Python function."""

    def __init__(self, path: _Path, base: int) -> None:
        self._path, self._base = path, base
        self._lines: list[str] = []
        self._index_of: list[int] = []
        self._known: dict[int, int] = {0: 0}
        self._index = 0
        self._indent = "  "

    def text(self) -> tuple[str, list[int]]:
        """The function, and for each of its lines, counted from 1, which instruction it belongs to."""
        path = self._path
        self._add("def block(n):")
        for number in path.registers():
            self._add(f" r{number} = x[{number}]")
        self._add(" try:")
        if path.loops:
            self._add("  while True:")
            self._indent = "   "
        for self._index, (counter, decoded) in enumerate(zip(path.counters, path.decoded, strict=True)):
            self._instruction(counter, decoded)
        last = path.decoded[-1].instruction
        if last.opcode != isa.JALR:
            self._leave(path.end, len(path.decoded), "")
        self._add(" except IndexError as why:")
        self._save(" ")
        self._add("  at = lines[why.__traceback__.tb_lineno]")
        self._add("  return ~counters[at], n - at")
        self._add(" except Changed as why:")
        self._save(" ")
        self._add("  drop(i)")
        self._add("  at = lines[why.__traceback__.tb_lineno]")
        self._add("  return counters[at] + 4, n - at - 1")
        return re.sub(r"\b[MH]\b", _constant, "\n".join(self._lines)), [0, *self._index_of]

    def _add(self, line: str) -> None:
        self._lines.append(line)
        self._index_of.append(self._index)

    def _put(self, line: str) -> None:
        self._add(self._indent + line)

    def _save(self, indent: str) -> None:
        """Give the registers back."""
        changed = self._path.changed()
        if changed:
            self._add(f"{indent} " + "; ".join(f"x[{number}] = r{number}" for number in changed))

    def _leave(self, target: int | str, count: int, indent: str) -> None:
        """Go on at another address, after so many instructions; at the beginning there is a loop."""
        if target == self._path.start and self._path.loops:
            self._put(f"{indent}n -= {count}")
            self._put(f"{indent}if n >= {len(self._path.decoded)}: continue")
            count = 0
        self._save(self._indent[:-1] + indent)
        self._put(f"{indent}return {target}, n - {count}")

    def _value(self, number: int) -> str:
        return str(self._known[number]) if number in self._known else f"r{number}"

    def _set(self, number: int, expression: str, value: int | None = None) -> None:
        """A register becomes what an expression gives; `value` where that is known."""
        if not number:
            return
        if value is None:
            self._known.pop(number, None)
            self._put(f"r{number} = {expression}")
        else:
            self._known[number] = value & MASK
            self._put(f"r{number} = {value & MASK}")

    def _instruction(self, counter: int, decoded: Decoded) -> None:
        instruction, after = decoded.instruction, self._index + 1
        match instruction.opcode:
            case isa.LUI:
                self._set(decoded.rd, "", decoded.immediate)
            case isa.AUIPC:
                self._set(decoded.rd, "", counter + decoded.immediate)
            case isa.JAL:
                self._set(decoded.rd, "", counter + WORD_BYTES)
            case isa.JALR:
                self._put(f"t = {self._sum(decoded.rs1, decoded.immediate)} & -2")
                self._put("if t & 2: raise IndexError")
                self._set(decoded.rd, "", counter + WORD_BYTES)
                self._leave("t", after, "")
            case isa.BRANCH:
                self._put(f"if {self._condition(decoded)}:")
                self._leave((counter + decoded.immediate) & MASK, after, " ")
            case isa.LOAD:
                self._load(decoded)
            case isa.STORE:
                self._store(decoded)
            case isa.OP | isa.OP_IMM:
                self._operation(decoded)

    def _sum(self, number: int, immediate: int) -> str:
        """A register and a number, modulo 2^32."""
        if number in self._known:
            return str((self._known[number] + immediate) & MASK)
        return f"(r{number} {'-' if immediate < 0 else '+'} {abs(immediate)} & M)" if immediate else f"r{number}"

    def _condition(self, decoded: Decoded) -> str:
        name, a, b = decoded.instruction.name, self._value(decoded.rs1), self._value(decoded.rs2)
        if name in UNSIGNED:
            return f"{a} {UNSIGNED[name]} {b}"
        if decoded.rs2 == 0:
            return f"{a} {'>' if name == 'blt' else '<='} {MASK >> 1}"
        return f"{self._flipped(decoded.rs1)} {SIGNED[name]} {self._flipped(decoded.rs2)}"

    def _flipped(self, number: int) -> str:
        """A register with its sign bit changed, so that signed numbers compare as unsigned ones."""
        return str(self._known[number] ^ 1 << 31) if number in self._known else f"(r{number} ^ H)"

    def _operation(self, decoded: Decoded) -> None:
        instruction = decoded.instruction
        name, plain = operation_of(instruction), instruction.opcode == isa.OP_IMM
        known = decoded.immediate & MASK if plain else self._known.get(decoded.rs2)
        if decoded.rs1 in self._known and known is not None:
            self._set(decoded.rd, "", int(OPERATIONS[name](self._known[decoded.rs1], known)))
        elif name == "add" and known is not None:
            self._set(decoded.rd, self._sum(decoded.rs1, signed(known)))
        elif name in ("sll", "srl", "sra") and known is not None:
            self._set(decoded.rd, self._shifted(name, self._value(decoded.rs1), known & 31))
        elif name == "slt":
            flipped = str(known ^ 1 << 31) if known is not None else self._flipped(decoded.rs2)
            self._set(decoded.rd, f"1 if {self._flipped(decoded.rs1)} < {flipped} else 0")
        else:
            b = self._value(decoded.rs2) if known is None else str(known)
            self._set(decoded.rd, EXPRESSIONS[name].format(a=self._value(decoded.rs1), b=b))

    @staticmethod
    def _shifted(name: str, a: str, amount: int) -> str:
        forms = {"sll": f"{a} << {amount} & M", "srl": f"{a} >> {amount}", "sra": f"({a} ^ H) - H >> {amount} & M"}
        return forms[name]

    def _place(self, decoded: Decoded) -> Iterator[str]:
        """Lines that make the place of an access, from the base on, in `a`; a misaligned one is left to the interpreter."""
        yield f"a = {self._sum(decoded.rs1, decoded.immediate - self._base)}"
        if decoded.instruction.access_bytes > 1:
            yield f"if a & {decoded.instruction.access_bytes - 1}: raise IndexError"

    def _load(self, decoded: Decoded) -> None:
        for line in self._place(decoded):
            self._put(line)
        form = {
            "lw": "m[a >> 2]", "lbu": "m[a >> 2] >> ((a & 3) << 3) & 255", "lhu": "m[a >> 2] >> ((a & 2) << 3) & 65535",
            "lb": "((m[a >> 2] >> ((a & 3) << 3) & 255) ^ 128) - 128 & M",
            "lh": "((m[a >> 2] >> ((a & 2) << 3) & 65535) ^ 32768) - 32768 & M",
        }[decoded.instruction.name]
        if decoded.rd:
            self._set(decoded.rd, form)
        else:
            self._put("m[a >> 2]")

    def _store(self, decoded: Decoded) -> None:
        for line in self._place(decoded):
            self._put(line)
        value = self._value(decoded.rs2)
        self._put("i = a >> 2")
        if decoded.instruction.name == "sw":
            self._put(f"m[i] = {value}")
        else:
            mask, lanes = (255, 3) if decoded.instruction.name == "sb" else (65535, 2)
            self._put(f"a = (a & {lanes}) << 3")
            self._put(f"m[i] = m[i] & ~({mask} << a) | ({value} & {mask}) << a")
        self._put("if c[i]: raise Changed")
