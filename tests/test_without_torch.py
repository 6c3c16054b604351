"""What needs numbers only runs without torch: importing it takes longer than a short program."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "punchcard"
NEED_TORCH = ("transformer/model.py", "transformer/guarded_model.py", "trace.py", "engines/dense.py", "engines/scratchpad/",
              "engines/lowered/", "benchmark/", "machines/lockstep.py",
              "export/hugging_face_model.py", "export/layer.py", "export/differentiable.py", "python/arrays/layer.py",
              "language_models/fusion/fused_model.py", "language_models/fusion/runner.py",
              "language_models/fusion/generation.py")
"""The equation, what watches or measures it, and engines. They are imported when they are used."""

SCRIPT = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise AssertionError("torch is imported")

sys.meta_path.insert(0, Refuse())
import punchcard, punchcard.api, punchcard.cli
from click.testing import CliRunner

for name in ("multiply.subleq", "newton.fleq", "von_neumann/sort.asq"):
    program = punchcard.load("examples/" + name)
    machine = punchcard.build(program)
    card = machine.pack(program)
    assert machine.layout.violations(card) == []
    state = machine.read_own(program, card)
    assert machine.values(program, state).keys() == machine.readout(program, card).values.keys()
    assert not machine.readout(program, card).at_halt
    machine.save(sys.argv[1])
    assert type(machine).load(sys.argv[1]).weights.digest() == machine.weights.digest()
    begun = punchcard.machines.checkpoint.begin(program, machine)
    punchcard.machines.checkpoint.CheckpointFile(sys.argv[1], machine, program, begun.plan).write(begun.mark)
    assert punchcard.machines.checkpoint.load(sys.argv[1]).mark.raw_card.equals(card)
    told = CliRunner().invoke(punchcard.cli.command_line(), ["info", "examples/" + name, "--json"])
    assert told.exit_code == 0, told.output
    ran = CliRunner().invoke(punchcard.cli.command_line(), ["run", "examples/" + name], input="3 1 2")
    assert ran.exit_code == 0, ran.output
    if name == "multiply.subleq":  # other machines are declared, and nothing else of them is imported
        others = {module for module in sys.modules if module.startswith("punchcard.machines.")
                  and module.split(".")[2] in ("fleq", "riscv", "von_neumann") and module.count(".") > 2}
        assert {module.split(".")[-1] for module in others} == {"kind", "isa", "languages", "options"}, others
assert "torch" not in sys.modules
print("done")
"""


def test_building_packing_reading_running_and_keeping_need_no_torch(tmp_path: Path) -> None:
    ran = subprocess.run([sys.executable, "-c", SCRIPT, str(tmp_path / "file")], capture_output=True, text=True, check=False,
                         cwd=SOURCE.parent.parent)
    assert (ran.stdout, ran.returncode) == ("done\n", 0), ran.stderr


def imported(tree: ast.Module) -> Iterator[str]:
    """What a file imports when it is imported itself: not in functions, not for types."""
    for node in tree.body:
        for inner in ast.walk(node) if isinstance(node, ast.Try) else [node]:
            if isinstance(inner, ast.Import):
                yield from (alias.name for alias in inner.names)
            elif isinstance(inner, ast.ImportFrom):
                yield inner.module or ""


def test_only_engines_and_the_equation_import_torch() -> None:
    needing = [path for path in sorted(SOURCE.rglob("*.py"))
               if any(name.split(".")[0] == "torch" for name in imported(ast.parse(path.read_text())))]
    for path in needing:
        assert str(path.relative_to(SOURCE)).startswith(NEED_TORCH), f"{path} imports torch"
