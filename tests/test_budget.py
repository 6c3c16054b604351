"""The budget: what is too large is refused by its sizes, in one line, before anything is built."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import click
import numpy as np
import pytest
import torch

import punchcard
from punchcard import budget
from punchcard.card.packed import PackedCard
from punchcard.cli import main
from punchcard.engines import prepare
from punchcard.errors import PunchcardError, SizeError, SourceError, StorageError
from punchcard.learning import plan
from punchcard.learning.programs.network import Network
from punchcard.learning.programs.reference import descend
from punchcard.machines import checkpoint, storage
from punchcard.machines.fleq.machine import FleqMachine
from punchcard.machines.fleq.text.value_files import MOST_VALUES
from punchcard.machines.subleq.machine import SubleqMachine
from punchcard.workers.executor import workers_of
from tests.cases import EXAMPLES
from tests.command_line import invoke
from tests.forgeries import forge
from tests.opened import TURING

REFUSED = re.compile(r"needs about [0-9.]+ \w+( or more)? of memory, the budget is [0-9.]+ \w+: .*--max-memory")
HUGE = 10**9


@pytest.mark.parametrize(("text", "expected"), [("1", 1), ("512M", 512 << 20), ("16g", 16 << 30), ("1.5 GiB", 3 << 29),
                                                (1 << 33, 1 << 33)])
def test_a_budget_is_bytes_or_a_text(text: int | str, expected: int) -> None:
    with punchcard.max_memory(text):
        assert budget.limit() == expected
    assert budget.limit() == budget.DEFAULT


@pytest.mark.parametrize("text", ["", "0", "-1", "1X", "G", "1e9", "9" * 5000, 0, -5, True, 1.5, None])
def test_what_is_not_an_amount_is_refused(text: object) -> None:
    with pytest.raises(SizeError, match="such as 512M or 16G"), punchcard.max_memory(text):  # type: ignore[arg-type]
        pass


def test_the_environment_sets_the_budget_and_a_block_comes_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(budget.VARIABLE, "1M")
    with pytest.raises(SizeError, match=r"the budget is 1 MiB"):
        SubleqMachine()
    with punchcard.max_memory("1G"):
        SubleqMachine()
    monkeypatch.setenv(budget.VARIABLE, "much")
    with pytest.raises(SizeError, match=f"{budget.VARIABLE}=much"):
        SubleqMachine()


def test_the_message_names_an_amount_that_is_enough() -> None:
    with pytest.raises(SizeError) as refused, punchcard.max_memory("1M"):
        FleqMachine()
    with punchcard.max_memory(str(refused.value).split()[-1]):
        FleqMachine()


def in_time(call: object) -> str:
    """The message of a refusal, which takes no time and no memory to speak of."""
    begun = time.process_time()
    with pytest.raises(PunchcardError) as refused:
        call()  # type: ignore[operator]
    assert time.process_time() - begun < 2
    message = str(refused.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize("sizes", [{"size": HUGE}, {"size": 10**40}, {"size": 1000}, {"size": 200, "design": "paper"},
                                   {"size": 300, "functions": ["add", "transpose"]}])
def test_fleq_sizes_are_refused_before_anything_is_built(sizes: dict[str, object]) -> None:
    assert REFUSED.search(in_time(lambda: FleqMachine(**sizes)))  # type: ignore[arg-type]


def test_a_machine_may_be_looked_at_whose_card_is_too_large_to_run() -> None:
    machine = SubleqMachine(memory=16_000_000)
    program = punchcard.load(EXAMPLES / "multiply.subleq")
    for call in (lambda: machine.run(program), lambda: punchcard.run(program, machine), lambda: machine.punch(program)):
        assert REFUSED.search(in_time(call))


def test_a_large_card_runs_packed_and_is_refused_where_it_must_be_a_tensor() -> None:
    """The estimates follow the engine: of a card of 10^6 columns one is 10 GiB, the other fits the budget."""
    large = SubleqMachine(memory=1_000_000)
    assert large.memory_to_run() < budget.DEFAULT < large.memory_to_run("dense")
    program = punchcard.load(EXAMPLES / "multiply.subleq")
    machine = SubleqMachine(memory=20_000)
    with punchcard.max_memory((machine.memory_to_run() + machine.memory_to_run("dense")) // 2):
        for engine in ("dense", "scratchpad"):
            message = in_time(partial(punchcard.run, program, machine, engine=engine))
            assert REFUSED.search(message)
            assert f"on the {engine} engine" in message
        for steps in (None, 3):
            ran = punchcard.run(program, machine, max_steps=steps)
            assert ran.agrees
            assert ran.result.engine == "lowered"


def test_a_slower_engine_has_an_estimate_of_its_own() -> None:
    """What cannot be lowered is not made a tensor that is too large: the message says why it would have been one."""
    machine = SubleqMachine(memory=2, instructions=8)
    card = PackedCard.blank(machine.layout)  # positions that are all the same: no pointer finds its column
    for loops, why in ((2, "lowered: compiling takes longer than 2 loops"), (1000, ".* a mixture of many columns")):
        with pytest.raises(SizeError, match=rf"as a tensor \({why}\) needs about"), punchcard.max_memory("16K"):
            prepare("auto", machine.weights, machine.layout, card, loops=loops)


def test_a_machine_of_your_own_needs_nothing_for_it() -> None:
    program = TURING.kind.languages[0].assemble((EXAMPLES / "turing" / "increment.tm").read_text())
    with punchcard.max_memory("10M"):
        machine = TURING.for_program(program, squares=60_000)
        assert REFUSED.search(in_time(lambda: machine.run(program)))
        assert REFUSED.search(in_time(lambda: machine.punch(program)))
    with punchcard.max_memory("100K"):
        assert REFUSED.search(in_time(lambda: TURING.for_program(program)))


def test_the_dense_engine_keeps_to_the_budget() -> None:
    machine = SubleqMachine(memory=2, instructions=3)
    card = torch.zeros(1, 1).expand(machine.layout.width, 20_000)
    assert REFUSED.search(in_time(lambda: prepare("dense", machine.model, None, card)))


def test_an_export_that_follows_the_equation_is_estimated_first(tmp_path: Path) -> None:
    machine = SubleqMachine(memory=6000, instructions=8)
    what = r"attention over \d+ columns, as the equation has it, and \d+ pairs of cards needs about"
    with punchcard.max_memory("1G"), pytest.raises(SizeError, match=what):
        punchcard.export.write("ground-truth", machine, tmp_path, punchcard.load(EXAMPLES / "multiply.subleq"))


def test_saved_machines_and_checkpoints_are_refused_by_their_descriptions(tmp_path: Path) -> None:
    """The seal of a checkpoint is no secret: whoever forges one can make it fit."""
    program, path = punchcard.load(EXAMPLES / "newton.fleq"), tmp_path / "run"
    machine = FleqMachine.for_program(program)
    machine.save(path)
    forge(path, storage.KEY, {"sizes": {**storage.load(path)[0]["sizes"], "size": 10**6}})
    assert REFUSED.search(in_time(lambda: FleqMachine.load(path)))
    assert REFUSED.search(in_time(lambda: punchcard.Machine.load(path)))

    punchcard.run(program, machine, checkpoint=path, max_steps=1, engine="dense")
    described = storage.read(path, checkpoint.KEY, "checkpoint")[0]["machine"]
    forge(path, checkpoint.KEY, {"machine": {**described, "sizes": {**described["sizes"], "size": 10**6}}})
    with pytest.raises(StorageError, match="needs about"):
        checkpoint.load(path)
    result = invoke("run", "--resume", path, status=2)
    assert REFUSED.search(result.output)


COMMANDS = (
    ["info", "--machine", "fleq", "--size", str(HUGE)],
    ["run", str(EXAMPLES / "newton.fleq"), "--size", str(HUGE)],
    ["run", str(EXAMPLES / "newton.fleq"), "--instructions", "1000000"],
    ["run", str(EXAMPLES / "multiply.subleq"), "--memory", "16000000"],
    ["run", str(EXAMPLES / "multiply.subleq"), "--memory", "1000000", "--engine", "dense"],
    ["learn", str(EXAMPLES / "data.csv"), "--target", "y", "--size", str(HUGE)],
    ["learn", str(EXAMPLES / "data.csv"), "--target", "y", "--hidden", str(HUGE)],
    ["learn", str(EXAMPLES / "data.csv"), "--target", "y", "--hidden", "20000,20000"],
    ["learn", str(EXAMPLES / "data.csv"), "--target", "y", "--epochs", "100000000"],
    ["learn", str(EXAMPLES / "data.csv"), "--target", "y", "--epochs", str(10**12)],
    ["bench", "--machine", "subleq", "--design", "paper", "--columns", "1000000", "--engine", "scratchpad"],
    ["info", "--machine", "subleq", "--max-memory", "1M"],
    ["calc", "1+1", "--max-memory", "1M"],
)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command[0:1] + command[-2:]))
def test_every_command_that_builds_has_the_budget(command: list[str]) -> None:
    begun = time.process_time()
    result = invoke(*command, status=2)
    assert REFUSED.search(result.output), result.output
    assert result.output.count("\n") == 1
    assert time.process_time() - begun < 4


BUILDS_NOTHING = ("asm", "disasm", "playground", "sweep report", "ground-truth score")


def commands(command: click.Command, *names: str) -> Iterator[tuple[str, click.Command]]:
    """The commands by their names, those of groups one by one."""
    if not isinstance(command, click.Group):
        yield " ".join(names), command
        return
    for name, inner in command.commands.items():
        yield from commands(inner, *names, name)


def test_every_other_command_has_the_option() -> None:
    """A message that names `--max-memory` must not come from a command without it."""
    found = [name for name, each in commands(main) if not any("--max-memory" in option.opts for option in each.params)]
    assert sorted(found) == sorted(BUILDS_NOTHING)


@pytest.mark.parametrize("words", [("fuse", "sums", "--base", "{}", "-o", "new"), ("chat", "{}", "--prompt", "1+1=")])
def test_language_models_keep_to_the_budget(words: tuple[str, ...], tmp_path: Path) -> None:
    """By the size of their files, before they are read."""
    pytest.importorskip("transformers")
    kind = "punchcard-fused" if words[0] == "chat" else "llama"
    (tmp_path / "config.json").write_text(json.dumps({"model_type": kind}))
    with (tmp_path / "model.safetensors").open("wb") as file:
        file.truncate(5 << 30)
    result = invoke(*(word.format(tmp_path) for word in words), status=2)
    assert REFUSED.search(result.output), result.output
    (tmp_path / "model.safetensors").unlink()
    assert not REFUSED.search(invoke(*(word.format(tmp_path) for word in words)).output)


def test_workers_have_the_budget_of_who_starts_them() -> None:
    with punchcard.max_memory("123M"), workers_of(1, None) as executor:
        assert executor.submit(budget.limit).result() == 123 << 20
    with workers_of(1, None) as executor:
        assert executor.submit(budget.limit).result() == budget.DEFAULT


def test_the_option_raises_the_budget() -> None:
    command = ["info", "--machine", "fleq", "--json", "--size", "16"]
    assert invoke(*command, "--max-memory", "20M").exit_code == 2
    result = invoke(*command, "--max-memory", "1G")
    assert json.loads(result.output)["size"] == 16


def test_calls_refuse_what_is_too_large() -> None:
    big = np.eye(1000)
    for call in (lambda: punchcard.linalg.inverse(big), lambda: punchcard.linalg.qr(big),
                 lambda: punchcard.linalg.solve(big, np.ones(1000)),
                 lambda: punchcard.learn(np.ones((4, 1)), np.ones(4), hidden=HUGE),
                 lambda: punchcard.learn(np.ones((4, 1)), np.ones(4), epochs=10**12)):
        assert REFUSED.search(in_time(call))


def test_the_variables_of_a_text_are_limited_together() -> None:
    half = MOST_VALUES // 2 + 1
    text = f".data\nA matrix 1x{half}\nB matrix 1x{half}\nC matrix 1x{half}\n.code\nhalt\n"
    with pytest.raises(SourceError, match=rf"line 3.*at most {MOST_VALUES} values together, and {half - 2} are left"):
        punchcard.assemble(text, "fleq")


def test_a_tall_and_a_wide_variable_do_not_make_a_square() -> None:
    program = punchcard.assemble(".data\nA matrix 1x4000000\nB vector 4000000\n.code\nhalt\n", "fleq")
    assert "4000000 rows and 4000001 columns" in in_time(program.initial_memory)


def test_epochs_are_estimated_by_what_is_kept_of_them() -> None:
    """The estimate is for two such lists, NumPy's and the transformer's."""
    x = np.linspace(-1, 1, 2)[:, None]
    with pytest.raises(SizeError, match=r"KiB of memory") as refused, punchcard.max_memory("1K"):
        plan(x, x, hidden=8, epochs=400)
    estimate = float(str(refused.value).split("needs about ")[1].split()[0]) * 2**10 / 2
    network = Network(1, (8,))
    descend(network, network.initial(0), x, x, epochs=2, rate=0.01)  # what is made once is not counted
    tracemalloc.start()
    kept = descend(network, network.initial(0), x, x, epochs=400, rate=0.01).history
    traced = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert len(kept) == 400
    assert 0.5 < estimate / traced < 2


def test_progress_in_numpy() -> None:
    told: list[int] = []
    plan(np.ones((3, 1)), np.ones((3, 1)), epochs=4, rehearsing=told.append)
    assert told == [0, 1, 2, 3]


def test_a_card_of_shorter_numbers_takes_less_memory() -> None:
    double, single = (punchcard.SubleqMachine(memory=1000, precision=precision) for precision in ("float64", "float32"))
    in_double, in_single = (each.memory_to_run("dense") - each.memory_to_build() for each in (double, single))
    assert in_double == 2 * in_single


FULL = "full"
"""A program that uses nearly all cells of its machine."""
MEASURE = """
import re, sys
import punchcard
from punchcard.machines.fleq.machine import FleqMachine
from punchcard.machines.subleq.isa import Halt, Subleq
from punchcard.machines.subleq.machine import SubleqMachine

