"""The sentences of every half layer: the values in them are those of the plain interpreter."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from punchcard.machines.fleq.machine import FleqMachine
from punchcard.machines.registry import built_in
from punchcard.machines.riscv.isa import REGISTERS
from punchcard.machines.riscv.machine import RiscvMachine
from punchcard.machines.story import Condition, Quote, Sentence, Story, ValuePlace, tell
from punchcard.machines.subleq.designs.base import SubleqSizes
from punchcard.machines.subleq.designs.two_layer import SubleqTwoLayer
from punchcard.machines.subleq.isa import Subleq
from punchcard.machines.subleq.machine import SubleqMachine
from punchcard.machines.von_neumann.machine import VonNeumannMachine
from punchcard.viewer.session import Session
from tests.cases import DESIGNS, EXAMPLES, EXPECTED, soaked, wrap
from tests.command_line import invoke
from tests.opened import Opened, opened

SMALL: dict[str, Callable[[str], Any]] = {
    "subleq": lambda design: SubleqMachine(word_bits=4, memory=2, instructions=2, design=design),
    "von-neumann": lambda design: VonNeumannMachine(word_bits=8, memory=16, design=design),
    "fleq": lambda design: FleqMachine(design=design),
    "riscv": lambda design: RiscvMachine(memory=64, design=design)}
"""A small machine of each kind, by its design."""
FIRST = 5
"""Instructions of an example that `make test` looks at; `make soak` looks at all."""


def story_of(session: Session, loop: int) -> list[tuple[str, dict[str, str]]]:
    """The sentences of a loop, and their values."""
    found = []
    for number in range(1, session.per_loop + 1):
        if number % 2 == 0 or session.machine.weights.layers[(number - 1) // 2].heads:
            found.append(session.sentence_parts(loop * session.per_loop + number))
    return found


def same(sentences: list[tuple[str, dict[str, str]]], expected: dict[str, str], at: object) -> int:
    """Every value that is in a text is the expected one; how many there were."""
    count = 0
    for text, values in sentences:
        assert "–" not in text, (at, text)
        assert "{" not in text, (at, text)
        for name, value in values.items():
            if name in expected:
                assert value == expected[name], (at, text, name)
                count += 1
    return count


def subleq_values(machine: SubleqMachine, program: Any, oracle: Any) -> dict[str, str]:
    """What sentences may quote of an instruction, from a state before it; all by the definition of SUBLEQ."""
    bits, (memory, counter) = machine.sizes.word_bits, (oracle.state.memory, oracle.state.program_counter)
    instruction, names = program.instructions[counter], program.cell_names()
    assert isinstance(instruction, Subleq)
    a, b, c = instruction.a, instruction.b, instruction.c
    difference = wrap(memory[b] - memory[a], bits)
    then = c if difference <= 0 else counter + 1
    found = {"a": names[a], "b": names[b], "word_a": memory[a], "word_b": memory[b], "difference": difference,
             "flipped": -memory[a] - 1, "negative": wrap(-memory[a], bits), "cell": names[b], "word": difference,
             "next": f"instruction {then}", "following": f"instruction {counter + 1}",
             "fetched": f"instruction {then if machine.design.warm_up else counter}"}
    if not machine.design.warm_up:
        found["c"] = f"instruction {c}"
    after = program.instructions[then]
    if isinstance(after, Subleq):
        found |= {"next_a": names[after.a], "next_b": names[after.b], "next_c": f"instruction {after.c}"}
    return {name: str(value) for name, value in found.items()}


def check_subleq(file: str, design: str, first: int) -> None:
    found, (_, steps) = opened(file, design=design), EXPECTED[file]
    warm_up = found.machine.design.warm_up
    for step in range(min(first, steps)):
        oracle, _ = found.oracle(step)
        sentences = story_of(found.session, step + warm_up)
        expected = subleq_values(found.machine, found.program, oracle)
        least = {"paper": 21, "two-layer": 14, "one-layer": 5}[design]
        assert same(sentences, expected, (file, design, step)) >= least - 4


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("file", EXPECTED)
def test_sentences_subleq(file: str, design: str) -> None:
    check_subleq(file, design, FIRST)


@pytest.mark.soak
@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("file", EXPECTED)
def test_all_sentences_subleq(file: str, design: str) -> None:
    check_subleq(file, design, 10_000)


def test_the_sentences_themselves() -> None:
    """As a person reads them: one loop of the README's program."""
    session = opened("multiply.subleq", design="two-layer").session
    assert session.story(0) == "The card before the first loop: the program and its data are punched on it."
    assert [text for text, _ in story_of(session, 1)] == [
        "Head 1 fetches mem[a] = 7 and head 2 mem[minus_a] = 0 into difference.",
        "The ReLU layer subtracts 7 from 0: the bits of -7. It is not positive, so instruction 1 is next.",
        "The head stores -7 in minus_a, and fetches instruction 1 into the scratchpad.",
        "The ReLU layer makes clean bits of it: minus_a is -7. The scratchpad holds instruction 1: subtract minus_a from "
        "product, and go to instruction 2 if that is not positive."]
    assert session.story(28 * 4).endswith("The scratchpad holds instruction 4: halt.")


