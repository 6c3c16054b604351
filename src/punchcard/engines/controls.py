"""The controls of a run: when it ends, and what is called between two loops."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np

from punchcard.arguments import checked
from punchcard.card.layout import Card, Layout, Pattern
from punchcard.card.packed import PackedCard
from punchcard.errors import PunchcardError


class OutputBuffer:
    """When its pattern is on the card: takes the number in `rows` of one column and puts `then` there; the run continues.

    It is a port like any other: each call takes one number. An engine that knows it may record the numbers itself, and
    call `take` with many of them: in order, before it calls another port, now and then, and when its run ends.
    """

    def __init__(self, layout: Layout, rows: str, column: int, then: int, take: Callable[[Sequence[int]], None]) -> None:
        layout.check_number(rows, then)
        self.layout, self.rows, self.column, self.then, self.take = layout, rows, column, then, take

    def __call__(self, loop: int, card: Card) -> bool:
        number = self.layout.number_at(card, self.rows, self.column)
        self.layout.put_number_at(card, self.rows, self.column, self.then)
        self.take((number,))
        return True


@dataclass(frozen=True)
class Skip:
    """The answer of a port that knows the cards of the next loops: the engine may skip these loops.

    loops     how many; none of their cards has a pattern at which the run ends
    advance   called with the card and a number of loops, at most `loops`: changes the card as these loops would

    A port must know this from the weights. An engine may still make the loops, as it does when each is watched.
    """

    loops: int
    advance: Callable[[Any, int], None]


class NumbersAhead(ABC):
    """An input whose next numbers are there without waiting, unless it waits for a person."""

    @property
    @abstractmethod
    def position(self) -> int:
        """How many numbers were taken so far, the end not counted."""

    @abstractmethod
    def ahead(self, most: int) -> tuple[Sequence[int], bool] | None:
        """The next numbers, so many at most, and whether the input ends behind them; None if that is unknown.

        They stay where they are.
        """

    @abstractmethod
    def take(self, count: int, ends: int) -> None:
        """So many of them were taken, and then so many times the end."""


@dataclass(frozen=True)
class ServedInput(Skip):
    """The answer of an input buffer: the run continues, and ports with the patterns `instead` need not be asked."""

    instead: tuple[Pattern, ...] = ()


@dataclass(frozen=True)
class InputBuffer:
    """When its pattern is on the card, and all of `also` are: lets `serve` put the next number of an input on the card.

    It is a port like any other. An engine that knows it may do the same itself while `numbers` has some, and tell `numbers`
    what was taken: before it calls a port, now and then, and when its run ends. It leaves the last loop of a run to `serve`,
    which may find that the instruction will not be executed.

    place     rows and a column: where the number goes, times `sign`, in two's complement
    others    numbers that are put at rows of columns with it
    at_end    the number that means the end
    instead   patterns whose ports have nothing to do once it has served
    """

    layout: Layout
    also: tuple[Pattern, ...]
    place: tuple[str, int]
    sign: int
    others: tuple[tuple[str, int, int], ...]
    at_end: int
    numbers: NumbersAhead
    instead: tuple[Pattern, ...]
    serve: Port

    def __call__(self, loop: int, card: Card) -> bool | Skip:
        if not all(bool(self.layout.matches(card, pattern)) for pattern in self.also):
            return True
        return self.serve(loop, card) and ServedInput(0, lambda card, loops: None, self.instead)


HOT_SECONDS = 0.25
"""Time of loops after which compiling their hot paths usually pays: it takes about as long."""
Watch: TypeAlias = Callable[[int, Any], None]
"""Called after every loop with the number of loops made and the card, which it must not change.

A runner that was given a packed card may pass it packed; one that was given a tensor passes tensors.
"""
Port: TypeAlias = Callable[[int, Any], bool | Skip]
"""Called when its pattern is on the card, with the loops made and the card. Returns whether to continue, or a `Skip`.

