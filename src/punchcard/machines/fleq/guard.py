"""What a FLEQ program promises, checked: values within the range, integer flags, pointers inside the memory.

The machine computes on regardless, since a transformer has no errors; so the host looks at the card and stops a run
whose result would be garbage, naming the instruction. `Guard` looks after every loop. `PartGuard` looks between the parts
of a run that a fast engine makes without entering Python after every loop.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from punchcard.card.layout import Card
from punchcard.errors import EncodingError, ProgramError, PunchcardError
from punchcard.machines.fleq.designs.base import FleqDesign, FleqSizes
from punchcard.machines.fleq.isa import FLAG_TOLERANCE, Array, Call, FleqProgram, FleqState, Step
from punchcard.machines.running import Mark

FEW_LOOPS = 256
"""A part as short as this is looked at loop by loop; so is a run, where operands have domains."""
MOST_TOLERANCE = 3 / 64
"""The compact machine and that of three layers take a flag that is off by 1/4, the paper's one that is off by 1/16, less
the grid that flags are rounded to (`designs.base.flag_grid`), which is 1/64 at most."""


def unexplained_error(what: str, engine: str) -> PunchcardError:
    """The error of a run that went wrong, where the guard finds nothing wrong in any loop of it."""
    return PunchcardError(f"{what}, but loop by loop no instruction breaks a promise: engine {engine!r} gives another card "
                          "when it is watched")


class Guard:
    """Follows a run; `before` is the state that the last loop began with, `pointers` those of its instruction.

    A value may be beyond the range by the largest error of the machine's functions, since any of them may have made it, and
    by the rounding of its numbers. An operand may be beyond its function's domain by that function's own error: it changes
    the result no more than the block does.
    """

    def __init__(self, design: FleqDesign, program: FleqProgram, card: Card) -> None:
        self.design, self.program, scale = design, program, design.scale
        self.bounds = {block.name: block.bound(scale) for block in design.blocks}
        self.rounding = 4 * scale.unit * scale.range
        self.slack = self.rounding + max(self.bounds.values())
        self.punched = card
        self.state = self.before = FleqState(design.memory(card), design.counter(card))
        self.pointers: dict[str, int] = {}
        self.loop = 0
        self._check_counter(self.state, "the card")
        self._next = design.instruction(card, self.state.program_counter)

    def watch(self, loop: int, card: Card) -> None:
        """Check one loop. Nothing of the card is kept but copies, so an engine may pass its own."""
        self.loop = loop
        self.before, memory = self.state, self.design.memory(card)
        number = self.before.program_counter
        instruction = self.program.instructions[number]
        if isinstance(instruction, Step):
            self.pointers = self.design.pointers(self._next)
            if isinstance(instruction.action, Call):
                self._check_operands(instruction.action, number)
            self._check_range(memory, number)
            if instruction.branch is not None and instruction.branch.flag is not None:
                self._check_flag(memory, number)
        # Only now: a flag that is not an integer leaves no program counter that could be read.
        self.state = FleqState(memory, self.design.counter(card))
        self._check_counter(self.state, self._where(number))
        self._next = self.design.instruction(card, self.state.program_counter)

    def _where(self, number: int) -> str:
        """Which instruction, by number and label, and in which loop."""
        label = next((f" ({name})" for name, target in self.program.labels if target == number), "")
        return f"instruction {number}{label} in loop {self.loop}"

    def _check_operands(self, call: Call, number: int) -> None:
        for name, shape in call.shapes.items():
            self._check_inside(name, shape.columns, number)
        function = self.program.functions[call.function]
        operands, domain = self.operands(call), function.domain
        if domain is not None:
            operand = operands[0]
            slack = self.rounding + self.bounds[call.function]
            least, below = function.least, 0.0 if function.steep else slack
            wrong = ~((domain[0] - below <= operand) & (operand <= domain[1] + slack) & (least - slack <= np.abs(operand)))
            if wrong.any():
                size = f", of size {least:g} or more" if least else ""
                raise ProgramError(f"{self._where(number)}: {call.function} of {float(operand[wrong][0]):g}: its block is "
                                   f"built for {domain[0]:g} to {domain[1]:g}{size}")
        if function.refuse is not None and (why := function.refuse(*operands)) is not None:
            raise ProgramError(f"{self._where(number)}: {call.function}: {why}")

    def operands(self, call: Call) -> list[Array]:
        """What was in the memory where the pointers of a call lead, before the loop."""
        return [self.before.memory[: shape.rows, self.pointers[name] : self.pointers[name] + shape.columns]
                for name, shape in call.operand_shapes.items()]

    def _check_inside(self, field: str, columns: int, number: int) -> None:
        address = self.pointers[field]
        if not 0 <= address <= self.program.columns - columns:
            raise ProgramError(f"{self._where(number)}: pointer {field} is {address}, outside the program's "
                               f"{self.program.columns} memory columns")

    def _check_flag(self, memory: Array, number: int) -> None:
        self._check_inside("flag", 1, number)
        column = self.pointers["flag"]
        value = float(memory[0, column])
        if abs(value - round(value)) > min(FLAG_TOLERANCE + self.slack, MOST_TOLERANCE):
            raise ProgramError(f"{self._where(number)}: the flag {self.program.column_name(column)!r} is {value:g}: "
                               "a flag must be an integer")

    def _check_counter(self, state: FleqState, where: str) -> None:
        if not 0 <= state.program_counter < len(self.program.instructions):
            raise ProgramError(f"{where}: jumps to instruction {state.program_counter}, the program has "
                               f"{len(self.program.instructions)}")

    def _check_range(self, memory: Array, number: int) -> None:
        found = self.beyond(memory)
        if found is not None:
            raise ProgramError(f"{self._where(number)}: {found}: declare a larger one with .range")

    def beyond(self, memory: Array) -> str | None:
        """The first variable that is not within the range, in words."""
        inside = memory[:, : self.program.columns]
        beyond = ~(np.abs(inside) <= self.design.range + self.slack)
        if not beyond.any():
            return None
        column = int(np.argmax(beyond.any(axis=0)))
        value = float(inside[:, column][beyond[:, column]][0])
        return f"{self.program.column_name(column)!r} became {value:g}, beyond the declared range ±{self.design.range:g}"


def limited_functions(program: FleqProgram) -> dict[str, tuple[float, float]]:
    """The functions that a program calls whose operands must lie in a domain, with their domains."""
    used = (program.functions[name] for name in program.used_functions() if name in program.functions)
    return {function.name: function.domain for function in used if function.domain is not None}


def unchecked(program: FleqProgram, loops: int) -> tuple[str, ...]:
    """What was not checked in so many loops without a watch, in words."""
    if loops <= FEW_LOOPS:
        return ()
    return tuple(f"operands of {name} were not checked against its domain [{low:g}, {high:g}], outside which its results "
                 "mean nothing: run with --check" for name, (low, high) in limited_functions(program).items())


class PartGuard:
    """Looks at the card between the parts of a run, for what a broken promise leaves behind:

    a value beyond the range; a program counter outside the program; anything changed that no program may
    change, which is every column but the variables, and every part of an instruction but the pointers that the program
    itself changes. If there is something, the place where it appears is searched for by halving the part, and the
    loops around it are made again under a `Guard`, to name the instruction. So an error is always one that `Guard` finds
    as well. The reverse does not hold: what leaves no trace at the end of a part is not seen (a value that left the
    range and was overwritten, an operand read from outside the variables or beyond its function's domain, a wrong turn at a
    flag that is not an integer). A run that must be looked at after every loop is watched. A run of few loops, of a program
    whose operands have domains, is made again under a `Guard` in any case; of a longer one `unchecked` says what was not.
    """

    def __init__(self, guard: Guard, begin: Mark, again: Callable[[Mark, int, bool], Mark]) -> None:
        """`guard` is at the punched card; `again` makes the loops after a mark up to a number, under a `Guard` or not."""
        self.guard, self.good, self.again = guard, begin, again
        self.short = begin.loops + FEW_LOOPS if limited_functions(guard.program) else 0
        self.expected = self._outside(guard.punched)
        self.pointers = np.zeros_like(self.expected, dtype=bool)
        code = self.pointers[:, -guard.design.sizes.instructions :]
        for update in guard.program.pointer_updates():
            code[guard.design.sizes.field_rows(update.field), update.instruction] = True

    def look(self, mark: Mark) -> None:
        """Check the card at a mark."""
        found = self._broken(mark.raw_card)
        if found is None:
            if mark.loops <= self.short:
                self.again(replace(self.good, engine=mark.engine), mark.loops, True)
            self.good = mark
            return
        first = replace(self.good, engine=mark.engine)
        good, bad = first, mark
        while bad.loops - good.loops > FEW_LOOPS:
            middle = self.again(good, (good.loops + bad.loops) // 2, False)
            good, bad = (good, middle) if self._broken(middle.raw_card) is not None else (middle, bad)
        for start, end in ((good, bad), (first, mark)):  # the trace may be younger than what left it
            self.again(start, end.loops, True)
        raise unexplained_error(f"in loops {good.loops + 1} to {bad.loops} {found}", mark.engine)

    def _broken(self, card: Card) -> str | None:
        """What is wrong with a card, in words."""
        design, program = self.guard.design, self.guard.program
        try:
            counter = design.counter(card)
        except EncodingError as error:
            return f"the program counter is not a number: {error}"
        if not 0 <= counter < len(program.instructions):
            return f"the program counter became {counter}"
        outside = self._outside(card)
        kept = (outside == self.expected) | (self.pointers & (np.abs(np.abs(outside) - 1) < 0.25))
        if not bool(kept.all()):
            return "a column that the program may not change was changed"
        return self.guard.beyond(design.memory(card))

    def _outside(self, card: Card) -> Array:
        """All columns but the scratchpad's and the variables, whole; the instructions are the last."""
        zero, unit, memory, code = (self.guard.design.contents(card, region) for region in FleqSizes.OUTSIDE)
        return np.concatenate([zero, unit, memory[:, self.guard.program.columns :], code], axis=1)
