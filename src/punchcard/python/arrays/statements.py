"""Statements without branches: assignments and return; and the statements of a function.

Parts of arrays are changed in place. Where NumPy has two names for one array, or would cut off what is stored, the
assignment is refused.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count

import numpy as np

from punchcard.python.arrays.branches import move
from punchcard.python.arrays.expressions import combine
from punchcard.python.arrays.frame import Frame, Handlers, Home
from punchcard.python.arrays.indexing import Span, get, place, places, put
from punchcard.python.arrays.ir import Leave
from punchcard.python.arrays.values import ArrayValue, Known, TupleValue, Value, dims, items_of, keeps, least

MOST_DEPTH = 20
_BUFFERS = count(1)


def compile_function(frame: Frame, arguments: Mapping[str, Value]) -> Value:
    """The value of the frame's function for these arguments."""
    source, results = frame.source, frame.results
    if len(frame.frames) > MOST_DEPTH:
        frame.fail(source.node, f"more than {MOST_DEPTH} calls inside each other: recursion is not in the subset of arrays",
                   "use a loop")
    frame.env = {name: owned(value) for name, value in arguments.items()}
    frame.frames.append(frame.env)
    returns = [node for node in ast.walk(source.node) if isinstance(node, ast.Return)]
    if len(returns) == 1 and source.node.body[-1] is returns[0]:
        results.last = returns[0]
        frame.run(source.node.body)
        found = results.direct
    else:
        frame.builder.add(results.block)
        with frame.builder.scope(results.block.body, certain=False):
            frame.run(source.node.body)
        if not frame.over and (returns or results.homes):
            frame.fail(source.node, "the function can end without return", "return the same values on every way")
        found = tuple(home.value for home in results.homes)
    frame.frames.pop()
    if not found:
        return Known(None)
    return found[0] if results.one else TupleValue(found)


def _return(frame: Frame, node: ast.Return) -> None:
    value = Known(None) if node.value is None else frame.evaluate(node.value)
    several = items_of(value)
    one, items, results = several is None, (value,) if several is None else several, frame.results
    if node is results.last:
        results.direct, results.one = items, one
        return
    if not results.homes:
        results.homes, results.one = [Home() for _ in items], one
    elif len(results.homes) != len(items) or results.one != one:
        frame.fail(node, "another number of values than the return before it")
    if isinstance(value, Known) and value.value is None:
        frame.fail(node, "return without a value", "return the same values on every way")
    names = [f"value {number + 1} of return" for number in range(len(items))]
    move(frame, dict(zip(names, results.homes, strict=True)), dict(zip(names, items, strict=True)), node, frame.level)
    frame.builder.add(Leave(results.block, frame.line(node)))
    frame.over = True


def _expression(frame: Frame, node: ast.Expr) -> None:
    if not isinstance(node.value, ast.Constant):
        if isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Name) and node.value.func.id == "print":
            frame.fail(node, "print in a function of arrays: the FLEQ machine has no output", "return the value")
        frame.evaluate(node.value)


def _assign(frame: Frame, node: ast.Assign) -> None:
    value = owned(frame.evaluate(node.value))  # x = y = ... is one array
    for target in node.targets:
        assign(frame, target, value)


def _annotated(frame: Frame, node: ast.AnnAssign) -> None:
    if node.value is None:
        frame.fail(node, "a variable without a value", "assign one")
    assign(frame, node.target, frame.evaluate(node.value))


def assign(frame: Frame, target: ast.expr, value: Value) -> None:
    if isinstance(target, ast.Name):
        frame.env[target.id] = owned(value)
    elif isinstance(target, ast.Tuple | ast.List):
        items = _items(frame, target, value, len(target.elts))
        for at, (part, item) in enumerate(zip(target.elts, items, strict=True)):
            _not_seen_by(frame, part, items[at + 1 :])
            assign(frame, part, item)
    elif isinstance(target, ast.Subscript):
        _put(frame, target, frame.real(value, target))
    else:
        frame.fail(target, f"assignment to {ast.unparse(target)}", "assign to a name, or to a part of an array")


def _not_seen_by(frame: Frame, target: ast.expr, items: Sequence[Value]) -> None:
    """Refuse A[0], A[1] = A[1], A[0]: in NumPy these are views, so the second read gets what the first assignment stored."""
    if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
        held = frame.env.get(target.value.id)
        if isinstance(held, ArrayValue) and any(
                isinstance(item, ArrayValue) and item.shape and item.buffers & held.buffers for item in items):
            frame.fail(target, f"{target.value.id!r} is changed here, and a value that is assigned next is a part of it",
                       "write .copy() behind that value")


