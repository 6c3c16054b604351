"""Cards that run side by side, each until it stops by itself.

A `Runner` with a batch of cards makes the same loops on all of them. A `BatchRunner` lets every card stop at its own
pattern; a card that has stopped costs nothing more.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from punchcard.card.layout import Card, Pattern
from punchcard.card.packed_stack import StackedCards
from punchcard.engines.base import Run, Runner
from punchcard.engines.controls import NO_CONTROLS, Controls, Port, count_from
from punchcard.errors import PunchcardError

MOST_NOTES = 16


class BatchPorts:
    """What to call at which pattern, for every card of a batch; the patterns are the same for all."""

    def __init__(self, ports: Sequence[Mapping[Pattern, Port]]) -> None:
        if any(own.keys() != ports[0].keys() for own in ports):
            raise PunchcardError("the ports of a batch must have the same patterns for every card")
        self._ports = ports

    def of(self, number: int) -> Mapping[Pattern, Port]:
        """The ports of one card, by its number in the batch."""
        return self._ports[number]

    def serve(self, numbers: Sequence[int], loops: Sequence[int], cards: StackedCards,
              rows: Sequence[int]) -> Sequence[bool | None]:
        """Serve many cards at once, each with a pattern on it. Whether each continues; None: ask its own ports.

        `rows` says where the cards are in the stack, `loops` how many each has made.
        """
        return [None] * len(numbers)


class BatchRunner(ABC):
    """A batch of cards that is ready to run. Its engine is known before the first loop.

    engine, notes, compile_seconds   as a runner has them
    threads                          how many threads make the loops
    """

    engine: str
    notes: tuple[str, ...] = ()
    compile_seconds: float = 0.0
    threads: int = 1

    @abstractmethod
    def take(self, number: int, card: Card) -> None:
        """Continue from another card in the place of one."""

    @abstractmethod
    def run(
        self,
        loops: int,
        controls: Controls = NO_CONTROLS,
        *,
        ports: BatchPorts | None = None,
        among: Sequence[int] | None = None,
        last: bool = False,
    ) -> list[Run]:
        """Make up to `loops` loops more on every card, or on those `among` them; a run for each, in their order.

        A second call continues from the cards that the first one left; after the `last` call there is no other one, so that
        the cards of its runs may be the runner's own. A packed card may be passed to ports. `progress` is called with the
        loops made on all cards together. An interrupted batch interrupts every card that has not stopped.
        """


class SequentialBatchRunner(BatchRunner):
    """One card after the other, with one runner: for engines without a batch runner of their own."""

    def __init__(self, cards: Sequence[Card], prepare: Callable[[Card], Runner]) -> None:
        self._cards, self._runner = list(cards), prepare(cards[0])
        self.engine, self.notes, self.compile_seconds = self._runner.engine, self._runner.notes, self._runner.compile_seconds

    def take(self, number: int, card: Card) -> None:
        self._cards[number] = card

    def run(
        self, loops: int, controls: Controls = NO_CONTROLS, *, ports: BatchPorts | None = None,
        among: Sequence[int] | None = None, last: bool = False,
    ) -> list[Run]:
        runs: list[Run] = []
        before, over = 0, False
        for i in range(len(self._cards)) if among is None else among:
            self._runner.take(self._cards[i])
            over = over or (bool(runs) and controls.is_interrupted())
            ran = self._runner.run(0 if over else loops, controls.of_card(None if ports is None else ports.of(i), before))
            over = over or ran.reason == "interrupted"
            runs.append(replace(ran, reason="interrupted") if over and ran.reason == "loops" and ran.loops < loops else ran)
            self._cards[i] = ran.raw_card
            before += ran.loops
        self.notes, self.compile_seconds = self._runner.notes, self._runner.compile_seconds
        return runs


class FallbackBatchRunner(BatchRunner):
    """A batch runner whose cards continue with a slower engine, one after the other, where the fast one declines a loop."""

    def __init__(self, fast: BatchRunner, slower: Callable[[Card], Runner], why: str = "") -> None:
        self._fast, self._slower, self._why = fast, slower, why
        self.engine, self.threads, self.compile_seconds = fast.engine, fast.threads, fast.compile_seconds

    def take(self, number: int, card: Card) -> None:
        self._fast.take(number, card)

    def run(
        self, loops: int, controls: Controls = NO_CONTROLS, *, ports: BatchPorts | None = None,
        among: Sequence[int] | None = None, last: bool = False,
    ) -> list[Run]:
        runs = self._fast.run(loops, controls, ports=ports, among=among, last=last)
        self.compile_seconds = self._fast.compile_seconds
        self.notes = tuple(dict.fromkeys((*self._fast.notes, *self.notes)))[:MOST_NOTES]
        made = sum(ran.loops for ran in runs)
        for place, (number, ran) in enumerate(zip(range(len(runs)) if among is None else among, runs, strict=True)):
            if ran.reason == "declined":
                runs[place] = self._relieve(number, ran, loops, made, controls, ports)
                made += runs[place].loops - ran.loops
        return runs

    def _relieve(
        self, number: int, ran: Run, loops: int, made: int, controls: Controls, ports: BatchPorts | None
    ) -> Run:
        """The rest of the loops on a card."""
        from punchcard.transformer.torch_settings import small_numbers_kept

        own = None if ports is None else {pattern: count_from(ran.loops, port) for pattern, port in ports.of(number).items()}
        with small_numbers_kept():
            runner = self._slower(ran.raw_card)
        rest = runner.run(loops - ran.loops, controls.of_card(own, made))
        self._fast.take(number, rest.raw_card)
        by = Counter(ran.made)
        by.update(rest.made)
        self.notes = tuple(dict.fromkeys((*self.notes, *filter(None, [self._why]), *runner.notes)))[:MOST_NOTES]
        return replace(rest, loops=ran.loops + rest.loops, engine=by.most_common(1)[0][0], made=by)
