"""Folders are written whole or not at all, and never over other files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from punchcard.errors import StorageError
from punchcard.files import write_atomic
from punchcard.folders import MARK, atomic_folder, check_folder
from tests.cases import EXAMPLES
from tests.command_line import assert_refused, invoke


def names(place: Path) -> list[str]:
    return sorted(path.name for path in place.iterdir())


def test_a_new_folder_is_there_when_it_is_whole(tmp_path: Path) -> None:
    with atomic_folder(tmp_path / "deep" / "new") as part:
        (part / "below").mkdir()
        (part / "below" / "file").write_text("1")
        assert not (tmp_path / "deep" / "new").exists()
    assert (tmp_path / "deep" / "new" / "below" / "file").read_text() == "1"
    assert names(tmp_path / "deep") == ["new"]


def test_nothing_is_left_of_one_that_fails(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "README.md").write_text(MARK)

    def fail(place: Path) -> None:
        with atomic_folder(place) as part:
            (part / "README.md").write_text("half")
            raise RuntimeError

    for place in ("new", "old"):
        with pytest.raises(RuntimeError):
            fail(tmp_path / place)
    assert names(tmp_path) == ["old"]
    assert (tmp_path / "old" / "README.md").read_text() == MARK


def test_an_error_names_the_folder_that_was_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    wanted = r"^cannot write 'new/none/model': No such file or directory$"
    with pytest.raises(StorageError, match=wanted), atomic_folder("new") as part:
        write_atomic(part / "none" / "model", "")


def test_a_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(StorageError, match=r"has files already, and they are not of an export.*--overwrite"):
        check_folder(tmp_path)
    with atomic_folder(tmp_path, overwrite=True) as part:
        (part / "README.md").write_text(MARK)
    with atomic_folder(tmp_path) as part:                           # one of ours now
        (part / "new").write_text("new")
    assert names(tmp_path) == ["README.md", "mine", "new"]
    with atomic_folder(tmp_path, sometimes=("new", "kept")) as part:
        assert part.name == tmp_path.name
        (part / "kept").touch()
    assert ((tmp_path / "new").exists(), (tmp_path / "kept").exists()) == (False, True)
    assert (tmp_path / "mine").read_text() == "mine"
    (tmp_path / "link").symlink_to(tmp_path / "other")
    with atomic_folder(tmp_path / "link") as part:
        (part / "file").touch()
    assert names(tmp_path / "other") == ["file"]


def test_files_for_their_owner_alone_get_the_usual_mode(tmp_path: Path) -> None:
    (tmp_path / "usual").touch()
    with atomic_folder(tmp_path / "new") as part:
        os.close(os.open(part / "secret", os.O_CREAT | os.O_WRONLY, 0o600))
    assert (tmp_path / "new" / "secret").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_an_export_does_not_write_over_other_files(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_text("mine")
    given = ("export", EXAMPLES / "multiply.subleq", "--design", "two-layer", "--bits", "6", "--to", "safetensors",
             "-o", tmp_path)
    assert_refused("has files already", *given)
    assert (tmp_path / "model.safetensors").read_text() == "mine"
    for more in (["--overwrite"], []):                             # the second is over an export
        invoke(*given, *more, status=0)
    assert (tmp_path / "model.safetensors").stat().st_size > 100
