"""Sweeps on a real Ray: one that is started here, two nodes of which one is killed, a head that goes away."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partialmethod
from pathlib import Path
from typing import Any

import pytest

from punchcard.errors import WorkerError
from punchcard.export.targets import missing_of
from punchcard.sweep import dispatch as dispatching
from tests.sweep_jobs import SmallJob, expected
from tests.test_sweep import rows_of, small, stable

pytestmark = pytest.mark.skipif(bool(missing_of(["ray", "pyarrow"])), reason="ray is not installed: clusters are not tested")
MEMORY = 1 << 30
START = 300.0
"""Seconds that a node may take to start: Ray's own limit is 30, and a busy computer takes that."""


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    from ray.cluster_utils import Cluster

    monkeypatch.setattr(Cluster, "_wait_for_node", partialmethod(Cluster._wait_for_node, timeout=START))


def test_a_ray_that_is_started_here() -> None:
    from punchcard.workers.ray_lane import ray_executor

    jobs = [SmallJob(number, "raises" if number == 7 else "fine") for number in range(30)]
    with ray_executor("", 1, memory=MEMORY) as executor:
        assert rows_of(jobs, executor, workers=1) == {each.number: expected(each) for each in jobs}
        assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"


@pytest.fixture
def cluster() -> Iterator[Any]:
    """A head without cores, and two nodes with one each."""
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    made.add_node(num_cpus=1)
    made.add_node(num_cpus=1)
    try:
        yield made
    finally:
        made.shutdown()


@pytest.mark.soak
def test_jobs_that_fail_on_a_cluster(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from punchcard.workers.ray_lane import ray_executor

    monkeypatch.setattr(dispatching, "GRACE", 1.0)
    kinds = {3: "raises", 17: "hangs", 22: "stuck", 30: "eats", 41: "dies"}
    jobs = [SmallJob(number, kinds.get(number, "fine")) for number in range(60)]
    with ray_executor(cluster.address, memory=MEMORY) as executor:
        assert executor.lanes == 2
        assert rows_of(jobs, executor) == {each.number: expected(each) for each in jobs}


@pytest.mark.soak
def test_a_node_that_is_killed(cluster: Any, tmp_path: Path) -> None:
    """In the middle of the work: some jobs are made, and more are left."""
    from punchcard.workers.ray_lane import ray_executor

    jobs = [SmallJob(number, marks=str(tmp_path), seconds=0.1) for number in range(200)]
    node, begun = next(iter(cluster.worker_nodes)), list[int]()

    def kill() -> None:
        while len(made := os.listdir(tmp_path)) < 20:
            time.sleep(0.05)
        cluster.remove_node(node, allow_graceful=False)
        begun.append(len(made))

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    with ray_executor(cluster.address, memory=MEMORY) as executor:
        found = rows_of(jobs, executor)
    killer.join(60)
    assert found == {each.number: expected(each) for each in jobs}
    assert begun
    assert begun[0] < len(jobs)


@pytest.mark.soak
def test_the_table_of_a_cluster_is_that_of_one_process(cluster: Any, tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as executor:
        alone = small().run(tmp_path / "alone", executor=executor, workers=1)
    assert stable(small().run(tmp_path / "ray", ray=cluster.address)).equals(stable(alone))


@pytest.mark.soak
def test_a_head_that_goes_away_and_comes_again(tmp_path: Path) -> None:
    """The sweep ends with an error, or is killed by Ray; on the new head it goes on where it was."""
    from ray.cluster_utils import Cluster

    with ThreadPoolExecutor(1) as executor:
        alone = small().run(tmp_path / "alone", executor=executor, workers=1)
    program = "import sys; from tests.test_sweep import small; small().run(sys.argv[1], ray=sys.argv[2], resume=True)"
    folder = tmp_path / "out"

    def command(address: str) -> list[str]:
        return [sys.executable, "-c", program, str(folder), address]

    quick = os.environ | {"RAY_gcs_rpc_server_reconnect_timeout_s": "5"}
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    with subprocess.Popen(command(made.address), env=quick) as process:
        while not (folder / "parts").exists() or not any((folder / "parts").iterdir()):
            assert process.poll() is None
            time.sleep(0.05)
        made.shutdown()
        process.wait(START)
    again = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        assert subprocess.run(command(again.address), env=quick, timeout=2 * START, check=False).returncode == 0
    finally:
        again.shutdown()
    from punchcard.sweep.results import Results

    assert stable(Results(folder)).equals(stable(alone))


@pytest.mark.soak
def test_an_address_where_nothing_is() -> None:
    from punchcard.workers.ray_lane import ray_executor

    with pytest.raises(WorkerError, match=r"cannot join the Ray at '127\.0\.0\.1:1'"), ray_executor("127.0.0.1:1"):
        pass
