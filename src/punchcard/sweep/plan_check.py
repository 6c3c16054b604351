"""What is wrong with a sweep before a job is made: names that nothing has, and values that no machine takes.

A size that is too small for a program is not wrong: such a job is refused when it is made, and the others continue.
"""

from __future__ import annotations

from math import isfinite
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from punchcard.card.formats import FORMATS
from punchcard.engines import ENGINES
from punchcard.errors import PunchcardError, SweepError, did_you_mean
from punchcard.machines.kind import Kind, Language
from punchcard.machines.registry import Registry
from punchcard.sweep.job import ProgramFile
from punchcard.sweep.trial import registry_of

if TYPE_CHECKING:
    from punchcard.sweep.plan import Builds, Sweep

NUMBERS = ("temperature", "gate")
TEXTS = {"dtype": tuple(FORMATS)}


def check_sweep(sweep: Sweep) -> None:
    """Refuse a sweep with a misspelt name, repeating it and what may be meant."""
    for engine in sweep.engines:
        _known("engine", engine, tuple(ENGINES))
    for build in sweep.builds:
        registry = registry_of(build.machines)
        for program in build.programs:
            with TemporaryDirectory() as folder:
                file = Path(folder) / program.name
                file.write_bytes(program.data)
                _check_build(build, registry, program, file)


def _check_build(build: Builds, registry: Registry, program: ProgramFile, file: Path) -> None:
    kind, language = registry.language_of(file, {name: values[0] for name, values in build.lists.items()})
    options = {option.name: option for option in (*kind.options, *language.options)}
    known = ["design", "dtype", "input", *NUMBERS, *options]
    for name, values in build.lists.items():
        if name not in known:
            raise SweepError(f"{name} = {_text(values)} in a [[build]] of {program.name}{did_you_mean(name, known)}: there "
                             f"are program, set, machines, {', '.join(known)}")
        for value in values:
            if name == "design":
                _known(name, value, tuple(kind.designs))
            elif name in TEXTS:
                _known(name, value, TEXTS[name])
            elif name in options:
                options[name].check(value)
            elif name == "input" and not isinstance(value, str):
                raise SweepError(f"input = {value!r}: it must be a text")
            elif name in NUMBERS and (isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value)):
                raise SweepError(f"{name} = {value!r}: it must be a finite number")
    _check_values(build, registry, kind, language, file)


def _check_values(build: Builds, registry: Registry, kind: Kind, language: Language, file: Path) -> None:
    """First values by name, on the program with the first of all options."""
    if not any(build.values):
        return
    try:
        loaded, *_ = registry.load_with(file, {name: values[0] for name, values in build.lists.items()
                                               if name in {option.name for option in (*kind.options, *language.options)}})
    except PunchcardError:
        return  # it is refused when its jobs are made, with these words
    for values in build.values:
        loaded.with_values(dict(values))


def _known(name: str, value: object, known: tuple[str, ...]) -> None:
    if value not in known:
        text = value if isinstance(value, str) else ""
        raise SweepError(f"{name} = {value!r}{did_you_mean(text, known)}: there are {', '.join(known)}")


def _text(values: list[Any]) -> str:
    return repr(values[0] if len(values) == 1 else values)
