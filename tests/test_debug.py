"""`punchcard debug`: what the screen shows is what the plain interpreter has, for a machine of each kind."""

from __future__ import annotations

import asyncio
import io
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import punchcard
from punchcard.errors import PunchcardError
from punchcard.viewer.debug.debugger import Debugger, debug
from punchcard.viewer.session import Session
from tests.cases import EXAMPLES, file_with, soaked
from tests.command_line import assert_refused, invoke
from tests.opened import TURING, Opened, opened

pytest.importorskip("textual", reason="textual, the extra `debug`, is not installed")
CASES: dict[str, dict[str, Any]] = {
    "multiply.subleq": {"design": "two-layer"},
    "newton.fleq": {},
    "von_neumann/reverse.bf": {"memory": 1024},
    "riscv/hi.s": {"memory": 64},
    "riscv/bin/hello.elf": {"memory": 4096},
    "turing/increment.tm": {},
}
INPUT = b"ab\n"


@pytest.fixture(scope="module")
def multiply() -> Opened:
    return opened(design="two-layer")


def driven(session: Session, drive: Callable[[Any, Any], Awaitable[None]]) -> None:
    """Open the debugger on a screen of this process, and press keys."""
    from punchcard.viewer.debug.app import DebugApp

    async def main() -> None:
        app = DebugApp(Debugger(session))
        async with app.run_test(size=(90, 24)) as pilot:
            await drive(app, pilot)

    asyncio.run(main())


def on_screen(test: Callable[[Any, Any, Opened], Awaitable[None]]) -> Callable[[Opened], None]:
    """A test that presses keys while the debugger shows `multiply`."""
    def on_screen(multiply: Opened) -> None:
        driven(multiply.session, lambda app, pilot: test(app, pilot, multiply))

    on_screen.__name__, on_screen.__doc__ = test.__name__, test.__doc__
    return on_screen


def shown(app: Any, name: str) -> str:
    """The text in a part of the screen."""
    return str(app.query_one(name).render())


def listed(app: Any) -> dict[str, str]:
    """The values on the screen by name."""
    table = app.query_one("#values")
    return {str(name): str(value) for _, name, value, _ in (table.get_row_at(i) for i in range(table.row_count))}


async def settled(app: Any, pilot: Any) -> None:
    """Wait until a search has come to its end."""
    await app.workers.wait_for_complete()
    await pilot.pause()


def same(text: str, expected: Any) -> bool:
    """Whether a value on the screen is what the interpreter has: to six digits for real numbers."""
    if not hasattr(expected, "tolist"):
        return text == str(expected)
    rows = [[float(number) for number in row.split()] for row in text.split(" ; ")]
    return bool(abs(expected - rows).max() < 1e-4)


@pytest.mark.parametrize("file", [soaked(file) if file.endswith(".elf") else file for file in CASES])
def test_the_screen_shows_what_the_interpreter_has(file: str) -> None:
    """After three instructions, and at the end of the run; every machine through the same screen."""
    given = opened(file, input=INPUT, **CASES[file])
    warm_up = given.machine.design.warm_up

    async def drive(app: Any, pilot: Any) -> None:
        await pilot.press(*"s" * (3 + warm_up))
        check(app, 3)
        await pilot.press("e")
        await settled(app, pilot)
        assert app.debugger.state["ended"] == "halted", app.debugger.place()
        result = given.machine.run(given.program, input=INPUT, max_steps=100_000)
        assert app.debugger.loop == result.loops
        check(app, result.steps)
        await pilot.press("b", "q")

    def check(app: Any, steps: int) -> None:
        oracle, written = given.oracle(steps)
        state, values = given.machine.own(given.program, oracle.state), listed(app)
        expected = given.machine.values(given.program, state)
        if hasattr(state, "program_counter"):
            expected = {"program counter": state.program_counter, **expected}
        elif file.endswith(".tm"):  # a machine of one's own has the values of its layout
            expected = {"rule.state": given.program.states[state.state], "here": state.head}
        assert len(expected) > 0
        assert [name for name in expected if not same(values[name], expected[name])] == []
        assert app.debugger.state["output"].encode() == written
        if given.machine.has_ports:
            assert written.decode() in shown(app, "#output")

    driven(given.session, drive)


