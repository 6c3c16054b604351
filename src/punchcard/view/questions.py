"""The questions that a page asks a session, over HTTP (`server.py`) or as messages of a notebook (`notebook.py`)."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from punchcard.errors import PunchcardError
from punchcard.view.session import Session

QUESTIONS = ("about", "formulas", "state", "attention", "explain", "weights", "explore", "find")
"""Methods of a session, whose replies `protocol.py` describes."""


def answer(
    session: Session, name: str, given: Sequence[Any] = (), named: Mapping[str, Any] | None = None
) -> Mapping[str, Any]:
    """The reply to one of the `QUESTIONS`, asked with these arguments."""
    ask = getattr(session, name)
    try:
        bound = inspect.signature(ask).bind(*given, **(named or {}))
    except TypeError as error:
        raise PunchcardError(f"{name}: {error}") from None
    found = ask(*bound.args, **bound.kwargs)
    return {"moment": found, "searched": session.searched} if name == "find" else found
