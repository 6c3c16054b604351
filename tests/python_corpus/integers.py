"""Integer programs for the compiler of Python: each is run by CPython and by the transformer, with the same arguments.

A program is a function with the cases that it is given: arguments, made by `random`, and for some what they read.
"""
# ruff: noqa: E501

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.cases import EXAMPLES

Arguments = Callable[[random.Random], tuple[Any, ...]]


@dataclass(frozen=True)
class Case:
    """A program: its text, the function to call, arguments, what it reads, and how often it is tried."""

    text: str
    entry: str
    arguments: Arguments = lambda rng: ()
    input: Callable[[random.Random], bytes] = lambda rng: b""
    times: int = 2


def some(rng: random.Random, count: int, low: int = -99, high: int = 99) -> list[int]:
    return [rng.randint(low, high) for _ in range(count)]


def example(name: str) -> str:
    """The text of an example, which the docs show."""
    return (EXAMPLES / "python" / f"{name}.py").read_text()


CORPUS: dict[str, Case] = {}


def add(name: str, text: str, entry: str = "main", arguments: Arguments = lambda rng: (),
        input: Callable[[random.Random], bytes] = lambda rng: b"", times: int = 2) -> None:
    CORPUS[name] = Case(text.strip("\n") + "\n", entry, arguments, input, times)


add("gcd", """
def gcd(a: int, b: int) -> int:
    while b:
        a, b = b, a % b
    return a
""", "gcd", lambda r: (r.randint(1, 9999), r.randint(1, 9999)), times=4)

add("sieve", """
def main():
    n = 50
    prime = [True] * (n + 1)
    for i in range(2, n + 1):
        if prime[i]:
            print(i, end=" ")
            for j in range(i * i, n + 1, i):
                prime[j] = False
    print()
""", times=1)

add("quicksort", """
def quicksort(a: list[int], low: int, high: int) -> None:
    if low >= high:
        return
    pivot = a[(low + high) // 2]
    i, j = low, high
    while i <= j:
        while a[i] < pivot:
            i += 1
        while a[j] > pivot:
            j -= 1
        if i <= j:
            a[i], a[j] = a[j], a[i]
            i += 1
            j -= 1
    quicksort(a, low, j)
    quicksort(a, i, high)

def ordered(a: list[int]) -> list[int]:
    quicksort(a, 0, len(a) - 1)
    return a
""", "ordered", lambda r: (some(r, r.randint(1, 12)),), times=3)

add("collatz", """
def collatz(n: int) -> int:
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps
""", "collatz", lambda r: (r.randint(1, 60),), times=3)

add("queens", example("queens"), times=1)

add("matrix product", """
def product(a: list[int], b: list[int], n: int) -> list[int]:
    c = [0] * (n * n)
    for i in range(n):
        for j in range(n):
            total = 0
            for k in range(n):
                total += a[i * n + k] * b[k * n + j]
            c[i * n + j] = total
    return c
""", "product", lambda r: (some(r, 9), some(r, 9), 3))

add("nested lists", """
def main():
    a = [[1, 2, 3], [4, 5, 6]]
    b = [[0] * 2 for _ in range(3)]
    for i in range(2):
        for j in range(3):
            b[j][i] = a[i][j]
    print(b, a[-1][-2], len(b), len(b[0]))
    for row in b:
        for x in row:
            print(x, end=",")
    print()
""", times=1)

add("reverse input", """
def main():
    text = input()
    for i in range(len(text) - 1, -1, -1):
        print(text[i], end="")
    print()
    print(text[::-1])
    print(text[-1], len(text))
""", input=lambda r: bytes(r.choice(b"abc xyz.") for _ in range(r.randint(1, 9))) + b"\n")

add("prime factors", """
def main(n: int) -> None:
    d = 2
    while d * d <= n:
        while n % d == 0:
            print(d, end=" ")
            n //= d
        d += 1
    if n > 1:
        print(n, end="")
    print()
""", arguments=lambda r: (r.randint(2, 30000),))