IMAGES = {"sort.asq": b"5 3\n", "hello.asq": b"", "echo.asq": b"hi\n", "factorial.asq": b"", "guess.asq": b"5\n",
          "primes.asq": b"", "quine.asq": b"", "self.asq": b"", "hello.bf": b"", "reverse.bf": b"ab\n"}
"""Examples of images, and their input."""


@pytest.mark.parametrize(("file", "steps"), [("sort.asq", 40), *(soaked(file, 400) for file in IMAGES)])
def test_sentences_images(file: str, steps: int) -> None:
    """An instruction subtracts a word from a word, or one of the two is a port."""
    found, compared = opened(f"von_neumann/{file}", input=IMAGES[file], memory=2048), 0
    machine, program = found.machine, found.program
    bits = machine.sizes.word_bits
    oracle, _ = found.oracle(0)
    for step in range(steps):
        oracle.run(step)
        if oracle.halted:
            break
        cells, counter = oracle.cells, oracle.program_counter
        words = dict(zip("abc", cells[counter : counter + 3], strict=True))
        source, target = words[machine.sizes.source], words[machine.sizes.destination]
        if max(source, target) >= machine.sizes.data_end:
            continue
        difference = wrap(cells[target] - cells[source], bits)
        then = words["c"] if difference <= 0 else counter + 3
        expected = {"a": program.name_of(source), "b": program.name_of(target), "word_a": wrap(cells[source], bits),
                    "word_b": wrap(cells[target], bits), "difference": difference, "cell": program.name_of(target),
                    "word": difference}
        if then < machine.sizes.data_end:  # else the program halts, and no sentence names what is next
            expected["next"] = program.name_of(then)
        sentences = story_of(found.session, step + machine.design.warm_up)
        assert same(sentences, {name: str(value) for name, value in expected.items()}, step) >= len(expected)
        compared += 1
    assert compared >= 3


NUMBERS = r" = ((?:-?[\d.]+(?:e[-+]?\d+)? ?)+)"


def numbers_by_name(pattern: str, text: str) -> dict[str, list[float]]:
    """Which column took which numbers, or gave them, by a sentence of FLEQ."""
    found = re.findall(pattern + NUMBERS, text.partition(": ")[2].removesuffix("."))
    return {name: [float(number) for number in numbers.split()] for name, numbers in found}


def compare_columns(told: dict[str, list[float]], exact: dict[str, Any]) -> int:
    """The numbers of columns in a sentence are those of the interpreter; how many columns were compared."""
    compared = 0
    for column, numbers in told.items():
        name = column.partition("[")[0]
        if name not in exact:
            continue  # an instruction whose pointer moves on, or a column without a name
        row = np.atleast_2d(exact[name].T)[int(column.partition("[")[2].rstrip("]") or 0)]
        np.testing.assert_allclose(numbers, row[: len(numbers)], atol=max(1e-4, 1e-4 * float(np.abs(row).max())))
        assert not row[len(numbers) :].any()
        compared += 1
    return compared


@pytest.mark.parametrize(("file", "design"), [
    *(("newton", design) for design in ("compact", "three-layer")),
    ("functions", "three-layer"), *(soaked(file, design) for file in ("columns", "functions", "gram_schmidt", "rotation")
                                    for design in ("compact", "three-layer"))])
