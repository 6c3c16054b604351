"""Statements to code. A loop tests at its end, where the instruction that counts also jumps."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from punchcard.python.integers.calls import Calls
from punchcard.python.integers.forms import Form, cell, constant
from punchcard.python.integers.functions import Function
from punchcard.python.integers.values import Value, number


@dataclass(frozen=True)
class Counted:
    """A source of a loop: numbers that count, or items of a list.

    count      how many there are, and the interval of that; for numbers by a step: start - stop, which grows by the step
    begin      what is done before the first time, `step` before each
    pace       a cell with minus what the count goes by
    """

    count: Form
    values: Value
    begin: Callable[[], None]
    step: Callable[[], None]
    cells: tuple[str, ...]
    pace: str = ""


class Statements(Calls):
    """The body of a function."""

    def body(self, function: Function, *, inline: bool) -> None:
        """A function, from its label to its end; inline it goes on behind it."""
        self.function, self.prefix = function, function.name
        self._loops: list[tuple[str, str]] = []
        self.once = inline
        self._end = self.fresh("return")
        stored = Counter(node.id for node in ast.walk(function.node)
                         if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
        self._set_once = {name for name, count in stored.items() if count == 1 and name not in function.parameters}
        self.fixed = {}
        self.label(function.name)
        self.block(function.node.body)
        self.label(self._end)
        if not inline:
            self.put(f"$z $z {function.name}_back:0", leaves="-")

    def block(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            self.temporaries = 0
            self.statement = statement
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                continue
            if not isinstance(statement, ast.Pass):
                self.comment(f"{self.function.source.line(statement)}: {self.function.source.text(statement)[:100]}")
            getattr(self, "_" + type(statement).__name__)(statement)

    def _Pass(self, node: ast.Pass) -> None:
        pass

    def _Expr(self, node: ast.Expr) -> None:
        self.form(node.value)

    def _Assert(self, node: ast.Assert) -> None:
        said = node.msg.value if isinstance(node.msg, ast.Constant) and isinstance(node.msg.value, str) else ""
        fine = self.fresh("holds")
        self.condition(node.test, fine, self.error(node, f"AssertionError: {said}".removesuffix(": ")), fine)
        self.label(fine)

    # Assignment

    def _Assign(self, node: ast.Assign) -> None:
        first = node.targets[0]
        if isinstance(first, ast.Tuple | ast.List):
            if isinstance(node.value, ast.Tuple | ast.List):
                self._parallel(first.elts, self.forms(node.value.elts), [self.value(each) for each in node.value.elts],
                               node.value.elts)
                return
            for target in node.targets:
                self._unpack(target, node.value)
            return
        if len(node.targets) == 1 and isinstance(first, ast.Name):
            self._assign_name(first, node.value)
            return
        form = self._wanted(first, node.value)
        if len(node.targets) > 1:
            form = self.kept(form)
        for target in node.targets:
            self.set_target(target, form)

    def _wanted(self, target: ast.expr, value: ast.expr) -> Form:
        """A value as its target holds it."""
        if isinstance(target, ast.Name) and target.id in self.function.texts:
            return self.as_text(value)
        return self.form(value)

    def _assign_name(self, target: ast.Name, value: ast.expr) -> None:
        place = self.variable(target.id)
        used = any(isinstance(inner, ast.Name) and inner.id == target.id for inner in ast.walk(value))
        found = self.values.get(value)
        if isinstance(value, ast.Compare) and not used and found is not None and found.constant is None:
            self.boolean(value, place)
        else:
            form = self._wanted(target, value)
            if self.once and form.addresses and form.is_constant and target.id in self._set_once:
                self.fixed[target.id] = form  # a list at an address that never changes
            else:
                self.assign(place, form)

    def _AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None and isinstance(node.target, ast.Name):
            self._assign_name(node.target, node.value)
        elif node.value is not None:
            self.set_target(node.target, self._wanted(node.target, node.value))

    def set_target(self, target: ast.expr, form: Form) -> None:
        if isinstance(target, ast.Name):
            self.assign(self.variable(target.id), form)
        elif isinstance(target, ast.Subscript):
            form = self.steady(form)
            self.store(self.place(target), form)
        else:
            assert isinstance(target, ast.Tuple | ast.List)
            pointer = self.kept(form)
            for at, each in enumerate(target.elts):
                self.set_target(each, self.load(pointer.plus(constant(at))))

    def _unpack(self, target: ast.expr, node: ast.expr) -> None:
        assert isinstance(target, ast.Tuple | ast.List)
        value, form = self.value(node), self.form(node)
        if value.kind != "results":
            self.set_target(target, form)
            return
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "divmod" and (
                self.analysis.functions.called(self.function, node) is None):
            forms: list[Form] = list(self.quotients)
        else:
            assert isinstance(node, ast.Call)
            called = self.analysis.functions.called(self.function, node)
            assert called is not None
            forms = [cell(self.result_cell(called, at), passing=True) for at in range(len(target.elts))]
        self._parallel(target.elts, forms, list(value.results))

    def _parallel(self, targets: Sequence[ast.expr], forms: list[Form], values: list[Value],
                  nodes: Sequence[ast.expr] = ()) -> None:
        """Several assignments whose values are all computed before."""
        simple = all(isinstance(target, ast.Name) for target in targets)
        places = [self.variable(target.id) if isinstance(target, ast.Name) else "" for target in targets]
        ready = []
        for at, form in enumerate(forms):
            target = targets[at]
            if isinstance(target, ast.Name) and target.id in self.function.texts and values[at].kind == "char" and nodes:
                form = self.kept(self.as_text(nodes[at]))
            if (form.passing and not simple) or any(place in form.terms for place in places[:at] if place) or (
                    not simple and any(place in form.terms for place in places if place)) or self._holds_items(form):
                form = self.kept(form)
            ready.append(form)
        for target, form in zip(targets, ready, strict=True):
            self.set_target(target, form)

    @staticmethod
    def _holds_items(form: Form) -> bool:
        return any("+" in name or name.startswith("list") for name in form.terms)

    def _AugAssign(self, node: ast.AugAssign) -> None:
        old, new = self.value(node.target), self.value(node.value)
        if isinstance(node.target, ast.Name):
            place = self.variable(node.target.id)
            form = self.form(node.value)
            self.assign(place, self.binary(node, node.op, cell(place), old, form, new))
            return
        assert isinstance(node.target, ast.Subscript)
        easy = isinstance(node.op, ast.Add | ast.Sub) and (not self.check or self.fits(node.op, old, new))
        place_form = self.place(node.target)
        busy = self.is_busy(node.value)
        if busy or not easy:
            place_form = self.kept(place_form)
        if easy and not busy:
            self.change(place_form, self.form(node.value), 1 if isinstance(node.op, ast.Add) else -1)
            return
        left = self.kept(self.load(place_form))  # read first: what is on the right may change the item
        right = self.steady(self.form(node.value))
        result = self.steady(self.binary(node, node.op, left, old, right, new))
        self.store(place_form, result)

    # Leaving

    def _Return(self, node: ast.Return) -> None:
        function = self.function
        if isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Name) and function.result is not None and (
                node.value.func.id not in self.function.locals):
            called = self.analysis.functions.called(function, node.value) if node.value in self.values else None
            if called is function:  # the same function again, and nothing to do after it
                forms = self.arguments(node.value, called)
                self.move({self.cell_of(called, name): form for name, form in forms.items()})
                self.jump(function.name)
                return
        if isinstance(node.value, ast.Tuple):
            forms_ = [self.steady(form) for form in self.forms(node.value.elts)]
            for at, form in enumerate(forms_):
                self.assign(self.result_cell(function, at), form)
        elif node.value is not None:
            self._return_value(node.value)
        self.jump(self._end)

    def _return_value(self, node: ast.expr) -> None:
        function = self.function
        kind = function.result.kind if function.result is not None else "none"
        form = self.as_text(node) if kind == "str" else self.form(node)
        if kind == "none" or node not in self.values:
            return
        if kind == "results" and isinstance(node, ast.Call):
            called = self.analysis.functions.called(function, node)
            assert function.result is not None
            count = len(function.result.results)
            forms = list(self.quotients) if called is None else [
                cell(self.result_cell(called, at)) for at in range(count)]
            for at, each in enumerate(forms):
                self.assign(self.result_cell(function, at), each)
            return
        self.assign(self.result_cell(function), form)

    def _Break(self, node: ast.Break) -> None:
        self.jump(self._loops[-1][0])

    def _Continue(self, node: ast.Continue) -> None:
        self.jump(self._loops[-1][1])

    # Branches and loops

    def _If(self, node: ast.If) -> None:
        self.statement = node.test
        yes, no, end = self.fresh("then"), self.fresh("else"), self.fresh("end")
        self.condition(node.test, yes, no, yes)
        self.label(yes)
        self.block(node.body)
        if node.orelse:
            self.jump(end)
        self.label(no)
        self.block(node.orelse)
        self.label(end)

    def _While(self, node: ast.While) -> None:
        top, test, done, end = (self.fresh(what) for what in ("while", "test", "done", "end"))
        self.jump(test)
        self.label(top)
        self._inside(node, end, test)
        self.label(test)
        self.temporaries, self.statement = 0, node.test
        self.loop_nodes.append(node)
        once, self.once = self.once, False  # a list in the test is a new one each time
        self.condition(node.test, top, done, done)
        self.once = once
        self.loop_nodes.pop()
        self.label(done)
        self.block(node.orelse)
        self.label(end)

    def _inside(self, node: ast.While | ast.For, end: str, again: str) -> None:
        self._loops.append((end, again))
        self.loop_nodes.append(node)
        once, self.once = self.once, False
        self.block(node.body)
        self.once = once
        self.loop_nodes.pop()
        self._loops.pop()

    def _For(self, node: ast.For) -> None:
        self.statement = node.iter
        done, end = self.fresh("done"), self.fresh("end")
        changed = {inner.id for each in node.body for inner in ast.walk(each)
                   if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store)}
        self.counted(node.iter, node.target, changed, lambda again: self._inside(node, end, again), done)
        self.label(done)
        self.block(node.orelse)
        self.label(end)

    def counted(self, source: ast.expr, target: ast.expr, changed: set[str], body: Callable[[str], None],
                done: str) -> None:
        """A loop over numbers or items; `body` is given the label at which the next time begins."""
        sources = self._sources(source, target, changed)
        left, top, again = self.lasting("left"), self.fresh("for"), self.fresh("next")
        self._count(sources, left, done)
        for each in sources:
            each.begin()
        self.label(top)
        with self.lived(left, *(name for each in sources for name in each.cells)):
            for each in sources:
                each.step()
            body(again)
        self.label(again)
        self.sub(next((each.pace for each in sources if each.pace), "=-1"), left, top)

    def step_of(self, source: ast.expr) -> Value:
        assert isinstance(source, ast.Call)
        step = number(1) if len(source.args) < 3 else self.value(source.args[2])
        return number(1, step.high) if step.low <= 0 < step.high else step

    def _count(self, sources: list[Counted], left: str, done: str) -> None:
        """`left` is 1 less how many times are left, so that counting up to above 0 ends the loop."""
        counting = [each for each in sources if each.values.kind != "none"]
        first = counting[0]
        if len(counting) > 1:
            least = self.own(first.count)
            value = first.values
            for other in counting[1:]:
                better, ahead = self.fresh("shorter"), self.fresh("next")
                self.compare(ast.Lt(), other.count, other.values, cell(least), value, better, ahead, better)
                self.label(better)
                self.assign(least, other.count)
                self.label(ahead)
                value = number(min(value.low, other.values.low), min(value.high, other.values.high))
            count, value = cell(least), value
        else:
            count, value = first.count, first.values
        self.assign(left, constant(1).plus(count, -1))
        if value.low >= 1 and value.high <= self.word.high:
            return
        go = self.fresh("go")
        self.sub("$z", left, go)
        self.jump(done)
        self.label(go)

    def _sources(self, node: ast.expr, target: ast.expr, changed: set[str]) -> list[Counted]:
        if _is_call(node, "range") and isinstance(node, ast.Call):
            return [self._numbers(node, target, changed)]
        if _is_call(node, "enumerate") and isinstance(node, ast.Call):
            assert isinstance(target, ast.Tuple)
            first = 0 if len(node.args) < 2 else self.value(node.args[1]).constant or 0
            inner = self._sources(node.args[0], target.elts[1], changed)
            index = self._counting(target.elts[0], constant(first), constant(1), changed, constant(0), Value("none"))
            return [*inner, index]
        if _is_call(node, "zip") and isinstance(node, ast.Call):
            assert isinstance(target, ast.Tuple)
            pairs = list(zip(node.args, target.elts, strict=True))
            found = []
            for each, to in pairs:
                if any(_is_call(each, name) for name in ("zip", "enumerate")) or (
                        _is_call(each, "range") and self.step_of(each).constant != 1):
                    self.fail(each, "zip() goes over lists, texts and range() with a step of 1 here")
                found += self._sources(each, to, changed)
            return found
        return [self._items(node, target)]

    def _numbers(self, node: ast.Call, target: ast.expr, changed: set[str]) -> Counted:
        forms = [self.steady(form) for form in self.forms(node.args)]
        values = [self.value(each) for each in node.args[:2]]
        start, stop = forms[:2] if len(forms) >= 2 else (constant(0), forms[0])
        a, b = values if len(values) == 2 else (number(0), values[0])
        step = forms[2] if len(forms) == 3 else constant(1)
        up = self.step_of(node).low > 0
        if up and len(forms) == 3 and (least := self.value(node.args[2]).low) <= 0:
            self.jump_if_low(step, self.error(node, "ValueError: the step of range() must be above 0 here"), least)
        assert isinstance(target, ast.Name)
        if self.variable(target.id) in {**start.terms, **stop.terms}:
            start, stop = self.kept(start), self.kept(stop)
        low, high, x, y = (start, stop, a, b) if up else (stop, start, b, a)
        count, span = high.plus(low, -1), number(y.low - x.high, y.high - x.low)
        if span.low < self.word.low or span.high > self.word.high:
            count, span = self._span(node, low, x, high, y)
        return self._counting(target, start, step, changed, count, span, up=up)

    def _span(self, node: ast.Call, low: Form, a: Value, high: Form, b: Value) -> tuple[Form, Value]:
        """high - low where that may not fit: 0 where it is not above 0, and an error where it is too large."""
        made, some, none = self.temporary(), self.fresh("some"), self.fresh("none")
        self.clear(made)
        self.jump_if_ordered(low, a, high, b, 1, some, none, some)
        self.label(some)
        self.assign(made, high.plus(low, -1))
        if b.high - a.low > self.word.high:
            self.jump_if_low(cell(made), self.error(node, "OverflowError: range() of more numbers than a word counts"), 0)
        self.label(none)
        return cell(made), number(0, self.word.high)

    def _counting(self, target: ast.expr, first: Form, step: Form, changed: set[str], count: Form, values: Value, *,
                  up: bool = True) -> Counted:
        assert isinstance(target, ast.Name)
        place = self.variable(target.id)
        own = target.id in changed
        counter = self.lasting("count") if own else place
        down, pace = step.constant(-1), step.constant(-1 if up else 1)
        if not step.is_constant:
            down, pace = self.lasting("step"), ""
            self.assign(down, step.times(-1))
            pace = down if up else self.lasting("pace")
            if not up:
                self.assign(pace, step)

        def begin() -> None:
            self.assign(counter, first.plus(step, -1))

        def advance() -> None:
            self.sub(down, counter)
            if own:
                self.assign(place, cell(counter))

        kept = () if step.is_constant else tuple({down, pace})
        return Counted(count, values, begin, advance, (counter, *kept), pace if values.kind != "none" else "")

    def _items(self, node: ast.expr, target: ast.expr) -> Counted:
        value = self.value(node)
        if value.kind == "char":
            form = self.kept(self.form(node))
            return Counted(constant(1), number(1), lambda: None, lambda: self.set_target(target, form), ())
        pointer = self.kept(self.form(node))
        length = self.length(value, pointer)
        known = value.items.root if value.items is not None else None
        here, found = self.fresh("at"), self.lasting("item")

        def step() -> None:
            self.clear(found)
            self.put(f"{here}:0 {found}")
            self.sub("=-1", here)
            self.set_target(target, Form({found: -1}))

        values = number(known.low, known.high) if known is not None else number(0, self.word.high)
        return Counted(self.steady(length), values, lambda: self.assign(here, pointer), step, (here,))

    def _ListComp(self, node: ast.ListComp) -> Form:
        generator = node.generators[0]
        names = {inner.id: self.lasting(inner.id) for inner in ast.walk(generator.target) if isinstance(inner, ast.Name)}
        sized = self.value(node)
        assert sized.items is not None
        if sized.items.root.length is None and not self._is_repeatable(generator.iter):
            self.fail(generator.iter, "what a comprehension goes over is computed here", "give it a name before")
        done, place, made = self.fresh("done"), self.lasting("place"), self.lasting("made")
        length = self._comprehension_length(generator.iter, sized)
        self.given(length)
        self.routine("allocate")
        self.assign(made, cell("$r"))
        self.assign(place, cell("$r"))
        self.hidden.append(names)
        self.loop_nodes.append(node)
        once, self.once = self.once, False

        def body(again: str) -> None:
            with self.lived(place, made):
                value = self.steady(self._item(node.elt, sized))
            self.store(cell(place), value)
            self.sub("=-1", place)

        self.counted(generator.iter, generator.target, set(), body, done)
        self.once = once
        self.loop_nodes.pop()
        self.hidden.pop()
        self.label(done)
        return cell(made)

    def _is_repeatable(self, source: ast.expr) -> bool:
        """Whether a source can be computed twice, for the length and for the items: it makes and calls nothing."""
        parts = source.args if _is_call(source, "range") and isinstance(source, ast.Call) else [source]
        return not any(isinstance(inner, ast.List | ast.Tuple | ast.ListComp) or (
            isinstance(inner, ast.Call) and not _is_call(inner, "len")) for each in parts for inner in ast.walk(each))

    def _comprehension_length(self, source: ast.expr, sized: Value) -> Form:
        """How many items there will be."""
        assert sized.items is not None
        if sized.items.root.length is not None:
            return constant(sized.items.root.length)
        if _is_call(source, "range") and isinstance(source, ast.Call):
            step = self.step_of(source)
            forms, values = self.forms(source.args[:2]), [self.value(each) for each in source.args[:2]]
            start, stop = forms if len(forms) == 2 else (constant(0), forms[0])
            a, b = values if len(values) == 2 else (number(0), values[0])
            low, high, x, y = (start, stop, a, b) if step.low > 0 else (stop, start, b, a)
            span = high.plus(low, -1)
            if abs(step.low) != 1 or step.constant is None or not self.fits(ast.Sub(), y, x):
                self.fail(source, "a comprehension goes over range(n), a list or a text here", "write a loop")
            return span
        if isinstance(source, ast.Call) and any(_is_call(source, name) for name in ("enumerate", "zip")):
            self.fail(source, "a comprehension goes over range(n), a list or a text here", "write a loop")
        return self.length(self.value(source), self.form(source))


def _is_call(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name