add("life", example("life").replace("range(4)", "range(2)"), times=1)

add("fizzbuzz", """
def main():
    for i in range(1, 16):
        if i % 15 == 0:
            print("FizzBuzz")
        elif i % 3 == 0:
            print("Fizz")
        elif i % 5 == 0:
            print("Buzz")
        else:
            print(i)
""", times=1)

add("ackermann", """
def ackermann(m: int, n: int) -> int:
    if m == 0:
        return n + 1
    if n == 0:
        return ackermann(m - 1, 1)
    return ackermann(m - 1, ackermann(m, n - 1))
""", "ackermann", lambda r: (2, 3), times=1)

add("calculator", example("expression"), input=lambda r: (
    f"{r.randint(1, 99)} + {r.randint(1, 9)}*({r.randint(1, 99)} - -{r.randint(1, 30)}) / {r.randint(1, 9)}\n".encode()))

add("factorial", """
def factorial(n: int) -> int:
    return 1 if n < 2 else n * factorial(n - 1)
""", "factorial", lambda r: (r.randint(0, 12),))

add("fibonacci", """
def fibonacci(n: int) -> int:
    if n < 2:
        return n
    return fibonacci(n - 1) + fibonacci(n - 2)
""", "fibonacci", lambda r: (r.randint(0, 8),))

add("fibonacci loop", """
def main(count: int):
    a, b = 0, 1
    for _ in range(count):
        print(a, end=" ")
        a, b = b, a + b
    print()
""", arguments=lambda r: (r.randint(0, 40),))

add("bubble sort", """
def ordered(a: list[int]) -> list[int]:
    for end in range(len(a) - 1, 0, -1):
        for i in range(end):
            if a[i] > a[i + 1]:
                a[i], a[i + 1] = a[i + 1], a[i]
    return a
""", "ordered", lambda r: (some(r, r.randint(0, 8)),))

add("binary search", """
def find(a: list[int], wanted: int) -> int:
    low, high = 0, len(a) - 1
    while low <= high:
        middle = (low + high) // 2
        if a[middle] == wanted:
            return middle
        if a[middle] < wanted:
            low = middle + 1
        else:
            high = middle - 1
    return -1
""", "find", lambda r: (sorted(some(r, 9)), r.randint(-99, 99)), times=3)

add("hanoi", """
def hanoi(n: int, source: int, target: int, spare: int):
    if n > 0:
        hanoi(n - 1, source, spare, target)
        print(f"{source}->{target}", end=" ")
        hanoi(n - 1, spare, target, source)

def main():
    hanoi(3, 1, 3, 2)
    print()
""", times=1)

add("division", """
def main(a: int, b: int):
    print(a // b, a % b)
    q, r = divmod(a, b)
    print(q, r, q * b + r == a)
    print(a // 7, a % 7, a // -3, a % -3)
""", arguments=lambda r: (r.randint(-999, 999), r.choice((-17, -1, 1, 5, 123))), times=5)

add("bits", """
def main(a: int, b: int):
    print(a & b, a | b, a ^ b, ~a, a & 15, a >> 3, a << 2)
""", arguments=lambda r: (r.randint(-(2**29), 2**29 - 1), r.randint(-(2**29), 2**29 - 1)), times=4)

add("shifts", """
def main(a: int, n: int):
    print(a << n, a >> n, 1 << n, 2 ** n, -1 >> n)
    print(a >> 40, 5 ** 3, 3 ** n, pow(2, n))
""", arguments=lambda r: (r.randint(-99, 99), r.randint(0, 18)), times=4)

add("population count", """
def ones(n: int) -> int:
    count = 0
    while n:
        count += n & 1
        n >>= 1
    return count
""", "ones", lambda r: (r.randint(0, 2**31 - 1),))

add("reverse digits", """
def reverse(n: int) -> int:
    result = 0
    sign = -1 if n < 0 else 1
    n = abs(n)
    while n > 0:
        n, digit = divmod(n, 10)
        result = result * 10 + digit
    return sign * result
""", "reverse", lambda r: (r.randint(-99999, 99999),))

