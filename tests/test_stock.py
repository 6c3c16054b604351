"""Stock checkpoints: what `transformers` writes after a program is what the plain interpreter writes."""

from __future__ import annotations

import json
import random
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import islice, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import punchcard
from punchcard.errors import PrecisionError, ProgramError, PunchcardError, SizeError, StorageError, WeightsError
from punchcard.language_models.stock.checkpoint import FORMS, StockCheckpoint, open_checkpoint, structure_in, weights_in
from punchcard.language_models.stock.engine import TraceEngine
from punchcard.language_models.stock.image_language import VonNeumannText
from punchcard.language_models.stock.language import SubleqText, first_difference
from punchcard.language_models.stock.running import run_checkpoint
from punchcard.language_models.stock.structure import Structure, structure_of
from punchcard.language_models.stock.units import check_bits
from punchcard.machines.subleq.isa import Halt, Program, Subleq
from punchcard.machines.von_neumann.isa import Image
from tests.cases import EXAMPLES
from tests.command_line import assert_refused, invoke
from tests.random_programs import random_image, random_program

transformers = pytest.importorskip("transformers")
torch = pytest.importorskip("torch")

every_form = pytest.mark.parametrize("form", FORMS)
TEXT = SubleqText(5, 6, 9)
PROMPT = "0: 0 1 1\n1: 1 2 2\n2: halt\n@0 3\n@1 5\n@2 0\n0:"


@cache
def checkpoint(form: str, dtype: str = "float32", text: Any = TEXT, positions: int = 256) -> StockCheckpoint:
    return StockCheckpoint(form, text, dtype, positions)


@cache
def model_of(form: str, dtype: str, text: Any = TEXT, positions: int = 256) -> Any:
    """The model as transformers makes it from the folder's own files, without writing them."""
    made = checkpoint(form, dtype, text, positions)
    written = FORMS[form]
    config = transformers.AutoConfig.for_model(**written.config(made.weights))
    model = transformers.AutoModelForCausalLM.from_config(config).to(getattr(torch, dtype)).eval()
    model.load_state_dict({name: torch.from_numpy(np.ascontiguousarray(tensor)) for name, tensor
                           in written.tensors(made.weights).items()}, strict=True)
    return model


def tokens_of(text: Any, words: list[str]) -> list[int]:
    numbers = {word: token for token, word in enumerate(text.vocabulary())}
    return [numbers[word] for word in words]


@cache
def structure(form: str, dtype: str = "float32", text: Any = TEXT, positions: int = 256) -> Structure:
    made = checkpoint(form, dtype, text, positions)
    return structure_of(made.weights, form, made.placing)


