"""A machine says its circuit: from its formulas, and checked against its weights. Oracles: the model, and the texts."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import punchcard
from punchcard.errors import CircuitError, PunchcardError, StorageError
from punchcard.export.circuit import Circuit, count_covered, load_circuit
from punchcard.export.evaluator import Evaluator
from tests.cases import soaked
from tests.export_runs import CASES, case
from tests.formula_texts import value_of

SLOW = ("fleq three-layer", "riscv three-layer", "riscv two-layer")
every_machine = pytest.mark.parametrize("name", [soaked(name) if name in SLOW else name for name in CASES])
SMALL = "subleq two-layer"


@cache
def built(name: str) -> tuple[Any, Any, Circuit]:
    """A program, a machine and its circuit."""
    machine, program = case(name)
    return program, machine, machine.circuit()


@every_machine
def test_every_weight_has_one_node(name: str) -> None:
    """Counted by torch, which knows nothing of circuits."""
    _, machine, circuit = built(name)
    nonzero = machine.model.parameter_count()[1]
    assert count_covered(circuit, machine.weights) == nonzero
    assert sum(len(entries) for node in circuit.nodes for entries in node.weights.values()) == nonzero
    assert len({node.id for node in circuit.nodes}) == len(circuit.nodes)
    counts = [len(circuit.of_kind(kind)) for kind in ("head", "unit")]
    assert counts == [sum(shape.heads for shape in machine.model.shapes), sum(s.hidden for s in machine.model.shapes)]
    assert all(node.formula for node in circuit.nodes)
    assert all(edge.weights > 0 for edge in circuit.edges)


@every_machine
def test_the_circuit_computes_what_the_model_computes(name: str) -> None:
    program, machine, circuit = built(name)
    card, run = machine.punch(program), Evaluator(circuit)
    ours = card.numpy()
    for _ in range(4):
        card = machine.model(card)
        ours = run.loop(ours).end
        if machine.needed_bits:
            assert np.array_equal(ours, card.numpy())
        else:
            assert np.allclose(ours, card.numpy(), rtol=0, atol=1e-7)


def test_a_changed_weight_is_noticed() -> None:
    program, _, circuit = built(SMALL)
    machine = punchcard.build(program, **CASES[SMALL][1])
    for weight in (machine.model.layers[1].w1[3, 5], machine.model.layers[0].value[0, 3, 4]):
        weight.add_(1e-9)
        with pytest.raises(CircuitError, match=r"layers\.[01]\.(w1|value)\[.*the circuit says"):
            count_covered(circuit, machine.weights)
    with pytest.raises(CircuitError, match="not the one that the formulas build"):
        machine.circuit()


def test_a_wrong_circuit_is_refused() -> None:
    _, machine, circuit = built(SMALL)

    def refused(match: str, nodes: Any = circuit.nodes, edges: Any = circuit.edges) -> None:
        with pytest.raises(CircuitError, match=match):
            count_covered(Circuit(circuit.about, nodes, edges, []), machine.weights)

    head = next(node for node in circuit.nodes if node.kind == "head")
    refused("claimed by layer 1, head 1 and by another", [*circuit.nodes, replace(head, id="another")])
    refused("is .*, and the circuit says", [node for node in circuit.nodes if node is not head])
    refused("has 0 weights, the nodes have", edges=circuit.edges[1:])
    refused("is there twice", edges=[*circuit.edges, circuit.edges[0]])
    refused("has 1 weights, the nodes have 0",
            edges=[*circuit.edges, replace(circuit.edges[0], source="command.a", weights=1)])
    refused("what is 0 is not listed", [*circuit.nodes, replace(head, id="b", weights={"key": [[0, 0, 0.0]]})])
    refused("the model has 2", [*circuit.nodes, replace(head, id="b", layer=7)])


@pytest.mark.parametrize("name", ["subleq two-layer", "subleq one-layer", "von-neumann two-layer"])
def test_the_texts_say_what_the_weights_do(name: str) -> None:
    """The text of a node, computed by Python, is what its weights give. Texts that need an index i are left out."""
    _, machine, circuit = built(name)
    column = np.random.default_rng(1).integers(-3, 4, machine.layout.width).astype(float)
    looked = 0
    for node in circuit.of_kind("unit"):
        inner = sum(w * column[int(row)] for row, w in node.weights["w1"]) + sum(b for _, b in node.weights["b1"])
        assert value_of(node.formula, machine.layout, column) == pytest.approx(max(inner, 0.0), abs=1e-9), node
    for node in circuit.of_kind("head"):
        for tensor in ("key", "query", "value"):
            text = node.about[tensor]
            if not re.search(r"\bi\b", text):
                dense = np.zeros(machine.layout.width)
                for i, row, weight in node.weights[tensor]:
                    dense[int(i)] += weight * column[int(row)]
                rows = circuit.about["row_names"].index
                wanted = dense[[rows(each) for each in node.about["into"]]] if tensor == "value" else dense
                found = value_of(text, machine.layout, column)
                assert np.allclose(found, wanted[: len(found)]), node
                looked += 1
    assert looked >= 3


def test_queries() -> None:
    _, _, circuit = built(SMALL)
    heads = [node.id for node in circuit.into("difference", 0) if node.kind == "head"]
    assert heads == ["layer 1, head 1", "layer 1, head 2"]
    assert {node.id for node in circuit.out_of("position") if node.kind == "head"} == {
        "layer 1, head 1", "layer 1, head 2", "layer 2, head 1"}
    assert circuit.node("layer 1, head 1").formula == (
        "query position + pointer.a, key position, value -memory, into difference")
    with pytest.raises(PunchcardError, match=r"no node 'layer 1, haed 1' \(did you mean 'layer 1, head 1'\?\)"):
        circuit.node("layer 1, haed 1")
    named = {variable.name: variable for variable in circuit.variables}
    assert named["memory in memory"].changes
    assert not named["memory in constants"].changes
    assert named["difference after the attention of layer 1"].set_by == ["layer 1, head 1", "layer 1, head 2"]


@every_machine
def test_what_is_not_reached_does_not_change(name: str) -> None:
    """A change in any block, followed by the edges, against the model with that block changed at random."""
    program, machine, circuit = built(name)
    card = machine.punch(program)
    after = machine.model(card)
    generator, nodes = torch.Generator().manual_seed(1), circuit.of_kind("rows")
    for node in nodes[:: max(1, len(nodes) // 6)]:
        rows = slice(node.number, node.number + node.about["rows"])
        other = card.clone()
        other[rows] = torch.randint(-3, 4, other[rows].shape, generator=generator).to(card.dtype)
        moved = (machine.model(other) != after).any(dim=1)
        reached = circuit.reached([node.id])
        assert node.id in reached
        for each in nodes:
            if each.id not in reached:
                assert not moved[each.number : each.number + each.about["rows"]].any(), (node.id, each.id)


def test_a_patched_output_is_taken() -> None:
    """Patching by the circuit is what a hook on the model does."""
    program, machine, circuit = built(SMALL)
    run = Evaluator(circuit)
    card, other = (machine.model(machine.punch(p)).numpy() for p in (program, program.with_values({"a": 12})))
    taken = run.loop(other).outputs["layer 1, head 1"]
    layer, model = machine.model.layers[0], machine.model
    start = torch.from_numpy(card)
    attended = start + torch.from_numpy(taken) + layer.value[1] @ start @ layer.attention(start, 1)
    wanted = model.layers[1](layer.feed_forward(attended))
    assert np.array_equal(run.loop(card, {"layer 1, head 1": taken}).end, wanted.numpy())
    assert not np.array_equal(run.loop(card).end, wanted.numpy())
    unit = {"layer 1, unit 1": np.zeros(card.shape[1])}
    assert np.array_equal(run.loop(card, unit).hidden[0][0], np.zeros(card.shape[1]))
    assert run.loop(card).hidden[0].any()
    with pytest.raises(PunchcardError, match="'memory' is a block of rows"):
        run.loop(card, {"memory": card})


def test_to_a_file_and_back(tmp_path: Path) -> None:
    _, machine, circuit = built(SMALL)
    circuit.save(tmp_path / "circuit.json")
    again = load_circuit(tmp_path / "circuit.json")
    assert count_covered(again, machine.weights) == count_covered(circuit, machine.weights)
    assert (again.edges, repr(again)) == (circuit.edges, repr(circuit))
    for text, match in (("{", "not a circuit"), ('{"format": 9}', "of the format 9"), ('{"format": 1}', "not a circuit")):
        (tmp_path / "bad.json").write_text(text)
        with pytest.raises(StorageError, match=match):
            load_circuit(tmp_path / "bad.json")
