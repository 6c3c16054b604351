"""What a run gives: the result, and a report that compares it with the plain interpreter."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar, overload

from punchcard.card.layout import Card, CardHolder, Layout
from punchcard.engines.base import TraceReport
from punchcard.errors import PunchcardError, printable, shortened
from punchcard.formatting import format_value, join_some, plural
from punchcard.machines.streams import Traffic

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from punchcard.machines.base import AnyMachine

LOOPS_FOR_A_RATE = 2000
"""Of a shorter run, steps a second are the time of starting."""
State = TypeVar("State")
Reason: TypeAlias = Literal["halted", "reboot", "fault", "steps", "interrupted", "stopped"]


class Readout(NamedTuple):
    """What a run shows of its last card: values by name, the next instruction, and whether that is a halt."""

    values: dict[str, Any]
    program_counter: int | None = None
    at_halt: bool = False


@dataclass(frozen=True)
class Result(CardHolder, Generic[State]):
    """The end of a run: the last card, and what the program computed.

    memory            final values by name
    state             the program's whole final state
    card              the last card, as a tensor
    reason            why the run ended: "halted"; "reboot": it asks for a new start; "fault" (see `fault`); "steps": at the
                      limit `max_steps`; "interrupted"; "stopped": by a port, or at the first difference from the interpreter
    steps, loops      how many instructions were executed, and how often the model was applied
    begun             loops made before the run was resumed, default: 0
    engine            the engine that was used
    notes             why a faster engine was not used, and what was not checked
    seconds           time of the loops, without waiting for input
    compile_seconds   time for compiling the weights
    output            the bytes that the program wrote to standard output
    errors            the bytes that it wrote to standard error; of a resumed run, only those written since
    status            the exit status of the program, or None if the machine has none
    traces            what traces did: see `engines.base.TraceReport`. None if the engine has none, or they were off
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
    traffic: Traffic = field(default_factory=Traffic, repr=False, compare=False)
    """These, and what else a host remembers of them."""
    fault: Any = None
    program_counter: int | None = None
    """The next instruction, where a machine counts them."""
    status: int | None = None
    errors: bytes = b""
    traces: TraceReport | None = field(default=None, repr=False, compare=False)
    layout: Layout | None = field(default=None, repr=False, compare=False)
    """The names of the card's rows and columns."""
    names: Callable[[int], str] | None = field(default=None, repr=False, compare=False)
    """What a column is called in this program."""

    @cached_property
    def state(self) -> State:
        """The program's part of the card, as values. Read on first use, since a memory may be large."""
        return self.reading()

    @property
    def halted(self) -> bool:
        """Whether the program reached its halt, or its own request for a new start."""
        return self.reason in ("halted", "reboot")

    @property
    def interrupted(self) -> bool:
        """Whether the run was interrupted from outside."""
        return self.reason == "interrupted"

    @property
    def steps_per_second(self) -> float | None:
        """Loops per second, without those before a resume. None if there were no loops, or no time was measured."""
        rate = (self.loops - self.begun) / self.seconds if self.loops > self.begun and self.seconds > 0 else math.nan
        return rate if math.isfinite(rate) else None

    def plot(self, *, title: str = "", columns: int = 48, rows: Sequence[str] | None = None) -> Figure:
        """A picture of the last card (see `Machine.plot`)."""
        if self.layout is None:
            raise PunchcardError("this result has no layout, which names its rows: use machine.plot(result.card)")
        from punchcard.viewer.pictures import card_figure

        return card_figure(self.layout, self.raw_card, names=self.names, title=title or self.summary(), columns=columns,
                           rows=rows)

    def summary(self) -> str:
        """One line that says how the run ended."""
        ends = {"halted": "halted", "reboot": "asked for a new start", "fault": "stopped by a fault", "steps": "not ended",
                "interrupted": "interrupted", "stopped": "stopped"}
        return f"{ends[self.reason]} after {plural(self.steps, 'instruction')} in {plural(self.loops, 'loop')}"

    def __repr__(self) -> str:
        parts = [f"{name} {format_value(value)}" for name, value in self.memory.items()]
        values = f"; {join_some(parts)}" if parts else ""
        written = f"; output {shortened(self.output)}" if self.output else ""
        fault = f": {self.fault}" if self.fault is not None else ""
        return printable(f"<Result: {self.summary()} on the {self.engine} engine{fault}{values}{written}>")

    def _repr_html_(self) -> str:
        from punchcard.viewer.tables import result_html

        return result_html(self)


