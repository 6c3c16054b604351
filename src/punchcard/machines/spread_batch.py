"""A batch on many workers: programs go out as text, the ends of their runs come back.

A worker builds the machine once, from the file that `Machine.save` writes, and keeps it with its compiled code. Results are
put together by the caller, so they are those of a batch that runs here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, TypeAlias

from punchcard.card.formats import AnyArray
from punchcard.card.layout import Card, Layout, Pattern
from punchcard.card.packed import PackedCard
from punchcard.engines import NO_CONTROLS, Port
from punchcard.errors import PunchcardError
from punchcard.machines.base import AnyMachine
from punchcard.machines.batch import BatchEntry, BatchOptions, BatchOutcome, ProgramBatch, run_entries
from punchcard.machines.ports import Host
from punchcard.machines.running import Mark
from punchcard.machines.streams import Input, Traffic
from punchcard.workers.executor import workers_of
from punchcard.workers.lanes import LaneExecutor, WorkerDied

TRIES = 3
"""How often a part whose worker dies is run."""
KEPT_MACHINES = 4
SMALL = 64
"""Runs for each worker up to which all get one part; more go in four parts, so that no worker waits long for the others."""


class SentMachine(NamedTuple):
    """A machine: its class, and its file."""

    kind: type[AnyMachine]
    data: bytes

    @classmethod
    def of(cls, machine: AnyMachine) -> SentMachine:
        with TemporaryDirectory() as folder:
            machine.save(path := Path(folder) / "machine.safetensors")
            return cls(type(machine), path.read_bytes())


@lru_cache(maxsize=KEPT_MACHINES)
def received_machine(sent: SentMachine) -> AnyMachine:
    """The machine, built once in each worker."""
    with TemporaryDirectory() as folder:
        (path := Path(folder) / "machine.safetensors").write_bytes(sent.data)
        return sent.kind.load(path)


class SentCard(NamedTuple):
    """A packed card without its layout."""

    dtype: str
    fields: Mapping[str, AnyArray]


def sent_card(card: Card) -> Any:
    """A card that can be sent: a tensor, or the fields of a packed one."""
    return SentCard(card.dtype, card.fields) if isinstance(card, PackedCard) else card


def received_card(layout: Layout, sent: Card | SentCard) -> Card:
    """The card again."""
    return PackedCard(layout, sent.dtype, dict(sent.fields)) if isinstance(sent, SentCard) else sent


class EndedHost(Host):
    """What a host says after a run that was made elsewhere."""

    def __init__(self, host: Host) -> None:
        self.ended, self.fault, self.status = host.ended, host.fault, host.status
        self._errors, self._traffic = host.errors, host.traffic

    @property
    def errors(self) -> bytes:
        return self._errors

    @property
    def ports(self) -> Mapping[Pattern, Port]:
        return {}

    @property
    def traffic(self) -> Traffic:
        return self._traffic


class EntryEnd(NamedTuple):
    """The end of a run of a part: its mark with a card that can be sent, why it ended, and what its host says."""

    mark: Mark
    reason: Any
    error: PunchcardError | None
    host: EndedHost | None

    @classmethod
    def of(cls, entry: BatchEntry) -> EntryEnd:
        mark, host = replace(entry.mark, raw_card=sent_card(entry.mark.raw_card)), entry.host
        return cls(mark, entry.reason, entry.error, None if host is None else EndedHost(host))

    def put(self, entry: BatchEntry, layout: Layout) -> None:
        """Give it to the caller's entry."""
        entry.mark = replace(self.mark, raw_card=received_card(layout, self.mark.raw_card))
        entry.reason, entry.error, entry.host = self.reason, self.error, self.host


PartEnd: TypeAlias = tuple[list[EntryEnd], BatchOutcome]


def run_part(
    sent: SentMachine, given: Sequence[Any], inputs: Sequence[bytes], options: BatchOptions
) -> PartEnd:
    """What a worker does: some runs of a batch."""
    machine = received_machine(sent)
    programs = {text: machine.restore(text) for text in dict.fromkeys(one for one in given if isinstance(one, str))}
    cards = [programs[one] if isinstance(one, str) else received_card(machine.layout, one) for one in given]
    runs = ProgramBatch(machine, cards, inputs, options.loops)
    outcome = run_entries(machine, runs, options, NO_CONTROLS)
    return [EntryEnd.of(entry) for entry in runs.entries], outcome


def run_spread(
    machine: AnyMachine, runs: ProgramBatch, given: Sequence[Any], inputs: Sequence[Input], options: BatchOptions, *,
    workers: int | None, ray: str | bool | None,
) -> BatchOutcome:
    """Run the entries of a batch on workers: processes of this computer, or actors of a Ray; for "cuda" one a GPU."""
    sources = list[bytes]()
    for number, source in enumerate(inputs):
        if not isinstance(source, bytes):
            raise PunchcardError(f"input {number} of the batch is a {type(source).__name__}: on workers inputs are bytes")
        sources.append(source)
    once: dict[int, Any] = {}  # a program that is given often is written once
    for one, entry in zip(given, runs.entries, strict=True):
        if id(one) not in once:
            once[id(one)] = sent_card(one) if entry.program is None else machine.store(one)
    asked = [once[id(one)] for one in given]
    sent, alone = SentMachine.of(machine), replace(options, threads=options.threads or 1)
    with workers_of(workers, ray, gpu=options.device == "cuda") as executor:
        lanes = executor.lanes if isinstance(executor, LaneExecutor) else 1
        size = math.ceil(len(asked) / (lanes if len(asked) <= SMALL * lanes else 4 * lanes))
        parts = [range(first, min(first + size, len(asked))) for first in range(0, len(asked), size)]

        def submit(part: range) -> Future[PartEnd]:
            chosen = slice(part.start, part.stop)
            return executor.submit(run_part, sent, asked[chosen], sources[chosen], alone)

        outcomes = []
        for part, future in [(part, submit(part)) for part in parts]:
            ends, outcome = _answer(submit, part, future)
            for entry, end in zip(runs.entries[part.start : part.stop], ends, strict=True):
                end.put(entry, machine.layout)
            outcomes.append(outcome)
    first = outcomes[0]
    return BatchOutcome(first.engine, max(each.seconds for each in outcomes), max(each.compile_seconds for each in outcomes),
                        min(lanes, len(parts)) * first.threads, tuple(dict.fromkeys(note for each in outcomes
                                                                                     for note in each.notes)))


def _answer(submit: Callable[[range], Future[PartEnd]], part: range, future: Future[PartEnd]) -> PartEnd:
    """The answer of a worker; a part whose worker dies is run again."""
    for _ in range(TRIES - 1):
        try:
            return future.result()
        except WorkerDied:
            future = submit(part)
    return future.result()
