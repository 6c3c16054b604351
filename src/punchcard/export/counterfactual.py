"""Counterfactual pairs: the same program with one cell changed, and what must and must not change by that.

Three say it, and must agree after every loop: the interpreter, the circuit, and the model. For the loop in which the change
first comes to other rows, the circuit also says what happens when the output of one head or formula is taken from the other
run: the truth about activation patching.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from punchcard.card.formats import AnyArray, as_array
from punchcard.errors import CircuitError, ProgramError, PunchcardError
from punchcard.export.evaluator import Evaluation, Evaluator
from punchcard.export.lockstep import interpreted, require_values
from punchcard.machines.base import Machine
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


@dataclass(frozen=True)
class PatchEffect:
    """A node whose output is taken from the other run in one loop.

    carries   whether its output differs between the two runs at all
    changes   the row blocks and columns that are then other than in the base run, where the loop ends
    """

    node: str
    carries: bool
    changes: list[str]


@dataclass
class CounterfactualPair:
    """A program, and the same with another value in one cell."""

    cell: str
    base: Any
    other: Any
    values: tuple[Any, Any]
    changed: list[str]
    """The row blocks that differ on the two punched cards."""
    unreached: list[str]
    """The row blocks that differ after no number of loops, by the circuit."""
    after: list[LoopDifference] = field(default_factory=list)
    patching_loop: int | None = None
    patching: list[PatchEffect] = field(default_factory=list)
    cards: list[AnyArray] = field(default_factory=list)
    """Base and counterfactual, punched, and the same two after the last loop."""

    @property
    def loops(self) -> int:
        return len(self.after)

    @property
    def matters(self) -> bool:
        """Whether a change comes to another named value."""
        return any(set(each.must_change) - {self.cell} for each in self.after)


class PairMaker:
    """Makes pairs for a program on a machine, and notes what rows hold in the middle of loops."""

    def __init__(self, machine: Machine[Any, Any], program: object, evaluator: Evaluator, loops: int) -> None:
        self.machine, self.evaluator, self.loops = machine, evaluator, loops
        self.program = require_values(program, "counterfactual pairs")
        self.exact = machine.needed_bits > 0
        self.seen: dict[str, dict[str, str]] = {}

    def pairs(self, count: int, seed: int, cells: Mapping[str, Any] | None = None) -> list[CounterfactualPair]:
        """So many pairs, those that matter first; `cells` are the changed values by name; default: chosen at random."""
        generator = np.random.default_rng(seed)
        from punchcard.engines.dense import threads

        with equation.one_thread(), threads(1):  # small matrices: more threads are slower
            found = [self._pair(*chosen) for chosen in self._chosen(generator, count, cells)]
        if not found:
            raise ProgramError(f"the program has no named value that can be changed without a fault in {self.loops} loops: "
                               "name cells and their new values")
        return found

    def _chosen(self, generator: np.random.Generator, count: int, cells: Mapping[str, Any] | None
                ) -> list[tuple[str, Any, Any]]:
        """Cells, their new values, and the programs with them."""
        if cells is not None:
            return [(name, value, self.program.with_values({name: value})) for name, value in cells.items()]
        some, rest = list[tuple[str, Any, Any]](), list[tuple[str, Any, Any]]()
        for name, value in self._candidates(generator):
            try:
                other = self.program.with_values({name: value})
                self.machine.check_fits(other)
                after = self._interpreted(other)
            except PunchcardError:
                continue  # a value that the program or the machine does not take
            if after and not np.array_equal(as_array(self.machine.punch(self.program)), as_array(self.machine.punch(other))):
                matters = any(set(each.must_change) - {name} for each in after)
                (some if matters else rest).append((name, value, other))
            if len(some) == count:
                break
        return (some + rest)[:count]

    def _candidates(self, generator: np.random.Generator) -> Iterator[tuple[str, Any]]:
        """Names with new values: of the program's values first, then of its other symbols."""
        values = dict(self.machine.readout(self.program, self.machine.pack(self.program)).values)
        symbols = getattr(self.program, "symbols", ())
        for name in [*values, *(name for name in symbols if name not in values)]:
            if isinstance(name, str) and isinstance(values.get(name, 0), int | float | np.number | np.ndarray):
                yield name, _changed(values.get(name, 0), generator)

    def _interpreted(self, other: object) -> list[LoopDifference]:
        """What the interpreter alone says."""
        return [self._compared(loop, *(self._named(oracle.state) for oracle in oracles))
                for loop, oracles in interpreted(self.machine, (self.program, other), self.loops)]

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

    def _pair(self, name: str, value: object, other: object) -> CounterfactualPair:
        import torch

        machine, programs = self.machine, (self.program, other)
        start = torch.stack([machine.punch(program) for program in programs])
        before = self._named(machine.read(start[0])).get(name)
        changed = list(self._differing(*as_array(start)))
        reached = self.evaluator.circuit.reached(changed, loops=1 << 30)
        unreached = [node.id for node in self.evaluator.circuit.of_kind("rows") if node.id not in reached]
        values = _listed(machine.plain(before)), _listed(machine.plain(value))
        pair = CounterfactualPair(name, self.program, other, values, changed, unreached)
        cards, ours = start, [card.copy() for card in as_array(start)]
        for loop, oracles in interpreted(machine, programs, self.loops):
            with torch.no_grad():
                cards = machine.model(cards)
            seen = [self.evaluator.loop(card) for card in ours]
            self._check(pair, loop, as_array(cards), seen, oracles)
            self._note(seen)
            if pair.patching_loop is None and set(self._places(seen[1].end, seen[0].end)) - set(self._places(*ours)):
                pair.patching_loop, pair.patching = loop, self._patched(*seen)
            ours = [each.end for each in seen]
            pair.after.append(self._compared(loop, *(self._named(oracle.state) for oracle in oracles)))
        pair.cards = [*as_array(start), *as_array(cards)]
        return pair

    def _check(self, pair: CounterfactualPair, loop: int, cards: AnyArray, seen: Sequence[Evaluation],
               oracles: Sequence[Any]) -> None:
        """The model, the circuit and the interpreter after a loop; a pair in which they differ is refused."""
        machine, where = self.machine, f"{pair.cell}={pair.values[1]}, after loop {loop}"
        for program, card, ours, oracle in zip((pair.base, pair.other), cards, seen, oracles, strict=True):
            if not (np.array_equal(card, ours.end) if self.exact else np.allclose(card, ours.end, rtol=NEAR, atol=NEAR)):
                raise CircuitError(f"{where}: the circuit gives another card than the model, by "
                                   f"{np.abs(card - ours.end).max():g}")
            if not machine.near(program, machine.read(card), oracle.state):
                raise CircuitError(f"{where}: the model has another state than the interpreter: choose another value")
        moved = self._differing(*cards).keys() & set(pair.unreached)
        if moved:
            raise CircuitError(f"{where}: {', '.join(sorted(moved))} differs, which the circuit says cannot be reached")
        if self.exact:
            found, wanted = (self._compared(loop, *map(self._named, states)).must_change.keys() for states in (
                [machine.read(card) for card in cards], [oracle.state for oracle in oracles]))
            if found != wanted:
                raise CircuitError(f"{where}: the model changes {sorted(found)}, the interpreter {sorted(wanted)}")

    def _patched(self, base: Evaluation, other: Evaluation) -> list[PatchEffect]:
        circuit, found = self.evaluator.circuit, []
        for node in [*circuit.of_kind("head"), *circuit.of_kind("formula")]:
            output = other.outputs[node.id]
            end = self.evaluator.loop(base.cards[0], {node.id: output}).end
            carries = not np.array_equal(output, base.outputs[node.id])
            found.append(PatchEffect(node.id, carries, self._places(end, base.end)))
        return found

    def _places(self, one: AnyArray, two: AnyArray) -> list[str]:
        return [f"{block} in {self.machine.column_name(column, self.program)}"
                for block, columns in self._differing(one, two).items() for column in columns.tolist()]

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


def _listed(value: object) -> object:
    return value.tolist() if isinstance(value, np.ndarray) else value


Changeable: TypeAlias = "int | float | np.number[Any] | AnyArray"
CONTENTS = ("zero", "bits", "integers", "numbers")


def _content(entries: AnyArray) -> str:
    if not entries.any():
        return "zero"
    if (np.abs(entries) == 1).all():
        return "bits"
    return "integers" if (entries == np.round(entries)).all() else "numbers"


def _changed(value: Changeable, generator: np.random.Generator) -> int | AnyArray:
    """Another value of the same kind: an integer a little larger or smaller, or a matrix with one such entry."""
    step = int(generator.choice([-3, -2, -1, 1, 2, 3]))
    if isinstance(value, int | np.integer):
        return int(value) + step
    entries = np.array(value, dtype=np.float64)
    place = tuple(int(generator.integers(0, size)) for size in entries.shape)
    entries[place] += np.sign(step) if float(entries[place]).is_integer() else 0.25 * entries[place]
    return entries
