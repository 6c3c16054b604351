"""A sweep: lists of what is built, changed and run. The product of the lists is the set of jobs.

    sweep = Sweep.load("noise.toml")
    sweep = Sweep("noise", [Builds("examples/multiply.subleq", design=["two-layer", "one-layer"])],
                  [Changes("weight-noise", amount=[1e-9, 1e-6])], seeds=5)
    sweep.run("folder").table()

Everything in `Builds` and `Changes` is a value or a list of values. A file has the same names: see docs/sweep.md.
"""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from punchcard.errors import PunchcardError, SweepError, did_you_mean
from punchcard.files import read_limited
from punchcard.sweep.changes import FIELDS, check
from punchcard.sweep.job import Change, ProgramFile, Setup, SweepJob, content_key

if TYPE_CHECKING:
    from punchcard.sweep.results import Results

MOST_JOBS = 10_000_000
OWN = ("input", "temperature", "gate")
"""Lists of `Builds` that are not options of a machine."""


class Builds:
    """Programs, and machines for them.

    programs   files
    machines   "module:Class" or "file.py:Class" of machines of your own
    values     first values by name, or a list of such
    lists      options of the machine such as `design`, `dtype`, `word_bits`; `input`, `temperature`, `gate`
    """

    def __init__(self, programs: str | Path | Sequence[str | Path], *, machines: str | Sequence[str] = (),
                 values: Mapping[str, Any] | Sequence[Mapping[str, Any]] = (), folder: str | Path = ".", **lists: Any
                 ) -> None:
        if "precision" in lists:
            raise SweepError(f"precision={lists['precision']!r} of a build: in a sweep its parts have names of their own: "
                             "dtype, temperature and gate")
        place = Path(folder)
        self.programs = [ProgramFile(Path(name).name, read_limited(place / name, "program"))
                         for name in _each("program", programs, str | Path, "a file, or a list of files")]
        self.machines = tuple(str(place / each) if ".py:" in each else each
                              for each in _each("machines", machines, str, "a list of 'module:Class' or 'file.py:Class'"))
        self.values: list[Mapping[str, Any]] = _each("set", values, Mapping, "first values by name, { a = 6 }, or a list of "
                                                     "such") or [{}]
        self.lists = {name: _listed(value) for name, value in lists.items()}
        if not self.programs:
            raise SweepError("program = []: a build needs a file, or a list of files")

    def setups(self) -> Iterable[Setup]:
        """The product of the lists."""
        for program, values, chosen in product(self.programs, self.values, product(*self.lists.values())):
            named = dict(zip(self.lists, chosen, strict=True))
            own = {name: named.pop(name) for name in OWN if name in named}
            yield Setup(program, named, values, machines=self.machines, **own)


class Changes:
    """Changes of one kind: each field of `Change` is a value or a list of values."""

    def __init__(self, kind: str = "none", **lists: Any) -> None:
        known = [field.name for field in fields(Change)][1:]
        for name in lists:
            if name not in known:
                raise SweepError(f"{name} is not a field of a change{did_you_mean(name, known)}: there are "
                                 f"{', '.join(known)}")
            if kind in FIELDS and name not in FIELDS[kind]:
                raise SweepError(f"{name} = {lists[name]!r} of a change of the kind {kind!r}: it does nothing there, leave "
                                 "it out")
        if "amount" in FIELDS.get(kind, ()) and "amount" not in lists:
            raise SweepError(f"a change of the kind {kind!r} has no amount: say how much is changed")
        self.made = [Change(kind, **dict(zip(lists, chosen, strict=True)))
                     for chosen in product(*map(_listed, lists.values()))]
        for change in self.made:
            check(change)


def _each(name: str, given: object, kind: Any, rule: str) -> list[Any]:
    """A value of a kind, or a list of such, as a list."""
    found = [given] if isinstance(given, kind) else given
    if not isinstance(found, list | tuple) or not all(isinstance(each, kind) for each in found):
        raise SweepError(f"{name} = {given!r}: it must be {rule}")
    return list(found)


def _listed(value: object) -> list[Any]:
    found = list(value) if isinstance(value, list | tuple) else [value]
    if not found:
        raise SweepError("an empty list in a sweep: it has no jobs")
    return found


