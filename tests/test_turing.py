"""The example of a machine of one's own: a Turing machine, tested like the built-in ones, and its page in the docs."""

from __future__ import annotations

import inspect
import itertools
import json
import os
import random
import re
from dataclasses import replace
from functools import cache, partial
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import punchcard
from punchcard.engines import Controls
from punchcard.errors import ProgramError, PunchcardError, SizeError, SourceError, StorageError
from punchcard.machines.interpreter import Stepper
from punchcard.machines.kind import Option
from punchcard.machines.lockstep import compare
from tests.cases import ROOT, file_with, soaked, turing_example
from tests.command_line import assert_refused, invoke
from tests.pages import page, snippets
from tests.random_programs import random_turing_text
from tests.test_storage import loaded_again

FOLDER = ROOT / "examples" / "turing"
PAGE = page("your-own-machine.md")
ENGINES = ("dense", "scratchpad", "lowered", "auto")
ENDS = {  # state, steps, tape
    "increment": ("done", 8, "_1[1]00_"),
    "palindrome": ("yes", 36, "____[_]____"),
    "busy_beaver": ("H", 107, "__1[_]111111111111________"),
}
COUNTER = """; Counts up in binary, the lowest digit first, until the last digit carries.
tape >[0]0000000_
add 0 -> 1 L back
add 1 -> 0 R add
back 0 -> 0 L back
back 1 -> 1 L back
back > -> > R add
"""


turing = turing_example()
TuringMachine = turing.TuringMachine
KINDS = punchcard.kinds().including(TuringMachine)


@cache
def _machine(states: int, symbols: int, squares: int, precision: str = "float64") -> Any:
    return TuringMachine(states=states, symbols=symbols, squares=squares, precision=precision)


def _example(name: str) -> Any:
    return punchcard.load(FOLDER / f"{name}.tm", machines=KINDS)


@cache
def _machine_for(name: str) -> Any:
    return TuringMachine.for_program(_example(name))


_invoke = partial(invoke, of=punchcard.command_line(TuringMachine))


def _run(*arguments: str) -> dict[str, Any]:
    result = _invoke("run", *arguments, "--json")
    found: dict[str, Any] = json.loads(result.stdout)
    assert result.exit_code == (0 if found["halted"] and found["agrees"] is not False else 1)
    return found


# The transformer beside the oracle


@pytest.mark.parametrize(("pairs", "after"), [
    (("A _", "A 1", "B _"), "AB"), soaked(("A _", "A 1", "B _", "B 1"), "ABH")])
def test_every_machine_of_two_states_and_two_symbols(pairs: tuple[str, ...], after: str) -> None:
    """All tables of moves to the left and right, on a tape so short that many fall off; here B halts at a 1.

    In the soak it has a rule there, and rules may lead to a halting state.
    """
    actions = [f"{write} {move} {then}" for write, move, then in itertools.product("_1", "LR", after)]
    programs = [turing.assemble("\n".join(["tape 1[_]1_", *map("{} -> {}".format, pairs, table)]))
                for table in itertools.product(actions, repeat=len(pairs))]
    assert len(programs) == (4 * len(after)) ** len(pairs)
    machine, batches = _machine(3, 2, 4, "float32"), range(0, len(programs), 512)
    found = [compare(machine, programs[i : i + 512], max_steps=10) for i in batches]
    assert all(each.agrees for each in found)
    assert 0 < sum(each.steps for each in found) < 10 * len(programs), "some have halted"


@pytest.mark.parametrize(("states", "symbols", "squares"), [(1, 1, 1), (1, 2, 2), (2, 3, 6), (7, 5, 33), (9, 8, 9)])
def test_random_machines_in_lockstep(states: int, symbols: int, squares: int) -> None:
    source, machine = random.Random(f"{states} {symbols} {squares}"), _machine(states, symbols, squares, "float32")
    programs = [turing.assemble(random_turing_text(source, states, symbols, squares)) for _ in range(12)]
    found = compare(machine, programs, max_steps=40)
    assert found.agrees
    assert found.steps > 12 or squares < 3


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ENDS)
def test_the_examples_on_every_engine_in_lockstep(name: str, engine: str) -> None:
    state, steps, tape = ENDS[name]
    program, machine = _example(name), _machine_for(name)
    report = punchcard.check(program, machine, engine=engine)
    result = report.result
    assert report.ok
    assert result.engine == engine or engine == "auto"
    assert (result.notes, result.steps, result.loops) == ((), steps, steps + 1)
    assert result.memory == {"state": state, "tape": tape, "head": tape.index("[")}


