"""The command `playground`: a page on which to write a program and see its run, as one file that needs nothing else."""

from __future__ import annotations

from pathlib import Path
from tempfile import gettempdir

import click

from punchcard.cli.terminal import out
from punchcard.files import check_writable


@click.command()
@click.option("--html", metavar="FILE", help="Write the page to this file, and do not open it.  [default: a temporary file]")
@click.option("--no-open", is_flag=True, help="Do not open a browser.")
def playground(html: str | None, no_open: bool) -> None:
    """Write programs on a page, and see them run on a transformer.

    SUBLEQ, asq, Brainfuck and Turing machines, and a gallery. The page is one file.
    The transformer runs in the page: there is no server, and no network.
    """
    path = Path(gettempdir()) / "punchcard-playground.html" if html is None else Path(html)
    check_writable(str(path))
    from punchcard.viewer.playground import write_playground

    size = write_playground(path)
    out(f"{path}: {size:,} bytes")
    if not no_open and html is None:
        import webbrowser

        webbrowser.open(path.resolve().as_uri())
