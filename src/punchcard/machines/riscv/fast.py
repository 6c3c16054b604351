"""RV32IM in plain Python, as fast as CPython goes: what the engines' speed is measured against.

Instructions that follow each other are translated to one Python function, once. Registers are local names in it, and a
branch back to its beginning is a loop. A translated path continues after a branch that is not taken and
through jumps whose target is known. What goes wrong, system calls, and the last steps before a limit are left to the plain
interpreter, so both stop at the same instruction. A store to a word that was translated throws the translation away.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import NamedTuple, TypeAlias

from punchcard.machines.riscv import isa
from punchcard.machines.riscv.calls import Calls
from punchcard.machines.riscv.isa import MASK, WORD_BITS, WORD_BYTES, Decoded, decode
from punchcard.machines.riscv.oracle import RiscvInterpreter, functions_of
from punchcard.machines.riscv.program import RiscvProgram
from punchcard.machines.riscv.semantics import OPERANDS
from punchcard.words.text import python_lines
from punchcard.words.word import constant, variable

Block: TypeAlias = Callable[[int], tuple[int, int]]
"""Executes at most so many instructions: the next program counter, and how many are left.

A program counter is given as its complement where the plain interpreter must execute the next instruction.
"""
LONGEST = 100
"""The most instructions of a path."""
MOST_CHANGES = 8
"""A word that changed more often while it was translated is left to the plain interpreter."""
NO_BLOCK: tuple[None, int] = (None, 0)
HELD = "m[a >> 2]"
"""The word of the memory that a load reads."""


class Changed(Exception):
    """A store has changed a word that was translated."""


@dataclass
class _Path:
    """Instructions on their way to a function."""

    start: int
    counters: list[int] = field(default_factory=list)
    decoded: list[Decoded] = field(default_factory=list)
    end: int = 0
    """Where it continues after the last one, unless that jumps."""

    def registers(self) -> list[int]:
        used = {number for one in self.decoded for number in (one.rd, one.rs1, one.rs2)}
        return sorted(used - {0})

    def changed(self) -> list[int]:
        return sorted({one.rd for one in self.decoded} - {0})

    @property
    def loops(self) -> bool:
        return any(one.instruction.format in ("B", "J") and target_of(at, one) == self.start
                   for at, one in zip(self.counters, self.decoded, strict=True))


class QuickRiscv(RiscvInterpreter):
    """The interpreter with its instructions translated to Python."""

    def __init__(
        self, program: RiscvProgram, memory: int, calls: Calls | None = None, *, multiply: bool = True
    ) -> None:
        super().__init__(program, memory, calls, multiply=multiply)
        self.memory = list(self.memory)  # which Python reads faster than an array
        self._blocks: dict[int, tuple[Block | None, int]] = {}
        self._translated = bytearray(memory)
        self._users: dict[int, set[int]] = {}
        self._changes = bytearray(memory)

    def run(self, max_steps: int | None = None) -> None:
        """Continue until it halts, or until `max_steps` instructions have been executed in all."""
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
            text, lines = _PathWriter(path, self._addresses.start).text()
            names: dict[str, object] = {
                "x": self.registers, "m": self.memory, "c": self._translated, "drop": self._drop, "Changed": Changed,
                "lines": lines, "counters": path.counters}
            exec(compile(text, f"<block {start:#x}>", "exec"), names)
            found = names["block"], len(path.decoded)  # type: ignore[assignment]
        self._blocks[start] = found
        for counter in path.counters or [start] * (start in self._addresses):  # another instruction may be stored there
            word = (counter - self._addresses.start) // WORD_BYTES
            self._translated[word] = 1
            self._users.setdefault(word, set()).add(start)
        return found

    def _path(self, start: int) -> _Path:
        """The instructions from an address on, up to one that cannot be translated, or that leads elsewhere."""
        path, counter = _Path(start), start
        seen: set[int] = set()
        while len(path.decoded) < LONGEST and counter in self._addresses and counter not in seen:
            word = (counter - self._addresses.start) // WORD_BYTES
            decoded = decode(self.memory[word])
            if decoded is None or decoded.instruction.format == "system" or self._changes[word] == MOST_CHANGES:
                break
            instruction = decoded.instruction
            jumps = instruction.format in ("B", "J")
            target = target_of(counter, decoded) if jumps else 0
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


class _PathWriter:
    """Writes a path as a Python function."""

    def __init__(self, path: _Path, base: int) -> None:
        self._path, self._base = path, base
        self._lines: list[str] = []
        self._index_of: list[int] = []
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
        return "\n".join(self._lines), [0, *self._index_of]

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
        """Continue at another address, after so many instructions; at the beginning there is a loop."""
        if target == self._path.start and self._path.loops:
            self._put(f"{indent}n -= {count}")
            self._put(f"{indent}if n >= {len(self._path.decoded)}: continue")
            count = 0
        self._save(self._indent[:-1] + indent)
        self._put(f"{indent}return {target}, n - {count}")

    def _instruction(self, counter: int, decoded: Decoded) -> None:
        instruction, after = decoded.instruction, self._index + 1
        immediate = decoded.immediate - (self._base if instruction.access_bytes else 0)
        names = {"counter": counter, "x": f"r{decoded.rs1}", "y": f"r{decoded.rs2}", "immediate": abs(immediate)}
        text = instruction_text(instruction.name, not decoded.rs1, not decoded.rs2, (immediate > 0) - (immediate < 0))
        for line in text.lines:
            self._put(line.format(**names))
        if decoded.rd and text.result:
            self._put(f"r{decoded.rd} = {text.result.format(**names)}")
        elif instruction.reads_memory:
            self._put(HELD)
        if instruction.opcode == isa.JALR:
            self._leave("t", after, "")
        elif instruction.opcode == isa.BRANCH:
            self._put(f"if {text.taken.format(**names)}:")
            self._leave(target_of(counter, decoded), after, " ")


class InstructionText(NamedTuple):
    """An instruction as Python text, with {counter}, {x}, {y} and {immediate} for its operands, the last without its sign.

    `lines` come first. `result` is what rd becomes, or empty. `taken`: whether it branches.
    """

    lines: list[str]
    result: str
    taken: str


@cache
def instruction_text(name: str, x_is_zero: bool, y_is_zero: bool, sign: int) -> InstructionText:
    """The instruction with this name, whose immediate has this sign.

    A load or store leaves the place of its access, from the base on, in `a`. The base is a multiple of four, so the place is
    in the same lane as the address. What is misaligned or outside the memory is left to the interpreter.
    """
    instruction, zero, immediate = isa.BY_NAME[name], constant(0, WORD_BITS), variable("{immediate}", WORD_BITS)
    given = replace(OPERANDS, counter=variable("{counter}", WORD_BITS), x=zero if x_is_zero else variable("{x}", WORD_BITS),
                    y=zero if y_is_zero else variable("{y}", WORD_BITS), immediate=(zero, immediate, -immediate)[sign])
    given, lines, size = replace(given, address=given.x + given.immediate), list[str](), instruction.access_bytes
    if size:
        lines = [f"a = {python_lines(given.address, str)[1]}"]
        lines += [f"if a & {size - 1}: raise IndexError"] if size > 1 else []
        lines += ["i = a >> 2"] if instruction.writes_memory else []
        held = variable("m[i]" if instruction.writes_memory else HELD, WORD_BITS)
        given = replace(given, address=variable("a", WORD_BITS), loaded=held)
    outcome = instruction.semantics(given)
    result = ""
    if outcome.result is not None:
        before, result = python_lines(outcome.result, str)
        lines += before
    if instruction.writes_memory:
        lines, result = [*lines, f"m[i] = {result}", "if c[i]: raise Changed"], ""
    if instruction.opcode == isa.JALR:
        lines += [f"t = {python_lines(outcome.target, str)[1]}", "if t & 2: raise IndexError"]
    return InstructionText(lines, result, python_lines(outcome.taken, str)[1])


def target_of(counter: int, decoded: Decoded) -> int:
    """Where a jump or branch leads that does not depend on a register."""
    return functions_of(decoded.instruction.name).target(counter, 0, 0, decoded.immediate & MASK, 0, 0)[0]
