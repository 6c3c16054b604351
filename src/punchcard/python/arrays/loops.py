"""Loops: while, and for over range, over the rows of arrays, zip and enumerate.

A for loop stays a loop where it can: its variable moves pointers of instructions on, or is counted as a value. Where its
variable is needed as a constant (a slice, an index that goes down, a shape), a loop with constant bounds is unrolled.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from punchcard.errors import shortened
from punchcard.python.arrays.branches import condition_of, move, register, storable
from punchcard.python.arrays.expressions import combine
from punchcard.python.arrays.frame import Frame, Handlers, Home, LoopFrame
from punchcard.python.arrays.ir import CodeRegion, If, Leave, Loop, Operand, Ref, Register
from punchcard.python.arrays.names import assigned_names, changed_in_place, leaves, stays_integer, stored_names
from punchcard.python.arrays.statements import assign, row
from punchcard.python.arrays.values import (
    REAL,
    WHOLE,
    ArrayValue,
    Kinds,
    Known,
    LoopVariable,
    Missing,
    NeedsConstant,
    TupleValue,
    Value,
    dims,
    items_of,
)
from punchcard.python.limits import rounds_of

MOST_UNROLLED = 2000


@dataclass(frozen=True)
class Iteration:
    """How many items there are, and the item at a position; `start` and `step` are of a range."""

    count: int | Operand
    item: Callable[[Value], Value]
    start: int = 0
    step: int = 1
    unroll: bool = False


class OtherKinds(Exception):
    """A round of a loop gives variables entries of other types than they were taken to have at its beginning."""

    def __init__(self, loop: Loop, kinds: dict[str, Kinds]) -> None:
        super().__init__("types of variables change in a loop")
        self.loop, self.kinds = loop, kinds


# Loops as such: variables that a round changes have homes, and a round may end early


def _while(frame: Frame, node: ast.While) -> None:
    _check_else(frame, node)

    def top() -> None:
        condition = condition_of(frame, node.test)
        leave = Leave(frame.loops[-1].all, frame.line(node))
        if not isinstance(condition, bool):
            frame.builder.add(If(condition, [], [leave], frame.line(node)))
        elif not condition:
            frame.builder.add(leave)
            frame.over = True

    _loop(frame, node, Loop(frame.line(node), None), top, certain=False)


def _check_else(frame: Frame, node: ast.While | ast.For) -> None:
    if node.orelse:
        frame.fail(node, "else of a loop is not in the subset", "use a variable that says whether the loop was left")


def _loop(
    frame: Frame, node: ast.While | ast.For, loop: Loop, top: Callable[[], None], *, certain: bool,
    targets: Sequence[str] = (),
) -> None:
    """A loop; once more from its beginning, where a round gives a variable another type than it was taken to have.

    `top` begins the body: the condition, or the loop variable, one of the `targets`. `certain`: it makes at least one round.
    """
    kinds: dict[str, Kinds] = {}
    go_back = frame.mark()
    while True:
        try:
            _whole_loop(frame, node, loop, top, kinds, certain=certain, targets=targets)
            return
        except OtherKinds as other:
            if other.loop is not loop:
                raise
            kinds |= other.kinds
            go_back()
            loop.before.clear()
            loop.body.clear()
            loop.index = None


def _whole_loop(
    frame: Frame, node: ast.While | ast.For, loop: Loop, top: Callable[[], None], kinds: Mapping[str, Kinds], *,
    certain: bool, targets: Sequence[str],
) -> None:
    """A loop whose variables have homes, of these types or more."""
    around = LoopFrame({}, CodeRegion(), CodeRegion())
    before, homes, builder = dict(frame.env), around.homes, frame.builder
    builder.add(around.all)
    with builder.scope(around.all.body, certain=certain):
        pairs: list[tuple[Register, Operand]] = []
        for name in sorted(assigned_names(node.body) | set(targets)):
            home = homes[name] = Home()
            real = None if name in targets and name not in before else storable(frame, before.get(name), node)
            if real is not None:
                inside = home.register = register(frame, name, real, builder.level + 1)
                inside.integral = stays_integer(name, node.body, frame.env) and real.operand.integral
                becomes = REAL if real.is_scalar and not inside.integral and not real.boolean else frozenset()
                home.shape, home.buffers = real.shape, real.buffers
                home.kinds = real.kinds | becomes | kinds.get(name, frozenset())
                pairs.append((inside, real.operand))
        builder.moves(pairs, frame.line(node))
        builder.add(loop)
        began = {name: home.kinds for name, home in homes.items() if home.register is not None}
        with builder.loop(loop, certain=certain):
            _rounds(frame, node, top, around)
        others = {name: homes[name].kinds for name, first in began.items() if homes[name].kinds != first}
        if others:
            raise OtherKinds(loop, others)
    frame.over = False
    frame.set_env(before)
    pairs = []
    for name, home in homes.items():
        value = home.value
        if isinstance(before.get(name, Missing("")), Missing) and not certain:
            line = frame.source.line(node)
            value = Missing(f"{name!r} has a value only if the loop in line {line} makes a round")
        if isinstance(value, ArrayValue):
            after = register(frame, name, value, builder.level)
            after.integral = value.operand.integral
            pairs.append((after, value.operand))
            value = replace(value, operand=Ref(after))
        frame.env[name] = value
    builder.moves(pairs, frame.line(node))


def _rounds(frame: Frame, node: ast.While | ast.For, top: Callable[[], None], around: LoopFrame) -> None:
    """The body of a loop, once; at its end every home gets its variable's value."""
    frame.builder.add(around.rest)
    whole = [name for name, home in around.homes.items() if home.register is not None and home.register.integral]
    for name, home in around.homes.items():
        value = home.value
        if isinstance(value, Missing):
            other = isinstance(frame.env.get(name), Known | TupleValue)
            value = Missing(f"{name!r} is not a number before the loop, which assigns it" if other else
                            f"{name!r} has no value in the first round of the loop")
        frame.env[name] = value
    frame.loops.append(around)
    with frame.builder.scope(around.rest.body, certain=True):
        top()
        frame.builder.scopes[-1].certain = not any(leaves(statement) for statement in node.body)
        frame.run(node.body)
        _end_round(frame, node, around, frame.builder.level)
    frame.loops.pop()
    for name in whole:
        changed = around.homes[name].register
        if changed is not None and not changed.integral:
            frame.fail(node, f"{name!r} begins as an integer and becomes a real number in the loop",
                       f"begin with {name} = 0.0 + ... of a real number, or keep it whole")
    _check_shared(frame, node, around)


