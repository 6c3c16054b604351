"""The page's server: it answers its own page on this computer, and nobody else anything."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Any

import pytest

import punchcard
from punchcard.errors import PunchcardError
from punchcard.viewer import page
from punchcard.viewer import server as server_module
from punchcard.viewer import session as session_module
from punchcard.viewer.server import LONGEST_REQUEST, MOST_WAITING, ViewServer
from punchcard.viewer.session import Session
from tests.opened import opened


@pytest.fixture(scope="module")
def server() -> Iterator[ViewServer]:
    made = ViewServer(opened(design="two-layer").session)
    made.start()
    yield made
    made.close()


def ask(server: ViewServer, method: str, path: str, body: Any = None, *, token: str | None = None, **headers: str
        ) -> tuple[int, dict[str, str], bytes]:
    """A request with headers as they are given; `Host` is the server's own unless it is among them, and so is the token."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20)
    content = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
    sent = {"Host": f"127.0.0.1:{server.server_port}"}
    if content is not None:
        sent |= {"Content-Type": "application/json", "Content-Length": str(len(content))}
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    begin = "" if path.startswith("http") else f"/{server.token}" if token is None else token
    connection.putrequest(method, begin + path, skip_host=True, skip_accept_encoding=True)
    for name, value in sent.items():
        if value:
            connection.putheader(name, value)
    connection.endheaders(content)
    reply = connection.getresponse()
    found = reply.status, dict(reply.getheaders()), reply.read()
    connection.close()
    return found


def question(server: ViewServer, name: str, **given: Any) -> Any:
    status, _, content = ask(server, "POST", f"/api/{name}", given)
    assert status == 200, content
    return json.loads(content)


def refused(server: ViewServer, method: str, path: str, body: Any = None, *, token: str | None = None, **headers: str
            ) -> tuple[int, str]:
    """The status and the one line of an error."""
    status, _, content = ask(server, method, path, body, token=token, **headers)
    message = json.loads(content)["error"]
    assert status >= 400
    assert "\n" not in message
    assert "Traceback" not in message
    return status, message


def test_the_page_and_its_own_files(server: ViewServer) -> None:
    for path, kind, text in (("/", "text/html", page.served()), ("/page.js", "text/javascript", page.module()),
                             ("/page.css", "text/css", page.stylesheet())):
        status, headers, content = ask(server, "GET", path)
        assert (status, content.decode()) == (200, text)
        assert headers["Content-Type"].startswith(kind)
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert ask(server, "HEAD", path)[2] == b""


@pytest.mark.parametrize("path", [
    "/etc/passwd", "/../../etc/passwd", "/%2e%2e/pyproject.toml", "/page", "/page.js/..", "//etc/passwd", "/api/about",
    "/multiply.subleq", "/page/sources.js"])
def test_nothing_else_can_be_read(server: ViewServer, path: str) -> None:
    assert refused(server, "GET", path)[0] == 404


def test_the_replies_are_the_sessions(server: ViewServer) -> None:
    session = server.session
    for name, given in (("about", {}), ("state", {"moment": 5}), ("attention", {"loop": 1, "layer": 0, "head": 1}),
                        ("explain", {"moment": 5, "column": 0}), ("weights", {"layer": 0, "head": 0}),
                        ("formulas", {"layer": 1}), ("explore", {"seconds": 5})):
        expected = json.loads(json.dumps(getattr(session, name)(**given)))
        assert question(server, name, **given) == expected
    assert question(server, "find", what="halt", moment=0) == {"moment": 112, "searched": 28}
    assert question(server, "find", what="change", moment=0, rows="memory", column=99 - 94)["moment"] > 0


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "127.0.0.1.evil.example:80", "0.0.0.0", ""])
def test_a_foreign_host_is_refused(server: ViewServer, host: str) -> None:
    """A name of another site that was made to point here is not this server."""
    for method, path, body in (("GET", "/", None), ("POST", "/api/about", {})):
        assert refused(server, method, path, body, Host=host)[0] == 403


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1", "http://127.0.0.1:1", "file://"])
def test_a_foreign_origin_is_refused(server: ViewServer, origin: str) -> None:
    status, message = refused(server, "POST", "/api/about", {}, Origin=origin)
    assert status == 403
    assert "may not ask" in message
    assert refused(server, "GET", "/", None, Origin=origin)[0] == 403
    assert refused(server, "GET", "/", None, Sec_Fetch_Site="cross-site")[0] == 403


