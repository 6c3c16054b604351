"""What a view makes of odd programs, names and runs."""

from __future__ import annotations

import punchcard
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
