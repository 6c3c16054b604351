"""A machine: sizes, a design and a precision become a layout and a model; programs come later.

Building a machine never receives a program. `punch` writes a program on a card, the model runs on the card, `read` reads
the card. Two programs run on one unchanged model. Everything above the machines is written against this contract.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeAlias, TypeVar

import numpy as np

from punchcard.arguments import checked
from punchcard.budget import PACKED, building, require, running
from punchcard.card.formats import FormatName, as_array
from punchcard.card.layout import Card, Cards, Layout, Pattern
from punchcard.card.packed import PackedCard, packed_bytes
from punchcard.engines import NO_CONTROLS, Controls, EngineCache, Watch, takes_packed
from punchcard.errors import PrecisionError, ProgramError, PunchcardError, did_you_mean
from punchcard.machines import storage, weight_cache
from punchcard.machines.comparison import (
    Check,
    Comparison,
    EndComparison,
    LockstepComparison,
    LoopDifferences,
    state_differences,
)
from punchcard.machines.design import Design
from punchcard.machines.display_values import DisplayValue, Listing, RealVariable, lines_of, values_of_layout
from punchcard.machines.interpreter import Interpreter, Quick
from punchcard.machines.kind import Kind
from punchcard.machines.meaning import Meaning, Stage
from punchcard.machines.ports import Host
from punchcard.machines.result import Batch, Readout, Result
from punchcard.machines.running import DEFAULT_ENGINE, Mark, PeriodicAction, run_program
from punchcard.machines.streams import Input, Output, Read, Traffic, Write, reader
from punchcard.transformer.build import Part, compile_layers, to_weights
from punchcard.transformer.exactness import exact_weights
from punchcard.transformer.precision import Precision, as_precision
from punchcard.transformer.weights import Weights

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from torch import Tensor

    from punchcard.export.circuit import Circuit
    from punchcard.export.layer import ProgramLayer
    from punchcard.machines.registry import Registry
    from punchcard.proof.certificate import Certificate, Verification
    from punchcard.trace import Observed, Snapshot
    from punchcard.transformer.model import LoopedTransformer

Program = TypeVar("Program")
State = TypeVar("State")
AsPrecision: TypeAlias = Precision | FormatName
NO_LIMIT = 1 << 62


@checked
class Machine(ABC, Generic[Program, State]):
    """A looped transformer that executes programs, one instruction per loop. Its weights never depend on the program.

        machine = punchcard.build(program)
        machine.model                           the transformer, an `nn.Module`
        machine.layout                          the names of the card's rows and columns
        card = machine.punch(program)           the program as a card: the model's input, a tensor of rows and columns
        card = machine.model(card)              one loop
        machine.read(card)                      the state on a card
        machine.run(program)                    apply the model until the program halts

    A subclass must define `kind`, `designs`, `sizes_for` (the sizes that a program needs) and `oracle` (a plain
    interpreter). All else has a default. See docs/your-own-machine.md.
    """

    kind: ClassVar[Kind]
    designs: ClassVar[Mapping[str, Any]]
    """Designs by name."""
    default_max_steps: ClassVar[int | None] = 100_000
    """Default of `max_steps`: instructions after which a run stops, or None for no limit."""
    compared: ClassVar[Check | None] = "end"
    """Default of `check`: when a run is compared with the interpreter."""
    has_ports: ClassVar[bool] = False
    """Whether programs read input and write output. If so, `punchcard run` prints the output instead of values."""
    instruction_size: ClassVar[int] = 1
    """How much the program counter grows from an instruction to the next; any other change is a branch."""
    keeps_weights: ClassVar[bool] = False
    """Whether weights are cached on disk, for large machines that take long to build."""

    sizes: Any
    options: dict[str, Any]
    """The sizes and other options that the machine was built with, as plain data; without design and precision."""
    design: Design[Any]
    precision: Precision
    layout: Layout
    halting: tuple[Pattern, ...]
    """The patterns of values on the card that mean that the program has halted."""
    weights: Weights
    """The weights as arrays. After the first use of `model`, the module owns them."""
    needed_bits: int = 0
    """Significand bits that the number format needs so that no sum is rounded; 0 for machines of real numbers."""

    @property
    def model(self) -> LoopedTransformer:
        """The transformer, an `nn.Module`. If you change its parameters, the machine runs with the changed ones."""
        return self.weights.module

    @cached_property
    def events(self) -> tuple[Pattern, ...]:
        """The patterns at which a host has something to do between two loops."""
        return self.design.events(self.sizes)

    @cached_property
    def engine_cache(self) -> EngineCache:
        """What engines have compiled for this machine, for the next run."""
        return EngineCache()

    # Building

    def build(
        self, sizes: Any, design: str | Design[Any], precision: AsPrecision | tuple[str, ...], options: Mapping[str, Any]
    ) -> None:
        """Make layout and weights, for a design or its name. Of several number formats the first exact one is used."""
        name = design if isinstance(design, str) else design.name
        self.check_options(name, options)
        self.design = self.designs[name] if isinstance(design, str) else design
        self.sizes, self.options = sizes, dict(options)
        formats = [as_precision(each) for each in (precision if isinstance(precision, tuple) else (precision,))]
        self.layout = self.design.layout(sizes)
        what = f"building {self._sized()}"
        require(self.memory_to_build(), what)
        self.halting = self.design.halting(sizes)
        for chosen in formats:
            self.precision = chosen
            key = weight_cache.key_of(self.design, sizes, chosen) if self.keeps_weights else ""
            found = weight_cache.find(key) if key else None
            if found is None:
                found = exact_weights(self.design.layers(sizes, self.layout, chosen), self.layout, chosen,
                                      exact=self.design.exact)
                if key:
                    weight_cache.keep(key, *found)
            weights, self.needed_bits = found
            if weights is not None:
                self.weights = weights
                if self.keeps_weights:
                    weights.freeze()  # as those that come from the disk
                break
        else:
            raise PrecisionError(
                f"the {name!r} design with {', '.join(f'{name}={value}' for name, value in options.items())} needs sums of "
                f"{self.needed_bits} significand bits, {self.precision.name} has {self.precision.significand}: "
                f"{self.advice()}")
        for pattern in self.halting:
            self.layout.pattern_column(pattern)  # refuses one that does not fit

    def designed_weights(self) -> Weights:
        """The weights as the design has them, made anew: those of the machine may have been changed since."""
        return to_weights(compile_layers(self.formulas(), self.layout.width), self.layout.width, self.precision)

    @classmethod
    def check_design(cls, design: str) -> None:
        """Raise an error for an unknown design."""
        if design not in cls.designs:
            raise PunchcardError(f"unknown design {design!r}{did_you_mean(design, cls.designs)}: "
                                 f"there are {', '.join(cls.designs)}")

    def check_options(self, design: str, options: Mapping[str, Any]) -> None:
        """Raise an error for an unknown design, and for an option with a value that its kind does not allow."""
        self.check_design(design)
        for option in self.kind.options:
            if option.name in options or not option.many:  # a list may hold objects, which the machine looks at itself
                option.check(options.get(option.name))

    def memory_to_build(self) -> int:
        """Estimate the peak memory of building, in bytes. It depends on the sizes alone."""
        return building(self.design.weights(self.sizes, self.layout))

    def memory_to_run(self, engine: str = DEFAULT_ENGINE) -> int:
        """Estimate the peak memory of a run in bytes, the machine included. It depends on the sizes alone.

        If the engine "auto" must fall back to an engine that runs on tensors, the estimate of that engine is checked then.
        """
        if takes_packed(engine):
            return self.memory_to_build() + PACKED * packed_bytes(self.layout, self.precision.name)
        entry_bytes = max(4, self.precision.format.array.itemsize)  # the narrow formats are reached by way of float32
        return self.memory_to_build() + running(self.layout.width, self.layout.columns, entry_bytes)

    def check_room(self, engine: str = DEFAULT_ENGINE) -> None:
        """Raise an error if a run would need more memory than the limit."""
        on = f" on the {engine} engine" * (engine != DEFAULT_ENGINE)
        require(self.memory_to_run(engine), f"a run of {self._sized()}{on}")

    def _sized(self) -> str:
        sizes = ", ".join(f"{name}={value}" for name, value in self.options.items() if type(value) is int)
        return f"a {self.kind.name} machine with {sizes} ({self.layout.width} rows, {self.layout.columns} columns)"

    def formulas(self) -> list[Part]:
        """The layers as formulas, before they are compiled to matrices."""
        return self.design.layers(self.sizes, self.layout, self.precision)

    def advice(self) -> str:
        """What to do about a number format that is too narrow, as the end of the error message."""
        return "use a wider number format, or a smaller machine"

    @classmethod
    @abstractmethod
    def sizes_for(cls, program: Program) -> dict[str, Any]:
        """The options of a machine that is large enough for a program. Sizes only: weights do not depend on programs."""

    @classmethod
    def for_program(cls, program: Program, **options: Any) -> Self:
        """Build a machine that is large enough for a program. `options` override the program's own sizes."""
        known = {*inspect.signature(cls.__init__).parameters} - {"self"}
        if unknown := [name for name in options if name not in known]:
            raise PunchcardError(f"{unknown[0]} is not an option of a {cls.kind.name} machine"
                                 f"{did_you_mean(unknown[0], known)}: there are {', '.join(sorted(known))}")
        given = {name: value for name, value in options.items() if value is not None}
        return cls(**{**cls.sizes_for(program), **given})

    counter_base: ClassVar[int] = 10
    """In which base people write a program counter of this machine."""

    @classmethod
    def view_options(cls, program: Program) -> dict[str, Any]:
        """Options of the machine that a view shows a program on. Default: those of a run."""
        return {}

    @classmethod
    def view_choices(cls) -> dict[str, list[Any]]:
        """Options that a page offers as menus, with their values. Default: the designs."""
        return {"design": list(cls.designs)} if len(cls.designs) > 1 else {}

    def in_format(self, dtype: FormatName) -> Self:
        """Build the same machine in another number format, with constants chosen for that format."""
        return self.builder()(**self.options, design=self.design.name, precision=self._precision_in(dtype))

    def _precision_in(self, dtype: FormatName) -> Precision:
        return Precision(dtype, self.precision.temperature, self.precision.gate)

    def __repr__(self) -> str:
        return (f"<{type(self).__name__}, design {self.design.name!r}: {len(self.weights.layers)} layers, "
                f"{self.layout.width} rows, {self.layout.columns} columns, {self.precision.name}>")

    # Cards

    def pack(self, program: Program) -> PackedCard:
        """The card of a program in packed form, which takes less memory. Raises an error if it does not fit."""
        if type(self).punch is not Machine.punch:  # a machine that punches tensors
            return PackedCard.of(self.layout, self.punch(program))
        return self._packed(program)

    def pack_all(self, programs: Sequence[Program]) -> list[PackedCard]:
        """The cards of many programs in packed form. One that is given often is packed once, and its card is shared."""
        known: dict[int, PackedCard] = {}
        return [known.get(id(one)) or known.setdefault(id(one), self.pack(one)) for one in programs]

    def _packed(self, program: Program) -> PackedCard:
        card = PackedCard.blank(self.layout, self.precision.name)
        self.check_fits(program)
        self.design.punch(self.sizes, self.layout, self.content(program), card)
        return card

    def punch(self, program: Program) -> Tensor:
        """The card of a program: a tensor of rows by columns, the model's input. Raises an error if it does not fit."""
        self.layout.check_room()
        return self._packed(program).tensor()

    def content(self, program: Program) -> Any:
        """The part of a program that is written to the card. Default: the program itself."""
        return program

    def check_fits(self, program: Program) -> None:
        """Raise `ProgramError` if a program needs a larger machine."""
        for name, wanted in self.sizes_for(program).items():
            if wanted > self.options[name]:
                raise ProgramError(f"the program needs {name}={wanted}, the machine has {name}={self.options[name]}: "
                                   f"build it with {name}={wanted} or more")

    def read_all(self, cards: Cards) -> list[State]:
        """The states on a batch of cards: a tensor (batch, rows, columns), or a list of packed cards."""
        self.layout.check(cards)
        if isinstance(cards, PackedCard) or (not isinstance(cards, list | tuple) and cards.ndim != 3):
            raise PunchcardError(f"read_all takes a batch of cards, not one of shape {tuple(cards.shape)}: use read")
        return self.states(cards) if len(cards) else []

    def states(self, cards: Cards) -> list[State]:
        """The states on a batch of one or more cards. Default: read by the design."""
        states: list[State] = self.design.read(self.sizes, self.layout, cards)
        return states

    def read(self, card: Card) -> State:
        """The state on one card: memory, program counter and so on."""
        self.layout.check(card)
        if isinstance(card, PackedCard):
            return self.states([card])[0]
        if card.ndim != 2:
            raise PunchcardError(f"read takes one card, not a batch of shape {tuple(card.shape)}: use read_all")
        return self.states(card[None])[0]

    def read_own(self, program: Program, card: Card) -> State:
        """The program's part of the state on a card. A machine with a large memory may read that part only."""
        return self.own(program, self.read(card))

    def readout(self, program: Program, card: Card) -> Readout:
        """The values on a card that a run reports. A machine with a large memory may read these only."""
        state = self.read_own(program, card)
        return Readout(self.values(program, state), getattr(state, "program_counter", None), self.at_halt(program, state))

    def readouts(self, programs: Sequence[Program], cards: Sequence[Card]) -> list[Readout]:
        """The same for the cards of many programs."""
        return [self.readout(program, card) for program, card in zip(programs, cards, strict=True)]

    def check_type(self, program: object) -> None:
        """Raise an error if a program is for another kind of machine."""
        if not self.kind.is_for(program):
            raise PunchcardError(f"a program of class {type(program).__name__} does not run on a {type(self).__name__}")

    def own(self, program: Program, state: State) -> State:
        """The program's part of a state. The machine may be larger than the program."""
        return state

    def values(self, program: Program, state: State) -> dict[str, Any]:
        """The values in a program's state, by name."""
        return {}

    def real_variables(self, program: Program) -> Mapping[str, RealVariable]:
        """Where the real variables of a program are on the card, by name; empty for a machine that computes with bits."""
        return {}

    def at_halt(self, program: Program, state: State) -> bool:
        """Whether the next instruction is a halt, even if the card has no halting pattern yet."""
        return False

    def column_name(self, column: int, program: Program | None = None) -> str:
        """The name of a column: its region and number or, with a program, its name in the program."""
        return self.layout.column_name(column)

    def observe(
        self, program: Program | None = None, callback: Callable[[Snapshot], None] | None = None, *, layers: bool = True
    ) -> AbstractContextManager[Observed]:
        """Record what each layer does, as `punchcard.observe` does, with the program's names for columns."""
        from punchcard.trace import observe

        return observe(self.model, self.layout, callback, layers=layers, names=lambda j: self.column_name(j, program))

    def as_layer(
        self, program: Program, inputs: Sequence[str], outputs: Sequence[str], *, engine: str = DEFAULT_ENGINE,
        max_steps: int | None = None, checkpoint: bool = True,
    ) -> ProgramLayer:
        """Turn a program into an `nn.Module` with gradients: see `punchcard.as_layer`."""
        from punchcard.export.layer import as_layer

        return as_layer(self, program, inputs, outputs, engine=engine, max_steps=max_steps, checkpoint=checkpoint)

    def circuit(self) -> Circuit:
        """What each row block, head, formula and hidden unit computes: see `punchcard.circuit`."""
        from punchcard.export.circuit_builder import circuit

        return circuit(self)

    def meaning(self, card: Meaning) -> None:
        """Declare what one loop does, for a proof: see `punchcard.machines.meaning` and docs/proof.md.

        Default: nothing is declared. Then a proof shows that each softmax is one-hot, that no sum is rounded, that bits
        stay bits, and that only rows change which the layout declares as changing.
        """
        for block in self.layout.blocks:
            for region in block.changes:
                if block.holds.get(region) == "bits":
                    card.leave(block.name, region)

    def prove(self, *, seconds: float | None = None, progress: Callable[[str, int], None] | None = None) -> Certificate:
        """Prove that one loop of these weights is one step of the machine, for every card: see `punchcard.prove`."""
        from punchcard.proof.prover import prove

        return prove(self, seconds=seconds, progress=progress)

    def verify(
        self, certificate: Certificate | str | Path, *, seconds: float | None = None,
        progress: Callable[[str, int], None] | None = None,
    ) -> Verification:
        """Check a certificate against the weights that this machine runs: see `punchcard.verify`."""
        from punchcard.proof.prover import verify

        return verify(self, certificate, seconds=seconds, progress=progress)

    def stages(self) -> Sequence[Stage]:
        """The stages of the proof of a loop. Empty: proven in one piece."""
        return ()

    # Running

    @property
    def polls_input(self) -> bool:
        """Whether programs look for input and continue if none has come yet, instead of waiting for it. Default: no."""
        return False

    def host(self, begin: Mark, read: Read, write: Write, last: int, program: Program | None = None) -> Host | None:
        """The I/O host of a run, or None if the machine has no ports.

        `last` is the last loop of the run. `program` is None if the run was given a card.
        """
        return None

    def check_mark(self, program: Program, mark: Mark) -> None:
        """Raise an error if a mark cannot be a point in a run of this program. Only its card is checked."""
        fields = mark.packed.fields.values() if mark.packed is not None else [as_array(mark.raw_card)]
        if not all(np.isfinite(field).all() for field in fields if field.dtype.kind == "f"):
            raise PunchcardError("the card holds an entry that is not finite")
        self.readout(program, mark.raw_card)

    def guard(
        self, program: Program, begin: Mark, again: Callable[[Mark, int, Watch | None], Mark], *, every_loop: bool,
    ) -> tuple[Watch | None, Sequence[PeriodicAction]]:
        """Checks of what a program declares, such as its range: a watch for each loop, and actions at marks.

        `again(mark, loops, watch)` repeats the run from a mark up to loop number `loops`.
        """
        return None, ()

    def unchecked(self, program: Program, loops: int) -> tuple[str, ...]:
        """Notes on what `guard` could not check in a run of so many loops, because it did not see each of them."""
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
        """Run a program until it halts or has executed `max_steps` instructions. Nothing is compared: see `punchcard.run`.

        engine      the engine that applies the model, default: "auto", the fastest one that can run it
        max_steps   default: set by the machine. Instructions before `begin` count too
        input       what the program reads: bytes, a binary file, or a function
        output      where its output goes: a binary file or a function. A file is flushed before each wait for input, at the
                    end, and at least every 0.05 seconds
        controls    functions to call between loops: see `Controls`
        guarded     True: raise an error if the program violates what it declares, such as a FLEQ program's range
        begin       the mark to continue from, default: the start of the program
        keep        called with marks of the run, to save them

        Returns a `Result`.
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
        workers: int | None = None,
        ray: str | bool | None = None,
    ) -> Batch[State]:
        """Run a batch of programs or cards on this machine, in parallel. Each result is the one that `run` gives.

            results = machine.run_batch([program.with_values({"a": a}) for a in range(100)])

        given      a list of programs or cards, or a tensor (batch, rows, columns)
        inputs     the input of each program, for machines with ports
        controls   `interrupted` and `progress` only; loops are counted over all runs together
        threads    number of threads, default: one per core
        device     "cuda" for an NVIDIA GPU, default: the device of the cards; programs run on the CPU
        workers    spread the batch over so many processes of this computer; with `ray`: over so many actors
        ray        the address of a Ray cluster to spread the batch over, or True to start one here: one actor a core or,
                   with device="cuda", a GPU

        Returns a `Batch`, a sequence of `Result`. If a program does not fit, an error is raised before the first loop. An
        error in a run becomes `fault` of its result, and the other runs continue. The result of a card has a state, but no
        values by name.
        """
        from punchcard.machines.batch import run_batch

        return run_batch(self, given, engine=engine, max_steps=max_steps, inputs=inputs, controls=controls,
                         guarded=guarded, threads=threads, device=device, workers=workers, ray=ray)

    def last_loop(self, max_steps: int | None) -> int:
        """The last loop of a run that is limited to so many instructions."""
        limit = self.default_max_steps if max_steps is None else max_steps
        if limit is not None and limit < 0:
            raise PunchcardError(f"max_steps={max_steps}: it must be 0 or more")
        return NO_LIMIT if limit is None else self.design.warm_up + limit

    def steps(self, loops: int, *, ended: bool) -> int:
        """Instructions executed in so many loops. `ended`: whether the run ended by a halting pattern."""
        return max(0, loops - (self.design.idle if ended else self.design.warm_up))

    def refused(self, card: Card) -> int:
        """The number of refused instructions before this card, which do not count as executed. Default: 0."""
        return 0

    # Comparing

    def replayed(self, traffic: Traffic) -> Iterable[int]:
        """The input for an interpreter that repeats a run. Default: the bytes that the run has read."""
        return traffic.read

    @abstractmethod
    def oracle(self, program: Program, read: Read, write: Write) -> Interpreter[State]:
        """A plain interpreter for a program, without a transformer, with this machine's sizes."""

    def comparison(self, program: Program, begin: Mark, check: Check, kept: Mapping[str, Any] | None = None) -> Comparison:
        """The comparison of a run with the interpreter. `kept` is its saved state, if the run is resumed."""
        return EndComparison(self, program) if check == "end" else LockstepComparison(self, program, begin)

    @classmethod
    def check_mode(cls, wanted: bool | Check | None) -> Check | None:
        """When a run is compared with the interpreter, or None for never. Default: `compared` of the class."""
        usual: Check = cls.compared or "end"
        return cls.compared if wanted is None else (usual if wanted else None) if isinstance(wanted, bool) else wanted

    def differences(self, program: Program, card: Card, oracle: Interpreter[State]) -> list[str]:
        """The differences between a card and the interpreter's state, in words."""
        found, expected = self.read(card), oracle.state
        return [] if found == expected else state_differences(self, program, found, expected)

    def loop_differences(self, program: Program, oracle: Interpreter[State]) -> LoopDifferences:
        """What `differences` says, asked after every loop."""
        return LoopDifferences(self, program, oracle)

    def near(self, program: Program, found: State, expected: State) -> bool:
        """Whether a state after a long run equals the interpreter's, up to rounding."""
        return found == expected

    def quickest(self, program: Program) -> Quick[State]:
        """The fastest plain interpreter in Python, for benchmarks."""
        return self.oracle(program, reader(b""), lambda byte: None)

    def in_c(self, program: Program) -> Quick[State] | None:
        """A plain interpreter in C, compiled now, or None if there is none. Raises `CompilerError` if gcc fails."""
        return None

    # Showing

    def trace_line(self, program: Program, before: Card, after: Card) -> str:
        """One line of `punchcard run --trace`: what a loop did to a card. Default: the values after it."""
        state = self.own(program, self.read(after))
        return ", ".join(f"{name} {value}" for name, value in self.values(program, state).items()) or str(state)

    def format_result(self, program: Program, result: Result[State]) -> str:
        """The final values as lines of text, for `punchcard run`; none if there are ports: the output is the result."""
        if self.has_ports:
            return ""
        width = max(map(len, result.memory), default=0)
        return "\n".join(f"{name:<{width}}  {value}" for name, value in result.memory.items()) or str(result.state)

    def why_stopped(self, program: Program, result: Result[State]) -> str:
        """Why a run stopped with a fault, as a line of text."""
        return str(result.fault)

    def returned(self, program: Program, result: Result[State]) -> dict[str, Any]:
        """The returned values of a program that is a function, by name, for `punchcard run --json`. Default: none."""
        return {}

    def display_values(self, program: Program) -> list[DisplayValue]:
        """The values that a view shows, and where they are on the card. Default: what the layout declares.

        A value with the name "program counter" marks the current line of `listing`.
        """
        return values_of_layout(self.layout, self.labels(program))

    def labels(self, program: Program) -> Mapping[str, Sequence[str]]:
        """Names of numbers, by the row block or part that holds them. Default: none.

        With {"square": ["_", "a"]} a view shows a 1 in these rows as "a".
        """
        return {}

    def listing(self, program: Program, source: str | None = None) -> Listing:
        """The program's text, for a view. `source` is the text of its file, or None if there is none."""
        return Listing(lines_of(self.kind.disassemble(program) if source is None else source))

    def plain(self, value: Any) -> Any:
        """A value as JSON data."""
        return value

    def title(self) -> str:
        """The machine and its sizes, in one line."""
        return f"{self.kind.name}, design {self.design.name!r}: {', '.join(f'{k} {v}' for k, v in self.options.items())}"

    def summary(self) -> dict[str, Any]:
        """The machine's figures (layers, heads, width, parameters, ...) as plain data: see `punchcard info`."""
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
        """Draw a program's card, or any card, with matplotlib: see `punchcard.plot`."""
        from punchcard.viewer.pictures import plot

        return plot(self, shown, title=title, columns=columns, rows=rows)

    def view(self, program: Program, *, input: bytes = b"", max_steps: int | None = None) -> object:
        """For notebooks: a widget that steps through a run: see `punchcard.view`."""
        from punchcard.viewer.notebook import view

        return view(self, program, input=input, max_steps=max_steps)

    def _repr_html_(self) -> str:
        from punchcard.viewer.tables import machine_html

        return machine_html(self)

    # Files

    def describe(self) -> dict[str, Any]:
        """Sizes, design, precision and layout as plain data."""
        return {"machine": self.kind.name, "sizes": self.options, "design": self.design.name,
                "precision": self.precision.describe(), "layout": self.layout.describe()}

    def save(self, path: str | Path) -> None:
        """Save the machine, weights included, to a safetensors file."""
        storage.save(path, self.weights, self.describe())

    @classmethod
    def load(cls, path: str | Path, *, machines: Registry | None = None, **objects: Any) -> Self:
        """Load a machine from a file that `save` wrote. `Machine.load` loads any kind of machine.

            machine = punchcard.Machine.load("machine.safetensors")

        machines   a registry with your own kinds of machines
        objects    what a file cannot hold because it is code: your own function blocks, as `blocks`

        Raises `StorageError` if the file cannot be read, or if its weights do not fit its description or this version's
        layout.
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
        """Build a machine from the data that `describe` returned. Errors name `source`."""
        build = cls.builder(**objects)
        return storage.rebuild(description, cls.kind.name, build, source)

    @classmethod
    def builder(cls, **objects: Any) -> Callable[..., Self]:
        """The function that builds a machine from the options in a description."""
        if objects:
            raise PunchcardError(f"{', '.join(objects)}: a {cls.kind.name} machine is built from its description alone")
        return cls

    def store(self, program: Program) -> str:
        """A program as text, for a checkpoint. `restore` turns it into the same program."""
        return self.kind.disassemble(program)

    def restore(self, text: str) -> Program:
        """The program from the text that `store` returned."""
        program: Program = self.kind.languages[0].assemble(text)
        return program


AnyMachine: TypeAlias = Machine[Any, Any]
"""A machine of any kind."""
