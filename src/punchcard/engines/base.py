"""What an engine is: it prepares a run from a model, a layout and a card, says what it is, and then makes loops."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial, reduce
from operator import add
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

from punchcard.card.layout import Card, CardHolder, Layout, Pattern
from punchcard.card.packed import PackedCard
from punchcard.engines.controls import NO_CONTROLS, Controls, Port, ServedInput, Skip
from punchcard.errors import LayoutError, PunchcardError

if TYPE_CHECKING:
    from torch import Tensor

    from punchcard.engines.lowered.compiled_model import CompiledModel

Reason: TypeAlias = Literal["matched", "loops", "interrupted", "stopped", "declined"]


@dataclass(frozen=True)
class TraceReport:
    """What traces did: native code for what comes back on a card again and again.

    loops     loops made in traces
    exits     how often a trace was left, most times because a guard failed
    compiled  how often traces were compiled;  states  how many hot states the last ones have
    seconds   time for sampling and compiling
    off       why there are none, if they were switched off
    """

    loops: int = 0
    exits: int = 0
    compiled: int = 0
    states: int = 0
    seconds: float = 0.0
    off: str = ""

    @staticmethod
    def total(*parts: TraceReport | None) -> TraceReport | None:
        """Of parts of a run; None if none of them had any traces."""
        found = [part for part in parts if part is not None]
        return reduce(add, found) if found else None

    def __sub__(self, before: TraceReport) -> TraceReport:
        """What was added since."""
        return TraceReport(self.loops - before.loops, self.exits - before.exits, self.compiled - before.compiled,
                           self.states, self.seconds - before.seconds, self.off)

    def __add__(self, more: TraceReport) -> TraceReport:
        return TraceReport(self.loops + more.loops, self.exits + more.exits, self.compiled + more.compiled, more.states,
                           self.seconds + more.seconds, more.off)


@dataclass(frozen=True)
class Run(CardHolder):
    """The result of `Runner.run`: the last card, the number of loops, and why it ended.

    reason            a pattern of `until` matched, all loops were made, it was interrupted, a port stopped the run, or
                      the engine declined the next loop: the last note says why, and the card is as it was before it
    engine            the engine that made most of the loops, or would have made the first
    matched           the pattern that ended the run: one of `until`, or the one whose port stopped the run
    notes             why a faster engine was not used, or why cached code was not
    compile_seconds   time for compiling in this call; that for preparing is the runner's
    made              how many loops each engine made
    traces            what traces did in this call, or None if the engine has none
    """

    raw_card: Card = field(repr=False)
    loops: int
    reason: Reason
    engine: str
    matched: Pattern | None = None
    notes: tuple[str, ...] = ()
    compile_seconds: float = 0.0
    made: Mapping[str, int] = field(default_factory=dict)
    traces: TraceReport | None = None


class Runner(ABC):
    """A card that is ready to run. Its engine is known before the first loop.

    engine            the engine that will make the loops
    notes             why a faster engine is not used, or why cached code is not; a run may add to them
    compile_seconds   time for compiling so far, during preparation and runs
    """

    engine: str
    notes: tuple[str, ...] = ()
    compile_seconds: float = 0.0

    @property
    @abstractmethod
    def card(self) -> Tensor:
        """The card between two calls of `run`, as a copy."""

    @property
    def raw_card(self) -> Card:
        """The same card in the engine's form: packed, if the engine takes packed cards."""
        return self.card

    @abstractmethod
    def take(self, card: Card) -> None:
        """Continue from another card of the same shape. What was prepared is used again."""

    @abstractmethod
    def run(self, loops: int, controls: Controls = NO_CONTROLS) -> Run:
        """Make up to `loops` loops more; a second call continues from the card that the first one left.

        Of a batch of cards, the run ends once every card shows a pattern of `until`; a batch has no ports. Loops are counted
        from this call on.
        """


class Engine(Protocol):
    """Prepares a run of a card, or of a batch of cards.

    `layout` says what the rows hold and what a loop may change; without it only slow engines apply. `loops` is how many
    are expected, None for many. `cache` holds compiled code for the caller.

    The model is a `LoopedTransformer` and the card a tensor. An engine with an attribute `takes_packed` that is true also
    takes `Weights`, and a packed card.
    """

    def __call__(self, model: Any, layout: Layout | None, card: Any, *, loops: int | None = None,
                 cache: EngineCache | None = None) -> Runner: ...


AnyEngine = TypeVar("AnyEngine", bound=Engine)


def taking_packed(engine: AnyEngine) -> AnyEngine:
    """Mark a function as an engine that takes `Weights` and packed cards."""
    engine.takes_packed = True  # type: ignore[attr-defined]
    return engine


