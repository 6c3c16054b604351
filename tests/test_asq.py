"""The assembler of one-memory SUBLEQ: syntax, errors with their places, and the disassembler. Macros: test_asq_macros.py."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from punchcard.api import load
from punchcard.errors import ProgramError, SourceError
from punchcard.machines.von_neumann.isa import Image
from punchcard.machines.von_neumann.languages import images
from punchcard.machines.von_neumann.languages.asq.assembler import assemble, listing
from punchcard.machines.von_neumann.languages.asq.writer import disassemble
from tests.cases import EXAMPLES, assert_error_at

SAMPLES = sorted(p for p in (EXAMPLES / "von_neumann").iterdir() if p.suffix in (".asq", ".bf"))


def words(text: str) -> tuple[int, ...]:
    return assemble(text).words


@pytest.mark.parametrize(("text", "expected"), [
    ("1 2 3", (1, 2, 3)),
    ("1 2", (1, 2, 3)),                                        # the third operand is the next cell
    ("1", (1, 1, 3)),                                          # the cell is cleared
    ("9 9 9; 1; 2 3", (9, 9, 9, 1, 1, 6, 2, 3, 9)),
    ("1 2 3\n4 5 6", (1, 2, 3, 4, 5, 6)),
    ("x y; x:7 y:8 z:9", (3, 4, 3, 7, 8, 9)),                  # labels before operands
    ("x y 6\nx:7 y:7 7\nx y 0", (3, 4, 6, 7, 7, 7, 3, 4, 0)),
    ("a: b: 5 c:6 7; a b c", (5, 6, 7, 0, 0, 1)),
    (". 1 2 3 4 5", (1, 2, 3, 4, 5)),
    (". x:1 2; x+1 x-1 (x)", (1, 2, 1, -1, 0)),
    (".x:-1 y:+2 (-3)", (-1, 2, -3)),                          # the dot needs no blank, nor does a sign after a label
    ("? ?+1 ?-1", (1, 3, 2)),
    ("?", (1, 1, 3)),                                          # one operand twice is one number twice
    ("?+2-?", (2, 2, 3)),
    ("?+?+5", (7, 7, 3)),
    ("(1+2)-(3-(4+5)) 7 - 2 (-(-(1)))", (9, 5, 1)),
    ("7 -1 (-1)", (6, -1, 3)),                                 # blanks around a sign mean nothing, as in the original
    (". x:5 -1 2 +3; . (1) -x", (4, 5, 1)),
    (". a:[3] b:7 [2]; a b", (0, 0, 0, 7, 0, 0, 0, 3, 9)),     # so many cells that are 0
    ("0x1f 'a' '\\n'", (31, 97, 10)),
    ('. "Hi\\n" \'"\' "\\"\\\\\\0"', (72, 105, 10, 34, 34, 92, 0)),
    ('. "é"', (0xC3, 0xA9)),                                   # a string is the bytes that it writes
    ('. "# no comment // neither; nor an end" # but this', tuple(b"# no comment // neither; nor an end")),
    ("1 2 3 // a comment\n# another\r\n4 5 6;;", (1, 2, 3, 4, 5, 6)),
    ("first: 1 2 last\nlast:", (1, 2, 3)),
    ("first: last: . 5\nend: 1 end first", (5, 1, 1, 0)),
    ("loop:. 3", (3,)),
    ("x: . 3; . ; x x x", (3, 0, 0, 0)),                       # an empty data line has no cells
    # What follows is as the original assembler has it
    (". q: 34; s: 32 l: 69", (34, 32, 69, 4)),                 # the dot is for one statement
    (". q: 34; s: 32 l: 69 10 7; 5", (34, 32, 69, 10, 7, 5, 5, 8)),  # more than three cells are data
    ("1 2 3 4", (1, 2, 3, 4)),
    ('"Hi"', (72, 105, 3)),                                    # cells are cells, in a string too
    ('"H"; "Hi!"; "High"', (72, 72, 3, 72, 105, 33, 72, 105, 103, 104)),
    ("[1]; 7 [2]; [5]", (0, 0, 3, 7, 0, 0, 0, 0, 0, 0, 0)),
    ('"" 5; . ""; 7', (5, 5, 3, 7)),                           # an empty string has no cells, and its dot waits
    ('. "a\nb" 1 # the end\n2', (97, 10, 98, 1, 2, 2, 7)),      # a string goes over lines
    ('. "a\r\n\r\n# ; b" 1', (*b"a\n\n# ; b", 1)),
    ('. "it\'s" \'"\'\n. "two"', (*b"it's", 34, *b"two")),
    ("// \" '\n. 1 # \"\n. '\"' 2", (1, 34, 2)),               # quotes in comments and of characters begin no string
    (". ''' 1", (39, 1)),
    ("1 2 x:\n\n3\n. 4 x", (1, 2, 3, 4, 2)),                    # a label is before the cell that follows, on any line
    (". 1 x:\n5 6\n7", (1, 5, 6, 7, 7, 6)),
    (". 1 x:\n. 5\n6 y:\n7 8", (1, 5, 6, 7, 8)),
    (". x:\n5 6\n7", (5, 6, 7, 7, 5)),                         # a dot waits for its first cell
    (".\n5 6\n7", (5, 6, 7, 7, 5)),
    (". 1 end:", (1,)),
])
def test_syntax(text: str, expected: tuple[int, ...]) -> None:
    assert words(text) == expected


def test_labels_are_listed() -> None:
    assert dict(listing("start: x x start\n. x:5 y:6\nend:").labels) == {"start": 0, "x": 3, "y": 4, "end": 5}


def test_constants_and_scratch_cells_stand_behind_the_program() -> None:
    """Equal constants share a cell, however they are written; labels at the end come after them."""
    assert listing("=5 $a; =2+3 $b; =(-(-5)) $a; =-5 $a\nend:").words == (
        12, 13, 3, 12, 14, 6, 12, 13, 9, 15, 13, 12, 5, 0, 0, -5)
    assert listing("=5 $a\nend:").labels == {"$a": 4, "end": 5}
    assert words("=x x; . x:7") == (4, 3, 3, 7, 3), "the address of a label"
    assert words("='a' $a; =97 $a") == (6, 7, 3, 6, 7, 6, 97, 0)


def test_the_pool_has_a_place() -> None:
    assert words("=5 x; @pool; . x:7; =6 x") == (3, 5, 3, 5, 6, 7, 4, 5, 9)


@pytest.mark.parametrize(("text", "line", "column", "message"), [
    ("1 2 3\nx lop y\nloop: . 1\nx:y:0", 2, 3, r"unknown label 'lop' \(did you mean 'loop'\?\): declare it before a cell"),
    ("x: 1; x: 2", 1, 7, "label 'x' is declared twice"),
    (". [0]", 1, 4, r"\[0\] has no cells: write 1 or more"),
    (". [-1]", 1, 4, r"\[-1\] has no cells"),
    (". [x]", 1, 4, "found 'x': the number of cells must be a decimal"),
    (". [5", 1, 5, "the line ends here: an opened bracket is closed with '\\]'"),
    ("1 (2+3", 1, 7, "the line ends here: an opened parenthesis is closed with '\\)'"),
    ("1 2) 3", 1, 4, "found '\\)': an operand is a sum"),
    ("1 + ; 2", 1, 5, "found ';': an operand is a sum"),
    ("1 + ", 1, 4, "the line ends here: an operand is a sum"),
    ("1 * 2", 1, 3, r"unexpected character '\*'"),
    ('. "Hi', 1, 3, '"Hi is not closed: a string ends with a quote'),
    ('. "one"\n. "Hi\n x \\" y\n', 2, 3, '"Hi is not closed: a string ends with a quote'),
    ('. "a\nb" 1 )', 2, 6, "found '\\)': an operand is a sum"),
    ('. "a\n\nb" x', 3, 4, "unknown label 'x'"),
    ('. 1 ; 2 "a\nb" x: ;', 2, 7, "found ';': a label within an instruction is before an operand"),
    (". 'ab'", 1, 3, "'ab' is not closed: a character is 'a'"),
    ('. "\\q"', 1, 3, "unknown escape"),
    (". 'é'", 1, 3, "'é' is more than one byte"),
    (". 12ab", 1, 3, "'12ab' is not a number"),
    ("1 2 x:", 1, 5, "a label within an instruction is before an operand"),
    ("1 2 x:; 3", 1, 7, "found ';': a label within an instruction is before an operand"),
    ("1 2 x:\n@pool", 2, 1, "found '@pool': a label within an instruction is before an operand"),
    ("1 2 x:\n. 3", 2, 1, "found '.': a label within an instruction is before an operand"),
    ("5: 1", 1, 1, "a label must be a name"),
    ("1 =?", 1, 3, "'\\?' has no meaning in a constant"),
    ("1 1+=5", 1, 5, "found '=': an operand is a sum"),
    ("x =5", 1, 3, "a constant would be changed here"),
    ("=5", 1, 1, "a constant would be changed here"),
    ("@pool; @pool", 1, 8, "a second @pool"),
    ("@pool 1", 1, 7, "@pool ends here"),
    ("1 " + "(" * 150 + "1" + ")" * 150, 1, 103, "parentheses are at most 100 deep"),
])
def test_errors(text: str, line: int, column: int, message: str) -> None:
    assert_error_at(line, column, message, assemble, text)


@pytest.mark.parametrize("text", ["", "# nothing", "label:", "@def f; 1; @end"])
def test_an_empty_program(text: str) -> None:
    with pytest.raises(ProgramError, match=r"^x\.asq: the program is empty"):
        assemble(text, "x.asq")


def test_words_that_do_not_fit() -> None:
    assert assemble(". 255 (-128)", word_bits=8).words == (255, -128)
    with pytest.raises(SourceError, match="line 2, column 3: 256 does not fit a word of 8 bits: the range is -128 to 255"):
        assemble(". 1\n. 255+1", word_bits=8)


@pytest.mark.parametrize(("body", "message"), [("1 2 3;", "the program has more than 999 cells"),
                                               ("", "macros are used more than 999 times")])
def test_a_program_that_grows_without_bounds_is_refused(body: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each macro uses the one before it twice."""
    for limit in ("MAX_CELLS", "MAX_USES"):
        monkeypatch.setattr(f"punchcard.machines.von_neumann.languages.asq.assembler.{limit}", 999)
    powers = f"@def m0; {body} @end\n" + "".join(f"@def m{i}; @m{i - 1}; @m{i - 1}; @end\n" for i in range(1, 60))
    with pytest.raises(SourceError, match=f"line 61, column 7: {message}"):
        assemble(powers + "1 2 3;@m59")


