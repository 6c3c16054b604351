"""The shipped skills on the card: right answers, against oracles of Python, and no opinion on anything else."""

from __future__ import annotations

import random
from datetime import date
from math import gcd
from pathlib import Path
from statistics import mean

import pytest
from benchmarks.sums import PHRASINGS, SIGNS, sums

import punchcard
from punchcard.errors import ProgramError
from punchcard.language_models.fusion.skill import load_skill, shipped
from tests.cases import EXAMPLES, soaked
from tests.fused_models import LONG, base, fused, opinion, said, text_of, tokenizer
from tests.fusion_negatives import NEGATIVES
from tests.fusion_ordinary import ORDINARY
from tests.pages import page, run_snippets
from tests.riscv_runs import GCC

pytest.importorskip("transformers")

DIGITS = (1, 2, 3, 4, 8, 16, 20, 40)
SUMS = {
    "12 + 30 =": " 42", "12+30=": "42", "12 + 30 = 4": "2", "12 + 30 = 42": "", "12 + 30 = 42.": "", "2^10 =": " 1024",
    "2 ** 3 ** 2 =": " 512", "-2^2 =": " -4", "2^-2 =": " 0.25", "17 % 5 =": " 2", "17 mod 5 =": " 2",
    "(1 + 2) * (3 + 4) =": " 21",
    "1 - 2 - 3 =": " -4", "7 / 2 =": " 3.5", "10/3=": "3.3333333333", "2 / 3 =": " 0.6666666667", "1/3*3 =": " 1",
    "0.1 + 0.2 =": " 0.3",
    "2.50 * 2 =": " 5", "1 / 3000000000000000 =": " 0.0000000000000", "5 - 8 equals": " -3",
    "100 divided by 8 is equal to": " 12.5",
    "3 × 4 =": " 12", "12 ÷ 4 =": " 3", "5 − 3 =": " 2", "3 x 4 =": " 12", "-5 + 3 =": " -2", "so 3 + 4 =": " 7",
    "2) 3 + 4 =": " 7",
    "1 + 2 = 3, 3 + 4 =": " 7", "What is 12 plus 30?\nA:": " 42", "Calculate (2+3)*4.\nAnswer:": " 20",
    "What's 7 times 8? Answer:": " 56",
    "How much is 2 to the power of 5?\nA: 3": "2", "Is 9.11 > 9.9?\nA:": " No", "Is 9.9 greater than 9.11?\nA:": " Yes",
    "Is 2 + 2 = 4?\nA:": " Yes", "Which is larger, 9.11 or 9.9?\nA:": " 9.9", "Which is smaller: 9.11 or 9.9?\nA:": " 9.11",
    "What is the value of 6 * 7?\nA:": " 42",
}
LETTERS = {
    "How many r's are in strawberry?\nA:": " 3", "How many times does the letter r appear in 'strawberry'?\nAnswer:": " 3",
    "How many s are there in the word mississippi? A:": " 4", "How many letters are in strawberry?\nA: 1": "0",
    "Count the letter e in eerie.\nA:": " 3",
    "How many z's are in strawberry?\nA:": " 0", "How many z's are in strawberry?\nA: 0": "",
    "Reverse the word strawberry.\nA:": " yrrebwarts",
    "Reverse stressed\nA: des": "serts", "Spell cat.\nA:": " c-a-t", 'Spell "cat" backwards.\nA:': " t-a-c",
    "Sort the letters of banana.\nA:": " aaabnn",
}
PROGRAM = "Run this SUBLEQ program: 9 -1 3 10 -1 6 0 0 -1 72 105"
LINES = PROGRAM.replace(" 10", "\n10")
COMPUTER = {f"{PROGRAM}\nOutput:": " Hi", f"{PROGRAM}\nOutput: H": "i", f"Q: {LINES}\nA:": " Hi"}


@pytest.mark.parametrize(("skill", "cases"), [("sums", SUMS), ("letters", LETTERS), ("computer", COMPUTER)])
def test_answers(skill: str, cases: dict[str, str]) -> None:
    found = {text: said(text, *shipped()) for text in cases}
    assert found == cases


def chat(message: str) -> str:
    messages = [{"role": "user", "content": message}]
    return str(tokenizer().apply_chat_template(messages, tokenize=False, add_generation_prompt=True))


