/* Sudoku: always try the empty field that has the fewest candidates. */

#include <stdio.h>

#define ALL 0x1ff

static const char *const puzzle[9] = {
    ".21.4...9", ".......76", "3........", ".3.....8.", ".5..271..", "..7.58.3.", ".65......", "9..17..45", "1...8....",
};

static int fields[9][9];                  /* 0: empty */
static int rows[9], columns[9], boxes[9]; /* digits that are used, as bits */
static int tried;

static int box_of(int y, int x)
{
    static const int third[9] = {0, 0, 0, 1, 1, 1, 2, 2, 2};
    return third[y] + third[y] + third[y] + third[x];
}

static void set(int y, int x, int digit)
{
    int bit = 1 << (digit - 1);
    fields[y][x] = digit;
    rows[y] ^= bit;
    columns[x] ^= bit;
    boxes[box_of(y, x)] ^= bit;
}

static void clear(int y, int x)
{
    set(y, x, fields[y][x]);
    fields[y][x] = 0;
}

static int count_bits(int bits)
{
    int count = 0;
    for (; bits != 0; bits &= bits - 1)
        count++;
    return count;
}

static int solve(void)
{
    int best = 10, best_y = 0, best_x = 0, best_free = 0;
    for (int y = 0; y < 9; y++)
        for (int x = 0; x < 9; x++)
            if (fields[y][x] == 0) {
                int candidates = ALL & ~(rows[y] | columns[x] | boxes[box_of(y, x)]), count = count_bits(candidates);
                if (count < best)
                    best = count, best_y = y, best_x = x, best_free = candidates;
            }
    if (best == 10)
        return 1;
    for (int digit = 1; digit <= 9; digit++)
        if (best_free >> (digit - 1) & 1) {
            tried++;
            set(best_y, best_x, digit);
            if (solve())
                return 1;
            clear(best_y, best_x);
        }
    return 0;
}

int main(void)
{
    for (int y = 0; y < 9; y++)
        for (int x = 0; x < 9; x++)
            if (puzzle[y][x] != '.')
                set(y, x, puzzle[y][x] - '0');
    if (!solve()) {
        puts("there is no solution");
        return 1;
    }
    for (int y = 0; y < 9; y++) {
        for (int x = 0; x < 9; x++)
            printf(x == 8 ? "%d\n" : x == 2 || x == 5 ? "%d | " : "%d ", fields[y][x]);
        if (y == 2 || y == 5)
            puts("------+-------+------");
    }
    printf("%d digits tried\n", tried);
    return 0;
}
