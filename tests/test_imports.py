"""Imports point one way, and two rules hold: weights never see a program, engines never see an instruction."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import punchcard
from punchcard.machines.kind import Kind
from punchcard.machines.registry import built_in
from punchcard.machines.von_neumann.isa import DIALECTS
from punchcard.machines.von_neumann.machine import VonNeumannMachine

SOURCE = Path(inspect.getfile(punchcard)).parent

FLOORS = (
    ("errors",),
    ("lazy", "formatting", "files", "folders", "budget", "arguments", "garbage"),
    ("code_cache", "workers"),
    ("words",),
    ("card", "arrays"),
    ("transformer",),
    ("primitives", "engines", "trace"),
    ("machines",),
    ("viewer", "export", "proof"),
    ("python",),
    ("calculator", "linalg", "learning", "benchmark", "sweep"),
    ("ground_truth", "language_models"),
    ("api",),
    ("cli",),
    ("__main__", "__init__"),
)
"""From the ground up. A room imports rooms of lower floors, and itself."""
FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}

TENSOR_FREE = ("isa", "kind", "registry", "interpreter", "streams", "functions", "oracle", "program", "calls",
               "fast", "in_c", "dry_run", "fitted", "builder", "counter", "text",
               "assembler", "minsky", "languages", "source", "programs", "syntax", "exact", "semantics",
               "argument_vector", "system", "csrs", "traps", "privileged")
"""Files and folders on the side of programs, wherever in the rooms above the engines they are."""


@cache
def imports_of(path: Path, *, for_types: bool = True, in_functions: bool = True, lazy: bool = True) -> tuple[str, ...]:
    """Every module that a file imports, as a dotted name.

    for_types      also those for the type checker alone
    in_functions   also those that a function imports when it is called
    lazy           also those that are named in a text, for `punchcard.lazy`
    """
    found = list[str]()
    text = path.read_text()
    tree = ast.parse(text)
    if not for_types:
        tree.body = [node for node in tree.body
                     if not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")]
    for node in ast.walk(tree) if in_functions else _outside_functions(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            own = path.name == "hugging_face_model.py"  # its folder is another, where it is copied to
            assert node.level == 0 or own, f"{path}: relative import"
            module = node.module or ""
            # `from punchcard import api` imports the module punchcard.api
            found += [f"{module}.{a.name}" for a in node.names] if module == "punchcard" else [module]
    return tuple(found + lazy_imports(text) * lazy)


def _outside_functions(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, ast.FunctionDef):
            yield node
            yield from _outside_functions(node)


def lazy_imports(text: str) -> list[str]:
    """The modules in texts such as "punchcard.viewer.pictures:plot", which `punchcard.lazy` imports."""
    return re.findall(r'"(punchcard(?:\.\w+)+):[\w ]+"', text)


BELOW_ALL = ("punchcard.errors", "punchcard.files", "punchcard.budget", "punchcard.arguments", "punchcard.lazy",
             "punchcard.formatting", "punchcard.python.intervals")
"""What every file may use: no tensor is in there."""


def files() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def room_of(path: Path) -> str:
    relative = path.relative_to(SOURCE)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


def test_every_room_has_a_floor() -> None:
    assert {room_of(path) for path in files()} == set(FLOOR)


UPWARD = {
    "machines/base.py": {"viewer", "export", "proof"},
    "machines/result.py": {"viewer"},
    "trace.py": {"viewer"},
    "export/targets.py": {"ground_truth", "language_models"},
    "machines/fleq/kind.py": {"python"},
    "machines/von_neumann/kind.py": {"python"},
}
"""Imports that may point up, when a function is called: methods such as `plot` and `prove` are thin, and call the room that
does it; a machine names languages of the Python front end; the table of exports names every target."""


@pytest.mark.parametrize("room", FLOOR)
def test_imports_point_one_way(room: str) -> None:
    for path in files():
        if room_of(path) == room:
            upward = UPWARD.get(str(path.relative_to(SOURCE)), set())
            when_imported = set(imports_of(path, for_types=False, in_functions=False, lazy=False))
            for name in imports_of(path):
                target = name.split(".")[1] if name.startswith("punchcard.") else ""
                if target and not target.startswith("__") and not (target in upward and name not in when_imported):
                    assert target == room or FLOOR[target] < FLOOR[room], f"{path.name} in {room} must not import {target}"


def test_only_one_module_imports_by_name() -> None:
    """And what it is to import is there. Python programs of users import modules of their own."""
    callers = {str(path.relative_to(SOURCE)) for path in files() if "import_module(" in path.read_text()}
    assert callers == {"lazy.py", "python/files.py"}
    for path in files():
        for module, names in re.findall(r'"(punchcard(?:\.\w+)+):([\w ]+)"', path.read_text()):
            file = SOURCE.joinpath(*module.split(".")[1:])
            found = file.with_suffix(".py") if file.with_suffix(".py").exists() else file / "__init__.py"
            for name in names.split():
                assert re.search(rf"\b{name}\b", found.read_text()), f"{path.name}: {module}:{name}"


def test_the_architecture_page_lists_rooms_in_the_order_of_their_floors() -> None:
    page = (SOURCE.parent.parent / "docs" / "architecture.md").read_text()
    table = page[page.index("## The rooms"):].split("\n\n")[1]
    rows = [re.findall(r"`([a-z_]+)(?:/|\.py)`", line.split("|")[1]) for line in table.splitlines()[2:]]
    floors = [FLOOR[room] for row in rows for room in row]
    assert floors == sorted(floors)
    assert {room for row in rows for room in row} >= set(FLOOR) - {"__main__", "__init__"}


def tensor_free() -> list[Path]:
    return [path for path in files() if FLOOR[room_of(path)] >= FLOOR["machines"] and room_of(path) != "python"
            and "designs" not in path.parts
            and any(part in TENSOR_FREE for part in path.relative_to(SOURCE).with_suffix("").parts)]


def test_the_side_of_programs_never_sees_a_tensor() -> None:
    """FLEQ's declarations and interpreter compute with NumPy; nothing there knows torch, or a file that does."""
    free = tensor_free()
    assert {path.parent.name for path in free} >= {"subleq", "fleq", "von_neumann", "text", "languages"}
    for path in free:
        for name in imports_of(path, for_types=False, lazy=False):
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
    """What a machine is built with is what its kind declares: sizes, a design and a precision."""
    for kind in built_in():
        parameters = inspect.signature(kind.machine_class().__init__).parameters
        assert set(parameters) == {"self", "design", "precision", *(option.name for option in kind.options)}, kind.name


SMALL: dict[str, dict[str, Any]] = {
    "subleq": {"word_bits": 4, "memory": 2, "instructions": 2},
    "fleq": {"functions": ["add", "mul"], "size": 2, "memory": 2, "instructions": 2},
    "von-neumann": {"word_bits": 8, "memory": 256},
    "riscv": {"memory": 16},
}
"""Sizes of a small machine of every kind."""


def test_building_cannot_see_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Building works while a program can neither be made nor looked at."""
    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("a program was touched while building")

    kinds: list[tuple[Kind, Any, type]] = [(kind, kind.machine_class(), kind.program_class()) for kind in built_in()]
    for _, _, program in kinds:
        monkeypatch.setattr(program, "__init__", refuse)
        monkeypatch.setattr(program, "__getattribute__", refuse)
    for kind, machine, _ in kinds:
        for design in kind.designs:
            machine(**SMALL[kind.name], design=design)
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
    assert {str(path) for path in named} == {
        "machines/registry.py", "cli/learn.py", "cli/calc.py", "cli/boot.py", "cli/fuse.py"}, "of FLEQ, and of RISC-V"