@cache
def engine(form: str, text: Any, positions: int) -> TraceEngine:
    return TraceEngine(structure(form, "float32", text, positions))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A program exported by the command to a form."""
    @cache
    def exported(form: str) -> Path:
        place = tmp_path_factory.mktemp("stock") / form
        invoke("export", EXAMPLES / "multiply.subleq", "--bits", "6", "--dtype", "float32", "--set", "a=5",
               "--set", "b=3", "--positions", "128", "--to", form, "-o", place, status=0)
        return place

    return exported


# The construction


@every_form
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_pair_of_words(form: str, dtype: str) -> None:
    """All differences of 4 bits, and what follows them: jumps for each sign. Every logit leads by what is claimed."""
    text = SubleqText(4, 2, 4)
    claimed = structure(form, dtype, text, 64).margin
    prompts, wanted = [], []
    for a, b in product(range(-8, 8), repeat=2):
        program = Program.create([Subleq(0, 1, 2), Halt(), Halt()], [a, b])
        prompts.append(tokens_of(text, text.prompt(program).split()))
        wanted.append(tokens_of(text, list(text.expected(program))))
    sequence = torch.tensor([[*prompt, *trace] for prompt, trace in zip(prompts, wanted, strict=True)])
    with torch.no_grad():
        logits = model_of(form, dtype, text, 64)(sequence[:, :-1]).logits[:, len(prompts[0]) - 1 :]
    highest = logits.topk(2)
    assert highest.indices[..., 0].tolist() == wanted
    assert float((highest.values[..., 0] - highest.values[..., 1]).min()) >= claimed > 29


@every_form
def test_random_programs_in_any_order(form: str) -> None:
    """Lines of a prompt may come in any order; of two about the same thing the later counts."""
    rng = random.Random(5)
    model, engine = model_of(form, "float32"), TraceEngine(structure(form))
    for _ in range(6):
        program = random_program(rng, TEXT.word_bits, TEXT.memory, TEXT.instructions)
        lines = TEXT.prompt(program).splitlines()[:-1]
        rng.shuffle(lines)
        prompt = tokens_of(TEXT, " ".join(["@0 1 0: 1 1 1", *lines, "0:"]).split())
        wanted = tokens_of(TEXT, list(islice(TEXT.expected(program), 256 - len(prompt))))
        with torch.no_grad():
            logits = model(torch.tensor([[*prompt, *wanted[:-1]]])).logits[0, len(prompt) - 1 :]
        assert logits.argmax(-1).tolist() == wanted
        assert engine.generate(prompt) == wanted


@pytest.mark.parametrize(("form", "bits"), [("gpt2", 9), ("llama", 12)])
def test_the_engine_writes_what_the_interpreter_writes(form: str, bits: int) -> None:
    text = SubleqText(bits, 12, 20)
    assert _compared(form, text, "float32", 2048, 20_000) >= 20_000


@pytest.mark.soak
@every_form
@pytest.mark.parametrize(("bits", "positions"), [(8, 8192), (16, 4096)])
def test_a_million_tokens(form: str, bits: int, positions: int) -> None:
    assert _compared(form, SubleqText(bits, 20, 30), "float32", positions, 250_000) >= 250_000


def _compared(form: str, text: SubleqText, dtype: str, positions: int, tokens: int) -> int:
    rng, engine, made = random.Random(3), TraceEngine(structure(form, dtype, text, positions)), 0
    words = text.vocabulary()
    while made < tokens:
        program = random_program(rng, text.word_bits, text.memory, text.instructions)
        trace = engine.generate(tokens_of(text, text.prompt(program).split()))
        assert first_difference([words[token] for token in trace], text.expected(program)) is None
        made += len(trace)
    return made


@every_form
@pytest.mark.parametrize("bits", [8, 16])
def test_weights_see_sizes_alone(form: str, bits: int) -> None:
    """One set of weights for all programs: nothing else is given when they are made. Long words take a fourth layer."""
    layers = StockCheckpoint(form, SubleqText(bits, 4, 4), "float32", 64).decoder.layers
    assert len(layers) == (3 if bits == 8 else 4)
    assert {"form", "text", "dtype", "positions"} == set(StockCheckpoint.__dataclass_fields__)


# The engine


@every_form
def test_changed_weights_are_declined_or_computed(form: str) -> None:
    """Whatever weight is changed: the engine gives the tokens that transformers gives, or declines."""
    made, rng = checkpoint(form), np.random.default_rng(2)
    arch, declined, same = FORMS[form], 0, 0
    tensors, config = arch.tensors(made.weights), arch.config(made.weights)
    prompt = tokens_of(TEXT, PROMPT.split())
    for name in [*tensors] * 2:
        changed = {each: tensor.copy() for each, tensor in tensors.items()}
        place = tuple(rng.integers(size) for size in changed[name].shape)
        changed[name][place] += rng.choice([-2.0, -0.25, 0.25, 1.0, 3.0])
        try:
            weights = arch.weights(changed, config)
            written = TraceEngine(structure_of(weights, form, made.placing)).generate(prompt, 12)
        except WeightsError:
            declined += 1
            continue
        model = transformers.AutoModelForCausalLM.from_config(transformers.AutoConfig.for_model(**config)).eval()
        model.load_state_dict({each: torch.tensor(tensor, dtype=torch.float32) for each, tensor in changed.items()})
        found = model.generate(torch.tensor([prompt]), max_length=None, max_new_tokens=12, do_sample=False)[0, len(prompt):]
        assert written == found.tolist()
        same += 1
    assert declined > len(tensors) / 2
    assert declined + same == 2 * len(tensors)


@every_form
@pytest.mark.parametrize(("changes", "where"), [
    ({"readout": 2.0**128}, "a logit may reach"), ({"readout": np.nan}, "a logit may reach nan"),
    ({"value": 2.0**128, "output": 2.0**-128}, "layer 1, head 1, a value may reach"),
    ({"query": 2.0**100, "key": 2.0**20}, "layer 1, head 1, a score may reach"), ({"key": np.nan}, "a key may reach nan"),
    ({"w1": 2.0**118}, "a hidden unit may reach")])
def test_sums_that_leave_the_number_format_are_refused(form: str, changes: dict[str, float], where: str) -> None:
    """Also where the tokens over the real numbers would be those of the formula."""
    made = checkpoint(form)

    def scaled(holder: Any) -> Any:
        return replace(holder, **{name: getattr(holder, name) * by for name, by in changes.items() if hasattr(holder, name)})

    weights = scaled(replace(made.weights, layers=tuple(map(scaled, made.weights.layers))))
    with pytest.raises(WeightsError, match=where):
        structure_of(weights, form, made.placing)


def test_whole_rows_can_be_exchanged() -> None:
    """Another table of tokens is another machine, and the engine runs that: it knows no instruction."""
    made = checkpoint("llama")
    weights, rng = made.weights, np.random.default_rng(1)
    order = np.arange(len(weights.embedding))
    order[:-1] = rng.permutation(order[:-1])
    shuffled = replace(weights, embedding=weights.embedding[order], readout=weights.readout[order])
    program = random_program(random.Random(4), 5, 6, 9)
    prompt = tokens_of(TEXT, TEXT.prompt(program).split())
    renamed = {int(old): new for new, old in enumerate(order)}
    plain = TraceEngine(structure("llama")).generate(prompt)
    other = TraceEngine(structure_of(shuffled, "llama", made.placing)).generate([renamed[token] for token in prompt])
    assert other == [renamed[token] for token in plain]


# Folders


@every_form
def test_a_folder_is_a_stock_model(form: str, folder: Callable[[str], Path]) -> None:
    place = folder(form)
    model = transformers.AutoModelForCausalLM.from_pretrained(place)
    tokenizer = transformers.AutoTokenizer.from_pretrained(place)
    assert type(model).__module__.startswith("transformers.models.")
    prompt = (place / "prompt.txt").read_text()
    given = tokenizer([prompt, PROMPT], return_tensors="pt", padding=True)     # a batch, filled up on the left
    first, second = tokenizer.batch_decode(model.generate(**given)[:, given.input_ids.shape[1] - 1 :])
    assert first.strip().splitlines()[:2] == ["0: @3 -5", "1: @2 5"]
    assert first.strip().splitlines()[-1] == "4: halt"
    assert second.split("halt")[0].split() == "0: @1 2 1: @2 -2 2:".split()
    line = transformers.pipeline("text-generation", model=str(place))(prompt)[0]["generated_text"]
    assert line.endswith("2: @1 0\n4:")
    assert line.startswith(prompt)


@every_form
def test_the_weights_in_a_folder_are_the_formula(form: str, folder: Callable[[str], Path]) -> None:
    place = folder(form)
    made, found = open_checkpoint(place), weights_in(place)
    assert np.array_equal(found.embedding, made.weights.embedding)
    for ours, theirs in zip(made.weights.layers, found.layers, strict=True):
        assert np.allclose(ours.query, theirs.query[: len(ours.query)], rtol=1e-6)
        assert np.array_equal(ours.w1, theirs.w1[: len(ours.w1)])
    assert structure_in(place).margin > 29


def test_the_example(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / "interop" / "stock_gpt2.py"), run_name="__main__")
    assert "1: @2 42\n2: @1 0\n4: halt" in capsys.readouterr().out


@pytest.mark.soak
@every_form
def test_a_stranger_runs_the_page(form: str, folder: Callable[[str], Path]) -> None:
    """The program of the folder's page, in a fresh process without Punchcard."""
    page = (folder(form) / "README.md").read_text()
    code = "import sys; sys.modules['punchcard'] = None\n" + page.split("```python\n")[1].split("```")[0]
    ran = subprocess.run([sys.executable, "-c", code], cwd=folder(form), capture_output=True, text=True, check=True)
    assert ran.stdout.strip().endswith("4: halt")


