"""The instruction set of the paper's one-instruction computer, and its programs. Code and data are apart.

    subleq a, b, c      mem[b] = mem[b] - mem[a]; if mem[b] <= 0 goto instruction c, else goto the next
    halt                stop

Words are integers modulo 2^N in two's complement; N belongs to the machine, not to the program.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from typing import TypeAlias

from punchcard.arguments import checked
from punchcard.errors import ProgramError, did_you_mean, printable, shortened
from punchcard.formatting import join_some, plural
from punchcard.machines.assembler import Operation, Symbol

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


# mem[b] -= mem[a]; if mem[b] <= 0 goto c, by default the next instruction
SUBLEQ = Operation("subleq", ("cell", "cell", "target"), optional=1)
HALT = Operation("halt", ())
OPERATIONS = {operation.mnemonic: operation for operation in (SUBLEQ, HALT)}


@dataclass(frozen=True)
class Subleq:
    """One `subleq`: the numbers of two memory cells and of an instruction."""

    a: int
    b: int
    c: int


@dataclass(frozen=True)
class Halt:
    """The end of the program."""


Instruction: TypeAlias = Subleq | Halt


@dataclass(frozen=True)
class State:
    """What a program's run is judged by: all memory cells, and the number of the next instruction."""

    memory: tuple[int, ...]
    program_counter: int


