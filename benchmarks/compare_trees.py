"""Two versions of the source compared: the same weights, and times as ratios. For changes that should change nothing.

    git worktree add ../before REVISION
    python benchmarks/compare_trees.py ../before weights starts engines

Each version runs in processes of its own, one after the other in turn, so that a busy machine slows both. Times are CPU
seconds, the least of some rounds. `weights` compares a digest of all parameters of every machine; the status is 1 where
they differ. `benchmarks/same_proofs.py` compares proofs.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).parent.parent

DIGESTS = (str(HERE / "benchmarks" / "weight_digests.py"),)

STARTS: dict[str, Sequence[str]] = {
    "import punchcard": ("-c", "import punchcard"),
    "punchcard --help": ("-m", "punchcard", "--help"),
    "run multiply.subleq": ("-m", "punchcard", "run", "examples/multiply.subleq"),
    "run newton.fleq": ("-m", "punchcard", "run", "examples/newton.fleq"),
    "run hello.asq": ("-m", "punchcard", "run", "examples/von_neumann/hello.asq"),
    "run collatz.elf": ("-m", "punchcard", "run", "examples/riscv/bin/collatz.elf", "--memory", "4096"),
    "run gcd.py": ("-m", "punchcard", "run", "examples/python/gcd.py", "--call", "gcd", "1071", "462"),
    "calc": ("-m", "punchcard", "calc", "sqrt(1/((a+b-c)*d))/100", "a=3", "b=2", "c=1", "d=0.5"),
}

def run(tree: Path, arguments: Sequence[str]) -> tuple[float, str]:
    """CPU seconds of a Python process with a version of the package, and what it printed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, *arguments], cwd=tree, capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(tree / "src")}, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"{tree}: {' '.join(arguments)}\n{done.stderr}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def compare_weights(old: Path, new: Path) -> bool:
    """Whether every machine has the same parameters in both."""
    before, after = (dict(json.loads(line) for line in run(tree, DIGESTS)[1].splitlines()) for tree in (old, new))
    for machine in before:
        if before[machine] != after.get(machine):
            print(f"other weights: {machine}")
    print(f"weights: {sum(before[name] == after.get(name) for name in before)} of {len(before)} machines have the same")
    return before == after


def compare_times(rounds: int, old: Path, new: Path, commands: dict[str, Sequence[str]]) -> None:
    """The least CPU seconds of some rounds, in turn."""
    for name, arguments in commands.items():
        times = [[run(tree, arguments)[0] for tree in (old, new)] for _ in range(rounds)]
        before, after = (min(column) for column in zip(*times, strict=True))
        print(f"{name:28} {before:8.2f} s {after:8.2f} s   ratio {after / before:.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, help="a checkout of the other version")
    parser.add_argument("what", nargs="+", choices=("weights", "starts", "engines"))
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    old, same = given.before.resolve(), True
    if "weights" in given.what:
        same &= compare_weights(old, HERE)
    if "starts" in given.what:
        compare_times(given.rounds, old, HERE, STARTS)
    if "engines" in given.what:
        for tree in (old, HERE):
            print(run(tree, ("-m", "punchcard", "bench", "--seconds", "0.5"))[1])
    sys.exit(not same)


if __name__ == "__main__":
    main()