@on_screen
async def test_stepping_marks_the_line_the_values_and_the_card(app: Any, pilot: Any, multiply: Opened) -> None:
    lines = (EXAMPLES / "multiply.subleq").read_text().splitlines()

    def here(app: Any) -> str:
        table = app.query_one("#source")
        return next(str(table.get_row_at(i)[2]) for i in range(table.row_count) if "▶" in str(table.get_row_at(i)[0]))
    warm_up = multiply.machine.design.warm_up
    await pilot.press(*"s" * (warm_up + 1))
    assert here(app) == next(line for line in lines if line.startswith("loop:"))
    changed = {value.name for value in app.debugger.values() if value.changed}
    assert "minus_a" in changed
    assert "product" not in changed
    assert "minus_a" in shown(app, "#card")
    place = shown(app, "#place")
    await pilot.press("full_stop")
    assert "before feed-forward" in shown(app, "#place")
    await pilot.press("l")
    assert "layer 2" in shown(app, "#place")
    await pilot.press("comma", "comma", "comma", "b", "s")
    assert shown(app, "#place") == place


def test_a_python_program_is_stepped_through_by_its_lines() -> None:
    """Lines of Python are marked as they run, and a breakpoint at one stops there with the values of its variables."""
    path = EXAMPLES / "python" / "gcd.py"
    program = punchcard.load(path, call="gcd(12, 8)", word_bits=16, memory=4096)
    machine = punchcard.build(program, word_bits=16, memory=4096)
    debugger = Debugger(Session(machine, program, source=path.read_text(), name=path.name))
    lines = path.read_text().splitlines()
    line_of = {each.number: each.line for each in debugger.session.listing.instructions}
    seen: list[str] = []
    for _ in range(60):
        line = line_of.get(debugger.state["program_counter"] or 0)
        if line is not None and (not seen or seen[-1] != lines[line - 1].strip()):
            seen.append(lines[line - 1].strip())
        debugger.step()
    assert "while b:" in seen
    assert "a, b = b, a % b" in seen
    debugger.toggle(next(number for number, text in enumerate(lines, 1) if text.strip() == "return a"))
    assert debugger.seek("breakpoint")
    values = {value.name: value.text for value in debugger.values()}
    assert [values[name] for name in values if name.endswith("_a")][:1] == ["4"]


@on_screen
async def test_the_card_strip_has_the_bits_of_the_card(app: Any, pilot: Any, multiply: Opened) -> None:
    card = multiply.machine.punch(multiply.program)
    rows = shown(app, "#card").splitlines()
    assert len(rows) == 1 + card.shape[1]
    for column, row in enumerate(rows[1:]):
        letters = "".join(row[16:].split())
        filled = card[:49, column]  # the block `difference` is empty, and left out
        assert letters == "".join({1.0: "1", -1.0: "0", 0.0: "·"}[number] for number in filled.tolist())


@on_screen
async def test_attention_moves_are_those_of_the_equation(app: Any, pilot: Any, multiply: Opened) -> None:
    with multiply.machine.observe(multiply.program) as seen:
        multiply.machine.run(multiply.program, max_steps=2)
    await pilot.press("s")
    for layer, keys in ((0, ()), (0, ("h",)), (1, ("H",))):
        await pilot.press(*keys)
        head = app.debugger.head
        wanted = [f"{move.target} ← {move.source}" for move in seen.at(1, layer).moves(head)]
        text = shown(app, "#attention")
        assert f"layer {layer + 1}, head {head + 1} of" in text
        assert sorted(line.split("  weight")[0] for line in text.splitlines()[1:] if "←" in line) == sorted(wanted)


@on_screen
async def test_breakpoints_branches_and_changes(app: Any, pilot: Any, multiply: Opened) -> None:
    lines = (EXAMPLES / "multiply.subleq").read_text().splitlines()
    stop = next(i for i, line in enumerate(lines) if "one, b" in line)
    warm_up = multiply.machine.design.warm_up
    await pilot.press("r")
    await settled(app, pilot)
    assert "there is no breakpoint" in shown(app, "#message")
    app.query_one("#source").move_cursor(row=stop)
    await pilot.press("t", "r")
    await settled(app, pilot)
    assert app.debugger.state["program_counter"] == 2
    assert app.debugger.loop == warm_up + 2
    await pilot.press("r")
    await settled(app, pilot)
    assert app.debugger.loop == warm_up + 5  # once round the loop
    await pilot.press("j")
    await settled(app, pilot)
    assert app.debugger.state["program_counter"] == 1
    app.debugger.watch("product")
    assert listed(app)["product"] == "14"
    await pilot.press("c")
    await settled(app, pilot)
    value = app.debugger.values()[0]
    assert (value.name, value.text, value.changed, value.watched) == ("product", "21", True, True)
    await pilot.press("tab", "w", "shift+tab")  # in the list of values: the one at the cursor, no longer
    assert app.debugger.watched == []
    await pilot.press("p")
    await settled(app, pilot)
    assert "nothing more is read or written" in shown(app, "#message")
    await pilot.press("g", *"12", "enter")
    assert app.debugger.loop == 12