PIECES = ["x", "y:", "loop", "1", "-", "+", "(", ")", "?", ".", ";", "=", "$t", "@mov", "@def", "@end", "@pool", "f", "@f",
          "@jz", "'a'", '"b"', "\n", " ", "  ", "#", "//", "'", '"', "é", "\\", "@", "$", ","]


@given(st.one_of(st.text(), st.lists(st.sampled_from(PIECES), max_size=20).map("".join),
                 st.lists(st.sampled_from(PIECES), max_size=20).map(" ".join)))
def test_any_text_is_assembled_or_refused(text: str) -> None:
    """No other error than a named one."""
    for read in (assemble, images.parse):
        with suppress(ProgramError):
            assert read(text).words


# The disassembler.

@given(st.lists(st.one_of(st.integers(-1, 30), st.integers(30, 127), st.integers(-(2**15), 2**16 - 1)),
                min_size=1, max_size=60).map(tuple))
def test_any_image_round_trips(image: tuple[int, ...]) -> None:
    text = disassemble(Image(image))
    assert words(text) == image
    assert disassemble(assemble(text)) == text


@pytest.mark.parametrize("path", SAMPLES, ids=lambda p: p.name)
def test_examples_round_trip(path: Path) -> None:
    image = load(path, Image)
    assert words(disassemble(image)) == image.words


