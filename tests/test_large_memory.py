"""What must not grow with the memory of a machine: what is read for a fault, for a check, for a port, and how often."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import punchcard
from punchcard.card.layout import Layout, Pattern, Region, RowBlock, holding
from punchcard.card.packed import PackedCard
from punchcard.engines import Controls, prepare
from punchcard.engines.lowered.analysis.columns import CardColumns
from punchcard.engines.lowered.analysis.passive import CardRequirements
from punchcard.engines.lowered.analysis.vectors import FEW_KEYS, SignRow, Vectors
from punchcard.engines.lowered.analysis.weights import layer_lists
from punchcard.errors import EncodingError, LayoutError
from punchcard.machines import weight_cache
from punchcard.machines.riscv import loop_differences
from punchcard.machines.riscv.host import CardWords, is_served
from punchcard.machines.riscv.languages.assembly.assembler import assemble
from punchcard.machines.riscv.machine import RiscvMachine
from tests.command_line import invoke

COUNT = assemble("""
        .globl _start
_start: li s0, 20
loop:   li a7, 172
        ecall
        sw s0, 64(zero)
        addi s0, s0, -1
        bnez s0, loop
        lw a0, 1(zero)
""")
WORDS = 64


@cache
def machine() -> RiscvMachine:
    return RiscvMachine(memory=WORDS)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many words are read from packed cards, call by call."""
    counts: list[int] = []
    word, words = PackedCard.word, PackedCard.words

    def one(self: PackedCard, *given: Any) -> int:
        counts.append(1)
        return word(self, *given)

    def many(self: PackedCard, place: Any, columns: slice, **named: Any) -> Any:
        counts.append(columns.stop - columns.start)
        return words(self, place, columns, **named)

    monkeypatch.setattr(PackedCard, "word", one)
    monkeypatch.setattr(PackedCard, "words", many)
    return counts


def test_a_run_that_ends_with_a_fault_reads_what_it_needs(read: list[int]) -> None:
    result = machine().run(COUNT, engine="lowered")
    assert str(result.fault).startswith("misaligned load at loop+20")
    assert max(read) <= 32, "no more than the registers at once"
    assert sum(read) < 20 * 40, "per system call, whatever the memory has"


def test_the_words_of_a_card_are_a_sequence() -> None:
    its = machine()
    card = its.pack(COUNT)
    words = CardWords(its.layout, card)
    assert len(words) == WORDS
    assert [*words[:6], words[-1]] == [*COUNT.words(WORDS)[:6], 0]
    words[-1] = 7
    assert its.read(card).memory[-1] == words[WORDS - 1] == 7
    with pytest.raises(IndexError):
        words[WORDS]
    for change in (lambda: words.insert(0, 1), lambda: words.pop()):
        with pytest.raises(TypeError, match="as many words as it has"):
            change()


def checked(max_steps: int | None = None) -> Any:
    return punchcard.run(COUNT, machine(), engine="lowered", check="lockstep", max_steps=max_steps)


def test_a_checked_loop_reads_what_an_instruction_may_change(read: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_differences, "FEW_WORDS", 1)
    monkeypatch.setattr(loop_differences, "WHOLE_SHARE", 1e9)
    report = checked()
    assert report.agrees, report.differences
    assert read.count(WORDS) == 2, "after the first loop, and at the end"


@pytest.mark.parametrize("word", [16, 40])
def test_a_checked_run_finds_every_word_that_differs(monkeypatch: pytest.MonkeyPatch, word: int) -> None:
    """Word 16 is the one that the program stores to, and is looked at; word 40 is found when the whole memory is."""
    monkeypatch.setattr(loop_differences, "FEW_WORDS", 1)
    monkeypatch.setattr(loop_differences, "WHOLE_SHARE", 1e9)

    looks = 0

    def spoil(layout: Layout, card: PackedCard) -> bool:
        nonlocal looks
        looks += 1
        if looks > 1:  # the first look is at everything
            layout.put_number_at(card, "memory", layout.region("memory").start + word, 0xBAD)
        return is_served(layout, card)

    monkeypatch.setattr(loop_differences, "is_served", spoil)
    (difference,) = checked(max_steps=9).differences
    assert difference.endswith(f"the word at {4 * word:#x} is 0xbad, the interpreter has {20 if word == 16 else 0:#x}")
    assert difference.startswith("loop 5: ") == (word == 16)


