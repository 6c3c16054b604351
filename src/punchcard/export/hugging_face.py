"""The export to Hugging Face: a model, a configuration and a processor that know nothing of Punchcard.

They are defined in `hugging_face_model.py`, which is copied into the folder with `card_values.py`.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from punchcard.arguments import checked
from punchcard.errors import PunchcardError
from punchcard.export.folder import summary, write_folder
from punchcard.export.targets import require
from punchcard.files import write_atomic
from punchcard.formatting import plain_data
from punchcard.machines.base import Machine
from punchcard.machines.registry import installed

if TYPE_CHECKING:
    from torch import Tensor

    from punchcard.export.hugging_face_model import PunchcardModel, PunchcardProcessor

FILES = {
    "config.json": "sizes, and the patterns of a card that has halted",
    "model.safetensors": "the weights, by the names of the equation",
    "hugging_face_model.py": "the model and the processor; it needs torch and transformers alone",
    "card_values.py": "reads values from a card",
    "processor_config.json": "the places of values on a card",
}
FRONT = '''---
library_name: transformers
license: mit
tags: [punchcard, looped-transformer, interpretability]
---

'''
OPEN = '''
It needs torch and transformers, and no Punchcard. The folder has its own modelling file, so you must trust its code:

```python
from transformers import AutoModel, AutoProcessor

model = AutoModel.from_pretrained(".", trust_remote_code=True)
processor = AutoProcessor.from_pretrained(".", trust_remote_code=True)
'''
HOW = OPEN + '''
cards = processor()                     # the program of this folder; processor(values={"name": 12}) changes a first value
end = model.run(**cards)                # until it has halted
print("loops", end.loops.tolist(), processor.decode(end.last_hidden_state)[0])

one = model(**cards, output_attentions=True, output_hidden_states=True)      # one loop
```

With Punchcard installed, `processor(text=...)` punches any other program that fits the machine.
'''
ALONE = OPEN + '''
import torch

card = torch.zeros(1, COLUMNS, ROWS, dtype=torch.DTYPE)                   # empty, on its side: positions by dimensions
one = model(inputs_embeds=card, output_attentions=True)                     # one loop
print(one.last_hidden_state.shape)
```

With Punchcard installed, `processor(text=...)` punches any program that fits the machine.
'''


@checked
def model(machine: Machine[Any, Any]) -> PunchcardModel:
    """The machine as a `PreTrainedModel`. `save_pretrained` writes a folder that opens without Punchcard."""
    require("hf")
    import torch

    from punchcard.export.hugging_face_model import PunchcardConfig, PunchcardModel

    _carry_their_code()
    about = summary(machine)
    shapes = [(layer.heads, layer.key_size, layer.hidden) for layer in machine.weights.layers]
    config = PunchcardConfig(
        hidden_size=machine.layout.width, shapes=shapes, halting=about["halting"], events=about["events"],
        machine={name: about[name] for name in ("title", "facts")}, dtype=machine.precision.name)
    with torch.device("cpu"):
        made: PunchcardModel = PunchcardModel(config).to(machine.precision.dtype)
    with torch.no_grad():
        made.load_state_dict({name: tensor.clone() for name, tensor in machine.model.state_dict().items()})
    made.eval()
    return made


@checked
def processor(machine: Machine[Any, Any], program: object = None) -> PunchcardProcessor:
    """What turns programs into cards of the machine, and cards into values."""
    require("hf")
    from punchcard.export.hugging_face_model import PunchcardProcessor

    _carry_their_code()
    about = summary(machine, program)
    made = PunchcardProcessor(plain_data(
        {"values": about["values"], "title": about["title"], "machine": machine.describe()}))
    made.card = None if program is None else machine.punch(program)
    return made


def _carry_their_code() -> None:
    """Saving any of the three copies the file that defines them, and says so in its JSON."""
    from punchcard.export.hugging_face_model import PunchcardConfig, PunchcardModel, PunchcardProcessor

    PunchcardConfig.register_for_auto_class()
    PunchcardModel.register_for_auto_class("AutoModel")
    PunchcardProcessor.register_for_auto_class("AutoProcessor")


def register() -> None:
    """Let `AutoConfig`, `AutoModel` and `AutoProcessor` of this process know the model without code from its folder."""
    require("hf")
    from transformers import AutoConfig, AutoModel, AutoProcessor

    from punchcard.export.hugging_face_model import PunchcardConfig, PunchcardModel, PunchcardProcessor

    AutoConfig.register(PunchcardConfig.model_type, PunchcardConfig, exist_ok=True)
    AutoModel.register(PunchcardConfig, PunchcardModel, exist_ok=True)
    AutoProcessor.register(PunchcardConfig, PunchcardProcessor, exist_ok=True)


def punch(described: Any, text: str) -> Tensor:
    """The card of a program, as text in its machine's first language, for a machine as it describes itself."""
    kind = installed().kind(str(described.get("machine") if isinstance(described, dict) else described))
    machine = kind.machine_class().from_description(described, "the processor's machine")
    if kind.languages[0].binary:
        raise PunchcardError(f"programs of a {kind.name} machine are files, not text: punch them with Punchcard")
    return machine.punch(kind.languages[0].assemble(text, "text"))


def write(machine: Machine[Any, Any], program: object, folder: Path) -> None:
    """The files of the folder."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()  # one file is written, which takes no time
    try:
        with TemporaryDirectory() as private:  # what safetensors writes, nobody else may read
            model(machine).save_pretrained(private)
            processor(machine, program).save_pretrained(private)
            for path in Path(private).iterdir():
                write_atomic(folder / path.name, path.read_bytes())
    finally:
        if shown:
            logging.enable_progress_bar()
    write_folder(machine, program, folder, title="A computer for Hugging Face", files=FILES, how=HOW, alone=ALONE,
                 front=FRONT)
