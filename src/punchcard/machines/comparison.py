"""A run beside the plain interpreter: compared at its end, or after every loop."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from punchcard.card.layout import Card
from punchcard.machines.interpreter import Interpreter
from punchcard.machines.result import Report, Result
from punchcard.machines.streams import END_OF_INPUT, Read, Write, writer

if TYPE_CHECKING:
    from punchcard.machines.base import AnyMachine, Machine
    from punchcard.machines.running import Mark

Program = TypeVar("Program")
State = TypeVar("State")
Check: TypeAlias = Literal["end", "lockstep"]
"""When a run is compared: once at its end, or after every loop."""


class Comparison(ABC):
    """Compares one run with the interpreter.

    watches   it must see the card after every loop. It keeps nothing of that card, so the engine need not copy it
    guards    it checks the program's promises by itself
    """

    watches: bool = False
    guards: bool = False

    def watch(self, loop: int, card: Card) -> None:  # noqa: B027, a comparison at the end watches nothing
        """Called after every loop, where it watches."""

    def reading(self, read: Read) -> Read:
        """The input of the run, as the judge lets it through."""
        return read

    def writing(self, write: Write) -> Write:
        """The output of the run, as the judge lets it through."""
        return write

    @property
    def stops(self) -> bool:
        """Whether it has seen enough."""
        return False

    @abstractmethod
    def report(self, result: Result[Any]) -> Report[Any]:
        """What it found, at the end."""

    def saved_state(self) -> dict[str, Any] | None:
        """What it must remember when a run is kept in a file, as plain data."""
        return None


class EndComparison(Comparison):
    """Runs the interpreter as far as the machine came, on the input that the machine read."""

    def __init__(self, machine: AnyMachine, program: object) -> None:
        self._machine, self._program = machine, program

    def report(self, result: Result[Any]) -> Report[Any]:
        written, inputs = bytearray(), iter(self._machine.replayed(result.traffic))
        oracle = self._machine.oracle(self._program, lambda: next(inputs, END_OF_INPUT), written.append)
        oracle.run(result.steps)
        endings = list(_endings(result, oracle))
        if bytes(written) != result.output:
            endings.insert(0, f"the output is {result.output!r}, the interpreter's {bytes(written)!r}")
        found = (*self._machine.differences(self._program, result.raw_card, oracle), *endings)
        return Report(result, not found, found)


class LoopDifferences:
    """Where a card differs from the interpreter, asked after every loop: in all that `Machine.differences` compares.

    One that looks at less after a loop looks at all the rest when the run ends.
    """

    def __init__(self, machine: AnyMachine, program: Any, oracle: Any) -> None:
        self.machine, self.program, self.oracle = machine, program, oracle

    def after_loop(self, card: Card) -> list[str]:
        return self.everywhere(card)

    def at_end(self, card: Card) -> list[str]:
        """What the last look after a loop may have missed."""
        return []

    def everywhere(self, card: Card) -> list[str]:
        return self.machine.differences(self.program, card, self.oracle)


def state_differences(machine: Machine[Program, State], program: Program, found: State, expected: State) -> list[str]:
    """The differences between a state and the interpreter's, which differ, in words: see `Machine.differences`."""
    values, should = (machine.values(program, machine.own(program, state)) for state in (found, expected))
    wrong = [f"{name} is {values[name]}, the interpreter has {should[name]}" for name in values
             if values[name] != should[name]]
    counters = [getattr(state, "program_counter", None) for state in (found, expected)]
    if counters[0] != counters[1]:
        wrong.append(f"the program counter is {counters[0]}, the interpreter's {counters[1]}")
    return wrong or [f"the state is {found}, the interpreter's {expected}"]


class LockstepComparison(Comparison):
    """Follows a run loop by loop, and stops it at the first difference.

    What the machine reads is kept for the interpreter, which executes the instruction a loop later. What one of the two
    writes is kept until the other has written it too: a host may write before the loop of an instruction, or after.
    """

    watches = True

    def __init__(self, machine: AnyMachine, program: object, begin: Mark) -> None:
        self._machine, self._program, self._difference = machine, program, ""
        self._inputs = deque(machine.replayed(begin.traffic))
        self._written, self._expected = deque(begin.traffic.written), deque[int]()  # by one of the two alone
        self._oracle, self._stopped = machine.oracle(program, self._next_input, self._expect), False
        self._differences = machine.loop_differences(program, self._oracle)
        self._oracle.run(machine.steps(begin.loops, ended=begin.ended))
        if begin.loops >= max(1, machine.design.warm_up):  # a run that continues: it may have no loop left to make
            self._compare(begin.loops, begin.raw_card)

    def _next_input(self) -> int:
        return self._inputs.popleft() if self._inputs else END_OF_INPUT

    @property
    def stops(self) -> bool:
        return bool(self._difference)

    def reading(self, read: Read) -> Read:
        def through() -> int:
            value = read()
            self._inputs.append(value)
            return value

        return update_wrapper(through, read, ())

    def writing(self, write: Write) -> Write:
        def through(byte: int) -> None:
            self._written.append(byte)
            self._compare_output()
            write(byte)

        return writer(write).seen_by(through)

    def _expect(self, byte: int) -> None:
        self._expected.append(byte)
        self._compare_output()

    def _compare_output(self) -> None:
        while self._written and self._expected:
            found, expected = self._written.popleft(), self._expected.popleft()
            if found != expected:
                self._note(f"the machine writes {found}, the interpreter {expected}")

    def watch(self, loop: int, card: Card) -> None:
        if self._difference:
            return
        if loop > self._machine.design.warm_up:
            if self._oracle.fault is not None and self._stopped:
                self._note(f"loop {loop}: the machine continues, the interpreter has stopped ({self._oracle.fault})")
                return
            self._stopped = self._oracle.fault is not None  # a machine may need a loop, in which it does nothing, to find it
            self._oracle.step()
        self._compare(loop, card)

    def _compare(self, loop: int, card: Card) -> None:
        for difference in self._differences.after_loop(card)[:1]:
            self._note(f"loop {loop}: {difference}")

    def _note(self, difference: str) -> None:
        self._difference = self._difference or difference

    def report(self, result: Result[Any]) -> Report[Any]:
        for difference in (*_endings(result, self._oracle), *self._differences.at_end(result.raw_card)):
            self._note(difference)
        for who, more in (("machine", self._written), ("interpreter", self._expected)):
            if more:
                self._note(f"the {who} writes {bytes(b & 0xFF for b in more)!r} more")
        return Report(result, not self._difference, (self._difference,) if self._difference else ())


def _endings(result: Result[Any], oracle: Interpreter[Any]) -> Iterator[str]:
    """Where the end of a run is not the interpreter's.

    An interpreter may say at once why the next instruction cannot be executed; a run finds it in the loop of that one, which
    it has not made where it was stopped just before.
    """
    if result.steps != oracle.steps:
        yield f"{result.steps} instructions were executed, the interpreter stops after {oracle.steps}"
    if result.halted != (oracle.halted and oracle.fault is None):
        yield f"halted is {result.halted}, the interpreter's {not result.halted}"
    is_open = result.fault is None and result.reason in ("steps", "interrupted", "stopped")
    if result.fault != oracle.fault and not is_open:
        yield f"the run stops with {result.fault}, the interpreter with {oracle.fault}"
