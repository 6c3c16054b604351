"""For loops: over range, over the rows of arrays, zip and enumerate.

A loop stays a loop where it can: its variable moves pointers of instructions on, or is counted as a value. Where its
variable is needed as a constant (a slice, an index that goes down, a shape), a loop with constant bounds is unrolled.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from punchcard.python.arrays.dtypes import WHOLE
from punchcard.python.arrays.ir import Loop, Operand, Region
from punchcard.python.arrays.joins import Home, LoopFrame
from punchcard.python.arrays.loops import Repeating
from punchcard.python.arrays.names import assigned, changed_in_place
from punchcard.python.arrays.values import ArrayValue, Known, LoopVariable, NeedsConstant, TupleValue, Value
from punchcard.python.front_end import PythonProgram, default_values
from punchcard.python.parameters import bind, parameters_of
from punchcard.python.program import machine_for
from punchcard.python.source import FunctionSource

MOST_UNROLLED = 2000


@dataclass(frozen=True)
class Iteration:
    """How many items there are, and the item at a position; `start` and `step` are of a range."""

    count: int | Operand
    item: Callable[[Value], Value]
    start: int = 0
    step: int = 1
    unroll: bool = False


class Function(Repeating):
    """One function, with its loops and its calls of other programs."""

    def _For(self, node: ast.For) -> None:
        if node.orelse:
            self.fail(node, "else of a loop is not in the subset", "use a variable that says whether the loop was left")
        plan = self._iteration(node, node.iter)
        if plan.count == 0:
            return
        if plan.unroll or plan.count == 1:
            self._unrolled(node, plan)
            return
        loop = Loop(self.line(node), plan.count, start=plan.start, step=plan.step)
        constant = isinstance(plan.count, int)
        mark, env, around, frames = self.builder.mark(), dict(self.env), len(self.loops), len(self.frames)

        def top() -> None:
            self.assign(node.target, plan.item(LoopVariable(loop, 0, 1)))

        targets = sorted(assigned([ast.copy_location(ast.Assign([node.target], ast.Constant(0)), node)]))
        try:
            self._loop(node, loop, node.body, top, certain=constant, targets=targets)
        except NeedsConstant as need:
            if need.loop is not loop:
                raise
            if not constant:
                self.fail(node,
                          f"the loop variable is needed as a constant ({need.message}), and the bounds of the loop are "
                          "computed", "use constant bounds")
            self.builder.back_to(mark)
            self._set_env(env)
            del self.loops[around:], self.frames[frames:]
            self.over = False
            self._unrolled(node, plan)

    def _unrolled(self, node: ast.For, plan: Iteration) -> None:
        """The body once for each round, one after the other."""
        count = plan.count
        if not isinstance(count, int) or count > MOST_UNROLLED:
            self.fail(node, f"a loop of {count} rounds that must be unrolled: at most {MOST_UNROLLED}",
                      "use the loop variable only as an index that goes up by 1")
        if not any(isinstance(n, ast.Break | ast.Continue) for s in node.body for n in ast.walk(s)):
            for k in range(count):
                if not self.over:
                    self.assign(node.target, plan.item(Known(k)))
                    self.run(node.body)
            return
        before = dict(self.env)
        names = sorted(assigned([node]))
        around = LoopFrame({name: Home() for name in names}, Region(), Region())
        level = self.builder.level
        self.builder.add(around.all)
        with self.builder.scope(around.all.body, certain=False):
            self._move({n: h for n, h in around.homes.items() if n in before}, before, node, level=level)
            self.loops.append(around)
            for k in range(count):
                around.rest = Region()
                self.builder.add(around.rest)
                self._set_env(before | {name: home.value for name, home in around.homes.items()})
                with self.builder.scope(around.rest.body, certain=False):
                    self.assign(node.target, plan.item(Known(k)))
                    self.run(node.body)
                    if not self.over:
                        self._check_shapes(node, around)
                        self._move(around.homes, self.env, node, level=level)
                self.over = False
            self.loops.pop()
        self._set_env(before | {name: home.value for name, home in around.homes.items()})

    # What is iterated over

    def _iteration(self, node: ast.For, given: ast.expr) -> Iteration:
        if isinstance(given, ast.Call) and isinstance(given.func, ast.Name) and given.func.id not in self.env:
            function = self.evaluate(given.func)
            known = function.value if isinstance(function, Known) else None
            if known in (range, zip, enumerate):
                if given.keywords and known is not enumerate:
                    self.fail(given, f"keywords of {given.func.id}")
                if known is range:
                    return self._range(node, given)
                return self._zip(node, given) if known is zip else self._enumerate(node, given)
        return self._over(node, self.evaluate(given))

    def _over(self, node: ast.For, value: Value) -> Iteration:
        if isinstance(value, Known) and isinstance(value.value, tuple | range):
            items = tuple(Known(item) for item in value.value)
            return self._tuple(node, items)
        if isinstance(value, TupleValue):
            return self._tuple(node, value.items)
        real = self.real(value, node)
        if real.is_scalar:
            self.fail(node.iter, "a loop over a scalar", "write range(...)")
        for name in sorted(changed_in_place(node.body)):
            held = self.env.get(name)
            if isinstance(held, ArrayValue) and held.shape and held.buffers & real.buffers:
                self.fail(node.iter, f"{name!r} is changed in place while the loop goes over it", "loop over a .copy()")
        return Iteration(real.shape[0], lambda position: self._row(real, position))

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
            self.fail(call, "zip of nothing")
        parts = [self._iteration(node, argument) for argument in call.args]
        counts = [part.count for part in parts if isinstance(part.count, int)]
        if len(counts) != len(parts):
            self.fail(call, "zip over a range with computed bounds", "use range(...) and indices")
        return Iteration(min(counts), lambda position: TupleValue(tuple(part.item(position) for part in parts)),
                         unroll=any(part.unroll for part in parts))

    def _enumerate(self, node: ast.For, call: ast.Call) -> Iteration:
        start = 0
        for keyword in call.keywords:
            value = self.evaluate(keyword.value)
            if keyword.arg != "start" or not isinstance(value, Known) or not isinstance(value.value, int):
                self.fail(call, "enumerate takes an array and start=, a constant")
            start = value.value
        if len(call.args) != 1:
            self.fail(call, "enumerate takes one argument", "write start= for the first number")
        part = self._iteration(node, call.args[0])

        def item(position: Value) -> Value:
            number = self.combine(call, ast.Add, Known(start), position)
            return TupleValue((number, part.item(position)))

        return Iteration(part.count, item, start, 1, part.unroll)

    def _range(self, node: ast.For, call: ast.Call) -> Iteration:
        if not 1 <= len(call.args) <= 3:
            self.fail(call, f"range takes 1 to 3 arguments: {len(call.args)} given")
        values = [self.evaluate(argument) for argument in call.args]
        if len(values) == 1:
            values.insert(0, Known(0))
        if len(values) == 2:
            values.append(Known(1))
        numbers = [self._whole_number(value, call) for value in values]
        if all(number is not None for number in numbers):
            try:
                rounds = range(*(int(number or 0) for number in numbers))
            except ValueError as error:
                self.fail(call, str(error))
            return Iteration(len(rounds), lambda p: self._counted(call, Known(rounds.start), rounds.step, p), rounds.start,
                             rounds.step)
        return self._computed(node, call, values, numbers)

    def _whole_number(self, value: Value, node: ast.AST) -> int | None:
        if isinstance(value, Known):
            if isinstance(value.value, bool) or not isinstance(value.value, int | np.integer):
                self.fail(node, f"range of {value.value!r}: it must be a whole number")
            return int(value.value)
        return None

    def _counted(self, node: ast.AST, first: Value, step: int, position: Value) -> Value:
        moved = self.combine(node, ast.Mult, position, Known(step))
        return self.combine(node, ast.Add, first, moved)

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
            self.fail(call, "range with computed bounds and a step", "count by 1")
        ends = [self.real(value, call) for value in (start, stop)]
        for end in ends:
            if not end.is_scalar or not end.operand.integral:
                self.fail(call, "range of a real number: its bounds are whole numbers", "count with whole numbers")
        self.arithmetic.line = self.line(call)
        first, last = (ArrayValue(end.operand, (), kinds=WHOLE) for end in ends)
        count = self.arithmetic.sub(last, first)
        return Iteration(count.operand, lambda p: self._counted(call, start, 1, p), numbers[0] or 0, 1)

    # Calls of other programs

    def called(self, node: ast.Call, function: Any, values: list[Value], options: dict[str, Value]) -> Value:
        if isinstance(function, FunctionSource) and machine_for(function) == "fleq":  # of a file that is not executed
            source, defaults = function, default_values(function)
        elif isinstance(function, PythonProgram) and function.machine_kind == "fleq":
            source, defaults = function.source, function.defaults
        else:
            return super().called(node, function, values, options)
        found = bind(source, values, options, defaults, lambda why: self.fail(node, why))
        arguments = {p.arg: found[p.arg] if p.arg in found else Known(defaults[p.arg]) for p in parameters_of(source)}
        given: dict[str, Value] = {
            name: value if isinstance(value, ArrayValue | Known | TupleValue) else self.real(value, node)
            for name, value in arguments.items()}
        inner = Function(source, self.builder, self.frames)
        return inner.compile(given)
