"""The scratchpad engine gives the card of the equation after every loop, and says where it had to compute in full."""

from __future__ import annotations

import random
import time
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from punchcard.card.encoding import decode_bits
from punchcard.card.layout import Layout, Pattern, Region, RowBlock, holding
from punchcard.card.packed import PackedCard
from punchcard.engines import prepare
from punchcard.engines.scratchpad import engine as scratchpad
from punchcard.engines.scratchpad import incremental
from punchcard.engines.scratchpad.incremental import Incremental
from punchcard.engines.scratchpad.restriction import restrict
from punchcard.machines.fleq.machine import FleqMachine
from punchcard.machines.lockstep import compare
from punchcard.machines.riscv.isa import encode
from punchcard.machines.riscv.machine import RiscvMachine
from punchcard.machines.subleq.isa import Halt, Instruction, Program, Subleq
from punchcard.machines.subleq.machine import SubleqMachine
from punchcard.primitives.bits import flip_bits, increment_bits
from punchcard.primitives.memory import ADDRESS_GAP, read, store_factor, store_gap
from punchcard.transformer.build import assign, attend, build, clear
from punchcard.transformer.expression import gated, rows
from punchcard.transformer.model import LayerShape, LoopedTransformer, TransformerLayer
from punchcard.transformer.precision import Precision
from punchcard.transformer.weights import Weights, active_columns
from tests import fleq_cases
from tests.cases import DESIGNS
from tests.engine_runs import card_with, run_dense, run_scratchpad
from tests.random_programs import random_program
from tests.riscv_cases import program_of
from tests.test_engines import counter_machine

LOOPS = 24
PRODUCTS = ("mul", "hadamard")


def cards_of(
    model: LoopedTransformer, card: Tensor, layout: Layout, loops: int = LOOPS
) -> tuple[list[Tensor], tuple[str, ...]]:
    """The cards after every loop, and the notes of the run."""
    seen: list[Tensor] = []
    ran = run_scratchpad(model, card, loops, facts=layout, watch=lambda _, now: seen.append(now))
    assert (ran.engine, ran.loops, len(seen)) == ("scratchpad", loops, loops)
    assert torch.equal(ran.card, seen[-1])
    return seen, ran.notes


def assert_the_equation(model: LoopedTransformer, card: Tensor, layout: Layout, loops: int = LOOPS, *,
                        off: float = 0.0) -> tuple[str, ...]:
    """Every card is what the model makes of the one before: bit for bit, or `off` by no more, and 1e-12 of the number."""
    seen, notes = cards_of(model, card, layout, loops)
    for loop, found in enumerate(seen, start=1):
        card = model(card)
        assert torch.allclose(found, card, rtol=1e-12, atol=off) if off else torch.equal(found, card), f"loop {loop}"
    return notes


# Cards of which most rows are 0


def spoilt_riscv(memory: int) -> tuple[RiscvMachine, Weights, PackedCard]:
    """A machine with a wrong weight: an addition's result has a bit of 1.5, which the next loops compute with."""
    machine = RiscvMachine(memory=memory)
    row, (first, second, third) = machine.layout.rows("value").start, machine.weights.layers
    w2 = second.w2.copy()
    w2[row, np.flatnonzero(w2[row])[0]] += 0.5
    weights = Weights(machine.weights.width, machine.weights.dtype, (first, replace(second, w2=w2), third))
    program = [encode("addi", rd=5, immediate=7), encode("addi", rd=6, rs1=5, immediate=6), encode("jal")]
    return machine, weights, machine.pack(program_of(program))


