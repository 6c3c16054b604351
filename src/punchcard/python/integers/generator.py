"""What all parts of the code generator share: cells of variables, routines that are used, data, errors, forms of nodes."""

from __future__ import annotations

import ast
from abc import ABC
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NoReturn

from punchcard.python.integers.analysis import Analysis
from punchcard.python.integers.forms import Form, address, cell, constant
from punchcard.python.integers.functions import Function
from punchcard.python.integers.values import Value
from punchcard.python.integers.writer import Writer
from punchcard.python.intervals import binary

GENERAL = {"no_room": "MemoryError: the memory is full", "no_input": "EOFError: the input has ended",
           "too_deep": "RecursionError: the stack is full",
           "not_ascii": "UnicodeError: the input has a character that is not ASCII"}
"""Errors of routines that serve many places."""
LINEAR = (ast.Add, ast.Sub, ast.USub, ast.UAdd, ast.Invert)


class Generator(Writer, ABC):
    """The text of a program in the making."""

    def __init__(self, analysis: Analysis, word_bits: int) -> None:
        super().__init__(word_bits)
        self.analysis, self.values, self.check = analysis, analysis.values, analysis.check
        self.word = analysis.word
        self.needed: dict[str, None] = {}
        self.data: list[str] = []
        self.error_texts: dict[str, str] = {}
        self._errors: dict[tuple[str, str], str] = {}
        self._cells: dict[tuple[Function, str], str] = {}
        self._taken: set[str] = {name + end for name in analysis.functions.labels for end in ("", "_back")}
        self._texts: dict[str, str] = {}
        self._lists: dict[int, str] = {}
        self.hidden: list[dict[str, str]] = []
        self.fixed: dict[str, Form] = {}
        self.loop_cells: list[str] = []
        self.loop_nodes: list[ast.AST] = []
        self.function: Function
        self.once = False
        self.statement: ast.AST
        self.early: dict[ast.AST, Form] = {}
        self.quotients = constant(0), constant(0)
        self.written_texts: dict[bytes, str] = {}

    def fail(self, node: ast.AST, message: str, instead: str = "") -> NoReturn:
        self.function.source.fail(node, message, instead)

    def need(self, routine: str) -> None:
        self.needed[routine] = None

    def routine(self, name: str) -> None:
        """Call a routine, which is then part of the program."""
        self.need(name)
        self.call(name)

    # Cells

    def variable(self, name: str) -> str:
        for names in reversed(self.hidden):
            if name in names:
                return names[name]
        return self.cell_of(self.function, name)

    def cell_of(self, function: Function, name: str) -> str:
        key = function, name
        if key not in self._cells:
            plain = name if name.isascii() else "v" + "".join(f"{ord(c):x}" for c in name)
            self._cells[key] = self.unused(f"{function.name}_{plain}")
        return self._cells[key]

    def variables(self) -> Iterator[tuple[Function, str, str]]:
        for (function, name), place in self._cells.items():
            yield function, name, place

    def unused(self, name: str) -> str:
        chosen, count = name, 2
        while chosen in self._taken or self._is_temporary(chosen):
            chosen = f"{name}_{count}"
            if self._is_temporary(chosen):
                chosen = f"{name}_n{count}"
            count += 1
        self._taken.add(chosen)
        return chosen

    def _is_temporary(self, name: str) -> bool:
        """Whether a name may be that of a temporary cell: of a function `f` these are `f_1`, `f_2` and so on."""
        front, _, number = name.rpartition("_")
        return number.isdigit() and front in self.analysis.functions.labels

    def result_cell(self, function: Function, index: int = 0) -> str:
        """A result has a cell of its own: no variable can have the name of its key."""
        key = function, f"return {index}"
        if key not in self._cells:
            self._cells[key] = self.unused(f"{function.name}_result{index or ''}")
        return self._cells[key]

    def lasting(self, what: str) -> str:
        """A cell that lasts as long as a loop."""
        return "$" + self.unused(f"{self.prefix}_{what}")

    @contextmanager
    def lived(self, *cells: str) -> Iterator[None]:
        """Cells of a loop, which a call of the function itself must leave as they are."""
        self.loop_cells += cells
        try:
            yield
        finally:
            del self.loop_cells[len(self.loop_cells) - len(cells):]

    # Data

    def text_object(self, text: str) -> str:
        """The label of a text in the data, its length before it."""
        if text not in self._texts:
            self._texts[text] = self.unused("text")
            self.data.append(f". {len(text)} {self._texts[text]}:{characters(text.encode())}".rstrip()
                             if text else f". 0 {self._texts[text]}:0")
        return self._texts[text]

    def list_object(self, items: Sequence[Any]) -> str:
        """The label of a list in the data, its length before it."""
        whole = any(isinstance(item, str) and len(item) != 1 for item in items)
        shown = " ".join(f"({self._datum(item, whole)})" for item in items)
        label = self.unused("list")
        self.data.append(f". {len(items)} {label}:{shown or 0}")
        return label

    def _datum(self, item: Any, whole: bool) -> str:
        if isinstance(item, str):
            return self.text_object(item) if whole else str(ord(item))
        if isinstance(item, list | tuple):
            return self.outside(item).constant_sum()  # the same list in two places is one list
        return str(int(item))

    def outside(self, value: Any) -> Form:
        """A constant from outside the functions."""
        if isinstance(value, str):
            return constant(ord(value)) if len(value) == 1 else address(self.text_object(value))
        if isinstance(value, list | tuple):
            if id(value) not in self._lists:
                self._lists[id(value)] = self.list_object(value)
            return address(self._lists[id(value)])
        return constant(int(value))

    # Errors

    def error(self, node: ast.AST, message: str) -> str:
        """The label of an error at a place; what leads there is written at the end."""
        self.need("failed")
        return "error_" + self.error_text(node, message)

    def error_text(self, node: ast.AST, message: str) -> str:
        source = self.function.source
        where = f"{source.file}:{source.line(node)}"
        key = where, message
        if key not in self._errors:
            self._errors[key] = self.unused("message")
            self.error_texts[self._errors[key]] = f"{where}: {message}"
        return self._errors[key]

    def set_error(self, node: ast.AST, message: str) -> None:
        """Say what is written if the routine that is called next goes wrong."""
        self.need("failed")
        self.assign("$error", address(self.error_text(node, message)))

    # Values

    def value(self, node: ast.AST) -> Value:
        return self.values.get(node) or Value("int", 0, 0)

    def fits(self, op: ast.operator, left: Value, right: Value) -> bool:
        """Whether the result of an operation is a word, whatever the values are."""
        found = binary(op, left.interval, right.interval, self.word)
        return found is not None and found in self.word

    def is_plain(self, node: ast.AST) -> bool:
        """Whether an expression has no effect but its value: it cannot fail, print or call."""
        if isinstance(node, ast.Name | ast.Constant):
            return True
        if isinstance(node, ast.BinOp):
            right = self.value(node.right)
            good = True
            if isinstance(node.op, ast.FloorDiv | ast.Mod):
                good = not right.low <= 0 <= right.high
            elif isinstance(node.op, ast.LShift | ast.RShift | ast.Pow):
                good = right.low >= 0
            whole = not self.check or self.fits(node.op, self.value(node.left), self.value(node.right))
            return good and whole and self.is_plain(node.left) and self.is_plain(node.right)
        if isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant):
            return True
        if isinstance(node, ast.UnaryOp):
            return self.is_plain(node.operand) and (not self.check or self.value(node.operand).low > self.word.low)
        if isinstance(node, ast.Compare):
            return all(map(self.is_plain, (node.left, *node.comparators)))
        return isinstance(node, ast.BoolOp) and all(map(self.is_plain, node.values))

    def is_busy(self, node: ast.AST) -> bool:
        """Whether computing an expression may use cells of routines, or change items of lists."""
        if self.value(node).constant is not None and self.is_plain(node):
            return False
        if isinstance(node, ast.Name | ast.Constant):
            return False
        if isinstance(node, ast.BinOp) and isinstance(node.op, LINEAR):
            return self.is_busy(node.left) or self.is_busy(node.right)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, LINEAR):
            return self.is_busy(node.operand)
        return True

    def form(self, node: ast.expr) -> Form:
        """The value of an expression, computed as far as it must be."""
        value = self.values.get(node)
        if value is None:
            return constant(0)  # nothing leads here
        if value.constant is not None and self.is_plain(node):
            return constant(value.constant)
        found: Form = getattr(self, "_" + type(node).__name__)(node)
        return self.as_word(found)

    def as_word(self, form: Form) -> Form:
        """A constant sum as the word that it is."""
        return form if form.known is None else constant(self.wrapped(form.known))

    def forms(self, nodes: Sequence[ast.expr]) -> list[Form]:
        """Several values, each kept while the next ones are computed."""
        found = []
        for at, node in enumerate(nodes):
            form = self.form(node)
            if form.passing and any(map(self.is_busy, nodes[at + 1 :])):
                form = self.kept(form)
            found.append(form)
        return found

    def kept(self, form: Form) -> Form:
        """The same value in a cell that nothing else uses."""
        return form if form.is_constant else cell(self.own(form))

    def steady(self, form: Form) -> Form:
        return self.kept(form) if form.passing else replace(form, passing=False)


def characters(data: bytes) -> str:
    """Bytes as cells of a data line: texts where they can be, numbers where not."""
    parts: list[str] = []
    for byte in data:
        char = chr(byte)
        safe = 32 <= byte < 127 and char not in '"\\'
        written = char if safe else {"\n": "\\n", '"': '\\"', "\\": "\\\\"}.get(char)
        if written is None:
            parts.append(str(byte))
        elif parts and parts[-1].startswith('"'):
            parts[-1] = parts[-1][:-1] + written + '"'
        else:
            parts.append(f'"{written}"')
    return " ".join(parts)