def test_answers_in_a_chat() -> None:
    for message, answer in (("What is 12 plus 30?", "42"), ("12*12", "144"), ("6 * 7 = ?", "42"), ("6 * 7 =", "42"),
                            ("How many r's are in strawberry?", "3"), ("Is 2024 a leap year?", "Yes")):
        assert said(chat(message), *shipped()) == answer, message
    assert said(chat("What is 12 plus 30?") + "42", *shipped()) == ""
    assert said(chat("What is 12 plus 30?") + "42<|im_end|>", *shipped()) is None
    assert said("<|im_start|>user\nWhat is 12 plus 30?", *shipped()) is None  # it is the user's turn


@pytest.mark.parametrize("count", [1, soaked(50)])
def test_random_sums(count: int) -> None:
    """Of every size, sign and phrasing, also with the beginning of the answer written."""
    draw = random.Random(3)
    for digits in DIGITS:
        for sign in SIGNS:
            for phrasing in range(len(PHRASINGS)):
                for each in sums(digits, sign, phrasing, count, seed=5):
                    text = chat(each.text) if each.is_chat else each.text
                    answer = each.answer if each.is_chat else f" {each.answer}"
                    assert said(text, *shipped()) == answer[:16], each
                    written = draw.randrange(1, len(answer) + 1)
                    assert said(text + answer[:written], *shipped()) == answer[written : written + 16], (each, written)


@pytest.mark.skipif(not GCC, reason="no RISC-V compiler")
def test_the_skill_of_the_page_on_language_models() -> None:
    """`examples/skills/roman.c`, of which the page shows the function main."""
    source = EXAMPLES / "skills" / "roman.c"
    program = source.read_text()
    assert program[program.index("int main") :] in page("language-models.md")
    stream = punchcard.fuse(base(), tokenizer(), source).card
    for text, answer in {"What is 2026 in Roman numerals?\nA:": " MMXXVI",
    "What is 3888 in Roman numerals?\nA: MMM": "DCCCLXXXVIII",
                         "What is 4000 in Roman numerals?\nA:": None}.items():
        heard = opinion(text, stream=stream)
        assert (text_of(heard) if heard.kind else None) == answer


def test_the_snippet_of_the_page_on_language_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base().save_pretrained(tmp_path / "base")
    tokenizer().save_pretrained(tmp_path / "base")
    monkeypatch.chdir(tmp_path)
    names = run_snippets(page("language-models.md"), folder=str(tmp_path / "base"))
    assert tokenizer().decode(names["tokens"][0]).startswith("12 + 30 = 42")
    assert (tmp_path / "smol-sums" / "fused_model.py").exists()


def test_random_dates() -> None:
    draw = random.Random(4)
    first, last = date(1583, 1, 1).toordinal(), date(9999, 12, 31).toordinal()
    for _ in range(12):
        one, other = (date.fromordinal(draw.randrange(first, last)) for _ in range(2))
        forms = (str(one), f"{one:%B} {one.day}, {one.year}", f"{one.day} {one:%B} {one.year}")
        asked = f"What day of the week {draw.choice(('is', 'was'))} {draw.choice(forms)}?\nA:"
        assert said(asked, *shipped()) == f" {one:%A}", asked
        asked = f"How many days are between {one} and {other}?\nA:"
        assert said(asked, *shipped()) == f" {abs((one - other).days)}", asked
        asked = f"How many days from {one} to {other}?\nA:"
        assert said(asked, *shipped()) == f" {(other - one).days}", asked
        leap = one.year % 4 == 0 and (one.year % 100 != 0 or one.year % 400 == 0)
        assert said(f"Is {one.year} a leap year?\nA:", *shipped()) == (" Yes" if leap else " No")


@pytest.mark.parametrize(("texts", "least"), [soaked(NEGATIVES, 650), (ORDINARY, 750)], ids=["negatives", "ordinary"])
def test_no_opinion_on_what_only_looks_like_a_question(texts: list[str], least: int) -> None:
    assert len(texts) == len(set(texts)) >= least
    assert [text for text in texts if said(text, *shipped()) is not None] == []


def test_the_first_skill_with_an_opinion_is_heard() -> None:
    """Each is asked in its order, and those after it are not."""
    model, heard = fused("letters", "sums"), list[int]()
    model.card.observers.append(lambda opinion: heard.append(opinion.skill))
    try:
        assert said("How many r's are in strawberry?\nA:", "letters", "sums") == " 3"
        assert heard == [0]
        assert said("12 + 30 =", "letters", "sums") == " 42"
        assert heard == [0, 0, 1]
    finally:
        model.card.observers.pop()


