"""The export to safetensors: the machine's own file, which `punchcard.Machine.load` reads, with names and a card beside it.

The arrays have the names of the equation: `layers.0.key` is K of all heads of the first layer, (heads, key size, rows).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from punchcard.export.folder import EQUATION, write_folder
from punchcard.machines.base import Machine

MODEL = "model.safetensors"

OPEN = '''
It needs torch and safetensors, and no Punchcard. One loop is one call of `loop`:

```python
import json
import torch
from safetensors.torch import load_file

W = load_file("model.safetensors")
machine = json.load(open("machine.json"))
layers = len(machine["layers"])

''' + EQUATION
BACK = '''```

With Punchcard, `punchcard.Machine.load("model.safetensors")` is the machine again.
'''
HOW = OPEN + '''
from card_values import decode


def halted(X):
    return any(all(bit == 0 or X[p["rows"] + i, p["column"]].sign() == bit for i, bit in enumerate(p["bits"]))
               for p in machine["halting"] + machine["events"])

card = load_file("card.safetensors")["card"]
for made in range(1, 10_000):
    card = loop(card)
    if halted(card):
        break
print("loops", made, decode(card, machine["values"]))
''' + BACK
ALONE = OPEN + '''
card = torch.zeros(ROWS, COLUMNS, dtype=torch.DTYPE)     # empty
print(loop(card).shape)
''' + BACK


def write(machine: Machine[Any, Any], program: object, folder: Path) -> None:
    """The files of the folder."""
    machine.save(folder / MODEL)
    files = {MODEL: "the arrays of every layer by name, and the machine's description in the metadata"}
    write_folder(machine, program, folder, title="A computer in safetensors", files=files, how=HOW, alone=ALONE,
                 decodes=True)
