"""A worker process: calls come in by a connection, and values go out. It ends when its caller does, also in a call.

    python -m punchcard.workers.process DESCRIPTOR MEMORY BUDGET
"""

from __future__ import annotations

import os
import pickle
import resource
import sys
import threading
import time
from multiprocessing.connection import Connection
from typing import Any

from punchcard.budget import VARIABLE


def limit_memory(allowed: int, budget: int) -> None:
    """Let this process use so many bytes, and refuse what is estimated to need more than the budget; 0: no limit is set."""
    if budget:
        os.environ[VARIABLE] = str(budget)
    if allowed:
        _, most = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (allowed if most == resource.RLIM_INFINITY else min(allowed, most), most))


def end_with_caller() -> None:
    """Look once a second whether the caller is there; one that was killed cannot say that it ends."""
    caller = os.getppid()

    def watch() -> None:
        while os.getppid() == caller:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def serve(connection: Connection[Any, Any]) -> None:
    """Answer calls until the other side is gone."""
    while True:
        try:
            text = connection.recv_bytes()
        except (EOFError, OSError):
            return
        try:
            function, arguments = pickle.loads(text)
            answer = True, function(*arguments)
        except Exception as error:
            answer = False, error
        try:
            connection.send(answer)
        except OSError:
            return
        except Exception as error:  # a value, or an error, that cannot be sent
            connection.send((False, RuntimeError(f"{type(error).__name__}: {error}")))


if __name__ == "__main__":
    end_with_caller()
    limit_memory(int(sys.argv[2]), int(sys.argv[3]))
    serve(Connection(int(sys.argv[1])))
