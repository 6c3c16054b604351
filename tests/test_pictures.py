"""Static pictures show what is on the card, by name, and excerpt the rest."""

from __future__ import annotations

import re
import sys
from typing import Any

import numpy as np
import pytest

import punchcard
from punchcard.errors import ArgumentError, PunchcardError
from punchcard.trace import Observed
from punchcard.viewer.colours import ABOVE, BELOW, FAINT, INK, ZERO, shade
from punchcard.viewer.excerpt import excerpt
from punchcard.viewer.tables import card_svg
from tests.cases import load_subleq
from tests.opened import built

pytest.importorskip("matplotlib", reason="matplotlib, the extra `plot`, is not installed")
PROGRAM = load_subleq("multiply.subleq")


@pytest.fixture(scope="module")
def machine() -> Any:
    return punchcard.build(PROGRAM, design="two-layer")


@pytest.fixture(scope="module")
def seen(machine: Any) -> Observed:
    observed: Observed
    with machine.observe(PROGRAM) as observed:
        machine.run(PROGRAM, max_steps=2)
    return observed


@pytest.fixture(scope="module")
def image() -> tuple[Any, Any]:
    return built("von_neumann/hello.asq", memory=1024)


def texts(figure: Any) -> set[str]:
    """All that is written in a figure."""
    from matplotlib.text import Text

    figure.draw_without_rendering()
    return {text.get_text() for text in figure.findobj(Text)}


def marks(figure: Any, *kinds: str) -> set[tuple[int, float]]:
    """Where the marks of some kinds are: the row, and the middle of the column."""
    return {(int(path.vertices[:, 1].mean()), float(path.vertices[:4, 0].mean().round(3)))
            for collection in figure.axes[0].collections if collection.get_gid() in kinds for path in collection.get_paths()}


def drawn(figure: Any) -> np.ndarray[Any, Any]:
    """The bits of the picture: +1 where a mark is punched, -1 where a dash is."""
    lefts = {round(float(tick), 3): i for i, tick in enumerate(figure.axes[0].get_xticks())}
    found = np.zeros((int(figure.axes[0].get_ylim()[0]), len(lefts)))
    for value, kinds in ((1, ("+1", "+1 changed")), (-1, ("-1", "-1 changed"))):
        for row, middle in marks(figure, *kinds):
            found[row, lefts[middle]] = value
    return found


def test_a_picture_shows_the_entries_of_the_card(machine: Any) -> None:
    card = machine.punch(PROGRAM)
    shown = drawn(machine.plot(PROGRAM))
    filled = np.flatnonzero(np.abs(card.numpy()).reshape(machine.layout.width, -1).any(1))
    blocks = [block for block in machine.layout.blocks if machine.layout.rows(block.name).start in filled]
    expected = np.vstack([card[machine.layout.rows(block.name)].numpy() for block in blocks])
    assert np.array_equal(shown, expected)  # bits are drawn as they are, the empty block `difference` is not
    assert np.array_equal(drawn(machine.plot(card)), expected)


def test_rows_regions_and_columns_have_their_names(machine: Any) -> None:
    written = texts(machine.plot(PROGRAM, title="multiply"))
    assert {"multiply", "memory", "pointer", "scratchpad", "instructions", "product", "instruction 3"} <= written
    assert "difference" not in written
    assert "difference" in texts(machine.plot(PROGRAM, rows=["difference", "pointer.a"]))


def test_what_a_layer_changed_has_its_own_colour(seen: Observed) -> None:
    snapshot = seen.at(1, 1)
    found = marks(snapshot.plot(), "+1 changed", "-1 changed", "above changed", "below changed")
    assert len(found) == int(((snapshot.before != snapshot.after) & (snapshot.after != 0)).sum())


def test_a_picture_counts_as_the_page_does(seen: Observed) -> None:
    """Calls take indices, from 0; what people read counts from 1."""
    assert "after loop 2, layer 2" in texts(seen.at(loop=1, layer=1).plot())
    assert "loop 2, layer 2, head 1: who takes from whom" in texts(seen.plot_attention(layer=1, head=0, loop=1))


def test_the_last_card_of_a_run(machine: Any) -> None:
    result = machine.run(PROGRAM)
    figure = result.plot()
    assert "halted after 27 instructions in 28 loops" in texts(figure)
    assert np.array_equal(drawn(figure), drawn(machine.plot(result.card)))


