"""A stock checkpoint: made from sizes, written as a folder that transformers opens, and read back from one.

    config.json, generation_config.json, model.safetensors     the model, by transformers' own names
    tokenizer.json, tokenizer_config.json                      words of the text are tokens
    machine.json                                               which machine, its sizes, and the form
    prompt.txt                                                 a program, where one was exported
    README.md                                                  how to run it without Punchcard
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from punchcard import __version__
from punchcard.budget import require
from punchcard.card.formats import FORMATS
from punchcard.errors import PrecisionError, PunchcardError, SizeError, StorageError, WeightsError, did_you_mean
from punchcard.files import TENSORS_LIMIT, check_readable, read_json, read_limited, write_atomic
from punchcard.folders import MARK, README, opening
from punchcard.language_models.stock import gpt2, llama
from punchcard.language_models.stock.decoder import StockDecoder
from punchcard.language_models.stock.image_language import VonNeumannText
from punchcard.language_models.stock.language import SubleqText
from punchcard.language_models.stock.positions import LEAST_POSITIONS, Positions
from punchcard.language_models.stock.structure import Structure, layer_plans, structure_of
from punchcard.language_models.stock.text import StockText
from punchcard.language_models.stock.tokenizer import write_tokenizer
from punchcard.language_models.stock.weights import StockWeights, compile_weights, margin_of
from punchcard.lazy import import_name
from punchcard.machines.base import Machine
from punchcard.machines.kind import Kind
from punchcard.machines.registry import Registry, installed
from punchcard.transformer.expression import Array

FORMS: dict[str, ModuleType] = {form.NAME: form for form in (gpt2, llama)}
TEXTS: dict[str, type[StockText]] = {text.machine: text for text in (SubleqText, VonNeumannText)}
"""Of the machines in this package; a machine of your own names its class as `stock` of its kind."""
DEFAULT_POSITIONS = 2048
MOST_POSITIONS = 1 << 16
SAMPLE = 256
CONFIG, GENERATION, MODEL = "config.json", "generation_config.json", "model.safetensors"
MACHINE, PROMPT = "machine.json", "prompt.txt"


@dataclass(frozen=True)
class StockCheckpoint:
    """A stock checkpoint: its form, the texts that it continues with, the number format, and the length of its context."""

    form: str
    text: StockText
    dtype: str = "float32"
    positions: int = DEFAULT_POSITIONS

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            raise PunchcardError(f"unknown form {self.form!r}{did_you_mean(self.form, FORMS)}: there are {', '.join(FORMS)}")
        margin_of(self.dtype)
        if not LEAST_POSITIONS <= self.positions <= MOST_POSITIONS:
            raise SizeError(f"positions={self.positions}: a context has {LEAST_POSITIONS} to {MOST_POSITIONS} positions")

    @property
    def placing(self) -> Positions:
        found: Positions = FORMS[self.form].positions(self.positions, self.text.looks_back)
        return found

    @cached_property
    def decoder(self) -> StockDecoder:
        """What it computes, over bits."""
        return self.text.decoder(self.placing)

    @cached_property
    def weights(self) -> StockWeights:
        """Its weights by formula. A context in which a head might not find its column is refused."""
        self.check_context()
        return compile_weights(self.decoder, self.placing, self.dtype)

    def check_context(self) -> None:
        """Refuse a context that is too long for the number format, with the longest that is not."""
        if reason := self.failure():
            most = self.largest_context()
            if not replace(self, positions=most).holds():
                raise WeightsError(f"a head of {self.text.machine} does not find its column in any context: {reason}")
            raise PrecisionError(f"positions={self.positions}: in {self.dtype} and {self.form} form, with "
                                 f"{list_sizes(self.text)}, every head finds its column up to {most} positions; use "
                                 f"{'a shorter context' if self.dtype == 'float64' else 'a shorter context or float64'}")

    def holds(self) -> bool:
        """Whether every head finds its column in every text."""
        return not self.failure()

    def failure(self) -> str:
        """Why a head does not find its column in some text, by the formula of its weights; "" where all do. A sample of
        tokens is enough: it says which rows are blank."""
        decoder = self.decoder
        some = np.unique(np.linspace(0, len(decoder.vocabulary) - 1, SAMPLE).astype(int))
        sample = replace(decoder, embedding=decoder.embedding[some], readout=decoder.readout[some])
        weights = compile_weights(sample, self.placing, self.dtype)
        positional = np.zeros(weights.bits, dtype=bool) if weights.table is None else weights.table.any(axis=0)
        try:
            layer_plans(weights, self.form, self.placing, (weights.embedding == -1).all(axis=0) & ~positional)
        except WeightsError as error:
            return str(error)
        return ""

    def largest_context(self) -> int:
        """The most positions for which every head finds its column, up to the limit of any."""
        low, high = LEAST_POSITIONS, MOST_POSITIONS
        if replace(self, positions=high).holds():
            return high
        while low < high:
            middle = (low + high + 1) // 2
            if replace(self, positions=middle).holds():
                low = middle
            else:
                high = middle - 1
        return low

    # Folders

    def write(self, folder: Path, program: object = None) -> None:
        """The files of the folder."""
        from safetensors.numpy import save

        self._require_room()
        form, weights = FORMS[self.form], self.weights
        held = FORMATS[self.dtype].array
        tensors = {name: np.ascontiguousarray(tensor.astype(held)) for name, tensor in form.tensors(weights).items()}
        write_atomic(folder / MODEL, save(tensors, metadata={"format": "pt"}))
        write_atomic(folder / CONFIG, json.dumps(form.config(weights), indent=2) + "\n")
        write_atomic(folder / GENERATION, json.dumps(_generation(weights), indent=2) + "\n")
        write_tokenizer(self.decoder.vocabulary, self.positions, folder)
        about = {"machine": self.text.machine, **self.text.sizes, "form": self.form, "dtype": self.dtype,
                 "positions": self.positions, "punchcard": __version__}
        write_atomic(folder / MACHINE, json.dumps(about, indent=2) + "\n")
        if program is not None:
            write_atomic(folder / PROMPT, self.text.prompt(program) + "\n")
        count = sum(tensor.size for tensor in tensors.values())
        write_atomic(folder / README, _page(self, count))

    def _require_room(self) -> None:
        width = 2 * max(128, 1 << (self.decoder.layout.width - 1).bit_length())
        table = self.positions if self.form == gpt2.NAME else 0
        require((2 * len(self.decoder.vocabulary) + table) * width * (8 + FORMATS[self.dtype].array.itemsize),
                f"a checkpoint with {len(self.decoder.vocabulary):,} tokens of width {width}")


def save(form: str, machine: Machine[Any, Any], program: object, folder: Path, positions: int = DEFAULT_POSITIONS) -> None:
    """Write a checkpoint with a machine's sizes and number format, and a program as its prompt."""
    made = StockCheckpoint(form, text_of(machine), machine.precision.name, positions)
    if program is not None:
        length = len(made.text.prompt(program).split())
        if length >= positions:
            raise SizeError(f"the prompt has {length} tokens, the context {positions} positions: use --positions "
                            f"{4 * length} or more")
    made.write(folder, program)


