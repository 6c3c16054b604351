"""The command `export`: a machine as a model of another tool."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from punchcard.cli.options import (
    arguments_option,
    given_flags,
    given_options,
    kind_option,
    language_options,
    machine_options,
    overwrite_option,
    program_command,
    set_option,
    target_options,
)
from punchcard.cli.run import load_and_build, open_machine
from punchcard.cli.terminal import out, remark
from punchcard.errors import PunchcardError
from punchcard.export.targets import TARGETS, require
from punchcard.folders import check_folder
from punchcard.machines.registry import Registry

if TYPE_CHECKING:
    from punchcard.machines.base import AnyMachine

SAVED = ".safetensors"
"""The extension of a saved machine."""


KIND = "Without FILE: the kind of machine, with default sizes."


@program_command(partial(kind_option, about=KIND), target_options, machine_options, language_options)
@click.option("--to", "target", required=True, type=click.Choice(list(TARGETS)),
              help="; ".join(f"{target.name}: {target.about}" for target in TARGETS.values()) + ".")
@click.option("-o", "--output", required=True, metavar="DIR", help="The folder to write.")
@overwrite_option
@set_option
@arguments_option
def export(
    registry: Registry, file: Path | None, target: str, output: str, overwrite: bool, kind_name: str | None,
    settings: tuple[str, ...], arguments: tuple[str, ...], **given: Any,
) -> None:
    """Export a machine to a folder: for TransformerLens, ONNX, Hugging Face or safetensors, with its ground truth, or as a
    stock GPT-2 or Llama.

    FILE is a program, whose card is exported too, or a saved machine. The weights never depend on the program.
    """
    from punchcard.export.folder import write

    options = _own(target, given)
    sizes = _with_format(target, given_options(given), is_saved=file is not None and file.suffix == SAVED)
    require(target)  # what is not installed is said before a machine is built
    check_folder(output, overwrite=overwrite)
    if file is None or kind_name is not None or file.suffix == SAVED:
        program = None
        for flag, values in (("--set", settings), ("--argument", arguments)):
            if values:
                raise PunchcardError(f"{flag} {values[0]!r}: it needs a program as FILE")
        machine = _alone(registry, file, kind_name, sizes)
    else:
        program, machine = load_and_build(file, sizes, registry, settings, arguments)
    for name in write(target, machine, output, program, overwrite=overwrite, remark=remark, **options):
        out(str(Path(output) / name))


def _own(target: str, given: dict[str, Any]) -> dict[str, Any]:
    """The options of the target, taken out of what is given; one of another target is refused."""
    names = {option.name: option.spelling for each in TARGETS.values() for option in each.options}
    values = {name: given.pop(f"target_{name}") for name in names}
    own = {option.name for option in TARGETS[target].options}
    for name, value in values.items():
        if value is not None and name not in own:
            raise PunchcardError(f"{names[name]} {value} is not for an export to {target}")
    return {name: value for name, value in values.items() if value is not None}


def _with_format(target: str, given: dict[str, Any], *, is_saved: bool) -> dict[str, Any]:
    """What is given for a machine, with a number format that the target takes."""
    formats = TARGETS[target].formats
    if not formats or is_saved:
        return given
    found = {"precision": formats[0], **given}
    if found["precision"] not in formats:
        raise PunchcardError(f"--dtype {found['precision']}: an export to {target} needs {' or '.join(formats)}: one "
                             "score holds an address and a position, which takes more bits than a narrower format has")
    return found


def _alone(registry: Registry, file: Path | None, kind_name: str | None, given: Mapping[str, Any]) -> AnyMachine:
    """A saved machine, or one of a kind with its usual sizes."""
    if file is None:
        return open_machine(registry, None, kind_name, given)
    if kind_name is not None:
        raise PunchcardError(f"--machine {kind_name}: {str(file)!r} already names its machine: give only one of them")
    if flags := given_flags("design", "dtype"):
        raise PunchcardError(f"{flags[0]}: {str(file)!r} is a saved machine, which cannot be changed")

    from punchcard.machines.base import Machine

    return Machine.load(file, machines=registry)
