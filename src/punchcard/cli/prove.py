"""The command `prove`: a proof, from the weights, for every card."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import click

from punchcard.cli.options import given_options, json_option, kind_option, language_options, machine_options, program_command
from punchcard.cli.run import open_machine
from punchcard.cli.terminal import out, print_json
from punchcard.errors import PunchcardError
from punchcard.files import check_apart, check_writable
from punchcard.machines.registry import Registry

FAILED = 1
"""The exit status if a claim is false."""


@program_command(kind_option, machine_options, language_options)
@click.option("-o", "--output", metavar="CERTIFICATE", help="Write the certificate to this file, as JSON.")
@click.option("--verify", "certificate", metavar="CERTIFICATE", type=click.Path(path_type=Path),
              help="Build the machine of a certificate again, and repeat the proof.")
@click.option("--seconds", type=click.FloatRange(min=0.001),
              help="Timeout of one solver query; the proof stops at the first timeout.")
@json_option
def prove(
    registry: Registry, file: Path | None, kind_name: str | None, output: str | None, certificate: Path | None,
    seconds: float | None, as_json: bool, **given: Any,
) -> int:
    """Prove from the weights that one loop is one step of the machine, for every card and so for every program.

    With FILE, the machine is built for that program, else with default sizes. A false claim comes with a
    counterexample, and the exit status is 1. The solver z3 is needed: pip install 'punchcard[proof]'.
    """
    from punchcard.cli.display import Progress
    from punchcard.proof.prover import prove as proven
    from punchcard.proof.prover import rebuilt, require_solver

    require_solver()
    if output is not None:
        check_apart(output, file, certificate)
        check_writable(output)
    kept = None
    if certificate is not None:
        from punchcard.proof.certificate import load_certificate

        if file is not None or kind_name is not None or given_options(given):
            raise PunchcardError(f"--verify {str(certificate)!r} names its machine: do not give FILE, --machine or "
                                 "options of a machine")
        kept = load_certificate(certificate)
        machine: Any = rebuilt(kept, registry, str(certificate))
    else:
        machine = open_machine(registry, file, kind_name, given_options(given))
    with Progress(math.inf if as_json or not sys.stderr.isatty() else 0.0) as line:
        found = proven(machine, seconds=seconds, progress=lambda name, queries: line.show(
            f"{name} ({queries} queries so far)"))
    wrong = []
    if kept is not None:
        from punchcard.proof.certificate import disagreements

        wrong = disagreements(kept, found)
    if as_json:
        print_json({**found.describe(), **({"disagreements": wrong} if kept is not None else {})})
    else:
        out(str(found))
        if kept is not None:
            out(f"{str(certificate)!r} is confirmed" if not wrong else
                f"{str(certificate)!r} is not confirmed: {'; '.join(wrong)}")
    if output is not None:
        found.save(output)
    return FAILED if wrong or not found.proven else 0
