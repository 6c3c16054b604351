"""Statements to code."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from punchcard.machines.von_neumann.languages.asq.items import Expression
from punchcard.python.integers.assembly import CellSum, Patched, Z, cell, constant
from punchcard.python.integers.functions import IntegerFunction
from punchcard.python.integers.generator import CodeGenerator, CodePart
from punchcard.python.integers.values import AbstractValue, number


class StatementCode(CodePart):
    """The body of a function."""

    def __init__(self, code: CodeGenerator) -> None:
        super().__init__(code)
        self._loops: list[tuple[str, str]] = []
        self._end = ""
        self._set_once: set[str] = set()
        self._kinds: Mapping[type[ast.stmt], Callable[[Any], object]] = {
            ast.Expr: lambda node: self.evaluate(node.value), ast.Assert: self._assert,
            ast.Assign: self._assign, ast.AnnAssign: self._annotated, ast.AugAssign: self._augmented,
            ast.Return: self._return, ast.If: self._if, ast.While: self._while, ast.For: self._for,
            ast.Break: lambda node: self.out.jump(self._loops[-1][0]),
            ast.Continue: lambda node: self.out.jump(self._loops[-1][1])}

    def body(self, function: IntegerFunction, *, inline: bool) -> None:
        """A function, from its label to its end; inline, the program continues behind it."""
        self.frame.function, self.out.prefix = function, function.name
        self.frame.once, self.frame.fixed = inline, {}
        self._loops = []
        self._end = self.out.fresh("return")
        stored = Counter(node.id for node in ast.walk(function.node)
                         if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
        self._set_once = {name for name, count in stored.items() if count == 1 and name not in function.parameters}
        self.out.label(function.name)
        self._block(function.node.body)
        self.out.label(self._end)
        if not inline:
            self.out.sub(Z, Z, Patched(f"{function.name}_back"), leaves="-")

    def _block(self, statements: Sequence[ast.stmt]) -> None:
        source = self.frame.function.source
        for statement in statements:
            if statement not in self.facts.statements:
                return  # no way leads here
            self.out.temporaries = 0
            self.frame.statement = statement
            is_docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
            if not is_docstring and not isinstance(statement, ast.Pass):
                line = source.line(statement)
                self.out.comment(f"{line}: {source.text(statement)[:100]}", line)
                with source.refusing(statement):
                    self._kinds[type(statement)](statement)

    def _assert(self, node: ast.Assert) -> None:
        text = node.msg.value if isinstance(node.msg, ast.Constant) and isinstance(node.msg.value, str) else ""
        fine = self.out.fresh("holds")
        wrong = self.error(node, f"AssertionError: {text}".removesuffix(": "))
        self.code.conditions.branch(node.test, fine, wrong, fine)
        self.out.label(fine)

    # Assignment

    def _assign(self, node: ast.Assign) -> None:
        first = node.targets[0]
        if isinstance(first, ast.Tuple | ast.List):
            if isinstance(node.value, ast.Tuple | ast.List):
                values = [self.facts.value(each) for each in node.value.elts]
                self._parallel(first.elts, self.evaluate_all(node.value.elts), values)
                return
            self._unpack(node.targets, node.value)
            return
        if len(node.targets) == 1 and isinstance(first, ast.Name):
            self._assign_name(first, node.value)
            return
        form = self._wanted(first, node.value)
        if len(node.targets) > 1:
            form = self.out.kept(form)
        for target in node.targets:
            self.set_target(target, form)

    def _annotated(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self._assign(ast.Assign([node.target], node.value))

    def _wanted(self, target: ast.expr, value: ast.expr) -> CellSum:
        """A value as its target holds it."""
        return self.evaluate(value, as_text=isinstance(target, ast.Name) and target.id in self.frame.function.texts)

    def _assign_name(self, target: ast.Name, value: ast.expr) -> None:
        place = self.variable(target.id)
        used = any(isinstance(inner, ast.Name) and inner.id == target.id for inner in ast.walk(value))
        if isinstance(value, ast.Compare) and not used and self.facts.is_reached(value) and (
                self.facts.value(value).constant is None):
            self.code.expressions.boolean(value, place)
            return
        form = self._wanted(target, value)
        if self.frame.once and form.addresses and form.is_constant and target.id in self._set_once:
            self.frame.fixed[target.id] = form  # a list at an address that never changes
        else:
            self.out.assign(place, form)

    def set_target(self, target: ast.expr, form: CellSum) -> None:
        """Assign to a name, an item, or several of them."""
        if isinstance(target, ast.Name):
            self.out.assign(self.variable(target.id), form)
        elif isinstance(target, ast.Subscript):
            form = self.out.steady(form)
            self.code.lists.store(self.code.lists.place(target), form)
        else:
            assert isinstance(target, ast.Tuple | ast.List)
            pointer = self.out.kept(form)
            for at, each in enumerate(target.elts):
                self.set_target(each, self.code.lists.load(pointer.plus(constant(at))))

    def _unpack(self, targets: Sequence[ast.expr], node: ast.expr) -> None:
        """The items of one value, to the names of every target."""
        value = self.facts.value(node)
        if value.kind != "results" and not isinstance(node, ast.IfExp):
            form = self.evaluate(node)
            form = self.out.kept(form) if len(targets) > 1 else form
            for target in targets:
                self.set_target(target, form)
            return
        parts = value.results or (value.list.item or number(0),) * (value.list.length or 0)
        forms = self._items(node, parts)
        if len(targets) > 1:
            forms = [self.out.kept(form) for form in forms]
        for target in targets:
            assert isinstance(target, ast.Tuple | ast.List)
            self._parallel(target.elts, forms, list(parts))

    def _items(self, node: ast.expr, wanted: Sequence[AbstractValue]) -> list[CellSum]:
        """The items of a value that is taken apart, each of the kind that is wanted."""
        if not self.facts.is_reached(node):
            return [constant(0)] * len(wanted)
        if isinstance(node, ast.IfExp):
            return self._items_of_choice(node, wanted)
        value = self.facts.value(node)
        if isinstance(node, ast.Tuple | ast.List):
            forms, own = self.evaluate_all(node.elts), [self.facts.value(item) for item in node.elts]
        elif value.kind == "results":
            assert isinstance(node, ast.Call)
            self.evaluate(node)
            forms, own = self._results(node, len(wanted)), list(value.results)
        else:
            pointer = self.out.kept(self.evaluate(node))
            forms = [self.code.lists.load(pointer.plus(constant(at))) for at in range(len(wanted))]
            own = [value.list.item or number(0)] * len(wanted)
        return self._as_wanted(forms, own, [part.kind == "str" for part in wanted])

    def _items_of_choice(self, node: ast.IfExp, wanted: Sequence[AbstractValue]) -> list[CellSum]:
        made = [self.out.temporary() for _ in wanted]
        yes, no, end = map(self.out.fresh, ("then", "else", "end"))
        self.code.conditions.branch(node.test, yes, no, yes)
        for label, branch in ((yes, node.body), (no, node.orelse)):
            self.out.label(label)
            for place, form in zip(made, self._items(branch, wanted), strict=True):
                self.out.assign(place, form)
            if branch is node.body:
                self.out.jump(end)
        self.out.label(end)
        return [cell(place) for place in made]

    def _as_wanted(self, forms: list[CellSum], own: Sequence[AbstractValue], texts: Sequence[bool]) -> list[CellSum]:
        """Single characters as texts, where a text is wanted."""
        if not any(text and value.kind == "char" for text, value in zip(texts, own, strict=True)):
            return forms
        kept = [self.out.kept(form) for form in forms]
        return [self.code.expressions.text_of(form) if text and value.kind == "char" else form
                for form, value, text in zip(kept, own, texts, strict=True)]

    def _results(self, node: ast.Call, count: int) -> list[CellSum]:
        """The results of a call that was just made and gives several."""
        called = self.code.calls.called(node)
        if called is None:
            return list(self.code.builtins.quotients)
        return [cell(self.storage.result_cell(called, at), passing=True) for at in range(count)]

    def _parallel(self, targets: Sequence[ast.expr], forms: list[CellSum], values: list[AbstractValue]) -> None:
        """Several assignments whose values are all computed before."""
        texts = [isinstance(target, ast.Name) and target.id in self.frame.function.texts for target in targets]
        forms = self._as_wanted(forms, values, texts)
        simple = all(isinstance(target, ast.Name) for target in targets)
        places = [self.variable(target.id) if isinstance(target, ast.Name) else None for target in targets]
        ready = []
        for at, form in enumerate(forms):
            if (form.passing and not simple) or any(place in form.terms for place in places[:at] if place) or (
                    not simple and any(place in form.terms for place in places if place)) or _holds_items(form):
                form = self.out.kept(form)
            ready.append(form)
        for target, form in zip(targets, ready, strict=True):
            self.set_target(target, form)

    def _augmented(self, node: ast.AugAssign) -> None:
        old, new = self.facts.value(node.target), self.facts.value(node.value)
        lists = self.code.lists
        if isinstance(node.target, ast.Name):
            target = self.variable(node.target.id)
            form = self.evaluate(node.value)
            self.out.assign(target, self.code.operators.binary(node, node.op, cell(target), old, form, new))
            return
        assert isinstance(node.target, ast.Subscript)
        easy = isinstance(node.op, ast.Add | ast.Sub) and self.facts.may_wrap(node.op, old, new)
        place, busy = lists.place(node.target), self.facts.is_busy(node.value)
        if busy or not easy:
            place = self.out.kept(place)
        if easy and not busy:
            lists.change(place, self.evaluate(node.value), 1 if isinstance(node.op, ast.Add) else -1)
            return
        left = self.out.kept(lists.load(place))  # read first: what is on the right may change the item
        right = self.out.steady(self.evaluate(node.value))
        lists.store(place, self.out.steady(self.code.operators.binary(node, node.op, left, old, right, new)))

    # Leaving

    def _return(self, node: ast.Return) -> None:
        function, value = self.frame.function, node.value
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and function.result is not None and (
                value.func.id not in function.locals and self.facts.is_reached(value)) and (
                self.code.calls.called(value) is function):  # the same function again, and nothing to do after it
            self.code.calls.move(self.code.calls.move_arguments(value, function))
            self.out.jump(function.name)
            return
        if value is not None:
            self._return_value(value)
        self.out.jump(self._end)

    def _set_results(self, forms: list[CellSum]) -> None:
        for at, form in enumerate(forms):
            self.out.assign(self.storage.result_cell(self.frame.function, at), form)

    def _return_value(self, node: ast.expr) -> None:
        result = self.frame.function.result
        kind = result.kind if result is not None else "none"
        if result is not None and kind == "results":
            self._set_results([self.out.steady(form) for form in self._items(node, result.results)])
            return
        form = self.evaluate(node, as_text=kind == "str")
        if kind != "none" and self.facts.is_reached(node):
            self._set_results([form])

    # Branches and loops

    def _if(self, node: ast.If) -> None:
        self.frame.statement = node.test
        yes, no, end = map(self.out.fresh, ("then", "else", "end"))
        self.code.conditions.branch(node.test, yes, no, yes)
        self.out.label(yes)
        self._block(node.body)
        if node.orelse:
            self.out.jump(end)
        self.out.label(no)
        self._block(node.orelse)
        self.out.label(end)

    def _while(self, node: ast.While) -> None:
        top, test, done, end = map(self.out.fresh, ("while", "test", "done", "end"))
        self.out.jump(test)
        self.out.label(top)
        self._loop_body(node, end, test)
        self.out.label(test)
        self.out.temporaries, self.frame.statement = 0, node.test
        with self.frame.inside(node):  # a list in the test is a new one each time
            self.code.conditions.branch(node.test, top, done, done)
        self.out.label(done)
        self._block(node.orelse)
        self.out.label(end)

    def _loop_body(self, node: ast.While | ast.For, end: str, again: str) -> None:
        self._loops.append((end, again))
        with self.frame.inside(node):
            self._block(node.body)
        self._loops.pop()

    def _for(self, node: ast.For) -> None:
        self.frame.statement = node.iter
        done, end = self.out.fresh("done"), self.out.fresh("end")
        changed = {inner.id for each in node.body for inner in ast.walk(each)
                   if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store)}
        self.code.loops.repeat(node.iter, node.target, changed, lambda again: self._loop_body(node, end, again), done)
        self.out.label(done)
        self._block(node.orelse)
        self.out.label(end)


def _holds_items(form: CellSum) -> bool:
    """Whether a sum has items of a list at a fixed address, which an assignment may change."""
    def is_item(place: Expression) -> bool:
        return len(place) > 1 or place[0].name.startswith("list")

    return any(map(is_item, form.terms))
