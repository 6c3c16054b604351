"""Device trees as the flat binary form (DTB, version 17) that a kernel is given. Only writing is needed.

    write(Node("", {"#address-cells": 1}, [Node("memory@80000000", {"device_type": "memory", "reg": [1 << 31, 1 << 24]})]))

A blob is a header, a list of reserved memory (empty here), the structure and the names of properties:

    structure   1 name ... 2 for each node, 3 length name value for each property, and 9 at the end
    numbers     32 bits, the highest byte first; each item begins at a multiple of four
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from punchcard.errors import ProgramError

MAGIC, VERSION, LAST_COMPATIBLE = 0xD00DFEED, 17, 16
HEADER = struct.Struct(">10I")
RESERVED = bytes(16)
"""The end of the list of reserved memory: an address and a size, both 0."""
BEGIN_NODE, END_NODE, PROPERTY, END = (number.to_bytes(4, "big") for number in (1, 2, 3, 9))
CELL = 1 << 32

Value: TypeAlias = bool | int | str | Sequence[int] | Sequence[str]
"""True: a property without a value. Numbers are cells of 32 bits, texts end with a zero byte."""


@dataclass(frozen=True)
class Node:
    """A node: its name, with the address behind an @ where it has one, properties and children. The root has no name."""

    name: str
    properties: Mapping[str, Value]
    children: Sequence[Node] = field(default_factory=tuple)


def write(root: Node) -> bytes:
    """The blob of a tree."""
    names: dict[str, int] = {}
    structure = b"".join((*_structure(root, names), END))
    strings = b"".join(name.encode() + b"\0" for name in names)
    reserved_at = HEADER.size
    structure_at = reserved_at + len(RESERVED)
    strings_at = structure_at + len(structure)
    size = strings_at + len(strings)
    header = HEADER.pack(MAGIC, size, structure_at, strings_at, reserved_at, VERSION, LAST_COMPATIBLE, 0, len(strings),
                         len(structure))
    return header + RESERVED + structure + strings


def cells(number: int) -> list[int]:
    """A number of 64 bits as two cells, the high one first."""
    return [number >> 32, number % CELL]


def _structure(node: Node, names: dict[str, int]) -> Iterator[bytes]:
    """`names` has the places of the properties' names; new ones are added at its end."""
    yield BEGIN_NODE + _padded(_text(node.name, node.name))
    for name, given in node.properties.items():
        if given is False:
            continue
        if name not in names:
            names[name] = sum(len(known.encode()) + 1 for known in names)
        value = _bytes_of(f"{node.name}/{name}", given)
        yield PROPERTY + struct.pack(">2I", len(value), names[name]) + _padded(value)
    for child in node.children:
        yield from _structure(child, names)
    yield END_NODE


def _bytes_of(where: str, value: Value) -> bytes:
    if value is True:
        return b""
    items = [value] if isinstance(value, int | str) else list(value)
    found = bytearray()
    for item in items:
        if isinstance(item, str):
            found += _text(where, item)
        elif isinstance(item, int) and 0 <= item < CELL:
            found += item.to_bytes(4, "big")
        else:
            raise ProgramError(f"device tree: {where} holds {item!r}: a cell is 0 to {CELL - 1}")
    return bytes(found)


def _text(where: str, text: str) -> bytes:
    if "\0" in text:
        raise ProgramError(f"device tree: {where} holds the text {text!r}: it must not have a zero byte")
    return text.encode("utf-8", "surrogateescape") + b"\0"


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)
