"""Exports: every machine and design gives in another world the cards that it gives here, loop by loop."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open

import punchcard
from punchcard import export
from punchcard.errors import ArgumentError, PrecisionError, PunchcardError, SizeError, StorageError
from punchcard.export import targets
from punchcard.export.folder import description
from tests.cases import EXAMPLES, soaked
from tests.command_line import assert_refused, invoke
from tests.export_runs import CASES, EXACT, LONG, PRODUCT, TOLERANCE, case, differs, loops, opened_elsewhere

SMALL = "subleq two-layer"
HERE = tuple(name for name, target in targets.TARGETS.items() if not targets.missing_of(target.needs))
"""The targets whose libraries are installed."""

FORMATS = ("safetensors", "hf", "onnx", "transformer-lens")

every_case = pytest.mark.parametrize("name", [soaked(name) if name in LONG else name for name in CASES])


def has(target: str) -> pytest.MarkDecorator:
    missing = targets.missing_of(targets.TARGETS[target].needs)
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}; an export is not tested")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A program of the two-layer machine, exported by the command to a format when a test first wants it."""
    @cache
    def exported(name: str) -> Path:
        place = tmp_path_factory.mktemp("exports") / name
        invoke("export", EXAMPLES / PRODUCT, "--design", "two-layer", "--bits", "8", "--set", "a=6", "--set", "b=3",
               "--to", name, "-o", place, status=0)
        return place

    return exported


# Opened elsewhere


def test_a_stranger_opens_every_folder(folder: Callable[[str], Path]) -> None:
    """In a fresh process without Punchcard, by the program of the folder's page: exactly the cards of every loop."""
    formats = ("onnx", "safetensors", "hf", "transformer-lens")  # a run in onnxruntime comes before torch is imported
    told = opened_elsewhere({name: folder(name) for name in formats if name in HERE}, SMALL)
    for name, each in told.items():
        assert (each["loops"], each["difference"]) == (10, 0), name
        if name != "transformer-lens":
            assert "loops" in each["told"]
            assert "10" in each["told"]
            assert "'product': 18" in each["told"], name
    if "onnx" in told:
        assert not told["onnx"]["torch"], "a run in onnxruntime needs no torch"


@every_case
@pytest.mark.parametrize("target", [pytest.param(name, marks=has(name)) for name in FORMATS])
@pytest.mark.soak
def test_every_machine_and_design_in_every_format(name: str, target: str, tmp_path: Path) -> None:
    """A whole run, compared at every loop in a fresh process."""
    machine, program = case(name)
    export.write(target, machine, tmp_path / "folder", program)
    told = opened_elsewhere({target: tmp_path / "folder"}, name)[target]
    assert told["loops"] == len(loops(name)[0])
    assert told["difference"] == 0 if name in EXACT else told["difference"] < TOLERANCE


# What a folder says


def test_the_description_names_rows_heads_units_and_values(folder: Callable[[str], Path]) -> None:
    machine, program = case(SMALL)
    said = json.loads((folder("safetensors") / "machine.json").read_text())
    assert said == json.loads(json.dumps(description(machine, program)))
    assert len(said["rows"]) == len(set(said["rows"])) == machine.layout.width
    assert said["columns"][3] == machine.column_name(3, program)
    for layer, arrays in zip(said["layers"], machine.weights.layers, strict=True):
        assert (len(layer["heads"]), len(layer["units"])) == (arrays.heads, arrays.hidden)
    card = loops(SMALL)[1][-1]
    for pattern in said["halting"]:
        assert card[pattern["rows"] : pattern["rows"] + len(pattern["bits"]), pattern["column"]].tolist() == pattern["bits"]


def test_the_safetensors_file_is_the_machine(folder: Callable[[str], Path]) -> None:
    machine, program = case(SMALL)
    again: punchcard.Machine[Any, Any] = punchcard.Machine.load(folder("safetensors") / "model.safetensors")
    assert again.weights.digest() == machine.weights.digest()
    with safe_open(folder("safetensors") / "card.safetensors", framework="pt") as file:
        assert torch.equal(file.get_tensor("card"), machine.punch(program))


def test_a_saved_machine_is_exported_without_a_card(folder: Callable[[str], Path], tmp_path: Path) -> None:
    saved = str(folder("safetensors") / "model.safetensors")
    assert invoke("export", saved, "--to", "safetensors", "-o", str(tmp_path / "out")).exit_code == 0
    assert not (tmp_path / "out" / "card.safetensors").exists()
    assert "has no card.safetensors" in (tmp_path / "out" / "README.md").read_text()
    assert shown_by_page(tmp_path / "out") == "torch.Size([49, 14])\n"
    assert (tmp_path / "out" / "model.safetensors").read_bytes() == Path(saved).read_bytes()
    wrong = ((("--memory", "9"), "--memory"), (("--set", "a=1"), "--set 'a=1'"), (("--machine", "fleq"), "--machine"))
    for more, wanted in wrong:
        assert_refused(wanted, "export", saved, *more, "--to", "safetensors", "-o", tmp_path / "no")
    assert not (tmp_path / "no").exists()


