"""Calls: of functions of the program, and of those that are built in."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from punchcard.machines.von_neumann.languages.asq.items import Expression, name, scratch
from punchcard.python.integers.assembly import CellSum, R, Z, cell, constant, literal
from punchcard.python.integers.call_types import arguments_of
from punchcard.python.integers.functions import IntegerFunction
from punchcard.python.integers.generator import CodeGenerator, CodePart
from punchcard.python.integers.values import AbstractValue, number

NOT_A_NUMBER = "ValueError: int() of a text that is not a number of this word size"


class CallCode(CodePart):
    """Calls of functions of the program. Variables are cells, so those that are live are saved before a recursive call."""

    def call(self, node: ast.Call) -> CellSum:
        called = None if isinstance(node.func, ast.Attribute) else self.called(node)
        return self.code.builtins.call(node) if called is None else self._own_call(node, called)

    def called(self, node: ast.Call) -> IntegerFunction | None:
        """The function of the program that a call is of, or None if it is built in."""
        return self.facts.functions.called(self.frame.function, node)

    def move_arguments(self, node: ast.Call, called: IntegerFunction) -> dict[Expression, CellSum]:
        """The arguments by the cells of the parameters; none of them is changed by computing the next one."""
        given = arguments_of(self.frame.function, node, called)
        found: dict[str, CellSum] = {}
        order = [*node.args, *(keyword.value for keyword in node.keywords)]
        by_node = {id(argument): parameter for parameter, argument in given.items()}
        for at, argument in enumerate(order):
            parameter = by_node[id(argument)]
            form = self.evaluate(argument, as_text=parameter in called.texts)
            if form.passing and any(map(self.facts.is_busy, order[at + 1 :])):
                form = self.out.kept(form)
            found[parameter] = form
        for parameter, argument in given.items():
            if parameter not in found:
                value = argument.value if isinstance(argument, ast.Constant) else 0
                assert isinstance(value, int | str)
                found[parameter] = self.evaluate(argument, as_text=True) if parameter in called.texts else (
                    self.storage.constant(value))
        return {self.storage.cell_of(called, parameter): form for parameter, form in found.items()}

    def move(self, moves: dict[Expression, CellSum]) -> None:
        """Assign to cells at once: a value that an earlier assignment would change is kept before."""
        targets = list(moves)
        waiting = {
            target: self.out.kept(form) if any(other in form.terms for other in targets[:at]) else form
            for at, (target, form) in enumerate(moves.items())}
        for target, form in waiting.items():
            if form.cell != target:
                self.out.assign(target, form)

    def _own_call(self, node: ast.Call, called: IntegerFunction) -> CellSum:
        before = self.out.temporaries
        moves = self.move_arguments(node, called)
        again = called.recursive and self.frame.function.recursive and self._reaches(called)
        saved = self._live(node, before) if again else []
        if saved:
            moves = {target: self.out.kept(form) if form.passing else form for target, form in moves.items()}
            self.storage.need("stack")
            self.out.sub(literal(1), name("depth"), "too_deep")
            for place in saved:
                self.out.macro("push", place)
        self.move(moves)
        self.out.call(called.name)
        for place in reversed(saved):
            self.out.macro("pop", place)
        if saved:
            self.out.sub(literal(-1), name("depth"))
        return cell(self.storage.result_cell(called), passing=True)

    def _reaches(self, called: IntegerFunction) -> bool:
        """Whether a function that is called may call this one."""
        return self.frame.function is called or self.frame.function in called.reached()

    def _live(self, node: ast.Call, before: int) -> list[Expression]:
        """Cells that are needed after a call which may use them: what is read behind it, in a loop around it, or in the
        same statement, whose sums are not computed before they must be.
        """
        function, loops, statement = self.frame.function, self.frame.loop_nodes, self.frame.statement
        start, end = (node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0)
        around = {inner for each in (*loops, statement) for inner in ast.walk(each)}
        for call in ast.walk(statement):
            if isinstance(call, ast.Call) and not loops and isinstance(call.func, ast.Name) and (
                    call is node or (call.end_lineno or 0, call.end_col_offset or 0) <= start) and (
                    self.called(call) is not None):
                around -= set(ast.walk(call))  # its arguments have been moved
        cells: dict[str, Expression] = {}
        for other in ast.walk(function.node):
            read = other.target if isinstance(other, ast.AugAssign) else other
            if isinstance(read, ast.Name) and read.id in function.locals and (
                    read is not other or isinstance(read.ctx, ast.Load)) and (
                    (read.lineno, read.col_offset) >= end or read in around):
                cells[read.id] = self.variable(read.id)
        for loop in loops:
            for target in ast.walk(loop.target) if isinstance(loop, ast.For) else ():
                if isinstance(target, ast.Name):
                    cells[target.id] = self.variable(target.id)
        temporaries = [scratch(f"{function.name}_{k}") for k in range(1, before + 1)]
        hidden = [place for each in self.frame.hidden for place in each.values()]
        return list(dict.fromkeys([name(f"{function.name}_back"), *cells.values(), *self.frame.loop_cells, *hidden,
                                   *temporaries]))


class BuiltinCode(CodePart):
    """Calls of functions that are built in. `quotients` has both results of the last divmod()."""

    def __init__(self, code: CodeGenerator) -> None:
        super().__init__(code)
        self.quotients = constant(0), constant(0)
        self._functions: Mapping[str, Callable[[ast.Call], CellSum]] = {
            "int": self._int, "bool": lambda node: code.expressions.boolean(node.args[0]),
            "len": lambda node: code.lists.length(self.facts.value(node.args[0]), self.evaluate(node.args[0])),
            "abs": self._abs, "min": lambda node: self._extreme(node, ast.Lt()),
            "max": lambda node: self._extreme(node, ast.Gt()), "divmod": self._divmod, "pow": self._pow,
            "sum": lambda node: self._over_items(node, None), "ord": self._ord, "chr": self._chr, "input": self._input,
            "print": lambda node: code.printing.print(node)}

    def call(self, node: ast.Call) -> CellSum:
        if isinstance(node.func, ast.Attribute):
            return self._is_digit(node.func.value)
        assert isinstance(node.func, ast.Name)
        return self._functions[node.func.id](node)

    def _argument(self, node: ast.Call) -> tuple[CellSum, AbstractValue]:
        return self.evaluate(node.args[0]), self.facts.value(node.args[0])

    def _int(self, node: ast.Call) -> CellSum:
        given, value = self._argument(node)
        if value.is_number:
            return given
        if value.kind == "char":
            digit = self.out.kept(given)
            self.code.conditions.digit(digit, self.out.fresh("digit"), self.error(node, NOT_A_NUMBER))
            return digit.plus(constant(-48))
        self.pass_operands(given)
        self.set_error(node, NOT_A_NUMBER)
        self.routine("parse")
        return cell(R, passing=True)

    def _is_digit(self, node: ast.expr) -> CellSum:
        digit, made = self.out.kept(self.evaluate(node)), self.out.temporary()
        no = self.out.fresh("no")
        self.out.clear(made)
        self.code.conditions.digit(digit, self.out.fresh("yes"), no)
        self.out.sub(literal(-1), made)
        self.out.label(no)
        return cell(made)

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

    def _extreme(self, node: ast.Call, op: ast.cmpop) -> CellSum:
        if len(node.args) == 1:
            return self._over_items(node, op)
        forms = map(self.out.steady, self.evaluate_all(node.args))
        (form, value), *others = zip(forms, map(self.facts.value, node.args), strict=True)
        made, choose = self.out.own(form), min if isinstance(op, ast.Lt) else max
        for form, other in others:
            self.replace_if(op, form, other, made, value)
            value = number(choose(value.low, other.low), choose(value.high, other.high))
        return cell(made)

    def replace_if(self, op: ast.cmpop, form: CellSum, value: AbstractValue, old: Expression, before: AbstractValue) -> None:
        """Assign a value to a cell if it is smaller, or larger, than what is there."""
        better, end = self.out.fresh("better"), self.out.fresh("best")
        self.code.conditions.compare(op, form, value, cell(old), before, better, end, better)
        self.out.label(better)
        self.out.assign(old, form)
        self.out.label(end)

    def _over_items(self, node: ast.Call, op: ast.cmpop | None) -> CellSum:
        """The sum of a list, its least item or its greatest."""
        out = self.out
        given, items = self._argument(node)
        pointer, item = out.kept(given), items.list.item
        assert item is not None
        length = out.kept(self.code.lists.length(items, pointer))
        made, left, here = out.temporary(), self.lasting("left"), out.fresh("at")
        top, end = out.fresh("items"), out.fresh("end")
        out.assign(name(here), pointer)
        out.assign(left, length)
        out.clear(made)
        if op is not None:
            if items.list.low < 1:
                out.jump_if_low(length, self.error(node, "ValueError: the list is empty"), 0)
            out.assign(made, self.code.lists.load(pointer))
        out.label(top)
        out.sub(Z, left, end)
        found = self.code.lists.load_from(here, out.temporary())
        if op is not None:
            self.replace_if(op, found, item, made, item)
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
        left, right = self.evaluate_all(node.args)
        a, b = map(self.facts.value, node.args)
        self.quotients = self.code.operators.divide(node, left, a, right, b)
        return self.quotients[0]

    def _pow(self, node: ast.Call) -> CellSum:
        left, right = self.evaluate_all(node.args)
        a, b = map(self.facts.value, node.args)
        return self.code.operators.binary(node, ast.Pow(), left, a, right, b)

    def _ord(self, node: ast.Call) -> CellSum:
        given, value = self._argument(node)
        if value.kind != "str":
            return given
        text, fine = self.out.kept(given), self.out.fresh("character")
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
