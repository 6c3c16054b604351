"""One run of a changed machine beside the run that is right, and what is measured of it.

The right run is made once by the unchanged machine, loop by loop with the interpreter, and its cards are kept. Then each
changed machine runs the same program, and every card is compared with the right one.
"""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from punchcard.budget import require
from punchcard.card.formats import AnyArray, as_array
from punchcard.card.layout import Card, as_tensor
from punchcard.engines import Controls
from punchcard.errors import LoweringError, PunchcardError, SizeError, SweepError, WeightsError
from punchcard.lazy import import_name
from punchcard.machines import checkpoint
from punchcard.machines.base import AnyMachine
from punchcard.machines.registry import Registry, installed
from punchcard.machines.result import Result
from punchcard.sweep.changes import changed
from punchcard.sweep.job import Setup, SweepJob
from punchcard.transformer.precision import Precision

WRONG = 0.5
"""A bit is wrong when its entry is nearer to another integer."""
KEPT_SETUPS = 8


@dataclass(frozen=True)
class RightRun:
    """The run that is right: the card after every loop, and how it ends."""

    machine: AnyMachine
    program: Any
    cards: list[AnyArray] = field(repr=False)
    result: Result[Any]
    near: float
    """How far an entry may be from the right one."""
    error: float | None
    """Of a machine of real numbers: how far its final memory is from the interpreter's, relative to its range."""


def registry_of(machines: tuple[str, ...]) -> Registry:
    """The installed machines and some of your own: "module:Class", or "file.py:Class"."""
    return installed(*(_class(place) for place in machines))


def _class(place: str) -> type[AnyMachine]:
    module, _, name = place.rpartition(":")
    try:
        if not module.endswith(".py"):
            named: type[AnyMachine] = import_name(place)
            return named
        known = f"punchcard_sweep_{Path(module).stem}"
        if known not in sys.modules:
            spec = importlib.util.spec_from_file_location(known, module)
            if spec is None or spec.loader is None:
                raise ImportError(f"{module!r} is not a Python file")
            sys.modules[known] = made = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(made)
        found: type[AnyMachine] = getattr(sys.modules[known], name)
        return found
    except Exception as error:  # a file of the user's may raise any
        why = f"{type(error).__name__}: {error}"
        raise SweepError(f"machines={place!r}: it must be 'module:Class' or 'file.py:Class' ({why})") from None


@lru_cache(maxsize=KEPT_SETUPS)
def build_machine(setup: Setup) -> tuple[AnyMachine, Any]:
    """The machine of a setup, unchanged, and the program."""
    registry = registry_of(setup.machines)
    given = dict(setup.options)
    dtype = given.pop("dtype", None)
    with TemporaryDirectory() as folder:
        file = Path(folder) / setup.program.name
        file.write_bytes(setup.program.data)
        try:
            program, kind, _, options = registry.load_with(file, given)
        except PunchcardError as error:
            raise type(error)(str(error).replace(f"{folder}/", "")) from None
    if setup.values:
        program = program.with_values(dict(setup.values))
    if dtype is not None or setup.temperature is not None or setup.gate is not None:
        gate = {} if setup.gate is None else {"gate": setup.gate}
        options["precision"] = Precision(dtype or "float64", setup.temperature, **gate)
    return kind.machine_class().for_program(program, **options), program


@lru_cache(maxsize=KEPT_SETUPS)
def right_run(setup: Setup, loops: int) -> RightRun:
    """The right run of a setup, with the temperature and the gate that the machine chooses by itself."""
    machine, program = build_machine(replace(setup, temperature=None, gate=None))
    cards: list[AnyArray] = []

    def keep(loop: int, card: Card) -> None:
        if not cards:
            size = machine.layout.width * machine.layout.columns * 8
            require(size * loops, f"the cards of {loops} loops", instead="make fewer loops")
        cards.append(as_array(as_tensor(card)).astype(np.float64, copy=True))

    start = checkpoint.begin(program, machine, engine="dense", max_steps=max(0, loops - machine.design.warm_up),
                             check="lockstep", every=checkpoint.DEFAULT_EVERY)
    report = checkpoint.resume(start, None, input=setup.input.encode(), controls=Controls(watch=keep))
    if not report.agrees:
        raise SweepError(f"{setup.program.name}: the unchanged machine differs from the interpreter: {report.why}")
    return RightRun(machine, program, cards, report.result, _near(machine), report.max_error)