@every_form
def test_the_command_runs_a_folder(form: str, folder: Callable[[str], Path]) -> None:
    ran = invoke("run", folder(form), "--on", "stock", "--json", status=0)
    told = json.loads(ran.stdout)
    assert (told["agrees"], told["halted"], told["steps"], told["memory"][2]) == (True, True, 9, 15)
    same = run_checkpoint(folder(form), engine="transformers", max_steps=4)
    assert (" ".join(same.words), same.agrees) == (" ".join(told["trace"].split()[:12]), True)
    shown = invoke("run", folder(form), "--on", "stock", "--trace").stdout.splitlines()
    assert shown[:2] == ["0: @3 -5", "1: @2 5"]                # from the label with which the prompt ends
    assert " ".join(shown[:10]) == f"0: {told['trace']}"
    assert shown[10] == "halted at 4 after 9 instructions, 28 tokens"
    assert shown[-1] == "check    agrees with the interpreter"


def test_a_wrong_token_is_found(folder: Callable[[str], Path], tmp_path: Path) -> None:
    """Tokens of two numbers exchanged: the model writes the wrong one, and the command says which."""
    from safetensors.numpy import load_file, save_file

    place = tmp_path / "broken"
    shutil.copytree(folder("llama"), place)
    tensors = load_file(place / "model.safetensors")
    words = open_checkpoint(place).text.vocabulary()
    one, two = words.index("10"), words.index("11")
    tensors["lm_head.weight"][[one, two]] = tensors["lm_head.weight"][[two, one]]
    save_file(tensors, place / "model.safetensors", metadata={"format": "pt"})
    ran = invoke("run", place, "--on", "stock", status=1)
    assert "check    token 13 is '11', the interpreter's is '10'" in ran.stdout


