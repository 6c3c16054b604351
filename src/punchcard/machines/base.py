"""A machine: sizes, a design and a precision become a layout and a model; programs come later.

Building a machine never receives a program. `punch` writes a program on a card, the model runs on the card, `read` reads
the card. Two programs run on one unchanged model. Everything above the machines is written against this contract.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeAlias, TypeVar

import numpy as np

from punchcard.arguments import checked
from punchcard.budget import building, require, running, running_packed
from punchcard.card.formats import FormatName, as_array
from punchcard.card.layout import Card, Cards, Layout, Pattern
from punchcard.card.packed import PackedCard, packed_bytes
from punchcard.engines import NO_CONTROLS, Controls, EngineCache, Watch, takes_packed
from punchcard.errors import PrecisionError, ProgramError, PunchcardError, did_you_mean
from punchcard.machines import storage, weight_cache
from punchcard.machines.comparison import Check, Comparison, EndComparison, LockstepComparison
from punchcard.machines.design import Design
from punchcard.machines.display_values import DisplayValue, values_of_layout
from punchcard.machines.interpreter import Interpreter, Quick
from punchcard.machines.kind import Kind
from punchcard.machines.listing import Listing, lines_of
from punchcard.machines.meaning import Meaning
from punchcard.machines.ports import Host
from punchcard.machines.real_variables import RealVariable
from punchcard.machines.result import Batch, Readout, Reason, Result
from punchcard.machines.running import DEFAULT_ENGINE, OBSERVED, Mark, PeriodicAction, RunOutcome, run_program
from punchcard.machines.stages import Stage
from punchcard.machines.streams import Input, Output, Read, Write, reader
from punchcard.transformer.build import LayerWeights, Part, compile_layer, to_weights
from punchcard.transformer.exactness import needed_bits
from punchcard.transformer.precision import Precision, as_precision
from punchcard.transformer.weights import Weights

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from torch import Tensor

    from punchcard.export.circuit import Circuit
    from punchcard.export.layer import ProgramLayer
    from punchcard.machines.registry import Registry
    from punchcard.proof.certificate import Certificate
    from punchcard.trace import Observed, Snapshot
    from punchcard.transformer.model import LoopedTransformer

Program = TypeVar("Program")
State = TypeVar("State")
AsPrecision: TypeAlias = Precision | FormatName
NO_LIMIT = 1 << 62


@checked
class Machine(ABC, Generic[Program, State]):
    """A looped transformer that executes programs, one instruction a loop. The weights never depend on the program.

        machine = punchcard.build(program)      `machine.model` is the `nn.Module`, `machine.layout` names its rows
        card = machine.punch(program)           the program as the model's input, rows by columns
        machine.run(program)                    apply the model until the program halts
        machine.read(card)                      the values on a card

    A subclass defines its `kind` and `designs`, the sizes that a program needs (`sizes_for`) and a plain interpreter
    (`oracle`). The rest has a default. See docs/your-own-machine.md.
    """

    kind: ClassVar[Kind]
    designs: ClassVar[Mapping[str, Any]]
    """Designs by name, or what makes one."""
    default_max_steps: ClassVar[int | None] = 100_000
    """Default of `max_steps`: instructions after which a run stops, or None for no limit."""
    compared: ClassVar[Check | None] = "end"
    """Default of `check`: when a run is compared with the interpreter."""
    has_ports: ClassVar[bool] = False
    """Whether programs read input and write output, which is then what a run shows."""
    instruction_size: ClassVar[int] = 1
    """How far the program counter goes from an instruction to the next; anything else is a branch."""
    keeps_weights: ClassVar[bool] = False
    """Whether weights are kept on disk: of a large machine of this package, whose formulas take long to work out."""

    sizes: Any
    options: dict[str, Any]
    """What the machine was built with, beside design and precision, as plain data."""
    design: Design[Any]
    precision: Precision
    layout: Layout
    weights: Weights
    """What the formulas give, as arrays, until somebody wants the `model`."""
    needed_bits: int = 0
    """Significand bits that its sums need so that none is rounded; 0 where numbers are real and rounded anyway."""

    @property
    def model(self) -> LoopedTransformer:
        """The weights as an `nn.Module`, which holds them from then on: what is changed there is run."""
        return self.weights.module

    @cached_property
    def engine_cache(self) -> EngineCache:
        """What engines prepared for this machine, so that a second run need not wait for it."""
        return EngineCache()

    # Building

    def build(
        self, sizes: Any, design: str | Design[Any], precision: AsPrecision | tuple[str, ...], options: Mapping[str, Any]
    ) -> None:
        """Layout and model, by a design or its name. Of several number formats the first that is exact is taken."""
        name = design if isinstance(design, str) else design.name
        self.check_options(name, options)
        self.design = self.designs[name] if isinstance(design, str) else design
        self.sizes, self.options = sizes, dict(options)
        self.layout = self.design.layout(sizes)
        what = f"building {self._sized()}"
        require(self.memory_to_build(), what)
        for wanted in map(as_precision, precision if isinstance(precision, tuple) else (precision,)):
            self.precision = wanted
            key = weight_cache.key_of(self.design, sizes, wanted) if self.keeps_weights else None
            found = key and weight_cache.find(key)
            if found:
                self.weights, self.needed_bits = found
                return
            layers = self.compile(sizes)
            self.needed_bits = needed_bits(layers, self.layout) if self.design.exact else 0
            if self.needed_bits <= wanted.significand:
                self.weights = to_weights(layers, self.layout.width, wanted)
                if key:
                    weight_cache.keep(key, self.weights, self.needed_bits)
                return
        raise PrecisionError(
            f"the {name!r} design with {', '.join(f'{name}={value}' for name, value in options.items())} needs sums of "
            f"{self.needed_bits} significand bits, {self.precision.name} has {self.precision.significand}: {self.advice()}")

    def check_options(self, design: str, options: Mapping[str, Any]) -> None:
        """Refuse a design that there is not, and options that are not what the kind declares."""
        if design not in self.designs:
            raise PunchcardError(f"unknown design {design!r}{did_you_mean(design, self.designs)}: "
                                 f"there are {', '.join(self.designs)}")
        for option in self.kind.options:
            if option.name in options or not option.many:  # a list may hold objects, which the machine looks at itself
                option.check(options.get(option.name))

    def memory_to_build(self) -> int:
        """About how many bytes building takes at its peak, by the sizes alone."""
        return building(self.design.weights(self.sizes, self.layout))

    def memory_to_run(self, engine: str = DEFAULT_ENGINE) -> int:
        """About how many bytes a run takes at its peak, with what the machine has; by the sizes alone.

        Where the engine "auto" has to take one that runs tensors, that one has an estimate of its own.
        """
        if takes_packed(engine):
            return self.memory_to_build() + running_packed(packed_bytes(self.layout, self.precision.name))
        return self.memory_to_build() + running(self.layout.width, self.layout.columns)

    def check_room(self, engine: str = DEFAULT_ENGINE) -> None:
        """Refuse a run that would take more memory than the budget, before a card is punched."""
        on = f" on the {engine} engine" * (engine != DEFAULT_ENGINE)
        require(self.memory_to_run(engine), f"a run of {self._sized()}{on}")

    def _sized(self) -> str:
        sizes = ", ".join(f"{name}={value}" for name, value in self.options.items() if type(value) is int)
        return f"a {self.kind.name} machine with {sizes} ({self.layout.width} rows, {self.layout.columns} columns)"

    def compile(self, sizes: Any) -> list[LayerWeights]:
        """The layers for sizes, as matrices."""
        layout = self.design.layout(sizes)
        return [compile_layer(part, layout.width) for part in self.design.layers(sizes, layout, self.precision)]

    def formulas(self) -> list[Part]:
        """The layers as the design wrote them: what `attend` and `assign` were given, worked out from sizes alone."""
        return self.design.layers(self.sizes, self.layout, self.precision)

    def advice(self) -> str:
        """What to do about a number format that is too narrow."""
        return "use a wider number format, or a smaller machine"

    @classmethod
    @abstractmethod
    def sizes_for(cls, program: Program) -> dict[str, Any]:
        """The options of a machine with room for a program. Only sizes: its content never reaches the weights."""

    @classmethod
    def for_program(cls, program: Program, **options: Any) -> Self:
        """A machine with room for a program; options that are given come before the program's own sizes."""
        known = {*inspect.signature(cls.__init__).parameters} - {"self"}
        if unknown := [name for name in options if name not in known]:
            raise PunchcardError(f"{unknown[0]} is not an option of a {cls.kind.name} machine"
                                 f"{did_you_mean(unknown[0], known)}: there are {', '.join(sorted(known))}")
        given = {name: value for name, value in options.items() if value is not None}
        return cls(**{**cls.sizes_for(program), **given})

    def in_format(self, dtype: FormatName) -> Self:
        """The same machine in another number format: its constants are chosen anew for that format."""
        return self.builder()(**self.options, design=self.design.name, precision=self._precision_in(dtype))

    def _precision_in(self, dtype: FormatName) -> Precision:
        return Precision(dtype, self.precision.temperature, self.precision.gate)

    def __repr__(self) -> str:
        return (f"<{type(self).__name__}, design {self.design.name!r}: {len(self.weights.layers)} layers, "
                f"{self.layout.width} rows, {self.layout.columns} columns, {self.precision.name}>")

    # Cards

    def pack(self, program: Program) -> PackedCard:
        """The card of a program, packed: as its design punches it. A program that does not fit is refused."""
        if type(self).punch is not Machine.punch:  # a machine that punches tensors
            return PackedCard.of(self.layout, self.punch(program))
        return self._packed(program)

    def _packed(self, program: Program) -> PackedCard:
        self.check_fits(program)
        card = PackedCard.blank(self.layout, self.precision.name)
        self.design.punch(self.sizes, self.layout, self.content(program), card)
        return card

    def punch(self, program: Program) -> Tensor:
        """The card of a program as a tensor."""
        self.layout.check_room()
        return self._packed(program).tensor()

    def content(self, program: Program) -> Any:
        """What the design punches of a program, by default the program itself."""
        return program

    def check_fits(self, program: Program) -> None:
        """Refuse a program that needs more than the machine has."""
        for name, wanted in self.sizes_for(program).items():
            if wanted > self.options[name]:
                raise ProgramError(f"the program needs {name}={wanted}, the machine has {name}={self.options[name]}: "
                                   f"build it with {name}={wanted} or more")

    def read_all(self, cards: Cards) -> list[State]:
        """The states on a batch of cards. A batch of packed cards is a list."""
        self.layout.check(cards)
        if isinstance(cards, PackedCard) or (not isinstance(cards, list | tuple) and cards.ndim != 3):
            raise PunchcardError(f"read_all takes a batch of cards, not one of shape {tuple(cards.shape)}: use read")
        return self.states(cards) if len(cards) else []

    def states(self, cards: Cards) -> list[State]:
        """The states on a batch of one or more cards, by default as its design reads them."""
        states: list[State] = self.design.read(self.sizes, self.layout, cards)
        return states

    def read(self, card: Card) -> State:
        """The state on a card."""
        self.layout.check(card)
        if isinstance(card, PackedCard):
            return self.states([card])[0]
        if card.ndim != 2:
            raise PunchcardError(f"read takes one card, not a batch of shape {tuple(card.shape)}: use read_all")
        return self.states(card[None])[0]

    def read_own(self, program: Program, card: Card) -> State:
        """What of the state on a card is the program's; a machine with much room reads no more than that."""
        return self.own(program, self.read(card))

    def readout(self, program: Program, card: Card) -> Readout:
        """What a run shows of a card; a machine with much room reads no more than that."""
        state = self.read_own(program, card)
        return Readout(self.values(program, state), getattr(state, "program_counter", None), self.at_halt(program, state))

    def check_type(self, program: object) -> None:
        """Refuse a program of another kind of machine."""
        if not self.kind.is_for(program):
            raise PunchcardError(f"a {type(program).__name__} does not run on a {type(self).__name__}")

    @property
    def halting(self) -> tuple[Pattern, ...]:
        """The patterns that the card shows once a program has halted."""
        return self.design.halting(self.sizes)

    def own(self, program: Program, state: State) -> State:
        """What of a state is the program's: a machine may have more room."""
        return state

    def values(self, program: Program, state: State) -> dict[str, Any]:
        """The values of a program's own state by name."""
        return {}

    def real_variables(self, program: Program) -> Mapping[str, RealVariable]:
        """Where the real variables of a program are on the card, by name; empty for a machine that computes with bits."""
        return {}

    def at_halt(self, program: Program, state: State) -> bool:
        """Whether the next instruction is a halt, which the card may not show yet."""
        return False

    def column_name(self, column: int, program: Program | None = None) -> str:
        """What a column of the card is: its region and number; with a program, the name that it has there."""
        return self.layout.column_name(column)

    def observe(
        self, program: Program | None = None, callback: Callable[[Snapshot], None] | None = None, *, layers: bool = True
    ) -> AbstractContextManager[Observed]:
        """Watch the model at work (see `punchcard.trace`), with columns by the names that a program gives them."""
        from punchcard.trace import observe

        return observe(self.model, self.layout, callback, layers=layers, names=lambda j: self.column_name(j, program))

    def as_layer(
        self, program: Program, inputs: Sequence[str], outputs: Sequence[str], *, engine: str = DEFAULT_ENGINE,
        max_steps: int | None = None, checkpoint: bool = True,
    ) -> ProgramLayer:
        """A program as a layer of another network, with gradients: see `punchcard.as_layer`."""
        from punchcard.export.layer import as_layer

        return as_layer(self, program, inputs, outputs, engine=engine, max_steps=max_steps, checkpoint=checkpoint)

    def circuit(self) -> Circuit:
        """What every row block, head, formula and hidden unit is and computes: see `punchcard.circuit`."""
        from punchcard.export.circuit_builder import circuit

        return circuit(self)

    def meaning(self, card: Meaning) -> None:
        """Say what a loop does, for a proof: see `punchcard.machines.meaning` and docs/proof.md.

        Without it a proof shows that every head is hard, that no sum is rounded, that what the layout says of bits holds
        again, and that nothing changes but what may.
        """
        for block in self.layout.blocks:
            for region in block.changes:
                if block.holds.get(region) == "bits":
                    card.leave(block.name, region)

    def prove(self, *, seconds: float | None = None, progress: Callable[[str, int], None] | None = None) -> Certificate:
        """Prove that one loop of these weights is the machine's step, for every card: see `punchcard.prove`."""
        from punchcard.proof.prover import prove

        return prove(self, seconds=seconds, progress=progress)

    def stages(self) -> Sequence[Stage]:
        """How a proof of a loop is cut into stages and cases, each with a meaning of its own; without any, it is not."""
        return ()

    # Running

    def host(self, begin: Mark, read: Read, write: Write, last: int, program: Program | None = None) -> Host | None:
        """The I/O host of a run that makes its last loop at `last`, or None if the machine has no ports.

        A card that was given alone has no program.
        """
        return None

    def check_mark(self, program: Program, mark: Mark) -> None:
        """Refuse a mark that no run of a program comes to, as far as the card alone tells."""
        fields = mark.packed.fields.values() if mark.packed is not None else [as_array(mark.raw_card)]
        if not all(np.isfinite(field).all() for field in fields):
            raise PunchcardError("the card holds an entry that is not finite")
        self.read(mark.raw_card)

    def guard(
        self, program: Program, punched: Card, begin: Mark, again: Callable[[Mark, int, Watch | None], Mark],
        *, every_loop: bool,
    ) -> tuple[Watch | None, Sequence[PeriodicAction]]:
        """What checks that a program keeps its promises: a watch for every loop, and actions at marks.

        `again(mark, loops, watch)` makes the loops after a mark anew, up to a number.
        """
        return None, ()

    def unchecked(self, program: Program, loops: int) -> tuple[str, ...]:
        """Notes on what `guard` could not check in so many loops, since it did not see each of them."""
        return ()

    def run(
        self,
        program: Program,
        *,
        engine: str = DEFAULT_ENGINE,
        max_steps: int | None = None,
        input: Input = b"",
        output: Output | None = None,
        controls: Controls = NO_CONTROLS,
        guarded: bool = True,
        begin: Mark | None = None,
        keep: PeriodicAction | None = None,
    ) -> Result[State]:
        """Run a program until it ends or has executed `max_steps` instructions, those before `begin` included.

        input, output   of machines with ports: bytes, a binary file, or a function; a file is flushed before an input is
                        waited for, at the end, and at least every 0.05 seconds
        controls        what is called between loops; its ports are served beside the machine's own
        guarded         stop with an error where a program breaks a promise (see the machine)
        begin           the mark to go on from, by default the program's punched card;  keep  is given marks of the run
        """
        return run_program(self, program, engine=engine, max_steps=max_steps, input=input, output=output, controls=controls,
                           guarded=guarded, begin=begin, keep=keep)

    def run_batch(
        self,
        given: Sequence[Program | Card] | Tensor,
        *,
        engine: str = DEFAULT_ENGINE,
        max_steps: int | None = None,
        inputs: Sequence[Input] | None = None,
        controls: Controls = NO_CONTROLS,
        guarded: bool = True,
        threads: int | None = None,
        device: str | None = None,
    ) -> Batch[State]:
        """Run programs, or cards, side by side on this machine; each ends by itself. Every result is that of `run`.

        inputs     the input of each, of machines with ports
        controls   `interrupted` and `progress`; the loops are those of all runs together
        threads    how many; by default one for each core
        device     "cuda" for an NVIDIA GPU; by default where the cards are, and programs on the CPU

        A program that does not fit is refused before the first loop. What goes wrong in a run is the fault of its result and
        leaves the others alone. A card has no program: its result has a state, and no values by name.
        """
        from punchcard.machines.batch import run_batch

        return run_batch(self, given, engine=engine, max_steps=max_steps, inputs=inputs, controls=controls,
                         guarded=guarded, threads=threads, device=device)

    def last_loop(self, max_steps: int | None) -> int:
        """The loop after which a run of so many instructions stops."""
        limit = self.default_max_steps if max_steps is None else max_steps
        if limit is not None and limit < 0:
            raise PunchcardError(f"max_steps={max_steps}: it must be 0 or more")
        return NO_LIMIT if limit is None else self.design.warm_up + limit

    def engine_for(self, wanted: str) -> str:
        """The engine that is prepared: where somebody observes the model, the one that passes through its layers."""
        return OBSERVED if wanted == DEFAULT_ENGINE and self.weights.is_observed else wanted

    def steps(self, loops: int, *, ended: bool) -> int:
        """Instructions executed in so many loops of a run; `ended` by a halting pattern, or not."""
        return max(0, loops - (self.design.idle if ended else self.design.warm_up))

    def result(self, program: Program | None, course: RunOutcome, begin: Mark, host: Host | None) -> Result[State]:
        """The end of a run; one of a card has no program."""
        mark = course.mark
        seen = Readout({}) if program is None else self.readout(program, mark.raw_card)
        reason: Reason = course.reason if course.reason in ("interrupted", "stopped") else "steps"
        if mark.ended or seen.at_halt:
            reason = "halted"
        if host is not None and host.ended is not None:
            reason = host.ended
        reading = partial(self.read, mark.raw_card) if program is None else partial(self.read_own, program, mark.raw_card)
        return Result(
            reading=reading, memory=seen.values, reason=reason,
            steps=self.steps(mark.loops, ended=mark.ended),
            loops=mark.loops, engine=mark.engine or DEFAULT_ENGINE, raw_card=mark.raw_card, notes=course.notes,
            seconds=course.seconds, compile_seconds=course.compile_seconds, begun=begin.loops,
            output=mark.traffic.written, read=mark.traffic.read, fault=None if host is None else host.fault,
            program_counter=seen.program_counter, status=None if host is None else host.status,
            errors=b"" if host is None else host.errors, layout=self.layout,
            names=lambda column: self.column_name(column, program))

    # Comparing

    @abstractmethod
    def oracle(self, program: Program, read: Read, write: Write) -> Interpreter[State]:
        """A plain interpreter of a program, with this machine's sizes."""

    def comparison(self, program: Program, begin: Mark, check: Check, kept: Mapping[str, Any] | None = None) -> Comparison:
        """What compares a run with the interpreter; `kept` is what a judge of the same run remembered."""
        return EndComparison(self, program) if check == "end" else LockstepComparison(self, program, begin)

    @classmethod
    def check_mode(cls, wanted: bool | Check | None) -> Check | None:
        """When a run is compared with the interpreter: as `wanted`, default: as the machine says."""
        usual: Check = cls.compared or "end"
        return cls.compared if wanted is None else (usual if wanted else None) if isinstance(wanted, bool) else wanted

    def differences(self, program: Program, card: Card, oracle: Interpreter[State]) -> list[str]:
        """Where a card is not what the interpreter has: in what is the program's own, or in the rest of the machine."""
        found, expected = self.read(card), oracle.state
        if found == expected:
            return []
        values, should = (self.values(program, self.own(program, state)) for state in (found, expected))
        wrong = [f"{name} is {values[name]}, the interpreter has {should[name]}" for name in values
                 if values[name] != should[name]]
        counters = [getattr(state, "program_counter", None) for state in (found, expected)]
        if counters[0] != counters[1]:
            wrong.append(f"the program counter is {counters[0]}, the interpreter's {counters[1]}")
        return wrong or [f"the state is {found}, the interpreter's {expected}"]

    def comparer(self, program: Program) -> Callable[[Card, Interpreter[State]], list[str]]:
        """`differences` for a run that is compared after every loop; a large machine may look only at what has changed."""
        return partial(self.differences, program)

    def near(self, program: Program, found: State, expected: State) -> bool:
        """Whether a state after a long run is the interpreter's, but for what rounding may have done."""
        return found == expected

    def quickest(self, program: Program) -> Quick[State]:
        """The quickest plain interpreter there is, to measure against."""
        return self.oracle(program, reader(b""), lambda byte: None)

    def in_c(self, program: Program) -> Quick[State] | None:
        """The same in C, compiled now, or None if there is none. A `CompilerError` if it does not compile."""
        return None

    # Showing

    def trace_line(self, program: Program, before: Card, after: Card) -> str:
        """What a loop did to a card, as a line of text. Default: the values after it."""
        state = self.own(program, self.read(after))
        return ", ".join(f"{name} {value}" for name, value in self.values(program, state).items()) or str(state)

    def format_result(self, program: Program, result: Result[State]) -> str:
        """The values at the end of a run, as lines of text."""
        width = max(map(len, result.memory), default=0)
        return "\n".join(f"{name:<{width}}  {value}" for name, value in result.memory.items()) or str(result.state)

    def why_stopped(self, program: Program, result: Result[State]) -> str:
        """Why a run stopped with a fault, as the program says it, or else as the machine does."""
        return str(result.fault)

    def returned(self, program: Program, result: Result[State]) -> dict[str, Any]:
        """What a program is run for, where it says so, as plain data by name: `--json` has it beside the values."""
        return {}

    def display_values(self, program: Program) -> list[DisplayValue]:
        """The values that a view shows, and where they are on the card. Default: what the layout declares.

        One that is called "program counter" is where a run is: it counts as the instructions of `listing` are numbered.
        """
        return values_of_layout(self.layout)

    def listing(self, program: Program, source: str | None = None) -> Listing:
        """The program as people read it; `source` is the text of its file, where that is known and text."""
        return Listing(lines_of(self.kind.disassemble(program) if source is None else source))

    def plain(self, value: Any) -> Any:
        """A value by name as JSON has it."""
        return value

    def title(self) -> str:
        """The machine and its sizes in one line."""
        return f"{self.kind.name}, design {self.design.name!r}: {', '.join(f'{k} {v}' for k, v in self.options.items())}"

    def summary(self) -> dict[str, Any]:
        """The machine's figures, as plain data."""
        layers = self.weights.layers
        parameters, nonzero = self.weights.parameter_count()
        temperatures = [float(t) for layer in layers for t in layer.temperature]
        return {
            "machine": self.kind.name, "design": self.design.name, **self.options, "dtype": self.precision.name,
            "layers": len(layers), "heads": [layer.heads for layer in layers], "hidden": [layer.hidden for layer in layers],
            "width": self.layout.width, "columns": self.layout.columns, "parameters": parameters, "nonzero": nonzero,
            "temperature": max(temperatures, default=0.0), "needed_bits": self.needed_bits,
            "significand_bits": self.precision.significand, "paper": dict(self.design.paper),
        }

    def plot(
        self, shown: Program | Card, *, title: str = "", columns: int = 48, rows: Sequence[str] | None = None
    ) -> Figure:
        """A picture of a program's card, or of any card, with matplotlib: see `punchcard.plot`."""
        from punchcard.view.pictures import plot

        return plot(self, shown, title=title, columns=columns, rows=rows)

    def view(self, program: Program, *, input: bytes = b"", max_steps: int | None = None) -> object:
        """In a notebook: a widget that steps through a run, by loops, layers and heads; without anywidget, a picture."""
        from punchcard.view.notebook import view

        self.check_type(program)
        return view(self, program, input=input, max_steps=max_steps)

    def _repr_html_(self) -> str:
        from punchcard.view.tables import machine_html

        return machine_html(self)

    # Files

    def describe(self) -> dict[str, Any]:
        """Sizes, design, precision and layout as plain data."""
        return {"machine": self.kind.name, "sizes": self.options, "design": self.design.name,
                "precision": self.precision.describe(), "layout": self.layout.describe()}

    def save(self, path: str | Path) -> None:
        """Write the machine to one safetensors file."""
        storage.save(path, self.weights, self.describe())

    @classmethod
    def load(cls, path: str | Path, *, machines: Registry | None = None, **objects: Any) -> Self:
        """The machine in a file that `save` wrote. `Machine.load` takes a file of any kind of machine.

        machines   a registry with kinds of your own;  objects   what no file holds because it is code, such as your own
                   function blocks (`blocks`)

        Description and weights must fit each other and this version's layout.
        """
        description, tensors = storage.load(path)
        found = cls
        if cls is Machine:
            from punchcard.machines.registry import installed

            found = (machines or installed()).kind(str(description.get("machine"))).machine_class()  # type: ignore[assignment]
        machine = found.from_description(description, str(path), **objects)
        storage.fill(machine.weights, tensors, str(path))
        return machine

    @classmethod
    def from_description(cls, description: Mapping[str, Any], source: str = "the description", **objects: Any) -> Self:
        """A machine from what `describe` gave: the weights are what the formulas give. `source` is named in errors."""
        build = cls.builder(**objects)
        return storage.rebuild(description, cls.kind.name, build, source)

    @classmethod
    def builder(cls, **objects: Any) -> Callable[..., Self]:
        """What builds a machine from the options that `describe` gave."""
        if objects:
            raise PunchcardError(f"{', '.join(objects)}: a {cls.kind.name} machine is built from its description alone")
        return cls

    def store(self, program: Program) -> str:
        """A program as a checkpoint keeps it; `restore` gives the same program."""
        return self.kind.disassemble(program)

    def restore(self, text: str) -> Program:
        """A program from what `store` gave."""
        program: Program = self.kind.languages[0].assemble(text)
        return program


AnyMachine: TypeAlias = Machine[Any, Any]
"""A machine of any kind."""
