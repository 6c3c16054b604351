"""A target that is command lines: every command, every option, found in click's tree; values that fit, and others."""

from __future__ import annotations

import os
import random
from pathlib import Path
from threading import Thread

import click

from punchcard.budget import VARIABLE
from tests.fuzzing import samples
from tests.fuzzing.judging import command
from tests.fuzzing.mutations import NUMBERS, WORDS
from tests.fuzzing.workers import BUDGET, Attempt

FITTING: dict[str, tuple[str, ...]] = {
    "settings": ("a=1", "x=2", "list=3", "b=1 2", "counter=5", "no=1", "=", "a", "a=1=2", " a = 1 "),
    "target": ("y", "x", "z", ""), "hidden": ("0", "2", "2,2", "1,", ",", "2.5", "3,0"),
    "ranges": ("a=0:1", "a=1:0", "b=-1:1", "a=0", "a=:", "a=nan:1"), "columns": ("8", "64", "8,16", "0"),
    "expression": ("a+b", "a*a-1", "1/a", "sqrt(a)", "", "(", "a b"), "values": ("a=1", "b=2", "a=", "c=1e5", "=1", "a=1/3"),
    "given_functions": ("add", "add,mul", "sub", "nothing", ",", "add,add"), "engine": ("auto", "dense", "lowered", "x"),
    "engines": ("dense", "scratchpad,dense", "x"), "designs": ("paper", "two-layer", "compact", "paper,paper"),
    "loss": ("squared", "huber", "logcosh", "logistic", "x"), "activation": ("sigmoid", "tanh", "silu", "softplus", "relu"),
}
"""Values of options that are not numbers or choices, by the name of the parameter."""
BOUNDED: dict[str, tuple[str, ...]] = {
    "max_steps": ("0", "1", "5", "-1", "x", "", "nan", "1.5"), "epochs": ("1", "2", "0", "-1", "x", "", "1e3"),
    "seconds": ("0.001", "0", "-1", "nan", "x"), "dense_columns": ("0", "64", "-1", "x"),
    "max_memory": (BUDGET, "64M", "1K", "0.1GiB", "1", "0", "-1", "x", "", "nan", "1e3", "1" * 5000, "1M1", "²"),
}
"""Always given, where a command has them: a larger value is a longer run, and not a fault."""
OFTEN = {"given_memory": 0.9}
"""Options that are given more often than others: images have a large memory where nobody says."""
USUALLY = 0.09
READ = ("file", "input_", "resume", "weights")
WRITTEN = ("output", "checkpoint", "stats", "save", "plot")
ANYWHERE = ("", ".", "folder", "folder/x.subleq", "link", "loop", "none", "none/none.fleq", "/dev/null", "/dev/full",
            "x" * 300, "x" * 5000, "-", "\udce9.subleq", "😀.asq", "/proc/nothing", "secret.subleq", "table.csv")
READ_ONLY = ("/dev/zero", "/dev/zero.subleq", "endless.subleq", "endless.csv", "endless.npy", "fed")
PIPES = {"fed": "wb", "drained": "rb"}
"""Pipes, and what somebody does at their other end; who does the same waits for ever, as with any program."""
NUMBER_TYPES = (click.types.IntParamType, click.types.FloatParamType)
ODD = tuple(word.replace("\ud800", "\udce9") for word in WORDS if word != "\0")
"""Words as a shell can give them: none holds a NUL, and a byte that is not UTF-8 comes as half of a surrogate pair."""
SMALL = 400
"""Bytes of the programs that run: larger ones need larger machines."""
COSTLY = ("bench", "calc", "learn", "predict")
"""Commands that take much time; they come less often."""


def lines(folder: Path) -> Attempt:
    """Command lines, in a folder with files of all sorts."""
    samples.shared_folder(folder)
    main = samples.command_line()
    _special_files(folder)
    samples.write_model(folder / "kept.model")
    command(main, ["run", "sample1.tm", "--max-steps", "2", "--checkpoint", "kept.checkpoint", "--engine", "dense"])
    kept = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file() and not path.is_symlink()
            and (path.stat().st_size < SMALL or path.name.startswith("kept"))}

    def attempt(rng: random.Random) -> None:
        for name, data in kept.items():  # an output may have gone there
            if (path := folder / name).stat().st_size != len(data):
                path.write_bytes(data)
        command(main, line_of(rng, main, sorted(kept)), stdin=rng.randbytes(rng.choice((0, 5))), env=_environment(rng))

    return attempt


