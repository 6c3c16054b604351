"""The interpreter of images against a table, and against a few lines of Python that say what an instruction is."""

from __future__ import annotations

import random

import pytest

from punchcard.errors import ProgramError, PunchcardError
from punchcard.machines.streams import reader
from punchcard.machines.von_neumann.isa import Fault, Image, find_dialect
from punchcard.machines.von_neumann.oracle import ImageInterpreter, run
from tests.cases import wrap
from tests.image_cases import CASES, ImageCase
from tests.random_programs import random_image


@pytest.mark.parametrize("case", CASES, ids=str)
def test_cases(case: ImageCase) -> None:
    """The tight loop, and one instruction at a time."""
    written, dialect = bytearray(), find_dialect(case.dialect)
    whole = run(case.image, word_bits=case.word_bits, memory=case.memory, dialect=dialect, input=case.input,
                max_steps=case.max_steps)
    assert (whole.steps, whole.output, whole.fault) == (case.steps, case.output, case.fault)
    assert whole.stop == ("halted" if case.halted else "fault" if case.fault else None)
    one = ImageInterpreter(case.image, case.word_bits, case.memory, dialect=dialect, read=reader(case.input),
                           write=written.append)
    while one.stop is None and one.steps != case.max_steps:
        one.step()
    assert (one.cells, one.program_counter, one.steps, one.stop, one.fault) == (
        whole.cells, whole.program_counter, whole.steps, whole.stop, whole.fault)
    assert bytes(written) == whole.output


@pytest.mark.parametrize(("bits", "memory"), [(4, 16), (5, 20), (8, 64)])
def test_random_images_against_the_definition(bits: int, memory: int) -> None:
    """Signed words and exceptions, where the interpreter has unsigned words and comparisons."""
    rng = random.Random(7)
    ends = {"halted": 0, "fault": 0, "port": 0, "limit": 0}
    for _ in range(300):
        image = random_image(rng, bits, memory)
        cells = {i: wrap(word, bits) for i, word in enumerate(image.loaded(bits, memory))}
        counter, steps, end = 0, 0, "limit"
        interpreter = ImageInterpreter(image, bits, memory)
        while steps < 60:
            if wrap(counter, bits) < 0:
                end = "halted"
                break
            try:
                a, b, c = (cells[counter + i] for i in range(3))
                if -1 in (a, b):
                    end = "port"
                    break
                a, b = a % (1 << bits), b % (1 << bits)
                cells[b] = wrap(cells[b] - cells[a], bits)
            except KeyError:
                end = "fault"
                break
            counter = c if cells[b] <= 0 else counter + 3
            steps += 1
            interpreter.step()
        ends[end] += 1
        assert [wrap(word, bits) for word in interpreter.cells] == list(cells.values())
        assert interpreter.program_counter == counter % (1 << bits)
        if end in ("halted", "fault"):
            assert interpreter.stop == end
        elif end == "port":
            assert interpreter.waits or interpreter.stop == "fault", "the other operand may be beyond the memory"
    assert ends["halted"] > 10
    assert ends["fault"] > 10 or memory == 1 << bits, "a full memory has no end"


@pytest.mark.parametrize(("words", "message"), [
    ((), "the image is empty"),
    ((1, 2.0), r"words=.*2.0.*: it must be a list, each item an integer"),
    ((1, True), r"words=.*True.*: it must be a list, each item an integer"),
])
def test_images_that_are_none(words: tuple[int, ...], message: str) -> None:
    with pytest.raises(PunchcardError, match=message):
        Image(words)


@pytest.mark.parametrize(("words", "message"), [
    ((0,) * 9, "the image has 9 words, the memory 8 cells: use a memory of 9 or more"),
    ((0, 16), r"word 1 is 16, which does not fit a word of 4 bits: the range is -8 to 15"),
    ((-9,), r"word 0 is -9, which does not fit"),
])
def test_images_that_do_not_fit(words: tuple[int, ...], message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        Image(words, "x.dec").loaded(4, 8)
    with pytest.raises(ProgramError, match=r"^x\.dec: "):
        Image(words, "x.dec").loaded(4, 8)


def test_words_may_be_signed_or_unsigned() -> None:
    assert Image((-8, 8, -1, 15)).loaded(4, 5) == [8, 8, 15, 15, 0]


def test_dialects_by_name() -> None:
    assert find_dialect("sic1").word_bits == 8
    with pytest.raises(ProgramError, match=r"unknown dialect 'standart' \(did you mean 'standard'\?\)"):
        find_dialect("standart")


def test_faults_say_where() -> None:
    assert str(Fault(3, "a", 100, 16)) == "the instruction at 3 has operand a = address 100, and the memory has 16 cells"
    assert str(Fault(14, "instruction", 16, 16)) == (
        "the instruction at 14 reaches to address 16, and the memory has 16 cells")
