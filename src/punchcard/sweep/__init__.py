"""Many runs on many machines: a sweep over machines, changes and programs, on processes or a Ray cluster.

    from punchcard.sweep import Builds, Changes, Sweep

    sweep = Sweep("noise", [Builds("examples/multiply.subleq")], [Changes("weight-noise", amount=[1e-9, 1e-6])], seeds=5)
    sweep.run("folder").pandas()

It needs pyarrow: pip install 'punchcard[sweep]'. See docs/sweep.md.
"""

from __future__ import annotations

from punchcard.lazy import lazy_names

__getattr__, __dir__, _HOMES = lazy_names("punchcard.sweep", (
    "punchcard.sweep.campaign:estimate run_sweep",
    "punchcard.sweep.dispatch:SweepProgress dispatch",
    "punchcard.sweep.job:Change ProgramFile Setup SweepJob",
    "punchcard.sweep.plan:Builds Changes Sweep",
    "punchcard.sweep.results:Results",
))
