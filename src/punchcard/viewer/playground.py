"""The playground: one page on which people write a program and see its run, without an install.

The page has the weights of some machines, for some sizes. They depend on nothing else: a program is punched on a card, in
the page. The equation runs there too, as in a file of `punchcard view --html --model`. A program of the gallery whose
language cannot be read in the page comes as such a view, or as one with recorded loops.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from punchcard.arguments import checked
from punchcard.files import write_atomic
from punchcard.machines.base import Machine
from punchcard.machines.registry import built_in
from punchcard.machines.subleq.machine import SubleqMachine
from punchcard.machines.subleq.text import assemble
from punchcard.machines.von_neumann.isa import Image
from punchcard.machines.von_neumann.languages.asq.assembler import library
from punchcard.machines.von_neumann.languages.brainfuck import DEFAULT_TAPE, routine_texts
from punchcard.machines.von_neumann.machine import VonNeumannMachine
from punchcard.viewer import page
from punchcard.viewer.html import computed_data, model_data
from punchcard.viewer.session import Session

BITS = (8, 16)
POINTER_BITS = (3, 4, 5, 6, 7, 8)
"""A card of the SUBLEQ machine has up to 2^8 columns."""
IMAGE_BITS = 16
ADDRESS_BITS = (6, 7, 8, 9, 10, 11)
"""A von Neumann machine has up to 2^11 words."""
TITLE = "Punchcard playground"
KINDS = {".subleq": ("subleq", "SUBLEQ"), ".asq": ("asq", "asq"), ".bf": ("brainfuck", "Brainfuck"),
         ".tm": ("turing", "Turing machine"), ".fleq": ("", "FLEQ"), ".py": ("", "Python"), ".c": ("", "C on RISC-V")}
"""By extension: the language, if the page can read it, and what people call it."""


def gallery_file(name: str) -> bytes:
    return resources.files("punchcard.viewer").joinpath("gallery").joinpath(name).read_bytes()


def gallery_entries() -> list[dict[str, Any]]:
    """The programs of the gallery, as they are listed."""
    found: list[dict[str, Any]] = json.loads(gallery_file("gallery.json"))
    return found


@cache
def gallery() -> list[dict[str, Any]]:
    """Programs to begin with, each with a title, what to look at, and a picture of its run."""
    found = gallery_entries()
    for entry in found:
        file = Path(entry["file"])
        language, kind = KINDS[file.suffix]
        entry |= {"kind": kind, "language": language, "picture": gallery_file(f"{entry['id']}.svg").decode()}
        if language:
            entry["text"] = gallery_file(file.name).decode()
        elif file.suffix == ".py":
            entry["image"] = _python(file.name)
    return found


def data() -> Mapping[str, Any]:
    """What the page is given: machines by family and size, what their languages need, and the gallery."""
    families = {"subleq": packed(_subleq()), "images": packed(_images()), "turing": _shipped("turing.json.z")}
    entries = [entry if "text" in entry or "image" in entry else {**entry, "view": _view(entry)} for entry in gallery()]
    return {"kind": "playground", "machines": families, "rooms": _rooms(), "library": library(), "gallery": entries,
            "brainfuck": {**routine_texts(), "tape": DEFAULT_TAPE}}


def packed(content: Mapping[str, Any]) -> str:
    """JSON as a page unpacks it: compressed, in base64."""
    return base64.b64encode(deflated(content)).decode("ascii")


def deflated(content: Mapping[str, Any]) -> bytes:
    """JSON, compressed."""
    return zlib.compress(json.dumps(content, separators=(",", ":"), allow_nan=False).encode(), 9)


def _shipped(name: str) -> str:
    """A compressed file of the gallery; `docs/draw/gallery.py` makes those."""
    return base64.b64encode(gallery_file(name)).decode("ascii")


def _rooms() -> dict[str, str]:
    """For which sizes the page has weights, by family, in a sentence."""
    turing: str = json.loads(zlib.decompress(gallery_file("turing.json.z")))["most"]
    room = {"subleq": f"cards of up to {1 << POINTER_BITS[-1]} columns, with words of {' or '.join(map(str, BITS))} bits",
            "images": f"memories of up to {1 << ADDRESS_BITS[-1]:,} words of {IMAGE_BITS} bits", "turing": f"up to {turing}"}
    return {family: f"This page has weights for {what}." for family, what in room.items()}


def _subleq() -> dict[str, Any]:
    """Machines with all columns that their pointers can name; the page says which of them a program uses."""
    program, sizes = assemble(".data\na 0\n.code\nhalt\n"), {}
    for bits in BITS:
        for length in POINTER_BITS:
            cells = (1 << length) // 2 - 2
            machine = SubleqMachine(word_bits=bits, memory=cells, instructions=(1 << length) - 3 - cells, design="two-layer")
            sizes[f"{bits}/{length}"] = template(machine, program)
    return {"sizes": sizes, "least": POINTER_BITS[0], "most": 1 << POINTER_BITS[-1]}


def _images() -> dict[str, Any]:
    sizes = {f"{IMAGE_BITS}/{length}": template(_image_machine(1 << length), Image((0, 0, 0))) for length in ADDRESS_BITS}
    return {"sizes": sizes, "least": ADDRESS_BITS[0], "most": 1 << ADDRESS_BITS[-1]}


def _image_machine(memory: int) -> VonNeumannMachine:
    return VonNeumannMachine(word_bits=IMAGE_BITS, memory=memory, precision="float64")


def template(machine: Machine[Any, Any], program: object) -> dict[str, Any]:
    """What a page knows of a machine whatever runs on it; the rest of `about` is that program's."""
    session = Session(machine, program)
    replies = [session.formulas(layer) for layer in range(session.layers)]
    formulas = [{**reply, "details": [[] for _ in reply["formulas"]]} for reply in replies]
    about: dict[str, Any] = {**session.about(), "facts": {}, "program": None, "column_names": {}, "columns_shown": []}
    return {"about": about, "model": model_data(machine.weights), "story": session.storyteller.plain(), "formulas": formulas}


def _python(name: str) -> dict[str, Any]:
    """A Python program as the words that it is compiled to, and the lines that they come from."""
    text = gallery_file(name).decode()
    image: Image = built_in().assemble(text, ".py", name, word_bits=IMAGE_BITS, memory=1 << ADDRESS_BITS[-1])
    return {"words": list(image.words), "labels": list(image.labels.items()), "lines": list(image.lines),
            "source": text.splitlines()}


def _view(entry: Mapping[str, Any]) -> str:
    """A run to be looked at: one that was recorded, or the model with the program's card."""
    if "recorded" in entry:
        return _shipped(entry["recorded"])
    text = gallery_file(entry["file"]).decode()
    program = built_in().assemble(text, Path(entry["file"]).suffix)
    session = Session(built_in().build(program), program, source=text, name=entry["title"])
    return packed(computed_data(session, None))


@cache
def playground_html() -> str:
    """The page as text."""
    return page.document(TITLE, data())


@checked
def write_playground(path: str | Path) -> int:
    """Write the page to a file; its size in bytes."""
    text = playground_html().encode()
    write_atomic(path, text)
    return len(text)