def _near(machine: AnyMachine) -> float:
    from punchcard.machines.fleq.machine import NEAR

    return WRONG if machine.needed_bits else NEAR * float(getattr(machine, "range", 1.0))


class Comparing:
    """Compares every card of a run with the right one."""

    def __init__(self, right: RightRun) -> None:
        self.right = right
        self.first_wrong: int | None = None
        self.wrong_entries = 0
        self.drift = 0.0
        self.lost = False
        self.loops = 0

    def watch(self, loop: int, card: Card) -> None:
        """Called after each loop."""
        self.loops = loop
        if loop > len(self.right.cards):
            self.first_wrong = self.first_wrong or loop  # it continues where the right run has ended
            return
        with np.errstate(all="ignore"):
            off = np.abs(as_array(as_tensor(card)).astype(np.float64) - self.right.cards[loop - 1])
            wrong = int(np.count_nonzero(~(off < self.right.near)))
            largest = float(off.max(initial=0.0))
        self.lost = not np.isfinite(largest)
        if wrong and self.first_wrong is None:
            self.first_wrong, self.wrong_entries = loop, wrong
        if self.first_wrong is None:
            self.drift = max(self.drift, largest)

    def is_lost(self) -> bool:
        """Whether the card has entries that are not numbers: they stay, and nothing more is to be seen."""
        return self.lost


def measure(job: SweepJob) -> dict[str, Any]:
    """Make the run of a job. The row of it, without what every job has."""
    began = time.process_time()
    right = right_run(job.setup, job.loops)
    machine, program = build_machine(job.setup)
    prepared = time.process_time()
    generator = np.random.default_rng(int(job.key, 16))
    made, told = changed(machine, job.change, generator)
    comparing = Comparing(right)
    about = {"machine": machine.kind.name, "design": machine.design.name, "dtype": machine.precision.name,
             "changed": told, "right_loops": right.result.loops, "unchanged_error": right.error,
             "layers": len(machine.weights.layers)}
    # One loop more shows a run that does not halt where the right one does.
    steps = max(0, right.result.loops + (1 if right.result.halted else 0) - machine.design.warm_up)
    try:
        result = made.run(program, engine=job.engine, max_steps=steps, input=job.setup.input.encode(),
                          guarded=False, controls=Controls(watch=comparing.watch, interrupted=comparing.is_lost))
    except LoweringError as error:
        return {**about, "status": "declined", "message": str(error)}
    except (SizeError, WeightsError):
        raise
    except (PunchcardError, ArithmeticError, ValueError, IndexError) as error:  # a card that cannot be read or served
        return {**about, "status": "ok", "message": str(error), "loops": comparing.loops, "engine_used": job.engine,
                **_found(comparing, False), "seconds": time.process_time() - prepared, "build_seconds": prepared - began}
    correct = _is_right(made, program, result, right)
    return {**about, "status": "ok", "loops": result.loops, "engine_used": result.engine, "notes": "; ".join(result.notes),
            **_found(comparing, correct), "seconds": time.process_time() - prepared, "build_seconds": prepared - began}


def _found(comparing: Comparing, correct: bool) -> Mapping[str, Any]:
    return {"first_wrong_loop": comparing.first_wrong, "wrong_entries": comparing.wrong_entries, "drift": comparing.drift,
            "right": correct}


def _is_right(machine: AnyMachine, program: object, result: Result[Any], right: RightRun) -> bool:
    """Whether a run ends as the right one: by the same reason, with the same state and the same output."""
    if (result.reason, result.output, result.status) != (right.result.reason, right.result.output, right.result.status):
        return False
    try:
        return bool(machine.near(program, machine.read(result.raw_card), machine.read(right.result.raw_card)))
    except PunchcardError:
        return False