def test_a_trace_makes_no_matrix_of_the_card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "count.s").write_text("li a0, 3\nloop: addi a0, a0, -1\nbnez a0, loop\n")
    made: list[PackedCard] = []
    monkeypatch.setattr(PackedCard, "tensor", lambda card: made.append(card))
    result = invoke("run", tmp_path / "count.s", "--memory", WORDS, "--engine", "lowered", "--trace", "--max-steps", 3)
    assert (result.exit_code, result.stderr.count("\nloop "), made) == (1, 3, []), result.stderr


def test_ports_need_no_look_at_the_whole_card(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[bool] = []
    hold = CardRequirements.hold

    def counted(self: CardRequirements, card: PackedCard, *, everywhere: bool = True) -> bool:
        looks.append(everywhere)
        return hold(self, card, everywhere=everywhere)

    its = machine()
    its.run(COUNT, engine="lowered", max_steps=5)
    monkeypatch.setattr(CardRequirements, "hold", counted)
    assert its.run(COUNT, engine="lowered").steps == 20 * 5 + 1
    assert len(looks) <= 3, "when code is looked for, when the run begins, and at its end"


def test_a_port_sees_the_engine_s_own_card() -> None:
    """States lie where the card has them, so nothing is copied for a port; a copy that was taken stays as it is."""
    its = machine()
    layout, scratchpad, seen = its.layout, its.layout.region("scratchpad").start, list[PackedCard]()

    def port(loop: int, card: PackedCard) -> bool:
        seen.append(card)
        layout.put_number_at(card, "event", scratchpad, 0)
        return len(seen) < 3

    runner = prepare("lowered", its.weights, layout, its.pack(COUNT))
    assert isinstance(runner.raw_card, PackedCard)
    before = runner.raw_card
    kept = before.copy()
    ran = runner.run(100, Controls(ports=dict.fromkeys(its.design.events(its.sizes), port)))
    assert ran.reason == "stopped"
    assert seen[0] is seen[1] is seen[2]
    assert before.equals(kept)


def test_layers_after_the_cases_are_shared_beside_numbers() -> None:
    """Products and quotients are numbers for some layers; the layers that clear them and fetch are compiled once."""
    its = RiscvMachine(memory=WORDS, multiply=True)
    columns = CardColumns(its.layout, layer_lists(its.weights, its.layout), its.pack(COUNT))
    shared = columns.share_layers()
    assert shared.cut == len(its.weights.layers) - 1
    numbers = {block.name for block in its.layout.blocks if block.within == "real"}
    assert numbers == {"sum", "dividend", "divisor", "rest"}
    assert not {columns.block_of[slot.row].name for slot in shared.passing} & numbers


# Cells


def layout() -> Layout:
    return Layout(
        [RowBlock("word", 12, parts={"low": 4, "high": 8}, holds=holding("bits", "pad", "cells"), changes=("pad", "cells")),
         RowBlock("whole", 16, holds=holding("bits", "cells"), changes=("cells",)),
         RowBlock("long", 70, holds=holding("bits", "cells"), changes=("cells",)),
         RowBlock("fixed", 5, holds=holding("bits", "cells")),
         RowBlock("inside", 1, holds=holding("one", "pad"), changes=("pad",)),
         RowBlock("value", 3, holds={"cells": "real"}, changes=("cells",))],
        [Region("pad", 1), Region("cells", 4)])


@pytest.mark.parametrize("rows", ["word", "word.low", "word.high", "whole", "long", "fixed"])
@pytest.mark.parametrize("dense", [False, True])
def test_a_cell_is_the_number_at_its_place(rows: str, dense: bool) -> None:
    its = layout()
    packed = PackedCard.blank(its)
    card: Any = packed.dense() if dense else packed
    if dense:
        its.put_number_at(card, rows, 2, 0)
    cell, most = its.cell(card, rows, 2), its.place(rows).mask
    for word in (most, 0, 5, most - 2):
        cell.put(word)
        assert cell.get() == its.number_at(card, rows, 2) == word
        assert its.number_at(card, rows, 2) == word
    its.put_number_at(card, rows, 2, 3)
    assert cell.get() == 3
    cell.put(-1)
    assert cell.get() == most
    with pytest.raises(EncodingError, match="does not fit"):
        cell.put(most + 1)
    others = [name for name in ("word", "whole", "fixed") if not rows.startswith(name)]
    assert dense or all(its.number_at(card, name, 2) == 0 for name in others), "nothing else is written to"


def test_a_cell_of_what_no_loop_changes_is_not_shared_with_a_snapshot() -> None:
    its = layout()
    card = PackedCard.blank(its)
    cell = its.cell(card, "fixed", 3)
    kept = card.snapshot()
    cell.put(9)
    assert (cell.get(), its.number_at(card, "fixed", 3), its.number_at(kept, "fixed", 3)) == (9, 9, 0)


def test_a_cell_where_there_is_no_number_is_refused() -> None:
    its = layout()
    card = PackedCard.blank(its)
    with pytest.raises(EncodingError, match="'whole' holds nothing in 'pad'"):
        its.cell(card, "whole", 0)
    with pytest.raises(LayoutError, match="0 does not go to 'inside' in 'pad'"):
        its.cell(card, "inside", 0).put(0)


def test_a_pattern_is_looked_for_through_a_cell() -> None:
    its = layout()
    card = PackedCard.blank(its)
    for pattern in (Pattern("word.low", "pad", (1, 0, -1, 1)), Pattern("inside", "pad", (1,)),
                    Pattern("whole", "pad", (0,) * 16)):
        look = its.look_for(card, pattern)
        for word in range(16):
            its.put_number_at(card, "word.low", 0, word)
            assert bool(look()) == bool(its.matches(card, pattern))


# What is worked out once


def test_a_number_format_that_is_too_narrow_is_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PUNCHCARD_CACHE", str(tmp_path / "cache"))
    first = RiscvMachine(memory=64, design="two-layer")
    assert first.precision.name == "float64"

    def refuse(*given: Any) -> Any:
        raise AssertionError("the formulas are worked out again")

    monkeypatch.setattr(type(first.design), "layers", refuse)
    again = RiscvMachine(memory=64, design="two-layer")
    assert (again.precision, again.needed_bits) == (first.precision, first.needed_bits)
    assert again.weights.digest() == first.weights.digest()
    with pytest.raises(punchcard.errors.PrecisionError, match=f"needs sums of {first.needed_bits} significand bits"):
        RiscvMachine(memory=64, design="two-layer", precision="float32")
    key = weight_cache.key_of(first.design, first.sizes, first.precision)
    assert weight_cache.find(key) is not None


# Signs by bytes


@pytest.mark.parametrize("dims", [1, 7, 8, 9, 24, 33, 64])
def test_products_with_signs_are_those_of_the_matrix(dims: int) -> None:
    random = np.random.default_rng(dims)
    count, words = 3000, random.integers(0, 1 << 32, 3000, dtype=np.uint32)
    rows: list[Any] = [SignRow(float(random.integers(1, 5)), words, int(random.integers(0, 32))) for _ in range(dims - 1)]
    vectors = Vectors.of([*rows, np.array([-3.0])], count)
    assert vectors.signs is not None
    signs = np.array([[1.0 if word >> row.bit & 1 else -1.0 for row in rows] for word in words.tolist()])
    matrix = np.hstack([signs.reshape(count, -1) * [row.size for row in rows], np.full((count, 1), -3.0)])
    assert np.array_equal(vectors.matrix, matrix)
    other = random.integers(-8, 9, dims).astype(float)
    assert np.array_equal(vectors.times(other), matrix @ other)
    different = len(np.unique(matrix, axis=0))
    assert (vectors.few() is None) == (different > FEW_KEYS)
