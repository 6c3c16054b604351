"""Sweeps: jobs by their content, changes by their seed, workers that fail, results that are kept."""

from __future__ import annotations

import json
import math
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import punchcard
from punchcard.errors import StorageError, SweepError, WorkerError
from punchcard.folders import alone_in
from punchcard.sweep import dispatch as dispatching
from punchcard.sweep.changes import changed, rounded
from punchcard.sweep.dispatch import SweepProgress, dispatch
from punchcard.sweep.job import Change, SweepJob
from punchcard.sweep.plan import Builds, Changes, Sweep
from punchcard.sweep.trial import measure
from punchcard.workers.lanes import LaneExecutor, LaneUnavailable, ProcessLane, WorkerDied, WorkerTimeout
from tests.cases import EXAMPLES
from tests.command_line import assert_refused, invoke
from tests.sweep_jobs import LIMIT, WORK, SmallJob, expected
from tests.test_riscv_c import runs

pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed: sweeps are not tested")
FIRST = EXAMPLES / "sweeps" / "first.toml"
MEMORY = 1 << 29


def small(seeds: int = 2, **more: Any) -> Sweep:
    return Sweep("small", [Builds("multiply.subleq", folder=EXAMPLES, values={"a": 6, "b": 3}, word_bits=8,
                                  design=["two-layer", "one-layer"], **more)],
                 [Changes("weight-noise", amount=[1e-9, 1e-6]), Changes("rounding", to="int8")], seeds=seeds, loops=100)


def job(change: Change, **options: Any) -> SweepJob:
    setup = next(iter(Builds("multiply.subleq", folder=EXAMPLES, values={"a": 6, "b": 3}, word_bits=8,
                             **{"design": "two-layer", **options}).setups()))
    return SweepJob(setup, change, loops=100)


# Jobs


def test_the_product_of_the_lists_is_the_set_of_jobs() -> None:
    jobs = small().jobs
    assert len(jobs) == 2 * (2 * 2 + 1)  # a rounding has nothing random: one seed
    assert len({each.key for each in jobs}) == len(jobs)
    assert [each.key for each in small().jobs] == [each.key for each in jobs]
    assert {each.key for each in jobs} < {each.key for each in small(seeds=3).jobs}, "keys are made of content alone"


def test_a_file_is_the_same_as_the_object() -> None:
    found = Sweep.load(FIRST)
    again = Sweep("other", [Builds("multiply.subleq", folder=EXAMPLES, values={"a": 6, "b": 3}, word_bits=8,
                                   design=["two-layer", "one-layer"])],
                  [Changes("weight-noise", amount=[1e-9, 1e-8, 1e-7, 1e-6])], seeds=5, loops=100)
    assert found.key == again.key


