"""For loops: over range, over the rows of arrays, zip and enumerate.

A loop stays a loop where it can: its variable moves pointers of instructions on, or is counted as a value. Where its
variable is needed as a constant (a slice, an index that goes down, a shape), a loop with constant bounds is unrolled.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from punchcard.python.arrays.dtypes import WHOLE
from punchcard.python.arrays.frame import Home, LoopFrame
from punchcard.python.arrays.ir import CodeRegion, Loop, Operand
from punchcard.python.arrays.loops import Loops
from punchcard.python.arrays.names import assigned, changed_in_place
from punchcard.python.arrays.values import ArrayValue, Known, LoopVariable, NeedsConstant, TupleValue, Value

MOST_UNROLLED = 2000


@dataclass(frozen=True)
class Iteration:
    """How many items there are, and the item at a position; `start` and `step` are of a range."""

    count: int | Operand
    item: Callable[[Value], Value]
    start: int = 0
    step: int = 1
    unroll: bool = False


class ForLoops:
    """The for loops of one function."""

    def __init__(self, loops: Loops) -> None:
        self.loops, self.frame, self.joins = loops, loops.frame, loops.joins
        self.statements, self.expressions = loops.statements, loops.statements.expressions
        self.assignments = loops.statements.assignments
        self.statements.handlers[ast.For] = self._for

    def _for(self, node: ast.For) -> None:
        self.loops.check_else(node)
        plan = self._iteration(node, node.iter)
        if plan.count == 0:
            return
        if plan.unroll or plan.count == 1:
            self._unrolled(node, plan)
            return
        loop = Loop(self.frame.line(node), plan.count, start=plan.start, step=plan.step)
        constant = isinstance(plan.count, int)
        go_back = self.frame.mark()

        def top() -> None:
            self.assignments.assign(node.target, plan.item(LoopVariable(loop, 0, 1)))

        targets = sorted(assigned([ast.copy_location(ast.Assign([node.target], ast.Constant(0)), node)]))
        try:
            self.loops.loop(node, loop, node.body, top, certain=constant, targets=targets)
        except NeedsConstant as need:
            if need.loop is not loop:
                raise
            if not constant:
                self.frame.fail(node, f"the loop variable is needed as a constant ({need.message}), and the bounds of the "
                                "loop are computed", "use constant bounds")
            go_back()
            self._unrolled(node, plan)

    def _unrolled(self, node: ast.For, plan: Iteration) -> None:
        """The body once for each round, one after the other."""
        count = plan.count
        if not isinstance(count, int) or count > MOST_UNROLLED:
            self.frame.fail(node, f"a loop of {count} rounds that must be unrolled: at most {MOST_UNROLLED}",
                            "use the loop variable only as an index that goes up by 1")
        if not any(isinstance(n, ast.Break | ast.Continue) for s in node.body for n in ast.walk(s)):
            for k in range(count):
                if not self.frame.over:
                    self.assignments.assign(node.target, plan.item(Known(k)))
                    self.statements.run(node.body)
            return
        before = dict(self.frame.env)
        names = sorted(assigned([node]))
        around = LoopFrame({name: Home() for name in names}, CodeRegion(), CodeRegion())
        level = self.frame.builder.level
        self.frame.builder.add(around.all)
        with self.frame.builder.scope(around.all.body, certain=False):
            self.joins.move({n: h for n, h in around.homes.items() if n in before}, before, node, level=level)
            self.frame.loops.append(around)
            for k in range(count):
                around.rest = CodeRegion()
                self.frame.builder.add(around.rest)
                self.frame.set_env(before | {name: home.value for name, home in around.homes.items()})
                with self.frame.builder.scope(around.rest.body, certain=False):
                    self.assignments.assign(node.target, plan.item(Known(k)))
                    self.statements.run(node.body)
                    if not self.frame.over:
                        self.loops.check_shapes(node, around)
                        self.joins.move(around.homes, self.frame.env, node, level=level)
                self.frame.over = False
            self.frame.loops.pop()
        self.frame.set_env(before | {name: home.value for name, home in around.homes.items()})

    # What is iterated over

    def _iteration(self, node: ast.For, given: ast.expr) -> Iteration:
        if isinstance(given, ast.Call) and isinstance(given.func, ast.Name) and given.func.id not in self.frame.env:
            function = self.expressions.evaluate(given.func)
            known = function.value if isinstance(function, Known) else None
            if known in (range, zip, enumerate):
                if given.keywords and known is not enumerate:
                    self.frame.fail(given, f"keywords of {given.func.id}")
                if known is range:
                    return self._range(node, given)
                return self._zip(node, given) if known is zip else self._enumerate(node, given)
        return self._over(node, self.expressions.evaluate(given))

    def _over(self, node: ast.For, value: Value) -> Iteration:
        if isinstance(value, Known) and isinstance(value.value, tuple | range):
            items = tuple(Known(item) for item in value.value)
            return self._tuple(node, items)
        if isinstance(value, TupleValue):
            return self._tuple(node, value.items)
        real = self.expressions.real(value, node)
        if real.is_scalar:
            self.frame.fail(node.iter, "a loop over a scalar", "write range(...)")
        for name in sorted(changed_in_place(node.body)):
            held = self.frame.env.get(name)
            if isinstance(held, ArrayValue) and held.shape and held.buffers & real.buffers:
                self.frame.fail(node.iter, f"{name!r} is changed in place while the loop goes over it",
                                "loop over a .copy()")
        return Iteration(real.shape[0], lambda position: self.assignments.row(real, position))

    def _tuple(self, node: ast.For, items: tuple[Value, ...]) -> Iteration:
        def item(position: Value) -> Value:
            if isinstance(position, LoopVariable):
                raise NeedsConstant(position.loop, "an item of a tuple")
            assert isinstance(position, Known)
            found: Value = items[position.value]
            return found

        return Iteration(len(items), item, unroll=True)

    def _zip(self, node: ast.For, call: ast.Call) -> Iteration:
        if not call.args:
            self.frame.fail(call, "zip of nothing")
        parts = [self._iteration(node, argument) for argument in call.args]
        counts = [part.count for part in parts if isinstance(part.count, int)]
        if len(counts) != len(parts):
            self.frame.fail(call, "zip over a range with computed bounds", "use range(...) and indices")
        return Iteration(min(counts), lambda position: TupleValue(tuple(part.item(position) for part in parts)),
                         unroll=any(part.unroll for part in parts))

    def _enumerate(self, node: ast.For, call: ast.Call) -> Iteration:
        start = 0
        for keyword in call.keywords:
            value = self.expressions.evaluate(keyword.value)
            if keyword.arg != "start" or not isinstance(value, Known) or not isinstance(value.value, int):
                self.frame.fail(call, "enumerate takes an array and start=, a constant")
            start = value.value
        if len(call.args) != 1:
            self.frame.fail(call, "enumerate takes one argument", "write start= for the first number")
        part = self._iteration(node, call.args[0])

        def item(position: Value) -> Value:
            number = self.expressions.combine(call, ast.Add, Known(start), position)
            return TupleValue((number, part.item(position)))

        return Iteration(part.count, item, start, 1, part.unroll)

    def _range(self, node: ast.For, call: ast.Call) -> Iteration:
        if not 1 <= len(call.args) <= 3:
            self.frame.fail(call, f"range takes 1 to 3 arguments: {len(call.args)} given")
        values = [self.expressions.evaluate(argument) for argument in call.args]
        if len(values) == 1:
            values.insert(0, Known(0))
        if len(values) == 2:
            values.append(Known(1))
        numbers = [self._whole_number(value, call) for value in values]
        if all(number is not None for number in numbers):
            try:
                rounds = range(*(int(number or 0) for number in numbers))
            except ValueError as error:
                self.frame.fail(call, str(error))
            return Iteration(len(rounds), lambda p: self._counted(call, Known(rounds.start), rounds.step, p), rounds.start,
                             rounds.step)
        return self._computed(node, call, values, numbers)

    def _whole_number(self, value: Value, node: ast.AST) -> int | None:
        if isinstance(value, Known):
            if isinstance(value.value, bool) or not isinstance(value.value, int | np.integer):
                self.frame.fail(node, f"range of {value.value!r}: it must be a whole number")
            return int(value.value)
        return None

    def _counted(self, node: ast.AST, first: Value, step: int, position: Value) -> Value:
        moved = self.expressions.combine(node, ast.Mult, position, Known(step))
        return self.expressions.combine(node, ast.Add, first, moved)

    def _computed(self, node: ast.For, call: ast.Call, values: list[Value], numbers: list[int | None]) -> Iteration:
        """Bounds that are computed: the rounds are counted at run time."""
        start, stop, _ = values
        step = numbers[2]
        names = assigned([ast.copy_location(ast.Assign([node.target], ast.Constant(0)), node)])
        indexed = any(isinstance(part, ast.Subscript) and any(isinstance(n, ast.Name) and n.id in names
                                                              for n in ast.walk(part.slice))
                      for statement in node.body for part in ast.walk(statement))
        for value in (start, *([] if step == 1 else values)):
            if isinstance(value, LoopVariable) and (indexed or step != 1):
                raise NeedsConstant(value.loop, "a bound of an inner range")
        if step != 1:
            self.frame.fail(call, "range with computed bounds and a step", "count by 1")
        ends = [self.expressions.real(value, call) for value in (start, stop)]
        for end in ends:
            if not end.is_scalar or not end.operand.integral:
                self.frame.fail(call, "range of a real number: its bounds are whole numbers", "count with whole numbers")
        self.frame.at(call)
        first, last = (ArrayValue(end.operand, (), kinds=WHOLE) for end in ends)
        count = self.frame.arithmetic.sub(last, first)
        return Iteration(count.operand, lambda p: self._counted(call, start, 1, p), numbers[0] or 0, 1)
