"""What a release needs: one version, links that work away from the repository, and a source archive whose tests run."""

from __future__ import annotations

import re
import subprocess
import tomllib

import punchcard
from tests.cases import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
README = (ROOT / "README.md").read_text()


def test_the_version_is_in_one_place() -> None:
    assert "version" in PROJECT["dynamic"]
    assert f"\nversion: {punchcard.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert re.search(rf"^## {re.escape(punchcard.__version__)}\b", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)


def test_links_of_the_readme_work_on_a_package_index() -> None:
    """All are absolute, and those into the repository name a file that is there."""
    home = PROJECT["urls"]["Repository"]
    raw = home.replace("github.com", "raw.githubusercontent.com")
    targets = re.findall(r"\]\(([^)]+)\)", README) + re.findall(r"^\[[^]]+\]: (\S+)$", README, re.MULTILINE)
    assert len(targets) > 30
    for target in targets:
        assert target.startswith(("https://", "#")), target
        inside = re.fullmatch(rf"(?:{re.escape(home)}/(?:blob|tree)|{re.escape(raw)})/main/([^#]+)", target)
        if inside is not None:
            assert (ROOT / inside[1]).exists(), target
    assert set(re.findall(r"\]\[([^]]+)\]", README)) == set(re.findall(r"^\[([^]]+)\]: ", README, re.MULTILINE))


def test_the_source_archive_has_what_tests_read() -> None:
    """Every tracked file is in it but those of the forge; `make test` runs in the unpacked archive."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:  # the unpacked archive itself
        return
    manifest = (ROOT / "MANIFEST.in").read_text()
    folders, files = re.findall(r"^graft (\w+)$", manifest, re.MULTILINE), manifest.split()
    for name in listed.stdout.splitlines():
        top = name.split("/")[0]
        assert top in (*folders, "src", ".github", ".ci", ".gitignore", "pyproject.toml", "README.md", "MANIFEST.in") or (
            name in files), f"{name} is not in MANIFEST.in"
