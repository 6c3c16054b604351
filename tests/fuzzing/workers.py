"""Workers: a process tries inputs one after the other, each with a limit of seconds and all with a limit of memory.

A worker is forked, so that nobody waits for torch. What computes for too long or hangs, also in C, is ended by a watchdog
that writes down where; another worker goes on after that input, and so after a crash.
"""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import json
import mmap
import os
import random
import re
import resource
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import _lru_cache_wrapper
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import TextIO

from punchcard.budget import VARIABLE
from tests.fuzzing.judging import REFUSED, fault_of

SECONDS = 10.0
"""The limit of an input, in CPU seconds: a computer that has other things to do changes nothing. Most take milliseconds."""
SECONDS_WAITING = 120.0
"""The limit of an input in seconds of the clock: what waits for something uses no CPU."""
SECONDS_BEFORE = 120
"""The limit of what a target prepares before its first input."""
MEMORY = 1 << 30
"""What an input may take beyond what the worker has at its start."""
BUDGET = "512M"
"""What Punchcard is told to stay below: half of that."""

_LIBRARY = ctypes.CDLL(None)

Attempt = Callable[[random.Random], None]
Begin = Callable[[Path], Attempt]


@dataclass(frozen=True)
class Finding:
    """A fault: what it is, and the input that shows it."""

    target: str
    seed: int
    what: str

    @property
    def place(self) -> str:
        """What tells it from other faults."""
        return self.what.split(": ")[0]

    def __str__(self) -> str:
        return f"python -m tests.fuzzing {self.target} --seed {self.seed}\n    {self.what}"


@dataclass
class Outcome:
    """What became of the inputs of one target; `grown` is what a worker's memory grew by, in bytes an input.

    It is the median over parts of a run: a single input that needs more than all before raises the memory once, by what the
    allocators of LLVM and torch keep, and the same input again does not. A leak raises it in every part.
    """

    inputs: int = 0
    refused: int = 0
    seconds: float = 0.0
    grown: float = 0.0
    slowest: tuple[float, int] = (0.0, 0)
    findings: list[Finding] = field(default_factory=list)

    def different(self) -> list[Finding]:
        """The first finding of each fault."""
        return list({finding.place: finding for finding in reversed(self.findings)}.values())[::-1]

    def __str__(self) -> str:
        return (f"{self.inputs} inputs, {self.refused} of them refused, in {self.seconds:.1f} s of CPU; the slowest took "
                f"{self.slowest[0]:.2f} s (seed {self.slowest[1]}); {self.grown:.0f} bytes of growth an input; "
                f"{len(self.findings)} faults")


def input_of(target: str, seed: int) -> random.Random:
    """All that an input is made from."""
    return random.Random(f"{target} {seed}")


def explore(target: str, begin: Begin, seeds: range, folder: Path) -> Outcome:
    """Try the inputs of these seeds; everything that they write goes below the folder."""
    outcome = Outcome()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    log, room = folder / "log", folder / "room"
    with mmap.mmap(-1, 8) as place:
        while seeds:
            log.write_text("")
            shutil.rmtree(room, ignore_errors=True)
            room.mkdir()
            place[:] = seeds.start.to_bytes(8, "little")
            status = _forked(lambda seeds=seeds: _work(target, begin, seeds, room, log, place))  # type: ignore[misc]
            _account(outcome, target, log)
            if status == 0:
                break
            seed = int.from_bytes(place[:], "little")
            outcome.inputs += 1
            outcome.findings.append(Finding(target, seed, _end_of(status, log)))
            seeds = range(seed + 1, seeds.stop)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    outcome.seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return outcome


def enter(folder: Path) -> None:
    """Go where an input finds its files, with a budget, and with code that is kept there and not with the user's."""
    os.chdir(folder)
    os.environ.update({"PUNCHCARD_CACHE": str(folder.with_name("code")), VARIABLE: BUDGET})


def allow(seconds: float) -> None:
    """Let this input take so many seconds of CPU. Where it has no limit, it gets none."""
    if signal.getitimer(signal.ITIMER_PROF)[0]:
        signal.setitimer(signal.ITIMER_PROF, seconds)


