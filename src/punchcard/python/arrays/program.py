"""`ArrayProgram`: a function of arrays that runs on the FLEQ machine; see python/front_end.py for its calls.

    inverse.as_layer(A)   the function as a layer of another network, with gradients
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from punchcard.errors import ArgumentError, ProgramError, PunchcardError, shortened
from punchcard.machines.fleq.isa import FleqProgram
from punchcard.machines.fleq.machine import FleqMachine
from punchcard.machines.fleq.step_errors import FAR
from punchcard.python.arrays.call import LOOKED_AT, ArrayCall, Key, is_constant, typed
from punchcard.python.arrays.code_generation import GeneratedProgram
from punchcard.python.arrays.compiler import LoweredFunction
from punchcard.python.front_end import ProgramOptions, PythonProgram
from punchcard.python.report import ArrayReport, distance
from punchcard.python.source import FunctionSource

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class ArrayOptions(ProgramOptions):
    """Options of functions of arrays.

    range       a number above every value of the program, default: found by a run in NumPy
    heads       heads of a soft product, 1 to 3;  precision, design  those of the machine
    check       whether every instruction is compared, default: in runs of up to 5,000 operations
    """

    range: float | None = None
    heads: int = 3
    precision: Literal["float64", "float32"] = "float64"
    design: str = "compact"
    check: bool | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        FleqMachine.check_design(self.design)
        next(option for option in FleqMachine.kind.options if option.name == "heads").check(self.heads)
        if self.range is not None and not 1 <= self.range < math.inf:
            raise ArgumentError(f"program: range={self.range:g}: it must be 1 or more, and finite")


class ArrayProgram(PythonProgram[ArrayOptions, ArrayCall]):
    """A function of arrays. Options are those of `ArrayOptions`. What the passes gave is kept by what it depends on."""

    machine_kind: ClassVar[str] = "fleq"
    about: ClassVar[str] = "arrays"
    option_type = ArrayOptions

    def __init__(self, source: FunctionSource, function: Callable[..., Any] | None = None, **options: object) -> None:
        super().__init__(source, function, **options)
        self.lowered: dict[Key, LoweredFunction] = {}
        self.generated: dict[Key, GeneratedProgram] = {}

    def compiled(self, *given: object, **named: object) -> ArrayCall:
        return ArrayCall(self, given, named)

    def call(self, *given: object, **named: object) -> Any:
        """The value of the function; one that is far from NumPy's is refused."""
        report = self.run(*given, **named)
        self.check_agreement(report.report)
        if report.difference is not None and report.difference > FAR[self.options.precision]:
            raise ProgramError(f"{self.source.name}: the result is {report.difference:.1e} of the range away from NumPy's: "
                               "errors have grown, or turned a comparison; run() has both results")
        return report.result

    def run(self, *given: object, **named: object) -> ArrayReport:
        """Run the function and compare it with NumPy."""
        call = self.compiled(*given, **named)
        check = call.ran.operations <= LOOKED_AT if self.options.check is None else self.options.check
        try:
            report = self.execute(call, check=check, max_steps=self.options.max_steps or call.steps)
        except ProgramError as error:
            raise call.at_its_line(error) from None
        self.check_end(report)
        result = call.results(report.result.memory)
        expected = self.expected(*given, **named)
        difference = None if expected is None else distance(result, expected, call.limit)
        return ArrayReport(result=result, expected=expected, machine=call.machine(), report=report, difference=difference,
                           range=call.limit, range_from=call.range_from, program=call.program)

    def program_with_lines(self, *given: object, **named: object) -> FleqProgram:
        """The FLEQ program with what it returns, its options, and the line of each instruction.

        An instruction that has no line goes with the one before.
        """
        call = self.compiled(*given, **named)
        lines: list[int] = []
        for number in range(len(call.program.instructions)):
            line = call.written.lines.get(number)
            lines.append(line.number if line is not None else lines[-1] if lines else self.source.line(self.source.node))
        preferred = {"heads": self.options.heads, "precision": self.options.precision, "design": self.options.design}
        return replace(call.program, lines=tuple(lines), results=tuple(call.returned), preferred=preferred,
                       listing=call.listing)

    def largest(self, *given: object, **named: object) -> float:
        """The largest value, by size, in a run in NumPy: what the range must hold."""
        return self.with_options(range=None).compiled(*given, **named).ran.largest

    def as_layer(self, *given: object, checkpoint: bool = True, **named: object) -> nn.Module:
        """The function as a layer of another network, with gradients, for arguments of these shapes and sizes.

        The layer takes a tensor for each argument that is an array or a number with a point, in the order of the function.
        Integers are constants of the program. Values must stay within the range that the arguments given here lead to, or
        that the option `range` says. See docs/gradients.md.
        """
        from punchcard.python.arrays.layer import Argument, ArrayLayer

        call = self.compiled(*map(_plain_array, given), **{name: _plain_array(value) for name, value in named.items()})
        stored, ends, machine = call.written.parameters, call.written.results, call.machine()
        parameters = [Argument(name, shape, stored[name].turned) for name, shape in call.shapes.items()]
        results = [Argument(end.variable, shape, end.turned) for end, shape in zip(ends, call.code.shapes, strict=True)]
        layer = machine.as_layer(
            call.program, [stored[p.name].variable for p in parameters], list(dict.fromkeys(end.variable for end in ends)),
            engine=self.options.engine, checkpoint=checkpoint,
            max_steps=self.options.max_steps or max(call.steps, machine.default_max_steps or 0))
        return ArrayLayer(layer, parameters, results, one=call.code.one)

    def expected(self, *given: object, **named: object) -> Any:
        """What the plain function returns in NumPy, or None if the function was only parsed."""
        if self.function is None:
            return None
        arguments = self.bind(given, named)
        try:
            with np.errstate(all="ignore"):
                return self.plain(**{name: value if is_constant(value) else _own(name, value)
                                     for name, value in arguments.items()})
        except PunchcardError:
            raise
        except Exception as error:  # whatever the plain function does
            raise ProgramError(f"{self.source.name}: the plain function fails in NumPy: {type(error).__name__}: "
                               f"{shortened(str(error))}") from error


def _plain_array(value: Any) -> Any:
    """A tensor as an array."""
    return value.detach().cpu().numpy() if hasattr(value, "detach") else value


def _own(name: str, value: Any) -> Any:
    """An argument for the plain function, which may change it."""
    array = typed(name, value)
    return array if array.ndim else float(array) if array.dtype.kind == "f" else array[()]