@pytest.mark.parametrize(("text", "wanted"), [
    ("seeds = ", "not a TOML file"),
    ("seeds = 0\n[[build]]\nprogram = 'P'", "seeds=0"),
    ("loop = 3\n[[build]]\nprogram = 'P'", r"unknown name 'loop' \(did you mean 'loops'\?\)"),
    ("loops = 'x'\n[[build]]\nprogram = 'P'", "loops = \"x\": it has the wrong type"),
    ("", r"builds nothing: add \[\[build\]\]"),
    ("[[build]]\ndesign = 'paper'", "has no program"),
    ("[[build]]\nprogram = 'missing.subleq'", "no such file"),
    ("[[build]]\nprogram = 'P'\nprecision = 'float32'", "precision='float32' of a build.*dtype, temperature and gate"),
    ("build = 3", r"write \[\[build\]\]"),
    ("[[build]]\nprogram = 'P'\n[[change]]\nkind = 'noise'", "kind='noise'.*there are none, weight-noise"),
    ("[[build]]\nprogram = 'P'\n[[change]]\nkind = 'rounding'\nto = 'int4'", "to='int4'"),
    ("[[build]]\nprogram = 'P'\n[[change]]\nkind = 'weight-noise'\namount = -1", "amount=-1"),
    ("[[build]]\nprogram = 'P'\n[[change]]\nkind = 'weight-noise'\namout = 1", r"amout is not a field.*amount"),
    ("[[build]]\nprogram = 'P'\n[[change]]\nkind = 'weight-noise'\namount = []", "an empty list"),
    ("[[build]]\nprogram = 'P'\n[[change]]\namount = 1", "has no kind"),
    ("[[build]]\nprogram = 'P'\n[[change]]\nkind = ['none', 'rounding']", r"kind = \['none', 'rounding'\].*for each kind"),
    ("seeds = 1000000000000\n[[build]]\nprogram = 'P'", "seeds=1000000000000.*more than 10,000,000 jobs"),
    ("seeds = 1979-05-27\n[[build]]\nprogram = 'P'", 'seeds = "1979-05-27": it has the wrong type'),
    ("[[build]]\nprogram = 'P'\nmachines = '../x'", "machines='../x': it must be 'module:Class' or 'file.py:Class'"),
    ("[[build]]\nprogram = 'P'\nmachines = 'own.py:X'", "own.py:X': it must be .*NameError: name 'unknown'"),
    ("[[build]]\nprogram = 'main.py'\ncall = 64", "call=64: it must be a text"),
    ("limit = inf\n[[build]]\nprogram = 'P'", "limit=inf.*finite"),
    ("[[build]]\nprogram = 5", "program = 5: it must be a file, or a list of files"),
    ("[[build]]\nprogram = []", r"program = \[\]: a build needs a file"),
    ("[[build]]\nprogram = 'P'\nset = 5", "set = 5: it must be first values by name"),
    ("[[build]]\nprogram = 'P'\nset = ['a']", r"set = \['a'\]: it must be first values by name"),
    ("[[build]]\nprogram = 'P'\nvalues = {a = 1}", r"values = .* in a \[\[build\]\]: write set"),
    ("[[build]]\nprogram = 'P'\nmachines = 5", "machines = 5: it must be a list of 'module:Class'"),
    ("[[build]]\nprogram = 'P'\n[[change]]\nkind = 'weight-noise'", "'weight-noise' has no amount"),
    ("[[build]]\nprogram = 'P'\n[[change]]\nkind = 'weight-noise'\namount = 'big'", "amount='big'.*it must be a number"),
    ("[[build]]\nprogram = 'P'\n[[change]]\nkind = 'weight-noise'\namount = true", "amount=True.*it must be a number"),
    ("[[build]]\nprogram = 'P'\n[[change]]\nkind = 'rounding'\nto = 8", "to=8 of a change: it must be a text"),
    ("[[build]]\nprogram = 'P'\n[[change]]\nkind = 'rounding'\nto = 'int8'\nlayer = 1.5", "layer=1.5 of a change"),
    ("[[build]]\nprogram = 'P'\n[[change]]\nkind = 'rounding'\nto = 'int8'\namount = 2", "it does nothing there"),
])
def test_files_that_are_not_sweeps(text: str, wanted: str, tmp_path: Path) -> None:
    (tmp_path / "P").write_text("x")
    (tmp_path / "own.py").write_text("unknown")
    (tmp_path / "main.py").write_text("def main() -> int:\n    return 1\n")
    (tmp_path / "wrong.toml").write_text(text)
    with pytest.raises(SweepError, match=wanted):
        Sweep.load(tmp_path / "wrong.toml")


# Changes and measures


def test_an_unchanged_machine_is_right() -> None:
    found = measure(job(Change()))
    assert found["right"] is True
    assert (found["first_wrong_loop"], found["wrong_entries"], found["drift"], found["loops"]) == (None, 0, 0.0, 10)


def test_a_run_that_is_cut_off_is_right_too() -> None:
    found = measure(replace(job(Change("rounding", to="float64")), loops=5))
    assert (found["right"], found["loops"], found["first_wrong_loop"]) == (True, 5, None)


def test_noise_breaks_a_machine_and_is_the_same_for_the_same_job() -> None:
    little, much = (measure(job(Change("weight-noise", amount))) for amount in (1e-9, 1e-3))
    assert little["right"] is True
    assert 0 < little["drift"] < 1e-3
    assert much["right"] is False
    assert much["first_wrong_loop"] == 1
    again = measure(job(Change("weight-noise", 1e-9)))
    assert again["drift"] == little["drift"]


