"""The arguments of public calls, checked against the types that the signature declares.

    @checked
    def run(program: Any, *, max_steps: int | None = None) -> Report: ...

    run(program, max_steps="x")      run: max_steps='x': it must be an integer or None

So a wrong type is one named error, whatever would have happened inside. `checked` on a class is for its constructor and its
public methods. Python's own rule for types is made stricter where it surprises: True is not a number, a text is not a list,
NaN is not a float, and an array holds real numbers in rows of equal length.
"""

from __future__ import annotations

import inspect
import numbers
import sys
import types
import typing
from collections import abc
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial, wraps
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Union, cast, get_args, get_origin

from punchcard.errors import MOST_WRITTEN_BITS, ArgumentError, did_you_mean, shortened

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

T = TypeVar("T", bound=Callable[..., Any])
WORDS = {int: "an integer", float: "a number", bool: "True or False", str: "a text", Path: "a path", bytes: "bytes",
         type(None): "None"}
SHOWN = 60


class _OfTorch:
    """The base of torch's types by name. Torch is not imported for this: before it is, nothing is of such a type."""


_OF_TORCH = {name: type(name, (_OfTorch,), {}) for name in ("Tensor", "dtype")}
TORCH = {"torch": types.SimpleNamespace(**_OF_TORCH), "Tensor": _OF_TORCH["Tensor"]}


def checked(target: T) -> T:
    """A decorator: the function checks its arguments; of a class, the constructor and the public methods do."""
    if not isinstance(target, type):
        return cast(T, _checked_function(target))
    for name, member in list(vars(target).items()):
        if name.startswith("_") and name != "__init__":
            continue
        if isinstance(member, classmethod):
            setattr(target, name, classmethod(_checked_function(member.__func__, method=True)))
        elif inspect.isfunction(member):
            setattr(target, name, _checked_function(member, method=True))
    return target


def _checked_function(function: Any, *, method: bool = False) -> Any:
    names = [name for name, p in inspect.signature(function).parameters.items()
             if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]

    @wraps(function)
    def door(*given: Any, **named: Any) -> Any:
        owner = (given[0] if isinstance(given[0], type) else type(given[0])) if method and given else None
        tests = _tests(function, owner)
        for name, value in chain(zip(names, given, strict=False), named.items()):
            if name not in tests or not tests[name](value) or (
                    isinstance(value, int) and value.bit_length() > MOST_WRITTEN_BITS):
                _refuse(function, owner, name, value)
        return function(*given, **named)

    return door


def without_checks(method: T) -> T:
    """A method of an object for calls from inside, where what it is given was checked at another door."""
    whole = cast(types.MethodType, method)
    return cast(T, types.MethodType(_unwrapped(whole.__func__), whole.__self__))


_unwrapped = cache(inspect.unwrap)


def check_options(label: str, given: abc.Mapping[str, object], known: type) -> None:
    """Refuse options that a dataclass does not have as fields, and values of another type than the field's."""
    rules = {name: hint for base in reversed(known.__mro__[:-1]) for name, hint in _hints(base).items()}
    for name, value in given.items():
        if name not in rules:
            raise ArgumentError(f"{label}: unknown option {name!r}{did_you_mean(name, rules)}: the options are "
                                f"{', '.join(rules)}")
        _check(label, name, value, rules[name])


@cache
def _tests(function: Any, owner: type | None) -> dict[str, Callable[[Any], bool]]:
    """For each parameter, by name, whether it takes a value."""
    return {name: _test_of(hint) for name, hint in _rules(function, owner)[1].items()}


def _refuse(function: Any, owner: type | None, name: str, value: object) -> None:
    """Raise an error for what a call was given, if it is one."""
    label, rules, closed = _rules(function, owner)
    _check(label, name, value, rules.get(name, Any))
    if closed and name not in rules:
        raise ArgumentError(f"{label}: unknown option {name!r}{did_you_mean(name, rules)}")


