"""docs/report.md from the figures of all sections: it is written whole, and pictures before the page that shows them."""

from __future__ import annotations

import json
import os
import platform
from importlib.metadata import version
from pathlib import Path

from benchmarks.report import blocks, constants, loops, shapes, sizes, slips, speed, sweeps
from benchmarks.report.section import Figures, Section, Shown
from punchcard.files import read_limited, write_atomic

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
SECTIONS: dict[str, Section] = {
    "blocks": blocks, "constants": constants, "loops": loops, "sizes": sizes, "shapes": shapes, "speed": speed,
    "slips": slips, "sweeps": sweeps}
"""In the order of the page."""
HEAD = """# The report: errors, sizes and speeds, measured

Everything on this page comes from runs: `make report` measures it again and writes the page, in about {minutes} of
CPU. A section alone is `python -m benchmarks.report NAME`, as is written below its heading. Without measuring,
`python -m benchmarks.report --draw` writes the page again from the figures in `docs/report/`. Random numbers have fixed
seeds, so errors and sizes come out the same on another machine, up to the order in which its library adds. Times do not.
"""


def measured_on() -> dict[str, str]:
    """The machine and what matters of its software."""
    cpu = next((line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")),
               platform.machine())
    return {"processor": cpu, "cores": str(os.cpu_count()), "python": platform.python_version(),
            **{name: version(name) for name in ("torch", "numpy")}}


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []


def keep(name: str, figures: Figures, folder: Path) -> None:
    """The figures of a section, for `draw`."""
    (folder / "report").mkdir(exist_ok=True)
    write_atomic(folder / "report" / f"{name}.json", json.dumps(figures, indent=1) + "\n")


def kept(name: str, folder: Path) -> Figures | None:
    """The figures of a section that was measured before."""
    path = folder / "report" / f"{name}.json"
    found: Figures | None = json.loads(read_limited(path, "file of figures")) if path.exists() else None
    return found


def draw(folder: Path = DOCS) -> list[str]:
    """Write page and pictures from the figures that there are; the names of sections that were never measured."""
    found = {name: figures for name in SECTIONS if (figures := kept(name, folder)) is not None}
    shown = {name: SECTIONS[name].shown(figures["figures"]) for name, figures in found.items()}
    (folder / "pictures").mkdir(exist_ok=True)
    for section in shown.values():
        for name, svg in section.pictures.items():
            write_atomic(folder / "pictures" / f"report-{name}.svg", svg)
    write_atomic(folder / "report.md", page(shown, found))
    drawn = {f"report-{name}.svg" for section in shown.values() for name in section.pictures}
    for old in (folder / "pictures").glob("report-*.svg"):
        if old.name not in drawn:
            old.unlink()
    return [name for name in SECTIONS if name not in found]


def page(shown: dict[str, Shown], found: dict[str, Figures]) -> str:
    seconds = sum(figures["seconds"] for figures in found.values())
    parts = [HEAD.format(minutes=f"{max(1, round(seconds / 60))} minutes")]
    parts.append("\n".join(["| section | in one sentence |", "|---|---|",
                            *(f"| [{s.title}](#{anchor(s.title)}) | {s.finding} |" for s in shown.values())]) + "\n")
    for name, section in shown.items():
        parts.append(f"## {section.title}\n\n*`python -m benchmarks.report {name}`, {_took(found[name]['seconds'])}*\n")
        parts += [f"{part}\n" for part in section.parts]
    machines = {tuple(figures["on"].items()) for figures in found.values()}
    told = "; ".join(", ".join(f"{name} {value}" for name, value in on) for on in sorted(machines))
    parts.append(f"## Where it was measured\n\n{told}.\n")
    return "\n".join(parts)


def anchor(title: str) -> str:
    """As the site and GitHub name a heading."""
    return "".join(c for c in title.lower().replace(" ", "-") if c.isalnum() or c == "-")


def _took(seconds: float) -> str:
    return f"{seconds:.0f} s of CPU"
