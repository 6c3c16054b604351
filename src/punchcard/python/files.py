"""What a `.py` file holds: its functions, its constants, and which function is to run. It is parsed, never executed.

    punchcard run prog.py                        main(), or the one decorated function without parameters
    punchcard run prog.py --call gcd 1071 462    a function with arguments
"""

from __future__ import annotations

import ast
import re
import shlex
import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from importlib import import_module
from typing import TYPE_CHECKING

from punchcard.errors import ProgramError, PunchcardError, did_you_mean, printable, shortened
from punchcard.lazy import import_name
from punchcard.python.limits import ITEM, LARGE, Limits, Refusal
from punchcard.python.program import HOMES, machine_for, of_source
from punchcard.python.source import (
    OPERATORS,
    FunctionSource,
    UnknownValue,
    Unsupported,
    check_integers,
    error_at,
    lines_of,
    literal_value,
    nested,
    parsed,
    short_name,
)

if TYPE_CHECKING:
    from punchcard.machines.fleq.isa import FleqProgram
    from punchcard.machines.von_neumann.isa import Image
    from punchcard.python.arrays.program import ArrayProgram
    from punchcard.python.integers.program import IntegerProgram

KNOWN_MODULES = ("numpy", "punchcard", "punchcard.arrays", "math")
MOST_TEXT = 1 << 20
NAME = "program.py"
"""What a text without a file is called."""


@dataclass(frozen=True)
class EntryPoint:
    """The function that is to run: its source, its arguments, and the options of its decorator."""

    source: FunctionSource
    arguments: list[object]
    options: Mapping[str, object]

    @property
    def machine(self) -> str:
        """The kind of machine that it is for."""
        return str(self.options.get("machine") or machine_for(self.source))


def assemble(
    text: str, source: str = "", *, call: str | None = None, check_overflow: bool | None = None,
    word_bits: int | None = None, memory: int | None = None,
) -> Image:
    """The program of a file with functions of integers. It writes what the function returns."""
    entry = find_entry(text, source, call)
    if entry.machine != "von-neumann":
        raise ProgramError(f"{source}: {entry.source.name}() is a function of arrays: it runs on a FLEQ machine")
    sizes = {"word_bits": word_bits, "memory": memory, "check": check_overflow}
    own = {name: value for name, value in entry.options.items() if name != "machine"}
    made: IntegerProgram = of_source(entry.source, None, "von-neumann",
                                     **{**own, **{name: value for name, value in sizes.items() if value is not None}})
    code = made.compiled_with_output(*entry.arguments)
    return replace(code.program, source=source, word_bits=code.word_bits, memory=code.memory, listing=code.listing)


def assemble_arrays(text: str, source: str = "", *, call: str | None = None) -> FleqProgram:
    """The program of a file with functions of arrays."""
    entry = find_entry(text, source, call)
    own = {name: value for name, value in entry.options.items() if name != "machine"}
    made: ArrayProgram = of_source(entry.source, None, "fleq", **own)
    return made.program_with_lines(*(_array(argument) for argument in entry.arguments))


def is_for_integers(text: str, source: str = "", *, call: str | None = None, **others: object) -> bool:
    """Whether the function that is to run is one of integers, if the text shows it."""
    return not is_for_arrays(text, source, call=call)


def is_for_arrays(text: str, source: str = "", *, call: str | None = None, **others: object) -> bool:
    """Whether it is one of arrays."""
    try:
        return find_entry(text, source, call).machine == "fleq"
    except ProgramError:
        return False  # the error is the other reader's to say


def find_entry(text: str, source: str, call: str | None) -> EntryPoint:
    """The function of a file that is to run."""
    file = read(text, source)
    if call is None:
        found = file.default()
        return EntryPoint(found, [], file.decorated.get(found.name) or {})
    name, arguments = split_call(call)
    if name not in file.functions:
        file.check_read(name)
        raise ProgramError(f"{source}: there is no function {shortened(name)}{did_you_mean(name, file.functions)}: the file "
                           f"has {', '.join(list(file.functions)[:20]) or 'none'}")
    return EntryPoint(file.functions[name], arguments, file.decorated.get(name) or {})


