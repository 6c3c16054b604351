"""The gallery of the playground: a picture of each run, and what the package cannot make by itself, for its page.

    python -m docs.draw.gallery [ID ...]

A picture is a card: from left to right the loops of the run, from top to bottom entries that change in it, those of the
memory and below them those of the scratchpad. A +1 is a punched mark; a number is the wider the larger it is.
`turing.json.z` has the machines of examples/turing/turing.py, which is a file outside the package; `hello_c.json.z` the
recorded run of a program that a C compiler made.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from docs.draw.svg import EDGE, EXAMPLES, INK, PAPER, ROOT

import punchcard
from punchcard.card.formats import AnyArray
from punchcard.card.layout import Card
from punchcard.machines.registry import Registry, installed
from punchcard.viewer.html import recorded_data
from punchcard.viewer.playground import ADDRESS_BITS, IMAGE_BITS, deflated, gallery_entries, template
from punchcard.viewer.session import Session
from punchcard.viewer.stages import differing_columns, entries_of

GALLERY = ROOT / "src" / "punchcard" / "viewer" / "gallery"
WIDTH, HEIGHT, EDGES, CUT = 176, 100, 11, 13
ACROSS, DOWN = 44, 20
"""Marks from left to right, and from top to bottom."""
STATE_BITS, SYMBOL_BITS, SQUARE_BITS = (1, 2, 3, 4), (2, 3), (3, 4, 5)
RECORDED = 16
"""Loops that are recorded of a program in C: the last ones before its first output."""
FAR = 1 << 20
"""Loops after which nobody looks further."""


@cache
def machines() -> Registry:
    sys.path.insert(0, str(EXAMPLES / "turing"))
    try:
        from turing import TuringMachine  # type: ignore[import-not-found,unused-ignore]
    finally:
        sys.path.pop(0)
    return installed(TuringMachine)


def session_of(entry: Mapping[str, Any]) -> Session:
    """The run of a program of the gallery, on the machine that the page has for it."""
    text, suffix = (GALLERY / entry["file"]).read_text(), Path(entry["file"]).suffix
    sizes: dict[str, Any] = {}
    if suffix == ".c":
        program = punchcard.load(EXAMPLES / "riscv" / "bin" / "hello.elf")
        sizes = {"memory": 4096}
    elif suffix in (".asq", ".bf", ".py"):
        words: dict[str, Any] = {"word_bits": IMAGE_BITS, "memory": 1 << ADDRESS_BITS[-1]} if suffix == ".py" else {}
        program = machines().assemble(text, suffix, **words)
        fits = next(bits for bits in ADDRESS_BITS if len(program.words) <= 1 << bits)
        sizes = {"word_bits": IMAGE_BITS, "memory": 1 << fits}
    else:
        program = machines().assemble(text, suffix)
    if "bits" in entry:
        sizes = {"word_bits": entry["bits"], "design": "two-layer"}
    machine = machines().build(program, **sizes)
    return Session(machine, program, source=text, name=entry["title"], input=entry.get("input", "").encode())


def picture(entry: Mapping[str, Any]) -> str:
    """The history of a run, as a card."""
    rows = history(session_of(entry))
    down, across = rows.shape
    wide, high = (WIDTH - 2 * EDGES) / across, (HEIGHT - 2 * EDGES) / down
    tall = min(5.0, 0.66 * high)
    path = ""
    for (y, x), value in np.ndenumerate(rows):
        length = min(4.2, 0.72 * wide) * value
        if length > 0.3:
            path += f"M{EDGES + (x + 0.5) * wide - length / 2:.1f} {EDGES + (y + 0.5) * high:.1f}h{length:.1f}"
    return (f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {HEIGHT}'>"
            f"<path d='M{CUT} 1H{WIDTH - 1}V{HEIGHT - 1}H1V{CUT}z' fill='{PAPER}' stroke='{EDGE}'/>"
            f"<path d='{path}' stroke='{INK}' stroke-width='{tall:.1f}'/></svg>\n")


def history(session: Session) -> AnyArray:
    """Entries by loops, 0 to 1: those that change in the run, some of the memory and some of the scratchpad."""
    session.explore(60.0)
    end = session.timeline.end
    last = FAR if end is None else end.loops
    pad = session.layout.region("scratchpad")
    changed = np.zeros(session.layout.columns, bool)
    before = [copied(session.timeline.served(0).card)]

    def look(loop: int, card: Card) -> bool:
        changed[differing_columns(before[0], card)] = True
        before[0] = copied(card)
        return loop >= last

    last = min(last, session.timeline.watch(0, last, look, 600.0))
    changed[pad] = False
    beside = spread(np.flatnonzero(changed), DOWN)
    columns = np.concatenate([np.arange(pad.start, pad.stop), beside])
    loops = spread(np.arange(last + 1), ACROSS)
    seen = np.stack([entries_of(session.timeline.served(int(loop)).card, columns) for loop in loops], axis=-1)
    seen = seen / np.maximum(np.abs(seen).max(axis=-1, keepdims=True), 1)
    varies = [entries[(entries != entries[:, :1]).any(axis=1)] for entries in (
        seen[:, pad.stop - pad.start:].swapaxes(0, 1).reshape(-1, len(loops)), seen[:, 0])]
    memory = spread(varies[0], DOWN * 3 // 5)
    found: AnyArray = np.clip(np.concatenate([memory, spread(varies[1], DOWN - len(memory))]), 0, 1)
    return found


def spread(items: AnyArray, most: int) -> AnyArray:
    """At most so many of the items, from the first to the last."""
    return items if len(items) <= most else items[np.linspace(0, len(items) - 1, most).astype(int)]


def copied(card: Card) -> Card:
    """An engine goes on with its own card."""
    return card.clone() if isinstance(card, torch.Tensor) else card.copy()


def turing() -> dict[str, Any]:
    """Turing machines for states, symbols and squares of so many bits. The page says which of them a program uses."""
    machine_class: Any = machines().kind("turing").machine_class()
    program = machines().assemble("a 0 -> 0 S a\n", "turing")
    sizes = {}
    for q in STATE_BITS:
        for s in SYMBOL_BITS:
            for p in SQUARE_BITS:
                machine = machine_class(states=1 << q, symbols=(1 << s) - 1, squares=(1 << p) - 2)
                made = template(machine, program)
                made["about"] |= {"shown": [], "counter": None, "labels": {}}
                sizes[f"{q}/{s}/{p}"] = made
    most = f"{1 << STATE_BITS[-1]} states, {(1 << SYMBOL_BITS[-1]) - 1} symbols and {(1 << SQUARE_BITS[-1]) - 2} squares"
    return {"sizes": sizes, "most": most}


def hello_c() -> dict[str, Any]:
    entry = next(entry for entry in gallery_entries() if entry["id"] == "hello_c")
    session = session_of(entry)
    moment: int | None = 0
    while moment is not None and not session.timeline.served(moment // session.per_loop).traffic.written:
        moment = session.find("port", moment, seconds=60.0)
    last = (moment or 0) // session.per_loop
    return recorded_data(session, last - RECORDED, last)


def main(names: list[str]) -> None:
    for entry in gallery_entries():
        if not names or entry["id"] in names:
            (GALLERY / f"{entry['id']}.svg").write_text(picture(entry))
    for name, made in (("turing", turing), ("hello_c", hello_c)):
        if not names or name in names:
            (GALLERY / f"{name}.json.z").write_bytes(deflated(made()))


if __name__ == "__main__":
    main(sys.argv[1:])
