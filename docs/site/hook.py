"""What the site has beyond the pages of docs/, made when MkDocs builds it (mkdocs.yml).

The pages of docs/ are read in the repository too, so they link to files beside docs/. Here such a link leads to a page that
shows the file.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT))

from docs.site import notebooks, reference, views  # noqa: E402

from punchcard.viewer.playground import playground_html  # noqa: E402

OUTSIDE = re.compile(r"(?<=\]\()\.\./([^)#\s]+)")
LANGUAGES = {".py": "python", ".c": "c"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    made: dict[str, str | bytes] = {"changelog.md": changelog(), **reference.pages(), **notebooks.pages(), **views.files()}
    made["views/playground.html"] = playground_html()  # playground.html is the page of docs/playground.md
    made["extra.css"] = (ROOT / "docs" / "site" / "extra.css").read_text()
    for page in ROOT.glob("docs/*.md"):
        made |= {place_of(name): shown(name) for name in OUTSIDE.findall(page.read_text()) if name != "CHANGELOG.md"}
    for name, content in made.items():
        files.append(File.generated(config, name, content=content))
    return files


def on_page_markdown(markdown: str, page: Any, config: MkDocsConfig, files: Files) -> str:
    """Links out of docs/ lead into the site; a comment that names a view becomes the view."""
    if not (ROOT / "docs" / page.file.src_uri).exists():
        return markdown  # made here
    if views.MARK.search(markdown):
        page.meta["hide"] = ["navigation", "toc"]  # a view is wide
    elif "\n## " not in markdown:
        page.meta["hide"] = ["toc"]  # nothing to list, and its table is wide
    return views.put_in(OUTSIDE.sub(lambda found: place_of(found[1]), markdown))


def place_of(name: str) -> str:
    """Where the site shows a file of the repository."""
    return {"CHANGELOG.md": "changelog.md", "README.md": "index.md"}.get(name, f"source/{name}.md")


def shown(name: str) -> str:
    """A page with a file of the repository."""
    path = ROOT / name
    return f"# {name}\n\n````{LANGUAGES.get(path.suffix, 'text')}\n{path.read_text()}\n````\n"


def changelog() -> str:
    return (ROOT / "CHANGELOG.md").read_text().replace("](docs/", "](")
