"""What an oracle is: a plain interpreter of an instruction set, with no tensor in it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

State = TypeVar("State")
Final = TypeVar("Final", covariant=True)


class Quick(Protocol[Final]):
    """An interpreter that is only there to be quick: what the engines' speed is measured against."""

    @property
    def state(self) -> Final:
        """What a run is judged by."""

    def run(self, steps: int, /) -> None:
        """Make so many steps from the beginning; a halt stays where it is."""


class Interpreter(ABC, Generic[State]):
    """Executes one instruction at a time. `steps` counts those that were executed; a halt is not counted."""

    steps: int = 0

    @property
    @abstractmethod
    def halted(self) -> bool:
        """Whether no further instruction can be executed."""

    @property
    @abstractmethod
    def state(self) -> State:
        """What a run is judged by, as a machine reads it off its card."""

    @abstractmethod
    def step(self) -> None:
        """Execute the next instruction; once halted, nothing changes."""

    def run(self, max_steps: int | None = None) -> None:
        """Continue until it halts, or until `max_steps` instructions have been executed in all."""
        while not self.halted and (max_steps is None or self.steps < max_steps):
            self.step()

    @property
    def waits(self) -> bool:
        """Whether the next instruction needs a host, for input or output."""
        return False

    @property
    def fault(self) -> object | None:
        """Why it stopped, where it did not halt by itself."""
        return None


class Stepper(Interpreter[State]):
    """An interpreter from one pure function: a state becomes the next, or None once it has halted."""

    def __init__(self, advance: Callable[[State], State | None], begin: State) -> None:
        self._advance, self._state, self._next = advance, begin, advance(begin)

    @property
    def halted(self) -> bool:
        return self._next is None

    @property
    def state(self) -> State:
        return self._state

    def step(self) -> None:
        if self._next is not None:
            self._state, self._next, self.steps = self._next, self._advance(self._next), self.steps + 1
