"""The compiler, as a list of its passes: source to operations, a run in NumPy, and instructions.

    lower(source, shapes, kinds, constants)   the operations of the function for arguments of these shapes and types
    dry_run(code, values)                     how large values get for these arguments
    generate(code, ...)                       the FLEQ program for a range and for domains of functions

`code_generation.generate` lists the passes from operations to instructions: which way round matrices are stored
(`orientation`), structured code to instructions in a row (`linearization`), instructions that are not needed, shared
variables (`allocation`), and small improvements (`peephole`).
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from punchcard.python.arrays.arithmetic import matrix_shape
from punchcard.python.arrays.dead_code import drop_dead_code
from punchcard.python.arrays.dtypes import REAL, Kinds
from punchcard.python.arrays.function import ArrayFunction
from punchcard.python.arrays.ir import Operand, Ref, Register, Statement
from punchcard.python.arrays.operation_builder import OperationBuilder
from punchcard.python.arrays.values import ArrayValue, Known, NeedsConstant, Shape, TupleValue, Value
from punchcard.python.source import FunctionSource


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
    parameters: dict[str, Register] = {}
    arguments: dict[str, Value] = {}
    for name, shape in shapes.items():
        rows, columns = matrix_shape(shape)
        parameters[name] = builder.register(rows, columns, name=name, integral=kinds[name] != REAL)
        arguments[name] = ArrayValue(Ref(parameters[name]), shape, kinds=kinds[name])
    arguments |= {name: Known(value) for name, value in constants.items()}
    function = ArrayFunction(source, builder, [])
    try:
        value = function.compile(arguments)
    except NeedsConstant as need:
        source.fail(need.loop.line.node, f"the loop variable is needed as a constant: {need.message}")
    last = source.node.body[-1]
    items = value.items if isinstance(value, TupleValue) else (value,)
    if isinstance(value, Known) and value.value is None:
        source.fail(last, "the function returns nothing", "end it with return and the values that are wanted")
    if isinstance(value, Known) and isinstance(value.value, tuple):
        items = tuple(Known(item) for item in value.value)
    reals = [function.real(item, last) for item in items]
    moves: list[tuple[Register, Operand]] = []
    for number, real in enumerate(reals):
        rows, columns = matrix_shape(real.shape)
        moves.append((builder.register(rows, columns, name="result" if len(reals) == 1 else f"result{number + 1}"),
                      real.operand))
    returns = [node for node in ast.walk(source.node) if isinstance(node, ast.Return)]
    builder.moves(moves, function.frame.line(returns[-1] if returns else last))
    drop_dead_code(builder.code, [register for register, _ in moves])
    several = isinstance(value, TupleValue) or (isinstance(value, Known) and isinstance(value.value, tuple))
    return LoweredFunction(builder.code, parameters, [register for register, _ in moves], [real.shape for real in reals],
                           not several)