def test_an_answer_is_not_changed_by_what_follows_at_once() -> None:
    """17 mod 5 = 2*2 would be another number."""
    heard = opinion("17 mod 5 = 2", *shipped())
    assert heard.kind == 2
    assert {byte for byte, bit in enumerate(heard.never.tolist()) if bit} == set(b"0123456789+-*/^%!eExX")


def test_ordinary_text_is_left_after_few_loops() -> None:
    """Most of a text cannot be the beginning of an answer: what is before it is not read."""
    text = page("language-models.md")[:1500]
    for name, most in (("sums", 1_400), ("letters", 1_000), ("dates", 1_000)):
        heard = [opinion(text[:end], name) for end in range(300, 1500, 12)]
        assert all(each.kind == 0 for each in heard)
        assert mean(each.loops for each in heard) < most, name
    assert opinion(chat("Tell me of the sea, and of the ships on it. " * 40), "sums").loops < 15_000  # no digit, no sum


CHANGED = (
    "Run this SUBLEQ program: 15 16 9 17 -1 6 0 0 -1 18 -1 12 0 0 -1 1000000 5 78 89\nOutput:", "5 – 3 + 1 =",
    "10 – 2 * 3 =", "8 : 2 + 1 =", "10 +\n2 + 3 =", "10 +\t2 + 3 =", "(5 +\n3 + 4 =", "2 * \\\n3 + 4 =", "5 div 3 + 1 =",
    "4 choose 2 + 1 =", "lg 100 + 2 =", "abs -3 + 4 =", "floor 7 / 2 =", "triple 2 + 3 =", "square 3 + 4 =",
    "What day of the week is 10000-11-18?\nA:", "What day is 12/25?\nA:", "When is 9/11?\nA:",
    "Who won if the score is 3-1?\nA:", "Why is 3 < 4?\nA:", "What is false is 3 > 4?\nA:",
    "Which is larger, 555-1234 or 3?\nA:", "In base 8, what is 7 + 1?\nA:", "In binary, what is 1 + 1?\nA:",
    "In base 2, 1 + 1 =", "Modulo 5, what is 3 + 4?\nA:", "To the nearest integer, what is 7/2?\nA:",
    "In Python, what is 2^3?\nA:",
    "Do not run this SUBLEQ program: 9 -1 3 10 -1 6 0 0 -1 72 105\nOutput:",
    "How many instructions has the SUBLEQ program: 9 -1 3 10 -1 6 0 0 -1 72 105\nAnswer:",
)
"""What is before a sum or a program changes it, or may: a sum that began earlier, other arithmetic, another question."""


@pytest.mark.parametrize("text", CHANGED)
def test_no_opinion_where_the_text_before_may_change_the_answer(text: str) -> None:
    assert said(text, *shipped()) is None


@pytest.mark.parametrize(("text", "answer"), [
    ("What is 17 mod 5?\nA:", " 2"), ("17 modulo 5 =", " 2"), ("Please, what is 6 * 7?\nA:", " 42"),
    ("I am stuck. What is 6 * 7?\nA:", " 42"), ("The answer is 2 + 2 =", " 4"), ("1 + 1 = 2\n3 + 4 =", " 7"),
    ("Nobody knows, but 12 * 12 =", " 144"), ("What is 3+4 please?\nA:", " 7"), ("Calculate: 3 + 4\nA:", " 7"),
    ("can you compute 12345*6789 for me?\nA:", " 83810205"), ("Which is bigger 9.9 or 9.11?\nA:", " 9.9"),
    ("On what day of the week was Jan 1, 2000?\nA:", " Saturday"), ("How many times does m appear in km?\nA:", " 1"),
    ("Spell the word it.\nA:", " i-t"), ("x = 3 + 4 =", " 7"), ("(3 + 4) mod 5 =", " 2"), ("2 ^ 10 mod 7 =", " 2"),
    ("1 + (7 mod 5) =", " 3"), ("x + y = 3 + 4 =", " 7"), ("How many letters are in the word Tamil?\nA:", " 5"),
    ("How many l's are in barrel?\nA:", " 1"), ("17 mod 5 = 2. What is 3 + 4?\nA:", " 7")])
