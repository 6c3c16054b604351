"""Targets that are text: programs in every language, expressions of the calculator, tables, and the values of `.fleq`."""

from __future__ import annotations

import io
import linecache
import random
import re
from pathlib import Path

import numpy as np

import punchcard
from punchcard.errors import PunchcardError
from tests.fuzzing import samples
from tests.fuzzing.judging import Fault, command
from tests.fuzzing.mutations import NUMBERS, encoded, forged, mutated
from tests.fuzzing.workers import Attempt

RUNS = 0.04
"""The share of inputs that also run, which costs much more than reading them."""
STEPS = 6
VALUES = ("1", "0.5", "-2", "1e-3", "3")
OPERATORS = ("+", "-", "*", "/", "^", " % * ", "**")
FUNCTIONS = ("sqrt", "inverse", "exp", "log", "sin", "cos", "tanh", "abs", "min", "max", "pi")


def programs(extension: str) -> object:
    """Programs in one language: assembled, written again, and sometimes run."""
    def begin(folder: Path) -> Attempt:
        samples.shared_folder(folder)
        known, registry, path = samples.texts()[extension], samples.registry(), folder / f"input{extension}"

        def attempt(rng: random.Random) -> None:
            path.write_bytes(mutated(rng, rng.choice(known), known))
            if rng.random() < 0.1:
                command(samples.command_line(), [rng.choice(("asm", "disasm")), str(path)])
                return
            program = punchcard.load(path, machines=registry)
            text = punchcard.disassemble(program, machines=registry)
            if rng.random() < RUNS:
                _run(rng, program)
            elif rng.random() < 0.2:
                _again(text, program)

        return attempt
    return begin


def _run(rng: random.Random, program: object) -> None:
    kind = samples.registry().kind_of(program)
    report = punchcard.run(program, samples.machine(kind.name), engine="dense", max_steps=STEPS, input=rng.randbytes(4),
                           check=rng.choice((False, "end", "lockstep")))
    if report.agrees is False:
        raise Fault(f"the transformer and the interpreter disagree: {report.why}")


def _again(text: str, program: object) -> None:
    """What is written as text is read as the same program."""
    kind = samples.registry().kind_of(program)
    try:
        again = kind.disassemble(kind.languages[0].assemble(text, ""))
    except PunchcardError as error:
        raise Fault(f"what disassemble wrote is refused: {error}") from None
    if again != text:
        raise Fault("what disassemble wrote is read as another program")


def generated(folder: Path) -> Attempt:
    """Programs in Python from a grammar, with large constants: refused by name, or the same as in CPython and NumPy."""
    from tests.python_random import random_program
    from tests.python_random_integers import Program
    from tests.test_python_arrays import compare
    from tests.test_python_integers import compare_random

    path = folder / "input.py"

    def attempt(rng: random.Random) -> None:
        how, seed, large = rng.random(), rng.randrange(1 << 32), rng.choice((0.01, 0.03, 0.3))
        if how < 0.6:
            compare(seed, large)
            linecache.clearcache()  # where the text of a made function is found
        elif how < 0.75:
            compare_random(seed, 16, large=large)
        else:
            text = random_program(seed, large) if how < 0.9 else Program(rng, 32, large).text
            text = f"import numpy as np\nimport punchcard as pc\n{text}\ndef main():\n    print(f(1, 2, [3, 4, 5, 6]))\n"
            path.write_bytes(mutated(rng, text.encode(), [text.encode()]))
            command(samples.command_line(), ["asm", str(path), *rng.choice(([], ["--call", "made"], ["--call", "f"]))])

    return attempt


