"""Files of values that somebody else made: damaged, forged, elsewhere, or not files at all."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from punchcard.errors import ProgramError, SourceError
from punchcard.machines.fleq.functions import Shape
from punchcard.machines.fleq.text.assembler import assemble, disassemble
from punchcard.machines.fleq.text.value_files import read_values


def npy(header: str | bytes, values: bytes = bytes(16), version: int = 1) -> bytes:
    """A .npy file, whatever its header says."""
    content = header.encode() if isinstance(header, str) else header
    return b"\x93NUMPY" + bytes((version, 0)) + len(content).to_bytes(2 if version == 1 else 4, "little") + content + values


HEADER = "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }\n"


def test_values_from_files(tmp_path: Path) -> None:
    matrix = np.array([[1.5, -2, 3], [4, 5, 6]])
    np.save(tmp_path / "matrix.npy", matrix)
    np.save(tmp_path / "vector.npy", np.array([1, 2, 3]))
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "matrix-2.csv").write_text("1.5, -2,3\n\n4,5,6e0\n")
    (tmp_path / "row.csv").write_text("1,2,3")
    (tmp_path / "column.csv").write_text("1\n2\n3\n")
    program = assemble("""
        .data
        A matrix 2x3 file(matrix.npy)
        B matrix 2x3 file( below/matrix-2.csv )   # blanks do not count
        u vector 3 file(vector.npy)
        v vector 3 file(row.csv)
        w vector 3 file(column.csv)
        r matrix 1x3 file(row.csv)
        .code
        halt
    """, folder=tmp_path)
    assert np.array_equal(program.values["A"], matrix)
    assert np.array_equal(program.values["B"], matrix)
    for name in "uvw":
        assert program.values[name].tolist() == [[1], [2], [3]]
    assert program.values["r"].tolist() == [[1, 2, 3]]
    assert program.values["u"].dtype == np.float64
    assert assemble(disassemble(program)) == program


NOT_NUMBERS = "is not a .npy file with an array of numbers"


@pytest.mark.parametrize(("name", "content", "message"), [
    ("missing.npy", None, "no such file"),
    ("missing.csv", None, "no such file"),
    ("values.txt", "1,2", r"file\(values.txt\): values are read from .npy and .csv files"),
    ("../v.csv", None, "lies in the folder of the source or below it"),
    ("/v.csv", None, "lies in the folder of the source or below it"),
    ("v.npy", "no array", r"file\(v.npy\): "),
    ("v.npy", "", r"file\(v.npy\): "),
    ("v.csv", "", "holds no values"),
    ("v.csv", "1,x", "line 1 is not a list of numbers separated by commas"),
    ("v.csv", "1\n1_0", "line 2 is not a list of numbers separated by commas"),
    ("v.csv", "1\n\x00", "line 2 is not a list of numbers separated by commas"),
    ("v.csv", "1,2\n3", "line 2 has 1 value, the first has 2"),
    ("v.csv", "1,2,3", r"file\(v.csv\): it is 1x3: 'v' is 2x1"),
    ("v.csv", "1\nnan", "holds NaN or infinity: a value of 'v' must be finite"),
    ("v.npy", np.zeros((2, 2)), r"file\(v.npy\): it is 2x2: 'v' is 2x1"),
    ("v.npy", np.zeros((2, 1, 1)), "is 2x1x1: 'v' is 2x1"),
    ("v.npy", np.float64(3), "is a single number: 'v' is 2x1"),
    ("v.npy", np.array([1, np.inf]), "holds NaN or infinity"),
    ("v.npy", np.array([1j, 2]), "holds complex128 values: 'v' needs real numbers"),
    ("v.npy", np.array(["a", "b"]), "holds <U1 values: 'v' needs real numbers"),
    ("v.npy", np.array([None, {}], dtype=object), r"file\(v.npy\): .*"),
    ("v.csv", "1\n99", "99.0 of 'v' is beyond the range"),
    ("v.npy", npy("{'descr': '<f8', 'fortran_order': False, 'shape': (('"), NOT_NUMBERS),
    ("v.npy", npy("{'descr': [], 'fortran_order': False, 'shape': (2,), }"), NOT_NUMBERS),
    ("v.npy", npy("(" * 5000), NOT_NUMBERS),
    ("v.npy", npy("-" * 60000 + "1", version=2), NOT_NUMBERS),
    ("v.npy", npy(HEADER.replace("2,", "2**64,")), NOT_NUMBERS),
    ("v.npy", npy(HEADER.replace("<f8", "<f3")), "holds '<f3', which is not a number format"),
    ("v.npy", npy(HEADER.replace("<f8", "|O")), "holds object values: 'v' needs real numbers"),
    ("v.npy", npy(HEADER.replace("2,", "461168601842738790,")), "it is 461168601842738790: 'v' is 2x1"),
    ("v.npy", npy(HEADER.replace("2,", "461168601842738790, 40")), "it is 461168601842738790x40: 'v' is 2x1"),
    ("v.npy", npy(HEADER.replace("2,", "2," * 5)), r"it is 2x2x2x2x\.\.\.: 'v' is 2x1"),
    ("v.npy", npy(HEADER.replace("2,", "9" * 19)), NOT_NUMBERS),
    ("v.npy", npy(HEADER, bytes(15)), "it has 15 bytes of values: 2x1 of float64 are 16"),
    ("v.npy", npy(HEADER, bytes(17)), "it has 17 bytes of values"),
    ("v.npy", npy(HEADER)[:40], NOT_NUMBERS),
    ("v.npy", b"\x93NUMPY", NOT_NUMBERS),
    ("v.npy", npy(HEADER, version=3)[:11], NOT_NUMBERS),
])
def test_files_that_are_refused(tmp_path: Path, name: str, content: Any, message: str) -> None:
    """Other shapes, other numbers, no numbers; damaged and forged arrays."""
    if isinstance(content, str | bytes):
        (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
    elif content is not None:
        np.save(tmp_path / name, content)
    with pytest.raises(SourceError, match=message) as caught:
        assemble(f".data\nv vector 2 file({name})\n.code\nhalt", folder=tmp_path)
    assert caught.value.line == 2
    assert "\n" not in str(caught.value)


def test_any_bytes_are_an_array_or_refused(tmp_path: Path) -> None:
    """Every seventh bit of a header turned, one after the other; an archive; formats 2 and 3, and other orders, are read."""
    whole, path = npy(HEADER), tmp_path / "v.npy"
    for bit in range(0, 8 * (len(whole) - 16), 7):
        path.write_bytes(whole[: bit // 8] + bytes([whole[bit // 8] ^ 1 << bit % 8]) + whole[bit // 8 + 1 :])
        with contextlib.suppress(ProgramError):
            assert read_values("v.npy", tmp_path, "v", Shape(2, 1)).tolist() == [[0], [0]]
    with path.open("wb") as file:
        np.savez(file, np.zeros(2))
    with pytest.raises(ProgramError, match=NOT_NUMBERS):
        read_values("v.npy", tmp_path, "v", Shape(2, 1))
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