@pytest.mark.parametrize("seed", range(4))
def test_engines_agree_bit_for_bit_after_every_loop(seed: int) -> None:
    source = random.Random(seed)
    sizes = source.choice([(3, 2, 6), (6, 4, 30), (2, 7, 40)])
    machine, program = _machine(*sizes), turing.assemble(random_turing_text(source, *sizes))
    seen: dict[str, list[Tensor]] = {}
    for engine in ("dense", "scratchpad", "lowered"):
        def look(_: int, card: Tensor, name: str = engine) -> None:
            assert machine.layout.violations(card) == []
            seen.setdefault(name, []).append(card.clone())

        assert machine.run(program, engine=engine, max_steps=50, controls=Controls(watch=look)).engine == engine
    assert all(torch.equal(a, b) and torch.equal(a, c) for a, b, c in zip(*seen.values(), strict=True))


def test_the_same_number_of_steps_as_the_limit() -> None:
    """A limit that is just reached: the program has halted, though the card does not say so yet."""
    for limit, reason in ((7, "steps"), (8, "halted"), (9, "halted")):
        report = punchcard.run(_example("increment"), _machine_for("increment"), max_steps=limit)
        assert (report.result.reason, report.agrees) == (reason, True)


def test_a_halted_card_stays_as_it_is() -> None:
    machine = _machine_for("increment")
    card = machine.run(_example("increment")).card
    once = machine.model(card)
    assert torch.equal(machine.model(once), once)
    assert machine.read(once) == machine.read(card)


def test_a_card_with_states_and_symbols_of_no_program_is_shown() -> None:
    """A machine has room for more than its program names, and a forged card may hold it."""
    text = "tape _[1]_\ngo 1 -> 1 S go\n"
    program = turing.assemble(text)
    machine = _machine(4, 4, 3)
    assert machine.values(program, turing.Configuration([0, 3, 1], 1, 2)) == {"state": 2, "tape": "_[?]1", "head": 1}


def test_a_wrong_weight_is_noticed_and_named() -> None:
    """The comparison can fail: a head that takes nothing leaves the machine blind on the left."""
    machine, program = TuringMachine.for_program(_example("increment")), _example("increment")
    with torch.no_grad():
        machine.model.layers[0].value[1].zero_()
    report = punchcard.check(program, machine, engine="dense")
    assert not report.agrees
    assert report.why == "loop 7: state is done, the interpreter has carry"


@pytest.mark.parametrize(("word", "answer"), [("", "yes"), ("a", "yes"), ("ab", "no"), ("abba", "yes"), ("abcab", "no")])
def test_the_palindrome_test(word: str, answer: str) -> None:
    tape = f"tape _[{word[:1] or '_'}]{word[1:]}_"
    program = turing.assemble((FOLDER / "palindrome.tm").read_text().replace("tape _[a]bacaba_", tape))
    report = punchcard.run(program, _machine(10, 4, 9), engine="dense")
    assert report.ok
    assert report.result.memory["state"] == answer


# Sizes and errors


def test_the_weights_never_see_a_program() -> None:
    assert set(inspect.signature(TuringMachine).parameters) == {"states", "symbols", "squares", "design", "precision"}
    program, other = _example("increment"), turing.assemble(COUNTER)
    sizes = {"states": 3, "symbols": 4, "squares": 10}
    one, two = TuringMachine.for_program(program, **sizes), TuringMachine.for_program(other, **sizes)
    assert all(torch.equal(tensor, two.model.state_dict()[name]) for name, tensor in one.model.state_dict().items())
    before = {name: tensor.clone() for name, tensor in one.model.state_dict().items()}
    for each in (program, other):
        assert punchcard.check(each, one, engine="dense", max_steps=30).agrees
    assert all(torch.equal(before[name], tensor) for name, tensor in one.model.state_dict().items())


@pytest.mark.parametrize(("sizes", "bits", "width"), [((5, 2, 24), 9, 64), ((5, 2, 1000), 14, 94)])
def test_sizes_and_exactness(sizes: tuple[int, int, int], bits: int, width: int) -> None:
    machine = _machine(*sizes)
    assert (machine.needed_bits, machine.layout.width, len(machine.model.shapes)) == (bits, width, 1)
    q, s, _, length = machine.sizes.bits()
    assert width == 6 * length + 2 * q + 6 * s + 10


def test_half_precision_is_enough_for_the_busy_beaver() -> None:
    program = _example("busy_beaver")
    report = punchcard.check(program, machines=KINDS, precision="float16", engine="dense")
    assert report.ok
    with pytest.raises(PunchcardError, match=r"needs sums of 14 significand bits, float16 has 11: use a wider"):
        TuringMachine(squares=1000, precision="float16")


