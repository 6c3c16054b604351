"""The one way to write a file: whole or not at all, links followed, modes kept, and an error that names the path."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from punchcard.errors import StorageError
from punchcard.files import check_writable, write_whole


def test_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    write_whole(path, "one")
    path.chmod(0o640)

    def fail(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", fail)
        with pytest.raises(StorageError, match=r"cannot write '.*file': No space left on device"):
            write_whole(path, b"two")
    assert path.read_text() == "one"
    write_whole(path, b"two", durable=False)
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("two", 0o640)
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_links_and_what_is_not_a_file(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    write_whole(tmp_path / "link", "text")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "text"
    write_whole("/dev/null", "nowhere")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    write_whole(tmp_path / ("n" * 250), "a long name")


@pytest.mark.parametrize(("name", "reason"), [
    ("loop", "Too many levels of symbolic links"), ("x" * 300, "File name too long"), ("a\0b", "embedded null byte"),
    ("no/folder", "No such file or directory"), ("file/x", "Not a directory"), ("", "Is a directory"),
])
def test_what_cannot_be_written_is_named(tmp_path: Path, name: str, reason: str) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "file").write_text("")
    path = f"{tmp_path}/{name}" if name else ""
    with pytest.raises(StorageError, match=reason):
        write_whole(path, "text")
    with pytest.raises(StorageError, match=reason):
        check_writable(path)
