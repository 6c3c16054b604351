"""The functions of a program: the one that is asked for, those that it calls, and which of them call themselves."""

from __future__ import annotations

import ast
import builtins
import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, TypeGuard

from punchcard.python.integers.values import AbstractValue
from punchcard.python.source import FunctionSource, defaults_of, literal_value, parameters_of

Constant: TypeAlias = bool | int | str | Sequence["Constant"]
"""A value from outside the functions: a number, a text, or a list or tuple of them."""
BUILT_IN = ("print", "input", "int", "bool", "str", "len", "abs", "min", "max", "sum", "divmod", "ord", "chr", "range",
            "enumerate", "zip", "pow")

SPECIAL = ("range", "enumerate", "zip", "str", "divmod")
"""Functions that are more than a call, such as the head of a loop: they mean what is built in."""

RESERVED = frozenset("""
abs again allocate and at best better both checked chr contains decided depth digit digits divide divisor done else end
error f failed false fill fine for go heap high hit holds index items list low message multiply next no none not or order
out parse pool positive power read return reversed same shift shorter some stack test text then too true while write written
yes zero
""".split())
"""First parts of labels that the compiler makes; functions that are called so get another label."""


@dataclass(eq=False)
class IntegerFunction:
    """A function of the program, and what the analysis knows of it."""

    source: FunctionSource
    name: str
    parameters: list[str]
    defaults: Mapping[str, ast.expr]
    texts: set[str]
    locals: set[str]
    given: dict[str, AbstractValue] = field(default_factory=dict)
    result: AbstractValue | None = None
    calls: set[IntegerFunction] = field(default_factory=set)
    recursive: bool = False
    updates: int = 0

    written_defaults: dict[str, ast.Constant] = field(default_factory=dict)

    @property
    def node(self) -> ast.FunctionDef:
        return self.source.node

    def reached(self) -> set[IntegerFunction]:
        """The functions that it calls, and those that they call."""
        found: set[IntegerFunction] = set()
        ahead = list(self.calls)
        while ahead:
            other = ahead.pop()
            if other not in found:
                found.add(other)
                ahead += other.calls
        return found

    def default(self, name: str) -> ast.Constant:
        """A default as the constant that it is; a name may hold something else by now, so it must be written out."""
        if name not in self.written_defaults:
            node = self.defaults[name]
            value = literal_value(node)
            if not isinstance(value, int | str):
                self.source.fail(node, "a default must be a number or a text", "write it out, such as n=-1")
            self.written_defaults[name] = ast.copy_location(ast.Constant(value), node)
        return self.written_defaults[name]


class ProgramFunctions:
    """Functions by what names mean: a name in a function is looked up in that function's own surroundings."""

    def __init__(self) -> None:
        self._found: dict[ast.FunctionDef, IntegerFunction] = {}
        self._of_objects: dict[int, FunctionSource] = {}
        self.labels: set[str] = set()

    def add(self, source: FunctionSource) -> IntegerFunction:
        if source.node not in self._found:
            self._found[source.node] = _made(source, self._unused(source.name))
        return self._found[source.node]

    def __iter__(self) -> Iterator[IntegerFunction]:
        return iter(list(self._found.values()))

    def called(self, function: IntegerFunction, call: ast.Call) -> IntegerFunction | None:
        """The function of the program that a call is of; None where it is built in."""
        if not isinstance(call.func, ast.Name):
            function.source.check_owner(call.func, sorted(function.locals))
            function.source.fail(call, f"{ast.unparse(call.func)}(...) is not in the integer subset",
                                 f"the functions are those of the file and {', '.join(BUILT_IN)}")
        name = call.func.id
        if name in function.locals:
            function.source.fail(call, f"{name!r} is a variable here, and cannot be called")
        found = function.source.names.get(name)
        if name == function.source.name and not isinstance(found, FunctionSource):
            return function
        plain = getattr(found, "__wrapped__", found)
        if name in SPECIAL and (isinstance(found, FunctionSource) or inspect.isfunction(plain)):
            function.source.fail(call, f"{name}() is built in, and cannot mean another function here", "call it otherwise")
        if isinstance(found, FunctionSource):
            return self.add(found)
        if inspect.isfunction(plain):
            if id(plain) not in self._of_objects:
                self._of_objects[id(plain)] = FunctionSource.of(plain)
            return self.add(self._of_objects[id(plain)])
        if name in BUILT_IN and (found is None or found is getattr(builtins, name)):
            return None
        if found is not None:
            function.source.fail(call, f"{name!r} is not a function written in Python that can be compiled")
        raise function.source.unknown(call.func, BUILT_IN)

    def _unused(self, name: str) -> str:
        plain = name if name.isascii() else "function"
        if plain.partition("_")[0].rstrip("0123456789") in RESERVED:
            plain = "f_" + plain
        count = 2
        chosen = plain
        while chosen in self.labels:
            chosen, count = f"{plain}{count}", count + 1
        self.labels.add(chosen)
        return chosen

    def mark_recursive(self) -> None:
        """Functions that may be called again while they run."""
        for function in self:
            function.recursive = function in function.reached()