def line_of(rng: random.Random, main: click.Group, files: list[str]) -> list[str]:
    """A command with arguments and options."""
    names = sorted(main.commands)
    name = rng.choice(names)
    if name in COSTLY and rng.random() < 0.85:
        name = rng.choice([name for name in names if name not in COSTLY])
    chosen = main.commands[name]
    wild = rng.random() < 0.3
    arguments, options = list[str](), list[list[str]]()
    for parameter in chosen.params:
        if isinstance(parameter, click.Argument):
            few = rng.randrange(4) if parameter.name != "given_files" or rng.random() < 0.05 else 0
            for _ in range(few if parameter.nargs < 0 else 0 if rng.random() < 0.03 and name != "bench" else 1):
                arguments.append(_value(rng, parameter, files, wild))
        elif isinstance(parameter, click.Option) and (
                parameter.name in BOUNDED or rng.random() < OFTEN.get(str(parameter.name), USUALLY)):
            options.append(_option(rng, parameter, files, wild))
    if name == "view":  # without a file it is a server, which runs until somebody ends it
        options.append(["--html", _path(rng, files, written=True, wild=wild)])
    if wild and rng.random() < 0.2:
        options.append([rng.choice((*ODD, "--", "-", "--help", "--nothing", "-x"))])
    rng.shuffle(options)
    words = [*(word for option in options for word in option), *arguments]
    if wild and rng.random() < 0.1 and not {*PIPES} & {*words}:
        rng.shuffle(words)
    return [name if rng.random() < 0.99 else rng.choice((*ODD, name[:-1], "-h", "--version")), *words]


def _option(rng: random.Random, option: click.Option, files: list[str], wild: bool) -> list[str]:
    flag = rng.choice(option.opts)
    if option.is_flag:
        return [flag]
    value = _value(rng, option, files, wild)
    return [f"{flag}={value}"] if flag.startswith("--") and rng.random() < 0.5 else [flag, value]


def _value(rng: random.Random, parameter: click.Parameter, files: list[str], wild: bool) -> str:
    name, kind = str(parameter.name), parameter.type
    if name in BOUNDED:
        return rng.choice(BOUNDED[name]) if wild else BOUNDED[name][rng.randrange(2)]
    if name in READ or name in WRITTEN:
        return _path(rng, files, written=name in WRITTEN, wild=wild)
    if wild and rng.random() < 0.3:
        return rng.choice(NUMBERS + ODD)
    if isinstance(kind, click.Choice):
        return str(rng.choice(list(kind.choices)))
    if isinstance(kind, NUMBER_TYPES):
        return rng.choice(NUMBERS) if wild else str(rng.choice((1, 2, 3, 8, 8, 16, 16, 64)))
    return rng.choice(FITTING.get(name, NUMBERS + ODD))


def _path(rng: random.Random, files: list[str], *, written: bool, wild: bool) -> str:
    if not wild:
        return f"written{rng.randrange(3)}" if written else rng.choice(files)
    return rng.choice((*ANYWHERE, "drained") if written else (*ANYWHERE, *READ_ONLY))


def _environment(rng: random.Random) -> dict[str, str]:
    found = {}
    if rng.random() < 0.05:
        found["PUNCHCARD_CACHE"] = rng.choice(ANYWHERE)
    if rng.random() < 0.05:
        found[VARIABLE] = rng.choice(BOUNDED["max_memory"])
    return found


def _special_files(folder: Path) -> None:
    """What a path may lead to beside a file; pipes have somebody at their other end."""
    (folder / "folder").mkdir()
    (folder / "link").symlink_to("target")
    (folder / "loop").symlink_to("loop")
    (folder / "secret.subleq").write_text("halt\n")
    (folder / "secret.subleq").chmod(0)
    for suffix in (".subleq", ".csv", ".npy"):
        (folder / f"endless{suffix}").symlink_to("/dev/zero")
    for name, mode in PIPES.items():
        os.mkfifo(folder / name)
        Thread(target=_other_end, args=(folder / name, mode), daemon=True).start()


def _other_end(path: Path, mode: str) -> None:
    """Whoever opens the pipe finds 3 bytes, or somebody who takes them."""
    while True:
        try:
            with open(path, mode) as file:
                if mode == "wb":
                    file.write(b"abc")
                else:
                    file.read()
        except BrokenPipeError:
            continue
