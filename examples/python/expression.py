"""Reads an expression such as 2*(3+4)-5 and prints its value: recursive descent over a line of input."""


def skip(text: str, at: int) -> int:
    while at < len(text) and text[at] == " ":
        at += 1
    return at


def factor(text: str, at: int) -> tuple[int, int]:
    at = skip(text, at)
    if text[at] == "(":
        value, at = expression(text, at + 1)
        at = skip(text, at)
        return value, at + 1
    if text[at] == "-":
        value, at = factor(text, at + 1)
        return -value, at
    value = 0
    while at < len(text) and "0" <= text[at] <= "9":
        value = 10 * value + ord(text[at]) - ord("0")
        at += 1
    return value, at


def term(text: str, at: int) -> tuple[int, int]:
    value, at = factor(text, at)
    at = skip(text, at)
    while at < len(text) and text[at] in "*/%":
        sign = text[at]
        other, at = factor(text, at + 1)
        if sign == "*":
            value *= other
        elif sign == "/":
            value //= other
        else:
            value %= other
        at = skip(text, at)
    return value, at


def expression(text: str, at: int) -> tuple[int, int]:
    value, at = term(text, at)
    at = skip(text, at)
    while at < len(text) and text[at] in "+-":
        sign = text[at]
        other, at = term(text, at + 1)
        if sign == "+":
            value += other
        else:
            value -= other
        at = skip(text, at)
    return value, at


def main() -> None:
    value, _ = expression(input("> "), 0)
    print(value)
