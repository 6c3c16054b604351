"""The set of models whose mechanism is known: the truth is found again in the disguised models; answers are scored."""

from __future__ import annotations

import inspect
import json
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from punchcard.errors import PunchcardError
from punchcard.export.disguise import Disguise, Disguised
from punchcard.ground_truth.collection import make_set
from punchcard.ground_truth.model_builder import build_model
from punchcard.ground_truth.models import VARIANTS, specs
from punchcard.ground_truth.pairs import PairSource
from punchcard.ground_truth.score import NEAR, accuracy, area, opened, rates, score, summary
from tests.cases import EXAMPLES
from tests.command_line import assert_refused, invoke

ONLY = "two-layer"
KINDS = ("data", "pointer", "instruction", "position")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The two-layer SUBLEQ models of the small set."""
    folder = tmp_path_factory.mktemp("truth") / "set"
    with ThreadPoolExecutor(1) as executor:
        make_set("small", folder, pairs=16, only=ONLY, executor=executor)
    return folder


def truth_of(folder: Path, name: str) -> dict[str, Any]:
    files = [folder / "models" / name / "truth.json", folder / "test-truth" / f"{name}.json"]
    assert sum(file.exists() for file in files) == 1, "truth is in one place"
    return json.loads(next(file for file in files if file.exists()).read_text())  # type: ignore[no-any-return]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "models").iterdir())


def test_the_set_is_large_and_has_both_splits() -> None:
    full = list(specs("full"))
    assert len(full) >= 120
    assert len({each.name for each in full}) == len(full)
    assert {each.kind for each in full} == {"subleq", "von-neumann", "turing", "fleq", "riscv"}
    for kind in ("subleq", "von-neumann"):
        for variant in VARIANTS:
            assert {each.is_test for each in full if (each.kind, each.variant) == (kind, variant)} == {True, False}
    assert all(each.pairs >= 200 for each in full if each.kind in ("subleq", "von-neumann"))


def test_the_truth_is_found_again_by_patching_the_disguised_model(made: Path) -> None:
    """By the public folder alone: every edge of every model, patched in the model's own basis, has the effect as said."""
    for name in names(made):
        network, clean, corrupt, about = opened(made / "models" / name)
        wrote: list[dict[str, Any]] = [{}, {}]
        end = network.loop(clean, wrote=wrote[0].setdefault)
        network.loop(corrupt, wrote=wrote[1].setdefault)
        assert set(about["tasks"]) == set(KINDS)
        said = truth_of(made, name)["edges"]["all"]
        assert set(said) == set(network.edges())
        for edge, label in said.items():
            writer, reader = edge.split("->")
            moved = wrote[1][writer] - wrote[0][writer]
            other = network.loop(clean, read=partial(add_for, reader, moved))
            differs = bool((np.abs(other - end) > NEAR).any())
            assert differs == label, (name, edge)


def add_for(reader: str, moved: Any, part: str, card: Any) -> Any:
    """What a part reads: with something added, if it is the reader."""
    return card + moved if part == reader else card


IDLE = sorted({each.name.removesuffix("-idle") for each in specs("small", 4) if each.variant == "idle"})


@pytest.mark.parametrize("name", IDLE)
def test_idle_parts_cannot_be_told_by_weights_or_cards(name: str) -> None:
    """Exchange rows and idle rows: the parts change places, and weights and cards are what they were."""
    machine, _ = build_model(next(each for each in specs("small", 4) if each.name == f"{name}-idle"))
    hidden = Disguised(machine, Disguise(copies=1.0))
    own, rows = machine.layout.width, hidden.copied.shadowed
    exchange = np.arange(own + len(rows))
    exchange[rows], exchange[own:] = own + np.arange(len(rows)), rows
    assert np.array_equal(hidden.entry[exchange], hidden.entry), "cards are what they were"
    for layer, wide in zip(machine.weights.layers, hidden.plain, strict=True):
        heads, units = (np.roll(np.arange(2 * count), count) for count in (layer.heads, layer.hidden))
        assert (wide.heads, wide.hidden) == (len(heads), len(units)), "each part has a copy"
        assert not any(read[..., own:].any() for read in (
            wide.key[: layer.heads], wide.query[: layer.heads], wide.value[: layer.heads], wide.w1[: layer.hidden])), (
            "nothing of the machine reads an idle row")
        for array, other in ((wide.key, wide.key[heads][..., exchange]), (wide.query, wide.query[heads][..., exchange]),
                             (wide.value, wide.value[heads][:, exchange][..., exchange]),
                             (wide.temperature, wide.temperature[heads]), (wide.w1, wide.w1[units][:, exchange]),
                             (wide.b1, wide.b1[units]), (wide.b2, wide.b2[exchange]),
                             (wide.w2, wide.w2[exchange][:, units])):
            assert np.array_equal(array, other)


