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
from punchcard.engines.base import Run, Runner
from punchcard.engines.controls import NO_CONTROLS, Controls, Port, count_from

MOST_NOTES = 16
Ports = Sequence[Mapping[Pattern, Port]]
"""For every card of a batch what to call at which pattern; the patterns are the same for all."""


class BatchRunner(ABC):
    """Cards that are ready to be run; what runs them is known before the first loop.

    engine, notes, compile_seconds   as a runner has them
    threads                          how many threads make the loops
    """

    engine: str
    notes: tuple[str, ...] = ()
    compile_seconds: float = 0.0
    threads: int = 1

    @abstractmethod
    def take(self, number: int, card: Card) -> None:
        """Go on from another card in the place of one."""

    @abstractmethod
    def run(
        self,
        loops: int,
        controls: Controls = NO_CONTROLS,
        *,
        ports: Ports | None = None,
        among: Sequence[int] | None = None,
    ) -> list[Run]:
        """Make up to `loops` loops more on every card, or on those `among` them; a run for each, in their order.

        A second call goes on from the cards that the first one left. `ports` has an entry for every card of the batch, and
        a packed card may be passed to them. `progress` is called with the loops made on all cards together. An interrupted
        batch interrupts every card that has not stopped.
        """


class SequentialBatchRunner(BatchRunner):
    """One card after the other, with one runner: for engines without a batch runner of their own."""

    def __init__(self, cards: Sequence[Card], prepare: Callable[[Card], Runner]) -> None:
        self._cards, self._runner = list(cards), prepare(cards[0])
        self.engine, self.notes, self.compile_seconds = self._runner.engine, self._runner.notes, self._runner.compile_seconds

    def take(self, number: int, card: Card) -> None:
        self._cards[number] = card

    def run(
        self, loops: int, controls: Controls = NO_CONTROLS, *, ports: Ports | None = None, among: Sequence[int] | None = None
    ) -> list[Run]:
        runs: list[Run] = []
        before, over = 0, False
        for i in range(len(self._cards)) if among is None else among:
            self._runner.take(self._cards[i])
            over = over or (bool(runs) and controls.is_interrupted())
            ran = self._runner.run(0 if over else loops, controls.of_card(None if ports is None else ports[i], before))
            over = over or ran.reason == "interrupted"
            runs.append(replace(ran, reason="interrupted") if over and ran.reason == "loops" and ran.loops < loops else ran)
            self._cards[i] = ran.raw_card
            before += ran.loops
        self.notes, self.compile_seconds = self._runner.notes, self._runner.compile_seconds
        return runs


class FallbackBatchRunner(BatchRunner):
    """A batch runner whose cards go on with a slower engine, one after the other, where the fast one declines a loop."""

    def __init__(self, fast: BatchRunner, slower: Callable[[Card], Runner], why: str = "") -> None:
        self._fast, self._slower, self._why = fast, slower, why
        self.engine, self.threads, self.compile_seconds = fast.engine, fast.threads, fast.compile_seconds

    def take(self, number: int, card: Card) -> None:
        self._fast.take(number, card)

    def run(
        self, loops: int, controls: Controls = NO_CONTROLS, *, ports: Ports | None = None, among: Sequence[int] | None = None
    ) -> list[Run]:
        runs = self._fast.run(loops, controls, ports=ports, among=among)
        self.compile_seconds = self._fast.compile_seconds
        self.notes = tuple(dict.fromkeys((*self._fast.notes, *self.notes)))[:MOST_NOTES]
        made = sum(ran.loops for ran in runs)
        for place, (number, ran) in enumerate(zip(range(len(runs)) if among is None else among, runs, strict=True)):
            if ran.reason == "declined":
                runs[place] = self._relieve(number, ran, loops, made, controls, ports)
                made += runs[place].loops - ran.loops
        return runs

    def _relieve(
        self, number: int, ran: Run, loops: int, made: int, controls: Controls, ports: Ports | None
    ) -> Run:
        """The rest of the loops on a card."""
        from punchcard.transformer.torch_settings import small_numbers_kept

        own = None if ports is None else {pattern: count_from(ran.loops, port) for pattern, port in ports[number].items()}
        with small_numbers_kept():
            runner = self._slower(ran.raw_card)
        rest = runner.run(loops - ran.loops, controls.of_card(own, made))
        self._fast.take(number, rest.raw_card)
        by = Counter(ran.made)
        by.update(rest.made)
        self.notes = tuple(dict.fromkeys((*self.notes, *filter(None, [self._why]), *runner.notes)))[:MOST_NOTES]
        return replace(rest, loops=ran.loops + rest.loops, engine=by.most_common(1)[0][0], made=by)
