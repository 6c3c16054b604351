"""Files of values that somebody else made: damaged, forged, elsewhere, or not files at all."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import numpy as np
import pytest

from punchcard.errors import ProgramError, SourceError
from punchcard.machines.fleq.functions import Shape
from punchcard.machines.fleq.text.assembler import assemble
from punchcard.machines.fleq.text.value_files import read_values


def npy(header: str | bytes, values: bytes = bytes(16), version: int = 1) -> bytes:
    """A .npy file, whatever its header says."""
    content = header.encode() if isinstance(header, str) else header
    return b"\x93NUMPY" + bytes((version, 0)) + len(content).to_bytes(2 if version == 1 else 4, "little") + content + values


HEADER = "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }\n"


@pytest.mark.parametrize(("content", "message"), [
    (npy("{'descr': '<f8', 'fortran_order': False, 'shape': (('"), "is not a .npy file with an array of numbers"),
    (npy("{'descr': [], 'fortran_order': False, 'shape': (2,), }"), "is not a .npy file with an array of numbers"),
    (npy("(" * 5000), "is not a .npy file with an array of numbers"),
    (npy("-" * 60000 + "1", version=2), "is not a .npy file with an array of numbers"),
    (npy(HEADER.replace("2,", "2**64,")), "is not a .npy file with an array of numbers"),
    (npy(HEADER.replace("<f8", "<f3")), "holds '<f3', which is not a number format"),
    (npy(HEADER.replace("<f8", "|O")), "holds object values: 'v' needs real numbers"),
    (npy(HEADER.replace("2,", "461168601842738790,")), "it is 461168601842738790: 'v' is 2x1"),
    (npy(HEADER.replace("2,", "461168601842738790, 40")), "it is 461168601842738790x40: 'v' is 2x1"),
    (npy(HEADER.replace("2,", "2," * 5)), r"it is 2x2x2x2x\.\.\.: 'v' is 2x1"),
    (npy(HEADER.replace("2,", "9" * 19)), "is not a .npy file with an array of numbers"),
    (npy(HEADER, bytes(15)), "it has 15 bytes of values: 2x1 of float64 are 16"),
    (npy(HEADER, bytes(17)), "it has 17 bytes of values"),
    (npy(HEADER)[:40], "is not a .npy file with an array of numbers"),
    (b"\x93NUMPY", "is not a .npy file with an array of numbers"),
    (npy(HEADER, version=3)[:11], "is not a .npy file with an array of numbers"),
])
def test_damaged_and_forged_arrays(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "v.npy").write_bytes(content)
    with pytest.raises(SourceError, match=message):
        assemble(".data\nv vector 2 file(v.npy)\n.code\nhalt", folder=tmp_path)


def test_any_bytes_are_an_array_or_refused(tmp_path: Path) -> None:
    """Every seventh bit of a header turned, one after the other; and formats 2 and 3, and other orders, are read."""
    whole, path = npy(HEADER), tmp_path / "v.npy"
    for bit in range(0, 8 * (len(whole) - 16), 7):
        path.write_bytes(whole[: bit // 8] + bytes([whole[bit // 8] ^ 1 << bit % 8]) + whole[bit // 8 + 1 :])
        with contextlib.suppress(ProgramError):
            assert read_values("v.npy", tmp_path, "v", Shape(2, 1)).tolist() == [[0], [0]]
    matrix = np.array([[1, 2], [3, 4]], dtype=">i4")
    for version in ((1, 0), (2, 0), (3, 0)):
        for array in (matrix, matrix.T):
            with path.open("wb") as file:
                np.lib.format.write_array(file, array, version)
            found = assemble(".data\nA matrix 2x2 file(v.npy)\n.code\nhalt", folder=tmp_path).values["A"]
            assert np.array_equal(found, array)


def test_values_stay_in_the_folder(tmp_path: Path) -> None:
    """Links are followed within the folder only; a pipe or a device is not read, and not waited for."""
    inside, text = tmp_path / "inside", ".data\nv vector 2 file({})\n.code\nhalt"
    inside.mkdir()
    (tmp_path / "secret.csv").write_text("1\n2")
    (inside / "good.csv").write_text("1\n2")
    (inside / "out.csv").symlink_to(tmp_path / "secret.csv")
    (inside / "up").symlink_to(tmp_path)
    (inside / "near.csv").symlink_to("good.csv")
    (inside / "zero.npy").symlink_to("/dev/zero")
    (inside / "round.csv").symlink_to("round.csv")
    os.mkfifo(inside / "pipe.csv")
    os.mkfifo(inside / "pipe.npy")
    (tmp_path / "link").symlink_to(inside)
    for name, message in (
        ("out.csv", "a link leads out of the folder"), ("up/secret.csv", "a link leads out of the folder"),
        ("zero.npy", "a link leads out of the folder"), ("round.csv", "Too many levels of symbolic links"),
        ("pipe.csv", "a pipe or a device"), ("pipe.npy", "a pipe or a device"),
        ("n" * 300 + ".csv", "has 310 characters: the most is 255"),
    ):
        with pytest.raises(SourceError, match=message):
            assemble(text.format(name), folder=inside)
    for folder in (inside, tmp_path / "link"):
        assert assemble(text.format("near.csv"), folder=folder).values["v"].tolist() == [[1], [2]]
