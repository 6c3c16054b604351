"""The fuzzer by hand: some inputs of a target, or one again."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click
import torch

from tests.fuzzing.targets import targets
from tests.fuzzing.workers import explore, input_of


@click.command()
@click.argument("target", required=False)
@click.argument("inputs", type=int, default=100)
@click.option("--seed", type=int, help="The one input to try again, here and without limits.")
@click.option("--first", type=int, default=0, help="The first seed.")
def main(target: str | None, inputs: int, seed: int | None, first: int) -> None:
    torch.set_num_threads(1)
    for name, (_, begin) in targets().items():
        if target not in (None, name):
            continue
        with tempfile.TemporaryDirectory() as folder:
            if seed is not None:
                import os

                os.chdir(folder)
                begin(Path(folder))(input_of(name, seed))
                continue
            outcome = explore(name, begin, range(first, first + inputs), Path(folder))
        click.echo(f"{name}: {outcome}")
        seen = set()
        for finding in outcome.findings:
            if finding.what.split(": ")[0] not in seen:
                seen.add(finding.what.split(": ")[0])
                click.echo(f"  {finding}")


main()
