"""The plan of a loop: what is to be computed, checked and stored, as the code generator takes it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from punchcard.engines.lowered.analysis.columns import StateSlot
from punchcard.engines.lowered.graph.nodes import Array, Linear, Node, reachable
from punchcard.engines.lowered.graph.operations import STATE
from punchcard.errors import LoweringError

MOST_DIMS = 26


@dataclass(frozen=True)
class Lookup:
    """From the signs of some dimensions of a query (or key) to the passive column that has the best key (or query).

    find      an active query looks for passive keys; the best must score at least `least`, and `exact` where one is given
    store     an active key looks for the passive queries that it beats; in the regions `closed` nothing may be stored
    dims      dimensions that are ±`sizes`;  rest  the values of the other dimensions
    """

    kind: str
    layer: int
    head: int
    dims: tuple[int, ...]
    sizes: tuple[float, ...]
    rest: tuple[float, ...]
    least: float
    exact: float | None = None
    closed: tuple[str, ...] = ()

    @classmethod
    def restore(cls, data: dict[str, Any]) -> Lookup:
        fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in data.items()}
        return cls(**fields)


@dataclass(frozen=True)
class Check:
    """Something that must be true, or the loop is left to a slower engine: "bits" (±1) or "real" (at most `limit`).

    `entries`: a value with several, each by itself, if it may be proven so.
    """

    value: Linear
    kind: str
    limit: float = 1.0
    entries: tuple[Linear, ...] = ()

    @property
    def bit(self) -> Node | None:
        """The node that is checked to be ±1."""
        return next(iter(self.value.terms)) if self.kind == "bits" and self.value.single is not None else None


@dataclass
class Store:
    """What passive columns take from active ones: for each column of `index` a row of new values.

    index     the passive columns, one for each active column that may store;  mask  which do
    rows      new values over the column's own rows (loads) and what active columns pass to it (given)
    given     the active values behind the given nodes, one entry for each column of `index`
    kinds     what must be true of a value that is stored;  later  rows that the next loop changes once more, as it will
    """

    index: Node
    mask: Array
    rows: dict[int, Linear]
    given: dict[Node, Linear]
    kinds: dict[int, tuple[str, float]]
    later: dict[int, Linear] = field(default_factory=dict)


@dataclass
class LoopPlan:
    """One loop, or (with `selectors`) only the part that decides which plan to follow."""

    states: dict[StateSlot, Linear] = field(default_factory=dict)
    checks: list[Check] = field(default_factory=list)
    distinct: list[tuple[Node, Array]] = field(default_factory=list)
    stores: list[Store] = field(default_factory=list)
    selectors: list[Linear] = field(default_factory=list)
    tables: list[Lookup] = field(default_factory=list)
    settles: dict[int, Linear] = field(default_factory=dict)
    families: dict[Hashable, dict[int, Node]] = field(default_factory=dict)
    """Rows of a block, somewhere in the loop, that are checked to be bits: by place."""
    checked: set[Node] = field(default_factory=set)
    """What is checked to be a bit already."""

    def read(self) -> set[int]:
        """Rows that an earlier part of the loop has left, and that this one looks at."""
        rows = [row for store in self.stores for row in store.rows.values()]
        return {node.data.row for node in reachable([*self.forms(), *rows]) if node.op is STATE and node.data.passing}

    def forms(self) -> list[Linear]:
        """All that active columns compute."""
        indices = [Linear({node: 1.0}) for node in (*(s.index for s in self.stores), *(code for code, _ in self.distinct))]
        return [*self.states.values(), *(check.value for check in self.checks), *self.selectors, *indices,
                *(value for store in self.stores for value in store.given.values())]

    def check(self, checks: Iterable[Check]) -> None:
        """Check more, but no bit twice."""
        for check in checks:
            if check.bit is None or check.bit not in self.checked:
                self.checks.append(check)
            if check.bit is not None:
                self.checked.add(check.bit)

    def table(self, table: Lookup) -> int:
        """The number of a table, new or known."""
        if len(table.dims) > MOST_DIMS:
            raise LoweringError(f"layer {table.layer + 1}, head {table.head + 1}: a table of {len(table.dims)} bits is "
                                f"too large, the most is {MOST_DIMS}")
        if table not in self.tables:
            self.tables.append(table)
        return self.tables.index(table)

    def close(self, number: int, regions: Iterable[str]) -> None:
        """Nothing may be stored to these regions by a table."""
        table = self.tables[number]
        self.tables[number] = replace(table, closed=tuple(sorted({*table.closed, *regions})))


@dataclass(frozen=True)
class LoopParts:
    """The plans of a loop with some of its cases, by key. All of them ask the same list of tables.

    choose        what decides on the case; None if there is only one, whose key is 0
    first, rest   what all cases share, before and after; of several versions of the rest, `turn` decides on one
    """

    cases: dict[int, LoopPlan]
    choose: LoopPlan | None = None
    first: LoopPlan | None = None
    rest: tuple[LoopPlan, ...] = ()
    turn: LoopPlan | None = None

    @property
    def all(self) -> list[LoopPlan]:
        return [plan for plan in (self.choose, self.first, self.turn, *self.rest, *self.cases.values()) if plan is not None]

    @property
    def tables(self) -> list[Lookup]:
        return self.all[0].tables

    def read(self) -> set[int] | None:
        """Rows that the cases leave for the rest, if there is a rest."""
        late = (self.turn, *self.rest) if self.rest else ()
        return {row for plan in late if plan is not None for row in plan.read()} if late else None