def split_call(call: str) -> tuple[str, list[object]]:
    """A name and arguments, of `gcd 1071 462` or of `gcd(1071, 462)`; a word that is not a constant is a text."""
    if re.fullmatch(r"\s*\w+\s*\(.*\)\s*", call, re.DOTALL):
        name, _, rest = call.strip().partition("(")
        found = literal_value(f"[{rest[:-1]}]")
        if not isinstance(found, list):
            raise ProgramError(f"call={shortened(call)}: write a name and constants, such as gcd(1071, 462)")
        return name.strip(), found
    try:
        words = shlex.split(call)
    except ValueError:
        words = []
    if not words:
        raise ProgramError(f"call={shortened(call)}: write a name and constants, such as gcd 1071 462")
    return words[0], [literal_value(word, word) for word in words[1:]]


def _array(argument: object) -> object:
    """An argument of a function of arrays: the text `4 1 ; 2 3` is a matrix, as in `--set`."""
    if not isinstance(argument, str) or not re.fullmatch(r"[-+.,;\s\deE]*\d[-+.,;\s\deE]*", argument):
        return argument
    try:
        rows = [[float(entry) for entry in row.replace(",", " ").split()] for row in argument.split(";")]
    except ValueError:
        return argument
    return rows if len(rows) > 1 else rows[0]


