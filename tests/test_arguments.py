"""Wrong types: every public call, and every public method of a machine, gives a named error or none at all."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import punchcard
from punchcard.arguments import checked
from punchcard.errors import ArgumentError, PunchcardError, SizeError
from punchcard.learning.model import Model
from punchcard.learning.programs.network import Network
from punchcard.learning.table import read_table
from punchcard.machines.kind import Option

LIBRARY: Any = punchcard
"""For the type checker: what is wrong here is meant."""
WRONG: tuple[Any, ...] = (
    None, 5, -1, True, "x", "", "a\0b", b"x", 2.5, math.nan, math.inf, 1j, [], {}, [[1.0], [1.0, 2.0]], [1j], ["x"],
    object(), np.array([[1 + 2j]]), np.array("x"),
)
SUBLEQ = punchcard.assemble(".data\nx 1\n.code\nsubleq x, x")
FLEQ = punchcard.assemble(".data\nx scalar 1\n.code\nx = add(x, x)", "fleq")
IMAGE = punchcard.Image((0, 0, -1))
NOT_CALLS = {
    # the equation itself needs nothing but torch, and its errors are torch's
    "LoopedTransformer",
    # values that the library makes; they hold what they are given
    "Calculation", "Report", "Result", "PunchcardError",
    # modules: the calls of the first have tests of their own, those of the others are below
    "export", "arrays", "linalg", "ground_truth", "language_models", "learning", "sweep",
    # abstract: the kinds of machines are its subclasses
    "Machine",
}


def sound(name: str) -> dict[str, Any]:
    """Arguments with which a call works, quickly; each is then replaced by wrong ones in turn."""
    known: dict[str, dict[str, Any]] = {
        "run": {"program": SUBLEQ, "machine": MACHINES[0], "engine": "dense"},
        "check": {"program": SUBLEQ, "machine": MACHINES[0], "engine": "dense"},
        "build": {"program": FLEQ}, "disassemble": {"program": FLEQ},
        "inverse": {"matrix": [[2.0]], "iterations": 1, "engine": "dense"},
        "least_squares": {"matrix": [[2.0]], "right": [1.0], "iterations": 1},
        "solve": {"matrix": [[2.0]], "right": [1.0], "sweeps": 1},
        "power_iteration": {"matrix": [[2.0]], "iterations": 1}, "qr": {"matrix": [[2.0]], "steps": 1},
        "arnoldi": {"matrix": [[2.0]], "dimension": 1, "steps": 1},
        "lanczos": {"matrix": [[2.0]], "dimension": 1, "steps": 1},
        "learn": {"features": [[1.0]], "labels": [1.0], "epochs": 1}, "calc": {"expression": "1 + 1"},
        "Image": {"words": (1, 2, 3)}, "assemble": {"text": ".code\nhalt"},
        "observe": {"model": MACHINES[0].model, "layout": MACHINES[0].layout}, "Registry": {"kinds": ()},
        "Program": {"instructions": SUBLEQ.instructions, "memory": SUBLEQ.memory, "symbols": SUBLEQ.symbols},
        "FleqProgram": {"instructions": FLEQ.instructions, "variables": FLEQ.variables, "values": FLEQ.values,
                        "functions": FLEQ.functions},
    }
    return known.get(name, {})


MACHINES = (punchcard.SubleqMachine(word_bits=4, memory=2, instructions=2),
            punchcard.FleqMachine(functions=["add"], size=1, memory=2, instructions=2),
            punchcard.VonNeumannMachine(word_bits=4, memory=8))
ANY_MACHINES: Any = MACHINES
PROGRAMS = (SUBLEQ, FLEQ, IMAGE)
FOR_AUTHORS = {"states", "build", "builder", "engine_cache"}
"""Methods that a machine's author calls, with sizes of the machine's own."""


def parameters(call: Callable[..., Any]) -> list[str]:
    """The names of a call's arguments; those of `**options: Unpack[...]` too."""
    found: list[str] = []
    for name, parameter in inspect.signature(call, eval_str=False).parameters.items():
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            found.append(name)
        elif parameter.kind is parameter.VAR_KEYWORD and "Unpack" in str(parameter.annotation):
            options = str(parameter.annotation).removeprefix("Unpack[").removesuffix("]")
            found += inspect.unwrap(call).__globals__[options].__annotations__
    return found


