"""Calls on many workers, by the protocol of `concurrent.futures.Executor`: one worker a lane, one call at a time in each.

    with LaneExecutor(4, ProcessLane) as executor:
        executor.submit(function, argument).result()

A pool of Python breaks when one of its processes dies. Here a worker that dies, or takes longer than it may, ends its own
call with an error; its lane starts another worker. `ProcessLane` is a process, and `ray_lane.py` has an actor of Ray.
"""

from __future__ import annotations

import os
import pickle
import queue
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe
from types import TracebackType
from typing import Any, NamedTuple, Protocol, Self, TypeVar

from punchcard.errors import WorkerError

Value = TypeVar("Value")
WORKER = "punchcard.workers.process"


class WorkerDied(WorkerError):
    """A worker ended in the middle of a call: it was killed, or its machine went away."""


class WorkerTimeout(WorkerError):
    """A worker took longer than a call may take, and was ended."""


class LaneUnavailable(WorkerError):
    """No worker can be started."""


class Lane(Protocol):
    """A worker that makes one call at a time."""

    def call(self, function: Callable[..., Value], arguments: tuple[Any, ...], seconds: float | None) -> Value:
        """The value of a call. Raises what it raises, `WorkerDied`, or `WorkerTimeout` after so many seconds."""
        ...

    def close(self) -> None:
        """End the worker."""
        ...


class ProcessLane:
    """A separate process, with one thread for arithmetic. It does not import the caller's main module.

    memory   bytes that it may use; more is a `MemoryError` in the call
    budget   what is estimated to need more bytes is refused there, as it is here
    """

    def __init__(self, memory: int = 0, budget: int = 0) -> None:
        own, other = Pipe()
        paths = os.pathsep.join(path for path in sys.path if path)
        usual = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", WORKER, str(other.fileno()), str(memory), str(budget)],
                pass_fds=[other.fileno()],
                env={**usual, **os.environ, "PYTHONPATH": paths}, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL, start_new_session=True)  # Ctrl-C is for the caller alone
        except OSError as error:
            own.close()
            raise LaneUnavailable(f"a worker cannot be started: {error}") from None
        finally:
            other.close()
        self._connection: Connection[Any, Any] = own

    def call(self, function: Callable[..., Value], arguments: tuple[Any, ...], seconds: float | None) -> Value:
        text = pickle.dumps((function, arguments))  # what cannot be sent is the caller's error, and the worker lives
        try:
            self._connection.send_bytes(text)
            if not self._connection.poll(seconds):
                raise WorkerTimeout(f"a worker took more than {seconds:g} seconds")
            good, value = self._connection.recv()
        except (EOFError, OSError):
            status = self._process.wait()
            why = f"by signal {-status}" if status < 0 else f"with status {status}"
            raise WorkerDied(f"a worker ended {why} in the middle of its work") from None
        if not good:
            raise value
        found: Value = value
        return found

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._connection.close()


class _Call(NamedTuple):
    future: Future[Any]
    seconds: float | None
    function: Callable[..., Any]
    arguments: tuple[Any, ...]


class LaneExecutor(Executor):
    """So many lanes, each started when it is first needed. `start` makes one."""

    def __init__(self, lanes: int, start: Callable[[], Lane]) -> None:
        if lanes < 1:
            raise WorkerError(f"workers={lanes}: there must be 1 or more")
        self.lanes, self._start = lanes, start
        self._queue: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._lock, self._open, self._alive = threading.Lock(), dict[int, Lane](), lanes
        self._closed = self._killed = False
        self._failure: LaneUnavailable | None = None
        self._threads = [threading.Thread(target=self._serve, args=(number,), daemon=True, name=f"lane {number}")
                         for number in range(lanes)]
        for thread in self._threads:
            thread.start()

    def submit(self, fn: Callable[..., Value], /, *args: Any, **kwargs: Any) -> Future[Value]:
        if kwargs:
            raise WorkerError(f"{', '.join(kwargs)}: a call on a worker takes arguments by their order")
        return self.submit_within(None, fn, *args)

    def submit_within(self, seconds: float | None, function: Callable[..., Value], *arguments: Any) -> Future[Value]:
        """Like `submit`; a call that takes more seconds ends in `WorkerTimeout`."""
        future: Future[Value] = Future()
        with self._lock:
            if self._closed:
                raise RuntimeError("the executor is shut down")
            if self._failure is not None:
                raise self._failure
            self._queue.put(_Call(future, seconds, function, arguments))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End all workers. Without `wait`, also those in the middle of a call."""
        with self._lock:
            first, self._closed = not self._closed, True
        if cancel_futures:
            self._drain(None)
        if first:
            for _ in range(self.lanes):
                self._queue.put(None)
        if not wait:
            self._killed = True
            for number in list(self._open):
                self._end(number)
        for thread in self._threads:
            thread.join()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.shutdown(wait=kind is None, cancel_futures=kind is not None)

    def __enter__(self) -> Self:
        return self

    def _serve(self, number: int) -> None:
        while (call := self._queue.get()) is not None:
            if not call.future.running() and not call.future.set_running_or_notify_cancel():
                continue
            try:
                lane = self._open.get(number)
                if lane is None:
                    self._open[number] = lane = self._start()
                if self._killed:  # while the lane started, so nobody has ended it
                    raise WorkerDied("a worker was ended before its call")
                call.future.set_result(lane.call(call.function, call.arguments, call.seconds))
            except LaneUnavailable as error:
                self._retire(call, error)
                return
            except (WorkerDied, WorkerTimeout) as error:
                self._end(number)
                call.future.set_exception(error)
            except BaseException as error:
                call.future.set_exception(error)
        self._end(number)

    def _end(self, number: int) -> None:
        """End a lane, once: its own thread and `shutdown` may both ask."""
        lane = self._open.pop(number, None)
        if lane is not None:
            with suppress(OSError):
                lane.close()

    def _retire(self, call: _Call, error: LaneUnavailable) -> None:
        """A lane without a worker gives its call to the others; the last one ends all calls."""
        with self._lock:
            self._alive -= 1
            if self._alive and not self._closed:
                self._queue.put(call)
                return
            self._failure = error
        call.future.set_exception(error)
        self._drain(error)

    def _drain(self, error: LaneUnavailable | None) -> None:
        with suppress(queue.Empty):
            while True:
                call = self._queue.get_nowait()
                if call is None:
                    continue
                if error is None:
                    call.future.cancel()
                else:
                    call.future.set_exception(error)
