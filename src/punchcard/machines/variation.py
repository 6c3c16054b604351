"""Programs that differ in one way, for pairs of cards that show what a machine does with it.

    data           another value that the next instruction uses
    pointer        another address in the next instruction
    instruction    another instruction in its place, or another target of its branch

A kind of machine names its class as `Kind(variation=...)`. Without one, programs are changed by `with_values`, if they have
that. What comes out may be a program that ends in a fault: the caller looks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np

from punchcard.errors import ProgramError
from punchcard.lazy import import_name

if TYPE_CHECKING:
    from punchcard.machines.base import AnyMachine

DATA, POINTER, INSTRUCTION = "data", "pointer", "instruction"
TRIES = 16


class ChangedProgram(NamedTuple):
    """A program after a change of a kind; `about` says what was changed: "a: 7 -> 5"."""

    program: Any
    kind: str
    about: str


class Variation(ABC):
    """Random programs for a machine, and programs that differ from a given one in one way."""

    kinds: ClassVar[tuple[str, ...]] = (DATA, POINTER, INSTRUCTION)

    def __init__(self, machine: AnyMachine, generator: np.random.Generator) -> None:
        self.machine, self.generator = machine, generator

    def random(self) -> Any:
        """A random program, or None if they are not made for this kind."""
        return None

    @abstractmethod
    def changed(self, program: Any, kind: str, state: Any) -> ChangedProgram | None:
        """The program after a change that matters for the instruction that is next in a state, or None."""

    def below(self, high: int) -> int:
        """A number from 0 on."""
        return int(self.generator.integers(high))

    def pick(self, some: Any) -> Any:
        """One of these."""
        return some[self.below(len(some))]


@runtime_checkable
class HasValues(Protocol):
    """A program that can be given other first values by name."""

    def with_values(self, values: Mapping[str, object]) -> object:
        """The same program with these values."""
        ...


def require_values(program: object, use: str) -> HasValues:
    """The program, if it has named values that can be changed. `use` is what they are needed for."""
    if not isinstance(program, HasValues):
        raise ProgramError(f"{use}: a {type(program).__name__} has no values by name that could be changed")
    return program


class ValueVariation(Variation):
    """Of any kind whose programs have `with_values`: other first values."""

    kinds = (DATA,)

    def changed(self, program: Any, kind: str, state: Any) -> ChangedProgram | None:
        named = require_values(program, "pairs of programs")
        values = dict(self.machine.readout(program, self.machine.pack(program)).values)
        known = {name: value for name, value in values.items() if isinstance(value, int | float | np.number | np.ndarray)}
        if not known:
            return None
        name = self.pick(list(known))
        value = self._other(known[name])
        return ChangedProgram(named.with_values({name: value}), kind, f"{name}: {known[name]} -> {value}")

    def _other(self, value: Any) -> Any:
        """An integer that is a little larger or smaller, or an array with one such entry."""
        step = self.pick((-3, -2, -1, 1, 2, 3))
        if isinstance(value, int | np.integer):
            return int(value) + step
        entries = np.array(value, dtype=np.float64)
        place = tuple(self.below(size) for size in entries.shape)
        entries[place] += np.sign(step) if float(entries[place]).is_integer() else 0.25 * entries[place]
        return entries


def variation_of(machine: AnyMachine, generator: np.random.Generator) -> Variation:
    """The variation of a machine's kind."""
    named = machine.kind.variation
    made: type[Variation] = import_name(named) if isinstance(named, str) and named else named or ValueVariation
    return made(machine, generator)
