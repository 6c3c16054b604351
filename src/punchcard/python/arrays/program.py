"""`ArrayProgram`: a function of arrays that runs on the FLEQ machine.

    inverse(A)            the value, computed by the transformer
    inverse.run(A)        the report
    inverse.lower(A)      the FLEQ program as text
    inverse.as_layer(A)   the function as a layer of another network, with gradients
    inverse.machine(A)    the machine, the same for other arguments of the same shapes and sizes
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import replace
from functools import lru_cache, update_wrapper
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from punchcard.checks.runs import begin, checked_run
from punchcard.errors import ArgumentError, ProgramError, PunchcardError, did_you_mean, shortened
from punchcard.machines.fleq.isa import FleqProgram, Returned
from punchcard.machines.fleq.machine import FleqMachine
from punchcard.machines.fleq.oracle import FleqInterpreter
from punchcard.machines.fleq.step_errors import FAR
from punchcard.machines.running import DEFAULT_ENGINE
from punchcard.python.arrays.code_generation import GeneratedProgram, generate
from punchcard.python.arrays.compiler import LoweredFunction, lower
from punchcard.python.arrays.domains import blocks_for, dead_zone, functions_for, range_for
from punchcard.python.arrays.dry_run import Ran, dry_run
from punchcard.python.arrays.dtypes import REAL, Kinds, kinds_of
from punchcard.python.arrays.listing import listing
from punchcard.python.arrays.outside import outside
from punchcard.python.arrays.report import ArrayReport, distance
from punchcard.python.arrays.signature import as_data, bound, defaults_of, is_constant, typed
from punchcard.python.source import FunctionSource, Unsupported

if TYPE_CHECKING:
    from torch import nn

    from punchcard.export.layer import ProgramLayer

OPTIONS: Mapping[str, tuple[Any, str]] = {
    "range": (None, "a number, 1 or more and above every value of the program"), "heads": (3, "1, 2 or 3"),
    "precision": ("float64", "'float64' or 'float32'"), "design": ("compact", "'compact', 'three-layer' or 'paper'"),
    "engine": (DEFAULT_ENGINE, "the name of an engine"), "check": (None, "True, False or None"),
    "max_steps": (None, "a number of instructions"),
}
LOOKED_AT = 5_000
"""A run of at most so many operations is looked at after every loop, where `check` does not say."""
ROOM = 8
"""Memory and instructions of a machine are multiples of this, so that programs of about one size share it."""


_PLAIN: ContextVar[bool] = ContextVar("plain", default=False)
"""Whether a reference is being computed: then programs that the function calls are plain functions, too."""


class ArrayProgram:
    """A function of arrays; see the top of this file. Options are those of `OPTIONS`."""

    is_array_program: ClassVar[bool] = True

    def __init__(self, source: FunctionSource, function: Callable[..., Any] | None = None, **options: Any) -> None:
        for name in options:
            if name not in OPTIONS:
                raise ArgumentError(f"program: unknown option {name!r}{did_you_mean(name, OPTIONS)}: there are "
                                    f"{', '.join(OPTIONS)}")
        self.source, self.function = source, function
        self.options = {name: options.get(name, default) for name, (default, _) in OPTIONS.items()}
        limit = self.options["range"]
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int | float)
                                  or not 1 <= limit < math.inf):
            raise ArgumentError(f"program: range={shortened(limit)}: it must be {OPTIONS['range'][1]}")
        self.defaults = _defaults(function) if function is not None else defaults_of(source)
        self._lowered: dict[Any, LoweredFunction] = {}
        self._written: dict[Any, GeneratedProgram] = {}
        if function is not None:
            update_wrapper(self, function)
        else:
            self.__name__ = source.name

    def __repr__(self) -> str:
        return f"<program {self.source.name} of arrays, {self.source.file}:{self.source.line(self.source.node)}>"

    # What a user calls

    def __call__(self, *given: Any, **named: Any) -> Any:
        """The value of the function, computed by a looped transformer."""
        if _PLAIN.get() and self.function is not None:
            return self.function(*given, **named)
        report = self.run(*given, **named)
        if report.agrees is False:
            raise ProgramError(f"{self.source.name}: the run does not agree with the interpreter: {report.report.why}")
        if report.difference is not None and report.difference > FAR[self.options["precision"]]:
            raise ProgramError(f"{self.source.name}: the result is {report.difference:.1e} of the range away from NumPy's: "
                               "errors have grown, or turned a comparison; run() has both results")
        return report.result

    def run(self, *given: Any, **named: Any) -> ArrayReport:
        """Run the function and compare it with NumPy."""
        call = _Call(self, given, named)
        machine = call.machine()
        check = self.options["check"]
        watched = call.ran.operations <= LOOKED_AT if check is None else check
        most = self.options["max_steps"] or call.steps
        try:
            report = checked_run(begin(call.program, machine, engine=self.options["engine"], check=watched, max_steps=most))
        except ProgramError as error:
            raise call.at_its_line(error) from None
        if not report.result.halted:
            raise ProgramError(f"{self.source.name}: it has not ended after {report.result.steps:,} instructions; give "
                               "max_steps= where it needs more")
        result = call.results(report.result.memory)
        expected = self.expected(*given, **named)
        difference = None if expected is None else distance(result, expected, call.limit)
        return ArrayReport(result, expected, difference, call.limit, call.range_from, call.program, machine, report)

    def lower(self, *given: Any, **named: Any) -> str:
        """The FLEQ program as text, each instruction with its line of the source."""
        call = _Call(self, given, named)
        return listing(call.program, call.written.lines)

    def program(self, *given: Any, **named: Any) -> FleqProgram:
        """The FLEQ program."""
        return _Call(self, given, named).program

    def program_with_lines(self, *given: Any, **named: Any) -> FleqProgram:
        """The FLEQ program with what it returns, its options, and the line of each instruction.

        An instruction that has no line goes with the one before.
        """
        call = _Call(self, given, named)
        lines: list[int] = []
        for number in range(len(call.program.instructions)):
            line = call.written.lines.get(number)
            lines.append(line.number if line is not None else lines[-1] if lines else self.source.line(self.source.node))
        preferred = {name: self.options[name] for name in ("heads", "precision", "design")}
        return replace(call.program, lines=tuple(lines), results=tuple(call.returned), preferred=preferred,
                       listing=listing(call.program, call.written.lines))

    def largest(self, *given: Any, **named: Any) -> float:
        """The largest value, by size, in a run in NumPy: what the range must hold."""
        return _Call(self.with_options(range=None), given, named).ran.largest

    def machine(self, *given: Any, **named: Any) -> FleqMachine:
        """The machine that runs the function for arguments of these shapes and sizes."""
        return _Call(self, given, named).machine()

    def as_layer(self, *given: Any, checkpoint: bool = True, **named: Any) -> nn.Module:
        """The function as a layer of another network, with gradients, for arguments of these shapes and sizes.

        The layer takes a tensor for each argument that is an array or a number with a point, in the order of the function.
        Integers are constants of the program. Values must stay within the range that the arguments given here lead to, or
        that the option `range` says. See docs/gradients.md.
        """
        from punchcard.python.arrays.layer import Argument, ArrayLayer

        call = _Call(self, tuple(map(_plain_array, given)), {name: _plain_array(value) for name, value in named.items()})
        stored, ends, machine = call.written.parameters, call.written.results, call.machine()
        parameters = [Argument(name, shape, stored[name].turned) for name, shape in call.shapes.items()]
        results = [Argument(end.variable, shape, end.turned) for end, shape in zip(ends, call.code.shapes, strict=True)]
        layer = machine.as_layer(
            call.program, [stored[p.name].variable for p in parameters], list(dict.fromkeys(end.variable for end in ends)),
            engine=self.options["engine"], checkpoint=checkpoint,
            max_steps=self.options["max_steps"] or max(call.steps, machine.default_max_steps or 0))
        return ArrayLayer(cast("ProgramLayer", layer), parameters, results, one=call.code.one)

    def with_options(self, **options: Any) -> ArrayProgram:
        """The same function with other options."""
        return ArrayProgram(self.source, self.function, **{**self.options, **options})

    def expected(self, *given: Any, **named: Any) -> Any:
        """What the plain function returns in NumPy; None where the function was only parsed."""
        if self.function is None:
            return None
        arguments = self._bound(given, named)
        plain = {name: value if is_constant(value) else _own(name, value) for name, value in arguments.items()}
        token = _PLAIN.set(True)
        try:
            with np.errstate(all="ignore"):
                return self.function(**plain)
        except PunchcardError:
            raise
        except Exception as error:  # whatever the plain function does
            raise ProgramError(f"{self.source.name}: the plain function fails in NumPy: {type(error).__name__}: "
                               f"{shortened(str(error))}") from error
        finally:
            _PLAIN.reset(token)

    # The passes, kept by what they depend on

    def _bound(self, given: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
        def refuse(message: str) -> Any:
            raise ArgumentError(message)

        return bound(self.source, self.defaults, given, named, refuse, wrap=lambda value: value)

    def lowered(
        self, key: Any, shapes: dict[str, tuple[int, ...]], kinds: dict[str, Kinds], constants: dict[str, Any]
    ) -> LoweredFunction:
        if key not in self._lowered:
            self._lowered[key] = lower(self.source, shapes, kinds, constants)
        return self._lowered[key]

    def written(self, key: Any, code: LoweredFunction, ran: Ran, limit: float) -> GeneratedProgram:
        functions = functions_for(ran.domains, limit)
        full = (key, limit, tuple(sorted(f.name for f in functions.values())))
        if full not in self._written:
            self._written[full] = generate(code.code, code.parameters, code.results, functions, limit)
        return self._written[full]


class _Call:
    """One call: its arguments, the run in NumPy, the range and the program."""

    def __init__(self, owner: ArrayProgram, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        self.owner = owner
        arguments = owner._bound(given, named)
        constants = {name: value for name, value in arguments.items() if is_constant(value)}
        data = {name: as_data(name, value) for name, value in arguments.items() if not is_constant(value)}
        self.shapes = shapes = {name: array.shape for name, array in data.items()}
        kinds = {name: kinds_of(typed(name, arguments[name])) or REAL for name in data}
        key = (tuple(shapes.items()), tuple(kinds.values()), outside(owner.source),
               tuple((name, repr(value)) for name, value in constants.items()))  # 1 and True are equal
        self.code = owner.lowered(key, shapes, kinds, constants)
        values = {self.code.parameters[name]: _stored(array) for name, array in data.items()}
        self.ran = dry_run(self.code.code, values)
        largest = self.ran.largest
        limit = owner.options["range"]
        self.range_from = "given" if limit is not None else "found by a run in NumPy, with head room"
        self.limit = range_for(largest) if limit is None else float(limit)
        self._check_size(data, largest)
        self._check_comparisons()
        self.written = owner.written(key, self.code, self.ran, self.limit)
        punched = {stored.variable: _stored(data[name]).T if stored.turned else _stored(data[name])
                   for name, stored in self.written.parameters.items()}
        self.program = self.written.program.with_values(punched)

    def _check_size(self, data: Mapping[str, np.ndarray], largest: float) -> None:
        if largest <= self.limit:
            return
        need = f"give range={range_for(largest):g} or more"
        for name, array in data.items():
            if np.abs(array).max() > self.limit:
                raise ProgramError(f"{self.owner.source.name}: {name} holds {np.abs(array).max():g}, beyond the range "
                                   f"±{self.limit:g}; {need}")
        where = self.ran.where
        if where is not None:
            where.source.fail(where.node, f"a value of {largest:g} leaves the range ±{self.limit:g}", need)

    def _check_comparisons(self) -> None:
        """Numbers that the machine's errors could turn must not be compared; those that it has to the last bit may be."""
        single = self.owner.options["precision"] != "float64"
        closest = self.ran.closest_of_all if single else self.ran.closest
        zone = dead_zone(self.limit, single=single)
        if closest is not None and closest[0] < zone:
            difference, line = closest
            line.source.fail(line.node,
                             f"a comparison of numbers that differ by {difference:.1e}: the machine tells apart what "
                             f"differs by {zone:.1e}, at the range ±{self.limit:g}",
                             "leave a larger margin")

    def machine(self) -> FleqMachine:
        options = self.owner.options
        sizes = FleqMachine.sizes_for(self.program)
        names = tuple(sorted(sizes["functions"]))
        return _machine(names, sizes["size"], _rounded(sizes["memory"]), _rounded(sizes["instructions"]), self.limit,
                        options["heads"], options["precision"], options["design"])

    @property
    def steps(self) -> int:
        """Instructions that the run makes: counted by the interpreter for a short one, for a long one a limit."""
        if self.ran.operations > LOOKED_AT:
            return 40 * self.ran.operations
        interpreter = FleqInterpreter(self.program, check_range=False)
        interpreter.run(40 * self.ran.operations + 1000)
        return interpreter.steps + 1

    def results(self, memory: Mapping[str, np.ndarray]) -> Any:
        """What the function returns, as NumPy has it."""
        found = [each.of(memory) for each in self.returned]
        return found[0] if self.code.one else tuple(found)

    @property
    def returned(self) -> list[Returned]:
        """Where the values are that the function returns."""
        return [Returned(stored.variable, shape, stored.turned, self.ran.values[register])
                for stored, shape, register in zip(self.written.results, self.code.shapes, self.code.results, strict=True)]

    def at_its_line(self, error: ProgramError) -> ProgramError:
        """An error of the machine, at the line of the source that its instruction is for."""
        found = re.search(r"instruction (\d+)", str(error))
        line = self.written.lines.get(int(found[1])) if found is not None else None
        if line is None:
            return error
        said = str(error).replace("declare a larger one with .range", "give a larger range=")
        column = int(getattr(line.node, "col_offset", 0)) + 1 + line.source.indent
        return Unsupported(said, file=line.source.file, line=line.source.line(line.node), column=column,
                           text=" " * line.source.indent + line.source.lines[int(getattr(line.node, "lineno", 1)) - 1])


