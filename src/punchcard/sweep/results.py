"""The results of a sweep in a folder: Parquet files, each written whole or not at all.

    sweep.json                what the sweep is
    parts/KEY.parquet         the rows of some jobs; KEY is made of their keys

A row is there once its part is there. Parts are only ever added, so a sweep that is killed loses what was being made, and
nothing else.
"""

from __future__ import annotations

import io
import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from punchcard.errors import StorageError, SweepError
from punchcard.export.targets import missing_of
from punchcard.files import read_json, write_atomic
from punchcard.folders import naming
from punchcard.sweep.job import SweepJob, content_key

if TYPE_CHECKING:
    import pandas
    import pyarrow

ABOUT, PARTS, SUFFIX = "sweep.json", "parts", ".parquet"
FORMAT = 1
COLUMNS: Mapping[str, str] = {
    "key": "string", "number": "int64", "program": "string", "values": "string", "input": "string", "machine": "string",
    "design": "string", "dtype": "string", "options": "string", "temperature": "float64", "gate": "float64",
    "change": "string", "amount": "float64", "to": "string", "layer": "int64", "tensor": "string", "where": "string",
    "bits": "string", "seed": "int64", "engine": "string", "status": "string", "message": "string", "changed": "string",
    "layers": "int64", "right_loops": "int64", "unchanged_error": "float64", "loops": "int64",
    "first_wrong_loop": "int64", "wrong_entries": "int64", "drift": "float64", "right": "bool", "engine_used": "string",
    "notes": "string", "seconds": "float64",
    "build_seconds": "float64", "worker": "string"}
"""The columns of the table and their types."""
TIMES = ("seconds", "build_seconds", "worker")
"""Those that are others each time a job is made."""
REQUIRED = ("key", "number", "values", "options", "change", "status")
"""Those that every row has."""


def require_pyarrow() -> None:
    """Refuse where pyarrow is not installed."""
    if missing_of(["pyarrow"]):
        raise SweepError("a sweep writes its results with pyarrow, which is not installed: pip install 'punchcard[sweep]'")


def row_of(job: SweepJob, measured: Mapping[str, Any]) -> dict[str, Any]:
    """The whole row of a job."""
    setup, change = job.setup, job.change
    return {
        "key": job.key, "number": job.number, "program": setup.program.name, "values": json.dumps(dict(setup.values)),
        "input": setup.input, "options": json.dumps(dict(setup.options)), "temperature": setup.temperature,
        "gate": setup.gate, "design": setup.options.get("design"), "dtype": setup.options.get("dtype"),
        "change": change.kind,
        "amount": change.amount, "to": change.to, "layer": change.layer,
        "tensor": change.tensor, "where": change.where, "bits": change.bits, "seed": job.seed, "engine": job.engine,
        **measured}


