"""The compiler, as a list of its passes: source to operations, a run in NumPy, and instructions.

    lower(source, shapes, kinds, constants)   the operations of the function for arguments of these shapes and types
    NumpyRun(code, values)                    a run in NumPy: how large values get for these arguments
    generate(code, ...)                       the FLEQ program for a range and for domains of functions

`code_generation.generate` lists the passes from operations to instructions: which way round matrices are stored
(`orientation`), structured code to instructions in a row (`linearization`), instructions that are not needed, shared
variables (`allocation`), and small improvements (`peephole`).
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from punchcard.python.arrays import branches, calls, expressions, indexing, loops, statements
from punchcard.python.arrays.frame import Frame, Handlers
from punchcard.python.arrays.ir import If, Loop, Moves, Op, Operand, Ref, Register, Statement, blocks, tests, walk
from punchcard.python.arrays.operation_builder import OperationBuilder
from punchcard.python.arrays.values import (
    REAL,
    ArrayValue,
    Kinds,
    Known,
    NeedsConstant,
    Shape,
    Value,
    items_of,
    matrix_shape,
)
from punchcard.python.source import FunctionSource

HANDLERS: Handlers = {
    kind: handler for part in (expressions, indexing, calls, branches, statements, loops)
    for kind, handler in part.HANDLERS.items()}
"""What compiles each construct of the subset."""


@dataclass(frozen=True)
class LoweredFunction:
    """A function as operations: its parameters, and its results with their shapes; `one`: it returns one value."""

    code: list[Statement]
    parameters: dict[str, Register]
    results: list[Register]
    shapes: list[Shape]
    one: bool


def lower(source: FunctionSource, shapes: Mapping[str, Shape], kinds: Mapping[str, Kinds],
          constants: Mapping[str, object]) -> LoweredFunction:
    """The operations of a function for data of these shapes and types, and these constants."""
    builder = OperationBuilder()
    with source.refusing(source.node):
        parameters = {name: builder.register(*matrix_shape(shape), name=name, integral=kinds[name] != REAL)
                      for name, shape in shapes.items()}
    arguments: dict[str, Value] = {
        **{name: ArrayValue(Ref(parameters[name]), shape, kinds=kinds[name]) for name, shape in shapes.items()},
        **{name: Known(value) for name, value in constants.items()}}
    frame = Frame(source, builder, [], HANDLERS)
    try:
        value = statements.compile_function(frame, arguments)
    except NeedsConstant as need:
        source.fail(need.loop.line.node, f"the loop variable is needed as a constant: {need.message}")
    last = source.node.body[-1]
    if isinstance(value, Known) and value.value is None:
        source.fail(last, "the function returns nothing", "end it with return and the values that are wanted")
    items = items_of(value)
    with source.refusing(last):
        reals = [frame.real(item, last) for item in ((value,) if items is None else items)]
        results = [builder.register(*matrix_shape(real.shape), name="result" if len(reals) == 1 else f"result{number}")
                   for number, real in enumerate(reals, start=1)]
    returns = [node for node in ast.walk(source.node) if isinstance(node, ast.Return)]
    builder.moves([(register, real.operand) for register, real in zip(results, reals, strict=True)],
                  frame.line(returns[-1] if returns else last))
    drop_dead_code(builder.code, results)
    return LoweredFunction(builder.code, parameters, results, [real.shape for real in reals], items is None)


def drop_dead_code(code: list[Statement], results: list[Register]) -> None:
    """Drop, in place, operations that no result and no branch needs, so that they do not count for the range."""
    needed = set(results)
    makers: dict[Register, list[Operand]] = {}
    for statement in walk(code):
        if isinstance(statement, Op):
            makers.setdefault(statement.target, []).extend(statement.operands)
        elif isinstance(statement, Moves):
            for target, value in statement.pairs:
                makers.setdefault(target, []).append(value)
        elif isinstance(statement, If):
            needed |= {test.flag.register for test in tests(statement.condition) if isinstance(test.flag, Ref)}
        elif isinstance(statement, Loop) and isinstance(statement.count, Ref):
            needed.add(statement.count.register)
    left = list(needed)
    while left:
        for operand in makers.get(left.pop(), ()):
            if isinstance(operand, Ref) and operand.register not in needed:
                needed.add(operand.register)
                left.append(operand.register)
    _keep(code, needed)


def _keep(code: list[Statement], needed: set[Register]) -> None:
    """Keep what sets these registers, and what may leave a place."""
    for statement in code:
        if isinstance(statement, Moves):
            statement.pairs = [(target, value) for target, value in statement.pairs if target in needed]
        elif isinstance(statement, Loop) and statement.index not in needed:
            statement.index = None
        for block in blocks(statement):
            _keep(block, needed)
    code[:] = [statement for statement in code if not (isinstance(statement, Op) and statement.target not in needed)
               and not (isinstance(statement, Moves) and not statement.pairs)]