def test_activation_noise_and_temperature() -> None:
    quiet, loud = (measure(job(Change("activation-noise", amount))) for amount in (1e-12, 0.5))
    assert quiet["right"] is True
    assert 1e-13 < quiet["drift"] < 1e-6
    assert loud["right"] is False
    soft = measure(job(Change(), temperature=0.01))
    assert soft["right"] is False, "a softmax that is not hard takes from every column"


@pytest.mark.parametrize("bits", ["any", "sign", "exponent", "mantissa"])
def test_flips_change_as_many_bits_as_they_say(bits: str) -> None:
    program = punchcard.load(EXAMPLES / "multiply.subleq")
    machine = punchcard.build(program, design="two-layer", precision="float64")
    before = [array.copy() for _, array in machine.weights.state()]
    made, told = changed(machine, Change("bit-flips", 3, where="nonzero", bits=bits, layer=2), np.random.default_rng(1))
    flipped = [np.ascontiguousarray(one).view(np.uint64) ^ np.ascontiguousarray(two).view(np.uint64)
               for one, (_, two) in zip(before, made.weights.state(), strict=True)]
    found = [int(word) for array in flipped for word in array.ravel() if word]
    assert sum(word.bit_count() for word in found) == 3
    wanted = {"any": (0, 63), "sign": (63, 63), "exponent": (52, 62), "mantissa": (0, 51)}[bits]
    assert all(wanted[0] <= word.bit_length() - 1 <= wanted[1] for word in found)
    assert told.count("layers.1.") == 3
    assert all((one == two).all() for one, (_, two) in zip(before, machine.weights.state(), strict=True)), "a copy"


def test_rounding() -> None:
    values = np.array([0.0, 1.0, -3.0, 100.3, 127.0])
    assert rounded(values, "int8").tolist() == [0, 1, -3, 100, 127]
    assert rounded(np.array([1 + 2**-8, 257.0]), "bfloat16").tolist() == [1.0, 256.0]
    assert not rounded(np.zeros(3), "int8").any()


def test_changes_that_do_not_fit_are_refused() -> None:
    for change, wanted in ((Change("weight-noise", 1, layer=9), "layer=9.*has 2"),
                           (Change("bit-flips", 0.5), "whole number"), (Change("bit-flips", 1, tensor="wq"), "tensor='wq'")):
        with pytest.raises(SweepError, match=wanted):
            measure(job(change))


# Workers


def rows_of(jobs: list[SmallJob], executor: Any, workers: int = 2) -> dict[int, tuple[str, int | None]]:
    kept: dict[int, tuple[str, int | None]] = {}

    def keep(rows: Any) -> None:
        for each, row in rows:
            assert each.number not in kept, "a job is kept once"
            kept[each.number] = row["status"], row.get("value")

    dispatch(jobs, WORK, keep, executor, workers=workers, limit=LIMIT)
    return kept


def test_jobs_that_raise_hang_eat_memory_or_die_get_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatching, "GRACE", 1.0)
    kinds = {3: "raises", 17: "hangs", 30: "eats", 41: "dies"}
    jobs = [SmallJob(number, kinds.get(number, "fine")) for number in range(60)]
    with LaneExecutor(2, lambda: ProcessLane(MEMORY)) as executor:
        assert rows_of(jobs, executor) == {each.number: expected(each) for each in jobs}


@pytest.mark.soak
def test_a_worker_that_hears_no_signal_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatching, "GRACE", 1.0)
    jobs = [SmallJob(number, "stuck" if number == 2 else "fine") for number in range(5)]
    with LaneExecutor(2, ProcessLane) as executor:
        assert rows_of(jobs, executor) == {each.number: expected(each) for each in jobs}


def test_any_executor_of_the_standard_library() -> None:
    jobs = [SmallJob(number, "raises" if number == 5 else "fine") for number in range(2000)]
    with ThreadPoolExecutor(2) as executor:
        assert rows_of(jobs, executor) == {each.number: expected(each) for each in jobs}


class OnceLane:
    """A lane that can be closed once, as a connection can."""

    def __init__(self, begun: threading.Event) -> None:
        self.begun, self.closed = begun, threading.Event()
        self.closes = 0

    def call(self, function: Any, arguments: tuple[Any, ...], seconds: float | None) -> Any:
        self.begun.set()
        assert self.closed.wait(30)
        raise WorkerDied("ended")

    def close(self) -> None:
        self.closes += 1
        self.closed.set()
        if self.closes > 1:
            raise OSError(9, "Bad file descriptor")


