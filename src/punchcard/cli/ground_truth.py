"""The command `ground-truth`: a set of models whose mechanism is known, and scores of answers about them."""

from __future__ import annotations

from pathlib import Path

import click

from punchcard.cli.options import json_option, memory_option
from punchcard.cli.sweep import ray_of, ray_option, workers_option
from punchcard.cli.terminal import log, out, print_json
from punchcard.errors import PunchcardError
from punchcard.files import check_writable, read_limited, write_atomic
from punchcard.formatting import plural

MOST_BYTES = 1 << 30
WHAT = "file of answers with an object for each model"


@click.group(name="ground-truth")
def ground_truth() -> None:
    """Make a set of models whose mechanism is known, and score what a method says about them."""


@ground_truth.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--set", "which", type=click.Choice(["small", "full"]), default="small", show_default=True, help="Which set.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of all random choices.")
@click.option("--pairs", type=click.IntRange(4, 10_000), help="Pairs of a model.  [default: 40, of the full set 200]")
@click.option("--only", default="", metavar="TEXT", help="Only models whose names have this text.")
@click.option("--resume", is_flag=True, help="Continue a set that was stopped: models in DIR are not made again.")
@workers_option()
@ray_option
@memory_option
def make(
    folder: Path, which: str, seed: int, pairs: int | None, only: str, resume: bool, workers: int | None, ray: str | None,
) -> None:
    """Write the set to DIR. The same seed gives the same files to the last bit."""
    from punchcard.cli.display import Progress
    from punchcard.ground_truth.collection import make_set

    with Progress() as line:
        try:
            made = make_set(which, folder, seed=seed, pairs=pairs, only=only, workers=workers, ray=ray_of(ray),
                            resume=resume, progress=line.follow)
        except KeyboardInterrupt:
            log("stopped: continue with the same command and --resume")
            raise
    out(f"{folder}: {plural(len(made['models']), 'model')}")


@ground_truth.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--answers", required=True, metavar="FILE", type=click.Path(path_type=Path), help="The answers, as JSON.")
@click.option("-o", "--output", metavar="FILE", type=click.Path(path_type=Path), help="Also write an HTML page.")
@json_option
def score(folder: Path, answers: Path, output: Path | None, as_json: bool) -> None:
    """Score answers about the models in DIR.

    Precision, recall and ROC of nodes and edges, accuracy of variables. `score.py` in DIR says what answers look like.
    """
    from punchcard.ground_truth.score import DamagedModel, parsed, summary
    from punchcard.ground_truth.score import score as scored

    if output is not None:
        check_writable(output)
    try:
        given = parsed(read_limited(answers, WHAT, limit=MOST_BYTES))
    except (ValueError, RecursionError) as error:
        raise PunchcardError(f"{str(answers)!r} is not JSON: {error}; it should be a {WHAT}") from None
    if not isinstance(given, dict) or not all(isinstance(each, dict) for each in given.values()):
        raise PunchcardError(f"{str(answers)!r}: answers are an object with an object for each model")
    try:
        rows = scored(folder, given)
    except DamagedModel as error:
        raise PunchcardError(str(error)) from None
    except (SystemExit, OSError) as error:
        raise PunchcardError(f"{str(answers)!r}: {error}") from None
    if output is not None:
        from punchcard.ground_truth.score_page import score_page

        write_atomic(output, score_page(folder.name, answers.name, rows))
    if as_json:
        print_json([{name: value for name, value in row.items() if value == value} for row in rows])  # no NaN
    else:
        out(summary(rows))