def test_the_own_origin_is_welcome(server: ViewServer) -> None:
    for name in ("127.0.0.1", "localhost"):
        own = f"{name}:{server.server_port}"
        status, _, _ = ask(server, "POST", "/api/about", {}, Host=own, Origin=f"http://{own}", Sec_Fetch_Site="same-origin")
        assert status == 200


def test_only_the_loopback_interface_listens(server: ViewServer) -> None:
    assert server.server_address[0] == "127.0.0.1"
    addresses = {str(info[4][0]) for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
    for address in addresses - {"127.0.0.1", "127.0.1.1"}:
        with pytest.raises(OSError), socket.create_connection((address, server.server_port), timeout=1):
            pass


@pytest.mark.parametrize(("body", "status", "message"), [
    (b"{", 400, "not JSON"), (b"[1]", 400, "a JSON object"), (b"[" * 60_000, 400, "not JSON"),
    (b" " * (LONGEST_REQUEST + 1), 413, "at most"),
    ({"moment": "0"}, 400, "moment"), ({"moment": -1}, 400, "moment -1"), ({}, 400, "moment"),
    ({"moment": 1.5}, 400, "moment"), ({"moment": 0, "columns": [10**9]}, 400, "column 1000000000"),
    ({"moment": 0, "file": "/etc/passwd"}, 400, "file"), ({"moment": True}, 400, "moment"),
    ({"self": 1, "moment": 0}, 400, "self"), ({"moment": None}, 400, "moment"),
    ({"moment": 0, "columns": ["x"]}, 400, "columns"),
])
def test_a_wrong_question_gets_one_line(server: ViewServer, body: Any, status: int, message: str) -> None:
    found = refused(server, "POST", "/api/state", body)
    assert found[0] == status, found
    assert message in found[1]


def test_a_question_that_is_not_json_or_has_no_length(server: ViewServer) -> None:
    assert refused(server, "POST", "/api/about", {}, Content_Type="text/plain")[0] == 415  # as a form sends it
    assert refused(server, "POST", "/api/about", {}, Content_Length="-1")[0] == 411
    assert refused(server, "POST", "/api/about", {}, Content_Length="")[0] == 411
    assert refused(server, "POST", "/api/about", {}, Content_Length="9" * 30)[0] == 413


@pytest.mark.parametrize("name", ["abuot", "loops", "_card", "__init__", "machine", "about/", "", "session"])
def test_only_the_questions_of_the_protocol(server: ViewServer, name: str) -> None:
    status, message = refused(server, "POST", f"/api/{name}", {})
    assert status == 404
    assert "unknown question" in message
    assert name != "abuot" or "did you mean 'about'" in message


def test_other_methods_are_refused(server: ViewServer) -> None:
    for method in ("PUT", "DELETE", "OPTIONS"):
        assert refused(server, method, "/")[0] == 501


def test_a_fault_of_ours_is_one_line(server: ViewServer, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*given: Any, **named: Any) -> None:
        raise ZeroDivisionError("secret")

    monkeypatch.setattr(server.session, "about", fails)
    assert refused(server, "POST", "/api/about", {}) == (500, "the server failed: ZeroDivisionError")


def test_numbers_that_json_has_not(server: ViewServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server.session, "about", lambda: {"loops": float("inf"), "facts": [float("nan"), 1.5]})
    assert question(server, "about") == {"loops": "inf", "facts": ["nan", 1.5]}


def test_a_port_that_is_taken(server: ViewServer) -> None:
    with pytest.raises(PunchcardError, match=f"port {server.server_port} is in use: choose another with --port"):
        ViewServer(server.session, server.server_port)
    with pytest.raises(PunchcardError, match="port 70000"):
        ViewServer(server.session, 70000)


def test_every_address_needs_the_token(server: ViewServer) -> None:
    for token in ("", "/", "/x", f"/{server.token[:-1]}", f"/{server.token}x", f"/{server.token.swapcase()}"):
        for method, path in (("GET", "/"), ("HEAD", "/"), ("GET", "/page.js"), ("POST", "/api/about")):
            status, _, content = ask(server, method, path, {} if method == "POST" else None, token=token)
            assert status == 403, (method, token)
            assert server.token.encode() not in content
    assert server.address == f"http://127.0.0.1:{server.server_port}/{server.token}/"
    host = f"Host: 127.0.0.1:{server.server_port}\r\n\r\n"
    assert sent(server, f"GET /é{server.token}/ HTTP/1.1\r\n{host}")[1].startswith(b"HTTP/1.1 403 ")
    assert len(server.token) >= 32
    assert server.token not in refused(server, "GET", "/", Host="evil.example")[1]


def test_an_address_with_its_host_is_read_as_one(server: ViewServer) -> None:
    assert ask(server, "GET", f"{server.address}page.css")[0] == 200
    for address in ("http://[::1/", "http://[/", "http://[x]/"):
        assert refused(server, "GET", address)[0] == 400


def sent(server: ViewServer, *parts: str, wait: float = 0.0) -> tuple[float, bytes]:
    """Bytes as they are, with a pause between parts: the seconds until the connection is closed, and what came."""
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=20) as connection:
        begun, came = time.monotonic(), b""
        with suppress(OSError):
            for part in parts:
                connection.sendall(part.encode())
                time.sleep(wait)
            while found := connection.recv(1 << 16):
                came += found
        return time.monotonic() - begun, came


