/* Quicksort of 256 numbers that look random. */

#include <stdio.h>

#define COUNT 256

static unsigned items[COUNT];

static unsigned next_random(unsigned state)
{
    state ^= state << 13;
    state ^= state >> 17;
    return state ^ state << 5;
}

static void sort(int low, int high)
{
    if (low >= high)
        return;
    unsigned pivot = items[low + (high - low) / 2];
    int i = low, j = high;
    while (i <= j) {
        while (items[i] < pivot)
            i++;
        while (items[j] > pivot)
            j--;
        if (i <= j) {
            unsigned other = items[i];
            items[i++] = items[j];
            items[j--] = other;
        }
    }
    sort(low, j);
    sort(i, high);
}

int main(void)
{
    unsigned state = 2463534242u;
    for (int i = 0; i < COUNT; i++) {
        state = next_random(state);
        items[i] = state >> 16;
    }
    sort(0, COUNT - 1);
    for (int i = 0; i < COUNT; i++) {
        if (i > 0 && items[i - 1] > items[i]) {
            printf("item %d is out of order\n", i);
            return 1;
        }
        printf(i % 16 == 15 ? "%5u\n" : "%5u ", items[i]);
    }
    return 0;
}
