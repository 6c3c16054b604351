"""What became of many random programs: how many ran, and why the others did not."""

from __future__ import annotations

import re
import sys
from collections import Counter

SAME = "same"
SHOWN = 12


class Tally:
    """Counts what became of programs; a maker whose programs are mostly refused proves little."""

    def __init__(self) -> None:
        self.found: Counter[str] = Counter()

    def add(self, became: str) -> None:
        """`same`, or the reason why a program did not run; names and numbers in it do not matter."""
        without_place = re.sub(r"^\S.*?:\d+:\d+: ", "", became)
        self.found[re.sub(r"-?\d[\d.]*(e[-+]\d+)?", "#", re.sub(r"'[^']*'|\b\w = ", "_", without_place))] += 1

    @property
    def ran(self) -> float:
        """The part of the programs that ran, and gave the same."""
        return self.found[SAME] / max(1, self.found.total())

    def show(self) -> None:
        lines = [f"{self.found.total():,} programs, {self.ran:.1%} ran"]
        lines += [f"{count:7,} {reason[:110]}" for reason, count in self.found.most_common(SHOWN)]
        sys.stdout.write("\n" + "\n".join(lines) + "\n")
