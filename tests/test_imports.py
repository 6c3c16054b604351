"""Imports point one way, and two rules hold: weights never see a program, engines never see an instruction."""

from __future__ import annotations

import ast
import inspect
import re
from functools import cache
from pathlib import Path

import pytest

import punchcard
from punchcard.above import above
from punchcard.machines.fleq.machine import FleqMachine
from punchcard.machines.subleq.machine import SubleqMachine
from punchcard.machines.von_neumann.isa import DIALECTS
from punchcard.machines.von_neumann.machine import VonNeumannMachine

SOURCE = Path(inspect.getfile(punchcard)).parent

FLOORS = (
    ("errors",),
    ("above", "formatting", "files", "budget", "arguments"),
    ("words",),
    ("card", "arrays"),
    ("transformer",),
    ("primitives", "engines", "trace"),
    ("machines",),
    ("view", "export", "proof"),
    ("python",),
    ("calculator", "linear_algebra", "learning", "benchmark"),
    ("api",),
    ("cli",),
    ("__main__", "__init__"),
)
"""From the ground up. A room imports rooms of lower floors, and itself."""
FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}

TENSOR_FREE = ("isa", "kind", "registry", "interpreter", "streams", "functions", "oracle", "program", "calls",
               "brainfuck_oracle", "fast", "in_c", "dry_run", "fitted", "builder", "counter", "text",
               "assembler", "minsky", "languages", "source", "programs", "syntax", "exact", "semantics")
"""Files and folders on the side of programs, wherever in the rooms above the engines they are."""


