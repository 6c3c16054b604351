"""Every slip of the paper: the print fails on the input that is named, and the page has what is computed."""

from __future__ import annotations

import pytest
from benchmarks import slips_blocks, slips_machines, slips_programs
from benchmarks.slip import Slip, first
from benchmarks.slips import SLIPS, Found, table

from tests.cases import ROOT

ALL = [function for functions in SLIPS.values() for function in functions]
READ = {"field_order", "pointer_field", "backprop_resets", "wrapper_line", "twice_z"}
"""Slips of the wording or of a listing: there is nothing to run."""


@pytest.mark.parametrize("function", ALL, ids=lambda function: function.__name__)
def test_the_print_fails_on_this_input(function: Found) -> None:
    slip = function()
    assert all(slip[:4])
    assert slip.gives != slip.right
    assert slip.run == (function.__name__ not in READ)


def test_every_function_is_in_the_table() -> None:
    written = {name for module in (slips_blocks, slips_machines, slips_programs) for name, value in vars(module).items()
               if callable(value) and getattr(value, "__annotations__", {}) == {"return": "Slip"}}
    assert written == {function.__name__ for function in ALL}
    assert len(ALL) == len(written)


def test_the_page_is_what_is_computed() -> None:
    assert table().strip() in (ROOT / "docs" / "slips.md").read_text()


def test_slips_that_were_found_last() -> None:
    assert slips_blocks.layers_of_the_theorem()[2:4] == ("12 at most", "13")
    assert slips_blocks.product_order()[2:4] == ("no such product: 1x1 and 2x1", "A^T B = [[1.0, 2.0]]")
    assert slips_blocks.one_head_copy() == Slip("one head: V = d I copies x to all m columns", "d = 1, m = 2, x = 3", "1.5",
                                                "3, by m I")


def test_a_print_that_is_right_is_noticed() -> None:
    with pytest.raises(ValueError, match="right for all of these inputs"):
        first(range(5), lambda x: x + x, lambda x: 2 * x)