@dataclass(frozen=True)
class Batch(Sequence[Result[State]], Generic[State]):
    """The results of a batch of runs, in the order of the programs. A sequence of `Result`.

    seconds           time of all loops together
    compile_seconds   time for compiling the weights
    threads           how many threads were used
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
        """Instructions executed by all programs together."""
        return sum(result.steps for result in self.results)

    @property
    def halted(self) -> bool:
        """Whether every program has halted."""
        return all(result.halted for result in self.results)

    @property
    def steps_per_second(self) -> float | None:
        """Instructions of all programs per second. None if there were none, or no time was measured."""
        return self.steps / self.seconds if self.steps and self.seconds > 0 else None


@dataclass(frozen=True)
class Report(Generic[State]):
    """The result of a run, and how it compares with the plain interpreter.

    result           the `Result` of the run
    agrees           whether the interpreter agrees, or None if they were not compared
    differences      what differs, in words

    Machines that compute with real numbers have errors. These are relative to `range`, and None for other machines:

    max_step_error   the largest error of an instruction: its result compared with the exact function of its operands
    bound            the largest error bound of an instruction
    worst            the instruction with the largest error
    max_error        the largest difference of the final memory from the interpreter's
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
        """Whether the program halted, and the interpreter agrees or was not asked."""
        return self.result.halted and self.agrees is not False

    @property
    def why(self) -> str:
        """The differences from the interpreter, in one line."""
        return "; ".join(self.differences)

    def summary(self) -> str:
        """One line that says whether the interpreter agrees."""
        if self.agrees is None:
            return "not compared with the interpreter"
        if not self.agrees:
            return f"differs from the interpreter: {self.why}"
        error = f", largest error of an instruction {self.max_step_error:.2g}" if self.max_step_error is not None else ""
        return f"agrees with the interpreter{error}"

    def rate(self) -> float | None:
        """Steps a second, or None for a short run, and for one that compares every instruction."""
        enough = self.result.loops - self.result.begun >= LOOPS_FOR_A_RATE
        return self.result.steps_per_second if enough and self.bound is None else None

    def lines(self, machine: AnyMachine, *, shows_rate: bool = True) -> Iterator[str]:
        """How the run ended, what ran it, and whether the interpreter agrees, line by line.

        `shows_rate`: False for a run that was compared, or traced, after every loop.
        """
        result, layout, rate = self.result, machine.layout, self.rate() if shows_rate else None
        ending = {"halted": "halted", "interrupted": "interrupted"}.get(result.reason, "stopped without halting")
        yield (f"{ending} after {plural(result.steps, 'instruction')} in {plural(result.loops, 'loop')} of a transformer "
               f"with {plural(len(machine.weights.layers), 'layer')}, {layout.width} rows and {layout.columns} columns")
        speed = f", {rate:,.0f} steps a second" if rate is not None else ""
        compiling = f", compiled in {result.compile_seconds:.2f} s" if result.compile_seconds else ""
        yield f"engine {result.engine}{speed}{compiling}" + f", resumed after {result.begun:,} loops" * bool(result.begun)
        yield from (f"note: {note}" for note in result.notes)
        if self.agrees is None:
            yield "not compared with the interpreter"
        elif self.bound is None:
            yield f"the transformer {'agrees' if self.agrees else 'DISAGREES'} with the interpreter"
        else:
            yield (f"largest error of an instruction {self.max_step_error:.1e} ({self.worst or 'none'}), bound "
                   f"{self.bound:.1e}; of the final memory against the interpreter {self.max_error:.1e} "
                   f"(relative to the range {self.range:g})")
            yield "every instruction is within its bound" if self.agrees else f"DISAGREES: {self.why}"

    def __repr__(self) -> str:
        return f"<Report: {self.summary()}; {self.result!r}>"

    def _repr_html_(self) -> str:
        from punchcard.viewer.tables import report_html

        return report_html(self)
