"""`punchcard view`: a page that is served until Ctrl-C, or one file with the run inside."""

from __future__ import annotations

import base64
import json
import re
import threading
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import punchcard
from punchcard.card.formats import as_array
from punchcard.viewer.html import html_of
from punchcard.viewer.server import ViewServer
from punchcard.viewer.session import Session
from tests.cases import EXAMPLES
from tests.command_line import assert_refused, invoke
from tests.test_view_session import dense

MULTIPLY = str(EXAMPLES / "multiply.subleq")
NEWTON = str(EXAMPLES / "newton.fleq")
DATA = re.compile(r'<script type="application/json" id="punchcard-data">(.*?)</script>', re.DOTALL)


def data_of(text: str) -> Any:
    found = DATA.search(text)
    assert found is not None
    return json.loads(found[1])


def test_the_page_is_served_until_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    """The address is printed, the browser opened at it, and the page is there; then Ctrl-C."""
    seen: dict[str, Any] = {}

    def served(self: ViewServer, poll_interval: float = 0.5) -> None:
        thread = threading.Thread(target=forever, args=(self, 0.01), daemon=True)
        thread.start()
        with urllib.request.urlopen(self.address, timeout=10) as page:
            seen["page"] = page.read().decode()
        self.shutdown()
        thread.join()
        raise KeyboardInterrupt

    forever = ViewServer.serve_forever
    monkeypatch.setattr(ViewServer, "serve_forever", served)
    monkeypatch.setattr("webbrowser.open", lambda address: seen.setdefault("opened", address))
    result = invoke("view", MULTIPLY, "--design", "two-layer", status=0)
    address = result.stdout.strip()
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{32}/", address)
    assert "punchcard-view" in seen["page"]
    assert seen["opened"] == address
    assert "press Ctrl-C to stop" in result.stderr
    seen.clear()
    assert invoke("view", MULTIPLY, "--no-open", "--design", "two-layer").exit_code == 0
    assert "opened" not in seen


