"""The least temperature that suffices in practice, by design, word size and columns.

    python benchmarks/temperature.py [--programs 256] [--steps 120]

For each shape the script tries temperatures 1, 2, 3, ... and prints the first at which all random programs, and the
multiplication of the README, agree with the interpreter after every loop. It is a measurement, not a guarantee:
machines use the hard temperature, which is proved (docs/precision.md).
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

import torch
from tests.random_programs import random_program

from punchcard.errors import EncodingError
from punchcard.machines.lockstep import compare
from punchcard.machines.subleq.machine import SubleqMachine
from punchcard.machines.subleq.text import assemble
from punchcard.transformer.precision import Precision

MULTIPLY = assemble((Path(__file__).parent.parent / "examples" / "multiply.subleq").read_text())
LARGEST = 64


def suffices(design: str, bits: int, columns: int, temperature: float, programs: int, steps: int) -> bool:
    cells = (columns - 3) * 2 // 5
    machine = SubleqMachine(word_bits=bits, memory=cells, instructions=columns - 3 - cells, design=design,
                            precision=Precision(temperature=temperature))
    rng = random.Random(f"{design} {bits} {columns}")
    tried = [random_program(rng, bits, cells, machine.sizes.instructions) for _ in range(programs)]
    if bits >= 8 and columns >= 16:
        tried.append(MULTIPLY)
    try:
        return compare(machine, tried, steps).agrees
    except EncodingError:
        return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=256)
    parser.add_argument("--steps", type=int, default=120)
    options = parser.parse_args()
    torch.set_num_threads(1)
    print("design      bits  columns  least temperature that sufficed")
    for design in SubleqMachine.designs:
        for bits, columns in ((4, 64), (8, 64), (12, 64), (16, 64), (16, 18), (16, 200)):
            programs = max(4, options.programs * 16 // columns)
            least = next((t for t in range(1, LARGEST + 1)
                          if suffices(design, bits, columns, float(t), programs, options.steps)), f"over {LARGEST}")
            print(f"{design:<12}{bits:>4}{columns:>9}  {least}", flush=True)


if __name__ == "__main__":
    main()
