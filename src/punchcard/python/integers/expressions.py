"""Values of expressions. Sums stay sums as long as they can; everything else is a routine or a few instructions."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from punchcard.machines.von_neumann.languages.asq.items import Expression
from punchcard.python.integers.functions import constant_of
from punchcard.python.integers.generator import CodeGenerator, CodePart
from punchcard.python.integers.sums import CellSum, address, cell, constant, literal


class ExpressionCode(CodePart):
    """An expression becomes a sum of cells, after the instructions that compute them."""

    def __init__(self, code: CodeGenerator) -> None:
        super().__init__(code)
        self._kinds: Mapping[type[ast.expr], Callable[[Any], CellSum]] = {
            ast.Constant: lambda node: self.storage.constant(node.value), ast.Name: self._name, ast.UnaryOp: self._unary,
            ast.BinOp: self._binary, ast.Compare: self.boolean, ast.BoolOp: self._several, ast.IfExp: self._choice,
            ast.Subscript: code.lists.item, ast.List: code.lists.made_of, ast.Tuple: code.lists.made_of,
            ast.ListComp: code.loops.comprehension, ast.Call: code.calls.call}

    def evaluate(self, node: ast.expr) -> CellSum:
        """The value of an expression, computed as far as it must be."""
        if not self.facts.is_reached(node):
            return constant(0)
        known = self.facts.constant(node)
        return constant(known) if known is not None else self.as_word(self._kinds[type(node)](node))

    def evaluate_all(self, nodes: Sequence[ast.expr]) -> list[CellSum]:
        """Several values, each kept while the next ones are computed."""
        found = []
        for at, node in enumerate(nodes):
            form = self.evaluate(node)
            found.append(self.kept(form) if form.passing and any(map(self.facts.is_busy, nodes[at + 1 :])) else form)
        return found

    def as_word(self, form: CellSum) -> CellSum:
        """A constant sum as the word that it is."""
        return form if form.known is None else constant(self.out.wrapped(form.known))

    def kept(self, form: CellSum) -> CellSum:
        """The same value in a cell that nothing else uses."""
        return form if form.is_constant else cell(self.out.own(form))

    def steady(self, form: CellSum) -> CellSum:
        """The same value, which what is computed next does not change."""
        return self.kept(form) if form.passing else replace(form, passing=False)

    def _name(self, node: ast.Name) -> CellSum:
        if node.id in self.frame.fixed and not any(node.id in names for names in self.frame.hidden):
            return self.frame.fixed[node.id]
        if node.id in self.frame.function.locals:
            return cell(self.variable(node.id))
        value = self.frame.function.source.names[node.id]
        assert constant_of(value)
        return self.storage.constant(value)

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
        evaluate = self.as_text if self.facts.value(node).kind == "str" else self.evaluate
        self.code.conditions.branch(node.test, yes, no, yes)
        self.out.label(yes)
        self.out.assign(made, evaluate(node.body))
        self.out.jump(end)
        self.out.label(no)
        self.out.assign(made, evaluate(node.orelse))
        self.out.label(end)
        return cell(made)

    def as_text(self, node: ast.expr) -> CellSum:
        """A value as a whole text, where it may be a single character."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return address(self.storage.text_object(node.value))
        if self.facts.value(node).kind != "char":
            return self.evaluate(node)
        character = self.kept(self.evaluate(node))
        made = self.code.lists.allocate(constant(1))
        self.code.lists.store(made, character)
        return made
