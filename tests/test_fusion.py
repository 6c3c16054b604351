"""Programs inside language models: the fused model answers, the base is untouched, and the weights compute."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast

import punchcard
from punchcard.errors import FusionError, ProgramError
from punchcard.language_models.fusion.composition import check_base, open_fused, save_fused
from punchcard.language_models.fusion.embedding import card_bytes, embedding
from punchcard.language_models.fusion.fused_model import FusedConfig, ScratchpadLoops
from punchcard.language_models.fusion.generation import TokenWriter
from punchcard.language_models.fusion.runner import KeptRunner
from punchcard.language_models.fusion.skill import load_skill, shipped
from punchcard.language_models.fusion.skills.build import build_skill
from punchcard.language_models.tokens import text_tokens
from punchcard.machines.riscv.languages import elf
from tests.cases import file_with, soaked
from tests.command_line import assert_refused, invoke
from tests.fused_models import LONG, base, fused, opinion, said, text_of, tokenizer, written
from tests.riscv_runs import GCC
from tests.test_torch_settings import SETTINGS

transformers = pytest.importorskip("transformers")

# The model


@pytest.mark.parametrize("kind", ["llama", "gpt2", "qwen2", "phi"])
def test_any_decoder(kind: str) -> None:
    """The program answers in each, and where it has no opinion the logits are the base's, bit by bit."""
    plain = base(kind)
    given = tokenizer()("A sentence without a sum! 12 + 30 =", return_tensors="pt")
    with torch.no_grad():
        before = plain(**given).logits
        model = punchcard.fuse(plain, tokenizer(), "sums")
        after = model(**given).logits
    assert torch.equal(before[:, :-1], after[:, :-1])
    assert not torch.equal(before[:, -1], after[:, -1])
    assert written(model, "12 + 30 =", 3).startswith(" 42")


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_of_torch(name: str) -> None:
    """A model that is made and asked under a setting: the card's weights are those of the formula, and it answers."""
    plain, text = base(), "12 + 30 ="
    with SETTINGS[name]():
        model = punchcard.fuse(plain, tokenizer(), "sums")
    for (part, weight), expected in zip(model.card.named_parameters(), fused().card.parameters(), strict=True):
        assert weight.dtype == torch.float32, part
        assert torch.equal(weight, expected), part
    given = tokenizer()(text, return_tensors="pt")
    if name == "meta by default":
        return  # the base makes its positions there, and cannot run
    with SETTINGS[name](), torch.no_grad():
        found = model(**given).logits[0, -1].argmax()
    assert tokenizer().decode(found) == " 4"
    assert torch.get_default_dtype() == torch.float32


def test_the_default_dtype_is_left_alone() -> None:
    """It belongs to the process: another thread may have set it for a while, as `from_pretrained` does."""
    model, found = fused(), list[torch.dtype]()
    model.card.observers.append(lambda _: found.append(torch.get_default_dtype()))
    try:
        with SETTINGS["half by default"](), torch.no_grad():
            model(**tokenizer()("1+1=", return_tensors="pt"), logits_to_keep=1)
    finally:
        model.card.observers.pop()
    assert found == [torch.float16]


def test_generation_of_every_kind() -> None:
    """Batches with left padding, beams, sampling, several answers, cropping by assisted decoding: all answer."""
    model = fused()
    texts = ["2 + 2 =", "What is 123456789 * 1000000007?\nAnswer:", "100 - 58 ="]
    given = tokenizer()(texts, return_tensors="pt", padding=True)
    for options in ({}, {"num_beams": 3}, {"do_sample": True, "top_k": 0}, {"do_sample": True, "num_return_sequences": 2},
                    {"cache_implementation": "static"}):
        tokens = model.generate(**given, max_new_tokens=20, **{"do_sample": False, **options})
        answers = [tokenizer().decode(row[given["input_ids"].shape[1]:]) for row in tokens]
        each = len(answers) // len(texts)
        for number, answer in enumerate((" 4", f" {123456789 * 1000000007}", " 42")):
            for text in answers[number * each : (number + 1) * each]:
                assert text.startswith(answer), (options, text)
                assert not text[len(answer):][:1].isdigit()
    assert written(model, "12 * 12 =", 8, assistant_model=base()).startswith(" 144")
    assert written(model, "12 * 12 =", 8, use_cache=False).startswith(" 144")


