"""Imports point one way, and two rules hold: weights never see a program, engines never see an instruction."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

import punchcard
from punchcard.isa.von_neumann import DIALECTS
from punchcard.machines.fleq import FleqMachine
from punchcard.machines.subleq import SubleqMachine
from punchcard.machines.von_neumann import VonNeumannMachine

SOURCE = Path(inspect.getfile(punchcard)).parent

WEIGHTS_SIDE = {"errors", "card", "transformer"}
PROGRAM_SIDE = {"errors", "isa"}
ALLOWED: dict[str, set[str]] = {
    "errors": set(),
    "card": {"errors"},
    "transformer": {"errors", "card"},
    "engines": WEIGHTS_SIDE,
    "primitives": WEIGHTS_SIDE,
    "trace": WEIGHTS_SIDE,
    "functions": WEIGHTS_SIDE | {"primitives", "isa"},
    "machines": WEIGHTS_SIDE | {"primitives", "functions", "engines", "isa"},
    "isa": {"errors"},
    "lang": PROGRAM_SIDE,
    "oracle": PROGRAM_SIDE,
    "programs": PROGRAM_SIDE | {"lang"},
    "analysis": WEIGHTS_SIDE | PROGRAM_SIDE | {"engines", "machines", "lang", "oracle", "programs"},
    "checkpoint": WEIGHTS_SIDE | PROGRAM_SIDE | {"functions", "machines", "lang", "analysis"},
    "api": WEIGHTS_SIDE | PROGRAM_SIDE | {"engines", "functions", "machines", "lang", "oracle", "programs", "analysis",
                                          "checkpoint"},
    "benchmark": WEIGHTS_SIDE | PROGRAM_SIDE | {"engines", "machines", "lang", "oracle", "api"},
    "linear_algebra": WEIGHTS_SIDE | PROGRAM_SIDE | {"analysis", "api", "functions", "machines", "programs"},
    "learning": WEIGHTS_SIDE | PROGRAM_SIDE | {"api", "engines", "functions", "machines", "programs"},
    "display": WEIGHTS_SIDE | PROGRAM_SIDE | {"api", "machines"},
    "display_fleq": WEIGHTS_SIDE | PROGRAM_SIDE | {"analysis", "display", "machines"},
    "display_bench": {"benchmark", "display", "errors"},
    "calculator": WEIGHTS_SIDE | PROGRAM_SIDE | {"analysis", "engines", "functions", "lang", "machines", "programs"},
    "terminal": {"errors"},
    "cli_calc": {"calculator", "display", "errors"},
    "cli_image": {"analysis", "errors", "isa", "lang", "machines"},
    "cli_learn": {"display", "errors", "lang", "learning", "terminal"},
    "cli": {"api", "benchmark", "checkpoint", "cli_calc", "cli_image", "cli_learn", "display", "display_bench",
            "display_fleq", "errors", "isa", "lang", "machines", "terminal"},
    "__main__": {"cli"},
    "__init__": {"api", "calculator", "errors", "isa", "learning", "linear_algebra", "machines", "trace", "transformer"},
}


def imports_of(path: Path) -> list[str]:
    """Every module that a file imports, as a dotted name."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            module = node.module or ""
            # `from punchcard import api` imports the module punchcard.api
            found += [f"{module}.{a.name}" for a in node.names] if module == "punchcard" else [module]
    return found


def part_of(path: Path) -> str:
    relative = path.relative_to(SOURCE)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_point_one_way(path: Path) -> None:
    part = part_of(path)
    for name in imports_of(path):
        if name.startswith("punchcard."):
            target = name.split(".")[1]
            if target.startswith("__"):
                continue
            assert target == part or target in ALLOWED[part], f"{part} must not import {target}"


@pytest.mark.parametrize("part", ["isa", "lang", "oracle", "programs"])
def test_the_side_of_programs_never_sees_a_tensor(part: str) -> None:
    """FLEQ's declarations and interpreter compute with NumPy; nothing there knows torch."""
    for path in (SOURCE / part).rglob("*.py"):
        assert "torch" not in {name.split(".")[0] for name in imports_of(path)}, path


def test_designs_never_see_a_program() -> None:
    """Only the file that punches programs knows the instruction set; the files that make weights do not."""
    knows = {
        path.name for path in (SOURCE / "machines").glob("*.py")
        if any(name.startswith("punchcard.isa") for name in imports_of(path))
    }
    assert knows == {"subleq.py", "fleq.py", "fleq_reader.py", "fleq_guard.py", "von_neumann.py", "von_neumann_host.py"}


def test_building_takes_sizes_only() -> None:
    parameters = inspect.signature(SubleqMachine.__init__).parameters
    assert set(parameters) == {"self", "word_bits", "memory", "instructions", "design", "precision"}
    parameters = inspect.signature(FleqMachine.__init__).parameters
    assert set(parameters) == {"self", "functions", "size", "memory", "instructions", "design", "precision", "range",
                               "heads", "anchors"}
    parameters = inspect.signature(VonNeumannMachine.__init__).parameters
    assert set(parameters) == {"self", "word_bits", "memory", "precision", "dialect"}


def test_building_cannot_see_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Building works while a Program can neither be made nor looked at."""
    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("a program was touched while building")

    for program in ("punchcard.isa.subleq.Program", "punchcard.isa.fleq.FleqProgram", "punchcard.isa.von_neumann.Image"):
        monkeypatch.setattr(f"{program}.__init__", refuse)
        monkeypatch.setattr(f"{program}.__getattribute__", refuse)
    for design in ("paper", "two-layer", "one-layer"):
        SubleqMachine(word_bits=4, memory=2, instructions=2, design=design)
    for design in ("compact", "paper"):
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
