"""Punchcard: transformers whose weights are set by formula, run in a loop as programmable computers.

    import punchcard

    program = punchcard.load("examples/multiply.subleq")
    report = punchcard.run(program)
    report.result.memory["product"], report.agrees

Names are imported when they are first used, so that `import punchcard` and `punchcard --help` do not wait for torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from punchcard.lazy import lazy_names

if TYPE_CHECKING:
    from punchcard import arrays, export, ground_truth, language_models, learning, linalg, sweep
    from punchcard.api import assemble, boot, build, check, disassemble, kinds, load, resume, run
    from punchcard.budget import max_memory
    from punchcard.calculator import Calculation, calc
    from punchcard.cli import command_line
    from punchcard.engines import Controls
    from punchcard.errors import PunchcardError
    from punchcard.export.circuit_builder import circuit
    from punchcard.export.layer import as_layer
    from punchcard.language_models.fusion.composition import fuse
    from punchcard.language_models.widened.widening import widen
    from punchcard.learning import learn, predict
    from punchcard.machines.base import Machine
    from punchcard.machines.fleq.isa import FleqProgram
    from punchcard.machines.fleq.machine import FleqMachine
    from punchcard.machines.registry import Registry
    from punchcard.machines.result import Report, Result
    from punchcard.machines.riscv.machine import RiscvMachine
    from punchcard.machines.riscv.program import RiscvProgram
    from punchcard.machines.subleq.isa import Program
    from punchcard.machines.subleq.machine import SubleqMachine
    from punchcard.machines.von_neumann.isa import Image
    from punchcard.machines.von_neumann.machine import VonNeumannMachine
    from punchcard.proof.prover import prove, verify
    from punchcard.python.program import program
    from punchcard.trace import observe
    from punchcard.transformer.model import LoopedTransformer
    from punchcard.transformer.precision import Precision
    from punchcard.viewer.notebook import view
    from punchcard.viewer.pictures import plot

__version__ = "0.2.0"

__all__ = [
    "Calculation", "Controls", "FleqMachine", "FleqProgram", "Image", "LoopedTransformer", "Machine", "Precision",
    "Program", "PunchcardError", "Registry", "Report", "Result", "RiscvMachine", "RiscvProgram", "SubleqMachine",
    "VonNeumannMachine", "arrays", "as_layer", "assemble", "boot", "build", "calc", "check", "circuit", "command_line",
    "disassemble", "export", "fuse", "ground_truth", "kinds", "language_models", "learn", "learning", "linalg", "load",
    "max_memory", "observe", "plot", "predict", "program", "prove", "resume", "run", "sweep", "verify", "view", "widen",
]

__getattr__, __dir__, HOMES = lazy_names("punchcard", (
    "punchcard.api:assemble boot build check disassemble kinds load resume run",
    "punchcard.arrays",
    "punchcard.budget:max_memory",
    "punchcard.calculator:Calculation calc",
    "punchcard.cli:command_line",
    "punchcard.engines:Controls",
    "punchcard.errors:PunchcardError",
    "punchcard.export",
    "punchcard.export.circuit_builder:circuit",
    "punchcard.export.layer:as_layer",
    "punchcard.ground_truth",
    "punchcard.language_models",
    "punchcard.language_models.fusion.composition:fuse",
    "punchcard.language_models.widened.widening:widen",
    "punchcard.learning",
    "punchcard.learning:learn predict",
    "punchcard.linalg",
    "punchcard.machines.base:Machine",
    "punchcard.machines.fleq.isa:FleqProgram",
    "punchcard.machines.fleq.machine:FleqMachine",
    "punchcard.machines.registry:Registry",
    "punchcard.machines.result:Report Result",
    "punchcard.machines.riscv.machine:RiscvMachine",
    "punchcard.machines.riscv.program:RiscvProgram",
    "punchcard.machines.subleq.isa:Program",
    "punchcard.machines.subleq.machine:SubleqMachine",
    "punchcard.machines.von_neumann.isa:Image",
    "punchcard.machines.von_neumann.machine:VonNeumannMachine",
    "punchcard.proof.prover:prove verify",
    "punchcard.python.program:program",
    "punchcard.sweep",
    "punchcard.trace:observe",
    "punchcard.transformer.model:LoopedTransformer",
    "punchcard.transformer.precision:Precision",
    "punchcard.viewer.notebook:view",
    "punchcard.viewer.pictures:plot",
))