# Claims


@every_form
def test_every_gap_is_a_claim(form: str, folder: Callable[[str], Path], tmp_path: Path) -> None:
    ran = invoke("prove", folder(form), "--on", "stock", "-o", tmp_path / "certificate.json", status=0)
    assert "proven: " in ran.stdout
    assert "attends to the column 1 position back, and to no other" in ran.stdout
    told = json.loads((tmp_path / "certificate.json").read_text())
    assert told["proven"]
    names = [claim["name"] for claim in told["claims"]]
    assert names == ["columns", *(f"layer 1, head {i}" for i in (1, 2, 3, 4)), "layer 2, head 1", "layer 3, head 1",
                     "layer 3, head 2", "units", "entries", "logits", "sizes"]
    assert ("LayerNorm" in told["promises"][0]) == (form == "gpt2")
    again = invoke("prove", folder(form), "--on", "stock", "--verify", tmp_path / "certificate.json")
    assert (again.exit_code, again.stdout.splitlines()[-1].endswith("is confirmed")) == (0, True)
    told["claims"][-2]["about"] = told["claims"][-2]["about"].replace("others by", "others by 1")
    (tmp_path / "changed.json").write_text(json.dumps(told))
    again = invoke("prove", folder(form), "--on", "stock", "--verify", tmp_path / "changed.json", "--json")
    assert (again.exit_code, "the claim 'logits' is not proven" in json.loads(again.stdout)["disagreements"]) == (1, True)
    assert_refused("is about a stock checkpoint: give its folder as FILE, and --on stock", "prove", "--verify",
                   tmp_path / "certificate.json")


@every_form
def test_a_changed_weight_fails_a_claim(form: str, folder: Callable[[str], Path], tmp_path: Path) -> None:
    """Each claim can fail: weights of every kind are changed, and the name of what does not hold is given."""
    from safetensors.numpy import load_file, save_file

    shutil.copytree(folder(form), tmp_path / "changed")
    tensors = load_file(tmp_path / "changed" / "model.safetensors")
    rng = np.random.default_rng(7)
    for name, tensor in tensors.items():
        place = tuple(rng.integers(size) for size in tensor.shape)
        kept = tensor[place].copy()
        tensor[place] += 1.0
        save_file(tensors, tmp_path / "changed" / "model.safetensors", metadata={"format": "pt"})
        ran = invoke("prove", tmp_path / "changed", "--on", "stock", status=1)
        assert "violated: " in ran.stdout, name
        tensor[place] = kept
    save_file(tensors, tmp_path / "changed" / "model.safetensors", metadata={"format": "pt"})
    assert invoke("prove", tmp_path / "changed", "--on", "stock").exit_code == 0


