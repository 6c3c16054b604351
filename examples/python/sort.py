"""Reads how many numbers there are, then the numbers, and prints them in order; see examples/von_neumann/sort.asq."""


def main() -> None:
    count = int(input())
    numbers = [0] * count
    for i in range(count):
        number = int(input())
        place = i
        while place > 0 and numbers[place - 1] > number:
            numbers[place] = numbers[place - 1]
            place -= 1
        numbers[place] = number
    for number in numbers:
        print(number)