def text_of(machine: Machine[Any, Any]) -> StockText:
    """The texts of a machine's programs, for its sizes."""
    return _text_class(machine.kind, installed()).of(machine.sizes)


def _text_class(kind: Kind, machines: Registry) -> type[StockText]:
    """The texts of a kind: its own (`Kind.stock`), or those of this package."""
    named = kind.stock or TEXTS.get(kind.name, "")
    if not named:
        known = ", ".join(each.name for each in machines if each.stock or each.name in TEXTS)
        raise PunchcardError(f"a {kind.name} machine has no form as a stock checkpoint: there are {known}")
    found: type[StockText] = import_name(named) if isinstance(named, str) else named
    return found


def list_sizes(text: StockText) -> str:
    """The sizes of texts, for a message."""
    return ", ".join(f"{name} {value}" for name, value in text.sizes.items())


def write_gpt2(machine: Machine[Any, Any], program: object, folder: Path, positions: int = DEFAULT_POSITIONS) -> None:
    """The export to GPT-2's form."""
    save(gpt2.NAME, machine, program, folder, positions)


def write_llama(machine: Machine[Any, Any], program: object, folder: Path, positions: int = DEFAULT_POSITIONS) -> None:
    """The export to Llama's form."""
    save(llama.NAME, machine, program, folder, positions)


