"""Loops as such: variables that a round changes have homes, and a round may end early."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import replace

from punchcard.python.arrays.dtypes import REAL, Kinds
from punchcard.python.arrays.frame import Home, LoopFrame
from punchcard.python.arrays.ir import CodeRegion, If, Leave, Loop, Operand, Ref, Register
from punchcard.python.arrays.joins import OtherKinds
from punchcard.python.arrays.names import assigned, changed_in_place, leaves, stays_whole
from punchcard.python.arrays.statements import ArrayStatements
from punchcard.python.arrays.values import ArrayValue, Known, Missing, TupleValue, shown


class Loops:
    """while, break and continue, and what for loops are made of."""

    def __init__(self, statements: ArrayStatements) -> None:
        self.statements, self.frame = statements, statements.frame
        self.conditions, self.joins = statements.conditions, statements.joins
        statements.handlers |= {ast.While: self._while, ast.Break: self._break, ast.Continue: self._continue}

    def check_else(self, node: ast.While | ast.For) -> None:
        if node.orelse:
            self.frame.fail(node, "else of a loop is not in the subset",
                            "use a variable that says whether the loop was left")

    def _while(self, node: ast.While) -> None:
        self.check_else(node)
        loop = Loop(self.frame.line(node), None)

        def top() -> None:
            condition = self.conditions.compile(node.test)
            leave = Leave(self.frame.loops[-1].all, self.frame.line(node))
            if not isinstance(condition, bool):
                self.frame.builder.add(If(condition, [], [leave], self.frame.line(node)))
            elif not condition:
                self.frame.builder.add(leave)
                self.frame.over = True

        self.loop(node, loop, node.body, top, certain=False)

    def loop(self, node: ast.While | ast.For, loop: Loop, body: list[ast.stmt], top: Callable[[], None], *, certain: bool,
              targets: Sequence[str] = ()) -> None:
        """A loop; once more from its beginning, where a round gives a variable another type than it was taken to have."""
        kinds: dict[str, Kinds] = {}
        go_back = self.frame.mark()
        while True:
            try:
                self._whole_loop(node, loop, body, top, kinds, certain=certain, targets=targets)
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
        self, node: ast.While | ast.For, loop: Loop, body: list[ast.stmt], top: Callable[[], None], kinds: dict[str, Kinds],
        *, certain: bool, targets: Sequence[str],
    ) -> None:
        """A loop whose variables have homes. `top` begins the body: the condition, or the loop variable."""
        names = sorted(assigned(body) | set(targets))
        around = LoopFrame({}, CodeRegion(), CodeRegion())
        before = dict(self.frame.env)
        self.frame.builder.add(around.all)
        with self.frame.builder.scope(around.all.body, certain=certain):
            self.frame.builder.loops.append((loop, len(self.frame.builder.scopes) - 1))
            homes = around.homes
            try:
                for name in names:
                    homes[name] = Home()
                    if name in targets and name not in before:
                        continue
                    real = self.joins.plain(before.get(name), node)
                    if real is not None:
                        register = homes[name].register = self.joins.register(name, real, None)
                        register.integral = stays_whole(name, body, self.frame.env) and real.operand.integral
                        homes[name].shape, homes[name].buffers = real.shape, real.buffers
                        becomes = REAL if real.is_scalar and not register.integral and not real.boolean else frozenset()
                        homes[name].kinds = real.kinds | becomes | kinds.get(name, frozenset())
            finally:
                self.frame.builder.loops.pop()
            pairs = [(home.register, self.joins.plain(before[name], node)) for name, home in homes.items()
                     if home.register is not None]
            self.frame.builder.moves([(register, real.operand) for register, real in pairs if register and real],
                                     self.frame.line(node))
            self.frame.builder.add(loop)
            began = {name: home.kinds for name, home in homes.items() if home.register is not None}
            with self.frame.builder.loop(loop, certain=certain):
                self._rounds(node, body, top, around)
            others = {name: homes[name].kinds for name, before_it in began.items() if homes[name].kinds != before_it}
            if others:
                raise OtherKinds(loop, others)
        self.frame.over = False
        self.frame.set_env(before)
        pairs_after: list[tuple[Register, Operand]] = []
        for name, home in around.homes.items():
            value = home.value
            if isinstance(before.get(name, Missing("")), Missing) and not certain:
                line = self.frame.source.line(node)
                value = Missing(f"{name!r} has a value only if the loop in line {line} makes a round")
            if isinstance(value, ArrayValue) and isinstance(value.operand, Ref):
                after = self.joins.register(name, value, self.frame.builder.level)
                after.integral = value.operand.integral
                pairs_after.append((after, value.operand))
                value = replace(value, operand=Ref(after))
            self.frame.env[name] = value
        self.frame.builder.moves(pairs_after, self.frame.line(node))

    def _rounds(self, node: ast.While | ast.For, body: list[ast.stmt], top: Callable[[], None], around: LoopFrame) -> None:
        """The body of a loop, once; at its end every home gets its variable's value."""
        self.frame.builder.add(around.rest)
        inside = {name: home.value for name, home in around.homes.items()}
        first = {name: home.integral for name, home in ((n, h.register) for n, h in around.homes.items()) if home}
        for name, value in inside.items():
            if not isinstance(value, Missing):
                self.frame.env[name] = value
            elif name not in self.frame.env or not isinstance(self.frame.env[name], Known | TupleValue):
                self.frame.env[name] = Missing(f"{name!r} has no value in the first round of the loop")
            else:
                self.frame.env[name] = Missing(f"{name!r} is not a number before the loop, which assigns it")
        self.frame.loops.append(around)
        with self.frame.builder.scope(around.rest.body, certain=True):
            top()
            self.frame.builder.scopes[-1].certain = not any(leaves(statement) for statement in body)
            self.statements.run(body)
            if not self.frame.over:
                self.check_shapes(node, around)
                self.joins.move(around.homes, self.frame.env, node, level=self.frame.builder.level)
        self.frame.loops.pop()
        for name, home in around.homes.items():
            if home.register is not None and first.get(name) and not home.register.integral:
                self.frame.fail(node, f"{name!r} begins as an integer and becomes a real number in the loop",
                                f"begin with {name} = 0.0 + ... of a real number, or keep it whole")
        self._check_shared(node, body, around)

    def check_shapes(self, node: ast.AST, around: LoopFrame) -> None:
        """A variable has the same shape at the end of a round as at its beginning."""
        for name, home in around.homes.items():
            value = self.frame.env.get(name)
            if home.register is not None and isinstance(value, ArrayValue) and value.shape != home.shape:
                self.frame.fail(node,
                                f"{name!r} has {shown(home.shape)} before the loop and {shown(value.shape)} after a round",
                                "give it its shape before the loop")

    def _check_shared(self, node: ast.AST, body: list[ast.stmt], around: LoopFrame) -> None:
        """Two variables that may be one array after a round, one of which the loop changes in place."""
        changed = changed_in_place(body)
        for name in changed & around.homes.keys():
            for other, home in around.homes.items():
                if other != name and home.shape and home.buffers & around.homes[name].buffers:
                    self.frame.fail(node,
                                    f"{name!r} is changed in place, and {other!r} may be the same array in the next round",
                                    f"write {other} = ....copy()")

    def _break(self, node: ast.Break) -> None:
        around = self.frame.loops[-1]
        self.joins.move(around.homes, self.frame.env, node, level=self.frame.builder.level)
        self.frame.builder.add(Leave(around.all, self.frame.line(node)))
        self.frame.over = True

    def _continue(self, node: ast.Continue) -> None:
        around = self.frame.loops[-1]
        self.joins.move(around.homes, self.frame.env, node, level=self.frame.builder.level)
        self.frame.builder.add(Leave(around.rest, self.frame.line(node)))
        self.frame.over = True
