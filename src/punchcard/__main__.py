"""`python -m punchcard`, and the command `punchcard`."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from typing import NoReturn

SHOW_CURSOR = b"\x1b[?25h"


def start() -> None:
    """The command line, in a separate process.

    Ctrl-C and SIGTERM end it on the spot, unless a command handles them (`interruptible`): an exception would pass
    through the imports of libraries, some of which abort, or lose it. Files are whole at any moment.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    from punchcard.cli import main

    try:
        main(prog_name="punchcard")
    except SystemExit as end:
        leave(end.code if isinstance(end.code, int) else 0)


def leave(status: int) -> NoReturn:
    """End without taking the libraries apart, which takes torch half a second; all that was written goes out first."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(status)


def stop(signum: int, frame: object) -> None:
    """End in one line with the status of an interrupted command."""
    with suppress(OSError):
        os.write(2, (SHOW_CURSOR if os.isatty(2) else b"") + b"punchcard: interrupted\n")  # progress may have hidden it
    os._exit(1)


if __name__ == "__main__":
    start()
