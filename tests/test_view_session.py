"""The session behind every view: each number that it shows is what the dense equation gives, and each value the oracle's."""

from __future__ import annotations

import base64
import gc
import re
import threading
import weakref
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch

import punchcard
from punchcard.card.formats import AnyArray, as_array
from punchcard.errors import PunchcardError
from punchcard.machines.display_values import DisplayValue, number_text
from punchcard.machines.von_neumann.languages.asq.assembler import assemble as assemble_image
from punchcard.trace import observe
from punchcard.viewer import inspector
from punchcard.viewer.column_subset import ColumnSubset
from punchcard.viewer.session import Session
from punchcard.viewer.stages import entries_of
from punchcard.viewer.timeline import MOST_MARKS
from punchcard.viewer.turns import Turns
from tests.cases import DESIGNS, EXAMPLES, EXPECTED, soaked
from tests.formula_texts import rows_of, value_of
from tests.opened import built
from tests.opened import opened as open_file

FORMATTED = {100000.5: "100001", 1e-7: "1e-7", 1.23e-6: "0.00000123", 1e21: "1e+21", -2.5: "-2.5", 1 / 3: "0.333333",
             -0.0: "0", 1234567.0: "1234570", 123456789e15: "1.23457e+23", float("inf"): "Infinity"}
CASES: dict[str, tuple[str, dict[str, Any], bytes]] = {
    **{design: ("multiply.subleq", {"design": design}, b"") for design in DESIGNS},
    "fleq": ("newton.fleq", {}, b""),
    "fleq-three-layer": ("newton.fleq", {"design": "three-layer"}, b""),
    "fleq-paper": ("newton.fleq", {"design": "paper"}, b""),
    "image": ("von_neumann/echo.asq", {"memory": 125}, b"ab"),
    "riscv": ("riscv/hi.s", {"memory": 64}, b""),
    "riscv-two-layer": ("riscv/hi.s", {"memory": 64, "design": "two-layer"}, b""),
    "riscv-multiply": ("riscv/hi.s", {"memory": 64, "multiply": True}, b""),
    "turing": ("turing/increment.tm", {}, b""),
}
SLOW = ("fleq-three-layer", "riscv-two-layer", "riscv-multiply")
every_case = pytest.mark.parametrize(
    "name", [soaked(name) if name in SLOW else name for name in CASES])


def opened(name: str) -> Session:
    file, options, given = CASES[name]
    return open_file(file, input=given, **options).session


def entries(reply: Any, width: int) -> AnyArray:
    return np.frombuffer(base64.b64decode(reply["entries"]), "<f8").reshape(-1, width).T


def dense(machine: Any, card: Any) -> list[AnyArray]:
    """One loop as the model makes it: the card before each layer and after its attention, and after the last layer."""
    with torch.no_grad():
        return [as_array(stage) for stage in machine.model.stages(torch.from_numpy(np.array(card)).to(machine.model.dtype))]


@pytest.mark.parametrize("example", EXPECTED)
@pytest.mark.parametrize("design", DESIGNS)
def test_every_moment_is_the_dense_engines(example: str, design: str) -> None:
    """Bit for bit, in all loops of a short example and the first of a long one, from the punched card alone."""
    program = punchcard.load(EXAMPLES / example)
    machine = punchcard.build(program, design=design)
    session = Session(machine, program)
    card = as_array(machine.punch(program))
    for loop in range(28 if example == "multiply.subleq" else 2):
        stages = dense(machine, card)
        for stage in range(session.per_loop):
            state = session.state(loop * session.per_loop + stage)
            assert np.array_equal(entries(state, machine.layout.width), stages[stage])
        card = stages[-1]
    state = session.state((loop + 1) * session.per_loop)
    assert np.array_equal(entries(state, machine.layout.width), card)
    assert (state["ended"], session.timeline.end is not None) == (("halted", True) if loop == 27 else (None, False))