def test_words_that_change_nothing_may_stand_before(text: str, answer: str) -> None:
    assert said(text, *shipped()) == answer


def test_what_is_written_like_a_span_and_is_a_sum() -> None:
    """A span has no space and goes up, a score has words before it; what is asked for is a sum."""
    cases = {
        "12-5 =": " 7", "100-1=": "99", "2024-1999 =": " 25", "2000-50 =": " 1950", "3 - 10 =": " -7",
        "1939 - 1945 =": " -6",
        "Calculate 3-10 =": " -7", "What is 1939-1945?\nA:": " -6", "10-20 = ?\nA:": " -10", "3/4=": "0.75",
        "1/2-1/4 =": " 0.25", "5 * (10-20) =": " -50", "(10-4) / 2 =": " 3", "10-(3 + 4) =": " 3", "12-5*2 =": " 2",
        "x = 12-5 =": " 7", "1 + 1 = 2\n12-5 =": " 7", "555 - 1234 =": " -679", "What is 90210-1234?\nA:": " 88976",
        "10 - 2 - 3 =": " 5", "What is 10-2-3?\nA:": " 5", "Great! 3 + 4 =": " 7", "The students' sum: 3 + 4 =": " 7",
        "'Hi' so 3 + 4 =": " 7", "‘Hi’ so 3 + 4 =": " 7", "« Oui » so 3 + 4 =": " 7", "17 mod 5 = 2, 3 + 4 =": " 7",
        "$3 + 4 =": " 7", "# 3 + 4 =": " 7", "Price: 4 + 2 =": " 6", "\t3 + 4 =": " 7", "x=3+4=": "7",
        "Is 5-3 > 1?\nA:": " Yes", "Is 3 - 5 > 1?\nA:": " No", "Which is larger, 1/2 or 1/3?\nA:": " 1/2",
        "Reverse the word psychology.\nA:": " ygolohcysp", "How many e's are in 'here'?\nA:": " 2",
        "What day of the week is 2026-11-08?\nA:": " Sunday", f"Please execute the following{PROGRAM[8:]}\nOutput:": " Hi",
    }
    assert {text: said(text, *shipped()) for text in cases} == cases


# Skills in Python and in assembly


def test_a_skill_in_python() -> None:
    """Beside one in C: the shipped example, against `math.gcd`."""
    stream = punchcard.fuse(base(), tokenizer(), ["sums", EXAMPLES / "skills" / "divisor.py"]).card
    draw = random.Random(2)
    for _ in range(3):
        a, b = (draw.randrange(1, 10**9) * draw.choice((1, 6)) % 10**9 for _ in range(2))
        answer = str(gcd(a, b))
        for written in range(len(answer) + 1):
            heard = opinion(f"Then gcd({a}, {b}) = {answer[:written]}", stream=stream)
            if written < len(answer):
                assert (heard.skill, heard.kind, text_of(heard)) == (1, 1, answer[written:])
            else:
                assert (heard.kind, [i for i, bit in enumerate(heard.never.tolist()) if bit]) == (2, list(range(48, 58)))
    for silent in ("gcd(12) =", "gcd(1234567890, 2) =", "lcm(4, 6) =", "gcd(4, 6) is", "a =", f"gcd(4, {LONG}6) ="):
        assert opinion(silent, stream=stream).kind == 0, silent
    assert text_of(opinion("12 + 30 =", stream=stream)) == " 42"


def test_python_that_is_not_a_skill(tmp_path: Path) -> None:
    path = tmp_path / "wrong.py"
    for source, message in (
        ("def answer(text: str) -> int:\n    return 0\n", "there is no function 'skill'"),
        ("def skill(a: int, b: int) -> int:\n    return a\n", "must have one parameter, text: str; write def skill"),
        ("def skill(text: int) -> int:\n    return text\n", r"write def skill\(text: str\) -> int"),
        ("def skill(text: str):\n    print(text)\n", r"write def skill\(text: str\) -> int"),
    ):
        path.write_text(source)
        with pytest.raises(ProgramError, match=message):
            load_skill(path)
    path.write_text("def skill(text: str) -> int:\n    print(text[len(text)], end='')\n    return 1\n")
    stream = punchcard.fuse(base(), tokenizer(), ["sums", path]).card       # an error of the program is no opinion
    assert opinion("hello", stream=stream).kind == 0
