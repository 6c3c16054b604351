"""The page's server: this computer only, the page's own files and a session's replies, and nothing else.

It listens on the loopback interface. Other people who use this computer can reach it there, so the address of everything
begins with a token that only its reader knows. A page of another site in the same browser could send requests too, so a
request is refused whose Host or Origin is not this server's own. There is no path to a file: three addresses have the page,
and POST /TOKEN/api/NAME asks the session.

A request has a limit of seconds as a whole, and of the connections that wait for one the oldest is closed when there are
too many: a client cannot keep others out by holding connections open.
"""

from __future__ import annotations

import errno
import hmac
import io
import json
import secrets
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from punchcard.errors import PunchcardError, did_you_mean
from punchcard.formatting import plain_data
from punchcard.viewer import page
from punchcard.viewer.session import QUESTIONS, Session

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

LOOPBACK = "127.0.0.1"
LONGEST_REQUEST = 1 << 16
"""Bytes of a question. The longest is a list of breakpoints."""
REQUEST_SECONDS = 10.0
"""Seconds for a request, from the moment at which it is waited for, and for its reply."""
MOST_WAITING = 64
"""Connections that wait for a request, or have not shown the token; a browser has about six."""
API, BUILD = "/api/", "build"
FILES: Mapping[str, tuple[str, Callable[[], str]]] = {
    "/": ("text/html; charset=utf-8", page.served),
    "/page.js": ("text/javascript; charset=utf-8", page.module),
    "/page.css": ("text/css; charset=utf-8", page.stylesheet),
}
HEADERS = {
    "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin", "X-Frame-Options": "DENY",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self';"
                               " img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
}


_OPEN = "open the address that the server printed"


class _Refused(Exception):
    """A request that gets no answer, with its status and why."""

    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.status = status


class ViewServer(ThreadingHTTPServer):
    """Serves one session until it is closed.

    port    0 takes a free one; `address` says which
    token   how the path of every address begins
    build   gives another session for a choice of the page (`Session.choices`); default: there is no choice
    """

    daemon_threads = True
    allow_reuse_address = False
    request_queue_size = 128
    """Connections that the system holds until they are accepted; a burst beyond it waits for seconds."""

    def __init__(self, session: Session, port: int = 0,
                 build: Callable[[Mapping[str, Any]], Session] | None = None) -> None:
        self.session, self._build = session, build
        self.token = secrets.token_urlsafe(24)
        self._waiting: dict[socket.socket, None] = {}
        self._guard = threading.Lock()
        if not 0 <= port < 1 << 16:
            raise PunchcardError(f"port {port}: a port is 0 to 65535, and 0 takes a free one")
        try:
            super().__init__((LOOPBACK, port), _Handler)
        except OSError as error:
            why = {errno.EADDRINUSE: "is in use", errno.EACCES: "may not be used by you"}.get(error.errno or 0, str(error))
            raise PunchcardError(f"port {port} {why}: choose another with --port, or leave it out for a free one") from None
        self.hosts = {f"{name}:{self.server_port}" for name in (LOOPBACK, "localhost")}
        if self.server_port == 80:
            self.hosts |= {LOOPBACK, "localhost"}

    @property
    def address(self) -> str:
        """What to open in a browser. Who has it can look at the run."""
        return f"http://{LOOPBACK}:{self.server_port}/{self.token}/"

    def choose(self, given: Mapping[str, Any]) -> None:
        """Serve the run on another machine from now on; only what was offered can be chosen."""
        offered = {choice["name"]: choice["options"] for choice in self.session.choices}
        for name, value in given.items():
            if name not in offered or value not in offered[name]:
                raise PunchcardError(f"{name}={value!r} is not a choice of this page")
        if self._build is not None:
            self.session = self._build(given)

    def knows(self, token: str) -> bool:
        """Whether this is the token; the time that it takes does not say how much of it is right."""
        return hmac.compare_digest(token.encode(), self.token.encode())

    def waits(self, connection: socket.socket) -> None:
        """A connection waits for a request from now on; too many, and the one that has waited longest is closed."""
        with self._guard:
            self._waiting.pop(connection, None)
            self._waiting[connection] = None
            oldest = next(iter(self._waiting)) if len(self._waiting) > MOST_WAITING else None
            if oldest is not None:
                del self._waiting[oldest]
        if oldest is not None:
            with suppress(OSError):
                oldest.shutdown(socket.SHUT_RDWR)

    def serves(self, connection: socket.socket) -> None:
        """A connection has shown the token, or has ended: it is not one that waits."""
        with self._guard:
            self._waiting.pop(connection, None)

    def start(self) -> threading.Thread:
        """Serve in a thread, until `close`."""
        thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        return thread

    def close(self) -> None:
        """Stop serving."""
        self.shutdown()
        self.server_close()

    def handle_error(self, request: object, client_address: object) -> None:
        """A browser that went away: nothing is reported."""


