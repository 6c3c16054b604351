"""Punchcard: transformers whose weights are set by formula, run in a loop as programmable computers.

    import punchcard

    program = punchcard.load("examples/multiply.subleq")
    report = punchcard.run(program)
    report.result.memory["product"], report.agrees

Names are imported when they are first used, so that `import punchcard` and `punchcard --help` do not wait for torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from punchcard import arrays, export
    from punchcard.api import (
        Registry,
        Report,
        Result,
        assemble,
        assemble_fleq,
        build,
        check,
        disassemble,
        kinds,
        load,
        load_machine,
        resume,
        run,
    )
    from punchcard.arrays import (
        abs,
        cos,
        dot,
        exp,
        eye,
        log,
        maximum,
        minimum,
        norm,
        ones,
        outer,
        relu,
        sigmoid,
        sin,
        softmax,
        sqrt,
        sum,
        tanh,
        where,
        zeros,
    )
    from punchcard.budget import max_memory
    from punchcard.calculator.calculation import Calculation, calc
    from punchcard.cli import command_line
    from punchcard.errors import PunchcardError
    from punchcard.learning import learn, predict
    from punchcard.linear_algebra import arnoldi, inverse, lanczos, least_squares, power_iteration, qr, solve
    from punchcard.machines.fleq.isa import FleqProgram
    from punchcard.machines.fleq.machine import FleqMachine
    from punchcard.machines.subleq.isa import Program
    from punchcard.machines.subleq.machine import SubleqMachine
    from punchcard.machines.von_neumann.isa import Image
    from punchcard.machines.von_neumann.machine import VonNeumannMachine
    from punchcard.python.program import program
    from punchcard.trace import observe
    from punchcard.transformer.model import LoopedTransformer
    from punchcard.transformer.precision import Precision

__version__ = "0.2.0"

_HOMES = {
    "Calculation": "punchcard.calculator",
    "FleqMachine": "punchcard.machines.fleq.machine",
    "FleqProgram": "punchcard.machines.fleq.isa",
    "Image": "punchcard.machines.von_neumann.isa",
    "LoopedTransformer": "punchcard.transformer.model",
    "Precision": "punchcard.transformer.precision",
    "Program": "punchcard.machines.subleq.isa",
    "PunchcardError": "punchcard.errors",
    "Registry": "punchcard.api",
    "Report": "punchcard.api",
    "Result": "punchcard.api",
    "SubleqMachine": "punchcard.machines.subleq.machine",
    "VonNeumannMachine": "punchcard.machines.von_neumann.machine",
    "abs": "punchcard.arrays",
    "arnoldi": "punchcard.linear_algebra",
    "arrays": "punchcard.arrays",
    "assemble": "punchcard.api",
    "assemble_fleq": "punchcard.api",
    "build": "punchcard.api",
    "calc": "punchcard.calculator",
    "check": "punchcard.api",
    "command_line": "punchcard.cli",
    "cos": "punchcard.arrays",
    "disassemble": "punchcard.api",
    "dot": "punchcard.arrays",
    "exp": "punchcard.arrays",
    "export": "punchcard.export",
    "eye": "punchcard.arrays",
    "inverse": "punchcard.linear_algebra",
    "kinds": "punchcard.api",
    "lanczos": "punchcard.linear_algebra",
    "learn": "punchcard.learning",
    "least_squares": "punchcard.linear_algebra",
    "load": "punchcard.api",
    "load_machine": "punchcard.api",
    "log": "punchcard.arrays",
    "max_memory": "punchcard.budget",
    "maximum": "punchcard.arrays",
    "minimum": "punchcard.arrays",
    "norm": "punchcard.arrays",
    "observe": "punchcard.trace",
    "ones": "punchcard.arrays",
    "outer": "punchcard.arrays",
    "power_iteration": "punchcard.linear_algebra",
    "predict": "punchcard.learning",
    "program": "punchcard.python.program",
    "qr": "punchcard.linear_algebra",
    "relu": "punchcard.arrays",
    "resume": "punchcard.api",
    "run": "punchcard.api",
    "sigmoid": "punchcard.arrays",
    "sin": "punchcard.arrays",
    "softmax": "punchcard.arrays",
    "solve": "punchcard.linear_algebra",
    "sqrt": "punchcard.arrays",
    "sum": "punchcard.arrays",
    "tanh": "punchcard.arrays",
    "where": "punchcard.arrays",
    "zeros": "punchcard.arrays",
}

__all__ = [
    "Calculation",
    "FleqMachine",
    "FleqProgram",
    "Image",
    "LoopedTransformer",
    "Precision",
    "Program",
    "PunchcardError",
    "Registry",
    "Report",
    "Result",
    "SubleqMachine",
    "VonNeumannMachine",
    "abs",
    "arnoldi",
    "arrays",
    "assemble",
    "assemble_fleq",
    "build",
    "calc",
    "check",
    "command_line",
    "cos",
    "disassemble",
    "dot",
    "exp",
    "export",
    "eye",
    "inverse",
    "kinds",
    "lanczos",
    "learn",
    "least_squares",
    "load",
    "load_machine",
    "log",
    "max_memory",
    "maximum",
    "minimum",
    "norm",
    "observe",
    "ones",
    "outer",
    "power_iteration",
    "predict",
    "program",
    "qr",
    "relu",
    "resume",
    "run",
    "sigmoid",
    "sin",
    "softmax",
    "solve",
    "sqrt",
    "sum",
    "tanh",
    "where",
    "zeros",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'punchcard' has no attribute {name!r}")
    home = import_module(_HOMES[name])
    return home if home.__name__ == f"punchcard.{name}" else getattr(home, name)  # a name may be a module's


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
