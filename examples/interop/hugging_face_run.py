"""A machine as a Hugging Face model: saved, opened again, and run; values go in and come out by name.

    pip install 'punchcard[hf]'
    python examples/interop/hugging_face_run.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from transformers import AutoModel, AutoProcessor

import punchcard

program = punchcard.load(Path(__file__).parent.parent / "newton.fleq")
machine = punchcard.build(program)
punchcard.export.hugging_face.register()  # with Punchcard installed, no code of the folder is run

with tempfile.TemporaryDirectory() as folder:
    punchcard.export.write("hf", machine, folder, program)
    model, processor = AutoModel.from_pretrained(folder), AutoProcessor.from_pretrained(folder)

matrix = [[4.0, 1.0], [2.0, 5.0]]
end = model.run(**processor(values={"A": matrix}))
inverse = processor.decode(end.last_hidden_state)[0]["variables"]["X"]
print(f"after {end.loops[0]} loops the inverse of {matrix} is {inverse}")
