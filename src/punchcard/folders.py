"""Writing folders for others: atomically, and never over other files.

The files are written to a folder beside its place, which gets the name when all of them are there. A folder that is there
already is filled only if it is empty, if an earlier export made it, or if the caller says so; then files of the same name
are replaced, one by one, after the last of them was written. Others are left alone.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from punchcard.errors import PunchcardError, StorageError

README = "README.md"
MARK = "Written by Punchcard"
"""What the page of every folder says."""
OVERWRITE = "--overwrite"


def check_folder(folder: str | Path, *, overwrite: bool = False) -> None:
    """Refuse a place where no folder can be written, or that has other files; nothing is changed."""
    with naming(folder):
        place = _place(folder)
        if place.exists() and not place.is_dir():
            raise StorageError(f"{str(folder)!r} is a file: what is written is a folder, choose another name")
        if overwrite or not place.is_dir() or not any(place.iterdir()) or _is_ours(place):
            return
    raise StorageError(f"{str(folder)!r} has files already, and they are not of an export: choose another folder, or add "
                       f"{OVERWRITE} to replace files of the same name")


@contextmanager
def atomic_folder(folder: str | Path, *, overwrite: bool = False, sometimes: Collection[str] = ()) -> Iterator[Path]:
    """A folder of the same name to write files to. Where the caller fails, nothing is left of them.

    `sometimes` are files that not every export writes: those of an earlier one go, if they are not written again.
    """
    check_folder(folder, overwrite=overwrite)
    with naming(folder):
        place = _place(folder)
        place.parent.mkdir(parents=True, exist_ok=True)
        beside = place.with_name(f".{place.name[:100]}.{os.getpid()}.part")
        part = beside / place.name
        shutil.rmtree(beside, ignore_errors=True)
        part.mkdir(parents=True)
    try:
        yield part
        with naming(folder):
            _open_to_readers(part)
            if place.is_dir():
                for name in sometimes if _is_ours(place) else ():
                    if not (part / name).exists():
                        (place / name).unlink(missing_ok=True)
                _moved(part, place)
            else:
                part.rename(place)
    except StorageError as error:  # the caller knows no folder beside the one that it named
        raise StorageError(str(error).replace(str(part), str(folder))) from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)


@contextmanager
def naming(folder: str | Path) -> Iterator[None]:
    """What goes wrong while a folder is made is an error that names it."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise StorageError(f"cannot make the folder {str(folder)!r}: {getattr(error, 'strerror', None) or error}") from None


@contextmanager
def opening(folder: str | Path, what: str, error: type[PunchcardError] = StorageError) -> Iterator[None]:
    """Whatever a library raises that opens a folder is one error that names it: of a damaged one they raise anything."""
    try:
        yield
    except (PunchcardError, MemoryError):
        raise
    except Exception as found:
        why = " ".join(str(found).split())
        name = "" if isinstance(found, OSError | ValueError) else f"{type(found).__name__}: "
        raise error(f"{str(folder)!r} {what}: {name}{why}") from None


def _place(folder: str | Path) -> Path:
    """Where it is, links followed."""
    if not str(folder):
        raise FileNotFoundError(2, os.strerror(2))
    return Path(os.path.realpath(folder))


def _is_ours(place: Path) -> bool:
    page = place / README
    return page.is_file() and MARK in page.read_text(errors="replace")


def _open_to_readers(part: Path) -> None:
    """Some libraries write files that only their owner may read: give all the rights that a new file has here."""
    probe = part / ".mode"
    probe.touch()
    mode = probe.stat().st_mode & 0o777
    probe.unlink()
    for path in part.rglob("*"):
        if path.is_file() and path.stat().st_mode & 0o777 == 0o600:
            path.chmod(mode)


def _moved(part: Path, place: Path) -> None:
    """Bring all files to a folder that is there."""
    for path in sorted(part.rglob("*")):
        target = place / path.relative_to(part)
        if path.is_dir():
            target.mkdir(exist_ok=True)
        else:
            os.replace(path, target)


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Work in a folder that no other process works in; where one does, this is refused. It ends with the process."""
    place = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StorageError(f"another process is at work in {str(folder)!r}: wait for its end, or choose another folder"
                               ) from None
        except OSError:
            pass  # a file system that has no locks
        yield
    finally:
        os.close(place)
