"""Reading and writing files: writes are atomic, and files that others made are read up to a limit.

Bytes are written beside their place under another name, brought to the disk, and only then given the name: even when the
machine goes down there is the old file or the new one. A link is followed. What is not a regular file, such as a pipe or
a device, is written to as it is.

A file is read up to a limit, whatever it is: a device that never ends, or many gigabytes, are refused with the limit.
What a library opens by its name is checked first, by the same rules.
"""

from __future__ import annotations

import errno
import glob
import json
import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from punchcard.errors import PunchcardError, StorageError

PART = ".part"
TEXT_LIMIT = 64 << 20
"""The most bytes of a program or a table."""
TENSORS_LIMIT = 4 << 30
"""The most bytes of a saved machine, a model or a checkpoint."""


def read_limited(path: str | Path, what: str, *, limit: int = TEXT_LIMIT,
                 error: type[PunchcardError] = StorageError) -> bytes:
    """The bytes of a file, at most `limit`; anything else is an `error` that names the path and `what` it should be."""
    with _reading(path, what, error), open(path, "rb") as file:
        if os.fstat(file.fileno()).st_size > limit:
            raise error(_too_long(path, what, limit))
        data = read_at_most(file, limit + 1)
    if len(data) > limit:
        raise error(_too_long(path, what, limit))
    return data


def read_at_most(file: BinaryIO, limit: int) -> bytes:
    """At most `limit` bytes of a file or a pipe. Python's own `read(limit)` asks for the memory of all of them first."""
    parts = [file.read(min(limit, os.fstat(file.fileno()).st_size))]
    left = limit - len(parts[0])
    while left and (part := file.read(min(left, 1 << 20))):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def read_json(path: str | Path, what: str) -> dict[str, Any]:
    """The object in a JSON file; anything else is a `StorageError` that names the path and `what` it should be."""
    try:
        found = json.loads(read_limited(path, what, error=StorageError))
    except (ValueError, RecursionError) as reason:
        raise StorageError(f"{str(path)!r} is not JSON: {reason}; it should be a {what}") from None
    if not isinstance(found, dict):
        raise StorageError(f"{str(path)!r} is not a JSON object: it should be a {what}")
    return found


def check_readable(path: str | Path, what: str, *, limit: int = TENSORS_LIMIT) -> None:
    """Refuse what a library cannot read by its name: a regular file that may be read, of at most `limit` bytes."""
    with _reading(path, what, StorageError):
        status = os.stat(path)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError
        if not stat.S_ISREG(status.st_mode):
            raise _not_regular(path, what)
        os.close(os.open(path, os.O_RDONLY))
        if status.st_size > limit:
            raise StorageError(_too_long(path, what, limit))


@contextmanager
def _reading(path: str | Path, what: str, error: type[PunchcardError]) -> Iterator[None]:
    """What goes wrong with a path that is read is an `error` that says what is true of it."""
    try:
        yield
    except FileNotFoundError:
        raise error(f"no such file: {str(path)!r}") from None
    except IsADirectoryError:
        raise error(f"{str(path)!r} is a folder, not a {what}") from None
    except (OSError, ValueError) as reason:
        raise error(f"cannot read {str(path)!r}: {getattr(reason, 'strerror', None) or reason}") from None


def _too_long(path: str | Path, what: str, limit: int) -> str:
    size = f"{limit >> 20} MiB" if limit >= 1 << 20 else f"{limit} bytes"
    return f"{str(path)!r} has more than {size}, the most that a {what} may have"


def write_atomic(path: str | Path, data: bytes | str, *, durable: bool = True, mode: int = 0o666) -> None:
    """Write bytes, or text as UTF-8. Without `durable` the call does not wait for the disk: for what can be made again.

    `mode` is a new file's, less what the process masks; a file that is replaced keeps its own.
    """
    content = data.encode() if isinstance(data, str) else data
    with _named(path) as target:
        before = target.stat() if target.exists() else None
        if before is not None and not stat.S_ISREG(before.st_mode):
            target.write_bytes(content)
            return
        part = target.with_name(f"{_prefix(target)}{os.getpid()}-{threading.get_native_id()}{PART}")
        try:
            part.unlink(missing_ok=True)  # of a process that was killed, whose numbers are ours now
            # A file of its own: a link that somebody has put there is not followed.
            with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
                file.write(content)
            if before is not None:
                part.chmod(stat.S_IMODE(before.st_mode))
            if durable:
                _to_disk(part)
            os.replace(part, target)
            if durable:
                _to_disk(target.parent)
        finally:
            part.unlink(missing_ok=True)


def check_writable(path: str | Path) -> None:
    """Refuse a place that cannot be written to, before the work whose result belongs there; nothing is changed."""
    with _named(path) as target:
        if not target.parent.is_dir():
            reason = errno.ENOTDIR if target.parent.exists() else errno.ENOENT
            raise OSError(reason, os.strerror(reason))
        if not os.access(target if target.exists() else target.parent, os.W_OK):
            raise OSError(errno.EACCES, os.strerror(errno.EACCES))


def check_regular(path: str | Path, what: str) -> None:
    """Refuse a pipe or a device as the place of what is written again and again."""
    with _named(path) as target:
        if target.exists() and not target.is_file():
            raise _not_regular(path, what)


def _not_regular(path: str | Path, what: str) -> StorageError:
    return StorageError(f"{str(path)!r} is a pipe or a device, not a {what}: it must be a regular file")


def check_apart(output: str | Path | None, *others: str | Path | None) -> None:
    """Refuse to write over a regular file that the same command reads or writes otherwise."""
    for other in others:
        if output is None or other is None or not os.path.isfile(other):
            continue
        with _named(output) as target:
            if target.exists() and os.path.samefile(target, other):
                raise StorageError(f"{str(output)!r} would be written over {str(other)!r}, which this command uses: choose "
                                   "another file for one of them")


@contextmanager
def _named(path: str | Path) -> Iterator[Path]:
    """Where a path leads to, links followed; what goes wrong there is an error that names the path."""
    try:
        target = Path(os.path.realpath(path))
        if target.is_symlink():
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        if not str(path) or target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        yield target
    except (OSError, ValueError) as error:
        raise StorageError(f"cannot write {str(path)!r}: {getattr(error, 'strerror', None) or error}") from None


def _prefix(target: Path) -> str:
    """How the names of a file's parts begin; a long name is cut, so that the part's is not too long."""
    return f".{target.name[:100]}."


def sweep(path: str | Path) -> None:
    """Remove what processes that have ended left behind when they were killed while they wrote this file."""
    with _named(path) as target:
        for part in target.parent.glob(f"{glob.escape(_prefix(target))}*{PART}"):
            writer = part.name.removeprefix(_prefix(target)).removesuffix(PART).partition("-")[0]
            if writer.isdecimal() and not _is_alive(int(writer)):
                with suppress(OSError):  # somebody else's, in a folder that we share
                    part.unlink()


def _to_disk(path: Path) -> None:
    """Wait until a file's content, or a folder's list of names, is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True
