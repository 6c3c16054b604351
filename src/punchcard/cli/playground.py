"""The command `playground`: a page on which to write a program and see its run, as one file that needs nothing else."""

from __future__ import annotations

from pathlib import Path
from tempfile import mkdtemp

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
    if html is not None:
        check_writable(html)
    from punchcard.viewer.playground import write_playground

    # A name that everybody knows, in a folder for all, may be somebody else's link or page.
    path = Path(mkdtemp(prefix="punchcard-"), "playground.html") if html is None else Path(html)
    size = write_playground(path)
    out(f"{path}: {size:,} bytes")
    if not no_open and html is None:
        import webbrowser

        webbrowser.open(path.resolve().as_uri())