@lru_cache(maxsize=32)
def _machine(names: tuple[str, ...], size: int, memory: int, instructions: int, limit: float, heads: int, precision: str,
             design: str) -> FleqMachine:
    """Machines that are there already are used again: they depend on sizes alone."""
    own = {block.name: block for block in blocks_for({}, names, limit, heads)}
    return FleqMachine(functions=[own.get(name, name) for name in names], size=size, memory=memory,
                       instructions=instructions,
                       range=limit, heads=heads, precision=precision, design=design)


def _rounded(count: int) -> int:
    return ROOM * math.ceil(count / ROOM)


def _stored(array: np.ndarray) -> np.ndarray:
    """As a matrix: a vector is a column."""
    return array.reshape(1, 1) if array.ndim == 0 else array.reshape(-1, 1) if array.ndim == 1 else array


def _plain_array(value: Any) -> Any:
    """A tensor as an array."""
    return value.detach().cpu().numpy() if hasattr(value, "detach") else value


def _own(name: str, value: Any) -> Any:
    """An argument for the plain function, which may change it."""
    array = typed(name, value)
    return array if array.ndim else float(array) if array.dtype.kind == "f" else array[()]


def _defaults(function: Callable[..., Any]) -> dict[str, Any]:
    import inspect

    parameters = inspect.signature(function).parameters
    return {name: p.default for name, p in parameters.items() if p.default is not p.empty}