def peak():  # of this process alone: what getrusage says begins with the parent's
    return int(re.search("VmHWM:\\s*([0-9]+)", open("/proc/self/status").read())[1]) * 1024

how = dict(max_steps=200, check=False, engine=sys.argv[3])
def read(used):
    if sys.argv[2] != "full":
        return punchcard.load(sys.argv[2])
    return punchcard.Program.create([Subleq(0, 1, 0), Halt()], [number % 251 for number in range(used)])

if sys.argv[2]:  # what is made once, in a small run, is not counted
    program = read(1000)
    small = {"memory": 4096} if ".asq" in sys.argv[2] else {}
    punchcard.run(program, punchcard.build(program, **small), **how)
before = peak()
machine = eval(sys.argv[1])
if sys.argv[2]:
    punchcard.run(read(290_000), machine, **how)
    print(machine.memory_to_run(sys.argv[3]) / (peak() - before))
else:
    print(machine.memory_to_build() / (peak() - before))
"""


BUILT = ("FleqMachine(size=16)", "FleqMachine(size=32)", "FleqMachine(size=48, heads=3)",
         "FleqMachine(size=16, design='paper')", "FleqMachine(size=64, functions=['add', 'mul'])")
RUN = {"SubleqMachine(memory=30_000)": "multiply.subleq", "SubleqMachine(memory=100_000)": "multiply.subleq",
       "SubleqMachine(memory=300_000, precision='float32')": "multiply.subleq", "SubleqMachine(memory=300_000)": FULL,
       "punchcard.VonNeumannMachine(memory=65_536)": "von_neumann/primes.asq"}


@pytest.mark.soak
@pytest.mark.parametrize(("machine", "program", "engine"), [
    *((machine, "", "auto") for machine in BUILT),
    *((machine, program, engine) for machine, program in RUN.items() for engine in ("scratchpad", "auto"))])
def test_estimates_are_within_a_factor_of_the_measured_peak(
    machine: str, program: str, engine: str, tmp_path: Path,
) -> None:
    """An estimate is at least half of the peak of memory, and at most three times it. All code is compiled anew."""
    given = program if program in ("", FULL) else str(EXAMPLES / program)
    ran = subprocess.run([sys.executable, "-c", MEASURE, machine, given, engine],
                         capture_output=True, text=True, check=True,
                         env={**os.environ, "PUNCHCARD_CACHE": str(tmp_path)})
    assert 0.5 < float(ran.stdout) < 3, (machine, ran.stdout)