@pytest.mark.parametrize(("arguments", "message"), [
    (("nothing.subleq",), "no such file: 'nothing.subleq'"),
    ((str(EXAMPLES / "data.csv"),), "not a known language"),
    ((MULTIPLY, "--loops", "3"), "--loops needs --html FILE"),
    ((MULTIPLY, "--model"), "--model needs --html FILE"),
    ((MULTIPLY, "--html", "x.html", "--record", "5:2"), "--record '5:2': write A:B"),
    ((MULTIPLY, "--html", "x.html", "--record", "five"), "--record 'five': write A:B"),
    ((MULTIPLY, "--html", "x.html", "--record", "1:2", "--loops", "3"), "it cannot be used with --loops"),
    ((MULTIPLY, "--html", "x.html", "--record", "1:2", "--model"), "it cannot be used with --model"),
    ((MULTIPLY, "--html", "x.html", "--port", "80"), "--html writes a file"),
    ((MULTIPLY, "--html", MULTIPLY), "multiply.subleq"),
    ((MULTIPLY, "--input", MULTIPLY), "--input is not for subleq programs: they read nothing"),
    ((MULTIPLY, "--html", "no/such/folder/x.html"), "no/such/folder"),
    ((MULTIPLY, "--html", "x.html", "--model", "--dtype", "float32"), "in float64, and the machine in float32"),
    ((MULTIPLY, "--html", "x.html", "--model", "--memory", "600"), "too large for a page that computes it"),
])
def test_bad_input_is_one_line(arguments: tuple[str, ...], message: str, tmp_path: Path,
                               monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert_refused(message, "view", *arguments)
    assert not list(tmp_path.iterdir())


def test_a_recorded_file(tmp_path: Path) -> None:
    """Three megabytes at most; its states, put together from what changes, are the dense engine's."""
    file = tmp_path / "multiply.html"
    result = invoke("view", MULTIPLY, "--html", str(file), "--design", "paper", "--bits", "16", status=0)
    assert result.stdout.endswith("bytes, loops 0 to 28 of 28\n")
    text = file.read_text(encoding="utf-8")
    assert len(text.encode()) <= 3_000_000
    assert not re.findall(r'(?:src|href)="(?!data:)[^"]*"', text)
    data = data_of(text)
    assert (data["kind"], data["about"]["loops"], data["about"]["ended"]) == ("recorded", 28, "halted")
    program = punchcard.load(MULTIPLY)
    machine = punchcard.build(program)
    width, card = machine.layout.width, as_array(machine.punch(program))
    stages = [*[stage for _ in range(2) for stage in dense(machine, card)[:-1]][:18], dense(machine, card)[-1]]
    shown = np.zeros_like(card)
    for state, expected in zip(data["states"], stages, strict=False):
        if "entries" in state:
            shown = _entries(state["entries"], width)
        for row, column, value in state.get("changes", []):
            shown[row, column] = value
        assert np.array_equal(shown, expected)
    assert len(data["states"]) == 28 * 18 + 1
    assert set(data["attention"]) >= {"0/0/0", "27/5/0"}


def _entries(text: str, width: int) -> Any:
    return np.frombuffer(base64.b64decode(text), "<f8").reshape(-1, width).T.copy()


def test_some_loops_of_a_run(tmp_path: Path) -> None:
    file = tmp_path / "some.html"
    assert invoke("view", MULTIPLY, "--design", "two-layer", "--html", str(file), "--record", "3:5").exit_code == 0
    moments = [state["moment"] for state in data_of(file.read_text(encoding="utf-8"))["states"]]
    assert moments == list(range(12, 21))


def test_the_loops_that_are_named_are_those_in_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They end with the first output, which is looked for once, and by an engine that has compiled the weights."""
    find, known = Session.find, []

    def once(session: Session, *given: Any, **options: Any) -> int | None:
        known.append(session.timeline.known)
        return None if len(known) > 1 else find(session, *given, **options)

    monkeypatch.setattr(Session, "find", once)
    file = tmp_path / "primes.html"
    result = invoke("view", str(EXAMPLES / "von_neumann/primes.asq"), "--memory", "1024", "--html", str(file))
    about = data_of(file.read_text(encoding="utf-8"))["about"]
    assert about["first_loop"] or about["loops"] > 64
    assert f"loops {about['first_loop']:,} to {about['loops']:,} of {about['all_loops']:,}\n" in result.stdout
    assert known == [64]


def test_the_model_inside(tmp_path: Path) -> None:
    """The weights, put together again, and the first card are the machine's, bit for bit."""
    file = tmp_path / "newton.html"
    assert invoke("view", NEWTON, "--html", str(file), "--model").exit_code == 0
    data = data_of(file.read_text(encoding="utf-8"))
    assert (data["kind"], data["about"]["loops"], data["about"]["ended"]) == ("computed", 63, "halted")
    program = punchcard.load(NEWTON)
    machine = punchcard.build(program)
    assert np.array_equal(_entries(data["card"], machine.layout.width), as_array(machine.punch(program)))
    for layer, arrays in zip(data["model"]["layers"], machine.weights.layers, strict=True):
        for name in ("w1", "b1", "w2", "b2"):
            made = np.zeros(layer[name]["shape"])
            made.reshape(-1)[np.frombuffer(base64.b64decode(layer[name]["at"]), "<u4")] = np.frombuffer(
                base64.b64decode(layer[name]["values"]), "<f8")
            assert np.array_equal(made, getattr(arrays, name))


def test_what_a_host_did_is_inside() -> None:
    """Each loop's card and what the host changed after it give the card of the next loop."""
    program = punchcard.load(EXAMPLES / "von_neumann/echo.asq")
    machine = punchcard.build(program, memory=125, precision="float64")
    session = Session(machine, program, input=b"ab")
    data = data_of(html_of(session, model=True))
    card = _entries(data["card"], machine.layout.width)
    for loop in range(data["about"]["loops"]):
        card = dense(machine, card)[-1].copy()
        for row, column, value in data["loops"][str(loop + 1)].get("changes", []):
            card[row, column] = value
    assert data["loops"][str(loop + 1)] | {"changes": []} == {"output": "ab", "read": 2, "changes": []}
    assert np.array_equal(card, session.card(10**9)[1])


def test_the_message_of_a_run_that_fails_is_inside(tmp_path: Path) -> None:
    text = ".range 4\n.data\nx scalar 1\ntwo scalar 2\n.code\n" + 3 * "x = mul(x, two)\n" + "halt\n"
    (tmp_path / "far.fleq").write_text(text)
    for more in (("--model",), ()):
        assert invoke("view", str(tmp_path / "far.fleq"), "--html", str(tmp_path / "far.html"), *more).exit_code == 0
        data = data_of((tmp_path / "far.html").read_text(encoding="utf-8"))
        last = data["loops"]["3"] if more else data["states"][-1]
        assert "instruction 2 in loop 3" in last["message"]
        assert data["about"]["ended"] == "error"
