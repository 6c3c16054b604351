"""A set of models whose mechanism is known, to score methods of interpretability. See docs/ground-truth-set.md.

    punchcard.ground_truth.make_set("small", "folder")
"""

from __future__ import annotations

from punchcard.lazy import lazy_names

__getattr__, __dir__, _HOMES = lazy_names("punchcard.ground_truth", ("punchcard.ground_truth.collection:make_set",))
