"""The reference: a page for the names of `punchcard`, and one for those of the machine kit, by where they come from.

MkDocs fills in the docstrings. A name that is added to `__all__` is on the page without more.
"""

from __future__ import annotations

from collections import defaultdict

import punchcard
from punchcard.machines import toolkit as kit

TITLES = {
    "punchcard.api": "Load, build, run, check",
    "punchcard.machines": "Machines and programs",
    "punchcard.linalg": "Linear algebra",
    "punchcard.learning": "Learning",
    "punchcard.calculator": "The calculator",
    "punchcard.python": "Python functions as programs",
    "punchcard.arrays": "Functions of array programs",
    "punchcard.viewer": "Seeing",
    "punchcard.proof": "Proving",
    "punchcard.export": "Into other tools",
    "punchcard.language_models": "Inside language models",
    "punchcard.sweep": "Many runs",
    "punchcard.ground_truth": "Models whose mechanism is known",
    "punchcard.trace": "Watching",
    "punchcard.transformer": "The model, formulas and precision",
    "punchcard.card": "Cards and layouts",
    "punchcard.primitives": "Heads and formulas that recur",
    "punchcard.cli": "The command line",
    "punchcard.errors": "Errors",
    "punchcard.budget": "Limits",
    "punchcard.engines": "Controls of a run",
}
"""By the beginning of a module's name, in the order of the page."""
OTHER = "Types"


def title_of(module: str) -> str:
    return next((title for start, title in TITLES.items() if f"{module}.".startswith(f"{start}.")), OTHER)


def page(title: str, about: str, package: str, homes: dict[str, str]) -> str:
    groups: dict[str, list[str]] = defaultdict(list)
    for name, module in sorted(homes.items(), key=lambda home: (home[0][0].isupper(), home[0])):  # calls first
        groups[title_of(module)].append(name)
    text = [f"# {title}", "", about]
    for group in [group for group in (*TITLES.values(), OTHER) if group in groups]:
        text += ["", f"## {group}", ""]
        text += [f"::: {package}.{name}\n" for name in groups[group]]
    return "\n".join(text)


def pages() -> dict[str, str]:
    calls = {name: punchcard.HOMES[name].partition(":")[0] for name in punchcard.__all__}
    parts = {name: getattr(getattr(kit, name), "__module__", "punchcard.primitives") for name in kit.__all__}
    about = "All names of `import punchcard`. What a call refuses, it refuses with a `PunchcardError` in one line."
    written_with = ("All that [a machine of your own](../your-own-machine.md) is written with: "
                    "`from punchcard.machines import toolkit as kit`.")
    return {"reference/punchcard.md": page("The calls", about, "punchcard", calls),
            "reference/toolkit.md": page("The machine kit", written_with, "punchcard.machines.toolkit", parts)}