def test_sentences_fleq(file: str, design: str) -> None:
    """What a loop writes is what the exact interpreter has after it, and the listed instruction is the one executed."""
    found, read, written = opened(f"{file}.fleq", design=design), 0, 0
    for step in range(8):
        before, after = (found.oracle(count)[0].state for count in (step, step + 1))
        if after.program_counter == before.program_counter:
            break
        sentences = story_of(found.session, step)
        assert any(values["instruction"] == " ".join(found.session.instructions[before.program_counter].text.split())
                   for _, values in sentences)
        assert sentences[-1][1]["next"] == f"instruction {after.program_counter}"
        reads, writes = (next(text for text, _ in sentences if text.startswith(begin))
                         for begin in ("Every scratchpad column reads", "The head writes"))
        read += compare_columns(numbers_by_name(r"takes? (\S+)", reads), found.machine.values(found.program, before))
        new = compare_columns(numbers_by_name(r"(\S+) takes [^=,]*?", writes), found.machine.values(found.program, after))
        assert new or file != "functions", "each of its instructions writes a value that is not 0"
        written += new
    assert min(read, written) >= 3


RISCV = {"riscv/hi.s": 64, "riscv/fibonacci.s": 64,
         **{f"riscv/bin/{path.name}": 65_536 for path in sorted((EXAMPLES / "riscv" / "bin").glob("*.elf"))}}
"""Examples of RISC-V, and the words of memory that they are given."""


@pytest.mark.parametrize(("file", "options", "steps"), [
    ("riscv/fibonacci.s", {}, 16), soaked("riscv/hi.s", {"privileged": True}, 6),
    soaked("riscv/fibonacci.s", {"design": "two-layer"}, 200), soaked("riscv/fibonacci.s", {"privileged": True}, 200),
    soaked("riscv/fibonacci.s", {"multiply": True}, 60), *(soaked(file, {}, 120) for file in RISCV)])
def test_sentences_riscv(file: str, options: dict[str, Any], steps: int) -> None:
    """Operands, stored words and the next instruction are the interpreter's; a design that lags stores a loop later."""
    found, counts = opened(file, memory=RISCV[file], **options), dict.fromkeys(("operands", "stored", "next"), 0)
    lags, memory, sizes = found.machine.design.lags, found.machine.layout.region("memory"), found.machine.sizes
    oracle, _ = found.oracle(0)
    for step in range(steps):
        registers, loop = list(oracle.state.registers), step + found.machine.design.warm_up
        oracle.run(step + 1)
        if oracle.halted or oracle.steps <= step:
            break
        after = oracle.state
        words: dict[str, int] = {name: registers[i] for i, name in enumerate(REGISTERS)}
        results = {name: after.registers[i] for i, name in enumerate(REGISTERS)}
        sentences = story_of(found.session, loop)
        for text, values in sentences:
            assert "–" not in text, (step, text)
            for operand in "xy":
                if values.get(f"from_{operand}") in words:
                    assert wrap(words[values[f"from_{operand}"]], 32) == int(values[operand]), (step, text)
                    counts["operands"] += 1
            if "next" in values:
                column = memory.start + (after.program_counter - sizes.base) // 4
                assert values["next"] == found.session.column_name(column), (step, text)
                counts["next"] += 1
        follows = found.session.instructions.get(after.program_counter)
        if follows is not None:
            assert " ".join(follows.text.split()) in sentences[-1][0], (step, sentences[-1])
        stores = [values for text, values in story_of(found.session, loop + lags) if "cell" in values and "tores" in text]
        for values in stores:
            if values["cell"] in results:
                assert wrap(int(results[values["cell"]]), 32) == int(values["value"]), (step, values)
                counts["stored"] += 1
            else:
                cells = [at for at in range(memory.start, memory.stop) if found.session.column_name(at) == values["cell"]]
                stored = after.memory[cells[0] - memory.start]
                assert wrap(int(stored), 32) == int(values["value"]), (step, values)
    assert min(counts.values()) >= 2, counts


CLAIM = re.compile(r"(?:[Nn]ext is|goes to|goes on to|begins at|instruction from|program counter (?:to|at)) \{(\w+)\}"
                   r"|\{(\w+)\} (?:follows|is next)")
"""What a sentence says about the instruction after this one."""


@pytest.mark.parametrize("kind", [kind for kind in built_in() if kind.machine_class().designs], ids=lambda kind: kind.name)
def test_one_value_says_what_follows(kind: Any) -> None:
    """Whatever a sentence of any design says of the next instruction is the value `next`; the test below compares that."""
    claims = 0
    for name, design in kind.machine_class().designs.items():
        machine = SMALL[kind.name](name)
        for sentence in (one for pair in design.story(machine.sizes, machine.layout) for one in pair if one is not None):
            for text in (sentence.text, *(text for _, text in sentence.cases)):
                found = {one or other for one, other in CLAIM.findall(text)}
                assert found <= {"next"}, text
                claims += len(found)
    assert claims