@dataclass
class Sweep:
    """A sweep as a value.

    builds    what is built
    changes   what is changed; default: nothing
    seeds     how many times each change is made, with other random numbers
    loops     the largest number of loops of a run
    engines   the engines that run it; "dense" is the equation, literally
    limit     seconds that a job may take
    """

    name: str
    builds: Sequence[Builds]
    changes: Sequence[Changes] = ()
    seeds: int = 1
    loops: int = 1000
    engines: Sequence[str] = ("dense",)
    limit: float = 300.0

    def __post_init__(self) -> None:
        for name, value in (("seeds", self.seeds), ("loops", self.loops), ("limit", self.limit)):
            if isinstance(value, bool) or not isinstance(value, int if name != "limit" else int | float):
                raise SweepError(f"{name}={value!r} of the sweep {self.name!r}: it must be a number"
                                 f"{'' if name == 'limit' else ' without a point'}")
            if not 0 < value < math.inf:
                raise SweepError(f"{name}={value} of the sweep {self.name!r}: it must be more than 0, and finite")
        if self.seeds > MOST_JOBS:
            raise SweepError(f"seeds={self.seeds} of the sweep {self.name!r}: it has more than {MOST_JOBS:,} jobs")
        if not self.builds:
            raise SweepError(f"the sweep {self.name!r} builds nothing: add [[build]] with a program")

    @cached_property
    def jobs(self) -> list[SweepJob]:
        """All jobs, each once: those of one machine follow each other."""
        found: dict[str, SweepJob] = {}
        changes = [change for some in self.changes for change in some.made] or [Change()]
        for build in self.builds:
            for setup, engine, change, seed in product(build.setups(), self.engines, changes, range(self.seeds)):
                if seed and change.kind in ("none", "rounding"):
                    continue  # nothing random in it
                job = SweepJob(setup, change, seed, self.loops, engine, number=len(found))
                found.setdefault(job.key, job)
                if len(found) > MOST_JOBS:
                    raise SweepError(f"the sweep {self.name!r} has more than {MOST_JOBS:,} jobs: cut a list")
        return list(found.values())

    @property
    def key(self) -> str:
        """A name for the set of jobs."""
        return content_key([job.key for job in self.jobs])

    def run(self, folder: str | Path, *, executor: Executor | None = None, workers: int | None = None,
            ray: str | bool | None = None, resume: bool = False, progress: Callable[..., None] | None = None) -> Results:
        """Make all jobs that the folder does not have yet: see `punchcard.sweep.campaign.run_sweep`."""
        from punchcard.sweep.campaign import run_sweep

        return run_sweep(self, folder, executor=executor, workers=workers, ray=ray, resume=resume, progress=progress)

    @classmethod
    def load(cls, path: str | Path) -> Sweep:
        """A sweep from its file. Programs are found from the file's folder."""
        try:
            found = tomllib.loads(read_limited(path, "sweep").decode())
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise SweepError(f"{str(path)!r} is not a TOML file: {error}") from None
        from punchcard.sweep.plan_check import check_sweep

        try:
            sweep = _of_table(found, Path(path))
            check_sweep(sweep)
            return sweep
        except PunchcardError as error:
            raise SweepError(f"{str(path)!r}: {error}") from None


def _of_table(found: dict[str, Any], path: Path) -> Sweep:
    builds = [_build(table, path.parent) for table in _tables(found, "build")]
    changes = [_change(table) for table in _tables(found, "change")]
    kinds = {"name": str, "seeds": int, "loops": int, "limit": (int, float), "engine": (str, list)}
    for name, value in found.items():
        if name not in kinds:
            raise SweepError(f"unknown name {name!r}{did_you_mean(name, kinds)}: there are build, change, "
                             f"{', '.join(kinds)}")
        if not isinstance(value, kinds[name]) or isinstance(value, bool):  # type: ignore[arg-type]
            raise SweepError(f"{name} = {json.dumps(value, default=str)}: it has the wrong type")
    engines = _listed(found.pop("engine", "dense"))
    return Sweep(**{"name": path.stem, **found}, engines=engines, builds=builds, changes=changes)


def _tables(found: dict[str, Any], name: str) -> list[dict[str, Any]]:
    tables = found.pop(name, [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise SweepError(f"{name} must be a list of tables: write [[{name}]]")
    return tables


def _build(table: dict[str, Any], folder: Path) -> Builds:
    if "program" not in table:
        raise SweepError("a [[build]] has no program: name its file")
    for name, meant in (("programs", "program"), ("values", "set"), ("folder", "program")):
        if name in table:
            raise SweepError(f"{name} = {table[name]!r} in a [[build]]: write {meant}")
    programs, values = table.pop("program"), table.pop("set", [])
    return Builds(programs, values=values, folder=folder, **table)


def _change(table: dict[str, Any]) -> Changes:
    if "kind" not in table:
        raise SweepError("a [[change]] has no kind: see docs/sweep.md")
    if not isinstance(kind := table.pop("kind"), str):
        raise SweepError(f"kind = {kind!r} of a [[change]]: it must be a text; write a [[change]] for each kind")
    return Changes(kind, **table)
