"""`python -m punchcard`."""

from punchcard.cli import main

main(prog_name="punchcard")