def answers(made: Path, kind: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    generator = np.random.default_rng(5)
    for name in names(made):
        truth = truth_of(made, name)
        if kind == "empty":
            found[name] = {"nodes": {}, "edges": {}}
            continue
        labelled = {part: {task: {each: float(label) if kind == "true" else float(generator.random())
                                  for each, label in labels.items()} for task, labels in truth[part].items()}
                    for part in ("nodes", "edges")}
        variables = {key: truth["variables"][key]["basis"] for key in list(truth["variables"])[-3:]}
        found[name] = {**labelled, **({"variables": variables} if kind == "true" else {})}
    return found


def test_true_random_and_empty_answers_score_as_they_should(made: Path) -> None:
    rows = score(made, answers(made, "true"))
    for row in rows:
        if row["kind"] == "variables":
            assert row["accuracy"] == 1.0 or row["accuracy"] != row["accuracy"]
        else:
            assert (row["precision"], row["recall"]) == (1.0, 1.0)
            assert row["roc"] == 1.0 or row["roc"] != row["roc"]
    chance = [row["roc"] for row in score(made, answers(made, "random")) if row["roc"] == row["roc"]]
    assert abs(np.mean(chance) - 0.5) < 0.1
    for row in score(made, answers(made, "empty")):
        assert (row["precision"], row["recall"]) == (1.0, 0.0)
        assert row["roc"] in (0.5,) or row["roc"] != row["roc"]
    assert "| edges | pointer | 5 |" in summary(rows)


def test_random_and_empty_answers_find_no_variable(made: Path) -> None:
    name, generator = names(made)[0], np.random.default_rng(7)
    variables = truth_of(made, name)["variables"]
    found = {key: generator.standard_normal(np.shape(each["basis"])).tolist() for key, each in variables.items()
             if each["moment"]}
    for answer in (found, dict[str, Any]()):
        figures = [row["accuracy"] for row in score(made, {name: {"variables": answer}})]
        scored = [figure for figure in figures if figure == figure]
        assert len(scored) > 3
        assert max(scored) < 0.1


def test_figures_of_scores() -> None:
    assert area(np.array([3.0, 1.0]), np.array([2.0, 1.0])) == 0.625
    found = rates({"a": True, "b": True, "c": False, "d": False}, {"a": 0.9, "c": 0.7})
    assert (found["precision"], found["recall"], found["roc"]) == (0.5, 0.5, 0.625)


def test_the_subspace_of_another_variable_scores_low(made: Path) -> None:
    name = names(made)[0]
    network, clean, corrupt, about = opened(made / "models" / name)
    variables = truth_of(made, name)["variables"]
    one = next(each for each in variables.values() if each["name"].startswith("difference after the attention"))
    other = next(each for each in variables.values() if len(each["basis"]) == len(one["basis"]) and each is not one)
    assert accuracy(network, clean, corrupt, one, np.array(one["basis"])) == 1.0
    assert accuracy(network, clean, corrupt, one, np.array(other["basis"])) < 0.5
    labels = load_file(made / "models" / name / "labels.safetensors")
    assert all(labels[key].shape == (len(clean), each["vectors"], len(each["columns"]))
               for key, each in about["variables"].items())


def test_the_same_seed_gives_the_same_bytes(made: Path, tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as executor:
        again = make_set("small", tmp_path / "again", pairs=16, only="two-layer-5bit-4x4-idle-rotated", executor=executor)
        with pytest.raises(PunchcardError, match="has a set already: continue with --resume, which mends it"):
            make_set("small", tmp_path / "again", executor=executor)
        with pytest.raises(PunchcardError, match="no model of the set 'small' has 'x86'"):
            make_set("small", tmp_path / "none", only="x86", executor=executor)
    first = json.loads((made / "manifest.json").read_text())["models"]
    for name, about in again["models"].items():
        assert about == first[name]


class Stop(Exception):
    """Ends a set in the middle."""


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_set_that_was_stopped_goes_on(made: Path, tmp_path: Path) -> None:
    """No model is made twice, and the folder is that of a set made in one go, byte for byte."""
    def stop(progress: Any) -> None:
        raise Stop

    def make(**options: Any) -> Any:
        with ThreadPoolExecutor(1) as executor:
            return make_set("small", tmp_path / "set", pairs=16, only=ONLY, executor=executor, **options)

    with pytest.raises(Stop):
        make(progress=stop)
    models = tmp_path / "set" / "models"
    kept = {path: path.stat().st_mtime_ns for name in names(tmp_path / "set") for path in (models / name).iterdir()
            if (tmp_path / "set" / "made" / f"{name}.json").exists()}
    assert kept
    with pytest.raises(PunchcardError, match="has an incomplete set: continue with --resume"):
        make()
    with ThreadPoolExecutor(1) as executor, pytest.raises(PunchcardError, match="a part of another set"):
        make_set("small", tmp_path / "set", pairs=17, only=ONLY, executor=executor, resume=True)
    make(resume=True)
    assert content(tmp_path / "set") == content(made)
    assert {path: path.stat().st_mtime_ns for path in kept} == kept, "what was whole is not made again"
    assert make(resume=True)["models"].keys() == set(names(made)), "and nothing is left to do"


def test_models_that_are_not_as_noted_are_made_again(made: Path, tmp_path: Path) -> None:
    """Of a set that is whole, and of one that was stopped: a file is gone, or another; a record is not one."""
    one = next(name for name in names(made) if name.endswith("-plain"))
    whole = tmp_path / "whole"
    shutil.copytree(made, whole)
    manifest = json.loads((whole / "manifest.json").read_text())
    first, second = "subleq-two-layer-5bit-4x4-rotated", "subleq-two-layer-5bit-4x4-permuted"
    (whole / "models" / one / "model.json").unlink()
    (whole / "models" / first / "cards.safetensors").write_bytes(b"damaged")
    manifest["models"][second] = ["no record"]
    (whole / "manifest.json").write_text(json.dumps(manifest))
    part = tmp_path / "part"
    (part / "made").mkdir(parents=True)
    shutil.copytree(made / "models" / one, part / "models" / one)
    shutil.copytree(made / "test-truth", part / "test-truth")
    asked = {key: value for key, value in manifest.items() if key != "models"}
    (part / "made" / "set.json").write_text(json.dumps({**asked, "jobs": [[each.name, 16] for each in specs("small")
                                                                          if ONLY in each.name]}))
    for name, record in ((one, json.dumps(manifest["models"][one])), (first, "[]"), (second, "{"),
                         (f"{second}x", "{}")):
        (part / "made" / f"{name}.json").write_text(record)
    with ThreadPoolExecutor(1) as executor:
        for folder, again in ((whole, 3), (part, 4)):
            seen: list[Any] = []
            make_set("small", folder, pairs=16, only=ONLY, executor=executor, resume=True, progress=seen.append)
            assert seen[-1].here == again
            assert content(folder) == content(made)


@pytest.mark.parametrize(("text", "wanted"), [("[]", "not a JSON object"), ("{", "not JSON"), ("{}", "another set"),
                                              ('{"models": ["x"]}', "another set")])
def test_forged_manifests(text: str, wanted: str, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(text)
    assert_refused(wanted, "ground-truth", "make", tmp_path, "--resume")


def test_a_set_is_not_written_over_other_files(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("mine")
    assert_refused("has files already, and they are not of a set", "ground-truth", "make", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]


def test_machines_in_one_file_are_in_the_set() -> None:
    """The Turing machine of the examples is the package's: one file, in two places."""
    spec = next(each for each in specs("small", 4) if each.kind == "turing")
    machine, program = build_model(spec)
    assert (machine.kind.name, program) == ("turing", None)
    example = (EXAMPLES / "turing" / "turing.py").read_text()
    assert Path(inspect.getfile(type(machine))).read_text() == example


@pytest.mark.parametrize("kind", ["subleq", "von-neumann", "turing"])
def test_pairs_differ_in_one_way(kind: str) -> None:
    machine, program = build_model(next(each for each in specs("small") if each.kind == kind))
    pairs = PairSource(machine, 3, program).pairs(12)
    assert [pair.kind for pair in pairs] == 3 * list(KINDS)
    again = PairSource(machine, 3, program).pairs(12)
    for pair, other in zip(pairs, again, strict=True):
        assert np.array_equal(pair.corrupt, other.corrupt), "the same seed gives the same pairs"
        assert not np.array_equal(pair.clean, pair.corrupt)
        assert pair.about


def test_the_scoring_program_needs_no_punchcard(made: Path, tmp_path: Path) -> None:
    name = names(made)[0]
    (tmp_path / "answers.json").write_text(json.dumps({name: answers(made, "true")[name]}))
    words = ["score.py", ".", "--answers", str(tmp_path / "answers.json")]
    program = (f"import sys; sys.modules['punchcard'] = None; sys.argv = {words!r}; "
               "exec(compile(open('score.py').read(), 'score.py', 'exec'))")
    ran = subprocess.run([sys.executable, "-c", program], cwd=made, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    command = invoke("ground-truth", "score", made, "--answers", tmp_path / "answers.json", status=0)
    assert command.stdout == ran.stdout
    assert "| nodes | all | 1 | 1.00 | 1.00 |" in ran.stdout


def test_a_figure_that_there_is_none_of_is_missing_in_json(made: Path, tmp_path: Path) -> None:
    """Without a false label there is no area under a curve. JSON has no NaN."""
    name = next(name for name in names(made) if (made / "models" / name / "truth.json").exists())
    shutil.copytree(made / "models" / name, tmp_path / name)
    truth = truth_of(made, name)
    truth["nodes"] = {task: dict.fromkeys(labels, True) for task, labels in truth["nodes"].items()}
    (tmp_path / name / "truth.json").write_text(json.dumps(truth))
    (tmp_path / "answers.json").write_text('{"nodes": {}}')
    ran = invoke("ground-truth", "score", tmp_path / name, "--answers", tmp_path / "answers.json", "--json", status=0)
    rows = json.loads(ran.stdout, parse_constant=pytest.fail)
    assert rows
    assert not any("roc" in row for row in rows)
    assert all(row["recall"] == 0 for row in rows)


def test_scores_are_a_page_too(made: Path, tmp_path: Path) -> None:
    (tmp_path / "<b>.json").write_text(json.dumps(answers(made, "true")))
    ran = invoke("ground-truth", "score", made, "--answers", tmp_path / "<b>.json", "-o", tmp_path / "page.html", status=0)
    assert "| edges | all | 5 |" in ran.stdout
    page = (tmp_path / "page.html").read_text()
    assert "&lt;b&gt;.json" in page
    assert "<b>.json" not in page, "text from outside is text"
    assert not re.search(r"(src|href)=", page), "it asks no other file"
    for name in names(made):
        assert f"<td>{name}</td>" in page
    assert page.count('<i style="width: 100%"></i></span>1.00</td>') > 20
    assert_refused("No such file or directory", "ground-truth", "score", made, "--answers", tmp_path / "<b>.json", "-o",
                   tmp_path / "no" / "page.html")


def test_wrong_answers_are_refused(made: Path, tmp_path: Path) -> None:
    name, nan = names(made)[0], float("nan")
    width = json.loads((made / "models" / name / "model.json").read_text())["width"]
    wrongs: list[Any] = [[[1.0], [1.0, 2.0]], 1, "x", {}, [[[1.0] * width]], [10**400], [["1"] * width], [[True] * width],
                         None, [[None] * width]]
    about = [({"nodes": {"all": {"L0.H0": 10**400}}}, "is not a score, which is a finite number"),
             ({"nodes": {"all": {"L9.H9": 1}}}, "nodes, all: there is no 'L9.H9'; there are L0.G0, "),
             ({"nodes": {"all": {"L0.H0": nan}}}, "L0.H0: NaN is not a score"), ({"nodes": []}, "[] is not an object"),
             ({"nodes": {"al": {}}}, "nodes: there is no 'al'"), ({"node": {}}, "there is no 'node'; there are"),
             ({"edges": {"all": {"I->O": "1"}}}, 'I->O: "1" is not a score'), ({"variables": {"w": []}}, "there is no 'w'"),
             ({"variables": {"v0": [[nan] * width]}}, "v0: a vector has an entry that is not a finite number"),
             *(({"variables": {"v0": wrong}}, f"v0: vectors of {width} numbers are wanted")
               for wrong in wrongs),
             ({"variables": {"v0": np.eye(width).tolist()}}, f"v0: {width} vectors, the variable has ")]
    texts = [("{", "not JSON"), ("[]", "an object for each model"), ("{}", "there is no answer: answers are an object"),
             ('{"x": {}}', "there is no model 'x'"),
             ('{"../models/x": {}}', "there is no model '../models/x'"), ('{"x": {}, "x": {}}', "'x' is there twice")]
    for text, wanted in (*texts, *((json.dumps({name: answer}), wanted) for answer, wanted in about)):
        (tmp_path / "wrong.json").write_text(text)
        assert_refused(wanted, "ground-truth", "score", made, "--answers", tmp_path / "wrong.json")
    (tmp_path / "none.json").write_text(json.dumps({name: {"variables": {"v0": []}}}))
    ran = invoke("ground-truth", "score", made, "--answers", tmp_path / "none.json", "--json")
    assert (ran.exit_code, '"task": "v0"' in ran.stdout) == (0, True), "no vectors are an answer"


@pytest.mark.parametrize(("file", "text", "wanted"), [
    ("truth.json", "[]", "TypeError"), ("truth.json", "{", "JSONDecodeError"), ("truth.json", "{}", "KeyError: 'nodes'"),
    ("truth.json", None, "there is no truth about a model"), ("model.json", "{}", "KeyError"),
    ("model.json", None, "No such file"),
    ("model.safetensors", "\xff" * 99, "SafetensorError"), ("cards.safetensors", "", "SafetensorError"),
])
def test_a_damaged_model_is_named(file: str, text: str | None, wanted: str, made: Path, tmp_path: Path) -> None:
    """The answer is a good one, so it is not blamed; also where the truth has labels that are none."""
    name = next(name for name in names(made) if (made / "models" / name / "truth.json").exists())
    model = tmp_path / "models" / name
    shutil.copytree(made / "models" / name, model)
    (tmp_path / "answers.json").write_text(json.dumps({name: answers(made, "true")[name]}))
    (model / file).unlink()
    if text is not None:
        (model / file).write_text(text)
    ran = invoke("ground-truth", "score", tmp_path, "--answers", tmp_path / "answers.json", status=2)
    assert wanted in ran.stderr
    assert name in ran.stderr
    if text is not None:
        assert "is damaged: " in ran.stderr
        assert "answers.json" not in ran.stderr


def test_labels_of_the_truth_are_true_or_false() -> None:
    with pytest.raises(ValueError, match="neither true nor false"):
        rates({"L0.H0": "yes"}, {})  # type: ignore[dict-item]


@pytest.mark.soak
def test_every_kind_of_model_is_made(tmp_path: Path) -> None:
    invoke("ground-truth", "make", tmp_path / "set", "--workers", "2", status=0)
    manifest = json.loads((tmp_path / "set" / "manifest.json").read_text())
    assert len(manifest["models"]) == len(list(specs("small")))


@pytest.mark.soak
def test_a_set_whose_process_was_killed_goes_on(made: Path, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "punchcard", "ground-truth", "make", str(tmp_path / "set"), "--pairs", "16", "--only",
             ONLY, "--workers", "2"]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and not list((tmp_path / "set" / "made").glob("subleq*.json")):
        time.sleep(0.01)
    process.kill()
    process.wait()
    subprocess.run([*words, "--resume"], check=True, stdout=subprocess.DEVNULL)
    assert content(tmp_path / "set") == content(made)
