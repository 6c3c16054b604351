"""Compiled code on disk: it is executed as it is found, so only what this user's own punchcard wrote is looked at.

The folder is the user's own, and no other user can write to it, or replace it: every folder above it is the
user's or root's, and others can write there only where a sticky bit keeps them from renaming what is not theirs, as in
/tmp. A file in it is the user's own as well, a regular one, and others cannot write to it. Its first bytes are a checksum
of the rest, and the rest begins with the key that it was compiled for, so that neither a damaged file nor one under
another's name is executed. A checksum keeps out damage, not forgers: who has the user's rights can write any file of
theirs, this package included. When in doubt, code is compiled again, and a note says why.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

from punchcard.errors import StorageError
from punchcard.files import PART, read_at_most, write_atomic

MOST_BYTES = 1 << 28
"""The folder is kept below this size; the files that were used least recently go first."""
LARGEST = MOST_BYTES
"""More bytes than any file has."""
OLD_PART = 3600.0
"""Seconds after which a file that was never finished has no writer any more."""
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
ROOT = 0


Notes: TypeAlias = dict[str, Any]
"""What is written beside code, as JSON."""


def folder() -> Path:
    """Where code is kept: `PUNCHCARD_CACHE`, or punchcard in the user's cache folder."""
    named, base = os.environ.get("PUNCHCARD_CACHE"), os.environ.get("XDG_CACHE_HOME", "")
    if named:
        return Path(named).absolute()
    if os.path.isabs(base):  # the XDG rules: any other is ignored
        return Path(base) / "punchcard"
    try:
        return Path.home().absolute() / ".cache" / "punchcard"
    except RuntimeError:
        raise StorageError("there is no home folder: PUNCHCARD_CACHE can name a folder") from None


def find(key: str) -> tuple[Notes, bytes] | str | None:
    """What was noted with the code of this key, and the code; why it is not used; or None where nothing is kept."""
    try:
        where = folder()
        _check_folder(where)
        return _read(where / f"{key}.code", key)
    except StorageError as why:
        return f"cached code is not used: {why}"
    except OSError as error:  # most often, it is not there
        return f"cached code is not used: a file in {str(where)!r} is a link" if error.errno == errno.ELOOP else None


def keep(key: str, notes: Notes, code: bytes) -> None:
    """Keep code. A folder that cannot be written to, or is not to be trusted, only costs time."""
    header = json.dumps({"key": key, "notes": notes}).encode()
    rest = len(header).to_bytes(8, "little") + header + code
    with suppress(OSError, StorageError):
        path = folder() / f"{key}.code"
        try:
            _check_folder(path.parent)
        except FileNotFoundError:
            _make(path.parent)
            _check_folder(path.parent)
        path.unlink(missing_ok=True)  # what is there is not to be trusted, and neither is its mode
        write_atomic(path, hashlib.sha256(rest).digest() + rest, durable=False, mode=0o600)
        _trim(path.parent)


def _make(where: Path) -> None:
    """A folder, and what is missing above it, for the user alone."""
    for missing in reversed([path for path in (where, *where.parents) if not path.exists()]):
        missing.mkdir(mode=0o700, exist_ok=True)


def _check_folder(where: Path) -> None:
    """A link is checked as well as where it leads to: who owns it decides that."""
    real = Path(os.path.realpath(where))
    for path in (*reversed(where.parents), *reversed(real.parents), where, real):
        status = os.lstat(path)
        own = path in (where, real)
        if status.st_uid not in ((os.geteuid(),) if own else (os.geteuid(), ROOT)):
            raise StorageError(f"{str(path)!r} is another user's folder")
        if status.st_mode & OTHERS_WRITE and not stat.S_ISLNK(status.st_mode) and (own or not status.st_mode & stat.S_ISVTX):
            raise StorageError(f"others can write to {str(path)!r}: chmod go-w forbids it")


def _read(path: Path, key: str) -> tuple[Notes, bytes]:
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW), "rb") as file:
        status = os.fstat(file.fileno())
        if status.st_uid != os.geteuid() or status.st_mode & OTHERS_WRITE or not stat.S_ISREG(status.st_mode):
            raise StorageError(f"a file in {str(path.parent)!r} is another user's, or others can write to it")
        data = read_at_most(file, LARGEST)
    rest, size = data[32:], int.from_bytes(data[32:40], "little")
    try:
        header = json.loads(rest[8 : 8 + size])
        if hashlib.sha256(rest).digest() != data[:32] or header["key"] != key:
            raise ValueError
        notes = dict(header["notes"])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise StorageError(f"a file in {str(path.parent)!r} is not as it was written") from None
    with suppress(OSError):  # it may be on a disk that can only be read
        os.utime(path)
    return notes, rest[8 + size :]


def _trim(where: Path) -> None:
    files = []
    for file in where.iterdir():
        with suppress(OSError):
            status = file.stat()
            if file.suffix == ".code":
                files.append((status.st_mtime, status.st_size, file))
            elif file.suffix == PART and status.st_mtime < time.time() - OLD_PART:
                file.unlink()
    total = sum(size for _, size, _ in files)
    for _, size, file in sorted(files):
        if total <= MOST_BYTES:
            break
        file.unlink(missing_ok=True)
        total -= size