def test_units_that_leave_no_bits_are_found() -> None:
    """By exact arithmetic on all that they read: a step at the wrong place is flat, one with a wrong height is not."""
    found = structure("llama")
    assert check_bits(found) > 100
    last = found.layers[-1]
    for unit in (0, 5, 20):
        changed = last.w2.copy()
        changed[:, unit] *= 2
        broken = replace(found, layers=(*found.layers[:-1], replace(last, w2=changed)))
        with pytest.raises(WeightsError, match="what its units add is not 0 or 2"):
            check_bits(broken)


# One memory, with input and output


IMAGES = VonNeumannText(8, 60, 6)


@every_form
def test_images_that_change_themselves_read_and_write(form: str) -> None:
    """Random images with stores to their own code, and ports among their operands, against the plain interpreter."""
    assert _compared_images(form, IMAGES, 6_000) >= 6_000


@pytest.mark.soak
@every_form
@pytest.mark.parametrize("text", [IMAGES, VonNeumannText(10, 200, 6)])
def test_many_images(form: str, text: VonNeumannText) -> None:
    assert _compared_images(form, text, 50_000) >= 50_000


def _compared_images(form: str, text: VonNeumannText, tokens: int) -> int:
    rng, words, made = random.Random(4), text.vocabulary(), 0
    writer = engine(form, text, 2048)
    port = (1 << text.word_bits) - 1
    kinds: set[str] = set()
    while made < tokens:
        cells = list(random_image(rng, text.word_bits, text.memory).words)
        for at in range(0, len(cells) - 2, 3):
            cells[at], cells[at + 1] = (port if rng.random() < 0.1 else cells[at + k] for k in (0, 1))
        image, given = Image(tuple(cells)), bytes(rng.randrange(256) for _ in range(text.inputs - 1))
        prompt = text.prompt(image, given)
        assert text.program(prompt)[1] == given
        trace = list(islice(text.expected((image, given)), 1500))
        past = f"<{text.inputs + 1}"                         # beyond the end of the input
        trace = trace[: trace.index(past)] if past in trace else trace
        found = writer.generate(tokens_of(text, prompt.split()), len(trace))
        assert [words[token] for token in found] == trace
        made += len(trace)
        kinds |= {word[0] for word in trace}
    assert kinds >= set("@<>'h")
    return made


@every_form
def test_hello_world_by_generate(form: str, tmp_path: Path) -> None:
    """An image writes its text by tokens; every gap of it is proven too."""
    place = tmp_path / form
    invoke("export", EXAMPLES / "von_neumann" / "hello.asq", "--bits", "8", "--memory", "45", "--dtype", "float32",
           "--positions", "512", "--to", form, "-o", place, status=0)
    told = json.loads(invoke("run", place, "--on", "stock", "--json").stdout)
    assert (told["agrees"], told["halted"], told["output"]) == (True, True, "Hello from a transformer.\n")
    model = transformers.AutoModelForCausalLM.from_pretrained(place)
    tokenizer = transformers.AutoTokenizer.from_pretrained(place)
    given = tokenizer((place / "prompt.txt").read_text() + told["trace"], return_tensors="pt")
    with torch.no_grad():                                     # all tokens of the trace in one pass
        logits = model(**given).logits[0].argmax(-1)
    size = len(told["trace"].split())
    assert logits[-size - 1 : -1].tolist() == given.input_ids[0, -size:].tolist()
    prompt = tokenizer((place / "prompt.txt").read_text(), return_tensors="pt")
    first = model.generate(**prompt, max_new_tokens=7, max_length=None)
    assert tokenizer.decode(first[0, -7:]) == " @17 72\n3: > 'H'\n6: @1"
    assert invoke("prove", place, "--on", "stock").exit_code == 0
    assert "output   'Hello from a transformer.\\n'" in invoke("run", place, "--on", "stock").stdout


