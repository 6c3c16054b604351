"""`punchcard bench`: programs that never end, ratios of figures from one run, and an engine that is wrong is refused."""

from __future__ import annotations

import json
import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from benchmarks import engines

from punchcard.api import build
from punchcard.benchmark import measurements
from punchcard.benchmark.sparse import SparseModel
from punchcard.benchmark.timing import Contender, length, rates
from punchcard.card.layout import Layout
from punchcard.engines import ENGINES, NO_CONTROLS, Controls, Run
from punchcard.engines.dense import Dense, threads
from punchcard.engines.lowered.batch_runner import LoweredBatchRunner
from punchcard.errors import PunchcardError, SizeError
from punchcard.machines import in_c
from punchcard.machines.fleq import oracle as fleq_oracle
from punchcard.machines.fleq import workloads as fleq_programs
from punchcard.machines.fleq.isa import FleqProgram
from punchcard.machines.registry import built_in
from punchcard.machines.subleq import oracle
from punchcard.machines.subleq.workloads import multiply
from punchcard.machines.von_neumann.languages.asq.assembler import assemble
from punchcard.machines.von_neumann.oracle import run as run_image
from punchcard.machines.von_neumann.workloads import COUNT
from tests.cases import EXAMPLES, soaked
from tests.command_line import assert_refused, invoke

pytestmark = pytest.mark.usefixtures("no_compiler")
ENGINE_NAMES = set(ENGINES) - {"auto"}
SHORT = {"seconds": 0.002, "repeats": 1}


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that records are the same everywhere; `test_in_c` has the interpreter in C."""
    in_c.compile_library.cache_clear()
    monkeypatch.setattr(in_c, "compiler", lambda: None)


# Programs


def test_multiplication_never_ends() -> None:
    program = multiply()
    outcome = oracle.run(program, 16, 100_000)
    assert (outcome.halted, outcome.steps) == (False, 100_000)
    memory = program.named(oracle.run(program, 16, 2 + 3 + 3 * 1000 - 1).state.memory)
    assert memory["product"] == (1234 * 1000 + 2**15) % 2**16 - 2**15


def test_the_counting_image_never_ends() -> None:
    ran = run_image(assemble(COUNT), memory=64, max_steps=100_000)
    assert (ran.stop, ran.steps) == (None, 100_000)
    labels = assemble(COUNT).labels
    assert ran.cells[labels["sum"]] > 0
    assert all(ran.cells[labels["cells"] + i] for i in range(1, 9)), "the store walks"


@pytest.mark.parametrize("d", [1, 4, 8])
def test_newton_inverts_again_and_again(d: int) -> None:
    program = fleq_programs.newton(d)
    steps = 3 + 5 * fleq_programs.ROUNDS
    for rounds in (1, 3):
        outcome = fleq_oracle.run(program, rounds * steps + rounds - 1)
        memory = program.named(outcome.state.memory)
        assert memory["X"] == pytest.approx(np.linalg.inv(memory["A"]), abs=1e-8)
        assert not outcome.halted


@pytest.mark.parametrize(("d", "points"), [(2, 5), (4, 40), (8, 100)])
def test_sgd_learns_the_weights(d: int, points: int) -> None:
    """Instructions walk through all points and come back."""
    program = fleq_programs.sgd(d, points)
    outcome = fleq_oracle.run(program, 30_000)
    memory = program.named(outcome.state.memory)
    weights, *_ = np.linalg.lstsq(memory["x"].T, memory["y"].T)
    assert memory["w"] == pytest.approx(weights, abs=1e-4)
    assert not outcome.halted


@pytest.mark.parametrize("program", [fleq_programs.newton(4), fleq_programs.sgd(4, 6)], ids=["newton", "sgd"])
def test_the_sparse_model_is_the_equation(program: FleqProgram) -> None:
    machine = build(program)
    model, card = SparseModel(machine.model), machine.punch(program)
    found = expected = card
    for _ in range(40):
        found, expected = model(found), machine.model(expected)
    assert torch.allclose(found, expected, rtol=0, atol=1e-9)


# Timing


class Clock:
    """Contenders whose time is known: a run takes `begin` seconds, and each step `step`."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int]] = []

    def contender(self, name: str, step: float, begin: float = 0.0, **how: bool) -> Contender:
        def make(steps: int) -> float:
            self.calls.append((name, steps))
            return begin + steps * step

        return Contender(name, make, **how)


def test_rates_are_those_of_long_runs() -> None:
    clock = Clock()
    found = rates([clock.contender("slow", 0.5), clock.contender("fast", 1e-6, begin=0.3, prepares=True),
                   clock.contender("huge", 9.0, once=True)], 0.1, 2)
    assert found == {"slow": pytest.approx(2), "fast": pytest.approx(1e6), "huge": pytest.approx(1 / 9)}
    assert clock.calls.count(("huge", 1)) == 1
    assert [name for name, _ in clock.calls[-7:]] == ["slow", "fast", "fast", "huge", "slow", "fast", "fast"], "in turn"


