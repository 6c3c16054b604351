"""Proofs with a limit of time: each runs in a process of its own, which ends when it has used its seconds of CPU."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import resource
import signal
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
    machine = built_in().kind(kind).machine_class()
    return machine.meaning is not Machine.meaning or machine.stages is not Machine.stages


def prove(job: Job) -> Figures:
    """Claims, questions to the solver and seconds of a certificate; or the claim that failed, or why there is none."""
    kind, options = job
    begin = time.process_time()
    try:
        found = built(kind, **options).prove()
    except ProofError as why:
        return {"none": str(why)}
    if not found.proven:
        return {"failed": found.failed}
    return {"claims": len(found.claims), "questions": sum(claim.questions for claim in found.claims),
            "seconds": round(time.process_time() - begin, 1), "digest": found.digest}


def _child(job: Job, seconds: int, answer: Connection) -> None:
    """The system ends this process when it has used its time."""
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    answer.send(prove(job))


def proven(jobs: Iterable[Job], seconds: int, at_once: int = 2) -> Iterator[tuple[Job, Figures]]:
    """Each job with its proof, as they end; one that takes more than so many seconds of CPU has none."""
    context = multiprocessing.get_context("spawn")
    waiting, running = list(jobs), dict[Connection, tuple[Job, BaseProcess]]()
    try:
        while waiting or running:
            while waiting and len(running) < at_once:
                receiver, sender = context.Pipe(duplex=False)
                process: BaseProcess = context.Process(target=_child, args=(waiting[0], seconds, sender), daemon=True)
                process.start()
                sender.close()  # so that the end of the process is the end of the pipe
                running[receiver] = waiting.pop(0), process
            ready = multiprocessing.connection.wait(list(running))
            for answered in [receiver for receiver in running if receiver in ready]:
                job, process = running.pop(answered)
                yield job, _answer(answered, process, seconds)
    finally:
        for _, process in running.values():
            process.terminate()


def _answer(receiver: Connection, process: BaseProcess, seconds: int) -> Figures:
    try:
        found: Figures = receiver.recv()
    except EOFError:
        process.join()
        late = process.exitcode in (-signal.SIGXCPU, -signal.SIGKILL)
        return {"none": f"not within {seconds} s" if late else f"ended with the status {process.exitcode}"}
    process.join()
    return found
