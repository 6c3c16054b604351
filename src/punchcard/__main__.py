"""`python -m punchcard`."""

from punchcard.cli.commands import main

main(prog_name="punchcard")
