"""The text of an error: one line of sensible length, whatever the input is that it repeats."""

from __future__ import annotations

import pickle

import pytest

import punchcard
from punchcard.errors import LONGEST, PunchcardError, SourceError, one_line


def test_the_text_of_an_error_is_one_short_line() -> None:
    for text in ("a\nb", "a\r\n\x0bb", "\x1b[2J", "a\u2028b", "x" * 10_000_000, "\0" * 5000, "\ud800"):
        for error in (PunchcardError(text), SourceError(text, line=1, column=2, text=text)):
            assert str(error).isprintable()
            assert 0 < len(str(error)) <= LONGEST
            assert one_line(str(error)) == str(error), "once is enough"
            assert text in error.args[0], "nothing is lost"


def test_the_middle_of_a_long_message_is_left_out() -> None:
    message = str(PunchcardError(f"begins {'x' * 5000} ends"))
    assert message.startswith("begins xxx")
    assert message.endswith("xxx ends")
    assert " ... " in message
    assert str(PunchcardError("short: 'ü', \\n")) == "short: 'ü', \\n"
    assert str(pickle.loads(pickle.dumps(PunchcardError(message)))) == message


def test_a_program_with_a_long_word_is_refused_in_one_short_line() -> None:
    with pytest.raises(SourceError) as refused:
        punchcard.assemble(f".code\n{'9' * 5000}x\x1b y\n")
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) <= LONGEST
