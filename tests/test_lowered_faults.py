"""Where the lowered engine does not apply: it says so, and the card is the equation's all the same."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from punchcard.card.encoding import encode_bits
from punchcard.card.layout import Layout, Pattern, Region, RowBlock
from punchcard.card.packed import PackedCard
from punchcard.engines import Controls, prepare
from punchcard.engines.base import Run, Runner
from punchcard.engines.controls import Port, Skip
from punchcard.engines.lowered import card_state
from punchcard.engines.lowered.analysis import columns
from punchcard.engines.lowered.analysis.plan import LoopPlan
from punchcard.engines.lowered.compiled_model import CompiledModel
from punchcard.errors import LoweringError, PunchcardError
from punchcard.machines.fleq.machine import FleqMachine
from punchcard.machines.fleq.text.assembler import assemble
from punchcard.machines.subleq.machine import SubleqMachine
from punchcard.transformer.model import LoopedTransformer
from punchcard.transformer.precision import Precision
from tests.cases import load_subleq
from tests.engine_runs import compiled_model_of, run_dense, run_lowered
from tests.lowered_cases import (
    assert_the_equation,
    cards_of,
    code_kept_in,
    operations,
    painters,
    random_rules,
    turing_machine,
)
from tests.random_programs import random_program
from tests.test_engines import counter_machine

pytestmark = pytest.mark.usefixtures("shared_code")

NOT_DECLARED = "the card has entries that its layout does not declare, or a constant has changed"
FAILED = "a bit was not ±1, a number was beyond its limit, or two columns stored to one"


def slow(loops: int, why: str) -> str:
    return f"{loops} loops were made by the dense engine: {why}"


# What cannot be lowered at all


def without_facts() -> tuple[LoopedTransformer, Tensor, None]:
    _, model, card = counter_machine()
    return model, card, None


def subleq(design: str, precision: str | Precision = "float64") -> tuple[LoopedTransformer, Tensor, Layout]:
    machine = SubleqMachine(word_bits=4, memory=5, instructions=6, design=design, precision=precision)
    return machine.model, machine.punch(random_program(random.Random(5), 4, 5, 6)), machine.layout


def paper_fleq() -> tuple[LoopedTransformer, Tensor, Layout]:
    machine = FleqMachine(functions=["add", "sigmoid"], size=1, memory=6, instructions=4, design="paper")
    return machine.model, machine.punch(assemble(".data\nx scalar 1\n.code\nx = add(x, x)\nhalt")), machine.layout


def all_active() -> tuple[LoopedTransformer, Tensor, Layout]:
    layout, model, card = counter_machine()
    return model, card, Layout([RowBlock(b.name, b.size, holds=b.holds, changes=("head", "tape")) for b in layout.blocks],
                               layout.regions)


def with_a_gap() -> tuple[LoopedTransformer, Tensor, Layout]:
    """The last column of the tape belongs to no region."""
    layout, model, card = counter_machine()
    regions = [Region("head", 1), Region("tape", 5), Region("rest", 1, start=layout.columns - 1)]
    blocks = [RowBlock(b.name, b.size, holds={**b.holds, **({"rest": b.holds["tape"]} if "tape" in b.holds else {})},
                       changes=b.changes) for b in layout.blocks]
    return model, card, Layout(blocks, regions)


def long_pointers() -> tuple[LoopedTransformer, Tensor, Layout]:
    machine = turing_machine(random_rules(random.Random(1)), [0] * 12, 0, 40)
    return machine.model, machine.card, machine.layout


@pytest.mark.parametrize(("make", "why"), [
    (without_facts, "it needs the card's layout"),
    (partial(subleq, "one-layer"), "layer 1, head 2: passive columns find other passive columns, each its own"),
    (paper_fleq, "keys or queries outside the active columns depend on a mixture of many columns"),
    (partial(subleq, "two-layer", "float16"), "there is no code for float16, only for float32 and float64"),
    (partial(subleq, "two-layer", Precision(temperature=6.0)), "row 0 of a passive column takes from several columns"),
    (all_active, "every region of the layout is active"),
    (with_a_gap, "the card is not what its layout declares: row 0, column 6 holds 1.0: the layout declares nothing there"),
    (long_pointers, "layer 1, head 1: a table of 40 bits is too large, the most is 26"),
])
def test_what_cannot_be_lowered(make: Callable[[], tuple[LoopedTransformer, Tensor, Layout | None]], why: str) -> None:
    """By itself the engine refuses; with a slower one in its place there is a note, and the card is the equation's."""
    model, card, layout = make()
    with pytest.raises(LoweringError) as info:
        compiled_model_of(model, card, layout)
    assert why in str(info.value)
    ran = run_lowered(model, card, 6, facts=layout)
    assert (ran.engine, ran.made) == ("dense", {"dense": 6})
    assert ran.notes[0] == f"not lowered: {info.value}"
    assert torch.allclose(ran.card, run_dense(model, card, 6).card, rtol=1e-12, atol=1e-12)


