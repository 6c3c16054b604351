"""An export as a folder: the checks that all targets share. The table of targets needs no NumPy; this does."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from punchcard.arguments import checked
from punchcard.errors import PunchcardError, StorageError, did_you_mean
from punchcard.export.targets import require
from punchcard.lazy import import_name
from punchcard.machines.base import Machine


@checked
def write(to: str, machine: Machine[Any, Any], folder: str | Path, program: object = None, **options: Any) -> list[str]:
    """Export a machine, and a program's card with it, to a folder. The names of the files that are there afterwards.

    A folder that is not there is made; files of the same name are written over, and others are left alone. `options` are
    those of the target, in the table of `targets.py`.
    """
    target = require(to)
    known = {option.name: option for option in target.options}
    for name, value in options.items():
        if name not in known:
            raise PunchcardError(f"{name}={value!r} is not an option of an export to {to}{did_you_mean(name, known)}")
        known[name].check(value)
    if program is not None:
        machine.check_type(program)
        machine.check_fits(program)
    machine.layout.check_room(" for an export")
    place = made(folder)
    import_name(target.write)(machine, program, place, **options)
    return sorted(path.name for path in place.iterdir())


def made(folder: str | Path) -> Path:
    """The folder, made if it is not there."""
    try:
        if not str(folder):
            raise FileNotFoundError(2, os.strerror(2))
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise StorageError(f"{str(folder)!r} is a file: an export is a folder, choose another name") from None
    except (OSError, ValueError) as error:
        raise StorageError(f"cannot make the folder {str(folder)!r}: {getattr(error, 'strerror', None) or error}") from None
    return place
