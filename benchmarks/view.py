"""How long a view takes: to open, to step, and to jump. `python benchmarks/view.py` prints a table.

The first row is a process of its own, from its start to the replies that a page needs for its first picture. The others are
sessions in one process; a step is a state, and the attention of its layer, at the next moment.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import punchcard
from punchcard.viewer.session import Session, session_of

EXAMPLES = Path(__file__).parent.parent / "examples"
ENDLESS = ".data\na 1\nb 0\n.code\nloop: subleq a, b\n subleq a, a, loop\n halt\n"


def timed(call: Callable[[], Any]) -> float:
    """Seconds that a call takes."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def first_replies(file: Path) -> tuple[float, float]:
    """Seconds from the start of `punchcard view` to its address, and to all that a first picture needs."""
    started = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "punchcard", "view", str(file), "--no-open"], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        listening = time.perf_counter() - started
        for path in ("", "page.js", "page.css"):
            urllib.request.urlopen(address + path, timeout=60).read()
        for name, given in (("about", {}), ("state", {"moment": 0}), ("attention", {"loop": 0, "layer": 0, "head": 0})):
            request = urllib.request.Request(f"{address}api/{name}", json.dumps(given).encode(),
                                             {"Content-Type": "application/json"})
            urllib.request.urlopen(request, timeout=60).read()
        return listening, time.perf_counter() - started
    finally:
        process.terminate()
        process.wait()


def stepped(session: Session, first: int, count: int) -> list[float]:
    """Seconds of each step from a moment on."""
    def step(moment: int) -> None:
        state = session.state(moment)
        if session.machine.weights.layers[state["layer"]].heads and state["ended"] is None:
            session.attention(state["loop"], state["layer"], 0)

    session.state(first)
    return [timed(lambda moment=moment: step(moment)) for moment in range(first + 1, first + count + 1)]  # type: ignore[misc]


def row(name: str, session: Session, opening: float, steps: list[float]) -> None:
    """A line of the table."""
    jump = timed(lambda: session.state(session.explore(5)["known_loops"] // 2 * session.per_loop))
    print(f"{name:44} {opening:8.3f} {1000 * statistics.median(steps):10.1f} {1000 * max(steps):10.1f} {jump:8.3f}")


def main() -> None:
    """Print the table."""
    listening, painted = min(first_replies(EXAMPLES / "multiply.subleq") for _ in range(3))
    print(f"punchcard view multiply.subleq: address after {listening:.2f} s, first picture after {painted:.2f} s\n")
    print(f"{'session':44} {'open, s':>8} {'step, ms':>10} {'worst, ms':>10} {'jump, s':>8}")
    program = punchcard.load(EXAMPLES / "multiply.subleq")
    for design in ("paper", "two-layer", "one-layer"):
        machine = punchcard.build(program, design=design, memory=128, instructions=125)
        session = Session(machine, program)
        opening = timed(lambda: (session.about(), session.state(0)))  # noqa: B023
        row(f"subleq {design}, 256 columns", session, opening, stepped(session, 1, 40))
    files: tuple[tuple[str, str, dict[str, Any]], ...] = (
        ("fleq newton", "newton.fleq", {}), ("image sort.asq", "von_neumann/sort.asq", {"memory": 32765}),
        ("image hello.bf", "von_neumann/hello.bf", {}), ("riscv collatz.elf", "riscv/bin/collatz.elf", {}),
    )
    for name, file, options in files:
        path = EXAMPLES / file
        loaded = punchcard.load(path)
        machine = punchcard.build(loaded, **options)
        session = session_of(machine, loaded, path, input=b"5 3 -7 30000\n" if machine.has_ports else b"")
        opening = timed(lambda: (session.about(), session.state(0)))  # noqa: B023
        row(f"{name}, {machine.layout.columns} columns", session, opening, stepped(session, 1, 24))
    endless = punchcard.assemble(ENDLESS)
    machine = punchcard.build(endless, design="two-layer")
    session = Session(machine, endless, max_steps=1_000_000)
    opening = timed(lambda: (session.about(), session.state(0)))
    row("subleq, a run of 1,000,000 loops", session, opening, stepped(session, 1, 24))


if __name__ == "__main__":
    main()
