"""Calls of functions of the program. Variables are cells, so those that are live are saved before a recursive call."""

from __future__ import annotations

import ast

from punchcard.machines.von_neumann.languages.asq.items import Expression, name, scratch
from punchcard.python.integers.call_types import arguments_of
from punchcard.python.integers.functions import IntegerFunction
from punchcard.python.integers.generator import CodePart
from punchcard.python.integers.sums import CellSum, cell, literal


class CallCode(CodePart):
    """Values of calls."""

    def call(self, node: ast.Call) -> CellSum:
        called = None if isinstance(node.func, ast.Attribute) else self.called(node)
        return self.code.builtins.call(node) if called is None else self._own_call(node, called)

    def called(self, node: ast.Call) -> IntegerFunction | None:
        """The function of the program that a call is of, or None if it is built in."""
        return self.facts.functions.called(self.frame.function, node)

    def move_arguments(self, node: ast.Call, called: IntegerFunction) -> dict[Expression, CellSum]:
        """The arguments by the cells of the parameters; none of them is changed by computing the next one."""
        given = arguments_of(self.frame.function, node, called)
        expressions = self.code.expressions
        found: dict[str, CellSum] = {}
        order = [*node.args, *(keyword.value for keyword in node.keywords)]
        by_node = {id(argument): parameter for parameter, argument in given.items()}
        for at, argument in enumerate(order):
            parameter = by_node[id(argument)]
            form = expressions.as_text(argument) if parameter in called.texts else expressions.evaluate(argument)
            if form.passing and any(map(self.facts.is_busy, order[at + 1 :])):
                form = expressions.kept(form)
            found[parameter] = form
        for parameter, argument in given.items():
            if parameter not in found:
                value = argument.value if isinstance(argument, ast.Constant) else 0
                assert isinstance(value, int | str)
                found[parameter] = expressions.as_text(argument) if parameter in called.texts else (
                    self.storage.constant(value))
        return {self.storage.cell_of(called, parameter): form for parameter, form in found.items()}

    def move(self, moves: dict[Expression, CellSum]) -> None:
        """Assign to cells at once: a value that an earlier assignment would change is kept before."""
        targets = list(moves)
        waiting = {
            target: self.code.expressions.kept(form) if any(other in form.terms for other in targets[:at]) else form
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
            moves = {target: self.code.expressions.kept(form) if form.passing else form for target, form in moves.items()}
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