def expressions(folder: Path) -> Attempt:
    """The calculator: compiled, and sometimes computed."""
    def attempt(rng: random.Random) -> None:
        expression = _expression(rng, rng.randrange(5))
        if rng.random() < 0.01:
            expression = rng.choice(("(", "-", "sqrt(", "1/(")) * rng.randrange(400) + expression
        if rng.random() < 0.5:
            expression = mutated(rng, expression.encode(), [b"a+b*2"]).decode("utf-8", "replace").replace("\0", "?")[:2000]
        variables = sorted(set(re.findall(r"[A-Za-z_]\w*", expression)) - set(FUNCTIONS))
        values = [_changed(rng, f"{name}={rng.choice(VALUES)}") for name in variables]
        ranges = ["--range", _changed(rng, "a=-1:1")] if rng.random() < 0.1 else []
        how = [] if rng.random() < 0.005 else ["--program"]
        command(samples.command_line(), ["calc", *how, *ranges, "--", expression, *values])

    return attempt


def _expression(rng: random.Random, depth: int) -> str:
    if depth == 0 or rng.random() < 0.1:
        return rng.choice(("a", "b", "c", "a", "b", rng.choice(VALUES), rng.choice(NUMBERS)))
    inner = _expression(rng, depth - 1)
    choice = rng.randrange(5)
    if choice == 0:
        return f"{rng.choice(FUNCTIONS)}({inner})"
    if choice == 1:
        return f"-({inner})"
    return f"({inner}{rng.choice(OPERATORS)}{_expression(rng, depth - 1)})"


def _changed(rng: random.Random, text: str) -> str:
    """Mostly as it is."""
    if rng.random() < 0.95:
        return text
    return mutated(rng, text.encode(), [b"b=1", b"c=0:2"]).decode("utf-8", "replace").replace("\0", "?")


def tables(folder: Path) -> Attempt:
    """Tables of numbers, to learn from and to predict for."""
    samples.shared_folder(folder)
    path, model = folder / "input.csv", folder / "model"
    known = [b"x,y\n-0.5,-0.4\n0.5,0.6\n", b'"a ""b""",y,z\r\n1,2,3\r\n4,5,6\r\n', b"x,y\n1,2\n"]
    samples.write_model(model)

    def attempt(rng: random.Random) -> None:
        path.write_bytes(mutated(rng, rng.choice(known), known))
        if rng.random() < 0.005:
            line = rng.choice((["predict", str(model), str(path)], ["learn", str(path), "--target", "y", "--epochs", "1"]))
        else:
            line = ["learn", str(path), "--target", "y", "--epochs", "1", "--program"]
        command(samples.command_line(), line)

    return attempt


def arrays(folder: Path) -> Attempt:
    """Files of values beside a `.fleq` text: damaged, or written anew with another header."""
    samples.shared_folder(folder)
    program = folder / "input.fleq"
    program.write_text(samples.FROM_FILES)
    files = {name: (folder / name).read_bytes() for name in ("values.npy", "values.csv")}
    known = [*files.values(), _archive()]

    def attempt(rng: random.Random) -> None:
        for name, data in files.items():
            (folder / name).write_bytes(data)
        name = rng.choice(sorted(files))
        forge = name == "values.npy" and rng.random() < 0.4
        (folder / name).write_bytes(_npy(rng) if forge else mutated(rng, rng.choice([files[name], *known]), known))
        punchcard.load(program, machines=samples.registry())

    return attempt


def _archive() -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, w=np.ones((2, 2)))
    return file.getvalue()


def _npy(rng: random.Random) -> bytes:
    """An array's file with a header of any content."""
    header = forged(rng, {"descr": "<f8", "fortran_order": False, "shape": [2, 2]})
    text = repr(header).replace("[", "(").replace("]", ")")
    for word in ("2", "<f8"):
        if rng.random() < 0.3:
            text = text.replace(word, rng.choice((*NUMBERS, "|O", "<c16", "<M8[s]", "(" * 300)), 1)
    data = encoded(text)
    length = len(data).to_bytes(2, "little") if len(data) < 1 << 16 else b"\xff\xff"
    version = bytes([rng.choice((1, 1, 1, 2, 3, 9)), 0])
    return b"\x93NUMPY" + version + length + data + rng.randbytes(rng.choice((0, 32, 32, 40)))
