"""The commands `learn` and `predict`: tables in, weights, pictures and predictions out; bad input in one line."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result

from punchcard.learning import Model, learn, predict
from punchcard.learning.table import read_table
from tests.cases import ROOT, file_with
from tests.command_line import assert_refused, invoke

TABLE = """age,height,score
1,0.5,0.3
0.2,-0.4,0.9

-0.7,0.1,-0.2
"""
ENGINE = "scratchpad"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return file_with(tmp_path / "data.csv", TABLE)


def call(*arguments: object, status: int | None = None) -> Result:
    """A few loops each: this engine is there sooner than one that compiles."""
    return invoke(*arguments, "--engine", ENGINE, status=status)


def learned_as_json(*arguments: object) -> dict[str, Any]:
    result = call("learn", *arguments, "--json", status=0)
    found = json.loads(result.stdout)
    assert isinstance(found, dict)
    return found


def test_learn_save_and_predict(table: Path, tmp_path: Path) -> None:
    weights = tmp_path / "weights.safetensors"
    result = call("learn", table, "--target", "score", "--epochs", 2, "--rate", 0.2, "--save", weights, status=0)
    assert "after 2 epochs" in result.stdout
    assert f"saved to {weights}" in result.stdout
    data = read_table(table)
    x, y = data.columns(["age", "height"]), data.columns(["score"])
    wanted = learn(x, y, epochs=2, rate=0.2, engine=ENGINE)
    model = Model.load(weights)
    assert model.feature_names == ("age", "height")
    assert all(np.array_equal(model.weights[name], value) for name, value in wanted.weights.items())

    found = call("predict", weights, table, status=0)
    lines = found.stdout.splitlines()
    assert lines[0] == "score"
    assert [float(line) for line in lines[1:]] == predict(wanted, x, engine=ENGINE).values.tolist()
    as_json = json.loads(call("predict", weights, table, "--json").stdout)
    assert as_json["predictions"]["score"] == [float(line) for line in lines[1:]]
    assert as_json["error"] < 1e-11


def test_the_line_of_the_readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its own file; one epoch, on an engine that need not compile."""
    line = next(line for line in (ROOT / "README.md").read_text().splitlines() if line.startswith("    punchcard learn "))
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    result = call(*line.split()[1:], "--epochs", 1, status=0)
    assert "after 1 epoch\n" in result.stdout
    assert Path("weights.safetensors").exists()


def test_any_column_is_the_target_and_options_reach_the_run(table: Path) -> None:
    found = learned_as_json(table, "--target", "age", "--hidden", "2,2", "--activation", "tanh", "--epochs", 1, "--seed", 5,
                            "--heads", 2, "--size", 4, "--dtype", "float32")
    assert found["features"] == ["height", "score"]
    assert found["target"] == "age"
    assert [np.shape(found["weights"][f"W{k}"]) for k in (1, 2, 3)] == [(2, 2), (2, 2), (2, 1)]
    assert (found["heads"], found["size"], found["dtype"], found["epochs"]) == (2, 4, "float32", 1)
    assert 0 < found["error"] < 1e-3
    assert found["loops_per_point"] == 41
    assert not found["interrupted"]


def test_standardised_logistic_regression(tmp_path: Path) -> None:
    path = file_with(tmp_path / "data.csv", "x,label\n100,0\n300,1\n")
    weights = tmp_path / "w.safetensors"
    found = learned_as_json(path, "--target", "label", "--loss", "logistic", "--standardize", "--rate", 1, "--epochs", 1,
                            "--save", weights, "--batch", "all")
    assert found["saved"] == str(weights)
    probabilities = [float(line) for line in call("predict", weights, path).stdout.splitlines()[1:]]
    assert probabilities[0] < 0.5 < probabilities[1]


def test_the_program_is_printed(table: Path) -> None:
    result = call("learn", table, "--target", "score", "--program", status=0)
    assert "incr_pointer(load.a)" in result.stdout
    assert result.stdout.startswith(".range")


def test_a_picture_of_the_losses(table: Path, tmp_path: Path) -> None:
    for name, magic in (("loss.png", b"\x89PNG"), ("loss.svg", b"<?xml")):
        call("learn", table, "--target", "score", "--epochs", 1, "--plot", tmp_path / name, status=0)
        assert (tmp_path / name).read_bytes().startswith(magic)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["data.csv", "loss.png", "loss.svg"]


