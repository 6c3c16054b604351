"""Words as Python and C expressions. Every number is from 0 to 2^size - 1, and a truth may be a bool.

C computes in uint32_t for words of up to 32 bits, and in uint64_t for those of up to 64.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from punchcard.words.renderer import Renderer
from punchcard.words.word import Word, full_width, parts_of

Table = Mapping[str, Callable[..., str]]


def python_text(leaf: Callable[[Word], str]) -> Renderer[str]:
    """Words as Python expressions, in brackets; `leaf` gives that of a variable."""
    return Renderer(PYTHON, leaf)


def python_function(names: Sequence[str], words: Sequence[Word]) -> Callable[..., tuple[int, ...]]:
    """A Python function of variables with these names: the numbers of some words."""
    text = python_text(lambda word: str(word.data))
    results = "".join(f"{text(word)}, " for word in words)
    made: Callable[..., tuple[int, ...]] = eval(f"lambda {', '.join(names)}: ({results})", {})
    return made


def python_lines(word: Word, leaf: Callable[[Word], str]) -> tuple[list[str], str]:
    """A word as a Python expression, after lines that give names to what is needed more than once in it."""
    uses = Counter(argument for part in parts_of(word) for argument in part.arguments if argument.arguments)
    plain, text, lines = python_text(leaf), python_text(leaf), list[str]()
    plain(word)
    for shared in (part for part in plain.rendered if uses[part] > 1):
        lines.append(f"t{len(lines)} = {text(shared)}")
        text.rendered[shared] = f"t{len(lines) - 1}"
    return lines, text(word)


def c_text(leaf: Callable[[Word], str]) -> Renderer[str]:
    """Words as C expressions, in brackets; `leaf` gives that of a variable, of the type of its size."""
    return Renderer(C, leaf)


def c_type(size: int) -> str:
    """The type that C computes in, for words of so many bits."""
    return "uint32_t" if size <= 32 else "uint64_t"


def _table(
    number: Callable[[int, int], str], cut: Callable[[int, str], str], widen: Callable[[int, str], str],
    pick: Callable[[str, str, str], str], signed: Callable[[Word, str], str], ordered: Callable[[Word, str], str],
    logic: Mapping[str, str], slash: str,
) -> Table:
    """The operations, by what a number is, the lowest bits of an expression, a wider one, a choice, and a signed number.

    `ordered` is what compares as signed numbers do.
    """

    def modulo(sign: str) -> Callable[[Word, str, str], str]:
        return lambda w, x, y: (cut(w.size, f"{x} {sign} {y}") if full_width(w.op, w.arguments) > w.size
                                else f"({x} {sign} {y})")

    def combined(op: str, sign: str) -> Callable[[Word, str, str], str]:
        return lambda w, x, y: f"({x} {logic[op] if w.size == 1 else sign} {y})"

    def less(w: Word, x: str, y: str) -> str:
        a, b = w.arguments
        return f"({ordered(a, x)} < {ordered(b, y)})" if w.data else f"({x} < {y})"

    def extend(w: Word, x: str) -> str:
        source = w.arguments[0]
        if source.size == 1:
            return pick(x, number((1 << w.size) - 1 if w.data else 1, w.size), number(0, w.size))
        return cut(w.size, signed(source, x)) if w.data else widen(w.size, x)

    def bits(w: Word, x: str) -> str:
        source, first = w.arguments[0], int(str(w.data))
        return (cut if source.width - first > w.size else widen)(w.size, f"({x} >> {first})" if first else x)

    return {
        "constant": lambda w: number(w.data, w.size),
        "add": modulo("+"),
        "subtract": lambda w, x, y: cut(w.size, f"{x} - {y}"),
        "multiply": modulo("*"),
        "quotient": lambda w, x, y: pick(y, f"({x} {slash} {y})", number((1 << w.size) - 1, w.size)),
        "remainder": lambda w, x, y: pick(y, f"({x} % {y})", x),
        "and_": combined("and", "&"),
        "or_": combined("or", "|"),
        "xor": lambda w, x, y: f"({x} ^ {y})",
        "not_": lambda w, x: f"({logic['not']} {x})" if w.size == 1 else f"({x} ^ {number((1 << w.size) - 1, w.size)})",
        "shift_left": modulo("<<"),
        "shift_right": lambda w, x, by: cut(w.size, f"{signed(w, x)} >> {by}") if w.data else f"({x} >> {by})",
        "equal": lambda w, x, y: f"({x} == {y})",
        "less": less,
        "choose": lambda w, condition, yes, no: pick(condition, yes, no),
        "bits": bits,
        "join": lambda w, low, high: f"({widen(w.size, low)} | {widen(w.size, high)} << {w.arguments[0].size})",
        "extend": extend,
    }


def _python_less(w: Word, x: str, y: str) -> str:
    """Signed numbers from a limit on that is not negative are those between it and the sign bit."""
    limit, half = w.arguments[1].value, 1 << w.arguments[0].size - 1
    if w.data and limit is not None and limit < half:
        return f"(not {limit - 1} < {x} < {half})" if limit else f"({x} > {half - 1})"
    return _PLAIN["less"](w, x, y)


_PLAIN: Table = _table(
    lambda value, size: str(value), lambda size, text: f"({text} & {(1 << size) - 1})", lambda size, text: text,
    lambda condition, yes, no: f"({yes} if {condition} else {no})",
    lambda word, text: f"(({text} ^ {1 << word.size - 1}) - {1 << word.size - 1})",
    lambda word, text: f"({text} ^ {1 << word.size - 1})",
    {"and": "and", "or": "or", "not": "not"}, "//")
PYTHON: Table = {**_PLAIN, "less": _python_less}


def _c_number(value: int, size: int) -> str:
    return f"{value}u" if size <= 32 else f"{value}ull"


def _c_widen(size: int, text: str) -> str:
    return f"(({c_type(size)})({text}))"


def _c_cut(size: int, text: str) -> str:
    whole = _c_widen(size, text)
    return whole if size in (32, 64) else f"({whole} & {_c_number((1 << size) - 1, size)})"


def _c_signed(word: Word, text: str) -> str:
    """Moved up, so that its sign is that of the type, and down again."""
    beyond = (32 if word.size <= 32 else 64) - word.size
    return f"((({c_type(word.size)[1:]})({text} << {beyond})) >> {beyond})"


C: Table = _table(_c_number, _c_cut, _c_widen, lambda condition, yes, no: f"({condition} ? {yes} : {no})",
                  _c_signed, _c_signed, {"and": "&&", "or": "||", "not": "!"}, "/")