def _end_round(frame: Frame, node: ast.AST, around: LoopFrame, level: int) -> None:
    """Homes get the values of a round that comes to its end, which have the shapes that they had at its beginning."""
    if frame.over:
        return
    for name, home in around.homes.items():
        value = frame.env.get(name)
        if home.register is not None and isinstance(value, ArrayValue) and value.shape != home.shape:
            frame.fail(node, f"{name!r} has {dims(home.shape)} before the loop and {dims(value.shape)} after a round",
                       "give it its shape before the loop")
    move(frame, around.homes, frame.env, node, level)


def _check_shared(frame: Frame, node: ast.While | ast.For, around: LoopFrame) -> None:
    """Refuse two variables that may be one array after a round, one of which the loop changes in place."""
    for name in changed_in_place(node.body) & around.homes.keys():
        for other, home in around.homes.items():
            if other != name and home.shape and home.buffers & around.homes[name].buffers:
                frame.fail(node, f"{name!r} is changed in place, and {other!r} may be the same array in the next round",
                           f"write {other} = ....copy()")


def _leave(frame: Frame, node: ast.Break | ast.Continue) -> None:
    around = frame.loops[-1]
    move(frame, around.homes, frame.env, node, frame.builder.level)
    frame.builder.add(Leave(around.all if isinstance(node, ast.Break) else around.rest, frame.line(node)))
    frame.over = True


# For loops


