"""Operations to a FLEQ program: the passes over instructions in a row, and what writes these with the builder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from punchcard.machines.fleq.builder import Builder, Place
from punchcard.machines.fleq.functions import KNOWN, Function
from punchcard.machines.fleq.isa import FleqProgram
from punchcard.machines.fleq.text.source import KEYWORDS
from punchcard.python.arrays import peephole
from punchcard.python.arrays.allocation import Sharing, drop_unread, rename_slots, take_initial_constants
from punchcard.python.arrays.ir import Const, Ref, Register, SourcePlace, Statement
from punchcard.python.arrays.linearization import Instr, Item, JumpTarget, Loc, linearize
from punchcard.python.arrays.orientation import choose_orientation
from punchcard.python.arrays.peephole import PointerMove

RESULTS = ("result", *(f"result{number}" for number in range(1, 100)))


@dataclass(frozen=True)
class Stored:
    """Where a parameter or a result is: the variable of the program, and whether it is stored transposed."""

    variable: str
    turned: bool


@dataclass(frozen=True)
class GeneratedProgram:
    """A program, where its parameters and results are, and the line of the source of each instruction."""

    program: FleqProgram
    parameters: dict[str, Stored]
    results: list[Stored]
    lines: dict[int, SourcePlace]


def generate(
    code: list[Statement], parameters: Mapping[str, Register], results: list[Register], functions: Mapping[str, Function],
    limit: float,
) -> GeneratedProgram:
    """The program of some code; `functions` are the fitted ones by name, `limit` is the range."""
    orientation = choose_orientation(code, results)
    items, given = linearize(code, orientation, parameters, limit)
    ends = [orientation.slots(register)[0] for register in results]
    items = drop_unread(items, ends)
    items = peephole.fuse_columns(items, set(given))
    items = drop_unread(items, ends)
    items, initial = take_initial_constants(items)
    sharing = Sharing(items, [*given, *initial], ends)
    sharing.join_copies(items)
    items = rename_slots(items, sharing)
    items = peephole.fuse_stores(items, {sharing.group(slot) for slot in ends})
    groups = [sharing.group(slot) for slot in ends]
    again = Sharing(items, [sharing.group(slot) for slot in (*given, *initial)], groups)
    again.join_rest()
    items = rename_slots(items, again)
    items = peephole.merge_branches(peephole.place_pointer_updates(items))

    def final(slot: Ref) -> Ref:
        return again.group(sharing.group(slot))

    named: dict[Ref, str] = {}
    for slot in sharing.apart:  # a variable is called as the source has it; what only returns a value is a result
        own = slot.register.name
        group = sharing.group(slot)
        if own and (group not in named or named[group] in RESULTS):
            named[group] = own
    named |= {final(slot): name for slot, name in given.items()}
    writer = _Writer(functions, {final(slot): const for slot, const in initial.items()}, named)
    program, lines = writer.write(items, [final(slot) for slot in given], [final(slot) for slot in ends], limit)

    def stored(slot: Ref) -> Stored:
        return Stored(writer.places[final(slot)].name, slot.flipped)

    return GeneratedProgram(program, {name: stored(slot) for slot, name in given.items()}, list(map(stored, ends)), lines)


class _Writer:
    """Names for slots, constants and labels, and the calls of the builder."""

    def __init__(self, functions: Mapping[str, Function], initial: Mapping[Ref, Const],
                 named: Mapping[Ref, str]) -> None:
        self.p = Builder(functions.values())
        self.p.reserve([*KNOWN, *KEYWORDS])
        self.functions, self.initial, self.named = functions, initial, named
        self.places: dict[Ref, Place] = {}
        self.constants: dict[Const, Place] = {}
        self.labels: dict[int, str] = {}

    def write(self, items: list[Item], given: list[Ref], ends: list[Ref], limit: float) -> tuple[
            FleqProgram, dict[int, SourcePlace]]:
        """The program, and the line of the source of each instruction."""
        lines: dict[int, SourcePlace] = {}
        used = [slot for item in items if isinstance(item, Instr) for slot in _slots(item)]
        for slot in dict.fromkeys([*given, *used, *ends]):
            self._declare(slot, self.named.get(slot, ""))
        marked = {id(instruction) for loop in peephole.pointers(items).values() for instruction, _, _ in loop}
        for item in items:
            if isinstance(item, JumpTarget):
                self.p.label(self._label(item))
                continue
            if not isinstance(item, Instr):
                continue
            if id(item) in marked:
                self.p.label(self._label(item))
            lines[self.p.here] = item.line
            self._instruction(item)
        return self.p.program(limit), lines

    def _declare(self, slot: Ref, name: str) -> None:
        name = f"{name}_t" if slot.flipped and name else name or "t"
        const = self.initial.get(slot)
        self.places[slot] = self.p.matrix(self._unused(name), None if const is None else const.value, slot.shape)

    def _unused(self, name: str) -> str:
        """A name that nothing has yet: the same with a number where it is taken."""
        plain = "".join(c for c in name if c.isascii() and (c.isalnum() or c == "_")).lstrip("0123456789") or "v"
        taken, number = plain, 1
        while self.p.unused(taken) != taken or taken in self.p.values:
            number += 1
            taken = f"{plain}{number}"
        return taken

    def _label(self, item: object) -> str:
        return self.labels.setdefault(id(item), f"l{len(self.labels) + 1}")

    def place(self, loc: Loc) -> Place:
        if isinstance(loc.holder, Const):
            found = self.constants.get(loc.holder)
            if found is None:
                single = loc.holder.single if loc.shape == (1, 1) and not loc.part else None
                name = {0.0: "zero", 1.0: "one"}.get(single, "k") if single is not None else "k"
                found = self.constants[loc.holder] = self.p.matrix(self._unused(name), loc.holder.value)
        else:
            found = self.places[loc.holder]
        if loc.pointer is not None:
            return found[loc.pointer.offset]
        return found if loc.column is None else found[loc.column]

    def _instruction(self, item: Instr) -> None:
        goto = None if item.goto is None else self._label(item.goto)
        flag = None if item.flag is None else self.place(item.flag)
        if isinstance(item, PointerMove) and item.place is None:
            self.p.incr_pointer(self._label(item.instruction), item.name, goto=goto, if_leq=flag)
        elif isinstance(item, PointerMove) and item.place is not None:
            self.p.reset_pointer(self._label(item.instruction), item.name, self.place(item.place), goto=goto, if_leq=flag)
        elif item.function is None:
            if goto is not None:
                self.p.goto(goto, if_leq=flag)
        else:
            operands = [self.place(loc) for loc in item.operands]
            target = None if item.target is None else self.place(item.target)
            function: str | Function = self.functions.get(item.function, item.function)
            if item.function == "copy":
                function = "add"
                operands.append(self.place(Loc(Const.of(np.zeros((operands[0].shape.rows, operands[0].shape.columns))))))
            elif item.function == "hadamard" and operands[0].shape.columns > 1:
                function = "entrywise"
            self.p.call(function, *operands, into=target, goto=goto, if_leq=flag)


def _slots(item: Instr) -> list[Ref]:
    found = [*item.reads(), *([item.writes] if item.writes is not None else [])]
    if isinstance(item, PointerMove) and item.place is not None and item.place.slot is not None:
        found.append(item.place.slot)
    return found


