"""Clean and corrupt cards of a machine: two valid cards between two loops, which differ in one way.

    data, pointer, instruction   the program is changed in one way: see `machines/variation.py`
    position                     the same program after another number of loops

Programs are random, or a given one with several first values. Each card comes from a run that agrees with the interpreter
after every loop, and so does the card after the next loop, which a method looks at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from punchcard.card.formats import AnyArray, as_array
from punchcard.errors import CircuitError, ProgramError, PunchcardError
from punchcard.machines.base import AnyMachine
from punchcard.machines.streams import reader
from punchcard.machines.variation import DATA, variation_of

if TYPE_CHECKING:
    from torch import Tensor

POSITION = "position"
MOST_LOOPS = 6
"""How far into a run a card is taken, of random programs."""
TRIES = 40
"""How often in a row something of a kind is looked for."""
CLEAN_PROGRAMS = 8
"""Of a given program: with how many first values clean runs are made."""


@dataclass(frozen=True)
class CardPair:
    """Two cards and their ends after one more loop. `about` says what is other in the corrupt run, and when."""

    kind: str
    clean: AnyArray
    corrupt: AnyArray
    clean_end: AnyArray
    corrupt_end: AnyArray
    about: str = ""


class LockstepRun:
    """A run, loop by loop beside the interpreter, until it ends or is wrong."""

    def __init__(self, machine: AnyMachine, program: object, loops: int) -> None:
        self.program = program
        self.cards: list[AnyArray] = []
        """After the loops that fetch the first instruction, and after each one more."""
        self.states: list[Any] = []
        """The interpreter's."""
        import torch

        oracle = machine.oracle(program, reader(b""), lambda byte: None)
        card = machine.punch(program)
        with torch.no_grad():
            for _ in range(machine.design.warm_up):
                card = machine.model(card)
            self._keep(card, oracle.state)
            for _ in range(loops):
                if oracle.halted or oracle.fault is not None or oracle.waits:
                    return
                oracle.step()
                if oracle.fault is not None:
                    return
                card = machine.model(card)
                if not machine.near(program, machine.read(card), oracle.state):
                    raise CircuitError(f"{machine.title()}: a run differs from the interpreter")
                self._keep(card, oracle.state)

    def _keep(self, card: Tensor, state: object) -> None:
        self.cards.append(as_array(card).astype(np.float64))
        self.states.append(state)


Made = TypeVar("Made")


def collected(kinds: Sequence[str], count: int, make: Callable[[str], Made | None], *, exact: bool) -> list[Made]:
    """What is made, kind by kind in turns, until there are so many, or no kind gives more in so many tries.

    `make` returns None where it finds nothing. A program that is refused counts as that. So does a run that differs from the
    interpreter, unless the machine is exact: real numbers may be out of a function's domain.
    """
    found: list[Made] = []
    failed, turn = dict.fromkeys(kinds, 0), 0
    while len(found) < count and failed:
        kind = list(failed)[turn % len(failed)]
        try:
            made = make(kind)
        except PunchcardError as error:
            if exact and isinstance(error, CircuitError):
                raise
            made = None
        if made is not None:
            found.append(made)
            failed[kind], turn = 0, turn + 1
        elif failed[kind] + 1 < TRIES:
            failed[kind] += 1
        else:
            del failed[kind]
    return found


def _counter(state: object) -> int | None:
    """Which instruction is next, of machines that have a program counter."""
    return getattr(state, "program_counter", None)


class PairSource:
    """Makes pairs for a machine: of random programs or, where one is given, of that with other first values.

    loops   how far into a run a card is taken
    """

    def __init__(self, machine: AnyMachine, seed: int, program: Any = None, loops: int = MOST_LOOPS) -> None:
        self.machine, self.loops, self.generator = machine, loops, np.random.default_rng(seed)
        self.variation = variation_of(machine, self.generator)
        self.kinds = (*self.variation.kinds, POSITION)
        self.given = [] if program is None else [LockstepRun(machine, program, loops + 1)]

    def pairs(self, count: int) -> list[CardPair]:
        """So many pairs, no two of them the same, and as many of each kind as there are. Fewer where no more are found."""
        made = set[tuple[bytes, bytes]]()

        def make(kind: str) -> CardPair | None:
            pair = self._pair(kind)
            if pair is None or (key := (pair.clean.tobytes(), pair.corrupt.tobytes())) in made:
                return None
            made.add(key)
            return pair

        found = collected(self.kinds, count, make, exact=self.machine.needed_bits > 0)
        if not found:
            raise ProgramError(f"{self.machine.title()}: the program makes no two cards that differ in one way and run on: "
                               "use one that executes two instructions or more")
        return found

    def _pair(self, kind: str) -> CardPair | None:
        clean = self._clean()
        places = len(clean.cards) - 1
        if places < 1 or (kind == POSITION and places < 2):
            return None
        at = int(self.generator.integers(places))
        corrupt, place, about = clean, at, ""
        if kind == POSITION:
            place = int((at + 1 + self.generator.integers(places - 1)) % places)
            about = f"after {place} loops, not {at}"
        else:
            changed = self._changed(clean, kind, at, at)
            if changed is None:
                return None
            corrupt, about = changed
            if at < len(corrupt.states) and _counter(clean.states[at]) != _counter(corrupt.states[at]):
                return None  # another instruction comes: that is a pair by position
        if place + 1 >= len(corrupt.cards) or np.array_equal(clean.cards[at], corrupt.cards[place]):
            return None
        return CardPair(kind, clean.cards[at], corrupt.cards[place], clean.cards[at + 1], corrupt.cards[place + 1], about)

    def _changed(self, clean: LockstepRun, kind: str, at: int, last: int) -> tuple[LockstepRun, str] | None:
        """A run with a change that matters for what is done after `at` loops, made as far as after one more than `last`."""
        other = self.variation.changed(clean.program, kind, clean.states[at])
        if other is None:
            return None
        self.machine.check_fits(other.program)
        return LockstepRun(self.machine, other.program, last + 1), f"{other.about}; after {at} loops"

    def _clean(self) -> LockstepRun:
        """A run of a random program, or of the given one, half of the time with its own first values."""
        if not self.given:
            program = self.variation.random()
            if program is None:
                raise ProgramError(f"a {self.machine.kind.name} machine has no random programs: give one")
            return LockstepRun(self.machine, program, self.loops + 1)
        number = int(self.generator.integers(2 * CLEAN_PROGRAMS))
        if number < len(self.given):
            return self.given[number]
        if number < CLEAN_PROGRAMS:
            first = self.given[0]
            other = self._changed(first, DATA, int(self.generator.integers(len(first.cards))), self.loops)
            if other is not None:
                self.given.append(other[0])
                return self.given[-1]
        return self.given[0]
