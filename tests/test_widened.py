"""A stock Llama that is a pretrained one and adds: every sum, the base as it was, and what is refused."""

from __future__ import annotations

import json
import random
from itertools import product
from pathlib import Path

import pytest
import torch

import punchcard
from punchcard.errors import FusionError
from tests import fused_models
from tests.command_line import invoke
from tests.widened_models import base, continued, logits, texts, tokenizer, widened, wrong_answers

transformers = pytest.importorskip("transformers")

DOCS = Path(__file__).parent.parent / "docs"

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
    for seed in range(60):
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


# Folders and the command line


def test_a_folder_without_code(tmp_path: Path) -> None:
    """The command writes a folder that transformers opens with its own class, and no file of ours."""
    given, made = tmp_path / "base", tmp_path / "made"
    base().save_pretrained(given)
    tokenizer().save_pretrained(given)
    result = invoke("fuse", "--stock", "--base", given, "-o", made, "--digits", "4", "--end", "\n")
    assert result.exit_code == 0, result.output
    config = json.loads((made / "config.json").read_text())
    assert config["architectures"] == ["LlamaForCausalLM"]
    assert "auto_map" not in config
    assert not list(made.glob("*.py"))
    model = transformers.AutoModelForCausalLM.from_pretrained(made)
    assert type(model) is transformers.LlamaForCausalLM
    assert continued(model, ["1234+8766=", "7+8="], max_new_tokens=6)[0] == "10000\n"
    pipeline = transformers.pipeline("text-generation", model=str(made))
    assert pipeline("9+8=", max_new_tokens=3, do_sample=False)[0]["generated_text"] == "9+8=17\n"


def test_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The snippet of docs/widened.md runs, with a small base in place of SmolLM2."""
    base().save_pretrained(tmp_path / "base")
    tokenizer().save_pretrained(tmp_path / "base")
    monkeypatch.chdir(tmp_path)
    snippet = (DOCS / "widened.md").read_text().split("```python\n")[1].split("```")[0]
    exec(compile(snippet, "widened.md", "exec"), {"folder": str(tmp_path / "base")})
    assert (tmp_path / "smol-adds" / "model.safetensors").exists()


@pytest.mark.parametrize(("arguments", "message"), [
    (["--stock", "sums"], "--stock with sums: a stock model has no card for a skill"),
    (["--stock", "--max-loops", "5"], "--max-loops is not for --stock"),
    (["sums", "--digits", "5"], "--digits is for --stock"),
    ([], "Missing argument 'SKILL...'"),
])
def test_refused_options(arguments: list[str], message: str, tmp_path: Path) -> None:
    result = invoke("fuse", *arguments, "--base", tmp_path, "-o", tmp_path / "made")
    assert result.exit_code == 2
    assert message in result.output


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