def test_attention_as_arrows_and_as_a_matrix(seen: Observed) -> None:
    figure = seen.plot_attention(1, 0, loop=1)
    arrows, matrix = figure.axes
    weights = seen.at(1, 1).attention(0).numpy()
    assert np.array_equal(np.asarray(matrix.images[0].get_array()), weights)
    moves = seen.at(1, 1).moves(0)
    assert len([text for text in arrows.texts if text.arrow_patch is not None]) == len(moves) > 0  # type: ignore[attr-defined]
    assert {"minus_a", "instruction 1"} <= texts(figure)


def test_a_large_card_is_folded(image: tuple[Any, Any]) -> None:
    program, machine = image
    shown = excerpt(machine.layout, machine.pack(program), most=30)
    by_region = {group.region.name: group for group in shown.groups}
    assert by_region["memory"].folded == 1024 - len(by_region["memory"].columns) > 900
    assert len(shown.columns) <= 30
    words = [program.words[c - machine.layout.region("memory").start] for c in by_region["memory"].columns]
    assert 0 not in words  # cells that hold what most hold are the folded ones
    kept = excerpt(machine.layout, machine.pack(program), most=30, keep=[900])
    assert 900 in kept.columns


def test_a_packed_card_and_a_tensor_are_one_picture(image: tuple[Any, Any]) -> None:
    program, machine = image
    packed, dense = machine.pack(program), machine.punch(program)
    one, other = excerpt(machine.layout, packed), excerpt(machine.layout, dense)
    assert one.columns == other.columns
    assert [band.name for band in one.bands] == [band.name for band in other.bands]
    for band in one.bands:
        assert np.array_equal(band.entries, dense[machine.layout.rows(band.name)][:, list(one.columns)])


def test_real_numbers_are_scaled_by_the_largest_of_their_region() -> None:
    program, machine = built("newton.fleq")
    shown = excerpt(machine.layout, machine.pack(program))
    data = next(band for band in shown.bands if band.name == "data")
    assert data.scale == np.abs(data.entries).max() == 11
    assert np.abs(data.scaled).max() == 1


def test_colours_tell_signs_apart() -> None:
    assert (shade(-1), shade(0), shade(1)) == (BELOW, ZERO, ABOVE)
    assert len({shade(x) for x in (-1, -0.5, -1e-9, 0, 1e-9, 0.5, 1, 7)}) == 7


def test_the_picture_without_matplotlib(machine: Any) -> None:
    card = machine.punch(PROGRAM)
    svg = card_svg(machine.layout, card, names=lambda j: f"<{j}>")
    assert svg.startswith("<svg")
    assert svg.endswith("</svg>")
    assert "&lt;3&gt;" in svg
    assert "<3>" not in svg
    for colour, value in ((INK, 1), (FAINT, -1)):  # punched marks and dashes
        path = re.search(f"fill='{colour}' d='([^']*)'", svg)
        assert path is not None
        assert path[1].count("z") == int((card == value).sum())


@pytest.mark.parametrize(("given", "message"), [
    ({"rows": ["memry"]}, "no row block 'memry' (did you mean 'memory'?)"),
    ({"columns": 0}, "columns=0: a picture has at least one"),
])
def test_what_cannot_be_drawn_is_refused(machine: Any, given: dict[str, Any], message: str) -> None:
    with pytest.raises(PunchcardError) as caught:
        machine.plot(PROGRAM, **given)
    assert message in str(caught.value)


def test_what_is_not_a_card_or_a_program_is_refused(machine: Any, seen: Observed) -> None:
    with pytest.raises(ArgumentError, match=r"plot: shown=.x.: it must be a Program"):
        machine.plot("x")
    with pytest.raises(PunchcardError, match="of one card, not of a batch"):
        machine.plot(machine.punch(PROGRAM)[None])
    with pytest.raises(PunchcardError, match="loop 7, layer 0 was not observed: there are 6 snapshots, loops 0 to 2"):
        seen.plot_attention(0, 0, loop=7)
    with pytest.raises(PunchcardError, match="head 5: layer 0 has 2"):
        seen.plot_attention(0, 5)


def test_without_matplotlib_the_error_names_the_extra(machine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(PunchcardError, match=r"pip install 'punchcard\[plot\]'"):
        machine.plot(PROGRAM)
