"""What a run gives: the result, and a report that compares it with the plain interpreter."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar, overload

from punchcard.card.holder import CardHolder
from punchcard.card.layout import Card, Layout
from punchcard.errors import PunchcardError, shortened
from punchcard.formatting import format_value, join_some, plural

if TYPE_CHECKING:
    from matplotlib.figure import Figure

State = TypeVar("State")
Reason: TypeAlias = Literal["halted", "fault", "steps", "interrupted", "stopped"]


class Readout(NamedTuple):
    """What a run shows of its last card: values by name, the next instruction, and whether that is a halt."""

    values: dict[str, Any]
    program_counter: int | None = None
    at_halt: bool = False


@dataclass(frozen=True)
class Result(CardHolder, Generic[State]):
    """The end of a run: the last card, and what the program computed.

    memory            final values by name; `state` is the whole state, `card` the last card as a tensor
    reason            why it ended: "halted"; "fault", with `fault`; "steps", at the limit; "interrupted"; "stopped", by a
                      port or at the first difference from the interpreter
    steps, loops      instructions executed, and loops made; `begun` are the loops before a run was resumed
    engine            the engine that made the loops; `notes` say why a faster one was not used, and what was not checked
    seconds           time of the loops, without waiting for input; `compile_seconds`, time of compiling the weights
    output, errors    the bytes that the program wrote to its output, and to its second stream since it was resumed
    status            the exit status of a program that has halted, or None if the machine has none
    """

    reading: Callable[[], State] = field(repr=False)
    memory: dict[str, Any]
    reason: Reason
    steps: int
    loops: int
    engine: str
    raw_card: Card = field(repr=False)
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    compile_seconds: float = 0.0
    begun: int = 0
    output: bytes = b""
    read: bytes = field(default=b"", repr=False)
    """The bytes that the program has read."""
    fault: Any = None
    program_counter: int | None = None
    """The next instruction, where a machine counts them."""
    status: int | None = None
    errors: bytes = b""
    layout: Layout | None = field(default=None, repr=False, compare=False)
    """The names of the card's rows and columns."""
    names: Callable[[int], str] | None = field(default=None, repr=False, compare=False)
    """What a column is called in this program."""

    @cached_property
    def state(self) -> State:
        """What of the card's content is the program's; read when somebody asks, since a memory may be large."""
        return self.reading()

    @property
    def halted(self) -> bool:
        return self.reason == "halted"

    @property
    def interrupted(self) -> bool:
        return self.reason == "interrupted"

    @property
    def steps_per_second(self) -> float | None:
        """Loops of this run a second, or None where nothing was made or no time has passed."""
        rate = (self.loops - self.begun) / self.seconds if self.loops > self.begun and self.seconds > 0 else math.nan
        return rate if math.isfinite(rate) else None

    def plot(self, *, title: str = "", columns: int = 48, rows: Sequence[str] | None = None) -> Figure:
        """A picture of the last card (see `Machine.plot`)."""
        if self.layout is None:
            raise PunchcardError("this result has no layout, which names its rows: use machine.plot(result.card)")
        from punchcard.view.pictures import card_figure

        return card_figure(self.layout, self.raw_card, names=self.names, title=title or self.summary(), columns=columns,
                           rows=rows)

    def summary(self) -> str:
        """How the run ended, as text."""
        ends = {"halted": "halted after", "fault": "stopped by a fault after", "steps": "not ended after",
                "interrupted": "interrupted after", "stopped": "stopped after"}
        return f"{ends[self.reason]} {plural(self.steps, 'instruction')} in {plural(self.loops, 'loop')}"

    def __repr__(self) -> str:
        parts = [f"{name} {format_value(value)}" for name, value in self.memory.items()]
        values = f"; {join_some(parts)}" if parts else ""
        written = f"; output {shortened(self.output)}" if self.output else ""
        fault = f": {self.fault}" if self.fault is not None else ""
        return f"<Result: {self.summary()} on the {self.engine} engine{fault}{values}{written}>"

    def _repr_html_(self) -> str:
        from punchcard.view.tables import result_html

        return result_html(self)


@dataclass(frozen=True)
class Batch(Sequence[Result[State]], Generic[State]):
    """The ends of runs that were made side by side, in the order in which they were given.

    seconds           what all loops together took; `compile_seconds`, what it took to compile the weights
    threads           how many threads made the loops
    notes             why a faster engine was not used
    """

    results: tuple[Result[State], ...] = field(repr=False)
    engine: str
    seconds: float = 0.0
    compile_seconds: float = 0.0
    threads: int = 1
    notes: tuple[str, ...] = ()

    @overload
    def __getitem__(self, which: int) -> Result[State]: ...

    @overload
    def __getitem__(self, which: slice) -> tuple[Result[State], ...]: ...

    def __getitem__(self, which: int | slice) -> Result[State] | tuple[Result[State], ...]:
        return self.results[which]

    def __len__(self) -> int:
        return len(self.results)

    def __repr__(self) -> str:
        ends = Counter(result.reason for result in self.results)
        return (f"<Batch of {plural(len(self), 'run')} ({', '.join(f'{n} {reason}' for reason, n in ends.items())}): "
                f"{plural(self.steps, 'instruction')} on the {self.engine} engine, {plural(self.threads, 'thread')}>")

    @property
    def steps(self) -> int:
        """Instructions executed by all together."""
        return sum(result.steps for result in self.results)

    @property
    def halted(self) -> bool:
        """Whether every program has halted."""
        return all(result.halted for result in self.results)

    @property
    def steps_per_second(self) -> float | None:
        """Instructions of all together a second, or None where nothing was made or no time has passed."""
        return self.steps / self.seconds if self.steps and self.seconds > 0 else None


@dataclass(frozen=True)
class Report(Generic[State]):
    """A run, and whether the plain interpreter agrees: True, False or None if they were not compared.

    A machine that computes with real numbers has errors, relative to its range: of single instructions, each against
    the exact function of what was on the card, with the largest bound among them and where the error was the largest; and
    of the final memory against the interpreter's whole run.
    """

    result: Result[State]
    agrees: bool | None = None
    differences: tuple[str, ...] = ()
    max_step_error: float | None = None
    max_error: float | None = None
    bound: float | None = None
    worst: str = ""
    range: float | None = None
    """What errors are relative to."""

    @property
    def ok(self) -> bool:
        return self.result.halted and self.agrees is not False

    @property
    def why(self) -> str:
        """Why it does not agree, in one line."""
        return "; ".join(self.differences)

    def summary(self) -> str:
        """Whether the interpreter agrees, as text."""
        if self.agrees is None:
            return "not compared with the interpreter"
        if not self.agrees:
            return f"differs from the interpreter: {self.why}"
        error = f", largest error of an instruction {self.max_step_error:.2g}" if self.max_step_error is not None else ""
        return f"agrees with the interpreter{error}"

    def __repr__(self) -> str:
        return f"<Report: {self.summary()}; {self.result!r}>"

    def _repr_html_(self) -> str:
        from punchcard.view.tables import report_html

        return report_html(self)
