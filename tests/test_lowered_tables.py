"""Tables that the code does without: codes that follow each other as columns do, and a few others."""

from __future__ import annotations

import random

import numpy as np
import pytest

from punchcard.engines.lowered.analysis.tables import FEW_OTHERS, DirectLookup, longest_run


def found(direct: DirectLookup, code: int) -> int:
    """What the code makes of a direct table."""
    place = code - direct.first
    return dict(direct.others).get(code, place + direct.column if 0 <= place < direct.count else -1)


@pytest.mark.parametrize(("codes", "columns", "direct"), [
    ([4, 5, 6], [1, 2, 3], DirectLookup(4, 3, 1)),
    ([0, 1, 2, 31, 30], [1, 2, 3, 4, 5], DirectLookup(0, 3, 1, ((31, 4), (30, 5)))),
    ([31, 0, 1, 2, 3], [1, 2, 3, 4, 5], DirectLookup(0, 4, 2, ((31, 1),))),
    ([0, 1, 2, 3], [1, 2, 9, 10], DirectLookup(0, 2, 1, ((2, 9), (3, 10)))),
    ([9], [3], DirectLookup(9, 1, 3)),
    (list(range(0, 20, 2)), list(range(10)), None),
    ([*range(10), 20, 22, 24, 26, 28], list(range(15)), None),
])
def test_runs(codes: list[int], columns: list[int], direct: DirectLookup | None) -> None:
    assert longest_run(np.array(codes), np.array(columns)) == direct


def test_random_runs_give_every_code_its_column() -> None:
    rng, many = random.Random(5), 0
    for _ in range(400):
        codes = list(range(rng.randrange(4), rng.randrange(5, 12)))
        for _ in range(rng.randrange(4)):
            codes.insert(rng.randrange(len(codes) + 1), rng.randrange(20, 60))
        codes = list(dict.fromkeys(codes))
        columns = sorted(rng.sample(range(100), len(codes))) if rng.random() < 0.2 else list(range(7, 7 + len(codes)))
        direct = longest_run(np.array(codes), np.array(columns))
        if direct is None:
            assert len(codes) > FEW_OTHERS
            continue
        many += 1
        table = dict(zip(codes, columns, strict=True))
        assert [found(direct, code) for code in range(64)] == [table.get(code, -1) for code in range(64)]
    assert many > 200
