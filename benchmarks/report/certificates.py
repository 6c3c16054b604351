"""Proofs with a limit of time: each runs in a process of its own, which is ended when the time is over."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import time
from collections.abc import Iterable, Iterator
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from benchmarks.report.section import Figures
from punchcard.errors import ProofError
from punchcard.machines.base import Machine
from punchcard.machines.registry import built_in

Job = tuple[str, dict[str, Any]]
"""A kind of machine, and the options that one is built with."""


def built(kind: str, **options: Any) -> Machine[Any, Any]:
    """A machine of a kind of the registry."""
    make: Any = built_in().kind(kind).machine_class()
    machine: Machine[Any, Any] = make(**options)
    return machine


def declared(kind: str) -> bool:
    """Whether machines of a kind say what a loop means, so that a proof shows that."""
    return built_in().kind(kind).machine_class().meaning is not Machine.meaning


def prove(job: Job) -> Figures:
    """Claims, questions to the solver and seconds of a certificate; or the claim that failed, or why there is none."""
    kind, options = job
    try:
        found = built(kind, **options).prove()
    except ProofError as why:
        return {"none": str(why)}
    if not found.proven:
        return {"failed": found.failed}
    return {"claims": len(found.claims), "questions": sum(claim.questions for claim in found.claims),
            "seconds": round(found.seconds, 1), "digest": found.digest}


def _child(job: Job, answer: Connection) -> None:
    answer.send(prove(job))


def proven(jobs: Iterable[Job], seconds: float, at_once: int = 2) -> Iterator[tuple[Job, Figures]]:
    """Each job with its proof, as they end; one that takes longer than `seconds` is given up."""
    context = multiprocessing.get_context("spawn")
    waiting, running = list(jobs), dict[BaseProcess, tuple[Job, Connection, float]]()
    try:
        while waiting or running:
            while waiting and len(running) < at_once:
                receiver, sender = context.Pipe(duplex=False)
                process: BaseProcess = context.Process(target=_child, args=(waiting[0], sender), daemon=True)
                process.start()
                sender.close()
                running[process] = waiting.pop(0), receiver, time.perf_counter()
            multiprocessing.connection.wait([receiver for _, receiver, _ in running.values()], timeout=0.5)
            for process, (job, receiver, begin) in list(running.items()):
                late = time.perf_counter() - begin > seconds
                if receiver.poll() or late or not process.is_alive():
                    yield job, _answer(receiver, seconds)
                    process.terminate()
                    process.join()
                    del running[process]
    finally:
        for process in running:
            process.terminate()


def _answer(receiver: Connection, seconds: float) -> Figures:
    if not receiver.poll():
        return {"none": f"not within {seconds:g} s"}
    try:
        found: Figures = receiver.recv()
    except EOFError:
        return {"none": "the process ended without an answer"}
    return found
