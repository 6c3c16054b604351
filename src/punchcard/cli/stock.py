"""`--on stock`: commands on the folder of a stock checkpoint.

`run` continues with its prompt, and compares with the interpreter; `prove` shows what holds for every text.
"""

from __future__ import annotations

import os
from pathlib import Path

import click

from punchcard.cli.options import given_flags
from punchcard.cli.terminal import out, print_json
from punchcard.errors import PunchcardError
from punchcard.files import check_apart, check_writable
from punchcard.formatting import join_some, plural
from punchcard.machines.registry import Registry

MOST_CELLS = 16
UNPROVEN = ("weights", "seconds", "kind_name", "design", "dtype")
REFUSED = ("settings", "arguments", "input_", "checkpoint", "every", "resume", "stats", "check", "design", "dtype")


def run_stock(
    registry: Registry, folder: Path | None, *, engine: str | None, max_steps: int | None, trace: str | None,
    as_json: bool, check: bool,
) -> int:
    """Run it and show what came of it; the exit status."""
    place = _folder(folder, *REFUSED)
    if trace == "story":
        raise PunchcardError("--trace=story cannot be used with --on stock: a stock checkpoint makes no loops; --trace "
                             "prints the lines that it writes")
    from punchcard.language_models.stock.running import run_checkpoint

    run = run_checkpoint(place, engine=engine or "tables", max_steps=max_steps, check=check, machines=registry)
    state = run.trace
    status = 0 if state.halted and run.agrees is not False else 1
    if as_json:
        print_json({"engine": run.engine, "tokens": len(run.words), "steps": run.trace.steps, "halted": run.trace.halted,
                    "program_counter": state.program_counter, "output": state.output.decode("latin-1"),
                    "memory": list(state.memory), "agrees": run.agrees,
                    "seconds": round(run.seconds, 6), "trace": " ".join(run.words)})
        return status
    if trace:
        out(run.text)
    end = "halted" if state.halted else "stopped"
    out(f"{end} at {state.program_counter} after {plural(state.steps, 'instruction')}, {plural(len(run.words), 'token')}")
    if state.output:
        out(f"output   {state.output.decode('latin-1')!r}")
    out(f"memory   {join_some([f'@{address} {value}' for address, value in enumerate(state.memory)], most=MOST_CELLS)}")
    out(f"engine   {run.engine}, {len(run.words) / max(run.seconds, 1e-9):,.0f} tokens a second")
    if run.agrees:
        out("check    agrees with the interpreter")
    elif run.difference is not None:
        out(f"check    token {run.difference} is {run.words[run.difference]!r}, the interpreter's is {run.expected!r}")
    return status


def prove_stock(
    registry: Registry, folder: Path | None, *, certificate: Path | None, output: str | None, as_json: bool,
) -> int:
    """Show all claims about the weights in a folder, and compare with a certificate; the exit status is 1 if one fails."""
    place = _folder(folder, *UNPROVEN)
    if output is not None:
        check_apart(output, place, certificate)
        check_writable(output)
    from punchcard.proof.prover import require_solver

    require_solver()
    from punchcard.cli.display import show_certificate
    from punchcard.language_models.stock.claims import prove_checkpoint
    from punchcard.language_models.widened.claims import prove_widened
    from punchcard.language_models.widened.widening import is_widened
    from punchcard.proof.certificate import compare, load_certificate

    kept = None if certificate is None else load_certificate(certificate)
    found = prove_widened(place) if is_widened(place) else prove_checkpoint(place, registry)
    verification = None if kept is None else compare(kept, found)
    rows = [(claim.name, claim.about) for claim in found.claims]
    rows += [("assumed", promise) for promise in (*found.facts, *found.promises)]
    width = max((len(name) for name, _ in rows), default=0)
    end = (f"violated: {found.failed}" if found.failed else
           f"proven: {plural(len(found.claims), 'claim')} in {found.seconds:.1f} s, for every text of these sizes")
    lines = [found.title, *(f"{name:<{width}}  {about}" for name, about in rows), end]
    return show_certificate(found, lines, certificate, verification, output, as_json=as_json)


def check_not_model(file: Path | None) -> None:
    """Refuse a folder with a model where a program is expected, with the command that takes it."""
    if file is None or not os.path.isdir(file):
        return
    if is_fused(file):
        raise PunchcardError(f"{str(file)!r} is a fused language model, not a program: punchcard chat {file}")
    if (file / "machine.json").is_file() and (file / "generation_config.json").is_file():
        raise PunchcardError(f"{str(file)!r} is the folder of a stock checkpoint, not a program: add --on stock")
    from punchcard.language_models.widened.widening import is_widened

    if is_widened(file):
        raise PunchcardError(f"{str(file)!r} is a stock Llama that adds, not a program: transformers opens it, and "
                             f"punchcard prove {file} --on stock shows what holds for it")


def is_fused(file: Path) -> bool:
    """Whether a path is the folder of a fused language model."""
    if not os.path.isdir(file):
        return False
    from punchcard.language_models.fusion.composition import FUSED, model_type_in

    return model_type_in(file) == FUSED


def _folder(folder: Path | None, *refused: str) -> Path:
    if folder is None:
        raise click.UsageError("Missing argument 'FILE': the folder of a stock checkpoint.")
    if flags := [flag for flag in given_flags(*refused) if flag != "FILE"]:
        raise PunchcardError(f"{flags[0]} cannot be used with --on stock: the folder has the program and the weights")
    return folder
