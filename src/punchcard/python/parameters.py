"""The parameters of a function, and which argument each of them gets, by Python's rules and in its words."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NoReturn, TypeVar

from punchcard.errors import did_you_mean
from punchcard.python.source import FunctionSource

T = TypeVar("T")


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


def bind(source: FunctionSource, given: Sequence[T], named: Mapping[str, T], optional: Collection[str],
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
