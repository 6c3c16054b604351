"""Prove the machines of docs/proof*.md, and compare claims and CPU times with those of another tree.

    python benchmarks/same_proofs.py run now.json                         # all of them; or names, as listed by `names`
    PYTHONPATH=/other/tree/src python benchmarks/same_proofs.py run then.json
    python benchmarks/same_proofs.py compare then.json now.json
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

SLOWER = 1.3
"""A proof may take this much longer than before."""


def machines() -> dict[str, Callable[[], Any]]:
    """Every machine of the tables, by name, built when it is called."""
    from punchcard.machines.fleq.machine import FleqMachine
    from punchcard.machines.riscv.machine import RiscvMachine
    from punchcard.machines.subleq.machine import SubleqMachine
    from punchcard.machines.von_neumann.machine import VonNeumannMachine

    found: dict[str, Callable[[], Any]] = {}
    for design, bits, columns in (
        ("two-layer", 4, 10), ("two-layer", 16, 1024), ("two-layer", 47, 16), ("paper", 4, 10), ("paper", 16, 64),
        ("paper", 16, 1024), ("one-layer", 4, 10), ("one-layer", 8, 16), ("one-layer", 16, 256), ("one-layer", 16, 1024),
        ("one-layer", 45, 16),
    ):
        half = columns // 2
        found[f"subleq {design} {bits} {columns}"] = partial(
            SubleqMachine, word_bits=bits, memory=columns - 3 - half, instructions=half, design=design)
    found["von-neumann 4 19"] = partial(VonNeumannMachine, word_bits=4, memory=16)
    found["von-neumann 16 1027"] = partial(VonNeumannMachine, word_bits=16, memory=1024)
    found["von-neumann sic1"] = partial(VonNeumannMachine, dialect="sic1")
    for names, size, cells in (("add", 1, 2), ("add reset_pointer incr_pointer", 1, 2), ("add mul transpose sigmoid", 2, 9)):
        for design in ("compact", "three-layer", "paper"):
            found[f"fleq {design} {names}"] = partial(
                FleqMachine, functions=tuple(names.split()), size=size, memory=cells, instructions=cells, design=design)
    found["riscv three-layer 64"] = partial(RiscvMachine, memory=64)
    found["riscv two-layer 64"] = partial(RiscvMachine, memory=64, design="two-layer")
    found["riscv three-layer m 64"] = partial(RiscvMachine, memory=64, multiply=True)
    found["riscv three-layer 1024 float32"] = partial(RiscvMachine, memory=1024, precision="float32")
    found["riscv privileged 64"] = partial(RiscvMachine, memory=64, privileged=True)
    found["riscv privileged m 64"] = partial(RiscvMachine, memory=64, privileged=True, multiply=True)
    found["riscv two-layer 1024"] = partial(RiscvMachine, memory=1024, design="two-layer")
    return found


def run(path: Path, names: list[str]) -> None:
    """Prove these machines, or all, and write what was shown after each."""
    found = json.loads(path.read_text()) if path.exists() else {}
    for name, build in machines().items():
        if name not in found and (not names or any(each in name for each in names)):
            begin = time.process_time()
            certificate = build().prove()
            seconds = time.process_time() - begin
            found[name] = {"seconds": round(seconds, 2), "proven": certificate.proven, "promises": certificate.promises,
                           "claims": [(claim.name, claim.about) for claim in certificate.claims]}
            path.write_text(json.dumps(found))
            print(f"{name:45} {len(certificate.claims):6} claims {seconds:8.2f} s  proven: {certificate.proven}", flush=True)


def compare(before: Path, after: Path) -> int:
    """Print where two runs differ; how many proofs were lost or are slower."""
    then, now, wrong = json.loads(before.read_text()), json.loads(after.read_text()), 0
    for name in [name for name in then if name in now]:
        old, new = then[name], now[name]
        ratio = new["seconds"] / old["seconds"]
        lost = [each for each in old["claims"] if each not in new["claims"]]
        more = [each for each in new["claims"] if each not in old["claims"]]
        same = old["promises"] == new["promises"] and old["proven"] <= new["proven"]
        wrong += bool(lost or ratio > SLOWER or not same)
        print(f"{name:45} {len(old['claims']):5} -> {len(new['claims']):5} claims, {old['seconds']:7.2f} -> "
              f"{new['seconds']:7.2f} s ({ratio:.2f}){'' if same else ', promises or result differ'}")
        for text, claims in (("lost", lost), ("new", more)):
            for claim, about in claims[:3]:
                print(f"    {text}: {claim}: {about}")
            if len(claims) > 3:
                print(f"    {text}: and {len(claims) - 3} others")
    return wrong


if __name__ == "__main__":
    verb, *rest = sys.argv[1:]
    if verb == "names":
        print("\n".join(machines()))
    elif verb == "run":
        run(Path(rest[0]), rest[1:])
    else:
        sys.exit(compare(Path(rest[0]), Path(rest[1])) > 0)