def test_lengths_are_found() -> None:
    clock = Clock()
    assert length(clock.contender("slow", 0.5), 0.1) == 1
    assert length(clock.contender("fast", 1e-7), 0.1) == pytest.approx(1_000_000, rel=0.1)
    assert length(clock.contender("fast", 1e-7, begin=0.01, prepares=True), 0.1) == pytest.approx(1_000_000, rel=0.1)
    assert length(clock.contender("fast", 1e-7, begin=1.0, prepares=True), 0.1) == pytest.approx(20_000_000, rel=0.1)


def test_one_thread_inside_only() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with threads(1):
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


# Records


QUICK = {("subleq", "multiply", "two-layer", None, 64), ("fleq", "newton", "compact", 4, 150),
         ("von-neumann", "count", "two-layer", None, 67), ("riscv", "sieve", "three-layer", None, 163)}


@pytest.mark.parametrize(("machine", "chosen"), [
    ("subleq", ENGINE_NAMES), ("fleq", {"dense", "lowered"}), ("von-neumann", {"dense", "scratchpad"}),
    ("riscv", {"dense", "scratchpad"}), soaked(None, ENGINE_NAMES)])
def test_quick_records(machine: str | None, chosen: set[str]) -> None:
    """What each record says, and that ratios are quotients of the figures; of all machines, where none is named."""
    only = () if machine is None else ("--machine", machine, "--engine", ",".join(sorted(chosen)))
    result = invoke("bench", "--quick", "--json", "--seconds", "0.005", *only, status=0)
    records = json.loads(result.stdout)
    groups: dict[tuple[Any, ...], dict[str, dict[str, Any]]] = {}
    rivals = {kind.name: kind.timing.rival for kind in built_in() if kind.timing is not None}
    for record in records:
        fields = {"machine", "program", "design", "engine", "dtype", "columns", "steps_per_second", "ratio_to_dense",
                  f"ratio_to_{rivals[record['machine']]}", "compile_seconds", "traced", "notes"}
        assert record.keys() == fields | ({"size"} if record["machine"] == "fleq" else set())
        place = tuple(record.get(name) for name in ("machine", "program", "design", "size", "columns"))
        groups.setdefault(place, {})[record["engine"]] = record
    assert set(groups) == {place for place in QUICK if machine in (None, place[0])}
    for (kind, *_), group in groups.items():
        rival = rivals[kind]
        assert group.keys() == chosen | {rival} | ({"csr"} if kind == "fleq" else set())
        for engine, record in group.items():
            assert record["dtype"] == ("float64" if kind == "fleq" else "float32")
            assert record["steps_per_second"] > 0
            for name, of in (("ratio_to_dense", "dense"), (f"ratio_to_{rival}", rival)):
                assert record[name] == pytest.approx(record["steps_per_second"] / group[of]["steps_per_second"])
            assert (record["compile_seconds"] is None) == (engine != "lowered")
            assert (record["traced"] is None) == (engine != "lowered")


def options(machine: str | None = None, **given: Any) -> measurements.BenchOptions:
    return measurements.BenchOptions(machine, **{**SHORT, **given})


def test_the_dense_engine_has_a_largest_card() -> None:
    few = options("subleq", columns=(64, 200), designs=("one-layer",), engines=("scratchpad",), dense_columns=100)
    small, large = measurements.measure(few)
    assert [r["engine"] for r in small] == ["dense", "scratchpad", "python"]
    assert [(r["engine"], r["ratio_to_dense"]) for r in large] == [("scratchpad", None), ("python", None)]
    (records,) = measurements.measure(replace(few, columns=(200,), dense_columns=300, few_columns=100))
    assert [r["notes"] for r in records] == [["a single loop was timed"], [], []]