def _for(frame: Frame, node: ast.For) -> None:
    _check_else(frame, node)
    plan = _iteration(frame, node, node.iter)
    if plan.count == 0:
        return
    if plan.unroll or plan.count == 1:
        _unrolled(frame, node, plan)
        return
    loop = Loop(frame.line(node), plan.count, start=plan.start, step=plan.step)
    constant = isinstance(plan.count, int)
    go_back = frame.mark()

    def top() -> None:
        assign(frame, node.target, plan.item(LoopVariable(loop, 0, 1)))

    try:
        _loop(frame, node, loop, top, certain=constant, targets=sorted(stored_names(node.target)))
    except NeedsConstant as need:
        if need.loop is not loop:
            raise
        if not constant:
            frame.fail(node, f"the loop variable is needed as a constant ({need.message}), and the bounds of the loop are "
                       "computed", "use constant bounds")
        go_back()
        _unrolled(frame, node, plan)


def _unrolled(frame: Frame, node: ast.For, plan: Iteration) -> None:
    """The body once for each round, one after the other."""
    count = plan.count
    if not isinstance(count, int) or count > MOST_UNROLLED:
        frame.fail(node, f"a loop of {shortened(count)} rounds that must be unrolled: at most {MOST_UNROLLED}",
                   "use the loop variable only as an index that goes up by 1")
    if not any(isinstance(n, ast.Break | ast.Continue) for s in node.body for n in ast.walk(s)):
        for k in range(count):
            if not frame.over:
                assign(frame, node.target, plan.item(Known(k)))
                frame.run(node.body)
        return
    before, level = dict(frame.env), frame.builder.level
    around = LoopFrame({name: Home() for name in sorted(assigned_names([node]))}, CodeRegion(), CodeRegion())
    frame.builder.add(around.all)
    with frame.builder.scope(around.all.body, certain=False):
        move(frame, {n: h for n, h in around.homes.items() if n in before}, before, node, level)
        frame.loops.append(around)
        for k in range(count):
            around.rest = CodeRegion()
            frame.builder.add(around.rest)
            frame.set_env(before | {name: home.value for name, home in around.homes.items()})
            with frame.builder.scope(around.rest.body, certain=False):
                assign(frame, node.target, plan.item(Known(k)))
                frame.run(node.body)
                _end_round(frame, node, around, level)
            frame.over = False
        frame.loops.pop()
    frame.set_env(before | {name: home.value for name, home in around.homes.items()})


# What is iterated over


def _iteration(frame: Frame, node: ast.For, given: ast.expr) -> Iteration:
    if isinstance(given, ast.Call) and isinstance(given.func, ast.Name) and given.func.id not in frame.env:
        function = frame.evaluate(given.func)
        known = function.value if isinstance(function, Known) else None
        if known in (range, zip, enumerate):
            if given.keywords and known is not enumerate:
                frame.fail(given, f"keywords of {given.func.id}")
            if known is range:
                return _range(frame, node, given)
            return _zip(frame, node, given) if known is zip else _enumerate(frame, node, given)
    return _over(frame, node, frame.evaluate(given))


def _over(frame: Frame, node: ast.For, value: Value) -> Iteration:
    if isinstance(value, Known):
        given = frame.limits.known(value.value)
        value = Known(tuple(given)) if isinstance(given, range) else value
    items = items_of(value)
    if items is not None:
        return Iteration(len(items), partial(_item, items), unroll=True)
    real = frame.real(value, node)
    if real.is_scalar:
        frame.fail(node.iter, "a loop over a scalar", "write range(...)")
    for name in sorted(changed_in_place(node.body)):
        held = frame.env.get(name)
        if isinstance(held, ArrayValue) and held.shape and held.buffers & real.buffers:
            frame.fail(node.iter, f"{name!r} is changed in place while the loop goes over it", "loop over a .copy()")
    return Iteration(real.shape[0], lambda position: row(frame, real, position))


def _item(items: tuple[Value, ...], position: Value) -> Value:
    if isinstance(position, LoopVariable):
        raise NeedsConstant(position.loop, "an item of a tuple")
    assert isinstance(position, Known)
    found: Value = items[position.value]
    return found


