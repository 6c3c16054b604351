"""Measures of the source itself: how large it is, and how often it says one thing in two places.

    python benchmarks/source_measures.py [FOLDER]

FOLDER is a checkout, by default this one.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

CONTROLS = {"until", "ports", "watch", "interrupted", "progress"}
"""What a caller may say of a run. A signature that has two of them repeats the list."""
FACTS = set("Fact Holds Copies Each Indicates Stands Uniform Contents Shows Equals Names Spans Below Same Own Either Both "
            "Not Bits Sum".split())
"""Classes of facts about a card, and of the conditions that they were once made of."""


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def plain_arguments(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.arg]:
    """All but `*args` and `**options`, which are passed on."""
    return [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]


def names_in(node: ast.AST | None) -> Iterator[str]:
    return (part.id if isinstance(part, ast.Name) else part.attr for part in (ast.walk(node) if node else ())
            if isinstance(part, ast.Name | ast.Attribute))


def measures(folder: Path) -> Iterator[tuple[str, int]]:
    """Each measure, by name."""
    paths = sorted((folder / "src").rglob("*.py"))
    texts = {path: path.read_text() for path in paths}
    trees = {path: ast.parse(text) for path, text in texts.items()}
    yield "lines of src", sum(text.count("\n") for text in texts.values())
    yield "lines of tests", sum(path.read_text().count("\n") for path in (folder / "tests").rglob("*.py"))
    yield "files of src", len(paths)
    for word in ("sltu", "tanh"):
        yield f"files of src with the word {word}", sum(bool(re.search(rf"\b{word}\b", text)) for text in texts.values())
    classes = Counter(node.name for tree in trees.values() for node in tree.body if isinstance(node, ast.ClassDef))
    yield "class names of two or more classes", sum(count > 1 for count in classes.values())
    signatures = [function for tree in trees.values() for function in functions(tree)]
    annotations = [note for f in signatures for note in (*(arg.annotation for arg in plain_arguments(f)), f.returns)]
    yield "Any in signatures", sum(isinstance(note, ast.Name) and note.id == "Any" for note in annotations)
    yield "signatures that repeat a run's controls", sum(
        len(CONTROLS & {arg.arg for arg in plain_arguments(f)}) >= 2 for f in signatures)
    calls = [node for path, tree in trees.items() if "python" not in path.parts for node in ast.walk(tree)
             if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance"]
    yield "isinstance on classes of facts", sum(bool(FACTS & set(names_in(call.args[1]))) for call in calls)


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent
    for name, value in measures(folder):
        print(f"{name:42} {value:8,}")


if __name__ == "__main__":
    main()
