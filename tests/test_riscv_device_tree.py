"""The device tree: the blob by its structure, and by `dtc` where it is installed."""

from __future__ import annotations

import shutil
import struct
import subprocess
from collections.abc import Iterator

import pytest

from punchcard.errors import ProgramError
from punchcard.machines.riscv.system.device_tree import Node, Value, cells, write
from punchcard.machines.riscv.system.platform import device_tree

needs_dtc = pytest.mark.skipif(shutil.which("dtc") is None, reason="there is no dtc, the compiler of device trees")


def tokens(blob: bytes) -> Iterator[tuple[str, bytes]]:
    """What a reader of the format finds: (path of a node or property, value)."""
    magic, size, structure, strings, reserved, *versions, strings_size, structure_size = struct.unpack(">10I", blob[:40])
    assert (magic, size, versions) == (0xD00DFEED, len(blob), [17, 16, 0])
    assert blob[reserved : reserved + 16] == bytes(16)
    assert (reserved % 8, structure % 4, strings) == (0, 0, structure + structure_size)
    assert strings + strings_size == size
    at, path = structure, list[str]()
    while True:
        (token,) = struct.unpack(">I", blob[at : at + 4])
        at += 4
        if token == 1:
            end = blob.index(b"\0", at)
            path.append(blob[at:end].decode())
            at = (end + 4) // 4 * 4
            yield "/".join(path) + "/", b""
        elif token == 2:
            path.pop()
        elif token == 3:
            length, name = struct.unpack(">2I", blob[at : at + 8])
            text = blob[strings + name : blob.index(b"\0", strings + name)].decode()
            yield "/".join([*path, text]), blob[at + 8 : at + 8 + length]
            at += 8 + (length + 3) // 4 * 4
        else:
            assert token == 9
            assert not path
            assert at == structure + structure_size
            return


def test_nodes_and_properties_come_back() -> None:
    tree = Node("", {"#address-cells": 2}, [
        Node("a@10", {"reg": [*cells(0x123456789A), 7], "flag": True, "no": False, "names": ["one", "three"]},
             [Node("b", {})]),
        Node("c", {"text": "x", "reg": 1}),
    ])
    assert list(tokens(write(tree))) == [
        ("/", b""), ("/#address-cells", b"\0\0\0\2"), ("/a@10/", b""),
        ("/a@10/reg", bytes.fromhex("00000012 3456789a 00000007")),
        ("/a@10/flag", b""), ("/a@10/names", b"one\0three\0"), ("/a@10/b/", b""), ("/c/", b""), ("/c/text", b"x\0"),
        ("/c/reg", b"\0\0\0\1")]


@pytest.mark.parametrize(("value", "message"), [
    (1 << 32, "a cell is 0 to"), ([-1], "a cell is 0 to"), ("a\0b", "zero byte"),
])
def test_what_a_property_cannot_hold(value: Value, message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        write(Node("", {"reg": value}))


def test_the_platform() -> None:
    found = dict(tokens(device_tree(1 << 24, 0x80000000, multiply=False, command_line="quiet")))
    assert found["/chosen/bootargs"] == b"quiet\0"
    assert found["/memory@80000000/reg"] == bytes.fromhex("00000000 80000000 00000000 01000000")
    assert found["/cpus/cpu@0/riscv,isa"] == b"rv32ia\0"
    assert dict(tokens(device_tree(1 << 24)))["/cpus/cpu@0/riscv,isa"] == b"rv32ima\0"
    assert found["/soc/uart@10000000/compatible"].split(b"\0")[0] == b"ns16550a"
    phandle = found["/soc/syscon@11100000/phandle"]
    assert found["/poweroff/regmap"] == found["/reboot/regmap"] == phandle
    assert found["/poweroff/value"] == b"\0\0\x55\x55"
    assert found["/reboot/value"] == b"\0\0\x77\x77"
    interrupts = found["/cpus/cpu@0/interrupt-controller/phandle"]
    assert found["/soc/clint@11000000/interrupts-extended"] == interrupts + b"\0\0\0\3" + interrupts + b"\0\0\0\7"


@needs_dtc
def test_dtc_reads_it_and_writes_the_same() -> None:
    """Text and back: the same nodes and properties, and no complaint."""
    blob = device_tree(1 << 25, command_line='console=ttyS0 init="/bin/sh -x" ä')
    text = subprocess.run(["dtc", "-I", "dtb", "-O", "dts"], input=blob, capture_output=True, check=True, timeout=20)
    assert b"Warning" not in text.stderr, text.stderr.decode()
    again = subprocess.run(["dtc", "-I", "dts", "-O", "dtb"], input=text.stdout, capture_output=True, check=True, timeout=20)
    assert list(tokens(again.stdout)) == list(tokens(blob))