def owned(value: Value) -> Value:
    """An array that has a name is an array of its own, as long as it is not a part or a view of another."""
    if isinstance(value, ArrayValue) and value.shape and not value.buffers:
        return replace(value, buffers=frozenset([-next(_BUFFERS)]))
    return value


def _items(frame: Frame, node: ast.expr, value: Value, wanted: int) -> tuple[Value, ...]:
    items = items_of(value)
    if items is None:
        real = frame.real(value, node)
        if real.is_scalar:
            frame.fail(node, "a scalar on the right, several variables on the left")
        items = tuple(row(frame, real, Known(i)) for i in range(real.shape[0]))
    if len(items) != wanted:
        frame.fail(node, f"{len(items)} values for {wanted} variables")
    return items


def row(frame: Frame, real: ArrayValue, index: Value) -> Value:
    """An item of an array, as iterating over it gives."""
    return get(frame.arithmetic, real, [place(index, real.shape[0], 0), *map(Span.all, real.shape[1:])])


def _augmented(frame: Frame, node: ast.AugAssign) -> None:
    target = node.target
    if isinstance(target, ast.Name):
        old = frame.evaluate(ast.copy_location(ast.Name(target.id, ast.Load()), target))
        new = combine(frame, node, type(node.op), old, frame.evaluate(node.value))
        if isinstance(old, ArrayValue) and old.shape:
            _alone(frame, node, target.id, old)
            made = frame.real(new, node)
            if made.shape != old.shape:
                frame.fail(node, f"{target.id} has {dims(old.shape)}, and the result {dims(made.shape)}: an array that is "
                           "changed in place keeps its shape", f"write {target.id} = {target.id} ...")
            _check_kinds(frame, node, target.id, old, made)
            new = ArrayValue(made.operand, made.shape, old.buffers, old.kinds)
        elif isinstance(old, Known) and isinstance(old.value, np.ndarray):
            frame.fail(node, f"{target.id} is an array from outside the function, which would be changed in place",
                       f"write {target.id} = {target.id} ...")
        frame.env[target.id] = owned(new)
    elif isinstance(target, ast.Subscript):
        old = frame.evaluate(ast.copy_location(ast.Subscript(target.value, target.slice, ast.Load()), target))
        new = combine(frame, node, type(node.op), old, frame.evaluate(node.value))
        _put(frame, target, frame.real(new, node))
    else:
        frame.fail(node, f"assignment to {ast.unparse(target)}")


def _put(frame: Frame, target: ast.Subscript, value: ArrayValue) -> None:
    """A part of an array gets other values."""
    if not isinstance(target.value, ast.Name) or target.value.id not in frame.env:
        frame.fail(target, "a part of something that is not a variable of the function", "write X[i, j] = ..., not X[i][j]")
    name = target.value.id
    if isinstance(frame.env[name], Known):
        frame.fail(target, f"{name!r} is an array from outside the function, which would be changed in place",
                   f"write {name} = ....copy() first")
    real = frame.real(frame.env[name], target)
    _alone(frame, target, name, real)
    _check_kinds(frame, target, name, real, value)
    parts = places(frame, target, real)
    new = put(frame.at(target), real, parts, ArrayValue(value.operand, value.shape))
    frame.env[name] = ArrayValue(new.operand, real.shape, real.buffers, real.kinds)


def _check_kinds(frame: Frame, node: ast.AST, name: str, old: ArrayValue, new: ArrayValue) -> None:
    """Refuse to store what NumPy would cut off, or refuse, in an array of integers or comparisons."""
    if not keeps(old.kinds, new.kinds):
        be = "is" if len(old.kinds) == 1 else "may be"
        frame.fail(node, f"{name!r} {be} an array of {least(old.kinds)}, which does not keep what is stored here",
                   f"write {name} = 1.0 * {name} first")


def _alone(frame: Frame, node: ast.AST, name: str, value: ArrayValue) -> None:
    """Refuse to change an array that has a second name: NumPy would change both."""
    for variables in frame.frames:
        for other, held in variables.items():
            same = variables is frame.env and other == name
            if not same and isinstance(held, ArrayValue) and held.shape and held.buffers & value.buffers:
                frame.fail(node, f"{name!r} is changed in place, and {other!r} is the same array or a part of it",
                           f"write {other} = ....copy() where it is made")


HANDLERS: Handlers = {
    ast.Return: _return, ast.Expr: _expression, ast.Pass: lambda frame, node: None, ast.Assign: _assign,
    ast.AnnAssign: _annotated, ast.AugAssign: _augmented}