@dataclass(frozen=True)
class Stops:
    """The patterns at which a run stops, checked against the layout. Engines match them after each loop."""

    layout: Layout | None
    until: tuple[Pattern, ...]
    ports: Mapping[Pattern, Port]

    @classmethod
    def of(cls, shape: tuple[int, ...], layout: Layout | None, controls: Controls) -> Stops:
        """The patterns of controls, for a card, or a batch of cards, of a shape."""
        found, ports = controls.patterns, controls.ports
        if (found or ports) and layout is None:
            raise LayoutError("`until` and `ports` name rows of the card: they need the card's layout")
        if ports and len(shape) != 2:
            raise PunchcardError(f"ports serve one card, not a batch of shape {tuple(shape)}")
        if layout is not None:
            for pattern in (*found, *ports):
                layout.pattern_column(pattern)  # refuses one that does not fit
        return cls(layout, found, ports)

    def matched(self, card: Card) -> Pattern | None:
        """The pattern of `until` that is on the card; for a batch, the last one when each card shows one."""
        if not self.until or self.layout is None:
            return None
        shown: list[Any] = [self.layout.matches(card, pattern) for pattern in self.until]
        every = shown[0]
        for more in shown[1:]:
            every = every | more
        if not bool(every.all()):
            return None
        return next(p for p, where in zip(self.until, shown, strict=True) if bool(where.reshape(-1)[-1]))

    def at_port(self, card: Card) -> bool:
        """Whether there is a port to serve."""
        return self.layout is not None and any(bool(self.layout.matches(card, pattern)) for pattern in self.ports)

    @cached_property
    def _bound(self) -> dict[int, tuple[PackedCard, list[PortLook]]]:
        """Ports as they are asked for on the packed card that was served last."""
        return {}

    def _looks(self, card: Card, *, often: bool = True) -> list[PortLook]:
        """The ports in order, and how to see whether their patterns are on a card."""
        layout = self.layout
        assert layout is not None  # there are no ports without one
        if not isinstance(card, PackedCard) or not often:
            return [PortLook(pattern, port, partial(layout.matches, card, pattern)) for pattern, port in self.ports.items()]
        known = self._bound.get(id(card))
        if known is None:
            self._bound.clear()
            self._bound[id(card)] = known = card, [
                PortLook(pattern, port, layout.look_for(card, pattern)) for pattern, port in self.ports.items()]
        return known[1]

    def serve(self, loop: int, card: Card, first: int = 0, skips: list[Skip] | None = None, *,
              found: bool = False, often: bool = True) -> Pattern | None:
        """Call the ports, from a number on, whose patterns are on the card; the pattern of one that stops the run.

        `found`: the first of them is known to be there. `skips` takes what the only port that was called says of the next
        loops: what another one does, it does not know. `often`: the card is likely to be served again.
        """
        looks, answers = self._looks(card, often=often) if self.ports else [], []
        instead: tuple[Pattern, ...] = ()
        for look in looks[first:] if first else looks:
            if look.pattern not in instead and (found or look.on()):
                answers.append(look.port(loop, card))
                if not answers[-1]:
                    return look.pattern
                if isinstance(answers[-1], ServedInput):
                    instead = answers[-1].instead
            found = False
        if skips is not None and len(answers) == 1 and isinstance(answers[0], Skip):
            skips.append(answers[0])
        return None


class PortLook(NamedTuple):
    """A port, its pattern, and a function that says whether this is on a card."""

    pattern: Pattern
    port: Port
    on: Callable[[], Any]


def skip_loops(skips: list[Skip], card: Card, room: int) -> int:
    """Change a card as the loops would that a port knows, up to `room` of them; how many those are."""
    skipped = 0
    while skips:
        skip = skips.pop()
        skipped = max(0, min(skip.loops, room))
        if skipped:
            skip.advance(card, skipped)
    return skipped


class LoopRunner(Runner):
    """A runner that makes the loops itself. The patterns of a run are checked before its first loop.

    layout   of the card, or None: then a run has no patterns
    shape    of the card, or of the batch of cards
    """

    layout: Layout | None
    shape: tuple[int, ...]

    def run(self, loops: int, controls: Controls = NO_CONTROLS) -> Run:
        return self.make_loops(loops, controls, Stops.of(self.shape, self.layout, controls))

    @abstractmethod
    def make_loops(self, loops: int, controls: Controls, stops: Stops) -> Run:
        """See `run`."""


@dataclass
class CompileCount:
    """How many pieces of code were compiled, and whether one is being compiled now: for who watches in another thread."""

    pieces: int = 0
    is_compiling: bool = False


@dataclass
class EngineCache:
    """The compiled models of one machine, in memory: code and tables, each for all cards with the same static rows.

    They belong to the weights and the layout that were compiled. With other weights, also in the same tensors, the cache
    starts empty.
    """

    compiled_models: list[CompiledModel] = field(default_factory=list)
    count: CompileCount = field(default_factory=CompileCount)
