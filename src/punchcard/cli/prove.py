"""The command `prove`: a proof, from the weights, for every card."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from punchcard.cli.options import (
    given_options,
    json_option,
    kind_option,
    language_options,
    machine_options,
    program_command,
    stock_option,
)
from punchcard.cli.run import open_machine
from punchcard.cli.stock import check_not_model, prove_stock
from punchcard.cli.sweep import ray_of, ray_option, workers_option
from punchcard.errors import PunchcardError
from punchcard.files import check_apart, check_writable
from punchcard.machines.registry import Registry

if TYPE_CHECKING:
    from punchcard.machines.base import AnyMachine


@program_command(kind_option, machine_options, language_options)
@click.option("-o", "--output", metavar="CERTIFICATE", help="Write the certificate to this file, as JSON.")
@click.option("--verify", "certificate", metavar="CERTIFICATE", type=click.Path(path_type=Path),
              help="Build the machine of a certificate again, repeat the proof, and compare every field.")
@click.option("--weights", metavar="FILE", type=click.Path(path_type=Path),
              help="Prove the weights in a saved machine, as they are.")
@click.option("--seconds", type=click.FloatRange(min=0.001),
              help="Timeout of one solver query; the proof stops at the first timeout.")
@workers_option("1, with --ray one a core")
@ray_option
@stock_option
@json_option
def prove(
    registry: Registry, file: Path | None, kind_name: str | None, output: str | None, certificate: Path | None,
    weights: Path | None, seconds: float | None, workers: int | None, ray: str | None, on: str | None, as_json: bool,
    **given: Any,
) -> int:
    """Prove from the weights that one loop is one step of the machine, for every card and so for every program.

    With FILE, the machine is built for that program, else with default sizes. A false claim comes with a
    counterexample, and the exit status is 1. The solver z3 is needed: pip install 'punchcard[proof]'.
    """
    if on is not None:
        return prove_stock(registry, file, certificate=certificate, output=output, as_json=as_json)
    check_not_model(file)
    from punchcard.cli.display import Progress, show_certificate
    from punchcard.proof.prover import prove as proven
    from punchcard.proof.prover import require_solver, verify

    require_solver()
    if output is not None:
        check_apart(output, file, certificate, weights)
        check_writable(output)
    machine = _machine(registry, file, kind_name, certificate, weights, given_options(given))
    verification = None
    with _workers(workers, ray) as executor, Progress(math.inf if as_json or not sys.stderr.isatty() else 0.0) as line:
        def progress(name: str, queries: int) -> None:
            line.show(f"{name} ({queries} queries so far)")

        if certificate is not None:
            verification = verify(machine, certificate, weights=weights, seconds=seconds, progress=progress,
                                  executor=executor)
            found = verification.certificate
        else:
            found = proven(machine, weights=weights, seconds=seconds, progress=progress, executor=executor)
    return show_certificate(found, [str(found)], certificate, verification, output, as_json=as_json)


def _workers(workers: int | None, ray: str | None) -> AbstractContextManager[Executor | None]:
    """The executor of the parts of a proof, or None for this process."""
    if ray is None and workers in (None, 1):
        return nullcontext()
    from punchcard.workers.executor import workers_of

    return workers_of(workers, ray_of(ray))


def _machine(
    registry: Registry, file: Path | None, kind_name: str | None, certificate: Path | None, weights: Path | None,
    given: Mapping[str, Any],
) -> AnyMachine:
    """The machine that a certificate is about, or that a file of weights describes; else the one that is asked for."""
    for flag, path in (("--verify", certificate), ("--weights", weights)):
        if path is not None and (file is not None or kind_name is not None or given):
            raise PunchcardError(f"{flag} {str(path)!r} names its machine: do not give FILE, --machine or options of a "
                                 "machine")
    from punchcard.machines import storage
    from punchcard.proof.prover import rebuilt

    if certificate is not None:
        from punchcard.proof.certificate import load_certificate

        description = load_certificate(certificate)["machine"]
        if isinstance(description, dict) and "stock" in description:
            raise PunchcardError(f"{str(certificate)!r} is about a stock checkpoint: give its folder as FILE, and --on "
                                 "stock")
        return rebuilt(description, registry, str(certificate))
    if weights is not None:
        return rebuilt(storage.load(weights)[0], registry, str(weights))
    machine: AnyMachine = open_machine(registry, file, kind_name, given)
    return machine
