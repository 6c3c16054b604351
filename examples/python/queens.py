"""In how many ways six queens are on a board of six without taking each other: recursion and lists."""

SIZE = 6


def ways(row: int, columns: list[int]) -> int:
    if row == SIZE:
        return 1
    found = 0
    for column in range(SIZE):
        for before in range(row):
            other = columns[before]
            if other == column or abs(other - column) == row - before:
                break
        else:
            columns[row] = column
            found += ways(row + 1, columns)
    return found


def main() -> None:
    print(ways(0, [0] * SIZE))
