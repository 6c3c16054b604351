"""A target that is compiled code: files in the folder of the cache, damaged, exchanged, or made by somebody else."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import torch

from tests.engine_runs import run_dense, run_lowered
from tests.fuzzing.judging import Fault
from tests.fuzzing.mutations import JSON_VALUES, mutated
from tests.fuzzing.workers import Attempt
from tests.lowered_cases import operations

OPERATIONS = [0, 1, 3, 1, 2, 2, 0, 1, 1, 3, 2, 0, 0, 1, 2, 3]
LOOPS = 3
SOMEBODY = 12345
"""The number of another user."""

Forgery = Callable[[random.Random, Path, Path], None]


def code(folder: Path) -> Attempt:
    """Whatever lies in the folder: a run gives the card that the equation gives."""
    kept, cache = folder / "kept", folder / "cache"
    os.environ["PUNCHCARD_CACHE"] = str(kept)
    machine = operations(OPERATIONS, 4)
    expected = run_dense(machine.model, machine.card, LOOPS).card
    run_lowered(machine.model, machine.card, LOOPS, facts=machine.layout)
    os.environ["PUNCHCARD_CACHE"] = str(cache)

    def attempt(rng: random.Random) -> None:
        if cache.is_symlink() or cache.is_file():
            cache.unlink()
        shutil.rmtree(cache, ignore_errors=True)
        shutil.copytree(kept, cache)
        files = sorted(cache.glob("*.code"))
        rng.choice(FORGERIES)(rng, rng.choice(files), rng.choice(files))
        fresh = operations(OPERATIONS, 4)
        found = run_lowered(fresh.model, fresh.card, LOOPS, facts=fresh.layout).card
        if not torch.equal(found, expected):
            raise Fault("the card is not what the equation gives")

    return attempt


def _damage(rng: random.Random, file: Path, other: Path) -> None:
    file.write_bytes(mutated(rng, file.read_bytes(), [other.read_bytes()]))


def _exchange(rng: random.Random, file: Path, other: Path) -> None:
    one, two = file.read_bytes(), other.read_bytes()
    file.write_bytes(two)
    other.write_bytes(one)


def _plant(rng: random.Random, file: Path, other: Path) -> None:
    """A checksum that fits, over what is refused all the same: another key, or a header that is not one.

    What has the right key as well is executed, by the trust model: it has been written with the user's own rights.
    """
    rest = file.read_bytes()[32:]
    size = int.from_bytes(rest[:8], "little")
    header, compiled = json.loads(rest[8 : 8 + size]), rest[8 + size :]
    another = rng.choice([value for value in (*JSON_VALUES, other.stem) if value != file.stem])
    text = rng.choice((json.dumps({**header, "key": another}), json.dumps({"key": file.stem}), json.dumps(another), "",
                       "[" * 100_000, "9" * 5000, "{", "\0")).encode()
    size = len(text) if rng.random() < 0.9 else rng.choice((0, 1, 2**63, 2**64 - 1))
    rest = size.to_bytes(8, "little") + text + compiled
    file.write_bytes(hashlib.sha256(rest).digest() + rest)


def _replace(rng: random.Random, file: Path, other: Path) -> None:
    file.unlink()
    choice = rng.randrange(5)
    if choice == 0:
        file.mkdir()
    elif choice == 1:
        file.symlink_to(rng.choice((other, file, Path("/dev/zero"), Path("/dev/null"))))
    elif choice == 2:
        os.mkfifo(file)
    elif choice == 3:
        file.write_bytes(b"")


def _open(rng: random.Random, file: Path, other: Path) -> None:
    """A file, or the folder, that others may write, or nobody may read."""
    rng.choice((file, file.parent)).chmod(rng.choice((0o777, 0o666, 0o722, 0o000)))


def _give_away(rng: random.Random, file: Path, other: Path) -> None:
    if os.geteuid() == 0:
        os.chown(rng.choice((file, file.parent)), SOMEBODY, SOMEBODY)
    if rng.random() < 0.5:
        _damage(rng, file, other)


def _no_folder(rng: random.Random, file: Path, other: Path) -> None:
    shutil.rmtree(file.parent)
    if rng.random() < 0.5:
        file.parent.write_text("not a folder")


FORGERIES: tuple[Forgery, ...] = (_damage, _damage, _exchange, _plant, _replace, _open, _give_away, _no_folder)