def test_what_fits_the_budget_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that needs a tensor of a large card is left out there, and the others are measured."""
    def refuse(self: Layout, why: str = "") -> None:
        if self.columns > 100:
            raise SizeError("too large for the budget")

    monkeypatch.setattr(Layout, "check_room", refuse)
    remarks: list[str] = []
    chosen = options("subleq", columns=(64, 200), designs=("two-layer",), engines=("scratchpad", "lowered"),
                     dense_columns=100, traces=False)
    small, large = measurements.measure(chosen, remark=remarks.append)
    assert [record["engine"] for record in small][:3] == ["dense", "scratchpad", "lowered"]
    assert [record["engine"] for record in large][:2] == ["lowered", "python"]
    assert [record["traced"] for record in small][:3] == [None, None, None]
    assert any("scratchpad declines: too large for the budget" in remark for remark in remarks)


def test_machines_that_cannot_be_built_are_left_out() -> None:
    """The rows that can be measured are: an image has words that are long enough, and beyond all sizes there is a remark."""
    remarks: list[str] = []
    chosen = options("von-neumann", columns=(1 << 18, 1 << 40, 200), engines=("lowered",), dense_columns=1, traces=False)
    large, small = measurements.measure(chosen, remark=remarks.append)
    assert [records[0]["columns"] for records in (large, small)] == [(1 << 17) + 3, 131]
    assert any(remark.startswith(f"von-neumann, count: left out, memory={1 << 39}: ") for remark in remarks)


def test_sparse_weights_are_left_out_where_scores_do_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """They attend to all columns at once: 65,536 columns took 34 GB, and ended all measurements."""
    remarks: list[str] = []
    monkeypatch.setattr(measurements, "attending", lambda columns, entry_bytes: 1 << 40)
    chosen = options("fleq", columns=(150,), designs=("compact",), engines=("scratchpad",), dense_columns=1, quick=True)
    (records,) = measurements.measure(chosen, remark=remarks.append)
    assert {record["engine"] for record in records} == {"scratchpad", "numpy"}
    (remark,) = remarks
    assert "csr is left out: attention over 150 columns needs about 1 TiB of memory" in remark


@pytest.mark.parametrize("machine", ["subleq", "fleq"])
def test_other_designs(machine: str) -> None:
    (records,) = measurements.measure(options(machine, columns=(150,), designs=("paper",), engines=("dense",), quick=True))
    assert {(record["columns"], record["design"]) for record in records} == {(150, "paper")}


def test_cards_that_are_too_small_are_left_out() -> None:
    remarks: list[str] = []
    assert list(measurements.measure(options(columns=(10,), designs=("two-layer", "compact")), remark=remarks.append)) == []
    assert remarks[:2] == ["subleq, 10 columns: left out, the program needs 20",
                           "fleq, newton, size 4, 10 columns: left out, the program needs 64"]
    assert remarks[-2].startswith("von-neumann, 10 columns: left out, the image needs")
    assert remarks[-1].startswith("riscv, 10 columns: left out, the program needs")
    assert len(remarks) == 7


def test_an_engine_that_declines_or_hands_on_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    class On(Dense):
        notes = ("no reason",)

    monkeypatch.setitem(ENGINES, "on", On)
    remarks: list[str] = []
    chosen = options("subleq", columns=(64,), designs=("one-layer",), engines=("on", "lowered"))
    ((*records,),) = measurements.measure(chosen, remark=remarks.append)
    assert [r["engine"] for r in records] == ["dense", "python"]
    assert remarks[0] == "subleq, multiply, one-layer, float32, 64 columns: on is dense here: no reason"
    assert remarks[1].startswith("subleq, multiply, one-layer, float32, 64 columns: lowered declines: layer 1, head 2")


@pytest.mark.parametrize("machine", ["subleq", "fleq", "von-neumann"])
def test_an_engine_that_is_wrong_is_refused(machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Idle(Dense):
        """Ends too early."""

        def run(self, loops: int, controls: Controls = NO_CONTROLS) -> Run:
            return Run(self.card, 1, "loops", "idle", made={"idle": 1})

    class Lying(Idle):
        """Says that it made the loops."""

        def run(self, loops: int, controls: Controls = NO_CONTROLS) -> Run:
            time.sleep(1e-6 * min(loops, 100_000))
            return Run(self.card, min(loops, 100_000), "loops", "lying")

    def named(kind: type[Dense], name: str) -> Any:
        def make(*given: Any, **how: Any) -> Dense:
            runner = kind(*given, **how)
            runner.engine = name
            return runner

        return make

    monkeypatch.setitem(ENGINES, "idle", named(Idle, "idle"))
    monkeypatch.setitem(ENGINES, "lying", named(Lying, "lying"))
    chosen = options(machine, designs=("two-layer", "compact"), columns=(150,), engines=("idle",))
    with pytest.raises(PunchcardError, match="engine idle ended after 1 of"):
        list(measurements.measure(chosen))
    with pytest.raises(PunchcardError, match=r"engine lying does not give what (python|numpy) gives after \d+ loops"):
        list(measurements.measure(replace(chosen, engines=("lying",))))


@pytest.mark.parametrize("file", ["newton.fleq", "von_neumann/primes.asq", soaked("primes.subleq")])
def test_any_program_can_be_timed(file: str) -> None:
    """Whole runs of a program of one's own, on every engine."""
    more = ("--max-steps", "300", "--engine", "lowered") if file.endswith(".asq") else ()
    result = invoke("bench", str(EXAMPLES / file), "--quick", "--json", *more, status=0)
    records = json.loads(result.stdout)
    assert {record["engine"] for record in records} >= {"lowered", "numpy" if file.endswith(".fleq") else "python"}
    assert all(record["steps_per_second"] > 0 and record["program"] == Path(file).name for record in records)
    assert len({record["steps"] for record in records}) == 1