class Results:
    """The results in a folder, as many as there are."""

    def __init__(self, folder: str | Path) -> None:
        require_pyarrow()
        self.folder = Path(folder)
        self.about: dict[str, Any] = self._read_about()

    @classmethod
    def begin(cls, folder: str | Path, about: Mapping[str, Any], *, resume: bool) -> Results:
        """The folder of a sweep, made if it is not there. One with results is refused, unless they are to be completed."""
        require_pyarrow()
        place = Path(folder)
        text = json.dumps({"format": FORMAT, **about}, indent=1) + "\n"
        begun = os.path.exists(place / ABOUT)
        if begun and not resume:
            raise SweepError(f"{str(place)!r} already has results of a sweep: continue with --resume, or choose another "
                             "folder")
        with naming(place / PARTS):
            (place / PARTS).mkdir(parents=True, exist_ok=True)
        if not begun:
            write_atomic(place / ABOUT, text)
        found = cls(place)
        if found.about.get("key") != about["key"]:
            raise SweepError(f"{str(place)!r} has results of another sweep, {found.about.get('name')!r} with "
                             f"{found.about.get('jobs')} jobs (its file, or a program, was another): choose another folder")
        return found

    def _read_about(self) -> dict[str, Any]:
        path = self.folder / ABOUT
        found = read_json(path, "description of a sweep")
        names, jobs = (found.get("name"), found.get("key")), found.get("jobs")
        if found.get("format") != FORMAT or not all(isinstance(name, str) for name in names) or not (
                isinstance(jobs, int) and jobs >= 0):
            raise StorageError(f"{str(path)!r} is not a description of a sweep as this version writes it")
        return found

    def add(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Keep some rows: all of them or, where the disk is full, none."""
        import pyarrow
        from pyarrow import parquet

        buffer = io.BytesIO()
        parquet.write_table(pyarrow.Table.from_pylist([dict(row) for row in rows], schema=_schema()), buffer,
                            compression="zstd")
        name = content_key([row["key"] for row in rows])
        write_atomic(self.folder / PARTS / f"{name}{SUFFIX}", buffer.getvalue())

    def keys(self) -> set[str]:
        """The keys of the jobs that are made."""
        return {key for part in self._parts() for key in self._part(part, ["key"])["key"].to_pylist()}

    def table(self) -> pyarrow.Table:
        """All rows in the order of the sweep, each job once."""
        import pyarrow

        parts = [self._part(part, None) for part in self._parts()]
        whole = pyarrow.concat_tables(parts) if parts else _schema().empty_table()
        first: dict[str, int] = {}
        for place, key in enumerate(whole["key"].to_pylist()):
            first.setdefault(key, place)
        return whole.take(pyarrow.array(sorted(first.values()), pyarrow.int64())).sort_by("number")

    def pandas(self) -> pandas.DataFrame:
        """The table for pandas, with a column for each option of the machines."""
        frame = self.table().to_pandas()
        for column in ("options", "values"):
            given = [self._object(column, text) for text in frame[column]]
            for name in dict.fromkeys(name for each in given for name in each):
                if name not in frame:
                    frame[name] = [each.get(name) for each in given]
        return frame

    def refusals(self) -> dict[str, int]:
        """Why jobs could not be built or run, and how many for each reason, the most frequent first."""
        table = self.table()
        pairs = zip(table["status"].to_pylist(), table["message"].to_pylist(), strict=True)
        return dict(Counter(message for status, message in pairs if status == "refused").most_common())

    @cached_property
    def jobs(self) -> int:
        """How many jobs the sweep has."""
        return int(self.about["jobs"])

    def __len__(self) -> int:
        return len(self.keys())

    def __repr__(self) -> str:
        return f"<Results of the sweep {self.about.get('name')!r}: {len(self)} of {self.jobs} jobs>"

    def _object(self, column: str, text: str) -> dict[str, Any]:
        """What a row has in a column of JSON objects."""
        with suppress(ValueError, RecursionError):
            if isinstance(found := json.loads(text), dict):
                return found
        raise StorageError(f"a part in {str(self.folder / PARTS)!r} is not of a sweep: a row has {text[:60]!r} for "
                           f"{column}, which should be a JSON object: delete the part, and continue with --resume")

    def _parts(self) -> list[Path]:
        return sorted((self.folder / PARTS).glob(f"*{SUFFIX}"))

    def _part(self, path: Path, columns: Sequence[str] | None) -> pyarrow.Table:
        import pyarrow
        from pyarrow import parquet

        try:
            found = parquet.read_table(path, columns=columns, partitioning=None,
                                       **({} if columns else {"schema": _schema()}))
            for name in REQUIRED:
                if name in found.column_names and found[name].null_count:
                    raise ValueError(f"a row has no {name}")
            return found
        except (pyarrow.ArrowException, OSError, ValueError) as error:
            why = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise StorageError(f"{str(path)!r} is not a part of a sweep's results ({why}): delete it, and continue with "
                               "--resume") from None


def _schema() -> pyarrow.Schema:
    import pyarrow

    return pyarrow.schema([(name, pyarrow.type_for_alias(kind)) for name, kind in COLUMNS.items()])