class PythonFile:
    """The functions and constants of a file."""

    def __init__(self, tree: ast.Module, source: str, lines: list[str]) -> None:
        self.source = source
        self.limits = Limits()
        self.names: dict[str, object] = {}
        self.functions: dict[str, FunctionSource] = {}
        self.decorated: dict[str, dict[str, object]] = {}
        self.unread: dict[str, ast.AST] = {}
        self.lines = lines
        for node in tree.body:
            if isinstance(node, ast.FunctionDef):
                found = FunctionSource.parsed(node, source or NAME, lines, self.names)
                self.functions[node.name] = self.names[node.name] = found
                self._decorators(node, found)
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                self._constants(node)
            elif isinstance(node, ast.Import | ast.ImportFrom):
                self._imports(node)
            elif not _is_main_guard(node):
                self._forget(node)

    def _forget(self, node: ast.AST) -> None:
        """Names that something which is not executed would change: they are constants no longer."""
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name):
                old = self.names.get(inner.id)
                if not isinstance(inner.ctx, ast.Load):
                    self._lose(inner.id)
                elif isinstance(old, list):  # a list may be changed under each of its names
                    for name in self._holders(old):
                        self._lose(name)
            elif isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                self._lose(inner.name)
                self.unread[inner.name] = inner
            elif isinstance(inner, ast.alias):
                name = (inner.asname or inner.name).partition(".")[0]
                self._lose(name)
                del self.names[name]  # as it is where nothing was called so

    def _holders(self, items: list[object]) -> list[str]:
        """The names of a list, and of what has it inside; those of all lists where that takes too much work to find out."""
        try:
            self.limits.spend(len(self.names))
            found = {id(items): True}
            return [name for name, value in self.names.items() if self._holds(value, found)]
        except Refusal:
            return [name for name, value in self.names.items() if isinstance(value, list | tuple)]

    def _holds(self, value: object, found: dict[int, bool]) -> bool:
        """Whether a value has one of the lists inside that were found; each list is looked through once."""
        if not isinstance(value, list | tuple):
            return False
        if id(value) not in found:
            self.limits.spend(ITEM * (1 + len(value)))
            found[id(value)] = any(self._holds(each, found) for each in value)
        return found[id(value)]

    def _lose(self, name: str) -> None:
        self.names[name] = EXECUTED
        self.functions.pop(name, None)
        self.decorated.pop(name, None)

    def _imports(self, node: ast.Import | ast.ImportFrom) -> None:
        """NumPy and Punchcard, whose functions a program may call; no other module is imported."""
        for alias in node.names:
            module = alias.name if isinstance(node, ast.Import) else node.module
            if module not in KNOWN_MODULES:
                self._forget(alias)
                continue
            imported = import_module(module)
            if isinstance(node, ast.Import):
                package = alias.name.partition(".")[0]  # the name that `import a.b` gives
                self.names[alias.asname or package] = imported if alias.asname else import_module(package)
            elif hasattr(imported, alias.name):
                self.names[alias.asname or alias.name] = getattr(imported, alias.name)

    def default(self) -> FunctionSource:
        """main(), or the one decorated function without parameters."""
        if "main" in self.functions:
            return self.functions["main"]
        self.check_read("main")
        ready = [name for name in self.decorated if not _required(self.functions[name])]
        if len(ready) == 1:
            return self.functions[ready[0]]
        there = f"the file has {', '.join(list(self.functions)[:20])}" if self.functions else "the file has no functions"
        raise ProgramError(f"{self.source}: there is neither main() nor exactly one decorated function without parameters: "
                           f"name the function to run, such as --call NAME 1 2; {there}")

    def check_read(self, name: str) -> None:
        """Refuse a function that the file has, and that is not one which can be read here."""
        if name in self.unread:
            raise error_at(self.unread[name], f"{name} is not a function that is defined by a plain `def`, outside of "
                           "everything else", file=short_name(self.source or NAME), lines=self.lines)

    def _decorators(self, node: ast.FunctionDef, found: FunctionSource) -> None:
        for decorator in node.decorator_list:
            called = decorator.func if isinstance(decorator, ast.Call) else decorator
            if ast.unparse(called).rpartition(".")[2] != "program":
                found.fail(decorator, "the only decorator of a function in a program file is @program")
            given = decorator.keywords if isinstance(decorator, ast.Call) else []
            if isinstance(decorator, ast.Call) and decorator.args:
                found.fail(decorator.args[0], "@program takes its options by name", "write word_bits=24, or range=8")
            options = {}
            for keyword in given:
                value = self._value(keyword.value)
                if keyword.arg is None or isinstance(value, UnknownValue):
                    why = f": this {value.why}" if isinstance(value, UnknownValue) and value != EXECUTED else ""
                    found.fail(keyword.value, f"an option of @program must be a constant in a file that is only read{why}",
                               "write it out, such as memory=4096")
                options[str(keyword.arg)] = value
            _check_options(found, decorator, options)
            self.decorated[node.name] = options

    def _constants(self, node: ast.Assign | ast.AnnAssign) -> None:
        if node.value is None:
            return
        value = self._value(node.value)
        if isinstance(value, UnknownValue):
            self._forget(node.value)
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            self._name(target, value)

    def _name(self, target: ast.expr, value: object) -> None:
        """A name for a constant, or several for the items of one."""
        if isinstance(target, ast.Name):
            self._lose(target.id)
            self.names[target.id] = value
        elif (isinstance(target, ast.Tuple | ast.List) and isinstance(value, list | tuple)
              and len(value) == len(target.elts)):
            for part, each in zip(target.elts, value, strict=True):
                self._name(part, each)
        else:
            self._forget(target)

    def _value(self, node: ast.expr) -> object:
        """The value of a constant expression; an `UnknownValue` where it is not one, or too large."""
        try:
            return self._computed(node)
        except Refusal as refusal:
            return UnknownValue(f"is too large: {refusal.message}")
        except (ArithmeticError, ValueError, TypeError):
            return EXECUTED  # it raises when the file is executed

    def _computed(self, node: ast.expr) -> object:
        self.limits.spend()
        if isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float | str | None):
            return node.value
        if isinstance(node, ast.Name):
            found = self.names.get(node.id, EXECUTED)
            return EXECUTED if isinstance(found, FunctionSource) else found
        if isinstance(node, ast.List | ast.Tuple):
            items = [self._computed(item) for item in node.elts]
            unknown = next((item for item in items if isinstance(item, UnknownValue)), None)
            return unknown or self.limits.known(items if isinstance(node, ast.List) else tuple(items))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            value = self._computed(node.operand)
            return -value if isinstance(value, int | float) else EXECUTED
        if isinstance(node, ast.BinOp) and not isinstance(node.op, ast.Div | ast.MatMult):
            return self._combined(node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range" and (
                "range" not in self.names and not node.keywords and 1 <= len(node.args) <= 3):
            ends = [end for end in map(self._computed, node.args) if type(end) is int]
            if len(ends) == len(node.args):
                return tuple(self.limits.known(range(*ends)))
        return EXECUTED

    def _combined(self, node: ast.BinOp) -> object:
        """An operator on integers, and a list that is repeated."""
        left, right = self._computed(node.left), self._computed(node.right)
        for unknown in (left, right):
            if isinstance(unknown, UnknownValue):
                return unknown
        sign, compute = OPERATORS[type(node.op)]
        if not isinstance(right, int) or not (isinstance(left, int) or (sign == "*" and isinstance(left, list))):
            return EXECUTED
        found = self.limits.combined(sign, compute, left, right)
        return found if isinstance(found, int | list) else EXECUTED


