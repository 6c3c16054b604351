"""The playground: one page on which people write a SUBLEQ program and see its run, without an install.

The page has the weights of the two-layer machine for some word sizes and card sizes. They depend on nothing else: a program
is punched on a card, in the page. The equation runs there too, as in a file of `punchcard view --html --model`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from punchcard.arguments import checked
from punchcard.files import write_whole
from punchcard.machines.subleq.machine import SubleqMachine
from punchcard.machines.subleq.text import assemble
from punchcard.viewer import page
from punchcard.viewer.html import model_data
from punchcard.viewer.session import Session

BITS = (8, 16)
POINTER_BITS = (3, 4, 5, 6)
"""A card has up to 2^6 columns."""
TITLE = "Punchcard playground"


@cache
def gallery() -> list[dict[str, Any]]:
    """Programs to begin with. The first line of each is its title and word size, the second what to look at."""
    found = []
    folder = resources.files("punchcard.viewer").joinpath("gallery")
    for file in sorted(folder.iterdir(), key=lambda each: each.name):
        if file.name.endswith(".subleq"):
            text = file.read_text(encoding="utf-8")
            title, look, text = text.split("\n", 2)
            title, look = (line.removeprefix(";").strip() for line in (title, look))
            bits = next(bits for bits in BITS if f"{bits} bits" in title)
            found.append({"title": title.removesuffix(f", {bits} bits"), "look": look, "bits": bits, "text": text})
    return found


def data() -> Mapping[str, Any]:
    """What the page is given: machines by the bits of a word and of a pointer, and the gallery."""
    machines = {f"{bits}/{length}": _machine(bits, length) for bits in BITS for length in POINTER_BITS}
    return {"kind": "playground", "machines": machines, "bits": list(BITS), "least": POINTER_BITS[0],
            "most": 1 << POINTER_BITS[-1], "gallery": gallery()}


def _machine(bits: int, length: int) -> dict[str, Any]:
    """A machine with all columns that its pointers can name; the page says which of them a program uses."""
    cells = (1 << length) // 2 - 2
    machine = SubleqMachine(word_bits=bits, memory=cells, instructions=(1 << length) - 3 - cells, design="two-layer")
    program = assemble(".data\na 0\n.code\nhalt\n")
    session = Session(machine, program)
    replies = [session.formulas(layer) for layer in range(session.layers)]
    formulas = [{**reply, "details": [[] for _ in reply["formulas"]]} for reply in replies]
    return {"about": session.about(), "model": model_data(machine.weights), "story": session.storyteller.plain(),
            "formulas": formulas}


@cache
def playground_html() -> str:
    """The page as text."""
    return page.document(TITLE, data())


@checked
def write_playground(path: str | Path) -> int:
    """Write the page to a file; its size in bytes."""
    text = playground_html().encode()
    write_whole(path, text)
    return len(text)
