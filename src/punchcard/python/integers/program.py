"""`IntegerProgram`: a function of integers that runs on the von Neumann machine; see python/front_end.py for its calls."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, ClassVar

from punchcard.arguments import check_options
from punchcard.errors import ArgumentError, ProgramError
from punchcard.machines.comparison import Check
from punchcard.machines.result import Report
from punchcard.machines.von_neumann.machine import VonNeumannMachine
from punchcard.python.front_end import ProgramOptions, PythonProgram
from punchcard.python.integers.compiler import CompiledIntegers, compile_function, machine_of, sizes
from punchcard.python.integers.values import AbstractValue
from punchcard.python.report import IntegerReport
from punchcard.python.source import FunctionSource
from punchcard.words.word import as_signed


class RunError(ProgramError):
    """A compiled program stopped with an error: an index out of range, an overflow, a division by zero."""


@dataclass(frozen=True)
class IntegerOptions(ProgramOptions):
    """Options of functions of integers.

    word_bits   bits of a word, default: 32;  memory  cells of the memory, default: 65,536
    check       whether a result that does not fit a word is an error; otherwise it wraps
    """

    word_bits: int | None = None
    memory: int | None = None
    check: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        sizes(self.word_bits, self.memory)


@dataclass(frozen=True)
class IntegerRun:
    """Options of one run: the input that the function reads, and options that replace those of the program."""

    input: bytes = b""
    engine: str | None = None
    max_steps: int | None = None
    check: bool | Check = "end"


class IntegerProgram(PythonProgram[IntegerOptions, CompiledIntegers]):
    """A function of integers. Options are those of `IntegerOptions`."""

    machine_kind: ClassVar[str] = "von-neumann"
    about: ClassVar[str] = "integers"
    option_type = IntegerOptions

    def __init__(self, source: FunctionSource, function: Callable[..., Any] | None = None, **options: object) -> None:
        super().__init__(source, function, **options)
        self.sizes = sizes(self.options.word_bits, self.options.memory)
        self._kept: CompiledIntegers | None = None

    def call(self, *given: object, **named: object) -> Any:
        """Run the function. What it prints goes to standard output, and it reads standard input."""
        code = self.compiled(*given, **named)
        done = self.execute(code, check=False, max_steps=self.options.max_steps, input=getattr(sys.stdin, "buffer", b""))
        sys.stdout.write(done.result.output.decode(errors="replace"))
        return self._result(code, done)

    def run(self, *given: object, input: bytes = b"", engine: str | None = None, max_steps: int | None = None,
            check: bool | Check = "end", **named: object) -> IntegerReport:
        """Run the function beside the machine's interpreter, and compare it with Python if the function can be called."""
        check_options("run", {"input": input, "engine": engine, "max_steps": max_steps, "check": check}, IntegerRun)
        code = self.compiled(*given, **named)
        most = max_steps if max_steps is not None else self.options.max_steps
        done = self.execute(code, check=check, max_steps=most, engine=engine, input=input)
        result = self._result(code, done)  # first: Python might never come to the end of a function that has not ended here
        expected, written = self.expected(*given, input=input, **named)
        return IntegerReport(result=result, expected=expected, machine=code.machine(), report=done,
                             output=done.result.output, python_output=written, words=len(code.program))

    def lower(self, *given: object, **named: object) -> str:
        """The program as `.asq` text, each part with its line of the source; arguments may be left out."""
        return self._compile(self._arguments(given, named, partial=True)).listing

    def machine(self, *given: object, **named: object) -> VonNeumannMachine:
        """The machine that runs the function, for all arguments."""
        return machine_of(*self.sizes)

    def compiled(self, *given: object, **named: object) -> CompiledIntegers:
        """The program with these arguments, which are its data; it is compiled once if they are numbers."""
        arguments = self._arguments(given, named)
        if self._kept is not None and self._kept.is_current:
            return self._kept.given(arguments, self.source.name)
        code = self._compile(arguments)
        if all(kind.is_number for _, kind in code.parameters.values()):
            self._kept = code
        return code

    def compiled_with_output(self, *given: object) -> CompiledIntegers:
        """The program, which writes what the function returns."""
        return self._compile(self._arguments(given, {}), show=True)

    def _compile(self, arguments: dict[str, object], *, show: bool = False) -> CompiledIntegers:
        bits, memory = self.sizes
        return compile_function(self.source, arguments, check=self.options.check, show=show, word_bits=bits, memory=memory)

    def _arguments(self, given: tuple[object, ...], named: dict[str, object], *, partial: bool = False) -> dict[str, object]:
        found = self.bind(given, named, partial=partial)
        if nothing := [name for name, value in found.items() if value is None]:
            raise ArgumentError(f"{self.source.name}(): {nothing[0]}=None: it must be an integer, a text or a list")
        return found

    def expected(self, *given: object, input: bytes = b"", **named: object) -> tuple[Any, bytes | None]:
        """What Python itself returns, or the exception that it raises, and what it writes; None if it was only parsed."""
        if self.function is None:
            return None, None
        out = io.StringIO()
        try:
            with contextlib.redirect_stdout(out), _standard_input(input.decode()):
                return self.plain(*deepcopy(given), **deepcopy(named)), out.getvalue().encode()
        except Exception as error:
            return error, out.getvalue().encode()

    def _result(self, code: CompiledIntegers, done: Report[Any]) -> Any:
        self.check_agreement(done)
        memory = done.result.memory
        if memory.get("error") in code.program.messages:
            raise RunError(code.program.messages[memory["error"]])
        self.check_end(done)
        if code.result is None or not code.places:
            return None
        values = code.result.results if code.result.kind == "results" else (code.result,)
        found = [self._value(value, memory[place], done) for value, place in zip(values, code.places, strict=True)]
        return tuple(found) if code.result.kind == "results" else found[0]

    def _value(self, value: AbstractValue, word: int, done: Report[Any]) -> Any:
        """A word of the memory as the value of Python that it means."""
        if value.kind == "bool":
            return bool(word)
        if value.kind == "char":
            return chr(word)
        if value.kind not in ("list", "str"):
            return word
        memory = done.result.state.memory
        words = [as_signed(cell, self.sizes[0]) for cell in memory[word : word + memory[word - 1]]]
        if value.kind == "str":
            return "".join(map(chr, words))
        item = value.list.item
        items = [self._value(item, each, done) for each in words] if item is not None else []
        return tuple(items) if value.list.is_tuple else items


@contextlib.contextmanager
def _standard_input(text: str) -> Iterator[None]:
    """Standard input that is this text."""
    before, sys.stdin = sys.stdin, io.StringIO(text)
    try:
        yield
    finally:
        sys.stdin = before
