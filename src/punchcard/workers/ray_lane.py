"""Workers on a Ray cluster: one actor a lane, in which machines are built once and used again.

Ray's statistics of use stay off, unless the environment asks for them. A cluster with token authentication takes its token
as Ray does: from the variable RAY_AUTH_TOKEN, or the file that RAY_AUTH_TOKEN_PATH names.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import Any

from punchcard.errors import WorkerError
from punchcard.workers.lanes import LaneExecutor, LaneUnavailable, Value, WorkerDied, WorkerTimeout
from punchcard.workers.process import limit_memory

START_SECONDS = 120.0
"""How long an actor may take to start: it imports torch."""
CONNECT_SECONDS = 10.0
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}


class Actor:
    """What runs in a worker of Ray."""

    def __init__(self, memory: int, budget: int) -> None:
        limit_memory(memory, budget)

    def ready(self) -> bool:
        """Whether it is there."""
        return True

    def call(self, function: Callable[..., Value], arguments: tuple[Any, ...]) -> Value:
        return function(*arguments)


class ActorLane:
    """An actor that has a core of the cluster or, with `gpu`, a GPU: no other actor sees that one."""

    def __init__(self, memory: int, budget: int, gpu: bool = False) -> None:
        import ray

        made = ray.remote(Actor).options(num_cpus=1, num_gpus=int(gpu), max_restarts=0, scheduling_strategy="SPREAD")
        try:
            self._actor = made.remote(memory, budget)
            ray.get(self._actor.ready.remote(), timeout=START_SECONDS)
        except (ray.exceptions.RayError, RuntimeError, ConnectionError) as error:
            self.close()
            raise LaneUnavailable(f"Ray starts no worker: {_first_line(error)}") from None

    def call(self, function: Callable[..., Value], arguments: tuple[Any, ...], seconds: float | None) -> Value:
        import ray

        try:
            found: Value = ray.get(self._actor.call.remote(function, arguments), timeout=seconds)
            return found
        except ray.exceptions.GetTimeoutError:
            raise WorkerTimeout(f"a worker took more than {seconds:g} seconds") from None
        except ray.exceptions.RayTaskError as error:
            raise error.cause from None
        except (ray.exceptions.RayError, ConnectionError) as error:
            raise WorkerDied(f"a worker of Ray ended in the middle of its work: {_first_line(error)}") from None

    def close(self) -> None:
        import ray

        with suppress(AttributeError, ray.exceptions.RayError, RuntimeError, ValueError, ConnectionError):
            ray.kill(self._actor)


def _check_address(address: str) -> None:
    """Refuse an address at which nothing answers: Ray would end this process."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdecimal():
        try:
            socket.create_connection((host, int(port)), timeout=CONNECT_SECONDS).close()
        except (OSError, OverflowError) as error:
            raise WorkerError(f"cannot join the Ray at {address!r}: {error}") from None


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


@contextmanager
def ray_executor(
    address: str = "", workers: int | None = None, *, memory: int = 0, budget: int = 0, gpu: bool = False,
) -> Iterator[LaneExecutor]:
    """An executor on the cluster at an address, or on a Ray that is started here and ended again.

    workers   default: one for each core of the cluster or, with `gpu`, for each GPU
    memory    bytes that a worker may use; default: all. A GPU maps more than there is, so it takes no limit
    budget    what is estimated to need more bytes is refused by a worker; default: as its own environment says
    gpu       each worker has a GPU
    """
    if find_spec("ray") is None:
        raise WorkerError("--ray needs ray, which is not installed: pip install 'punchcard[ray]'")
    os.environ |= {name: os.environ.get(name, value) for name, value in QUIET.items()}
    import ray

    joined = ray.is_initialized()
    if not joined:
        given: dict[str, Any] = {"address": address} if address else {"address": "local", "include_dashboard": False}
        if not address and workers is not None:
            given["num_cpus"] = workers  # of GPUs Ray takes those that it finds
        _check_address(address)
        try:
            ray.init(**given, log_to_driver=False, logging_level="error", configure_logging=False)
        except (ConnectionError, RuntimeError, ValueError, OSError, ray.exceptions.RayError) as error:
            raise WorkerError(f"cannot join the Ray at {address or 'local'!r}: {_first_line(error)}") from None
    try:
        found = int(ray.cluster_resources().get("GPU" if gpu else "CPU", 0))
        if gpu and found < (workers or 1):
            raise WorkerError(f"the Ray at {address or 'local'!r} has {found} GPUs, {workers or 1} or more are wanted")
        with LaneExecutor(workers or max(1, found), lambda: ActorLane(memory, budget, gpu)) as executor:
            yield executor
    finally:
        if not joined:
            ray.shutdown()