@every_case
def test_a_loop_of_every_machine_is_the_dense_engines(name: str) -> None:
    session = opened(name)
    for loop in (0, 1, 4):
        stages = dense(session.machine, entries(session.state(loop * session.per_loop), session.layout.width))
        for stage, expected in enumerate(stages[:-1]):
            found = entries(session.state(loop * session.per_loop + stage), session.layout.width)
            assert np.array_equal(found, expected), f"loop {loop}, stage {stage}"


@every_case
def test_a_large_card_is_computed_in_some_columns_as_in_all(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The restricted way gives what the dense equation gives, layer by layer, and does not fall back to all columns."""
    def never(*given: Any) -> None:
        raise AssertionError("computed in all columns")

    monkeypatch.setattr(inspector.LoopInspector, "_in_full", never)
    session = opened(name)
    session.inspector.small = False
    rounding = 0.0 if session.inspector.exact else 1e-12
    for loop in (0, 3, 4):
        card = session.timeline.served(loop).card
        stages = dense(session.machine, entries_of(card))
        for stage in range(session.per_loop):
            columns, found = session.card(loop * session.per_loop + stage)
            assert np.abs(found - stages[stage][:, columns]).max() <= rounding
        assert set(session.inspector.columns_shown) <= set(columns.tolist())


def test_a_session_is_freed_at_once() -> None:
    """It holds up to 256 MiB of cards, so nothing in it may hold itself and wait for the garbage collector."""
    gc.collect()
    gc.disable()
    try:
        session = opened("two-layer")
        session.state(3 * session.per_loop + 1)
        held = [weakref.ref(each) for each in (session, session.inspector, session.timeline)]
        del session
        assert [each() for each in held] == [None] * len(held)
    finally:
        gc.enable()


def test_only_the_last_loops_are_kept() -> None:
    look, most = opened("two-layer").inspector.stages, inspector.LOOPS_KEPT
    first = [look(loop) for loop in range(most + 1)]
    assert all(look(loop) is first[loop] for loop in range(1, most + 1))
    assert look(0) is not first[0]


def test_a_spread_that_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the restricted way is not right, it is noticed, and all columns are computed."""
    session = opened("two-layer")
    session.inspector.small = False
    right = session.card(3)
    monkeypatch.setattr(ColumnSubset, "loop", lambda *given: _wrong(ColumnSubset.__dict__["_closed"], *given))
    session.inspector._kept.clear()
    columns, found = session.card(3)
    assert np.array_equal(found, right[1][:, np.searchsorted(right[0], columns)])
    monkeypatch.setattr(inspector, "MOST_IN_FULL", 0)
    session.inspector._kept.clear()
    with pytest.raises(PunchcardError, match="loop 0 of a card of 14 columns cannot be shown layer by layer: the end of"):
        session.card(3)
    columns, found = session.card(4)
    assert np.array_equal(found, entries_of(session.timeline.served(1).card, columns))


def _wrong(closed: Callable[..., Any], subset: ColumnSubset, card: Any, wanted: Any) -> Any:
    subset.take(card)
    found = closed(subset, card, np.union1d(wanted, subset.witnesses))
    found.stages[-1][0, 0] += 2
    return found


# Values


def values_of(session: Session, moment: int) -> dict[str, str]:
    return {shown.name: text for shown, text in zip(session.shown, session.state(moment)["values"], strict=True)}


def oracle_values(session: Session, loops: int) -> Iterator[tuple[int, dict[str, Any], int | None]]:
    """What the plain interpreter has after each instruction: the loop, values by name, and the program counter."""
    machine, program = session.machine, session.program
    oracle = machine.oracle(program, iter([*CASES["image"][2], *[-1] * 99]).__next__, lambda byte: None)
    for step in range(loops):
        state = oracle.state
        yield step + machine.design.warm_up, machine.values(program, machine.own(program, state)), getattr(
            state, "program_counter", None)
        oracle.step()


@pytest.mark.parametrize("name", [*DESIGNS, "image"])
def test_values_and_counter_are_the_interpreters(name: str) -> None:
    session = opened(name)
    groups = [shown.name for shown in session.shown if shown.group in ("memory", "registers")]
    for loop, values, counter in oracle_values(session, 12):
        state = session.state(loop * session.per_loop)
        assert state["program_counter"] == counter
        found = values_of(session, loop * session.per_loop)
        assert {n: found[n] for n in groups} == {n: str(values[n]) for n in groups}


@pytest.mark.parametrize("name", ["riscv", soaked("riscv-two-layer")])
def test_registers_are_the_machines_own(name: str) -> None:
    session = opened(name)
    for loop in (1, 2, 3, 4):
        state = session.state(loop * session.per_loop)
        seen = session.machine.readout(session.program, session.timeline.served(loop).card)
        found = values_of(session, loop * session.per_loop)
        assert {register: int(found[register]) for register in seen.values} == seen.values
        assert state["program_counter"] == seen.program_counter
        assert state["instruction"]


def test_variables_of_real_numbers() -> None:
    found = values_of(opened("fleq"), 10**9)
    assert found["X"] == "0.3 -0.1 ; -0.2 0.4"
    assert found["program counter"] == "7"


def test_numbers_are_written_as_a_browser_writes_them() -> None:
    assert {number: number_text(number) for number in FORMATTED} == FORMATTED


def test_a_value_that_is_not_one() -> None:
    layout = built(design="paper")[1].layout
    shown = DisplayValue("a", "memory", "inside", 0, kind="one-hot", labels=("in",))
    assert shown.text(layout, lambda column: [1.0] * layout.width) == "in"
    assert shown.text(layout, lambda column: [0.0] * layout.width) == "–"
    assert DisplayValue("a", "memory", "memory", 0).text(layout, lambda column: [0.5] * layout.width) == "–"


def test_a_machine_of_ones_own_has_values_by_its_layout() -> None:
    session = opened("turing")
    assert session.counter is None
    assert {shown.rows for shown in session.shown} >= {"square", "address"}
    assert len(session.state(0)["values"]) == len(session.shown)
    with pytest.raises(PunchcardError, match="shows no program counter"):
        session.find("branch", 0)


# Lines


@pytest.mark.parametrize(("name", "line", "text"), [
    ("two-layer", 11, "loop:   subleq minus_a, product"), ("fleq", 14, "At = transpose(A)"), ("riscv", None, None),
    ("image", None, None)])
def test_the_line_of_the_instruction(name: str, line: int | None, text: str | None) -> None:
    session = opened(name)
    state = session.state((1 + session.machine.design.warm_up) * session.per_loop)
    assert state["line"] is not None
    assert state["instruction"]
    source = (EXAMPLES / CASES[name][0]).read_text().splitlines()
    assert session.about()["program"]["lines"] == source
    if line is not None:
        assert (state["line"], state["instruction"]) == (line, text)


@pytest.mark.parametrize("name", ["paper", "fleq", "image", "riscv"])
def test_without_a_file_the_program_is_listed(name: str) -> None:
    program, machine = built(CASES[name][0], **CASES[name][1])
    session = Session(machine, program)
    state = session.state((1 + machine.design.warm_up) * session.per_loop)
    assert state["line"] is not None
    assert state["instruction"]
    assert state["instruction"].split()[0] in session.listing.lines[state["line"] - 1]


# Finding


def counters(session: Session) -> list[int | None]:
    end = session.explore(5)["loops"]
    assert end is not None
    return [session.state(loop * session.per_loop)["program_counter"] for loop in range(end + 1)]


@pytest.mark.parametrize("name", ["paper", "fleq", "image"])
def test_find_branches_and_breakpoints(name: str) -> None:
    """As looking at every loop finds them, forward and back."""
    session = opened(name)
    size, per_loop = session.machine.instruction_size, session.per_loop
    found = counters(session)
    branches = [loop for loop, (one, two) in enumerate(pairwise(found), start=1)
                if one is not None and two is not None and two != one + size]
    assert session.find("branch", 0) == branches[0] * per_loop
    assert session.find("branch", len(found) * per_loop, forward=False) == branches[-1] * per_loop
    wanted = found[len(found) // 2]
    assert wanted is not None
    places = [loop for loop, counter in enumerate(found) if counter == wanted and loop > 0]
    assert session.find("breakpoint", 0, instructions=[wanted]) == places[0] * per_loop
    last = places[-1] * per_loop
    assert session.find("breakpoint", last + 1, forward=False, instructions=[wanted]) == last
    assert session.find("breakpoint", 0, instructions=[54321]) is None


def test_find_a_port() -> None:
    session = opened("image")
    per_loop, passed = session.per_loop, []
    for loop in range(session.explore(5)["loops"] or 0):
        state = session.state(loop * per_loop)
        passed.append(state["read"] + len(state["output"]))
    places = [loop for loop, (one, two) in enumerate(pairwise(passed), start=1) if one != two]
    assert len(places) >= 4
    assert session.find("port", 0) == places[0] * per_loop
    assert session.find("port", places[0] * per_loop) == places[1] * per_loop
    assert session.find("port", places[2] * per_loop, forward=False) == places[1] * per_loop
    assert session.state(10**9)["output"] == "ab"


@pytest.mark.parametrize("name", ["paper", "one-layer"])
def test_find_a_change(name: str) -> None:
    """The moments at which the rows of a cell are others than before, as looking at every moment finds them."""
    session = opened(name)
    column, rows = 5, session.layout.rows("memory")
    moments = [moment for moment in range(1, 7 * session.per_loop)
               if any(row in range(rows.start, rows.stop) and at == column for row, at in session.state(moment)["changed"])]
    assert len(moments) >= 2
    assert session.find("change", 0, rows="memory", column=column) == moments[0]
    assert session.find("change", moments[0], rows="memory", column=column) == moments[1]
    assert session.find("change", moments[1], forward=False, rows="memory", column=column) == moments[0]
    assert session.find("change", moments[0], forward=False, rows="memory", column=column) is None


def test_what_cannot_be_found() -> None:
    session = opened("paper")
    wrong: tuple[tuple[dict[str, Any], str], ...] = (
        ({"what": "end"}, "unknown event 'end'"), ({"what": "breakpoint"}, "name at least one"),
        ({"what": "change", "rows": "memry"}, "did you mean 'memory'"),
        ({"what": "change", "rows": "memory", "column": 99}, "column 99"), ({"what": "halt", "seconds": 0.0}, "seconds=0"),
    )
    for given, message in wrong:
        with pytest.raises(PunchcardError, match=re.escape(message)):
            session.find(**{"moment": 0, **given})
    for call, message in ((lambda: session.state(-1), "moment -1"), (lambda: session.attention(0, 9, 0), "layer 9"),
                          (lambda: session.attention(0, 0, 1), "head 1"), (lambda: session.state(0, [99]), "column 99"),
                          (lambda: session.explain(0, 0), "no step"), (lambda: session.attention(-1, 0, 0), "loop -1"),
                          (lambda: session.weights(0, head=0, unit=0), "not both"),
                          (lambda: session.explore(99), "seconds=99"), (lambda: session.weights(0, head=5), "head 5"),
                          (lambda: session.weights(0, unit=999), "unit 999")):
        with pytest.raises(PunchcardError, match=message):
            call()


# Runs


def test_a_long_run_opens_at_once() -> None:
    """States in the middle of many loops, from marks whose number does not grow."""
    program = punchcard.assemble(".data\na 1\nb 0\n.code\nloop: subleq a, b\n subleq a, a, loop\n halt\n")
    machine = punchcard.build(program, design="two-layer")
    session = Session(machine, program, max_steps=200_000)
    assert session.about()["loops"] is None
    assert session.explore(20)["ended"] == "steps"
    assert session.timeline.end is not None
    assert session.timeline.end.loops == 200_001
    assert len(session.timeline._marks) <= MOST_MARKS + 1
    state = session.state(177_777 * session.per_loop)
    assert state["loop"] == 177_777
    assert session.state(10**9)["ended"] == "steps"


def test_a_run_that_leaves_its_range_says_so() -> None:
    text = ".range 4\n.data\nx scalar 1\ntwo scalar 2\n.code\n" + 3 * "x = mul(x, two)\n" + "halt\n"
    program = punchcard.assemble(text, "fleq")
    session = Session(punchcard.build(program), program)
    assert session.explore(5)["ended"] == "error"
    state = session.state(10**9)
    assert state["loop"] == 3
    assert state["message"] is not None
    assert "instruction 2 in loop 3" in state["message"]
    assert session.state(2 * session.per_loop)["message"] is None


def test_a_fault_is_a_message() -> None:
    program = assemble_image("5000 0 3\n")
    session = Session(punchcard.build(program, memory=64), program)
    state = session.state(10**9)
    assert state["ended"] == "fault"
    assert state["message"] is not None
    assert "address 5000" in state["message"]


# Heads, formulas and weights


def test_attention_is_what_observe_sees() -> None:
    session = opened("two-layer")
    machine, program = session.machine, session.program
    with observe(machine.model, machine.layout) as seen:
        machine.run(program, max_steps=2, engine="dense")
    for snapshot in seen:
        for head in range(machine.weights.layers[snapshot.layer].heads):
            reply = session.attention(snapshot.loop, snapshot.layer, head)
            matrix = np.frombuffer(base64.b64decode(reply["matrix"] or ""), "<f8").reshape(-1, machine.layout.columns).T
            assert np.array_equal(matrix, as_array(snapshot.attention(head)))
            moved = {(move.source_column, move.target_column, move.weight) for move in snapshot.moves(head)}
            assert {(i, j, weight) for i, j, weight, _, _ in reply["moves"] if i != j} == moved
            assert all(gap is None or gap > 0 for *_, gap in reply["moves"])


@pytest.mark.parametrize("name", ["paper", "fleq", "riscv"])
def test_large_cards_tell_attention_and_reasons_as_small_ones_do(name: str) -> None:
    small, large = opened(name), opened(name)
    large.inspector.small = False
    moves = {(i, j): weight for i, j, weight, *_ in small.attention(2, 0, 0)["moves"]}
    found = large.attention(2, 0, 0)
    assert found["matrix"] is None
    assert all(abs(moves[i, j] - weight) < 1e-12 for i, j, weight, *_ in found["moves"])
    for moment in (2 * small.per_loop + 1, 2 * small.per_loop + 2):
        one, two = (session.explain(moment, 0)["formulas"] for session in (small, large))
        for a, b in zip(one, two, strict=True):
            assert a["text"] == b["text"]
            assert np.allclose(a["after"], b["after"], rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", [*DESIGNS, "fleq", "image", "riscv", "turing"])
def test_formulas_say_what_the_layer_does(name: str) -> None:
    """Each row's formula, read as text and evaluated, gives what the compiled feed-forward layer gives."""
    session = opened(name)
    layout = session.layout
    rng = np.random.default_rng(5)
    column = rng.choice([0.0, 1.0] if name == "fleq" else [-1.0, 0.0, 1.0], layout.width)  # its gates take no other
    for number, layer in enumerate(session.machine.weights.layers):
        after = column + layer.w2 @ np.maximum(layer.w1 @ column + layer.b1[:, 0], 0) + layer.b2[:, 0]
        reply = session.formulas(number)
        checked = 0
        for text, details in zip(reply["formulas"], reply["details"], strict=True):
            for detail in details:
                checked += check_formula(detail, layout, column, after)
            for part in text.split("; "):
                checked += check_formula(part, layout, column, after)
        assert checked or not reply["formulas"]


def check_formula(text: str, layout: Any, column: AnyArray, after: AnyArray) -> int:
    """How many rows a formula was right for; one that was cut is not looked at."""
    if text.endswith("…"):
        return 0
    target, _, right = text.partition(" = ")
    right, _, span = right.partition(", i from 0 to ")
    indexed = re.search(r"\bi\b", text) is not None
    name = re.sub(r"\[.*", "", target)
    rows = rows_of(target, layout)
    count = (int(span) + 1 if span else len(rows_of(name, layout))) if indexed else 1
    for i in range(count):
        places = rows_of(target, layout, i) if indexed else rows
        found = np.broadcast_to(value_of(right, layout, column, i), len(places))
        assert np.allclose(found, after[places], rtol=1e-9, atol=1e-9 * (1 + np.abs(after).max())), text
    return count


def test_heads_say_what_they_were_given() -> None:
    heads = [head["about"] for layer in opened("two-layer").about()["layers"] for head in layer["heads"]]
    assert heads == [
        "query position + pointer.a, key position, value -memory, into difference",
        "query position + pointer.b, key position, value memory, into difference",
        "query position + following, key 0.75*position + pointer.b, value stack(2*command, 2*difference), "
        "into pointer and memory"]


def test_explain_tells_each_head_and_assignment() -> None:
    session = opened("two-layer")
    for moment in range(4, 9):
        reply = session.explain(moment, 0)
        before, after = (np.frombuffer(base64.b64decode(side), "<f8") for side in (reply["before"], reply["after"]))
        assert np.array_equal(after, entries(session.state(moment), session.layout.width)[:, 0])
        names = session.formula_texts.row_names
        if moment % 2:
            added = np.zeros_like(before)
            for formula in reply["formulas"]:
                rows = [names.index(row) for row in formula["rows"]]
                added[rows] += np.subtract(formula["after"], formula["before"])
            assert np.array_equal(before + added, after)
        else:
            written = {row for formula in reply["formulas"] for row in formula["rows"]}
            assert {names[row] for row in np.flatnonzero(before != after)} <= written


def test_weights_by_the_names_of_rows() -> None:
    session = opened("two-layer")
    names, arrays = session.formula_texts.row_names, session.machine.weights.layers[1]
    parts = {part["name"]: part for part in session.weights(1, head=0)["parts"]}
    value = np.zeros_like(arrays.value[0])
    for made, source, weight in parts["value"]["nonzero"]:
        value[names.index(made), names.index(source)] = weight
    assert np.array_equal(value, arrays.value[0])
    inner, outer = session.weights(1, unit=3)["parts"]
    row = np.zeros(arrays.w1.shape[1])
    for _, source, weight in inner["nonzero"]:
        row[names.index(source)] = weight
    assert np.array_equal(row, arrays.w1[3])
    assert inner["bias"] == arrays.b1[3, 0]
    assert {made for made, _, _ in outer["nonzero"]} == {names[i] for i in np.flatnonzero(arrays.w2[:, 3])}
    assert session.weights(1)["hidden"] == arrays.hidden


def test_about_a_large_machine_waits_with_its_formulas() -> None:
    session = opened("riscv")
    layers = session.about()["layers"]
    assert all(layer["formulas"] is None for layer in layers)
    assert all(session.formulas(0)["formulas"])


def test_a_turn_that_is_given_up_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt while a thread waits takes it out of the queue: whoever comes later is served."""
    turns, served = Turns(), threading.Event()

    def interrupt(turn: threading.Event) -> None:
        raise KeyboardInterrupt

    with turns, monkeypatch.context() as patched:
        patched.setattr(threading.Event, "wait", interrupt)
        with pytest.raises(KeyboardInterrupt):
            turns.__enter__()

    def ask() -> None:
        with turns as waiting:
            assert waiting == 0
            served.set()

    threading.Thread(target=ask, daemon=True).start()
    assert served.wait(5)