def _made(source: FunctionSource, name: str) -> IntegerFunction:
    given = parameters_of(source)
    if source.node.args.kwonlyargs:
        source.fail(source.node, "keyword-only parameters are not in the integer subset", "take the * away")
    parameters = [parameter.arg for parameter in given]
    texts = {p.arg for p in given if p.annotation is not None and ast.unparse(p.annotation) == "str"}
    return IntegerFunction(source, name, parameters, defaults_of(source), texts | _texts(source.node),
                    {*parameters, *_assigned(source)})


def _assigned(source: FunctionSource) -> set[str]:
    found = set()
    for node in ast.walk(source.node):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda) and node is not source.node:
            what = "a lambda" if isinstance(node, ast.Lambda) else "a definition inside a function"
            source.fail(node, f"{what} is not in the integer subset", "write a function of its own beside this one")
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
            found.add(node.id)
    return found


def _texts(node: ast.FunctionDef) -> set[str]:
    """Variables that hold a whole str at some place, so that a single character in them is one too."""
    found = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.Assign) and _is_text(inner.value):
            found |= {target.id for target in inner.targets if isinstance(target, ast.Name)}
        if isinstance(inner, ast.AnnAssign) and isinstance(inner.target, ast.Name) and (
                ast.unparse(inner.annotation) == "str"):
            found.add(inner.target.id)
    return found


def _is_text(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and len(node.value) != 1
    if isinstance(node, ast.IfExp):
        return _is_text(node.body) or _is_text(node.orelse)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id == "input"
    return isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice)


def constant_of(value: object) -> TypeGuard[Constant]:
    """Whether a value outside the functions is one that a program can use: numbers, texts, lists and tuples of them."""
    if isinstance(value, bool | int | str):
        return True
    return isinstance(value, list | tuple) and len(value) > 0 and all(constant_of(item) for item in value)


# Texts that print puts together, as the form of an expression shows

def is_text(node: ast.expr) -> bool:
    """Whether an expression puts a text together."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str)
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Add | ast.Mult) and (is_text(node.left) or is_text(node.right))
    return isinstance(node, ast.JoinedStr) or is_call(node, "str")


def parts_of(node: ast.expr) -> list[ast.expr] | None:
    """What is written one after the other for an expression that puts a text together; None for a value of its own."""
    if isinstance(node, ast.JoinedStr):
        return node.values
    if isinstance(node, ast.FormattedValue):
        return [node.value]
    if is_call(node, "str") and len(node.args) == 1 and not node.keywords:
        return node.args
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and is_text(node):
        return [node.left, node.right]
    return None


def pieces_of(node: ast.expr) -> list[ast.expr]:
    """The values of which a text is put together."""
    if isinstance(node, ast.Starred):
        return [node.value]
    parts = [node.left, node.right] if isinstance(node, ast.BinOp) and is_text(node) else parts_of(node)
    return [node] if parts is None else [piece for part in parts for piece in pieces_of(part)]


def is_call(node: ast.expr, *names: str) -> TypeGuard[ast.Call]:
    """Whether an expression is a call of one of these names."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names