def open_checkpoint(folder: str | Path, machines: Registry | None = None) -> StockCheckpoint:
    """The checkpoint that a folder says it is, of one of these machines; its weights are read by `weights_in`."""
    place, known = Path(folder), machines or installed()
    needed = (MACHINE, CONFIG, GENERATION, MODEL)
    missing = [name for name in needed if not os.path.isfile(place / name)]
    if missing:
        what = f"it has no {missing[0]}" if os.path.isdir(place) else "there is no such folder"
        raise StorageError(f"{str(folder)!r} is not a stock checkpoint: {what}; one is a folder with {', '.join(needed)}, "
                           "which `punchcard export FILE --to gpt2 -o FOLDER` writes")
    about = read_json(place / MACHINE, "description of a machine")
    try:
        sizes = {name: value for name, value in about.items() if type(value) is int}
        text = _text_class(known.kind(about["machine"]), known).of(SimpleNamespace(**sizes))
        return StockCheckpoint(str(about["form"]), text, str(about["dtype"]), int(about["positions"]))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise StorageError(f"{str(place / MACHINE)!r} does not describe a stock checkpoint: {error!r}") from None


def weights_in(folder: str | Path, form: str = "") -> StockWeights:
    """The weights in a folder, over bits, as they are; `form` is the folder's own unless it is given."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    place = Path(folder)
    check_readable(place / MODEL, "checkpoint")
    try:
        tensors = load(read_limited(place / MODEL, "checkpoint", limit=TENSORS_LIMIT))
    except SafetensorError as error:
        raise StorageError(f"{str(place / MODEL)!r} is not a file of tensors: {error}") from None
    shape, config = FORMS[form or open_checkpoint(folder).form], read_json(place / CONFIG, "configuration of a model")
    noted = NotedTensors({name: tensor.astype(np.float64) for name, tensor in tensors.items()})
    with opening(place, "has another form than a stock checkpoint", WeightsError):
        found: StockWeights = shape.weights(noted, config)
    if others := noted.keys() - noted.taken:
        raise WeightsError(f"{MODEL} has {min(others)}, which is not a part of a stock checkpoint")
    for path, wanted in ((CONFIG, shape.config(found)), (GENERATION, _generation(found))):
        _check_equal(path, read_json(place / path, "configuration of a model"), wanted)
    return found


class NotedTensors(dict[str, Array]):
    """Tensors by name, and which of them were taken."""

    def __init__(self, tensors: Mapping[str, Array]) -> None:
        super().__init__(tensors)
        self.taken: set[str] = set()

    def __getitem__(self, name: str) -> Array:
        self.taken.add(name)
        return super().__getitem__(name)

    def __missing__(self, name: str) -> Array:
        raise WeightsError(f"the checkpoint has no {name}")


def _generation(weights: StockWeights) -> dict[str, Any]:
    """How `generate` chooses tokens, and where it ends."""
    return {"eos_token_id": weights.end, "pad_token_id": weights.end, "max_length": weights.positions, "do_sample": False}


def _check_equal(path: str, found: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Refuse a setting that transformers reads, and that an export does not write: the model would be another one."""
    for name in sorted({*found, *wanted}):
        if name not in wanted:
            raise WeightsError(f"{path} has {name} = {found[name]!r}: a stock checkpoint has no such setting")
        if name not in found or found[name] != wanted[name]:
            raise WeightsError(f"{path} has {name} = {found.get(name)!r}: this stock checkpoint has {wanted[name]!r}")


def structure_in(folder: str | Path, made: StockCheckpoint | None = None) -> Structure:
    """What the weights in a folder do, or `WeightsError`; `made` is what it says it is, if that is known."""
    found = made or open_checkpoint(folder)
    return structure_of(weights_in(folder, found.form), found.form, found.placing)


def _page(made: StockCheckpoint, count: int) -> str:
    architecture = {"gpt2": "GPT2LMHeadModel", "llama": "LlamaForCausalLM"}[made.form]
    sizes = "\n".join(f"| {name} | {value} |" for name, value in made.text.sizes.items())
    return f"""---
library_name: transformers
license: mit
tags: [punchcard, interpretability]
---

# A computer as a stock {architecture}

The prompt is a {made.text.machine} program, and the text that follows is its trace. The weights are set by formula, not
trained, and depend on sizes alone.

| | |
|---|---|
{sizes}
| positions | {made.positions} |
| tokens | {len(made.decoder.vocabulary)} |
| layers | {len(made.decoder.layers)} |
| parameters | {count:,} |
| number format | {made.dtype} |

## Run it

It needs torch and transformers, and no other code:

```python
from transformers import AutoModelForCausalLM, AutoTokenizer

model = AutoModelForCausalLM.from_pretrained(".")
tokenizer = AutoTokenizer.from_pretrained(".")
prompt = tokenizer(open("prompt.txt").read(), return_tensors="pt")
print(tokenizer.decode(model.generate(**prompt)[0]))
```

Narrower number formats than {made.dtype} give wrong tokens: an address and a position share one score, which they
cannot hold.

{MARK} {__version__}.
"""
