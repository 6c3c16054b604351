"""What a machine can be exported to: one table, which the command `export` reads.

A target is a name, the extra of this package that it needs, and a function that writes a folder. To add one, add a line.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec

from punchcard.errors import PunchcardError, did_you_mean


@dataclass(frozen=True)
class Target:
    """Somewhere to export to.

    extra   what to install beside this package, as `punchcard[extra]`; "": nothing
    needs   the modules that the extra brings
    write   "module:function", imported when it is called: `function(machine, program, folder)` writes files into a folder
            that is there. `program` is None where a machine is exported alone.
    """

    name: str
    extra: str
    write: str
    about: str
    needs: tuple[str, ...] = ()


TARGETS = {target.name: target for target in (
    Target("transformer-lens", "transformer-lens", "punchcard.export.transformer_lens:write",
           "a bridge with hooks", ("transformer_lens",)),
    Target("onnx", "onnx", "punchcard.export.onnx:write",
           "one loop, and a run until it halts", ("onnx", "onnxscript", "onnxruntime")),
    Target("hf", "hf", "punchcard.export.hugging_face:write",
           "a Hugging Face model with its own modelling file", ("transformers",)),
    Target("safetensors", "", "punchcard.export.safetensors:write",
           "arrays and names, for any tool"),
)}


def require(name: str) -> Target:
    """The target of this name; one whose extra is not installed is refused in a line that names the extra."""
    if name not in TARGETS:
        raise PunchcardError(f"unknown target {name!r}{did_you_mean(name, TARGETS)}: there are {', '.join(TARGETS)}")
    target = TARGETS[name]
    missing = missing_of(target.needs)
    if missing:
        raise PunchcardError(f"an export to {name} needs {missing[0]}, which is not installed: "
                             f"pip install 'punchcard[{target.extra}]'")
    return target


def missing_of(modules: Iterable[str]) -> list[str]:
    """Those of these modules that are not installed."""
    return [module for module in modules if find_spec(module) is None]
