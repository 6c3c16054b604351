"""`fuse`: a language model and programs become one model, with weights set by formula beside the trained ones."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from punchcard import budget
from punchcard.arguments import checked
from punchcard.errors import FusionError, StorageError
from punchcard.export.targets import require
from punchcard.files import read_json, write_atomic
from punchcard.folders import README, atomic_folder, opening
from punchcard.language_models import MOST_LOOPS
from punchcard.language_models.fusion.embedding import card_bytes, embedding
from punchcard.language_models.fusion.machine import machine_for, sizes_of
from punchcard.language_models.fusion.model_card import model_card
from punchcard.language_models.fusion.skill import Skill, load_skill
from punchcard.machines.riscv.program import RiscvProgram
from punchcard.transformer.weights import shared_tensor

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from punchcard.language_models.fusion.fused_model import FusedForCausalLM
    from punchcard.language_models.tokens import Tokenizer

Given: TypeAlias = str | Path | RiscvProgram | Skill
"""What a skill is given as."""
FUSED = "punchcard-fused"
"""The model type of a fused configuration."""
LEAST_SHARE = 0.75
"""So much of a model's vocabulary its own tokenizer has at least; the rest pads it to a round number."""


@checked
def fuse(
    model: PreTrainedModel, tokenizer: Tokenizer, program: Given | Sequence[Given], *, max_loops: int = MOST_LOOPS,
) -> FusedForCausalLM:
    """Put programs inside a pretrained language model. No weight of the model is changed, and none is trained.

        fused = punchcard.fuse(model, tokenizer, "sums")
        fused.generate(**tokenizer("12 + 30 =", return_tensors="pt"))

    model       a decoder of `transformers`, such as `AutoModelForCausalLM` loads
    tokenizer   its tokenizer
    program     a skill: the name of a shipped one (sums, letters, dates, computer), a file (.c, .py, .s, .elf) or a program
                that keeps the contract of skill.h. Several are tried in order, and the first with an opinion is used
    max_loops   loops per token after which a program that has not ended has no opinion

    Returns a model of `transformers`: `generate`, `save_pretrained` and pipelines work as with any other.
    """
    require("hf", "a language model")
    import torch

    from punchcard.language_models.fusion.fused_model import FusedConfig, FusedForCausalLM, card_settings

    check_base(model)
    vocabulary = model.get_output_embeddings().weight.shape[0]
    check_tokenizer(tokenizer, vocabulary)
    if max_loops < 1:
        raise FusionError(f"max_loops={max_loops}: it must be 1 or more")
    programs = [program] if isinstance(program, str | Path | RiscvProgram | Skill) else list(program)
    if not programs:
        raise FusionError("program=[]: give one skill or more")
    skills = [load_skill(each) for each in programs]
    machine = machine_for(skills)
    tokens = embedding(card_bytes(tokenizer, vocabulary))
    config = FusedConfig(base=model.config, card=sizes_of(machine, skills, vocabulary, max_loops), dtype=model.config.dtype)
    with torch.no_grad(), card_settings():
        fused = FusedForCausalLM(config, model)
        stream = fused.card
        for held, given in ((stream.tokens, tokens.tokens), (stream.threshold, tokens.threshold),
                            (stream.reward, tokens.reward), (stream.temperature, torch.tensor(128.0))):
            held.copy_(given)
        for name, array in machine.weights.state():
            stream.get_parameter(name).copy_(shared_tensor(array))
        for number, skill in enumerate(skills):
            stream.cards[number] = machine.punch(skill.program).to(torch.int8)
    register()
    fused.generation_config = model.generation_config
    fused.eval()
    return fused


def register() -> None:
    """Let `AutoModelForCausalLM` of this process know fused models without code from their folders."""
    require("hf", "a language model")
    from transformers import AutoConfig, AutoModelForCausalLM

    from punchcard.language_models.fusion.fused_model import FusedConfig, FusedForCausalLM

    AutoConfig.register(FusedConfig.model_type, FusedConfig, exist_ok=True)
    AutoModelForCausalLM.register(FusedConfig, FusedForCausalLM, exist_ok=True)


def check_base(model: object) -> None:
    """Refuse what does not write one token after the other."""
    from transformers import DynamicCache, PreTrainedModel

    kind = type(model).__name__
    if not isinstance(model, PreTrainedModel):
        raise FusionError(f"model is a {kind}: give a model of transformers, as AutoModelForCausalLM loads it")
    if getattr(model.config, "model_type", "") == FUSED:
        raise FusionError(f"model is a {kind}, which is fused already: fuse its `language_model` with all skills in a list")
    writes = model.can_generate() and model.get_output_embeddings() is not None
    if getattr(model.config, "is_encoder_decoder", False) or not writes:
        raise FusionError(f"{kind} is not a decoder that writes tokens: load the base with AutoModelForCausalLM")
    try:
        DynamicCache(config=model.config.get_text_config()).get_seq_length()
    except ValueError:
        raise FusionError(f"{kind} has no layer of attention whose cache counts tokens: use a base that has one") from None
    if getattr(model.config, "is_decoder", None) is False and sees_ahead(model):
        raise FusionError(f"{kind} is an encoder here, whose tokens see those after them: use a decoder, or one "
                          "that was trained with is_decoder=True and says so in its configuration")