def _check(label: str, name: str, value: object, hint: Any) -> None:
    if isinstance(value, int) and value.bit_length() > MOST_WRITTEN_BITS:
        raise ArgumentError(f"{label}: {name}={shortened(value)}: an integer has at most {MOST_WRITTEN_BITS:,} bits here")
    if hint is not Any and not _fits(value, hint):
        raise ArgumentError(f"{label}: {name}={' '.join(shortened(value, SHOWN).split())}: it must be {_words(hint)}")


@cache
def _rules(function: Any, owner: type | None) -> tuple[str, dict[str, Any], bool]:
    """What a caller calls a function, the types of its parameters, and whether those are all the keywords that it takes.

    `owner` is the class that a method is called on. What it has in place of a type variable counts: a method of
    Machine[FleqProgram, FleqState] takes a FleqProgram for Program. `**options: Unpack[Options]` are keywords with the types
    of that TypedDict.
    """
    bound: dict[Any, Any] = {}
    for base in owner.__mro__ if owner is not None else ():
        for alias in getattr(base, "__orig_bases__", ()):
            for variable, found in zip(getattr(get_origin(alias), "__parameters__", ()), get_args(alias), strict=False):
                bound.setdefault(variable, Any if isinstance(found, TypeVar) else found)
    rules: dict[str, Any] = {}
    closed = False
    hints = _hints(function)
    for name, parameter in inspect.signature(function).parameters.items():
        hint = hints.get(name, Any)
        if parameter.kind is parameter.VAR_KEYWORD:
            if get_origin(hint) is typing.Unpack:
                rules |= _hints(get_args(hint)[0])
                closed = True
        elif parameter.kind is not parameter.VAR_POSITIONAL:
            if isinstance(hint, TypeVar):
                hint = bound.get(hint, Any)
            elif variables := getattr(hint, "__parameters__", ()):
                hint = hint[tuple(bound.get(variable, Any) for variable in variables)]
            rules[name] = Any if name in ("self", "cls") else hint
    label = function.__name__ if owner is None else f"{owner.__name__}.{function.__name__}".removesuffix(".__init__")
    return label, rules, closed


def _hints(target: Any) -> dict[str, Any]:
    """Types by name. One that is imported for the type checker alone is not known here, and is not checked."""
    found: dict[str, Any] = {}
    known = {**vars(sys.modules[target.__module__]), **TORCH}
    for name, annotation in target.__annotations__.items():
        with suppress(NameError):
            found |= typing.get_type_hints(types.SimpleNamespace(__annotations__={name: annotation}), known)
    return found


def _fits(value: object, hint: Any) -> bool:
    """Whether a value is of a type, as the rules above have it."""
    return _test_of(hint)(value)


@cache
def _test_of(hint: Any) -> Callable[[Any], bool]:
    """A function that says whether a value is of a type. A call has it made once: types are asked for again and again."""
    if hint is Any or hint is object:
        return lambda value: True
    origin, inside = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _union_test(hint)
    if origin is Literal:
        return lambda value: any(type(value) is type(choice) and value == choice for choice in inside)
    if hint is int:
        return lambda value: type(value) is int or (isinstance(value, numbers.Integral) and not isinstance(value, bool))
    if hint is float:
        return _is_float
    if hint is bytes:
        return lambda value: isinstance(value, bytes | bytearray)
    if hint is abc.Callable or origin is abc.Callable:
        return callable
    kind = origin or hint
    if kind in (typing.BinaryIO, typing.IO):
        return lambda value: hasattr(value, "read") or hasattr(value, "write")
    if not isinstance(kind, type):
        return lambda value: True
    if kind is type:
        return lambda value: isinstance(value, type)
    if issubclass(kind, _OfTorch):
        return lambda value: "torch" in sys.modules and isinstance(value, getattr(sys.modules["torch"], kind.__name__))
    if getattr(kind, "_is_protocol", False):
        return lambda value: origin is not None or _has_members(value, hint)
    if origin is not None and inside:
        return _container_test(kind, origin, inside)
    return lambda value: isinstance(value, kind)