def test_a_loop_that_is_declined_on_a_large_card_takes_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lowered engine makes a loop; then a bit is not a bit, and another engine makes the rest, of 65,571 columns."""
    machine, weights, packed = spoilt_riscv(1 << 16)
    started = time.process_time()
    ran = prepare("auto", weights, machine.layout, packed).run(5)
    assert time.process_time() - started < 10  # measured: 2.4; it was 7, and 97 with products
    assert ran.made == {"lowered": 1, "scratchpad": 4}

    small, weights, packed = spoilt_riscv(64)
    card = packed.tensor()
    for many in (incremental.MANY_COLUMNS, 0):
        monkeypatch.setattr(incremental, "MANY_COLUMNS", many)
        assert_the_equation(weights.module, card, small.layout, 5)
    expected = run_dense(weights.module, card, 5).card
    assert not bool((expected.abs() == 1).logical_or(expected == 0).all())
    for name, region, first in (("memory", "registers", 3), ("counter", "scratchpad", 0), ("word", "scratchpad", 0)):
        found, wanted = machine.layout.get(ran.card, name, region), small.layout.get(expected, name, region)
        assert torch.equal(found[:, first:], wanted[:, first:])  # the stack pointer is the memory's end


def test_rows_of_zeros_take_no_time_and_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the 451 rows of a RISC-V card, 40 or 72 hold something outside the scratchpad within a layer."""
    monkeypatch.setattr(incremental, "MANY_COLUMNS", 0)
    machine = RiscvMachine(memory=64)
    ran = Incremental(machine.model, machine.punch(program_of([0])), torch.tensor([0]), limit=2.0)
    with torch.no_grad():
        ran.loop()
    sizes = [len(layer.restriction.rows) for layer in ran.layers if layer.restriction is not None]
    assert (machine.layout.width, sizes) == (451, [40, 40, 72])
    assert not ran.store[~ran.held][:, 1:].any()


@pytest.mark.parametrize(("entry", "w2", "b2"), [(0.0, [-(2.0**60), 2.0**60], 1.0), (1.0, [-(2.0**60), 2.0**60], 0.5),
                                                  (1.0, [-(2.0**59), -(2.0**59)], 2.0**60)])
def test_large_constants_swallow_what_they_do_in_the_equation(entry: float, w2: list[float], b2: float) -> None:
    """0 + (2^60 - 2^60) + 1 is 1, also where the first 2^60 is of a hidden unit that sees no row; (1 - 2^60) + 2^60 is 0."""
    layer = TransformerLayer(3, LayerShape(heads=0, key_size=0, hidden=2), torch.float64)
    written, card = torch.tensor([1]), torch.tensor([[1.0], [entry], [0.0]], dtype=torch.float64)
    with torch.no_grad():
        layer.w1[0, 0], layer.b1[1, 0], layer.b2[1, 0] = 1.0, 1.0, b2
        layer.w2[1] = torch.tensor(w2)
        few = restrict(layer, written, torch.tensor([0, 1]))
        assert torch.equal(few.apply(card[few.rows]), layer.feed_forward(card)[written])


# Machines whose heads are all hard


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("design", DESIGNS)
def test_random_programs_bit_for_bit(design: str, precision: str) -> None:
    machine = SubleqMachine(word_bits=8, memory=13, instructions=20, design=design, precision=precision)
    rng = random.Random(f"{design} {precision}")
    cards = [machine.punch(random_program(rng, 8, 10, 18)) for _ in range(6)]
    for card in cards[:2]:
        assert assert_the_equation(machine.model, card, machine.layout) == ()
    batch = torch.stack(cards).view(2, 3, *cards[0].shape)
    assert assert_the_equation(machine.model, batch, machine.layout) == ()


@pytest.mark.parametrize(("precision", "word_bits"), [("float16", 4), ("bfloat16", 2)])
def test_narrow_number_formats_bit_for_bit(precision: str, word_bits: int) -> None:
    machine = SubleqMachine(word_bits=word_bits, memory=4, instructions=5, design="two-layer", precision=precision)
    card = machine.punch(random_program(random.Random(2), word_bits, 4, 5))
    assert assert_the_equation(machine.model, card, machine.layout, 12) == ()