@pytest.mark.soak
@pytest.mark.parametrize("target", [pytest.param(name, marks=has(name)) for name in FORMATS])
def test_the_page_of_a_machine_alone_runs(target: str, tmp_path: Path) -> None:
    assert invoke("export", "--machine", "subleq", "--to", target, "-o", str(tmp_path / target)).exit_code == 0
    assert shown_by_page(tmp_path / target)


def shown_by_page(folder: Path) -> str:
    """What the program on a folder's page prints, run there by a process without Punchcard."""
    code = (folder / "README.md").read_text().split("```python\n")[1].split("```")[0]
    clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | {"HF_HUB_OFFLINE": "1"}
    ran = subprocess.run([sys.executable, "-c", code], cwd=folder, env=clean, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_a_refused_export_leaves_no_folder(tmp_path: Path) -> None:
    machine, program = case(SMALL)
    with punchcard.max_memory("4K"), pytest.raises(SizeError, match="budget"):
        export.write("ground-truth", machine, tmp_path / "truth", program)
    assert not (tmp_path / "truth").exists()


def test_what_is_not_installed_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(targets, "find_spec", lambda name: None)
    machine, program = case(SMALL)
    for name, target in targets.TARGETS.items():
        if target.needs:
            with pytest.raises(PunchcardError, match=rf"{name} needs {target.needs[0]}.*'punchcard\[{target.extra}\]'"):
                export.write(name, machine, tmp_path / name, program)
            assert not (tmp_path / name).exists()
    for call in (export.onnx.model, export.hugging_face.model, export.transformer_lens.bridge):
        with pytest.raises(PunchcardError, match="pip install"):
            call(machine)


def test_wrong_calls_are_refused_in_one_line(tmp_path: Path) -> None:
    machine, program = case(SMALL)
    with pytest.raises(PunchcardError, match=r"unknown target 'onx' \(did you mean 'onnx'\?\)"):
        export.write("onx", machine, tmp_path, program)
    with pytest.raises(PunchcardError, match="does not run on a SubleqMachine"):
        export.write("safetensors", machine, tmp_path, "a program")
    with pytest.raises(ArgumentError, match="machine='x'"):
        export.write("safetensors", "x", tmp_path)
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "below", "", "a\0b"):
        with pytest.raises(StorageError, match=r"folder|is a file"):
            export.write("safetensors", machine, folder, program)
    with punchcard.max_memory("4K"), pytest.raises(SizeError, match="budget"):
        export.write("safetensors", case("riscv three-layer")[0], tmp_path / "large")


# Hugging Face


@has("hf")
@pytest.mark.parametrize("name", [soaked(each) if each in LONG else each for each in CASES if each != "fleq paper"])
def test_the_hugging_face_model_is_the_equation(name: str) -> None:
    """Bit by bit, FLEQ included: it computes in the same order."""
    machine, _ = case(name)
    before, after = loops(name, 3)
    with torch.no_grad():
        found = export.hugging_face.model(machine)(before.transpose(1, 2)).last_hidden_state
        alone = machine.model(before)
    assert torch.equal(found.transpose(1, 2), alone)
    assert differs(alone, after) == 0 if name in EXACT else differs(alone, after) < TOLERANCE


@pytest.mark.parametrize("name", [pytest.param(each, marks=has(each)) for each in FORMATS])
def test_files_have_the_mode_of_other_files(name: str, folder: Callable[[str], Path]) -> None:
    """Whoever may read a new file of this process may read an export."""
    (usual := folder(name).parent / "usual").touch()
    assert {path.name: path.stat().st_mode for path in folder(name).iterdir()} == dict.fromkeys(
        (path.name for path in folder(name).iterdir()), usual.stat().st_mode)


@has("hf")
def test_the_hugging_face_model_shows_states_and_attention() -> None:
    machine, program = case(SMALL)
    cards = machine.punch(program)[None]
    model = export.hugging_face.model(machine)
    shown = model(cards.transpose(1, 2), loops=2, output_hidden_states=True, output_attentions=True)
    assert len(shown.hidden_states) == 1 + 2 * len(machine.model.layers)
    assert torch.equal(shown.last_hidden_state, machine.model(machine.model(cards)).transpose(1, 2))
    wanted = torch.stack([machine.model.layers[0].attention(cards, head) for head in range(2)], dim=1)
    assert torch.equal(shown.attentions[0], wanted.transpose(-1, -2))
    with pytest.raises(ValueError, match="batch, columns, rows"):
        model(cards)


