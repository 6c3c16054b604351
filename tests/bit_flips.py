"""Single bits of a safetensors file turned, one after the other: which files are still accepted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from punchcard.errors import StorageError


def accepted_flips(path: Path, load: Callable[[Path], object], count: int) -> list[tuple[int, object]]:
    """The bits whose turning `load` does not see, and what it gives then, of so many in the header and in the tensors."""
    whole, found = path.read_bytes(), list[tuple[int, object]]()
    header = 8 * (8 + int.from_bytes(whole[:8], "little"))
    places = {*range(0, header, max(1, header // count)),
              *range(header, 8 * len(whole), max(1, (8 * len(whole) - header) // count))}
    with path.open("r+b") as file:
        def put(place: int, value: int) -> None:
            file.seek(place)
            file.write(bytes((value,)))
            file.flush()

        for bit in sorted(places):
            put(bit // 8, whole[bit // 8] ^ 1 << bit % 8)
            try:
                found.append((bit, load(path)))
            except StorageError:
                pass
            finally:
                put(bit // 8, whole[bit // 8])
    return found
