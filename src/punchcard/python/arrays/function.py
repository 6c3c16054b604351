"""The compiler of one function, put together from its parts: expressions, conditions, assignments, statements, loops."""

from __future__ import annotations

import ast

from punchcard.python.arrays.assignments import Assignments
from punchcard.python.arrays.calls import ArrayCalls
from punchcard.python.arrays.conditions import ArrayConditions
from punchcard.python.arrays.expressions import ArrayExpressions
from punchcard.python.arrays.for_loops import ForLoops
from punchcard.python.arrays.frame import Frame
from punchcard.python.arrays.joins import Joins
from punchcard.python.arrays.loops import Loops
from punchcard.python.arrays.operation_builder import OperationBuilder
from punchcard.python.arrays.statements import ArrayStatements
from punchcard.python.arrays.subscripts import Subscripts
from punchcard.python.arrays.values import ArrayValue, Value
from punchcard.python.source import FunctionSource


class ArrayFunction:
    """One call of a function; `frames` are the variables of the functions that called it."""

    def __init__(self, source: FunctionSource, builder: OperationBuilder, frames: list[dict[str, Value]]) -> None:
        self.frame = Frame(source, builder, frames)
        self.expressions = ArrayExpressions(self.frame)
        subscripts = Subscripts(self.expressions)
        conditions = ArrayConditions(self.expressions)
        joins = Joins(self.expressions, conditions)
        ArrayCalls(self.expressions, lambda source, arguments: ArrayFunction(source, builder, frames).compile(arguments))
        self.statements = ArrayStatements(Assignments(self.expressions, subscripts), conditions, joins)
        ForLoops(Loops(self.statements))

    def compile(self, arguments: dict[str, Value]) -> Value:
        """The value of the function for these arguments."""
        return self.statements.compile(arguments)

    def real(self, value: Value, node: ast.AST) -> ArrayValue:
        """A value as an array on the card."""
        return self.expressions.real(value, node)