def attempts(call: Callable[..., Any], given: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Each argument wrong in each way, the others sound."""
    for name in parameters(call):
        for value in WRONG:
            yield {**given, name: value}


def broken(call: Callable[..., Any], *given: Any, **named: Any) -> str:
    """What is wrong with how a call ended. It may work, may raise a PunchcardError of one line, or Python's TypeError where
    arguments are missing."""
    try:
        call(*given, **named)
    except PunchcardError as error:
        return f"{named or given}: {error}" if "\n" in str(error) else ""
    except TypeError as error:
        counted = any(word in str(error) for word in ("missing", "unexpected keyword", "positional"))
        return "" if counted else f"{named or given}: {error!r}"
    except Exception as error:
        return f"{named or given}: {error!r}"
    return ""


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls that write take some of what they are given for paths."""
    monkeypatch.chdir(tmp_path)


CALLS: dict[str, Any] = {
    **{name: getattr(punchcard, name) for name in punchcard.__all__ if name not in NOT_CALLS},
    **{name: getattr(punchcard.linalg, name) for name in punchcard.linalg.__all__ if name[0].islower()},
    **{name: getattr(punchcard.arrays, name) for name in punchcard.arrays.NAMES},
}


@pytest.mark.parametrize("name", CALLS)
def test_no_public_call_fails_by_its_types(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What would build a machine and run ends there, with all that was given looked at but the machine's own options."""
    def built(*given: object, **options: object) -> None:
        raise PunchcardError("built")

    call = CALLS[name]
    if name not in ("build", "FleqMachine"):
        monkeypatch.setattr(punchcard.FleqMachine, "for_program", built)
        monkeypatch.setattr("punchcard.calculator.calculation.calculator_machine", built)
    for given in attempts(call, sound(name)):
        assert not broken(call, **given), name
    for value in WRONG:
        assert not broken(call, value), name


@pytest.mark.parametrize(("machine", "program"), [*zip(MACHINES, PROGRAMS, strict=True)],
                         ids=[machine.kind.name for machine in MACHINES])
def test_no_method_of_a_machine_fails_by_its_types(machine: Any, program: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program is one of the machine's, the state and the card its own; then each is wrong in turn.

    A proof ends where it would begin, with all that was given looked at: proofs have tests of their own.
    """
    def begun(proof: object) -> None:
        raise PunchcardError("begun")

    monkeypatch.setattr("punchcard.proof.proof.Proof.run", begun)
    card = machine.punch(program)
    good = {"program": program, "card": card, "cards": card[None], "before": card, "after": card,
            "state": machine.read(card), "max_steps": 1, "engine": "dense", "loops": 1, "ended": True, "column": 0}
    for name, call in inspect.getmembers(machine, callable):
        if not name.startswith("_") and name not in FOR_AUTHORS:
            given = {key: value for key, value in good.items() if key in parameters(call)}
            for wrong in attempts(call, given):
                assert not broken(call, **wrong), f"{machine.kind.name}.{name}"


TEXTS = {"subleq": ".data\nx 1\n.code\nsubleq x, x", ".minsky": "halt", "fleq": ".data\nx scalar 1\n.code\nx = add(x, x)",
         ".asq": "0 0 -1", ".dec": "0 0 -1", ".bf": "+", "riscv": "ecall", ".py": "def main() -> int:\n    return 1\n"}
"""A program of each language that is text."""


@pytest.mark.parametrize("language", TEXTS)
def test_no_option_fails_by_its_type(language: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Options of a language, and of a machine for its program, which is not built."""
    def built(*given: object) -> None:
        raise PunchcardError("built")

    program = punchcard.assemble(TEXTS[language], language)
    kind = punchcard.kinds().kind_of(program)
    for cls in (punchcard.SubleqMachine, punchcard.FleqMachine, punchcard.VonNeumannMachine, punchcard.RiscvMachine):
        monkeypatch.setattr(cls, "build", built)
    known = [*kind.options, *(option for each in kind.languages for option in each.options)]
    for name in ("design", "precision", "blocks", *(option.name for option in known)):
        for value in (*WRONG, 0, 10**30, 10**400, "16M", [5], ("x", 5)):
            option = {name: value}
            assert not broken(partial(LIBRARY.assemble, TEXTS[language], language, **option)), option
            assert not broken(partial(LIBRARY.build, program, **option)), option


@pytest.mark.parametrize(("call", "message"), [
    (lambda: LIBRARY.assemble("0 0 -1", ".asq", word_bits=-1), "word_bits=-1: it must be an integer, at least 3"),
    (lambda: LIBRARY.assemble("0 0 -1", ".dec", word_bits=10**30), "it must be an integer, at least 3, at most 50"),
    (lambda: LIBRARY.assemble("0 0 -1", ".asq", dialect=5), "unknown dialect 5: there are standard"),
    (lambda: LIBRARY.assemble("ecall", "riscv", base="0x10"), "base='0x10': it must be an integer"),
    (lambda: LIBRARY.assemble(TEXTS[".py"], ".py", call=["main"]), "call=['main']: it must be a text"),
    (lambda: LIBRARY.build(FLEQ, functions=5), "FleqMachine.for_program: functions=5: it must be a list"),
    (lambda: LIBRARY.build(FLEQ, blocks=["x"]), "FleqMachine.for_program: blocks=['x']: it must be a list"),
    (lambda: LIBRARY.build(FLEQ, range=10**400), "it must be a number"),
    (lambda: LIBRARY.run(SUBLEQ, max_steps="x"), "run: max_steps='x': it must be an integer or None"),
    (lambda: LIBRARY.linalg.inverse([[1.0], [1.0, 2.0]]), "inverse: matrix=[[1.0], [1.0, 2.0]]: it must be an array"),
    (lambda: LIBRARY.linalg.inverse([[1j]]), "inverse: matrix=[[1j]]: it must be an array of real numbers, in rows of"),
    (lambda: LIBRARY.learn([[1.0]], [1.0], hidden=2.5), "learn: hidden=2.5: it must be an integer or a list, each item"),
    (lambda: LIBRARY.learn([[1.0]], [1.0], hidden="8"), "learn: hidden='8': it must be an integer"),
    (lambda: LIBRARY.learn([[1.0]], [1.0], epochs=1.5), "learn: epochs=1.5: it must be an integer"),
    (lambda: LIBRARY.learn([[1.0]], [1.0], rate="x"), "learn: rate='x': it must be a number"),
    (lambda: LIBRARY.learn([[1.0]], [1.0], epoch=3), "learn: unknown option 'epoch' (did you mean 'epochs'?)"),
    (lambda: LIBRARY.load("a\0b.subleq"), "cannot read"),
    (lambda: LIBRARY.load(None), "load: path=None: it must be a text or a path"),
    (lambda: ANY_MACHINES[1].run(SUBLEQ), "FleqMachine.run: program=<Program: "),
    (lambda: ANY_MACHINES[0].column_name("x"), "SubleqMachine.column_name: column='x': it must be an integer"),
    (lambda: LIBRARY.FleqMachine(range="x"), "FleqMachine: range='x': it must be a number"),
    (lambda: LIBRARY.run(SUBLEQ, max_step=3), "max_step"),
])
def test_what_an_error_says(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(PunchcardError) as caught:
        call()
    assert message in str(caught.value)


@pytest.mark.parametrize(("option", "good", "wrong", "rule"), [
    (Option("n", "", least=1), (1, 7), (0, True, 2.0, "1", None), "an integer, at least 1"),
    (Option("r", "", float, least=0, most=9), (0, 2.5, 9), (-1, 10.0, "1", None, True),
     "a number, at least 0, at most 9"),
    (Option("c", "", str, choices=("a", "b")), ("a",), ("c", ["a"], None, 1), "'a' or 'b'"),
    (Option("l", "", str, many=True), ((), ["x", "y"]), ("x", [1], None), "a list, each item a text"),
    (Option("t", "", bool), (True,), (1, None, "yes"), "True or False"),
])
def test_an_option_knows_its_values(option: Option, good: tuple[Any, ...], wrong: tuple[Any, ...], rule: str) -> None:
    for value in good:
        option.check(value)
    for value in wrong:
        with pytest.raises(SizeError) as caught:
            option.check(value)
        assert str(caught.value) == f"{option.name}={value!r}: it must be {rule}"


def test_a_head_that_is_not_there() -> None:
    with MACHINES[0].observe() as seen:
        MACHINES[0].run(SUBLEQ)
    with pytest.raises(PunchcardError, match="head 5: layer 0 has 1, counted from 0"):
        seen[0].attention(5)


def test_predicting_does_not_speak_of_learning() -> None:
    model = Model(Network(1), {"W1": np.array([[1e13]]), "b1": np.array([0.0])})
    with pytest.raises(PunchcardError, match="the model's values are too large: a value reached"):
        punchcard.predict(model, [[1.0]])


def test_a_table_has_no_underscores_in_its_numbers(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("a,y\n1_0,2\n")
    with pytest.raises(PunchcardError, match="'1_0' is not a finite number"):
        read_table(table)


def test_a_call_of_one_s_own() -> None:
    @checked
    def call(count: int, name: str = "", *, share: float | None = None) -> str:
        return f"{count} {name} {share}"

    anything: Any = call
    assert anything(np.int64(3), "x", share=1) == "3 x 1"
    for wrong in ((True,), ("3",), (3, None)):
        with pytest.raises(ArgumentError):
            anything(*wrong)
    with pytest.raises(ArgumentError, match="call: share=nan: it must be a number or None"):
        anything(1, share=math.nan)
