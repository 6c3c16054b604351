"""Loops as such: variables that a round changes have homes, and a round may end early."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import replace

from punchcard.python.arrays.dtypes import REAL, Kinds
from punchcard.python.arrays.ir import If, Leave, Loop, Operand, Ref, Region, Register
from punchcard.python.arrays.joins import Home, LoopFrame, OtherKinds
from punchcard.python.arrays.names import assigned, changed_in_place, leaves, stays_whole
from punchcard.python.arrays.statements import Body
from punchcard.python.arrays.values import ArrayValue, Known, Missing, TupleValue, shown


class Repeating(Body):
    """Adds while, break and continue to statements, and what for loops are made of."""

    def _While(self, node: ast.While) -> None:
        if node.orelse:
            self.fail(node, "else of a loop is not in the subset", "use a variable that says whether the loop was left")
        loop = Loop(self.line(node), None)

        def top() -> None:
            condition = self.condition(node.test)
            leave = Leave(self.loops[-1].all, self.line(node))
            if not isinstance(condition, bool):
                self.builder.add(If(condition, [], [leave], self.line(node)))
            elif not condition:
                self.builder.add(leave)
                self.over = True

        self._loop(node, loop, node.body, top, certain=False)

    def _loop(self, node: ast.While | ast.For, loop: Loop, body: list[ast.stmt], top: Callable[[], None], *, certain: bool,
              targets: Sequence[str] = ()) -> None:
        """A loop; once more from its beginning, where a round gives a variable another type than it was taken to have."""
        kinds: dict[str, Kinds] = {}
        mark, env, around, frames = self.builder.mark(), dict(self.env), len(self.loops), len(self.frames)
        while True:
            try:
                self._whole_loop(node, loop, body, top, kinds, certain=certain, targets=targets)
                return
            except OtherKinds as other:
                if other.loop is not loop:
                    raise
                kinds |= other.kinds
                self.builder.back_to(mark)
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
        around = LoopFrame({}, Region(), Region())
        before = dict(self.env)
        self.builder.add(around.all)
        with self.builder.scope(around.all.body, certain=certain):
            self.builder.loops.append((loop, len(self.builder.scopes) - 1))
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
                self.builder.loops.pop()
            pairs = [(home.register, self._plain(before[name], node)) for name, home in homes.items()
                     if home.register is not None]
            self.builder.moves([(register, real.operand) for register, real in pairs if register and real], self.line(node))
            self.builder.add(loop)
            began = {name: home.kinds for name, home in homes.items() if home.register is not None}
            with self.builder.loop(loop, certain=certain):
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
            if isinstance(value, ArrayValue) and isinstance(value.operand, Ref):
                after = self._register(name, value, self.builder.level)
                after.integral = value.operand.integral
                pairs_after.append((after, value.operand))
                value = replace(value, operand=Ref(after))
            self.env[name] = value
        self.builder.moves(pairs_after, self.line(node))

    def _rounds(self, node: ast.While | ast.For, body: list[ast.stmt], top: Callable[[], None], around: LoopFrame) -> None:
        """The body of a loop, once; at its end every home gets its variable's value."""
        self.builder.add(around.rest)
        inside = {name: home.value for name, home in around.homes.items()}
        first = {name: home.integral for name, home in ((n, h.register) for n, h in around.homes.items()) if home}
        for name, value in inside.items():
            if not isinstance(value, Missing):
                self.env[name] = value
            elif name not in self.env or not isinstance(self.env[name], Known | TupleValue):
                self.env[name] = Missing(f"{name!r} has no value in the first round of the loop")
            else:
                self.env[name] = Missing(f"{name!r} is not a number before the loop, which assigns it")
        self.loops.append(around)
        with self.builder.scope(around.rest.body, certain=True):
            top()
            self.builder.scopes[-1].certain = not any(leaves(statement) for statement in body)
            self.run(body)
            if not self.over:
                self._check_shapes(node, around)
                self._move(around.homes, self.env, node, level=self.builder.level)
        self.loops.pop()
        for name, home in around.homes.items():
            if home.register is not None and first.get(name) and not home.register.integral:
                self.fail(node, f"{name!r} begins as an integer and becomes a real number in the loop",
                          f"begin with {name} = 0.0 + ... of a real number, or keep it whole")
        self._check_shared(node, body, around)

    def _check_shapes(self, node: ast.AST, around: LoopFrame) -> None:
        """A variable has the same shape at the end of a round as at its beginning."""
        for name, home in around.homes.items():
            value = self.env.get(name)
            if home.register is not None and isinstance(value, ArrayValue) and value.shape != home.shape:
                self.fail(node, f"{name!r} has {shown(home.shape)} before the loop and {shown(value.shape)} after a round",
                          "give it its shape before the loop")

    def _check_shared(self, node: ast.AST, body: list[ast.stmt], around: LoopFrame) -> None:
        """Two variables that may be one array after a round, one of which the loop changes in place."""
        changed = changed_in_place(body)
        for name in changed & around.homes.keys():
            for other, home in around.homes.items():
                if other != name and home.shape and home.buffers & around.homes[name].buffers:
                    self.fail(node, f"{name!r} is changed in place, and {other!r} may be the same array in the next round",
                              f"write {other} = ....copy()")

    def _Break(self, node: ast.Break) -> None:
        around = self.loops[-1]
        self._move(around.homes, self.env, node, level=self.builder.level)
        self.builder.add(Leave(around.all, self.line(node)))
        self.over = True

    def _Continue(self, node: ast.Continue) -> None:
        around = self.loops[-1]
        self._move(around.homes, self.env, node, level=self.builder.level)
        self.builder.add(Leave(around.rest, self.line(node)))
        self.over = True