def test_an_echo_reads_its_prompt(tmp_path: Path) -> None:
    """The input is part of the prompt, and each character that is read is counted by a token."""
    text = VonNeumannText(8, 12, 4)
    image = Image((-1, -1, 0, 9, 9, 0, 0, 0, 0, 0, 0, 0))     # reads a character and writes it, again and again
    words = text.vocabulary()
    prompt = tokens_of(text, text.prompt(image, b"ok").split())
    found = engine("llama", text, 128).generate(prompt, 9)
    assert " ".join(words[token] for token in found) == "<1 > 'o' 3: @9 0 0: <2 >"
    trace = text.decoded((image, b"ok"), list(islice(text.expected((image, b"ok")), 11)))
    assert (trace.output, trace.steps) == (b"ok", 3)
    for wrong, message in (("@0 1 <0 0:", "the prompt has 1 cells: it must have all of @0 to @11"),
                            ("@0 1 0:", "a prompt ends with <0 0:")):
        with pytest.raises(ProgramError, match=message):
            text.program(wrong)
    with pytest.raises(ProgramError, match="an input of 5 characters: this checkpoint has room for 4"):
        text.prompt(image, b"12345")
    with pytest.raises(SizeError, match="characters have 8 bits"):
        VonNeumannText(6, 12)
    assert_refused("a stock checkpoint has the dialect 'standard'", "export", "--machine", "von-neumann",
                   "--dialect", "sic1", "--to", "gpt2", "-o", tmp_path / "none")


# Texts


