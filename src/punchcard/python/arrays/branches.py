"""Branches: conditions of if and while, and where ways of control flow meet.

A branch of the machine looks at an integer. A comparison of integers is a difference; it is exact. A comparison of
real numbers goes through `positive`, a step that is 0 up to a small number and 1 from twice that on: a difference in
between is refused. Where ways meet, every variable has a home, a register that each way moves its value to.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

import numpy as np

from punchcard.python.arrays.arithmetic import Arithmetic
from punchcard.python.arrays.expressions import fold
from punchcard.python.arrays.frame import Frame, Handlers, Home
from punchcard.python.arrays.ir import Compound, Condition, Const, If, Negation, Operand, Register, Statement, Test
from punchcard.python.arrays.names import assigned_names
from punchcard.python.arrays.values import ArrayValue, Known, Missing, TupleValue, Value, dims, filled, matrix_shape
from punchcard.python.source import COMPARISONS

# Conditions


def condition_of(frame: Frame, node: ast.expr, *, first: bool = True) -> Condition | bool:
    """A condition, or what it is known to be when the function is compiled.

    The `first` comparison is made in any case, so what it computes is written before the branch, and is known after it.
    """
    if isinstance(node, ast.BoolOp):
        return _joined(frame, node, first=first)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        inner = condition_of(frame, node.operand, first=first)
        return not inner if isinstance(inner, bool) else Negation(inner)
    if isinstance(node, ast.Compare) and len(node.ops) > 1:
        return _chain(frame, node, first=first)
    work: list[Statement] = []
    if first:
        return _simple(frame, node, work)
    with frame.builder.scope(work, certain=False):
        return _simple(frame, node, work)


def _joined(frame: Frame, node: ast.BoolOp, *, first: bool) -> Condition | bool:
    """and, or: what is known already decides, or drops out."""
    any_of = isinstance(node.op, ast.Or)
    parts: list[Condition] = []
    for value in node.values:
        part = condition_of(frame, value, first=first)
        first = False
        if part is any_of:
            if not parts:
                return any_of
            parts.append(Test([], Const.of(float(any_of)), frame.line(value)))
            break
        if not isinstance(part, bool):
            parts.append(part)
    return parts[0] if len(parts) == 1 else Compound(parts, any_of) if parts else not any_of


def _chain(frame: Frame, node: ast.Compare, *, first: bool) -> Condition | bool:
    """a < b < c is a < b and b < c."""
    sides = [node.left, *node.comparators]
    pairs = [ast.copy_location(ast.Compare(sides[i], [op], [sides[i + 1]]), node) for i, op in enumerate(node.ops)]
    return _joined(frame, ast.copy_location(ast.BoolOp(ast.And(), list(pairs)), node), first=first)


def _simple(frame: Frame, node: ast.expr, work: list[Statement]) -> Condition | bool:
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
        left, right = frame.evaluate(node.left), frame.evaluate(node.comparators[0])
        sign, compute = COMPARISONS[type(node.ops[0])]
        if isinstance(left, Known) and isinstance(right, Known):
            return _truth(frame, fold(frame, node, sign, compute, left.value, right.value), node)
        a, b = _scalar(frame, left, node), _scalar(frame, right, node)
        frame.at(node)
        return _compared(frame, node, sign, a, b, work)
    value = frame.evaluate(node)
    if isinstance(value, Known):
        return _truth(frame, value, node)
    scalar = _scalar(frame, value, node)
    if scalar.boolean:
        return Test(work, scalar.operand, frame.line(node))
    return _compared(frame, node, "!=", scalar, ArrayValue(Const.of(0.0), ()), work)


def _truth(frame: Frame, value: Known, node: ast.AST) -> bool:
    try:
        return bool(value.value)
    except ValueError:
        frame.fail(node, "a condition of an array: it must be a scalar")


def _scalar(frame: Frame, value: Value, node: ast.AST) -> ArrayValue:
    real = frame.real(value, node)
    if int(np.prod(real.shape)) != 1:
        frame.fail(node, f"a condition of an array, {dims(real.shape)}: it must be a scalar", "use np.where, sum or norm")
    return ArrayValue(real.operand, (), kinds=real.kinds)


def _compared(frame: Frame, node: ast.AST, sign: str, a: ArrayValue, b: ArrayValue, work: list[Statement]) -> Condition:
    arithmetic, line = frame.arithmetic, frame.line(node)
    whole = a.operand.integral and b.operand.integral
    if sign in ("==", "!="):
        if not whole:
            frame.fail(node, f"{sign} of real numbers: the machine computes them with errors", "write np.abs(a - b) < 1e-6")
        unequal = Compound([_above(frame, a, b, node), _above(frame, b, a, node)], any=True)
        return unequal if sign == "!=" else Negation(unequal)
    if not whole:
        first, second = (a, b) if sign in (">", "<=") else (b, a)
        found = Test(work, arithmetic.positive(_difference(arithmetic, first, second)).operand, line)
        return found if sign in (">", "<") else Negation(found)
    first, second = (a, b) if sign in (">", ">=") else (b, a)
    if sign in (">=", "<="):  # a >= b is a + 1 > b; the constant is added to a constant where there is one
        if isinstance(second.operand, Const):
            second = arithmetic.sub(second, filled(1.0, ()))
        else:
            first = arithmetic.add(first, filled(1.0, ()))
    return Test(work, _difference(arithmetic, first, second).operand, line)


def _above(frame: Frame, a: ArrayValue, b: ArrayValue, node: ast.AST) -> Condition:
    work: list[Statement] = []
    with frame.builder.scope(work, certain=False):
        flag = _difference(frame.arithmetic, a, b)
    return Test(work, flag.operand, frame.line(node))


def _difference(arithmetic: Arithmetic, a: ArrayValue, b: ArrayValue) -> ArrayValue:
    return arithmetic.elementwise("sub", ArrayValue(a.operand, ()), ArrayValue(b.operand, ()), "-")


# Homes


def move(frame: Frame, homes: Mapping[str, Home], values: Mapping[str, Value], node: ast.AST, level: int) -> None:
    """Every home gets the value that its variable has on this way; `level` is how many loops are around the homes."""
    pairs: list[tuple[Register, Operand]] = []
    for name, home in homes.items():
        value = values.get(name)
        if home.missing:
            continue
        real = storable(frame, value, node)
        if real is None:
            why = value.why if isinstance(value, Missing) else f"{name!r} has no value on some ways to this place"
            home.missing = why if value is None or isinstance(value, Missing) else (
                f"{name!r} is not a number or an array on every way to this place")
            continue
        if home.register is None:
            home.register, home.shape = register(frame, name, real, level), real.shape
        elif home.shape != real.shape:
            home.missing = f"{name!r} has {dims(home.shape)} on one way to this place, {dims(real.shape)} on another"
            continue
        home.register.integral &= real.operand.integral
        home.kinds |= real.kinds
        home.buffers |= real.buffers
        pairs.append((home.register, real.operand))
    frame.builder.moves(pairs, frame.line(node))


def register(frame: Frame, name: str, real: ArrayValue, level: int) -> Register:
    """A new register for a variable."""
    found = frame.builder.register(*matrix_shape(real.shape), name=name if name.isidentifier() else "", integral=True)
    found.level = level
    return found


def storable(frame: Frame, value: Value | None, node: ast.AST) -> ArrayValue | None:
    """A value that a register can hold."""
    if value is None or isinstance(value, Missing | TupleValue):
        return None
    if isinstance(value, Known) and not isinstance(value.value, bool | int | float | np.number | np.ndarray):
        return None
    return frame.real(value, node)


def _choice(frame: Frame, node: ast.IfExp) -> Value:
    condition = condition_of(frame, node.test)
    if isinstance(condition, bool):
        return frame.evaluate(node.body if condition else node.orelse)
    statement, home = If(condition, [], [], frame.line(node)), {"value": Home()}
    frame.builder.add(statement)
    for part, into in ((node.body, statement.then), (node.orelse, statement.other)):
        with frame.builder.scope(into, certain=False):
            move(frame, home, {"value": frame.evaluate(part)}, node, frame.builder.level)
    value = home["value"].value
    if isinstance(value, Missing):
        frame.fail(node, value.why)
    return value


def _if(frame: Frame, node: ast.If) -> None:
    condition = condition_of(frame, node.test)
    if isinstance(condition, bool):
        frame.run(node.body if condition else node.orelse)
        return
    statement = If(condition, [], [], frame.line(node))
    before, homes = dict(frame.env), {name: Home() for name in sorted(assigned_names([*node.body, *node.orelse]))}
    frame.builder.add(statement)
    ends: list[tuple[list[Statement], dict[str, Value]]] = []
    for part, into in ((node.body, statement.then), (node.orelse, statement.other)):
        frame.set_env(before)
        frame.over = False
        with frame.builder.scope(into, certain=False):
            frame.run(part)
        if not frame.over:
            ends.append((into, dict(frame.env)))
    frame.over = not ends
    if len(ends) == 1:
        frame.set_env(ends[0][1])
    elif ends:
        for into, values in ends:
            frame.set_env(values)
            with frame.builder.scope(into, certain=False):
                move(frame, homes, values, node, frame.builder.level)
        frame.set_env(before)
        for name, home in homes.items():
            first, second = (values.get(name) for _, values in ends)
            same = isinstance(first, TupleValue | Known) and first is second
            frame.env[name] = first if same and first is not None else home.value


HANDLERS: Handlers = {ast.If: _if, ast.IfExp: _choice}
