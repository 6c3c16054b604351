"""Watch a transformer multiply: what each layer changes on the card, and what attention moves where.

    python examples/watch_attention.py
"""

from __future__ import annotations

from pathlib import Path

import punchcard


def main() -> None:
    program = punchcard.assemble((Path(__file__).parent / "multiply.subleq").read_text())
    machine = punchcard.SubleqMachine(word_bits=8, memory=6, instructions=5)

    with machine.observe(program) as seen:
        result = machine.run(program, max_steps=2)

    for snapshot in seen:
        if snapshot.layer == 0:
            print(f"loop {snapshot.loop + 1}")
        print(f"  layer {snapshot.layer + 1}")
        for head in range(snapshot.module.shape.heads):
            for move in snapshot.moves(head):
                print(f"    head {head + 1}: {move.target} takes {move.weight:g} of {move.source}")
        for rows, region in snapshot.changed():
            print(f"    changes {rows} in {region}")
    print(result.memory)


if __name__ == "__main__":
    main()