@on_screen
async def test_wrong_answers_are_told_in_a_line(app: Any, pilot: Any, multiply: Opened) -> None:
    with pytest.raises(PunchcardError, match=r"no value 'produkt' \(did you mean 'product'\?\): see the list of values"):
        Debugger(multiply.session).watch("produkt")
    await pilot.press("w", "a", "enter")
    assert app.debugger.values()[0].name == "a"
    await pilot.press("g", "x", "enter")
    assert shown(app, "#message") == "loop 'x': write a whole number, 0 or more"
    app.query_one("#source").move_cursor(row=0)
    await pilot.press("t")
    assert shown(app, "#message") == "line 1: no instruction is there"
    await pilot.press("g", *"99", "enter")  # beyond the end is the end
    assert app.debugger.ended
    await pilot.press("g", "escape", "b")
    assert not app.debugger.ended


def test_the_command_opens_a_session(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With the machine of one's own too: the command line is the same."""
    found: list[Any] = []
    monkeypatch.setattr("punchcard.viewer.debug.debugger.debug", found.append)
    main = punchcard.command_line(TURING)
    for arguments in (["turing/increment.tm"], ["multiply.subleq", "--set", "a=5", "--design", "two-layer"]):
        invoke("debug", EXAMPLES / arguments[0], *arguments[1:], of=main, status=0)
    turing, multiply = (Debugger(session) for session in found)
    assert "tape _[1]011_" in "\n".join(turing.about["program"]["lines"])
    assert {value.name: value.text for value in multiply.values()}["a"] == "5"
    for arguments, message in ((["multiply.subleq", "--input", "x"], "--input is not for subleq programs"),
                               (["none.subleq"], "no such file")):
        assert_refused(message, "debug", EXAMPLES / arguments[0], *arguments[1:], of=main)
    wrong = file_with(tmp_path / "x.subleq", "nonsense here")
    assert_refused("", "debug", wrong, of=main)


def test_a_broken_promise_is_told() -> None:
    """A value that leaves its range ends the run, and the screen says why."""
    program = punchcard.assemble(".range 4\n.data\nx scalar 1\n.code\nloop: x = add(x, x); goto loop\n", "fleq")
    session = Session(punchcard.build(program), program)

    async def drive(app: Any, pilot: Any) -> None:
        await pilot.press("e")
        await settled(app, pilot)
        assert app.debugger.state["ended"] == "error"
        assert app.debugger.state["message"].split(":")[0] in shown(app, "#output")

    driven(session, drive)


def test_a_program_cannot_change_the_terminal() -> None:
    """What it writes is shown, and a sequence that would move the cursor is not sent."""
    reversing = opened("von_neumann/reverse.bf", memory=1024, input=b"m13[\x1bx").session

    async def drive(app: Any, pilot: Any) -> None:
        await pilot.press("e")
        await settled(app, pilot)
        assert app.debugger.state["output"] == "x\x1b[31m"
        assert "x\ufffd[31m" in shown(app, "#output")
        assert "\x1b" not in shown(app, "#output")

    driven(reversing, drive)


def test_a_pipe_is_refused_and_the_error_names_the_extra(multiply: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("q"))
    with pytest.raises(PunchcardError, match="the debugger needs a terminal"):
        debug(multiply.session)
    monkeypatch.setitem(sys.modules, "textual", None)
    with pytest.raises(PunchcardError, match=r"pip install 'punchcard\[debug\]'"):
        debug(multiply.session)


@on_screen
async def test_how_to_leave_and_where_the_keys_are_fits_a_narrow_terminal(app: Any, pilot: Any, multiply: Opened) -> None:
    from textual.widgets import Footer

    from punchcard.viewer.debug.app import KeyHelp
    await pilot.pause()
    keys = [child.key for child in app.query_one(Footer).query("FooterKey") if child.region.right <= 80]
    assert {"q", "question_mark"} <= set(keys)
    await pilot.press("question_mark")
    assert isinstance(app.screen, KeyHelp)
    await pilot.press("s")
    assert not isinstance(app.screen, KeyHelp)
    assert app.debugger.state["loop"] == 0  # the key closed the list, and did nothing else