def test_active_columns_without_number_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys of noise make every cell active, and code would grow with the memory."""
    model, card, layout = subleq("two-layer")
    with torch.no_grad():
        key = model.get_parameter("layers.0.key")
        key.add_(torch.randn(key.shape, generator=torch.Generator().manual_seed(1)))
    monkeypatch.setattr(columns, "MOST_SLOTS", 20)
    ran = run_lowered(model, card, 2, facts=layout)
    assert ran.notes[0] == "not lowered: active columns carry more than 20 numbers from loop to loop"
    assert torch.equal(ran.card, run_dense(model, card, 2).card)


@pytest.mark.parametrize("wrong", [0.5, torch.nan, -3.0])
def test_a_card_that_is_wrong_from_the_start(wrong: float) -> None:
    layout, model, card = counter_machine()
    layout.get(card, "data", "tape")[0, 4] = wrong
    ran = assert_the_equation(model, card, layout, 8, engine="dense", notes=None)
    assert ran.notes[0] == (f"not lowered: the card is not what its layout declares: {wrong} does not go to 'data' in "
                            "'tape': the layout declares bits there")


def test_an_empty_batch_and_cards_beyond_the_limit_are_refused() -> None:
    machine = FleqMachine(functions=["add"], size=1, memory=6, instructions=4)
    card = machine.punch(assemble(".data\nx scalar 1\n.code\nx = add(x, x)\nhalt"))
    machine.layout.get(card, "data", "memory")[0, 3] = 1000.0
    with pytest.raises(LoweringError, match="data holds 1000, more than its limit 32"):
        compiled_model_of(machine.model, card, machine.layout)
    assert_the_equation(machine.model, card, machine.layout, 3, engine="dense", notes=None)


def test_code_is_not_used_for_wider_limits() -> None:
    """The limits of a layout are part of what the code relies on."""
    machine = FleqMachine(functions=["add"], size=1, memory=6, instructions=4)
    layout = machine.layout
    card = machine.punch(assemble(".data\nx scalar 15\ny scalar -1\n.code\nx = add(x, x); if y <= 0 goto 0\nhalt"))
    wider = layout.limited({"data": 1e6, "incoming": 1e6})
    narrow, same, wide = (compiled_model_of(machine.model, card, facts) for facts in (layout, layout.limited({}), wider))
    assert same is narrow
    assert narrow is not wide
    assert narrow.name != wide.name


# In the middle of a run


def test_a_loop_that_is_declined_ends_the_run() -> None:
    """Nothing of it has happened, and the runner goes on from a card that another engine made of it."""
    machine = painters(16, 4)
    runner = prepare("lowered", machine.model, machine.layout, machine.card)
    ran = runner.run(40)
    assert (ran.reason, ran.loops, ran.notes, ran.made) == ("declined", 3, (FAILED,), {"lowered": 3})
    assert torch.equal(ran.card, run_dense(machine.model, machine.card, 3).card)
    again = runner.run(40)
    assert (again.reason, again.loops) == ("declined", 0)
    assert torch.equal(again.card, ran.card)
    runner.take(run_dense(machine.model, ran.card, 2).card)
    after_it = runner.run(5)
    assert (after_it.reason, after_it.loops) == ("loops", 5)
    assert torch.equal(after_it.card, run_dense(machine.model, machine.card, 10).card)


@pytest.mark.parametrize("until", [(), (Pattern("place", "heads", (1, 1, -1, -1)),)])
def test_a_card_of_a_batch_that_declines(until: tuple[Pattern, ...]) -> None:
    """All cards stop where the first one does, whatever they had done before that is known."""
    machine = painters(16, 4)
    other = machine.card.clone()
    machine.layout.put(other, "place", "heads", encode_bits([6, 12], 4))
    for batch in (torch.stack([machine.card, other]), torch.stack([other, machine.card, other])):
        ran = prepare("lowered", machine.model, machine.layout, batch).run(40, Controls(until=until))
        assert (ran.reason, ran.loops, ran.notes) == ("declined", 3, (FAILED,))
        assert torch.equal(ran.card, run_dense(machine.model, batch, 3).card)
        seen: list[Tensor] = []
        whole = run_lowered(machine.model, batch, 40, facts=machine.layout, watch=lambda _, now: seen.append(now))  # noqa: B023
        for found in seen:
            batch = machine.model(batch)
            assert torch.equal(found, batch)
        assert whole.made["lowered"] + whole.made["dense"] == 40


def test_columns_that_should_hold_the_same_and_do_not() -> None:
    """A port may set them apart; the card that the slower engine gets is the port's."""
    machine = FleqMachine(functions=["add"], size=2, memory=6, instructions=4)
    layout, card = machine.layout, machine.punch(assemble(".data\nx scalar 1\n.code\nx = add(x, x)\nhalt"))
    place = layout.region("scratchpad")

    def part_them(_: int, now: Tensor) -> bool:
        now[layout.rows("program_counter"), place.stop - 1] *= -1
        return True

    ports = after(1, part_them, machine.sizes.pointer_bits, "program_counter")
    ran, expected = (run(machine.model, card, 4, facts=layout, ports=ports) for run in (run_lowered, run_dense))
    assert torch.allclose(ran.card, expected.card)
    assert ran.made["dense"] > 0


