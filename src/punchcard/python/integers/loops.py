"""Loops over numbers and items, and comprehensions. The instruction that counts is the last one, and also jumps."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

from punchcard.machines.von_neumann.languages.asq.items import Expression, name
from punchcard.python.integers.assembly import CellSum, R, Z, cell, constant, literal
from punchcard.python.integers.functions import is_call
from punchcard.python.integers.generator import CodePart
from punchcard.python.integers.values import NONE, AbstractValue, number

ONLY = "a comprehension goes over range(n), a list or a text here"


@dataclass(frozen=True)
class LoopSource:
    """A source of a loop: numbers that count, or items of a list.

    count      how many there are, and the interval of that; for numbers by a step: start - stop, which grows by the step
    begin      what is done before the first time;  step  before each
    pace       a cell with minus the step of the count, or None if that is -1
    """

    count: CellSum
    values: AbstractValue
    begin: Callable[[], None]
    step: Callable[[], None]
    cells: tuple[Expression, ...]
    pace: Expression | None = None


class LoopCode(CodePart):
    """`for` loops."""

    def repeat(self, source: ast.expr, target: ast.expr, changed: set[str], body: Callable[[str], None], done: str) -> None:
        """A loop; `body` is called with the label at which the next time begins."""
        sources = self._sources(source, target, changed)
        left, top, again = self.lasting("left"), self.out.fresh("for"), self.out.fresh("next")
        self._count(sources, left, done)
        for each in sources:
            each.begin()
        self.out.label(top)
        with self.frame.alive(left, *(place for each in sources for place in each.cells)):
            for each in sources:
                each.step()
            body(again)
        self.out.label(again)
        self.out.sub(next((each.pace for each in sources if each.pace is not None), literal(-1)), left, top)

    def _count(self, sources: list[LoopSource], left: Expression, done: str) -> None:
        """`left` is 1 less how many times are left, so that counting up to above 0 ends the loop."""
        first, *others = [each for each in sources if each.values != NONE]
        count, value = first.count, first.values
        if others:
            least = self.out.own(count)
            count = cell(least)
            for other in others:
                self.code.builtins.replace_if(ast.Lt(), other.count, other.values, least, value)
                value = number(min(value.low, other.values.low), min(value.high, other.values.high))
        self.out.assign(left, constant(1).plus(count, -1))
        if value.low >= 1 and value.high <= self.facts.word.high:
            return
        go = self.out.fresh("go")
        self.out.sub(Z, left, go)
        self.out.jump(done)
        self.out.label(go)

    def _sources(self, node: ast.expr, target: ast.expr, changed: set[str]) -> list[LoopSource]:
        if is_call(node, "range"):
            return [self._numbers(node, target, changed)]
        if is_call(node, "enumerate"):
            assert isinstance(target, ast.Tuple)
            first = 0 if len(node.args) < 2 else self.facts.value(node.args[1]).constant or 0
            inner = self._sources(node.args[0], target.elts[1], changed)
            return [*inner, self._counting(target.elts[0], constant(first), constant(1), changed, constant(0), NONE)]
        if is_call(node, "zip"):
            assert isinstance(target, ast.Tuple)
            found = []
            for each, to in zip(node.args, target.elts, strict=True):
                if is_call(each, "zip", "enumerate") or (is_call(each, "range") and self._step(each).constant != 1):
                    self.fail(each, "zip() goes over lists, texts and range() with a step of 1 here")
                found += self._sources(each, to, changed)
            return found
        return [self._items(node, target)]

    def _step(self, source: ast.Call) -> AbstractValue:
        step = number(1) if len(source.args) < 3 else self.facts.value(source.args[2])
        return number(1, step.high) if step.low <= 0 < step.high else step

    def _ends(self, arguments: list[ast.expr]) -> tuple[list[CellSum], AbstractValue, AbstractValue]:
        """Start, stop and the rest of range()'s arguments; what is known of the first two."""
        forms, values = self.evaluate_all(arguments), [self.facts.value(each) for each in arguments[:2]]
        if len(forms) == 1:
            forms, values = [constant(0), *forms], [number(0), *values]
        return forms, values[0], values[1]

    def _numbers(self, node: ast.Call, target: ast.expr, changed: set[str]) -> LoopSource:
        forms, a, b = self._ends(node.args)
        start, stop, step = [*map(self.out.steady, forms), constant(1)][:3]
        up = self._step(node).low > 0
        if up and len(forms) == 3 and (least := self.facts.value(node.args[2]).low) <= 0:
            wrong = self.error(node, "ValueError: the step of range() must be above 0 here")
            self.out.jump_if_low(step, wrong, least)
        assert isinstance(target, ast.Name)
        if self.variable(target.id) in {**start.terms, **stop.terms}:
            start, stop = self.out.kept(start), self.out.kept(stop)
        low, high, x, y = (start, stop, a, b) if up else (stop, start, b, a)
        return self._counting(target, start, step, changed, *self._span(node, low, x, high, y), up=up)

    def _span(self, node: ast.Call, low: CellSum, a: AbstractValue, high: CellSum,
              b: AbstractValue) -> tuple[CellSum, AbstractValue]:
        """high - low; where that may not fit, 0 where it is not above 0, and an error where it is too large."""
        span = b.interval - a.interval
        if span in self.facts.word:
            return high.plus(low, -1), number(span.low, span.high)
        made, some, none = self.out.temporary(), self.out.fresh("some"), self.out.fresh("none")
        self.out.clear(made)
        self.code.conditions.jump_if_ordered(low, a, high, b, 1, some, none, some)
        self.out.label(some)
        self.out.assign(made, high.plus(low, -1))
        if span.high > self.facts.word.high:
            wrong = self.error(node, "OverflowError: range() of more numbers than a word counts")
            self.out.jump_if_low(cell(made), wrong, 0)
        self.out.label(none)
        return cell(made), number(0, self.facts.word.high)

    def _counting(self, target: ast.expr, first: CellSum, step: CellSum, changed: set[str], count: CellSum,
                  values: AbstractValue, *, up: bool = True) -> LoopSource:
        assert isinstance(target, ast.Name)
        place = self.variable(target.id)
        own = target.id in changed
        counter = self.lasting("count") if own else place
        kept: tuple[Expression, ...] = ()
        down, pace = step.constant_operand(-1), step.constant_operand(-1 if up else 1)
        if not step.is_constant:
            down = pace = self.lasting("step")
            self.out.assign(down, step.times(-1))
            if not up:
                pace = self.lasting("pace")
                self.out.assign(pace, step)
            kept = (down,) if up else (down, pace)

        def advance() -> None:
            self.out.sub(down, counter)
            if own:
                self.out.assign(place, cell(counter))

        return LoopSource(count, values, lambda: self.out.assign(counter, first.plus(step, -1)), advance, (counter, *kept),
                          None if values == NONE else pace)

    def _items(self, node: ast.expr, target: ast.expr) -> LoopSource:
        value = self.facts.value(node)
        pointer = self.out.kept(self.evaluate(node))
        set_target = self.code.statements.set_target
        if value.kind == "char":
            return LoopSource(constant(1), number(1), lambda: None, lambda: set_target(target, pointer), ())
        length = self.code.lists.length(value, pointer)
        here, found = self.out.fresh("at"), self.lasting("item")

        def step() -> None:
            item = self.code.lists.load_from(here, found)
            self.out.sub(literal(-1), name(here))
            set_target(target, item)

        return LoopSource(self.out.steady(length), self.facts.count(value), lambda: self.out.assign(name(here), pointer),
                          step, (name(here),))

    # Comprehensions

    def comprehension(self, node: ast.ListComp) -> CellSum:
        generator = node.generators[0]
        names = {inner.id: self.lasting(inner.id) for inner in ast.walk(generator.target) if isinstance(inner, ast.Name)}
        sized = self.facts.value(node)
        if sized.list.length is None and not self._is_repeatable(generator.iter):
            self.fail(generator.iter, "what a comprehension goes over is computed here", "give it a name before")
        done, place, made = self.out.fresh("done"), self.lasting("place"), self.lasting("made")
        self.pass_operands(self._length(generator.iter, sized))
        self.routine("allocate")
        self.out.assign(made, cell(R))
        self.out.assign(place, cell(R))

        def body(again: str) -> None:
            with self.frame.alive(place, made):
                value = self.code.lists.item_value(node.elt, sized)
            self.code.lists.store(cell(place), value)
            self.out.sub(literal(-1), place)

        self.frame.hidden.append(names)
        with self.frame.inside(node):
            self.repeat(generator.iter, generator.target, set(), body, done)
        self.frame.hidden.pop()
        self.out.label(done)
        return cell(made)

    def _is_repeatable(self, source: ast.expr) -> bool:
        """Whether a source can be computed twice, for the length and for the items: it makes and calls nothing."""
        parts = source.args if is_call(source, "range") else [source]
        return not any(isinstance(inner, ast.List | ast.Tuple | ast.ListComp) or (
            isinstance(inner, ast.Call) and not is_call(inner, "len")) for each in parts for inner in ast.walk(each))

    def _length(self, source: ast.expr, sized: AbstractValue) -> CellSum:
        if sized.list.length is not None:
            return constant(sized.list.length)
        if is_call(source, "range"):
            step = self._step(source)
            forms, a, b = self._ends(source.args[:2])
            low, high, x, y = (forms[0], forms[1], a, b) if step.low > 0 else (forms[1], forms[0], b, a)
            if abs(step.low) != 1 or step.constant is None or not self.facts.fits(ast.Sub(), y, x):
                self.fail(source, ONLY, "write a loop")
            return high.plus(low, -1)
        if is_call(source, "enumerate", "zip"):
            self.fail(source, ONLY, "write a loop")
        return self.code.lists.length(self.facts.value(source), self.evaluate(source))