@pytest.mark.parametrize(("options", "message"), [
    ({"states": 0}, "states=0: it must be an integer, at least 1, at most 65536"),
    ({"symbols": -1}, "symbols=-1: it must be an integer, at least 1, at most 65536"),
    ({"squares": 2.5}, "squares=2.5: it must be an integer, at least 1, at most 65536"),
    ({"squares": 1 << 40}, "squares=1099511627776: it must be an integer, at least 1, at most 65536"),
])
def test_impossible_sizes_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(SizeError) as error:
        TuringMachine(**options)
    assert str(error.value) == message


@pytest.mark.parametrize(("options", "wanted"), [
    ({"states": 2}, "states=3, the machine has states=2: build it with states=3 or more"),
    ({"symbols": 2}, "symbols=3, the machine has symbols=2: build it with symbols=3 or more"),
    ({"squares": 5}, "squares=6, the machine has squares=5: build it with squares=6 or more"),
])
def test_a_program_that_does_not_fit_is_refused(options: dict[str, Any], wanted: str) -> None:
    with pytest.raises(ProgramError) as error:
        punchcard.run(_example("increment"), machines=KINDS, **options)
    assert str(error.value) == f"the program needs {wanted}"


@pytest.mark.parametrize(("text", "message"), [
    ("A _ -> 1 R", "line 1, column 1: 'A _ -> 1 R' is not"),
    ("A _ -> 1 X A", "line 1, column 1: 'A _ -> 1 X A' is not"),
    ("; one rule\nA _ -> 1 R A\nA _ -> _ L A", "line 3, column 1: 'A _ -> _ L A' is not"),
    ("A 10 -> 1 R A", "line 1, column 1: 'A 10 -> 1 R A' is not"),
    ("A [ -> 1 R A", "line 1, column 1: 'A [ -> 1 R A' is not"),
    ("tape 101", "line 1, column 1: 'tape 101' is not a tape with the head in brackets"),
    ("tape 1[0]1[0]", "line 1, column 1: 'tape 1[0]1[0]' is not a tape"),
    ("tape [10]", "line 1, column 1: 'tape [10]' is not a tape"),
])
def test_a_wrong_line_is_refused_with_its_place(text: str, message: str) -> None:
    with pytest.raises(SourceError) as error:
        turing.assemble(text, "x.tm")
    assert str(error.value).startswith(f"x.tm: {message}")
    assert "`state symbol -> symbol L|S|R state`" in str(error.value)


def test_a_program_without_rules_is_refused() -> None:
    with pytest.raises(ProgramError, match=r"x\.tm has no rules: write `state symbol -> symbol"):
        turing.assemble("tape 1[0]1", "x.tm")


def test_a_program_of_another_machine_is_refused() -> None:
    with pytest.raises(PunchcardError, match=r"a program of class Program does not run on a TuringMachine"):
        punchcard.run(punchcard.assemble(".code\nhalt"), _machine_for("increment"))
    with pytest.raises(PunchcardError, match=r"an object of type TuringProgram is not a program of a known machine"):
        punchcard.run(_example("increment"))
    with pytest.raises(ProgramError, match=r"the extension '\.tm', which is not a known language"):
        punchcard.load(FOLDER / "increment.tm")


def test_an_option_with_two_meanings_is_refused() -> None:
    for name, option in (("cells", Option("cells", "of the tape")), ("memory", Option("memory", "of what", str))):
        with pytest.raises(PunchcardError, match=rf"the option '{name}' has another meaning in '.*' than in '.*': rename"):
            punchcard.kinds().including(replace(TuringMachine.kind, options=(option,)))


def test_an_installed_package_brings_its_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def entry_points(group: str) -> list[EntryPoint]:
        return [EntryPoint("turing", "turing:TuringMachine", group)] if group == "punchcard.machines" else []

    monkeypatch.setattr("punchcard.machines.registry.entry_points", entry_points)
    monkeypatch.syspath_prepend(str(tmp_path))  # packages are looked for once on a path
    result = invoke("run", FOLDER / "increment.tm", "--engine", "dense", of=punchcard.command_line(), status=0)
    assert "_1[1]00_" in result.stdout


def test_a_stepper_halts_where_its_function_says() -> None:
    stepper = Stepper(lambda n: n - 1 if n else None, 3)
    stepper.run(2)
    assert (stepper.state, stepper.steps, stepper.halted) == (1, 2, False)
    stepper.run()
    stepper.step()
    assert (stepper.state, stepper.steps, stepper.halted) == (0, 3, True)


