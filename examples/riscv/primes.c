/* The sieve of Eratosthenes. */

#include <stdio.h>

#define LIMIT 1000

static char composite[LIMIT];

int main(void)
{
    int count = 0;
    for (int n = 2; n < LIMIT; n++) {
        if (composite[n])
            continue;
        for (int multiple = n + n; multiple < LIMIT; multiple += n)
            composite[multiple] = 1;
        count++;
        printf(count % 16 == 0 ? "%3d\n" : "%3d ", n);
    }
    printf("\n%d primes below %d\n", count, LIMIT);
    return 0;
}
