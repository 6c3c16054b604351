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
    from punchcard import export
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
    from punchcard.trace import observe
    from punchcard.transformer.model import LoopedTransformer
    from punchcard.transformer.precision import Precision

__version__ = "0.1.0"

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
    "arnoldi": "punchcard.linear_algebra",
    "assemble": "punchcard.api",
    "assemble_fleq": "punchcard.api",
    "build": "punchcard.api",
    "calc": "punchcard.calculator",
    "check": "punchcard.api",
    "command_line": "punchcard.cli",
    "disassemble": "punchcard.api",
    "export": "punchcard.export",
    "inverse": "punchcard.linear_algebra",
    "lanczos": "punchcard.linear_algebra",
    "learn": "punchcard.learning",
    "least_squares": "punchcard.linear_algebra",
    "load": "punchcard.api",
    "load_machine": "punchcard.api",
    "kinds": "punchcard.api",
    "max_memory": "punchcard.budget",
    "observe": "punchcard.trace",
    "power_iteration": "punchcard.linear_algebra",
    "predict": "punchcard.learning",
    "qr": "punchcard.linear_algebra",
    "resume": "punchcard.api",
    "run": "punchcard.api",
    "solve": "punchcard.linear_algebra",
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
    "arnoldi",
    "assemble",
    "assemble_fleq",
    "build",
    "calc",
    "check",
    "command_line",
    "disassemble",
    "export",
    "inverse",
    "kinds",
    "lanczos",
    "learn",
    "least_squares",
    "load",
    "load_machine",
    "max_memory",
    "observe",
    "power_iteration",
    "predict",
    "qr",
    "resume",
    "run",
    "solve",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'punchcard' has no attribute {name!r}")
    home = import_module(_HOMES[name])
    return home if home.__name__ == f"punchcard.{name}" else getattr(home, name)  # a name may be a module's


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
