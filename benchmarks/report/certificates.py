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
from punchcard.machines.base import Machine
from punchcard.machines.registry import built_in

Job = tuple[str, dict[str, Any]]
"""A kind of machine, and the options that one is built with."""


def declared(kind: str) -> bool:
    """Whether machines of a kind say what a loop means, so that a proof shows that."""
    return built_in().kind(kind).machine_class().meaning is not Machine.meaning


def prove(job: Job) -> Figures:
    """Claims, questions to the solver and seconds of a proof; or the claim that failed, or why there is no proof."""
    try:
        from punchcard.proof.layers import Failed
        from punchcard.proof.proving import Proof
    except ImportError as missing:
        return {"none": f"{missing.name} is not installed"}
    kind, options = job
    begin = time.perf_counter()
    proof = Proof(built_in().kind(kind).machine_class()(**options))
    try:
        proof.run()
    except Failed as failed:
        return {"failed": failed.claim}
    return {"claims": len(proof.claims.shown), "questions": proof.solver.questions,
            "seconds": round(time.perf_counter() - begin, 1)}


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
                process = context.Process(target=_child, args=(waiting[0], sender), daemon=True)
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
