"""What a machine can be exported to: one table, which `write` and the command `export` read.

A target is a name, the extra of this package that it needs, and a function that writes a folder. To add one, add a line.
An export is a folder with a model, a card and a page.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec

from punchcard.errors import PunchcardError, did_you_mean
from punchcard.export.disguise_options import DISGUISE
from punchcard.machines.kind import Option


@dataclass(frozen=True)
class Target:
    """Somewhere to export to.

    extra   what to install beside this package, as `punchcard[extra]`; "": nothing
    needs   the modules that the extra brings
    write   "module:function", imported when it is called: `function(machine, program, folder)` writes files into a folder
            that is there, and returns remarks, or None. `program` is None if a machine is exported alone.
    options what `function` takes beside these, by name: flags of the command
    formats number formats of the machine that it takes, the default first; empty: all
    sometimes    files that it writes with some options only
    """

    name: str
    extra: str
    write: str
    about: str
    needs: tuple[str, ...] = ()
    options: tuple[Option, ...] = ()
    formats: tuple[str, ...] = ()
    sometimes: tuple[str, ...] = ()


GROUND_TRUTH = (
    *DISGUISE,
    Option("pairs", "pairs of clean and corrupt cards", least=1, most=10_000),
    Option("runs", "runs of the program with one thing changed", least=1, most=10_000),
    Option("loops", "the largest number of loops of a run", least=1, most=1_000_000),
)

STOCK_FORMATS = ("float32", "float64")
STOCK = (Option("positions", "positions of the context: tokens of prompt and trace together", least=64, most=65536),)

TARGETS = {target.name: target for target in (
    Target("transformer-lens", "transformer-lens", "punchcard.export.transformer_lens:write",
           "a bridge with hooks", ("transformer_lens",)),
    Target("onnx", "onnx", "punchcard.export.onnx:write",
           "one loop, and a run until it halts", ("onnx", "onnxscript", "onnxruntime")),
    Target("hf", "hf", "punchcard.export.hugging_face:write",
           "a Hugging Face model with its own modelling file", ("transformers",)),
    Target("safetensors", "", "punchcard.export.safetensors:write",
           "arrays and names, for any tool"),
    Target("ground-truth", "", "punchcard.ground_truth.program_folder:write",
           "a model, its circuit, and pairs of cards with the truth about them", options=GROUND_TRUTH,
           sometimes=("key.safetensors",)),
    Target("gpt2", "hf", "punchcard.language_models.stock.checkpoint:write_gpt2",
           "a stock GPT-2 whose prompt is the program", ("transformers", "tokenizers"), STOCK, STOCK_FORMATS),
    Target("llama", "hf", "punchcard.language_models.stock.checkpoint:write_llama",
           "a stock Llama whose prompt is the program", ("transformers", "tokenizers"), STOCK, STOCK_FORMATS),
)}


def require(name: str, purpose: str = "") -> Target:
    """The target of this name; one whose extra is not installed is refused in a line that names the extra.

    The line says what it is needed for: the purpose, default: an export to the target.
    """
    if name not in TARGETS:
        raise PunchcardError(f"unknown target {name!r}{did_you_mean(name, TARGETS)}: there are {', '.join(TARGETS)}")
    target = TARGETS[name]
    missing = missing_of(target.needs)
    if missing:
        raise PunchcardError(f"{purpose or f'an export to {name}'} needs {missing[0]}, which is not installed: "
                             f"pip install 'punchcard[{target.extra}]'")
    return target


def missing_of(modules: Iterable[str]) -> list[str]:
    """Those of these modules that are not installed."""
    return [module for module in modules if find_spec(module) is None]
