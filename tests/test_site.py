"""The pages as a site: what can be seen without building it; the whole strict build is in `make docs`, and in the soak."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from docs.site import reference, views

import punchcard
from punchcard.machines import toolkit as kit
from tests.cases import ROOT

SETTINGS = (ROOT / "mkdocs.yml").read_text()
PAGES = re.findall(r"([\w/-]+\.md)$", SETTINGS, re.MULTILINE)


def test_every_page_is_in_the_navigation_once() -> None:
    made = {f"notebooks/{path.stem}.md" for path in (ROOT / "examples" / "notebooks").glob("*.ipynb")}
    made |= {"reference/punchcard.md", "reference/toolkit.md", "changelog.md"}
    written = {path.name for path in (ROOT / "docs").glob("*.md")}
    assert sorted(PAGES) == sorted(written | made), "give it a place in the nav of mkdocs.yml"


def test_the_reference_has_every_public_name() -> None:
    pages = reference.pages()
    for package, names in (("punchcard", punchcard.__all__), ("punchcard.machines.toolkit", kit.__all__)):
        text = pages[f"reference/{package.split('.')[-1]}.md"]
        assert sorted(re.findall(rf"^::: {re.escape(package)}\.(\w+)$", text, re.MULTILINE)) == sorted(names)


def test_every_view_has_a_place_and_a_command() -> None:
    """A page names each view where it stands, and says below how one opens it oneself."""
    text = "".join((ROOT / "docs" / page).read_text() for page in ("views.md", "lesson.md"))
    assert sorted(views.MARK.findall(text)) == sorted(views.SHOWN)
    for command in views.SHOWN.values():
        assert f"    punchcard view {' '.join(command)}\n" in text
    assert "<iframe" in views.put_in(text)
    assert not views.MARK.search(views.put_in(text))


def test_aligned_words_of_a_docstring_keep_their_columns() -> None:
    docstrings = pytest.importorskip("docs.site.docstrings")
    text = "A machine.\n\nname   of it\nsizes  what it is built to\n\nTwo lines\nof plain words."
    assert docstrings.shown(text) == text.replace("name   ", "    name   ").replace("sizes  ", "    sizes  ")


def test_nothing_is_asked_of_another_host() -> None:
    """The theme would ask for fonts, and its offline plugin for a script."""
    assert "font: false" in SETTINGS
    assert "offline" not in SETTINGS.split("plugins:")[1]
    assert "://" not in SETTINGS


def test_what_is_made_takes_no_pages_place() -> None:
    """A file that the hook makes and a page of docs/ would be written to one place: the later one wins, silently."""
    made = re.findall(r'made\["([^"]+)"\]', (ROOT / "docs" / "site" / "hook.py").read_text())
    assert "views/playground.html" in made
    assert not {path.with_suffix(".html").name for path in (ROOT / "docs").glob("*.md")} & set(made)
    assert 'href="views/playground.html"' in (ROOT / "docs" / "playground.md").read_text()


@pytest.mark.soak
def test_the_site_builds(tmp_path: Path) -> None:
    """Strictly: no broken link, no page beside the navigation, no notebook that fails; nothing from another host."""
    pytest.importorskip("mkdocs")
    pytest.importorskip("nbclient")
    done = subprocess.run([sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path], cwd=ROOT,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert 'id="punchcard-data"' in (tmp_path / "views" / "playground.html").read_text()
    for page in tmp_path.rglob("*.html"):
        if page.parent.name != "views":
            loaded = re.findall(r"<(?:script|link|img|iframe)[^>]*?(?:src|href)=\"?([^\"\s>]+)", page.read_text())
            assert not [url for url in loaded if re.match(r"(?:https?:)?//", url)], page.name
