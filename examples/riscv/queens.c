/* In how many ways n queens stand on a board of n by n so that none attacks another; and one such way. */

#include <stdio.h>

#define MOST 8

static int place[MOST], shown;

static void show(int n)
{
    for (int y = 0; y < n; y++) {
        for (int x = 0; x < n; x++)
            printf(x == place[y] ? "Q " : ". ");
        putchar('\n');
    }
}

/* `columns`, `left` and `right` are the squares of this row that queens above attack. */
static int ways(int n, int row, int columns, int left, int right)
{
    if (row == n) {
        if (n == MOST && !shown++)
            show(n);
        return 1;
    }
    int count = 0;
    for (int x = 0; x < n; x++) {
        int bit = 1 << x;
        if ((columns | left | right) & bit)
            continue;
        place[row] = x;
        count += ways(n, row + 1, columns | bit, (left | bit) << 1, (right | bit) >> 1);
    }
    return count;
}

int main(void)
{
    for (int n = 1; n <= MOST; n++) {
        int count = ways(n, 0, 0, 0, 0);
        printf("%d queen%s: %d way%s\n", n, n == 1 ? "" : "s", count, count == 1 ? "" : "s");
    }
    return 0;
}
