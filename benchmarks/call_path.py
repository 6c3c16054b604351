"""How far a run travels through the source: which functions are called for the first time, in order, and in which folders.

    python benchmarks/call_path.py                             the run of examples/multiply.subleq
    python benchmarks/call_path.py --list run FILE OPTIONS     any command, with the calls themselves

A function counts once, at its first call. The body of a class counts too, since it runs when its module is imported on the
way; module bodies, lambdas and comprehensions do not. The command line itself is imported before. A folder is a room of the
package, or a folder in a room (`machines/subleq`); a switch is a call in another folder than the call before. A reader who
follows the program opens another folder at each switch. Run it twice: the first time compiles the weights.
"""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from itertools import pairwise
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = "examples/multiply.subleq"
SOURCE = f"{ROOT / 'src' / 'punchcard'}/"


class Call(NamedTuple):
    """The first call of a function: its file below the package, and its name."""

    file: str
    name: str

    @property
    def folder(self) -> str:
        return "/".join(self.file.split("/")[:-1][:2])


def first_calls(arguments: list[str]) -> list[Call]:
    """The first call of every function of the package in a command, in order."""
    seen: set[CodeType] = set()
    calls: list[Call] = []

    def note(frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event != "call" or code in seen or not code.co_filename.startswith(SOURCE):
            return
        seen.add(code)
        if not code.co_name.startswith("<"):
            calls.append(Call(code.co_filename.removeprefix(SOURCE), code.co_qualname))

    from punchcard.cli import main

    sys.setprofile(note)
    try:
        with redirect_stdout(io.TextIOWrapper(io.BytesIO())), redirect_stderr(io.TextIOWrapper(io.BytesIO())):
            main(arguments, prog_name="punchcard")
    except SystemExit as end:
        if end.code:
            raise
    finally:
        sys.setprofile(None)
    return calls


def switches(calls: list[Call]) -> int:
    """How often the folder changes from one call to the next."""
    return sum(one.folder != other.folder for one, other in pairwise(calls))


def show(arguments: list[str]) -> None:
    """The figures, and with `--list` the calls."""
    listed = "--list" in arguments
    given = [word for word in arguments if word != "--list"] or ["run", str(ROOT / PROGRAM)]
    calls = first_calls(given)
    folder = None
    for call in calls if listed else ():
        print(f"{call.folder or '.':<28}" if call.folder != folder else " " * 28, call.file.rpartition("/")[2], call.name)
        folder = call.folder
    print(f"{switches(calls)} switches of the folder, {len(calls)} functions, "
          f"{len({call.file for call in calls})} files")


if __name__ == "__main__":
    show(sys.argv[1:])
