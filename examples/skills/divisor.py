"""A skill in Python: after `gcd(1071, 462) =` comes the greatest common divisor.

`skill` gets the end of the text, and prints. It returns SAYS: what it printed comes next; FORBIDS: no token that begins with
one of these characters comes next; or 0: no opinion.

    punchcard fuse examples/skills/divisor.py --base FOLDER -o FOLDER
"""

SAYS, FORBIDS = 1, 2


def gcd(a: int, b: int) -> int:
    while b:
        a, b = b, a % b
    return a


def spaces(text: str, at: int) -> int:
    """Where the text goes on to the left of spaces."""
    while at >= 0 and text[at] == " ":
        at -= 1
    return at


def digits(text: str, at: int) -> int:
    """Where the text goes on to the left of digits."""
    while at >= 0 and "0" <= text[at] <= "9":
        at -= 1
    return at


def value(text: str, first: int, last: int) -> int:
    found = 0
    for at in range(first, last + 1):
        found = 10 * found + ord(text[at]) - 48
    return found


def skill(text: str) -> int:
    equals = len(text) - 1
    while equals >= 0 and text[equals] != "=":
        equals -= 1
    last = spaces(text, equals - 1)
    if last < 0 or text[last] != ")":
        return 0
    comma = spaces(text, digits(text, last - 1))
    opened = digits(text, comma - 1)
    if opened < 3 or text[comma] != "," or text[opened] != "(":
        return 0
    if text[opened - 3] != "g" or text[opened - 2] != "c" or text[opened - 1] != "d":
        return 0
    second = digits(text, last - 1) + 1
    if not 0 < last - second < 10 or not 0 < comma - opened - 1 < 10:
        return 0
    left = gcd(value(text, opened + 1, comma - 1), value(text, second, last - 1))
    answer, count = [0] * 10, 0
    while count == 0 or left:
        answer[count], left, count = left % 10, left // 10, count + 1
    at = equals + 1
    if at < len(text) and text[at] == " ":
        at += 1
    while at < len(text) and count and ord(text[at]) == answer[count - 1] + 48:
        at, count = at + 1, count - 1
    if at < len(text):
        return 0
    if count == 0:
        print("0123456789", end="")
        return FORBIDS
    if at == equals + 1:
        print(" ", end="")
    for place in range(count - 1, -1, -1):
        print(answer[place], end="")
    return SAYS