def _zip(frame: Frame, node: ast.For, call: ast.Call) -> Iteration:
    if not call.args:
        frame.fail(call, "zip of nothing")
    parts = [_iteration(frame, node, argument) for argument in call.args]
    counts = [part.count for part in parts if isinstance(part.count, int)]
    if len(counts) != len(parts):
        frame.fail(call, "zip over a range with computed bounds", "use range(...) and indices")
    return Iteration(min(counts), lambda position: TupleValue(tuple(part.item(position) for part in parts)),
                     unroll=any(part.unroll for part in parts))


def _enumerate(frame: Frame, node: ast.For, call: ast.Call) -> Iteration:
    start = 0
    for keyword in call.keywords:
        value = frame.evaluate(keyword.value)
        if keyword.arg != "start" or not isinstance(value, Known) or not isinstance(value.value, int):
            frame.fail(call, "enumerate takes an array and start=, a constant")
        start = value.value
    if len(call.args) != 1:
        frame.fail(call, "enumerate takes one argument", "write start= for the first number")
    part = _iteration(frame, node, call.args[0])

    def item(position: Value) -> Value:
        number = combine(frame, call, ast.Add, Known(start), position)
        return TupleValue((number, part.item(position)))

    return Iteration(part.count, item, start, 1, part.unroll)


def _range(frame: Frame, node: ast.For, call: ast.Call) -> Iteration:
    if not 1 <= len(call.args) <= 3:
        frame.fail(call, f"range takes 1 to 3 arguments: {len(call.args)} given")
    values = [frame.evaluate(argument) for argument in call.args]
    if len(values) == 1:
        values.insert(0, Known(0))
    if len(values) == 2:
        values.append(Known(1))
    numbers = [int(value.value) for value in values if isinstance(value, Known) and _is_whole(frame, value, call)]
    if len(numbers) < 3:
        return _computed(frame, node, call, values)
    try:
        rounds = range(*numbers)
    except ValueError as error:
        frame.fail(call, str(error))
    return Iteration(rounds_of(rounds), lambda p: _counted(frame, call, Known(rounds.start), rounds.step, p), rounds.start,
                     rounds.step)


def _is_whole(frame: Frame, value: Known, node: ast.AST) -> bool:
    if isinstance(value.value, bool) or not isinstance(value.value, int | np.integer):
        frame.fail(node, f"range of {value.value!r}: it must be a whole number")
    return True


def _counted(frame: Frame, node: ast.AST, first: Value, step: int, position: Value) -> Value:
    moved = combine(frame, node, ast.Mult, position, Known(step))
    return combine(frame, node, ast.Add, first, moved)


def _computed(frame: Frame, node: ast.For, call: ast.Call, values: list[Value]) -> Iteration:
    """Bounds that are computed: the rounds are counted at run time."""
    start, stop, by = values
    step = by.value if isinstance(by, Known) else None
    names = stored_names(node.target)
    indexed = any(isinstance(part, ast.Subscript) and any(isinstance(n, ast.Name) and n.id in names
                                                          for n in ast.walk(part.slice))
                  for statement in node.body for part in ast.walk(statement))
    for value in (start, *([] if step == 1 else values)):
        if isinstance(value, LoopVariable) and (indexed or step != 1):
            raise NeedsConstant(value.loop, "a bound of an inner range")
    if step != 1:
        frame.fail(call, "range with computed bounds and a step", "count by 1")
    ends = [frame.real(value, call) for value in (start, stop)]
    for end in ends:
        if not end.is_scalar or not end.operand.integral:
            frame.fail(call, "range of a real number: its bounds are whole numbers", "count with whole numbers")
    first, last = (ArrayValue(end.operand, (), kinds=WHOLE) for end in ends)
    count = frame.at(call).sub(last, first)
    known = start.value if isinstance(start, Known) else 0
    return Iteration(count.operand, lambda p: _counted(frame, call, start, 1, p), known, 1)


HANDLERS: Handlers = {ast.While: _while, ast.For: _for, ast.Break: _leave, ast.Continue: _leave}
