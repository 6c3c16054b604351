"""Counters of FLEQ text: as many rounds as are written, within any range of 1 or more."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import punchcard
from punchcard.errors import SourceError
from punchcard.machines.fleq.builder import Builder
from punchcard.machines.fleq.counter import Counter
from punchcard.machines.fleq.isa import FleqProgram, Halt
from punchcard.machines.fleq.oracle import run
from punchcard.machines.fleq.text.assembler import assemble, disassemble
from tests.cases import EXAMPLES

TICK = 2.0**-30
LOOP = f""".range {{limit}}
.data
n scalar
tick scalar {TICK}
t counter {{rounds}}
.code
loop:   n = add(n, tick)
        count t goto loop
        halt
"""
NESTED = f""".code
each:   count u goto within              # the code may come before the data
        goto end
within: n = add(n, tick)
        count k goto within
        restart k
        goto each
end:    halt
.data
k counter {{inner}}
n scalar
tick scalar {TICK}
u counter {{outer}}
.range {{limit}}
"""


def rounds_of(program: FleqProgram) -> float:
    """How often n has grown; the interpreter refuses what leaves the range."""
    outcome = run(program, max_steps=1_000_000)
    assert outcome.halted
    return float(program.named(outcome.state.memory)["n"].item()) / TICK


@settings(max_examples=25)
@given(st.integers(1, 400), st.sampled_from([1.0, 1.5, 2.0, 16.0]))
def test_a_counter_makes_its_rounds(rounds: int, limit: float) -> None:
    program = assemble(LOOP.format(rounds=rounds, limit=limit))
    assert rounds_of(program) == rounds
    assert assemble(disassemble(program)) == program


@settings(max_examples=15)
@given(st.integers(2, 12), st.integers(1, 20), st.sampled_from([1.0, 16.0]))
def test_a_counter_inside_another_restarts(outer: int, inner: int, limit: float) -> None:
    """`u` is counted before the first round, so its last round has no loop inside."""
    program = assemble(NESTED.format(outer=outer, inner=inner, limit=limit))
    assert rounds_of(program) == (outer - 1) * inner
    assert assemble(disassemble(program)) == program


def test_it_is_the_builders_counter() -> None:
    """The same instructions; the constants that it needs come after all variables of the text."""
    p = Builder()
    n, tick = p.scalar("n"), p.scalar("tick", TICK)
    counter = Counter(p, "t", 50)
    with counter.repeat("loop"):
        p.add(n, tick, into=n)
    found, built = assemble(LOOP.format(rounds=50, limit=16)), p.program(range=16)
    assert disassemble(found).split(".code")[1] == disassemble(built).split(".code")[1]
    assert [v.name for v in found.variables] == ["n", "tick", "t0", "t1", "t2", "t3", "one", "minus_two", "zero"]
    assert found.labels == (("loop", 0),)
    assert found.lines == (7, *[8] * 7, 9)
    assert len(assemble(LOOP.format(rounds=10**18 - 1, limit=16)).variables) == 2 + 38 + 3


def test_names_of_the_text_stay_its_own() -> None:
    """A variable `one` may be anything, `count` and `restart` may be variables, and a label behind a counter is right."""
    program = assemble("""
        .data
        one scalar 5
        count matrix 2x2
        restart scalar 3
        counter scalar 1
        k counter 4
        .code
        restart = add(restart, one)
        top:
        count[0] = add(count[1], count[1])
        count k goto top
        after: restart = sub(restart, one); if counter <= 0 goto after
        goto 1
    """)
    assert dict(program.labels) == {"top": 1, "after": 5}
    assert [v.name for v in program.variables][-3:] == ["one_", "minus_two", "zero"]
    assert program.values["one_"].item() == 1
    assert isinstance(program.instructions[-1], Halt)
    assert assemble(disassemble(program)) == program


@pytest.mark.parametrize(("data", "line", "place", "message"), [
    ("t counter", "halt", (2, 10), "the line ends here: the number of rounds of 't' must be a whole number"),
    ("t counter -3", "halt", (2, 11), "the number of rounds of 't' must be a whole number"),
    ("t counter 1.5", "halt", (2, 11), "the number of rounds of 't' must be a whole number"),
    ("t counter 0", "halt", (2, 11), "0 rounds: a loop makes at least one"),
    ("t counter 5 6", "halt", (2, 13), "unexpected '6' after the rounds of 't'"),
    ("halt counter 5", "halt", (2, 1), "'halt' begins an instruction: a variable needs another name"),
    ("t couner 5", "halt", (2, 3), "unknown kind 'couner' (did you mean 'counter'?): a variable is a matrix, a vector, a "
                                   "scalar or a counter"),
    ("t counter 5\nt scalar", "halt", (3, 1), "variable 't' is declared twice"),
    ("t counter 5\nt1 scalar", "halt", (2, 1), "the counter 't' has the digits t0, t1 and so on, and there is a variable "
                                               "'t1': rename one of them"),
    ("t counter 5\nt1 counter 3\nt10 scalar", "halt", (3, 1), "the counter 't1' has the digits"),
    ("t counter 5\n.range 0.5", "halt", (2, 1), "the counter 't' needs a range of 1 or more, and .range is 0.5"),
    ("t counter 5", "count", (4, 6), "the line ends here: after 'count' comes a counter, which must be a name"),
    ("t counter 5", "count t", (4, 8), "the line ends here: a round of a counter is counted by `count name goto label`"),
    ("t counter 5", "count t go l", (4, 9), "a round of a counter is counted by `count name goto label`"),
    ("t counter 5", "count t goto l", (4, 14), "unknown label 'l'"),
    ("t counter 5", "count t goto 9", (4, 14), "no instruction 9: there are 4, counted from 0"),
    ("t counter 5", "count t goto 0 x", (4, 16), "unexpected 'x' after `count t`"),
    ("t counter 5", "count s goto 0", (4, 7), "unknown counter 's': declare it under .data, as `s counter ROUNDS`"),
    ("t counter 5\nx scalar", "restart x", (5, 9), "unknown counter 'x'"),
    ("t counter 5", "restart t goto 0", (4, 11), "unexpected 'goto' after `restart t`"),
    ("t counter 5\nx scalar", "x = add(x, t)", (5, 12), "'t' is a counter, not a variable: `count t goto label` and "
                                                       "`restart t` use it"),
    ("t counter 5\nx scalar", "x = add(x, x); count t goto 0", (5, 16), "after `;` comes a branch of the same instruction"),
    ("t counter 5", "cuont t goto 0", (4, 1), "unknown instruction 'cuont' (did you mean 'count'?)"),
])
def test_errors_have_a_place(data: str, line: str, place: tuple[int, int], message: str) -> None:
    with pytest.raises(SourceError) as caught:
        assemble(f".data\n{data}\n.code\n{line}\n")
    assert message in caught.value.message
    assert (caught.value.line, caught.value.column) == place


def test_a_small_range_makes_a_small_error() -> None:
    """What a counter is for: the same loop with its rounds in one number needs a range of 100, and has a larger bound."""
    text = (EXAMPLES / "rotation.fleq").read_text()
    small, large = (punchcard.build(assemble(text.replace(".range 2", f".range {limit}")), heads=2).bound("mul")
                    for limit in (2, 100))
    assert small < large / 45
