"""Safetensors files that somebody forged, and sealed again, or of which single bits are turned."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from punchcard.errors import StorageError
from punchcard.machines import storage


def forge(path: Path, key: str, change: Mapping[str, Any], tensors: Mapping[str, Any] | None = None) -> None:
    """Change what a file says, and some of its tensors, and seal it again; `...` takes a field or a tensor away."""
    description, content = storage.read(path, key, "file")
    said = {name: value for name, value in {**description, **change}.items() if value is not ... and name != "seal"}
    held = {name: tensor for name, tensor in {**content, **(tensors or {})}.items() if tensor is not ...}
    storage.write(path, held, key, said)


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
