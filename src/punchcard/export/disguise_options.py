"""What a disguise can be asked for, and the bounds of each: the flags of the command, and what `Disguise` accepts."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from punchcard.machines.kind import Option

Rotation: TypeAlias = Literal["none", "permuted", "exact", "random"]
DISGUISE = (
    Option("rotation", "how the basis is hidden", str, choices=get_args(Rotation)),
    Option("idle_rows", "rows that do nothing", least=0, most=4096),
    Option("idle_heads", "heads that do nothing, in each layer with heads", least=0, most=4096),
    Option("copies", "share of the rows that have idle copies, with the parts that write them", float, least=0, most=1),
    Option("noise", "standard deviation of the noise added to a weight w, relative to max(1, |w|)", float, least=0),
    Option("seed", "seed of all random choices", least=0),
)
