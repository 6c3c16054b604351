"""From LLVM's intermediate code to PTX, which the driver of a GPU compiles: no CUDA is needed for that."""

from __future__ import annotations

from functools import lru_cache

from llvmlite import binding, ir

TRIPLE = "nvptx64-nvidia-cuda"
OLDEST, NEWEST = 70, 90
"""Compute capabilities, times ten: code for the newest runs on later ones."""


@lru_cache(maxsize=1)
def _target() -> binding.Target:
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    return binding.Target.from_triple(TRIPLE)


def ptx(module: ir.Module, capability: int = NEWEST) -> str:
    """The PTX of a module, optimised and verified."""
    machine = _target().create_target_machine(cpu=f"sm_{min(capability, NEWEST)}", opt=3)
    module.triple = TRIPLE
    module.data_layout = str(machine.target_data)
    parsed = binding.parse_assembly(str(module))
    parsed.verify()
    passes = binding.create_pass_builder(machine, binding.create_pipeline_tuning_options(speed_level=3))
    passes.getModulePassManager().run(parsed, passes)
    text: str = machine.emit_assembly(parsed)
    return text
