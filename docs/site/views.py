"""The views that are in the pages: files that `punchcard view --html` writes when the site is built.

Each has the model inside, and computes its cards itself: some hundred kilobytes, where recorded cards take megabytes.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parent.parent.parent
SHOWN = {
    "multiply": ["examples/multiply.subleq", "--design", "two-layer", "--bits", "8"],
    "newton": ["examples/newton.fleq"],
    "lesson": ["examples/multiply.subleq"],
    "hello": ["examples/von_neumann/hello.asq", "--memory", "64"],
}
"""By name, what is viewed. A page has `<!-- view: NAME -->` where it stands."""
MARK = re.compile(r"<!-- view: (\w+) -->")


def files() -> dict[str, str | bytes]:
    made: dict[str, str | bytes] = {}
    with TemporaryDirectory() as folder:
        for name, (file, *options) in SHOWN.items():
            path = Path(folder) / f"{name}.html"
            command = [sys.executable, "-m", "punchcard", "view", str(ROOT / file), *options, "--model", "--html", str(path)]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            made[f"views/{name}.html"] = path.read_bytes()
    return made


def put_in(markdown: str) -> str:
    """The view in place of its mark, and a way to open it alone."""
    return MARK.sub(lambda found: (
        f'<iframe name="{found[1]}" src="views/{found[1]}.html" title="{SHOWN[found[1]][0]}, loop by loop" loading="lazy" '
        'style="width:100%;height:46rem;border:1px solid #8884;border-radius:.4rem"></iframe>\n\n'
        f'<p><a href="views/{found[1]}.html" target="_blank">Open it alone</a></p>'), markdown)