def head(server: ViewServer, length: int) -> str:
    return (f"POST /{server.token}/api/about HTTP/1.1\r\nHost: 127.0.0.1:{server.server_port}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n")


def test_a_question_that_does_not_come_whole(server: ViewServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "REQUEST_SECONDS", 0.3)
    seconds, came = sent(server, head(server, 10) + "{}")
    assert came.startswith(b"HTTP/1.1 408 ")
    assert 0.2 < seconds < 5
    for parts in ((head(server, 1000), *" " * 1000), tuple(head(server, 0))):  # byte by byte, each of them in time
        assert sent(server, *parts, wait=0.05)[0] < 5
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=20) as connection:
        connection.sendall(f"{head(server, 10)}{{}}".encode())
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 400 ")


def test_moments_far_away_are_the_last(server: ViewServer) -> None:
    last = question(server, "state", moment=10**30)["moment"]
    assert last == question(server, "find", what="halt", moment=0)["moment"]
    for what in ("halt", "port", "branch"):
        assert question(server, "find", what=what, moment=10**30, forward=False) == question(
            server, "find", what=what, moment=last + 1, forward=False)


def test_connections_that_say_nothing_keep_nobody_out(server: ViewServer) -> None:
    before = threading.active_count()
    with ExitStack() as stack:
        silent = [stack.enter_context(socket.create_connection(("127.0.0.1", server.server_port), timeout=20))
                  for _ in range(3 * MOST_WAITING)]
        begun = time.monotonic()
        assert question(server, "explore", seconds=0)["loops"]
        assert time.monotonic() - begun < 5
        assert silent[0].recv(1) == b""  # the oldest was closed
        while threading.active_count() > before + MOST_WAITING + 1:
            assert time.monotonic() - begun < 5
            time.sleep(0.01)


def test_one_who_asks_much_does_not_keep_others_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a run without end, many ask for its end; another one is answered soon, and so are they."""
    monkeypatch.setattr(session_module, "LONGEST_ANSWER", 0.4)
    program = punchcard.assemble(".data\nx 0\n.code\nloop: subleq x, x, loop\n")
    server = ViewServer(Session(punchcard.build(program), program, max_steps=10**12))
    server.start()
    try:
        given = {"what": "halt", "moment": 0, "seconds": 60}
        asking = [threading.Thread(target=question, args=(server, "find"), kwargs=given) for _ in range(12)]
        begun = time.monotonic()
        for thread in asking:
            thread.start()
        time.sleep(0.2)
        assert question(server, "state", moment=0)["moment"] == 0
        assert time.monotonic() - begun < 5
        for thread in asking:
            thread.join(timeout=20)
        assert not any(thread.is_alive() for thread in asking)
    finally:
        server.close()
