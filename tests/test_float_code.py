"""Numbers as LLVM code: exponentials of every known size, vectors turned around, and entries of nodes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from llvmlite import binding, ir

from punchcard.engines.lowered.codegen.floats import FloatCode, i64
from punchcard.engines.lowered.codegen.gather import _runs
from punchcard.engines.lowered.codegen.objects import _load, _parsed, _target_machine, processor
from punchcard.engines.lowered.graph import operations as op
from punchcard.engines.lowered.graph.builder import Graph
from punchcard.engines.lowered.graph.nodes import Array, Linear, reachable
from punchcard.engines.lowered.graph.rules import value_of

REALS: dict[str, tuple[ir.Type, Any]] = {"double": (ir.DoubleType(), np.float64), "float": (ir.FloatType(), np.float32)}


def on_arrays(kind: str, body: Callable[[FloatCode, ir.Value, ir.Value], None]) -> Callable[[Array, Array], None]:
    """A function of two arrays of numbers, compiled; `body` writes it."""
    real, number = REALS[kind]
    module = ir.Module("numbers")
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [real.as_pointer()] * 2), "numbers")
    b = ir.IRBuilder(function.append_basic_block("begin"))
    body(FloatCode(b, real), *function.args)
    b.ret_void()
    processor()
    machine = _target_machine()
    engine: binding.ExecutionEngine = _load(machine, machine.emit_object(_parsed(machine, module)))
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(engine.get_function_address("numbers"))

    def run(given: Array, found: Array, engine: binding.ExecutionEngine = engine) -> None:  # which keeps the code
        assert given.dtype == found.dtype == number
        call(given.ctypes.data, found.ctypes.data)

    return run


@pytest.mark.parametrize("kind", REALS)
@pytest.mark.parametrize("largest", [0.0, 1e-9, 1e-5, 0.0078125, 0.1, 0.34, 1.0, 80.0])
def test_exponentials_of_numbers_of_a_known_size(kind: str, largest: float) -> None:
    def body(floats: FloatCode, given: ir.Value, found: ir.Value) -> None:
        for i in range(64):
            x = floats.load(floats.b.gep(given, [i64(i)]))
            floats.store(floats.exponential(x, 1, largest), floats.b.gep(found, [i64(i)]))

    number = REALS[kind][1]
    given = np.linspace(-largest, largest, 64).astype(number)
    found = np.empty_like(given)
    on_arrays(kind, body)(given, found)
    exact = np.exp(given.astype(np.longdouble))
    assert float(np.max(np.abs(found - exact) / exact)) <= 2 * np.finfo(number).eps


@pytest.mark.parametrize("size", [1, 2, 4, 8])
@pytest.mark.parametrize("columns", [1, 3, 8, 11])
def test_columns_become_rows(size: int, columns: int) -> None:
    """As `Gathers` does: squares of columns are turned around, and joined to rows of all columns."""
    def body(floats: FloatCode, given: ir.Value, found: ir.Value) -> None:
        kind = ir.VectorType(floats.real, size)
        places = [floats.b.gep(given, [i64(size * i)]) for i in range(columns)]
        loaded = [floats.load(floats.b.bitcast(place, kind.as_pointer())) for place in places]
        loaded += [ir.Constant(kind, ir.Undefined)] * (-columns % size)
        squares = [floats.transposed(loaded[i : i + size]) for i in range(0, len(loaded), size)]
        for i in range(size):
            row = floats.joined([square[i] for square in squares], columns)
            floats.store(row, floats.b.bitcast(floats.b.gep(found, [i64(columns * i)]), row.type.as_pointer()))

    given = np.arange(float(size * columns)).reshape(columns, size)
    found = np.empty((size, columns))
    on_arrays("double", body)(given, found)
    assert np.array_equal(found, given.T)


def test_runs_of_neighbours() -> None:
    rows = [(3, 10), (4, 11), (5, 12), (6, 13), (7, 15), (9, 16), (10, 17)]
    assert list(_runs(rows, 8)) == [((3, 10), 4), ((7, 15), 1), ((9, 16), 2)]
    assert list(_runs(rows, 2)) == [((3, 10), 2), ((5, 12), 2), ((7, 15), 1), ((9, 16), 2)]
    assert list(_runs(rows, 1)) == [(row, 1) for row in rows]


def test_products_that_differ_by_a_sign_are_one_node() -> None:
    graph = Graph()
    x, y = (Linear({graph.node(op.LOAD, (), row, ends=(-2.0, 2.0)): 1.0}) for row in range(2))
    ((node, _),) = graph.product(x, y).terms.items()
    for a, b in ((1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0)):
        assert graph.product(x.times(a), y.times(b)).terms == {node: a * b}


def test_entries_of_a_node() -> None:
    """Each entry of a vector, worked out by itself, is that entry."""
    graph = Graph()
    one = graph.node(op.LOAD, (), 0, ends=(-2.0, 2.0))
    several = graph.node(op.LOAD, (), 1, ends=(np.full(3, -2.0), np.full(3, 2.0)))
    bias = np.array([-1.0, 0.0, 0.5])
    steps = graph.relu(Linear({one: 2.0}, bias)).copy()
    steps.add(graph.relu(Linear({one: -2.0}, bias)), -1.0)
    steps.add(graph.product(Linear({one: 1.0}), Linear({several: -1.0})), 0.5)
    steps.add(Linear({several: 1.0}), 3.0)
    node = graph.as_node(steps)
    for low, high in ((-2.0, 1.0), (0.25, -0.75), (1.5, 2.0)):
        known = {one: np.array([low]), several: np.array([high, low, 0.5])}
        whole = np.broadcast_to(value_of(node, known), (3,))
        for place in range(3):
            entry = graph.entry(node, place)
            assert all(term.width == 1 for term in entry.terms)
            here = known | {part: known[several][place : place + 1] for part in reachable([entry]) if part.op is op.MIX}
            total = entry.constant + sum(c * value_of(term, here) for term, c in entry.terms.items())
            assert np.array_equal(np.atleast_1d(total), whole[place : place + 1])
