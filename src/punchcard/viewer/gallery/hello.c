/* The first program. */

#include <stdio.h>

int main(void)
{
    printf("Hello from a transformer. 6 times 7 is %d.\n", 6 * 7);
    return 0;
}