EXECUTED = UnknownValue("is computed when the file is executed, and it is only read here")


@lru_cache(maxsize=1)
def read(text: str, source: str) -> PythonFile:
    """The functions and constants of a text. Each reader of a file asks for it again: it is parsed, and warned of, once."""
    if len(text) > MOST_TEXT:
        raise ProgramError(f"{source}: the file has {len(text):,} characters: a program in Python has at most "
                           f"{MOST_TEXT:,}, since its tree takes some hundred times as many bytes")
    lines, file = lines_of(text), source or NAME
    try:
        tree, said = parsed(text)
        check_integers(tree, partial(error_at, file=short_name(file), lines=lines))
        found = PythonFile(tree, source, lines)
    except SyntaxError as error:
        line, column = error.lineno or 1, error.offset or 1
        why, instead = f"this is not Python: {error.msg}", ""
        if "int_max_str_digits" in why:
            why, instead = f"an integer of more than {sys.get_int_max_str_digits():,} digits: {LARGE}", "use a smaller one"
        raise Unsupported(why, file=file, line=line, column=max(column, 1), instead=instead,
                          text=lines[line - 1] if 0 < line <= len(lines) else "") from None
    except RecursionError:
        raise nested(text, file=file) from None
    except (ValueError, MemoryError) as error:
        raise ProgramError(f"{source}: this is not Python that can be read: {error}") from None
    for each in said:
        plain = lines[each.lineno - 1].strip().isprintable() if each.lineno <= len(lines) else False
        shown = printable(file) if plain else f"<{printable(file)}>"  # a line of the file would be printed as it is
        warnings.warn_explicit(each.message, each.category, shown, each.lineno)
    return found


def _check_options(found: FunctionSource, decorator: ast.expr, options: Mapping[str, object]) -> None:
    """Refuse options that the kind of program does not have, and values that they cannot have."""
    machine = options.get("machine", machine_for(found))
    if machine not in HOMES:
        found.fail(decorator, f"machine={shortened(machine)}", "it must be 'fleq' or 'von-neumann'")
    own = {name: value for name, value in options.items() if name != "machine"}
    try:
        import_name(HOMES[str(machine)]).checked_options(own)
    except PunchcardError as error:
        found.fail(decorator, str(error).removeprefix("program: "))


def _is_main_guard(node: ast.stmt) -> bool:
    """Whether it is `if __name__ == "__main__":`, which says how Python would begin."""
    return isinstance(node, ast.If) and isinstance(node.test, ast.Compare) and "__name__" in ast.unparse(node.test)


def _required(source: FunctionSource) -> bool:
    """Whether a function has parameters that must be given."""
    arguments = source.node.args
    return len(arguments.posonlyargs) + len(arguments.args) > len(arguments.defaults)
