"""Calls: of functions of the program, of those that are built in, and printing."""

from __future__ import annotations

import ast

from punchcard.python.integers.forms import Form, cell, constant
from punchcard.python.integers.functions import Function
from punchcard.python.integers.generator import characters
from punchcard.python.integers.inference import is_text
from punchcard.python.integers.inferring_calls import arguments_of
from punchcard.python.integers.lists import Lists
from punchcard.python.integers.values import Value, number

SHORT = 8
"""Characters that are written by an instruction each."""


class Calls(Lists):
    """Values of calls."""

    def _Call(self, node: ast.Call) -> Form:
        if isinstance(node.func, ast.Attribute):
            return self._is_digit(node.func.value)
        called = self.analysis.functions.called(self.function, node)
        if called is not None:
            return self.own_call(node, called)
        assert isinstance(node.func, ast.Name)
        found: Form = getattr(self, "call_" + node.func.id)(node)
        return found

    # Functions of the program

    def arguments(self, node: ast.Call, called: Function) -> dict[str, Form]:
        """The arguments by parameter, none of which the next one's computation disturbs."""
        given = arguments_of(self.function, node, called)
        found: dict[str, Form] = {}
        order = [*node.args, *(keyword.value for keyword in node.keywords)]
        by_node = {id(argument): name for name, argument in given.items()}
        for at, argument in enumerate(order):
            name = by_node[id(argument)]
            form = self.as_text(argument) if name in called.texts else self.form(argument)
            if form.passing and any(map(self.is_busy, order[at + 1 :])):
                form = self.kept(form)
            found[name] = form
        for name, argument in given.items():
            if name not in found:
                value = argument.value if isinstance(argument, ast.Constant) else 0
                found[name] = self.as_text(argument) if name in called.texts else self.outside(value)
        return found

    def move(self, moves: dict[str, Form]) -> None:
        """Assign to cells at once: a value that an earlier assignment would change is kept before."""
        targets = list(moves)
        waiting = {target: self.kept(form) if any(other in form.terms for other in targets[:at]) else form
                   for at, (target, form) in enumerate(moves.items())}
        for target, form in waiting.items():
            if form.cell != target:
                self.assign(target, form)

    def own_call(self, node: ast.Call, called: Function) -> Form:
        before = self.temporaries
        forms = self.arguments(node, called)
        moves = {self.cell_of(called, name): form for name, form in forms.items()}
        again = called.recursive and self.function.recursive and self.reaches(called)
        saved = self._live(node, before) if again else []
        if saved:
            moves = {target: self.kept(form) if form.passing else form for target, form in moves.items()}
            self.need("stack")
            self.sub("=1", "depth", "too_deep")
            for name in saved:
                self.put(f"@push {name}")
        self.move(moves)
        self.call(called.name)
        for name in reversed(saved):
            self.put(f"@pop {name}")
        if saved:
            self.sub("=-1", "depth")
        return cell(self.result_cell(called), passing=True)

    def reaches(self, called: Function) -> bool:
        """Whether a function that is called may call this one."""
        seen: set[Function] = set()
        ahead = [called]
        while ahead:
            function = ahead.pop()
            if function is self.function:
                return True
            if function not in seen:
                seen.add(function)
                ahead += function.calls
        return False

    def _live(self, node: ast.Call, before: int) -> list[str]:
        """Cells that are needed after a call which may use them: what is read behind it, in a loop around it, or in the
        same statement, whose sums are not computed before they must be.
        """
        start, end = (node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0)
        around = {inner for each in (*self.loop_nodes, self.statement) for inner in ast.walk(each)}
        for call in ast.walk(self.statement):
            if isinstance(call, ast.Call) and not self.loop_nodes and isinstance(call.func, ast.Name) and (
                    call is node or (call.end_lineno or 0, call.end_col_offset or 0) <= start) and (
                    self.analysis.functions.called(self.function, call) is not None):
                around -= set(ast.walk(call))  # its arguments have been moved
        names: dict[str, str] = {}
        for other in ast.walk(self.function.node):
            read = other.target if isinstance(other, ast.AugAssign) else other
            if isinstance(read, ast.Name) and read.id in self.function.locals and (
                    read is not other or isinstance(read.ctx, ast.Load)) and (
                    (read.lineno, read.col_offset) >= end or read in around):
                names[read.id] = self.variable(read.id)
        for loop in self.loop_nodes:
            for target in ast.walk(loop.target) if isinstance(loop, ast.For) else ():
                if isinstance(target, ast.Name):
                    names[target.id] = self.variable(target.id)
        temporaries = [f"${self.prefix}_{k}" for k in range(1, before + 1)]
        hidden = [place for each in self.hidden for place in each.values()]
        return list(dict.fromkeys([f"{self.function.name}_back", *names.values(), *self.loop_cells, *hidden, *temporaries]))

    # Functions that are built in

    def call_int(self, node: ast.Call) -> Form:
        argument = node.args[0]
        value = self.value(argument)
        if value.is_number:
            return self.form(argument)
        message = "ValueError: int() of a text that is not a number of this word size"
        if value.kind == "char":
            digit = self.kept(self.form(argument))
            wrong, good, fine = self.error(node, message), self.fresh("digit"), self.fresh("digit")
            self.jump_if_ordered(digit, number(0, 127), constant(47), number(47), 0, wrong, good, good)
            self.label(good)
            self.jump_if_ordered(digit, number(48, 127), constant(57), number(57), 0, fine, wrong, fine)
            self.label(fine)
            return digit.plus(constant(-48))
        self.given(self.form(argument))
        self.set_error(node, message)
        self.routine("parse")
        return cell("$r", passing=True)

    def call_bool(self, node: ast.Call) -> Form:
        return self.boolean(node.args[0])

    def _is_digit(self, node: ast.expr) -> Form:
        digit, made = self.kept(self.form(node)), self.temporary()
        no, yes, good = self.fresh("no"), self.fresh("yes"), self.fresh("digit")
        self.clear(made)
        self.jump_if_ordered(digit, number(0, 127), constant(47), number(47), 0, no, good, good)
        self.label(good)
        self.jump_if_ordered(digit, number(48, 127), constant(57), number(57), 0, yes, no, yes)
        self.label(yes)
        self.sub("=-1", made)
        self.label(no)
        return cell(made)

    def call_len(self, node: ast.Call) -> Form:
        return self.length(self.value(node.args[0]), self.form(node.args[0]))

    def call_abs(self, node: ast.Call) -> Form:
        value = self.value(node.args[0])
        form = self.form(node.args[0])
        if value.low >= 0:
            return form
        given, made, end = self.tested(form), self.own(form), self.fresh("abs")
        self.put(f"@jgez {given} {end}")
        self.assign(made, cell(given).times(-1))
        if self.check and value.low <= self.word.low:
            self.put(f"@jltz {made} {self.overflow(node)}")
        self.label(end)
        return cell(made)

    def call_min(self, node: ast.Call) -> Form:
        larger = isinstance(node.func, ast.Name) and node.func.id == "max"
        op = ast.Gt() if larger else ast.Lt()
        if len(node.args) == 1:
            return self._over_items(node, op)
        forms = [self.steady(form) for form in self.forms(node.args)]
        made = self.own(forms[0])
        value = self.value(node.args[0])
        for form, argument in zip(forms[1:], node.args[1:], strict=True):
            better, end = self.fresh("better"), self.fresh("best")
            self.compare(op, form, self.value(argument), cell(made), value, better, end, better)
            self.label(better)
            self.assign(made, form)
            self.label(end)
            other, choose = self.value(argument), max if larger else min
            value = Value("int", choose(value.low, other.low), choose(value.high, other.high))
        return cell(made)

    call_max = call_min

    def _over_items(self, node: ast.Call, op: ast.cmpop | None) -> Form:
        """The sum of a list, its least item or its greatest."""
        items = self.value(node.args[0])
        assert items.items is not None
        assert items.items.root.item is not None
        item, pointer = items.items.root.item, self.kept(self.form(node.args[0]))
        length = self.kept(self.length(items, pointer))
        made, left, here = self.temporary(), self.lasting("left"), self.fresh("at")
        top, end = self.fresh("items"), self.fresh("end")
        self.assign(here, pointer)
        self.assign(left, length)
        self.clear(made)
        if op is not None:
            some = self.fresh("some")
            if items.items.root.low < 1:
                self.jump_if_low(length.plus(constant(0)), self.error(node, "ValueError: the list is empty"), 0)
            self.label(some)
            self.assign(made, self.load(pointer))
        self.label(top)
        self.sub("$z", left, end)
        found = self.temporary()
        self.clear(found)
        self.put(f"{here}:0 {found}")
        if op is None and self.check and not self.value(node).within(self.word.low + 1, self.word.high - 1):
            self.assign(made, self._checked("sum", node, cell(made), Form({found: -1})))
        elif op is None:
            self.sub(found, made)
        else:
            better, ahead = self.fresh("better"), self.fresh("next")
            self.compare(op, Form({found: -1}), item, cell(made), item, better, ahead, better)
            self.label(better)
            self.assign(made, Form({found: -1}))
            self.label(ahead)
        self.sub("=-1", here)
        self.sub("=1", left)
        self.jump(top)
        self.label(end)
        return cell(made)

    def call_sum(self, node: ast.Call) -> Form:
        return self._over_items(node, None)

    def call_divmod(self, node: ast.Call) -> Form:
        left, right = self.forms(node.args)
        a, b = map(self.value, node.args)
        self.quotients = self.divided(node, left, a, right, b)
        return self.quotients[0]

    def call_pow(self, node: ast.Call) -> Form:
        left, right = self.forms(node.args)
        return self.binary(node, ast.Pow(), left, self.value(node.args[0]), right, self.value(node.args[1]))

    def call_ord(self, node: ast.Call) -> Form:
        value = self.value(node.args[0])
        if value.kind != "str":
            return self.form(node.args[0])
        text, fine = self.kept(self.form(node.args[0])), self.fresh("character")
        wrong = self.error(node, "TypeError: ord() of a text that is not one character")
        self.jump_by_zero(self.length(value, text).plus(constant(-1)), fine, wrong, fine, -1, self.word.high - 1)
        self.label(fine)
        return self.load(text)

    def call_chr(self, node: ast.Call) -> Form:
        value = self.value(node.args[0])
        if value.within(0, 127):
            return self.form(node.args[0])
        made = cell(self.own(self.form(node.args[0])))
        wrong, good, fine = self.error(node, "ValueError: chr() is of 0 to 127 here"), self.fresh("chr"), self.fresh("chr")
        self.jump_if_ordered(constant(0), number(0), made, value, 0, good, wrong, good)
        self.label(good)
        self.jump_if_ordered(made, number(0, max(0, value.high)), constant(127), number(127), 0, fine, wrong, fine)
        self.label(fine)
        return made

    def call_input(self, node: ast.Call) -> Form:
        for prompt in node.args:
            self.write(prompt)
        self.routine("read_line")
        return cell("$r", passing=True)

    # Printing

    def call_print(self, node: ast.Call) -> Form:
        ends = {keyword.arg: keyword.value.value for keyword in node.keywords
                if isinstance(keyword.value, ast.Constant)}
        self._early(node.args)
        pending, separator = "", str(ends.get("sep", " "))
        sure = next((at for at, argument in enumerate(node.args) if not self._may_be_empty(argument)), 0)
        for at, argument in enumerate(node.args):
            before, after = separator * (at > sure), separator * (at < sure)
            if not isinstance(argument, ast.Starred):
                pending = self._written(argument, pending + before)
                continue
            value, form = self.value(argument.value), self.early.get(argument.value)
            form = self.kept(self.form(argument.value)) if form is None else form
            self.write_bytes(pending.encode())
            if at == sure:
                self._write_items(value, form, between=separator)
            else:
                self._write_items(value, form, before=before, after=after)
            pending = ""
        self.write_bytes((pending + str(ends.get("end", "\n"))).encode())
        self.early = {}
        return constant(0)

    def _may_be_empty(self, argument: ast.expr) -> bool:
        """Whether an argument may write nothing: separators go to those that never do."""
        if not isinstance(argument, ast.Starred):
            return False
        items = self.value(argument.value).items
        return items is None or items.root.low < 1

    def _early(self, nodes: list[ast.expr]) -> None:
        """Everything is computed before anything is written: a call may write as well, and an expression may fail."""
        parts = [inner for node in nodes for inner in self._parts(node) if inner in self.values]
        busy = [inner for inner in parts if self.is_busy(inner)]
        if busy and busy != parts[:1]:  # a single one that comes first is computed before anything is written anyway
            self.early = {inner: self.kept(self.form(inner)) for inner in busy}

    def _parts(self, node: ast.expr) -> list[ast.expr]:
        """The values of which a text is put together."""
        if isinstance(node, ast.Starred):
            return [node.value]
        if isinstance(node, ast.JoinedStr):
            return [part for each in node.values for part in self._parts(each)]
        if isinstance(node, ast.FormattedValue):
            return self._parts(node.value)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "str":
            return self._parts(node.args[0])
        if is_text(node) and isinstance(node, ast.BinOp):
            return [*self._parts(node.left), *self._parts(node.right)]
        return [node]

    def write(self, node: ast.expr) -> None:
        self.write_bytes(self._written(node, "").encode())

    def _written(self, node: ast.expr, pending: str) -> str:
        """Write a value, after the text that is pending; gives the text that is pending then."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return pending + node.value
        if isinstance(node, ast.JoinedStr):
            for part in node.values:
                pending = self._written(part, pending)
            return pending
        if isinstance(node, ast.FormattedValue):
            return self._written(node.value, pending)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "str" and (
                node not in self.values):
            return self._written(node.args[0], pending)
        if is_text(node) and isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return self._written(node.right, self._written(node.left, pending))
        if is_text(node) and isinstance(node, ast.BinOp):
            self.write_bytes(pending.encode())
            self._write_repeated(node)
            return ""
        value = self.value(node)
        if value.constant is not None and self.is_plain(node):
            known = value.constant
            shown = chr(known) if value.kind == "char" else str(known)
            return pending + (str(bool(known)) if value.kind == "bool" else shown)
        form = self.early.get(node)
        if form is None and self.is_busy(node):
            form = self.kept(self.form(node))
        self.write_bytes(pending.encode())
        self.write_value(value, self.form(node) if form is None else form)
        return ""

    def _write_repeated(self, node: ast.BinOp) -> None:
        text, count = (node.left, node.right) if is_text(node.left) else (node.right, node.left)
        left, top, end = self.lasting("times"), self.fresh("again"), self.fresh("end")
        self.assign(left, self.early.get(count) or self.form(count))
        self.label(top)
        self.sub("$z", left, end)
        self.write(text)
        self.sub("=1", left)
        self.jump(top)
        self.label(end)

    def write_value(self, value: Value, form: Form) -> None:
        """Write a value as print does."""
        if value.kind == "list":
            self._write_list(value, form)
        elif value.kind == "char":
            self.sub(self.held(form), "(-1)")
        elif value.kind == "str":
            self.given(form)
            self.routine("write_text")
        elif value.kind == "bool":
            yes, no, end = self.fresh("true"), self.fresh("false"), self.fresh("end")
            self.jump_by_zero(form, no, yes, yes, 0, 1)
            self.label(yes)
            self.write_bytes(b"True")
            self.jump(end)
            self.label(no)
            self.write_bytes(b"False")
            self.label(end)
        else:
            self.given(form)
            self.routine("write_number")

    def _write_list(self, value: Value, form: Form) -> None:
        assert value.items is not None
        root = value.items.root
        form = self.kept(form)
        self.write_bytes(b"(" if root.is_tuple else b"[")
        self._write_items(value, form, between=", ")
        if root.is_tuple and root.low <= 1 <= root.high:  # (1,) has a comma
            one, other = self.fresh("yes"), self.fresh("no")
            self.compare(ast.Eq(), self.length(value, form), number(root.low, root.high), constant(1), number(1), one,
                         other, one)
            self.label(one)
            self.write_bytes(b",")
            self.label(other)
        self.write_bytes(b")" if root.is_tuple else b"]")

    def _write_items(self, value: Value, form: Form, *, before: str = "", between: str = "", after: str = "") -> None:
        assert value.items is not None
        root = value.items.root
        assert root.item is not None
        left, here = self.lasting("left"), self.fresh("at")
        top, end, ahead = self.fresh("items"), self.fresh("end"), self.fresh("next")
        pointer = self.kept(form)
        self.assign(here, pointer)
        self.assign(left, self.length(value, pointer))
        self.sub("$z", left, end)
        self.label(top)
        found = self.temporary()
        self.clear(found)
        self.put(f"{here}:0 {found}")
        self.write_bytes(before.encode())
        self.write_value(root.item, Form({found: -1}))
        self.write_bytes(after.encode())
        self.sub("=-1", here)
        self.sub("=1", left, end)
        self.label(ahead)
        self.write_bytes(between.encode())
        self.jump(top)
        self.label(end)

    def write_bytes(self, data: bytes) -> None:
        """Write a text that is known: a short one character by character."""
        if len(data) <= SHORT or 0 in data:
            for byte in data:
                self.sub(f"={byte}", "(-1)")
            return
        if data not in self.written_texts:
            self.written_texts[data] = self.unused("written")
            self.data.append(f". {self.written_texts[data]}:{characters(data)} 0")
        self.assign("$p", Form({}, 0, {self.written_texts[data]: 1}))
        self.routine("write_cells")
