"""What a view makes of odd programs, names and runs."""

from __future__ import annotations

import time

import pytest

import punchcard
from punchcard.errors import PunchcardError
from punchcard.machines.von_neumann.languages.asq.assembler import assemble as assemble_image
from punchcard.transformer.precision import Precision
from punchcard.view.session import Session
from tests.cases import EXAMPLES


def test_a_run_that_ends_by_its_steps_has_nothing_after_them() -> None:
    program = punchcard.load(EXAMPLES / "multiply.subleq")
    session = Session(punchcard.build(program, design="two-layer"), program, max_steps=3)
    found = [session.state(moment) for moment in range(6 * session.per_loop)]
    assert max(state["moment"] for state in found) == 4 * session.per_loop
    assert found[-1]["ended"] == "steps"


def test_a_form_feed_ends_no_line() -> None:
    text = ".data\na 1 ; \x0c\x85\u2028\nb 5\r\n.code\nloop: subleq a, b, done\n subleq a, a, loop\ndone: halt\n"
    program = punchcard.assemble(text)
    session = Session(punchcard.build(program), program, source=text)
    state = session.state(session.per_loop)
    assert (state["line"], state["instruction"]) == (6, "subleq a, a, loop")
    assert len(session.listing.lines) == 7


def test_a_run_that_never_ends_and_cannot_be_read_is_shown() -> None:
    """A soft attention leaves cards that are not readable. The search for the run's end took that for an error of a loop."""
    program = punchcard.load(EXAMPLES / "multiply.subleq")
    session = Session(punchcard.build(program, design="paper", precision=Precision("float64", temperature=2.0)), program)
    found = session.explore(0.3)
    assert (found["ended"], found["message"]) == (None, None)
    assert found["known_loops"] > 0
    session.loops.patience = 0.1
    with pytest.raises(PunchcardError, match="loop 100,000 is too far away to be shown at once: the run is known up to"):
        session.state(9_000_000 * session.per_loop)
    assert session.state(2 * session.per_loop)["loop"] == 2


def test_thousands_of_names_open_as_few_do() -> None:
    """Each name was looked for among all others, and a card with more than 8,192 named cells could not be shown."""
    cells = "".join(f"L{i} {i % 7}\n" for i in range(9_000))
    program = punchcard.assemble(f".data\n{cells}.code\nloop: subleq L0, L1\n subleq L2, L2, loop\n halt\n")
    machine = punchcard.build(program, design="two-layer")
    labels = "".join(f". L{i}: {i % 7}\n" for i in range(9_000))
    image = assemble_image(f"loop: L0 L1\n L2 L2 loop\n{labels}")
    started = time.process_time()
    session = Session(machine, program)
    session.about()
    assert session.state(3)["moment"] == 3
    listed = Session(punchcard.build(image, memory=16_384), image, source="").about()["program"]
    assert time.process_time() - started < 8
    assert image.name_of(8) == "L2"
    assert listed["instructions"][0]["text"] == "L0 L1 loop+3"