It may change the card in place, in the rows and regions that a loop may change. A port that reads and writes by calls of the
layout serves tensors and packed cards alike; a packed card is passed only by a runner that was given one.
"""
Returned = TypeVar("Returned")


class NoCopyWatch:
    """A watch that keeps no reference to the card. It is called with the engine's own card; no copy is made."""

    def __init__(self, look: Watch) -> None:
        self.look = look

    def __call__(self, loop: int, card: Card) -> None:
        self.look(loop, card)

    @classmethod
    def like(cls, look: Watch, *watches: Watch) -> Watch:
        """`look`, without copies if none of these watches needs one."""
        return cls(look) if all(isinstance(watch, NoCopyWatch) for watch in watches) else look


def card_for(watch: Watch, card: Card) -> Card:
    """What a watch is called with: the card, or a copy, since the next loop may change the card."""
    if isinstance(watch, NoCopyWatch):
        return card
    if isinstance(card, PackedCard | np.ndarray):
        return card.copy()
    import torch

    return card.clone(memory_format=torch.contiguous_format)


@checked
@dataclass(frozen=True)
class Controls:
    """When a run stops, and which functions are called between its loops. All fields are optional.

        machine.run(program, controls=Controls(watch=lambda loops, card: print(loops)))

    until         a pattern of values on named rows, or several. The run stops after the first loop whose card has one
    ports         functions by pattern: called when the card has the pattern, after `until` was checked
    watch         called after every loop with the number of loops so far and the card; makes fast engines slow
    interrupted   called from time to time without arguments; the run stops when it returns True
    progress      called from time to time with the number of loops so far
    traces        seconds of loops before hot paths are compiled to code of their own; 0: at once. None: never
    """

    until: Pattern | Sequence[Pattern] = ()
    ports: Mapping[Pattern, Port] = field(default_factory=dict)
    watch: Watch | None = None
    interrupted: Callable[[], bool] | None = None
    progress: Callable[[int], None] | None = None
    traces: float | None = HOT_SECONDS

    def __post_init__(self) -> None:
        if self.traces is not None and not self.traces >= 0:
            raise PunchcardError(f"traces={self.traces}: it must be 0 seconds or more, or None for no traces")

    @property
    def patterns(self) -> tuple[Pattern, ...]:
        """The patterns of `until`."""
        return (self.until,) if isinstance(self.until, Pattern) else tuple(self.until)

    def after(self, loops: int) -> Controls:
        """The controls for the rest of a run, after `loops` loops. Functions still get loops counted from the start."""
        return self if loops == 0 else replace(
            self, ports={pattern: count_from(loops, port) for pattern, port in self.ports.items()},
            watch=self.watch and NoCopyWatch.like(count_from(loops, self.watch), self.watch),
            progress=self.progress and count_from(loops, self.progress))

    def of_card(self, ports: Mapping[Pattern, Port] | None, before: int) -> Controls:
        """The controls for one card of a batch: with its own ports; `before` loops of other cards are added to progress."""
        return replace(self, ports=ports or {}, progress=self.progress and count_from(before, self.progress))

    def is_interrupted(self) -> bool:
        """Whether `interrupted` asks to stop now."""
        return self.interrupted is not None and self.interrupted()

    def report(self, loops: int) -> None:
        """Call `progress`, if there is one, with the number of loops so far."""
        if self.progress is not None:
            self.progress(loops)


NO_CONTROLS = Controls()


def count_from(before: int, call: Callable[..., Returned]) -> Callable[..., Returned]:
    """The call with its loops counted from the beginning of the run. An output buffer does not count loops."""
    if isinstance(call, OutputBuffer) or not before:
        return call
    if isinstance(call, InputBuffer):
        return cast(Callable[..., Returned], replace(call, serve=count_from(before, call.serve)))
    return lambda loops, *card: call(before + loops, *card)