def after(loops: int, change: Port, bits: int, rows: str, region: str = "scratchpad") -> dict[Pattern, Port]:
    """Ports for `change`, which is called once."""
    def act(loop: int, card: Tensor) -> bool | Skip:
        return change(loop, card) if loop == loops else True

    return {Pattern(rows, region, (0,) * bits): act}


@pytest.mark.parametrize("wrong", [0.5, -1.6, 0.0, 3.0, torch.nan, torch.inf])
@pytest.mark.parametrize(("design", "counter"), [("two-layer", "following"), ("paper", "program_counter")])
def test_a_cell_that_a_port_spoils(design: str, counter: str, wrong: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every column computes in the equation: a bad bit counts in the cell that nobody reads, too."""
    monkeypatch.setattr(card_state, "CHECK_SHARE", 0)
    machine = SubleqMachine(word_bits=4, memory=6, instructions=9, design=design)
    layout, card = machine.layout, machine.punch(random_program(random.Random(3), 4, 6, 9))
    for cell in (0, 5):
        def spoil(_: int, now: Tensor, cell: int = cell) -> bool:
            layout.get(now, "memory", "memory")[1, cell] = wrong
            return True

        ports = after(3, spoil, machine.sizes.pointer_bits, counter)
        (ran, seen), (_, expected) = (watched(run, machine, card, ports) for run in (run_lowered, run_dense))
        assert all(torch.allclose(a, b, rtol=0, atol=0, equal_nan=True) for a, b in zip(seen, expected, strict=True))
        assert any(NOT_DECLARED in note for note in ran.notes)


def watched(run: Callable[..., Run], machine: SubleqMachine, card: Tensor,
            ports: dict[Pattern, Port]) -> tuple[Run, list[Tensor]]:
    """Nine loops, and the cards after each."""
    cards: list[Tensor] = []
    return run(machine.model, card, 9, facts=machine.layout, ports=ports,
               watch=lambda _, now: cards.append(now.clone())), cards


def test_what_a_port_changed_by_force_is_an_error_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole of a packed card is looked at only now and then between ports, and when the run ends."""
    monkeypatch.setattr(card_state, "CHECK_SHARE", 1e9)
    machine = SubleqMachine(word_bits=4, memory=6, instructions=9, design="two-layer")
    program = random_program(random.Random(3), 4, 5, 9)

    def runner() -> Runner:
        return prepare("lowered", machine.model, machine.layout, machine.pack(program))

    def move(_: int, card: PackedCard, *, by_force: bool = True) -> bool:
        """Two cells change places: bits as before, but not those that the code knows."""
        words, first = card.fields["position"], machine.layout.region("memory").start
        words.flags.writeable = words.flags.writeable or by_force
        words[[first, first + 1]] = words[[first + 1, first]]
        return True

    def move_by_name(_: int, card: PackedCard) -> bool:
        numbers = machine.layout.numbers(card, "position", "memory").copy()
        numbers[:2] = numbers[1::-1]
        machine.layout.put_numbers(card, "memory", {"position": numbers})
        return True

    assert runner().run(9, Controls(ports=after(3, lambda *_: True, machine.sizes.pointer_bits, "following"))).loops == 9
    with pytest.raises(PunchcardError, match="a port left something on the card that its layout does not declare"):
        runner().run(9, Controls(ports=after(3, move, machine.sizes.pointer_bits, "following")))
    with pytest.raises(ValueError, match="read-only"):
        runner().run(9, Controls(ports=after(3, partial(move, by_force=False), machine.sizes.pointer_bits, "following")))
    ran = runner().run(9, Controls(ports=after(3, move_by_name, machine.sizes.pointer_bits, "following")))
    assert (ran.loops, ran.reason) == (3, "declined"), "a field of the card's own is seen at once"
    assert any(NOT_DECLARED in note for note in ran.notes)


def test_a_cell_that_a_port_spoils_in_a_tensor_is_seen_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tensor is packed again after every port, and what is not ±1 cannot be packed."""
    monkeypatch.setattr(card_state, "CHECK_SHARE", 1e9)
    machine = SubleqMachine(word_bits=4, memory=6, instructions=9, design="two-layer")
    layout, card = machine.layout, machine.punch(random_program(random.Random(3), 4, 5, 9))

    def spoil(_: int, now: Tensor) -> bool:
        layout.get(now, "memory", "memory")[1, 5] = 0.5  # no instruction names this cell
        return True

    ports = after(3, spoil, machine.sizes.pointer_bits, "following")
    ran, expected = (run(machine.model, card, 9, facts=layout, ports=ports) for run in (run_lowered, run_dense))
    assert torch.equal(ran.card, expected.card)
    assert ran.notes == (slow(1, NOT_DECLARED),), "the weights round it to a bit"


def test_rows_that_never_change_are_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    """A port may not change keys; if it does, the code no longer applies."""
    monkeypatch.setattr(card_state, "CHECK_SHARE", 0)
    layout, model, card = counter_machine()

    def relabel(_: int, now: Tensor) -> bool:
        layout.put(now, "position", "tape", layout.get(now, "position", "tape").flip(1).clone())
        return True

    ports = {Pattern("counter", "head", (1, 1, -1)): relabel}
    ran = run_lowered(model, card, 7, facts=layout, ports=ports)
    assert torch.equal(ran.card, run_dense(model, card, 7, facts=layout, ports=ports).card)
    assert ran.notes == (slow(5, NOT_DECLARED),)


@pytest.mark.parametrize("part", ["a", "b", "c"])
@pytest.mark.parametrize("design", ["two-layer", "paper"])
def test_a_pointer_to_any_column_or_none(design: str, part: str) -> None:
    """Columns that do not exist, the scratchpad, constants, other instructions."""
    machine = SubleqMachine(word_bits=4, memory=6, instructions=9, design=design)
    layout, length = machine.layout, machine.sizes.pointer_bits
    program = random_program(random.Random(3), 4, 6, 9)
    missing = 0
    for column in (0, 1, 2, 10, machine.sizes.columns - 1, machine.sizes.columns, 25, 31):
        card = machine.punch(program)
        layout.get(card, f"command.{part}", "instructions")[:, :2] = encode_bits(torch.tensor([column]), length)
        ran = assert_the_equation(machine.model, card, layout, 10, notes=None)
        missing += any("a pointer matched no column" in note for note in ran.notes)
    assert missing >= 3


OVERFLOW = """
.range 16
.data
a matrix 2x2  4 2 ; 3 4
b matrix 2x2  4 -1 ; 2 3
c matrix 2x2
n scalar -15
one scalar 1
.code
c = mul(a, b)
a = add(a, c)
n = add(n, one); if n <= 0 goto 0
halt
"""


def test_products_that_leave_the_range() -> None:
    """From there on another engine makes the loops; the cards agree as far as soft products do."""
    machine = FleqMachine(functions=["add", "mul"], size=2, memory=12, instructions=5, heads=2)
    card = machine.punch(assemble(OVERFLOW))
    seen, ran = cards_of(machine.model, card, machine.layout, 20)
    assert (ran.engine, ran.made) == ("dense", {"lowered": 3, "dense": 17})
    assert ran.notes == (slow(1, FAILED), slow(16, NOT_DECLARED))
    for found in seen:
        largest = float(found.abs().max())
        rounding = 64 * machine.unit * max(largest, 1.0)  # beyond the range the bound does not hold
        assert torch.allclose(found, machine.model(card), rtol=0, atol=2 * machine.bound("mul") + rounding)
        card = found
    assert largest > machine.range


STORES = """
.range 64
.data
a matrix 2x2 1 2 ; 3 4
b matrix 2x2 0.5 -1 ; 2 3
c matrix 2x2
n scalar -3
.code
c = add(a, b)
b = sub(c, a)
a = transpose(b); if n <= 0 goto 0
halt
"""


def test_a_store_to_a_column_that_should_not_change() -> None:
    """Columns that have nothing to read find the column of zeros: it is no longer one after a store there."""
    machine = FleqMachine(functions=["add", "sub", "transpose"], size=2, memory=10, instructions=5, range=64.0)
    sizes, layout = machine.sizes, machine.layout
    notes = set()
    for column in range(1 << sizes.pointer_bits):
        card = machine.punch(assemble(STORES))
        code = layout.get(card, "data", "instructions")
        code[sizes.field_rows("c"), 0] = encode_bits(torch.tensor([column]), sizes.pointer_bits)[:, 0]
        notes |= {note.split(": ")[1] for note in assert_the_equation(machine.model, card, layout, 5, notes=None).notes}
    assert "a pointer led to a column that should not change (layer 4, head 1)" in notes


@pytest.mark.parametrize("cells", [16, 13])
def test_two_active_columns_that_store_to_one_place(cells: int) -> None:
    """When the heads meet they paint with the mean of their colours, 0, which is not a bit."""
    machine = painters(cells, 4)
    ran = assert_the_equation(machine.model, machine.card, machine.layout, 40, notes=None)
    assert ran.notes == (slow(3, FAILED), slow(3, NOT_DECLARED))


def test_a_head_beyond_the_tape() -> None:
    machine = turing_machine({(s, x): (s, 1 - x, 1) for s in range(4) for x in (0, 1)}, [0] * 20, 15, 5)
    ran = assert_the_equation(machine.model, machine.card, machine.layout, 40, notes=None)
    assert ran.notes[0].endswith("a pointer matched no column (layer 1, head 1)")


@pytest.fixture
def own_code(tmp_path: Path) -> Iterator[None]:
    """Nothing is found that was compiled before."""
    with code_kept_in(tmp_path):
        yield


def refusing(*refused: int) -> object:
    """`CompiledModel._trace` that refuses some cases of `operations`."""
    trace = CompiledModel._trace

    def refuse(self: CompiledModel, case: dict[int, float] | None, **options: Any) -> LoopPlan:
        if case is not None and sum((value > 0) << i for i, value in enumerate(case.values())) in refused:
            raise LoweringError("this case is too hard")
        return trace(self, case, **options)

    return refuse


@pytest.mark.usefixtures("own_code")
def test_a_case_that_cannot_be_lowered_is_left_to_another_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CompiledModel, "_trace", refusing(2))
    machine = operations([0, 1, 2, 3, 2, 1, 0, 1, 3, 3, 1, 2, 0, 0, 2, 1], 4)
    ran = assert_the_equation(machine.model, machine.card, machine.layout, 32, notes=None)
    assert ran.notes == (slow(8, "this case is too hard"),)


@pytest.mark.usefixtures("own_code")
def test_ports_and_patterns_in_loops_of_another_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when so many loops fail in a row that the other engine is given all the rest."""
    monkeypatch.setattr(CompiledModel, "_trace", refusing(0, 1, 2, 3))
    machine = operations([1] * 16, 4)
    layout = machine.layout
    ten, three = Pattern("counter", "head", (-1, 1, -1, 1)), Pattern("number", "head", (1, 1, -1, -1))
    outcomes = []
    for run in (run_dense, run_lowered):
        called: list[int] = []

        def count_down(loop: int, card: Tensor, called: list[int] = called) -> bool:
            called.append(loop)
            layout.put(card, "number", "head", encode_bits(1, 4))
            return len(called) < 9

        ran = run(machine.model, machine.card, 500, facts=layout, until=(), ports={ten: count_down})
        again = run(machine.model, machine.card, 500, facts=layout, until=three)
        outcomes.append((called, ran.loops, ran.reason, again.loops, again.reason, ran.card.tolist()))
    assert outcomes[0] == outcomes[1]
    assert len(called) == 9


def test_too_many_rows_that_select() -> None:
    machine = operations([0, 1, 2, 3] * 4, 4, op_bits=65)
    with pytest.raises(LoweringError, match="65 rows decide what a loop does: the most is 64"):
        compiled_model_of(machine.model, machine.card, machine.layout)
    machine = operations([0, 1, 2, 3] * 4, 4, op_bits=62)
    assert_the_equation(machine.model, machine.card, machine.layout, 20)


@pytest.mark.parametrize("change", ["a row that should be empty", "a negative temperature", "no temperature"])
def test_weights_that_break_a_rule_are_declined(change: str) -> None:
    """One weight is another: `lowered` declines, and `auto` gives the equation's card."""
    program = load_subleq("multiply.subleq")
    machine = SubleqMachine(word_bits=6, memory=6, instructions=9, design="paper" if "row" in change else "two-layer")
    layers = machine.model.layers
    if "row" in change:
        layers[6].b1.data[23, 0] += 1.0  # type: ignore[operator, index]
    else:
        layers[1].temperature.data[0] *= -1.0 if "negative" in change else 0.0  # type: ignore[operator, index]
    card = machine.punch(program.with_values({"a": 3, "b": 2}))
    with pytest.raises(LoweringError, match=r"which the layout leaves empty, gets a value|wins only above 0"):
        prepare("lowered", machine.model, machine.layout, card)
    expected = prepare("dense", machine.model, machine.layout, card).run(9).card
    assert torch.equal(prepare("auto", machine.model, machine.layout, card, loops=1000).run(9).card, expected)