# Everything that a machine gets without another line


@pytest.mark.parametrize("name", ENDS)
def test_the_text_survives_a_round_trip(name: str, tmp_path: Path) -> None:
    program, copy = _example(name), tmp_path / "copy.tm"
    assert _invoke("asm", str(FOLDER / f"{name}.tm"), "-o", str(copy)).exit_code == 0
    assert turing.assemble(copy.read_text()) == program
    assert _invoke("disasm", str(copy)).stdout == copy.read_text() == punchcard.disassemble(program, machines=KINDS)


def test_a_saved_machine_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "turing.safetensors"
    again = loaded_again(_machine_for("increment"), path)
    assert punchcard.run(_example("increment"), again, engine="dense").ok
    with pytest.raises(StorageError, match=r"holds a 'turing' machine, not 'subleq'"):
        punchcard.SubleqMachine.load(path)


@pytest.mark.parametrize("engine", ["dense", "lowered"])
def test_stopped_anywhere_a_run_ends_with_the_same_card(engine: str, tmp_path: Path) -> None:
    program, machine, path = _example("palindrome"), _machine_for("palindrome"), tmp_path / "run.checkpoint"
    whole = punchcard.run(program, machine, engine=engine)
    for stop in (0, 1, 9, 36):
        punchcard.run(program, machine, engine=engine, max_steps=stop, checkpoint=path, every=4)
        resumed = punchcard.resume(path, machines=KINDS, max_steps=1000)
        assert resumed.ok
        assert resumed.result.card.numpy().tobytes() == whole.result.card.numpy().tobytes()
        assert resumed.result.loops == whole.result.loops
    with pytest.raises(StorageError, match=r"unknown machine 'turing'"):
        punchcard.resume(path)


def test_the_trace_shows_every_configuration() -> None:
    result = _invoke("run", str(FOLDER / "increment.tm"), "--trace", "--check", status=0)
    assert re.findall(r"^loop +(\d+)  (.*)$", result.stderr, re.MULTILINE) == [(str(i), line) for i, line in enumerate([
        "state right, tape _1[0]11_, head 2", "state right, tape _10[1]1_, head 3", "state right, tape _101[1]_, head 4",
        "state right, tape _1011[_], head 5", "state carry, tape _101[1]_, head 4", "state carry, tape _10[1]0_, head 3",
        "state carry, tape _1[0]00_, head 2", "state done, tape _1[1]00_, head 2", "state done, tape _1[1]00_, head 2"], 1)]
    assert result.stdout.startswith("state  done\ntape   _1[1]00_\nhead   2\nhalted after 8 instructions in 9 loops")
    assert "the transformer agrees with the interpreter" in result.stdout


@pytest.mark.parametrize(("move", "side", "end"), [("L", "left", "111__"), ("R", "right", "__111")])
@pytest.mark.parametrize("engine", ["dense", "lowered"])
def test_a_head_that_leaves_the_tape_halts_and_says_so(move: str, side: str, end: str, engine: str, tmp_path: Path) -> None:
    source = file_with(tmp_path / "off.tm", f"tape __[_]__\ngo _ -> 1 {move} go\n")
    result = _invoke("run", str(source), "--engine", engine, "--trace", status=0)
    assert f"head   has left the tape on the {side}\n" in result.stdout
    assert f"loop     3  state go, tape {end}, head has left the tape on the {side}\n" in result.stderr
    facts = _run(str(source), "--engine", engine)
    assert facts["memory"] == {"state": "go", "tape": end, "head": f"has left the tape on the {side}"}
    longer = _run(str(source), "--squares", "9", "--engine", engine)
    assert longer["memory"]["tape"] == (f"{end}____" if side == "left" else "__1111111")


def test_the_limit_is_told_without_an_instruction_number() -> None:
    result = _invoke("run", str(FOLDER / "increment.tm"), "--max-steps", "3", status=1)
    assert result.stderr == "punchcard: the limit of --max-steps was reached\n"


def test_info() -> None:
    facts = json.loads(_invoke("info", str(FOLDER / "busy_beaver.tm"), "--json").stdout)
    assert {name: facts[name] for name in ("machine", "states", "symbols", "squares", "layers", "heads", "needed_bits")} == {
        "machine": "turing", "states": 5, "symbols": 2, "squares": 24, "layers": 1, "heads": [3], "needed_bits": 9}
    assert "turing, design 'one-layer': states 4, symbols 3, squares 30" in _invoke("info", "--machine", "turing").stdout


