"""One torch thread for small matrices; Hypothesis without deadlines, since machines are shared and noisy."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import torch
from hypothesis import settings

from tests.lowered_cases import code_kept_in

torch.set_num_threads(1)
settings.register_profile("punchcard", deadline=None, max_examples=50, print_blob=True)
settings.load_profile("punchcard")


@pytest.fixture(scope="module")
def shared_code(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """All modules and workers of a session share what they compile."""
    base = tmp_path_factory.getbasetemp()
    with code_kept_in((base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "shared_code"):
        yield
