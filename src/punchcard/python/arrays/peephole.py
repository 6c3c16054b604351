"""Small improvements of instructions in a row: columns are read and written where they are, branches ride on
instructions.
"""

from __future__ import annotations

from collections import Counter

from punchcard.machines.fleq.isa import Field
from punchcard.python.arrays.ir import Ref, SourcePlace
from punchcard.python.arrays.linearization import Instr, Item, JumpTarget, Loc, MovePointers


class PointerMove(Instr):
    """A pointer of an instruction is set to a place, or without one moves on."""

    def __init__(self, line: SourcePlace, instruction: Instr, name: Field, place: Loc | None, depth: int) -> None:
        super().__init__(line, "pointer", depth=depth)
        self.instruction, self.name, self.place = instruction, name, place


def fuse_columns(items: list[Item], given: set[Ref]) -> list[Item]:
    """A copy of a column is not needed where the column itself can be the operand.

    The matrix must not change (nothing writes it twice), and a column that a pointer leads to must have one reader,
    since each reader would need a pointer of its own.
    """
    instructions = [item for item in items if isinstance(item, Instr)]
    writes = Counter(item.writes for item in instructions if item.writes is not None)
    changing = {slot for slot, count in writes.items() if count > (0 if slot in given else 1)}
    places: dict[Ref, Loc] = {}
    dropped: set[int] = set()
    for item in instructions:
        if item.function == "copy" and item.operands[0].part and item.writes is not None and item.goto is None:
            source, slot = item.operands[0], item.writes
            if item.target != Loc(slot) or source.slot in changing or slot in changing:
                continue
            uses = [place for other in instructions for place in other.operands if place.slot == slot]
            is_flag = any(other.flag == Loc(slot) for other in instructions)
            if any(place.part for place in uses) or (source.pointer is not None and (len(uses) != 1 or is_flag)):
                continue
            places[slot] = source
            dropped.add(id(item))
    for item in instructions:
        item.operands = [places.get(place.slot, place) if place.slot is not None else place for place in item.operands]
        if item.flag is not None and item.flag.slot is not None:
            item.flag = places.get(item.flag.slot, item.flag)
    return [item for item in items if id(item) not in dropped]


def fuse_stores(items: list[Item], results: set[Ref]) -> list[Item]:
    """A value that is only stored as a column is computed there."""
    instructions = [item for item in items if isinstance(item, Instr)]
    reads = Counter(slot for item in instructions for slot in item.reads())
    writes = Counter(item.writes for item in instructions if item.writes is not None)
    found: list[Item] = []
    for item in items:
        if isinstance(item, Instr) and item.function == "copy" and item.target is not None and item.target.part:
            value = item.operands[0].slot if not item.operands[0].part else None
            if value is not None and value not in results and reads[value] == writes[value] == 1:
                maker = _maker(found, value, item.target.slot)
                if maker is not None:
                    maker.target = item.target
                    if item.goto is not None:
                        found.append(item.branch)
                    continue
        found.append(item)
    return found


def _maker(before: list[Item], value: Ref, matrix: Ref | None) -> Instr | None:
    """The instruction that made a value, if nothing between it and the end touches the matrix."""
    for item in reversed(before):
        if not isinstance(item, Instr) or item.goto is not None:
            return None
        if item.writes == value:
            whole = item.target is not None and not item.target.part
            return item if whole else None
        if item.writes == matrix or matrix in item.reads():
            return None
    return None


def merge_branches(items: list[Item]) -> list[Item]:
    """Branches to branches go straight on, what nothing reaches goes, and a branch rides on the instruction before it."""
    while True:
        size = len(items)
        items = _thread_jumps(items)
        items = _merge_into_instructions(_drop_lost_updates(_drop_unreachable(items)))
        if len(items) == size:
            return items


def _thread_jumps(items: list[Item]) -> list[Item]:
    places = {id(item): i for i, item in enumerate(items) if isinstance(item, JumpTarget)}

    def target(label: JumpTarget, seen: int = 0) -> JumpTarget:
        for item in items[places[id(label)]:]:
            if isinstance(item, JumpTarget):
                continue
            if isinstance(item, Instr) and item.function is None and item.flag is None and item.goto is not None:
                return target(item.goto, seen + 1) if seen < 50 else label
            break
        return label

    kept: list[Item] = []
    for i, item in enumerate(items):
        if isinstance(item, Instr) and item.goto is not None:
            item.goto = target(item.goto)
            if _follows(items, i, item.goto):
                if item.function is None:
                    continue
                if item.flag is None:
                    item.goto = None
        kept.append(item)
    return kept


def _follows(items: list[Item], i: int, label: JumpTarget) -> bool:
    """Whether a label follows a place directly."""
    for item in items[i + 1:]:
        if item is label:
            return True
        if not isinstance(item, JumpTarget):
            return False
    return False


def _drop_unreachable(items: list[Item]) -> list[Item]:
    used = {id(item.goto) for item in items if isinstance(item, Instr) and item.goto is not None}
    kept: list[Item] = []
    dead = False
    for item in items:
        if isinstance(item, JumpTarget):
            if id(item) not in used:
                continue
            dead = False
        if not dead:
            kept.append(item)
        if isinstance(item, Instr) and item.goto is not None and item.flag is None:
            dead = True
    return kept


def _drop_lost_updates(items: list[Item]) -> list[Item]:
    """Pointers of instructions that have gone need no updates."""
    there = {id(item) for item in items}
    return [item for item in items if not isinstance(item, PointerMove) or id(item.instruction) in there]


def _merge_into_instructions(items: list[Item]) -> list[Item]:
    kept: list[Item] = []
    for item in items:
        last = kept[-1] if kept else None
        if (isinstance(item, Instr) and item.function is None and item.goto is not None and isinstance(last, Instr)
                and last.goto is None):
            last.flag, last.goto = item.flag, item.goto
        else:
            kept.append(item)
    return kept


def pointers(items: list[Item]) -> dict[int, list[tuple[Instr, Field, Loc]]]:
    """For each loop, the instructions whose pointers move on with it: with the field, and where it begins."""
    found: dict[int, list[tuple[Instr, Field, Loc]]] = {}
    names: tuple[Field, ...] = ("a", "b", "c", "flag")
    for item in items:
        if isinstance(item, Instr):
            operands = [*item.operands, None, None][:2]
            for name, place in zip(names, (*operands, item.target, item.flag), strict=True):
                if place is not None and place.pointer is not None:
                    found.setdefault(id(place.pointer.loop), []).append((item, name, place))
    return found


def place_pointer_updates(items: list[Item]) -> list[Item]:
    """`MovePointers` becomes an update for each pointer; a loop that is entered once needs no rewinding."""
    moving = pointers(items)
    kept: list[Item] = []
    for item in items:
        if not isinstance(item, MovePointers):
            kept.append(item)
        elif item.depth or not item.rewind:
            kept += [PointerMove(item.loop.line, instruction, name, place if item.rewind else None, item.depth)
                     for instruction, name, place in moving.get(id(item.loop), [])]
    return kept
