"""Every machine and design in every format that is installed: a whole run, compared at every loop in a fresh process.

    python -m benchmarks.interop            # one core; prints the table of docs/interop.md
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import torch
from tests.export_runs import CASES, case, opened_elsewhere

from punchcard import export
from punchcard.export.targets import TARGETS, missing_of

FORMATS = ("safetensors", "hf", "onnx", "transformer-lens")


def main() -> None:
    torch.set_num_threads(1)
    print("| machine | format | loops | largest difference | loops a CPU second | export, CPU s | folder, kB |")
    print("|---|---|---:|---:|---:|---:|---:|")
    here = [target for target in FORMATS if not missing_of(TARGETS[target].needs)]
    for name in CASES:
        machine, program = case(name)
        with tempfile.TemporaryDirectory() as place:
            took, size = {}, {}
            for target in here:
                folder = Path(place) / target
                started = time.process_time()
                export.write(target, machine, folder, program)
                took[target] = time.process_time() - started
                size[target] = sum(file.stat().st_size for file in folder.iterdir() if file.is_file())
            told = opened_elsewhere({target: Path(place) / target for target in here}, name)
        for target, each in told.items():
            print(f"| {name} | {target} | {each['loops']} | {each['difference']:.2g} | "
                  f"{each['loops'] / each['seconds']:,.0f} | {took[target]:.1f} | {size[target] / 1000:,.0f} |", flush=True)
    for target in FORMATS:
        if missing := missing_of(TARGETS[target].needs):
            print(f"{target} is left out: {', '.join(missing)} not installed")


if __name__ == "__main__":
    main()