add("palindromes", """
def is_palindrome(n: int) -> bool:
    digits = [0] * 6
    count = 0
    while n:
        digits[count] = n % 10
        n //= 10
        count += 1
    for i in range(count // 2):
        if digits[i] != digits[count - 1 - i]:
            return False
    return True

def main(low: int):
    for n in range(low, low + 30):
        if is_palindrome(n):
            print(n, end=" ")
    print(is_palindrome(12321), not is_palindrome(12321))
""", arguments=lambda r: (r.randint(0, 500),), times=1)

add("squares and roots", """
def root(n: int) -> int:
    guess = n
    while guess * guess > n:
        guess = (guess + n // guess) // 2
    return guess
""", "root", lambda r: (r.randint(1, 40000),), times=3)

add("modular power", """
def power(base: int, exponent: int, modulus: int) -> int:
    result = 1
    base %= modulus
    while exponent > 0:
        if exponent & 1:
            result = result * base % modulus
        base = base * base % modulus
        exponent >>= 1
    return result
""", "power", lambda r: (r.randint(2, 999), r.randint(0, 99), r.randint(2, 9999)))

add("least and greatest", """
def main(a: int, b: int, c: int):
    print(min(a, b, c), max(a, b, c), abs(a - b), min(a, 5), max(-3, b))
    items = [a, b, c, 7]
    print(min(items), max(items), sum(items), len(items), items)
""", arguments=lambda r: tuple(some(r, 3)), times=3)

add("and or not", """
def main(a: int, b: int):
    print(a and b, a or b, not a, a and b or 7, a < b or b < 0, (a > 0) + (b > 0))
    if not (a > 1 and b > 1) or a == b:
        print("first")
    if a < b <= 5 != 3:
        print("chain")
    print(bool(a), int(a > b), a == b, a != b)
""", arguments=lambda r: (r.randint(-2, 6), r.randint(-2, 6)), times=6)

add("truths", """
def main(n: int):
    flags = [False] * 5
    flags[n % 5] = True
    print(flags, any_of(flags))
    found = n > 3
    print(found, not found, found and n < 10)

def any_of(flags: list[bool]) -> bool:
    for flag in flags:
        if flag:
            return True
    return False
""", arguments=lambda r: (r.randint(0, 12),))

add("loops with else", """
def main(n: int):
    for i in range(2, n):
        if n % i == 0:
            print(n, "is", i, "times", n // i)
            break
    else:
        print(n, "is prime")
    while n > 3:
        n -= 2
        if n == 7:
            continue
        if n == 5:
            break
    else:
        print("down to", n)
    print(n)
""", arguments=lambda r: (r.randint(4, 30),), times=4)

add("zip and enumerate", """
def main(a: list[int], b: list[int]):
    for i, x in enumerate(a):
        print(i, x, end="; ")
    for i, x in enumerate(b, 5):
        print(i, x, end="; ")
    for x, y in zip(a, b):
        print(x * y, end=" ")
    for x, y, i in zip(a, b, range(10)):
        print(x + y + i, end=" ")
    print()
""", arguments=lambda r: (some(r, r.randint(0, 4)), some(r, r.randint(0, 4))), times=3)

add("comprehensions", """
def main(n: int):
    squares = [i * i for i in range(n)]
    print(squares, sum(squares))
    i = 5
    grid = [[x + 10 * y for x in range(3)] for y in range(2)]
    print(grid, i)
    print([-x for x in squares], [ord(c) for c in "abc"])
""", arguments=lambda r: (r.randint(0, 6),))

add("texts", """
NAMES = ["zero", "one", "two", "three"]

def main(n: int):
    name = NAMES[n]
    print(name, len(name), name[0], name == "two", name != "three")
    for c in name:
        print(chr(ord(c) - 32), end="")
    print("", "a", sep="-", end="!\\n")
    print("=" * 5 + "[" + str(n) + "]" + "-" * n)
    print(f"{n}+{n}={n + n}", n, "x" if n else "y")
""", arguments=lambda r: (r.randint(0, 3),), times=3)

