"""One torch thread for small matrices; Hypothesis without deadlines, since machines are shared and noisy."""

from __future__ import annotations

import torch
from hypothesis import settings

torch.set_num_threads(1)
settings.register_profile("punchcard", deadline=None, max_examples=50, print_blob=True)
settings.load_profile("punchcard")
