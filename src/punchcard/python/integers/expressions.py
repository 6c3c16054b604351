"""Expressions to code: sums stay sums as long as they can, and everything else is a routine or a few instructions."""

from __future__ import annotations

import ast
from abc import abstractmethod

from punchcard.python.integers.conditions import Conditions
from punchcard.python.integers.forms import Form, address, cell, constant
from punchcard.python.integers.values import Value

OVERFLOW = "OverflowError: the result does not fit a word of {} bits"
MOST_TIMES = 3


class Expressions(Conditions):
    """The values of expressions."""

    @abstractmethod
    def repeated(self, node: ast.BinOp) -> Form:
        """A list some times over."""

    @abstractmethod
    def store(self, place: Form, value: Form) -> None:
        """Put a value into the cell at an address."""

    def _Constant(self, node: ast.Constant) -> Form:
        return self.outside(node.value)

    def _Name(self, node: ast.Name) -> Form:
        if node.id in self.fixed and not any(node.id in names for names in self.hidden):
            return self.fixed[node.id]
        if node.id in self.function.locals:
            return cell(self.variable(node.id))
        return self.outside(self.function.source.names[node.id])

    def _UnaryOp(self, node: ast.UnaryOp) -> Form:
        if isinstance(node.op, ast.Not):
            return self.boolean(node)
        found = self.form(node.operand)
        if isinstance(node.op, ast.UAdd):
            return found
        if isinstance(node.op, ast.Invert):
            return constant(-1).plus(found, -1)
        if self.check and self.value(node.operand).low <= self.word.low:
            return self._negated_checked(found, node)
        return found.times(-1)

    def _negated_checked(self, form: Form, node: ast.AST) -> Form:
        """Minus a value, where it may be the least number."""
        given = self.tested(form)
        made, fine = self.own(form.times(-1)), self.fresh("fine")
        self.put(f"@jgez {given} {fine}")
        self.put(f"@jltz {made} {self.overflow(node)}")
        self.label(fine)
        return cell(made)

    def overflow(self, node: ast.AST) -> str:
        return self.error(node, OVERFLOW.format(self.word_bits))

    def _BinOp(self, node: ast.BinOp) -> Form:
        if self.value(node).kind == "list":
            return self.repeated(node)
        left, right = self.forms([node.left, node.right])
        return self.binary(node, node.op, left, self.value(node.left), right, self.value(node.right))

    def binary(self, node: ast.AST, op: ast.operator, left: Form, a: Value, right: Form, b: Value) -> Form:
        """An operation on two values."""
        method = getattr(self, "_op_" + type(op).__name__)
        found: Form = method(node, left, a, right, b)
        return self.as_word(found)

    def _op_Add(self, node: ast.AST, left: Form, a: Value, right: Form, b: Value) -> Form:
        if not self.check or self.fits(ast.Add(), a, b):
            return left.plus(right)
        return self._checked("sum", node, left, right)

    def _op_Sub(self, node: ast.AST, left: Form, a: Value, right: Form, b: Value) -> Form:
        if not self.check or self.fits(ast.Sub(), a, b):
            return left.plus(right, -1)
        return self._checked("difference", node, left, right)

    def _checked(self, what: str, node: ast.AST, left: Form, right: Form) -> Form:
        self.need("checked")
        made = self.temporary()
        operands = [self.tested(form) for form in (left, right)]
        self.put(f"@{what}_checked {operands[0]} {operands[1]} {made} {self.overflow(node)}")
        return cell(made)

    def _op_Mult(self, node: ast.AST, left: Form, a: Value, right: Form, b: Value) -> Form:
        whole = not self.check or self.fits(ast.Mult(), a, b)
        for form, other in ((left, right), (right, left)):
            if form.known is not None and whole:
                return self.multiple(other, form.known)
        if max(abs(a.low), abs(a.high)) > max(abs(b.low), abs(b.high)):
            left, right = right, left
        return self._routine(node, "multiply" if whole else "multiply_checked", left, right)

    def multiple(self, form: Form, factor: int) -> Form:
        if len(form.terms) > 1 and abs(factor) > MOST_TIMES:
            form = self.kept(form)
        return form.times(factor)

    def _routine(self, node: ast.AST, name: str, left: Form, right: Form | None = None, result: str = "$r") -> Form:
        """Call a routine of two numbers."""
        if name.endswith("_checked"):
            self.set_error(node, OVERFLOW.format(self.word_bits))
        self.given(left, right)
        self.routine(name)
        return cell(result, passing=True)

    def given(self, left: Form, right: Form | None = None) -> None:
        """Put values where routines find them; neither may be lost on the way."""
        if right is not None:
            if "$p" in right.terms:
                right = self.kept(right)
            if "$q" in left.terms and "$p" in left.terms:
                left = self.kept(left)
            self.assign("$p", left)
            self.assign("$q", right)
        else:
            self.assign("$p", left)

    def _op_FloorDiv(self, node: ast.AST, left: Form, a: Value, right: Form, b: Value) -> Form:
        return self.divided(node, left, a, right, b)[0]

    def _op_Mod(self, node: ast.AST, left: Form, a: Value, right: Form, b: Value) -> Form:
        return self.divided(node, left, a, right, b, quotient=False)[1]

    def divided(
        self, node: ast.AST, left: Form, a: Value, right: Form, b: Value, *, quotient: bool = True
    ) -> tuple[Form, Form]:
        """Quotient and remainder. Only the quotient may not fit a word: the least number over -1."""
        divisor = b.constant if right.known is not None else None
        if divisor == 1:
            return left, constant(0)
        if a.low >= 0 and b.low > a.high:
            return constant(0), left
        if divisor is not None and divisor > 0:
            self.given(left)
            name = f"divide_by_{divisor}"
            self.need(name)
            self.put(f"@go {name}{'_plain' if a.low >= 0 else ''} {name}_back")
        else:
            if b.low <= 0 <= b.high:
                right = self.steady(right)
                left = self.steady(left)
                fine = self.fresh("divisor")
                self.jump_by_zero(right, self.error(node, "ZeroDivisionError: division by zero"), fine, fine, b.low, b.high)
                self.label(fine)
            self.given(left, right)
            self.need("divide")
            self.put(f"@go divide{'_plain' if a.low >= 0 and b.low >= 0 else ''} divide_back")
            if quotient and self.check and a.low == self.word.low and b.low <= -1 <= b.high:
                fine = self.fresh("fine")
                self.put(f"@jgez $p {fine}; @jgez $q {fine}; @jltz $r {self.overflow(node)}")
                self.label(fine)
        return cell("$r", passing=True), cell("$u", passing=True)

    def _op_Pow(self, node: ast.AST, left: Form, a: Value, right: Form, b: Value) -> Form:
        whole = not self.check or self.fits(ast.Pow(), a, b)
        if b.constant == 0:
            return constant(1)
        if b.constant == 1:
            return left
        if b.constant == 2:
            left = self.steady(left)
            return self._routine(node, "multiply" if whole else "multiply_checked", left, left)
        left, right = self._not_negative(node, left, right, b, "ValueError: a negative power is not a whole number")
        if a.constant == 2 and whole:
            return self._routine(node, "shift_left", constant(1), right)
        return self._routine(node, "power" if whole else "power_checked", left, right)

    def _not_negative(self, node: ast.AST, left: Form, right: Form, b: Value, message: str) -> tuple[Form, Form]:
        if b.low >= 0:
            return left, right
        left, right = self.steady(left), self.kept(right)
        self.put(f"@jltz {self.tested(right)} {self.error(node, message)}")
        return left, right

    def _op_LShift(self, node: ast.AST, left: Form, a: Value, right: Form, b: Value) -> Form:
        whole = not self.check or self.fits(ast.LShift(), a, b)
        if b.constant is not None and right.known is not None and whole:
            return self.multiple(left, 1 << b.constant) if b.constant < self.word_bits else constant(0)
        left, right = self._not_negative(node, left, right, b, "ValueError: negative shift count")
        if whole:
            return self._routine(node, "shift_left", left, right)
        return self._shifted_checked(node, left, a, right)

    def _shifted_checked(self, node: ast.AST, left: Form, a: Value, right: Form) -> Form:
        """p << q that must fit: by q - 1 first, and then twice that, since 2^(N-1) is not a word and -2^(N-1) is."""
        left, right = self.steady(left), self.steady(right)
        made, some, end, fine = self.own(left), self.fresh("some"), self.fresh("end"), self.fresh("fine")
        self.given(left, right)
        self.jump_by_zero(cell(made), end, some, some, a.low, a.high)
        self.label(some)
        self.sub("$z", "$q", end)
        self.jump_if_low(cell("$q").plus(constant(1 - self.word_bits)), fine, -self.word_bits)
        self.jump(self.overflow(node))
        self.label(fine)
        self.sub("=1", "$q")
        self.routine("power_of_two")
        self.set_error(node, OVERFLOW.format(self.word_bits))
        self.routine("multiply_checked")
        self.assign(made, self._checked("sum", node, cell("$r"), cell("$r")))
        self.label(end)
        return cell(made)

    def _op_RShift(self, node: ast.AST, left: Form, a: Value, right: Form, b: Value) -> Form:
        if b.constant is not None and right.known is not None:
            if b.constant == 0:
                return left
            power = min(b.constant, self.word_bits - 2)
            found = self.divided(node, left, a, constant(1 << power), Value("int", 1 << power, 1 << power))[0]
            if b.constant > power:  # what is left is -2 to 1
                return self.divided(node, found, Value("int", -2, 1), constant(2), Value("int", 2, 2))[0]
            return found
        left, right = self._not_negative(node, left, right, b, "ValueError: negative shift count")
        self.given(left, right)
        self.routine("power_of_two")
        self.need("divide")
        self.put("@go divide divide_back")
        return cell("$r", passing=True)

    def _op_BitAnd(self, node: ast.AST, left: Form, a: Value, right: Form, b: Value) -> Form:
        for form, value, mask in ((left, a, right.known), (right, b, left.known)):
            if mask is not None and mask >= 0 and mask & (mask + 1) == 0 and mask < self.word.high:
                size = Value("int", mask + 1, mask + 1)
                return self.divided(node, form, value, constant(mask + 1), size)[1]
        if a.within(0, 1) and b.within(0, 1):
            made, end = self.temporary(), self.fresh("both")
            self.clear(made)
            self.jump_if_low(left, end, 0)
            self.assign(made, right)
            self.label(end)
            return cell(made)
        return self._routine(node, "both_bits", left, right)

    def _op_BitOr(self, node: ast.AST, left: Form, a: Value, right: Form, b: Value) -> Form:
        return self._without_both(node, left, a, right, b, 1)

    def _op_BitXor(self, node: ast.AST, left: Form, a: Value, right: Form, b: Value) -> Form:
        return self._without_both(node, left, a, right, b, 2)

    def _without_both(self, node: ast.AST, left: Form, a: Value, right: Form, b: Value, times: int) -> Form:
        """a | b is a + b - (a & b), and a ^ b takes that away once more."""
        left, right = self.steady(left), self.steady(right)
        return left.plus(right).plus(self._op_BitAnd(node, left, a, right, b), -times)

    def _Compare(self, node: ast.Compare) -> Form:
        return self.boolean(node)

    def boolean(self, node: ast.expr, into: str = "") -> Form:
        """1 where a condition holds, else 0."""
        made = into or self.temporary()
        holds, end = self.fresh("true"), self.fresh("false")
        self.clear(made)
        self.condition(node, holds, end, holds)
        self.label(holds)
        self.sub("=-1", made)
        self.label(end)
        return cell(made)

    def _BoolOp(self, node: ast.BoolOp) -> Form:
        if self.value(node).kind == "bool":
            return self.boolean(node)
        made, end = self.temporary(), self.fresh("decided")
        for operand in node.values:
            if operand not in self.values:
                break  # what stands before decides
            self.assign(made, self.form(operand))
            if operand is not node.values[-1]:
                ahead = self.fresh("else")
                yes, no = (ahead, end) if isinstance(node.op, ast.And) else (end, ahead)
                self.truth(self.value(operand), cell(made), yes, no, ahead)
                self.label(ahead)
        self.label(end)
        return cell(made)

    def _IfExp(self, node: ast.IfExp) -> Form:
        made, yes, no, end = self.temporary(), self.fresh("then"), self.fresh("else"), self.fresh("end")
        as_text = self.value(node).kind == "str"
        self.condition(node.test, yes, no, yes)
        self.label(yes)
        self.assign(made, self.as_text(node.body) if as_text else self.form(node.body))
        self.jump(end)
        self.label(no)
        self.assign(made, self.as_text(node.orelse) if as_text else self.form(node.orelse))
        self.label(end)
        return cell(made)

    def as_text(self, node: ast.expr) -> Form:
        """A value as a whole text, where it may be a single character."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return address(self.text_object(node.value))
        if self.value(node).kind != "char":
            return self.form(node)
        character = self.kept(self.form(node))
        self.given(constant(1))
        self.routine("allocate")
        made = self.own(cell("$r"))
        self.store(cell(made), character)
        return cell(made)
