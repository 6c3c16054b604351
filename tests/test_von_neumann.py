"""The von Neumann machine against the interpreter: memory, program counter and events after every loop."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from punchcard.api import run
from punchcard.card.layout import Card, Layout
from punchcard.engines import ENGINES, Controls, prepare
from punchcard.errors import ArgumentError, PrecisionError, ProgramError, PunchcardError, SizeError
from punchcard.machines.von_neumann import oracle
from punchcard.machines.von_neumann.addresses import AddressMap
from punchcard.machines.von_neumann.isa import Image
from punchcard.machines.von_neumann.machine import VonNeumannMachine
from punchcard.machines.von_neumann.oracle import ImageInterpreter
from punchcard.transformer.model import LayerShape
from tests.cases import ROOT, soaked
from tests.image_cases import CASES, ImageCase, machine_of
from tests.random_programs import random_image


@dataclass(frozen=True)
class ImageComparison:
    """How many instructions were compared, how many stored into the very next one, and what went wrong."""

    steps: int
    stores_ahead: int
    mismatches: tuple[str, ...]


def compare(
    machine: VonNeumannMachine, images: Sequence[Image], max_steps: int, engine: str = "dense",
) -> ImageComparison:
    """A batch has no host, so an image is compared until it stops or comes to a port."""
    sizes, layout = machine.sizes, machine.layout
    live = {number: ImageInterpreter(image, sizes.word_bits, sizes.memory, dialect=machine.dialect)
            for number, image in enumerate(images)}
    wrong: list[str] = []
    steps = ahead = 0

    def look(loop: int, cards: Tensor) -> None:
        nonlocal steps, ahead
        if loop > machine.design.warm_up:
            for interpreter in live.values():
                _, destination = interpreter.operands()
                interpreter.step()
                steps += 1
                ahead += 0 <= destination - interpreter.program_counter < 3
        if not live:
            return
        chosen = cards[list(live)]
        cells, counters = machine.design.read(sizes, layout, chosen)
        expected = torch.tensor([interpreter.cells for interpreter in live.values()])
        same = (cells == expected).all(dim=-1)
        events = (layout.get(chosen, "event", "scratchpad")[..., :3, 0] > 0).any(dim=-1).tolist()
        for row, (number, interpreter) in enumerate(list(live.items())):
            stops, at_port = interpreter.stop is not None, interpreter.waits
            if not same[row]:
                wrong.append(f"image {number}, loop {loop}: the memory is {cells[row].tolist()}, not {interpreter.cells}")
            elif counters[row] != interpreter.program_counter:
                wrong.append(f"image {number}, loop {loop}: the program counter is {int(counters[row])}, "
                             f"not {interpreter.program_counter}")
            elif events[row] != stops and not at_port:
                wrong.append(f"image {number}, loop {loop}: event is {events[row]}, not {stops}")
            elif not (stops or at_port):
                continue
            del live[number]

    cards = torch.stack([machine.punch(image) for image in images])
    loops = machine.design.warm_up + max_steps
    runner = prepare(engine, machine.model, layout, cards, loops=loops, fall_back=True, cache=machine.engine_cache)
    runner.run(loops, Controls(watch=look))
    return ImageComparison(steps, ahead, tuple(wrong))


# bits of a word, cells, and how many images that live for `LOOPS` instructions
SHAPES = ((4, 8, 35), (4, 16, 33), (5, 11, 27), (6, 32, 15), (6, 64, 7), (7, 50, 4), (8, 256, 2), (12, 100, 2),
          (16, 37, 4))
LOOPS = 40
STEPS = 5_000
SOAK_STEPS = 1_000_000
STORES_AHEAD = 0.1


def living_images(rng: random.Random, bits: int, memory: int, count: int, steps: int) -> list[Image]:
    """Random images that execute so many instructions before they stop or come to a port."""
    found: list[Image] = []
    while len(found) < count:
        image = random_image(rng, bits, memory)
        interpreter = oracle.ImageInterpreter(image, bits, memory)
        while interpreter.stop is None and not interpreter.waits and interpreter.steps < steps:
            interpreter.step()
        if interpreter.steps == steps:
            found.append(image)
    return found


def check_random_images(
    rng: random.Random, shapes: Sequence[tuple[int, int, int]], loops: int, engine: str,
) -> list[ImageComparison]:
    compared = []
    for bits, memory, count in shapes:
        machine = machine_of(word_bits=bits, memory=memory)
        images = living_images(rng, bits, memory, count, loops)
        compared.append(compare(machine, images, loops, engine))
        assert compared[-1].mismatches == ()
    return compared


@pytest.mark.parametrize(("engine", "few"), [
    *((soaked if engine == "auto" else pytest.param)(engine, 4) for engine in ENGINES), soaked("dense", 1)])
def test_random_self_modifying_images(engine: str, few: int) -> None:
    compared = check_random_images(random.Random(11), [(b, m, 1 + count // few) for b, m, count in SHAPES], LOOPS, engine)
    steps = sum(c.steps for c in compared)
    assert steps >= STEPS // few
    assert sum(c.stores_ahead for c in compared) >= STORES_AHEAD * steps, "stores that hit the next instruction"


@pytest.mark.soak
@pytest.mark.parametrize("engine", ENGINES)
def test_a_million_random_steps(engine: str) -> None:
    """The smaller the memory, the larger its share."""
    rng, shares = random.Random("soak"), [1 / memory**1.5 for _, memory, _ in SHAPES]
    steps = ahead = 0
    for (bits, memory, _), share in zip(SHAPES, shares, strict=True):
        rest = int(SOAK_STEPS / LOOPS * share / sum(shares)) + 1
        while rest > 0:
            batch = min(rest, 200)
            compared, = check_random_images(rng, [(bits, memory, batch)], LOOPS, engine)
            steps, ahead, rest = steps + compared.steps, ahead + compared.stores_ahead, rest - batch
    assert steps >= SOAK_STEPS
    assert ahead >= STORES_AHEAD * SOAK_STEPS


@pytest.mark.parametrize(("bits", "memory", "engine"), [
    *((soaked if engine == "auto" else pytest.param)(6, 20, engine) for engine in ENGINES), (4, 10, "scratchpad"),
    (8, 32, "scratchpad"), *(soaked(*size, engine) for size in ((4, 10), (8, 32)) for engine in ENGINES
                             if engine != "scratchpad")])
def test_random_images_that_stop(engine: str, bits: int, memory: int) -> None:
    """Images as they come: most stop soon, and the card must say so in the loop in which the interpreter does."""
    rng = random.Random(12)
    machine = machine_of(word_bits=bits, memory=memory)
    compared = compare(machine, [random_image(rng, bits, memory) for _ in range(150)], 20, engine)
    assert compared.mismatches == ()
    assert compared.steps > 500


def test_every_instruction_of_three_bits() -> None:
    """All operands a, b and c, in a full memory and in one that is not, on cells that hold everything."""
    for memory in (8, 6):
        machine = VonNeumannMachine(word_bits=3, memory=memory)
        images = [Image((a, b, c, *range(3, memory))) for a in range(8) for b in range(8) for c in range(8)]
        assert compare(machine, images, 3).mismatches == ()


def test_every_difference_of_four_bits() -> None:
    machine = VonNeumannMachine(word_bits=4, memory=8)
    images = [Image((6, 7, 3, 0, 0, 8, x, y)) for x in range(16) for y in range(16)]
    compared = compare(machine, images, 2)
    assert compared.mismatches == ()
    assert compared.steps == 2 * len(images)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_cases(case: ImageCase, engine: str) -> None:
    """The table, with the host: output, end, steps; and every loop as the interpreter has it."""
    written = bytearray()
    report = run(case.image, case.machine, check="lockstep", input=case.input, output=written.append,
                 max_steps=case.max_steps, engine=engine)
    assert report.differences == ()
    result = report.result
    assert result.output == bytes(written)
    assert (bytes(written), result.steps, result.halted, result.fault) == (case.output, case.steps, case.halted, case.fault)
    assert result.reason == ("halted" if case.halted else "fault" if case.fault else "steps")
    assert result.loops == result.steps + 1


@pytest.mark.parametrize("dialect", ["standard", "adds", "subtracts"])
@pytest.mark.parametrize("bits", [5, 6, 7, 8, 9])
def test_a_byte_has_no_more_bits_than_a_word(bits: int, dialect: str) -> None:
    """Written from a cell, and from the input straight to the output."""
    image = Image((12, -1, 3, -1, -1, 6, -1, 13, 9, 13, -1, -1, 3, 0))
    report = run(image, machine_of(word_bits=bits, memory=16, dialect=dialect), input=b"\xa5\x5a", check="lockstep",
                 max_steps=9)
    assert report.agrees, report.differences
    assert len(report.result.output) >= 3
    assert max(report.result.output) < 1 << bits


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("dialect", "memory", "count"), [
    ("standard", 11, 20), ("adds", 16, 20), ("sic1", 256, 5), soaked("sic1", 256, 20)])
def test_the_layout_tells_the_truth(dialect: str, memory: int, count: int, engine: str) -> None:
    """When a loop begins the rows hold what is declared; and a loop changes only what is declared."""
    machine = machine_of(word_bits=8, memory=memory, dialect=dialect)
    rng = random.Random(5)
    images = [random_image(rng, 8, memory) for _ in range(count)]
    layout, cards = machine.layout, torch.stack([machine.punch(image) for image in images])
    assert layout.violations(cards) == []
    fixed = unchanging(layout, cards)

    def look(loop: int, after: Tensor) -> None:
        assert layout.violations(after) == []
        assert torch.equal(after[:, ~fixed], cards[:, ~fixed])

    prepare(engine, machine.model, layout, cards, fall_back=True).run(12, Controls(watch=look))


def unchanging(layout: Layout, cards: Tensor) -> Tensor:
    """True for the entries that a loop may change."""
    may = torch.zeros(cards.shape[-2:], dtype=torch.bool)
    for block in layout.blocks:
        for region in block.changes:
            may[layout.rows(block.name), layout.region(region)] = True
    return may


def test_columns_other_than_the_scratchpad_ask_and_answer_by_position() -> None:
    """Keys and queries outside the scratchpad come from rows that never change."""
    machine = VonNeumannMachine(word_bits=6, memory=40)
    layout = machine.layout
    static = {i for name in ("position", "beyond", "outside") for i in range(*layout.rows(name).indices(layout.width))}
    card = machine.punch(random_image(random.Random(1), 6, 40))
    outside = torch.ones(layout.columns, dtype=torch.bool)
    outside[layout.region("scratchpad")] = False
    for layer in machine.model.layers:
        for matrix in (*layer.key, *layer.query):  # type: ignore[misc]
            used = set(torch.nonzero(matrix.any(dim=0)).flatten().tolist())
            for row in used - static:
                assert not card[row, outside].any(), "a row that is 0 outside the scratchpad"


def test_sizes_of_the_model() -> None:
    machine = VonNeumannMachine(word_bits=16, memory=256)
    assert machine.layout.width == 6 * 16 + 6 * 8 + 11
    assert machine.layout.columns == 1 + 256 + 2
    assert machine.model.shapes == (LayerShape(2, 9, 416), LayerShape(3, 10, 514))
    odd = VonNeumannMachine(word_bits=16, memory=200)
    assert odd.layout.columns == machine.layout.columns, "memory is filled up to a power of two"


def test_the_page_about_the_machine_is_true() -> None:
    text = (ROOT / "docs" / "von-neumann.md").read_text()
    machine = VonNeumannMachine(word_bits=8, memory=256)
    sizes = [8, 256, machine.layout.width, machine.layout.columns]
    units = ", ".join(str(shape.hidden) for shape in machine.model.shapes)
    counts = ", ".join(f"{count:,}" for count in machine.model.parameter_count())
    assert f"| {' | '.join(map(str, sizes))} | 2, 3 | {units} | {counts} | {machine.needed_bits} |" in text


def test_a_large_memory_is_built_punched_and_read() -> None:
    machine = VonNeumannMachine()
    assert (machine.sizes.word_bits, machine.sizes.memory) == (16, 65536)
    image = Image(tuple(range(65536)))
    state = machine.read(machine.punch(image))
    assert state.memory == image.words
    assert (state.program_counter, machine.precision.name) == (65533, "float32")


@pytest.mark.parametrize(("bits", "needed", "chosen"), [(8, 14, "float32"), (16, 22, "float32"), (18, 24, "float32"),
                                                        (19, 25, "float64"), (32, 38, "float64")])
def test_exactness(bits: int, needed: int, chosen: str) -> None:
    machine = VonNeumannMachine(word_bits=bits, memory=24)
    assert (machine.needed_bits, machine.precision.name) == (needed, chosen)
    if chosen == "float64":
        with pytest.raises(PrecisionError, match=f"needs? sums of {needed} significand bits, float32 has 24"):
            VonNeumannMachine(word_bits=bits, memory=24, precision="float32")


@pytest.mark.parametrize(("bits", "loops"), [(8, 8), (16, 8), (32, 4), soaked(32, 8)])
def test_long_words_at_the_extremes(bits: int, loops: int) -> None:
    """Differences around 0 and around the wrap, in the format that the certificate chose."""
    half, size = 1 << (bits - 1), 1 << bits
    edges = [0, 1, 2, half - 2, half - 1, half, half + 1, size - 2, size - 1]
    machine = VonNeumannMachine(word_bits=bits, memory=8)
    images = [Image((6, 7, 3, 7, 6, 0, x, y)) for x in edges for y in edges]
    assert compare(machine, images, loops).mismatches == ()


@pytest.mark.parametrize(("bits", "memory"), [(8, 16), (16, 20)])
def test_entries_between_layers_are_bits(bits: int, memory: int) -> None:
    """What the exactness certificate supposes, and that float32 and float64 make the same cards."""
    narrow, wide = (VonNeumannMachine(word_bits=bits, memory=memory, precision=p) for p in ("float32", "float64"))
    for image in living_images(random.Random(9), bits, memory, 5, 20):
        card, other = narrow.punch(image), wide.punch(image)
        for _ in range(20):
            for layer, same in zip(narrow.model.layers, wide.model.layers, strict=True):
                card, other = layer(card), same(other)
                assert set(card.unique().tolist()) <= {-1.0, 0.0, 1.0}
                assert torch.equal(card.double(), other)


@pytest.mark.parametrize(("options", "message"), [
    ({"word_bits": 2}, r"word_bits=2: a word has 3 to 50 bits"),
    ({"word_bits": 51}, r"word_bits=51: a word has 3 to 50 bits"),
    ({"word_bits": 0}, r"word_bits=0: it must be a positive integer"),
    ({"memory": 2}, r"memory=2: with words of 16 bits a memory has 3 to 65536 cells"),
    ({"memory": 65537}, r"memory=65537: with words of 16 bits a memory has 3 to 65536 cells"),
    ({"word_bits": 4, "memory": 17}, r"memory=17: with words of 4 bits a memory has 3 to 16 cells"),
    ({"word_bits": 25, "memory": 1 << 25}, r"a memory has 3 to 16777216 cells"),
    ({"dialect": "sic1", "memory": 100}, r"memory=100: the dialect 'sic1' has 256"),
    ({"dialect": "sic1", "word_bits": 16}, r"word_bits=16: the dialect 'sic1' has 8"),
])
def test_sizes_that_are_refused(options: dict[str, int], message: str) -> None:
    with pytest.raises(SizeError, match=message):
        VonNeumannMachine(**options)  # type: ignore[arg-type]


def test_what_else_is_refused() -> None:
    for options, message in (({"word_bits": 8.0}, r"word_bits=8\.0: it must be an integer or None"),
                             ({"memory": "8"}, "memory='8': it must be an integer or None")):
        with pytest.raises(ArgumentError, match=message):
            VonNeumannMachine(**options)
    machine = VonNeumannMachine(word_bits=4, memory=8)
    with pytest.raises(ProgramError, match="the image has 9 words, the memory 8 cells"):
        machine.punch(Image((0,) * 9))
    with pytest.raises(ProgramError, match="word 0 is 16"):
        machine.run(Image((16,)))
    with pytest.raises(PunchcardError, match="max_steps=-1"):
        machine.run(Image((0,)), max_steps=-1)
    with pytest.raises(PunchcardError, match="use read_all"):
        machine.read(machine.punch(Image((0,))).unsqueeze(0))
    with pytest.raises(PunchcardError, match="unknown dialect"):
        VonNeumannMachine(dialect="sic2")


def test_a_checked_run_notices_a_wrong_machine() -> None:
    """With the values of layer A negated it computes mem[a] - mem[b]: the comparisons must find it, and say where."""
    machine = VonNeumannMachine(word_bits=8, memory=16)
    image = Image((9, 10, 3, 0, 0, -1, 0, 0, 0, 1, 5))
    assert run(image, machine, check="lockstep").agrees
    with torch.no_grad():
        machine.model.layers[0].get_parameter("value").neg_()
    report = run(image, machine, check="lockstep", max_steps=9)
    assert report.differences[0] == "loop 1: cell 0 is 247, the interpreter has 9"
    assert not report.agrees
    assert compare(machine, [image], 3).mismatches[0].startswith("image 0, loop 1: the memory is")


@pytest.mark.parametrize(("rows", "region", "difference"), [
    ("memory", "memory", "loop 1: cell 15 is 1, the interpreter has 0"),
    ("memory", "ports", "the machine writes 64, the interpreter 65"),
    ("counter", "scratchpad", "loop 1: the program counter is 1, the interpreter's 0"),
])
def test_a_checked_run_notices_a_wrong_bit(
    rows: str, region: str, difference: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = VonNeumannMachine(word_bits=8, memory=16)
    image = Image((9, -1, 3, 9, 9, 6, 0, 0, -1, 65))
    column = machine.layout.region(region).stop - 1
    before = machine.design.punch

    def punch(sizes: AddressMap, layout: Layout, content: list[int], card: Card) -> None:
        before(sizes, layout, content, card)
        layout.put_number_at(card, rows, column, layout.number_at(card, rows, column) ^ 1)

    monkeypatch.setattr(machine.design, "punch", punch)
    assert run(image, machine, check="lockstep").differences[0].startswith(difference)
