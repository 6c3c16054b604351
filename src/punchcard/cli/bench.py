"""The command `bench`: how fast this computer's engines are, as a table for each machine, or as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from punchcard.cli.options import (
    Added,
    arguments_option,
    given_flags,
    given_options,
    language_options,
    memory_option,
    names,
    numbers,
    program_command,
    size_options,
)
from punchcard.cli.run import with_arguments
from punchcard.cli.terminal import out, print_json, remark
from punchcard.errors import PunchcardError
from punchcard.machines.registry import Registry

if TYPE_CHECKING:
    from punchcard.benchmark.measurements import BenchOptions

Record = dict[str, Any]
LONGEST = 3600
"""Seconds of a timed run."""
FIGURES = ("engine", "steps_per_second", "compile_seconds", "traced", "notes", "machine", "dtype", "ratio_to_dense")


def bench_options(registry: Registry) -> Sequence[Added]:
    """What to measure, for these kinds of machines."""
    designs = tuple(dict.fromkeys(design for kind in registry for design in kind.designs))
    usual = "; ".join(f"{kind.name} {','.join(map(str, kind.timing.columns))}" for kind in registry if kind.timing)

    def known_designs(context: click.Context, option: click.Parameter, text: str | None) -> tuple[str, ...] | None:
        chosen = names(context, option, text)
        for name in chosen or ():
            if name not in designs:
                raise click.BadParameter(f"{name!r} is not one of {', '.join(designs)}.")
        return chosen

    return [
        click.option("--machine", type=click.Choice([*(kind.name for kind in registry), "all"]),
                     help="The kind of machine.  [default: all]"),
        click.option("--columns", callback=numbers, metavar="N,N,...",
                     help=f"Sizes of the cards, in columns.  [default: {usual}]"),
        click.option("--design", "designs", callback=known_designs, metavar="NAME,NAME,...", help="Designs to measure."),
        memory_option]


@program_command(bench_options, size_options, language_options)
@arguments_option
@click.option("--engine", "engines", callback=names, metavar="NAME,NAME,...",
              help="Engines to measure, beside dense.  [default: all]")
@click.option("--max-steps", type=click.IntRange(1), help="With FILE: instructions per run.  [default: until it ends]")
@click.option("--seconds", type=click.FloatRange(0, LONGEST, min_open=True),
              help="Seconds per timed run.  [default: 0.1]")
@click.option("--dense-columns", type=click.IntRange(0),
              help="The largest card for the dense engine; beyond 2048 columns it makes one loop.  [default: 2048]")
@click.option("--batch", type=click.IntRange(1), metavar="N",
              help="Also measure a batch of N runs on the lowered engine, on all cores: steps of all runs together.")
@click.option("--no-traces", is_flag=True, help="Measure engines without traces: hot paths are not compiled.")
@click.option("--quick", is_flag=True, help="Measure only the smallest cards, in a few seconds.")
@click.option("--json", "as_json", is_flag=True, help="Print the records as one JSON list.")
def bench(
    registry: Registry, file: Path | None, machine: str | None, arguments: tuple[str, ...], max_steps: int | None,
    as_json: bool, quick: bool, no_traces: bool, **given: Any,
) -> None:
    """Measure engines on this computer: steps per second, and ratios to the dense engine and to plain interpreters.

    With FILE, runs of that program are timed; else built-in programs that never end, on each kind of machine.
    """
    from punchcard.benchmark.measurements import BenchOptions

    shorter = {"seconds": 0.02, "repeats": 1} if quick else {}
    sizes = {name: value for name, value in given.items() if name.startswith("given_")}
    chosen = {name: value for name, value in given.items() if value is not None and name not in sizes}
    if file is None and (flags := given_flags("arguments")):
        raise PunchcardError(f"{flags[0]} needs a FILE: the built-in programs have fixed sizes")
    options = BenchOptions(machine=None if machine == "all" else machine, quick=quick, traces=not no_traces,
                           **{**shorter, **chosen})
    if file is not None and options.columns is not None:
        raise PunchcardError("--columns cannot be used with a FILE: the program sets the number of columns")
    if file is None:
        if max_steps is not None:
            raise PunchcardError("--max-steps needs a FILE: the built-in programs never end, use --seconds")
        records = _measured(options, registry)
    else:
        records = _measured_program(file, given_options(sizes), options, arguments, max_steps, registry)
    if as_json:
        print_json(records)
    else:
        show(records, registry, options.dense_columns)


def _measured(options: BenchOptions, registry: Registry) -> list[Record]:
    from rich.console import Console
    from rich.text import Text

    from punchcard.benchmark.measurements import measure

    records: list[Record] = []
    with Console(stderr=True, highlight=False).status("measuring") as status:
        for group in measure(options, lambda text: status.update(Text(f"measuring {text}")), remark, registry):
            records += group
    if not records:
        raise PunchcardError("nothing to measure: unknown design, no card with these columns, or a machine without "
                             "a benchmark program: give a FILE")
    return records


def _measured_program(
    file: Path, given: Mapping[str, Any], options: BenchOptions, arguments: tuple[str, ...], max_steps: int | None,
    registry: Registry,
) -> list[Record]:
    from punchcard.benchmark.measurements import measure_program

    records: list[Record] = []
    program, kind, _, sizes = registry.load_with(file, given)
    if arguments:
        program = with_arguments(program, arguments, kind)
    if options.machine not in (None, kind.name):
        raise PunchcardError(f"--machine {options.machine}: {str(file)!r} is a {kind.name} program")
    for design in options.designs or (None,):
        machine = kind.machine_class().for_program(program, **{**sizes, "design": design})
        records += measure_program(program, machine, file.name, options, max_steps=max_steps, remark=remark)
    return records


def show(records: Sequence[Record], registry: Registry, dense_columns: int) -> None:
    """The tables, and the notes below them."""
    from punchcard.cli.display import PlainTable, print_table

    for kind in registry:
        own = [record for record in records if record["machine"] == kind.name]
        if not own:
            continue
        endless = kind.timing is not None and "steps" not in own[0]
        table = PlainTable(title=kind.timing.about if endless and kind.timing else f"{kind.name}: whole runs, one thread")
        for heading in headings(own):
            table.add_column(heading, justify="left" if heading in ("design", "program", "engine") else "right")
        last = None
        for record, row in zip(own, rows(own), strict=True):
            here = [record.get(name) for name in _group_names(own)]
            if last not in (None, here):
                table.add_section()
            table.add_row(*row)
            last = here
        print_table(table)
    if any(record["ratio_to_dense"] is None for record in records):
        out(f"–: the dense engine is measured up to {dense_columns:,} columns (--dense-columns)")
    for note in dict.fromkeys(f"{r['engine']}: {note}" for r in records for note in r["notes"]):
        out(f"note: {note}")


def _group_names(records: Sequence[Record]) -> list[str]:
    """What tells the groups of a machine's records apart."""
    return [name for name in records[0] if name not in FIGURES and not name.startswith("ratio_to_")]


