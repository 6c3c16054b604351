"""A stock Llama that is a pretrained one and adds: every sum, the base as it was, and what is refused."""

from __future__ import annotations

import json
import random
import runpy
import shutil
from itertools import product
from pathlib import Path

import pytest
import torch

import punchcard
from punchcard.errors import FusionError
from punchcard.language_models.widened.checkpoint import save_widened
from punchcard.language_models.widened.claims import prove_widened
from tests import fused_models
from tests.cases import EXAMPLES
from tests.command_line import assert_refused, invoke
from tests.pages import page, run_snippets
from tests.widened_models import base, continued, logits, texts, tokenizer, widened, wrong_answers

transformers = pytest.importorskip("transformers")

NEGATIVES = (
    "x5+7=", "5*5+7=", "1.5+7=", "5-5+7=", "5 5+7=", "1+5+7=", "1 + 5+7=", "=5+7=", "(5+7=", "$5+7=", "123456789+1=",
    "1+123456789=", "5+=", "+7=", "5+7", "5++7=", "5+7==", "5+7=2", "5+7=13", "5+7=012", "5+7=120", "5=", "55555+x=",
    "50+0=500", "9+1=100", "0+0=00", "99999999+1=1000000000",
)
"""Texts at whose end nothing is said: no sum of two numbers, or what is written is not its beginning."""
ORDINARY = ("The quick brown fox has 12 legs + 3 tails = 5? No: 4.5+x=y, 1/2+1/2=1 and f(3)+4=z.\n"
            "After that: 2026-11-18, v1.2+3.")


def sums(seed: int, count: int) -> list[tuple[str, str]]:
    """Random numbers of every two lengths, and long carries."""
    draw = random.Random(seed)
    nines = ["9" * k for k in range(1, 9)]
    found = [pair for each in nines for pair in ((each, "1"), ("1", each), (each, each))]
    found += [("0", "0"), ("00000000", "0"), ("00000001", "00000009"), ("12345678", "87654321"), ("50000000", "50000000")]
    for _ in range(count):
        found += [("".join(draw.choices("0123456789", k=n)), "".join(draw.choices("0123456789", k=m)))
                  for n, m in product(range(1, 9), repeat=2)]
    return found


# Sums


@pytest.mark.soak
def test_every_sum_of_two_digits() -> None:
    """All sums of numbers with one or two digits, zeros in front included: 12,100 of them."""
    numbers = [str(i) for i in range(10)] + [f"{i:02}" for i in range(100)]
    model = widened(2)
    for length in range(2, 5):
        some = [(a, b) for a, b in product(numbers, repeat=2) if len(a + b) == length]
        assert wrong_answers(model, texts(some)) == []


@pytest.mark.parametrize("before", ["", "\n", "What is ", "1+1=2\n", "It was 3, then: "])
def test_sums_of_every_length(before: str) -> None:
    """The first tokens of a text, where no position tells how many there are, and after a text."""
    assert wrong_answers(widened(), texts(sums(1, 1), before)) == []


@pytest.mark.soak
def test_many_sums() -> None:
    for seed in range(20):
        assert wrong_answers(widened(), texts(sums(seed, 5))) == []


@pytest.mark.soak
def test_every_sum_of_two_digits_among_eight() -> None:
    numbers = [str(i) for i in range(100)]
    for first in numbers:
        assert wrong_answers(widened(), texts([(first, second) for second in numbers], "It is ")) == []


def test_generate() -> None:
    """With a cache and without one, in a batch with left padding, with beams: the same answers."""
    given = ["3+4=", "It is 99999999+1=", "12345678+87654321=", "5+7=1", "00+0="]
    answers = ["7", "100000000", "99999999", "2", "0"]
    for options in ({}, {"use_cache": False}, {"num_beams": 2}, {"do_sample": True, "top_k": 0}):
        assert continued(widened(), given, **options) == answers
    assert [continued(widened(), [text])[0] for text in given] == answers


def test_attention_of_another_kind() -> None:
    """Scores that are rounded in another order find the same columns."""
    model = punchcard.widen(base(), tokenizer())
    model.set_attn_implementation("eager")
    assert wrong_answers(model, texts([("99999999", "1"), ("12345678", "87654321"), ("5", "55")], "It is ")) == []


def test_special_tokens_before() -> None:
    """A sum may begin after the token that begins a text."""
    assert wrong_answers(widened(), texts([("12", "30"), ("99999999", "1")], "<s>")) == []


# The base


def test_the_base_is_kept() -> None:
    """Logits of ordinary text are the base's up to rounding, with the same best token."""
    text = ORDINARY * 2
    before, after = logits(base(), text), logits(widened(), text)
    assert float((before - after).abs().max()) < 1e-5 * float(before.max() - before.min())
    assert torch.equal(before.argmax(-1), after.argmax(-1))


@pytest.mark.parametrize("text", NEGATIVES)
def test_nothing_is_said(text: str) -> None:
    before, after = logits(base(), text)[-1], logits(widened(), text)[-1]
    assert float((before - after).abs().max()) < 1e-5 * float(before.max() - before.min())