def test_a_prompt_is_read_back() -> None:
    program = punchcard.load(EXAMPLES / "multiply.subleq")
    text = SubleqText(8, len(program.memory), len(program.instructions))
    assert text.program(text.prompt(program)).instructions == program.instructions
    trace = list(text.expected(program.with_values({"a": 6, "b": 2})))
    end = text.decoded(program, trace)
    assert (end.halted, end.memory[2], end.steps) == (True, 12, len(trace) // 3)
    assert text.decoded(program, trace[:4]).steps == 1


@pytest.mark.parametrize(("prompt", "message"), [
    ("", "the prompt is empty"),
    ("0: 1 2 3\n@0 1", "a prompt ends with the label of the first instruction"),
    ("0: 1 2", "'0: 1 2': an instruction has three operands"),
    ("0: halt @1 3 0:", "the prompt has no cell 0, but later ones"),
    ("0: halt @0 99 0:", "'99' is not a token of this checkpoint: numbers are -16 to 15"),
    ("0: halt @77 1 0:", "'@77' is not a token of this checkpoint: addresses are @0 to @5"),
    ("x: halt @0 1 0:", "'x:' is not a token of this checkpoint: labels are 0: to 8:"),
    ("0 halt 0:", "'0' where a label such as 0: is expected"),
])
def test_a_prompt_that_is_wrong(prompt: str, message: str) -> None:
    with pytest.raises(ProgramError) as raised:
        TEXT.program(prompt)
    assert message in str(raised.value)


def test_what_is_refused(folder: Callable[[str], Path], tmp_path: Path) -> None:
    for make, error, message in (
        (lambda: StockCheckpoint("gpt2", TEXT, "bfloat16"), PrecisionError, "bfloat16 is too narrow for a stock checkpoint"),
        (lambda: StockCheckpoint("gpt2", TEXT, "float16"), PrecisionError, "float16 is too narrow for a stock checkpoint"),
        (lambda: StockCheckpoint("bert", TEXT), PunchcardError, "unknown form 'bert': there are gpt2, llama"),
        (lambda: StockCheckpoint("gpt2", TEXT, positions=9), SizeError, "positions=9: a context has 64 to 65536 positions"),
        (lambda: SubleqText(17, 4, 4), SizeError, "words have 4 to 16 bits (--bits)"),
        (lambda: SubleqText(4, 9, 4), SizeError, "memory=9: operands are words that are not negative"),
        (lambda: open_checkpoint(tmp_path), StorageError, "is not a stock checkpoint: it has no machine.json"),
        (lambda: run_checkpoint(folder("gpt2"), engine="table"), PunchcardError, "(did you mean 'tables'?)"),
    ):
        with pytest.raises(error) as raised:
            make()
        assert message in str(raised.value)
    for command in ("run", "prove"):
        assert_refused("is the folder of a stock checkpoint, not a program: add --on stock", command, folder("gpt2"))
        assert_refused("there is no such folder; one is a folder with machine.json, config.json", command, tmp_path / "none",
                       "--on", "stock")
    assert_refused("--trace=story cannot be used with --on stock", "run", folder("gpt2"), "--on", "stock",
                   "--trace", "story")
    assert_refused("--dtype float16: an export to gpt2 needs float32 or float64", "export", EXAMPLES / "primes.subleq",
                   "--dtype", "float16", "--to", "gpt2", "-o", tmp_path / "none")
    assert_refused("--set cannot be used with --on stock", "run", folder("gpt2"), "--on", "stock", "--set", "a=1")
    assert_refused("has no form as a stock checkpoint: there are subleq, von-neumann", "export", "--machine", "fleq",
                   "--to", "gpt2", "-o", tmp_path / "none")
    assert_refused("tokens, the context 64 positions: use --positions", "export", EXAMPLES / "primes.subleq", "--bits", "8",
                   "--positions", "64", "--to", "gpt2", "-o", tmp_path / "none")


@pytest.mark.soak
def test_a_context_that_is_too_long_is_refused_with_the_longest() -> None:
    """And the longest holds."""
    with pytest.raises(PrecisionError) as raised:
        StockCheckpoint("gpt2", SubleqText(8, 8, 8), "float32", 20_000).check_context()
    most = int(str(raised.value).split("up to ")[1].split()[0])
    assert StockCheckpoint("gpt2", SubleqText(8, 8, 8), "float32", most).holds()
    assert not StockCheckpoint("gpt2", SubleqText(8, 8, 8), "float32", most + 1).holds()
    assert StockCheckpoint("gpt2", SubleqText(8, 8, 8), "float64", 20_000).holds()


@pytest.mark.parametrize(("form", "name", "change", "wanted"), [
    ("gpt2", "config.json", {"n_head": 1}, "n_head = 1"),
    ("gpt2", "config.json", {"scale_attn_weights": False}, "scale_attn_weights = False"),
    ("llama", "config.json", {"rope_scaling": {"rope_type": "linear", "factor": 2.0}}, "rope_scaling"),
    ("llama", "config.json", {"attention_bias": True}, "attention_bias = True"),
    ("llama", "generation_config.json", {"repetition_penalty": 2.0}, "repetition_penalty"),
    ("gpt2", "generation_config.json", {"eos_token_id": 3}, "eos_token_id = 3"),
])
def test_a_setting_that_makes_another_model_is_refused(
    form: str, name: str, change: dict[str, Any], wanted: str, tmp_path: Path,
) -> None:
    checkpoint(form, text=SubleqText(4, 4, 4), positions=64).write(tmp_path)
    assert weights_in(tmp_path).bits
    path = tmp_path / name
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(WeightsError, match=wanted):
        weights_in(tmp_path)


@pytest.mark.parametrize("engine", ["tables", "transformers"])
@pytest.mark.parametrize("name", ["model.safetensors", "config.json"])
def test_a_damaged_folder_is_named(name: str, engine: str, folder: Callable[[str], Path], tmp_path: Path) -> None:
    """Libraries raise errors of many sorts."""
    place = shutil.copytree(folder("gpt2"), tmp_path / "damaged")
    held = (place / name).read_bytes()
    (place / name).write_bytes(held[:2000] if name.startswith("model") else re.sub(rb'("n_layer"): \d+', rb'\1: "x"', held))
    with pytest.raises(PunchcardError, match="/damaged"):
        run_checkpoint(place, PROMPT, engine=engine)


def test_a_tensor_that_no_checkpoint_has_is_refused(tmp_path: Path) -> None:
    checkpoint("llama", text=SubleqText(4, 4, 4), positions=64).write(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    tensors["model.layers.0.self_attn.q_proj.bias"] = np.ones(8, dtype=np.float32)
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(WeightsError, match=r"q_proj\.bias, which is not a part of a stock checkpoint"):
        weights_in(tmp_path)
