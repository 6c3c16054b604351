"""Calls of functions that are built in."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from punchcard.machines.von_neumann.languages.asq.items import name
from punchcard.python.integers.generator import CodeGenerator, CodePart
from punchcard.python.integers.sums import CellSum, R, Z, cell, constant, literal
from punchcard.python.integers.values import AbstractValue, number

NOT_A_NUMBER = "ValueError: int() of a text that is not a number of this word size"


class BuiltinCode(CodePart):
    """Values of these calls. `quotients` has both results of the last divmod()."""

    def __init__(self, code: CodeGenerator) -> None:
        super().__init__(code)
        self.quotients = constant(0), constant(0)
        self._functions: Mapping[str, Callable[[ast.Call], CellSum]] = {
            "int": self._int, "bool": lambda node: code.expressions.boolean(node.args[0]), "len": self._len,
            "abs": self._abs, "min": self._extreme, "max": self._extreme, "divmod": self._divmod, "pow": self._pow,
            "sum": lambda node: self._over_items(node, None), "ord": self._ord, "chr": self._chr, "input": self._input,
            "print": lambda node: code.printing.print(node)}

    def call(self, node: ast.Call) -> CellSum:
        if isinstance(node.func, ast.Attribute):
            return self._is_digit(node.func.value)
        assert isinstance(node.func, ast.Name)
        return self._functions[node.func.id](node)

    def _argument(self, node: ast.Call) -> tuple[CellSum, AbstractValue]:
        """The only argument."""
        return self.code.expressions.evaluate(node.args[0]), self.facts.value(node.args[0])

    def _int(self, node: ast.Call) -> CellSum:
        given, value = self._argument(node)
        if value.is_number:
            return given
        if value.kind == "char":
            digit = self.code.expressions.kept(given)
            self.code.conditions.digit(digit, self.out.fresh("digit"), self.error(node, NOT_A_NUMBER))
            return digit.plus(constant(-48))
        self.pass_operands(given)
        self.set_error(node, NOT_A_NUMBER)
        self.routine("parse")
        return cell(R, passing=True)

    def _is_digit(self, node: ast.expr) -> CellSum:
        digit, made = self.code.expressions.kept(self.code.expressions.evaluate(node)), self.out.temporary()
        no = self.out.fresh("no")
        self.out.clear(made)
        self.code.conditions.digit(digit, self.out.fresh("yes"), no)
        self.out.sub(literal(-1), made)
        self.out.label(no)
        return cell(made)

    def _len(self, node: ast.Call) -> CellSum:
        given, value = self._argument(node)
        return self.code.lists.length(value, given)

    def _abs(self, node: ast.Call) -> CellSum:
        form, value = self._argument(node)
        if value.low >= 0:
            return form
        given, made, end = self.out.tested(form), self.out.own(form), self.out.fresh("abs")
        self.out.macro("jgez", given, end)
        self.out.assign(made, cell(given).times(-1))
        if self.facts.check and value.low <= self.facts.word.low:
            self.out.macro("jltz", made, self.overflow(node))
        self.out.label(end)
        return cell(made)

    def _extreme(self, node: ast.Call) -> CellSum:
        """min() or max()."""
        larger = isinstance(node.func, ast.Name) and node.func.id == "max"
        op = ast.Gt() if larger else ast.Lt()
        if len(node.args) == 1:
            return self._over_items(node, op)
        forms = [self.code.expressions.steady(form) for form in self.code.expressions.evaluate_all(node.args)]
        made = self.out.own(forms[0])
        value = self.facts.value(node.args[0])
        for form, argument in zip(forms[1:], node.args[1:], strict=True):
            other, choose = self.facts.value(argument), max if larger else min
            self._replace_if(op, form, other, cell(made), value)
            value = number(choose(value.low, other.low), choose(value.high, other.high))
        return cell(made)

    def _replace_if(self, op: ast.cmpop, form: CellSum, value: AbstractValue, old: CellSum, before: AbstractValue) -> None:
        """Assign a value to a cell if it is smaller, or larger, than what is there."""
        better, end = self.out.fresh("better"), self.out.fresh("best")
        self.code.conditions.compare(op, form, value, old, before, better, end, better)
        self.out.label(better)
        assert old.cell is not None
        self.out.assign(old.cell, form)
        self.out.label(end)

    def _over_items(self, node: ast.Call, op: ast.cmpop | None) -> CellSum:
        """The sum of a list, its least item or its greatest."""
        out, expressions = self.out, self.code.expressions
        given, items = self._argument(node)
        assert items.items is not None
        assert items.items.root.item is not None
        item, pointer = items.items.root.item, expressions.kept(given)
        length = expressions.kept(self.code.lists.length(items, pointer))
        made, left, here = out.temporary(), self.lasting("left"), out.fresh("at")
        top, end = out.fresh("items"), out.fresh("end")
        out.assign(name(here), pointer)
        out.assign(left, length)
        out.clear(made)
        if op is not None:
            if items.items.root.low < 1:
                out.jump_if_low(length, self.error(node, "ValueError: the list is empty"), 0)
            out.assign(made, self.code.lists.load(pointer))
        out.label(top)
        out.sub(Z, left, end)
        found = self.code.lists.load_from(here, out.temporary())
        if op is not None:
            self._replace_if(op, found, item, cell(made), item)
        elif self.facts.check and not self.facts.value(node).within(self.facts.word.low + 1, self.facts.word.high - 1):
            out.assign(made, self.code.operators.checked("sum", node, cell(made), found))
        else:
            out.sub(next(iter(found.terms)), made)
        out.sub(literal(-1), name(here))
        out.sub(literal(1), left)
        out.jump(top)
        out.label(end)
        return cell(made)

    def _divmod(self, node: ast.Call) -> CellSum:
        left, right = self.code.expressions.evaluate_all(node.args)
        a, b = map(self.facts.value, node.args)
        self.quotients = self.code.operators.divide(node, left, a, right, b)
        return self.quotients[0]

    def _pow(self, node: ast.Call) -> CellSum:
        left, right = self.code.expressions.evaluate_all(node.args)
        a, b = map(self.facts.value, node.args)
        return self.code.operators.binary(node, ast.Pow(), left, a, right, b)

    def _ord(self, node: ast.Call) -> CellSum:
        given, value = self._argument(node)
        if value.kind != "str":
            return given
        text, fine = self.code.expressions.kept(given), self.out.fresh("character")
        wrong = self.error(node, "TypeError: ord() of a text that is not one character")
        rest = self.code.lists.length(value, text).plus(constant(-1))
        self.out.jump_by_zero(rest, fine, wrong, fine, -1, self.facts.word.high - 1)
        self.out.label(fine)
        return self.code.lists.load(text)

    def _chr(self, node: ast.Call) -> CellSum:
        given, value = self._argument(node)
        if value.within(0, 127):
            return given
        made = cell(self.out.own(given))
        wrong, good, fine = self.error(node, "ValueError: chr() is of 0 to 127 here"), *map(self.out.fresh, ("chr", "chr"))
        ordered = self.code.conditions.jump_if_ordered
        ordered(constant(0), number(0), made, value, 0, good, wrong, good)
        self.out.label(good)
        ordered(made, number(0, max(0, value.high)), constant(127), number(127), 0, fine, wrong, fine)
        self.out.label(fine)
        return made

    def _input(self, node: ast.Call) -> CellSum:
        for prompt in node.args:
            self.code.printing.write(prompt)
        self.routine("read_line")
        return cell(R, passing=True)