def _is_float(value: object) -> bool:
    """Whether it is a number, and an integer among them not too large for a float. NaN is not itself."""
    if isinstance(value, int):
        return not isinstance(value, bool) and abs(value) <= sys.float_info.max
    return isinstance(value, numbers.Real) and bool(value == value)


def _union_test(hint: Any) -> Callable[[Any], bool]:
    members, array = _members(hint)
    plain, has_float = tuple(member for member in members if member is not float), float in members
    tests = [_test_of(member) for member in members]
    return lambda value: (  # what is of such a type itself fits, but for NaN, which is not equal to itself
        type(value) in plain or (has_float and type(value) is float and value == value)
        or any(test(value) for test in tests) or (array and _is_array(value)))


def _container_test(kind: Any, origin: Any, inside: tuple[Any, ...]) -> Callable[[Any], bool]:
    """Of a list, a tuple of a certain length, a mapping, or a class with type variables, of which only the class counts."""
    if kind is tuple and (len(inside) < 2 or inside[1] is not Ellipsis):
        tests = [_test_of(each) for each in inside]
        return lambda value: isinstance(value, abc.Sequence) and not isinstance(value, str | bytes) and (
            len(value) == len(tests) and all(test(item) for item, test in zip(value, tests, strict=True)))
    if origin in (list, tuple, abc.Sequence, abc.Iterable):
        return partial(_is_list, _test_of(inside[0]), origin is abc.Iterable)
    if origin in (dict, abc.Mapping):
        of_key, of_item = map(_test_of, inside)
        return lambda value: isinstance(value, abc.Mapping) and all(
            of_key(key) and of_item(item) for key, item in value.items())
    return lambda value: isinstance(value, kind)


def _is_list(of_item: Callable[[Any], bool], lazily: bool, value: Any) -> bool:
    """A list has a length and items in order, and is not a text or a mapping. `lazily`: an iterator will do."""
    is_list = (hasattr(value, "__len__") and hasattr(value, "__getitem__")
               and not isinstance(value, str | bytes | abc.Mapping) and getattr(value, "ndim", 1) == 1)
    return (lazily and isinstance(value, abc.Iterator)) or (is_list and all(map(of_item, value)))


def _has_members(value: object, protocol: type) -> bool:
    """Whether a value has the public attributes that a protocol names; none of them is computed."""
    return all(inspect.getattr_static(value, name, _has_members) is not _has_members
               for kind in protocol.__mro__ if getattr(kind, "_is_protocol", False)
               for name in vars(kind) if not name.startswith("_"))


def _members(hint: Any) -> tuple[list[Any], bool]:
    """The types of a union. NumPy's ArrayLike, a union, is a special case: its rule is what can become an array."""
    from numpy.typing import ArrayLike

    parts = set(get_args(ArrayLike))
    members = list(get_args(hint))
    return ([m for m in members if m not in parts], True) if parts <= set(members) else (members, False)


def real_array(value: object) -> NDArray[np.float64]:
    """A float64 array of real numbers, in rows of equal length; anything else is a ValueError that says so."""
    import numpy as np

    try:
        array = np.asarray(value)
    except (ValueError, TypeError, RuntimeError):
        raise ValueError("rows of equal length are wanted") from None
    if array.dtype.kind not in "buif":
        raise ValueError("real numbers are wanted")
    return array.astype(np.float64)


def _is_array(value: object) -> bool:
    try:
        real_array(value)
    except ValueError:
        return False
    return True


def _words(hint: Any) -> str:
    """A type in words."""
    origin, inside = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        members, array = _members(hint)
        return " or ".join([*["an array of real numbers, in rows of equal length"] * array, *map(_words, members)])
    if origin is Literal:
        return " or ".join(map(repr, inside))
    if hint is abc.Callable or origin is abc.Callable:
        return "a function"
    if origin in (list, tuple, abc.Sequence, abc.Iterable):
        return f"a list, each item {_words(inside[0])}" if inside and inside[0] is not Any else "a list"
    if origin in (dict, abc.Mapping):
        return f"a mapping of names, each value {_words(inside[1])}"
    kind = origin or hint
    return WORDS.get(kind) or f"a {getattr(kind, '__name__', str(kind))}"
