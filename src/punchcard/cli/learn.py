"""The commands `learn` and `predict`: a table in, weights or predictions out. What is done is in `learning`."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from punchcard.cli.options import MOST_DIGITS, json_option, memory_option, parse_integers
from punchcard.cli.terminal import interruptible, out, print_json, remark, write_output
from punchcard.errors import PunchcardError
from punchcard.files import check_apart, check_writable
from punchcard.machines.fleq.kind import DESIGNS

if TYPE_CHECKING:
    from punchcard.learning import Learned, Stage

Command = TypeVar("Command", bound=Callable[..., object])
DTYPES = ("float64", "float32")


def run_options(command: Command) -> Command:
    """The options that learning and predicting share."""
    for option in (
        memory_option,
        click.option("--design", type=click.Choice(DESIGNS), help="The machine's design.  [default: compact]"),
        click.option("--dtype", "precision", type=click.Choice(DTYPES), help="Number format.  [default: float64]"),
        click.option("--engine", help="The engine that applies the model.  [default: the fastest]"),
        click.option("--size", type=click.IntRange(1),
                     help="d, rows and columns of the largest operand.  [default: as needed]"),
        click.option("--range", "range_", type=float, help="R: every value must stay within ±R.  [default: found in NumPy]"),
        click.option("--heads", type=click.IntRange(1, 3),
                     help="Heads of a product: more heads, smaller error.  [default: 3]"),
    ):
        command = option(command)
    return command


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--target", required=True, help="The column to learn; all others are features.")
@click.option("--hidden", default="0", show_default=True, metavar="N,N,...",
              help="Units of the hidden layers; 0 for a linear model.")
@click.option("--epochs", type=click.IntRange(1), default=20, show_default=True, help="Passes over the data.")
@click.option("--rate", type=float, default=0.1, show_default=True, help="Step size.")
@click.option("--loss", default="squared", show_default=True, help="squared, huber, logcosh or logistic.")
@click.option("--activation", default="sigmoid", show_default=True, help="sigmoid, tanh, silu, softplus or relu.")
@click.option("--batch", type=click.Choice(["point", "all"]), default="point", show_default=True,
              help="Update the weights after each point, or once per epoch.")
@click.option("--standardize", is_flag=True, help="Scale columns to mean 0 and standard deviation 1.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of the initial weights.")
@run_options
@click.option("--save", type=click.Path(path_type=Path), help="Save the model to a safetensors file.")
@click.option("--plot", type=click.Path(path_type=Path), help="Draw the loss after each epoch (needs matplotlib).")
@click.option("--program", "show_program", is_flag=True, help="Print the program as .fleq text and do not run it.")
@json_option
def learn(
    file: Path, target: str, hidden: str, epochs: int, range_: float | None, save: Path | None, plot: Path | None,
    show_program: bool, as_json: bool, **given: Any,
) -> int:
    """Train a model on a table, by gradient descent that runs on a looped transformer.

    FILE is a CSV table with a header line. Values should be about 1: scale them first, or use --standardize.
    """
    widths = hidden_layers(hidden)
    from punchcard import learning
    from punchcard.cli.display import Progress
    from punchcard.learning.plot import draw_losses, require_matplotlib
    from punchcard.learning.table import read_table
    from punchcard.machines.fleq.text.assembler import disassemble

    table = read_table(file)
    names = table.others(target)
    for output in (save, plot):
        check_apart(output, file)
        if output is not None:
            check_writable(output)
    if plot is not None:
        require_matplotlib(plot)
    task = {name: given.pop(name) for name in ("rate", "loss", "activation", "batch", "standardize", "seed")}
    task |= {"hidden": widths, "epochs": epochs, "range": range_}
    data = table.columns(names), table.columns([target])
    if show_program:
        write_output(disassemble(learning.plan(*data, **task).program), None)
        return 0
    with Progress() as bar, interruptible(keeps=True) as (interrupted, _):

        def rehearsing(epoch: int) -> None:
            bar.show(f"in NumPy first: epoch {epoch:,} of {epochs:,}", done=epoch, total=epochs)

        def running(stage: Stage) -> None:
            bar.show(f"epoch {stage.epoch} of {stage.epochs}, loss {stage.loss:.6g}",
                     f", {stage.loops:,} of {stage.all_loops:,} loops", stage.loops, stage.all_loops)

        learned = learning.learn(*data, feature_names=names, target_names=(target,), progress=running,
                                 rehearsing=rehearsing, interrupted=interrupted, **(task | given))
    if save is not None and learned.epochs:
        learned.model.save(save)
    if plot is not None:
        draw_losses(learned, plot)
    show_learned(learned, epochs, save if learned.epochs else None, as_json=as_json)
    return 1 if learned.interrupted else 0


@click.command()
@click.argument("weights", type=click.Path(path_type=Path))
@click.argument("file", type=click.Path(path_type=Path))
@run_options
@json_option
def predict(weights: Path, file: Path, range_: float | None, as_json: bool, **given: Any) -> None:
    """Predict a label for each line of a table with a saved model, on a looped transformer. Prints CSV.

    WEIGHTS is what `punchcard learn --save` wrote, FILE is CSV with the model's features; other columns are ignored.
    """
    from punchcard import learning
    from punchcard.learning.table import read_table

    model = learning.Model.load(weights)
    if not (model.feature_names and model.target_names):
        raise PunchcardError(f"{str(weights)!r} has no column names, which a table needs: pass feature_names and "
                             "target_names to `learn`")
    table = read_table(file)
    features = table.columns(model.feature_names)
    with interruptible(keeps=False) as (interrupted, _):
        prediction = learning.predict(model, features, interrupted=interrupted, range=range_, **given)
    rows = prediction.values.reshape(len(features), -1)
    if as_json:
        print_json({"predictions": {name: rows[:, i].tolist() for i, name in enumerate(model.target_names)},
                    "error": prediction.error, "loops": prediction.loops, "engine": prediction.engine})
        return
    out(",".join(_quoted(name) for name in model.target_names))
    for row in rows:
        out(",".join(repr(float(value)) for value in row))


def hidden_layers(text: str) -> tuple[int, ...]:
    """`8,8` as two layers of 8; `0` as none."""
    widths = parse_integers(text)
    if not widths:
        raise PunchcardError(f"--hidden {text!r}: write units of the hidden layers as 8 or 8,8; 0 is none, and "
                             f"{MOST_DIGITS} digits are the most")
    return () if widths == (0,) else widths


def show_learned(learned: Learned, epochs: int, saved: Path | None, *, as_json: bool) -> None:
    """The result of a run."""
    machine = learned.machine
    if as_json:
        print_json({
            "epochs": learned.epochs, "initial_loss": learned.initial_loss, "losses": learned.losses.tolist(),
            "weights": {name: value.tolist() for name, value in learned.weights.items()},
            "features": list(learned.model.feature_names), "target": learned.model.target_names[0],
            "error": learned.error, "loops": learned.loops, "loops_per_point": learned.loops_per_point,
            "interrupted": learned.interrupted, "instructions": len(learned.program.instructions),
            "design": machine.design.name, "heads": machine.heads, "dtype": machine.precision.name,
            "size": machine.sizes.size, "range": machine.range, "largest": learned.largest,
            "columns": machine.layout.columns, "engine": learned.engine, "saved": None if saved is None else str(saved),
        })
    else:
        after = f"{learned.losses[-1]:.6g} after" if learned.epochs else "no"
        out(f"loss {learned.initial_loss:.6g} before, {after} {learned.epochs} epoch{'s' * (learned.epochs != 1)}")
        out(f"largest difference from the same algorithm in NumPy: {learned.error:.1e} of the largest weight")
        out(f"{learned.loops:,} loops, {learned.loops_per_point} for a point, of a transformer with "
            f"{len(machine.weights.layers)} layers, {machine.layout.width} rows and {machine.layout.columns} columns")
        out(learned.host)
        if saved is not None:
            out(f"saved to {saved}")
    if learned.interrupted:
        remark(f"interrupted in epoch {learned.epochs + 1} of {epochs}: the weights are those after epoch {learned.epochs}")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"' if re.search(r'[",\n\r]', name) else name
