"""Symbolic execution of one loop: active groups through all layers, passive columns where an active one stores to them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np

from punchcard.engines.lowered.analysis.attention import ActiveHead, Offer
from punchcard.engines.lowered.analysis.buffer_layout import CHUNK
from punchcard.engines.lowered.analysis.columns import SharedLayers, StateSlot, within
from punchcard.engines.lowered.analysis.exact_sums import Rows
from punchcard.engines.lowered.analysis.passive import Passive
from punchcard.engines.lowered.analysis.plan import Check, LoopPlan, Store
from punchcard.engines.lowered.graph.nodes import BIT, Array, Linear, Node, constant, leaves, reachable
from punchcard.engines.lowered.graph.operations import BITS, GATHER, GIVEN, LOAD, STATE, UNKNOWN
from punchcard.errors import LoweringError
from punchcard.transformer.summation import bits_for

CHECKED = (BITS, STATE, GATHER)
"""What a row is that holds ±1 for sure."""
MOST_CHOICES = 16
"""Offers of other heads, together, that are tried."""


class NotUniform(LoweringError):
    """Active columns that began alike came to hold different values."""


class Trace:
    """Follows a loop. `case` gives the values of the selector rows; without one, the trace stops once they are known.

    A loop may be cut (see `SharedLayers`): then a case is followed through some layers, up to what is `passing` there, and
    what all cases have in common is followed once, without a case: the `first` part and the `rest`.
    """

    def __init__(self, passive: Passive, case: Mapping[int, float] | None, significand: int, shared: SharedLayers,
                 follow: Mapping[StateSlot, Array] | None = None) -> None:
        self.passive, self.case, self.significand = passive, case, significand
        self.shared, self.follow = shared, follow or {}
        self.columns, self.layers, self.graph = passive.columns, passive.columns.layers, passive.graph
        self.cut, self.passing = shared.cut, shared.passing
        columns, self.plan = self.columns, LoopPlan(settles=passive.settles)
        self.groups = columns.active_rows(self.graph)
        self.begin = [dict(rows) for rows in self.groups]
        self.within = {row: columns.layout.rows(block.name).start for row, block in columns.block_of.items()
                       if block.within == "bits"}
        """Rows that hold ±1 in the middle of a loop, where they are not 0; and the first row of their block."""
        self.selectors = columns.selectors
        self.selected = False
        self.heads: list[ActiveHead] = []
        self.offers: list[dict[int, list[Offer]]] = []
        """By layer and head."""
        self.stored_in: int | None = None
        self.stage = 0, ""
        """Where in the loop the trace is."""
        self.read_in = 0

    def run(self) -> LoopPlan:
        if self._begins_selected():
            return self.plan
        self._follow(range(self.cut))
        if self.cut < len(self.layers):
            self._pass()
            return self.plan
        return self._ended()

    def first(self) -> LoopPlan:
        """What the first layer gives in all cases."""
        self.selected = True
        self._attend(0)
        self._check_idle()
        taken, given = self.shared.taken, self.shared.given
        self.plan.states.update({slot: self.groups[0].get(slot.row, Linear()) for slot in taken})
        if given:
            wanted = {slot.row for slot in given}
            rows = self.layers[0].feed_forward(self.graph, self.groups[0], only=wanted)
            self.stage = 0, "units"
            self._within(rows, [row for row in rows if row in wanted])
            self.plan.states.update({slot: rows.get(slot.row, Linear()) for slot in given})
        self._check_exact()
        self._check_states()
        return self.plan

    def turn(self) -> LoopPlan:
        """What decides between the versions of the rest."""
        late = [slot for slot in self.passing if slot.row in self.shared.late]
        self.plan.selectors += [Linear({self.graph.node(STATE, (), slot): 1.0}) for slot in late]
        return self.plan

    def rest(self) -> LoopPlan:
        """The layers after the cut, the same for all cases; in the version for one setting of the late selectors."""
        self.selected = True
        self.groups[0].update(self._carried(self.passing))
        for row in self.shared.late:
            assert self.case is not None
            self.groups[0][row] = constant(self.case[row])
        self.offers = [{} for _ in range(self.cut)]
        self._follow(range(self.cut, len(self.layers)))
        return self._ended()

    def _follow(self, numbers: range) -> None:
        for number in numbers:
            known: Rows = {}
            if number == 0 and self.shared.taken:
                self.groups[0].update(self._carried(self.shared.taken))
                self.offers.append({})
                known = self._carried(self.shared.given)
            elif self._attend(number):
                return
            before = self.groups
            self.groups = [self.layers[number].feed_forward(self.graph, rows, known) for rows in before]
            self.stage = number, "units"
            for rows, old in zip(self.groups, before, strict=True):  # all other rows were looked at before
                self._within(rows, [row for row, linear in rows.items() if linear is not old.get(row)])

    def _carried(self, slots: Sequence[StateSlot]) -> Rows:
        """Rows that an earlier part of the loop has left."""
        return {slot.row: self.graph.kept(Linear({self.graph.node(STATE, (), slot): 1.0})) for slot in slots}

    def _check_idle(self) -> None:
        """Layers before the rest of a loop must not store."""
        for number, offers in enumerate(self.offers):
            rows = self.passive.layers[number].rows
            if offers and not self._idle(number, rows, self.passive.finds(number, rows)):
                raise LoweringError(f"layer {number + 1} stores, before the layers that are the same for all cases")

    def _pass(self) -> None:
        """What the rest of the loop begins with: bits where it takes them for that, and all else as it was."""
        self._check_idle()
        rows, begin, slots = self.groups[0], self.begin[0], {slot.row: slot for slot in self.passing}
        for row in {*rows, *begin, *slots}:
            after = rows.get(row, Linear())
            if row in slots:
                self.plan.states[slots[row]] = after
            elif row not in self.selectors and not after.same(begin.get(row, Linear())):
                raise LoweringError(f"row {row} is changed by layers that should not change it")
        self._check_exact()
        self._check_states()

    def _ended(self) -> LoopPlan:
        if self.case is None and self.selectors and self.cut == len(self.layers):
            return self.plan
        for number, offers in enumerate(self.offers):
            rows = self.passive.layers[number].rows
            if not self._idle(number, rows, self.passive.finds(number, rows)):
                for head, found in offers.items():
                    for offer in found:
                        self._store(number, head, offer)
        if self.stored_in is not None and self.read_in > self.stored_in:
            raise LoweringError(
                f"layer {self.read_in + 1} reads passive columns after layer {self.stored_in + 1} has stored")
        self._finish()
        return self.plan

    def _begins_selected(self) -> bool:
        """Selectors that active columns carry from loop to loop; whether there are any, and there is no case."""
        for rows in self.groups:
            for row in [r for r in self.selectors if r in rows and not rows[r].is_constant]:
                self.selected = True
                if self.case is not None:
                    rows[row] = self.graph.kept(constant(self.case[row]))
        if self.selected and self.case is None:
            self._select()
            return True
        self._suppose()
        return False

    def _suppose(self) -> None:
        """What follows from a case is taken to be what it was when the case was first met, and that is checked."""
        checked = set[StateSlot]()
        for rows in self.groups:
            for row, linear in rows.items():
                single = linear.single
                slot = single[0].data if single is not None and single[0].op is STATE else None
                if slot is not None and slot in self.follow:
                    rows[row] = self.graph.kept(constant(self.follow[slot]))
                    if slot not in checked:
                        departs = linear.copy()
                        departs.add(rows[row], -1.0)
                        self.plan.checks.append(Check(departs, "real", 0.0))
                    checked.add(slot)

    def _attend(self, number: int) -> bool:
        """All heads of a layer, in all groups; whether the selectors are known now and there is no case."""
        if number and not self.layers[number].heads:  # rows are as the layer before has left them
            self.offers.append({})
            return False
        layer = self.layers[number]
        layer.check_heads(self.graph, [self.passive.layers[number].rows, *self.groups])
        heads = [self._head(number, head) for head in range(len(layer.heads))]
        self.heads += heads
        if any(head.reads for head in heads):
            self.read_in = number
        self.offers.append({at: head.offers for at, head in enumerate(heads)})
        known, self.stage = False, (number, "heads")
        for group, rows in enumerate(self.groups):
            more = [head.taken[group] for head in heads]
            total = layer.sums.add(layer.where, rows, more)
            rows.update({row: self.graph.kept(self.graph.gathered(total[row])) for brought in more for row in brought})
            known |= self._within(rows)
        self.selected |= known
        if known and self.case is None:
            self._select()
            return True
        return False

    def _head(self, number: int, head: int) -> ActiveHead:
        """A head, as it was found before for these rows and these numbers of its tables, or new; and what it checks."""
        looked_at = self.layers[number].heads[head].looked_at
        name = (number, head, *(rows.get(row) for rows in self.groups for row in looked_at))
        known = self.graph.once(name, list[ActiveHead])
        found = next((one for one in known if all(self.plan.table(table) == at for table, at in one.asked.items())), None)
        if found is None:
            found = ActiveHead(self.passive, number, head, [dict(rows) for rows in self.groups], self.plan.table)
            known.append(found)
        self.plan.check(found.checks)
        self.plan.distinct += found.distinct
        return found

    def _within(self, rows: Rows, only: Sequence[int] | None = None) -> bool:
        """Selectors become constants, declared bits are checked; whether selectors were met."""
        known = False
        for row in [r for r in (rows if only is None else only) if r in self.within and not rows[r].is_constant]:
            if row in self.selectors and not self.selected:  # later in the loop they are rows like others
                known = True
                if self.case is not None:
                    rows[row] = self.graph.kept(constant(self.case[row]))
            elif (self.case is not None or not self.selectors or self.selected) and not self._is_checked(rows[row]):
                rows[row] = self.graph.kept(self._bit(rows[row], row))
        return known

    def _is_checked(self, linear: Linear) -> bool:
        """Whether a row is a bit of the card, or one that was checked before: most rows are."""
        single = linear.single
        return single is not None and single[1] == 1.0 and single[0].op in CHECKED and single[0].domain == BIT

    def _bit(self, linear: Linear, row: int) -> Linear:
        """A row as a bit: one of those of its block, which are put together here."""
        node = self.graph.as_node(linear)
        if node.domain != BIT:
            self.plan.check([Check(Linear({node: 1.0}), "bits")])  # also where the bit turns out not to matter
        if node.width > 1:
            return Linear({self.graph.node(BITS, (node,)): 1.0}) if node.domain != BIT else linear
        start = self.within[row]
        name, place = (self.stage, start + (row - start) // CHUNK), (row - start) % CHUNK
        bit = self.graph.node(BITS, (node,), (name, place))
        self.plan.families.setdefault(name, {})[place] = bit
        return Linear({bit: 1.0})

    def _select(self) -> None:
        """Every group must have read the same selectors."""
        for active in self.heads:
            active.check_unknown()
        first = self.groups[0]
        for row in self.selectors:
            linear = first.get(row, Linear())
            if any(not rows.get(row, Linear()).same(linear) for rows in self.groups[1:]) or linear.low.size > 1:
                raise NotUniform(f"active columns read different values in row {row}, which decides what they do")
            if leaves(linear, UNKNOWN):
                raise LoweringError(f"row {row}, which decides what a loop does, takes from many passive columns at once")
            self.plan.selectors.append(linear)

    # Stores

    def _store(self, number: int, head: int, offer: Offer) -> None:
        """A passive column takes from an active one in this head; follow it to the end of the loop.

        In other heads of this layer it may find an active column too: what it takes there is left open, and must not matter.
        In later layers that is tried.
        """
        passive = self.passive
        rows = passive.layers[number].rows
        taken = passive.finds(number, rows)
        given, taken[head] = self._handed((number, head), offer, taken[head])
        for other, found in self.offers[number].items():
            if other != head and found:
                taken[other] = self._either((number, head, other), taken[other], found)
        rows = passive.through(number, rows, taken)
        for later in range(number + 1, len(self.layers)):
            if _same(rows, passive.layers[later].rows):
                return
            taken = passive.finds(later, rows)
            if not self._idle(later, rows, taken):
                raise LoweringError(f"layers {number + 1} and {later + 1} both store to one column")
            rows = passive.through(later, rows, taken)
        changed = {row: rows.get(row, Linear()) for row in {*rows, *passive.end}
                   if not rows.get(row, Linear()).same(passive.end.get(row, Linear()))}
        if not changed:
            return
        if self.stored_in is not None:
            raise LoweringError(f"layers {self.stored_in + 1} and {number + 1} both store, or two heads of one")
        self.stored_in = number
        for row, linear in changed.items():
            if leaves(linear, UNKNOWN):
                raise LoweringError(f"row {row} of a passive column may take from several active ones at once")
            if row not in passive.changing:
                raise LoweringError(f"a loop stores to row {row} of passive columns, which the layout says never changes")
            if any(node.data in passive.settles for node in leaves(linear, LOAD)):
                raise LoweringError(f"what is stored to row {row} depends on a row that is still settling")
        for table in offer.index.data:
            if table >= 0:
                self.plan.close(table, self.columns.closed(changed))
        settled = self._later(changed)
        used = {node for linear in (*changed.values(), *settled.values()) for node in leaves(linear, GIVEN)}
        self.plan.stores.append(Store(offer.index, offer.mask, changed, {n: v for n, v in given.items() if n in used},
                                      {row: self.columns.limit_at(row) for row in {*changed, *settled}}, settled))

    def _later(self, changed: Rows) -> Rows:
        """Numbers that settle after a store, as they will be, where nothing shows that they stay within their limits."""
        passive, result = self.passive, {}
        now = {node: changed.get(row, passive.end.get(row, Linear())) for row, linear in passive.begin.items()
               for node in linear.terms}
        for row, linear in passive.settles.items():
            kind, limit = self.columns.limit_at(row)
            after = self.graph.gathered(self.graph.substitute(linear, now))
            known = any(after.same(stored) and self.columns.limit_at(other)[1] <= limit for other, stored in changed.items())
            if kind == "real" and not known and not within(after, limit):
                result[row] = after
        return result

    def _handed(self, name: tuple[int, int], offer: Offer, own: Rows) -> tuple[dict[Node, Linear], Rows]:
        """What a passive column takes with an offer, where it would take its `own`; and the active values behind it."""
        given: dict[Node, Linear] = {}
        handed: Rows = {}
        for row, linear in offer.values.items():
            low, high = _range(linear, offer)
            if linear.is_constant and low == high:
                handed[row] = constant(low)
                continue
            single = linear.single
            domain = single[0].domain if single is not None and single[1] == 1.0 else None
            node = self.graph.node(GIVEN, (), (*name, row, low, high, domain))
            given[node] = linear
            handed[row] = Linear({node: 1.0})
        return given, self.layers[name[0]].sums.halves(self.layers[name[0]].where, own, handed) if offer.tie else handed

    def _idle(self, at: int, rows: Rows, taken: list[Rows]) -> bool:
        """Whether a passive column is the same after a layer, whichever of its offers it takes."""
        offers = {head: found for head, found in self.offers[at].items() if found}
        if not offers:
            return True
        usual = self.passive.through(at, rows, taken)
        choices = [[taken[head], *(self._handed((at, head), offer, taken[head])[1] for offer in found)]
                   for head, found in offers.items()]
        if math.prod(map(len, choices)) > MOST_CHOICES:
            return False
        for chosen in product(*choices):
            instead = dict(zip(offers, chosen, strict=True))
            if not _same(self.passive.through(at, rows, [instead.get(head, own) for head, own in enumerate(taken)]), usual):
                return False
        return True

    def _either(self, name: tuple[int, ...], default: Rows, offers: list[Offer]) -> Rows:
        """What a passive column takes in a head: its default, or something from an active column."""
        result: Rows = {}
        for row in {*default, *(r for offer in offers for r in offer.values)}:
            linear = default.get(row, Linear())
            ends = [(float(linear.low.min()), float(linear.high.max())), (0.0, 0.0)]
            ends += [_range(offer.values[row], offer) for offer in offers if row in offer.values]
            result[row] = self.graph.unknown((*name, row), min(low for low, _ in ends), max(high for _, high in ends))
        return result

    # The end

    def _finish(self) -> None:
        """Rows go back to what they were, or are carried over to the next loop."""
        for active in self.heads:
            active.check_unknown()
        for number, (rows, begin) in enumerate(zip(self.groups, self.begin, strict=True)):
            for row in {*rows, *begin}:
                before, after = begin.get(row, Linear()), rows.get(row, Linear())
                slot = next((n.data for n in before.terms), None)
                if slot is None:
                    if not before.same(after):
                        raise LoweringError(f"row {row} of group {number} should be the same after a loop, and is not")
                    continue
                known = self.plan.states.get(slot)
                if (known is not None and not known.same(after)) or (slot.group is None and after.low.size > 1):
                    raise NotUniform(f"active columns differ in row {row} after a loop")
                self.plan.states[slot] = after
        self._check_exact()
        self._check_states()

    def _check_exact(self) -> None:
        """No sum in the code may be rounded, in whatever order."""
        wanted = [*self.plan.states.values(), *(check.value for check in self.plan.checks)]
        wanted += [value for store in self.plan.stores for value in store.given.values()]
        nodes = reachable([*wanted, *(row for store in self.plan.stores for row in store.rows.values())])
        if any(node.op is UNKNOWN for node in nodes):
            raise LoweringError("an active column takes from many passive columns at once")
        known = [node for node in nodes if node.grid]
        needed = bits_for(np.array([node.size for node in known]), np.array([node.grid for node in known]))
        if needed > self.significand:
            raise LoweringError(f"sums in another order need {needed} significand bits to be exact, "
                                f"the number format has {self.significand}")

    def _check_states(self) -> None:
        """What is carried on is what it should be."""
        for slot, linear in self.plan.states.items():
            if slot.content == "bits":
                single = linear.single
                if not (single is not None and abs(single[1]) == 1.0 and single[0].domain == BIT):
                    self.plan.checks.append(Check(linear, "bits"))
            else:
                self.plan.checks.append(Check(linear, "real", slot.limit))


def _same(rows: Rows, others: Rows) -> bool:
    return rows.keys() == others.keys() and all(linear.same(others[row]) for row, linear in rows.items())


def _range(linear: Linear, offer: Offer) -> tuple[float, float]:
    """Least and greatest value in the columns that offer it."""
    low, high = (np.broadcast_to(x, offer.mask.shape)[offer.mask > 0] for x in (linear.low, linear.high))
    return float(low.min()), float(high.max())
