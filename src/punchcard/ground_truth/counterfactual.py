"""Counterfactual runs: a program with one thing changed, and what must and must not change by that.

Three say it, and must agree after every loop: the interpreter, the circuit, and the model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from punchcard.card.formats import AnyArray, as_array
from punchcard.errors import CircuitError, ProgramError
from punchcard.export.evaluator import Evaluation, Evaluator
from punchcard.export.lockstep import interpreter_cards
from punchcard.ground_truth.pairs import collected
from punchcard.machines.base import AnyMachine
from punchcard.machines.variation import ChangedProgram, variation_of
from punchcard.transformer import equation

COUNTER = "program counter"
NEAR = 1e-6
"""How near the circuit's cards are to the model's where numbers are real; bits are equal."""


@dataclass(frozen=True)
class LoopDifference:
    """Named values after a loop: those that differ, with both values, and those that do not."""

    loop: int
    must_change: dict[str, list[Any]]
    must_not_change: list[str]


@dataclass
class CounterfactualRun:
    """A run of a program, and of the same with one thing changed: `about` says what, `kind` which kind of thing."""

    kind: str
    about: str
    base: Any
    other: Any
    changed: list[str]
    """The row blocks that differ on the two punched cards."""
    unreached: list[str]
    """The row blocks that differ after no number of loops, by the circuit."""
    after: list[LoopDifference] = field(default_factory=list)
    cards: list[AnyArray] = field(default_factory=list)
    """Base and counterfactual, punched, and the same two after the last loop."""

    @property
    def loops(self) -> int:
        return len(self.after)


class RunMaker:
    """Makes counterfactual runs of a program on a machine, and notes what rows hold in the middle of loops."""

    def __init__(self, machine: AnyMachine, program: object, evaluator: Evaluator, loops: int) -> None:
        self.machine, self.program, self.evaluator, self.loops = machine, program, evaluator, loops
        self.exact = machine.needed_bits > 0
        self.seen: dict[str, dict[str, str]] = {}

    def runs(self, count: int, seed: int) -> list[CounterfactualRun]:
        """So many runs, or as many as are found; no two of programs that are the same."""
        from punchcard.engines.dense import threads

        generator = np.random.default_rng(seed)
        variation = variation_of(self.machine, generator)
        states = [oracle.state for _, (oracle,) in interpreter_cards(self.machine, [self.program], self.loops)]
        made = {as_array(self.machine.punch(self.program)).tobytes()}

        def make(kind: str) -> CounterfactualRun | None:
            changed = self._fitting(variation.changed(self.program, kind, variation.pick(states)))
            key = b"" if changed is None else as_array(self.machine.punch(changed.program)).tobytes()
            if changed is None or key in made or not self._matters(changed.program):
                return None
            made.add(key)
            return self.run(changed)

        with equation.one_thread(), threads(1):  # small matrices: more threads are slower
            found = collected(variation.kinds, count, make, exact=self.exact) if states else []
        if not found:
            raise ProgramError(f"nothing of the program can be changed without a fault in {self.loops} loops: use another, "
                               "or fewer loops")
        return found

    def _fitting(self, changed: ChangedProgram | None) -> ChangedProgram | None:
        """Refuse what the machine does not take."""
        if changed is not None:
            self.machine.check_fits(changed.program)
        return changed

    def _matters(self, other: object) -> bool:
        """Whether the runs can be compared for a loop or more, and end with other named values, by the interpreter."""
        last = None
        for loop, oracles in interpreter_cards(self.machine, (self.program, other), self.loops):
            last = self._compared(loop, *(self._named(oracle.state) for oracle in oracles))
        return last is not None and bool(last.must_change)

    def _named(self, state: object) -> dict[str, Any]:
        own = self.machine.own(self.program, state)
        counter = getattr(own, "program_counter", None)
        return {**self.machine.values(self.program, own), **({} if counter is None else {COUNTER: counter})}

    def _compared(self, loop: int, one: Mapping[str, Any], two: Mapping[str, Any]) -> LoopDifference:
        differ = [name for name in one if not np.array_equal(one[name], two[name])]
        plain = self.machine.plain
        return LoopDifference(loop, {name: [plain(one[name]), plain(two[name])] for name in differ},
                     [name for name in one if name not in differ])

    # The circuit and the model beside the interpreter

    def run(self, changed: ChangedProgram) -> CounterfactualRun:
        """The run of a program with a change, compared after every loop."""
        import torch

        machine, programs = self.machine, (self.program, changed.program)
        start = torch.stack([machine.punch(program) for program in programs])
        rows = list(self._differing(*as_array(start)))
        reached = self.evaluator.circuit.reached(rows, loops=1 << 30)
        unreached = [node.id for node in self.evaluator.circuit.of_kind("rows") if node.id not in reached]
        found = CounterfactualRun(changed.kind, changed.about, *programs, rows, unreached)
        cards, ours = start, list(as_array(start))
        for loop, oracles in interpreter_cards(machine, programs, self.loops):
            with torch.no_grad():
                cards = machine.model(cards)
            seen = [self.evaluator.loop(card) for card in ours]
            self._check(found, loop, as_array(cards), seen, oracles)
            self._note(seen)
            ours = [each.end for each in seen]
            found.after.append(self._compared(loop, *(self._named(oracle.state) for oracle in oracles)))
        found.cards = [*as_array(start), *as_array(cards)]
        return found

    def _check(self, run: CounterfactualRun, loop: int, cards: AnyArray, seen: Sequence[Evaluation],
               oracles: Sequence[Any]) -> None:
        """The model, the circuit and the interpreter after a loop; a run in which they differ is refused."""
        machine, where = self.machine, f"{run.about}, after loop {loop}"
        for program, card, ours, oracle in zip((run.base, run.other), cards, seen, oracles, strict=True):
            if not (np.array_equal(card, ours.end) if self.exact else np.allclose(card, ours.end, rtol=NEAR, atol=NEAR)):
                raise CircuitError(f"{where}: the circuit gives another card than the model, by "
                                   f"{np.abs(card - ours.end).max():g}")
            if not machine.near(program, machine.read(card), oracle.state):
                raise CircuitError(f"{where}: the model has another state than the interpreter: choose another value")
        moved = self._differing(*cards).keys() & set(run.unreached)
        if moved:
            raise CircuitError(f"{where}: {', '.join(sorted(moved))} differs, which the circuit says cannot be reached")
        if self.exact:
            found, wanted = (self._compared(loop, *map(self._named, states)).must_change.keys() for states in (
                [machine.read(card) for card in cards], [oracle.state for oracle in oracles]))
            if found != wanted:
                raise CircuitError(f"{where}: the model changes {sorted(found)}, the interpreter {sorted(wanted)}")

    def _differing(self, one: AnyArray, two: AnyArray) -> dict[str, AnyArray]:
        """The row blocks in which two cards differ, and the columns."""
        differs = (one != two) if self.exact else np.abs(one - two) > NEAR
        found = {node.id: np.flatnonzero(differs[node.number : node.number + node.about["rows"]].any(axis=0))
                 for node in self.evaluator.circuit.of_kind("rows")}
        return {block: columns for block, columns in found.items() if len(columns)}

    def _note(self, seen: Sequence[Evaluation]) -> None:
        """What the rows of each variable in the middle of a loop were seen to hold, by region."""
        circuit, layout = self.evaluator.circuit, self.machine.layout
        for variable in circuit.variables:
            if variable.moment:
                node, held = circuit.node(variable.rows), self.seen.setdefault(variable.name, {})
                for region in layout.regions:
                    entries = np.stack([each.cards[variable.moment] for each in seen])
                    part = entries[:, node.number : node.number + node.about["rows"], layout.region(region.name)]
                    held[region.name] = max(held.get(region.name, "zero"), _content(part), key=CONTENTS.index)


CONTENTS = ("zero", "bits", "integers", "numbers")


def _content(entries: AnyArray) -> str:
    if not entries.any():
        return "zero"
    if (np.abs(entries) == 1).all():
        return "bits"
    return "integers" if (entries == np.round(entries)).all() else "numbers"
