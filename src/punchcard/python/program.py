"""`program`, the decorator: a Python function becomes a program of a machine, and calling it runs it there."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from punchcard.errors import ProgramError
from punchcard.lazy import import_name
from punchcard.python.source import FunctionSource

HOMES = {"fleq": "punchcard.python.arrays.program:ArrayProgram",
         "von-neumann": "punchcard.python.integers.program:IntegerProgram"}
"""The kinds of programs; each is made from a FunctionSource, the function object (or None) and the options."""
INTEGER_TYPES = ("int", "bool", "str", "list[int]", "List[int]")
INTEGER_CALLS = ("print", "input")


def program(function: Callable[..., Any] | None = None, *, machine: str | None = None, **options: Any) -> Any:
    """A decorator that compiles a Python function to a program. Calling the function runs it on a transformer.

        @punchcard.program
        def gcd(a: int, b: int) -> int:
            while b:
                a, b = b, a % b
            return a

        gcd(1071, 462)        # 21
        gcd.run(1071, 462)    # a report, compared with Python
        gcd.lower()           # the assembly text

    machine    "fleq" for arrays, or "von-neumann" for integers. Default: "von-neumann" if an annotation is int, bool, str or
               list[int], or if a function without parameters prints, reads input, or is called `main` and does not use
               NumPy; else "fleq"
    options    for arrays: `range`, `heads`, `precision`, `design`, `check`; for integers: `word_bits`, `memory`, `check`;
               for both: `engine`, `max_steps`

    Raises `ProgramError` if the function uses what the machine does not have. See docs/python.md.
    """
    if function is None:
        return lambda given: program(given, machine=machine, **options)
    return of_source(FunctionSource.of(function), function, machine, **options)


def of_source(
    source: FunctionSource, function: Callable[..., Any] | None, machine: str | None = None, **options: Any
) -> Any:
    """The program of a function's source; `function` is None if it is in a file that was only parsed."""
    kind = machine_for(source) if machine is None else machine
    if kind not in HOMES:
        raise ProgramError(f"program: machine={machine!r}: it must be 'fleq' or 'von-neumann'")
    return import_name(HOMES[kind])(source, function, **options)


def machine_for(source: FunctionSource) -> str:
    """Which machine a function is for, by the rule that `program` states."""
    node = source.node
    given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    annotated = [*(parameter.annotation for parameter in given), node.returns]
    annotations = [ast.unparse(annotation) for annotation in annotated if annotation is not None]
    if any(text.strip("'\"").replace(" ", "") in INTEGER_TYPES for text in annotations):
        return "von-neumann"
    if given or any(text != "None" for text in annotations):
        return "fleq"
    calls = [n.func.id for n in ast.walk(node) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)]
    speaks = any(name in INTEGER_CALLS for name in calls) or (node.name == "main" and not _names_numpy(source))
    return "von-neumann" if speaks else "fleq"


def _names_numpy(source: FunctionSource) -> bool:
    """Whether a function names a module of functions on arrays."""
    meant = (source.names.get(n.id) for n in ast.walk(source.node) if isinstance(n, ast.Name))
    return any(getattr(each, "__name__", "") in ("numpy", "punchcard.arrays") for each in meant)
