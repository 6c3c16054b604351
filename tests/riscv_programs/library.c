/* What the small C library does, to be compared with this computer's own. Nothing here depends on the size of long. */

#include <ctype.h>
#include <inttypes.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int numbers[] = {0, 1, -1, 7, -42, 12345, INT_MAX, INT_MIN};
#define COUNT ((int)(sizeof numbers / sizeof *numbers))

static void print_numbers(void)
{
    for (int i = 0; i < COUNT; i++) {
        int n = numbers[i];
        printf("%d|%i|%5d|%-7d|%+d|% d|%08d|%.3d|%8.4d|%-8.4d|", n, n, n, n, n, n, n, n, n, n);
        printf("%u|%x|%X|%#x|%o|%#o|%10x|%010x\n", n, n, n, n, n, n == 0 ? 1 : n, n, n);
        printf("%hd|%hhd|%hu|%hhu|%lld|%llx|%20lld|%-20lld|\n", (short)n, (signed char)n, (unsigned short)n,
               (unsigned char)n, (long long)n * 1000003, (long long)n, (long long)n << 20, (long long)n);
    }
    printf("%zu %" PRId32 " %" PRIu64 " %%|%.0d|%c|%3c|%-3c|\n", sizeof(int), (int32_t)-5, UINT64_MAX, 0, 'x', 'y', 'z');
    printf("%s|%10s|%-10s|%.2s|%10.1s|%.*s|%*d|%-*d|\n", "text", "text", "text", "text", "text", 3, "text", 6, 5, 6, 5);
    char small[8];
    int wanted = snprintf(small, sizeof small, "%d-%s", 1234, "abcdef");
    printf("%s %d %d\n", small, wanted, sprintf(small, "%c%c", 'o', 'k'));
    fputs(small, stdout);
    fprintf(stdout, "\n");
    printf("%d\n", printf("count\n"));
}

static void read_numbers(void)
{
    static const char *const texts[] = {"", "0", "  -17x", "+5", "0x1F", "077", "2147483647", "-2147483648", "zz", "1e3", "-0"};
    for (int i = 0; i < (int)(sizeof texts / sizeof *texts); i++) {
        char *end;
        long ten = strtol(texts[i], &end, 10);
        printf("%d %d", (int)ten, (int)(end - texts[i]));
        ten = strtol(texts[i], &end, 0);
        printf(" %d %d", (int)ten, (int)(end - texts[i]));
        ten = strtol(texts[i], &end, 8);
        printf(" %d %d %d\n", (int)ten, (int)(end - texts[i]), atoi(texts[i]));
    }
}

static int sign(int n) { return (n > 0) - (n < 0); }

static void texts(void)
{
    char buffer[64], *copy;
    strcpy(buffer, "hello");
    strcat(buffer, ", world");
    strncat(buffer, "!!!", 2);
    printf("%s %d\n", buffer, (int)strlen(buffer));
    printf("%d %d %d %d\n", sign(strcmp("a", "b")), sign(strcmp("b", "a")), sign(strcmp("a", "a")), sign(strcmp("a", "ab")));
    printf("%d %d %d\n", sign(strncmp("abc", "abd", 2)), sign(strncmp("abc", "abd", 3)), sign(memcmp("\xff", "a", 1)));
    printf("%s %s %d\n", strchr(buffer, 'o'), strrchr(buffer, 'o'), strchr(buffer, 'z') == NULL);
    printf("%s %d %s\n", strstr(buffer, "wor"), strstr(buffer, "xyz") == NULL, strstr(buffer, ""));
    printf("%d %d\n", (int)strspn("aabbc", "ab"), (int)strcspn("aabbc", "c"));
    copy = strdup(buffer);
    memmove(copy + 2, copy, 8);
    printf("%s ", copy);
    memmove(copy, copy + 3, 8);
    printf("%s ", copy);
    memset(copy, 'x', 5);
    printf("%s %d\n", copy, (int)((char *)memchr(copy, 'l', 13) - copy));
    free(copy);
    strncpy(buffer, "ab", 5);
    printf("%d%d%d\n", buffer[2], buffer[3], buffer[4]);
    for (int c = -1; c < 128; c++)
        printf("%d", !!isdigit(c) + 2 * !!isalpha(c) + 3 * !!isspace(c) + !!ispunct(c) + !!isxdigit(c) + !!isprint(c));
    printf("\n%c%c\n", toupper('q'), tolower('Q'));
}

