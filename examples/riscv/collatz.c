#include <stdio.h>

int main(void)
{
    for (int n = 1; n <= 9; n++) {
        int steps = 0;
        for (int x = n; x != 1; steps++)
            x = x % 2 ? 3 * x + 1 : x / 2;
        printf("%d takes %d steps\n", n, steps);
    }
}
