"""The parameters of a function: which argument each gets, and which of them are constants of the program.

Python's int, bool, str, None and tuples of them are constants: they are known when the function is compiled. Floats and
arrays are data: they are punched on the card, so other values run on the same machine.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

import numpy as np

from punchcard.errors import ProgramError, did_you_mean, shortened
from punchcard.python.source import FunctionSource

T = TypeVar("T")


def is_array_program(value: Any) -> bool:
    """Whether something is a function of arrays under the decorator."""
    return getattr(type(value), "is_array_program", False) is True


def names_of(source: FunctionSource) -> list[str]:
    """The parameters by name; * and ** are refused."""
    arguments = source.node.args
    if arguments.vararg or arguments.kwarg:
        source.fail(arguments.vararg or arguments.kwarg or source.node, "* and ** parameters are not in the subset",
                    "name every parameter")
    return [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]


def defaults_of(source: FunctionSource) -> dict[str, Any]:
    """The default values that stand in the source, which are constants."""
    arguments = source.node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    found: dict[str, Any] = {}
    pairs = [*zip(positional[len(positional) - len(arguments.defaults):], arguments.defaults, strict=True),
             *((a, d) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d is not None)]
    for parameter, node in pairs:
        try:
            found[parameter.arg] = ast.literal_eval(node)
        except ValueError:
            source.fail(node, f"the default of {parameter.arg!r} is not a constant", "write a number")
    return found


def bound(
    source: FunctionSource, defaults: Mapping[str, Any], given: Sequence[T], named: Mapping[str, T],
    refuse: Callable[[str], NoReturn], wrap: Callable[[Any], T] | None = None,
) -> dict[str, T]:
    """Arguments by the names of the parameters."""
    from punchcard.python.arrays.values import Known

    names, arguments = names_of(source), source.node.args
    positional = len(names) - len(arguments.kwonlyargs)
    if len(given) > positional:
        refuse(f"{source.name} takes {positional} argument{'s' * (positional != 1)}: {len(given)} given")
    found: dict[str, T] = dict(zip(names, given, strict=False))
    for name, value in named.items():
        if name not in names:
            refuse(f"{source.name} has no parameter {name!r}{did_you_mean(name, names)}: it has {', '.join(names)}")
        if name in found:
            refuse(f"{source.name}: {name!r} is given twice")
        found[name] = value
    for name in names:
        if name not in found:
            if name not in defaults:
                refuse(f"{source.name}: {name!r} is not given")
            found[name] = wrap(defaults[name]) if wrap is not None else Known(defaults[name])  # type: ignore[assignment]
    return {name: found[name] for name in names}


def is_constant(value: Any) -> bool:
    """Whether an argument is a constant of the program."""
    if isinstance(value, tuple):
        return all(is_constant(item) for item in value)
    return value is None or isinstance(value, bool | str | int | np.integer)


def typed(name: str, value: Any) -> np.ndarray:
    """An argument that is data as NumPy takes it: float64, int64 or bool. Less precise numbers become float64."""
    array = np.array(value)
    if array.dtype.kind in "iu" and array.dtype != np.int64:
        raise ProgramError(f"{name} holds {array.dtype}, which NumPy wraps around: give {name}.astype(float), or "
                           "astype(int)")
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def as_data(name: str, value: Any) -> np.ndarray:
    """An argument that is punched: real numbers, finite, in at most two dimensions."""
    from punchcard.arguments import real_array

    try:
        array: np.ndarray = real_array(value)
    except ValueError as error:
        raise ProgramError(f"{name}={shortened(value)}: {error}") from None
    if array.ndim > 2 or array.size == 0:
        raise ProgramError(f"{name} has the shape {array.shape}: scalars, vectors and matrices with entries are wanted")
    if not np.isfinite(array).all():
        raise ProgramError(f"{name} holds NaN or infinity: its entries must be finite")
    return array
