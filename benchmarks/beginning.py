"""What a run on the lowered engine costs before its first loop: CPU seconds, memory, and bytes for each column.

    python benchmarks/beginning.py [--columns 1024,65536,1048576,4194304]

Each line is measured in a process of its own, with code that an earlier process compiled and kept. `begin` is building the
machine, packing the card and preparing the run; imports are a column of their own. `memory` is the largest resident size
less that after the imports. `speed` is the best of
seven runs of a loop that works on few cells.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from typing import Any

SPIN = "\n".join(["loop: one left loop", "      Z Z loop", ". Z:0 one:1", ". left:0"])
LOOPS, RUNS = 5_000_000, 7
MACHINES = ("subleq", "von-neumann")


def begin(kind: str, columns: int) -> dict[str, float]:
    """One run, in this process."""
    import punchcard.engines.lowered  # noqa: F401  # so that it is counted with the imports
    from punchcard import assemble, build
    from punchcard.engines import prepare
    from punchcard.machines.von_neumann.languages.asq.assembler import assemble as assemble_image

    imports, before = time.process_time(), _resident()
    if kind == "subleq":
        program: Any = assemble(".data\none 1\nleft 0\nz 0\n.code\nloop: subleq one, left, loop\nsubleq z, z, loop\n")
        instructions = 16
        room: dict[str, Any] = {"memory": columns - instructions - 1, "instructions": instructions}
        precision = "float32" if columns < 1 << 20 else "float64"  # scores of longer addresses need more bits
        machine = build(program, design="two-layer", word_bits=16, precision=precision, **room)
    else:
        program = assemble_image(SPIN)
        machine = build(program, word_bits=32, memory=columns - 3)
    card = machine.pack(program)
    runner = prepare("lowered", machine.weights, machine.layout, card)
    begun = time.process_time()
    state = runner.states[0]  # type: ignore[attr-defined]
    runner.run(1000)
    memory = _resident() - before
    seconds = []
    for _ in range(RUNS):
        started = time.perf_counter()
        runner.run(LOOPS)
        seconds.append(time.perf_counter() - started)
    return {"imports": imports, "begin": begun - imports, "memory": memory / 1e6,
            "card": card.nbytes / machine.layout.columns, "state": len(state.buffer) / machine.layout.columns,
            "speed": LOOPS / min(seconds) / 1e6, "columns": machine.layout.columns}


def _resident() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--columns", type=lambda text: tuple(map(int, text.split(","))),
                        default=(1 << 10, 1 << 16, 1 << 20, 1 << 22))
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(begin(options.one[0], int(options.one[1]))))
        return
    titles = ("machine", "columns", "imports s", "begin s", "memory MB", "bytes a column", "M steps a second")
    print(f"| {' | '.join(titles)} |\n" + "|---" * len(titles) + "|")
    with tempfile.TemporaryDirectory() as folder:
        for kind in MACHINES:
            for columns in options.columns:
                for _ in range(2):  # the first one compiles
                    found = json.loads(subprocess.run(
                        [sys.executable, __file__, "--one", kind, str(columns)], check=True, capture_output=True,
                        env={**os.environ, "PUNCHCARD_CACHE": folder, "PUNCHCARD_MAX_MEMORY": "16G"}).stdout)
                print("| {} | {columns:,} | {imports:.2f} | {begin:.2f} | {memory:.0f} | {state:.0f} | {speed:.1f} |"
                      .format(kind, **found))


if __name__ == "__main__":
    main()