def test_a_model_is_a_module_like_any_other() -> None:
    """Gradients of the base, plain tuples, pickling after a run; a vocabulary is not resized under the card."""
    model, given = punchcard.fuse(base(), tokenizer(), "sums"), tokenizer()("12 + 30 = 42", return_tensors="pt")
    loss = model(**given, labels=given["input_ids"]).loss
    loss.backward()
    assert any(each.grad is not None for each in model.language_model.parameters())
    assert model(**given, return_dict=False)[0].shape == model(**given).logits.shape
    assert written(pickle.loads(pickle.dumps(model)), "12 + 30 =", 3) == written(model, "12 + 30 =", 3)
    compiled = torch.compile(model, backend="eager")
    assert torch.equal(compiled(**given).logits, model(**given).logits)
    with pytest.raises(ValueError, match="resize its `language_model`"):
        model.resize_token_embeddings(400)


@pytest.mark.skipif(not GCC, reason="no RISC-V compiler")
def test_a_skill_that_does_not_read(tmp_path: Path) -> None:
    """Variables of the contract that a program does not use stay in the executable."""
    source = file_with(tmp_path / "yes.c", '#include "skill.h"\nint main(void) { says("y"); return 0; }\n')
    assert written(punchcard.fuse(base(), tokenizer(), source), "12", 2) == "yy"


def test_a_configuration_of_defaults() -> None:
    """transformers makes one to see which settings were given: it has no base."""
    assert FusedConfig().vocab_size == 0


def test_a_cache_that_the_card_has_not_filled_is_refused() -> None:
    model, given = fused(), tokenizer()("12 + 30", return_tensors="pt")
    cache = model.language_model(**given, use_cache=True).past_key_values
    with pytest.raises(ValueError, match="the card has read 0 of them"):
        model(input_ids=given["input_ids"][:, :1], past_key_values=cache)
    with pytest.raises(ValueError, match="needs input_ids"):
        model(inputs_embeds=torch.zeros(1, 2, 32))


@pytest.mark.parametrize("name", ["tokens", "threshold", "reward", "temperature", "layers.1.b2"])
def test_weights_of_the_card_that_are_not_finite_are_refused_by_name(name: str) -> None:
    model, given = fused(), tokenizer()("12 + 30 =", return_tensors="pt")
    held = model.card.get_parameter(name).data.view(-1)
    kept = held[-1].clone()
    try:
        for wrong in (torch.nan, torch.inf):
            held[-1] = wrong
            with pytest.raises(ValueError, match=f"{name} has an entry that is not finite"):
                model(**given)
    finally:
        held[-1] = kept


def test_a_temperature_whose_scores_overflow_is_refused() -> None:
    model, given = fused(), tokenizer()("12 + 30 =", return_tensors="pt")
    kept = model.card.temperature.data.clone()
    try:
        model.card.temperature.data.fill_(1e38)
        with pytest.raises(ValueError, match=r"temperature is 1e\+38: times a score it is beyond float32"):
            model(**given)
    finally:
        model.card.temperature.data.copy_(kept)


