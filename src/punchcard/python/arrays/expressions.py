"""Expressions of the source: each becomes a value, and the operations that compute it."""

from __future__ import annotations

import ast
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from punchcard.python.arrays.arithmetic import BINARY
from punchcard.python.arrays.frame import NUMBERS, Frame, Handlers, described
from punchcard.python.arrays.values import TRUTH, Known, LoopVariable, Missing, NeedsConstant, TupleValue, Value
from punchcard.python.limits import Refusal
from punchcard.python.source import COMPARISONS, OPERATORS, SIGNS

BUILTINS = {function.__name__: function for function in (
    len, range, abs, float, int, max, min, zip, enumerate, sum, tuple, round, bool)}


def _constant(frame: Frame, node: ast.Constant) -> Value:
    if not isinstance(node.value, bool | int | float | str | types.NoneType):
        frame.fail(node, f"{node.value!r} is not a real number")
    return Known(node.value)


def _name(frame: Frame, node: ast.Name) -> Value:
    if node.id in frame.env:
        found = frame.env[node.id]
        if isinstance(found, Missing):
            frame.fail(node, found.why)
        return found
    if node.id in BUILTINS and node.id not in frame.source.names:
        return Known(BUILTINS[node.id])
    return Known(frame.limits.known(frame.source.outside(node, [*frame.env]), repr(node.id)))


def _tuple(frame: Frame, node: ast.Tuple | ast.List) -> Value:
    items = tuple(frame.evaluate(item) for item in node.elts)
    if all(isinstance(item, Known) for item in items):
        return Known(frame.limits.known(tuple(item.value for item in items if isinstance(item, Known))))
    return TupleValue(items)


def _unary(frame: Frame, node: ast.UnaryOp) -> Value:
    if isinstance(node.op, ast.Not):
        frame.fail(node, "not as a value", "use it in the condition of if or while")
    value = frame.evaluate(node.operand)
    if isinstance(value, Known) and isinstance(value.value, int | float | np.number) and (
            not isinstance(node.op, ast.Invert)):
        return Known(-value.value if isinstance(node.op, ast.USub) else +value.value)
    real = frame.real(value, node)
    if isinstance(node.op, ast.Invert):
        if not real.boolean or isinstance(value, Known):  # ~ of Python's own False is -1
            frame.fail(node, "~ is for comparisons only", "write not, in a condition")
        return frame.arithmetic.inverted(real)
    if isinstance(node.op, ast.UAdd) and real.kinds & TRUTH:
        frame.fail(node, "+ of a comparison: NumPy has no plus for True and False", "multiply it by 1.0")
    return frame.arithmetic.negative(real) if isinstance(node.op, ast.USub) else real


def _binary(frame: Frame, node: ast.BinOp) -> Value:
    """An operator, and before it those on its left, one by one: a sum may have any number of terms."""
    chain = [node]
    while isinstance(chain[-1].left, ast.BinOp):
        chain.append(chain[-1].left)
    value = frame.evaluate(chain[-1].left)
    for each in reversed(chain):
        with frame.source.refusing(each):
            right = frame.evaluate(each.right)
            frame.at(each)
            value = combine(frame, each, type(each.op), value, right)
    return value


def combine(frame: Frame, node: ast.AST, kind: type, left: Value, right: Value) -> Value:
    """A binary operator: in Python for constants, on the card for the rest."""
    if kind in (ast.LShift, ast.RShift, ast.BitAnd, ast.BitOr, ast.BitXor):
        frame.fail(node, f"{SIGNS[kind]} is not an operator of arrays")
    sign, compute = OPERATORS[kind]
    if isinstance(left, Known) and isinstance(right, Known):
        return fold(frame, node, sign, compute, left.value, right.value)
    if isinstance(left, Known | LoopVariable) and isinstance(right, Known | LoopVariable):
        moved = _shifted(frame, sign, left, right)
        if moved is not None:
            return moved
    if sign == "**":
        if not isinstance(right, Known):
            frame.fail(node, "** with a computed exponent", "write np.exp(p * np.log(x))")
        return frame.arithmetic.power(frame.real(left, node), right.value)
    if sign not in BINARY:
        for value in (left, right):
            if isinstance(value, LoopVariable):
                raise NeedsConstant(value.loop, sign)
        frame.fail(node, f"{sign} of real numbers", "use it for integers in a function of integers")
    a, b = frame.real(left, node), frame.real(right, node)
    frame.at(node)
    return BINARY[sign](frame.arithmetic, a, b)


def fold(frame: Frame, node: ast.AST, sign: str, compute: Callable[[Any, Any], Any], a: Any, b: Any) -> Known:
    plain = (*NUMBERS, np.ndarray, tuple, str)
    if not isinstance(a, plain) or not isinstance(b, plain):
        frame.fail(node, f"{sign} of {described(a)} and {described(b)}")
    if (isinstance(a, tuple | str) or isinstance(b, tuple | str)) and sign not in "+*":
        frame.fail(node, f"{sign} of {described(a)} and {described(b)}")
    try:
        with np.errstate(all="ignore"):
            return Known(frame.limits.combined(sign, compute, a, b))
    except Refusal:
        raise
    except OverflowError:
        frame.fail(node, f"{sign} of {described(a)} and {described(b)}: the result is beyond the floating-point numbers")
    except Exception as error:
        frame.fail(node, f"{sign} of {described(a)} and {described(b)}: {error}")


def _comparison(frame: Frame, node: ast.Compare) -> Value:
    if len(node.ops) != 1:
        frame.fail(node, "a chain of comparisons as a value", "multiply two comparisons")
    left, right = frame.evaluate(node.left), frame.evaluate(node.comparators[0])
    frame.at(node)
    kind = type(node.ops[0])
    if kind not in COMPARISONS:
        if isinstance(left, Known) and isinstance(right, Known) and kind in (ast.Is, ast.IsNot):
            return Known((left.value is right.value) == (kind is ast.Is))
        frame.fail(node, f"{SIGNS[kind]} is not a comparison of numbers")
    sign, compute = COMPARISONS[kind]
    if isinstance(left, Known) and isinstance(right, Known):
        return fold(frame, node, sign, compute, left.value, right.value)
    return frame.arithmetic.compare(sign, frame.real(left, node), frame.real(right, node))


def _shifted(frame: Frame, sign: str, left: Known | LoopVariable, right: Known | LoopVariable) -> Value | None:
    """A loop variable plus, minus or times a constant is one again."""
    variable, constant = (right, left) if isinstance(left, Known) else (left, right)
    if not isinstance(variable, LoopVariable) or not isinstance(constant, Known) or isinstance(constant.value, bool) or (
            not isinstance(constant.value, int | np.integer)):
        return None
    number, behind = constant.value, variable is right
    times = number if sign == "*" else -1 if sign == "-" and behind else 1
    more = {"+": number, "-": number if behind else -number, "*": 0}.get(sign)
    if more is None:
        return None
    first, step = frame.limits.known((int(variable.first * times + more), int(variable.step * times)), "the loop variable")
    return LoopVariable(variable.loop, first, step)


HANDLERS: Handlers = {
    ast.Constant: _constant, ast.Name: _name, ast.Tuple: _tuple, ast.List: _tuple, ast.UnaryOp: _unary, ast.BinOp: _binary,
    ast.Compare: _comparison}