@pytest.mark.parametrize(("file", "options"), [
    *(("multiply.subleq", {"design": design}) for design in DESIGNS), ("von_neumann/hello.asq", {"memory": 64}),
    *(("newton.fleq", {"design": design}) for design in ("compact", "three-layer")),
    ("riscv/fibonacci.s", {"memory": 64, "design": "three-layer"}),
    soaked("riscv/fibonacci.s", {"memory": 64, "design": "two-layer"})])
def test_the_sentences_a_loop_agree(file: str, options: dict[str, Any]) -> None:
    """All that a loop says of the next instruction is one thing, and it is the interpreter's, with a branch and without."""
    found = opened(file, **options)
    branches = set()
    for step in range(16):
        before, after = (found.oracle(count)[0].state.program_counter for count in (step, step + 1))
        sentences = story_of(found.session, step + found.machine.design.warm_up)
        said = {values["next"] for _, values in sentences if "next" in values}
        assert said == {place_name(found, after)}, (step, sentences)
        branches.add(after - before == found.machine.instruction_size)
    assert branches == {True, False}


def place_name(found: Opened, counter: int) -> str:
    """What the column of an instruction is called."""
    name = found.machine.kind.name
    if name == "von-neumann":
        return str(found.program.name_of(counter))
    if name == "riscv":
        return str(found.machine.column_name(found.machine.layout.region("memory").start + counter // 4, found.program))
    return f"instruction {counter}"


def test_the_formulas_tell_where_nobody_does() -> None:
    """A machine of one's own has a story without writing one: a Turing machine against its own step function."""
    found = opened("turing/increment.tm")
    for step in range(6):
        state = found.oracle(step + 1)[0].state
        attention, relu = (text for text, _ in story_of(found.session, step))
        assert f"here = {state.head}" in relu
        assert re.match(r"Head 1: scratchpad takes action from table\[\d+\]; tape\[\d+\] takes done.write = [_01] from "
                        r"scratchpad\.", attention)
        before = found.oracle(step)[0].state
        if state.state != before.state:
            assert f"rule.state = {found.program.states[state.state]}" in relu, "a state is called by its name"


def test_what_a_sentence_may_say() -> None:
    """Cases by conditions; a value that cannot be read satisfies none."""
    class Nothing:
        loop: int = 3
        instruction: str | None = None
        coming: str | None = None

        def at(self, column: int, *, before: bool) -> list[float]:
            return [0.0] * layout.width

        def taken(self, head: int) -> dict[int, int]:
            return {}

        def mixtures(self, head: int) -> dict[int, dict[int, float]]:
            return {}

        def name(self, column: int) -> str:
            return f"column {column}"

    layout = SubleqTwoLayer().layout(SubleqSizes(4, 2, 2))
    quotes = {"word": Quote(ValuePlace(1), "memory"), "name": Quote(ValuePlace(2, head=0))}
    sentence = Sentence("{word} in {name}, {instruction}", quotes, [(Condition("word", "<=", 0), "no"),
                                                                    (Condition("loop", ">=", 4), "no")])
    assert tell(sentence, Nothing(), layout)[0] == "– in column 2, –"
    yes = Sentence("no", quotes, [(Condition("loop", "==", 3), "loop {loop}")])
    assert tell(yes, Nothing(), layout)[0] == "loop 3"


def test_a_story_of_another_length_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A design that forgets a layer gets the sentences of its formulas."""
    def short(*_: object) -> Story:
        return ((Sentence("no"), Sentence("no")),)

    monkeypatch.setattr(SubleqTwoLayer, "story", short)
    found: Opened = opened("multiply.subleq", design="two-layer")
    assert found.session.story(5).startswith("Head 1: scratchpad takes memory = 7 from a.")


def test_a_trace_in_sentences() -> None:
    result = invoke("run", EXAMPLES / "multiply.subleq", "--design", "two-layer", "--set", "b=1", "--trace=story")
    assert "loop 2, layer 1, attention: Head 1 fetches mem[a] = 7 and head 2 mem[minus_a] = 0 into" in result.stderr
    assert result.stderr.count("\n") == 16
    assert "product  7" in result.stdout
    assert "attention:" not in result.stdout, "a trace goes to standard error: what the program writes stays clean"
    apart = invoke("run", EXAMPLES / "multiply.subleq", "--design", "two-layer", "--set", "b=1", "--trace", "story")
    assert apart.stderr == result.stderr
