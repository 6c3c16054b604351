"""The least temperature that suffices in practice, by design, word size and columns.

    python benchmarks/temperature.py [--programs 64] [--steps 60]

For each shape the script tries temperatures 1, 2, 3, ... and prints the first at which all random programs agree with
the interpreter after every loop. It is a measurement, not a guarantee: machines use the hard temperature, which is
proved (docs/precision.md).
"""

from __future__ import annotations

import argparse
import random
from itertools import count

import torch

from punchcard.analysis.lockstep import compare
from punchcard.errors import EncodingError
from punchcard.isa.subleq import Halt, Program, Subleq
from punchcard.machines.subleq import DESIGNS, SubleqMachine
from punchcard.transformer.precision import Precision


def random_program(rng: random.Random, machine: SubleqMachine) -> Program:
    bits, cells, instructions = machine.sizes.word_bits, machine.sizes.memory, machine.sizes.instructions
    code = [Subleq(rng.randrange(cells), rng.randrange(cells), rng.randrange(instructions - 1))
            for _ in range(instructions - 1)]
    return Program.create([*code, Halt()], [rng.randint(-(1 << (bits - 1)), (1 << (bits - 1)) - 1) for _ in range(cells)])


def suffices(design: str, bits: int, columns: int, temperature: float, programs: int, steps: int) -> bool:
    cells = (columns - 3) * 2 // 5
    machine = SubleqMachine(word_bits=bits, memory=cells, instructions=columns - 3 - cells, design=design,
                            precision=Precision(temperature=temperature))
    rng = random.Random(f"{design} {bits} {columns}")
    try:
        return compare(machine, [random_program(rng, machine) for _ in range(programs)], steps).agrees
    except EncodingError:
        return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=64)
    parser.add_argument("--steps", type=int, default=60)
    options = parser.parse_args()
    torch.set_num_threads(1)
    print("design      bits  columns  least temperature that sufficed")
    for design in DESIGNS:
        for bits, columns in ((4, 64), (8, 64), (12, 64), (16, 64), (16, 16), (16, 200)):
            programs = max(4, options.programs * 16 // columns)
            least = next(t for t in count(1)
                         if suffices(design, bits, columns, float(t), programs, options.steps))
            print(f"{design:<12}{bits:>4}{columns:>9}  {least}", flush=True)


if __name__ == "__main__":
    main()
