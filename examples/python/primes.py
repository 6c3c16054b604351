"""Prints the primes up to 30, by trial division, as examples/von_neumann/primes.asq does."""


def main() -> None:
    for n in range(2, 31):
        for divisor in range(2, n):
            if n % divisor == 0:
                break
        else:
            print(n)