@pytest.mark.parametrize("design", DESIGNS)
def test_only_the_scratchpad_and_a_few_columns_are_computed(design: str, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = SubleqMachine(word_bits=8, memory=60, instructions=65, design=design)
    assert active_columns(machine.model, machine.layout).tolist() == [0]
    computed: list[int] = []
    finish = Incremental._finish

    def counting(self: Incremental, layer: object, columns: Tensor, *rest: object) -> None:
        computed.append(len(columns))
        finish(self, layer, columns, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Incremental, "_finish", counting)
    cards_of(machine.model, machine.punch(random_program(random.Random(1), 8, 60, 65)), machine.layout)
    first = len(machine.model.layers)
    assert computed[:first] == [machine.layout.columns] * first, "the first loop computes all columns"
    # one-layer: a cell, and the instructions that name it, in the loop of the store and in the one after
    assert max(computed[first:]) <= 16
    assert sum(computed[first:]) / len(computed[first:]) < 6


def test_parts_of_any_size_give_the_same_card(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = SubleqMachine(word_bits=4, memory=6, instructions=9, design="paper", precision="float32")
    card = torch.stack([machine.punch(random_program(random.Random(seed), 4, 6, 9)) for seed in range(3)])
    for name, size in (("COLUMNS_AT_ONCE", 5), ("WEIGHTS_AT_ONCE", 7), ("AS_WRITTEN", 0), ("MANY_COLUMNS", 2)):
        monkeypatch.setattr(incremental, name, size)
        assert assert_the_equation(machine.model, card, machine.layout, 15) == ()


def test_sixteen_thousand_columns_agree_with_the_interpreter() -> None:
    machine = SubleqMachine(word_bits=16, memory=8000, instructions=8381, design="two-layer", precision="float32")
    assert machine.layout.columns == 1 << 14
    program = random_program(random.Random(1), 16, 8000, 8381)
    comparison = compare(machine, [program], 20, engine="scratchpad")
    assert comparison.agrees
    assert comparison.steps == 20


@pytest.mark.parametrize("many", [512, 0])
def test_a_port_may_change_any_column(many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory that a port writes is read by the next instruction, as in the dense engine."""
    monkeypatch.setattr(incremental, "MANY_COLUMNS", many)
    code: list[Instruction] = [Subleq(0, 1, 1), Subleq(2, 1, 2), Subleq(0, 1, 3), Halt()]
    machine = SubleqMachine(word_bits=8, memory=3, instructions=4, design="one-layer")
    pattern = Pattern("program_counter", "scratchpad", (0,) * machine.sizes.pointer_bits)
    cards = []
    for engine in (run_dense, run_scratchpad):
        def scribble(loop: int, card: Tensor) -> bool:
            machine.layout.get(card, "memory", "memory")[:, loop % 3] *= -1
            machine.layout.get(card, "position", "memory")[0, 0] *= -1  # keys of a passive column, too
            return loop < 5

        ran = engine(machine.model, machine.punch(Program.create(code, [5, 90, -7])), 9, facts=machine.layout,
                     ports={pattern: scribble})
        assert (ran.loops, ran.reason) == (5, "stopped")
        cards.append(ran.card)
    assert torch.equal(*cards)
    assert "change" in ran.notes[0]


def ripple() -> tuple[Layout, LoopedTransformer, Tensor]:
    """Every column takes the bit of its left neighbour, and the first flips its own: passive columns find others."""
    layout = Layout(
        [RowBlock("bit", 1, changes=("first", "tape"), holds=holding("bits", "first", "tape")),
         RowBlock("position", 4, holds=holding("bits", "first", "tape")),
         RowBlock("left", 4, holds=holding("bits", "first", "tape")),
         RowBlock("inside", 1, holds={"first": "one"}),
         RowBlock("taken", 1)],
        [Region("first", 1), Region("tape", 11)],
    )
    bit, position, left, inside, taken = (rows(layout, block.name) for block in layout.blocks)
    parts = [attend(query=left, key=position, value=bit, into=taken, gap=ADDRESS_GAP)
             + assign(bit, taken - 2 * gated(taken, 1 - inside, 8.0)) + clear(taken)]
    card = layout.blank()
    for column in range(12):
        layout.put_number_at(card, "position", column, column)
        layout.put_number_at(card, "left", column, max(0, column - 1))
    card[layout.rows("bit")] = -1.0
    layout.put(card, "inside", "first", 1.0)
    return layout, build(parts, layout.width, Precision()), card


def test_a_change_travels_through_passive_columns() -> None:
    layout, model, card = ripple()
    assert active_columns(model, layout).tolist() == []
    assert assert_the_equation(model, card, layout) == ()
    after, _ = cards_of(model, card, layout, 20)
    assert after[-1][layout.rows("bit")].squeeze(0).tolist() == [-1.0, 1.0] * 6


def flashes() -> tuple[Layout, LoopedTransformer, Tensor]:
    """Layer 1 marks the column that the counter names, layer 2 reads the mark of one column and wipes all marks."""
    layout = Layout(
        [RowBlock("counter", 3, changes=("head",), holds={"head": "bits"}),
         RowBlock("place", 3, holds={"head": "bits"}),
         RowBlock("position", 3, holds={"tape": "bits"}),
         RowBlock("inside", 1, holds={"head": "one"}),
         RowBlock("seen", 1, changes=("head",), holds={"head": "real"}),
         RowBlock("mark", 1),
         RowBlock("via", 1)],
        [Region("head", 1), Region("tape", 8)],
    )
    counter, place, position, inside, seen, mark, via = (rows(layout, block.name) for block in layout.blocks)
    parts = [
        attend(query=position, key=store_factor(3) * position + counter, value=inside, into=mark, gap=store_gap(3)),
        attend(query=place + position, key=position, value=mark, into=via, gap=ADDRESS_GAP)
        + assign(seen, seen + gated(via - seen, 1 - inside, 8.0)) + clear(via) + clear(mark)
        + assign(counter, increment_bits(counter, inside)),
    ]
    card = card_with(layout, {("position", "tape"): list(range(8)), ("counter", "head"): 0, ("place", "head"): 5,
                              ("inside", "head"): 1.0})
    return layout, build(parts, layout.width, Precision()), card


def test_what_a_active_column_leaves_for_one_loop_is_gone_in_the_next() -> None:
    layout, model, card = flashes()
    assert assert_the_equation(model, card, layout) == ()
    after, _ = cards_of(model, card, layout, 16)
    assert [layout.get(x, "seen", "head").item() for x in after] == [float(loop % 8 == 5) for loop in range(16)]


# Machines with soft heads: the order of a sum may differ, so a result may, by what rounding alone accounts for


@pytest.mark.parametrize(("heads", "functions"), [
    (1, ("mul", "add", "transpose", "incr_pointer", "reset_pointer")),
    (3, ("mul", "hadamard", "add")),
    (2, ("sigmoid", "sqrt", "add", "sub")),
])
@pytest.mark.parametrize("design", fleq_cases.MANY)
def test_soft_heads_within_the_error_bound_of_the_functions(design: str, heads: int, functions: tuple[str, ...]) -> None:
    """A product is a small difference of large terms: their sum in another order differs by the rounding that its bound has.

    All else agrees to 1e-12.
    """
    machine = FleqMachine(functions=functions, size=2, memory=16, instructions=14, design=design, heads=heads,
                          range=fleq_cases.RANGE)
    tolerance = 4 * max((machine.bound(name) for name in functions if name in PRODUCTS), default=0.0)
    card = machine.punch(fleq_cases.random_program(random.Random(heads), machine, 30))
    assert_the_equation(machine.model, card, machine.layout, 8, off=tolerance + 1e-12)


def test_a_batch_of_cards_with_soft_heads() -> None:
    machine = FleqMachine(functions=["add", "sub", "transpose"], size=2, memory=12, instructions=12, design="paper",
                          range=fleq_cases.RANGE)
    rng = random.Random(8)
    card = torch.stack([machine.punch(fleq_cases.random_program(rng, machine, 20)) for _ in range(3)])
    notes = assert_the_equation(machine.model, card, machine.layout, 8, off=1e-12)
    assert any("without a clear winner; full softmax for these" in note for note in notes)


def test_a_low_temperature_keeps_the_full_softmax() -> None:
    machine = SubleqMachine(word_bits=4, memory=5, instructions=6, design="two-layer", precision=Precision(temperature=6.0))
    card = machine.punch(random_program(random.Random(5), 4, 5, 6))
    notes = assert_the_equation(machine.model, card, machine.layout, 6, off=1e-12)
    assert notes == tuple(f"{where}: passive columns have queries without a clear winner; full softmax for these"
                          for where in ("layer 1, heads 1, 2", "layer 2, head 1"))


# Where the fast way does not apply


def tags_that_move(counting: bool) -> tuple[Layout, LoopedTransformer, Tensor]:
    """Every loop reads the cell whose tag is the counter, and then all tags are flipped: the keys of the cells change.

    The heads match by a copy of the tags that is 0 between loops, so the layout says nothing about it.
    """
    layout = Layout(
        [RowBlock("data", 2, holds={"tape": "bits"}),
         RowBlock("seen", 2, changes=("head",), holds={"head": "bits"}),
         RowBlock("counter", 3, changes=("head",) * counting, holds={"head": "bits"}),
         RowBlock("tag", 3, changes=("tape",), holds={"tape": "bits"}),
         RowBlock("inside", 1, holds={"head": "one"}),
         RowBlock("copy", 3),
         RowBlock("v_new", 2)],
        [Region("head", 1), Region("tape", 8)],
    )
    data, seen, counter, tag, inside, copy, v_new = (rows(layout, block.name) for block in layout.blocks)
    parts = [
        assign(copy, tag),
        read(pointer=counter, position=copy, source=data, into=seen, via=v_new, inside=inside, gate=8.0) + clear(copy)
        + assign(tag, flip_bits(tag)),
        assign(counter, increment_bits(counter, inside)) if counting else clear(v_new),
    ]
    card = card_with(layout, {
        ("data", "tape"): [i % 4 for i in range(8)], ("tag", "tape"): [(3 * i) % 8 for i in range(8)],
        ("seen", "head"): -1.0, ("counter", "head"): 2, ("inside", "head"): 1.0})
    return layout, build(parts, layout.width, Precision()), card


@pytest.mark.parametrize("counting", [True, False])
def test_keys_that_change_outside_the_active_columns(counting: bool) -> None:
    layout, model, card = tags_that_move(counting)
    assert active_columns(model, layout).tolist() == [0] * counting
    seen, notes = cards_of(model, card, layout)
    for loop, found in enumerate(seen):
        card = model(card)
        assert torch.equal(found, card)
        wanted = (2 + loop * counting) % 8
        tag = wanted if loop % 2 == 0 else 7 - wanted
        assert decode_bits(layout.get(found, "seen", "head")).item() == (3 * tag) % 8 % 4  # 3 is its own inverse
    assert notes == ("layer 2, head 1: keys or queries change outside the active columns; full softmax",)


def test_keys_that_change_once_are_looked_at_again() -> None:
    layout, model, card = counter_machine()

    def relabel(_: int, now: Tensor) -> bool:
        layout.put(now, "position", "tape", layout.get(now, "position", "tape").flip(1).clone())
        return True

    ports = {Pattern("counter", "head", (1, 1, -1)): relabel}
    expected = run_dense(model, card, 7, facts=layout, ports=ports)
    ran = run_scratchpad(model, card, 7, facts=layout, ports=ports)
    assert torch.equal(ran.card, expected.card)
    note = "layer 1, head 1: keys or queries changed outside the active columns; winners were looked for again"
    assert ran.notes == (note,)


def test_without_facts_and_with_nothing_passive_the_softmax_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    layout, model, card = counter_machine()
    expected = run_dense(model, card, 9).card
    active = Layout([RowBlock(b.name, b.size, changes=("head", "tape")) for b in layout.blocks], layout.regions)
    for scores in (1 << 24, 16):  # at once, and two columns at a time
        monkeypatch.setattr(scratchpad, "SCORES_AT_ONCE", scores)
        ran = run_scratchpad(model, card, 9)
        assert torch.equal(ran.card, expected)
        assert ran.notes == ("no facts about the card: full softmax in all heads",)
        ran = run_scratchpad(model, torch.stack([card, card]), 9, facts=active)
        assert torch.equal(ran.card, torch.stack([expected, expected]))
        assert ran.notes == ("every column is active: full softmax in all heads",)


def test_numbers_beyond_all_bounds_are_computed_in_full() -> None:
    """0 times infinity is not a number, in every column of the equation; so a column of weight 0 must not be left out."""
    layout, model, card = counter_machine()
    for wrong in (torch.inf, torch.nan, 1e300):
        spoilt = card.clone()
        layout.get(spoilt, "data", "tape")[0, 4] = wrong
        expected = run_dense(model, spoilt, 3).card
        ran = run_scratchpad(model, spoilt, 3, facts=layout)
        assert torch.allclose(ran.card, expected, equal_nan=True)
        assert bool(ran.card.isnan().any()) == (wrong != 1e300)
        assert ran.notes[0].startswith("from loop 1 on: entries beyond ")


@pytest.mark.parametrize("seed", range(24))
def test_weights_and_facts_at_random(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Heads hard and soft, facts right and wrong: every card is what the model makes of the one before."""
    layout, model, card = random_machine(seed)
    for many in (incremental.MANY_COLUMNS, 0):  # in all rows, and without those that are 0
        monkeypatch.setattr(incremental, "MANY_COLUMNS", many)
        seen, _ = cards_of(model, card, layout, 6)
        for before, found in zip([card, *seen], seen, strict=False):
            assert torch.allclose(found, model(before), rtol=1e-9, atol=1e-9)


def random_machine(seed: int) -> tuple[Layout, LoopedTransformer, Tensor]:
    """Small random weights; the feed-forward layers cut all entries to -1 .. 1, in rows that are not frozen."""
    rng, generator = random.Random(seed), torch.Generator().manual_seed(seed)
    regions = [Region("first", rng.randint(1, 4)), Region("second", rng.randint(1, 8)), Region("third", rng.randint(1, 12))]
    layout = Layout([
        RowBlock(f"block{i}", rng.randint(1, 4),
                 changes=tuple(r.name for r, often in zip(regions, (0.7, 0.2, 0.1), strict=True) if rng.random() < often))
        for i in range(rng.randint(2, 5))
    ], regions)
    width = layout.width

    def sparse(like: Tensor, density: float) -> Tensor:
        there = torch.rand(like.shape, generator=generator) < density
        return (torch.randint(-1, 2, like.shape, generator=generator) * there).double()

    model = LoopedTransformer(width, [LayerShape(rng.randint(0, 3), rng.randint(1, 4), 4 * width)
                                      for _ in range(rng.randint(1, 3))])
    eye, ones = torch.eye(width, dtype=torch.float64), torch.ones(width, 1, dtype=torch.float64)
    for layer in model.layers:
        assert isinstance(layer, TransformerLayer)
        mixed = rng.choice([1.0, 4.0]) * (eye + sparse(eye, 0.1))
        free = (torch.rand(width, 1, generator=generator) < rng.choice([0.2, 0.5, 0.9])).double()
        layer.load_state_dict({
            "key": sparse(layer.key, 0.3), "query": sparse(layer.query, 0.3), "value": free * sparse(layer.value, 0.1),
            "temperature": torch.tensor([rng.choice([1024.0, 1024.0, 64.0, 3.7, 0.0, -2.0]) for _ in layer.key]),
            "w1": torch.cat([mixed, mixed, eye, -eye]), "b1": torch.cat([ones, -ones, 0 * ones, 0 * ones]),
            "w2": free * torch.cat([eye, -eye, -eye, eye], 1), "b2": -free,
        })
    batch = rng.choice([(), (), (2,), (2, 2)])
    return layout, model, torch.randint(-1, 2, (*batch, width, layout.columns), generator=generator).double()