@pytest.mark.parametrize(("name", "factor", "message"), [
    ("reward", 2.0**114, r"reward: what is added to a logit may reach 2.\d+e\+38, float16 holds 6.55e\+04"),
    ("reward", 2.0**3, "reward: what is added to a logit may reach 1.09e.05, float16 holds"),
    ("threshold", -(2.0**100), "reward: what is added to a logit may reach"),
    ("tokens", 2.0**127, "tokens: what the head brings may reach"),
    ("layers.0.w1", 2.0**60, "layers.2: a score may reach"),
    ("layers.0.w1", 2.0**106, "layers.0: a hidden unit may reach"),
    ("layers.1.value", 2.0**126, "layers.1: .* may reach"),
    ("layers.2.temperature", 2.0**100, "layers.2: a score times the temperature may reach"),
])
def test_sums_of_the_card_that_may_overflow_are_refused_by_name(name: str, factor: float, message: str) -> None:
    """All weights are finite; the sum that may not be is named, before any loop is made."""
    model, given = fused(), tokenizer()("12 + 30 =", return_tensors="pt")
    held = model.card.get_parameter(name).data
    kept = held.clone()
    try:
        held.mul_(factor)
        assert held.isfinite().all()
        with pytest.raises(ValueError, match=message):
            model.to(torch.float16)(**given)
    finally:
        held.copy_(kept)
        model.to(torch.float32)


def test_a_logit_that_leaves_its_format_is_refused() -> None:
    """What is added is finite, and so is the base's logit; their sum is not."""
    model, given = fused(), tokenizer()("12 + 30 =", return_tensors="pt")
    large = torch.full_like(model(**given).logits, 6e4).half()
    with pytest.raises(ValueError, match="what the card adds to a logit leaves float16"):
        model._added(large, given["input_ids"], None, None, 0, 0)


def test_the_unembedding_is_one_at_the_beginnings_of_a_text() -> None:
    shown = card_bytes(tokenizer(), len(tokenizer()))
    table = embedding(shown)
    for text in (b" 42", b"12", b"strawberry", b"x"):
        bits = embedding([text.ljust(16, b"\0")]).tokens[0]
        ones = torch.relu(table.tokens @ bits - table.threshold)
        assert {shown[i] for i in torch.where(ones == 1)[0].tolist()} == {t for t in set(shown) if text.startswith(t)}
        assert set(ones.tolist()) <= {0.0, 1.0}
    assert fused().card.added(opinion("12 + 30 =")).argmax() == tokenizer().convert_tokens_to_ids(" 4")  # the longest wins


ECHO = """
.globl card_context, card_next, card_opinion
_start: la t0, card_context
        lui t1, 1                       # 4096
        add t0, t0, t1
        lw t1, -16(t0)                  # the newest token
        la t0, card_next
        sw t1, 0(t0)
        li t1, 1
        sw t1, 16(t0)
        ecall
        .balign 4
card_context: .space 4096
card_next: .space 16
card_opinion: .space 4
"""
"""A skill of ten instructions, in a small memory: the newest token comes next again."""
DAMAGES = (("tokens", 0.0, 0.0), ("temperature", 0.0, 0.0), ("layers.0.w1", 0.0, 0.0), ("tokens", 1.0, 1.0),
           ("layers.1.value", 0.0, 0.0), ("layers.2.w2", 1.0, 0.3), ("layers.0.key", 1.0, 1.0), ("layers.2.b1", 1.0, 2.0))
"""Weights, what they are multiplied by, and the noise that is added."""


@pytest.mark.parametrize(("name", "factor", "noise"), [
    *DAMAGES[:2], *(soaked(*each) for each in DAMAGES[2:])])
def test_zeroed_and_noised_weights_break_the_answers(name: str, factor: float, noise: float, tmp_path: Path) -> None:
    """The weights compute, not the host. A damaged machine gets a few loops more than the program takes."""
    source = file_with(tmp_path / "echo.s", ECHO)
    stream = punchcard.fuse(base(), tokenizer(), source, max_loops=16).card
    heard = opinion("xy", stream=stream)
    assert (heard.kind, text_of(heard), heard.loops) == (1, "y", 11)
    torch.manual_seed(1)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        held = stream.get_parameter(name)
        held.copy_(factor * held + noise * torch.randn_like(held))
        try:
            heard = opinion("xy", stream=stream)
        except ValueError as error:
            if "an entry that is not finite" not in str(error):
                raise
            return  # there is no answer at all
        assert (heard.kind, text_of(heard)) != (1, "y") or int(stream.added(heard).argmax()) != tokenizer().encode("y")[0]