def test_a_lane_is_ended_once_when_the_caller_fails() -> None:
    """The lane's own thread ends it too, and the caller's error is the one that is raised."""
    begun = threading.Event()
    lane = OnceLane(begun)

    def fill(executor: LaneExecutor) -> None:
        with executor:
            executor.submit(abs, 1)
            assert begun.wait(30)
            raise StorageError("the disk is full")

    with pytest.raises(StorageError, match="full"):
        fill(LaneExecutor(1, lambda: lane))
    assert lane.closes == 1


def test_a_lane_that_starts_while_all_are_ended_makes_no_call() -> None:
    begun, going = threading.Event(), threading.Event()

    def start() -> ProcessLane:
        begun.set()
        assert going.wait(30)
        return ProcessLane()

    executor = LaneExecutor(1, start)
    future = executor.submit(time.sleep, 1000)
    assert begun.wait(30)
    threading.Timer(0.2, going.set).start()
    executor.shutdown(wait=False)
    with pytest.raises(WorkerDied, match="before its call"):
        future.result()


def test_lanes_that_cannot_start() -> None:
    def none() -> ProcessLane:
        raise LaneUnavailable("no room")

    with LaneExecutor(2, none) as executor, pytest.raises(LaneUnavailable, match="no room"):
        rows_of([SmallJob(1)], executor)
    with pytest.raises(WorkerError, match="workers=0"):
        LaneExecutor(0, none)


def test_progress_says_the_rate_and_the_rest() -> None:
    assert str(SweepProgress(30, 100, 20, 2.0)) == "30 of 100 jobs, 10.0 a second, about 7 s left"
    assert math.isinf(SweepProgress(0, 100, 0, 0.0).left)


# Results


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """All rows of the small sweep, made in this process."""
    folder = tmp_path_factory.mktemp("sweep") / "whole"
    with ThreadPoolExecutor(1) as executor:
        return small().run(folder, executor=executor, workers=1)


def stable(results: Any) -> Any:
    from punchcard.sweep.results import TIMES

    return results.table().drop_columns(list(TIMES))


def test_the_table_has_every_job_once(whole: Any) -> None:
    table = whole.table()
    assert table["key"].to_pylist() == [each.key for each in small().jobs]
    assert set(table["status"].to_pylist()) == {"ok"}
    frame = whole.pandas()
    noisy = frame[(frame.change == "weight-noise") & (frame.amount == 1e-9)]
    assert noisy.right.all()
    assert (frame.word_bits == 8).all()
    assert "10 of 10 jobs" in repr(whole)


def test_a_stopped_sweep_goes_on_where_it_was(whole: Any, tmp_path: Path) -> None:
    class Stopped(Exception):
        pass

    def stop(progress: SweepProgress) -> None:
        if progress.made >= 4:
            raise Stopped

    with ThreadPoolExecutor(1) as executor:
        with pytest.raises(Stopped):
            small().run(tmp_path / "out", executor=executor, workers=1, progress=stop)
        made = len(list((tmp_path / "out" / "parts").iterdir()))
        with pytest.raises(SweepError, match="continue with --resume"):
            small().run(tmp_path / "out", executor=executor)
        with pytest.raises(SweepError, match="results of another sweep, 'small' with 10 jobs"):
            small(seeds=3).run(tmp_path / "out", executor=executor, resume=True)
        counted: list[SweepProgress] = []
        results = small().run(tmp_path / "out", executor=executor, workers=1, resume=True, progress=counted.append)
    assert made == 2
    assert counted[-1].here == 6
    assert stable(results).equals(stable(whole))
    (next((tmp_path / "out" / "parts").iterdir())).write_bytes(b"damaged")
    with pytest.raises(StorageError, match=r"not a part of a sweep's results.*delete it"):
        results.table()


