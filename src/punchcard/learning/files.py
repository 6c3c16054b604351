"""Files that are written whole or not at all."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from punchcard.errors import StorageError


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """A place to write to, which becomes `path` when the block ends well; else nothing is left of it."""
    target = Path(os.path.realpath(path))
    part = target.with_name(f".{os.getpid()}.part.{target.name}")
    try:
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        yield part
        part.replace(target)
    except OSError as error:
        raise StorageError(f"cannot write {str(path)!r}: {error.strerror or error}") from None
    finally:
        part.unlink(missing_ok=True)


def check_writable(path: str | Path) -> None:
    """Refuse a path that cannot be written, before the work whose result belongs there; nothing is changed."""
    target = Path(os.path.realpath(path))
    folder = target.parent
    reason = None
    if target.is_dir():
        reason = errno.EISDIR
    elif not folder.is_dir():
        reason = errno.ENOENT if not folder.exists() else errno.ENOTDIR
    elif not os.access(folder, os.W_OK):
        reason = errno.EACCES
    if reason is not None:
        raise StorageError(f"cannot write {str(path)!r}: {os.strerror(reason)}")