def _rivals(records: Sequence[Record]) -> list[str]:
    """What executes the programs without a transformer."""
    return [name.removeprefix("ratio_to_") for name in records[0]
            if name.startswith("ratio_to_") and name != "ratio_to_dense"]


def headings(records: Sequence[Record]) -> list[str]:
    """The columns of a machine's table."""
    times = [f"times {name}" for name in ("dense", *_rivals(records))]
    return [*_group_names(records), "engine", "steps a second", *times, "compile s", *_shares(records)]


def _shares(records: Sequence[Record]) -> list[str]:
    """The heading of the share of loops in traces, which records that were kept long ago do not have."""
    return ["in traces"] * any("traced" in record for record in records)


def rows(records: Sequence[Record]) -> Iterable[list[str]]:
    """The records as text under `headings`."""
    rivals = _rivals(records)
    for r in records:
        which = [f"{value:,}" if isinstance(value := r[name], int) else str(value) for name in _group_names(records)]
        compiled = r["compile_seconds"]
        ratios = [figure(r[f"ratio_to_{name}"]) for name in ("dense", *rivals)]
        yield [*which, r["engine"], figure(r["steps_per_second"]), *ratios, "–" if compiled is None else f"{compiled:.2f}",
               *("–" if (traced := r.get("traced")) is None else f"{traced:.0%}" for _ in _shares(records))]


def figure(number: float | None) -> str:
    """Three digits that count; a dash where there is no figure."""
    if number is None:
        return "–"
    return f"{float(f'{number:.3g}'):,.0f}" if number >= 100 else f"{number:.3g}"
