"""Memory images as text: what is read, what is refused and where, and the way back."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from punchcard.api import load
from punchcard.errors import ProgramError, SourceError
from punchcard.machines.von_neumann.isa import Image
from punchcard.machines.von_neumann.languages import images
from tests.cases import assert_error_at, file_with


@pytest.mark.parametrize("text", [
    "9 -1 3 10 -1 6 0 0 -1 72 105",
    "9,-1,3,10,-1,6,0,0,-1,72,105",
    "9, -1, 3,\n10, -1, 6,\n0, 0, -1,\n72, 105,",
    "# prints Hi\n9 -1 3 # H\r\n10\t-1 6\r0 0 -1\n\n72 +105#i",
    "\n".join("9 -1 3 10 -1 6 0 0 -1 72 105".split()),
])
def test_blanks_commas_lines_and_comments(text: str) -> None:
    assert images.parse(text) == Image((9, -1, 3, 10, -1, 6, 0, 0, -1, 72, 105))


@given(st.lists(st.integers(-(2**63), 2**64 - 1), min_size=1).map(tuple))
def test_what_is_written_is_read_again(words: tuple[int, ...]) -> None:
    assert images.parse(images.write(Image(words)), word_bits=64, memory=len(words)).words == words


def test_an_instruction_a_line() -> None:
    assert images.write(Image((6, -1, 3, 0, 0, -1, 72))) == "6 -1 3\n0 0 -1\n72\n"


@pytest.mark.parametrize(("text", "line", "column", "message"), [
    ("1 2\n 3 x", 2, 4, "'x' is not a decimal word: .* assembly has the extension .asq"),
    ("1 0x10", 1, 3, "'0x10' is not a decimal word"),
    ("1.5", 1, 1, "'1.5' is not a decimal word"),
    ("1 2-3", 1, 3, "'2-3' is not a decimal word"),
    ("1 -", 1, 3, "'-' is not a decimal word"),
    ("1 ٣", 1, 3, "'٣' is not a decimal word"),
    ("1,,2", 1, 3, "there is no word before this ','"),
    (",1", 1, 1, "there is no word before this ','"),
    ("1,\n, 2", 2, 1, "there is no word before this ','"),
    ("1 " + "9" * 50, 1, 3, "9{40}\\.\\.\\.' has 50 digits: the most is 40"),
])
def test_bad_images(text: str, line: int, column: int, message: str) -> None:
    assert_error_at(line, column, message, images.parse, text)


@pytest.mark.parametrize("text", ["", "\n", "# nothing\n  \t", "\r\n#"])
def test_an_empty_image(text: str) -> None:
    with pytest.raises(ProgramError, match=r"^x\.dec: the image is empty"):
        images.parse(text, "x.dec")


@pytest.mark.parametrize("bits", [4, 8, 16])
def test_words_fit_signed_or_unsigned(bits: int) -> None:
    least, greatest = -(2 ** (bits - 1)), 2**bits - 1
    assert images.parse(f"{least} {greatest}", word_bits=bits).words == (least, greatest)
    for word in (least - 1, greatest + 1):
        assert_error_at(2, 3, f"{word} does not fit a word of {bits} bits: the range is {least} to {greatest}",
                        partial(images.parse, word_bits=bits), f"0 0 0\n0 {word}")


def test_an_image_fits_the_memory() -> None:
    assert len(images.parse("1 2 3\n4", memory=4).words) == 4
    with pytest.raises(SourceError, match=r"line 2, column 1: word 3 \(4\) is beyond the memory, which has 3 cells"):
        images.parse("1 2 3\n4 5", memory=3)


@pytest.mark.parametrize("extension", [".dec", ".sq", ".slq", ".DEC"])
def test_extensions(tmp_path: Path, extension: str) -> None:
    path = file_with(tmp_path / f"halt{extension}", "0 0 -1\n")
    assert load(path) == Image((0, 0, -1), str(path))
    path.write_text("0 0 halt\n")
    with pytest.raises(SourceError, match=f"halt{extension}: line 1, column 5: 'halt' is not a decimal word"):
        load(path)
