"""Lists and texts: a pointer to the first item, with the length in the cell before it. An address is written into the
instruction that uses it.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from punchcard.python.integers.expressions import Expressions
from punchcard.python.integers.forms import Form, address, cell, constant
from punchcard.python.integers.values import Value, number

MOST_STATIC = 4096
"""Items of a list that stands in the image itself."""
INDEX = "IndexError: index out of range"


class Lists(Expressions):
    """Items, stores, lengths, and lists that are made."""

    def place(self, node: ast.Subscript) -> Form:
        """The address of an item."""
        base, index = self.forms([node.value, node.slice])
        value, at = self.value(node.value), self.value(node.slice)
        low, high = (value.items.root.low, value.items.root.high) if value.items is not None else (0, self.word.high)
        if at.low >= 0 and at.high < low:
            return base.plus(index)
        base = self.steady(base)
        if at.high < 0 and -at.low <= low:
            return base.plus(index).plus(self.length(value, base))
        wrong, fine = self.error(node, INDEX), self.fresh("index")
        index = self.steady(index) if at.low >= 0 else cell(self.own(index))
        length = self.steady(self.length(value, base))
        if at.low < 0:
            place = self.held(index)
            positive = self.fresh("positive")
            self.put(f"@jgez {place} {positive}")
            self.assign(place, index.plus(length))
            self.put(f"@jltz {place} {wrong}")
            self.label(positive)
        if not (at.high < low):
            self.jump_if_ordered(index, number(0, max(at.high, 0)), length, number(low, high), 1, fine, wrong, fine)
        self.label(fine)
        return base.plus(index)

    def _Subscript(self, node: ast.Subscript) -> Form:
        if isinstance(node.slice, ast.Slice):
            self.given(self.form(node.value))
            self.routine("reversed")
            return cell("$r", passing=True)
        return self.load(self.place(node))

    def load(self, place: Form) -> Form:
        """What stands at an address."""
        if place.is_constant:
            return cell(place.constant_sum(), passing=True)
        here, made = self.fresh("at"), self.temporary()
        self.assign(here, place)
        self.clear(made)
        self.put(f"{here}:0 {made}")
        return Form({made: -1})

    def store(self, place: Form, value: Form) -> None:
        """Put a value at an address."""
        if place.is_constant:
            self.assign(place.constant_sum(), value)
            return
        negative = self.negative(value) if value.known != 0 else ""
        places = [self.fresh("at") for _ in range(3 if negative else 2)]
        added, taken = place.lists()
        if taken:
            added = [self.held(place)]
            place = cell(added[0])
        for name in added:
            self.sub(name, "$z")
        if place.has_constant:
            self.sub(place.constant(), "$z")
        for each in places:
            self.clear(each)
        for each in places:
            self.sub("$z", each)
        self.clear("$z")
        self.put(f"{places[0]}:0 {places[1]}:0")
        if negative:
            self.put(f"{negative} {places[2]}:0")

    def change(self, place: Form, by: Form, sign: int) -> None:
        """Add to what stands at an address, or subtract from it."""
        if place.is_constant:
            name = place.constant_sum()
            self.assign(name, cell(name).plus(by, sign))
            return
        taken = self.negative(by) if sign > 0 else self.held(by)
        here = self.fresh("at")
        self.assign(here, place)
        self.put(f"{taken} {here}:0")

    def length(self, value: Value, form: Form) -> Form:
        known = value.items.root.length if value.items is not None else None
        if known is not None:
            return constant(known)
        return self.load(form.plus(constant(-1)))

    # Lists that are made

    def _List(self, node: ast.List | ast.Tuple) -> Form:
        return self._made_of(node.elts, node)

    _Tuple = _List

    def _item(self, node: ast.expr, inside: Value) -> Form:
        """An item as a list of such items holds it."""
        wanted = inside.items.root.item if inside.items is not None else None
        return self.as_text(node) if wanted is not None and wanted.kind == "str" else self.form(node)

    def _made_of(self, items: Sequence[ast.expr], node: ast.expr) -> Form:
        value = self.value(node)
        if self.once:
            forms = []
            for item in items:
                forms.append(self.steady(self._item(item, value)))
            label = self.unused("list")
            cells = " ".join(f"({form.constant_sum() if form.is_constant else 0})" for form in forms)
            self.data.append(f". {len(items)} {label}:{cells}")
            for at, form in enumerate(forms):
                if not form.is_constant:
                    self.assign(f"{label}+{at}", form)
            return address(label)
        kept = [self.steady(self._item(item, value)) for item in items]
        self.given(constant(len(items)))
        self.routine("allocate")
        made = cell(self.own(cell("$r")))
        for at, form in enumerate(kept):
            if form.known != 0:
                self.store(made.plus(constant(at)), form)
        return made

    def repeated(self, node: ast.BinOp) -> Form:
        """[0] * n."""
        items, count = (node.left, node.right) if self.value(node.left).kind == "list" else (node.right, node.left)
        if not isinstance(items, ast.List | ast.Tuple):
            self.fail(node, "only a list that is written out can be repeated", "write [0] * n")
        assert isinstance(items, ast.List | ast.Tuple)
        times = self.value(count).constant if self.is_plain(count) else None
        if len(items.elts) > 1:
            if times is None or times * len(items.elts) > MOST_STATIC or not all(map(self.is_plain, items.elts)):
                self.fail(node, "a list of several items is repeated by a constant only", "write a loop")
            assert times is not None
            return self._made_of(list(items.elts) * times, node)
        item = self.steady(self._item(items.elts[0], self.value(node)))
        if self.once and times is not None and item.is_constant and times <= MOST_STATIC:
            label = self.unused("list")
            self.data.append(f". {max(times, 0)} {label}:" + (
                f"[{max(times, 1)}]" if item.known == 0 else " ".join([f"({item.constant_sum()})"] * max(times, 1))))
            return address(label)
        size = self.kept(self.form(count))
        self.given(size)
        self.routine("allocate")
        made = self.own(cell("$r"))
        if item.known != 0:
            self.assign("$p", cell(made))
            self.assign("$q", size)
            self.assign("$v", item)
            self.routine("fill")
        return cell(made)
