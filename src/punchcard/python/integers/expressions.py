"""Values of expressions, and conditions. Sums stay sums as long as they can; the rest is a routine or a few instructions."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

from punchcard.machines.von_neumann.languages.asq.items import Expression
from punchcard.python.integers.assembly import CellSum, P, Q, R, V, Z, address, cell, constant, literal
from punchcard.python.integers.functions import constant_of
from punchcard.python.integers.generator import CodeGenerator, CodePart
from punchcard.python.integers.values import AbstractValue, number


class ExpressionCode(CodePart):
    """An expression becomes a sum of cells, after the instructions that compute them."""

    def __init__(self, code: CodeGenerator) -> None:
        super().__init__(code)
        self._kinds: Mapping[type[ast.expr], Callable[[Any], CellSum]] = {
            ast.Constant: lambda node: self.storage.constant(node.value), ast.Name: self._name, ast.UnaryOp: self._unary,
            ast.BinOp: self._binary, ast.Compare: self.boolean, ast.BoolOp: self._several, ast.IfExp: self._choice,
            ast.Subscript: code.lists.item, ast.List: self._list, ast.Tuple: self._list,
            ast.ListComp: code.loops.comprehension, ast.Call: code.calls.call}

    def value(self, node: ast.expr) -> CellSum:
        """The value of an expression, computed as far as it must be."""
        if not self.facts.is_reached(node):
            return constant(0)
        known = self.facts.constant(node)
        return constant(known) if known is not None else self.out.as_word(self._kinds[type(node)](node))

    def text(self, node: ast.expr) -> CellSum:
        """A value as a whole text, where it may be a single character."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return address(self.storage.text_object(node.value))
        if self.facts.value(node).kind != "char":
            return self.value(node)
        return self.text_of(self.value(node))

    def text_of(self, form: CellSum) -> CellSum:
        """A text of one character."""
        character = self.out.kept(form)
        made = self.code.lists.allocate(constant(1))
        self.code.lists.store(made, character)
        return made

    def _name(self, node: ast.Name) -> CellSum:
        if node.id in self.frame.fixed and not any(node.id in names for names in self.frame.hidden):
            return self.frame.fixed[node.id]
        if node.id in self.frame.function.locals:
            return cell(self.variable(node.id))
        value = self.frame.function.source.names[node.id]
        assert constant_of(value)
        return self.storage.constant(value)

    def _list(self, node: ast.List | ast.Tuple) -> CellSum:
        return self.code.lists.made_of(node, node.elts)

    def _unary(self, node: ast.UnaryOp) -> CellSum:
        if isinstance(node.op, ast.Not):
            return self.boolean(node)
        return self.code.operators.unary(node, self.evaluate(node.operand), self.facts.value(node.operand))

    def _binary(self, node: ast.BinOp) -> CellSum:
        if self.facts.value(node).kind == "list":
            return self.code.lists.repeated(node)
        left, right = self.evaluate_all([node.left, node.right])
        return self.code.operators.binary(node, node.op, left, self.facts.value(node.left), right,
                                          self.facts.value(node.right))

    def boolean(self, node: ast.expr, into: Expression | None = None) -> CellSum:
        """1 where a condition holds, else 0."""
        made = self.out.temporary() if into is None else into
        holds, end = self.out.fresh("true"), self.out.fresh("false")
        self.out.clear(made)
        self.code.conditions.branch(node, holds, end, holds)
        self.out.label(holds)
        self.out.sub(literal(-1), made)
        self.out.label(end)
        return cell(made)

    def _several(self, node: ast.BoolOp) -> CellSum:
        if self.facts.value(node).kind == "bool":
            return self.boolean(node)
        made, end = self.out.temporary(), self.out.fresh("decided")
        for operand in node.values:
            if not self.facts.is_reached(operand):
                break  # what is before it decides
            self.out.assign(made, self.evaluate(operand))
            if operand is not node.values[-1]:
                ahead = self.out.fresh("else")
                yes, no = (ahead, end) if isinstance(node.op, ast.And) else (end, ahead)
                self.code.conditions.truth(self.facts.value(operand), cell(made), yes, no, ahead)
                self.out.label(ahead)
        self.out.label(end)
        return cell(made)

    def _choice(self, node: ast.IfExp) -> CellSum:
        made, yes, no, end = self.out.temporary(), *map(self.out.fresh, ("then", "else", "end"))
        as_text = self.facts.value(node).kind == "str"
        self.code.conditions.branch(node.test, yes, no, yes)
        self.out.label(yes)
        self.out.assign(made, self.evaluate(node.body, as_text=as_text))
        self.out.jump(end)
        self.out.label(no)
        self.out.assign(made, self.evaluate(node.orelse, as_text=as_text))
        self.out.label(end)
        return cell(made)