def test_without_matplotlib(table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert_refused("a plot needs matplotlib, which is not installed: pip install 'punchcard[plot]'", "learn", table,
                   "--target", "score", "--plot", tmp_path / "loss.png")


@pytest.mark.parametrize(("content", "arguments", "message"), [
    ("", (), "data.csv: the file is empty: the first line names the columns, each further line is a point"),
    ("\n\n", (), "data.csv: the file is empty"),
    ("a,y\n", (), "data.csv: no points: there is nothing after the header line"),
    ("a,b\n1,2\n", (), "data.csv: no column 'y': there are a, b"),
    ("a,yy\n1,2\n", (), "data.csv: no column 'y' (did you mean 'yy'?): there are a, yy"),
    ("y\n1\n", (), "data.csv: the only column is 'y': there must be a feature beside the target"),
    ("a,y\n1,2\n3,four\n", (), "data.csv: line 3, column 2 (y): 'four' is not a finite number"),
    ("a,y\n1,2\n\n,3\n", (), "data.csv: line 4, column 1 (a): '' is not a finite number"),
    ("a,y\nnan,2\n", (), "data.csv: line 2, column 1 (a): 'nan' is not a finite number"),
    ("a,y\n1,2,3\n", (), "data.csv: line 2 has 3 values, the header names 2"),
    ("a,y\n1\n", (), "data.csv: line 2 has 1 value, the header names 2"),
    ("1,2\n3,4\n", (), "data.csv: line 1 holds numbers: the first line must name the columns"),
    ("a,,y\n1,2,3\n", (), "data.csv: line 1, column 2 has no name"),
    ("a,y,a\n1,2,3\n", (), "data.csv: line 1, column 3: 'a' is there twice"),
    ('a,y\n"1,2\n', (), "data.csv: line 2: unexpected end of data"),
    ("a,y\n1,2\n", ("--hidden", "3", "--size", "2"), "size=2: the network needs 3: its layers have 3, 1 units"),
    ("a,y\n1,2\n", ("--hidden", "x"), "--hidden 'x': write units of the hidden layers as 8 or 8,8; 0 is none"),
    ("a,y\n1,2\n", ("--save", "none/w.safetensors"), "cannot write 'none/w.safetensors': No such file or directory"),
    ("a,y\n1,2\n", ("--save", "."), "cannot write '.': Is a directory"),
    ("a,y\n1,2\n", ("--plot", "loss.jpeg2"), "plot 'loss.jpeg2': use the extension .png, .svg or .pdf"),
])
def test_bad_input_is_one_line(
    content: str, arguments: tuple[object, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("data.csv").write_text(content)
    assert_refused(message, "learn", "data.csv", "--target", "y", *arguments)
    assert [p.name for p in tmp_path.iterdir()] == ["data.csv"]


def test_files_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    missing = call("learn", "none.csv", "--target", "y").stderr
    assert missing == "punchcard: no such file: 'none.csv'\n"
    Path("bytes.csv").write_bytes(b"a,y\n\xff\n")
    assert "bytes.csv: byte 4 is not UTF-8 text" in call("learn", "bytes.csv", "--target", "y").stderr
    Path("data.csv").write_text(TABLE)
    assert "'data.csv' is not a safetensors file" in call("predict", "data.csv", "data.csv").stderr
    assert "no such file: 'none.safetensors'" in call("predict", "none.safetensors", "data.csv").stderr


def test_predicting_takes_features_by_name(table: Path, tmp_path: Path) -> None:
    """Another order of columns, and columns that the model does not know, change nothing; a missing one is named."""
    weights = tmp_path / "w.safetensors"
    assert call("learn", table, "--target", "score", "--epochs", 1, "--save", weights).exit_code == 0
    turned = file_with(tmp_path / "turned.csv", "height,other,age\n0.5,9,1\n-0.4,9,0.2\n0.1,9,-0.7\n")
    assert call("predict", weights, turned).stdout == call("predict", weights, table).stdout
    turned.write_text("hight,age\n0.5,1\n")
    assert_refused("no column 'height' (did you mean 'hight'?): there are hight, age", "predict", weights, turned)


def test_a_table_written_by_a_spreadsheet(tmp_path: Path) -> None:
    """A byte order mark, quotes, spaces and carriage returns."""
    path = tmp_path / "data.csv"
    path.write_bytes('\ufeff"a b", y \r\n" 1",2\r\n'.encode())
    found = read_table(path)
    assert found.names == ("a b", "y")
    assert found.values.tolist() == [[1.0, 2.0]]


@pytest.mark.soak  # Ctrl-C itself has one handler, which the tests of `run` send signals to
def test_ctrl_c_keeps_the_epochs_that_were_finished(tmp_path: Path) -> None:
    """The run stops after a loop, says where it was, saves the last whole epoch, and exits with 1."""
    table = file_with(tmp_path / "data.csv", "age,score\n1,0.3\n0.2,0.9\n")
    often = "import punchcard.cli.display as display; display.REMARK_EVERY = 0.05; from punchcard.cli import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", often, "learn", str(table), "--target", "score", "--epochs", "300", "--rate", "0.01",
         "--engine", "dense", "--save", str(tmp_path / "w.safetensors")],
        stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stderr is not None
    line = process.stderr.readline()
    while "NumPy" in line or "epoch 0 of" in line:  # until one is finished on the transformer
        line = process.stderr.readline()
    assert "of 300, loss" in line
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "punchcard: interrupted in epoch" in err
    assert Model.load(tmp_path / "w.safetensors").target_names == ("score",)
