"""A stock GPT-2 executes a program: the prompt is the program, `generate` writes the trace, no code of ours is loaded.

    python examples/interop/stock_gpt2.py
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import punchcard

EXAMPLES = Path(__file__).parent.parent


def main() -> None:
    program = punchcard.load(EXAMPLES / "multiply.subleq").with_values({"a": 6, "b": 7})
    with TemporaryDirectory() as folder:
        machine = punchcard.build(program, word_bits=8, precision="float32")
        punchcard.export.write("gpt2", machine, folder, program, positions=256)

        from transformers import AutoModelForCausalLM, AutoTokenizer

        model, tokenizer = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
        prompt = tokenizer((Path(folder) / "prompt.txt").read_text(), return_tensors="pt")
        trace = tokenizer.decode(model.generate(**prompt)[0, prompt.input_ids.shape[1] - 1 :])
    print(type(model).__name__, "writes:")
    lines = trace.strip().splitlines()
    print("\n".join([*lines[:4], "...", *lines[-3:]]))


if __name__ == "__main__":
    main()
