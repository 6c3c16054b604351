"""The fuzzer by hand: some inputs of a target, or one again."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click
import torch

from tests.fuzzing.targets import targets
from tests.fuzzing.workers import enter, explore, input_of


@click.command()
@click.argument("target", required=False)
@click.argument("inputs", type=int, default=100)
@click.option("--first", type=int, default=0, show_default=True, help="The first seed.")
@click.option("--seed", type=int, help="The one input to try again, here and without limits.")
def main(target: str | None, inputs: int, first: int, seed: int | None) -> None:
    """Try some inputs of one target or of all, or one again."""
    torch.set_num_threads(1)
    for name, (_, begin) in targets().items():
        if target not in (None, name):
            continue
        folder = Path(tempfile.mkdtemp(prefix="fuzzing"))
        if seed is not None:
            click.echo(f"in {folder}")
            enter(folder)
            begin(folder)(input_of(name, seed))
            continue
        outcome = explore(name, begin, range(first, first + inputs), folder)
        click.echo(f"{name}: {outcome}")
        for finding in outcome.different():
            click.echo(f"  {finding}")


main()
