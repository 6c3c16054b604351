"""A session's page for tests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from punchcard.errors import PunchcardError
from punchcard.view import page as files
from punchcard.view.session import Session


@contextmanager
def served(page: Any, session: Session) -> Iterator[str]:
    address = "http://127.0.0.1:8999/"

    def answer(route: Any) -> None:
        path = route.request.url.removeprefix(address)
        got = {"": (files.served, "text/html"), "page.js": (files.module, "text/javascript"), "page.css": (files.stylesheet, "text/css")}
        if path in got:
            route.fulfill(body=got[path][0](), content_type=got[path][1] + "; charset=utf-8")
            return
        name = path.removeprefix("api/")
        try:
            reply: Any = getattr(session, name)(**json.loads(route.request.post_data))
        except PunchcardError as error:
            route.fulfill(status=400, json={"error": str(error)})
            return
        route.fulfill(json={"moment": reply, "searched": session.searched} if name == "find" else reply)

    page.route(f"{address}**", answer)
    try:
        yield address
    finally:
        page.goto("about:blank")
        page.unroute(f"{address}**")
