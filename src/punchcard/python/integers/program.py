"""`IntegerProgram`: a function of integers that runs on the von Neumann machine.

    gcd(1071, 462)        the value, computed by the transformer
    gcd.run(1071, 462)    the report
    gcd.lower()           the program as `.asq` text
    gcd.machine()         the machine, the same for every function with words and a memory of that size
"""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from copy import deepcopy
from dataclasses import dataclass, field
from functools import lru_cache, update_wrapper
from typing import Any
from unittest import mock

from punchcard.arguments import checked, is_number
from punchcard.checks.runs import begin, checked_run
from punchcard.errors import ArgumentError, ProgramError, did_you_mean, shortened
from punchcard.machines.comparison import Check
from punchcard.machines.result import Report
from punchcard.machines.running import DEFAULT_ENGINE
from punchcard.machines.von_neumann.machine import VonNeumannMachine
from punchcard.python.integers.compiler import Compiled, compiled, sizes
from punchcard.python.integers.values import Value
from punchcard.python.source import FunctionSource

OPTIONS = {"word_bits": "bits of a word, 32 where nobody says", "memory": "cells of the memory, 65,536 where nobody says",
           "check": "True: a result that does not fit a word is an error", "engine": "what applies the model",
           "max_steps": "instructions after which a run is given up"}
_PLAIN: ContextVar[bool] = ContextVar("plain", default=False)
"""Whether Python itself runs a function to compare with: then functions that it calls are plain, too."""


class RunError(ProgramError):
    """A compiled program stopped with an error of its own: an index out of range, an overflow, a division by zero."""


@dataclass(frozen=True)
class IntegerReport:
    """A run of a function of integers.

    result      what it returned;  output  the bytes that it wrote
    expected    what Python itself returns, and `python_output` what it writes; None where the function was only parsed
    agrees      whether the interpreter of the machine says the same, instruction for instruction
    """

    result: Any
    output: bytes
    expected: Any
    python_output: bytes | None
    report: Report[Any] = field(repr=False)
    words: int
    machine: VonNeumannMachine = field(repr=False)

    @property
    def agrees(self) -> bool | None:
        return self.report.agrees

    @property
    def same_as_python(self) -> bool | None:
        """Whether value and output are Python's; words wrap, so that large numbers may differ."""
        if self.python_output is None:
            return None
        return (self.result, self.output) == (self.expected, self.python_output)

    @property
    def steps(self) -> int:
        return self.report.result.steps

    @property
    def engine(self) -> str:
        return self.report.result.engine

    def __str__(self) -> str:
        """The report in a few lines."""
        lines = [f"result      {self.result!r}"]
        if self.output:
            lines.append(f"output      {shortened(self.output.decode(errors='replace'))}")
        lines.append(f"steps       {self.steps:,} instructions of a transformer with {len(self.machine.weights.layers)} "
                     f"layers, engine {self.engine}")
        lines.append(f"program     {self.words:,} words of {self.machine.options['word_bits']} bits")
        if self.agrees is not None:
            lines.append(f"agrees      {'yes' if self.agrees else 'NO'}: with the interpreter of the machine")
        if self.same_as_python is not None:
            expected = "" if self.same_as_python else f", which gives {shortened(self.expected)}"
            lines.append(f"same        {'yes' if self.same_as_python else 'NO'}: as CPython{expected}")
        return "\n".join(lines)


