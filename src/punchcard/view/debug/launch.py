"""Opening the debugger; without Textual the error names the extra."""

from __future__ import annotations

import sys

from punchcard.errors import PunchcardError
from punchcard.view.debug.debugger import Debugger
from punchcard.view.session import Session


def require_textual() -> None:
    """Refuse before anything is computed."""
    try:
        import textual  # noqa: F401
    except ImportError:
        raise PunchcardError("the debugger needs textual, which is not installed: pip install 'punchcard[debug]'") from None


def require_terminal() -> None:
    """Refuse a pipe: nobody could press a key."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise PunchcardError("the debugger needs a terminal, and here standard input or output is a file or a pipe: use "
                             "`punchcard run --trace`, or `punchcard view --html FILE`")


def debug(session: Session) -> None:
    """Take over the terminal until the person quits."""
    require_textual()
    require_terminal()
    from punchcard.view.debug.app import DebugApp

    DebugApp(Debugger(session)).run()