def sees_ahead(model: PreTrainedModel) -> bool:
    """Whether a token's logits depend on the token after it. Some decoders have is_decoder=False: it is tried."""
    import torch

    trains = model.training
    with torch.no_grad():
        first, other = model.eval()(input_ids=torch.tensor([[2, 3], [2, 4]], device=model.device)).logits[:, 0]
    model.train(trains)
    return not torch.allclose(first, other, rtol=0, atol=1e-4 * float(first.max() - first.min()))


def check_tokenizer(tokenizer: Tokenizer, vocabulary: int) -> None:
    """Refuse a tokenizer of another model, as far as sizes show it."""
    if not hasattr(tokenizer, "convert_ids_to_tokens"):
        raise FusionError(f"tokenizer is a {type(tokenizer).__name__}: give the model's tokenizer, of AutoTokenizer")
    count = len(tokenizer)
    if not LEAST_SHARE * vocabulary <= count <= vocabulary:
        raise FusionError(f"the tokenizer has {count} tokens, and the model has rows for {vocabulary}: it is not the "
                          "model's own tokenizer")


@checked
def load_base(path: str | Path) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """A language model and its tokenizer, from a folder as `save_pretrained` writes it, or from a GGUF file. Nothing is
    downloaded, and no code of the folder is executed."""
    require("hf", "a language model")
    from transformers import AutoModelForCausalLM, AutoTokenizer

    place = Path(path)
    if not os.path.exists(path):
        raise FusionError(f"there is no {str(path)!r}: give a folder with a model and its tokenizer, or a .gguf file")
    is_file = place.is_file()
    if not is_file and model_type_in(place) == FUSED:
        raise FusionError(f"{str(path)!r} is fused already: fuse its base again, with all skills")
    if not is_file and not place.is_dir():
        raise FusionError(f"{str(path)!r} is a pipe or a device: give a folder with a model, or a .gguf file")
    check_weights_fit(place)
    given = {"gguf_file": place.name} if is_file else {}
    folder = str(place.parent if is_file else place)
    with opening(path, "is not a language model with a tokenizer", FusionError), _quiet():
        model = AutoModelForCausalLM.from_pretrained(folder, local_files_only=True, **given)
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, **given)
    if is_file:  # its weights are plain numbers now, and can be saved
        model.hf_quantizer, model.is_quantized = None, False
        model.config._name_or_path = place.stem
        del model.config.quantization_config
    return model.eval(), tokenizer


@checked
def save_fused(model: FusedForCausalLM, tokenizer: Tokenizer, folder: str | Path, *, overwrite: bool = False) -> list[str]:
    """Write a fused model to a folder, with its tokenizer, a page, and the file that opens it without Punchcard."""
    return save_with_page(model, tokenizer, model_card(model.card.sizes, model.language_model), folder, overwrite=overwrite)


def save_with_page(
    model: PreTrainedModel, tokenizer: Tokenizer, page: str, folder: str | Path, *, overwrite: bool = False,
) -> list[str]:
    """Write a model of `transformers` to a folder, whole or not at all, with its tokenizer and a page about it."""
    with atomic_folder(folder, overwrite=overwrite) as place:
        with _quiet():
            model.save_pretrained(place)
            tokenizer.save_pretrained(place)
        write_atomic(place / README, page)
        return sorted(path.name for path in place.iterdir())


def check_weights_fit(place: Path) -> None:
    """Refuse a model whose files of weights are larger than the memory budget: all of them are read."""
    found = [place] if place.is_file() else [*place.glob("*.safetensors")] or [*place.glob("*.bin")]
    budget.require(sum(file.stat().st_size for file in found if file.is_file()), f"the language model in {str(place)!r}",
                   least=True, instead="take a smaller one")


def model_type_in(folder: Path) -> str:
    """What kind of model the configuration in a folder is of; "" without one."""
    try:
        return str(_config(folder).get("model_type", ""))
    except StorageError:
        return ""


def _config(folder: Path) -> dict[str, object]:
    return read_json(folder / "config.json", "description of a model")


@checked
def open_fused(folder: str | Path) -> tuple[FusedForCausalLM, Tokenizer]:
    """A fused model that was saved, and its tokenizer. No code of the folder is executed: the package's own is."""
    require("hf", "a language model")
    from transformers import AutoTokenizer

    from punchcard.language_models.fusion.fused_model import FusedForCausalLM

    try:
        kind = _config(Path(folder)).get("model_type")
    except StorageError as error:
        raise FusionError(f"{str(folder)!r} is not a fused model: {error}; write one with `punchcard fuse`") from None
    if kind != FUSED:
        raise FusionError(f"{str(folder)!r} is a model of type {kind!r} without a card: transformers opens it as it is, and "
                          f"`punchcard fuse SKILL --base {folder} -o FOLDER` puts a card inside")
    check_weights_fit(Path(folder))
    register()
    with opening(folder, "cannot be read as a fused model, write it again", FusionError), _quiet():
        model = FusedForCausalLM.from_pretrained(folder, local_files_only=True)
        model.card.check_finite()
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    return model.eval(), tokenizer


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the progress bars of transformers."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
