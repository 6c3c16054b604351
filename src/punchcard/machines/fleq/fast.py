"""FLEQ in NumPy with every instruction decoded beforehand: what the engines' speed is measured against.

An instruction becomes a closure over views of the memory, with its NumPy call chosen and its result written in place; what
is left at run time is the arithmetic and NumPy's own price of a call. Nothing is checked. `oracle` is the
interpreter to read; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import repeat
from typing import TypeAlias

import numpy as np

from punchcard.machines.fleq.functions import Shape
from punchcard.machines.fleq.isa import (
    Array,
    Branch,
    Call,
    Field,
    FleqProgram,
    FleqState,
    Instruction,
    PointerUpdate,
    Step,
    pointers,
)

Act: TypeAlias = Callable[[], object]
IN_PLACE: dict[str, Callable[[Array, Array, Array], object]] = {
    "add": np.add, "sub": np.subtract, "hadamard": np.multiply,
}


class DecodedFleq:
    """A program ready to run. Memory is kept column by column, a row of the array each."""

    def __init__(self, program: FleqProgram) -> None:
        self.program = program
        self.columns = np.ascontiguousarray(program.initial_memory().T)
        self.counter = 0
        updates = program.pointer_updates()
        self._changing = {update.instruction for update in updates}
        # Rows below a result are 0 already, unless a pointer can lead to a taller column.
        self._pads = any(update.field == "c" for update in updates)
        self._pointers: list[dict[Field, int]] = [pointers(i) for i in program.instructions]
        self._views = [self._look(number) for number in range(len(program.instructions))]
        self.code = [self._decode(instruction, number) for number, instruction in enumerate(program.instructions)]

    @property
    def memory(self) -> Array:
        """The memory, rows by columns."""
        return self.columns.T

    @property
    def state(self) -> FleqState:
        return FleqState(self.memory, self.counter)

    def run(self, steps: int) -> None:
        """Make so many steps; a halt stays where it is."""
        code, counter = self.code, self.counter
        for _ in repeat(None, steps):
            counter = code[counter]()
        self.counter = counter

    def _shapes(self, number: int) -> dict[Field, Shape]:
        """The shapes of an instruction's operands and result, if it is a call."""
        action = getattr(self.program.instructions[number], "action", None)
        return action.shapes if isinstance(action, Call) else {}

    def _look(self, number: int) -> list[Array]:
        """The views of an instruction's operands and result."""
        where = self._pointers[number]
        return [self.columns[where[name] : where[name] + shape.columns, : shape.rows]
                for name, shape in self._shapes(number).items()]

    def _decode(self, instruction: Instruction, number: int) -> Callable[[], int]:
        if not isinstance(instruction, Step):
            return lambda: number
        act: Act | None = None
        if isinstance(instruction.action, Call):
            act = self._padded(self._call(instruction.action, number), instruction.action, number)
        elif isinstance(instruction.action, PointerUpdate):
            act = self._update(instruction.action)
        return self._branching(act, instruction.branch, number)

    def _call(self, call: Call, number: int) -> Act:
        """The call on views that stay, or on a list of views that pointer functions renew."""
        views, apply = self._views[number], self._apply(call)
        return (lambda: apply(*views)) if number in self._changing else partial(apply, *views)

    def _apply(self, call: Call) -> Callable[..., object]:
        """A function of views, which are transposed: a^T b, transposed, is b^T a."""
        name = call.function
        if name in IN_PLACE:
            return IN_PLACE[name]
        if name == "mul":
            whole = call.c_shape.rows == self.columns.shape[1] or call.c_shape.columns == 1
            multiply = np.dot if whole else np.matmul  # dot is quicker, and wants a result without gaps
            return lambda a, b, c: multiply(b, a.T, c)
        if name == "transpose":
            return lambda a, c: np.copyto(c, a.T)
        if name == "percentage":
            return lambda a, c: np.multiply(a, 0.01, c)
        reference = self.program.functions[name].reference
        if call.b_shape is None:
            return lambda a, c: np.copyto(c, reference(a.T).T)
        return lambda a, b, c: np.copyto(c, reference(a.T, b.T).T)

    def _padded(self, act: Act, call: Call, number: int) -> Act:
        if not self._pads:
            return act
        where, rows, width = self._pointers[number], call.c_shape.rows, call.c_shape.columns

        def padded() -> None:
            act()
            self.columns[where["c"] : where["c"] + width, rows:] = 0.0

        return padded

    def _update(self, update: PointerUpdate) -> Act:
        where, field, number, value = self._pointers[update.instruction], update.field, update.instruction, update.value
        shapes = self._shapes(number)
        if field not in shapes:  # flag and p are looked up when they are used
            return lambda: where.__setitem__(field, where[field] + 1 if value is None else value)
        place, rows, width = list(shapes).index(field), shapes[field].rows, shapes[field].columns
        views, columns = self._views[number], self.columns

        def change() -> None:
            start = where[field] + 1 if value is None else value
            where[field] = start
            views[place] = columns[start : start + width, :rows]

        return change

    def _branching(self, act: Act | None, branch: Branch | None, number: int) -> Callable[[], int]:
        """The number of the next instruction, after the act if there is one."""
        after, act = number + 1, act or (lambda: None)
        if branch is None:
            def onward() -> int:
                act()
                return after

            return onward
        item, rows, where = self.columns.item, self.columns.shape[1], self._pointers[number]

        def branching() -> int:
            act()
            return where["p"] if "flag" not in where or item(where["flag"] * rows) < 0.5 else after

        return branching
