"""Prints 1! to 7!, as examples/von_neumann/factorial.asq does."""


def main() -> None:
    product = 1
    for n in range(1, 8):
        product *= n
        print(product)
