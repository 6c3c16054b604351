"""The one way to write a file and the one way to read one: whole, within limits, with errors that name the path."""

from __future__ import annotations

import os
import re
import stat
import tracemalloc
from pathlib import Path
from threading import Thread, get_native_id

import pytest

import punchcard
from punchcard.errors import ProgramError, StorageError
from punchcard.files import PART, check_readable, check_writable, read_limited, sweep, write_atomic


def test_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    write_atomic(path, "one")
    path.chmod(0o640)

    def fail(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", fail)
        with pytest.raises(StorageError, match=r"cannot write '.*file': No space left on device"):
            write_atomic(path, b"two")
    assert path.read_text() == "one"
    write_atomic(path, b"two", durable=False)
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("two", 0o640)
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_links_and_what_is_not_a_file(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    write_atomic(tmp_path / "link", "text")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "text"
    write_atomic("/dev/null", "nowhere")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    write_atomic(tmp_path / ("n" * 250), "a long name")


@pytest.mark.parametrize(("name", "reason"), [
    ("loop", "Too many levels of symbolic links"), ("x" * 300, "File name too long"), ("a\0b", "embedded null byte"),
    ("no/folder", "No such file or directory"), ("file/x", "Not a directory"), ("", "Is a directory"),
])
def test_what_cannot_be_written_is_named(tmp_path: Path, name: str, reason: str) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "file").write_text("")
    path = f"{tmp_path}/{name}" if name else ""
    with pytest.raises(StorageError, match=reason):
        write_atomic(path, "text")
    with pytest.raises(StorageError, match=reason):
        check_writable(path)


def test_reading_has_a_limit(tmp_path: Path) -> None:
    """A file, a device that never ends and a pipe are read up to the limit; beyond it they are refused."""
    (tmp_path / "short").write_bytes(b"12345")
    assert read_limited(tmp_path / "short", "program", limit=5) == b"12345"
    for path in (tmp_path / "short", "/dev/zero"):
        with pytest.raises(ProgramError, match=f"'{path}' has more than 4 bytes, the most that a program may have"):
            read_limited(path, "program", limit=4, error=ProgramError)
    os.mkfifo(tmp_path / "pipe")
    writer = Thread(target=lambda: (tmp_path / "pipe").write_bytes(b"12345"))
    writer.start()
    assert read_limited(tmp_path / "pipe", "program", limit=5) == b"12345"
    writer.join()


def test_a_short_file_takes_little_memory(tmp_path: Path) -> None:
    """Not as much as the limit, which a process with little memory may not have."""
    (tmp_path / "short").write_bytes(b"12345")
    tracemalloc.start()
    assert read_limited(tmp_path / "short", "program") == b"12345"
    assert tracemalloc.get_traced_memory()[1] < 1 << 22
    tracemalloc.stop()


@pytest.mark.parametrize(("name", "reason"), [
    ("none", "no such file: '{}'"), (".", "'{}' is a folder, not a model"),
    ("a" * 300, "cannot read '{}': File name too long"), ("a\0b", "cannot read {!r}: embedded null byte")])
def test_what_cannot_be_read_is_named(tmp_path: Path, name: str, reason: str) -> None:
    path = f"{tmp_path}/{name}"
    for read in (read_limited, check_readable):
        with pytest.raises(StorageError, match=re.escape(reason.format(path))):
            read(path, "model")


def test_what_a_library_opens_is_a_regular_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe would wait for a writer, a device may never end; a file that may not be read is not a missing one."""
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/zero"):
        with pytest.raises(StorageError, match=f"'{path}' is a pipe or a device, not a model: it must be a regular file"):
            check_readable(path, "model")
    (tmp_path / "file").write_bytes(b"12345")
    check_readable(tmp_path / "file", "model", limit=5)
    with pytest.raises(StorageError, match="has more than 4 bytes, the most that a model may have"):
        check_readable(tmp_path / "file", "model", limit=4)

    def refuse(path: Path, flags: int) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)  # these tests may run as root, who may read everything
    with pytest.raises(StorageError, match=r"cannot read '.*file': Permission denied"):
        check_readable(tmp_path / "file", "model")


def test_a_link_in_the_place_of_a_part_is_not_followed(tmp_path: Path) -> None:
    """Names of parts can be guessed; in a folder that others can write to, one may lead to another file."""
    (tmp_path / "precious").write_text("mine")
    part = tmp_path / f".file.{os.getpid()}-{get_native_id()}{PART}"
    part.symlink_to(tmp_path / "precious")
    write_atomic(tmp_path / "file", "text", mode=0o600)
    assert ((tmp_path / "precious").read_text(), (tmp_path / "file").read_text()) == ("mine", "text")
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o600


def test_sweeping_names_the_path_and_leaves_what_it_may_not_remove(tmp_path: Path) -> None:
    (tmp_path / ".file.4194305.part").mkdir()  # no process has such a number, and nobody unlinks a folder
    sweep(tmp_path / "file")
    assert (tmp_path / ".file.4194305.part").exists()
    with pytest.raises(StorageError, match="embedded null byte"):
        sweep("a\0b")


def test_machines_go_through_what_is_not_a_file(tmp_path: Path) -> None:
    """A pipe stays a pipe, and its reader gets the bytes; a link stays a link, for a checkpoint too; so does a device."""
    machine = punchcard.SubleqMachine(word_bits=4, memory=1, instructions=1)
    machine.save(tmp_path / "plain")
    os.mkfifo(tmp_path / "pipe")
    got: list[bytes] = []
    reader = Thread(target=lambda: got.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    machine.save(tmp_path / "pipe")
    reader.join()
    assert got == [(tmp_path / "plain").read_bytes()]
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    (tmp_path / "link").symlink_to("target")
    (tmp_path / "device").symlink_to("/dev/null")
    program = punchcard.assemble(".data\nx 1\n.code\nhalt\n")
    punchcard.run(program, checkpoint=tmp_path / "link", engine="dense")
    with pytest.raises(StorageError, match="not a checkpoint: it must be a regular file"):
        punchcard.run(program, checkpoint=tmp_path / "device", engine="dense")
    machine.save(tmp_path / "device")
    assert all((tmp_path / name).is_symlink() for name in ("link", "device"))
    assert (tmp_path / "target").stat().st_size > 0
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