static int by_value(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

static void sorting(void)
{
    int items[40];
    unsigned state = 1;
    for (int i = 0; i < 40; i++)
        items[i] = (int)((state = state * 1664525u + 1013904223u) >> 16) % 500;
    qsort(items, 40, sizeof *items, by_value);
    for (int i = 0; i < 40; i++)
        printf("%d ", items[i]);
    int *found = bsearch(&items[17], items, 40, sizeof *items, by_value), missing = 501;
    printf("%d %d\n", *found == items[17], bsearch(&missing, items, 40, sizeof *items, by_value) == NULL);
}

/* Blocks of many sizes come and go; each keeps what was written to it. */
static void heap(void)
{
    unsigned char *blocks[16] = {0};
    unsigned sizes[16] = {0}, state = 7, wrong = 0;
    for (unsigned turn = 0; turn < 120; turn++) {
        state = state * 1664525u + 1013904223u;
        unsigned i = state >> 28, size = (state >> 16 & 255) + 1;
        for (unsigned j = 0; j < sizes[i]; j++)
            wrong += blocks[i][j] != (unsigned char)(i + j);
        if (turn % 3 == 0) {
            blocks[i] = realloc(blocks[i], size);
        } else {
            free(blocks[i]);
            blocks[i] = turn % 3 == 1 ? malloc(size) : calloc(size, 1);
            for (unsigned j = 0; turn % 3 == 2 && j < size; j++)
                wrong += blocks[i][j] != 0;
        }
        wrong += blocks[i] == NULL || ((uintptr_t)blocks[i] & 7) != 0;
        sizes[i] = size;
        for (unsigned j = 0; j < size; j++)
            blocks[i][j] = (unsigned char)(i + j);
    }
    printf("heap %u\n", wrong);
}

static void arithmetic(void)
{
    static volatile int few[] = {1, -1, 7, -1000, 65536, INT_MIN};
    static volatile long long many[] = {1, -10, -(1LL << 40) - 5, LLONG_MAX, LLONG_MIN};
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 6; j++) {
            unsigned a = (unsigned)few[i], b = (unsigned)few[j];
            printf("%u %u %u", a * b, a / b, a % b);
            if (!(few[i] == INT_MIN && few[j] == -1))
                printf(" %d %d", few[i] / few[j], few[i] % few[j]);
            printf("\n");
        }
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 5; j++) {
            unsigned long long a = (unsigned long long)many[i], b = (unsigned long long)many[j];
            int by = (13 * i + 5 * j) % 64;
            printf("%llu %llu %llu %llx %llx %llx", a * b, a / b, a % b, a << by, a >> by, (unsigned long long)(many[i] >> by));
            if (!(many[i] == LLONG_MIN && many[j] == -1))
                printf(" %lld %lld", many[i] / many[j], many[i] % many[j]);
            printf("\n");
        }
    for (int i = 0; i < 6; i++)
        printf("%d %d %d\n", __builtin_clz((unsigned)few[i]), __builtin_ctz((unsigned)few[i]), __builtin_popcount((unsigned)few[i]));
}

static void at_the_end(void) { puts("the end"); }

int main(void)
{
    char line[16];
    print_numbers();
    read_numbers();
    texts();
    sorting();
    heap();
    arithmetic();
    int c = getchar();
    ungetc(c, stdin);
    while (fgets(line, sizeof line, stdin) != NULL)
        printf("[%s]", line);
    printf("%d %d %d\n", getchar(), abs(-5), (int)labs(-6));
    atexit(at_the_end);
    return 3;
}
