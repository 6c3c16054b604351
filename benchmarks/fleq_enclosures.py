"""The errors of FLEQ's functions over their whole range: the table of docs/proof-fleq.md.

    python -m benchmarks.fleq_enclosures
"""

from __future__ import annotations

from typing import Any

from punchcard.machines.fleq.machine import FleqMachine

MACHINES: tuple[tuple[dict[str, Any], tuple[str, ...]], ...] = (
    ({}, ("add", "transpose", "mul", "sigmoid", "tanh", "exp_m16_4", "inverse", "sqrt", "log_0d0625_16", "sin_m16_16")),
    ({"heads": 2}, ("mul",)), ({"heads": 3}, ("mul",)), ({"anchors": True}, ("mul",)),
)


def main() -> None:
    """Print a row for each function."""
    for options, functions in MACHINES:
        machine = FleqMachine(functions=functions, size=4, memory=4, instructions=4, **options)
        for name, block in machine.blocks.items():
            found = block.enclosure(machine.scale)
            about = " ".join([name, *(f"{option} {value}" for option, value in options.items())])
            parts = " | ".join(f"{part:.3g}" for part in (found.truncation, found.rounding, found.error))
            print(f"| {about} | {found.over} | {parts} |")


if __name__ == "__main__":
    main()
