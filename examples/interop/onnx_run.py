"""A whole program in one call of onnxruntime: a batch of three products, each until it halts.

    pip install 'punchcard[onnx]'
    python examples/interop/onnx_run.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
import torch

import punchcard

program = punchcard.load(Path(__file__).parent.parent / "multiply.subleq")
machine = punchcard.build(program, design="one-layer")
model = punchcard.export.onnx.run_model(machine)
session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])

programs = [program.with_values({"a": a, "b": b}) for a, b in ((7, 9), (12, 3), (-5, 20))]
cards = np.stack([machine.punch(each).numpy() for each in programs])
last, made = session.run(None, {"card": cards, "loops": np.array(10_000)})
for each, card, loops in zip(programs, last, made, strict=True):
    values = machine.values(each, machine.read_own(each, torch.from_numpy(card)))
    print(f"{values['a']} * {each.memory[1]} = {values['product']} in {loops} loops")
products = [machine.read(torch.from_numpy(card)).memory[2] for card in last]
