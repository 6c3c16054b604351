"""Arithmetic: an operation on two sums is a sum, or a call of a routine."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from functools import partial

from punchcard.python.integers.assembly import CellSum, P, Q, R, U, Z, cell, constant, literal
from punchcard.python.integers.generator import OVERFLOW, CodeGenerator, CodePart
from punchcard.python.integers.values import AbstractValue, number

MOST_TIMES = 3
Operation = Callable[[ast.AST, CellSum, AbstractValue, CellSum, AbstractValue], CellSum]


class OperatorCode(CodePart):
    """Unary and binary operators. An operand is a sum and what is known of it."""

    def __init__(self, code: CodeGenerator) -> None:
        super().__init__(code)
        self._operations: Mapping[type[ast.operator], Operation] = {
            ast.Add: partial(self._sum, ast.Add(), 1), ast.Sub: partial(self._sum, ast.Sub(), -1), ast.Mult: self._multiply,
            ast.FloorDiv: lambda *given: self.divide(*given)[0],
            ast.Mod: lambda *given: self.divide(*given, quotient=False)[1], ast.Pow: self._power,
            ast.LShift: self._shift_left, ast.RShift: self._shift_right, ast.BitAnd: self._and,
            ast.BitOr: partial(self._without_both, 1), ast.BitXor: partial(self._without_both, 2)}

    def binary(self, node: ast.AST, op: ast.operator, left: CellSum, a: AbstractValue, right: CellSum,
               b: AbstractValue) -> CellSum:
        return self.out.as_word(self._operations[type(op)](node, left, a, right, b))

    def unary(self, node: ast.UnaryOp, operand: CellSum, value: AbstractValue) -> CellSum:
        if isinstance(node.op, ast.UAdd):
            return operand
        if isinstance(node.op, ast.Invert):
            return constant(-1).plus(operand, -1)
        if not self.facts.check or value.low > self.facts.word.low:
            return operand.times(-1)
        given = self.out.tested(operand)  # it may be the least number, whose negation is itself
        made, fine = self.out.own(operand.times(-1)), self.out.fresh("fine")
        self.out.macro("jgez", given, fine)
        self.out.macro("jltz", made, self.overflow(node))
        self.out.label(fine)
        return cell(made)

    def _sum(self, op: ast.operator, sign: int, node: ast.AST, left: CellSum, a: AbstractValue, right: CellSum,
             b: AbstractValue) -> CellSum:
        if self.facts.may_wrap(op, a, b):
            return left.plus(right, sign)
        return self.checked("sum" if sign > 0 else "difference", node, left, right)

    def checked(self, what: str, node: ast.AST, left: CellSum, right: CellSum) -> CellSum:
        """A sum or a difference that must fit a word."""
        self.storage.need("checked")
        made = self.out.temporary()
        self.out.macro(f"{what}_checked", self.out.tested(left), self.out.tested(right), made, self.overflow(node))
        return cell(made)

    def _routine(self, node: ast.AST, routine: str, left: CellSum, right: CellSum) -> CellSum:
        """The result of a routine of two numbers."""
        if routine.endswith("_checked"):
            self.set_error(node, OVERFLOW.format(self.out.word_bits))
        self.pass_operands(left, right)
        self.routine(routine)
        return cell(R, passing=True)

    def _multiply(self, node: ast.AST, left: CellSum, a: AbstractValue, right: CellSum, b: AbstractValue) -> CellSum:
        whole = self.facts.may_wrap(ast.Mult(), a, b)
        for form, other in ((left, right), (right, left)):
            if form.known is not None and whole:
                return self._multiple(other, form.known)
        if a.interval.magnitude > b.interval.magnitude:
            left, right = right, left
        return self._routine(node, "multiply" if whole else "multiply_checked", left, right)

    def _multiple(self, form: CellSum, factor: int) -> CellSum:
        if len(form.terms) > 1 and abs(factor) > MOST_TIMES:
            form = self.out.kept(form)
        return form.times(factor)

    def divide(
        self, node: ast.AST, left: CellSum, a: AbstractValue, right: CellSum, b: AbstractValue, *, quotient: bool = True
    ) -> tuple[CellSum, CellSum]:
        """Quotient and remainder. Only the quotient may not fit a word: the least number over -1."""
        divisor = b.constant if right.known is not None else None
        if divisor == 1:
            return left, constant(0)
        if a.low >= 0 and b.low > a.high:
            return constant(0), left
        if divisor is not None and divisor > 0:
            self.pass_operands(left)
            name = f"divide_by_{divisor}"
            self.routine(name, f"{name}_plain" if a.low >= 0 else name)
            return cell(R, passing=True), cell(U, passing=True)
        if 0 in b.interval:
            right, left = self.out.steady(right), self.out.steady(left)
            fine = self.out.fresh("divisor")
            wrong = self.error(node, "ZeroDivisionError: division by zero")
            self.out.jump_by_zero(right, wrong, fine, fine, b.low, b.high)
            self.out.label(fine)
        self.pass_operands(left, right)
        self.routine("divide", "divide_plain" if a.low >= 0 and b.low >= 0 else "divide")
        if quotient and self.facts.check and a.low == self.facts.word.low and -1 in b.interval:
            fine = self.out.fresh("fine")
            self.out.macro("jgez", P, fine)
            self.out.macro("jgez", Q, fine)
            self.out.macro("jltz", R, self.overflow(node))
            self.out.label(fine)
        return cell(R, passing=True), cell(U, passing=True)

    def _power(self, node: ast.AST, left: CellSum, a: AbstractValue, right: CellSum, b: AbstractValue) -> CellSum:
        whole = self.facts.may_wrap(ast.Pow(), a, b)
        if b.constant == 0:
            return constant(1)
        if b.constant == 1:
            return left
        if b.constant == 2:
            left = self.out.steady(left)
            return self._routine(node, "multiply" if whole else "multiply_checked", left, left)
        left, right = self._not_negative(node, left, right, b, "ValueError: a negative power is not a whole number")
        if a.constant == 2 and whole:
            return self._routine(node, "shift_left", constant(1), right)
        return self._routine(node, "power" if whole else "power_checked", left, right)

    def _not_negative(self, node: ast.AST, left: CellSum, right: CellSum, b: AbstractValue,
                      message: str) -> tuple[CellSum, CellSum]:
        if b.low >= 0:
            return left, right
        left, right = self.out.steady(left), self.out.kept(right)
        self.out.macro("jltz", self.out.tested(right), self.error(node, message))
        return left, right

    def _shift_left(self, node: ast.AST, left: CellSum, a: AbstractValue, right: CellSum, b: AbstractValue) -> CellSum:
        whole = self.facts.may_wrap(ast.LShift(), a, b)
        if b.constant is not None and right.known is not None and whole:
            return self._multiple(left, 1 << b.constant) if b.constant < self.out.word_bits else constant(0)
        left, right = self._not_negative(node, left, right, b, "ValueError: negative shift count")
        return self._routine(node, "shift_left", left, right) if whole else self._shift_checked(node, left, a, right)

    def _shift_checked(self, node: ast.AST, left: CellSum, a: AbstractValue, right: CellSum) -> CellSum:
        """p << q that must fit: by q - 1 first, and then twice that, since 2^(N-1) is not a word and -2^(N-1) is."""
        out, bits = self.out, self.out.word_bits
        left, right = self.out.steady(left), self.out.steady(right)
        made, some, end, fine = out.own(left), *map(out.fresh, ("some", "end", "fine"))
        self.pass_operands(left, right)
        out.jump_by_zero(cell(made), end, some, some, a.low, a.high)
        out.label(some)
        out.sub(Z, Q, end)
        out.jump_if_low(cell(Q).plus(constant(1 - bits)), fine, -bits)
        out.jump(self.overflow(node))
        out.label(fine)
        out.sub(literal(1), Q)
        self.routine("power_of_two")
        self.set_error(node, OVERFLOW.format(bits))
        self.routine("multiply_checked")
        out.assign(made, self.checked("sum", node, cell(R), cell(R)))
        out.label(end)
        return cell(made)

    def _shift_right(self, node: ast.AST, left: CellSum, a: AbstractValue, right: CellSum, b: AbstractValue) -> CellSum:
        if b.constant is not None and right.known is not None:
            if b.constant == 0:
                return left
            power = min(b.constant, self.out.word_bits - 2)
            found = self.divide(node, left, a, constant(1 << power), number(1 << power))[0]
            if b.constant > power:  # what is left is -2 to 1
                return self.divide(node, found, number(-2, 1), constant(2), number(2))[0]
            return found
        left, right = self._not_negative(node, left, right, b, "ValueError: negative shift count")
        self.pass_operands(left, right)
        self.routine("power_of_two")
        self.routine("divide")
        return cell(R, passing=True)

    def _and(self, node: ast.AST, left: CellSum, a: AbstractValue, right: CellSum, b: AbstractValue) -> CellSum:
        for form, value, mask in ((left, a, right.known), (right, b, left.known)):
            if mask is not None and mask >= 0 and mask & (mask + 1) == 0 and mask < self.facts.word.high:
                return self.divide(node, form, value, constant(mask + 1), number(mask + 1))[1]
        if a.within(0, 1) and b.within(0, 1):
            made, end = self.out.temporary(), self.out.fresh("both")
            self.out.clear(made)
            self.out.jump_if_low(left, end, 0)
            self.out.assign(made, right)
            self.out.label(end)
            return cell(made)
        return self._routine(node, "both_bits", left, right)

    def _without_both(self, times: int, node: ast.AST, left: CellSum, a: AbstractValue, right: CellSum,
                      b: AbstractValue) -> CellSum:
        """a | b is a + b - (a & b), and a ^ b takes that away once more."""
        left, right = self.out.steady(left), self.out.steady(right)
        return left.plus(right).plus(self._and(node, left, a, right, b), -times)