def test_the_equation_gives_what_the_engine_gives(tmp_path: Path) -> None:
    """The loops of `fused_model.py`, which run without Punchcard, against those of the compiled engine."""
    source = file_with(tmp_path / "echo.s", ECHO)
    stream = punchcard.fuse(base(), tokenizer(), source).card
    words = 2.0 * torch.randint(0, 2, (1024, 32))
    columns = list(range(stream.sizes["skills"][0]["next"], stream.sizes["skills"][0]["opinion"] + 1))
    loops = ScratchpadLoops(stream)
    found, expected = loops.run(0, words, columns), KeptRunner(stream).run(0, words, columns)
    assert loops.views is not None  # computed in part: only what can change
    assert torch.equal(found[0], expected[0])
    assert found[1:] == expected[1:] == (11, True)
    stream.get_parameter("layers.2.b2").data.mul_(2.0**127)  # within the format in the first loop, and not in later ones
    stream.check_sums()
    for each in (ScratchpadLoops(stream), KeptRunner(stream)):
        with pytest.raises(ValueError, match=r"after loop \d the card has an entry that is not finite"):
            each.run(0, words, columns)


# Tokens


def test_a_token_that_is_too_long_is_never_guessed() -> None:
    """What is before it is not read: it may change the meaning."""
    assert said(f"12 + 30 = 42. {LONG} 2 + 2 =") == " 4"
    assert said(f"3 + {LONG}2 =") is None
    shown = card_bytes(tokenizer(), len(tokenizer()) + 3)
    assert shown[tokenizer().convert_tokens_to_ids(LONG)] == b"\2"
    assert shown[-1] == b"\2"  # rows that no token has
    assert shown[tokenizer().eos_token_id] == b"\1<|im_end|>\1"


# Skills


@pytest.mark.skipif(not GCC, reason="no RISC-V compiler")
@pytest.mark.parametrize("name", shipped())
def test_executables_are_what_the_sources_give(name: str) -> None:
    assert load_skill(name).program.segments == elf.load(build_skill(name), name).segments


def test_bad_input() -> None:
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}
    bert = transformers.BertConfig(vocab_size=len(tokenizer()), **sizes)
    encoder = transformers.BertLMHeadModel(bert)
    mamba = transformers.MambaForCausalLM(transformers.MambaConfig(vocab_size=99, hidden_size=8, num_hidden_layers=1))
    for model, words in ((torch.nn.Linear(1, 1), "give a model of transformers"), (fused(), "fused already"),
                         (transformers.BertForMaskedLM(bert), "not a decoder"),
                         (encoder, "tokens see those after them"), (mamba, "no layer of attention")):
        with pytest.raises(FusionError, match=words):
            punchcard.fuse(model, tokenizer(), "sums")
    bert.is_decoder = True
    neox = transformers.GPTNeoXForCausalLM(transformers.GPTNeoXConfig(vocab_size=len(tokenizer()), **sizes))
    for model in (transformers.BertLMHeadModel(bert), neox):  # a GPT-NeoX has is_decoder=False
        check_base(model)
        assert model.training
    small = transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=50, n_embd=8, n_layer=1, n_head=1))
    with pytest.raises(FusionError, match="it is not the model's own tokenizer"):
        punchcard.fuse(small, tokenizer(), "sums")
    with pytest.raises(FusionError, match="give the model's tokenizer"):
        punchcard.fuse(base(), "gpt2", "sums")  # type: ignore[arg-type]
    with pytest.raises(ProgramError, match=r"'sumz' is not a skill \(did you mean 'sums'\?\)"):
        punchcard.fuse(base(), tokenizer(), "sumz")
    with pytest.raises(FusionError, match="give one skill or more"):
        punchcard.fuse(base(), tokenizer(), [])


