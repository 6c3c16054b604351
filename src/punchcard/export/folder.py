"""An export as a folder, and what every one holds beside the model: the card, the names of things, and a page about them.

    machine.json        rows, columns, heads and values by name; the patterns of a card that has halted
    card.safetensors    the program as it was punched: the tensor `card`, rows by columns
    card_values.py      reads the values on a card, for targets whose page does
    README.md           what this is, and how to run it without Punchcard
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from punchcard import __version__
from punchcard.arguments import checked
from punchcard.card.layout import Layout, Pattern
from punchcard.errors import PunchcardError, did_you_mean
from punchcard.export import card_values
from punchcard.export.names import Naming
from punchcard.export.targets import require
from punchcard.files import write_atomic
from punchcard.folders import MARK, README, atomic_folder
from punchcard.formatting import plain_data, plural
from punchcard.lazy import import_name
from punchcard.machines.base import Machine

MACHINE, CARD, VALUES = "machine.json", "card.safetensors", "card_values.py"
HOST = """
Programs of this machine read, write and end through a host, which looks at the card between two loops. The host belongs to
Punchcard, not to the model: without it a run ends at the first of the `events` in `machine.json`.
"""
EQUATION = '''def loop(X):
    for n in range(layers):
        K, Q, V, t, W1, b1, W2, b2 = (W[f"layers.{n}.{p}"] for p in "key query value temperature w1 b1 w2 b2".split())
        A = X
        for h in range(len(K)):
            A = A + V[h] @ X @ torch.softmax(t[h] * ((K[h] @ X).T @ (Q[h] @ X)), dim=0)
        X = A + W2 @ torch.relu(W1 @ A + b1) + b2
    return X
'''
"""One loop in torch, for pages, given the weights W by name and the number of `layers`."""
MOST_COLUMNS = 4096
"""Columns that are named one by one; regions name the others."""


@checked
def write(to: str, machine: Machine[Any, Any], folder: str | Path, program: object = None, *, overwrite: bool = False,
          remark: Callable[[str], None] = warnings.warn, **options: Any) -> list[str]:
    """Export a machine, and a program's card with it, to a folder. The names of the files that were written.

    A folder that is not there is made. One with other files than those of an export is refused; with `overwrite`, files of
    the same name are replaced there. `options` are those of the target, in the table of `targets.py`. `remark` is called
    with each thing that could not be done as asked; default: a warning.
    """
    target = require(to)
    known = {option.name: option for option in target.options}
    for name, value in options.items():
        if name not in known:
            raise PunchcardError(f"{name}={value!r} is not an option of an export to {to}{did_you_mean(name, known)}")
        known[name].check(value)
    if program is not None:
        machine.check_type(program)
        machine.check_fits(program)
    machine.layout.check_room(" for an export")
    with atomic_folder(folder, overwrite=overwrite, sometimes=target.sometimes) as place:
        remarks: Sequence[str] | None = import_name(target.write)(machine, program, place, **options)
        names = sorted(path.name for path in place.iterdir())
    for text in remarks or ():
        remark(text)
    return names


def description(machine: Machine[Any, Any], program: object = None) -> dict[str, Any]:
    """A machine, and a program on it, as plain data: with the names of rows, columns, heads, units and values."""
    return {**summary(machine, program), **Naming(machine).plain()}


def summary(machine: Machine[Any, Any], program: object = None) -> dict[str, Any]:
    """The same without the formulas, which take a second or two to write of a large machine."""
    layout = machine.layout
    named = [machine.column_name(column, program) for column in range(min(layout.columns, MOST_COLUMNS))]
    shown = machine.display_values(program) if program is not None else []
    return {
        "punchcard": __version__, "title": machine.title(), "facts": plain_data(machine.summary()),
        "layout": layout.describe(),
        **stops(machine),
        "values": [value.plain(layout) for value in shown], "columns": named,
    }


def stops(machine: Machine[Any, Any]) -> dict[str, list[dict[str, Any]]]:
    """Where a run without a host ends: the patterns of a program that has halted, and those at which a host is needed."""
    patterns = {"halting": machine.halting, "events": machine.events}
    return {name: [pattern_places(machine.layout, pattern) for pattern in some] for name, some in patterns.items()}


def pattern_places(layout: Layout, pattern: Pattern) -> dict[str, Any]:
    """A pattern by numbers: the bits in some rows of one column; 0 is either."""
    return {"rows": layout.rows(pattern.rows).start, "column": layout.pattern_column(pattern),
            "bits": list(pattern.bits)}


def write_folder(
    machine: Machine[Any, Any], program: object, folder: Path, *, title: str, files: Mapping[str, str], how: str, alone: str,
    decodes: bool = False, front: str = "",
) -> None:
    """Write what goes beside a model: machine.json, the program's card, and the page.

    The page has a `title`, what each of the model's `files` is, and `how` to run it; `alone` is the same without a program,
    on an empty card of ROWS and COLUMNS in DTYPE. `decodes`: the page imports `card_values.py`. `front` is put before it.
    """
    parts = [f"{json.dumps(name)}: {json.dumps(part)}" for name, part in description(machine, program).items()]
    write_atomic(folder / MACHINE, "{" + ",\n ".join(parts) + "}\n")
    if program is not None:
        from safetensors.torch import save

        write_atomic(folder / CARD, save({"card": machine.punch(program).contiguous()}))
    layers, layout = machine.weights.layers, machine.layout
    parameters, nonzero = machine.weights.parameter_count()
    listed = {**files, MACHINE: "rows, columns, heads and values by name; when a program has halted"}
    if program is not None:
        listed[CARD] = f"a program, punched: the tensor `card`, {layout.width} rows by {layout.columns} columns"
    else:
        how = (f"This folder has no {CARD}: `punchcard export FILE` writes one beside the model.\n\n"
               + alone.strip().replace("ROWS", str(layout.width)).replace("COLUMNS", str(layout.columns))
               .replace("DTYPE", machine.precision.name))
    if decodes:
        listed[VALUES] = "reads values from a card, by their places in `machine.json`"
        write_atomic(folder / VALUES, Path(card_values.__file__).read_bytes())
    host = HOST if machine.events else ""
    table = "\n".join(f"| `{name}` | {about} |" for name, about in listed.items())
    write_atomic(folder / README, f"""{front}# {title}

{machine.title()}.

A looped transformer whose weights are set by formula, not trained. Its input is a card: a matrix that holds a program
and its data. One pass of the model executes one instruction. The output of a pass is the input of the next.

| | |
|---|---|
| layers | {len(layers)} |
| heads per layer | {", ".join(str(layer.heads) for layer in layers)} |
| hidden units per layer | {", ".join(str(layer.hidden) for layer in layers)} |
| rows (width) | {layout.width} |
| columns of the card | {layout.columns} |
| parameters | {parameters:,}, of which {nonzero:,} are not zero |
| number format | {machine.precision.name} |
| loops before the first instruction | {plural(machine.design.warm_up, "loop")} |

The equation of a layer, for a card X:

    A = X + sum over heads h of V_h X softmax(lambda_h (K_h X)^T (Q_h X)), the softmax down each column
    f = A + W2 relu(W1 A + b1) + b2
{host}
## Files

| file | what it is |
|---|---|
{table}

## Run it

{how.strip()}

{MARK} {__version__}, after [*Looped Transformers as Programmable Computers*](https://arxiv.org/abs/2301.13196).
""")