class IntegerProgram:
    """A function of integers; see the top of this file. Options are those of `OPTIONS`."""

    def __init__(self, source: FunctionSource, function: Callable[..., Any] | None = None, **options: Any) -> None:
        check_options(options)
        self.source, self.function, self.options = source, function, options
        self._compiled: Compiled | None = None
        if function is not None:
            update_wrapper(self, function)
        else:
            self.__name__ = source.name

    def __repr__(self) -> str:
        return f"<program {self.source.name} of integers, {self.source.file}:{self.source.line(self.source.node)}>"

    def __call__(self, *given: Any, **named: Any) -> Any:
        """The value of the function, computed by a looped transformer. What it prints goes to standard output."""
        if _PLAIN.get() and self.function is not None:
            return self.function(*given, **named)
        code = self.compiled(*given, **named)
        done = self._run(code, check=False, input=_standard_input(), engine=None, max_steps=None)
        sys.stdout.write(done.result.output.decode(errors="replace"))
        return self._result(code, done)

    def run(self, *given: Any, input: bytes = b"", engine: str | None = None, max_steps: int | None = None,
            check: bool | Check = "end", **named: Any) -> IntegerReport:
        """Run the function beside the machine's interpreter, and compare it with Python where Python has it."""
        run(input=input, engine=engine, max_steps=max_steps, check=check)
        code = self.compiled(*given, **named)
        done = self._run(code, check=check, input=input, engine=engine, max_steps=max_steps)
        expected, written = self.expected(*given, input=input, **named)
        return IntegerReport(self._result(code, done), done.result.output, expected, written, done, len(code.image),
                             self.machine())

    def lower(self, *given: Any, **named: Any) -> str:
        """The program as `.asq` text, each part with its line of the source."""
        return self._new(self._bound(given, named), show=False).text

    def machine(self) -> VonNeumannMachine:
        """The machine that runs the function, whatever it is given."""
        return machine_of(*self.sizes)

    @property
    def sizes(self) -> tuple[int, int]:
        return sizes(self.options.get("word_bits"), self.options.get("memory"))

    def compiled(self, *given: Any, show: bool = False, **named: Any) -> Compiled:
        """The program with these arguments, which are its data; it is compiled once where they are numbers."""
        arguments = self._bound(given, named, whole=True)
        if self._compiled is None or show or not self._compiled.is_current:
            code = self._new(arguments, show=show)
            if not show and all(kind.is_number for _, kind in code.parameters.values()):
                self._compiled = code
            return code
        present = dict(zip(self._compiled.parameters, arguments or (), strict=False))
        missing = {name for name in self._compiled.parameters if present.get(name) is None}
        if missing:
            return self._new(arguments, show=show)
        return self._compiled.given(present, self.source.name)

    def _new(self, arguments: list[Any] | None, *, show: bool) -> Compiled:
        return compiled(self.source, arguments, check=bool(self.options.get("check")), show=show,
                        word_bits=self.options.get("word_bits"), memory=self.options.get("memory"))

    def with_options(self, **options: Any) -> IntegerProgram:
        """The same function with other options."""
        return IntegerProgram(self.source, self.function, **{**self.options, **options})

    def expected(self, *given: Any, input: bytes = b"", **named: Any) -> tuple[Any, bytes | None]:
        """What Python itself returns and writes; None and None where the function was only parsed."""
        if self.function is None:
            return None, None
        out = io.StringIO()
        token = _PLAIN.set(True)
        try:
            with contextlib.redirect_stdout(out), mock.patch.object(sys, "stdin", io.StringIO(input.decode())):
                result = self.function(*deepcopy(given), **deepcopy(named))
        except Exception as error:
            return error, out.getvalue().encode()
        finally:
            _PLAIN.reset(token)
        return result, out.getvalue().encode()

    def _bound(self, given: tuple[Any, ...], named: Mapping[str, Any], *, whole: bool = False) -> list[Any] | None:
        arguments = self.source.node.args
        names = [parameter.arg for parameter in (*arguments.posonlyargs, *arguments.args)]
        if len(given) > len(names):
            raise ArgumentError(f"{self.source.name}() takes {len(names)} arguments, and {len(given)} are given")
        found = dict(zip(names, given, strict=False))
        for name, value in named.items():
            if name not in names or name in found:
                raise ArgumentError(f"{self.source.name}(): {name}={shortened(value)}: there is no such argument, or twice"
                                    f"{did_you_mean(name, names)}")
            found[name] = value
        if nothing := [name for name, value in found.items() if value is None]:
            raise ArgumentError(f"{self.source.name}(): {nothing[0]}=None: it must be an integer, a text or a list")
        optional = names[len(names) - len(arguments.defaults):]
        if missing := [name for name in names if whole and name not in found and name not in optional]:
            raise ArgumentError(f"{self.source.name}() needs {', '.join(map(repr, missing))}")
        return [found.get(name) for name in names] if found else None

    def _run(self, code: Compiled, *, check: bool | Check, input: Any, engine: str | None,
             max_steps: int | None) -> Report[Any]:
        machine = machine_of(code.word_bits, code.memory)
        start = begin(code.image, machine, engine=engine or self.options.get("engine") or DEFAULT_ENGINE, check=check,
                      max_steps=max_steps if max_steps is not None else self.options.get("max_steps"))
        return checked_run(start, input=input)

    def _result(self, code: Compiled, done: Report[Any]) -> Any:
        if done.agrees is False:
            raise ProgramError(f"{self.source.name}: the run does not agree with the interpreter: {done.why}")
        memory = done.result.memory
        if memory.get("error") in code.image.messages:
            raise RunError(code.image.messages[memory["error"]])
        if not done.result.halted:
            why = done.result.fault or f"it has not ended after {done.result.steps:,} instructions; max_steps= allows more"
            raise ProgramError(f"{self.source.name}: {why}")
        if code.result is None or not code.places:
            return None
        values = code.result.results if code.result.kind == "results" else (code.result,)
        found = [self._value(value, memory[place], done) for value, place in zip(values, code.places, strict=True)]
        return tuple(found) if code.result.kind == "results" else found[0]

    def _value(self, value: Value, word: int, done: Report[Any]) -> Any:
        if value.kind == "bool":
            return bool(word)
        if value.kind == "char":
            return chr(word)
        if value.kind not in ("list", "str"):
            return word
        memory = done.result.state.memory
        half = 1 << (self.sizes[0] - 1)
        words = [(cell + half) % (2 * half) - half for cell in memory[word : word + memory[word - 1]]]
        if value.kind == "str":
            return "".join(map(chr, words))
        assert value.items is not None
        root = value.items.root
        items = [self._value(root.item, each, done) for each in words] if root.item is not None else []
        return tuple(items) if root.is_tuple else items


@checked
def run(*, input: bytes, engine: str | None, max_steps: int | None, check: bool | Check) -> None:
    """What is said of a run is checked by its types; the function's own arguments are checked when it is compiled."""


@lru_cache(maxsize=8)
def machine_of(word_bits: int, memory: int) -> VonNeumannMachine:
    """Machines that are there already are used again: they depend on sizes alone."""
    return VonNeumannMachine(word_bits=word_bits, memory=memory)


def check_options(options: Mapping[str, Any]) -> None:
    for name, value in options.items():
        if name not in OPTIONS:
            raise ArgumentError(f"program: unknown option {name!r}{did_you_mean(name, OPTIONS)}: functions of integers have "
                                f"{', '.join(OPTIONS)}")
        wanted = {"check": bool, "engine": str}.get(name, int)
        if value is not None and (not isinstance(value, wanted) or (wanted is int and not is_number(value))):
            raise ArgumentError(f"program: {name}={shortened(value)}: it must be {OPTIONS[name]}")
    sizes(options.get("word_bits"), options.get("memory"))


def _standard_input() -> Any:
    """Where `input()` reads in a call: standard input, byte by byte."""
    stream = getattr(sys.stdin, "buffer", None)
    return stream if stream is not None else b""
