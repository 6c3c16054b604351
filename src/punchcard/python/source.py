"""A function as text: its tree, its lines, its parameters, what constructs and operators of Python are called in messages,
and errors that point at a place. Nothing is executed here.

    source = FunctionSource.of(function)              # of a function object
    source = FunctionSource.parsed(node, lines, ...)  # of a file that was parsed
    source.fail(node, "lambda is not in the subset", "write a function with def")
"""

from __future__ import annotations

import ast
import bisect
import builtins
import inspect
import operator
import re
import textwrap
import tokenize
import types
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import StringIO
from typing import Any, NoReturn, TypeVar

from punchcard.errors import ProgramError, did_you_mean, printable, shortened
from punchcard.python.limits import LARGE, MOST_BITS, Refusal

T = TypeVar("T")
MODULES = {"np": "import numpy as np", "pc": "import punchcard as pc", "numpy": "import numpy",
           "punchcard": "import punchcard", "math": "import math"}
"""Names of modules that a program may use, and how they are imported."""
SHOWN = 120
"""Characters of a source line that an error shows."""
NESTED = ("this is nested too deeply to be compiled", "write it in several statements, or as a loop")
"""The message for a tree that is too deep for the stack, and what to write."""
OPERATORS: Mapping[type[ast.operator], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("+", operator.add), ast.Sub: ("-", operator.sub), ast.Mult: ("*", operator.mul),
    ast.Div: ("/", operator.truediv), ast.FloorDiv: ("//", operator.floordiv), ast.Mod: ("%", operator.mod),
    ast.Pow: ("**", operator.pow), ast.MatMult: ("@", operator.matmul), ast.LShift: ("<<", operator.lshift),
    ast.RShift: (">>", operator.rshift), ast.BitAnd: ("&", operator.and_), ast.BitOr: ("|", operator.or_),
    ast.BitXor: ("^", operator.xor)}
COMPARISONS: Mapping[type[ast.cmpop], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Lt: ("<", operator.lt), ast.LtE: ("<=", operator.le), ast.Gt: (">", operator.gt), ast.GtE: (">=", operator.ge),
    ast.Eq: ("==", operator.eq), ast.NotEq: ("!=", operator.ne)}
SIGNS: Mapping[type[ast.AST], str] = {
    **{kind: sign for kind, (sign, _) in (*OPERATORS.items(), *COMPARISONS.items())},
    ast.USub: "-", ast.UAdd: "+", ast.Invert: "~", ast.Not: "not", ast.In: "in", ast.NotIn: "not in", ast.Is: "is",
    ast.IsNot: "is not"}
_NAMES: Mapping[type[ast.AST], str] = {
    ast.Lambda: "a lambda", ast.ListComp: "a list comprehension", ast.GeneratorExp: "a generator", ast.Dict: "a dictionary",
    ast.DictComp: "a dictionary comprehension", ast.Set: "a set", ast.SetComp: "a set comprehension",
    ast.NamedExpr: ":=", ast.JoinedStr: "an f-string", ast.Attribute: "an attribute", ast.Starred: "*", ast.Await: "await",
    ast.Yield: "yield", ast.YieldFrom: "yield", ast.Slice: "a slice", ast.BoolOp: "and/or as a value",
    ast.FunctionDef: "a function in a function", ast.AsyncFunctionDef: "an async function", ast.ClassDef: "class",
    ast.With: "with", ast.AsyncWith: "async with", ast.AsyncFor: "async for", ast.Try: "try", ast.TryStar: "try",
    ast.Raise: "raise", ast.Import: "import", ast.ImportFrom: "import", ast.Delete: "del", ast.Global: "global",
    ast.Nonlocal: "nonlocal", ast.Assert: "assert", ast.Match: "match"}


def name_of(node: ast.AST) -> str:
    """A construct in words: a list comprehension, `with`."""
    return _NAMES.get(type(node), type(node).__name__)


class Unsupported(ProgramError):
    """A construct of Python that a machine does not run, or that is wrong: `file:line:column: message`.

    The text of the error is one line. The source line with a caret below it is a note of the exception, which Python shows
    under a traceback; `shown` has all of it.
    """

    def __init__(self, message: str, *, file: str, line: int, column: int, text: str = "", instead: str = "") -> None:
        self.message, self.file, self.line, self.column, self.text, self.instead = message, file, line, column, text, instead
        super().__init__(f"{file}:{line}:{column}: {message}" + (f"; {instead}" if instead else ""))
        if text:
            self.add_note(self.pointed)

    @property
    def pointed(self) -> str:
        """The source line, and a caret below the place."""
        stripped = self.text.lstrip()
        first = self.column - 1 - (len(self.text) - len(stripped))
        start = 0 if first < SHOWN else first - SHOWN // 2
        shown = printable(stripped[start : start + SHOWN], instead=" ")
        return f"    {shown}\n    {' ' * max(0, first - start)}^"

    @property
    def shown(self) -> str:
        """The message, then the line and the caret."""
        return f"{self}\n{self.pointed}" if self.text else str(self)


