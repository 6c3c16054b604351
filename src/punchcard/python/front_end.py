"""What every front end for Python shares: a function under the decorator, its options, and what a user calls.

    f(x)              the value, computed by the transformer
    f.run(x)          the report: the value, and how it compares with the plain function
    f.lower(x)        the program as text
    f.program(x)      the program
    f.machine(x)      the machine; its weights do not depend on the program
"""

from __future__ import annotations

import ast
import inspect
import types
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from functools import update_wrapper
from typing import Any, ClassVar, Generic, NoReturn, Protocol, Self, TypeAlias, TypeVar

import numpy as np

from punchcard.arguments import check_options
from punchcard.engines import check_engine
from punchcard.errors import ArgumentError, ProgramError
from punchcard.machines.base import Machine
from punchcard.machines.checkpoint import begin, resume
from punchcard.machines.comparison import Check
from punchcard.machines.result import Report
from punchcard.machines.running import DEFAULT_ENGINE
from punchcard.machines.streams import Input
from punchcard.python.limits import Limits
from punchcard.python.source import FunctionSource, bind_arguments, defaults_of, literal_value, parameters_of

_PLAIN: ContextVar[bool] = ContextVar("plain", default=False)
"""Whether Python itself runs a function to compare with: then functions that it calls are plain, too."""


@dataclass(frozen=True)
class ProgramOptions:
    """Options that every kind of program has.

    engine      what applies the model;  max_steps  the most instructions of a run, default: set by the program
    """

    engine: str = DEFAULT_ENGINE
    max_steps: int | None = None

    def __post_init__(self) -> None:
        check_engine(self.engine)
        if self.max_steps is not None and self.max_steps < 0:
            raise ArgumentError(f"program: max_steps={self.max_steps}: it must be 0 or more")


class CompiledCall(Protocol):
    """A function compiled for one call."""

    @property
    def program(self) -> Any: ...  # the program type of the machine

    @property
    def listing(self) -> str: ...

    def machine(self) -> Machine[Any, Any]: ...


Options = TypeVar("Options", bound=ProgramOptions)
Compiled = TypeVar("Compiled", bound=CompiledCall)