def test_bench_times_a_program() -> None:
    records = json.loads(_invoke("bench", str(FOLDER / "increment.tm"), "--quick", "--json").stdout)
    assert [record["engine"] for record in records] == ["dense", "scratchpad", "lowered", "python"]
    assert {record["steps"] for record in records} == {8}


@pytest.mark.parametrize(("arguments", "message"), [
    (("--squares", "5"), "the program needs squares=6, the machine has squares=5: build it with squares=6 or more"),
    (("--squares", "0"), "Invalid value for '--squares': 0 is not in the range 1<=x<=65536."),
    (("--set", "tape=1"), "--set is not for turing programs: they have no named values"),
    (("--memory", "5"), "--memory is not for .tm programs"),
    (("--design", "paper"), "--design paper is not for turing machines: choose one-layer"),
])
def test_what_the_command_line_refuses(arguments: tuple[str, ...], message: str) -> None:
    assert_refused(message, "run", FOLDER / "increment.tm", *arguments, of=punchcard.command_line(TuringMachine))


def test_observed_columns_have_names() -> None:
    """The third loop of the increment: the rule, the square that is written, and those beside the head."""
    machine, program = _machine_for("increment"), _example("increment")
    with machine.observe(program) as seen:
        machine.run(program)
    moves = [[(move.source, move.target) for move in seen[2].moves(head)] for head in range(3)]
    assert moves == [[("scratchpad", "tape[2]"), ("table[2]", "scratchpad")], [("tape[2]", "scratchpad")],
                     [("tape[4]", "scratchpad")]]
    assert ("square", "tape") not in seen[2].changed()
    assert ("square", "tape") in seen[6].changed()


@pytest.mark.soak
def test_the_busy_beaver_with_five_states() -> None:
    """Marxen and Buntrock 1990: 47,176,870 steps and 4,098 ones, on 16,000 squares."""
    rules = ["A _ 1RB", "A 1 1LC", "B _ 1RC", "B 1 1RB", "C _ 1RD", "C 1 _LE", "D _ 1LA", "D 1 1LD", "E _ 1RH", "E 1 _LA"]
    text = "".join(f"{q} {s} -> {' '.join(action)}\n" for q, s, action in map(str.split, rules))
    program = turing.assemble(f"tape {'_' * 12_500}[_]{'_' * 3_499}\n{text}")
    report = punchcard.run(program, machines=KINDS, engine="lowered", max_steps=10**8, check=False)
    assert (report.result.reason, report.result.steps) == ("halted", 47_176_870)
    assert report.result.memory["tape"].count("1") == 4098


# The proof


def test_a_machine_outside_the_package_is_proven() -> None:
    pytest.importorskip("z3")
    machine = _machine(2, 2, 6)
    found = machine.prove()
    assert found.proven, found
    assert sum(claim.name.startswith("again: ") for claim in found.claims) == len(machine.layout.facts)


def test_facts_hold_on_every_card_of_a_run_and_a_wrong_one_is_seen() -> None:
    program = _example("increment")
    machine = _machine_for("increment")
    card = machine.punch(program)
    for _ in range(6):
        assert machine.layout.violations(card) == []
        card = machine.model(card)
    machine.layout.put_numbers(card, "scratchpad", {"behind": [7]})
    assert any("the head came from where it was" in line for line in machine.layout.violations(card))


# The page in the docs


def test_the_page_quotes_the_file() -> None:
    """A block of Python is in the file, or it runs."""
    text, names = (FOLDER / "turing.py").read_text(), dict[str, Any]()
    blocks = snippets(PAGE)
    quoted = [block for block in blocks if not block.startswith("import ")]
    assert len(quoted) >= 5
    for block in quoted:
        assert block in text
    here = Path.cwd()
    os.chdir(ROOT)
    try:
        for block in blocks:
            if block not in quoted:
                exec(compile(block, "your-own-machine.md", "exec"), names)
    finally:
        os.chdir(here)
    assert names["report"].ok


def test_the_commands_on_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    commands = re.findall(r"^python examples/turing/turing\.py (.*)$", PAGE, re.MULTILINE)
    assert {command.split()[0] for command in commands} == {"run", "info", "asm", "disasm", "bench"}
    for command in commands:
        result = _invoke(*command.split())
        assert result.exit_code == (1 if "--checkpoint" in command else 0), command
    for shown in re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL):
        result = _invoke("run", "examples/turing/increment.tm", "--trace")
        for line in shown.splitlines():
            assert line in result.output