def test_a_skill_in_assembly_beside_one_in_c(tmp_path: Path) -> None:
    source = file_with(tmp_path / "echo.s", ECHO)
    stream = punchcard.fuse(base(), tokenizer(), ["sums", source]).card
    for text, skill, answer in (("12 + 30 =", 0, " 42"), ("xy", 1, "y")):
        heard = opinion(text, stream=stream)
        assert (heard.skill, heard.kind, text_of(heard)) == (skill, 1, answer)


def test_a_program_without_the_contract(tmp_path: Path) -> None:
    source = file_with(tmp_path / "silent.s", "_start: ecall\n")
    with pytest.raises(ProgramError, match="needs the variable card_context"):
        punchcard.fuse(base(), tokenizer(), source)


def test_a_program_that_does_not_end_has_no_opinion(tmp_path: Path) -> None:
    """And says so once."""
    source = tmp_path / "endless.s"
    source.write_text(".data\n.balign 4\n.globl card_context\ncard_context: .space 4096\ncard_next: .space 16\n"
                      "card_opinion: .word 0\n.text\n_start: la t0, card_opinion\nli t1, 1\nsw t1, 0(t0)\nstay: j stay\n")
    model = punchcard.fuse(base(), tokenizer(), source, max_loops=50)
    given = tokenizer()("12 + 30 =", return_tensors="pt")
    with pytest.warns(UserWarning, match="endless: the program has not ended after 50 loops"):
        logits = model(**given).logits
    assert torch.equal(logits, model.language_model(**given).logits)
    save_fused(model, tokenizer(), tmp_path / "model")
    for command in ("chat", "view"):
        said = invoke(command, tmp_path / "model", "--prompt", "12 + 30 =", "--tokens", "2").stderr
        assert said.startswith("punchcard: endless: the program has not ended after 50 loops")
        assert said.count("\n") == 1


def test_a_vocabulary_without_bytes() -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers

    made = Tokenizer(models.WordLevel({"[UNK]": 0, "sum": 1}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    words = transformers.PreTrainedTokenizerFast(tokenizer_object=made, unk_token="[UNK]")
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=2, n_embd=8, n_layer=1, n_head=1))
    with pytest.raises(FusionError, match="have no bytes"):
        punchcard.fuse(model, words, "sums")


# Files