@has("hf")
def test_a_hugging_face_folder_opens_by_registration_and_comes_back(folder: Callable[[str], Path], tmp_path: Path) -> None:
    """With Punchcard installed no code of the folder is run."""
    from transformers import AutoModel, AutoProcessor

    export.hugging_face.register()
    model, processor = AutoModel.from_pretrained(folder("hf")), AutoProcessor.from_pretrained(folder("hf"))
    assert type(model).__module__ == "punchcard.export.hugging_face_model"
    model.save_pretrained(tmp_path)
    processor.save_pretrained(tmp_path)
    again, reader = AutoModel.from_pretrained(tmp_path), AutoProcessor.from_pretrained(tmp_path)
    machine, program = case(SMALL)
    values = [{"a": 6, "b": 3}, {"a": -5, "b": 4}, {"a": 1, "b": 1}]
    end = again.run(**reader(values=values))
    for card, given, made in zip(end.last_hidden_state, values, end.loops.tolist(), strict=True):
        alone = machine.run(program.with_values(given), engine="dense")
        assert torch.equal(card.T, alone.card)
        assert made == alone.loops
    assert end.halted.all()
    assert [each["memory"]["product"] for each in reader.decode(end.last_hidden_state)] == [18, -20, 1]


@has("hf")
def test_the_processor_reads_text_and_refuses_what_does_not_fit() -> None:
    machine, program = case(SMALL)
    processor = export.hugging_face.processor(machine, program)
    text = ".data\nx 5\ny 9\n.code\nsubleq x, y\nhalt"
    cards = processor(text=[text, punchcard.disassemble(program)])["inputs_embeds"]
    assert torch.equal(cards[0].T, machine.punch(punchcard.assemble(text)))
    assert torch.equal(cards[1].T, machine.punch(program))
    assert torch.equal(processor(values={"a": 7})["inputs_embeds"][0].T, machine.punch(program.with_values({"a": 7})))
    for values, wanted in (({"c": 1}, "'c' names no values"), ({"a": 128}, "from -128 to 127"), ({"a": True}, "a=True")):
        with pytest.raises(ValueError, match=wanted):
            processor(values=values)
    with pytest.raises(ValueError, match="no card"):
        export.hugging_face.processor(machine)()


@has("hf")
@every_case
def test_the_processor_reads_the_values_that_a_view_shows(name: str) -> None:
    """At the beginning and after some loops, of every machine: numbers here, their text there."""
    machine, program = case(name)
    processor, shown = export.hugging_face.processor(machine, program), machine.display_values(program)
    for card in loops(name, 6)[1][[0, -1]]:
        values = processor.decode(card.T[None])[0]
        for each in shown:
            text, found = each.text(machine.layout, lambda j, card=card: card[:, j].tolist()), values[each.group][each.name]
            if each.kind == "numbers":
                read = np.array([[float(entry) for entry in row.split()] for row in text.split(" ; ")])
                np.testing.assert_allclose(np.array(found), read, rtol=1e-5, atol=1e-5)
            else:
                named = each.labels if each.kind == "unsigned" else ()
                listed: Any = found if isinstance(found, list) else [found]
                texts = ("–" if one is None else (named[one] if one in range(len(named)) else "") or str(one)
                         for one in listed)
                assert ", ".join(texts) == text


@has("hf")
def test_the_processor_sets_matrices() -> None:
    machine, program = case("fleq compact")
    processor = export.hugging_face.processor(machine, program)
    matrix = [[4.0, 1.0], [2.0, 5.0]]
    cards = processor(values={"A": matrix})["inputs_embeds"]
    assert torch.equal(cards[0].T, machine.punch(program.with_values({"A": matrix})))
    with pytest.raises(ValueError, match="shape"):
        processor(values={"A": [1.0]})


# ONNX


@has("onnx")
def test_onnx_runs_batches_and_other_numbers_of_columns(folder: Callable[[str], Path]) -> None:
    """The run ends each card at its own halt; a card with idle columns runs as the one without."""
    import onnxruntime

    machine, program = case(SMALL)
    programs = [program.with_values({"b": b}) for b in (1, 3, 2)]
    cards = torch.stack([machine.punch(each) for each in programs])
    loop, run = (onnxruntime.InferenceSession(folder("onnx") / name, providers=["CPUExecutionProvider"])
                 for name in ("loop.onnx", "run.onnx"))
    after = loop.run(None, {"card": cards.numpy()})[0]
    assert np.array_equal(after, machine.model(cards).numpy())
    last, made = run.run(None, {"card": cards.numpy(), "loops": np.array(1000)})
    for i, each in enumerate(programs):
        alone = machine.run(each, engine="dense")
        assert made[i] == alone.loops
        assert np.array_equal(last[i], alone.card.numpy())
    some = run.run(None, {"card": cards.numpy(), "loops": np.array(2)})
    assert np.array_equal(some[0], machine.model(machine.model(cards)).numpy())
    assert some[1].tolist() == [2, 2, 2]
    assert np.array_equal(run.run(None, {"card": cards.numpy(), "loops": np.array(0)})[0], cards.numpy())
    wider = torch.cat([cards, cards[:, :, -1:]], dim=2)
    assert np.array_equal(loop.run(None, {"card": wider.numpy()})[0], machine.model(wider).numpy())


