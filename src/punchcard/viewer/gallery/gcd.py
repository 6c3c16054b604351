"""The greatest common divisor of two numbers, by Euclid."""


def main() -> None:
    a, b = 48, 36
    while b:
        a, b = b, a % b