class _Handler(BaseHTTPRequestHandler):
    """One request. Whatever goes wrong is one line of JSON, never a stack trace."""

    server: ViewServer
    server_version = "punchcard"
    sys_version = ""
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    """Headers and content are two packets; else the second waits 40 ms for the browser to say that it has the first."""

    def setup(self) -> None:
        super().setup()
        self.rfile.close()
        self._incoming = _Incoming(self.connection)
        self.rfile = io.BufferedReader(self._incoming)

    def handle_one_request(self) -> None:
        self._incoming.deadline = time.monotonic() + REQUEST_SECONDS
        self.server.waits(self.connection)
        super().handle_one_request()

    def finish(self) -> None:
        self.server.serves(self.connection)
        super().finish()

    def do_GET(self) -> None:
        self._respond(self._file)

    do_HEAD = do_GET

    def do_POST(self) -> None:
        self._respond(self._reply)

    def _respond(self, make: Callable[[str], tuple[str, bytes]]) -> None:
        status, kind = HTTPStatus.OK, "application/json"
        try:
            self._check_caller()
            path = self._inner_path()
            self.server.serves(self.connection)
            kind, content = make(path)
        except _Refused as why:
            status, content = why.status, _error(str(why))
            self.close_connection = True
        except PunchcardError as error:
            status, content = HTTPStatus.BAD_REQUEST, _error(str(error))
        except Exception as error:  # a fault of ours: the page shows one line, and the server continues
            status, content = HTTPStatus.INTERNAL_SERVER_ERROR, _error(f"the server failed: {type(error).__name__}")
        self._send(status, kind, content)

    def _check_caller(self) -> None:
        """The Host is this server's, and so is the Origin, if the browser sends one."""
        host, origin = self.headers.get("Host", ""), self.headers.get("Origin")
        if host.lower() not in self.server.hosts:
            raise _Refused(HTTPStatus.FORBIDDEN, f"the host {host[:60]!r} is not this server: {_OPEN}")
        if origin is not None and origin.lower() not in {f"http://{name}" for name in self.server.hosts}:
            raise _Refused(HTTPStatus.FORBIDDEN, f"a page from {origin[:60]!r} may not ask this server")
        if self.headers.get("Sec-Fetch-Site", "none") not in ("same-origin", "none"):
            raise _Refused(HTTPStatus.FORBIDDEN, "a page of another site may not ask this server")

    def _inner_path(self) -> str:
        """The path behind the token, which must be there."""
        try:
            path = urlsplit(self.path).path
        except ValueError:
            raise _Refused(HTTPStatus.BAD_REQUEST, f"{self.path[:60]!r} is not an address") from None
        token, slash, rest = path.removeprefix("/").partition("/")
        if not self.server.knows(token):
            raise _Refused(HTTPStatus.FORBIDDEN, f"the address has no token, or a wrong one: {_OPEN}")
        return slash + rest

    def _file(self, path: str) -> tuple[str, bytes]:
        found = FILES.get(path)
        if found is None:
            raise _Refused(HTTPStatus.NOT_FOUND, f"there is nothing at {path[:60]!r}")
        kind, text = found
        return kind, text().encode()

    def _reply(self, path: str) -> tuple[str, bytes]:
        if not path.startswith(API):
            raise _Refused(HTTPStatus.NOT_FOUND, f"there is nothing at {path[:60]!r}")
        name, given = path.removeprefix(API), self._question()
        if name == BUILD and self.server.session.choices:
            self.server.choose(given)
            return "application/json", b"{}"
        if name not in QUESTIONS:
            raise _Refused(HTTPStatus.NOT_FOUND, f"unknown question {name[:40]!r}{did_you_mean(name, QUESTIONS)}: there are "
                                                 f"{', '.join(QUESTIONS)}")
        reply = self.server.session.answer(name, named=given)
        try:
            text = json.dumps(reply, allow_nan=False)
        except ValueError:  # JSON has no infinities: a card that left its range shows them as text
            text = json.dumps(plain_data(reply))
        return "application/json", text.encode()

    def _question(self) -> dict[str, Any]:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or self.headers.get("Transfer-Encoding") is not None:
            raise _Refused(HTTPStatus.LENGTH_REQUIRED, "a request must give its length: Content-Length is missing")
        if len(length) > 9 or int(length) > LONGEST_REQUEST:
            raise _Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a question has at most {LONGEST_REQUEST} bytes")
        if self.headers.get_content_type() != "application/json":
            raise _Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "a question is JSON: send Content-Type: application/json")
        try:
            content = self.rfile.read(int(length))
        except TimeoutError:
            raise _Refused(HTTPStatus.REQUEST_TIMEOUT, f"the question has {length} bytes, and not all of them came within "
                                                       f"{REQUEST_SECONDS:g} seconds") from None
        if len(content) < int(length):
            raise _Refused(HTTPStatus.BAD_REQUEST, f"the question has {length} bytes, and {len(content)} of them came")
        try:
            given = json.loads(content or b"{}")
        except (ValueError, RecursionError):
            raise _Refused(HTTPStatus.BAD_REQUEST, "the question is not JSON") from None
        if not isinstance(given, dict):
            raise _Refused(HTTPStatus.BAD_REQUEST, "a question is a JSON object of its arguments")
        return given

    def _send(self, status: HTTPStatus, kind: str, content: bytes) -> None:
        self.connection.settimeout(REQUEST_SECONDS)
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(content)), **HEADERS}.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the standard library refuses itself: a line of JSON, too."""
        self.close_connection = True
        self._send(HTTPStatus(code), "application/json", _error(message or HTTPStatus(code).phrase))

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: standard error is for people."""


class _Incoming(io.RawIOBase):
    """What comes from a connection, up to a deadline: bytes that come one by one do not make it later."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection, self.deadline = connection, 0.0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._connection.settimeout(left)
        return self._connection.recv_into(buffer)


def _error(text: str) -> bytes:
    return json.dumps({"error": text}).encode()
