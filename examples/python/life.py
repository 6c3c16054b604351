"""Conway's Life on a board of eight by eight that is closed around its edges: a glider for four generations."""

SIZE = 8
GLIDER = [(0, 1), (1, 2), (2, 0), (2, 1), (2, 2)]


def neighbours(board: list[list[int]], y: int, x: int) -> int:
    count = 0
    for dy in (-1, 0, 1):
        for dx in (-1, 0, 1):
            if dy or dx:
                count += board[(y + dy) % SIZE][(x + dx) % SIZE]
    return count


def main() -> None:
    board = [[0] * SIZE for _ in range(SIZE)]
    for y, x in GLIDER:
        board[y][x] = 1
    for _ in range(4):
        after = [[0] * SIZE for _ in range(SIZE)]
        for y in range(SIZE):
            for x in range(SIZE):
                near = neighbours(board, y, x)
                if near == 3 or (near == 2 and board[y][x]):
                    after[y][x] = 1
        board = after
    for row in board:
        for cell in row:
            print("#" if cell else ".", end="")
        print()
