"""Statements of the source: assignments and control flow.

A variable is the value that was last assigned to it. Where ways of control flow meet, after an if and at the head of a
loop, it gets a register of its own, its home, and each way ends by moving its value there. Moves that are not needed
go later.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import numpy as np

from punchcard.python.arrays import indexing
from punchcard.python.arrays.arithmetic import matrix_shape
from punchcard.python.arrays.conditions import Conditions
from punchcard.python.arrays.dtypes import REAL, Kinds, keeps, least
from punchcard.python.arrays.emitter import Emitter
from punchcard.python.arrays.ir import Block, If, Leave, Loop, Operand, Ref, Register, Statement
from punchcard.python.arrays.names import assigned, changed_in_place, leaves, stays_whole
from punchcard.python.arrays.values import Known, Missing, Real, Refusal, Several, Shape, Value, shown
from punchcard.python.source import FunctionSource

MOST_DEPTH = 20
_BUFFERS = count(1)


@dataclass
class Home:
    """The register of a variable where ways meet; None until the first way says what shape it has."""

    register: Register | None = None
    shape: Shape = ()
    buffers: frozenset[int] = frozenset()
    kinds: Kinds = frozenset()
    missing: str = ""

    @property
    def value(self) -> Value:
        if self.missing or self.register is None:
            return Missing(self.missing or "it has no value here")
        return Real(Ref(self.register), self.shape, self.buffers, self.kinds)


@dataclass
class Around:
    """What break and continue leave, and the homes of the variables that the loop assigns."""

    homes: dict[str, Home]
    rest: Block
    all: Block


class OtherKinds(Exception):
    """A round of a loop gives variables entries of other types than they were taken to have at its beginning."""

    def __init__(self, loop: Loop, kinds: dict[str, Kinds]) -> None:
        super().__init__("types of variables change in a loop")
        self.loop, self.kinds = loop, kinds


@dataclass
class Results:
    """Where the values of return statements go."""

    block: Block
    homes: list[Home] = field(default_factory=list)
    one: bool = True
    direct: tuple[Value, ...] | None = None
    none: bool = False


class Body(Conditions):
    """The statements of one function."""

    def __init__(self, source: FunctionSource, emitter: Emitter, frames: list[dict[str, Value]]) -> None:
        super().__init__(source, emitter, frames)
        self.loops: list[Around] = []
        self.results = Results(Block())
        self.over = False
        """Whether the place that is being compiled cannot be reached."""
        self.level = 0
        """How many loops stand around the call."""

    def compile(self, arguments: dict[str, Value]) -> Value:
        """The value of the function for these arguments."""
        if len(self.frames) > MOST_DEPTH:
            self.fail(self.source.node,
                      f"more than {MOST_DEPTH} calls inside each other: recursion is not in the subset of arrays",
                      "use a loop")
        self.env = {name: self._owned(value) for name, value in arguments.items()}
        self.frames.append(self.env)
        self.level = self.emitter.level
        body = list(self.source.node.body)
        returns = [n for n in ast.walk(self.source.node) if isinstance(n, ast.Return)]
        direct = len(returns) == 1 and body[-1] is returns[0]
        if direct:
            self._direct = returns[0]
            self.run(body)
            found = self.results.direct or ()
        else:
            self._direct = None
            self.emitter.add(self.results.block)
            with self.emitter.scope(self.results.block.body, certain=False):
                self.run(body)
            if not self.over and (returns or self.results.homes):
                self.fail(self.source.node, "the function can end without return", "return the same values on every way")
            found = tuple(home.value for home in self.results.homes)
        self.frames.pop()
        if not found:
            return Known(None)
        return found[0] if self.results.one else Several(found)

    _direct: ast.Return | None = None

    def run(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            if self.over:
                return
            method = getattr(self, f"_{type(statement).__name__}", None)
            if method is None:
                kind = type(statement).__name__
                self.fail(statement, f"{_STATEMENTS.get(kind, kind)} is not in the subset", _ADVICE.get(kind, ""))
            try:
                method(statement)
            except Refusal as refusal:
                self.fail(statement, refusal.message, refusal.instead)

    # Assignments

    def _Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            if isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Name) and node.value.func.id == "print":
                self.fail(node, "print in a function of arrays: the FLEQ machine has no output", "return the value")
            self.evaluate(node.value)

    def _Pass(self, node: ast.Pass) -> None:
        pass

    def _Assign(self, node: ast.Assign) -> None:
        value = self._owned(self.evaluate(node.value))  # x = y = ... is one array
        for target in node.targets:
            self.assign(target, value)

    def _AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is None:
            self.fail(node, "a variable without a value", "assign one")
        self.assign(node.target, self.evaluate(node.value))

    def assign(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Name):
            self.env[target.id] = self._owned(value)
        elif isinstance(target, ast.Tuple | ast.List):
            items = self._items(target, value, len(target.elts))
            for at, (part, item) in enumerate(zip(target.elts, items, strict=True)):
                self._not_seen_by(part, items[at + 1 :])
                self.assign(part, item)
        elif isinstance(target, ast.Subscript):
            self._put(target, self.real(value, target))
        else:
            self.fail(target, f"assignment to {ast.unparse(target)}", "assign to a name, or to a part of an array")

    def _not_seen_by(self, target: ast.expr, items: Sequence[Value]) -> None:
        """Refuse A[0], A[1] = A[1], A[0]: in NumPy these are views, so the second one sees what the first one stored."""
        if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            held = self.env.get(target.value.id)
            if isinstance(held, Real) and any(isinstance(item, Real) and item.shape and item.buffers & held.buffers
                                              for item in items):
                self.fail(target, f"{target.value.id!r} is changed here, and a value that is assigned next is a part of it",
                          "write .copy() behind that value")

    def _owned(self, value: Value) -> Value:
        """An array that has a name is an array of its own, as long as it is not a part or a view of another."""
        if isinstance(value, Real) and value.shape and not value.buffers:
            return replace(value, buffers=frozenset([-next(_BUFFERS)]))
        return value

    def _items(self, node: ast.expr, value: Value, wanted: int) -> list[Value]:
        if isinstance(value, Known) and isinstance(value.value, tuple):
            value = Several(tuple(Known(item) for item in value.value))
        if isinstance(value, Several):
            items = list(value.items)
        else:
            real = self.real(value, node)
            if real.is_scalar:
                self.fail(node, "a scalar on the right, several variables on the left")
            items = [self._row(real, Known(i)) for i in range(real.shape[0])]
        if len(items) != wanted:
            self.fail(node, f"{len(items)} values for {wanted} variables")
        return items

    def _row(self, real: Real, index: Value) -> Value:
        """An item of an array, as iterating over it gives."""
        places = [indexing.place(index, real.shape[0], 0), *(indexing.Span(tuple(range(n))) for n in real.shape[1:])]
        found = indexing.get(self.arithmetic, real, places)
        return Real(found.operand, found.shape, real.buffers if found.shape else frozenset(), real.kinds)

    def _AugAssign(self, node: ast.AugAssign) -> None:
        target = node.target
        if isinstance(target, ast.Name):
            old = self.evaluate(ast.copy_location(ast.Name(target.id, ast.Load()), target))
            new = self.combine(node, type(node.op), old, self.evaluate(node.value))
            if isinstance(old, Real) and old.shape:
                self._alone(node, target.id, old)
                made = self.real(new, node)
                if made.shape != old.shape:
                    self.fail(node,
                              f"{target.id} has {shown(old.shape)}, and the result {shown(made.shape)}: an array that is "
                              "changed in place keeps its shape", f"write {target.id} = {target.id} ...")
                self._check_kinds(node, target.id, old, made)
                new = Real(made.operand, made.shape, old.buffers, old.kinds)
            elif isinstance(old, Known) and isinstance(old.value, np.ndarray):
                self.fail(node, f"{target.id} is an array from outside the function, which would be changed in place",
                          f"write {target.id} = {target.id} ...")
            self.env[target.id] = self._owned(new)
        elif isinstance(target, ast.Subscript):
            reading = ast.copy_location(ast.Subscript(target.value, target.slice, ast.Load()), target)
            new = self.combine(node, type(node.op), self.evaluate(reading), self.evaluate(node.value))
            self._put(target, self.real(new, node))
        else:
            self.fail(node, f"assignment to {ast.unparse(target)}")

    def _put(self, target: ast.Subscript, value: Real) -> None:
        """A part of an array gets other values."""
        if not isinstance(target.value, ast.Name) or target.value.id not in self.env:
            self.fail(target, "a part of something that is not a variable of the function",
                      "write X[i, j] = ..., not X[i][j]")
        name = target.value.id
        if isinstance(self.env[name], Known):
            self.fail(target, f"{name!r} is an array from outside the function, which would be changed in place",
                      f"write {name} = ....copy() first")
        real = self.real(self.env[name], target)
        self._alone(target, name, real)
        self._check_kinds(target, name, real, value)
        places = self.places(target, real)
        self.arithmetic.line = self.line(target)
        new = indexing.put(self.arithmetic, real, places, Real(value.operand, value.shape))
        self.env[name] = Real(new.operand, real.shape, real.buffers, real.kinds)

    def _check_kinds(self, node: ast.AST, name: str, old: Real, new: Real) -> None:
        """Refuse to store what NumPy would cut off, or refuse, in an array of integers or comparisons."""
        if not keeps(old.kinds, new.kinds):
            be = "is" if len(old.kinds) == 1 else "may be"
            self.fail(node, f"{name!r} {be} an array of {least(old.kinds)}, which does not keep what is stored here",
                      f"write {name} = 1.0 * {name} first")

    def _alone(self, node: ast.AST, name: str, value: Real) -> None:
        """Refuse to change an array that has a second name: NumPy would change both."""
        for frame in self.frames:
            for other, held in frame.items():
                same = frame is self.env and other == name
                if not same and isinstance(held, Real) and held.shape and held.buffers & value.buffers:
                    self.fail(node, f"{name!r} is changed in place, and {other!r} is the same array or a part of it",
                              f"write {other} = ....copy() where it is made")

    # Return

    def _Return(self, node: ast.Return) -> None:
        value = Known(None) if node.value is None else self.evaluate(node.value)
        several = isinstance(value, Several) or (isinstance(value, Known) and isinstance(value.value, tuple))
        items: tuple[Value, ...]
        if isinstance(value, Several):
            items = value.items
        elif isinstance(value, Known) and isinstance(value.value, tuple):
            items = tuple(Known(item) for item in value.value)
        else:
            items = (value,)
        results = self.results
        if node is self._direct:
            results.direct, results.one = items, not several
            return
        if not results.homes:
            results.homes, results.one = [Home() for _ in items], not several
        elif len(results.homes) != len(items) or results.one == several:
            self.fail(node, "another number of values than the return before it")
        if isinstance(value, Known) and value.value is None:
            self.fail(node, "return without a value", "return the same values on every way")
        names = [f"value {number + 1} of return" for number in range(len(items))]
        self._move(dict(zip(names, results.homes, strict=True)), dict(zip(names, items, strict=True)), node,
                   level=self.level)
        self.emitter.add(Leave(results.block, self.line(node)))
        self.over = True

    # Where ways meet

    def _move(self, homes: dict[Any, Home], values: dict[Any, Value], node: ast.AST, level: int | None = None) -> None:
        """Every home gets the value that its variable has on this way."""
        pairs: list[tuple[Register, Operand]] = []
        for name, home in homes.items():
            value = values.get(name)
            if home.missing:
                continue
            real = self._plain(value, node)
            if real is None:
                why = value.why if isinstance(value, Missing) else f"{name!r} has no value on some ways to this place"
                home.missing = why if value is None or isinstance(value, Missing) else (
                    f"{name!r} is not a number or an array on every way to this place")
                continue
            if home.register is None:
                home.register = self._register(name, real, level)
                home.shape = real.shape
            elif home.shape != real.shape:
                home.missing = f"{name!r} has {shown(home.shape)} on one way to this place, {shown(real.shape)} on another"
                continue
            home.register.integral &= real.operand.integral
            home.kinds |= real.kinds
            home.buffers |= real.buffers
            pairs.append((home.register, real.operand))
        self.emitter.moves(pairs, self.line(node))

    def _register(self, name: Any, real: Real, level: int | None) -> Register:
        rows, columns = matrix_shape(real.shape)
        register = self.emitter.register(rows, columns, name=name if name.isidentifier() else "", integral=True)
        if level is not None:
            register.level = level
        return register

    def _plain(self, value: Value | None, node: ast.AST) -> Real | None:
        """A value that a register can hold."""
        if value is None or isinstance(value, Missing | Several):
            return None
        if isinstance(value, Known) and not isinstance(value.value, bool | int | float | np.number | np.ndarray):
            return None
        return self.real(value, node)

    def _If(self, node: ast.If) -> None:
        condition = self.condition(node.test)
        if isinstance(condition, bool):
            self.run(node.body if condition else node.orelse)
            return
        statement = If(condition, [], [], self.line(node))
        before, homes = dict(self.env), {name: Home() for name in sorted(assigned([*node.body, *node.orelse]))}
        self.emitter.add(statement)
        ends: list[tuple[list[Statement], dict[str, Value]]] = []
        for part, into in ((node.body, statement.then), (node.orelse, statement.other)):
            self._set_env(before)
            self.over = False
            with self.emitter.scope(into, certain=False):
                self.run(part)
            if not self.over:
                ends.append((into, dict(self.env)))
        self.over = not ends
        if len(ends) == 1:
            self._set_env(ends[0][1])
        elif ends:
            for into, values in ends:
                self._set_env(values)
                with self.emitter.scope(into, certain=False):
                    self._move(homes, values, node, level=self.emitter.level)
            self._set_env(before)
            for name, home in homes.items():
                same = ends[0][1].get(name)
                if isinstance(same, Several | Known) and same is ends[1][1].get(name):
                    self.env[name] = same
                else:
                    self.env[name] = home.value

    def _set_env(self, values: dict[str, Value]) -> None:
        kept = dict(values)
        self.env.clear()
        self.env.update(kept)

    def _IfExp(self, node: ast.IfExp) -> Value:
        """a if c else b: an if whose ways end in one home."""
        condition = self.condition(node.test)
        if isinstance(condition, bool):
            return self.evaluate(node.body if condition else node.orelse)
        statement, home = If(condition, [], [], self.line(node)), {"value": Home()}
        self.emitter.add(statement)
        for part, into in ((node.body, statement.then), (node.orelse, statement.other)):
            with self.emitter.scope(into, certain=False):
                self._move(home, {"value": self.evaluate(part)}, node, level=self.emitter.level)
        value = home["value"].value
        if isinstance(value, Missing):
            self.missing(value, node)
        return value

    # Loops

    def _While(self, node: ast.While) -> None:
        if node.orelse:
            self.fail(node, "else of a loop is not in the subset", "use a variable that says whether the loop was left")
        loop = Loop(self.line(node), None)

        def top() -> None:
            condition = self.condition(node.test)
            leave = Leave(self.loops[-1].all, self.line(node))
            if not isinstance(condition, bool):
                self.emitter.add(If(condition, [], [leave], self.line(node)))
            elif not condition:
                self.emitter.add(leave)
                self.over = True

        self._loop(node, loop, node.body, top, certain=False)

    def _loop(self, node: ast.While | ast.For, loop: Loop, body: list[ast.stmt], top: Callable[[], None], *, certain: bool,
              targets: Sequence[str] = ()) -> None:
        """A loop; once more from its beginning, where a round gives a variable another type than it was taken to have."""
        kinds: dict[str, Kinds] = {}
        mark, env, around, frames = self.emitter.mark(), dict(self.env), len(self.loops), len(self.frames)
        while True:
            try:
                self._whole_loop(node, loop, body, top, kinds, certain=certain, targets=targets)
                return
            except OtherKinds as other:
                if other.loop is not loop:
                    raise
                kinds |= other.kinds
                self.emitter.back_to(mark)
                loop.before.clear()
                loop.body.clear()
                loop.index = None
                self._set_env(env)
                del self.loops[around:], self.frames[frames:]
                self.over = False

    def _whole_loop(
        self, node: ast.While | ast.For, loop: Loop, body: list[ast.stmt], top: Callable[[], None], kinds: dict[str, Kinds],
        *, certain: bool, targets: Sequence[str],
    ) -> None:
        """A loop whose variables have homes. `top` begins the body: the condition, or the loop variable."""
        names = sorted(assigned(body) | set(targets))
        around = Around({}, Block(), Block())
        before = dict(self.env)
        self.emitter.add(around.all)
        with self.emitter.scope(around.all.body, certain=certain):
            self.emitter.loops.append((loop, len(self.emitter.scopes) - 1))
            homes = around.homes
            try:
                for name in names:
                    homes[name] = Home()
                    if name in targets and name not in before:
                        continue
                    real = self._plain(before.get(name), node)
                    if real is not None:
                        register = homes[name].register = self._register(name, real, None)
                        register.integral = stays_whole(name, body, self.env) and real.operand.integral
                        homes[name].shape, homes[name].buffers = real.shape, real.buffers
                        becomes = REAL if real.is_scalar and not register.integral and not real.boolean else frozenset()
                        homes[name].kinds = real.kinds | becomes | kinds.get(name, frozenset())
            finally:
                self.emitter.loops.pop()
            pairs = [(home.register, self._plain(before[name], node)) for name, home in homes.items()
                     if home.register is not None]
            self.emitter.moves([(register, real.operand) for register, real in pairs if register and real], self.line(node))
            self.emitter.add(loop)
            began = {name: home.kinds for name, home in homes.items() if home.register is not None}
            with self.emitter.loop(loop, certain=certain):
                self._rounds(node, body, top, around)
            others = {name: homes[name].kinds for name, before_it in began.items() if homes[name].kinds != before_it}
            if others:
                raise OtherKinds(loop, others)
        self.over = False
        self._set_env(before)
        pairs_after: list[tuple[Register, Operand]] = []
        for name, home in around.homes.items():
            value = home.value
            if isinstance(before.get(name, Missing("")), Missing) and not certain:
                value = Missing(f"{name!r} has a value only if the loop in line {self.source.line(node)} makes a round")
            if isinstance(value, Real) and isinstance(value.operand, Ref):
                after = self._register(name, value, self.emitter.level)
                after.integral = value.operand.integral
                pairs_after.append((after, value.operand))
                value = replace(value, operand=Ref(after))
            self.env[name] = value
        self.emitter.moves(pairs_after, self.line(node))

    def _rounds(self, node: ast.While | ast.For, body: list[ast.stmt], top: Callable[[], None], around: Around) -> None:
        """The body of a loop, once; at its end every home gets its variable's value."""
        self.emitter.add(around.rest)
        inside = {name: home.value for name, home in around.homes.items()}
        first = {name: home.integral for name, home in ((n, h.register) for n, h in around.homes.items()) if home}
        for name, value in inside.items():
            if not isinstance(value, Missing):
                self.env[name] = value
            elif name not in self.env or not isinstance(self.env[name], Known | Several):
                self.env[name] = Missing(f"{name!r} has no value in the first round of the loop")
            else:
                self.env[name] = Missing(f"{name!r} is not a number before the loop, which assigns it")
        self.loops.append(around)
        with self.emitter.scope(around.rest.body, certain=True):
            top()
            self.emitter.scopes[-1].certain = not any(leaves(statement) for statement in body)
            self.run(body)
            if not self.over:
                self._check_shapes(node, around)
                self._move(around.homes, self.env, node, level=self.emitter.level)
        self.loops.pop()
        for name, home in around.homes.items():
            if home.register is not None and first.get(name) and not home.register.integral:
                self.fail(node, f"{name!r} begins as an integer and becomes a real number in the loop",
                          f"begin with {name} = 0.0 + ... of a real number, or keep it whole")
        self._check_shared(node, body, around)

    def _check_shapes(self, node: ast.AST, around: Around) -> None:
        """A variable has the same shape at the end of a round as at its beginning."""
        for name, home in around.homes.items():
            value = self.env.get(name)
            if home.register is not None and isinstance(value, Real) and value.shape != home.shape:
                self.fail(node, f"{name!r} has {shown(home.shape)} before the loop and {shown(value.shape)} after a round",
                          "give it its shape before the loop")

    def _check_shared(self, node: ast.AST, body: list[ast.stmt], around: Around) -> None:
        """Two variables that may be one array after a round, one of which the loop changes in place."""
        changed = changed_in_place(body)
        for name in changed & around.homes.keys():
            for other, home in around.homes.items():
                if other != name and home.shape and home.buffers & around.homes[name].buffers:
                    self.fail(node, f"{name!r} is changed in place, and {other!r} may be the same array in the next round",
                              f"write {other} = ....copy()")

    def _Break(self, node: ast.Break) -> None:
        around = self.loops[-1]
        self._move(around.homes, self.env, node, level=self.emitter.level)
        self.emitter.add(Leave(around.all, self.line(node)))
        self.over = True

    def _Continue(self, node: ast.Continue) -> None:
        around = self.loops[-1]
        self._move(around.homes, self.env, node, level=self.emitter.level)
        self.emitter.add(Leave(around.rest, self.line(node)))
        self.over = True


_STATEMENTS = {"FunctionDef": "a function in a function", "With": "with", "Try": "try", "Raise": "raise", "Import": "import",
               "ImportFrom": "import", "ClassDef": "class", "Delete": "del", "Global": "global", "Nonlocal": "nonlocal",
               "Assert": "assert", "Match": "match", "AsyncFor": "async for", "AsyncWith": "async with"}
_ADVICE = {"FunctionDef": "write it outside, under @pc.program", "Import": "import at the top of the file",
           "ImportFrom": "import at the top of the file", "Assert": "check the result of run()", "Match": "use if and elif"}