def test_the_weights_compute() -> None:
    """Without the units of one front layer no sum is right."""
    for layer in range(6):
        model = punchcard.widen(base(), tokenizer())
        with torch.no_grad():
            model.model.layers[layer].mlp.down_proj.weight.zero_()
        given = texts([("12", "30"), ("3", "9")], "It is ")
        assert wrong_answers(model, given) == given


BASES: dict[str, dict[str, object]] = {
    "shared keys": {"num_attention_heads": 6, "num_key_value_heads": 2, "hidden_size": 48},
    "tied": {"tie_word_embeddings": True},
    "biases": {"attention_bias": True, "mlp_bias": True},
    "rope": {"rope_parameters": {"rope_type": "llama3", "rope_theta": 5e5, "factor": 8.0, "low_freq_factor": 1.0,
                                 "high_freq_factor": 4.0, "original_max_position_embeddings": 256}},
    "many units": {"intermediate_size": 256},
}


@pytest.mark.parametrize("name", BASES)
def test_bases(name: str) -> None:
    """Heads that share keys, tied embeddings, biases, other rotary positions, more units than are needed."""
    plain = base(**BASES[name])
    model = punchcard.widen(plain, tokenizer(), digits=3)
    assert wrong_answers(model, texts([("999", "1"), ("5", "55"), ("123", "877")])) == []
    before, after = logits(plain, ORDINARY), logits(model, ORDINARY)
    assert float((before - after).abs().max()) < 1e-5 * float(before.max() - before.min())


def test_bfloat16() -> None:
    """The front layers hold in bfloat16 too: every step has flat ends."""
    model = punchcard.widen(base(), tokenizer()).to(torch.bfloat16)
    assert wrong_answers(model, texts(sums(2, 1))) == []
    assert wrong_answers(model, texts(sums(3, 1), "It is ")) == []


def test_float16_is_refused(tmp_path: Path) -> None:
    """Added numbers are below its range, and logits are not numbers."""
    model = punchcard.widen(base(), tokenizer()).half()
    assert bool(logits(model, "5+7=").isnan().any())
    with pytest.raises(FusionError, match="model is in float16, whose range is too small"):
        save_widened(model, tokenizer(), tmp_path / "model")


# Folders and the command line


def test_a_folder_without_code(tmp_path: Path) -> None:
    """The command writes a folder that transformers opens with its own class, and no file of ours."""
    given, made = tmp_path / "base", tmp_path / "made"
    base().save_pretrained(given)
    tokenizer().save_pretrained(given)
    invoke("fuse", "--stock", "--base", given, "-o", made, "--digits", "4", "--end", "\n", status=0)
    config = json.loads((made / "config.json").read_text())
    assert config["architectures"] == ["LlamaForCausalLM"]
    assert "auto_map" not in config
    assert not list(made.glob("*.py"))
    model = transformers.AutoModelForCausalLM.from_pretrained(made)
    assert type(model) is transformers.LlamaForCausalLM
    assert continued(model, ["1234+8766=", "7+8="], max_new_tokens=6)[0] == "10000\n"
    pipeline = transformers.pipeline("text-generation", model=str(made))
    assert pipeline("9+8=", max_new_tokens=3, do_sample=False)[0]["generated_text"] == "9+8=17\n"
    assert "numbers of up to\n4 digits" in (made / "README.md").read_text()


def test_files_of_others_are_kept(tmp_path: Path) -> None:
    """A folder with other files is refused, unless the command is told; then it is one of ours."""
    given, made = tmp_path / "base", tmp_path / "made"
    base().save_pretrained(given)
    tokenizer().save_pretrained(given)
    made.mkdir()
    (made / "mine.txt").write_text("mine")
    for more, code in (([], 2), (["--overwrite"], 0), ([], 0)):
        result = invoke("fuse", "--stock", "--base", given, "-o", made, "--digits", "2", *more)
        assert result.exit_code == code, result.output
        assert ("has files already" in result.output) == (code == 2)
        assert (made / "config.json").exists() == (code == 0)
    assert (made / "mine.txt").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_only_a_widened_model_is_saved_as_one(tmp_path: Path) -> None:
    with pytest.raises(FusionError, match="was not widened"):
        save_widened(base(), tokenizer(), tmp_path / "made")