@pytest.mark.parametrize("about", [{"key": 5}, {"jobs": "x"}, {"jobs": -1}, {"jobs": None}, {"name": None}])
def test_forged_descriptions_are_refused(about: dict[str, Any], whole: Any, tmp_path: Path) -> None:
    shutil.copytree(whole.folder, tmp_path / "out")
    found = json.loads((tmp_path / "out" / "sweep.json").read_text())
    (tmp_path / "out" / "sweep.json").write_text(json.dumps({**found, **about}))
    assert_refused("is not a description of a sweep as this version writes it", "sweep", "report", tmp_path / "out")


@pytest.mark.parametrize(("column", "value", "wanted"), [
    ("key", None, "a row has no key"), ("number", None, "a row has no number"), ("options", None, "a row has no options"),
    ("status", None, "a row has no status"), ("options", "{", "a row has '{' for options, which should be a JSON object"),
    ("values", "[1]", "a row has '[1]' for values"),
])
def test_forged_parts_are_refused(column: str, value: str | None, wanted: str, whole: Any, tmp_path: Path) -> None:
    from pyarrow import parquet

    shutil.copytree(whole.folder, tmp_path / "out")
    path = next((tmp_path / "out" / "parts").iterdir())
    table = parquet.read_table(path)
    kind = table.schema.field(column).type
    forged = pyarrow.array([value] * len(table), type=kind)
    parquet.write_table(table.set_column(table.column_names.index(column), column, forged), path)
    ran = invoke("sweep", "report", tmp_path / "out", status=2)
    assert wanted in ran.stderr
    assert "continue with --resume" in ran.stderr


