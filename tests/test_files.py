"""The one way to write a file and the one way to read one: whole, within limits, with errors that name the path."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from threading import Thread

import pytest

from punchcard.errors import ProgramError, StorageError
from punchcard.files import check_writable, read_whole, write_whole


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


def test_reading_has_a_limit(tmp_path: Path) -> None:
    """A file, a device that never ends and a pipe are read up to the limit; beyond it they are refused."""
    (tmp_path / "short").write_bytes(b"12345")
    assert read_whole(tmp_path / "short", "program", limit=5) == b"12345"
    for path in (tmp_path / "short", "/dev/zero"):
        with pytest.raises(ProgramError, match=f"'{path}' has more than 4 bytes, the most that a program may have"):
            read_whole(path, "program", limit=4, error=ProgramError)
    os.mkfifo(tmp_path / "pipe")
    writer = Thread(target=lambda: (tmp_path / "pipe").write_bytes(b"12345"))
    writer.start()
    assert read_whole(tmp_path / "pipe", "program", limit=5) == b"12345"
    writer.join()


@pytest.mark.parametrize(("name", "reason"), [
    ("none", "no such file: '{}'"), (".", "'{}' is a folder, not a model"),
    ("a" * 300, "cannot read '{}': File name too long"), ("a\0b", "cannot read {!r}: embedded null byte")])
def test_what_cannot_be_read_is_named(tmp_path: Path, name: str, reason: str) -> None:
    path = f"{tmp_path}/{name}"
    with pytest.raises(StorageError, match=re.escape(reason.format(path))):
        read_whole(path, "model")