def _forked(work: Callable[[], None]) -> int:
    """How a process that does this ends."""
    process = os.fork()
    if process == 0:
        status = 3
        try:
            work()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def _work(target: str, begin: Begin, seeds: range, folder: Path, log: Path, place: mmap.mmap) -> None:
    with open(log, "a", buffering=1) as notes, open(os.devnull, "r+b") as nothing:
        for descriptor, file in ((0, nothing), (1, nothing), (2, notes)):
            os.dup2(file.fileno(), descriptor)
        gc.freeze()  # what there is already is not looked at, and so not copied for the worker
        enter(folder)
        faulthandler.enable(notes)
        faulthandler.register(signal.SIGPROF, notes, chain=True)  # what chains ends the process
        faulthandler.dump_traceback_later(SECONDS_BEFORE, exit=True, file=notes)
        attempt = begin(folder)
        limit = _status("VmSize") + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        gc.collect()
        gc.freeze()
        for number, seed in enumerate(seeds):
            place[:] = seed.to_bytes(8, "little")
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            faulthandler.dump_traceback_later(SECONDS_WAITING, exit=True, file=notes)
            _try(attempt, target, seed, notes)
            if (number + 1) % 250 == 0 or number + 1 == len(seeds):
                signal.setitimer(signal.ITIMER_PROF, 0)
                _write(notes, number=number + 1, memory=memory_held())
        faulthandler.cancel_dump_traceback_later()


def _try(attempt: Attempt, target: str, seed: int, notes: TextIO) -> None:
    started = time.process_time()
    refused, what = False, None
    try:
        attempt(input_of(target, seed))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        refused, what = isinstance(error, REFUSED), fault_of(error)
    _write(notes, seed=seed, seconds=time.process_time() - started, refused=refused, what=what)


def _write(notes: TextIO, **record: object) -> None:
    notes.write(json.dumps(record) + "\n")


def _account(outcome: Outcome, target: str, log: Path) -> None:
    """Add what a worker wrote down."""
    memory: list[tuple[int, int]] = []
    for line in log.read_text(errors="replace").splitlines():
        if not line.startswith("{"):
            continue
        record = json.loads(line)
        if "memory" in record:
            memory.append((record["number"], record["memory"]))
            continue
        outcome.inputs += 1
        outcome.refused += record["refused"]
        outcome.slowest = max(outcome.slowest, (record["seconds"], record["seed"]))
        if record["what"] is not None:
            outcome.findings.append(Finding(target, record["seed"], record["what"]))
    settled = memory[len(memory) // 3 :]  # what is made once, in the first inputs, is no growth
    if steps := [(after - before) / (last - first) for (first, before), (last, after) in pairwise(settled)]:
        outcome.grown = max(outcome.grown, median(steps))


def _end_of(status: int, log: Path) -> str:
    """Why a worker ended too early, and where."""
    text = log.read_text(errors="replace")
    late = status == -signal.SIGPROF or "Timeout (" in text
    how = "Timeout" if late else f"a crash with status {status}"
    frames = re.findall(r'File ".*/punchcard/(\S+)", line (\d+) in (\S+)', text)
    where = " at {}:{} in {}".format(*frames[0]) if frames else f": {' '.join(text.split())[-300:]}"
    return f"{how}{where}"


def memory_held() -> int:
    """What this process holds, without what is only kept for the next time: what a cache with a limit keeps is no growth."""
    for name, module in list(sys.modules.items()):
        for value in list(vars(module).values()) if name.startswith("punchcard.") else ():
            if isinstance(value, _lru_cache_wrapper) and value.cache_parameters()["maxsize"] is not None:
                value.cache_clear()
    gc.collect()
    if hasattr(_LIBRARY, "malloc_trim"):  # of the GNU library
        _LIBRARY.malloc_trim(0)
    return _status("RssAnon")


def _status(name: str) -> int:
    """A figure of this process, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) << 10
    return 0
