"""The report: every section measured at its smallest setting, and the page as the kept figures say."""

from __future__ import annotations

import importlib.util
import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import torch
from benchmarks import fleq_errors
from benchmarks.report import __main__ as command
from benchmarks.report import blocks, certificates, loops, page
from benchmarks.report.section import Shown, short, within

from punchcard.machines.fleq.functions import KNOWN
from punchcard.machines.registry import built_in
from tests.cases import soaked

NAMES = tuple(page.SECTIONS)
PICTURES = {"blocks": {"size"}, "constants": {"constants", "range-terms"}, "loops": {"loops"}, "sizes": {"sizes"},
            "shapes": {"widths"}, "speed": {"speed"}, "slips": set(),
            "sweeps": {"noise"}}


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def figures(one_thread: None) -> dict[str, Any]:
    """All sections at their smallest setting, as they would be kept."""
    found = {name: section.measured(True, lambda text: None) for name, section in page.SECTIONS.items()}
    kept: dict[str, Any] = json.loads(json.dumps(found))
    return kept


def numbers(value: Any) -> Iterator[float]:
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from numbers(item)
    elif isinstance(value, float):
        yield value


@pytest.mark.parametrize("name", [soaked(name) if name == "blocks" else name for name in NAMES])
def test_a_section_measures_and_shows(figures: dict[str, Any], name: str) -> None:
    assert all(map(math.isfinite, numbers(figures[name])))
    shown = page.SECTIONS[name].shown(figures[name])
    assert shown.title
    assert shown.finding.endswith(".")
    assert any("\n|" in f"\n{part}" for part in shown.parts), "a section has a table"
    assert set(shown.pictures) == PICTURES[name]
    for picture, svg in shown.pictures.items():
        assert ElementTree.fromstring(svg).tag.endswith("svg")
        assert "nan" not in svg
        assert any(f"(pictures/report-{picture}.svg)" in part for part in shown.parts)


def test_errors_are_within_their_bounds(figures: dict[str, Any]) -> None:
    for line in figures["blocks"]["lines"]:
        for dtype, errors in line["errors"].items():
            assert list(errors) == list(built_in().kind("fleq").designs), "designs come from the registry"
            assert all(error <= line["bounds"][dtype] for error in errors.values()), line
    assert not any(count for by_design in figures["blocks"]["pointers"].values() for count in by_design.values())
    for runs in figures["loops"].values():
        assert all(error <= t * run["bound"] for run in runs.values() for t, error in run["points"])


def test_an_error_beyond_its_bound_is_seen(figures: dict[str, Any]) -> None:
    wrong = json.loads(json.dumps(figures["blocks"]))
    wrong["lines"][0]["errors"]["float64"]["paper"] = 1.0
    shown = blocks.shown(wrong)
    assert "**1.0e+0**" in "".join(shown.parts)
    assert "1 of " in shown.finding
    assert (within(1e-9, 1e-8), short(0.0)) == ("1.0e-9", "0")


def test_every_function_has_a_block_in_the_table() -> None:
    assert {case.function for case in fleq_errors.CASES} >= set(KNOWN)


def test_growth_is_the_power_of_the_loops() -> None:
    for power in (0.0, 0.5, 1.0, 2.0):
        found = loops.growth([[t, 1e-9 * t**power] for t in (1, 10, 100, 1000, 10000)])
        assert found == pytest.approx(power)


@pytest.mark.skipif(importlib.util.find_spec("z3") is None, reason="z3, the extra `proof`, is not installed")
def test_the_smallest_machine_has_a_certificate(figures: dict[str, Any]) -> None:
    (found,) = figures["sizes"]["certificates"]
    assert found["claims"] > 10
    assert len(found["digest"]) == 64


def test_a_proof_that_takes_too_long_is_given_up() -> None:
    job = "subleq", {"design": "one-layer", "precision": "float64", "word_bits": 40, "memory": 4, "instructions": 4}
    assert list(certificates.proven([job], 1)) == [(job, {"none": "not within 1 s"})]


# The page


def test_the_page_is_what_the_kept_figures_say(tmp_path: Path) -> None:
    """docs/report.md and its pictures were not edited, and no section is missing."""
    (tmp_path / "report").mkdir()
    for name in NAMES:
        (tmp_path / "report" / f"{name}.json").write_bytes((page.DOCS / "report" / f"{name}.json").read_bytes())
    assert page.draw(tmp_path) == []
    made = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*.svg"))
    assert made == sorted(path.relative_to(page.DOCS) for path in page.DOCS.glob("pictures/report-*.svg"))
    for path in (Path("report.md"), *made):
        assert (tmp_path / path).read_text() == (page.DOCS / path).read_text(), f"{path}: python -m benchmarks.report --draw"


def run(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> None:
    monkeypatch.setattr(sys, "argv", ["report", *map(str, arguments)])
    command.main()


def test_what_is_interrupted_leaves_what_was_finished(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str], one_thread: None
) -> None:
    class Stopped:
        def measured(self, quick: bool, say: Any) -> dict[str, Any]:
            raise KeyboardInterrupt

        def shown(self, figures: dict[str, Any]) -> Shown:
            return Shown("Speed", "never.")

    monkeypatch.setitem(page.SECTIONS, "speed", Stopped())
    with pytest.raises(SystemExit) as ended:
        run(monkeypatch, "slips", "speed", "--quick", "--folder", tmp_path)
    assert ended.value.code == 130
    assert "the sections that were finished are kept" in capsys.readouterr().err
    text = (tmp_path / "report.md").read_text()
    assert "## Slips of the paper, run" in text
    assert "## Speed" not in text
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == ["report.md", "slips.json"]


def test_a_section_that_there_is_not_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run(monkeypatch, "sped")
    assert "sped is not a section: there are blocks, constants" in capsys.readouterr().err
