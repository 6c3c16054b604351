"""The SUBLEQ machine: words in two's complement, code and data apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from punchcard.arguments import checked
from punchcard.card.encoding import checked_words
from punchcard.card.layout import Card, Cards
from punchcard.card.packed import PackedCard
from punchcard.card.packed_stack import PackedStack
from punchcard.errors import ProgramError
from punchcard.machines.base import AsPrecision, Machine
from punchcard.machines.design import Design, by_name
from punchcard.machines.display_values import DisplayValue, ListedInstruction, Listing, lines_of
from punchcard.machines.interpreter import Quick
from punchcard.machines.kind import Kind
from punchcard.machines.meaning import Meaning
from punchcard.machines.result import Readout
from punchcard.machines.streams import Read, Write
from punchcard.machines.subleq.designs.base import CONSTANT_NAMES, MIN_WORD_BITS, SubleqContent, SubleqDesign, SubleqSizes
from punchcard.machines.subleq.designs.one_layer import SubleqOneLayer
from punchcard.machines.subleq.designs.paper import SubleqPaper
from punchcard.machines.subleq.designs.two_layer import SubleqTwoLayer
from punchcard.machines.subleq.isa import Program, State, Subleq
from punchcard.machines.subleq.kind import SUBLEQ
from punchcard.machines.subleq.oracle import SubleqInterpreter
from punchcard.transformer.build import compile_layers
from punchcard.transformer.exactness import needed_bits

VIEW_BITS = (8, 16)
"""Words that a view tries, the last being the usual one."""
VIEW_STEPS = 20_000
MOST_SHOWN = 512
"""Cells that a view lists: each of them is computed in every step."""


@checked
class SubleqMachine(Machine[Program, State]):
    """A looped transformer that executes SUBLEQ programs, one instruction per loop.

    word_bits      N, the number of bits in a word; arithmetic is modulo 2^N
    memory         number of memory cells
    instructions   number of instructions that a program may have, with the final halt
    design         "paper" (nine layers), "two-layer" or "one-layer"
    precision      a number format ("float64", "float32", ...) or a `Precision`
    """

    kind: ClassVar[Kind] = SUBLEQ
    designs: ClassVar[Mapping[str, Design[SubleqSizes]]] = by_name(SubleqPaper(), SubleqTwoLayer(), SubleqOneLayer())
    sizes: SubleqSizes
    design: SubleqDesign

    def __init__(
        self,
        *,
        word_bits: int = 16,
        memory: int = 29,
        instructions: int = 32,
        design: str = "paper",
        precision: AsPrecision = "float64",
    ) -> None:
        options = {"word_bits": word_bits, "memory": memory, "instructions": instructions}
        self.build(SubleqSizes(**options), design, precision, options)

    def advice(self) -> str:
        """The widest word that the number format could hold, if there is one."""
        shorter = self.sizes.word_bits - (self.needed_bits - self.precision.significand)
        if shorter >= MIN_WORD_BITS:
            sizes = replace(self.sizes, word_bits=shorter)
            layout = self.design.layout(sizes)
            layers = self.design.layers(sizes, layout, self.precision)
            if needed_bits(compile_layers(layers, layout.width), layout) <= self.precision.significand:
                return f"use words of at most {shorter} bits or a wider number format"
        return f"use a wider number format, or fewer columns than {self.layout.columns}"

    @classmethod
    def sizes_for(cls, program: Program) -> dict[str, Any]:
        return {"memory": len(program.memory), "instructions": len(program.instructions)}

    @classmethod
    def view_options(cls, program: Program) -> dict[str, Any]:
        """Two layers, and the shortest words with which the program computes what it does with the usual ones."""
        *shorter, usual = VIEW_BITS
        end = cls._end(program, usual)
        same = [bits for bits in shorter if end is not None and cls._end(program, bits) == end]
        return {"design": cls.kind.view_design or cls.kind.designs[0], "word_bits": min([usual, *same])}

    @classmethod
    def view_choices(cls) -> dict[str, list[Any]]:
        return {**super().view_choices(), "word_bits": [*VIEW_BITS, 32]}

    @staticmethod
    def _end(program: Program, bits: int) -> State | None:
        """The state in which the interpreter halts; None if it takes long, or a word does not fit."""
        if any(not -(1 << bits - 1) <= word < 1 << bits - 1 for word in program.memory):
            return None
        oracle = SubleqInterpreter(program, bits, len(program.memory))
        oracle.run(VIEW_STEPS)
        return oracle.state if oracle.halted else None

    def title(self) -> str:
        cells, room = self.sizes.memory, self.sizes.instructions
        return (f"subleq, design {self.design.name!r}: {self.sizes.word_bits}-bit words, {cells} cell{'s' * (cells != 1)}, "
                f"{room} instruction{'s' * (room != 1)}")

    def content(self, program: Program) -> SubleqContent:
        """Words, and pointers as columns. A halt, and the room after the program, is EOF: it subtracts 0 from -1, which
        is not positive, and jumps to itself.
        """
        sizes = self.sizes
        commands = np.empty((sizes.instructions, 3), dtype=np.int64)
        commands[:] = sizes.zero_column, sizes.minus_one_column, 0
        commands[:, 2] = np.arange(sizes.instruction_column, sizes.columns)
        first = sizes.memory_column, sizes.memory_column, sizes.instruction_column
        for number, instruction in enumerate(program.instructions):
            if isinstance(instruction, Subleq):
                commands[number] = np.add(first, (instruction.a, instruction.b, instruction.c))
        return SubleqContent(program.memory, commands)

    def pack_all(self, programs: Sequence[Program]) -> list[PackedCard]:
        """Programs with the same instructions differ in their words alone: those of all are written at once."""
        if not self.design.words_alone or type(self).punch is not Machine.punch:
            return super().pack_all(programs)
        groups: dict[tuple[int, int], list[int]] = {}
        for number, program in enumerate(programs):
            groups.setdefault((id(program.instructions), len(program.memory)), []).append(number)
        found: dict[int, PackedCard] = {}
        for members in groups.values():
            own = [programs[number] for number in members]
            stack, region = PackedStack(self.pack(own[0]), len(own)), self.layout.region("memory")
            self._check_words(own)
            for rows in self.design.word_rows:
                place = self.layout.place(rows)
                words = checked_words(np.array([one.memory for one in own], dtype=np.int64), place.size, signed=True)
                stack.put_words(place, slice(region.start, region.start + words.shape[1]), words)
            found.update(zip(members, stack.cards(), strict=True))
        return [found[number] for number in range(len(programs))]

    def _check_words(self, programs: Sequence[Program]) -> None:
        """Raise an error for the first program with a word that does not fit."""
        half = 1 << self.sizes.word_bits - 1
        for program in programs:
            if min(program.memory, default=0) < -half or max(program.memory, default=0) >= half:
                self.check_fits(program)

    def readouts(self, programs: Sequence[Program], cards: Sequence[Card]) -> list[Readout]:
        """With arrays, those of programs with as many cells together."""
        packed = [card for card in cards if isinstance(card, PackedCard)]
        if len({len(program.memory) for program in programs}) != 1 or len(packed) < len(cards):
            return super().readouts(programs, cards)
        states = self.states(packed, len(programs[0].memory))
        return [Readout(program.named(state.memory), state.program_counter, self._is_at_halt(program, state))
                for program, state in zip(programs, states, strict=True)]

    def meaning(self, card: Meaning) -> None:
        self.design.meaning(self.sizes, card)

    def states(self, cards: Cards, cells: int | None = None) -> list[State]:
        reading = self.design.read(self.sizes, self.layout, cards, cells)
        counters = (reading.program_counter - self.sizes.instruction_column).tolist()
        return [State(tuple(words), counter) for words, counter in zip(reading.words.tolist(), counters, strict=True)]

    def read_own(self, program: Program, card: Card) -> State:
        return self.states([card] if isinstance(card, PackedCard) else card[None], len(program.memory))[0]

    def own(self, program: Program, state: State) -> State:
        return State(state.memory[: len(program.memory)], state.program_counter)

    def values(self, program: Program, state: State) -> dict[str, Any]:
        return dict(program.named(state.memory))

    def at_halt(self, program: Program, state: State) -> bool:
        return self._is_at_halt(program, state)

    @staticmethod
    def _is_at_halt(program: Program, state: State) -> bool:
        inside = 0 <= state.program_counter < len(program.instructions)
        return inside and not isinstance(program.instructions[state.program_counter], Subleq)

    def column_name(self, column: int, program: Program | None = None) -> str:
        name = self.layout.column_name(column)
        if program is None:
            return name
        cell, number = column - self.sizes.memory_column, column - self.sizes.instruction_column
        if 0 <= cell < len(program.memory):
            return program.cell_name(cell)
        if number >= 0:
            return f"instruction {number}"
        constant = column - self.sizes.zero_column
        return CONSTANT_NAMES[constant] if constant in range(len(CONSTANT_NAMES)) else name

    def oracle(self, program: Program, read: Read, write: Write) -> SubleqInterpreter:
        return SubleqInterpreter(program, self.sizes.word_bits, self.sizes.memory)

    def quickest(self, program: Program) -> Quick[State]:
        from punchcard.machines.subleq.fast import FastSubleq

        return FastSubleq(program, self.sizes.word_bits, self.sizes.memory)

    def in_c(self, program: Program) -> Quick[State]:
        from punchcard.machines.subleq.fast import SubleqInC

        return SubleqInC(program, self.sizes.word_bits, self.sizes.memory)

    def trace_line(self, program: Program, before: Card, after: Card) -> str:
        then, now = self.read(before), self.read(after)
        number = then.program_counter
        if not 0 <= number < len(program.instructions):
            return f"[{number}] outside the program"
        instruction = program.instructions[number]
        if not isinstance(instruction, Subleq):
            return f"[{number}] halt"
        names = program.cell_names()
        a, b = names[instruction.a], names[instruction.b]
        code = f"[{number}] subleq {a}, {b}, {instruction.c}"
        old_a, old_b, new_b = then.memory[instruction.a], then.memory[instruction.b], now.memory[instruction.b]
        return f"{code:<36} {b} = {old_b} - {old_a} = {new_b}, goto {now.program_counter}"

    def display_values(self, program: Program) -> list[DisplayValue]:
        return self.design.display_values(self.sizes, self.layout, program.cell_names()[:MOST_SHOWN])

    def listing(self, program: Program, source: str | None = None) -> Listing:
        """An instruction is a line; of a program without lines, a line of its disassembled text."""
        if source is None or len(program.lines) < len(program.instructions) - 1:
            source = self.kind.disassemble(program)
            program = self.kind.languages[0].assemble(source)
        lines = lines_of(source)
        found = []
        for number, instruction in enumerate(program.instructions):
            line = program.lines[number] if number < len(program.lines) else None
            text = lines[line - 1].strip() if line is not None and line <= len(lines) else ""
            name = "subleq" if isinstance(instruction, Subleq) else "halt"
            found.append(ListedInstruction(number, line, text or name))
        return Listing(lines, found)

    def check_fits(self, program: Program) -> None:
        sizes = self.sizes
        for what, has, room, option in (
            ("instructions", len(program.instructions), sizes.instructions, "instructions"),
            ("memory cells", len(program.memory), sizes.memory, "memory"),
        ):
            if has > room:
                raise ProgramError(f"the program has {has} {what}, the machine has room for {room}: "
                                   f"build it with {option}={has} or more")
        half = 1 << sizes.word_bits - 1
        for name, value in zip(program.cell_names(), program.memory, strict=True):
            if not -half <= value < half:
                raise ProgramError(f"cell {name!r} is {value}, which does not fit a word of {sizes.word_bits} bits: "
                                   f"the range is {-half} to {half - 1}")
