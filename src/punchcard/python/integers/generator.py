"""The code generator: its parts, and what they share.

    out           instructions in order                  storage       cells, data and messages
    facts         what is known of expressions           frame         the function that is compiled
    expressions   values of expressions                  operators     arithmetic
    conditions    jumps by conditions                    lists         lists and texts
    calls         functions of the program               builtins      functions of Python
    printing      print                                  loops         for loops and comprehensions
    statements    the body of a function
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn

from punchcard.machines.von_neumann.languages.asq.items import Expression, scratch
from punchcard.python.integers.assembly import ERROR, Assembly, CellSum, P, Q, address
from punchcard.python.integers.findings import Findings
from punchcard.python.integers.functions import IntegerFunction
from punchcard.python.integers.storage import Storage

OVERFLOW = "OverflowError: the result does not fit a word of {} bits"


class FunctionFrame:
    """The function that is compiled, and where in it.

    statement     what is compiled;  once  whether it is executed once at most, so that its lists can be in the image
    fixed         variables that never change after they are set to an address;  hidden  those of comprehensions
    loop_nodes    the loops around the statement;  loop_cells  the cells that they need
    """

    function: IntegerFunction
    statement: ast.AST

    def __init__(self) -> None:
        self.once = False
        self.fixed: dict[str, CellSum] = {}
        self.hidden: list[dict[str, Expression]] = []
        self.loop_nodes: list[ast.AST] = []
        self.loop_cells: list[Expression] = []

    @contextmanager
    def inside(self, loop: ast.AST) -> Iterator[None]:
        """In a loop, whose body is executed many times."""
        once, self.once = self.once, False
        self.loop_nodes.append(loop)
        yield
        self.loop_nodes.pop()
        self.once = once

    @contextmanager
    def alive(self, *cells: Expression) -> Iterator[None]:
        """Cells of a loop, which a call of the function itself must leave as they are."""
        self.loop_cells += cells
        yield
        del self.loop_cells[len(self.loop_cells) - len(cells):]


class CodeGenerator:
    """The parts, made once for a program."""

    def __init__(self, findings: Findings, word_bits: int) -> None:
        from punchcard.python.integers.calls import BuiltinCode, CallCode
        from punchcard.python.integers.expressions import ConditionCode, ExpressionCode
        from punchcard.python.integers.lists import ListCode
        from punchcard.python.integers.loops import LoopCode
        from punchcard.python.integers.operators import OperatorCode
        from punchcard.python.integers.printing import PrintCode
        from punchcard.python.integers.statements import StatementCode

        self.out, self.storage = Assembly(word_bits), Storage(findings.functions)
        self.facts, self.frame = findings, FunctionFrame()
        self.operators, self.conditions, self.lists = OperatorCode(self), ConditionCode(self), ListCode(self)
        self.calls, self.builtins, self.printing = CallCode(self), BuiltinCode(self), PrintCode(self)
        self.loops = LoopCode(self)
        self.expressions, self.statements = ExpressionCode(self), StatementCode(self)


class CodePart:
    """A part of the code generator."""

    def __init__(self, code: CodeGenerator) -> None:
        self.code = code
        self.out, self.storage, self.facts, self.frame = code.out, code.storage, code.facts, code.frame

    def fail(self, node: ast.AST, message: str, instead: str = "") -> NoReturn:
        self.frame.function.source.fail(node, message, instead)

    def evaluate(self, node: ast.expr, *, as_text: bool = False) -> CellSum:
        """The value of an expression; `as_text`: as a whole text, where it may be a single character."""
        return self.code.expressions.text(node) if as_text else self.code.expressions.value(node)

    def evaluate_all(self, nodes: Sequence[ast.expr]) -> list[CellSum]:
        """Several values, each kept while the next ones are computed."""
        found = []
        for at, node in enumerate(nodes):
            form = self.evaluate(node)
            found.append(self.out.kept(form) if form.passing and any(map(self.facts.is_busy, nodes[at + 1 :])) else form)
        return found

    def variable(self, variable: str) -> Expression:
        """The cell of a variable of the function, or of the comprehension around."""
        for cells in reversed(self.frame.hidden):
            if variable in cells:
                return cells[variable]
        return self.storage.cell_of(self.frame.function, variable)

    def lasting(self, what: str) -> Expression:
        """A cell that lasts as long as a loop."""
        return scratch(self.storage.unused(f"{self.frame.function.name}_{what}"))

    def error(self, node: ast.AST, message: str) -> str:
        """The label of what is done for an error at a place."""
        return "error_" + self.storage.error_message(self.frame.function, node, message)

    def overflow(self, node: ast.AST) -> str:
        return self.error(node, OVERFLOW.format(self.out.word_bits))

    def routine(self, routine: str, entry: str = "") -> None:
        """Call a routine, which is then part of the program."""
        self.storage.need(routine)
        self.out.call(routine, entry)

    def set_error(self, node: ast.AST, message: str) -> None:
        """Choose what is written if the routine that is called next fails."""
        self.out.assign(ERROR, address(self.storage.error_message(self.frame.function, node, message)))

    def pass_operands(self, left: CellSum, right: CellSum | None = None) -> None:
        """Put values where routines find them; neither may be lost on the way."""
        if right is not None and P in right.terms:
            right = self.out.kept(right)
        if right is not None and Q in left.terms and P in left.terms:
            left = self.out.kept(left)
        self.out.assign(P, left)
        if right is not None:
            self.out.assign(Q, right)