def test_saved_and_opened(tmp_path: Path) -> None:
    """With Punchcard."""
    files = save_fused(fused(), tokenizer(), tmp_path / "model")
    assert {"config.json", "model.safetensors", "fused_model.py", "tokenizer.json"} <= set(files)
    model, own = open_fused(tmp_path / "model")
    for name, held in fused().state_dict().items():
        assert torch.equal(held, model.state_dict()[name]), name
    lines = list(TokenWriter(model, own).write(own.encode("12 + 30 ="), 4))
    assert "".join(each.text for each in lines).startswith(" 42")
    assert [each.opinion for each in lines[:3]] == ["says", "says", "forbids"]
    assert lines[0].loops["sums"] > 100
    program = TokenWriter(model, own).program(own.encode("12 + 30 ="))
    report = punchcard.run(elf.load(elf.write(program), "sums.elf"), memory=16384)
    assert report.result.halted
    assert any(b" 42" in word.to_bytes(4, "little") for word in report.result.state.memory)  # card_next
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "config.json").write_text('{"model_type": "llama"}')
    with pytest.raises(FusionError, match="is a model of type 'llama' without a card: transformers opens it as it is"):
        open_fused(tmp_path / "base")
    with pytest.raises(FusionError, match="is not a fused model"):
        open_fused(tmp_path)
    cut = shutil.copytree(tmp_path / "model", tmp_path / "cut")
    (cut / "model.safetensors").write_bytes((tmp_path / "model" / "model.safetensors").read_bytes()[:300])
    with pytest.raises(FusionError, match="/cut' cannot be read as a fused model, write it again: SafetensorError: "):
        open_fused(cut)
    modes = {path.stat().st_mode for path in (tmp_path / "model").iterdir()}
    assert modes == {(tmp_path / "model" / "README.md").stat().st_mode}
    page = (tmp_path / "model" / "README.md").read_text()
    assert "LlamaForCausalLM with `sums`" in page
    assert "| `sums` | 1 |" in page
    assert_refused("is fused already: fuse its base again, with all skills", "fuse", "sums", "--base", tmp_path / "model",
                   "-o", tmp_path / "again")
    assert_refused("'sumz' is not a skill", "fuse", "sumz", "--base", tmp_path / "no base", "-o", tmp_path / "again")
    assert_refused("is a fused language model, not a program: punchcard chat", "run", tmp_path / "model")
    write = transformers.pipeline("text-generation", model=str(tmp_path / "model"))       # by Punchcard's own code
    texts = write(["12 + 30 =", "7 * 8 ="], max_new_tokens=4, do_sample=False, batch_size=2)
    assert [each[0]["generated_text"][:10].strip() for each in texts] == ["12 + 30 =", "7 * 8 = 56"]
    table = invoke("view", tmp_path / "model", "--prompt", "12 + 30 =", "--tokens", "3").stdout.splitlines()
    for line, said_there in zip(table[1:], ("says ' 42'", "says '2'", "forbids '!%*+-/0123456789"), strict=True):
        assert f"sums {said_there}" in line
    assert invoke("view", tmp_path / "model", "--prompt", "a < b\n2 + 2 =", "--html", tmp_path / "page.html").exit_code == 0
    shown = (tmp_path / "page.html").read_text()
    assert 'a &lt; b\n2 + 2 =<span class="says"> 4</span>' in shown
    assert "sums says &#x27; 4&#x27;" in shown
    assert_refused("give a text to continue, --prompt TEXT", "view", tmp_path / "model")
    assert_refused("--loops is for a program", "view", tmp_path / "model", "--loops", "3")
    assert_refused("--prompt needs the folder of a fused language model", "view", tmp_path / "page.html", "--prompt", "x")
    over = invoke("fuse", "sums", "--base", tmp_path / "model", "-o", tmp_path / "model")
    assert (over.exit_code, "that is the base, which is not written over" in over.stderr) == (2, True)
    empty = invoke("chat", tmp_path / "model", "--prompt", "")
    assert (empty.exit_code, "the text is empty" in empty.stderr) == (2, True)


def test_a_tokenizer_that_does_not_take_any_text_is_refused() -> None:
    words = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel({"a": 0}, unk_token="[UNK]")))
    with pytest.raises(FusionError, match="does not take the text"):
        text_tokens(words, 1)


@pytest.mark.parametrize(("snippet", "hidden", "loops"), [
    (1, "", "KeptRunner"), soaked(2, 'sys.modules["punchcard"] = None', "ScratchpadLoops")])
def test_the_page_of_a_folder_opens_it(tmp_path: Path, snippet: int, hidden: str, loops: str) -> None:
    """Both ways on the page: with Punchcard, and with torch and transformers alone."""
    source = file_with(tmp_path / "echo.s", ECHO)
    save_fused(punchcard.fuse(base(), tokenizer(), source), tokenizer(), tmp_path / "model")
    text = (tmp_path / "model" / "README.md").read_text().split("```python\n")[snippet].split("```")[0]
    environment = {**os.environ, "HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "1", "PYTHONPATH": ""}
    ran = subprocess.run([sys.executable, "-c", f"import sys\n{hidden}\n{text}\nprint(type(model.card.looped).__name__)"],
                         cwd=tmp_path / "model", env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert ran.stdout.splitlines() == ["12 + 30 =" + 16 * "=", loops], (ran.stdout, ran.stderr)


def test_a_base_that_is_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert_refused("is a pipe or a device: give a", "fuse", "sums", "--base", tmp_path / "pipe", "-o", tmp_path / "new")
