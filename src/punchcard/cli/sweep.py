"""The command `sweep`: many runs on processes or a Ray cluster, and a report of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from punchcard.cli.options import memory_option
from punchcard.cli.terminal import log, out, remark
from punchcard.errors import PunchcardError
from punchcard.formatting import plural

Command = TypeVar("Command", bound="Callable[..., Any] | click.Command")
LOCAL = "local"
"""What `--ray` without an address means."""


class _RunFirst(click.Group):
    """A group in which FILE without a command's name is for `run`, which its help names first."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.commands, "-h", "--help"):
            args = ["run", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_RunFirst)
def sweep() -> None:
    """Make many runs, of machines that are changed by noise, flips or rounding, on all cores or a cluster.

    `punchcard sweep FILE -o DIR` is `punchcard sweep run FILE -o DIR`.
    """


def workers_option(default: str = "one a core") -> Callable[[Command], Command]:
    """`--workers`, with what its help says of the default."""
    return click.option("--workers", type=click.IntRange(1, 100_000), help=f"How many workers.  [default: {default}]")


ray_option = click.option("--ray", is_flag=False, flag_value=LOCAL, metavar="[ADDRESS]",
                          help="Run on Ray: without ADDRESS one is started here; else the cluster there is joined.")


def ray_of(given: str | None) -> str | bool | None:
    """What `--ray` asks for."""
    return True if given == LOCAL else given


@sweep.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("-o", "--output", metavar="DIR", type=click.Path(path_type=Path), help="The folder of the results.")
@click.option("--resume", is_flag=True, help="Continue a sweep that was stopped: jobs in DIR are not made again.")
@click.option("--dry-run", is_flag=True, help="Print how many jobs there are and about how long they take.")
@workers_option()
@ray_option
@memory_option
def run(file: Path, output: Path | None, resume: bool, dry_run: bool, workers: int | None, ray: str | None) -> None:
    """Make the jobs of a sweep, a TOML file. Results are Parquet files in DIR."""
    from punchcard.cli.display import Progress
    from punchcard.sweep.campaign import estimate, run_sweep
    from punchcard.sweep.plan import Sweep
    from punchcard.workers.executor import worker_count

    plan = Sweep.load(file)
    if dry_run:
        found = estimate(plan, output if resume else None)
        count = worker_count(workers)
        out(f"{plural(found.jobs, 'job')}, {found.left:,} to make: about {plural(round(found.seconds), 'CPU second')} "
            f"({plural(found.sampled, 'machine')} sampled), {found.seconds / count:,.0f} s on {plural(count, 'worker')}")
        for reason in found.refusals:
            remark(f"jobs will be refused: {reason}")
        return
    if output is None:
        raise PunchcardError("the folder of the results is missing: name it with -o DIR")
    with Progress() as line:
        try:
            results = run_sweep(plan, output, workers=workers, ray=ray_of(ray), resume=resume, progress=line.follow)
        except KeyboardInterrupt:
            log(f"stopped: continue with punchcard sweep {file} -o {output} --resume")
            raise
    out(f"{output}: {len(results):,} of {plural(results.jobs, 'job')}")
    refusals = results.refusals()
    for reason, count in refusals.items():
        remark(f"{plural(count, 'job')} refused: {reason}")
    if sum(refusals.values()) == results.jobs:
        raise PunchcardError(f"{str(file)!r}: no job of this sweep could be run")


@sweep.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
def report(folder: Path) -> None:
    """Write tables and plots of the results in DIR."""
    from punchcard.sweep.report import SweepReport
    from punchcard.sweep.results import Results

    for path in SweepReport(Results(folder)).write():
        out(str(path))