def test_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The snippet of docs/widened.md runs, with a small base in place of SmolLM2."""
    base().save_pretrained(tmp_path / "base")
    tokenizer().save_pretrained(tmp_path / "base")
    monkeypatch.chdir(tmp_path)
    run_snippets(page("widened.md"), folder=str(tmp_path / "base"))
    assert (tmp_path / "smol-adds" / "model.safetensors").exists()


def test_the_example(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["widened_llama.py"])
    runpy.run_path(str(EXAMPLES / "widened_llama.py"), run_name="__main__")
    shown = capsys.readouterr().out
    assert "widened '100000000'" in shown
    assert "widened '99999999'" in shown


@pytest.mark.parametrize(("arguments", "message"), [
    (["--stock", "sums"], "--stock with sums: a stock model has no card for a skill"),
    (["--stock", "--max-loops", "5"], "--max-loops is not for --stock"),
    (["sums", "--digits", "5"], "--digits is for --stock"),
    ([], "Missing argument 'SKILL...'"),
])
def test_refused_options(arguments: list[str], message: str, tmp_path: Path) -> None:
    assert_refused(message, "fuse", *arguments, "--base", tmp_path, "-o", tmp_path / "made")


# What is proven


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made: Path = tmp_path_factory.mktemp("widened")
    widened(3).save_pretrained(made)
    tokenizer().save_pretrained(made)
    return made


def test_every_claim(folder: Path) -> None:
    """The command shows all claims, and writes a certificate of the weights in the folder."""
    result = invoke("prove", folder, "--on", "stock", "--json", status=0)
    names = [claim["name"] for claim in json.loads(result.output)["claims"]]
    assert names[:5] == ["formula", "base", "norms", "columns", "heads"]
    assert names[-1] == "logits"


@pytest.mark.parametrize(("name", "place", "message"), [
    ("model.layers.3.mlp.gate_proj.weight", (5, 40), "model.layers.3.mlp.gate_proj.weight is not what the formula gives"),
    ("model.layers.1.self_attn.o_proj.weight", (3, 3), "model.layers.1.self_attn.o_proj.weight is not what the formula"),
    ("model.embed_tokens.weight", (9, 33), "model.embed_tokens.weight is not what the formula gives"),
    ("model.layers.7.self_attn.k_proj.weight", (0, 35), "outside of the base's part"),
    ("model.layers.6.input_layernorm.weight", (40,), "outside of the base's part"),
    ("model.layers.6.mlp.down_proj.weight", (3, 3), "the answer leads by"),
])
def test_a_changed_weight_is_found(name: str, place: tuple[int, ...], message: str, folder: Path, tmp_path: Path) -> None:
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    with torch.no_grad():
        model.get_parameter(name)[place] += 1e4
    model.save_pretrained(tmp_path)
    tokenizer().save_pretrained(tmp_path)
    found = prove_widened(tmp_path)
    assert found.failed is not None
    assert message in found.failed


def test_a_folder_that_is_not_described(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "made")
    config = json.loads((tmp_path / "made" / "config.json").read_text())
    (tmp_path / "made" / "config.json").write_text(json.dumps(config | {"punchcard": {"digits": 3}}))
    assert_refused("has no valid description under 'punchcard'", "prove", tmp_path / "made", "--on", "stock")


def test_without_on_stock_a_folder_says_what_it_is(folder: Path) -> None:
    for command in ("prove", "run"):
        assert_refused("is a stock Llama that adds, not a program: transformers opens it, and punchcard prove "
                       f"{folder} --on stock shows what holds for it", command, folder)


def test_numbers_stay_below_their_limit() -> None:
    """The bound by intervals holds in real columns, and is not far away."""
    model, found = widened(3), []
    for layer in model.model.layers[:6]:
        layer.register_forward_hook(lambda _module, _given, out: found.append(out[0] if isinstance(out, tuple) else out))
    logits(model, ORDINARY + "\n999+1=1000\n12+30=42")
    squares = [float(each[..., 32:].double().pow(2).sum(-1).max()) for each in found]
    assert len(found) == 6
    assert squares[-1] < 2 * 32 * 1e-6 * 2**-24


# Bad input


@pytest.mark.parametrize(("sizes", "message"), [
    ({"head_dim": 16}, "fetches 18 numbers"),
    ({"hidden_act": "gelu"}, "hidden_act='gelu'"),
    ({"rms_norm_eps": 0.0}, "rms_norm_eps=0.0"),
    ({"max_position_embeddings": 100_000}, "slowest rotary pair turns by"),
    ({"rope_parameters": {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}}, "type 'dynamic'"),
])
def test_refused_bases(sizes: dict[str, object], message: str) -> None:
    with pytest.raises(FusionError, match=message):
        punchcard.widen(base(**sizes), tokenizer())


def test_refused_models() -> None:
    """Not a Llama; a tokenizer that joins digits, or of another model; a size; an end of two tokens."""
    with pytest.raises(FusionError, match="model is a GPT2LMHeadModel: a stock model can be made of a LlamaForCausalLM"):
        punchcard.widen(fused_models.base("gpt2"), fused_models.tokenizer())
    with pytest.raises(FusionError, match=r"makes .'12'. of '12': a stock model adds digit by digit"):
        punchcard.widen(fused_models.base(), fused_models.tokenizer())
    with pytest.raises(FusionError, match="not the model's own tokenizer"):
        punchcard.widen(base(vocab_size=1000), tokenizer())
    with pytest.raises(FusionError, match="digits=9: numbers have 1 to 8 digits"):
        punchcard.widen(base(), tokenizer(), digits=9)
    with pytest.raises(FusionError, match="end='ab' has 2 tokens"):
        punchcard.widen(base(), tokenizer(), end="ab")
