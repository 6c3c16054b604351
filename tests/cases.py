"""The cases that run through every level: the examples with their results, and random programs."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from punchcard.api import load
from punchcard.card.layout import Card, Layout
from punchcard.errors import SourceError
from punchcard.machines.assembler import Symbol
from punchcard.machines.subleq.isa import Halt, Program, Subleq

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
DESIGNS = ("paper", "two-layer", "one-layer")

# file -> (cells that matter at the end, instructions executed)
EXPECTED: dict[str, tuple[dict[str, int], int]] = {
    "add.subleq": ({"sum": 1200}, 3),
    "multiply.subleq": ({"a": 7, "b": 0, "product": 63, "minus_a": -7, "one": 1, "zero": 0}, 27),
    "factorial.subleq": ({"result": 5040, "n": 0}, 139),
    "fibonacci.subleq": ({"a": 6765, "b": 10946}, 219),
    "gcd.subleq": ({"a": 21, "b": 0}, 97),
    "divide.subleq": ({"quotient": 22, "remainder": 2}, 74),
    "sqrt.subleq": ({"root": 31}, 128),
    "primes.subleq": ({"prime": 13, "n": 0}, 501),
    "reverse.subleq": ({"list": 42, "list+1": 23, "list+2": 16, "list+3": 15, "list+4": 8, "list+5": 4}, 22),
    "search.subleq": ({"index": 2}, 21),
    "multiply.minsky": ({"x": 0, "y": 7, "z": 42}, 777),
}


def soaked(*values: Any) -> Any:
    """A parameter left to `make soak`: another one goes the same way in less time."""
    return pytest.param(*values, marks=pytest.mark.soak)


def file_with(path: Path, text: str) -> Path:
    """A new file with this text."""
    path.write_text(text)
    return path


def assert_error_at(line: int, column: int, message: str, read: Callable[[str, str], object], text: str) -> None:
    """A text is refused in one line, which begins with the place."""
    with pytest.raises(SourceError, match=message) as caught:
        read(text, "the text")
    assert (caught.value.line, caught.value.column) == (line, column)
    assert str(caught.value).startswith(f"the text: line {line}, column {column}: ")
    assert "\n" not in str(caught.value)


@cache
def turing_example() -> Any:
    """The file of the machine outside the package, as a module."""
    spec = importlib.util.spec_from_file_location("turing", EXAMPLES / "turing" / "turing.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["turing"] = module
    spec.loader.exec_module(module)
    return module


def load_subleq(name: str) -> Program:
    """An example that is a SUBLEQ program."""
    return load(EXAMPLES / name, Program)


def wrap(value: int, bits: int) -> int:
    """`value` modulo 2^bits, as a two's-complement integer."""
    half = 1 << (bits - 1)
    return (value + half) % (1 << bits) - half


def touched(layout: Layout, before: Card, after: Card) -> set[tuple[str, str]]:
    """The row blocks and regions in which two cards differ; parts of a block by their own name."""
    names = [name for block in layout.blocks
             for name in ([f"{block.name}.{part}" for part in block.parts] or [block.name])]
    return {(name, region.name) for name in names for region in layout.regions
            if not np.array_equal(layout.get(before, name, region.name), layout.get(after, name, region.name))}


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Programs with arrays, labels, mid-program halts and values of any size."""
    names = draw(st.lists(st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,6}", fullmatch=True), min_size=1, max_size=5,
                          unique=True))
    symbols, end = [], 0
    for name in names:
        size = draw(st.integers(1, 3))
        symbols.append(Symbol(name, end, size))
        end += size
    memory = draw(st.lists(st.integers(-(2**20), 2**20), min_size=end, max_size=end))
    count = draw(st.integers(1, 8))
    cell, target = st.integers(0, end - 1), st.integers(0, count)
    instruction = st.one_of(st.just(Halt()), st.builds(Subleq, cell, cell, target))
    code = [*draw(st.lists(instruction, min_size=count, max_size=count)), Halt()]
    labels = draw(st.dictionaries(st.from_regex(r"[a-z_]{1,6}", fullmatch=True), st.integers(0, count), max_size=4))
    return Program.create(code, memory, symbols, labels)
