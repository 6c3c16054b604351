"""Single bits of a file turned, one after the other: which files are still accepted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from punchcard.errors import StorageError


def accepted_flips(path: Path, load: Callable[[Path], object], *, every: int = 1) -> list[tuple[int, object]]:
    """The bits, every so many, whose turning `load` does not see, and what it gives then; the file is left as it was."""
    whole, found = path.read_bytes(), list[tuple[int, object]]()
    with path.open("r+b") as file:
        def put(place: int, value: int) -> None:
            file.seek(place)
            file.write(bytes((value,)))
            file.flush()

        for bit in range(0, 8 * len(whole), every):
            put(bit // 8, whole[bit // 8] ^ 1 << bit % 8)
            try:
                found.append((bit, load(path)))
            except StorageError:
                pass
            finally:
                put(bit // 8, whole[bit // 8])
    return found
