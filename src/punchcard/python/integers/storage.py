"""What the program stores beside its code: cells of variables, texts, lists and messages of errors, and their labels."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from punchcard.machines.von_neumann.languages.asq import items as asq
from punchcard.machines.von_neumann.languages.asq.items import Expression, Item
from punchcard.python.integers.assembly import CellSum, address, constant
from punchcard.python.integers.functions import Constant, IntegerFunction, ProgramFunctions


class Storage:
    """Labels, cells and data of a program.

    needed    the routines that it uses;  data    the objects in the image
    cells     the labels of variables and results
    """

    def __init__(self, functions: ProgramFunctions) -> None:
        self.needed: dict[str, None] = {}
        self.data: list[list[Item]] = []
        self.messages: dict[str, str] = {}
        self._function_labels = functions.labels
        self._taken: set[str] = {label + end for label in functions.labels for end in ("", "_back")}
        self._errors: dict[tuple[str, str], str] = {}
        self.cells: dict[tuple[IntegerFunction, str], str] = {}
        self._texts: dict[str, str] = {}
        self._lists: dict[int, str] = {}
        self._written: dict[bytes, str] = {}

    def need(self, routine: str) -> None:
        self.needed[routine] = None

    # Labels and cells

    def unused(self, wanted: str) -> str:
        """A label that nothing else has."""
        chosen, count = wanted, 2
        while chosen in self._taken or self._is_temporary(chosen):
            chosen = f"{wanted}_{count}"
            if self._is_temporary(chosen):
                chosen = f"{wanted}_n{count}"
            count += 1
        self._taken.add(chosen)
        return chosen

    def _is_temporary(self, label: str) -> bool:
        """Whether a label may be that of a temporary cell: of a function `f` these are `f_1`, `f_2` and so on."""
        front, _, digits = label.rpartition("_")
        return digits.isdigit() and front in self._function_labels

    def label_of(self, function: IntegerFunction, variable: str) -> str:
        plain = variable if variable.isascii() else "v" + "".join(f"{ord(c):x}" for c in variable)
        return self._cell(function, variable, plain)

    def result_label(self, function: IntegerFunction, index: int = 0) -> str:
        """The label of a result's cell: no variable can have the name of its key."""
        return self._cell(function, f"return {index}", f"result{index or ''}")

    def _cell(self, function: IntegerFunction, key: str, wanted: str) -> str:
        if (function, key) not in self.cells:
            self.cells[function, key] = self.unused(f"{function.name}_{wanted}")
        return self.cells[function, key]

    def cell_of(self, function: IntegerFunction, variable: str) -> Expression:
        return asq.name(self.label_of(function, variable))

    def result_cell(self, function: IntegerFunction, index: int = 0) -> Expression:
        return asq.name(self.result_label(function, index))

    # Objects: a text or a list has its length in the cell before it

    def add_object(self, wanted: str, length: int, items: Sequence[Item]) -> str:
        """An object in the image; its label."""
        label = self.unused(wanted)
        first: list[Item] = [asq.Cell(asq.number(length), asq.MADE), asq.Label(asq.MADE, label)]
        self.data.append([*first, *(items or [asq.Cell(asq.number(0), asq.MADE)])])
        return label

    def text_object(self, text: str) -> str:
        if text not in self._texts:
            self._texts[text] = self.add_object("text", len(text), [_run(text.encode())] if text else [])
        return self._texts[text]

    def list_object(self, items: Sequence[Constant]) -> str:
        whole = any(isinstance(item, str) and len(item) != 1 for item in items)
        values = [address(self.text_object(item)) if whole and isinstance(item, str) else self.constant(item)
                  for item in items]
        return self.add_object("list", len(items), [asq.Cell(value.constant_part(), asq.MADE) for value in values])

    def constant(self, value: Constant) -> CellSum:
        """A constant of the source: a list that occurs in two places is one list."""
        if isinstance(value, str):
            return constant(ord(value)) if len(value) == 1 else address(self.text_object(value))
        if isinstance(value, int):
            return constant(int(value))
        if id(value) not in self._lists:
            self._lists[id(value)] = self.list_object(value)
        return address(self._lists[id(value)])

    def written_text(self, data: bytes) -> str:
        """The label of bytes that are only written, up to a 0 behind them."""
        if data not in self._written:
            label = self._written[data] = self.unused("written")
            self.data.append([asq.Label(asq.MADE, label), _run(data), asq.Cell(asq.number(0), asq.MADE)])
        return self._written[data]

    # Errors

    def error_message(self, function: IntegerFunction, node: ast.AST, message: str) -> str:
        """The label of an error's text."""
        self.need("failed")
        where = f"{function.source.file}:{function.source.line(node)}"
        if (where, message) not in self._errors:
            label = self._errors[where, message] = self.unused("message")
            self.messages[label] = f"{where}: {message}"
        return self._errors[where, message]


def message_items(label: str, message: str) -> list[Item]:
    """The text of an error, on a separate line, with a 0 behind it."""
    return [asq.Label(asq.MADE, label), _run(b"\n" + message.encode() + b"\n"), asq.Cell(asq.number(0), asq.MADE)]


def _run(codes: bytes) -> asq.CellRun:
    return asq.CellRun(asq.MADE, len(codes), codes)
