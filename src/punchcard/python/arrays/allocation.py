"""From slots to variables: instructions that nothing needs go, copies merge their two sides, slots share variables.

A slot is live where its value may still be read. Two slots that are live at the same time need two variables; all
others of one shape may share one. A copy between slots that can share is not needed.
"""

from __future__ import annotations

from collections.abc import Iterable

from punchcard.python.arrays.ir import Const, Ref
from punchcard.python.arrays.linearization import Instr, Item, JumpTarget, Loc


class Live:
    """Which slots are live after each instruction, as sets of bits; and at the beginning."""

    def __init__(self, items: list[Item], results: Iterable[Ref]) -> None:
        self.numbers: dict[Ref, int] = {}
        self.results = self.bits(results)
        self.after: list[int] = [0] * len(items)
        places = {id(item): i for i, item in enumerate(items) if isinstance(item, JumpTarget)}
        reads = [self.bits(item.reads()) if isinstance(item, Instr) else 0 for item in items]
        writes = [self.bits([item.target.slot]) if isinstance(item, Instr) and item.target is not None
                  and item.target.slot is not None and not item.target.part else 0 for item in items]
        before = [0] * (len(items) + 1)
        before[len(items)] = self.results
        changed = True
        while changed:
            changed = False
            for i in range(len(items) - 1, -1, -1):
                item, out = items[i], before[i + 1]
                if isinstance(item, Instr) and item.goto is not None:
                    there = before[places[id(item.goto)]] if id(item.goto) in places else self.results
                    out = there if item.flag is None else out | there
                new = (out & ~writes[i]) | reads[i]
                self.after[i] = out
                if new != before[i]:
                    before[i], changed = new, True
        self.first = before[0]

    def bits(self, slots: Iterable[Ref]) -> int:
        found = 0
        for slot in slots:
            found |= 1 << self.numbers.setdefault(slot, len(self.numbers))
        return found


def drop_unread(items: list[Item], results: Iterable[Ref]) -> list[Item]:
    """Drop computations whose results are never read, also if they only read each other."""
    kept_results = list(results)
    while True:
        needed = set(kept_results)
        grown = True
        while grown:
            grown = False
            for item in items:
                if isinstance(item, Instr):
                    is_needed = item.writes is None or item.writes in needed
                    read = set(item.reads() if is_needed else item.branch.reads())
                    grown |= not read <= needed
                    needed |= read
        live = Live(items, kept_results)
        kept: list[Item] = []
        for i, item in enumerate(items):
            if isinstance(item, Instr) and item.writes is not None:
                unread = item.writes not in needed or not live.after[i] >> live.numbers[item.writes] & 1
                if unread and item.goto is None:
                    continue
                if unread and (item.flag is None or item.flag.slot != item.writes):
                    item = item.branch
            kept.append(item)
        if len(kept) == len(items):
            return kept
        items = kept


def take_initial_constants(items: list[Item]) -> tuple[list[Item], dict[Ref, Const]]:
    """Copies of constants that are done once, before anything else touches their slot: the card begins with them."""
    found: dict[Ref, Const] = {}
    kept: list[Item] = []
    touched: set[Ref] = set()
    for item in items:
        if isinstance(item, Instr):
            source = item.operands[0].holder if item.is_copy else None
            target = item.writes
            if isinstance(source, Const) and item.depth == 0 and target is not None and target not in touched:
                touched.add(target)
                found[target] = source
                if item.goto is not None:
                    kept.append(item.branch)
                continue
            touched.update(item.reads())
            if target is not None:
                touched.add(target)
        kept.append(item)
    return kept, found


class Sharing:
    """Groups of slots that share a variable."""

    def __init__(self, items: list[Item], given: Iterable[Ref], results: Iterable[Ref]) -> None:
        self.parent: dict[Ref, Ref] = {}
        self.apart: dict[Ref, set[Ref]] = {}
        given, results = list(given), list(results)
        live = Live(items, results)
        order = [slot for slot, _ in sorted(live.numbers.items(), key=lambda pair: pair[1])]
        for slot in (*order, *given, *results):
            self.apart.setdefault(slot, set())
        at_first = [slot for slot in order if live.first >> live.numbers[slot] & 1]
        self._separate(given, [*given, *at_first])
        self._separate(results, results)
        for i, item in enumerate(items):
            if isinstance(item, Instr) and item.writes is not None:
                same = item.operands[0].slot if item.is_copy else None
                out = live.after[i]
                if item.flag is not None and item.flag.slot is not None:  # a branch looks at its flag after the write
                    self._separate([item.writes], [item.flag.slot])
                while out:
                    low = out & -out
                    other = order[low.bit_length() - 1]
                    if other not in (item.writes, same):
                        self._separate([item.writes], [other])
                    out ^= low

    def _separate(self, some: Iterable[Ref], others: Iterable[Ref]) -> None:
        for a in some:
            for b in others:
                if a != b:
                    self.apart[a].add(b)
                    self.apart[b].add(a)

    def group(self, slot: Ref) -> Ref:
        """The slot that represents all that share with this one."""
        while slot in self.parent:
            slot = self.parent[slot]
        return slot

    def join(self, a: Ref, b: Ref) -> bool:
        """Let two groups share a variable, if they can."""
        a, b = self.group(a), self.group(b)
        if a == b:
            return True
        if a.shape != b.shape or b in self.apart[a]:
            return False
        self.parent[b] = a
        for other in self.apart[b]:
            self.apart[other].discard(b)
            self.apart[other].add(a)
            self.apart[a].add(other)
        return True

    def join_copies(self, items: list[Item]) -> None:
        """Merge both sides of copies, those in inner loops first."""
        copies = [item for item in items if isinstance(item, Instr) and item.is_copy]
        for item in sorted(copies, key=lambda item: -item.depth):
            source, target = item.operands[0].slot, item.writes
            if source is not None and target is not None:
                self.join(target, source)

    def join_rest(self) -> None:
        """Slots of one shape share as few variables as a greedy choice finds."""
        groups: list[Ref] = []
        for slot in list(self.apart):
            if slot not in self.parent and not any(self.join(group, slot) for group in groups):
                groups.append(slot)


def rename_slots(items: list[Item], sharing: Sharing) -> list[Item]:
    """The instructions over groups; copies within a group go, their branches stay."""
    def loc(place: Loc) -> Loc:
        return place if place.slot is None else Loc(sharing.group(place.slot), place.column, place.pointer)

    found: list[Item] = []
    for item in items:
        if not isinstance(item, Instr):
            found.append(item)
            continue
        new = Instr(item.line, item.function, [loc(place) for place in item.operands],
                    None if item.target is None else loc(item.target), None if item.flag is None else loc(item.flag),
                    item.goto, item.depth)
        if new.is_copy and new.operands[0] == new.target:
            if new.goto is None:
                continue
            new = new.branch
        found.append(new)
    return found