class ConditionCode(CodePart):
    """Jumps by conditions: to `yes` or to `no`, of which `following` comes next.

    An order is decided by a difference where that fits the word, and by signs first where it may not.
    """

    def branch(self, node: ast.expr, yes: str, no: str, following: str) -> None:
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            self.branch(node.operand, no, yes, following)
        elif isinstance(node, ast.BoolOp):
            self._several(node, yes, no, following)
        elif isinstance(node, ast.Compare):
            self._comparisons(node, yes, no, following)
        else:
            self.truth(self.facts.value(node), self.evaluate(node), yes, no, following)

    def _several(self, node: ast.BoolOp, yes: str, no: str, following: str) -> None:
        is_and = isinstance(node.op, ast.And)
        for operand in node.values[:-1]:
            ahead = self.out.fresh("and" if is_and else "or")
            if not self.facts.is_reached(operand):
                return
            self.branch(operand, ahead if is_and else yes, no if is_and else ahead, ahead)
            self.out.label(ahead)
        self.branch(node.values[-1], yes, no, following)

    def truth(self, value: AbstractValue, form: CellSum, yes: str, no: str, following: str) -> None:
        """A value as a condition."""
        if value.kind == "char":
            self.out.go(yes, following)
        elif value.kind in ("str", "list"):
            self.out.jump_by_zero(self.code.lists.length(value, form), no, yes, following, 0, self.facts.word.high)
        else:
            self.out.jump_by_zero(form, no, yes, following, value.low, value.high)

    def _comparisons(self, node: ast.Compare, yes: str, no: str, following: str) -> None:
        known = self.facts.constant(node)
        if known is not None:
            self.out.go(yes if known else no, following)
            return
        left: ast.expr = node.left
        form: CellSum | None = None
        for at, (op, right) in enumerate(zip(node.ops, node.comparators, strict=True)):
            last = at == len(node.ops) - 1
            ahead = self.out.fresh("and")
            places = (yes, no, following) if last else (ahead, no, ahead)
            form = self._comparison(op, left, form, right, *places, keep=not last)
            self.out.label(ahead)
            left = right

    def _comparison(self, op: ast.cmpop, left: ast.expr, form: CellSum | None, right: ast.expr, yes: str, no: str,
                    following: str, *, keep: bool) -> CellSum:
        """One comparison; `form` is the left value if it was computed before. Gives the right one."""
        if isinstance(op, ast.NotEq | ast.NotIn):
            yes, no = no, yes
        a, b = self.facts.value(left), self.facts.value(right)
        if isinstance(op, ast.In | ast.NotIn):
            self._membership(left, right, yes, no, following)
            return constant(0)
        if "str" in (a.kind, b.kind):
            self._same_text(left, right, yes, no, following)
            return constant(0)
        if form is None:
            form, other = self.evaluate_all([left, right])
        else:
            other = self.evaluate(right)
        if keep:
            other = self.out.steady(other)
        self.compare(op, form, a, other, b, yes, no, following)
        return other

    def compare(self, op: ast.cmpop, left: CellSum, a: AbstractValue, right: CellSum, b: AbstractValue, yes: str, no: str,
                following: str) -> None:
        """Jump by the order of two numbers, or by whether they are equal."""
        if isinstance(op, ast.Eq | ast.NotEq):
            difference = self.facts.word if self._wide(a, b, 0) else a.interval - b.interval
            self.out.jump_by_zero(left.plus(right, -1), yes, no, following, difference.low, difference.high)
            return
        if isinstance(op, ast.Gt | ast.GtE):
            left, a, right, b = right, b, left, a
        self.jump_if_ordered(left, a, right, b, int(isinstance(op, ast.Lt | ast.Gt)), yes, no, following)

    def jump_if_ordered(self, left: CellSum, a: AbstractValue, right: CellSum, b: AbstractValue, strict: int, yes: str,
                        no: str, following: str) -> None:
        """Jump by a < b, if `strict` is 1, or a <= b, if it is 0."""
        if self._wide(a, b, strict) and a.low >= 1 - strict and b.low <= 0:
            right = self.out.steady(right)
            self.out.jump_if_low(right, no, b.low)  # a is not below a number that is 0 or less
            b = number(1, max(1, b.high))
        elif self._wide(a, b, strict) and (b.low >= 1 or (b.low >= 0 and not strict)):
            left = self.out.steady(left)
            self.out.jump_if_low(left, yes, a.low)  # 0 or less is below b
            a = number(1, max(1, a.high))
        if self._wide(a, b, strict):
            self._by_signs(left, right, strict, yes, no, following)
            return
        low, high = a.low - b.high + strict, a.high - b.low + strict
        difference = left.plus(right, -1).plus(constant(strict))
        if following == yes and 1 - low <= self.facts.word.high:
            self.out.jump_if_low(constant(1).plus(difference, -1), no, 1 - high)
        else:
            self.out.jump_if_low(difference, yes, low)
            self.out.go(no, following)

    def _wide(self, a: AbstractValue, b: AbstractValue, strict: int) -> bool:
        """Whether a - b may leave the word."""
        return a.low - b.high + strict < self.facts.word.low or a.high - b.low + strict > self.facts.word.high

    def _by_signs(self, left: CellSum, right: CellSum, strict: int, yes: str, no: str, following: str) -> None:
        self.storage.need("order")
        if strict:  # a < b unless b <= a
            left, right, yes, no = right, left, no, yes
        first, second, made = self.out.tested(left), self.out.tested(right), self.out.temporary()
        self.out.macro("order", first, second, made)
        self.out.sub(Z, made, yes)
        self.out.go(no, following)

    def digit(self, character: CellSum, yes: str, no: str) -> None:
        """Jump by whether a character is a digit; `yes` comes next."""
        good = self.out.fresh("digit")
        low, high = ord("0"), ord("9")
        self.jump_if_ordered(character, number(0, 127), constant(low - 1), number(low - 1), 0, no, good, good)
        self.out.label(good)
        self.jump_if_ordered(character, number(low, 127), constant(high), number(high), 0, yes, no, yes)
        self.out.label(yes)

    def _same_text(self, left: ast.expr, right: ast.expr, yes: str, no: str, following: str) -> None:
        first = self.out.kept(self.evaluate(left, as_text=True))
        self.out.assign(Q, self.evaluate(right, as_text=True))
        self.out.assign(P, first)
        self.routine("same_text")
        self.out.jump_by_zero(cell(R), yes, no, following, 0, 1)

    def _membership(self, left: ast.expr, right: ast.expr, yes: str, no: str, following: str) -> None:
        if isinstance(right, ast.Constant) and isinstance(right.value, str) and len(right.value) <= 8:
            character = self.out.steady(self.evaluate(left))
            value = self.facts.value(left)
            for each in right.value:
                ahead = self.out.fresh("next")
                code = AbstractValue("char", ord(each), ord(each))
                self.compare(ast.Eq(), character, value, constant(ord(each)), code, yes, ahead, ahead)
                self.out.label(ahead)
            self.out.go(no, following)
            return
        item = self.out.kept(self.evaluate(left))
        self.out.assign(P, self.evaluate(right, as_text=self.facts.value(right).kind in ("str", "char")))
        self.out.assign(V, item)
        self.routine("contains")
        self.out.jump_by_zero(cell(R), no, yes, following, 0, 1)