@checked
@dataclass(frozen=True)
class Program:
    """A SUBLEQ program: instructions, initial memory and symbols. The last instruction is a halt; each cell has a symbol."""

    instructions: tuple[Instruction, ...]
    memory: tuple[int, ...]
    symbols: tuple[Symbol, ...]
    labels: tuple[tuple[str, int], ...] = ()
    lines: tuple[int, ...] = field(default=(), compare=False, repr=False)
    """The line of each instruction in the text that it comes from, counted from 1."""

    @classmethod
    def create(
        cls,
        instructions: Sequence[Instruction],
        memory: Sequence[int] = (),
        symbols: Sequence[Symbol] | None = None,
        labels: Mapping[str, int] | None = None,
        lines: Sequence[int] = (),
    ) -> Program:
        """Make a program from its parts. A final halt is added if it is missing. Unnamed cells are called m0, m1, ..."""
        if not instructions:
            raise ProgramError("the program is empty: it needs at least one instruction")
        code = tuple(instructions)
        if not isinstance(code[-1], Halt) or len(code) in (labels or {}).values():
            code = (*code, Halt())
        cells = tuple(memory) or (0,)
        names = tuple(symbols) if symbols else tuple(Symbol(f"m{i}", i) for i in range(len(cells)))
        in_order = sorted((labels or {}).items(), key=lambda label: label[1])
        return cls(code, cells, names, tuple(in_order), tuple(lines))

    def __post_init__(self) -> None:
        if not self.instructions or not isinstance(self.instructions[-1], Halt):
            raise ProgramError("a program ends with a halt: use Program.create, which adds it")
        starts = [0, *accumulate(s.size for s in self.symbols)]
        if any(s.size < 1 for s in self.symbols) or [*(s.address for s in self.symbols), len(self.memory)] != starts:
            raise ProgramError("the symbols do not cover the memory cells one after the other")
        if not self.memory:
            raise ProgramError("a program has at least one memory cell")
        cells, targets = range(len(self.memory)), range(len(self.instructions))
        for kind, names in (("memory cell", [s.name for s in self.symbols]), ("label", [n for n, _ in self.labels])):
            for name in names:
                if not NAME.fullmatch(name):
                    raise ProgramError(f"{kind} {shortened(name)}: a name is letters, digits and _, and starts with no "
                                       "digit")
            if len(set(names)) < len(names):
                twice = next(name for name, count in Counter(names).items() if count > 1)
                raise ProgramError(f"{kind} {shortened(twice)} is declared twice")
        for label, target in self.labels:
            if target not in targets:
                raise ProgramError(f"label {shortened(label)} names instruction {target}: there are {len(targets)}")
        for number, instruction in enumerate(self.instructions):
            if isinstance(instruction, Subleq):
                for operand in (instruction.a, instruction.b):
                    if operand not in cells:
                        raise ProgramError(f"instruction {number} uses memory cell {operand}: there are {len(cells)}, "
                                           "counted from 0")
                if instruction.c not in targets:
                    raise ProgramError(f"instruction {number} jumps to instruction {instruction.c}: there are "
                                       f"{len(targets)}, counted from 0")

    def __repr__(self) -> str:
        cells = join_some([f"{name} {value}" for name, value in self.named(self.memory).items()])
        size = f"{plural(len(self.instructions), 'instruction')}, {plural(len(self.memory), 'cell')}"
        return printable(f"<Program: {size}: {cells}>")

    def cell_names(self) -> list[str]:
        """The names of all memory cells. The cells of an array `list` are called `list`, `list+1`, ..."""
        return list(self._cell_names)

    def cell_name(self, cell: int) -> str:
        """The name of a memory cell."""
        return self._cell_names[cell]

    @cached_property
    def _cell_names(self) -> Sequence[str]:
        return [f"{s.name}+{i}" if i else s.name for s in self.symbols for i in range(s.size)]

    def address(self, name: str) -> int:
        """The address of the cell with this name. Raises an error if there is none."""
        names = self.cell_names()
        name = name.removesuffix("+0")
        if name not in names:
            raise ProgramError(f"unknown memory cell {name!r}{did_you_mean(name, names)}; "
                               f"the program has {', '.join(names[:20])}{', ...' if len(names) > 20 else ''}")
        return names.index(name)

    def with_values(self, values: Mapping[str, int]) -> Program:
        """A copy of the program with other initial values, by name: `program.with_values({"a": 12})`."""
        memory = list(self.memory)
        for name, value in values.items():
            if not isinstance(value, int):
                raise ProgramError(f"{name}={value!r}: a cell holds an integer")
            memory[self.address(name)] = value
        return replace(self, memory=tuple(memory))

    def named(self, memory: Sequence[int]) -> dict[str, int]:
        """The values of a memory by the names of its cells."""
        return dict(zip(self._cell_names, memory, strict=True))

    def to_json(self) -> str:
        """The program as one JSON object; a halt is written as null."""
        return json.dumps({
            "isa": "subleq",
            "instructions": [[i.a, i.b, i.c] if isinstance(i, Subleq) else None for i in self.instructions],
            "memory": list(self.memory),
            "symbols": [[s.name, s.address, s.size] for s in self.symbols],
            "labels": [[name, target] for name, target in self.labels],
        })

    @classmethod
    def from_json(cls, text: str) -> Program:
        """The program from the text that `to_json` returned."""
        try:
            data = json.loads(text)
            if not isinstance(data, dict):
                raise TypeError("it is not a JSON object")
            if data["isa"] != "subleq":
                raise ProgramError(f"a program for {shortened(data['isa'])}, not for 'subleq'")
            return cls(
                tuple(Halt() if i is None else _subleq(i) for i in data["instructions"]),
                tuple(map(_integer, data["memory"])),
                tuple(Symbol(name, _integer(address), _integer(size)) for name, address, size in data["symbols"]),
                tuple((name, _integer(target)) for name, target in data["labels"]),
            )
        except KeyError as error:
            raise ProgramError(f"not a program as `punchcard asm` writes it: it has no {error}") from None
        except (json.JSONDecodeError, RecursionError):
            raise ProgramError("not a program as `punchcard asm` writes it: it is not JSON, or nested too deeply") from None
        except (ValueError, TypeError) as error:
            raise ProgramError(f"not a program as `punchcard asm` writes it: {_plain(error)}") from None


def _plain(error: Exception) -> str:
    """What an error means, for a reader who did not write the code."""
    if "set_int_max_str_digits" in str(error):
        return "a number has thousands of digits"
    return "an entry is not as it should be" if "unpack" in str(error) else str(error)


def _subleq(operands: object) -> Subleq:
    if not isinstance(operands, list) or len(operands) != 3:
        raise TypeError(f"{shortened(operands)} is not an instruction: it has three operands")
    return Subleq(*map(_integer, operands))


def _integer(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{shortened(value)} is not an integer")
    return value