def test_the_form_of_a_disassembly() -> None:
    image = assemble("""
        loop: x (-1); one loop; Z x (-1); Z Z loop
        . Z:0 one:-1 x:"text\\n" 0
    """)
    assert disassemble(Image(image.words)).splitlines() == [
        'L0:  m14 (-1)',
        '     m13 L0',
        '     m12 m14 (-1)',
        '     m12 m12 L0',
        '     . m12:0',
        '     . m13:(-1)',
        '     . m14:"text\\n"',
        '     . 0',
    ]


def test_labels_within_instructions_are_kept() -> None:
    image = assemble("one op; op:0 x here:9; one here; . one:1 x:0")
    assert disassemble(Image(image.words)).splitlines() == [
        "m0:  m9 m3", "m3:  m0 m10 m5:m9", "     m9 m5", "     . m9:1", "     . m10:0"]
    assert words(disassemble(image)) == image.words


def test_names_that_were_given_are_kept() -> None:
    """Also one that the writer would have given to another cell."""
    image = assemble("m3 op; op:0 x here:9; m3 here; . m3:1 x:0")
    again = assemble(disassemble(image))
    assert again.words == image.words
    assert image.labels.items() <= again.labels.items()


def test_a_long_tape_is_disassembled_quickly() -> None:
    image = Image((0, 0, -1, *[0] * 30_000))
    assert words(disassemble(image)) == image.words
