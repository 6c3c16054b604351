"""The commands `fuse` and `chat`: a program inside a language model, and a talk with it; and `view` of one."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from punchcard.cli.options import given_flags, memory_option, overwrite_option
from punchcard.cli.terminal import log, out, remark, warnings_as_remarks
from punchcard.errors import PunchcardError, printable
from punchcard.files import check_writable, write_atomic
from punchcard.folders import check_folder
from punchcard.formatting import plural
from punchcard.language_models import MOST_LOOPS

if TYPE_CHECKING:
    from punchcard.language_models.fusion.generation import TokenWriter, WrittenToken

VIEWED = 16
"""Tokens of a view, unless more are asked for."""


@click.command()
@click.argument("programs", nargs=-1, metavar="SKILL...")
@click.option("--base", required=True, metavar="FOLDER",
              help="The language model: a folder with its tokenizer, or a .gguf file. Nothing is downloaded.")
@click.option("-o", "--output", required=True, metavar="FOLDER", help="The folder to write.")
@click.option("--max-loops", type=click.IntRange(1), default=MOST_LOOPS, show_default=True,
              help="Loops per token after which a program has no opinion.")
@click.option("--stock", is_flag=True, help="Write a plain Llama that answers a+b= by itself: no card, no code, no SKILL.")
@click.option("--digits", type=click.IntRange(1, 8), default=8, show_default=True,
              help="With --stock: digits of a number at most.")
@click.option("--end", metavar="TEXT", help="With --stock: the token that ends an answer.  [default: the end of text]")
@overwrite_option
@memory_option
def fuse(
    programs: tuple[str, ...], base: str, output: str, max_loops: int, stock: bool, digits: int, end: str | None,
    overwrite: bool,
) -> None:
    """Put programs inside a pretrained language model. Nothing is trained.

    SKILL is sums, letters, dates or computer, a file (.c, .s, .elf) that keeps the contract of skill.h, or a .py file with a
    function skill(text: str) -> int. Several are asked in their order.

    For example: punchcard fuse sums letters --base SmolLM2 -o smol-with-sums
    """
    from punchcard.language_models.fusion.composition import fuse as fused_with
    from punchcard.language_models.fusion.composition import load_base, save_fused
    from punchcard.language_models.fusion.skill import load_skill
    from punchcard.language_models.widened.checkpoint import save_widened
    from punchcard.language_models.widened.widening import widen

    if os.path.exists(output) and os.path.exists(base) and os.path.samefile(output, base):
        raise PunchcardError(f"-o {output}: that is the base, which is not written over; choose another folder")
    _check_form(programs, stock)
    check_folder(output, overwrite=overwrite)
    skills = [load_skill(program) for program in programs]  # before the base, which takes longer
    model, tokenizer = load_base(base)
    if stock:
        names = save_widened(widen(model, tokenizer, digits=digits, end=end), tokenizer, output, overwrite=overwrite)
    else:
        names = save_fused(fused_with(model, tokenizer, skills, max_loops=max_loops), tokenizer, output, overwrite=overwrite)
    for name in names:
        out(str(Path(output) / name))


def _check_form(programs: tuple[str, ...], stock: bool) -> None:
    """Refuse options of the other form of a model."""
    if not programs and not stock:
        raise click.UsageError("Missing argument 'SKILL...'.")
    if programs and stock:
        raise PunchcardError(f"--stock with {programs[0]}: a stock model has no card for a skill; leave {programs[0]} out, "
                             "it answers sums such as 12+30= by itself")
    for flag in given_flags(*(("max_loops",) if stock else ("digits", "end"))):
        raise PunchcardError(f"{flag} is {'not for' if stock else 'for'} --stock: {'leave it out' if stock else 'add it'}")


@click.command()
@click.argument("folder")
@click.option("--prompt", help="Continue this text, and end.  [default: a chat, a line a message]")
@click.option("--tokens", type=click.IntRange(1), default=128, show_default=True, help="Tokens of an answer at most.")
@click.option("--card", is_flag=True, help="Show, for each token, what was on the card, what it answered, and its loops.")
@click.option("--save-card", metavar="FILE", help="With --prompt: write the card of the first skill, with the text on it, "
              "as an executable (.elf), which `punchcard view` steps through.")
@memory_option
def chat(folder: str, prompt: str | None, tokens: int, card: bool, save_card: str | None) -> None:
    """Talk with a fused model.

    An answer ends where the model ends it. What the program on the card wrote is underlined on a terminal.
    """
    from punchcard.language_models.fusion.composition import open_fused
    from punchcard.language_models.fusion.generation import TokenWriter
    from punchcard.machines.riscv.languages import elf

    if save_card is not None and prompt is None:
        raise PunchcardError(f"--save-card {save_card}: it needs --prompt TEXT, which is put on the card")
    if prompt is not None and not prompt:
        raise PunchcardError("--prompt '': the text is empty, and a model continues one; give at least a letter")
    click.get_current_context().with_resource(warnings_as_remarks())
    writer = TokenWriter(*open_fused(folder))
    if prompt is not None and save_card is not None:
        write_atomic(save_card, elf.write(writer.program(list(writer.tokenizer.encode(prompt)))))
    if prompt is not None:
        _write(writer, list(writer.tokenizer.encode(prompt)), tokens, card=card)
        return
    messages: list[dict[str, str]] = []
    if sys.stdin.isatty():
        remark("type a message; Ctrl-D ends the chat")
    for line in sys.stdin:
        if line.strip():
            messages.append({"role": "user", "content": line.strip()})
            said = _write(writer, writer.prompt(messages), tokens, card=card)
            messages.append({"role": "assistant", "content": said})


def _write(writer: TokenWriter, prompt: list[int], most: int, *, card: bool) -> str:
    """An answer, printed as it is written; the text."""
    said, styled = "", sys.stdout.isatty()
    for each in writer.write(prompt, most):
        if card:
            log(_about(each))
        if each.token in writer.ends:
            break
        said += each.text
        if card:  # the lines about tokens have it, and this would be in the middle of it
            continue
        shown = printable(each.text, keep="\n\t")
        click.echo(click.style(shown, underline=True) if styled and each.opinion == "says" else shown, nl=False)
        sys.stdout.flush()
    click.echo(printable(said, keep="\n\t") if card else "")
    return said


def view_fused(folder: Path, *, prompt: str | None, tokens: int | None, html: str | None) -> None:
    """What the card read and answered for each token, as a table or a page."""
    if not prompt:
        raise PunchcardError(f"{str(folder)!r} is a fused language model: give a text to continue, --prompt TEXT")
    if html is not None:
        check_writable(html)
    from punchcard.language_models.fusion.composition import open_fused
    from punchcard.language_models.fusion.generation import SHOWN, TokenWriter
    from punchcard.language_models.fusion.token_view import token_page, token_table

    click.get_current_context().with_resource(warnings_as_remarks())
    model, tokenizer = open_fused(folder)
    window = model.card.sizes["tokens"]
    writer = TokenWriter(model, tokenizer, window=SHOWN if html is None else window)
    written = list(writer.write(list(tokenizer.encode(prompt)), tokens or VIEWED))
    if html is None:
        out(token_table(written))
        return
    write_atomic(html, token_page(folder.name, prompt, written, window))
    out(f"{html}: {plural(len(written), 'token')}")


def _about(each: WrittenToken) -> str:
    """One line about a token: the card's view of it."""
    from punchcard.language_models.fusion.token_view import answer, loops

    return f"{each.text!r:>12}  {answer(each):<24} {loops(each):<24} read ...{''.join(each.read)!r}"
