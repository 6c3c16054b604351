"""The example of a machine of one's own: a Turing machine, against its oracle on every engine."""

from __future__ import annotations

import importlib.util
import itertools
import random
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor

from punchcard.card.layout import Layout
from punchcard.engines import find_engine
from punchcard.errors import ProgramError, SourceError
from punchcard.transformer.build import compile_layer, to_model
from punchcard.transformer.exactness import needed_bits
from punchcard.transformer.model import LoopedTransformer
from punchcard.transformer.precision import as_precision

FOLDER = Path(__file__).parent.parent / "examples" / "turing"
ENDS = {
    "increment": ("done", 8, "_1100"), "palindrome": ("yes", 36, ""), "busy_beaver": ("H", 107, "1_111111111111"),
}


def _module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("turing", FOLDER / "turing.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["turing"] = module
    spec.loader.exec_module(module)
    return module


turing = _module()
DESIGN = turing.TuringDesign()


@cache
def _built(states: int, symbols: int, cells: int, dtype: str = "float64") -> tuple[Any, Layout, LoopedTransformer, int]:
    sizes, precision = turing.TuringSizes(states, symbols, cells), as_precision(dtype)
    layout = DESIGN.layout(sizes)
    layers = [compile_layer(part, layout.width) for part in DESIGN.layers(sizes, layout, precision)]
    return sizes, layout, to_model(layers, layout.width, precision), needed_bits(layers, layout)


def _card(sizes: Any, layout: Layout, program: Any, dtype: torch.dtype = torch.float64) -> Tensor:
    card = layout.blank()
    DESIGN.punch(sizes, layout, program, card)
    return card.to(dtype)


def _example(name: str) -> Any:
    return turing.assemble((FOLDER / f"{name}.tm").read_text(), name)


def _random_program(random: random.Random, states: int, symbols: int, cells: int) -> Any:
    """Most pairs have a rule, so that runs are long."""
    rules = {(q, s): (random.randrange(symbols), random.choice((-1, -1, 0, 1, 1)), random.randrange(states))
             for q in range(states) for s in range(symbols) if random.random() < 0.9}
    tape = [random.randrange(symbols) for _ in range(random.randrange(cells + 1))]
    names = tuple(f"q{i}" for i in range(states))
    return turing.TuringProgram(names, "_" + "abcdefgh"[: symbols - 1], rules, tape, random.randrange(cells))


def _compare(programs: list[Any], built: tuple[Any, Layout, LoopedTransformer, int], loops: int) -> int:
    """All programs in one batch on the dense engine: state and facts after every loop. How many halted."""
    sizes, layout, model, _ = built
    oracles = [turing.TuringInterpreter(program, sizes.cells) for program in programs]
    halted = [oracle.halted for oracle in oracles]

    def look(_: int, cards: Tensor) -> None:
        nonlocal halted
        for oracle in oracles:
            oracle.step()
        assert DESIGN.read(sizes, layout, cards) == [oracle.state for oracle in oracles]
        assert layout.violations(cards) == []
        # The pattern stands from the loop that finds no rule.
        assert layout.matches(cards, *DESIGN.halting(sizes)).tolist() == halted
        halted = [oracle.halted for oracle in oracles]

    cards = torch.stack([_card(sizes, layout, program, model.dtype) for program in programs])
    assert DESIGN.read(sizes, layout, cards) == [oracle.state for oracle in oracles]
    find_engine("dense")(model, cards, loops, facts=layout, watch=look)
    return sum(halted)


@pytest.mark.parametrize("after", [(0, 1), pytest.param((0, 1, 2), marks=pytest.mark.soak)])
def test_every_machine_of_two_states_and_two_symbols(after: tuple[int, ...]) -> None:
    """All tables of moves to the left and right, on a tape so short that many fall off; in the soak with a halting state."""
    rules = itertools.product((0, 1), (-1, 1), after)
    pairs = list(itertools.product((0, 1), (0, 1)))
    programs = [turing.TuringProgram(("A", "B", "H"), "_1", dict(zip(pairs, table, strict=True)), [1, 0, 1], 1)
                for table in itertools.product(rules, repeat=4)]
    assert len(programs) == (4 * len(after)) ** 4
    size = 512
    halted = sum(_compare(programs[i : i + size], _built(3, 2, 4, "float32"), 10) for i in range(0, len(programs), size))
    assert 0 < halted < len(programs)


@pytest.mark.parametrize(("states", "symbols", "cells"), [(1, 1, 1), (1, 2, 2), (2, 3, 6), (7, 5, 33), (9, 8, 9)])
def test_random_machines_in_lockstep(states: int, symbols: int, cells: int) -> None:
    source = random.Random(f"{states} {symbols} {cells}")
    _compare([_random_program(source, states, symbols, cells) for _ in range(16)], _built(states, symbols, cells), 60)


@pytest.mark.parametrize("engine", ["dense", "scratchpad", "lowered"])
@pytest.mark.parametrize("name", ENDS)
def test_the_examples_on_every_engine(name: str, engine: str) -> None:
    program = _example(name)
    state, steps, tape = ENDS[name]
    sizes, layout, model, _ = _built(len(program.states), len(program.symbols), 24)
    ran = find_engine(engine)(model, _card(sizes, layout, program), 1000, facts=layout, until=DESIGN.halting(sizes))
    [end] = DESIGN.read(sizes, layout, ran.card[None])
    oracle = turing.TuringInterpreter(program, 24)
    while not oracle.halted:
        oracle.step()
    assert (ran.engine, ran.reason, ran.notes) == (engine, "matched", ())
    assert ran.loops - 1 == oracle.steps == steps
    assert end == oracle.state
    assert program.states[end.state] == state
    assert "".join(program.symbols[s] for s in end.tape).strip("_") == tape.strip("_")


@pytest.mark.parametrize("seed", range(4))
def test_engines_agree_on_random_machines(seed: int) -> None:
    """The same card, bit for bit, after every loop."""
    source = random.Random(seed)
    states, symbols, cells = source.choice([(3, 2, 6), (6, 4, 30), (2, 7, 40)])
    sizes, layout, model, _ = _built(states, symbols, cells)
    card = _card(sizes, layout, _random_program(source, states, symbols, cells))
    seen: dict[str, list[Tensor]] = {}
    for engine in ("dense", "scratchpad", "lowered"):
        def look(_: int, now: Tensor, name: str = engine) -> None:
            seen.setdefault(name, []).append(now.clone())

        ran = find_engine(engine)(model, card, 50, facts=layout, watch=look)
        assert (ran.engine, ran.notes) == (engine, ())
    assert all(torch.equal(a, b) and torch.equal(a, c) for a, b, c in zip(*seen.values(), strict=True))


@pytest.mark.parametrize(("word", "answer"), [("", "yes"), ("a", "yes"), ("ab", "no"), ("abba", "yes"), ("abcab", "no")])
def test_the_palindrome_test(word: str, answer: str) -> None:
    text = (FOLDER / "palindrome.tm").read_text().replace("tape _abacaba", f"tape _{word}")
    oracle = turing.TuringInterpreter(program := turing.assemble(text), 24)
    while not oracle.halted:
        oracle.step()
    assert program.states[oracle.state.state] == answer


@pytest.mark.parametrize(("move", "start", "end"), [("L", 1, -1), ("R", 1, 5)])
@pytest.mark.parametrize("engine", ["dense", "lowered"])
def test_a_head_that_leaves_the_tape_halts_beyond_its_end(move: str, start: int, end: int, engine: str) -> None:
    program = turing.assemble(f"head {start}\ngo _ -> 1 {move} go")
    sizes, layout, model, _ = _built(1, 2, 5)
    ran = find_engine(engine)(model, _card(sizes, layout, program), 100, facts=layout, until=DESIGN.halting(sizes))
    [state] = DESIGN.read(sizes, layout, ran.card[None])
    assert (ran.reason, ran.engine, state.head, state.state) == ("matched", engine, end, 0)
    assert sum(state.tape) == abs(end - start)


def test_a_halted_card_stays_as_it_is() -> None:
    program = _example("increment")
    sizes, layout, model, _ = _built(3, 3, 24)
    ran = find_engine("dense")(model, _card(sizes, layout, program), 100, facts=layout, until=DESIGN.halting(sizes))
    once = model(ran.card)
    assert torch.equal(model(once), once)
    assert DESIGN.read(sizes, layout, once[None]) == DESIGN.read(sizes, layout, ran.card[None])


@pytest.mark.parametrize(("sizes", "bits"), [((5, 2, 24), 9), ((5, 2, 1000), 14)])
def test_exactness(sizes: tuple[int, int, int], bits: int) -> None:
    """Few bits are needed; in float16 as well, the busy beaver runs exactly."""
    assert _built(*sizes)[3] == bits
    _compare([_example("busy_beaver")], _built(5, 2, 24, "float16"), 108)


@pytest.mark.parametrize("name", ENDS)
def test_the_text_survives_a_round_trip(name: str) -> None:
    program = _example(name)
    again = turing.assemble(turing.disassemble(program))
    assert turing.disassemble(again) == turing.disassemble(program)
    assert again.rules.keys() == program.rules.keys()


@pytest.mark.parametrize(("text", "message"), [
    ("A _ -> 1 R", "line 1, column 1: 'A _ -> 1 R' is not"),
    ("A _ -> 1 X A", "line 1, column 1: 'A _ -> 1 X A' is not"),
    ("; one rule\nA _ -> 1 R A\nA _ -> _ L A", "line 3, column 1: 'A _ -> _ L A' is not"),
    ("head -1", "line 1, column 1: 'head -1' is not"),
    ("A 10 -> 1 R A", "line 1, column 1: 'A 10 -> 1 R A' is not"),
])
def test_a_wrong_line_is_refused_with_its_place(text: str, message: str) -> None:
    with pytest.raises(SourceError) as error:
        turing.assemble(text, "x.tm")
    assert str(error.value).startswith(f"x.tm: {message}")


def test_a_program_without_rules_is_refused() -> None:
    with pytest.raises(ProgramError, match=r"x\.tm has no rules"):
        turing.assemble("tape 101", "x.tm")