@cache
def imports_of(path: Path, *, for_types: bool = True) -> tuple[str, ...]:
    """Every module that a file imports, as a dotted name; with for_types=False those that it imports when it runs."""
    found = list[str]()
    tree = ast.parse(path.read_text())
    if not for_types:
        tree.body = [node for node in tree.body
                     if not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            module = node.module or ""
            # `from punchcard import api` imports the module punchcard.api
            found += [f"{module}.{a.name}" for a in node.names] if module == "punchcard" else [module]
    return tuple(found)


BELOW_ALL = ("punchcard.errors", "punchcard.files", "punchcard.budget", "punchcard.arguments", "punchcard.above",
             "punchcard.formatting", "punchcard.python.intervals")
"""What every file may use: no tensor is in there."""


def files() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def room_of(path: Path) -> str:
    relative = path.relative_to(SOURCE)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


def test_every_room_has_a_floor() -> None:
    assert {room_of(path) for path in files()} == set(FLOOR)


@pytest.mark.parametrize("room", FLOOR)
def test_imports_point_one_way(room: str) -> None:
    for path in files():
        if room_of(path) == room:
            for name in imports_of(path):
                target = name.split(".")[1] if name.startswith("punchcard.") else ""
                if target and not target.startswith("__"):
                    assert target == room or FLOOR[target] < FLOOR[room], f"{path.name} in {room} must not import {target}"


def tensor_free() -> list[Path]:
    return [path for path in files() if FLOOR[room_of(path)] >= FLOOR["machines"] and room_of(path) != "python"
            and any(part in TENSOR_FREE for part in path.relative_to(SOURCE).with_suffix("").parts)]


def test_the_side_of_programs_never_sees_a_tensor() -> None:
    """FLEQ's declarations and interpreter compute with NumPy; nothing there knows torch, or a file that does."""
    free = tensor_free()
    assert {path.parent.name for path in free} >= {"subleq", "fleq", "von_neumann", "text", "languages"}
    for path in free:
        for name in imports_of(path, for_types=False):
            assert name.split(".")[0] != "torch", path
            if name.startswith("punchcard.") and name not in BELOW_ALL and not name.startswith("punchcard.words."):
                file = SOURCE.joinpath(*name.split(".")[1:])
                assert file.with_suffix(".py") in free or file / "__init__.py" in files(), f"{path}: {name}"


def test_words_never_see_a_tensor() -> None:
    for path in files():
        if room_of(path) == "words":
            assert {name.split(".")[0] for name in imports_of(path)}.isdisjoint({"torch"}), path


def test_designs_never_see_a_program() -> None:
    """The files that make weights know sizes and declarations; none of them knows a program.

    An instruction set that is declared apart from what a program is, in a file of its own, is such a declaration.
    """
    apart = {f"punchcard.machines.{path.parent.name}.isa" for path in files() if path.name == "program.py"}
    for path in files():
        parts = path.relative_to(SOURCE).with_suffix("").parts
        if parts[0] == "primitives" or (parts[0] == "machines" and {"designs", "design", "blocks"} & set(parts)):
            assert not [name for name in imports_of(path) if name not in apart
                        and name.split(".")[-1] in ("isa", "program", "oracle", "machine")], path


def test_building_takes_sizes_only() -> None:
    parameters = inspect.signature(SubleqMachine.__init__).parameters
    assert set(parameters) == {"self", "word_bits", "memory", "instructions", "design", "precision"}
    parameters = inspect.signature(FleqMachine.__init__).parameters
    assert set(parameters) == {"self", "functions", "size", "memory", "instructions", "design", "precision", "range",
                               "heads", "anchors"}
    parameters = inspect.signature(VonNeumannMachine.__init__).parameters
    assert set(parameters) == {"self", "word_bits", "memory", "precision", "dialect", "design"}


def test_building_cannot_see_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Building works while a Program can neither be made nor looked at."""
    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("a program was touched while building")

    for name in ("subleq.isa.Program", "fleq.isa.FleqProgram", "von_neumann.isa.Image"):
        program = f"punchcard.machines.{name}"
        monkeypatch.setattr(f"{program}.__init__", refuse)
        monkeypatch.setattr(f"{program}.__getattribute__", refuse)
    for design in ("paper", "two-layer", "one-layer"):
        SubleqMachine(word_bits=4, memory=2, instructions=2, design=design)
    for design in ("compact", "three-layer", "paper"):
        FleqMachine(functions=["add", "mul"], size=2, memory=2, instructions=2, design=design)
    for dialect in DIALECTS:
        VonNeumannMachine(word_bits=8, memory=256, dialect=dialect)


def test_engines_never_name_an_instruction() -> None:
    words = ("subleq", "fleq", "minsky", "opcode", "halt", "instruction set")
    for path in (SOURCE / "engines").rglob("*.py"):
        text = path.read_text().lower()
        assert not [word for word in words if word in text], path


def test_the_model_needs_nothing_but_torch() -> None:
    names = imports_of(SOURCE / "transformer" / "model.py")
    assert {name.split(".")[0] for name in names} <= {"__future__", "collections", "dataclasses", "torch"}


def test_only_the_registry_names_the_machines() -> None:
    """What is written once for all machines imports the contract, and nothing of one machine."""
    folders = [entry.name for entry in (SOURCE / "machines").iterdir() if (entry / "__init__.py").exists()]
    assert len(folders) >= 3
    rooms = ("benchmark", "cli")
    shared = [path for path in files() if path.parent == SOURCE / "machines" or room_of(path) in rooms]
    named = {path.relative_to(SOURCE) for path in shared for name in imports_of(path)
             if name.startswith(tuple(f"punchcard.machines.{folder}" for folder in folders))}
    assert {str(path) for path in named} == {"machines/registry.py", "cli/learn.py", "cli/calc.py"}, "two are of FLEQ"


def test_higher_rooms_are_found_by_name_from_three_places() -> None:
    """A method of a machine, a result or a snapshot may call what stands above it; nothing else may be reached so."""
    named = {str(path.relative_to(SOURCE)): set(re.findall(r'above\("([^"]+)"\)', path.read_text())) for path in files()
             if "punchcard.above" in imports_of(path)}
    assert named.keys() == {"trace.py", "machines/base.py", "machines/result.py"}
    for name in set.union(*named.values()):
        assert FLOOR[name.split(".")[0]] > FLOOR["machines"]
        assert callable(above(name))
    callers = {path.name for path in (SOURCE / "machines").glob("*.py") if "import_module(" in path.read_text()}
    assert callers == {"kind.py"}, "it imports what a machine declares by name"