@dataclass(frozen=True)
class UnknownValue:
    """What a name of a file means that is parsed and not executed, where that is not known; `why` follows its name."""

    why: str


class Outside(Mapping[str, object]):
    """What names outside a function mean, looked up when they are asked for: its closure, then its globals."""

    def __init__(self, function: types.FunctionType) -> None:
        self._cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        self._globals = function.__globals__

    def __getitem__(self, name: str) -> object:
        if name in self._cells:
            try:
                return self._cells[name].cell_contents
            except ValueError:
                raise KeyError(name) from None
        return self._globals[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**self._cells, **self._globals})

    def __len__(self) -> int:
        return len({**self._cells, **self._globals})


@dataclass(frozen=True)
class FunctionSource:
    """The tree of a function, and its place in its file.

    lines     the text in which the tree's line numbers count, from 1
    offset    lines of the file before the first of them;  indent  characters taken off the front of each
    names     what names outside the function mean: globals and closure of a function object; of a parsed file what its
              reader gives
    """

    node: ast.FunctionDef
    file: str
    lines: Sequence[str]
    offset: int = 0
    indent: int = 0
    names: Mapping[str, object] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, function: Callable[..., object]) -> FunctionSource:
        """The source of a function object."""
        name = getattr(function, "__name__", repr(function))
        if not inspect.isfunction(function):
            raise ProgramError(f"program: {name[:60]} is not a function: decorate a function that is written with def")
        file = inspect.getsourcefile(function) or function.__code__.co_filename
        try:
            lines, first = inspect.getsourcelines(function)
        except (OSError, TypeError):
            raise ProgramError(f"program: the source of {name!r} is not there ({file}): write the function in a file or a "
                               "notebook cell") from None
        text = textwrap.dedent("".join(lines))
        indent = len(lines[0]) - len(lines[0].lstrip())
        try:
            tree, _ = parsed(text)  # Python has warned of its text already
        except SyntaxError:
            raise ProgramError(f"program: the source of {name!r} ({file}:{first}) is not a function of its own: write it "
                               "with def") from None
        except RecursionError:
            raise nested(text, file=short_name(file), offset=first - 1, indent=indent) from None
        node = tree.body[0] if tree.body else None
        if not isinstance(node, ast.FunctionDef):
            raise ProgramError(f"program: {name!r} ({file}:{first}) is not written with def: a lambda or an async function "
                               "cannot be compiled")
        made = cls(node, short_name(file), tuple(lines_of(text)), first - 1, indent, Outside(function))
        check_integers(node, made.error)
        return made

    @classmethod
    def parsed(cls, node: ast.FunctionDef, file: str, lines: Sequence[str], names: Mapping[str, object]) -> FunctionSource:
        """A function of a parsed file, whose lines are those of the whole file."""
        return cls(node, short_name(file), lines, names=names)

    @property
    def name(self) -> str:
        return self.node.name

    def line(self, node: ast.AST) -> int:
        """The line of the file in which something begins."""
        return int(getattr(node, "lineno", self.node.lineno)) + self.offset

    def text(self, node: ast.AST) -> str:
        """The first line of something, as it is written."""
        number = int(getattr(node, "lineno", self.node.lineno))
        return self.lines[number - 1].strip() if 0 < number <= len(self.lines) else ""

    def error(self, node: ast.AST, message: str, instead: str = "") -> Unsupported:
        """An error at a node; `instead` says what to write."""
        return error_at(node if hasattr(node, "lineno") else self.node, message, instead, file=self.file, lines=self.lines,
                        offset=self.offset, indent=self.indent)

    def fail(self, node: ast.AST, message: str, instead: str = "") -> NoReturn:
        raise self.error(node, message, instead)

    @contextmanager
    def refusing(self, node: ast.AST) -> Iterator[None]:
        """What is refused is refused at a node. So is what is nested too deeply, where the stack has room to say so."""
        try:
            yield
        except Refusal as refusal:
            self.fail(node, refusal.message, refusal.instead)
        except RecursionError:
            raise self.error(node, *NESTED) from None

    def unknown(self, node: ast.Name, known: Sequence[str] = ()) -> Unsupported:
        """The error for a name that nothing defines."""
        if node.id in MODULES:
            return self.error(node, f"unknown name {node.id!r}", f"write `{MODULES[node.id]}` at the top of the file")
        return self.error(node, f"unknown name {node.id!r}{did_you_mean(node.id, [*known, *self.names])}")

    def check_owner(self, node: ast.expr, known: Sequence[str] = ()) -> None:
        """Refuse an attribute of a name that nothing defines, such as a module that is not imported."""
        owner = node
        while isinstance(owner, ast.Attribute):
            owner = owner.value
        if isinstance(owner, ast.Name) and owner.id not in {*known, *self.names, *dir(builtins)}:
            raise self.unknown(owner, known)

    def outside(self, node: ast.Name, known: Sequence[str] = ()) -> object:
        """What a name means outside the function."""
        if node.id not in self.names:
            raise self.unknown(node, known)
        found = self.names[node.id]
        if isinstance(found, UnknownValue):
            self.fail(node, f"{node.id!r} {found.why}", "write a constant, or give it as an argument")
        return found