add("numbers from input", """
def main():
    count = int(input())
    total = 0
    for _ in range(count):
        total += int(input())
    print("sum", total)
    name = input("who? ")
    print("hello,", name)
""", input=lambda r: (f"{(n := r.randint(0, 3))}\n" + "".join(f" {x} \n" for x in some(r, n, -9999, 9999)) + "Ada L.\n").encode())

add("caesar", """
def main(shift: int):
    text = input()
    for c in text:
        if "a" <= c <= "z":
            c = chr((ord(c) - ord("a") + shift) % 26 + ord("a"))
        print(c, end="")
    print()
""", arguments=lambda r: (r.randint(-30, 30),), input=lambda r: b"the quick brown fox, 42\n")

add("word count", """
def main():
    text = input()
    words = 0
    inside = False
    vowels = 0
    digits = 0
    for c in text:
        if c == " ":
            inside = False
        elif not inside:
            inside = True
            words += 1
        if c in "aeiou":
            vowels += 1
        if c.isdigit():
            digits += int(c)
    print(words, vowels, digits)
""", input=lambda r: b"it is 4 past 12 in the evening\n", times=1)

add("run length", """
def main():
    text = input()
    i = 0
    while i < len(text):
        j = i
        while j < len(text) and text[j] == text[i]:
            j += 1
        print(f"{j - i}{text[i]}", end="")
        i = j
    print()
""", input=lambda r: b"aaabccdddd\n", times=1)

add("brackets", """
def main():
    text = input()
    stack = [" "] * 20
    top = 0
    good = True
    for c in text:
        if c in "([":
            stack[top] = c
            top += 1
        elif c in ")]":
            top -= 1
            if top < 0 or (stack[top] == "(") != (c == ")"):
                good = False
                break
    print(good and top == 0)
""", input=lambda r: r.choice((b"([()])\n", b"([)]\n", b"((\n", b")\n", b"\n")), times=4)

add("pascal", """
def main():
    row = [0] * 7
    row[0] = 1
    for n in range(6):
        for k in range(n + 1):
            print(row[k], end=" ")
        print()
        for k in range(n + 1, 0, -1):
            row[k] += row[k - 1]
""", times=1)

add("stairs", """
def ways(n: int, memory: list[int]) -> int:
    if n <= 1:
        return 1
    if memory[n] == 0:
        memory[n] = ways(n - 1, memory) + ways(n - 2, memory)
    return memory[n]

def main(n: int):
    print(ways(n, [0] * (n + 1)))
""", arguments=lambda r: (r.randint(0, 25),))

add("even and odd", """
def even(n: int) -> bool:
    return True if n == 0 else odd(n - 1)

def odd(n: int) -> bool:
    return False if n == 0 else even(n - 1)

def main(n: int):
    print(even(n), odd(n))
""", arguments=lambda r: (r.randint(0, 12),))

add("permutations", """
def permute(items: list[int], at: int) -> int:
    if at == len(items):
        print(items[0], items[1], items[2], end=" / ")
        return 1
    count = 0
    for i in range(at, len(items)):
        items[at], items[i] = items[i], items[at]
        count += permute(items, at + 1)
        items[at], items[i] = items[i], items[at]
    return count

def main():
    print(permute([1, 2, 3], 0))
""", times=1)

add("knapsack", """
def best(weights: list[int], values: list[int], room: int) -> int:
    table = [0] * (room + 1)
    for weight, value in zip(weights, values):
        for r in range(room, weight - 1, -1):
            table[r] = max(table[r], table[r - weight] + value)
    return table[room]
""", "best", lambda r: (some(r, 4, 1, 9), some(r, 4, 0, 50), r.randint(0, 20)))

add("longest common part", """
def main():
    a = input()
    b = input()
    width = len(b) + 1
    table = [0] * ((len(a) + 1) * width)
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            if a[i - 1] == b[j - 1]:
                table[i * width + j] = table[(i - 1) * width + j - 1] + 1
            else:
                table[i * width + j] = max(table[(i - 1) * width + j], table[i * width + j - 1])
    print(table[-1])
""", input=lambda r: b"abcbdab\nbdcaba\n", times=1)

