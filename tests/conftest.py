"""One torch thread for small matrices; Hypothesis without deadlines, since machines are shared and noisy; Ctrl-C works."""

from __future__ import annotations

import gc
import signal
from collections.abc import Iterator

import pytest
import torch
from hypothesis import settings

import punchcard.code_cache as code_cache
from tests.browsing import Watched, browser
from tests.lowered_cases import code_kept_in

torch.set_num_threads(1)
gc.freeze()  # the many objects that torch brings need not be looked through in every collection
gc.set_threshold(20_000, 20, 50)  # nor what tests keep for each other: looking through it took a twentieth of the time
settings.register_profile("punchcard", deadline=None, max_examples=50, print_blob=True)
settings.load_profile("punchcard")
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # so in the background of a shell: tests of Ctrl-C would not end
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="module", autouse=True)
def without_caches_of_others(request: pytest.FixtureRequest) -> Iterator[None]:
    """What the tests of a file keep for each other goes with the last of them: the machines of all files take gigabytes."""
    yield
    for value in vars(request.module).values():
        if hasattr(value, "cache_clear") and value.__module__ == request.module.__name__:
            value.cache_clear()


@pytest.fixture(scope="module")
def shared_code(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """All modules, workers and sessions share what they compile: code is found by all that it depends on."""
    kept = code_cache.folder().with_name("punchcard-tests")
    with code_kept_in(kept):
        is_trusted = not isinstance(code_cache.find("nothing"), str)
    with code_kept_in(kept if is_trusted else tmp_path_factory.mktemp("shared_code") / "code"):
        yield


@pytest.fixture(scope="module")
def watched() -> Iterator[Watched]:
    """A page in a browser, for the tests of a file."""
    with browser() as found:
        yield Watched(found)