@has("onnx")
def test_onnx_files_do_not_name_the_machine_that_made_them(folder: Callable[[str], Path]) -> None:
    source = str(Path(export.__file__).parent).encode()
    for name in ("loop.onnx", "run.onnx"):
        assert source not in (folder("onnx") / name).read_bytes()


@has("onnx")
def test_onnx_refuses_a_format_that_it_cannot_compute() -> None:
    program = punchcard.load(EXAMPLES / PRODUCT).with_values({"a": 1, "b": 1})
    machine = punchcard.build(program, design="two-layer", precision="bfloat16", word_bits=2)
    with pytest.raises(PrecisionError, match="bfloat16"):
        export.onnx.model(machine)


# TransformerLens and nnsight, which are heavy


@has("transformer-lens")
@every_case
def test_the_bridge_gives_the_same_cards(name: str) -> None:
    machine, program = case(name)
    bridge = export.transformer_lens.bridge(machine, program)
    before, after = loops(name, 20)
    with torch.no_grad():
        found = torch.cat([bridge(card.T[None]) for card in before]).transpose(1, 2)
    assert differs(found, after) == 0 if name in EXACT else differs(found, after) < TOLERANCE
    assert bridge.machine["rows"] == description(machine)["rows"]


@has("transformer-lens")
def test_hooks_see_and_change_a_head() -> None:
    """What a head takes is in its pattern; with the pattern zeroed, the head adds nothing."""
    machine, program = case(SMALL)
    bridge, card = export.transformer_lens.bridge(machine, program), machine.punch(program)
    card = machine.model(card)
    _, cache = bridge.run_with_cache(card.T[None])
    for head in range(2):
        assert torch.equal(cache["blocks.0.attn.hook_pattern"][0, head].T, machine.model.layers[0].attention(card, head))
    assert torch.equal(cache["blocks.0.hook_resid_post"][0].T, machine.model.layers[0](card))

    def silence(pattern: torch.Tensor, hook: Any) -> torch.Tensor:
        pattern[:, 1] = 0
        return pattern

    found = bridge.run_with_hooks(card.T[None], fwd_hooks=[("blocks.0.attn.hook_pattern", silence)])
    other = machine.builder()(**machine.options, design=machine.design.name, precision=machine.precision).model
    other.layers[0].value[1] = 0
    assert torch.equal(found[0].T, other(card))


@pytest.mark.skipif(find_spec("nnsight") is None, reason="nnsight is not installed: its example is not tested")
def test_the_nnsight_example_patches_a_head() -> None:
    told = runpy.run_path(str(EXAMPLES / "interop" / "nnsight_patch.py"))
    assert told["patched"] == told["expected"]


# Examples and the page


@pytest.mark.soak
@pytest.mark.parametrize(("name", "needs", "wanted"), [
    ("transformer_lens_hooks", "transformer_lens", "bit by bit"),
    ("onnx_run", "onnxruntime", "-5 * 20 = -100 in 61 loops"),
    ("hugging_face_run", "transformers", "after 63 loops the inverse"),
])
def test_the_examples_run(name: str, needs: str, wanted: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip(needs)
    runpy.run_path(str(EXAMPLES / "interop" / f"{name}.py"))
    assert wanted in capsys.readouterr().out


@pytest.mark.soak
@pytest.mark.parametrize("target", [pytest.param(name, marks=has(name)) for name in ("transformer-lens", "onnx", "hf")])
def test_the_snippets_of_the_page_run(target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "examples").symlink_to(EXAMPLES)
    monkeypatch.chdir(tmp_path)
    page = (EXAMPLES.parent / "docs" / "interop.md").read_text()
    first, onnx, hugging_face = (part.split("```")[0] for part in page.split("```python\n")[1:])
    begin = first[: first.index("bridge =")]
    names: dict[str, Any] = {"__name__": "page"}
    code = {"transformer-lens": first, "onnx": begin + onnx, "hf": begin + hugging_face}[target]
    exec(compile(code, "interop.md", "exec"), names)