def test_a_program_is_timed_on_several_designs() -> None:
    table = invoke("bench", str(EXAMPLES / "add.subleq"), "--quick", "--design", "two-layer,paper")
    assert table.stdout.count("add.subleq") == 2 * (len(ENGINE_NAMES) + 1)


# Machines side by side


def test_a_batch_has_a_record_of_its_own() -> None:
    """The steps of all together, compared with the interpreter; a note says how much of the cores is used."""
    chosen = options("subleq", columns=(64,), designs=("two-layer",), engines=("lowered",), batch=5)
    (records,) = measurements.measure(chosen)
    assert [r["engine"] for r in records] == ["dense", "lowered", "lowered x 5", "python"]
    together = records[2]
    assert together["steps_per_second"] > 0
    assert together["ratio_to_python"] == pytest.approx(together["steps_per_second"] / records[3]["steps_per_second"])
    assert re.fullmatch(r"[\d.]+ times \(\d+ threads? x one machine alone\)", together["notes"][-1])
    (slow,) = measurements.measure(replace(chosen, engines=("scratchpad",)))
    assert [r["engine"] for r in slow] == ["dense", "scratchpad", "python"], "only the lowered engine runs them side by side"


def test_a_batch_of_a_program() -> None:
    result = invoke("bench", str(EXAMPLES / "multiply.subleq"), "--quick", "--json", "--engine", "lowered", "--batch", "3")
    assert result.exit_code == 0, result.stderr
    records = {record["engine"]: record for record in json.loads(result.stdout)}
    assert records.keys() == {"dense", "lowered", "lowered x 3", "python"}
    assert records["lowered x 3"]["steps"] == records["lowered"]["steps"]


def test_a_batch_that_is_wrong_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def lying(self: LoweredBatchRunner, loops: int, *how: object) -> list[Run]:
        time.sleep(1e-6 * loops)
        return [Run(self.groups[0].rows.state(0).card, loops, "loops", "lowered") for _ in range(5)]

    monkeypatch.setattr(LoweredBatchRunner, "run", lying)
    with pytest.raises(PunchcardError, match=r"lowered x 5 does not give what python gives after \d+ loops"):
        list(measurements.measure(options("subleq", columns=(64,), designs=("two-layer",), engines=("lowered",), batch=5)))


# The command


def test_bench_shows_tables() -> None:
    result = invoke("bench", "--machine", "subleq", "--columns", "64,200", "--design", "one-layer, paper", "--engine",
                    "dense", "--seconds", "0.002", "--dense-columns", "100", status=0)
    lines = [line for line in result.stdout.splitlines() if "dense" in line or "python" in line]
    assert len([line for line in lines if line.startswith("│")]) == 6
    assert "–: the dense engine is measured up to 100 columns (--dense-columns)" in result.stdout


@pytest.mark.parametrize(("arguments", "message"), [
    (["--columns", "64,x"], "'64,x': write positive integers separated by commas"),
    (["--columns", "0"], "write positive integers"),
    (["--design", "huge"], "'huge' is not one of paper, two-layer, one-layer, compact, three-layer"),
    (["--engine", ","], "write names separated by commas"),
    (["--engine", "dence"], "unknown engine 'dence' (did you mean 'dense'?)"),
    (["--seconds", "0"], "--seconds"),
    (["--batch", "0"], "--batch"),
    (["--machine", "abacus"], "'abacus' is not one of"),
    (["--machine", "fleq", "--design", "two-layer"], "nothing to measure"),
])
def test_bad_arguments(arguments: list[str], message: str) -> None:
    assert_refused(message, "bench", *arguments)


def test_the_script_writes_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str],
                                  monkeypatch: pytest.MonkeyPatch) -> None:
    """benchmarks/engines.py on records that are there."""
    chosen = options(columns=(150,), designs=("two-layer", "compact"), engines=("scratchpad",), quick=True)
    records = [record for group in measurements.measure(chosen) for record in group]
    (tmp_path / "records.json").write_text(json.dumps(records))
    monkeypatch.setattr("sys.argv", ["engines.py", "--records", str(tmp_path / "records.json")])
    engines.main()
    shown = capsys.readouterr().out
    assert shown.count("\n| ") == len(records) + 3
    assert "| multiply | two-layer | 150 | scratchpad |" in shown
