"""Printing: what is known is written as it is, and everything else by a routine."""

from __future__ import annotations

import ast

from punchcard.machines.von_neumann.languages.asq.items import name
from punchcard.python.integers.assembly import PORT, CellSum, P, Z, address, constant, literal
from punchcard.python.integers.functions import is_text, parts_of, pieces_of
from punchcard.python.integers.generator import CodeGenerator, CodePart
from punchcard.python.integers.values import AbstractValue, number

SHORT = 8
"""Characters that are written by an instruction each."""


class PrintCode(CodePart):
    """Writes values to the output. `_early` has what was computed before anything is written."""

    def __init__(self, code: CodeGenerator) -> None:
        super().__init__(code)
        self._early: dict[ast.AST, CellSum] = {}

    def print(self, node: ast.Call) -> CellSum:
        ends = {keyword.arg: keyword.value.value for keyword in node.keywords
                if isinstance(keyword.value, ast.Constant)}
        self._compute_early(node.args)
        pending, separator = "", str(ends.get("sep", " "))
        sure = next((at for at, argument in enumerate(node.args) if not self._may_be_empty(argument)), 0)
        for at, argument in enumerate(node.args):
            before, after = separator * (at > sure), separator * (at < sure)
            if not isinstance(argument, ast.Starred):
                pending = self._written(argument, pending + before)
                continue
            value, form = self.facts.value(argument.value), self._early.get(argument.value)
            form = self.out.kept(self.evaluate(argument.value)) if form is None else form
            self.write_bytes(pending.encode())
            if at == sure:
                self._write_items(value, form, between=separator)
            else:
                self._write_items(value, form, before=before, after=after)
            pending = ""
        self.write_bytes((pending + str(ends.get("end", "\n"))).encode())
        self._early = {}
        return constant(0)

    def _may_be_empty(self, argument: ast.expr) -> bool:
        """Whether an argument may write nothing: separators go to those that never do."""
        return isinstance(argument, ast.Starred) and self.facts.count(self.facts.value(argument.value)).low < 1

    def _compute_early(self, nodes: list[ast.expr]) -> None:
        """Everything is computed before anything is written: a call may write as well, and an expression may fail."""
        parts = [inner for node in nodes for inner in pieces_of(node) if self.facts.is_reached(inner)]
        busy = [inner for inner in parts if self._is_early(inner)]
        if busy and busy != parts[:1]:  # a single one that comes first is computed before anything is written anyway
            self._early = {inner: self.out.kept(self.evaluate(inner)) for inner in busy}

    def _is_early(self, node: ast.expr) -> bool:
        """Whether an expression is computed before anything is written: it may fail, write, or use cells of routines."""
        return self.facts.is_busy(node) or not self.facts.is_plain(node)

    def write(self, node: ast.expr) -> None:
        self.write_bytes(self._written(node, "").encode())

    def _written(self, node: ast.expr, pending: str) -> str:
        """Write a value, after the text that is pending; gives the text that is pending then."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return pending + node.value
        parts = parts_of(node)
        if parts is not None:
            for part in parts:
                pending = self._written(part, pending)
            return pending
        if is_text(node) and isinstance(node, ast.BinOp):
            self.write_bytes(pending.encode())
            self._write_repeated(node)
            return ""
        value, known = self.facts.value(node), self.facts.constant(node)
        if known is not None:
            shown = chr(known) if value.kind == "char" else str(known)
            return pending + (str(bool(known)) if value.kind == "bool" else shown)
        form = self._early.get(node)
        if form is None and self._is_early(node):
            form = self.out.kept(self.evaluate(node))
        self.write_bytes(pending.encode())
        self.write_value(value, self.evaluate(node) if form is None else form)
        return ""

    def _write_repeated(self, node: ast.BinOp) -> None:
        text, count = (node.left, node.right) if is_text(node.left) else (node.right, node.left)
        left, top, end = self.lasting("times"), self.out.fresh("again"), self.out.fresh("end")
        self.out.assign(left, self._early.get(count) or self.evaluate(count))
        self.out.label(top)
        self.out.sub(Z, left, end)
        self.write(text)
        self.out.sub(literal(1), left)
        self.out.jump(top)
        self.out.label(end)

    def write_value(self, value: AbstractValue, form: CellSum) -> None:
        """Write a value as print does."""
        if value.kind == "list":
            self._write_list(value, form)
        elif value.kind == "char":
            self.out.sub(self.out.held(form), PORT)
        elif value.kind == "str":
            self.pass_operands(form)
            self.routine("write_text")
        elif value.kind == "bool":
            yes, no, end = map(self.out.fresh, ("true", "false", "end"))
            self.out.jump_by_zero(form, no, yes, yes, 0, 1)
            self.out.label(yes)
            self.write_bytes(b"True")
            self.out.jump(end)
            self.out.label(no)
            self.write_bytes(b"False")
            self.out.label(end)
        else:
            self.pass_operands(form)
            self.routine("write_number")

    def _write_list(self, value: AbstractValue, form: CellSum) -> None:
        root = value.list
        form = self.out.kept(form)
        self.write_bytes(b"(" if root.is_tuple else b"[")
        self._write_items(value, form, between=", ")
        if root.is_tuple and root.low <= 1 <= root.high:  # (1,) has a comma
            one, other = self.out.fresh("yes"), self.out.fresh("no")
            length = self.code.lists.length(value, form)
            self.code.conditions.compare(ast.Eq(), length, root.count, constant(1), number(1), one, other, one)
            self.out.label(one)
            self.write_bytes(b",")
            self.out.label(other)
        self.write_bytes(b")" if root.is_tuple else b"]")

    def _write_items(self, value: AbstractValue, form: CellSum, *, before: str = "", between: str = "",
                     after: str = "") -> None:
        item = value.list.item
        assert item is not None
        out = self.out
        left, here, top, end = self.lasting("left"), *map(out.fresh, ("at", "items", "end"))
        pointer = self.out.kept(form)
        out.assign(name(here), pointer)
        out.assign(left, self.code.lists.length(value, pointer))
        out.sub(Z, left, end)
        out.label(top)
        found = self.code.lists.load_from(here, out.temporary())
        self.write_bytes(before.encode())
        self.write_value(item, found)
        self.write_bytes(after.encode())
        out.sub(literal(-1), name(here))
        out.sub(literal(1), left, end)
        self.write_bytes(between.encode())
        out.jump(top)
        out.label(end)

    def write_bytes(self, data: bytes) -> None:
        """Write a text that is known: a short one character by character."""
        if len(data) <= SHORT or 0 in data:
            for byte in data:
                self.out.sub(literal(byte), PORT)
            return
        self.out.assign(P, address(self.storage.written_text(data)))
        self.routine("write_cells")