class PythonProgram(ABC, Generic[Options, Compiled]):
    """A function of Python as a program of a machine. `defaults` has the default values of its parameters."""

    machine_kind: ClassVar[str]
    about: ClassVar[str]
    option_type: ClassVar[type[ProgramOptions]]

    def __init__(self, source: FunctionSource, function: Callable[..., Any] | None = None, **options: object) -> None:
        self.source, self.function = source, function
        self.options: Options = self.checked_options(options)  # type: ignore[assignment]
        self.defaults = self._default_values()
        if function is not None:
            update_wrapper(self, function)
        else:
            self.__name__ = source.name

    @classmethod
    def checked_options(cls, options: Mapping[str, object]) -> ProgramOptions:
        """The options of a program; unknown ones, and values that they cannot have, are refused."""
        check_options("program", options, cls.option_type)
        return cls.option_type(**options)  # type: ignore[arg-type]

    def __repr__(self) -> str:
        return f"<program {self.source.name} of {self.about}, {self.source.file}:{self.source.line(self.source.node)}>"

    def __call__(self, *given: object, **named: object) -> Any:
        """The value of the function, computed by a looped transformer."""
        return self.plain(*given, **named) if _PLAIN.get() and self.function is not None else self.call(*given, **named)

    @abstractmethod
    def call(self, *given: object, **named: object) -> Any:
        """Run the function on the machine; the value."""

    @abstractmethod
    def compiled(self, *given: object, **named: object) -> Compiled:
        """The program for these arguments."""

    def lower(self, *given: object, **named: object) -> str:
        """The program as text, with the line of the source above what it became."""
        return self.compiled(*given, **named).listing

    def program(self, *given: object, **named: object) -> Any:
        """The program, as its machine takes it."""
        return self.compiled(*given, **named).program

    def machine(self, *given: object, **named: object) -> Any:
        """The machine that runs the function, for arguments of these shapes and sizes."""
        return self.compiled(*given, **named).machine()

    def with_options(self, **options: object) -> Self:
        """The same function with other options."""
        return type(self)(self.source, self.function, **{**asdict(self.options), **options})

    def plain(self, *given: object, **named: object) -> Any:
        """What Python itself returns. Programs that the function calls are plain functions meanwhile."""
        assert self.function is not None
        token = _PLAIN.set(True)
        try:
            return self.function(*given, **named)
        finally:
            _PLAIN.reset(token)

    def bind(self, given: tuple[object, ...], named: Mapping[str, object], *, partial: bool = False) -> dict[str, object]:
        """Arguments by parameter, with the defaults; `partial`: some may be missing."""
        names = [parameter.arg for parameter in parameters_of(self.source)]
        found = bind_arguments(self.source, given, named, names if partial else self.defaults, _refuse)
        return {name: found.get(name, self.defaults.get(name)) for name in names if name in found or name in self.defaults}

    def execute(self, call: Compiled, *, check: bool | Check | None, max_steps: int | None, engine: str | None = None,
                input: Input = b"") -> Report[Any]:
        """Run a compiled call on its machine."""
        start = begin(call.program, call.machine(), engine=engine or self.options.engine, check=check, max_steps=max_steps)
        return resume(start, input=input)

    def check_end(self, report: Report[Any]) -> None:
        """Refuse a run that has not come to its end."""
        if not report.result.halted:
            why = report.result.fault or (
                f"it has not ended after {report.result.steps:,} instructions; max_steps= allows more")
            raise ProgramError(f"{self.source.name}: {why}")

    def check_agreement(self, report: Report[Any]) -> None:
        """Refuse a run that differs from that of the machine's interpreter."""
        if report.agrees is False:
            raise ProgramError(f"{self.source.name}: the run does not agree with the interpreter: {report.why}")

    def _default_values(self) -> dict[str, object]:
        if self.function is not None:
            parameters = inspect.signature(self.function).parameters
            return {name: p.default for name, p in parameters.items() if p.default is not p.empty}
        return default_values(self.source)


def default_values(source: FunctionSource) -> dict[str, object]:
    """The default values of a function that was parsed and not executed: constants."""
    found = {name: literal_value(node, node) for name, node in defaults_of(source).items()}
    for name, value in found.items():
        if isinstance(value, ast.expr):
            source.fail(value, f"the default of {name!r} is not a constant", "write a number")
    return found


def _refuse(message: str) -> NoReturn:
    raise ArgumentError(message)


# What a function takes from outside, constants and other functions, is known when it is compiled: a compiled program is
# used again only while all of it is as it was.

Snapshot: TypeAlias = tuple[tuple[str, object], ...]


def snapshot(source: FunctionSource, seen: frozenset[int] = frozenset()) -> Snapshot:
    """What the names outside a function mean now, in a form that can be compared."""
    found: dict[str, object] = {}
    limits = Limits()
    for node in ast.walk(source.node):
        if isinstance(node, ast.Name) and node.id in source.names:
            with source.refusing(node):
                limits.known(source.names[node.id], repr(node.id))
            found[node.id] = _state(source.names[node.id], seen)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            owner = source.names.get(node.value.id)
            if isinstance(owner, types.ModuleType):
                found[f"{node.value.id}.{node.attr}"] = _state(getattr(owner, node.attr, None), seen)
    return tuple(sorted(found.items()))


def _state(value: object, seen: frozenset[int]) -> object:
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.shape, value.tobytes()
    if isinstance(value, PythonProgram):
        inner = () if id(value) in seen else snapshot(value.source, seen | {id(value)})
        return id(value), repr(value.defaults), inner
    if isinstance(value, bool | int | float | str | tuple | list | np.number | None):
        return type(value).__name__, repr(value)
    return id(value)
