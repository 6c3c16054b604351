"""Lists and texts: a pointer to the first item, with the length in the cell before it. An address is written into the
instruction that uses it.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from punchcard.machines.von_neumann.languages.asq.items import MADE, Cell, CellRun, Expression, Item, name
from punchcard.python.integers.assembly import CellSum, P, Patched, Q, R, V, Z, address, cell, constant
from punchcard.python.integers.generator import CodePart
from punchcard.python.integers.values import AbstractValue, number

MOST_STATIC = 4096
"""Items of a list that is in the image itself."""
INDEX = "IndexError: index out of range"


class ListCode(CodePart):
    """Items, stores, lengths, and lists that are made."""

    def place(self, node: ast.Subscript) -> CellSum:
        out = self.out
        base, index = self.evaluate_all([node.value, node.slice])
        value, at = self.facts.value(node.value), self.facts.value(node.slice)
        count = self.facts.count(value)
        if at.low >= 0 and at.high < count.low:
            return base.plus(index)
        base = self.out.steady(base)
        if at.high < 0 and -at.low <= count.low:
            return base.plus(index).plus(self.length(value, base))
        wrong, fine = self.error(node, INDEX), out.fresh("index")
        index = self.out.steady(index) if at.low >= 0 else cell(out.own(index))
        length = self.out.steady(self.length(value, base))
        if at.low < 0:
            place, positive = out.held(index), out.fresh("positive")
            out.macro("jgez", place, positive)
            out.assign(place, index.plus(length))
            out.macro("jltz", place, wrong)
            out.label(positive)
        if not at.high < count.low:
            self.code.conditions.jump_if_ordered(index, number(0, max(at.high, 0)), length, count, 1, fine, wrong, fine)
        out.label(fine)
        return base.plus(index)

    def item(self, node: ast.Subscript) -> CellSum:
        if isinstance(node.slice, ast.Slice):
            self.pass_operands(self.evaluate(node.value))
            self.routine("reversed")
            return cell(R, passing=True)
        return self.load(self.place(node))

    def load(self, place: CellSum) -> CellSum:
        """What is at an address."""
        if place.is_constant:
            return cell(place.constant_part(), passing=True)
        here, made = self.out.fresh("at"), self.out.temporary()
        self.out.assign(name(here), place)
        return self.load_from(here, made)

    def store(self, place: CellSum, value: CellSum) -> None:
        """Put a value at an address."""
        out = self.out
        if place.is_constant:
            out.assign(place.constant_part(), value)
            return
        negative = out.held(value.times(-1)) if value.known != 0 else None
        places = [out.fresh("at") for _ in range(2 if negative is None else 3)]
        added, taken = place.lists()
        if taken:
            added = [out.held(place)]
            place = cell(added[0])
        for each in added:
            out.sub(each, Z)
        if place.has_constant:
            out.sub(place.constant_operand(), Z)
        for label in places:
            out.clear(name(label))
        for label in places:
            out.sub(Z, name(label))
        out.clear(Z)
        out.sub(Patched(places[0]), Patched(places[1]))
        if negative is not None:
            out.sub(negative, Patched(places[2]))

    def change(self, place: CellSum, by: CellSum, sign: int) -> None:
        """Add to what is at an address, or subtract from it."""
        if place.is_constant:
            target = place.constant_part()
            self.out.assign(target, cell(target).plus(by, sign))
            return
        taken = self.out.held(by.times(-1) if sign > 0 else by)
        here = self.out.fresh("at")
        self.out.assign(name(here), place)
        self.out.sub(taken, Patched(here))

    def length(self, value: AbstractValue, form: CellSum) -> CellSum:
        """How many items or characters there are."""
        known = self.facts.count(value).constant
        return constant(known) if known is not None else self.load(form.plus(constant(-1)))

    def load_from(self, here: str, found: Expression) -> CellSum:
        """What is at the address in the instruction that is written here, in a cell that holds minus that."""
        self.out.clear(found)
        self.out.sub(Patched(here), found)
        return CellSum({found: -1})

    # Lists that are made

    def allocate(self, count: CellSum) -> CellSum:
        """A new list of so many items, all 0."""
        self.pass_operands(count)
        self.routine("allocate")
        return cell(self.out.own(cell(R)))

    def item_value(self, node: ast.expr, inside: AbstractValue) -> CellSum:
        """An item as a list of such items holds it."""
        wanted = inside.list.item
        return self.out.steady(self.evaluate(node, as_text=wanted is not None and wanted.kind == "str"))

    def made_of(self, node: ast.expr, items: Sequence[ast.expr]) -> CellSum:
        """The list of an expression, of these items."""
        forms = [self.item_value(item, self.facts.value(node)) for item in items]
        if self.frame.once:
            cells = [Cell((form if form.is_constant else constant(0)).constant_part(), MADE) for form in forms]
            label = self.storage.add_object("list", len(items), cells)
            for at, form in enumerate(forms):
                if not form.is_constant:
                    self.out.assign(address(label).plus(constant(at)).constant_part(), form)
            return address(label)
        made = self.allocate(constant(len(items)))
        for at, form in enumerate(forms):
            if form.known != 0:
                self.store(made.plus(constant(at)), form)
        return made

    def repeated(self, node: ast.BinOp) -> CellSum:
        """[0] * n."""
        is_left = self.facts.value(node.left).kind == "list"
        items, count = (node.left, node.right) if is_left else (node.right, node.left)
        if not isinstance(items, ast.List | ast.Tuple):
            self.fail(node, "only a list that is written out can be repeated", "write [0] * n")
        times = self.facts.constant(count)
        if len(items.elts) > 1:
            if times is None or times * len(items.elts) > MOST_STATIC or not all(map(self.facts.is_plain, items.elts)):
                self.fail(node, "a list of several items is repeated by a constant only", "write a loop")
            return self.made_of(node, list(items.elts) * times)
        item = self.item_value(items.elts[0], self.facts.value(node))
        if self.frame.once and times is not None and item.is_constant and times <= MOST_STATIC:
            cells: list[Item] = [Cell(item.constant_part(), MADE)] * max(times, 1)
            if item.known == 0:
                cells = [CellRun(MADE, max(times, 1))]
            return address(self.storage.add_object("list", max(times, 0), cells))
        size = self.out.kept(self.evaluate(count))
        made = self.allocate(size)
        if item.known != 0:
            self.out.assign(P, made)
            self.out.assign(Q, size)
            self.out.assign(V, item)
            self.routine("fill")
        return made
