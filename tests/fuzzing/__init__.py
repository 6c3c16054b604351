"""The fuzzer: seeded damage to everything that Punchcard reads, in workers with limits of time and memory.

    python -m tests.fuzzing                     every target, a few inputs each
    python -m tests.fuzzing .asq 1000           one target, 1,000 inputs
    python -m tests.fuzzing .asq --seed 17      one input again, with its traceback

An input is a target and a seed: both together give it again, byte by byte.
"""
