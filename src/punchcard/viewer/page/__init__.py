"""The page: a stylesheet and one ES module, joined from small files. It needs no framework and asks no other host.

`page.js` says what the page is given and what it asks for. The server sends `served()`, `module()` and `stylesheet()`. A
file that opens by double click is `document(title, data)`, with the data that `html.py` makes.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from punchcard.errors import printable

PARTS = ("base64", "elements", "decode", "equation", "story", "sources", "geometry", "arrows", "card", "time", "program",
         "heads", "values", "column", "attention", "weights", "code", "inspector", "keys", "view", "source",
         "punching", "subleq", "asq", "brainfuck", "images", "turing", "playground", "page")
"""The files of the module, each after those that it imports."""

_IMPORT = re.compile(r'^import (\{[^}]*\}) from "\./(\w+)\.js";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const) (\w+))", re.MULTILINE)


@cache
def _file(name: str) -> str:
    return resources.files(__name__).joinpath(name).read_text(encoding="utf-8")


@cache
def module() -> str:
    """The whole page as one ES module, which exports `mount(element, source)`.

    Every part but the last becomes a function that is called at once, so that its own names stay its own.
    """
    *parts, last = PARTS
    return "\n".join([*map(_part, parts), _imported(_file(f"{last}.js"))])


def _part(name: str) -> str:
    text = _file(f"{name}.js")
    return (f"const {name}_part = (() => {{\n{_EXPORT.sub('', _imported(text))}"
            f"return {{ {', '.join(_EXPORT.findall(text))} }};\n}})();\n")


def _imported(text: str) -> str:
    return _IMPORT.sub(r"const \1 = \2_part;", text)


def stylesheet() -> str:
    """The styles, all of them below the class `punchcard`, so that a notebook around the page stays as it is."""
    return _file("page.css")


def served() -> str:
    """The document of the server: it asks for /page.css and /page.js, and the module asks for the rest."""
    return _file("page.html")


def escape(text: str) -> str:
    """Text from outside as text of a page: neither markup nor control characters."""
    return html.escape(printable(text, keep="\n\t"))


def still(title: str, body: str, style: str = "") -> str:
    """One file with a page that does not move: the markup of its body, in the colours of the others."""
    own = "#punchcard-still.punchcard { display: block; height: auto; min-height: 100vh; padding: 1.2rem 1.6rem; }"
    return (f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{escape(title)}</title>\n'
            f"<style>\n{stylesheet()}{own}\nbody {{ margin: 0; }}\n{style}</style>\n</head>\n"
            f'<body>\n<main id="punchcard-still" class="punchcard">\n{body}</main>\n</body>\n</html>\n')


def document(title: str, data: Mapping[str, Any]) -> str:
    """One file with everything inside: the page and the data that it shows."""
    # Inside a script element "<" is the one character that could end it.
    inside = json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    scripts = (f'<script type="application/json" id="punchcard-data">{inside}</script>\n'
               f'<script type="module">\n{module()}</script>')
    parts = {
        "<title>Punchcard</title>": f"<title>{escape(title)}</title>",
        '<link rel="stylesheet" href="page.css">': f"<style>\n{stylesheet()}</style>",
        '<script type="module" src="page.js"></script>': scripts,
    }
    text = served()
    for place, content in parts.items():
        text = text.replace(place, content)
    return text