def error_at(node: ast.AST, message: str, instead: str = "", *, file: str, lines: Sequence[str], offset: int = 0,
             indent: int = 0) -> Unsupported:
    """An error at a node of a text, whose lines were taken out of a file: see `FunctionSource`."""
    number = int(getattr(node, "lineno", 1))
    text = lines[number - 1] if 0 < number <= len(lines) else ""
    before = text.encode()[: int(getattr(node, "col_offset", 0))].decode(errors="replace")  # columns count bytes
    return Unsupported(message, file=file, line=number + offset, column=len(before) + 1 + indent, text=" " * indent + text,
                       instead=instead)


def nested(text: str, *, file: str, offset: int = 0, indent: int = 0) -> Unsupported:
    """The error for a text whose tree is too deep for Python. It is at the first line with which the tree is too deep."""
    lines, places, begun = lines_of(text), list[tuple[int, int]](), 0
    for token in tokenize.generate_tokens(StringIO("\n".join(lines)).readline):
        if token.type == tokenize.NEWLINE:
            places.append((begun, token.end[0]))
            begun = 0
        elif not begun and token.type not in (tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT):
            begun = token.start[0]
    found = bisect.bisect_left(places, True, key=lambda place: _is_nested("\n".join(lines[: place[1]])))
    place = ast.Pass(lineno=places[min(found, len(places) - 1)][0], col_offset=0)
    return error_at(place, *NESTED, file=file, lines=lines, offset=offset, indent=indent)


def _is_nested(text: str) -> bool:
    """Whether the tree of a text is too deep for Python. There is none of a text that ends too early."""
    try:
        parsed(text)
    except (RecursionError, SyntaxError) as error:
        return isinstance(error, RecursionError)
    return False


# Parameters, and which argument each of them gets, by Python's rules and in its words


def parameters_of(source: FunctionSource) -> list[ast.arg]:
    """The parameters in their order; * and ** are refused."""
    arguments = source.node.args
    for many in (arguments.vararg, arguments.kwarg):
        if many is not None:
            source.fail(many, "* and ** parameters are not in the subset", "name every parameter")
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]


def defaults_of(source: FunctionSource) -> dict[str, ast.expr]:
    """The expressions of the default values by parameter."""
    arguments = source.node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    behind = positional[len(positional) - len(arguments.defaults):]
    return {parameter.arg: node for parameter, node in (
        *zip(behind, arguments.defaults, strict=True), *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ) if node is not None}


def bind_arguments(source: FunctionSource, given: Sequence[T], named: Mapping[str, T], optional: Collection[str],
         refuse: Callable[[str], NoReturn]) -> dict[str, T]:
    """Arguments by parameter, in the order of the parameters. Optional ones may be missing."""
    names = [parameter.arg for parameter in parameters_of(source)]
    positional = len(names) - len(source.node.args.kwonlyargs)
    if len(given) > positional:
        refuse(f"{source.name}() takes {positional} positional argument{'s' * (positional != 1)} but {len(given)} "
               f"{'was' if len(given) == 1 else 'were'} given")
    found = dict(zip(names, given, strict=False))
    for name, value in named.items():
        if name not in names:
            refuse(f"{source.name}() got an unexpected keyword argument {name!r}{did_you_mean(name, names)}")
        if name in found:
            refuse(f"{source.name}() got multiple values for argument {name!r}")
        found[name] = value
    if missing := [repr(name) for name in names if name not in found and name not in optional]:
        refuse(f"{source.name}() missing {len(missing)} required argument{'s' * (len(missing) != 1)}: "
               f"{' and '.join(filter(None, [', '.join(missing[:-1]), missing[-1]]))}")
    return {name: found[name] for name in names if name in found}


def parsed(text: str) -> tuple[ast.Module, list[warnings.WarningMessage]]:
    """The tree of a text, and what Python's parser warns of in it, which it would print without the file's name."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        return ast.parse(text), said


def check_integers(tree: ast.AST, error: Callable[[ast.AST, str, str], Unsupported]) -> None:
    """Refuse integers that are too large for every machine: no message could even repeat them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and type(node.value) is int and node.value.bit_length() > MOST_BITS:
            raise error(node, f"{shortened(node.value)}: {LARGE}", "use a smaller one")


def literal_value(written: str | ast.expr, otherwise: object = None) -> object:
    """The value of something that is written out, such as -3 or [1, 2], or `otherwise` if it is computed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.literal_eval(written)
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return otherwise


def lines_of(text: str) -> list[str]:
    """Lines as Python counts them: a form feed, and other characters that str.splitlines knows, begin none."""
    return re.split(r"\r\n|\r|\n", text)


def short_name(file: str) -> str:
    """The file's own name: an error is read beside its source."""
    return file.replace("\\", "/").rsplit("/", 1)[-1]
