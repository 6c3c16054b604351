"""What a view makes of odd programs, names and runs."""

from __future__ import annotations

import asyncio
import time

import pytest

import punchcard
from punchcard.errors import LoweringError, PunchcardError
from punchcard.machines.von_neumann.languages.asq.assembler import assemble as assemble_image
from punchcard.machines.von_neumann.languages.brainfuck import assemble as assemble_brainfuck
from punchcard.transformer.precision import Precision
from punchcard.viewer.html import html_of
from punchcard.viewer.session import Session
from tests.cases import EXAMPLES
from tests.opened import built, opened


def test_a_run_that_ends_by_its_steps_has_nothing_after_them() -> None:
    session = opened(design="two-layer", max_steps=3).session
    found = [session.state(moment) for moment in range(6 * session.per_loop)]
    assert max(state["moment"] for state in found) == 4 * session.per_loop
    assert found[-1]["ended"] == "steps"


def test_before_the_first_instruction_there_is_no_program_counter() -> None:
    """It was read as the largest number, and the step to the first instruction was found as a branch."""
    session = opened(design="two-layer").session
    state = session.state(0)
    assert (state["program_counter"], state["values"][0]) == (None, "–")
    assert session.find("branch", 0) == 5 * session.per_loop
    assert [session.state(loop * session.per_loop)["program_counter"] for loop in (1, 4, 5)] == [0, 3, 1]


def test_the_moves_of_a_brainfuck_program_belong_to_the_line_that_uses_them() -> None:
    """All lines share them: they were shown as the last line."""
    text = (EXAMPLES / "von_neumann" / "reverse.bf").read_text()
    program = assemble_brainfuck(text, tape=8)
    session = Session(punchcard.build(program, memory=1_024), program, source=text)
    lines = [session.state(loop * session.per_loop)["line"] for loop in (1, 6, 16, 22, 26)]
    assert lines == [4, 4, 4, 4, 5]


def test_a_form_feed_ends_no_line() -> None:
    text = ".data\na 1 ; \x0c\x85\u2028\nb 5\r\n.code\nloop: subleq a, b, done\n subleq a, a, loop\ndone: halt\n"
    program = punchcard.assemble(text)
    session = Session(punchcard.build(program), program, source=text)
    state = session.state(session.per_loop)
    assert (state["line"], state["instruction"]) == (6, "subleq a, a, loop")
    assert len(session.listing.lines) == 7


def test_a_run_that_never_ends_and_cannot_be_read_is_shown() -> None:
    """A soft attention leaves cards that are not readable. The search for the run's end took that for an error of a loop."""
    session = opened(design="paper", precision=Precision("float64", temperature=2.0)).session
    found = session.explore(0.3)
    assert (found["ended"], found["message"]) == (None, None)
    assert found["known_loops"] > 0
    session.timeline.patience = 0.1
    with pytest.raises(PunchcardError, match="loop 100,000 is too far away to be shown at once: the run is known up to"):
        session.state(9_000_000 * session.per_loop)
    assert session.state(2 * session.per_loop)["loop"] == 2


def test_thousands_of_names_open_as_few_do() -> None:
    """Each name was looked for among all others, and a card with more than 8,192 named cells could not be shown."""
    cells = "".join(f"L{i} {i % 7}\n" for i in range(9_000))
    program = punchcard.assemble(f".data\n{cells}.code\nloop: subleq L0, L1\n subleq L2, L2, loop\n halt\n")
    machine = punchcard.build(program, design="two-layer")
    labels = "".join(f". L{i}: {i % 7}\n" for i in range(3_000))
    image = assemble_image(f"loop: L0 L1\n L2 L2 loop\n{labels}")
    started = time.process_time()
    session = Session(machine, program)
    session.about()
    assert session.state(3)["moment"] == 3
    listed = Session(punchcard.build(image, memory=4_096), image, source="").about()["program"]
    assert time.process_time() - started < 8
    assert image.name_of(8) == "L2"
    assert listed["instructions"][0]["text"] == "L0 L1 loop+3"


ODD_NAMES = ["[/red].subleq", "b\udcff</script>", "a\x1b[2J\u202e.subleq"]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_file_may_have_any_name(name: str) -> None:
    """In a page it is text, and in a terminal neither markup nor what changes the terminal."""
    program, machine = built(design="two-layer")
    session = Session(machine, program, name=name, source=f"</script>{name}")
    assert html_of(session, last=1).encode().lower().count(b"</script>") == 2
    app_module = pytest.importorskip("punchcard.viewer.debug.app")
    from punchcard.viewer.debug.debugger import Debugger

    async def title() -> str:
        app = app_module.DebugApp(Debugger(session))
        async with app.run_test(size=(80, 30)):
            return str(app.query_one("#source").border_title)

    shown = asyncio.run(title())
    assert shown.replace("\\", "").isprintable()
    assert shown[-5:] == session.name[-5:]


def test_an_engine_that_declines_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    program = punchcard.assemble(".data\na 1\nb 0\n.code\nloop: subleq a, b\n subleq a, a, loop\n halt\n")
    session, tried = Session(punchcard.build(program), program), list[object]()

    def declines(*given: object, **options: object) -> None:
        tried.append(given)
        raise LoweringError("a reason")

    monkeypatch.setattr("punchcard.engines.lowered.Lowered", declines)
    session.timeline.mark(3)
    session.timeline.mark(9)
    session.timeline.mark(100)
    assert len(tried) == 1