add("random numbers", """
def main(seed: int):
    for _ in range(6):
        seed = (seed * 1103 + 12345) % 32768
        print(seed % 6 + 1, end=" ")
    print()
""", arguments=lambda r: (r.randint(0, 32767),))

add("points", """
POINTS = [(0, 1), (3, -2), (5, 5)]

def far(x: int, y: int) -> int:
    return x * x + y * y

def turned(x: int, y: int):
    return -y, x

def main():
    for x, y in POINTS:
        a, b = turned(x, y)
        print(far(x, y), a, b)
    p, q = turned(1, 2)
    print(p, q)
""", times=1)

add("days of the week", """
def weekday(year: int, month: int, day: int) -> int:
    table = [0, 3, 2, 5, 0, 3, 5, 1, 4, 6, 2, 4]
    if month < 3:
        year -= 1
    return (year + year // 4 - year // 100 + year // 400 + table[month - 1] + day) % 7
""", "weekday", lambda r: (r.randint(1700, 2100), r.randint(1, 12), r.randint(1, 28)), times=4)

add("roman numbers", """
def main(n: int):
    values = [1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1]
    names = ["M", "CM", "D", "CD", "C", "XC", "L", "XL", "X", "IX", "V", "IV", "I"]
    for value, name in zip(values, names):
        while n >= value:
            print(name, end="")
            n -= value
    print()
""", arguments=lambda r: (r.randint(1, 2000),))

add("spiral", """
def main(n: int):
    grid = [[0] * n for _ in range(n)]
    y, x, dy, dx = 0, 0, 0, 1
    for step in range(1, n * n + 1):
        grid[y][x] = step
        if grid[(y + dy) % n][(x + dx) % n]:
            dy, dx = dx, -dy
        y += dy
        x += dx
    for row in grid:
        print(row)
""", arguments=lambda r: (r.randint(1, 4),))

add("negative indices", """
def main(a: list[int], i: int):
    print(a[i], a[-1], a[i - 1])
    a[-2] += 5
    a[i] -= 3
    a[0] *= 2
    print(a)
""", arguments=lambda r: (some(r, 4), r.randint(-3, 3)), times=4)

add("large numbers", """
def main(a: int, b: int):
    print(a < b, a <= b, a > b, a >= b, a == b)
    print(a < 5, a >= -5, 7 < a, b <= 100, b != -100, a < 0)
    if a < b and not a == b - 1:
        print("apart")
    print(min(a, b), max(a, b))
""", arguments=lambda r: (r.choice((-(2**31), 2**31 - 1, -1, 0, 1, r.randint(-(2**31), 2**31 - 1))),
                          r.choice((-(2**31), 2**31 - 1, 0, r.randint(-(2**31), 2**31 - 1)))), times=12)

add("ranges", """
def main(a: int, b: int):
    for i in range(a, b):
        print(i, end=" ")
    for i in range(b, a, -2):
        print(i, end=" ")
    for i in range(a, b, 3):
        i = i * 2
        print(i, end=" ")
    for i in range(3):
        for j in range(i):
            print(i - j, end=",")
    i = 7
    for i in range(0):
        pass
    print(i)
""", arguments=lambda r: (r.randint(-4, 6), r.randint(-4, 6)), times=6)

add("a sieve by steps", """
def main(n: int):
    prime = [True] * (n + 1)
    prime[0] = prime[1] = False
    i = 2
    while i * i <= n:
        if prime[i]:
            for j in range(i * i, n + 1, i):
                prime[j] = False
        i += 1
    for k in range(n + 1):
        if prime[k]:
            print(k, end=" ")
    for j in range(0, n, sum(prime)):
        print(j)
    print(*prime, *prime, *[n, -1], "end", *[n] * (n % 2), *prime, sep=", ")
    print(*[n] * (n % 2))
""", arguments=lambda r: (r.randint(2, 30),), times=3)