def test_a_sweep_whose_parts_are_gone_is_made_anew(whole: Any, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    shutil.copy(whole.folder / "sweep.json", tmp_path / "out")
    with ThreadPoolExecutor(1) as executor:
        assert stable(small().run(tmp_path / "out", executor=executor, resume=True)).equals(stable(whole))


def test_one_process_at_a_time_works_in_a_folder(whole: Any) -> None:
    with ThreadPoolExecutor(1) as executor:
        with alone_in(whole.folder), pytest.raises(StorageError, match="another process is at work in"):
            small().run(whole.folder, executor=executor, resume=True)
        assert len(small().run(whole.folder, executor=executor, resume=True)) == 10


def test_a_full_disk_stops_a_sweep_and_spoils_nothing(whole: Any, tmp_path: Path) -> None:
    """A file that may not grow is as a disk that is full: the writer gets an error in the middle of a part."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    seen = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with ThreadPoolExecutor(1) as executor:
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
            with pytest.raises(StorageError, match="cannot write"):
                small().run(tmp_path / "out", executor=executor, workers=1)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
            signal.signal(signal.SIGXFSZ, seen)
        assert not list((tmp_path / "out" / "parts").iterdir())
        assert stable(small().run(tmp_path / "out", executor=executor, resume=True)).equals(stable(whole))


@pytest.mark.soak
def test_processes_give_the_same_rows_also_when_the_sweep_is_killed(whole: Any, tmp_path: Path) -> None:
    program = ("import sys; from tests.test_sweep import small; "
               "small().run(sys.argv[1], workers=2, resume=True)")
    command = [sys.executable, "-c", program, str(tmp_path / "out")]
    parts = tmp_path / "out" / "parts"
    with subprocess.Popen(command) as process:
        while not (parts.exists() and any(parts.iterdir())):
            time.sleep(0.02)
        os.kill(process.pid, signal.SIGKILL)
    assert subprocess.run(command, check=False).returncode == 0
    from punchcard.sweep.results import Results

    assert stable(Results(tmp_path / "out")).equals(stable(whole))


# The command


def test_the_command_makes_a_report(whole: Any) -> None:
    invoke("sweep", "report", whole.folder, status=0)
    page = (whole.folder / "report.md").read_text()
    assert "| two-layer | 1e-09 | 2 | 100 % |" in page
    assert "| design | all right up to | none right from |" in page
    assert (whole.folder / "plots" / "weight-noise.svg").read_bytes().startswith(b"<?xml")


def test_a_dry_run_counts_and_estimates(tmp_path: Path) -> None:
    ran = invoke("sweep", FIRST, "--dry-run", status=0)
    assert ran.stdout.startswith("40 jobs, 40 to make: about ")
    (tmp_path / "plan.toml").write_text(FIRST.read_text().replace("../", f"{EXAMPLES}/") + "layer = 2\n")
    ran = invoke("sweep", tmp_path / "plan.toml", "--dry-run", status=0)
    assert "jobs will be refused: layer=2 of a change: the machine has 1" in ran.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["plan.toml"]


@pytest.mark.parametrize(("before", "after", "wanted"), [
    ("design =", "desing =", "desing = ['two-layer', 'one-layer'] in a [[build]] of multiply.subleq (did you mean 'design'"),
    ("word_bits =", "word_bit =", "word_bit = 8 in a [[build]] of multiply.subleq (did you mean 'word_bits'?): there are"),
    ('"one-layer"', '"one-lair"', "design = 'one-lair' (did you mean 'one-layer'?): there are paper, two-layer, one-layer"),
    ("a = 6", "product_ = 6", "product_"), ("seeds =", "seedz =", "unknown name 'seedz' (did you mean 'seeds'?)"),
    ("loops = 100", 'engine = "denes"', "engine = 'denes' (did you mean 'dense'?)"),
    ("word_bits = 8", 'dtype = "float46"', "dtype = 'float46' (did you mean 'float64'"),
    ("word_bits = 8", 'word_bits = "8"', "word_bits='8': it must be an integer"),
    ("word_bits = 8", 'gate = "x"', "gate = 'x': it must be a finite number"),
    ("word_bits = 8", "temperature = nan", "temperature = nan: it must be a finite number"),
    ("amount =", "amuont =", "amuont is not a field of a change (did you mean 'amount'?)"),
])
@pytest.mark.parametrize("words", [("--dry-run",), ("-o", "out")])
def test_misspelt_names_are_refused_before_a_job_is_made(
    before: str, after: str, wanted: str, words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = FIRST.read_text().replace("../", f"{EXAMPLES}/")
    assert before in text
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.toml").write_text(text.replace(before, after))
    assert_refused(wanted, "sweep", "plan.toml", *words)
    assert_refused("'plan.toml': ", "sweep", "plan.toml", *words)
    assert [path.name for path in tmp_path.iterdir()] == ["plan.toml"]


def test_jobs_that_are_refused_are_counted(tmp_path: Path) -> None:
    """A machine that is too small is an error of every job: the sweep is not a success."""
    plan = tmp_path / "plan.toml"
    plan.write_text(FIRST.read_text().replace("word_bits = 8", "memory = 2").replace("../", f"{EXAMPLES}/"))
    ran = invoke("sweep", plan, "-o", tmp_path / "out", status=2)
    assert "40 jobs refused: " in ran.stderr
    assert "no job of this sweep could be run" in ran.stderr


@pytest.mark.parametrize(("words", "wanted"), [
    (("sweep", FIRST), "name it with -o DIR"),
    (("sweep", "report", "/nowhere"), "no such file"),
    (("sweep", "run", "missing.toml", "-o", "x"), "no such file"),
])
def test_wrong_commands(words: tuple[Any, ...], wanted: str) -> None:
    assert_refused(wanted, *words)


def test_a_worker_ends_in_the_middle_of_a_call_when_its_caller_is_killed(tmp_path: Path) -> None:
    program = ("import os, sys, time\nfrom punchcard.workers.lanes import ProcessLane\nlane = ProcessLane()\n"
               "open(sys.argv[1], 'w').write(str(lane.call(os.getpid, (), None)))\nlane.call(time.sleep, (600,), None)")
    note = tmp_path / "worker"
    with subprocess.Popen([sys.executable, "-c", program, str(note)]) as caller:
        while not (note.exists() and note.read_text()):
            time.sleep(0.02)
        caller.kill()
    stat, last = Path(f"/proc/{note.read_text()}/stat"), time.monotonic() + 30
    while runs(stat):
        assert time.monotonic() < last, "the worker goes on without its caller"
        time.sleep(0.02)


def test_a_call_that_takes_too_long() -> None:
    with LaneExecutor(1, ProcessLane) as executor:
        future: Any = executor.submit_within(0.5, time.sleep, 100)
        with pytest.raises(WorkerTimeout, match=r"more than 0\.5 seconds"):
            future.result()
        with pytest.raises(WorkerError, match="by their order"):
            executor.submit(sorted, [1], reverse=True)
        with pytest.raises(ZeroDivisionError):
            executor.submit(divmod, 1, 0).result()
