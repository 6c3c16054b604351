"""Conditions to jumps. An order is decided by a difference where that fits the word, and by signs first where it may not."""

from __future__ import annotations

import ast
from abc import abstractmethod

from punchcard.python.integers.forms import Form, cell, constant
from punchcard.python.integers.generator import Generator
from punchcard.python.integers.values import Value


class Conditions(Generator):
    """Jumps by conditions: to `yes` or to `no`, of which `following` comes next."""

    def condition(self, node: ast.expr, yes: str, no: str, following: str) -> None:
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            self.condition(node.operand, no, yes, following)
        elif isinstance(node, ast.BoolOp):
            self._several(node, yes, no, following)
        elif isinstance(node, ast.Compare):
            self._comparisons(node, yes, no, following)
        else:
            self.truth(self.value(node), self.form(node), yes, no, following)

    def go(self, target: str, following: str) -> None:
        if target != following:
            self.jump(target)

    def _several(self, node: ast.BoolOp, yes: str, no: str, following: str) -> None:
        is_and = isinstance(node.op, ast.And)
        for operand in node.values[:-1]:
            ahead = self.fresh("and" if is_and else "or")
            if operand not in self.values:
                return
            self.condition(operand, ahead if is_and else yes, no if is_and else ahead, ahead)
            self.label(ahead)
        self.condition(node.values[-1], yes, no, following)

    def truth(self, value: Value, form: Form, yes: str, no: str, following: str) -> None:
        """A value as a condition."""
        if value.kind == "char":
            self.go(yes, following)
        elif value.kind in ("str", "list"):
            self.jump_by_zero(self.length(value, form), no, yes, following, 0, self.word.high)
        else:
            self.jump_by_zero(form, no, yes, following, value.low, value.high)

    @abstractmethod
    def length(self, value: Value, form: Form) -> Form:
        """How many items or characters there are."""

    @abstractmethod
    def as_text(self, node: ast.expr) -> Form:
        """A value as a whole text."""

    def _comparisons(self, node: ast.Compare, yes: str, no: str, following: str) -> None:
        known = self.value(node).constant
        if known is not None and self.is_plain(node):
            self.go(yes if known else no, following)
            return
        left: ast.expr = node.left
        form: Form | None = None
        for at, (op, right) in enumerate(zip(node.ops, node.comparators, strict=True)):
            last = at == len(node.ops) - 1
            ahead = self.fresh("and")
            places = (yes, no, following) if last else (ahead, no, ahead)
            form = self._one(node, op, left, form, right, *places, keep=not last)
            self.label(ahead)
            left = right

    def _one(self, node: ast.Compare, op: ast.cmpop, left: ast.expr, form: Form | None, right: ast.expr, yes: str, no: str,
             following: str, *, keep: bool) -> Form:
        """One comparison; `form` is the left value where it was computed before. Gives the right one."""
        if isinstance(op, ast.NotEq | ast.NotIn):
            yes, no = no, yes
        a, b = self.value(left), self.value(right)
        if isinstance(op, ast.In | ast.NotIn):
            self._membership(left, right, yes, no, following)
            return constant(0)
        if "str" in (a.kind, b.kind):
            self._same_text(left, right, yes, no, following)
            return constant(0)
        if form is None:
            form, other = self.forms([left, right])
        else:
            other = self.form(right)
        if keep:
            other = self.steady(other)
        self.compare(op, form, a, other, b, yes, no, following)
        return other

    def compare(self, op: ast.cmpop, left: Form, a: Value, right: Form, b: Value, yes: str, no: str,
                following: str) -> None:
        """Jump by the order of two numbers, or by whether they are equal."""
        if isinstance(op, ast.Eq | ast.NotEq):
            difference = self.word if self._wide(a, b, 0) else a.interval - b.interval
            self.jump_by_zero(left.plus(right, -1), yes, no, following, difference.low, difference.high)
            return
        if isinstance(op, ast.Gt | ast.GtE):
            left, a, right, b = right, b, left, a
        self.jump_if_ordered(left, a, right, b, int(isinstance(op, ast.Lt | ast.Gt)), yes, no, following)

    def jump_if_ordered(self, left: Form, a: Value, right: Form, b: Value, strict: int, yes: str, no: str,
                        following: str) -> None:
        """Jump by a < b, where `strict` is 1, or a <= b, where it is 0."""
        if self._wide(a, b, strict) and a.low >= 1 - strict and b.low <= 0:
            right = self.steady(right)
            self.jump_if_low(right, no, b.low)  # a is not below a number that is 0 or less
            b = Value("int", 1, max(1, b.high))
        elif self._wide(a, b, strict) and (b.low >= 1 or (b.low >= 0 and not strict)):
            left = self.steady(left)
            self.jump_if_low(left, yes, a.low)  # 0 or less is below b
            a = Value("int", 1, max(1, a.high))
        if self._wide(a, b, strict):
            self._by_signs(left, right, strict, yes, no, following)
            return
        low, high = a.low - b.high + strict, a.high - b.low + strict
        difference = left.plus(right, -1).plus(constant(strict))
        if following == yes and 1 - low <= self.word.high:
            self.jump_if_low(constant(1).plus(difference, -1), no, 1 - high)
        else:
            self.jump_if_low(difference, yes, low)
            self.go(no, following)

    def _wide(self, a: Value, b: Value, strict: int) -> bool:
        """Whether a - b may leave the word."""
        return a.low - b.high + strict < self.word.low or a.high - b.low + strict > self.word.high

    def _by_signs(self, left: Form, right: Form, strict: int, yes: str, no: str, following: str) -> None:
        self.need("order")
        if strict:  # a < b unless b <= a
            left, right, yes, no = right, left, no, yes
        first, second, made = self.tested(left), self.tested(right), self.temporary()
        self.put(f"@order {first} {second} {made}")
        self.sub("$z", made, yes)
        self.go(no, following)

    def _same_text(self, left: ast.expr, right: ast.expr, yes: str, no: str, following: str) -> None:
        first = self.kept(self.as_text(left))
        self.assign("$q", self.as_text(right))
        self.assign("$p", first)
        self.routine("same_text")
        self.jump_by_zero(cell("$r"), yes, no, following, 0, 1)

    def _membership(self, left: ast.expr, right: ast.expr, yes: str, no: str, following: str) -> None:
        if isinstance(right, ast.Constant) and isinstance(right.value, str) and len(right.value) <= 8:
            character = self.steady(self.form(left))
            value = self.value(left)
            for each in right.value:
                ahead = self.fresh("next")
                code = Value("char", ord(each), ord(each))
                self.compare(ast.Eq(), character, value, constant(ord(each)), code, yes, ahead, ahead)
                self.label(ahead)
            self.go(no, following)
            return
        item = self.kept(self.form(left))
        self.assign("$p", self.as_text(right) if self.value(right).kind in ("str", "char") else self.form(right))
        self.assign("$v", item)
        self.routine("contains")
        self.jump_by_zero(cell("$r"), no, yes, following, 0, 1)
