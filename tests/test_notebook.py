"""The notebook widget: its messages reach the session, and its module shows the page in a browser."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

import punchcard
from punchcard.errors import ArgumentError
from punchcard.viewer.notebook import Still, answer_message
from punchcard.viewer.session import QUESTIONS, Session
from tests.browsing import browser
from tests.cases import load_subleq

pytest.importorskip("anywidget", reason="anywidget, the extra `view`, is not installed")
PROGRAM = load_subleq("multiply.subleq")


@pytest.fixture(scope="module")
def machine() -> Any:
    return punchcard.build(PROGRAM, design="two-layer")


@pytest.fixture(scope="module")
def widget(machine: Any) -> Any:
    return punchcard.view(machine, PROGRAM)


def asked(widget: Any, name: str, *given: Any) -> Any:
    """Send a message as the notebook does, and take the reply that goes back."""
    sent: list[Any] = []
    widget.send = sent.append
    widget._handle_custom_msg({"id": 7, "name": name, "given": list(given)}, [])
    [reply] = json.loads(json.dumps(sent))
    assert reply["id"] == 7
    return reply


def test_messages_reach_the_session(widget: Any, machine: Any) -> None:
    session = Session(machine, PROGRAM)
    questions: list[tuple[str, list[Any]]] = [
        ("about", []), ("state", [5, {"columns": [3]}]), ("attention", [1, 0, 0]), ("explain", [6, 0]),
        ("weights", [0, {"head": 0}]), ("formulas", [1])]
    for name, given in questions:
        reply = asked(widget, name, *given)["reply"]
        more = given.pop() if given and isinstance(given[-1], dict) else {}
        expected = json.loads(json.dumps(getattr(session, name)(*given, **more)))
        for known in ("known_loops", "loops", "ended", "searched"):  # what a session knows depends on what it was asked
            reply.pop(known, None)
            expected.pop(known, None)
        assert reply == expected
    end = machine.run(PROGRAM).loops
    assert asked(widget, "find", "halt", 0, {"forward": True})["reply"] == {"moment": 4 * end, "searched": end}


@pytest.mark.parametrize(("question", "message"), [
    ({"id": 1, "name": "__class__"}, "is not a question: there are about"),
    ({"id": 1, "name": "machine"}, "is not a question"),
    ("nothing", "'nothing' is not a question"),
    ({"id": 1, "name": "state", "given": ["x"]}, "moment='x': it must be an integer"),
    ({"id": 1, "name": "state", "given": [-1]}, "moment -1"),
    ({"id": 1, "name": "state", "given": [1, {"more": 2}]}, "more"),
])
def test_what_is_not_a_question_is_answered_with_an_error(machine: Any, question: Any, message: str) -> None:
    reply = answer_message(Session(machine, PROGRAM), question)
    assert message in reply["error"]
    assert "\n" not in reply["error"]


def test_only_the_protocol_can_be_asked() -> None:
    from punchcard.viewer import protocol

    documented = [line.split("(")[0].strip() for line in (protocol.__doc__ or "").splitlines() if "Reply  " in f"{line}  "
                  and line.startswith("    ")]
    assert set(QUESTIONS) == set(documented)


def test_without_anywidget_there_is_a_picture(machine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "anywidget", None)
    still = machine.view(PROGRAM)
    assert isinstance(still, Still)
    assert "pip install 'punchcard[view]'" in repr(still)
    assert "<svg" in still._repr_html_()


def test_a_program_of_another_machine_is_refused(machine: Any) -> None:
    with pytest.raises(ArgumentError, match=r"SubleqMachine\.view: program='x': it must be a Program"):
        machine.view("x")
    with pytest.raises(ArgumentError, match="view: machine=3: it must be a Machine"):
        punchcard.view(3, PROGRAM)  # type: ignore[arg-type]


MODEL = """
async ([module]) => {
  const url = URL.createObjectURL(new Blob([module], { type: "text/javascript" }));
  const { default: widget } = await import(url);
  const heard = [];
  const model = {
    on: (event, callback) => { if (event === "msg:custom") heard.push(callback); },
    send: async (question) => { const reply = await window.kernel(question); heard.forEach((callback) => callback(reply)); },
  };
  const el = document.body.appendChild(document.createElement("div"));
  widget.render({ model, el });
}
"""


def test_the_widget_in_a_browser(widget: Any, machine: Any) -> None:
    """The module that a notebook loads, with a model whose messages go to this process."""
    session = Session(machine, PROGRAM)
    with browser() as found:
        page = found.new_page()
        wrong: list[str] = []
        page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.expose_function("kernel", lambda question: answer_message(session, question))
        page.set_content("<!doctype html><title>notebook</title>")
        page.add_style_tag(content=widget._css if isinstance(widget._css, str) else str(widget._css))
        page.evaluate(MODEL, [widget._esm if isinstance(widget._esm, str) else str(widget._esm)])
        page.wait_for_selector(".punchcard >> text=minus_a")
        assert "16-bit words, 6 cells, 5 instructions" in page.inner_text(".punchcard")
        page.focus(".punchcard")
        page.keyboard.press("n")
        page.wait_for_selector("text=Loop 1, layer 1: attention")
    assert wrong == []
